"""Positions: in this sentence, in another order of its words, and the encoding itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.analysis import recorded_findings
from explorer.layout import selection_bar
from explorer.layout.tab import Tab, views
from explorer.panels import positions
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


def select_head(source: Run, chosen: Mapping[str, Any]) -> dict[str, int]:
    """The head on screen, with its menus."""
    selection_bar.take()
    runs = PositionRuns(source, chosen["stream"])
    at = chosen_head(runs)
    if at:
        card = runs.plain.model
        selection_bar.head((card.n_layer, card.n_head), (at["layer"], at["head"]))
    return at


def select_token_and_head(source: Run, chosen: Mapping[str, Any]) -> dict[str, int]:
    """The token and the head on screen, with their menus; of a model that adds no positions the
    head alone, since there is nothing to see of a token."""
    runs = PositionRuns(source, chosen["stream"])
    if runs.adds == "none":
        return select_head(source, chosen)
    selection_bar.take()
    stream, card = runs.plain.stream(runs.stream), runs.plain.model
    token = url_state.whole_number("token", len(stream.tokens))
    if token is None:
        token = recorded_findings.first_word(runs.plain, stream)
    at = chosen_head(runs)
    if at:
        words = selection_bar.Words(stream.tokens, token, roles=stream.roles)
        size = card.n_layer, card.n_head
        selection_bar.show(words, size, (at["layer"], at["head"]))
    else:
        selection_bar.show_word(stream, token)
    return {"token": token, **at}


WAIT = "Reading the words in both orders …"

word_order = views(
    "ask",
    {
        "Sentence": ("This sentence", Tab((positions.sentence,), select=select_token_and_head)),
        "Order": ("Another order", Tab((positions.order,), select=select_head, wait=WAIT)),
        "Waves": ("Encoding", Tab((positions.encoding,))),
        "Distance": ("Products", Tab((positions.distance,))),
        "Shift": ("Rotation", Tab((positions.rotation,))),
        "Adding": ("Add or concatenate", Tab((positions.overlap,))),
    },
    edited=False,
    typed=False,
)
