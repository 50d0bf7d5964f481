"""A step of the tour: its headline and sentence, one picture of large type that fits the screen,
and the way to the other steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.analysis.figures import Figure, as_plain
from explorer.components import codec
from explorer.components.bundle import loader


@dataclass(frozen=True)
class StepPayload:
    """Content of a step of the tour. at: which of the steps called `names` it is. says: its
    sentence before the number, the number, and after it. figures: side by side; none where there is
    nothing to show."""

    at: int
    names: tuple[str, ...]
    title: str
    says: tuple[str, str, str]
    figures: tuple[Figure, ...]


_mount = st.components.v2.component(
    "headlight.tour", html='<div class="tour"></div>', js=loader("tour")
)


def payload(step: StepPayload, token: str) -> bytes:
    """Encode a step of the tour for the browser. token: the name of the picture, for whoever waits
    for it."""
    blocks: dict[str, np.ndarray] = {}
    return codec.encode(as_plain(step, blocks) | {"token": token}, blocks)


def show(data: bytes, key: str, on_go: Callable[[], None]) -> None:
    """Draw what `payload` made. The step that the reader goes to stands in
    `st.session_state[key]["go"]` when `on_go` is called."""
    _mount(data=data, key=key, on_go_change=on_go)
