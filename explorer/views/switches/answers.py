"""The predictions of both runs at the selected token, and a translator's whole output."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import interventions
from explorer.analysis.formatting import fixed, plural, tenths
from explorer.components import bars, token_strip
from explorer.layout.output import with_table
from explorer.state import cache, models
from explorer.text.markdown_escape import literal
from explorer.views.switches.edit_actions import nothing, shown
from explorer.views.switches.run_pair import MOST_WORDS, Runs, told
from models.edits import describe, to_line

BOTH_READ = (
    "Below, the decoders of both runs read the output of the unedited model, so the predictions "
    "can be compared word by word. Select the token before the prediction."
)
TITLES = {"encoder": "Prediction for this word", "decoder": "Prediction of the next word"}


def show(on: Runs) -> None:
    """The tokens, the likeliest words of both runs, and their numbers."""
    title = TITLES.get(on.plain.model.kind, "Translation")
    if not on.asks:
        title = "Selected token"
    elif on.hides:
        title = "Prediction for the masked word"
    writes = on.plain.model.kind == "encoder-decoder"
    st.subheader(title, anchor=False, help=BOTH_READ if writes else None)
    if writes and not on.error:
        translations(on)
    tokens(on)
    if on.error:
        return
    if isinstance(on.answer, str):
        st.info(f"There is no prediction to compare: {literal(on.answer)}.")
    else:
        words(on, on.answer)


def words(on: Runs, said: interventions.PredictionChange) -> None:
    """The likeliest words as bars, pale before and filled after."""
    best = said.top(MOST_WORDS)
    labels = models.labels(on.model, best)
    rows = [
        _bar(label, float(said.before[word]), float(said.after[word]), on, word == said.said)
        for word, label in zip(best, labels)
    ]
    bars.show(
        bars.payload(
            rows,
            ("before", "after") if on.edits else ("probability",),
            about="Top predictions before and after." if on.edits else "Top predictions.",
            token=cache.picture_name(on.plain, "said", to_line(on.edits), on.token, on.hides),
        ),
        "said bars",
        nothing,
    )
    if on.edits:
        kl = plural(fixed(said.kl, 3), "nat")
        st.caption(f"Pale: before. Filled: after. KL(before ‖ after) = {kl}.")
    where = f"token {on.token}, {on.stream.tokens[on.token]}{', masked' if on.hides else ''}"
    with_table(
        interventions.prediction_columns(said, best, labels),
        (*told(on.plain, where), f"edits of the second run: {describe(on.edits)}"),
        f"headlight-{on.model}-switches-words-token{on.token}",
        "These words as a table",
    )


def _bar(label: str, before: float, after: float, on: Runs, was_first: bool) -> bars.Bar:
    if not on.edits:
        return bars.Bar(label, after, (tenths(after),))
    mark = "original prediction" if was_first else ""
    both = tenths(before), tenths(after)
    return bars.Bar(label, after, both, behind=before, mark=mark)


def translations(on: Runs) -> None:
    """What the translator writes by itself in both runs."""
    before = literal(on.plain.target) or "(nothing)"
    if not on.edits:
        st.markdown(f"**{before}**")
        return
    try:
        own = cache.record(on.model, on.plain.text, on.edits).target
    except ValueError as error:
        own = f"({error})"
    st.markdown(f"Before: **{before}**  \nAfter: **{literal(own) or '(nothing)'}**")


def tokens(on: Runs) -> None:
    """The tokens, one of them looked at."""
    at, stream, kind = on.token, on.stream, on.plain.model.kind
    where = f"“{stream.tokens[at]}” (token {at})"
    says = {
        "encoder": f"Selected: {where}{', masked in both runs' if on.hides else ''}.",
        "decoder": f"Selected: the word after {where}.",
    }.get(kind, f"Selected: the decoder’s prediction after {where}.")
    token_strip.show(
        token_strip.payload(
            [_token(on, each) for each in range(len(stream.tokens))],
            about="The tokens. Arrow keys move, Enter selects one.",
            says=says,
            token=cache.picture_name(on.plain, "switch tokens", at, on.hides),
            chosen=at,
        ),
        "switch tokens",
        take_token,
        nothing,
    )
    if kind == "encoder" and not stream.special[at] and on.asks:
        shown("hide it", not st.session_state.seen)
        st.toggle(
            "Replace it by [MASK], as in training",
            key="hide it",
            on_change=take_seen,
            help="This applies here and in patching. Attention and vectors are those of the text "
            "without a mask.",
        )


def _token(on: Runs, at: int) -> token_strip.Token:
    label, tone = on.stream.tokens[at], "special" if on.stream.special[at] else ""
    if on.hides and at == on.token:
        return token_strip.Token(
            "[MASK]", label, "hidden", f"[MASK] {label}, token {at}", open=True
        )
    return token_strip.Token(label, "", tone, f"{label}, token {at}", open=True)


def take_token() -> None:
    """The token pressed is looked at."""
    at = st.session_state["switch tokens"].get("at")
    st.session_state.token = "" if at is None else str(int(at))


def take_seen() -> None:
    """Whether the token looked at is hidden."""
    st.session_state.seen = "" if st.session_state["hide it"] else "yes"
