"""What model files and exports use of the rooms below: nothing else here imports from them."""

from mbkl.classifier import KernelClassifier, MBKLClassifier
from mbkl.engine.arrays import smallest_code_dtype
from mbkl.estimator import default_target_names
from mbkl.kernel_predictor import KernelPredictor
from mbkl.levels import Levels, NoLevels, columns_of, counts_of
from mbkl.maps.binning import BinEdges
from mbkl.maps.categories import CategoryMaps, LevelSets
from mbkl.maps.families import FAMILIES, Maps, MapSet, families_of
from mbkl.maps.ferns import DEEPEST, FernMaps
from mbkl.maps.projections import ProjectionMaps, chi2_map
from mbkl.maps.stumps import StumpMaps
from mbkl.predictor import TablePredictor
from mbkl.regressor import KernelRegressor, MBKLRegressor

__all__ = [
    "DEEPEST",
    "FAMILIES",
    "BinEdges",
    "CategoryMaps",
    "FernMaps",
    "KernelClassifier",
    "KernelPredictor",
    "KernelRegressor",
    "LevelSets",
    "Levels",
    "MBKLClassifier",
    "MBKLRegressor",
    "MapSet",
    "Maps",
    "NoLevels",
    "ProjectionMaps",
    "StumpMaps",
    "TablePredictor",
    "chi2_map",
    "columns_of",
    "counts_of",
    "default_target_names",
    "families_of",
    "smallest_code_dtype",
]
