"""The map under the frame: what the sentence passes in this model, what each part added to the word
held, what is said now, and which head pushed it."""

from __future__ import annotations

from math import isnan

import streamlit as st

from explorer.analysis.lens import part_key, part_name
from explorer.analysis.numbers import signed
from explorer.analysis.way import Station, held, likeliest, pusher, stations
from explorer.components import way
from explorer.components.way import Said, Stop
from explorer.frame import onscreen, opening
from explorer.memory import models, passes
from explorer.memory.whole_words import whole_words
from models.recording import Recording

PAGES = {
    "words": "embeddings",
    "positions": "positions",
    "heads": "attention",
    "cross": "attention",
    "ffn": "residual",
}
# Which stops each page shows.
LIT = {
    "attention": ("heads", "cross"),
    "anatomy": ("heads", "cross"),
    "summaries": ("heads", "cross"),
    "lookup": ("heads",),
    "positions": ("positions",),
    "residual": ("heads", "cross", "ffn"),
    "embeddings": ("words",),
    "translation": ("cross",),
}
# Their names, and on a narrow screen, where a layer's first stop has its number.
LABELS = {
    "positions": ("+ positions", "+"),
    "heads": ("heads", ""),
    "cross": ("cross", ""),
    "ffn": ("FFN", ""),
}
SAID = {
    "words": "The words as vectors",
    "positions": "The position is added",
    "heads": "Layer {}: the heads look at other words",
    "cross": "Layer {}: the decoder looks at the source",
    "ffn": "Layer {}: the feed-forward network, each word by itself",
}
MOST = 14  # layers a row has room for; of deeper models every few are shown
NAMED = 16  # stops a row has room for with all their names; of more the first layer’s have theirs


def show(page: str) -> None:
    """The map of the text and model on screen, with the part that `page` shows lit."""
    state = st.session_state
    shown = state.get("on the map") if page == "translation" else None  # which has its own model
    target = onscreen.typed_target(state.model)
    recording = (shown or passes.Shown(state.model, state.text, (), target)).recording()
    stream, token = held(recording, str(state.get("token", "")) or _opened_on(recording))
    passed = stations(recording, stream, token)
    every = -(-recording.model.n_layer // MOST)
    passed = tuple(each for each in passed if each.layer < 0 or each.layer % every == 0)
    word = recording.stream(stream).tokens[token]
    named = len(passed) <= NAMED
    stops = [
        _stop(each, page, word if each.stream == stream else "the source", before, named)
        for before, each in zip((None, *passed), passed)
    ]
    about = f"The way of “{word}” through the model"
    way.show(stops, _said(recording, stream, token), page == "predictions", about, _go)


def _opened_on(recording: Recording) -> str:
    """The word that an encoder's first page opens on; "" where none is, and for other models."""
    if recording.model.kind != "encoder":
        return ""
    word = opening.word(recording, recording.attention[0])
    return "" if word is None else str(word)


def _stop(each: Station, page: str, word: str, before: Station | None, named: bool) -> Stop:
    says = SAID[each.what].format(each.layer)
    if not isnan(each.share):
        says += f". What it wrote for “{word}” is {each.share:.2f} of the vector’s length"
    begins = before is None or before.layer != each.layer or before.stream != each.stream
    label, short = LABELS.get(each.what, (word, word))
    if begins and each.layer >= 0:
        label, short = f"{each.layer} · {label}", f"{each.layer}"
    return Stop(
        label=label if named or each.layer == 0 or each.what == "words" else short,
        short=short,
        says=says,
        goal=PAGES[each.what] + (f":{each.layer}" if each.what in ("heads", "cross") else ""),
        bar=-1.0 if isnan(each.share) else min(1.0, each.share),
        lit=each.what in LIT.get(page, ()),
        gap=begins and before is not None,
    )


def _said(recording: Recording, stream: str, token: int) -> Said:
    """What the model says at a token, and which head pushed it there."""
    model = recording.model.name
    if models.offers(model).logits != stream:
        return Said()
    best, p = likeliest(passes.logits(recording, stream, token))
    labels = models.labels(model, best)
    whole = {}
    if token == len(recording.stream(stream).tokens) - 1 < opening.MOST_TOKENS:
        whole = whole_words(model, recording.text, (), list(zip(best, p)), most=1)
    words = [
        (whole[id].word if id in whole else label, own) for id, label, own in zip(best, labels, p)
    ]
    pieces = "".join(
        f". {each.word}: the probability is that of its first piece, {each.pieces[0]}"
        for each in whole.values()
    )
    if models.offers(model).no_parts:  # a logit that is no sum has no parts
        return Said(words, note=pieces)
    try:
        part = pusher(passes.attribution(recording, stream, token, best[0]))
    except ValueError:  # what a model in its own code was heard to write does not add up here
        part = None
    if part is None:
        return Said(words, note=pieces)
    says = f"{part_name(part)} pushed “{labels[0]}” most: {signed(part.value)} to its logit"
    head = f"L{part.layer} {'cross ' * (part.attention == 'cross')}H{part.head}"
    return Said(words, head, says, f"predictions:{token}:{part_key(part)}", pieces)


def _go() -> None:
    """The stop that was chosen: its page, opened on its layer, or on the head that pushed."""
    state = st.session_state
    page, _, rest = str(state["way"].get("goal") or "").partition(":")
    if page not in {*PAGES.values(), "predictions"}:
        return
    state.wanted_page = page
    if page == "predictions" and rest:
        state.token, _, state.part = rest.partition(":")
        state.word = state.against = ""
        if models.facts(state.model)["kind"] == "encoder":
            state.hidden = "none"  # the map reads the word in sight
    elif rest.isdecimal():
        state.layer = rest
