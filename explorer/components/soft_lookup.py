"""One row of attention as a soft lookup beside the hard one, with a temperature that slides one
into the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture

COLDEST, HOTTEST = 0.01, 100.0  # between exactly 0 and exactly infinity


@dataclass(frozen=True, eq=False)
class LookupRow:
    """A query's row: scores and allowed (key), values (key, d_head), and what the keys are
    called."""

    scores: np.ndarray
    allowed: np.ndarray
    values: np.ndarray
    keys: Sequence[str]
    special: Sequence[bool]


def payload(row: LookupRow, label: str, temperature: float, picture: Picture) -> bytes:
    """What the browser needs to make softmax(scores / T) and its mixture of values at any
    temperature T from 0 to infinity. label: of the query. The picture's name is the same whatever
    the temperature."""
    header = {
        "keys": list(row.keys),
        "special": [bool(each) for each in row.special],
        "label": label,
        "temperature": "inf" if np.isinf(temperature) else float(temperature),
        "coldest": COLDEST,
        "hottest": HOTTEST,
        **picture.plain(),
    }
    blocks: dict[str, np.ndarray] = {
        "scores": row.scores.astype(np.float32),
        "allowed": row.allowed.astype(np.uint8),
        "values": row.values.astype(np.float32),
    }
    return codec.encode(header, blocks)


_mount = st.components.v2.component(
    "headlight.lookup", html='<div class="lookup"></div>', js=loader("soft_lookup")
)


def show(data: bytes, key: str, on_temperature: Callable[[], None]) -> None:
    """Draw it. When the callback runs, `st.session_state[key]["temperature"]` is the chosen
    temperature, a number or "inf"."""
    _mount(data=data, key=key, on_temperature_change=on_temperature)
