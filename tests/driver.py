"""Driving a real browser against a real server: what every journey needs. The fixtures `server`,
`browser` and `visitor` are in conftest."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

import pytest

from explorer.text import places

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
# Any of them will do. The first has no window to draw and takes the least of the processor.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
MARKS = [pytest.mark.browser, pytest.mark.slow]
if CHROMIUM is None and not os.environ.get("CI"):
    MARKS.append(pytest.mark.skip(reason="no chromium on this machine; under CI this is an error"))


def browser_test(test: Callable) -> Callable:
    """A test in a real browser, with the marks of one."""
    for mark in MARKS:
        test = mark(test)
    return test


QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # V8's optimising compilers cost more than they save in a page that lives for seconds.
    "--js-flags=--no-opt --no-maglev",
]


def free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serving(**settings: str) -> Iterator[str]:
    """The app on a free port under these settings of its environment, up and healthy: its
    address."""
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        "--server.port",
        str(port),
        "--server.address",
        "127.0.0.1",
    ]
    yield from running(command, port, **settings)


def answers(address: str) -> bool:
    """True once the app answers there, False where it does not within 30 s."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return True
        except OSError:
            time.sleep(0.05)
    return False


def running(command: list[str], port: int, folder: Path = ROOT, **settings: str) -> Iterator[str]:
    """The app as a command starts it in a folder on that port, under these settings, up and
    healthy: its address."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    base = settings.get("STREAMLIT_SERVER_BASE_URL_PATH", "")
    address = f"http://127.0.0.1:{port}{base}"
    if not answers(address):
        process.kill()
        pytest.fail("the app did not answer within 30 s")
    yield address
    process.terminate()
    process.wait(10)


def browsing() -> Iterator[object]:
    """The system's chromium."""
    assert CHROMIUM, "the browser tests need chromium: apt-get install chromium"
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)


def is_looking(message) -> bool:
    """True where Streamlit looked for its own addresses below a page's path, found none, and went
    on to the right place."""
    return "404" in message.text and "/_stcore/" in message.location.get("url", "")


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
USUAL = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}
PATIENCE = 60_000  # milliseconds until what is waited for counts as missing: machines are busy

GRID, HEAD, VOTE, READS = (
    f"[data-panel='attention.{name}']" for name in ("heads", "head", "votes", "reads")
)
PICTURE = f":is({HEAD}, {VOTE}, {READS})"  # beside the grid, or above it
HELD = f"{HEAD} .token[aria-pressed=true]"
CELLS = f"{HEAD} .cells"  # of the matrix
IMAGE = f"{HEAD} image >> nth=1"  # of its cells, after that of the scale
HELD_AT = "one => JSON.parse(one.dataset.select)[0]"
PIXELS = """async (cells) => {
  const image = new Image(); image.src = cells.getAttribute("href"); await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  const pen = canvas.getContext("2d"); pen.drawImage(image, 0, 0);
  return [...pen.getImageData(0, 0, image.width, image.height).data]; }"""
DRAWN_ANEW = """([grid, head, ...before]) => {
  const names = [grid, head].map((panel) => [...document.querySelectorAll('*')].map((each) =>
    each.shadowRoot?.querySelector(panel + '[data-token]')?.dataset.token).find(Boolean));
  return names.every((name, at) => name !== undefined && name !== before[at]); }"""


CLEAR = """(cells, [down, right]) => {
  const box = cells.getBoundingClientRect(), pane = cells.closest(".pane");
  if (!pane) return;
  const frame = pane.getBoundingClientRect(), named = pane.querySelector(".corner");
  const { width, height } = named.getBoundingClientRect();
  const middle = (from, to) => (from + to) / 2;
  pane.scrollLeft += box.left + right * box.width - middle(frame.left + width, frame.right);
  pane.scrollTop += box.top + down * box.height - middle(frame.top + height, frame.bottom); }"""


def point_at(page: Page, query: int, key: int, shape: tuple[int, ...]) -> tuple[float, float]:
    """Move the pointer to a cell of the head's matrix, of that shape, scrolled clear of the names
    around it: where it is now."""
    cells, (queries, keys) = page.locator(CELLS), shape
    cells.scroll_into_view_if_needed()
    down, right = (query + 0.5) / queries, (key + 0.5) / keys
    cells.evaluate(CLEAR, [down, right])
    box = cells.bounding_box()
    x, y = box["x"] + right * box["width"], box["y"] + down * box["height"]
    page.mouse.move(x, y)
    return x, y


# What the startup bundle's loader asks before it gets the bundle.
ONE_BY_ONE = "HTMLScriptElement.supports = () => false"


class Visitor:
    """One browser page, and what went wrong on it.

    A page that another visit has left is used again: its process has read and compiled the app's
    code, more than half of the work of opening a page. What the visit before it stored, where it
    went and how its window was is forgotten. Its first visit gets the app's modules in the startup
    bundle, later ones each by its own address: what a browser compiled, it keeps by address."""

    waiting: ClassVar[dict[str, list]] = {}  # pages that were left, by the options of their context
    here: ClassVar[list[Visitor]] = []

    def __init__(self, browser, server: str, **options) -> None:
        options = {**USUAL, **options}
        viewport, scheme = options.pop("viewport"), options.pop("color_scheme", "light")
        motion = options.pop("reduced_motion")
        self.left = self.waiting.setdefault(repr(sorted(options.items())), [])
        self.is_first = not self.left  # of its page
        self.page = browser.new_context(**options).new_page() if self.is_first else self.left.pop()
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(color_scheme=scheme, reduced_motion=motion)
        self.page.set_default_timeout(PATIENCE)
        self.context = self.page.context
        self.files = tempfile.TemporaryDirectory()  # lies as long as the visit
        self.server, self.errors, self.requests = server, [], []
        self.hears = {
            "pageerror": lambda error: self.errors.append(error.stack or str(error)),
            "console": lambda message: (
                self.errors.append(message.text)
                if message.type == "error" and not is_looking(message)
                else None
            ),
        }
        for event, hear in self.hears.items():
            self.page.on(event, hear)
        self.here.append(self)

    def hear_requests(self) -> Visitor:
        """Gather in `requests` what the page asks for from now on: some 150 addresses a visit,
        each of which takes time of this process."""
        self.hears["request"] = lambda request: self.requests.append(request.url)
        self.page.on("request", self.hears["request"])
        return self

    def wrong(self) -> list[str]:
        """Errors of the page, but for files that were not found: Streamlit asks for two beside the
        page's address before it finds them above it. A line of a stack may have any number."""
        return [error for error in self.errors if "404" not in error.partition("\n")[0]]

    def leave(self) -> None:
        """End the visit: go to an address of the app that has no page, and forget there."""
        self.here.remove(self)
        for event, hear in self.hears.items():
            self.page.remove_listener(event, hear)
        for other in self.context.pages:
            if other is not self.page:
                other.close()
        self.page.unroute_all()
        self.page.mouse.move(-1, -1)
        self.page.goto(f"{self.server}/_stcore/health")
        self.page.evaluate("sessionStorage.clear()")
        if self.is_first:
            self.context.add_init_script(ONE_BY_ONE)
        origin = "/".join(self.server.split("/")[:3])
        store = {"origin": origin, "storageTypes": "cookies,indexeddb,local_storage"}
        tools = self.context.new_cdp_session(self.page)
        tools.send("Storage.clearDataForOrigin", store)
        tools.send("Page.resetNavigationHistory")
        tools.detach()
        self.left.append(self.page)

    @classmethod
    def close(cls) -> None:
        """Close the pages of visits that did not end, as of a test that failed."""
        while cls.here:
            cls.here.pop().context.close()

    def hold(self, views: str, late: list) -> None:
        """Have every module fetched by itself, and gather the requests for those of some views
        (names with a | between) in `late` instead of answering them."""
        empty = '{"modules": [], "soon": []}\n'
        self.page.route("**/startup", lambda route: route.fulfill(body=empty))
        self.page.route(re.compile(rf"/({views})\.js$"), lambda route: late.append(route))

    def at_rest(self) -> Visitor:
        """Wait until no run is on its way."""
        self.page.wait_for_selector("[data-test-script-state=notRunning]")
        return self

    def choose(self, menu: str, option: str, within: Any = None, exact: bool = True) -> Visitor:
        """An option of a menu, which is opened again where a run of the page has closed it."""
        from playwright.sync_api import TimeoutError

        field = (within or self.page).get_by_role("combobox", name=menu)
        field.wait_for()
        option_of = self.page.get_by_role("option", name=option, exact=exact)
        for _ in range(5):
            self.at_rest()
            field.click()
            with suppress(TimeoutError):
                option_of.click(timeout=5_000)
                return self
            self.page.keyboard.press("Escape")
        raise AssertionError(f"{menu} offers no {option}")

    def visit(self, tab: str, drawn: str, **asked: object) -> Visitor:
        """A tab by a link with these choices, at rest with `drawn`, a selector, on it."""
        choices = {name: str(value) for name, value in asked.items()}
        self.page.goto(f"{self.server}{places.address(tab, choices)}")
        self.page.wait_for_selector(drawn)
        self.at_rest()
        # Streamlit first looks for its own addresses below a page's path and finds none there.
        self.errors[:] = self.wrong()
        return self

    def join(self, code: str) -> Visitor:
        """To a class by its link, and the press that joins it."""
        self.page.goto(f"{self.server}/join/{code}")
        self.page.get_by_role("button", name="Join").click()
        return self

    def open(self, query: str = "", text: str | None = None) -> Visitor:
        """The first page by a link, of a `text` where one is given."""
        said = "" if text is None else f"{'&' if query else '?'}{urlencode({'text': text})}"
        self.page.goto(f"{self.server}/{query}{said}")
        return self.drawn()

    def go(self, place: str, tab: str = "", shown: str = "") -> Visitor:
        """To a place by its link, to one of its tabs by that, and to one of several things that it
        shows by its button."""
        self.page.get_by_role("link", name=place, exact=True).first.click()
        if tab:
            self.page.get_by_role("tab", name=tab, exact=True).click()
        if shown:
            self.page.locator(".st-key-rows").get_by_role("radio", name=shown, exact=True).click()
        return self

    def drawn(self) -> Visitor:
        """Wait until grid and head, or what the heads say, are painted, by the page itself and not
        ahead of it, and no run is on its way. A run that the server has not begun yet is not waited
        for."""
        self.page.wait_for_selector(f"{GRID}[data-token]")
        self.page.wait_for_selector(f"{PICTURE}[data-token]")
        self.page.wait_for_selector("html:not([data-headlight-ahead])", state="attached")
        return self.at_rest()

    def until(self, script: str, argument: object = None) -> None:
        """Wait until a script says so. Playwright's own way evaluates texts in the page, whose
        policy forbids it."""
        from playwright.sync_api import Error

        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end:
            try:
                if self.page.evaluate(script, argument):
                    return
            except Error as error:
                if "context" not in str(error):  # that of a page which was left
                    raise
            # Whoever looks at a whole page all the time keeps it from being drawn.
            self.page.wait_for_timeout(50)
        pytest.fail(f"it never came: {script}")

    def paste(self, text: str) -> Visitor:
        before = [self.drawing(each) for each in (GRID, PICTURE)]
        area = self.page.locator("textarea").first
        area.fill(text)
        area.press("Control+Enter")
        self.until(DRAWN_ANEW, [GRID, PICTURE, *before])
        return self.drawn()

    def open_export(self) -> None:
        """Open the Export menu, unless it is open."""
        if not self.page.locator(".pictures").count():
            self.page.get_by_role("button", name="Export").click()
        self.page.wait_for_selector(".pictures button")

    def export(self, name: str | re.Pattern[str]) -> Path:
        """Take a file out of the Export menu, by its button: where it lies under its own name."""
        self.open_export()
        button = self.page.get_by_role("button", name=name, exact=True)
        button.wait_for()
        self.page.wait_for_selector("[data-test-script-state=notRunning]")
        with self.page.expect_download() as waiting:
            button.click()
        path = Path(tempfile.mkdtemp(dir=self.files.name)) / waiting.value.suggested_filename
        waiting.value.save_as(path)
        self.close_menu(".pictures")
        return path

    def close_menu(self, inside: str) -> None:
        """Close an open menu, by something that is in it."""
        self.page.keyboard.press("Escape")
        self.page.wait_for_selector(inside, state="detached")
        # The run that follows closes the menu once more: a press within 60 ms would be undone.
        self.page.wait_for_timeout(150)
        self.at_rest()

    def view(self, choice: str) -> None:
        """Choose in the View menu, by what the choice reads as; the menu is left open."""
        option = self.page.get_by_role("radio", name=choice, exact=True)
        if not option.count():
            self.page.get_by_role("button", name="View", exact=True).click()
        option.first.click()

    def drawing(self, panel: str) -> str | None:
        """The name of what a panel shows."""
        return self.page.locator(f"{panel}[data-token]").first.get_attribute("data-token")

    def picture(self) -> str | None:
        """The name of what the grid of heads shows."""
        return self.drawing(GRID)

    def pixels(self, image: str) -> list[int]:
        """Red, green, blue and alpha of each cell of a picture of cells."""
        return self.page.locator(image).first.evaluate(PIXELS)

    def fits(self) -> bool:
        """Whether the page needs no scrolling sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")

    def point_at(self, query: int, key: int, shape: tuple[int, ...]) -> tuple[float, float]:
        """Move the pointer to a cell of the head's matrix, of that shape: where it is now."""
        return point_at(self.page, query, key, shape)

    def weight(self) -> str:
        """The weight of the cell that is pointed at."""
        return self.page.locator(f"{HEAD} .finding strong").inner_text()

    def said(self) -> str:
        """The sentence above the head's picture."""
        return self.page.locator(f"{HEAD} .finding").inner_text()

    def title(self) -> str:
        return self.page.locator(".st-key-finding p").first.inner_text()

    def tokens(self) -> list[str]:
        """The words above the head's picture, of two texts those of both; of a sentence with lines
        those that can be pressed."""
        words = f"{HEAD} .token, {READS} [role=button][data-select^='[\"token=']"
        texts = self.page.locator(words).evaluate_all(
            "all => all.map(one => one.querySelector('text').textContent)"
        )
        return [text.removesuffix(" ") for text in texts]
