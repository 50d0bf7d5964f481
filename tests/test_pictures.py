"""What the views are sent and hand out: bytes of a page, quiet tokens in the grid, files in the
screen's font and on white."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import driver
import numpy as np
from tolerances import STORED

from explorer.components import codec, heads

RNG = np.random.default_rng(0)
MOST = 1_500_000  # bytes of one view


def patterns(*shape: int) -> np.ndarray:
    return RNG.dirichlet(np.full(shape[-1], 0.1), size=shape[:-1]).astype(np.float32)


def named(layer: int, head: int) -> SimpleNamespace:
    values = {"score": 0.5, "chance": 0.1, "entropy": 0.5, "distance": 1.0, "sink": 0.1}
    return SimpleNamespace(layer=layer, head=head, name="self", **values)


def grid(pattern: np.ndarray, quiet: np.ndarray | None) -> tuple[dict, np.ndarray, np.ndarray]:
    layers, each, n, _ = pattern.shape
    labels = [f"t{at}" for at in range(n)]
    listed = [named(layer, head) for layer in range(layers) for head in range(each)]
    allowed = np.ones((n, n), bool)
    made = heads.HeadGrid(pattern, allowed, listed, labels, labels, "head", False, "x")
    header, blocks = codec.decode(heads.payload(replace(made, quiet=quiet)))
    return header, blocks["cells"].reshape(layers, each, n, n), blocks["peak"].reshape(layers, each)


def test_quiet_tokens_have_no_column_and_colours_reach_to_the_largest_of_the_others() -> None:
    pattern = patterns(2, 3, 8, 8) * 0.2
    pattern[..., 0] += 1 - pattern.sum(-1)  # every head rests on token 0 ...
    pattern[1, 2] = np.eye(8)[::-1]  # ... but one
    quiet = np.arange(8) == 0
    header, cells, peak = grid(pattern, quiet)
    assert header["quiet"] == [0] and (cells[..., 0] == 0).all()
    np.testing.assert_allclose(peak, pattern[..., 1:].max((2, 3)), rtol=STORED)
    assert [one["back"] for one in header["heads"]] == [True] * 5 + [False]
    loud, whole, most = grid(pattern, None)
    assert loud["quiet"] == [] and not any(one["back"] for one in loud["heads"])
    np.testing.assert_allclose(most, pattern.max((2, 3)), rtol=STORED)
    assert (whole[..., 0] > 0).any()


class TestJourneys:
    """In a real browser."""

    pytestmark = driver.MARKS

    def test_a_picture_is_white_when_it_is_asked_to_be(
        self, visitor: driver.Visitor, tmp_path: Path
    ) -> None:
        page = visitor.open().page
        for white, paper in ((False, "#fffdf9"), (True, "#ffffff")):
            page.get_by_role("button", name="Export").click()
            page.get_by_role("checkbox", name="on white").set_checked(white)
            text = visitor.export("Matrix as SVG").read_text("utf-8")
            assert re.search(rf'<rect [^>]*fill="{paper}"', text)
            assert re.search(r'font-family="Inter, [^"]*sans-serif"', text)
        assert not page.get_by_role("button", name="Matrix as SVG").count(), "the menu alone has it"
        assert visitor.export("Matrix as PNG").read_bytes()[:4] == b"\x89PNG"

    def test_a_held_word_shows_its_row_in_every_head(self, visitor: driver.Visitor) -> None:
        page = visitor.open("?layer=1&head=5").page
        page.locator(".token").nth(9).click()  # the app holds it: it is let go
        page.locator(".caption.word").first.wait_for(state="detached")
        before = page.locator(".cell .name").all_inner_texts()
        page.locator(".token").nth(9).click()
        page.wait_for_url("**token=9**")
        page.locator(".caption.word").first.wait_for()
        words = page.locator(".caption.word .name").all_inner_texts()
        assert len(words) == len(before) and set(words) <= set(visitor.tokens())
        says = page.locator(".head .says").inner_text()
        at = page.locator(".cell[aria-pressed=true] .name").inner_text()
        assert f"attends to {at} " in says
        visitor.view("All rows")
        page.locator(".caption.word").first.wait_for(state="detached")
        assert page.locator(".cell .name").all_inner_texts() == before
