"""Files of tables as tests read them."""

from __future__ import annotations

import csv
import io

from explorer.figures.csv import without_comments


def commented(file: str) -> tuple[list[str], list[dict[str, str]]]:
    """What a file says of itself before its header, and its rows by the names of columns."""
    rows = without_comments(file)
    about = [line.removeprefix("# ") for line in file.removesuffix(rows).splitlines()]
    return about, list(csv.DictReader(io.StringIO(rows, newline="")))
