"""The residual stream: what each sub-layer adds, and below it norms, heads, gradients, an RNN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from explorer.analysis import recorded_findings, residual
from explorer.analysis.attention import TONES
from explorer.analysis.terminology import recording_norm_name
from explorer.layout import controls, current_recording, output, selection_bar
from explorer.layout.controls import bind, pick
from explorer.panels import gradients
from explorer.panels import residual as residual_panels
from explorer.state import event_log, jobs, url_state
from explorer.text.templates import sentences
from models.recording import Recording, Stream
from models.run import Run

WORDS = sentences("residual", "tab")

# ---- recurrence ----------------------------------------------------------------------

LOOK = 0.7  # seconds between two looks at an experiment that runs


def recurrence_panels(source: Run, stream: Stream) -> None:
    """The task, and the training as far as it has come."""
    words = sentences(gradients.CONCEPT, "recurrence_task")
    n = len(stream.tokens)
    longest = jobs.longest_lag(n)
    if longest < 1:
        st.info(words("short", n=n))
        return
    st.session_state.lag = str(url_state.whole_number("lag", longest + 1) or min(8, longest))
    st.markdown(words("task"))
    if longest > 1:
        st.select_slider(
            "Predict the token so many back",
            [str(each) for each in range(1, longest + 1)],
            key="lag",
            persist_state="session",
            width=420,
            help=words("help"),
        )
    lag = int(st.session_state.lag)
    running = jobs.decay_job(source.recording(), stream.name, lag).running
    event_log.fragment(recurrence_fragment, run_every=LOOK if running else None)(
        source, stream.name, lag, running
    )


def recurrence_fragment(source: Run, name: str, lag: int, was_running: bool) -> None:
    """The training as far as it has come; it runs again and again while it goes on."""
    words = sentences(gradients.CONCEPT, "recurrence_task")
    experiment = jobs.decay_job(source.recording(), name, lag)
    running, decay = experiment.running, experiment.latest
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running:
            st.button("Stop", key="stop experiment", on_click=experiment.stop)
        elif not experiment.finished:
            label = "Start training" if decay is None else "Go on"
            st.button(label, key="start experiment", on_click=experiment.resume)
        else:
            st.markdown(words("finished"))
    if running != was_running:
        st.rerun(scope="app")
    if decay is None:
        st.caption(words("making" if running else "wait"))
        return
    stopped = "" if running or experiment.finished else ", stopped"
    st.progress(decay.step / decay.steps, text=f"Step {decay.step} of {decay.steps}{stopped}")
    output.show_panel(partial(gradients.recurrence, source, lag, name, decay), "recurrence")


# The values of the address, and what each is called by the panels and on screen.
MEASURES = {
    "Turned": "Rotation angle",
    "Written": "Update norm",
    "Share": "Share",
    "Cosine": "Cosine",
    "Norm": "State norm",
}
NORMS = {
    "Sigma before": "σ before",
    "Mean before": "Mean before",
    "Sigma after": "σ after",
    "Mean after": "Mean after",
}
HEADS = {"Length": "Norm", "Share of heads": "Share of the output"}
TIMES = tuple(f"{each:g}" for each in residual_panels.TIMES)
FIRST_BLOCK = "0.attn"


@dataclass(frozen=True, eq=False)
class StreamState:
    """One stream on screen. It is made anew in every run and nowhere kept."""

    source: Run
    recording: Recording
    stream: Stream

    @property
    def token(self) -> int:
        """The token of the address, or else the word that all tabs open on."""
        token = url_state.whole_number("token", len(self.stream.tokens))
        first = recorded_findings.first_word
        return first(self.recording, self.stream) if token is None else token

    def is_log(self) -> bool:
        """True where norms are on a logarithmic scale."""
        return bool(st.session_state.spread == "Log")


def token_numbers(on: StreamState) -> None:
    """The selected token in numbers."""
    output.show_panel(
        partial(residual_panels.token_path, on.source, on.token, on.stream.name), "token path"
    )


def layer_norms(on: StreamState) -> None:
    """Every norm, and one of them step by step with BatchNorm beside it."""
    measure = pick("Show", NORMS, "norm", bare=True)
    name = on.stream.name
    make = partial(residual_panels.norms, on.source, measure, on.token, on.is_log(), name)
    if output.show_panel(make, "norms") is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        site = pick_place(
            {each.site: each.name for each in residual.stream_norms(on.stream)}, "Norm"
        )
        times = st.select_slider(
            "Multiply the selected token’s vector by",
            TIMES,
            key="times",
            persist_state="session",
            width=420,
        )
    make = partial(residual_panels.norm_steps, on.source, on.token, site, float(times), name)
    output.show_panel(make, "norm steps")


def head_shares(on: StreamState) -> None:
    """Show the update of each head."""
    measure = pick("Show", HEADS, "writer", bare=True)
    output.show_panel(
        partial(residual_panels.heads, on.source, measure, on.token, on.is_log(), on.stream.name),
        "head updates",
    )


def gradient(on: StreamState) -> None:
    """The gradient through a deep stack and through one sub-layer."""
    name = on.stream.name
    with st.spinner("Going back through the layers …"):
        output.show_panel(partial(gradients.deep_stack, on.source, name), "deep stack")
    places = {each.site: each.name for each in residual.sublayers(on.stream) if each.layer >= 0}
    site = pick_place(places, "Sub-layer") if places else ""
    make = partial(gradients.jacobian, on.source, on.token, site, name)
    output.show_panel(make, "jacobian")


FOLDS: dict[str, tuple[str, Callable[[StreamState], None]]] = {
    "Token": ("Selected token in numbers", token_numbers),
    "LayerNorm": ("", layer_norms),  # by the name that it has in the model
    "Heads": ("Contribution of each head", head_shares),
    "Gradient": ("Gradient", gradient),
    "RNN": ("Compared with an RNN", lambda on: recurrence_panels(on.source, on.stream)),
}


@current_recording.tab(
    flow=("Writes", *FOLDS),
    write=tuple(MEASURES),
    norm=tuple(NORMS),
    writer=tuple(HEADS),
    times=TIMES,
    spread=TONES,
)
def residual_stream(source: Run) -> None:
    """The tab Residual stream."""
    recording, state = source.recording(), st.session_state
    names = tuple(stream.name for stream in recording.streams)
    bar = st.container(horizontal=True, vertical_alignment="center")
    measure = pick("Colour by", MEASURES, "write", bare=True, container=bar)
    name = controls.pick_stream(names, names[0], container=bar)
    on = StreamState(source, recording, recording.stream(name))
    with bar:
        selection_bar.word(on.stream, on.token)
    with bar.popover("View"):
        st.toggle(
            "Norms on a logarithmic scale",
            help=WORDS("logarithmic"),
            **bind("spread", "logarithmic", on.is_log(), lambda log: "Log" if log else "Linear"),
        )
        controls.pick_blocks(in_layers(on))
    layers = in_layers(on)
    stream = residual.whole_layers(on.stream) if layers else on.stream
    block = state.block if state.block in update_sites(stream) else ""
    output.show_panel(
        partial(
            residual_panels.updates,
            source,
            MEASURES[measure],
            on.token,
            block,
            on.is_log(),
            on.stream.name,
            layers,
        ),
        "updates",
    )
    norm = recording_norm_name(recording, source.loaded.capabilities.rms)
    parts = {name: (label or norm, partial(draw, on)) for name, (label, draw) in FOLDS.items()}
    controls.folds("flow", "Writes", parts)


def pick_place(places: dict[str, str], label: str) -> str:
    """The site that the reader chose, the first sub-layer where it is none of `places`."""
    default = FIRST_BLOCK if FIRST_BLOCK in places else next(iter(places))
    block = st.session_state.block
    chosen = st.selectbox(
        label,
        tuple(places),
        format_func=lambda site: places[site][0].upper() + places[site][1:],
        width=320,
        **bind("block", "place shown", block if block in places else default),
    )
    return str(chosen)


def update_sites(stream: Stream) -> list[str]:
    """The sites of a stream's updates."""
    return [each.site for each in residual.sublayers(stream)]


def in_layers(on: StreamState) -> bool:
    """True where updates are shown by whole layers: by choice, in a deep model unless one of its
    sub-layers is open, and where the model shows no sub-layers."""
    sites = update_sites(on.stream)
    return not sites or controls.in_layers(on.recording, st.session_state.block in sites)
