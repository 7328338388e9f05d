"""A stump, many stumps, and what it means that two samples agree."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from mbkl import MBKernel

iris = load_iris()
X, y = iris.data[:, 2:], iris.target
colours = np.array(["C0", "C1", "C2"])[y]
kernel = MBKernel(maps="stumps", theta="ones", n_maps=40, random_state=3).fit(X, y)
stumps = list(zip(kernel.stump_features_, kernel.stump_thresholds_, strict=True))
here, there = X[98], X[70]


def plane(axis, title):
    axis.scatter(*X.T, c=colours, s=14, alpha=0.7, linewidths=0)
    axis.set(title=title, xlabel="petal length, cm", ylabel="petal width, cm")


def stump(axis, feature, threshold, **style):
    line = axis.axhline if feature == 1 else axis.axvline
    line(threshold, **{"color": "C4", "linewidth": 0.8, "zorder": 0, **style})


figure, axes = plt.subplots(1, 3, figsize=(11, 3.5), sharey=True)

plane(axes[0], "One stump: is the width > 0.8 cm?")
stump(axes[0], 1, 0.8, color="k", linewidth=1.5)
axes[0].axhspan(0.8, 2.6, color="C1", alpha=0.08, zorder=-1)
axes[0].text(1.0, 2.45, "yes", va="top")
axes[0].text(6.9, 0.7, "no", va="top", ha="right")

plane(axes[1], f"Random stumps, {kernel.n_maps_} different ones")
for feature, threshold in stumps:
    stump(axes[1], feature, threshold)

shown = float(kernel.kernel(here[None], there[None])[0, 0])
plane(axes[2], f"Two samples: kernel {shown:.2f}")
for feature, threshold in stumps:
    parts = (here[feature] > threshold) != (there[feature] > threshold)
    stump(axes[2], feature, threshold, **({"color": "C5"} if parts else {"alpha": 0.4}))
axes[2].plot(*np.stack([here, there]).T, "o", color="k", markersize=7)
axes[2].text(6.9, 0.6, "red: stumps between the two", color="C5", ha="right", backgroundcolor="w")
for axis in axes:
    axis.set(xlim=(0.8, 7.1), ylim=(0.0, 2.6))
plt.show()
