"""The Translation page in a real browser: steps, beams, one's own words, files, a phone."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as tree
from collections.abc import Callable
from urllib.parse import urlencode

import numpy as np
import pytest
from conftest import AWKWARD
from driver import MARKS, Visitor
from tolerances import FOUR_DECIMALS, PASSED, PIXEL, STORED
from translation_harness import SENTENCE, log_probabilities, translated

from explorer.analysis import translation
from explorer.state import jobs, models
from models.recording import Recording, from_npz

# ---- journeys in a browser ---------------------------------------------------


def journey(test: Callable) -> Callable:
    for mark in MARKS:
        test = mark(test)
    return test


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    asked = {"model": "translator", "text": SENTENCE, **asked}
    visitor.page.goto(f"{visitor.server}/translation?{urlencode(asked)}")
    visitor.page.wait_for_selector(".translation[data-step]")
    at_rest(visitor)
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = visitor.wrong()
    return visitor


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def weights_shown(visitor: Visitor) -> np.ndarray:
    """The weights of the source chips, as drawn."""
    return np.array(
        [
            float(weight)
            for weight in visitor.page.locator(".source .chip").evaluate_all(
                "all => all.map(one => one.dataset.weight)"
            )
        ]
    )


def output(visitor: Visitor) -> list[str]:
    return visitor.page.locator(".output .chip .label").all_inner_texts()


def check_step(
    visitor: Visitor, step: int, recording: Recording, matrix: np.ndarray, logprobs: np.ndarray
) -> None:
    """Slider, word, row, tint and probability are all of the token that row `step` (from 0) of the
    decoder produces."""
    page = visitor.page
    produced = [*recording.stream("decoder").tokens[1:], "[EOS]"]
    assert page.locator(".stepper input").input_value() == str(step + 1)
    assert page.locator(".stepper .where").inner_text() == f"Step {step + 1} of {len(produced)}"
    assert page.locator(".output .chip[aria-pressed=true]").get_attribute("data-at") == str(step)
    assert page.locator(".output .chip.now .label").inner_text() == produced[step]
    assert page.locator(".area i.row").get_attribute("data-at") == str(step)
    assert page.locator(".says-axis .on").inner_text() == f"→ {produced[step]}"
    assert page.locator(".reading .says b").first.inner_text() == produced[step]
    assert (
        page.locator(".reading .read").inner_text().split()[-1]
        == recording.stream("decoder").tokens[step]
    ), "the row reads the token before"
    assert float(page.locator(".reading .says strong").inner_text()) == pytest.approx(
        np.exp(logprobs[step]), abs=PASSED
    )
    np.testing.assert_allclose(weights_shown(visitor), matrix[step], atol=STORED)
    # As drawn: the darkest chip is the source token with the largest weight, and the row's outline
    # lies on the row of the matrix.
    tints = page.locator(".source .chip").evaluate_all(
        "all => all.map(one => "
        "getComputedStyle(one).backgroundColor.match(/[0-9]+/g).map(Number).reduce((a, b) => "
        "a + b))"
    )
    assert tints[int(matrix[step].argmax())] == min(tints)
    row, area = page.locator(".area i.row").bounding_box(), page.locator(".area").bounding_box()
    assert row["y"] - area["y"] == pytest.approx(step * area["height"] / len(produced), abs=PIXEL)


@journey
def test_every_step_shows_the_row_that_produced_its_word(visitor: Visitor) -> None:
    text = "I love to eat pizza"
    recording = translated(text)
    decoder, encoder = recording.stream("decoder"), recording.stream("encoder")
    produced = np.append(decoder.ids[1:], encoder.ids[-1])
    logprobs = log_probabilities(encoder.ids, decoder.ids)[np.arange(len(produced)), produced]
    pattern = translation.cross_attention(recording).pattern
    visited(visitor, text=text)
    for step in range(len(produced)):
        check_step(visitor, step, recording, pattern.mean((0, 1)), logprobs)
        if step < len(produced) - 1:
            visitor.page.locator(".next").click()
    visitor.page.wait_for_url(f"**step={len(produced)}*")
    visitor.page.locator(".tile[data-view='1.2']").click()
    visitor.page.wait_for_selector(".alignment h4:has-text('layer 1, head 2')")
    visitor.page.locator(".output .chip").nth(2).click()
    check_step(visitor, 2, recording, pattern[1, 2], logprobs)
    visitor.page.locator(".area").click(position={"x": 5, "y": 5})
    check_step(visitor, 0, recording, pattern[1, 2], logprobs)
    visitor.page.locator(".source .chip").nth(4).click()
    check_step(visitor, int(pattern[1, 2][:, 4].argmax()), recording, pattern[1, 2], logprobs)


@journey
def test_stepping_and_playing_need_no_server_and_keys_do_all(visitor: Visitor) -> None:
    messages: list[int] = []
    visitor.page.on(
        "websocket",
        lambda socket: socket.on("framesent", lambda frame: messages.append(len(frame))),
    )
    visited(visitor)
    page, n = visitor.page, len(output(visitor))
    messages.clear()
    page.locator(".output .chip").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageDown"):
        page.keyboard.press(key)
    assert page.locator(".where").inner_text() == f"Step 3 of {n}"
    page.locator(".stepper input").focus()
    page.keyboard.press("End")
    assert page.locator(".where").inner_text() == f"Step {n} of {n}"
    page.locator(".play").click()
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.where')?.textContent.startsWith('Step 2 '))"
    )
    assert page.locator(".play").inner_text() == "Pause"
    assert not messages, "while it plays the server hears nothing"
    page.locator(".play").click()
    page.wait_for_url("**step=*")
    at_rest(visitor)
    assert page.locator(".play").inner_text() == "Play"
    page.locator(".alignment .scroll").focus()
    for key in (
        "ArrowUp",
        "ArrowUp",
        "ArrowUp",
        "ArrowUp",
        "ArrowDown",
        "ArrowRight",
        "ArrowRight",
    ):
        page.keyboard.press(key)
    weight = translation.cross_attention(translated(SENTENCE)).pattern.mean((0, 1))[1, 1]
    assert float(page.locator(".alignment .value strong").inner_text()) == pytest.approx(
        float(weight), abs=FOUR_DECIMALS
    )


@journey
def test_a_beam_is_chosen_and_the_link_opens_it_again(
    visitor: Visitor, browser, server: str
) -> None:
    visited(visitor, beams="4")
    page = visitor.page
    search = jobs.search("translator", SENTENCE, 4)
    while not search.finished:
        search.resume()
    held = search.steps[-1]
    page.locator(".hypothesis").nth(2).click()
    page.wait_for_selector(".hypothesis:nth-child(3)[aria-checked=true]")
    page.wait_for_url("**beam=3**")
    at_rest(visitor)
    page.locator(".next").click()
    page.wait_for_url("**step=2**")
    said = output(visitor)
    assert len(said) == len(held[2].ids) and page.locator(".tree .generation.on").count() == 1
    other = Visitor(browser, server)
    other.page.goto(page.url)
    other.page.wait_for_selector(".translation[data-step='2']")
    at_rest(other)
    assert (
        output(other) == said
        and other.page.locator(".hypothesis[aria-checked=true] .rank").inner_text() == "3"
    )
    np.testing.assert_array_equal(weights_shown(other), weights_shown(visitor))
    other.leave()


@journey
def test_ones_own_french_is_scored_as_it_is_typed_and_back_undoes_it(visitor: Visitor) -> None:
    visited(visitor)
    page, own = visitor.page, output(visitor)
    field = page.get_by_label("Your own French", exact=True)
    field.press_sequentially("Le chat", delay=20)
    page.wait_for_url("**target=Le+chat**")
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.output .chip.off'))"
    )
    at_rest(visitor)
    recording = translated(SENTENCE, "Le chat")
    assert output(visitor) == [*recording.stream("decoder").tokens[1:], "[EOS]"]
    ids, _ = translation.produced_tokens(recording, models.end_token("translator"))
    rows = log_probabilities(recording.stream("encoder").ids, recording.stream("decoder").ids)
    rank = int((rows[1] > rows[1, ids[1]]).sum())
    said = page.locator(".reading .says").inner_text()
    assert rank > 0 and f"rank {rank + 1:,} of" in said and "its top prediction is" in said
    assert page.locator(".candidate.here .rank").inner_text() == f"{rank + 1:,}"
    page.go_back()
    visitor.until(
        "n => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelectorAll('.output .chip').length === n)",
        len(own),
    )
    assert output(visitor) == own and field.input_value() == ""


@journey
def test_the_alignment_leaves_as_csv_svg_png_and_the_recording_as_npz(visitor: Visitor) -> None:
    target = "Le <b>chat</b> & le chien"
    visited(visitor, target=target, cross="1.2")
    recording = translated(SENTENCE, target)

    def download(name: str) -> bytes:
        return visitor.export(name).read_bytes()

    words = [
        element.text
        for element in tree.fromstring(download("Alignment as SVG").decode()).iter()
        if element.tag.endswith("text")
    ]
    assert any("layer 1, head 2" in word for word in words) and any(
        "<b>chat</b>" in word for word in words
    )
    png = download("Alignment as PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(png[16:20], "big") >= 1000
    rows = list(
        csv.reader(
            line
            for line in download("Alignment as CSV").decode().splitlines()
            if not line.startswith("#")
        )
    )
    np.testing.assert_array_equal(
        np.array([row[4:-1] for row in rows[1:]], dtype=np.float32),
        translation.cross_attention(recording).pattern[1, 2],
    )
    assert [row[2] for row in rows[1:]] == [
        *recording.stream("decoder").tokens[1:],
        "[EOS]",
    ] and rows[1][1] == "[BOS]"
    assert from_npz(download("All activations (NPZ)")) == recording


@journey
def test_a_phone_shows_all_of_it_without_sideways_scrolling(browser, server: str) -> None:
    phone = Visitor(
        browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    visited(phone, beams="5", text=SENTENCE + " The red fox saw a small bird.", step="3")
    page = phone.page
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    for what in (
        ".chip",
        ".hypothesis",
        ".tile",
        ".node",
        ".stepper *",
        ".candidate",
        ".alignment .scroll",
    ):
        boxes = page.locator(what).evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
        )
        assert boxes and all(left >= 0 and right <= 390 for left, right in boxes), what
    page.locator(".output .chip").nth(4).tap()
    assert page.locator(".where").inner_text().startswith("Step 5 ")
    phone.leave()


@journey
@pytest.mark.parametrize("name", ["empty", "letters", "marks"])
def test_hostile_words_on_both_sides_are_shown_as_they_are_and_nothing_runs(
    name: str, visitor: Visitor
) -> None:
    visited(visitor, text=AWKWARD[name], target=AWKWARD[name])
    assert visitor.page.title() == "Predict · Headlight"
    recording = translated(AWKWARD[name], AWKWARD[name] or None)
    assert (
        tuple(visitor.page.locator(".source .chip .label").all_inner_texts())
        == recording.stream("encoder").tokens
    )
    assert output(visitor) == [*recording.stream("decoder").tokens[1:], "[EOS]"]
