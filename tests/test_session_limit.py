"""Who has a place on a server that is full: those who use it, from whatever network they come."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from itertools import count

import pytest
from itsdangerous import Signer
from starlette.testclient import TestClient
from streamlit.proto.BackMsg_pb2 import BackMsg

from explorer.app.server.client_address import networks
from explorer.app.server.limits import (
    BROWSER_SHARE,
    COOKIE,
    FIRST_REQUEST,
    IDLE,
    LOADING,
    RESERVATION_SECONDS,
    SHARE,
    SILENCE,
    Connection,
    Group,
    Reader,
    SessionLimit,
    SlotCounter,
    new_word,
    reader_group,
)

LIMIT, CLASS = 200, 60
SEATS = 4


class Clock:
    """A time that passes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def places(clock: Clock) -> SlotCounter:
    return SlotCounter(LIMIT, clock=clock)


names = (f"browser {at}" for at in count())


def of(address: str, browser: str = "") -> Group:
    """The group of a reader at an address, with a browser of that name."""
    return (*networks({"type": "http", "client": (address, 1)}), browser)


def enter(
    places: SlotCounter, address: str, browser: str = "", acts: bool = True
) -> Connection | None:
    """One reader with a browser of its own, if none is named, who gets a page, connects, asks and
    does something; None for one who is refused."""
    if not places.admits(of(address)):
        return None
    places.reserve(of(address))
    made = places.take(of(address, browser or next(names)))
    for _ in range(1 + acts):
        places.activate(made, acted=True)
    return made


def test_who_asks_for_nothing_has_a_place_for_seconds(places: SlotCounter, clock: Clock) -> None:
    for _ in range(LIMIT):
        places.take(of("a", next(names)))
    assert places.used == LIMIT and not places.admits(of("a"))
    clock.now = FIRST_REQUEST
    assert places.used == 0 and places.admits(of("a"))


def test_silence_frees_a_place_and_a_word_takes_it(places: SlotCounter, clock: Clock) -> None:
    all_day = [enter(places, "a") for _ in range(LIMIT)]
    clock.now = SILENCE - 1
    places.activate(all_day[0])
    assert not places.admits(of("a"))
    clock.now = SILENCE
    assert places.used == 1, "who has just said something"
    places.activate(all_day[1])
    assert places.used == 2


def test_one_network_may_fill_the_server_while_nobody_else_comes(places: SlotCounter) -> None:
    assert all(enter(places, "university") for _ in range(LIMIT))
    assert enter(places, "university") is None


@pytest.mark.parametrize("networks", [1, 2, 10])
def test_a_class_gets_in_when_others_hold_every_place(places: SlotCounter, networks: int) -> None:
    others = [enter(places, f"other {at % networks}") for at in range(LIMIT)]
    assert all(others)
    pupils = [enter(places, "school") for _ in range(CLASS)]
    fair = LIMIT // (networks + 1)
    assert sum(each is not None for each in pupils) >= min(CLASS, fair)
    assert places.used == LIMIT
    # Those others lose no connection, and have a place again as soon as they do something.
    for each in others:
        places.activate(each)
    assert places.used > LIMIT


@pytest.mark.parametrize(
    "network",
    ["2001:db8:1:{:x}00::1", "2001:db8:1:2{:02x}::1", "2001:db8:1:2:3::{:x}"],
    ids=["/48", "/56", "/64"],
)
def test_one_customers_networks_are_one(places: SlotCounter, network: str) -> None:
    """However many addresses of its own a client comes from."""
    assert all(enter(places, network.format(at)) for at in range(LIMIT))
    assert enter(places, network.format(LIMIT)) is None
    pupils = [enter(places, each) for each in ("192.0.2.1", "2001:db8:2::1")]
    pupils += [enter(places, "198.51.100.7", f"{at}") for at in range(CLASS)]
    assert all(pupils) and places.used == LIMIT


def test_who_only_opened_a_page_makes_room_for_who_comes(places: SlotCounter, clock: Clock) -> None:
    """As many strangers as there are places, each of a network of its own."""
    strangers = [f"2001:db8:{at:x}::1" for at in range(1, LIMIT)]
    reading = enter(places, "192.0.2.1")
    assert reading and all(enter(places, each, acts=False) for each in strangers)
    assert enter(places, "192.0.2.2") is None, "they came this very moment"
    clock.now = IDLE
    assert all(enter(places, "192.0.2.2", f"{at}") for at in range(CLASS))
    assert reading in places._seated and places.used == LIMIT


def test_one_pupil_locks_nobody_of_the_school_out(places: SlotCounter, clock: Clock) -> None:
    """With as many lines as there are places, that all asked and acted."""
    lines = [enter(places, "192.0.2.1", "of one pupil") for _ in range(LIMIT)]
    assert all(lines)
    pupils = [enter(places, "192.0.2.1", f"{at}") for at in range(CLASS)]
    assert all(pupils) and all(each in places._seated for each in pupils)
    # A browser that is here with a few tabs makes no room in its own network.
    few = SlotCounter(2 * BROWSER_SHARE, clock=clock)
    for browser in ("one", "two"):
        assert all(enter(few, "192.0.2.1", browser) for _ in range(BROWSER_SHARE))
    assert enter(few, "192.0.2.1", "three") is None
    assert int(SHARE * few.limit) <= 1 and enter(few, "198.51.100.7")


LINES = 70


@pytest.mark.parametrize("words", ["none", "made up"])
def test_lines_without_a_word_keep_no_newcomer_of_their_address_out(words: str) -> None:
    """Not one that comes for its first page, and so has no word, nor many of them."""
    places = SlotCounter(LINES, clock=Clock())
    for at in range(LINES):
        cookie = f"{COOKIE}=made-up-{at}.{'x' * 43}" if words == "made up" else ""
        line = places.take(group_of("192.0.2.1", cookie))
        for _ in range(2):
            places.activate(line, acted=True)
    pupils = [enter(places, "192.0.2.1") for _ in range(LINES - BROWSER_SHARE)]
    assert all(pupils) and all(each in places._seated for each in pupils)
    assert enter(places, "192.0.2.1") is None, "a few lines without a word have their places"


def test_pages_without_a_word_keep_no_newcomer_of_their_address_out(clock: Clock) -> None:
    places = SlotCounter(LINES, clock=clock)
    for _ in range(LINES):
        places.reserve(of("192.0.2.1"))
    assert not places.admits(of("192.0.2.1")), "they may be a class that opens its page"
    clock.now = LOADING
    for _ in range(LINES // 2):
        assert places.admits(of("192.0.2.1"))
        places.reserve(of("192.0.2.1"))
        places.activate(places.take(of("192.0.2.1", next(names))), acted=True)
    assert places.used == LINES // 2


def group_of(host: str, cookie: str = "") -> Group:
    """The group of a request from an address with a cookie."""
    headers = [(b"cookie", cookie.encode())]
    return reader_group({"type": "http", "client": (host, 1), "headers": headers})


def test_a_reader_is_told_apart_by_networks_and_a_signed_word() -> None:
    one, other = (new_word({"scheme": "http"}).partition(";")[0] for _ in range(2))
    mine = group_of("192.0.2.1", one)
    assert mine == group_of("192.0.2.1", f"x=1; {one}") != group_of("192.0.2.1", other)
    assert mine[-1] and not group_of("192.0.2.1")[-1]
    # Of another address it is another reader, who has no place of this one's.
    assert group_of("192.0.2.2", one)[:-1] != mine[:-1]
    assert group_of("2001:db8:1:2:3::4") == ("2001:db8:1::", "2001:db8:1::", "2001:db8:1:2::", "")
    name, _, mark = one.partition("=")[2].rpartition(".")
    foreign = Signer("another secret", salt="browser", digest_method=sha256).sign("me").decode()
    for forged in (
        *("", ".", "me", f"me.{mark}", f"{name}.", f".{mark}", f"{name}.{mark}x", f"{name}{mark}"),
        *(f"{name}.{mark[:-1]}", f"{name}.{mark.swapcase()}", foreign, "\xff", "9" * 5000),
        *(f"{name}.{'é' * 43}", f"{name}.{mark}.{mark}", "2|00000000|61626364|1"),
    ):
        assert group_of("192.0.2.1", f"{COOKIE}={forged}")[-1] == "", forged
    assert group_of("192.0.2.1", "_streamlit_xsrf=2|00000000|61626364|1")[-1] == ""


def rerun(query: str = "", **states: str) -> dict[str, object]:
    """A message that asks for a page."""
    widgets = [{"id": name, "string_value": value} for name, value in states.items()]
    asked = {"query_string": query, "widget_states": {"widgets": widgets}}
    return {
        "type": "websocket.receive",
        "bytes": BackMsg(rerun_script=asked).SerializeToString(),
    }


def test_who_asks_the_same_again_has_done_nothing(places: SlotCounter, clock: Clock) -> None:
    def line(*messages: dict[str, object]) -> Connection:
        connection = places.take(of("192.0.2.1", next(names)))
        for each in messages:
            Reader(None, places, False)._count(connection, each)
        return connection

    same, two = rerun("text=a"), rerun("text=b")
    beat = {"type": "websocket.receive", "bytes": BackMsg(app_heartbeat=True).SerializeToString()}
    assert not line(same, same, beat, same).acted and not line(two).acted
    assert line(same, two).acted and line(same, rerun("text=a", layer="1")).acted
    assert line(same, same).requested and not line(beat).requested
    # They make room for who comes, of their own address too.
    while len(places._seated) < LIMIT:
        line(same, same)
    assert enter(places, "192.0.2.1") is None
    clock.now = IDLE
    assert all(enter(places, "192.0.2.1") for _ in range(CLASS))


def test_a_first_page_gives_its_browser_a_word_and_no_other_page_does() -> None:
    async def streamlit(scope: dict, receive: object, send: Callable) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    browser = TestClient(SessionLimit(streamlit, SlotCounter(LIMIT)), "http://school.example")
    (word,) = browser.get("/").headers.get_list("set-cookie")
    assert word.startswith(f"{COOKIE}=") and "HttpOnly" in word and "SameSite=Lax" in word
    assert "set-cookie" not in browser.get("/learn").headers
    browser.cookies.clear()
    assert "set-cookie" not in browser.get("/panel/attention.head.json").headers
    browser.cookies.set(COOKIE, "made.up")
    assert "set-cookie" in browser.get("/learn").headers


def test_pages_on_their_way_are_shared_too(places: SlotCounter, clock: Clock) -> None:
    for _ in range(LIMIT):
        places.reserve(of("a"))
    assert not places.admits(of("a")) and places.admits(of("b"))
    assert all(enter(places, "b") for _ in range(CLASS))
    clock.now = RESERVATION_SECONDS + 1
    assert places.used == CLASS and places.admits(of("a"))


def test_connections_without_a_place_have_an_end(places: SlotCounter, clock: Clock) -> None:
    closed = []
    for at in range(3 * LIMIT):
        if at % LIMIT == 0:
            clock.now += SILENCE
        made = enter(places, "a")
        made.close = lambda at=at: closed.append(at)
    assert closed == list(range(LIMIT)), "the longest silent, and no more than that"
