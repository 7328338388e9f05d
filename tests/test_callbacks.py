"""Progress: scikit-learn's callbacks and what `verbose` prints."""

import warnings

import pytest

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV

sklearn_callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks")

STAGES = {
    "paper": [
        "binary maps",
        "initial guess",
        "kernel weights",
        "classifier weights",
        "calibration",
        "tables",
    ],
    "default": ["choice of maps", "binary maps", "classifier weights", "calibration", "tables"],
}
SMALL = {"n_maps": 40, "random_state": 0}


class Recorder:
    """Remember every call; ask to stop at a task of the given name."""

    def __init__(self, stop_at=None):
        self.calls, self.stop_at = [], stop_at

    def setup(self, estimator, context):
        self.calls.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.calls.append(("end", context.task_name))
        return context.task_name == self.stop_at


def fit(model, data, **callback):
    recorder = Recorder(**callback)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_callbacks(recorder).fit(*data)
    return recorder.calls


def stages(calls, moment):
    return [name for kind, name in calls if kind == moment and name != "iteration"]


@pytest.fixture
def expected_stages(form):
    """The stages of either form, in order."""
    return STAGES["default" if form(MBKLClassifier).maps == "auto" else "paper"]


def test_stages_come_in_the_order_of_the_algorithm(form, expected_stages, make_data):
    calls = fit(form(MBKLClassifier, **SMALL), make_data())
    assert stages(calls, "begin") == ["fit", *expected_stages]
    assert stages(calls, "end") == [*expected_stages, "fit"]
    assert calls[0] == ("setup", "fit")
    assert calls[-1] == ("teardown", "fit")


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (MBKLClassifier, {}),
        (MBKLClassifier, {"theta": "ones", "loss": "hinge"}),
        (MBKLClassifier, {"theta": "reweighted"}),
        (MBKLClassifier, {"C": 1e-9}),
        (MBKLClassifier, {"calibration": "temperature"}),
        (MBKLClassifierCV, {"Cs": (0.1, 1.0), "cv": 2}),
        (MBKernel, {}),
    ],
    ids=repr,
)
def test_what_begins_ends_inside_out(form, make_data, kind, parameters):
    open_tasks = []
    model = form(kind, **SMALL, **parameters)
    for moment, name in fit(model, make_data(n_classes=3)):
        if moment == "begin":
            open_tasks.append(name)
        elif moment == "end":
            assert open_tasks.pop() == name
    assert open_tasks == []


def test_iterations_are_tasks_of_their_stage(paper, make_data):
    model = paper(MBKLClassifier, **SMALL)
    calls = fit(model, make_data())
    begin = calls.index(("begin", "kernel weights"))
    end = calls.index(("end", "kernel weights"))
    inside = calls[begin + 1 : end]
    assert set(inside) == {("begin", "iteration"), ("end", "iteration")}
    # Each of the two solvers also reports where it starts, the first again in every round.
    assert calls.count(("begin", "iteration")) >= model.n_iter_ + 2


@pytest.mark.parametrize("n_rows", [80, 1100])
def test_a_callback_stops_the_solvers(paper, make_data, n_rows):
    data = make_data(n_rows=n_rows, n_classes=3)
    full = paper(MBKLClassifier, n_maps=700, random_state=0)
    fit(full, data)
    stopped = paper(MBKLClassifier, n_maps=700, random_state=0)
    calls = fit(stopped, data, stop_at="iteration")
    assert full.n_iter_ > 2
    assert stopped.n_iter_ == 2  # a step of each solver
    assert calls.count(("end", "iteration")) < full.n_iter_
    assert stopped.predict(data[0]).shape == (n_rows,)


@pytest.mark.parametrize("n_rows", [80, 1100])
def test_a_callback_stops_a_fit_with_the_defaults(make_data, n_rows):
    data = make_data(n_rows=n_rows, n_classes=3)
    full, stopped = (MBKLClassifier(n_maps=200, tol=1e-9, random_state=0) for _ in range(2))
    all_calls = fit(full, data)
    calls = fit(stopped, data, stop_at="iteration")
    assert calls.count(("end", "iteration")) < all_calls.count(("end", "iteration"))
    assert stopped.gap_[1] > stopped.tol
    assert stopped.predict(data[0]).shape == (n_rows,)


def test_callbacks_do_not_change_the_result(form, bits_of, make_data):
    data = make_data()
    watched = form(MBKLClassifier, **SMALL)
    fit(watched, data)
    plain = form(MBKLClassifier, **SMALL).fit(*data)
    assert bits_of(watched) == bits_of(plain)


def test_an_error_still_ends_the_callbacks(form, make_data):
    X, _ = make_data()
    recorder = Recorder()
    model = form(MBKLClassifier, n_maps=40).set_callbacks(recorder)
    with pytest.raises(ValueError, match="two classes"):
        model.fit(X, [0] * 80)
    kinds = [kind for kind, _ in recorder.calls]
    assert kinds.count("setup") == kinds.count("teardown")


@pytest.mark.parametrize("kind", [MBKLClassifier, MBKLClassifierCV, MBKernel])
def test_a_fit_is_silent(form, make_data, capfd, kind):
    form(kind, **SMALL).fit(*make_data())
    assert capfd.readouterr() == ("", "")


def test_verbose_prints_the_stages(form, expected_stages, make_data, capsys):
    form(MBKLClassifier, **SMALL, verbose=1).fit(*make_data())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("] ")[1].split(":")[0] for line in lines] == expected_stages


def test_more_verbose_prints_iterations_too(paper, make_data, capsys):
    model = paper(MBKLClassifier, **SMALL, verbose=2).fit(*make_data())
    lines = capsys.readouterr().out.splitlines()
    iterations = [line for line in lines if "weights, iteration" in line]
    assert len(iterations) >= model.n_iter_ + 2
    assert all("relative gap" in line for line in iterations)
