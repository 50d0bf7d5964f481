"""The tab Lessons: those that come with the app, and the reader's own, collected on any tab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import streamlit as st

from explorer.components import mounts
from explorer.components.mounts import CardGroup, LeadCard
from explorer.layout import current_recording, lesson_bar, navigation
from explorer.layout.tab import by_hand
from explorer.panels import lessons, worksheet
from explorer.panels.choice import FALSE, TRUE, Choice
from explorer.state import models, url_state
from explorer.state.settings import settings
from explorer.state.visit import visit
from explorer.text import lesson as lesson_text
from explorer.text import places
from explorer.text.lesson import Item, Lesson
from explorer.text.markdown_escape import literal
from explorer.text.templates import named, sentences
from models.run import Run

WORDS = sentences("lesson", "tab")
FIELDS = named("lesson", "fields")  # what is written about an item, by the name of its field
LONG_FIELDS = ("says", "note", "answer")
JSON = "application/json"


@by_hand("lessons")
@current_recording.tab(current_recording.only_text)
def lessons_tab(
    run: Run,
    my_lesson: Annotated[bool, Choice(help="the reader’s own lesson is open")] = False,
) -> None:
    """The tab Lessons. my_lesson: the reader's own is open, as it is where it has steps."""
    navigation.follow_press()
    names = lessons.names(run.recording().model.kind)
    is_open = my_lesson or bool(lesson_bar.own().items or visit.lesson_problem)
    minutes = [lessons.written()[name]["minutes"] for name in names]
    to = navigation.address_of("lessons", {"my_lesson": "" if my_lesson else TRUE})
    links = [(WORDS("close" if my_lesson else "own"), to)]
    title = WORDS("title", least=min(minutes), most=max(minutes))
    cards = [_card(run, name) for name in names]
    mounts.cards([CardGroup(title, cards, "tall", links)], "lesson_cards", partial(_begin, run))
    if is_open:
        st.header(WORDS("yours"), anchor=False)
        st.caption(WORDS("how"))
        _own_lesson()
        with st.container(horizontal=True, vertical_alignment="center", key="worksheets"):
            for name in names:
                label = WORDS("worksheet_of", title=lessons.written()[name]["title"])
                _worksheet(partial(lessons.on, run, name), name, label)


def _card(run: Run, name: str) -> LeadCard:
    """A lesson that comes with the app, which a press begins; why it cannot be where it cannot."""
    about = lessons.written()[name]
    picture = {"kind": "sign", "name": name, "words": about.get("sign", [])}
    card = LeadCard(name, about["title"], picture, says=about["about"])
    try:
        first, n = lessons.beginning(run, name)
    except ValueError as why:
        return replace(card, foot=str(why), is_there=False)
    foot = WORDS("size", n=n, minutes=about["minutes"])
    tab, choices = lesson_text.parts(first.address)
    to = places.address(tab, choices | _first_step(name)) if _fits(first) else ""
    return replace(card, foot=foot, to=to)


def _fits(item: Item) -> bool:
    """True where an address holds the text of a step."""
    tab, query = lesson_text.parts(item.address)
    return url_state.fits_address(url_state.text_and_model(query, tab)[0])


def _first_step(word: str) -> dict[str, str]:
    """The choices of the first step of a lesson. word: what the address calls it."""
    return {"lesson": word, "lesson_step": "1"}


def _begin(run: Run) -> None:
    """Begin the lesson whose card was pressed, or open the reader's own, where no address leads to
    it."""
    name = visit.lesson_cards["pick"]
    if not name:
        st.session_state.my_lesson = FALSE if st.session_state.my_lesson == TRUE else TRUE
    elif name in lessons.written():
        first, _ = lessons.beginning(run, name)
        tab, choices = lesson_text.parts(first.address)
        for choice, word in (choices | _first_step(name)).items():
            if choice in url_state.names():
                st.session_state[choice] = word
        visit.tab_of_press = tab


def _start(first: Item, word: str) -> None:
    """A link to the first step of a lesson. word: what the address calls it."""
    tab, query = lesson_text.parts(first.address)
    navigation.link(tab, WORDS("start"), query | _first_step(word), word)


def _worksheet(lesson: Callable[[], Lesson], name: str, label: str) -> None:
    """A press that makes the worksheet of a lesson, which is made then."""
    # What this visitor may open is known here, and not where the file is made.
    may_open = lambda name: models.is_allowed(models.canonical_name(name))
    most = settings().max_chars
    st.download_button(
        label,
        lambda: worksheet.document(worksheet.within(lesson(), most, may_open)),
        f"headlight-{name}.html",
        "text/html",
        key=f"worksheet {name}",
        type="tertiary",
        icon=":material/print:",
        on_click="ignore",
    )


# ---- the reader's own ----------------------------------------------------------------


def _own_lesson() -> None:
    """The items that were collected, in their order, and what can be done with them."""
    own = lesson_bar.own()
    if problem := visit.lesson_problem:
        visit.lesson_problem = ""
        st.warning(literal(problem))
    title = st.text_input(WORDS("name"), own.title, key="lesson_title", persist_state="session")
    if title != own.title:
        lesson_bar.keep(own := replace(own, title=title))
    with st.container(horizontal=True, vertical_alignment="center"):
        if own.items:
            word = lesson_bar.word_of(own)
            _start(own.items[0], word)
            st.download_button(
                WORDS("save"),
                own.json,
                "lesson.headlight.json",
                JSON,
                key="save lesson",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
            )
            _worksheet(lambda: own, "lesson", WORDS("worksheet"))
        mounts.file_reader(WORDS("load"), lesson_text.MOST_BYTES + 1, "lesson_file", _load)
    if not own.items:
        st.info(WORDS("empty"))
    if len(own.items) > 1:
        mounts.lesson_order(WORDS("drag"), "lesson_order", _drop)
    for at, item in enumerate(own.items):
        _edit(own, at, item)


def _load() -> None:
    """The lesson of the file that was opened takes the place of the reader's own."""
    text = visit.lesson_file["file"]["text"] or ""  # None for bytes that are no text
    try:
        lesson_bar.keep(lesson_text.from_json(text))
        visit.lesson_title = lesson_bar.own().title
    except ValueError as why:
        visit.lesson_problem = str(why)


def _edit(own: Lesson, at: int, item: Item) -> None:
    """One item with its place in the order and what is written about it."""
    n, place = len(own.items), places.title(lesson_text.parts(item.address)[0])
    with st.container(horizontal=True, vertical_alignment="center", key=f"item {at}"):
        moves = {
            "arrow_upward": (at - 1, WORDS("earlier")),
            "arrow_downward": (at + 1, WORDS("later")),
        }
        for icon, (to, label) in moves.items():
            st.button(
                label,
                key=f"{icon} {at}",
                icon=f":material/{icon}:",
                type="tertiary",
                disabled=not 0 <= to < n,
                on_click=_move,
                args=(at, to),
            )
        st.button(
            WORDS("remove"),
            key=f"remove {at}",
            icon=":material/delete:",
            type="tertiary",
            on_click=_remove,
            args=(at,),
        )
        heading = literal(item.heading or place)
        with st.expander(f"{at + 1}. {heading}", expanded=False):
            st.caption(literal(f"{place} · {_subject(item)}"))
            written: dict[str, Any] = {
                name: _field(name, label, at, item) for name, label in FIELDS.items()
            }
            if any(getattr(item, name) != text for name, text in written.items()):
                items = list(own.items)
                items[at] = replace(item, **written)
                lesson_bar.keep(replace(own, items=tuple(items)))
                st.rerun(scope="fragment")


def _subject(item: Item) -> str:
    """The model and the text of an item, as its address has them."""
    tab, query = lesson_text.parts(item.address)
    text, model = url_state.text_and_model(query, tab)
    return f"{model}: {text}"


def _field(name: str, label: str, at: int, item: Item) -> str:
    kinds: Mapping[bool, Any] = {True: st.text_area, False: st.text_input}
    key = f"lesson {name} {at} {hash(item.address)}"
    return str(
        kinds[name in LONG_FIELDS](
            label, getattr(item, name), key=key, max_chars=lesson_text.MOST_CHARACTERS
        )
        or ""
    )


def _move(at: int, to: int) -> None:
    own = lesson_bar.own()
    items = list(own.items)
    items.insert(to, items.pop(at))
    lesson_bar.keep(replace(own, items=tuple(items)))


def _drop() -> None:
    """An item that was dragged takes the place of the one that it was dropped on."""
    move, n = visit.lesson_order["move"], len(lesson_bar.own().items)
    if move["from"] in range(n) and move["to"] in range(n):  # of the list as it is now
        _move(move["from"], move["to"])


def _remove(at: int) -> None:
    own = lesson_bar.own()
    lesson_bar.keep(replace(own, items=own.items[:at] + own.items[at + 1 :]))
