"""Liver and Sonar, in both forms."""

import numpy as np
import pytest

from mbkl_paper import datasets
from mbkl_paper.datasets import DatasetError

NAMES_LINE = "mcv,alkphos,sgpt,sgot,gammagt,drinks,selector\n"
SETS = {"liver": ("bupa.data", (345, 6)), "sonar": ("sonar.all-data", (208, 60))}


@pytest.fixture(params=SETS)
def name(request):
    return request.param


@pytest.fixture
def text_file(name, tmp_path, fakes):
    getattr(fakes, name)(tmp_path)
    return tmp_path / SETS[name][0]


def change_row(path, number, change):
    lines = path.read_text().splitlines()
    lines[number - 1] = change(lines[number - 1])
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("name", "header"),
    [("liver", ""), ("liver", NAMES_LINE), ("sonar", ""), ("sonar", "208\n60\n2\n")],
)
def test_the_original_is_read(tmp_path, fakes, name, header):
    X, y = getattr(fakes, name)(tmp_path, header)
    benchmark = datasets.load(name, tmp_path)
    np.testing.assert_array_equal(benchmark.X, X)
    np.testing.assert_array_equal(benchmark.y, y)
    assert benchmark.X.dtype == np.float32
    assert benchmark.X.shape == SETS[name][1]
    assert len(benchmark.feature_names) == benchmark.printed.n_features
    assert len(benchmark.class_names) == 2
    assert benchmark.stand_in is None
    assert benchmark.images is None


def test_the_npz_is_read(tmp_path, fakes, name):
    X, y = fakes.table_npz(tmp_path / f"{name}.npz", SETS[name][1])
    benchmark = datasets.load(name, tmp_path)
    np.testing.assert_array_equal(benchmark.X, X)
    np.testing.assert_array_equal(benchmark.y, y)


def test_splits_are_stratified_folds(text_file, name):
    benchmark = datasets.load(name, text_file.parent)
    splits = list(benchmark.splits(random_state=0, n_repeats=2))
    assert len(splits) == 10
    assert splits[0][0].size == benchmark.printed.n_train
    assert splits[0][1].size == benchmark.printed.n_test
    shares = [benchmark.y[test].mean() for _, test in splits]
    assert np.ptp(shares) < 0.04


def test_missing_columns_are_named(text_file, name):
    change_row(text_file, 7, lambda line: line.split(",", 1)[1])
    with pytest.raises(DatasetError, match=rf"{text_file.name}: row 7 has \d+ columns"):
        datasets.load(name, text_file.parent)


def test_missing_columns_in_the_first_row_are_named(text_file, name):
    change_row(text_file, 1, lambda line: line.split(",", 1)[1])
    with pytest.raises(DatasetError, match=r"row 1 has \d+ columns"):
        datasets.load(name, text_file.parent)


def test_words_among_the_numbers_are_named(text_file, name):
    change_row(text_file, 5, lambda line: "?," + line.split(",", 1)[1])
    with pytest.raises(DatasetError, match="row 5"):
        datasets.load(name, text_file.parent)


def test_nan_is_named(text_file, name):
    change_row(text_file, 5, lambda line: "nan," + line.split(",", 1)[1])
    with pytest.raises(DatasetError, match=rf"{text_file.name}.*row 4"):
        datasets.load(name, text_file.parent)


def test_unknown_classes_are_named(text_file, name):
    change_row(text_file, 9, lambda line: line.rsplit(",", 1)[0] + ",3")
    with pytest.raises(DatasetError, match="row 9 has the unknown class '3'"):
        datasets.load(name, text_file.parent)


def test_missing_rows_are_counted(text_file, name):
    lines = text_file.read_text().splitlines()
    text_file.write_text("\n".join(lines[:-1]))
    with pytest.raises(DatasetError, match=f"has {len(lines) - 1} rows where {len(lines)}"):
        datasets.load(name, text_file.parent)


def test_an_empty_file_is_refused(text_file, name):
    text_file.write_text("")
    with pytest.raises(DatasetError, match="has 0 rows"):
        datasets.load(name, text_file.parent)


def test_an_npz_of_another_shape_is_refused(tmp_path, fakes, name):
    fakes.table_npz(tmp_path / f"{name}.npz", (100, 6))
    with pytest.raises(DatasetError, match=rf"{name}\.npz: 'X' has shape \(100, 6\)"):
        datasets.load(name, tmp_path)


def test_labels_out_of_range_are_refused(tmp_path, fakes, name):
    shape = SETS[name][1]
    y = np.zeros(shape[0], dtype=int)
    y[3] = 2
    fakes.table_npz(tmp_path / f"{name}.npz", shape, y=y)
    with pytest.raises(DatasetError, match="'y' has 2 in row 3"):
        datasets.load(name, tmp_path)
