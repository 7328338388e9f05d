"""
Shape functions of medical data
===============================

A model of stumps is a sum of one step function for each feature. So it can be read: which features
matter, where along each of them something changes, and what each one adds for a given person. The
breast cancer data describe cell nuclei by thirty numbers; the model tells benign tumours from
malignant ones.
"""

# %%
# Stumps with learned weights need only a few steps, which makes them easy to read. It is a good
# habit to compare with the default: if that is much better, features interact, and the step
# functions do not tell the whole story.

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
# What matters: how much each feature changes the score, on average.

readable.fit(X_train, y_train)
explanation = explain_global(readable, X_train)
ImportanceDisplay.from_explanation(explanation, max_features=10)
plt.show()

# %%
# Where it matters: the four most important step functions. Above zero they speak for "malignant".
# The grey strip shows where the data are; what a curve does beyond them is a guess.

ShapeFunctionDisplay.from_explanation(explanation)
plt.show()

# %%
# Why this person? For the test row about which the model is least sure, what each feature adds,
# compared with the mean of the training rows. The parts sum to the score.

unsure = X_test.iloc[[abs(readable.decision_function(X_test)).argmin()]]
reasons = explain_local(readable, unsure, background=X_train).to_frame().iloc[0]
parts = reasons.drop(["baseline", "score"])
parts = parts[parts.abs().sort_values(ascending=False).index[:8]]
print(f"baseline {reasons['baseline']:+.2f}, score {reasons['score']:+.2f}\n")
for feature, part in parts.items():
    print(f"{feature:24s} = {unsure[feature].iloc[0]:8.3f}   adds {part:+.2f}")
