"""The tabs of Learn on one's own sentence: the tour, concepts of attention, and textbook claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any

import streamlit as st

from explorer.analysis import verdicts
from explorer.analysis.measure import Measure, MeasureContext, Untestable
from explorer.analysis.tour import available_steps
from explorer.analysis.verdicts import Claim, Verdict
from explorer.components import mounts
from explorer.layout import current_recording, navigation, tab
from explorer.layout.controls import bind, pick
from explorer.panels import (
    claims,
    distances,
    modern,
    multi_head,
    neighbours,
    norm_place,
    recurrence,
    soft_lookup,
    softmax,
    teacher_forcing,
)
from explorer.panels.choice import Choice
from explorer.state import event_log, jobs, places, url_state
from explorer.text import claims as claims_text
from explorer.text import glossary
from explorer.text import tour as tour_text
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from explorer.text.tour import TourStep
from models.caching import memo, picture_name
from models.run import Run

TOUR = sentences("tour", "tab")
EVERY_STEP = tuple(step.id for step in tour_text.STEPS)

WORDS = sentences("claims", "tab")

# ---- tour ----------------------------------------------------------------------------


@current_recording.tab(edited=False)
def take_tour(
    run: Run, tour: Annotated[str, Choice(EVERY_STEP, "the step", of="model")] = ""
) -> None:
    """The tab Tour: the step on screen, by its id."""
    context = MeasureContext.of(run)
    steps = available(context)
    show(context, steps, selected_step(steps, tour))


def selected_step(steps: Sequence[TourStep], wanted: str) -> int:
    """Index of the step of an id; 0 for none. In place of a step that this model does not have it
    is the next one that it has."""
    ids = tuple(step.id for step in steps)
    if wanted == "":
        return 0
    if wanted not in ids:  # nothing to show here: the next that has
        later = EVERY_STEP.index(wanted)
        return next((at for at, id in enumerate(ids) if EVERY_STEP.index(id) > later), len(ids) - 1)
    return ids.index(wanted)


def available(context: MeasureContext) -> tuple[TourStep, ...]:
    """The steps of this model that have something to show of this text; the first of all where
    none has, which then says why."""
    steps = tour_text.way(context.recording.model.kind)
    find = lambda: available_steps(context, [step.id for step in steps])
    ids = memo(context.recording, ("tour", "way"), find)
    return tuple(step for step in steps if step.id in ids) or steps[:1]


def show(context: MeasureContext, steps: Sequence[TourStep], at: int) -> None:
    """The step, and the ways on."""
    step, measure, problem = steps[at], None, ""
    try:
        measure = measured(context, step)
    except (Untestable, ValueError, LookupError) as reason:
        problem = str(reason) if isinstance(reason, Untestable) else TOUR("lacks")
    header = mounts.StepPayload(
        at=at,
        names=tuple(each.title for each in steps),
        title=step.title,
        says=tour_text.sentence(step, measure) if measure else (problem, "", ""),
        figures=measure.figures if measure else (),
        formulas=formulas(context, step, measure) if measure else [],
    )
    token = picture_name(context.recording, "tour", step.id)
    mounts.tour_step(mounts.step_payload(header, token), "tour step", on_go=go)
    st.session_state["tour ids"] = [each.id for each in steps]
    choices = (*step.address, *(measure.address if measure else ()))
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button(
            f"Open this on {places.title(step.page)}",
            key="open on its page",
            icon=":material/arrow_outward:",
            on_click=leave,
            args=(choices,),
            type="tertiary",
        )
        if pressed:
            navigation.go(step.page)
        with st.popover("More", key="tour more"):
            st.markdown(tour_text.more(step, context))


def measured(context: MeasureContext, step: TourStep) -> Measure:
    """Measure of a step on this recording, computed once."""
    key = ("tour", step.id)
    return memo(context.recording, key, lambda: step.measure(context))


def formulas(context: MeasureContext, step: TourStep, measure: Measure) -> list[dict[str, Any]]:
    """The formulas of a step, made once."""
    key = ("tour formulas", step.id)
    return memo(context.recording, key, lambda: tour_text.formulas(step, measure, context))


def go() -> None:
    """Another step: the one that the reader went to."""
    state = st.session_state
    wanted, ids = state["tour step"].get("go"), state.get("tour ids", [])
    if isinstance(wanted, int) and 0 <= wanted < len(ids):
        state.tour = ids[wanted]


def leave(choices: Sequence[tuple[str, str]]) -> None:
    """On the way to the page that shows a step: its choices."""
    st.session_state.acted = True
    for name, value in choices:
        st.session_state[name] = value


# ---- concepts ------------------------------------------------------------------------

concepts = tab.view(
    tab.Tab(
        views=tab.Views(
            "look_at",
            {
                "Hard": ("Soft lookup", (soft_lookup.temperature, soft_lookup.heads)),
                "Before": ("Before attention: a recurrent network", (recurrence.bottleneck,)),
                "Shapes": ("Shapes of the matrices", (multi_head.shapes,)),
                "Three": ("Three kinds of scores", (soft_lookup.scoring,)),
                "Scale": ("Why the scale", (soft_lookup.scale,)),
                "Saturation": ("A saturated softmax", (softmax.saturation,)),
                "Mask": ("The mask", (softmax.mask,)),
                "Mean": ("The weighted mean of values", (softmax.combination,)),
                "Heads": ("Heads side by side, and W_O", (multi_head.concatenation,)),
                "Distance": ("Near and far heads", (distances.near_and_far,)),
                "Norm": ("Post-LN and pre-LN", (norm_place.diagrams,)),
                "Moves": ("A word between its neighbours", (neighbours.between,)),
                "Offset": ("Input and target, shifted by one", (teacher_forcing.offset,)),
                "Modern": (
                    "What later models changed",
                    (modern.rotary, modern.rms_norm, modern.shared_keys, modern.gate),
                ),
                "Graph": ("Messages", (soft_lookup.messages,)),
            },
        ),
        edited=False,
    )
)


# ---- claims --------------------------------------------------------------------------

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


def begin_tests(run: Run) -> jobs.Job:
    """The tests of all claims, at work or done: `latest` has the verdicts so far by claim, None
    before the first."""

    def one_by_one() -> Iterator[dict[str, Verdict]]:
        results: dict[str, Verdict] = {}
        for claim in claims_text.IN_TURN:
            results = {**results, claim.id: claims.evaluate(run, claim)}
            yield results

    tests = jobs.recording_job(run.recording(), "claims", one_by_one)
    tests.resume()
    return tests


@current_recording.tab(edited=False)
def tested_claims(
    run: Run,
    claim_verdict: Annotated[str, Choice(tuple(SHOW), "claims of one verdict alone")] = "All",
    claim_note: Annotated[str, Choice(NOTES, "claims of one lecture note alone")] = NOTES[0],
) -> None:
    """The tab Claims. claim_verdict, claim_note: which of them are listed."""
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
    if not ready:  # until then the list stays in one order
        listed = [claim for claim in claims_text.CLAIMS if claim in listed]
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
            tab.show(claims.claim, partial(claims.claim, run, chosen))
            _link(claims_text.BY_ID[chosen])
    with right:
        if chosen:
            _choose(ids, chosen, results)
        st.caption(_progress(results))
    if ready:
        with st.expander("All claims as a table"):
            tab.show(claims.verdicts, partial(claims.verdicts, run, claims.ALL))
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
    label = f"See it on {places.title(page)}"
    with st.container(horizontal=True, vertical_alignment="center"):
        navigation.link(page, label, {**url_state.link_parameters(), **choices})
        if terms := glossary.explained(f"{claim.statement} {claim.how}"):
            st.caption("Terms", help=terms, width="content")
