"""A translation, step by step: source and output as chips with lines between them, the alignment
matrix, all heads small; the list of a beam search, and how it grew. Stepping and playing stay in
the browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture


@dataclass(frozen=True)
class Texts:
    """The two sides of a translation. Row i reads reads[i] and says says[i]; *_words: which word
    each token belongs to."""

    source: Sequence[str]
    source_words: Sequence[int]
    reads: Sequence[str]
    says: Sequence[str]
    says_words: Sequence[int]


@dataclass(frozen=True, eq=False)
class TokenOptions:
    """What was said and what else could have been: `said` has logit, log_sum, logprob, rank and
    top_logprobs (step, ...); pieces: the produced tokens as the vocabulary has them, and tops the
    likeliest ones, (step, place), among n_vocab. forced: True where the reader typed the output."""

    said: Any
    pieces: Sequence[str]
    tops: Sequence[Sequence[str]]
    n_vocab: int
    forced: bool


@dataclass(frozen=True, eq=False)
class Views:
    """What the cross-attention can be seen as: names, their titles, and `small` (view, rows,
    columns) of each in that order; matrix (row, key) of the one called `name`; n_head: of a layer;
    spare: bytes of that matrix beyond one a cell."""

    names: Sequence[str]
    titles: Sequence[str]
    small: np.ndarray
    name: str
    matrix: np.ndarray
    n_head: int
    spare: int = codec.SPARE


def steps(
    texts: Texts, choices: TokenOptions, views: Views, step: int, picture: Picture, text: str
) -> bytes:
    """What the browser needs to step through a translation. step from 0 is where to begin.
    `picture` names it without the step, `text` the translation."""
    cells, peak, _ = codec.thumbnails(views.small[None])
    said = choices.said
    header = {
        "kind": "steps",
        "text": text,
        "step": step,
        **{name: list(each) for name, each in vars(texts).items()},
        "pieces": list(choices.pieces),
        "tops": [list(row) for row in choices.tops],
        "n_vocab": choices.n_vocab,
        "forced": choices.forced,
        "names": list(views.names),
        "titles": list(views.titles),
        "name": views.name,
        "n_head": views.n_head,
        "rows": cells.shape[2],
        "columns": cells.shape[3],
        **picture.plain(),
    }
    blocks = {
        "cells": cells[0],
        "peak": peak[0],
        "logit": said.logit.astype(np.float32),
        "log_sum": said.log_sum.astype(np.float32),
        "logprob": said.logprob.astype(np.float32),
        "rank": said.rank.astype(np.uint32),
        "top_logprobs": said.top_logprobs.astype(np.float32),
    }
    return codec.encode(header, blocks | codec.fine(views.matrix[: len(texts.says)], views.spare))


def beams(
    held: Sequence, texts: Sequence[str], penalties: Sequence[float], chosen: int, token: str
) -> bytes:
    """The list of hypotheses, best first, with `texts` and what each one's sum is divided by;
    chosen (from 0) is the one shown."""
    listed = [
        {
            "text": text,
            "n": len(beam.ids),
            "sum": sum(beam.logprobs),
            "by": by,
            "score": beam.score,
            "done": beam.done,
        }
        for beam, text, by in zip(held, texts, penalties)
    ]
    return codec.encode({"kind": "beams", "token": token, "beams": listed, "chosen": chosen}, {})


def tree(
    held: Sequence[Sequence], labels: Sequence[Sequence[str]], start: str, chosen: int, token: str
) -> bytes:
    """How a beam search grew from the token `start`: for each step its hypotheses, best first, each
    with the label of its newest token. chosen: place in the last step."""
    rows = []
    for at, (beams_now, named) in enumerate(zip(held, labels)):
        before = held[at - 1] if at else ()
        rows.append(
            [
                {
                    "label": label,
                    "parent": beam.parent,
                    "p": float(np.exp(beam.logprobs[-1])),
                    "score": beam.score,
                    "done": beam.done,
                    "carried": at > 0 and before[beam.parent].done,  # ended before, kept as it was
                }
                for beam, label in zip(beams_now, named)
            ]
        )
    header = {"kind": "tree", "token": token, "start": start, "steps": rows, "chosen": chosen}
    return codec.encode(header, {})


_mount = st.components.v2.component(
    "headlight.translation",
    html='<div class="translation"></div>',
    js=loader("translation"),
)


def show(
    data: bytes,
    key: str,
    on_step: Callable[[], None],
    on_view: Callable[[], None],
    on_beam: Callable[[], None],
) -> None:
    """Draw what `steps`, `beams` or `tree` made. When its callback runs, `st.session_state[key]`
    has "step" (from 0), "view" (a name) or "beam" (from 0)."""
    _mount(
        data=data, key=key, on_step_change=on_step, on_view_change=on_view, on_beam_change=on_beam
    )
