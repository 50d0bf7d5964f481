"""Learning curves of models beside each other, as a Plotly figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from explorer.figures.residual import lines

GREY = "#8a8177"  # stands out on a light and on a dark page alike


def curves(series: Sequence[tuple[str, np.ndarray]], about: Sequence[str]) -> go.Figure:
    """Loss by step, one line for each (name, (look, 2) of step and loss), the first thick and grey:
    the one the others are measured against.

    They need not have looked at the same steps. `about`: title, then lines.
    """
    steps = np.unique(np.concatenate([curve[:, 0] for _, curve in series]))
    spread = []
    for name, curve in series:
        losses = np.full(len(steps), np.nan)
        losses[np.searchsorted(steps, curve[:, 0])] = curve[:, 1]
        spread.append((name, losses))
    figure = lines(spread, about, steps, "step", "loss, nats", log=False)
    figure.update_traces(connectgaps=True)
    figure.data[0].line.update(color=GREY, width=5)
    return figure
