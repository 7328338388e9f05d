"""Several families of maps in one model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mbkl import MBKLClassifier
from mbkl.cells import Block, Operator
from mbkl.engine.rows import ArrayRows, as_rows
from mbkl.engine.twins import TWINS
from mbkl.maps import Ferns, GrownFerns, Projections, Stumps
from mbkl.maps.choose import Choice
from mbkl.maps.families import (
    Plan,
    Targets,
    draw_all,
    families_of,
    mean_growth,
    plans_of,
    plans_of_choice,
)
from mbkl.maps.stumps import StumpMaps

COMBINATIONS = {
    "stumps": [Stumps()],
    "ferns": [Ferns(depth=3)],
    "stumps and ferns": [Stumps(), Ferns(depth=3)],
    "all": [Ferns(depth=3), Projections(), Stumps(), Ferns(depth=9, max_cells=16)],
}
EVERY_COMBINATION = pytest.mark.parametrize("families", COMBINATIONS.values(), ids=COMBINATIONS)


def sample(n_rows=70, n_features=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def unlabelled(n_rows):
    """Return what random maps need of the targets: weights."""
    return Targets(None, 0, np.ones(n_rows))


def rows_of(X, loops=TWINS):
    """Return the rows of a matrix, dense or sparse."""
    return replace(as_rows(X), loops=loops)


def draw(X, families, n_maps=30, loops=TWINS):
    """Return the maps of several families, and their operator."""
    plans = [Plan(family, n_maps) for family in families]
    return draw_all(plans, rows_of(X, loops), unlabelled(len(X)), 0)[:2]


def operator_on(maps, X, loops=TWINS):
    """Return the operator of maps on other rows than they were drawn for."""
    pairs = zip(maps.codes(rows_of(X, loops)), maps.families, strict=True)
    return Operator(tuple(Block(codes, own.cells) for codes, own in pairs))


def weights_of(maps, n_columns=3):
    """Return random weights, one for every stump and every cell of a fern."""
    n_weights = sum(int(part.cells.spread(part.cells.is_map).sum()) for part in maps.families)
    return np.random.default_rng(1).normal(size=(n_weights, n_columns))


# --- families_of ---


def test_names_and_instances_are_families():
    ferns = Ferns(depth=3)
    assert families_of(ferns) == [ferns]
    kinds = {"stumps": Stumps, "ferns": Ferns, "projections": Projections}
    for name, kind in kinds.items():
        (family,) = families_of(name)
        assert type(family) is kind
    assert [type(family) for family in families_of(["stumps", ferns])] == [Stumps, Ferns]
    assert families_of(("stumps", [ferns]))[1] is ferns


@pytest.mark.parametrize("maps", [[], ()])
def test_an_empty_list_is_refused(maps):
    with pytest.raises(ValueError, match="maps is an empty list"):
        families_of(maps)


@pytest.mark.parametrize("maps", ["trees", 5, None, Stumps, ["stumps", "trees"], {}, [{}]])
def test_what_is_no_family_is_refused(maps):
    with pytest.raises(ValueError, match="maps must be"):
        families_of(maps)


# --- MapSet ---


@EVERY_COMBINATION
def test_counts_are_sums_over_the_families(families):
    maps, operator = draw(sample(), families)
    assert maps.n_maps == sum(part.n_maps for part in maps.families) == operator.is_map.sum()
    assert maps.n_groups == maps.group_features.size
    assert len(operator.blocks) == len(maps.families) == len(families)
    assert maps.n_codes(1000) == 1000 * maps.n_groups
    assert maps.is_ordered == (not operator.is_cell.any())
    ferns = [part for part in maps.families if not part.is_ordered]
    assert len(maps.ferns) == sum(part.n_maps for part in ferns)
    stumps = [part for part in maps.families if isinstance(part, StumpMaps)]
    assert maps.stump_features.size == sum(part.n_maps for part in stumps)
    assert maps.stump_features.size == maps.stump_thresholds.size


@EVERY_COMBINATION
def test_tables_and_score_agree_with_the_operator(loops, families):
    X = sample()
    maps, operator = draw(X, families, loops=loops)
    weights = weights_of(maps)
    everywhere = np.zeros((operator.n_columns, 3))
    everywhere[operator.spread(operator.is_map)] = weights
    tables = maps.tables(weights)
    np.testing.assert_allclose(
        maps.score(rows_of(X, loops), tables), operator.forward(everywhere), atol=1e-10
    )
    new = sample(20, seed=1)
    operator = operator_on(maps, new, loops)
    np.testing.assert_allclose(
        maps.score(rows_of(new, loops), tables), operator.forward(everywhere), atol=1e-10
    )
    np.testing.assert_allclose(
        maps.score(rows_of(new, loops), tables), operator.dense() @ everywhere, atol=1e-10
    )


def test_sparse_rows_are_scored_the_same(loops):
    X = sample()
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    maps, _ = draw(X, COMBINATIONS["all"])
    tables = maps.tables(weights_of(maps))
    for form in (sparse.csr_array, sparse.csc_array):
        np.testing.assert_allclose(
            maps.score(rows_of(form(X), loops), tables),
            maps.score(rows_of(X, loops), tables),
            atol=1e-10,
        )


@EVERY_COMBINATION
@pytest.mark.parametrize("share_kept", [0.0, 0.3, 1.0])
def test_select_agrees_with_the_operator(families, share_kept):
    X = sample()
    maps, operator = draw(X, families)
    kept = np.random.default_rng(2).random(maps.n_maps) < share_kept
    part = maps.select(kept)
    assert part.n_maps == kept.sum()
    slots = np.zeros(operator.n_slots, dtype=bool)
    slots[operator.is_map] = kept
    own = operator_on(part, X)
    columns = operator.spread(slots)
    expected = operator.dense()[:, columns]
    np.testing.assert_array_equal(own.dense()[:, own.spread(own.is_map)], expected)
    same = operator.keep_maps(slots)
    np.testing.assert_array_equal(same.dense()[:, same.spread(same.is_map)], expected)
    weights = weights_of(part)
    np.testing.assert_allclose(
        part.score(rows_of(X), part.tables(weights)), expected @ weights, atol=1e-10
    )


def test_a_family_without_maps_is_no_trouble():
    X = sample()
    maps, _ = draw(X, COMBINATIONS["stumps and ferns"])
    n_stumps = maps.families[0].n_maps
    for kept in (np.arange(maps.n_maps) < n_stumps, np.arange(maps.n_maps) >= n_stumps):
        part = maps.select(kept)
        weights = weights_of(part)
        operator = operator_on(part, X)
        expected = operator.dense()[:, operator.spread(operator.is_map)] @ weights
        np.testing.assert_allclose(
            part.score(rows_of(X), part.tables(weights)), expected, atol=1e-10
        )


# --- Plans ---


@EVERY_COMBINATION
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_priors_sum_to_the_share(families, share):
    for family in families:
        maps, block, prior = Plan(family, 40, share).draw(ArrayRows(sample()), unlabelled(70), 0)
        assert prior.shape == (maps.n_maps,)
        assert block.codes.n_rows == 70
        assert block.cells.is_map.sum() == maps.n_maps
        assert prior.sum() == pytest.approx(share)
        np.testing.assert_allclose(prior, share * maps.prior() / maps.prior().sum())


@pytest.mark.parametrize("draw_kind", ["random", "stratified"])
def test_rates_are_divided_among_the_stumps_of_a_feature(draw_kind):
    rates = np.array([0.5, 0.3, 0.2, 0.0])
    plan = Plan(Stumps(draw=draw_kind), 200, 0.4, rates)
    maps, _, prior = plan.draw(ArrayRows(sample()), unlabelled(70), 0)
    by_feature = np.bincount(maps.stump_features, prior, minlength=4)
    np.testing.assert_allclose(by_feature, 0.4 * rates, atol=1e-12)
    # Within a feature, in proportion to the stumps that a merged one stands for.
    first = maps.stump_features == 0
    np.testing.assert_allclose(
        prior[first] / prior[first].sum(), maps.multiplicity[first] / maps.multiplicity[first].sum()
    )


def test_rates_of_constant_features_go_to_the_others():
    X = sample()
    X[:, 0] = 1.0
    maps, _, prior = Plan(Stumps(), 100, 0.6, np.array([0.7, 0.1, 0.1, 0.1])).draw(
        ArrayRows(X), unlabelled(70), 0
    )
    by_feature = np.bincount(maps.stump_features, prior, minlength=4)
    np.testing.assert_allclose(by_feature, [0.0, 0.2, 0.2, 0.2], atol=1e-12)


def test_a_plan_without_maps_has_no_prior():
    for family in (Stumps(), Ferns(), Projections()):
        rates = np.full(2, 0.5) if isinstance(family, Stumps) else None
        rows = ArrayRows(np.ones((9, 2)))
        maps, _, prior = Plan(family, 20, 0.5, rates).draw(rows, unlabelled(9), 0)
        assert maps.n_maps == prior.size == 0


@EVERY_COMBINATION
def test_priors_of_all_families_have_their_place_in_the_operator(families):
    plans = [Plan(family, 30, 0.1 * (k + 1)) for k, family in enumerate(families)]
    maps, operator, prior = draw_all(plans, ArrayRows(sample()), unlabelled(70), 0)
    assert prior.shape == (operator.n_slots,)
    assert not prior[~operator.is_map].any()
    shares = [own.sum() for own in maps.split(prior[operator.is_map])]
    np.testing.assert_allclose(shares, [plan.share for plan in plans])


def test_named_families_share_equally():
    families = [Stumps(), Ferns()]
    plans = plans_of(families, 50, (100, 4))
    assert [(plan.family, plan.n_maps, plan.share) for plan in plans] == [
        (families[0], 50, 0.5),
        (families[1], 50, 0.5),
    ]
    assert [plan.n_maps for plan in plans_of(families, None, (100, 4))] == [2000, 2000]


def test_a_choice_is_stumps_and_ferns():
    rates = np.array([0.7, 0.2, 0.1])
    choice = Choice(rates, depth=4.5, stump_share=0.3, cost=1.0, error=0.1)
    stumps, ferns = plans_of_choice(choice, None, (100, 3))
    assert isinstance(stumps.family, Stumps)
    assert isinstance(ferns.family, Ferns)
    assert stumps.share + ferns.share == 1.0
    assert stumps.share == 0.3
    assert stumps.rates is rates
    assert ferns.family.depth == 4.5
    assert ferns.family.rates is rates


def test_the_mean_of_growths_scores_as_they_do_in_the_mean():
    generator = np.random.default_rng(0)
    X = np.column_stack([generator.normal(size=200), generator.integers(4, size=(200, 1))])
    y = ((X[:, 1] % 2 > 0) ^ (X[:, 0] > 0.3)).astype(int)
    counts, rows = np.array([0, 4]), rows_of(X)
    growths = []
    for seed, columns in enumerate(([0, 1], [0, 1], [0])):  # the last asks no levels
        kept = X * np.isin([0, 1], columns)
        grow = GrownFerns(n_ferns=8).grow
        growths.append(grow(rows_of(kept), Targets(y, 2, np.ones(200)), 8, seed, n_levels=counts))
    mean = mean_growth(growths)
    assert mean.n_maps == sum(grown.n_maps for grown in growths)
    expected = [grown.score(rows, grown.path) + grown.intercept for grown in growths]
    np.testing.assert_allclose(
        mean.score(rows, mean.path) + mean.intercept, np.mean(expected, axis=0), rtol=1e-6
    )


def test_more_rows_have_fewer_ferns():
    sizes = [Ferns().default_n_maps((n_rows, 4)) for n_rows in (0, 100, 5_000, 10**6, 10**9)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 2_000
    assert sizes[-1] == 200
    assert Plan(Ferns(), 400).n_codes((1000, 4)) == 400_000
    assert Plan(Stumps(), 400).n_codes((1000, 4)) == 4_000
    assert Plan(Projections(), 400).n_codes((1000, 4)) == 25_000


def test_ferns_of_few_rows_are_read_a_few_times_only():
    assert Plan(Ferns(), 400).n_codes((100, 4)) == 0
    assert Plan(Ferns(), 400).n_groups(4) == 400


def test_stumps_and_projections_are_finer_with_more_features():
    for family in (Stumps(), Projections()):
        sizes = [family.default_n_maps((100, n)) for n in (1, 10, 100, 10**6)]
        assert sizes == [2_000, 2_000, 6_400, 200_000]


def test_two_families_of_a_kind_are_different_draws(make_data):
    X, y = make_data(80)
    model = MBKLClassifier(maps=["ferns", "ferns"], n_maps=20, random_state=0).fit(X, y)
    first, second = model.maps_.families
    assert first.thresholds.tolist() != second.thresholds.tolist()


@pytest.mark.parametrize("theta", ["alignment", "reweighted"])
def test_a_fern_of_one_stump_weighs_as_much_as_the_stump(theta):
    generator = np.random.default_rng(0)
    X = generator.integers(2, size=(300, 1)).astype(float)
    y = (X[:, 0] > 0) ^ (generator.random(300) < 0.2)
    families = ["stumps", Ferns(depth=1, distribution="fixed")]
    model = MBKLClassifier(maps=families, n_maps=1, theta=theta, C=1.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.theta_, [0.5, 0.5], atol=1e-3)
