"""What a recording is opened on: its findings, made once, and the step to one of them."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import attention as numbers
from explorer.analysis import coreference
from explorer.analysis import heads as naming
from explorer.analysis.finding import Finding
from explorer.analysis.findings import findings, strongest_link
from explorer.analysis.findings_links import Link, is_trained
from explorer.analysis.findings_stream import Answer
from explorer.memory import background, models, passes, shelf
from explorer.memory.turns import TooLong
from models.recording import Attention, Recording

# Tokens up to which the answer is asked for: a lens over a vocabulary takes long on a long text.
ASKED_UP_TO = 64
MOST_TOKENS = 128  # up to which every page opens on the word that the first page opens on
HEAD_BYTES = 1100  # what a head's name takes with all that speaks for it
FINDING_BYTES = 500  # what a finding takes
# What a reader chooses of an attention: with one of these a page opens on that.
CHOSEN = ("attention", "layer", "head", "token", "source", "anatomy_cell")


def found(recording: Recording) -> tuple[Finding, ...]:
    """The findings of a recording, the most telling first, kept beside it."""
    return shelf.derived(
        recording,
        "findings",
        lambda: _find(recording),
        weigh=lambda found: FINDING_BYTES * len(found),
    )


def is_found(recording: Recording) -> bool:
    """True where the findings of a recording are made."""
    return shelf.is_derived(recording, "findings")


def _find(recording: Recording) -> tuple[Finding, ...]:
    after = ""
    if any(one.query != one.key for one in recording.attention):
        after = following(recording, recording.attention[-1].query)
    named = {one.name: named_heads(recording, one) for one in recording.attention}
    return findings(recording, after, _answer(recording), named, learned(recording))


def named_heads(recording: Recording, attention: Attention) -> tuple[naming.Head, ...]:
    """Every head of an attention with its name on this text, kept beside the recording."""
    return shelf.derived(
        recording,
        (attention.name, "heads", measured(recording)),
        lambda: naming.describe(recording, attention),
        weigh=lambda named: HEAD_BYTES * len(named),
    )


def measured(recording: Recording) -> bool:
    """True where it is known which heads of the model find a pronoun's noun. Of an opened model
    that has learned it is measured in the background, once."""
    card = recording.model
    if coreference.is_measured(card.fingerprint):
        return True
    if not models.is_borrowed(card.name) or not learned(recording):
        return False
    texts = tuple(coreference.sentences())
    reading = background.through(card.name, texts, "pronouns", coreference.read)
    if reading.finished:
        coreference.remember(card.fingerprint, coreference.heads(reading.latest))
        return True
    reading.go_on()
    return False


def learned(recording: Recording) -> bool:
    """True where the heads show that they were learned, kept beside the recording."""
    return shelf.derived(recording, "learned", lambda: is_trained(recording))


def link(recording: Recording, attention: Attention, head: naming.Head) -> Link | None:
    """The word that attends most plainly to another in one head, kept beside the recording; None of
    a head without one, and of weights that were not learned."""
    if not learned(recording):
        return None
    what = (attention.name, "link", head.layer, head.head)
    return shelf.derived(recording, what, lambda: strongest_link(recording, attention, head))


def following(recording: Recording, stream: str) -> str:
    """What the model would say after the last token of a stream."""
    last = len(recording.stream(stream).tokens) - 1
    likeliest = numbers.likeliest(passes.logits(recording, stream, last))
    return next(iter(models.labels(recording.model.name, [likeliest])))


def _answer(recording: Recording) -> Answer | None:
    """What a decoder says next, through its layers; None for other models and long texts."""
    stream = recording.streams[-1]
    n = len(stream.tokens)
    wanted = recording.model.kind == "decoder" and 1 < n <= ASKED_UP_TO
    if not wanted or models.offers(recording.model.name).logits != stream.name:
        return None
    try:
        lens = passes.lens(recording, stream.name)
        id = int(lens.final_id[n - 1])
        said = next(iter(models.labels(recording.model.name, [id])))
        return Answer(lens, n - 1, said, passes.attribution(recording, stream.name, n - 1, id))
    except TooLong:
        raise
    except ValueError:  # a model whose logits cannot be read or taken apart
        return None


def first(recording: Recording, attention: Attention) -> Finding | None:
    """The finding that an attention is opened on: its strongest one that is seen in a head."""
    return next(
        (
            one
            for one in found(recording)
            if one.page == "attention" and one.attention == attention.name
        ),
        None,
    )


def word(recording: Recording, attention: Attention) -> int | None:
    """The word that an attention's strongest finding is about, as its row; None where there is
    none, and of a long text, whose findings would keep a page waiting."""
    if len(recording.stream(attention.query).tokens) > MOST_TOKENS:
        return None
    one = first(recording, attention)
    return one.query if one is not None and one.query >= 0 else None


def choose_attention(recording: Recording) -> None:
    """Where nothing is chosen yet: of several attentions the one that the strongest finding is seen
    in. Of one the findings are made later, when the grid is on its way to the browser."""
    if not any(st.session_state[name] for name in CHOSEN):
        st.session_state.attention = telling_attention(recording)


def telling_attention(recording: Recording) -> str:
    """Of several attentions the one that the strongest finding is seen in, as the address calls it;
    "" for the first."""
    if len(recording.attention) == 1:
        return ""
    one = next((one for one in found(recording) if one.page == "attention"), None)
    return dict(one.address)["attention"] if one else ""


def take(one: Finding) -> None:
    """Go to what shows a finding: put its address into the session. For a callback, or before a
    step to another page."""
    state = st.session_state
    state.acted = True
    state.anatomy_cell = ""
    state.att_word = "none" if one.query < 0 else ""
    for name, value in one.address:
        state[name] = value
    if one.page == "attention" and one.query >= 0 and one.keys:
        state.anatomy_cell = f"{one.query}.{one.keys[0]}"
