"""Is it right? A recording's own laws, checked number by number in 64 bits: each figure that is
shown follows from those it is made of.

Only the recording and the model's own parameters go in. An edit that changes a law is taken into
account; where it puts in numbers that the recording does not hold, that part is not checked and
says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, isnan, sqrt
from typing import Any, TypeVar

import numpy as np

from explorer.analysis.residual import (
    HeatmapColumn,
    StreamQuantity,
    TokenGrid,
    normalised,
    site_name,
    site_vectors,
)
from explorer.analysis.terminology import norm_name
from explorer.wording.templates import sentences
from models.contract.cancellation import expect_wanted
from models.contract.edits import (
    Ablation,
    Edit,
    OtherPositions,
    PatchHead,
    ScaledBy,
    WithoutNorm,
    WithoutResidual,
    WithoutScale,
    edited,
    edits_at,
    of_stream,
    place_of,
)
from models.contract.recording import Attention, Recording, Stream

NOT_CHECKED = sentences("consistency", "not_checked")

LAWS = sentences("consistency", "laws")

# What edits change of an attention's laws: what scores are divided by, what is taken from them,
# and what heads hand on.

E = TypeVar("E", bound=Edit)
L = TypeVar("L", ScaledBy, WithoutScale)


def edits_of_type(recording: Recording, kind: type[E]) -> list[E]:
    """The edits of a kind, in order."""
    return [edit for edit in recording.edits if isinstance(edit, kind)]


def layer_edit(recording: Recording, kind: type[L], layer: int) -> L | None:
    """The last edit of a kind for a layer, or for all of them."""
    edits = [edit for edit in edits_of_type(recording, kind) if edit.layer in (None, layer)]
    return edits[-1] if edits else None


def head_edits(
    recording: Recording, attention: str, layer: int, head: int, kind: str = "z"
) -> list[Any]:
    """The edits of one head, in order, of what it gives or of another place of `place_of`."""
    found = edits_at(recording.edits, place_of(attention, layer, kind))
    return [edit for edit in found if getattr(edit, "head", None) == head]


def score_divisor(
    recording: Recording, attention: Attention, layer: int
) -> tuple[float, Edit | None]:
    """The divisor of the scores, and the edit that sets it, if any."""
    if (edit := layer_edit(recording, ScaledBy, layer)) is not None:
        return float(edit.divisor), edit
    if (plain := layer_edit(recording, WithoutScale, layer)) is not None:
        return 1.0, plain
    return 1 / float(attention.scale[layer]), None


def distance_penalty(recording: Recording, attention: Attention, head: int) -> np.ndarray:
    """The penalty on scores by distance (ALiBi), (query, key): 0 unless an edit puts it in the
    place of positions."""
    rows, keys = attention.pattern.shape[2:]
    position_edits = edits_of_type(recording, OtherPositions)
    if (
        attention.query != attention.key
        or not position_edits
        or position_edits[-1].to != "distance"
    ):
        return np.zeros((rows, keys))
    distance = np.abs(np.arange(rows)[:, None] - np.arange(keys))
    return 2.0 ** (-8.0 * (head + 1) / attention.pattern.shape[1]) * distance


def allowed_cells(recording: Recording, attention: Attention, layer: int, head: int) -> np.ndarray:
    """The cells (query, key) in which a head may attend: those of its layer without the edges that
    edits cut."""
    allowed, place = np.asarray(attention.allowed[layer]), place_of(attention.name, layer, "mask")
    if not edits_at(recording.edits, place):
        return allowed
    of_heads = np.broadcast_to(allowed, (attention.pattern.shape[1], *allowed.shape))
    return np.asarray(edited(of_heads, recording.edits, place)[head])


def head_weights(recording: Recording, attention: Attention, layer: int, head: int) -> np.ndarray:
    """By what a head's values are multiplied in its output, (query, key): its pattern; nothing
    where an edit has switched it off, and the mean of all rows under mean ablation."""
    expect_wanted()
    pattern = attention.pattern[layer, head].astype(np.float64)
    found = head_edits(recording, attention.name, layer, head)
    ablations = [edit for edit in found if isinstance(edit, Ablation)]
    return np.asarray(edited(pattern, ablations, place_of(attention.name, layer, "z"), head))


def layer_weights(recording: Recording, attention: Attention, layer: int) -> np.ndarray:
    """The `head_weights` of all heads of a layer, (head, query, key)."""
    if not edits_at(recording.edits, place_of(attention.name, layer, "z")):
        return attention.pattern[layer].astype(np.float64)
    heads = range(attention.pattern.shape[1])
    return np.stack([head_weights(recording, attention, layer, head) for head in heads])


def head_z(recording: Recording, attention: Attention, layer: int, head: int) -> np.ndarray:
    """The weighted sum of a head's values, (query, d_head), the input of W_O; under edits with
    numbers with these."""
    values = attention.v[layer, head].astype(np.float64)
    expect_wanted()
    z = attention.pattern[layer, head].astype(np.float64) @ values
    return np.asarray(edited(z, recording.edits, place_of(attention.name, layer, "z"), head))


def output_site(attention: Attention, layer: int) -> str:
    """The site of its stream at which an attention writes."""
    return f"{layer}.{'attn' if attention.query == attention.key else 'cross'}.wrote"


def attention_output(recording: Recording, attention: Attention, layer: int) -> np.ndarray | None:
    """An attention's output into its stream, (query, d_model), as recorded; None where the model
    does not show it, and where an edit replaced it."""
    stream, site = recording.stream(attention.query), output_site(attention, layer)
    if site not in stream.sites or patched_outputs(recording, stream, site):
        return None
    return stream.at(site).astype(np.float64)


def patched_outputs(recording: Recording, stream: Stream, site: str) -> list[Edit]:
    """The edits that put other numbers at a site."""
    is_first = stream.name == recording.streams[0].name
    return edits_at(of_stream(recording.edits, stream.name, is_first), site)


# What each head wrote into the residual stream: how long it is, and that all of it is what
# attention wrote.

HEADS = (
    StreamQuantity(
        "Length",
        LAWS("head_norm"),
        "",
        2,
        spread=True,
    ),
    StreamQuantity("Share of heads", LAWS("head_share"), "", 3, None, None, True),
)


OutputWeights = Mapping[str, tuple[np.ndarray, np.ndarray]]


def head_grid(
    recording: Recording, stream: Stream, measure: str, outputs: OutputWeights
) -> TokenGrid:
    """A measure of HEADS for every token of a stream and every head that writes there; outputs as
    in `heads_error`. Raises StopIteration for a measure that does not exist."""
    quantity = next(each for each in HEADS if each.name == measure)
    columns, values = [], []
    attentions = [each for each in recording.attention if each.query == stream.name]
    of_heads = head_shares if measure == "Share of heads" else head_norms
    by_name = {each.name: of_heads(recording, each, outputs[each.name]) for each in attentions}
    for layer in range(recording.model.n_layer):
        for attention in attentions:
            cross_stream = attention.query != attention.key
            kind = "" if attention.name == "self" else " cross" if cross_stream else " self"
            group = f"Layer {layer}{kind}"
            for head in range(attention.pattern.shape[1]):
                row = by_name[attention.name][layer, head]  # (token)
                columns.append(HeatmapColumn(group, f"{head}", f"layer {layer}{kind}, head {head}"))
                values.append(row)
    return TokenGrid(quantity, tuple(columns), np.stack(values, axis=1))


def heads_error(recording: Recording, stream: Stream, outputs: OutputWeights) -> float:
    """The largest |sum of all heads' writes + b_O - what attention wrote|, over all tokens and
    layers of a stream.

    outputs: by attention W_O cut by head, (layer, head, d_head, d_model), and b_O (layer, d_model).
    """
    worst = 0.0
    for attention in recording.attention:
        if attention.query != stream.name:
            continue
        w_o, bias = (each.astype(np.float64) for each in outputs[attention.name])
        for layer, z in enumerate(_heads_z(recording, attention)):
            expected = np.einsum("hqd,hdm->qm", z, w_o[layer], optimize=True) + bias[layer]
            recorded = site_vectors(stream, output_site(attention, layer))
            worst = max(worst, float(np.abs(expected - recorded).max()))
    return worst


def head_shares(
    recording: Recording, attention: Attention, outputs: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """The share of every head in what its layer's attention writes, w_h . w / |w|^2, b_O's last:
    (layer, head + 1, query), NaN where nothing is written. A layer's shares sum to 1."""
    z, (w_o, bias) = _heads_z(recording, attention), (each.astype(np.float64) for each in outputs)
    shares = np.empty((len(z), z.shape[1] + 1, z.shape[2]))
    for layer, of_layer in enumerate(z):
        total = np.einsum("hqd,hdm->qm", of_layer, w_o[layer], optimize=True) + bias[layer]
        square = (total**2).sum(axis=-1)
        shares[layer, :-1] = np.einsum("hqd,hdm,qm->hq", of_layer, w_o[layer], total, optimize=True)
        shares[layer, -1] = total @ bias[layer]
        shares[layer] /= np.where(square > 0, square, np.nan)
    return shares


def head_norms(
    recording: Recording, attention: Attention, outputs: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """|z W_O slice| of every head: (layer, head, query). outputs: W_O (layer, head, d_head,
    d_model) and b_O."""
    z, w_o = _heads_z(recording, attention), outputs[0].astype(np.float64)
    gram = w_o @ w_o.swapaxes(-1, -2)  # (layer, head, d_head, d_head)
    return np.sqrt(np.maximum(((z @ gram) * z).sum(-1), 0))


def _heads_z(recording: Recording, attention: Attention) -> np.ndarray:
    """The weighted sums of all heads' values, (layer, head, query, d_head)."""
    layers, heads = attention.pattern.shape[:2]
    return np.stack(
        [
            [head_z(recording, attention, layer, head) for head in range(heads)]
            for layer in range(layers)
        ]
    )


OutputProjection = Mapping[str, tuple[np.ndarray, np.ndarray]]
Norms = Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray, float, bool]]]
# What 32-bit arithmetic may be off by, as a share of the largest number compared, or of 1 where
# that is smaller.
ROUNDING = 2e-6
SUM_ROUNDING = 1e-5  # the same for long sums: dot products, W_O, LayerNorm


@dataclass
class Check:
    """One law: `numbers` compared, the largest `error` among them and `where` it stands, and the
    error that rounding explains, `tolerance`.

    not_checked: which parts were left out, and why.
    """

    law: str
    share: float
    numbers: int = 0
    error: float = 0.0
    where: str = ""
    largest: float = 0.0
    not_checked: list[str] = field(default_factory=list)

    @property
    def tolerance(self) -> float:
        """The largest error that rounding explains."""
        return self.share * max(1.0, self.largest)

    @property
    def checked(self) -> bool:
        """False where there was nothing to compare."""
        return self.numbers > 0

    @property
    def holds(self) -> bool:
        """True where the largest error is within the tolerance; False too where it is no number."""
        return isfinite(self.error) and self.error <= self.tolerance

    def take(
        self,
        expected: np.ndarray,
        recorded: np.ndarray,
        where: Callable[[tuple[int, ...]], str],
        largest: float | None = None,
    ) -> None:
        """Compare what should stand somewhere with what stands there. where(place) names a place in
        the arrays."""
        if not recorded.size:
            return
        errors = np.abs(expected - recorded.astype(np.float64))
        place = int(errors.argmax())  # the first that is no number, where there is one
        worst = float(errors.flat[place])
        if not self.numbers or (not isnan(self.error) and not worst <= self.error):
            self.error, self.where = (
                worst,
                where(tuple(int(at) for at in np.unravel_index(place, errors.shape))),
            )
        self.numbers += recorded.size
        self.largest = max(
            self.largest, float(np.abs(recorded).max()) if largest is None else largest
        )

    def leave(self, what: str) -> None:
        """Note a part that is not checked, once."""
        if what not in self.not_checked:
            self.not_checked.append(what)


def checks(
    recording: Recording,
    outputs: OutputProjection | None = None,
    norms: Norms | None = None,
    built: Mapping[str, Any] | None = None,
) -> tuple[Check, ...]:
    """Every law of a recording, checked.

    outputs: by attention W_O cut by head, (layer, head, d_head, d_model), and b_O (layer, d_model).
    norms: by stream, then by place, gain and bias (d_model), eps, whether the mean is subtracted.
    Without them these laws are
    not checked. built: how the model was built, where it differs from the paper: `residual` False;
    `biased` True where something is added to q . k; `bound` what its scores stay below.
    """
    built = built or {}
    with np.errstate(invalid="ignore", over="ignore"):  # a number that is none is found, and said
        return (
            row_sums(recording),
            masked_weights(recording),
            scores(recording, bool(built.get("biased")), float(built.get("bound") or 0)),
            softmax(recording),
            attention_outputs(recording, outputs),
            residual_sums(recording, bool(built.get("residual", True))),
            layer_norms(recording, norms),
        )


def row_sums(recording: Recording) -> Check:
    """Every row of weights sums to 1."""
    check = Check(LAWS("row_sums"), ROUNDING)
    for attention, layer, head in _heads(recording):
        pattern = attention.pattern[layer, head]
        check.take(
            np.ones(len(pattern)),
            pattern.sum(axis=1, dtype=np.float64),
            _in_head(recording, attention, layer, head),
        )
    return check


def masked_weights(recording: Recording) -> Check:
    """Check that the weight is exactly 0 where attending is not allowed."""
    check = Check(LAWS("masked_weights"), 0.0)
    for attention, layer, head in _heads(recording):
        if not (allowed := attention.allowed[layer]).all():
            forbidden_weights = np.where(allowed, 0, attention.pattern[layer, head])
            n = check.numbers
            check.take(np.zeros(1), forbidden_weights, _in_head(recording, attention, layer, head))
            check.numbers = n + int((~allowed).sum())
    if not check.checked:
        check.leave(NOT_CHECKED("no_mask"))
    return check


def scores(recording: Recording, biased: bool = False, bound: float = 0.0) -> Check:
    """Scores are q . k times the model's scale, 1 / sqrt(d_head) in the paper; under an edit
    divided by something else, or less a penalty on distance. bound: c where they are c tanh(that /
    c), 0 for none."""
    edits = [
        *edits_of_type(recording, ScaledBy),
        *edits_of_type(recording, WithoutScale),
        *(each for each in edits_of_type(recording, OtherPositions) if each.to == "distance"),
    ]
    law = _score_law(recording)
    law = LAWS("bounded", law=law, bound=bound) if bound else law
    check = Check(f"{law}{_edit_note(edits)}", SUM_ROUNDING)
    for attention, layer, head in _heads(recording):
        if not attention.opens:
            check.leave(NOT_CHECKED("q_and_k", attention=attention.name))
            continue
        if biased:
            check.leave(NOT_CHECKED("bias", attention=attention.name))
            continue
        q, k = (
            attention.q[layer, head].astype(np.float64),
            attention.k[layer, head].astype(np.float64),
        )
        expected = q @ k.T / score_divisor(recording, attention, layer)[0] - distance_penalty(
            recording, attention, head
        )
        expected = bound * np.tanh(expected / bound) if bound else expected
        check.take(
            expected, attention.scores[layer, head], _in_head(recording, attention, layer, head)
        )
    return check


def softmax(recording: Recording) -> Check:
    """Each row of weights is the softmax of its scores over the allowed keys; of a head whose
    pattern an edit changes, what the edit makes of it."""
    edits = [edit for edit in recording.edits if edit.place.endswith(".pattern")]
    check = Check(f"softmax(scores) = weights{_edit_note(edits)}", ROUNDING)
    for attention, layer, head in _heads(recording):
        allowed = allowed_cells(recording, attention, layer, head)
        if not attention.opens:
            check.leave(NOT_CHECKED("scores", attention=attention.name))
            continue
        masked = np.where(allowed, attention.scores[layer, head].astype(np.float64), -np.inf)
        exponentials = np.exp(masked - masked.max(axis=1, keepdims=True))
        expected = exponentials / exponentials.sum(axis=1, keepdims=True)
        if attention.sink.size:  # a learned sink takes its part of each row
            expected *= 1 - attention.sink[layer, head, :, None].astype(np.float64)
        place = place_of(attention.name, layer, "pattern")
        expected = edited(expected, recording.edits, place, head, allowed)
        # A score of 1000 is itself known to 1/10000 in 32 bits, and its e^score as a share no
        # better.
        largest = float(np.abs(attention.scores[layer, head]).max()) / 10
        check.take(
            expected,
            attention.pattern[layer, head],
            _in_head(recording, attention, layer, head),
            largest,
        )
    return check


def attention_outputs(recording: Recording, outputs: OutputProjection | None) -> Check:
    """The heads' weights x V, side by side through W_O and with its bias, are what the attention
    wrote; heads that an edit changed as changed."""
    off = [
        edit for edit in recording.edits if isinstance(edit, Ablation) and edit.place.endswith(".z")
    ]
    check = Check(LAWS("outputs", edit=_edit_note(off)), SUM_ROUNDING)
    for attention in recording.attention:
        stream = recording.stream(attention.query)
        if outputs is None or attention.name not in outputs or not attention.opens:
            check.leave(
                NOT_CHECKED("no_w_o" if attention.opens else "no_v", attention=attention.name)
            )
            continue
        w_o, bias = outputs[attention.name]
        for layer in range(len(attention.pattern)):
            site = output_site(attention, layer)
            replacing_edits: list[Edit] = [
                edit
                for edit in edits_of_type(recording, PatchHead)
                if (edit.attention, edit.layer) == (attention.name, layer)
            ]
            replacing_edits += patched_outputs(recording, stream, site)
            if site not in stream.sites or replacing_edits:
                check.leave(
                    f"{site_name(site)}: "
                    f"{'; '.join(map(str, replacing_edits)) or 'the model does not show it'}"
                )
                continue
            expected = np.tile(bias[layer].astype(np.float64), (len(stream.tokens), 1))
            for head in range(attention.pattern.shape[1]):
                expected += head_z(recording, attention, layer, head) @ w_o[layer, head].astype(
                    np.float64
                )
            check.take(expected, stream.at(site), _in_stream(stream, site))
    return check


def residual_sums(recording: Recording, residual: bool = True) -> Check:
    """Check that before + a sub-layer's output = after, at every sum of every stream; without a
    residual connection, after = its output."""
    residual_edits = edits_of_type(recording, WithoutResidual)
    check = Check(
        LAWS("residual") if residual else LAWS("no_residual"),
        ROUNDING,
    )
    check.law += _edit_note(residual_edits, "wrote = after")
    for stream in recording.streams:
        triples = stream.writes()
        if not triples:
            check.leave(NOT_CHECKED("sublayers", stream=stream.name))
        for before, wrote, total in triples:
            if patches := patched_outputs(recording, stream, total):
                check.leave(f"{site_name(total)}: {'; '.join(map(str, patches))}")
                continue
            adds = (
                residual and not _residual_removed(residual_edits, wrote)
            ) or wrote == "pos.wrote"
            expected = stream.at(wrote).astype(np.float64) + (stream.at(before) if adds else 0)
            check.take(expected, stream.at(total), _in_stream(stream, total))
    return check


def layer_norms(recording: Recording, norms: Norms | None) -> Check:
    """Each LayerNorm's output, from what goes into it and its gain and bias."""
    name = norm_name(
        entry[3] for stream_norms in (norms or {}).values() for entry in stream_norms.values()
    )
    check = Check(LAWS("norms", norm=name), SUM_ROUNDING)
    for stream in recording.streams:
        stream_norms = {} if norms is None else norms.get(stream.name, {})
        state = stream.sites[0] if stream.sites else ""
        has_norm = False
        for site in stream.sites:
            place, _, kind = site.rpartition(".")
            if kind in ("read", "normed"):
                has_norm = True
                _check_norm(check, recording, stream, stream_norms, place, state, site)
            if kind not in ("read", "wrote"):
                state = site
        if not has_norm:
            edit_note = _edit_note(edits_of_type(recording, WithoutNorm))
            check.leave(NOT_CHECKED("no_norm", stream=stream.name, edit=edit_note))
    return check


def _check_norm(
    check: Check,
    recording: Recording,
    stream: Stream,
    stream_norms: Mapping[str, tuple[np.ndarray, np.ndarray, float, bool]],
    place: str,
    state: str,
    site: str,
) -> None:
    if patches := patched_outputs(recording, stream, site):
        return check.leave(f"{site_name(site)}: {'; '.join(map(str, patches))}")
    if place in stream_norms:
        gain, bias, eps, centred = stream_norms[place]
    elif place == "final" and stream_norms:
        # A model of another kind has learned none; LayerNorm moved by an edit ends in a bare one.
        _, _, eps, centred = next(iter(stream_norms.values()))
        gain, bias = np.ones(1), np.zeros(1)
    else:
        return check.leave(NOT_CHECKED("gain_and_bias", norm=site_name(site)))
    x = stream.at(state).astype(np.float64)
    check.take(normalised(x, eps, centred) * gain + bias, stream.at(site), _in_stream(stream, site))


# ---- what edits change ----


def _edit_note(edits: Sequence[Edit], then: str = "") -> str:
    """The edits that a law takes into account, in words."""
    return f" ({f'{then}: ' if then else ''}{'; '.join(map(str, edits))})" if edits else ""


def scale_text(attention: Attention, layer: int) -> str:
    """The factor after "q · k" in a layer's scores: " / √64" in the paper, "" for none, else the
    model's own factor."""
    scale, width = float(attention.scale[layer]), attention.q.shape[-1]
    if np.isclose(scale, width**-0.5):
        return f" / √{width}"
    return "" if np.isclose(scale, 1) else f" × {scale:.4g}"


def _score_law(recording: Recording) -> str:
    """The formula of this model's scores from q . k."""
    scales = [
        float(scale) * sqrt(attention.q.shape[-1])
        for attention in recording.attention
        for scale in attention.scale
    ]
    if np.allclose(scales, 1):
        return LAWS("scaled")
    plain_scales = [float(scale) for attention in recording.attention for scale in attention.scale]
    if np.allclose(plain_scales, 1):
        return LAWS("unscaled")
    if np.allclose(plain_scales, plain_scales[0]):
        return LAWS("own_scale", scale=plain_scales[0])
    return LAWS("own_scales", low=min(plain_scales), high=max(plain_scales))


def _residual_removed(edits: list[WithoutResidual], wrote: str) -> bool:
    """True where an edit took the residual away around the sub-layer that wrote at a site, such as
    "0.attn.wrote"."""
    layer, _, rest = wrote.partition(".")
    sublayer = rest.removesuffix(".wrote")
    return any(
        layer.isdecimal() and edit.layer in (None, int(layer)) and edit.sublayer in (None, sublayer)
        for edit in edits
    )


# ---- where ----


def _heads(recording: Recording) -> Iterator[tuple[Attention, int, int]]:
    """Iterate over every head of every attention, so that only one at a time is in memory in 64
    bits."""
    for attention in recording.attention:
        for layer in range(attention.pattern.shape[0]):
            for head in range(attention.pattern.shape[1]):
                expect_wanted()
                yield attention, layer, head


def _in_head(
    recording: Recording, attention: Attention, layer: int, head: int
) -> Callable[[tuple[int, ...]], str]:
    which = "" if len(recording.attention) == 1 else f"{attention.name}, "
    return lambda place: (
        f"{which}layer {layer}, head {head}, row {place[0]}"
        + (f", column {place[1]}" if len(place) > 1 else "")
    )


def _in_stream(stream: Stream, site: str) -> Callable[[tuple[int, ...]], str]:
    where = f"{stream.name} stream, {site_name(site)}"
    return lambda place: f"{where}, token {place[0]}, dimension {place[1]}"
