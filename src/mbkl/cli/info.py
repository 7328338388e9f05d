"""`mbkl info`: what a model file holds."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mbkl.cli.console import Console
from mbkl.cli.options import ModelFile


def info(model: ModelFile, console: Console) -> None:
    """Show what a model knows: its classes or numbers, its columns and its parameters.

    mbkl info people.mbkl
    """
    with console.steps(reading=1) as steps:
        steps.begin("reading", f"reading {model.name}")
        from mbkl.cli.models import Trained

        trained = Trained.load(model)
    learned = trained.model
    defaults = type(learned)().get_params()
    chosen = {
        name: value for name, value in learned.get_params().items() if value != defaults[name]
    }
    content: dict[str, Any] = {
        "model": model,
        "bytes": model.stat().st_size,
        "kind": type(learned).__name__,
        **_what_it_predicts(learned),
        "target": trained.target,
        "features": learned.n_features_in_,
        "maps": learned.n_maps_,
        "C": learned.C_,
        "parameters": chosen,
    }

    def show() -> None:
        rows = [(name, _in_words(value)) for name, value in content.items()]
        kinds = Counter(rule["kind"] for rule in trained.rules or ())
        rows += [(f"columns, {kind}", str(number)) for kind, number in kinds.items()]
        console.grid(rows, left=2)

    console.result({**content, "rules": trained.rules}, show)


def _what_it_predicts(model: Any) -> dict[str, Any]:
    if not hasattr(model, "classes_"):
        return {"predicts": "numbers", "share of grown ferns": round(float(model.grown_share_), 3)}
    return {"classes": model.classes_, "probabilities": hasattr(model, "predict_proba")}


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={one!r}" for name, one in value.items()) or "defaults"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "tolist"):
        return ", ".join(map(str, value.tolist()))
    return f"{value:,}" if isinstance(value, int) else str(value)
