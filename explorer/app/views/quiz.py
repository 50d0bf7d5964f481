"""The questions on a text, for oneself or for a class: ten of them, or a game against the model, in
which each word that it predicts and each word that a head chooses is guessed first."""

from __future__ import annotations

import hashlib
import re
from functools import partial
from typing import Annotated, Any

import streamlit as st

from explorer.analysis import predictions, quiz
from explorer.analysis.measure import MeasureContext
from explorer.analysis.quiz import questions
from explorer.analysis.quiz_question import Question
from explorer.analysis.quiz_reasons import picture
from explorer.app import mounts
from explorer.app.layout.controls import bind
from explorer.app.mounts import QuizItem
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.panels import card
from explorer.panels.choice import Choice, as_taken, declared
from explorer.panels.selection import select
from explorer.text import places
from explorer.text.formulas import formula_lines
from explorer.text.quiz import ON_SHEET, ask, choice, measured, says, sheet
from explorer.wording.templates import named, sentences
from models import model_names
from models.contract.recording import Recording
from models.runtime.caching import kept, loaded
from models.runtime.run import Run, run_of

WORDS = sentences("classroom", "tab")

N_LIKELIEST = 6  # likeliest words that a question may show
LONGEST = 400  # tokens of a text that is asked about
GAMES = named("classroom", "games")
ANSWERED = re.compile(
    r"([0-9a-f]{6})\.([A-F-]*)"
)  # a set of questions, and a letter for each answer


def quiz_tab(
    run: Run,
    quiz: Annotated[str, Choice(tuple(GAMES), "Questions")] = "Ten",
    answered: Annotated[str, Choice(of="text", help=WORDS("answered"))] = "",
) -> None:
    """The questions on a run. quiz: which of them; answered: the answers so far."""
    recording = run.recording()
    items = questions_on(run, quiz)
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.segmented_control(
            "Questions",
            list(GAMES),
            format_func=GAMES.__getitem__,
            required=True,
            wrap=True,
            label_visibility="collapsed",
            **bind("quiz", "questions asked", quiz),
        )
        if items and quiz == "Ten":
            worksheet(run, items)
    if not items:
        st.caption(WORDS("no_questions", most=LONGEST))
    name = token(items)
    match = ANSWERED.fullmatch(answered)
    letters = match[2] if match and match[1] == name[:6] else ""
    drawn = [item(one, recording) for one in items]
    mounts.questions(drawn, name, letters, partial(take_answers, name[:6]))


url_state.declare(quiz_tab.__name__, *declared(quiz_tab))


def take_answers(name: str) -> None:
    """Put the answers of the reader into the address, where the score stands with them."""
    letters = visit.quiz_answers.get("answered")
    if isinstance(letters, str):
        st.session_state.answered = f"{name}.{letters}"


def worksheet(run: Run, items: tuple[Question, ...]) -> None:
    """The button for the printed page."""
    context = MeasureContext.of(run)
    st.download_button(
        "Print worksheet",
        sheet(items, context, model_names.title(run.model), _formulas(context)),
        "headlight-questions.html",
        "text/html",
        on_click="ignore",
        icon=":material/print:",
    )


@kept
def _formulas(context: MeasureContext) -> list[dict[str, Any]]:
    return formula_lines(ON_SHEET, context, {})


def head_in_question(recording: Recording) -> tuple[str, int, int] | None:
    """The attention, layer and head of the address, None where it names no head."""
    if not recording.attention:
        return None
    run = run_of(recording)
    chosen = as_taken(url_state.values(card.headline, run))
    layer, head = chosen["layer"], chosen["head"]
    if layer is None or head is None:
        return None
    return select(run, attention=chosen["attention"]).attention.name, layer, head


def questions_on(run: Run, game: str) -> tuple[Question, ...]:
    """The questions of a game on a run, made once and kept beside its recording; those on the head
    of the address first."""
    recording = run.recording()
    if sum(len(each.tokens) for each in recording.streams) > LONGEST:
        return ()
    first = head_in_question(recording) if game == "Heads" else None
    return _questions(MeasureContext.of(run), game, first)


@kept
def _questions(
    context: MeasureContext, game: str, first: tuple[str, int, int] | None
) -> tuple[Question, ...]:
    recording = context.recording
    if game != "Ten":
        return quiz.guesses(context, game == "Heads", first)
    stream = recording.streams[-1].name
    two = len(recording.streams) > 1
    after = context.next_token_label(recording.attention[-1].query) if two else ""
    return questions(context, context.findings(), after, likeliest(recording, stream))


def likeliest(recording: Recording, stream: str) -> list[tuple[str, float]]:
    """Most likely next words of a decoder, with probabilities; of a word of several tokens the
    word with its own. Nothing for other models, and where a word is too long to be followed to its
    end."""
    writes = recording.model.kind == "decoder" and len(recording.streams[-1].tokens) > 1
    if not writes or loaded(recording).capabilities.logits != stream:
        return []
    scores = loaded(recording).logits(recording, stream, len(recording.streams[-1].tokens) - 1)
    words = predictions.top_words(predictions.distribution(scores), most=N_LIKELIEST)
    labels = loaded(recording).labels([word.id for word in words])
    whole = loaded(recording).predicted_words(recording, [(word.id, word.own) for word in words])
    if any(each.cut for each in whole.values()):
        return []
    named = [
        (whole[word.id].word, whole[word.id].own) if word.id in whole else (label, word.own)
        for label, word in zip(labels, words)
    ]
    # Whatever is not listed is less likely than the last of the list.
    return sorted((each for each in named if each[1] >= words[-1].own), key=lambda each: -each[1])


def item(one: Question, recording: Recording) -> QuizItem:
    """A question as it is shown."""
    ranked = sorted(one.choices, key=lambda each: -each.value)
    return QuizItem(
        ask(one),
        tuple(choice(one, each) for each in one.choices),
        tuple(measured(one, each) for each in one.choices),
        one.right,
        says(one),
        evidence(one),
        tuple(each.picture for each in one.choices) if one.answer.picture else (),
        one.covers,
        tuple((choice(one, each), each.value) for each in ranked) if one.covers else (),
        head_pattern(one, recording) if one.shows_head else "",
    )


def head_pattern(one: Question, recording: Recording) -> str:
    """The pattern of a question's head."""
    attention = next(each for each in recording.attention if each.name == one.attention)
    return picture(attention.pattern[one.layer, one.head])


def evidence(one: Question) -> str:
    """The address that shows what a question is about, on the text and model of this page."""
    cause = {
        name: value
        for name, value in url_state.link_parameters().items()
        if name in ("text", "model", "target")
    }
    return places.address(one.page, cause | {name: value for name, value in one.address if value})


def token(items: tuple[Question, ...]) -> str:
    """The name of a set of questions."""
    return hashlib.sha256(repr(items).encode("utf-8", "replace")).hexdigest()[:12]
