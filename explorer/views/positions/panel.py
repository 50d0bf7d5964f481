"""What all screens share: sliders that stand in the address, the choice of stream and head, a
chart, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import positions
from explorer.analysis.csv import Columns
from explorer.layout.controls import pick_head
from explorer.layout.output import data_table, offer_csv
from explorer.state import cache, models, url_state
from explorer.text.markdown_escape import literal
from explorer.text.positions import adds_none
from explorer.views.positions.page_state import PositionSource

DEFAULT_PLACES = 64
SLIDER = 260  # pixels, at most the width of the screen
# A picture's name, its caption, and its numbers when they are wanted.
Table = tuple[str, Sequence[str], Callable[[], Columns]]


def row(name: str = "") -> DeltaGenerator:
    """Widgets side by side, below each other where the screen is narrow; on a phone those that have
    a name stand behind the picture that follows them."""
    key = f"after-{name}" if name else None
    return st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key=key)


def number(
    label: str, choice: str, low: int, high: int, default: int, step: int = 1, words: str = ""
) -> int:
    """A slider of whole numbers that stands in the address as `choice`."""
    asked = url_state.whole_number(choice, high + 1)
    value = default if asked is None or asked < low or (asked - low) % step else asked
    key = f"{choice} slider"
    st.session_state[key] = value
    return st.slider(
        label,
        low,
        high,
        step=step,
        key=key,
        on_change=_take_number,
        args=(choice, default),
        help=words or None,
        width=SLIDER,
    )


def _take_number(choice: str, default: int) -> None:
    value = st.session_state[f"{choice} slider"]
    st.session_state[choice] = "" if value == default else str(value)


def sizes(source: PositionSource) -> tuple[int, int]:
    """How many positions and how wide, chosen; at first as wide as the model."""
    own = source.card.d_model
    d = number(
        "Width of the table, d_model",
        "width",
        2,
        positions.WIDEST,
        own,
        2,
        f"Sines and cosines come in pairs, so it is even. {source.model} has {own}.",
    )
    return number("Positions", "places", 2, positions.LONGEST, DEFAULT_PLACES), d


def pair_of(d: int) -> int:
    """The pair of dimensions, chosen; the paper's i."""
    if d == 2:
        st.caption("With two dimensions there is one pair, i = 0.")
        return 0
    last = d // 2 - 1
    words = "Pair i is dimensions 2i (sine) and 2i + 1 (cosine)."
    return number("Pair of dimensions, i", "pair", 0, last, min(d // 12, last), words=words)


def pick_stream(source: PositionSource) -> None:
    """The stream on screen; asked for where there are two."""
    names = [stream.name for stream in source.plain.streams]
    if len(names) > 1:
        st.session_state["stream choice"] = source.stream_name
        st.segmented_control(
            "Stream",
            names,
            key="stream choice",
            wrap=True,
            required=True,
            on_change=_take_stream,
            help=(
                "The encoder reads the source, the decoder the translation: each adds positions "
                "of its own."
            ),
        )


def _take_stream() -> None:
    st.session_state.stream = st.session_state["stream choice"]


def head(source: PositionSource) -> tuple[int, int]:
    """The head, chosen; at first the one of layer 0 that positions move most."""
    size = source.card.n_layer, source.card.n_head
    layer, at = url_state.whole_number("layer", size[0]), url_state.whole_number("head", size[1])
    if layer is None or at is None:
        layer, at = (
            0,
            cache.cached_for_recordings(
                source.model,
                ("most positional", source),
                lambda: positions.most_positional_head(*source.both(), source.stream_name),
            ),
        )
    pick_head(size, (layer, at))
    return layer, at


def chart(figure: Any, key: str, alt: str, file: str) -> None:
    """A figure, which can be saved as SVG."""
    image = {"format": "svg", "filename": f"headlight-{file}"}
    st.plotly_chart(
        figure, key=key, config={"displaylogo": False, "toImageButtonOptions": image}, alt=alt
    )


def tables(*of: Table, file: str, key: str = "numbers") -> None:
    """The numbers behind every picture of a screen, as a table; as CSV in the Export menu."""
    for name, about, make in of:
        offer_csv(
            make, about, f"headlight-{file}-{name.lower().replace(' ', '-')}", f"{name} as CSV"
        )
    with st.expander("Every number as a table"):
        names = [name for name, _, _ in of]
        chosen = names[0]
        if len(names) > 1:
            chosen = st.segmented_control(
                "Table",
                names,
                default=names[0],
                key=f"{key} of {names}",
                wrap=True,
                required=True,
                label_visibility="collapsed",
            )
        name, about, make = next(each for each in of if each[0] == chosen)
        columns = make()
        st.caption("  \n".join(map(literal, about)))
        data_table(columns, about[0], **_forms(columns))


def _forms(columns: Columns) -> dict[str, str]:
    """How a table writes its numbers: differences as powers of ten, digits short, the rest in four
    places."""
    return {
        name: "%.2e" if "difference" in name else "%.1f"
        for name in columns
        if "difference" in name or "digits" in name
    }


def told_none(source: PositionSource) -> None:
    """Say that the model adds nothing, so that what follows is the paper's formula."""
    st.info(adds_none(models.title(source.model), source.within))
