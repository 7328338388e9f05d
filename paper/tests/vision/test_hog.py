"""HOG, compared with its definition cell by cell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbkl_paper.vision import HOG
from mbkl_paper.vision.hog import gradients

# The twin, in plain loops.


def slopes(image, row, column, span):
    """Return the gradient at a point; with an odd span it lies at a corner of pixels."""
    half = span // 2
    if span % 2 == 0:
        down = image[row + half, column] - image[row - half, column]
        right = image[row, column + half] - image[row, column - half]
    else:
        down = sum(image[row + half + 1, c] - image[row - half, c] for c in (column, column + 1))
        right = sum(image[r, column + half + 1] - image[r, column - half] for r in (row, row + 1))
        down, right = down / 2, right / 2
    return down / span, right / span


def histograms(image, cell, span, soft):
    height, width = image.shape
    n_rows, n_columns = (height + cell // 2) // cell, (width + cell // 2) // cell
    result = np.zeros((n_rows, n_columns, 18))
    half, odd = span // 2, span % 2
    for row in range(half, height - half - odd):
        for column in range(half, width - half - odd):
            down, right = slopes(image, row, column, span)
            strength = np.hypot(down, right)
            turn = np.arctan2(down, right) * 9 / np.pi % 18
            votes = {int(turn) % 18: 1 - turn % 1, (int(turn) + 1) % 18: turn % 1}
            if not soft:
                votes = {int(turn + 0.499) % 18: 1.0}
            y = (row + 0.5 + odd / 2) / cell - 0.5
            x = (column + 0.5 + odd / 2) / cell - 0.5
            for i in (int(np.floor(y)), int(np.floor(y)) + 1):
                for j in (int(np.floor(x)), int(np.floor(x)) + 1):
                    if 0 <= i < n_rows and 0 <= j < n_columns:
                        share = (1 - abs(y - i)) * (1 - abs(x - j))
                        for direction, part in votes.items():
                            result[i, j, direction] += strength * share * part
    return result


def features(image, cell, spans, soft, clip=0.2):
    histogram_of = {span: histograms(image, cell, span, soft) for span in spans}
    n_rows, n_columns = histogram_of[spans[0]].shape[:2]
    energy = np.mean(
        [((h[..., :9] + h[..., 9:]) ** 2).sum(axis=2) for h in histogram_of.values()], axis=0
    )

    def at(i, j):
        return energy[np.clip(i, 0, n_rows - 1), np.clip(j, 0, n_columns - 1)]

    rows = []
    for directed in histogram_of.values():
        for i in range(n_rows):
            for j in range(n_columns):
                factors = [
                    (at(i, j) + at(i + a, j) + at(i, j + b) + at(i + a, j + b) + 1e-4) ** -0.5
                    for a in (-1, 1)
                    for b in (-1, 1)
                ]
                undirected = directed[i, j, :9] + directed[i, j, 9:]
                for h in (directed[i, j], undirected):
                    rows.append(sum(np.minimum(clip, factor * h) for factor in factors) / 2)
                textures = [np.minimum(clip, factor * undirected).sum() for factor in factors]
                rows.append(np.array(textures) / np.sqrt(18))
    return np.concatenate(rows)


@pytest.mark.parametrize("soft", [True, False])
@pytest.mark.parametrize(
    ("cell", "padding", "span"), [(6, 0, (2,)), (5, 3, (1,)), (4, 2, (3, 2)), (7, 0, (1, 4))]
)
def test_the_definition(make_images, soft, cell, padding, span):
    image = make_images(1, height=23, width=20)
    found = HOG(cell=cell, padding=padding, span=span, soft=soft).fit_transform(image)
    padded = np.pad(image[0] / 255, padding, mode="edge")
    np.testing.assert_allclose(found[0], features(padded, cell, span, soft), atol=2e-5)


def test_the_length_of_the_paper(make_images):
    assert HOG().fit_transform(make_images(3, height=36, width=18)).shape == (3, 558)


def test_half_a_cell_of_padding(make_images):
    images = make_images(2, height=36, width=18)
    half = HOG(padding="half", cell=(6, 9)).fit_transform(images)
    parts = [HOG(padding=p, cell=c).fit_transform(images) for c, p in ((6, 3), (9, 4))]
    np.testing.assert_array_equal(half, np.hstack(parts))


def test_several_cells_are_put_one_after_the_other(make_images):
    images = make_images(2)
    joint = HOG(cell=(6, 8)).fit_transform(images)
    parts = [HOG(cell=cell).fit_transform(images) for cell in (6, 8)]
    np.testing.assert_array_equal(joint, np.hstack(parts))


def test_several_spans_tell_how_sharp_an_edge_is():
    step = np.zeros((1, 24, 24))
    step[:, :, 12:] = 1
    ramp = np.broadcast_to(np.clip((np.arange(24) - 9) / 5, 0, 1), (1, 24, 24))
    shares = []
    for image in (step, ramp):
        fine, coarse = np.split(HOG(span=(1, 4)).fit_transform(image)[0], 2)
        shares.append(fine.sum() / coarse.sum())
    assert shares[0] > 1.5 * shares[1]


def test_names_belong_to_columns(make_images):
    images = make_images(2)
    model = HOG(cell=(6, 8), span=(1, 2), padding="half", n_orientations=4)
    columns = model.fit_transform(images).shape[1]
    names = model.get_feature_names_out()
    assert len(set(names)) == names.size == columns
    only = HOG(cell=8, span=(1, 2), padding="half", n_orientations=4).fit(images)
    np.testing.assert_array_equal(
        model.transform(images)[:, [name.startswith("cell 8 ") for name in names]],
        only.transform(images),
    )


@pytest.mark.parametrize("contrast", ["linear", "sqrt", "log"])
def test_contrast_is_applied_to_the_brightness(make_images, contrast):
    images = make_images(2)
    function = {
        "linear": lambda x: x,
        "sqrt": np.sqrt,
        "log": lambda x: np.log1p(255 * x) / np.log(256),
    }[contrast]
    np.testing.assert_allclose(
        HOG(contrast=contrast).fit_transform(images),
        HOG().fit_transform(function(images / 255)),
        atol=1e-5,
    )


def test_brightness_does_not_matter(make_images):
    images = make_images(3) // 2
    np.testing.assert_allclose(
        HOG().fit_transform(images + np.uint8(100)), HOG().fit_transform(images), atol=1e-4
    )


def test_the_scale_of_contrast_does_not_matter(make_images):
    images = make_images(3).astype(float) / 255
    np.testing.assert_allclose(
        HOG(epsilon=1e-12).fit_transform(images / 4),
        HOG(epsilon=1e-12).fit_transform(images),
        atol=1e-5,
    )


@given(st.sampled_from([1, 2, 3, 4]), st.integers(0, 5))
def test_a_mirrored_image_has_mirrored_features(span, seed):
    image = np.random.default_rng(seed).uniform(size=(1, 18, 24))
    model = HOG(span=span)
    there, back = (model.fit_transform(i).reshape(3, 4, 31) for i in (image, image[:, :, ::-1]))
    directions = (9 - np.arange(18)) % 18
    orientations = 18 + (9 - np.arange(9)) % 9
    textures = [28, 27, 30, 29]
    mirrored = there[:, ::-1][:, :, [*directions, *orientations, *textures]]
    np.testing.assert_allclose(back, mirrored, atol=1e-4)


@pytest.mark.parametrize("value", [0, 17, 255])
@pytest.mark.parametrize("contrast", ["linear", "sqrt", "log"])
def test_a_constant_image_is_zero(value, contrast):
    images = np.full((1, 36, 18), value, dtype=np.uint8)
    model = HOG(contrast=contrast, padding="half", span=(1, 2))
    np.testing.assert_array_equal(model.fit_transform(images), 0)


def test_all_features_lie_in_their_range(make_images):
    found = HOG(clip=0.3).fit_transform(make_images(3))
    assert found.dtype == np.float32
    assert found.min() >= 0
    assert found.reshape(-1, 31)[:, :27].max() <= 0.6 + 1e-6


def test_colour_images_use_the_strongest_channel(make_images):
    grey = make_images(2)
    flat = np.full_like(grey, 90)
    np.testing.assert_array_equal(
        HOG().fit_transform(np.stack([flat, grey, flat], axis=3)), HOG().fit_transform(grey)
    )


def test_grey_and_colour_images_together(make_images):
    grey, colours = make_images(1), make_images(1, colours=True)
    together = HOG().fit_transform([grey[0], colours[0]])
    np.testing.assert_array_equal(together[:1], HOG().fit_transform(grey))
    np.testing.assert_array_equal(together[1:], HOG().fit_transform(colours))


def test_an_image_has_the_same_features_in_any_company(make_images):
    images = make_images(300, height=36, width=18)
    model = HOG(padding="half").fit(images)
    whole = model.transform(images)
    assert whole[7:8].tobytes() == model.transform(images[7:8]).tobytes()
    assert whole.tobytes() == model.transform(list(images)).tobytes()


def test_images_of_several_sizes_need_a_size(make_images):
    images = [make_images(1)[0], make_images(1, height=30)[0]]
    with pytest.raises(ValueError, match=r"images\[1\] has 30 x 44 .* set size"):
        HOG().fit_transform(images)
    assert HOG(size=(36, 18)).fit_transform(images).shape == (2, 558)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cell": 60}, "smaller than a cell"),
        ({"cell": 6, "span": 50}, "smaller than a cell"),
        ({"cell": ()}, "cell must be"),
        ({"cell": (6, 0)}, "cell must be"),
        ({"cell": 0}, "cell"),
        ({"span": (2, 1.5)}, "span must be"),
        ({"padding": -1}, "padding"),
        ({"contrast": "cube"}, "contrast"),
        ({"clip": 0}, "clip"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"size": (3, 3, 3)}, "size must be"),
        ({"size": (0, 3)}, "size must be"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_settings(make_images, settings, message):
    with pytest.raises(ValueError, match=message):
        HOG(**settings).fit_transform(make_images(2))


@pytest.mark.parametrize("span", [1, 2, 3, 4, 5])
def test_a_plane_has_the_same_slope_everywhere(span):
    rows, columns = np.mgrid[:9, :11]
    down, right = gradients((2.0 * rows + 3.0 * columns)[None], span)
    assert down.shape == right.shape == (1, 9 - span, 11 - span)
    np.testing.assert_allclose(down, 2)
    np.testing.assert_allclose(right, 3)
