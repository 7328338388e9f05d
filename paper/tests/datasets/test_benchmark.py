"""Benchmark: its attributes and how it shows itself; names and load."""

import dataclasses
import inspect

import numpy as np
import pytest

from mbkl_paper import datasets
from mbkl_paper.datasets.benchmark import Benchmark, Description, Printed
from mbkl_paper.datasets.protocols import FixedSplits

TOY = Description("toy", "The toy makers.", "Free.", Printed(2, 3, 1, "numbers", 5))
SPLIT = (np.array([0, 1, 2]), np.array([3]))


@pytest.fixture
def benchmark():
    y = np.array([0, 1, 0, 1])
    return Benchmark(TOY, y, ("a", "b"), FixedSplits((SPLIT,)), X=np.zeros((4, 5)))


def test_the_description_is_at_hand(benchmark):
    assert benchmark.name == "toy"
    assert benchmark.source == "The toy makers."
    assert benchmark.licence == "Free."
    assert benchmark.printed.n_test == 1
    assert benchmark.stand_in is None


def test_splits_come_from_the_protocol(benchmark):
    ((train, test),) = benchmark.splits()
    np.testing.assert_array_equal(train, SPLIT[0])
    np.testing.assert_array_equal(test, SPLIT[1])


def test_a_benchmark_does_not_change(benchmark):
    with pytest.raises(dataclasses.FrozenInstanceError):
        benchmark.y = None


def test_the_repr_names_what_it_stands_in_for(benchmark):
    assert repr(benchmark) == "<Benchmark toy: 4 rows of 5 features, 2 classes>"
    other = dataclasses.replace(benchmark, X=None, images=[0] * 4, stand_in="toys for tools.")
    assert repr(other) == "<Benchmark toy: 4 images, 2 classes; stand-in: toys for tools.>"


def test_all_sets_of_the_paper_have_a_loader():
    names = ["daimler", "liver", "sonar", "flowers17", "osr", "apascal", "caltech101"]
    assert datasets.names() == [*names, "imagenet_folder"]
    for name in datasets.names():
        loader = getattr(datasets, f"load_{name}")
        assert loader.__name__ in datasets.__all__
        assert inspect.signature(loader).parameters["data_home"].default is None


@pytest.mark.parametrize("name", datasets.names())
def test_what_is_missing_is_explained(name, tmp_path, monkeypatch):
    with pytest.raises(datasets.DatasetNotFoundError, match=f"The set {name} was not found"):
        datasets.load(name, data_home=tmp_path)
    monkeypatch.delenv("MBKL_DATA", raising=False)
    with pytest.raises(datasets.DatasetNotFoundError, match="neither data_home nor"):
        datasets.load(name)


def test_load_hands_options_on(tmp_path, fakes):
    fakes.liver(tmp_path)
    assert datasets.load("liver", tmp_path).name == "liver"
    with pytest.raises(ValueError, match="squash='cubic'"):
        datasets.load("osr", tmp_path, squash="cubic")
    with pytest.raises(TypeError, match="squash"):
        datasets.load("liver", tmp_path, squash=None)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"no benchmark named 'mnist'; choose one of \['daimler'"):
        datasets.load("mnist")


def test_the_table_of_the_paper_adds_up():
    from mbkl_paper.datasets import apascal, daimler, flowers17, imagenet_folder, osr, uci

    printed = {
        module.DESCRIPTION.name: module.DESCRIPTION.printed
        for module in (apascal, daimler, flowers17, imagenet_folder, osr)
    }
    assert printed["daimler"].n_train == 2 * printed["daimler"].n_test  # two sets and one
    assert printed["flowers17"].n_train + printed["flowers17"].n_test == 17 * 80
    assert printed["osr"].n_train + printed["osr"].n_test == 2_688
    assert printed["osr"].n_features == 512 + 6
    assert printed["imagenet_folder"].n_train + printed["imagenet_folder"].n_test == 1_065_687
    assert printed["imagenet_folder"].n_features == 1_024 * (1 + 4 + 16)
    for table in (uci._LIVER, uci._SONAR):
        row = table.description.printed
        assert row.n_train + row.n_test == table.n_rows
        assert row.n_features == len(table.feature_names)
