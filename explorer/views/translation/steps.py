"""The translation step by step, the list of hypotheses, and how the search grew."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import translation
from explorer.components import translation as translation_components
from explorer.state import cache, models, url_state
from explorer.text.markdown_escape import literal
from explorer.text.translation import CUT, beside, likely
from explorer.views.translation import search
from explorer.views.translation.page_state import TranslationState


def hypotheses(on: TranslationState) -> None:
    """The hypotheses as a list to choose from, where there is more than one."""
    held = on.search.steps[-1]
    if len(held) < 2:
        return
    texts = [models.decode(on.source.model, beam.ids) for beam in held]
    token = f"{on.place} {len(on.search.steps)} {texts}"
    penalties = [translation.penalty(beam) for beam in held]
    show(translation_components.beams(held, texts, penalties, on.place, token), "beam list")


def totals(on: TranslationState) -> None:
    """The sentence's own probability, and beside one's own words the model's."""
    best, said = on.search.steps[-1][0], on.said
    if not len(said.ids):
        return
    own = likely(said.logprob, on.end[1] if on.end else "")
    if on.forced is None:
        ending = CUT if on.search.finished and not on.end else ""
        st.markdown(f"**{literal(on.recording.target) or '(nothing)'}**  \n{own}.{ending}")
    elif tuple(map(int, said.ids)) == best.ids:
        st.markdown(f"**Your output:** {own}.  \nIt equals the model’s translation.")
    else:
        theirs, text = likely(best.logprobs), models.decode(on.source.model, best.ids)
        better = sum(said.logprob) > sum(best.logprobs) if best.done and on.end else None
        st.markdown(beside(own, theirs, literal(text), better))


def alignment(on: TranslationState) -> None:
    """The chips with lines, the alignment matrix and all heads small."""
    recording, said, says = on.recording, on.said, on.says
    encoder, decoder = recording.stream("encoder"), recording.stream("decoder")
    ids, _ = translation.produced_tokens(recording, on.end)
    # Of one's own words the last that was typed.
    newest = len(says) - bool(on.end) if on.forced is not None else 1
    step = (url_state.whole_number("step", len(says) + 1) or max(1, newest)) - 1
    texts = translation_components.Texts(
        encoder.tokens,
        translation.words(recording.text, encoder),
        decoder.tokens,
        says,
        translation.produced_words(recording, on.end is not None),
    )
    labels = [models.labels(recording.model.name, row) for row in (ids, *said.top_ids)]
    forced = on.forced is not None
    choices = translation_components.TokenOptions(
        said, labels[0], labels[1:], recording.model.n_vocab, forced
    )
    picture = on.picture()
    text = picture.token.partition(" ")[0]
    show(translation_components.steps(texts, choices, views(on), step, picture, text), "steps")


def views(on: TranslationState) -> translation_components.Views:
    """The cross-attention in all its views."""
    pattern = translation.cross_attention(on.recording).pattern
    layers, heads = pattern.shape[:2]
    names = translation.view_names(layers, heads)
    ids, says = translation.produced_tokens(on.recording, on.end)
    small = cache.cached_for(
        on.recording,
        ("cross, small", ids.tobytes()),
        lambda: translation.thumbnails(pattern[:, :, : max(1, len(says))]),
    )
    titles = [translation.view_title(each, layers, heads) for each in names]
    return translation_components.Views(
        names, titles, small, on.name, translation.attention_view(pattern, on.name), heads
    )


def tree(on: TranslationState) -> None:
    """How the beams grew."""
    steps = tuple(on.search.steps)
    labels = [models.labels(on.source.model, [beam.ids[-1] for beam in held]) for held in steps]
    token = f"{on.place} {len(steps)} {labels}"
    st.subheader("Beam search tree", anchor=False)
    start = on.recording.stream("decoder").tokens[0]
    show(translation_components.tree(steps, labels, start, on.place, token), "tree")


def show(data: bytes, key: str) -> None:
    """Draw one of these."""
    translation_components.show(data, key, take_step, take_view, take_beam)


def take_step() -> None:
    """The step that the reader came to; the address counts from 1."""
    st.session_state.step = str(int(st.session_state.steps["step"]) + 1)


def take_view() -> None:
    """The head or mean that was chosen."""
    st.session_state.cross = str(st.session_state.steps["view"])


def take_beam() -> None:
    """The hypothesis that was chosen; the address counts from 1."""
    st.session_state.beam = str(int(st.session_state["beam list"]["beam"]) + 1)
    search.forget_step()
