"""What findings cost: every statement about a recording, in milliseconds and in multiples of the
naming of its heads, which the page makes anyway."""

from __future__ import annotations

import argparse
import time

from explorer.analysis import head_naming
from explorer.analysis.findings import findings
from models import registry
from models.example_texts import EXAMPLES

MODELS = ("encoder", "decoder", "minilm")
TEXT = " ".join(EXAMPLES.values())


def fastest(make, times: int) -> float:
    """The fastest of several runs, in milliseconds."""
    taken = []
    for _ in range(times):
        before = time.perf_counter()
        make()
        taken.append(1000 * (time.perf_counter() - before))
    return min(taken)


def main(sizes: tuple[int, ...] = (32, 256), times: int = 7) -> None:
    """A line for each model and length."""
    for name in MODELS:
        if name not in registry.names():
            continue
        handle = registry.load(name)
        for size in sizes:
            recording = handle.record(" ".join((TEXT.split() * 4)[: int(size * 0.8)]))
            named = {one.name: head_naming.describe(recording, one) for one in recording.attention}
            made = fastest(lambda: findings(recording, heads=named), times)
            naming = fastest(
                lambda: [head_naming.describe(recording, one) for one in recording.attention], times
            )
            n = len(recording.streams[0].tokens)
            print(
                f"{name}, {n} tokens: findings {made:.1f} ms, {made / naming:.1f} times the "
                "names of the heads"
            )


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--smallest", action="store_true", help="one short text, once")
    main(*(((8,), 1) if asked.parse_args().smallest else ()))
