"""Load test of the app serving a class: `python -m benchmarks.class --readers 60 --seconds 60`.

Readers each send a new text of 8 to 20 words every three seconds, timed from the request until the
server says that the script has finished; at the same time each requests the text's two large
pictures, as a browser does. The same load falls on an empty Streamlit page in the same run; what
the app adds is the difference. Figures: readers, texts, p50 and p95, CPU of the server a text, RSS;
of how many texts the two pictures came before their page, with p50 and p95.

`--with smollm2`: readers of the first model alone, then beside as many readers of another model,
and these; at the end the ratios of their p95. `--beside lens beam`: the same readers alone, then
beside one reader whose long computation on 512 words runs again and again.

`--followers 60`: instead, a teacher who goes on to `--moves` texts, and so many students who
follow, in their own pages and by the picture of the teacher's window, which stands in for them:
milliseconds from the move until a student has it, and CPU of the server a student and move, also in
times of a million additions. What the teacher's own page costs is left out.

`--texts 400 --sessions 60`: instead, the server's memory. First visit after visit with another
long text on the next page, by some readers at once, who leave; then as many sessions that stay
until all are there; then twenty seconds after they left. Printed at each part of the visits: the
median of two samples a second, beside that of the second part (the first fills the cache), and the
largest; and what a session that stays has added, the model and the cache included.
`--sessions 12 --words 450 --model minilm --tab heads`: twelve readers of long texts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from statistics import median
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from websockets.asyncio.client import ClientConnection

from benchmarks.calibration import additions_ms, print_calibration
from benchmarks.clients import (
    cpu_ms,
    memory_of,
    open_page,
    quantile,
    random_text,
    reader_line,
    server,
)
from explorer.app.state.settings import Settings
from explorer.text import places

EVERY = 3.0  # seconds between two texts of one reader
REST = 30.0  # seconds for which a browser does not ask for pictures again where there were none
LONG = 512  # words of the text of a long computation
# Tab and choices of a long computation.
COMPUTATIONS = {
    "jacobian": ("residual", {"flow": "Gradient", "block": "0.attn"}),
    "lens": ("lens", {"model": "decoder"}),
    "beam": ("translate", {"model": "translator", "beams": "8"}),
    "edits": ("edit", {"model": "translator", "edits": "WithoutScale"}),
}

# Visits that measure memory: the tabs in turn, and the models that read 512 tokens.
TABS = tuple(places.ROWS)
MODELS = ("encoder", "decoder", "minilm", "translator")
PARTS = 10  # of the visits
AT_ONCE = 4  # readers of them
PICTURE = 20_000  # bytes of a teacher's window, packed
PAUSE = 10  # seconds between two looks after all have left


@dataclass
class Load:
    """Results of a load: milliseconds of each text, and of each whose pictures came first; the
    server's CPU in milliseconds and its memory in bytes."""

    readers: int
    pictures: bool = False  # requested by themselves too
    times: list[float] = field(default_factory=list)
    picture_times: list[float] = field(default_factory=list)
    cpu: float = 0.0
    rss: float = 0.0

    def row(self, name: str) -> str:
        """One line of the table."""
        n = len(self.times)
        line = (
            f"{name:<12} {self.readers:>7} {n:>6} {quantile(self.times, 0.5):>8.0f} "
            f"{quantile(self.times, 0.95):>8.0f} {self.cpu / n:>10.1f} {self.rss / 1e6:>8.0f}"
        )
        if not self.pictures:
            return line
        of = self.picture_times
        return f"{line} {len(of) / n:>7.2f} {quantile(of, 0.5):>7.0f} {quantile(of, 0.95):>7.0f}"


def pictures(address: str, text: str, model: str, times: list[float]) -> bool:
    """Request a text's pictures by themselves, and note how long they took; False where there are
    none."""
    body = json.dumps({"text": text, "model": model or "encoder", "choices": {}}).encode()
    request = Request(f"{address}/ahead", body, {"Content-Type": "application/json"})
    start = time.monotonic()
    with urlopen(request, timeout=300) as answer:
        answer.read()
        if answer.status == 200:
            times.append((time.monotonic() - start) * 1e3)
        return answer.status == 200


async def reader(
    address: str, number: int, model: str, ready: asyncio.Barrier, seconds: float, load: Load
) -> None:
    """One reader: a first text, which imports and sends what later ones do not, then for so many
    seconds, or until one text is done, a text, its pictures, and the rest of three seconds."""
    dice, choices = random.Random(number), {"model": model} if model else {}
    await asyncio.sleep(dice.random() * EVERY)
    async with reader_line(address) as line:
        text = random_text(dice, dice.randint(8, 20))
        await open_page(line, "heads", {"text": text} | choices)
        await ready.wait()
        await asyncio.sleep(dice.random() * EVERY)
        end, again = time.monotonic() + seconds, 0.0
        while time.monotonic() < end or not load.times:
            text, start, aside = random_text(dice, dice.randint(8, 20)), time.monotonic(), []
            if load.pictures and start > again:
                request = asyncio.to_thread(pictures, address, text, model, load.picture_times)
                aside.append(asyncio.create_task(request))
            await open_page(line, "heads", {"text": text} | choices)
            load.times.append((time.monotonic() - start) * 1e3)
            if not all(await asyncio.gather(*aside)):
                again = time.monotonic() + REST
            await asyncio.sleep(max(0.0, start + EVERY - time.monotonic()))


async def measure(
    address: str,
    pid: int,
    readers: int,
    seconds: float,
    model: str = "",
    with_pictures: bool = False,
    first: int = 0,
) -> Load:
    """That many readers at once for so many seconds, counted from when all have their first page.
    first: the number of the first reader; each number has texts of its own."""
    load = Load(readers, with_pictures)
    ready = asyncio.Barrier(readers + 1)
    async with asyncio.TaskGroup() as tasks:
        for number in range(first, first + readers):
            tasks.create_task(reader(address, number, model, ready, seconds, load))
        await ready.wait()
        before = cpu_ms(pid)
    load.cpu, load.rss = cpu_ms(pid) - before, memory_of(pid)
    return load


def alone(script: str, readers: int, seconds: float, model: str) -> Load:
    """A load on a server of its own, warmed by one reader first."""
    with server(script) as (address, pid):
        asyncio.run(measure(address, pid, 1, EVERY, model))
        return asyncio.run(measure(address, pid, readers, seconds, model, script == "app.py"))


def beside_model(readers: int, seconds: float, model: str) -> Iterator[tuple[str, Load]]:
    """On one server so many readers of the first model alone, then again beside as many of another
    model, and these."""
    with server() as (address, pid):

        async def both() -> list[Load]:
            loads = ((2 * readers, ""), (3 * readers, model))
            return await asyncio.gather(
                *(measure(address, pid, readers, seconds, each, True, at) for at, each in loads)
            )

        for each in ("", model):  # warmed
            asyncio.run(measure(address, pid, 1, EVERY, each, first=5 * readers))
        yield "alone", asyncio.run(measure(address, pid, readers, seconds, "", True, readers))
        yield from zip(("beside", model), asyncio.run(both()))


def beside_computations(
    names: Sequence[str], readers: int, seconds: float
) -> Iterator[tuple[str, Load]]:
    """On one server so many readers alone, then beside each of these computations."""
    with server() as (address, pid):
        asyncio.run(measure(address, pid, 1, EVERY))
        yield "alone", asyncio.run(measure(address, pid, readers, seconds))
        for name in names:
            yield name, asyncio.run(beside(address, pid, name, readers, seconds))


async def beside(address: str, pid: int, name: str, readers: int, seconds: float) -> Load:
    """The load of so many readers beside one long computation. Raises ValueError where its page
    fails."""

    async def compute() -> None:
        page, choices = COMPUTATIONS[name]
        dice = random.Random(0)
        async with reader_line(address) as line:
            while True:
                if error := await open_page(
                    line, page, choices | {"text": random_text(dice, LONG)}
                ):
                    raise ValueError(error)

    task = asyncio.create_task(compute())
    await asyncio.sleep(min(seconds, 2.0))
    load = await measure(address, pid, readers, seconds)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return load


def send(address: str, body: bytes, kind: str = "json", key: str = "") -> bytes:
    """POST bytes to an address; the answer."""
    headers = {"Content-Type": f"application/{kind}", "X-Headlight-Key": key}
    with urlopen(Request(address, body, headers), timeout=300) as answer:
        return answer.read()


class Student:
    """A student's window: a line on which it hears of its class, and one by which it fetches
    pictures."""

    async def join(self, address: str, code: str) -> Student:
        """Take part in a class."""
        body = json.dumps({"code": code}).encode()
        made = json.loads(await asyncio.to_thread(send, f"{address}/class/join", body))
        self.part = {"code": code, "as": made["student"]}
        to = urlsplit(address)
        self.lines = [await asyncio.open_connection(to.hostname, to.port) for _ in range(2)]
        await self.get(0, "/class/news", self.part)
        await self.hear()
        return self

    async def get(self, line: int, path: str, query: dict[str, str]) -> bytes:
        """Request something on a line; the head of the answer."""
        reader, writer = self.lines[line]
        request = f"GET {path}?{urlencode(query)} HTTP/1.1\r\nHost: {self.part['code']}\r\n\r\n"
        writer.write(request.encode())
        return await reader.readuntil(b"\r\n\r\n")

    async def hear(self) -> dict[str, str]:
        """The next news of the class. Raises ConnectionError where it ends."""
        while not (line := await self.lines[0][0].readline()).startswith(b"data: {"):
            if not line:
                raise ConnectionError("the class ended")
        return json.loads(line.removeprefix(b"data: "))

    async def see(self, location: str) -> float:
        """Wait for the picture of an address and fetch it: the time when it was there."""
        while (seen := await self.hear())["of"] != location:
            pass
        head = await self.get(1, "/class/picture", {**self.part, "name": seen["picture"]})
        n_bytes = int(head.lower().partition(b"content-length: ")[2].split()[0])
        await self.lines[1][0].readexactly(n_bytes)
        return time.monotonic()

    def leave(self) -> None:
        """Take part no longer."""
        for _, writer in self.lines:
            writer.close()


async def by_pictures(address: str, pid: int, followers: int, moves: int) -> Load:
    """Measure so many students who see the picture of the teacher's window."""
    load, dice = Load(followers), random.Random(0)
    made = json.loads(await asyncio.to_thread(send, f"{address}/class/start", b"{}"))
    students = [await Student().join(address, made["code"]) for _ in range(followers)]
    before = cpu_ms(pid)
    for _ in range(moves):
        at = places.address("heads", {"text": random_text(dice, 12)})
        start = time.monotonic()
        coming = [asyncio.create_task(each.see(at)) for each in students]
        move = json.dumps({"code": made["code"], "key": made["key"], "at": at}).encode()
        await asyncio.to_thread(send, f"{address}/class/move", move)
        show = f"{address}/class/show?{urlencode({'code': made['code'], 'at': at})}"
        picture = dice.randbytes(PICTURE)
        await asyncio.to_thread(send, show, picture, "octet-stream", made["key"])
        load.times += [(end - start) * 1e3 for end in await asyncio.gather(*coming)]
    load.cpu, load.rss = cpu_ms(pid) - before, memory_of(pid)
    for each in students:
        each.leave()
    return load


async def by_pages(address: str, pid: int, followers: int, moves: int) -> Load:
    """Measure students whose own pages follow, all at once, to texts that are in memory."""
    load, dice = Load(followers), random.Random(1)

    async def page(line: ClientConnection, text: str) -> float:
        start = time.monotonic()
        if error := await open_page(line, "heads", {"text": text}):
            raise ValueError(error)
        return (time.monotonic() - start) * 1e3

    async with AsyncExitStack() as stay:
        lines = [await stay.enter_async_context(reader_line(address)) for _ in range(followers + 1)]
        for at in range(moves + 1):
            text = random_text(dice, 12)
            await page(lines[0], text)  # the teacher's
            before = cpu_ms(pid)
            times = await asyncio.gather(*(page(line, text) for line in lines[1:]))
            if at:  # the first imports and sends what later ones do not
                load.times += times
                load.cpu += cpu_ms(pid) - before
        load.rss = memory_of(pid)
    return load


def print_followers(followers: int, moves: int) -> None:
    """Print a row of both, and what a student costs in times of a million additions."""
    addition, ratios = additions_ms(), []
    with server() as (address, pid):
        for name, way in (("own pages", by_pages), ("pictures", by_pictures)):
            load = asyncio.run(way(address, pid, followers, moves))
            print(load.row(name), flush=True)
            ratios.append(f"{name} {load.cpu / len(load.times) / addition:.3f}")
    print(f"CPU a student and move, in times of a million additions: {', '.join(ratios)}")


@dataclass
class Memory:
    """The server's memory in bytes: before the first visit, the median of each part of the visits,
    when all who stay are there, and the largest sample of all; seconds of each visit, and errors of
    those that failed."""

    pid: int
    before: int
    stays: int = 0
    parts: list[int] = field(default_factory=list)
    most: int = 0
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)  # of the present part

    async def watch(self) -> None:
        """Take samples until it is cancelled."""
        while True:
            self.samples.append(memory_of(self.pid))
            await asyncio.sleep(0.5)

    def end_part(self, name: str) -> None:
        """Print the line of a part, and begin the next."""
        self.samples.append(memory_of(self.pid))
        self.parts.append(int(median(self.samples)))
        self.most = max(self.most, *self.samples)
        self.samples.clear()
        now = self.parts[-1]
        print(
            f"{name:<24} {now / 2**20:>7,.0f} MiB {now / self.parts[:2][-1] - 1:>+7.1%}, at most "
            f"{self.most / 2**20:,.0f}",
            flush=True,
        )


Visit = tuple[int, str, dict[str, str]]  # a number, a tab, and a link's text and model


def visits(n: int, words: int, tabs: Sequence[str], models: Sequence[str]) -> Iterator[Visit]:
    """So many visits, each with a text that is new to the server."""
    dice = random.Random(0)
    for at in range(n):
        text, model = f"{at} {random_text(dice, words)}", models[at // len(tabs) % len(models)]
        yield at, tabs[at % len(tabs)], {"text": text, "model": model}


async def memory(
    address: str, pid: int, remaining: Iterator[Visit], texts: int, sessions: int
) -> Memory:
    """The server's memory under so many texts of readers who leave, and sessions that stay."""
    result = Memory(pid, memory_of(pid))
    watching = asyncio.create_task(result.watch())

    async def reader(stay: AsyncExitStack) -> None:
        for number, page, choices in remaining:
            start = time.monotonic()
            async with AsyncExitStack() as leave:
                line = (stay if number >= texts else leave).enter_async_context
                try:
                    error = await open_page(await line(reader_line(address)), page, choices)
                except (OSError, TimeoutError) as reason:
                    error = f"{page}: {type(reason).__name__} {reason}"
            result.seconds.append(time.monotonic() - start)
            result.errors += [error] if error else []
            n = len(result.seconds)
            if n * PARTS // (texts + sessions) > len(result.parts):
                result.end_part(f"{n} visits, {max(0, n - texts)} stay")

    async with AsyncExitStack() as stay:
        await asyncio.gather(*(reader(stay) for _ in range(AT_ONCE)))
        result.stays = memory_of(pid)
    for step in (1, 2):
        await asyncio.sleep(PAUSE)
        result.samples.clear()
        result.end_part(f"{step * PAUSE} s after all left")
    watching.cancel()
    return result


def print_memory(texts: int, sessions: int, remaining: Iterator[Visit], cache: int) -> None:
    """Print the table of memory, and seconds a text. cache: MiB that the server keeps."""
    with server(HEADLIGHT_CACHE_BYTES=str(cache * 2**20)) as (address, pid):
        result = asyncio.run(memory(address, pid, remaining, texts, sessions))
    of, added = result.seconds, (result.stays - result.before) / 1e6
    print(f"seconds a visit: {quantile(of, 0.5):.2f}, p95 {quantile(of, 0.95):.2f}")
    if sessions:
        print(f"MB that all have added: {added:,.0f}, {added / sessions:.1f} a session that stays")
    print(*(f"error: {each}" for each in result.errors[:10]), sep="\n")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, nargs="+", default=[10, 30, 60])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--model", default="")
    parser.add_argument("--beside", nargs="+", choices=sorted(COMPUTATIONS), default=[])
    parser.add_argument("--with", dest="other", default="", help="a second model")
    parser.add_argument("--followers", type=int, default=0, help="students of a class, alone")
    parser.add_argument("--moves", type=int, default=10, help="of their teacher")
    parser.add_argument("--texts", type=int, default=0, help="of visits that leave: memory alone")
    parser.add_argument("--sessions", type=int, default=0, help="that stay: memory alone")
    parser.add_argument("--words", type=int, default=LONG, help="of a visit's text")
    parser.add_argument("--tab", nargs="+", choices=TABS, default=TABS, help="of a visit, in turn")
    parser.add_argument("--cache", type=int, default=Settings.cache_bytes // 2**20, help="MiB")
    options = parser.parse_args(argv)
    print_calibration()
    if options.texts or options.sessions:
        n, models = options.texts + options.sessions, (options.model,) if options.model else MODELS
        remaining = visits(n, options.words, options.tab, models)
        return print_memory(options.texts, options.sessions, remaining, options.cache)
    print(
        f"{'page':<12} {'readers':>7} {'texts':>6} {'p50 ms':>8} {'p95 ms':>8} "
        f"{'CPU a text':>10} {'RSS MB':>8} {'first':>7} {'p50 ms':>7} {'p95 ms':>7}"
    )
    if options.followers:
        return print_followers(options.followers, options.moves)
    for readers in options.readers:
        if options.other:
            p95 = {}
            for name, load in beside_model(readers, options.seconds, options.other):
                print(load.row(name), flush=True)
                p95[name] = quantile(load.times, 0.95)
            ratios = (f"{name} {time / p95['alone']:.2f}" for name, time in p95.items())
            print(f"p95 in times of alone: {', '.join(ratios)}", flush=True)
        elif options.beside:
            for name, load in beside_computations(options.beside, readers, options.seconds):
                print(load.row(name), flush=True)
        else:
            for name, script in (("empty", "benchmarks/blank_page.py"), ("Headlight", "app.py")):
                load = alone(script, readers, options.seconds, options.model)
                print(load.row(name), flush=True)


if __name__ == "__main__":
    main()
