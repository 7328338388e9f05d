"""Hostile model files: every lie gets a clear error, in little time and memory."""

import hashlib
import io
import json
import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from mbkl.io import ModelFileError, container, load, load_extra
from mbkl.io.container import pack, unpack

DIGEST_BYTES = 32


def file_of(text: str | bytes, data: bytes = b"", version: int = container.VERSION) -> bytes:
    """Return a file with any text as its header and any bytes as its arrays."""
    text = text.encode("ascii") if isinstance(text, str) else text
    text += b" " * (-len(text) % 8)
    body = b"\x89mbkl\r\n\x1a" + struct.pack("<II", version, len(text)) + text + data
    return body + hashlib.sha256(body).digest()


def header_of(data: bytes) -> dict:
    """Return the header of a file, its list of arrays included."""
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[16 : 16 + length])


def with_header(data: bytes, change) -> bytes:
    """Return a file whose header is changed in place, with a right checksum."""
    (length,) = struct.unpack_from("<I", data, 12)
    header = header_of(data)
    changed = change(header)
    text = json.dumps(header if changed is None else changed)
    return file_of(text, data[16 + length : -DIGEST_BYTES])


def with_array(data: bytes, name: str, change) -> bytes:
    """Return a file in which an array is replaced by a changed one, with a right checksum."""
    header, arrays = unpack(io.BytesIO(data))
    changed = change(arrays[name].copy())
    arrays[name] = arrays[name] if changed is None else changed
    return b"".join(pack(header, arrays))


@pytest.fixture
def small(fitted, saved):
    """A small file."""
    return saved(fitted("stumps")[0], extra={"key": "value"})


def complaint(data: bytes) -> str:
    """Return the error that a file gives; it must not take much memory to find out."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as caught:
            load(io.BytesIO(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(data) + 1e6
    return str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\x89", b"PK\x03\x04" * 100, b"\x80\x04K\x01.", b"\0" * 99])
def test_other_files(data):
    assert complaint(data) == "This is no mbkl model file."


def test_other_kinds_of_paths(tmp_path, small):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.mbkl")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    (tmp_path / "half.mbkl").write_bytes(small[: len(small) // 2])
    for read in (load, load_extra):
        with pytest.raises(ModelFileError):
            read(tmp_path / "half.mbkl")


def test_headers_that_are_no_headers():
    assert "too long" in complaint(container.MAGIC + b"\x02\0\0\0\xff\xff\xff\xff" + b"x" * 100)
    assert "JSON" in complaint(file_of("[" * 100_000))
    assert "JSON" in complaint(file_of('{"a":' * 100_000))
    assert "JSON" in complaint(file_of("{" + '"a":1,' * 3 + '"b":2}'))
    assert "JSON" in complaint(file_of('{"a":NaN}'))
    assert "JSON" in complaint(file_of('{"a":1e999}'))
    assert "JSON" in complaint(file_of('{"a":' + "9" * 100_000 + "}"))
    assert "JSON" in complaint(file_of(b'{"a":"\xff"}'))
    assert "JSON" in complaint(file_of("import os"))
    assert "no JSON object" in complaint(file_of("[]"))
    for version in (0, container.VERSION + 1, 2**32 - 1):
        assert "format" in complaint(file_of("{}", version=version))


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        ["a"],
        ["a", "<f8"],
        ["a", "<f8", [1]],
        ["a", "<f8", [1], 64],
        ["a", "<f8", [1], 8, 8],
        ["a", "<f8", [1], -8],
        ["a", "<f8", [1], 8.0],
        ["a", "<f8", [1], None],
        ["a", "<f8", [1], 0],
        ["a", "<f8", [100], 8],
        ["a", "|O", [1], 8],
        ["a", "<f2", [1], 2],
        ["a", "<U1000", [1], 4000],
        ["a", "<f8", [-1], 8],
        ["a", "<f8", [True], 8],
        ["a", "<f8", [1.0], 8],
        ["a", "<f8", 1, 8],
        ["a", "<f8", [2**62], 2**65],
        ["a", "<f8", [2**40, 2**40], 8],
        ["a", "<f8", [0, 2**62], 0],
        ["a", "<f8", [1, 1, 1], 8],
        [1, "<f8", [1], 8],
        {"name": "a"},
    ],
)
def test_lists_of_arrays_that_are_not_valid(entry):
    text = json.dumps({"arrays": [entry]})
    assert "list of arrays" in complaint(file_of(text, bytes(8)))


@pytest.mark.parametrize("entry", [["a", "<f8", [1], 8], ["a", "<f8", [2**40]]])
def test_lists_of_arrays_of_the_first_version(entry):
    text = json.dumps({"arrays": [entry]})
    assert "list of arrays" in complaint(file_of(text, bytes(8), version=1))


def test_compressed_arrays_that_are_not():
    for data, length in (
        (b"x" * 40, 40),
        (zlib.compress(bytes(800)) + bytes(100), 40),
        (zlib.compress(bytes(10**6))[:40], 40),
        (zlib.compress(bytes(799)) + bytes(100), 40),
        (zlib.compress(bytes(801)) + bytes(100), 40),
        (zlib.compress(bytes(10**7))[:80], 80),
    ):
        text = json.dumps({"arrays": [["a", "|u1", [800], length]]})
        padded = data[:length] + bytes(-length % 8)
        assert "An array of the model file" in complaint(file_of(text, padded))


def test_arrays_and_bytes_that_do_not_match(small):
    table = [["a", "<f8", [1], 8], ["a", "<f8", [1], 8]]
    assert "list of arrays" in complaint(file_of(json.dumps({"arrays": table}), bytes(16)))
    assert "list of arrays" in complaint(file_of("{}"))
    for n_bytes in (0, 7, 9, 16):
        text = json.dumps({"arrays": [["a", "<f8", [1], 8]]})
        assert "truncated or too long" in complaint(file_of(text, bytes(n_bytes)))
    assert "truncated or too long" in complaint(small + b"\0")
    assert "checksum" in complaint(small[:-1] + bytes([small[-1] ^ 1]))


@pytest.mark.parametrize(
    ("model", "name", "change", "message"),
    [
        ("stumps", "coefficients", lambda a: a * np.nan, "not finite"),
        ("stumps", "coefficients", lambda a: np.full_like(a, 1e308), "not finite"),
        ("stumps", "coefficients", lambda a: a[:-1], "wrong shape"),
        ("stumps", "coefficients", lambda a: np.hstack([a, a]), "wrong shape"),
        ("stumps", "intercept", lambda a: a + np.inf, "not finite"),
        ("stumps", "theta", lambda a: -a, "negative"),
        ("stumps", "theta", lambda a: a.astype("<u8"), "wrong shape or type"),
        ("stumps", "maps/0/thresholds", lambda a: a[::-1], "do not increase"),
        ("stumps", "maps/0/thresholds", lambda a: a * np.nan, "no thresholds"),
        ("stumps", "maps/0/thresholds", lambda a: np.append(a[:-1], np.inf), "no thresholds"),
        ("stumps", "maps/0/features", lambda a: a + 1, "outside 0 to 3"),
        ("stumps", "maps/0/features", lambda a: a[::-1], "do not increase"),
        ("stumps", "maps/0/counts", lambda a: a + 1, "another sum"),
        ("stumps", "maps/0/counts", lambda a: a * 0, "outside 1"),
        ("stumps", "maps/0/multiplicity", lambda a: a * 0, "outside 1"),
        ("ferns", "maps/0/depths", lambda a: a * 0, "outside 1 to 64"),
        ("ferns", "maps/0/depths", lambda a: a + 64, "outside 1 to 64"),
        ("ferns", "maps/0/bits", lambda a: a + 17, "outside 1 to 16"),
        ("ferns", "maps/0/bits", lambda a: a * 0 + 16, "above the depths"),
        ("ferns", "maps/0/factors", lambda a: a + 1, "even"),
        ("ferns", "maps/0/features", lambda a: a + 4, "outside 0 to 3"),
        ("ferns", "maps/0/thresholds", lambda a: a * np.nan, "no thresholds"),
        ("ferns", "maps/0/cells", lambda a: a * 0, "no or all cells"),
        ("ferns", "maps/0/cells", lambda a: a * 0 + 255, "cells' has"),
        ("ferns", "maps/0/cells", lambda a: a.astype("<u2"), "wrong type"),
        ("ferns", "maps/0/cells", lambda a: a[:-1], "wrong shape"),
        ("projections", "maps/0/scale", lambda a: a * 0, "not above 1e-250"),
        ("projections", "maps/0/centre", lambda a: a * np.nan, "not finite"),
        ("projections", "maps/0/directions", lambda a: a[:, :-1], "wrong shape"),
        ("projections", "maps/0/directions", lambda a: a[:-1], "wrong shape"),
        ("sparse projections", "maps/0/inputs", lambda a: a + 4, "outside 0 to 3"),
        ("sparse projections", "maps/0/lengths", lambda a: a + 1, "wrong shape"),
        ("cross-validation", "search/scores", lambda a: a[:0], "no values"),
        ("cross-validation", "search/C", lambda a: a * np.nan, "not finite"),
        ("default", "feature_rates", lambda a: a[:-1], "wrong shape"),
    ],
)
def test_arrays_that_make_no_model(fitted, saved, model, name, change, message):
    data = with_array(saved(fitted(model)[0]), name, change)
    assert message in complaint(data)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["estimator"], "SVC", "'SVC' is unknown"),
        (["estimator"], "../../MBKLClassifier", "is unknown"),
        (["estimator"], "MBKLClassifierCV", "has no parameter"),
        (["estimator"], "MBKernel", "has no parameter"),
        (["n_features"], 0, "outside 1"),
        (["n_features"], 2**40, "outside 1"),
        (["n_features"], True, "wrong type"),
        (["feature_names"], ["a"], "names of the features"),
        (["feature_names"], [1, 2, 3, 4], "names of the features"),
        (["maps"], [], "no family"),
        (["maps"], [{"family": "trees"}], "'trees' is unknown"),
        (["maps"], [{"family": "ferns"}], "is missing"),
        (["maps"], [{"family": "stumps", "more": 1}], "'more' is unknown"),
        (["maps"], [{"family": "projections", "chi2_steps": 4}], "outside 0 to 3"),
        (["maps"], [1], "no JSON object"),
        (["classes", "values"], [0], "fewer than two"),
        (["classes", "values"], [1, 0], "do not increase"),
        (["classes", "values"], [0, 0], "do not increase"),
        (["classes", "values"], ["a", "b"], "not all of type"),
        (["classes", "values"], [0, 1, 2], "wrong shape"),
        (["classes", "values"], [0, 2**70], "not all of type"),
        (["classes", "type"], "O", "unknown"),
        (["classes", "type"], "datetime64", "unknown"),
        (["classes", "type"], "<U100000000", "unknown"),
        (["learned", "temperature"], 0.0, "not above zero"),
        (["learned", "C"], -1.0, "below zero"),
        (["learned", "n_iter"], -1, "outside 0"),
        (["learned", "more"], 1, "'more' is unknown"),
        (["more"], 1, "'more' is unknown"),
        (["extra"], [], "'extra'"),
        (["parameters", "loss"], "huber", "The 'loss' parameter"),
        (["parameters", "C"], -1.0, "The 'C' parameter"),
        (["parameters", "n_jobs"], 0, "The 'n_jobs' parameter"),
        (["parameters", "maps"], ["stumps", "trees"], "maps must be"),
        (["parameters", "maps"], {"SVC": {}}, "unknown kind"),
        (["parameters", "maps"], {"Ferns": {"size": 1}}, "Ferns has no parameter 'size'"),
        (["parameters", "maps"], {"Ferns": [], "Stumps": {}}, "unknown kind"),
        (["parameters", "maps"], [[[[[[[[[["stumps"]]]]]]]]]], "nested too deeply"),
        (["parameters", "checkpoint"], "/etc/passwd", "no parameter 'checkpoint'"),
        (["parameters", "max_iter"], 10**30, "beyond 64 bits"),
        (["parameters", "class_weight"], {"dict": [[[], 1]]}, "no pair"),
        (["parameters", "class_weight"], {"array": ["int32", [2**40]]}, "no array of int32"),
        (["parameters", "class_weight"], {"array": ["int32", ["a"]]}, "no array of int32"),
        (["parameters", "__class__"], "a", "no parameter"),
    ],
)
def test_headers_that_make_no_model(small, path, value, message):
    def change(header):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    assert message in complaint(with_header(small, change))


def test_every_entry_is_needed(small):
    for key in header_of(small):
        complaint(with_header(small, lambda header, key=key: header.pop(key) and None))
    for key in ("n_iter", "C", "temperature"):
        change = lambda header, key=key: header["learned"].pop(key) and None  # noqa: E731
        assert "is missing" in complaint(with_header(small, change))


def test_a_parameter_that_is_missing_has_its_default(small):
    data = with_header(small, lambda header: header["parameters"].pop("tol") and None)
    assert load(io.BytesIO(data)).tol == 1e-3


def test_texts_are_texts(fitted, saved):
    """Nothing is opened, imported or run, whatever a text says."""
    names = ["../../etc/passwd", "__import__('os')", "{0.__class__}", "\0"]

    def change(header):
        header["feature_names"] = names

    data = with_header(saved(fitted("stumps")[0]), change)
    assert load(io.BytesIO(data)).feature_names_in_.tolist() == names


@pytest.mark.parametrize("names", [["a"], ["a", 1], ["a", "b", "c"]])
def test_names_of_targets(fitted, saved, names):
    def change(header):
        header["learned"]["targets"] = names

    data = with_header(saved(fitted("counts, 2 targets")[0]), change)
    with pytest.raises(ModelFileError, match="names of the targets"):
        load(io.BytesIO(data))
