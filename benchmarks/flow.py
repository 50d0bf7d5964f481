"""Processor time that the server takes for a flow that comes ahead of its page: `python -m
benchmarks.flow`.

For new texts of 12 words, medians of milliseconds of the thread (`time.thread_time`), which other
processes hardly change: the passes over the text, the word that is chosen, then the panel and its
bytes. It runs alone, in no server.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence
from statistics import median

from explorer.analysis import opening

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from benchmarks.calibration import print_calibration
from benchmarks.clients import random_text
from explorer.app.server import prefetch
from explorer.app.state import host
from explorer.panels import flow_way
from models import smollm2
from models.contract.edits import HideToken
from models.runtime.caching import loaded
from models.runtime.run import Run

PARTS = ("pass", "word", "pass without the word", "panel and bytes")
FIRST = 3  # texts that are not counted


def costs(model: str, text: str) -> list[float]:
    """Milliseconds of the thread for each of PARTS, and last the bytes of the panel."""
    run, times = Run(model, text), [time.thread_time()]
    with host.prefetching():
        recording = run.recording()
        times.append(time.thread_time())
        token = opening.flow_word(recording, recording.streams[0])
        times.append(time.thread_time())
        if flow_way.can_hide(run, {"token": token}):
            run.under((HideToken(token),)).recording()
        times.append(time.thread_time())
        (data,) = prefetch.pictures(model, text, {}, prefetch.FLOW).values()
        times.append(time.thread_time())
    return [*(1e3 * (end - start) for start, end in zip(times, times[1:])), len(data)]


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    large = (smollm2.NAME,) if smollm2.file() else ()
    parser.add_argument("--model", nargs="+", default=["encoder", *large])
    parser.add_argument("--texts", type=int, default=15)
    options = parser.parse_args(argv)
    print_calibration()
    host.warm_up()
    for model in options.model:
        loaded(model)
        texts = [random_text(random.Random(-1 - at), 12) for at in range(FIRST + options.texts)]
        *parts, n_bytes = map(median, zip(*[costs(model, text) for text in texts][FIRST:]))
        times = ", ".join(f"{part} {ms:.0f}" for part, ms in zip(PARTS, parts))
        print(f"{model}: {times}, together {sum(parts):.0f} ms; {n_bytes / 1e3:.1f} kB", flush=True)


if __name__ == "__main__":
    main()
