"""A server that says nothing, in a real browser: the page says that its picture is of before."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from driver import GRID, PICTURE, Visitor, browser_test
from playwright.sync_api import expect
from tcp_proxy import Cable

from explorer.app.server.page import SAYS

SIGN = "#headlight-waits"
SHOWN = "Dogs bark loudly at the postman."


@pytest.fixture
def cable(server: str) -> Iterator[Cable]:
    made = Cable(server)
    yield made
    made.flows.set()
    made.cut()


@pytest.fixture
def distant(browser: object, cable: Cable) -> Iterator[Visitor]:
    """A visit through the cable."""
    one = Visitor(browser, cable.address)
    yield one
    one.context.close()


def opacity(visitor: Visitor, panel: str) -> float:
    """How clearly a panel is seen, when it has come to rest."""
    script = """one => { const host = one.getRootNode().host;
      for (const each of host.getAnimations()) each.finish();
      return Number(getComputedStyle(host).opacity); }"""
    return visitor.page.locator(panel).evaluate(script)


@browser_test
def test_a_picture_of_the_text_before_is_pale_while_the_server_is_silent(
    cable: Cable, distant: Visitor
) -> None:
    page = distant.open(text=SHOWN).page
    expect(page.locator(SIGN)).to_be_hidden()
    cable.flows.clear()
    before = [distant.drawing(each) for each in (GRID, PICTURE)]
    area = page.locator("textarea").first
    area.fill("The cat sat on the mat because summer was warm.")
    area.press("Control+Enter")
    expect(page.locator(SIGN)).to_have_text(SAYS["waits"])
    assert [distant.drawing(each) for each in (GRID, PICTURE)] == before
    assert opacity(distant, PICTURE) < 0.8 and opacity(distant, ".sentence") == 1
    cable.flows.set()
    distant.until(
        "([grid, before]) => [...document.querySelectorAll('*')].some((each) => "
        "![undefined, before].includes("
        "each.shadowRoot?.querySelector(grid + '[data-token]')?.dataset.token))",
        [GRID, before[0]],
    )
    distant.drawn()
    expect(page.locator(SIGN)).to_be_hidden()
    assert opacity(distant, PICTURE) == 1 and "cat" in distant.tokens()


@browser_test
def test_a_press_that_is_not_answered_is_said_too(cable: Cable, distant: Visitor) -> None:
    page = distant.open(text=SHOWN).page
    cable.flows.clear()
    page.get_by_role("radio", name="All heads together", exact=True).click()
    expect(page.locator(SIGN)).to_have_text(SAYS["waits"])
    cable.flows.set()
    page.wait_for_selector(f"{PICTURE}", state="detached")
    distant.at_rest()
    expect(page.locator(SIGN)).to_be_hidden()


@browser_test
def test_a_lost_connection_is_said_and_what_was_asked_is_drawn_after(
    cable: Cable, distant: Visitor
) -> None:
    page = distant.open(text=SHOWN).page
    cable.cut()
    expect(page.locator(SIGN)).to_have_text(SAYS["lost"])
    area = page.locator("textarea").first
    area.fill("The cat sat on the mat because summer was warm.")
    area.press("Control+Enter")
    assert opacity(distant, PICTURE) < 0.8
    cable.mend()
    expect(page.locator(SIGN)).to_be_hidden()
    distant.drawn()
    distant.until(
        "([panel]) => [...document.querySelectorAll('*')].some((each) => "
        "each.shadowRoot?.querySelector(panel)?.textContent.includes('cat'))",
        [PICTURE],
    )
    assert opacity(distant, PICTURE) == 1


@browser_test
def test_a_press_while_the_connection_is_lost_is_done_when_it_is_back(
    cable: Cable, distant: Visitor
) -> None:
    page = distant.open("?layer=1&head=5", text=SHOWN).page
    cable.cut()
    expect(page.locator(SIGN)).to_have_text(SAYS["lost"])
    page.get_by_role("button", name=re.compile("Layer 0, head 2")).first.click()
    cable.mend()
    expect(page.locator(SIGN)).to_be_hidden()
    distant.until("location.search.includes('layer=0')")
    distant.drawn()
    assert "head=2" in page.url
