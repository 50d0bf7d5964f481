"""Links that Share gives open the picture that they were given for: the tab, its panels with what
they say and draw, and the link itself again.

`python tests/test_shared_links.py` writes anew what the links of `data/shared_links.json` show, for
a change that is meant to change it."""

from __future__ import annotations

import json
import re
import sys
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app_harness import MAIN, ROOT, asked_of, panels_on
from streamlit.testing.v1 import AppTest

from explorer.state import places, url_state
from explorer.state.jobs import Job

FILE = Path(__file__).parent / "data" / "shared_links.json"
LINKS = json.loads(FILE.read_text("utf-8"))
PATIENCE = 120.0  # seconds until what is worked on in the background counts as missing
# What rounding leaves differs from machine to machine.
TINY = re.compile(r"[\d.]+ × 10⁻[⁰¹²³⁴-⁹]+")
NAMES_OF_FILES = {"token", "file", "caption", "terms", "panel"}  # of a header, beside the picture


def opened(link: str) -> AppTest:
    """A new visit at a link."""
    to = urlsplit(link)
    app = AppTest.from_file(MAIN, default_timeout=120)
    app.query_params.update(dict(parse_qsl(to.query, keep_blank_values=True)))
    if to.path != "/":
        app.switch_page(str(ROOT / "pages" / f"{to.path.strip('/')}.py"))
    app.run()
    if Job.running_jobs:  # claims and many sentences come bit by bit
        until = time.monotonic() + PATIENCE
        while Job.running_jobs and time.monotonic() < until:
            time.sleep(0.05)
        app.run()
    return app


def shared(app: AppTest) -> str:
    """The link that Share gives on the page."""
    place = places.place_of(app.session_state["page"])
    query = urlencode(asked_of(app))
    return f"/{'' if place == places.FIRST else place}{'?' + query if query else ''}"


def without_numbers(part: object) -> object:
    """A part of a header without its numbers, which differ from machine to machine in the last
    digits."""
    if isinstance(part, dict):
        return {name: without_numbers(each) for name, each in part.items()}
    if isinstance(part, list):
        return [without_numbers(each) for each in part]
    if isinstance(part, str):
        return re.sub(r"[-−]?[\d.,]+( × 10[⁻⁰¹²³⁴-⁹]+)?", "#", part)
    return part if isinstance(part, bool) or part is None else "#"


def shown(app: AppTest) -> dict:
    """What the page shows: its tab, and of each panel its name, its title, what it says, and a hash
    of what it draws."""
    drawn = []
    for header in panels_on(app):
        picture = {name: part for name, part in header.items() if name not in NAMES_OF_FILES}
        text = json.dumps(without_numbers(picture), sort_keys=True)
        drawn.append(
            [
                header["panel"],
                header["title"],
                TINY.sub("#", header["finding"]),
                sha256(text.encode()).hexdigest()[:12],
            ]
        )
    return {"tab": app.session_state["page"], "panels": drawn}


def test_the_links_are_of_all_tabs_and_of_most_choices() -> None:
    asked = [dict(parse_qsl(urlsplit(each["link"]).query)) for each in LINKS]
    assert len(LINKS) >= 60 and len({each["link"] for each in LINKS}) == len(LINKS)
    tabs = {tab for place in places.PLACES.values() for tab in place.tabs}
    assert {each["tab"] for each in LINKS} == tabs
    chosen = {name for each in asked for name in each} & {*url_state.names()}
    assert len(chosen) >= len(url_state.names()) // 2


@pytest.mark.slow
@pytest.mark.parametrize("kept", LINKS, ids=lambda kept: kept["link"])
def test_a_link_opens_the_same_picture(kept: dict) -> None:
    app = opened(kept["link"])
    assert not app.exception and not app.toast, [each.value for each in app.toast]
    assert {"link": kept["link"], **shown(app)} == kept
    assert shared(app) == kept["link"], "what Share gives there"


if __name__ == "__main__":
    again = [{"link": each["link"], **shown(opened(each["link"]))} for each in LINKS]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in again)
    FILE.write_text(f"[\n{lines}\n]\n", "utf-8")
