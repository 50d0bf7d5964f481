"""Readers' runs wait for one another for a moment at most, and their messages keep their order."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner.script_runner import ScriptRunnerEvent
from waiting import in_thread, threads, until

from explorer.app.server.streamlit_patches import MessageBatch, batch_messages
from explorer.app.state import scheduling
from explorer.app.state.scheduling import PATIENCE, BatchQueue, Cancelled, ComputeQueue, ScriptQueue
from models.contract.cancellation import layer_checkpoint


def test_runs_follow_one_another_in_the_order_of_asking():
    line, done, at_once = ScriptQueue(moment=60), [], []
    within, hold = set(), threading.Event()

    def work(number: int) -> None:
        with line.run():
            within.add(number)
            at_once.append(len(within))
            hold.wait(20)
            within.remove(number)
            done.append(number)

    with threads() as start:
        for at in range(5):
            start(work, at, then=lambda at=at: line.waiting() + len(at_once) == at + 1)
        hold.set()
    assert done == [0, 1, 2, 3, 4] and at_once == [1] * 5


def test_a_run_waits_for_what_is_made_ahead_of_it():
    line, entered, asked = ScriptQueue(ahead=60), threading.Event(), threading.Event()

    def work() -> None:
        asked.set()
        with line.run():
            entered.set()

    with threads() as start:
        with line.before():
            start(work, then=asked.is_set)
            assert not entered.wait(0.05)
        assert entered.wait(20)
    with pytest.raises(ValueError), line.before():
        raise ValueError
    with line.run():  # nothing is ahead, nor is what failed: at once
        pass
    line = ScriptQueue(ahead=0.01)
    with line.before(), line.run():  # nobody is held up for long
        assert line.begun_lately() == 1


def test_a_run_waits_longer_for_its_own_text_and_for_no_other():
    line, waited = ScriptQueue(), threading.Event()

    def work() -> None:
        line.wait_for(("encoder", "its own"), 60)
        waited.set()

    with threads() as start:
        with line.before(("encoder", "its own")):
            start(work)
            assert not waited.wait(0.05)
            line.wait_for(("encoder", "another"), 60)  # at once
            line.wait_for(("encoder", "its own"), 0.01)  # not for ever
        assert waited.wait(20)


def test_what_is_made_ahead_for_a_heavy_model_goes_behind_and_others_do_not_wait_for_it():
    line, turns, done = ScriptQueue(ahead=60), ComputeQueue(lambda: 60), []

    def work(is_heavy: bool) -> None:
        with line.before("text", is_heavy), turns.slot():
            done.append("heavy" if is_heavy else "light")

    def heavy_run() -> None:
        with line.run(is_heavy=True):
            done.append("heavy run")

    with threads() as start, turns.slot():
        start(work, True, then=lambda: line.ahead() == 1 and turns._long)
        with line.run():
            pass  # its text is another model's: it does not wait
        start(heavy_run)
        start(work, False, then=lambda: turns._short)
    assert done == ["light", "heavy", "heavy run"]


def test_nobody_waits_for_a_long_run_beyond_its_moment():
    line, leave, entered = ScriptQueue(moment=0.02), threading.Event(), []

    def long() -> None:
        with line.run():
            entered.append(1)
            leave.wait(20)

    with threads() as start:
        others = [start(long) for _ in range(3)]
        until(lambda: len(entered) == 3)
        with line.run():  # each of the three has had its moment, and goes on
            assert all(thread.is_alive() for thread in others) and not line.waiting()
        leave.set()


def test_a_run_that_fails_leaves_its_place():
    line = ScriptQueue(moment=60)
    with pytest.raises(KeyError), line.run():
        raise KeyError
    with line.run():
        assert not line.waiting()


def test_messages_arrive_in_order_in_few_groups_and_one_that_fails_takes_no_other_along():
    told, wakes, n = [], [], 200

    async def listen() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: told.append("failed"))
        wake = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *given: (wakes.append(1), wake(*given))
        group = MessageBatch(loop)

        def say() -> None:
            for number in range(n):
                group.add(lambda number=number: told.append(number))
            group.add({}.popitem)
            group.add(lambda: told.append("last"))

        thread = in_thread(say)
        while "last" not in told:
            await asyncio.sleep(0.001)
        thread.join(20)

    with ThreadPoolExecutor() as threads:  # whatever loop this thread has already
        threads.submit(lambda: asyncio.run(asyncio.wait_for(listen(), 20))).result()
    assert told == [*range(n), "failed", "last"]
    assert len(wakes) < n / 2


class Session:
    """As much of a session as hands messages over."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._event_loop = loop


def test_streamlits_sessions_hand_their_messages_over_in_groups(monkeypatch):
    # where Streamlit does it in another way `gather` changes nothing, and this fails
    streamlits = AppSession._call_soon_on_event_loop
    monkeypatch.setattr(AppSession, "_call_soon_on_event_loop", streamlits)
    monkeypatch.setattr(AppSession, "_on_scriptrunner_event", lambda *_: None)
    batch_messages()
    soon, told = AppSession._call_soon_on_event_loop, []
    heard = AppSession._on_scriptrunner_event
    assert soon is not streamlits

    def live() -> None:
        loop = asyncio.new_event_loop()
        session = Session(loop)
        soon(session, lambda: told.append("first"))
        soon(session, lambda: told.append("second"))
        heard(session, None, ScriptRunnerEvent.ENQUEUE_FORWARD_MSG)
        loop.run_until_complete(asyncio.sleep(0))
        assert not told, "they gather"
        heard(session, None, ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS)
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
        assert told == ["first", "second"], "the end of a run waits for nothing"
        soon(session, lambda: told.append("later"))
        loop.run_until_complete(asyncio.sleep(0.1))
        loop.close()
        soon(session, lambda: told.append("too late"))
        heard(session, None, ScriptRunnerEvent.SHUTDOWN)

    with ThreadPoolExecutor() as threads:
        threads.submit(live).result()
    assert told == ["first", "second", "later"]


def test_runs_that_began_lately_are_counted(monkeypatch):
    line, now = ScriptQueue(), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for _ in range(3):
        with line.run():
            now[0] += 0.3
    assert line.begun_lately() == 3
    now[0] += 0.5
    assert line.begun_lately() == 1
    now[0] += 1
    assert line.begun_lately() == 0


def test_heavy_runs_go_behind_others_and_are_not_passed_for_ever():
    line, done, hold = ScriptQueue(moment=60), [], threading.Event()

    def work(name: str) -> None:
        with line.run(name.startswith("heavy")):
            hold.wait(20)
            done.append(name)

    lights = [f"light {at}" for at in range(PATIENCE + 2)]
    with threads() as start:
        for at, name in enumerate(["first", "heavy 1", "heavy 2", *lights], 1):
            start(work, name, then=lambda at=at: line.waiting() + len(line._first) == at)
        hold.set()
    assert [each for each in done if "heavy" not in each] == ["first", *lights]
    # The last two begin beside the first heavy run.
    assert "heavy 1" in done[PATIENCE + 1 :] and done.index("heavy 1") < done.index("heavy 2")


def test_a_run_begins_beside_a_heavy_one_and_a_second_heavy_one_does_not():
    line, done, holds = ScriptQueue(moment=60), [], [threading.Event(), threading.Event()]

    def work(name: str, hold: threading.Event) -> None:
        with line.run(name.startswith("heavy")):
            done.append(name)
            assert hold.wait(20)

    with threads() as start:
        first = start(work, "heavy 1", holds[0], then=lambda: done == ["heavy 1"])
        start(work, "heavy 2", holds[1], then=lambda: line.waiting() == 1)
        start(work, "light", holds[1], then=lambda: done == ["heavy 1", "light"])
        holds[0].set()
        first.join(20)
        assert line.waiting() == 1, "a heavy one waits for others"
        holds[1].set()
    assert done == ["heavy 1", "light", "heavy 2"]


def test_who_waits_is_shown_its_place_and_may_leave(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scheduling, "NOTICE_INTERVAL", 0.01)
    line, places = ScriptQueue(moment=60), []

    def notify(n: int) -> None:
        places.append(n)
        if len(places) == 3:
            raise KeyError

    with line.run(), pytest.raises(KeyError), line.run(False, notify):
        pass
    assert places == [0, 0, 0] and not line.waiting()
    with line.run():
        pass


def test_a_heavy_pass_gives_others_their_turn_between_its_layers():
    turns, done = ComputeQueue(lambda: 60.0, lambda: None), []
    token = scheduling._heavy_run.set(True)

    def short() -> None:
        with turns.slot():
            done.append("short")

    with threads() as start, turns.slot():
        scheduling._heavy_run.reset(token)
        start(short, then=lambda: turns.waiting() == 1)
        layer_checkpoint()
        done.append("heavy")
    assert done == ["short", "heavy"]


def test_what_a_heavy_run_computes_waits_behind_others():
    runs, turns, done = ScriptQueue(moment=0), ComputeQueue(lambda: 60.0, lambda: None), []
    begun_all, hold = threading.Event(), threading.Event()

    def work(name: str) -> None:
        with runs.run(name == "heavy"), turns.slot():
            begun_all.set()
            hold.wait(20)
            done.append(name)

    with threads() as start:
        start(work, "first", then=begun_all.is_set)
        for at, name in enumerate(["heavy", "light 1", "light 2"], 1):
            start(work, name, then=lambda at=at: turns.waiting() == at)
        hold.set()
    assert done == ["first", "light 1", "light 2", "heavy"]


class Batches:
    """A queue of batches whose computations wait until they may go on; a "bad" item fails."""

    def __init__(self, most: int = 8) -> None:
        self.queue, self.go_on = BatchQueue(most), threading.Event()
        self.computed: list[list[str]] = []
        self.results: dict[str, str] = {}
        self.threads: list[threading.Thread] = []

    def compute(self, items: list[str]) -> list[str]:
        self.computed.append(items)
        assert self.go_on.wait(20)
        if "bad" in items:
            raise KeyError
        return [item.upper() for item in items]

    def ask(self, item: str, group: str = "model") -> None:
        """Ask for the result of an item in a thread, after those that were asked for before."""

        def work() -> None:
            try:
                self.results[item] = self.queue.result(group, item, self.compute)
            except (KeyError, Cancelled) as error:
                self.results[item] = type(error).__name__

        waiting = len(self.queue._waiting)
        self.threads.append(in_thread(work))
        until(lambda: len(self.queue._waiting) > waiting)
        until(lambda: self.computed)  # the first one's

    def end(self) -> None:
        self.go_on.set()
        for thread in self.threads:
            thread.join(20)
        assert not self.queue._waiting and self.queue._leader is None


def test_items_that_come_during_a_batch_are_computed_together_in_the_next():
    batches = Batches(most=3)
    for item, group in zip("abcxde", ["model"] * 3 + ["other"] + ["model"] * 2):
        batches.ask(item, group)
    batches.end()
    assert batches.computed == [["a"], ["b", "c", "d"], ["x"], ["e"]]
    assert batches.results == {item: item.upper() for item in "abcxde"}


def test_a_fault_of_one_batch_reaches_its_first_item_alone():
    batches = Batches()
    for item in ("a", "bad", "b"):
        batches.ask(item)
    batches.end()
    assert batches.results == {"a": "A", "bad": "KeyError", "b": "B"}
    assert batches.computed == [["a"], ["bad", "b"], ["b"]]


def test_a_reader_who_leaves_a_batch_holds_up_nobody(monkeypatch: pytest.MonkeyPatch):
    batches, gone = Batches(), []

    def check() -> None:
        if threading.current_thread() in gone:
            raise Cancelled

    monkeypatch.setattr(scheduling, "check_cancelled", check)
    for item in ("a", "left", "b"):
        batches.ask(item)
    gone.append(batches.threads[1])
    until(lambda: "left" in batches.results)
    batches.end()
    assert batches.results == {"a": "A", "left": "Cancelled", "b": "B"}
    assert batches.computed == [["a"], ["b"]]


def test_what_others_wait_for_goes_on_when_its_reader_leaves():
    with scheduling.cancellable(lambda: (_ for _ in ()).throw(Cancelled)):
        with scheduling.for_others():
            scheduling.check_cancelled()
        with pytest.raises(Cancelled):
            scheduling.check_cancelled()
