"""Filter of addresses: the app's pages, their files, and the server's health. All others are 404.

Streamlit answers more than this app uses, uploads and figures about itself among them, and gives
its page for any address it does not know."""

from __future__ import annotations

import asyncio
import gzip
import json
import mimetypes
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path

import streamlit
from google.protobuf.message import DecodeError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.runtime import Runtime
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from explorer.components import bundle
from explorer.server import open_files, startup_bundle
from explorer.server.base_path import base_path
from explorer.server.client_address import networks
from explorer.state import places
from explorer.state.event_log import log_refusal
from explorer.state.models import COOKIE
from explorer.state.settings import settings
from explorer.text.templates import sentences

WORDS = sentences("server", "pages")

# One press of Back a page: what the browser remembers of the way through the app.

# Streamlit makes a stop in the browser's history of every change of the address. A stop is another
# place or tab, another text (a second one too) or model, another word, layer or head; all else, and
# what a page writes into its own address when it opens, takes the place of what was there. What a
# page on its way would still write after the reader went back from it is left out.
SCRIPT = b"""<script>
(() => {
  const push = history.pushState.bind(history);
  const STOPS = ["text", "target", "second", "donor", "other_text", "model", "layer", "head",
    "token"];
  let opening = true, back = -Infinity;
  const acted = () => { opening = false; back = -Infinity; };
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, acted, true);
  addEventListener("popstate", () => { opening = true; back = performance.now(); }, true);
  history.pushState = (state, unused, url) => {
    const from = new URL(location.href), to = new URL(url ?? from, from);
    const another = from.pathname !== to.pathname;
    if (another && performance.now() - back < 2000) return;
    const differs = (name) => from.searchParams.get(name) !== to.searchParams.get(name);
    const tab = differs("tab");
    const isStop = tab || STOPS.some(differs);
    if (another || (isStop && !opening)) push(state, unused, url);
    else history.replaceState(state, unused, url);
    opening = another || tab;
  };
})();
</script>"""


# Streamlit's settings for its page: it opens no dialog of its own over ours.

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


# Pages of a few words: what stands there until Streamlit's scripts have run, and what is said
# where there is no page or no room.

STYLE = (
    "font: 1.125rem/1.6 system-ui, sans-serif; color: light-dark(#1f1b16, #f2ede4); "
    "background: light-dark(#fffdf9, #12151d); color-scheme: light dark; min-height: 100vh; "
    "padding: 20vh 10vw; box-sizing: border-box"
)
ROOT_EMPTY = b'<div id="root"></div>'
# What is on its way before the page needs it: the font, with which it measures its tabs, and what
# its scripts ask for before they open a session.
EARLY = (
    '<link rel="preload" href="./app/static/inter.woff2" as="font" type="font/woff2" crossorigin>'
    '<link rel="preload" href="./_stcore/health" as="fetch" crossorigin>'
    '<link rel="preload" href="./_stcore/host-config" as="fetch" crossorigin>'
)


def block(lines: tuple[str, ...]) -> str:
    """A few lines of HTML under the project's name."""
    return (
        f'<div style="{STYLE}"><strong style="font-size: 1.75rem">Headlight</strong>'
        + "".join(f"<br>{line}" for line in lines)
        + "</div>"
    )


# What stands on the page until Streamlit's scripts have run. They take the place over as a whole.
# The style of the frame comes with it, so that nothing moves when the views arrive.
ROOT_WITH_WORDS = (
    f'{EARLY}<style>{bundle.PAGE.read_text("utf-8")}</style><div id="root">'
    f"{block((WORDS('tagline'), WORDS('on_its_way')))}</div>"
).encode()


def page(
    status: int, lines: tuple[str, ...], retry_after: int = 0, headers: dict[str, str] | None = None
) -> HTMLResponse:
    """A page of a few lines, which may hold HTML. `again`: seconds after which a browser asks for
    the same address once more."""
    refresh = f'<meta http-equiv="refresh" content="{retry_after}">' if retry_after else ""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8">{refresh}'
        '<meta name="viewport" content="width=device-width"><title>Headlight</title>'
        f'<body style="margin: 0">{block(lines)}',
        status,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def link(href: str, name: str) -> str:
    """A link to one of the app's own pages."""
    return f'<a style="color: inherit" href="{escape(href)}">{escape(name)}</a>'


# Of a request for a page: what would have Streamlit answer with something else than the page.
CONDITIONS = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")


class Placeholder:
    """Puts something to read into Streamlit's empty page, so that a slow line or machine shows
    words and not white, with the style of the frame and the rule for its history."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not is_page(scope["path"]):
            await self.app(scope, receive, send)
            return
        zipped = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        unconditional = [each for each in scope["headers"] if each[0] not in CONDITIONS]
        start: Message = {}
        parts: list[bytes] = []

        async def with_words(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = startup_bundle.with_loader(b"".join(parts).decode()).encode()
            body = body.replace(ROOT_EMPTY, ROOT_WITH_WORDS + SCRIPT)
            headers = MutableHeaders(scope=start)
            for name in ("etag", "last-modified", "accept-ranges"):  # of Streamlit's own page
                del headers[name]
            if zipped:
                body = await run_in_threadpool(gzip.compress, body, 6)
                headers["content-encoding"] = "gzip"
            headers["vary"] = "Accept-Encoding"
            headers["content-length"] = str(len(body))
            await send(start)
            await send({"type": "http.response.body", "body": body})

        await self.app({**scope, "headers": unconditional}, receive, with_words)


STATIC = Path(streamlit.__file__).resolve().parent / "static"
METHODS = ("GET", "HEAD", "OPTIONS")
# Streamlit's own routes that its page needs: is the server there, what may it do, a reader's
# session, downloads and pictures, our font.
GET_PATHS = re.compile(
    rf"/(_stcore/(health|host-config|stream)|media/[^/]+|app/static/.+|{bundle.ROUTE}/[^/]+/[^/]+|"
    rf"favicon\.png|manifest\.json|healthz|readyz|metrics|join(/[A-Za-z0-9-]{{1,16}})?|class/(news|picture|"
    rf"code\.svg))"
)
# What is sent to a class, and a text that is drawn ahead of its page: the only addresses that take
# anything, and nothing is read from them.
POST_PATHS = re.compile(r"/class/(start|join|move|ask|reveal|answer|end|show)|/ahead")


def is_page(path: str) -> bool:
    """True for the address of a place; Streamlit itself takes a slash at its end away."""
    return path == "/" or path.strip("/") in places.PLACES.keys() - {places.FIRST}


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
    if not is_open(path):
        if method == "GET" and not path.startswith(("/_stcore", "/static", "/media", "/component")):
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


# How many readers this server has at once, and what a newcomer sees when it has all it can serve.

STREAM = "/_stcore/stream"
RETRY_SECONDS = 5  # seconds after which a waiting browser asks once more
# How long a place is kept for a browser that has just been given the page.
RESERVATION_SECONDS = 10.0
FIRST_REQUEST = 10.0  # seconds within which a new connection asks for a page
SILENCE = 3600.0  # seconds without a message after which a connection has no place any more
SHARE = 0.05  # of all places: a network with no more connections makes room for no other network
BROWSER_SHARE = 4  # the same of one browser, for others of its network
IDLE = 60.0  # seconds of silence after which a reader who only opened a page makes room for others
Group = tuple[str, ...]  # the networks of a reader, the largest first, and their browser
UNASKED, CROWDED_OUT = 1008, 1013  # why a connection is closed: policy violation, try again later


@dataclass(eq=False)
class Connection:
    """One reader's websocket: its group, its last message, whether it has asked for a page, and
    whether its reader then did something on it."""

    group: Group
    latest: float
    requested: bool = False
    acted: bool = False
    close: Callable[[], None] = lambda: None


Slot = Connection | tuple[float, Group]  # a reader's, or one that is kept until then


class SlotCounter:
    """Slots of readers: one for each active connection, and one for each page that is being loaded.

    A connection without a message for `silence` seconds, or without a first request for `first`,
    stays open but loses its slot until its next message. When all slots are in use and one network
    has more of them than another that requests one, its longest silent connection gives up its
    slot. Networks are compared from the largest to the smallest, and then browsers within one: so
    no client can lock others out, by however many addresses of its own or from within a school, and
    a school behind one address may fill the server while no one else is there. Where no network has
    too many, who opened a page and did nothing on it makes room, the longest silent first. At most
    twice `limit` connections are open."""

    def __init__(
        self,
        limit: int,
        first: float = FIRST_REQUEST,
        silence: float = SILENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit, self.first, self.silence, self.clock = limit, first, silence, clock
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
            if now - connection.latest < self.first:
                break
            if not connection.requested or now - connection.latest >= self.silence:
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
            if most > share and most > counts[newcomer[depth]] + 1:
                return _first_of_largest(
                    [each for each in beside if _group(each)[depth] == largest], depth + 1
                )
        now = self.clock()
        idle = (each for each in self._seated if not each.acted and now - each.latest >= IDLE)
        return next(idle, None)

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


def reader_group(scope: Scope) -> Group:
    """The networks that a reader comes from, and the browser, by the word that Streamlit gave
    it."""
    word = cookie_parser(Headers(scope=scope).get("cookie", "")).get(COOKIE, "")
    token, _ = decode_xsrf_token_string(word)
    return (*networks(scope), token.hex()[:64] if token else "")


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
        await self.app(scope, receive, send)

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
        limit = connection.latest + self.places.first - self.places.clock() if waits else None
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
            asks = requests_page(message)
            if asks or connection.requested:
                self.places.activate(connection, asks)
        return message


def requests_page(message: Message) -> bool:
    """True for a message that asks for a page."""
    try:
        back_message = BackMsg.FromString(message.get("bytes") or b"")
    except DecodeError:
        return False
    return back_message.WhichOneof("type") == "rerun_script"


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


# What a browser may say on the line of its session: what the app's page says, and nothing else.

MESSAGE_TYPES = {"rerun_script", "stop_script", "app_heartbeat"}
REQUEST_TYPES = {"deferred_file", "dataframe_chunk"}  # a download, and the rows of a long table
LONGEST_ID = 64
LONE_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
PROTOCOL_ERROR = 1002  # the protocol's own word for what cannot be read


def is_allowed_message(message: BackMsg) -> bool:
    """True for a message that the app's own page sends."""
    if message.WhichOneof("type") != "backend_operation_request":
        return message.WhichOneof("type") in MESSAGE_TYPES
    request = message.backend_operation_request
    plain = request.request_id.isprintable() and len(request.request_id) <= LONGEST_ID
    return plain and request.WhichOneof("payload") in REQUEST_TYPES


def well_formed(data: bytes) -> bytes:
    """A message of the app's page with U+FFFD for each half of a surrogate pair in its texts. A
    browser packs one into three bytes that are no UTF-8, and so the message could not be read."""
    try:
        BackMsg.FromString(data)
    except DecodeError:
        return LONE_SURROGATE.sub("\ufffd".encode(), data)
    return data


class WebSocketFilter:
    """Pass on the wanted messages, drop the others, and close a connection that receives anything
    but messages."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket" or scope["path"] != STREAM:
            await self.app(scope, receive, send)
            return
        ended = False

        async def wanted() -> Message:
            nonlocal ended
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                try:
                    frame = well_formed(message.get("bytes") or b"")
                    if is_allowed_message(BackMsg.FromString(frame)):
                        return {**message, "bytes": frame}
                except DecodeError:
                    log_refusal("message")
                    ended = True
                    await send({"type": "websocket.close", "code": PROTOCOL_ERROR})
                    return {"type": "websocket.disconnect", "code": PROTOCOL_ERROR}

        async def unless_ended(message: Message) -> None:
            if not ended:
                await send(message)

        await self.app(scope, wanted, unless_ended)


# Headers on every answer: nothing comes from another host, no site but those that are named frames
# the page, and no other host learns its address.

FRAMES = ("'self'", *settings().frames)
# Streamlit's page has one inline script and styles itself from script; everything must come from
# this server.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; "
    f"base-uri 'self'; form-action 'self'; frame-ancestors {' '.join(FRAMES)}"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the reader's text stands in the address
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": (
        "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), midi=(), "
        "accelerometer=(), gyroscope=(), magnetometer=(), display-capture=(), browsing-topics=()"
    ),
}


if len(FRAMES) == 1:  # the same for browsers that do not know it, and know no other site
    HEADERS["X-Frame-Options"] = "SAMEORIGIN"


class SafeHeaders:
    """Adds `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


# Files on their way to the browser: Streamlit's own scripts and styles, compressed once and kept,
# and the components' code.

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
