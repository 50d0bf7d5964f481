"""Both sides' vectors: their lengths by depth, how alike the two spaces are, and the tokens'
paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from explorer.analysis import alignment, comparison
from explorer.analysis.formatting import plural
from explorer.layout import export_menu
from explorer.layout.output import with_table
from explorer.state import url_state
from explorer.text.comparison import CKA, PLANES, apart, lengths, likeness
from explorer.text.markdown_escape import literal
from explorer.views.compare.comparison_state import Both


@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of both sides at their common units."""

    both: Both
    found: comparison.AlignedStates

    @property
    def words(self) -> str:
        return f"{plural(len(self.found.labels), 'aligned token')}, special ones left out"

    @property
    def together(self) -> bool:
        """Both sides are one model's, so their vectors lie in one space."""
        one, other = self.both.a.model, self.both.b.model
        return (one.name, one.fingerprint) == (other.name, other.fingerprint)

    @property
    def titles(self) -> list[list[str]]:
        """The states' names on either side."""
        return [
            [comparison.state_title(site) for site in sites]
            for sites in (self.found.sites_a, self.found.sites_b)
        ]

    def chart(self, figure: Any, key: str, file: str, alt: str) -> None:
        """A figure, which can be saved as SVG."""
        image = {"format": "svg", "filename": f"{self.both.file}-{file}"}
        st.plotly_chart(
            figure, key=key, config={"displaylogo": False, "toImageButtonOptions": image}, alt=alt
        )

    def table(self, columns: dict, what: str, file: str) -> None:
        """The numbers behind a figure."""
        about = self.both.caption(f"{what}; {self.words}")
        with_table(columns, about, f"{self.both.file}-{file}")


def show(both: Both) -> None:
    """The view."""
    on = Vectors(both, both.kept("spaces", lambda: _spaces(both), lambda made: made.nbytes))
    if not (on.found.sites_a and on.found.sites_b):
        st.info(
            "One of the two models does not give its vectors, so only attention can be compared."
        )
        return
    if not on.found.labels:
        st.info("No token of the text is aligned, so there are no vectors to compare.")
        return
    left, right = st.columns(2, gap="large")
    with left:
        _lengths(on)
    with right:
        _likeness(on)
    _paths(on)
    _numbers(on)


def _numbers(on: Vectors) -> None:
    """The lines of Python that give all of it."""
    both, enough = on.both, len(on.found.labels) >= comparison.FEWEST_TOKENS
    sides = (("recording", both.of_a.query), ("other", both.of_b.query))
    like = (
        "like = comparison.cka_matrix(found)",
        "cka = comparison.cka_columns(found, like)",
    )
    export_menu.offer_numbers_code(
        "both sides’ vectors",
        both.sources,
        (
            "alignment",
            "comparison",
        ),
        (
            f"one, two = {', '.join(f'{side}.stream({name!r})' for side, name in sides)}",
            f"axes = {', '.join(f'alignment.axis({side}, {name!r})' for side, name in sides)}",
            "found = comparison.aligned_states(one, two, alignment.align(*axes))",
            "lengths = comparison.norm_columns(found)",
            *(like if enough else ()),
            f"planes = comparison.project_paths(found, {on.together})",
            "paths = comparison.path_columns(found, planes)",
        ),
    )


def _spaces(both: Both) -> comparison.AlignedStates:
    sides = ((both.a, both.of_a.query), (both.b, both.of_b.query))
    one, other = (of.stream(name) for of, name in sides)
    units = alignment.align(*(alignment.axis(of, name) for of, name in sides))
    return comparison.aligned_states(one, other, units)


def _lengths(on: Vectors) -> None:
    from explorer.figures import comparison as comparison_figures

    found = on.found
    lines = [
        (name, title, comparison.depth(len(title)), comparison.norms(side))
        for name, title, side in zip(on.both.titles, on.titles, (found.a, found.b))
    ]
    caption = on.both.figure_caption(
        "Norm of the vectors by depth", f"{on.words}; line: mean, band: range"
    )
    on.chart(comparison_figures.lengths(lines, caption), "lengths", "lengths", caption[0])
    st.markdown(literal(lengths(found)))
    st.caption(
        "Depth is 0 after the embeddings and 1 after the last sub-layer, so models of different "
        "depths share one axis."
    )
    on.table(comparison.norm_columns(found), "length of vectors", "lengths")


def _likeness(on: Vectors) -> None:
    from explorer.figures import comparison as comparison_figures

    if len(on.found.labels) < comparison.FEWEST_TOKENS:
        st.info(
            f"Comparing spaces takes at least {comparison.FEWEST_TOKENS} aligned tokens; here are "
            f"{len(on.found.labels)}."
        )
        return
    like = on.both.kept("likeness", lambda: comparison.cka_matrix(on.found))
    caption = on.both.figure_caption("Similarity of the two spaces: linear CKA", on.words)
    rows, columns = on.titles
    figure = comparison_figures.likeness(like.values, like.chance, rows, columns, caption)
    on.chart(figure, "likeness", "cka", caption[0])
    st.markdown(literal(likeness(like)))
    with st.expander("About CKA"):
        st.markdown(CKA)
    on.table(comparison.cka_columns(on.found, like), "linear CKA", "cka")


def _paths(on: Vectors) -> None:
    from explorer.figures.comparison import paths

    found, together = on.found, on.together
    st.subheader("Paths of the tokens", anchor=False)
    chosen = url_state.whole_number("other_word", len(found.labels))
    chosen = comparison.default_unit(found, together) if chosen is None else chosen
    st.session_state["word followed"] = chosen
    made = on.both.kept("planes", lambda: comparison.project_paths(found, together))
    left, right = st.columns([1.9, 1], gap="large")
    with right:
        st.selectbox(
            "Follow",
            range(len(found.labels)),
            key="word followed",
            format_func=lambda at: f"{at} {found.labels[at]}",
            on_change=_take_word,
        )
        if together:
            st.markdown(literal(apart(found, chosen)))
        st.caption(PLANES[together])
        on.table(
            comparison.path_columns(found, made), "paths from the first state to the last", "paths"
        )
    plane = "one plane for both" if together else "a plane for each"
    caption = on.both.figure_caption(
        f"Paths of tokens, “{found.labels[chosen]}” followed", f"{plane}; {on.words}"
    )
    sides = [
        (name, title, side.points, side.explained)
        for name, title, side in zip(on.both.titles, on.titles, made)
    ]
    with left:
        figure = paths(sides, found.labels, chosen, together, caption)
        on.chart(figure, "paths of both", "paths", caption[0])


def _take_word() -> None:
    st.session_state.other_word = str(st.session_state["word followed"])
