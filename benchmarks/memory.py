"""Memory that panels take, and that a server takes of those who ask for the dearest at once:
`python -m benchmarks.memory`.

For each model its longest text; for each panel the most memory of the process above what it had
with the text's recording, as the system counts it, beside the bound that the panel asks for, and
what it took of the cache's budget meanwhile. Then, at the settings of deploy/compose.yaml, the most
memory of a server that is asked for the dearest panels of the dearest model, each of another text:
as many at once as are answered, by address and then as pages."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import os
import random
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from benchmarks.calibration import print_calibration
from benchmarks.clients import ROOT, open_page, random_text, reader_line, server
from explorer.app.state import garbage_collection, host
from explorer.app.state.scheduling import memory_budget
from explorer.figures.csv import count_cells
from explorer.panels import memory, spec
from models import shipped_models, smollm2
from models.contract.recording import Recording
from models.network import buffer_pool
from models.runtime import caching
from models.runtime.cache import LARGE_BYTES
from models.runtime.run import Run

MIB = 2**20
COMPOSE = ROOT / "deploy" / "compose.yaml"
AT_ONCE = 8  # requests for panels that a server answers at a time
LONG = 520  # words of a text that fills each model
LONGEST_WAIT = 1200  # seconds
HOLES = [2**bits for bits in range(19, 11, -1)]  # bytes, from below what has pages of its own
TABS = ("lens", "heads", "compare", "embeddings")  # pages that read all of a long text


def status_of(pid: int | str, name: str) -> int:
    """Bytes of a process as the system says them: VmRSS now, VmHWM at most."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def forget_most(pid: int | str) -> None:
    """Have the system count the most memory of a process anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@dataclass
class HighWater:
    """Most memory while a panel was made, in bytes: above what there was before; of it what was
    taken of the budget for recordings and other values, at most; and the bound of all else.
    problem: why there is no panel."""

    above: int = 0
    taken: int = 0
    bound: int = 0
    seconds: float = 0.0
    problem: str = ""

    @property
    def beside(self) -> int:
        """Bytes beside those that are counted as values: what the bound is of."""
        return self.above - self.taken


@contextmanager
def counted(into: HighWater) -> Iterator[None]:
    """Count what is made inside this: the most memory of the process, and the values in it that
    others may use later, which are kept, or of which the pool keeps the memory."""
    gc.collect()
    garbage_collection.collect("some")
    values: list[int] = []
    note = lambda size: bool(values.append(_values() + (size if size < LARGE_BYTES else 0)))
    with without_holes():
        buffer_pool.before_lending.append(note)
        kept, before, start = _values(), status_of("self", "VmRSS"), time.monotonic()
        forget_most("self")
        try:
            yield
        finally:
            into.seconds = time.monotonic() - start
            into.above = status_of("self", "VmHWM") - before
            buffer_pool.before_lending.remove(note)
            into.taken = max((*values, _values())) - kept


@contextmanager
def without_holes() -> Iterator[None]:
    """Take what is free between the pieces of the heap, so that what is made inside this lies at
    its end, as in a fresh process. The pages of what earlier work freed there went back to the
    system, and a panel that is made in one such place after another would seem to need them all."""
    library, taken = ctypes.CDLL(None), list[int]()
    library.malloc.restype = library.sbrk.restype = ctypes.c_void_p
    for size in HOLES:
        end = library.sbrk(0)
        while not taken or taken[-1] < end:
            taken.append(library.malloc(ctypes.c_size_t(size)))
        library.free(ctypes.c_void_p(taken.pop()))
    try:
        yield
    finally:
        for each in taken:
            library.free(ctypes.c_void_p(each))


def _values() -> int:
    """Bytes of all values, as the cache counts them: kept, in use, or being made; and of what the
    pool keeps for the next ones."""
    cache = caching.cache
    with cache.lock:
        held = cache.total + cache._outside_bytes() - sum(cache._working.values())
    return held + buffer_pool.pooled_bytes()


def forget() -> None:
    """Let go of all that was computed."""
    caching.cache.evict_all()
    caching.cache.entries.clear()
    caching.cache.total = 0
    caching.cache._heavy.clear()
    buffer_pool.clear()


def high_water(name: str, run: Run, **choices: object) -> HighWater:
    """The most memory of a panel of a run as a file of JSON."""
    forget()
    result = HighWater()
    with memory_budget.work():
        recording = run.recording()
        result.bound = memory.bound_of(name).bytes_of(recording)
        with counted(result):
            try:
                panel = spec.PANELS[name](run, **choices)
                result.bound = max(result.bound, memory.ENTRY * count_cells(panel.table))
                spec.FILES["json"].make(panel)
            except ValueError as problem:
                result.problem = str(problem)
        del recording
    return result


def shipped() -> list[str]:
    """The models that come with the app for ordinary texts, the largest last."""
    large = (smollm2.NAME,) if smollm2.file() else ()
    middle = ("minilm",) if shipped_models.packaged() else ()
    return ["encoder", "decoder", "translator", *middle, *large]


def longest(model: str, words: int) -> Recording:
    """The run of a text of so many words."""
    return Run(model, random_text(random.Random(0), words))


def print_panels(model: str, names: Sequence[str], words: int) -> dict[str, HighWater]:
    """Print a line for each panel."""
    run, found = longest(model, words), {}
    with memory_budget.work():
        recording = run.recording()
    n, weight = len(recording.streams[-1].tokens), memory.weight(recording)
    del recording
    print(f"{model}: {n} tokens, a recording {weight / MIB:,.0f} MiB", flush=True)
    for name in names:
        found[name] = of = high_water(name, run)
        print(
            f"  {name:<32} {of.above / MIB:>6,.0f} MiB, values {of.taken / MIB:>6,.0f}, bound "
            f"{of.bound / MIB:>6,.0f}, {of.seconds:>6.1f} s {of.problem[:60]}",
            flush=True,
        )
    return found


# ---- a server ------------------------------------------------------------------------------------


def deployed() -> tuple[dict[str, str], int]:
    """The settings of a process in compose.yaml, without the store of classes, and the bytes that
    it may take."""
    text = COMPOSE.read_text("utf-8")
    settings = dict(re.findall(r'^ {4}(HEADLIGHT_\w+|OMP_\w+): "([^"]*)"$', text, re.MULTILINE))
    settings.pop("HEADLIGHT_REDIS")
    (most,) = re.findall(r"^  mem_limit: (\d+)g$", text, re.MULTILINE)
    return settings, int(most) * 2**30


@dataclass
class Served:
    """Answers of a server by their status, the bytes that it had before, and the most."""

    before: int = 0
    most: int = 0
    statuses: list[str] = field(default_factory=list)


def ask(address: str, name: str, choices: dict[str, str]) -> str:
    """Request a panel; the status of the answer."""
    try:
        with urlopen(
            f"{address}/panel/{name}.json?{urlencode(choices)}", timeout=LONGEST_WAIT
        ) as got:
            got.read()
            return str(got.status)
    except HTTPError as refusal:
        return f"{refusal.code} {refusal.read().decode()}"


async def open_all(address: str, model: str, texts: Sequence[str]) -> list[str]:
    """Open a page for each of some texts, all at once; what each says."""

    async def visit(at: int, text: str) -> str:
        async with reader_line(address) as line:
            return (
                await open_page(line, TABS[at % len(TABS)], {"model": model, "text": text})
                or "page"
            )

    return await asyncio.gather(*(visit(at, text) for at, text in enumerate(texts)))


def served(
    model: str, names: Sequence[str], at_once: int, words: int
) -> Iterator[tuple[str, Served]]:
    """The memory of a server as deployed when so many dear requests come at once."""
    settings, _ = deployed()
    dice = random.Random(1)
    texts = [random_text(dice, words) for _ in range(2 * at_once)]
    with server(**settings) as (address, pid):
        ask(address, "attention.head", {"model": model, "text": "The cat sat."})  # loads it
        for way in ("panels", "pages"):
            result = Served(status_of(pid, "VmRSS"))
            forget_most(pid)
            mine = texts[:at_once] if way == "panels" else texts[at_once:]
            if way == "panels":
                with ThreadPoolExecutor(at_once) as pool:
                    asked = [
                        pool.submit(
                            ask, address, names[at % len(names)], {"model": model, "text": text}
                        )
                        for at, text in enumerate(mine)
                    ]
                    result.statuses = [
                        f"{names[at % len(names)]} {each.result()}" for at, each in enumerate(asked)
                    ]
            else:
                result.statuses = asyncio.run(open_all(address, model, mine))
            result.most = status_of(pid, "VmHWM")
            yield way, result


def print_served(model: str, names: Sequence[str], at_once: int, words: int) -> None:
    """Print the most memory of a server that is asked for so many at once."""
    _, most = deployed()
    for way, of in served(model, names, at_once, words):
        print(
            f"{at_once} {way} of {model} at once: {of.before / MIB:,.0f} MiB before, at most "
            f"{of.most / MIB:,.0f} of {most / MIB:,.0f}; answers: {', '.join(sorted(of.statuses))}",
            flush=True,
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=shipped())
    parser.add_argument("--panels", nargs="+", default=spec.panel_names())
    parser.add_argument("--words", type=int, default=LONG)
    parser.add_argument("--at-once", type=int, default=AT_ONCE)
    parser.add_argument("--ask", nargs="+", default=[], help="panels that are asked for at once")
    options = parser.parse_args(argv)
    print_calibration()
    host.warm_up()
    garbage_collection.start()
    buffer_pool.READY_BYTES = buffer_pool.MAX_POOL_BYTES + 1  # none is made ready while we count
    model, dearest = shipped()[-1], options.ask
    for each in options.models:
        found = print_panels(each, options.panels, options.words)
        if each == model and not dearest:
            there = [name for name, of in found.items() if not of.problem]
            dearest = sorted(there, key=lambda name: -found[name].above)[: options.at_once]
    if options.at_once:
        print_served(model, dearest or ["logit_lens.lens"], options.at_once, options.words)


if __name__ == "__main__":
    main()
