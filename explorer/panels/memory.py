"""The memory that a panel takes at most beside the recordings that it is of, asked for before it is
made: of the budget that recordings are asked of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from explorer.figures import figure_engine
from explorer.figures.csv import Columns, count_cells
from models.contract.recording import NotFinite, Recording, stored_array
from models.runtime import caching, host
from models.runtime.run import Run

MIB = 2**20
NUMBER, ENTRY = 4, 192  # bytes of a number of a model, and of a cell of a table as it is written
ENDS = 8  # tokens around a text, at most


@dataclass(frozen=True)
class Bound:
    """The memory that a panel takes at most, in sizes of the recording that it is of, and of its
    model. recordings: others of the same text that it holds beside, which are asked for as they are
    made; hidden: those where a model that fills gaps reads a mask in the place of a token.
    patterns: copies of all patterns; layers: of those of one layer. cells: numbers of 8 bytes for
    each query and key. states: copies of the streams' vectors at all sites; sites: at one. scores:
    rows of numbers over the vocabulary. weights: copies of the model's. fixed: bytes, whatever the
    text."""

    recordings: int = 0
    hidden: int = 0
    patterns: float = 0.0
    layers: float = 2.0
    cells: float = 8.0
    states: float = 0.5
    sites: float = 0.0
    scores: float = 16.0
    weights: float = 0.08
    fixed: int = 12 * MIB

    def bytes_of(self, recording: Recording, longest: int = 0) -> int:
        """Bytes beside the recordings, of a panel that also reads texts of up to so many tokens."""
        card, n = recording.model, max(len(each.tokens) for each in recording.streams)
        more = max(1.0, min(longest, card.n_positions) / n)
        shapes = [each.pattern.shape for each in recording.attention]
        cells = max((queries * keys for *_, queries, keys in shapes), default=0)
        patterns = sum(map(prod, shapes))
        layer = max((prod(shape[1:]) for shape in shapes), default=0)
        states = sum(each.resid.size for each in recording.streams)
        numbers = (
            more**2 * (self.patterns * patterns + self.layers * layer + 2 * self.cells * cells)
            + more * (self.states * states + self.sites * n * card.d_model)
            + self.scores * card.n_vocab
            + self.weights * card.n_parameters
        )
        return int(NUMBER * numbers) + self.fixed


# Of a panel that is not named here. A test makes each panel and holds it to its bound.
DEFAULT = Bound()
PATTERNS, STATES = Bound(patterns=1.25), Bound(states=1.75)
WORDS, SENTENCES = Bound(states=1.25), Bound(layers=10)
RUNS = Bound(fixed=56 * MIB)  # several models, or several answers of one
BOUNDS: Mapping[str, Bound] = {
    "attention.heads": PATTERNS,
    "claims.claim": Bound(patterns=4, states=4),
    "claims.verdicts": Bound(patterns=4, states=4),
    "compare.difference": Bound(recordings=1),
    "compare.heads": Bound(recordings=1, fixed=44 * MIB),
    "compare.nearest": Bound(recordings=1, fixed=96 * MIB),
    "compare.prediction": Bound(recordings=1),
    "compare.tokens": Bound(recordings=1),
    "corpus.distances": SENTENCES,
    "corpus.highest": SENTENCES,
    "corpus.patterns": SENTENCES,
    "embeddings.anchors": WORDS,
    "embeddings.contexts": WORDS,
    "embeddings.neighbours": WORDS,
    "generation.attention": Bound(states=1),
    "generation.kv_cache": Bound(states=1),
    "generation.next_token": Bound(states=1),
    "generation.tokens": Bound(states=1),
    "gradients.deep_stack": Bound(fixed=96 * MIB),
    "gradients.jacobian": Bound(sites=260, fixed=40 * MIB),
    "interventions.effect": Bound(layers=5),
    "interventions.patches": Bound(recordings=3, states=2, fixed=56 * MIB),
    "interventions.residual_stream": Bound(states=3),
    "logit_lens.development": Bound(scores=96),
    "logit_lens.lens": Bound(scores=512),
    "loss.loss": Bound(states=1, scores=32),
    "loss.step": Bound(patterns=2, states=4, scores=320, weights=3),
    "multi_head.head_gradients": Bound(patterns=1, states=3, scores=320),
    "neighbours.between": Bound(states=1.5, cells=16),
    "norm_place.diagrams": Bound(patterns=1.4, states=3.2),
    "positions.answer": Bound(recordings=2, states=1.75),
    "positions.order": Bound(recordings=2, states=1.75),
    "positions.overlap": Bound(weights=3),  # of which the embeddings may be nearly all
    "residual.heads": STATES,
    "residual.updates": Bound(hidden=1, states=1.75, scores=96),
    "soft_lookup.scale": Bound(layers=18, fixed=80 * MIB),
    "stages.exchanged": Bound(recordings=2),
    "summaries.aggregated": PATTERNS,
    "summaries.disagreements": PATTERNS,
    "summaries.output_norms": STATES,
    "training.checkpoints": RUNS,
    "training.pair": RUNS,
    "translation.alignment": RUNS,
    "translation.hypotheses": RUNS,
    "translation.probability": RUNS,
}


def bound_of(name: str) -> Bound:
    """The bound of a panel."""
    return BOUNDS.get(name, DEFAULT)


@contextmanager
def reserved(name: str, run: Run, arguments: Mapping[str, Any]) -> Iterator[Run]:
    """Make a panel of a run inside this, with room for all that it takes: of the run that it gives,
    which has its recording at hand. Raises NoRoom, before anything but its recordings is made,
    where that is more than one computation may take, and ValueError for a text that cannot be
    read."""
    bound, given = bound_of(name), [each for each in arguments.values() if each is not run]
    others = [each for each in given if isinstance(each, Run)]
    try:
        recordings = [each.recording() for each in (run, *others)]
    except NotFinite:  # which the panel names with its place
        yield run
        return
    longest = max(map(_tokens, given), default=0)
    size = sum(bound.bytes_of(each, longest) for each in recordings)
    beside = bound.recordings + bound.hidden * (recordings[0].model.kind == "encoder")
    missing = max(0, beside - len(others))
    caching.cache.expect(size + missing * weight(recordings[0]) + sum(map(weight, recordings)))
    with caching.cache.working(size):
        yield run.with_at_hand(recordings[0])


def weight(recording: Recording) -> int:
    """The bytes of a recording, about: its vectors, scores, patterns, queries, keys and values."""
    arrays = [each.resid for each in recording.streams]
    for each in recording.attention:
        arrays += (each.scores, each.pattern, each.q, *map(stored_array, (each.k, each.v)))
    return sum(array.nbytes for array in arrays)


def _tokens(value: Any) -> int:
    """Tokens of the longest line of a text that a reader gives, at most; 0 for no text."""
    lines = value.splitlines() if isinstance(value, str) else ()
    return max((ENDS + len(line.encode("utf-8", "replace")) for line in lines), default=0)


figure_engine.room = lambda size: caching.cache.working(size)


def writing(table: Columns) -> AbstractContextManager[None]:
    """Write a table, which lies there already, as a file inside this: what it was made of may
    go."""
    host.current.memory.release()
    return caching.cache.working(ENTRY * count_cells(table))
