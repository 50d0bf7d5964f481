"""What a head's name means and why it has it, in words."""

from __future__ import annotations

from math import isnan

from explorer.analysis import coreference, head_naming
from explorer.text.markdown_escape import literal

# Why a pattern is not the name, after "because it is".
SAID_AGAINST = {
    head_naming.WEAK: "too weak",
    head_naming.FEW_ROWS: "seen in too few rows",
    head_naming.FEW_TOKENS: "shown by too few different tokens",
    head_naming.LUCK: "no more than luck may give",
}


PRONOUNS = (
    f" “{head_naming.PRONOUN.capitalize()}” is measured over {len(coreference.sentences())} test "
    "sentences. In more than half of them the pronoun must give its noun the largest weight of all "
    "words. Its mean weight must lie above that of the other words by at least "
    f"{coreference.LEAST_LIFT} of what is left to 1. A head has this name where no other fits."
)


def summary(head: head_naming.Head, meanings: dict[str, str]) -> str:
    """The head's name, what it means, and what speaks for it."""
    meaning = meanings[head.name].rstrip(".")
    if head.name == "broad":
        return f"**broad.** {meaning}: {head.entropy:.0%} of an even row’s entropy on average."
    if head.name == head_naming.PRONOUN:
        return (
            f"**{head.name}.** {head_naming.FINDS_NOUN} In {head.n_matches} of "
            f"{head.n_queries} test "
            "sentences the noun gets the largest weight of all words. It gets "
            f"{head.score:.0%} on average, where the other words give it {head.chance:.0%}."
        )
    if not head.n_queries:
        return f"**{head.name}.** {meaning}.{closest(head)}"
    shares = (
        f" ({shares_of(head)})" if head.name == head_naming.SINK and len(head.shares) > 1 else ""
    )
    return (
        f"**{head.name}.** {meaning}. {head.score:.0%} of the attention on average{shares}, where "
        f"an even row would give {head.chance:.1%}; shown by {head.n_matches} of {head.n_queries} "
        "tokens."
    )


def shares_of(head: head_naming.Head) -> str:
    """What each token that is a sink takes: "[CLS] 0.31, [SEP] 0.23"."""
    return ", ".join(
        f"{'first token' if label == head_naming.FIRST else literal(label)} {share:.2f}"
        for label, share in head.shares
    )


def figures(head: head_naming.Head) -> str:
    """What is measured of every head, in a line."""
    if isnan(head.entropy):
        return "Every token here has only one token to look at."
    told = [f"Entropy {head.entropy:.2f} of an even row’s"]
    if not isnan(head.distance):
        told.append(f"mean distance {head.distance:.1f} tokens, without sinks")
    if head.shares:
        told.append(f"attention to sinks: {shares_of(head)}")
    return " · ".join(told)


def closest(head: head_naming.Head) -> str:
    """For a head without a name: the habit it comes nearest to, and what speaks against it."""
    near = max(head.relations, key=lambda one: one.lift, default=None)
    if head.name != head_naming.NO_PATTERN or near is None or near.lift <= 0:
        return ""
    return (
        f" The nearest is “{near.name}”: {near.score:.0%} of the attention, where an even row "
        f"would give {near.chance:.1%}; not its name, because it is {SAID_AGAINST[near.against]}."
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
        "| pattern | score | chance | lift | shown by | names the head? "
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
        f" Near its place, along the diagonals, is within {head_naming.NEAR:.0%} of the source’s "
        "length, or half a token; the last row, which produces what follows the target, is left "
        "out there."
        if across
        else ""
    )
    return (
        "Score: mean attention along the pattern, over the tokens that can show it. Chance: the "
        "same for an even row. Lift = (score − chance) / (1 − chance). A head is named after the "
        "pattern of highest lift, where three things hold: the lift is at least "
        f"{head_naming.MIN_LIFT}; "
        f"more than half of the tokens reach it too, among them {head_naming.FEWEST_ROWS} "
        "different ones; and of heads that look at one random token a row, fewer than "
        f"{head_naming.MAX_P_VALUE:.0%} "
        "would show as much. A head is a sink where it gives the first and the special tokens "
        f"{head_naming.SINK_RATIO} times what an even row gives, and the heads that rest on "
        "one token choose these more often than luck would have it (in fewer than "
        f"{head_naming.SINK_MAX_P_VALUE:.1%} of "
        f"cases); under a lift of {head_naming.MIN_LIFT} that name comes after all others. "
        f"“Broad”: an entropy of at least {head_naming.BROAD_ENTROPY} of an even "
        f"row’s.{near}{'' if across else PRONOUNS}"
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
