"""Frozen numpy results of generation, the logit lens and direct attribution, and sampling
arithmetic.

Axis legend: site, token as in `models/contract/recording.py`; `rank` counts the top words from 0;
`id` runs over the vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Sampling:
    """Settings for sampling the next token. temperature 0 takes the likeliest; top_k 0 and top_p 1
    keep every token."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not isfinite(self.temperature) or self.top_k % 1:
            raise ValueError(f"temperature is finite and top-k a whole number, not {self}")
        if self.temperature < 0 or self.top_k < 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                "temperature and top-k cannot be negative and top-p lies above 0 and up to "
                f"1, not {self}"
            )


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities along the last axis, in float64, which sum to 1."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def largest(values: np.ndarray, n: int) -> np.ndarray:
    """The ids of the `n` largest values (id), the largest first, of equal ones the lower id first:
    the beginning of a stable sort, without sorting all."""
    if n >= len(values):
        return np.argsort(-values, kind="stable")
    candidates = np.flatnonzero(values >= np.partition(values, -n)[-n])
    return candidates[np.argsort(-values[candidates], kind="stable")][:n]


@dataclass(frozen=True)
class WrittenToken:
    """A token that was written: its id, the probability `own` that the model itself gave it, and
    its rank from 0."""

    id: int
    own: float
    rank: int


def score_token(logits: np.ndarray, id: int) -> WrittenToken:
    """The probability and the rank of a written token under the model's logits (id)."""
    return WrittenToken(id, float(softmax(logits)[id]), int((logits > logits[id]).sum()))


@dataclass(frozen=True)
class SeededSampling:
    """Reproducible sampling of a whole answer. Each token's random number comes from the seed and
    from the number of tokens before it."""

    sampling: Sampling
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, Integral) or self.seed < 0:
            raise ValueError(f"a seed is a whole number from 0, not {self.seed!r}")


def probabilities(
    logits: np.ndarray, sampling: Sampling, order: np.ndarray | None = None
) -> np.ndarray:
    """The distribution (id) that the next token is drawn from: temperature, then top-k, then top-p,
    then scaled to sum to 1.

    logits (id); order: its ids, the likeliest first, where they are sorted already. Top-p keeps the
    likeliest tokens until their probability reaches p (Holtzman et al., 2020). Equal logits at a
    border are kept in the order of their ids.
    """
    order = np.argsort(-logits, kind="stable") if order is None else order
    if sampling.temperature == 0:
        return np.bincount(order[:1], minlength=len(logits)).astype(np.float64)
    p = softmax(logits / sampling.temperature)
    indices = order[: sampling.top_k] if sampling.top_k else order
    if sampling.top_p < 1:
        share = p[indices] / p[indices].sum()
        mass_before = np.cumsum(share) - share
        indices = indices[mass_before < sampling.top_p]
    filtered = np.zeros_like(p)
    filtered[indices] = p[indices]
    return filtered / filtered.sum()


@dataclass(frozen=True)
class Beam:
    """One hypothesis of a beam search: its tokens (without [BOS]), their log-probabilities in nats,
    whether it ended itself.

    parent: its place in the step before, -1 at the start. score: what beams are ranked by,
    sum(logprobs) / ((5 + n) / 6)^alpha (Wu et al., 2016; the paper's section 6.1 takes alpha 0.6).
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    done: bool
    parent: int
    score: float


@dataclass(frozen=True, eq=False)
class Lens:
    """The logit lens: the prediction of each state of a stream, were it the last (nostalgebraist,
    2020).

    sites (s) names; top_ids, top_logprobs (site, token, rank); for the word that the last site puts
    first: final_id (token), rank (site, token) from 0 and logprob (site, token); kl (site, token):
    KL(last site || this site) in nats. The last site is the model's own prediction. Of one token,
    ids: words that were asked for, then those that lead at a site, and ranks (site, id), theirs
    from 0; else empty."""

    stream: str
    sites: tuple[str, ...]
    top_ids: np.ndarray
    top_logprobs: np.ndarray
    final_id: np.ndarray
    rank: np.ndarray
    logprob: np.ndarray
    kl: np.ndarray
    ids: tuple[int, ...] = ()
    ranks: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64))


@dataclass(frozen=True)
class Part:
    """One contribution to a logit or a score. `kind`: embedding, position, head, ffn, bias,
    transform or projection, and of models in their own code attn or layer; `attention` and `head`
    for a head alone."""

    kind: str
    layer: int
    head: int
    attention: str
    value: float


@dataclass(frozen=True)
class Attribution:
    """Decomposition of a logit: `parts` sum to `logit`. Every LayerNorm has the sigma it had on
    this token, which makes it linear, so that early outputs are followed through all later ones;
    its centring is applied to each part, its bias is a part.

    Where a transform stands before the readout (BERT), its activation is linearized on this token;
    the remainder is the part "transform". `explained`: the share (R²) of the effects of removing
    each part that the linearization explains, 1 for all of it."""

    token: int
    id: int
    against: int | None
    logit: float
    parts: tuple[Part, ...]
    explained: float = 1.0


@dataclass(frozen=True, eq=False)
class Rotary:
    """Rotary positions of an attention's layer. q, k: W_Q and W_K (d_model, heads x d_head), key
    heads for k, each with its bias. angles (pair): by which one place turns each pair, dimensions m
    and m + pairs of a head; the rest of them stays."""

    q: tuple[np.ndarray, np.ndarray]
    k: tuple[np.ndarray, np.ndarray]
    angles: np.ndarray


class HeadScore(NamedTuple):
    """A score of an attention: that of one query on one key of a head, or with `against` the
    difference to the score of that key."""

    attention: str
    layer: int
    head: int
    query: int
    key: int
    against: int | None = None


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """Decomposition of an attention score, q . k as the softmax reads it, over what wrote the query
    and over what wrote the key. With `against`, another key, of the difference of the two scores.

    both (query source, key source): the product of each two parts; its rows sum to the values of
    `query_parts`, its columns to those of `key_parts`, in this order, and all of it with `added`, a
    penalty on the distance where there is one, to `total`. recorded: the number that the run itself
    has, in 32 bits.

    Kinds of parts are those of `Part`, from everything before the attention; "bias" is of norms and
    of W_O, "projection" of W_Q or W_K. Every norm has the sigma that it had on this token, also the
    one that q and k pass in some models; rotary positions turn every part alike."""

    attention: str
    layer: int
    head: int
    query: int
    key: int
    against: int | None
    query_parts: tuple[Part, ...]
    key_parts: tuple[Part, ...]
    both: np.ndarray
    added: float
    total: float
    recorded: float


@dataclass(frozen=True)
class PathStep:
    """A step back on the way of a score: `source` wrote at `token` of a stream, and its value is
    its part of the score by this way alone. Of a head: it took most of that from token `taken_from`
    of stream `taken_stream`, by a weight `taken_weight` of its pattern; -1 and "" where the way
    ends.

    cut: the weight that is computed anew where the reader, which is the step before, reads the same
    without this source: norms, q, k and softmax in full, all else as it was. rerun: the weight in a
    run of the whole model in which that head writes nothing at that token, None for what is no
    head."""

    source: Part
    stream: str
    token: int
    taken_stream: str
    taken_from: int
    taken_weight: float
    cut: float
    rerun: float | None


@dataclass(frozen=True)
class ScorePath:
    """The strongest way by which a score came about, back through the layers. side: into what the
    first step wrote, the "query", the "key" or the "other" key that it is compared with. Each
    further step wrote what the head before took; the last one is no head, or one whose output is
    not its pattern times its values. weight: of the pattern, which each step's `cut` is compared
    with."""

    side: str
    score: float
    weight: float
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, eq=False)
class Neurons:
    """Decomposition of one FFN's part of a logit into its hidden units (neurons), with every
    LayerNorm linear as in `Attribution`.

    activation (unit): the factor of the neuron's output direction, at this token. adds (unit): its
    part of the logit; the sum of these and `bias`, the FFN's constant output, is `part`, the FFN's
    own in the attribution. length (unit) of each output.

    strongest (rank): the neurons with the largest effect, first. fires (rank, token): their
    activations at every token of the text. up_ids, up (rank, word): the words whose logits they
    raise most here, and by how much; down_ids, down: those they lower most."""

    layer: int
    token: int
    id: int
    against: int | None
    part: float
    bias: float
    activation: np.ndarray
    adds: np.ndarray
    length: np.ndarray
    strongest: np.ndarray
    fires: np.ndarray
    up_ids: np.ndarray
    up: np.ndarray
    down_ids: np.ndarray
    down: np.ndarray


@dataclass(frozen=True, eq=False)
class Circuits:
    """The QK and OV circuits of a head for words (word), each by itself.

    up_ids, up (word, rank): the words whose logits the head raises most where it attends to the
    word, and by how much at a weight of 1; down_ids, down: the words whose logits it lowers most;
    own, own_rank (word): the change of the word's own logit, and the number of words that are
    raised more. key_ids, keys (word, rank): the words of the vocabulary with the highest scores as
    keys of the word as a query; among (word, word): the score of each of the words as a key."""

    ids: np.ndarray
    up_ids: np.ndarray
    up: np.ndarray
    down_ids: np.ndarray
    down: np.ndarray
    own: np.ndarray
    own_rank: np.ndarray
    key_ids: np.ndarray
    keys: np.ndarray
    among: np.ndarray


@dataclass(frozen=True)
class WholeWord:
    """A word of several pieces: as a person reads it, its pieces with their tokens (id), and its
    own probability, the product of theirs. `cut`: it goes on after the last of them."""

    word: str
    pieces: tuple[str, ...]
    ids: tuple[int, ...]
    own: float
    cut: bool


# BERT's mask token and RoBERTa's; a reader may type either for any model.
MASK_SPELLINGS = ("[MASK]", "<mask>")


def mask_pattern(name: str = "") -> re.Pattern[str]:
    """Regular expression for a mask token named `name`, in any case."""
    names = dict.fromkeys(spelling for spelling in (name, *MASK_SPELLINGS) if spelling)
    return re.compile("|".join(map(re.escape, names)), re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class FFNActivations:
    """FFN(x) = act(x W_1 + b_1) W_2 + b_2 at one token: before, after (d_ff) the activation; rows
    (d_ff, d_model) of W_2; bias (d_model). The sum of `writes` and `bias` is what the FFN wrote. Of
    a gated one `before` is the gate, and `after` what comes of it times the unit. by_token (token,
    d_ff): `after` at every token of the text."""

    before: np.ndarray
    after: np.ndarray
    rows: np.ndarray
    bias: np.ndarray
    by_token: np.ndarray

    @property
    def writes(self) -> np.ndarray:
        """A unit's activation times its row of W_2, (d_ff, d_model)."""
        return self.writes_of(np.arange(len(self.after)))

    def writes_of(self, units: np.ndarray) -> np.ndarray:
        """The same of some units, (unit, d_model)."""
        return self.after[units, None] * self.rows[units]

    @property
    def update(self) -> np.ndarray:
        """The update of the FFN, (d_model)."""
        return self.after @ self.rows + self.bias

    def strongest(self, n: int) -> np.ndarray:
        """The units that write most along the update, at most n of them, the strongest first."""
        along = self.after * (self.rows @ self.update)
        return np.argsort(-along, kind="stable")[:n]


@dataclass(frozen=True, eq=False)
class Decay:
    """Three small networks, `step` of `steps` into learning to say the symbol `lag` tokens back,
    and their gradients over a text.

    gradient (network, distance): at output t the norm of d(logit of the likeliest
    symbol)/d(embedding of token t - distance), mean over the outputs of the text; first: the same
    before any training. loss (network, look) in nats and accuracy (network) on fresh random lists;
    looks (look): the steps at which loss was taken. parameters (network): numbers each of them
    learns.
    """

    lag: int
    length: int
    step: int
    steps: int
    first: np.ndarray
    gradient: np.ndarray
    loss: np.ndarray
    looks: np.ndarray
    accuracy: np.ndarray
    parameters: tuple[int, ...]


DRAWS = 20  # of what is random beside the weights; one draw may be a hundred times off the median


@dataclass(frozen=True, eq=False)
class Depth:
    """Norms of d(output)/d(state) over all tokens, each of that at the last state: norm (way,
    layers + 1), at the input and after each layer, the median of `draws`. The output is the sum of
    the last vectors' products with random vectors. ways: names as in WAYS. tokens: how many of the
    text counted; gain: the size of the weights, of Xavier's."""

    ways: tuple[str, ...]
    norm: np.ndarray
    tokens: int
    width: int
    gain: float
    draws: int = DRAWS

    @property
    def layers(self) -> int:
        """The number of layers of the stack."""
        return self.norm.shape[1] - 1


@dataclass(frozen=True, eq=False)
class ResidualGradients:
    """Norms of d(logit of word `id` at `token` of stream `output`)/d(state), by site and token;
    with `against` of the difference to another word's logit.

    sites: "embed+pos" and then the sub-layers, such as "0.attn", each standing for the state after
    it; norm (site, token); logit: the output itself. vectors (token, d_model): the gradients
    themselves at the sites that were asked for, by their names. pattern: those of the weights of
    the attention that was asked for, (layer, head, query, key), None where none was.
    """

    stream: str
    output: str
    token: int
    id: int
    sites: tuple[str, ...]
    norm: np.ndarray
    logit: float
    against: int | None = None
    vectors: Mapping[str, np.ndarray] = field(default_factory=dict)
    pattern: np.ndarray | None = None

    def at(self, site: str) -> np.ndarray:
        """The gradient at a site, (token, d_model). Raises ValueError for one that was not asked
        for."""
        if site not in self.vectors:
            kept = ", ".join(self.vectors) or "none"
            raise ValueError(f"gradients were asked for at {kept}, and not at {site!r}; pass sites")
        return self.vectors[site]


@dataclass(frozen=True, eq=False)
class HeadGradients:
    """The gradient of a loss at one attention layer: of its output y, and of each head's z.

    loss: the mean of -ln p(target) over the targets; output (query, d_model): d loss/d y, what
    reaches W_O from above; heads (head, query, d_head): d loss/d z, what each head gets of it."""

    loss: float
    output: np.ndarray
    heads: np.ndarray


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """One step of gradient descent on a text, on a copy of a model.

    losses (2, target): -ln p of each target before and after; others: the same on another text.
    scores (2, id): those at the last target. moved: how many of `weights` changed; length: the norm
    of all changes; weight: the one that changed most, before, its gradient, and after; rate: by
    which gradients are multiplied."""

    losses: np.ndarray
    others: np.ndarray
    scores: np.ndarray
    moved: int
    weights: int
    length: float
    weight: tuple[float, float, float]
    rate: float

    @property
    def largest(self) -> float:
        """The largest change."""
        return abs(self.weight[2] - self.weight[0])


@dataclass(frozen=True, eq=False)
class Jacobian:
    """Derivatives of one sub-layer at one token by that token's own vector x, everything else
    fixed: d x d matrices by their singular values.

    wrote (d): of f, the sub-layer's output (a pre-LN one's LayerNorm is part of f); total (d): of x
    + f(x), of f(x) alone in a model trained without residual connections (`adds` False); after (d):
    after the LayerNorm that follows, for pre-LN and where there is none the same as total; all from
    the largest down. error: the largest entry of |J(x + f) - J(f) - I|, the two measured
    separately; without the residual of |J(f) - J(f)|. component: the one with the largest entry of
    J(f) on the diagonal; entries: that of J(f) and of J(x + f) there."""

    site: str
    token: int
    wrote: np.ndarray
    total: np.ndarray
    after: np.ndarray
    error: float
    component: int
    entries: tuple[float, float]
    adds: bool = True


@dataclass(frozen=True)
class Effect:
    """The effect of one patch. `place` is (layer, head) or (site, token); `value` the logit of the
    word minus that of the other word."""

    place: tuple[int | str, int]
    value: float


@dataclass(frozen=True)
class Sweep:
    """A sweep about to begin: `clean` and `donor`, the same difference of logits in the two runs as
    they are. Its places are each of `rows` (sites, or layers) with each of `columns` (tokens, or
    heads). patched: the differences of one row at some columns, in order; by_slope: the same by
    gradients."""

    clean: float
    donor: float
    rows: tuple[Any, ...]
    columns: tuple[int, ...]
    patched: Callable[[Any, tuple[int, ...]], Iterator[float]]
    by_slope: Callable[[Any, tuple[int, ...]], Iterator[float]]

    @property
    def estimated(self) -> Sweep:
        """The same sweep by attribution patching (Nanda 2023): one pass and its gradients in the
        place of a pass for each patch, right where the logits are linear in what is patched. The
        values of both side by side say how far it is off."""
        return replace(self, patched=self.by_slope)

    @property
    def places(self) -> int:
        """The number of effects that are to come."""
        return len(self.rows) * len(self.columns)

    @property
    def effects(self) -> Iterator[Effect]:
        """The effect at each place, one by one, as for a bar of progress with `places` in all."""
        for row in self.rows:
            for column, value in zip(self.columns, self.patched(row, self.columns)):
                yield Effect((row, column), value)

    def only(
        self, rows: Iterable[Any] | None = None, columns: Iterable[int] | None = None
    ) -> Sweep:
        """The same sweep of some rows and columns, None for all. Raises ValueError for one that is
        not there."""
        chosen = []
        for all_of, some in ((self.rows, rows), (self.columns, columns)):
            listed = all_of if some is None else tuple(some)
            if missing := [each for each in listed if each not in all_of]:
                raise ValueError(f"{missing[0]!r} is none of {', '.join(map(str, all_of))}")
            chosen.append(listed)
        return replace(self, rows=chosen[0], columns=chosen[1])


Norm = tuple[np.ndarray, np.ndarray, float, bool]


@dataclass(frozen=True)
class OneList:
    """The answers of a model to one list: its tokens, what is right for each place, and what the
    model says there, after the right ones before it."""

    given: tuple[str, ...]
    right: tuple[str, ...]
    said: tuple[str, ...]

    @property
    def n_right(self) -> int:
        """The number of tokens of its answer that are right."""
        return sum(map(str.__eq__, self.right, self.said))
