"""The container: any JSON and arrays come back, whatever their shapes."""

import io
import json
import math
import struct
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from mbkl.io.container import DTYPES, pack, unpack

texts = st.text(max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: "inf" not in repr(value))
headers = st.dictionaries(texts.filter(lambda key: key != "arrays"), json_values, max_size=3)
arrays = st.dictionaries(
    texts,
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=1, max_dims=2))
    ),
    max_size=3,
)


@given(headers, arrays)
def test_everything_comes_back(header, named):
    data = b"".join(pack(header, named))
    found_header, found = unpack(io.BytesIO(data))
    assert found_header == header
    assert found.keys() == named.keys()
    for name, array in named.items():
        np.testing.assert_array_equal(found[name], array, strict=True)
    assert b"".join(pack(found_header, found)) == data


@given(arrays)
def test_arrays_lie_where_a_plain_reader_expects_them(named):
    data = b"".join(pack({}, named))
    (length,) = struct.unpack_from("<I", data, 12)
    offset = 16 + length
    for name, dtype, shape, length in json.loads(data[16:offset])["arrays"]:
        assert offset % 8 == 0
        own = data[offset : offset + length]
        if length < np.dtype(dtype).itemsize * math.prod(shape):
            own = zlib.decompress(own)
        array = np.frombuffer(own, dtype).reshape(shape)
        np.testing.assert_array_equal(array, named[name])
        offset += -(-length // 8) * 8
    assert offset == len(data) - 32


def test_arrays_that_repeat_are_compressed_but_not_without_limit():
    repeated = np.tile(np.random.default_rng(0).normal(size=500), 10)
    assert len(b"".join(pack({}, {"a": repeated}))) < repeated.nbytes / 5
    for array in (repeated, np.zeros(10_000), np.tile(np.arange(30.0), 100)):
        data = b"".join(pack({}, {"a": array}))
        np.testing.assert_array_equal(unpack(io.BytesIO(data))[1]["a"], array)
        assert len(data) > array.nbytes / 20


def test_empty_and_reversed_arrays():
    named = {"a": np.empty((0, 3)), "b": np.arange(6.0)[::-2], "c": np.arange(6.0).reshape(2, 3).T}
    _, found = unpack(io.BytesIO(b"".join(pack({}, named))))
    for name, array in named.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_big_endian_arrays_become_little_endian():
    (_, found) = unpack(io.BytesIO(b"".join(pack({}, {"a": np.arange(3, dtype=">f8")}))))
    np.testing.assert_array_equal(found["a"], [0.0, 1.0, 2.0])
