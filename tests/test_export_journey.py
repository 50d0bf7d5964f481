"""Files that stand alone, opened from the disk and offline in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import driver
import pytest
from conftest import read_once
from test_export import HOSTILE
from tolerances import STORED

from explorer import export
from models.contract.edits import ZeroHead
from models.example_texts import DEFAULT_TEXT
from models.network.own_model import OwnModel

pytestmark = driver.MARKS
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.fixture(scope="module")
def encoder() -> OwnModel:
    return read_once("encoder")


def is_right(told: str, truth: float, digits: int = 4) -> None:
    """What is told of a number holds it: exactly in its digits, within ±, or below a bound."""
    value, _, width = told.removeprefix("≈ ").replace("−", "-").partition(" ± ")
    if value.startswith("< "):
        assert 0 <= truth < float(value[2:]), (told, truth)
        return
    number = float(value.replace(" × 10", "e").translate(RAISED))
    assert told.startswith("≈") == bool(width), told
    # Half of the last digit, and what rounding in 32 bits moves.
    off = float(width) if width else 10**-digits / 2
    assert abs(number - truth) <= off + STORED, (told, truth)


def test_heads_in_a_file(encoder: OwnModel, alone: Callable[..., driver.Visitor]) -> None:
    recording = encoder.record(HOSTILE)
    page = alone(export.page(recording, model=encoder, layer=1, head=5, view="Matrix")).page
    grid, head = (page.locator(each) for each in (driver.GRID, driver.HEAD))
    grid.locator(".cell").nth(31).wait_for()
    assert head.locator("h2").inner_text().startswith("Layer 1, head 5")
    grid.locator(".cell").nth(8 * 3 + 2).click()  # layer 3, head 2
    assert head.locator("h2").inner_text() == "Layer 3, head 2"
    at = next(i for i, token in enumerate(recording.streams[0].tokens) if token == "tired")
    head.locator(".token").nth(at).click()
    row = recording.attention[0].pattern[3, 2, at]
    best = recording.streams[0].tokens[int(row.argmax())]
    said = head.locator(".finding").inner_text()
    assert "tired attends to " in said and best in said
    # A cell that is pointed at says its weight.
    pattern = recording.attention[0].pattern[3, 2]
    for cell in ((at, int(row.argmax())), (2, 5)):
        driver.point_at(page, *cell, pattern.shape)
        line = head.locator(".finding")
        asks, asked = (recording.streams[0].tokens[place] for place in cell)
        assert asks in line.inner_text() and asked in line.inner_text()
        is_right(line.locator("strong").inner_text(), pattern[cell])
    # Another head keeps the word that is selected.
    grid.locator(".cell").nth(0).click()
    assert head.locator("h2").inner_text() == "Layer 0, head 0"
    assert "tired attends to " in head.locator(".finding").inner_text()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert head.locator("image").count()


def test_one_of_several_texts_is_open(
    encoder: OwnModel, alone: Callable[..., driver.Visitor]
) -> None:
    texts = [HOSTILE, "The cat sat on the mat.", "Ram pushed Hari"]
    page = alone(export.page([encoder.record(each) for each in texts], model=encoder)).page
    for at, word in ((1, "mat"), (2, "Hari"), (0, "tired")):
        page.locator("#texts").select_option(index=at)
        shown = page.locator(f"{driver.HEAD} .token")
        shown.filter(has_text=word).first.wait_for()
        others = {"mat", "Hari", "tired"} - {word}
        assert not any(shown.filter(has_text=each).count() for each in others)
        assert page.locator("main > div > [data-part='panel']").count() == 2, "one text at a time"
        assert page.locator("[data-sheet]:visible").count() == 2, "a heading and a caption"


def test_a_picture_stays_where_it_is_under_the_pointer(
    encoder: OwnModel, alone: Callable[..., driver.Visitor]
) -> None:
    recording = encoder.record(DEFAULT_TEXT)
    made = export.page(recording, model=encoder, layer=1, head=5, token=9, view="Matrix")
    page = alone(made, viewport={"width": 380, "height": 844}).page
    cells, finding = (page.locator(f"{driver.HEAD} {each}") for each in (".cells", ".finding"))
    lines = "one => { const box = document.createRange(); box.selectNodeContents(one);"
    lines += " return new Set([...box.getClientRects()].map(({ bottom }) => bottom)).size }"
    page.get_by_role("button", name="Show matrix").click()
    cells.scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    place, before = cells.bounding_box(), finding.evaluate(lines)
    for query, key in ((2, 5), (9, 2)):
        driver.point_at(page, query, key, recording.attention[0].pattern[1, 5].shape)
        assert finding.evaluate(lines) < before, "the cell is said in fewer lines than the row"
        assert cells.bounding_box() == place
    page.mouse.move(0, 0)
    assert finding.evaluate(lines) == before and cells.bounding_box() == place


def test_a_file_is_dark_where_the_reader_s_system_is(
    encoder: OwnModel, alone: Callable[..., driver.Visitor]
) -> None:
    recording = encoder.record("The animal was tired.")
    made = export.page(recording, model=encoder, layer=1, head=5, view="Matrix")
    page = alone(made, color_scheme="dark").page

    def painted() -> tuple[int, ...]:
        """How light the page is, the grid of heads, and the head's matrix: sums of their pixels."""
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        images = [f"{driver.GRID} .cell image", driver.IMAGE]
        sums = [sum(page.locator(one).first.evaluate(driver.PIXELS)) for one in images]
        return sum(map(int, re.findall(r"\d+", ground)[:3])), *sums

    dark, button = painted(), page.locator("#colours")
    assert button.inner_text() == "Light"
    page.emulate_media(color_scheme="light")
    page.wait_for_selector("#colours:text-is('Dark')")  # the page hears of it in a frame to come
    light = painted()
    assert all(one < other for one, other in zip(dark, light, strict=True))
    # What is chosen here stays, whatever the system does.
    button.click()
    assert painted() == dark
    page.emulate_media(color_scheme="dark")
    page.emulate_media(color_scheme="light")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert painted() == dark and button.inner_text() == "Light"


def test_other_views_in_a_file(encoder: OwnModel, alone: Callable[..., driver.Visitor]) -> None:
    short = encoder.record("</script> <b>it was tired")
    at = {"layer": 1, "head": 5, "token": 0}
    page = alone(export.page(short, "anatomy.weight", model=encoder, **at)).page
    weight = float(short.attention[0].pattern[1, 5, 0].max())
    assert f" {weight:.0%} of its attention" in page.locator(".finding").inner_text()
    page.get_by_role("button", name="Next").click()
    page.wait_for_selector(".panel svg:has-text('Step 1 of 7')")

    recording = encoder.record(HOSTILE)
    other = encoder.record(HOSTILE, (ZeroHead(1, 5),))
    page = alone(export.page(recording, "compare.heads", model=encoder, other=other)).page
    page.locator("[data-part=panel] .cells").first.focus()
    page.keyboard.press("ArrowUp")
    assert page.locator("[data-part=panel] .tip").inner_text()

    file = export.page(recording, "embeddings.contexts", model=encoder)
    page = alone(file, viewport={"width": 390, "height": 844}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (
        page.locator("[data-part=panel]").get_by_text("Words as points: near means similar").count()
    )

    frame = export.page(recording, layer=0, head=3)._repr_html_()
    page = alone(f"<!doctype html><main data-drawn>notebook</main>{frame}").page
    inside = page.frame_locator("iframe")
    inside.locator(".cell").nth(1).click()
    assert inside.locator("h2").last.inner_text() == "Layer 0, head 1"
