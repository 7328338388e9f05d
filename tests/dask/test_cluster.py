"""A real cluster of several processes on this machine."""

import os
import pickle
import signal
import subprocess
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
from mbkl.dask.crew import DaskCrew

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

# On the first two cores of a busy machine workers are slow to start.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")


def cluster(n_workers):
    """Return a context: a client of a cluster of processes."""
    return distributed.Client(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=None,
        worker_dashboard_address=None,
    )


@pytest.fixture(scope="module")
def rows():
    """Enough rows for the solvers that pass over them."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(5_000, 6)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    X[generator.random(X.shape) < 0.02] = np.nan
    return X, y


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


OWN = {"maps": ["stumps", "ferns"], "n_maps": 40, "random_state": 0}
LEARNED = {"maps": "stumps", "theta": "learned", "n_maps": 60, "random_state": 0}


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_same_bits_for_any_workers_and_partitions(n_workers, rows, bits_of):
    X, y = rows
    settings = {**OWN, "theta": "learned"}
    expected = bits_of(mbkl.MBKLClassifier(**settings).fit(X, y))
    with cluster(n_workers) as client:
        for n_partitions in (1, 3, 7):
            size = -(-len(X) // n_partitions)
            parts = da.from_array(X, chunks=(size, 6)), da.from_array(y, chunks=size)
            model = MBKLClassifier(client=client, **settings).fit(*parts)
            assert bits_of(model) == expected


def test_predictions_are_lazy(client, rows):
    X, y = rows
    parts = da.from_array(X, chunks=(2_000, 3)), da.from_array(y, chunks=1_000)
    model = MBKLClassifier(loss="logistic", **OWN).fit(*parts)
    plain = model.local_
    for method in ("predict", "decision_function", "predict_proba"):
        found = getattr(model, method)(parts[0])
        assert isinstance(found, da.Array)
        expected = getattr(plain, method)(X)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.compute(), expected)
        np.testing.assert_array_equal(getattr(model, method)(X), expected)
    empty = da.from_array(X, chunks=((0, 5_000), 6))
    np.testing.assert_array_equal(model.predict(empty).compute(), plain.predict(X))


def test_dataframes(client, rows, bits_of):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcdef"))
    labels = pd.Series(np.array(["low", "middle", "high"])[y])
    table = dd.from_pandas(frame, npartitions=3, sort=False)
    names = dd.from_pandas(labels, npartitions=3, sort=False)
    model = MBKLClassifier(**OWN).fit(table, names)
    plain = mbkl.MBKLClassifier(**OWN).fit(frame, labels)
    assert bits_of(model) == bits_of(plain)
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert model.predict(table).compute().tolist() == plain.predict(frame).tolist()


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


def test_the_workers_forget_the_rows(client, rows):
    X, y = rows
    MBKLClassifier(**LEARNED).fit(
        da.from_array(X, chunks=(1_000, 6)), da.from_array(y, chunks=1_000)
    )
    assert nothing_is_left(client)


def test_tasks_have_names_that_a_person_can_read(client, rows):
    X, y = rows
    prefixes = set()

    def names(dask_scheduler):
        return list(dask_scheduler.task_prefixes)

    MBKLClassifier(**OWN).fit(da.from_array(X, chunks=(1_000, 6)), da.from_array(y, chunks=1_000))
    prefixes.update(client.run_on_scheduler(names))
    assert {"mbkl-load", "mbkl-store", "mbkl-bin", "mbkl-bin-ferns", "mbkl-merge-rows-merge"} <= {
        prefix for prefix in prefixes if prefix.startswith("mbkl")
    }


def test_a_fitted_model_can_be_saved_and_pickled(client, rows, tmp_path):
    X, y = rows
    model = MBKLClassifier(**OWN).fit(da.from_array(X, chunks=(2_000, 6)), y)
    model.local_.save(tmp_path / "model.mbkl")
    again = mbkl.load(tmp_path / "model.mbkl")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    copied = pickle.loads(pickle.dumps(model.local_))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))


@pytest.mark.skipif(sys.platform == "win32", reason="There is no SIGKILL.")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("moment", ["_run_all", "_submit"])
def test_a_worker_that_is_killed_gives_an_error_that_names_it(rows, monkeypatch, moment):
    X, y = rows
    with cluster(2) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pids = client.run(os.getpid)
        original, calls = getattr(DaskCrew, moment), []

        def killing(self, *arguments, **options):
            calls.append(1)
            if len(calls) == 12:
                os.kill(pids[self._addresses[0]], signal.SIGKILL)
            return original(self, *arguments, **options)

        monkeypatch.setattr(DaskCrew, moment, killing)
        parts = da.from_array(X, chunks=(1_000, 6)), da.from_array(y, chunks=1_000)
        with pytest.raises(WorkerLostError, match=r"The worker tcp://.* was lost"):
            MBKLClassifier(client=client, **OWN).fit(*parts)


@pytest.mark.skipif(sys.platform == "win32", reason="There is no SIGKILL.")
@pytest.mark.timeout(120)
def test_a_worker_whose_loss_is_known_before_the_next_call(rows, monkeypatch):
    X, y = rows
    with cluster(2) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pids = client.run(os.getpid)
        original, calls = DaskCrew._run_all, []

        def killing(self, *arguments):
            calls.append(1)
            if len(calls) == 8:
                os.kill(pids[self._addresses[0]], signal.SIGKILL)
                while self._addresses[0] in client.scheduler_info(n_workers=-1)["workers"]:
                    time.sleep(0.05)
            return original(self, *arguments)

        monkeypatch.setattr(DaskCrew, "_run_all", killing)
        with pytest.raises(WorkerLostError, match=r"The worker tcp://.* was lost"):
            MBKLClassifier(client=client, **OWN).fit(da.from_array(X, chunks=(1_000, 6)), y)


@pytest.mark.timeout(120)
def test_a_cluster_without_workers(rows, monkeypatch):
    monkeypatch.setattr("mbkl.dask.partitions._PATIENCE", 1)
    X, y = rows
    with (
        cluster(0) as client,
        pytest.raises(WorkerLostError, match="The cluster has no workers"),
    ):
        MBKLClassifier(client=client, **OWN).fit(da.from_array(X, chunks=(1_000, 6)), y)


def test_clones_and_copies_leave_the_client_alone(client, rows):
    X, y = rows
    model = MBKLClassifier(client=client, **LEARNED)
    assert clone(model).client is client
    model.fit(da.from_array(X, chunks=(2_000, 6)), y)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.client is None
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))


def test_names_are_checked_at_prediction(client, rows):
    X, y = rows
    table = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=2, sort=False)
    labels = dd.from_pandas(pd.Series(y), npartitions=2, sort=False)
    model = MBKLClassifier(**LEARNED).fit(table, labels)
    with pytest.raises(ValueError, match="in the same order as they were in fit"):
        model.predict(table[list("fedcba")])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[list("abc")])
    assert 0.5 < model.score(table, labels) <= 1.0
    model.fit(da.from_array(X, chunks=(2_000, 6)), y)
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 3 columns"):
        model.predict(da.from_array(X[:, :3], chunks=(2_000, 3)))


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
        r"Partition \d+ of X has infinite values",
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
        r"Partition \d+ of y has missing labels",
    ),
    "one class": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), np.zeros(5_000)),
        "at least two classes",
    ),
    "labels with two dimensions": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), np.zeros((5_000, 2))),
        "y must have one dimension",
    ),
    "missing labels": (
        lambda X, y: (da.from_array(X, chunks=(500, 6)), np.where(y > 1, np.nan, y)),
        r"Partition \d+ of y has missing labels",
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
    with pytest.raises(ValueError, match="sample_weight has entries that are no weights"):
        MBKLClassifier(**LEARNED).fit(da.from_array(X, chunks=(500, 6)), y, np.full(5_000, -1.0))


def test_other_arrays_are_refused(client, rows):
    with pytest.raises(TypeError, match="array or a dataframe of Dask"):
        MBKLClassifier().fit(*rows)


def test_projections_are_refused(client, rows):
    X, y = rows
    with pytest.raises(ValueError, match="projections are not available"):
        MBKLClassifier(maps="projections").fit(da.from_array(X, chunks=(500, 6)), y)


def test_no_cluster():
    code = (
        "import dask.array as da, numpy as np\n"
        "from mbkl.dask import MBKLClassifier\n"
        "try:\n"
        "    MBKLClassifier().fit(da.zeros((10, 2)), np.arange(10) % 2)\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "There is no cluster" in done.stdout


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
