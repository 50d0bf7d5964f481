"""Views in the browser: each Python call puts one JavaScript component of this folder on the page.

The class's window and the presenter live in the browser alone; the others send what a reader
chose through `st.session_state[key]`."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader
from explorer.figures import qr_code


def _component(name: str, module: str, html: str) -> Callable[..., object]:
    """Register the component of a JavaScript `module`, which draws into `html`."""
    return st.components.v2.component(f"headlight.{name}", html=html, js=loader(module))


_panel = _component("panel", "panel", '<div class="panel"></div>')
_sentence = _component("sentence", "sentence", '<div class="sentence"></div>')
_pictures = _component("pictures", "image_export", '<div class="pictures"></div>')
_share = _component("share", "share", '<div class="share"></div>')
_offers = _component("offers", "offers", '<div class="offers"></div>')
_presenter = _component("presenter", "presenter", '<div class="presenter"></div>')
_class_bar = _component("follow", "class_bar", '<div class="follow" hidden></div>')
_classroom = _component("classroom", "classroom", '<div class="classroom"></div>')
_questions = _component("questions", "quiz", '<div class="questions"></div>')
_lesson_bar = _component("lesson_bar", "lesson_bar", '<div class="lesson_bar"></div>')
_order = _component("order", "lesson_order", '<div class="order"></div>')
_store = _component("lesson_store", "lesson_store", '<div class="store"></div>')
_cards = _component("cards", "cards", '<div class="cards"></div>')
_file = _component("load", "file_upload", '<div class="load"></div>')


def panel(data: bytes, key: str, on_select: Callable[[], None]) -> None:
    """Draw what `Panel.encode` gave. When `on_select` is called, `st.session_state[key]["select"]`
    maps the names of choices to the values that were pressed."""
    _panel(data=data, key=key, on_select_change=on_select)


def sentence_field(
    text: str,
    covered: str,
    model: str,
    key: str,
    longest: int,
    live: bool,
    on_text: Callable[[], None],
) -> None:
    """The field with the text that is drawn: one line that grows. Enter draws, Shift + Enter breaks
    the line. What the reader wants drawn stands in `st.session_state[key]["text"]` when `on_text`
    is called; at most `longest` characters are taken.

    covered: what stands in the field instead until the reader has the text shown or types one, the
    text without a word that is asked for; "" for the text. live: draw while the reader types, a
    moment after the last key.
    """
    # Half of a surrogate pair is no text and would break the header.
    clean, bare = (each.encode("utf-8", "replace").decode("utf-8") for each in (text, covered))
    header = {"text": clean, "covered": bare, "model": model, "longest": longest, "live": live}
    data = codec.encode(header, {})
    _sentence(data=data, key=key, on_text_change=on_text, on_again_change=lambda: None)


def picture_list(addresses: Mapping[str, str], key: str) -> None:
    """List the pictures that are on the page now, each as PNG and SVG, and the page as print.
    addresses: of figures by their tokens, below that of the app."""
    header = {"token": "pictures", "addresses": dict(addresses)}
    _pictures(data=codec.encode(header, {}), key=key)


def offers(panel: str, works: str, key: str, on_select: Callable[[], None]) -> None:
    """Offer what changes an answer, once it is measured. panel: the address of the panel that says
    it, below that of the app. works: the words of one on which something does, "" for none. When
    `on_select` is called, `st.session_state[key]["select"]` has the address of what was pressed."""
    _offers(
        data=codec.encode({"panel": panel, "works": works, "token": panel}, {}),
        key=key,
        on_select_change=on_select,
    )


def share(
    link: str, panels: Mapping[str, bytes], why: str, key: str, on_loop: Callable[[], None]
) -> None:
    """Offer the address of what is on screen, and what `Panel.encode` gave as files, which carry
    it: of "card" a picture, of "flow" a loop. why: why one of them is not there, "" where that was
    not asked for; `on_loop` is called when it is."""
    blocks = {name: np.frombuffer(data, np.uint8) for name, data in panels.items()}
    tokens = [zlib.crc32(data) for data in panels.values()]
    size, path = qr_code.path(link)
    header = {
        "link": link,
        "host": urlsplit(link).netloc,
        "code": {"size": size, "path": path},
        "why": why,
        "token": f"{link} {why} {tokens}",
    }
    _share(data=codec.encode(header, blocks), key=key, on_loop_change=on_loop)


def presenter() -> None:
    """Listen for the presenter's keys: P fills the screen with the current picture, its headline
    and its caption."""
    _presenter(data=codec.encode({}, {}), key="presenter")


def class_bar(
    defaults: Mapping[str, str],
    texts: Mapping[str, str],
    openings: Mapping[str, Mapping[str, str]],
    subject: Mapping[str, str] | None,
    at: str,
    pages: Mapping[str, str],
) -> None:
    """The part of a window that takes part in a class: a line at its foot, and the question.

    defaults: what an address with choices means that does not say it; texts: the text of that by
    the addresses of tabs, where it is another one; openings: text and model that a bare address
    means, by those of tabs, where they are others than of "/"; subject: text and model on screen,
    None for a text that no address can carry; at: the address that this run of the page is of;
    pages: what places are called, by their addresses.
    """
    header = {
        "defaults": dict(defaults),
        "texts": dict(texts),
        "openings": {address: dict(meant) for address, meant in openings.items()},
        "subject": None if subject is None else dict(subject),
        "at": at,
        "pages": dict(pages),
    }
    _class_bar(data=codec.encode(header, {}), key="follow")


def class_form() -> None:
    """The form that starts or joins a class. The browser and the class's own addresses do all of
    it."""
    _classroom(data=codec.encode({}, {}), key="class form")


@dataclass(frozen=True)
class QuizItem:
    """A question: its text, its answers and what was measured of each ("" where the reason says
    it), which is right, the reason, and the address that shows it. pictures: of the answers, a
    pattern each, its rows divided by "/", a digit for each weight; () for none. covers: the answer
    is the prediction at that address, which a class sees covered until the reveal. model: words
    with their probabilities, beside which guesses stand then. head: the pattern of the head in
    question, "" for none."""

    text: str
    choices: tuple[str, ...]
    measured: tuple[str, ...]
    right: int
    says: str
    to: str
    pictures: tuple[str, ...] = ()
    covers: bool = False
    model: tuple[tuple[str, float], ...] = ()
    head: str = ""


def questions(
    items: Sequence[QuizItem], token: str, answered: str, on_answer: Callable[[], None]
) -> None:
    """Questions with answers to choose from, each with what is right and where it is seen. token:
    the name of this set; another set begins with other answers. answered: the letter of each answer
    so far, "-" for none. When `on_answer` is called, they stand in
    `visit.quiz_answers["answered"]`."""
    header = {"token": token, "items": [asdict(each) for each in items], "answered": answered}
    _questions(data=codec.encode(header, {}), key="quiz_answers", on_answered_change=on_answer)


def lesson_bar(lesson: Mapping[str, Any], token: str, on_end: Callable[[], None]) -> None:
    """A step of a lesson with what is said there, and the way to the others.

    lesson: its `id` and `title`, `is_own` where it is a reader's own, its `items`, the place of the
    one on screen among them, `at`, and the `choices` that the address of every step says beside its
    own. token: the name of this step. `on_end` is called where the reader ends the lesson."""
    data = codec.encode({**lesson, "token": token}, {})
    _lesson_bar(data=data, key="lesson bar", on_end_change=on_end)


def lesson_order(says: str, key: str, on_move: Callable[[], None]) -> None:
    """Let the steps of the reader's own lesson, containers with the keys `item 0`, `item 1` and so
    on, be dragged. says: a line on that. When `on_move` is called, `st.session_state[key]["move"]`
    holds the places, `from` and `to`."""
    _order(data=codec.encode({"token": says, "says": says}, {}), key=key, on_move_change=on_move)


def lesson_store(lesson: Mapping[str, Any], key: str, on_read: Callable[[], None]) -> None:
    """Let the browser keep a lesson of the reader's own, its `text` by its `name`, and forget those
    of the names in `forgotten`. When `on_read` is called, `st.session_state[key]["read"]` holds all
    that it keeps, [name, text], and [old, new] name where another window had changed this one."""
    token = hashlib.sha256(repr(lesson).encode()).hexdigest()
    _store(data=codec.encode({"token": token, **lesson}, {}), key=key, on_read_change=on_read)


def file_reader(label: str, most: int, key: str, on_file: Callable[[], None]) -> None:
    """A button that reads a file of the reader's own in the browser and sends its text; no file is
    uploaded. When `on_file` is called, `st.session_state[key]["file"]` holds the file's name, its
    text, the first `most` characters of it, and whether it was cut there."""
    data = codec.encode({"token": label, "label": label, "most": most}, {})
    _file(data=data, key=key, on_file_change=on_file)


@dataclass(frozen=True)
class LeadCard:
    """A card: what it names, says and leads to: the path and query of an address, "" for one whose
    id a press tells. foot: a line below. law: what was measured of its law here, verdict: "holds"
    or "fails". is_there: False for one that leads nowhere. picture: for `card_pictures.js`."""

    id: str
    title: str
    picture: Mapping[str, Any]
    says: str = ""
    foot: str = ""
    law: str = ""
    verdict: str = ""
    to: str = ""
    is_there: bool = True


@dataclass(frozen=True)
class CardGroup:
    """Cards below a heading, as they `look`: "tall" with the picture above, or "flat" with it
    beside. links: labels and addresses beside the heading, "" for one that tells "" as its id.
    shown: how many stand there; the others are below the press `more`."""

    name: str
    cards: Sequence[LeadCard]
    look: str
    links: Sequence[tuple[str, str]] = ()
    shown: int = 99
    more: str = ""


def cards(groups: Sequence[CardGroup], key: str, on_pick: Callable[[], None]) -> None:
    """Cards in groups. When `on_pick` is called, `st.session_state[key]["pick"]` is the id of the
    card that was pressed."""
    sent = [asdict(each) for each in groups]
    for each in sent:
        each["links"] = [{"label": label, "to": to} for label, to in each["links"]]
    token = f"{zlib.crc32(repr(sent).encode('utf-8', 'replace')):x}"
    _cards(data=codec.encode({"token": token, "groups": sent}, {}), key=key, on_pick_change=on_pick)
