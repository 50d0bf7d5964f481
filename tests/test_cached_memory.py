"""No cached value holds memory that its weight does not count: not the recording that it was made
of, whose buffer goes back when the last array that lies in it is gone, and nothing else."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from conftest import in_turn, read_once
from held_memory import bytes_of, expect_counted, numbers_of
from test_panels import NAMES, every, made, model_of
from waiting import until

from explorer.app.state.jobs import Job
from explorer.panels import attention
from explorer.panels.choice import resolved
from explorer.panels.selection import select
from models.contract.recording import Recording
from models.network import buffer_pool
from models.own import drafts
from models.runtime import caching
from models.runtime.cache import Cache, weight_of
from models.runtime.caching import loaded
from models.runtime.run import Run

TEXT = "The cat sat on the mat, and the dog ran to the park. " * 2
MIB = 2**20


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of a test's own, with room for all that is made."""
    monkeypatch.setattr(caching, "cache", Cache(2**33))
    return caching.cache


# ---- what is cached ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.in_turn(6)
@pytest.mark.parametrize("name", NAMES)
def test_a_panel_and_what_it_leaves_in_the_cache(name: str, here: Cache) -> None:
    (model,) = in_turn(("encoder", "decoder", "translator"), 3, name)
    model = model if model_of(name) == "encoder" else model_of(name)
    run = Run(model, TEXT)
    panel = made(name, run)
    if not isinstance(panel, str):
        assert panel.encode()
        recorded = numbers_of(run.recording())
        assert not recorded.keys() & numbers_of(panel).keys(), "a panel keeps no recording"
    expect_counted(here)


@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_the_panels_that_a_page_shares(model: str, here: Cache) -> None:
    on = select(Run(model, TEXT))
    chosen = resolved(tuple(attention.CHOICES.values()), on.run, {})
    for panel in (attention.cached_heads(on, chosen), attention.cached_head(on, chosen)):
        assert panel.bare and panel.csv()
    assert every()["architecture.flow"](on.run).encode()
    expect_counted(here)
    assert sum(key[0] == "derived" and "panel" in key[-1] for key in here.entries) == 2


def test_what_is_kept_is_computed_once_of_a_recording_and_of_what_else_it_is_given(
    here: Cache,
) -> None:
    made: list[tuple[str, int]] = []

    @caching.kept
    def longest(recording: Recording, stream: str, least: int = 0) -> int:
        made.append((recording.text, least))
        return max(least, *map(len, recording.stream(stream).tokens))

    one, other = (Run("encoder", text).recording() for text in ("a river", "a deep well"))
    for _ in range(2):
        assert (longest(one, "encoder"), longest(other, "encoder")) == (5, 5)
        assert longest(one, "encoder", least=9) == 9
    assert made == [("a river", 0), ("a deep well", 0), ("a river", 9)]
    assert caching.is_kept(longest, one, "encoder")
    assert not caching.is_kept(longest, one, "decoder")


def test_a_run_with_its_recording_at_hand_is_equal_and_holds_it_for_nobody(here: Cache) -> None:
    run = Run("encoder", TEXT)
    recording = run.recording()
    at_hand = run.with_at_hand(recording)
    assert at_hand == run and hash(at_hand) == hash(run)
    here.entries.clear()
    assert at_hand.recording() is recording and not here.entries
    gone = weakref.ref(recording)
    del recording
    gc.collect()
    assert gone() is None
    assert np.array_equal(at_hand.recording().streams[0].ids, run.recording().streams[0].ids)


def test_a_search_and_a_text_in_the_making_as_they_grow(here: Cache) -> None:
    search = drafts.search("translator", TEXT, 4)
    weights = [here.weight()]
    while not search.finished and len(search.steps) < 4:
        search.resume()
        expect_counted(here)
        weights.append(here.weight())
    assert weights[0] < weights[1] < weights[-1]
    drafts.generated_text("decoder", TEXT, (5, 6))
    expect_counted(here)


def test_a_job_that_was_stopped_with_what_its_next_step_needs(here: Cache) -> None:
    at_work = threading.Event()

    def steps() -> Iterator[int]:
        held = np.zeros(MIB, np.uint8)
        for at in range(10**6):
            at_work.set()
            yield at + len(held)

    job = here.get("job", lambda: Job(steps, "job", takes_slots=False))
    assert here.weight() < MIB
    job.resume()
    assert at_work.wait(30)
    job.stop()
    until(lambda: "job" not in Job.running_jobs)
    assert here.weight() > MIB
    expect_counted(here)


def test_texts_that_were_read_in_one_pass(here: Cache) -> None:
    texts = [f"{at} {TEXT}" for at in range(3)]
    for text, recording in zip(texts, read_once("encoder").record_batch(texts)):
        here.get(text, lambda one=recording: one)
        weight = here.entries[text][1]
        assert bytes_of(recording) <= weight < 2 * weight_of(loaded("encoder").record(text))


# ---- what a value holds --------------------------------------------------------------------------


@dataclass
class Plain:
    of: Any


class Slotted:
    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def method(self) -> None:
        """Says nothing; it is held with what it is a method of."""


def generator(of: Any) -> Iterator[Any]:
    yield of
    yield of


def stopped(of: Any) -> Iterator[Any]:
    steps = generator(of)
    next(steps)
    return steps


def zeros() -> np.ndarray:
    return np.zeros(MIB, np.uint8)


def lent() -> np.ndarray:
    return buffer_pool.acquire(MIB // 4)


KINDS: dict[str, Callable[[], Any]] = {
    "an array": zeros,
    "a row": lambda: zeros().reshape(1024, -1)[3],
    "a column, turned": lambda: zeros().reshape(1024, -1).T[:, 3:4].T,
    "one cell, repeated": lambda: np.broadcast_to(zeros()[:1], (9, 9)),
    "strides by hand": lambda: np.lib.stride_tricks.as_strided(zeros()[:1], (9,), (0,)),
    "a part of lent memory": lambda: lent()[:1],
    "a view of bytes": lambda: np.frombuffer(bytes(MIB), np.uint8)[:1],
    "a view of a view of bytes": lambda: memoryview(bytes(MIB))[:1],
    "an array of a view": lambda: np.asarray(memoryview(bytearray(MIB)))[:1],
    "a tensor's row": lambda: torch.zeros(1024, 256)[3],
    "a tensor's row as an array": lambda: torch.zeros(1024, 256)[3].numpy(),
    "objects": lambda: np.array([zeros()[:1], None], object),
    "a text": lambda: "x" * MIB,
    "a closure": lambda: (lambda of: lambda: of)(zeros()[:1]),
    "a default": lambda: lambda of=zeros()[:1]: of,
    "an argument by name": lambda: partial(print, file=zeros()[:1]),
    "a method": lambda: Slotted(zeros()[:1]).method,
    "a stopped generator": lambda: stopped(zeros()[:1]),
    "a dataclass in a queue": lambda: deque([Plain({"of": zeros()[:1]})]),
    "slots in a proxy": lambda: MappingProxyType({1: Slotted(zeros()[:1])}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_weighs_the_whole_of_what_it_is_a_part_of(kind: str) -> None:
    value = KINDS[kind]()
    assert MIB <= bytes_of(value) <= weight_of(value) < 1.02 * MIB
    assert weight_of((value, [value])) < 1.02 * MIB, "once, however often it is there"


def test_a_loaded_model_weighs_nothing_where_it_is_held() -> None:
    model = read_once("encoder")
    assert weight_of([model, model.network, model.record]) < 2000


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_holds_whatever_is_kept(kind: str) -> None:
    here = Cache(5 * MIB)
    for at in range(12):
        here.get(at, KINDS[kind])
        assert here.weight() <= here.limit
    assert len(here.entries) in (4, 5)
