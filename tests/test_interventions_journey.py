"""Heads are switched and a sweep is run in a real browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlparse

import driver
from conftest import read_once

from models.edits import (
    ZeroHead,
    from_line,
)

TEXT = "the cat sat on the mat"


# ---- journeys ----------------------------------------------------------------


def browser_test(test):
    for mark in driver.MARKS:
        test = mark(test)
    return test


def start(visitor: driver.Visitor, **asked: str):
    page = visitor.page
    page.goto(f"{visitor.server}/experiment?{urlencode(asked)}")
    page.wait_for_selector(".board, button:has-text('Run all patches')")
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = visitor.wrong()
    return page


def asked_of(page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


@browser_test
def test_heads_are_switched_by_mouse_and_keys_and_the_matrices_are_read(
    visitor: driver.Visitor,
) -> None:
    page = start(visitor, text=TEXT, experiment="off")
    page.get_by_role("button", name="Layer 1, head 2: as it is").click()
    page.wait_for_url("**edits=ZeroHead**")
    page.get_by_role("button", name="Layer 1, head 2: zero-ablated").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Layer 1, head 3: zero-ablated").wait_for()
    page.wait_for_url(lambda url: "2-3" in url)
    assert from_line(asked_of(page)["edits"][0]) == (ZeroHead(1, 2), ZeroHead(1, 3))
    page.get_by_role("button", name="Layer 2, head 0: change").click()
    page.wait_for_url("**layer=2**")
    loaded = read_once("encoder")
    one, other = (
        loaded.record(TEXT, edits).attention[0].pattern[2, 0]
        for edits in ((), (ZeroHead(1, 2), ZeroHead(1, 3)))
    )
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.trio .plane[aria-label*=\"Layer 2, head 0\"]'))"
    )
    page.locator(".trio .plane").nth(2).focus()
    page.keyboard.press("ArrowDown")  # comes to the first cell
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    said = page.locator(".switches .status").filter(has_text="difference").inner_text()
    at = (1, 1)
    assert f"{one[at]:.4f} before, {other[at]:.4f} after" in said, said
    page.get_by_role("button", name="All heads of layer 0").click()
    page.get_by_role("button", name="Layer 0, head 7: zero-ablated").wait_for()
    page.get_by_role("button", name="Undo all edits").click()
    page.get_by_role("button", name="Layer 0, head 7: as it is").wait_for()
    page.wait_for_url(lambda url: "edits" not in url)


@browser_test
def test_a_sweep_is_run_and_its_strongest_patch_put_in(visitor: driver.Visitor) -> None:
    page = start(
        visitor,
        text="She ate the apple",
        model="decoder",
        tab="patching",
        patch="Sites",
        donor="She drove the apple",
    )
    page.get_by_role("button", name="Run all patches").click()
    page.get_by_text("All patches are done").wait_for(timeout=60_000)
    page.get_by_role("button", name="Add to the edits").click()
    page.wait_for_url("**edits=PatchSite**")
    (edit,) = from_line(asked_of(page)["edits"][0])
    assert edit.text == "She drove the apple" and edit.token == 2, "the word that was changed"
    page.get_by_text("patched from “She drove the apple”").first.wait_for()
