"""How many readers this server has at once, and what a newcomer sees when it has all it can
serve."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import Runtime

from explorer.memory.settings import settings
from explorer.memory.told import refused
from explorer.server.clients import network
from explorer.server.doors import is_page
from explorer.server.words import page

STREAM = "/_stcore/stream"
ASK_AGAIN = 5  # seconds after which a waiting browser asks once more
HELD = 10.0  # seconds for which a place is kept for a browser that has just been given the page
FIRST_REQUEST = 10.0  # seconds within which a new connection asks for a page
SILENCE = 3600.0  # seconds without a message after which a connection has no place any more
SHARE = 0.05  # of all places: a network with no more connections makes room for no other network
UNASKED, CROWDED_OUT = 1008, 1013  # why a connection is closed: policy violation, try again later


@dataclass(eq=False)
class Connection:
    """One reader's websocket: its network, its last message, and whether it has asked for a
    page."""

    network: str
    latest: float
    requested: bool = False
    close: Callable[[], None] = lambda: None


class Places:
    """The places of readers: each connection in use has one, and so has a page that is on its way.

    A connection without a message for `silence` seconds, or without a first request for `first`,
    stays open and has no place until it speaks again. When all places are taken and one network has
    more of them than another that wants one, its longest silent connection gives up its place. So
    one client alone cannot keep all others out, and a school behind one address may fill the server
    while nobody else is there. No more than twice `limit` connections are open.
    """

    def __init__(
        self,
        limit: int,
        first: float = FIRST_REQUEST,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit, self.first, self.silence, self.clock = limit, first, silence, clock
        self._reserved: deque[tuple[float, str]] = deque()  # until when, and for which network
        # Connections with a place and those without, the longest silent first.
        self._seated: OrderedDict[Connection, None] = OrderedDict()
        self._idle: OrderedDict[Connection, None] = OrderedDict()

    @property
    def taken(self) -> int:
        """How many connections have a place."""
        self._settle()
        return len(self._seated)

    def admits(self, network: str, reserved: bool = True) -> bool:
        """True where there is a place for one more reader of this network. `reserved`: places of
        pages that are on their way count as taken."""
        self._settle()
        here = len(self._seated) + (len(self._reserved) if reserved else 0)
        return here < self.limit or self._largest(network) is not None

    def reserve(self, network: str) -> None:
        """Keep a place for a reader whose page is on its way."""
        self._make_room(network)
        self._reserved.append((self.clock() + HELD, network))

    def take(self, network: str) -> Connection:
        """A reader is here; the place reserved longest for their network was for them."""
        mine = next((each for each in self._reserved if each[1] == network), None)
        if mine:
            self._reserved.remove(mine)
        self._make_room(network)
        made = Connection(network, self.clock())
        self._seated[made] = None
        if len(self._seated) + len(self._idle) > 2 * self.limit and self._idle:
            self._idle.popitem(last=False)[0].close()
        return made

    def heard(self, connection: Connection) -> None:
        """A reader asks for a page, or has asked and says something: the place is theirs."""
        connection.latest, connection.requested = self.clock(), True
        self._idle.pop(connection, None)
        self._seated[connection] = None
        self._seated.move_to_end(connection)

    def leave(self, connection: Connection) -> None:
        """A reader has gone."""
        self._idle.pop(connection, None)
        self._seated.pop(connection, None)

    def _settle(self) -> None:
        """Let go of places that nobody uses."""
        now = self.clock()
        while self._reserved and self._reserved[0][0] < now:
            self._reserved.popleft()
        silent = []
        for each in self._seated:
            if now - each.latest < self.first:
                break
            if not each.requested or now - each.latest >= self.silence:
                silent.append(each)
        for each in silent:
            self._give_up(each)

    def _give_up(self, connection: Connection) -> None:
        del self._seated[connection]
        self._idle[connection] = None

    def _largest(self, newcomer: str) -> str | None:
        """The network with the most places, where it has more than its share and more than the
        newcomer's will have; None where no network has."""
        held = Counter(each.network for each in self._seated)
        held.update(each[1] for each in self._reserved)
        network, most = max(held.items(), key=lambda each: each[1], default=("", 0))
        share = max(1, int(SHARE * self.limit))
        return network if most > share and most > held[newcomer] + 1 else None

    def _make_room(self, newcomer: str) -> None:
        self._settle()
        if len(self._seated) + len(self._reserved) < self.limit:
            return
        if (network := self._largest(newcomer)) is None:
            return
        for each in self._reserved:
            if each[1] == network:
                self._reserved.remove(each)
                return
        self._give_up(next(each for each in self._seated if each.network == network))


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
        if not self.places.admits(network(scope)):
            refused("full", page=scope["path"].strip("/") or "attention")
            await full(self.places.limit)(scope, receive, send)
            return
        self.places.reserve(network(scope))
        await self.app(scope, receive, send)

    async def _reader(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The reader's own page may be what is reserved; whoever was here a moment ago comes back to
        # their own session.
        session = named(scope)
        if not self.places.admits(network(scope), reserved=False) and not is_known(session):
            refused("full", page="stream")
            await receive()
            await send({"type": "websocket.close", "code": CROWDED_OUT})
            return
        await Reader(self.app, self.places, bool(session)).serve(scope, receive, send)


class Reader:
    """One connection from its beginning to its end. `returns`: it names an earlier session, and
    shows that one's page without asking for it."""

    def __init__(self, app: ASGIApp, places: Places, returns: bool) -> None:
        self.app, self.places, self.returns = app, places, returns
        self.connection: Connection | None = None
        self.ended = asyncio.Event()
        self.closed = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass messages on, and count the connection while it is open."""

        async def counted(message: Message) -> None:
            if message["type"] == "websocket.accept":
                self.connection = self.places.take(network(scope))
                self.connection.close = self.ended.set
            if not self.closed:
                await send(message)

        try:
            await self.app(scope, lambda: self._next(receive, send), counted)
        finally:
            if self.connection:
                self.places.leave(self.connection)

    async def _next(self, receive: Receive, send: Send) -> Message:
        """The next message; the end of the connection where it may stay no longer."""
        here = self.connection
        if here is None:
            return await receive()
        waits = not (here.requested or self.returns)
        limit = here.latest + self.places.first - self.places.clock() if waits else None
        coming, ending = asyncio.ensure_future(receive()), asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait({coming, ending}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                return self._count(here, coming.result())
        finally:
            coming.cancel()
            ending.cancel()
        code = CROWDED_OUT if self.ended.is_set() else UNASKED
        self.closed = True
        await send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}

    def _count(self, here: Connection, message: Message) -> Message:
        """The message, after which this connection is no longer silent."""
        if message["type"] == "websocket.receive" and (here.requested or asks(message)):
            self.places.heard(here)
        return message


def asks(message: Message) -> bool:
    """True for a message that asks for a page."""
    try:
        said = BackMsg.FromString(message.get("bytes") or b"")
    except DecodeError:
        return False
    return said.WhichOneof("type") == "rerun_script"


def named(scope: Scope) -> str:
    """The session that a browser wants to come back to, its third subprotocol; "" for none."""
    entries = Headers(scope=scope).get("sec-websocket-protocol", "").split(",")
    return entries[2].strip() if len(entries) > 2 else ""


def is_known(session: str) -> bool:
    """True for a session that Streamlit still has, as of a reader whose connection broke."""
    if not session or not Runtime.exists():
        return False
    return Runtime.instance()._session_mgr.get_session_info(session) is not None


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
