"""Jumps of the stumps of a feature add up to a table, tables add up to a score."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from mbkl import MBKLClassifier

data = load_breast_cancer(as_frame=True)
X, y = data.data[["worst radius", "worst texture"]], data.target
PAPER = {"maps": "stumps", "theta": "learned", "theta_shrinkage": 0, "C": 1.0}
model = MBKLClassifier(**PAPER, random_state=0).fit(X, y)

thresholds = model.stump_thresholds_[model.stump_features_ == 0]
jumps = model.coef_[0, model.stump_features_ == 0]
table = model.tables_[0][:, 0]
low, high = X.min().to_numpy(), X.max().to_numpy()

figure, axes = plt.subplots(1, 3, figsize=(11, 3.5))
axes[0].vlines(thresholds, 0, jumps, color="C0")
axes[0].axhline(0, color="C4", linewidth=0.8)
axes[0].set(title="What each stump adds above its threshold", xlabel="worst radius", ylabel="jump")
edges = np.concatenate([[low[0]], thresholds, [high[0]]])
axes[1].stairs(table, edges, baseline=None, color="C0", linewidth=2)
axes[1].axhline(0, color="C4", linewidth=0.8)
axes[1].set(title="Their running sum: the table", xlabel="worst radius", ylabel="adds to 'benign'")
ticks = [np.linspace(*bounds, 250) for bounds in zip(low, high, strict=True)]
grid = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
scores = model.predictor_.scores(grid).reshape(250, 250)
limit = np.abs(scores).max()
shades = axes[2].pcolormesh(*ticks, scores, cmap="RdBu", vmin=-limit, vmax=limit, rasterized=True)
axes[2].scatter(*X.to_numpy().T, c=np.array(["C5", "C0"])[y], s=5, linewidths=0)
axes[2].set(title="Two tables: a score", xlabel="worst radius", ylabel="worst texture")
figure.colorbar(shades, ax=axes[2])
plt.show()
