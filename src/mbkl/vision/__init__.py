"""Image descriptors: from images to the features that the classifiers learn from."""

from mbkl.vision.bag_of_words import BagOfWords
from mbkl.vision.colour import ColourPatches, HueHistogram
from mbkl.vision.gist import GIST
from mbkl.vision.hog import HOG
from mbkl.vision.images import read_image
from mbkl.vision.recipes import flower_descriptor, pedestrian_descriptor, scene_descriptor
from mbkl.vision.sift import ColourSIFT, DenseSIFT, OpponentSIFT
from mbkl.vision.sparse_quantization import NestedSparseQuantization
from mbkl.vision.vocabulary import Vocabulary

__all__ = [
    "GIST",
    "HOG",
    "BagOfWords",
    "ColourPatches",
    "ColourSIFT",
    "DenseSIFT",
    "HueHistogram",
    "NestedSparseQuantization",
    "OpponentSIFT",
    "Vocabulary",
    "flower_descriptor",
    "pedestrian_descriptor",
    "read_image",
    "scene_descriptor",
]
