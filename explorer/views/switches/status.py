"""The edits, and the sentence on their effect."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import interventions
from explorer.layout.output import with_table
from explorer.state import cache, models, url_state
from explorer.text.interventions import (
    NO_POSITIONS,
    NOTHING_SWITCHED,
    QUESTION,
    RULE,
    TITLE,
    experiment,
    sentence,
)
from explorer.text.markdown_escape import literal
from explorer.views.switches.edit_actions import put, take_back
from explorer.views.switches.run_pair import Runs, weights
from models.edits import ZeroHead, describe

MOST_PILLS, MOST_WRONG = 16, 3


def warn(wrong: tuple[str, ...]) -> None:
    """Which of the edits that were asked for are left out, and why."""
    if wrong:
        more = [f"and {len(wrong) - MOST_WRONG} more"] if len(wrong) > MOST_WRONG else []
        st.warning(
            "These edits do not apply to this model and are left out:\n"
            + "\n".join(f"- {literal(why)}" for why in (*wrong[:MOST_WRONG], *more))
        )


def show(on: Runs) -> None:
    """What is switched, each to be taken back, and what it did."""
    if not on.edits:
        st.subheader(TITLE, anchor=False, help=QUESTION)
        st.markdown(NOTHING_SWITCHED)
        return
    if on.proposed:
        opened(on)
    elif on.error:
        listed(on)
    if on.error:
        st.error(on.error)
        return
    told = interventions.change_sentences(measured(on)) or (
        "no measured quantity changed on this text",
    )
    first, *more = map(sentence, told)
    if on.proposed:
        st.markdown(first)
        return
    st.subheader(first, anchor=False, help=RULE)
    if more:
        st.markdown(" ".join(more))
    listed(on)


def opened(on: Runs) -> None:
    """What the experiment asks that the page opens on, and the way back to no edit."""
    asks = NO_POSITIONS
    if on.link is not None:
        ablated = isinstance(on.edits[0], ZeroHead)
        asks = experiment(on.link, *weights(on, on.link), ablated)
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.subheader(asks, anchor=False, help=RULE, width="content")
        st.button(
            "Undo all edits",
            key="no edit",
            icon=":material/undo:",
            on_click=put,
            args=((),),
            help="Shows the model as it was trained. The page opens on an experiment.",
        )


def everything(on: Runs) -> None:
    """Everything that was measured, as a table."""
    if on.edits and not on.error:
        with_table(
            interventions.change_columns(measured(on)),
            on.caption("all measured quantities"),
            f"headlight-{on.model}-switches-measured",
            "All measured quantities",
        )


def measured(on: Runs) -> tuple[interventions.QuantityChange, ...]:
    """Every quantity that is measured, made once for these two runs and this token."""
    said = on.answer
    if isinstance(said, str):
        return cache.cached_for(
            on.other, ("moves",), lambda: interventions.quantity_changes(on.plain, on.other)
        )
    labels = models.labels(on.model, (said.said, said.says))
    return cache.cached_for(
        on.other,
        ("moves", on.token, bool(on.hidden), *labels),
        lambda: interventions.quantity_changes(on.plain, on.other, said, (labels[0], labels[1])),
    )


def listed(on: Runs) -> None:
    """The edits as pills, many of them in one line."""
    if not url_state.fits_address(st.session_state.edits):
        st.caption(
            "A link cannot contain this many edits. They stay in this tab, and every caption and "
            "file names them."
        )
    if len(on.edits) > MOST_PILLS:
        st.markdown(f"**Edited:** {literal(describe(on.edits))}")
        return
    names = [f"{literal(str(edit))} ✕" for edit in on.edits]
    st.session_state["switched"] = list(range(len(names)))
    st.pills(
        "Edits; press one to undo it",
        range(len(names)),
        selection_mode="multi",
        key="switched",
        wrap=True,
        format_func=names.__getitem__,
        on_change=take_back,
        args=(on.edits,),
        label_visibility="collapsed",
    )
