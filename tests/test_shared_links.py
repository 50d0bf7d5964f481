"""Links that Share gave open the picture that they were given for: the tab, and its panels with
their choices.

`python tests/test_shared_links.py` writes anew what the links of `data/shared_links.json` show, for
a change that is meant to change it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app_harness import MAIN, ROOT, asked_of, whole
from streamlit.testing.v1 import AppTest

from explorer.app.layout import export_menu
from explorer.app.state import url_state
from explorer.panels import link_words
from explorer.screens.screen import of_words
from explorer.text import places
from models.example_texts import EXAMPLES

FILE = Path(__file__).parent / "data" / "shared_links.json"
LINKS = json.loads(FILE.read_text("utf-8"))


def opened(link: str) -> AppTest:
    """A new visit at a link."""
    to = urlsplit(link)
    app = AppTest.from_file(MAIN, default_timeout=120)
    app.query_params.update(dict(parse_qsl(to.query, keep_blank_values=True)))
    if to.path != "/":
        app.switch_page(str(ROOT / "pages" / f"{to.path.strip('/')}.py"))
    return whole(app.run())


def shared(app: AppTest) -> str:
    """The link that Share gives on the page."""
    place = places.place_of(app.session_state["page"])
    query = urlencode(asked_of(app))
    return f"/{'' if place == places.FIRST else place}{'?' + query if query else ''}"


def shown(link: str) -> tuple[dict, str]:
    """What a link shows: its tab and the calls in Python that make its panels, in order, and the
    link that it has now; by its screen, and by its page where a tab is worked on by hand or shows
    what a visit finds."""
    try:
        on = of_words(link)
    except ValueError:
        return on_page(link)
    if on.tab.id == "translate":
        return on_page(link)
    assert not on.refused
    words = {name: word for name, word in on.words().items() if name != "tab"}
    again = places.address(on.tab.id, words)
    assert of_words(again) == on
    return {"tab": on.tab.id, "panels": [each.call for each in on.panels()]}, link


def on_page(link: str) -> tuple[dict, str]:
    """The same of a new visit."""
    calls: list[str] = []
    fill = export_menu.fill

    def listed(room: object, page: str) -> None:
        calls[:] = [panel.call for panel in export_menu._menu_state.panels]
        fill(room, page)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_menu, "fill", listed)
        app = opened(link)
    assert not app.exception and not app.toast, [each.value for each in app.toast]
    return {"tab": app.session_state["page"], "panels": calls}, shared(app)


def test_the_links_are_of_all_tabs_and_of_most_choices() -> None:
    asked = [dict(parse_qsl(urlsplit(each["link"]).query)) for each in LINKS]
    assert len(LINKS) >= 60 and len({each["link"] for each in LINKS}) == len(LINKS)
    assert {each["tab"] for each in LINKS} == places.ROWS.keys()
    chosen = {name for each in asked for name in each} & {*url_state.names()}
    assert len(chosen) >= 0.48 * len(url_state.names())


# What a link meant in 0.5.0 that chooses something and names no text.
MEANT, MEANT_ON = EXAMPLES["It was too tired"], {"translate": EXAMPLES["Red car"]}


def test_a_link_that_chooses_something_and_no_text_means_the_text_that_it_meant_first() -> None:
    n = 0
    for kept in LINKS:
        query = dict(parse_qsl(urlsplit(kept["link"]).query, keep_blank_values=True))
        words = {name: word for name, word in query.items() if name not in ("tab", "text")}
        if words:
            meant = MEANT_ON.get(kept["tab"], MEANT)
            assert link_words.text_and_model(words, kept["tab"])[0] == meant, kept["link"]
            n += 1
    assert n >= 60


@pytest.mark.slow
@pytest.mark.parametrize("kept", LINKS, ids=lambda kept: kept["link"])
def test_a_link_opens_the_same_picture(kept: dict) -> None:
    now, again = shown(kept["link"])
    if now["tab"] == "heads":  # whose grid comes to the page before what is told of it
        now, kept = ({**each, "panels": sorted(each["panels"])} for each in (now, kept))
    assert {"link": kept["link"], **now} == kept
    if again != kept["link"]:  # a choice has other words than it had then
        assert shown(again)[0] == now


if __name__ == "__main__":
    rows = [{"link": each["link"], **shown(each["link"])[0]} for each in LINKS]
    lines = ",\n".join(" " + json.dumps(row, ensure_ascii=False) for row in rows)
    FILE.write_text(f"[\n{lines}\n]\n", "utf-8")
