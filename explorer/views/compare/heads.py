"""Heads side by side: the grids of both sides, the pair that is open to its last cell, the most
changed, and the nearest."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import alignment, comparison
from explorer.components import comparison as comparison_components
from explorer.components import matrix
from explorer.layout import export_menu
from explorer.layout.output import offer_csv
from explorer.state import url_state
from explorer.text.comparison import cell, nearest, other_shape, pair_title, rule, told, units
from explorer.views.compare.comparison_state import Both, Head

MOST_CELLS = 5_000  # rows of the table of cells; its file has all
THREE = st.column_config.NumberColumn(format="%.3f")
TONES = ("Linear", "Log")


def units_told(both: Both) -> None:
    """How tokens were aligned, what was not, and how much of the attention goes there."""
    found = both.found
    title = f"Token alignment: {units(found)}"
    with st.expander(title, key="units", on_change="rerun") as box:
        if not box.open:
            return  # tables of long texts are sent to those who open them
        st.markdown(rule(found))
        rows_a, columns_a = alignment.axes(both.a, both.of_a)
        rows_b, columns_b = alignment.axes(both.b, both.of_b)
        left, right = st.columns(2, gap="large")
        left.dataframe(
            alignment.unit_columns(found.columns, columns_a, columns_b),
            hide_index=True,
            height=300,
            alt="Alignment of columns",
        )
        if both.of_a.query != both.of_a.key or both.of_b.query != both.of_b.key:
            right.dataframe(
                alignment.unit_columns(found.rows, rows_a, rows_b),
                hide_index=True,
                height=300,
                alt="Alignment of rows",
            )
        if found.leaves_out:
            says = "The attention of each row to unaligned tokens, as a mean over heads."
            right.dataframe(
                comparison.unaligned_columns(found),
                hide_index=True,
                height=300,
                column_config={"A": THREE, "B": THREE},
                alt=says,
            )
            right.caption(says)


def chosen_pair(both: Both, by_nearest: bool) -> tuple[Head, Head]:
    """The heads on screen, one of A and one of B: those chosen; else those the sentence above is
    about."""
    (la, ha), (lb, hb) = both.found.a.shape[:2], both.found.b.shape[:2]
    chosen = url_state.whole_numbers("other_pair", 10_000) or _elsewhere(la, ha)
    head = (chosen[0], chosen[1]) if len(chosen) >= 2 else (la, ha)
    known = head[0] < la and head[1] < ha
    if known and len(chosen) == 4 and chosen[2] < lb and chosen[3] < hb:
        return head, (chosen[2], chosen[3])
    known = known and len(chosen) == 2
    if not known and both.paired is None:
        return comparison.farthest_head(both.near)
    if not known:
        head = comparison.most_changed(both.paired)[0]
    # A head of A alone: its counterpart is found.
    straight = both.paired is not None and not by_nearest
    return head, head if straight else comparison.nearest_to(both.near, head)


def _elsewhere(layers: int, heads: int) -> tuple[int, ...]:
    """The head chosen on other pages, which stays chosen here; () where there is none or A has no
    such head."""
    layer, head = str(st.session_state.layer), str(st.session_state.head)
    known = layer.isdecimal() and head.isdecimal() and len(layer + head) < 8
    found = (int(layer), int(head)) if known else (layers, heads)
    return found if found[0] < layers and found[1] < heads else ()


def grids(both: Both) -> None:
    """All heads of both sides, and their difference where they stand in the same places."""
    found, tone = both.found, st.session_state.other_tone
    both_sides = comparison_components.Grids(
        *found.weights(), found.rows.labels, found.column_labels, both.titles, both.paired
    )
    name = both.named("grids", tone)
    data = both.kept(
        ("grids", tone), lambda: comparison_components.grids(both_sides, tone == "Log", name), len
    )
    comparison_components.show(data, "grids", partial(_take_head, found.same_shape))
    if both.paired is None:
        st.caption(other_shape(found.a.shape, found.b.shape))


def opened(both: Both, pair: tuple[Head, Head], near: comparison.Nearest | None = None) -> None:
    """The chosen head of either side and their difference, to the last cell. near: what is nearest
    to A's, where that is on screen."""
    found, (head_a, head_b) = both.found, pair
    one, other = comparison.name(head_a), comparison.name(head_b)
    title = pair_title(*pair, comparison.pair_distance(found, *pair))
    st.session_state["pair shown"] = ".".join(map(str, (*head_a, *head_b)))
    st.divider()
    if near is None:
        picture, row = both.named("grids", st.session_state.other_tone), None
        words = told(comparison.largest_row_change(found, *pair))
    else:
        picture, row = both.named("map"), comparison.head_number(head_a, found.a.shape)
        words = nearest(near)
    name = both.named("pair", pair, near is None)
    data = comparison_components.pair(
        head_a, head_b, title=title, words=words, token=name, picture=picture, row=row
    )
    comparison_components.show(data, "pair of heads", ignore)
    caption = both.caption(
        f"{both.of_a.name} {one} of A, {both.of_b.name} {other} of B, on common units: columns of "
        "a unit summed, rows averaged"
    )
    file = f"{both.file}-{one}-{other}".replace(" ", "")
    numbers_of(both, pair, near is None)
    _matrices(both, pair, caption, file)
    st.caption(cell(comparison.largest_row_change(found, *pair)))
    _cells(both, pair, title, caption, file)


def _matrices(both: Both, pair: tuple[Head, Head], caption: tuple[str, ...], file: str) -> None:
    found = both.found
    one, other = map(comparison.name, pair)

    def made() -> bytes:
        a, b, change, top, far = comparison.pair_matrices(found, *pair)
        each = [
            matrix.MatrixPanel(f"A · {one}", a, 0.0, top),
            matrix.MatrixPanel(f"B · {other}", b, 0.0, top),
            matrix.MatrixPanel("B − A", change, -far, far),
        ]
        rows, columns = found.rows.labels, found.column_labels
        plain = [False] * len(columns)
        sheet = matrix.MatrixSheet(rows, columns, plain, ("row", "column"), digits=3, choose=False)
        title = f"A’s {one}, B’s {other}, and B − A"
        return matrix.panels(
            each, sheet, matrix.Picture(title, caption, file, both.named("panels", pair))
        )

    matrix.show(both.kept(("panels", pair), made, len), "panels", ignore)


def _cells(
    both: Both, pair: tuple[Head, Head], title: str, caption: tuple[str, ...], file: str
) -> None:
    found = both.found
    made = partial(comparison.pair_columns, found, *pair)
    offer_csv(made, caption, file, "Both heads and their difference as CSV")
    with st.expander("All cells as a table", key="cells", on_change="rerun") as box:
        if not box.open:
            return
        columns = made()
        shown = comparison.most_apart(columns, MOST_CELLS)
        if shown is not columns:
            st.caption(
                f"The {MOST_CELLS:,} cells with the largest difference, of "
                f"{len(columns['row']):,}. The file has all."
            )
        four = st.column_config.NumberColumn(format="%.4f")
        st.dataframe(
            shown,
            hide_index=True,
            height=320,
            column_config=dict.fromkeys(("A", "B", "B - A"), four),
            alt=title,
        )


def numbers_of(both: Both, pair: tuple[Head, Head], filed: bool) -> None:
    """The lines of Python that give every cell of the pair that is open, and of all heads how far
    they changed or, where no file shows it, the nearest ones. filed: whether the page's file shows
    the view."""
    at_a, at_b = both.a.attention.index(both.of_a), both.b.attention.index(both.of_b)
    needs = (
        "alignment",
        "comparison",
    )
    lines = [
        f"one, two = recording.attention[{at_a}], other.attention[{at_b}]",
        "axes = alignment.axes(recording, one), alignment.axes(other, two)",
        "rows, columns = (alignment.align(*each) for each in zip(*axes))",
        "found = comparison.align_patterns((recording, one), (other, two), rows, columns)",
        f"cells = comparison.pair_columns(found, {', '.join(map(str, pair))})",
    ]
    if not filed:
        lines += [
            "distances = comparison.distance_matrix(found)",
            "every = comparison.distance_columns(distances)",
            "table = comparison.nearest_columns(comparison.nearest(distances))",
        ]
        return export_menu.offer_numbers_code(
            "every head of A beside every head of B", both.sources, needs, lines
        )
    if both.paired is not None:
        lines.append(
            "changed = comparison.changed_columns(found, comparison.same_place_distances(found))"
        )
    export_menu.offer_more_code(needs, *lines)


def changes(both: Both) -> None:
    """Heads in the same place, the most changed first."""
    st.markdown("**Heads with the largest change.** Select a row to open the head.")
    columns = both.kept("changes", lambda: comparison.changed_columns(both.found, both.paired))
    st.dataframe(
        columns,
        hide_index=True,
        height=300,
        key="changed",
        on_select=partial(_take_row, "changed", comparison.most_changed(both.paired)),
        selection_mode="single-row",
        column_config={"distance": THREE},
        alt="Heads by distance",
    )
    about = both.caption("mean Jensen-Shannon distance (base 2) of heads in the same place")
    offer_csv(columns, about, f"{both.file}-changed", "These distances as CSV")


# ---- nearest heads ----


def every_pair(both: Both) -> None:
    """Every head of A beside every head of B, and the nearest one for each."""
    caption = both.caption(
        "mean Jensen-Shannon distance (base 2) of every head of A to every head of B"
    )
    narrow = comparison.is_narrow(both.distances)
    left, right = st.columns([1.1, 1], gap="large") if narrow else (st.container(), st.container())
    with left:
        st.markdown(
            "**Distances of all heads of A and B.** The nearest head in each row is marked. Select "
            "a row."
        )
        _map(both, caption)
    with right:
        st.markdown(
            "**The nearest head of B for each head of A.** The median over B’s heads is the "
            "baseline."
        )
        _nearest_list(both, caption)
    used = both.distances
    if used.n_rows < used.all_rows:
        st.caption(f"Only {used.n_rows} of the {used.all_rows} rows are used here, evenly spaced.")


def _map(both: Both, caption: tuple[str, ...]) -> None:
    distances = both.distances

    def made() -> bytes:
        sheet = matrix.MatrixSheet(
            comparison.names(distances.shape_a),
            comparison.names(distances.shape_b),
            [False] * len(distances.values.T),
            ("head of A", "head of B"),
            marks=comparison.nearest_cells(both.near, distances),
            digits=3,
        )
        title = "Distance of A’s heads to B’s"
        picture = matrix.Picture(title, caption, f"{both.file}-heads", both.named("map"))
        top = comparison.scale_maximum(distances.values)
        return matrix.panels([matrix.MatrixPanel("", distances.values, 0.0, top)], sheet, picture)

    matrix.show(
        both.kept("map", made, len), "map of heads", partial(_take_map_row, distances.shape_a)
    )


def _nearest_list(both: Both, caption: tuple[str, ...]) -> None:
    columns, distances = comparison.nearest_columns(both.near), both.distances
    number = st.column_config.NumberColumn(format="%.2f", width=78)
    words = st.column_config.TextColumn(width=78)
    st.dataframe(
        columns,
        hide_index=True,
        height=480,
        key="nearest list",
        on_select=partial(_take_row, "nearest list", [one.head for one in both.near]),
        selection_mode="single-row",
        column_config=dict.fromkeys(("distance", "at", "median"), number)
        | dict.fromkeys(("head of A", "nearest", "next best", "both ways"), words),
        alt="Nearest heads",
    )
    offer_csv(columns, caption, f"{both.file}-nearest", "Nearest heads as CSV")
    offer_csv(
        lambda: comparison.distance_columns(distances),
        caption,
        f"{both.file}-distances",
        "All distances as CSV",
    )


# ---- what the reader did ----


def _take_head(same_shape: bool) -> None:
    """A head of A opens with its counterpart, or with the nearest one; a head of B beside the open
    head of A where shapes differ."""
    grid, layer, head = st.session_state["grids"].get("head") or ("a", 0, 0)
    beside = (str(int(layer)), str(int(head)))
    if grid == "b" and not same_shape:
        beside = (*st.session_state["pair shown"].split(".")[:2], *beside)
    st.session_state.other_pair = ".".join(beside)


def _take_row(key: str, heads: list[Head]) -> None:
    """A row of a list: the head of A there, with its counterpart as the view has it."""
    if rows := st.session_state[key]["selection"]["rows"]:
        st.session_state.other_pair = ".".join(map(str, heads[rows[0]]))


def _take_map_row(of: Head) -> None:
    if (row := st.session_state["map of heads"].get("row")) is not None:
        st.session_state.other_pair = ".".join(map(str, divmod(int(row), of[1])))


def ignore() -> None:
    """It is only looked at."""
