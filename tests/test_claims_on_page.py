"""The page of claims: what it lists, prints and links to."""

from __future__ import annotations

import csv
import io
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from time import sleep
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import pytest
from app_harness import clean, page_at
from claim_fixtures import TEXT, material, real, shuffled
from conftest import AWKWARD, on_page
from streamlit.testing.v1 import AppTest

from explorer.analysis import evidence
from explorer.analysis.csv import to_csv
from explorer.analysis.evidence import (
    FAILS,
    HOLDS,
)
from explorer.components import codec
from explorer.text import claims, claims_report
from models.own_model import OwnModel

ROOT = Path(__file__).resolve().parent.parent


# ---- files -------------------------------------------------------------------


class Page(HTMLParser):
    """What a browser would make of a page: its tags, what they point to, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.points: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.append(tag)
        self.points += [
            value
            for name, value in attributes
            if name in ("src", "href", "srcset", "data", "action", "poster")
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", ["<script>document.title='owned'</script> & <b>bold</b>", TEXT])
def test_the_page_to_print_stands_alone(small_decoder: OwnModel, text: str) -> None:
    e = material(small_decoder, text)
    findings = {claim.id: evidence.evaluate_claim(claim, e) for claim in claims.CLAIMS}
    recording = e.recording
    about = evidence.provenance(recording)[0]
    html = claims_report.report(about, recording.text, recording.target or "", findings)
    page = Page(html)
    assert not page.points and not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert "http" not in html and "url(" not in html and "@import" not in html
    assert (
        text in page.text
        and e.recording.model.fingerprint in page.text
        and e.recording.model.name in page.text
    )
    for kind in evidence.KINDS:
        assert claims.verdicts(claims.counts(findings, kind)) in page.text
    first = next(claim for claim in claims.ordered(findings))
    assert html.index(f'id="{first.id}"') == html.index('<article id="') + len("<article ")
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))["theme"][
        "light"
    ]
    assert f".holds {{ color: {theme['blueTextColor']}; }}" in html
    assert f"background: {theme['primaryColor']};" in html
    for claim in claims.CLAIMS:
        finding = findings[claim.id]
        assert (
            f'id="{claim.id}"' in html
            and claim.statement in page.text
            and finding.why in page.text
            and finding.value_text in page.text
        )


def test_the_csv_reads_back(small_translator: OwnModel) -> None:
    e = shuffled(small_translator, 'the "cat"\nand, the dog saw the cat')
    findings = {claim.id: evidence.evaluate_claim(claim, e) for claim in claims.CLAIMS}
    written = to_csv(claims.table(findings), evidence.provenance(e.recording))
    rows = list(csv.DictReader(io.StringIO(written)))
    assert e.recording.model.fingerprint in rows[0]["about"]
    assert [row["claim"] for row in rows] == [claim.id for claim in claims.ordered(findings)]
    for row in rows:
        finding = findings[row["claim"]]
        assert row["verdict"] == finding.verdict and row["kind"] == claims.BY_ID[row["claim"]].kind
        assert (float(row["value"]) if row["value"] else None) == finding.value
        said = row["with permuted weights"]
        assert (float(said) if said else None) == finding.chance


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return page_at("claims", **asked)


def sent(app: AppTest) -> dict:
    return next(
        codec.decode(e.proto.bytes)[0]
        for e in on_page(app)
        if e.proto.component_name == "headlight.claims"
    )


def rows(app: AppTest) -> dict[str, dict]:
    return {row["id"]: row for group in sent(app)["groups"] for row in group["rows"]}


def finished(app: AppTest) -> AppTest:
    """The page run again, as it does by itself, until every claim is tested."""
    for _ in range(400):
        if f" {len(claims.CLAIMS)} claims." in sent(app)["says"]:
            return clean(app)
        sleep(0.1)
        clean(app.run())
    raise AssertionError(sent(app)["says"])


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_is_listed(text: str) -> None:
    app = clean(opened(text=text, model="grammar-masked"))
    assert set(rows(app)) == set(claims.BY_ID), "claims not yet tested are listed too"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["decoder", "translator"])
def test_the_page_fills_and_says_what_the_tests_find(model: str) -> None:
    app = finished(opened(model=model, text=TEXT))
    e = real(model)
    expected = {claim.id: evidence.evaluate_claim(claim, e) for claim in claims.CLAIMS}
    shown = rows(app)
    assert {id: row["verdict"] for id, row in shown.items()} == {
        id: finding.verdict for id, finding in expected.items()
    }
    for told, kind in zip(sent(app)["counts"], evidence.KINDS, strict=True):
        counts = claims.counts(expected, kind)
        assert {each["n"] for each in told["each"]} == {*counts.values()} - {0} | (
            {0} & {counts[FAILS], counts[HOLDS]}
        )
    assert next(iter(shown.values()))["verdict"] == FAILS, "the page opens on what does not hold"
    assert len(app.dataframe[0].value) == len(claims.CLAIMS)


@pytest.mark.slow
def test_a_link_opens_a_claim_and_a_choice_and_refuses_what_is_not_there() -> None:
    note = list(claims.NOTES)[2]
    app = finished(
        opened(model="induction", claim="unit-length", claim_verdict="Do not hold", claim_note=note)
    )
    shown = rows(app)
    assert sent(app)["open"] == "unit-length" and "unit-length" in shown
    assert {row["verdict"] for row in shown.values()} == {FAILS} and {
        claims.BY_ID[id].note for id in shown
    } == {note}
    app = clean(opened(model="induction", claim="<b>", claim_verdict="?", claim_note="9" * 900))
    assert (
        sent(app)["open"] == ""
        and len(rows(app)) == len(claims.CLAIMS)
        and not set(app.query_params) - {"model", "tab"}
    )


@driver.browser_test
def test_a_reader_opens_a_claim_by_keys_filters_prints_and_goes_to_where_it_is_seen(
    visitor: driver.Visitor,
) -> None:
    page, text = visitor.page, "the cat saw the <b>dog</b>, and the dog saw the cat"
    page.goto(f"{visitor.server}/claims?{urlencode({'text': text, 'model': 'induction'})}")
    page.locator(".claims .says", has_text=" claims. ").wait_for(timeout=60_000)
    visitor.errors[:] = visitor.wrong()
    row = page.locator(".claims .row")
    row.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = claims.BY_ID[row.nth(1).get_attribute("data-id")]
    page.wait_for_url(f"**claim={second.id}**")
    assert row.nth(1).get_attribute("aria-expanded") == "true"
    assert second.how in page.locator(".claims .details").inner_text()
    page.get_by_role("radio", name="Do not hold").click()
    page.wait_for_url("**claim_verdict=Do+not+hold**")
    page.wait_for_function(
        "() => [...document.querySelectorAll('*')].some(e => { const rows = "
        "e.shadowRoot?.querySelectorAll('.claims .claim'); return rows?.length && "
        "[...rows].every(r => r.classList.contains('fails')); })"
    )
    printed = Page(visitor.export("All claims as one page to print").read_text("utf-8"))
    assert text in printed.text and claims.CLAIMS[-1].statement in printed.text
    row.filter(has_text=claims.BY_ID["unit-length"].statement).click()
    page.locator(".claims .go").click()
    page.wait_for_url("**/architecture?**tab=residual**")
    asked = parse_qs(urlparse(page.url).query)
    assert asked["model"] == ["induction"] and asked["text"] == [text]
