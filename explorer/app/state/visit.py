"""Keys of a reader's visit beside the choices of the address: every such key of Streamlit's session
state, named once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

import streamlit as st

from models.example_texts import DEFAULT_MODEL, OPENING_TEXT

Sent = Mapping[str, Any]  # by name, what a part of the page that is drawn in the browser sent last


@dataclass(frozen=True)
class ReplacedModel:
    """The chosen model, the one on the tab `page` instead, and the choices that belong to a text
    and to the chosen model, (name, value)."""

    model: str
    replacement: str
    page: str
    text: str
    chosen: tuple[tuple[str, str], ...]


@dataclass(init=False, repr=False, eq=False)
class Visit:
    """The keys of a visit, by their names in `st.session_state`, where each is read and written;
    one that is not there has its default. Widgets of these keys are read through it too."""

    # ---- what is on screen ----
    text: str = ""  # the text
    model: str = ""  # the model's name
    page: str = ""  # the tab
    tabs: dict[str, str] = field(default_factory=dict)  # the open tab of each place
    n_tokens: int | None = None  # of the text, for the log
    edits_in_frame: str = ""  # the edits that the frame names
    sentence_added: bool = False  # the text was just put among the sentences, which are read
    edits_left: tuple[str, ...] = ()  # the tab of a new text or model, what was edited and is yet
    playing: bool = False  # a model writes on by a clock
    answering: bool = False  # a model was asked, and writes its answer to the end

    # ---- what the next run does ----
    wanted_page: str = ""  # the tab to go to
    wanted_text: str | None = None  # the text to show
    wanted_model: str = ""  # the model to show
    acted: bool = False  # a press changed what the address says
    went: bool = False  # another tab of the place was opened
    play: bool = False  # the model is to write on
    whole_page: bool = False  # a part of the page asks for a run of the whole
    tab_of_press: str = ""  # the tab that a press in a panel leads to
    new_run: bool = False  # a press in a panel changed the text or the edits
    borrowing: bool = False  # the dialog for another model is open
    opening_file: bool = False  # the dialog for a recording is to open

    # ---- the address ----
    written: dict[str, str] | None = None  # parameters last written; None before
    begun: dict[str, str] | None = None  # parameters at the start of a run that has not ended
    replaced: tuple[dict[str, str] | None, float] = (None, 0.0)  # last replaced, and when (seconds)
    back: dict[str, str] | None = None  # parameters that a bare address stands for
    bare: dict[str, dict[str, str]] = field(default_factory=dict)  # the same, of each place
    linked: dict[str, str] = field(default_factory=dict)  # a link's choices that wait to be applied
    refusals: dict[str, str] = field(default_factory=dict)  # a link's choices that cannot be

    # ---- models ----
    last_model: str = ""  # the last one that could be used
    refused_model: str = ""  # why one cannot be used
    unknown_model: str = ""  # one that a link names and that is not here
    offered_model: str = ""  # one that a link names, to be fetched when the reader agrees
    offered_link: dict[str, str] = field(default_factory=dict)  # that link's parameters
    opened_models: tuple[str, ...] = ()  # those that the reader opened, in order
    opened_recordings: dict[str, Any] = field(default_factory=dict)  # by name, the latest last
    first_recording: tuple[str, str] = ("", "")  # text and name of the one that a visit opens on
    replaced_model: ReplacedModel | None = None  # one that does not fit the tab on screen
    replaced_text: tuple[str, str] = ("", "")  # text and model before a tab's own opening

    # ---- what was computed for this visit ----
    draft: Any = None  # the text in the making (jobs.draft) and its key
    training: Any = None  # the reader's own training (jobs.TrainingJob)
    live_stages: tuple[Any, dict[int, Any]] = (
        None,
        {},
    )  # measured of it by step, and on which text
    stopped_search: tuple[str, str, str] | None = None  # the search that the reader ended
    loop_of: str = ""  # the token of the card whose loop was asked for

    # ---- what a tab remembers ----
    toured: bool = False  # a lesson was begun, and is offered no more
    selection_drawn: tuple[Sequence[str], dict[str, int]] = ((), {})  # causes, selection of the bar
    typed_readings: dict[str, tuple[str, str]] = field(default_factory=dict)  # word and sentence
    before_lesson: tuple[str, str] = OPENING_TEXT, DEFAULT_MODEL  # where the end of one leads back
    own_lessons: dict[str, Any] = field(default_factory=dict)  # the reader's (lesson.Lesson)
    own_lesson: str = ""  # the name of the one that is open
    own_steps: tuple[int, ...] = ()  # names of its steps
    lessons_read: bool = False  # those that the browser keeps are known
    forgotten_lessons: tuple[str, ...] = ()  # those that it is to forget
    offered_lesson: Any = None  # one of a file, which the reader has not taken yet
    lesson_problem: str = ""  # why a file is no lesson
    sentences_cut: str = ""  # the sentences of a file that was too long
    sentences_unreadable: tuple[str, str] = ("", "")  # a file's name, and what the field had then

    # ---- widgets ----
    typed_text: Sent = field(default_factory=dict)  # the line of the text
    model_menu: bool = False  # open
    model_source: str = ""  # the name or folder of a model to open
    preset: str | None = None  # the example text that was pressed
    heads: Sent = field(default_factory=dict)  # the grid of heads
    one_head: Sent = field(default_factory=dict)  # the head's picture
    offers: Sent = field(default_factory=dict)  # what is known to change an answer
    vote: Sent = field(default_factory=dict)  # what the tested heads say of a pronoun
    selected_query: int = -1  # of the selection bar, -1 for every word
    selected_key: int = 0
    selected_layer: int = 0
    selected_head: int = 0
    comparison: str | None = None  # the suggestion that is on screen
    ablated_head: tuple = ()  # (layer, head, attention) of B; () for other edits
    ablation: str = "zero"  # how it is ablated
    experiment: str | None = None  # the experiment that is on screen
    edit_form: bool = False  # open
    edit_chips: Sequence[int] = ()  # the edits that stay
    sentences: str | None = None  # the field of Many sentences; None before it is drawn
    sentences_column: str = ""  # the column of a table that is read
    sentences_file: Sent = field(default_factory=dict)  # a file of sentences
    lesson_title: str = ""
    lesson_store: Sent = field(default_factory=dict)  # what the browser keeps of lessons
    lesson_address: str = ""  # of a page that becomes a step
    lesson_file: Sent = field(default_factory=dict)  # a file of a lesson
    lesson_order: Sent = field(default_factory=dict)  # a step that was dragged to another place
    lesson_cards: Sent = field(default_factory=dict)  # a card that no address leads to
    concept_cards: Sent = field(default_factory=dict)  # the same on the tab Concepts
    quiz_answers: Sent = field(default_factory=dict)  # the questions on the text


def _key(of: Field[Any]) -> property:
    """A field as what stands under its name in the session state."""
    name = of.name

    def read(_: Visit) -> Any:
        try:
            return st.session_state[name]
        except KeyError:
            return of.default if of.default_factory is MISSING else of.default_factory()

    def write(_: Visit, value: Any) -> None:
        st.session_state[name] = value

    return property(read, write)


KEYS = tuple(each.name for each in fields(Visit))
for each in fields(Visit):
    setattr(Visit, each.name, _key(each))

visit = Visit()  # the reader's whose run this is
