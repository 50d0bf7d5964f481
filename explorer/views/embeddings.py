"""Word vectors layer by layer: a word in two contexts, its nearest words, and anchor words."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from explorer.analysis import embeddings, residual
from explorer.analysis.attention import numbered
from explorer.analysis.logit_lens import states
from explorer.analysis.words import words as words_in
from explorer.layout import current_recording, output, selection_bar
from explorer.layout.controls import bind, pick
from explorer.layout.output import offer_recording, show_panel
from explorer.panels import embeddings as embeddings_panels
from explorer.panels.embeddings import WordPath
from explorer.state import models, url_state
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from models.caching import loaded
from models.example_texts import EXAMPLES, other_sentence
from models.recording import Recording, Stream
from models.run import Run

WORDS = sentences("embeddings", "tab")

if TYPE_CHECKING:
    import plotly.graph_objects as go

# ---- space ---------------------------------------------------------------------------

LONGEST_LABEL = 30
# Middle tones, which stand out on a light and on a dark page alike: Plotly keeps its colours when
# the theme changes.
COLOURS = ("#c2620e", "#3b82c4", "#8a8177", "#8a8177")
SYMBOLS = ("circle", "diamond", "square", "cross")
HOVER = "%{hovertext}<br>%{x:.3f}, %{y:.3f}, %{z:.3f}<extra></extra>"


def space_chart(on: WordPath) -> None:
    """Every token at the selected layer, and the paths of the selected word, on three axes."""
    name = f"headlight-{on.recordings[0].model.name}-paths-3d"
    image = {"format": "png", "scale": 2, "filename": name}
    config = {"displaylogo": False, "toImageButtonOptions": image}
    alt = f"Paths of tokens in three dimensions, at {on.site_title}"
    st.plotly_chart(space_figure(on), key="in space", config=config, alt=alt)


def space_figure(on: WordPath) -> go.Figure:
    """The picture: its points are named on hover, those of the selected word and anchors beside
    them."""
    import plotly.graph_objects as go  # heavy, for whoever opens it

    scene, site = on.scene, on.site
    drawn = go.Figure()
    for group in scene.groups:
        labels = [_safe(label) for label in group.labels]
        drawn.add_scatter3d(
            **_places(scene.basis.project(group.vectors[site])),
            mode="markers+text" if group.kind > 1 else "markers",
            text=labels,
            name=_safe(group.name),
            hovertext=labels,
            marker={"size": 4, "symbol": SYMBOLS[group.kind], "color": COLOURS[group.kind]},
            hovertemplate=HOVER,
        )
    for text, place in on.places:
        label = _safe(on.label(text, place))
        path = scene.basis.project(scene.path(text, place))
        drawn.add_scatter3d(
            **_places(path),
            mode="lines+markers+text",
            text=[label if at == site else "" for at in range(len(path))],
            textposition="bottom center" if text else "top center",
            textfont={"size": 15, "color": COLOURS[text]},
            name=f"{label} ({_safe(scene.texts[text].name)})",
            hovertext=list(scene.titles),
            line={"width": 6, "color": COLOURS[text]},
            marker={"size": 3, "color": COLOURS[text]},
            hovertemplate=HOVER,
        )
    names = [
        f"{_safe(name)} ({share:.1%})"
        for name, share in zip(scene.basis.names, scene.basis.explained)
    ]
    axes = {f"{axis}axis": {"title": {"text": name}} for axis, name in zip("xyz", names)}
    eye = {"eye": {"x": 1.1, "y": 1.1, "z": 0.65}}
    drawn.update_layout(
        height=560,
        margin={"t": 0, "l": 0, "r": 0, "b": 0},
        scene={**axes, "aspectmode": "data", "camera": eye},
        legend={"orientation": "h", "y": -0.02},
    )
    return drawn


def _places(points: np.ndarray) -> dict[str, Any]:
    """Points (token, 3) as the coordinates of a trace."""
    return dict(zip("xyz", points.T))


def _safe(text: str) -> str:
    """A label as it is, cut where it is long; Plotly's texts are a kind of HTML."""
    cut = text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
    return html.escape(cut, quote=False)


CONTEXTS = {"Two": "Two contexts", "One": "One text"}
EXAMPLE = ("Apple and juice", "Apple devices")
# Switches of the View menu: their choices, the values off and on, and the option of the panels.
SWITCHES = {
    "trails": (("Chosen", "All"), "all paths", "Paths of all words"),
    "frame": (("All", "Close"), "close up", "Close up of the selected word"),
    "specials": (("Hidden", "Shown"), "specials", "Special tokens"),
    "length": (("Kept", "Removed"), "unit length", "Directions only (vectors of length 1)"),
    "sums": (("States", "Sums"), "sums", "Sums before each norm"),
}
PLANES, SPACES = ("PCA", "Words"), ("2-D", "3-D")
ANCHORED = ("plane", "curve", "anchors")  # choices that are about anchor words


@dataclass(frozen=True)
class Choices:
    """Reader's choices that the panels of the tab are drawn from."""

    source: Run
    token: int
    second: str
    mate: int | None
    site: str
    stream: str
    options: str
    axis: str

    @property
    def word(self) -> dict[str, Any]:
        """The word in its texts."""
        return {
            "token": self.token,
            "second": self.second,
            "mate": self.mate,
            "stream": self.stream,
        }


@current_recording.tab(
    contexts=tuple(CONTEXTS),
    plane=PLANES,
    space=SPACES,
    trails=SWITCHES["trails"][0],
    frame=SWITCHES["frame"][0],
    specials=SWITCHES["specials"][0],
    length=SWITCHES["length"][0],
    sums=SWITCHES["sums"][0],
)
def word_paths(source: Run) -> None:
    """The tab Embeddings."""
    if source.text != st.session_state.text:
        st.rerun()  # the example has put another text above, which only a whole run draws
    on = choose(source)
    word = on.word | {"site": on.site, "options": on.options}
    make = partial(embeddings_panels.contexts, source, **word, axis=on.axis)
    show_panel(make, "embeddings")
    show_panel(partial(embeddings_panels.neighbours, source, **word), "nearest")
    anchor_words(on)
    in_space(on)
    offer_recording(source)


def choose(source: Run) -> Choices:
    """The bar above the panels: the word, the second text and the word in it, and the View menu."""
    recording = source.recording()
    names = ("", *(each.name for each in recording.streams[1:]))  # the first one stands as ""
    stream = recording.stream(url_state.one_of("stream", names) or recording.streams[0].name)
    is_read = stream is recording.streams[0]
    token = url_state.whole_number("token", len(stream.tokens))
    own = _own_second(recording, token) if is_read else ""
    state = st.session_state
    second = ""
    if state.contexts == "Two":
        second = state.second if state.second.strip() else own
    other = (
        Run(source.model, second, source.edits).recording().stream(stream.name) if second else None
    )
    default = embeddings.default_token(stream, other, embeddings.visible_tokens(stream, False))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(width="content"):
            token = selection_bar.word(stream, default)
        if state.contexts == "Two":
            _second_field(own)
        mate = _mate(stream, token, other)
        st.button(
            "Example: “apple”",
            on_click=_take_example,
            type="tertiary",
            help=WORDS("example"),
        )
        with st.popover("View"):
            _view(recording)
    if second:
        _tell(source.model, second)
    options = [option for name, ((_, on), option, _) in SWITCHES.items() if state[name] == on]
    if residual.norm_place(stream) != "post":
        options = [each for each in options if each != "sums"]
    sites = states(stream, "sums" in options)
    stage = url_state.whole_number("stage", len(sites) + 1)  # the address counts from 1
    site = sites[stage - 1] if stage else ""
    axis = state.anchors if state.plane == "Words" and is_read else ""
    return Choices(source, token, second, mate, site, stream.name, ", ".join(options), axis)


def _second_field(own: str) -> None:
    """The field of the second text."""
    st.text_input(
        "The same word in another context",
        key="second",
        persist_state="session",
        on_change=_forget_mate,
        placeholder=own or "Type a sentence that shares a word with the first",
        width=480,
    )


def _mate(stream: Stream, token: int, other: Stream | None) -> int | None:
    """The word in the second text, with the menu that chooses it."""
    if other is None:
        return None
    tokens = other.tokens
    mate = url_state.whole_number("mate", len(tokens))
    match = embeddings.matching_token(stream, token, other) if mate is None else mate
    st.selectbox(
        "Word in text 2",
        range(len(tokens)),
        index=None,
        format_func=numbered(tokens).__getitem__,
        placeholder="none",
        width=150,
        **bind("mate", "mate shown", match, lambda at: "" if at is None else str(at)),
    )
    return mate


def _own_second(first: Recording, token: int | None) -> str:
    """A sentence that has the selected word in another context, for readers who have typed none; ""
    where there is none."""
    stream, text = first.streams[0], first.text
    start, end = stream.spans[token] if token is not None else (0, 0)
    word = text[max(0, start) : max(0, end)].strip()
    if token is not None and not word:
        return ""
    read = words_in(stream, text)
    whole = [label for label, size in zip(read.labels, read.sizes) if size == 1]
    other = other_sentence(text, word, EXAMPLES.values(), whole)
    if not other:
        return ""
    there = loaded(first).record(other).streams[0]
    if token is None:
        visible = embeddings.visible_tokens(stream, False)
        token = embeddings.default_token(stream, there, visible)
    return other if embeddings.matching_token(stream, token, there) is not None else ""


def _tell(model: str, second: str) -> None:
    """Say where a second text did not fit the model, or fits no link."""
    there = loaded(model).record(second)
    if there.dropped:
        size = there.model.n_positions
        st.warning(
            WORDS(
                "second_too_long",
                n=there.dropped + size,
                model=models.markdown_name(model),
                most=size,
                dropped=there.dropped,
            )
        )
    if not url_state.fits_address(second):
        st.info(WORDS("second_fits_no_link"))


def _view(recording: Recording) -> None:
    """The View menu."""
    state = st.session_state
    pick("Texts", CONTEXTS, "contexts", on_change=_forget_mate)
    if len(recording.streams) > 1:
        titles = {"": "Encoder: reads", "decoder": "Decoder: writes"}
        pick("Stream", titles, "stream", on_change=_forget_place)
    for name, (values, _, label) in SWITCHES.items():
        if name == "sums" and residual.norm_place(recording.streams[0]) != "post":
            continue
        after = _forget_site if name == "sums" else None
        is_on = state[name] == values[1]
        st.toggle(label, **bind(name, f"switch {name}", is_on, values.__getitem__, after))
    st.toggle(
        "First axis of the plane through the anchor words",
        **bind("plane", "switch plane", state.plane == "Words", PLANES.__getitem__),
    )


def anchor_words(on: Choices) -> None:
    """The word beside two groups of anchor words."""
    state = st.session_state
    if "fold anchors" not in state:
        state["fold anchors"] = any(state[name] != url_state.default(name) for name in ANCHORED)
    with st.expander("Anchor words", key="fold anchors", on_change="rerun") as box:
        if not box.open:
            return
        st.text_input(
            "Anchor words, two groups: a, b / c, d",
            key="anchors",
            persist_state="session",
            help=WORDS("anchors", frame=embeddings.frame_word("…"), most=embeddings.MOST_WORDS),
        )
        measures = [
            each for each in embeddings.MEASURES if on.second or each != embeddings.CONTEXTS
        ]
        measure = url_state.one_of("curve", tuple(measures))
        pick("Measure", measures, "curve", bare=True)
        make = partial(
            embeddings_panels.anchors, on.source, **on.word, words=state.anchors, measure=measure
        )
        show_panel(make, "anchor words")


def in_space(on: Choices) -> None:
    """The paths in three dimensions; Plotly is imported only when they are wanted."""
    bound = bind("space", "fold space", st.session_state.space == "3-D", SPACES.__getitem__)
    with st.expander("In three dimensions", **bound) as box:
        if not box.open:
            return

        word = on.word
        groups = embeddings.groups(on.axis)
        try:
            path = embeddings_panels.select_word(
                on.source,
                word["token"],
                on.second,
                on.mate,
                on.site,
                on.stream,
                on.options,
                groups,
            )
        except ValueError as reason:
            st.info(literal(str(reason)))
            return
        error = embeddings.mean_error(path.scene, 3, path.site)
        output.caption(WORDS("space", site=path.site_title, share=1 - error))
        space_chart(path)


def _forget_site() -> None:
    st.session_state.stage = ""


def _take_example() -> None:
    state = st.session_state
    if state.text != EXAMPLES[EXAMPLE[0]]:
        current_recording.take_text(EXAMPLES[EXAMPLE[0]])
    state.second, state.contexts = EXAMPLES[EXAMPLE[1]], "Two"
    state.plane, state.frame, state.token = "Words", "Close", ""
    state["fold anchors"] = True
    _forget_mate()


def _forget_mate() -> None:
    st.session_state.mate = ""


def _forget_place() -> None:
    st.session_state.token = st.session_state.stage = ""
    _forget_mate()
