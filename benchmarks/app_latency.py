"""Text to painted pictures in the app itself, in a real browser, as ratios to an empty rerun that
is measured in turn with it: a part of `python -m benchmarks.browser`."""

from __future__ import annotations

import os
import random
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

SENTENCES = Path(__file__).with_name("sentences.txt")
LENGTHS = {12: (120, 270), 60: (180, 330), 450: (350, 500)}  # words -> milliseconds allowed
OTHER = os.environ.get("OTHER", "minilm")  # a model that lies loaded beside the one that is drawn
HOVERS = 200

# Resolves with the milliseconds from Enter to two frames after the new grid and head are painted,
# and to two frames after the new headline and map stand there too.
CLOCK = """() => new Promise((resolve) => {
  const deep = (selector) => {
    const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
    for (const root of [document, ...roots]) {
      const found = root.querySelector(selector);
      if (found) return found;
    }
  };
  const painted = () => [deep('canvas[data-painted]')?.dataset.painted,
    deep('.head[data-token]')?.dataset.token];
  const told = () => [document.querySelector('.st-key-findings h1')?.innerText,
    deep('.way ol')?.innerHTML];
  const before = [painted(), told()];
  const differ = (now, then) => now.every((each, at) => each && each !== then[at]);
  const frames = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
  let from;
  const took = [];
  addEventListener('keydown', () => (from = performance.now()), { capture: true, once: true });
  const look = () => {
    const passed = () => performance.now() - from;
    if (from !== undefined && !(0 in took) && differ(painted(), before[0])) {
      took[0] = passed();
      frames(() => (took[0] = passed()));
    }
    if (0 in took && differ(told(), before[1])) return frames(() => resolve([took[0], passed()]));
    if (passed() > 30000) return resolve([took[0] ?? NaN, NaN]);
    requestAnimationFrame(look);
  };
  look();
})"""

HOVER = """(n) => {
  const root = (selector) => [...document.querySelectorAll('*')].map((e) => e.shadowRoot)
    .find((r) => r?.querySelector(selector));
  const over = (element) => {
    const box = element.getBoundingClientRect(), times = [];
    for (let i = 0; i < n; i++) {
      const at = { clientX: box.left + 2 + (i % 30), clientY: box.top + 2 + (i % 23) };
      const from = performance.now();
      element.dispatchEvent(new MouseEvent('mousemove', at));
      element.getBoundingClientRect();
      times.push(performance.now() - from);
    }
    return times.sort((p, q) => p - q)[n >> 1];
  };
  const cells = root('.cell').querySelectorAll('.cell');
  return [over(cells[9]), over(root('.area').querySelector('.area'))];
}"""


def text_of(words: int, seed: int) -> str:
    """So many words of the benchmark's sentences, in another order each time."""
    all_words = SENTENCES.read_text("utf-8").split()
    return " ".join(random.Random(seed).choices(all_words, k=words))


def measure(app: Any, empty: Any, address: str, empty_script: str, rounds: int) -> None:
    """Print the table. `app`, `empty`: a bench on the app's server and one on the empty page's;
    `empty_script`: what is true when the empty page has answered."""
    page = app.page
    for model in (OTHER, "encoder"):
        page.goto(f"{address}/?model={model}&view=Matrix&text={quote(text_of(9, 0))}")
        page.wait_for_selector(".head[data-token]", timeout=120_000)
        app.settle()
    field = page.locator(".sentence textarea")
    for words, allowed in LENGTHS.items():
        took, base, sizes = [], [], []
        for at in range(rounds + 1):
            base.append(empty.enter("empty", empty_script)[0])
            app.settle()
            app.frames.clear()
            page.evaluate(f"() => {{ window.clock = ({CLOCK})(); }}")
            field.fill(text_of(words, 1000 * words + at))
            field.press("Enter")
            took.append(page.evaluate("() => window.clock"))
            app.settle()
            sizes.append(sum(app.frames))
        e = median(base[1:])
        for what, each, bar in zip(("painted", "with finding and map"), zip(*took[1:]), allowed):
            t = median(each)
            print(
                f"{words:4} words, {what:<21} {t:7.0f} ms  E {e:4.0f}  {t / e:5.1f} x E"
                f"  (bar {bar} ms)  {median(sizes[1:]) / 1e3:7.1f} kB",
                flush=True,
            )
    app.frames.clear()
    grid, matrix = page.evaluate(HOVER, HOVERS)
    app.settle()
    print(
        f"hover: grid {grid:.2f} ms, {grid / e:.4f} x E; matrix {matrix:.2f} ms, "
        f"{matrix / e:.4f} x E (bar 5 ms); {sum(app.frames)} bytes",
        flush=True,
    )
