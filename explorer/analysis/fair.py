"""The fair comparison: models that were trained without a part, beside the one that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.csv import Columns


@dataclass(frozen=True, eq=False)
class Trained:
    """A model that was trained without a part: its name, what it lacks, the model that has it, and
    both learning curves, (look, 2) of step and loss."""

    name: str
    without: str
    full: str
    curve: np.ndarray
    full_curve: np.ndarray
    scores: Mapping[str, object]
    full_scores: Mapping[str, object]


def trained_without(cards: Mapping[str, Mapping]) -> tuple[Trained, ...]:
    """The models whose card says what they were trained without, each beside the full one. cards:
    by name.

    The full model is the one the card names under `of`, or else the one whose name begins this
    one's; a model without such a one is left out.
    """
    made = []
    for name, card in cards.items():
        without, of = card.get("without"), _full(name, cards)
        if without and of is not None and of in cards:
            what = without if isinstance(without, str) else ", ".join(map(str, without))
            one, full = card, cards[of]
            scores = one.get("scores", {}), full.get("scores", {})
            made.append(Trained(name, what, of, _curve(one), _curve(full), *scores))
    return tuple(made)


def _full(name: str, cards: Mapping[str, Mapping]) -> str | None:
    """The model that has every part, beside the one of this name."""
    begins = (
        other
        for other in sorted(cards, key=len, reverse=True)
        if name.startswith(f"{other}-no-") and not cards[other].get("without")
    )
    return cards[name].get("of") or next(begins, None)


def _curve(card: Mapping) -> np.ndarray:
    pairs = [pair for pair in card.get("curve", ()) if len(pair) == 2]
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def result_columns(found: Sequence[Trained]) -> Columns:
    """What models of one family came to, the full one first: the last loss of each, and those of
    their scores that are numbers."""
    rows = [
        ("nothing", found[0].full_curve, found[0].full_scores),
        *((of.without, of.curve, of.scores) for of in found),
    ]
    names = [name for name, value in rows[0][2].items() if isinstance(value, (int, float))]
    return {
        "trained without": [without for without, _, _ in rows],
        "last loss": [float(curve[-1, 1]) if len(curve) else None for _, curve, _ in rows],
        **{name: [scores.get(name) for _, _, scores in rows] for name in names},
    }


def curve_columns(series: Sequence[tuple[str, np.ndarray]]) -> Columns:
    """Learning curves, (name, (look, 2) of step and loss), as named columns one below the other."""
    return {
        "model": [name for name, curve in series for _ in curve],
        "step": [int(step) for _, curve in series for step in curve[:, 0]],
        "loss": [float(loss) for _, curve in series for loss in curve[:, 1]],
    }
