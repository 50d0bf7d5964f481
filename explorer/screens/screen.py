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

from explorer.panels import architecture, flow_way, link_words, spec
from explorer.panels.choice import (
    EVERY,
    Parameter,
    arguments_of,
    as_read,
    declared,
    parameters,
    resolve,
)
from explorer.panels.spec import PANELS, Panel
from explorer.screens import heads, known_words, needs
from explorer.screens.presses import RULES
from explorer.screens.rows import (
    PanelFunction,
    Row,
    arguments_of_all,
    opened,
    panels_of,
    shared_with,
)
from explorer.screens.subjects import AT_FIRST, SUBJECTS, under_edits
from explorer.text import places
from explorer.text.places import Tab
from explorer.wording.markdown_escape import plain
from models.contract.edits import of_any_text
from models.contract.notices import tell
from models.runtime import registry
from models.runtime.caching import loaded
from models.runtime.run import Run, run_of

HEADS = "heads"  # of two panels, with what is told of a head (`heads.py`)
TEXT, MODEL = "text", "model"
FLOW = "flow"
TOLD = ("flow_beam", "flow_level")  # of the flow, where the question does not stand


@dataclass(frozen=True)
class LowerPanel:
    """A panel below those of a tab: its function and its run, all its choices, sentences on the
    words that are refused, and those of its choices that it does not share with the tab."""

    panel: PanelFunction
    run: Run
    chosen: Mapping[str, Any]
    refused: Mapping[str, str]
    own: tuple[Parameter, ...]

    def make(self) -> Panel:
        """The panel. Raises ValueError where it is not there."""
        return self.panel(self.run, **arguments_of(self.panel, self.chosen))


@dataclass(frozen=True, repr=False)
class Screen:
    """All that an address shows: a tab, the run that its panels are of, and the choices of these by
    their arguments. Two are equal where their run is the same and the same is chosen.

    notes: what the tab says of the run, such as which model it shows instead of the one that is
    asked for. refused: a sentence on each word of the address that is not followed, by its name.
    asked: the choices for which it read a word. known: of the choices those that the run says.
    covered: the place whose word it asks for, as of `Recording.covering`, None for none; the run of
    its panels tells it nowhere, but the flow's, which has it until the light is on. missing: by the
    names of panels that are not there, of those that were asked for so far, the
    sentences that stand in their place."""

    tab: Tab
    run: Run
    chosen: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=(), compare=False)
    refused: Mapping[str, str] = field(default_factory=dict, compare=False)
    asked: tuple[Parameter, ...] = field(default=(), compare=False)
    known: Mapping[str, Any] = field(default_factory=dict, compare=False)
    covered: int | None = None
    missing: dict[str, str] = field(default_factory=dict, compare=False, init=False)
    _named: Run = field(kw_only=True)  # the run that the address names
    _words: Mapping[str, str] = field(kw_only=True)

    def __repr__(self) -> str:
        return f"<Headlight screen {self.tab.id} {self.run.model!r} {self.run.text!r}>"

    def panels(self) -> Iterator[Panel]:
        """The panels in the order of the page, but the grid of Heads before what takes longer, each
        made when it is asked for; one that is not there is left out."""
        for name, make in self._makers():
            try:
                yield make()
            except ValueError as why:
                self.missing[name] = str(why)

    def panel(self, name: str) -> Panel:
        """The panel of that name among them. Raises ValueError where it is not there."""
        for each, make in self._makers():
            if each == name:
                return make()
        raise ValueError(link_words.SCREEN("no_panel", name=name))

    def words(self) -> dict[str, str]:
        """Its own address: the tab, the text, the model, and the choices that are made."""
        of_run = {TEXT: self._named.text, MODEL: self._named.model}
        chosen = self._words
        if self.tab.id == HEADS:  # where it is not known before
            asked = {each.name for each in self.asked}
            chosen = link_words.as_followed(chosen, self.refused, asked)
        return {"tab": self.tab.id, **of_run, **chosen}

    def after(self, panel: str, pressed: Mapping[str, object]) -> dict[str, str]:
        """The words of the address that a press leads to. panel: the name of the one that is
        pressed, "" for the menus of the selection; pressed: what the press gives, by the names of
        choices, as `select` of the page's component has it. Raises ValueError for a panel that is
        not there."""
        if panel and panel not in spec.panel_names():
            raise ValueError(link_words.SCREEN("no_panel", name=panel))
        given = {name: str(value) for name, value in pressed.items()}
        given |= dict(parse_qsl(given.pop("address", ""), keep_blank_values=True))
        now = self.words()
        if given.get(TEXT, now[TEXT]) != now[TEXT]:
            now = _without(now, "text")
        if given.get(MODEL, now[MODEL]) != now[MODEL]:
            now = _without(now, "text", "model")
        if self.tab.id == HEADS:
            return now | heads.after(self.run, self.chosen, panel, given, now)
        if "key" in given and "source" in self.chosen:
            token = given.setdefault("token", str(self.chosen["token"]))
            now.pop("source", None)
            given["weight_at"] = f"{token}.{given.pop('key')}"
        after = now | given
        if self.tab.press:
            RULES[self.tab.press](self.run, self.chosen, panel, given, after)
        return after

    @cached_property
    def row(self) -> Row:
        """The tab with its panel functions."""
        return Row(self.tab)

    @cached_property
    def view(self) -> str:
        """The word of the view on show, "" for a tab without views."""
        return _view(self.row, self.run, self._words)

    @cached_property
    def on_show(self) -> tuple[PanelFunction, ...]:
        """The panel functions that stand above the parts of the tab, those of its view first."""
        return (*self.row.of_views.get(self.view, ()), *self.row.panels)

    @cached_property
    def selection(self) -> dict[str, Parameter]:
        """The parts of the selection that are chosen on the tab, by their names."""
        return self.row.selection(self.on_show, self.known)

    def part(self, panel: PanelFunction) -> LowerPanel:
        """A panel below those of the tab, under the choices that mean the same there."""
        shared = shared_with(panel, self.chosen, arguments_of_all(self.on_show))
        words = link_words.with_key(self._words)
        own = tuple(each for each in declared(panel) if each.argument not in shared)
        return LowerPanel(panel, self.run, *resolve(own, self.run, words, shared), own)

    def _makers(self) -> Iterator[tuple[str, Callable[[], Panel]]]:
        """The names of the panels, each with what makes it."""
        if self.tab.id == HEADS:
            yield from heads.makers(self.run, self.chosen, self._words, self.refused)
            return
        for panel in self.on_show:
            yield name_of(panel), partial(panel, self.run, **arguments_of(panel, self.chosen))
        for panel in (*panels_of(self.tab.below), *panels_of(self._open_fold)):
            yield name_of(panel), partial(lambda panel: self.part(panel).make(), panel)

    @property
    def _open_fold(self) -> tuple[str, ...]:
        """The names of the panels of the part that is open."""
        fold = self.tab.folds.get(self._words.get(self.tab.open_fold, self.tab.closed))
        return fold.panels if fold else ()


def screen(words: str | Mapping[str, str]) -> Screen:
    """The screen of an address of the app, or of its words by their names: "?tab=weight&word=it",
    {"tab": "weight", "word": "it"}. What they say nothing of is what a page opens on; a Notice says
    which of them are not followed.

    Raises TypeError for what is no address, and ValueError, with a sentence, for a tab that is not
    there or that is worked on by hand on the page, for a model that cannot be used and a text that
    it cannot read, and where the tab has nothing to show of them."""
    if not isinstance(words, (str, Mapping)):
        raise TypeError(link_words.SCREEN("no_address", value=words))
    shown = of_words(words)
    asked = link_words.tab_and_words(words)[1] if isinstance(words, str) else words
    if isinstance(words, str) and (why := link_words.no_place(words)):
        tell(why.removesuffix("."))
    for name, why in {**known_words.unknown(asked), **shown.refused}.items():
        if name == "token" and name not in asked and "word" in asked:
            name = "word"
        tell(f"{name} of this address is not followed: {why}")
    return shown


def of_words(words: str | Mapping[str, str]) -> Screen:
    """The same, where `refused` alone says which words are not followed: a server's log, to which
    warnings go, has no word of a reader's."""
    if isinstance(words, str):
        tab, said = link_words.tab_and_words(words)
    else:
        tab, said = link_words.tab_of(words.get("tab", "")), dict(words)
        said.pop("tab", None)
    row = places.ROWS[tab]
    if tab != HEADS and not row.panels and row.views is None:
        raise ValueError(link_words.SCREEN("by_hand", tab=places.title(tab)))
    text, model = link_words.text_and_model(said, tab)
    model = registry.spelled(model)
    loaded(model)  # it says what is wrong with it, and what it can do is known then
    named, notes = _choices(said, row), list[str]()
    if row.needs and (unmet := needs.unmet(tab, model)):
        if not (replacement := unmet.replacement):
            raise ValueError(unmet.sentence)
        notes += map(plain, unmet.instead(replacement))
        model, named = replacement, _without(named, "text", "model")
    return _shown(row, Run(model, text), named, notes)


def _choices(words: Mapping[str, str], tab: Tab) -> dict[str, str]:
    """The choices of a link to a tab, as the app has them, without text and model."""
    named = link_words.in_todays_words(words, tab.id)
    return {name: word for name, word in named.items() if name not in (TEXT, MODEL)}


def _shown(tab: Tab, named: Run, words: dict[str, str], notes: list[str]) -> Screen:
    """The screen of a tab, of a text in a model, under choices in today's words."""
    refused = dict[str, str]()
    run, unedited = _runs_read(tab, named, words, notes, refused)
    words = link_words.followed(unedited.recording(), words)
    shown = screen_of(row_of(tab, run), run, words)
    return replace(
        shown, notes=(*notes, *shown.notes), refused={**refused, **shown.refused}, _named=named
    )


def row_of(tab: Tab, run: Run) -> Tab:
    """The row of a tab for a run: another one where its model classifies texts."""
    return tab.for_classes if tab.for_classes and run.loaded.capabilities.classes else tab


def screen_of(
    tab: Tab,
    run: Run,
    words: Mapping[str, str],
    made: tuple[Run, Mapping[str, Any]] | None = None,
) -> Screen:
    """The screen of a row of a run that was read, under choices in today's words, by which words of
    the text are places. made: the run that its panels are of and the arguments that are known by
    then, where no subject makes them. Raises ValueError, with a sentence, where the tab has nothing
    to show of the run."""
    words = {**words, **at_first(tab, run, words)}
    now = link_words.with_key(words)
    if tab.id == HEADS:
        chosen, refused = heads.choices(run, now)
        place = covered_place(run, words)
        return Screen(
            tab,
            run.covering(place),
            chosen,
            refused=refused,
            asked=heads.ASKED,
            covered=place,
            _named=run,
            _words=words,
        )
    not_chosen, notes = dict[str, str](), dict[str, str]()
    known: Mapping[str, Any] = {}
    asked: tuple[Parameter, ...] = ()
    of_panels, subject = run, SUBJECTS.get(tab.subject)
    if made is not None:
        of_panels, known = made
    elif subject is not None:
        asked = declared(subject)
        own, refusals = resolve(asked, run, now)
        not_chosen |= refusals
        of_panels, known = subject(run, now, notes, **own)
    tab = opened(tab, of_panels, known, now)
    row = Row(tab)
    every = arguments_of_all(row.panels)
    if read := [each for each in every if each.choice and each.choice.reads]:
        choices = (*read, *(each for each in every if each.is_selected))
        values, refusals = resolve(choices, of_panels, now)
        not_chosen |= {name: why for name, why in refusals.items() if now[name] != EVERY}
        accepted = now.keys() - refusals.keys()
        named = {each.argument: values[each.argument] for each in choices if each.name in accepted}
        of_panels, more = as_read(read, of_panels, named)
        known, asked = {**known, **more}, (*asked, *choices)
    chosen, of_row = _chosen_of_row(row, of_panels, now, known, not_chosen)
    asked += of_row
    of_tab = {*not_chosen, *(each.name for each in asked)}
    followed = link_words.as_followed(words, not_chosen, of_tab)
    if tab.views and tab.views.earlier:  # of a link that names none
        followed.setdefault(tab.views.choice, next(iter(tab.views.panels)))
    return Screen(
        tab,
        of_panels.covering(covered_place(of_panels, words)),
        chosen,
        tuple(notes.values()),
        notes | not_chosen,
        asked,
        known,
        covered_on(tab, of_panels, words),
        _named=run,
        _words=followed,
    )


def at_first(tab: Tab, run: Run, words: Mapping[str, str]) -> dict[str, str]:
    """The words that an address of a tab means, of a run, which says none of them."""
    choose = AT_FIRST.get(tab.subject)
    return choose(run, words) if choose else {}


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
    line = words.get("edits", "") if "edits" in tab.reads else ""
    if not line:
        return unedited, unedited
    edited, why = under_edits(unedited, line)
    if why:
        refused["edits"] = why
        notes.append(why)
    return edited, unedited


def _view(row: Row, run: Run, words: Mapping[str, str]) -> str:
    """The word of the view on show, "" for a row without views."""
    if row.view is None:
        return ""
    return str(resolve((row.view,), run, words)[0][row.view.argument])


def _chosen_of_row(
    row: Row,
    run: Run,
    words: Mapping[str, str],
    known: Mapping[str, Any],
    refused: dict[str, str],
) -> tuple[dict[str, Any], tuple[Parameter, ...]]:
    """The arguments of a tab's panels: the selection among all of them first, which every panel has
    then, and the choices of each; and all for which a word was read. What is refused goes into
    `refused`."""
    panels = (*row.of_views.get(_view(row, run, words), ()), *row.panels)
    asked = [each for each in arguments_of_all(panels) if each.argument not in known]
    parts = row.selection(panels, known)
    others = [each for each in asked if not each.is_selected]
    now, why_not = resolve((*parts.values(), *others), run, words, known)
    chosen = {**known, **{each.argument: now[each.argument] for each in parts.values()}}
    for panel in panels:
        of_panel, refusals = resolve(declared(panel), run, words, arguments_of(panel, chosen))
        chosen |= of_panel
        why_not |= refusals
    of_tab = tuple(each for each in (row.view, row.fold) if each is not None)
    why_not |= resolve(of_tab, run, words)[1]
    refused |= {name: why for name, why in why_not.items() if words.get(name) != EVERY}
    return chosen, (*parts.values(), *others, *of_tab)


def name_of(panel: PanelFunction) -> str:
    """The name of a panel function, such as "attention.head"."""
    return next(name for name, each in PANELS.items() if each is panel)


def _without(words: Mapping[str, str], *causes: str) -> dict[str, str]:
    """Words of an address without the choices that are forgotten with the "text", or the "model",
    and without the edits at places of the text."""
    every = (each for choices in spec.choices_by_panel().values() for each in choices)
    forgotten = {each.name for each in every if each.of in causes}
    kept = {name: word for name, word in words.items() if name not in forgotten}
    return kept | {name: of_any_text(kept[name]) for name in link_words.EDITS if name in kept}


# ---- the word that a screen asks its reader for, told nowhere until it is answered ---------------


def covered_on(tab: Tab, run: Run, words: Mapping[str, str]) -> int | None:
    """The place that a screen covers, as `Recording.covering` has it: the one of its address, or
    that which the flow asks for before the light is on; None for none."""
    if (place := covered_place(run, words)) is not None:
        return place
    return _asked_place(run, words) if asks_on(tab, words) else None


def asks_on(tab: Tab, words: Mapping[str, str]) -> bool:
    """True for the flow before the light is on."""
    return tab.id == FLOW and not any(map(words.get, TOLD))


def covered_place(run: Run, words: Mapping[str, str]) -> int | None:
    """The place that an address covers; None where it says none that is there."""
    word = words.get("covered", "")
    n = len(run.recording().streams[-1].tokens)
    return int(word) if word.isdecimal() and len(word) < 6 and 0 < int(word) <= n else None


def _asked_place(run: Run, words: Mapping[str, str]) -> int | None:
    """The place that the flow asks for under the words of an address, None where it asks for
    nothing."""
    named = link_words.with_key(link_words.followed(run.recording(), words))
    of_flow = {each.name: each for each in parameters(architecture.flow)}
    chosen, _ = resolve((of_flow["token"], of_flow["flow_hide"]), run, named)
    return flow_way.asked_place(run, chosen["token"], chosen["hide"])
