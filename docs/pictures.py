"""The pictures of the README, made from the running app: `python -m docs.pictures ADDRESS`.

Each page is drawn light and dark at 1280 x 720 and kept as a PNG of 128 colours, so that the files
stay small. The one that moves is a WebP: the flow plays, opens a layer, a head and a weight,
closes again, and a head is ablated.
"""

from __future__ import annotations

import base64
import io
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parent / "pictures"
VIEWS = {
    "attention": ("", "[data-panel='attention.heads'][data-token]"),
    "translation": (
        "predict?tab=translate&model=translator&text=The+red+car+is+in+front+of+the+white+house.",
        ".panel svg",
    ),
}
FLOW = "architecture?layer=1&head=5&token=9&weight_at=9.2"
# Keys of the flow, each with the seconds that a reader looks at what it shows.
KEYS: tuple[tuple[str, float], ...] = (
    ("Space", 5.6),
    ("Enter", 1.8),
    ("Enter", 1.8),
    ("Enter", 2.2),
    ("Escape", 0.8),
    ("Escape", 0.8),
    ("Escape", 1.2),
    ("x", 2.0),
    ("x", 1.2),
)
SIZE, QUALITY, PITCH = (896, 560), 50, 0.1
Frame = tuple[float, bytes]  # seconds, and the picture as PNG


def main() -> None:
    address = sys.argv[1]
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for name, (view, drawn) in VIEWS.items():
                page = _open(browser, f"{address}/{view}", drawn, theme)
                picture = Image.open(io.BytesIO(page.screenshot()))
                file = FOLDER / f"{name}-{theme}.png"
                picture.convert("RGB").quantize(128).save(file, optimize=True)
                page.close()
            page = _open(browser, f"{address}/{FLOW}", ".flow-bar", theme)
            _save_moving(_recorded(page), FOLDER / f"flow-{theme}.webp")
            page.close()


def _open(browser: Browser, address: str, drawn: str, theme: str) -> Page:
    """A page whose picture, a selector, has come to rest."""
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme=theme)  # type: ignore[arg-type]
    page.goto(address)
    page.wait_for_selector(drawn, timeout=90_000)
    page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
    page.wait_for_timeout(6_000)  # a first visit plays once
    return page


def _recorded(page: Page) -> list[Frame]:
    """The frames of the page while the keys of the flow are pressed."""
    frames: list[Frame] = []
    session = page.context.new_cdp_session(page)

    def take(event: dict) -> None:
        frames.append((event["metadata"]["timestamp"], base64.b64decode(event["data"])))
        session.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    session.on("Page.screencastFrame", take)
    width, height = SIZE
    session.send("Page.startScreencast", {"format": "png", "maxWidth": width, "maxHeight": height})
    for key, seconds in KEYS:
        page.keyboard.press(key)
        page.wait_for_timeout(seconds * 1_000)
    session.send("Page.stopScreencast")
    return frames


def _save_moving(frames: Sequence[Frame], file: Path) -> None:
    """Frames as an animated WebP that repeats; each is shown until the next one came, at least
    `PITCH` seconds later."""
    spaced: list[Frame] = []
    for frame in frames:
        if not spaced or frame[0] - spaced[-1][0] >= PITCH:
            spaced.append(frame)
    frames = [*spaced, frames[-1]]
    pictures = [Image.open(io.BytesIO(png)).convert("RGB") for _, png in frames]
    ends = [after - before for (before, _), (after, _) in pairwise(frames)] + [1.0]
    pictures[0].save(
        file,
        save_all=True,
        append_images=pictures[1:],
        duration=[max(20, round(1_000 * each)) for each in ends],
        loop=0,
        quality=QUALITY,
        method=6,
    )


if __name__ == "__main__":
    main()
