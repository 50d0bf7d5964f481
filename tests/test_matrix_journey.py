"""The matrix of a head in a real browser: its pixels, what hover says, arrow keys, and choosing
a token."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import read_once
from driver import CELLS, GRID, HEAD, HELD, HELD_AT, MARKS, Visitor
from playwright.sync_api import expect
from tolerances import FOUR_DECIMALS

from models.contract.recording import Recording

pytestmark = MARKS


TEXT = "Ram pushed Hari and Hari pushed Ram."


def recorded(text: str) -> Recording:
    return read_once("encoder").record(text)


def let_go(visitor: Visitor) -> None:
    """Let go of the word that a finding holds, where there is one."""
    held = visitor.page.locator(HELD)
    if held.count():
        held.first.click()
        held.first.wait_for(state="detached")
        visitor.drawn()


def test_pixels_hover_and_arrow_keys_give_the_weights(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=1&head=2", TEXT)
    let_go(visitor)
    page, recording = visitor.page, recorded(TEXT)
    tokens, patterns = recording.streams[0].tokens, recording.attention[0].pattern
    n, pattern = len(tokens), patterns[1, 2]
    page.locator(".cell").nth(10).scroll_into_view_if_needed()
    image = visitor.pixels(".cell >> nth=10 >> image")
    darkness = -np.array(image, dtype=float).reshape(-1, 4)[:, :3].sum(axis=1)
    order = np.argsort(pattern.ravel())
    low, high = order[: len(order) // 4], order[-5:]
    assert darkness[high].min() > darkness[low].max(), "on a light page a larger weight is darker"
    ranks = pattern.ravel().argsort().argsort(), darkness.argsort().argsort()
    assert np.corrcoef(*ranks)[0, 1] > 0.9
    # In the grid hover names layer, head, query, key and value.
    thumb = page.locator(".cell").nth(9).locator(".thumb").bounding_box()
    query, key = 2, 5
    page.mouse.move(
        thumb["x"] + (key + 0.5) * thumb["width"] / n,
        thumb["y"] + (query + 0.5) * thumb["height"] / n,
    )
    said = page.locator(f"{GRID} .finding").inner_text()
    layer, head = divmod(9, recording.model.n_head)
    assert said.startswith(f"Layer {layer}, head {head}: ")
    assert f"{tokens[query]} → {tokens[key]}" in said
    weights = patterns[layer, head]
    assert abs(float(said.split()[-1]) - weights[query, key]) <= 0.004 * weights.max() + 0.0006
    # In the matrix it gives the exact weight, also beside the pointer, inside the window.
    for query, key in ((0, n - 1), (3, 1), (n - 1, 4)):
        x, y = visitor.point_at(query, key, pattern.shape)
        said = visitor.weight()
        assert float(said) == pytest.approx(float(pattern[query, key]), abs=FOUR_DECIMALS)
        tag = page.locator(f"{HEAD} .tip")
        assert tag.inner_text() == f"query {tokens[query]} → key {tokens[key]}: {said}"
        at, window = tag.bounding_box(), page.viewport_size
        assert at["x"] >= 0 and at["x"] + at["width"] <= window["width"]
        assert at["y"] >= 0 and at["y"] + at["height"] <= window["height"]
        assert (
            not at["x"] <= x <= at["x"] + at["width"] or not at["y"] <= y <= at["y"] + at["height"]
        )
    # Keys read cell by cell, and Enter holds a row.
    page.mouse.move(5, 5)
    page.locator(CELLS).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert float(visitor.weight()) == pytest.approx(float(pattern[2, 2]), abs=FOUR_DECIMALS)
    page.keyboard.press("Enter")
    page.wait_for_url("**token=2**")
    visitor.drawn()
    page.keyboard.press("ArrowDown")
    assert visitor.weight(), "the matrix keeps the focus"


def test_of_a_long_text_hover_is_right_and_any_token_can_be_chosen(visitor: Visitor) -> None:
    text = " ".join(["the cat saw a dog near the old house and"] * 20) + " incomprehensibilities."
    visitor.open("?view=Matrix&layer=0&head=1&token=7").paste(text)
    recording, page = recorded(text), visitor.page
    tokens = list(recording.streams[0].tokens)
    pattern = recording.attention[0].pattern[0, 1]
    assert visitor.tokens() == tokens
    held = int(page.locator(HELD).evaluate(HELD_AT))
    best = int(pattern[held].argmax())
    for query, key in ((held, best), (held - 3, best - 2), (held - 9, best - 1)):
        visitor.point_at(query, key, pattern.shape)
        said = visitor.weight()
        value, _, width = said.removeprefix("≈ ").removeprefix("< ").partition(" ± ")
        off = float(width or FOUR_DECIMALS) + FOUR_DECIMALS
        assert float(value) == pytest.approx(float(pattern[query, key]), abs=off), said
    # The same place as before the text changed, and the last long word.
    page.wait_for_url(lambda url: "token=7" not in url)
    for token in (page.locator(f"{HEAD} .token").nth(7), page.locator(f"{HEAD} .token").last):
        token.click()
        expect(token).to_have_attribute("aria-pressed", "true")
    assert visitor.said().startswith(f"{tokens[-1]} attends to ")


def test_arrow_keys_go_on_from_their_cell_when_the_server_answers(visitor: Visitor) -> None:
    """The server's answer to a word that was let go comes between two keys."""
    visitor.open("?view=Matrix&layer=1&head=2&token=1", TEXT)
    page, pattern = visitor.page, recorded(TEXT).attention[0].pattern[1, 2]
    page.evaluate(
        """() => { const send = WebSocket.prototype.send; window.late = [];
        WebSocket.prototype.send = function (data) { late.push(() => send.call(this, data)); }; }"""
    )
    page.locator(HELD).click()
    page.locator(CELLS).focus()
    for key in ("ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.locator(CELLS).evaluate("cells => (cells.dataset.old = '')")
    page.evaluate("() => late.forEach((send) => send())")
    page.wait_for_selector(f"{CELLS}[data-old]", state="detached")
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    weight = float(visitor.weight())
    assert weight == pytest.approx(float(pattern[2, 2]), abs=FOUR_DECIMALS)
