"""A feature can matter although its shape function is flat: with another one."""

import matplotlib.pyplot as plt
import numpy as np

from mbkl import MBKLClassifier
from mbkl.explain import explain_global

generator = np.random.default_rng(0)
X = generator.random((1_500, 5))
# The first two features tell only together, the third one by itself, the others nothing.
score = np.where((X[:, 0] > 0.5) == (X[:, 1] > 0.5), 1.0, -1.0) + 3.0 * (X[:, 2] - 0.5)
y = score + 0.3 * generator.normal(size=1_500) > 0

model = MBKLClassifier(n_maps=1_000, random_state=0).fit(X, y)
explanation = explain_global(model, X)
names = ["a", "b", "c", "d", "e"]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.3))
axes[0].barh(names, explanation.importance)
axes[0].invert_yaxis()
axes[0].set(title="Importance", xlabel="mean change of the score")
ticks = np.linspace(0, 1, 500)
for feature in (0, 2, 3):
    shape = explanation.shape(feature)
    axes[1].plot(ticks, shape.at(ticks)[:, 0], color=f"C{feature}", label=names[feature])
axes[1].set(title="Shape functions", xlabel="value of the feature", ylabel="added to the score")
axes[1].legend()
order = np.argsort(explanation.pair_features)
strengths = explanation.pair_strengths[np.ix_(order, order)]
image = axes[2].imshow(strengths, cmap="Blues", vmin=0)
axes[2].set(title="Strength of pairs", xticks=range(5), yticks=range(5))
axes[2].set_xticklabels(names)
axes[2].set_yticklabels(names)
figure.colorbar(image, ax=axes[2], shrink=0.8)
plt.show()
