"""The pictures of a text that a reader has just sent, before the page's own run has drawn them.

Streamlit draws a page anew as a whole. Its two large pictures are asked for here at the same time,
made once for both, and drawn as soon as they come. Where others wait there are none: the page's own
run brings them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.components import wire
from explorer.memory.runs import line
from explorer.memory.turns import TooLong

PATH = "/ahead"
MOST_BYTES = 32_768  # of what is asked
LONGEST = 1_000  # characters of a text that is drawn so: a longer one takes as long as its page
MOST_WAITING = 1  # runs of the script that wait, and requests that are answered at once
NONE = Response(status_code=204, headers={"Cache-Control": "no-store"})

_under_way = 0


async def ahead(request: Request) -> Response:
    """The two pictures, or nothing."""
    global _under_way
    said = await _read(request)
    if said is None or _under_way > MOST_WAITING or line.waiting() > MOST_WAITING:
        return NONE
    _under_way += 1
    try:
        made = await run_in_threadpool(_pictures, *said)
    except (ValueError, TooLong):  # the page says what is wrong
        return NONE
    finally:
        _under_way -= 1
    if not made:
        return NONE
    blocks = {name: np.frombuffer(data, np.uint8) for name, data in made.items()}
    return Response(
        wire.encode({}, blocks),
        media_type="application/octet-stream",
        headers={"Cache-Control": "no-store"},
    )


async def _read(request: Request) -> tuple[str, str, dict[str, str]] | None:
    """Model, text and choices; None for anything else."""
    if request.headers.get("content-type") != "application/json":
        return None  # what any other site's page may send
    try:
        if int(request.headers.get("content-length", MOST_BYTES + 1)) > MOST_BYTES:
            return None
        said: Any = json.loads(await request.body())
        model, text, asked = said["model"], said["text"], said["asked"]
    except (ValueError, KeyError, TypeError, ClientDisconnect):
        return None
    words = isinstance(asked, dict) and all(isinstance(each, str) for each in asked.values())
    if not (isinstance(model, str) and isinstance(text, str) and words and len(text) <= LONGEST):
        return None
    return model, text, asked


def _pictures(model: str, text: str, asked: dict[str, str]) -> dict[str, bytes]:
    from explorer.views.attention.ahead import pictures  # with the first text, not with the server

    return pictures(model, text, asked)


ROUTES = [Route(PATH, ahead, methods=["POST"])]
