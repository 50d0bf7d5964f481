"""A panel in the words of an address, and the run that such words name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from explorer.panels import link_words
from explorer.panels.choice import (
    EVERY,
    Parameter,
    as_opened,
    choices_of,
    declared,
    parameters,
    parsed,
    resolved,
    with_numbers,
)
from explorer.panels.spec import PANELS, Panel, panel_names
from explorer.wording.templates import sentences
from models.contract.edits import from_line, to_line
from models.contract.spelling import nearest, there_are
from models.example_texts import DEFAULT_MODEL, DEFAULT_TEXT, OPENING_TEXT
from models.runtime.run import Run

REFUSALS = sentences("selection", "refusals")
OF_RUN = (
    "model",
    "text",
    "edits",
    "target",
    "covered",
)  # the words of an address that are of the run
PATH = "panel"


def run_of(words: Mapping[str, str]) -> Run:
    """The run that words of an address name, the one of a bare address where they name none. Under
    edits a translator's decoder reads what it reads without them, as on every page. Raises
    ValueError for words that are no edits and for a text that the model cannot read."""
    target = words.get("target", "")
    model = words.get("model", DEFAULT_MODEL)
    text = words.get("text", DEFAULT_TEXT if words else OPENING_TEXT)
    run = Run(model, text, target=target if target.strip() else None)
    line, place = words.get("edits", ""), words.get("covered", "")
    run = run.under(from_line(line)) if line else run
    return run.covering(int(place)) if place.isdecimal() else run


def words_of_run(run: Run, target: str = "") -> dict[str, str]:
    """A run in the words of an address. target: the text that was typed for its decoder."""
    of_run = {"model": run.model, "text": run.text, "edits": to_line(run.edits), "target": target}
    if run.covered is not None:
        of_run["covered"] = str(run.covered)
    return {name: word for name, word in of_run.items() if word or name == "text"}


def words_of(panel: Panel) -> dict[str, str]:
    """The run and the choices of a panel in the words of an address. Raises ValueError for a panel
    that no address can name, such as one of a recording that was handed in."""
    run = panel.run
    if run is None:
        raise ValueError(REFUSALS("no_address"))
    words = words_of_run(run, run.target if isinstance(run.target, str) else "")
    if run_of(words) != run:
        raise ValueError(REFUSALS("no_address"))
    for each in parameters(PANELS[panel.name]):
        if each.argument in panel.choices:
            value = panel.choices[each.argument]
            own_word = {each.name: each.spelled(run, value)}
            words |= _words_of_other(each, run, value) if isinstance(value, Run) else own_word
    return words


def _words_of_other(parameter: Parameter, run: Run, other: Run) -> dict[str, str]:
    """The words that make the other run of a panel."""
    made_by = parameter.choice.made_by if parameter.choice else None
    if made_by is None:
        raise ValueError(REFUSALS("no_address"))
    own, beside = (
        {"model": each.model, "text": each.text, "edits": to_line(each.edits)}
        for each in (run, other)
    )
    parts = [each for each in choices_of(made_by) if own[each.argument] != beside[each.argument]]
    rebuilt = made_by(run, **{each.argument: beside[each.argument] for each in parts})
    if replace(rebuilt, contents="") != other:
        raise ValueError(REFUSALS("no_address"))
    return {each.name: beside[each.argument] for each in parts}


def address_of(panel: Panel, ending: str) -> str:
    """The address of a panel as one of `spec.FILES`, below that of the app:
    "panel/attention.head.html?model=...". Raises as `words_of`."""
    return of_words(panel.name, words_of(panel), ending)


def of_words(panel: str, words: Mapping[str, str], ending: str) -> str:
    """The address, below that of the app, of a panel by its name, under these words, as a file."""
    return f"{PATH}/{panel}.{ending}?{urlencode(words, errors='replace')}"


def from_words(name: str, run: Run, choices: Mapping[str, str | Run]) -> Panel:
    """The panel of a name, its arguments given as words, another run as itself. An argument goes by
    its own name or by that of its choice in an address. Raises ValueError for a panel, an argument
    or a value that is not there."""
    expect_words(name, choices)
    words, arguments = dict(choices), dict[str, Any]()
    every = parameters(function := PANELS[name])
    for each in every:
        if other := _other_run(each, run, words):
            arguments[each.argument] = other
    for each in every:
        for key in {each.argument, each.name} & words.keys():
            if isinstance(word := words.pop(key), Run):
                arguments[each.argument] = word
            else:  # an empty one meant what is not chosen before there was a word for it
                is_every = not word and each.is_selected and each.name in link_words.EVERY_OF
                words[each.name] = EVERY if is_every else word
    plain = {key: word for key, word in words.items() if isinstance(word, str)}
    if any(not plain.get(name, "0").lstrip("-").isdecimal() for name in link_words.OF_TEXT):
        plain = link_words.followed(run.recording(), plain)
    chosen = with_numbers(every, run, parsed(every, plain, {}, lenient=True))
    run, known = as_opened(every, run, chosen)
    arguments |= known
    return function(run, **resolved(every, run, plain, arguments))


def expect_words(name: str, choices: Mapping[str, object]) -> None:
    """Raises ValueError for a panel that is not there, for a choice that it does not have, and for
    one that is made twice."""
    if name not in (there := panel_names()):
        raise ValueError(f"no panel is called {name!r}; {there_are(name, there)}")
    arguments: dict[str, str] = {}  # the argument by what an address may call it
    for each in parameters(PANELS[name]):
        made_by = each.choice.made_by if each.choice else None
        arguments |= {part.name: part.name for part in choices_of(made_by)} if made_by else {}
        arguments |= {each.name: each.argument, each.argument: each.argument}
    owners: dict[str, str] = {}
    for choice in choices:
        if choice not in arguments:
            names = ", ".join(dict.fromkeys(arguments.values()))
            near = nearest(choice, arguments)
            it_has = f"the nearest is {near!r}" if near else f"it has {names}"
            raise ValueError(f"the panel {name} has no choice {choice!r}; {it_has}")
        if (other := owners.setdefault(arguments[choice], choice)) != choice:
            raise ValueError(f"{other} and {choice} are the same choice; give one of them")


def other_models(name: str) -> tuple[str, ...]:
    """Names in an address of the models of the other runs that a panel takes."""
    makers = (each.choice.made_by for each in declared(PANELS[name]) if each.choice)
    parts = (part for made_by in makers if made_by for part in choices_of(made_by))
    return tuple(part.name for part in parts if part.argument == "model")


def _other_run(parameter: Parameter, run: Run, words: dict[str, str | Run]) -> Run | None:
    """The other run that an argument is, made of those words of an address that are of it, which
    are taken out of `words`; None without any."""
    if parameter.choice is None or parameter.choice.made_by is None:
        return None
    parts = [each for each in choices_of(parameter.choice.made_by) if each.name in words]
    own = {each.argument: each.parse(str(words.pop(each.name))) for each in parts}
    return parameter.choice.made_by(run, **own) if own else None
