"""Ten views compared with pictures of them: a change that moves or recolours much of a view fails.

`HEADLIGHT_WRITE_VIEWS=1 python -m pytest tests/test_golden_views.py` writes the pictures anew. Look
at them before they are committed."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from driver import MARKS, Visitor
from PIL import Image

pytestmark = MARKS
FOLDER = Path(__file__).parent / "views"
SIZE = (360, 225)  # of a stored view, a quarter of the window
SEEN = 48  # of 255: a difference of grey that a person sees at a glance
MOST = 0.03  # of the pixels may differ so much: letters and lines drawn a little differently

# By file name: the address of the view, and the scheme of colours.
VIEWS = {
    "heads": ("", "light"),
    "heads-dark": ("", "dark"),
    "weight": ("?tab=weight", "light"),
    "aggregated": ("?tab=aggregated", "light"),
    "diagram": ("architecture", "light"),
    "residual": ("architecture?tab=residual", "light"),
    "lens": ("predict?tab=lens&model=decoder&text=My+sister", "light"),
    "translate": ("predict?tab=translate&model=translator&text=The+red+car+is+new.", "light"),
    "edit": ("experiment", "light"),
    "compare-dark": ("experiment?tab=compare", "dark"),
}


def small(picture: bytes) -> np.ndarray:
    """A screenshot in grey at the size of a stored view, `[height, width]`, 0 to 255."""
    image = Image.open(io.BytesIO(picture)).convert("L").resize(SIZE, Image.Resampling.BOX)
    return np.asarray(image, np.int16)


def differing(one: np.ndarray, other: np.ndarray) -> float:
    """The share of pixels that differ visibly."""
    return float((np.abs(one - other) > SEEN).mean())


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_looks_as_it_did(browser: object, server: str, name: str) -> None:
    address, scheme = VIEWS[name]
    one = Visitor(browser, server, color_scheme=scheme)
    one.page.goto(f"{server}/{address}")
    one.page.wait_for_selector(".panel svg")
    one.page.wait_for_selector("html:not([data-headlight-ahead])", state="attached")
    one.page.wait_for_selector("[data-test-script-state=notRunning]")
    one.page.evaluate("document.fonts.ready")
    file, now = FOLDER / f"{name}.png", small(one.page.screenshot())
    for _ in range(20):  # until nothing moves
        one.page.wait_for_timeout(250)
        before, now = now, small(one.page.screenshot())
        if (before == now).all():
            break
    one.leave()
    if os.environ.get("HEADLIGHT_WRITE_VIEWS"):
        Image.fromarray(now.astype(np.uint8)).save(file, optimize=True)
    stored = np.asarray(Image.open(file), np.int16)
    assert differing(now, stored) <= MOST, f"{differing(now, stored):.1%} of {name} differ"


def test_a_moved_figure_is_noticed() -> None:
    stored = np.asarray(Image.open(FOLDER / "heads.png"), np.int16)
    assert differing(stored, np.roll(stored, 6, axis=0)) > MOST
    assert differing(stored, np.flip(stored, axis=1)) > MOST
