"""Sentences on the meaning of a head's name and the evidence for it."""

from __future__ import annotations

from math import isnan

from explorer.analysis import coreference, head_naming
from explorer.text.markdown_escape import literal

# Why a pattern is not the name, after "because it is".
ALTERNATIVES = {
    head_naming.FIRST_LAYER: "a coincidence in layer 0, where a key holds only its own token",
    head_naming.WEAK: "too weak",
    head_naming.FEW_ROWS: "true of too few rows",
    head_naming.FEW_TOKENS: "true of too few different tokens",
    head_naming.LUCK: "not significant",
}


FIRST_LAYER = " In layer 0 no head is named “induction”: a key there holds only its own token."
PRONOUNS = (
    f" “{head_naming.PRONOUN.capitalize()}” is measured over {len(coreference.sentences())} test "
    "sentences. In more than half of them the pronoun must give its noun the largest weight of all "
    "words. Its mean weight must lie above that of the other words by at least "
    f"{coreference.LEAST_LIFT} of what is left to 1. A head has this name where no other fits."
)


def summary(head: head_naming.Head, meanings: dict[str, str]) -> str:
    """The head's name, its meaning and the evidence for it."""
    meaning = meanings[head.name].rstrip(".")
    if head.name == "diffuse":
        return f"**diffuse.** {meaning}. Its mean normalised entropy is {head.entropy:.2f}."
    if head.name == head_naming.PRONOUN:
        return (
            f"**{head.name}.** {head_naming.FINDS_NOUN} In {head.n_matches} of "
            f"{head.n_queries} test "
            "sentences the noun gets the largest weight of all words. It gets "
            f"{head.score:.0%} on average. The other words give it {head.chance:.0%}."
        )
    if not head.n_queries:
        return f"**{head.name}.** {meaning}.{closest(head)}"
    shares = (
        f" ({shares_of(head)})" if head.name == head_naming.SINK and len(head.shares) > 1 else ""
    )
    return (
        f"**{head.name}.** {meaning}. It gives this {head.score:.0%} of its attention on "
        f"average{shares}. Uniform attention would give {head.chance:.1%}. The pattern holds for "
        f"{head.n_matches} of {head.n_queries} tokens."
    )


def shares_of(head: head_naming.Head) -> str:
    """The share of attention that each sink receives: "[CLS] 0.31, [SEP] 0.23"."""
    return ", ".join(
        f"{'first token' if label == head_naming.FIRST else literal(label)} {share:.2f}"
        for label, share in head.shares
    )


def figures(head: head_naming.Head) -> str:
    """The measures of a head, in a line."""
    if isnan(head.entropy):
        return "Every token here can attend to only one token."
    measures = [f"Normalised entropy {head.entropy:.2f}"]
    if not isnan(head.distance):
        measures.append(f"mean distance {head.distance:.1f} tokens, without sinks")
    if head.shares:
        measures.append(f"attention to sinks: {shares_of(head)}")
    return " · ".join(measures)


def closest(head: head_naming.Head) -> str:
    """For a head without a name: the pattern it comes nearest to, and why that is not its name."""
    near = max(head.relations, key=lambda one: one.lift, default=None)
    if head.name != head_naming.NO_PATTERN or near is None or near.lift <= 0:
        return ""
    return (
        f" The nearest pattern is “{near.name}” with {near.score:.0%} of the attention. Uniform "
        f"attention would give {near.chance:.1%}. The pattern is {ALTERNATIVES[near.against]}."
    )


def table(head: head_naming.Head) -> str:
    """Every pattern's score beside chance, and whether it names the head, as a Markdown table; ""
    where there is none."""
    rows = [
        f"| {one.name} | {one.score:.2f} | {one.chance:.2f} | {one.lift:+.2f} | {one.n_matches} of "
        f"{one.n_queries}{' sentences' * (one.name == head_naming.PRONOUN)} | "
        f"{_verdict(head, one)} |"
        for one in sorted(head.relations, key=lambda one: -one.lift)
    ]
    top = (
        "| pattern | score | baseline | lift | holds for | label of the head? "
        "|\n|---|--:|--:|--:|--:|---|"
    )
    return "\n".join([top, *rows]) if rows else ""


def _verdict(head: head_naming.Head, one: head_naming.Relation) -> str:
    if one.name == head.name:
        return "**yes**"
    if head.name == head_naming.TOO_SHORT:
        return "text too short"
    return one.against or f"fits, but “{head.name}” comes first"


def rule(across: bool) -> str:
    """The rule that makes names."""
    near = (
        f" A diagonal includes positions within {head_naming.NEAR:.0%} of the source’s length, or "
        "half a token. Its last row, which follows the target, is left out."
        if across
        else ""
    )
    return (
        "Score: mean attention along the pattern, over the tokens where it can occur. Baseline: "
        "the score of uniform attention. Lift = (score − baseline) / (1 − baseline). A head gets "
        "the label of the pattern with the highest lift if three conditions hold. The lift is at "
        f"least {head_naming.MIN_LIFT}. More than half of the tokens reach that lift, "
        f"{head_naming.FEWEST_ROWS} different ones among them. A head that attends to one random "
        f"token per row reaches it with a probability under {head_naming.MAX_P_VALUE:.0%}. A sink "
        f"gives the first and the special tokens {head_naming.SINK_RATIO} times what uniform "
        "attention gives. The heads that attend mainly to one token must also choose these tokens "
        f"more often than chance (p < {head_naming.SINK_MAX_P_VALUE:.1%}). Under a lift of "
        f"{head_naming.MIN_LIFT} that label has the lowest priority. A diffuse head has a "
        f"normalised entropy of at least {head_naming.BROAD_ENTROPY}."
        f"{near}{'' if across else FIRST_LAYER + PRONOUNS}"
    )


ENDS = {
    "embed": "the embedding",
    "embed+pos": "the embedding with its position",
    "embed.normed": "the input after its norm",
    "final.normed": "the last norm",
    "final": "the last norm",
    "input": "the input of layer 0",
}
PARTS = {"attn": "attention", "cross": "cross-attention", "ffn": "feed-forward network"}
OF_A_PART = {
    "scores": "the scores of {}",
    "wrote": "what {} wrote",
    "read": "what {} reads",
    "sum": "the sum after {}",
    "normed": "the norm after {}",
    "": "the state after {}",
}
SHORT_ENDS = {"embed": "embedding", "input": "input", "final": "last norm"}
SHORT_PARTS = {"attn": "attention", "cross": "cross", "ffn": "FFN"}


def site(name: str) -> str:
    """A place of a run in words: "0.attn.sum" is "the sum after layer 0’s attention". One that has
    no words keeps its name."""
    layer, _, rest = name.partition(".")
    part, _, what = rest.partition(".")
    if name in ENDS or part not in PARTS or what not in OF_A_PART:
        return ENDS.get(name, name)
    return OF_A_PART[what].format(f"layer {layer}’s {PARTS[part]}")


def short_site(name: str) -> str:
    """A state of a stream on an axis: "0.attn" is "L0 attention"."""
    layer, _, part = name.partition(".")
    if name in SHORT_ENDS or part not in SHORT_PARTS:
        return SHORT_ENDS.get(name, name)
    return f"L{layer} {SHORT_PARTS[part]}"
