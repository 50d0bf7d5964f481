"""The first minute: the strongest finding as a headline, and what else is worth a look, each a step
to head and word."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.attention import HeadView
from explorer.analysis.findings import CROWD, Finding, select_findings
from explorer.layout import controls, navigation
from explorer.layout.current_recording import take_text
from explorer.text import findings, glossary
from explorer.text.attention import read_as
from explorer.views.attention.page_state import AttentionState
from models.example_texts import DEFAULT_TEXT

MOST = 5


def show(on: AttentionState, view: HeadView) -> None:
    """The headline, which says what is on screen, and the buttons under it, the strongest finding's
    first. Of a text without words it says nothing."""
    found = controls.recording_findings(on.recording)
    chosen = select_findings(found, MOST)
    if not chosen:
        return
    # With a head or a word that the reader chose the headline is about that.
    asked = any(st.session_state[name] for name in ("layer", "token", "source"))
    one = seen(found, view) if asked else chosen[0]
    title(on, one, headline(one) if one else of_head(on, view))
    st.caption(f"{read_as(st.session_state.view)} Worth a look:")
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="worth"):
        for at, one in enumerate(chosen):
            button(at, one)


def title(on: AttentionState, one: Finding | None, said: str) -> None:
    """The headline, and beside it a press that tests it where a word offers itself, and the
    Tour."""
    text = on.source.text
    test = findings.question(one) if one else ""
    new = text == DEFAULT_TEXT and not st.session_state.get("toured")
    with row() if test or new else nullcontext():
        why = f"{findings.evidence(one)}\n\n" if one else ""
        words = glossary.explained(f"{said} {why}", "head")
        st.title(said, anchor=False, help=f"{why}{words}", width="content")
        if one and test:
            offer_test(test, one, text)
        if new:
            offer_tour()


def row() -> DeltaGenerator:
    """Room for the headline and what stands at its side."""
    return st.container(
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
        key="headline",
    )


def headline(one: Finding) -> str:
    """A finding as a headline: of the crowd the most alone."""
    return findings.short(one) if one.kind == CROWD else findings.headline(one)


def seen(found: Sequence[Finding], view: HeadView) -> Finding | None:
    """The finding that is on screen: of the head shown and of the word held."""
    head, (row, _) = view.head, view.held
    return next(
        (
            one
            for one in found
            if (one.page, one.attention, one.shown or one.at)
            == ("attention", view.attention, (head.layer, head.head))
            and one.query == (-1 if row is None else row)
        ),
        None,
    )


def of_head(on: AttentionState, view: HeadView) -> str:
    """A headline for a head of which there is no finding: what the held word looks at most, or the
    head's name."""
    head, row = view.head, view.held[0]
    if row is None:
        return findings.named(head)
    weights = on.attention.pattern[head.layer, head.head, row]
    best = int(weights.argmax())
    return findings.row(head, on.axes.rows[row], on.axes.keys[best], float(weights[best]))


def offer_test(test: str, one: Finding, text: str) -> None:
    """A word to change, which would show whether a finding moves."""
    pressed = st.button(
        test,
        key="retype",
        type="tertiary",
        icon=":material/edit:",
        on_click=retype,
        args=(text, one),
    )
    if pressed:
        st.rerun()  # the whole page: the text stands above it


def offer_tour() -> None:
    """The Tour, offered quietly: until it was taken in this visit, or the reader has a text of
    their own."""
    if st.button("New here? Take the tour", key="take tour", type="tertiary"):
        navigation.go("tour", {})


def button(at: int, one: Finding) -> None:
    """A step to a finding."""
    elsewhere = one.page != "attention"
    pressed = st.button(
        findings.short(one),
        key=f"worth {at}",
        help=findings.headline(one) + ". " + findings.evidence(one),
        on_click=controls.open_finding,
        args=(one,),
        icon=":material/arrow_outward:" if elsewhere else None,
    )
    if pressed and elsewhere:
        navigation.go(one.page, dict(one.address))


def retype(text: str, one: Finding) -> None:
    """Change the one word, and stay at the finding's head and word."""
    controls.open_finding(one)
    take_text(text.replace(*one.retype, 1))
    for name, value in one.address:
        st.session_state[name] = value
