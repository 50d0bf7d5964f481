"""Claims on the tab Concepts: what it lists and links to."""

from __future__ import annotations

from time import sleep
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import pytest
from app_harness import clean, page_at, panels_on
from claim_fixtures import TEXT, real
from streamlit.testing.v1 import AppTest

from explorer.analysis import verdicts
from explorer.analysis.verdicts import FAILS
from explorer.panels import claims as claim_panels
from explorer.text import claims
from models.runtime.run import Run


def listed(app: AppTest) -> list[str]:
    """The options of the list of claims."""
    return [option for radio in app.radio for option in radio.options]


def results(app: AppTest) -> list[str]:
    """What stands below each of them."""
    return [caption for radio in app.radio for caption in radio.proto.captions]


def finished(app: AppTest) -> AppTest:
    """The page run again, as it does by itself, until every claim is tested."""
    for _ in range(600):
        if any(each.label == "All claims as a table" for each in app.expander):
            return clean(app)
        sleep(0.1)
        clean(app.run())
    raise AssertionError("not all claims are tested")


@pytest.mark.slow
def test_the_page_fills_and_says_what_the_tests_find() -> None:
    app = page_at("claims", model="translator", text=TEXT)
    names = set(listed(app))
    app = finished(app)
    assert set(listed(app)) == names, "a claim keeps its name, by which the browser selects it"
    e = real("translator")
    expected = {claim.id: verdicts.evaluate_claim(claim, e) for claim in claims.CLAIMS}
    order = claims.ordered(expected)
    for result, claim in zip(results(app), order, strict=True):
        assert result.startswith(claims.MARKS[expected[claim.id].verdict])
    assert expected[order[0].id].verdict == FAILS, "the page opens on what does not hold"
    one, *every = panels_on(app)
    assert one["title"] == order[0].statement
    (table,) = every[0]["figures"]
    assert table["keys"] == [[claim.id] for claim in order]


@pytest.mark.slow
def test_a_link_opens_a_claim_and_a_choice_and_refuses_what_is_not_there() -> None:
    note = list(claims.NOTES)[2]
    chosen = {"claim": "unit-length", "claim_verdict": "Do not hold", "claim_note": note}
    app = finished(page_at("claims", model="induction", **chosen))
    assert panels_on(app)[0]["title"] == claims.BY_ID["unit-length"].statement
    assert all(result.startswith(claims.MARKS[FAILS]) for result in results(app))
    wrong = {"claim": "<b>", "claim_verdict": "?", "claim_note": "9" * 900}
    app = clean(page_at("claims", model="induction", **wrong))
    assert len(listed(app)) == len(claims.CLAIMS)
    assert not set(app.query_params) - {"model", "tab", "text"}


@driver.browser_test
def test_a_reader_chooses_a_claim_filters_and_goes_to_where_it_is_seen(
    visitor: driver.Visitor,
) -> None:
    page, text = visitor.page, "the cat saw the <b>dog</b>, and the dog saw the cat"
    page.goto(
        f"{visitor.server}/learn?tab=claims&{urlencode({'text': text, 'model': 'induction'})}"
    )
    page.wait_for_selector("text=All claims as a table", timeout=60_000)
    visitor.errors[:] = visitor.wrong()
    page.locator(".st-key-claims-list label", has_text="unit vector").click()
    page.wait_for_url("**claim=unit-length**")
    page.get_by_role("heading", name=claims.BY_ID["unit-length"].statement).wait_for()
    visitor.choose("Show", "Do not hold")
    page.wait_for_url("**claim_verdict=Do+not+hold**")
    page.get_by_role("link", name="See it on").click()
    page.wait_for_url("**/architecture?**tab=residual**")
    choices = parse_qs(urlparse(page.url).query)
    assert choices["model"] == ["induction"] and choices["text"] == [text]
    assert choices["write"] == ["State norm"]


@pytest.mark.slow
def test_in_the_list_a_number_has_its_noun() -> None:
    run = Run("encoder", "The old dog saw a small bird.")
    panel = claim_panels.verdicts(run, "rows,heads-differ")
    (listed,) = panel.figures
    for claim_id, (_, value, permuted, rule) in zip(sum(listed.keys, ()), listed.rows):
        claim = claims.BY_ID[claim_id]
        assert value.endswith(f" {claim.noun}") and value[0].isdigit()
        assert rule == claim.rule and (permuted == "–") == (claim.kind != "measured here")
    assert listed.columns == ("claim", "measured here", "with permuted weights", "holds if it is")
