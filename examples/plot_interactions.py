"""
What one feature at a time cannot see
=====================================

A stump asks about one feature, so a model of stumps is a sum of functions of single features. If no
single feature predicts the label, such a sum is no better than chance. Ferns ask several questions
at once. The default joins both, and learns on a sample which features to ask about.
"""

# %%
# Three rules. For the last, no pair of features predicts the label either.

import matplotlib.pyplot as plt
import numpy as np

from mbkl import MBKLClassifier

N_TRAIN, N_TEST, N_NOISE = 2_000, 4_000, 20


def xor(X):
    """Say whether the first two features are on the same side of one half."""
    return (X[:, 0] > 0.5) == (X[:, 1] > 0.5)


def checkerboard(X):
    """Return the colour of a field on a board of four by four."""
    return (np.floor(4 * X[:, 0]) + np.floor(4 * X[:, 1])) % 2 == 1


def parity(X):
    """Say whether an odd number of the first three features is above one half."""
    return (X[:, :3] > 0.5).sum(axis=1) % 2 == 1


problems = {
    "XOR": (xor, 2),
    "checkerboard": (checkerboard, 2),
    "XOR, noise": (xor, 2 + N_NOISE),
    "checkerboard, noise": (checkerboard, 2 + N_NOISE),
    "parity of 3, noise": (parity, 3 + N_NOISE),
}

# %%
# Stumps alone and the default, both untuned. "Noise" means 20 more features that say nothing about
# the label.

forms = {"stumps alone": {"maps": "stumps"}, "default": {}}
models, accuracy = {}, {}
for problem, (rule, n_features) in problems.items():
    X = np.random.default_rng(0).random((N_TRAIN + N_TEST, n_features))
    y = rule(X)
    for form, parameters in forms.items():
        model = MBKLClassifier(**parameters, random_state=0).fit(X[:N_TRAIN], y[:N_TRAIN])
        models[problem, form] = model
        accuracy[problem, form] = 100 * model.score(X[N_TRAIN:], y[N_TRAIN:])

print(f"{'accuracy on new rows, %':24s}" + "".join(f"{form:>14s}" for form in forms))
for problem in problems:
    print(f"{problem:24s}" + "".join(f"{accuracy[problem, form]:14.1f}" for form in forms))

# %%
# The learned scores in two dimensions. Stumps can only add a function of the height to one of the
# width, and neither helps.

ticks = np.linspace(0.0, 1.0, 200)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 4, figsize=(11, 3.5))
shown = [(problem, form) for problem in ("XOR", "checkerboard") for form in forms]
for axis, (problem, form) in zip(axes, shown, strict=True):
    surface = models[problem, form].decision_function(grid).reshape(200, 200)
    limit = max(float(np.abs(surface).max()), 1e-9)
    axis.imshow(surface, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu", vmin=-limit, vmax=limit)
    axis.set(title=f"{problem}, {form}\n{accuracy[problem, form]:.1f} %", xticks=[], yticks=[])
plt.show()

# %%
# With noise, a model must ask about the right features. ``feature_rates_`` says how often each
# was drawn.

figure, axes = plt.subplots(1, 3, figsize=(11, 3), sharey=True)
for axis, problem in zip(axes, list(problems)[2:], strict=True):
    rates = models[problem, "default"].feature_rates_
    n_relevant = rates.size - N_NOISE
    axis.bar(range(rates.size), rates, color=["C1"] * n_relevant + ["C4"] * N_NOISE)
    axis.set(title=problem, xlabel="feature (orange: relevant)")
axes[0].set_ylabel("how often it is drawn")
plt.show()
