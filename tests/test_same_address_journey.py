"""The same address draws the same picture, in a real browser: loaded, reached by a press, or by the
back button."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from urllib.parse import urlsplit

import pytest
from driver import Visitor, browser_test
from playwright.sync_api import Page

from explorer.components import bundle
from explorer.text import places

TEXTS = {
    "encoder": "The animal didn't cross the street because it was too tired.",
    "decoder": "Shyam was born in Nepal and lived there until he was fluent.",
    "translator": "The cat greeted the neighbours.",
    "induction": "The cat greeted the neighbours.",
}
# Panels of each tab but Flow, whose picture moves, and of what has none.
WITHOUT = {"flow", "live", "lessons", "classroom"}
TABS = [tab for tab in places.ROWS if tab not in WITHOUT]
OF_OTHERS = [("decoder", tab) for tab in ("heads", "residual", "attribution", "generate")]
OF_OTHERS += [("translator", tab) for tab in ("heads", "weight", "translate", "lens")]
OF_OTHERS += [("induction", "twins")]  # two models without common checkpoints
CASES = [("encoder", tab) for tab in TABS] + OF_OTHERS


@pytest.fixture
def other(browser: object, server: str) -> Iterator[Visitor]:
    """A visit that loads what another has reached."""
    one = Visitor(browser, server)
    yield one
    one.leave()


# What is pressed on a tab, where it is there: menus of the bar, parts of pictures, sliders.
MENUS = {"selected_query": 5, "selected_key": 2, "selected_layer": 1, "selected_head": 2}
PARTS = {
    "part": ".panel g.button",
    "cells": ".panel [data-cells]",
    "next": ".slider button >> text=Next",
}
PARTS["step"] = ".slider input"
# Every panel: what Python sent it, and what stands there, but for where the keyboard is.
SEEN = """async (mount) => {
  const { viewOf } = await import(mount);
  const found = [];
  const show = async (root) => {
    const view = root && viewOf(root);
    if (!view) return;
    const copy = root.cloneNode(true);
    const fields = root.querySelectorAll("input");
    for (const [at, each] of copy.querySelectorAll("input").entries())
      each.setAttribute("value", fields[at].value);
    for (const each of copy.querySelectorAll(".finding, .tip, .means"))
      each.removeAttribute("style");
    for (const each of copy.querySelectorAll("*"))
      for (const name of ["tabindex", "data-cells"]) each.removeAttribute(name);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", view.data));
    const html = copy.outerHTML.replaceAll(' style=""', "").replaceAll("><", ">\\n<");
    found.push({ name: root.dataset.panel, sent: [...digest].join(), html });
  };
  const walk = async (node) => {
    for (const each of node.children) {
      if (each.shadowRoot) await show(each.shadowRoot.querySelector(".panel"));
      await walk(each);
    }
  };
  await walk(document.querySelector("[data-testid=stMain]"));
  return found;
}"""
PANEL = ".panel[data-token]"
CALM = 6  # looks at a page at which nothing runs, 100 ms apart
MODULE = f"headlight/{bundle.folder()}/mount.js"


BUSY = """() => document.documentElement.hasAttribute("data-headlight-ahead")
  || document.querySelector("[data-test-script-state=running]") !== null
  || document.body.textContent.includes("being tested")"""


def calm(visitor: Visitor) -> None:
    """Wait until for a while no run is on its way, no view is ahead and no claim is tested."""
    page, looks = visitor.page, 0
    while looks < CALM:
        page.wait_for_timeout(100)
        visitor.at_rest()
        looks = 0 if page.evaluate(BUSY) else looks + 1
    page.mouse.move(1, 1)


def seen(visitor: Visitor) -> list[dict]:
    """The panels on the page."""
    calm(visitor)
    return visitor.page.evaluate(SEEN, f"{visitor.server}/{MODULE}")


def differences(one: list[dict], other: list[dict]) -> list[str]:
    """What two drawings of a page do not share."""
    if [each["name"] for each in one] != [each["name"] for each in other]:
        return [f"panels: {[each['name'] for each in one]}, {[each['name'] for each in other]}"]
    found = []
    for a, b in zip(one, other):
        if a["sent"] != b["sent"]:
            found.append(f"{a['name']}: another payload")
        lines = unified_diff(a["html"].split("\n"), b["html"].split("\n"), n=0, lineterm="")
        found += [f"{a['name']}: {line[:300]}" for line in list(lines)[2:8]]
    return found


def chosen(page: Page, key: str, at: int) -> bool:
    """Choose an option of a menu of the bar; False where there is none."""
    field = page.locator(f".st-key-{key} input").first
    if not field.count() or not field.is_visible():
        return False
    field.scroll_into_view_if_needed()
    field.click()
    options = page.locator("[role=option]")
    options.first.wait_for()
    options.nth(min(at, options.count() - 1)).click()
    return True


@browser_test
@pytest.mark.in_turn(6)
@pytest.mark.parametrize(("model", "tab"), CASES)
def test_the_same_address_draws_the_same_picture(
    visitor: Visitor, other: Visitor, model: str, tab: str
) -> None:
    page = visitor.page
    start = {"text": TEXTS[model], "model": model, "layer": "0", "head": "1", "token": "3"}
    visitor.visit(tab, PANEL, **start)

    def same(how: str) -> None:
        there = seen(visitor)
        other.page.goto(page.url)
        other.page.wait_for_selector(PANEL)
        problems = differences(seen(other), there)
        assert there and not problems, (how, page.url, problems)

    same("loaded")
    for key, at in MENUS.items():
        if chosen(page, key, at):
            calm(visitor)
    same("chosen in the menus")
    address = page.url
    for what, part in PARTS.items():
        where = page.locator(part).last if what == "part" else page.locator(part).first
        if not where.count() or not where.is_visible():
            continue
        stops = page.evaluate("history.length")
        where.click(force=True)
        calm(visitor)
        if urlsplit(page.url).path != urlsplit(address).path or not page.locator(PANEL).count():
            page.goto(address)
            continue
        same(f"pressed: {what}")
        if page.evaluate("history.length") > stops:  # else it took the place of the last one
            page.go_back()
            same(f"back from a press: {what}")
        page.goto(address)
    page.locator("[role=tab][aria-selected=false]").first.click()
    page.wait_for_url(lambda url: url != address)
    calm(visitor)
    page.go_back()
    page.wait_for_url(address)
    page.wait_for_selector(PANEL)
    same("back from another tab")
