"""The panel on a word between its neighbours: which words of its own sentence it comes near to from
layer to layer, and which it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from explorer.analysis import opening
from explorer.analysis.embeddings import Move, move_of
from explorer.figures.formatting import fixed
from explorer.figures.kinds import Chart, Cloud, Frame, Plane, Series
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import TOKEN, FirstAttention, select, stream_of
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.runtime.run import Run

CONCEPT = "neighbours"
MovingWord = Annotated[
    int,
    replace(
        TOKEN,
        suits=lambda run, chosen: opening.moving_word(run.recording(), stream_of(run, chosen)),
    ),
]


@spec.panel
def between(
    run: Run,
    token: MovingWord = OPENS,
    moved: Annotated[
        int | None, Choice(of="model", name="moved", help="after how many layers the words stand")
    ] = None,
    attention: FirstAttention = OPENS,
) -> Panel:
    """A word between two others of its sentence, the one that it comes near to and the one that it
    leaves, layer by layer.

    token: the word that moves most where None. moved: after how many layers the words stand, after
    all where None. Raises ValueError for what is not there and for fewer than three words.
    """
    selection = select(run, token=token, attention=attention)
    stream = selection.recording.stream(selection.attention.query)
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
