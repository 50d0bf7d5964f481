"""Class: a class that follows its teacher, and ten questions on the sentence, for oneself or for
the class."""

from __future__ import annotations

import hashlib
from urllib.parse import urlencode

import streamlit as st

from explorer.analysis import way
from explorer.analysis.question import Question
from explorer.analysis.questions import questions
from explorer.components import classroom
from explorer.components import questions as component
from explorer.components.questions import Item
from explorer.frame import onscreen, opening
from explorer.memory import address, models, passes, shelf
from explorer.sentences import questions as sentences
from explorer.sentences.questions_sheet import sheet
from models.recording import Recording

SAID = 6  # likeliest words that a question may show
LONGEST = 400  # tokens of a text that is asked about


def page() -> None:
    """The page: the class, then the questions."""
    st.title("A class that follows", anchor=False)
    classroom.show()
    recording = onscreen.shown(target=onscreen.typed_target(st.session_state.model)).recording()
    asked = made(recording)
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.header(
            f"{len(asked)} questions on this sentence" if asked else "Questions",
            anchor=False,
            width="content",
        )
        if asked:
            st.download_button(
                "Sheet to print",
                sheet(asked, recording.text, *named(recording)),
                "headlight-questions.html",
                "text/html",
                on_click="ignore",
                icon=":material/print:",
            )
    if not asked:
        st.caption(
            "This text gives no questions: it is too short, or too long "
            f"(more than {LONGEST} tokens)."
        )
    component.show([item(one, recording) for one in asked], token(asked))
    address.write()


def made(recording: Recording) -> tuple[Question, ...]:
    """The questions on a recording, made once and kept beside it."""
    if sum(len(each.tokens) for each in recording.streams) > LONGEST:
        return ()
    return shelf.derived(recording, "questions", lambda: _make(recording))


def _make(recording: Recording) -> tuple[Question, ...]:
    stream = recording.streams[-1].name
    two = len(recording.streams) > 1
    after = opening.following(recording, recording.attention[-1].query) if two else ""
    return questions(recording, opening.found(recording), after, likeliest(recording, stream))


def likeliest(recording: Recording, stream: str) -> list[tuple[str, float]]:
    """What a decoder would say next, with probabilities; nothing for other models."""
    writes = recording.model.kind == "decoder" and len(recording.streams[-1].tokens) > 1
    if not writes or models.offers(recording.model.name).logits != stream:
        return []
    scores = passes.logits(recording, stream, len(recording.streams[-1].tokens) - 1)
    best, p = way.likeliest(scores, SAID)
    return list(zip(models.labels(recording.model.name, best), map(float, p)))


def item(one: Question, recording: Recording) -> Item:
    """A question as it is shown."""
    return Item(
        sentences.ask(one),
        tuple(map(sentences.choice, one.choices)),
        tuple(sentences.measured(one, each) for each in one.choices),
        one.right,
        sentences.says(one),
        evidence(one),
    )


def evidence(one: Question) -> str:
    """The address that shows what a question is about, on the text and model of this page."""
    kept = {
        name: value
        for name, value in address.wanted().items()
        if name in ("text", "model", "target")
    }
    query = urlencode(kept | {name: value for name, value in one.address if value})
    return f"/{'' if one.page == 'attention' else one.page}{'?' + query if query else ''}"


def named(recording: Recording) -> tuple[str, str]:
    """A model's name and its weights'."""
    return models.title(recording.model.name), recording.model.fingerprint


def token(asked: tuple[Question, ...]) -> str:
    """The name of a set of questions."""
    return hashlib.sha256(repr(asked).encode("utf-8", "replace")).hexdigest()[:12]


page()
