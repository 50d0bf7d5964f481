"""Edit the model: experiments, edits that are added and removed, and what they change."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.layout import current_recording, output, selection_bar
from explorer.layout.controls import pick, pick_attention
from explorer.panels import attention as attention_panels
from explorer.panels import interventions
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.text.capability_messages import NOT_SILENCED, NOT_SWITCHED
from explorer.views.interventions import edit_form
from explorer.views.interventions.edit_form import Edited, put
from explorer.views.interventions.patching import explore_patches, pick_stream, selected_token
from models.edits import MoveNorm, UniformHead, WithoutFeedForward, ZeroHead
from models.recording import Attention, Recording

VIEWS = {
    "Attention": "Attention of the head",
    "Vectors": "Residual stream",
    "Trained without": "Trained without a part",
}


def edit_model() -> None:
    """The tab Edit the model: the text is recorded, and the rest is drawn from its names."""
    url_state.one_of("effects", tuple(VIEWS))
    url_state.one_of("brush", tuple(edit_form.ABLATIONS))
    with st.spinner("Loading the model …"):
        source = current_recording.current_run()
    explore(source)


def patch() -> None:
    """The tab Patching: the text is recorded, and the rest is drawn from its names."""
    with st.spinner("Loading the model …"):
        source = current_recording.current_run()
    explore_patches(source)


@event_log.fragment
def explore(source: Run) -> None:
    """The tab below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    state = st.session_state
    if state.edits != state["edits shown"]:
        st.rerun(scope="app")  # the frame names the edits
    selection_bar.take()
    plain = source.recording()
    edits = edit_form.from_address(plain)
    attention = pick_attention(plain)
    run = Run(source.model, source.text, edits, interventions.fixed_target(plain))
    at, first = _heads(run, plain, attention)
    on = Edited(run, plain, attention, at, selected_token(plain), first)
    edit_form.controls(on)
    size = attention.pattern.shape
    words = selection_bar.Words(plain.streams[-1].tokens, on.token)
    selection_bar.show(words, (size[0], size[1]), at, partial(_view_menu, on))
    _show_effect(on)
    view = pick("View", VIEWS, "effects", bare=True)
    if view == "Attention":
        make = partial(interventions.head_attention, run, *at, attention.name)
        output.show_panel(make, "edited head")
    elif view == "Vectors":
        stream = pick_stream(plain)
        make = partial(interventions.residual_stream, run, on.token, stream)
        output.show_panel(make, "edited stream")
    else:
        _trained_without(on)
    if edits:
        output.offer_recording(source.model, plain.text, run.target, edits)
    url_state.write()


def _show_effect(on: Edited) -> None:
    """The panel of the experiments, or of the edits where there are some or the text is long."""
    name, masked = on.attention.name, edit_form.masked()
    if on.run.edits or len(on.plain.streams[0].tokens) > interventions.MAX_TOKENS:
        make = partial(interventions.effect, on.run, on.token, *on.at, name, masked)
        output.show_panel(make, "effect")
    elif on.experiments:
        make = partial(interventions.experiments, on.run, on.token, *on.first, name, masked)
        output.show_panel(make, "experiments")
    title = models.markdown_name(on.run.model)
    if not interventions.can_follow(on.plain, MoveNorm, WithoutFeedForward):
        st.caption(NOT_SWITCHED.format(title))
    if not interventions.can_follow(on.plain, ZeroHead, UniformHead):
        st.caption(NOT_SILENCED.format(title))


def _heads(
    run: Run, plain: Recording, attention: Attention
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The head on screen and the one that an experiment ablates: both that of the address. Where it
    names none, the one that changed most, and that of the strongest finding."""
    layers, heads = attention.pattern.shape[:2]
    layer, head = url_state.whole_number("layer", layers), url_state.whole_number("head", heads)
    if layer is not None and head is not None:
        return (layer, head), (layer, head)
    finding = attention_panels.opening_finding(plain, attention)
    first = finding.at if finding is not None else (0, 0)
    if not run.edits:
        return first, first
    try:
        return interventions.changed_head(run, attention=attention.name), first
    except ValueError:  # numbers that overflow, which the panel says
        return first, first


def _view_menu(on: Edited) -> None:
    """Show the toggle that masks the selected word for the prediction."""
    state = st.session_state
    can = on.plain.model.kind == "encoder" and bool(interventions.masking(on.plain, on.token))
    state["hide it"] = can and edit_form.masked()
    st.toggle(
        "Mask the selected word for the prediction",
        key="hide it",
        disabled=not can,
        on_change=_take_seen,
        help="As in training. Attention and vectors are those of the text without a mask.",
    )


def _take_seen() -> None:
    st.session_state.seen = "" if st.session_state["hide it"] else "yes"


# ---- models that were trained without a part -----------------------------------------------------


def _trained_without(on: Edited) -> None:
    """The models of one family, and the way to each of them."""
    state, families = st.session_state, interventions.families()
    if not families:
        st.info("No model here was trained without a part.")
        return
    full = interventions.family_of(on.run.model, state.fair)
    if len(families) > 1:
        state["family"] = full
        st.selectbox("Full model", tuple(families), key="family", on_change=_take_family, width=240)
    if (
        output.show_panel(partial(interventions.trained_without, on.run, full), "trained without")
        is None
    ):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for of in families[full]:
            edits = interventions.ABLATION_EDITS.get(of.without, ())
            pressed = _open(f"Without {of.without}: trained so", of.name, (), on)
            if edits:
                pressed |= _open(f"{of.without} ablated", of.full, edits, on)
            if pressed:
                st.rerun(scope="app")  # the sentence bar above names the model


def _open(label: str, model: str, edits: interventions.Edits, on: Edited) -> bool:
    """A button that opens a model under edits."""
    return st.button(
        label,
        key=f"open {model} {edits}",
        on_click=_open_model,
        args=(model, edits),
        disabled=(model, edits) == (on.run.model, on.run.edits),
        help=f"Open {model}" + " with this edit" * bool(edits),
    )


def _open_model(name: str, edits: interventions.Edits) -> None:
    """That model, under these edits."""
    state = st.session_state
    state.model, state.acted = name, True
    state.token = state.layer = state.head = state.attention = state.only = ""
    put(edits)


def _take_family() -> None:
    st.session_state.fair = st.session_state["family"]
