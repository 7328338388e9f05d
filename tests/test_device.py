"""Estimators on a device: Torch on the CPU stands in for a GPU."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from mbkl import MBKLClassifier, MBKLClassifierCV, MBKLRegressor
from mbkl.engine import limits
from mbkl.engine.device import Device, DeviceCodes, DeviceRows
from mbkl.maps import Ferns, Projections, Stumps
from mbkl.maps.device_growth import DeviceGrowingRows
from mbkl.solvers import choose

torch = pytest.importorskip("torch", reason="Torch is not installed.")

FORMS = [
    {"maps": "stumps", "theta": "ones"},
    {"maps": "stumps", "theta": "learned"},
    {"maps": "stumps", "theta": "reweighted"},
    {"maps": "stumps", "theta": "alignment"},
    {"maps": Stumps(thresholds="quantile"), "theta": "ones", "loss": "logistic"},
    {"maps": Stumps(), "theta": "learned", "loss": "hinge"},
    {"maps": Ferns(depth=3), "theta": "learned"},
    {"maps": ["stumps", Ferns(depth=3)], "theta": "learned"},
    {"maps": Projections(), "theta": "ones"},
    {"maps": "auto", "theta": "ones"},
]


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch):
    """Keep rows on the device: a few thousand would be collected."""
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 10)


@pytest.mark.parametrize(
    ("form", "n_classes"),
    [(form, n) for form in FORMS for n in ((2, 3) if form["maps"] == "auto" else (2, 18))],
    ids=repr,
)
def test_the_optimum_is_that_of_the_cpu(form, n_classes, make_data):
    X, y = make_data(n_rows=120, n_classes=n_classes)  # all different: the CPU merges equal rows
    models = [
        MBKLClassifier(C=1.0, n_maps=60, random_state=0, tol=1e-4, device=device, **form).fit(X, y)
        for device in ("cpu", "torch")
    ]
    on_cpu, on_device = models
    np.testing.assert_allclose(on_device.objective_, on_cpu.objective_, rtol=2e-3)
    # Many columns are in single precision, too little to certify the optimum at a kink.
    if form.get("loss") != "hinge" or n_classes < 16:
        assert on_device.gap_[1] <= 1e-4
    assert abs(on_device.score(X, y) - on_cpu.score(X, y)) <= 0.03
    difference = on_device.decision_function(X) - on_cpu.decision_function(X)
    # The optimum of Step 1 is flat, which leaves single scores some room.
    assert np.quantile(np.abs(difference), 0.95) < 0.2


@pytest.mark.parametrize(("limit", "where"), [(10, True), (4_000, False)])
def test_few_rows_are_solved_on_the_cpu(make_data, monkeypatch, limit, where):
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", limit)
    seen, original = [], choose.solve

    def noted(problem, *arguments):
        seen.append(isinstance(problem.operator.codes, DeviceCodes))
        return original(problem, *arguments)

    monkeypatch.setattr("mbkl.learn.algorithm.solve", noted)
    model = MBKLClassifier(maps="stumps", n_maps=60, device="torch", calibration=None)
    model.fit(*make_data())
    assert seen == [where]


def test_a_search_and_probabilities(make_data):
    X, y = make_data(n_classes=3)
    model = MBKLClassifierCV(
        n_maps=40, cv=3, random_state=0, calibration="temperature", device="torch"
    ).fit(X, y)
    assert model.best_score_ > 0.5
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", ["tensor", "bytes", "memory map", "float32"])
def test_rows_of_many_kinds(kind, tmp_path):
    generator = np.random.default_rng(0)
    X = (generator.random((90, 4)) * 250).astype(np.uint8)
    y = (X[:, 0] > X[:, 1]).astype(int)
    expected = MBKLClassifier(maps="stumps", n_maps=80, random_state=0).fit(X.astype(float), y)
    given = X
    if kind == "tensor":
        given = torch.as_tensor(X)
    elif kind == "memory map":
        given = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.uint8, X.shape)
        given[:] = X
    elif kind == "float32":
        given = X.astype(np.float32)
    model = MBKLClassifier(maps="stumps", n_maps=80, random_state=0, device="torch")
    model.fit(given, y)
    assert np.array_equal(model.stump_thresholds_, expected.stump_thresholds_)
    assert np.array_equal(model.predict(given), expected.predict(X.astype(float)))


def test_missing_values_and_constant_columns(make_data):
    X, y = make_data()
    X[::3, 1], X[:, 2] = np.nan, 1.0
    on_cpu, on_device = (
        MBKLClassifier(n_maps=40, random_state=0, device=device).fit(X, y)
        for device in ("cpu", "torch")
    )
    assert np.array_equal(on_device.predict(X), on_cpu.predict(X))


def test_views_and_read_only_rows(make_data):
    X, y = make_data()
    model = MBKLClassifier(n_maps=40, random_state=0, device="torch").fit(X[::-1], y[::-1])
    frozen = X.copy()
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = model.decision_function(frozen)
    np.testing.assert_allclose(model.decision_function(X[::-1])[::-1], expected)


def test_repeated_rows_cost_what_they_do_on_the_cpu(make_data):
    X, y = make_data(n_rows=60)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    on_cpu, on_device = (
        MBKLClassifier(n_maps=40, random_state=0, device=device).fit(X, y)
        for device in ("cpu", "torch")
    )
    assert on_device.C_ == on_cpu.C_


def test_a_family_may_lose_all_its_maps():
    a, b = np.divmod(np.arange(256), 16)
    X, y = np.column_stack([a, b]).astype(float), (a + b) % 16
    model = MBKLClassifier(
        maps=["stumps", Ferns(depth=3)], theta="learned", C=1.0, n_maps=40, device="torch"
    )
    assert model.set_params(random_state=0).fit(X, y).n_maps_ > 0


def test_sparse_rows_are_refused(make_data):
    X, y = make_data()
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        MBKLClassifier(device="torch").fit(sparse.csr_array(X), y)


def test_a_missing_gpu_is_named(make_data, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="device='cuda' needs a GPU"):
        MBKLClassifier(device="cuda").fit(*make_data())


def test_a_model_of_a_gpu_predicts_without_one(make_data, monkeypatch):
    X, y = make_data()
    model = MBKLClassifier(n_maps=40, random_state=0, device="torch").fit(X, y)
    expected = model.decision_function(X)
    object.__setattr__(model.predictor_, "device", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)


def test_an_unknown_device_is_named(make_data):
    with pytest.raises(ValueError, match="'device' parameter"):
        MBKLClassifier(device="abacus").fit(*make_data())


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_high_costs_of_step_1(make_data, monkeypatch, loss):
    # Steps that are never long enough, so that the supports of the rows become variables.
    monkeypatch.setattr("mbkl.solvers.barrier._SHORT", np.inf)
    monkeypatch.setattr("mbkl.solvers.barrier._MOST_SHORT", 1)
    monkeypatch.setattr(limits, "FEW_PAIRS", 0)
    X, y = make_data(200, 4)
    on_cpu, on_device = (
        MBKLClassifier(
            maps="stumps", theta="learned", n_maps=100, loss=loss, random_state=0, device=device
        ).fit(X, y)
        for device in ("cpu", "torch")
    )
    assert on_device.gap_[0] <= 1e-3
    assert on_device.objective_[0] == pytest.approx(on_cpu.objective_[0], rel=1e-3)


# --- Growth, and devices by size ---


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_rows_grow_on_the_device(make_data, monkeypatch, n_classes):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH", 200)
    X, y = make_data(n_rows=400, n_classes=n_classes)
    seen = []
    original = DeviceGrowingRows.__init__

    def noted(self, *arguments):
        seen.append(True)
        original(self, *arguments)

    monkeypatch.setattr(DeviceGrowingRows, "__init__", noted)
    on_cpu, on_device = (
        MBKLClassifier(n_maps=10, random_state=0, device=device).fit(X, y)
        for device in ("cpu", "torch")
    )
    assert seen == [True]
    assert on_device.C_ == 0
    np.testing.assert_allclose(on_device.predict_proba(X), on_cpu.predict_proba(X), atol=0.02)


@pytest.fixture
def pretended_gpu(monkeypatch):
    """Let Torch on the CPU stand in for a GPU."""
    monkeypatch.setattr("mbkl.engine.device.has_gpu", lambda device: True)
    monkeypatch.setattr("mbkl.predictor.has_gpu", lambda device: True)
    for module in ("mbkl.estimator", "mbkl.predictor"):
        monkeypatch.setattr(f"{module}.device_of", lambda device: Device("cpu"))


@pytest.mark.usefixtures("pretended_gpu")
@pytest.mark.parametrize("device", ["auto", "cuda"])
@pytest.mark.parametrize("worth_it", [0, 10**9])
def test_a_gpu_is_for_many_codes(make_data, monkeypatch, device, worth_it):
    monkeypatch.setattr(limits, "CODES_ON_A_DEVICE", worth_it)
    monkeypatch.setattr("mbkl.predictor.CODES_TO_PREDICT_ON_A_DEVICE", worth_it)
    X, y = make_data(n_rows=300)
    model = MBKLClassifier(maps="stumps", n_maps=40, random_state=0, device=device)
    places = []
    original = DeviceRows.__init__

    def noted(self, *arguments, **keywords):
        places.append(True)
        original(self, *arguments, **keywords)

    monkeypatch.setattr(DeviceRows, "__init__", noted)
    model.fit(X, y)
    assert bool(places) == (worth_it == 0)
    places.clear()
    model.predict(X)
    assert bool(places) == (worth_it == 0)


def test_auto_without_a_gpu_is_the_cpu(make_data, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(limits, "CODES_ON_A_DEVICE", 0)
    X, y = make_data()
    for rows in (X, sparse.csr_array(X)):
        found, expected = (
            MBKLClassifier(n_maps=40, random_state=0, device=device).fit(rows, y)
            for device in ("auto", "cpu")
        )
        np.testing.assert_array_equal(
            found.decision_function(rows), expected.decision_function(rows)
        )


@pytest.mark.usefixtures("pretended_gpu")
@pytest.mark.parametrize("device", ["auto", "cuda", "torch"])
def test_mixtures_are_the_same_wherever_the_device_is(device, monkeypatch):
    monkeypatch.setattr(limits, "CODES_ON_A_DEVICE", 1)
    monkeypatch.setattr(limits, "GROWN_CODES_ON_A_DEVICE", 1)
    monkeypatch.setattr(limits, "ROWS_OF_MIXTURES", 200)
    X = np.random.default_rng(0).normal(size=(700, 3))
    y = (X[:, 0] * X[:, 1] > 0.1).astype(int)
    found, expected = (
        MBKLClassifier(n_maps=40, random_state=0, device=own).fit(X, y) for own in (device, "cpu")
    )
    assert expected.grown_share_ > 0
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    # Torch may add up the tables of a row in another order.
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X))


@pytest.mark.usefixtures("pretended_gpu")
def test_bytes_that_are_few_are_learned_from_on_the_cpu():
    X = (np.random.default_rng(0).random((90, 4)) * 250).astype(np.uint8)
    y = (X[:, 0] > X[:, 1]).astype(int)
    found, expected = (
        MBKLClassifier(n_maps=40, random_state=0, device=device).fit(X, y)
        for device in ("cuda", "cpu")
    )
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))


# --- Numbers ---

LOSSES = ["squared_error", "absolute_error", "quantile", "poisson"]


@pytest.fixture
def numbers(make_data):
    X, _ = make_data(n_rows=300)
    return X, np.exp(0.3 * (X[:, 0] * X[:, 1] + X[:, 2]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("maps", ["grown", ["stumps", "ferns"]], ids=str)
def test_regression_is_that_of_the_cpu(numbers, monkeypatch, loss, maps):
    monkeypatch.setattr(limits, "ROWS_OF_A_PART", 8)
    n_rows = 300 if maps == "grown" else 120
    X, y = (each[:n_rows] for each in numbers)
    on_cpu, on_device = (
        MBKLRegressor(
            loss=loss, quantile=0.8, maps=maps, n_maps=20, random_state=0, device=device
        ).fit(X, y)
        for device in ("cpu", "torch")
    )
    assert on_device.n_held_out_ == on_cpu.n_held_out_ > 0
    spread = y.std()
    np.testing.assert_allclose(on_device.predict(X), on_cpu.predict(X), 0.02, 0.05 * spread)
    np.testing.assert_allclose(on_device.residuals_, on_cpu.residuals_, atol=0.1 * spread)


@pytest.mark.parametrize("limit", [200, 1_000])
def test_numbers_grow_and_are_mixed_on_the_device(numbers, monkeypatch, limit):
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH_FOR_NUMBERS", limit)
    monkeypatch.setattr(limits, "FEW_ROWS_GRAM", 4_000)
    X, y = numbers
    targets = np.column_stack([y, -y])
    on_cpu, on_device = (
        MBKLRegressor(n_maps=12, random_state=0, device=device).fit(X, targets)
        for device in ("cpu", "torch")
    )
    assert on_device.grown_share_ == on_cpu.grown_share_ > 0
    found, expected = (model.predict_interval(X, coverage=0.8) for model in (on_device, on_cpu))
    np.testing.assert_allclose(found, expected, atol=0.05 * y.std())


@pytest.mark.usefixtures("pretended_gpu")
@pytest.mark.parametrize("worth_it", [0, 10**9])
def test_many_numbers_are_for_a_gpu(numbers, monkeypatch, worth_it):
    monkeypatch.setattr(limits, "GROWN_CODES_ON_A_DEVICE", worth_it)
    monkeypatch.setattr(limits, "ROWS_OF_GROWTH_FOR_NUMBERS", 200)
    places = []
    original = DeviceGrowingRows.__init__

    def noted(self, *arguments):
        places.append(True)
        original(self, *arguments)

    monkeypatch.setattr(DeviceGrowingRows, "__init__", noted)
    MBKLRegressor(n_maps=5, device="auto").fit(*numbers)
    assert bool(places) == (worth_it == 0)
