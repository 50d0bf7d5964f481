"""The sum of a logit, in the order of the network."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader


def sum_up(groups: Sequence[tuple[str, float]], total: float, token: str) -> bytes:
    """What the browser needs to add up a logit: groups (name, value) in the order of the network,
    and the sum of all."""
    header = {
        "role": "sum",
        "token": token,
        "groups": [{"name": name, "value": value} for name, value in groups],
        "total": total,
    }
    return codec.encode(header, {})


_sum = st.components.v2.component(
    "headlight.lens_sum", html='<div class="lens sums"></div>', js=loader("logit_lens")
)


def show_sum(data: bytes, key: str) -> None:
    """Draw the sum."""
    _sum(data=data, key=key)
