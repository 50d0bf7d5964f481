"""Positions: how does the model know word order?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, floor, isinf, sin

import streamlit as st

from explorer.analysis import positions as numbers
from explorer.analysis.caption import caption
from explorer.analysis.numbers import enough_for, fixed, in_latex, power
from explorer.analysis.right import scaling
from explorer.figures import positions as draw
from explorer.frame import onscreen
from explorer.frame.picker import pick_head
from explorer.frame.table import csv_button, show
from explorer.memory import address, models, passes, shelf
from explorer.sentences.escape import literal
from models.edits import ShuffleTokens, WithoutPositions
from models.recording import Recording, Stream

SCREENS = {
    "Waves": "What is added to tell positions apart?",
    "Distance": "What do two positions’ encodings say about their distance?",
    "Shift": "Why is moving by k positions a rotation?",
    "Sentence": "What does it add to this sentence, and to its scores?",
    "Order": "Does the model notice another order of the words?",
    "Adding": "Why add the encoding, and not concatenate it?",
}
ORDERS, POSITIONS = ("Shuffle", "Retype"), ("Without", "With")
DEFAULT_PLACES, SHUFFLES = 64, 1000
SLIDER = 360  # pixels, at most the width of the screen
MOST_GRAM, MOST_ON_CIRCLE = 128, 64
MOST_TOKENS_TOLD = 40
SAME_DIGITS = 4  # vectors that agree to as many digits differ by no more than rounding
EMBEDDED, HELD = 0.9, 0.99  # shares of variance that the last screen speaks of
Table = tuple[
    str, Sequence[str], Callable[[], dict[str, Sequence]]
]  # a picture's name, its caption, and its numbers when they are wanted


@st.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    st.subheader(
        "How does the model know word order?",
        anchor=False,
        help="Attention alone treats a text as a bag of words. What follows is how position gets in, and what happens without.",
    )
    screen = st.segmented_control(
        "Question",
        list(SCREENS),
        key="ask",
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )
    st.markdown(f"**{SCREENS[screen]}**")
    if screen == "Sentence":
        sentence(model, text)
    elif screen == "Order":
        order(model, text)
    elif screen == "Adding":
        adding(model, text)
    else:
        {"Waves": waves, "Distance": distance, "Shift": shift}[screen](model, text)
    address.write()


# ---- the table and its laws: nothing here runs the model again ------------------------------------------------------------


def sizes(model: str, text: str) -> tuple[int, int]:
    """How many positions and how wide, chosen; at first as wide as the model."""
    own = passes.record(model, text).model.d_model
    d = number(
        "Width of the table, d_model",
        "width",
        2,
        numbers.WIDEST,
        own,
        step=2,
        help=f"Sines and cosines come in pairs, so it is even. {model} has {own}.",
    )
    return number("Positions", "places", 2, numbers.LONGEST, DEFAULT_PLACES), d


def a_pair(d: int) -> int:
    """The pair of dimensions, chosen; the paper's i."""
    if d == 2:
        st.caption("With two dimensions there is one pair, i = 0.")
        return 0
    return number(
        "Pair of dimensions, i",
        "pair",
        0,
        d // 2 - 1,
        min(d // 12, d // 2 - 1),
        help="Pair i is dimensions 2i (sine) and 2i + 1 (cosine).",
    )


def number(
    label: str,
    choice: str,
    low: int,
    high: int,
    default: int,
    step: int = 1,
    help: str | None = None,
) -> int:
    """A slider of whole numbers that stands in the address as `choice`."""
    asked = address.whole(choice, high + 1)
    value = default if asked is None or asked < low or (asked - low) % step else asked
    key = f"{choice} slider"
    st.session_state[key] = value
    return st.slider(
        label,
        low,
        high,
        step=step,
        key=key,
        on_change=take_number,
        args=(choice, default),
        help=help,
        width=SLIDER,
    )


def row():
    """Widgets side by side, below each other where the screen is narrow."""
    return st.container(horizontal=True, gap="medium", vertical_alignment="bottom")


def take_number(choice: str, default: int) -> None:
    value = st.session_state[f"{choice} slider"]
    st.session_state[choice] = "" if value == default else str(value)


def own_positions(model: str, text: str) -> tuple[str, Stream]:
    """What the model adds for the positions, "sinusoids", "learned" or "none", measured on this text; and the stream that shows it."""
    recording = passes.record(model, text)
    stream = recording.stream(chosen_stream(recording))
    return numbers.kind(stream), stream


def learned(model: str, text: str):
    """The table of positions that a model has learned, (position, d_model); of one that does not hand it out, the rows of this text."""
    table = models.position_table(model)
    return own_positions(model, text)[1].at("pos.wrote") if table is None else table


def learned_about(model: str, text: str, n: int) -> tuple[str, ...]:
    """What a figure of a learned table must say when it stands alone."""
    card = passes.record(model, text).model
    return (
        f"Headlight · model {model} (weights {card.fingerprint}) · its learned table, positions 0 to {n - 1}, d_model {card.d_model} · no text",
    )


def learned_rows(model: str, text: str):
    """As many first rows of a learned table as the reader asks for."""
    table = learned(model, text)
    with row():
        n = (
            number("Positions", "places", 2, len(table), min(DEFAULT_PLACES, len(table)))
            if len(table) > 2
            else len(table)
        )
    return table[:n]


WITHIN = {
    "rotary": "it turns queries and keys by their positions (rotary)",
    "distance": "it takes from a score the more, the further apart two tokens are",
    "relative": "its scores depend on how far apart two tokens are",
}


def within(model: str) -> str:
    """How a model that adds nothing brings positions into its attention, "" where it does not."""
    kind = models.offers(model).positions
    return WITHIN.get(str(kind), "") if kind else ""


def told_none(model: str) -> None:
    how = f"; {within(model)}" if within(model) else ""
    st.info(
        f"**{literal(model)} adds nothing for positions** to its embeddings{how}. What follows is the paper’s formula itself, for comparison."
    )


def told_within(model: str) -> None:
    st.info(
        f"**{literal(model)} adds nothing for positions** to its embeddings; {within(model)}. That cannot be taken away here, and this screen compares a model with and without its positions."
    )


def learned_table(model: str, text: str) -> None:
    """A table that training has made, as it is: no wave, no formula."""
    whole, shown = learned(model, text), learned_rows(model, text)
    n, d = shown.shape
    lengths, about = numbers.lengths(whole), learned_about(model, text, n)
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        end = numbers.scale_end(shown)
        plot(
            draw.table(
                shown,
                (
                    "The learned table of positions",
                    *about,
                    f"Colours end at ±{size(end)}; one number in a hundred lies beyond",
                ),
                end=end,
            ),
            "learned table",
            f"Heatmap of the learned table: {n} positions down, {d} dimensions along",
            f"positions-{model}",
        )
    with right:
        off = numbers.off_formula(own_positions(model, text)[1])
        st.markdown(
            f"**Learned, not computed.** {model} has one free vector for each of {len(whole):,} positions, and none beyond the last: so it reads {len(whole):,} tokens and no more.  \n"
            f"**No formula.** Nothing makes these numbers sines and cosines: on your text what is added differs from the paper’s by up to {size(off)}. So wavelengths do not apply.  \n"
            f"**Lengths** run from {size(lengths.min())} (position {lengths.argmin()}) to {size(lengths.max())} (position {lengths.argmax()}); every one of the paper’s is √(d/2) = {(d / 2) ** 0.5:.2f} long."
        )
        title = ("Length of each position’s vector", *about)
        plot(draw.norms(lengths[:n], title), "norms", title[0], f"positions-lengths-{model}")
    tables(
        (
            "Table",
            ("The learned table of positions", *about),
            lambda: numbers.table_columns(learned(model, text)[:n]),
        ),
        (
            "Lengths",
            title,
            lambda: {
                "position": list(range(n)),
                "length": numbers.lengths(learned(model, text)[:n]),
            },
        ),
        file=f"positions-{model}",
        key="own",
    )


def waves(model: str, text: str) -> None:
    what, _ = own_positions(model, text)
    if what == "learned":
        learned_table(model, text)
        return
    if what == "none":
        told_none(model)
    with row():
        n, d = sizes(model, text)
        pair = a_pair(d)
    encoding, wave, turns = numbers.table(n, d), numbers.wave(n, d, pair), numbers.wavelengths(d)
    about = formula_about(n, d)
    title = f"Pair {pair}: a turn in {size(turns[pair])} positions"
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        plot(
            draw.table(encoding, ("Positional encoding", *about), pair, (turns[0], turns[-1])),
            "table",
            f"Heatmap of the encoding: {n} positions down, {d} dimensions along",
            f"positions-{n}x{d}",
        )
    with right:
        plot(
            draw.wave(
                wave.place,
                wave.fine_sine,
                wave.fine_cosine,
                (wave.sine, wave.cosine),
                (2 * pair, 2 * pair + 1),
                (title, *about),
            ),
            "wave",
            title,
            f"positions-pair-{pair}-of-{d}",
        )
        sine, cosine = fixed(wave.sine[1], 4), fixed(wave.cosine[1], 4)
        (angle,) = enough_for(
            [(sine, sin), (cosine, cos)], float(wave.angle[1]), least=4, write=power
        )
        st.markdown(
            f"**Each position gets a row of sines and cosines.** PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i + 1) = cos of the same angle.  \n"
            f"**Pair i = {pair}** of d = {d}: the angle grows by 1 / 10000^({2 * pair}/{d}) = {size(wave.angle[1])} a position, so a turn takes λ = 2π × 10000^({2 * pair}/{d}) = **{size(turns[pair])}** positions. "
            f"At position 1 it holds sin {angle} = {sine} and cos {angle} = {cosine}.  \n"
            f"**Fast and slow.** The first pair turns in 2π = {size(turns[0])} positions and tells neighbours apart; the last takes {size(turns[-1])}: over these {n} positions it turns by {size(360 * (n - 1) / turns[-1])}° in all."
        )
    if what == "sinusoids":
        own_table(model, text)
    tables(
        (
            "Table",
            ("Positional encoding", *about),
            lambda: numbers.table_columns(numbers.table(n, d)),
        ),
        ("Pair", (title, *about), lambda: numbers.wave_columns(numbers.wave(n, d, pair))),
        file=f"positions-{n}x{d}",
    )


def own_table(model: str, text: str) -> None:
    """That the model adds this table, measured."""
    off = numbers.off_formula(own_positions(model, text)[1])
    other = " Choose minilm above to see such a table." if "minilm" in models.cards() else ""
    st.info(
        f"**{model} adds exactly this**, computed and not learned: what it added to your text differs from the formula by at most {power(off)} (single precision). "
        f"BERT and GPT-2 learn their table instead, one free vector for each position and none beyond the last.{other}"
    )


def learned_distance(model: str, text: str) -> None:
    """p_i . p_j of a learned table: no law, and how much of it the distance tells."""
    rows = learned_rows(model, text)
    n, longer = len(rows), numbers.first_stands_out(rows)
    first = int(longer is not None and n > 2)

    def shown():
        return learned(model, text)[first:n]

    found, some = numbers.by_distance(shown()), min(n - first, MOST_GRAM)
    about = (*learned_about(model, text, n), *(("Position 0 left out",) if first else ()))
    title = ("pᵢ · pⱼ against distance", *about)
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        plot(
            draw.by_distance(found.mean, found.low, found.high, title),
            "products",
            title[0],
            f"positions-products-{model}",
        )
    with right:
        words = f"pᵢ · pⱼ of positions {first} to {first + some - 1}"
        plot(
            draw.gram(numbers.gram(shown(), some), (words, *about), first),
            "gram",
            words,
            f"positions-gram-{some}-{model}",
        )
    left_out = (
        f"  \n**Position 0 is left out.** Its vector is {longer:.1f} times as long as the middle one, and its products would hide all others."
        if first
        else ""
    )
    st.markdown(
        f"**A learned table obeys no law of distance**: the sum of cosines does not apply, and pairs equally far apart have unlike products. At distance 1 they run from {found.low[1]:.3f} to {found.high[1]:.3f}.  \n"
        f"**How much distance tells here**: **{found.told:.0%}** of how the {(n - first) ** 2:,} products vary; for the paper’s sinusoids it is 100 %. Where the mean rises and falls evenly, training has found waves of its own.{left_out}"
    )
    tables(
        ("By distance", title, lambda: numbers.distance_columns(numbers.by_distance(shown()))),
        (
            "All pairs",
            (words, *about),
            lambda: numbers.table_columns(numbers.gram(shown(), some), "j =", first),
        ),
        file=f"positions-products-{model}",
    )


def distance(model: str, text: str) -> None:
    what, _ = own_positions(model, text)
    if what == "learned":
        learned_distance(model, text)
        return
    if what == "none":
        told_none(model)
    with row():
        n, d = sizes(model, text)
    encoding = numbers.table(n, d)
    found, about = numbers.products(encoding), formula_about(n, d)
    some = min(n, MOST_GRAM)
    first = f"first {some} positions" if some < n else f"{n} positions"
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        plot(
            draw.products(found.law, found.low, found.high, ("pᵢ · pⱼ against distance", *about)),
            "products",
            "pᵢ · pⱼ against distance",
            f"positions-products-{n}x{d}",
        )
    with right:
        plot(
            draw.gram(numbers.gram(encoding, some), (f"pᵢ · pⱼ of the {first}", *about)),
            "gram",
            f"pᵢ · pⱼ of the {first}, equal along every diagonal",
            f"positions-gram-{some}x{d}",
        )
    st.markdown(
        f"**Only the distance counts.** sin a sin b + cos a cos b = cos(a − b), so pᵢ · pⱼ is the sum of cos((i − j) / 10000^(2i/d)) over the {d // 2} pairs: every diagonal has one colour.  \n"
        f"**Measured** over all {n * n:,} products: the largest deviation from that sum is **{power(found.deviation)}** (double precision). At distance 0 it is d/2 = {found.law[0]:,.0f}"
        + (
            f", at distance 1 it is {found.law[1]:.3f} and at distance {n - 1} it is {found.law[-1]:.3f}."
            if n > 1
            else "."
        )
        + " It does not say which of the two comes first: |i − j|, not i − j."
    )
    tables(
        (
            "By distance",
            ("pᵢ · pⱼ against distance", *about),
            lambda: numbers.product_columns(numbers.products(numbers.table(n, d))),
        ),
        (
            "All pairs",
            (f"pᵢ · pⱼ of the {first}", *about),
            lambda: numbers.table_columns(numbers.gram(numbers.table(n, d), some), "j ="),
        ),
        file=f"positions-products-{n}x{d}",
    )


def told_learned_shift(model: str, text: str, by: int) -> None:
    """That the law of this screen is not the model's, and how far it misses there."""
    found = numbers.tried(learned(model, text), by)
    missed = (
        f" Tried on it all the same, the rotation by k = {by} misses the row {by} further on by {found.turned:.0%} of a row’s length on average; the row left as it is misses by {found.still:.0%}."
        if found
        else ""
    )
    st.info(
        f"**The rotation law does not apply to {model}**, whose table was learned.{missed} What follows is the paper’s formula itself."
    )


def shift(model: str, text: str) -> None:
    what, _ = own_positions(model, text)
    if what == "none":
        told_none(model)
    words = st.container()
    with row():
        n, d = sizes(model, text)
        pair = a_pair(d)
    with row():
        place = number("Position, pos", "place", 0, n - 1, min(3, n - 1))
        by = number("Shift, k", "shift", 0, n - 1, min(5, n - 1))
    if what == "learned":
        with words:
            told_learned_shift(model, text, by)
    wave, ahead, turn = (
        numbers.wave(min(n, MOST_ON_CIRCLE), d, pair),
        numbers.wave(2 * n, d, pair),
        numbers.turn(d, pair, by),
    )
    before, after = (
        (ahead.sine[place], ahead.cosine[place]),
        (ahead.sine[place + by], ahead.cosine[place + by]),
    )
    radians, degrees = numbers.turned_by(d, pair, by)
    about = (f"Pair {pair}: from position {place} to {place + by}", *formula_about(n, d))
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        plot(
            draw.circle(
                wave.sine,
                wave.cosine,
                before,
                after,
                numbers.drawn_arc(d, pair, place, by),
                (f"position {place}", f"position {place + by}"),
                about,
            ),
            "circle",
            f"Pair {pair} on the unit circle: position {place} turned by {radians:.3f} radians to {place + by}",
            f"positions-shift-{by}-pair-{pair}",
        )
    with right:
        st.markdown(
            f"**The same matrix moves every position by k = {by}.** It turns pair i = {pair} by k / 10000^(2i/d) = {by} / 10000^({2 * pair}/{d}) = **{fixed(radians, 4)}** radians "
            f"({degrees:,.1f}°), wherever one starts:"
        )
        ends = [fixed(float(each), 4) for each in after]
        parts = enough_for(
            [
                (ends[0], lambda a, b, c, d, x, y: a * x + b * y),
                (ends[1], lambda a, b, c, d, x, y: c * x + d * y),
            ],
            *map(float, (*turn.ravel(), *before)),
            least=4,
        )
        a, b, c, e, x, y, u, v = map(in_latex, (*parts, *ends))
        st.latex(
            rf"\underbrace{{\begin{{pmatrix}} {a} & {b} \\ {c} & {e} \end{{pmatrix}}}}_{{R_{{{by}}}}}"
            rf"\underbrace{{\begin{{pmatrix}} {x} \\ {y} \end{{pmatrix}}}}_{{PE({place})}}"
            rf"= \underbrace{{\begin{{pmatrix}} {u} \\ {v} \end{{pmatrix}}}}_{{PE({place + by})}}"
        )
        st.markdown(
            f"Over all {d // 2} pairs and all {n} positions the turned encoding and the encoding {by} further on differ by at most **{power(numbers.shift_error(n, d, by))}** (double precision). "
            "Because R depends on k and not on pos, a head can look a fixed number of tokens back with one linear map. The fastest pair turns most, the slowest hardly at all: try the ends of the slider."
        )
    some = min(n, MOST_ON_CIRCLE)
    tables(
        ("Pair", about, lambda: numbers.circle_columns(numbers.wave(some, d, pair), by, d, pair)),
        file=f"positions-shift-{by}-pair-{pair}",
    )


def formula_about(n: int, d: int) -> tuple[str, ...]:
    return (
        f"Headlight · sinusoids of the paper, d_model {d}, positions 0 to {n - 1} · the formula itself, no model and no text",
    )


# ---- the model on this sentence -------------------------------------------------------------------------------------------


def chosen_stream(recording: Recording) -> str:
    """The stream on screen; asked for where there are two."""
    names = tuple(stream.name for stream in recording.streams)
    return st.session_state.stream if st.session_state.stream in names else names[0]


def a_stream(recording: Recording) -> str:
    names, shown = [stream.name for stream in recording.streams], chosen_stream(recording)
    if len(names) > 1:
        st.session_state["stream choice"] = shown
        st.segmented_control(
            "Stream",
            names,
            key="stream choice",
            required=True,
            on_change=take_stream,
            help="The encoder reads the source, the decoder the translation: each adds positions of its own.",
        )
    return shown


def take_stream() -> None:
    st.session_state.stream = st.session_state["stream choice"]


def a_head(model: str, text: str, target: str | None, stream: str) -> tuple[int, int]:
    """The head, chosen; at first the one of layer 0 that positions move most."""
    card = models.handle(model).card
    layers, heads = card.n_layer, card.n_head
    layer, head = address.whole("layer", layers), address.whole("head", heads)
    if layer is None or head is None:
        layer, head = (
            0,
            shelf.kept(
                model,
                ("most positional", text, target, stream),
                lambda: numbers.most_positional(
                    *with_and_without(model, text, target=target), stream
                ),
            ),
        )
    pick_head((layers, heads), (layer, head))
    return layer, head


def target_of(model: str, text: str) -> str | None:
    """What the decoder of a translator reads in every pass that is compared: its translation of the text as it stands. None for other models."""
    recording = passes.record(model, text)
    return recording.target if recording.model.kind == "encoder-decoder" else None


def with_and_without(model: str, text: str, *, target: str | None) -> tuple[Recording, Recording]:
    """A text recorded with positions and without."""
    return passes.record(model, text, (), target), passes.record(
        model, text, taken_away(model), target
    )


def taken_away(model: str) -> tuple[WithoutPositions, ...]:
    """The edit that takes the positions away; none for a model that adds none."""
    added = shelf.kept(
        model,
        "adds positions",
        lambda: numbers.kind(passes.record(model, "Hi").streams[0]) != "none",
    )
    return (WithoutPositions(),) if added else ()


def caption_of(recording: Recording, stream: str, *more: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    return caption(recording, *more, of=f"stream {stream}")


def sentence(model: str, text: str) -> None:
    target = target_of(model, text)
    if own_positions(model, text)[0] == "none" and within(model):
        told_within(model)
        return
    try:
        plain, bare = with_and_without(model, text, target=target)
    except (
        ValueError
    ) as why:  # a model that runs in another's code may not let its positions be taken away
        st.info(
            f"{literal(str(why))}. This screen compares a model with and without its positions."
        )
        return
    shown = a_stream(plain)
    stream = plain.stream(shown)
    what = numbers.kind(stream)
    if what == "none":
        st.info(
            f"{model} adds nothing for positions, so there is nothing to show here. “Order” shows what that means for a sentence."
        )
        return
    names = models.word_vector(model), "encoding" if what == "sinusoids" else "position"
    added = numbers.added(stream)
    left, right = st.columns(2, gap="large")
    with left:
        about = (f"Length of the word’s vector and of the {names[1]}’s", *caption_of(plain, shown))
        plot(
            draw.lengths(added.word, added.encoding, added.both, stream.tokens, about, names),
            "lengths",
            about[0],
            f"positions-lengths-{model}",
        )
        told_lengths(added, stream, names, models.embedding_scale(model))
    with right:
        layer, head = a_head(model, text, target, shown)
        scores = numbers.by_offset(plain, bare, shown, layer, head)
        lines = (
            f"Mean score by distance, layer {layer}, head {head}",
            *caption_of(plain, shown, "Text tokens only; without: edit WithoutPositions"),
        )
        if len(scores.offset):
            plot(
                draw.by_offset(
                    scores.offset, scores.pairs, scores.together, scores.alone, scores.places, lines
                ),
                "offsets",
                lines[0],
                f"positions-scores-{model}-L{layer}H{head}",
            )
            told_scores(
                scores,
                layer,
                numbers.splits(stream),
                scaling(numbers.attention_of(plain, shown), layer),
            )
        else:
            st.info("There are no words here yet between which a distance could be measured.")
    tables(
        (
            "Lengths",
            about,
            lambda: numbers.added_columns(
                numbers.added(passes.record(model, text, (), target).stream(shown)),
                passes.record(model, text, (), target).stream(shown).tokens,
                names[0],
            ),
        ),
        (
            "Scores",
            lines,
            lambda: numbers.offset_columns(
                numbers.by_offset(*with_and_without(model, text, target=target), shown, layer, head)
            ),
        ),
        file=f"positions-sentence-{model}",
    )


def told_lengths(
    added: numbers.Added, stream: Stream, names: tuple[str, str], scale: float | None
) -> None:
    """The lengths in words. `scale`: by what the model multiplies its embeddings, None where that is not known."""
    shortest, longest = added.ends
    words = f"the tokens’ run from {added.word[shortest]:.2f} ({literal(stream.tokens[shortest])}) to {added.word[longest]:.2f} ({literal(stream.tokens[longest])})."
    if names[1] == "encoding":
        lengths = f"The encoding’s length is √(d/2) = {added.encoding[0]:.3f} at every position, since sin² + cos² = 1; {words}"
    else:
        lengths = f"The positions’ vectors, learned, have lengths from {added.encoding.min():.2f} to {added.encoding.max():.2f}; {words}"
    first = (
        ""
        if scale is None
        else f", here √{len(stream.at('embed')[0])} = {scale:.2f}"
        if scale != 1
        else ", with no factor √d before it"
    )
    without = (
        f" Without the factor √d they would run from {added.word[shortest] / scale:.2f} to {added.word[longest] / scale:.2f}, against {added.encoding.mean():.2f} for the position."
        if scale not in (None, 1)
        else ""
    )
    after = (
        " A LayerNorm then follows, which sets every sum’s length anew."
        if "embed.normed" in stream.sites
        else " Layer 0 reads it through a LayerNorm."
        if "0.attn.read" in stream.sites
        else ""
    )
    st.markdown(
        f"**What is added up** is {names[0]} + {names[1]}{first}. {lengths}{without}{after}"
    )


def told_scores(scores: numbers.ByOffset, layer: int, splits: bool, scaled: str) -> None:
    """The scores by distance in words. `scaled`: what follows q · k, such as " / √32"."""
    spread, bare_spread = scores.spread
    best = f"{scores.best:+d}".replace("-", "−") if scores.best else "0"
    split = (
        " In layer 0 the query is W_Q(word + position), so a score falls into four parts; the dotted line is the part that is position × position, exact from the two passes."
        if layer == 0 and splits
        else " Between the sum and layer 0 stands a LayerNorm, which mixes words and positions, so that no part is position alone."
        if layer == 0
        else " Above layer 0 words and positions are mixed, so that no part is position alone."
    )
    st.markdown(
        f"**Scores q · k{scaled} by distance**, key minus query, averaged over the pairs of words that far apart. With positions they vary by {spread:.2f} (standard deviation over distances) and are highest at "
        f"**{best}**; without, by {bare_spread:.2f}: what is left comes from which words happen to stand there."
        + split
        + " Far distances have few pairs, so the ends wobble."
    )


# ---- another order --------------------------------------------------------------------------------------------------------


def order(model: str, text: str) -> None:
    target = target_of(model, text)
    base = passes.record(model, text, (), target)
    if base.streams[0].special.all():
        st.info("There are no words yet to put in another order.")
        return
    if numbers.kind(base.stream(chosen_stream(base))) == "none":
        if within(model):
            told_within(model)
            return
        st.info(
            f"{model} adds nothing for positions, so its run with them and its run without are one and the same."
        )
    edits, other_text = another_order(text, numbers.turned_round(numbers.read_part(base)))
    shown = a_stream(base)
    asked = (model, text, other_text, edits, target, shown)
    try:
        with st.spinner("Reading the words in both orders …"):
            found = orders_of(asked)
    except ValueError as why:  # as in `sentence`
        st.info(
            f"{literal(str(why))}. This screen compares a model with and without its positions."
        )
        return
    if found.dropped:
        size = base.model.n_positions
        st.warning(
            f"The other order is {found.dropped + size:,} tokens; {model} reads {size}. Its last {found.dropped:,} are left out."
        )
    pairs, with_, without = found.pairs, found.with_, found.without
    st.markdown(
        f"**This order:** {told_tokens(base.streams[0].tokens)}  \n**The other:** {told_tokens(found.read)}"
    )
    if found.read == base.streams[0].tokens:
        st.info(
            "The other order is the same as this one. Try another shuffle, or type other words."
        )
    else:
        results(base, shown, pairs, with_, without)
    about = caption_of(base, shown, f"Other order: {' '.join(found.read)}")
    left, right = st.columns(2, gap="large")
    with left:
        title = ("Largest difference of the same word’s vectors", *about)
        plot(
            draw.differences(
                with_.site, with_.to_draw(with_.site), without.to_draw(with_.site), title
            ),
            "differences",
            title[0],
            f"positions-order-{model}",
        )
        st.caption(
            "A point for each state on the way through the layers; a difference of exactly 0 has no place on a log scale."
        )
    with right:
        columns = numbers.word_columns(found)
        st.markdown("**Word by word**, the last layer’s vectors")
        st.dataframe(
            columns,
            hide_index=True,
            height=min(420, 38 + 35 * max(1, len(pairs.here))),
            column_config={"cosine, with": st.column_config.NumberColumn(format="%.4f")},
            alt="How far each word’s last vectors agree in the two orders",
        )
        st.caption(
            "Digits: −log₁₀(largest difference / largest number). Single precision holds about 7, and every layer’s rounding takes a little."
        )
    head_maps(asked, found, about)
    layer, head = st.session_state["layer shown"], st.session_state["head shown"]
    bare = st.session_state.positions == "Without"
    tables(
        ("Words", ("The same words in two orders", *about), lambda: order_columns(asked)),
        ("Sites", ("Largest difference by site", *about), lambda: site_columns(asked)),
        (
            "Maps",
            (f"Layer {layer}, head {head}, {st.session_state.positions.lower()} positions", *about),
            lambda: map_columns(asked, layer, head, bare),
        ),
        file=f"positions-order-{model}",
    )


def another_order(text: str, turned: str) -> tuple[tuple[ShuffleTokens, ...], str]:
    """The other order, chosen: an edit that shuffles the tokens, or a text typed anew, at first `turned`."""
    left, right = st.columns([1, 2.4], vertical_alignment="bottom")
    how = left.segmented_control(
        "Other order", ORDERS, key="order", required=True, persist_state="session"
    )
    if how == "Shuffle":
        with right:
            seed = number(
                "Shuffle",
                "shuffle",
                0,
                SHUFFLES - 1,
                1,
                help="A seed: each number is another order, always the same one. Special tokens stay where they are.",
            )
        return (ShuffleTokens(seed),), text
    right.text_input(
        "The same words in another order",
        key="retyped",
        live="300ms",
        persist_state="session",
        placeholder=f"Empty: from last to first: {turned[:80]}",
    )
    return (), st.session_state.retyped if st.session_state.retyped.strip() else turned


def told_tokens(tokens: Sequence[str]) -> str:
    more = (
        f" … and {len(tokens) - MOST_TOKENS_TOLD:,} more" if len(tokens) > MOST_TOKENS_TOLD else ""
    )
    return " · ".join(map(literal, tokens[:MOST_TOKENS_TOLD])) + more


def results(
    here: Recording,
    shown: str,
    pairs: numbers.Matched,
    with_: numbers.Agreement,
    without: numbers.Agreement,
) -> None:
    """Both numbers, large, and one sentence that says what they mean."""
    if not len(pairs.here):
        st.warning("The two texts have no token in common, so nothing can be compared.")
        return
    n, d = len(pairs.here), here.model.d_model
    left, right = st.columns(2)
    for column, name, found in (
        (left, "Without positions", without),
        (right, "With positions", with_),
    ):
        column.metric(f"{name}, vectors agree to", digits_told(found.common_digits), border=True)
        column.markdown(
            f"largest difference **{power(found.difference)}** over {n} tokens × {d} numbers"
        )
    st.markdown(meaning(here, shown, pairs, without))


def digits_told(value: float) -> str:
    return (
        "every digit"
        if isinf(value)
        else "no digit"
        if value < 1
        else "1 digit"
        if value < 2
        else f"{floor(value)} digits"
    )


def meaning(here: Recording, shown: str, pairs: numbers.Matched, without: numbers.Agreement) -> str:
    """What the comparison without positions shows, in a sentence computed from it."""
    lost = [here.stream(shown).tokens[place] for place in pairs.alone_here]
    partners = f" No partner in the other order: {told_tokens(lost)}." if lost else ""
    causal = not numbers.attention_of(here, shown).allowed.all()
    across = shown == "decoder" and len(here.streams) > 1
    if without.common_digits >= SAME_DIGITS:
        if across:
            return (
                "The source is in another order, the target is kept. **Without positions the decoder cannot tell**: cross-attention is a sum over the source, whatever its order."
                + partners
            )
        return (
            "**Without positions every word has the same vector in both orders**: the layers are permutation-equivariant. Reorder the input and the output is reordered with it, nothing else; "
            "only the encoding tells which word stands where." + partners
        )
    if lost or pairs.alone_there:
        return f"**The two orders do not hold the same tokens**, so more than the order differs, and vectors may differ even without positions.{partners} A capital letter makes another token."
    if causal and not across:
        return (
            "**Even without positions the vectors differ.** The causal mask tells the order by itself: a token sees those before it and no others, so another order gives it other tokens to look at. "
            "For an equivariant model choose an encoder."
        )
    return "Even without positions the vectors differ by more than rounding."


def head_maps(asked: Asked, orders: numbers.Orders, about: Sequence[str]) -> None:
    """One head's weights in both orders, side by side."""
    model, text, *_, target, shown = asked
    left, right = st.columns([1, 1], vertical_alignment="bottom")
    with left:
        layer, head = a_head(model, text, target, shown)
    positions = right.segmented_control(
        "Positions", POSITIONS, key="positions", required=True, persist_state="session"
    )
    if not len(orders.pairs.here):
        return
    found = maps_of(asked, layer, head, positions == "Without")
    tokens = [orders.tokens[place] for place in orders.pairs.here]
    words = f"Layer {layer}, head {head}, {positions.lower()} positions"
    for column, matrix, title in zip(
        st.columns(2, gap="large"),
        (found.here, found.there),
        ("This order", "The other order, matched by word"),
    ):
        with column:
            plot(
                draw.weights(matrix, tokens, found.top, (title, words, *about)),
                title,
                f"{title}: {words}",
                f"positions-map-L{layer}H{head}-{title.split(',')[0].replace(' ', '-').lower()}",
            )
    st.markdown(
        f"Rows and columns of the second map are put in the first one’s order. The largest difference of a weight in this head: **{power(found.gap)}**; in any of the {found.n_heads} heads: **{power(found.largest)}**."
    )


Asked = tuple[
    str, str, str, tuple[ShuffleTokens, ...], str | None, str
]  # model, text, the other text, edits, target, stream: what the two orders are asked for by


def two_orders(asked: Asked, bare: bool) -> tuple[Recording, Recording]:
    """Both orders recorded, with positions or without."""
    model, text, other_text, edits, target, _ = asked
    away = taken_away(model) if bare else ()
    return passes.record(model, text, away, target), passes.record(
        model, other_text, (*edits, *away), target
    )


def orders_of(asked: Asked) -> numbers.Orders:
    """The comparison of two orders, kept as the few numbers that it is: the passes of a long text fill the memory."""

    def made() -> numbers.Orders:
        return numbers.orders(lambda bare: two_orders(asked, bare), asked[-1], bool(asked[3]))

    return shelf.kept(asked[0], ("orders", asked), made)


def maps_of(asked: Asked, layer: int, head: int, bare: bool) -> numbers.Maps:
    """One head's weights in both orders."""
    pairs = orders_of(asked).pairs

    def made() -> numbers.Maps:
        return numbers.both_maps(
            *(numbers.attention_of(each, asked[-1]) for each in two_orders(asked, bare)),
            layer,
            head,
            pairs,
        )

    return shelf.kept(
        asked[0],
        ("order maps", asked, layer, head, bare),
        made,
        lambda found: found.here.nbytes + found.there.nbytes,
    )


def map_columns(asked: Asked, layer: int, head: int, bare: bool) -> dict[str, Sequence]:
    maps, found = maps_of(asked, layer, head, bare), orders_of(asked)
    return numbers.map_columns(
        maps.here, maps.there, [found.tokens[place] for place in found.pairs.here]
    )


def order_columns(asked: Asked) -> dict[str, Sequence]:
    return numbers.order_columns(orders_of(asked))


def site_columns(asked: Asked) -> dict[str, Sequence]:
    found = orders_of(asked)
    return numbers.site_columns(found.with_, found.without)


# ---- adding or concatenating ----------------------------------------------------------------------------------------------


def positions_of(model: str, text: str):
    """The vectors of all positions that a model has, (position, d_model)."""
    card = passes.record(model, text).model
    return (
        learned(model, text)
        if own_positions(model, text)[0] == "learned"
        else numbers.table(card.n_positions, card.d_model)
    )


def overlap_of(model: str, text: str) -> numbers.Overlap:
    return shelf.derived(
        passes.record(model, text),
        ("overlap",),
        lambda: numbers.overlap(models.embeddings(model), positions_of(model, text)),
    )


def adding(model: str, text: str) -> None:
    card, what = passes.record(model, text).model, own_positions(model, text)[0]
    if what == "none":
        st.info(
            f"{model} adds nothing for positions, so there are none among its embeddings’ directions. Choose a model with positions above."
        )
        return
    if not models.offers(model).weights:
        st.info(
            f"{literal(model)} runs in its own code, which does not hand out the embeddings that this screen needs."
        )
        return
    found, room = overlap_of(model, text), numbers.room_needed(positions_of(model, text), HELD)
    r = found.most(EMBEDDED)
    share, chance = found.places[r], found.chance[r]
    about = (
        "The encoding within the embeddings’ directions",
        f"Headlight · model {model} (weights {card.fingerprint}) · all {card.n_vocab:,} embeddings, each about their mean; encoding of all {card.n_positions} positions, about its mean · no text",
    )
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        plot(
            draw.shares(found.words, found.places, found.chance, about),
            "shares",
            about[0],
            f"positions-overlap-{model}",
        )
    with right:
        verdict = (
            "less than chance: words and positions keep partly out of each other’s way, and a linear map can read one without much of the other"
            if share < 0.95 * chance
            else "more than chance: positions lie where the words are, and a linear map must tell them apart there"
            if share > 1.05 * chance
            else "about what chance gives: words and positions share the space without regard to each other"
        )
        st.markdown(
            f"**Measured in {model}.** {r} of {card.d_model} directions hold {EMBEDDED:.0%} of the embeddings’ variance. They hold **{share:.0%}** of what tells positions apart in the encoding; "
            f"{r} directions at random would hold {chance:.0%}. That is {verdict}.  \n"
            "**Adding** costs no width: x = e + p, and the query is W e + W p. One matrix reads both, so a position can be mistaken for a bit of meaning wherever the two overlap.  \n"
            "**Concatenating** keeps them apart: x = [e ; p], and the query is W₁ e + W₂ p, each with a matrix of its own. The price is width.  \n"
            "**Where the two subspaces are orthogonal, adding is as good as concatenating**: W can act on each as it likes, since no direction belongs to both. In many dimensions any two directions taken at random are nearly orthogonal.  \n"
            f"**The price here.** {room} dimensions hold {HELD:.0%} of the variation over {card.n_positions} positions. Concatenating as many would make the stream {card.d_model} + {room} = {card.d_model + room} wide, "
            f"and every matrix that reads it {room / card.d_model:.0%} larger; concatenating a whole table of {card.d_model}, twice as large."
        )
    st.caption(
        "This table was learned, so training could choose where it lies."
        if what == "learned"
        else "A learned table, such as BERT’s or GPT-2’s, may choose where it lies; the sinusoids lie where the formula puts them."
    )
    tables(
        ("Shares", about, lambda: numbers.overlap_columns(overlap_of(model, text))),
        file=f"positions-overlap-{model}",
    )


# ---- what all screens share -----------------------------------------------------------------------------------------------


def plot(figure, key: str, alt: str, file: str) -> None:
    options = {
        "displaylogo": False,
        "toImageButtonOptions": {"format": "svg", "filename": f"headlight-{file}"},
    }
    st.plotly_chart(figure, key=key, config=options, alt=alt)


def tables(*of: Table, file: str, key: str = "numbers") -> None:
    """The numbers behind every picture of a screen, as a table and as CSV."""
    with st.expander("Every number as a table"):
        names = [name for name, _, _ in of]
        chosen = (
            st.segmented_control(
                "Table",
                names,
                default=names[0],
                key=f"{key} of {names}",
                required=True,
                label_visibility="collapsed",
            )
            if len(names) > 1
            else names[0]
        )
        name, about, make = next(each for each in of if each[0] == chosen)
        columns = make()
        st.caption("  \n".join(map(literal, about)))
        show(columns, about[0], **formats(columns))
        csv_button(make, about, f"headlight-{file}-{name.lower().replace(' ', '-')}")


def formats(columns: dict[str, Sequence]) -> dict[str, str]:
    """How a table writes its numbers: differences as powers of ten, digits short, the rest in four places."""
    return {
        name: "%.2e" if "difference" in name else "%.1f"
        for name in columns
        if "difference" in name or "digits" in name
    }


def size(value: float) -> str:
    """A number in about four figures."""
    return power(value, 4)


for choice, options in (("ask", tuple(SCREENS)), ("order", ORDERS), ("positions", POSITIONS)):
    address.one_of(choice, options)
with st.spinner("Loading the model …"):
    on_screen = onscreen.shown()
explore(on_screen.model, st.session_state.text)
