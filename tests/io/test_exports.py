"""What exports share: columns of frames, and models as JSON."""

import base64

import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier
from mbkl.io.exports import columns_of_model, pack, portable_model
from mbkl.maps import Projections


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "There are 1 columns, but the model has 4 features"),
        (["a", "b", "c", ""], "different texts"),
        (["a", "b", "c", 3], "different texts"),
        (["a", "b", "c", "a"], "different texts"),
    ],
)
def test_names_that_say_something_else(fitted, names, message):
    with pytest.raises(ValueError, match=message):
        columns_of_model(fitted("stumps")[0], names)


def test_columns_have_the_levels_of_the_model(fitted):
    model = fitted("stumps")[0]
    assert columns_of_model(model) is None
    assert [column.levels for column in columns_of_model(model, list("abcd"))] == [None] * 4
    frame = pd.DataFrame({"b": ["x", "y"] * 9, "c": [1, 2, 3] * 6, "d": np.arange(18.0)})
    categories = {"categorical_features": ["b", "c"], "n_maps": 5, "random_state": 0}
    columns = columns_of_model(MBKLClassifier(**categories).fit(frame, np.arange(18) % 2))
    assert [column.levels for column in columns] == [("x", "y"), (1, 2, 3), None]
    assert [column.is_text for column in columns] == [True, False, False]


TYPES = {
    "Float64Array": "<f8",
    "Float32Array": "<f4",
    "Uint32Array": "<u4",
    "BigUint64Array": "<u8",
    "Uint16Array": "<u2",
    "Uint8Array": "<u1",
}


def unpacked(packed):
    return np.frombuffer(base64.b64decode(packed["bytes"]), TYPES[packed["array"]])


@pytest.mark.parametrize("kind", ["f8", "f4", "u4", "u8", "u2", "u1"])
def test_arrays_survive(kind):
    values = np.array([0, 1, 255])
    np.testing.assert_array_equal(unpacked(pack(values, kind)), values)


def test_hashing_factors_keep_all_their_bits():
    factor = np.array([2**63 + 12345], dtype=np.uint64)
    np.testing.assert_array_equal(unpacked(pack(factor, "u8")), factor)


def test_small_models_keep_all_digits_and_large_ones_seven(make_data, monkeypatch):
    X, y = make_data(n_classes=3)
    predictor = MBKLClassifier(n_maps=50, random_state=0).fit(X, y).predictor_
    for limit, tolerance in ((10**9, 0.0), (0, 1e-6)):
        monkeypatch.setattr("mbkl.io.exports._EXACT_BYTES", limit)
        packed = portable_model(predictor, 1e9)
        for part, tables in zip(packed["parts"], predictor.tables):
            found = unpacked(part["tables"]).reshape(tables.shape)
            np.testing.assert_allclose(found, tables, rtol=tolerance)
        assert packed["intercept"] == predictor.intercept.tolist()


def test_thresholds_lose_nothing(make_data):
    X, y = make_data()
    model = MBKLClassifier(maps="stumps", n_maps=50, random_state=0).fit(X, y)
    part = portable_model(model.predictor_, 1e9)["parts"][0]
    np.testing.assert_array_equal(unpacked(part["thresholds"]), model.stump_thresholds_)


def test_large_models_have_no_room(make_data):
    X, y = make_data(n_classes=3)
    predictor = MBKLClassifier(n_maps=50, random_state=0).fit(X, y).predictor_
    room = 4 * sum(tables.size for tables in predictor.tables)
    assert portable_model(predictor, room) is None
    assert portable_model(predictor, 2 * room) is not None
    model = MBKLClassifier(maps=Projections(input_map="chi2"), n_maps=50).fit(np.abs(X), y)
    assert portable_model(model.predictor_, 1e9) is None
