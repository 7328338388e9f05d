"""
Shape functions of medical data
===============================

A model of stumps is a sum of one step function per feature. So you can read it: which features
matter, where along each the score changes, and what each one adds for a given person. The breast
cancer data describe cell nuclei by thirty numbers; the model separates benign from malignant
tumours.
"""

# %%
# Stumps with learned weights have few steps, which makes them easy to read. Compare them with the
# default: if it is much better, features interact, and step functions miss a part.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split

from mbkl import MBKLClassifier
from mbkl.explain import explain_global, explain_local
from mbkl.plot import ImportanceDisplay, ShapeFunctionDisplay

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

sparse = {"theta": "learned", "theta_shrinkage": 0, "C_kernel": 0.1}
readable = MBKLClassifier(maps="stumps", C=1.0, random_state=0, **sparse)
for name, model in {"stumps, learned": readable, "default": MBKLClassifier(random_state=0)}.items():
    print(f"{name:16s} {100 * cross_val_score(model, X, y, cv=3).mean():.1f} %")

# %%
# Importance: how much each feature changes the score, on average.

readable.fit(X_train, y_train)
explanation = explain_global(readable, X_train)
ImportanceDisplay.from_explanation(explanation, max_features=10)
plt.show()

# %%
# The four most important step functions. Above zero they speak for "malignant". The grey strip
# shows where the data are; beyond them a curve is a guess.

ShapeFunctionDisplay.from_explanation(explanation)
plt.show()

# %%
# One person: what each feature adds for the test row about which the model is least sure, compared
# with the mean of the training rows. The parts sum to the score.

unsure = X_test.iloc[[abs(readable.decision_function(X_test)).argmin()]]
reasons = explain_local(readable, unsure, background=X_train).to_frame().iloc[0]
parts = reasons.drop(["baseline", "score"])
parts = parts[parts.abs().sort_values(ascending=False).index[:8]]
print(f"baseline {reasons['baseline']:+.2f}, score {reasons['score']:+.2f}\n")
for feature, part in parts.items():
    print(f"{feature:24s} = {unsure[feature].iloc[0]:8.3f}   adds {part:+.2f}")
