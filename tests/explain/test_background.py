import numpy as np
from scipy import sparse

from mbkl.explain.rows import rows_between_thresholds, some_rows


def test_rows_do_not_depend_on_their_order():
    X = np.random.default_rng(0).normal(size=(50, 3))
    chosen = some_rows(X, 10)
    again = some_rows(X[::-1], 10)
    np.testing.assert_array_equal(np.sort(chosen, axis=0), np.sort(again, axis=0))
    assert {tuple(row) for row in chosen} <= {tuple(row) for row in X}


def test_sparse_rows_are_the_same():
    X = np.random.default_rng(0).integers(3, size=(50, 4)).astype(float)
    np.testing.assert_array_equal(some_rows(sparse.csr_array(X), 10), some_rows(X, 10))


def test_made_up_rows_fill_all_intervals_equally(fitted):
    model, _ = fitted("stumps")
    part = model.predictor_.maps.families[0]
    sizes = np.diff(part.edges.offsets) + 1
    n_rows = int(np.lcm.reduce(sizes)) if np.lcm.reduce(sizes) < 5_000 else 5_000
    rows = rows_between_thresholds(model.predictor_.maps, 4, n_rows)
    assert np.isnan(rows[:, 1]).any()
    assert np.isfinite(rows[:, 0]).all()
    for group, feature in enumerate(part.features):
        thresholds = part.edges.thresholds[
            part.edges.offsets[group] : part.edges.offsets[group + 1]
        ]
        cells = (rows[:, feature, None] > thresholds).sum(axis=1)
        counts = np.bincount(cells, minlength=sizes[group])
        assert np.ptp(counts) <= 1


def test_made_up_rows_of_projections_vary(fitted):
    model, X = fitted("projections")
    rows = rows_between_thresholds(model.predictor_.maps, 4, 500)
    np.testing.assert_allclose(rows.mean(axis=0), np.nanmean(X, axis=0), atol=0.3)
    np.testing.assert_allclose(rows.std(axis=0), np.nanstd(X, axis=0), rtol=0.2)
