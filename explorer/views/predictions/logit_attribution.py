"""The tab Attribution: a word's logit at one token as a sum, and the neurons of one FFN."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import head_naming, logit_lens, predictions
from explorer.analysis.attention import argmax_id, numbered
from explorer.analysis.formatting import signed
from explorer.layout import output
from explorer.panels import attention as attention_panels
from explorer.panels import attribution
from explorer.panels.selection import StreamSelection, predicted
from explorer.state import cache, models, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from explorer.views.predictions.page_state import keep_hidden, way_to
from models.edits import HideToken
from models.recording import Recording
from models.results import Attribution, Part


def show(source: Run, place: int | None) -> None:
    """The parts of the logit, the selected head with the way to it, and the neurons."""
    at = predicted(source, place)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        token_field(source, at)
        word, against = word_field("word", "Word", at), word_field("against", "Compared with", at)
    state = st.session_state
    make = partial(attribution.logit, source, at.token, word, against, state.part)
    if output.show_panel(make, "parts", take_part) is None:
        return
    id = argmax_id(at.logits) if word is None else word
    decomposition = cache.attribution(at.recording, at.stream.name, at.token, id, against)
    heads = {logit_lens.part_key(part): part for part in decomposition.parts if part.kind == "head"}
    if part := heads.get(state.part):
        named_head(at.recording, part, at.token)
    show_neurons(source, at, decomposition, word, against)


def show_neurons(
    source: Run,
    at: StreamSelection,
    decomposition: Attribution,
    word: int | None,
    against: int | None,
) -> None:
    """The neurons of the FFN of the address, or of the one that contributes most."""
    parts = logit_lens.ffns(decomposition)
    if not parts:
        return
    chosen = url_state.whole_number("ffn", max(parts) + 1)
    layer = chosen if chosen in parts else logit_lens.strongest_ffn(decomposition)
    st.session_state["ffn field"] = layer
    st.selectbox(
        "FFN of layer",
        list(parts),
        key="ffn field",
        format_func=lambda each: f"Layer {each}: {signed(parts[each].value)}",
        on_change=take_layer,
        width=240,
    )
    neuron = url_state.whole_number("neuron", at.recording.model.n_vocab)
    make = partial(attribution.neurons, source, at.token, layer, word, against, neuron)
    output.show_panel(make, "neurons")


def token_field(source: Run, at: StreamSelection) -> None:
    """The token whose prediction is opened."""
    st.session_state["token field"] = at.token
    hidden = tuple(edit.token for edit in source.edits if isinstance(edit, HideToken))
    st.selectbox(
        "Token",
        range(len(at.stream.tokens)),
        key="token field",
        format_func=numbered(at.stream.tokens).__getitem__,
        on_change=take_token,
        args=(hidden,),
        width=240,
    )


def take_token(hidden: tuple[int, ...]) -> None:
    """Another token; its own prediction is opened."""
    state = st.session_state
    state.token, state.word, state.against = str(state["token field"]), "", ""
    keep_hidden(hidden)


def take_layer() -> None:
    """Another FFN: its strongest neuron is opened."""
    state = st.session_state
    state.ffn, state.neuron = str(state["ffn field"]), ""


def take_part() -> None:
    """A press on an FFN opens its neurons."""
    state = st.session_state
    if state.part.startswith("ffn."):
        state.ffn, state.neuron = state.part.removeprefix("ffn."), ""


def word_field(name: str, label: str, at: StreamSelection) -> int | None:
    """A field that offers the model's most likely words and takes any other. The id chosen, None
    where it is left as it is."""
    state = st.session_state
    ids = [word.id for word in predictions.top_words(predictions.distribution(at.logits))]
    words = models.labels(at.recording.model.name, ids)
    options = {"": f"the prediction: {words[0]}" if name == "word" else "none"} | {
        f"#{id}": f"{place}. {word}" for place, (id, word) in enumerate(zip(ids, words), 1)
    }
    chosen = url_state.whole_number(name, at.recording.model.n_vocab)
    if chosen is not None:
        spelled = models.labels(at.recording.model.name, [chosen])[0]
        options.setdefault(f"#{chosen}", f"{spelled} (word {chosen})")
    state[f"{name} field"] = "" if chosen is None else f"#{chosen}"
    st.selectbox(
        label,
        list(options),
        key=f"{name} field",
        format_func=lambda value: options.get(value, value),
        accept_new_options=True,
        on_change=take_typed,
        args=(name, at.recording.model.name, tuple(options)),
        help="One of the ten most likely words here, or type any other.",
        width=240,
    )
    typed, n, id = state.get(f"{name} typed", ("", 0, None))
    if typed and id == chosen:
        st.caption(how_typed(at.recording.model.name, typed, n, id))
    return chosen


def how_typed(model: str, typed: str, n: int, id: int | None) -> str:
    """Sentence on a typed word as the model's tokens: its first token, of n."""
    if id is None:
        return "There is no token in what was typed."
    first = literal(models.labels(model, [id])[0])
    if n == 1:
        return f"Read as the token **{first}**."
    return (
        f"“{literal(typed[:60])}” is {n:,} tokens to this model; the first, **{first}**, is taken."
    )


def take_typed(name: str, model: str, options: tuple[str, ...]) -> None:
    """Store what was chosen in the field; of a text that was typed, its first token."""
    state = st.session_state
    value = state[f"{name} field"] or ""
    state[f"{name} typed"] = "", 0, None
    if value in options:
        state[name] = value[1:]
        return
    id, n = models.first_token(model, value) or (None, 0)
    state[name] = "" if id is None else str(id)
    state[f"{name} typed"] = value, n, id


def named_head(recording: Recording, part: Part, token: int) -> None:
    """The head whose bar was chosen: what it is called on this text, and the way to its picture."""
    attention = next(one for one in recording.attention if one.name == part.attention)
    cross = part.attention == "cross"
    words = f"**Layer {part.layer}, head {part.head}**{' of the cross-attention' * cross}"
    if attention.query == attention.key:
        heads = attention_panels.named_heads(recording, attention)
        head = heads[part.layer * recording.model.n_head + part.head]
        meaning = head_naming.meanings(recording, attention)[head.name].rstrip(".")
        words += f" is called **{head.name}** on this text. {meaning}"
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(f"{words}. It contributes {signed(part.value, 3)}.", width="content")
        if cross:
            where = f"{part.layer}.{part.head}"
            way_to("translation", "Open in Translate", recording, cross=where)
            return
        at: dict[str, object] = {"layer": part.layer, "head": part.head, "token": token}
        if attention is not recording.attention[0]:
            at["attention"] = attention.name
        way_to("attention", "Open in Attention", recording, **at)
