"""The gallery of finds: each passes when it is measured, says what is measured, and leads to what
shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import driver
import pytest
from app_harness import clean, page_at, panels_on
from conftest import on_page
from streamlit.testing.v1 import AppTest

from explorer.analysis import gallery as measures
from explorer.app.state import url_state
from explorer.components import bundle, codec
from explorer.figures.formatting import fill
from explorer.panels import lessons
from explorer.screens.screen import of_words
from explorer.text import gallery, lesson, places
from explorer.text.gallery import FINDS, Find
from models.runtime.run import Run

HEAVY = {"smollm2", "minilm"}  # weights of others, which take seconds to load
ROUNDING = 2e-3  # of the numbers of a card, which have three decimals
CELL = 1  # of a digit of a pattern, where a weight is half between two


def models_of(find: Find) -> set[str]:
    return {find.model, *(word for word in map(str, find.of.values()) if word in HEAVY)}


CARDS = {name: each["card"] for name, each in lessons.written().items() if "card" in each}
CASES = [
    pytest.param(find, id=find.id, marks=[pytest.mark.slow] if models_of(find) & HEAVY else [])
    for find in FINDS
]


@pytest.mark.parametrize("find", CASES)
def test_a_find_passes_and_its_card_says_what_is_measured(find: Find) -> None:
    now = find.measured()
    assert now.value >= find.least, now
    agree(now.numbers, find.numbers)
    assert "{" not in find.sentence and fill(find.says, now.numbers).count(" ") > 3


def agree(measured: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """What is measured and what is told of it are the same numbers and words."""
    assert measured.keys() == told.keys()
    for name, number in measured.items():
        written = told[name]
        if name == "cells":
            assert len(number) == len(written)
            pairs = [(one, other) for one, other in zip(number, written) if one != other]
            assert all(abs(int(one) - int(other)) <= CELL for one, other in pairs), number
        elif isinstance(number, float):
            assert written == pytest.approx(number, abs=ROUNDING), name
        else:
            assert written == number, name


def test_there_are_ten_of_at_least_four_models_and_six_tabs() -> None:
    assert len(FINDS) == len({find.id for find in FINDS}) == 10
    assert len(set().union(*map(models_of, FINDS))) >= 4
    assert len({find.tab for find in FINDS}) >= 6
    of_lessons = {card["measure"] for card in CARDS.values()}
    assert {find.measure for find in FINDS} | of_lessons == {*measures.MEASURES}


@pytest.mark.parametrize("name", CARDS)
def test_the_picture_of_a_lesson_is_what_is_measured_of_its_text(name: str) -> None:
    of, card = lessons.written()[name], CARDS[name]
    now = measures.measured(card["measure"], of["model"], of["text"], card.get("of", {}))
    assert now.value >= card["least"]
    agree(now.numbers, card["numbers"])
    assert gallery.drawn(card["picture"], card["numbers"])["kind"] == card["picture"]


@pytest.mark.parametrize("find", FINDS, ids=lambda find: find.id)
def test_an_address_names_the_text_the_model_and_choices_that_are_there(find: Find) -> None:
    tab, choices = lesson.parts(find.address)
    assert tab == find.tab and choices == {
        "text": find.text,
        "model": find.model,
        **find.choices,
    }
    assert {*find.choices} <= {*url_state.names()}


@pytest.mark.slow
@pytest.mark.parametrize("find", FINDS, ids=lambda find: find.id)
def test_an_address_opens_a_picture_of_the_find(find: Find) -> None:
    if find.tab == "edit":  # which is worked on by hand
        app = clean(page_at(find.tab, text=find.text, model=find.model, **find.choices))
        assert panels_on(app) and app.session_state["edits"] == find.choices["edits"]
        return
    shown = of_words(find.address)
    assert [*shown.panels()] and shown.run.model == find.model and not shown.refused
    words = shown.words()
    for name in {"edits", "layer", "head"} & find.choices.keys():
        assert words[name] == find.choices[name], name


def test_a_find_fails_where_nothing_is_found() -> None:
    run = Run("encoder", "The nurse told the surgeon that she had forgotten the keys.")
    assert measures.lost_answer(run, "", "she").value == 0
    kept = measures.turned_answer(run, "ZeroHead:0:0:self", "she")
    turned = measures.turned_answer(run, "ZeroHead:1:5:self", "she")
    assert turned.value > 0.1 > kept.value
    assert measures.mirrored(Run("translator", "The red car"), 0, 0).value < 1
    same = [["La", "The"], ["voiture", "car"]]
    assert measures.crossing(Run("translator", "The red car"), same).value == 0
    early = measures.repeats(Run("induction@0", "The red fox ran. The red fox ran."), 1, 3)
    assert early.value < 0.3


@pytest.mark.slow
def test_the_list_of_finds_has_titles_addresses_and_sentences() -> None:
    every = list(gallery.finds())
    assert [title for title, *_ in every] == [find.title for find in FINDS]
    assert all(passes for _, _, passes, _ in every)
    rome, address, _, sentence = every[0]
    assert "Rome" in rome and "head 4 of layer 23" in sentence and "ZeroHead%3A23%3A4" in address
    assert "Italy" in sentence and "81%" in sentence


# ---- the tab Concepts ----------------------------------------------------------------------------


def groups(app: AppTest) -> list[dict]:
    """The groups of cards on a page, as they were told."""
    (told,) = [
        codec.decode(one.proto.bytes)[0]
        for one in on_page(app)
        if one.proto.component_name == "headlight.cards"
    ]
    return told["groups"]


VIEWS = [word for word in places.TABS["concepts"].views.panels if word != "All"]


def test_a_bare_address_opens_on_all_cards_and_one_that_chooses_on_a_concept() -> None:
    app = clean(page_at("concepts"))
    finds, *themes = groups(app)
    concepts = [card for theme in themes for card in theme["cards"]]
    assert [each["id"] for each in finds["cards"]] == [find.id for find in FINDS]
    assert finds["shown"] + len(concepts) <= 28, "what stands in sight"
    assert sorted(each["id"] for each in concepts) == sorted(VIEWS) and len(VIEWS) == 23
    assert len({each["says"] for each in concepts}) == 23, "each says what it is"
    assert not panels_on(app)
    for card in concepts:
        assert lesson.parts(card["to"])[1]["look_at"] == card["id"]
    (first,) = panels_on(clean(page_at("concepts", look_at="Scale")))
    assert first["panel"] == "soft_lookup.scale"
    old = clean(page_at("concepts", layer="1", head="2"))  # of a link that names no concept
    assert panels_on(old)[0]["panel"] == "soft_lookup.temperature"


HOSTILE_TEXT = "<b>bold</b> [link](x) $x$ **y** the cat saw it"


@driver.browser_test
def test_a_reader_opens_a_find_and_a_concept_and_comes_back(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/learn?tab=concepts&{urlencode({'text': HOSTILE_TEXT})}")
    page.get_by_role("button", name="All concepts").click()
    page.get_by_role("heading", name="10 things").wait_for()
    card = page.get_by_role("link", name="Why the scale")
    card.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**look_at=Scale**")
    page.locator("[data-panel='soft_lookup.scale']").wait_for()
    page.get_by_role("button", name="All concepts").click()
    page.get_by_role("link", name="Why the scale").wait_for()
    visitor.at_rest()
    page.get_by_text("5 more").click()
    page.get_by_role("link", name="The same words, shuffled").click()
    page.wait_for_url("**/architecture?**tab=positions**")
    page.locator("[data-panel='positions.answer']").wait_for()
    page.go_back()
    page.get_by_role("link", name="What textbooks say, tested on this text").click()
    page.wait_for_url("**tab=claims**")


@driver.browser_test
def test_cards_lead_on_where_no_address_holds_the_text(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/learn?tab=concepts&look_at=All")
    page.locator(".cards .card").first.wait_for()
    visitor.at_rest()
    field = page.locator(".sentence textarea")
    field.fill("The dog saw the cat and the bird. " * 200)
    field.press("Enter")
    page.get_by_role("button", name="The mask").click()
    page.locator("[data-panel='softmax.mask']").wait_for()
    page.get_by_role("button", name="All concepts").click()
    page.get_by_role("button", name="What textbooks say, tested on this text").click()
    page.get_by_text("Textbook claims on this text").wait_for()
    visitor.at_rest()
    page.get_by_role("tab", name="Lessons").click()
    page.get_by_role("button", name="My own lesson").click()
    page.get_by_role("heading", name="Your own lesson").wait_for()
    page.locator("button.card", has_text="In three minutes").click()
    page.locator(".lesson_bar .where").filter(has_text="1 / 8").wait_for()


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720), (390, 844)])
@driver.browser_test
def test_no_card_is_cut_and_none_lies_over_another(
    visitor: driver.Visitor, size: tuple[int, int]
) -> None:
    page = visitor.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for path in ("/learn?tab=concepts", "/learn"):
        page.goto(f"{visitor.server}{path}")
        page.locator(".cards .card").first.wait_for()
        visitor.at_rest()
        n_cards, cut = page.evaluate(CUT)
        assert n_cards >= 5 and cut == [], (path, size)


CUT = """() => {
  const bad = [];
  let n = 0;
  const find = (root) => { for (const each of root.querySelectorAll("*")) {
    if (each.matches(".cards .card")) {
      const box = each.getBoundingClientRect();
      const [wide, high] = [each.clientWidth + 1, each.clientHeight + 1];
      const isCut = each.scrollWidth > wide || each.scrollHeight > high;
      const isOut = box.right > innerWidth || box.left < 0;
      if (box.width) n++;
      if (box.width && (isCut || isOut)) bad.push(each.textContent);
    }
    if (each.shadowRoot) find(each.shadowRoot);
  } };
  find(document);
  return [n, bad]; }"""


def test_every_concept_and_every_lesson_has_a_picture() -> None:
    code = (bundle.HERE / "card_pictures.js").read_text("utf-8")
    drawn = {*re.findall(r'^  "?([\w-]+)"?: \(', code, re.MULTILINE)}
    assert {*VIEWS, *lessons.written()} - {*CARDS} == drawn
