"""The neurons of an FFN in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis.called import units
from explorer.analysis.neurons import Neurons, Together
from explorer.analysis.numbers import chance, fixed, plural, signed
from explorer.sentences.escape import literal
from explorer.sentences.own_code import WHICH_TENSORS

HELP = (
    "An FFN’s hidden units are called neurons. Each has one direction that it writes, its row of "
    "W₂, times its activation. So the FFN’s part of a logit is a sum over its neurons."
)
OWN_CODE = (
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
    return HOW.format(units=units(gate, biases) + named, bias=apart)


def ffn(of: Neurons, sums: Together, words: tuple[str, str], token: str, biases: bool) -> str:
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
        f"{chance(abs(total - of.part))}.  \n"
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
