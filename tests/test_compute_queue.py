"""Nobody waits for another's long computation: the queue's order, things made once, and what ends
early."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from app_harness import ROOT, page_at
from conftest import read_once
from waiting import threads, until

from explorer.app.state import garbage_collection, jobs, models, scheduling
from explorer.app.state.jobs import Job
from explorer.app.state.scheduling import ComputeQueue
from explorer.app.state.settings import settings
from models.contract.cancellation import TimeLimit, checkpoint
from models.runtime import caching
from models.runtime.cache import Cache, weight_of
from models.runtime.caching import loaded

WAIT = 30  # seconds until a test gives up


def queue(seconds: float = 60, wanted: Callable[[], None] = lambda: None) -> ComputeQueue:
    return ComputeQueue(lambda: seconds, wanted)


def test_short_ones_go_before_the_next_slice_of_a_long_one_in_the_order_of_asking() -> None:
    line, log, begun, go = queue(), [], threading.Event(), threading.Event()

    def long() -> None:
        with line.slot():
            for slice in range(3):
                log.append(slice)
                begun.set()
                go.wait(WAIT)
                checkpoint()

    def short(name: str) -> None:
        with line.slot():
            log.append(name)

    with threads() as start:
        start(long, then=begun.is_set)
        for at, name in enumerate("abc", start=1):
            start(short, name, then=lambda at=at: line.waiting() == at)
        go.set()
    assert log == [0, "a", "b", "c", 1, 2]


def test_a_long_one_has_its_slice_however_many_short_ones_come() -> None:
    line, log, begun, go = queue(), [], threading.Event(), threading.Event()

    def long() -> None:
        with line.slot():
            begun.set()
            go.wait(WAIT)
            checkpoint()
            log.append("slice")

    def short() -> None:
        with line.slot():
            log.append("short")

    many = 3 * scheduling.PATIENCE
    with threads() as start:
        start(long, then=begun.is_set)
        for _ in range(many):
            start(short)
        until(lambda: line.waiting() == many)
        go.set()
    assert len(log) == many + 1 and log.index("slice") <= scheduling.PATIENCE


def test_who_waits_for_what_another_makes_gives_the_slot_away() -> None:
    """Else the one would wait for the thing, and the other for the slot to make it."""
    here, begun, got = Cache(2**20), threading.Event(), []

    def make() -> str:
        begun.set()
        with scheduling.slot():
            return "made"

    def holder() -> None:
        with scheduling.slot():
            start(lambda: got.append(here.get("key", make)), then=begun.is_set)
            got.append(here.get("key", lambda: "another"))

    with threads() as start:
        start(holder).join(WAIT)
    assert got == ["made", "made"]


class Gone(BaseException):
    pass


def test_a_slot_ends_with_its_reader_or_its_time_and_a_slot_within_one_is_the_same() -> None:
    gone, slices = threading.Event(), []

    def wanted() -> None:
        if gone.is_set():
            raise Gone

    line = queue(wanted=wanted)
    with pytest.raises(Gone), line.slot(), line.slot():
        for slice in range(10):
            slices.append(slice)
            if slice == 2:
                gone.set()
            checkpoint()
    gone.clear()
    late = queue(seconds=0)
    with pytest.raises(TimeLimit, match="one computation may have"), late.slot():
        threading.Event().wait(0.01)
        checkpoint()
    for each in (line, late):
        with each.slot(), each.slot():
            assert each.waiting() == 0
    assert slices == [0, 1, 2]


@pytest.mark.slow
def test_a_sentence_waits_for_one_slice_of_a_jacobian_of_512_tokens_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slices = []
    breathe = ComputeQueue._yield_slot
    monkeypatch.setattr(
        ComputeQueue, "_yield_slot", lambda self, *of: (slices.append(of), breathe(self, *of))[1]
    )
    long = loaded("encoder").record("all work and no play " * 400)
    loaded("encoder").record("a first one")
    monkeypatch.setattr(caching, "cache", Cache(2**29))
    with threads() as start:
        jacobian = loaded(long).jacobian
        other = start(jacobian, long, "encoder", 500, "1.attn", then=lambda: len(slices) > 1)
        asked = len(slices)
        loaded("encoder").record("a short one")
        waited = len(slices) - asked
        # One slice under way, and one that had begun to wait.
        assert other.is_alive() and waited <= 2
    assert len(slices) > asked + waited, "the long one goes on"


# ---- work in the background --------------------------------------------------


class Held:
    """Something large that work holds while it is at it."""


def at_work(begun: list, go: threading.Event) -> Iterator[int]:
    """One step, then one that is cut in slices and lasts until `go`."""
    held = Held()
    begun.append(weakref.ref(held))
    yield 1
    with scheduling.slot():
        while not go.wait(0.01):
            checkpoint()
    yield 2


def test_work_ends_within_a_step_when_its_last_reader_has_gone_and_lets_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, begun, go = {"one", "two"}, [], threading.Event()
    monkeypatch.setattr(jobs, "is_here", here.__contains__)
    monkeypatch.setattr(jobs, "READER_TIMEOUT", 0.1)
    work = Job(lambda: at_work(begun, go), takes_slots=False)
    for reader in sorted(here):
        work.read_by(reader)
    work.resume()
    until(lambda: work.latest == 1)
    here.discard("one")
    threading.Event().wait(0.3)
    assert work.running, "another reader is there"
    here.clear()
    until(lambda: not work.running)
    assert not work.finished and begun[0]() is None and not Job.running_jobs
    with scheduling.slot():
        here.add("two")
    go.set()
    work.resume()
    until(lambda: work.finished)
    assert work.latest == 2 and len(begun) == 2


def test_claims_of_a_text_end_when_their_reader_asks_for_those_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = [], threading.Event()
    monkeypatch.setattr(jobs.sessions, "current", lambda: "a reader")

    def asked(text: str) -> Job:
        recording = loaded("encoder").record(text)
        return jobs.recording_job(recording, "a test", lambda: at_work(begun, go))

    first = asked("one text")
    first.resume()
    until(lambda: first.latest == 1)
    assert asked("one text") is first and first.running
    asked("another text")
    until(lambda: not first.running)
    assert not first.finished and begun[0]() is None


# ---- the cache ---------------------------------------------------------------


def test_who_wants_one_thing_never_waits_for_the_making_of_another() -> None:
    here, made_other = Cache(2**20), threading.Event()
    with threads() as start:
        start(here.get, "long", lambda: made_other.wait(WAIT), then=lambda: "long" in here.pending)
        assert here.get("short", lambda: "made") == "made"
        made_other.set()
    assert here.get("long", lambda: None) is True


def test_a_thing_is_made_once_whoever_asks_meanwhile() -> None:
    here, made, go, got = Cache(2**20), [], threading.Event(), []

    def make() -> str:
        made.append(1)
        go.wait(WAIT)
        return "it"

    with threads() as start:
        for _ in range(5):
            start(lambda: got.append(here.get("key", make)), then=lambda: made)
        go.set()
    assert got == ["it"] * 5 and len(made) == 1


def test_where_the_maker_was_stopped_the_next_one_makes_it() -> None:
    here, begun, go, got = Cache(2**20), threading.Event(), threading.Event(), []

    def stopped() -> None:
        begun.set()
        go.wait(WAIT)
        raise ValueError("stopped")

    def first() -> None:
        with pytest.raises(ValueError, match="stopped"):
            here.get("key", stopped)

    with threads() as start:
        start(first, then=begun.is_set)
        start(lambda: got.append(here.get("key", lambda: "made")))
        go.set()
    assert got == ["made"] and not here.pending


def test_things_weigh_what_they_keep_in_memory() -> None:
    whole = np.zeros((100, 1000), np.float32)
    for thing in (whole, {"a row": whole[3], "twice": (whole, whole)}):
        # The objects around the numbers weigh a little too.
        assert weight_of(thing) == pytest.approx(400_000, rel=0.01)
    recording = loaded("encoder").record("Ram pushed Hari")
    arrays = [*vars(recording.streams[0]).values(), *vars(recording.attention[0]).values()]
    least = sum(getattr(each, "nbytes", 0) for each in arrays)
    assert least <= weight_of(recording) < 2 * least + 10_000


@pytest.mark.slow
def test_a_text_is_cut_before_it_is_split_and_a_cut_one_is_told_and_stays_in_the_field() -> None:
    most = settings().max_chars
    text = "x" * (most + 1) + " and a million more" * 50_000
    recording = loaded("encoder").record(text)
    assert recording.text == text[:most]
    assert recording is loaded("encoder").record(text + "!"), "what is not read changes nothing"
    text = "ab " * most
    app = page_at("heads")
    app.session_state["wanted_text"] = text
    app.run()
    told = [each.value for each in app.warning if "characters" in each.value]
    assert not app.exception and app.session_state["text"] == text
    assert f"first {most:,} of {len(text):,} characters" in told[0]


def test_a_model_that_others_look_at_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [f"ours:/models/{at}" for at in range(settings().max_models)]
    asked = {(f"reader of {name}", name): 0.0 for name in held}
    monkeypatch.setattr(models, "loaded_models", OrderedDict.fromkeys(held))
    monkeypatch.setattr(models, "_last_requests", asked)
    assert f" {len(held)} " in models.no_room("ours:/models/new")
    assert models.no_room(held[0]) == models.no_room("encoder") == ""
    del asked[f"reader of {held[1]}", held[1]]
    assert models.no_room("ours:/models/new") == ""
    models._store("ours:/models/new", read_once("encoder"))
    assert set(models.loaded_models) == {*held, "ours:/models/new"} - {held[1]}


# ---- the collector -----------------------------------------------------------


def test_nothing_is_collected_while_readers_are_served_unless_memory_grows() -> None:
    due = garbage_collection.due_collection
    assert due(quiet=0.1, since=60, since_all=9_999, grown=0) == ""
    assert due(quiet=5, since=60, since_all=60, grown=0) == "some"
    assert due(quiet=5, since=1, since_all=60, grown=0) == ""
    assert due(quiet=5, since=1, since_all=9_999, grown=0) == "all"
    assert due(quiet=0, since=1, since_all=1, grown=settings().cache_bytes) == "some"


KEPT = """
import numpy as np
from explorer.app.state import garbage_collection, host
from models.runtime import caching
size = 64 * 2**20
before, unaccounted = garbage_collection.in_memory(), garbage_collection.unaccounted()
caching.get("a large thing", lambda: np.ones(size // 8))
assert garbage_collection.in_memory() - before > 0.8 * size
assert garbage_collection.unaccounted() - unaccounted < 0.2 * size
beside = np.ones(size // 8)
assert garbage_collection.unaccounted() - unaccounted > 0.8 * beside.nbytes
"""


@pytest.mark.slow
def test_what_lies_on_the_cache_is_no_reason_to_collect() -> None:
    """In a process of its own, whose memory nobody else changes."""
    made = subprocess.run([sys.executable, "-c", KEPT], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


@pytest.mark.slow
def test_what_was_frozen_is_collected_when_all_is() -> None:
    class Visit:
        pass

    visit = Visit()
    visit.itself, gone = visit, weakref.ref(visit)
    garbage_collection.freeze()
    del visit
    garbage_collection.collect("some")
    assert gone() is not None, "frozen"
    garbage_collection.collect("all")
    assert gone() is None
    gc.unfreeze()
