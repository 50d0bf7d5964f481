"""Middleware between the browser and Streamlit, outermost first, and the routes without
Streamlit."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from explorer.classroom import routes
from explorer.components import bundle
from explorer.server import prefetch
from explorer.server.middleware import (
    CompressedStatic,
    NoErrorDialogs,
    Placeholder,
    RouteFilter,
    SafeHeaders,
    SessionLimit,
    WebSocketFilter,
    component,
    slots,
)

if TYPE_CHECKING:
    from models.model import Model


# Is it well? `/healthz` makes a tiny real pass and says how things stand; `/readyz` says whether
# readers can be sent here.

# it is there before torch is

# How long an answer is given again, so that asking often costs nothing.
CACHE_SECONDS = 2.0

_lock = threading.Lock()
_last: tuple[float, dict[str, object]] = (0.0, {})


async def healthz(request: Request) -> Response:
    """200 and figures as JSON after a pass of the first model over one word; 503 where there is no
    model or the pass fails."""
    health = await run_in_threadpool(current_health)
    return JSONResponse(health, 200 if health["ok"] else 503, {"Cache-Control": "no-store"})


async def readyz(request: Request) -> Response:
    """200 once the first model is in memory, else 503."""
    ready = _first_model() is not None
    return JSONResponse({"ready": ready}, 200 if ready else 503, {"Cache-Control": "no-store"})


def current_health() -> dict[str, object]:
    """The server's health, measured anew at most every `CACHE_SECONDS` seconds while all is
    well."""
    global _last
    with _lock:
        if time.monotonic() - _last[0] > CACHE_SECONDS or not _last[1].get("ok"):
            _last = (time.monotonic(), _measure_health())
        return _last[1]


def _measure_health() -> dict[str, object]:
    from explorer.state import models
    from explorer.state.scheduling import compute_queue, script_queue

    loaded = tuple(models._handles)
    shipped = [name for name in loaded if not models.is_borrowed(name)]
    health: dict[str, object] = {
        "ok": False,
        "seconds": None,
        "rss_bytes": rss(),
        "sessions": slots.used,
        "most_sessions": slots.limit,
        "queue": compute_queue.waiting() + script_queue.waiting(),
        # What readers opened is theirs to know: of borrowed models the number alone.
        "models": shipped,
        "borrowed_models": len(loaded) - len(shipped),
    }
    if (first := _first_model()) is None:
        return health
    start = time.perf_counter()
    recording = first.record("a")
    health["seconds"] = round(time.perf_counter() - start, 4)
    health["ok"] = bool(recording.attention[0].pattern.sum() > 0)
    return health


def _first_model() -> Model | None:
    """The first model, None as long as it is not in memory."""
    from explorer.state import models

    return models._handles.get(models.DEFAULT_MODEL)


def rss() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


# Headers on whatever is answered; then what is closed; then whether there is room; then what may be
# said; then Streamlit's settings, words and files.
STACK = (
    SafeHeaders,
    RouteFilter,
    SessionLimit,
    WebSocketFilter,
    NoErrorDialogs,
    Placeholder,
    CompressedStatic,
)
MIDDLEWARE = [Middleware(each) for each in STACK]
ROUTES = [
    Route(f"/{bundle.ROUTE}/{{name:path}}", component),
    Route("/healthz", healthz),
    Route("/readyz", readyz),
    *prefetch.ROUTES,
    *routes.ROUTES,
    *routes.JOIN_ROUTES,
]
