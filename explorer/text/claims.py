"""Claims: what lecture notes say of the Transformer, read from claims.toml, each with its measure,
and the notes' formulas, whose sides are compared; the verdicts in order, counted, as a table."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from explorer.analysis import claims as claims_analysis
from explorer.analysis.verdicts import (
    AT_MOST,
    CONSTRUCTION,
    FAILS,
    HOLDS,
    KINDS,
    MEASURED,
    SHORT,
    UNTESTABLE,
    VERDICTS,
    Claim,
    Verdict,
)
from explorer.text.formulas import FORMULAS, Formula
from explorer.wording.templates import named, sentences

NOTES = named("claims", "notes")  # a note by its theme: its short name and what it is about
MARKS = {HOLDS: "✓", FAILS: "✗", SHORT: "–", UNTESTABLE: "–"}
MEANING = named("claims", "kinds")  # what the kinds mean, for the reader


def read() -> tuple[Claim, ...]:
    """All claims in the order of the file. Raises AttributeError where one has no measure,
    ValueError where one is not complete."""
    with (Path(__file__).parent / "claims.toml").open("rb") as file:
        written = tomllib.load(file)["claim"]
    return tuple(_claim(**each) for each in written)


def _claim(id: str, parts: Sequence[Sequence[str]] = (), **more: Any) -> Claim:
    measure = getattr(claims_analysis, id.replace("-", "_"))
    return Claim(id, measure=measure, parts=tuple((name, part) for name, part in parts), **more)


def _of_formula(formula: Formula) -> Claim:
    """The claim that both sides of a formula agree."""
    words = named("formulas", "claim")
    return Claim(
        formula.id,
        note=OF_FORMULAS,
        kind=CONSTRUCTION,
        statement=formula.says,
        formula=formula.title,
        bound=AT_MOST,
        tolerance=formula.tolerance,
        page=formula.page,
        measure=formula.measure,
        remark=formula.remark,
        how=words["how"],
        noun=words["noun"],
        why=words["why"],
        because=words["because"],
        slow=True,
    )


OF_FORMULAS = list(NOTES)[-1]
WRITTEN = read()
CLAIMS = (*WRITTEN, *map(_of_formula, FORMULAS.values()))
BY_ID = {claim.id: claim for claim in CLAIMS}
# As tested: quick ones first, and of these those of a kind that `groups` names first.
IN_TURN = tuple(sorted(CLAIMS, key=lambda claim: (claim.slow, KINDS.index(claim.kind))))

Findings = Mapping[str, Verdict]  # by claim, of those that are tested


def place(claim: Claim) -> tuple[str, dict[str, str]]:
    """The tab where a claim can be seen, and its choices."""
    page, _, choices = claim.page.partition("?")
    return page, dict(parse_qsl(choices))


def counts(findings: Findings, kind: str) -> dict[str, int]:
    """The number of claims of a kind by verdict; a claim that still runs has none."""
    own = [
        findings[claim.id].verdict
        for claim in CLAIMS
        if claim.kind == kind and claim.id in findings
    ]
    return {verdict: own.count(verdict) for verdict in VERDICTS}


def groups(
    findings: Findings, note: str = "", verdict: str = ""
) -> list[tuple[str, str, list[Claim]]]:
    """The claims of a note ("" for all) with a verdict ("" for any), as (heading, line under it,
    claims): those that do not hold first, then those that hold, measured ones before those by
    construction, then those that nothing can be said of, and those still to be tested."""
    chosen = [
        claim
        for claim in CLAIMS
        if note in ("", claim.note)
        and (not verdict or claim.id in findings and findings[claim.id].verdict == verdict)
    ]
    groups = [
        (
            f"{claim_verdict} · {kind}",
            MEANING[kind],
            [
                claim
                for claim in chosen
                if claim.kind == kind
                and claim.id in findings
                and findings[claim.id].verdict == claim_verdict
            ],
        )
        for claim_verdict in VERDICTS
        for kind in KINDS
    ]
    waiting = [claim for claim in chosen if claim.id not in findings]
    named = [(name[0].upper() + name[1:], under, claims) for name, under, claims in groups]
    return [each for each in (*named, ("Being tested", "", waiting)) if each[2]]


def ordered(findings: Findings) -> list[Claim]:
    """All claims that are tested, in the order of `groups`."""
    return [claim for _, _, claims in groups(findings) for claim in claims if claim.id in findings]


def verdicts(numbers: Mapping[str, int]) -> str:
    """Counts in words: "3 do not hold here, 27 hold, 4 cannot be tested here"."""
    words, parts = sentences("claims", "counts"), []
    for verdict in VERDICTS:
        n = numbers[verdict]
        if n or verdict in (FAILS, HOLDS):
            parts.append(words(f"{verdict}, one" if n == 1 else verdict, n=n))
    return ", ".join(parts)


def rule(claim: Claim) -> str:
    """The condition of a claim in words: "at most 10⁻⁵", and the distance beyond chance."""
    if claim.kind != MEASURED:
        return claim.rule
    return sentences("claims", "counts")("rule", rule=claim.rule, margin=claim.margin)


def table(findings: Findings) -> dict[str, list]:
    """All claims that are tested as named columns, a row each, those that do not hold first."""
    rows = [(claim, findings[claim.id]) for claim in ordered(findings)]
    return {
        "claim": [claim.id for claim, _ in rows],
        "kind": [claim.kind for claim, _ in rows],
        "note": [claim.note for claim, _ in rows],
        "statement": [claim.statement for claim, _ in rows],
        "verdict": [finding.verdict for _, finding in rows],
        "value": [finding.value for _, finding in rows],
        "quantity": [claim.noun for claim, _ in rows],
        "with permuted weights": [finding.chance for _, finding in rows],
        "bound": [finding.bound for _, finding in rows],
        "holds if": [rule(claim) for claim, _ in rows],
        "measured": [claim.how for claim, _ in rows],
        "formula": [claim.formula for claim, _ in rows],
        "why": [finding.why for _, finding in rows],
    }


def parts(finding: Verdict) -> Sequence[tuple[str, str]]:
    """The small table of a claim: its own figure beside that of permuted weights, where it has one,
    and then its parts."""
    if finding.chance is None:
        return finding.rows
    return (
        ("this model", finding.value_text),
        ("control, permuted weights", finding.by_chance),
        *finding.rows,
    )


def kind_description(claim: Claim) -> str:
    """The kind of a claim, and what follows from it."""
    why = claim.because or MEANING[claim.kind]
    return f"{claim.kind.capitalize()}. {why}"
