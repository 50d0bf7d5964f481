"""What the views are sent and hand out: bytes of a page, quiet tokens in the grid, files in the
screen's font and on white."""

from __future__ import annotations

import re
from pathlib import Path

import driver
import numpy as np
from tolerances import STORED

from explorer.analysis import head_naming
from explorer.analysis.figures import HeadMatrices
from explorer.panels import attention
from explorer.state.cache import Run
from models.example_texts import DEFAULT_TEXT


def drawn(figure: HeadMatrices) -> tuple[np.ndarray, np.ndarray]:
    """The cells and the largest weight of each head."""
    weights, shape = figure.weights, figure.shape
    return weights["cells"].reshape(shape), weights["peak"].reshape(shape[:2])


def test_quiet_tokens_have_no_column_and_colours_reach_to_the_largest_of_the_others() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    of = run.recording().attention[0]
    quiet = head_naming.shared_sinks(run.recording(), of)
    assert quiet.any() and not quiet.all()
    (figure,) = attention.heads(run, options="Quiet").figures
    cells, peak = drawn(figure)
    assert figure.quiet == tuple(np.flatnonzero(quiet)) and (cells[..., quiet] == 0).all()
    np.testing.assert_allclose(peak, of.pattern[..., ~quiet].max((2, 3)), rtol=STORED)
    rests = of.pattern[..., quiet].sum(-1).mean(-1).ravel() > attention.RESTS
    assert figure.back == tuple(rests) and any(rests) and not all(rests)
    (loud,) = attention.heads(run).figures
    whole, most = drawn(loud)
    assert loud.quiet == () and not any(loud.back) and (whole[..., quiet] > 0).any()
    np.testing.assert_allclose(most, of.pattern.max((2, 3)), rtol=STORED)


class TestJourneys:
    """In a real browser."""

    pytestmark = driver.MARKS

    def test_a_picture_is_white_when_it_is_asked_to_be(
        self, visitor: driver.Visitor, tmp_path: Path
    ) -> None:
        page = visitor.open().page
        for white, paper in ((False, "#fffdf9"), (True, "#ffffff")):
            visitor.open_export()
            page.get_by_role("checkbox", name="white background").set_checked(white)
            text = visitor.export(re.compile("^Layer .* as SVG$")).read_text("utf-8")
            assert re.search(rf'<rect width="100%" height="100%" fill="{paper}"', text)
            assert re.search(r'font-family="Inter, [^"]*sans-serif"', text)
        assert not page.get_by_role("button", name=" as SVG").count(), "the menu alone has it"
        picture = visitor.export(re.compile("^Layer .* as PNG$"))
        assert picture.read_bytes()[:4] == b"\x89PNG"

    def test_a_held_word_shows_its_row_in_every_head(self, visitor: driver.Visitor) -> None:
        page = visitor.open("?layer=1&head=5").page
        names, n = page.locator(".cell text"), len(visitor.tokens())
        by_word = page.locator(".cell[aria-label*='Largest weight']")  # of a word's row
        image = ".cell >> nth=3 >> image"
        page.locator(driver.HELD).click()  # the app holds it: it is let go
        by_word.first.wait_for(state="detached")
        before = names.all_text_contents()
        assert len(visitor.pixels(image)) == 4 * n * n
        page.locator(f"{driver.HEAD} .token").nth(9).click()
        page.wait_for_url("**token=9**")
        by_word.first.wait_for()
        words = [name.strip() for name in names.all_text_contents()]
        assert len(words) == len(before) == by_word.count() and set(words) <= set(visitor.tokens())
        assert len(visitor.pixels(image)) == 4 * n
        at = page.locator(".cell[aria-pressed=true] text").text_content().strip()
        assert f"attends to {at} " in visitor.said()
        visitor.view("All rows")
        by_word.first.wait_for(state="detached")
        assert names.all_text_contents() == before
        assert len(visitor.pixels(image)) == 4 * n * n
