"""Textbook claims, tested on this text and model."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import evidence
from explorer.components import claims
from explorer.layout import current_recording, navigation
from explorer.layout.controls import pick
from explorer.state import cache, event_log, models, places, url_state
from explorer.text import claims as claims_text
from explorer.views.claims import claim_jobs, listing

PAUSE = 0.3  # seconds between two looks at what is being tested
SHOW = {
    "All": "All",
    "Do not hold": "Do not hold",
    "Hold": "Hold",
    "Too short to tell": "Too short",
    "Cannot be tested": "Untestable",
}
WITH = {
    "All": "",
    "Do not hold": evidence.FAILS,
    "Hold": evidence.HOLDS,
    "Too short to tell": evidence.SHORT,
    "Cannot be tested": evidence.UNTESTABLE,
}
NOTES = ("All notes", *claims_text.NOTES)


@event_log.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would
    keep for every visitor."""
    st.subheader(
        "Textbook claims, tested on this text and model",
        anchor=False,
        help=(
            "Each row is a statement of lecture notes, in our words. Its test compares a number "
            "of this text and model with a bound. "
        )
        + " ".join(
            f"**{kind.capitalize()}**: {claims_text.MEANING[kind]}" for kind in evidence.KINDS
        )
        + " An open claim explains its terms.",
    )
    left, right = st.columns([1.8, 1], vertical_alignment="center")
    url_state.one_of("claim_verdict", tuple(WITH))
    url_state.one_of("claim_note", NOTES)
    pick("Show", SHOW, "claim_verdict", bare=True, container=left)
    right.selectbox(
        "From", NOTES, key="claim_note", persist_state="session", label_visibility="collapsed"
    )
    ready = claim_jobs.begun(model, text, target).finished
    event_log.fragment(verdicts, run_every=None if ready else PAUSE)(model, text, target, ready)


def verdicts(model: str, text: str, target: str | None, was_ready: bool) -> None:
    """The list as far as it has come. It runs again by itself until every claim is tested."""
    if page := st.session_state.pop("claim page", None):
        navigation.go(page, {})
    recording = cache.record(model, text, target=target)
    tests = claim_jobs.begun(model, text, target)
    ready, found = tests.finished, tests.latest or {}
    note = st.session_state.claim_note
    groups = claims_text.groups(
        found, "" if note == NOTES[0] else note, WITH[st.session_state.claim_verdict]
    )
    opened, told = asked()
    n = len(claims_text.CLAIMS)
    data = claims.payload(
        [
            (name, under, [listing.row(claim, found.get(claim.id)) for claim in own])
            for name, under, own in groups
        ],
        counts=[listing.counted(found, kind) for kind in evidence.KINDS],
        says=f"Model {models.title(model)}, {len(recording.streams[0].tokens)} tokens. "
        f"{f'{n} claims.' if ready else f'{len(found)} of {n} claims so far …'} Open one for its "
        "numbers.",
        open=opened,
        told=told,
        token=cache.picture_name(
            recording, "claims", len(found), tuple(claim.id for *_, own in groups for claim in own)
        ),
    )
    claims.show(data, "claims", take_claim, take_page)
    listing.files(model, text, target)
    if ready:
        with st.expander("All claims as a table"):
            st.dataframe(claims_text.table(found), hide_index=True, height=480)
    url_state.write()
    if ready and not was_ready:
        st.rerun()  # from here on nothing needs to run by itself


def asked() -> tuple[str, int]:
    """The claim that the list is told to open, and for the how many-th time it is told: once at
    first, and again when the reader went back or forward. What the reader opens in between, the
    list knows by itself."""
    state = st.session_state
    if state.claim not in ("", *claims_text.BY_ID):
        state.claim = ""
    if state.claim != state.get("claim heard"):
        state["claim heard"] = state.claim
        state["claim told"] = state.claim, state.get("claim told", ("", 0))[1] + 1
    return state["claim told"]


def take_claim() -> None:
    """The claim that the reader opened, which is in the address from here on."""
    st.session_state.claim = st.session_state["claim heard"] = (
        st.session_state["claims"].get("claim") or ""
    )


def take_page() -> None:
    """Another tab, which a claim's row leads to."""
    wanted = st.session_state["claims"].get("go")
    if wanted in {places.tab_of(claim.page, {}) for claim in claims_text.CLAIMS}:
        st.session_state["claim page"] = wanted


def tested_claims() -> None:
    """The tab Claims: the text is recorded, and the rest is drawn from its names."""
    with st.spinner("Loading the model …"):
        wanted = current_recording.typed_target(st.session_state.model)
        shown = current_recording.current_run(target=wanted)
    explore(shown.model, st.session_state.text, wanted)
