"""Problems that no single feature can solve: stumps alone beside the default.

Run with `python examples/interactions.py [folder for the picture]`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np

from mbkl import MBKLClassifier

matplotlib.use("Agg")
import matplotlib.pyplot as plt

N_TRAIN, N_TEST, N_NOISE = 2_000, 4_000, 20


def xor(X):
    """Say whether the first two features are on the same side of one half."""
    return (X[:, 0] > 0.5) == (X[:, 1] > 0.5)


def checkerboard(X):
    """Return the colour of a field of a board of four by four."""
    return (np.floor(4 * X[:, 0]) + np.floor(4 * X[:, 1])) % 2 == 1


def parity(X):
    """Say whether an odd number of the first three features is above one half."""
    return (X[:, :3] > 0.5).sum(axis=1) % 2 == 1


def problems() -> dict:
    """Return rule and number of features of each problem."""
    noise = f" among {N_NOISE} noise features"
    return {
        "XOR": (xor, 2),
        "checkerboard": (checkerboard, 2),
        "XOR" + noise: (xor, 2 + N_NOISE),
        "checkerboard" + noise: (checkerboard, 2 + N_NOISE),
        "parity of 3" + noise: (parity, 3 + N_NOISE),
    }


def fit_and_score(rule, n_features: int, seed: int = 0) -> dict:
    """Return the models and their accuracies on new rows."""
    X = np.random.default_rng(seed).random((N_TRAIN + N_TEST, n_features))
    y = rule(X)
    models = {
        "stumps alone": MBKLClassifier(maps="stumps", random_state=seed),
        "default": MBKLClassifier(random_state=seed),
    }
    return {
        name: (model.fit(X[:N_TRAIN], y[:N_TRAIN]), model.score(X[N_TRAIN:], y[N_TRAIN:]))
        for name, model in models.items()
    }


def draw(results: dict, folder: Path) -> Path:
    """Draw what was learned in two dimensions, and the features that were found."""
    figure, axes = plt.subplots(1, 5, figsize=(15, 3.3))
    ticks = np.linspace(0.0, 1.0, 200)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    for start, name in ((0, "XOR"), (2, "checkerboard")):
        for axis, (form, (model, score)) in zip(
            axes[start : start + 2], results[name].items(), strict=True
        ):
            surface = model.decision_function(grid).reshape(200, 200)
            limit = max(float(np.abs(surface).max()), 1e-9)
            axis.imshow(
                surface, origin="lower", extent=(0, 1, 0, 1), cmap="RdBu", vmin=-limit, vmax=limit
            )
            axis.set(title=f"{name}, {form}\n{100 * score:.1f} % correct", xticks=[], yticks=[])
    name = f"parity of 3 among {N_NOISE} noise features"
    model, score = results[name]["default"]
    colours = ["tab:orange"] * 3 + ["tab:gray"] * N_NOISE
    axes[4].bar(np.arange(model.feature_rates_.size), model.feature_rates_, color=colours)
    axes[4].set(
        title=f"parity of 3, default\n{100 * score:.1f} % correct",
        xlabel="feature (orange: relevant)",
        ylabel="how often it is drawn",
    )
    figure.tight_layout()
    path = folder / "interactions.png"
    figure.savefig(path, dpi=110)
    return path


def main(folder: str = "demo") -> None:
    """Fit both models to all problems, print accuracies and draw."""
    target = Path(folder)
    target.mkdir(exist_ok=True)
    print(f"Accuracy on new rows, {N_TRAIN:,} rows of training:")
    results = {}
    for name, (rule, n_features) in problems().items():
        results[name] = fit_and_score(rule, n_features)
        scores = ", ".join(f"{form} {100 * s:5.1f} %" for form, (_, s) in results[name].items())
        print(f"  {name:38s} {scores}")
    print(f"picture: {draw(results, target)}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
