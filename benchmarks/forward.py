"""What a recording costs beside the same forward pass without a tape: `python -m
benchmarks.forward`.

Both run in turn in one process, so that the machine's noise falls on both; the ratio of the fastest
passes is the figure.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from time import perf_counter

import torch

from models import registry

LENGTHS = (16, 128, 512)
ROUNDS = 25


def main() -> None:
    encoder = registry.load("encoder")
    print(f"{'tokens':>7} {'bare ms':>9} {'record ms':>10} {'ratio':>6}   (fastest of {ROUNDS})")
    for n in LENGTHS:
        text = " ".join(["the"] * (n - 2))
        ids = torch.tensor([encoder.tokenizer.tokens(text, n)[0].ids])
        assert ids.shape[1] == n
        bare, recorded = [], []
        for _ in range(ROUNDS):
            start = perf_counter()
            with torch.inference_mode():
                encoder.model(ids)
            middle = perf_counter()
            encoder.record(text)
            bare.append(middle - start)
            recorded.append(perf_counter() - middle)
        print(
            f"{n:>7} {min(bare) * 1e3:>9.2f} {min(recorded) * 1e3:>10.2f} "
            f"{min(recorded) / min(bare):>6.2f}"
        )


if __name__ == "__main__":
    main()
