"""The residual stream in two pictures: a map of one number by token and place, and one token's way
through it beside all others'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.components.figure_caption import Picture


class QuantityScale(Protocol):
    """What a number is, its unit and digits, whether it has two signs, and the ends of its scale,
    None for the largest here."""

    @property
    def name(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def digits(self) -> int: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def diverging(self) -> bool: ...


class ColumnLabel(Protocol):
    """A column: the group it stands in, its short label there, and its full name."""

    @property
    def group(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def name(self) -> str: ...


class HeatmapPayload(Protocol):
    """One measure of every token: values (token, column)."""

    @property
    def measure(self) -> QuantityScale: ...
    @property
    def columns(self) -> Sequence[ColumnLabel]: ...
    @property
    def values(self) -> np.ndarray: ...


def chart(
    grid: HeatmapPayload,
    tokens: Sequence[str],
    special: Sequence[bool] | np.ndarray,
    picture: Picture,
    *,
    log: bool = False,
    hint: str = "click a row to follow its token.",
) -> bytes:
    """The map. It holds no selection, so that following another token sends none of it again.
    `hint` says what a click does."""
    low, high = scale(grid, log)
    header = {
        "kind": "chart",
        "hint": hint,
        "tokens": list(tokens),
        "special": [bool(each) for each in special],
        "low": low,
        "high": high,
        "log": log,
        **picture.plain(),
        **_of(grid),
    }
    return codec.encode(header, {"values": grid.values.astype(np.float32)})


def followed(
    grid: HeatmapPayload,
    tokens: Sequence[str],
    chosen: int,
    picture: Picture,
    *,
    bars: bool = False,
    log: bool = False,
) -> bytes:
    """One token's row of a grid, with the median, the least and the largest of all tokens at each
    column. `picture`: the map that it belongs to."""
    values = grid.values
    filled = np.where(np.isnan(values).all(axis=0), 0, values)
    header = {
        "kind": "followed",
        "chosen": chosen,
        "label": tokens[chosen],
        "n": len(tokens),
        "bars": bars,
        "log": log,
        **picture.plain(),
        "picture": picture.token,
        "token": f"{picture.token} followed {chosen}",
        "file": f"{picture.file}-token{chosen}",
        **_of(grid),
    }
    blocks = {
        "values": values[chosen],
        "median": np.nanmedian(filled, axis=0),
        "least": np.nanmin(filled, axis=0),
        "most": np.nanmax(filled, axis=0),
    }
    return codec.encode(header, {name: block.astype(np.float32) for name, block in blocks.items()})


def scale(grid: HeatmapPayload, log: bool) -> tuple[float, float]:
    """The two ends of a grid's colour scale: the measure's own, else 0 and the largest number here,
    the same on both sides for two signs.

    log: from the smallest number above 0, at most a thousandth of the largest.
    """
    measure = grid.measure
    most = float(np.nanmax(np.abs(grid.values), initial=0.0)) or 1.0
    high = most if measure.high is None else measure.high
    if log:
        return max(
            float(np.min(grid.values, where=grid.values > 0, initial=most)), most / 1000
        ) if (grid.values < most).any() else most / 10, most
    return (-high if measure.diverging else measure.low or 0.0), high


def _of(grid: HeatmapPayload) -> dict:
    measure = grid.measure
    return {
        "measure": {
            "name": measure.name,
            "meaning": measure.meaning,
            "unit": measure.unit,
            "digits": measure.digits,
            "diverging": measure.diverging,
        },
        "columns": [[column.group, column.label, column.name] for column in grid.columns],
    }


_mount = st.components.v2.component(
    "headlight.residual", html='<div class="residual"></div>', js=loader("residual")
)


def show(data: bytes, key: str, on_token: Callable[[], None]) -> None:
    """Draw what `chart` or `followed` made. When the callback runs,
    `st.session_state[key]["token"]` is the token to follow."""
    _mount(data=data, key=key, on_token_change=on_token)
