"""Long fits: checkpoints to go on from, and a limit on time."""

import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from mbkl import MBKLClassifier, MBKLClassifierCV
from mbkl.learn.algorithm import Learner
from mbkl.maps import Ferns

SMALL = {"n_maps": 40, "random_state": 0}
KINDS = [
    (MBKLClassifier, {}),
    (MBKLClassifier, {"calibration": "temperature"}),
    (MBKLClassifierCV, {"Cs": (0.1, 1.0), "cv": 2}),
]


class Killed(BaseException):
    """Like a signal: nothing on the way catches it."""


def die_at(monkeypatch, method, call):
    """Make a method of the learner fail the given time it is called."""
    calls = []
    original = getattr(Learner, method)

    def dying(self, *arguments, **options):
        calls.append(method)
        if len(calls) == call:
            raise Killed
        return original(self, *arguments, **options)

    monkeypatch.setattr(Learner, method, dying)
    return calls


@pytest.mark.parametrize(("kind", "parameters"), KINDS, ids=repr)
@pytest.mark.parametrize("method", ["learn_kernel", "learn_classifier"])
@pytest.mark.parametrize("call", [1, 3])
def test_a_killed_fit_goes_on_to_the_same_bits(
    form, bits_of, make_data, monkeypatch, tmp_path, kind, parameters, method, call
):
    data = make_data(n_classes=3)
    plain = form(kind, **SMALL, **parameters).fit(*data)
    model = form(kind, **SMALL, **parameters, checkpoint=tmp_path / "fit.checkpoint")
    with monkeypatch.context() as patch:
        die_at(patch, method, call)
        try:
            model.fit(*data)
        except Killed:
            assert not hasattr(model, "coef_")
    model.fit(*data)
    assert bits_of(model) == bits_of(plain)
    assert [path.name for path in tmp_path.iterdir()] == ["fit.checkpoint"]


def test_finished_stages_are_not_run_again(paper, make_data, monkeypatch, tmp_path):
    data = make_data()
    model = paper(MBKLClassifier, **SMALL, checkpoint=str(tmp_path / "fit"))
    with monkeypatch.context() as patch:
        die_at(patch, "learn_classifier", 1)
        with pytest.raises(Killed):
            model.fit(*data)
    kernels = die_at(monkeypatch, "learn_kernel", 1)
    model.fit(*data)
    assert kernels == []
    assert model.objective_[0] > 0


def test_finished_folds_are_not_run_again(search_form, make_data, monkeypatch, tmp_path):
    data = make_data()
    model = search_form(cv=4, calibration=None, checkpoint=tmp_path / "fit")
    with monkeypatch.context() as patch:
        die_at(patch, "learn_classifier", 8)
        with pytest.raises(Killed):
            model.fit(*data)
    calls = die_at(monkeypatch, "learn_classifier", 1_000)
    model.fit(*data)
    assert len(calls) == 4 * 2 + 1 - 3 * 2


@pytest.fixture
def search_form(paper):
    return lambda **parameters: paper(
        MBKLClassifierCV, **SMALL, Cs=(0.1, 1.0), C_kernels=(0.1,), **parameters
    )


def test_a_fit_without_a_seed_goes_on_with_its_own(make_data, monkeypatch, tmp_path):
    data = make_data()
    model = MBKLClassifier(n_maps=40, checkpoint=tmp_path / "fit")
    first = model.fit(*data).coef_
    assert np.array_equal(model.fit(*data).coef_, first)


def test_threads_and_limits_may_change_on_the_way(make_data, tmp_path):
    data = make_data()
    model = MBKLClassifier(**SMALL, checkpoint=tmp_path / "fit").fit(*data)
    first = model.coef_
    again = model.set_params(n_jobs=1, verbose=0, max_time=100.0).fit(*data)
    assert np.array_equal(again.coef_, first)


@pytest.mark.parametrize(
    "change", ["data", "labels", "weights", "parameter", "seed", "folds", "sparse"]
)
def test_a_checkpoint_of_another_fit_is_an_error(search_form, make_data, tmp_path, change):
    X, y = make_data()
    path = tmp_path / "fit"
    model = search_form(cv=2, checkpoint=path).fit(X, y)
    before = path.read_bytes()
    weights = None
    if change == "data":
        X = X + 1.0
    elif change == "labels":
        y = y[::-1]
    elif change == "weights":
        weights = np.arange(len(y)) + 1.0
    elif change == "sparse":
        X = sparse.csr_array(X)
    else:
        new = {"parameter": {"tol": 0.1}, "seed": {"random_state": 1}, "folds": {"cv": 3}}
        model.set_params(**new[change])
    with pytest.raises(ValueError, match=r"another version\. Delete the file or name another one"):
        model.fit(X, y, sample_weight=weights)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "flipped", "pickle", "other"])
def test_a_damaged_checkpoint_is_an_error(make_data, tmp_path, damage):
    path = tmp_path / "fit"
    data = make_data()
    model = MBKLClassifier(**SMALL, checkpoint=path).fit(*data)
    content = bytearray(path.read_bytes())
    if damage == "pickle":
        np.save(path.open("wb"), np.array([{}], dtype=object), allow_pickle=True)
    elif damage == "other":
        np.save(path.open("wb"), np.zeros(3))
    else:
        content[len(content) // 2] ^= 255
        half = content[: len(content) // 2]
        path.write_bytes({"empty": b"", "cut": half, "text": b"hello", "flipped": content}[damage])
    with pytest.raises(ValueError, match=r"checkpoint=.*Delete the file to start the fit anew"):
        model.fit(*data)


def test_a_checkpoint_needs_a_folder(make_data, tmp_path):
    for path in (tmp_path, tmp_path / "missing" / "fit"):
        with pytest.raises(ValueError, match=r"checkpoint=.*must name a file in a folder"):
            MBKLClassifier(**SMALL, checkpoint=path).fit(*make_data())


LONG_FIT = """
import sys
import numpy as np
from mbkl import MBKLClassifierCV
generator = np.random.default_rng(0)
X = generator.normal(size=(150, 6))
y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
model = MBKLClassifierCV(n_maps=40, cv=3, random_state=0, checkpoint=sys.argv[1] or None)
sys.stdout.write(model.fit(X, y).coef_.tobytes().hex())
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_fit_killed_at_any_moment_goes_on(tmp_path):
    def start(path):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", LONG_FIT, path]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    began = time.monotonic()
    expected = start("").communicate()[0]
    alone = time.monotonic() - began
    chance = random.Random(0)
    path = tmp_path / "fit"
    for _ in range(2):
        process = start(str(path))
        try:
            process.wait(timeout=alone * chance.uniform(0.5, 1.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    assert start(str(path)).communicate()[0] == expected


@pytest.mark.parametrize("kind", [MBKLClassifier, MBKLClassifierCV])
@pytest.mark.parametrize("n_rows", [80, 1100])
def test_the_time_is_limited(form, make_data, kind, n_rows):
    data = make_data(n_rows=n_rows, n_classes=3)
    model = form(kind, n_maps=300, tol=1e-9, random_state=0, max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="because max_time=1e-06 s is over"):
        model.fit(*data)
    assert 1 <= model.n_iter_ <= 5
    assert model.score(*data) > 0.4  # every solver makes a step, and chance is a third


def test_enough_time_changes_nothing(form, bits_of, make_data):
    data = make_data()
    limited = form(MBKLClassifierCV, **SMALL, max_time=1e6).fit(*data)
    assert bits_of(limited) == bits_of(form(MBKLClassifierCV, **SMALL).fit(*data))


def test_a_stage_cut_short_is_not_kept(bits_of, make_data, tmp_path):
    data = make_data()
    model = MBKLClassifier(**SMALL, tol=1e-9, max_time=1e-6, checkpoint=tmp_path / "fit")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*data)
        plain = MBKLClassifier(**SMALL, tol=1e-9).fit(*data)
        assert bits_of(model.set_params(max_time=None).fit(*data)) == bits_of(plain)


def test_the_best_of_a_search_cut_short_is_kept(make_data, monkeypatch):
    monkeypatch.setattr("mbkl.learn.progress.Progress.used", lambda self: 0.7)
    model = MBKLClassifierCV(**SMALL, cv=3).fit(*make_data())
    assert "split0_test_score" in model.cv_results_
    assert "split1_test_score" not in model.cv_results_
    assert model.C_ in model.cv_results_["param_C"]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_search_cut_short_goes_on_with_more_time(bits_of, make_data, tmp_path, seed):
    """It may then choose otherwise, and must not take the weights of the first choice."""
    data = make_data(n_rows=120)
    form = {"n_maps": 40, "cv": 5, "random_state": seed}
    model = MBKLClassifierCV(**form, checkpoint=tmp_path / "fit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mbkl.learn.progress.Progress.used", lambda self: 0.7)
        model.fit(*data)
    plain = MBKLClassifierCV(**form).fit(*data)
    assert bits_of(model.fit(*data)) == bits_of(plain)


def test_folds_of_a_generator_can_go_on(make_data, tmp_path):
    X, y = make_data()
    for _ in range(2):
        folds = (
            (part, np.setdiff1d(np.arange(80), part)) for part in (np.arange(40), np.arange(40, 80))
        )
        model = MBKLClassifierCV(**SMALL, Cs=(0.1, 1.0), cv=folds, checkpoint=tmp_path / "fit")
        model.fit(X, y)
    assert MBKLClassifier(**SMALL).fit(X, y)
    model.best_estimator_.fit(X, y)  # is no part of the search


def test_long_parameters_are_told_apart(make_data, tmp_path):
    X, y = make_data(n_features=1500)
    rates = np.ones(1500)
    first = MBKLClassifier(maps=Ferns(rates=rates), n_maps=5, checkpoint=tmp_path / "fit")
    first.fit(X, y)
    rates = np.where(np.arange(1500) % 3 == 1, 7.0, 1.0)
    with pytest.raises(ValueError, match="other data, parameters"):
        first.set_params(maps=Ferns(rates=rates)).fit(X, y)


@pytest.mark.parametrize("value", [0, -1.0, "soon"])
def test_bad_limits_are_named(make_data, value):
    with pytest.raises(ValueError, match="max_time"):
        MBKLClassifier(max_time=value).fit(*make_data())
