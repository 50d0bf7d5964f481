"""Pictures of a text that a reader has just sent, before the page's own run has drawn them.

Streamlit redraws a page as a whole. The two large pictures of Heads, or the flow, are requested
here at the same time, made once for both, before the page's run begins, and drawn as soon as they
arrive. With many readers at once there are none: two threads for one text cost more than one, and
the page's own run draws them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.app.server import request_body
from explorer.app.state import event_log, host, models
from explorer.app.state.scheduling import heavy_models, memory_budget, script_queue
from explorer.components import codec
from explorer.panels import architecture, flow_levels
from explorer.panels import attention as attention_panels
from explorer.panels.choice import parameters
from explorer.screens.screen import of_words
from models import model_names

# The first page's pictures of a text that was typed just now, made without its page. The browser
# draws them while the page's own run is on its way.

# What the pictures may be asked for with: the choices that a new text leaves as they are. No head
# of it may have the pattern.
CHOICES = {*attention_panels.CHOICES} - {"token", "source", "pattern"}


FLOW = "flow"  # as a tab
OF_FLOW = {each.name for each in parameters(architecture.flow)} - {"token", "source", "weight_step"}


@memory_budget.work()
def pictures(model: str, text: str, words: Mapping[str, str], tab: str = "") -> dict[str, bytes]:
    """The payloads of the views of a tab by name, the same bytes as the page will send, but that
    of a flow what takes long and is not seen at once is missing: the ends of words, the words
    nearest to hidden units, and the formulas below the whole. None where they cannot be predicted:
    another choice than a text leaves as it is, a model that is not loaded. words: of an address.
    Raises ValueError for what is not there."""
    if not words.keys() <= (OF_FLOW if tab == FLOW else CHOICES) or not is_ready(model):
        return {}
    with host.hurrying() if tab == FLOW else nullcontext():
        shown = of_words({"tab": tab, "model": model, "text": text, **words})
        for why in shown.refused.values():
            raise ValueError(why)
        panels = tuple(shown.panels())
    if tab != FLOW:
        return {each.name: each.bare for each in panels}
    (flow,) = panels
    first = replace(flow, token=f"{flow.token}+")  # the page's own says more
    if words.get("flow_level", flow_levels.MODEL) == flow_levels.MODEL:
        first = replace(first, formulas=())
    return {flow.name: first.encode()}


def is_ready(model: str) -> bool:
    """True for a model that comes with this server and is in memory."""
    return models.is_loaded(model) and not model_names.is_borrowed(model)


PATH = "/ahead"
MAX_BODY_BYTES = 32_768  # of what is asked
MAX_TEXT_BYTES = 4_000  # bytes of a text that is drawn so: a longer one fills the models
MAX_CONCURRENT = 2  # requests that are answered
MAX_RECENT_RUNS = 6  # of the script within a second; a reader who types makes three
NO_CONTENT = Response(status_code=204, headers={"Cache-Control": "no-store"})


async def prefetch_pictures(request: Request) -> Response:
    """The pictures of a tab, or nothing."""
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


async def _parse_request(request: Request) -> tuple[str, str, dict[str, str], str] | None:
    """Model, text, choices and tab; None for anything else."""
    try:
        body = await request_body.json_object(request, MAX_BODY_BYTES)
    except (ValueError, ClientDisconnect):
        return None
    model, text, choices = (body.get(name) for name in ("model", "text", "choices"))
    tab = body.get("tab", "")
    if not (isinstance(model, str) and isinstance(text, str) and isinstance(choices, dict)):
        return None
    if tab not in ("", FLOW):
        return None
    if not all(isinstance(each, str) for each in choices.values()):
        return None
    short = len(text.encode("utf-8", "replace")) <= MAX_TEXT_BYTES
    return (model, text, choices, tab) if short else None


def _pictures(model: str, text: str, choices: dict[str, str], tab: str) -> bytes:

    with host.prefetching():
        images = pictures(model, text, choices, tab)
    blocks = {name: np.frombuffer(data, np.uint8) for name, data in images.items()}
    return codec.encode({}, blocks) if images else b""


def _packed(data: bytes) -> bytes:
    """Gzipped by the frequencies of its bytes alone: weights have few runs to find, and it takes a
    third of the time that the server's own compression of all answers would."""
    packing = zlib.compressobj(1, zlib.DEFLATED, 31, 9, zlib.Z_HUFFMAN_ONLY)
    return packing.compress(data) + packing.flush()


ROUTES = [Route(PATH, prefetch_pictures, methods=["POST"])]
