"""The strongest finding as a headline, a word to change that tests it, and the next finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.analysis.attention import HeadView
from explorer.analysis.findings import (
    ALIGNED,
    CROWD,
    LINK,
    NEAR_LINK,
    Finding,
    select_findings,
)
from explorer.layout import controls, navigation
from explorer.layout.current_recording import take_text
from explorer.panels import attention as attention_panels
from explorer.text import findings, glossary, templates
from explorer.text.attention import place
from explorer.text.markdown_escape import literal
from explorer.views.attention.page_state import AttentionState
from models.example_texts import DEFAULT_TEXT

TERMS = ("head", "layer", "weight", "query", "key")  # explained beside the headline


def show(on: AttentionState, view: HeadView) -> None:
    """The headline, which says what is on screen, and below it the head and what uniform attention
    would give. Of a text without words it says nothing."""
    one = current(on, view)
    if one is None and not select_findings(attention_panels.leading_findings(on.recording)):
        return
    with st.container(
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
        key="headline",
    ):
        with st.container(gap="xxsmall", width="stretch", key="finding"):
            title = headline(one) if one else of_head(on, view)
            why = f"{findings.evidence(one)}\n\n" if one else ""
            words = glossary.explained(f"{title} {why}", *TERMS)
            st.title(title, anchor=False, help=f"{why}{words}", width="content")
            st.markdown(place(view, len(on.heads)) + of_tokens(on, one) + before_change(on, view))
        text = on.source.text
        if one and (test := findings.question(one)):
            offer_test(test, one, on)
        if text == DEFAULT_TEXT and not st.session_state.get("toured"):
            offer_tour()


def of_tokens(on: AttentionState, one: Finding | None) -> str:
    """The weight between the tokens of a link, which the picture shows, where that of its whole
    words is another; "" where it is the same."""
    if one is None or one.kind not in (LINK, NEAR_LINK, ALIGNED):
        return ""
    query, key = one.query, one.keys[0]
    weight = f"{on.attention.pattern[one.layer, one.head, query, key]:.2f}"
    if weight == f"{one.value:.2f}":
        return ""
    row, column = literal(on.axes.rows[query]), literal(on.axes.keys[key])
    sentences = templates.sentences("heads", "head")
    return " " + sentences("tokens", row=row, column=column, weight=weight)


@dataclass(frozen=True)
class ChangedWord:
    """A text after a word of it was changed, and the link that was on screen: its finding, words
    (query, key) and weight."""

    text: str
    finding: Finding
    words: tuple[str, ...]
    weight: float


def before_change(on: AttentionState, view: HeadView) -> str:
    """The weight of a link before a word was changed, and now; "" for any other text and head, and
    where the words of the link stand elsewhere."""
    changed = st.session_state.get("changed word")
    if not isinstance(changed, ChangedWord) or changed.text != on.source.text:
        return ""
    one = changed.finding
    row, key = one.query, one.keys[0]
    at = (on.attention.name, view.head.layer, view.head.head)
    now = (*on.axes.rows[row : row + 1], *on.axes.keys[key : key + 1])
    if at != (one.attention, one.layer, one.head) or now != changed.words:
        return ""
    words, (old, new) = templates.sentences("heads", "head"), map(literal, one.retype)
    weights = {"before": f"{changed.weight:.2f}", "after": f"{_weight(on, one):.2f}"}
    row_name, key_name = map(literal, now)
    return " " + words("changed", old=old, new=new, row=row_name, key=key_name, **weights)


def _weight(on: AttentionState, one: Finding) -> float:
    return float(on.attention.pattern[one.layer, one.head, one.query, one.keys[0]])


def current(on: AttentionState, view: HeadView) -> Finding | None:
    """The finding on screen: the strongest one, until the reader chooses a head or a word."""
    every = attention_panels.leading_findings(on.recording)
    if any(st.session_state[name] for name in ("layer", "token", "source")):
        return seen(every, view)
    return next(iter(select_findings(every)), None)


def headline(one: Finding) -> str:
    """A finding as a headline: of the crowd the most alone."""
    return findings.crowd(one).partition("; ")[0] if one.kind == CROWD else findings.statement(one)


def seen(every: Sequence[Finding], view: HeadView) -> Finding | None:
    """The finding that is on screen: of the head shown and of the word held."""
    head, (row, _) = view.head, view.tokens
    return next(
        (
            one
            for one in every
            if (one.page, one.attention, one.example_head or one.at)
            == ("attention", view.attention, (head.layer, head.head))
            and one.query == (-1 if row is None else row)
        ),
        None,
    )


def of_head(on: AttentionState, view: HeadView) -> str:
    """A headline for a head of which there is no finding: the key that gets most from the selected
    word, or the head's name."""
    head, row = view.head, view.tokens[0]
    if row is None:
        return findings.named(head)
    weights = on.attention.pattern[head.layer, head.head, row]
    best = int(weights.argmax())
    return findings.row(on.axes.rows[row], on.axes.keys[best], float(weights[best]))


def offer_test(test: str, one: Finding, on: AttentionState) -> None:
    """A word to change, which would show whether a finding moves."""
    old, new = map(findings.marked, one.retype)
    words = on.axes.rows[one.query], on.axes.keys[one.keys[0]]
    pressed = st.button(
        f"Change {old} to {new}",
        key="retype",
        icon=":material/edit:",
        help=test,
        on_click=retype,
        args=(on.source.text, one, words, _weight(on, one)),
    )
    if pressed:
        st.rerun()  # the whole page: the text stands above it


def offer_tour() -> None:
    """The Tour: until it was taken in this visit, or the reader has a text of their own."""
    if st.button("New here? Tour, 3 min", key="take tour", type="primary"):
        navigation.go("tour", {})


def offer_next(on: AttentionState, view: HeadView) -> None:
    """The step to the finding after the one on screen."""
    chosen = select_findings(attention_panels.leading_findings(on.recording))
    one = current(on, view)
    places = [at for at, each in enumerate(chosen) if each == one]
    following = chosen[(places[0] + 1) % len(chosen)] if places else next(iter(chosen), None)
    if following is None or following == one:
        return
    elsewhere = following.page != "attention"
    pressed = st.button(
        templates.sentences("heads", "head")("next"),
        key="next finding",
        help=findings.headline(following) + ". " + findings.evidence(following),
        on_click=controls.open_finding,
        args=(following,),
        type="tertiary",
        icon=":material/arrow_outward:" if elsewhere else ":material/chevron_right:",
        icon_position="right",
    )
    if pressed and elsewhere:
        navigation.go(following.page, dict(following.address))


def retype(text: str, one: Finding, words: tuple[str, str], weight: float) -> None:
    """Change the one word, and stay at the finding's head and word; note its weight before."""
    controls.open_finding(one)
    changed = text.replace(*one.retype, 1)
    take_text(changed)
    st.session_state["changed word"] = ChangedWord(changed, one, words, weight)
    for name, value in one.address:
        st.session_state[name] = value
