"""
Kernel weights and the size of a model
======================================

The weights theta say how much each map counts in the kernel. Equal weights are the default and hard
to beat in accuracy. Learned weights, the heart of the paper, are zero for most maps: the model gets
smaller and shows where along each feature the score changes.
"""

# %%
# Accuracy by cross-validation, and the number of maps kept.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_validate

from mbkl import MBKLClassifier

data = load_breast_cancer()
X, y = data.data, data.target
SPARSE = {"theta": "learned", "theta_shrinkage": 0, "C_kernel": 1.0}
forms = {
    "ones": {"theta": "ones"},
    "reweighted": {"theta": "reweighted", "theta_shrinkage": 0},
    "alignment": {"theta": "alignment", "theta_shrinkage": 0},
    "learned, C_kernel = 1": SPARSE,
    "learned, C_kernel = 0.1": {**SPARSE, "C_kernel": 0.1},
    "learned, C_kernel = 0.01": {**SPARSE, "C_kernel": 0.01},
    "learned, shrunk by 0.9": {**SPARSE, "theta_shrinkage": 0.9},
}
models = {}
print(f"{'theta':26s} accuracy    maps kept")
for name, parameters in forms.items():
    model = MBKLClassifier(maps="stumps", C=1.0, random_state=0, **parameters)
    results = cross_validate(model, X, y, cv=5, return_estimator=True)
    kept = np.mean([fitted.n_maps_ for fitted in results["estimator"]])
    print(f"{name:26s} {100 * results['test_score'].mean():5.1f} %   {kept:9.0f}")
    models[name] = model.fit(X, y)

# %%
# Where the weight lies, along the two features that learned weights use most.

learned = models["learned, C_kernel = 0.1"]
weight = np.bincount(learned.stump_features_, learned.theta_, minlength=X.shape[1])
figure, axes = plt.subplots(2, 2, figsize=(10, 4.4), sharex="col")
for column, feature in enumerate(np.argsort(weight)[::-1][:2]):
    for row, name in enumerate(("ones", "learned, C_kernel = 0.1")):
        model, axis = models[name], axes[row, column]
        own = model.stump_features_ == feature
        axis.vlines(model.stump_thresholds_[own], 0, model.theta_[own], color=f"C{row}")
        axis.set(title=f"theta: {name}", ylim=(0, None))
    axes[1, column].set_xlabel(data.feature_names[feature])
plt.show()
