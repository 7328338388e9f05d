"""
Missing values
==============

Missing values are NaN and need no imputation: they lie below every threshold, and one more map
asks whether the value is present. Whether imputation is better depends on why values are missing.
"""

# %%
# Half of the values of the breast cancer data are hidden in three ways: anywhere; mostly small
# values, as below the detection limit of an instrument; and mostly those of healthy people, as if
# doctors had ordered more tests for patients they worried about.

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
# The same classifier with NaN, with imputed means, and with means and indicator columns.

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
# No way is best everywhere, and the differences are no larger than those between folds. If values
# are missing anywhere, a NaN looks like a small value, and means do less harm. If small values are
# missing, NaN below every threshold is where they belong.
