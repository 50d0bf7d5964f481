"""Files on their way to the browser: Streamlit's own scripts and styles, compressed once and kept,
and the components' code."""

from __future__ import annotations

import gzip
import mimetypes
from functools import lru_cache
from pathlib import Path

import streamlit
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.app.server import startup_bundle
from explorer.components import bundle
from explorer.wording.templates import sentences

WORDS = sentences("server", "pages")
STATIC = Path(streamlit.__file__).resolve().parent / "static"
COMPRESSED = {".js", ".css", ".svg", ".json"}
IMMUTABLE = {"Cache-Control": "public, immutable, max-age=31536000"}


@lru_cache(maxsize=256)
def compressed(file: Path) -> bytes:
    """The file's bytes, gzipped. Streamlit's file names carry a hash of their content, so a kept
    copy is never stale."""
    return gzip.compress(file.read_bytes(), compresslevel=6)


class CompressedStatic:
    """Sends Streamlit's own scripts and styles gzipped: they are two thirds of a first visit, and
    Streamlit sends them as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = _compressible_file(scope)
        if file is None:
            await self.app(scope, receive, send)
            return
        headers = {**IMMUTABLE, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        await Response(await run_in_threadpool(compressed, file), headers=headers, media_type=kind)(
            scope, receive, send
        )


@lru_cache(maxsize=256)
def packed(name: str) -> bytes:
    """One of our modules, gzipped. Raises KeyError where there is none of this name."""
    return gzip.compress(bundle.files()[name], compresslevel=9)


async def component(request: Request) -> Response:
    """The startup bundle, or the code of one of our components or of what they share."""
    name = request.path_params["name"]
    zipped = "gzip" in request.headers.get("accept-encoding", "")
    startup = None
    if name.endswith("/startup"):
        startup = await run_in_threadpool(startup_bundle.startup_bundle)
    if startup and startup.path == f"{bundle.ROUTE}/{name}":
        kind, data = "application/octet-stream", startup.packed if zipped else startup.data
    elif name in bundle.files():
        kind, data = "text/javascript", packed(name) if zipped else bundle.files()[name]
    else:
        return Response(WORDS("no_component"), status_code=404, media_type="text/plain")
    headers = {**IMMUTABLE, "Vary": "Accept-Encoding"}
    if zipped:
        headers["Content-Encoding"] = "gzip"
    return Response(data, media_type=kind, headers=headers)


def _compressible_file(scope: Scope) -> Path | None:
    """The static file a request names, if it may be sent compressed."""
    if scope["type"] != "http" or scope["method"] != "GET" or "/static/" not in scope["path"]:
        return None
    if "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
        return None
    try:
        file = (STATIC / "static" / scope["path"].partition("/static/")[2]).resolve()
        return (
            file
            if file.suffix in COMPRESSED and file.is_relative_to(STATIC) and file.is_file()
            else None
        )
    except (ValueError, OSError):  # a name that no file can have, such as one with a zero byte
        return None
