"""The Predictions page in words: how a probability is made, how sure the model is, the draw."""

from __future__ import annotations

from collections.abc import Sequence
from operator import truediv

from explorer.analysis import predictions
from explorer.analysis.formatting import (
    enough_digits,
    fixed,
    plural,
    power,
    probability,
    softmax_texts,
)
from explorer.text.markdown_escape import literal
from models.results import WholeWord

GREEDY = (
    "**How the numbers are made.** Temperature 0 stands for the limit of softmax(z / T) as T goes "
    "to 0: all probability falls to the likeliest token, whatever top-k and top-p say."
)
TEMPERATURE = (
    "Every score is divided by it. Under 1 the likely get likelier, over 1 the unlikely do. 0 "
    "takes the likeliest token, always."
)
TOP_P = "The likeliest tokens are kept until together they reach p; the others are cut."
SEED = "Where the random numbers start. The same seed and text give the same words."
ENDS_WITH_SPACE = (
    "Your text ends with a space, and this space is a token of its own (␣). Words bring their own "
    "space with them, so take it away for the continuation you probably mean."
)


def formula(of: predictions.Distribution, word: str, id: int) -> str:
    """The computation of a token's probability, with this text's numbers."""
    if of.sampling.temperature == 0:
        return GREEDY
    steps, temperature = predictions.probability_steps(of, id), of.sampling.temperature
    probability_text = probability(steps.tempered)
    over_t, part, total = softmax_texts(steps.divided, steps.log_total, probability_text)
    (score,) = enough_digits(over_t, lambda z: z / temperature, steps.score)
    divided = (
        ""
        if temperature == 1
        else f"; divided by the temperature T = {temperature:g} it is {over_t}"
    )
    sentence = (
        f"**How the numbers are made.** The model gives each of {len(of.order):,} tokens a score "
        f"z (a logit), and a softmax makes probabilities of them: p = e^(z/T) / Σ e^(z/T).  \n"
        f"For **{literal(word)}** z = {score}{divided}. e^{over_t} = {part}, the sum over all "
        f"tokens is {total}, so p = {part} / {total} = **{probability_text}**."
    )
    return sentence + (truncation(steps) if steps.n_kept < len(of.order) else "")


def truncation(steps: predictions.ProbabilitySteps) -> str:
    """The effect of top-k and top-p on a probability."""
    drawn = probability(steps.drawn)
    own, total = enough_digits(drawn, truediv, steps.tempered, steps.held, least=4, write=power)
    return (
        f" The {steps.n_kept:,} that are kept hold {total} together, so it is drawn with "
        f"{own} / {total} = **{drawn}**."
    )


def how_sure(of: predictions.Distribution) -> str:
    """The entropy, in three units."""
    entropy = predictions.entropy(of.own)
    bits = fixed(predictions.bits(entropy))
    (nats,) = enough_digits(bits, predictions.bits, entropy)
    return (
        f"Entropy of the model’s own probabilities: {plural(nats, 'nat')} = {plural(bits, 'bit')}, "
        f"perplexity {predictions.perplexity(entropy):,.1f}."
    )


def mask_is_text(model: str, spelled: str, writes: bool) -> str:
    """That a typed mask is plain text to a model, and what to do; writes: it predicts the next
    token."""
    here = "; here, end the text where the word is missing" if writes else ""
    return (
        f"{literal(model)} has no mask token and reads {literal(spelled)} as plain text. Choose "
        f"encoder to fill a gap{here}."
    )


def whole_word(of: WholeWord) -> str:
    """A note on the probability beside a word of several pieces, and on the word's own."""
    first, *rest = of.pieces
    then = ", ".join(f"“{literal(piece)}”" for piece in rest)
    least = "at most " * of.cut
    return (
        f"“{literal(of.word)}”: the number and bar are its first piece, “{literal(first)}”. With "
        f"{then} likeliest after it, the whole word has {least}{probability(of.own)}."
    )


def how_drawn(drawn: predictions.Draw, word: str, seed: int, place: int) -> str:
    """The token that Step will write, and why."""
    word = literal(word)
    if drawn.number is None:
        return (
            f"**Step writes “{word}”**, the likeliest token: at temperature 0 nothing is left to "
            "chance."
        )
    return (
        f"**Step writes “{word}”.** The random number of seed {seed} for token {place} is "
        f"{drawn.number:.4f}. With all kept tokens end to end on a line from 0 to 1, the likeliest "
        f"first, it falls on “{word}”, which reaches from {drawn.start:.4f} to {drawn.end:.4f}."
    )


def sums(
    others: predictions.RemainingWords, words: Sequence[predictions.Word], n: int, writes: bool
) -> str:
    """The number of tokens that may be drawn, the sums of both columns, and a legend of the
    bars."""
    n_kept = others.n_kept + sum(word.kept for word in words)
    return (
        f"Kept: {n_kept:,} of {n:,} tokens. Sums: model {others.all_own:.4f}, drawn from "
        f"{others.all_drawn:.4f}. Pale: the model’s own probability. Solid: what is drawn from. "
        "Hatched: cut. A bar with a break is longer than drawn."
        + (" Choose a bar to write its token." if writes else "")
    )


def cut(others: predictions.RemainingWords) -> str:
    """The number of unlisted tokens that are cut, after their total."""
    if others.n_kept == others.n:
        return ""
    return ", all cut" if not others.n_kept else f", {others.n - others.n_kept:,} cut"


def where_it_stands(own: float, rank: int, label: str, n: int, ended: bool, full: int) -> str:
    """The last of n written tokens, with the model's probability, its rank from 0, and whether the
    text has ended. full: the text's length in tokens, where it is the longest that the model
    reads."""
    sentence = (
        f"{n} written; under each its probability and rank. The last: “{label}”, "
        f"{probability(own)}, rank {rank + 1:,}."
    )
    if ended:
        return (
            f"{sentence} Here the model says that the text has ended ({label}). "
            "Press Back to try another way."
        )
    if full:
        return (
            f"{sentence} The text now has {full} tokens, all that this model reads. "
            "Press Back to try another way."
        )
    return sentence


NO_CACHE = (
    "There is no KV cache: this model’s own code does not return keys and values. Every step reads "
    "the whole text again."
)


def shared_keys(n_head: int, n_key_head: int) -> str:
    """Note that several heads share their keys and values, "" where each has its own."""
    return f" ({n_head} heads share {n_key_head} keys)" if n_key_head < n_head else ""


def cache(n: int, n_prompt: int, steps: int) -> str:
    """The work that the KV cache has saved after so many steps; n tokens in all."""
    if not steps:
        return (
            f"The model read your {n} tokens at once. With their keys and values kept, the next "
            f"step reads **1** token; without, it would read all **{n + 1}** again."
        )
    again = sum(range(n_prompt + 1, n + 1))
    since = f" All {steps} steps read {steps} tokens instead of {again:,}." if steps > 1 else ""
    return (
        "The last step read **1** token; without the cache it would have read all "
        f"**{n}** again.{since}"
    )
