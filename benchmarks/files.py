"""What files take: `python -m benchmarks.files [TEXTS]`. Bytes of a page of so many texts of 20
tokens, and milliseconds of a figure as SVG, PDF and PNG, the fastest of some tries."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import headlight
from benchmarks import calibration

ENDINGS = ("svg", "pdf", "png")
TOKENS = 20  # with the two special ones around each text
SENTENCES = Path(__file__).with_name("sentences.txt")


def texts(model: headlight.Model, n: int) -> list[list[int]]:
    """So many different texts of TOKENS tokens, as ids."""
    whole = model.record(SENTENCES.read_text("utf-8")).streams[0].ids.tolist()
    first, last, inner = whole[0], whole[-1], whole[1:-1]
    starts = (7 * at % (len(inner) - TOKENS) for at in range(n))
    return [[first, *inner[at : at + TOKENS - 2], last] for at in starts]


def main(n: int = 200) -> tuple[int, dict[str, float]]:
    """Print both, and return the bytes and the milliseconds by the ending."""
    calibration.print_calibration()
    encoder = headlight.load("encoder")
    recordings = headlight.record(encoder, texts(encoder, n))
    size = len(headlight.page(recordings, "heads", model=encoder).encode("utf-8"))
    print(f"a page of {n} texts of {TOKENS} tokens: {size:,} bytes, {size / n:,.0f} a text")
    panel = headlight.panels.attention.head(recordings[0], layer=1, head=5)
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for ending in ENDINGS:
            file = Path(folder) / f"head.{ending}"
            panel.save(file)  # what is loaded once
            tries = []
            for _ in range(calibration.TRIES):
                begun = time.perf_counter()
                panel.save(file)
                tries.append(1000 * (time.perf_counter() - begun))
            took[ending] = min(tries)
            print(f"{ending}: {took[ending]:.0f} ms")
    return size, took


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
