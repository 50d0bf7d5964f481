"""Addresses that are answered: the app's pages, their files, and the server's health. All others
are 404.

Streamlit answers more than this app uses, uploads and figures about itself among them, and gives
its page for any address it does not know."""

from __future__ import annotations

import re

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.app.server.base_path import base_path
from explorer.app.server.page import is_page, link, page
from explorer.app.server.static import STATIC
from explorer.app.state.settings import settings
from explorer.components import bundle
from explorer.text import places
from explorer.wording.templates import sentences

WORDS = sentences("server", "pages")

METHODS = ("GET", "HEAD", "OPTIONS")
# Streamlit's own routes that its page needs: is the server there, what may it do, a reader's
# session, downloads and pictures, our font.
GET_PATHS = re.compile(
    rf"/(_stcore/(health|host-config|stream)|media/[^/]+|app/static/.+|{bundle.ROUTE}/[^/]+/[^/]+|"
    rf"favicon\.png|manifest\.json|healthz|readyz|metrics|join(/[A-Za-z0-9-]{{1,16}})?|"
    rf"speaker|class(/(news|picture|slide|lesson|code\.svg))?|panel/[A-Za-z0-9_.]{{1,80}}|"
    r"worksheet/[a-z-]{1,40})"
)
# What is sent to a class, and a text that is drawn ahead of its page: the only addresses that take
# anything, and nothing is read from them.
POST_PATHS = re.compile(
    r"/class/(start|join|move|ask|close|again|reveal|strike|answer|end|show|hold|speak|press)|/ahead"
)

# A file that a reader chose, on its way to their visit; no public server takes one.
UPLOAD = re.compile(r"/_stcore/upload_file/[A-Za-z0-9-]{1,64}/[A-Za-z0-9-]{1,64}")
UPLOAD_METHODS = ("PUT", "DELETE", "OPTIONS")


def is_open(path: str) -> bool:
    """True for an address that is answered by more than "there is nothing here"."""
    if is_page(path) or GET_PATHS.fullmatch(path) or POST_PATHS.fullmatch(path):
        return True
    if not path.startswith("/static/") or "\0" in path:
        return False
    file = (STATIC / path.lstrip("/")).resolve()
    return file.is_relative_to(STATIC / "static") and file.is_file()


class RouteFilter:
    """Closes every address that the app does not need, whatever the method."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = refusal(scope) if scope["type"] == "http" else None
        await (self.app if answer is None else answer)(scope, receive, send)


def refusal(scope: Scope) -> Response | None:
    """The response that refuses a request, None for one that may go on."""
    path, method = scope["path"], scope["method"]
    if method == "POST" and POST_PATHS.fullmatch(path):
        return None
    if not settings().public and UPLOAD.fullmatch(path):
        if method in UPLOAD_METHODS:
            return None
        return PlainTextResponse(WORDS("only_sent_to"), 405, {"Allow": ", ".join(UPLOAD_METHODS)})
    if not is_open(path):
        if method == "GET" and not path.startswith(
            ("/_stcore", "/static", "/media", "/component", "/panel/", "/worksheet/")
        ):
            links = ", ".join(
                link(f"{base_path()}/{'' if name == places.FIRST else name}", place.title)
                for name, place in places.PLACES.items()
            )
            return page(404, (WORDS("no_page"), WORDS("these", links=links)))
        return PlainTextResponse(WORDS("nothing"), 404)
    if POST_PATHS.fullmatch(path):
        return PlainTextResponse(WORDS("only_sent_to"), 405, {"Allow": "POST"})
    if method not in METHODS:
        return PlainTextResponse(WORDS("only_read"), 405, {"Allow": ", ".join(METHODS)})
    return None
