"""Classes or numbers?"""

from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mbkl.tabular import task_of

DRAW = np.random.default_rng(0)

CLASSES = {
    "text": ["a", "b"] * 5,
    "text, all different": [f"key {number}" for number in range(50)],
    "booleans": [True, False],
    "categories of numbers": pd.Series([1.5, 2.5, 1.5]).astype("category"),
    "dates": [date(2020, 1, day) for day in range(1, 30)],
    "two numbers": [-1, 1],
    "two numbers, each once": [3, 7],
    "whole numbers in float64": [1.0, 2.0, 1.0, 2.0],
    "missing ones": [0, None, 1, 0],
    "marks of wine": DRAW.integers(3, 10, 100),
    "codes of 100 classes": np.repeat(np.arange(100), 6),
    "codes from 1": np.tile(np.arange(1, 27), 300),
    "one value": [5, 5, 5],
    "nothing": [None, None],
}
NUMBERS = {
    "fractions": [0.5, 1.0, 1.5] * 10,
    "fractions in float32": np.array([0.5, 1.0], dtype=np.float32),
    "prices": DRAW.integers(300, 20_000, 1_000),
    "few rows, all different": [10, 25, 31, 47],
    "counts": DRAW.poisson(30, 5_000),
    "ages": np.repeat(np.arange(17, 80), 30),
    "years": np.repeat(np.arange(1950, 2000), 30),
    "infinite ones": [1.0, np.inf, 2.0],
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    assert task_of(CLASSES[name]) == "classification"


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    assert task_of(NUMBERS[name]) == "regression"


@pytest.mark.parametrize("wrap", [list, np.asarray, pd.Series, lambda v: pa.chunked_array([v])])
def test_containers_of_all_kinds(wrap):
    assert task_of(wrap([0.5, 1.5])) == "regression"
    assert task_of(wrap(["a", "b"])) == "classification"


def test_the_order_and_missing_values_do_not_matter():
    prices = NUMBERS["prices"].astype(float)
    assert task_of(np.append(prices[::-1], np.nan)) == "regression"
