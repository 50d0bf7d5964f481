"""Positions: in this sentence, in another order of its words, and the encoding itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.analysis import recorded_findings
from explorer.layout import selection_bar
from explorer.layout.current_recording import only_text
from explorer.layout.tab import Hand, view
from explorer.panels.positions import PositionRuns
from explorer.state import url_state
from models.run import Run


def chosen_head(runs: PositionRuns) -> dict[str, int]:
    """The layer and the head of the address, or of the head that positions move most; {} where the
    panel says why there is none."""
    card = runs.plain.model
    layer = url_state.whole_number("layer", card.n_layer)
    head = url_state.whole_number("head", card.n_head)
    try:
        return dict(zip(("layer", "head"), runs.head(layer, head)))
    except ValueError:
        return {}


def select(run: Run, chosen: Mapping[str, Any], arguments: set[str]) -> dict[str, int]:
    """The token and the head on screen, with their menus, where the panel on show takes them. Of a
    model whose stream has no vectors of positions the head alone, since there is nothing to see of
    a token."""
    if not {"head", "token"} & arguments:
        return {}
    selection_bar.take()
    runs = PositionRuns(run, chosen["stream"])
    stream, card = runs.plain.stream(runs.stream), runs.plain.model
    if "head" not in arguments:
        return {
            "token": selection_bar.word(stream, recorded_findings.first_word(runs.plain, stream))
        }
    at, size = chosen_head(runs), (card.n_layer, card.n_head)
    if "token" not in arguments or not runs.has_vectors:
        if at:
            selection_bar.head(size, (at["layer"], at["head"]))
        return at
    token = url_state.whole_number("token", len(stream.tokens))
    if token is None:
        token = recorded_findings.first_word(runs.plain, stream)
    if at:
        words = selection_bar.Words(stream.tokens, token, roles=stream.roles)
        selection_bar.show(words, size, (at["layer"], at["head"]))
    else:
        selection_bar.show_word(stream, token)
    return {"token": token, **at}


view("positions", Hand(read=only_text, select=select))
