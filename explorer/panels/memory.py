"""How much memory a panel takes at most beside the recordings that it is of, asked for before it is
made: of the budget that recordings are asked of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from explorer.analysis.csv import Columns, count_cells
from models import caching
from models.recording import Recording
from models.run import Run

NUMBER, ENTRY = 4, 160  # bytes of a number of a model, and of a cell of a table as it is written
ENDS = 8  # tokens around a text, at most


@dataclass(frozen=True)
class Bound:
    """What a panel takes at most, in sizes of the recording that it is of. recordings: others of
    the same text that it holds beside, which are asked for as they are made. patterns: copies of
    all patterns. cells: numbers of 8 bytes for each query and key. states: copies of the streams'
    vectors. squares: matrices (d_model, d_model). scores: numbers of 4 bytes for each word of the
    vocabulary. fixed: bytes, whatever the text."""

    recordings: int = 0
    patterns: float = 0.0
    cells: float = 16.0
    states: float = 0.25
    squares: float = 0.0
    scores: float = 32.0
    fixed: int = 4 << 20

    def bytes_of(self, recording: Recording, longest: int = 0) -> int:
        """Bytes beside the recordings, of a panel that also reads texts of up to so many tokens."""
        card, n = recording.model, max(len(each.tokens) for each in recording.streams)
        more = max(1.0, min(longest, card.n_positions) / n)
        shapes = [each.pattern.shape for each in recording.attention]
        cells = max((queries * keys for *_, queries, keys in shapes), default=0)
        patterns = NUMBER * sum(map(prod, shapes))
        states = sum(each.resid.nbytes for each in recording.streams)
        return int(
            more**2 * (self.patterns * patterns + 8 * self.cells * cells)
            + more * self.states * states
            + NUMBER * (self.squares * card.d_model**2 + self.scores * card.n_vocab)
            + self.fixed
        )


# Of a panel that is not named here. A test makes each panel and holds it to its bound.
DEFAULT = Bound()
BOUNDS: Mapping[str, Bound] = {}


def bound_of(name: str) -> Bound:
    """The bound of a panel."""
    return BOUNDS.get(name, DEFAULT)


@contextmanager
def reserved(name: str, run: Run, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Make a panel of a run inside this, with room for all that it takes. Raises NoRoom, before
    anything but its recordings is made, where that is more than one computation may take, and
    ValueError for a text that cannot be read."""
    bound, others = bound_of(name), [each for each in arguments.values() if isinstance(each, Run)]
    recordings = [each.recording() for each in (run, *others)]
    longest = max(map(_tokens, arguments.values()), default=0)
    size = sum(bound.bytes_of(each, longest) for each in recordings)
    missing = max(0, bound.recordings - len(others))
    caching.cache.expect(size + missing * weight(recordings[0]) + sum(map(weight, recordings)))
    with caching.cache.working(size):
        yield


def weight(recording: Recording) -> int:
    """The bytes of a recording, about: its vectors, scores and patterns."""
    heads = sum(each.scores.nbytes + each.pattern.nbytes for each in recording.attention)
    return heads + sum(each.resid.nbytes for each in recording.streams)


def _tokens(value: Any) -> int:
    """Tokens of the longest line of a text that a reader gives, at most; 0 for no text."""
    lines = value.splitlines() if isinstance(value, str) else ()
    return max((ENDS + len(line.encode("utf-8", "replace")) for line in lines), default=0)


def writing(table: Columns) -> AbstractContextManager[None]:
    """Write a table as a file inside this."""
    return caching.cache.working(ENTRY * count_cells(table))
