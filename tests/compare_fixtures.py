"""Two recordings side by side, for the tests of comparison."""

from __future__ import annotations

from functools import lru_cache

from conftest import read_once

from explorer.analysis import alignment, comparison
from models.contract.recording import Recording

TEXT = "The cat  didn't see 💛 unbelievably the old café."


@lru_cache(maxsize=16)  # some hold 512 tokens
def recorded(name: str, text: str = TEXT, edits: tuple = ()) -> Recording:
    return read_once(name).record(text, edits)


def sides(a: Recording, b: Recording) -> comparison.PatternPair:
    one, other = a.attention[0], b.attention[0]
    rows, columns = zip(alignment.axes(a, one), alignment.axes(b, other))
    return comparison.align_patterns(
        (a, one), (b, other), alignment.align(*rows), alignment.align(*columns)
    )
