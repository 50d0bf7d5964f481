"""Both sides of every formula, from a recording: each function is that of its formula's id in
`explorer/text/formulas.toml`, with `_` for `-`.

A function raises `Untestable` where the formula is not about this model, and gives its evidence: a
check of all numbers of the recording, made when it is called, and the numbers of one place, by the
names of the slots in the formula's lines. What is a vector is shown by one of its numbers, the
largest of the result.

Axis legend as in `models/contract/recording.py`; everything is computed in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from explorer.analysis import anatomy, consistency, gradients, positions, predictions, residual
from explorer.analysis.consistency import SUM_ROUNDING, Check
from explorer.analysis.gradients import NETWORK_WIDTH
from explorer.analysis.measure import (
    FEWEST,
    LACKS,
    NO_QKV,
    MeasureContext,
    Untestable,
    causal_attention,
    embedding_factor,
    layers_of,
    output_stream,
    require_tied_readout,
    state_before,
    subsample,
)
from explorer.analysis.soft_lookup import attention_input, random_variance, tempered_softmax
from explorer.analysis.weight_texts import (
    LEAST,
    MOST_TERMS,
    aligned,
    largest,
    powers,
    term_places,
    terms,
    texts,
)
from explorer.figures.formatting import (
    MOST_DIGITS,
    Written,
    fixed,
    matches_text,
    parse_number,
    plural,
    power,
    shortened,
    word_in_sentence,
)
from explorer.wording.templates import sentences
from models.contract.edits import (
    OtherPositions,
    SharedKeys,
    ShiftPositions,
    ShufflePositions,
    WithoutPositions,
)
from models.contract.recording import Attention, Recording, Stream, from_end, stored_array
from models.contract.results import FFNActivations, TrainingStep
from models.contract.results import softmax as probabilities
from models.own import model_card

REASONS = sentences("formulas", "untestable")


@dataclass(frozen=True)
class Name:
    """A factor of a sum as a symbol: its letter and its index, or what stands for the rest."""

    letter: str
    index: str


# The last two: a sum of products, and the names of its factors.
Number = float | int | Sequence[tuple[float, ...]] | Sequence[tuple[Name, ...]]
Pairs = Iterable[tuple[np.ndarray, np.ndarray]]  # what should stand somewhere, and what does

LONGEST_INDEX = 12  # characters of a word that is the index of a symbol
MOST_STEPS = 32  # tokens that are read one at a time
N_LAYERS = 8  # of a random stack
# Edits that turn queries and keys otherwise, or share them.
PLACING = (OtherPositions, SharedKeys, ShiftPositions, ShufflePositions, WithoutPositions)
STEP = 1e-5  # of a numerical derivative
ALMOST_ALL = 0.9999  # a cold softmax’s weight, beside which no digit of the others is seen
SHIFT = 3  # added to every score of a row
RATE = 0.001  # of one step of training


def _index(label: str) -> str:
    """A word as the index of a symbol: a punctuation mark in quotes, else it is not seen there."""
    return word_in_sentence(shortened(label, LONGEST_INDEX))


@dataclass(frozen=True)
class Evidence:
    """Evidence of a recording for a formula: its check, and its numbers at one place. instead: of
    parts of its lines what stands there of this model, "" for what it does not have."""

    check: Callable[[], Check]
    numbers: Mapping[str, Number] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class RecordedPlace:
    """A place of a recording: a cell of a head, and the token of the stream that its row belongs
    to, or of another. attention_name: of its attention, the first where "". site: of a sub-layer, a
    whole layer or a norm, the layer's first where "". width, pair, position, shift: of an encoding
    that is drawn, its dimensions, a pair of these, a position, and by how many others; None for
    any. target: the token (id) whose probability is spoken of, the likeliest where None.
    temperature: by which scores or logits are divided; training: a step on the recording."""

    context: MeasureContext
    layer: int = 0
    head: int = 0
    token: int = 0
    key: int | None = None
    attention_name: str = ""
    stream_name: str = ""
    site: str = ""
    width: int | None = None
    pair: int | None = None
    position: int | None = None
    shift: int | None = None
    target: int | None = None
    temperature: float = 2.0
    training: TrainingStep | None = None

    @classmethod
    def of(cls, context: MeasureContext, arguments: Mapping[str, Any]) -> RecordedPlace:
        """The place that the arguments of a panel name: layer, head, token, source, attention and
        stream; of a panel without a layer, that of the recording's strongest finding where that is
        one of the same attention and stream."""
        finding = None if "layer" in arguments else context.strongest_in_head()
        if finding is not None and _is_of(context.recording, arguments, finding.attention):
            cell = dict(layer=finding.layer, head=finding.head, attention=finding.attention)
            arguments = {**cell, "token": finding.query, **arguments}
        card = context.recording.model
        place = cls(
            context,
            from_end(arguments.get("layer") or 0, card.n_layer),
            from_end(arguments.get("head") or 0, card.n_head),
            key=arguments.get("source"),
            attention_name=arguments.get("attention") or "",
            stream_name=arguments.get("stream") or "",
            site=arguments.get("site") or "",
            width=arguments.get("width"),
            pair=arguments.get("pair"),
            position=arguments.get("position"),
            shift=arguments.get("shift"),
            target=arguments.get("target_id"),
            temperature=arguments.get("temperature", cls.temperature),
            training=arguments.get("training"),
        )
        return replace(place, token=from_end(arguments.get("token") or 0, len(place.stream.tokens)))

    @cached_property
    def attention(self) -> Attention:
        """Its attention. Raises Untestable where there is none."""
        named = [
            each
            for each in self.context.recording.attention
            if self.attention_name in ("", each.name)
        ]
        if not named:
            raise Untestable(LACKS)
        return named[0]

    @property
    def opened(self) -> Attention:
        """Its attention with scores, queries, keys and values. Raises Untestable without them."""
        if not self.attention.opens:
            raise Untestable(NO_QKV)
        return self.attention

    @cached_property
    def stream(self) -> Stream:
        """The stream of the row."""
        recording = self.context.recording
        if self.stream_name or not recording.attention:
            return recording.stream(self.stream_name or recording.streams[0].name)
        named = (each.query for each in recording.attention if each.name == self.attention_name)
        return recording.stream(next(named, recording.attention[0].query))

    @cached_property
    def cell(self) -> anatomy.WeightBreakdown:
        """Its cell, that of the largest weight without a key."""
        weights = self.opened.pattern[self.layer, self.head, self.token]
        key = int(weights.argmax()) if self.key is None else self.key
        at = self.layer, self.head, self.token
        return anatomy.cell(self.context.recording, self.opened, *at, key)

    @cached_property
    def outputs(self) -> anatomy.HeadOutputs:
        """The outputs of the layer's heads at the row. Raises Untestable where W_O is not known."""
        contributions = anatomy.head_outputs(
            self.context.recording, self.opened, self.layer, self.token, self.projection
        )
        if contributions is None:
            raise Untestable(LACKS)
        return contributions

    def key_word(self, key: int) -> str:
        """The label of a key of its attention."""
        return self.context.recording.stream(self.attention.key).tokens[key]

    @property
    def projection(self) -> anatomy.Outputs:
        """W_O and its bias."""
        return self.context.outputs()[self.opened.name]


def _is_of(recording: Recording, arguments: Mapping[str, Any], name: str) -> bool:
    """True where an attention is the one that arguments name, and writes to their stream."""
    of = next(each for each in recording.attention if each.name == name)
    is_named = arguments.get("attention", name) in (
        name,
        "" if of is recording.attention[0] else name,
    )
    is_first = of.query == recording.streams[0].name
    return is_named and arguments.get("stream", of.query) in (
        of.query,
        "" if is_first else of.query,
    )


def checked(evidence: Evidence) -> Check:
    """The check of a formula. Raises Untestable where there was nothing to compare."""
    check = evidence.check()
    if not check.checked:
        raise Untestable(f"{'; '.join(check.not_checked) or LACKS}.")
    return check


def _compared(pairs: Callable[[], Pairs], share: float = SUM_ROUNDING) -> Callable[[], Check]:
    """A check of all pairs, held to a share of the largest number."""

    def check() -> Check:
        result = Check("", share)
        for expected, recorded in pairs():
            result.take(np.asarray(expected), np.asarray(recorded), str)
        return result

    return check


def _summed(
    *factors: np.ndarray,
    letters: str,
    labels: Callable[[int], str] = str,
    write: Callable[[float], str] | None = None,
) -> dict[str, Any]:
    """A sum of products as `terms` lists it, and the names of its factors. letters: one for each of
    the factors, or of one that is a product; labels: the index of a place."""
    places = term_places(*factors)
    names = [tuple(Name(letter, _index(labels(int(at)))) for letter in letters) for at in places]
    rest = len(factors[0]) - len(places)
    if rest:
        names.append((Name("", plural(rest, "other")),))
    return {"sum": terms(*factors, write=write), "names": names}


# ---- one head ------------------------------------------------------------------------------------


def _require_products(at: RecordedPlace) -> None:
    """Raises Untestable where something is added to q . k, and where its scores are bounded."""
    if at.context.capabilities.biased:
        raise Untestable(REASONS("added"))
    if bound := at.context.capabilities.bound:
        raise Untestable(REASONS("bounded", bound=bound))


def _products(at: RecordedPlace) -> Iterable[tuple[int, np.ndarray]]:
    """q . k of every layer, (head, query, key)."""
    for layer, (q, k) in enumerate(zip(at.opened.q, at.opened.k)):
        yield layer, q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2)


def dot(at: RecordedPlace) -> Evidence:
    """q . k beside the recorded score, times what it was divided by."""
    _require_products(at)
    pairs = lambda: (
        (each, at.opened.scores[layer] / at.opened.scale[layer]) for layer, each in _products(at)
    )
    cell = at.cell
    numbers: dict[str, Number] = {
        **_summed(cell.q.astype(np.float64) * cell.k, letters="qk"),
        "dot": Written(cell.dots[cell.key], texts(cell).dot),
    }
    return Evidence(_compared(pairs), numbers)


def score(at: RecordedPlace) -> Evidence:
    """q . k divided by the root of the width beside the recorded score."""
    _require_products(at)
    pairs = lambda: (
        (each / np.sqrt(at.opened.q.shape[-1]), at.opened.scores[layer])
        for layer, each in _products(at)
    )
    return Evidence(_compared(pairs), _of_cell(at))


def _of_cell(at: RecordedPlace) -> dict[str, Number]:
    """The numbers from q . k to the weight of a cell."""
    cell, written = at.cell, texts(at.cell)
    numbers: dict[str, Number] = {
        "dot": Written(cell.dots[cell.key], written.dot),
        "d_k": len(cell.q),
        "s_ij": Written(cell.scores[cell.key], written.score),
        "a_ij": Written(cell.softmax[cell.key], written.softmax),
    }
    if cell.plain is None:
        return numbers
    both = powers(cell, written.power_decimals)
    return numbers | {"power": both[0][0], "powers": both}


def softmax(at: RecordedPlace) -> Evidence:
    """The softmax of the recorded scores beside the recorded weights."""
    if at.cell.uniform_edit is not None or not at.cell.allowed[at.cell.key]:
        return Evidence(lambda: consistency.softmax(at.context.recording))
    return Evidence(lambda: consistency.softmax(at.context.recording), _of_cell(at))


def _changed(cell: anatomy.WeightBreakdown, by: float, plus: float) -> dict[str, Number]:
    """The numbers of a cell's weight with all scores divided and something added."""
    own = cell.scores / by + plus
    made = replace(cell, scores=own, softmax=tempered_softmax(own, cell.allowed))
    is_all = by < 1 and made.softmax[cell.key] > ALMOST_ALL
    if made.plain is None or is_all:
        return {}
    score, weight = float(cell.scores[cell.key]), float(made.softmax[cell.key])
    return {"s_ij": score, "a_ij": weight, "powers": powers(made, LEAST)}


def shifted(at: RecordedPlace) -> Evidence:
    """The softmax of the recorded scores, each with the same number added, beside the weights."""
    of = at.opened
    if of.sink.size or at.context.recording.edits:
        raise Untestable(REASONS("added"))
    pairs = lambda: (
        (tempered_softmax(scores.astype(np.float64) + SHIFT, allowed), weights)
        for scores, allowed, weights in zip(of.scores, of.allowed, of.pattern)
    )
    numbers = _changed(at.cell, 1, SHIFT)
    return Evidence(_compared(pairs), {**numbers, "c": SHIFT} if numbers else {})


def tempered(at: RecordedPlace) -> Evidence:
    """The softmax of q . k divided by the root of the width and by a temperature, beside that of
    the recorded scores divided by it."""
    _require_products(at)
    t, of = at.temperature, at.opened
    if of.sink.size:
        raise Untestable(REASONS("added"))
    if not 0 < t < np.inf:
        return Evidence(lambda: consistency.softmax(at.context.recording))

    def pairs() -> Pairs:
        for layer, products in _products(at):
            both = products * of.scale[layer], of.scores[layer].astype(np.float64)
            first, second = (tempered_softmax(each, of.allowed[layer], t) for each in both)
            yield first, second

    numbers = _changed(at.cell, t, 0)
    return Evidence(_compared(pairs), {**numbers, "t": Written(t, f"{t:g}")} if numbers else {})


def softmax_gradient(at: RecordedPlace) -> Evidence:
    """The slopes of a row's weights along their own scores, taken numerically, beside a (1 - a)."""
    cell = at.cell
    scores = cell.scores[cell.allowed].astype(np.float64)
    weights = probabilities(scores)
    slopes = weights * (1 - weights)
    keys = np.flatnonzero(cell.allowed)
    labels = lambda each: at.key_word(int(keys[each]))
    numbers = _summed(weights, 1 - weights, letters="aa", labels=labels)
    names = [
        (one[0], Name("", "(1 − "), one[1], Name("", ")")) if len(one) > 1 else one
        for one in numbers["names"]
    ]
    numbers |= {"names": names, "slope": float(slopes.sum())}

    def pairs() -> Pairs:
        yield slopes, np.diag(_derivative(probabilities, scores))

    return Evidence(_compared(pairs), numbers)


def rows(at: RecordedPlace) -> Evidence:
    """The sum of a row of weights beside 1."""
    weights = at.attention.pattern[at.layer, at.head, at.token].astype(np.float64)
    allowed = at.attention.allowed[at.layer, at.token]
    places = np.flatnonzero(allowed)
    of_key = lambda each: at.key_word(int(places[each]))
    numbers = _summed(weights[allowed], letters="a", labels=of_key) | {"one": 1.0}
    return Evidence(lambda: consistency.row_sums(at.context.recording), numbers)


def mean_distance(at: RecordedPlace) -> Evidence:
    """A row's mean distance as a sum over its keys beside the product of weights and distances."""
    of = at.attention
    if of.query != of.key:
        raise Untestable(REASONS("no_distance"))
    places = np.arange(of.pattern.shape[3])
    apart = np.abs(places[:, None] - places).astype(np.float64)
    row, own = of.pattern[at.layer, at.head, at.token].astype(np.float64), apart[at.token]

    def pairs() -> Pairs:
        for pattern in of.pattern[at.layer].astype(np.float64):
            yield (pattern * apart).sum(axis=1), np.array([a @ b for a, b in zip(pattern, apart)])

    return Evidence(
        _compared(pairs),
        _summed(row, own, letters="ad", labels=at.key_word) | {"distance": float(row @ own)},
    )


def mask(at: RecordedPlace) -> Evidence:
    """The weights where the mask does not allow attention beside 0."""
    masked = ~at.attention.allowed[at.layer]
    if not masked.any():
        raise Untestable(REASONS("no_mask"))
    rows = np.flatnonzero(masked.any(axis=1))
    place = int(np.searchsorted(rows, at.token, "right")) - 1
    row = int(rows[max(0, place)])  # its own or one before
    numbers: dict[str, Number] = {}
    if at.attention.opens:
        allowed = at.attention.allowed[at.layer, row]
        scores = at.attention.scores[at.layer, at.head, row, allowed].astype(np.float64)
        sums = np.exp(scores)
        numbers = {"powers": terms(sums), "zero": 0} if np.isfinite(sums.sum()) else {}
    return Evidence(lambda: consistency.masked_weights(at.context.recording), numbers)


def weighted_sum(at: RecordedPlace) -> Evidence:
    """The sum of all values, one after another, beside the product of weights and values."""
    attention = at.opened

    def pairs() -> Pairs:
        for pattern, values in zip(attention.pattern, attention.v):
            total = np.zeros((*pattern.shape[:2], values.shape[-1]))
            for key in range(pattern.shape[-1]):
                total += pattern[..., key, None] * values[:, None, key].astype(np.float64)
            yield total, pattern.astype(np.float64) @ values.astype(np.float64)

    return Evidence(_compared(pairs), _of_value(at))


def _of_value(at: RecordedPlace) -> dict[str, Number]:
    """The number of z that stands for it, as a sum over the keys."""
    cell = at.cell
    dimension = largest(cell.z)
    values = cell.v[:, dimension]
    write = partial(aligned, decimals=texts(cell).weight_decimals)
    named = _summed(cell.weights, values, letters="av", labels=at.key_word, write=write)
    z = Written.by(power, cell.z[dimension])  # as the decimals of the weights are chosen for it
    return named | {"z_i": z, "m": dimension}


def attention(at: RecordedPlace) -> Evidence:
    """softmax(Q K^T / sqrt(d)) V of the recorded Q, K and V beside the recorded weights' sum."""
    _require_products(at)

    def pairs() -> Pairs:
        of = at.opened
        for layer, products in _products(at):
            sink = of.sink_scores[layer] if of.sink.size else None
            row = tempered_softmax(products / np.sqrt(of.q.shape[-1]), of.allowed[layer], sink=sink)
            values = of.v[layer].astype(np.float64)
            yield row @ values, of.pattern[layer].astype(np.float64) @ values

    return Evidence(_compared(pairs), _of_cell(at) | _of_value(at))


def matrices(at: RecordedPlace) -> Evidence:
    """S, A and Z one after another: the same."""
    return attention(at)


def permutation(at: RecordedPlace) -> Evidence:
    """Attention of the rows in another order beside its outputs in that order; its numbers are one
    weight in both orders."""
    _require_products(at)
    if not at.opened.allowed.all() or at.opened.query != at.opened.key:
        raise Untestable(REASONS("masked"))
    of, cell = at.opened, at.cell
    order = np.random.default_rng(0).permutation(of.q.shape[2])
    everywhere = np.ones(of.allowed.shape[1:], dtype=bool)

    def weights(layer: int) -> np.ndarray:
        q, k = (each[layer][:, order].astype(np.float64) for each in (of.q, of.k))
        return tempered_softmax(q @ k.swapaxes(-1, -2) * of.scale[layer], everywhere)

    def pairs() -> Pairs:
        for layer, v in enumerate(of.v):
            expected = of.pattern[layer].astype(np.float64) @ v.astype(np.float64)
            yield weights(layer) @ v[:, order].astype(np.float64), expected[:, order]

    there = np.argsort(order)
    other = weights(at.layer)[at.head, there[at.token], there[cell.key]]
    numbers: dict[str, Number] = {"a_ij": float(cell.weights[cell.key]), "other": float(other)}
    return Evidence(_compared(pairs), numbers)


# ---- all heads -----------------------------------------------------------------------------------


def width(at: RecordedPlace) -> Evidence:
    """The width of a head beside that of the model, cut by heads."""
    model = at.context.recording.model
    d, heads, d_head = model.d_model, model.n_head, at.opened.q.shape[-1]
    pairs = lambda: [(np.array([d / heads]), np.array([float(d_head)]))]
    numbers = {"d": d, "heads": heads, "width": d_head, "root": float(np.sqrt(d_head))}
    return Evidence(_compared(pairs), numbers)


def concatenation(at: RecordedPlace) -> Evidence:
    """All heads side by side through W_O beside what attention wrote."""
    heads = at.outputs
    dimension = largest(heads.total)
    parts = np.append(heads.by_head[:, dimension], heads.bias[dimension])
    labels = lambda each: f"head {each}" if each < len(parts) - 1 else "b"
    numbers = _summed(parts, letters="y", labels=labels)
    numbers |= {"y": float(heads.total[dimension]), "m": dimension}
    outputs = at.context.outputs()
    return Evidence(lambda: consistency.attention_outputs(at.context.recording, outputs), numbers)


def sum_over_heads(at: RecordedPlace) -> Evidence:
    """The sum of what each head writes beside the product of all, concatenated."""
    w_o, bias = at.projection

    def pairs() -> Pairs:
        for layer, (pattern, v) in enumerate(zip(at.opened.pattern, at.opened.v)):
            z = pattern.astype(np.float64) @ v.astype(np.float64)
            whole = z.transpose(1, 0, 2).reshape(z.shape[1], -1)
            by_head = sum(each @ w for each, w in zip(z, w_o[layer].astype(np.float64)))
            flat = w_o[layer].astype(np.float64).reshape(whole.shape[1], -1)
            yield by_head + bias[layer], whole @ flat + bias[layer]

    instead = {} if bias.any() else {" + b_O": ""}
    return Evidence(_compared(pairs), concatenation(at).numbers, instead)


def output_gradient(at: RecordedPlace) -> Evidence:
    """The gradient of each head's output by automatic differentiation, beside the gradient of the
    sum through that head's rows of W_O."""
    at.context.require_readout()
    if not at.context.targets:
        raise Untestable(LACKS)
    w_o = at.projection[0][at.layer].astype(np.float64)
    of = at.context.head_gradients(at.opened.name, at.layer)
    output = of.output.astype(np.float64)
    own = of.heads[at.head, at.token]
    dimension = largest(own)
    numbers: dict[str, Number] = {
        **_summed(output[at.token], w_o[at.head, dimension], letters="gw"),
        "z": float(own[dimension]),
        "m": dimension,
    }
    pairs = lambda: ((output @ each.T, heads) for each, heads in zip(w_o, of.heads))
    return Evidence(_compared(pairs), numbers)


def messages(at: RecordedPlace) -> Evidence:
    """The messages along the edges of the graph beside what attention wrote; its numbers are those
    of one head, before W_O."""
    of, (w_o, bias) = at.opened, at.projection

    def pairs() -> Pairs:
        for layer, (pattern, v) in enumerate(zip(of.pattern, of.v)):
            site = consistency.output_site(of, layer)
            on_edges = pattern.astype(np.float64) * of.allowed[layer]
            total = bias[layer].astype(np.float64)
            for head, z in enumerate(on_edges @ v.astype(np.float64)):
                total = total + z @ w_o[layer, head].astype(np.float64)
            yield total, at.stream.at(site)

    return Evidence(_compared(pairs), _of_value(at))


def _read_by(recording: Recording, of: Attention, layer: int, name: str) -> np.ndarray:
    """The vectors that an attention makes its q, k or v of, (token, d_model)."""
    if of.query == of.key:
        read = attention_input(recording, of, layer)
        if read is None:
            raise Untestable(LACKS)
        return read.astype(np.float64)
    if name != "q":
        return recording.stream(of.key).resid[-1].astype(np.float64)
    stream, site = recording.stream(of.query), f"{layer}.cross.read"
    site = site if site in stream.sites else state_before(stream, layer, "cross")
    return residual.site_vectors(stream, site)


def _projected(at: RecordedPlace, of: Attention, names: str) -> Evidence:
    """Vectors times W_Q, W_K and W_V beside the recorded queries, keys and values."""
    context, recording = at.context, at.context.recording

    def pairs() -> Pairs:
        for layer in range(len(of.q)):
            for name, (w, bias) in context.model.projections(of.name, layer).items():
                projected = _read_by(recording, of, layer, name) @ w.astype(np.float64) + bias
                heads = stored_array(getattr(of, name))[layer]
                yield projected, heads.transpose(1, 0, 2).reshape(len(projected), -1)

    numbers: dict[str, Number] = {}
    layer, head = (at.layer, at.head) if of is at.opened else (0, 0)
    matrices = context.model.projections(of.name, layer)
    for name in names:
        if name not in matrices:
            raise Untestable(REASONS("turned"))
        w, bias = (each.astype(np.float64) for each in matrices[name])
        x = _read_by(recording, of, layer, name)
        row = x[min(at.token if name == "q" else at.cell.key, len(x) - 1)]
        projected = row @ w + bias
        by_head = projected.reshape(-1, getattr(of, name).shape[-1])
        own = head * len(by_head) // of.pattern.shape[1]  # of heads that share keys and values
        dimension = own * by_head.shape[1] + largest(by_head[own])
        factors = np.append(row, 1.0), np.append(w[:, dimension], bias[dimension])
        labels = lambda each, n=len(row): str(each) if each < n else "b"
        named = _summed(*factors, letters="xw", labels=labels)
        numbers |= {f"{name}_{key}": each for key, each in named.items()}
        numbers[name] = float(projected[dimension])
        numbers[f"{name}_m"] = dimension % by_head.shape[1]
    return Evidence(_compared(pairs), numbers)


def projections(at: RecordedPlace) -> Evidence:
    """Self-attention's vectors times W_Q, W_K and W_V beside its queries, keys and values."""
    if at.opened.query != at.opened.key:
        raise Untestable(REASONS("cross"))
    return _projected(at, at.opened, "qkv")


def values(at: RecordedPlace) -> Evidence:
    """The same of the token's value alone, where queries and keys are turned."""
    if at.opened.query != at.opened.key:
        raise Untestable(REASONS("cross"))
    if "q" in at.context.model.projections(at.opened.name, at.layer):
        raise Untestable(REASONS("not_turned"))
    return _projected(replace(at, key=at.token), at.opened, "v")


def rotary(at: RecordedPlace) -> Evidence:
    """Vectors times W_Q and W_K, each pair turned by its position, beside the recorded queries and
    keys."""
    of, recording = at.opened, at.context.recording
    if of.query != of.key:
        raise Untestable(REASONS("cross"))
    if any(isinstance(each, PLACING) for each in recording.edits):
        raise Untestable(REASONS("placed"))
    turned = at.context.model.rotary(of.name, at.layer)
    if turned is None:
        raise Untestable(REASONS("not_turned"))

    def pairs() -> Pairs:
        for layer in range(len(of.q)):
            how = at.context.model.rotary(of.name, layer)
            if how is None:
                continue
            x = _read_by(recording, of, layer, "q")
            for name in ("q", "k"):
                heads = stored_array(getattr(of, name))[layer]
                vectors = _unturned(x, getattr(how, name), heads.shape[-1])
                yield positions.turned(vectors, how.angles), heads

    x = _read_by(recording, of, at.layer, "q")
    made = _unturned(x, turned.q, of.q.shape[-1])[at.head, at.token]
    n = len(turned.angles)
    pair = min(1, n - 1) if at.pair is None else min(at.pair, n - 1)
    query = of.q[at.layer, at.head, at.token]
    numbers: dict[str, Number] = {
        "i": at.token,
        "angle": float(turned.angles[pair]),
        "first": float(made[pair]),
        "second": float(made[pair + n]),
        "q": float(query[pair]),
        "q_further": float(query[pair + n]),
        "m": pair,
        "n": pair + n,
    }
    return Evidence(_compared(pairs), numbers)


def _unturned(x: np.ndarray, projection: tuple[np.ndarray, np.ndarray], d_head: int) -> np.ndarray:
    """Queries or keys (head, token, d_head) of vectors (token, d_model) before their positions turn
    them."""
    w, bias = (each.astype(np.float64) for each in projection)
    return (x @ w + bias).reshape(len(x), -1, d_head).swapaxes(0, 1)


def cross(at: RecordedPlace) -> Evidence:
    """Cross-attention's queries from the decoder, its keys and values from the encoder."""
    across = [each for each in at.context.recording.attention if each.query != each.key]
    if not across:
        raise Untestable(REASONS("one_stream"))
    return _projected(at, across[0], "qkv")


def scorings(at: RecordedPlace) -> Evidence:
    """The naive and the symmetric scores of a pair beside those of the pair turned round."""
    of = at.opened
    if of.query != of.key:
        raise Untestable(REASONS("cross"))
    read = attention_input(at.context.recording, of, at.layer)
    if read is None:
        raise Untestable(LACKS)
    x, q = read.astype(np.float64), of.q[at.layer, at.head].astype(np.float64)
    scores = of.scores[at.layer, at.head].astype(np.float64)
    others = np.delete(np.arange(len(x)), at.token)
    i, j = at.token, at.key
    if j is None:  # the other token that gets most
        j = int(others[of.pattern[at.layer, at.head, i, others].argmax()]) if len(others) else i
    numbers: dict[str, Number] = {
        "naive": float(x[i] @ x[j] / np.sqrt(x.shape[1])),
        "naive_back": float(x[j] @ x[i] / np.sqrt(x.shape[1])),
        "symmetric": float(q[i] @ q[j] / np.sqrt(q.shape[1])),
        "symmetric_back": float(q[j] @ q[i] / np.sqrt(q.shape[1])),
        "there": float(scores[i, j]),
        "back": float(scores[j, i]),
    }
    pairs = lambda: ((vectors @ vectors.T, (vectors @ vectors.T).T) for vectors in (x, q))
    return Evidence(_compared(pairs), numbers)


def variance(at: RecordedPlace) -> Evidence:
    """The variance of q . k of random vectors beside their width, at many widths."""
    statistics = random_variance(at.context.draw)
    widths = np.array(statistics.widths, dtype=np.float64)
    pairs = lambda: ((np.ones(1), np.array([each])) for each in statistics.variance / widths)
    own = at.context.recording.model.d_head
    width = own if own in statistics.widths else statistics.widths[-1]
    measured = float(statistics.variance[list(statistics.widths).index(width)])
    numbers: dict[str, Number] = {"variance": measured, "d_k": width, "after": measured / width}
    return Evidence(_compared(pairs), numbers)


def cache(at: RecordedPlace) -> Evidence:
    """The numbers of all keys and values beside those that are recorded."""
    of, stream = causal_attention(at.context.recording)
    if not of.opens:
        raise Untestable(NO_QKV)
    k, v = stored_array(of.k), stored_array(of.v)
    layers, heads, n, d = k.shape
    size = layers * 2 * heads * n * d
    pairs = lambda: [(np.array([float(size)]), np.array([float(k.size + v.size)]))]
    numbers = {"layers": layers, "heads": heads, "n": n, "d": d, "size": size}
    return Evidence(_compared(pairs), numbers)


# ---- the input -----------------------------------------------------------------------------------


def _encoding(at: RecordedPlace) -> tuple[Stream, np.ndarray]:
    """The stream, and the positions that are added to it, (token, d_model). Raises Untestable
    where these are not the paper's sinusoids."""
    stream = at.stream
    if "pos.wrote" not in stream.sites or positions.encoding_kind(stream) != "sinusoids":
        raise Untestable(REASONS("no_sinusoids"))
    return stream, residual.site_vectors(stream, "pos.wrote")


def embedding(at: RecordedPlace) -> Evidence:
    """The root of d times a word's embedding and its position beside the first state."""
    if "pos.wrote" not in at.stream.sites or not at.context.capabilities.scaled_embedding:
        raise Untestable(REASONS("not_scaled"))
    words = at.context.embeddings(at.stream.ids).astype(np.float64)
    places, sums = (residual.site_vectors(at.stream, each) for each in ("pos.wrote", "embed+pos"))
    dimension = largest(sums[at.token])
    numbers: dict[str, Number] = {
        "e": float(words[at.token, dimension]),
        "p": float(places[at.token, dimension]),
        "h": float(sums[at.token, dimension]),
        "m": dimension,
    }
    return Evidence(_compared(lambda: [(words + places, sums)]), numbers)


def _place_in_encoding(at: RecordedPlace, encoding: np.ndarray, pair: int) -> tuple[int, int, int]:
    """The dimensions of the encoding that is drawn, else of the model's (token, d_model), a pair of
    them, `pair` where none is drawn, and a position."""
    n, own = encoding.shape
    d = at.width or own
    pair = min(pair if at.pair is None else at.pair, d // 2 - 1)
    return d, pair, (max(at.token, 1) if n > 1 else 0) if at.position is None else at.position


_wave = partial(fixed, decimals=4)  # near a crest it is not 1


def sinusoids(at: RecordedPlace) -> Evidence:
    """Sines and cosines beside the positions that the model adds."""
    _, encoding = _encoding(at)
    d, pair, row = _place_in_encoding(at, encoding, encoding.shape[1] // 8)
    drawn = positions.table(row + 1, d)[row]
    numbers: dict[str, Number] = {
        "i": row,
        "d": d,
        "m": 2 * pair,
        "even": 2 * pair,
        "odd": 2 * pair + 1,
        "sin": Written.by(_wave, drawn[2 * pair]),
        "cos": Written.by(_wave, drawn[2 * pair + 1]),
    }
    return Evidence(_compared(lambda: [(positions.table(*encoding.shape), encoding)]), numbers)


def position_products(at: RecordedPlace) -> Evidence:
    """Sums of cosines of the distance beside the products of two positions."""
    _, encoding = _encoding(at)
    n, own = encoding.shape
    distance = np.arange(n)[:, None] - np.arange(n)
    expected = lambda: sum(np.cos(rate * distance) for rate in positions.rates(own))
    d, _, apart = _place_in_encoding(at, encoding, 0)
    apart = apart if at.shift is None else at.shift
    drawn, rates = positions.table(apart + 1, d), positions.rates(d)
    product = float(drawn[apart] @ drawn[0])
    numbers: dict[str, Number] = {"k": apart, "product": product}
    for each in range(min(MOST_TERMS, len(rates))):
        numbers[f"rate{each}"] = float(rates[each])
        product -= float(np.cos(rates[each] * apart))
    numbers["rest"] = product
    return Evidence(_compared(lambda: [(expected(), encoding @ encoding.T)]), numbers)


def shift(at: RecordedPlace) -> Evidence:
    """Every position turned by so many beside the position that much further on."""
    _, encoding = _encoding(at)
    n = len(encoding)
    if n < 2:
        raise Untestable(REASONS("one_position"))
    d, pair, row = _place_in_encoding(at, encoding, 2)
    by = min(3, n - 1) if at.shift is None else at.shift
    row = min(at.token, n - 1 - by) if at.position is None else row
    drawn = positions.table(row + by + 1, d)
    numbers: dict[str, Number] = {
        "k": by,
        "rate": float(positions.rates(d)[pair]),
        "sin": float(drawn[row, 2 * pair]),
        "cos": float(drawn[row, 2 * pair + 1]),
        "further": float(drawn[row + by, 2 * pair]),
        "even": 2 * pair,
        "odd": 2 * pair + 1,
    }
    pairs = lambda: (
        (positions.rotate_positions(encoding[: n - each], each), encoding[each:])
        for each in sorted({1, min(max(by, 1), n - 1), n - 1})
    )
    return Evidence(_compared(pairs), numbers)


# ---- the stream ----------------------------------------------------------------------------------


def _chosen(at: RecordedPlace, of: Sequence[Any]) -> Any:
    """Of sub-layers or norms the one at the place's site, else the first of its layer, else the
    first."""
    named = (each for each in of if each.site == at.site)
    return next(named, None) or next((each for each in of if each.layer == at.layer), of[0])


def _sublayer(at: RecordedPlace) -> residual.SubLayer:
    """A sub-layer. Raises Untestable where the model does not show what it writes."""
    return _chosen(at, layers_of(at.stream))


def added(at: RecordedPlace) -> Evidence:
    """The state before a sub-layer and its output, added, beside the state after; or before a whole
    layer and what all of it changes."""
    _sublayer(at)
    is_whole = at.site.endswith(".layer")
    stream = residual.whole_layers(at.stream) if is_whole else at.stream
    of = _chosen(at, layers_of(stream))
    x, f, total = (
        residual.site_vectors(stream, s)[at.token] for s in (of.before, of.wrote, of.total)
    )
    dimension = largest(total)
    numbers: dict[str, Number] = {
        name: float(each[dimension]) for name, each in (("x", x), ("f", f), ("y", total))
    }
    numbers["m"] = dimension
    return Evidence(lambda: consistency.residual_sums(at.context.recording), numbers)


def turn(at: RecordedPlace) -> Evidence:
    """The angle between the state before a sub-layer and the sum with what it adds: by their
    product, beside that by the lengths of the three sides of their triangle."""
    _sublayer(at)
    stream = residual.whole_layers(at.stream) if at.site.endswith(".layer") else at.stream
    of = _chosen(at, layers_of(stream))
    states = [
        residual.site_vectors(stream, each).astype(np.float64) for each in (of.before, of.total)
    ]
    before, after, between = (
        np.linalg.norm(each, axis=-1) for each in (*states, states[1] - states[0])
    )
    if not (before.all() and after.all()):
        raise Untestable(LACKS)
    dots = (states[0] * states[1]).sum(axis=-1)
    cosines = (before**2 + after**2 - between**2) / (2 * before * after)
    share = dots / (before * after)
    own = {
        "dot": dots,
        "before": before,
        "after": after,
        "angle": np.degrees(np.arccos(np.clip(share, -1, 1))),
    }
    numbers = {name: float(each[at.token]) for name, each in own.items()}
    return Evidence(_compared(lambda: [(share, cosines)]), numbers)


def jacobian(at: RecordedPlace) -> Evidence:
    """The Jacobian of x + f(x), without the identity, beside that of f."""
    of = _sublayer(at)
    jacobian = at.context.jacobian(at.stream.name, at.token, of.site)
    if not jacobian.adds:
        raise Untestable(REASONS("no_residual"))
    d = len(jacobian.total)
    check = Check("", SUM_ROUNDING, d * d, jacobian.error, of.name, float(jacobian.total[0]))
    f, total = jacobian.entries
    return Evidence(lambda: check, {"f": f, "total": total, "m": jacobian.component})


def jacobian_product(at: RecordedPlace) -> Evidence:
    """The product of the Jacobians of a random stack beside its derivative, taken numerically; and
    what the product of all layers' leaves of a gradient, with residual connections and without."""
    stream = at.context.recording.streams[0]
    x = residual.site_vectors(stream, stream.sites[0])
    side = NETWORK_WIDTH
    weights = [
        each / np.sqrt(side)
        for each in at.context.draw(N_LAYERS * side, side).reshape(N_LAYERS, side, side)
    ]
    onto = at.context.draw(side, x.shape[1]) / np.sqrt(x.shape[1])
    begin = onto @ (x[0] / max(float(x[0].std()), 1e-12))

    def run(h: np.ndarray) -> np.ndarray:
        for w in weights:
            h = h + np.tanh(h @ w.T)
        return h

    def product() -> np.ndarray:
        h, jacobian = begin, np.eye(side)
        for w in weights:
            jacobian = (np.eye(side) + (1 - np.tanh(w @ h) ** 2)[:, None] * w) @ jacobian
            h = h + np.tanh(w @ h)
        return jacobian

    return Evidence(_compared(lambda: [(product(), _derivative(run, begin))]), _depth(at))


def _depth(at: RecordedPlace) -> dict[str, Number]:
    """The rest of a gradient through a deep random stack, as a power of its mean factor."""
    stack = at.context.depth(at.context.recording.streams[0].name)
    numbers: dict[str, Number] = {"layers": stack.layers}
    for name, way in (("with", "residual on"), ("without", "residual off")):
        norm = stack.norm[list(stack.ways).index(way)]
        left = float(norm[0] / norm[-1])
        numbers |= {f"{name}_left": left, f"{name}_factor": left ** (1 / stack.layers)}
    return numbers


def _derivative(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """The Jacobian (output, input) of a function of rows, by small steps."""
    steps = STEP * np.eye(len(x))
    return ((function(x + steps) - function(x - steps)) / (2 * STEP)).T


def mean_factor(left: float, steps: int) -> Written:
    """The factor of each of so many steps that together leave a rest, in the fewest figures with
    which its power is that rest as it is written."""
    factor = left ** (1 / steps)
    texts = (power(factor, digits) for digits in range(3, MOST_DIGITS))
    rest = power(left)
    make = lambda text: matches_text(rest, parse_number(text) ** steps)
    return Written(factor, next(filter(make, texts), power(factor)))


def recurrence(at: RecordedPlace) -> Evidence:
    """The product of an untrained recurrent network's Jacobians over the tokens beside the
    derivative of its last state, taken numerically."""
    stream = at.context.recording.streams[0]
    x = residual.site_vectors(stream, stream.sites[0])
    x = x / np.maximum(x.std(axis=1, keepdims=True), 1e-12)
    side = NETWORK_WIDTH
    w = at.context.draw(side, side) / np.sqrt(side)
    inputs = x @ (at.context.draw(side, x.shape[1]) / np.sqrt(x.shape[1])).T

    def run(h: np.ndarray) -> np.ndarray:
        for each in inputs:
            h = np.tanh(h @ w.T + each)
        return h

    def product() -> np.ndarray:
        h, jacobian = np.zeros(side), np.eye(side)
        for each in inputs:
            h = np.tanh(w @ h + each)
            jacobian = (1 - h**2)[:, None] * w @ jacobian
        return jacobian

    numbers: dict[str, Number] = {}
    if steps := len(gradients.from_word_to_word(stream)) - 1:
        left = float(at.context.recurrent_gradient()[0])
        factor = mean_factor(left, steps)
        numbers = {"left": Written.by(power, left), "factor": factor, "steps": steps}
    pairs = lambda: [(product(), _derivative(run, np.zeros(side)))]
    return Evidence(_compared(pairs), numbers)


def _norm(at: RecordedPlace) -> tuple[residual.Norm, tuple[np.ndarray, np.ndarray, float, bool]]:
    """A norm of the layer, and its gain, bias, eps and whether it subtracts the mean."""
    known = at.context.norms(at.stream.name)
    norms = [each for each in residual.stream_norms(at.stream) if each.site in known]
    if not norms:
        raise Untestable(REASONS("no_norm"))
    chosen = _chosen(at, norms)
    return chosen, known[chosen.site]


def _normed(at: RecordedPlace, centred: bool) -> Evidence:
    """A norm of what it reads beside what it gives."""
    norm, (gain, bias, eps, subtracts) = _norm(at)
    if subtracts != centred:
        raise Untestable(REASONS("rms_norm" if centred else "layer_norm"))
    x = residual.site_vectors(at.stream, norm.before)[at.token]
    y = residual.site_vectors(at.stream, norm.after)[at.token]
    dimension = largest(y)
    numbers: dict[str, Number] = {
        "h": float(x[dimension]),
        "mean": float(x.mean()),
        "variance": float(x.var() if centred else (x**2).mean()),
        "eps": eps,
        "gain": float(gain[dimension]),
        "bias": float(bias[dimension]),
        "y": float(y[dimension]),
        "m": dimension,
    }
    norms = {each.name: at.context.norms(each.name) for each in at.context.recording.streams}
    return Evidence(lambda: consistency.layer_norms(at.context.recording, norms), numbers)


def layer_norm(at: RecordedPlace) -> Evidence:
    """LayerNorm of the recorded states beside what the model has after it."""
    return _normed(at, True)


def rms_norm(at: RecordedPlace) -> Evidence:
    """The same of RMSNorm."""
    return _normed(at, False)


def batch_norm(at: RecordedPlace) -> Evidence:
    """The first states, or what a norm reads, normalised dimension by dimension, over the tokens,
    beside mean 0 and variance 1."""
    read = next((each for each in residual.stream_norms(at.stream) if each.site == at.site), None)
    x = residual.site_vectors(at.stream, (read or _sublayer(at)).before)
    mean, spread = x.mean(axis=0), x.std(axis=0)
    if len(x) < FEWEST or not spread.all():
        raise Untestable(REASONS("few_tokens"))
    standardized = (x - mean) / spread
    shown = residual.site_vectors(at.stream, read.after) if read else standardized
    dimension = largest(shown[at.token])
    numbers: dict[str, Number] = {
        "h": float(x[at.token, dimension]),
        "mean": float(mean[dimension]),
        "spread": float(spread[dimension]),
        "y": float(standardized[at.token, dimension]),
        "m": dimension,
    }
    pairs = lambda: [
        (np.zeros_like(mean), standardized.mean(axis=0)),
        (np.ones_like(mean), standardized.var(axis=0)),
    ]
    return Evidence(_compared(pairs), numbers)


def add_norm(at: RecordedPlace) -> Evidence:
    """The norm of a state and a sub-layer's output, added, beside the state after it: post-LN."""
    known = at.context.norms(at.stream.name)
    of = _sublayer(at)
    if of.after == of.total or of.site not in known:
        raise Untestable(REASONS("pre_norm"))

    def pairs() -> Pairs:
        for each in layers_of(at.stream):
            gain, bias, eps, centred = known[each.site]
            x, f, y = (
                residual.site_vectors(at.stream, site)
                for site in (each.before, each.wrote, each.after)
            )
            yield residual.normalised(x + f, eps, centred) * gain + bias, y

    evidence = layer_norm(at)
    dimension = largest(residual.site_vectors(at.stream, of.after)[at.token])
    x, f = (
        float(residual.site_vectors(at.stream, s)[at.token, dimension])
        for s in (of.before, of.wrote)
    )
    return Evidence(_compared(pairs), {**evidence.numbers, "x": x, "f": f})


def pre_norm(at: RecordedPlace) -> Evidence:
    """A state and the output of what reads its norm, added, beside the state after: pre-LN."""
    if f"{_sublayer(at).site}.read" not in at.stream.sites:
        raise Untestable(REASONS("post_norm"))
    return added(at)


# ---- the feed-forward network --------------------------------------------------------------------


def _units(at: RecordedPlace, gated: bool, relu: bool) -> FFNActivations:
    """The hidden units at the token. Raises Untestable where the network is of another kind."""
    if f"{at.layer}.ffn.wrote" not in at.stream.sites:
        raise Untestable(LACKS)
    if bool(at.context.capabilities.gate) != gated:
        raise Untestable(REASONS("not_gated" if gated else "gated"))
    activations = at.context.ffn(at.stream.name, at.layer, at.token)
    if not gated and np.array_equal(np.maximum(0, activations.before), activations.after) != relu:
        raise Untestable(REASONS("no_relu" if relu else "relu"))
    return activations


def _component_of_few_terms(parts: np.ndarray, total: np.ndarray) -> int:
    """The component of a sum of vectors (part, d_model) of which the terms that are written one by
    one make the largest share, among those of at least half of the largest."""
    sizes = np.abs(parts.astype(np.float64))
    few = np.sort(sizes, axis=0)[-MOST_TERMS:].sum(axis=0)
    share = np.divide(few, sizes.sum(axis=0), out=np.zeros_like(few), where=sizes.sum(axis=0) > 0)
    is_large = np.abs(total) >= np.abs(total).max() / 2
    return int(np.where(is_large, share, -1.0).argmax())


def _hidden(at: RecordedPlace, gated: bool, relu: bool) -> Evidence:
    """The sum of what all hidden units write beside what the network wrote, at several tokens."""
    hidden, stream = _units(at, gated, relu), at.stream
    wrote = hidden.writes.sum(axis=0, dtype=np.float64) + hidden.bias
    dimension = _component_of_few_terms(hidden.writes, wrote)
    column = hidden.writes[:, dimension].astype(np.float64)
    weights = np.divide(column, hidden.after, out=np.zeros_like(column), where=hidden.after != 0)
    units = np.append(hidden.after.astype(np.float64), 1.0)
    labels = lambda each: str(each) if each < len(column) else "b"
    numbers: dict[str, Number] = {
        **_summed(units, np.append(weights, hidden.bias[dimension]), letters="aw", labels=labels),
        "y": float(wrote[dimension]),
        "m": dimension,
    }

    def pairs() -> Pairs:
        for token in subsample(np.arange(len(stream.tokens)), FEWEST):
            each = at.context.ffn(stream.name, at.layer, int(token))
            if relu:
                yield np.maximum(0, each.before), each.after
            total = each.writes.sum(axis=0, dtype=np.float64) + each.bias
            yield total, stream.at(f"{at.layer}.ffn.wrote")[token]

    return Evidence(_compared(pairs), numbers)


def ffn(at: RecordedPlace) -> Evidence:
    """The paper's network, with max(0, x)."""
    return _hidden(at, gated=False, relu=True)


def smooth_ffn(at: RecordedPlace) -> Evidence:
    """A network with another activation."""
    return _hidden(at, gated=False, relu=False)


def gated_ffn(at: RecordedPlace) -> Evidence:
    """A network whose units are multiplied by a gate."""
    return _hidden(at, gated=True, relu=False)


# ---- predictions ---------------------------------------------------------------------------------


def readout(at: RecordedPlace) -> Evidence:
    """Products of the last states and the embeddings beside the logits, as differences between
    tokens, in which the bias falls out."""
    context = at.context
    context.require_readout()
    require_tied_readout(context)
    stream = output_stream(context.recording)
    last = len(stream.tokens) - 1

    def pairs() -> Pairs:
        factor = embedding_factor(context)
        words, first = context.embeddings().astype(np.float64), context.logits(stream.name, 0)
        for token in subsample(np.arange(1, last + 1), FEWEST):
            moved = stream.resid[-1, token].astype(np.float64) - stream.resid[-1, 0]
            yield words @ moved / factor, context.logits(stream.name, int(token)) - first

    logits = context.logits(stream.name, min(at.token, last)).astype(np.float64)
    of = int(logits.argmax()) if at.target is None else at.target
    powers = np.exp(logits)
    numbers: dict[str, Number] = {
        "logit": float(logits[of]),
        "powers": terms(powers),
        "p": float(powers[of] / powers.sum()),
        "name": _chance_of(context, of, "" if at.target is None else stream.tokens[at.token + 1]),
    }
    instead = {} if context.capabilities.readout_bias else {" + b": ""}
    if stream.sites[-1] == "final.normed":
        instead["h_t"] = "Norm(h_t)"
    return Evidence(_compared(pairs), numbers if np.isfinite(powers.sum()) else {}, instead)


def _chance_of(context: MeasureContext, id: int, shown: str = "") -> list[tuple[Name]]:
    """The symbol of a token's probability: with its name, but where the reader is asked for what
    the model predicts only with the one that the text shows."""
    if context.recording.covered is not None:
        return [(Name("p", _index(shown)),)]
    return [(Name("p", _index(shown or context.model.labels([id])[0])),)]


def whole_word(at: RecordedPlace) -> Evidence:
    """The product of the probabilities of the pieces that the likeliest word has, those behind the
    first in one, beside that of as many passes, each over the pieces before."""
    context = at.context
    context.require_readout()
    stream = output_stream(context.recording)
    if context.recording.covered is not None:
        raise Untestable(LACKS)
    if len(context.recording.streams) > 1:
        raise Untestable(REASONS("translates"))
    causal_attention(context.recording)
    token = min(at.token, len(stream.tokens) - 1)
    p = probabilities(context.logits(stream.name, token).astype(np.float64))
    first = int(p.argmax())
    word = context.model.words_after(context.recording, token).get(first)
    if word is None:
        raise Untestable(REASONS("one_piece"))

    def pairs() -> Pairs:
        ids, product = [int(each) for each in stream.ids[: token + 1]], 1.0
        for _ in word.pieces:
            read = context.model.record_once(ids, context.recording.edits)
            scores = context.model.logits(read, read.streams[-1].name, len(ids) - 1)
            chances = probabilities(scores.astype(np.float64))
            ids.append(int(chances.argmax()))
            product *= float(chances.max())
        yield np.array([word.own]), np.array([product])

    rest = "".join(word.pieces[1:])
    numbers: dict[str, Number] = {
        "word": [(Name("", _index(word.word)),)],
        "names": [
            (Name("p", _index(word.pieces[0])), Name("", "\u00a0·\u00a0"), Name("p", _index(rest)))
        ],
        "product": [(float(p[first]), word.own / float(p[first]))],
        "p": word.own,
    }
    return Evidence(_compared(pairs), numbers)


def sampled(at: RecordedPlace) -> Evidence:
    """Probabilities of the next token from its logits divided by a temperature, beside the powers
    of those without it, normalised: p^(1/T)."""
    context = at.context
    context.require_readout()
    stream = output_stream(context.recording)
    logits = context.logits(stream.name, len(stream.tokens) - 1).astype(np.float64)
    t = at.temperature
    if not 0 < t < np.inf:
        raise Untestable(LACKS)
    p, own = probabilities(logits / t), probabilities(logits) ** (1 / t)
    powers, likeliest = np.exp(logits / t), int(logits.argmax())
    numbers: dict[str, Number] = {
        "logit": float(logits[likeliest]),
        "t": Written(t, f"{t:g}"),
        "powers": terms(powers),
        "p": float(p[likeliest]),
        "name": _chance_of(context, likeliest),
    }
    is_there = np.isfinite(powers.sum())
    return Evidence(_compared(lambda: [(p, own / own.sum())]), numbers if is_there else {})


def chain(at: RecordedPlace) -> Evidence:
    """The scores after each token, read one at a time, beside those of one pass over the text; and
    the product of the probabilities of its tokens, those around the place one by one."""
    context = at.context
    _, stream = causal_attention(context.recording)
    context.require_readout()
    n = len(stream.tokens)
    if n < 2:
        raise Untestable(REASONS("one_position"))
    logits = [context.logits(stream.name, place).astype(np.float64) for place in range(n - 1)]
    p = np.array([probabilities(each)[int(id)] for each, id in zip(logits, stream.ids[1:])])
    first = max(0, min(at.token - 1, len(p) - MOST_TERMS))
    told = slice(first, first + MOST_TERMS)
    rest = np.delete(p, told)
    factors = (*map(float, p[told]), *([float(np.prod(rest))] if len(rest) else []))
    words = [Name("p", _index(each)) for each in stream.tokens[1:][told]]
    if len(rest):
        words.append(Name("", "\u00a0· " + plural(len(rest), "other")))
    steps = min(n, MOST_STEPS)

    def pairs() -> Pairs:
        yield from zip(
            context.stepwise(steps), (context.logits(stream.name, at) for at in range(steps))
        )

    whole = float(np.prod(p))
    numbers: dict[str, Number] = {}
    if whole > 0:
        numbers = {"product": [factors], "names": [tuple(words)], "p": whole}
    return Evidence(_compared(pairs), numbers)


LEAST_NATS = 0.01  # of losses that their picture writes in enough figures


def loss(at: RecordedPlace) -> Evidence:
    """-ln p of the right token at each place that has one beside the logarithm of the sum of all
    powers less its logit; its numbers are those of the place's token, or of the nearest."""
    context = at.context
    context.require_readout()
    targets = context.targets
    if not targets:
        raise Untestable(LACKS)
    stream = output_stream(context.recording)
    logits = [context.logits(stream.name, place).astype(np.float64) for place, _ in targets]
    p = np.array([probabilities(each)[id] for each, (_, id) in zip(logits, targets)])
    if not p.all():
        raise Untestable(REASONS("no_chance"))
    nats = -np.log(p)
    own = int(np.abs(np.array([place for place, _ in targets]) - at.token).argmin())
    labels = context.model.labels([id for _, id in targets])
    word, is_seen = (lambda each: labels[each]), bool(nats[own] >= LEAST_NATS)

    def pairs() -> Pairs:
        tops = [each.max() for each in logits]
        whole = [np.log(np.exp(each - top).sum()) + top for each, top in zip(logits, tops)]
        yield (
            nats,
            np.array([total - each[id] for total, each, (_, id) in zip(whole, logits, targets)]),
        )

    numbers: dict[str, Number] = {
        **_summed(nats, letters="ℓ", labels=word, write=fixed if is_seen else None),
        "word": [(Name("", _index(word(own))),)],
        "p": float(p[own]),
        "nats": Written.by(fixed, nats[own]) if is_seen else float(nats[own]),
        "loss": Written.by(fixed, nats.mean()) if is_seen else float(nats.mean()),
        "n": len(targets),
    }
    return Evidence(_compared(pairs), numbers)


def entropy(at: RecordedPlace) -> Evidence:
    """The mean of -ln p beside the logarithm of the sum of all powers less the mean logit."""
    context = at.context
    context.require_readout()
    stream = output_stream(context.recording)

    def pairs() -> Pairs:
        for token in subsample(np.arange(len(stream.tokens)), FEWEST):
            logits = context.logits(stream.name, int(token)).astype(np.float64)
            p, top = probabilities(logits), logits.max()
            whole = np.log(np.exp(logits - top).sum()) + top
            yield np.array([predictions.entropy(p)]), np.array([whole - p @ logits])

    logits = context.logits(stream.name, min(at.token, len(stream.tokens) - 1))
    p = probabilities(logits)
    p = p[p > 0]
    nats = float(-(p * np.log(p)).sum())
    numbers: dict[str, Number] = {
        "sum": terms(p, -np.log(p)),
        "nats": nats,
        "perplexity": float(np.exp(nats)),
    }
    return Evidence(_compared(pairs), numbers)


def descent(at: RecordedPlace) -> Evidence:
    """The weight that one step of training moves most, beside the one before less the rate times
    its gradient."""
    context = at.context
    context.require_readout()
    if not context.targets or not context.capabilities.weights:
        raise Untestable(LACKS)
    of = context.recording
    step = at.training or context.model.training_step(
        of, context.targets, RATE, of, context.targets
    )
    before, gradient, after = step.weight
    made = np.array(before) - step.rate * np.array(gradient)
    numbers: dict[str, Number] = {
        **{"before": before, "gradient": gradient, "after": after},
        "rate": Written(step.rate, f"{step.rate:g}"),
    }
    return Evidence(_compared(lambda: [(made, np.array(after))]), numbers)


def warm_up(at: RecordedPlace) -> Evidence:
    """The recorded learning rates of each phase of a training beside the full rate times the least
    of 1, the share of its warm-up that is over and that of its fall that is left; its numbers are
    those half-way through the first warm-up."""
    phases = model_card.phases(at.context.recording.model.name)
    if not phases or phases[0].warm_up < 2:
        raise Untestable(LACKS)
    first = phases[0]
    half = first.warm_up // 2
    numbers: dict[str, Number] = {
        **{"t": half, "w": first.warm_up, "rate": Written(first.rate, f"{first.rate:g}")},
        "now": first.rate * half / first.warm_up,
    }

    def pairs() -> Pairs:
        for each in phases:
            steps, fall = np.arange(1, each.steps + 1), max(1, each.steps // 5)
            left = np.maximum(each.steps + 1 - steps, fall / 50) / fall
            law = each.rate * np.minimum(1, np.minimum(steps / each.warm_up, left))
            yield law, np.interp(each.first + steps - 1, *np.array(each.curve).T)

    return Evidence(_compared(pairs), numbers)
