"""The panel on a word between its neighbours: which words of its own sentence it comes near to from
layer to layer, and which it leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from explorer.analysis import recorded_findings, residual
from explorer.analysis.embeddings import cosines as cosines_of
from explorer.analysis.figures import Chart, Cloud, Frame, Plane, Series
from explorer.analysis.formatting import fixed
from explorer.analysis.word_classes import CONTENT, classes, is_word, nouns
from explorer.panels import spec
from explorer.panels.choice import Choice
from explorer.panels.selection import select
from explorer.panels.spec import Panel
from explorer.text.templates import sentences
from models.example_texts import SENSES
from models.recording import Recording, Stream
from models.run import Run

CONCEPT = "neighbours"
FEWEST = 3  # words: one that moves, and two to move between


@dataclass(frozen=True, eq=False)
class Move:
    """A word among the words of its sentence: their places, its own among them, by their states
    after the embedding and after each layer, with the words' common part at each state taken away.

    cosines (state, word, word). toward, away: the places in `words` of the one that it comes
    nearest to and of the one that it leaves most, from the first state to the last, among the words
    of content where there are two others."""

    words: np.ndarray
    at: int
    cosines: np.ndarray
    toward: int
    away: int

    @property
    def path(self) -> np.ndarray:
        """Place of each word at each state, (word, state, 2): its cosine with the word that is
        left, and with the one that is come near to."""
        return self.cosines[:, :, [self.away, self.toward]].swapaxes(0, 1)


def move_of(stream: Stream, token: int) -> Move | None:
    """The move of a word of a stream, of the next one for a token that is no word and of the last
    one behind it; None among too few and for a stream that was not recorded."""
    return next(_moves(stream, (token,)), None)


def _moves(stream: Stream, tokens: Iterable[int]) -> Iterator[Move]:
    """The moves of some tokens as `move_of`; none where that is None."""
    places = np.flatnonzero(np.array([is_word(each) for each in stream.tokens]) & ~stream.special)
    if len(places) < FEWEST or not stream.sites:
        return
    whole = residual.whole_layers(stream)
    states = [each for each in whole.sites if not each.endswith(".wrote")]
    vectors = np.stack([residual.site_vectors(whole, each)[places] for each in states])
    vectors = vectors - vectors.mean(axis=1, keepdims=True)
    cosines = np.stack([cosines_of(each) for each in vectors])
    content = np.flatnonzero(np.array(classes(stream.tokens))[places] == CONTENT)
    for token in tokens:
        at = min(int(np.searchsorted(places, token)), len(places) - 1)
        others = content[content != at]
        if len(others) < FEWEST - 1:
            others = np.delete(np.arange(len(places)), at)
        change = cosines[-1, at, others] - cosines[0, at, others]
        yield Move(places, at, cosines, *(int(others[f()]) for f in (change.argmax, change.argmin)))


def opening_word(recording: Recording, stream: Stream) -> int:
    """The token that the panel opens on: the word whose neighbours change most, of those with
    several senses (models/example_texts.py) where the text has one, else of the nouns, else of the
    words of content, else of all."""
    labels = stream.tokens
    words = np.array([is_word(each) for each in labels]) & ~stream.special
    content = words & (np.array(classes(labels)) == CONTENT)
    ambiguous = content & np.array([each.strip().casefold() in SENSES for each in labels])
    noun = content & np.array(nouns(labels))
    noun &= ~np.append(noun[1:], False)  # of several in a row all but the last may be adjectives
    for candidates in (ambiguous, noun, content, words):
        if candidates.any():
            moves = _moves(stream, np.flatnonzero(candidates))
            furthest = max(moves, key=_turn, default=None)
            return int((furthest.words[furthest.at]) if furthest else np.argmax(candidates))
    return recorded_findings.first_word(recording, stream)


def _turn(move: Move) -> float:
    """By how much more a word comes near to one neighbour than to the other, from the first state
    to the last."""
    change = move.cosines[-1, move.at] - move.cosines[0, move.at]
    return float(change[move.toward] - change[move.away])


@spec.panel
def between(
    run: Run,
    token: int | None = None,
    moved: Annotated[
        int | None, Choice(of="model", name="moved", help="after how many layers the words stand")
    ] = None,
    attention: str = "",
) -> Panel:
    """A word between two others of its sentence, the one that it comes near to and the one that it
    leaves, layer by layer.

    token: the `opening_word` where None. moved: after how many layers the words stand, after all
    where None. Raises ValueError for what is not there and for fewer than three words.
    """
    selection = select(run, token=token or 0, attention=attention)
    stream = selection.recording.stream(selection.attention.query)
    if token is None:
        selection = replace(selection, query=opening_word(selection.recording, stream))
    words = sentences(CONCEPT, "between")
    move = move_of(stream, selection.query)
    if move is None:
        raise ValueError(words("few"))
    names, place = tuple(stream.tokens[at] for at in move.words), int(move.words[move.at])
    toward, away = names[move.toward], names[move.away]
    ends = move.cosines[[0, -1], move.at]
    slots = {
        **{"word": names[move.at], "token": place, "toward": toward, "away": away},
        **{
            "near": fixed(float(ends[0, move.toward])),
            "nearer": fixed(float(ends[1, move.toward])),
        },
        **{"far": fixed(float(ends[0, move.away])), "farther": fixed(float(ends[1, move.away]))},
    }
    n = len(move.cosines)
    current = n - 1 if moved is None or not 0 <= moved < n else moved
    return Panel(
        title=words("title", **slots),
        finding=words(_course(ends[:, move.toward], ends[:, move.away]), **slots),
        figures=(_plane(move, names, current), _lines(move, names)),
        table=_numbers(move, names),
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"between-neighbours-{place}",
        formulas=("added",),
        at={"layer": 0, "stream": stream.name, "token": place},
    )


def _course(toward: np.ndarray, away: np.ndarray) -> str:
    """Name of the sentence that is true of a word's cosines with both neighbours, (first and last
    state) each, in the digits that it shows."""
    scale = 10.0**2
    rise, fall = (int(np.diff(np.round(ends * scale))[0]) for ends in (toward, away))
    if rise > 0:
        return "finding" if fall < 0 else "finding_nearer"
    return "finding_farther" if fall < 0 else "finding_stays"


def _titles(n: int) -> list[str]:
    """Titles of the states."""
    words = sentences(CONCEPT, "between")
    return [words("embedding"), *(words("layer", layer=at) for at in range(n - 1))]


def _plane(move: Move, names: tuple[str, ...], current: int) -> Plane:
    """The other words by their cosines with the two neighbours, one frame for each state: these two
    themselves, at 1, are the axes."""
    words, n = sentences(CONCEPT, "between"), len(move.cosines)
    others = [at for at in range(len(names)) if at not in (move.toward, move.away)]
    return Plane(
        title=words("plane"),
        clouds=(
            Cloud(
                words("of_text"),
                tuple(names[at] for at in others),
                move.path[others],
                np.ones((len(others), n)),
                others.index(move.at),
                tuple(f"token={move.words[at]}" for at in others),
            ),
        ),
        frames=tuple(Frame(title, key=str(at)) for at, title in enumerate(_titles(n))),
        current=current,
        choice="moved",
        x_title=words("axis", word=names[move.away]),
        y_title=words("axis", word=names[move.toward]),
        apart=True,
    )


def _lines(move: Move, names: tuple[str, ...]) -> Chart:
    """The word's cosine with both neighbours at each state."""
    n = len(move.cosines)
    own = move.cosines[:, move.at]
    return Chart(
        title=sentences(CONCEPT, "between")("lines", word=names[move.at]),
        series=tuple(
            Series(
                names[at],
                np.arange(n, dtype=float),
                own[:, at],
                fixed(float(own[-1, at])),
                main=at == move.toward,
            )
            for at in (move.toward, move.away)
        ),
        ticks=tuple((float(at), title) for at, title in enumerate(_titles(n))),
        follows="moved",
    )


def _numbers(move: Move, names: tuple[str, ...]) -> dict[str, list]:
    """The word's cosine with every other word at every state."""
    states = _titles(len(move.cosines))
    others = [at for at in range(len(names)) if at != move.at]
    return {
        "state": [state for state in states for _ in others],
        "token": [int(move.words[at]) for _ in states for at in others],
        "word": [names[at] for _ in states for at in others],
        "cosine": [float(row[move.at, at]) for row in move.cosines for at in others],
    }
