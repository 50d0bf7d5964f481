"""One matrix out of many as it is on screen: which summary, its rows and columns under the quiet
switch, and the row that is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from explorer.analysis import attention, head_naming, summaries
from explorer.analysis.terminology import mask_reason
from explorer.components import matrix
from explorer.components.figure_caption import Picture
from explorer.layout import controls
from explorer.layout.controls import Subject
from explorer.state import cache, models, url_state
from explorer.text.summaries import MARKED, MEANING, RULE, TOGETHER, TOO_LONG, left_out, title

# As on the Attention page, of whose heads one may be without its own sinks; a sum has none of its
# own.
KEPT = {"All": "All tokens", "Quiet": "No shared sinks", "No specials": "No special tokens"}


@dataclass(frozen=True, eq=False)
class Summary:
    """A summary of an attention. layer and head: of which, None for all. values (query, key), 0 in
    rows that are not computed; `whole` where all are. shown: the matrix as it is drawn. token: the
    query that is read. parted: where weights and what is written disagree, None where the model
    does not show its values."""

    on: Subject
    what: str
    layer: int | None
    head: int | None
    values: Any
    whole: bool
    shown: attention.MatrixView
    token: int
    parted: summaries.Disagreements | None

    @property
    def row(self) -> int:
        """The row of the picture that is read."""
        return self.shown.row_of(self.token)

    @property
    def tokens(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The tokens of the picture's rows and of its columns."""
        rows, keys = self.shown.row_tokens, self.shown.key_tokens
        return tuple(first for first, _ in rows), tuple(first for first, _ in keys)

    @property
    def high(self) -> float:
        """The upper end of its colour scale."""
        return summaries.scale_maximum(self.shown.matrix, self.what)

    @property
    def drawn(self) -> Any:
        """The matrix (row, column) with NaN where looking is not allowed."""
        return summaries.mask_values(self.shown.matrix, self.shown.allowed)

    @property
    def note(self) -> str:
        """What is left out, "" for nothing."""
        hidden = self.shown.hidden
        if hidden is None:
            return ""
        rows, _ = self.tokens
        if not self.whole:
            rows, hidden = (self.token,), hidden[[self.row]]
        share = summaries.mean_share(hidden, self.values[list(rows)].sum(axis=1))
        return left_out(self.shown.left_out, share)

    @property
    def sheet(self) -> matrix.MatrixSheet:
        """What the rows and columns of the picture are."""
        axes = self.shown.axes
        marks = summaries.disagreement_cells(self.parted, self.layer, self.head)
        return matrix.MatrixSheet(
            axes.rows,
            axes.keys,
            axes.special,
            axes.sides,
            places=(axes.row_places, axes.key_places),
            marks=self.shown.cells(marks) if self.what in MARKED else (),
            missing=mask_reason(self.shown.allowed),
        )

    def picture(self) -> Picture:
        """How the picture is called."""
        lines = [MEANING[self.what]]
        if self.what == "Values":
            lines.append(TOGETHER)
        if self.what in MARKED:
            lines.append(f"Marked: cells with {RULE}.")
        at = "" if self.layer is None else f"L{self.layer}"
        at += "" if self.head is None else f"H{self.head}"
        made = self.on.picture(
            title(self.what, self.layer, self.head),
            *lines,
            *filter(None, [self.note]),
            file=self.what.lower(),
            what=(self.what, self.layer, self.head, st.session_state.att_keep),
        )
        left = st.session_state.att_keep.lower().replace(" ", "-")
        parts = (made.file, at, left if self.shown.hidden is not None else "")
        return replace(made, file="-".join(filter(None, parts)))


def summary(on: Subject, what: str, layer: int | None, head: int | None) -> Summary | None:
    """The summary on screen; None, with the reason, where it takes too long."""
    n = len(on.axes.rows)
    row, everything = summaries.flow_work(on.attention, layer)
    if what == "Flow" and row > summaries.MAX_ROW_WORK:
        st.info(TOO_LONG.format(n))
        return None
    parted = disagreements(on)
    whole = what != "Flow" or everything <= summaries.MAX_TOTAL_WORK
    at = (what, layer, head)
    if whole:
        values = on.kept(("summary", *at), lambda: computed(on, *at))
        shown = looked_at(on, values)
        token = read(on, shown, parted, layer, head)
    else:
        token = read(on, looked_at(on, mean(on)), parted, layer, head)
        with st.spinner("Finding the flow of every token …"):
            values = on.kept(
                ("summary", *at, token),
                lambda: summaries.single_row_flow(on.attention, token, layer),
            )
        shown = looked_at(on, values)
    return Summary(on, what, layer, head, values, whole, shown, token, parted)


def computed(on: Subject, what: str, layer: int | None, head: int | None) -> Any:
    """The matrix of a summary."""
    if what == "Values":
        w_o = cache.outputs(on.recording)[on.attention.name][0]
        return summaries.norms(on.attention, w_o, layer, head)
    if what == "Flow":
        return summaries.flow(on.attention, range(on.attention.pattern.shape[2]), layer)
    made = {"Mean": summaries.mean, "Max": summaries.largest, "Rollout": summaries.rollout}
    return made[what](on.attention, layer)


def mean(on: Subject) -> Any:
    """The mean over all heads and layers."""
    return on.kept(("summary", "Mean", None, None), lambda: summaries.mean(on.attention))


def looked_at(on: Subject, values: Any) -> attention.MatrixView:
    """A matrix (query, key) without the tokens that the switch leaves out."""
    kept = st.session_state.att_keep
    quiet = on.kept(("crowded",), lambda: head_naming.shared_sinks(on.recording, on.attention))
    return attention.matrix_view(values, on.attention.allowed, on.axes, None, kept, False, quiet)


def read(
    on: Subject,
    shown: attention.MatrixView,
    parted: summaries.Disagreements | None,
    layer: int | None,
    head: int | None,
) -> int:
    """The query whose row is read: the one chosen; of one head a row that is marked, or else the
    word that the first page opens on, or one that tells, the same for every summary; always one
    that is on screen."""
    asked = url_state.whole_number("token", len(on.axes.rows))
    marked = summaries.disagreement_cells(parted, layer, head) if head is not None else []
    telling = summaries.default_row(mean(on), on.axes.special, not on.across)
    first = controls.opening_word(on.recording, on.attention)
    for token in (asked, *(query for query, _ in marked), first, telling):
        if token is not None and shown.row_of(token) >= 0:
            return token
    return shown.row_tokens[0][0]


def disagreements(on: Subject) -> summaries.Disagreements | None:
    """Where weights and what is written disagree; None where the model does not show its values."""
    if not models.shows_writes(on.recording):
        return None
    w_o = cache.outputs(on.recording)[on.attention.name][0]
    return on.kept(("disagreements",), lambda: summaries.disagreements(on.attention, w_o))
