"""Word vectors layer by layer: a word in two contexts, its nearest words, and anchor words."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from explorer.analysis.embeddings import groups, mean_error
from explorer.app.layout import current_recording, output, selection_bar
from explorer.app.layout.output import offer_recording
from explorer.app.layout.tab import Hand, view
from explorer.app.state.visit import visit
from explorer.figures.formatting import shortened
from explorer.panels import embeddings
from explorer.panels.choice import TRUE, as_taken
from explorer.panels.embeddings import WordPath
from explorer.screens.screen import Screen
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models.example_texts import EXAMPLES

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
    return html.escape(shortened(text, LONGEST_LABEL), quote=False)


# ---- the tab -------------------------------------------------------------------------

EXAMPLE = ("Apple and juice", "Apple devices")
# What of the choices is about the word, and the vectors on show.
WORD = (
    *("token", "texts", "second", "mate", "stage", "stream"),
    *("specials", "unit_length", "sums"),
)


def select_token(shown: Screen) -> None:
    """The menu of the token on show."""
    run = shown.run
    if run.text != visit.text:
        st.rerun()  # the example has put another text above, which only a whole run draws
    stream = run.recording().stream(shown.chosen["stream"])
    with st.container(width="content"):
        selection_bar.show_word(stream, embeddings.shown_token(run, as_taken(shown.chosen)))


def example_and_file(shown: Screen) -> None:
    """The button of the lecture notes' example, and all activations in the Export menu."""
    st.button("Example: “apple”", on_click=take_example, type="tertiary", help=WORDS("example"))
    offer_recording(shown.run)


def take_example() -> None:
    """The example's two texts, close up on a plane of anchor words."""
    state = st.session_state
    if visit.text != EXAMPLES[EXAMPLE[0]]:
        current_recording.take_text(EXAMPLES[EXAMPLE[0]])
    state.second, state.contexts = EXAMPLES[EXAMPLE[1]], "Two"
    state.plane = state.frame = TRUE
    state.token = state.mate = ""
    state.space = "Anchors"


def in_space(shown: Screen) -> None:
    """The paths in three dimensions; Plotly is imported only when they are wanted."""
    run, chosen = shown.run, as_taken(shown.chosen)
    word = {name: chosen[name] for name in WORD}
    anchors = groups(chosen["anchor_words"]) if chosen["anchored"] else ()
    try:
        path = embeddings.select_word(run, **word, groups=anchors)
    except ValueError as reason:
        st.info(literal(str(reason)))
        return
    error = mean_error(path.scene, 3, path.site)
    output.caption(WORDS("space", site=path.site_title, share=1 - error))
    space_chart(path)


view("embeddings", Hand(select=select_token, beside=example_and_file, folds={"3-D": in_space}))
