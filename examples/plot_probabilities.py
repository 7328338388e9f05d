"""
Calibrated probabilities
========================

SVM scores rank well but are not probabilities. Every fit learns a calibration rule from scores of
held-out rows, at little cost. ``calibration="temperature"`` divides all scores by one number,
learned on held-out folds, and takes three more fits. ``loss="logistic"`` trains with the logistic
loss, not the hinge.
"""

# %%
# Noisy labels: even the best classifier is sometimes wrong, and has to say how often.

import matplotlib.pyplot as plt
from scipy.special import expit
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from mbkl import MBKLClassifier

X, y = make_classification(8_000, 12, n_informative=6, flip_y=0.2, class_sep=0.8, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=2_000, random_state=0)

default = MBKLClassifier(random_state=0).fit(X_train, y_train)
scaled = MBKLClassifier(calibration="temperature", random_state=0).fit(X_train, y_train)
logistic = MBKLClassifier(loss="logistic", random_state=0).fit(X_train, y_train)
probabilities = {
    "scores, squashed": expit(scaled.decision_function(X_test)),
    "default": default.predict_proba(X_test)[:, 1],
    "temperature": scaled.predict_proba(X_test)[:, 1],
    "logistic loss": logistic.predict_proba(X_test)[:, 1],
}
print(f"temperature {scaled.temperature_:.2f}")
for name, p in probabilities.items():
    accuracy = 100 * accuracy_score(y_test, p > 0.5)
    print(f"{name:18s} accuracy {accuracy:.1f} %, log loss {log_loss(y_test, p):.3f}")

# %%
# On the diagonal, 80 % of the rows with a probability of 80 % are of the class. Calibration never
# changes the most probable class, so accuracy stays the same.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
axes[0].plot([0, 1], [0, 1], color="C4", linewidth=1)
for name, p in probabilities.items():
    observed, stated = calibration_curve(y_test, p, n_bins=10, strategy="quantile")
    axes[0].plot(stated, observed, "o-", markersize=4, label=name)
    axes[1].hist(p, bins=40, range=(0, 1), histtype="step", linewidth=1.5)
axes[0].set(title="Reliability", xlabel="probability stated", ylabel="share observed")
axes[0].legend()
axes[1].set(title="How often each is stated", xlabel="probability stated", ylabel="rows")
plt.show()
