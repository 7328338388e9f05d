"""
Grown ferns
===========

Random ferns draw their questions without the labels, so a model needs many of them. Grown ferns are
added one at a time, and each asks where the error of the others is largest. So a few grown ferns
replace many random ones, most of all where many features are noise.
"""

# %%
# Four of twenty features matter, two of them only together, and the labels are noisy. Both kinds
# have their defaults. Random ferns improve slowly, to 72 % with 2,000 of them.

import matplotlib.pyplot as plt
import numpy as np

from mbkl import MBKLClassifier

N_TRAIN, N_TEST = 5_000, 20_000

generator = np.random.default_rng(0)
X = generator.normal(size=(N_TRAIN + N_TEST, 20)).astype(np.float32)
signal = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] / 2
y = signal + generator.normal(size=len(X)) > 0
numbers = (3, 10, 30, 100, 300)
families = {"grown ferns": "grown", "random ferns": "ferns"}

accuracy = {}
for name, maps in families.items():
    for number in numbers:
        model = MBKLClassifier(maps=maps, n_maps=number, random_state=0)
        model.fit(X[:N_TRAIN], y[:N_TRAIN])
        accuracy[name, number] = 100 * model.score(X[N_TRAIN:], y[N_TRAIN:])
        if maps == "grown":
            grown = model

print(f"{'accuracy, %':14s}" + "".join(f"{number:>8,}" for number in numbers))
for name in families:
    print(f"{name:14s}" + "".join(f"{accuracy[name, number]:8.1f}" for number in numbers))

# %%
# Growth stops early on a tenth of the rows, held out for validation, and keeps the ferns up to the
# best number: here fewer than allowed. theta, the weight of a fern, is in proportion to the squared
# norm of its table. Counted by theta, the questions show the features that matter, although deep
# ferns also ask about noise.

print("ferns kept of 300:", grown.n_maps_)
asked = np.zeros(20)
for features, theta in zip(grown.fern_features_, grown.theta_, strict=True):
    asked += theta * np.bincount(features, minlength=20) / len(features)

# %%
# The grey line is the accuracy of the best possible rule, which knows the signal, not the noise.

best = 100 * np.mean((signal > 0)[N_TRAIN:] == y[N_TRAIN:])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
for name in families:
    values = [accuracy[name, number] for number in numbers]
    axes[0].semilogx(numbers, values, "o-", label=name)
axes[0].axhline(best, color="grey", linewidth=1)
axes[0].set(title="Accuracy on new rows, %", xlabel="largest number of ferns")
axes[0].set_xticks(numbers, [str(number) for number in numbers])
axes[0].minorticks_off()
axes[0].legend()
axes[1].bar(range(20), 100 * asked)
axes[1].set(title="Share of the questions, %", xlabel="feature")
axes[1].set_xticks(range(0, 20, 2))
plt.show()
