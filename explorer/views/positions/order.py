"""Does the model notice another order of the words? Both orders, with positions and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.analysis import positions
from explorer.analysis.csv import Columns
from explorer.analysis.positions import self_attention
from explorer.figures.positions import differences, weights
from explorer.layout import export_menu
from explorer.state import cache, models
from explorer.text import positions as positions_text
from explorer.text.positions import one_and_the_same
from explorer.views.positions.page_state import PositionSource
from explorer.views.positions.panel import chart, head, number, pick_stream, tables
from explorer.views.positions.sentence import refused
from models.edits import ShuffleTokens, to_line
from models.recording import Recording

ORDERS, POSITIONS = ("Shuffle", "Retype"), ("Without", "With")
SHUFFLES = 1000


@dataclass(frozen=True)
class OrderRequest:
    """What the two orders are asked for by, in names alone: the text as it is, and the other one,
    of which `edits` shuffle the tokens."""

    source: PositionSource
    other: str
    edits: tuple[ShuffleTokens, ...]

    def recordings(self, bare: bool) -> tuple[Recording, Recording]:
        """Both orders recorded, with positions or without."""
        source = self.source
        away = source.without if bare else ()
        return (
            cache.record(source.model, source.text, away, source.target),
            cache.record(source.model, self.other, (*self.edits, *away), source.target),
        )

    def orders(self) -> positions.OrderComparison:
        """The comparison, kept as the few numbers that it is: the passes of a long text fill the
        memory."""
        made = lambda: positions.compare_orders(
            self.recordings, self.source.stream_name, bool(self.edits)
        )
        return cache.cached_for_recordings(self.source.model, ("orders", self), made)

    def maps(self, layer: int, head: int, bare: bool) -> positions.MatchedWeights:
        """One head's weights in both orders."""

        def made() -> positions.MatchedWeights:
            one, other = (
                self_attention(each, self.source.stream_name) for each in self.recordings(bare)
            )
            return positions.head_in_both_orders(one, other, layer, head, self.orders().pairs)

        return cache.cached_for_recordings(
            self.source.model, ("order maps", self, layer, head, bare), made
        )


def show(source: PositionSource) -> None:
    """The screen."""
    base = source.plain
    if base.streams[0].special.all():
        st.info("There are no words yet to put in another order.")
        return
    if why := refused(source):
        st.info(why)
        return
    if source.adds == "none" and not source.without:
        st.info(one_and_the_same(models.title(source.model)))
    asked = _asked(source, positions.reverse_words(positions.read_part(base)))
    pick_stream(source)
    with st.spinner("Reading the words in both orders …"):
        found = asked.orders()
    if found.dropped:
        st.warning(
            positions_text.cut_short(
                models.title(source.model), base.model.n_positions, found.dropped
            )
        )
    here = positions_text.tokens(base.streams[0].tokens)
    st.markdown(f"**This order:** {here}  \n**The other:** {positions_text.tokens(found.read)}")
    if found.read == base.streams[0].tokens:
        st.info(
            "The other order is the same as this one. Try another shuffle, or type other words."
        )
    else:
        _results(source, found)
    about = source.caption(f"Other order: {' '.join(found.read)}")
    left, right = st.columns(2, gap="large")
    with left:
        _differences(source, found, about)
    with right:
        _word_by_word(found)
    layer, at, bare = _head_maps(asked, found, about)
    title = f"Layer {layer}, head {at}, {'without' if bare else 'with'} positions"
    _numbers(asked, layer, at, bare)
    tables(
        (
            "Words",
            ("The same words in two orders", *about),
            lambda: positions.order_columns(asked.orders()),
        ),
        (
            "Sites",
            ("Largest difference by site", *about),
            lambda: positions.site_columns(asked.orders().with_, asked.orders().without),
        ),
        ("Maps", (title, *about), lambda: _map_columns(asked, layer, at, bare)),
        file=f"positions-order-{source.model}",
    )


def _asked(source: PositionSource, turned: str) -> OrderRequest:
    """The other order, chosen: an edit that shuffles the tokens, or a text typed anew, at first
    `turned`."""
    left, right = st.columns([1, 2.4], vertical_alignment="bottom")
    how = left.segmented_control(
        "Other order", ORDERS, key="order", required=True, persist_state="session"
    )
    if how == "Shuffle":
        words = (
            "A seed: each number is another order, always the same one. Special tokens stay "
            "where they are."
        )
        with right:
            seed = number("Shuffle", "shuffle", 0, SHUFFLES - 1, 1, words=words)
        return OrderRequest(source, source.text, (ShuffleTokens(seed),))
    right.text_input(
        "The same words in another order",
        key="retyped",
        live="300ms",
        persist_state="session",
        placeholder=f"Empty: from last to first: {turned[:80]}",
    )
    typed = st.session_state.retyped
    return OrderRequest(source, typed if typed.strip() else turned, ())


def _results(source: PositionSource, found: positions.OrderComparison) -> None:
    """Both numbers, large, and one sentence that says what they mean."""
    n = len(found.pairs.here)
    if not n:
        st.warning("The two texts have no token in common, so nothing can be compared.")
        return
    for column, name, each in zip(
        st.columns(2), ("Without positions", "With positions"), (found.without, found.with_)
    ):
        digits = positions_text.digits(each.common_digits)
        column.metric(f"{name}, vectors agree to", digits, border=True)
        column.markdown(positions_text.difference(each.difference, n, source.card.d_model))
    causal = not self_attention(source.plain, source.stream_name).allowed.all()
    across = source.stream_name == "decoder" and len(source.plain.streams) > 1
    st.markdown(positions_text.meaning(found, causal, across))


def _differences(
    source: PositionSource, found: positions.OrderComparison, about: Sequence[str]
) -> None:
    with_, without = found.with_, found.without
    title = ("Largest difference of the vectors", *about)
    figure = differences(
        positions_text.sites(with_.site),
        with_.to_draw(with_.site),
        without.to_draw(with_.site),
        title,
    )
    chart(figure, "differences", title[0], f"positions-order-{source.model}")
    st.caption(
        "A point for each state on the way through the layers; a difference of exactly 0 has no "
        "place on a log scale."
    )


def _word_by_word(found: positions.OrderComparison) -> None:
    st.markdown("**Word by word**, the last layer’s vectors")
    st.dataframe(
        positions.word_columns(found),
        hide_index=True,
        height=min(420, 38 + 35 * max(1, len(found.pairs.here))),
        column_config={"cosine, with": st.column_config.NumberColumn(format="%.4f")},
        alt="How far each word’s last vectors agree in the two orders",
    )
    st.caption(
        "Digits: −log₁₀(largest difference / largest number). Single precision holds about 7, and "
        "every layer’s rounding takes a little."
    )


def _head_maps(
    asked: OrderRequest, found: positions.OrderComparison, about: Sequence[str]
) -> tuple[int, int, bool]:
    """One head's weights in both orders, side by side; returns the head, and whether positions are
    away."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        layer, at = head(asked.source)
        bare = (
            st.segmented_control(
                "Positions", POSITIONS, key="positions", required=True, persist_state="session"
            )
            == "Without"
        )
    if not len(found.pairs.here):
        return layer, at, bare
    maps = asked.maps(layer, at, bare)
    tokens = [found.tokens[place] for place in found.pairs.here]
    words = f"Layer {layer}, head {at}, {'without' if bare else 'with'} positions"
    for column, matrix, title in zip(
        st.columns(2, gap="large"),
        (maps.here, maps.there),
        ("This order", "The other order, matched by word"),
    ):
        name = title.split(",")[0].replace(" ", "-").lower()
        with column:
            figure = weights(matrix, tokens, maps.top, (title, words, *about))
            chart(figure, title, f"{title}: {words}", f"positions-map-L{layer}H{at}-{name}")
    st.markdown(positions_text.maps(maps))
    return layer, at, bare


def _numbers(asked: OrderRequest, layer: int, at: int, bare: bool) -> None:
    """The lines of Python that give all tables of both orders."""
    source = asked.source
    name, away = source.stream_name, to_line(source.without)
    texts = [source.text, asked.other]
    lines = [
        f"texts, shuffled = {texts!r}, headlight.edits.from_line({to_line(asked.edits)!r})",
        f"away, target = headlight.edits.from_line({away!r}), {source.target!r}",
        "",
        "def both(bare):",
        "    edits = away if bare else ()",
        "    return (",
        "        model.record(texts[0], edits, target),",
        "        model.record(texts[1], (*shuffled, *edits), target),",
        "    )",
        "",
        f"found = positions.compare_orders(both, {name!r}, {bool(asked.edits)})",
        "words = positions.order_columns(found)",
        "sites = positions.site_columns(found.with_, found.without)",
        f"one, two = (positions.self_attention(each, {name!r}) for each in both({bare}))",
        f"maps = positions.head_in_both_orders(one, two, {layer}, {at}, found.pairs)",
        "tokens = [found.tokens[place] for place in found.pairs.here]",
        "weights = positions.map_columns(maps.here, maps.there, tokens)",
    ]
    needs = ("positions",)
    export_menu.offer_numbers_code("both orders", (source.shown,), needs, lines)


def _map_columns(asked: OrderRequest, layer: int, at: int, bare: bool) -> Columns:
    maps, found = asked.maps(layer, at, bare), asked.orders()
    tokens = [found.tokens[place] for place in found.pairs.here]
    return positions.map_columns(maps.here, maps.there, tokens)
