"""The Attention page in words: what a head is called and why, what is measured of it, how a weight
is made, and what the checks came to. All in Markdown, with words of the text escaped."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan

from explorer.analysis import attention as numbers
from explorer.analysis import heads as naming
from explorer.analysis import right
from explorer.analysis.findings_links import Link
from explorer.analysis.head_view import HeadView, Opened
from explorer.analysis.numbers import power, softmax_told, weight
from explorer.sentences.escape import literal
from explorer.sentences.findings import marked

LABELS = {
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
# Who looks at whom, where that is not simply every token at every token of one text.
WHO = {
    "encoder self": "The source looks at itself: every token at every token.",
    "decoder self": "The target looks at itself: each token at itself and at those before it. Later ones are not allowed, because "
    "when it is written they are not there yet.",
    "cross": "The target looks at the source: each row is a token that the decoder is about to produce, each column a token of the source.",
    "self": "Each token looks at itself and at those before it. Later ones are not allowed, because the model learned to say what comes next.",
}
CLOSED = (
    "**How a weight is made** cannot be shown here: this model gives its weights, but not the scores, queries and keys "
    "that they are made of."
)


def summary(head: naming.Head, meanings: Mapping[str, str], link: Link | None) -> str:
    """The head's name, what it means, and what speaks for it; of a head without a name the word
    that looks most plainly at a far one."""
    meaning = meanings[head.name].rstrip(".")
    if head.name == "broad":
        said = f"**broad.** {meaning}: {head.entropy:.0%} of an even row’s entropy on average."
    elif not head.n_queries:
        said = f"**{head.name}.** {meaning}.{closest(head)}"
    else:
        said = (
            f"**{head.name}.** {meaning}: {head.score:.0%} of the attention on average, where an even row would give {head.chance:.1%}; "
            f"shown by {head.n_shown} of {head.n_queries} tokens."
        )
    if link is None:
        return said
    looks = f"{marked(link.words[0])} looks at {marked(link.words[1])}"
    if head.name != naming.NO_PATTERN:
        return f"{said} Farthest from that: {looks} ({link.weight:.2f})."
    return f"**{looks}** ({link.weight:.2f}; chance would give {link.chance:.2f} at most). No habit on this text beyond that.{closest(head)}"


def figures(head: naming.Head, axes: numbers.Axes) -> str:
    """What is measured of every head, in a line."""
    if isnan(head.entropy):
        return "No token here has a choice of where to look."
    first = (
        "attention to the first token"
        if axes.said is None
        else "attention to the source’s first token"
    )
    distance = ""
    if axes.said is None and not isnan(head.distance):
        distance = f" · mean distance {head.distance:.1f} tokens, without sinks"
    sink = "" if isnan(head.sink) else f" · {first} {head.sink:.2f}"
    return f"Entropy {head.entropy:.2f} of an even row’s{distance}{sink}"


def closest(head: naming.Head) -> str:
    """For a head without a name: the habit it comes nearest to, of those that this text can show
    well."""
    shown = [
        one
        for one in head.relations
        if one.n_queries >= naming.FEWEST_QUERIES_ELSE and one.lift > 0
    ]
    if head.name != naming.NO_PATTERN or not shown:
        return ""
    near = max(shown, key=lambda one: one.lift)
    return f" The nearest is “{near.name}”: {near.score:.0%} of the attention, an even row {near.chance:.1%}."


def reasons(head: naming.Head) -> str:
    """Every pattern's score beside chance, as a table; "" where the text shows none."""
    rows = "\n".join(
        f"| {one.name} | {one.score:.2f} | {one.chance:.2f} | {one.lift:+.2f} | {one.n_shown} of {one.n_queries} |"
        for one in sorted(head.relations, key=lambda one: -one.lift)
    )
    top = "| pattern | score | chance | lift | shown by |\n|---|--:|--:|--:|--:|\n"
    return top + rows if rows else ""


def rule(across: bool) -> str:
    """The rule that makes a name."""
    near = ""
    if not across:
        enough = (
            f"at least {naming.FEWEST_QUERIES_ELSE} of them (for repeated words {naming.FEWEST_QUERIES['same word']}); "
            "to “special” only where nothing else fits"
        )
    else:
        enough = (
            f"at least {naming.FEWEST_QUERIES_ELSE} of them, more than heads that look at one random token would show by luck in "
            f"{naming.FLUKE:.0%} of cases; the lift of “separator”, which takes in “end”, counts {naming.EDGE} less"
        )
        near = (
            f" Near its place, along the diagonals, is within {naming.NEAR:.0%} of the source’s length, or half a token; "
            "the last row, which produces what follows the target, is left out there."
        )
    return (
        "Score: mean attention along the pattern, over the tokens that can show it. Chance: the same for an even row. "
        f"Lift = (score − chance) / (1 − chance). The name goes to the highest lift of at least {naming.NAMED} that more than half of "
        f"the single tokens reach too, and {enough}; else “broad” from an entropy of {naming.BROAD} of an even row’s.{near}"
    )


def formula(view: HeadView, scoring: str, typed: bool) -> str:
    """How the opened weight is made, with this sentence's numbers in it. scoring: how the model
    makes a score of q and k; typed: where the decoder reads what a reader typed."""
    cell = view.opened
    if cell.steps is None:
        return CLOSED
    row, column = literal(cell.row), literal(cell.column)
    if not cell.allowed:
        return (
            f"**How a weight is made.** **{row}** (token {cell.query}) may not look at **{column}** (token {cell.key}): "
            "the weight is 0."
        )
    who = "A head turns each token into a query q, a key k and a value v. "
    pair = f"**{row}** (token {cell.query}) → **{column}** (token {cell.key})"
    if cell.reads:
        who = (
            "A head turns what the decoder reads into a query q, and each source token, as the encoder leaves it, into a key k "
            "and a value v. "
        )
        pair = (
            f"row {cell.query} (reads **{literal(cell.reads)}**, {'before' if typed else 'produces'} **{literal(cell.says)}**) "
            f"looks at **{column}** (token {cell.key})"
        )
    alone = " There is nothing else this token may look at." if cell.n_allowed == 1 else ""
    small = weight(cell.steps.weight)
    score, exponential, total = softmax_told(cell.steps.score, cell.steps.log_total, small)
    return (
        f"**How a weight is made.** {who}"
        f"The score of a pair is {scoring}; each row of scores goes through a softmax, and the weights say how much of each "
        f"value is taken.  \nLayer {view.head.layer}, head {view.head.head}, {pair}: score {score}, e^{score} = {exponential}, "
        f"the row’s sum is {total}, so the weight is {exponential} / {total} = **{small}**.{alone}"
    )


def opened(cell: Opened) -> str:
    """The opened cell in words: who looks at whom, and how much."""
    looks = "looks at" if cell.reads else "→"
    return f"**{literal(cell.row)} {looks} {literal(cell.column)}**, {weight(cell.weight)}"


def verdicts(checks: tuple[right.Check, ...]) -> str:
    """The laws of a recording as a list, and what they come to."""
    done = [check for check in checks if check.checked]
    held = [check for check in done if check.holds]
    total = sum(check.numbers for check in done)
    all_hold = "✓ All" if len(held) == len(done) else f"✗ Only {len(held)} of"
    head = (
        f"**{all_hold} {len(done)} checks hold**, in all layers and heads: {total:,} numbers of this recording computed again "
        "in 64 bits."
    )
    lines = [
        f"{'✓' if check.holds else '✗'} **{literal(check.law)}**  \nlargest error **{error(check.error)}** among {check.numbers:,} numbers"
        + (
            f", at {literal(check.where)}; rounding explains up to {error(check.tolerance)}."
            if check.error
            else "."
        )
        for check in done
    ]
    left = [
        f"Not checked: {literal(check.law)}: {literal('; '.join(check.not_checked))}."
        for check in checks
        if check.not_checked
    ]
    return "\n\n".join((head, *lines, *left))


def error(value: float) -> str:
    """An error in two figures."""
    return power(value, 2) if 0 <= value < float("inf") else "no number"
