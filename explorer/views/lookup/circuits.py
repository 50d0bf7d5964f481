"""Words in, words out: what a head's weights alone say, QK and OV, of a word of the sentence or any
other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from explorer.analysis import soft_lookup
from explorer.analysis.attention import numbered
from explorer.analysis.formatting import signed
from explorer.components import bars
from explorer.layout.output import with_table
from explorer.state import cache, models, url_state
from explorer.text.markdown_escape import literal
from explorer.text.soft_lookup import HERE, LEFT_OUT, NOT_SHOWN, OTHER_READOUT, TWO, copied
from explorer.views.lookup.page_state import LookupState, ignore

AS = {"Bare": "The bare word", "Here": "As it stands here"}
MOST = 8


def show(shown: LookupState) -> None:
    """Whom a word looks for, and what a word that is looked at hands over."""
    on, model = shown.on, shown.on.recording.model.name
    if not models.shows_writes(on.recording):
        st.info(NOT_SHOWN.format(models.markdown_name(model)))
        return
    first = st.container()
    with first.container(key="after-words"):  # on a phone behind the lists
        st.markdown(TWO)
        typed, place, here = controls(shown)
    asks = on.recording.stream(on.attention.query).ids
    query = typed if typed is not None else int(asks[min(shown.query, len(asks) - 1)])
    looked_at = int(on.recording.stream(on.attention.key).ids[place])
    key = typed if typed is not None else looked_at
    at = shown.layer, shown.head
    ids = soft_lookup.text_words(on.recording, on.attention, (query, key))
    of = cache.bare_circuits(on.recording, on.attention.name, at, ids)
    left, right = first.columns(2, gap="large")
    with left:
        looks_for(shown, of, ids.index(query))
    with right:
        if here:
            stands = cache.circuits(on.recording, on.attention, at, (place,))
            hands_over(shown, stands, 0, (place, True))
        else:
            hands_over(shown, of, ids.index(key), (key, False))
    copies = soft_lookup.copy_counts(of)
    st.markdown(copied(copies, on.across))
    left_out = HERE if here else LEFT_OUT
    read = models.capabilities(model)
    plain = read.linear_readout and read.logits == on.attention.query
    st.caption(left_out + (OTHER_READOUT if not plain else ""))
    on.numbers(
        "this head’s circuits on bare words",
        ("soft_lookup",),
        f"ids = soft_lookup.text_words(recording, of, {(query, key)})",
        f"found = model.circuits(of.name, {shown.layer}, {shown.head}, ids)",
        "table = soft_lookup.circuit_table(found, model.labels)",
    )
    with_table(
        partial(soft_lookup.circuit_table, of, partial(models.labels, model)),
        on.caption(f"circuits of {shown.where} on bare words, W_E W_QK W_Eᵀ and W_E W_OV W_U"),
        on.file(f"L{shown.layer}H{shown.head}-circuits"),
        f"All {len(ids)} words as a table",
    )


def controls(shown: LookupState) -> tuple[int | None, int, bool]:
    """The id of a word that was typed, None for none; the key that is looked at; whether it is read
    as it stands here."""
    on, state = shown.on, st.session_state
    typed = url_state.whole_number("look_word", on.recording.model.n_vocab)
    keys = numbered(on.axes.keys)
    chosen = url_state.whole_number("look_key", len(keys))
    most = soft_lookup.most_looked_at(on.attention, *shown.at)
    place = most if chosen is None else chosen
    state["key looked at"] = place
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        st.selectbox(
            "Word looked at",
            range(len(keys)),
            format_func=keys.__getitem__,
            key="key looked at",
            on_change=take_key,
            width=220,
            disabled=typed is not None,
            help="Where none is chosen: the one that the query gives the largest weight.",
        )
        as_ = st.segmented_control(
            "Read it as",
            tuple(AS),
            key="look_as",
            format_func=AS.__getitem__,
            required=True,
            persist_state="session",
            disabled=typed is not None,
        )
        st.text_input(
            "Or any other word",
            key="typed word",
            on_change=take_word,
            args=(on.recording.model.name,),
            width=220,
            help="It takes the place of both words. Empty: those of the sentence again.",
        )
    if typed is not None:
        (label,) = models.labels(on.recording.model.name, [typed])
        st.caption(f"Read as the token **{literal(label)}**, as query and as key.")
    return typed, place, as_ == "Here" and typed is None


def take_key() -> None:
    """The key that was chosen."""
    st.session_state.look_key = str(st.session_state["key looked at"])


def take_word(model: str) -> None:
    """The first token of what was typed."""
    found = models.first_token(model, st.session_state["typed word"].strip())
    st.session_state.look_word = "" if found is None else str(found[0])


def looks_for(shown: LookupState, of: soft_lookup.Circuits, at: int) -> None:
    """The words that a word, as a query, scores highest: of the sentence, and of all."""
    (label,) = models.labels(shown.on.recording.model.name, of.ids[at : at + 1])
    st.markdown(f"**Whom does “{literal(label)}” look for?** (QK)")
    near = soft_lookup.nearest_words(of, at, MOST)
    st.caption("Of the words here:")
    listed(shown, (of.ids[near], of.among[at, near]), "score", ("among", int(of.ids[at])))
    st.caption("Of the whole vocabulary:")
    listed(shown, (of.key_ids[at], of.keys[at]), "score", ("keys", int(of.ids[at])))


def hands_over(
    shown: LookupState, of: soft_lookup.Circuits, at: int, what: tuple[int, bool]
) -> None:
    """The words that a word, looked at, makes the head raise most and lower most."""
    (label,) = models.labels(shown.on.recording.model.name, of.ids[at : at + 1])
    st.markdown(f"**What does “{literal(label)}” hand over?** (OV)")
    st.caption("Looked at with weight 1, it raises most:")
    listed(shown, (of.up_ids[at], of.up[at]), "logit", ("up", *what))
    st.caption("and lowers most:")
    listed(shown, (of.down_ids[at], of.down[at]), "logit", ("down", *what))
    st.markdown(
        f"{literal(label)} itself: {signed(float(of.own[at]), 3)}, rank "
        f"{int(of.own_rank[at]) + 1:,} of {shown.on.recording.model.n_vocab:,}."
    )


def listed(
    shown: LookupState,
    of: tuple[Sequence[int], Sequence[float]],
    column: str,
    what: tuple[object, ...],
) -> None:
    """Words as bars: ids and values."""
    labels = models.labels(shown.on.recording.model.name, of[0])
    rows = [
        bars.Bar(label, float(value), (signed(float(value), 3),))
        for label, value in zip(labels, of[1])
    ]
    data = bars.payload(
        rows,
        (column,),
        about=f"Words by their {column}, the strongest first.",
        token=shown.on.name("circuit", shown.layer, shown.head, *what),
        signed=True,
    )
    bars.show(data, f"circuit {what[0]}", on_choice=ignore)
