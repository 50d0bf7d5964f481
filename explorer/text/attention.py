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
from explorer.text.findings import marked
from explorer.text.markdown_escape import literal

LABELS = {
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
# The terms of the glossary that each of these lines is about.
WHO_TERMS = {
    "encoder self": ("encoder",),
    "decoder self": ("decoder", "mask"),
    "cross": ("cross-attention",),
    "self": ("decoder", "mask"),
}
WORDS = templates.sentences("heads", "formula")


def place(view: HeadView, heads: int, label: str, n_tokens: int = 1) -> str:
    """The head on screen, a `label` that explains what is said of it, and the weight that uniform
    attention would give a word of `n_tokens`."""
    head, cell = view.head, view.opened
    sentences = templates.sentences("heads", "head")
    pattern = f" ({label})" if label else ""
    line = sentences("place", layer=head.layer, head=head.head, heads=heads, pattern=pattern)
    if view.tokens[0] is None:
        return line
    return f"{line} {sentences('uniform', weight=f'{n_tokens / max(1, cell.n_allowed):.2f}')}"


def tested(head: head_naming.Head) -> str:
    """How often a head, beside which a pronoun and a noun are told of, finds the noun in test
    sentences."""
    sentences = templates.sentences("heads", "head")
    return sentences("tested", **head.tested._asdict()) if head.tested else sentences("untested")


def summary(
    head: head_naming.Head,
    meanings: Mapping[str, str],
    link: Link | Finding | None,
    cell: tuple[str, str, float] | None = None,
    explained: bool = False,
) -> str:
    """The head's name, its meaning and the evidence; of a head without a name its clearest link
    between two words, or the finding on screen. cell: the link's tokens and the weight between
    these, which the picture shows. explained: whether the head's name says why the two attend."""
    summary = head_naming_text.summary(head, dict(meanings))
    if link is None:
        return summary
    words = templates.sentences("heads", "summary")
    value = f"{link.value if isinstance(link, Finding) else link.weight:.2f}"
    pair = {"query": marked(link.words[0]), "key": marked(link.words[1]), "weight": value}
    if cell is not None and f"{cell[2]:.2f}" != value:
        row, column, of_cell = cell
        pair["weight"] = words(
            "whole_words", weight=value, row=literal(row), column=literal(column), of_cell=of_cell
        )
    if head.name == head_naming.NO_PATTERN:
        baseline = words("mean" if link.above_mean else "at_most", weight=link.chance)
        tested = head_naming_text.tested(head)
        return words("no_pattern", **pair, baseline=baseline, tested=tested)
    return words("example" if explained else "exception", **pair, summary=summary)


def formula(view: HeadView, scoring: str, typed: bool) -> str:
    """The computation of the selected weight, with this sentence's numbers. scoring: the formula of
    a score from q and k; typed: where the decoder reads a text that a reader typed. For a model
    that gives its weights alone, the template `closed` is used instead."""
    cell = view.opened
    assert cell.steps is not None, "of a model that gives its weights alone nothing is known"
    slots: dict[str, object] = {
        "layer": view.head.layer,
        "head": view.head.head,
        "row": literal(cell.row),
        "query": cell.query,
        "column": literal(cell.column),
        "key": cell.key,
        "scoring": scoring,
    }
    if not cell.allowed:
        return WORDS("not_allowed", **slots)
    pair = "pair"
    if cell.reads:
        pair = "typed" if typed else "produced"
        slots |= {"reads": literal(cell.reads), "says": literal(cell.says)}
    small = weight(cell.steps.weight)
    score, exponential, total = softmax_texts(cell.steps.score, cell.steps.log_total, small)
    slots |= {"score": score, "exponential": exponential, "total": total, "weight": small}
    made = WORDS("across" if cell.reads else "made", **slots, pair=WORDS(pair, **slots))
    return f"{made} {WORDS('alone')}" if cell.n_allowed == 1 else made


def verdicts(checks: tuple[consistency.Check, ...]) -> str:
    """The checks of a recording as a list, with their summary."""
    done = [check for check in checks if check.checked]
    passed = [check for check in done if check.holds]
    total = sum(check.numbers for check in done)
    words = templates.sentences("heads", "checks")
    of = {"passed": len(passed), "n": len(done), "total": total}
    lines = [words("hold" if len(passed) == len(done) else "fail", **of)]
    for check in done:
        lines.append(
            words(
                "check" if check.error else "exact",
                mark="✓" if check.holds else "✗",
                law=literal(check.law),
                error=error(check.error),
                n=check.numbers,
                where=literal(check.where),
                rounding=error(check.tolerance),
            )
        )
    for check in checks:
        if check.not_checked:
            why = literal("; ".join(check.not_checked))
            lines.append(words("not_checked", law=literal(check.law), why=why))
    return "\n\n".join(lines)


def error(value: float) -> str:
    """An error in two figures."""
    return power(value, 2) if 0 <= value < float("inf") else "no number"
