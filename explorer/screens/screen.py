"""A screen: what an address of the app shows, as a value, without the page.

from headlight import screen

for panel in screen("?tab=weight&word=it").panels():
    panel.save(f"{panel.file}.svg")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any
from urllib.parse import parse_qsl

from explorer.panels import link_words, spec
from explorer.panels.choice import (
    EVERY,
    Parameter,
    arguments_of,
    declared,
    resolve,
)
from explorer.panels.spec import PANELS, Panel
from explorer.screens import heads, link, needs
from explorer.screens.rows import PanelFunction, Row, arguments_of_all, panels_of, shared_with
from explorer.screens.subjects import SUBJECTS
from explorer.text import places
from explorer.text.markdown_escape import plain
from explorer.text.places import Tab
from explorer.text.templates import sentences
from models import registry
from models.caching import loaded
from models.edits import from_line
from models.run import Run, run_of

HEADS = "heads"  # of two panels, with what is told of a head (`heads.py`)
TEXT, MODEL = "text", "model"


@dataclass(frozen=True, repr=False)
class Screen:
    """What an address shows: a tab, the run that its panels are of, and the choices of these by
    their arguments. Two are equal where their run is the same and the same is chosen.

    notes: what the tab says of the run, such as which model it shows instead of the one that is
    asked for. refused: a sentence on each word of the address that is not followed, by its name.
    missing: by the names of panels that are not there, of those that were asked for so far, the
    sentences that stand in their place."""

    tab: Tab
    run: Run
    chosen: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=(), compare=False)
    refused: Mapping[str, str] = field(default_factory=dict, compare=False)
    missing: dict[str, str] = field(default_factory=dict, compare=False, init=False)
    _named: Run = field(kw_only=True)  # the run that the address names
    _words: Mapping[str, str] = field(kw_only=True)

    def __repr__(self) -> str:
        return f"<Headlight screen {self.tab.id} {self.run.model!r} {self.run.text!r}>"

    def panels(self) -> Iterator[Panel]:
        """The panels in the order of the page, each made when it is asked for; one that is not
        there is left out."""
        for name, make in self._makers():
            try:
                yield make()
            except ValueError as why:
                self.missing[name] = str(why)

    def words(self) -> dict[str, str]:
        """Its own address: the tab, the text, the model, and the choices that are made."""
        of_run = {TEXT: self._named.text, MODEL: self._named.model}
        of_heads = self.tab.id == HEADS
        said = heads.followed(self._words, self.refused) if of_heads else self._words
        return {"tab": self.tab.id, **of_run, **said}

    def after(self, panel: str, pressed: Mapping[str, object]) -> dict[str, str]:
        """The words of the address that a press leads to. panel: the name of the one that is
        pressed; pressed: what the press gives, by the names of choices, as `select` of the page's
        component has it. Raises ValueError for a panel that is not there."""
        if panel not in spec.panel_names():
            raise ValueError(link.SCREEN("no_panel", name=panel))
        said = {name: str(value) for name, value in pressed.items()}
        said |= dict(parse_qsl(said.pop("address", ""), keep_blank_values=True))
        now = self.words()
        if said.get(TEXT, now[TEXT]) != now[TEXT]:
            now = _without(now, "text")
        if said.get(MODEL, now[MODEL]) != now[MODEL]:
            now = _without(now, "text", "model")
        if self.tab.id == HEADS:
            return now | heads.after(self, panel, said, now)
        if "key" in said and "source" in self.chosen:
            token = said.pop("token", str(self.chosen["token"]))
            now.pop("source", None)
            return now | {"token": token, "weight_at": f"{token}.{said.pop('key')}"} | said
        return now | said

    def _makers(self) -> Iterator[tuple[str, Callable[[], Panel]]]:
        """The names of the panels, each with what makes it."""
        if self.tab.id == HEADS:
            yield from heads.makers(self, self._words)
            return
        own = self._panels
        for panel in own:
            yield _name_of(panel), partial(panel, self.run, **arguments_of(panel, self.chosen))
        of_tab = arguments_of_all(own)
        for panel in (*panels_of(self.tab.below), *panels_of(self._open_fold)):
            yield _name_of(panel), partial(self._part, panel, of_tab)

    def _part(self, panel: PanelFunction, of_tab: tuple[Parameter, ...]) -> Panel:
        """A panel below those of the tab, under the choices that mean the same there."""
        shared = shared_with(panel, self.chosen, of_tab)
        words = link_words.with_key(self._words)
        chosen, _ = resolve(declared(panel), self.run, words, shared)
        return panel(self.run, **arguments_of(panel, chosen))

    @cached_property
    def _panels(self) -> tuple[PanelFunction, ...]:
        return _panels(Row(self.tab), self.run, self._words)

    @property
    def _open_fold(self) -> tuple[str, ...]:
        """The names of the panels of the part that is open."""
        fold = self.tab.folds.get(self._words.get(self.tab.open_fold, self.tab.closed))
        return fold.panels if fold else ()


def screen(words: str | Mapping[str, str]) -> Screen:
    """What an address of the app shows, or its words by their names: "?tab=weight&word=it",
    {"tab": "weight", "word": "it"}. What they say nothing of is what a page opens on.

    Raises ValueError, with a sentence, for a tab that is not there or that is worked on by hand on
    the page, for a model that cannot be used and a text that it cannot read, and where the tab has
    nothing to show of them."""
    if isinstance(words, str):
        tab, said = link.tab_and_words(words)
    else:
        tab, said = link.tab_of(words.get("tab", "")), dict(words)
        said.pop("tab", None)
    row = places.TABS[tab]
    if tab != HEADS and not row.panels and row.views is None:
        raise ValueError(link.SCREEN("by_hand", tab=places.title(tab)))
    text, model = link.text_and_model(said, tab)
    model = registry.spelled(model)
    loaded(model)  # it says what is wrong with it, and what it can do is known then
    named, notes = _choices(said, row), list[str]()
    if unmet := needs.unmet(tab, model):
        if not (replacement := unmet.replacement):
            raise ValueError(unmet.sentence)
        notes += map(plain, unmet.instead(replacement))
        model, named = replacement, _without(named, "text", "model")
    return _shown(row, Run(model, text), named, notes)


def _choices(words: Mapping[str, str], tab: Tab) -> dict[str, str]:
    """The choices of a link to a tab, as the app has them, without text and model."""
    named = link.in_todays_words(words, tab.id)
    return {name: word for name, word in named.items() if name not in (TEXT, MODEL)}


def _shown(tab: Tab, named: Run, words: dict[str, str], notes: list[str]) -> Screen:
    """The screen of a tab, of a text in a model, under choices in today's words."""
    refused, not_chosen = dict[str, str](), dict[str, str]()
    run, unedited = _runs_read(tab, named, words, notes, refused)
    words = link_words.followed(unedited.recording(), words)
    if tab.id == HEADS:
        shown = screen_of(tab, run, words)
        return replace(
            shown, notes=tuple(notes), refused={**refused, **shown.refused}, _named=named
        )
    now = link_words.with_key(words)
    if tab.for_classes and run.loaded.capabilities.classes:
        tab = tab.for_classes
    known: dict[str, Any] = {}
    run_of_panels = run
    if tab.subject:
        run_of_panels, known = SUBJECTS[tab.subject](run, now, refused)
    chosen = _chosen_of_row(Row(tab), run_of_panels, now, known, not_chosen)
    followed = {name: word for name, word in words.items() if name not in not_chosen}
    if tab.views and tab.views.earlier:  # of a link that names none
        followed.setdefault(tab.views.choice, next(iter(tab.views.panels)))
    refused |= not_chosen
    return Screen(tab, run_of_panels, chosen, tuple(notes), refused, _named=named, _words=followed)


def screen_of(tab: Tab, run: Run, words: Mapping[str, str]) -> Screen:
    """The screen of Heads of a run that was read, under choices in today's words, by which words of
    the text are places."""
    chosen, refused = heads.choices(run, link_words.with_key(words))
    return Screen(tab, run, chosen, refused=refused, _named=run, _words=words)


def _runs_read(
    tab: Tab, named: Run, words: Mapping[str, str], notes: list[str], refused: dict[str, str]
) -> tuple[Run, Run]:
    """The run of a tab, under the edits of the address where the tab reads them and they apply,
    and the same without edits. What does not apply is noted, and refused."""
    recorded = loaded(named.model).recorded
    run = named if recorded is None or recorded.text != named.text else run_of(recorded)
    is_translator = loaded(named.model).card.kind == "encoder-decoder"
    target = words.get("target", "") if is_translator and "target" in tab.reads else ""
    unedited = replace(run, target=target) if target.strip() else run
    unedited.recording()
    if not words.get("edits") or "edits" not in tab.reads:
        return unedited, unedited
    try:
        edited = unedited.under(from_line(words["edits"]))
        edited.recording()
    except ValueError as why:
        refused["edits"] = sentences("frame", "edits")("refused", why=str(why).rstrip("."))
        notes.append(refused["edits"])
        return unedited, unedited
    return edited, unedited


def _panels(row: Row, run: Run, words: Mapping[str, str]) -> tuple[PanelFunction, ...]:
    """The panels of a tab that stand above its parts, those of its view first."""
    if row.view is None:
        return row.panels
    view = resolve((row.view,), run, words)[0][row.view.argument]
    return (*row.of_views[view], *row.panels)


def _chosen_of_row(
    row: Row,
    run: Run,
    words: Mapping[str, str],
    known: Mapping[str, Any],
    refused: dict[str, str],
) -> dict[str, Any]:
    """The arguments of a tab's panels: the selection among all of them first, which every panel has
    then, and the choices of each. What is refused goes into `refused`."""
    panels = _panels(row, run, words)
    asked = [each for each in arguments_of_all(panels) if each.argument not in known]
    parts = row.selection(panels, known)
    others = [each for each in asked if not each.is_selected]
    now, why_not = resolve((*parts.values(), *others), run, words, known)
    chosen = {**known, **{each.argument: now[each.argument] for each in parts.values()}}
    for panel in panels:
        of_panel, refusals = resolve(declared(panel), run, words, arguments_of(panel, chosen))
        chosen |= of_panel
        why_not |= refusals
    if row.view is not None:
        why_not |= resolve((row.view,), run, words)[1]
    if row.fold is not None:
        why_not |= resolve((row.fold,), run, words)[1]
    refused |= {name: why for name, why in why_not.items() if words.get(name) != EVERY}
    return chosen


def _name_of(panel: PanelFunction) -> str:
    return next(name for name, each in PANELS.items() if each is panel)


def _without(words: Mapping[str, str], *causes: str) -> dict[str, str]:
    """Words of an address without the choices that are forgotten with the "text", or the
    "model"."""
    every = (each for choices in spec.choices_by_panel().values() for each in choices)
    forgotten = {each.name for each in every if each.of in causes}
    return {name: word for name, word in words.items() if name not in forgotten}
