"""Memory of the server under readers: `python -m benchmarks.sessions --sessions 60`.

A server of its own is visited on every page and with every model first: that is "before". Then so
many readers come, each with a text of 512 words of their own, look at pages and stay. When all are
there they leave at once. Printed: the server's memory before, while they come, with all of them
there, and every ten seconds of the minute after.

`--texts 400`: instead, visit after visit with another long text on the next page, by some readers
at once. Printed: the server's memory over each tenth of the texts, the median of two samples a
second, beside that of the second tenth (the first fills the cache), and the largest sample; at the
end seconds a text. The cache is bounded (`--cache`, MiB), so after the first tenth of 2,000 texts
memory is flat.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from statistics import median

from benchmarks.clients import (
    memory_of,
    open_page,
    quantile,
    random_text,
    reader_line,
    server,
    visit,
)
from explorer.state import places
from explorer.state.settings import Settings

TABS = tuple(tab for place in places.PLACES.values() for tab in place.tabs)
MODELS = ("encoder", "decoder", "minilm")  # those that read 512 tokens
AT_ONCE = 4  # readers who come at the same time
SAMPLE = 0.2  # seconds between two samples of memory
EVERY = 10  # readers between two lines while they come
STEP = 10  # seconds between two samples after they have left
PARTS = 10


@dataclass
class Memory:
    """The server's memory in bytes: before anyone came, the most while readers came and stayed,
    with all of them there, and at each sample after they left. `errors`: visits that failed."""

    before: int = 0
    most: int = 0
    there: int = 0
    after: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def line(self, name: str, size: int) -> None:
        """Print a line of the table: bytes now, and beside before."""
        print(f"{name:<12} {size / 2**20:>7,.0f} MiB {size / self.before - 1:>+7.1%}", flush=True)


async def open_sessions(
    address: str,
    pid: int,
    sessions: int,
    words: int,
    pages: int,
    seconds: int,
    first: Sequence[str] = TABS,
) -> Memory:
    """Open so many sessions, each on so many pages, close them, and sample for so many seconds.
    `first`: the pages that are visited before."""
    memory, dice = Memory(), random.Random(0)
    for page in first:
        memory.errors.append(await visit(address, page, {}))
    for model in MODELS:
        memory.errors.append(await visit(address, "heads", {"model": model}))
    await asyncio.sleep(min(seconds, 25))  # until the server's collector has run
    memory.before = memory.most = memory_of(pid)
    memory.line("before", memory.before)
    readers = iter(range(sessions))

    async def some(stay: AsyncExitStack) -> None:
        for number in readers:
            line = await stay.enter_async_context(reader_line(address))
            choices = {"text": random_text(dice, words), "model": MODELS[number % len(MODELS)]}
            at = number * pages % len(TABS)
            for page in islice((*TABS, *TABS), at, at + pages):
                memory.errors.append(await open_page(line, page, choices))
            if (number + 1) % EVERY == 0:
                memory.line(f"{number + 1} came", memory_of(pid))

    async def watch() -> None:
        while True:
            memory.most = max(memory.most, memory_of(pid))
            await asyncio.sleep(SAMPLE)

    watching = asyncio.create_task(watch())
    async with AsyncExitStack() as stay:
        await asyncio.gather(*(some(stay) for _ in range(AT_ONCE)))
        await asyncio.sleep(min(seconds, 5))
        watching.cancel()
        memory.there = memory_of(pid)
        memory.most = max(memory.most, memory.there)
        memory.line("most", memory.most)
        memory.line("all there", memory.there)
    for at in range(STEP, seconds + 1, STEP):
        await asyncio.sleep(STEP)
        memory.after.append(memory_of(pid))
        memory.line(f"{at} s after", memory.after[-1])
    memory.errors = [each for each in memory.errors if each]
    return memory


@dataclass
class Soak:
    """Results of many visits: seconds of every text, the server's memory (bytes) over each part of
    the texts, and visits that failed."""

    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def visits(n: int, words: int) -> Iterator[tuple[str, dict[str, str]]]:
    """So many visits: a tab, and a link with a text that is new to the server."""
    dice, models = random.Random(0), (*MODELS, "translator")
    for at in range(n):
        model = models[at // len(TABS) % len(models)]
        yield TABS[at % len(TABS)], {"text": f"{at} {random_text(dice, words)}", "model": model}


async def soak(address: str, pid: int, n: int, readers: int, words: int) -> Soak:
    """All texts by so many readers at once."""
    result, remaining = Soak(), visits(n, words)
    samples: list[int] = []  # of memory, in the present part

    async def watch() -> None:
        while True:
            samples.append(memory_of(pid))
            await asyncio.sleep(0.5)

    async def reader() -> None:
        for page, choices in remaining:
            start = time.perf_counter()
            try:
                error = await visit(address, page, choices)
            except (OSError, TimeoutError) as reason:
                error = f"{page}: {type(reason).__name__} {reason}"
            result.seconds.append(time.perf_counter() - start)
            result.errors += [error] if error else []
            if len(result.seconds) * PARTS // n > len(result.memory):
                samples.append(memory_of(pid))
                now, most = median(samples), max(samples)
                samples.clear()
                result.memory.append(int(now))
                print(
                    f"{len(result.seconds)} texts, {now / 2**20:,.0f} MiB, "
                    f"{now / result.memory[:2][-1] - 1:+.1%}, at most {most / 2**20:,.0f}",
                    flush=True,
                )

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(reader() for _ in range(readers)))
    watching.cancel()
    return result


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--texts", type=int, default=0)
    parser.add_argument("--readers", type=int, default=4, help="at once, with --texts")
    parser.add_argument("--words", type=int, default=512)
    parser.add_argument("--pages", type=int, default=1, help="pages that each session opens")
    parser.add_argument("--cache", type=int, default=Settings.shelf_bytes // 2**20, help="MiB")
    parser.add_argument("--seconds", type=int, default=60, help="of samples after they left")
    options = parser.parse_args(argv)
    with server(HEADLIGHT_SHELF_BYTES=str(options.cache * 2**20)) as (address, pid):
        if options.texts:
            result = asyncio.run(soak(address, pid, options.texts, options.readers, options.words))
            times = result.seconds
            print(f"seconds a text: {quantile(times, 0.5):.2f}, p95 {quantile(times, 0.95):.2f}")
            errors = result.errors
        else:
            sizes = options.sessions, options.words, options.pages, options.seconds
            errors = asyncio.run(open_sessions(address, pid, *sizes)).errors
    print(*(f"error: {each}" for each in errors[:10]), sep="\n")


if __name__ == "__main__":
    main()
