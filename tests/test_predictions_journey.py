"""The place Predict in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

from conftest import AWKWARD, read_once
from driver import MARKS, Visitor
from playwright.sync_api import Locator, expect

from explorer.state import models

pytestmark = MARKS

PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


# The sentence of the first panel: a token is a button where it can be selected.
ROW = ".panel >> nth=0 >> .figure >> nth=0"
MASKS = """box => [...box.querySelectorAll('g.target')].map(
  (each) => each.getAttribute('aria-label')).filter((label) => label.startsWith('[MASK] '))
  .map((label) => label.slice(7))"""
GENERATED = """box => { const texts = [...box.querySelectorAll('text')].map((each) =>
  each.firstChild?.textContent.trim() ?? '');
  return texts.flatMap((text, at) => /^[<>]? ?[\\d.]+%/.test(text) ? [texts[at - 1]] : []) }"""


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    return visitor.visit("predictions", ".panel[data-token]", **asked)


def masked(visitor: Visitor) -> list[str]:
    return sorted(visitor.page.locator(ROW).evaluate(MASKS))


def written(visitor: Visitor) -> list[str]:
    return visitor.page.locator(ROW).evaluate(GENERATED)


def until(visitor: Visitor, read: Callable[[Visitor], list[str]], is_so: Callable) -> list[str]:
    """What is read of the page once it is so."""
    for _ in range(200):
        if is_so(now := read(visitor)):
            return now
        visitor.page.wait_for_timeout(50)
    raise AssertionError(now)


def token(visitor: Visitor, word: str) -> Locator:
    return visitor.page.locator(ROW).get_by_role("button", name=re.compile(rf"\b{word}$"))


def press_and_wait(visitor: Visitor, word: str, words: list[str]) -> None:
    token(visitor, word).click()
    until(visitor, masked, lambda now: now == sorted(words))
    visitor.at_rest()


def focused(visitor: Visitor, attribute: str) -> str | None:
    return visitor.page.evaluate(
        "name => { let a = document.activeElement; while (a?.shadowRoot) a = "
        "a.shadowRoot.activeElement; return a?.getAttribute(name) }",
        attribute,
    )


def press_button(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=name, exact=False).first.click()


def test_mask_by_clicking_and_by_keyboard_and_the_link_opens_the_same(
    visitor: Visitor, browser: object, server: str
) -> None:
    text, river = "The red fox saw a small bird near the river.", "10"
    page = visited(visitor, text=text, token=river).page
    assert masked(visitor) == ["river"], "a page opens with one word masked"
    press_and_wait(visitor, "fox", ["fox"])
    press_and_wait(visitor, "small", ["fox", "small"])
    press_and_wait(visitor, "fox", ["fox", "small"])
    expect(token(visitor, "fox")).to_have_attribute("aria-pressed", "true")
    press_and_wait(visitor, "fox", ["small"])
    finding = page.locator(".panel .finding").first
    expect(finding).to_contain_text("sees token 3, “fox”")
    token(visitor, "fox").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    until(visitor, masked, lambda now: now == ["bird", "small"])
    visitor.at_rest()
    assert focused(visitor, "aria-label") == "[MASK] bird", "the focus stays where it was"
    page.wait_for_url("**hidden=6.7**")
    labels = page.locator(".panel").first.inner_text()
    other = visited(
        Visitor(browser, server),
        **dict(pair.split("=") for pair in page.url.split("?")[1].replace("+", " ").split("&")),
    )
    assert masked(other) == ["bird", "small"]
    assert other.page.locator(".panel").first.inner_text() == labels
    other.leave()


def test_step_play_pause_and_back(visitor: Visitor) -> None:
    page = visited(visitor, text=PROMPT, model="decoder", seed="1").page
    press_button(visitor, "Step")
    until(visitor, written, lambda now: len(now) == 1)
    press_button(visitor, "Play")
    until(visitor, written, lambda now: len(now) >= 4)
    press_button(visitor, "Pause")
    page.get_by_role("button", name="Play").first.wait_for()
    visitor.at_rest()
    so_far = written(visitor)
    page.wait_for_timeout(1500)
    assert written(visitor) == so_far, "after Pause nothing more is written"
    press_button(visitor, "Back")
    until(visitor, written, lambda now: now == so_far[:-1])
    page.wait_for_function(
        "n => (new URL(location).searchParams.get('said') || "
        "'').split('.').filter(Boolean).length === n",
        arg=len(so_far) - 1,
    )
    ids = [int(id) for id in re.search(r"said=([\d.]+)", page.url).group(1).split(".")]
    assert models.labels("decoder", ids) == so_far[:-1]


def test_a_slider_changes_the_bars_and_a_bar_writes_its_token(visitor: Visitor) -> None:
    page = visited(visitor, text="My sister", model="decoder", temperature="0.4").page
    bars = page.locator(".panel").first.locator(".figure").nth(1)
    before = bars.inner_text()
    assert "temperature 0.4" in before
    page.get_by_role("button", name="Sampling").click()
    page.get_by_role("slider").first.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url("**temperature=0.2**")
    expect(bars).to_contain_text("temperature 0.2")
    visitor.at_rest()
    page.keyboard.press("Escape")
    label = bars.get_by_role("button").nth(2).locator("text").first.text_content().strip()
    bars.get_by_role("button").first.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    until(visitor, written, lambda now: now == [label.removesuffix(" (next)")])
    visitor.at_rest()
    page.wait_for_url("**said=**")


def test_hostile_text_is_drawn_as_it_is_and_nothing_runs(visitor: Visitor) -> None:
    """In the table of the lens, and in the text that is written."""
    text = f"{AWKWARD['letters']} {AWKWARD['marks']}"
    asked = urlencode({"text": text, "model": "decoder"})
    page = visitor.page
    page.goto(f"{visitor.server}/predict?tab=lens&{asked}")
    page.wait_for_selector(".panel .pane .body text")
    visitor.at_rest()
    labels = read_once("decoder").record(text).streams[0].tokens
    shown = page.locator(".panel .pane .heads text").evaluate_all(
        "all => all.map((each) => each.querySelector('title')?.textContent ?? each.textContent)"
    )
    assert shown and all(label in labels for label in shown)
    assert page.title() == "Predict · Headlight"
    page.goto(f"{visitor.server}/predict?tab=generate&{asked}")
    page.locator(ROW).locator("text").first.wait_for()
    visitor.at_rest()
    texts = (
        page.locator(ROW)
        .locator("text")
        .evaluate_all(
            "all => all.map((each) => each.querySelector('title')?.textContent ?? each.textContent)"
        )
    )
    assert tuple(texts) == labels
    press_button(visitor, "Step")
    until(visitor, written, lambda now: len(now) == 1)
    assert page.title() == "Predict · Headlight"
