"""What files take: `python -m benchmarks.files [TEXTS]`. Bytes of a page of one text, short and
long, and of so many texts of 20 tokens, and milliseconds of a figure as SVG, PDF and PNG, the
fastest of some tries."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import headlight
from benchmarks import calibration
from models.example_texts import DEFAULT_TEXT

ENDINGS = ("svg", "pdf", "png")
TOKENS = 20  # with the two special ones around each text
READ = 2_000  # characters of the sentences, which a model reads at once
SENTENCES = Path(__file__).with_name("sentences.txt")


def texts(model: headlight.Model, n: int) -> list[list[int]]:
    """So many different texts of TOKENS tokens, as ids."""
    whole = model.record(SENTENCES.read_text("utf-8")[:READ]).streams[0].ids.tolist()
    first, last, inner = whole[0], whole[-1], whole[1:-1]
    starts = (7 * at % (len(inner) - TOKENS) for at in range(n))
    return [[first, *inner[at : at + TOKENS - 2], last] for at in starts]


def size(recordings: object, model: headlight.Model, **chosen: int) -> int:
    """The bytes of a page of all heads."""
    return len(headlight.page(recordings, "heads", model=model, **chosen).encode("utf-8"))


def main(n: int = 200) -> tuple[int, dict[str, float]]:
    """Print all, and return the bytes of the page of texts and the milliseconds by the ending."""
    calibration.print_calibration()
    encoder = headlight.load("encoder")
    for times in (1, 5):
        one = encoder.record(" ".join([DEFAULT_TEXT] * times))
        tokens, whole = len(one.streams[0].tokens), size(one, encoder, layer=1, head=5)
        print(f"a page of a text of {tokens} tokens: {whole:,} bytes")
    recordings = headlight.record(encoder, texts(encoder, n))
    whole = size(recordings, encoder)
    print(f"a page of {n} texts of {TOKENS} tokens: {whole:,} bytes, {whole / n:,.0f} a text")
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
    return whole, took


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
