"""The shelf's bound: one of everything heavy that is alive, on the shelf or in somebody's hands."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from conftest import read_once

from explorer.analysis import verdicts
from explorer.panels.claims import measure_context
from explorer.state import cache
from explorer.state.cache import Cache, weight_of
from explorer.text import claims
from models import buffer_pool
from models.model import Model
from models.recording import Recording


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
    monkeypatch.setattr(cache, "_cache", here)
    for at in range(3):
        here.get(at, lambda: np.zeros(7 * 2**20, np.uint8))
    weighed = here.weight()
    assert weighed > 20 * 2**20
    lent = buffer_pool.acquire(3 * 2**20)
    assert here.weight() + lent.nbytes <= here.limit < weighed + lent.nbytes


@pytest.mark.slow
def test_recordings_of_many_readers_stay_on_the_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims on a long text take several recordings of it beside those of other readers."""
    text = "The cat sat on the mat, and the dog ran to the park. " * 16
    one = weight_of(read_once("encoder").record(text))
    monkeypatch.setattr(cache, "_cache", Cache(int(4.5 * one)))
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
        cache.record("encoder", f"{at} {text}")
    for claim in (claims.BY_ID[name] for name in ("alone", "order-matters", "convex")):
        verdicts.evaluate_claim(claim, measure_context(cache.record("encoder", text), text))
    assert most == 4 < len(made)
