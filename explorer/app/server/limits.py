"""Limit of readers that this server has at once, and the page that a newcomer sees when it has all
that it can serve."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError
from itsdangerous import Signer
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import Runtime

from explorer.app.server import open_files
from explorer.app.server.client_address import networks
from explorer.app.server.page import is_page, page
from explorer.app.state.event_log import log_refusal
from explorer.app.state.settings import settings
from explorer.wording.templates import sentences

WORDS = sentences("server", "pages")
STREAM = "/_stcore/stream"
RETRY_SECONDS = 5  # seconds after which a waiting browser asks once more
# How long a place is kept for a browser that has just been given the page.
RESERVATION_SECONDS = 10.0
LOADING = 3.0  # seconds of it in which no browser that has no word takes it from another such
FIRST_REQUEST = 10.0  # seconds within which a new connection asks for a page
SILENCE = 3600.0  # seconds without a message after which a connection has no place any more
SHARE = 0.05  # of all places: a network with no more connections makes room for no other network
BROWSER_SHARE = 4  # the same of one browser, for others of its network
IDLE = 60.0  # seconds of silence after which a reader who only opened a page makes room for others
Group = tuple[str, ...]  # the networks of a reader, the largest first, and their browser
COOKIE, LONGEST_WORD = "headlight_browser", 200  # a browser's word, which this server signed
REMEMBERED = 32  # requests of a line for a page, of which a new one differs where its reader acts
UNASKED, CROWDED_OUT = 1008, 1013  # why a connection is closed: policy violation, try again later


@dataclass(eq=False)
class Connection:
    """One reader's websocket: its group, its last message, whether it has asked for a page, and
    whether its reader then did something on it. asked: what it asked for, the last ones."""

    group: Group
    latest: float
    requested: bool = False
    acted: bool = False
    asked: deque[int] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    close: Callable[[], None] = lambda: None


Slot = Connection | tuple[float, Group]  # a reader's, or one that is kept until then


class SlotCounter:
    """Slots of readers: one for each active connection, and one for each page that is being loaded.

    A connection without a message for SILENCE, or without a first request for FIRST_REQUEST, stays
    open but loses its slot until its next message. When all slots are in use and one network
    has more of them than another that requests one, its longest silent connection gives up its
    slot. Networks are compared from the largest to the smallest, and then browsers within one: so
    no client can lock others out, by however many addresses of its own or from within a school, and
    a school behind one address may fill the server while no one else is there. Who has no word of
    this server is no browser: such lines make room for any other of their network, one without a
    word too, as a browser's first page is (`makes_way`). Where no network has too many, who opened
    a page and did nothing on it makes room, the longest silent first. At most twice `limit`
    connections are open."""

    def __init__(
        self,
        limit: int,
        clock: Callable[[], float] = time.monotonic,
        makes_way: bool = True,
    ) -> None:
        self.limit, self.clock, self.makes_way = limit, clock, makes_way
        self._reserved: deque[tuple[float, Group]] = deque()  # until when, and for whom
        # Connections with a place and those without, the longest silent first.
        self._seated: OrderedDict[Connection, None] = OrderedDict()
        self._idle: OrderedDict[Connection, None] = OrderedDict()

    @property
    def used(self) -> int:
        """The number of slots in use."""
        self._settle()
        return len(self._seated)

    def admits(self, group: Group, reserved: bool = True) -> bool:
        """True where there is a place for one more reader of this group. `reserved`: places of
        pages that are on their way count as taken."""
        self._settle()
        occupied = len(self._seated) + (len(self._reserved) if reserved else 0)
        return occupied < self.limit or self._who_makes_room(group) is not None

    def serves(self, group: Group) -> bool:
        """True for a group that has a slot."""
        self._settle()
        return any(each.group == group for each in self._seated)

    def reserve(self, group: Group) -> None:
        """Keep a place for a reader whose page is on its way."""
        self._make_room(group)
        self._reserved.append((self.clock() + RESERVATION_SECONDS, group))

    def take(self, group: Group) -> Connection:
        """A reader is here; the place reserved longest for their network was for them. A browser
        that is here for the first time asks for its page before it has a name."""
        reservation = next((each for each in self._reserved if each[1][:-1] == group[:-1]), None)
        if reservation:
            self._reserved.remove(reservation)
        self._make_room(group)
        connection = Connection(group, self.clock())
        self._seated[connection] = None
        if len(self._seated) + len(self._idle) > 2 * self.limit and self._idle:
            self._idle.popitem(last=False)[0].close()
        return connection

    def activate(self, connection: Connection, acted: bool = False) -> None:
        """Give a connection a slot: its reader requests a page, or is active on one."""
        connection.acted |= acted and connection.requested
        connection.latest, connection.requested = self.clock(), True
        self._idle.pop(connection, None)
        self._seated[connection] = None
        self._seated.move_to_end(connection)

    def leave(self, connection: Connection) -> None:
        """Free the slot of a closed connection."""
        self._idle.pop(connection, None)
        self._seated.pop(connection, None)

    def _settle(self) -> None:
        """Free the slots of inactive connections."""
        now = self.clock()
        while self._reserved and self._reserved[0][0] < now:
            self._reserved.popleft()
        silent = []
        for connection in self._seated:
            if now - connection.latest < FIRST_REQUEST:
                break
            if not connection.requested or now - connection.latest >= SILENCE:
                silent.append(connection)
        for connection in silent:
            self._demote(connection)

    def _demote(self, connection: Connection) -> None:
        del self._seated[connection]
        self._idle[connection] = None

    def _who_makes_room(self, newcomer: Group) -> Slot | None:
        """The connection or the reservation that makes room for a newcomer; None where there is
        none."""
        slots: list[Slot] = [*self._reserved, *self._seated]
        for depth in range(len(newcomer)):
            beside = [each for each in slots if _group(each)[:depth] == newcomer[:depth]]
            counts = Counter(_group(each)[depth] for each in beside)
            largest, most = max(counts.items(), key=lambda each: each[1], default=("", 0))
            last = depth == len(newcomer) - 1
            share = BROWSER_SHARE if last else max(1, int(SHARE * self.limit))
            own = counts[newcomer[depth]] if newcomer[depth] or not self.makes_way else 0
            if most > share and most > own + 1:
                largest_slots = [each for each in beside if _group(each)[depth] == largest]
                if largest != newcomer[depth]:
                    return _first_of_largest(largest_slots, depth + 1)
                if (slot := next(filter(self._has_come, largest_slots), None)) is not None:
                    return slot
        now = self.clock()
        idle = (each for each in self._seated if not each.acted and now - each.latest >= IDLE)
        return next(idle, None)

    def _has_come(self, slot: Slot) -> bool:
        """False for a page that has just been given, whose browser may still be loading it."""
        if isinstance(slot, Connection):
            return True
        return slot[0] - self.clock() <= RESERVATION_SECONDS - LOADING

    def _make_room(self, newcomer: Group) -> None:
        self._settle()
        if len(self._seated) + len(self._reserved) < self.limit:
            return
        slot = self._who_makes_room(newcomer)
        if isinstance(slot, Connection):
            self._demote(slot)
        elif slot is not None:
            self._reserved.remove(slot)


def _group(slot: Slot) -> Group:
    return slot.group if isinstance(slot, Connection) else slot[1]


def _first_of_largest(slots: list[Slot], depth: int) -> Slot:
    """The first of the slots of the largest network in the largest network among these, and so on
    down to its browser."""
    for at in range(depth, len(_group(slots[0]))):
        ((largest, _),) = Counter(_group(each)[at] for each in slots).most_common(1)
        slots = [each for each in slots if _group(each)[at] == largest]
    return slots[0]


def _signer() -> Signer:
    """Signer of browsers' words, by the secret that all processes have where Streamlit's setting
    names one."""
    secret = config.get_option("server.cookieSecret")
    return Signer(secret, salt="browser", digest_method=hashlib.sha256)


def browser_word(scope: Scope) -> str:
    """The word that this server gave to the browser, "" where it has none."""
    word = cookie_parser(Headers(scope=scope).get("cookie", "")).get(COOKIE, "")
    return word if len(word) <= LONGEST_WORD and _signer().validate(word) else ""


def new_word(scope: Scope) -> str:
    """A cookie with a word for a browser. In the frame of another site it takes TLS."""
    word = _signer().sign(secrets.token_urlsafe(9)).decode()
    framed = bool(settings().frames) and scope.get("scheme") == "https"
    return f"{COOKIE}={word}; Path=/; HttpOnly; SameSite={'None; Secure' if framed else 'Lax'}"


def reader_group(scope: Scope) -> Group:
    """The networks that a reader comes from, and the browser, by the word that it was given."""
    return (*networks(scope), browser_word(scope))


open_files.raise_limit()
slots = SlotCounter(open_files.readers(settings().max_sessions))


class SessionLimit:
    """Limit on readers by their connections; readers beyond it wait on a page that retries."""

    def __init__(self, app: ASGIApp, places: SlotCounter = slots) -> None:
        self.app, self.places = app, places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and scope["path"] == STREAM:
            await self._reader(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and is_page(scope["path"]):
            await self._page(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        group = reader_group(scope)
        if not self.places.admits(group):
            log_refusal("full", page=scope["path"].strip("/") or "attention")
            await full_page(self.places.limit)(scope, receive, send)
            return
        self.places.reserve(group)

        async def with_word(message: Message) -> None:
            if message["type"] == "http.response.start" and not group[-1]:
                MutableHeaders(scope=message).append("set-cookie", new_word(scope))
            await send(message)

        await self.app(scope, receive, with_word)

    async def _reader(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The reader's own page may be what is reserved; whoever was here a moment ago comes back to
        # their own session.
        session = named_session(scope)
        if not self.places.admits(reader_group(scope), reserved=False) and not is_known(session):
            log_refusal("full", page="stream")
            await receive()
            await send({"type": "websocket.close", "code": CROWDED_OUT})
            return
        await Reader(self.app, self.places, bool(session)).serve(scope, receive, send)


class Reader:
    """One connection from its beginning to its end. `returns`: it names an earlier session, and
    shows that one's page without asking for it."""

    def __init__(self, app: ASGIApp, places: SlotCounter, returns: bool) -> None:
        self.app, self.places, self.returns = app, places, returns
        self.connection: Connection | None = None
        self.ended = asyncio.Event()
        self.closed = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass messages on, and count the connection while it is open."""

        async def counted(message: Message) -> None:
            if message["type"] == "websocket.accept":
                self.connection = self.places.take(reader_group(scope))
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
        connection = self.connection
        if connection is None:
            return await receive()
        waits = not (connection.requested or self.returns)
        limit = connection.latest + FIRST_REQUEST - self.places.clock() if waits else None
        incoming, ending = (
            asyncio.ensure_future(receive()),
            asyncio.ensure_future(self.ended.wait()),
        )
        try:
            await asyncio.wait(
                {incoming, ending}, timeout=limit, return_when=asyncio.FIRST_COMPLETED
            )
            if incoming.done():
                return self._count(connection, incoming.result())
        finally:
            incoming.cancel()
            ending.cancel()
        code = CROWDED_OUT if self.ended.is_set() else UNASKED
        self.closed = True
        await send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}

    def _count(self, connection: Connection, message: Message) -> Message:
        """Return the message, and activate the connection where it is a reader's."""
        if message["type"] == "websocket.receive":
            if asked := requested_page(message):
                is_new = hash(asked) not in connection.asked
                connection.asked.append(hash(asked))
                self.places.activate(connection, is_new)
            elif connection.requested:
                self.places.activate(connection)
        return message


def requested_page(message: Message) -> tuple[object, ...]:
    """The request of a message: the page, its address and what its controls hold; () for another
    message."""
    try:
        back_message = BackMsg.FromString(message.get("bytes") or b"")
    except DecodeError:
        return ()
    if back_message.WhichOneof("type") != "rerun_script":
        return ()
    asked = back_message.rerun_script
    states = sorted(each.SerializeToString() for each in asked.widget_states.widgets)
    return asked.page_script_hash, asked.page_name, asked.query_string, *states


def named_session(scope: Scope) -> str:
    """The session that a browser wants to come back to, its third subprotocol; "" for none."""
    entries = Headers(scope=scope).get("sec-websocket-protocol", "").split(",")
    return entries[2].strip() if len(entries) > 2 else ""


def is_known(session: str) -> bool:
    """True for a session that Streamlit still has, as of a reader whose connection broke."""
    if not session or not Runtime.exists():
        return False
    return Runtime.instance()._session_mgr.get_session_info(session) is not None


def full_page(limit: int):
    """The page of a full server, which retries by itself."""
    return page(
        503,
        (
            WORDS("full", n=limit),
            WORDS("waits"),
        ),
        retry_after=RETRY_SECONDS,
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
