"""Attention of one token in every head: the sentence tinted by one of them or by their mean, and
all of them as rows of a map."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

MEAN = ""  # the name of the mean over all heads


def payload(
    rows: np.ndarray,
    tokens: Sequence[str],
    tones: Sequence[str],
    *,
    chosen: str,
    who: str,
    token: str,
) -> bytes:
    """Encode the attention of one token for the browser.

    rows (layer, head, key), each sums to 1; tokens (key) and their tones, "" or "said"; chosen:
    "layer.head" or MEAN; who: the token that looks; token: the name of this picture.
    """
    layers, heads, keys = rows.shape
    mean = rows.mean(axis=(0, 1), dtype=np.float64)
    header = {
        "token": token,
        "who": who,
        "chosen": chosen,
        "tokens": list(tokens),
        "tones": list(tones),
        "names": [MEAN, *(f"{layer}.{head}" for layer in range(layers) for head in range(heads))],
    }
    return codec.encode(
        header, {"weights": np.concatenate((mean[None], rows.reshape(-1, keys))).astype(np.float32)}
    )


_mount = st.components.v2.component(
    "headlight.looks",
    html='<div class="looks"></div>',
    js=loader("attention_row"),
)


def show(data: bytes, key: str, on_choice: Callable[[], None]) -> None:
    """Draw it. The chosen row stands in `st.session_state[key]["row"]`, as "layer.head" or MEAN,
    when `on_choice` is called."""
    _mount(data=data, key=key, on_row_change=on_choice)
