"""The tabs of Learn on one's own sentence: concepts of attention, and textbook claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import streamlit as st

from explorer.analysis import verdicts
from explorer.analysis.verdicts import Claim, Verdict
from explorer.app import mounts
from explorer.app.layout import current_recording, navigation, tab
from explorer.app.layout.controls import bind
from explorer.app.layout.tab import Hand, view
from explorer.app.mounts import CardGroup, LeadCard
from explorer.app.state import event_log, jobs, models, url_state
from explorer.app.state.visit import visit
from explorer.panels import claims
from explorer.panels.choice import Choice
from explorer.screens.screen import Screen
from explorer.text import claims as claims_text
from explorer.text import gallery, glossary, places
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models.runtime.run import Run

WORDS = sentences("claims", "tab")
CARDS = sentences("lesson", "concepts")
FEW_FINDS = 5  # that stand above the concepts; the others are a press away

# ---- concepts ------------------------------------------------------------------------


# The concepts by their themes, in the order in which one follows from another.
THEMES = {
    "words": ("Tokens", "Before", "Moves"),
    "head": ("Hard", "Three", "Scale", "Softmax", "Saturation", "Mask", "Mean", "Graph", "Shapes"),
    "layers": ("Heads", "Distance", "Stages", "Norm", "Paper", "Modern", "Textbook"),
    "learning": ("Offset", "Loss", "Gradient", "Loops"),
}


def _all_concepts(shown: Screen) -> bool:
    """In place of one concept the cards of all; True where these are on show."""
    views = shown.tab.views
    if views is None or shown.view != views.index:
        return False
    event_log.fragment(_draw_cards)(shown.row.labels)
    return True


def _draw_cards(labels: Mapping[str, str]) -> None:
    """The cards of finds, and below them those of all concepts by their themes."""
    navigation.follow_press()
    offered = [
        each for each in gallery.FINDS if models.is_allowed(models.canonical_name(each.model))
    ]
    finds = [
        LeadCard(each.id, each.title, each.drawn(), says=each.sentence, to=each.address)
        for each in offered
    ]
    more = CARDS("more_finds", n=len(finds) - FEW_FINDS)
    links = [(CARDS("laws"), navigation.address_of("claims", {}))]
    groups = (
        CardGroup(CARDS("finds", n=len(finds)), finds, "tall", shown=FEW_FINDS, more=more),
        *(
            CardGroup(
                sentences("lesson", "themes")(theme),
                [_concept_card(name, labels[name]) for name in names],
                "flat",
                links if theme == "words" else (),
            )
            for theme, names in THEMES.items()
        ),
    )
    mounts.cards([each for each in groups if each.cards], "concept_cards", _open_concept)
    url_state.write()


def _concept_card(name: str, label: str) -> LeadCard:
    """A concept with its picture, and what it is in a few words."""
    to = navigation.address_of("concepts", {"look_at": name})
    says = sentences("lesson", "concepts_say")(name)
    return LeadCard(name, label, {"kind": "sign", "name": name}, says=says, to=to)


def _open_concept() -> None:
    """Open the concept whose card was pressed, or the claims, where no address leads to it."""
    word = visit.concept_cards["pick"]
    if word:
        st.session_state.look_at = word
    visit.tab_of_press = "concepts" if word else "claims"


view("concepts", Hand(instead=_all_concepts))


# ---- claims --------------------------------------------------------------------------

PAUSE = 0.5  # seconds between two looks at what has been tested
SHOW = {
    "All": ("All claims", ""),
    "Do not hold": ("Do not hold", verdicts.FAILS),
    "Hold": ("Hold", verdicts.HOLDS),
    "Too short to tell": ("Too short", verdicts.SHORT),
    "Cannot be tested": ("Untestable", verdicts.UNTESTABLE),
}
NOTES = ("All notes", *claims_text.NOTES)
LIST_HEIGHT = 620  # pixels, as high as a panel beside it


def begin_tests(run: Run) -> jobs.Job:
    """The tests of all claims, at work or done: `latest` has the verdicts so far by claim, None
    before the first."""
    tests = _tests(run)
    tests.resume()
    return tests


def _tests(run: Run) -> jobs.Job:
    """The tests of all claims, as far as they are."""

    def one_by_one() -> Iterator[dict[str, Verdict]]:
        results: dict[str, Verdict] = {}
        for claim in claims_text.IN_TURN:
            results = {**results, claim.id: claims.evaluate(run, claim)}
            yield results

    return jobs.recording_job(run.recording(), "claims", one_by_one)


MENU = 240  # pixels


@tab.by_hand("claims")
@current_recording.tab(current_recording.unedited)
def tested_claims(
    run: Run,
    claim_verdict: Annotated[str, Choice(tuple(SHOW), "claims of one verdict alone")] = "All",
    claim_note: Annotated[str, Choice(NOTES, "claims of one lecture note alone")] = NOTES[0],
) -> None:
    """Claims, on the tab Concepts. claim_verdict, claim_note: which of them are listed."""
    st.title(
        "Textbook claims on this text and model",
        anchor=False,
        help=" ".join(
            f"**{kind.capitalize()}**: {claims_text.MEANING[kind]}" for kind in verdicts.KINDS
        ),
    )
    bar = st.container(horizontal=True, vertical_alignment="center")
    labels = {name: label for name, (label, _) in SHOW.items()}
    bar.selectbox(
        "Show",
        tuple(labels),
        key="claim_verdict",
        format_func=labels.__getitem__,
        persist_state="session",
        label_visibility="collapsed",
        width=MENU,
    )
    with bar.popover("View"):
        st.selectbox("Claims of", NOTES, key="claim_note", persist_state="session")
    ready = begin_tests(run).finished
    draw = event_log.fragment(_draw, run_every=None if ready else PAUSE)
    draw(run, ready, SHOW[claim_verdict][1], "" if claim_note == NOTES[0] else claim_note)


def _draw(run: Run, was_ready: bool, verdict: str, note: str) -> None:
    """The list of the claims of a verdict and a note, "" for all, and the selected claim. They are
    drawn again until every claim is tested."""
    tests = begin_tests(run)
    ready, results = tests.finished, tests.latest or {}
    groups = claims_text.groups(results, note, verdict)
    listed = [claim for *_, own in groups for claim in own]
    if not ready:  # until then those that hold and those still to be tested keep their order
        failing = [each for each in listed if _fails(results.get(each.id))]
        rest = [each for each in claims_text.CLAIMS if each in listed and each not in failing]
        listed = [*failing, *rest]
    ids = [claim.id for claim in listed]
    chosen = url_state.values(claims.claim, run)["claim"]
    chosen = chosen if chosen in ids else next(iter(ids), "")
    left, right = st.columns([1.4, 1], gap="large")
    with left:
        if not chosen:
            st.info(WORDS("none"))
        elif chosen not in results:
            st.info(WORDS("being_tested", statement=claims_text.BY_ID[chosen].statement))
        else:
            tab.show(claims.claim, run, {"claim": chosen})
            _link(claims_text.BY_ID[chosen])
    with right:
        if chosen:
            _choose(ids, chosen, results)
        st.caption(_progress(results))
    if ready:
        with st.expander("All claims as a table"):
            tab.show(claims.verdicts, run, {"claims": claims.ALL})
    url_state.write()
    if ready and not was_ready:
        st.rerun()  # from here on nothing needs to run by itself


def _fails(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.verdict == verdicts.FAILS


def _choose(ids: Sequence[str], chosen: str, results: dict[str, Verdict]) -> None:
    """The list of claims, of which one is selected. The browser names one by its label, which stays
    as it is while claims are tested; what was found stands below it."""
    with st.container(height=LIST_HEIGHT, key="claims list"):
        st.radio(
            "Claims",
            ids,
            format_func=lambda id: literal(claims_text.BY_ID[id].statement),
            captions=[_result(claims_text.BY_ID[id], results.get(id)) for id in ids],
            label_visibility="collapsed",
            **bind("claim", "claim shown", chosen),
        )


def _result(claim: Claim, verdict: Verdict | None) -> str:
    """The verdict's mark, the number of a claim and its rule, below its statement."""
    if verdict is None:
        return "… being tested"
    mark = claims_text.MARKS[verdict.verdict]
    if verdict.value is None:
        return literal(f"{mark} {verdict.verdict}")
    return literal(f"{mark} {verdict.value_text} {claim.noun}; rule: {claims_text.rule(claim)}")


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
    label = f"See it on {places.title(page)}"
    with st.container(horizontal=True, vertical_alignment="center"):
        navigation.link(page, label, choices)
        if terms := glossary.explained(f"{claim.statement} {claim.how}"):
            st.caption("Terms", help=terms, width="content")
