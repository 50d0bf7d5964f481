"""Positions: in this sentence, in another order of its words, and the encoding itself."""

from __future__ import annotations

from explorer.app.layout import selection_bar
from explorer.app.layout.tab import Hand, view
from explorer.panels.positions import PositionRuns
from explorer.screens.rows import arguments_of_all
from explorer.screens.screen import Screen


def select(shown: Screen) -> None:
    """The menus of the token and the head on screen, where the panel on show takes them. Of a model
    whose stream has no vectors of positions the head alone, since there is nothing to see of a
    token."""
    menus = {each.argument for each in arguments_of_all(shown.on_show)} & {"layer", "head", "token"}
    has_vectors = PositionRuns(shown.run, shown.chosen["stream"]).has_vectors
    if "head" in menus and not has_vectors:
        menus.discard("token")
    selection_bar.draw(shown.run, shown.chosen, menus)


view("positions", Hand(select=select))
