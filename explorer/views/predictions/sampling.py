"""The likeliest next tokens: the model's own probabilities, and what temperature, top-k and top-p
make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from explorer.analysis import predictions
from explorer.analysis.formatting import probability
from explorer.components import bars
from explorer.state import cache
from explorer.text.markdown_escape import literal
from explorer.text.predictions import (
    SEED,
    TEMPERATURE,
    TOP_P,
    cut,
    formula,
    how_drawn,
    how_sure,
    sums,
    whole_word,
)
from explorer.views.predictions import generation_controls
from explorer.views.predictions.page_state import labels_of, whole_vocabulary
from models.recording import Recording
from models.results import WholeWord

TAIL = 5  # tokens that say after what something comes


@dataclass(frozen=True, eq=False)
class Next:
    """Options for the next token: the distribution, the tokens before it, and what is drawn with a
    seed; `drawn` is None where nothing can be written. scores: what gives them in lines of Python;
    then: the ids that were written after the text."""

    of: predictions.Distribution
    tokens: Sequence[str]
    drawn: predictions.Draw | None
    seed: int
    scores: str
    then: tuple[int, ...] = ()


def choices(recording: Recording, after: Next) -> None:
    """The likeliest next tokens, how one is drawn, and how its probability is made."""
    of, tokens, drawn = after.of, after.tokens, after.drawn
    sliders(after.seed)
    words = predictions.top_words(of, [drawn.id] if drawn else ())
    more = "… " * (len(tokens) > TAIL)
    st.markdown(f"After “{more}**{literal(predictions.join_pieces(tokens[-TAIL:]))}**” comes:")
    whole = begun(recording, after, words)
    likeliest(recording, after, words, whole)
    if whole:
        st.caption("  \n".join(map(whole_word, whole.values())))
    others = predictions.remaining_words(of, words)
    st.caption(sums(others, words, len(of.order), writes=drawn is not None))
    told = drawn or words[0]
    label = labels_of(recording, [told])[0]
    if drawn:
        st.markdown(how_drawn(drawn, label, after.seed, len(tokens)))
    st.markdown(formula(of, label, told.id))
    st.markdown(how_sure(of))
    way = of.sampling
    about = (
        f"What comes after “{predictions.join_pieces(tokens[-3 * TAIL :])}” ({len(tokens)} tokens)",
        f"temperature {way.temperature:g}, top-k {way.top_k or 'off'}, top-p {way.top_p:g}",
    )
    whole_vocabulary(recording, of, about, f"after-{len(tokens)}-tokens", after.scores)


def begun(
    recording: Recording, after: Next, words: Sequence[predictions.Word]
) -> dict[int, WholeWord]:
    """The words of several pieces that the likeliest tokens begin, by the token."""
    if after.drawn is None:
        return {}
    firsts = [(word.id, word.own) for word in words]
    return cache.next_words(recording.model.name, recording.text, firsts, after.then)


def likeliest(
    recording: Recording,
    after: Next,
    words: Sequence[predictions.Word],
    whole: Mapping[int, WholeWord],
) -> None:
    """The tokens as bars, and all others as one: pale the model's own, solid what is drawn from. A
    token that begins a word of several pieces is shown as the `whole` word."""
    others, drawn = predictions.remaining_words(after.of, words), after.drawn
    rows = [
        bars.Bar(
            whole[word.id].word if word.id in whole else label,
            word.drawn,
            (probability(word.own), probability(word.drawn) if word.kept else "cut"),
            str(word.id) if drawn else "",
            behind=word.own,
            tone="" if word.kept else "cut",
            mark=" · ".join(
                ["next"] * (drawn is not None and word.id == drawn.id)
                + [f"first piece “{label}”"] * (word.id in whole)
            ),
            gap=word.rank >= predictions.MOST_ROWS,
        )
        for word, label in zip(words, labels_of(recording, words))
    ]
    if others.n:
        label = f"all {others.n:,} others{cut(others)}"
        both = probability(others.own), probability(others.drawn)
        rows.append(bars.Bar(label, others.drawn, both, behind=others.own, tone="rest"))
    name = len(after.tokens), st.session_state.said, after.of.sampling, after.seed
    model, text = recording.model.name, recording.text
    bars.show(
        bars.payload(
            rows,
            ("model", "drawn from"),
            about="What may come next, the likeliest first: the model’s own probability, and the "
            "one that is drawn from.",
            action="writes the token" if drawn else "",
            full=max(words[0].own, words[0].drawn),
            token=cache.picture_name(recording, "choices", *name),
        ),
        "choices",
        on_choice=lambda: generation_controls.choose(model, text),
    )


def _named(names: Mapping[str, str], value: str) -> str:
    return names.get(value, value)


def sliders(seed: int, changed: Callable[[], None] | None = None) -> None:
    """Temperature, top-k, top-p and seed; `changed` is called after each choice."""
    st.session_state["seed field"] = seed
    columns = st.columns([1.2, 1, 1, 0.9], vertical_alignment="bottom")
    few = "Only the k likeliest tokens are kept."
    every = (
        ("Temperature", generation_controls.TEMPERATURES, "temperature", {"0": "0 (greedy)"}),
        ("Top-k", generation_controls.TOP_KS, "top_k", {"0": "all"}),
        ("Top-p", generation_controls.TOP_PS, "top_p", {"1": "all"}),
    )
    helps = TEMPERATURE, few, TOP_P
    for column, (label, options, key, named), says in zip(columns, every, helps):
        column.select_slider(
            label,
            options,
            key=key,
            persist_state="session",
            format_func=partial(_named, named),
            help=says,
            on_change=changed,
        )
    columns[-1].number_input(
        "Seed",
        0,
        generation_controls.SEEDS - 1,
        key="seed field",
        on_change=take_seed,
        args=(changed,),
        help=SEED,
    )


def take_seed(changed: Callable[[], None] | None) -> None:
    """The seed typed."""
    st.session_state.seed = str(st.session_state["seed field"])
    if changed:
        changed()
