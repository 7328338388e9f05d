"""A picture of the kernel between rows, sorted by class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_consistent_length

from mbkl.explain.kernel_matrix import kernel_matrix, rows_by_class
from mbkl.plot.style import INK, add_colour_bar, pyplot, quieten, shorten


@dataclass(eq=False, repr=False)
class KernelMatrixDisplay:
    """The kernel matrix of rows sorted by class; learned well, it has dark blocks.

    Parameters
    ----------
    kernel : ndarray of shape (n_rows, n_rows)
        Of rows sorted by class.
    labels : ndarray of shape (n_rows,)
        Their classes.
    title : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage

    Examples
    --------
    Equal weights beside learned ones:

    >>> import matplotlib.pyplot as plt
    >>> from mbkl import MBKLClassifier
    >>> from mbkl.plot import KernelMatrixDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MBKLClassifier(maps="stumps", theta="learned", random_state=0).fit(X, y)
    >>> figure, axes = plt.subplots(1, 2)
    >>> left = KernelMatrixDisplay.from_estimator(model, X, y, theta="ones", ax=axes[0])
    >>> right = KernelMatrixDisplay.from_estimator(model, X, y, ax=axes[1])
    """

    kernel: NDArray[np.float64]
    labels: NDArray
    _: KW_ONLY
    title: str = ""

    @classmethod
    def from_estimator(cls, estimator, X, y, *, theta="model", max_rows: int = 400, ax=None):
        """Compute the kernel of rows and draw it.

        Parameters
        ----------
        estimator : MBKLClassifier or MBKernel
            Fitted.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes, by which rows are sorted.
        theta : {"model", "ones"}, default="model"
            Weights of the maps: the model's, or equal ones.
        max_rows : int, default=400
            More rows are drawn from by a hash of their values.
        ax : matplotlib Axes or None

        Returns
        -------
        display : KernelMatrixDisplay
        """
        if theta not in ("model", "ones"):
            raise ValueError(f"theta must be 'model' or 'ones', got {theta!r}.")
        y = np.asarray(y)
        check_consistent_length(X, y)
        rows = rows_by_class(estimator._validate_new(X), y, max_rows)
        shown = _safe_indexing(X, rows)
        kernel = kernel_matrix(estimator, shown, equal_weights=theta == "ones")
        title = "equal weights" if theta == "ones" else "weights of the model"
        return cls(kernel, y[rows], title=f"{title}, {estimator.n_maps_:,} maps").plot(ax=ax)

    def plot(self, ax=None, *, cmap="Blues", colorbar: bool = True):
        """Draw into an axes, or into a new figure; return the display."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=(5.2, 4.6), layout="constrained")
        size = len(self.kernel)
        # The diagonal is one for every kernel and would take up the scale.
        apart = self.kernel[~np.eye(size, dtype=bool)] if size > 1 else self.kernel.ravel()
        low, high = np.quantile(apart, [0.01, 0.99])
        self.image_ = ax.imshow(
            self.kernel, cmap=cmap, vmin=low, vmax=max(high, low + 1e-9), interpolation="nearest"
        )
        classes, first, counts = np.unique(self.labels, return_index=True, return_counts=True)
        for edge in first[1:] - 0.5:
            ax.axhline(edge, color=INK, linewidth=0.5)
            ax.axvline(edge, color=INK, linewidth=0.5)
        # Labels that would lie on each other are left out.
        shown = counts >= size / 30
        ax.set_yticks(
            (first + (counts - 1) / 2)[shown], [shorten(str(name), 16) for name in classes[shown]]
        )
        ax.set_xticks([])
        ax.set_title(self.title, fontsize=10)
        quieten(ax)
        ax.spines[:].set_visible(False)
        ax.tick_params(axis="y", length=0)
        if colorbar:
            label = "share of the weight on which two rows agree"
            add_colour_bar(ax, self.image_, label, fraction=0.04)
        self.ax_, self.figure_ = ax, ax.figure
        return self
