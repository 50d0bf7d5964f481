"""The page of the frame in which a class's picture is drawn: the bytes of a stranger's window.

It has no origin, also where it is opened by itself; it runs one script, which stands in it, and
asks for nothing. So nothing in a picture reaches a student's window, this server or another
host."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from explorer.app.server.headers import FRAMES, hash_of
from explorer.components import bundle
from explorer.figures import html_export

NAME = "class_frame"  # of its module, beside which it stands


@cache
def page() -> tuple[str, dict[str, str]]:
    """The page as HTML, and the headers of its answer."""
    script = bundle.script(f"{NAME}.js").replace("</", r"<\/").replace("<!--", r"<\!--")
    policy = (
        f"default-src 'none'; script-src {hash_of(script)}; style-src 'unsafe-inline'; "
        "img-src data:; font-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'; "
        f"frame-ancestors {' '.join(FRAMES)}; sandbox allow-scripts"
    )
    html = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Headlight</title>'
        f"<style>{html_export.fonts(True)}</style></head><body><script>{script}</script>"
        "</body></html>"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Cross-Origin-Opener-Policy": "unsafe-none",  # no browser opens a sandbox under another one
        "Cache-Control": "no-cache",
        "ETag": f'"{hashlib.sha256((policy + html).encode()).hexdigest()[:24]}"',
        "Vary": "Accept-Encoding",
    }
    return html, headers


@cache
def packed() -> bytes:
    """The page, gzipped."""
    return gzip.compress(page()[0].encode(), 9)


async def answer(request: Request) -> Response:
    """The page, at the address of the modules that it is made of."""
    html, headers = await run_in_threadpool(page)
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(html, headers=headers, media_type="text/html")
    data = await run_in_threadpool(packed)
    return Response(data, headers=headers | {"Content-Encoding": "gzip"}, media_type="text/html")


ROUTES = [Route(f"/{bundle.ROUTE}/{bundle.folder()}/{NAME}.html", answer)]
