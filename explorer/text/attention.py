"""Sentences of the Attention page: a head's name and its evidence, measures, the computation of a
weight, and the checks. All in Markdown, with words of the text escaped."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.analysis import head_naming
from explorer.analysis.attention import HeadView
from explorer.analysis.findings import Finding, Link
from explorer.figures.formatting import hundredths, word_in_sentence
from explorer.text import head_naming as head_naming_text
from explorer.text.findings import marked
from explorer.wording import templates
from explorer.wording.markdown_escape import literal

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


def place(view: HeadView, heads: int, label: str, uniform: float | None = None) -> str:
    """The head on screen, a `label` that explains what is said of it, and the weight that uniform
    attention would give; of one token where None."""
    head, cell = view.head, view.opened
    sentences = templates.sentences("heads", "head")
    pattern = f" ({label})" if label else ""
    line = sentences("place", layer=head.layer, head=head.head, heads=heads, pattern=pattern)
    if view.tokens[0] is None:
        return line
    uniform = 1 / max(1, cell.n_allowed) if uniform is None else uniform
    return f"{line} {sentences('uniform', weight=hundredths(uniform))}"


def tested(head: head_naming.Head) -> str:
    """Note on how often a head, beside which a pronoun and a noun are told of, finds the noun in
    test sentences."""
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
    value = hundredths(link.value if isinstance(link, Finding) else link.weight)
    pair = {"query": marked(link.words[0]), "key": marked(link.words[1]), "weight": value}
    if cell is not None and hundredths(cell[2]) != value:
        row, column = (literal(word_in_sentence(each)) for each in cell[:2])
        of_cell = hundredths(cell[2])
        pair["weight"] = words("whole_words", weight=value, row=row, column=column, of_cell=of_cell)
    if head.name == head_naming.NO_PATTERN:
        baseline = words("mean" if link.above_mean else "at_most", weight=hundredths(link.chance))
        tested = head_naming_text.tested(head)
        return words("no_pattern", **pair, baseline=baseline, tested=tested)
    return words("example" if explained else "exception", **pair, summary=summary)
