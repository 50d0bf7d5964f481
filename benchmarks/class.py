"""How the app holds a class: `python -m benchmarks.class --readers 60 --seconds 60`.

Readers each send a new text of 8 to 20 words every three seconds (benchmarks/load_clients.py). The
same load falls on an empty Streamlit page in the same run; what the app adds is the difference.
Figures: readers, texts, p50 and p95, CPU of the server a text, RSS; and of how many texts the two
large pictures came before their page, with p50 and p95.

`--with smollm2`: readers of the first model alone, then beside as many readers of another model,
and these; at the end the ratios of their p95.
"""

from __future__ import annotations

import argparse

from benchmarks import background_load
from benchmarks.load_clients import measure, side_by_side


def main(given: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, nargs="+", default=[10, 30, 60])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--model", default="")
    parser.add_argument("--beside", nargs="+", choices=sorted(background_load.WORKS), default=[])
    parser.add_argument("--with", dest="other", default="", help="a second model")
    asked = parser.parse_args(given)
    print(
        f"{'page':<12} {'readers':>7} {'texts':>6} {'p50 ms':>8} {'p95 ms':>8} "
        f"{'CPU a text':>10} {'RSS MB':>8} {'sooner':>7} {'p50 ms':>7} {'p95 ms':>7}"
    )
    for readers in asked.readers:
        if asked.other:
            p95 = {}
            for name, found in side_by_side(readers, asked.seconds, asked.other):
                print(found.row(name), flush=True)
                p95[name] = found.at(0.95)
            ratios = (f"{name} {took / p95['alone']:.2f}" for name, took in p95.items())
            print(f"p95 in times of alone: {', '.join(ratios)}", flush=True)
            continue
        if asked.beside:
            for name, found in background_load.measure(asked.beside, readers, asked.seconds):
                print(found.row(name), flush=True)
            continue
        print(measure("benchmarks/blank_page.py", readers, asked.seconds).row("empty"), flush=True)
        print(measure("app.py", readers, asked.seconds, asked.model).row("Headlight"), flush=True)


if __name__ == "__main__":
    main()
