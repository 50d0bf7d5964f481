"""A translation in words: how likely it is, beside the model's own, and how it is made. Markdown,
with words of the text already literal."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np

from explorer.analysis import translation
from explorer.analysis.formatting import enough_digits, fixed, plural, sum_text
from explorer.text.markdown_escape import literal

MOST_ADDENDS = 12
ROW = (
    "A row: the weights with which the decoder looked at the source tokens to say the token "
    "named at the row, and that token’s probability"
)
LOOKING = (
    "Attention weights say where a head read, not why the word was chosen: the values it "
    "read there, the other heads and the words so far count as well."
)
WORDS = "A word is what stands between two spaces; its probability is the product of its pieces’."
CUT = (
    " It did not end by itself: a search stops at 1.5 times the source’s length and 16 tokens more."
)


def nats(value: float) -> str:
    """A sum of logarithms of probabilities."""
    return fixed(value, 3)


def perplexity(logprobs: Sequence[float] | np.ndarray) -> str:
    """Among how many equally likely tokens the model would have been as unsure."""
    value = translation.perplexity(logprobs)
    return f"{value:.2f}" if value < 1000 else f"{value:,.0f}"


def likely(logprobs: Sequence[float] | np.ndarray, end: str = "") -> str:
    """How likely an output is; end: the label of the token that ends it, "" where none does."""
    n = plural(len(logprobs), "token") + (f" with {literal(end)}" if end else "")
    return f"log p = {nats(sum(logprobs))} nats over {n}, perplexity {perplexity(logprobs)}"


def beside(own: str, theirs: str, text: str, better: bool | None) -> str:
    """What the reader typed beside the model's own; better: whether it is the likelier one, None
    where they cannot be compared."""
    told = f"**Yours:** {own}.  \n**The model’s own:** {text or '(nothing)'}: {theirs}."
    if better is None:
        return told
    more = "Yours is the likelier one: the search did not find it."
    return f"{told} {more if better else 'The model prefers its own.'}"


def made(recording: Any, scale: str, logprobs: Sequence[float] | np.ndarray) -> str:
    """What happens, in plain words, with the formulas and this sentence's numbers. scale: what
    follows q · k in a score."""
    n, first = len(logprobs), literal(recording.stream("decoder").tokens[0])
    n_layer, n_head, _, n_source = translation.cross_attention(recording).pattern.shape
    if not n:
        return "There is no token yet."
    addends, total = sum_text(*logprobs) if n <= MOST_ADDENDS else ("", nats(sum(logprobs)))
    if n > MOST_ADDENDS:
        addends = f"{sum_text(*logprobs[:MOST_ADDENDS])[0]} …"
    unsure = perplexity(logprobs)
    logs = enough_digits(unsure, lambda each: exp(each / n), abs(sum(logprobs)))[0]
    return (
        f"**Looking back.** In each of {plural(n_layer, 'layer')} the decoder’s newest "
        "vector becomes a query q, and every source token offers a key k and a value v. "
        f"softmax(q · k{scale}) over the {plural(n_source, 'source token')} gives the weights "
        f"drawn here, one row for each of {plural(n_head, 'head')}.  \n**Saying a "
        "word.** The vector that has read token i gives a score z to each of the "
        f"{recording.model.n_vocab:,} tokens of the vocabulary; p(word) = softmax(z) is the "
        f"probability that it is token i + 1. So the row that reads {first} says the first word: "
        "rows here are named after what they say.  \n**A sentence.** Probabilities multiply, so "
        f"their logarithms add up: log p = {addends} = **{total}** nats. Perplexity is e to the "
        f"mean of −log p, e^({logs} / {n}) = **{unsure}**: as unsure as between so many "
        "equally likely tokens."
    )


def drawn(temperature: float, seed: int) -> str:
    """How a translation that is drawn came about."""
    if temperature == 0:
        return "At temperature 0 nothing is left to chance: the likeliest token each time."
    return (
        f"Each token is drawn by chance, with seed {seed}: the same choices draw the same words. "
        "The probabilities told are the model’s own."
    )
