"""Progress: scikit-learn's callbacks and what `verbose` prints."""

import warnings

import pytest

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV

sklearn_callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks")

STAGES = ["binary maps", "initial guess", "kernel weights", "classifier weights", "tables"]


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


def test_stages_come_in_the_order_of_the_algorithm(make_data):
    calls = fit(MBKLClassifier(n_maps=40, random_state=0), make_data())
    assert stages(calls, "begin") == ["fit", *STAGES]
    assert stages(calls, "end") == [*STAGES, "fit"]
    assert calls[0] == ("setup", "fit")
    assert calls[-1] == ("teardown", "fit")


@pytest.mark.parametrize(
    "model",
    [
        MBKLClassifier(n_maps=40),
        MBKLClassifier(n_maps=40, theta="ones", loss="hinge"),
        MBKLClassifier(n_maps=40, theta="reweighted"),
        MBKLClassifier(n_maps=40, C=1e-9),
        MBKLClassifier(n_maps=40, calibration="temperature"),
        MBKLClassifierCV(n_maps=40, Cs=(0.1, 1.0), cv=2),
        MBKernel(n_maps=40),
    ],
    ids=repr,
)
def test_what_begins_ends_inside_out(make_data, model):
    open_tasks = []
    for kind, name in fit(model.set_params(random_state=0), make_data(n_classes=3)):
        if kind == "begin":
            open_tasks.append(name)
        elif kind == "end":
            assert open_tasks.pop() == name
    assert open_tasks == []


def test_iterations_are_tasks_of_their_stage(make_data):
    model = MBKLClassifier(n_maps=40, random_state=0)
    calls = fit(model, make_data())
    begin = calls.index(("begin", "kernel weights"))
    end = calls.index(("end", "kernel weights"))
    inside = calls[begin + 1 : end]
    assert set(inside) == {("begin", "iteration"), ("end", "iteration")}
    # Each of the two solvers also reports where it starts.
    assert calls.count(("begin", "iteration")) == model.n_iter_ + 2


@pytest.mark.parametrize("n_rows", [80, 1100])
def test_a_callback_stops_the_solvers(make_data, n_rows):
    data = make_data(n_rows=n_rows, n_classes=3)
    full = MBKLClassifier(n_maps=700, random_state=0)
    fit(full, data)
    stopped = MBKLClassifier(n_maps=700, random_state=0)
    calls = fit(stopped, data, stop_at="iteration")
    assert full.n_iter_ > 2
    assert stopped.n_iter_ == 1
    assert calls.count(("end", "iteration")) < full.n_iter_
    assert stopped.predict(data[0]).shape == (n_rows,)


def test_callbacks_do_not_change_the_result(make_data):
    data = make_data()
    watched = MBKLClassifier(n_maps=40, random_state=0)
    fit(watched, data)
    plain = MBKLClassifier(n_maps=40, random_state=0).fit(*data)
    assert watched.coef_.tobytes() == plain.coef_.tobytes()


def test_an_error_still_ends_the_callbacks(make_data):
    X, _ = make_data()
    recorder = Recorder()
    model = MBKLClassifier(n_maps=40).set_callbacks(recorder)
    with pytest.raises(ValueError, match="two classes"):
        model.fit(X, [0] * 80)
    kinds = [kind for kind, _ in recorder.calls]
    assert kinds.count("setup") == kinds.count("teardown")


@pytest.mark.parametrize("model", [MBKLClassifier(), MBKLClassifierCV(cv=2), MBKernel()], ids=repr)
def test_a_fit_is_silent(make_data, capfd, model):
    model.set_params(n_maps=40, random_state=0).fit(*make_data())
    assert capfd.readouterr() == ("", "")


def test_verbose_prints_the_stages(make_data, capsys):
    MBKLClassifier(n_maps=40, random_state=0, verbose=1).fit(*make_data())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("] ")[1].split(":")[0] for line in lines] == STAGES


def test_more_verbose_prints_iterations_too(make_data, capsys):
    model = MBKLClassifier(n_maps=40, random_state=0, verbose=2).fit(*make_data())
    lines = capsys.readouterr().out.splitlines()
    iterations = [line for line in lines if "weights, iteration" in line]
    assert len(iterations) == model.n_iter_ + 2
    assert all("relative gap" in line for line in iterations)
