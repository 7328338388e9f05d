"""Image descriptors: from images to the features that the classifiers learn from."""

from mbkl_paper.vision.bag_of_words import BagOfWords
from mbkl_paper.vision.colour import ColourPatches, HueHistogram
from mbkl_paper.vision.gist import GIST
from mbkl_paper.vision.hog import HOG
from mbkl_paper.vision.images import read_image
from mbkl_paper.vision.recipes import flower_descriptor, pedestrian_descriptor, scene_descriptor
from mbkl_paper.vision.sift import ColourSIFT, DenseSIFT, OpponentSIFT
from mbkl_paper.vision.sparse_quantization import NestedSparseQuantization
from mbkl_paper.vision.vocabulary import Vocabulary

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
