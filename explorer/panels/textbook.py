"""The panel on a textbook figure of attention, beside what this model does on its sentence."""

from __future__ import annotations

import numpy as np

from explorer.analysis.word_classes import is_word
from explorer.figures.formatting import fixed, percent
from explorer.figures.kinds import Matrix, matrix
from explorer.panels import spec
from explorer.panels.selection import model_name
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.runtime.run import Run

CONCEPT = "textbook"
SENTENCE = "I love to eat pizza."
# What the notes say of their drawing, in words alone: each word most to itself, and of the last one
# a strong edge to the word before it. How dark these are drawn here.
OF_ITSELF, STRONG, TOP = 0.35, 0.5, 0.7


@spec.panel
def own_weight(run: Run) -> Panel:
    """Weight of each word of SENTENCE on itself in this model, beside the drawing of lecture notes
    in which each attends most to itself.

    Raises ValueError for a model without attention, and for one that splits the five words into
    other tokens.
    """
    words = sentences(CONCEPT, "own_weight")
    recording = Run(run.model, SENTENCE).recording()
    name = model_name(recording)
    if not recording.attention:
        raise ValueError(words("closed", model=name))
    attention, stream = recording.attention[0], recording.streams[0]
    places = np.flatnonzero([is_word(each) for each in stream.tokens] & ~stream.special)
    labels = tuple(stream.tokens[each].strip() for each in places)
    if [each.lower() for each in labels] != SENTENCE.lower().strip(".").split():
        raise ValueError(words("other_tokens", model=name))
    mean = attention.pattern.mean(axis=(0, 1), dtype=np.float64)
    measured = mean[np.ix_(places, places)]
    own = np.diagonal(measured)
    number, most = fixed(float(own.mean())), int(own.argmax())
    special = float(mean[np.ix_(places, np.flatnonzero(stream.special))].sum(axis=1).mean())
    n_heads = attention.pattern.shape[0] * attention.pattern.shape[1]
    marks = tuple((at, at, fixed(float(weight))) for at, weight in enumerate(own))
    grid = Matrix(
        words("measured", weight=number),
        words("measured_note", n=n_heads),
        rows=labels,
        columns=labels,
        values=matrix(measured),
        marks=marks,
        missing=words("masked"),
    )
    return Panel(
        words("title"),
        words("finding", number=number, word=labels[most], special=percent(special)),
        (grid, _drawn(labels)),
        table={words("word"): list(labels), words("weight"): own},
        details=words.lines("details"),
        caption=(words("caption"),),
        file="textbook-own-weight",
    )


def _drawn(labels: tuple[str, ...]) -> Matrix:
    """The drawing of the notes, which gives words and no numbers."""
    words, n = sentences(CONCEPT, "own_weight"), len(labels)
    values = np.full((n, n), np.nan)
    np.fill_diagonal(values, OF_ITSELF)
    values[-1, -1], values[-1, -2] = TOP, STRONG
    marks = tuple((at, at, words("most")) for at in range(n - 1))
    return Matrix(
        words("drawn"),
        words("drawn_note"),
        rows=labels,
        columns=labels,
        values=matrix(values),
        marks=(*marks, (n - 1, n - 1, words("top")), (n - 1, n - 2, words("strong"))),
        missing=words("not_described"),
    )
