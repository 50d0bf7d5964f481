"""A cell is opened in a real browser: keys, numbers told, a phone."""

from __future__ import annotations

import pytest
from conftest import read_once
from driver import MARKS, Visitor
from tolerances import PASSED, TOTAL

# ---- journeys ----------------------------------------------------------------


def marked(test):
    for mark in MARKS:
        test = mark(test)
    return test


def arrive(visitor: Visitor, query: str = "") -> Visitor:
    visitor.page.goto(f"{visitor.server}/anatomy{query}")
    return at_rest(visitor)


def at_rest(visitor: Visitor) -> Visitor:
    visitor.page.wait_for_selector(".anatomy.story[data-token]")
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")
    return visitor


def weight_told(visitor: Visitor) -> float:
    told = visitor.page.locator(".story .result").filter(has_text="weight =").first.inner_text()
    return float(
        told.split("=")[1]
        .translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
        .replace(" × 10", "e")
    )


@marked
def test_arrow_keys_and_enter_open_a_cell_and_its_link_opens_it_again(visitor: Visitor) -> None:
    arrive(visitor, "?layer=1&head=2&token=2&anatomy_cell=2.3&text=Ram+pushed+Hari")
    pattern = read_once("encoder").record("Ram pushed Hari").attention[0].pattern[1, 2]
    visitor.page.locator(".matrix .scroll").focus()
    for key in ("ArrowUp", "ArrowLeft", "Enter"):
        visitor.page.keyboard.press(key)
    visitor.page.wait_for_url("**anatomy_cell=1.2**")
    at_rest(visitor)
    visitor.page.wait_for_selector(".story .words:has-text('query q of Ram')")
    assert weight_told(visitor) == pytest.approx(float(pattern[1, 2]), rel=PASSED)
    again = Visitor(visitor.context.browser, visitor.server)
    again.page.goto(visitor.page.url)
    assert weight_told(at_rest(again)) == weight_told(visitor)
    again.leave()


@marked
def test_strips_tell_their_numbers_and_a_key_in_the_row_can_be_chosen(visitor: Visitor) -> None:
    arrive(visitor, "?layer=1&head=2&token=2&anatomy_cell=2.3&text=Ram+pushed+Hari")
    attention = read_once("encoder").record("Ram pushed Hari").attention[0]
    dims = visitor.page.locator(".story .field").first
    dims.focus()
    visitor.page.keyboard.press("Home")
    for _ in range(5):
        visitor.page.keyboard.press("ArrowRight")
    told = dims.get_attribute("aria-valuetext").replace("−", "-")
    assert told.startswith("dimension 5:")
    assert float(told.split("q ")[1].split()[0]) == pytest.approx(
        float(attention.q[1, 2, 2, 5]), rel=TOTAL
    )
    keys = visitor.page.locator(".story .field[data-focus=softmax]")
    keys.focus()
    visitor.page.keyboard.press("Home")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**anatomy_cell=2.0**")
    visitor.page.wait_for_selector(".story .words:has-text('key k of [CLS]')")
    assert visitor.page.locator(".story .field:focus").get_attribute("data-focus") == "softmax", (
        "the row keeps the focus"
    )
    svg = visitor.export("The story as SVG").read_text("utf-8")
    assert (
        "model encoder" in svg
        and "Text: Ram pushed Hari" in svg
        and "8. Contribution of each head" in svg
    )
    assert visitor.export("The story as PNG").read_bytes().startswith(b"\x89PNG")


@marked
def test_a_phone_holds_a_long_text_without_scrolling_sideways(visitor: Visitor) -> None:
    text = "+".join(["the+cat+saw+a+dog+near+the+old+house+and"] * 50)
    phone = Visitor(visitor.context.browser, visitor.server, viewport={"width": 390, "height": 844})
    arrive(phone, f"?text={text}")
    assert phone.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    nodes = (
        "() => { let n = 0; const go = (root) => { for (const each of root.querySelectorAll('*')) "
        "{ n++; if (each.shadowRoot) go(each.shadowRoot); } }; go(document); return n; }"
    )
    assert phone.page.evaluate(nodes) < 4000
    assert not phone.errors
    phone.leave()
