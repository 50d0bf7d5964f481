"""Sentences on the meaning of a head's name and the evidence for it."""

from __future__ import annotations

from math import isnan

from explorer.analysis import coreference, head_naming
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import named, sentences

WORDS = sentences("head_naming", "evidence")


def summary(head: head_naming.Head, meanings: dict[str, str]) -> str:
    """The head's name, its meaning and the evidence for it."""
    shared = head.name == head_naming.SINK and len(head.shares) > 1
    name = (
        head.name
        if head.name == "diffuse"
        else ("pattern_of_sinks" if shared else "pattern" if head.n_queries else "none")
    )
    sentence = WORDS(
        name,
        name=head.name,
        meaning=meanings[head.name],
        entropy=head.entropy,
        n=head.n_queries,
        matches=head.n_matches,
        share=head.score,
        uniform=head.chance,
        shares=shares_of(head),
    )
    return sentence + (closest(head) if name == "none" else "") + tested(head)


def tested(head: head_naming.Head) -> str:
    """Note on how often the head finds a pronoun's noun in test sentences, "" where it was not
    found to."""
    return f" {WORDS('tested', **head.tested._asdict())}" if head.tested else ""


def shares_of(head: head_naming.Head) -> str:
    """The share of attention that each sink receives: "[CLS] 0.31, [SEP] 0.23"."""
    return ", ".join(
        f"{'first token' if label == head_naming.FIRST else literal(label)} {share:.2f}"
        for label, share in head.shares
    )


def figures(head: head_naming.Head) -> str:
    """The measures of a head, in a line."""
    if isnan(head.entropy):
        return WORDS("one_key")
    measures = [WORDS("entropy", entropy=head.entropy)]
    if not isnan(head.distance):
        measures.append(WORDS("distance", distance=head.distance))
    if head.shares:
        measures.append(WORDS("to_sinks", shares=shares_of(head)))
    return " · ".join(measures)


def closest(head: head_naming.Head) -> str:
    """For a head without a name: the pattern it comes nearest to, and why that is not its name."""
    near = max(head.relations, key=lambda one: one.lift, default=None)
    if head.name != head_naming.NO_PATTERN or near is None or near.lift <= 0:
        return ""
    because = sentences("head_naming", "rejections")(near.against)
    return " " + WORDS(
        "closest", name=near.name, share=near.score, uniform=near.chance, because=because
    )


def table(head: head_naming.Head) -> str:
    """Every pattern's score beside chance, and whether it names the head, as a Markdown table; ""
    where there is none."""
    rows = [
        WORDS("row", **one._asdict(), lift=one.lift, verdict=_verdict(head, one))
        for one in sorted(head.relations, key=lambda one: -one.lift)
    ]
    return "\n".join([WORDS("columns"), *rows]) if rows else ""


def _verdict(head: head_naming.Head, one: head_naming.Relation) -> str:
    if one.name == head.name:
        return "**yes**"
    if head.name == head_naming.TOO_SHORT:
        return "text too short"
    return one.against or WORDS("second", name=head.name)


def rule(across: bool) -> str:
    """The rule that makes names."""
    slots = dict(
        lift=head_naming.MIN_LIFT,
        rows=head_naming.FEWEST_ROWS,
        p=head_naming.MAX_P_VALUE,
        ratio=head_naming.SINK_RATIO,
        sink_p=head_naming.SINK_MAX_P_VALUE,
        entropy=head_naming.BROAD_ENTROPY,
        near=head_naming.NEAR,
        pronoun=head_naming.PRONOUN.capitalize(),
        n=len(coreference.sentences()),
        pronoun_lift=coreference.LEAST_LIFT,
    )
    rule = sentences("head_naming", "rule")
    further = "across" if across else "within"
    return " ".join((*rule.lines("all", **slots), *rule.lines(further, **slots)))


ENDS, PARTS, OF_A_PART, SHORT_ENDS, SHORT_PARTS = (
    named("head_naming", table)
    for table in ("site_ends", "site_parts", "sites", "short_site_ends", "short_site_parts")
)


def site(name: str) -> str:
    """A place of a run in words: "0.attn.sum" is "the sum after layer 0’s attention". One that has
    no words keeps its name."""
    layer, _, rest = name.partition(".")
    part, _, what = rest.partition(".")
    if name in ENDS or part not in PARTS or what not in OF_A_PART:
        return ENDS.get(name, name)
    return sentences("head_naming", "sites")(what, layer=layer, part=PARTS[part])


def short_site(name: str) -> str:
    """A state of a stream on an axis: "0.attn" is "L0 attention"."""
    layer, _, part = name.partition(".")
    if name in SHORT_ENDS or part not in SHORT_PARTS:
        return SHORT_ENDS.get(name, name)
    return f"L{layer} {SHORT_PARTS[part]}"
