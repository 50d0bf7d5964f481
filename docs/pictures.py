"""The pictures of the README, made from the running app: `python -m docs.pictures ADDRESS`.

Each page is drawn light and dark at 1280 x 720 and kept as a PNG of 128 colours, so that the files
stay small.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent / "pictures"
VIEWS = {
    "attention": ("", "[data-panel='attention.heads'][data-token]"),
    "translation": (
        "predict?tab=translate&model=translator&text=The+red+car+is+in+front+of+the+white+house.",
        ".panel svg",
    ),
}


def main() -> None:
    address = sys.argv[1]
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (view, drawn) in VIEWS.items():
            for theme in ("light", "dark"):
                page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme=theme)
                page.goto(f"{address}/{view}")
                page.wait_for_selector(drawn, timeout=90_000)
                page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
                page.wait_for_timeout(2_000)
                picture = Image.open(io.BytesIO(page.screenshot()))
                file = FOLDER / f"{name}-{theme}.png"
                picture.convert("RGB").quantize(128).save(file, optimize=True)
                page.close()


if __name__ == "__main__":
    main()
