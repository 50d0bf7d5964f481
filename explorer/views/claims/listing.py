"""The list of claims: a row of each, the counts above, and its files."""

from __future__ import annotations

from explorer.analysis import csv, evidence
from explorer.components import claims
from explorer.layout import export_menu
from explorer.state import cache, places
from explorer.text import claims as claims_text
from explorer.text import claims_report, glossary
from explorer.views.claims import claim_jobs

TONES = {
    evidence.FAILS: "fails",
    evidence.HOLDS: "holds",
    evidence.SHORT: "open",
    evidence.UNTESTABLE: "open",
}


def counted(found: claims_text.Findings, kind: str) -> tuple[str, str, list[tuple[int, str, str]]]:
    """A kind of claim with what it means and how many have each verdict."""
    counts = claims_text.counts(found, kind)
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
        claims_text.MEANING[kind],
        [each for at, each in enumerate(named) if each[0] or at < 2],
    )


def row(claim: evidence.Claim, finding: evidence.Verdict | None) -> claims.ClaimRow:
    """A claim as the list draws it."""
    waiting = evidence.Verdict("being tested", None, "", "The test has not run yet.")
    told = finding or waiting
    tab = places.tab_of(claim.page, {})
    return claims.ClaimRow(
        id=claim.id,
        tone=TONES.get(told.verdict, "waiting"),
        mark=claims_text.MARKS.get(told.verdict, "…"),
        verdict=told.verdict,
        statement=claim.statement,
        shown=told.value_text,
        why=told.why,
        how=claim.how,
        formula=claim.formula,
        noun=claim.noun if told.value is not None else "",
        rule=claims_text.bound(claim),
        chance=claims_text.beside(claim, finding),
        holds=claims_text.rule(claim),
        kind=claims_text.kind_description(claim),
        parts=claims_text.parts(told),
        remark=claim.remark,
        terms=glossary.terms_in(f"{claim.statement} {claim.how}"),
        page=(tab, places.title(tab), places.address(tab, {})),
    )


def files(model: str, text: str, target: str | None) -> None:
    """All verdicts to take along, as a page and as a table. Both wait for the tests that are still
    under way."""

    def page() -> str:
        of = cache.record(model, text, target=target)
        about = evidence.provenance(of)[0]
        return claims_report.report(
            about, of.text, of.target or "", claim_jobs.finished(model, text, target)
        )

    def table() -> str:
        about = evidence.provenance(cache.record(model, text, target=target))
        return csv.to_csv(claims_text.table(claim_jobs.finished(model, text, target)), about)

    name = f"headlight-claims-{model}"
    export_menu.offer("All claims as one page to print", f"{name}.html", "text/html", page)
    export_menu.offer("All claims as CSV", f"{name}.csv", "text/csv", table)
