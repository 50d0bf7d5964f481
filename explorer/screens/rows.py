"""A row of the table of tabs (`text/places.py`) with its panel functions, and the choices that
these take together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from explorer.panels.choice import EVERY, Choice, Parameter, parameters
from explorer.panels.spec import PANELS, Panel, panel_names
from explorer.text.places import Tab
from models.runtime.run import Run

PanelFunction = Callable[..., Panel]


@dataclass(frozen=True)
class Row:
    """A tab of the table with its panel functions."""

    tab: Tab

    @cached_property
    def panels(self) -> tuple[PanelFunction, ...]:
        """Those from top to bottom, below those of its views."""
        return panels_of(self.tab.panels)

    @cached_property
    def of_views(self) -> dict[str, tuple[PanelFunction, ...]]:
        """The panels of its views, by their words."""
        views = self.tab.views.panels if self.tab.views else {}
        return {name: panels_of(panels) for name, (_, panels) in views.items()}

    @cached_property
    def arguments(self) -> tuple[Parameter, ...]:
        """Those of all its panels, but of the parts below."""
        panels = (*self.panels, *(each for of_view in self.of_views.values() for each in of_view))
        return tuple(each for panel in panels for each in parameters(panel))

    @cached_property
    def labels(self) -> dict[str, str]:
        """The labels of its views by their words."""
        if (views := self.tab.views) is None:
            return {}
        own = (each.choice for each in self.arguments if each.name == views.choice)
        options: Any = next((each.options for each in own if each), {})
        return {name: label or options[name] for name, (label, _) in views.panels.items()}

    @cached_property
    def view(self) -> Parameter | None:
        """The choice of the view, None for a tab without views; the first is shown until it is
        made."""
        if (views := self.tab.views) is None:
            return None
        first, choice = next(iter(views.panels)), Choice(self.labels, "View")
        return Parameter(views.choice, str, False, first, choice)

    @cached_property
    def fold(self) -> Parameter | None:
        """The choice of the part that is open, None where the address does not say."""
        tab = self.tab
        others = (tab.alone.others,) if tab.alone else ()
        names = Choice((tab.closed, *others, *tab.folds), "the part that is open")
        return Parameter(tab.open_fold, str, False, tab.closed, names) if tab.open_fold else None

    @property
    def is_open(self) -> bool:
        """True where its panels show all heads until a reader chooses one."""
        of_head = [each.choice for each in self.arguments if each.name == "head"]
        return any(each is not None and each.suits == EVERY for each in of_head)

    def selection(
        self, panels: Sequence[PanelFunction], known: Collection[str]
    ) -> dict[str, Parameter]:
        """The parts of the selection by their names: those that the panels on show declare, and
        else those of its others. known: arguments that are not chosen."""
        parts: dict[str, Parameter] = {}
        for each in (*arguments_of_all(panels), *self.arguments):
            if each.is_selected and each.argument not in known:
                parts.setdefault(each.name, each)
        return parts


def opened(tab: Tab, run: Run, known: Mapping[str, Any], words: Mapping[str, str]) -> Tab:
    """The row of a tab that opens on panels `alone` for a run: with these in the place of its own
    where they are there and no other part is open. known: arguments that are known of the run."""
    if tab.alone is None or tab.alone.is_there is not None:
        return tab
    own = {each: PANELS[each] for each in tab.alone.panels if each in panel_names()}
    try:
        for panel in own.values():
            taken = {each.argument for each in parameters(panel)}
            panel(run, **{name: value for name, value in known.items() if name in taken})
    except ValueError:
        return replace(tab, alone=replace(tab.alone, is_there=False))
    there = replace(tab.alone, is_there=True)
    if words.get(tab.open_fold, tab.closed) != tab.closed:
        return replace(tab, alone=there, closed=there.others)
    return replace(tab, alone=there, panels=there.panels, folds={})


def panels_of(names: Sequence[str]) -> tuple[PanelFunction, ...]:
    """Panel functions by their names."""
    assert {*names} <= {*panel_names()}, names
    return tuple(PANELS[name] for name in names)


def arguments_of_all(panels: Sequence[PanelFunction]) -> tuple[Parameter, ...]:
    """The arguments of some panels, each once."""
    every = [each for panel in panels for each in parameters(panel)]
    return tuple(each for at, each in enumerate(every) if each not in every[:at])


def shared_with(
    panel: PanelFunction, chosen: Mapping[str, Any], of_tab: Sequence[Parameter]
) -> dict[str, Any]:
    """The choices of a tab that a panel below has too: the selection, and what means the same by
    its name. of_tab: the arguments of which they are."""
    return {
        each.argument: chosen[each.argument]
        for each in parameters(panel)
        if each.argument in chosen and (each.is_selected or each in of_tab)
    }
