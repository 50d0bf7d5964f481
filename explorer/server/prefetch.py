"""The pictures of a text that a reader has just sent, before the page's own run has drawn them.

Streamlit draws a page anew as a whole. Its two large pictures are asked for here at the same time,
made once for both, before the page's run begins, and drawn as soon as they come. Where many readers
are at it there are none: two threads at one text cost more than one, and the page's own run brings
them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.analysis import attention
from explorer.analysis.attention import DisplayOptions, HeadSelection
from explorer.components import codec
from explorer.layout import controls
from explorer.server import request_body
from explorer.state import event_log, models
from explorer.state.cache import Run
from explorer.state.scheduling import line, room
from explorer.views.attention import grid, head
from explorer.views.attention.page_state import AttentionState, screen, telling_head, told_row

# The first page's pictures of a text that was typed just now, made without its page. The browser
# draws them while the page's own run is on its way.

# What the pictures may be asked for with: the choices that a new text leaves as they are.
OPTIONS = {"view": head.VIEWS, "scale": attention.SCALES, "tone": attention.TONES}
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
    source = Run(model, text)
    named = asked.get("attention", "")
    if not any(map(asked.get, LEFT)):
        named = controls.telling_attention(source.recording())
    on = screen(source, named)
    chosen = DisplayOptions(
        attention.UNITS[0],
        attention.KEPT[0],
        attention.SUMS[0],
        asked.get("scale", attention.SCALES[0]),
        asked.get("tone", attention.TONES[0]),
    )
    heads = grid.drawn(on, chosen)[0]
    at = asked_head(on, asked) or telling_head(on, controls.first(on.recording, on.attention))
    row = told_row(on, at)
    held = (row, row if on.axes.said is None else None)
    view = on.view(at, HeadSelection(held, ""), chosen)
    return {"heads": heads, "head": head.drawn(on, view, asked.get("view", head.VIEWS[0]))}


def at_hand(model: str) -> bool:
    """True for a model that comes with this server and lies in memory."""
    return models.is_loaded(model) and not models.is_borrowed(model)


def asked_head(on: AttentionState, asked: Mapping[str, str]) -> tuple[int, int] | None:
    """The head that was chosen, where there is one."""
    sizes = on.attention.pattern.shape[:2]
    at = [asked.get(name, "") for name in AT]
    if not all(each.isdecimal() and len(each) < 6 for each in at):
        return None
    layer, number = map(int, at)
    return (layer, number) if layer < sizes[0] and number < sizes[1] else None


PATH = "/ahead"
MOST_BYTES = 32_768  # of what is asked
LONGEST = 4_000  # bytes of a text that is drawn so: a longer one fills the models
MOST_AT_ONCE = 2  # requests that are answered
MOST_RUNS = 6  # of the script within a second; a reader who types makes three
NONE = Response(status_code=204, headers={"Cache-Control": "no-store"})


async def ahead(request: Request) -> Response:
    """The two pictures, or nothing."""
    said = await _read(request)
    if said is None or line.ahead() >= MOST_AT_ONCE or line.begun_lately() > MOST_RUNS:
        return NONE
    try:
        # Until they are made, not until they are sent: whoever never reads would hold up all runs.
        with line.before(said[:2]):
            made = await run_in_threadpool(_pictures, *said)
    except ValueError:  # the page says what is wrong
        return NONE
    # A fault of ours, whichever: the page's run meets it too and says so. Here it is told by its
    # kind and place, since the words of the server's own traceback may hold the text.
    except Exception as error:
        event_log.raised(error)
        return NONE
    if not made:
        return NONE
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        made = await run_in_threadpool(_packed, made)
        headers["Content-Encoding"] = "gzip"
    return Response(made, media_type="application/octet-stream", headers=headers)


async def _read(request: Request) -> tuple[str, str, dict[str, str]] | None:
    """Model, text and choices; None for anything else."""
    try:
        said = await request_body.json_object(request, MOST_BYTES)
    except (ValueError, ClientDisconnect):
        return None
    model, text, asked = (said.get(name) for name in ("model", "text", "asked"))
    if not (isinstance(model, str) and isinstance(text, str) and isinstance(asked, dict)):
        return None
    if not all(isinstance(each, str) for each in asked.values()):
        return None
    short = len(text.encode("utf-8", "replace")) <= LONGEST
    return (model, text, asked) if short else None


def _pictures(model: str, text: str, asked: dict[str, str]) -> bytes:

    made = pictures(model, text, asked)
    blocks = {name: np.frombuffer(data, np.uint8) for name, data in made.items()}
    return codec.encode({}, blocks) if made else b""


def _packed(data: bytes) -> bytes:
    """Gzipped by the frequencies of its bytes alone: weights have few runs to find, and it takes a
    third of the time that the server's own compression of all answers would."""
    packing = zlib.compressobj(1, zlib.DEFLATED, 31, 9, zlib.Z_HUFFMAN_ONLY)
    return packing.compress(data) + packing.flush()


ROUTES = [Route(PATH, ahead, methods=["POST"])]
