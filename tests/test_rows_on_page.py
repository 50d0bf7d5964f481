"""What a tab shows beside each other: chosen by a row of buttons, as far as it fits the model."""

from __future__ import annotations

import pytest
from app_harness import asked_of, clean, page_at, panels_on, told
from streamlit.testing.v1 import AppTest
from test_shared_links import opened

import headlight
from explorer.app.classroom import routes
from explorer.text import lesson, places

TEXT = "My sister thanked the nurse because she was kind."


def offered(app: AppTest) -> list[str]:
    """The labels of the buttons."""
    return [
        label
        for each in app.segmented_control
        if str(each.key).startswith("rows of ")
        for label in each.options
    ]


def press(app: AppTest, row: str) -> AppTest:
    """The app after a reader pressed the button of a row."""
    return clean(app.segmented_control(key=f"rows of {places.tab_of(row).id}").set_value(row).run())


def names(app: AppTest) -> list[str]:
    return [each["panel"] for each in panels_on(app)]


CALLED = {"encoder": "Hidden word", "decoder": "Next word", "translator": "Next word"}


@pytest.mark.parametrize("model", CALLED)
def test_a_tab_is_called_what_it_is_of_the_model(model: str) -> None:
    app = clean(page_at("word", model=model, text=TEXT))
    assert app.tabs[0].label == CALLED[model]


FOLDED = [(tab.id, each.id) for tab in places.TABS.values() for each in tab.beside]


@pytest.mark.parametrize(("first", "beside"), FOLDED)
def test_a_press_shows_it_with_the_word_and_the_head_and_another_leads_back(
    first: str, beside: str
) -> None:
    chosen = {"text": TEXT, "layer": "1", "head": "2", "token": "3"}
    model = "twin-post" if beside == "twins" else "encoder"
    app = clean(page_at(first, model=model, **chosen))
    before = names(app)
    assert offered(app) == list(places.labels(places.TABS[first]).values())
    app = press(app, beside)
    asked = asked_of(app)
    assert asked["tab"] == beside == app.session_state["page"]
    assert {name: asked[name] for name in chosen} == chosen
    assert names(app) != before or beside == "claims"  # which come bit by bit
    app = press(app, first)
    assert names(app) == before and {name: asked_of(app)[name] for name in chosen} == chosen


def test_what_does_not_fit_the_model_is_not_offered() -> None:
    assert offered(page_at("concepts", model="translator", text=TEXT)) == ["Pictures", "Claims"]
    app = clean(page_at("twins", model="translator", text=TEXT))
    assert app.session_state["model"] == "translator-small" and "no training checkpoints" in told(
        app
    )
    app = press(app, "claims")
    assert app.session_state["model"] == "translator", "the reader's own comes back"
    assert not offered(page_at("sentences", text=TEXT))


def test_links_that_were_shared_before_the_tabs_folded_show_what_they_showed() -> None:
    app = clean(opened("/?tab=aggregated&sum_what=Rollout&token=4"))
    assert "rollout" in panels_on(app)[0]["title"].lower()
    app = clean(opened(f"/training?tab=twins&model=twin-post&text={TEXT}&train_pair=twin-pre"))
    assert app.session_state["page"] == "twins" and names(app) == ["training.pair"]
    assert places.place_of("twins") == "learn" and asked_of(app)["train_pair"] == "twin-pre"
    shown = headlight.screen("/training?tab=twins&model=twin-post&train_pair=twin-pre")
    assert [each.name for each in shown.panels()] == ["training.pair"]
    shown = headlight.screen("/?tab=circuits&layer=1&head=5&token=9")
    assert (shown.chosen["layer"], shown.chosen["head"], shown.chosen["token"]) == (1, 5, 9)
    assert routes.app_address("/training?tab=twins") == "/training?tab=twins"
    own = '{"title": "", "items": [{"address": "/training?tab=twins&train_pair=twin-pre"}]}'
    (item,) = lesson.from_json(own).items
    assert lesson.parts(item.address) == ("twins", {"train_pair": "twin-pre"})
