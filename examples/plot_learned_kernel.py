"""
The learned kernel in nearest neighbours, kernel PCA and clustering
===================================================================

:class:`mbkl.MBKernel` learns which differences between samples matter. Any method that takes a
matrix of kernels or distances can use it. Here the wine data get twenty features of pure noise,
which blur any distance that treats all features alike.
"""

# %%
# The kernel learns from one half of the rows. All results are on the other half.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from mbkl import MBKernel

X, y = load_wine(return_X_y=True)
noise = np.random.default_rng(0).normal(size=(len(X), 20))
X_train, X_test, y_train, y_test = train_test_split(
    np.hstack([X, noise]), y, test_size=0.5, stratify=y, random_state=0
)
kernel = MBKernel(random_state=0).fit(X_train, y_train)
scale = StandardScaler().fit(X_train)

# %%
# Nearest neighbours and clustering need distances. Clusters are found among the test rows without
# their labels. The adjusted Rand score says how well they match the three kinds of wine: 1 is
# perfect, 0 is chance.

distances = {
    "values as they are": pairwise_distances,
    "standardised": lambda A, B: pairwise_distances(scale.transform(A), scale.transform(B)),
    "learned kernel": kernel.distance,
}
print(f"{'distance':20s} neighbours right  clusters")
for name, distance in distances.items():
    neighbours = KNeighborsClassifier(metric="precomputed")
    neighbours.fit(distance(X_train, X_train), y_train)
    right = neighbours.score(distance(X_test, X_train), y_test)
    clusters = AgglomerativeClustering(3, metric="precomputed", linkage="average")
    found = clusters.fit_predict(distance(X_test, X_test))
    print(f"{name:20s} {100 * right:14.1f} % {adjusted_rand_score(y_test, found):9.2f}")

# %%
# Kernel PCA embeds the samples in the plane. It is fitted on the training rows; the picture shows
# the test rows.

plain = PCA(2).fit(scale.transform(X_train)).transform(scale.transform(X_test))
drawn = KernelPCA(2, kernel="precomputed").fit(kernel.kernel(X_train))
learned = drawn.transform(kernel.kernel(X_test, X_train))

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
pictures = {"PCA of standardised features": plain, "Kernel PCA, learned kernel": learned}
for axis, (title, points) in zip(axes, pictures.items(), strict=True):
    for kind in range(3):
        axis.scatter(*points[y_test == kind].T, s=22, label=f"wine {kind + 1}")
    axis.set(title=title, xlabel="first component", ylabel="second component")
axes[1].legend()
plt.show()

# %%
# Why it works: the kernel draws the noise features less often.

figure, axis = plt.subplots(figsize=(9, 2.6))
colours = ["C1"] * 13 + ["C4"] * 20
axis.bar(range(33), kernel.feature_rates_, color=colours)
axis.set(xlabel="feature (orange: measured, grey: noise)", ylabel="how often it is drawn")
plt.show()
