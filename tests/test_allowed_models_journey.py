"""A model that a reader opened, after the page is loaded anew, and for nobody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from driver import MARKS, Visitor

pytestmark = MARKS
ASKS = "has not opened yet"


def shown(one: Visitor) -> str:
    """The model on screen, once the page stands."""
    one.page.wait_for_selector("[data-test-script-state=notRunning]")
    one.drawn()
    return one.page.locator(".st-key-model-menu button").inner_text()


def asked(one: Visitor) -> int:
    return one.page.get_by_text(ASKS).count()


def test_a_page_loaded_anew_shows_the_model_that_its_reader_opened(
    browser: object, server: str, tiny_folder: Callable[[str], Path]
) -> None:
    folder = tiny_folder("bert")
    link = f"{server}/?model=ours:{quote(str(folder))}"
    mine, other = Visitor(browser, server), Visitor(browser, server, locale="de")
    mine.page.goto(link)
    mine.page.get_by_role("button", name="Fetch it").click()
    mine.page.wait_for_url("**model=ours**")
    mine.page.get_by_text(ASKS).wait_for(state="detached")
    assert folder.name in shown(mine)
    mine.page.reload()
    assert folder.name in shown(mine) and not asked(mine)
    # Another browser is asked, as of any other model.
    other.page.goto(link)
    assert folder.name not in shown(other) and asked(other)
    for one in (mine, other):
        one.leave()
