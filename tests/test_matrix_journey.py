"""The matrix of a head in a real browser: its pixels, what hover says, arrow keys, and choosing
a token."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import read_once
from driver import CELLS, GRID, HEAD, HELD, HELD_AT, MARKS, Visitor
from playwright.sync_api import expect
from tolerances import FOUR_DECIMALS

from models.recording import Recording

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


def test_pixels_of_a_thumbnail_are_the_matrix(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=1&head=2", TEXT)
    let_go(visitor)
    visitor.page.locator(".cell").nth(10).scroll_into_view_if_needed()
    image = visitor.pixels(".cell >> nth=10 >> image")
    pixels = np.array(image).reshape(-1, 4)[:, :3].sum(axis=1)
    pattern = recorded(TEXT).attention[0].pattern[1, 2].ravel()
    darkness = -np.array(pixels, dtype=float)
    order = np.argsort(pattern)
    low, high = order[: len(order) // 4], order[-5:]
    assert darkness[high].min() > darkness[low].max(), "on a light page a larger weight is darker"
    assert np.corrcoef(pattern.argsort().argsort(), darkness.argsort().argsort())[0, 1] > 0.9


def test_hover_in_the_grid_names_layer_head_query_key_and_value(visitor: Visitor) -> None:
    visitor.open("?view=Matrix").paste(TEXT)
    let_go(visitor)
    recording = recorded(TEXT)
    tokens, n = recording.streams[0].tokens, len(recording.streams[0].tokens)
    thumb = visitor.page.locator(".cell").nth(9).locator(".thumb").bounding_box()
    query, key = 2, 5
    visitor.page.mouse.move(
        thumb["x"] + (key + 0.5) * thumb["width"] / n,
        thumb["y"] + (query + 0.5) * thumb["height"] / n,
    )
    said = visitor.page.locator(f"{GRID} .finding").inner_text()
    layer, head = divmod(9, recording.model.n_head)
    weight = recording.attention[0].pattern[layer, head, query, key]
    assert (
        said.startswith(f"L{layer} H{head}") and f"{tokens[query]} attends to {tokens[key]}" in said
    )
    assert (
        abs(float(said.split()[-1]) - weight)
        <= 0.004 * recording.attention[0].pattern[layer, head].max() + 0.0006
    )


def test_hover_in_the_matrix_gives_the_exact_weight(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=1&head=2", TEXT)
    recording = recorded(TEXT)
    n = len(recording.streams[0].tokens)
    visitor.page.locator(CELLS).scroll_into_view_if_needed()
    box = visitor.page.locator(CELLS).bounding_box()
    for query, key in ((0, n - 1), (3, 1), (n - 1, 4)):
        x = box["x"] + (key + 0.5) * box["width"] / n
        y = box["y"] + (query + 0.5) * box["height"] / n
        visitor.page.mouse.move(x, y)
        said = visitor.weight()
        assert float(said) == pytest.approx(
            float(recording.attention[0].pattern[1, 2, query, key]), abs=FOUR_DECIMALS
        )
        # The same beside the pointer, inside the window and not under it.
        tag = visitor.page.locator(f"{HEAD} .tip")
        tokens = recording.streams[0].tokens
        assert tag.inner_text() == f"query {tokens[query]} → key {tokens[key]}: {said}"
        at, window = tag.bounding_box(), visitor.page.viewport_size
        assert at["x"] >= 0 and at["x"] + at["width"] <= window["width"]
        assert at["y"] >= 0 and at["y"] + at["height"] <= window["height"]
        assert (
            not at["x"] <= x <= at["x"] + at["width"] or not at["y"] <= y <= at["y"] + at["height"]
        )


def test_hover_in_a_long_text_is_right_within_what_it_says(visitor: Visitor) -> None:
    text = " ".join(["the cat saw a dog near the old house and"] * 20)
    visitor.open("?view=Matrix&layer=0&head=1&token=7").paste(text)
    recording = recorded(text)
    pattern, n = recording.attention[0].pattern[0, 1], len(recording.streams[0].tokens)
    visitor.page.locator(CELLS).scroll_into_view_if_needed()
    box = visitor.page.locator(CELLS).bounding_box()
    held = int(visitor.page.locator(HELD).evaluate(HELD_AT))
    best = int(pattern[held].argmax())
    for query, key in ((held, best), (held - 3, best - 2), (held - 9, best - 1)):
        visitor.page.mouse.move(
            box["x"] + (key + 0.5) * box["width"] / n, box["y"] + (query + 0.5) * box["height"] / n
        )
        said = visitor.weight()
        value, _, width = said.removeprefix("≈ ").removeprefix("< ").partition(" ± ")
        assert float(value) == pytest.approx(
            float(pattern[query, key]), abs=float(width or FOUR_DECIMALS) + FOUR_DECIMALS
        ), (query, key, said)


def test_of_a_long_text_every_word_can_be_chosen(visitor: Visitor) -> None:
    """The last of many words too, an uncommonly long one among them."""
    text = " ".join(["the cat saw a dog near the old house"] * 20) + " incomprehensibilities."
    tokens = list(recorded(text).streams[0].tokens)
    visitor.open("?view=Matrix&layer=0&head=1").paste(text)
    assert visitor.tokens() == tokens
    last = visitor.page.locator(f"{HEAD} .token").last
    last.click()
    expect(last).to_have_attribute("aria-pressed", "true")
    assert visitor.said().startswith(f"{tokens[-1]} attends to ")


def test_back_shows_what_was_there_before(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=0&head=0")
    visitor.paste(TEXT)
    visitor.page.wait_for_url("**text=Ram**")
    visitor.page.locator(".cell").nth(13).click()
    visitor.page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 5')")
    first = ".cell[aria-pressed=true][aria-label^='Layer 0, head 0']"
    visitor.page.go_back()
    visitor.page.wait_for_selector(first)
    assert "Layer 0, head 0" in visitor.title() and "Ram" in visitor.tokens()
    visitor.page.go_back()
    visitor.page.wait_for_selector(f"{HEAD} .token:has-text('animal')")
    visitor.page.wait_for_selector(first)


def test_a_token_can_be_chosen_again_after_the_text_changed(visitor: Visitor) -> None:
    visitor.open("?view=Matrix")
    visitor.page.locator(".token").nth(3).click()
    visitor.page.wait_for_url("**token=3**")
    visitor.paste(TEXT)
    visitor.page.wait_for_url(lambda url: "token=" not in url)
    visitor.page.locator(".token").nth(3).click()
    visitor.page.wait_for_url("**token=3**")
    held = visitor.page.locator(HELD)
    assert held.evaluate(HELD_AT) == "3"


def test_arrow_keys_read_the_matrix_cell_by_cell_and_enter_holds_a_row(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=1&head=2", TEXT)
    let_go(visitor)
    pattern = recorded(TEXT).attention[0].pattern[1, 2]
    visitor.page.locator(CELLS).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown"):
        visitor.page.keyboard.press(key)
    assert float(visitor.weight()) == pytest.approx(float(pattern[2, 2]), abs=FOUR_DECIMALS)
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**token=2**")
    visitor.drawn()
    visitor.page.keyboard.press("ArrowDown")
    assert visitor.weight(), "the matrix keeps the focus"


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
