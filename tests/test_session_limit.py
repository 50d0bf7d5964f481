"""Who has a place on a server that is full: those who use it, from whatever network they come."""

from __future__ import annotations

import pytest

from explorer.server.client_address import networks
from explorer.server.limits import (
    BROWSER_SHARE,
    FIRST_REQUEST,
    IDLE,
    RESERVATION_SECONDS,
    SHARE,
    SILENCE,
    Connection,
    Group,
    SlotCounter,
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


def of(address: str, browser: str = "") -> Group:
    """The group of a reader at an address, with a browser of that name."""
    return (*networks({"type": "http", "client": (address, 1)}), browser)


def enter(
    places: SlotCounter, address: str, browser: str = "", acts: bool = True
) -> Connection | None:
    """One reader who gets a page, connects, asks and does something; None for one who is
    refused."""
    if not places.admits(of(address)):
        return None
    places.reserve(of(address))
    made = places.take(of(address, browser))
    for _ in range(1 + acts):
        places.activate(made, acted=True)
    return made


def test_who_asks_for_nothing_has_a_place_for_seconds(places: SlotCounter, clock: Clock) -> None:
    for _ in range(LIMIT):
        places.take(of("a"))
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


def test_a_reader_is_told_apart_by_networks_and_browser() -> None:
    def group(host: str, cookie: str = "") -> Group:
        headers = [(b"cookie", cookie.encode())]
        return reader_group({"type": "http", "client": (host, 1), "headers": headers})

    same = "_streamlit_xsrf=2|00000000|61626364|1"
    masked = "x=1; _streamlit_xsrf=2|01010101|60636265|2"
    assert group("192.0.2.1", same) == group("192.0.2.1", masked) != group("192.0.2.1")
    assert group("2001:db8:1:2:3::4") == ("2001:db8:1::", "2001:db8:1::", "2001:db8:1:2::", "")
    for broken in ("2|", "2||61|1", "2|zz|61|1", "|", "\xff", "2|00|61|x", "9" * 5000):
        assert len(group("192.0.2.1", f"_streamlit_xsrf={broken}")) == 4


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
