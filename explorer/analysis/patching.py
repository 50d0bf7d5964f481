"""Activation patching in numbers: which two words tell two runs apart, and what each part of the
other run, put into this one, does to the difference of their logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from explorer.analysis.csv import Columns
from explorer.analysis.residual import Column, Measure
from models.prediction import softmax

FEWEST_APART = 0.01  # of two logit differences: closer ones are no ground to measure an effect by
EFFECT = (
    "how far patching this part moves the logit difference towards the other run’s: "
    "(patched − clean) / (donor − clean)"
)
RAW = "what patching this part adds to the logit difference; the two runs lie too close for a share"


@dataclass(frozen=True, eq=False)
class Map:
    """Effects by place: values (row, column), NaN where none was measured; `rows` names the rows.
    normalised: as `effect`, else differences of logits."""

    measure: Measure
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    values: np.ndarray
    normalised: bool


def contrast(own: np.ndarray, donor: np.ndarray) -> tuple[int, int]:
    """The two words (ids) whose logit difference tells two runs apart: the one's likeliest word and
    the donor's.

    Where both say the same, the second is the word that the donor's run raises most in probability.
    own, donor (id): scores.
    """
    p, q = softmax(own), softmax(donor)
    word, other = int(p.argmax()), int(q.argmax())
    if word == other:
        rise = q - p
        rise[word] = -inf
        other = int(rise.argmax())
    return word, other


def effect(value: float, clean: float, donor: float) -> float:
    """(patched - clean) / (donor - clean): 0 where a patch does nothing, 1 where it brings all of
    the donor's answer. NaN where the two runs lie too close for that."""
    return (value - clean) / (donor - clean) if abs(donor - clean) >= FEWEST_APART else float("nan")


def effects_by_head(
    effects: Sequence[tuple[tuple[int, int], float]],
    shape: tuple[int, int],
    clean: float,
    donor: float,
) -> Map:
    """A sweep's effects as a map of layers down and heads across. effects: ((layer, head), logit
    difference), any number of them."""
    rows = tuple(f"layer {layer}" for layer in range(shape[0]))
    columns = tuple(Column("heads", f"{head}", f"head {head}") for head in range(shape[1]))
    return _map(dict(effects), rows, columns, clean, donor)


def effects_by_site(
    effects: Sequence[tuple[tuple[str, int], float]],
    tokens: Sequence[str],
    sites: Sequence[str],
    clean: float,
    donor: float,
) -> Map:
    """A sweep's effects as a map of tokens down and sites across. effects: ((site, token), logit
    difference), any number of them."""
    at = {site: column for column, site in enumerate(sites)}
    placed = {(token, at[site]): value for (site, token), value in effects if site in at}
    return _map(placed, tuple(tokens), tuple(map(_column, sites)), clean, donor)


def _column(site: str) -> Column:
    layer, dot, place = site.partition(".")
    if dot and layer.isdigit():
        return Column(f"layer {layer}", place.partition(".")[0], site)
    return Column("end" if site == "final.normed" else "input", layer, site)


def _map(
    effects: Mapping[tuple[int, int], float],
    rows: tuple[str, ...],
    columns: tuple[Column, ...],
    clean: float,
    donor: float,
) -> Map:
    """Logit differences by (row, column) as a map; what lies outside it is left out."""
    normalised = abs(donor - clean) >= FEWEST_APART
    values = np.full((len(rows), len(columns)), np.nan)
    for (row, column), value in effects.items():
        if row < len(rows) and column < len(columns):
            values[row, column] = effect(value, clean, donor) if normalised else value - clean
    most = float(np.nanmax(np.abs(values), initial=0.0)) if not np.isnan(values).all() else 0.0
    high = max(1.0, most) if normalised else most or 1.0
    name, meaning = ("Effect", EFFECT) if normalised else ("Added", RAW)
    measure = Measure(name, meaning, "", low=-high, high=high, diverging=True)
    return Map(measure, rows, columns, values, normalised)


def strongest(of: Map, read: int | None = None, row: int | None = None) -> tuple[int, int] | None:
    """The cell (row, column) of the largest effect in size, None before any is measured.

    `read`: a row that does not count, that of the token read off, whose last state holds the whole
    answer; `row`: the one row that counts.
    """
    sizes = np.abs(of.values)
    if row is not None and row < len(sizes) and not np.isnan(sizes[row]).all():
        return row, int(np.nanargmax(sizes[row]))
    if read is not None and read < len(sizes) and len(sizes) > 1:
        sizes[read] = np.nan
    if np.isnan(sizes).all():
        return None
    at, column = divmod(int(np.nanargmax(sizes)), sizes.shape[1])
    return at, column


def map_columns(of: Map) -> Columns:
    """A map as named columns, its rows' names first."""
    return {
        "": [f"{at} {name}" for at, name in enumerate(of.rows)],
        **{column.name: of.values[:, at] for at, column in enumerate(of.columns)},
    }
