"""Grown ferns: thresholds, what they find, when they end, and the same bits whatever the way."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from mbkl.engine import limits, twins
from mbkl.engine.rows import ArrayRows, as_rows
from mbkl.engine.twins import TWINS
from mbkl.maps import GrownFerns
from mbkl.maps.growing_rows import RESIDUAL_BITS, SAMPLE_UNIT
from mbkl.maps.grown_ferns import (
    FeatureGains,
    GrownMaps,
    Growth,
    HeldOutGains,
    HeldOutRidges,
)
from mbkl.maps.growth_losses import Targets
from mbkl.maps.numbers import Numbers
from mbkl.maps.stumps import fine_stumps


def sample(n_rows=300, n_features=4, n_classes=2, missing=0.0, seed=0):
    """Return rows of few digits, and classes that depend on two features together."""
    generator = np.random.default_rng(seed)
    X = np.round(generator.normal(size=(n_rows, n_features)) * 64) / 64
    y = 1 * (X[:, 0] * X[:, 1] > 0) + (n_classes > 2) * (X[:, 2] > 0.5)
    X[generator.random(X.shape) < missing] = np.nan
    return X, y


def grow(X, y, n_maps=20, seed=0, weights=None, loops=TWINS, n_classes=None, **parameters):
    weights = np.ones(X.shape[0]) if weights is None else weights
    rows = replace(as_rows(X), loops=loops)
    progress = parameters.pop("progress", lambda state: False)
    n_classes = int(y.max()) + 1 if n_classes is None else n_classes
    targets = Targets(y, n_classes, weights)
    family = GrownFerns(**{"n_growths": 1, **parameters})
    return family.grow(rows, targets, n_maps, seed, progress)


def scores_of(maps, X):
    return maps.intercept + maps.score(replace(as_rows(X), loops=TWINS), maps.path)


def accuracy(maps, X, y):
    scores = scores_of(maps, X)
    found = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    return float((found == y).mean())


@pytest.fixture(scope="module")
def compiled():
    """Compiled loops on two threads, for tests with more rows."""
    from mbkl.engine.compiled import Compiled

    return Compiled(2)


def bits(maps: GrownMaps) -> dict:
    return {each.name: np.asarray(getattr(maps, each.name)).tobytes() for each in fields(maps)}


# --- Tables ---


def test_a_step_is_shrunk_towards_that_of_the_cell_above():
    sums = np.random.default_rng(0).normal(size=(8, 2, 2))
    sums[..., 1] = np.abs(sums[..., 1])
    sums[3] = 0.0  # a cell without rows has the step of the one above
    found, *_ = twins.TWINS.newton_steps(np.concatenate([sums, sums]), (0.7,))
    for cell in range(8):
        step = np.zeros(2)
        for level in range(4):
            first = cell >> (3 - level) << (3 - level)
            gradient, curvature = sums[first : first + 2 ** (3 - level)].sum(axis=0).T
            step = step - (gradient + curvature * step) / (curvature + 0.7)
        np.testing.assert_allclose(found[cell], step, rtol=1e-12)


def test_the_rate_is_the_share_of_a_step():
    X, y = sample()
    slow, fast = (grow(X, y, n_maps=1, rate=rate, validation_share=0) for rate in (0.1, 0.4))
    np.testing.assert_array_equal(slow.features, fast.features)
    np.testing.assert_allclose(4 * slow.path, fast.path, rtol=1e-6)


def test_gains_on_held_out_rows_are_what_the_quadratic_model_gains():
    generator = np.random.default_rng(0)
    sums, other = np.abs(generator.normal(size=(2, 4, 1, 2)))
    _, gains, _ = twins.TWINS.newton_steps(np.concatenate([sums, other]), (1.0,))
    assert gains.shape == (3,)
    # The first level is one step for all rows.
    step = -sums[..., 0].sum() / (sums[..., 1].sum() + 1.0)
    np.testing.assert_allclose(gains[0], -step * other[..., 0].sum())


def test_depth_follows_the_gains():
    gains = HeldOutGains(2, 5)
    assert gains.depth == 2
    gains.add(1.0 * np.eye(6)[1])
    gains.add(1.0 * np.eye(6)[2])
    assert gains.depth == 3
    gains.add(1.0 * np.eye(6)[3])
    assert gains.depth == 4
    gains.add(-5.0 * np.eye(6)[4])  # a loss on rows that took no part
    assert gains.depth == 4
    gains.add(50.0 * np.eye(6)[4])
    assert gains.depth == 5
    gains.add(50.0 * np.eye(6)[5])
    assert gains.depth == 5  # the most
    assert HeldOutGains(6, 3).depth == 3


def test_more_is_shrunk_where_held_out_rows_say_so():
    ridges = HeldOutRidges("auto", 0.25, 5_000)
    assert np.divide(ridges.values, 0.25 * 5).tolist() == [1, 4, 16, 64]
    assert ridges.best == 0
    # Half the slope with a quarter of the curvature is as good a direction; with less, a better.
    ridges.add(np.array([[4.0, 16.0], [2.0, 3.9], [1.0, 4.0], [-1.0, 0.1]]))
    assert ridges.best == 1
    for _ in range(100):  # what was long ago is forgotten
        ridges.add(np.array([[1.0, 1.0], [1.0, 1.0], [1.1, 1.0], [1.0, 1.0]]))
    assert ridges.best == 2


@pytest.mark.parametrize(("wanted", "n_held_out"), [("auto", 4_999), (8.0, 10_000)])
def test_few_rows_do_not_tell_and_numbers_are_taken_as_they_are(wanted, n_held_out):
    ridges = HeldOutRidges(wanted, 0.5, n_held_out)
    assert ridges.values == [(5.0 if wanted == "auto" else wanted) * 0.5]
    ridges.add(np.array([[-1.0, 1.0]]))
    assert ridges.best == 0


def test_noise_is_shrunk_and_structure_is_not():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(52_000, 4)).astype(np.float32)
    signal = np.sign(X[:, 0] * X[:, 1])
    found = []
    for noise in (0.1, 8.0):
        y = signal + noise * generator.normal(size=len(X))
        numbers, levels = Numbers.of(y, np.ones(len(X)), "squared_error")
        targets = Targets(levels, len(numbers.values), np.ones(len(X)), numbers)
        used: list[int] = []

        def note(state, used=used):
            used.append(state.ridges.best)

        GrownFerns().grow(ArrayRows(X), targets, 30, 0, note)
        found.append(np.mean(used))
    assert found[0] < found[1]


# --- The same bits ---


@pytest.fixture
def small_blocks(monkeypatch):
    """Make blocks of rows so small that a few hundred rows have several."""
    monkeypatch.setattr(twins, "VALUES_OF_A_BLOCK", 64)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("objective", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("sample_rows", ["auto", 40])
def test_twins_and_threads_grow_the_same(
    small_blocks, make_compiled, n_classes, objective, sample_rows
):
    X, y = sample(500, n_classes=n_classes, missing=0.05)
    weights = np.random.default_rng(1).exponential(size=500)
    parameters = {"objective": objective, "sample_rows": sample_rows, "weights": weights}
    expected = bits(grow(X, y, **parameters))
    for n_threads in (1, 2, 3):
        assert bits(grow(X, y, loops=make_compiled(n_threads), **parameters)) == expected


@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(seed):
    X, y = sample(160, n_classes=3, missing=0.05)
    X[80:120] = X[:40]  # equal rows, some of them of other classes
    weights = np.random.default_rng(1).exponential(size=160)
    order = np.random.default_rng(seed).permutation(160)
    expected = bits(grow(X, y, n_maps=6, weights=weights, sample_rows=30))
    found = grow(X[order], y[order], n_maps=6, weights=weights[order], sample_rows=30)
    assert bits(found) == expected


@pytest.mark.parametrize("seed", range(8))
def test_which_rows_share_a_block_does_not_matter(small_blocks, seed):
    """The largest residual is that of a row with its own weight."""
    X, y = sample(300)
    weights = np.random.default_rng(1).exponential(size=300) ** 3
    order = np.random.default_rng(seed).permutation(300)
    expected = bits(grow(X, y, n_maps=6, weights=weights))
    assert bits(grow(X[order], y[order], n_maps=6, weights=weights[order])) == expected


@pytest.mark.parametrize(
    "form",
    [np.float32, np.asfortranarray, sparse.csr_array, sparse.csc_array, sparse.csr_matrix],
    ids=lambda form: form.__name__,
)
@pytest.mark.parametrize("n_rows", [100, 2000])
def test_the_form_of_the_rows_does_not_matter(form, n_rows):
    X, y = sample(n_rows, missing=0.02)
    X[np.abs(X) < 0.7] = 0.0
    weights = 1.0 + np.arange(n_rows) % 3
    expected = bits(grow(X, y, n_maps=8, weights=weights))
    assert bits(grow(form(X), y, n_maps=8, weights=weights)) == expected


def test_another_seed_grows_other_ferns():
    X, y = sample(500)
    assert bits(grow(X, y, seed=1, sample_rows=40)) != bits(grow(X, y, seed=2, sample_rows=40))


# --- What they find ---

PROBLEMS = {
    "one feature": lambda X: X[:, 3] > 0.3,
    "exclusive or": lambda X: X[:, 0] * X[:, 1] > 0,
    "checkerboard": lambda X: (np.floor(X[:, 0]) + np.floor(X[:, 1])) % 2,
    "parity of three": lambda X: X[:, :3].prod(axis=1) > 0,
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_interactions_among_noise_are_found(compiled, name):
    X = np.random.default_rng(0).normal(size=(8000, 6)).astype(np.float32)
    y = PROBLEMS[name](X).astype(int)
    maps = grow(X[:4000], y[:4000], loops=compiled, n_maps=300)
    assert accuracy(maps, X[4000:], y[4000:]) > 0.95


def test_more_classes_than_one_fern_looks_at(compiled):
    generator = np.random.default_rng(0)
    centres = 10 * generator.normal(size=(12, 3))
    y = np.arange(3000) % 12
    X = centres[y] + generator.normal(size=(3000, 3))
    maps = grow(X[:2000], y[:2000], loops=compiled, n_maps=120)
    assert maps.path.shape[1] == 12
    assert accuracy(maps, X[2000:], y[2000:]) > 0.95


def test_more_features_than_one_fern_asks(compiled):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(2000, 150))
    y = (X[:, 140] + X[:, 3] > 0).astype(int)
    maps = grow(X[:1500], y[:1500], loops=compiled, n_maps=100)
    assert accuracy(maps, X[1500:], y[1500:]) > 0.9
    asked = np.bincount(maps.features, minlength=150)
    assert asked[[3, 140]].min() > np.delete(asked, [3, 140]).max()


def test_noise_ends_early(compiled):
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(3000, 5)), generator.integers(2, size=3000)
    maps = grow(X, y, loops=compiled, n_maps=500)
    assert maps.n_rounds < 100
    assert maps.n_maps <= 5
    # What few are kept say little.
    assert np.abs(scores_of(maps, X)).mean() < 0.2


def test_patience_is_how_long_growth_goes_on_without_progress():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(500, 5)), generator.integers(2, size=500)
    rounds = [grow(X, y, n_maps=200, patience=patience).n_rounds for patience in (3, 30)]
    assert rounds[1] - rounds[0] >= 20


def test_rows_that_took_no_part_count_in_the_end():
    """Tables are filled again from all rows: a row more or less changes them."""
    X, y = sample(500)
    maps = grow(X, y, n_maps=5)
    np.testing.assert_allclose(maps.intercept, np.log(y.mean() / (1 - y.mean())), rtol=1e-5)


def test_missing_values_are_told_from_all_others(compiled):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(1000, 3))
    X[generator.random(X.shape) < 0.3] = np.nan
    y = (np.isnan(X[:, 0]) ^ np.isnan(X[:, 1])).astype(int)
    assert accuracy(grow(X, y, loops=compiled, n_maps=80), X, y) > 0.95


def test_squared_hinge_separates_too(compiled):
    X, y = sample(1500)
    maps = grow(X[:1000], y[:1000], loops=compiled, n_maps=100, objective="squared_hinge")
    assert accuracy(maps, X[1000:], y[1000:]) > 0.95


@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_few_different_rows_are_learned(compiled, n_features):
    generator = np.random.default_rng(0)
    X = generator.integers(2, size=(4000, n_features)).astype(float)
    y = (generator.random(4000) < np.where(X[:, 0] > 0, 0.9, 0.1)).astype(int)
    assert (
        min(accuracy(grow(X, y, loops=compiled, n_maps=50, seed=seed), X, y) for seed in range(8))
        > 0.85
    )


def test_a_rare_class_is_learned(compiled):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20_000, 5)).astype(np.float32)
    tendency = X[:, 0] + X[:, 1] + 0.3 * generator.normal(size=20_000)
    y = (tendency > np.quantile(tendency, 0.995)).astype(int)
    scores = scores_of(grow(X, y, loops=compiled, n_maps=60), X)[:, 0]
    assert np.median(scores[y == 1]) > np.quantile(scores[y == 0], 0.95)


# --- Sizes and limits ---


@pytest.mark.parametrize("n_ferns", [1, 7])
def test_the_number_of_ferns_is_kept(n_ferns):
    X, y = sample()
    family = GrownFerns(n_ferns=n_ferns)
    assert family.default_n_maps(X.shape) == n_ferns
    assert grow(X, y, n_maps=n_ferns).n_maps == n_ferns


@pytest.mark.parametrize("depth", [1, 3, 14])
def test_the_depth_is_kept(depth):
    X, y = sample(400)
    maps = grow(X, y, n_maps=5, depth=depth)
    depths = np.diff(maps.offsets)
    assert depths.max() <= depth
    assert depths.min() >= min(depth, 6)
    assert (maps.n_raw == 2**depths).all()


def test_ferns_are_deep_only_where_there_are_rows_for_it():
    X, y = sample(600)
    assert np.diff(grow(X, y, n_maps=40).offsets).max() <= 6


def test_stumps_are_chosen_on_as_many_rows_as_asked(monkeypatch):
    X, y = sample(3000)
    seen = []
    original = twins.Twins.choose_stumps

    def noted(self, codes, *others):
        seen.append(codes.shape[1])
        return original(self, codes, *others)

    monkeypatch.setattr(twins.Twins, "choose_stumps", noted)
    grow(X, y, n_maps=10, sample_rows=200)
    assert 150 < np.mean(seen) < 250
    seen.clear()
    grow(X, y, n_maps=2, sample_rows=10_000, validation_share=0)
    assert set(seen) == {3000}


def test_sums_of_the_largest_sample_fit_in_32_bits():
    """Curvatures have 14 bits, of which two are dropped; rows are drawn from six times as many."""
    most = 150_000
    GrownFerns(sample_rows=most)._validate_params()
    assert 1.5 * Growth._SHARE_BY_SAMPLE * most * 2**RESIDUAL_BITS / SAMPLE_UNIT < 2**32
    assert limits.ROWS_OF_A_FERN[1] <= most


def test_without_held_out_rows_all_ferns_are_kept():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(300, 3)), generator.integers(2, size=300)
    maps = grow(X, y, n_maps=60, validation_share=0, patience=2)
    assert (maps.n_maps, maps.n_rounds) == (60, 60)


@pytest.mark.parametrize("validation_share", [0, 0.2])
def test_growth_that_is_told_to_end_keeps_what_it_has(validation_share):
    X, y = sample(500)
    ended = grow(X, y, progress=lambda state: state.n_iter == 5, validation_share=validation_share)
    assert (ended.n_maps, ended.n_rounds) == (5, 5)
    whole = grow(X, y, validation_share=validation_share)
    assert whole.n_maps > 5
    for name in ("features", "thresholds"):
        own = getattr(ended, name)
        np.testing.assert_array_equal(own, getattr(whole, name)[: own.size])


def test_growth_that_does_not_come_to_its_end_takes_larger_steps():
    X, y = sample(500)
    rates = []
    grow(
        X,
        y,
        n_maps=10,
        validation_share=0,
        progress=lambda state: rates.append(state._rate(state.n_iter)),
    )
    np.testing.assert_allclose(rates, [0.2] * 5 + [0.4] + [0.6] * 4)


@pytest.mark.parametrize("n_ferns", [5, 6, 8])
def test_ferns_that_are_chosen_together_are_added_before_growth_ends(monkeypatch, n_ferns):
    monkeypatch.setattr(limits, "FEW_ROWS_OF_GROWTH", 10)
    X, y = sample(500)
    assert grow(X, y, n_maps=n_ferns, validation_share=0).n_rounds == n_ferns
    seen = []

    def stop(state):
        seen.append(state.n_iter)
        return state.n_iter == n_ferns

    ended = grow(X, y, n_maps=40, progress=stop)
    assert seen == list(range(1, n_ferns + 1))
    assert ended.n_rounds == 8


def test_features_that_gain_more_are_asked_more_often():
    feature_gains, generator = FeatureGains(100), np.random.default_rng(0)
    features = np.arange(100)
    for _ in range(100):
        asked = feature_gains.draw_asked(features, 1, generator)[0]
        assert len(np.unique(asked)) == 32
        feature_gains.update(asked[None], np.where(asked < 10, 1.0, 0.01)[None])
    assert ((feature_gains.draw_asked(features, 3, generator) < 10).sum(axis=1) >= 8).all()
    few = np.arange(8)
    np.testing.assert_array_equal(feature_gains.draw_asked(few, 2, generator), [few, few])
    feature_gains.update(few[None], np.zeros((1, 8)))  # nothing gained tells nothing


def test_what_a_stump_promises_is_what_it_adds():
    feature_gains, features = FeatureGains(3), np.array([[0, 1], [1, 2]])
    feature_gains.update(features, np.array([[4.0, 2.0], [4.0, 6.0]]))
    np.testing.assert_allclose(feature_gains._shares, [1.0, 0.9 * 0.95, 1.0])


def test_growth_says_where_it_stands():
    X, y = sample(500)
    said = []
    grow(X, y, n_maps=5, progress=lambda state: said.append((state.n_iter, state.standing)))
    assert [number for number, _ in said] == [1, 2, 3, 4, 5]
    losses = [float(text.removeprefix("loss of held-out rows ")) for _, text in said]
    assert losses[-1] < losses[0] < np.log(2)


@pytest.mark.parametrize("n_rows", [2, 5])
@pytest.mark.parametrize("validation_share", [0.1, 0.5])
def test_tiny_data(n_rows, validation_share):
    X, y = sample(n_rows)[0], np.arange(n_rows) % 2
    with np.errstate(all="raise", under="ignore"):
        for seed in range(6):
            maps = grow(X, y, n_maps=5, seed=seed, validation_share=validation_share)
            assert np.isfinite(scores_of(maps, X)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_equal_rows_have_the_shares_of_the_classes(n_classes):
    X, y = np.ones((30, 3)), np.minimum(np.arange(30) % 5, n_classes - 1)
    for seed in range(5):
        maps = grow(X, y, seed=seed)
        assert maps.n_maps == 0
        chances = np.bincount(y) / 30
        expected = np.log(chances) if n_classes > 2 else np.log(chances[1:] / chances[0])
        np.testing.assert_allclose(scores_of(maps, X), np.tile(expected, (30, 1)), rtol=1e-5)
        assert maps.prior().shape == (0,)


def test_constant_columns_are_never_asked():
    X, y = sample(300, n_features=3)
    X = np.column_stack([np.ones(300), X, np.full(300, np.nan)])
    assert fine_stumps(as_rows(X), np.ones(300), 0)[0].features.tolist() == [1, 2, 3]
    maps = grow(X, y)
    assert set(maps.features) <= {1, 2, 3}
    assert accuracy(maps, X, y) > 0.95


def test_one_feature(compiled):
    X = np.random.default_rng(0).normal(size=(400, 1))
    y = (np.abs(X[:, 0]) > 0.7).astype(int)
    assert accuracy(grow(X, y, loops=compiled, n_maps=60), X, y) > 0.97


def test_a_class_that_only_held_out_rows_have():
    X, y = sample(200, n_classes=3)
    for row in range(10):
        rare = np.where(np.arange(200) == row, 3, y)
        assert np.isfinite(grow(X, rare, n_maps=3).path).all()


def test_heavy_rows_are_no_trouble():
    X, y = sample(400)
    weights = np.ones(400)
    weights[:3] = 1e8
    maps = grow(X, y, weights=weights, validation_share=0)
    assert np.isfinite(maps.path).all()
    assert accuracy(maps, X[:3], y[:3]) == 1.0


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_scale_of_the_weights_does_not_matter(scale):
    X, y = sample(400)
    scale = 2.0 ** np.round(np.log2(scale))  # so that the shares of rows are the same bits
    weights = 1.0 + np.arange(400) % 4
    assert bits(grow(X, y, weights=scale * weights)) == bits(grow(X, y, weights=weights))


# --- The maps ---


def test_equal_cells_share_a_number():
    X, y = sample(60)
    maps = grow(X, y, n_maps=4)
    for fern in range(maps.n_maps):
        table = maps.path[maps.cell_offsets[fern] : maps.cell_offsets[fern + 1]]
        assert len(np.unique(table, axis=0)) == len(table)
        first = maps.raw_offsets[fern]
        numbers = maps.numbers[first : first + maps.n_raw[fern]]
        assert set(numbers) == set(range(len(table)))


def test_prior_weights_are_squared_norms():
    X, y = sample(300, n_classes=3)
    maps = grow(X, y, n_maps=6)
    tables = np.split(maps.path, maps.cell_offsets[1:-1])
    np.testing.assert_allclose(maps.prior(), [(table**2).sum() for table in tables])


def test_the_plain_ferns_have_the_same_cells():
    X, y = sample(300)
    maps = grow(X, y)
    plain = maps.plain()
    assert not isinstance(plain, GrownMaps)
    np.testing.assert_array_equal(maps.codes(as_rows(X)).values, plain.codes(as_rows(X)).values)


def test_tables_are_near_the_scores_that_were_grown():
    """What is returned is the sum that growth ended with."""
    X, y = sample(500, n_classes=3)
    ended = []
    maps = grow(X, y, n_maps=9, validation_share=0, progress=lambda state: ended.append(state))
    np.testing.assert_allclose(scores_of(maps, X), ended[-1]._rows._scores, rtol=1e-4, atol=1e-5)


# --- Parameters ---


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("depth", value) for value in (0, 15)),
        ("n_ferns", 0),
        *(("rate", value) for value in (0, -0.1, 1.5, np.nan)),
        *(("sample_rows", value) for value in (1, 1_000_000)),
        *(("ridge", value) for value in (0, -1.0, np.nan)),
        *(("validation_share", value) for value in (-0.1, 0.6, np.nan)),
        ("patience", 0),
        *(("objective", value) for value in ("hinge", None)),
    ],
)
def test_errors_name_the_parameter(name, value):
    X, y = sample(40)
    with pytest.raises(ValueError, match=f"'{name}' parameter of GrownFerns must be"):
        grow(X, y, **{name: value})


def test_parameters_survive_a_clone():
    family = GrownFerns(depth=3, rate=0.3, patience=5)
    assert clone(family).get_params() == family.get_params()
    assert repr(family) == "GrownFerns(depth=3, patience=5, rate=0.3)"


# ------------------------------------------------------------- several growths


def test_several_growths_are_averaged_and_differ():
    X, y = sample(400)
    one, two = (grow(X, y, 20 * count, n_growths=count) for count in (1, 2))
    n_first = one.n_maps
    np.testing.assert_array_equal(two.thresholds[: one.thresholds.size], one.thresholds)
    np.testing.assert_array_equal(two.path[: len(one.path)], one.path / 2)
    assert two.n_maps > n_first
    assert two.n_rounds > one.n_rounds
    second = two.path[len(one.path) :]
    assert len(second) != len(one.path) or not np.array_equal(second, one.path / 2)


def test_the_mean_of_growths_is_better_on_new_rows():
    X, y = sample(4000, seed=1)
    noisy = np.where(np.random.default_rng(2).random(4000) < 0.2, 1 - y, y)
    means = [
        np.mean(
            [
                accuracy(
                    grow(X[:500], noisy[:500], 60 * count, seed, n_growths=count), X[500:], y[500:]
                )
                for seed in range(3)
            ]
        )
        for count in (1, 4)
    ]
    assert means[1] > means[0]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_growths_side_by_side_are_those_in_turn(n_threads):
    from mbkl.engine.compiled import Compiled

    X, y = sample(600, n_classes=3, missing=0.1)
    expected = grow(X, y, n_growths=3)
    found = grow(X, y, n_growths=3, loops=Compiled(n_threads))
    for each in fields(GrownMaps):
        if each.name != "sets":
            np.testing.assert_array_equal(getattr(found, each.name), getattr(expected, each.name))


def test_no_growth_begins_after_the_end_and_unfinished_ones_do_not_count():
    X, y = sample(500)
    complete = grow(X, y, n_growths=1)
    told = iter(range(10**6))

    def stop_in_the_second(state):
        return next(told) >= complete.n_rounds + 3

    found = grow(X, y, 80, n_growths=4, progress=stop_in_the_second)
    np.testing.assert_array_equal(found.path, complete.path)
    first = grow(X, y, n_growths=4, progress=lambda state: True)
    assert first.n_rounds == 1


def test_an_error_in_one_growth_ends_the_others(compiled):
    X, y = sample(500)
    told = []

    def fail(state):
        told.append(state)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grow(X, y, n_growths=2, progress=fail, loops=compiled)
    assert len(told) <= 2


@pytest.mark.parametrize(
    ("n_rows", "expected"), [(100, 4), (6_000, 4), (7_000, 3), (19_999, 2), (20_000, 1), (0, 4)]
)
def test_few_rows_are_grown_on_several_times(n_rows, expected):
    assert GrownFerns()._growths_of(n_rows) == expected
    assert GrownFerns().default_n_maps((n_rows, 5)) == 1_000 * expected


def test_few_ferns_are_those_of_one_growth():
    X, y = sample(300)
    one, auto = (grow(X, y, 20, n_growths=count) for count in (1, "auto"))
    np.testing.assert_array_equal(one.path, auto.path)


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", None])
def test_n_growths_has_to_be_a_positive_number(value):
    X, y = sample(50)
    with pytest.raises(ValueError, match="n_growths"):
        grow(X, y, n_growths=value)


def test_no_more_ferns_than_asked_for_whatever_the_growths():
    X, y = sample(300)
    assert grow(X, y, 1, n_growths=4).n_rounds == 1


def test_growths_with_very_many_levels_do_not_wait_for_each_other(monkeypatch):
    from mbkl.engine import compiled as module

    monkeypatch.setattr(module, "SMALLEST_SHARE", 1)  # all loops are for all threads
    X, y = sample(900)
    X[:, 3] = np.arange(900) % 300
    n_levels = np.array([0, 0, 0, 300])
    rows, targets = as_rows(X), Targets(y, 2, np.ones(900))
    found = [
        GrownFerns(n_growths=3).grow(replace(rows, loops=loops), targets, 30, 0, n_levels=n_levels)
        for loops in (TWINS, module.Compiled(2))
    ]
    np.testing.assert_array_equal(found[0].path, found[1].path)


def test_a_callback_that_fails_ends_growths_side_by_side(compiled):
    X, y = sample(500)
    told = []

    def fail(state):
        told.append(state)
        if len(told) == 5:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        grow(X, y, 80, n_growths=4, progress=fail, loops=compiled)
    assert len(told) == 5


# --- Very many features ---


def test_features_that_promise_more_are_seen_more_often():
    feature_gains, generator = FeatureGains(1_000), np.random.default_rng(0)
    gains = np.full(1_000, 5.0)
    gains[:10] = 50.0
    feature_gains.restart(gains)
    seen = np.array([feature_gains.draw_features(100, generator) for _ in range(50)])
    assert (np.diff(seen, axis=1) > 0).all()
    assert (seen < 10).sum(axis=1).mean() > 8
    assert len(np.unique(seen)) > 900  # the others have a chance
    feature_gains.restart(np.full(1_000, 3.0))  # which says nothing
    assert (feature_gains.draw_features(100, generator) < 10).sum() > 4


@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_features_of_very_many_are_found(compiled, n_classes):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(3000, 1500)).astype(np.float32)
    y = (X[:, 700] + X[:, 20] > 0) + (n_classes > 2) * (X[:, 3] > 0.5)
    maps = grow(X[:2000], y[:2000].astype(int), loops=compiled, n_maps=80, n_classes=n_classes)
    asked = np.bincount(maps.features, minlength=1500)
    assert set(np.argsort(asked)[-2:]) <= {700, 20, 3}
    assert accuracy(maps, X[2000:], y[2000:]) > 0.9


def test_very_many_features_give_the_same_bits(make_compiled):
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(300, 700)), 1)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    order = generator.permutation(300)
    expected = bits(grow(X, y, n_maps=40))
    assert bits(grow(X[order], y[order], n_maps=40)) == expected
    for n_threads in (1, 2):
        assert bits(grow(X, y, n_maps=40, loops=make_compiled(n_threads))) == expected
