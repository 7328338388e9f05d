"""Parameters as JSON: everything that can be stored comes back as it was."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl.io.parameters import decode, encode
from mbkl.maps import Ferns, Projections, Stumps

plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text()
keys = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_values_come_back(value):
    try:
        packed = encode(value)
    except TypeError as error:
        assert "deep" in str(error)  # noqa: PT017
        return
    back = decode(json.loads(json.dumps(packed, allow_nan=False)))
    assert repr(back) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        [Stumps(draw="stratified"), Ferns(rates=np.array([0.5, 0.25])), ["ferns", ("stumps",)]],
        Projections(n_projections=3),
        np.array([1.0, np.inf], dtype=np.float32),
        np.array([True, False]),
        np.array([2**40, -1]),
        np.array([]),
    ],
)
def test_families_and_arrays_come_back(value):
    back = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert repr(back) == repr(value)
    assert getattr(back, "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize("value", [np.float64(0.1), np.int8(3), np.bool_(True), np.str_("a")])
def test_numpy_scalars_become_plain_ones(value):
    back = decode(encode(value))
    assert back == value
    assert type(back) in (float, int, bool, str)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        len,
        2**63,
        np.random.default_rng(0),
        np.ones((2, 2)),
        np.array(["a"]),
        {(1, 2): 3},
        1j,
        b"a",
        [[[[[[[[[[1]]]]]]]]]],
    ],
)
def test_other_values_cannot_be_stored(value):
    with pytest.raises(TypeError):
        encode(value)
