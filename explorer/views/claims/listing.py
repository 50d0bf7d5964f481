"""The list of claims: a row of each, the counts above, and its files."""

from __future__ import annotations

from explorer.analysis import csv, evidence
from explorer.components import claims as pictures
from explorer.frame import export
from explorer.memory import passes
from explorer.sentences import claims, claims_report, glossary
from explorer.views.claims import testing

TONES = {
    evidence.FAILS: "fails",
    evidence.HOLDS: "holds",
    evidence.SHORT: "open",
    evidence.UNTESTABLE: "open",
}


def counted(found: claims.Findings, kind: str) -> tuple[str, str, list[tuple[int, str, str]]]:
    """A kind of claim with what it means and how many have each verdict."""
    counts = claims.counts(found, kind)
    named = [
        (counts[verdict], word, TONES[verdict])
        for verdict, word in (
            (evidence.FAILS, "do not hold here"),
            (evidence.HOLDS, "hold"),
            (evidence.SHORT, "too short to tell"),
            (evidence.UNTESTABLE, "cannot be tested"),
        )
    ]
    return (
        kind.capitalize(),
        claims.MEANING[kind],
        [each for at, each in enumerate(named) if each[0] or at < 2],
    )


def row(claim: evidence.Claim, finding: evidence.Finding | None) -> pictures.Row:
    """A claim as the list draws it."""
    waiting = evidence.Finding("being tested", None, "", "The test has not run yet.")
    told = finding or waiting
    return pictures.Row(
        id=claim.id,
        tone=TONES.get(told.verdict, "waiting"),
        mark=claims.MARKS.get(told.verdict, "…"),
        verdict=told.verdict,
        statement=claim.statement,
        shown=told.shown,
        why=told.why,
        how=claim.how,
        formula=claim.formula,
        noun=claim.noun if told.value is not None else "",
        rule=claims.bound(claim),
        chance=claims.beside(claim, finding),
        holds=claims.rule(claim),
        kind=claims.kind_said(claim),
        parts=claims.parts(told),
        remark=claim.remark,
        terms=glossary.terms_in(f"{claim.statement} {claim.how}"),
        page=(claim.page, claims.PAGES[claim.page], claim.page),
    )


def files(model: str, text: str, target: str | None) -> None:
    """All verdicts to take along, as a page and as a table. Both wait for the tests that are still
    under way."""

    def page() -> str:
        of = passes.record(model, text, target=target)
        about = evidence.about(of)[0]
        return claims_report.report(
            about, of.text, of.target or "", testing.finished(model, text, target)
        )

    def table() -> str:
        about = evidence.about(passes.record(model, text, target=target))
        return csv.to_csv(claims.table(testing.finished(model, text, target)), about)

    name = f"headlight-claims-{model}"
    export.offer("All claims as one page to print", f"{name}.html", "text/html", page)
    export.offer("All claims as CSV", f"{name}.csv", "text/csv", table)
