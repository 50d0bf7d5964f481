"""One word's logit at one token, taken apart into what each part of the model wrote."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import head_naming, logit_lens, residual
from explorer.analysis.caption import caption
from explorer.analysis.formatting import signed
from explorer.analysis.terminology import norm_name, recording_norm_name
from explorer.components import bars
from explorer.components.logit_lens import show_sum, sum_up
from explorer.layout import controls, export_menu
from explorer.layout.output import with_table
from explorer.state import cache, models, url_state
from explorer.text.logit_lens import ATTRIBUTION, bent, logit, not_followed, row_of, taken_apart
from explorer.text.markdown_escape import literal
from explorer.views.predictions.logit_lens import LensSelection, readout_of
from explorer.views.predictions.page_state import way_to
from models.recording import Recording
from models.results import Attribution, Part

MOST_PARTS = 14  # bars of a logit that are shown at once


def show(on: LensSelection) -> Attribution | None:
    """The word, its logit, and the parts that add up to it; None where it has none."""
    st.subheader("What made it say that?", anchor=False, help=ATTRIBUTION)
    if why := models.capabilities(on.model).no_parts:
        st.info(
            f"A logit of {literal(models.title(on.model))} cannot be taken apart into a sum: "
            f"{why}. The lens above reads every state."
        )
        return None
    left, right, _ = st.columns(3)
    with left:
        word = word_field("word", "The word", on)
    with right:
        against = word_field("against", "Compared with", on)
    word = int(on.found.final_id[on.token]) if word is None else word
    if against == word:
        st.info(
            "A word compared with itself leaves nothing to explain. Choose another word, or "
            "nothing."
        )
        return None
    try:
        taken = cache.attribution(on.recording, on.stream.name, on.token, word, against)
    except ValueError as why:
        st.info(f"This logit cannot be taken apart: {literal(str(why))}.")
        return None
    total, label = logit_lens.parts_sum(taken), literal(on.stream.tokens[on.token])
    where = f"**{label}** (token {on.token}, chosen in the table above)"
    st.markdown(logit(taken.logit, total, len(taken.parts), words_of(on, taken), where))
    pictured(on, taken, total)
    heads = {logit_lens.part_key(part): part for part in taken.parts if part.kind == "head"}
    if part := heads.get(st.session_state.part):
        named_head(on.recording, part, on.token)
    n_norms = logit_lens.n_norms(on.recording)
    whole = {part.kind for part in taken.parts}
    row = row_of(readout_of(on.model))
    how = taken_apart(n_norms, residual.has_residual(on.stream), called(on), row)
    if "transform" in whole:
        how += bent(taken.explained)
    st.markdown(how + not_followed(whole))
    asked = f"{on.stream.name!r}, {on.token}, {word}, {against}"
    export_menu.offer_more_code(
        ("logit_lens",),
        f"taken = model.attribute(recording, {asked})",
        "parts = logit_lens.parts_file(taken)",
    )
    with_table(
        logit_lens.parts_file(taken),
        about(on, taken),
        f"headlight-{on.model}-logit-parts",
        f"All {len(taken.parts)} parts as a table",
        form="%.6f",
    )
    return taken


def called(on: LensSelection) -> str:
    """What the model's norms are called, as they were in this recording."""
    offered = models.capabilities(on.model)
    if not offered.weights:
        return recording_norm_name(on.recording, offered.rms)
    norms = cache.norms(on.recording, on.stream.name)
    return (
        norm_name(each[3] for each in norms.values())
        if norms
        else recording_norm_name(on.recording, offered.rms)
    )


def pictured(on: LensSelection, taken: Attribution, total: float) -> None:
    """The sum in the order of the network, and every part by its size."""
    name = taken.token, taken.id, taken.against
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Adding up, in the order of the network**")
        groups = [(group.name, group.value) for group in logit_lens.groups(taken)]
        data = sum_up(groups, total, cache.picture_name(on.recording, "sum", *name))
        show_sum(data, "sum of parts")
    with right:
        named = any(part.kind == "head" for part in taken.parts)
        opened = ", an FFN to open it" if models.capabilities(on.model).weights else ""
        more = f" Choose a head to see what it is{opened}." if named else ""
        st.markdown(f"**Every part, the strongest first.**{more}")
        listed(on.recording, taken)


def words_of(on: LensSelection, taken: Attribution) -> tuple[str, str]:
    """The word and the one it is compared with, "" for none."""
    if taken.against is None:
        return models.labels(on.model, [taken.id])[0], ""
    one, other = models.labels(on.model, [taken.id, taken.against])
    return one, other


def about(on: LensSelection, taken: Attribution) -> tuple[str, ...]:
    """What the table says when it stands alone."""
    one, other = words_of(on, taken)
    less = f" less that of “{other}”" if other else ""
    where = f"at token {taken.token}, “{on.stream.tokens[taken.token]}”"
    title = f"logit of “{one}”{less} {where}"
    return caption(on.recording, title)


def word_field(name: str, label: str, on: LensSelection) -> int | None:
    """A field that offers the model's likeliest words and takes any other. The id chosen, None
    where it is left as it is."""
    state, ids = st.session_state, [int(id) for id in on.found.top_ids[-1, on.token]]
    words = models.labels(on.model, ids)
    options = {"": f"the model’s answer: {words[0]}" if name == "word" else "nothing"} | {
        f"#{id}": f"{at}. {word}" for at, (id, word) in enumerate(zip(ids, words), 1)
    }
    chosen = url_state.whole_number(name, on.recording.model.n_vocab)
    if chosen is not None:
        spelled = models.labels(on.model, [chosen])[0]
        options.setdefault(f"#{chosen}", f"{spelled} (word {chosen})")
    state[f"{name} field"] = "" if chosen is None else f"#{chosen}"
    st.selectbox(
        label,
        list(options),
        key=f"{name} field",
        format_func=lambda value: options.get(value, value),
        accept_new_options=True,
        on_change=take_typed,
        args=(name, on.model, tuple(options)),
        help="One of the model’s ten likeliest words here; or type any other.",
    )
    typed, n, id = state.get(f"{name} typed", ("", 0, None))
    if typed and id == chosen:
        st.caption(how_typed(on.model, typed, n, id))
    return chosen


def how_typed(model: str, typed: str, n: int, id: int | None) -> str:
    """What a typed word is to the model: its first token, of n."""
    if id is None:
        return "There is no token in what was typed."
    first = literal(models.labels(model, [id])[0])
    if n == 1:
        return f"Read as the token **{first}**."
    return (
        f"“{literal(typed[:60])}” is {n:,} tokens to this model; the first, **{first}**, is taken."
    )


def take_typed(name: str, model: str, options: tuple[str, ...]) -> None:
    """What was chosen in the field; of a text that was typed, its first token."""
    state = st.session_state
    value = state[f"{name} field"] or ""
    state[f"{name} typed"] = "", 0, None
    if value in options:
        state[name] = value[1:]
        return
    id, n = models.first_token(model, value) or (None, 0)
    state[name] = "" if id is None else str(id)
    state[f"{name} typed"] = value, n, id


def listed(recording: Recording, taken: Attribution) -> None:
    """The parts as bars, the strongest first; those that are left out are one bar."""
    parts, chosen = logit_lens.largest_parts(taken), st.session_state.part
    every = len(parts) <= MOST_PARTS or st.toggle(f"All {len(parts)} parts", key="every part")
    shown = [
        part
        for at, part in enumerate(parts)
        if every or at < MOST_PARTS or (chosen and logit_lens.part_key(part) == chosen)
    ]
    rows = [
        bars.Bar(
            logit_lens.part_name(part),
            part.value,
            (signed(part.value, 3),),
            logit_lens.part_key(part),
        )
        for part in shown
    ]
    if rest := [part.value for part in parts if part not in shown]:
        value = sum(rest)
        rows.append(bars.Bar(f"{len(rest)} weaker ones", value, (signed(value, 3),), tone="rest"))
    data = bars.payload(
        rows,
        ("contribution",),
        about="Parts of the logit, the strongest first.",
        token=cache.picture_name(
            recording, "parts", taken.token, taken.id, taken.against, every, chosen
        ),
        chosen=chosen,
        action="names the head, or opens the FFN",
        signed=True,
    )
    bars.show(data, "parts", on_choice=take_part)


def take_part() -> None:
    """A click on a head's bar names it, a second click lets it go. An FFN's is opened below."""
    state = st.session_state
    chosen = state.parts.get("row") or ""
    state.part = "" if chosen == state.part else chosen
    if chosen.startswith("ffn."):
        state.ffn, state.neuron = chosen.removeprefix("ffn."), ""


def named_head(recording: Recording, part: Part, token: int) -> None:
    """The head whose bar was chosen: what it is called on this text, and the way to its picture."""
    attention = next(one for one in recording.attention if one.name == part.attention)
    cross = part.attention == "cross"
    words = f"**Layer {part.layer}, head {part.head}**{' of the cross-attention' * cross}"
    if attention.query == attention.key:
        heads = controls.named_heads(recording, attention)
        head = heads[part.layer * recording.model.n_head + part.head]
        meaning = head_naming.meanings(recording, attention)[head.name].rstrip(".")
        words += f" is called **{head.name}** on this text. {meaning}"
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        st.markdown(f"{words}. Here it put in {signed(part.value, 3)}.", width="content")
        if cross:
            where = f"{part.layer}.{part.head}"
            way_to("translation", "Open it on the Translation page", recording, cross=where)
            return
        at: dict[str, object] = {"layer": part.layer, "head": part.head, "token": token}
        if attention is not recording.attention[0]:
            at["attention"] = attention.name
        way_to("attention", "Open it on the Attention page", recording, **at)
