"""The panels on gradients: through a deep random stack, one sub-layer, and over distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from explorer.analysis import gradients, residual
from explorer.analysis.terminology import recording_norm_name
from explorer.figures.formatting import Written, fixed, percent, power
from explorer.figures.kinds import Chart, Facts, Series, Stack, TextTable
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    FirstStream,
    FollowedWord,
    expect_option,
    first_site,
    select_stream,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.results import Decay, Jacobian
from models.runtime import registry
from models.runtime.caching import depth_gradients, loaded, picture_name
from models.runtime.run import Run

CONCEPT = "gradients"
MUCH = 10.0  # a factor of less is little
CHANCE = 1 / 16  # of predicting one of 16 symbols
FAINTEST = 1e-9  # of a gradient that is drawn
SMALLEST = 1e-6  # of the singular values that are drawn


# ---- through layers ------------------------------------------------------------------------------


def remaining(norm: np.ndarray) -> float:
    """Ratio of a gradient's norm at the input to that at the last state; norm (site). NaN where the
    last is 0."""
    return float(norm[0] / norm[-1]) if norm[-1] > 0 else float("nan")


def _factor(value: float) -> str:
    return power(value) if np.isfinite(value) and value > 0 else "0"


def verdict(way: str, left: float) -> str:
    """Sentence on one gradient's change on its way back; left: the ratio of its norms, as of
    `kept`."""
    words = sentences(CONCEPT, "verdict")
    if not left > 0:
        return words("gone", way=way)
    name = "shrinks" if left < 1 / MUCH else "grows" if left > MUCH else "keeps"
    return words(name, way=way, factor=power(left), much=f"{MUCH:.0f}")


def _ends(ways: Sequence[str], norm: np.ndarray) -> TextTable:
    """The gradient at both ends, way by way."""
    words = sentences(CONCEPT, "verdict")
    return TextTable(
        title=words("ends"),
        columns=words.lines("columns"),
        rows=tuple(
            (way, power(row[0]), power(row[-1]), f"× {_factor(remaining(row))}")
            for way, row in zip(ways, norm)
        ),
    )


def _lines(
    ways: Sequence[str], norm: np.ndarray, least: float = 0.0, x: np.ndarray | None = None
) -> tuple[Series, ...]:
    """One curve for each way over `x`, places from 0 where None; values up to `least` are left
    out."""
    places = np.arange(norm.shape[1], dtype=float) if x is None else x
    return tuple(
        Series(way, places, np.where(row > least, row, np.nan), main=at == 0)
        for at, (way, row) in enumerate(zip(ways, norm))
    )


@spec.panel
def deep_stack(run: Run, stream: FirstStream = OPENS) -> Panel:
    """The gradient through a deep stack with random weights, with and without residual connections
    and LayerNorm. Raises ValueError for a stream that is not there."""
    selection = select_stream(run, 0, stream)
    words = sentences(CONCEPT, "deep_stack")
    depth = depth_gradients(selection.recording, selection.stream.name)
    shares = depth.norm / depth.norm[:, -1:]
    left = {way: remaining(row) for way, row in zip(depth.ways, depth.norm)}
    return Panel(
        title=words("title", layers=depth.layers),
        finding=words(
            "finding",
            on=_factor(left["residual on"]),
            off=_factor(left["residual off"]),
            layers=depth.layers,
        ),
        figures=(
            Chart(
                title=words("chart"),
                series=_lines(depth.ways, shares, FAINTEST),
                x_title=words("x"),
                y_title=words("y"),
                log_y=True,
            ),
            _ends(depth.ways, depth.norm),
        ),
        table={"layer": range(depth.layers + 1)} | dict(zip(depth.ways, depth.norm)),
        details=(
            *(verdict(way, each) for way, each in left.items()),
            *words.lines(
                "details",
                layers=depth.layers,
                width=depth.width,
                tokens=depth.tokens,
                gain=f"{depth.gain:g}",
                draws=depth.draws,
            ),
        ),
        caption=(words("caption", layers=depth.layers),),
        file="gradient-deep-stack",
        formulas=("jacobian-product",),
    )


def sublayer_sites(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The names of a stream's sub-layers by their sites."""
    stream = select_stream(run, 0, chosen.get("stream", "")).stream
    places = (each for each in residual.sublayers(stream) if each.layer >= 0)
    return {each.site: each.name[0].upper() + each.name[1:] for each in places}


@spec.panel
def jacobian(
    run: Run,
    token: FollowedWord = OPENS,
    sublayer: Annotated[
        str,
        Choice(
            sublayer_sites,
            "Sub-layer",
            name="block",
            of="model",
            suits=first_site(sublayer_sites),
        ),
    ] = "",
    stream: FirstStream = OPENS,
) -> Panel:
    """The singular values of one sub-layer's Jacobian at one token.

    sublayer: its site, such as "1.ffn"; the first one where "". Raises ValueError for what is not
    there, and for a model whose sub-layers cannot be run one by one.
    """
    selection = select_stream(run, token, stream)
    token = selection.token
    words = sentences(CONCEPT, "jacobian")
    recording, of = selection.recording, loaded(selection.recording)
    places = {each.site: each for each in residual.sublayers(selection.stream) if each.layer >= 0}
    if not of.capabilities.weights or not places:
        raise ValueError(words("closed", model=selection.model))
    if recording.edits:
        raise ValueError(words("edited"))
    site = sublayer or first_site(sublayer_sites)(run, {"stream": stream})
    expect_option("sublayer", site, places)
    spectrum = of.jacobian(recording, selection.stream.name, token, site)
    is_post = residual.norm_place(selection.stream) == "post"
    norm = recording_norm_name(recording, of.capabilities.rms) if is_post else ""
    series = gradients.singular_value_series(spectrum, norm)
    slots = {
        "token": selection.word,
        "place": places[site].name,
        "d": (d := len(spectrum.wrote)),
        "high": fixed(spectrum.wrote[0]),
        "low": power(spectrum.wrote[-1], 2),
        "lost": int((spectrum.wrote < 1 / MUCH).sum()),
        "kept": int((spectrum.total < 1 / MUCH).sum()),
        "error": power(spectrum.error, 2),
    }
    return Panel(
        title=words("title"),
        finding=words("finding" if spectrum.adds else "finding_alone", **slots),
        figures=(
            Chart(
                title=words("chart", **slots),
                series=tuple(
                    Series(
                        name,
                        np.arange(1, len(values) + 1, dtype=float),
                        np.where(values >= SMALLEST, values, np.nan),
                        main=at == 0,
                    )
                    for at, (name, values) in enumerate(series)
                ),
                x_title=words("x"),
                y_title=words("y"),
                log_y=True,
            ),
            *([_entry(spectrum)] if spectrum.adds else []),
        ),
        table={"rank": range(1, len(spectrum.wrote) + 1)} | dict(series),
        details=words.lines("details" if spectrum.adds else "details_alone", **slots),
        caption=(words("caption", **slots),),
        file=f"jacobian-{site}-token{token}",
        formulas=("jacobian",),
        numbers={"width": Written.count(d)},
        at={"site": site, "stream": selection.stream.name},
    )


def _entry(spectrum: Jacobian) -> Facts:
    """The largest entry of the Jacobian of an update on its diagonal, and that of the sum there."""
    words = sentences(CONCEPT, "jacobian")
    named = zip(spectrum.entries, ("entry_of_f", "entry_of_sum"))
    return Facts(
        title=words("entry", m=spectrum.component),
        facts=tuple((power(value), words(name)) for value, name in named),
    )


# ---- over distance -------------------------------------------------------------------------------


LAG = 8  # tokens, where a text has as many


def lags(run: Run, chosen: Mapping[str, Any]) -> range:
    """The lags that a stream is long enough for."""
    n = len(select_stream(run, 0, chosen.get("stream", "")).stream.tokens)
    return range(1, registry.longest_lag(n) + 1)


def suggested_lag(run: Run, chosen: Mapping[str, Any]) -> int:
    """The lag until a reader chooses one: LAG, or the longest."""
    return min(LAG, max(lags(run, chosen), default=1))


Lag = Annotated[
    int | None,
    Choice(
        lags,
        "Predict the token so many back",
        suits=suggested_lag,
        help=sentences(CONCEPT, "recurrence_task")("help"),
    ),
]


def recurrence(run: Run, lag: Lag = None, stream: str = "", decay: Decay | None = None) -> Panel:
    """Gradient by distance in an RNN, an LSTM and a Transformer that learn to predict the token
    `lag` back.

    lag: LAG, or the longest that a text allows, where None. decay: the training as far as it has
    come; it takes seconds where None, which trains to the end. Raises ValueError for a text that is
    too short.
    """
    selection = select_stream(run, 0, stream)
    lag = suggested_lag(run, {"stream": stream}) if lag is None else lag
    if decay is None:
        *_, decay = registry.decay(tuple(map(int, selection.stream.ids)), lag)
    words = sentences(CONCEPT, "recurrence")
    networks = gradients.NETWORKS
    drawn = np.concatenate([decay.first[decay.first > 0], decay.gradient[decay.gradient > 0]])
    ends = (float(drawn.min()) / 1.5, float(drawn.max()) * 1.5)
    distances = np.arange(decay.length, dtype=float)

    def chart(title: str, norm: np.ndarray) -> Chart:
        return Chart(
            title=title,
            series=_lines(networks, norm, x=distances),
            x_title=words("x"),
            y_title=words("y"),
            log_y=True,
            guides=((float(lag), words("guide", lag=lag)),),
            y_range=ends,
        )

    loss = Chart(
        title=words("loss"),
        series=_lines(networks, decay.loss, x=np.asarray(decay.looks, float)),
        x_title=words("steps"),
        y_title=words("nats"),
    )
    table = TextTable(
        title=words("table", lag=lag),
        columns=words.lines("columns"),
        rows=tuple(
            (name, f"{size:,}", power(first[lag]), power(now[lag]), percent(share), fixed(last))
            for name, size, first, now, share, last in zip(
                networks,
                decay.parameters,
                decay.first,
                decay.gradient,
                decay.accuracy,
                decay.loss[:, -1],
            )
        ),
    )
    recording, choices = run.recording(), {"lag": lag, **({"stream": stream} if stream else {})}
    arguments = "".join(f", {name}={value!r}" for name, value in choices.items())
    return Panel(
        title=words("title"),
        finding=lesson(networks, decay.gradient, decay.accuracy, lag),
        figures=(
            Stack(
                figures=(
                    chart(words("now", step=decay.step), decay.gradient),
                    chart(words("before"), decay.first),
                )
            ),
            Stack(figures=(table, loss)),
        ),
        table=gradients.distance_columns(decay),
        details=words.lines("details"),
        caption=spec.caption(recording, words("caption", lag=lag, length=decay.length)),
        file=f"headlight-{recording.model.name}-gradient-by-distance-lag{lag}",
        call=f"panels.gradients.recurrence(run{arguments})",
        run=run,
        choices=choices,
        token=picture_name(recording, "recurrence", stream, lag, decay.step),
    )


def lesson(networks: Sequence[str], now: np.ndarray, right: np.ndarray, lag: int) -> str:
    """Sentences on the networks that have learned the task, and the gradient at the token it
    needs."""
    words = sentences(CONCEPT, "recurrence")
    learned = [at for at, share in enumerate(right) if share > 0.9]
    lost = [at for at, share in enumerate(right) if share < 3 * CHANCE]
    if not learned:
        return words("none", lag=lag, best=percent(float(right.max())))
    lines = [words("learned", networks=" and ".join(networks[at] for at in learned))]
    if lost:
        lines.append(words("near_baseline", networks=" and ".join(networks[at] for at in lost)))
        best, worst = max(learned, key=lambda at: right[at]), min(lost, key=lambda at: now[at][lag])
        if now[worst][lag] > 0 and now[best][lag] > now[worst][lag]:
            lines.append(
                words(
                    "ratio",
                    lag=lag,
                    best=networks[best],
                    worst=networks[worst],
                    factor=power(float(now[best][lag] / now[worst][lag])),
                )
            )
    return " ".join(lines)
