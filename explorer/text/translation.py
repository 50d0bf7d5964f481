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
    "Each row has the decoder’s attention weights to the source tokens when it generates the token "
    "named at the row, and that token’s probability"
)
LIMITS_OF_WEIGHTS = (
    "Attention weights show where a head reads, not why a word is predicted. Values, other heads "
    "and previous words also matter."
)
WORDS = "A word ends at a space. Its probability is the product of its tokens’ probabilities."
CUT = " The search stopped at its limit: 1.5 times the source’s length plus 16 tokens."


def nats(value: float) -> str:
    """A sum of logarithms of probabilities."""
    return fixed(value, 3)


def perplexity(logprobs: Sequence[float] | np.ndarray) -> str:
    """The perplexity, in figures."""
    value = translation.perplexity(logprobs)
    return f"{value:.2f}" if value < 1000 else f"{value:,.0f}"


def likely(logprobs: Sequence[float] | np.ndarray, end: str = "") -> str:
    """How likely an output is; end: the label of the token that ends it, "" where none does."""
    n = plural(len(logprobs), "token") + (f" with {literal(end)}" if end else "")
    return f"log p = {nats(sum(logprobs))} nats over {n}, perplexity {perplexity(logprobs)}"


def beside(own: str, theirs: str, text: str, better: bool | None) -> str:
    """What the reader typed beside the model's own; better: whether it is the likelier one, None
    where they cannot be compared."""
    told = f"**Your output:** {own}.  \n**Model output:** {text or '(nothing)'}: {theirs}."
    if better is None:
        return told
    more = "Your output is more probable. The search did not find it."
    return f"{told} {more if better else 'The model output is more probable.'}"


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
        f"**Cross-attention.** In each of {plural(n_layer, 'layer')} the decoder’s newest "
        "vector gives a query q, and every source token a key k and a value v. "
        f"softmax(q · k{scale}) over the {plural(n_source, 'source token')} gives the weights "
        f"shown here, one row for each of {plural(n_head, 'head')}.  \n**Prediction.** The vector "
        f"of token i gives a score z to each of the {recording.model.n_vocab:,} tokens of the "
        "vocabulary. p(word) = softmax(z) is its probability as token i + 1. So the row that reads "
        f"{first} predicts the first word. Rows are named after their prediction.  \n"
        "**A sentence.** Probabilities multiply, so "
        f"their logarithms add up: log p = {addends} = **{total}** nats. Perplexity is exp of the "
        f"mean of −log p, e^({logs} / {n}) = **{unsure}**."
    )


def drawn(temperature: float, seed: int) -> str:
    """How a translation that is drawn came about."""
    if temperature == 0:
        return "At temperature 0 the most probable token is chosen each time."
    return (
        f"Each token is sampled with seed {seed}. The same settings give the same words. The "
        "probabilities shown are those of the model."
    )
