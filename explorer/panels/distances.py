"""The panel on the distance over which heads attend: the nearest head and the farthest."""

from __future__ import annotations

import numpy as np

from explorer.analysis.terminology import mask_reason
from explorer.figures.csv import Columns
from explorer.figures.formatting import fixed, power
from explorer.figures.kinds import MOST_TOKENS, Facts, Matrix, truncation_note, window
from explorer.figures.kinds import matrix as matrix_values
from explorer.panels import spec
from explorer.panels.choice import OPENS
from explorer.panels.selection import FirstAttention, Selection, select
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.runtime.run import Run

CONCEPT = "distances"


@spec.panel
def near_and_far(run: Run, attention: FirstAttention = OPENS) -> Panel:
    """The head with the shortest mean attention distance and the one with the longest as two
    matrices on one scale.

    Raises ValueError for an attention between two texts, which have no distance, and for a text in
    which fewer than two heads have one.
    """
    selection = select(run, attention=attention)
    words, of = sentences(CONCEPT, "near_and_far"), selection.attention
    if selection.is_across:
        raise ValueError(words("across"))
    distance, share = selection.facts.reach(of.name)
    if np.isfinite(distance).sum() < 2:
        raise ValueError(words("none"))
    near, far = (
        tuple(map(int, np.unravel_index(find(distance), distance.shape)))
        for find in (np.nanargmin, np.nanargmax)
    )
    places = window(of.pattern.shape[2], _middle(selection), MOST_TOKENS)
    cells = np.ix_(places, places)
    high = max(float(of.pattern[at][cells].max()) for at in (near, far))
    figures = tuple(
        Matrix(
            title=words(name, layer=at[0], head=at[1], distance=fixed(float(distance[at]), 1)),
            note=truncation_note(len(places), of.pattern.shape[2]),
            rows=tuple(selection.axes.rows[each] for each in places),
            columns=tuple(selection.axes.keys[each] for each in places),
            values=matrix_values(of.pattern[at][cells], of.allowed[at[0]][cells]),
            high=high,
            sides=("query", "key"),
            missing=mask_reason(of.allowed[at[0]]),
        )
        for name, at in (("near", near), ("far", far))
    )
    words_at = np.flatnonzero(~np.asarray(selection.axes.special, bool))
    token = int(words_at[-1]) if len(words_at) else len(of.pattern[0, 0]) - 1
    apart = np.abs(np.arange(of.pattern.shape[-1]) - token)
    own = Facts(
        facts=(
            (
                power(float(of.pattern[(*far, token)] @ apart)),
                words("own", token=selection.axes.rows[token], layer=far[0], head=far[1]),
            ),
        )
    )
    slots = {
        **{"near_layer": near[0], "near_head": near[1], "far_layer": far[0], "far_head": far[1]},
        **{"short": fixed(float(distance[near]), 1), "long": fixed(float(distance[far]), 1)},
        **{"n": int(np.isfinite(distance).sum()), "heads": f"{distance.size:,}"},
    }
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(*figures, own),
        table=_every_head(distance, share),
        details=words.lines("details", **slots),
        caption=(words("caption"),),
        file="near-and-far",
        formulas=("mean-distance",),
        at={"layer": far[0], "head": far[1], "token": token},
    )


def _middle(selection: Selection) -> list[int]:
    """The words of the text, around which a long one is cut."""
    words = np.flatnonzero(~np.asarray(selection.axes.special, bool))
    return [int(words[len(words) // 2])] if len(words) else [0]


def _every_head(distance: np.ndarray, share: np.ndarray) -> Columns:
    """The distance of every head, and the share of its attention that it is measured on."""
    layer, head = np.indices(distance.shape)
    return {
        "layer": layer.ravel(),
        "head": head.ravel(),
        "mean distance": distance.ravel(),
        "measured on": share.ravel(),
    }
