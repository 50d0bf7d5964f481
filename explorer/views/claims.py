"""Textbook claims, tested on this text and model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from explorer.analysis import verdicts
from explorer.analysis.verdicts import Claim, Verdict
from explorer.layout import current_recording, navigation, output
from explorer.layout.controls import bind, pick
from explorer.panels import claims
from explorer.state import event_log, places, url_state
from explorer.state.cache import Run
from explorer.text import claims as claims_text
from explorer.text import glossary
from explorer.text.markdown_escape import literal

PAUSE = 0.5  # seconds between two looks at what has been tested
SHOW = {
    "All": ("All", ""),
    "Do not hold": ("Do not hold", verdicts.FAILS),
    "Hold": ("Hold", verdicts.HOLDS),
    "Too short to tell": ("Too short", verdicts.SHORT),
    "Cannot be tested": ("Untestable", verdicts.UNTESTABLE),
}
NOTES = ("All notes", *claims_text.NOTES)
LIST_HEIGHT = 620  # pixels, as high as a panel beside it


@current_recording.tab(edited=False, claim_verdict=tuple(SHOW), claim_note=NOTES)
def tested_claims(run: Run) -> None:
    """The tab Claims."""
    st.title(
        "Textbook claims on this text and model",
        anchor=False,
        help=" ".join(
            f"**{kind.capitalize()}**: {claims_text.MEANING[kind]}" for kind in verdicts.KINDS
        ),
    )
    bar = st.container(horizontal=True, vertical_alignment="center")
    labels = {name: label for name, (label, _) in SHOW.items()}
    pick("Show", labels, "claim_verdict", bare=True, container=bar)
    with bar.popover("View"):
        st.selectbox("Claims of", NOTES, key="claim_note", persist_state="session")
    ready = claims.begin_tests(run).finished
    event_log.fragment(_draw, run_every=None if ready else PAUSE)(run, ready)


def _draw(run: Run, was_ready: bool) -> None:
    """The list and the selected claim. They are drawn again until every claim is tested."""
    tests = claims.begin_tests(run)
    ready, results = tests.finished, tests.latest or {}
    note = st.session_state.claim_note
    _, verdict = SHOW[st.session_state.claim_verdict]
    groups = claims_text.groups(results, "" if note == NOTES[0] else note, verdict)
    listed = [claim for *_, own in groups for claim in own]
    if not ready:  # until then the list stays in one order
        listed = [claim for claim in claims_text.CLAIMS if claim in listed]
    state, ids = st.session_state, [claim.id for claim in listed]
    if state.claim not in ("", *claims_text.BY_ID):
        state.claim = ""
    chosen = state.claim if state.claim in ids else next(iter(ids), "")
    left, right = st.columns([1.4, 1], gap="large")
    with left:
        if not chosen:
            st.info("No claim has this verdict here.")
        elif chosen not in results:
            st.info(f"This claim is being tested: {claims_text.BY_ID[chosen].statement}")
        else:
            output.show_panel(partial(claims.claim, run, chosen), "claim")
            _link(claims_text.BY_ID[chosen])
    with right:
        if chosen:
            _choose(ids, chosen, results)
        st.caption(_progress(results))
    if ready:
        with st.expander("All claims as a table"):
            output.show_panel(partial(claims.verdicts, run, claims.ALL), "all claims")
    url_state.write()
    if ready and not was_ready:
        st.rerun()  # from here on nothing needs to run by itself


def _choose(ids: Sequence[str], chosen: str, results: dict[str, Verdict]) -> None:
    """The list of claims, of which one is selected."""
    with st.container(height=LIST_HEIGHT, key="claims list"):
        st.radio(
            "Claims",
            ids,
            format_func=lambda id: _label(claims_text.BY_ID[id], results.get(id)),
            captions=[_number(claims_text.BY_ID[id], results.get(id)) for id in ids],
            label_visibility="collapsed",
            **bind("claim", "claim shown", chosen),
        )


def _label(claim: Claim, verdict: Verdict | None) -> str:
    mark = claims_text.MARKS[verdict.verdict] if verdict else "…"
    return literal(f"{mark} {claim.statement}")


def _number(claim: Claim, verdict: Verdict | None) -> str:
    """The number of a claim and its rule, below its statement."""
    if verdict is None or verdict.value is None:
        return verdict.verdict if verdict else "being tested"
    return literal(f"{verdict.value_text} {claim.noun}; rule: {claim.rule}")


def _progress(results: dict[str, Verdict]) -> str:
    """The number of claims by verdict, and of those that are not tested yet."""
    counts = {kind: claims_text.counts(results, kind) for kind in verdicts.KINDS}
    total = {name: sum(each[name] for each in counts.values()) for name in verdicts.VERDICTS}
    waiting = len(claims_text.CLAIMS) - len(results)
    rest = f"; {waiting} are being tested" if waiting else ""
    return f"{claims_text.verdicts(total)}{rest}."


def _link(claim: Claim) -> None:
    """A link to the tab that shows what the claim is about."""
    page, choices = claims_text.place(claim)
    label = f"See it on {places.title(places.tab_of(page, choices))}"
    with st.container(horizontal=True, vertical_alignment="center"):
        navigation.link(page, label, {**url_state.link_parameters(), **choices})
        if terms := glossary.explained(f"{claim.statement} {claim.how}"):
            st.caption("Terms", help=terms, width="content")
