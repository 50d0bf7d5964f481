"""What happens in a translation with its numbers, and all of them as tables and files."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.analysis import translation
from explorer.analysis.caption import model_line
from explorer.analysis.consistency import scale_text
from explorer.analysis.csv import Columns
from explorer.layout import export_menu, output
from explorer.layout.output import offer_csv, offer_recording
from explorer.state import models
from explorer.text import python_snippets
from explorer.text.translation import LIMITS_OF_WEIGHTS, ROW, WORDS, made
from explorer.views.translation.page_state import TranslationState, said_of
from explorer.views.translation.search import how
from models.results import SeededSampling


def note(on: TranslationState) -> None:
    """What happens, in plain words."""
    st.subheader("How it is computed", anchor=False)
    scale = scale_text(translation.cross_attention(on.recording), 0)
    st.markdown(made(on.recording, scale, on.said.logprob))
    st.caption(LIMITS_OF_WEIGHTS)


def files(on: TranslationState) -> None:
    """The alignment and the recording as files."""
    source, end, name, picture = on.source, on.end, on.name, on.picture()

    def columns() -> Columns:
        recording = source.recording()
        matrix = translation.attention_view(translation.cross_attention(recording).pattern, name)
        _, says = translation.produced_tokens(recording, end)
        reads, of = recording.stream("decoder").tokens, recording.stream("encoder").tokens
        return translation.file_table(matrix, says, reads, said_of(recording, end), of)

    numbers_of(on)
    offer_csv(columns, picture.caption, picture.file, "Alignment as CSV")
    for kind, make in every(on).items():
        if kind == "Alignment":
            continue  # its file says what was read and how likely each token was, too
        file = f"headlight-{source.model}-translation-{kind.lower()}"
        about = model_line(on.recording, f"{kind.lower()} of the translation"), *picture.caption[2:]
        offer_csv(make, about, file, f"{kind} of the translation as CSV")
    offer_recording(source.model, source.text, source.target)


def numbers_of(on: TranslationState) -> None:
    """The lines of Python that give every table of the translation on screen, `shown` in them."""
    (source,), n, way = export_menu.sources(on.source), len(on.search.steps), how()
    drawn = (
        (
            "Sampling",
            "SeededSampling",
        )
        if isinstance(way, SeededSampling)
        else ()
    )
    grows = () if on.forced is not None else ("itertools import islice", *drawn)
    grown = (
        f"steps = list(islice(model.beams(shown.text, {way}), {n}))",
        "texts = [[model.tokenizer.text(beam.ids) for beam in held] for held in steps]",
        "beams = translation.beam_table(steps, texts)",
    )
    export_menu.offer_more_code(
        ("translation", "numpy import stack", *grows),
        *python_snippets.recording("shown", "model", *source[1:]),
        f"end = {on.end}",
        "ids, says = translation.produced_tokens(shown, end)",
        'reads, of = (shown.stream(each).tokens for each in ("decoder", "encoder"))',
        'rows = [model.logits(shown, "decoder", at) for at in range(len(reads))]',
        "said = translation.decoded_steps(stack(rows), ids)",
        "cross = translation.cross_attention(shown).pattern",
        f"matrix = translation.attention_view(cross, {on.name!r})",
        "alignment = translation.file_table(matrix, says, reads, said, of)",
        "first = model.labels(said.top_ids[:, 0])",
        "tokens = translation.token_table(said, says, first)",
        "groups = translation.produced_words(shown, end is not None)",
        "words = translation.word_table(said, says, groups)",
        *(grown if grows else ()),
    )


def tables(on: TranslationState) -> None:
    """The numbers behind every picture."""
    with st.expander("All numbers as a table"):
        made = every(on)
        shown = st.segmented_control(
            "Table",
            made,
            default="Tokens",
            key="table",
            wrap=True,
            required=True,
            label_visibility="collapsed",
        )
        if shown == "Words":
            st.caption(WORDS)
        elif shown == "Alignment":
            st.caption(ROW)
        output.data_table(made[shown](), f"{shown} of the translation", "%.4g")


def every(on: TranslationState) -> dict[str, Callable[[], Columns]]:
    """What makes each table."""
    model, says, said, steps = on.source.model, on.says, on.said, tuple(on.search.steps)
    groups = translation.produced_words(on.recording, on.end is not None)

    def tokens() -> Columns:
        return translation.token_table(said, says, models.labels(model, said.top_ids[:, 0]))

    def beams() -> Columns:
        texts = [[models.decode(model, beam.ids) for beam in held] for held in steps]
        return translation.beam_table(steps, texts)

    def alignment() -> Columns:
        matrix = translation.attention_view(
            translation.cross_attention(on.recording).pattern, on.name
        )
        return translation.alignment_table(matrix, says, on.recording.stream("encoder").tokens)

    return {
        "Tokens": tokens,
        "Words": lambda: translation.word_table(said, says, groups),
        "Alignment": alignment,
        **({"Beams": beams} if on.forced is None else {}),
    }
