"""
Ferns that are grown
====================

Random ferns ask whatever they were drawn to ask, and many of them make up for that. Grown ferns are
added one at a time, and each asks where the labels are not yet explained. So a few do what takes
many random ones, most of all where many features say nothing.
"""

# %%
# Four of twenty features matter, two of them only together, and the labels are noisy. Both kinds
# are as they come; random ferns go on to improve slowly, to 73 % with 2,000 of them.

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
# A tenth of the rows takes no part while ferns grow. When these gain no more, growth ends by
# itself, and the ferns up to the best are kept: here fewer than the largest number allows. Their
# tables are kernel weights too: theta is in proportion to the squared norm of each. With it, what
# they ask shows what they found, though deep ferns ask about noise as well.

print("ferns kept of 300:", grown.n_maps_)
asked = np.zeros(20)
for features, theta in zip(grown.fern_features_, grown.theta_, strict=True):
    asked += theta * np.bincount(features, minlength=20) / len(features)

# %%
# The grey line is what the best rule reaches, which knows the signal and not the noise.

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
