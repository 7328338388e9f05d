"""What all exports share: which models there are, and the columns of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from mbkl.io.inside import KernelClassifier

KINDS = ("number", "one-hot", "ordinal")


def check_classifier(model) -> None:
    """Complain of anything but a fitted classifier."""
    if not isinstance(model, KernelClassifier):
        raise TypeError(f"Only classifiers can be exported; got {type(model)!r}.")
    check_is_fitted(model)


@dataclass(frozen=True)
class Column:
    """A column of a frame, and how it becomes features: see `mbkl.tabular.TableEncoder`.

    Parameters
    ----------
    name : str
    kind : {"number", "one-hot", "ordinal"}
    categories : tuple of str
        Of text.
    first : int
        First feature that it becomes.
    """

    name: str
    kind: str
    categories: tuple[str, ...]
    first: int

    @property
    def is_text(self) -> bool:
        return self.kind != "number"

    @property
    def n_features(self) -> int:
        return len(self.categories) if self.kind == "one-hot" else 1


def columns_of(rules: Sequence[Mapping[str, Any]], n_features: int) -> list[Column]:
    """Return the columns that rules describe.

    Parameters
    ----------
    rules : sequence of dict
        With `name`, `kind` and `categories`.
    n_features : int
        How many features they must have together.

    Examples
    --------
    >>> rules = [{"name": "size", "kind": "one-hot", "categories": ["S", "L"]}]
    >>> columns_of(rules, 2)
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
        if len(set(categories)) < len(categories) or (kind == "number") == bool(categories):
            raise ValueError(f"The categories of {name!r} must be different, and only of text.")
        columns.append(Column(name, kind, categories, n_before))
        n_before += columns[-1].n_features
    if n_before != n_features:
        raise ValueError(f"The rules make {n_before} features, but the model has {n_features}.")
    return columns
