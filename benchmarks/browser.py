"""Enter to painted pixels, in a real browser, as ratios within one run: `python -m
benchmarks.browser`.

E is the app's own empty rerun: the same server, the same moment, a page that only repeats the
field. Every case is measured in turn with E, `ROUNDS` times; medians are compared. Bytes are those
of the websocket's frames. Times of a shared machine mean little alone.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Callable
from statistics import median
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

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
ROUNDS = int(os.environ.get("ROUNDS", 9))
# By shape, milliseconds that it may take beyond E.
GRIDS = {"6x8x64": 60, "12x12x256": 150, "12x12x512": 300}
OPENED = {"6x8x64": 90, "12x12x256": 90}

# Resolves with the milliseconds from the keydown or click to two frames after `script` (an
# expression) first is true.
CLOCK = """({script, event}) => new Promise(resolve => {
  const seen = new Function('deep', 'return ' + script);
  const deep = selector => {
    const shadows = [...document.querySelectorAll('*')].map(e => e.shadowRoot).filter(Boolean);
    for (const root of [document, ...shadows]) {
      const found = root.querySelector(selector);
      if (found) return found;
    }
  };
  let from;
  window.addEventListener(event, () => (from = performance.now()), { capture: true, once: true });
  const drawn = () => requestAnimationFrame(() => resolve(performance.now() - from));
  const look = () => requestAnimationFrame(from !== undefined && seen(deep) ? drawn : look);
  look();
  window.armed = true;
})"""
# Milliseconds of 200 moves of the mouse over a cell of the grid and over a matrix: for each the
# median and the 191st of the 200.
HOVER = """([x, y]) => {
  const roots = [...document.querySelectorAll('*')].map(e => e.shadowRoot).filter(Boolean);
  const grid = roots.find(r => r.querySelector('.cell'));
  const area = roots.map(r => r.querySelector('.cells')).find(Boolean);
  const box = area.getBoundingClientRect();
  const moves = (over, read, place) => {
    const times = [];
    for (let i = 0; i < 200; i++) {
      const [clientX, clientY] = place(i), from = performance.now();
      over.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY, bubbles: true }));
      read.getBoundingClientRect();
      times.push(performance.now() - from);
    }
    times.sort((p, q) => p - q);
    return [times[100], times[190]];
  };
  return [
    ...moves(grid.querySelectorAll('.cell')[9], grid.querySelector('.finding'),
             i => [x + i % 20, y + i % 17]),
    ...moves(area, area, i => [box.left + 5 + i, box.top + 5 + i % 100]),
  ];
}"""
LENGTHS = {12: (120, 270), 60: (180, 330), 450: (350, 500)}  # words -> milliseconds allowed
LOADED = "minilm"  # a model that is loaded beside the one that is drawn
LARGE = {12: (200, 350)}  # the same for smollm2, beyond the empty page
# Resolves with the milliseconds from Enter to the end of the frame in which the new grid and head
# are painted, and to that of the one in which the new headline stands there too. A second frame
# would wait for the page's own run, which Streamlit draws then.
TEXT_CLOCK = """() => new Promise((resolve) => {
  const deep = (selector) => {
    const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
    for (const root of [document, ...roots]) {
      const found = root.querySelector(selector);
      if (found) return found;
    }
  };
  const painted = () => ['heads', 'head'].map((name) =>
    deep(`[data-panel="attention.${name}"]`)?.dataset.token);
  const sentences = () => [document.querySelector('.st-key-findings h1')?.innerText];
  const before = [painted(), sentences()];
  const differ = (now, then) => now.every((each, at) => each && each !== then[at]);
  const afterFrame = (then) => {  // called in a frame: once it is painted
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = then;
    port2.postMessage(0);
  };
  let from;
  const took = [];
  addEventListener('keydown', () => (from = performance.now()), { capture: true, once: true });
  const look = () => {
    const passed = () => performance.now() - from;
    if (from !== undefined && !(0 in took) && differ(painted(), before[0])) {
      took[0] = passed();
      afterFrame(() => (took[0] = passed()));
    }
    if (0 in took && differ(sentences(), before[1]))
      return afterFrame(() => resolve([took[0], passed()]));
    if (passed() > 30000) return resolve([took[0] ?? NaN, NaN]);
    requestAnimationFrame(look);
  };
  look();
})"""


class Bench:
    """One page on the benchmark's server."""

    def __init__(self, page: Page, pid: int) -> None:
        self.page, self.pid, self.count = page, pid, 0
        self.frames: list[int] = []
        page.on(
            "websocket",
            lambda socket: socket.on("framereceived", lambda frame: self.frames.append(len(frame))),
        )

    def timed(self, script: str, event: str, act: Callable[[], None]) -> tuple[float, int, float]:
        """(milliseconds, bytes, server CPU milliseconds) from the event to the painted picture."""
        self.settle()
        self.page.evaluate("() => { window.armed = false }")
        self.frames.clear()
        before = cpu_ms(self.pid)
        handle = self.page.evaluate_handle(
            f"(argument) => {{ window.clock = ({CLOCK})(argument); }}",
            {"script": script, "event": event},
        )
        handle.dispose()
        act()
        took = self.page.evaluate("() => window.clock")
        self.settle()
        return took, sum(self.frames), cpu_ms(self.pid) - before

    def settle(self) -> None:
        self.page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
        time.sleep(0.15)

    def enter(self, case: str, script: str) -> tuple[float, int, float]:
        self.count += 1
        case = f"{case} #{self.count}"
        self.page.locator("input").fill(case)
        return self.timed(
            script.replace("CASE", case), "keydown", lambda: self.page.keyboard.press("Enter")
        )


EMPTY = (
    "document.querySelector('[data-testid=stCaptionContainer]')?.innerText.startsWith('done CASE')"
)
GRID, HEAD = (f'[data-panel="attention.{name}"][data-token]' for name in ("heads", "head"))
DIAGRAM, DRAWN = '[data-panel="architecture.diagram"][data-token]', 300  # milliseconds
PAINTED = 'deep(\'[data-panel="attention.heads"][data-token="CASE"]\')'
PLOTTED = (
    "document.querySelector('.gtitle')?.textContent === 'CASE' && "
    "document.querySelectorAll('.heatmaplayer image').length >= 48"
)


def report(
    name: str,
    rows: list[tuple[float, int, float]],
    empty: list[tuple[float, int, float]],
    bar: str = "",
) -> None:
    took, base = median(row[0] for row in rows), median(row[0] for row in empty)
    cpu = sum(row[2] for row in rows) / len(rows)
    print(
        f"{name:<28} {took:8.0f} ms   E {base:4.0f}   E + {took - base:6.0f} ms {bar:<14} "
        f"{took / base:6.1f} x E   {median(row[1] for row in rows) / 1e3:9.1f} kB   CPU "
        f"{cpu:5.0f} ms",
        flush=True,
    )


def grids(bench: Bench) -> None:
    for shape, allowed in GRIDS.items():
        bench.enter(f"make {shape}", EMPTY)
        rows, empty = [], []
        for _ in range(ROUNDS):
            empty.append(bench.enter("empty", EMPTY))
            rows.append(bench.enter(f"grid {shape}", PAINTED))
        report(f"all heads {shape}", rows, empty, f"(bar {allowed})")
        if shape in OPENED:
            opened(bench, shape, OPENED[shape], empty)
    bench.enter("make 6x8x64", EMPTY)
    rows, empty = [], []
    for _ in range(max(3, ROUNDS // 3)):
        empty.append(bench.enter("empty", EMPTY))
        rows.append(bench.enter("plotly 6x8x64", PLOTTED))
    report("Plotly subplots 6x8x64", rows, empty, "(yardstick)")
    print(
        "BertViz model view, 48 heads x 128 tokens: 21.8 MB and 25.8 s (measured earlier on "
        "such a machine, not in this run)"
    )


def opened(bench: Bench, shape: str, allowed: int, empty: list[tuple[float, int, float]]) -> None:
    bench.enter(f"grid {shape}", PAINTED)
    case = f"grid {shape} #{bench.count}"
    rows = []
    for at in range(ROUNDS + 1):
        # Of many heads the strongest are shown first, another order for each grid.
        cell = bench.page.locator(".cell[aria-pressed=false]").nth(3 * at + 1)
        select = cell.get_attribute("data-select") or ""
        head = ".".join(json.loads(select))
        cell = bench.page.locator(f".cell[data-select='{select}']")
        rows.append(
            bench.timed(
                f"deep('{HEAD}')?.dataset.token === '{case} {head}'", "click", lambda: cell.click()
            )
        )
    n = int(shape.split("x")[2])
    report(f"open a head {shape}", rows[1:], empty, f"(bar {allowed})")
    largest = max(row[1] for row in rows[1:])
    print(
        f"{'':28} at most {largest / 1e3:.1f} kB, bar {(30_000 + n * n) / 1e3:.1f} kB", flush=True
    )
    bench.frames.clear()
    box = bench.page.locator(".cell").nth(9).locator(".thumb").bounding_box()
    took = bench.page.evaluate(HOVER, [box["x"], box["y"]])
    time.sleep(0.3)
    print(
        f"{'hover ' + shape:<28} grid {took[0]:.2f} ms (95 %: {took[1]:.2f}), matrix "
        f"{took[2]:.2f} ms (95 %: {took[3]:.2f}), bar 5 ms, {sum(bench.frames)} bytes",
        flush=True,
    )


SLOW = "by 20 Mbit/s, 40 ms"
NETWORK = {
    "offline": False,
    "latency": 40,  # milliseconds
    "downloadThroughput": 20e6 / 8,  # bytes a second
    "uploadThroughput": 20e6 / 8,
}


def first_visit(browser) -> None:
    """Print what visits with an empty cache transfer and take: right after the server's start, by a
    slower network, and once more."""
    with server("app.py") as (address, _):
        for name in ("after the start", SLOW, "once more"):
            context = browser.new_context(viewport={"width": 1440, "height": 900})
            page = context.new_page()
            client = context.new_cdp_session(page)
            client.send("Network.enable")
            if name == SLOW:
                client.send("Network.emulateNetworkConditions", NETWORK)
            got, frames, hosts, requests = [], [], set(), set()
            client.on(
                "Network.loadingFinished", lambda event: got.append(event["encodedDataLength"])
            )
            client.on(
                "Network.requestWillBeSent",
                lambda event: (
                    requests.add(event["requestId"])
                    if event["request"]["url"].startswith("http")
                    else None
                ),
            )
            client.on("Network.webSocketCreated", lambda event: requests.add(event["requestId"]))
            client.on(
                "Network.webSocketFrameReceived",
                lambda event: frames.append(len(event["response"]["payloadData"])),
            )
            page.on(
                "request",
                lambda request: hosts.add(
                    request.url.split("/")[2] if "://" in request.url else "inline"
                ),
            )
            start = time.perf_counter()
            page.goto(address, wait_until="commit")
            page.wait_for_selector("text=Headlight", timeout=60_000)
            text = time.perf_counter() - start
            page.wait_for_selector(GRID, timeout=60_000)
            grid = time.perf_counter() - start
            time.sleep(1)
            print(
                f"{'visit ' + name + ', cold browser':<40} {(sum(got) + sum(frames)) / 1e6:.2f} MB "
                f"(bar 1.5) in {len(requests)} requests (bar 60), to read {text:.2f} s, "
                f"grid {grid:.2f} s, hosts {len({h for h in hosts if h and h != 'inline'})}",
                flush=True,
            )
            if name == "once more":
                before = sum(got)
                page.goto(f"{address}/architecture?tab=embeddings&space=3-D")
                page.wait_for_selector(".js-plotly-plot", timeout=60_000)
                time.sleep(1)
                print(
                    f"{'Plotly, when it is asked for':<40} {(sum(got) - before) / 1e6:.2f} MB "
                    f"more, {(sum(got) + sum(frames)) / 1e6:.2f} MB in all",
                    flush=True,
                )
            context.close()


def texts(app: Bench, empty: Bench, address: str) -> None:
    """Text to painted pictures in the app itself. `empty`: the bench of the empty page."""
    others = (smollm2.NAME,) if smollm2.file() else ()
    for model in (LOADED, *others, "encoder"):
        first = quote(random_text(random.Random(0), 9))
        app.page.goto(f"{address}/?model={model}&view=Matrix&text={first}")
        app.page.wait_for_selector(HEAD, timeout=120_000)
        app.settle()
        if model in others:
            enter_texts(app, empty, model, LARGE)
    enter_texts(app, empty, "encoder", LENGTHS)


def enter_texts(app: Bench, empty: Bench, model: str, lengths: dict[int, tuple[int, int]]) -> None:
    """Print how long texts of some lengths take to be painted by the model that is open."""
    page = app.page
    field = page.locator(".sentence textarea")
    for words, allowed in lengths.items():
        took, base, sizes = [], [], []
        for at in range(ROUNDS + 1):
            base.append(empty.enter("empty", EMPTY)[0])
            app.settle()
            app.frames.clear()
            page.evaluate(f"() => {{ window.clock = ({TEXT_CLOCK})(); }}")
            field.fill(random_text(random.Random(1000 * words + at), words))
            field.press("Enter")
            took.append(page.evaluate("() => window.clock"))
            app.settle()
            sizes.append(sum(app.frames))
        e = median(base[1:])
        for what, each, bar in zip(("painted", "with its headline"), zip(*took[1:]), allowed):
            t = median(each)
            print(
                f"{model:8} {words:4} words, {what:<18} {t:7.0f} ms  E {e:4.0f}  {t / e:5.1f} x E"
                f"  (bar {bar} ms)  {median(sizes[1:]) / 1e3:7.1f} kB",
                flush=True,
            )


def diagrams(app: Bench, empty: Bench, address: str) -> None:
    """Print how long the diagram of the architecture takes after Enter, at 12 words."""
    others = (smollm2.NAME,) if smollm2.file() else ()
    page, field = app.page, app.page.locator(".sentence textarea")
    for model in ("encoder", *others):
        page.goto(f"{address}/architecture?model={model}&text={quote('The first text.')}")
        page.wait_for_selector(DIAGRAM, timeout=120_000)
        took, base = [], []
        for at in range(ROUNDS + 1):
            base.append(empty.enter("empty", EMPTY)[0])
            before = page.locator(DIAGRAM).get_attribute("data-token")
            drawn = f"![undefined, {json.dumps(before)}].includes(deep('{DIAGRAM}')?.dataset.token)"
            text = random_text(random.Random(-1 - at), 12)  # none that has been recorded
            write = lambda text=text: (field.fill(text), field.press("Enter"))
            took.append(app.timed(drawn, "keydown", write)[0])
        t, e = median(took[1:]), median(base[1:])
        print(
            f"{model:8}   12 words, {'diagram':<18} {t:7.0f} ms  E {e:4.0f}  {t / e:5.1f} x E"
            f"  (bar {DRAWN} ms)",
            flush=True,
        )


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        first_visit(browser)
        with server("benchmarks/page.py") as (address, pid):
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            bench = Bench(page, pid)
            page.goto(address)
            page.wait_for_selector("input", timeout=90_000)
            for _ in range(3):
                bench.enter("empty", EMPTY)
            grids(bench)
            with server("app.py") as (app, its_pid):
                real = Bench(browser.new_page(viewport={"width": 1440, "height": 900}), its_pid)
                texts(real, bench, app)
                diagrams(real, bench, app)


if __name__ == "__main__":
    main()
