"""Tables as CSV files that load with a plain reader, lose nothing, and hold no formula that a
spreadsheet would run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from math import isfinite
from typing import Any

import numpy as np

from models.version import VERSION

# A table: its columns by name, each a list or an array of one axis.
Cells = Sequence | np.ndarray
Columns = Mapping[str, Cells]
COMMENT = "#"
# In a comment, where a spreadsheet begins another cell that it would take for a formula.
FORMULA_INSIDE = re.compile(r"([,;\t][\s\"']*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
# What spreadsheets take for a formula, with what they skip before it.
FORMULA = re.compile(r"'*[\s\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]")
# Words that readers of tables take for a missing number.
MISSING = re.compile(r"'*(#N/A( N/A)?|#NA|-?1\.#(IND|QNAN)|-?nan|<NA>|N/?A|n/a|NULL|null|NaN|None)")


def to_csv(columns: Columns, about: Sequence[str] = ()) -> str:
    """Write named columns as CSV: a header, then the rows, numbers in full, nothing where there is
    no number.

    `about`, what a reader of the file must know, stands before the header, a comment line each, and
    last the Headlight that made it: `pandas.read_csv(file, comment="#")`."""
    rows = ([_cell(value) for value in row] for row in zip(*map(_plain, columns.values())))
    names = [f"'{name}" if FORMULA.match(name) else name for name in columns]
    comments = [_comment(line) for line in (*about, f"Headlight {VERSION}")] if about else []
    lines = (",".join(map(_quoted, row)) for row in (names, *rows))
    return "".join(f"{line}\r\n" for line in (*comments, *lines))


def file_of(text: str) -> bytes:
    """A table's text as the bytes of a file, with the mark in front by which a spreadsheet knows
    UTF-8."""
    return text.encode("utf-8-sig")


def without_comments(text: str) -> str:
    """Remove the comment lines before the header from a file's text."""
    lines = text.lstrip("\ufeff").splitlines(keepends=True)
    return "".join(dropwhile(lambda line: line.startswith(COMMENT), lines))


def long_form(axes: Mapping[str, Sequence], values: np.ndarray, name: str) -> dict[str, Cells]:
    """Lay out an array as named columns in long form: a row for each number, with its place on each
    axis by the axis's name and the labels along it."""
    grid = np.indices(values.shape).reshape(values.ndim, -1)
    columns: dict[str, Cells] = {
        axis: [labels[at] for at in places] for (axis, labels), places in zip(axes.items(), grid)
    }
    return columns | {name: values.ravel()}


def stacked(named: Iterable[tuple[str, Columns]], key: str = "table") -> dict[str, list]:
    """Join several tables into one, each row with the name of its table in front; empty where a
    table has no such column."""
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
    """Put an apostrophe in front of a text that would be read as a formula, a number or a missing
    one, so that it stays text. `unescape_cell` takes it away."""
    text = text.replace("\0", "\u2400")
    return f"'{text}" if _needs_escape(text) else text


def unescape_cell(cell: str) -> str:
    """Undo `escape_cell`."""
    return cell[1:] if cell.startswith("'") and _needs_escape(cell) else cell


def count_cells(columns: Columns) -> int:
    """Count the cells of a table."""
    return sum(len(values) for values in columns.values())


def _comment(line: str) -> str:
    plain = " ".join(line.replace("\0", "\u2400").split())
    return f"{COMMENT} " + FORMULA_INSIDE.sub(r"\1'", plain)


def _quoted(cell: str) -> str:
    """Quote a cell where it holds what ends one, or begins a comment."""
    return '"' + cell.replace('"', '""') + '"' if re.search('[",\r\n#]', cell) else cell


def _needs_escape(text: str) -> bool:
    return bool(FORMULA.match(text) or MISSING.fullmatch(text) or _is_number(text.lstrip("'")))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def plain_columns(columns: Columns) -> dict[str, list]:
    """Named columns in plain Python: numbers in full, None where there is no finite one."""
    return {name: [_plain_cell(each) for each in _plain(cells)] for name, cells in columns.items()}


def _plain_cell(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, type(None))) else str(value)


def _plain(values: Cells) -> Sequence:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _cell(value: Any) -> str:
    """Write a value as a cell: a number in full, text as text, nothing for None and NaN."""
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else repr(float(value))
    return escape_cell(str(value))
