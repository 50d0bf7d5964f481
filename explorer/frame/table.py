"""The numbers behind a picture, on the page and as files: one table, one CSV button, one button for
a whole recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from explorer.analysis.csv import cells_of, to_csv
from explorer.frame import export
from explorer.memory.passes import record
from models.edits import Edit
from models.recording import to_npz

MOST_CELLS = 60_000  # of a table on screen: with more a browser is slow
ROW, HEAD, TALLEST = 35, 40, 440  # pixels

Columns = Mapping[str, Sequence]


def csv_button(
    columns: Columns | Callable[[], Columns],
    about: Sequence[str],
    file: str,
    label: str = "Download CSV",
) -> None:
    """A button for named columns as a CSV file. A function of columns is called when it is pressed;
    it runs outside the visit."""
    make = lambda: to_csv(_made(columns), about)
    export.offer(label, f"{file}.csv", "text/csv", make)
    st.download_button(label, make, f"{file}.csv", "text/csv", on_click="ignore", key=f"csv {file}")


def recording_button(
    model: str,
    text: str,
    target: str | tuple[int, ...] | None = None,
    edits: tuple[Edit, ...] = (),
    label: str = "Download the whole recording (NPZ)",
) -> None:
    """A button for everything that was recorded of a model on a text. It keeps names and no
    arrays."""
    make = lambda: to_npz(record(model, text, edits, target=target))
    name, mime = f"headlight-{model}{'-edited' if edits else ''}.npz", "application/octet-stream"
    export.offer("Recording", name, mime, make)
    st.download_button(
        label,
        make,
        name,
        mime,
        on_click="ignore",
        help="Every stream and attention as numpy arrays; models.recording.from_npz reads it back.",
    )


def show(columns: Columns, alt: str, form: str = "%.4f", **forms: str) -> None:
    """Named columns as a table. `form` is how numbers with a fraction are written, `forms` how
    those of a column are."""
    if cells_of(columns) > MOST_CELLS:
        st.info(
            f"{cells_of(columns):,} cells are more than a browser shows well. The file has them "
            "all."
        )
        return
    n = max(map(len, columns.values()), default=0)
    st.dataframe(
        columns,
        hide_index=True,
        height=min(TALLEST, HEAD + ROW * n),
        column_config={
            name: st.column_config.NumberColumn(format=forms.get(name, form))
            for name, values in columns.items()
            if name in forms or _has_fractions(values)
        },
        alt=alt,
    )


def with_table(
    columns: Columns | Callable[[], Columns],
    about: Sequence[str],
    file: str,
    label: str = "Every number of this picture as a table",
    form: str = "%.4g",
) -> None:
    """A table that can be opened, made when it is, and its file beside it. `about` begins with what
    the table shows."""
    with st.expander(label, key=f"table {file}", on_change="rerun") as box:
        if box.open:
            show(_made(columns), about[0] if about else label, form)
        csv_button(columns, about, file, "Table as CSV")


def _made(columns: Columns | Callable[[], Columns]) -> Columns:
    return columns() if callable(columns) else columns


def _has_fractions(values: Sequence) -> bool:
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    return kind == "f" or (not kind and any(isinstance(value, float) for value in values))
