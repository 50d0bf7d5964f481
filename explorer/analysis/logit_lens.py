"""The logit lens and a logit's parts, ready to be shown: names of sites, what really comes, one
cell opened, groups of parts, tables, files.

Axis legend: site, token and rank as in `models/contract/results.py`; `id` runs over the vocabulary.
On screen ranks count from 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.figures.csv import Cells, Columns
from models.contract.recording import Recording, Stream
from models.contract.results import Attribution, Lens, Part
from models.contract.results import Neurons as Neurons

# The neurons of an FFN in a logit, ready to be shown: which FFN to open, what its neurons come to
# together, when one fires, tables.

MOST_BARS = 12
MAX_CHEAP_PRODUCTS = 4e9  # about a tenth of a second on two cores


def ffns(attribution: Attribution) -> dict[int, Part]:
    """The FFNs that have a part in a logit, by layer."""
    return {part.layer: part for part in attribution.parts if part.kind == "ffn"}


def strongest_ffn(attribution: Attribution) -> int:
    """The layer of the FFN whose part is the largest, up or down."""
    parts = ffns(attribution)
    return max(parts, key=lambda layer: abs(parts[layer].value))


@dataclass(frozen=True)
class NeuronTotals:
    """Totals over the neurons of an FFN: how many raise and lower the word's logit and by how much,
    and the smallest number with half of the total effect, up and down together."""

    n: int
    n_up: int
    up: float
    n_down: int
    down: float
    half: int


def neuron_totals(neurons: Neurons) -> NeuronTotals:
    """The sums over all neurons."""
    up, down = neurons.adds[neurons.adds > 0], neurons.adds[neurons.adds < 0]
    share = np.cumsum(np.sort(np.abs(neurons.adds))[::-1])
    half = int(np.searchsorted(share, share[-1] / 2)) + 1 if share[-1] else 0
    return NeuronTotals(
        len(neurons.adds), len(up), float(up.sum()), len(down), float(down.sum()), half
    )


def neuron_rank(neurons: Neurons, neuron: int | None) -> int:
    """The place of a neuron among the strongest, 0 for one that is not among those shown."""
    displayed = neurons.strongest[:MOST_BARS].tolist()
    return displayed.index(neuron) if neuron in displayed else 0


def neurons_about(neurons: Neurons) -> tuple[int, ...]:
    """Those of the neurons that are listed that change the logit's word, or the one it is compared
    with, more than almost all others: it is among the words they raise or lower most."""
    changed = np.concatenate([neurons.up_ids, neurons.down_ids], 1)[:MOST_BARS]
    targets = [id for id in (neurons.id, neurons.against) if id is not None]
    return tuple(neurons.strongest[:MOST_BARS][np.isin(changed, targets).any(1)].tolist())


def hidden_neurons(neurons: Neurons) -> tuple[int, float]:
    """The number of neurons that are not listed, and their summed effect."""
    remaining = np.delete(neurons.adds, neurons.strongest[:MOST_BARS])
    return len(remaining), float(remaining.sum())


def neuron_table(neurons: Neurons) -> Columns:
    """Every neuron as named columns, those that add or take most first."""
    order = np.argsort(-np.abs(neurons.adds), kind="stable")
    return {
        "neuron": order,
        "activation": neurons.activation[order],
        "length of what it writes": neurons.length[order],
        "adds to the logit": neurons.adds[order],
    }


def neuron_file(neurons: Neurons) -> Columns:
    """The same with the bias, their sum and the FFN's part in the last rows."""
    totals: dict[str, Cells] = {
        "neuron": ["bias", "sum", "the FFN’s part"],
        "adds to the logit": [neurons.bias, float(neurons.adds.sum()) + neurons.bias, neurons.part],
    }
    return {
        name: [*np.asarray(values).tolist(), *totals.get(name, (None,) * 3)]
        for name, values in neuron_table(neurons).items()
    }


# As the head of a row, and in a sentence.
_PLACES = {
    "attn": ("attention", "attention"),
    "cross": ("cross", "cross-attention"),
    "ffn": ("FFN", "FFN"),
}
_ENDS = {
    "embed": ("embedding", "The embedding alone"),
    "embed+pos": ("+ position", "Embedding + position"),
    "embed.normed": ("input norm", "The input, after its norm"),
    "final.normed": ("last norm", "After the last norm"),
}
_NO_ID = -1


def site_name(site: str) -> str:
    """A site of a stream as the head of a row, "L2 attention". Raises ValueError for a site that is
    no state."""
    if site in _ENDS:
        return _ENDS[site][0]
    layer, place = _layer_and_place(site)
    return f"L{layer} {_PLACES[place][0]}"


def site_words(site: str) -> str:
    """The same in words, "After the attention of layer 2". Raises ValueError for a site that is no
    state."""
    if site in _ENDS:
        return _ENDS[site][1]
    layer, place = _layer_and_place(site)
    return f"After the {_PLACES[place][1]} of layer {layer}"


def _layer_and_place(site: str) -> tuple[str, str]:
    layer, place, kind = (*site.split("."), "", "")[:3]
    if place not in _PLACES or kind not in ("normed", "sum"):
        raise ValueError(f"{site!r} is no state of a stream")
    return layer, place


def read_stream(recording: Recording) -> Stream:
    """The stream that the model's words are read from: its only one, or of two the one that
    writes."""
    return recording.streams[-1]


def predicts_next(recording: Recording) -> bool:
    """True where a position answers "which word comes next", False where it answers "which word
    stands here"."""
    return read_stream(recording).name == "decoder"


def target_ids(recording: Recording, plain: Recording) -> np.ndarray:
    """The id (token) that would be right at each position, -1 where no one can say or nothing is
    asked.

    Before a next word that is the token that follows. Where the model fills words it is the one
    that an edit hides; `plain` is the recording of the same text with nothing hidden. Raises
    ValueError where the two have other tokens."""
    ids, plain_ids = read_stream(recording).ids, read_stream(plain).ids
    if predicts_next(recording):
        return np.append(ids[1:], _NO_ID)
    if len(ids) != len(plain_ids):
        raise ValueError(f"{len(ids)} tokens, but {len(plain_ids)} with nothing hidden")
    return np.where(ids == plain_ids, _NO_ID, plain_ids)


def is_cheap(recording: Recording, stream: Stream) -> bool:
    """True where the lens on a whole stream takes a fraction of a second: every vector of it is
    multiplied by every word's embedding."""
    return stream.resid.size * recording.model.n_vocab <= MAX_CHEAP_PRODUCTS


def layer_ends(sites: Sequence[str]) -> dict[int, int]:
    """The place of the last site of each layer but the last one, whose state is the final site's,
    by layer."""
    numbers = [site.partition(".")[0] for site in sites]
    ends = {int(number): at for at, number in enumerate(numbers) if number.isdecimal()}
    return {layer: ends[layer] for layer in sorted(ends)[:-1]}


def sites_within_layers(sites: Sequence[str]) -> frozenset[str]:
    """Those of a lens's sites that are inside of layers: all but those before the first layer, the
    last one of each, and the final one."""
    inside = [site for site in sites[:-1] if site.partition(".")[0].isdecimal()]
    return frozenset(inside).difference(sites[at] for at in layer_ends(sites).values())


def vocabulary(lens: Lens, targets: np.ndarray, n_words: int) -> np.ndarray:
    """Every id that the picture names, each once, ascending: the `n_shown` top words of each cell,
    the answers, the right words."""
    return np.unique(
        np.concatenate(
            (lens.top_ids[..., :n_words].ravel(), lens.final_id, targets[targets != _NO_ID])
        )
    )


@dataclass(frozen=True, eq=False)
class LensCell:
    """One site at one token. ids and probabilities (rank) of its top words, `others` the rest of
    the 1; of the model's final answer `final_id`, its `rank` here from 0 and its `probability`
    here; kl in nats."""

    site: int
    token: int
    ids: np.ndarray
    probabilities: np.ndarray
    others: float
    final_id: int
    rank: int
    probability: float
    kl: float


def cell(lens: Lens, site: int, token: int) -> LensCell:
    """A cell of the lens, opened."""
    probabilities = np.exp(lens.top_logprobs[site, token])
    return LensCell(
        site,
        token,
        lens.top_ids[site, token],
        probabilities,
        max(0.0, 1.0 - float(probabilities.sum())),
        int(lens.final_id[token]),
        int(lens.rank[site, token]),
        float(np.exp(lens.logprob[site, token])),
        float(lens.kl[site, token]),
    )


def column(lens: Lens, token: int) -> tuple[LensCell, ...]:
    """One token at every site."""
    return tuple(cell(lens, site, token) for site in range(len(lens.sites)))


def settled_sites(rank: np.ndarray) -> np.ndarray:
    """The first site from which on the final answer stays first, (token); rank (site, token)."""
    wrong = rank[::-1] > 0
    return len(rank) - np.where(wrong.any(axis=0), wrong.argmax(axis=0), len(rank))


def file_table(lens: Lens, tokens: Sequence[str], labels: dict[int, str]) -> Columns:
    """The lens as named columns, a row for each token of each site, its top words with their
    probabilities last."""
    sites, n = len(lens.sites), len(tokens)
    ids = np.unique(np.append(lens.top_ids, lens.final_id))
    names = np.array([labels[id] for id in ids.tolist()], dtype=object)
    words = lambda chosen: names[np.searchsorted(ids, chosen)].ravel()
    columns: dict[str, Cells] = {
        "site": np.repeat(np.array(lens.sites, dtype=object), n),
        "token": np.tile(np.arange(n), sites),
        "token text": np.tile(np.array(tokens, dtype=object), sites),
        "final answer": np.tile(words(lens.final_id), sites),
        "probability of final answer": np.exp(lens.logprob).ravel(),
        "rank of final answer": lens.rank.ravel() + 1,
        "KL to final (nats)": lens.kl.ravel(),
    }
    for rank in range(lens.top_ids.shape[-1]):
        columns[f"word {rank + 1}"] = words(lens.top_ids[..., rank])
        columns[f"probability {rank + 1}"] = np.exp(lens.top_logprobs[..., rank]).ravel()
    return columns


@dataclass(frozen=True)
class LogitGroup:
    """Parts of a logit that belong together, the strongest first, and their sum."""

    name: str
    value: float
    parts: tuple[Part, ...]


def part_name(part: Part) -> str:
    """A part as the label of its bar, "L2 H5"."""
    if part.kind == "head":
        return f"L{part.layer} {'cross ' if part.attention == 'cross' else ''}H{part.head}"
    if part.kind in WHOLE_PARTS:
        return f"L{part.layer} {_whole(part)}"
    return NAMES[part.kind]


NAMES = {
    "embedding": "embedding",
    "position": "position",
    "bias": "biases",
    "transform": "transform’s bend",
}


LAST = {"bias": 1, "transform": 2}  # where they stand in the order of the network
# Parts that stand for more than a head: an FFN, and in a model's own code an attention or a layer
# that could not be followed further.
WHOLE_PARTS = {"ffn": "FFN", "attn": "attention", "layer": "attention and FFN"}


def _whole(part: Part) -> str:
    return "cross-attention" if part.attention == "cross" else WHOLE_PARTS[part.kind]


def part_key(part: Part) -> str:
    """A head's name in an address: "self.2.5"; spaces of an attention's name become dashes. An
    FFN's: "ffn.2". "" for any other part."""
    if part.kind == "ffn":
        return f"ffn.{part.layer}"
    return (
        f"{part.attention.replace(' ', '-')}.{part.layer}.{part.head}"
        if part.kind == "head"
        else ""
    )


def n_norms(recording: Recording) -> int:
    """The number of LayerNorms that the state itself passes on its way to the readout; those in
    front of a sub-layer are read beside it."""
    return sum(site.endswith(".normed") for site in read_stream(recording).sites)


def largest_parts(attribution: Attribution) -> tuple[Part, ...]:
    """The parts, those that push hardest first, up or down."""
    return tuple(sorted(attribution.parts, key=lambda part: -abs(part.value)))


def deciding_part(attribution: Attribution) -> Part:
    """The part that decided between two words: of heads, FFNs, attentions and layers, as far as a
    model can be taken apart, the one that pushes most toward the word that leads. Of one word alone
    the largest part that depends on the text. The largest of all where there is no such part."""
    largest = largest_parts(attribution)
    of_text = [each for each in largest if each.kind != "bias"]
    if attribution.against is None:
        return (of_text or largest)[0]
    sign = 1 if attribution.logit >= 0 else -1
    of_layers = [each for each in of_text if each.layer >= 0]
    return max(of_layers, key=lambda each: sign * each.value, default=largest[0])


def groups(attribution: Attribution) -> tuple[LogitGroup, ...]:
    """The parts in the order in which the stream meets them: embedding, position, of each layer its
    heads and its FFN, and the biases."""
    grouped: dict[str, list[Part]] = {}
    for part in sorted(attribution.parts, key=lambda part: LAST.get(part.kind, 0)):
        heads = "cross-heads" if part.attention == "cross" else "heads"
        kind = heads if part.kind == "head" else _whole(part) if part.layer >= 0 else ""
        grouped.setdefault(NAMES.get(part.kind) or f"L{part.layer} {kind}", []).append(part)
    return tuple(
        LogitGroup(
            name,
            sum(part.value for part in parts),
            tuple(sorted(parts, key=lambda part: -abs(part.value))),
        )
        for name, parts in grouped.items()
    )


def parts_sum(attribution: Attribution) -> float:
    """The sum of the parts, which is the logit up to rounding."""
    return float(sum(part.value for part in attribution.parts))


def parts_table(attribution: Attribution) -> Columns:
    """The parts as named columns, the strongest first."""
    parts = largest_parts(attribution)
    return {
        "part": [part_name(part) for part in parts],
        "kind": [part.kind for part in parts],
        "attention": [part.attention for part in parts],
        "layer": [part.layer if part.layer >= 0 else None for part in parts],
        "head": [part.head if part.head >= 0 else None for part in parts],
        "contribution": [part.value for part in parts],
    }


def parts_file(attribution: Attribution) -> Columns:
    """The parts as named columns, the strongest first, with their sum and the logit itself in the
    last two rows."""
    totals: dict[str, Cells] = {
        "part": ["sum of parts", "logit"],
        "contribution": [parts_sum(attribution), attribution.logit],
    }
    return {
        name: [*values, *totals.get(name, (None, None))]
        for name, values in parts_table(attribution).items()
    }


# The states of a stream: which of its sites they are, what they are called on an axis, and their
# vectors.


def states(stream: Stream, sums: bool = True) -> tuple[str, ...]:
    """The sites of a stream that are states: not a sub-layer's output or input. Without `sums` also
    not the sums that a LayerNorm follows."""
    sites = [site for site in stream.sites if not site.endswith((".wrote", ".read"))]
    return tuple(site for site in sites if sums or not _is_sum(site, sites))


def title(site: str, names: Sequence[str]) -> str:
    """A site as an axis names it, "L2 attention", or "L2 attention, sum" where `names` also has the
    state after its LayerNorm."""
    return site_name(site) + (", sum" if _is_sum(site, names) else "")


def vectors(stream: Stream, names: Sequence[str], at: np.ndarray) -> np.ndarray:
    """The vectors (site, token, d_model) of some tokens at some sites, float64."""
    return stream.resid[[stream.sites.index(name) for name in names]][:, at].astype(np.float64)


def _is_sum(site: str, names: Sequence[str]) -> bool:
    return site.endswith(".sum") and site[:-3] + "normed" in names
