"""One row of attention as a soft lookup beside the hard one, with a temperature that slides one into the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from explorer.components import wire
from explorer.components.bundle import loader

COLDEST, HOTTEST = 0.01, 100.0  # between exactly 0 and exactly infinity


def payload(
    scores: np.ndarray,
    allowed: np.ndarray,
    values: np.ndarray,
    keys: Sequence[str],
    special: Sequence[bool],
    *,
    label: str,
    temperature: float,
    title: str,
    caption: Sequence[str],
    file: str,
    token: str,
) -> bytes:
    """What the browser needs to make softmax(scores / T) and its mixture of values at any temperature T.

    scores and allowed (key), values (key, d_head), label of the query. temperature from 0 to infinity. token names the picture, whatever the temperature.
    """
    header = {
        "token": token,
        "keys": list(keys),
        "special": [bool(each) for each in special],
        "label": label,
        "temperature": "inf" if np.isinf(temperature) else float(temperature),
        "coldest": COLDEST,
        "hottest": HOTTEST,
        "title": title,
        "caption": list(caption),
        "file": file,
    }
    return wire.encode(
        header,
        {
            "scores": scores.astype(np.float32),
            "allowed": allowed.astype(np.uint8),
            "values": values.astype(np.float32),
        },
    )


_mount = st.components.v2.component(
    "headlight.lookup", html='<div class="lookup"></div>', js=loader("lookup")
)


def show(data: bytes, key: str, on_temperature: Callable[[], None]) -> None:
    """Draw it. When the callback runs, `st.session_state[key]["temperature"]` is the chosen temperature, a number or "inf"."""
    _mount(data=data, key=key, on_temperature_change=on_temperature)
