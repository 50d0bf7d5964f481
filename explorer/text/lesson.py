"""A lesson: addresses of the app in an order, each with what is said there. It is one small JSON
file, and a word in an address."""

from __future__ import annotations

import json
import re
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from explorer.text import places
from explorer.wording.markdown_escape import well_formed
from explorer.wording.templates import sentences

REFUSALS = sentences("lesson", "refusals")
MOST_ITEMS = 60
MOST_MINUTES = 600
MOST_CHARACTERS = 4000  # of any text of an item
MOST_BYTES = 400_000  # of a lesson as JSON
LEAST_OPTIONS, MOST_OPTIONS = 2, 4  # answers to choose from
LONGEST_OPTION = 160  # characters of one of them
OF_SPEAKER = (
    "note",
    "question",
    "answer",
    "options",
    "right",
    "done",
    "proof",
)  # of an item, for who speaks alone
OWN_WORDS = "words"  # in the place of a panel
OF_CLASS = "class"  # the word of the lesson that the class of a window holds
CHOICES = ("lesson", "lesson_step", "lesson_word")  # of an address
STEP = re.compile("[1-9][0-9]{0,8}")  # in an address, from 1
PACKED = "~"  # begins the word of a lesson that an address holds whole


@dataclass(frozen=True)
class Item:
    """One step of a lesson: where it is, as path and query of an address of the app, and what is
    said there.

    heading, says: what everybody reads; number: stands behind says, in the colour of the picture's
    own number, and rest behind it. note: for who speaks. question, answer: asked there, and what is
    true; options: answers that a class chooses from, a line each, and right: the place of the true
    one, from 0. done: when the step is done. panel: the name of the one that is spoken of,
    `OWN_WORDS` where the step is its words alone. formula: one that stands below says, as
    explorer/text/formulas.py reads a line. proof: the picture that shows the true answer, as an
    address below that of the app; link: a page for everybody, which the wall shows as a code.
    """

    address: str
    heading: str = ""
    says: str = ""
    number: str = ""
    rest: str = ""
    note: str = ""
    question: str = ""
    answer: str = ""
    options: str = ""
    right: str = ""
    done: str = ""
    panel: str = ""
    formula: str = ""
    proof: str = ""
    link: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        """Answers to the question that a class chooses from; none where they are too few, too many
        or too long, or none is said to be true: then it answers in its own words."""
        lines = option_lines(self.options)
        return lines if self.question and self.true_option and are_options(lines) else ()

    @property
    def true_option(self) -> str:
        """The true one of the answers to choose from, "" where none is said."""
        lines = enumerate(option_lines(self.options))
        return {str(at): line for at, line in lines}.get(self.right, "")


def option_lines(options: str) -> tuple[str, ...]:
    """The answers that are written a line each, without empty lines."""
    return tuple(line for each in options.splitlines() if (line := each.strip()))


def are_options(lines: Sequence[str]) -> bool:
    """True for as many and as short answers as a class can choose from."""
    is_short = all(len(each) <= LONGEST_OPTION for each in lines)
    return is_short and LEAST_OPTIONS <= len(lines) <= MOST_OPTIONS


@dataclass(frozen=True)
class Lesson:
    """A title, its steps in order, and the minutes that they take together, 0 for no plan."""

    title: str
    items: tuple[Item, ...] = ()
    minutes: int = 0

    @property
    def json(self) -> str:
        """The lesson as a file; what is empty is left out."""
        items = [_bare(asdict(each)) for each in self.items]
        about = {"title": self.title} | ({"minutes": self.minutes} if self.minutes else {})
        return json.dumps(about | {"items": items}, ensure_ascii=False, indent=1)

    @property
    def word(self) -> str:
        """The lesson whole, as a choice in an address has it."""
        plain = json.dumps(json.loads(self.json), ensure_ascii=False, separators=(",", ":"))
        packed = zlib.compress(plain.encode(), 9)
        return PACKED + urlsafe_b64encode(packed).decode().rstrip("=")


def of_followers(lesson: Lesson) -> Lesson:
    """A lesson as those see it who follow it: without what is for who speaks."""
    spoken = dict.fromkeys(OF_SPEAKER, "")
    return replace(lesson, items=tuple(replace(each, **spoken) for each in lesson.items))


def until_told(text: str, at: str) -> str:
    """A lesson as JSON for those who follow it at an address: null for each step from the next one
    that tells what those before it cover, such as a hidden word."""
    read = json.loads(text)
    covers = ["covered" in parts(each["address"])[1] for each in read["items"]]
    step = parts(at)[1].get("lesson_step", "")
    after = int(step) if STEP.fullmatch(step) else 0
    for place in range(max(1, after), len(covers)):
        if covers[place - 1] and not covers[place]:
            read["items"][place:] = [None] * (len(covers) - place)
            return json.dumps(read, ensure_ascii=False)
    return text


def _bare(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value}


def from_json(text: str) -> Lesson:
    """A lesson of a file; an unpaired surrogate, which no address or message can contain, becomes
    U+FFFD. Raises ValueError, in one sentence, for what is none."""
    if len(text) > MOST_BYTES:
        raise ValueError(REFUSALS("too_large", n=MOST_BYTES // 1000))
    try:
        read = json.loads(text.removeprefix("\ufeff"))  # the mark of an editor
    except (ValueError, RecursionError) as error:
        raise ValueError(REFUSALS("no_json")) from error
    if not isinstance(read, dict) or not isinstance(read.get("items"), list):
        raise ValueError(REFUSALS("no_lesson"))
    items = read["items"]
    if len(items) > MOST_ITEMS:
        raise ValueError(REFUSALS("too_many", n=len(items), most=MOST_ITEMS))
    title, minutes = read.get("title", ""), read.get("minutes", 0)
    if not isinstance(title, str) or len(title) > MOST_CHARACTERS:
        raise ValueError(REFUSALS("no_lesson"))
    if type(minutes) is not int or not 0 <= minutes <= MOST_MINUTES:
        raise ValueError(REFUSALS("no_minutes", most=MOST_MINUTES))
    steps = tuple(_item(at, each) for at, each in enumerate(items, 1))
    return Lesson(well_formed(title), steps, minutes)


def from_word(word: str) -> Lesson:
    """A lesson of an address. Raises ValueError, in one sentence, for what is none."""
    packed = word.removeprefix(PACKED)
    try:
        inflating = zlib.decompressobj()
        text = inflating.decompress(
            urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), MOST_BYTES
        )
        return from_json(text.decode())
    except (zlib.error, ValueError) as error:
        raise ValueError(REFUSALS("cut")) from error


def _item(at: int, read: object) -> Item:
    """An item of a file. Raises ValueError, with its place, for what is none."""
    names = {each.name for each in fields(Item)}
    if not isinstance(read, dict) or not isinstance(read.get("address"), str):
        raise ValueError(REFUSALS("no_item", at=at))
    known = {name: value for name, value in read.items() if name in names}
    if not all(isinstance(each, str) and len(each) <= MOST_CHARACTERS for each in known.values()):
        raise ValueError(REFUSALS("no_item", at=at))
    known = {name: well_formed(value) for name, value in known.items()}
    return Item(**(known | {"address": local(known["address"], at)}))


def local(address: str, at: int) -> str:
    """Path and query of an address of the app, without a lesson that it may be a step of. at: the
    item that it is of, from 1. Raises ValueError where it leads elsewhere."""
    try:
        parts = urlsplit(address)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError as error:
        raise ValueError(REFUSALS("elsewhere", at=at)) from error
    place = parts.path.strip("/").rpartition("/")[2] or places.FIRST
    tab = dict(query).get("tab", "")
    known = place in places.PLACES and tab in ("", *places.ROWS)
    if parts.scheme or parts.netloc or not known:
        raise ValueError(REFUSALS("elsewhere", at=at))
    parameters = [(name, value) for name, value in query if name not in ("lesson", "lesson_step")]
    own = places.place_of(tab) if tab else place
    path = "/" if own == places.FIRST else f"/{own}"
    return f"{path}?{urlencode(parameters)}" if parameters else path


def for_followers(address: str, is_held: bool) -> str:
    """An address that leads a class to a step of a lesson, for those who follow: the lesson is the
    one that the class holds, or none."""
    split = urlsplit(address)
    query = parse_qsl(split.query, keep_blank_values=True)
    lesson = {name: value for name, value in query if name in CHOICES}
    if not lesson:
        return address
    kept = [(name, value) for name, value in query if name not in CHOICES]
    if is_held and lesson.get("lesson"):
        kept += [("lesson", OF_CLASS), ("lesson_step", lesson.get("lesson_step", ""))]
    return f"{split.path}?{urlencode(kept)}" if kept else split.path


def parts(address: str) -> tuple[str, dict[str, str]]:
    """The tab and the choices of an address of the app."""
    path, query = urlsplit(address).path, dict(parse_qsl(urlsplit(address).query))
    return query.pop("tab", "") or places.first_tab(path.strip("/") or places.FIRST), query
