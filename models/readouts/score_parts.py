"""An attention score taken apart into what wrote its query and its key, and the strongest way back
through the layers, each step of which is cut.

As Kamath et al. 2025 ("Tracing Attention Computation Through Feature Interactions") and Elhage et
al. 2021 take the score q . k: bilinear in the two vectors that the attention reads, and each of
these is a sum of what the embedding and all earlier parts wrote, once norms are held."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from models.contract.edits import Edit, OtherPositions, SharedKeys, ShufflePositions, last_edit
from models.contract.recording import Attention, Recording
from models.contract.results import HeadScore, Part, PathStep, ScoreParts, ScorePath
from models.network.attention import MultiHeadAttention
from models.network.embedding import position_ids
from models.network.layers import Patch, apply_rotary
from models.network.linear import Linear
from models.network.own_model import OwnModel, head_output_site
from models.network.transformer import EncoderDecoder
from models.readouts.logit_lens import (
    LinearizedNorm,
    PartKey,
    StreamWrite,
    linearized,
    stream_operations,
    traced,
)
from models.readouts.weights import layers_of

PROJECTION: PartKey = ("projection", -1, -1, "")
# How far the sum of the parts may lie off what was recorded in 32 bits, of its largest number.
ROUNDING = 1e-3
ORIGINS = ("embedding", "position", "ffn", "head")  # what a way leads back to; biases are no origin


@torch.inference_mode()
def score_parts(model: OwnModel, recording: Recording, cell: HeadScore) -> ScoreParts:
    """A score of a head as a sum over pairs of parts, see `ScoreParts`.

    Raises ValueError for what is not there, and where an edit put a state in, so that what is read
    is no sum of what this run wrote.
    """
    place, against = _place(model, recording, cell), cell.against
    queries, keys = place.parts("query", cell.query), place.parts("key", cell.key)
    added, recorded = place.added(cell.key), place.recorded(cell.key)
    if against is not None:
        other = place.parts("key", against)
        zero = torch.zeros(place.module.d_head, dtype=torch.float64)
        keys = {each: keys.get(each, zero) - other.get(each, zero) for each in keys | other}
        added, recorded = added - place.added(against), recorded - place.recorded(against)
    both = place.scale * torch.stack([*queries.values()]) @ torch.stack([*keys.values()]).T
    of_query, of_key = both.sum(1).tolist(), both.sum(0).tolist()
    return ScoreParts(
        *cell,
        tuple(Part(*name, value) for name, value in zip(queries, of_query)),
        tuple(Part(*name, value) for name, value in zip(keys, of_key)),
        both.numpy(),
        added,
        float(both.sum()) + added,
        recorded,
    )


@dataclass(frozen=True, eq=False)
class Trail:
    """Input of a sub-layer at one token: the steps that its vector passed, in order."""

    operations: list[StreamWrite | LinearizedNorm]
    width: int

    @cached_property
    def parts(self) -> dict[PartKey, Tensor]:
        """The vector as a sum, (d_model) each, every one of them through all norms after it."""
        return traced(self.operations, self.width)

    @property
    def total(self) -> Tensor:
        """The vector itself, (d_model)."""
        return torch.stack([*self.parts.values()]).sum(0)

    def at(self, part: PartKey) -> int:
        """The place of the step that wrote a part."""
        kind, layer, _, label = part
        return next(
            place
            for place, step in enumerate(self.operations)
            if isinstance(step, StreamWrite)
            and (step.kind, step.layer) == (kind, layer)
            and (step.of is None or step.of.label == label)
        )

    def written(self, part: PartKey) -> Tensor:
        """The vector (d_model) of a part as it was written."""
        step = self.operations[self.at(part)]
        assert isinstance(step, StreamWrite)
        return step.vectors()[part]

    def back(self, part: PartKey, direction: Tensor) -> Tensor:
        """A direction (d_model) in what is read as one in what that part wrote: norms are held."""
        for step in reversed(self.operations[self.at(part) + 1 :]):
            if isinstance(step, LinearizedNorm):
                direction = step.back(direction)
        return direction

    def changed(self, part: PartKey, change: Tensor) -> Tensor:
        """The change of what is read (d_model) where that part's vector changes and nothing else
        that is written: the norms in full."""
        return self._read(self.at(part), change) - self._read(-1, change)

    def _read(self, at: int, change: Tensor) -> Tensor:
        x = torch.zeros(self.width, dtype=torch.float64)
        for place, step in enumerate(self.operations):
            if isinstance(step, LinearizedNorm):
                x = step.exact(x)
            else:
                x = step.wrote if step.replaces else x + step.wrote
                x = x + change if place == at else x
        return x


@dataclass(frozen=True, eq=False)
class HeadPlace:
    """A head of a recording, with the matrices by which it reads, and one of its scores."""

    model: OwnModel
    recording: Recording
    attention: Attention
    module: MultiHeadAttention
    cell: HeadScore

    @property
    def layer(self) -> int:
        """The head's layer."""
        return self.cell.layer

    @property
    def head(self) -> int:
        """The head's place in its layer."""
        return self.cell.head

    @property
    def at(self) -> tuple[int, int, int]:
        """(layer, head, query)."""
        return self.layer, self.head, self.cell.query

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Those of the recording."""
        return self.recording.edits

    @property
    def scale(self) -> float:
        """Factor of q . k."""
        return float(self.attention.scale[self.layer])

    @property
    def scores(self) -> np.ndarray:
        """The recorded scores of the query, (key)."""
        return self.attention.scores[self.at].astype(np.float64)

    @property
    def q(self) -> np.ndarray:
        """The recorded query, (d_head)."""
        return self.attention.q[self.at].astype(np.float64)

    @property
    def keys(self) -> np.ndarray:
        """The recorded keys of the head, (key, d_head)."""
        return np.array(self.attention.k[self.layer, self.head], np.float64)

    def recorded(self, key: int) -> float:
        """The recorded score of one of the keys."""
        return float(self.scores[key])

    def added(self, key: int) -> float:
        """Penalty that was added to q . k for the distance, where an edit does that."""
        positions = last_edit(self.edits, OtherPositions)
        if positions is None or positions.to != "distance":
            return 0.0
        return self.recorded(key) - self.scale * float(self.q @ self.keys[key])

    def expect(self, axis: str, token: int) -> None:
        """Raises ValueError for a token that is not there."""
        n = self.attention.pattern.shape[2 if axis == "query" else 3]
        if not 0 <= token < n:
            raise ValueError(f"{self.attention.name}-attention has {axis} tokens 0 to {n - 1}")

    def stream(self, axis: str) -> str:
        """The name of the stream that queries or keys are read from."""
        return self.attention.query if axis == "query" else self.attention.key

    def trail(self, axis: str, token: int) -> Trail:
        """Input of the head at a token as its query or its key (or value)."""
        name, module = self.stream(axis), self.module
        operations = stream_operations(self.model, self.recording, name, token)
        if not (module.cross and axis == "key"):
            own = next(
                at
                for at, step in enumerate(operations)
                if isinstance(step, StreamWrite) and step.of is module
            )
            operations = [*operations[:own], *self._read_norm(name, token)]
        return Trail(operations, self.model.card.d_model)

    def _read_norm(self, name: str, token: int) -> list[LinearizedNorm]:
        """The norm before the attention, where the model has it there."""
        stream = self.recording.stream(name)
        sites = {site: at for at, site in enumerate(stream.sites)}
        layer = layers_of(self.model, name)[self.layer]
        of = layer.cross_out if self.module.cross else layer.attention_out
        if (site := f"{of.name}.read") not in sites:
            return []
        rows = torch.from_numpy(stream.resid[:, token].astype(np.float64))
        norms = linearized([(of.norm, of.layer, site)], sites, rows, self.recording)
        return [each for each in norms if isinstance(each, LinearizedNorm)]

    # W_Q, W_K and W_V of this head.

    def reading(self, axis: str) -> tuple[Tensor, Tensor]:
        """The matrix and the bias by which queries or keys are read, as `matrix`."""
        return self.matrix(self.module.w_q if axis == "query" else self.module.w_k)

    def matrix(self, of: Linear) -> tuple[Tensor, Tensor]:
        """The head's rows of a matrix, (d_head, d_model), and its bias (d_head): of keys and values
        those that its group shares."""
        module = self.module
        weight = of.weight.double().unflatten(0, (-1, module.d_head))
        bias = weight.new_zeros(weight.shape[:2])
        if of.bias is not None:
            bias = of.bias.double().view_as(bias)
        shared = last_edit(self.edits, SharedKeys)
        if of is not module.w_q and shared is not None and shared.groups != len(weight):
            weight, bias = (
                each.unflatten(0, (shared.groups, -1)).mean(1) for each in (weight, bias)
            )
        at = self.head * len(weight) // module.n_head
        return weight[at], bias[at]

    def normed_and_turned(self, axis: str, token: int, rows: Tensor, total: Tensor) -> Tensor:
        """Rows (..., d_head) of a query or a key through the norm that it passes, where there is
        one, held as it is of the vector `total` (d_head), and through the rotation at a token."""
        module = self.module
        norm = module.q_norm if axis == "query" else module.k_norm
        if norm is not None:
            rows = rows * norm.weight.double() / ((total**2).mean() + norm.eps).sqrt()
        angles = module.rotation_angles(self.edits)
        if angles is None:
            return rows
        edits, name = self.edits, self.stream(axis)
        if name == "decoder" and isinstance(self.model.network, EncoderDecoder):
            edits = tuple(each for each in edits if not isinstance(each, ShufflePositions))
        n = len(self.recording.stream(name).tokens)
        position = int(position_ids(n, None, edits)[token])
        cos, sin = (each[position : position + 1] for each in angles)
        return apply_rotary(rows[..., None, :], cos, sin)[..., 0, :]

    def parts(self, axis: str, token: int) -> dict[PartKey, Tensor]:
        """The query or the key of a token as a sum of vectors (d_head)."""
        self.expect(axis, token)
        weight, bias = self.reading(axis)
        vectors = self.trail(axis, token).parts
        rows = torch.stack([*vectors.values()]) @ weight.T
        names = [*vectors]
        if bool(bias.any()):
            rows, names = torch.cat((rows, bias[None])), [*names, PROJECTION]
        rows = self.normed_and_turned(axis, token, rows, rows.sum(0))
        self._expect_sum(axis, token, rows.sum(0))
        return dict(zip(names, rows.unbind()))

    def _expect_sum(self, axis: str, token: int, total: Tensor) -> None:
        """Raises ValueError where the parts do not add up to the query or key that was recorded."""
        of = self.attention.q if axis == "query" else self.attention.k
        recorded = np.asarray(of[self.layer, self.head, token], np.float64)
        if np.abs(total.numpy() - recorded).max() > ROUNDING * max(1.0, np.abs(recorded).max()):
            raise ValueError(
                "an edit put a state in, so what this attention reads is no sum of what this run "
                "wrote, and its scores have no parts"
            )

    def query_or_key(self, axis: str, token: int, read: Tensor) -> Tensor:
        """The query or key (d_head) that a head makes of a vector (d_model): its norm in full."""
        weight, bias = self.reading(axis)
        row = weight @ read + bias
        return self.normed_and_turned(axis, token, row, row)

    def direction(self, axis: str, token: int, other: Tensor) -> Tensor:
        """The direction (d_model) in what is read whose product is the score's part; other
        (d_head): the key or the query on the other side."""
        weight, bias = self.reading(axis)
        raw = weight @ self.trail(axis, token).total + bias
        units = torch.eye(self.module.d_head, dtype=torch.float64)
        turned = self.normed_and_turned(axis, token, units, raw) @ other
        return self.scale * (weight.T @ turned)

    @property
    def output(self) -> Tensor:
        """The head's slice of W_O, (d_head, d_model)."""
        d = self.module.d_head
        return self.module.w_o.weight.double().T[self.head * d : (self.head + 1) * d]

    @property
    def row(self) -> np.ndarray:
        """The recorded weights of the query, (key)."""
        return self.attention.pattern[self.at].astype(np.float64)

    @property
    def values(self) -> np.ndarray:
        """The recorded values of the head, (key, d_head)."""
        return np.array(self.attention.v[self.layer, self.head], np.float64)


def _place(model: OwnModel, recording: Recording, cell: HeadScore) -> HeadPlace:
    """A head and one of its scores. Raises ValueError for what is not there."""
    name, layer, head, query, *keys = cell
    attention = next((each for each in recording.attention if each.name == name), None)
    if attention is None or not attention.opens:
        raise ValueError(f"this recording shows no queries and keys of {name!r}")
    layers, heads = attention.pattern.shape[:2]
    if not (0 <= layer < layers and 0 <= head < heads):
        raise ValueError(f"{model.card.name} has no head {layer}.{head} of {name!r}")
    place = HeadPlace(model, recording, attention, model.attentions[name][layer], cell)
    place.expect("query", query)
    for key in keys:
        if key is not None:
            place.expect("key", key)
    return place


# ---- the way back --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Reader:
    """A step of the way with all that is needed to compute it anew: the head that reads, at which
    token and through which steps, as what (a query, a key or a value), and which part of what it
    read is followed, with its value. direction: in what it reads, (d_model)."""

    place: HeadPlace
    axis: str
    token: int
    trail: Trail
    direction: Tensor
    part: PartKey
    value: float


@torch.inference_mode()
def score_path(model: OwnModel, recording: Recording, cell: HeadScore) -> ScorePath:
    """The strongest way by which a score came about, see `ScorePath`; with `against` what raises it
    above the score of that key.

    It begins with the earlier head that raises the score, or the difference, most, on the side of
    the query or of a key; where none does, with the largest of the other parts. From a head it goes
    on at the key from which most of that part was taken, with the largest part there; it ends at an
    embedding, a position or an FFN. Raises ValueError as `score_parts`, and where an edit sets the
    weight."""
    place, key, against = _place(model, recording, cell), cell.key, cell.against
    score = place.recorded(key) - (0.0 if against is None else place.recorded(against))
    if abs(_weight(place, place.scores) - float(place.row[key])) > ROUNDING:
        raise ValueError("an edit sets this weight, so no way leads back from it")
    side, way = _way(place)
    steps = []
    for n, reader in enumerate(way):
        taker = way[n + 1].place if n + 1 < len(way) else None
        taken_from = way[n + 1].token if taker is not None else -1
        steps.append(
            PathStep(
                Part(*reader.part, reader.value),
                reader.place.stream(reader.axis),
                reader.token,
                taker.attention.key if taker is not None else "",
                taken_from,
                float(taker.row[taken_from]) if taker is not None else 0.0,
                _cut(way[: n + 1], place),
                _rerun(place, reader),
            )
        )
    return ScorePath(side, score, float(place.row[key]), tuple(steps))


def _way(place: HeadPlace) -> tuple[str, list[_Reader]]:
    """The steps of the way, and the side on which it begins."""
    query, key, against = place.cell[3:]
    q, keys = torch.from_numpy(place.q), torch.from_numpy(place.keys)
    k = keys[key] - (0.0 if against is None else keys[against])
    sides = [("query", query, k), ("key", key, q)]
    if against is not None:  # what lowers the other score raises the difference
        sides.append(("key", against, -q))
    first = [
        _follow(place, axis, token, place.direction(axis, token, other), True)
        for axis, token, other in sides
    ]
    heads = [each for each in first if each.part[0] == "head"]
    reader = max(heads or first, key=lambda each: each.value)
    side, way = reader.axis, [reader]
    if reader is first[-1] and against is not None:
        side = "other"
    while reader.part[0] == "head":
        writer = _of_part(place, reader.part, reader.token)
        direction = writer.output @ reader.trail.back(reader.part, reader.direction)  # of z
        values = writer.row * (writer.values @ direction.numpy())
        if abs(values.sum() - reader.value) > ROUNDING * max(1.0, abs(reader.value)):
            break  # an edit changed what the head wrote: it is not its pattern times its values
        source = int(values.argmax())
        weight, _ = writer.matrix(writer.module.w_v)
        along = writer.row[source] * (weight.T @ direction)
        reader = _follow(writer, "key", source, along, False)
        way.append(reader)
    return side, way


def _follow(place: HeadPlace, axis: str, token: int, direction: Tensor, heads: bool) -> _Reader:
    """The part that is largest along a direction in what a head reads. heads: a head, where one has
    a part above 0."""
    trail = place.trail(axis, token)
    values = {
        part: float(vector @ direction)
        for part, vector in trail.parts.items()
        if part[0] in ORIGINS
    }
    raising = {part: value for part, value in values.items() if part[0] == "head" and value > 0}
    of = raising if heads and raising else values
    best = max(of, key=lambda part: of[part])
    return _Reader(place, axis, token, trail, direction, best, of[best])


def _of_part(place: HeadPlace, part: PartKey, token: int) -> HeadPlace:
    """The head that wrote a part, at the token where it did."""
    _, layer, head, label = part
    return _place(place.model, place.recording, HeadScore(label, layer, head, token, 0))


def _cut(way: list[_Reader], place: HeadPlace) -> float:
    """The weight without the part of the last step of a way, all that lies on the way computed
    anew."""
    last = way[-1]
    change = last.trail.changed(last.part, -last.trail.written(last.part))
    for before, reader in zip(reversed(way[:-1]), reversed(way[1:])):
        weight, _ = reader.place.matrix(reader.place.module.w_v)
        attention_weight = float(reader.place.row[reader.token])
        written = attention_weight * (weight @ change) @ reader.place.output
        change = before.trail.changed(before.part, written)
    first = way[0]
    read, scores = first.trail.total, place.scores
    moved = place.query_or_key(first.axis, first.token, read + change)
    moved = moved - place.query_or_key(first.axis, first.token, read)
    if first.axis == "query":
        scores = scores + place.scale * (place.keys @ moved.numpy())
    else:
        scores[first.token] += place.scale * float(place.q @ moved.numpy())
    return _weight(place, scores)


def _weight(place: HeadPlace, scores: np.ndarray) -> float:
    """The weight of the key that the softmax makes of scores (key)."""
    allowed = place.attention.allowed[place.layer, place.cell.query]
    rows = np.where(allowed, scores, -np.inf)
    powers = np.exp(rows - rows.max())
    return float(powers[place.cell.key] / powers.sum())


def _rerun(place: HeadPlace, reader: _Reader) -> float | None:
    """The weight in a run of the whole model in which the head of a step writes nothing at its
    token; None for what is no head, and where edits put in vectors of another text."""
    model, recording = place.model, place.recording
    kind, layer, head, label = reader.part
    if kind != "head" or any(each.borrows for each in recording.edits):
        return None
    stream, name = head_output_site(model, label, layer)
    zeros = torch.zeros(reader.token + 1, place.module.d_head)
    off = Patch(name, zeros, head=head, token=reader.token)
    weights: list[Tensor] = []

    def tape(at: str, tensor: Tensor) -> None:
        if at == f"{place.module.name}.pattern":
            weights.append(tensor[0, place.head, place.cell.query, place.cell.key])

    ids = [torch.tensor(each.ids)[None] for each in recording.streams]
    edits = lambda of: (*recording.edits, off) if of == stream else recording.edits
    network = model.network
    if not isinstance(network, EncoderDecoder):
        network(ids[0], tape=tape, edits=edits(model.card.kind))
        return float(weights[0])
    ends = place.attention.query == "encoder"
    nothing = lambda at, tensor: None
    memory = network.encode(ids[0], tape=tape if ends else nothing, edits=edits("encoder"))
    if not ends:
        network.decode(ids[1], memory, tape=tape, edits=edits("decoder"))
    return float(weights[0])
