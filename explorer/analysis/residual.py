"""The residual stream in numbers: what each sub-layer wrote, how far it turned the vector, and what
LayerNorm did to the sum.

Every number comes from a Recording's sites alone, in float64; LayerNorm's gains and W_O are passed
in where a number needs them. A cosine or angle with a vector of length 0 does not exist and is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis.attention import numbered
from explorer.figures.csv import Columns, long_form
from explorer.wording.templates import sentences
from models.contract.recording import Stream

QUANTITIES = sentences("residual", "quantities")

PLACES = {
    "attn": "attention",
    "cross": "cross-attention",
    "ffn": "FFN",
    "pos": "position",
    "layer": "the layer",
}
SHORT_PLACES = {"attn": "attn", "cross": "cross", "ffn": "FFN", "pos": "pos", "layer": ""}


@dataclass(frozen=True)
class StreamQuantity:
    """A number of each token and column: what it is in a line, its unit and digits, whether it has
    two signs, and its scale (None: the largest here)."""

    name: str
    meaning: str
    unit: str
    digits: int = 2
    low: float | None = 0.0
    high: float | None = None
    diverging: bool = False
    spread: bool = False  # of lengths, which a logarithmic scale suits


WRITES = (
    StreamQuantity(
        "Rotation angle",
        QUANTITIES("rotation_angle"),
        "°",
        0,
    ),
    StreamQuantity("Update norm", QUANTITIES("update_norm"), "", 2, spread=True),
    StreamQuantity("Share", QUANTITIES("share"), "", 2, 0.0, 1.0),
    StreamQuantity(
        "Cosine",
        QUANTITIES("cosine"),
        "",
        2,
        -1.0,
        1.0,
        True,
    ),
    StreamQuantity("State norm", QUANTITIES("state_norm"), "", 2, spread=True),
)


@dataclass(frozen=True)
class SubLayer:
    """One place where something is written: `site` such as "0.attn", its layer (-1 for positions)
    and place, and the names of the sites before, of what was written, of the sum and of the state
    after (the sum itself where no LayerNorm follows)."""

    site: str
    layer: int
    place: str
    before: str
    wrote: str
    total: str
    after: str

    @property
    def name(self) -> str:
        """As a person reads it: "layer 0, attention"."""
        if self.place == "layer":
            return f"layer {self.layer}"
        return f"layer {self.layer}, {PLACES[self.place]}" if self.layer >= 0 else "positions"


@dataclass(frozen=True)
class Norm:
    """One LayerNorm: `site` such as "0.attn", "embed" or "final", its layer (-1 outside of all) and
    the names of the sites before and after it. name: as a person reads it, "layer 0, after
    attention"; group and label: of its column."""

    site: str
    layer: int
    before: str
    after: str
    name: str
    group: str
    label: str


@dataclass(frozen=True)
class HeatmapColumn:
    """A column of a heatmap: the group it stands in, its short label there, its full name, and the
    sub-layer or head it belongs to."""

    group: str
    label: str
    name: str


@dataclass(frozen=True, eq=False)
class TokenGrid:
    """One measure of every token: values (token, column)."""

    measure: StreamQuantity
    columns: tuple[HeatmapColumn, ...]
    values: np.ndarray


def sublayers(stream: Stream) -> tuple[SubLayer, ...]:
    """The places where something is written, in order, positions first where they were added."""
    result = []
    for before, wrote, total in stream.writes():
        site = wrote.removesuffix(".wrote")
        number, _, place = site.rpartition(".")
        normed = f"{site}.normed"
        result.append(
            SubLayer(
                site,
                int(number) if number else -1,
                place,
                before,
                wrote,
                total,
                normed if normed in stream.sites else total,
            )
        )
    return tuple(result)


def whole_layers(stream: Stream) -> Stream:
    """The stream with one update a layer, "3.layer.wrote": what all sub-layers and norms of the
    layer change together. Also of a model that shows the states between its layers alone."""
    ends: dict[int, tuple[str, str]] = {}  # of each layer the site before it and its last one
    state = stream.sites[0]
    for site in stream.sites:
        number, _, rest = site.partition(".")
        if rest.endswith((".wrote", ".read")) or rest == "wrote":
            continue
        if number.isdecimal():
            before = ends[int(number)][0] if int(number) in ends else state
            ends[int(number)] = before, site
        state = site
    if not ends:
        return stream
    first = ends[min(ends)][0]
    sites, vectors = [first], [stream.at(first)]
    for layer, (before, after) in sorted(ends.items()):
        sites += [f"{layer}.layer.wrote", f"{layer}.layer.sum"]
        vectors += [stream.at(after) - stream.at(before), stream.at(after)]
    return replace(stream, sites=tuple(sites), resid=np.stack(vectors))


def site_vectors(stream: Stream, site: str) -> np.ndarray:
    """The vectors at a site in float64, (token, d_model)."""
    return stream.at(site).astype(np.float64)


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosines along the last axis, in [-1, 1], NaN where a vector has no length."""
    length = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(length > 0, np.clip((a * b).sum(-1) / length, -1, 1), np.nan)


PARALLEL = 1e-6  # of a vector: a smaller rest is rounding


def degrees(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angles along the last axis in degrees, 0 to 180, NaN where a vector has no length.

    By the half-angle form 2 atan2(|a/|a| - b/|b||, |a/|a| + b/|b||), which keeps small angles that
    the arc cosine would lose.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = (each / _length(each)[..., None] for each in (a, b))
    return np.degrees(2 * np.arctan2(_length(a - b), _length(a + b)))


def in_plane(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The coordinates of two vectors in their plane, (vector, 2), their lengths and the angle
    between them as they are: the first along the first axis, the second above it."""
    along = first / (np.linalg.norm(first) or 1.0)
    share = float(second @ along)
    above = float(np.linalg.norm(second - share * along))
    above = above if above > PARALLEL * np.linalg.norm(second) else 0.0
    return np.array([[float(np.linalg.norm(first)), 0.0], [share, above]])


def _length(vectors: np.ndarray) -> np.ndarray:
    """Lengths along the last axis: several times as fast as `np.linalg.norm` of many short ones."""
    return np.sqrt(np.einsum("...i,...i->...", vectors, vectors))


def write_share(before: np.ndarray, wrote: np.ndarray) -> np.ndarray:
    """|wrote| / (|wrote| + |before|) along the last axis, 0 to 1, NaN where both are 0."""
    w, x = _length(wrote), _length(before)
    with np.errstate(invalid="ignore", divide="ignore"):
        return w / (w + x)


def largest_ffn(stream: Stream, token: int) -> int:
    """The layer whose FFN has the largest share of its update at a token. Raises ValueError for a
    stream that does not show what its FFNs write."""
    return largest_ffns(stream, token)[0]


def largest_ffns(stream: Stream, token: int) -> list[int]:
    """The layers by the shares that their FFNs have of their updates at a token, the largest first.
    Raises ValueError for a stream that does not show what its FFNs write."""
    places = [each for each in sublayers(stream) if each.place == "ffn"]
    if not places:
        raise ValueError("the stream shows no FFN")
    shares = [
        write_share(
            site_vectors(stream, each.before)[token], site_vectors(stream, each.wrote)[token]
        )
        for each in places
    ]
    order = np.argsort(-np.nan_to_num(shares), kind="stable").tolist()
    return [places[at].layer for at in order]


def write_grid(stream: Stream, measure: str) -> TokenGrid:
    """A measure of WRITES for every token and sub-layer; "State norm" for every site. Raises
    StopIteration for a measure that does not exist."""
    quantity = next(each for each in WRITES if each.name == measure)
    if measure == "State norm":
        values = np.linalg.norm(stream.resid.astype(np.float64), axis=-1).T
        return TokenGrid(quantity, tuple(_site_column(site) for site in stream.sites), values)
    columns, values = [], []
    for each in sublayers(stream):
        before, wrote = site_vectors(stream, each.before), site_vectors(stream, each.wrote)
        group = f"Layer {each.layer}" if each.layer >= 0 else "Input"
        columns.append(HeatmapColumn(group, SHORT_PLACES[each.place], each.name))
        values.append(
            {
                "Rotation angle": lambda: degrees(before, site_vectors(stream, each.total)),
                "Share": lambda: write_share(before, wrote),
                "Cosine": lambda: cosine(before, wrote),
                "Update norm": lambda: np.linalg.norm(wrote, axis=-1),
            }[measure]()
        )
    grid_values = np.stack(values, axis=1) if values else np.empty((len(stream.tokens), 0))
    return TokenGrid(quantity, tuple(columns), grid_values)


def stream_norms(stream: Stream) -> tuple[Norm, ...]:
    """Every LayerNorm of a stream in order: of its input, of sub-layers (after their sums, or in
    front of them), and the last one."""
    if not stream.sites:
        return ()
    norms, state = [], stream.sites[0]
    for site in stream.sites:
        place, _, kind = site.rpartition(".")
        if kind in ("normed", "read"):
            number, _, sublayer = place.partition(".")
            name, group, label = {
                "embed": ("of the input", "Input", "norm"),
                "final": ("the last", "End", "norm"),
            }.get(place) or (
                f"layer {number}, {'after' if kind == 'normed' else 'before'} {PLACES[sublayer]}",
                f"Layer {number}",
                SHORT_PLACES[sublayer],
            )
            norms.append(
                Norm(
                    place,
                    int(number) if number.isdecimal() else -1,
                    state,
                    site,
                    name,
                    group,
                    label,
                )
            )
        if kind not in ("wrote", "read"):
            state = site
    return tuple(norms)


def norm_place(stream: Stream) -> str | None:
    """The place of LayerNorm: "post" after each sum, "pre" in front of each sub-layer, None where
    no layer has one."""
    kinds = {each.after.rpartition(".")[2] for each in stream_norms(stream) if each.layer >= 0}
    return "pre" if "read" in kinds else "post" if kinds else None


def norms_stand(stream: Stream, place: str | None) -> str | None:
    """The place of a model's norms as its capabilities say it where what sub-layers write has
    passed one ("branch", "both"), which no site tells; else `norm_place`."""
    return place if place in ("branch", "both") else norm_place(stream)


def mixes_norm_places(stream: Stream) -> bool:
    """True where the layers do not all have their norms in the same places."""
    kinds: dict[int, set[str]] = {each.layer: set() for each in sublayers(stream)}
    for norm in stream_norms(stream):
        kinds.setdefault(norm.layer, set()).add(norm.after.rpartition(".")[2])
    of_layers = [kind for layer, kind in kinds.items() if layer >= 0]
    return any(kind != of_layers[0] for kind in of_layers)


def has_residual(stream: Stream) -> bool:
    """True where what the sub-layers write is added to the stream; False where it replaces it, in a
    model without residual connections."""
    in_layers = [each for each in sublayers(stream) if each.layer >= 0]
    largest_difference = max(
        (
            float(np.abs(stream.at(each.total) - stream.at(each.wrote)).max(initial=0))
            for each in in_layers
        ),
        default=1.0,
    )
    return largest_difference > 0


def residual_error(stream: Stream) -> tuple[float, int, float]:
    """The law before + wrote = after: the largest |before + wrote - after| of all components, over
    how many additions, and the largest component."""
    worst, n = 0.0, 0
    for before, wrote, total in stream.writes():
        worst = max(
            worst,
            float(
                np.abs(
                    site_vectors(stream, before)
                    + site_vectors(stream, wrote)
                    - site_vectors(stream, total)
                ).max()
            ),
        )
        n += 1
    return worst, n * len(stream.tokens), float(np.abs(stream.resid).max())


def token_path(stream: Stream, token: int) -> Columns:
    """One token through the sub-layers as named columns; angles in degrees, "by adding" before ->
    sum, "by norm" sum -> after. The last two are left out where no LayerNorm follows a sum."""
    rows = sublayers(stream)
    before, wrote, total, after = (
        np.stack([site_vectors(stream, getattr(sublayer, part))[token] for sublayer in rows])
        for part in ("before", "wrote", "total", "after")
    )
    columns = {
        "sub-layer": [sublayer.name for sublayer in rows],
        "|before|": np.linalg.norm(before, axis=-1),
        "|wrote|": np.linalg.norm(wrote, axis=-1),
        "share": write_share(before, wrote),
        "cosine": cosine(before, wrote),
        "|sum|": np.linalg.norm(total, axis=-1),
        "turned by adding °": degrees(before, total),
        "turned by norm °": degrees(total, after),
        "turned in all °": degrees(before, after),
        "|after|": np.linalg.norm(after, axis=-1),
    }
    if all(sublayer.after == sublayer.total for sublayer in rows):
        del columns["turned by norm °"], columns["|after|"]
    return columns


def largest_turn(path: Columns) -> int:
    """The row of `token_path` that turned the vector furthest, positions left aside."""
    turned = np.nan_to_num(path["turned in all °"], nan=-1.0)
    return int(
        np.where([name.startswith("layer") for name in path["sub-layer"]], turned, -2).argmax()
    )


def rotations(stream: Stream, token: int) -> Columns:
    """The rotations of each layer at one token in degrees: one for what each sub-layer adds, and
    from the layer's beginning to its end, with its norms."""
    layers = sorted({sublayer.layer for sublayer in sublayers(stream) if sublayer.layer >= 0})
    table: dict[str, list] = {"layer": layers}
    for layer in layers:
        layer_parts = [sublayer for sublayer in sublayers(stream) if sublayer.layer == layer]
        turns = [(PLACES[each.place], each.before, each.total) for each in layer_parts]
        turns.append(("whole layer", layer_parts[0].before, layer_parts[-1].after))
        for name, *ends in turns:
            turned = degrees(*(site_vectors(stream, site)[token] for site in ends))
            table.setdefault(f"{name} °", []).append(float(turned))
    return table


def step_factor(values: np.ndarray) -> float | None:
    """By which factor values (distance) change from one distance to the next: the slope of a
    straight line through their logarithms.

    Zeros, which have none, are left out; None where fewer than three are left.
    """
    where = np.flatnonzero(values > 0)
    return float(np.exp(np.polyfit(where, np.log(values[where]), 1)[0])) if len(where) > 2 else None


def table(grid: TokenGrid, tokens: Sequence[str]) -> Columns:
    """A grid as named columns, a row for each token and column of it."""
    axes = {"token": numbered(tokens), "place": [column.name for column in grid.columns]}
    return long_form(axes, grid.values, "value")


def colour_range(
    quantity: StreamQuantity, values: np.ndarray, log: bool = False
) -> tuple[float, float]:
    """The two ends of a colour scale: the quantity's own, else 0 and the largest value, the same on
    both sides for two signs; where `log` from the smallest value above 0, at most a thousandth of
    the largest."""
    most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    if log:
        least = float(np.min(values, where=values > 0, initial=most))
        return (max(least, most / 1000) if least < most else most / 10), most
    high = most if quantity.high is None else quantity.high
    return (-high if quantity.diverging else quantity.low or 0.0), high


def site_name(site: str) -> str:
    """A site of a stream as a person reads it: "layer 0, the sum after attention"."""
    return _site_column(site).name


def _site_column(site: str) -> HeatmapColumn:
    number, _, rest = site.partition(".")
    if not number.isdecimal():
        short = {"pos.wrote": "pos", "embed+pos": "sum"}
        names = {
            "embed": "the embeddings",
            "pos.wrote": "what positions wrote",
            "embed+pos": "embeddings and positions",
            "embed.normed": "the input after its norm",
            "final.normed": "after the last norm",
        }
        return HeatmapColumn(
            "End" if site == "final.normed" else "Input",
            "norm" if site.endswith(".normed") else short.get(site, site),
            names.get(site, site),
        )
    place, _, what = rest.partition(".")
    label = {"read": "norm", "wrote": SHORT_PLACES[place], "sum": "sum", "normed": "norm"}[what]
    name = {
        "read": f"what {PLACES[place]} reads, after the norm",
        "wrote": f"what {PLACES[place]} wrote",
        "sum": f"the sum after {PLACES[place]}",
        "normed": f"after {PLACES[place]}’s add & norm",
    }[what]
    return HeatmapColumn(f"Layer {number}", label, f"layer {number}, {name}")


# LayerNorm in numbers: what stands before and after it, its steps at one token, and BatchNorm
# beside it.

STAGES = ("sum", "− μ", "÷ σ", "× gain", "+ bias")
RMS_STAGES = ("sum", "÷ rms", "× gain", "+ bias")
NORMS = (
    StreamQuantity(
        "Sigma before",
        QUANTITIES("sigma_before"),
        "",
        3,
        spread=True,
    ),
    StreamQuantity("Mean before", QUANTITIES("mean_before"), "", 3, None, None, True),
    StreamQuantity(
        "Sigma after",
        QUANTITIES("sigma_after"),
        "",
        3,
    ),
    StreamQuantity(
        "Mean after",
        QUANTITIES("mean_after"),
        "",
        3,
        None,
        None,
        True,
    ),
)


def norm_grid(stream: Stream, measure: str, norm: str = "norm") -> TokenGrid:
    """A measure of NORMS for every token and norm; `norm`: what these are called. Raises
    StopIteration for a measure that does not exist."""
    quantity = next(each for each in NORMS if each.name == measure)
    statistic, _, when = measure.partition(" ")
    norms = stream_norms(stream)
    sites = [each.before if when == "before" else each.after for each in norms]
    reduce = np.std if statistic == "Sigma" else np.mean
    values = [reduce(site_vectors(stream, site), axis=-1) for site in sites]
    columns = tuple(HeatmapColumn(each.group, each.label, f"{norm}, {each.name}") for each in norms)
    return TokenGrid(
        quantity, columns, np.stack(values, axis=1) if values else np.empty((len(stream.tokens), 0))
    )


Norms = Mapping[str, tuple[np.ndarray, np.ndarray, float, bool]]


def normalised(x: np.ndarray, eps: float, centred: bool = True) -> np.ndarray:
    """(x - mean) / sqrt(variance + eps) over the last axis: LayerNorm without gain and bias; where
    not `centred` x / sqrt(mean square + eps), RMSNorm."""
    x = x.astype(np.float64)
    x = x - x.mean(-1, keepdims=True) if centred else x
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def norm_error(stream: Stream, norms: Norms) -> float:
    """The largest |LayerNorm(what stood before) - what was recorded after it| over all tokens and
    LayerNorms. norms: gain, bias (d_model), eps and whether the mean is subtracted, by site."""
    worst = 0.0
    for norm in stream_norms(stream):
        gain, bias, eps, centred = norms[norm.site]
        worst = max(
            worst,
            float(
                np.abs(
                    normalised(site_vectors(stream, norm.before), eps, centred) * gain
                    + bias
                    - site_vectors(stream, norm.after)
                ).max()
            ),
        )
    return worst


def norm_vectors(stream: Stream, norms: Norms, site: str, token: int) -> dict[str, np.ndarray]:
    """One norm at one token, step by step: the vector after each of STAGES, of an RMSNorm after
    each of RMS_STAGES, the last left out where it has no bias. "sum": what it takes."""
    norm = next(candidate for candidate in stream_norms(stream) if candidate.site == site)
    gain, bias, eps, centred = norms[site]
    x = site_vectors(stream, norm.before)[token]
    normed = normalised(x, eps, centred)
    steps = [
        x,
        *([x - x.mean()] if centred else []),
        normed,
        normed * gain,
        *([normed * gain + bias] if centred or bias.any() else []),
    ]
    return dict(zip(STAGES if centred else RMS_STAGES, steps))


def norm_stages(vectors: Mapping[str, np.ndarray]) -> Columns:
    """The mean, sigma and length after each step of a norm, of `norm_vectors`, as named columns."""
    steps = list(vectors.values())
    return {
        "step": list(vectors),
        "mean μ": [round(float(step.mean()), 9) + 0.0 for step in steps],
        "spread σ": [float(step.std()) for step in steps],
        "length": [float(np.linalg.norm(step)) for step in steps],
        "turned from the sum °": [float(degrees(steps[0], step)) for step in steps],
    }


@dataclass(frozen=True, eq=False)
class NormChange:
    """Effect of one token's change on every token, |y' - y| (token), where y is normalised over
    features (layer) or over tokens (batch)."""

    token: int
    times: float
    layer: np.ndarray
    batch: np.ndarray


def norm_change(
    stream: Stream, site: str, token: int, times: float, eps: float, centred: bool = True
) -> NormChange:
    """The recorded vectors before the LayerNorm `site`, `token`'s multiplied by `times`, normalised
    both ways, without gain and bias.

    Over features: each token by its own mean and variance (LayerNorm; where not `centred` by its
    mean square, RMSNorm). Over tokens: each feature by
    its mean and variance over the tokens of this text (BatchNorm as in training, the text being the
    batch).
    """
    x = site_vectors(
        stream, next(each.before for each in stream_norms(stream) if each.site == site)
    )
    scaled = x.copy()
    scaled[token] *= times
    differences = [
        np.linalg.norm(normalise(scaled) - normalise(x), axis=-1)
        for normalise in (lambda v: normalised(v, eps, centred), lambda v: normalised(v.T, eps).T)
    ]
    return NormChange(token, times, *differences)


def largest_other(values: np.ndarray, token: int) -> tuple[int, float] | None:
    """(token, value) of the largest value at another token than `token`; None where there is no
    other."""
    if len(values) < 2:
        return None
    others = values.copy()
    others[token] = -np.inf
    return int(others.argmax()), float(others.max())
