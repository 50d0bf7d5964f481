"""The sentences of a text that was pasted or loaded: its lines, or one column where it reads as a
table.

Lines with equally many commas read as a table too. Which of the two is meant cannot be seen from
them; whoever asks says so.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

MOST_LINES = 200
MOST_COLUMNS = 100  # of a table: nobody would choose among more
LONGEST_LINE = 1000  # characters of one that are read
# What stands between two cells, and whether quotation marks hold one together: not in all files
# with tabs.
SPELLINGS = (("\t", True), ("\t", False), (";", True), (",", True))


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, and its rows with a cell for each."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table_of(text: str) -> Table | None:
    """The table that a text reads as, with tabs, semicolons or commas between its cells: the first
    row names the columns, every other has as many cells, at least two. Of several the one with most
    columns; None where there is none."""
    found = [each for spelling in SPELLINGS if (each := _spelled(text, *spelling))]
    return max(found, key=lambda each: len(each.names), default=None)


def _spelled(text: str, between: str, quoted: bool) -> Table | None:
    file = io.StringIO(text.lstrip("\ufeff"), newline=None)
    try:
        if quoted:
            read = list(csv.reader(file, delimiter=between, strict=True))
        else:
            read = list(csv.reader(file, delimiter=between, quoting=csv.QUOTE_NONE))
    except csv.Error:
        return None
    rows = [tuple(row) for row in read if any(cell.strip() for cell in row)]
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return None
    names = rows[0]
    if len(names) > MOST_COLUMNS:
        return None
    named = all(name.strip() for name in names) and len(set(names)) == len(names) > 1
    return Table(names, tuple(rows[1:])) if named else None


def columns_of(text: str) -> tuple[str, ...]:
    """The names of the columns where a text reads as a table; () where it does not."""
    table = table_of(text)
    return table.names if table else ()


def lines_of(text: str, column: str = "") -> tuple[str, ...]:
    """The sentences of a text, a line each, or the cells of a column of it: without empty ones,
    each at most `LONGEST_LINE` characters."""
    table = table_of(text) if column else None
    if table:
        at = table.names.index(column)
        lines = [row[at] for row in table.rows]
    else:
        lines = text.lstrip("\ufeff").splitlines()
    said = (" ".join(line.split())[:LONGEST_LINE] for line in lines)
    return tuple(line for line in said if line)


def widest(text: str) -> str:
    """The column that holds most text, most likely the sentences; "" where there is no table."""
    table = table_of(text)
    if table is None:
        return ""
    sizes = [sum(map(len, column)) for column in zip(*table.rows)]
    return table.names[sizes.index(max(sizes))]


def whole(text: str) -> str:
    """What is whole of a text that was cut at its end: the rows of a table, else the lines; all of
    it where it is one line."""
    kept, end, _ = text.rpartition("\n")
    if not end or table_of(kept):
        return kept if end else text
    # The cut may lie in a cell of several lines: back to where no quotation is open.
    lines, is_open, closed = kept.split("\n"), False, 0
    for at, line in enumerate(lines, 1):
        is_open ^= line.count('"') % 2 == 1
        closed = closed if is_open else at
    rows = "\n".join(lines[:closed])
    return rows if table_of(rows) else kept
