"""Which addresses this server answers: its pages, what they are made of, and its health. Everything
else is 404.

Streamlit answers more than this app uses, uploads and figures about itself among them, and gives
its page for any address it does not know.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import streamlit
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.components import bundle
from explorer.server.words import link, page

STATIC = Path(streamlit.__file__).resolve().parent / "static"
PAGES = Path(__file__).resolve().parent.parent.parent / "pages"
FIRST_PAGE = "attention"  # it stands at "/"
METHODS = ("GET", "HEAD", "OPTIONS")
# Streamlit's own routes that its page needs: is the server there, what may it do, a reader's
# session, downloads and pictures, our font.
OPEN = re.compile(
    rf"/(_stcore/(health|host-config|stream)|media/[^/]+|app/static/.+|{bundle.ROUTE}/[^/]+/[^/]+|"
    rf"favicon\.png|manifest\.json|healthz|readyz|join(/[A-Za-z0-9-]{{1,16}})?|class/(news|picture|"
    rf"code\.svg))"
)
# What is sent to a class, and a text that is drawn ahead of its page: the only addresses that take
# anything, and nothing is read from them.
WRITTEN = re.compile(r"/class/(start|join|move|ask|reveal|answer|end|show)|/ahead")


@cache
def pages() -> tuple[str, ...]:
    """The pages by the names that their addresses have."""
    return tuple(sorted(file.stem for file in PAGES.glob("*.py")))


def is_page(path: str) -> bool:
    """True for the address of a page; Streamlit itself takes a slash at its end away."""
    return path == "/" or path.strip("/") in pages()


def is_open(path: str) -> bool:
    """True for an address that is answered by more than "there is nothing here"."""
    if is_page(path) or OPEN.fullmatch(path) or WRITTEN.fullmatch(path):
        return True
    if not path.startswith("/static/") or "\0" in path:
        return False
    file = (STATIC / path.lstrip("/")).resolve()
    return file.is_relative_to(STATIC / "static") and file.is_file()


class Doors:
    """Closes every address that the app does not need, whatever the method."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = refusal(scope) if scope["type"] == "http" else None
        await (self.app if answer is None else answer)(scope, receive, send)


def refusal(scope: Scope) -> Response | None:
    """What is said to a request that goes no further, None for one that does."""
    path, method = scope["path"], scope["method"]
    if method == "POST" and WRITTEN.fullmatch(path):
        return None
    if path.strip("/") == FIRST_PAGE and method in ("GET", "HEAD"):
        query = scope["query_string"].decode("latin-1")
        return RedirectResponse("/" + (f"?{query}" if query else ""), 307)
    if not is_open(path):
        if method == "GET" and not path.startswith(("/_stcore", "/static", "/media", "/component")):
            links = ", ".join(
                link("/" if name == FIRST_PAGE else f"/{name}", name) for name in pages()
            )
            return page(404, ("There is no such page.", f"These are here: {links}."))
        return PlainTextResponse("There is nothing here.", 404)
    if WRITTEN.fullmatch(path):
        return PlainTextResponse("This is only sent to.", 405, {"Allow": "POST"})
    if method not in METHODS:
        return PlainTextResponse("This is only read.", 405, {"Allow": ", ".join(METHODS)})
    return None
