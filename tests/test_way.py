"""How long the way of a screen and of a panel is: the files of `explorer/` and `models/` that are
entered on it. A file is, where a function of it is called."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from app_harness import clean, page_at

from explorer.panels.spec import PANELS
from explorer.screens.screen import screen
from models.runtime import caching, host
from models.runtime.run import Run

ROOT = Path(__file__).resolve().parent.parent
OURS = tuple(f"{ROOT / folder}/" for folder in ("explorer", "models"))
texts = (f"The dog saw the cat {n} times because it was afraid." for n in count(2))


@contextmanager
def entered(within: str = "") -> Iterator[set[str]]:
    """Collect the files that are entered, while a function `within` runs where one is named."""
    files: set[str] = set()
    runs_in: set[int] = set() if within else {threading.get_ident()}  # the thread of the way

    def note(frame: FrameType, event: str, _: Any) -> None:
        code, thread = frame.f_code, threading.get_ident()
        if event == "call" and code.co_name == within:
            runs_in.add(thread)
        if thread not in runs_in or not code.co_filename.startswith(OURS):
            return
        if event == "call" and code.co_name != "<module>":
            files.add(str(Path(code.co_filename).relative_to(ROOT)))
        if event == "return" and code.co_name == within:
            runs_in.remove(thread)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def way(make: Callable[[str], object], read: Callable[[str], object], within: str = "") -> set[str]:
    """The files entered while something is made of a text that the model has read, of which nothing
    else is known; the same was made of another text before."""
    first, second = next(texts), next(texts)
    read(first), make(first), read(second)
    with entered(within) as files:
        make(second)
    return files


def read(text: str) -> object:
    return Run("encoder", text).recording()


@pytest.fixture
def alone() -> Iterator[None]:
    """A process with one caller, as a notebook is."""
    before = host.current
    caching.use(host.Host())
    yield
    caching.use(before)


def expect_at_most(most: int, files: set[str]) -> None:
    assert 3 < len(files) <= most, f"{len(files)} files:\n" + "\n".join(sorted(files))


def test_the_tracer_counts_a_file_where_a_function_of_it_is_called() -> None:
    run = Run("encoder", "one")
    with entered() as files:
        run.with_at_hand(run.recording()).recording()
    assert "models/runtime/run.py" in files and not any(
        each.startswith("explorer/text") for each in files
    )
    with entered("nothing") as files:
        run.recording()
    assert not files


@pytest.mark.usefixtures("alone")
def test_a_screen_is_resolved_and_made_in_few_files() -> None:
    """45 files when screens came; 47 since the run of a row is resolved with its choices; 46 until
    what is one concept stood in one file, and 37 until what a run knows was no longer checked."""

    def make(text: str) -> None:
        for panel in screen({"text": text}).panels():
            panel.encode()

    expect_at_most(35, way(make, read))


@pytest.mark.slow
def test_the_tab_heads_is_drawn_in_few_files() -> None:
    """What its function enters, below the frame and the reading of the text: 56 files at commit
    24b04e98, 63 when screens came, 66 with the vote of heads."""
    app = page_at("heads")

    def draw(text: str) -> None:
        app.query_params["text"] = text
        clean(app.run())

    expect_at_most(56, way(draw, read, "heads_tab"))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("name", "most"), [("attention.heads", 22), ("attention.head", 32)])
def test_a_panel_is_made_in_few_files(name: str, most: int) -> None:
    """Of a run whose recording is at hand, as on its page: 23 and 29 files at commit 24b04e98, 25
    and 35 until what a run knows was no longer checked."""

    def make(text: str) -> None:
        run = Run("encoder", text)
        recording = run.recording()
        PANELS[name](run.with_at_hand(recording))

    expect_at_most(most, way(make, read))
