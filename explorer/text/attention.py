"""The Attention page in words: what a head is called and why, what is measured of it, how a weight
is made, and what the checks came to. All in Markdown, with words of the text escaped."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.analysis import consistency, head_naming
from explorer.analysis.attention import HeadView, SelectedCell
from explorer.analysis.findings import Finding, Link
from explorer.analysis.formatting import power, softmax_texts, weight
from explorer.text import head_naming as head_naming_text
from explorer.text.capability_messages import WEIGHTS_ALONE
from explorer.text.findings import marked
from explorer.text.markdown_escape import literal

LABELS = {
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
# Who looks at whom, where that is not simply every token at every token of one text.
WHO = {
    "encoder self": "The source looks at itself: every token at every token.",
    "decoder self": (
        "The target looks at itself: each token at itself and at those before it. Later ones are "
        "not allowed, because when it is written they are not there yet."
    ),
    "cross": (
        "The target looks at the source: each row is a token that the decoder is about to "
        "produce, each column a token of the source."
    ),
    "self": (
        "Each token looks at itself and at those before it. Later ones are not allowed, because "
        "the model learned to say what comes next."
    ),
}
WINDOW = " Those before its window are not allowed either."  # added where there is one
# The terms of the glossary that each of these lines is about.
WHO_TERMS = {
    "encoder self": ("encoder",),
    "decoder self": ("decoder", "mask"),
    "cross": ("cross-attention",),
    "self": ("decoder", "mask"),
}
CLOSED = (
    "**How a weight is made** cannot be shown here: {} gives its weights, but not the scores, "
    f"queries and keys that they are made of: {WEIGHTS_ALONE}."
)


# What a head is and how its picture is read: in Lines no rows are in sight.
READ = {
    "Lines": (
        "A head lets every word look at the others. Lines lead from the word that looks (a row of "
        "the matrix) to the one looked at (a column); a row adds up to 1."
    ),
    "Both": (
        "A head lets every word look at the others. A row, or a line’s left end, is a word that "
        "looks; a column, or its right end, one that is looked at; a row adds up to 1."
    ),
}
READ_ROWS = (
    "A head lets every word look at the others. In its picture each row is one word that looks, "
    "each column one that is looked at; the weights of a row add up to 1."
)
BESIDE = {"previous": -1, "next": 1, "self": 0}  # tokens from the one that looks, by a head's name


def read_as(view: str) -> str:
    """What a head is and how its picture is read, for the picture on screen."""
    return READ.get(view, READ_ROWS)


def summary(
    head: head_naming.Head,
    meanings: Mapping[str, str],
    link: Link | Finding | None,
    cell: tuple[str, str, float] | None = None,
) -> str:
    """The head's name, what it means, and what speaks for it; of a head without a name the word
    that attends most plainly to another, or the finding that is on screen. cell: the link's tokens
    and the weight between these, which the picture shows."""
    said = head_naming_text.summary(head, dict(meanings))
    if link is None:
        return said
    attends = f"{marked(link.words[0])} attends to {marked(link.words[1])}"
    given = f"{link.value if isinstance(link, Finding) else link.weight:.2f}"
    if cell is not None and f"{cell[2]:.2f}" != given:
        row, column, weight_of_cell = cell
        given += f" as whole words; from {literal(row)} to {literal(column)} {weight_of_cell:.2f}"
    if head.name != head_naming.NO_PATTERN:
        key = link.keys[0] if isinstance(link, Finding) else link.key
        example = BESIDE.get(head.name) == key - link.query or head.name == head_naming.PRONOUN
        return f"{said} {'For example' if example else 'Beside that'}, {attends} ({given})."
    return (
        f"**{attends}** ({given}; no other row gives it more than {link.chance:.2f}). Beyond that "
        "there is no consistent pattern on this text: see “Why this name?” below."
    )


def formula(view: HeadView, scoring: str, typed: bool) -> str:
    """How the opened weight is made, with this sentence's numbers in it. scoring: how the model
    makes a score of q and k; typed: where the decoder reads what a reader typed. Of a model that
    gives its weights alone CLOSED is said instead."""
    cell = view.opened
    assert cell.steps is not None, "of a model that gives its weights alone nothing is known"
    row, column = literal(cell.row), literal(cell.column)
    if not cell.allowed:
        return (
            f"**How a weight is made.** **{row}** (token {cell.query}) may not look at "
            f"**{column}** (token {cell.key}): the weight is 0."
        )
    who = "A head turns each token into a query q, a key k and a value v. "
    pair = f"**{row}** (token {cell.query}) → **{column}** (token {cell.key})"
    if cell.reads:
        who = (
            "A head turns what the decoder reads into a query q, and each source token, as the "
            "encoder leaves it, into a key k and a value v. "
        )
        pair = (
            f"row {cell.query} (reads **{literal(cell.reads)}**, "
            f"{'before' if typed else 'produces'} **{literal(cell.says)}**) looks at **{column}** "
            f"(token {cell.key})"
        )
    alone = " There is nothing else this token may look at." if cell.n_allowed == 1 else ""
    small = weight(cell.steps.weight)
    score, exponential, total = softmax_texts(cell.steps.score, cell.steps.log_total, small)
    return (
        f"**How a weight is made.** {who}The score of a pair is {scoring}; each row of scores "
        "goes through a softmax, and the weights say how much of each value is taken.  \nLayer "
        f"{view.head.layer}, head {view.head.head}, {pair}: score {score}, e^{score} = "
        f"{exponential}, the row’s sum is {total}, so the weight is {exponential} / {total} = "
        f"**{small}**.{alone}"
    )


def opened(cell: SelectedCell) -> str:
    """The opened cell in words: who looks at whom, and how much."""
    looks = "looks at" if cell.reads else "→"
    return f"**{literal(cell.row)} {looks} {literal(cell.column)}**, {weight(cell.weight)}"


def verdicts(checks: tuple[consistency.Check, ...]) -> str:
    """The laws of a recording as a list, and what they come to."""
    done = [check for check in checks if check.checked]
    held = [check for check in done if check.holds]
    total = sum(check.numbers for check in done)
    all_hold = "✓ All" if len(held) == len(done) else f"✗ Only {len(held)} of"
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
