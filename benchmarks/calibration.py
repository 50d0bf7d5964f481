"""The machine's own speed, printed beside figures, so that those of two machines or two hours can
be compared."""

from __future__ import annotations

from time import perf_counter

import numpy as np

ADDITIONS = 1_000_000
SIZE = 1_000  # rows and columns of the matrices
TRIES = 5


def additions_ms() -> float:
    """The fewest milliseconds of a million additions in Python."""
    best = float("inf")
    for _ in range(TRIES):
        start, total = perf_counter(), 0
        for number in range(ADDITIONS):
            total += number
        best = min(best, (perf_counter() - start) * 1e3)
    return best


def product_ms() -> float:
    """The fewest milliseconds of a product of two matrices of 32 bits, by numpy."""
    matrix = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)
    best = float("inf")
    for _ in range(TRIES):
        start = perf_counter()
        matrix @ matrix
        best = min(best, (perf_counter() - start) * 1e3)
    return best


def print_calibration() -> None:
    """Print what this machine takes for both."""
    print(
        f"this machine: {ADDITIONS:,} additions in Python {additions_ms():.1f} ms, "
        f"a product of {SIZE:,} x {SIZE:,} matrices {product_ms():.1f} ms",
        flush=True,
    )
