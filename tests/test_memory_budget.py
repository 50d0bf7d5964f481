"""Who may take much memory, and who waits: long texts one after the other, and nobody for ever."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import read_once
from waiting import in_thread

from explorer.state import cache, jobs
from explorer.state.cache import Cache
from explorer.state.scheduling import (
    LARGE_BYTES,
    POLL_INTERVAL,
    MemoryBudget,
    Preempted,
    check_cancelled,
)
from models import buffer_pool

WAIT = 20.0  # seconds after which a test gives up
TEXT = "The cat sat on the mat, and the dog ran to the park. "
ONE = LARGE_BYTES + 2**20  # bytes of something long
NUMBERS = 4  # bytes of one


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryBudget]:
    """A shelf with room for two long things and a half, and nobody who waits any longer than a test
    does."""
    room = MemoryBudget(longest=WAIT, behind=WAIT)
    monkeypatch.setattr(cache, "memory_budget", room)
    monkeypatch.setattr(jobs, "memory_budget", room)
    monkeypatch.setattr(cache, "_cache", Cache(5 * ONE // 2))
    buffer_pool.clear()
    yield room
    buffer_pool.clear()


class Long:
    """What a pass leaves behind: something long, in lent memory."""

    def __init__(self) -> None:
        self.numbers = buffer_pool.acquire(ONE // NUMBERS)


def readers_at_once(room: MemoryBudget, n: int, each: int) -> int:
    """So many readers at once, of whom each looks at so many long things together: how many of
    these were alive at a time, at most."""
    made: list[weakref.ref[Long]] = []
    most, counting = 0, threading.Lock()

    def make() -> Long:
        nonlocal most
        one = Long()
        with counting:
            made.append(weakref.ref(one))
            most = max(most, sum(each() is not None for each in made))
        return one

    def reader(number: int) -> None:
        with room.work():
            looked_at = []
            for at in range(each):
                looked_at.append(cache.get((number, at), make))
                threading.Event().wait(POLL_INTERVAL / 10)
            del looked_at

    threads = [in_thread(lambda number=number: reader(number)) for number in range(n)]
    for thread in threads:
        thread.join(WAIT)
    assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
    assert len(made) >= n * each
    return most


@pytest.mark.parametrize("each", [1, 2])
def test_readers_at_once_hold_no_more_than_there_is_room_for(here: MemoryBudget, each: int) -> None:
    assert readers_at_once(here, 6, each) <= 2


def test_who_needs_more_than_there_is_gets_it_one_after_the_other(here: MemoryBudget) -> None:
    assert readers_at_once(here, 3, 4) <= 4, "the things of one reader, and no other's"


def test_what_is_short_waits_for_nothing(here: MemoryBudget) -> None:
    """While somebody holds all that there is."""
    go, holding, got = threading.Event(), threading.Event(), []

    def long_one() -> None:
        with here.work():
            looked_at = [cache.get(("long", at), Long) for at in range(4)]
            holding.set()
            go.wait(WAIT)
            del looked_at

    def short_one() -> None:
        with here.work():
            got.append(cache.get("short", lambda: buffer_pool.acquire(2**20)))

    thread = in_thread(long_one)
    assert holding.wait(WAIT)
    in_thread(short_one).join(WAIT)
    assert len(got) == 1 and not go.is_set()
    go.set()
    thread.join(WAIT)


def test_who_waits_for_the_making_of_another_lets_it_be_made(here: MemoryBudget) -> None:
    """Else one would wait for the thing, and the other for the room that the first one holds."""
    begun, holding, got = threading.Event(), threading.Event(), []

    def make() -> Long:
        begun.set()
        holding.wait(WAIT)
        return Long()

    def first() -> None:
        with here.work():
            looked_at = [cache.get(("mine", at), Long) for at in range(2)]
            begun.wait(WAIT)
            holding.set()
            got.append(cache.get("both", make))
            del looked_at

    def second() -> None:
        with here.work():
            got.append(cache.get("both", make))

    threads = [in_thread(second), in_thread(first)]
    for thread in threads:
        thread.join(WAIT)
    assert len(got) == 2 and got[0] is got[1]


def test_work_in_the_background_gives_way_to_a_reader_and_is_done_again(here: MemoryBudget) -> None:
    tried, holding, done = [], threading.Event(), []

    def make() -> str:
        tried.append(cache.get("claims", Long))
        if len(tried) > 1:
            return "measured"
        tried[0] = weakref.ref(tried[0])
        looked_at = [cache.get(("claims", at), Long) for at in range(2)]
        holding.set()
        for _ in range(int(WAIT / POLL_INTERVAL)):
            threading.Event().wait(POLL_INTERVAL)
            check_cancelled()
        return f"nobody asked for the room of {looked_at}"

    def work() -> None:
        with here.work(behind=True):
            done.append(jobs.run_exclusively(make))

    thread = in_thread(work)
    assert holding.wait(WAIT)
    with here.work():
        mine = [cache.get(("mine", at), Long) for at in range(2)]
        assert tried[0]() is None, "what it held is gone before the reader has all of it"
        del mine
    thread.join(WAIT)
    assert done == ["measured"]


def test_what_gives_way_is_not_told_by_what_catches_errors() -> None:
    assert not issubclass(Preempted, Exception)


def test_a_part_of_a_recording_counts_as_the_whole_that_it_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = read_once("encoder")
    weight = cache.weight_of(encoder.record(TEXT * 16))
    heavy = Cache(2 * weight)
    monkeypatch.setattr(cache, "_cache", heavy)
    stream = heavy.get("text", lambda: encoder.record(TEXT * 16)).streams[0]
    heavy.make_room(heavy.limit)
    assert "text" not in heavy.entries
    assert not heavy.fits(2 * weight - weight // 2) and heavy.fits(weight // 2)
    assert np.isfinite(stream.resid).all()
    del stream
    assert heavy.fits(2 * weight)


def test_what_a_claim_asks_for_once_takes_no_place_on_the_shelf(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = cache.weight_of(read_once("encoder").record(TEXT * 16))
    here = Cache(3 * one)
    monkeypatch.setattr(cache, "_cache", here)
    cache.record("encoder", TEXT * 16)
    for at in range(4):
        assert cache.record_uncached("encoder", f"{at} {TEXT * 16}", (), None).streams
    assert [key[3] for key in here.entries if key[0] == "recording"] == [TEXT * 16]
    light = cache.record_uncached("encoder", "The cat sat.", (), None)
    assert cache.record("encoder", "The cat sat.") is light
