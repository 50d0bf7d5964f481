"""Ten views in four windows, compared with pictures of them: a change that moves or recolours much
of a view fails.

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
SHARE = 4  # a stored view has a quarter of the window's width and height
SEEN = 48  # of 255: a difference of grey that a person sees at a glance
MOST = 0.03  # of the pixels may differ so much: letters and lines drawn a little differently

DESKTOP, LAPTOP, LARGE, PHONE = (1440, 900), (1280, 720), (1920, 1080), (390, 844)
# By file name: the address of the view, the scheme of colours and the window.
VIEWS = {
    "heads": ("", "light", DESKTOP),
    "heads-phone-dark": ("", "dark", PHONE),
    "weight-laptop": ("?tab=weight", "light", LAPTOP),
    "aggregated-phone": ("?tab=aggregated", "light", PHONE),
    "flow-large-dark": ("architecture", "dark", LARGE),
    "residual-laptop-dark": ("architecture?tab=residual", "dark", LAPTOP),
    "lens": ("predict?tab=lens&model=decoder&text=My+sister", "light", DESKTOP),
    "translate-phone": (
        "predict?tab=translate&model=translator&text=The+red+car+is+new.",
        "light",
        PHONE,
    ),
    "edit-large": ("experiment", "light", LARGE),
    "compare-dark": ("experiment?tab=compare", "dark", DESKTOP),
}


def small(picture: bytes) -> np.ndarray:
    """A screenshot in grey at the size of a stored view, `[height, width]`, 0 to 255."""
    image = Image.open(io.BytesIO(picture)).convert("L").reduce(SHARE)
    return np.asarray(image, np.int16)


def differing(one: np.ndarray, other: np.ndarray) -> float:
    """The share of pixels that differ visibly; all of them where the sizes differ."""
    if one.shape != other.shape:
        return 1.0
    return float((np.abs(one - other) > SEEN).mean())


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_looks_as_it_did(browser: object, server: str, name: str) -> None:
    address, scheme, (width, height) = VIEWS[name]
    window = {"width": width, "height": height}
    one = Visitor(browser, server, color_scheme=scheme, viewport=window)
    one.page.goto(f"{server}/{address}")
    one.page.wait_for_selector(".panel svg:visible")
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
