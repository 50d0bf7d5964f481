"""The words that an address may have: those of every page, of panels and of the table of tabs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from explorer.panels import choice, link_words, spec
from explorer.panels.choice import Choice
from explorer.screens.rows import Row
from explorer.screens.subjects import SUBJECTS
from explorer.text import places
from explorer.wording.templates import sentences
from models.contract.spelling import nearest

SCREEN = sentences("selection", "screen")
OF_FRAME = ("tab", "text", "model")  # what stands above every tab
# Those of links that were shared before today's names (`link_words.in_todays_words`).
EARLIER = ("key", "off", "other_pair", "selected", "tour", "train_pair", "word")


@dataclass(frozen=True)
class OnScreen:
    """Selection in a text and a model on every tab, as words of the address; "" for what a tab
    opens on."""

    attention: Annotated[
        str,
        Choice(
            of="model",
            help="which attention of a model with several: `encoder`, `decoder` or `cross`",
        ),
    ] = ""
    layer: Annotated[str, Choice(of="model", help="the layer, from 0")] = ""
    head: Annotated[str, Choice(of="model", help="the head, from 0")] = ""
    token: Annotated[
        str,
        Choice(
            of="text",
            help="the selected token's place in the text, from 0, or its word: `word=it`; `every`: "
            "no word is selected",
        ),
    ] = ""
    source: Annotated[
        str,
        Choice(of="text", help="the other text's selected token, between two texts, or its word"),
    ] = ""
    weight_at: Annotated[
        str, Choice(of="text", help="the selected weight: its query and key, a dot between them")
    ] = ""
    stream: Annotated[
        str,
        Choice(of="model", help="the residual stream of a model with two: `encoder` or `decoder`"),
    ] = ""
    target: Annotated[
        str, Choice(of="model", help="the text that a translator's decoder reads")
    ] = ""
    edits: Annotated[
        str,
        Choice(help="edits of the model: `WithoutScale`; `off=0.3,1.5` switches these heads off"),
    ] = ""
    covered: Annotated[
        str,
        Choice(
            of="text",
            help="the place of the last text, from 0, whose word is asked for: nothing tells it",
        ),
    ] = ""
    lesson: Annotated[
        str, Choice(help="the lesson that is followed: its name, or the lesson whole")
    ] = ""
    lesson_step: Annotated[str, Choice(help="its step, from 1")] = ""
    lesson_word: Annotated[str, Choice(of="text", help="the token that it follows, from 0")] = ""


@cache
def known() -> frozenset[str]:
    """The names of them all."""
    names = {*OF_FRAME, *EARLIER, *link_words.EARLIER_NAMES}
    of_panels = (each for every in spec.choices_by_panel().values() for each in every)
    names |= {each.name for each in (*choice.parameters(OnScreen), *of_panels)}
    for tab in places.ROWS.values():
        row, subject = Row(tab), SUBJECTS.get(tab.subject)
        names |= {each.name for each in (row.fold, row.view) if each is not None}
        names |= {each.name for each in (choice.declared(subject) if subject else ())}
        names |= {*tab.words, *tab.own}
    return frozenset(names)


def unknown(words: Mapping[str, str]) -> dict[str, str]:
    """A sentence on each word of an address that no page knows, by its name."""
    there = known()
    # The names of today, since those of earlier links are known and not to be learned.
    today = sorted(there - {*EARLIER, *link_words.EARLIER_NAMES})
    sentence: dict[str, str] = {}
    for name in words.keys() - there:
        near = nearest(name, today)
        sentence[name] = SCREEN("no_word_near", near=near) if near else SCREEN("no_word")
    return sentence
