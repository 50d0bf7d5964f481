"""The app below a path of a machine's address, and in a frame of another site."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import driver
import httpx2
import pytest
from driver import GRID, Visitor
from test_class_begin_journey import FOLLOWS, begin

from explorer.text import places

pytestmark = driver.MARKS
BASE = "/tools/headlight"
EVERY_LINK = """() => [...document.querySelectorAll("*")].flatMap((each) =>
  [...(each.shadowRoot ?? each).querySelectorAll?.("a[href]") ?? []]).map((one) => one.href)"""


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Nothing: a test's output is of the test."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """The folder of another site, which answers at 127.0.0.1 and at localhost, and its port."""
    folder = tmp_path_factory.mktemp("site")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=folder)) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield folder, made.server_port
        made.shutdown()


@pytest.fixture(scope="module")
def server(site: tuple[Path, int]) -> Iterator[str]:
    """The app below a path; one of the two names of the other site may frame it."""
    frames = f"https://*.school.example, http://127.0.0.1:{site[1]}"
    yield from driver.serving(STREAMLIT_SERVER_BASE_URL_PATH=BASE, HEADLIGHT_FRAMES=frames)


def outside(one: Visitor) -> list[str]:
    """Addresses of the server that were asked for, but lie outside of the path. Streamlit looks
    for its own health and settings in each folder above the page."""
    asked = [urlsplit(each).path for each in one.requests if each.startswith("http")]
    return [each for each in asked if not each.startswith(f"{BASE}/") and "/_stcore/" not in each]


@pytest.fixture
def teacher(browser: object, server: str) -> Iterator[Visitor]:
    one = Visitor(browser, server).hear_requests()
    yield one
    assert not outside(one) and not one.wrong()
    one.leave()


student = teacher


def test_every_page_asset_and_link_lies_below_the_path(teacher: Visitor, server: str) -> None:
    teacher.open()
    for name, place in places.PLACES.items():
        if name == "classroom":
            continue  # its link is a button
        teacher.go(place.title)
        called = (place.tabs[0].title, *place.tabs[0].titles.values())
        teacher.page.get_by_role("tab", name=re.compile("|".join(called))).first.wait_for()
        teacher.at_rest()
        links = [each for each in teacher.page.evaluate(EVERY_LINK) if server[:16] in each]
        assert len(links) >= len(places.PLACES)
        assert not [each for each in links if urlsplit(each).path[: len(BASE)] != BASE], place
        assert teacher.page.locator("[data-testid=stException]").count() == 0
    # The file that is exported leads back to it.
    teacher.open("?layer=1&head=5")
    teacher.open_export()
    made = teacher.export(re.compile("HTML")).read_text("utf-8")
    assert f'href="{server}/?' in made
    with httpx2.Client(follow_redirects=False) as ask:
        root = server.removesuffix(BASE)
        moved = ask.get(f"{server}?text=a")
        assert moved.status_code == 307 and moved.headers["location"] == f"{BASE}/?text=a"
        assert f'href="{BASE}/learn"' in ask.get(f"{server}/attentoin").text
        for path in ("/", "/healthz", "/learn", "/_stcore/health", f"{BASE}x/", "/tools"):
            assert ask.get(f"{root}{path}").status_code == 404, path
        for path in ("/healthz", "/readyz", "/join", "/favicon.png", "/app/static/inter.woff2"):
            assert ask.get(f"{server}{path}").status_code == 200, path


def test_a_class_is_joined_below_the_path(teacher: Visitor, student: Visitor) -> None:
    begin(teacher, student)
    teacher.go("Learn")
    student.page.wait_for_url(f"**{BASE}/learn**")
    student.page.wait_for_selector(FOLLOWS)


def test_only_the_sites_that_are_named_frame_it(
    browser: object, server: str, site: tuple[Path, int]
) -> None:
    folder, port = site
    (folder / "frame.html").write_text(f'<iframe src="{server}/" width=1200 height=800></iframe>')
    policy = httpx2.get(f"{server}/").headers
    assert (
        f"'self' https://*.school.example http://127.0.0.1:{port}"
        in (policy["content-security-policy"])
    )
    assert "x-frame-options" not in policy
    page = browser.new_context().new_page()
    page.goto(f"http://127.0.0.1:{port}/frame.html")
    page.frame_locator("iframe").locator(f"{GRID}[data-token]").wait_for()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(f"http://localhost:{port}/frame.html")
    for _ in range(100):
        if said:
            break
        page.wait_for_timeout(50)
    assert any("frame-ancestors" in each for each in said)
    page.context.close()
