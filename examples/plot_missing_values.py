"""
Missing values
==============

Missing values are NaN and need no imputation: they lie below every threshold, and one more map
asks whether the value is there at all. Whether that is better than filling them in depends on why
they are missing.
"""

# %%
# We hide half of the values of the breast cancer data in three ways: anywhere; mostly where they
# are small, as below the limit of an instrument; and mostly for those who turned out to be
# healthy, as if doctors had ordered more tests for those they worried about.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from mbkl import MBKLClassifier

X, y = load_breast_cancer(return_X_y=True)
is_small = np.median(X, axis=0) > X
chances = {
    "anywhere": np.full(X.shape, 0.5),
    "small values": np.where(is_small, 0.9, 0.1),
    "healthy people": np.where(y[:, None] == 1, 0.65, 0.25) * np.ones_like(X),
}
generator = np.random.default_rng(0)
gappy = {
    name: np.where(generator.random(X.shape) < chance, np.nan, X)
    for name, chance in chances.items()
}

# %%
# The same classifier with NaN as it is, with means in its place, and with means and columns that
# tell where they are.

models = {
    "NaN as it is": MBKLClassifier(random_state=0),
    "means": make_pipeline(SimpleImputer(), MBKLClassifier(random_state=0)),
    "means and marks": make_pipeline(
        SimpleImputer(add_indicator=True), MBKLClassifier(random_state=0)
    ),
}
figure, axis = plt.subplots(figsize=(8, 3.2))
for number, (name, model) in enumerate(models.items()):
    for place, values in enumerate(gappy.values()):
        accuracy = 100 * cross_val_score(model, values, y, cv=3)
        height = 2 - place + 0.2 * (1 - number)
        label = name if place == 0 else None
        axis.plot(accuracy.mean(), height, "o", color=f"C{number}", label=label)
        axis.hlines(height, accuracy.min(), accuracy.max(), color=f"C{number}")
axis.set_yticks(range(3), [f"missing: {name}" for name in reversed(gappy)])
axis.set(xlabel="accuracy, % (lines: from the worst fold to the best)")
axis.legend(loc="lower left")
plt.show()

# %%
# There is no best way for all, and the differences are no larger than those between folds. Where
# values are missing anywhere, NaN below every threshold looks like a small value, and means do less
# harm. Where small values are missing, below every threshold is where they belong.
