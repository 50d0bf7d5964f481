"""Anchor words: two groups of words, each word read alone by the same model, and how near a word in
a text comes to either.

Axis legend: site, token and d_model as in `models/recording.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from explorer.analysis.planes import cosine
from explorer.analysis.sites import vectors
from models.recording import Recording, Stream

# The word comes last, so that a model that reads from left to right has seen the frame.
FRAME = "This is about the {}."
MOST_WORDS = 6  # in a group of anchors
LONGEST_WORD = 24
CONTEXTS = "Contexts"
MEASURES = {
    "Cosine": "cos(v, c), c the mean of the group’s vectors at this site.",
    "Centred": "The same after the mean of all word vectors at this site, of the texts and of "
    "the anchors’ sentences, has been subtracted from both.",
    "Difference": "The cosine to the first group minus the cosine to the second: what both have "
    "in common falls out.",
    CONTEXTS: "cos(v₁, v₂): the word in text 1 and in text 2. Dashed: different words of the two "
    "texts, on average.",
}
# The share of all splits of the anchors that may do as well before this one counts as chance.
CLEAR = 0.1
STILL = 0.005  # a cosine that changes by less has not moved


def groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Two groups of words as a reader writes them, "fruit, tree / mac, os"; empty ones are left
    out, repeated words too."""
    found = []
    for part in text.split("/")[:2]:
        words = dict.fromkeys(
            " ".join(word.split())[:LONGEST_WORD] for word in part.split(",") if word.strip()
        )
        if words:
            found.append(tuple(words)[:MOST_WORDS])
    return tuple(found)


def framed(word: str) -> str:
    """The sentence in which an anchor word is read."""
    return FRAME.format(word)


def word_in_frame(stream: Stream, word: str, names: Sequence[str]) -> np.ndarray:
    """The vectors (site, d_model) of an anchor word in the recording of `framed(word)`: the mean
    over its tokens.

    Raises ValueError where the word has no token.
    """
    return vectors(stream, names, _tokens_of(stream, word)).mean(1)


def _tokens_of(stream: Stream, word: str) -> np.ndarray:
    start = FRAME.index("{")
    inside = np.flatnonzero(
        (stream.spans[:, 0] < start + len(word)) & (stream.spans[:, 1] > start) & ~stream.special
    )
    if not len(inside):
        raise ValueError(f"{word!r} has no token of its own")
    return inside


@dataclass(frozen=True, eq=False)
class Anchors:
    """Groups of words with their vectors. vectors (word, site, d_model); group (word): which of
    `words` each belongs to; all_rows (row, site, d_model): every word vector of the anchors'
    sentences; in_pieces: the words that the model reads as several tokens."""

    words: tuple[tuple[str, ...], ...]
    vectors: np.ndarray
    group: np.ndarray
    all_rows: np.ndarray
    in_pieces: tuple[str, ...]

    def centroids(self) -> np.ndarray:
        """The mean vector of each group: (group, site, d_model)."""
        return np.stack([self.vectors[self.group == at].mean(0) for at in range(len(self.words))])


def anchors_of(
    words: tuple[tuple[str, ...], ...],
    recordings: Sequence[Recording],
    stream: str,
    names: Sequence[str],
) -> Anchors:
    """The anchors from one recording of `framed(word)` for each word, in the words' order."""
    flat = [word for group in words for word in group]
    streams = [recording.stream(stream) for recording in recordings]
    return Anchors(
        words,
        np.stack([word_in_frame(one, word, names) for one, word in zip(streams, flat)]),
        np.array([at for at, group in enumerate(words) for _ in group]),
        np.concatenate(
            [vectors(one, names, np.flatnonzero(~one.special)).swapaxes(0, 1) for one in streams]
        ),
        tuple(word for one, word in zip(streams, flat) if len(_tokens_of(one, word)) > 1),
    )


def pulls(
    paths: Sequence[np.ndarray], anchors: Anchors, around: Sequence[np.ndarray], measure: str
) -> np.ndarray:
    """How near a word stands to each group by site, one of `MEASURES`: (text, group, site), for
    "Difference" (text, 1, site).

    paths: for each text the word's vectors (site, d_model); around: for each text the vectors
    (site, token, d_model) of all its tokens, which count in the mean of "Centred".
    """
    centroids = anchors.centroids()
    if measure == "Centred":
        mean = np.concatenate([*(one.swapaxes(0, 1) for one in around), anchors.all_rows]).mean(0)
        paths, centroids = [path - mean for path in paths], centroids - mean
    near = np.stack([cosine(path, centroids) for path in paths])
    return near[:, :1] - near[:, 1:2] if measure == "Difference" else near


@dataclass(frozen=True, eq=False)
class Shift:
    """What two contexts do to one word, at the last site unless it says otherwise.

    near (text, group): the cosines; lean (text): to the first group minus to the second; gap = lean
    of the first text minus lean of the second; own (site): the cosine between the word in the two
    texts; centred_gap: the same from centred cosines; as_far of n_splits ways to deal the anchors
    into two groups of these sizes put the texts at least as far apart; verdict: "apart", "chance"
    or "still".
    """

    near: np.ndarray
    lean: np.ndarray
    gap: float
    own: np.ndarray
    centred_gap: float
    as_far: int
    n_splits: int
    verdict: str


def shift(paths: Sequence[np.ndarray], anchors: Anchors, around: Sequence[np.ndarray]) -> Shift:
    """Whether a word in two texts, paths of (site, d_model), is drawn to different ones of two
    groups of anchors."""
    near = pulls(paths, anchors, around, "Cosine")[..., -1]
    lean = near[:, 0] - near[:, 1]
    gap = float(lean[0] - lean[1])
    centred = pulls(paths, anchors, around, "Centred")[..., -1]
    gaps = _gaps_of_splits([path[-1] for path in paths], anchors)
    as_far = int((np.abs(gaps) >= abs(gap) - 1e-9).sum())
    own = cosine(*paths)
    if 1 - own[-1] < STILL or abs(gap) < STILL:
        verdict = "still"
    else:
        verdict = (
            "apart" if as_far <= max(1, CLEAR * len(gaps)) and len(gaps) >= 1 / CLEAR else "chance"
        )
    centred_gap = float((centred[0, 0] - centred[0, 1]) - (centred[1, 0] - centred[1, 1]))
    return Shift(near, lean, gap, own, centred_gap, as_far, len(gaps), verdict)


def _gaps_of_splits(lasts: Sequence[np.ndarray], anchors: Anchors) -> np.ndarray:
    """The gap for every way to deal the anchors' words into groups of the same sizes; mirror images
    count once."""
    rows, sizes = anchors.vectors[:, -1], [len(group) for group in anchors.words]
    everyone, found = frozenset(range(len(rows))), []
    for chosen in combinations(range(len(rows)), sizes[0]):
        if sizes[0] == sizes[1] and 0 not in chosen:
            continue
        one, other = rows[list(chosen)].mean(0), rows[sorted(everyone - {*chosen})].mean(0)
        lean = [cosine(last, one) - cosine(last, other) for last in lasts]
        found.append(lean[0] - lean[1])
    return np.array(found)
