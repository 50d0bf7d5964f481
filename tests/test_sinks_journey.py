"""Heads that rest on a sink, drawn dotted, in a real browser."""

from __future__ import annotations

from driver import MARKS, Visitor
from playwright.sync_api import expect

pytestmark = MARKS


def test_a_dotted_head_is_pressed_in_its_middle(visitor: Visitor) -> None:
    page = visitor.open("?view=Matrix").page
    dotted = page.locator(".cell[aria-pressed=false]:has(.thumb[stroke-dasharray])").first
    layer, head = dotted.evaluate("cell => JSON.parse(cell.dataset.select)")
    dotted.click()  # fails where its middle does not hear of a press
    page.wait_for_url(f"**layer={layer}&head={head}**")
    expect(page.locator(f'.cell[data-select=\'["{layer}","{head}"]\']')).to_have_attribute(
        "aria-pressed", "true"
    )
