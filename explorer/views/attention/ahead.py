"""The first page's pictures of a text that was typed just now, made without its page. The browser
draws them while the page's own run is on its way."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.analysis import attention as numbers
from explorer.analysis.head_view import Asked, Choices
from explorer.frame import opening
from explorer.memory import models
from explorer.memory.passes import Shown
from explorer.views.attention import grid, head
from explorer.views.attention.screen import Screen, screen, telling_head, told_row

# What the pictures may be asked for with: the choices that a new text leaves as they are.
OPTIONS = {"view": head.VIEWS, "scale": numbers.SCALES, "tone": numbers.TONES}
LEFT = ("layer", "head")  # these too, as numbers


def pictures(model: str, text: str, asked: Mapping[str, str]) -> dict[str, bytes]:
    """What the views draw, by their names, the same bytes as the page will send; none where they
    cannot be told beforehand: another choice, a model that is not at hand or has several
    attentions."""
    known = all(asked[name] in OPTIONS.get(name, (asked[name],)) for name in asked)
    if not known or not asked.keys() <= {*OPTIONS, *LEFT} or not at_hand(model):
        return {}
    on = screen(Shown(model, text), "")
    chosen = Choices(
        numbers.UNITS[0],
        numbers.KEPT[0],
        numbers.SUMS[0],
        asked.get("scale", numbers.SCALES[0]),
        asked.get("tone", numbers.TONES[0]),
    )
    heads = grid.drawn(on, chosen)[0]
    at = asked_head(on, asked) or telling_head(on, opening.first(on.recording, on.attention))
    row = told_row(on, at)
    view = on.view(at, Asked((row, row), ""), chosen)
    return {"heads": heads, "head": head.drawn(on, view, asked.get("view", head.VIEWS[0]))}


def at_hand(model: str) -> bool:
    """True for a model that comes with this server, lies in memory, and has one attention."""
    if models.is_borrowed(model) or not models.is_loaded(model):
        return False
    return models.handle(model).card.kind != "encoder-decoder"


def asked_head(on: Screen, asked: Mapping[str, str]) -> tuple[int, int] | None:
    """The head that was chosen, where there is one."""
    sizes = on.attention.pattern.shape[:2]
    at = [asked.get(name, "") for name in LEFT]
    if not all(each.isdecimal() and len(each) < 6 for each in at):
        return None
    layer, number = map(int, at)
    return (layer, number) if layer < sizes[0] and number < sizes[1] else None
