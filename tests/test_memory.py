import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mbkl import MBKLClassifier, MBKLRegressor, estimate_memory, memory
from mbkl.memory import parse_bytes

if not sys.platform.startswith("linux"):
    pytest.skip("Memory is measured as Linux tells it.", allow_module_level=True)

# Fits one model after a small one (so that what is loaded once does not count), or reads rows
# alone, and prints how many bytes of memory, beyond files that are mapped, it took at most.
MEASURE = """
import json, sys, threading, time
import numpy as np
from mbkl import MBKLClassifier, MBKLRegressor

def used():
    with open("/proc/self/statm") as file:
        numbers = file.read().split()
    return (int(numbers[1]) - int(numbers[2])) * 4096

settings, path = json.loads(sys.argv[1]), sys.argv[2]
warm = np.random.default_rng(0).normal(size=(6000, 4)).astype(np.float32)
has_numbers = settings.pop("has_numbers", False)
kind = MBKLRegressor if has_numbers else MBKLClassifier
for theta in ("ones", "learned"):
    small = kind(maps=["stumps", "ferns"], n_maps=60, theta=theta, random_state=0)
    small.fit(warm, warm[:, 0] if has_numbers else warm[:, 0] > 0)
X, y = np.load(path + "/X.npy", mmap_mode="r"), np.load(path + "/y.npy")
if settings.pop("parquet", False):
    from mbkl.parquet import read_parquet

    X, y = read_parquet(path + "/rows.parquet", "y")
if has_numbers:
    y = y + np.random.default_rng(0).normal(size=len(y))
only_read = settings.pop("only_read", False)
weights = np.ones(len(y))
if settings.pop("zero_weights", False):
    weights[::50] = 0.0
before, most, running = used(), [0], [True]

def watch():
    while running:
        most[0] = max(most[0], used() - before)
        time.sleep(0.0005)

thread = threading.Thread(target=watch)
thread.start()
coef = np.empty(0)
if only_read:
    for _ in X.blocks(1_000_000 // X.shape[1]):
        pass
else:
    coef = kind(random_state=0, n_jobs=2, **settings).fit(X, y, weights).coef_
running.clear()
thread.join()
print(json.dumps({"bytes": most[0], "coef": coef.tobytes().hex()[:20000]}))
"""


def measure(folder, **settings) -> dict:
    command = [sys.executable, "-c", MEASURE, json.dumps(settings), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def write(folder, n_rows, n_features, n_classes=2) -> None:
    generator = np.random.default_rng(0)
    X = np.lib.format.open_memmap(
        folder / "X.npy", mode="w+", dtype=np.float32, shape=(n_rows, n_features)
    )
    y = np.empty(n_rows, dtype=np.int64)
    for start in range(0, n_rows, 10_000):
        block = generator.random((min(10_000, n_rows - start), n_features), dtype=np.float32)
        X[start : start + 10_000] = block
        noise = generator.normal(scale=0.2, size=len(block))
        score = block[:, 0] + (block[:, 1] > 0.5) * block[:, 2] + noise
        y[start : start + 10_000] = np.clip(score * n_classes / 2, 0, n_classes - 1)
    X.flush()
    np.save(folder / "y.npy", y)


@pytest.mark.parametrize(
    ("shape", "settings"),
    [
        ((60_000, 100, 2), {"maps": "stumps", "n_maps": 1_000}),
        ((60_000, 40, 5), {"maps": "stumps", "n_maps": 2_000}),
        ((12_000, 10, 2), {"maps": ["stumps", "ferns"], "n_maps": 500}),
    ],
)
def test_the_estimate_holds(tmp_path, shape, settings):
    write(tmp_path, *shape)
    estimate = estimate_memory(MBKLClassifier(n_jobs=2, **settings), *shape)
    taken = measure(tmp_path, **settings)["bytes"]
    # What counts is the upper bound; a busy machine may miss the worst moment.
    assert 0.3 * estimate.in_memory < taken < 1.1 * estimate.in_memory


def test_codes_larger_than_the_memory_allowed(tmp_path):
    n_rows, n_features, limit = 65_000, 1_000, 60_000_000
    assert n_rows * n_features > limit
    write(tmp_path, n_rows, n_features)
    settings = {"maps": "stumps", "n_maps": 3_000}
    estimate = estimate_memory(MBKLClassifier(**settings), n_rows, n_features)
    assert estimate.streamed <= limit < estimate.in_memory
    limited = measure(tmp_path, max_memory=limit, cache_folder=str(tmp_path), **settings)
    plain = measure(tmp_path, **settings)
    assert limited["coef"] == plain["coef"]
    assert limited["bytes"] < limit < plain["bytes"]


@pytest.mark.parametrize(
    ("n_rows", "n_features", "settings"),
    [
        (10_000, 2_000, {"zero_weights": True}),
        (50_000, 400, {"dtype": "uint8"}),
        (30_000, 10, {"maps": ["stumps", "ferns"], "n_maps": 1_000}),
        (60_000, 1_500, {"maps": "grown", "n_maps": 5}),
    ],
)
def test_the_limit_holds_for_rows_of_any_kind(tmp_path, n_rows, n_features, settings):
    settings = {"maps": "stumps", "n_maps": 1_000, **settings}
    write(tmp_path, n_rows, n_features)
    if settings.pop("dtype", None):
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
        np.save(tmp_path / "X.npy", (100 * X).astype(np.uint8))
    own = {name: settings[name] for name in ("maps", "n_maps")}
    estimate = estimate_memory(MBKLClassifier(n_jobs=2, **own), n_rows, n_features)
    assert estimate.streamed < estimate.in_memory
    taken = measure(tmp_path, max_memory=estimate.streamed, **settings)["bytes"]
    assert taken < 1.1 * estimate.streamed


@pytest.mark.parametrize("settings", [{}, {"loss": "absolute_error", "tol": 0.1}])
def test_the_limit_holds_for_numbers(tmp_path, settings):
    settings = {"maps": "stumps", "n_maps": 1_000, **settings}
    write(tmp_path, n_rows := 60_000, n_features := 400)
    estimate = estimate_memory(MBKLRegressor(n_jobs=2, **settings), n_rows, n_features)
    limited = measure(tmp_path, has_numbers=True, max_memory=estimate.streamed, **settings)
    assert limited["bytes"] < 1.1 * estimate.streamed < 0.8 * estimate.in_memory


def write_parquet(folder, rows_a_group) -> None:
    frame = pd.DataFrame(np.load(folder / "X.npy")).rename(columns=str)
    frame = frame.assign(y=np.load(folder / "y.npy"))
    frame.to_parquet(folder / "rows.parquet", row_group_size=rows_a_group)


def test_the_limit_holds_for_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    write(tmp_path, n_rows := 100_000, n_features := 400)
    write_parquet(tmp_path, rows_a_group=2_000)
    settings = {"maps": "stumps", "n_maps": 1_000}
    estimate = estimate_memory(MBKLClassifier(n_jobs=2, **settings), n_rows, n_features)
    taken = measure(tmp_path, parquet=True, max_memory=estimate.streamed, **settings)["bytes"]
    assert taken < 1.1 * estimate.streamed < 0.5 * estimate.in_memory


def test_row_groups_are_not_read_as_a_whole(tmp_path):
    pytest.importorskip("pyarrow")
    write(tmp_path, n_rows := 2_000_000, n_features := 5)
    write_parquet(tmp_path, rows_a_group=n_rows)
    reading = measure(tmp_path, parquet=True, only_read=True)["bytes"]
    assert reading < 0.75 * n_rows * n_features * 4


def test_too_little_memory_is_refused_with_the_number_needed(make_data):
    X, y = make_data(6_000, 4)
    model = MBKLClassifier(maps="stumps", n_maps=100, max_memory=1_000)
    with pytest.raises(ValueError, match=r"max_memory=1,000 bytes is too little: about [\d,]+ are"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=r"max_memory=1,000 bytes is too little: about [\d,]+ are"):
        model.fit(X[:100], y[:100])


@pytest.mark.parametrize(("maps", "n_rows"), [(["stumps", "ferns"], 6_000), ("auto", 50_000)])
def test_more_of_anything_takes_more(maps, n_rows):
    model = MBKLClassifier(maps=maps)
    base = estimate_memory(model, n_rows, 20, 3)
    for other in (
        estimate_memory(model, 2 * n_rows, 20, 3),
        estimate_memory(model, n_rows, 200, 3),
        estimate_memory(model, n_rows, 20, 6),
    ):
        assert other.in_memory > base.in_memory
        assert other.streamed > base.streamed


@pytest.mark.parametrize("size", ["", "GB", "-1GB", "2 apples", "0", "1e400"])
def test_sizes_that_are_none(size):
    with pytest.raises(ValueError, match="max_memory must be"):
        parse_bytes(size)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_memory": "much"}, "max_memory must be"),
        ({"max_memory": -5}, "max_memory"),
        ({"max_memory": 1_000, "maps": "projections"}, "sparse rows and projections"),
        ({"max_memory": "1GB", "device": "torch"}, "device='cpu'"),
    ],
)
def test_settings_that_do_not_go_together(make_data, settings, message):
    if settings.get("device") == "torch":
        pytest.importorskip("torch")
    X, y = make_data(6_000, 4)
    with pytest.raises(ValueError, match=message):
        MBKLClassifier(**{"maps": "stumps", "n_maps": 50, **settings}).fit(X, y)


def test_sparse_rows_are_refused(make_data):
    X, y = make_data(6_000, 4)
    with pytest.raises(ValueError, match="sparse rows and projections"):
        MBKLClassifier(maps="stumps", max_memory="1kB").fit(sparse.csr_array(X), y)
    weights = np.arange(6_000) % 3
    MBKLClassifier(maps="stumps", max_memory="4GB").fit(sparse.csr_array(X), y, weights)


@pytest.fixture
def no_files(monkeypatch):
    """Let codes in files be an error."""

    def refuse(*arguments):
        raise AssertionError("Codes go to files where memory suffices.")

    monkeypatch.setattr(memory, "FileRows", refuse)


AMPLE = {
    "integers": lambda X: ((64 * X).astype(np.int64), None),
    "bytes": lambda X: (np.clip(20 * X, 0, 255).astype(np.uint8), None),
    "truth values": lambda X: (X > 0, None),
    "a zero weight": lambda X: (X, np.where(np.arange(len(X)) == 7, 0.0, 1.0)),
    "both": lambda X: ((64 * X).astype(int), np.where(np.arange(len(X)) == 7, 0.0, 1.0)),
    "floats": lambda X: (X, None),
}


@pytest.mark.parametrize(
    ("name", "maps"),
    [
        *((name, "stumps") for name in AMPLE),
        *(("both", maps) for maps in ("ferns", "projections", "auto")),
    ],
)
def test_ample_memory_is_used(make_data, bits_of, no_files, name, maps):
    X, y = make_data(6_000, 4)
    X, weights = AMPLE[name](X)
    models = [
        MBKLClassifier(maps=maps, n_maps=30, max_memory=limit, random_state=0).fit(X, y, weights)
        for limit in (None, "100GB")
    ]
    assert bits_of(models[0]) == bits_of(models[1])


def test_a_disk_that_is_too_small(make_data, monkeypatch):
    X, y = make_data(6_000, 4)
    model = MBKLClassifier(maps="stumps", n_maps=100)
    estimate = estimate_memory(model, *X.shape)
    monkeypatch.setattr(memory, "_BLOCKS", 0)
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda place: SimpleNamespace(free=10))
    with pytest.raises(ValueError, match="has room for 10 bytes"):
        model.set_params(max_memory=estimate.in_memory - 1).fit(X, y)


def test_a_folder_that_is_not_there(make_data, tmp_path, monkeypatch):
    X, y = make_data(6_000, 4)
    model = MBKLClassifier(maps="stumps", n_maps=100)
    estimate = estimate_memory(model, *X.shape)
    monkeypatch.setattr(memory, "_BLOCKS", 0)
    model.set_params(max_memory=estimate.in_memory - 1, cache_folder=tmp_path / "none")
    with pytest.raises(ValueError, match="cache_folder="):
        model.fit(X, y)
