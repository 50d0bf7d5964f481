"""Experiments, edits and patches in a real browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlparse

import driver

from models.contract.edits import UniformHead, WithoutPositions, from_line

TEXT = "the cat sat on the mat"
pytestmark = driver.MARKS


def start(visitor: driver.Visitor, tab: str = "edit", **asked: str):
    return visitor.visit(tab, ".panel svg", **asked).page


def edits_of(page) -> tuple:
    return from_line(parse_qs(urlparse(page.url).query).get("edits", [""])[0])


def test_an_experiment_is_run_and_another_edit_added_and_removed(visitor: driver.Visitor) -> None:
    page = start(visitor, text=TEXT)
    page.get_by_role("button", name="No positions").last.click()
    page.wait_for_url("**edits=WithoutPositions**")
    page.get_by_role("heading", name="Effect of the edits").wait_for()
    cells = page.locator(".panel .cells").first
    cells.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**layer=**")
    page.get_by_role("button", name="Add an edit").click()
    page.get_by_role("radio", name="uniform").click()
    page.wait_for_url("**brush=uniform**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    add = page.get_by_role("button", name="Add", exact=True)
    add.click()
    page.wait_for_url("**UniformHead**")
    add.wait_for(state="hidden")  # the form is closed: it covers what the edit changed
    first, second = sorted(edits_of(page), key=lambda edit: type(edit).__name__)
    assert isinstance(first, UniformHead) and second == WithoutPositions()
    page.get_by_role("button", name="no positions ✕").click()
    page.wait_for_url(lambda url: "WithoutPositions" not in url)
    page.get_by_role("button", name="Undo all edits").click()
    page.wait_for_url(lambda url: "edits" not in url)


def test_the_strongest_patch_is_added_to_the_edits(visitor: driver.Visitor) -> None:
    chosen = {"model": "decoder", "patch": "Sites"}
    page = start(
        visitor, "patching", text="She ate the apple", donor="She drove the apple", **chosen
    )
    page.get_by_role("button", name="Add this patch to the edits").click()
    page.wait_for_url("**edits=PatchSite**")
    (edit,) = edits_of(page)
    assert edit.text == "She drove the apple" and edit.token == 2, "the word that was changed"
    page.get_by_text("patched from “She drove the apple”").first.wait_for()
