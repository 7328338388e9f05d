"""The learned kernel of stumps is a city-block distance on warped features."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from mbkl import MBKernel

data = load_breast_cancer()
columns = [list(data.feature_names).index(name) for name in ("worst radius", "worst texture")]
names = data.feature_names[columns]
X, y = data.data[:, columns], data.target
learned = MBKernel(maps="stumps", theta="learned", theta_shrinkage=0, random_state=0).fit(X, y)

ticks = [np.linspace(*bounds, 300) for bounds in zip(X.min(axis=0), X.max(axis=0), strict=True)]
grid = np.stack(np.meshgrid(*ticks), axis=-1).reshape(-1, 2)
centre = np.median(X, axis=0)[None]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6))
for column, name in enumerate(names):
    line = np.repeat(centre, 300, axis=0)
    line[:, column] = ticks[column]
    share = (ticks[column] - ticks[column][0]) / np.ptp(ticks[column])
    axes[0].plot(share, learned.warp(line)[:, column], color=f"C{column}", label=name)
axes[0].set(
    title="The warps: weight of the stumps below",
    xlabel="feature, from its smallest value to its largest",
    ylabel="place on the scale of the kernel",
)
axes[0].legend()

equal = MBKernel(maps="stumps", theta="ones", random_state=0).fit(X, y)
for axis, kernel, title in (
    (axes[1], equal, "Kernel with one sample, equal weights"),
    (axes[2], learned, "The same, learned weights"),
):
    values = kernel.kernel(grid, centre).reshape(300, 300)
    shades = axis.contourf(*ticks, values, levels=np.linspace(0, 1, 21), cmap="magma")
    axis.plot(*centre.T, "k+", markersize=11)
    axis.set(title=title, xlabel=names[0], ylabel=names[1])
figure.colorbar(shades, ax=axes[2], ticks=[0, 0.5, 1])
plt.show()
