"""A real cluster of several processes on this machine."""

import os
import pickle
import signal
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mbkl
from mbkl.dask import MBKLClassifier, WorkerLostError
from mbkl.dask.crew import Crew

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

# On the first two cores of a busy machine workers are slow to start.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def rows():
    """Enough rows for the solvers that pass over them."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(5_000, 6)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    X[generator.random(X.shape) < 0.02] = np.nan
    return X, y


OWN = {"maps": ["stumps", "ferns"], "n_maps": 40, "random_state": 0}
LEARNED = {"maps": "stumps", "theta": "learned", "n_maps": 60, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(client, rows):
    """A model of probabilities that learned from an array, and the array."""
    X, y = rows
    parts = da.from_array(X, chunks=(2_000, 3)), da.from_array(y, chunks=1_000)
    return MBKLClassifier(client=client, loss="logistic", **OWN).fit(*parts), parts[0]


@pytest.fixture(scope="module")
def tables(rows):
    """Rows and labels as frames of pandas and of Dask."""
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcdef"))
    labels = pd.Series(np.array(["low", "middle", "high"])[y])
    return frame, labels, *(dd.from_pandas(a, npartitions=3, sort=False) for a in (frame, labels))


@pytest.fixture(scope="module")
def from_tables(client, tables):
    """A model that learned from a dataframe."""
    return MBKLClassifier(client=client, **OWN).fit(*tables[2:])


@pytest.mark.parametrize(("n_workers", "numbers_of_partitions"), [(1, (1, 3)), (4, (7,))])
def test_same_bits_for_any_workers_and_partitions(
    start_cluster, rows, bits_of, n_workers, numbers_of_partitions
):
    X, y = rows
    settings = {**OWN, "theta": "learned"}
    expected = bits_of(mbkl.MBKLClassifier(**settings).fit(X, y))
    with start_cluster(n_workers, processes=False) as client:
        for n_partitions in numbers_of_partitions:
            size = -(-len(X) // n_partitions)
            parts = da.from_array(X, chunks=(size, 6)), da.from_array(y, chunks=size)
            model = MBKLClassifier(client=client, **settings).fit(*parts)
            assert bits_of(model) == expected


def test_predictions_are_lazy(fitted, rows):
    X, _ = rows
    model, parts = fitted
    plain = model.local_
    for method in ("predict", "decision_function", "predict_proba"):
        found = getattr(model, method)(parts)
        assert isinstance(found, da.Array)
        expected = getattr(plain, method)(X)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.compute(), expected)
        np.testing.assert_array_equal(getattr(model, method)(X), expected)
    empty = da.from_array(X, chunks=((0, 5_000), 6))
    np.testing.assert_array_equal(model.predict(empty).compute(), plain.predict(X))


def test_dataframes(from_tables, tables, bits_of):
    frame, labels, table, _ = tables
    plain = mbkl.MBKLClassifier(**OWN).fit(frame, labels)
    assert bits_of(from_tables) == bits_of(plain)
    assert from_tables.feature_names_in_.tolist() == list("abcdef")
    assert from_tables.predict(table).compute().tolist() == plain.predict(frame).tolist()


def test_names_are_checked_at_prediction(from_tables, tables, fitted, rows):
    _, _, table, labels = tables
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        from_tables.predict(table[list("fedcba")])
    with pytest.raises(ValueError, match="feature names"):
        from_tables.predict(table[list("abc")])
    assert 0.5 < from_tables.score(table, labels) <= 1.0
    with pytest.raises(ValueError, match="X has 3 columns"):
        fitted[0].predict(da.from_array(rows[0][:, :3], chunks=(2_000, 3)))


def test_names_of_an_earlier_fit_are_forgotten(client, rows):
    X, y = (each[:300] for each in rows)
    table = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=2, sort=False)
    model = MBKLClassifier(**LEARNED)
    model.fit(table, dd.from_pandas(pd.Series(y), npartitions=2, sort=False))
    model.fit(da.from_array(X, chunks=(200, 6)), y)
    assert not hasattr(model, "feature_names_in_")


def test_empty_and_unbalanced_partitions_and_weights(client, rows, bits_of):
    X, y = rows
    weights = np.random.default_rng(1).integers(0, 3, size=5_000).astype(float)
    sizes = (0, 1, 4_900, 0, 99)
    model = MBKLClassifier(**OWN).fit(
        da.from_array(X, chunks=(sizes, 6)), y, da.from_array(weights, chunks=(sizes,))
    )
    assert bits_of(model) == bits_of(mbkl.MBKLClassifier(**OWN).fit(X, y, weights))


def nothing_is_left(client) -> bool:
    """Say whether the scheduler forgets all tasks and data of fits."""

    def left(dask_scheduler):
        return [key for key in dask_scheduler.tasks if "mbkl" in str(key)]

    for _ in range(200):
        if not client.run_on_scheduler(left):
            return True
        time.sleep(0.02)
    return False


def test_the_workers_forget_the_rows(client, fitted):
    assert nothing_is_left(client)


def test_tasks_have_names_that_a_person_can_read(client, fitted):
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    known = {"mbkl-load", "mbkl-store", "mbkl-bin", "mbkl-bin-ferns", "mbkl-merge-rows-merge"}
    assert known <= set(names)
    assert fitted[0].predict(da.zeros((4, 6))).name.startswith("mbkl-predict-")


def test_a_fitted_model_can_be_saved_copied_and_pickled(client, fitted, rows, tmp_path):
    X, (model, _) = rows[0], fitted
    expected = model.predict(X)
    model.local_.save(tmp_path / "model.mbkl")
    np.testing.assert_array_equal(mbkl.load(tmp_path / "model.mbkl").predict(X), expected)
    for each in (model, model.local_):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(each)).predict(X), expected)
    assert clone(model).client is client
    assert pickle.loads(pickle.dumps(model)).client is None


@pytest.fixture(scope="module")
def mortal(start_cluster):
    """A cluster whose workers may be killed: each is started anew."""
    with start_cluster(2) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield client


@pytest.mark.skipif(sys.platform == "win32", reason="There is no SIGKILL.")
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("moment", "call", "is_known"),
    [("_run_all", 12, False), ("_submit", 12, False), ("_run_all", 8, True)],
)
def test_a_worker_that_is_killed_gives_an_error_that_names_it(
    mortal, rows, monkeypatch, moment, call, is_known
):
    X, y = rows
    mortal.wait_for_workers(2)
    pids = mortal.run(os.getpid)
    original, calls = getattr(Crew, moment), []

    def killing(self, *arguments, **options):
        calls.append(1)
        if len(calls) == call:
            address = self._addresses[0]
            os.kill(pids[address], signal.SIGKILL)
            while is_known and address in mortal.scheduler_info(n_workers=-1)["workers"]:
                time.sleep(0.05)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Crew, moment, killing)
    parts = da.from_array(X, chunks=(1_000, 6)), da.from_array(y, chunks=1_000)
    with pytest.raises(WorkerLostError, match=r"The worker tcp://.* was lost"):
        MBKLClassifier(client=mortal, **OWN).fit(*parts)


@pytest.fixture
def doomed(start_cluster, monkeypatch):
    """A cluster whose workers are not started anew."""
    monkeypatch.setattr("mbkl.dask.partitions._PATIENCE", 1)
    with start_cluster(2) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for nanny in client.cluster.workers.values():
            nanny.auto_restart = False
        yield client


@pytest.mark.skipif(sys.platform == "win32", reason="There is no SIGKILL.")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("moment", ["_run_all", "_submit"])
def test_all_workers_are_killed(doomed, rows, monkeypatch, moment):
    pids, calls, original = doomed.run(os.getpid), [], getattr(Crew, moment)

    def killing(self, *arguments, **options):
        calls.append(time.monotonic())
        if len(calls) == 12:
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Crew, moment, killing)
    X, y = da.from_array(rows[0], chunks=(1_000, 6)), da.from_array(rows[1], chunks=1_000)
    with pytest.raises(WorkerLostError, match="Call fit again"):
        MBKLClassifier(client=doomed, **OWN).fit(X, y)
    assert time.monotonic() - calls[11] < 30


@pytest.mark.skipif(sys.platform == "win32", reason="There is no SIGKILL.")
@pytest.mark.timeout(60)
def test_all_workers_are_killed_by_their_data(doomed, rows):
    X = da.from_array(rows[0], chunks=(1_000, 6))
    deadly = X.map_blocks(lambda _: os.kill(os.getpid(), signal.SIGKILL), meta=X._meta)
    began = time.monotonic()
    with pytest.raises(WorkerLostError, match="The cluster has no workers; start some"):
        MBKLClassifier(client=doomed, **OWN).fit(deadly, da.from_array(rows[1], chunks=1_000))
    assert time.monotonic() - began < 30


@pytest.mark.timeout(120)
def test_a_cluster_without_workers(start_cluster, rows, monkeypatch):
    monkeypatch.setattr("mbkl.dask.partitions._PATIENCE", 1)
    X, y = rows
    with (
        start_cluster(0) as client,
        pytest.raises(WorkerLostError, match="The cluster has no workers"),
    ):
        MBKLClassifier(client=client, **OWN).fit(da.from_array(X, chunks=(1_000, 6)), y)


def test_unfitted_models_say_so(client, rows):
    X = da.from_array(rows[0], chunks=(2_000, 6))
    for method in ("predict", "decision_function", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(MBKLClassifier(), method)(X)


def test_columns_with_null_values(client, rows, bits_of):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(a=np.round(X[:, 0]))
    frame["a"] = frame["a"].astype("Int32")
    table = dd.from_pandas(frame, npartitions=3, sort=False)
    labels = dd.from_pandas(pd.Series(y), npartitions=3, sort=False)
    model = MBKLClassifier(**LEARNED).fit(table, labels)
    assert bits_of(model) == bits_of(mbkl.MBKLClassifier(**LEARNED).fit(frame, y))


BAD = {
    "labels of another length": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), y[:-1]),
        "y has 4,999 entries, but X has 5,000 rows",
    ),
    "infinite values": (
        lambda X, y: (da.from_array(np.where(X > 3, np.inf, X), chunks=(500, 6)), y),
        r"Partition \d+: Input X contains infinity",
    ),
    "text": (
        lambda X, y: (
            dd.from_pandas(pd.DataFrame({"a": ["x"] * 5_000}), npartitions=2),
            dd.from_pandas(pd.Series(y), npartitions=2),
        ),
        "no numbers",
    ),
    "labels without partitions": (
        lambda X, y: (dd.from_pandas(pd.DataFrame(X), npartitions=2), y),
        r"must have the same partitions: make y a Dask series",
    ),
    "numbers that are no classes": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), y + 0.5),
        "Unknown label type",
    ),
    "missing text": (
        lambda X, y: (
            da.from_array(X, chunks=(500, 6)),
            np.where(y > 1, None, "known").astype(object),
        ),
        r"Partition \d+: Input y has missing labels",
    ),
    "one class": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), np.zeros(5_000)),
        "at least two classes",
    ),
    "labels with two dimensions": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), np.zeros((5_000, 2))),
        "y should be a 1d array",
    ),
    "missing labels": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), np.where(y > 1, np.nan, y)),
        r"Partition \d+: Input y has missing labels",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(client, rows, name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        MBKLClassifier(**LEARNED).fit(*make(*rows))
    assert nothing_is_left(client)


def test_negative_weights_are_refused(client, rows):
    X, y = rows
    with pytest.raises(ValueError, match="sample_weight has negative entries"):
        MBKLClassifier(**LEARNED).fit(da.from_array(X, chunks=(500, 6)), y, np.full(5_000, -1.0))


def test_other_arrays_are_refused(client, rows):
    with pytest.raises(TypeError, match="array or a dataframe of Dask"):
        MBKLClassifier().fit(*rows)


def test_projections_are_refused(client, rows):
    X, y = rows
    with pytest.raises(ValueError, match="projections are not available"):
        MBKLClassifier(maps="projections").fit(da.from_array(X, chunks=(500, 6)), y)


def test_no_cluster(run_python):
    code = """
import dask.array as da
from mbkl.dask import MBKLClassifier
try:
    MBKLClassifier().fit(da.zeros((10, 2)), da.arange(10) % 2)
except ValueError as error:
    print(error)
"""
    assert "Start a client" in run_python(code).stdout


def test_categories_are_level_numbers(client):
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.integers(5, size=300), generator.normal(size=300)])
    y = np.isin(X[:, 0], [1, 3]) ^ (X[:, 1] > 1)
    options = {"n_maps": 60, "random_state": 0, "categorical_features": [0]}
    remote = MBKLClassifier(**options).fit(da.from_array(X, (100, 2)), da.from_array(y, 100))
    local = mbkl.MBKLClassifier(**options).fit(X, y)
    np.testing.assert_array_equal(remote.decision_function(X), local.decision_function(X))


def test_a_category_with_very_many_levels(client):
    generator = np.random.default_rng(0)
    levels, effects = generator.integers(400, size=5_000), generator.normal(size=400)
    X = np.column_stack([levels, generator.normal(size=5_000)])
    y = effects[levels] + X[:, 1] > 0
    options = {"maps": "grown", "n_maps": 20, "random_state": 0, "categorical_features": [0]}
    remote = MBKLClassifier(**options).fit(da.from_array(X, (2_000, 2)), da.from_array(y, 2_000))
    local = mbkl.MBKLClassifier(**options).fit(X, y)
    np.testing.assert_array_equal(remote.decision_function(X), local.decision_function(X))
    assert local.feature_importances_[0] > 0.2


def test_text_is_refused_with_a_remedy(client):
    dask_frames = pytest.importorskip("dask.dataframe")
    frame = dask_frames.from_pandas(pd.DataFrame({"town": ["a", "b"] * 5}), npartitions=2)
    with pytest.raises(ValueError, match=r"Column 'town' of X holds .*categorical_features"):
        MBKLClassifier().fit(frame, da.from_array(np.arange(10) % 2, 5))
