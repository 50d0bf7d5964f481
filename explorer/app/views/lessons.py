"""The tab Lessons: those that come with the app, and the reader's own, collected on any tab."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

import streamlit as st

from explorer.app import mounts
from explorer.app.layout import current_recording, navigation, own_lesson
from explorer.app.layout.tab import by_hand
from explorer.app.mounts import CardGroup, LeadCard
from explorer.app.state import models, url_state
from explorer.app.state.settings import settings
from explorer.app.state.visit import visit
from explorer.panels import lessons, worksheet
from explorer.panels.choice import FALSE, TRUE, Choice
from explorer.text import gallery, places
from explorer.text import lesson as lesson_text
from explorer.text.lesson import Item, Lesson
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import named, sentences
from models.runtime.run import Run

WORDS = sentences("lesson", "tab")
FIELDS = named("lesson", "fields")  # what is written about an item, by the name of its field
LONG_FIELDS = ("says", "note", "options", "answer")
JSON = "application/json"
MOST_SUBJECTS = 6  # models with texts that are told of a lesson that is opened


@by_hand("lessons")
@current_recording.tab(current_recording.only_text)
def lessons_tab(
    run: Run,
    my_lesson: Annotated[bool, Choice(help="the reader’s own lesson is open")] = False,
) -> None:
    """The tab Lessons. my_lesson: the reader's own is open, as it is where it has steps."""
    navigation.follow_press()
    visit.before_lesson = visit.text, visit.model
    names = lessons.names(run.recording().model.kind)
    own_lesson.store(True)
    is_open = my_lesson or bool(visit.own_lessons or visit.lesson_problem or visit.offered_lesson)
    minutes = [lessons.written()[name]["minutes"] for name in names]
    to = navigation.address_of("lessons", {"my_lesson": "" if my_lesson else TRUE})
    links = [(WORDS("close" if my_lesson else "own"), to)]
    title = WORDS("title", least=min(minutes), most=max(minutes))
    cards = [_card(run, name) for name in names]
    if my_lesson:  # it was asked for, so it is in sight
        _own_lesson(run, names)
    mounts.cards(
        [CardGroup(title, cards, "tall large", links)], "lesson_cards", partial(_begin, run)
    )
    with st.container(horizontal=True, vertical_alignment="center", key="worksheets"):
        for name in names:
            label = WORDS("worksheet_of", title=lessons.written()[name]["title"])
            _worksheet(partial(lessons.on, run, name), name, label)
    if is_open and not my_lesson:
        _own_lesson(run, names)


def _card(run: Run, name: str) -> LeadCard:
    """A lesson that comes with the app, which a press begins; why it cannot be where it cannot."""
    about = lessons.written()[name]
    sign = {"kind": "sign", "name": name, "words": about.get("sign", [])}
    card = about.get("card")
    picture = gallery.drawn(card["picture"], card["numbers"]) if card else sign
    card = LeadCard(name, about["title"], picture, says=about["about"])
    try:
        first, n = lessons.beginning(run, name)
    except ValueError as why:
        return replace(card, foot=str(why), is_there=False)
    whose = "alone" if about.get("alone") else "with_class"
    foot = WORDS(whose, n=n, minutes=about["minutes"])
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


def _start(first: Item, word: str, label: str = "start") -> None:
    """A link to the first step of a lesson. word: what the address calls it."""
    tab, query = lesson_text.parts(first.address)
    navigation.link(tab, WORDS(label), query | _first_step(word), word)


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


def _own_lesson(run: Run, names: Sequence[str]) -> None:
    """The lessons of the reader's own: which one is open, its steps in their order, and what can be
    done with them. names: the lessons of which one may be a copy."""
    st.header(WORDS("yours"), anchor=False)
    st.caption(WORDS("how"))
    if problem := visit.lesson_problem:
        visit.lesson_problem = ""
        st.warning(literal(problem))
    if visit.offered_lesson:
        _offered(visit.offered_lesson)
    own = own_lesson.own()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _choice()
        st.text_input(
            WORDS("name"),
            own.title,
            key="lesson_title",
            persist_state="session",
            on_change=_retitle,
        )
        st.number_input(
            WORDS("minutes"),
            0,
            lesson_text.MOST_MINUTES,
            own.minutes,
            key=(key := f"lesson minutes {visit.own_lesson}"),
            on_change=_plan,
            args=(key,),
            width=130,
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        if own.items:
            _start(own.items[0], own_lesson.word_of(own))
            seen = lesson_text.of_followers(own)
            if own_lesson.word_of(seen) != own_lesson.OWN:
                _start(own.items[0], seen.word, "preview")
            st.download_button(
                WORDS("save"),
                own.json,
                f"{_file_name(own)}.headlight.json",
                JSON,
                key="save lesson",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
            )
            _worksheet(lambda: own, "lesson", WORDS("worksheet"))
        mounts.file_reader(WORDS("load"), lesson_text.MOST_BYTES + 1, "lesson_file", _load)
        if own.items:
            _press("new lesson", WORDS("new"), "add", own_lesson.open_new)
        if visit.own_lessons:
            _press("forget lesson", WORDS("forget"), "delete", own_lesson.forget)
    st.selectbox(
        WORDS("copy"),
        names,
        None,
        format_func=lambda name: lessons.written()[name]["title"],
        placeholder=WORDS("choose"),
        key=(key := f"copy lesson {len(visit.own_lessons)}"),
        on_change=_copy,
        args=(run, key),
    )
    if not own.items:
        st.info(WORDS("empty"))
    if len(own.items) > 1:
        mounts.lesson_order(WORDS("drag"), "lesson_order", _drop)
    for at, (step, item) in enumerate(zip(own_lesson.steps(), own.items)):
        _edit(step, at, item)
    st.text_input(
        WORDS("address"),
        key="lesson_address",
        placeholder="/architecture?…",
        on_change=_add_address,
    )


def _file_name(lesson: Lesson) -> str:
    """The title of a lesson as the name of a file."""
    words = re.findall(r"\w+", lesson.title.lower())
    return "-".join(words)[:60] or "lesson"


def _press(key: str, label: str, icon: str, act: Callable[..., None], *args: Any) -> None:
    st.button(label, key=key, icon=f":material/{icon}:", type="tertiary", on_click=act, args=args)


def _choice() -> None:
    """Draw the menu of several own lessons."""
    if len(names := list(visit.own_lessons)) < 2:
        return
    title = lambda name: visit.own_lessons[name].title or WORDS("untitled")
    st.selectbox(
        WORDS("which"),
        names,
        names.index(visit.own_lesson),
        format_func=title,
        key=(key := f"own lessons {' '.join(names)} {visit.own_lesson}"),
        on_change=lambda: own_lesson.open_as(st.session_state[key]),
    )


def _retitle() -> None:
    own_lesson.keep(replace(own_lesson.own(), title=visit.lesson_title))


def _plan(key: str) -> None:
    own_lesson.keep(replace(own_lesson.own(), minutes=int(st.session_state[key] or 0)))


def _add_address() -> None:
    """The page of an address becomes a step, with the first of its panels."""
    address, visit.lesson_address = visit.lesson_address, ""
    try:
        bare = urlsplit(address.strip())._replace(scheme="", netloc="", fragment="").geturl()
        here = lesson_text.local(bare, len(own_lesson.own().items) + 1)
    except ValueError as why:
        visit.lesson_problem = str(why)
        return
    panel = own_lesson.main_panel(own_lesson.pictures_of(lesson_text.parts(here)[0]))
    own_lesson.append(Item(here, panel=panel))


def _insert(at: int) -> None:
    """A step of the reader's own words behind another one, on the page of that one."""
    before = own_lesson.own().items[at]
    words = Item(before.address, heading=WORDS("own_heading"), panel=lesson_text.OWN_WORDS)
    own_lesson.arrange(lambda pairs: pairs.insert(at + 1, (secrets.randbits(48), words)))


def _copy(run: Run, key: str) -> None:
    """A lesson that comes with the app becomes one more of the reader's own, to be changed."""
    if (name := st.session_state[key]) is None:
        return
    try:
        made = lessons.on(run, name)
    except ValueError as why:
        visit.lesson_problem, st.session_state[key] = str(why), None
        return
    # The number stands in the sentence, which is written in one field.
    whole = lambda each: replace(each, says=each.says + each.number + each.rest, number="", rest="")
    own_lesson.open_new(replace(made, items=tuple(map(whole, made.items))))


def _load() -> None:
    """The lesson of the file that was chosen is told, and taken when the reader says so."""
    text = visit.lesson_file["file"]["text"] or ""  # None for bytes that are no text
    try:
        visit.offered_lesson = lesson_text.from_json(text)
    except ValueError as why:
        visit.lesson_problem = str(why)


def _offered(lesson: Lesson) -> None:
    """Show what a lesson of a file has, and the button that takes it."""
    tabs = dict.fromkeys(places.title(lesson_text.parts(each.address)[0]) for each in lesson.items)
    subjects = dict.fromkeys(_subject(each) for each in lesson.items)
    with st.container(border=True):
        about = WORDS("offered", title=lesson.title, n=len(lesson.items), tabs=", ".join(tabs))
        st.markdown(literal(about))
        for each in list(subjects)[:MOST_SUBJECTS]:
            st.caption(literal(each))
        with st.container(horizontal=True):
            _press("take lesson", WORDS("take"), "check", _take, lesson)
            _press("leave lesson", WORDS("leave"), "close", _take, None)


def _take(lesson: Lesson | None) -> None:
    visit.offered_lesson = None
    if lesson is not None:
        own_lesson.open_new(lesson)


def _edit(step: int, at: int, item: Item) -> None:
    """One item with its place in the order and what is written about it. step: its name."""
    n, place = len(own_lesson.own().items), places.title(lesson_text.parts(item.address)[0])
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
        _press(f"duplicate {at}", WORDS("duplicate"), "content_copy", _duplicate, at)
        _press(f"insert {at}", WORDS("insert"), "add_notes", _insert, at)
        _press(f"remove {at}", WORDS("remove"), "delete", _remove, at)
        heading = literal(item.heading or place)
        # By the name of the step: it stays open while its heading is written.
        with st.expander(f"{at + 1}. {heading}", key=f"step {step}"):
            st.caption(literal(f"{place} · {_subject(item)}"))
            _picture(step, item)
            for name, label in FIELDS.items():
                _field(name, label, step, item)
                if name == "options" and item.options.strip():
                    _right(step, item)
            if item.formula.strip() and own_lesson.own_formula(item.formula) is None:
                st.warning(WORDS("no_formula"))


def _picture(step: int, item: Item) -> None:
    """Draw the menus of the page that a step leads to, and of the pictures that it may show of
    it."""
    tab = lesson_text.parts(item.address)[0]
    pages = [row for row in places.ROWS if row == tab or own_lesson.pictures_of(row)]
    names = own_lesson.pictures_of(tab)
    options = [*names, *({item.panel} - {*names}), lesson_text.OWN_WORDS]
    options = list(dict.fromkeys(each for each in options if each))
    of_page, of_picture = f"lesson page {step}", f"lesson panel {step} {tab}"
    title = lambda name: name.rpartition(".")[2].replace("_", " ").capitalize()
    with st.container(horizontal=True):
        st.selectbox(
            WORDS("page"),
            pages,
            pages.index(tab),
            format_func=places.title,
            key=of_page,
            on_change=lambda: own_lesson.turn(step, st.session_state[of_page]),
        )
        st.selectbox(
            WORDS("picture"),
            options,
            options.index(item.panel) if item.panel else 0,
            format_func=lambda name: WORDS("no_picture") if name in ("", "words") else title(name),
            key=of_picture,
            on_change=lambda: own_lesson.turn(step, tab, st.session_state[of_picture]),
        )


def _subject(item: Item) -> str:
    """The model and the text of an item, as its address has them."""
    tab, query = lesson_text.parts(item.address)
    text, model = url_state.text_and_model(query, tab)
    return f"{model}: {text}"


def _right(step: int, item: Item) -> None:
    """Draw the menu of a step's answers, of which its author says the right one."""
    lines = lesson_text.option_lines(item.options)
    if not lesson_text.are_options(lines):
        least, most = lesson_text.LEAST_OPTIONS, lesson_text.MOST_OPTIONS
        st.warning(WORDS("no_options", least=least, most=most, longest=lesson_text.LONGEST_OPTION))
        return
    st.selectbox(
        WORDS("right"),
        range(len(lines)),
        lines.index(item.true_option) if item.true_option else None,
        format_func=lambda at: f"{'ABCD'[at]}. {lines[at]}",
        placeholder=WORDS("no_right"),
        key=(key := f"lesson right {step} {item.options}"),
        on_change=lambda: own_lesson.write(step, right=str(st.session_state[key])),
    )


def _field(name: str, label: str, step: int, item: Item) -> None:
    kinds: Mapping[bool, Any] = {True: st.text_area, False: st.text_input}
    key = f"lesson {name} {step}"
    # By the name of the step: a press that moves it comes in the same run as what was typed.
    kinds[name in LONG_FIELDS](
        label,
        getattr(item, name),
        key=key,
        max_chars=lesson_text.MOST_CHARACTERS,
        on_change=lambda: _write(step, item, name, st.session_state[key] or ""),
    )


def _write(step: int, item: Item, name: str, words: str) -> None:
    """Write what was typed in a field of a step; of answers to choose from the right one stays
    it."""
    fields = {name: words}
    if name == "options":
        lines = lesson_text.option_lines(words)
        right = item.true_option
        fields["right"] = str(lines.index(right)) if right in lines else ""
    own_lesson.write(step, **fields)


def _move(at: int, to: int) -> None:
    own_lesson.arrange(lambda pairs: pairs.insert(to, pairs.pop(at)))


def _drop() -> None:
    """An item that was dragged takes the place of the one that it was dropped on."""
    move, n = visit.lesson_order["move"], len(own_lesson.own().items)
    if move["from"] in range(n) and move["to"] in range(n):  # of the list as it is now
        _move(move["from"], move["to"])


def _duplicate(at: int) -> None:
    item = own_lesson.own().items[at]
    own_lesson.arrange(lambda pairs: pairs.insert(at + 1, (secrets.randbits(48), item)))


def _remove(at: int) -> None:
    own_lesson.arrange(lambda pairs: pairs.pop(at))
