"""Positions: in this sentence, in another order of its words, and the encoding itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.layout import selection_bar
from explorer.layout.tab import Hand, view
from explorer.panels.positions import PositionRuns
from models.run import Run


def select(run: Run, chosen: Mapping[str, Any], arguments: set[str]) -> dict[str, int]:
    """The menus of the token and the head on screen, where the panel on show takes them. Of a model
    whose stream has no vectors of positions the head alone, since there is nothing to see of a
    token."""
    has_vectors = PositionRuns(run, chosen["stream"]).has_vectors or "head" not in arguments
    shown = arguments & {"layer", "head", *(("token",) if has_vectors else ())}
    selection_bar.draw(run, chosen, shown)
    return {}


view("positions", Hand(select=select))
