"""Results of the heads over the sentences that were read: their attention by distance, the scores
of their patterns ("habits"), and the sentences where one of them scores highest."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.analysis import corpus
from explorer.components import matrix
from explorer.components.figure_caption import Picture
from explorer.layout import export_menu
from explorer.layout.output import data_table, offer_csv
from explorer.state import url_state
from explorer.text.markdown_escape import literal

MOST_SHOWN = 20
WHERE = {
    corpus.WITHIN: "The share of attention by distance, previous (−) or later (+), and to special "
    f"tokens. The last columns are farther than {corpus.REACH} tokens",
    corpus.ACROSS: "The share of a target word’s attention by relative position in the source, "
    "before (−) or after (+) its own, and to special tokens",
}
LARGEST = {
    corpus.WITHIN: f"the largest weight on a word at least {corpus.FAR} tokens away",
    corpus.ACROSS: "the largest weight of a target word on a source word",
}


def results(found: Sequence[corpus.Sentence], about: tuple[str, ...], file: str, name: str) -> None:
    """Everything below the field. `file` begins the names of files, `name` names the picture."""
    made, kind = corpus.share_spread(found), found[0].kind
    layers, heads, _ = made.mean.shape
    by = url_state.one_of("many_by", kind.measures)
    at = _chosen(found, by, layers, heads)
    left, right = st.columns([1.2, 1], gap="large")
    with left:
        st.subheader("Where each head’s attention goes", anchor=False)
        _map(made, kind.places, Picture(about[0], about[1:], f"{file}-places", name))
        st.caption(f"{WHERE[kind]}. Mean of {len(found)} sentences. Select a row to open its head.")
        offer_csv(corpus.share_columns(found), about, f"{file}-places", "Distances as CSV")
    with right:
        _head(found, at, by, about, file)


def _chosen(found: Sequence[corpus.Sentence], by: str, layers: int, heads: int) -> tuple[int, int]:
    layer, head = url_state.whole_number("layer", layers), url_state.whole_number("head", heads)
    return corpus.strongest_head(found, by) if layer is None or head is None else (layer, head)


def _map(made: corpus.Spread, names: tuple[str, ...], picture: Picture) -> None:
    layers, heads, places = made.mean.shape
    values = made.mean.reshape(-1, places)
    rows = [f"L{layer} H{head}" for layer in range(layers) for head in range(heads)]
    data = matrix.panels(
        [matrix.MatrixPanel("", values, 0.0, float(values.max()))],
        matrix.MatrixSheet(rows, names, [False] * places, ("head", "place")),
        picture,
    )
    matrix.show(data, "many map", _take_row)
    st.session_state["many heads"] = heads


def _take_row() -> None:
    row = st.session_state["many map"].get("row")
    if row is not None:
        layer, head = divmod(int(row), st.session_state["many heads"])
        st.session_state.layer, st.session_state.head = str(layer), str(head)


def _head(
    found: Sequence[corpus.Sentence],
    at: tuple[int, int],
    by: str,
    about: tuple[str, ...],
    file: str,
) -> None:
    """One head: its pattern scores with their spread, and the sentences with the largest ones."""
    st.subheader(f"Layer {at[0]}, head {at[1]}", anchor=False)
    kind = found[0].kind
    spreads = {name: corpus.habit_spread(found, name) for name in kind.measures}
    st.dataframe(
        {
            "pattern": list(spreads),
            "mean score": [float(each.mean[at]) for each in spreads.values()],
            "± sd": [float(each.sd[at]) for each in spreads.values()],
            "sentences": [int(each.n[at]) for each in spreads.values()],
        },
        hide_index=True,
        column_config=dict.fromkeys(
            ("mean score", "± sd"), st.column_config.NumberColumn(format="%.3f")
        ),
        alt=f"Pattern scores of layer {at[0]}, head {at[1]} over {len(found)} sentences",
    )
    st.caption(
        "Score: mean attention along the pattern, in the sentences where it can occur. "
        f"{kind.look.capitalize()}: {LARGEST[kind]}."
    )
    offer_csv(
        corpus.habit_columns(found), about, f"{file}-patterns", "Patterns of all heads as CSV"
    )
    st.segmented_control(
        "Sort sentences by",
        kind.measures,
        key="many_by",
        required=True,
        persist_state="session",
    )
    told = corpus.strongest_sentences(found, by, at, MOST_SHOWN)
    if told:
        best, value = told[0]
        look = best.looks[at[0]][at[1]]
        who = f", {literal(look.query)} → {literal(look.key)}" if by == kind.look else ""
        st.markdown(f"Largest score: “{literal(best.text[:120])}” ({value:.2f}{who}).")
    columns = corpus.sentence_columns(found, by, at, MOST_SHOWN)
    data_table(columns, f"Sentences by the score “{by}” of layer {at[0]}, head {at[1]}")
    export_menu.offer_more_code((), f"most = corpus.sentence_columns(found, {by!r}, {at})")
    whole = corpus.sentence_columns(found, by, at)
    offer_csv(whole, about, f"{file}-L{at[0]}H{at[1]}-{by.replace(' ', '-')}", "Sentences as CSV")


def unread(found: Sequence[object]) -> None:
    """Show how many sentences could not be read, and why the first could not."""
    refused = [each for each in found if isinstance(each, str)]
    if refused:
        st.warning(f"{len(refused)} cannot be read: {literal(refused[0])}.")
