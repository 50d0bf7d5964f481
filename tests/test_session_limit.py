"""Who has a place on a server that is full: those who use it, from whatever network they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import driver
import httpx2
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from explorer.server.client_address import network
from explorer.server.middleware import (
    FIRST_REQUEST,
    RESERVATION_SECONDS,
    SILENCE,
    UNASKED,
    Connection,
    SlotCounter,
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


def enter(places: SlotCounter, network: str) -> Connection | None:
    """One reader who gets a page, connects and asks; None for one who is refused."""
    if not places.admits(network):
        return None
    places.reserve(network)
    made = places.take(network)
    places.activate(made)
    return made


def test_a_connection_that_asks_for_nothing_has_a_place_for_seconds(
    places: SlotCounter, clock: Clock
) -> None:
    for _ in range(LIMIT):
        places.take("a")
    assert places.used == LIMIT and not places.admits("a")
    clock.now = FIRST_REQUEST
    assert places.used == 0 and places.admits("a")


def test_an_hour_of_silence_frees_a_place_and_a_word_takes_it_again(
    places: SlotCounter, clock: Clock
) -> None:
    all_day = [enter(places, "a") for _ in range(LIMIT)]
    clock.now = SILENCE - 1
    places.activate(all_day[0])
    assert not places.admits("a")
    clock.now = SILENCE
    assert places.used == 1, "who has just said something"
    places.activate(all_day[1])
    assert places.used == 2


def test_one_network_may_fill_the_server_while_nobody_else_comes(places: SlotCounter) -> None:
    assert all(enter(places, "university") for _ in range(LIMIT))
    assert enter(places, "university") is None


@pytest.mark.parametrize("networks", [1, 2, 10])
def test_a_class_behind_one_address_gets_in_when_others_hold_every_place(
    places: SlotCounter, networks: int
) -> None:
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


def test_pages_on_their_way_are_shared_too(places: SlotCounter, clock: Clock) -> None:
    for _ in range(LIMIT):
        places.reserve("a")
    assert not places.admits("a") and places.admits("b")
    assert all(enter(places, "b") for _ in range(CLASS))
    clock.now = RESERVATION_SECONDS + 1
    assert places.used == CLASS and places.admits("a")


def test_connections_have_an_end_even_where_they_have_no_place(
    places: SlotCounter, clock: Clock
) -> None:
    closed = []
    for at in range(3 * LIMIT):
        if at % LIMIT == 0:
            clock.now += SILENCE
        made = enter(places, "a")
        made.close = lambda at=at: closed.append(at)
    assert closed == list(range(LIMIT)), "the longest silent, and no more than that"


def test_an_ipv6_network_is_one_client() -> None:
    def of(host: str) -> str:
        return network({"type": "http", "client": (host, 1)})

    assert of("2001:db8:1:2:3:4:5:6") == of("2001:db8:1:2::9") != of("2001:db8:1:3::9")
    assert of("::ffff:192.0.2.1") == of("192.0.2.1") == "192.0.2.1"
    assert of("testclient") == "testclient" and network({"type": "http", "client": None}) == ""


# ---- a real server ---------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    yield from driver.serving(HEADLIGHT_MAX_SESSIONS=str(SEATS))


def line(server: str, host: str = "127.0.0.1") -> connect:
    """A connection of a client at another of this machine's own addresses."""
    return connect(
        f"{server.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "xsrf"],
        source_address=(host, 0),
        max_size=None,
        max_queue=None,
    )


def page(server: str, host: str = "127.0.0.1") -> int:
    with httpx2.Client(transport=httpx2.HTTPTransport(local_address=host), timeout=30) as client:
        return client.get(server).status_code


@pytest.mark.slow
def test_connections_that_ask_for_no_page_are_closed(server: str) -> None:
    with ExitStack() as stay:
        idle = [stay.enter_context(line(server)) for _ in range(SEATS)]
        idle[0].send(BackMsg(app_heartbeat=True).SerializeToString())
        assert page(server) == 503
        for each in idle:
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    each.recv(timeout=60)
            assert closed.value.rcvd.code == UNASKED
        assert page(server) == 200


@pytest.mark.slow
def test_a_client_that_holds_every_place_keeps_no_other_out(server: str) -> None:
    with ExitStack() as stay:
        asks = BackMsg(rerun_script={"query_string": ""}).SerializeToString()
        all_places = [stay.enter_context(line(server, "127.0.0.2")) for _ in range(SEATS)]
        for each in all_places:
            each.send(asks)
            each.recv(timeout=60)
        with pytest.raises(InvalidStatus), line(server, "127.0.0.2"):
            pass
        assert page(server, "127.0.0.2") == 503 and page(server, "127.0.0.3") == 200
        other = stay.enter_context(line(server, "127.0.0.3"))
        other.send(asks)
        other.recv(timeout=60)
