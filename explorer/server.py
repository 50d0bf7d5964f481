"""Between the browser and Streamlit: static files compressed once and kept, the components' code, words to read
at once, and headers that keep the page to itself."""

from __future__ import annotations

import gzip
import mimetypes
from functools import lru_cache
from pathlib import Path

import streamlit
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.components import bundle

STATIC = Path(streamlit.__file__).parent / "static"
COMPRESSED = {".js", ".css", ".svg", ".json"}
# Streamlit's page has one inline script and styles itself from script; everything must come from this server.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; "
    "base-uri 'self'; form-action 'self'"
)

FOR_GOOD = {"Cache-Control": "public, immutable, max-age=31536000"}


@lru_cache(maxsize=256)
def compressed(file: Path) -> bytes:
    """The file's bytes, gzipped. Streamlit's file names carry a hash of their content, so a kept copy is never stale."""
    return gzip.compress(file.read_bytes(), compresslevel=6)


class CompressedStatic:
    """Sends Streamlit's own scripts and styles gzipped: they are two thirds of a first visit, and Streamlit sends them as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = _asked_for(scope)
        if file is None:
            await self.app(scope, receive, send)
            return
        headers = {**FOR_GOOD, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        await Response(await run_in_threadpool(compressed, file), headers=headers, media_type=kind)(
            scope, receive, send
        )


async def component(request: Request) -> Response:
    """The code of one of our components."""
    content = bundle.files().get(request.path_params["name"])
    if content is None:
        return Response("There is no such component.", status_code=404, media_type="text/plain")
    return Response(content, media_type="text/javascript", headers=FOR_GOOD)


ROUTES = [Route(f"/{bundle.ROUTE}/{{name}}", component)]


class SafeHeaders:
    """Adds a content security policy to every answer: no script, style, font or connection from any other host."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Content-Security-Policy"] = POLICY
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


# What stands on the page until Streamlit's scripts have run. They take the place over as a whole.
ROOT_EMPTY = b'<div id="root"></div>'
ROOT_WITH_WORDS = (
    b'<div id="root"><div style="font: 1.125rem/1.6 system-ui, sans-serif; color: light-dark(#1f1b16, #f2ede4); '
    b'background: light-dark(#fffdf9, #12151d); color-scheme: light dark; min-height: 100vh; padding: 20vh 10vw; box-sizing: border-box">'
    b'<strong style="font-size: 1.75rem">Headlight</strong><br>See what every head sees.<br>The page is on its way\xe2\x80\xa6</div></div>'
)


class FirstWords:
    """Puts something to read into Streamlit's empty page, so that a slow line or machine shows words and not white."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def with_words(message: Message) -> None:
            if message["type"] == "http.response.start" and Headers(scope=message).get(
                "content-type", ""
            ).startswith("text/html"):
                held.append(message)
            elif held and message["type"] == "http.response.body":
                held.append(message)
                if not message.get("more_body"):
                    start, *parts = held
                    body = b"".join(part.get("body", b"") for part in parts).replace(
                        ROOT_EMPTY, ROOT_WITH_WORDS
                    )
                    if "content-length" in (headers := MutableHeaders(scope=start)):
                        headers["content-length"] = str(len(body))
                    await send(start)
                    await send({"type": "http.response.body", "body": body})
            else:
                await send(message)

        plain = scope["type"] != "http" or scope["method"] != "GET"
        await self.app(scope, receive, send if plain else with_words)


def _asked_for(scope: Scope) -> Path | None:
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


MIDDLEWARE = [Middleware(SafeHeaders), Middleware(FirstWords), Middleware(CompressedStatic)]
