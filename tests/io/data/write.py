"""Write small model files of the present version, with what they predict.

    python tests/io/data/write.py

Files of a version stay as they are once it is published: a new version gets new ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
from mbkl.io import save
from mbkl.io.container import VERSION
from mbkl.maps import Ferns, Projections, Stumps

_SMALL = {"n_maps": 12, "random_state": 0}


def plans() -> dict:
    """Return estimators, rows and labels by name."""
    generator = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = np.round(8 * (generator.normal(size=(3, 3))[y] + generator.normal(size=(60, 3)))) / 8
    missing = np.where(generator.random(X.shape) < 0.2, np.nan, X)
    named = pd.DataFrame(missing, columns=["a", "b b", "ß"])
    labels = np.array(["one", "two", "drei"])[y]
    ferns = Ferns(depth=6, max_cells=16, rates=np.array([0.5, 0.25, 0.25]))
    joint = [Stumps(thresholds="quantile"), ferns]
    projections = [Projections(n_projections=2), Projections(directions="sparse")]
    calibrated = MBKLClassifier(**_SMALL, calibration="temperature")
    return {
        "stumps": (MBKLClassifier(maps="stumps", theta="learned", **_SMALL), named, labels),
        "default": (calibrated, missing, y == 1),
        "search": (MBKLClassifierCV(maps=joint, cv=2, Cs=(0.5, 2), **_SMALL), X, y),
        "projections": (MBKLClassifier(maps=projections, **_SMALL), X, y),
        "kernel": (MBKernel(maps=joint, **_SMALL), missing, y),
    }


def main() -> None:
    """Fit and write all of them."""
    for name, (estimator, X, y) in plans().items():
        model, rows = estimator.fit(X, y), X[:7]
        result = model.kernel(rows) if name == "kernel" else model.decision_function(rows)
        plain = [[None if np.isnan(value) else value for value in row] for row in np.asarray(rows)]
        extra = {"rows": plain, "result": result.tolist()}
        if name != "kernel":
            extra["labels"] = model.predict(rows).tolist()
        save(model, Path(__file__).parent / f"version-{VERSION}-{name}.mbkl", extra=extra)


if __name__ == "__main__":
    main()
