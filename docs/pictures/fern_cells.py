"""A fern divides the plane into cells; many ferns make a kernel that sees interactions."""

import matplotlib.pyplot as plt
import numpy as np

from mbkl import MBKernel
from mbkl.maps import Ferns

generator = np.random.default_rng(0)
X = generator.random((600, 2))
y = (X[:, 0] > 0.5) == (X[:, 1] > 0.5)
ticks = np.linspace(0, 1, 250)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
centre = np.array([[0.4, 0.6]])


def cells(depth, seed):
    """Return the number of the cell of every point of the grid, in one fern."""
    family = Ferns(depth=depth, distribution="fixed", thresholds="uniform")
    fern = MBKernel(maps=family, n_maps=1, random_state=seed).fit(X, y)
    return fern.transform(grid).indices


def fern_kernel(n_maps):
    family = Ferns(depth=6, thresholds="uniform")
    kernel = MBKernel(maps=family, n_maps=n_maps, random_state=0).fit(X, y)
    return kernel.kernel(grid, centre)


figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), sharey=True)
style = {"origin": "lower", "extent": (0, 1, 0, 1)}
axes[0].imshow(cells(4, 1).reshape(250, 250), cmap="Pastel1", **style)
axes[0].scatter(*X[:200].T, c=np.array(["C1", "C0"])[y[:200].astype(int)], s=7, linewidths=0)
axes[0].set_title("One fern of four stumps")
for axis, n_maps in zip(axes[1:3], (10, 2_000), strict=True):
    image = axis.imshow(fern_kernel(n_maps).reshape(250, 250), vmin=0, vmax=1, **style)
    axis.set_title(f"Kernel of {n_maps:,} ferns")
stumps = MBKernel(maps="stumps", theta="ones", n_maps=2_000, random_state=0).fit(X, y)
axes[3].imshow(stumps.kernel(grid, centre).reshape(250, 250), vmin=0, vmax=1, **style)
axes[3].set_title("For comparison: stumps")
for axis in axes[1:]:
    axis.plot(*centre.T, "k+", markersize=11)
for axis in axes:
    axis.set(xticks=[0, 1], yticks=[0, 1])
figure.colorbar(image, ax=axes[3], ticks=[0, 0.5, 1], shrink=0.75)
plt.show()
