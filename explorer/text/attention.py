"""Sentences of the Attention page: a head's name and its evidence, measures, the computation of a
weight, and the checks. All in Markdown, with words of the text escaped."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.analysis import consistency, head_naming
from explorer.analysis.attention import HeadView
from explorer.analysis.findings import Finding, Link
from explorer.analysis.formatting import power, softmax_texts, weight
from explorer.text import head_naming as head_naming_text
from explorer.text import templates
from explorer.text.capability_messages import WEIGHTS_ALONE
from explorer.text.findings import marked
from explorer.text.markdown_escape import literal

LABELS = {
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
# Which tokens attend to which, where that is not simply every token to every token of one text.
WHO = {
    "encoder self": "Each source token attends to every source token.",
    "decoder self": (
        "Each target token attends to itself and to earlier target tokens. Causal mask: a token "
        "cannot attend to later tokens."
    ),
    "cross": (
        "The target attends to the source. Each row is a token that the decoder produces, each "
        "column a token of the source."
    ),
    "self": (
        "Each token attends to itself and to earlier tokens. Causal mask: a token cannot attend "
        "to later tokens."
    ),
}
WINDOW = " It cannot attend to tokens before its window either."  # added where there is one
# The terms of the glossary that each of these lines is about.
WHO_TERMS = {
    "encoder self": ("encoder",),
    "decoder self": ("decoder", "mask"),
    "cross": ("cross-attention",),
    "self": ("decoder", "mask"),
}
CLOSED = (
    "The calculation of a weight cannot be shown here. {} gives its weights, but not their "
    f"scores, queries and keys: {WEIGHTS_ALONE}."
)


BESIDE = {"previous": -1, "next": 1, "self": 0}  # key minus query, by a head's name


def place(view: HeadView, heads: int) -> str:
    """The head on screen, its pattern, and the weight that uniform attention would give."""
    head, cell = view.head, view.opened
    sentences = templates.sentences("heads", "head")
    line = sentences("place", layer=head.layer, head=head.head, heads=heads, pattern=head.name)
    if view.tokens[0] is None:
        return line
    return f"{line} {sentences('uniform', weight=f'{1 / max(1, cell.n_allowed):.2f}')}"


def summary(
    head: head_naming.Head,
    meanings: Mapping[str, str],
    link: Link | Finding | None,
    cell: tuple[str, str, float] | None = None,
) -> str:
    """The head's name, its meaning and the evidence; of a head without a name its clearest link
    between two words, or the finding on screen. cell: the link's tokens and the weight between
    these, which the picture shows."""
    summary = head_naming_text.summary(head, dict(meanings))
    if link is None:
        return summary
    attends = f"{marked(link.words[0])} attends to {marked(link.words[1])}"
    weight_text = f"{link.value if isinstance(link, Finding) else link.weight:.2f}"
    if cell is not None and f"{cell[2]:.2f}" != weight_text:
        row, column, weight_of_cell = cell
        weight_text += (
            f" as whole words; from {literal(row)} to {literal(column)} {weight_of_cell:.2f}"
        )
    if head.name != head_naming.NO_PATTERN:
        key = link.keys[0] if isinstance(link, Finding) else link.key
        example = BESIDE.get(head.name) == key - link.query or head.name == head_naming.PRONOUN
        return f"{summary} {'Example' if example else 'Exception'}: {attends} ({weight_text})."
    return (
        f"**{attends}** ({weight_text}; baseline: at most {link.chance:.2f}). There is no "
        "consistent pattern on this text."
    )


def formula(view: HeadView, scoring: str, typed: bool) -> str:
    """The computation of the selected weight, with this sentence's numbers. scoring: the formula of
    a score from q and k; typed: where the decoder reads a text that a reader typed. For a model
    that gives its weights alone, CLOSED is used instead."""
    cell = view.opened
    assert cell.steps is not None, "of a model that gives its weights alone nothing is known"
    row, column = literal(cell.row), literal(cell.column)
    if not cell.allowed:
        return (
            f"**How this weight is computed.** **{row}** (token {cell.query}) cannot attend to "
            f"**{column}** (token {cell.key}): the weight is 0."
        )
    who = "A head computes a query q, a key k and a value v for each token. "
    pair = f"**{row}** (token {cell.query}) → **{column}** (token {cell.key})"
    if cell.reads:
        who = (
            "A head computes a query q from the decoder’s token, and a key k and a value v from "
            "each encoded source token. "
        )
        pair = (
            f"row {cell.query} (reads **{literal(cell.reads)}**, "
            f"{'before' if typed else 'produces'} **{literal(cell.says)}**) attends to "
            f"**{column}** (token {cell.key})"
        )
    alone = " This token can attend to no other." if cell.n_allowed == 1 else ""
    small = weight(cell.steps.weight)
    score, exponential, total = softmax_texts(cell.steps.score, cell.steps.log_total, small)
    return (
        f"**How this weight is computed.** {who}The score of a pair is {scoring}. A softmax turns "
        "each row of scores into weights. The head’s output is the weighted mean of the values."
        f"  \nLayer {view.head.layer}, head {view.head.head}, {pair}: the score is {score}, and "
        f"exp({score}) = {exponential}. The row’s sum is {total}, so the weight is {exponential} "
        f"/ {total} = **{small}**.{alone}"
    )


def verdicts(checks: tuple[consistency.Check, ...]) -> str:
    """The checks of a recording as a list, with their summary."""
    done = [check for check in checks if check.checked]
    passed = [check for check in done if check.holds]
    total = sum(check.numbers for check in done)
    all_hold = "✓ All" if len(passed) == len(done) else f"✗ Only {len(passed)} of"
    head = (
        f"**{all_hold} {len(done)} checks hold**, in all layers and heads: {total:,} numbers of "
        "this recording computed again in 64 bits."
    )
    lines = [
        f"{'✓' if check.holds else '✗'} **{literal(check.law)}**  \nlargest error "
        f"**{error(check.error)}** among {check.numbers:,} numbers"
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
