import numpy as np
import pandas as pd
import pytest

from mbkl import MBKLClassifier
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
    with pytest.raises(ValueError, match="columns that fit saw"):
        model.predict(ParquetRows(folder, ["b", "a", "c", "flag"]))
