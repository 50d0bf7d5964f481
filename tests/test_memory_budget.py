"""Who may take much memory, and who waits: long texts one after the other, and nobody for ever."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import read_once
from waiting import threads

from explorer.app.state import jobs, scheduling
from explorer.app.state.scheduling import MemoryBudget, Preempted, check_cancelled
from models.contract.cancellation import NoRoom
from models.network import buffer_pool
from models.runtime import caching, host
from models.runtime.cache import LARGE_BYTES, POLL_INTERVAL, Cache, weight_of
from models.runtime.caching import loaded

WAIT = 20.0  # seconds after which a test gives up
TEXT = "The cat sat on the mat, and the dog ran to the park. "
ONE = LARGE_BYTES + 2**20  # bytes of something long
NUMBERS = 4  # bytes of one


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryBudget]:
    """A cache with room for two long things and a half, and nobody who waits any longer than a test
    does."""
    room = MemoryBudget(longest=WAIT, behind=WAIT)
    monkeypatch.setattr(host.current, "memory", room)
    for module in (jobs, scheduling):
        monkeypatch.setattr(module, "memory_budget", room)
    monkeypatch.setattr(caching, "cache", Cache(5 * ONE // 2))
    buffer_pool.clear()
    yield room
    buffer_pool.clear()


class Long:
    """What a pass leaves behind: something long, in lent memory."""

    def __init__(self) -> None:
        self.numbers = buffer_pool.acquire(ONE // NUMBERS)


def test_what_a_run_raises_keeps_none_of_its_values(here: MemoryBudget) -> None:
    """Who awaits a thread holds what it raised, and so its frames, until garbage is collected."""
    made: list[weakref.ref[Long]] = []

    def fail() -> None:
        values = Long(), Long()
        made.extend(map(weakref.ref, values))
        raise ValueError("no such head")

    with pytest.raises(ValueError, match="no such head") as raised, here.work():
        fail()
    assert raised.tb is not None and [each() for each in made] == [None, None]


@pytest.mark.parametrize(
    ("n", "each", "most"),
    [(6, 1, 2), (6, 2, 2), (3, 4, 4)],
    ids=["one thing each", "two each", "more than there is"],
)
def test_readers_hold_what_there_is_room_for(
    here: MemoryBudget, n: int, each: int, most: int
) -> None:
    """Who needs more gets it one after the other: the things of one reader, and no other's."""
    made: list[weakref.ref[Long]] = []
    alive, counting = [0], threading.Lock()

    def make() -> Long:
        one = Long()
        with counting:
            made.append(weakref.ref(one))
            alive.append(sum(each() is not None for each in made))
        return one

    def reader(number: int) -> None:
        with here.work():
            looked_at = []
            for at in range(each):
                looked_at.append(caching.get((number, at), make))
                threading.Event().wait(POLL_INTERVAL / 10)
            del looked_at

    with threads() as start:
        for number in range(n):
            start(reader, number)
    assert len(made) >= n * each and max(alive) <= most


@pytest.mark.parametrize("patient", [True, False], ids=["who waits", "who has waited long"])
def test_never_more_is_taken_than_there_is_beside_the_cache(
    here: MemoryBudget, monkeypatch: pytest.MonkeyPatch, patient: bool
) -> None:
    """Eight computations, each of which fills all that one may take beside."""
    monkeypatch.setattr(here, "_longest", dict.fromkeys((False, True), WAIT if patient else 0.0))
    caching.cache.beyond, each = 3 * ONE, 5 * ONE
    taken, most, done = [0], [0], []
    counting = threading.Lock()

    def add(size: int) -> None:
        with counting:
            taken[0] += size
            most[0] = max(most[0], taken[0])

    def dear(number: int) -> None:
        with here.work(), caching.cache.working(each):
            add(each)
            threading.Event().wait(POLL_INTERVAL / 5)
            add(-each)
            done.append(number)

    with threads() as start:
        for number in range(8):
            start(dear, number)
    assert sorted(done) == [*range(8)] and most[0] <= caching.cache.limit + caching.cache.beyond


def test_what_can_never_fit_is_refused_before_it_begins(here: MemoryBudget) -> None:
    caching.cache.beyond = ONE
    most = caching.cache.limit + ONE
    with here.work():
        for take in (caching.cache.take, lambda size: caching.cache.working(size).__enter__()):
            with pytest.raises(NoRoom, match="A shorter text takes less") as refused:
                take(most + 1)
            assert not refused.value.passing
        with caching.cache.working(most):
            assert not caching.cache.fits(LARGE_BYTES)
        assert caching.cache.fits(caching.cache.limit), "it is free again"


def test_who_finds_no_room_for_too_long_is_told_so(here: MemoryBudget) -> None:
    """While another holds all that there is, and computes."""
    caching.cache.beyond = ONE
    budget = MemoryBudget(longest=0.0, behind=0.0, seconds=lambda: 0.0)
    host.current.memory = budget
    holding, go, said = threading.Event(), threading.Event(), []

    def first() -> None:
        with budget.work(), caching.cache.working(caching.cache.limit + ONE):
            holding.set()
            go.wait(WAIT)

    def second() -> None:
        with budget.work(), pytest.raises(NoRoom, match="Try again") as refused:
            caching.get("second", Long)
        said.append(refused.value.passing)

    with threads() as start:
        start(first, then=holding.is_set)
        start(second).join(WAIT)
        go.set()
    assert said == [True] and "second" not in caching.cache.entries


def test_what_is_computed_within_a_computation_takes_the_larger_of_both(here: MemoryBudget) -> None:
    caching.cache.beyond = 0
    with here.work(), caching.cache.working(2 * ONE):
        with caching.cache.working(ONE), caching.cache.working(2 * ONE + 1):
            assert not caching.cache.fits(ONE // 2)
        assert caching.cache.fits(ONE // 2)
    assert caching.cache.fits(5 * ONE // 2)


def test_what_is_short_waits_for_nothing(here: MemoryBudget) -> None:
    """While somebody holds all that there is."""
    go, holding, got = threading.Event(), threading.Event(), []

    def long_one() -> None:
        with here.work():
            looked_at = [caching.get(("long", at), Long) for at in range(4)]
            holding.set()
            go.wait(WAIT)
            del looked_at

    def short_one() -> None:
        with here.work():
            got.append(caching.get("short", lambda: buffer_pool.acquire(2**20)))

    with threads() as start:
        start(long_one, then=holding.is_set)
        start(short_one).join(WAIT)
        assert len(got) == 1 and not go.is_set()
        go.set()


def test_who_waits_for_the_making_of_another_lets_it_be_made(here: MemoryBudget) -> None:
    """Else one would wait for the thing, and the other for the room that the first one holds."""
    begun, holding, got = threading.Event(), threading.Event(), []

    def make() -> Long:
        begun.set()
        holding.wait(WAIT)
        return Long()

    def first() -> None:
        with here.work():
            looked_at = [caching.get(("mine", at), Long) for at in range(2)]
            begun.wait(WAIT)
            holding.set()
            got.append(caching.get("both", make))
            del looked_at

    def second() -> None:
        with here.work():
            got.append(caching.get("both", make))

    with threads() as start:
        start(second)
        start(first)
    assert len(got) == 2 and got[0] is got[1]


def test_work_in_the_background_gives_way_to_a_reader_and_is_done_again(here: MemoryBudget) -> None:
    tried, holding, done = [], threading.Event(), []

    def make() -> str:
        tried.append(caching.get("claims", Long))
        if len(tried) > 1:
            return "measured"
        tried[0] = weakref.ref(tried[0])
        looked_at = [caching.get(("claims", at), Long) for at in range(2)]
        holding.set()
        for _ in range(int(WAIT / POLL_INTERVAL)):
            threading.Event().wait(POLL_INTERVAL)
            check_cancelled()
        return f"nobody asked for the room of {looked_at}"

    def work() -> None:
        with here.work(behind=True):
            done.append(host.current.exclusively(make))

    with threads() as start:
        start(work, then=holding.is_set)
        with here.work():
            mine = [caching.get(("mine", at), Long) for at in range(2)]
            assert tried[0]() is None, "what it held is gone before the reader has all of it"
            del mine
    assert done == ["measured"]
    assert not issubclass(Preempted, Exception), "what catches errors does not catch it"


def test_a_part_of_a_recording_counts_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = read_once("encoder")
    weight = weight_of(encoder.record(TEXT * 16))
    heavy = Cache(2 * weight)
    monkeypatch.setattr(caching, "cache", heavy)
    stream = heavy.get("text", lambda: encoder.record(TEXT * 16)).streams[0]
    heavy.make_room(heavy.limit)
    assert "text" not in heavy.entries
    assert not heavy.fits(2 * weight - weight // 2) and heavy.fits(weight // 2)
    assert np.isfinite(stream.resid).all()
    del stream
    assert heavy.fits(2 * weight)


def test_what_is_asked_for_once_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    one = weight_of(read_once("encoder").record(TEXT * 16))
    here = Cache(3 * one)
    monkeypatch.setattr(caching, "cache", here)
    loaded("encoder").record(TEXT * 16)
    for at in range(4):
        assert loaded("encoder").record_once(f"{at} {TEXT * 16}", (), None).streams
    assert [key[3] for key in here.entries if key[0] == "recording"] == [TEXT * 16]
    light = loaded("encoder").record_once("The cat sat.", (), None)
    assert loaded("encoder").record("The cat sat.") is light
