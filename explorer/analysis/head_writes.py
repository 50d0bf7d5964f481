"""What each head wrote into the residual stream: how long it is, and that all of it is what
attention wrote.

Everything is computed in float64 from a Recording; W_O, cut by head (layer, head, d_head, d_model),
and its bias (layer, d_model) are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.analysis import edited
from explorer.analysis.residual import Column, Grid, Measure, at
from models.recording import Attention, Recording, Stream

HEADS = (
    Measure(
        "Length",
        "the length of what a head wrote: its z through its slice of W_O",
        "",
        2,
        spread=True,
    ),
    Measure("Share of heads", "a head’s length, of all lengths of its layer together", "", 3),
)


Outputs = Mapping[str, tuple[np.ndarray, np.ndarray]]


def head_grid(recording: Recording, stream: Stream, measure: str, outputs: Outputs) -> Grid:
    """A measure of HEADS for every token of a stream and every head that writes there; outputs as
    in `heads_error`. Raises StopIteration for a measure that does not exist."""
    of = next(each for each in HEADS if each.name == measure)
    columns, values = [], []
    own = [each for each in recording.attention if each.query == stream.name]
    norms = {each.name: _norms(recording, each, outputs[each.name][0]) for each in own}
    for layer in range(recording.model.n_layer):
        for attention in own:
            of_layer = norms[attention.name][layer]  # (head, token)
            if measure == "Share of heads":
                together = of_layer.sum(axis=0)
                of_layer = of_layer / np.where(together > 0, together, 1)
            across = attention.query != attention.key
            kind = "" if attention.name == "self" else " cross" if across else " self"
            group = f"Layer {layer}{kind}"
            for head, row in enumerate(of_layer):
                columns.append(Column(group, f"{head}", f"layer {layer}{kind}, head {head}"))
                values.append(row)
    return Grid(of, tuple(columns), np.stack(values, axis=1))


def heads_error(recording: Recording, stream: Stream, outputs: Outputs) -> float:
    """The largest |sum of all heads' writes + b_O - what attention wrote|, over all tokens and
    layers of a stream.

    outputs: by attention W_O cut by head, (layer, head, d_head, d_model), and b_O (layer, d_model).
    """
    worst = 0.0
    for attention in recording.attention:
        if attention.query != stream.name:
            continue
        w_o, bias = (each.astype(np.float64) for each in outputs[attention.name])
        for layer, z in enumerate(_z(recording, attention)):
            said = np.einsum("hqd,hdm->qm", z, w_o[layer], optimize=True) + bias[layer]
            wrote = at(stream, edited.site_of(attention, layer))
            worst = max(worst, float(np.abs(said - wrote).max()))
    return worst


def _norms(recording: Recording, attention: Attention, w_o: np.ndarray) -> np.ndarray:
    """|z W_O slice| of every head: (layer, head, query). w_o (layer, head, d_head, d_model)."""
    z, w_o = _z(recording, attention), w_o.astype(np.float64)
    gram = w_o @ w_o.swapaxes(-1, -2)  # (layer, head, d_head, d_head)
    return np.sqrt(np.maximum(((z @ gram) * z).sum(-1), 0))


def _z(recording: Recording, attention: Attention) -> np.ndarray:
    """What the heads take of the values, (layer, head, query, d_head)."""
    z = np.stack(
        [
            pattern.astype(np.float64) @ v.astype(np.float64)
            for pattern, v in zip(attention.pattern, attention.v)
        ]
    )
    for at_head in edited.silent(recording, attention.name):
        z[at_head] = 0
    return z
