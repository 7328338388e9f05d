"""Model files: the same model comes back, and the same bytes."""

import io
import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

import mbkl
from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV
from mbkl.io import ModelFileError, container, load, load_extra, model_file, save
from mbkl.io.container import pack, unpack
from mbkl.maps import Stumps

DATA = Path(__file__).parent / "data"
# `timings_` are seconds; `_choice` is of use during a fit only.
NOT_KEPT = {"timings_", "_choice"}


def new_rows(X):
    """Return other rows of the same kind, some far away, some missing."""
    values = np.asarray(X, dtype=np.float32)
    generator = np.random.default_rng(1)
    rows = generator.permuted(np.tile(values, (3, 1)), axis=0) + generator.normal(
        size=(3 * len(values), values.shape[1])
    )
    rows[generator.random(rows.shape) < 0.1] = np.nan
    return rows.astype(np.float32)


def outputs(model, X) -> dict[str, np.ndarray]:
    names = ("decision_function", "predict", "predict_proba", "predict_interval", "transform")
    names += ("kernel",)
    return {
        name: np.asarray(result.todense() if hasattr(result, "todense") else result)
        for name in names
        if hasattr(model, name)
        for result in [getattr(model, name)(X)]
    }


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_loaded_model_gives_the_same_bits(model_and_rows, saved, loaded):
    model, X = model_and_rows
    back = loaded(saved(model))
    for rows in (np.asarray(X), new_rows(X), new_rows(X)[:1], new_rows(X).astype(np.float64)):
        expected, found = outputs(model, rows), outputs(back, rows)
        assert expected.keys() == found.keys()
        for name in expected:
            assert expected[name].dtype == found[name].dtype
            np.testing.assert_array_equal(expected[name], found[name], strict=True)


def test_a_loaded_model_can_be_saved_to_the_same_bytes(model_and_rows, saved, loaded):
    data = saved(model_and_rows[0], extra={"b": 1, "a": [None, "ü"]})
    again = io.BytesIO()
    save(loaded(data), again, extra=load_extra(io.BytesIO(data)))
    assert again.getvalue() == data


def test_all_attributes_come_back(model_and_rows, saved, loaded):
    model, _ = model_and_rows
    back = loaded(saved(model))
    assert type(back) is type(model)
    learned = vars(model).keys() - set(model._get_param_names()) - NOT_KEPT
    for name in (*learned, "fern_features_", "fern_thresholds_"):
        assert_same(getattr(back, name), getattr(model, name))
    assert back.timings_ == {}
    for name in ("tables_", "table_features_"):
        if hasattr(model, name):
            assert_same(getattr(back, name), getattr(model, name))


def assert_same(found, expected):
    """Compare bits and types, inside lists, dicts and data classes."""
    assert type(found) is type(expected) or {type(found), type(expected)} <= {float, np.float64}
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected, strict=True)
        assert found.flags.f_contiguous == expected.flags.f_contiguous
        assert found.flags.writeable
    elif isinstance(expected, list | tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert_same(list(found.items()), list(expected.items()))
    elif hasattr(expected, "indptr"):
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    elif hasattr(expected, "__dataclass_fields__"):
        for name in expected.__dataclass_fields__:
            assert_same(getattr(found, name), getattr(expected, name))
    else:
        assert found == expected


def test_parameters_come_back(model_and_rows, saved, loaded):
    model, _ = model_and_rows
    assert repr(loaded(saved(model))) == repr(model)
    clone(loaded(saved(model)))


def test_a_loaded_model_can_be_fitted_again(fitted, saved, loaded, bits_of):
    model, X = fitted("default")
    y = model.predict(X)
    assert bits_of(loaded(saved(model)).fit(X, y)) == bits_of(clone(model).fit(X, y))


def test_the_same_fit_gives_the_same_file(fitted, saved):
    model, X = fitted("default")
    y = model.predict(X)
    assert saved(clone(model).fit(X, y)) == saved(clone(model).fit(X, y))


def test_a_file_on_disk(fitted, tmp_path):
    model, X = fitted("stumps")
    for path in (tmp_path / "a.mbkl", str(tmp_path / "b.mbkl")):
        save(model, path, extra={"unit": "mm"})
        assert (load(path).predict(X) == model.predict(X)).all()
        assert load_extra(path) == {"unit": "mm"}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.mbkl", "b.mbkl"]


def test_the_file_has_the_usual_mode(fitted, tmp_path):
    path, plain = tmp_path / "a.mbkl", tmp_path / "plain"
    plain.touch()
    save(fitted("stumps")[0], path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_link_stays_a_link(fitted, tmp_path):
    save(fitted("stumps")[0], tmp_path / "a.mbkl")
    (tmp_path / "link.mbkl").symlink_to("a.mbkl")
    save(fitted("kernel")[0], tmp_path / "link.mbkl")
    assert (tmp_path / "link.mbkl").is_symlink()
    assert isinstance(load(tmp_path / "a.mbkl"), MBKernel)


def test_a_failure_leaves_the_old_file_and_nothing_else(fitted, tmp_path, monkeypatch):
    path = tmp_path / "a.mbkl"
    path.write_bytes(b"old")
    for module, name in ((container, "_compressed"), (os, "fsync"), (os, "replace")):

        def fail(*_):
            raise OSError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(OSError, match="the disk is full"):
                save(fitted("stumps")[0], path)
        assert [file.name for file in tmp_path.iterdir()] == ["a.mbkl"]
        assert path.read_bytes() == b"old"


@pytest.mark.parametrize("folder", ["none", "file"])
def test_errors_name_the_file_that_was_asked_for(fitted, tmp_path, folder):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=rf"{folder}/model\.mbkl'$"):
        save(fitted("stumps")[0], tmp_path / folder / "model.mbkl")


def test_only_regular_files_are_replaced(fitted, tmp_path):
    for path in (tmp_path, os.devnull):
        with pytest.raises(ValueError, match="no regular file"):
            save(fitted("stumps")[0], path)
    with pytest.raises(FileNotFoundError):
        save(fitted("stumps")[0], tmp_path / "no folder" / "a.mbkl")


def test_what_cannot_be_saved():
    class Own(MBKLClassifier):
        pass

    rows = [[0.0], [1.0]], [0, 1]
    for model in (Own(n_maps=5).fit(*rows), Stumps(), {"a": 1}):
        with pytest.raises(TypeError, match="A model file holds"):
            save(model, io.BytesIO())
    with pytest.raises(NotFittedError):
        save(MBKLClassifier(), io.BytesIO())
    model = MBKLClassifier(n_maps=5).fit(*rows)
    for extra in ({1: 2}, {"a": np.ones(2)}, {"a": float("nan")}, {"a": (1, 2)}, [1]):
        with pytest.raises(ValueError, match="extra must be a dict"):
            save(model, io.BytesIO(), extra=extra)
    model.classes_ = np.array([b"a", b"b"])
    with pytest.raises(TypeError, match="Class labels of type"):
        save(model, io.BytesIO())


def test_a_header_that_is_too_long(fitted, monkeypatch):
    monkeypatch.setattr(container, "_LONGEST_HEADER", 100)
    with pytest.raises(ValueError, match="more than the 100"):
        save(fitted("stumps")[0], io.BytesIO())


def test_parameters_that_are_not_stored(fitted, saved, loaded):
    model, X = fitted("cross-validation")
    changed = pickle.loads(pickle.dumps(model))
    changed.set_params(cv=StratifiedKFold(3), random_state=np.random.RandomState(0))
    with pytest.warns(UserWarning, match="not stored in the model file") as caught:
        data = saved(changed)
    assert [str(warning.message).split()[2] for warning in caught] == ["cv", "random_state"]
    back = loaded(data)
    assert (back.cv, back.random_state) == (5, None)
    assert (back.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("name", ["checkpoint", "cache_folder"])
def test_paths_are_not_stored(saved, loaded, tmp_path, name):
    path = str(tmp_path / "secret name")
    data = saved(MBKLClassifier(n_maps=5, **{name: path}).fit([[0], [1]], [0, 1]))
    header, _ = unpack(io.BytesIO(data))
    assert "secret name" not in repr(header)
    assert name not in header["parameters"]
    assert getattr(loaded(data), name) is None


def test_a_folder_in_an_old_file_is_passed_over(fitted, saved, loaded):
    header, arrays = unpack(io.BytesIO(saved(fitted("stumps")[0])))
    header["parameters"]["cache_folder"] = "/home/someone"
    assert loaded(b"".join(pack(header, arrays))).cache_folder is None


def test_numpy_labels_keep_their_type(saved, loaded):
    for dtype in (np.int8, np.uint64, np.int64, np.float32, bool):
        model = MBKLClassifier(n_maps=5).fit([[0.0], [1.0]], np.array([0, 1], dtype=dtype))
        assert loaded(saved(model)).classes_.dtype == dtype


def test_a_file_object_is_read_from_where_it_stands(fitted, saved):
    data = saved(fitted("stumps")[0])
    file = io.BytesIO(b"before" + data)
    file.seek(6)
    assert load(file).n_maps_ == fitted("stumps")[0].n_maps_


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("path", sorted(DATA.glob("*.mbkl")), ids=lambda path: path.stem)
def test_old_files_load_for_ever(path):
    """Files of every version of the format, with the scores that they gave when written."""
    model, extra = load(path), load_extra(path)
    X = np.array(extra["rows"], dtype=np.float64)
    result = model.kernel(X) if isinstance(model, MBKernel) else model.decision_function(X)
    np.testing.assert_allclose(result, extra["result"], rtol=1e-12, atol=1e-12)
    if "labels" in extra:
        assert model.predict(X).tolist() == extra["labels"]


def test_there_are_old_files():
    assert len(list(DATA.glob("version-1-*.mbkl"))) >= 3
    assert len(list(DATA.glob("version-2-*.mbkl"))) >= 3
    assert container.VERSION == 2, "a new version needs files of its own in tests/io/data"


def test_a_newer_version_names_the_remedy(fitted, saved, loaded, monkeypatch):
    monkeypatch.setattr(container, "VERSION", 3)
    data = saved(fitted("stumps")[0])
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=r"format 3.*up to 2; install a newer mbkl"):
        loaded(data)


def test_the_producer_is_named(fitted, saved):
    assert f'"producer":"mbkl {mbkl.__version__}"'.encode() in saved(fitted("stumps")[0])
    assert model_file.ModelFileError is ModelFileError


def test_candidates_that_were_given_up_stay_so(tmp_path):
    X, y = make_classification(300, 6, random_state=0)
    model = MBKLClassifierCV(n_maps=60, random_state=0).fit(X, y)
    scores = np.array([model.cv_results_[f"split{fold}_test_score"] for fold in range(5)])
    assert np.isnan(scores).any()
    model.save(tmp_path / "model.mbkl")
    found = mbkl.load(tmp_path / "model.mbkl").cv_results_
    for fold in range(5):
        np.testing.assert_array_equal(found[f"split{fold}_test_score"], scores[fold])
    np.testing.assert_array_equal(found["rank_test_score"], model.cv_results_["rank_test_score"])
