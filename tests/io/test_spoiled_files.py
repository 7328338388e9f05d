"""Model files spoiled at random, with and without a right checksum.

Whatever is changed, there is a clear error or a working model, and no third thing.
"""

import copy
import hashlib
import io
import random
import warnings

import numpy as np
import pytest

from mbkl.io import ModelFileError, load
from mbkl.io.container import pack, unpack

SPOILED = ("stumps", "ferns", "list", "chi2 projections", "cross-validation", "kernel", "names")
# Files of each model and kind of damage: with those of the last two tests some 15,000.
N_FILES = 600
DIGEST_BYTES = 32

NASTY = [
    *(None, True, False, 0, 1, -1, 2, 3, 255, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308),
    *(5e-324, "", "a", "auto", "stumps", "ferns", "../../etc/passwd", "\ud800", "x" * 1000),
    *([], {}, [[]], {"a": {}}, [0], ["a", "a"], {"tuple": []}, {"dict": [[[], 1]]}),
    *({"Ferns": {"depth": "deep"}}, {"array": ["float64", [1.0, "a"]]}, {"float": "inf"}),
    {"array": ["int32", [2**40]]},
]
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 5e-324)


@pytest.fixture(params=SPOILED)
def data(request, fitted, saved):
    """The file of a small model of each kind in turn."""
    return saved(fitted(request.param)[0])


def test_files_are_as_expected(data):
    assert outcome(data) == "model"


def test_any_damage_is_noticed(data):
    draw = random.Random(1)
    for _ in range(N_FILES):
        spoiled = spoil_bytes(data, draw)
        assert spoiled == data or outcome(spoiled) == "error"


def test_damage_with_a_right_checksum(data):
    draw = random.Random(2)
    body = data[:-DIGEST_BYTES]
    assert {outcome(with_checksum(spoil_bytes(body, draw))) for _ in range(N_FILES)} >= {"error"}


@pytest.mark.filterwarnings("ignore:.*encountered in cast")
def test_sound_containers_of_other_meaning(data):
    draw = random.Random(3)
    found = [outcome(spoil_meaning(data, draw)) for _ in range(N_FILES)]
    assert {"error", "model"} == set(found)


@pytest.fixture
def small(fitted, saved):
    """A small file."""
    return saved(fitted("stumps")[0])


def test_every_truncation_is_noticed(small):
    for length in range(len(small)):
        assert outcome(small[:length]) == "error"


def test_every_bit_counts(small):
    draw = random.Random(4)
    for place in range(len(small)):
        flipped = bytearray(small)
        flipped[place] ^= 1 << draw.randrange(8)
        assert outcome(bytes(flipped)) == "error"


def with_checksum(body: bytes) -> bytes:
    """Return a file whose checksum is right."""
    return body + hashlib.sha256(body).digest()


def outcome(data: bytes) -> str:
    """Load and use a file; return "error" or "model", or fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = load(io.BytesIO(data))
        except ModelFileError as error:
            message = str(error)
        else:
            use(model)
            return "model"
    assert "\n" not in message
    assert len(message) < 600
    return "error"


def use(model) -> None:
    """Predict, and check what can be said of any model."""
    assert (model.theta_ >= 0).all()
    if model.n_features_in_ > 100:
        return
    X = np.random.default_rng(0).normal(size=(40, model.n_features_in_)).astype(np.float32)
    X[::7] = np.nan
    if not hasattr(model, "predict"):
        assert model.transform(X).shape[0] == 40
        assert model.kernel(X).shape == (40, 40)
        return
    for rows in (X, X[:2]):
        assert np.isin(model.predict(rows), model.classes_).all()
        if hasattr(model, "predict_proba"):
            assert model.predict_proba(rows).shape == (len(rows), model.classes_.size)


def spoil_bytes(data: bytes, draw: random.Random) -> bytes:
    """Return other bytes: flipped, cut, repeated, moved, overwritten or stretched."""
    spoiled = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        start = draw.randrange(len(spoiled))
        stop = min(len(spoiled), start + draw.choice((1, 1, 4, 8, 40, 400)))
        action = draw.randrange(6)
        if action == 0:
            spoiled[start] ^= 1 << draw.randrange(8)
        elif action == 1:
            del spoiled[start:stop]
        elif action == 2:
            spoiled[start:start] = spoiled[start:stop]
        elif action == 3:
            other = draw.randrange(len(spoiled))
            length = min(stop - start, len(spoiled) - other)
            spoiled[start : start + length] = spoiled[other : other + length]
        elif action == 4:
            spoiled[start:stop] = draw.choice((b"\0", b"\xff", b"9", b'"')) * (stop - start)
        else:
            spoiled[start:stop] = draw.randbytes(stop - start)
        spoiled = spoiled or bytearray(b"\0")
    return bytes(spoiled)


def spoil_meaning(data: bytes, draw: random.Random) -> bytes:
    """Return a file that is sound as a container but says something else."""
    header, arrays = unpack(io.BytesIO(data))
    for _ in range(draw.choice((1, 1, 2, 3))):
        if draw.random() < 0.5:
            _spoil_json(header, draw)
        else:
            _spoil_arrays(arrays, draw)
    return b"".join(pack(header, arrays))


def _spoil_json(node, draw: random.Random) -> None:
    """Change, remove or add one entry at a random place."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = draw.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and draw.random() < 0.8:
            node = node[key]
            continue
        action = draw.randrange(8)
        if action == 0:
            del node[key]
        elif action == 1 and isinstance(node, dict):
            node[draw.choice(("new", "maps", "n_jobs", "checkpoint"))] = draw.choice(NASTY)
        elif action == 2 and isinstance(node, list):
            node.append(copy.deepcopy(draw.choice(node)))
        elif action == 3:
            node[key] = copy.deepcopy(node[draw.choice(keys)])
        else:
            node[key] = copy.deepcopy(draw.choice(NASTY))
        return


def _spoil_arrays(arrays: dict[str, np.ndarray], draw: random.Random) -> None:
    """Change values, type, shape or name of one array."""
    name = draw.choice(sorted(arrays))
    array, action = arrays[name], draw.randrange(8)
    if action == 0:
        del arrays[name]
        if not arrays:
            arrays["left"] = array
    elif action == 1:
        other = draw.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], array
    elif action == 2:
        arrays[draw.choice(("new", name + "x", f"maps/9/{name}"))] = array
    elif action == 3:
        arrays[name] = array.astype(draw.choice(("<f4", "<f8", "|u1", "<u2", "<u8")))
    elif action == 4:
        arrays[name] = array[: draw.randrange(len(array) + 1)]
    elif action == 5:
        arrays[name] = array.T if array.ndim == 2 else array[::-1]
    elif array.size:
        place = draw.randrange(array.size)
        if array.dtype.kind == "f":
            value = draw.choice((*SPECIAL, draw.uniform(-3, 3)))
        else:
            value = draw.choice((0, 1, 2, 255, draw.getrandbits(8 * array.itemsize)))
            value = min(value, 2 ** (8 * array.itemsize) - 1)
        array.flat[place] = value
