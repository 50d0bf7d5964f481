"""Attention as a lookup, as messages and as one of three ways to score a pair, in words. Markdown,
with words of the text already literal."""

from __future__ import annotations

from explorer.analysis.formatting import fixed, percent, plural, power, weight
from explorer.analysis.soft_lookup import (
    LOOKUP_TOLERANCE,
    MAX_EDGES,
    CopyCounts,
    Edges,
    ScoreVariance,
    ScoringVariant,
)
from explorer.text.capability_messages import WEIGHTS_ALONE, WHICH_TENSORS

# A head's circuits in words.

TWO = (
    "A head’s weights do two things. **QK** (W_Q and W_K) scores which word looks for which. "
    "**OV** (W_V and W_O) makes of a word that is looked at what the head writes, and the readout "
    "makes words of that."
)
LEFT_OUT = (
    "The scores are W_E W_QK W_Eᵀ times the head’s scale, the logits W_E W_OV W_U at a weight of "
    "1, of bare embeddings. That leaves out biases, norms (those of q and k too, where a model has "
    "them), positions, and what earlier layers made of a word: nearest to what the head does in "
    "layer 0 (Elhage et al. 2021)."
)
HERE = (
    "The logits are those of the head’s own value v of this token, so norm, bias, position "
    "and earlier layers are in it. The way from the head to the readout, later layers and "
    "norms, is still left out. The scores are of bare embeddings."
)
OTHER_READOUT = (
    " No words are read off this stream by one matrix: the embedding stands in for the readout."
)
NOT_SHOWN = (
    "{} does not show the head’s W_Q, W_K, W_V and W_O: "
    f"{WHICH_TENSORS.format('these are')}. So its words cannot be read."
)


def copied(found: CopyCounts, across: bool) -> str:
    """How far the head copies the words that it looks at."""
    of = f"the {found.n} different words of the {'source' if across else 'text'}"
    return (
        f"Of {of}, {found.among_first} are among the words that they make the head raise most, and "
        f"{found.raised} raise themselves at all. A head that copies has many."
    )


# Why scores are divided by the root of d_k, in words.

LAW = (
    "**Why divide by √dₖ?** q·k is a sum of dₖ products. Of independent components with mean "
    "0 and variance 1 its variance is dₖ, so its size grows as √dₖ. "
    "A softmax of larger scores puts more of its weight on one key, and then hardly changes "
    "when scores do: learning slows. Divided by √dₖ the variance is 1 at every width."
)


def said(random: ScoreVariance, own: ScoreVariance | None, d_head: int) -> str:
    """What both pictures say at this model's own width, or the nearest one drawn."""
    at = min(range(len(random.widths)), key=lambda each: abs(random.widths[each] - d_head))
    width = random.widths[at]
    told = (
        f"**At width {width}**, of random vectors: Var(q·k) = "
        f"{power(float(random.variance[at]))}, with the scale "
        f"{power(float(random.variance[at] / width))}. "
        f"Of {random.keys:.0f} keys the largest takes {random.raw[at]:.2f} of the weight "
        f"without the scale, {random.scaled[at]:.2f} with it; an even row gives "
        f"{1 / random.keys:.2f}."
    )
    if own is None:
        return told
    end = len(own.widths) - 1
    return (
        f"{told} **This model’s** queries and keys, each component brought to a mean square "
        "of 1, are not independent: "
        f"over its heads’ {own.widths[end]} components side by side Var(q·k) = "
        f"{power(float(own.variance[end]))}, "
        f"{power(float(own.variance[end] / own.widths[end]))} times the width."
    )


SOFT = (
    "A dictionary returns the value of the one key that equals the query. Attention returns "
    "a mixture: **every value, each with the weight of its key**. The test “equal?” has "
    "become softmax(q · k / √d), “return the value” has become Σ weight · value. Slide the "
    "temperature, weights = softmax(scores / T), and one turns into the other."
)
MESSAGES = (
    "Tokens are nodes. Along each edge a token sends a **message = weight × value**; the one "
    "that listens adds its messages up: that sum is the head’s output z. Every token is a "
    "neighbour of every other; the edges drawn are those that matter. In a graph network’s "
    "words attention is the message step, the FFN the update step, and each layer one round."
)
NO_MESSAGES = (
    "A message is one head’s weight times **that head’s** value, so a mean of heads has "
    "weights but no messages. Choose “This head” to open them."
)
WHICH_FIRST = (
    "Where none is chosen: the one whose second key draws the mixture farthest from the "
    "first key’s value."
)
WHICH_FOUND = "Where none is chosen: the word that the Attention page opens on."
CLOSED = (
    "{} gives its attention weights but not the scores, queries, keys and values behind them: "
    f"{WEIGHTS_ALONE}. So this cannot be computed. “Messages” needs the weights alone."
)
NO_SYMMETRY = (
    "**Symmetry has no meaning here.** In cross-attention rows are the decoder’s tokens and "
    "columns the encoder’s: the score from a to b and the one from b to a are of different "
    "things, and there is no diagonal. Choose encoder or decoder self-attention above to see "
    "the three constructions."
)
NO_VECTORS = (
    "{} does not hand out the vectors that its attention reads: its code makes them on the way, "
    "inside a layer. So x · x cannot be computed."
)
TURNED = "Ux · Ux, turned"  # where positions turn queries and keys
# What the lecture notes say of each construction.
NOTES = {
    "x · x": (
        "The vectors as they enter the layer. Who looks where is tied to what the tokens "
        "say, and a vector is most like itself."
    ),
    "Ux · Ux": (
        "U is this head’s W_Q, so that Ux = q. It leaves out what does not matter here. But "
        "the score from a to b is the score from b to a."
    ),
    TURNED: (
        "U is this head’s W_Q and the turn by a token’s place (rotary), so that Ux = q. But the "
        "score from a to b is the score from b to a."
    ),
    "q · k": (
        "What a token asks and what it offers differ, so “caulking iron” can look at “tool” "
        "more than “tool” at “caulking iron”. This is the head’s own."
    ),
}
TITLES = {"x · x": "Naive: x · x", "Ux · Ux": "Symmetric: Ux · Ux", "q · k": "Asymmetric: q · k"}
ASYMMETRY = (
    "**Asymmetry** = |S − Sᵀ| / (2 |S|), over all entries of the scores S: 0 when the score "
    "from a to b is always that from b to a, about 0.7 when the two have nothing to do with "
    "each other, 1 when they are opposite."
)
AFTER = {
    "Weights": (
        " Softmax divides each row by its own sum, so even weights from symmetric scores are "
        "not symmetric."
    ),
    "Scores": " The scores are shown for all pairs; a mask comes after them.",
}


def own(query: str, key: str, value: float, apart: float, cosine: float) -> str:
    """What the model's own lookup gives: the best key's weight, and how far the mixture is from its
    value."""
    return (
        f"At the model’s own T = 1, {query} gives {key} **{weight(value)}** of its weight. "
        f"The mixture lies **{percent(apart)}** of that value’s length away from it, at a "
        f"cosine of {fixed(cosine)}."
    )


def near(count: int, close: int, median: float) -> str:
    """How many lookups are near the hard one."""
    return (
        f"Of **{plural(count, 'lookup')}** (heads × queries with a choice) **{close:,}** "
        f"{'comes' if close == 1 else 'come'} within {LOOKUP_TOLERANCE:g} of the hard one; "
        f"half of all are within **{fixed(median)}**."
    )


def edges(found: Edges, rule: str, layout: str, across: bool) -> str:
    """Which edges are drawn, and how they are to be read."""
    said = f"{rule}: {found.in_all:,} of {found.allowed:,}."
    if found.in_all > len(found.weights):
        said += f" Drawn are the {MAX_EDGES:,} strongest."
    if layout == "Arcs" and not across:
        said += (
            " Arcs on the right come from the token itself and earlier ones, on the left "
            "from later ones."
        )
    return f"{said} A fuller node is given more weight in all."


def heard(key: str, most: float, mean: float) -> str:
    """Which token is given most weight in all."""
    return (
        "**Who is heard.** Each token’s incoming weights sum to 1: that is the softmax. What "
        f"it sends has no such limit: {key} is given **{fixed(most)}** in all, where the mean "
        f"is {fixed(mean)}."
    )


def received(length: float, error: float, wrote: float | None) -> str:
    """That the messages add up to z; wrote: how far all heads' sums are from what attention
    wrote."""
    told = (
        f"**Σ messages = z**, of length **{fixed(length)}**: added one by one or as weights · "
        f"V, the largest difference is **{power(error, 2)}**."
    )
    if wrote is None:
        return told
    return (
        f"{told} All heads’ sums through W_O, and its bias, are what attention wrote here: "
        f"the largest difference is **{power(wrote, 2)}**."
    )


def under(one: ScoringVariant, turns: bool) -> str:
    """What stands below the matrix of a construction; turns: the model has rotary positions."""
    mine = "No row has a choice."
    if one.rows:
        mine = (
            f"In {one.own} of {plural(one.rows, 'row')} a token looks most at itself; own "
            f"weight {fixed(one.own_weight)} on average."
        )
    name = TURNED if turns and one.name == "Ux · Ux" else one.name
    return f"Asymmetry of the scores: {fixed(one.asymmetry)}\n{mine}\n{NOTES[name]}"


def one_way(made: tuple[ScoringVariant, ...], a: tuple[int, str], b: tuple[int, str]) -> str:
    """The pair whose two scores differ most: (place, name) of both."""
    naive, symmetric, head = (each.scores for each in made)
    (i, first), (j, second) = a, b
    return (
        f"**On this text** q · k is least alike both ways between {first} and {second}: "
        f"{first} scores {second} **{fixed(head[i, j])}**, and {second} scores {first} "
        f"**{fixed(head[j, i])}**. With U both are {fixed(symmetric[i, j])}, with x · x both "
        f"{fixed(naive[i, j])}."
    )
