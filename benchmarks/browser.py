"""Enter to painted pixels, in a real browser: `python -m benchmarks.browser`.

Visits with an empty cache: what they transfer, and seconds until the first words and the first
pictures. Then, for texts of some lengths: milliseconds from Enter until the two large pictures of
attention are painted, and until the headline stands there too; from a click on a head until it is
painted; those of a move of the mouse over both. At last the flow, the picture of the whole machine:
milliseconds until it is painted, and frames a second while it plays.

E is an empty Streamlit page's own rerun: each case is measured in turn with it, and medians are
compared. Bytes are those of the websocket's frames, CPU is the server's.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.calibration import print_calibration
from benchmarks.clients import cpu_ms, random_text, server
from models import smollm2

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 600_000  # milliseconds for whatever a slow machine takes
STILL = 3_000  # milliseconds after which nothing more comes where no script runs
HEADS, HEAD, FLOW = (
    f'[data-panel="{name}"][data-token]'
    for name in ("attention.heads", "attention.head", "architecture.flow")
)
# True once a reader sees words; a link to the page's content is there before, and out of sight.
WORDS = "document.body?.innerText.replace('Skip to main content', '').trim()"
HEADLINE, CAPTION = ".st-key-findings h1", "[data-testid=stCaptionContainer]"
LOADED = "minilm"  # a model that is loaded beside the one that is drawn
SLOW = "by 20 Mbit/s, 40 ms"
NETWORK = {
    "offline": False,
    "latency": 40,  # milliseconds
    "downloadThroughput": 20e6 / 8,  # bytes a second
    "uploadThroughput": 20e6 / 8,
}

# What an element shows: the token of its panel, or its text.
SHOWN = """(selector) => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
  const element = [document, ...roots].map((root) => root.querySelector(selector)).find(Boolean);
  return element && (element.dataset.token ?? element.innerText);
}"""
# Resolves with milliseconds from an event: for each group of selectors those to the end of the
# frame in which all of the group show something else than before. A later group gets none where all
# has been still for seconds: it shows again what it showed.
CLOCK = f"""([event, groups, patience, still]) => new Promise((resolve, reject) => {{
  const shown = {SHOWN};
  const before = groups.map((group) => group.map(shown));
  const changed = (group, at) =>
    group.every((each, of) => shown(each) !== undefined && shown(each) !== before[at][of]);
  const took = [];
  let from, moved;
  addEventListener(event, () => (from = performance.now()), {{ capture: true, once: true }});
  const next = (time) => {{
    moved = performance.now();
    took.push(time);
    took.length === groups.length ? resolve(took) : requestAnimationFrame(look);
  }};
  const look = () => {{
    if (performance.now() - from > patience) return reject(new Error(groups[took.length]));
    if (document.querySelector('[data-testid=stStatusWidget]')) moved = performance.now();
    if (took.length && performance.now() - moved > still) return next(null);
    if (from === undefined || !changed(groups[took.length], took.length))
      return requestAnimationFrame(look);
    const {{ port1, port2 }} = new MessageChannel(); // comes once this frame is painted
    port1.onmessage = () => next(performance.now() - from);
    port2.postMessage(0);
  }};
  requestAnimationFrame(look);
}})"""
# Milliseconds of 200 moves of the mouse over a cell of the grid and over a matrix: for each the
# median and the 191st of the 200.
HOVER = """() => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
  const find = (selector) => roots.map((root) => root.querySelector(selector)).find(Boolean);
  const moves = (over) => {
    const box = over.getBoundingClientRect(), times = [];
    for (let i = 0; i < 200; i++) {
      const clientX = box.left + 2 + (i % (box.width - 4));
      const clientY = box.top + 2 + (i % (box.height - 4));
      const from = performance.now();
      over.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY, bubbles: true }));
      over.getBoundingClientRect();
      times.push(performance.now() - from);
    }
    times.sort((a, b) => a - b);
    return [times[100], times[190]];
  };
  return [moves(find('.cell .thumb')), moves(find('.cells'))];
}"""

# Resolves with the milliseconds between the frames of a page for a time, or until the button of a
# flow says again what it said before.
FRAMES = """(still) => new Promise((resolve) => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
  const play = roots.map((root) => root.querySelector('.flow-bar .play')).find(Boolean);
  const label = play.textContent, times = [];
  if (!still) play.click();
  const next = (time) => {
    times.push(time);
    const isOver = still ? time - times[0] > still : play.textContent === label;
    if (isOver) resolve(times.slice(1).map((each, at) => each - times[at]));
    else requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})"""
IDLE = 2_000  # milliseconds of a page on which nothing moves


class Cost(NamedTuple):
    """Milliseconds until each group of pictures was painted, None for one that stayed as it was;
    bytes over the websocket, and the server's CPU in milliseconds."""

    took: list[float | None]
    n_bytes: int
    cpu: float


class Visitor:
    """One open page, and the process that serves it."""

    def __init__(self, browser: Browser, pid: int) -> None:
        self.page: Page = browser.new_page(viewport={"width": 1440, "height": 900})
        self.page.set_default_timeout(PATIENCE)
        self.pid = pid
        self.frames: list[int] = []
        self.page.on(
            "websocket",
            lambda socket: socket.on("framereceived", lambda frame: self.frames.append(len(frame))),
        )

    def timed(self, event: str, groups: Sequence[Sequence[str]], act: Callable[[], object]) -> Cost:
        """The cost of an act: from its event until each group of selectors shows something new."""
        self.settle()
        self.frames.clear()
        before = cpu_ms(self.pid)
        self.page.evaluate(
            f"(of) => {{ window.clock = ({CLOCK})(of); }}",
            [event, [list(each) for each in groups], PATIENCE, STILL],
        )
        act()
        took = self.page.evaluate("() => window.clock")
        self.settle()
        return Cost(took, sum(self.frames), cpu_ms(self.pid) - before)

    def settle(self) -> None:
        """Wait until no script runs."""
        self.page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
        time.sleep(0.15)

    def enter(self, field: str, text: str, groups: Sequence[Sequence[str]]) -> Cost:
        """The cost of a text, typed into a field and ended by Enter."""
        box = self.page.locator(field)
        return self.timed("keydown", groups, lambda: (box.fill(text), box.press("Enter")))


class EmptyPage(Visitor):
    """The page that only repeats its field."""

    count = 0

    def rerun(self) -> float:
        """Milliseconds from Enter to the text once more: E."""
        self.count += 1
        (took,) = self.enter("input", f"text {self.count}", [[CAPTION]]).took
        assert took is not None  # a first group is waited for
        return took


def report(name: str, costs: Sequence[Cost], empty: Sequence[float], at: int = 0) -> None:
    """Print a line of the table: the median of a group's times beside those of the empty page."""
    times = [time for each in costs if (time := each.took[at]) is not None]
    if not times:
        return print(f"{name:<44} shows again what it showed", flush=True)
    took, base = median(times), median(empty)
    print(
        f"{name:<44} {took:7.0f} ms   E {base:4.0f}   E + {took - base:6.0f} ms   "
        f"{took / base:5.1f} x E   {median(each.n_bytes for each in costs) / 1e3:7.1f} kB   CPU "
        f"{mean(each.cpu for each in costs):5.0f} ms",
        flush=True,
    )


# ---- a first visit -------------------------------------------------------------------------------


def first_visits(browser: Browser) -> None:
    """Print what visits with an empty cache transfer and take: right after the server's start, by a
    slower network, and once more."""
    with server("app.py") as (address, _):
        for name in ("after the start", SLOW, "once more"):
            context = browser.new_context(
                viewport={"width": 1440, "height": 900},
                bypass_csp=True,  # which lets a look at the page run text
            )
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            client = context.new_cdp_session(page)
            client.send("Network.enable")
            if name == SLOW:
                client.send("Network.emulateNetworkConditions", NETWORK)
            sizes: list[int] = []
            hosts: list[str] = []  # of each request
            client.on(
                "Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"])
            )
            client.on(
                "Network.webSocketFrameReceived",
                lambda event: sizes.append(len(event["response"]["payloadData"])),
            )
            page.on("websocket", lambda socket: hosts.append(socket.url.split("/")[2]))
            page.on(
                "request",
                lambda request: (
                    hosts.append(request.url.split("/")[2])
                    if request.url.startswith("http")
                    else None
                ),
            )
            start = time.perf_counter()
            page.goto(address, wait_until="commit")
            page.wait_for_function(WORDS)
            words = time.perf_counter() - start
            page.wait_for_selector(HEADS)
            picture = time.perf_counter() - start
            time.sleep(1)
            print(
                f"{'visit ' + name + ', cold browser':<44} {sum(sizes) / 1e6:.2f} MB in "
                f"{len(hosts)} requests of {len({*hosts})} hosts, words {words:.2f} s, picture "
                f"{picture:.2f} s",
                flush=True,
            )
            context.close()


# ---- texts ---------------------------------------------------------------------------------------


def texts(app: Visitor, empty: EmptyPage, model: str, words: int, rounds: int) -> None:
    """Print what texts of so many words cost that the open model reads."""
    costs, base = [], []
    for number in range(rounds + 1):
        base.append(empty.rerun())
        text = random_text(random.Random(1000 * words + number), words)
        costs.append(app.enter(".sentence textarea", text, [[HEADS, HEAD], [HEADLINE]]))
    for at, what in enumerate(("painted", "with its headline")):
        report(f"{model}, {words} words, {what}", costs[1:], base[1:], at)


def heads(app: Visitor, empty: EmptyPage, name: str, rounds: int) -> None:
    """Print what it costs to open heads of the text that is there, and to move over them."""
    costs, base = [], []
    for number in range(rounds + 1):
        base.append(empty.rerun())
        # Of many heads the strongest come first, in an order that changes with the text alone.
        cell = app.page.locator(".cell[aria-pressed=false]").nth(3 * number + 1)
        select = cell.get_attribute("data-select") or ""
        cell = app.page.locator(f".cell[data-select='{select}']")
        costs.append(app.timed("click", [[HEAD]], cell.click))
    report(f"{name}, open a head", costs[1:], base[1:])
    (grid, slow_grid), (matrix, slow_matrix) = app.page.evaluate(HOVER)
    print(
        f"{name + ', hover':<44} grid {grid:.2f} ms (95 %: {slow_grid:.2f}), matrix {matrix:.2f} "
        f"ms (95 %: {slow_matrix:.2f})",
        flush=True,
    )


def flows(app: Visitor, empty: EmptyPage, address: str, model: str, rounds: int) -> None:
    """Print what the picture of the whole machine costs after Enter, at 12 words."""
    app.page.goto(f"{address}/architecture?model={model}&text={quote('The first text.')}")
    app.page.wait_for_selector(FLOW)
    costs, base = [], []
    for number in range(rounds + 1):
        base.append(empty.rerun())
        text = random_text(random.Random(-1 - number), 12)  # none that has been recorded
        costs.append(app.enter(".sentence textarea", text, [[FLOW]]))
    report(f"{model}, 12 words, flow", costs[1:], base[1:])
    app.page.goto(f"{address}/architecture?model={model}&text={quote(text)}&flow_beam=end")
    app.page.wait_for_selector(".flow-bar .play")
    idle, *played = (app.page.evaluate(FRAMES, still) for still in (IDLE, *[0] * rounds))
    frames = [each for one in played for each in one]
    print(
        f"{model + ', flow while it plays':<44} {1000 / mean(frames):.0f} frames a second (idle "
        f"{1000 / mean(idle):.0f}), 95 % of them within {np.percentile(frames, 95):.0f} ms",
        flush=True,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--words", type=int, nargs="+", default=[12, 60, 450])
    large = (smollm2.NAME,) if smollm2.file() else ()
    parser.add_argument("--beside", nargs="*", default=large, help="models beside the encoder")
    options = parser.parse_args(argv)
    print_calibration()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        first_visits(browser)
        with (
            server("benchmarks/blank_page.py") as (blank, blank_pid),
            server("app.py") as (address, pid),
        ):
            empty, app = EmptyPage(browser, blank_pid), Visitor(browser, pid)
            empty.page.goto(blank)
            empty.page.wait_for_selector("input")
            empty.rerun()
            for model in (LOADED, *options.beside, "encoder"):
                first = quote(random_text(random.Random(0), 9))
                app.page.goto(f"{address}/?model={model}&view=Matrix&text={first}")
                app.page.wait_for_selector(HEAD)
                if model in options.beside:
                    texts(app, empty, model, 12, options.rounds)
            for words in options.words:
                texts(app, empty, "encoder", words, options.rounds)
                heads(app, empty, f"encoder, {words} words", options.rounds)
            for model in ("encoder", *options.beside):
                flows(app, empty, address, model, options.rounds)


if __name__ == "__main__":
    main()
