"""The cache's bound: one of everything heavy that is alive, in the cache or in somebody's hands."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import read_once

from explorer import export
from explorer.analysis import verdicts
from explorer.analysis.measure import MeasureContext
from explorer.panels import address
from explorer.text import claims
from models.contract.edits import ZeroHead
from models.contract.model import Model
from models.contract.recording import Recording, digest
from models.contract.recording_file import from_npz, to_npz
from models.network import buffer_pool
from models.runtime import caching
from models.runtime.cache import Cache, weight_of
from models.runtime.caching import loaded
from models.runtime.run import Run, run_of


class Heavy:
    """Something of 100 kB that a reader may go on holding."""

    def __init__(self) -> None:
        self.numbers = np.zeros(12_500)


def test_what_is_dropped_and_still_held_counts_and_is_found_again() -> None:
    here, made = Cache(550_000), []

    def make() -> Heavy:
        heavy = Heavy()
        made.append(weakref.ref(heavy))
        return heavy

    def alive() -> int:
        return sum(each() is not None for each in made)

    at_work = [here.get(("held", at), make) for at in range(4)]
    for at in range(20):
        here.get(("passing", at), make)
        assert alive() <= 5, "what readers work with and what lies there are within one bound"
    assert len(made) == 24
    assert [here.get(("held", at), make) for at in range(4)] == at_work and len(made) == 24
    del at_work
    for at in range(20):
        here.get(("after", at), make)
    assert len(here.entries) == 5 == alive()


def test_what_is_light_stays_however_much_is_held_elsewhere() -> None:
    here = Cache(550_000)
    light = here.get("light", lambda: np.zeros(100))
    at_work = [here.get(at, Heavy) for at in range(9)]
    assert here.get("light", lambda: None) is light and len(at_work) == 9


def test_room_is_made_before_a_recording_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of a text that is longer than any before it."""
    here = Cache(24 * 2**20)
    monkeypatch.setattr(caching, "cache", here)
    for at in range(3):
        here.get(at, lambda: np.zeros(7 * 2**20, np.uint8))
    weighed = here.weight()
    assert weighed > 20 * 2**20
    lent = buffer_pool.acquire(3 * 2**20)
    assert here.weight() + lent.nbytes <= here.limit < weighed + lent.nbytes


def test_a_changed_recording_is_shown_as_it_is_and_changes_no_other_run() -> None:
    model, text = read_once("encoder"), "Ram pushed Hari"
    recording = model.record(text)

    def changed(share: float) -> Recording:
        """The recording with an even share in each row of its attention."""
        (attention,) = recording.attention
        even = np.ones_like(attention.pattern) / attention.pattern.shape[-1]
        pattern = (1 - share) * attention.pattern + share * even
        return replace(recording, attention=(replace(attention, pattern=pattern),))

    even, mixed = changed(1.0), changed(0.5)
    panels = [("attention.head", {"layer": "1", "head": "5"}), ("summaries.aggregated", {})]
    for order in ((recording, even, mixed), (mixed, recording, even)):
        pages = [export.page(each, model=model) for each in order]
        assert len({*pages}) == 3 and pages[0] == export.page(order[0], model=model)
    for name, choices in panels:
        made = [
            address.from_words(name, Run.of(each, model), choices) for each in (even, recording)
        ]
        assert made[0].csv() != made[1].csv()
        assert made[1].csv() == address.from_words(name, Run("encoder", text), choices).csv()
        assert made[0].token != made[1].token, "a browser keeps pictures by it"
    # Other edits or another text are the model's own, from a run of the changed one too.
    run = Run.of(even, model)
    assert run.recording() is even and run_of(even) == run != Run("encoder", text)
    assert run.under((ZeroHead(0, 1),)).recording() == model.record(text, ZeroHead(0, 1))
    assert replace(run, text="Hari pushed Ram").recording() == model.record("Hari pushed Ram")
    assert Run("encoder", text).recording() == recording != even
    measured = [
        each.measure("mean", lambda of: of.attention[0].pattern.std())
        for each in (run, Run("encoder", text))
    ]
    assert measured[0] < 1e-6 < measured[1]


def test_a_digest_tells_recordings_apart_by_any_part() -> None:
    recording = read_once("decoder").record("the cat sat")
    (stream,) = recording.streams
    assert digest(recording) == digest(from_npz(to_npz(recording)))
    for other in (
        replace(recording, text="the cat sat."),
        replace(recording, dropped=1),
        replace(recording, streams=(replace(stream, tokens=("x", *stream.tokens[1:])),)),
        replace(recording, streams=(replace(stream, resid=stream.resid * 1.000001),)),
    ):
        assert digest(other) != digest(recording)


@pytest.mark.slow
def test_recordings_of_many_readers_stay_on_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims on a long text take several recordings of it beside those of other readers."""
    text = "The cat sat on the mat, and the dog ran to the park. " * 16
    one = weight_of(read_once("encoder").record(text))
    monkeypatch.setattr(caching, "cache", Cache(int(4.5 * one)))
    made: list[weakref.ref[Recording]] = []
    most, record = 0, Model.record

    def counted(*given: Any, **named: Any) -> Recording:
        nonlocal most
        recording = record(*given, **named)
        made.append(weakref.ref(recording))
        most = max(most, sum(each() is not None for each in made))
        return recording

    monkeypatch.setattr(Model, "record", counted)
    for at in range(4):
        loaded("encoder").record(f"{at} {text}")
    for claim in (claims.BY_ID[name] for name in ("norm-tames", "concatenation", "weighted-sum")):
        verdicts.evaluate_claim(claim, MeasureContext.of(Run("encoder", text)))
    assert most == 4 < len(made)
