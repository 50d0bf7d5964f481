"""A logit's parts and an FFN's neurons in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from explorer.analysis.formatting import (
    exponent_text,
    fixed,
    percent,
    plural,
    power_of_e,
    probability,
    signed,
)
from explorer.analysis.logit_lens import NeuronTotals
from explorer.analysis.terminology import unit_formula
from explorer.text.capability_messages import WHICH_TENSORS
from explorer.text.markdown_escape import literal
from models.results import Neurons

# The neurons of an FFN in words.

HELP = (
    "An FFN’s hidden units are called neurons. Each has one direction that it writes, its row of "
    "W₂, times its activation. So the FFN’s part of a logit is a sum over its neurons."
)
NEURONS_OWN_CODE = (
    "{} does not let its FFNs be opened: "
    f"{WHICH_TENSORS.format('are W₁ and W₂')}. What each FFN wrote as a whole stands above."
)
HOW = (
    "**How a neuron’s part is made.** Neuron i writes aᵢ · wᵢ: its activation aᵢ = {units}, and "
    "its direction wᵢ, a row of W₂. What it writes is followed to the readout as above, every norm "
    "held, and multiplied with the word’s row there.{bias} The words on the right are what the "
    "same write does to every logit of the vocabulary. A part says what was put in directly: later "
    "layers read it too."
)


def how(gate: str, biases: bool) -> str:
    """How a neuron's part is made; gate: what a gated FFN is called, or ""."""
    apart = " The FFN’s bias b₂ is named apart." if biases else ""
    named = f" ({gate}: a gate times a unit)" if gate else ""
    return HOW.format(units=unit_formula(gate, biases) + named, bias=apart)


def ffn(of: Neurons, sums: NeuronTotals, words: tuple[str, str], token: str, biases: bool) -> str:
    """What an FFN put into a logit, and what its neurons and, where it has one, its bias come to.
    words: the word and the one it is compared with, "" for none."""
    one, other = map(literal, words)
    total = float(of.adds.sum()) + of.bias
    less = f" less that of **{other}**" if other else ""
    bias = f", its bias to {signed(of.bias, 4)}" if biases else ""
    whole = "the sum of both" if biases else "their sum"
    return (
        f"At **{literal(token)}** (token {of.token}) the FFN of layer {of.layer} put "
        f"**{signed(of.part, 4)}** into the logit of **{one}**{less}. Its {sums.n:,} neurons add "
        f"up to {signed(float(of.adds.sum()), 4)}{bias}; {whole} and its part differ by "
        f"{probability(abs(total - of.part))}.  \n"
        f"{sums.n_up:,} neurons push up, together {signed(sums.up, 3)}; {sums.n_down:,} push down, "
        f"together {signed(sums.down, 3)}. The strongest "
        f"{'one does' if sums.half == 1 else f'{sums.half:,} do'} half of all pushing."
    )


def neuron(of: Neurons, rank: int) -> str:
    """One of the strongest neurons: its activation, what it writes, and what it adds."""
    unit = int(of.strongest[rank])
    return (
        f"**Neuron {unit}** has activation {fixed(float(of.activation[unit]), 3)} here, writes a "
        f"vector of length {fixed(float(of.length[unit]), 3)} and adds "
        f"**{signed(float(of.adds[unit]), 4)}**."
    )


def when(of: Neurons, rank: int, fires: np.ndarray, tokens: Sequence[str]) -> str:
    """At which tokens of the text it fires."""
    values = of.fires[rank]
    if not fires.any():
        return "It fires at no token of this text."
    most = int(np.abs(values).argmax())
    above = int((values > 0).sum())
    return (
        f"Most at {tokens[most]} (token {most}): {fixed(float(values[most]), 3)}. Above zero at "
        f"{above} of {plural(len(values), 'token')}. Marked: at least half of its largest."
    )


ATTRIBUTION = (
    "Direct logit attribution: the state that a word is read from is a sum, so the word’s logit is "
    "one too, of what each head, each FFN and the embedding put in."
)
NOT_FOLLOWED = {
    "attn": (
        " This model runs in its own code, which does not show what each head wrote: an attention "
        "is one part."
    ),
    "layer": (
        " This model’s attention and FFN read the same vector and write side by side, and its own "
        "code shows their sum alone: a layer is one part."
    ),
}


def logit(value: float, total: float, n_parts: int, words: tuple[str, str], where: str) -> str:
    """A word's logit and the sum of its parts. words: the word and the one it is compared with, ""
    for none; where: the token it is read at."""
    one, other = map(literal, words)
    told = (
        f"At {where} the logit of **{one}**{f' less that of **{other}**' if other else ''} is "
        f"**{signed(value, 5)}**. The {n_parts} parts add up to {signed(total, 5)}; the two differ "
        f"by {probability(abs(total - value))}. "
    )
    if not other:
        return told + "A bar to the right pushed the word up, one to the left down."
    odds = power_of_e(value, 3)
    return told + (
        f"So {one} is e^{exponent_text(value, odds)} = {odds} times as likely as {other}. A bar to "
        f"the right raised {one} against {other}, one to the left the other way round."
    )


def bent(explained: float) -> str:
    """How a logit's parts go through the transform of a readout, and how far that holds."""
    return (
        "  \n**The transform.** Between the last vector and the words stand a dense layer, an "
        "activation and a LayerNorm. Here the activation has the slope that it has on this token, "
        "and σ is held; what the slope leaves is the part “transform’s bend”. Measured by taking "
        "each part from the last vector in turn and running the transform in full: the bars "
        f"explain **{percent(max(0.0, explained))}** of these changes (of their squares)."
    )


def not_followed(kinds: Collection[str]) -> str:
    """What parts of these kinds stand for that could not be followed further, "" for nothing."""
    return "".join(said for kind, said in NOT_FOLLOWED.items() if kind in kinds)


# What a norm does, and which of its numbers is held while a logit is taken apart.
HOLDS = {
    "LayerNorm": (
        "A LayerNorm subtracts the mean and divides by the spread σ. Each σ is held",
        "σ",
    ),
    "RMSNorm": ("An RMSNorm divides by the root of the mean square. Each root is held", "root"),
}


def row_of(readout: tuple[str, bool]) -> str:
    """What a state is multiplied by for a word's logit, and what is added; as for `formula`."""
    kind, biased = readout
    row = "the word’s row of W_U" if kind == "untied" else "embedding of the word"
    return row + (" + bias" if biased else "")


def taken_apart(n_norms: int, adds: bool, norm: str, row: str) -> str:
    """The method, as it is for a model whose state passes so many norms of this name, and which has
    residual connections where `adds`. row: as `row_of`."""
    passed = f"sent through {plural(n_norms, norm)}" if adds else f"sent through the last {norm}"
    does, held = HOLDS.get(norm, ("A norm divides by a vector’s size. Each is held", "size"))
    state = (
        "the state is the sum of what was written on the way"
        if adds
        else "this model has no residual connections: only what the last sub-layer wrote reaches "
        "the readout, so it and the biases are the only parts"
    )
    through = (
        f", {passed}. {does} "
        "at the value it had on this token: dividing by a fixed number is linear, so every part "
        "can be followed alone to the end. The biases, as far as the model has them (of norms, of "
        "W_O and of the readout), are one part, “biases”."
        if n_norms
        else f"; there is no {norm} on the way, so nothing has to be held. The biases of W_O and "
        "of the readout are one part, “biases”."
    )
    return (
        f"**How a logit is taken apart.** A logit is state · {row}, and {state}{through} A bar "
        "says what a part put in directly, not what would happen without it: then "
        f"{f'every {held} and ' if n_norms else ''}every later layer would be another."
    )
