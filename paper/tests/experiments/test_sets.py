"""Sets: descriptors computed once, from training images alone; settings as printed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin

from mbkl_paper.datasets import DatasetNotFoundError
from mbkl_paper.experiments import quick, sets
from mbkl_paper.experiments.printed import ACCURACY, LEARNING, TARGETS
from mbkl_paper.experiments.systems import PAPER, PUBLISHED, SYSTEMS, VARIANTS

CALLS = []


class Brightness(TransformerMixin, BaseEstimator):
    """A descriptor that learns: the mean of an image minus that of the training images."""

    def fit(self, images, y=None):
        CALLS.append(len(images))
        self.mean_ = np.mean(images)
        return self

    def transform(self, images):
        values = np.array([[image.mean() - self.mean_, image.max()] for image in images])
        return sparse.csr_array(values)


@pytest.fixture
def digits(tmp_path):
    def load(descriptor, learns):
        settings = replace(quick.SETS["quick_digits"], descriptor=descriptor, learns=learns)
        return sets.load({"quick_digits": settings}, tmp_path / "cache")["quick_digits"]

    CALLS.clear()
    return load


def test_descriptors_are_kept(digits, tmp_path, capsys):
    first = digits(quick.Pixels, learns=False).part(0)
    assert "160 images described" in capsys.readouterr().out
    assert len(list((tmp_path / "cache").iterdir())) == 1
    again = digits(quick.Pixels, learns=False)
    np.testing.assert_array_equal(again.part(0).X_train, first.X_train)
    train, _ = again.splits[1]
    np.testing.assert_array_equal(
        again.part(1).X_train[0], again.benchmark.images[train[0]].ravel() / np.float32(16)
    )
    assert capsys.readouterr().out == ""


def test_descriptors_learn_from_training_images_of_each_split(digits, tmp_path):
    problem = digits(Brightness, learns=True)
    for number in (0, 1, 0):
        data = problem.part(number)
        train, test = problem.splits[number]
        images = problem.benchmark.images
        expected = images[test].mean(axis=(1, 2)) - images[train].mean()
        np.testing.assert_allclose(data.X_test.toarray()[:, 0], expected, rtol=1e-5)
    assert CALLS == [80, 80]
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_attributes_are_squashed_by_training_rows(tmp_path):
    problem = sets.load({"quick_cells": quick.SETS["quick_cells"]}, tmp_path)["quick_cells"]
    data = problem.part(0)
    assert 0 < data.X_train.min() < data.X_train.max() < 1
    train, test = problem.splits[0]
    X = problem.benchmark.X
    expected = 1 / (1 + np.exp(-(X[test] - X[train].mean(axis=0)) / X[train].std(axis=0)))
    np.testing.assert_allclose(data.X_test, expected, rtol=1e-6)


def test_missing_sets_are_skipped(tmp_path, capsys):
    def missing():
        raise DatasetNotFoundError("The set moon was not found.")

    moon = replace(quick.SETS["quick_cells"], load=missing)
    raw = replace(quick.SETS["quick_digits"], descriptor=None)
    assert list(sets.load({**quick.SETS, "moon": moon, "raw": raw}, tmp_path)) == list(quick.SETS)
    printed = capsys.readouterr().out
    assert "skipped: The set moon was not found." in printed
    assert "skipped: raw has images alone" in printed


def test_cache_is_outside_of_the_repository(monkeypatch, tmp_path):
    monkeypatch.delenv("MBKL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sets.default_cache() == tmp_path / "mbkl" / "paper"
    monkeypatch.setenv("MBKL_CACHE", str(tmp_path / "own"))
    assert sets.default_cache() == tmp_path / "own"


def test_settings_are_those_that_are_printed():
    for name, printed in LEARNING.items():
        settings = sets.SETS[name]
        assert settings.n_maps == printed.n_maps
        assert settings.negatives_per_positive == printed.negatives_per_positive
    assert {name for name, _ in ACCURACY} == set(sets.SETS) - {"osr_gist", "daimler_hogs"}
    assert {system for _, system in ACCURACY} == {*PAPER, PUBLISHED.name}
    for name, target in TARGETS.items():
        assert ACCURACY[name.partition("_")[0], "mbkl"] == target.accuracy
    for settings in sets.SETS.values():
        assert set(settings.variants) <= set(VARIANTS)
        assert set(settings.systems) <= set(SYSTEMS)
    assert not set(VARIANTS) & set(SYSTEMS)
