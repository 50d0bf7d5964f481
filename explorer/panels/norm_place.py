"""The panel on where a layer's norms stand: after each sum, or before each sub-layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import residual
from explorer.analysis.measure import text_places
from explorer.analysis.terminology import recording_norm_name
from explorer.figures.formatting import power
from explorer.figures.kinds import Branch, Branches, Chart, Series, Stack
from explorer.panels import spec
from explorer.panels.selection import model_name
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import Stream
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "norm_place"
WORDS = sentences(CONCEPT, "diagrams")
TWINS = {"twin-post": "twin-pre", "twin-pre": "twin-post"}  # which differ in this alone


@dataclass(frozen=True, eq=False)
class ByLayer:
    """Effect of a model's layers on a text: its name, the mean length of the states before the
    first layer and after each, and the norm of the gradient there, None for a model that shows
    none."""

    name: str
    lengths: np.ndarray
    gradient: np.ndarray | None


def depth_of(run: Run) -> ByLayer:
    """The states and gradients of a run's last stream by layer; the gradient is that of the
    likeliest word's logit at the last token of the text, over all tokens."""
    recording = run.recording()
    stream = recording.streams[-1]
    whole = residual.whole_layers(stream)
    states = [each for each in whole.sites if not each.endswith(".wrote")]
    at = text_places(stream)
    lengths = [np.linalg.norm(residual.site_vectors(whole, each)[at], axis=1) for each in states]
    try:
        gradients = loaded(recording).gradients(recording, stream.name, int(at[-1]))
    except ValueError:
        return ByLayer(model_name(recording), np.array(lengths).mean(1), None)
    norm = np.linalg.norm(gradients.norm, axis=1)
    ends = {site.partition(".")[0]: float(each) for site, each in zip(gradients.sites, norm)}
    return ByLayer(model_name(recording), np.array(lengths).mean(1), np.array([*ends.values()]))


@spec.panel
def diagrams(run: Run) -> Panel:
    """Post-LN and pre-LN as two diagrams of a layer, that of this model lit, beside the length of
    its states after each layer, mean over the tokens of the text, and the norm of the gradient
    there. A model with a twin that differs in this alone is drawn beside it.

    Raises ValueError for a model that shows no sub-layers or no norms, and for layers that differ.
    """
    recording = run.recording()
    stream = recording.streams[-1]
    place = residual.norm_place(stream)
    if place is None or not residual.sublayers(stream):
        raise ValueError(WORDS("none", model=model_name(recording)))
    if residual.mixes_norm_places(stream):
        raise ValueError(WORDS("mixed"))
    norm = recording_norm_name(recording, loaded(recording).capabilities.rms)
    depths = [depth_of(run)]
    if run.model in TWINS:
        depths.append(depth_of(Run(TWINS[run.model], run.text)))
    own = depths[0]
    slots = {
        **{"norm": norm, "n": len(own.lengths) - 1, "model": own.name},
        **{"first": power(float(own.lengths[0]), 3), "last": power(float(own.lengths[-1]), 3)},
    }
    charts = [_chart("lengths", [(each.name, each.lengths) for each in depths])]
    token_details: tuple[str, ...] = ()
    lines = [(each.name, each.gradient) for each in depths if each.gradient is not None]
    if own.gradient is not None:
        charts.append(_chart("gradient", lines))
        ends = (power(float(own.gradient[at]), 2) for at in (0, -1))
        token = stream.tokens[text_places(stream)[-1]]
        token_details = (WORDS("told", **dict(zip(("first", "last"), ends)), token=token),)
    return Panel(
        title=WORDS("title"),
        finding=WORDS(f"finding_{place}", **slots),
        figures=(
            Stack(WORDS("layer_title"), figures=_ways(stream, place, norm)),
            Stack(figures=tuple(charts)),
        ),
        table=_columns_of(depths),
        details=(*WORDS.lines("details", **slots), *token_details),
        caption=(WORDS("caption", stream=stream.name),),
        file="norm-place",
        formulas=("add-norm", "pre-norm"),
        at={"stream": stream.name, "layer": 0, "token": int(text_places(stream)[-1])},
    )


def _ways(stream: Stream, place: str, norm: str) -> tuple[Branches, ...]:
    """The two diagrams of a layer, that of the model lit."""
    short = WORDS("rms" if norm == "RMSNorm" else "ln")
    parts = dict.fromkeys(each.place for each in residual.sublayers(stream) if each.layer == 0)
    return tuple(
        Branches(
            WORDS(f"{way}_title", norm=norm),
            parts=tuple(Branch(WORDS(name), way, short) for name in parts),
            lit=way == place,
        )
        for way in ("post", "pre")
    )


def _chart(what: str, lines: Sequence[tuple[str, np.ndarray]]) -> Chart:
    """A number by layer, of the model and its twin."""
    n = max(len(values) for _, values in lines)
    return Chart(
        WORDS(what),
        series=tuple(
            Series(
                name if len(lines) > 1 else "",
                np.arange(len(values), dtype=float),
                values,
                power(float(values[-1]), 3),
                main=at == 0,
            )
            for at, (name, values) in enumerate(lines)
        ),
        x_title=WORDS("layers"),
        x_range=(0.0, float(n - 1)),
        y_range=(0.0, max(float(values.max()) for _, values in lines)),
        half=True,
    )


def _columns_of(depths: Sequence[ByLayer]) -> spec.Columns:
    """The numbers of both charts."""
    rows = [(each, at) for each in depths for at in range(len(each.lengths))]
    columns: dict[str, list] = {
        "model": [each.name for each, _ in rows],
        "after layers": [at for _, at in rows],
        "mean length": [float(each.lengths[at]) for each, at in rows],
    }
    if all(each.gradient is not None for each in depths):
        norms = [each.gradient for each in depths if each.gradient is not None]
        columns["norm of the gradient"] = [float(value) for norm in norms for value in norm]
    return columns
