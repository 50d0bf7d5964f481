"""Pictures of a text that a reader has just sent, before the page's own run has drawn them.

Streamlit redraws a page as a whole. Its two large pictures are requested here at the same time,
made once for both, before the page's run begins, and drawn as soon as they arrive. With many
readers at once there are none: two threads for one text cost more than one, and the page's own run
draws them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.analysis import attention, recorded_findings
from explorer.analysis.attention import DisplayOptions, HeadSelection
from explorer.components import codec
from explorer.panels import attention as attention_panels
from explorer.panels.selection import Selection, select
from explorer.server import request_body
from explorer.state import event_log, host, models
from explorer.state.scheduling import heavy_models, memory_budget, script_queue
from models import model_names
from models.run import Run

VIEWS = (*attention_panels.VIEWS, attention_panels.TABLE)

# The first page's pictures of a text that was typed just now, made without its page. The browser
# draws them while the page's own run is on its way.

# What the pictures may be asked for with: the choices that a new text leaves as they are.
OPTIONS = {"view": VIEWS, "scale": attention.SCALES, "tone": attention.TONES}
HEAD_KEYS = ("layer", "head")  # these too, as numbers
SELECTION_KEYS = ("attention", *HEAD_KEYS)


@memory_budget.work()
def pictures(model: str, text: str, choices: Mapping[str, str]) -> dict[str, bytes]:
    """The payloads of the views by name, the same bytes as the page will send. None where they
    cannot be predicted: another choice, a model that is not loaded. Raises ValueError for an
    attention that the model does not have."""
    valid = all(choices[name] in OPTIONS.get(name, (choices[name],)) for name in choices)
    if not valid or not choices.keys() <= {*OPTIONS, *SELECTION_KEYS} or not is_ready(model):
        return {}
    source = Run(model, text)
    attention_name = choices.get("attention", "")
    if not any(map(choices.get, SELECTION_KEYS)):
        attention_name = recorded_findings.default_attention(source.recording())
    on = select(source, attention=attention_name)
    display = DisplayOptions(
        scale=choices.get("scale", attention.SCALES[0]),
        tone=choices.get("tone", attention.TONES[0]),
    )
    heads = attention_panels.grid_panel(on, display)
    layer, head = chosen_head(on, choices) or recorded_findings.opening_head(
        on.recording, on.attention
    )
    on = replace(on, layer=layer, head=head)
    row = recorded_findings.opening_row(on.recording, on.attention, (layer, head))
    display = replace(display, unit=attention_panels.unit_on_screen(on, row))
    selected = HeadSelection((row, None if on.is_across else row))
    link = attention_panels.link_on_screen(on, row)
    view = attention_panels.view_of(on, selected, display, link)
    made = attention_panels.head_panel(on, view, choices.get("view", VIEWS[0]))
    return {each.name: each.bare for each in (heads, made)}


def is_ready(model: str) -> bool:
    """True for a model that comes with this server and is in memory."""
    return models.is_loaded(model) and not model_names.is_borrowed(model)


def chosen_head(on: Selection, choices: Mapping[str, str]) -> tuple[int, int] | None:
    """The head that was chosen, where there is one."""
    sizes = on.attention.pattern.shape[:2]
    values = [choices.get(name, "") for name in HEAD_KEYS]
    if not all(each.isdecimal() and len(each) < 6 for each in values):
        return None
    layer, number = map(int, values)
    return (layer, number) if layer < sizes[0] and number < sizes[1] else None


PATH = "/ahead"
MAX_BODY_BYTES = 32_768  # of what is asked
MAX_TEXT_BYTES = 4_000  # bytes of a text that is drawn so: a longer one fills the models
MAX_CONCURRENT = 2  # requests that are answered
MAX_RECENT_RUNS = 6  # of the script within a second; a reader who types makes three
NO_CONTENT = Response(status_code=204, headers={"Cache-Control": "no-store"})


async def prefetch_pictures(request: Request) -> Response:
    """The two pictures, or nothing."""
    arguments = await _parse_request(request)
    if (
        arguments is None
        or script_queue.ahead() >= MAX_CONCURRENT
        or script_queue.begun_lately() > MAX_RECENT_RUNS
    ):
        return NO_CONTENT
    try:
        # Until they are made, not until they are sent: whoever never reads would hold up all runs.
        with script_queue.before(arguments[:2], arguments[0] in heavy_models):
            payload = await run_in_threadpool(_pictures, *arguments)
    except ValueError:  # the page says what is wrong
        return NO_CONTENT
    # Any fault of ours: the page's run meets it too and says so. It is logged by its kind and place
    # alone, since the server's own traceback may hold the text.
    except Exception as error:
        event_log.log_exception(error)
        return NO_CONTENT
    if not payload:
        return NO_CONTENT
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        payload = await run_in_threadpool(_packed, payload)
        headers["Content-Encoding"] = "gzip"
    return Response(payload, media_type="application/octet-stream", headers=headers)


async def _parse_request(request: Request) -> tuple[str, str, dict[str, str]] | None:
    """Model, text and choices; None for anything else."""
    try:
        body = await request_body.json_object(request, MAX_BODY_BYTES)
    except (ValueError, ClientDisconnect):
        return None
    model, text, choices = (body.get(name) for name in ("model", "text", "choices"))
    if not (isinstance(model, str) and isinstance(text, str) and isinstance(choices, dict)):
        return None
    if not all(isinstance(each, str) for each in choices.values()):
        return None
    short = len(text.encode("utf-8", "replace")) <= MAX_TEXT_BYTES
    return (model, text, choices) if short else None


def _pictures(model: str, text: str, choices: dict[str, str]) -> bytes:

    with host.prefetching():
        images = pictures(model, text, choices)
    blocks = {name: np.frombuffer(data, np.uint8) for name, data in images.items()}
    return codec.encode({}, blocks) if images else b""


def _packed(data: bytes) -> bytes:
    """Gzipped by the frequencies of its bytes alone: weights have few runs to find, and it takes a
    third of the time that the server's own compression of all answers would."""
    packing = zlib.compressobj(1, zlib.DEFLATED, 31, 9, zlib.Z_HUFFMAN_ONLY)
    return packing.compress(data) + packing.flush()


ROUTES = [Route(PATH, prefetch_pictures, methods=["POST"])]
