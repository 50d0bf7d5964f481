"""The Predictions page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from conftest import AWKWARD, read_once
from driver import MARKS, Visitor

from explorer.state import models

PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


# ---- journeys in a browser ---------------------------------------------------


def journey(test: Callable) -> Callable:
    for mark in MARKS:
        test = mark(test)
    return test


# The sentence itself; a neuron has a strip of its own further down.
STRIP = ":is(.st-key-sentence, .st-key-draft-text) .strip"


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    visitor.page.goto(f"{visitor.server}/predictions?{urlencode(asked)}")
    visitor.page.wait_for_selector(":is(.bars, .panel)[data-token]")
    at_rest(visitor)
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = visitor.wrong()
    return visitor


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def hidden(visitor: Visitor) -> list[str]:
    return visitor.page.locator(f"{STRIP} .hidden .under").all_inner_texts()


def written(visitor: Visitor) -> list[str]:
    return visitor.page.locator(f"{STRIP} .said .label").all_inner_texts()


def wait_until_hidden(visitor: Visitor, words: list[str]) -> None:
    for word in words:
        visitor.page.wait_for_selector(f"{STRIP} .hidden .under:text-is('{word}')")
    visitor.page.locator(f"{STRIP} .hidden").nth(len(words)).wait_for(state="detached")
    at_rest(visitor)
    assert sorted(hidden(visitor)) == sorted(words)


def focused(visitor: Visitor, attribute: str) -> str | None:
    return visitor.page.evaluate(
        "name => { let a = document.activeElement; while (a?.shadowRoot) a = "
        "a.shadowRoot.activeElement; return a?.getAttribute(name) }",
        attribute,
    )


def press_button(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_role("button", name=name, exact=False).first.click()


@journey
def test_mask_by_clicking_and_by_keyboard_and_the_link_opens_the_same(
    visitor: Visitor, browser: object, server: str
) -> None:
    text, river = "The red fox saw a small bird near the river.", "10"
    page = visited(visitor, text=text, token=river).page
    assert hidden(visitor) == ["river"], "a page opens with one word hidden"
    page.locator(f"{STRIP} .token", has_text="fox").click()
    wait_until_hidden(visitor, ["fox"])
    page.locator(f"{STRIP} .token", has_text="small").click()
    wait_until_hidden(visitor, ["fox", "small"])
    page.locator(f"{STRIP} .token", has_text="fox").click()
    page.wait_for_selector(f"{STRIP} .says:has-text('“fox”')")
    assert sorted(hidden(visitor)) == ["fox", "small"], (
        "the first click on a hidden word looks at it"
    )
    page.locator(f"{STRIP} .token", has_text="fox").click()
    wait_until_hidden(visitor, ["small"])
    assert "seen by the model" in page.locator(f"{STRIP} .says").inner_text()
    page.locator(f"{STRIP} .token", has_text="fox").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    wait_until_hidden(visitor, ["small", "bird"])
    assert focused(visitor, "data-at") == "7", "the focus stays where it was"
    page.wait_for_url("**hidden=6.7**")
    labels = page.locator(".panel").first.inner_text()
    other = visited(
        Visitor(browser, server),
        **dict(pair.split("=") for pair in page.url.split("?")[1].replace("+", " ").split("&")),
    )
    assert (
        sorted(hidden(other)) == ["bird", "small"]
        and other.page.locator(".panel").first.inner_text() == labels
    )
    other.leave()


@journey
def test_step_play_pause_and_back(visitor: Visitor) -> None:
    page = visited(visitor, text=PROMPT, model="decoder", seed="1").page
    press_button(visitor, "Step")
    page.wait_for_selector(f"{STRIP} .said")
    press_button(visitor, "Play")
    page.locator(f"{STRIP} .said").nth(2).wait_for()
    press_button(visitor, "Pause")
    page.get_by_role("button", name="Play").first.wait_for()
    at_rest(visitor)
    so_far = written(visitor)
    page.wait_for_timeout(1500)
    assert written(visitor) == so_far, "after Pause nothing more is written"
    press_button(visitor, "Back")
    page.locator(f"{STRIP} .said").nth(len(so_far) - 1).wait_for(state="detached")
    assert written(visitor) == so_far[:-1]
    page.wait_for_function(
        "n => (new URL(location).searchParams.get('said') || "
        "'').split('.').filter(Boolean).length === n",
        arg=len(so_far) - 1,
    )
    ids = [int(id) for id in re.search(r"said=([\d.]+)", page.url).group(1).split(".")]
    assert models.labels("decoder", ids) == so_far[:-1]


@journey
def test_a_slider_changes_the_bars_and_a_bar_writes_its_token(visitor: Visitor) -> None:
    page = visited(visitor, text="My sister", model="decoder", temperature="0.4").page
    block = page.locator(".bars").first

    def drawn() -> list[str]:
        return block.locator(".row:not(.heads) .number:last-child").all_inner_texts()

    before, picture = drawn(), block.get_attribute("data-token")
    page.get_by_role("slider").first.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    page.wait_for_url("**temperature=0.2**")
    page.wait_for_function(
        "old => [...document.querySelectorAll('*')].every(e => "
        "e.shadowRoot?.querySelector('.bars')?.dataset.token !== old)",
        arg=picture,
    )
    assert float(drawn()[0]) > float(before[0])
    row = block.locator("button.row").nth(2)
    label = row.locator(".label").inner_text()
    block.locator("button.row").first.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(f"{STRIP} .said")
    assert written(visitor) == [label]
    at_rest(visitor)
    page.wait_for_url("**said=**")


@journey
@pytest.mark.parametrize("name", ["empty", "letters", "marks"])
def test_hostile_text_is_drawn_as_it_is_and_nothing_runs(name: str, visitor: Visitor) -> None:
    """In the table of the lens, and in the text that is written."""
    asked = urlencode({"text": AWKWARD[name], "model": "decoder"})
    page = visitor.page
    page.goto(f"{visitor.server}/predict?tab=lens&{asked}")
    page.wait_for_selector(".panel .pane .body text")
    at_rest(visitor)
    labels = read_once("decoder").record(AWKWARD[name]).streams[0].tokens
    shown = page.locator(".panel .pane .heads text").evaluate_all(
        "all => all.map((each) => each.querySelector('title')?.textContent ?? each.textContent)"
    )
    assert shown and all(label in labels for label in shown)
    assert page.title() == "Predict · Headlight"
    page.goto(f"{visitor.server}/predict?tab=generate&{asked}")
    page.wait_for_selector(f"{STRIP} .label")
    at_rest(visitor)
    assert tuple(page.locator(f"{STRIP} .label").all_inner_texts()) == labels
    press_button(visitor, "Step")
    page.wait_for_selector(f"{STRIP} .said")
    assert page.title() == "Predict · Headlight"


@journey
def test_a_phone_shows_it_without_sideways_scrolling(browser: object, server: str) -> None:
    phone = Visitor(
        browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    for asked in ({}, {"model": "decoder"}):
        page = visited(phone, **asked).page
        assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
        box = page.locator(".panel .figure svg").first.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert not phone.errors
    phone.leave()
