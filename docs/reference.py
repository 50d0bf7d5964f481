"""Writes the tables of docs/reference.md anew from signatures and docstrings: `python -m
docs.reference`. The text around them stays."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from docs import limits
from explorer.app.state import url_state
from explorer.app.views import tabs
from explorer.panels import spec
from explorer.panels.choice import Parameter, listed
from explorer.panels.spec import Panel
from explorer.text import places
from models.contract import edits
from models.contract.model import Model

assert tabs.VIEWS  # with them the choices of all tabs are declared
FILE = Path(__file__).with_name("reference.md")


def document(text: str) -> str:
    """The reference with its tables as the code has them."""
    for heading, rows in TABLES.items():
        text = _replaced(text, heading, rows(_rows(text, heading)))
    return text


def signature(name: str, function: Callable[..., Any]) -> str:
    """A function with the names of its arguments."""
    names = [each for each in inspect.signature(function).parameters if each != "self"]
    return f"{name}({', '.join(names)})"


def _first_paragraph(function: object) -> str:
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())


def _pages(rows: list[str]) -> Iterable[str]:
    for place in places.PLACES.values():
        for tab in place.tabs:
            for row, label in (places.labels(tab) or {tab.id: ""}).items():
                of_tab = f"{tab.title}: {label}" if label else tab.title
                yield f"| {place.title} | {of_tab} | `{places.address(row, {})}` |"


def _choices(_: list[str]) -> Iterable[str]:
    return (_choice(name, by) for name, by in url_state.declared().items())


def _choice(name: str, by: Mapping[str, Parameter]) -> str:
    """The row of a declared choice: who declares it, its default, its label and options."""
    parameter = next(iter(by.values()))
    choice = parameter.choice
    options = choice.options if choice and not callable(choice.options) else ()
    labels = options if isinstance(options, Mapping) else {}
    words = [
        f"`{word}`" + (f" ({label})" if (label := labels.get(each, word)) != word else "")
        for each in (() if isinstance(options, range) else options)
        if (word := parameter.word(each))
    ]
    words = listed(options) if isinstance(options, range) else words
    label = choice.label or choice.help if choice else ""
    means = ": ".join(filter(None, (label, ", ".join(words))))
    default = f"`{parameter.first}`" if parameter.first else ""
    who = ", ".join(by if "every page" not in by else ["every page"])
    return f"| `{name}` | {who} | {default} | {means} |"


# Arguments of the examples, of a decoder and six words; of some functions others.
ARGUMENTS = {
    **{"layer": "1", "head": "2", "token": "3", "query": "3", "key": "1", "source": "1"},
    **{
        "to_layer": "2",
        "to_head": "0",
        "neuron": "7",
        "stream": '"decoder"',
        "attention": '"self"',
    },
    **{"text": "text", "donor": '"The dog sat on the mat"', "texts": '[text, "A dog ran"]'},
    **{
        "recording": "recording",
        "ids": "[5, 9]",
        "id": "5",
        "against": "9",
        "site": '"1.ffn.wrote"',
    },
    **{"values": "vector", "value": "1.0", "factor": "2.0", "divisor": "4.0", "size": "3"},
    **{"groups": "2", "seed": "1", "by": "5", "strategy": "2", "n_read": "3", "top": "4"},
    **{"rate": "0.001", "other": "recording", "other_targets": "[(3, 5)]"},
    **{"targets": "[(3, 5)]", "vectors": "model.embeddings([5, 9])"},
    "logits": 'model.logits(recording, "decoder", 3)',
}
OF_SOME = {
    "OtherPositions": {"to": '"rotary"'},
    "MoveNorm": {"to": '"pre"'},
    "OtherNorm": {"to": '"rms"'},
    "jacobian": {"site": '"1.ffn"'},
    "votes": {"token": "7"},  # a pronoun
}
SELECTION = ("layer", "head", "token")


def example(name: str, function: Callable[..., Any], selects: bool = False) -> str:
    """A call of a function with all that it needs; where it `selects`, with a layer, a head and a
    token by name too, as far as it takes them."""
    values = {**ARGUMENTS, "run": "run", **OF_SOME.get(name.rpartition(".")[2], {})}
    arguments = [
        f"{each.name}={values[each.name]}" if each.default is not each.empty else values[each.name]
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.name != "self" or selects and each.name in SELECTION
    ]
    return f"`{name}({', '.join(arguments)})`"


def _edits(rows: list[str]) -> Iterable[str]:
    for name, kind in edits.KINDS.items():
        call = example(f"edits.{name}", kind)
        yield f"| `{signature(name, kind)}` | {_first_paragraph(kind)} | {call} |"


def _methods(rows: list[str]) -> Iterable[str]:
    for name, method in inspect.getmembers(Model, inspect.isfunction):
        if not name.startswith("_"):
            gives = str(inspect.signature(method).return_annotation).replace(" | ", " or ")
            call = example(f"model.{name}", method)
            about = _first_paragraph(method)
            yield f"| `{signature(name, method)}` | `{gives}` | {about} | {call} |"


def _panels(rows: list[str]) -> Iterable[str]:
    modules = {each.partition(".")[0] for each in spec.panel_names()}
    for module in sorted(modules):
        for name, made in vars(import_module(f"explorer.panels.{module}")).items():
            if is_panel(made, f"explorer.panels.{module}"):
                call = example(f"panels.{module}.{name}", made, selects=True)
                code = signature(f"{module}.{name}", made)
                yield f"| `{code}` | {_first_paragraph(made)} | {call} |"


def is_panel(made: object, module: str) -> bool:
    """True for a public function of a module that makes a panel of a run."""
    function = inspect.unwrap(made) if inspect.isfunction(made) else None
    if function is None or function.__module__ != module or function.__name__.startswith("_"):
        return False
    names = inspect.signature(function, eval_str=True)
    return names.return_annotation is Panel and next(iter(names.parameters), "") == "run"


TABLES: dict[str, Callable[[list[str]], Iterable[str]]] = {
    "## Pages": _pages,
    "## Link parameters": _choices,
    "## Edits": _edits,
    "### Methods of a model": _methods,
    "### Panels": _panels,
    "## Limits": lambda _: limits.rows(),
}
TABLE = r"\n{heading}\n.*?\n\|[^\n]*\|\n\|[-|: ]+\|\n((?:\|[^\n]*\|\n)+)"


def _rows(text: str, heading: str) -> list[str]:
    """The rows of the table below a heading."""
    return _table(text, heading)[1].splitlines()


def _replaced(text: str, heading: str, rows: Iterable[str]) -> str:
    start, end = _table(text, heading).span(1)
    return text[:start] + "".join(f"{row}\n" for row in rows) + text[end:]


def _table(text: str, heading: str) -> re.Match[str]:
    match = re.search(TABLE.format(heading=re.escape(heading)), text, re.DOTALL)
    if match is None:
        raise ValueError(f"the reference has no table below {heading}")
    return match


if __name__ == "__main__":
    FILE.write_text(document(FILE.read_text("utf-8")), "utf-8")
