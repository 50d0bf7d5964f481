"""What is remembered, and for how long: nothing of a reader's text outlives the cache, whichever
page is open."""

from __future__ import annotations

import gc

import pytest
from app_harness import TABS, go, page_at
from held_memory import expect_counted, numbers_of
from streamlit.runtime.media_file_manager import MediaFileManager

from explorer.app.state.jobs import Job
from models.contract.recording import Attention, Recording, Stream
from models.runtime import caching
from models.runtime.cache import Cache

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
    recordings = [each for each, _ in caching.cache.entries.values() if isinstance(each, Recording)]
    pattern = max(one.pattern.nbytes for run in recordings for one in run.attention)
    assert sum(numbers_of(callables).values()) < pattern / 2, (
        "buttons hold arrays as large as a recording's"
    )
    visit.session_state["export menu"] = True
    visit.run()
    in_menu = numbers_of(callables).keys()
    assert not any(in_menu & numbers_of(each).keys() for each in recordings)
    stop_all()
    expect_counted(caching.cache)
    caching.cache.entries.clear()
    del recordings
    assert visit and not [each for each in recorded() if id(each) not in before]
