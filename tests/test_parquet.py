import numpy as np
import pandas as pd
import pytest

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV, MBKLRegressor, MBKLRegressorCV
from mbkl.engine.rows import as_rows
from mbkl.maps import Stumps
from mbkl.parquet import ParquetRows, read_parquet

pytest.importorskip("pyarrow")


@pytest.fixture
def frame(make_data):
    X, y = make_data(5_000, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["b"] = frame["b"].round().astype("Int32")
    frame.loc[::50, "b"] = pd.NA
    frame["flag"] = frame["a"] > 0
    frame["label"] = np.where(y, "yes", "no")
    return frame


@pytest.fixture
def folder(frame, tmp_path):
    """A data set of several files, with several row groups each."""
    for number, start in enumerate(range(0, 5_000, 1_700)):
        part = frame.iloc[start : start + 1_700]
        part.to_parquet(tmp_path / f"part-{number}.parquet", row_group_size=300)
    return tmp_path


def test_blocks_are_the_rows_of_all_files(folder, frame):
    X, y = read_parquet(folder, "label")
    expected = (
        frame[["a", "b", "c", "flag"]].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    )
    assert X.shape == expected.shape
    assert X.dtype == np.float64
    for step in (100, 999, 10_000):
        blocks = list(X.blocks(step))
        assert all(rows.stop - rows.start == step for rows, _ in blocks[:-1])
        np.testing.assert_array_equal(np.concatenate([block for _, block in blocks]), expected)
    assert y.tolist() == frame["label"].tolist()


def test_the_model_is_that_of_the_same_rows_in_memory(folder, frame, bits_of):
    settings = {"maps": ["stumps", "ferns"], "n_maps": 50, "random_state": 0}
    X, y = read_parquet(folder, "label")
    model = MBKLClassifier(**settings).fit(X, y)
    names = ["a", "b", "c", "flag"]
    dense = frame[names].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    plain = MBKLClassifier(**settings).fit(dense, frame["label"])
    assert bits_of(model) == bits_of(plain)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(X), plain.predict(dense))


def test_a_category_with_very_many_levels(tmp_path):
    generator = np.random.default_rng(0)
    levels, effects = generator.integers(400, size=5_000), generator.normal(size=400)
    frame = pd.DataFrame({"zip": levels, "age": generator.normal(size=5_000)})
    frame["rich"] = effects[levels] + frame["age"] > 0
    frame.to_parquet(tmp_path / "rows.parquet")
    X, y = read_parquet(tmp_path / "rows.parquet", "rich")
    settings = {"maps": "grown", "n_maps": 20, "random_state": 0, "categorical_features": [0]}
    model = MBKLClassifier(**settings, max_memory="4MB").fit(X, y)
    dense = frame[["zip", "age"]].to_numpy()
    plain = MBKLClassifier(**settings).fit(dense, y)
    np.testing.assert_array_equal(model.decision_function(dense), plain.decision_function(dense))
    assert plain.feature_importances_[0] > 0.2


CASES = {
    "default": (MBKLClassifier, {"n_maps": 60, "random_state": 0}),
    "quantiles": (
        MBKLClassifier,
        {"maps": Stumps(thresholds="quantile"), "n_maps": 40, "random_state": 0},
    ),
    "ample memory": (MBKLClassifier, {"maps": "stumps", "max_memory": "4GB", "random_state": 0}),
    "cross-validation": (
        MBKLClassifierCV,
        {"maps": "stumps", "n_maps": 40, "Cs": (0.1, 1.0), "cv": 3, "random_state": 0},
    ),
    "kernel": (MBKernel, {"maps": "stumps", "n_maps": 40, "random_state": 0}),
}


@pytest.mark.parametrize("n_rows", [100, 4_500])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_every_estimator_with_many_and_few_rows(name, weighted, n_rows, tmp_path, frame, bits_of):
    frame = frame.head(n_rows)
    frame.to_parquet(tmp_path / "rows.parquet")
    weights = np.random.default_rng(0).integers(0, 3, size=n_rows) * 1.0 if weighted else None
    kind, settings = CASES[name]
    X, y = read_parquet(tmp_path / "rows.parquet", "label")
    model = kind(**settings).fit(X, y, weights)
    plain = kind(**settings).fit(as_rows(X).in_memory().X, frame["label"], weights)
    assert bits_of(model) == bits_of(plain)


NUMBERS = {
    "default": (MBKLRegressor, {}),
    "explicit": (MBKLRegressor, {"maps": ["stumps", "ferns"], "n_maps": 30}),
    "grown": (MBKLRegressor, {"maps": "grown", "n_maps": 10}),
    "default, cross-validation": (MBKLRegressorCV, {"cv": 2}),
    "cross-validation": (
        MBKLRegressorCV,
        {"maps": "stumps", "n_maps": 40, "Cs": (0.1, 1.0), "cv": 3},
    ),
}


@pytest.mark.parametrize(
    ("name", "n_rows"),
    [*((name, 250) for name in NUMBERS), ("explicit", 4_500), ("cross-validation", 4_500)],
)
def test_numbers_as_targets(name, n_rows, tmp_path, frame, bits_of):
    frame = frame.head(n_rows).drop(columns="label")
    frame["price"] = (3 * frame["a"] ** 2 + frame["flag"] + frame["c"]).round(2)
    frame.to_parquet(tmp_path / "rows.parquet")
    kind, settings = NUMBERS[name]
    X, y = read_parquet(tmp_path / "rows.parquet", "price")
    model = kind(random_state=0, **settings).fit(X, y)
    rows = as_rows(X).in_memory().X
    plain = kind(random_state=0, **settings).fit(rows, frame["price"])
    assert bits_of(model) == bits_of(plain)
    np.testing.assert_array_equal(model.predict(X), plain.predict(rows))
    np.testing.assert_array_equal(model.predict_interval(X), plain.predict_interval(rows))


def test_whole_numbers_beyond_float64(tmp_path):
    frame = pd.DataFrame({"a": [2**60 + 1, 2**55 + 3], "y": [0, 1]})
    frame.to_parquet(tmp_path / "rows.parquet")
    X, _ = read_parquet(tmp_path / "rows.parquet", "y")
    np.testing.assert_array_equal(as_rows(X).in_memory().X.ravel(), [2.0**60, 2.0**55 + 3])


@pytest.mark.parametrize("name", [None, "key"])
def test_the_index_is_no_feature(tmp_path, frame, name):
    shuffled = frame.sample(frac=1.0, random_state=0).rename_axis(name)
    shuffled.to_parquet(tmp_path / "rows.parquet")
    X, _ = read_parquet(tmp_path / "rows.parquet", "label")
    assert X.columns == ["a", "b", "c", "flag"]


def test_row_numbers_without_a_name_are_no_feature(tmp_path, frame):
    frame.insert(0, "Unnamed: 0", range(len(frame)))
    frame.to_parquet(tmp_path / "rows.parquet")
    X, _ = read_parquet(tmp_path / "rows.parquet", "label")
    assert X.columns == ["a", "b", "c", "flag"]


def test_columns_that_are_not_there(folder):
    with pytest.raises(ValueError, match="has no column 'price'"):
        ParquetRows(folder, ["a", "price"])


def test_every_file_has_all_columns(folder, frame):
    frame.drop(columns="b").to_parquet(folder / "part-9.parquet")
    with pytest.raises(ValueError, match=r"part-9.parquet' has no column 'b'"):
        read_parquet(folder, "label")
    frame.assign(b="text").to_parquet(folder / "part-9.parquet")
    with pytest.raises(ValueError, match=r"Column 'b' of .*part-9.parquet' holds"):
        read_parquet(folder, "label")


def test_columns_of_a_file_may_have_another_order(folder, frame):
    frame.head(10)[["label", "flag", "c", "b", "a"]].to_parquet(folder / "part-9.parquet")
    X, _ = read_parquet(folder, "label")
    rows = as_rows(X).in_memory().X
    np.testing.assert_array_equal(rows[-10:], rows[:10])


def test_no_rows(tmp_path):
    frame = pd.DataFrame({"a": np.empty(0), "y": np.empty(0, int)})
    frame.to_parquet(tmp_path / "rows.parquet")
    X, y = read_parquet(tmp_path / "rows.parquet", "y")
    with pytest.raises(ValueError, match="X has no rows"):
        MBKLClassifier().fit(X, y)
    model = MBKLClassifier(maps="stumps").fit([[0.0], [1.0]], [0, 1])
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert model.predict(X).shape == (0,)


def test_narrow_numbers_are_float32(tmp_path):
    frame = pd.DataFrame({"a": np.float32([1, 2]), "b": np.int16([1, 2]), "y": [0, 1]})
    frame.to_parquet(tmp_path / "rows.parquet")
    X, _ = read_parquet(tmp_path / "rows.parquet", "y")
    assert X.dtype == np.float32


def test_text_is_refused_by_name(folder):
    with pytest.raises(ValueError, match=r"Column 'label' of .* holds"):
        ParquetRows(folder, ["a", "label"])


def test_a_target_that_is_not_there(folder):
    with pytest.raises(ValueError, match=r"target='price' is no column of .* a, b, c"):
        read_parquet(folder, "price")


def test_infinite_values_are_refused_by_name(tmp_path):
    frame = pd.DataFrame({"a": [1.0, np.inf] * 3_000, "y": [0, 1] * 3_000})
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="Column 'a' of X has infinite values"):
        MBKLClassifier(maps="stumps").fit(*read_parquet(tmp_path / "rows.parquet", "y"))


def test_missing_labels_are_refused(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "y": ["no", None]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="rows without a label"):
        read_parquet(tmp_path / "rows.parquet", "y")


def test_labels_of_another_length(folder):
    X, y = read_parquet(folder, "label")
    with pytest.raises(ValueError, match="y has 4,999 labels, but X has 5,000 rows"):
        MBKLClassifier(maps="stumps").fit(X, y[:-1])


def test_other_columns_are_refused_at_prediction(folder):
    X, y = read_parquet(folder, "label")
    model = MBKLClassifier(maps="stumps", n_maps=50).fit(X, y)
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        model.predict(ParquetRows(folder, ["b", "a", "c", "flag"]))
