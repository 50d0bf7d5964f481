"""What open sessions keep in memory, and what is left of it when they have gone: `python -m
benchmarks.sessions --sessions 60`.

A server of its own is visited on every page and with every model first: that is "before". Then so
many readers come, each with a text of 512 words of their own, look at pages and stay. When all are
there they leave at once. Printed: the server's memory before, while they come, with all of them
there, and every ten seconds of the minute after.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice

from benchmarks.soak import PAGES, WORDS, ask, line_to, memory_of, server, visit
from explorer.state.settings import Settings

MODELS = ("encoder", "decoder", "minilm")  # those that read 512 tokens
AT_ONCE = 4  # readers who come at the same time
LOOK = 0.2  # seconds between two looks for the most
EVERY = 10  # readers between two looks while they come
STEP = 10  # seconds between two looks after they have left


@dataclass
class Held:
    """The server's memory in bytes: before anyone came, the most while readers came and stayed,
    with all of them there, and at each look after they left. `wrong`: visits that failed."""

    before: int = 0
    most: int = 0
    there: int = 0
    after: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def tell(self, name: str, size: int) -> None:
        """A line of the table: bytes now, and beside before."""
        print(f"{name:<12} {size / 2**20:>7,.0f} MiB {size / self.before - 1:>+7.1%}", flush=True)


async def hold(
    port: int,
    process: int,
    sessions: int,
    words: int,
    pages: int,
    seconds: int,
    first: Sequence[str] = PAGES,
) -> Held:
    """Open so many sessions, each on so many pages, close them, and look for so many seconds.
    `first`: the pages that are visited before."""
    held, dice = Held(), random.Random(0)
    for page in first:
        held.wrong.append(await visit(port, page, {}))
    for model in MODELS:
        held.wrong.append(await visit(port, "heads", {"model": model}))
    await asyncio.sleep(min(seconds, 25))  # until the server's collector has been at it
    held.before = held.most = memory_of(process)
    held.tell("before", held.before)
    readers = iter(range(sessions))

    async def some(stay: AsyncExitStack) -> None:
        for number in readers:
            line = await stay.enter_async_context(line_to(port))
            asked = {"text": " ".join(dice.choices(WORDS, k=words))}
            asked["model"] = MODELS[number % len(MODELS)]
            at = number * pages % len(PAGES)
            for page in islice((*PAGES, *PAGES), at, at + pages):
                held.wrong.append(await ask(line, page, asked))
            if (number + 1) % EVERY == 0:
                held.tell(f"{number + 1} came", memory_of(process))

    async def watch() -> None:
        while True:
            held.most = max(held.most, memory_of(process))
            await asyncio.sleep(LOOK)

    watching = asyncio.create_task(watch())
    async with AsyncExitStack() as stay:
        await asyncio.gather(*(some(stay) for _ in range(AT_ONCE)))
        await asyncio.sleep(min(seconds, 5))
        watching.cancel()
        held.there = memory_of(process)
        held.most = max(held.most, held.there)
        held.tell("most", held.most)
        held.tell("all there", held.there)
    for at in range(STEP, seconds + 1, STEP):
        await asyncio.sleep(STEP)
        held.after.append(memory_of(process))
        held.tell(f"{at} s after", held.after[-1])
    held.wrong = [each for each in held.wrong if each]
    return held


def main(given: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--words", type=int, default=512)
    parser.add_argument("--pages", type=int, default=1, help="pages that each of them looks at")
    parser.add_argument("--shelf", type=int, default=Settings.shelf_bytes // 2**20, help="MiB")
    parser.add_argument("--seconds", type=int, default=60, help="of looking after they left")
    asked = parser.parse_args(given)
    begun = time.monotonic()
    print(f"{asked.sessions} sessions, {asked.words} words, {asked.pages} pages each", flush=True)
    with server(asked.shelf) as (port, process):
        held = asyncio.run(
            hold(port, process, asked.sessions, asked.words, asked.pages, asked.seconds)
        )
    print(*(f"wrong: {each}" for each in held.wrong[:10]), sep="\n")
    print(f"{time.monotonic() - begun:.0f} seconds")


if __name__ == "__main__":
    main()
