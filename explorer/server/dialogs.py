"""Streamlit's settings for its page: it opens no dialog of its own over ours.

After a lost connection it would cover the whole window, lines of ours that say the same included,
with "Is Streamlit still running? ... just restart it in your terminal". Its mark in the header says
that it connects; what fails in a run is told by the page itself and by the server's log.
"""

from __future__ import annotations

import json

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/_stcore/host-config"


class NoErrorDialogs:
    """Sets `blockErrorDialogs` in the settings that Streamlit's page asks for."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        start: Message = {}
        body = b""

        async def changed(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            if start["status"] == 200:
                body = json.dumps(json.loads(body) | {"blockErrorDialogs": True}).encode()
                MutableHeaders(scope=start)["content-length"] = str(len(body))
            await send(start)
            await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, changed)
