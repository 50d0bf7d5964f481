"""Tour: the story of the Transformer on one's own sentence, one picture a step."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.analysis.measure import Measure, MeasureContext, Untestable
from explorer.analysis.tour import available_steps
from explorer.components import mounts
from explorer.layout import current_recording, navigation
from explorer.panels.claims import measure_context
from explorer.state import cache, places, url_state
from explorer.state.cache import Run
from explorer.text import tour as tour_text
from explorer.text.tour import TourStep

LACKS = "This model does not show what this step needs. The next one may."


@current_recording.tab(edited=False)
def take_tour(source: Run) -> None:
    """The tab Tour: the step on screen."""
    context = measure_context(source.recording(), source.text)
    steps = available(context)
    show(context, steps, selected_step(steps))


def selected_step(steps: Sequence[TourStep]) -> int:
    """Index of the step that the address names; 0 where it names none. In place of a step that this
    model does not have it is the next one that it has."""
    ids = tuple(step.id for step in steps)
    wanted, every = st.session_state.tour, [step.id for step in tour_text.STEPS]
    if wanted == "":
        return 0
    if wanted in every and wanted not in ids:  # nothing to show here: the next that has
        later = (at for at, id in enumerate(ids) if every.index(id) > every.index(wanted))
        return next(later, len(ids) - 1)
    return ids.index(url_state.one_of("tour", ids))


def available(context: MeasureContext) -> tuple[TourStep, ...]:
    """The steps of this model that have something to show of this text; the first of all where
    none has, which then says why."""
    steps = tour_text.way(context.recording.model.kind)
    find = lambda: available_steps(context, [step.id for step in steps])
    ids = cache.cached_for(context.recording, ("tour", "way"), find)
    return tuple(step for step in steps if step.id in ids) or steps[:1]


def show(context: MeasureContext, steps: Sequence[TourStep], at: int) -> None:
    """The step, and the ways on."""
    step, measure, problem = steps[at], None, ""
    try:
        measure = measured(context, step)
    except (Untestable, ValueError, LookupError) as reason:
        problem = str(reason) if isinstance(reason, Untestable) else LACKS
    header = mounts.StepPayload(
        at=at,
        names=tuple(each.title for each in steps),
        title=step.title,
        says=tour_text.sentence(step, measure) if measure else (problem, "", ""),
        figures=measure.figures if measure else (),
    )
    token = cache.picture_name(context.recording, "tour", step.id)
    mounts.tour_step(mounts.step_payload(header, token), "tour step", on_go=go)
    st.session_state["tour ids"] = [each.id for each in steps]
    choices = (*step.address, *(measure.address if measure else ()))
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = st.button(
            f"Open this on {places.title(places.tab_of(step.page, dict(choices)))}",
            key="open on its page",
            icon=":material/arrow_outward:",
            on_click=leave,
            args=(choices,),
            type="tertiary",
        )
        if pressed:
            navigation.go(step.page, dict(choices))
        with st.popover("More", key="tour more"):
            st.markdown(tour_text.more(step, context))


def measured(context: MeasureContext, step: TourStep) -> Measure:
    """Measure of a step on this recording, computed once."""
    key = ("tour", step.id)
    return cache.cached_for(context.recording, key, lambda: step.measure(context))


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
