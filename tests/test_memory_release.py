"""What is remembered, and for how long: nothing of a reader's text outlives the cache, whichever
page is open."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator

import numpy as np
import pytest
from app_harness import TABS, go, page_at
from streamlit.runtime.media_file_manager import MediaFileManager

from explorer.state.jobs import Job
from models import caching
from models.cache import Cache
from models.recording import Attention, Recording, Stream

LONG = "The cat sat on the mat, and the dog ran to the park. " * 12


@pytest.fixture
def callables(monkeypatch: pytest.MonkeyPatch) -> list:
    """What the server keeps of a visitor's download buttons: the functions that make the files when
    they are pressed."""
    held: list = []
    add = MediaFileManager.add_deferred

    def remembering(self, made, *more, **named):
        held.append(made)
        return add(self, made, *more, **named)

    monkeypatch.setattr(MediaFileManager, "add_deferred", remembering)
    return held


def arrays(value: object, seen: set[int]) -> Iterator[np.ndarray]:
    """The arrays that a callable keeps alive by what it closes over; of a view the whole array
    below it."""
    if id(value) in seen or isinstance(value, (types.ModuleType, type)):
        return
    seen.add(id(value))
    parts: list = []
    if isinstance(value, np.ndarray):
        yield value if value.base is None else np.asarray(value.base)
    elif isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = [*cells, *(value.__defaults__ or ())]
    elif isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    elif hasattr(value, "func"):
        parts = [value.func, value.args, value.keywords]
    elif hasattr(value, "__dict__"):
        parts = [vars(value)]
    for part in parts:
        yield from arrays(part, seen)


def recorded() -> list:
    """Every recording, and every part of one, that anything in this process still holds."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) in (Recording, Attention, Stream)]


def stop_all() -> None:
    """End what is under way in the background: it holds what it works on."""
    for work in list(Job.running_jobs.values()):
        work.stop()
        work._thread.join(60)


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("page", TABS)
def test_a_visit_holds_no_recording_beyond_the_cache(
    page: str, callables: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "cache", Cache(2**29))
    before = {id(each) for each in recorded()}
    visit = go(page_at("heads", text=LONG, model="translator"), page)
    assert not visit.exception and not visit.error
    in_cache = [value for value, _ in caching.cache.entries.values()]
    pattern = max(
        one.pattern.nbytes
        for run in in_cache
        if isinstance(run, Recording)
        for one in run.attention
    )
    stop_all()
    caching.cache.entries.clear()
    del in_cache
    assert visit and not [each for each in recorded() if id(each) not in before]
    kept = {id(each): each.nbytes for made in callables for each in arrays(made, set())}
    assert sum(kept.values()) < pattern / 2, "buttons hold arrays as large as a recording's"
