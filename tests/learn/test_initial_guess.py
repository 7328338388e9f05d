"""Step 0: the side of each map on which each class lies."""

import numpy as np
import pytest
from sklearn.svm import SVC

from mbkl.learn.initial_guess import Shares, class_shares, initial_signs, signs_of_stumps
from mbkl.learn.kernel_weights import KernelProblem


def signs_of(rows, rule="balanced"):
    return initial_signs(rows.operator, class_shares(rows), rule)


def one_map_svm(right, is_class):
    """Return a of the weights (a, -a) that an SVM gives to a map and its complement."""
    features = np.column_stack([right, 1.0 - right])
    svm = SVC(kernel="linear", C=1e3, class_weight="balanced", tol=1e-8).fit(features, is_class)
    on_right, on_left = svm.coef_[0]
    assert on_right == pytest.approx(-on_left, abs=1e-5)
    return on_right


@pytest.mark.parametrize(("n_rows", "n_classes"), [(40, 2), (45, 3)])
def test_balanced_rule_is_the_solution_of_the_one_map_svm(
    make_data, make_operator, labelled, n_rows, n_classes
):
    X, y = make_data(n_rows, 2, n_classes)
    operator = make_operator(np.round(X), n_maps=30)
    signs = signs_of(labelled(operator, y, n_classes))
    right = (operator.dense() > 0).astype(float)
    targets = [1] if n_classes == 2 else range(n_classes)
    for column, target in enumerate(targets):
        for k in np.flatnonzero(operator.is_map):
            a = one_map_svm(right[:, k], y == target)
            expected = 0 if abs(a) < 1e-4 else np.sign(a)
            assert signs[k, column] == expected


@pytest.mark.parametrize("rule", ["balanced", "median"])
@pytest.mark.parametrize(
    ("own", "rest", "balanced", "median"),
    [
        (0.9, 0.6, 1, 0),
        (0.6, 0.9, -1, 0),
        (0.9, 0.2, 1, 1),
        (0.2, 0.9, -1, -1),
        (0.2, 0.1, 1, 0),
        (0.1, 0.2, -1, 0),
        (0.5, 0.4, 1, 1),
        (0.4, 0.5, -1, -1),
        (0.5, 0.5, 0, 0),
        (0.3, 0.3, 0, 0),
    ],
)
def test_rules(rule, own, rest, balanced, median):
    shares = Shares(np.array([[own]]), np.array([[rest]]), np.ones(1))
    sign = signs_of_stumps(shares, rule)[0, 0]
    assert sign == (balanced if rule == "balanced" else median)


def test_a_difference_within_rounding_is_a_tie():
    shares = Shares(np.array([[0.1 + 0.2]]), np.array([[0.3]]), np.ones(1))
    assert signs_of_stumps(shares, "balanced")[0, 0] == 0


def test_cells_without_a_map_have_no_sign(make_data, make_operator, labelled):
    X, y = make_data()
    operator = make_operator(X)
    for rule in ("balanced", "median"):
        assert not signs_of(labelled(operator, y, 2), rule)[~operator.is_map].any()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_shares_are_counts_over_totals(make_data, make_operator, labelled, n_classes):
    X, y = make_data(60, 3, n_classes)
    operator = make_operator(X)
    shares = class_shares(labelled(operator, y, n_classes))
    own, rest = shares.own, shares.rest
    right = operator.dense() > 0
    is_jump = operator.is_map
    targets = [1] if n_classes == 2 else range(n_classes)
    assert own.shape == rest.shape == (is_jump.size, len(targets))
    for column, target in enumerate(targets):
        np.testing.assert_allclose(own[is_jump, column], right[y == target].mean(axis=0)[is_jump])
        np.testing.assert_allclose(rest[is_jump, column], right[y != target].mean(axis=0)[is_jump])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_is_a_number_of_repetitions(make_data, make_operator, labelled, n_classes):
    X, y = make_data(30, 3, n_classes)
    operator = make_operator(X)
    weights = np.random.default_rng(0).integers(1, 5, size=30)
    rows = np.repeat(np.arange(30), weights)
    weighted = class_shares(labelled(operator, y, n_classes, weights))
    repeated = class_shares(labelled(operator.take(rows), y[rows], n_classes))
    np.testing.assert_allclose(weighted.own, repeated.own, rtol=1e-14)
    np.testing.assert_allclose(weighted.rest, repeated.rest, rtol=1e-14)


def test_two_classes_mirror_each_other(make_data, make_operator, labelled):
    X, y = make_data()
    operator = make_operator(X)
    signs, mirrored = (signs_of(labelled(operator, labels, 2)) for labels in (y, 1 - y))
    np.testing.assert_array_equal(signs, -mirrored)


def test_reversed_signs_leave_nothing_to_learn(make_data, make_operator, labelled):
    X, y = make_data()
    operator = make_operator(X)
    rows = labelled(operator, y, 2)
    signs = signs_of(rows)
    right, wrong = (
        KernelProblem.of(rows, side * signs, "squared_hinge", 2, 50_000).smallest_cost
        for side in (1, -1)
    )
    assert 0 < right < rows.weights.sum()
    assert wrong == np.inf
