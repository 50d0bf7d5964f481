"""The first page's pictures of a text that was typed just now, made without its page. The browser
draws them while the page's own run is on its way."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.analysis import attention as numbers
from explorer.analysis.head_view import Asked, Choices
from explorer.frame import opening
from explorer.memory import models
from explorer.memory.passes import Shown
from explorer.memory.room import room
from explorer.views.attention import grid, head
from explorer.views.attention.screen import Screen, screen, telling_head, told_row

# What the pictures may be asked for with: the choices that a new text leaves as they are.
OPTIONS = {"view": head.VIEWS, "scale": numbers.SCALES, "tone": numbers.TONES}
AT = ("layer", "head")  # these too, as numbers
LEFT = ("attention", *AT)


@room.work()
def pictures(model: str, text: str, asked: Mapping[str, str]) -> dict[str, bytes]:
    """What the views draw, by their names, the same bytes as the page will send; none where they
    cannot be told beforehand: another choice, a model that is not at hand. Raises ValueError for an
    attention that the model does not have."""
    known = all(asked[name] in OPTIONS.get(name, (asked[name],)) for name in asked)
    if not known or not asked.keys() <= {*OPTIONS, *LEFT} or not at_hand(model):
        return {}
    source = Shown(model, text)
    named = asked.get("attention", "")
    if not any(map(asked.get, LEFT)):
        named = opening.telling_attention(source.recording())
    on = screen(source, named)
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
    held = (row, row if on.axes.said is None else None)
    view = on.view(at, Asked(held, ""), chosen)
    return {"heads": heads, "head": head.drawn(on, view, asked.get("view", head.VIEWS[0]))}


def at_hand(model: str) -> bool:
    """True for a model that comes with this server and lies in memory."""
    return models.is_loaded(model) and not models.is_borrowed(model)


def asked_head(on: Screen, asked: Mapping[str, str]) -> tuple[int, int] | None:
    """The head that was chosen, where there is one."""
    sizes = on.attention.pattern.shape[:2]
    at = [asked.get(name, "") for name in AT]
    if not all(each.isdecimal() and len(each) < 6 for each in at):
        return None
    layer, number = map(int, at)
    return (layer, number) if layer < sizes[0] and number < sizes[1] else None
