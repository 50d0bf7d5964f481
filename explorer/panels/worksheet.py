"""The worksheet of a lesson: a line for a name, its steps with their pictures and questions, and
the answers on a page of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from string import ascii_uppercase
from urllib.parse import parse_qsl, urlsplit

from explorer.analysis.measure import Untestable
from explorer.figures import html_export
from explorer.figures.html_export import Document, DocumentSpec, Line, Part, TextLines, View
from explorer.panels import address, link_words, spec
from explorer.panels.choice import TRUE, choices_of, parameters
from explorer.panels.spec import Panel
from explorer.text.lesson import Item, Lesson
from explorer.wording.templates import sentences
from models.contract.edits import HideToken
from models.runtime.run import Run

WORDS = sentences("lesson", "worksheet")
MOST_PICTURES = 20
# A file of anybody's may name edits and choices that do not suit its model.
UNSHOWN = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, Untestable)


def document(lesson: Lesson) -> Document:
    """A lesson as one HTML document to print, each text where the steps on it begin. A step without
    a picture, whose picture cannot be made here, or that comes after `MOST_PICTURES`, has its words
    alone; one that leads to this sheet has its question alone."""
    lines: list[Line] = [("p", WORDS("name"))]
    parts: list[Part] = [TextLines(lines, column=2, look="name")]
    answers: list[Line] = []
    pictures = 0
    text = ""
    for at, item in enumerate(lesson.items, 1):
        if item.link and not item.question:
            continue
        if not item.link and (own := _chosen(item).get("text", text)) != text:
            text = own
            parts.append(TextLines([("blockquote", _text_shown(item, text))], column=2))
        parts.append(TextLines(_said(at, item), column=2, look="step"))
        drawn = not item.link and pictures < MOST_PICTURES
        if drawn and (panel := pictured(item)) is not None:
            pictures += 1
            parts.append(View("panel", panel.encode(), column=2))
        if item.question:
            parts.append(TextLines(_asked(item), column=2, look="asked"))
        if item.answer:
            answers.append(("p", WORDS("number", at=at, heading=_lettered_answer(item))))
    if answers:
        lines = [("h2", WORDS("answers")), *answers]
        parts.append(TextLines(lines, column=2, look="answers"))
    return html_export.document(DocumentSpec(lesson.title, (), parts, paper=True))


def within(lesson: Lesson, most: int, may_open: Callable[[str], bool]) -> Lesson:
    """A lesson with the pictures alone that a reader may have: of words of at most so many
    characters, and of models that may be opened."""
    items = []
    for item in lesson.items:
        words = _chosen(item)
        names = (
            "model",
            *(address.other_models(item.panel) if item.panel in spec.panel_names() else ()),
        )
        allowed = all(may_open(words[each]) for each in names if words.get(each))
        fits = all(len(word) <= most for word in words.values())
        items.append(item if allowed and fits else replace(item, panel=""))
    return replace(lesson, items=tuple(items))


def _chosen(item: Item) -> dict[str, str]:
    """The words of a step's address."""
    return link_words.in_todays_words(dict(parse_qsl(urlsplit(item.address).query)))


def _text_shown(item: Item, text: str) -> str:
    """The text of a step, in which the word that its address covers has no name."""
    try:
        run, _ = _choices(item)
        return text if run.covered is None else run.recording().texts_with_cover(run.covered)[0]
    except UNSHOWN:
        return text


def _said(at: int, item: Item) -> list[Line]:
    """The heading of a step and its words; of one that leads to this sheet its question alone."""
    heading = item.question if item.link else item.heading
    says = "" if item.link else _told(item)
    lines: list[Line] = [("h2", WORDS("number", at=at, heading=heading))]
    return lines + [("p", each) for each in (says, item.formula) if each]


def _told(item: Item) -> str:
    """The words of a step with its number in their place."""
    return f"{item.says}{item.number}{item.rest}".strip()


def _asked(item: Item) -> list[Line]:
    """The question of a step where its words do not ask it, what it is answered by, and room to
    write."""
    is_asked = item.link or (item.choices and _told(item).endswith("?"))
    lines: list[Line] = [] if is_asked else [("p", item.question)]
    lines += [
        ("p", WORDS("option", letter=letter, option=option))
        for letter, option in zip(ascii_uppercase, item.choices)
    ]
    return [*lines, ("p", WORDS("space")), ("hr", ""), ("hr", "")]


def _lettered_answer(item: Item) -> str:
    """The answer of a step, behind the letter of the true one of those to choose from."""
    if not item.choices:
        return item.answer
    letter = ascii_uppercase[int(item.right)]
    return WORDS("option", letter=letter, option=item.answer)


def pictured(item: Item) -> Panel | None:
    """The panel of a step, under the choices of its address; None where it has none, or where that
    cannot be shown."""
    try:
        run, choices = _choices(item)
        return address.from_words(item.panel, run, choices)
    except UNSHOWN:
        return None


def picture_address(item: Item) -> str:
    """The address of the panel of a step as SVG, below that of the app; "" where it has none."""
    try:
        run, choices = _choices(item)
    except UNSHOWN:
        return ""
    words = address.words_of_run(run, _chosen(item).get("target", ""))
    return address.of_words(item.panel, words | choices, "svg")


def _choices(item: Item) -> tuple[Run, dict[str, str]]:
    """The run of a step, and the words of its address that are choices of its panel. Raises
    ValueError where it has no panel, or words that are none."""
    if item.panel not in spec.panel_names():
        raise ValueError(f"no panel is called {item.panel!r}")
    known: set[str] = set()
    for each in parameters(spec.PANELS[item.panel]):
        made_by = each.choice.made_by if each.choice else None
        known |= {part.name for part in choices_of(made_by)} if made_by else {each.name}
    run, words = _shown_there(item.panel, _chosen(item))
    if run.covered is not None:  # a sheet has no light that is still off
        words["flow_cover"] = TRUE
    return run, {name: word for name, word in words.items() if name in known}


def _shown_there(panel: str, words: Mapping[str, str]) -> tuple[Run, dict[str, str]]:
    """The run and the choices of a panel at an address: the words that it hides are masked, and the
    cell of One head is a query and a key. Raises ValueError for words that are none."""
    run, chosen = address.run_of(words), dict(words)
    if places := chosen.pop("hidden", "").replace("none", ""):
        run = run.under((*run.edits, *(HideToken(int(each)) for each in places.split("."))))
    if panel == "anatomy.weight" and "weight_at" in chosen:
        chosen["token"], _, chosen["source"] = chosen["weight_at"].partition(".")
    return run, chosen
