"""The place Predict in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

from driver import MARKS, Visitor
from playwright.sync_api import Locator, expect
from test_browser import FOCUS

from models.runtime.caching import loaded

pytestmark = MARKS

PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


# The sentence of the first panel: a token is a button where it can be selected.
ROW = ".panel >> nth=0 >> .figure >> nth=0"
WRITING = "[data-panel='generation.next_token']"  # the panel of a text that is written
MASKS = """box => [...box.querySelectorAll('g.target')].map(
  (each) => each.getAttribute('aria-label')).filter((label) => label.startsWith('hidden: '))
  .map((label) => label.slice(8))"""
GENERATED = """box => { const texts = [...box.querySelectorAll('text')].map((each) =>
  each.firstChild?.textContent.trim() ?? '');
  return texts.flatMap((text, at) => /^[<>]? ?[\\d.]+%/.test(text) ? [texts[at - 1]] : []) }"""


def visited(visitor: Visitor, tab: str = "word", **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    drawn = WRITING if tab == "generate" else ".panel[data-token]"
    return visitor.visit(tab, drawn, **asked)


def masked(visitor: Visitor) -> list[str]:
    return sorted(visitor.page.locator(ROW).evaluate(MASKS))


def written(visitor: Visitor) -> list[str]:
    return visitor.page.locator(f"{WRITING} >> .figure >> nth=0").evaluate(GENERATED)


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


def press_button(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=name, exact=False).first.click()


def test_words_are_masked_by_clicking_and_by_keyboard(visitor: Visitor) -> None:
    text, river = "The red fox saw a small bird near the river.", "10"
    page = visited(visitor, text=text, token=river).page
    assert masked(visitor) == ["river"], "a page opens with one word masked"
    press_and_wait(visitor, "small", ["small"])
    press_and_wait(visitor, "fox", ["fox"])
    page.get_by_text("Hide several words").click()
    visitor.at_rest()
    press_and_wait(visitor, "small", ["fox", "small"])
    press_and_wait(visitor, "fox", ["fox", "small"])
    expect(token(visitor, "fox")).to_have_attribute("aria-pressed", "true")
    press_and_wait(visitor, "fox", ["small"])
    finding = page.locator(".panel .finding").first
    expect(finding).to_contain_text("For this place the model would write")
    expect(page.locator(ROW)).to_contain_text("sees the word in the box")
    token(visitor, "fox").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    until(visitor, masked, lambda now: now == ["bird", "small"])
    visitor.at_rest()
    assert page.evaluate(FOCUS, "aria-label") == "hidden: bird", "the focus stays where it was"
    page.wait_for_url("**hidden=6.7**")


def test_step_play_pause_and_back(visitor: Visitor) -> None:
    page = visited(visitor, "generate", text=PROMPT, model="decoder", seed="1").page
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
    visitor.until(
        "n => (new URL(location).searchParams.get('said') || "
        "'').split('.').filter(Boolean).length === n",
        len(so_far) - 1,
    )
    ids = [int(id) for id in re.search(r"said=([\d.]+)", page.url).group(1).split(".")]
    assert loaded("decoder").labels(ids) == so_far[:-1]


def test_a_bar_writes_its_token(visitor: Visitor) -> None:
    page = visited(visitor, "generate", text="My sister", model="decoder", temperature="0.4").page
    bars = page.locator(WRITING).locator(".figure").nth(1)
    expect(bars).to_contain_text("temperature 0.4")
    label = bars.get_by_role("button").nth(2).locator("text").first.text_content().strip()
    bars.get_by_role("button").first.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    until(visitor, written, lambda now: now == [label.removesuffix(" (next)")])
    visitor.at_rest()
    page.wait_for_url("**said=**")
