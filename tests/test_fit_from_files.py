"""A fit from files gives the bits of a fit in memory."""

import warnings

import numpy as np
import pytest

from mbkl import MBKLClassifier, MBKLClassifierCV, MBKLRegressor, estimate_memory, memory
from mbkl.engine import files, limits


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let few rows be many."""
    monkeypatch.setattr(memory, "_BLOCK_BYTES", 4_000)
    monkeypatch.setattr(memory, "_BLOCKS", 0)
    monkeypatch.setattr(files, "FEW_ROWS_OF_A_FILE", 100)
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 100)
    monkeypatch.setattr(limits, "ROWS_DRAWN_FOR_NUMBERS", 90)
    monkeypatch.setattr(limits, "ROWS_OF_A_PART", 80)
    monkeypatch.setattr(limits, "FEW_ROWS_HINGE", 50)


@pytest.fixture
def streams(monkeypatch):
    """Count the passes over files."""
    passes = []
    original = files.DiskArray.blocks

    def counted(array, *groups):
        passes.append(array.shape[1])
        return original(array, *groups)

    monkeypatch.setattr(files.DiskArray, "blocks", counted)
    return passes


SETTINGS = {
    "default": {},
    "stumps, learned": {"maps": "stumps", "theta": "learned", "n_maps": 100},
    "stumps, few pairs": {
        "maps": "stumps",
        "theta": "learned",
        "n_maps": 100,
        "max_pairs": 200,
    },
    "ferns, reweighted": {"maps": "ferns", "theta": "reweighted", "n_maps": 20},
    "both, logistic": {
        "maps": ["stumps", "ferns"],
        "loss": "logistic",
        "n_maps": 20,
        "calibration": "temperature",
    },
    "hinge": {"maps": "stumps", "loss": "hinge", "n_maps": 50},
    "alignment": {"maps": "stumps", "theta": "alignment", "n_maps": 50},
}


def too_little(model, X, n_classes) -> int:
    """Return a limit that codes in files keep, and codes in memory do not."""
    estimate = estimate_memory(model, *X.shape, n_classes)
    assert estimate.streamed < estimate.in_memory
    return estimate.in_memory - 1


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_bits(name, n_classes, make_data, bits_of, streams, tmp_path):
    X, y = make_data(600, 5, n_classes)
    X[::17, 2] = np.nan
    X[300:350], y[300:350] = X[:50], y[:50]  # equal rows, to be merged
    settings = {"random_state": 0, **SETTINGS[name]}
    plain = MBKLClassifier(**settings)
    limited = MBKLClassifier(
        max_memory=too_little(plain, X, n_classes), cache_folder=tmp_path, **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain.fit(X, y)
        assert not streams
        limited.fit(X, y)
    assert streams
    assert bits_of(plain) == bits_of(limited)
    assert plain.temperature_ == limited.temperature_
    assert not list(tmp_path.iterdir())


NUMBERS = {
    "default": {},
    "learned": {"maps": "stumps", "theta": "learned", "n_maps": 100},
    "both": {"maps": ["stumps", "ferns"], "n_maps": 20},
    "quantiles": {"maps": "stumps", "loss": "quantile", "quantile": 0.9, "n_maps": 50},
    "counts": {"maps": "stumps", "loss": "poisson", "n_maps": 50},
    "grown": {"maps": "grown", "n_maps": 10},
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_same_bits_of_numbers(name, n_targets, make_data, bits_of, streams, tmp_path):
    X, _ = make_data(600, 5)
    y = np.round(5 + X[:, :n_targets].clip(-5) * X[:, 2:3].clip(-1, 1), 1).clip(0)
    X[::17, 2] = np.nan
    X[300:350], y[300:350] = X[:50], y[:50]  # equal rows, to be merged
    settings = {"random_state": 0, **NUMBERS[name]}
    plain = MBKLRegressor(**settings)
    limit = too_little(plain, X, n_targets + 1)
    limited = MBKLRegressor(max_memory=limit, cache_folder=tmp_path, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain.fit(X, y)
        assert not streams
        limited.fit(X, y)
    # The default draws for few rows where memory is short, too.
    assert streams or name == "default"
    assert bits_of(plain) == bits_of(limited)
    assert plain.residuals_.tobytes() == limited.residuals_.tobytes()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {"n_maps": 30},
        {"maps": "stumps", "n_maps": 100},
        {"maps": "ferns", "n_maps": 20, "C": 10.0},
        {"maps": "stumps", "theta": "learned", "n_maps": 100},
        {"maps": "stumps", "loss": "hinge", "n_maps": 100},
        {"maps": ["stumps", "ferns"], "theta": "reweighted", "n_maps": 20},
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_rows", [140, 600])
def test_temperatures_have_the_same_bits(make_data, streams, settings, n_classes, n_rows):
    """Parts of rows in files may be few enough to be collected, in the order of their own."""
    X, y = make_data(n_rows, 5, n_classes, spread=2.0)
    X, y = np.vstack([X, X[:9]]), np.concatenate([y, y[:9]])
    settings = {"calibration": "temperature", "random_state": 0, **settings}
    plain = MBKLClassifier(**settings).fit(X, y)
    assert not streams
    limited = MBKLClassifier(**settings, max_memory=too_little(plain, X, n_classes)).fit(X, y)
    assert streams
    assert plain.temperature_ == limited.temperature_


@pytest.mark.parametrize("ample", [False, True])
@pytest.mark.parametrize("settings", [{}, {"maps": "stumps", "n_maps": 100}])
def test_zero_weights_are_absence(make_data, bits_of, streams, settings, ample):
    X, y = make_data(600, 5)
    weights = np.random.default_rng(0).integers(0, 3, size=600).astype(float)
    plain = MBKLClassifier(random_state=0, **settings)
    limit = "4GB" if ample else too_little(plain, X[weights > 0], 2)
    limited = MBKLClassifier(random_state=0, max_memory=limit, **settings)
    plain.fit(X, y, weights)
    limited.fit(X, y, weights)
    assert bool(streams) != ample
    assert bits_of(plain) == bits_of(limited)


def test_bytes_stay_bytes_until_they_are_read(make_data, bits_of, streams):
    X, y = make_data(600, 5)
    X = np.clip(100 * X, -120, 120).astype(np.int8)
    plain = MBKLClassifier(maps="stumps", n_maps=100, random_state=0)
    limited = MBKLClassifier(**plain.get_params()).set_params(max_memory=too_little(plain, X, 2))
    assert bits_of(plain.fit(X, y)) == bits_of(limited.fit(X, y))
    assert streams
    with pytest.raises(ValueError, match="infinite"):
        limited.fit(np.where(X > 100, np.inf, X).astype(np.float16), y)


def test_cross_validation(make_data, bits_of, streams):
    X, y = make_data(600, 5)
    plain = MBKLClassifierCV(maps="stumps", n_maps=100, Cs=(0.1, 1.0), cv=3, random_state=0)
    limit = too_little(plain, X, 2)
    limited = MBKLClassifierCV(
        maps="stumps", n_maps=100, Cs=(0.1, 1.0), cv=3, random_state=0, max_memory=limit
    )
    plain.fit(X, y)
    limited.fit(X, y)
    assert streams
    assert plain.best_score_ == limited.best_score_
    assert bits_of(plain) == bits_of(limited)


def test_a_checkpoint_does_not_care_where_the_codes_are(make_data, bits_of, tmp_path):
    X, y = make_data(600, 5)
    path = tmp_path / "fit.checkpoint"
    plain = MBKLClassifier(maps="stumps", n_maps=100, random_state=0, checkpoint=path)
    plain.fit(X, y)
    limit = too_little(plain, X, 2)
    limited = MBKLClassifier(
        maps="stumps", n_maps=100, random_state=0, checkpoint=path, max_memory=limit
    )
    assert bits_of(limited.fit(X, y)) == bits_of(plain)
