"""The gallery of finds: each passes when it is measured, says what is measured, and leads to what
shows it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from app_harness import clean, page_at, panels_on

from explorer.analysis import gallery as measures
from explorer.analysis.formatting import fill
from explorer.state import url_state
from explorer.text import gallery, lesson
from explorer.text.gallery import FINDS, Find
from models.run import Run

HEAVY = {"smollm2", "minilm"}  # weights of others, which take seconds to load
ROUNDING = 2e-3  # of the numbers of a card, which have three decimals
CELL = 1  # of a digit of a pattern, where a weight is half between two


def models_of(find: Find) -> set[str]:
    return {find.model, *(word for word in map(str, find.of.values()) if word in HEAVY)}


CASES = [
    pytest.param(find, id=find.id, marks=[pytest.mark.slow] if models_of(find) & HEAVY else [])
    for find in FINDS
]


@pytest.mark.parametrize("find", CASES)
def test_a_find_passes_and_its_card_says_what_is_measured(find: Find) -> None:
    now = find.measured()
    assert now.value >= find.least, now
    assert now.numbers.keys() == find.numbers.keys()
    for name, number in now.numbers.items():
        written = find.numbers[name]
        if name == "cells":
            assert len(number) == len(written)
            pairs = [(one, other) for one, other in zip(number, written) if one != other]
            assert all(abs(int(one) - int(other)) <= CELL for one, other in pairs), number
        elif isinstance(number, float):
            assert written == pytest.approx(number, abs=ROUNDING), name
        else:
            assert written == number, name
    assert "{" not in find.sentence and fill(find.says, now.numbers).count(" ") > 3


def test_there_are_ten_of_at_least_four_models_and_six_tabs() -> None:
    assert len(FINDS) == len({find.id for find in FINDS}) == 10
    assert len(set().union(*map(models_of, FINDS))) >= 4
    assert len({find.tab for find in FINDS}) >= 6
    assert {find.measure for find in FINDS} == {*measures.MEASURES}


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
    words = {name: each for name, (each,) in parse_qs(urlsplit(find.address).query).items()}
    tab = words.pop("tab", find.tab)
    app = clean(page_at(tab, **words))
    assert panels_on(app) and app.session_state["model"] == find.model
    assert {
        name: app.session_state[name] for name in ("edits", "layer", "head") if name in words
    } == {name: words[name] for name in ("edits", "layer", "head") if name in words}


def test_a_find_fails_where_nothing_is_found() -> None:
    run = Run("encoder", "The nurse told the surgeon that she had forgotten the keys.")
    assert measures.answer(run, "", "she").value == 0
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
    assert "head 4 of layer 23" in rome and "ZeroHead%3A23%3A4" in address
    assert "Italy" in sentence and "81%" in sentence
