"""Two runs side by side: two models, or two sentences, or before and after."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import comparison
from explorer.layout import current_recording
from explorer.layout.controls import pick
from explorer.state import event_log, url_state
from explorer.text.comparison import DISTANCE, SAME_ATTENTION, beyond, refusal, sentence
from explorer.text.markdown_escape import literal
from explorer.views.compare import answers, heads, run_selection, vectors
from explorer.views.compare.comparison_state import Both, both
from models.edits import MeanHead, ZeroHead
from models.recording import NotFinite

VIEWS = {
    "Heads": "Heads",
    "Answers": "Predictions",
    "Nearest": "Nearest heads",
    "Vectors": "Vectors",
}
QUESTION = (
    "Two models, or two sentences, or before and after: what do they say, and which heads differ? "
    "Two runs, "
    "A and B, are brought onto the same pieces of text. Then every head of one can be laid beside "
    "every head of the other."
)


@event_log.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would
    keep for every visitor."""
    state = st.session_state
    if "wanted_model" in state or (model, text) != (state.model, state.text):
        st.rerun()  # an example has put others into the fields above, which only a whole run draws
    for what in ("pair shown", "sides shown"):  # until they are shown again
        state.pop(what, None)
    top, chosen = st.container(), st.container(key="after-sides")  # on a phone behind the grids
    try:
        with chosen:
            asked = run_selection.asked(model, text)
            on = both(*asked)
    except ValueError as error:
        why = (
            "The numbers exceed single precision, so there is no run to compare."
            if isinstance(error, NotFinite)
            else ""
        )
        st.error(f"These cannot be compared: {literal(str(error).rstrip('.'))}. {why}")
        url_state.write()
        return
    with chosen:
        answers.facing(on)
    if refused := refusal(*on.units):
        st.info(f"{refused} Choose another sentence, or other kinds of attention.")
    else:
        state["sides shown"] = asked
        compared(on, top)
    url_state.write()


def compared(on: Both, top) -> None:
    """What differs most, as the headline on `top`, and the view below the controls."""
    view = url_state.one_of("other_view", tuple(VIEWS))
    near = on.near if on.paired is None else ()
    with top:
        headline = literal(sentence(on.found, on.paired, near))
        st.subheader(headline, anchor=False, help=f"{QUESTION} {DISTANCE}")
        if more := beyond(on.paired, near):
            st.caption(more)
        ablated = any(
            isinstance(edit, (ZeroHead, MeanHead)) for edit in (*on.one.edits, *on.other.edits)
        )
        if ablated and on.paired is not None and comparison.all_same(on.paired):
            st.caption(SAME_ATTENTION)
    with st.container():
        toolbar(view)
        if view == "Heads":
            heads.grids(on)
    if view == "Answers":
        answers.show(on)
    elif view == "Vectors":
        vectors.show(on)
    elif view == "Heads":
        heads.opened(on, heads.chosen_pair(on, by_nearest=False))
        if on.paired is not None:
            heads.changes(on)
    else:
        pair = heads.chosen_pair(on, by_nearest=True)
        heads.every_pair(on)
        heads.opened(on, pair, on.near[comparison.head_number(pair[0], on.distances.shape_a)])
    heads.units_told(on)


def toolbar(view: str) -> None:
    """What is looked at, and in which tone."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        pick("View", VIEWS, "other_view", bare=True)
        if view == "Heads":
            url_state.one_of("other_tone", heads.TONES)
            pick(
                "Tone",
                heads.TONES,
                "other_tone",
                help="Log shows three powers of ten below 1. The difference stays linear.",
                bare=True,
            )


def compare() -> None:
    """The tab Compare: the text is recorded, and the rest is drawn from its names."""
    with st.spinner("Loading the model …"):
        shown = current_recording.current_run()
    explore(shown.model, st.session_state.text)
