"""The path below which the app's addresses lie, Streamlit's `server.baseUrlPath`.

All between the two filters here, and the routes of the app, know addresses without it. Streamlit
knows its own with it, and the browser takes it from the page's address."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.wording.templates import sentences

WORDS = sentences("server", "pages")


def base_path() -> str:
    """The path, such as "/tools/headlight"; "" where the app's addresses begin at the root."""
    path = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


class WithoutBasePath:
    """Takes the base path off each address; outside of it there is nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        base = base_path()
        if not base or scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif scope["path"].startswith(f"{base}/"):
            within = {**scope, "path": scope["path"].removeprefix(base)}
            await self.app(within, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
        elif scope["path"] == base:
            query = scope["query_string"].decode("latin-1")
            to = f"{base}/{'?' if query else ''}{query}"
            await RedirectResponse(to, 307)(scope, receive, send)
        else:
            await PlainTextResponse(WORDS("nothing"), 404)(scope, receive, send)


class WithBasePath:
    """Puts the base path before each address that none of the app's own routes answers."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self.app, self.routes = app, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        base = base_path()
        if base and scope["type"] in ("http", "websocket") and not self._is_ours(scope):
            scope = {**scope, "path": base + scope["path"]}
        await self.app(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        return any(route.matches(scope)[0] is not Match.NONE for route in self.routes)
