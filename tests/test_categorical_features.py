"""Frames with categories, from fit to prediction."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mbkl import MBKernel, MBKLClassifier, MBKLClassifierCV, MBKLRegressor
from mbkl.maps import Categories, GrownFerns

TOWNS = ["Bonn", "Oslo", "Rome", "Wien"]


def make_frame(n_rows=300, seed=0):
    """Return rows in which only the town and the size together tell the class, and labels."""
    generator = np.random.default_rng(seed)
    town = generator.integers(4, size=n_rows)
    size = generator.integers(2, size=n_rows)
    frame = pd.DataFrame(
        {
            "town": np.array(TOWNS, dtype=object)[town],
            "age": generator.normal(size=n_rows),
            "size": pd.Categorical.from_codes(size, ["S", "L"]),
            "member": generator.random(n_rows) < 0.5,
        }
    )
    return frame, np.where((town % 2 == 0) == (size == 0), "yes", "no")


@pytest.mark.parametrize("maps", ["auto", "ferns", GrownFerns(n_ferns=60, patience=60)])
def test_interactions_of_categories_are_learned(maps):
    frame, y = make_frame(1_000)
    new, truth = make_frame(300, seed=1)
    model = MBKLClassifier(maps=maps, n_maps=300, random_state=0).fit(frame, y)
    assert model.score(new, truth) > 0.95
    assert model.levels_ == [TOWNS, None, ["S", "L"], [False, True]]


def test_levels_without_interactions():
    frame, _ = make_frame()
    y = frame["town"].isin(["Bonn", "Rome"])
    for maps in ("stumps", Categories(), "categories"):
        model = MBKLClassifier(maps=maps, random_state=0).fit(frame, y)
        assert model.score(frame, y) == 1.0
        assert model.predictor_.maps.families[-1].features.tolist()[0] == 0


@pytest.mark.parametrize("maps", ["auto", "stumps", "grown"])
def test_missing_and_new_levels_have_a_place(maps):
    frame, _ = make_frame(400)
    frame.loc[::3, "town"] = None
    y = frame["town"].isna()
    model = MBKLClassifier(maps=maps, random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.99
    new = frame[:3].assign(town=["Paris", None, "Rome"])
    scores = model.decision_function(new)
    assert np.isfinite(scores).all()
    assert scores[1] > 0 > scores[2]


@pytest.mark.parametrize("kind", [MBKLClassifier, MBKLClassifierCV, MBKernel])
def test_pandas_polars_and_level_numbers_are_the_same(kind):
    frame, y = make_frame(120)
    enum = pl.from_pandas(frame).with_columns(pl.col("size").cast(pl.Enum(["S", "L"])))
    numbers = np.column_stack(
        [frame["town"].map(TOWNS.index), frame["age"], frame["size"].cat.codes, frame["member"]]
    )
    options = {"n_maps": 40, "random_state": 0, "maps": "auto"}
    found = []
    for X, wanted in (
        (frame, "from_dtype"),
        (enum, ["town", "size", "member"]),
        (numbers, [0, 2, 3]),
        (numbers, [True, False, True, True]),
    ):
        model = kind(categorical_features=wanted, **options).fit(X, y)
        found.append(model.kernel(X) if kind is MBKernel else model.decision_function(X))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_names_of_the_cells_of_a_kernel():
    frame, y = make_frame(100)
    kernel = MBKernel(maps="categories", random_state=0).fit(frame, y)
    names = kernel.get_feature_names_out()
    assert list(names[:6]) == [f"town {c}" for c in ("missing", *(f"= {t}" for t in TOWNS), "new")]
    assert kernel.transform(frame).shape == (100, names.size)


@pytest.mark.parametrize("maps", ["auto", "grown"])
def test_the_order_of_the_rows_and_copies_of_them_do_not_matter(maps):
    frame, y = make_frame(200)
    order = np.random.default_rng(0).permutation(200)
    model = MBKLClassifier(maps=maps, n_maps=60, random_state=0).fit(frame, y)
    other = MBKLClassifier(maps=maps, n_maps=60, random_state=0, n_jobs=1)
    other.fit(frame.iloc[order], y[order])
    np.testing.assert_array_equal(other.decision_function(frame), model.decision_function(frame))


def test_ten_thousand_levels():
    generator = np.random.default_rng(0)
    effect = generator.normal(size=1_000) > 0
    number = generator.integers(1_000, size=12_000)
    frame = pd.DataFrame({"zip": [f"{n:05}" for n in number], "x": generator.random(12_000)})
    y = effect[number] ^ (generator.random(12_000) < 0.1)
    for maps in ("stumps", "grown"):
        model = MBKLClassifier(maps=maps, random_state=0).fit(frame[:9_000], y[:9_000])
        assert model.score(frame[9_000:], y[9_000:]) > 0.8


def test_columns_are_checked_by_name():
    frame, y = make_frame(60)
    model = MBKLClassifier(n_maps=20, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"town": "city"}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="holds number, but text in training"):
        model.predict(frame.assign(town=1.5))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["city"], "'city', which is no column of X"),
        ([9], "has 9, which is no column of X; it has 0, 1, 2, 3"),
        ([True, False], "of 4 booleans, one for each column"),
        (None, "column 'town' holds text"),
        ("all", "categorical_features"),
    ],
)
def test_categorical_features_that_make_no_sense(wanted, message):
    frame, y = make_frame(60)
    with pytest.raises(ValueError, match=message):
        MBKLClassifier(categorical_features=wanted).fit(frame, y)


def test_level_numbers_in_files_and_within_memory(tmp_path):
    from mbkl.parquet import read_parquet

    frame, y = make_frame(400)
    numbers = pd.DataFrame(
        {"town": frame["town"].map(TOWNS.index), "age": frame["age"].astype(np.float32), "y": y}
    )
    numbers.to_parquet(tmp_path / "rows.parquet", index=False)
    X, labels = read_parquet(tmp_path / "rows.parquet", "y")
    model = MBKLClassifier(n_maps=40, random_state=0, categorical_features=["town"])
    outside = model.fit(X, labels).decision_function(numbers[["town", "age"]])
    inside = model.fit(numbers[["town", "age"]], y).decision_function(numbers[["town", "age"]])
    np.testing.assert_array_equal(outside, inside)
    assert (model.fit(X, labels).predict(X) == y).mean() > 0.4
    named = MBKLClassifier(n_maps=10).fit(frame[["town", "age"]], y)
    with pytest.raises(ValueError, match="hold level numbers, but the model has levels such as 'B"):
        named.predict(X)
    frame.assign(y=y).drop(columns="size").to_parquet(tmp_path / "text.parquet", index=False)
    with pytest.raises(ValueError, match=r"'town' .* holds .*string, no numbers.*categorical"):
        read_parquet(tmp_path / "text.parquet", "y")


def test_a_device_has_the_same_model():
    pytest.importorskip("torch")
    frame, y = make_frame(200)
    frame.loc[::5, "town"] = None
    host = MBKLClassifier(n_maps=60, random_state=0).fit(frame, y)
    device = MBKLClassifier(n_maps=60, random_state=0, device="torch").fit(frame, y)
    new = frame.assign(town="Paris")
    for rows in (frame, new):
        np.testing.assert_allclose(
            device.decision_function(rows), host.decision_function(rows), atol=1e-3
        )


def test_a_checkpoint_goes_on_with_categories(tmp_path):
    frame, y = make_frame(300)
    options = {"maps": "grown", "random_state": 0, "checkpoint": tmp_path / "fit"}
    first = MBKLClassifier(**options).fit(frame, y)
    again = MBKLClassifier(**options).fit(frame, y)
    np.testing.assert_array_equal(again.decision_function(frame), first.decision_function(frame))


@pytest.mark.parametrize("maps", ["auto", "stumps", "grown"])
def test_numbers_are_learned_from_categories(maps):
    frame, _ = make_frame(600)
    effect = frame["town"].map(dict(zip(TOWNS, (0.0, 3.0, -2.0, 1.0), strict=True)))
    y = effect + 0.1 * frame["age"]
    model = MBKLRegressor(maps=maps, random_state=0).fit(frame[:400], y[:400])
    assert model.score(frame[400:], y[400:]) > 0.9
    assert np.isfinite(model.predict(frame[:2].assign(town=["Paris", None]))).all()
