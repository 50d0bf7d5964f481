"""What of the Residual page is on screen: a stream of a recording, the token that is followed, and
how its pictures are called."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from explorer.analysis import residual
from explorer.analysis.attention import TONES
from explorer.analysis.caption import caption
from explorer.analysis.terminology import recording_norm_name
from explorer.components.figure_caption import Picture
from explorer.layout import controls, export_menu
from explorer.state import cache, models, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from models.recording import Recording, Stream


@dataclass(frozen=True, eq=False)
class ResidualState:
    """One stream on screen. It is made anew in every run and nowhere kept."""

    source: Run
    recording: Recording
    stream: Stream

    def kept(self, what: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Something computed of the stream, kept beside its recording."""
        return cache.cached_for(self.recording, (self.stream.name, *what), make)

    @property
    def norm(self) -> str:
        """What the norms of this recording are called."""
        return recording_norm_name(
            self.recording, models.capabilities(self.recording.model.name).rms
        )

    @property
    def token(self) -> int:
        """The token that is followed: the one chosen, or else the word that the first page opens
        on, or else the one that was turned furthest."""
        asked = url_state.whole_number("token", len(self.stream.tokens))
        if asked is not None:
            return asked
        for one in self.recording.attention:
            if one.query == self.stream.name:
                word = controls.opening_word(self.recording, one)
                if word is not None:
                    return word
        return self.kept(("most turned",), lambda: residual.most_turned_token(self.stream))

    def numbers(self, what: str, needs: tuple[str, ...], *lines: str) -> None:
        """What lines of Python give of this stream, which is `stream` in them."""
        export_menu.offer_numbers_code(what, (self.source,), needs, (self._setup_lines, *lines))

    def more(self, needs: tuple[str, ...], *lines: str) -> None:
        """The same behind the lines that make the page's file."""
        export_menu.offer_more_code(needs, self._setup_lines, *lines)

    @property
    def _setup_lines(self) -> str:
        return f"stream = recording.stream({self.stream.name!r})"

    def called(self, token: int) -> str:
        """A token with its place, as Markdown."""
        return f"**{literal(self.stream.tokens[token])}** (token {token})"

    def caption(self, *lines: str) -> tuple[str, ...]:
        """What a figure must say of model and text."""
        of = f"{self.stream.name} stream" if len(self.recording.streams) > 1 else ""
        return caption(self.recording, *lines, subject=of, target="Output")

    def picture(self, title: str, *lines: str, file: str, what: tuple[Hashable, ...]) -> Picture:
        """How a picture is called. lines: what it shows; file: how its files are told from
        others."""
        several = (self.stream.name,) if len(self.recording.streams) > 1 else ()
        name = "-".join(("headlight", self.recording.model.name, *several, file))
        token = cache.picture_name(self.recording, self.stream.name, *what)
        return Picture(title, self.caption(*lines), name, token)


def pick(
    key: str, measures: tuple[residual.StreamQuantity, ...], spread: tuple[str, ...] = TONES
) -> tuple[str, bool]:
    """Which number is drawn, and whether on a logarithmic scale, where that has a meaning."""
    names = tuple(measure.name for measure in measures)
    url_state.one_of(key, names)
    told = "\n".join(f"- **{measure.name}**: {measure.meaning}" for measure in measures)
    room = st.container(key=f"after-{key}")
    name = controls.pick("What the colour is", names, key, help=told, container=room)
    if not next(measure for measure in measures if measure.name == name).spread:
        return name, False
    st.session_state["logarithmic"] = url_state.one_of("spread", spread) == "Log"
    return name, room.toggle(
        "Logarithmic scale",
        key="logarithmic",
        on_change=_take_scale,
        help=(
            "Tells small values apart where one token, often a special one, is far larger "
            "than all others."
        ),
    )


def pick_place(places: dict[str, str], label: str) -> tuple[str, str]:
    """The name and the site of the sub-layer or LayerNorm chosen by the reader, the first where
    none is."""
    names = {site: name for name, site in places.items()}
    url_state.one_of("block", tuple(names))
    site = st.selectbox(
        label,
        tuple(names),
        key="block",
        format_func=lambda site: names[site][0].upper() + names[site][1:],
        persist_state="session",
        width=320,
    )
    return names[site], site


def not_shown(on: ResidualState, what: str, why: str) -> None:
    """For a model in its own code: what it does not show and why, and what there is to look at."""
    name = models.markdown_name(on.recording.model.name)
    st.info(f"{name} does not show {what}: {why}. “What was written” works for it.")


def _take_scale() -> None:
    st.session_state.spread = "Log" if st.session_state["logarithmic"] else "Linear"
