"""The panels on positions: in a sentence, in another order of its words, and as an encoding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, lgamma
from typing import Annotated, Any

import numpy as np

from explorer.analysis import logit_lens, opening, positions
from explorer.analysis.consistency import scale_text
from explorer.analysis.predictions import without_mark
from explorer.analysis.terminology import recording_norm_name, sees_all
from explorer.analysis.words import words
from explorer.figures.formatting import (
    EXP_LIMIT,
    Written,
    enough_digits_for_all,
    fixed,
    percent,
    power,
    power_of_e,
    tenths,
)
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Chart,
    Matrix,
    Series,
    Stack,
    Strip,
    Strips,
    TextTable,
    TokenRow,
    truncation_note,
    window,
)
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.masks import can_hide
from explorer.panels.selection import (
    HEAD,
    LAYER,
    TOKEN,
    FirstStream,
    StreamSelection,
    Word,
    WordOrEvery,
    expect_place,
    model_name,
    place_of,
    predicted,
    select_stream,
    stream_of,
    token_read,
    why_here,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import HideToken, ShuffleTokens, WithoutPositions
from models.contract.recording import CONTINUES, Attention, Recording, Stream
from models.contract.results import softmax
from models.runtime.caching import loaded, memo
from models.runtime.run import Run

REFUSALS = sentences("positions", "refusals")

CONCEPT = "positions"
VARIES = 1.05  # so many times as much as without positions
N_ROWS = 16  # tokens that are listed one by one
N_WORDS = 40  # of another order that are written out
N_PAIRS = 128  # positions whose products are shown pair by pair
AFTER_SPACE = re.compile(r" ([.,;:!?])(?= |$)")  # of a text whose tokens stand apart
MOST_LETTERS = 240  # of an order that is written out
FACTOR = 1.5  # by which a chance changes before it is told, where it changes by few points
BLANK = "___"
N_CIRCLE = 64  # positions on the circle
ORDERS = ("Shuffled", "Typed")
SHUFFLES = range(1000)
SAME_DIGITS = 4  # vectors that agree to as many digits differ by no more than rounding
EMBEDDED, VARIATION = 0.9, 0.99  # shares of variance that the overlap is read at


class Incomparable(ValueError):
    """A text or a model whose scores cannot be compared with those without positions."""


@dataclass(frozen=True)
class PositionRuns:
    """A run with the model's positions and the same run without, in one of its streams. It holds
    names alone."""

    run: Run
    stream: str

    @property
    def plain(self) -> Recording:
        """The run as it is."""
        return self.run.recording()

    @property
    def adds(self) -> str:
        """Kind of positional encoding that the model adds, as of `encoding_kind`."""
        return positions.encoding_kind(self.plain.stream(self.stream))

    @property
    def has_vectors(self) -> bool:
        """True where the vectors of positions are states of the stream."""
        return self.adds in ("sinusoids", "learned")

    @property
    def within(self) -> str:
        """Kind of positions in the attention of a model that adds none, such as "rotary", "" where
        there are none."""
        return str(self.run.loaded.capabilities.positions or "")

    @property
    def model(self) -> str:
        """The model's name, as a sentence begins with it."""
        return model_name(self.plain)

    @property
    def norm(self) -> str:
        """Name of the model's norms, LayerNorm or RMSNorm."""
        return recording_norm_name(self.plain, self.run.loaded.capabilities.rms)

    @property
    def removal(self) -> tuple[WithoutPositions, ...]:
        """The edit that removes the positions; none for a model that has none."""
        capabilities = self.run.loaded.capabilities
        if self.within == "rotary" and WithoutPositions in capabilities.edits:
            return (WithoutPositions(),)
        added = self.run.loaded.memo(
            "adds positions",
            lambda: positions.encoding_kind(self.run.loaded.record("Hi").streams[0]) != "none",
        )
        return (WithoutPositions(),) if added else ()

    def pair(self, bare: bool, other: Run | None = None) -> tuple[Recording, Recording]:
        """The run and another one, both without positions where `bare`. A decoder reads the same
        target in both."""
        plain = self.plain
        target = plain.target if plain.model.kind == "encoder-decoder" else None
        away = self.removal if bare else ()
        one, two = (
            loaded(each.model)
            .record(each.text, (*each.edits, *away), target)
            .covering(each.covered)
            for each in (self.run, other or self.run)
        )
        return one, two

    def both(self) -> tuple[Recording, Recording]:
        """The run with positions and without. Raises ValueError where they cannot be removed."""
        return self.pair(False)[0], self.pair(True)[0]

    def expect_comparable(self) -> None:
        """Raises Incomparable for a model that cannot run without its positions."""
        words = sentences(CONCEPT, "shared")
        if self.adds == "none" and self.within and not self.removal:
            raise Incomparable(words("fixed", model=self.model, how=words(self.within)))
        try:
            self.both()
        except ValueError as why:
            raise Incomparable(words("refused", why=str(why).rstrip("."))) from None

    @property
    def own(self) -> Attention:
        """The attention of the stream to itself."""
        return positions.self_attention(self.plain, self.stream)

    @property
    def opens(self) -> bool:
        """True where the scores of the attention can be read."""
        return self.own.opens

    def head(self, layer: int | None, head: int | None) -> tuple[int, int]:
        """The head that is named, or the one of layer 0 that positions move most. Raises ValueError
        for one that is not there."""
        shape = self.own.pattern.shape
        if layer is None or head is None:
            self.expect_comparable()
            if not self.opens:
                return 0, 0
            return 0, self.run.loaded.memo(
                ("most positional", self),
                lambda: positions.most_positional_head(*self.both(), self.stream),
            )
        return place_of("layer", layer, shape[0]), place_of("head", head, shape[1])

    def table(self) -> np.ndarray:
        """The vectors of all positions that the model has, (position, d_model); of a learned table
        that it does not hand out, the rows of this text."""
        card = self.plain.model
        if self.adds != "learned":
            return positions.table(card.n_positions, card.d_model)
        learned = self.run.loaded.position_table()
        return self.plain.stream(self.stream).at("pos.wrote") if learned is None else learned


def _runs(run: Run, token: int, stream: str) -> tuple[StreamSelection, PositionRuns]:
    selection = select_stream(run, token, stream)
    return selection, PositionRuns(run, selection.stream.name)


def _positional(at: int) -> Callable[[Run, Mapping[str, Any]], int | None]:
    """The layer, 0, or the head, 1, that positions move most, None where the panel says why there
    is none."""

    def place(run: Run, chosen: Mapping[str, Any]) -> int | None:
        try:
            return PositionRuns(run, stream_of(run, chosen).name).head(None, None)[at]
        except ValueError:
            return None

    return place


def _own_place(name: str, axis: int) -> Callable[[Run, Mapping[str, Any], Any], int]:
    def checked(run: Run, chosen: Mapping[str, Any], value: Any) -> int:
        own = positions.self_attention(run.recording(), stream_of(run, chosen).name)
        return place_of(name, value, own.pattern.shape[axis])

    return checked


PositionalLayer = Annotated[
    int | None, replace(LAYER, suits=_positional(0), checked=_own_place("layer", 0))
]
PositionalHead = Annotated[
    int | None, replace(HEAD, suits=_positional(1), checked=_own_place("head", 1))
]


AnsweredWord = Annotated[
    int | None,
    replace(TOKEN, suits=lambda run, chosen: opening.answered(run.recording()), checked=token_read),
]


# ---- in a sentence -------------------------------------------------------------------------------


@spec.panel
def sentence(
    run: Run,
    token: Word = OPENS,
    layer: PositionalLayer = OPENS,
    head: PositionalHead = OPENS,
    stream: FirstStream = OPENS,
) -> Panel:
    """The norms of each token's word vector, position vector and their sum; one sum; and one head's
    scores by distance, where the model can run without its positions. Of a model that adds nothing,
    the scores alone.

    layer, head: the head of layer 0 that positions move most where left out. Raises ValueError for
    what is not there, and for a model that adds nothing and cannot run without its positions.
    """
    selection, runs = _runs(run, token, stream)
    words = sentences(CONCEPT, "sentence")
    if not runs.has_vectors:
        return _scores_alone(_scores(runs, layer, head))
    sums = positions.position_sum(selection.stream)
    name = run.loaded.word_vector()
    low, high = sums.ends
    tokens = selection.stream.tokens
    scale = run.loaded.embedding_scale()
    slots = {
        "norm": power(float(sums.encoding[0])),
        "least": power(float(sums.encoding.min())),
        "most": power(float(sums.encoding.max())),
        "low": power(float(sums.word[low])),
        "low_token": tokens[low],
        "high": power(float(sums.word[high])),
        "high_token": tokens[high],
    }
    details = [words("sinusoid_norm" if runs.adds == "sinusoids" else "learned_norm")]
    if scale == 1:
        details.append(words("unscaled"))
    elif scale is not None:
        unscaled = (f"{sums.word[each] / scale:.2f}" for each in (low, high))
        root, (first, last) = f"√{round(scale**2)} = {scale:.2f}", tuple(unscaled)
        details.append(words("scaled", root=root, first=first, last=last))
    if reader := positions.sum_reader(selection.stream):
        details.append(words(f"then_{reader}", norm=runs.norm))
    finding = words("finding" if runs.adds == "sinusoids" else "finding_learned", **slots)
    beside: list[Strips | Chart] = [_sum(selection, sums)]
    try:
        by_distance = _scores(runs, layer, head)
    except Incomparable as why:
        details.append(str(why))
    else:
        finding += f" {by_distance.finding}"
        beside.append(by_distance.chart)
        details.append(_score_parts(selection, runs, by_distance.layer))
    return Panel(
        title=words("title"),
        finding=finding,
        figures=(_norms(selection, sums), Stack(figures=tuple(beside), main=len(beside) - 1)),
        table={
            "position": np.arange(len(tokens)),
            "token": list(tokens),
            name: sums.word,
            "encoding": sums.encoding,
            "sum": sums.both,
            "cosine": sums.cosine,
        },
        details=tuple(details),
        caption=(words("caption", word=name),),
        file="positions-sentence",
        numbers={
            "width": Written.count(run.recording().model.d_model),
            "position_norm": Written.by(power, sums.encoding[selection.token]),
        },
        formulas=("embedding",),
    )


def _norms(selection: StreamSelection, sums: positions.PositionSum) -> Bars:
    """The norms of the tokens around the selected one."""
    words = sentences(CONCEPT, "sentence")
    tokens = selection.stream.tokens
    visible = window(len(tokens), (selection.token,), N_ROWS)
    parts = dict(zip(words.lines("parts"), (sums.word, sums.encoding, sums.both)))
    note = truncation_note(len(visible), len(tokens))
    if len({power(float(norm)) for norm in sums.encoding}) == 1:  # bars of one length say nothing
        del parts[words.lines("parts")[1]]
        note = " ".join(filter(None, (words("alike", norm=power(float(sums.encoding[0]))), note)))
    return Bars(
        title=words("norms"),
        note=note,
        select=("token",),
        columns=tuple(parts),
        rows=tuple(
            BarRow(
                f"{at} {tokens[at]}",
                tuple(float(part[at]) for part in parts.values()),
                tuple(fixed(float(part[at])) for part in parts.values()),
                selected=at == selection.token,
                key=str(at),
            )
            for at in visible.tolist()
        ),
        shared=True,
    )


def _sum(selection: StreamSelection, sums: positions.PositionSum) -> Strips:
    """The selected token's sum: word + position = input."""
    words = sentences(CONCEPT, "sentence")
    token = selection.token
    vectors = [
        selection.stream.at(site)[token].astype(np.float64)
        for site in ("embed", "pos.wrote", "embed+pos")
    ]
    signs = ("", "+", "=")
    return Strips(
        title=words("sum", token=selection.word, position=token),
        note=words("cosine", cosine=fixed(float(sums.cosine[token]))),
        strips=tuple(
            Strip(label, vector, words("norm", norm=power(float(np.linalg.norm(vector)))), sign)
            for label, vector, sign in zip(words.lines("parts"), vectors, signs)
        ),
        high=float(np.quantile(np.abs(vectors), 0.98)) or 1.0,
    )


@dataclass(frozen=True, eq=False)
class DistanceScores:
    """One head's mean scores by distance, with positions and without."""

    layer: int
    head: int
    by_offset: positions.ByOffset
    scaled: str

    @property
    def finding(self) -> str:
        """Sentence on the offset with the highest mean score, and how many times as much the mean
        scores vary over the offsets with positions as without."""
        words = sentences(CONCEPT, "scores")
        best = self.by_offset.best
        near = {0: "where_self", -1: "where_before", 1: "where_after"}
        far = "where_back" if best < 0 else "where_ahead"
        spread, bare = self.by_offset.spread
        times = fixed(spread / bare, 1) if bare else "∞"
        return words(
            "finding" if spread >= VARIES * bare else "finding_less",
            layer=self.layer,
            head=self.head,
            where=words(near.get(best, far), n=abs(best)),
            times=times,
        )

    @property
    def chart(self) -> Chart:
        """The scores as curves."""
        words = sentences(CONCEPT, "scores")
        return Chart(
            title=words("chart", layer=self.layer, head=self.head),
            series=tuple(
                Series(name, self.by_offset.offset.astype(float), values, main=each == 0)
                for each, (name, values) in enumerate(self.by_offset.lines)
            ),
            x_title=words("x"),
            y_title=words("y", scale=self.scaled),
            guides=((0.0, ""),),
        )


def _scores(runs: PositionRuns, layer: int | None, head: int | None) -> DistanceScores:
    """The scores of a head. Raises Incomparable where there is nothing to compare."""
    words = sentences(CONCEPT, "scores")
    runs.expect_comparable()
    if not runs.removal:
        raise Incomparable(words("none", model=runs.model))
    at = runs.head(layer, head)
    plain, bare = runs.both()
    if not positions.self_attention(plain, runs.stream).opens:
        raise Incomparable(words("closed", model=runs.model))
    by_offset = positions.by_offset(plain, bare, runs.stream, *at)
    if not len(by_offset.offset):
        raise Incomparable(words("too_short"))
    scaled = scale_text(positions.self_attention(plain, runs.stream), at[0])
    return DistanceScores(*at, by_offset, scaled)


def _score_parts(selection: StreamSelection, runs: PositionRuns, layer: int) -> str:
    """Sentence on the part of the scores that is position alone."""
    words = sentences(CONCEPT, "scores")
    if layer:
        return words("mixed")
    is_normed = positions.sum_reader(selection.stream)
    return words("normed", norm=runs.norm) if is_normed else words("separable")


def _scores_alone(by_distance: DistanceScores) -> Panel:
    """The scores of a model that rotates its queries and keys."""
    words = sentences(CONCEPT, "scores")
    layer, head, scores = by_distance.layer, by_distance.head, by_distance.by_offset
    return Panel(
        title=words("title"),
        finding=by_distance.finding,
        figures=(by_distance.chart,),
        table={"key − query": scores.offset, "pairs": scores.pairs} | dict(scores.lines),
        details=words.lines("details"),
        caption=(words("caption", layer=layer, head=head),),
        file=f"positions-scores-L{layer}H{head}",
    )


# ---- another order -------------------------------------------------------------------------------


@dataclass(frozen=True)
class OrderRuns:
    """A run and the same words in another order: tokens shuffled by `seed`, or the text `typed`."""

    runs: PositionRuns
    seed: int
    typed: str

    @property
    def other(self) -> Run:
        """The run in the other order."""
        run = self.runs.run
        if self.typed:
            return replace(run, text=self.typed, covered=None)
        moved, recording = ShuffleTokens(self.seed), self.runs.plain
        place = run.covered
        if place is not None and recording.model.kind == "encoder":  # its word is elsewhere there
            order = moved.order(recording.streams[0].special.tolist())
            place = int(np.flatnonzero(order == place)[0])
        return replace(run, edits=(*run.edits, moved), covered=place)

    def compared(self) -> positions.OrderComparison:
        """The comparison, kept as the few numbers that it is."""
        return self.runs.run.loaded.memo(
            ("orders", self),
            lambda: positions.compare_orders(
                lambda bare: self.runs.pair(bare, self.other), self.runs.stream, not self.typed
            ),
        )

    def weights(self, layer: int, head: int) -> positions.MatchedWeights:
        """One head's weights without positions, in both orders."""

        def both_orders() -> positions.MatchedWeights:
            one, other = (
                positions.self_attention(each, self.runs.stream)
                for each in self.runs.pair(True, self.other)
            )
            return positions.head_in_both_orders(one, other, layer, head, self.compared().pairs)

        return self.runs.run.loaded.memo(("order maps", self, layer, head), both_orders)


def _is_typed(run: Run, chosen: Mapping[str, Any]) -> bool:
    return bool(chosen.get("kind") == "Typed")


def _is_shuffled(run: Run, chosen: Mapping[str, Any]) -> bool:
    return not _is_typed(run, chosen)


def reversed_text(run: Run, chosen: Mapping[str, Any]) -> str:
    """The words of a run from last to first."""
    return positions.reverse_words(positions.read_part(run.recording()))


def _orders(run: Run, kind: str, seed: int, typed: str, stream: str) -> OrderRuns:
    """Both orders of a run. Raises ValueError for a text without words, for one that shares no
    token with the other, and for a model that cannot run without its positions."""
    _, runs = _runs(run, 0, stream)
    words = sentences(CONCEPT, "order")
    if runs.plain.streams[0].special.all():
        raise ValueError(words("no_words"))
    if typed and kind != "Typed":
        raise ValueError(REFUSALS("shuffled"))
    runs.expect_comparable()
    if kind == "Typed":
        typed = typed.strip() or reversed_text(run, {})
    orders = OrderRuns(runs, seed, typed)
    if not len(orders.compared().pairs.here):
        raise ValueError(words("no_common"))
    return orders


@dataclass(frozen=True)
class ReadInOrder:
    """The words as they are read in one order, and the probability of the answer there."""

    words: str
    probability: float


def _answer_in_orders(run: Run, token: int) -> tuple[str, tuple[ReadInOrder, ...]]:
    """The likeliest word at a token, which is hidden from a model that fills in words; its
    probability in the typed order and in others (`positions.other_orders`): at the same word, of a
    next word at the end, of a translation at its beginning. Raises ValueError where there is no
    other order."""
    recording = run.recording()
    first, read = recording.streams[0], logit_lens.read_stream(recording)
    if (~first.special).sum() < 2:
        raise ValueError(sentences(CONCEPT, "order")("no_words"))
    is_hidden = can_hide(recording) and not first.special[token]
    is_at_word = is_hidden or (read is first and not logit_lens.predicts_next(recording))
    grouped = words(first, recording.text)
    is_here = read is first
    is_causal = is_here and not is_at_word
    moves = positions.other_orders(first, grouped, token if is_here else -1, is_causal)
    if not moves:
        is_early = is_causal and bool(positions.other_orders(first, grouped, -1))
        slots = {"word": grouped.labels[grouped.of[token]]}
        raise ValueError(sentences(CONCEPT, "answer")("early" if is_early else "no_order", **slots))
    id, found = -1, list[ReadInOrder]()
    for moved in ((), *((each,) for each in moves)):
        place = positions.place_in(moved[0], first, token) if moved and is_here else token
        hidden = (HideToken(place),) if is_hidden else ()
        there = replace(run, edits=(*moved, *run.edits, *hidden)).recording()
        p = softmax(loaded(there).logits(there, read.name, place))
        id = id if moved else int(p.argmax())
        order = moved[0].order(first.special.tolist()) if moved else np.arange(len(first.tokens))
        groups = [int(grouped.of[at]) for at in order if at in grouped.starts]
        labels = [grouped.labels[at] for at in groups]
        special = np.array([grouped.special[at] for at in groups])
        middle = groups.index(grouped.of[token]) if is_here else len(labels) - 1
        if is_hidden:
            start, size = grouped.span(grouped.of[token])
            pieces = list(first.tokens[start : start + size])
            pieces[token - start] = BLANK
            labels[middle] = "".join(piece.removeprefix(CONTINUES) for piece in pieces)
        found.append(ReadInOrder(_written(labels, special, middle), float(p[id])))
    (answer,) = loaded(recording).labels([id])
    return without_mark(answer, after_special=True), tuple(found)


def _written(labels: Sequence[str], special: np.ndarray, middle: int) -> str:
    """The words of a text around a place with spaces between, and a sign where others are left out:
    as many as fit into a line."""
    every = np.flatnonzero(~special)
    for n in range(len(labels), 0, -1):
        kept = window(len(labels), (middle,), n)
        text = kept[~special[kept]]
        before, after = (at != end for at, end in ((text[0], every[0]), (text[-1], every[-1])))
        written = ["…"] * int(before) + [labels[at] for at in text] + ["…"] * int(after)
        line = AFTER_SPACE.sub(r"\1", " ".join(written))
        if len(line) <= MOST_LETTERS:
            return line
    return "…"


@spec.predicts
@spec.panel
def answer(run: Run, token: AnsweredWord = OPENS, stream: FirstStream = OPENS) -> Panel:
    """Change of a prediction when the words come in another order: its probability in the
    typed order and in up to five others, in which the hidden word and the last one keep their
    places. Of a model that predicts no word, what becomes of the vectors, as `order` shows it.

    token: the hidden word, of a model that goes on the one before what it guesses, of a translation
    its beginning. Raises ValueError for a text of one word.
    """
    if run.loaded.capabilities.no_readout:
        return _vectors(run, (None, None), OrderChoice(), stream)
    words, on = sentences(CONCEPT, "answer"), predicted(run, token)
    said, read = memo(
        run.recording(),
        ("answer in orders", on.token),
        lambda: _answer_in_orders(run, on.token),
    )
    typed, *others = read
    middle = positions.median([each.probability for each in others])
    median = others[middle].probability
    slots = {
        "answer": said,
        "n": len(others),
        "before": tenths(typed.probability),
        "after": tenths(median),
    }
    rows = [(words("typed", words=typed.words), typed.probability, False)]
    rows += [(each.words, each.probability, at == middle) for at, each in enumerate(others)]
    ends = sorted(each.probability for each in others)
    says = words(_change(typed.probability, median), **slots)
    if len(others) > 1:
        slots |= {"low": tenths(ends[0]), "high": tenths(ends[-1])}
        says = f"{says} {words('middle', **slots)}"
    return Panel(
        title=words("title"),
        finding=says + why_here(on),
        figures=(
            Bars(
                title=words("bars", **slots),
                note=words("stay"),
                columns=(words("probability", **slots),),
                rows=tuple(
                    BarRow(
                        label,
                        (p,),
                        (tenths(p),),
                        selected=is_median,
                        outline=typed.probability if at else None,
                    )
                    for at, (label, p, is_median) in enumerate(rows)
                ),
                wraps=True,
            ),
        ),
        table={
            "order": [label for label, *_ in rows],
            "probability": [p for _, p, _ in rows],
        },
        details=words.lines("details"),
        caption=(words("caption", **slots),),
        file="positions-answer",
        at={"token": on.token},
    )


def _change(before: float, after: float) -> str:
    """Sentence on a probability that becomes another: that there is no clear guess where both
    are small, that it hardly changes where it does neither by points nor by a factor."""
    if max(before, after) < opening.LEADS:
        return "unclear"
    if abs(after - before) < opening.TURNS and max(before, after) < FACTOR * min(before, after):
        return "hardly"
    return "rises" if after > before else "falls"


@dataclass(frozen=True)
class OrderChoice:
    """Another order as it is chosen: its kind, the seed of a shuffle, and a typed text."""

    kind: str = "Shuffled"
    seed: int = 1
    typed: str = ""


@spec.panel
def order(
    run: Run,
    layer: PositionalLayer = OPENS,
    head: PositionalHead = OPENS,
    kind: Annotated[str, Choice(ORDERS, "Other order", name="order", menu=True)] = "Shuffled",
    seed: Annotated[int, Choice(SHUFFLES, "Shuffle", name="shuffle", when=_is_shuffled)] = 1,
    typed: Annotated[
        str,
        Choice(
            label="The same words in another order",
            name="retyped",
            of="text",
            suits=reversed_text,
            when=_is_typed,
        ),
    ] = "",
    stream: FirstStream = OPENS,
) -> Panel:
    """Change of each word's vector when the words come in another order, with positions and
    without; and one head's weights without positions in both orders, matched by word.

    layer, head: as in `sentence`. kind: "Shuffled", by a seed, or "Typed". typed: the other order
    as a text, from last to first where "". Raises ValueError for texts and models that cannot be
    compared.
    """
    return _vectors(run, (layer, head), OrderChoice(kind, seed, typed), stream)


def _vectors(
    run: Run, head: tuple[int | None, int | None], other: OrderChoice, stream: str
) -> Panel:
    """The panel of `order`. head: (layer, head)."""
    orders = _orders(run, other.kind, other.seed, other.typed, stream)
    at = orders.runs.head(*head)
    words = sentences(CONCEPT, "order")
    comparison, runs = orders.compared(), orders.runs
    tokens = [comparison.tokens[place] for place in comparison.pairs.here]
    visible = window(len(tokens), (int(comparison.with_.by_token.argmax()),), N_ROWS).tolist()
    parts = (comparison.with_.by_token, comparison.without.by_token)
    bars = Bars(
        title=words("bars"),
        note=truncation_note(len(visible), len(tokens)),
        columns=words.lines("columns"),
        rows=tuple(
            BarRow(
                f"{comparison.pairs.here[at]} → {comparison.pairs.there[at]} {tokens[at]}",
                tuple(float(part[at]) for part in parts),
                tuple(power(float(part[at]), 2) for part in parts),
            )
            for at in visible
        ),
        shared=True,
    )
    lost = [comparison.tokens[place] for place in comparison.pairs.unmatched_first]
    details = [
        words("this", tokens=_quoted(comparison.tokens)),
        words("other", tokens=_quoted(comparison.read)),
        *words.lines("details"),
    ]
    if not runs.removal:
        details.append(words("no_positions", model=runs.model))
    if lost:
        details.append(words("unmatched", tokens=_quoted(lost)))
    if comparison.dropped:
        size = runs.plain.model.n_positions
        details.append(words("cut", dropped=f"{comparison.dropped:,}", size=size, model=runs.model))
    return Panel(
        title=words("title"),
        finding=_order_finding(runs, comparison),
        figures=(
            Stack(figures=(_other_order(runs, comparison), bars), main=1),
            *_both_weights(orders, at, tuple(tokens), is_chosen=None not in head),
        ),
        table=positions.order_columns(comparison),
        details=tuple(details),
        caption=(
            words("caption", layer=at[0], head=at[1]),
            words("other", tokens=_quoted(comparison.read)),
        ),
        file=f"positions-order-L{at[0]}H{at[1]}",
        formulas=("permutation",),
        numbers={"orders": _n_orders(runs.plain.stream(runs.stream))},
        at={
            "run": run.under((*run.edits, *runs.removal)),
            **{"layer": at[0], "head": at[1], "attention": runs.own.name},
        },
    )


def _n_orders(stream: Stream) -> Written:
    """In how many orders a text's tokens can stand."""
    log = lgamma(int((~stream.special).sum()) + 1)
    return Written(exp(log) if log < EXP_LIMIT else inf, power_of_e(log, 2))


def _both_weights(
    orders: OrderRuns, at: tuple[int, int], tokens: tuple[str, ...], is_chosen: bool
) -> Iterator[Matrix]:
    """The weights of the head (layer, head) without positions, in this order and in the other; why
    this head is shown where nobody chose it."""
    words = sentences(CONCEPT, "order")
    maps = orders.weights(*at)
    titles = words("weights", layer=at[0], head=at[1]), words("other_weights")
    gaps = words("gap", gap=power(maps.gap, 2), largest=power(maps.largest, 2), heads=maps.n_heads)
    opens = "" if is_chosen or not orders.runs.opens else words("opens_on", head=at[1])
    for title, note, values in zip(titles, (opens, gaps), (maps.here, maps.there)):
        yield Matrix(
            title=title,
            note=note,
            rows=tokens,
            columns=tokens,
            values=values,
            high=maps.top or 1.0,
            sides=("query", "key"),
        )


def _other_order(runs: PositionRuns, comparison: positions.OrderComparison) -> TokenRow:
    """The words in the other order, tinted by how far their vectors change with positions; those of
    a source that a decoder attends to without a tint."""
    words = sentences(CONCEPT, "order")
    is_tinted = runs.stream == runs.plain.streams[0].name
    change = np.full(len(comparison.read), np.nan)
    if is_tinted:
        change[comparison.pairs.there] = comparison.with_.by_token / (
            comparison.with_.difference or 1.0
        )
    visible = min(len(comparison.read), N_WORDS)
    return TokenRow(
        title=words("tinted_order" if is_tinted else "other_order"),
        note=truncation_note(visible, len(comparison.read)),
        tokens=comparison.read[:visible],
        weights=change[:visible],
    )


def _quoted(tokens: Sequence[str]) -> str:
    """Tokens in a row, the first ones of many."""
    more = f" … (+{len(tokens) - N_WORDS:,})" if len(tokens) > N_WORDS else ""
    return " ".join(tokens[:N_WORDS]) + more


def _order_finding(runs: PositionRuns, comparison: positions.OrderComparison) -> str:
    """Sentence on the result of the comparison, with its numbers and its reason."""
    words = sentences(CONCEPT, "order")
    if comparison.read == runs.plain.streams[0].tokens:
        return words("same")
    is_same = comparison.without.common_digits >= SAME_DIGITS > comparison.with_.common_digits
    numbers = words(
        "numbers_same" if is_same else "numbers",
        with_=power(comparison.with_.difference, 2),
        without=power(comparison.without.difference, 2),
    )
    plain = runs.plain
    masks = positions.self_attention(plain, runs.stream).masks
    causal = not all(sees_all(mask) for _, mask in masks)
    across = runs.stream == "decoder" and len(plain.streams) > 1
    if comparison.without.common_digits >= SAME_DIGITS:
        reason = "across" if across else "equivariant"
    elif comparison.pairs.unmatched_first or comparison.pairs.unmatched_second:
        reason = "other_tokens"
    else:
        reason = "causal" if causal and not across else "unexplained"
    return f"{numbers} {words(reason)}"


# ---- the encoding --------------------------------------------------------------------------------


def _sizes(runs: PositionRuns, n: int, width: int | None) -> tuple[int, int]:
    """Number of positions and width of a table, the model's own width where None. Raises ValueError
    for a number that no table has."""
    if not 2 <= n <= positions.LONGEST:
        raise ValueError(REFUSALS("size", positions=positions.LONGEST))
    return n, width or min(runs.plain.model.d_model, positions.WIDEST)


def _default_pair(d: int) -> int:
    """The pair of dimensions that is shown at first."""
    return min(d // 12, d // 2 - 1)


def _is_learned(run: Run, chosen: Mapping[str, Any]) -> bool:
    return PositionRuns(run, _stream(run, chosen)).adds == "learned"


def _has_sinusoids(run: Run, chosen: Mapping[str, Any]) -> bool:
    return not _is_learned(run, chosen)


def _stream(run: Run, chosen: Mapping[str, Any]) -> str:
    return chosen.get("stream") or run.recording().streams[0].name


def numbers_of_positions(run: Run, chosen: Mapping[str, Any]) -> range:
    """Numbers of positions that a table can have: a learned one as many as were learned."""
    is_learned = _is_learned(run, chosen)
    last = len(PositionRuns(run, _stream(run, chosen)).table()) if is_learned else positions.LONGEST
    return range(2, last + 1)


def _own_width(run: Run, chosen: Mapping[str, Any]) -> int:
    return min(run.recording().model.d_model, positions.WIDEST)


def _pairs(run: Run, chosen: Mapping[str, Any]) -> range:
    return range((chosen.get("width") or _own_width(run, chosen)) // 2)


def _suited_pair(run: Run, chosen: Mapping[str, Any]) -> int:
    return _default_pair(2 * len(_pairs(run, chosen)))


def _places(run: Run, chosen: Mapping[str, Any]) -> range:
    return range(chosen["n"])


N_PLACES = Choice(numbers_of_positions, "Positions", name="places")
WIDTH = Choice(
    range(2, positions.WIDEST + 1, 2),
    "Width of the table, d",
    suits=_own_width,
    when=_has_sinusoids,
)
PAIR = Choice(_pairs, "Pair of dimensions, m", suits=_suited_pair)
Places = Annotated[int, N_PLACES]
Width = Annotated[int | None, WIDTH]


def _not_added(runs: PositionRuns) -> str:
    """That the formula on show is not the model's, "" where it is."""
    if runs.has_vectors:
        return ""
    return " " + sentences(CONCEPT, "encoding")(f"not_added_{runs.adds}", model=runs.model)


@spec.panel
def encoding(
    run: Run,
    n: Places = 64,
    width: Width = None,
    pair: Annotated[int | None, replace(PAIR, when=_has_sinusoids)] = None,
    token: WordOrEvery = OPENS,
    stream: FirstStream = OPENS,
) -> Panel:
    """The sinusoids of the first n positions and one of their pairs; of a model that learned a
    table, that table and the norms of its rows.

    token: the one whose position is framed, none where None. width: of the sinusoids, the model's
    where None. pair: of dimensions. Raises ValueError for sizes that no table has and for a token
    that is not there.
    """
    selection, runs = _runs(run, token or 0, stream)
    framed = -1 if token is None else selection.token
    if runs.adds == "learned":
        return _learned_encoding(runs, n, framed)
    words = sentences(CONCEPT, "encoding")
    n, d = _sizes(runs, n, width)
    pair = _default_pair(d) if pair is None else place_of("pair", pair, d // 2)
    wave, turns = positions.wave(n, d, pair), positions.wavelengths(d)
    sine, cosine = fixed(wave.sine[1], 4), fixed(wave.cosine[1], 4)
    numbers = {
        name: Written.by(power, turns[each])
        for name, each in (("wave", pair), ("fastest_wave", 0), ("slowest_wave", -1))
    }
    (angle,) = enough_digits_for_all(
        [(sine, np.sin), (cosine, np.cos)], float(wave.angle[1]), least=4, write=power
    )
    off = (
        power(positions.formula_error(runs.plain.stream(runs.stream)), 2)
        if runs.adds == "sinusoids"
        else ""
    )
    return Panel(
        title=words("title"),
        finding=words("finding")
        + words(
            "drawn" if pair == _default_pair(d) else "chosen",
            pair=pair,
            pairs=d // 2,
            turn=numbers["wave"],
            fast=numbers["fastest_wave"],
            slow=numbers["slowest_wave"],
        )
        + _not_added(runs),
        figures=(
            _table(positions.table(n, d), words("table", n=n, d=d), 1.0, _sines_first(d), framed),
            _waves(wave, pair),
        ),
        table=positions.table_columns(positions.table(n, d)),
        details=(
            *([words("added", model=runs.model, off=off)] if off else []),
            *(
                [words("framed", word=selection.stream.tokens[framed], token=framed)]
                if 0 <= framed < n
                else []
            ),
            *words.lines(
                "details",
                pair=pair,
                exponent=f"{2 * pair}/{d}",
                rate=power(float(wave.angle[1]), 4),
                angle=angle,
                sine=sine,
                cosine=cosine,
                n=n,
                degrees=power(float(360 * (n - 1) / turns[-1]), 4),
            ),
        ),
        caption=(words("caption", last=n - 1, d=d),),
        file=f"positions-{n}x{d}-pair{pair}",
        formulas=("sinusoids",),
        numbers=numbers,
        at={"width": d, "pair": pair, "position": framed if 0 <= framed < n else 1},
    )


def _waves(wave: positions.Wave, pair: int) -> Chart:
    """The sine and the cosine of a pair of dimensions by position."""
    words = sentences(CONCEPT, "encoding")
    return Chart(
        title=words("wave", pair=pair, first=2 * pair, second=2 * pair + 1),
        series=(
            Series("sin", wave.place, wave.fine_sine, main=True),
            Series("cos", wave.place, wave.fine_cosine),
        ),
        x_title=words("x"),
    )


def _sines_first(d: int) -> list[int]:
    """The dimensions of sines and then those of cosines, so that neighbours are alike."""
    return [*range(0, d, 2), *range(1, d, 2)]


def _table(
    values: np.ndarray, title: str, high: float, order: Sequence[int], framed: int
) -> Matrix:
    """An encoding, (position, dimension), its dimensions in an order. framed: a position, -1 for
    none."""
    return Matrix(
        title=title,
        rows=tuple(map(str, range(len(values)))),
        columns=tuple(map(str, order)),
        values=values[:, order],
        high=high,
        signed=True,
        selected=framed if framed < len(values) else -1,
        sides=("pos", "dimension"),
        digits=3,
        wide=True,
    )


def _learned_encoding(runs: PositionRuns, n: int, framed: int) -> Panel:
    """A table that training has made, and the norms of its rows. framed: as of `_table`."""
    words = sentences(CONCEPT, "learned_encoding")
    whole = runs.table()
    table = whole[: max(2, n)]
    norms = positions.lengths(whole)
    low, high, d = int(norms.argmin()), int(norms.argmax()), whole.shape[1]
    off = positions.formula_error(runs.plain.stream(runs.stream))
    return Panel(
        title=words("title"),
        finding=words("finding", model=runs.model, n=f"{len(whole):,}", off=power(off)),
        figures=(
            _table(table, words("table"), positions.scale_end(table), range(d), framed),
            Chart(
                title=words("norms"),
                series=(
                    Series("", np.arange(len(table), dtype=float), norms[: len(table)], main=True),
                ),
                x_title=words("x"),
            ),
        ),
        table={
            **positions.table_columns(table),
            "norm of the position": np.repeat(norms[: len(table)], table.shape[1]),
        },
        details=words.lines(
            "details",
            low=power(float(norms[low])),
            low_position=low,
            high=power(float(norms[high])),
            high_position=high,
            sinusoid=f"{(d / 2) ** 0.5:.2f}",
            n=f"{len(whole):,}",
        ),
        caption=(words("caption", last=len(table) - 1),),
        file="positions-learned",
    )


@spec.panel
def distance(run: Run, n: Places = 64, width: Width = None, stream: FirstStream = OPENS) -> Panel:
    """The products of position vectors by distance, and pair by pair. Raises ValueError for sizes
    that no table has."""
    _, runs = _runs(run, 0, stream)
    if runs.adds == "learned":
        return _learned_distance(runs, n)
    words = sentences(CONCEPT, "distance")
    n, d = _sizes(runs, n, width)
    encoding = positions.table(n, d)
    products, some = positions.products(encoding), min(n, N_PAIRS)
    x = np.arange(len(products.law), dtype=float)
    return Panel(
        title=words("title"),
        finding=words("finding", deviation=power(products.deviation, 2), products=f"{n * n:,}")
        + _not_added(runs),
        figures=(
            _products(positions.gram(encoding, some), 0),
            Chart(
                title=words("chart"),
                series=(
                    Series(words("law"), x, products.law, main=True),
                    Series(words("smallest"), x, products.low, shape="points"),
                    Series(words("largest"), x, products.high, shape="points"),
                ),
                x_title=words("x"),
            ),
        ),
        table={
            "distance": np.arange(len(products.law)),
            "sum of cosines": products.law,
            "smallest p·p": products.low,
            "largest p·p": products.high,
        },
        details=words.lines(
            "details",
            pairs=d // 2,
            zero=f"{products.law[0]:,.0f}",
            one=fixed(float(products.law[1]), 3),
            last=n - 1,
            far=fixed(float(products.law[-1]), 3),
        ),
        caption=(words("caption", last=n - 1, d=d),),
        file=f"positions-products-{n}x{d}",
        formulas=("position-products",),
        at={"width": d, "shift": 1},
    )


def _products(values: np.ndarray, first: int) -> Matrix:
    """The products of all pairs of positions."""
    names = tuple(str(at + first) for at in range(len(values)))
    return Matrix(
        title=sentences(CONCEPT, "distance")("pairs"),
        rows=names,
        columns=names,
        values=values,
        low=float(values.min()),
        high=float(values.max()),
        sides=("i", "j"),
    )


def _learned_distance(runs: PositionRuns, n: int) -> Panel:
    """The products of a learned table, of which distance explains a part."""
    words = sentences(CONCEPT, "learned_distance")
    rows = runs.table()[: max(2, n)]
    n = len(rows)
    longer = positions.first_stands_out(rows)
    first = int(longer is not None and n > 2)
    table = rows[first:]
    by_distance = positions.by_distance(table)
    x = np.arange(len(by_distance.mean), dtype=float)
    details = list(words.lines("details"))
    if len(by_distance.mean) > 1:
        low, high = fixed(float(by_distance.low[1]), 3), fixed(float(by_distance.high[1]), 3)
        details.append(words("neighbours", low=low, high=high))
    if first:
        details.append(words("first", times=f"{longer:.1f}"))
    return Panel(
        title=sentences(CONCEPT, "distance")("title"),
        finding=words("finding", share=percent(by_distance.explained)),
        figures=(
            _products(positions.gram(table, min(len(table), N_PAIRS)), first),
            Chart(
                title=sentences(CONCEPT, "distance")("chart"),
                series=(
                    Series(words("range"), x, by_distance.high, shape="band", base=by_distance.low),
                    Series(words("mean"), x, by_distance.mean, main=True),
                ),
                x_title=sentences(CONCEPT, "distance")("x"),
            ),
        ),
        table={
            "distance": np.arange(len(by_distance.mean)),
            "mean p·p": by_distance.mean,
            "smallest p·p": by_distance.low,
            "largest p·p": by_distance.high,
        },
        details=tuple(details),
        caption=(words("caption", first=first, last=n - 1),),
        file="positions-products-learned",
    )


@spec.panel
def rotation(
    run: Run,
    n: Annotated[int, replace(N_PLACES, menu=True)] = 64,
    width: Annotated[int | None, replace(WIDTH, menu=True)] = None,
    pair: Annotated[int | None, PAIR] = None,
    place: Annotated[int, Choice(_places, "Position")] = 3,
    shift: Annotated[int, Choice(_places, "Shift, k")] = 5,
    stream: FirstStream = OPENS,
) -> Panel:
    """One pair of sinusoids on the unit circle: moving by `shift` positions from `place` is a
    rotation; each at most the last position. Raises ValueError for sizes that no table has, and for
    what is not there."""
    _, runs = _runs(run, 0, stream)
    words = sentences(CONCEPT, "rotation")
    n, d = _sizes(runs, n, width)
    pair = _default_pair(d) if pair is None else place_of("pair", pair, d // 2)
    place, shift = place_of("position", min(place, n - 1), n), min(shift, n - 1)
    expect_place("shift", shift, n)
    wave = positions.wave(2 * n, d, pair)
    radians, degrees = positions.rotation_angle(d, pair, shift)
    details = [
        words("error", n=n, pairs=d // 2, error=power(positions.shift_error(n, d, shift), 2)),
        *words.lines("details", shift=shift, exponent=f"{2 * pair}/{d}", radians=fixed(radians, 4)),
    ]
    if runs.adds == "learned":
        missed = positions.rotation_errors(runs.table(), shift)
        details.insert(0, words("learned", model=runs.model))
        if missed:
            details.insert(
                1,
                words(
                    "missed",
                    shift=shift,
                    rotated=percent(missed.rotated_error),
                    unrotated=percent(missed.unrotated_error),
                ),
            )
    return Panel(
        title=words("title"),
        finding=words("finding", shift=shift, pair=pair, degrees=f"{degrees:,.1f}")
        + _not_added(runs),
        figures=(
            _circle(wave, (d, pair, place, shift), min(n, N_CIRCLE)),
            _rotation_table(wave, d, pair, place, shift),
        ),
        table=positions.circle_columns(positions.wave(min(n, N_CIRCLE), d, pair), shift, d, pair),
        details=tuple(details),
        caption=(words("caption", pair=pair, d=d, place=place, there=place + shift),),
        file=f"positions-shift{shift}-pair{pair}",
        formulas=("shift",),
        at={"width": d, "pair": pair, "position": place, "shift": shift},
    )


def _circle(wave: positions.Wave, at: tuple[int, int, int, int], some: int) -> Chart:
    """The positions on the unit circle, two of them joined to its centre. at: d, pair, place and
    shift."""
    words = sentences(CONCEPT, "rotation")
    d, pair, place, shift = at
    turn = np.linspace(0, 2 * np.pi, 181)
    arc = positions.arc_points(d, pair, place, shift)

    def arrow(end: int, main: bool) -> Series:
        return Series(
            words("position", position=end),
            np.array([0.0, wave.cosine[end]]),
            np.array([0.0, wave.sine[end]]),
            main=main,
        )

    return Chart(
        title=words("circle", pair=pair),
        series=(
            arrow(place + shift, True),
            arrow(place, False),
            Series("", np.cos(turn), np.sin(turn)),
            Series("", wave.cosine[:some], wave.sine[:some], shape="points"),
            Series(words("arc"), arc[:, 1], arc[:, 0]),
        ),
        x_title="cos",
        y_title="sin",
        square=True,
    )


def _rotation_table(wave: positions.Wave, d: int, pair: int, place: int, shift: int) -> TextTable:
    """The rotation with this pair's numbers, with the digits that make it true."""
    words = sentences(CONCEPT, "rotation")
    matrix = positions.rotation_matrix(d, pair, shift)
    ends = [fixed(float(each[place + shift]), 4) for each in (wave.sine, wave.cosine)]
    a, b, c, e, x, y = enough_digits_for_all(
        [
            (ends[0], lambda a, b, c, d, x, y: a * x + b * y),
            (ends[1], lambda a, b, c, d, x, y: c * x + d * y),
        ],
        *map(float, (*matrix.ravel(), wave.sine[place], wave.cosine[place])),
        least=4,
    )
    return TextTable(
        title=words("matrix", shift=shift, place=place, there=place + shift),
        columns=words.lines("columns", shift=shift, place=place, there=place + shift),
        rows=(("sin", a, b, x, ends[0]), ("cos", c, e, y, ends[1])),
    )


@spec.panel
def overlap(run: Run, stream: FirstStream = OPENS) -> Panel:
    """Share of the positional encoding in the directions of the embeddings. Raises ValueError for a
    model that adds nothing, and for one that does not show its embeddings."""
    _, runs = _runs(run, 0, stream)
    words = sentences(CONCEPT, "overlap")
    if not runs.has_vectors:
        raise ValueError(words(runs.adds, model=runs.model))
    if not run.loaded.capabilities.weights:
        raise ValueError(words("closed", model=runs.model))
    table = runs.table()
    overlaps = memo(
        runs.plain,
        ("overlap", runs.stream),
        lambda: positions.overlap(run.loaded.embeddings(), table),
    )
    r, d = overlaps.most(EMBEDDED), len(overlaps.words) - 1
    room = positions.dimensions_needed(table, VARIATION)
    share, baseline = float(overlaps.places[r]), float(overlaps.chance[r])
    relation = "less" if share < 0.95 * baseline else "more" if share > 1.05 * baseline else "equal"
    x = np.arange(len(overlaps.words), dtype=float)
    curves = zip(words.lines("curves"), (overlaps.places, overlaps.words, overlaps.chance))
    return Panel(
        title=words("title"),
        finding=words("finding", r=r, d=d, share=percent(share), baseline=percent(baseline))
        + " "
        + words("cost", room=room, d=d, wider=d + room, larger=percent(room / d)),
        figures=(
            Chart(
                title=words("chart"),
                series=tuple(
                    Series(name, x, values, main=at == 0)
                    for at, (name, values) in enumerate(curves)
                ),
                x_title=words("x"),
                y_title=words("y"),
            ),
        ),
        table={
            "directions": np.arange(len(overlaps.words)),
            "embeddings": overlaps.words,
            "encoding": overlaps.places,
            "chance": overlaps.chance,
        },
        details=(
            words(relation),
            *words.lines(
                "details",
                r=r,
                embedded=percent(EMBEDDED),
                room=room,
                within=percent(VARIATION),
                n=runs.plain.model.n_positions,
            ),
            words("where_learned" if runs.adds == "learned" else "where_sinusoids"),
        ),
        caption=(words("caption", n=f"{runs.plain.model.n_vocab:,}"),),
        file="positions-overlap",
    )
