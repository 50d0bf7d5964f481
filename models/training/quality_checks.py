"""Quality measures of heads and of generated text, on hand-made and held-out text, for cards.

All hand-made sentences are those of `models/training/heldout_sentences.py`. A word's attention is
taken from its last token to all tokens of the other word, summed."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import torch

from models.own_model import OwnModel, record
from models.recording import Recording
from models.training import heldout_sentences, next_word
from models.training.training_config import Kind
from models.transformer import Decoder

# A sink, as the app's grid calls one: a token on which a head's rows rest this much on average, and
# so many times more than evenly.
SINK, SINK_LIFT = 0.2, 3
ORDINARY, N_ORDINARY = (
    range(8, 17),
    60,
)  # words of an ordinary sentence, and how many of them are looked at
EXAMPLE_PRONOUN = (
    "The animal didn't cross the street because it was too tired.",
    "it",
    "animal",
    "street",
)
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def of_kind(handle: OwnModel, kind: type[Kind]) -> Kind:
    """The model of a handle. Raises TypeError where it is of another kind."""
    if not isinstance(handle.model, kind):
        raise TypeError(f"{handle.card.name} is no {kind.__name__}")
    return handle.model


def token_positions(recording: Recording, word: str, text: str) -> list[int]:
    """The places of the tokens that make up a word's first occurrence as a whole word."""
    if not (match := re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)):
        raise ValueError(f"{word!r} is no word of {text!r}")
    start, end = match.span()
    spans = recording.streams[0].spans
    return [at for at, (a, b) in enumerate(spans) if a < end and b > start and a >= 0]


def pair_attention(handle: OwnModel, text: str, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Every head's weight from the first word of each pair to the second, (pair, layer, head)."""
    recording = record(handle, text)
    pattern = recording.attention[0].pattern
    return np.stack(
        [
            pattern[:, :, token_positions(recording, query, text)[-1]][
                ..., token_positions(recording, key, text)
            ].sum(-1)
            for query, key in pairs
        ]
    )


def pronoun_heads(handle: OwnModel) -> dict[str, str]:
    """The head with the highest accuracy in resolving a pronoun between two nouns: its weight on
    the right one, on the other, and how often the right one gets more. `on the other half`: the
    same for the head that is best on every second sentence, on those between."""
    attention = np.stack(
        [
            pair_attention(handle, text, ((pronoun, right), (pronoun, other)))
            for text, pronoun, right, other in heldout_sentences.PRONOUNS
        ]
    )  # (sentence, 2, layer, head)

    def best(rows: np.ndarray) -> tuple[int, int]:
        return np.unravel_index((rows[:, 0] - rows[:, 1]).mean(0).argmax(), rows.shape[2:])

    def summary(rows: np.ndarray, head: tuple[int, int]) -> str:
        right, other = rows[:, 0, *head], rows[:, 1, *head]
        share = (right > other).mean()
        return (
            f"{right.mean():.2f} and {other.mean():.2f}, more in {share:.0%}, L{head[0]}H{head[1]}"
        )

    even, odd = attention[::2], attention[1::2]
    return {
        "pronoun to the noun that fits and to the other": summary(attention, best(attention)),
        "the same, head chosen on half of the sentences, measured on the rest": summary(
            odd, best(even)
        ),
    }


def dependency_heads(handle: OwnModel) -> dict[str, str]:
    """The best heads from determiners to their nouns and from verbs to their subjects."""
    best_heads = {}
    for name, at in (("determiner to its noun", 0), ("verb to its subject", 1)):
        scores = np.concatenate(
            [
                pair_attention(handle, text, (determiners, verbs)[at])
                for text, determiners, verbs in heldout_sentences.PAIRS
            ]
        ).mean(0)
        layer, head = np.unravel_index(scores.argmax(), scores.shape)
        best_heads[name] = f"{scores.max():.3f} L{layer}H{head}"
    return best_heads


def example_pronoun_head(handle: OwnModel) -> dict[str, str]:
    """The head that most ties "it" to "animal" in the app's first sentence, and what it gives to
    "street"."""
    text, it, animal, street = EXAMPLE_PRONOUN
    to_animal, to_street = pair_attention(handle, text, ((it, animal), (it, street)))
    layer, head = np.unravel_index((to_animal - to_street).argmax(), to_animal.shape)
    summary = f"{to_animal[layer, head]:.2f} and {to_street[layer, head]:.2f}, L{layer}H{head}"
    return {"“it” to “animal” and to “street” in the app’s first sentence": summary}


def sink_share(handle: OwnModel, texts: Sequence[str]) -> float:
    """The share of heads that have a sink, mean over the texts."""
    shares = []
    for text in texts:
        pattern = record(handle, text).attention[0].pattern
        mean = pattern.mean(axis=2)  # (layer, head, key)
        is_sink = (mean >= SINK) & (mean >= SINK_LIFT / pattern.shape[-1])
        shares.append(is_sink.any(-1).mean())
    return float(np.mean(shares))


def ordinary_texts(texts: Sequence[str]) -> list[str]:
    """Some texts of ordinary length."""
    return [text for text in texts if len(text.split()) in ORDINARY][:N_ORDINARY]


@torch.inference_mode()
def total_nats(handle: OwnModel, texts: Sequence[str]) -> float:
    """Negative log-likelihood in nats of all texts together, each alone and cut to the model's
    length."""
    total, model = 0.0, of_kind(handle, Decoder)
    for text in texts:
        ids = torch.tensor([[handle.tokenizer.ends[0], *handle.tokenizer.ids([text])[0]]])
        ids = ids[:, : handle.card.n_positions]
        total += next_word.loss(model, ids, torch.ones_like(ids, dtype=torch.bool)).item() * (
            ids.shape[1] - 1
        )
    return total


def repetition_score(handle: OwnModel, texts: Sequence[str]) -> str:
    """The best induction head over the second time that texts are said, mean attention."""
    diagonals = []
    for text in texts:
        recording = record(handle, f"{text} {text}")
        pattern = recording.attention[0].pattern
        n = (pattern.shape[-1] - 1) // 2
        second_positions = np.arange(n + 1, 2 * n + 1)
        diagonals.append(pattern[:, :, second_positions, second_positions - n + 1].mean(-1))
    scores = np.mean(diagonals, axis=0)
    layer, head = np.unravel_index(scores.argmax(), scores.shape)
    return f"{scores.max():.3f} L{layer}H{head}"


@torch.inference_mode()
def continuations(
    handle: OwnModel, prompts: Sequence[str], n: int, temperature: float = 0.0
) -> list[list[int]]:
    """A decoder's continuation of each prompt: `n` token ids, the likeliest each time or drawn at a
    temperature; the end is no token."""
    generator, continuations = torch.Generator().manual_seed(0), []
    for prompt in prompts:
        ids = [handle.tokenizer.ends[0], *handle.tokenizer.ids([prompt])[0]]
        start = len(ids)
        while len(ids) < start + n:
            logits = handle.model.logits(handle.model(torch.tensor([ids])))[0, -1]
            logits[list(handle.tokenizer.special)] = float("-inf")
            if temperature:
                p = (logits / temperature).softmax(-1)
                ids.append(int(torch.multinomial(p, 1, generator=generator)))
            else:
                ids.append(int(logits.argmax()))
        continuations.append(ids[start:])
    return continuations


def has_loop(ids: Sequence[int], n: int = 8) -> bool:
    """True where a run of `n` tokens comes a second time."""
    runs = [tuple(ids[at : at + n]) for at in range(len(ids) - n + 1)]
    return len(set(runs)) < len(runs)


def text_prompts(texts: Sequence[str], n: int = 50, words: int = 4) -> list[str]:
    """The first words of texts, as prompts."""
    long = [text for text in texts if len(text.split()) > words + 2]
    return [" ".join(text.split()[:words]) for text in long[:n]]


def unknown_share(texts: Sequence[str], known_words: set[str]) -> float:
    """The share of the words of texts that are not among the `known` ones, in lower case."""
    words = [word.lower().replace("’", "'") for text in texts for word in WORD.findall(text)]
    return sum(word not in known_words for word in words) / max(1, len(words))


def vocabulary(texts: Sequence[str]) -> set[str]:
    """Every word of texts, in lower case."""
    return {word.lower().replace("’", "'") for text in texts for word in WORD.findall(text)}
