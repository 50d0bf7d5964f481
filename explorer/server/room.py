"""How many readers this server has at once, and what a newcomer sees when it has all it can
serve."""

from __future__ import annotations

import time
from collections import deque

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.runtime import Runtime

from explorer.memory.settings import settings
from explorer.memory.told import refused
from explorer.server.doors import is_page
from explorer.server.words import page

STREAM = "/_stcore/stream"
ASK_AGAIN = 5  # seconds after which a waiting browser asks once more
HELD = 10.0  # seconds for which a place is kept for a browser that has just been given the page


class Places:
    """The places of readers: each open connection has one, and so has a page that is still on its
    way."""

    def __init__(self, limit: int) -> None:
        self.limit, self.taken = limit, 0
        self._kept: deque[float] = deque()

    @property
    def full(self) -> bool:
        """True where there is no place for one more page."""
        now = time.monotonic()
        while self._kept and self._kept[0] < now:
            self._kept.popleft()
        return self.taken + len(self._kept) >= self.limit

    def keep(self) -> None:
        """Keep a place for a reader whose page is on its way."""
        self._kept.append(time.monotonic() + HELD)

    def take(self) -> None:
        """A reader is here; the place that was kept longest was for them."""
        if self._kept:
            self._kept.popleft()
        self.taken += 1

    def leave(self) -> None:
        """A reader has gone."""
        self.taken -= 1


places = Places(settings().max_sessions)


class Room:
    """Counts readers by their connections; those who come when all places are taken wait on a page
    that lets them in."""

    def __init__(self, app: ASGIApp, places: Places = places) -> None:
        self.app, self.places = app, places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and scope["path"] == STREAM:
            await self._reader(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and is_page(scope["path"]):
            await self._page(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.places.full:
            refused("full", page=scope["path"].strip("/") or "attention")
            await full(self.places.limit)(scope, receive, send)
            return
        self.places.keep()
        await self.app(scope, receive, send)

    async def _reader(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The reader's own page may be what is kept; whoever was here a moment ago comes back to
        # their own session.
        if self.places.taken >= self.places.limit and not comes_back(scope):
            refused("full", page="stream")
            await receive()
            await send({"type": "websocket.close", "code": 1013})
            return
        here = False

        async def counted(message: Message) -> None:
            nonlocal here
            if message["type"] == "websocket.accept":
                here = True
                self.places.take()
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            if here:
                self.places.leave()


def comes_back(scope: Scope) -> bool:
    """True for a reader whose line broke and whose session Streamlit still has. The browser names
    it as the third subprotocol."""
    asked = Headers(scope=scope).get("sec-websocket-protocol", "").split(",")
    if len(asked) < 3 or not Runtime.exists():
        return False
    return Runtime.instance()._session_mgr.get_session_info(asked[2].strip()) is not None


def full(limit: int):
    """The page that says that there is no room, and asks again by itself."""
    return page(
        503,
        (
            f"All {limit} places are taken just now.",
            "This page lets you in as soon as there is room; your link is kept.",
        ),
        again=ASK_AGAIN,
        headers={"Retry-After": str(ASK_AGAIN)},
    )
