"""A translation step by step: what the decoder said, how sure it was of it, and where in the source
it looked.

Step i is row i of the decoder's stream: it reads token i and says token i + 1. Where the
translation ended itself the last row says the `end`, the token that ends a text (its id and its
label), and nothing where it was cut off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from explorer.figures.csv import Columns, long_form
from models.contract.recording import Attention, Recording, Stream
from models.contract.results import Beam

MOST_TOP = 5
MEAN_OF_ALL = ""  # the name of the mean over all layers and heads
EndToken = tuple[int, str]


def cross_attention(recording: Recording) -> Attention:
    """The attention from the decoder to the encoder. Raises ValueError for a recording without
    one."""
    for attention in recording.attention:
        if attention.name == "cross":
            return attention
    raise ValueError(f"{recording.model.name} has no cross-attention")


# ---- what was said ----


def produced_tokens(
    recording: Recording, end: EndToken | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The tokens that the decoder's rows produced: ids (step) and their labels, with the `end`
    where there is one."""
    decoder = recording.stream("decoder")
    if end is None:
        return decoder.ids[1:], decoder.tokens[1:]
    return np.append(decoder.ids[1:], end[0]), (*decoder.tokens[1:], end[1])


@dataclass(frozen=True, eq=False)
class DecodedSteps:
    """Tokens that a decoder produced, step by step, with their probabilities and the alternatives.

    logprob (step), in nats, float64. rank (step) from 0: how many tokens the model held to be
    likelier. top_ids and top_logprobs (step, place), the likeliest first."""

    logprob: np.ndarray
    rank: np.ndarray
    top_ids: np.ndarray
    top_logprobs: np.ndarray


def decoded_steps(rows: Iterable[np.ndarray], ids: np.ndarray, top: int = MOST_TOP) -> DecodedSteps:
    """Compute the log-probability and rank of each produced token. rows: the decoder's scores (id)
    at one place after the other; ids (step) with at least one step and at most as many as rows."""
    steps = [_decoded_step(row, id, top) for id, row in zip(ids.tolist(), rows)]
    return DecodedSteps(*(np.array(each) for each in zip(*steps)))


def _decoded_step(
    logits: np.ndarray, id: int, top: int
) -> tuple[float, int, np.ndarray, np.ndarray]:
    """A step as `DecodedSteps` has them."""
    z = logits.astype(np.float64)
    peak = z.max()
    log_sum = peak + np.log(np.exp(z - peak).sum())
    likeliest_ids = np.argpartition(-z, top - 1)[:top]
    likeliest_ids = likeliest_ids[np.argsort(-z[likeliest_ids], kind="stable")]
    rank = int((z > z[id]).sum())
    return float(z[id] - log_sum), rank, likeliest_ids, z[likeliest_ids] - log_sum


def perplexity(logprobs: Sequence[float] | np.ndarray) -> float:
    """e to the mean of -log p: among how many equally likely tokens the model would have been as
    unsure. 1 for no tokens."""
    return float(np.exp(-np.mean(logprobs))) if len(logprobs) else 1.0


def penalty(beam: Beam) -> float:
    """Length penalty of a hypothesis: its sum of log-probabilities divided by its score."""
    return sum(beam.logprobs) / beam.score if beam.score else 1.0


def words(text: str, stream: Stream) -> tuple[int, ...]:
    """Index of the word that each token of a stream belongs to, from 0. A word is what stands
    between two white spaces of the text; a special token is a word of its own. Where the tokens'
    places in the text are not known, a token that is marked as going on inside a word does so."""
    place, groups = -1, []
    for at, (start, _) in enumerate(stream.spans):
        before = stream.spans[at - 1][1] if at else -1
        if at == 0 or stream.special[at] or stream.special[at - 1]:
            continues = False
        elif start >= 0 and before >= 0:
            continues = (
                not any(letter.isspace() for letter in text[before : start + 1]) and before >= start
            )
        else:
            continues = stream.tokens[at].startswith("‧")
        place += not continues
        groups.append(place)
    return tuple(groups)


def produced_words(recording: Recording, ended: bool) -> tuple[int, ...]:
    """Index of the word that each produced token belongs to, from 0, as `words` has it; the end is
    one of its own."""
    groups = tuple(group - 1 for group in words(recording.target, recording.stream("decoder"))[1:])
    return (*groups, max(groups, default=-1) + 1) if ended else groups


# ---- where it looked ----


def view_names(n_layer: int, n_head: int) -> tuple[str, ...]:
    """The names of what a cross-attention can be seen as: "1.3" for a head, "1" for the mean of a
    layer's heads, MEAN_OF_ALL for the mean of all; layer by layer, each layer's mean after its
    heads."""
    return (
        *(
            name
            for layer in range(n_layer)
            for name in (*(f"{layer}.{head}" for head in range(n_head)), f"{layer}")
        ),
        MEAN_OF_ALL,
    )


def attention_view(pattern: np.ndarray, name: str) -> np.ndarray:
    """One view of a cross-attention, by its name in `view_names`. pattern (layer, head, query,
    key) -> (query, key), rows sum to 1."""
    if name == MEAN_OF_ALL:
        return pattern.mean(axis=(0, 1), dtype=np.float64).astype(np.float32)
    layer, _, head = name.partition(".")
    return (
        pattern[int(layer), int(head)]
        if head
        else pattern[int(layer)].mean(axis=0, dtype=np.float64).astype(np.float32)
    )


def view_title(name: str, n_layer: int, n_head: int) -> str:
    """Title of a view of attention: "layer.head" a head, "layer" a layer's mean, "" the mean of
    all."""
    layer, _, head = name.partition(".")
    if head:
        return f"Layer {layer}, head {head}"
    return (
        f"Layer {layer}, mean of its {n_head} heads"
        if layer
        else f"Mean of all {n_layer * n_head} heads"
    )


# ---- as tables ----


def word_table(steps: DecodedSteps, labels: Sequence[str], groups: Sequence[int]) -> Columns:
    """A row for each produced word: its pieces, and the product of their probabilities."""
    starts = [at for at, group in enumerate(groups) if at == 0 or group != groups[at - 1]]
    spans = list(pairwise((*starts, len(groups))))
    return {
        "word": ["".join(label.removeprefix("‧") for label in labels[a:b]) for a, b in spans],
        "pieces": [" · ".join(labels[a:b]) for a, b in spans],
        "p": [float(np.exp(steps.logprob[a:b].sum())) for a, b in spans],
        "log p": [float(steps.logprob[a:b].sum()) for a, b in spans],
    }


def beam_table(steps: Sequence[Sequence[Beam]], texts: Sequence[Sequence[str]]) -> Columns:
    """A row for each hypothesis of each step of a beam search, as named columns. `texts`: what each
    spells."""
    rows = [
        (at + 1, rank + 1, text, beam)
        for at, (beams, step_texts) in enumerate(zip(steps, texts))
        for rank, (beam, text) in enumerate(zip(beams, step_texts))
    ]
    return {
        "step": [row[0] for row in rows],
        "rank": [row[1] for row in rows],
        "hypothesis": [row[2] for row in rows],
        "grown from rank": [row[3].parent + 1 for row in rows],
        "log p": [sum(row[3].logprobs) for row in rows],
        "score": [row[3].score for row in rows],
        "ended": [row[3].done for row in rows],
    }


def surviving_beams(steps: Sequence[Sequence[Beam]]) -> list[set[int]]:
    """Of each step of a beam search the places of the hypotheses that the last ones grew from."""
    alive: list[set[int]] = [set() for _ in steps]
    places = set(range(len(steps[-1])))
    for at in reversed(range(len(steps))):
        alive[at] = places
        places = {steps[at][place].parent for place in places}
    return alive


def alignment_table(
    matrix: np.ndarray,
    labels: Sequence[str],
    read_labels: Sequence[str],
    steps: DecodedSteps,
    first_choices: Sequence[str],
    source: Sequence[str],
) -> Columns:
    """A row for each step and source token, as named columns: what the decoder read last, the token
    that it wrote with its probability and rank, the model's first choice, and the weight."""
    n = len(labels)
    by_step = {
        "reads": read_labels[:n],
        "token": labels,
        "p": np.exp(steps.logprob[:n]),
        "log p": steps.logprob[:n],
        "rank": steps.rank[:n] + 1,
        "first choice": first_choices[:n],
        "p of it": np.exp(steps.top_logprobs[:n, 0]),
    }
    axes = {
        "step": range(1, n + 1),
        "source": [f"{place} {token}" for place, token in enumerate(source)],
    }
    weights = long_form(axes, np.asarray(matrix)[:n, : len(source)], "weight")
    of_step = [step - 1 for step in weights["step"]]
    return {name: [values[at] for at in of_step] for name, values in by_step.items()} | weights
