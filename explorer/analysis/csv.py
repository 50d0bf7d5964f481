"""Tables as CSV files that load with a plain reader, lose nothing, and hold no formula that a
spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from models.version import VERSION

# A table: its columns by name, each a list or an array of one axis.
Cells = Sequence | np.ndarray
Columns = Mapping[str, Cells]
ABOUT = "about"
# What spreadsheets take for a formula, with what they skip before it.
FORMULA = re.compile(r"'*[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]")
# Words that readers of tables take for a missing number.
MISSING = re.compile(r"'*(#N/A( N/A)?|#NA|-?1\.#(IND|QNAN)|-?nan|<NA>|N/?A|n/a|NULL|null|NaN|None)")


def to_csv(columns: Columns, about: Sequence[str] = ()) -> str:
    """Named columns as CSV: a header, then the rows, numbers in full, nothing where there is no
    number.

    `about`, what a reader of the file must know, stands in the last column of the first row, its
    lines with " | " between them, and the Headlight that made it last."""
    rows = [[_cell(value) for value in row] for row in zip(*map(_plain, columns.values()))]
    names = [f"'{name}" if FORMULA.match(name) else name for name in columns]
    if about:
        about_cell = " | ".join(" ".join(line.split()) for line in (*about, f"Headlight {VERSION}"))
        rows = rows or [[""] * len(names)]
        rows = [[*row, "" if at else escape_cell(about_cell)] for at, row in enumerate(rows)]
        names.append(ABOUT)
    file = io.StringIO()
    # With this end of a line the writer quotes cells that hold either half of it.
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerows([names, *rows])
    return file.getvalue()


def stacked(named: Iterable[tuple[str, Columns]], key: str = "table") -> dict[str, list]:
    """Several tables as one, each row with the name of its table in front; empty where a table has
    no such column."""
    columns: dict[str, list] = {key: []}
    for name, table in named:
        n = len(next(iter(table.values()), ()))
        start = len(columns[key])
        for title, values in table.items():
            columns.setdefault(title, [None] * start).extend(_plain(values))
        columns[key].extend([name] * n)
        for values in columns.values():
            values.extend([None] * (start + n - len(values)))
    return columns


def escape_cell(text: str) -> str:
    """Text that stays text: an apostrophe in front of what would be read as a formula, a number or
    a missing one. `unescape_cell` takes it away."""
    text = text.replace("\0", "\u2400")
    return f"'{text}" if _needs_escape(text) else text


def unescape_cell(cell: str) -> str:
    """What `escape_cell` was given."""
    return cell[1:] if cell.startswith("'") and _needs_escape(cell) else cell


def count_cells(columns: Columns) -> int:
    """How many cells a table has."""
    return sum(len(values) for values in columns.values())


def _needs_escape(text: str) -> bool:
    return bool(FORMULA.match(text) or MISSING.fullmatch(text) or _is_number(text.lstrip("'")))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def _plain(values: Cells) -> Sequence:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _cell(value: Any) -> str:
    """A number in full, text as text, nothing for None and NaN."""
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else repr(float(value))
    return escape_cell(str(value))
