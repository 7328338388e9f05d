"""Small images."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def make_images():
    """Return a function that draws images with large and small structures."""

    def make(n_images=4, height=40, width=44, colours=False, seed=0):
        generator = np.random.default_rng(seed)
        shape = (n_images, height, width, 3) if colours else (n_images, height, width)
        rows, columns = np.mgrid[:height, :width]
        waves = np.sin(rows / 5.0) * np.cos(columns / 7.0)
        values = 128 + 60 * (waves[..., None] if colours else waves)
        return (values + generator.uniform(-60, 60, shape)).astype(np.uint8)

    return make
