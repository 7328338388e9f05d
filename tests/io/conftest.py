"""Small fitted models of every kind."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV, MBKLRegressor, MBKLRegressorCV
from mbkl.io import load, save
from mbkl.maps import Ferns, Projections, Stumps

_FERNS = Ferns(depth=6, max_cells=16)
_PLAIN = {"n_maps": 40, "C": 1.0, "random_state": 0}


def _rows(n_classes=2, n_features=4, n_rows=90):
    generator = np.random.default_rng(n_classes)
    y = np.arange(n_rows) % n_classes
    X = generator.normal(size=(n_classes, n_features))[y] + generator.normal(size=(n_rows, 1))
    return (np.round((X + generator.normal(size=X.shape)) * 64) / 64).astype(np.float32), y


def _with_missing():
    X, y = _rows(3)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    return X, y


def _with_numbers():
    X, _ = _with_missing()
    return X, np.nan_to_num(X[:, 0] * 2 + X[:, 1]) + 0.25


def _best_by_both():
    """Rows on which drawn and grown ferns are better together."""
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(300, 4)) * 64).astype(np.float32) / 64
    X[::11, 2] = np.nan
    filled = np.nan_to_num(X)
    y = 30 * np.sin(2 * filled[:, 0]) * filled[:, 1] + 10 * filled[:, 2] ** 2
    return X, y + 20 * (filled[:, 3] > 0) + 5 * generator.normal(size=300) + 500.0


def _named():
    X, y = _rows()
    names = ["length", "width, cm", 'quote"', "größe"]
    return pd.DataFrame(X, columns=names), np.array(["no", "yes: ✓"])[y]


def _classifier(**parameters):
    return MBKLClassifier(**{**_PLAIN, **parameters})


# Name of a model -> its estimator and its rows.
_PLANS = {
    "stumps": lambda: (
        _classifier(maps="stumps", theta="learned", calibration=None),
        *_rows(),
    ),
    "stumps, 3 classes": lambda: (_classifier(maps="stumps"), *_with_missing()),
    "ferns": lambda: (_classifier(maps=_FERNS), *_rows()),
    "shallow ferns, 3 classes": lambda: (_classifier(maps=Ferns(depth=2)), *_with_missing()),
    "deep ferns": lambda: (_classifier(maps=Ferns(depth=64, distribution="fixed")), *_rows()),
    "default": lambda: (MBKLClassifier(n_maps=40, random_state=0), *_with_missing()),
    "calibrated": lambda: (_classifier(calibration="temperature"), *_rows(3)),
    "calibrated, 2 classes": lambda: (
        _classifier(maps="stumps", calibration="temperature"),
        *_rows(),
    ),
    "logistic": lambda: (_classifier(maps="stumps", loss="logistic"), *_rows(3)),
    "list": lambda: (
        _classifier(maps=["stumps", _FERNS, Stumps(thresholds="quantile"), Projections()]),
        *_rows(3),
    ),
    "projections": lambda: (_classifier(maps=Projections(n_projections=5)), *_with_missing()),
    "sparse projections": lambda: (_classifier(maps=Projections(directions="sparse")), *_rows()),
    "chi2 projections": lambda: (
        _classifier(maps=Projections(input_map="chi2", n_projections=3)),
        np.abs(_rows()[0]),
        _rows()[1],
    ),
    "names": lambda: (_classifier(maps=(_FERNS, "stumps")), *_named()),
    "cross-validation": lambda: (
        MBKLClassifierCV(Cs=np.array([0.1, 1.0]), cv=3, maps="stumps", n_maps=40, random_state=0),
        *_rows(3),
    ),
    "kernel": lambda: (MBKernel(maps=["stumps", _FERNS], n_maps=40, random_state=0), *_rows()),
    "no maps": lambda: (_classifier(), np.ones((4, 2), np.float32), np.array([0, 1, 1, 1])),
    "bool labels": lambda: (_classifier(maps="stumps"), _rows()[0], _rows()[1] == 1),
    "float labels": lambda: (_classifier(maps="stumps"), _rows(3)[0], _rows(3)[1] - 1.0),
    "object labels": lambda: (
        _classifier(maps="stumps", class_weight={"a": 1, "b": 2.5}),
        _rows()[0],
        np.array(["a", "b"], dtype=object)[_rows()[1]],
    ),
    "regression": lambda: (MBKLRegressor(n_maps=40, random_state=0), *_with_numbers()),
    "counts, 2 targets": lambda: (
        MBKLRegressor(maps="stumps", n_maps=40, loss="poisson", random_state=0),
        _with_numbers()[0],
        np.abs(np.column_stack([_with_numbers()[1]] * 2)),
    ),
    "grown regression": lambda: (
        MBKLRegressor(maps="grown", n_maps=5, random_state=0),
        *_with_numbers(),
    ),
    "mixed regression": lambda: (
        MBKLRegressor(n_maps=100, random_state=0),
        *_best_by_both(),
    ),
    "grown regression, 2 targets": lambda: (
        MBKLRegressor(maps="grown", n_maps=5, random_state=0),
        _with_numbers()[0],
        np.column_stack([_with_numbers()[1], 1e4 * np.nan_to_num(_with_numbers()[0][:, 2]) ** 2]),
    ),
    "counts": lambda: (
        MBKLRegressor(maps=["stumps", _FERNS], n_maps=40, loss="poisson", random_state=0),
        _with_numbers()[0],
        np.abs(_with_numbers()[1]),
    ),
    "quantile regression": lambda: (
        MBKLRegressor(n_maps=40, loss="quantile", quantile=0.8, random_state=0),
        *_with_numbers(),
    ),
    "regression of one column": lambda: (
        MBKLRegressor(maps="stumps", n_maps=40, random_state=0),
        _with_numbers()[0],
        _with_numbers()[1][:, None],
    ),
    "regression without maps": lambda: (
        MBKLRegressor(random_state=0),
        np.ones((4, 2), np.float32),
        np.array([0.0, 1.0, 1.0, 1.0]),
    ),
    "regression, cross-validation": lambda: (
        MBKLRegressorCV(Cs=(0.1, 1.0), cv=3, maps="stumps", n_maps=40, random_state=0),
        *_with_numbers(),
    ),
    "kernel of numbers": lambda: (
        MBKernel(maps="stumps", n_maps=40, random_state=0),
        *_with_numbers(),
    ),
}
NAMES = tuple(_PLANS)
REGRESSORS = tuple(name for name in NAMES if "regression" in name or "counts" in name)
NOT_EXPORTED = {*REGRESSORS, "kernel", "kernel of numbers", "chi2 projections"}
CLASSIFIERS = tuple(name for name in NAMES if name not in NOT_EXPORTED)


@pytest.fixture(scope="session")
def fitted():
    """Return a function that gives a model by its name, and the rows it learned from."""
    known = {}

    def get(name):
        if name not in known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator, X, y = _PLANS[name]()
                known[name] = estimator.fit(X, y), X
        return known[name]

    return get


@pytest.fixture(params=NAMES)
def model_and_rows(request, fitted):
    """A fitted model of each kind in turn, and its rows."""
    return fitted(request.param)


@pytest.fixture(scope="session")
def saved():
    """Return a function that gives the bytes of a model file."""

    def bytes_of(model, **options) -> bytes:
        file = io.BytesIO()
        save(model, file, **options)
        return file.getvalue()

    return bytes_of


@pytest.fixture(scope="session")
def loaded():
    """Return a function that loads a model from bytes."""
    return lambda data: load(io.BytesIO(data))


@pytest.fixture(params=CLASSIFIERS)
def classifier_and_rows(request, fitted):
    """A fitted classifier of each kind in turn, and its rows."""
    return fitted(request.param)


@pytest.fixture(params=REGRESSORS)
def regressor_and_rows(request, fitted):
    """A fitted regressor of each kind in turn, and its rows."""
    return fitted(request.param)


@pytest.fixture(scope="session")
def rows_of_all_kinds():
    """Return a function that gives float32 rows, with missing values and on thresholds."""

    def rows(model, X):
        values = np.asarray(X, dtype=np.float32)
        generator = np.random.default_rng(1)
        new = generator.permuted(np.tile(values, (2, 1)), axis=0)
        new = (new + generator.normal(size=new.shape)).astype(np.float32)
        new[generator.random(new.shape) < 0.1] = np.nan
        edges = generator.permuted(np.tile(values, (2, 1)), axis=0)
        for feature in range(values.shape[1]):
            own = [model.stump_thresholds_[model.stump_features_ == feature]]
            pairs = zip(model.fern_features_, model.fern_thresholds_, strict=True)
            own += [thresholds[features == feature] for features, thresholds in pairs]
            own = np.concatenate(own).astype(np.float32)
            own = own[np.isfinite(own)]
            if own.size:
                at = generator.choice(own, len(edges))
                above = np.nextafter(at, np.float32(np.inf))
                edges[:, feature] = np.where(generator.random(len(edges)) < 0.5, at, above)
        missing = np.full((1, values.shape[1]), np.nan, dtype=np.float32)
        return np.concatenate([values, new, edges, missing])

    return rows


@pytest.fixture(scope="session")
def table_model():
    """A model of a frame, its columns by name and as they are, and the frame."""
    generator = np.random.default_rng(0)
    n_rows = 120
    colours, sizes = ["red", 'dark "blue"', "größer??/"], ["S", "M", "L", "XL\\n*/"]
    columns = ["age, years", "colour", 'si"ze\n', "weight"]
    numbers = {
        name: np.round(generator.normal(size=n_rows), 1).astype(np.float32)
        for name in ("age, years", "weight")
    }
    numbers["weight"][::9] = np.nan
    texts = {
        "colour": generator.choice([*colours, ""], n_rows).astype(object),
        'si"ze\n': generator.choice([*sizes, ""], n_rows).astype(object),
    }
    frame = pd.DataFrame({**numbers, **texts})[columns].replace("", None)
    red = frame["colour"] == "red"
    y = np.where(frame["weight"].fillna(0) + red + frame["age, years"] > 0.3, "yes", "no")
    model = MBKLClassifier(n_maps=40, random_state=0).fit(frame, y)
    for new, name in enumerate(texts):
        frame.loc[new::11, name] = texts[name][new::11] = "never seen"
    return model, columns, numbers, texts, frame
