"""Writes the measured tables of docs/why-this-weight.md anew: `python -m docs.why_this_weight`. The
text around them stays."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from explorer.panels import score_parts
from models.runtime.run import Run

FILE = Path(__file__).with_name("why-this-weight.md")
TEXT = "The animal didn't cross the street because it was too tired."
# Each example: (layer, head, query, key).
HOLDS, DOES_NOT = (1, 1, 2, 3), (1, 1, 4, 5)


def document(text: str) -> str:
    """The document with its tables as the code measures them."""
    for name, cell in (("holds", HOLDS), ("does not", DOES_NOT)):
        start, end = f"<!-- {name} -->\n", f"\n\n<!-- end of {name} -->"
        pattern = f"(?s)(?<={re.escape(start)}).*?(?={re.escape(end)})"
        lines = "\n".join(_example(cell))
        text = re.sub(pattern, lambda _, lines=lines: lines, text)
    return text


def _example(cell: tuple[int, int, int, int]) -> Iterable[str]:
    """The sentences of both panels on a weight, and the steps of its path."""
    run = Run("encoder", TEXT)
    sources, path = score_parts.sources(run, *cell), score_parts.path(run, *cell)
    yield f"> {sources.finding}"
    yield ">"
    yield f"> {path.finding}"
    yield ""
    yield "| step | part of the score | weight | without it | in a new run |"
    yield "|---|---|---|---|---|"
    table = path.table
    columns = ("step", "part of the score", "weight", "weight without it", "weight in a new run")
    for step, *numbers in zip(*(table[each] for each in columns)):
        texts = (f"{each:.3f}" if each == each else "" for each in numbers)
        yield f"| {step} | {' | '.join(texts)} |"


if __name__ == "__main__":
    FILE.write_text(document(FILE.read_text("utf-8")), "utf-8")
