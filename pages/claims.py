"""Claims: does what textbooks say hold here, on this text, in this model?"""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import streamlit as st

from explorer.analysis import claims, evidence
from explorer.components import claims as pictures
from explorer.frame import onscreen
from explorer.memory import address, drafts, models, passes, shelf
from models.edits import from_line
from models.recording import Recording

PAUSE, BUDGET = 0.25, 0.4  # seconds between two goes at what is left to test, and of one go
WITH = {
    "All": "",
    "Hold": evidence.HOLDS,
    "Do not hold": evidence.FAILS,
    "Cannot be tested": evidence.UNTESTABLE,
}
NOTES = ("All notes", *claims.NOTES)
TONES = {evidence.HOLDS: "holds", evidence.FAILS: "fails", evidence.UNTESTABLE: "open"}


@st.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    st.subheader(
        "Does what textbooks say hold here, on this text, in this model?",
        anchor=False,
        help="Each line is a statement of the lecture notes, in our words, made into a test: a number of this text and model, against a tolerance fixed beforehand.",
    )
    left, right = st.columns([1.6, 1], vertical_alignment="bottom")
    address.one_of("claim_verdict", tuple(WITH))
    address.one_of("claim_note", NOTES)
    left.segmented_control(
        "Show", tuple(WITH), key="claim_verdict", required=True, persist_state="session"
    )
    right.selectbox("From", NOTES, key="claim_note", persist_state="session")
    ready = len(tested(model, text, target)) == len(claims.CLAIMS)
    st.fragment(verdicts, run_every=None if ready else PAUSE)(model, text, target, ready)


def verdicts(model: str, text: str, target: str | None, was_ready: bool) -> None:
    """The list as far as it has come. It runs again by itself until every claim is tested; what was tested once is only looked up."""
    if page := st.session_state.pop("claim page", None):
        st.switch_page(Path(__file__).parent / f"{page}.py")
    recording = passes.record(model, text, target=target)
    found = tested(model, text, target)
    findings = (*found, *[None] * (len(claims.CLAIMS) - len(found)))
    ready = len(found) == len(claims.CLAIMS)
    places = claims.chosen(
        "" if st.session_state.claim_note == NOTES[0] else st.session_state.claim_note,
        WITH[st.session_state.claim_verdict],
        findings,
    )
    groups = [
        (
            note,
            f"From {theme}.",
            [row(at, findings[at]) for at in places if claims.CLAIMS[at].note == note],
        )
        for note, theme in claims.NOTES.items()
    ]
    counts = claims.counts(findings)
    opened, told = asked()
    data = pictures.payload(
        [group for group in groups if group[2]],
        counts=[
            (counts[verdict], words, TONES[verdict])
            for verdict, words in zip(
                evidence.VERDICTS, ("hold", "do not hold here", "cannot be tested here")
            )
        ],
        says=f"Model {models.title(model)}, {len(recording.streams[0].tokens)} tokens. {f'{len(findings)} claims.' if ready else f'{len(found)} of {len(findings)} claims so far …'} Open one for its numbers.",
        open=opened,
        told=told,
        token=shelf.name_of(recording, "claims", len(found), places),
    )
    pictures.show(data, "claims", take_claim, take_page)
    files(model, text, target, recording)
    address.write()
    if ready and not was_ready:
        st.rerun()  # from here on nothing needs to run by itself


def tested(
    model: str, text: str, target: str | None, budget: float = BUDGET
) -> list[evidence.Finding]:
    """The verdicts on the claims in order, as many as are known or become so before the budget (seconds) is spent."""
    recording, asked_at, found = passes.record(model, text, target=target), monotonic(), []
    material = material_of(recording, text)
    for claim in claims.CLAIMS:
        if monotonic() - asked_at > budget:
            break
        found.append(
            shelf.derived(
                recording,
                ("claim", claim.id),
                lambda claim=claim: evidence.settle(claim, material),
                lambda _: 3_000,
            )
        )
    return found


def material_of(recording: Recording, text: str) -> evidence.Evidence:
    """What claims are tested with: the recording, and its model behind the session's own doors."""
    model, last = recording.model.name, recording.streams[-1]
    two = len(recording.streams) > 1
    said = tuple(map(int, last.ids[1:])) if two else None

    def again(edits: str, other: str, target: tuple[int, ...] | None) -> Recording:
        own = said if target is None and not other else target
        return passes.record(model, other or text, from_line(edits), own if two else None)

    def stepwise(rows: int) -> list:
        writing = drafts.Draft(model, text if two else "").writing
        if writing.ids != [int(last.ids[0])]:
            raise ValueError("a text that begins with one token of its own")
        scores = [writing.logits]
        for id in last.ids[1:rows]:
            writing.add(int(id))
            scores.append(writing.logits)
        return scores

    return evidence.Evidence(
        recording,
        again,
        norms=lambda stream: passes.norms(recording, stream),
        outputs=lambda: passes.outputs(recording),
        jacobian=lambda stream, token, site: passes.jacobian(recording, stream, token, site),
        highway=lambda stream, token: passes.highway(recording, stream, token),
        lens=lambda stream: passes.lens(recording, stream),
        logits=lambda stream, token: passes.logits(recording, stream, token),
        embeddings=lambda: models.embeddings(model),
        stepwise=stepwise,
    )


def row(at: int, finding: evidence.Finding | None) -> pictures.Row:
    """A claim as the list draws it."""
    claim = claims.CLAIMS[at]
    tone, mark, verdict, shown, why, parts = (
        ("waiting", "…", "being tested", "", "The test has not run yet.", ())
        if finding is None
        else (
            TONES[finding.verdict],
            claims.MARKS[finding.verdict],
            finding.verdict,
            finding.shown,
            finding.why,
            finding.rows,
        )
    )
    page = (claim.page, claims.PAGES[claim.page], claim.page)
    return pictures.Row(
        claim.id,
        tone,
        mark,
        verdict,
        claim.statement,
        shown,
        why,
        claim.how,
        claim.formula,
        claim.rule,
        parts,
        claim.remark,
        page,
    )


def files(model: str, text: str, target: str | None, recording: Recording) -> None:
    """All verdicts to take along, and as a table."""
    name, about = f"headlight-claims-{model}", claims.about(recording)

    def every() -> list[evidence.Finding]:
        return tested(model, text, target, float("inf"))

    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Print: one HTML page",
            lambda: claims.report(passes.record(model, text, target=target), every()),
            f"{name}.html",
            "text/html",
            on_click="ignore",
            help="All claims with their numbers and verdicts in one file, which opens anywhere without a network.",
        )
        st.download_button(
            "CSV",
            lambda: claims.to_csv(every(), about),
            f"{name}.csv",
            "text/csv",
            on_click="ignore",
        )
    with st.expander("All claims as a table"):
        known = tested(model, text, target)
        if len(known) < len(claims.CLAIMS):
            st.caption("The table stands here when every claim is tested.")
        else:
            st.dataframe(claims.table(known), hide_index=True, height=480)


def asked() -> tuple[str, int]:
    """The claim that the list is told to open, and for the how many-th time it is told: once at first, and again when the reader went back or
    forward. What the reader opens in between, the list knows by itself."""
    state = st.session_state
    if state.claim not in ("", *claims.BY_ID):
        state.claim = ""
    if state.claim != state.get("claim heard"):
        state["claim heard"] = state.claim
        state["claim told"] = state.claim, state.get("claim told", ("", 0))[1] + 1
    return state["claim told"]


def take_claim() -> None:
    st.session_state.claim = st.session_state["claim heard"] = (
        st.session_state["claims"].get("claim") or ""
    )


def take_page() -> None:
    wanted = st.session_state["claims"].get("go")
    if wanted in claims.PAGES:
        st.session_state["claim page"] = wanted


with st.spinner("Loading the model …"):
    two_texts = models.handle(st.session_state.model).card.kind == "encoder-decoder"
    wanted = st.session_state.target if two_texts and st.session_state.target.strip() else None
    shown = onscreen.shown(target=wanted)
explore(shown.model, st.session_state.text, wanted)
