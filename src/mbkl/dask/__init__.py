"""MBKL on a Dask cluster: rows stay on the workers, tables go out and histograms come back."""

from mbkl.dask.crew import WorkerLostError
from mbkl.dask.estimator import MBKLClassifier, MBKLRegressor

__all__ = ["MBKLClassifier", "MBKLRegressor", "WorkerLostError"]
