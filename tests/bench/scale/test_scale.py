"""The benchmarks of scale in small: what they count, predict and write."""

import itertools
import sys
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.scale import billion, constants, cost_model, dask_overhead, fits, out_of_core
from benchmarks.scale.__main__ import main as command
from benchmarks.scale.billion import Case, _exchange_tasks
from benchmarks.scale.constants import Constants
from benchmarks.scale.counting import Tally, counted, n_stored
from benchmarks.scale.fits import Fit
from benchmarks.scale.model import pass_names, predict
from benchmarks.scale.out_of_core import Problem
from benchmarks.scale.problems import Shape, digest, rows_of, write_rows

from mbkl import MBKLClassifier
from mbkl.engine.codes import DenseCodes
from mbkl.engine.files import DiskArray


def test_rows_in_a_file_are_those_in_memory(tmp_path):
    shape = Shape(10_500, 4, 3)
    write_rows(tmp_path, shape)
    X, y = rows_of(shape)
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), X)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), y)
    assert np.unique(y).tolist() == [0, 1, 2]


# Counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_columns", [1, 3, 6])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_pass_is_counted_once(loops, n_columns, kind, make_codes):
    codes = replace(make_codes(kind=kind), loops=loops)
    with counted() as tally:
        codes.gather(np.ones((codes.n_cells, n_columns)))
        codes.histogram(np.ones((codes.n_rows, n_columns), np.int64))
    kind = "many columns" if n_columns > 1 else "one column"
    for name in ("gather", "histogram"):
        assert tally.here[f"{name}, {kind}"] == n_stored(codes) * n_columns
        assert tally.here[f"rows of {name}"] == codes.n_rows * n_columns
    assert not tally.on_workers


def test_counting_changes_nothing_and_ends():
    X, y = rows_of(Shape(5_000, 5))
    model = MBKLClassifier(maps="stumps", n_maps=50, random_state=0, n_jobs=1)
    before, method = digest(model.fit(X, y)), DenseCodes.gather
    with counted() as tally:
        assert DenseCodes.gather is not method
        assert digest(model.fit(X, y)) == before
    assert DenseCodes.gather is method
    assert tally.here["bin"] == 5 * 5_000
    assert tally.here["order"] == 5_000
    assert tally.here["row state"] >= 5_000


def test_bytes_of_files_are_counted(tmp_path):
    array = DiskArray(tmp_path, (3, 10), np.dtype(np.uint16), 4)
    with counted() as tally:
        for rows in array.block_slices():
            array.write(rows, np.zeros((3, rows.stop - rows.start)))
        for _ in array.blocks():
            pass
    assert tally.here["write"] == tally.here["read"] == 60


# Predicting ----------------------------------------------------------------------------------


@pytest.fixture
def units():
    """Constants of a machine on which everything takes a second, but for calls and bytes."""
    names = [*pass_names(), *cost_model.UNITS]
    return Constants(
        unit=dict.fromkeys(names, 1.0),
        on_all_cores=dict.fromkeys(names, 0.5),
        bandwidth=1.0,
        cold_read=2.0,
        large_row_state=3.0,
        message=0.25,
    )


def test_prediction_adds_up(units):
    tally = Tally(
        here=Counter({"gather, one column": 2, "factor": 3, "round trips": 4, "bytes out": 5}),
        on_workers=Counter({"histogram, one column": 10, "row state": 20, "take": 30}),
    )
    parts = predict(tally, units, n_workers=5)
    assert parts["gather and histogram"] == 2 + 10 / 5
    assert parts["row state"] == 20 / 5
    assert parts["binning, order, copies"] == 30 / 5
    assert parts["few rows"] == 3
    assert parts["Dask: calls and tasks"] == 4 * (1 + 4 * 0.25)
    assert parts["Dask: bytes"] == 5
    assert parts["files"] == 0


@pytest.mark.parametrize(("codes", "waiting"), [(10, 0), (4, 3)])
def test_only_reading_that_takes_longer_than_the_pass_counts(units, codes, waiting):
    tally = Tally(here=Counter({"gather, one column": codes, "read": 7}))
    assert predict(tally, units)["files"] == waiting


@pytest.mark.parametrize(
    ("settings", "n_families"),
    [({}, 2), ({"maps": "stumps"}, 1), ({"maps": ["stumps", "ferns"]}, 2)],
)
def test_families_of_a_fit(settings, n_families):
    fit = Fit("in memory", Shape(1_000, 10), settings)
    tally = Tally(here=Counter({"rows of gather": 4_000, "rows of histogram": 4_000}))
    assert cost_model.Checked(fit, tally, 1.0).passes == 4 / n_families


def test_tables_of_the_cluster_add_up(units, monkeypatch):
    monkeypatch.setattr(billion, "ROWS", 4_000)
    case = Case("stumps", Fit("Dask", Shape(1_000, 10), {"maps": "stumps"}))
    tally = Tally(
        here=Counter({"round trips": 3, "exchanges": 1, "tasks": _exchange_tasks(2) + 4}),
        on_workers=Counter({"gather, one column": 1_600_000, "row state": 2_000}),
    )
    parts = billion.predict_cluster(case, tally, units)
    assert parts["gather and histogram"] == 1_600_000 * 4 / 100 / 16
    assert parts["row state"] == 3.0 * 2_000 * 4 / 100
    assert parts["calls"] == 3 * (1 + 99 * 0.25)
    assert parts["tasks"] == 2 * 100**2 + 3 * 100 + 2 * 100
    last = billion.cluster_tables(units, {"stumps": (case, tally)}).splitlines()[-2]
    total = float(last.split("|")[-2].replace(",", ""))
    assert total == pytest.approx(sum(parts.values()), rel=0.01)


def test_tables_and_pictures_are_made(units):
    fit = Fit("in memory", Shape(1_000, 10), {"maps": "stumps", "n_maps": 20})
    tally = Tally(here=Counter({"gather, one column": 2, "rows of gather": 2_000}))
    checked = cost_model.Checked(fit, tally, 4.0)
    line = checked.line(units)
    assert line["passes"] == 1.0
    assert line["measured / predicted"] == 2.0
    assert "1,000 x 10, stumps (20)" in cost_model.check_tables([checked], units)
    cost_model._plot([checked], units).draw_without_rendering()
    table = cost_model.constants_table(units)
    assert "| gather, one column: code looked up | 1,000 ms | 1.00e+00 | 2.00e+00 |" in table


def test_all_constants_are_positive(monkeypatch):
    monkeypatch.setattr(constants, "_measure_dask", lambda found, sizes: None)
    found = constants.measure(constants.QUICK)
    units = [*found.unit.values(), *found.on_all_cores.values(), found.bandwidth]
    assert all(value > 0 for value in units)
    assert set(cost_model.UNITS) - set(found.unit) == {"byte sent", "tasks", "round trips"}


# Memory --------------------------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Memory as Linux tells it.")
def test_peak_memory_is_seen(monkeypatch):
    seen, used = threading.Event(), out_of_core._used

    def watched():
        if rows:
            seen.set()
        return used()

    def work():
        rows.append(np.ones(10_000_000))
        assert seen.wait(60)

    rows = []
    monkeypatch.setattr(out_of_core, "_used", watched)
    assert out_of_core._peak(work) > 75e6


def test_the_problem_of_a_quick_run_goes_to_files(tmp_path):
    problem = out_of_core.QUICK_LARGE
    write_rows(tmp_path, problem.shape)
    settings = {**problem.settings, "max_memory": problem.allowed, "cache_folder": tmp_path}
    with counted() as tally:
        streamed = out_of_core._measure(str(tmp_path), settings, 1)
    assert tally.here["read"] > problem.shape.n_rows * problem.shape.n_features
    plain = out_of_core._measure(str(tmp_path), problem.settings, 1)
    assert streamed.bits == plain.bits
    line = out_of_core._line(problem, "in files", streamed, plain, problem.estimate.streamed)
    assert line["same bits"] == "yes"
    out_of_core._plot([line]).draw_without_rendering()


def test_small_problems_stay_in_memory():
    assert not out_of_core.QUICK_OTHERS[0].is_large
    assert all(problem.is_large for problem in (out_of_core.LARGE, out_of_core.QUICK_LARGE))
    assert str(Problem(Shape(10, 2, 3), {})) == "10 x 2, 3 classes, default"


# Dask ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as client:
        yield client


def test_a_pass_over_the_workers_is_the_pass_here_for_each(client):
    crew = dask_overhead.crew_of(client, 2)
    there = dask_overhead.operator_on(crew, 0.01)
    here = dask_overhead.operator_here(0.01)
    found, total = dask_overhead.one_pass(there, dask_overhead.curvature_on(crew))()
    expected, own = dask_overhead.one_pass(here, np.ones((here.n_rows, 1)))()
    np.testing.assert_allclose(found, 2 * expected)
    np.testing.assert_allclose(total, 2 * own)
    crew.close()


def test_what_goes_to_the_workers_is_counted(client):
    from mbkl.dask import MBKLClassifier as OnDask

    X, y = rows_of(Shape(6_000, 5))
    fit = Fit("Dask", Shape(6_000, 5), {"maps": "stumps", "n_maps": 50})
    with counted(with_dask=True) as tally, fits.ready(fit, client, X, y) as make:
        model = make()
    assert isinstance(model, OnDask)
    assert tally.on_workers["bin"] == 5 * 6_000
    assert tally.on_workers["order"] == 6_000
    assert tally.here["exchanges"] == 1
    # Tables go to both workers, and histograms come back from both.
    smallest = 2 * 8 * model.n_maps_
    assert tally.here["bytes out"] >= smallest
    assert tally.here["bytes back"] >= smallest
    counts = billion.counts_of(Case("stumps", fit), tally)
    assert counts["other tasks, a worker"] == int(counts["other tasks, a worker"]) > 0


def test_lines_of_passes():
    sizes = dask_overhead.QUICK
    times = dict(zip(sizes.megabytes, itertools.count(2)))
    here = dict.fromkeys(sizes.megabytes, 1.0)
    lines = dask_overhead.pass_lines(2, {False: times, True: times}, here, sizes)
    assert [line["by way of the scheduler, ms"] for line in lines] == [2, 3]
    fits = [{"workers": 2, "fit on Dask, s": 1.0, "fit here with one thread, s": 0.5}]
    dask_overhead._plot(lines, fits).draw_without_rendering()


def test_wrong_names_are_an_error(capsys):
    with pytest.raises(SystemExit) as leaving:
        command(["moon"])
    assert leaving.value.code == 2
    assert "moon" in capsys.readouterr().err
