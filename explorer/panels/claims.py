"""The panels on claims of lecture notes: one claim with its test, and the verdicts of several."""

from __future__ import annotations

from typing import Annotated

from explorer.analysis.measure import MeasureContext
from explorer.analysis.verdicts import FAILS, HOLDS, Claim, Verdict, evaluate_claim
from explorer.figures.formatting import NONE, with_unit
from explorer.figures.kinds import BarRow, Bars, Facts, Figure, Stack, TextTable
from explorer.panels import spec
from explorer.panels.choice import Choice
from explorer.panels.spec import Panel
from explorer.text import claims as claims_text
from explorer.text.formulas import FORMULAS
from explorer.wording.templates import sentences
from models.runtime import host
from models.runtime.run import Run

CONCEPT = "claims"
DEFAULT = "rows"
FEW = "rows,weighted-sum,heads-differ"
ALL = "all"


# ---- tests of claims -----------------------------------------------------------------------------


def evaluate(run: Run, claim: Claim) -> Verdict:
    """The verdict on a claim, made once for everyone; one test at a time on the whole server, which
    holds no recording of another."""
    test = lambda: evaluate_claim(claim, MeasureContext.of(run))
    return run.memo(("claim", claim.id), lambda: host.current.exclusively(test))


def _expect_unedited(run: Run) -> None:
    """Raises ValueError for a run with edits."""
    if run.edits:
        raise ValueError(sentences(CONCEPT, "claim")("edited"))


def _named(id: str) -> Claim:
    """The claim of an id. Raises ValueError for another word."""
    if id not in claims_text.BY_ID:
        raise ValueError(sentences(CONCEPT, "claim")("unknown", claim=id))
    return claims_text.BY_ID[id]


# ---- one claim -----------------------------------------------------------------------------------


@spec.panel
def claim(
    run: Run,
    claim: Annotated[
        str, Choice(accepts=claims_text.BY_ID.__contains__, help="the claim that is opened")
    ] = "",
) -> Panel:
    """A claim of a lecture note on this text and model: its number, its bound, its control.

    claim: its id, that of DEFAULT where "". Raises ValueError for another, and for a run with
    edits."""
    _expect_unedited(run)
    tested = _named(claim or DEFAULT)
    verdict = evaluate(run, tested)
    words = sentences(CONCEPT, "claim")
    rule = claims_text.rule(tested)
    name = {HOLDS: "holds", FAILS: "fails"}.get(verdict.verdict, "open")
    parts = claims_text.parts(verdict)
    table = [(words("verdict"), verdict.verdict), (words("rule"), rule), *parts]
    remark = (words("remark", remark=tested.remark),) if tested.remark else ()
    return Panel(
        title=tested.statement,
        finding=words(
            name,
            value=verdict.value_text,
            noun=tested.noun,
            rule=rule,
            verdict=verdict.verdict,
            why=verdict.why,
        ),
        figures=(verdict_figure(tested, verdict),),
        table=dict(zip(words.lines("columns"), map(list, zip(*table)))),
        details=(
            tested.how,
            words("formula", formula=tested.formula),
            claims_text.kind_description(tested),
            *remark,
        ),
        caption=(words("caption", note=claims_text.NOTES[tested.note]),),
        file=f"claim-{tested.id}",
        formulas=(tested.id,) if tested.id in FORMULAS else (),
    )


def verdict_figure(claim: Claim, verdict: Verdict) -> Figure:
    """The verdict in large type, and the number beside its bound and its control."""
    words = sentences(CONCEPT, "claim")
    mark = f"{claims_text.MARKS[verdict.verdict]} {verdict.verdict}"
    if verdict.value is None or verdict.bound is None:
        return Facts(facts=((mark, words("verdict")),), note=verdict.why)
    values = [(words("here"), verdict.value, verdict.value_text)]
    if verdict.chance is not None:
        values.append((words("control"), verdict.chance, verdict.by_chance))
    bound = f"{claim.bound} {with_unit(verdict.bound, claim.unit)}"
    values.append((words("bound"), verdict.bound, bound))
    rows = tuple(
        BarRow(label, (value,), (text,), at == 0) for at, (label, value, text) in enumerate(values)
    )
    figures: list[Figure] = [
        Facts(facts=((mark, words("verdict")), (verdict.value_text, claim.noun))),
        Bars(columns=("",), rows=rows, note=verdict.why),
    ]
    if verdict.rows:
        header = words.lines("columns")
        figures.append(TextTable(title=words("parts"), columns=header, rows=verdict.rows))
    return Stack(figures=tuple(figures), main=1)


# ---- several claims ------------------------------------------------------------------------------


@spec.panel
def verdicts(run: Run, claims: str = FEW) -> Panel:
    """The verdicts of several claims, those that do not hold first. claims: their ids with commas
    between them, or "all". Raises ValueError for another id, and for a run with edits."""
    _expect_unedited(run)
    words = sentences(CONCEPT, "verdicts")
    if claims == ALL:
        results = {one.id: evaluate(run, one) for one in claims_text.IN_TURN}
    else:
        results = {id: evaluate(run, _named(id)) for id in claims.split(",")}
    listed = claims_text.ordered(results)
    each = [results[one.id].verdict for one in listed]
    fails, holds = each.count(FAILS), each.count(HOLDS)
    return Panel(
        title=words("title"),
        finding=words(
            "finding", n=len(each), fails=fails, holds=holds, rest=len(each) - fails - holds
        ),
        figures=(
            TextTable(
                select=("claim",),
                columns=words.lines("columns"),
                rows=tuple(_row(one, results[one.id]) for one in listed),
                keys=tuple((one.id,) for one in listed),
            ),
        ),
        table=claims_text.table(results),
        details=words.lines("details"),
        caption=(words("caption"),),
        file="claims",
    )


def _row(claim: Claim, verdict: Verdict) -> tuple[str, ...]:
    """A row of the list of verdicts: the measured quantity has its noun, which the control and the
    rule are of too."""
    mark = claims_text.MARKS[verdict.verdict]
    value = f"{verdict.value_text} {claim.noun}" if verdict.value is not None else NONE
    return f"{mark} {claim.statement}", value, verdict.by_chance or NONE, claim.rule
