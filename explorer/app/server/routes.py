"""Middleware between the browser and Streamlit, outermost first, and the routes without
Streamlit."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from explorer.app.classroom import routes, speaker
from explorer.app.server import class_frame, open_files, panel, prefetch
from explorer.app.server.addresses import RouteFilter
from explorer.app.server.base_path import WithBasePath, WithoutBasePath
from explorer.app.server.client_address import ClientAddress, lies_in
from explorer.app.server.headers import SafeHeaders
from explorer.app.server.limits import SessionLimit, slots
from explorer.app.server.messages import WebSocketFilter
from explorer.app.server.page import NoErrorDialogs, Placeholder
from explorer.app.server.static import CompressedStatic, component
from explorer.app.server.uploads import UploadLimit
from explorer.app.state import event_log
from explorer.app.state.settings import settings
from explorer.components import bundle
from explorer.wording.templates import sentences
from models import model_names
from models.example_texts import DEFAULT_MODEL
from models.runtime import caching

if TYPE_CHECKING:
    from models.contract.model import Model


# Is it well? `/healthz` makes a tiny real pass and says how things stand; `/readyz` says whether
# readers can be sent here.

# it is there before torch is

# How long an answer is given again, so that asking often costs nothing.
CACHE_SECONDS = 2.0
TEXT = "text/plain; version=0.0.4"  # of Prometheus
WORDS = sentences("server", "pages")

_lock = threading.Lock()
_last: tuple[float, dict[str, object]] = (0.0, {})


async def healthz(request: Request) -> Response:
    """200 and figures as JSON after a pass of the first model over one word; 503 where there is no
    model or the pass fails. For the addresses of `HEADLIGHT_METRICS`, as `metrics`."""
    if not lies_in(request.scope, settings().metrics):
        return PlainTextResponse(WORDS("nothing"), 404)
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
    from explorer.app.state import models
    from explorer.app.state.scheduling import compute_queue, script_queue

    loaded = tuple(models.loaded_models)
    shipped = [name for name in loaded if not model_names.is_borrowed(name)]
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


async def metrics(request: Request) -> Response:
    """Figures in Prometheus's text format, for the addresses of `HEADLIGHT_METRICS`; to all others
    there is nothing here."""
    if not lies_in(request.scope, settings().metrics):
        return PlainTextResponse(WORDS("nothing"), 404)
    return PlainTextResponse(figures(), headers={"Cache-Control": "no-store"}, media_type=TEXT)


def figures() -> str:
    """The server's figures, a line each: what is now, and what was counted since its start."""
    from explorer.app.state import models
    from explorer.app.state.scheduling import compute_queue, script_queue

    now = {
        "readers": slots.used,
        "readers_max": slots.limit,
        "queue_runs": script_queue.waiting(),
        "queue_computations": compute_queue.waiting(),
        "models": len(models.loaded_models),
        "cache_bytes": caching.cache.weight(),
        "cache_bytes_max": caching.cache.limit,
    }
    lines = [f"headlight_{name} {value}" for name, value in now.items()]
    lines += [f"headlight_texts_total {event_log.counts('text').get('', 0)}"]
    refusals = event_log.counts("refusal")
    lines += [f'headlight_refusals_total{{why="{why}"}} {n}' for why, n in refusals.items()]
    lines += _latency_lines()
    lines += [f"process_resident_memory_bytes {rss()}"]
    if (files := Path("/proc/self/fd")).exists():
        lines += [f"process_open_fds {len(list(files.iterdir()))}"]
        lines += [f"process_max_fds {open_files.limit()}"]
    return "\n".join([*_types(lines), ""])


def _latency_lines() -> Iterator[str]:
    """The histogram of the seconds that pages and panels took."""
    name, bounds = "headlight_answer_seconds", (*event_log.SECONDS, "+Inf")
    for kind, (counted, total) in event_log.latencies().items():
        for bound, n in zip(bounds, counted):
            yield f'{name}_bucket{{kind="{kind}",le="{bound}"}} {n}'
        yield f'{name}_sum{{kind="{kind}"}} {total:.3f}'
        yield f'{name}_count{{kind="{kind}"}} {counted[-1]}'


def _types(lines: list[str]) -> Iterator[str]:
    """The lines, each name's first one after the line that says what kind of figure it is."""
    last = ""
    for line in lines:
        name = re.split(r"[{ ]", line)[0]
        name = re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name)
        kind = {"total": "counter", "seconds": "histogram"}.get(name.rpartition("_")[2], "gauge")
        if name != last:
            yield f"# TYPE {name} {kind}"
        last = name
        yield line


def _first_model() -> Model | None:
    """The first model, None as long as it is not in memory."""
    from explorer.app.state import models

    return models.loaded_models.get(DEFAULT_MODEL)


def rss() -> int:
    """Bytes of memory that this process holds; 0 where the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


ROUTES = [
    *class_frame.ROUTES,
    Route(f"/{bundle.ROUTE}/{{name:path}}", component),
    Route("/healthz", healthz),
    Route("/readyz", readyz),
    Route("/metrics", metrics),
    *panel.ROUTES,
    *prefetch.ROUTES,
    *speaker.ROUTES,
    *routes.ROUTES,
    *routes.JOIN_ROUTES,
]
# Who asks; headers on whatever is answered; then what is closed; then whether there is room; then
# what may be said; then Streamlit's settings, words and files.
STACK = (
    ClientAddress,
    SafeHeaders,
    WithoutBasePath,
    RouteFilter,
    UploadLimit,
    SessionLimit,
    WebSocketFilter,
    NoErrorDialogs,
    Placeholder,
    CompressedStatic,
)
MIDDLEWARE = [*(Middleware(each) for each in STACK), Middleware(WithBasePath, routes=ROUTES)]
