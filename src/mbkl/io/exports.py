"""What all exports share: which models there are, and the columns of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mbkl.io.inside import KernelPredictor, Levels

KINDS = ("number", "text", "one-hot", "ordinal")


def check_exportable(model) -> None:
    """Complain of anything but a fitted classifier or regressor."""
    if not isinstance(model, KernelPredictor):
        raise TypeError(f"Only classifiers and regressors can be exported; got {type(model)!r}.")
    check_is_fitted(model)


@dataclass(frozen=True)
class Column:
    """A column of a frame, and how it becomes features: see `mbkl.tabular.TableEncoder`.

    Parameters
    ----------
    name : str
    kind : {"number", "text", "one-hot", "ordinal"}
        "text" is a category of the model, whatever its levels are.
    categories : tuple
        Of text; or the levels of a category.
    first : int
        First feature that it becomes.
    """

    name: str
    kind: str
    categories: tuple
    first: int

    @property
    def is_text(self) -> bool:
        """Whether the values are text: a category may also have numbers or booleans."""
        return self.kind != "number" and all(isinstance(one, str) for one in self.categories)

    @property
    def n_features(self) -> int:
        return len(self.categories) if self.kind == "one-hot" else 1


def columns_of_model(
    model: KernelPredictor, rules: Sequence[Mapping[str, Any]] | None
) -> list[Column] | None:
    """Return the columns that a model takes; None if they are a matrix of numbers.

    Parameters
    ----------
    model : KernelPredictor
    rules : sequence of dict or None
        Those of a `TableEncoder`; None means the columns that the model learned from.
    """
    if rules is None:
        if model.n_levels is None:
            return None
        pairs = zip(_check_feature_names_in(model), model.levels_, strict=True)
        rules = [{"name": str(n), "kind": "number" if own is None else "text"} for n, own in pairs]
    return columns_of(rules, model.levels_)


def columns_of(rules: Sequence[Mapping[str, Any]], levels: Sequence[Levels]) -> list[Column]:
    """Return the columns that rules describe.

    Parameters
    ----------
    rules : sequence of dict
        With `name`, `kind` and `categories`.
    levels : sequence of (list or None)
        Levels of each feature of the model, None for numbers.

    Examples
    --------
    >>> rules = [{"name": "size", "kind": "one-hot", "categories": ["S", "L"]}]
    >>> columns_of(rules, [None, None])
    [Column(name='size', kind='one-hot', categories=('S', 'L'), first=0)]
    """
    columns: list[Column] = []
    n_before = 0
    for rule in rules:
        name, kind = rule.get("name"), rule.get("kind")
        categories = tuple(rule.get("categories") or ())
        if not isinstance(name, str) or not name or kind not in KINDS:
            raise ValueError(f"A rule needs a name and one of the kinds {', '.join(KINDS)}: {rule}")
        if name in (column.name for column in columns):
            raise ValueError(f"Two rules have the name {name!r}.")
        if not all(isinstance(category, str) for category in categories):
            raise ValueError(f"The categories of {name!r} must be texts.")
        if len(set(categories)) < len(categories) or (kind in ("number", "text")) == bool(
            categories
        ):
            raise ValueError(f"The categories of {name!r} must be different, and only of text.")
        own = levels[n_before] if n_before < len(levels) else None
        if (kind == "text") != (own is not None):
            raise ValueError(
                f"{name!r} must be text where the model has a category, and only there."
            )
        columns.append(Column(name, kind, categories if own is None else tuple(own), n_before))
        n_before += columns[-1].n_features
    if n_before != len(levels):
        raise ValueError(f"The rules make {n_before} features, but the model has {len(levels)}.")
    return columns
