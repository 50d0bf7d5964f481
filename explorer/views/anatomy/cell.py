"""The cell that is opened: which one, the matrix it is chosen in, and the way to it in short."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis import anatomy, head_naming
from explorer.analysis.attention import strongest_cell
from explorer.analysis.findings import Finding
from explorer.components import anatomy as anatomy_components
from explorer.components.figure_caption import Picture
from explorer.layout import controls, selection_bar
from explorer.layout.controls import Subject
from explorer.state import cache, url_state
from explorer.text import anatomy as anatomy_text
from explorer.text.markdown_escape import literal


@dataclass(frozen=True, eq=False)
class CellView:
    """The cell on screen, taken apart. outputs: W_O of the attention, cut by head, and its bias,
    None where the model does not give them; done: what was written, None without them too."""

    on: Subject
    head: head_naming.Head
    cell: anatomy.WeightBreakdown
    outputs: anatomy.Outputs | None
    done: anatomy.HeadOutputs | None

    @property
    def query(self) -> str:
        """What the query is called."""
        return self.on.axes.rows[self.cell.query]

    @property
    def key(self) -> str:
        """What the key is called."""
        return self.on.axes.keys[self.cell.key]

    def picture(self) -> Picture:
        """What the story is called."""
        cell, on = self.cell, self.on
        at = f"L{cell.layer}H{cell.head}"
        weight = anatomy_text.say_weight(cell.weights[cell.key])
        return Picture(
            (f"Weight {weight}: query {self.query} ({cell.query}), key {self.key} ({cell.key})"),
            on.caption(*row_rule(on), of=f", layer {cell.layer}, head {cell.head}"),
            on.file(at, f"q{cell.query}k{cell.key}"),
            on.name("story", cell.layer, cell.head, cell.query, cell.key),
        )


def choose(on: Subject) -> tuple[head_naming.Head, tuple[int, int]]:
    """The head and the cell on screen, with the selection bar: what is chosen, or else what the
    strongest finding is seen in."""
    selection_bar.take()
    attention, (layers, heads) = on.attention, on.attention.pattern.shape[:2]
    named = controls.named_heads(on.recording, attention)
    layer, head = url_state.whole_number("layer", layers), url_state.whole_number("head", heads)
    first = None
    if layer is not None and head is not None:
        shown = named[layer * heads + head]
    elif (first := controls.opening_finding(on.recording, attention)) is not None:
        shown = named[first.layer * heads + first.head]
    else:
        shown = max(named, key=head_naming.clarity)
    at = cell_of(on, shown, first)
    words = selection_bar.Words(on.axes.rows, at[0], on.axes.keys, at[1])
    selection_bar.show(words, (layers, heads), (shown.layer, shown.head))
    return shown, at


def cell_of(on: Subject, shown: head_naming.Head, first: Finding | None) -> tuple[int, int]:
    """The cell on screen: the one that is chosen, that of the strongest finding, or the largest."""
    row, column = held(on)
    if row is None and column is None and first is not None and first.query >= 0 and first.keys:
        return first.query, first.keys[0]
    if cell := asked(row, len(on.axes.keys)):
        return cell
    pattern = on.attention.pattern[shown.layer, shown.head]
    return strongest_cell(pattern, on.attention.allowed, row, column)


def held(on: Subject) -> tuple[int | None, int | None]:
    """The row or, between two texts, the column that is held on the Attention page."""
    row = url_state.whole_number("token", len(on.axes.rows))
    return row, url_state.whole_number(
        "source", len(on.axes.keys) if on.across and row is None else 0
    )


def asked(row: int | None, n_keys: int) -> tuple[int, int] | None:
    """The cell that was chosen; one that is not in the row that is held is forgotten: None."""
    query, _, key = st.session_state.anatomy_cell.partition(".")
    fits = query.isdecimal() and key.isdecimal() and len(key) < 6 and query == str(row)
    if fits and int(key) < n_keys:
        return int(query), int(key)
    st.session_state.anatomy_cell = ""
    return None


def opened(on: Subject, head: head_naming.Head, at: tuple[int, int]) -> CellView:
    """A cell of a head, taken apart."""
    cell = anatomy.cell(on.recording, on.attention, head.layer, head.head, *at)
    outputs = outputs_of(on)
    done = outputs and anatomy.head_outputs(on.recording, on.attention, head.layer, at[0], outputs)
    return CellView(on, head, cell, outputs, done)


def outputs_of(on: Subject) -> anatomy.Outputs | None:
    """W_O of the attention, cut by head, and its bias; None for a model that does not give them."""
    try:
        return cache.outputs(on.recording).get(on.attention.name)
    except (ValueError, AttributeError):
        return None


def matrix(on: Subject, head: head_naming.Head) -> str:
    """The head's matrix, a click on a cell opens it; the picture's name."""
    at = head.layer, head.head
    called = "" if head.name == head_naming.NO_PATTERN else f": **{head.name}**"
    st.markdown(f"Layer {head.layer}, head {head.head}{called}. Choose a cell.")
    what = (on.attention.name, "anatomy matrix", *at)
    token = cache.picture_name(on.recording, *what)
    data = on.kept(
        what,
        lambda: anatomy_components.matrix(
            on.attention.pattern[at],
            on.attention.allowed,
            on.axes.rows,
            on.axes.keys,
            about=f"Weights of layer {head.layer}, head {head.head}",
            sides=on.axes.sides,
            token=token,
        ),
    )
    anatomy_components.show(data, "anatomy matrix", lambda: take_cell("anatomy matrix"))
    for rule in row_rule(on):
        st.caption(rule)
    return token


def row_rule(on: Subject) -> tuple[str, ...]:
    """What a row between two texts is named after, as lines: none within one text. A target that is
    given to the model is not what it produces."""
    if on.axes.said is None:
        return ()
    if on.source.target is None:
        return (
            "Each row is named after the token it predicts. The last one has the model’s next "
            "prediction.",
        )
    return (
        (
            "Each row is named after the next target token. The last one has the model’s next "
            "prediction."
        ),
    )


def in_short(shown: CellView) -> None:
    """The weight and the whole way to it in a few lines."""
    cell, head = shown.cell, shown.head
    query, key = literal(shown.query), literal(shown.key)
    st.markdown(f"Query **{query}** ({cell.query}) gives key **{key}** ({cell.key}) the weight")
    st.markdown(f"# {anatomy_text.say_weight(cell.weights[cell.key])}")
    st.markdown("\n".join(f"1. {line}" for line in anatomy_text.in_short(cell, shown.done)))
    st.page_link(
        "../pages/attention.py",
        label=f"Layer {head.layer}, head {head.head} in Attention: Heads",
        icon=":material/grid_on:",
    )


def take_cell(key: str) -> None:
    """The cell that was chosen in a picture."""
    if cell := st.session_state[key].get("cell"):
        query, column = map(int, cell)
        st.session_state.token, st.session_state.anatomy_cell = str(query), f"{query}.{column}"
        st.session_state.source = ""
