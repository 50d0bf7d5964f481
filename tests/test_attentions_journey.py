"""Cross-attention, a causal mask and a rectangle in a real browser."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import needs_smollm2, read_once
from driver import CELLS, GRID, HEAD, IMAGE, MARKS, Visitor
from playwright.sync_api import expect
from tolerances import FOUR_DECIMALS

from models.example_texts import DEFAULT_TEXT

pytestmark = MARKS


def pressed(visitor: Visitor) -> list[bool]:
    """Which words above the head's picture are held."""
    return visitor.page.locator(f"{HEAD} .token").evaluate_all(
        "all => all.map(each => each.getAttribute('aria-pressed') === 'true')"
    )


def test_choose_cross_attention_and_a_source_token_and_find_them_again(visitor: Visitor) -> None:
    page = visitor.open("?view=Matrix&model=translator&attention=decoder+self").page
    picture = visitor.picture()
    page.get_by_text("Cross-attention", exact=True).click()
    page.wait_for_url("**attention=cross**")
    page.wait_for_selector(f"{GRID}[data-token]:not([data-token='{picture}'])")
    visitor.drawn()
    recording = read_once("translator").record(DEFAULT_TEXT)
    cross = recording.attention[2]
    targets, sources = (recording.stream(name).tokens for name in ("decoder", "encoder"))
    assert tuple(visitor.tokens()[len(targets) :]) == sources
    assert tuple(visitor.tokens()[: len(targets) - 1]) == targets[1:]

    token = page.locator(f"{HEAD} .token")
    token.nth(len(targets) + 2).click()
    page.wait_for_url("**source=2**")
    visitor.drawn()
    page.mouse.move(5, 5)
    chosen = page.locator(".cell[aria-pressed=true]").get_attribute("aria-label")
    layer, head = map(int, re.findall(r"\d+", chosen)[:2])
    says, held = visitor.said(), pressed(visitor)
    assert says.startswith(f"{sources[2]} is attended to by → ")
    assert f"{cross.pattern[layer, head][:, 2].max():.2f}" in says
    assert held == [at == len(targets) + 2 for at in range(len(held))]
    page.reload()
    visitor.drawn()
    page.mouse.move(5, 5)
    assert (visitor.said(), pressed(visitor)) == (says, held)
    token.nth(1).click()
    page.wait_for_url("**token=1**")
    visitor.drawn()
    assert "source=" not in page.url
    page.keyboard.press("Escape")
    page.wait_for_url("**token=every**")
    visitor.drawn()
    thumb = page.locator(".cell .thumb").first.bounding_box()
    # A rectangle is drawn as one; a thumbnail of some 60 pixels a side has whole ones.
    rows, columns = cross.allowed[0].shape
    assert thumb["width"] / thumb["height"] == pytest.approx(columns / rows, rel=0.05)


def test_a_later_token_is_hatched_and_said_to_be_not_allowed(visitor: Visitor) -> None:
    page = visitor.open("?view=Matrix&model=decoder&layer=1&head=2").page
    attention = read_once("decoder").record(DEFAULT_TEXT).attention[0]
    pattern, n = attention.pattern[1, 2], len(attention.allowed[0])
    visitor.point_at(2, 5, pattern.shape)
    assert visitor.weight() == "not allowed: a later token"
    visitor.point_at(5, 2, pattern.shape)
    assert float(visitor.weight()) == pytest.approx(float(pattern[5, 2]), abs=FOUR_DECIMALS)
    alpha = np.array(visitor.pixels(IMAGE)).reshape(n, n, 4)[..., 3]
    np.testing.assert_array_equal(alpha > 0, attention.allowed[0])
    thumb = page.locator(".cell .thumb").nth(8)
    box = thumb.bounding_box()
    thumb.hover(position={"x": 5.5 * box["width"] / n, "y": 2.5 * box["height"] / n})
    assert page.locator(f"{GRID} .finding").inner_text().endswith("not allowed: a later token")


def test_no_head_moves_while_the_pointer_goes_over_them(visitor: Visitor) -> None:
    visitor.open()
    page = visitor.page
    thumbs, finding = page.locator(".cell .thumb"), page.locator(f"{GRID} .finding")
    page.mouse.move(5, 5)
    before = [thumbs.nth(at).bounding_box() for at in (0, 24)]
    for at in (9, 22, 31):
        box = thumbs.nth(at).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(finding).to_contain_text(f"Layer {at // 8}, head {at % 8}: ")
        assert [thumbs.nth(at).bounding_box() for at in (0, 24)] == before
    page.mouse.move(5, 5)
    expect(finding).to_contain_text("attention sinks")
    assert [thumbs.nth(at).bounding_box() for at in (0, 24)] == before


def test_keys_walk_the_rectangle_and_a_phone_holds_it(phone: Visitor) -> None:
    page = phone.open("?view=Matrix&model=translator&attention=cross&layer=1&head=2").page
    pattern = read_once("translator").record(DEFAULT_TEXT).attention[2].pattern[1, 2]
    queries, keys = pattern.shape
    page.get_by_role("button", name="Show matrix").tap()
    page.locator(CELLS).focus()
    page.keyboard.press("ArrowRight")
    for key, times in (("ArrowDown", queries + 3), ("ArrowRight", keys + 3)):
        for _ in range(times):
            page.keyboard.press(key)
    assert float(phone.weight()) == pytest.approx(float(pattern[-1, -1]), abs=FOUR_DECIMALS)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**token={queries - 1}**")
    page.locator(f"{HEAD} .token").nth(queries).focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**source=2**")


@needs_smollm2
def test_the_heads_that_rest_on_sinks_open_by_a_key_and_by_a_press(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/?model=smollm2&view=Matrix&text=The+cat+sat+on+the+mat.")
    page.wait_for_selector(f"{GRID}[data-token]", timeout=300_000)  # it is loaded first
    visitor.drawn()
    cells, button = page.locator(f"{GRID} .cell"), page.locator(f"{GRID} .more")
    few = cells.count()
    assert 0 < few <= 45
    expect(button).to_have_text(
        re.compile(r"^Show all 270 heads, those on sinks \(2\d\d\) among them")
    )
    for panel in (GRID, HEAD):
        box = page.locator(panel).bounding_box()
        assert box["y"] + box["height"] <= 900, panel
    cells.first.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(cells).to_have_count(270)
    expect(button).to_be_focused()
    page.keyboard.press("Space")
    expect(cells).to_have_count(few)
    button.click()
    expect(cells).to_have_count(270)
    assert not visitor.wrong()
