"""The panel on where a layer's norms stand: after each sum, or before each sub-layer."""

from __future__ import annotations

import numpy as np

from explorer.analysis import residual
from explorer.analysis.figures import Branch, Branches, Chart, Series, Stack
from explorer.analysis.formatting import power
from explorer.analysis.terminology import recording_norm_name
from explorer.panels import spec
from explorer.panels.selection import model_name
from explorer.panels.spec import Panel
from explorer.text.templates import sentences
from models.caching import loaded
from models.run import Run

CONCEPT = "norm_place"


@spec.panel
def diagrams(run: Run) -> Panel:
    """Post-LN and pre-LN as two diagrams of a layer, that of this model lit, beside the length of
    its states after each layer, mean over the tokens of the text.

    Raises ValueError for a model that shows no sub-layers or no norms, and for layers that differ.
    """
    recording = run.recording()
    stream, words = recording.streams[-1], sentences(CONCEPT, "diagrams")
    place = residual.norm_place(stream)
    if place is None or not residual.sublayers(stream):
        raise ValueError(words("none", model=model_name(recording)))
    if residual.mixes_norm_places(stream):
        raise ValueError(words("mixed"))
    norm = recording_norm_name(recording, loaded(recording).capabilities.rms)
    short = words("rms" if norm == "RMSNorm" else "ln")
    whole = residual.whole_layers(stream)
    states = [each for each in whole.sites if not each.endswith(".wrote")]
    text = np.flatnonzero(~stream.special)
    text = text if len(text) else np.arange(len(stream.tokens))
    lengths = np.array(
        [np.linalg.norm(residual.site_vectors(whole, each)[text], axis=1).mean() for each in states]
    )
    slots = {
        **{
            "place": words(place),
            "norm": norm,
            "n": len(states) - 1,
            "model": model_name(recording),
        },
        **{"first": power(float(lengths[0]), 3), "last": power(float(lengths[-1]), 3)},
    }
    ways = tuple(
        Branches(
            words(f"{way}_title", norm=norm),
            parts=tuple(
                Branch(words(name), way, short)
                for name in dict.fromkeys(
                    each.place for each in residual.sublayers(stream) if each.layer == 0
                )
            ),
            lit=way == place,
        )
        for way in ("post", "pre")
    )
    chart = Chart(
        words("lengths"),
        series=(
            Series("", np.arange(len(states), dtype=float), lengths, str(slots["last"]), main=True),
        ),
        x_title=words("layers"),
        y_range=(0.0, float(lengths.max())),
    )
    return Panel(
        title=words("title"),
        finding=words(f"finding_{place}", **slots),
        figures=(Stack(words("layer_title"), figures=ways), chart),
        table={"after layers": np.arange(len(states)), "mean length": lengths},
        details=words.lines("details", **slots),
        caption=(words("caption", stream=stream.name),),
        file="norm-place",
        formulas=("add-norm", "pre-norm"),
        at={"stream": stream.name},
    )
