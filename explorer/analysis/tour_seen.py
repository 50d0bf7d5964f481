"""What a step of the tour looks at: the evidence of claims, the word and the head that are held,
and what else its model shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.analysis.evidence import LACKS, Evidence, Untestable
from explorer.analysis.finding import Finding
from explorer.analysis.findings_links import is_word
from explorer.analysis.grounds import text_places
from models.edits import Edit
from models.prediction import Lens
from models.recording import Attention, Recording, Stream

NO_WORD = "This step needs a sentence: type one above."


@dataclass(frozen=True, eq=False)
class Seen:
    """evidence: the recording and ways to ask its model for more, as for claims. first: the
    recording's strongest finding that is seen in a head, None where there is none. labels(ids):
    tokens of the vocabulary as a person reads them. inside(stream, layer, token): the FFN's hidden
    units. nearest(vectors, top): the words that vectors come nearest to, ids and cosines.
    lens(recording, stream): what every state of a recording would say. scale: by what embeddings
    are multiplied, None where that is not known. norm: what the model's norms are called. edits,
    logits, key_heads, gate, ffn_biases: as in `models.offers`. turns: positions turn q and k."""

    evidence: Evidence
    first: Finding | None
    labels: Callable[[Iterable[int]], list[str]]
    inside: Callable[[str, int, int], Any]
    nearest: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
    lens: Callable[[Recording, str], Lens]
    edits: tuple[type[Edit], ...] = ()
    logits: str = ""
    scale: float | None = None
    norm: str = "LayerNorm"
    key_heads: int | None = None
    gate: str = ""
    ffn_biases: bool = True
    turns: bool = False

    @property
    def recording(self) -> Recording:
        return self.evidence.recording

    def can(self, *kinds: type[Edit]) -> None:
        """Raises Untestable where the model does not honour an edit of each of these kinds."""
        if not all(issubclass(kind, self.edits) for kind in kinds):
            raise Untestable(f"{LACKS}.")

    def reads_words(self) -> None:
        """Raises Untestable where no words are read off the model's last stream."""
        if self.logits != self.recording.streams[-1].name:
            raise Untestable("This model has no readout, so it says no words.")


@dataclass(frozen=True, eq=False)
class Held:
    """The pair of words that the tour follows: an attention, a head of it, a query and the key that
    it looks at."""

    attention: Attention
    layer: int
    head: int
    query: int
    key: int
    rows: Stream
    keys: Stream

    @property
    def weight(self) -> float:
        """How much of the query's attention the key gets."""
        return float(self.attention.pattern[self.layer, self.head, self.query, self.key])

    @property
    def words(self) -> tuple[str, str]:
        """What the two are called."""
        return self.rows.tokens[self.query], self.keys.tokens[self.key]

    def address(self) -> tuple[tuple[str, str], ...]:
        """The choices that show it on the Attention page and on Anatomy."""
        named = "" if self.attention.name in ("self", "encoder self") else self.attention.name
        return (
            ("attention", named),
            ("layer", str(self.layer)),
            ("head", str(self.head)),
            ("token", str(self.query)),
            ("source", ""),
            ("anatomy_cell", f"{self.query}.{self.key}"),
        )


def held(seen: Seen, within: str = "") -> Held:
    """The strongest finding's pair, in the attention `within` where that is named; without a
    finding the pair of words with the largest weight between two different words. Raises Untestable
    for a text without two words."""
    recording, first = seen.recording, seen.first
    if not recording.attention:
        raise Untestable("This model shows no attention.")
    if first is not None and first.query >= 0 and first.keys and within in ("", first.attention):
        own = next(each for each in recording.attention if each.name == first.attention)
        return _of(recording, own, first.layer, first.head, first.query, int(first.keys[0]))
    own = next((one for one in recording.attention if one.name == within), recording.attention[0])
    rows, keys = (words_of(recording.stream(each)) for each in (own.query, own.key))
    among = own.allowed & rows[:, None] & keys[None, :]
    if own.query == own.key:
        np.fill_diagonal(among, False)
    if not among.any():
        raise Untestable(NO_WORD)
    weights = np.where(among, own.pattern, -1.0)
    layer, head, query, key = map(int, np.unravel_index(weights.argmax(), weights.shape))
    return _of(recording, own, layer, head, query, key)


def _of(recording: Recording, own: Attention, layer: int, head: int, query: int, key: int) -> Held:
    rows, keys = recording.stream(own.query), recording.stream(own.key)
    return Held(own, layer, head, query, key, rows, keys)


def words_of(stream: Stream) -> np.ndarray:
    """Which tokens are words of the text, (token) bool."""
    return np.array([is_word(token) for token in stream.tokens]) & ~stream.special


def word_held(seen: Seen, stream: Stream) -> int:
    """The word that a step about one token follows: the finding's, else the last word. Raises
    Untestable for a text without one."""
    places = np.flatnonzero(words_of(stream))
    if not len(places):
        raise Untestable(NO_WORD)
    first = seen.first
    if first is not None and first.query in places:
        own = next(each for each in seen.recording.attention if each.name == first.attention)
        if own.query == stream.name:
            return int(first.query)
    return int(places[-1])


def text_of(stream: Stream) -> np.ndarray:
    """The places of the text's own tokens. Raises Untestable for a text without words."""
    if not words_of(stream).any():
        raise Untestable(NO_WORD)
    return text_places(stream)
