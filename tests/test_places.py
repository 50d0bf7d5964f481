"""The one table by tab, and what keeps a tab from being shown for a model."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from app_harness import TABS

from explorer.app.state import url_state
from explorer.panels import spec
from explorer.screens import needs
from explorer.text import lesson, places
from explorer.text.places import Fold, Tab
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import named

ROWS = tuple(places.ROWS.values())
EVERY_ROW = (*ROWS, *(tab.for_classes for tab in ROWS if tab.for_classes))


def panels_in(tab: Tab) -> set[str]:
    """The names of all panels of a row."""
    folds: tuple[Fold, ...] = tuple(tab.folds.values())
    views = tab.views.panels.values() if tab.views else ()
    return {*tab.panels, *(each for fold in folds for each in fold.panels)} | {
        each for _, panels in views for each in panels
    }


# What stays in sight: a tab by itself, or what a tab opens on.
IN_SIGHT = {
    "heads": "Heads",  # the matrices of all heads
    "positions": "Positions",  # encodings as heat maps
    "residual": "Residual stream",  # its norms
    "embeddings": "Embeddings",  # their trajectories
}


def test_there_are_18_tabs_and_the_class_and_the_first_pictures_stay_in_sight() -> None:
    assert len(places.TABS) - 1 == 18
    assert {tab: places.TABS[tab].title for tab in IN_SIGHT} == IN_SIGHT
    assert [tab.id for tab in places.PLACES["attention"].tabs][0] == places.first_tab(places.FIRST)


def test_a_tab_of_several_rows_calls_each_by_another_name() -> None:
    for tab in places.TABS.values():
        labels = places.labels(tab)
        assert len(labels) == len({*labels.values()}) and all(labels.values())
        assert len(labels) == (1 + len(tab.beside) if tab.beside else 0)
        assert bool(tab.label) == bool(tab.beside)
        assert all(not (each.beside or each.label) for each in tab.beside)
        assert all(places.tab_of(row) is tab for row in labels)
    assert len({places.title(row) for row in TABS}) == len(TABS)


def test_an_address_leads_to_what_it_is_of_and_any_other_word_to_the_first() -> None:
    assert len(ROWS) == len(set(TABS)) == sum(1 + len(tab.beside) for tab in places.TABS.values())
    for tab in TABS:
        address = places.address(tab, {"layer": "1"})
        assert lesson.parts(address) == (tab, {"layer": "1"})
        place = urlsplit(address).path.strip("/") or places.FIRST
        assert places.tab_in(place, tab) == tab and places.place_of(tab) == place
        assert all(places.tab_in(other, tab) == tab for other in places.PLACES)
    for word in ("", "nowhere"):
        assert places.tab_in("predict", word) == "word"
    assert lesson.local("/training?tab=twins&layer=1", 1) == "/learn?tab=twins&layer=1"


@pytest.mark.parametrize("tab", EVERY_ROW, ids=lambda tab: tab.id)
def test_a_row_names_panels_choices_and_tabs_that_are_there(tab: Tab) -> None:
    assert panels_in(tab) <= {*spec.panel_names()}
    choices = {*tab.own, *tab.of_stream, *filter(None, (tab.open_fold,))}
    leads = tab.leads.items()
    choices |= {name for _, lead in leads for name in (*lead.choices, *lead.keeps)}
    assert choices <= {*url_state.names()} and {to for to, _ in leads} <= {*TABS}
    assert tab.closed not in tab.folds
    if views := tab.views:
        words = list(views.panels)
        assert {each for group in views.groups.values() for each in group} <= {*words}
        assert views.earlier in ("", *words[1:])


def test_the_way_to_a_use_of_the_selection_ends_on_a_tab_that_has_one() -> None:
    leads = {tab.id: places.ROWS[tab.nearest] for tab in ROWS if tab.nearest}
    assert "heads" not in leads and all(not nearest.nearest for nearest in leads.values())


def test_a_tab_has_a_sentence_where_it_has_nothing_to_show_and_no_other_has_one() -> None:
    recorded = named("frame", "recorded").keys() & {*TABS}
    assert recorded == {tab.id for tab in ROWS if tab.needs}
    unselected = named("frame", "unselected").keys() & {*TABS}
    assert unselected == {tab.id for tab in ROWS if tab.nearest}


UNMET = {
    "encoder": {"generate", "translate"},
    "decoder": {"translate"},
    "translator": {"generate", "checkpoints", "twins"},
    "induction": {"translate"},
}


@pytest.mark.parametrize("model", UNMET)
def test_a_tab_is_shown_for_a_model_or_for_another_that_fits(model: str) -> None:
    assert {tab for tab in TABS if needs.unmet(tab, model)} == UNMET[model]
    for tab in UNMET[model]:
        other = needs.Unmet(tab, model).replacement
        assert needs.unmet(tab, other) is None
        why, others = needs.Unmet(tab, model).instead(other)
        assert f"so this page shows **{literal(other)}**" in why and other in others


def test_a_model_that_is_not_in_memory_is_judged_when_it_is() -> None:
    assert needs.unmet("translate", "ours:/nowhere") is None
