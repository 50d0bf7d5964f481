"""What each side says at one place of the text, with probabilities: a hidden word filled in, or the
next one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from explorer.analysis import alignment, predictions
from explorer.analysis.formatting import tenths
from explorer.components import bars
from explorer.layout import export_menu
from explorer.state import cache, models, url_state
from explorer.state.cache import Run
from explorer.text import comparison, python_snippets
from explorer.text.markdown_escape import literal
from explorer.views.compare.comparison_state import Both, said
from explorer.views.compare.run_selection import Side
from models.edits import HideToken
from models.recording import Recording

IN_LINE, IN_BARS = 3, 10  # words


@dataclass(frozen=True)
class OutputTask:
    """What a side is asked ("fills", "goes on" or "translates"), after or in the place of which
    word, its likeliest words with their probabilities, and `of` which run, stream and token they
    are; none and `why` where it says no words."""

    kind: str = ""
    word: str = ""
    words: tuple[tuple[str, float], ...] = ()
    why: str = ""
    of: tuple[Run, str, int] | None = None


def answers(both: Both) -> tuple[OutputTask, OutputTask]:
    """What both sides say. Where one of them fills in words, the other is asked for the same
    word."""
    fills = any(each.model.kind == "encoder" for _, each in both.sides)
    place_a = place_b = None
    if fills:
        place_a = _place(both.a)
        place_b = _beside(both, place_a)
    return _answer(both.one, both.a, place_a), _answer(both.other, both.b, place_b)


def _place(recording: Recording) -> int | None:
    """The word that is asked for: the one held on other pages, else the last one."""
    stream = recording.streams[0]
    token = url_state.whole_number("token", len(stream.tokens))
    if token is not None and not stream.special[token]:
        return token
    return predictions.default_masked_word(stream, models.capabilities(recording.model.name).mask)


def _beside(both: Both, place: int | None) -> int | None:
    """The token of B that is beside a token of A; B's own last word where there is none."""
    axes = (alignment.axis(each, each.streams[0].name) for _, each in both.sides)
    units = both.kept("sources", lambda: alignment.align(*axes)).units
    there = next((unit.b[0] for unit in units if place in unit.a and not unit.special), None)
    mask = models.capabilities(both.b.model.name).mask
    return predictions.default_masked_word(both.b.streams[0], mask) if there is None else there


def _answer(side: Side, recording: Recording, place: int | None) -> OutputTask:
    """What a side says at a place of its text, or after it where that is None. Under its own
    edits."""
    offers, title = models.capabilities(side.model), literal(models.title(side.model))
    if not offers.logits:
        return OutputTask(why=f"{title} {offers.no_readout}, so it makes no prediction.")
    stream, kind = recording.stream(offers.logits), "goes on"
    token = len(stream.tokens) - 1 if place is None else max(0, place - 1)
    word = "" if stream.special[token] else stream.tokens[token]
    if recording.model.kind == "encoder-decoder":
        kind, token, word = "translates", 0, ""
    elif recording.model.kind == "encoder":
        if place is None:
            return OutputTask(why="There is no word yet that can be masked.")
        if not issubclass(HideToken, offers.edits):
            return OutputTask(why=f"{title} has no [MASK] token, so it makes no prediction.")
        kind, token, word = "fills", place, stream.tokens[place]
        side = replace(side, edits=(*side.edits, HideToken(place)))
        try:
            recording = side.record()
        except ValueError as why:
            return OutputTask(why=literal(f"{why}."))
    found = predictions.distribution(cache.logits(recording, offers.logits, token))
    words = predictions.top_words(found, most=IN_BARS)
    labels = models.labels(side.model, [each.id for each in words])
    of = side.shown, offers.logits, token
    return OutputTask(kind, word, tuple(zip(labels, (each.own for each in words))), of=of)


def facing(both: Both) -> None:
    """What is on either side: its model, its edits, its text, and what it says."""
    said_a, said_b = both_answers = answers(both)
    for column, (letter, recording), answer in zip(
        st.columns(2, gap="large"), both.sides, both_answers
    ):
        line = answer.why
        if answer.words:
            asked = comparison.asked(answer.kind, answer.word)
            line = f"{asked[0].upper()}{asked[1:]}: {comparison.says(answer.words[:IN_LINE])}"
        with column:
            st.markdown(f"**{letter}** &nbsp; {said(recording)}  \n{line}")
            if recording.dropped:
                st.caption(
                    f"The last {recording.dropped:,} tokens of this text do not fit this model "
                    "and are left out."
                )
    if said_a.words and said_b.words:
        st.caption(comparison.answers(said_a.words, said_b.words))


def show(both: Both) -> None:
    """Both lists as bars to one scale; the pale bar behind is the other side's."""
    both_answers = answers(both)
    for column, letter, answer, other in zip(
        st.columns(2, gap="large"), "AB", both_answers, reversed(both_answers)
    ):
        with column:
            if not answer.words:
                st.info(answer.why)
                continue
            asked = f"{letter}: {comparison.asked(answer.kind, answer.word)}"
            st.markdown(f"**{asked}**")
            beside = dict(other.words)
            rows = [
                bars.Bar(word, p, (tenths(p),), behind=beside.get(word)) for word, p in answer.words
            ]
            name = both.named("answers", letter, answer)
            bars.show(
                bars.payload(rows, ("probability",), about=asked, token=name, full=1.0),
                f"answers {letter}",
                _ignore,
            )
    _numbers([answer.of for answer in both_answers if answer.of is not None])
    st.caption(
        "Filled: probability on this side. Pale: probability on the other side, if the word is "
        "among its ten most probable."
    )


def _numbers(of: list[tuple[Run, str, int]]) -> None:
    """The lines of Python that give both lists. of: the runs, streams and tokens."""
    runs = [run for run, _, _ in of]
    if not runs:
        return
    handles = ["model", *(python_snippets.beside(export_menu.sources(*runs)) for _ in runs[1:])]
    lines = [
        "def likeliest(handle, recording, stream, token):",
        "    logits = handle.logits(recording, stream, token)",
        f"    words = predictions.top_words(predictions.distribution(logits), most={IN_BARS})",
        "    labels = handle.labels([each.id for each in words])",
        '    return {"word": labels, "probability": [each.own for each in words]}',
        "",
        *(
            f"{name} = likeliest({handle}, {made}, {stream!r}, {token})"
            for name, handle, made, (_, stream, token) in zip(
                ("first", "second"), handles, ("recording", "other"), of
            )
        ),
    ]
    export_menu.offer_numbers_code("both predictions", runs, ("predictions",), lines)


def _ignore() -> None:
    """It is only looked at."""
