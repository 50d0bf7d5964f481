"""The pictures of a text that a reader has just sent, before the page's own run has drawn them.

Streamlit draws a page anew as a whole. Its two large pictures are asked for here at the same time,
made once for both, before the page's run begins, and drawn as soon as they come. Where many readers
are at it there are none: two threads at one text cost more than one, and the page's own run brings
them.
"""

from __future__ import annotations

import zlib

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.components import wire
from explorer.memory import told
from explorer.memory.runs import line
from explorer.server import sent

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
        told.raised(error)
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
        said = await sent.json_object(request, MOST_BYTES)
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
    from explorer.views.attention.ahead import pictures  # with the first text, not with the server

    made = pictures(model, text, asked)
    blocks = {name: np.frombuffer(data, np.uint8) for name, data in made.items()}
    return wire.encode({}, blocks) if made else b""


def _packed(data: bytes) -> bytes:
    """Gzipped by the frequencies of its bytes alone: weights have few runs to find, and it takes a
    third of the time that the server's own compression of all answers would."""
    packing = zlib.compressobj(1, zlib.DEFLATED, 31, 9, zlib.Z_HUFFMAN_ONLY)
    return packing.compress(data) + packing.flush()


ROUTES = [Route(PATH, ahead, methods=["POST"])]
