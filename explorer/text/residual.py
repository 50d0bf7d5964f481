"""The residual stream in words: what a sub-layer wrote, what LayerNorm did to it, what each head
wrote and what a sub-layer does to a gradient. Markdown, with words of the text already literal."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from explorer.analysis.csv import Columns
from explorer.analysis.formatting import enough_digits_for_all, fixed, plural, power
from explorer.analysis.residual import largest_turn
from explorer.analysis.terminology import EITHER_NORM, with_article

ONLY_ADDED = "The vector is passed on and only ever added to: the residual stream."
WHERE = {
    "post": (
        "This model is post-LN: its norms follow the sums, and what they make goes on as the "
        "vector."
    ),
    "pre": (
        "This model is pre-LN: its norms stand in front of the sub-layers, which alone read what "
        "they make; the vector itself goes on without. The last one stands before the readout."
    ),
    None: "",
}
# A norm's formula, what it does to a vector, and how a gain and a bias follow.
FORMULA = {
    "LayerNorm": (
        "**LayerNorm** takes each token’s vector alone: LN(h) = (h − μ) / √(σ² + ε) · γ{bias}, "
        "μ and σ² over its own components, {learned} learned. So σ is 1 before gain and bias, "
        "and what they make of it after."
    ),
    "RMSNorm": (
        "**RMSNorm** takes each token’s vector alone: RMS(h) = h / √(mean of h² + ε) · γ{bias}, "
        "{learned} learned. No mean is subtracted; before the gain the vector is √d long."
    ),
}
ROTATIONS = (
    "**The rotations of each layer**, in degrees: from the layer’s beginning to after its "
    "attention, from there to after its FFN, and both in one."
)
SUM_OF_TURNS = (
    "Two turns in unlike directions make less than their sum: “whole layer” is the angle from "
    "beginning to end."
)
TASK = (
    "In an RNN a token reaches the output through every state between: its gradient is a "
    "product with one factor a step. Attention reaches any token in one step. Here three "
    "small networks of the same width learn the same task, and after every few steps of "
    "training the gradient is measured **on your text**."
)
SET_UP = (
    "- **Networks**: an RNN (tanh), an LSTM, and a Transformer (one decoder layer of the "
    "paper: 4 heads, FFN twice as wide, add & norm, sinusoidal positions, causal mask). Each "
    "has one layer of width 32 between an embedding and a linear readout.\n- **Start**: "
    "every matrix Xavier-uniform, every bias 0 (the LSTM’s forget gate too), embeddings N(0, "
    "1), LayerNorm’s gains 1; the same seed for each.\n- **Task**: at each place say the "
    "symbol k places back, on lists of random symbols as long as your text (at most 48). 16 "
    "symbols; chance is 1/16, a loss of ln 16 = 2.77 nats.\n- **Training**: Adam at 0.003, "
    "300 steps of 32 lists, no clipping of gradients, no schedule; all three see the same "
    "lists in the same order.\n- **Measured**: your text’s tokens, distinct ones numbered as "
    "they appear modulo 16, are fed in. For each output t, the gradient of its largest logit "
    "by the embedding of the token d before; its length, averaged over all outputs that have "
    "one.\n- **Not tuned**: nothing was chosen to favour one. Other starts (orthogonal "
    "recurrent matrices, forget bias 1), clipping or longer training help an RNN."
)


def way_on(place: str | None, norm: str) -> str:
    """What happens to a token's vector, by where the norm stands and what it is called."""
    does = {
        "post": f"Attention and FFN each add something to it; {norm} then sets its length.",
        "pre": f"Attention and FFN each read it through {with_article(norm)} and add something to "
        "it.",
        None: "Attention and FFN each add something to it, and no norm ever sets its length.",
    }
    return f"{does[place]} {ONLY_ADDED}"


def written(way: Columns, label: str, adds: bool, place: str | None, norm: str) -> str:
    """The formula with a token's numbers, at the sub-layer that turned it furthest. way: what
    `analysis.residual.followed` gives; place: where the norm stands; norm: what it is called."""
    at = largest_turn(way)
    value = {name: column[at] for name, column in way.items()}
    share, length = fixed(value["share"]), fixed(value["|sum|"]) if adds else ""
    equalities = [(share, lambda x, f, cos: f / (f + x))]
    if adds:
        equalities += [(length, lambda x, f, cos: sqrt(x * x + f * f + 2 * x * f * cos))]
    parts = (float(value[name]) for name in ("|before|", "|wrote|", "cosine"))
    before, wrote, cosine = enough_digits_for_all(equalities, *parts)
    normed = "turned by norm °" in value
    came = (
        f"|x + f|² = |x|² + |f|² + 2 |x| |f| cos, so |x + f| = {length}. Adding turned it"
        if adds
        else "Putting f(x) in the place of x turned it"
    )
    ended = f"**{value['turned in all °']:.1f}°**"
    if normed:
        ended = (
            f"{value['turned by adding °']:.1f}°, {norm} then {value['turned by norm °']:.1f}°; "
            f"from x to after the norm it is {ended}"
        )
    return (
        f"{_rule(adds, place, norm if normed else '', norm)}  \n"
        f"**{label}** in {value['sub-layer']}, its furthest turn: |x| = "
        f"{before}, and |f| = {wrote} was written, a share of {wrote} / ({wrote} + {before}) = "
        f"**{share}**, at a cosine of **{cosine}** to x.  \n{came} {ended}."
    )


def _rule(adds: bool, place: str | None, normed: str, norm: str) -> str:
    goes_on = f"; {normed} of it goes on" if normed else ""
    if not adds:
        then = "then norm, " if normed else ""
        return f"**Write, {then}no adding.** f(x) is written in the place of x{goes_on}."
    if place == "pre":
        return (
            f"**Norm, then add.** A sub-layer reads {norm}(x), and x + f goes on as it is, "
            "f = what it made of that."
        )
    if normed:
        return f"**Add, then norm.** x + f(x) is the sum{goes_on}."
    return (
        "**Add, and no norm.** x + f(x) goes on as it is: this model was trained without LayerNorm."
    )


LOST = (
    "**What was there is lost** wherever a sub-layer writes: before + wrote = after does not hold "
    "here, because the model has no residual connections."
)


def conserved(error: float, n: int, largest: float) -> str:
    """That nothing is lost: the largest error of n additions, where components reach `largest`."""
    return (
        f"**Nothing is lost: before + wrote = after.** Over all {n:,} additions of this "
        f"recording the largest error of any component is **{power(error, 2)}**, the rounding "
        f"of 32-bit numbers where components reach {power(largest)}."
    )


def norms(error: float, place: str | None, norm: str, biased: bool) -> str:
    """The formula of a norm by its name, with a bias where `biased`, and how far its recomputation
    is from what was recorded; of a model with both kinds, both."""
    learned = {"bias": " + β", "learned": "gain γ and bias β"} if biased else {}
    learned = learned or {"bias": "", "learned": "gain γ"}
    kinds = FORMULA if norm == EITHER_NORM else (norm,)
    formula = "  \n".join(FORMULA[each].format(**learned) for each in kinds)
    return (
        f"{formula} {WHERE[place]}  \nRecomputed from everything recorded before a norm with the "
        f"model’s gain{' and bias' if biased else ''}: the largest "
        f"difference to what was recorded is **{power(error, 2)}**."
    )


def batch_norm(name: str, label: str, token: int, times: float, norm: str) -> str:
    """What is compared: this norm and BatchNorm when one token's vector is multiplied."""
    return (
        f"The same recorded vectors, as they stood before this {norm} ({name}), normalised over "
        f"features ({norm}: each token by itself) and over tokens (BatchNorm: each feature, this "
        f"text as the batch). Then the vector of **{label}** (token {token}) is multiplied by "
        f"{times:g}, and both are done again. How far does each token’s normalised vector move?"
    )


def one_token(norm: str) -> str:
    """Why one token alone is not compared."""
    return (
        "There is one token only. Over tokens it has no spread, so BatchNorm makes every feature "
        f"0, whatever the token says; {norm} does not need the others."
    )


def moved(
    others: int, least: float, worst: tuple[str, int, float], own: tuple[float, float], norm: str
) -> str:
    """How far the others moved: at most `least` under this norm, and the `worst` (label, token,
    distance) under BatchNorm; `own`: the changed token's under the two."""
    label, token, far = worst
    who = "The other token" if others == 1 else f"The other {others} tokens"
    return (
        f"{who}: {norm} moves {'it' if others == 1 else 'them'} by **{power(least)}**; "
        f"BatchNorm moves “{label}” (token {token}) by **{far:.3f}**, though it did not "
        f"change. The changed token itself moves by {power(own[0])} under {norm}, which "
        f"forgets a vector’s length, and by {power(own[1])} under BatchNorm."
    )


def heads(error: float, d_head: int, d_model: int) -> str:
    """What a head's own write is, and that all of them are what attention wrote."""
    return (
        f"**A head’s own write.** Head h makes z = Σ weight · v, {d_head} numbers, and its "
        f"slice of W_O, {d_head} × {d_model}, turns them into a vector of the stream: that "
        "vector’s length is drawn. Attention’s write is the sum of all heads’ and W_O’s "
        "bias.  \nSummed for every token and layer of this recording, the largest difference "
        f"to what attention wrote is **{power(error, 2)}**.  \nHeads can write against each "
        "other, so the lengths together are more than the length of the sum."
    )


def output(word: str, where: str, logit: float, taken: str) -> str:
    """Which number is differentiated, and how often."""
    return (
        f"**The output** is one number: the logit of **{word}**, the model’s top word at "
        f"{where} ({fixed(logit)}). Its gradient by the state at a site says how much that "
        "number would change for a small change there; what is drawn is its length, over the "
        f"vectors of all tokens together. {taken}"
    )


TAKEN_ONCE = (
    "It is taken once, as the model is: its own code cannot be run without its residual "
    "connections or norms, which needs Headlight’s own classes."
)


def taken(name: str, adds: bool, norm: str) -> str:
    """How often the output is taken, and from which model: without what, of that which it has.
    norm: what its norm is called, "" where it has none."""
    if adds and norm:
        return (
            "The same word’s logit is taken four times: as the model is, with every residual "
            "connection taken away (what was written replaces the vector), and both without "
            f"{norm}. The weights stay what they were learned for, which was with both."
        )
    if adds:
        return (
            f"The same word’s logit is taken twice: as {name} is, which was trained without "
            "LayerNorm, and with every residual connection taken away (what was written "
            "replaces the vector)."
        )
    times, also = ("twice: as", f", and without {norm}") if norm else ("once, as", "")
    return (
        f"The same word’s logit is taken {times} {name} is, which was trained without residual "
        f"connections{also or ' and without LayerNorm'}."
    )


def no_norm(model: str, norm: str) -> str:
    """That a model has none of these."""
    return (
        f"**{model}** has no {norm}, so there is none to look at. “What was written”, with the "
        "lengths of the vectors (Norm), shows what becomes of them without."
    )


def jacobian(found: Any, label: str, name: str, d: int) -> str:
    """What one sub-layer does to directions; found: as `passes.jacobian`."""
    both, kept = "This model adds no x to it, so there is no I, and ∂f is all there is.", ""
    if found.adds:
        both = (
            "∂(x + f(x)) was differentiated by itself. Their difference is I: the largest entry of "
            f"|∂(x + f) − ∂f − I| is **{power(found.error, 2)}**."
        )
        kept = f" I + ∂f runs from {_ends(found.total)}; there it is {_lost(found.total)}."
    return (
        f"At {label}, {name}: ∂f is how what was written changes with the token’s own vector, "
        f"a {d} × {d} matrix, the other tokens held. {both}  \nA singular value is how much a "
        f"direction is stretched. ∂f alone runs from {_ends(found.wrote)}; "
        f"{_lost(found.wrote)} of {d} directions lose nine tenths or more.{kept}"
    )


def _ends(values: np.ndarray) -> str:
    return f"{fixed(values[0])} to {power(values[-1], 2)}"


def _lost(values: np.ndarray) -> int:
    return int((values < 0.1).sum())


def at_the_lag(lag: int) -> str:
    """What the table of the three networks measures."""
    return (
        f"The gradient {plural(lag, 'token')} back: the length of d(largest "
        f"logit)/d(embedding of the token {lag} before), mean over the outputs of your text. "
        "To say that token a network needs gradient there, so a peak at that distance is "
        "what learning looks like. Said right and loss are on 128 fresh random lists; chance "
        "is 6.2% and 2.77 nats."
    )
