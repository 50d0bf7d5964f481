"""Patching: parts of another sentence's run put into this one, one by one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from explorer.components import panel
from explorer.layout import navigation, output, selection_bar
from explorer.layout.controls import pick, pick_attention
from explorer.panels import attention as attention_panels
from explorer.panels import interventions
from explorer.panels.interventions import Patches, PatchRequest
from explorer.state import event_log, jobs, url_state
from explorer.state.cache import Run
from explorer.state.jobs import Job, SweepProgress
from explorer.text.markdown_escape import literal
from explorer.views.interventions import edit_form
from explorer.views.interventions.edit_form import put
from models.recording import Recording

UNITS = {"Heads": "every head", "Sites": "every state of every token"}
AT_ONCE = 2e10  # parameters times tokens read, of a sweep that is made without being asked for
LOOK = 0.7  # seconds between two looks at a sweep that runs
CELL = "patched cell"  # of the map, that the reader chose


@event_log.fragment
def explore_patches(source: Run) -> None:
    """The second sentence and the sweep of patches, under the edits of the address. It takes names
    and not the recording, which Streamlit would keep for every visitor."""
    state = st.session_state
    if state.edits != state["edits shown"]:
        st.rerun(scope="app")  # the frame names the edits
    plain = source.recording()
    edits = edit_form.from_address(plain)
    run = Run(source.model, source.text, edits)
    tokens = plain.streams[-1].tokens
    token = selection_bar.word(tokens, selected_token(plain))
    unit = url_state.one_of("patch", interventions.UNITS)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        donor = _donor(source.text)
    with right:
        pick("Activations to patch", UNITS, "patch", bare=True)
    of = pick_attention(plain).name if unit == "Heads" else pick_stream(plain)
    choices = (donor, unit, token, of, edit_form.masked())
    try:
        request = interventions.patch_request(run, *choices)
    except ValueError as reason:
        st.info(literal(str(reason)))
    else:
        if interventions.sweep_cost(request) <= AT_ONCE:
            with st.spinner("Patching …"):
                results = interventions.sweep(request)
            _show(run, request, edit_form.masked(), results)
        else:
            job = jobs.patch_sweep(request.run.recording(), unit, *request.arguments)
            show = event_log.fragment(_watch, run_every=LOOK if job.running else None)
            show(run, request, edit_form.masked(), job.running)
    url_state.write()


def _donor(text: str) -> str:
    """The second sentence: the one typed, else one that suits the text."""
    offered = interventions.default_donor(text)
    typed = st.text_input(
        "Second sentence",
        key="donor",
        persist_state="session",
        placeholder=offered,
        help="Vectors are copied by position, so equal words should have equal positions: best "
        "with the same number of words, one or two of them changed.",
    )
    return typed if typed.strip() else offered


def selected_token(plain: Recording) -> int:
    """The token whose prediction is compared: that of the address, in an encoder else the word of
    the strongest finding."""
    stream = plain.streams[-1]
    token = url_state.whole_number("token", len(stream.tokens))
    if token is not None:
        return token
    if plain.model.kind == "encoder":
        word = attention_panels.opening_word(plain, plain.attention[0])
        if word is not None and not stream.special[word]:
            return word
    return interventions.default_token(plain)


def pick_stream(recording: Recording) -> str:
    """The stream on screen, with the control that chooses it where there are several."""
    streams = tuple(stream.name for stream in recording.streams)
    name = st.session_state.stream if st.session_state.stream in streams else streams[-1]
    if len(streams) > 1:
        st.session_state["stream of"] = name
        st.selectbox(
            "Stream",
            streams,
            key="stream of",
            format_func="{} stream".format,
            label_visibility="collapsed",
            width=180,
            on_change=_take_stream,
        )
    return name


def _take_stream() -> None:
    st.session_state.stream = st.session_state["stream of"]


def _watch(run: Run, request: PatchRequest, masked: bool, was_running: bool) -> None:
    """The sweep as far as it has come; it runs again and again while it goes on."""
    job = jobs.patch_sweep(request.run.recording(), request.unit, *request.arguments)
    running, results = job.running, job.latest
    _buttons(job, running)
    if running != was_running:
        st.rerun(scope="app")
    if results is None:
        st.caption("Running both sentences …" if running else "Each patch is one forward pass.")
        return
    if results.error:
        st.info(f"These two cannot be patched: {literal(results.error)}.")
        return
    so_far = Patches(results.clean, results.donor, results.effects)
    if job.finished:
        _show(run, request, masked, interventions.sweep(request, so_far))
        return
    _progress(results, running)
    made = interventions.patch_panel(request, so_far)
    drawn = replace(made, token=f"{hash(request)} {len(results.effects)}")
    panel.show(drawn.encode(), "patched map", lambda: None)
    _offer_patch(run, request, so_far)


def _show(run: Run, request: PatchRequest, masked: bool, results: Patches) -> None:
    """The panel of a sweep that is done, and the button for its framed patch."""
    make = partial(
        interventions.patches,
        *(run, request.donor, request.unit, request.token, request.name, masked),
        *(_cell(request) or (None, None)),
    )
    output.show_panel(make, "patched map", partial(_take_cell, request))
    _offer_patch(run, request, results)


def _progress(results: SweepProgress, running: bool) -> None:
    done = f"{len(results.effects):,} of {results.places:,} patches" + ", stopped" * (not running)
    st.progress(len(results.effects) / max(1, results.places), text=done)


def _buttons(job: Job, running: bool) -> None:
    """Start, stop and go on."""
    if running:
        st.button("Stop", key="stop sweep", on_click=job.stop)
    elif not job.finished:
        label = "Run all patches" if job.latest is None else "Continue"
        st.button(label, key="start sweep", type="primary", on_click=job.resume)


def _cell(request: PatchRequest) -> tuple[int, int] | None:
    """The cell of the map that the reader chose of this sweep."""
    of, cell = st.session_state.get(CELL, (None, None))
    return cell if of == request else None


def _take_cell(request: PatchRequest) -> None:
    """A press on a cell; once more, the largest effect of all."""
    pressed = st.session_state["patched map"].get("select") or {}
    cell = int(pressed["row"]), int(pressed["column"])
    st.session_state[CELL] = request, None if cell == _cell(request) else cell


def _offer_patch(run: Run, request: PatchRequest, results: Patches) -> None:
    """The button that makes the framed patch one of the edits."""
    effects = interventions.effect_map(request, results)
    cell = _cell(request) or interventions.strongest(request, effects)
    if cell is None:
        return
    edit, place = interventions.patch_of(request, effects, cell)
    pressed = st.button(
        "Add this patch to the edits",
        key="put patch",
        on_click=put,
        args=((*run.edits, edit),),
        disabled=edit in run.edits,
        help=literal(f"Opens Edit the model with this patch: {place}."),
    )
    if pressed:
        navigation.go("edit", {})
