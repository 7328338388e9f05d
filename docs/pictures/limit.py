"""More maps bring the kernel closer to its limit, which is known in closed form."""

import matplotlib.pyplot as plt
import numpy as np

from mbkl import MBKernel
from mbkl.maps import Ferns, Stumps

X = np.linspace(0, 1, 401)[:, None]
y = X[:, 0] > 0.5
distance = np.abs(X[:, 0] - 0.5)
depth = 6.0
families = {"stumps": Stumps(), "ferns": Ferns(depth=depth, thresholds="uniform")}
# A fern without any stump says nothing, so none is drawn: the limit without that part.
none = np.exp(-depth)
limits = {"stumps": 1 - distance, "ferns": (np.exp(-depth * distance) - none) / (1 - none)}


def kernel_with_middle(family, n_maps, seed=0):
    kernel = MBKernel(maps=family, theta="ones", n_maps=n_maps, random_state=seed)
    return kernel.fit(X, y).kernel(X, [[0.5]])[:, 0]


figure, axes = plt.subplots(1, 3, figsize=(11, 3.4))
for axis, (name, family) in zip(axes, families.items(), strict=False):
    for n_maps, colour in ((20, "C4"), (200, "C1")):
        axis.plot(X, kernel_with_middle(family, n_maps), color=colour, label=f"{n_maps} maps")
    axis.plot(X, limits[name], color="k", linewidth=1, label="limit")
    axis.set(title=f"Kernel of {name} with x = 0.5", xlabel="x", ylim=(0, 1.05))
    axis.legend()
numbers = np.array([10, 30, 100, 300, 1_000, 3_000])
for name, family in families.items():
    errors = [
        np.mean([np.abs(kernel_with_middle(family, n, s) - limits[name]).max() for s in range(8)])
        for n in numbers
    ]
    axes[2].loglog(numbers, errors, "o-", label=name)
axes[2].loglog(numbers, numbers**-0.5, "k:", linewidth=1, label="1 / root of the number")
axes[2].set(title="Largest deviation from the limit", xlabel="number of maps")
axes[2].legend()
plt.show()
