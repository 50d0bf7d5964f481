"""A decoder: what comes next, and next after that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from explorer.analysis import predictions
from explorer.analysis.caption import caption
from explorer.analysis.formatting import plural, probability
from explorer.components import attention_row, token_strip
from explorer.layout import export_menu
from explorer.layout.controls import take_named
from explorer.layout.output import with_table
from explorer.state import cache, event_log, jobs, models, url_state
from explorer.text import predictions as predictions_text
from explorer.text.markdown_escape import literal
from explorer.views.predictions import generation_controls
from explorer.views.predictions.page_state import labels_of, nothing
from explorer.views.predictions.sampling import Next, choices
from models.recording import Recording, Stream
from models.results import WrittenToken

AHEAD = 12  # tokens that are written ahead, to show where the text would go
PACE = 0.6  # seconds between two tokens while a text writes itself


@event_log.fragment
def show(model: str, text: str) -> None:
    """Show the generation of text, token by token. A step runs this alone."""
    recording = cache.record(model, text)
    stream, state = recording.streams[0], st.session_state
    sampling, seed = generation_controls.settings()
    try:
        draft = jobs.draft(model, text)
    except ValueError as why:
        no_room(recording, str(why))
        return
    generation_controls.catch_up(draft, recording.model.n_vocab)
    of = predictions.distribution(draft.writing.logits, sampling)
    drawn = (
        None if draft.ended or draft.full else predictions.draw(of, seed, len(draft.writing.ids))
    )
    if drawn is None:
        state.playing = False
    labels = labels_of(recording, draft.tokens)
    so_far(recording, stream, draft, labels)
    if not (draft.tokens or draft.full):
        st.markdown(would_write(recording, draft))
    generation_controls.buttons(model, text, draft)
    tokens = (*stream.tokens, *labels)
    numbers_of(draft)
    left, right = st.columns([1, 1], gap="large")
    with left:
        then = tuple(word.id for word in draft.tokens)
        choices(recording, Next(of, tokens, drawn, seed, "writing.logits", then))
        if draft.tokens:
            written(recording, draft, labels)
    with right:
        newest(recording, draft, tokens)
        kept(recording, draft)
    if draft.tokens:
        st.caption(
            "The other tabs show your own text. “Add to my text” makes what was written a part of "
            "it."
        )
    if not state.playing:  # an address for every token would fill the browser's history
        url_state.write()


def numbers_of(draft: jobs.Draft) -> None:
    """The lines of Python that write the same, and give what its newest token looks at."""
    ids = [word.id for word in draft.tokens]
    export_menu.offer_more_code(
        ("predictions", "results"),
        "writing, said = model.generate(recording.text), []",
        f"for id in {ids}:",
        "    said.append(results.score_token(writing.logits, id))",
        "    writing.add(id)",
        f"labels = model.labels({ids})",
        "written = predictions.written_token_columns(said, labels)",
        "tokens = [*recording.streams[0].tokens, *labels]",
        'newest = predictions.attention_columns(writing.rows["attn"], tokens)',
    )


def would_write(recording: Recording, draft: jobs.Draft) -> str:
    """Sentence with the continuation of the text under the current settings."""
    sampling, seed = generation_controls.settings()
    model = recording.model.name

    def drawn(scores: Any, place: int) -> int:
        return predictions.draw(predictions.distribution(scores, sampling), seed, place).id

    ids = jobs.continuation(model, recording.text, AHEAD, (sampling, seed), drawn)
    prompt = models.decode(model, draft.writing.ids)
    whole = models.decode(model, (*draft.writing.ids, *ids))
    new = whole.removeprefix(prompt).strip()
    return f"With these settings it goes on: **{literal(' '.join(new.split()))}** …"


def no_room(recording: Recording, why: str) -> None:
    """Show the prediction after the last token that is read, where nothing more can be written."""
    stream = recording.streams[0]
    shorter = len(stream.tokens) >= recording.model.n_positions
    st.info(
        f"Nothing can be written here: {literal(why)}."
        f"{' Shorten the text to go on from it.' if shorter else ''} What the model says after the "
        "last token that it reads stands below."
    )
    sampling, seed = generation_controls.settings()
    last = len(stream.tokens) - 1
    of = predictions.distribution(cache.logits(recording, stream.name, last), sampling)
    scores = f"model.logits(recording, {stream.name!r}, {last})"
    with st.columns([1, 1], gap="large")[0]:
        choices(recording, Next(of, stream.tokens, None, seed, scores))


def so_far(recording: Recording, stream: Stream, draft: jobs.Draft, labels: Sequence[str]) -> None:
    """The prompt, and after it in another tone what was written, with probability and rank."""
    state, model, text = st.session_state, recording.model.name, recording.text
    prompt = [
        token_strip.Token(label, tone="special" if special else "")
        for label, special in zip(stream.tokens, stream.special)
    ]
    token_strip.show(
        token_strip.payload(
            [*prompt, *(_written(label, word) for label, word in zip(labels, draft.tokens))],
            about="The text: what you wrote, and after it what was written by the model.",
            says=where_it_stands(draft, labels),
            token=cache.picture_name(recording, "draft", state.said, bool(state.playing)),
            every=PACE if state.playing else 0,
            at_end=True,
        ),
        "draft text",
        on_choice=nothing,
        on_tick=lambda: generation_controls.tick(model, text),
    )
    if stream.tokens[-1] == "␣":
        st.caption(predictions_text.ENDS_WITH_SPACE)


def _written(label: str, word: WrittenToken) -> token_strip.Token:
    p = "< 0.01" if word.own < 0.005 else f"{word.own:.2f}"
    spoken = f"{label}, written, probability {probability(word.own)}, rank {word.rank + 1:,}"
    return token_strip.Token(label, f"{p} · #{word.rank + 1:,}", "said", spoken)


def where_it_stands(draft: jobs.Draft, labels: Sequence[str]) -> str:
    """One sentence on what was written last, and whether there is more to come."""
    if not labels:
        return "Nothing is written yet. Press Step, or choose a word of the list."
    full = len(draft.writing.ids) if draft.full else 0
    last, n = draft.tokens[-1], len(labels)
    return predictions_text.where_it_stands(last.own, last.rank, labels[-1], n, draft.ended, full)


def written(recording: Recording, draft: jobs.Draft, labels: Sequence[str]) -> None:
    """Show the generated tokens as a table."""
    with_table(
        predictions.written_token_columns(draft.tokens, labels),
        caption(recording, "The written tokens, their probabilities and ranks"),
        f"headlight-{recording.model.name}-written",
        "What was written, as a table",
        form="%.6f",
    )


def newest(recording: Recording, draft: jobs.Draft, tokens: Sequence[str]) -> None:
    """Show the attention of the newest token in every head."""
    rows = draft.writing.rows["attn"]
    layer, head = (
        url_state.whole_number("layer", rows.shape[0]),
        url_state.whole_number("head", rows.shape[1]),
    )
    chosen = attention_row.MEAN if layer is None or head is None else f"{layer}.{head}"
    st.subheader(
        "Attention of the newest token",
        anchor=False,
        help="The last row of every head’s attention matrix. The prediction of the next token is "
        "computed from the newest token’s vector.",
    )
    tones = ["said" if at >= draft.n_prompt else "" for at in range(len(tokens))]
    token = cache.picture_name(recording, "newest", st.session_state.said, chosen)
    attention_row.show(
        attention_row.payload(rows, tokens, tones, chosen=chosen, who=tokens[-1], token=token),
        "newest",
        on_choice=take_named("newest", "row"),
    )
    with_table(
        predictions.attention_columns(rows, tokens),
        caption(recording, "Attention of the newest token, one column per head"),
        f"headlight-{recording.model.name}-newest",
        "As a table",
    )


def kept(recording: Recording, draft: jobs.Draft) -> None:
    """The keys and values that are stored, and what that saves."""
    model, n, store = recording.model, len(draft.writing.ids), draft.writing.stored
    st.subheader(
        "What is kept from step to step?",
        anchor=False,
        help="A token’s keys and values never change, because no token sees a later one. So they "
        "are computed once and kept: the KV cache.",
    )
    size = f", {store.nbytes / 1024:,.1f} KiB" if store.nbytes else ""
    st.progress(n / model.n_positions, f"{n} of {model.n_positions} tokens{size}")
    if not store.nbytes:
        st.markdown(predictions_text.NO_CACHE)
        return
    shared = predictions_text.shared_keys(model.n_head, store.n_head)
    st.markdown(
        f"Every layer keeps 2 × {store.n_head} heads × {n} tokens × {store.d_head} numbers, the "
        f"keys and the values{shared}. In {plural(model.n_layer, 'layer')} and 4 bytes a number "
        f"that is **{store.nbytes:,} bytes**."
    )
    st.markdown(predictions_text.cache(n, draft.n_prompt, len(draft.tokens)))
