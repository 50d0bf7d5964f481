"""Who has a place on a server that is full: those who use it, from whatever network they come."""

from __future__ import annotations

import pytest

from explorer.server.middleware import (
    FIRST_REQUEST,
    RESERVATION_SECONDS,
    SILENCE,
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


def test_who_asks_for_nothing_has_a_place_for_seconds(places: SlotCounter, clock: Clock) -> None:
    for _ in range(LIMIT):
        places.take("a")
    assert places.used == LIMIT and not places.admits("a")
    clock.now = FIRST_REQUEST
    assert places.used == 0 and places.admits("a")


def test_silence_frees_a_place_and_a_word_takes_it(places: SlotCounter, clock: Clock) -> None:
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


def test_pages_on_their_way_are_shared_too(places: SlotCounter, clock: Clock) -> None:
    for _ in range(LIMIT):
        places.reserve("a")
    assert not places.admits("a") and places.admits("b")
    assert all(enter(places, "b") for _ in range(CLASS))
    clock.now = RESERVATION_SECONDS + 1
    assert places.used == CLASS and places.admits("a")


def test_connections_without_a_place_have_an_end(places: SlotCounter, clock: Clock) -> None:
    closed = []
    for at in range(3 * LIMIT):
        if at % LIMIT == 0:
            clock.now += SILENCE
        made = enter(places, "a")
        made.close = lambda at=at: closed.append(at)
    assert closed == list(range(LIMIT)), "the longest silent, and no more than that"
