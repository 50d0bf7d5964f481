"""Writes the types of figures and their axes for the browser's code anew from the dataclasses of
explorer/figures/kinds.py: `python -m docs.figure_types`."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import getdoc, getmembers
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from explorer.components import bundle
from explorer.figures import kinds

FILE = Path(bundle.__file__).with_name("figure_types.d.ts")
AXES = FILE.with_name("figure_axes.js")
HEAD = """// Written by `python -m docs.figure_types` of explorer/figures/kinds.py.

/** An array of numbers as it arrives. */
export type Numbers = Float32Array;
"""
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def document() -> str:
    """The types of all figures and of what they are made of, in the order of the dataclasses."""
    classes = [each for _, each in getmembers(kinds, is_dataclass) if isinstance(each, type)]
    classes.sort(key=lambda each: each.__qualname__)
    return HEAD + "".join(map(_interface, classes))


def _interface(made: type) -> str:
    """A dataclass as an interface; a figure has its kind, as the renderer tells them apart."""
    base = next((each.__name__ for each in made.__bases__ if is_dataclass(each)), "")
    inherited = {
        each.name for parent in made.__bases__ if is_dataclass(parent) for each in fields(parent)
    }
    hints = get_type_hints(made, vars(kinds))
    lines = [
        f"  {each.name}: {typescript(hints[each.name])};\n"
        for each in fields(made)
        if each.name not in inherited
    ]
    if made is kinds.Figure:
        lines.insert(0, "  kind: string;\n")
    extends = f" extends {base}" if base else ""
    says = " ".join((getdoc(made) or "").split())
    return f"\n/** {says} */\nexport interface {made.__name__}{extends} {{\n{''.join(lines)}}}\n"


def typescript(hint: Any) -> str:
    """A type of Python as the browser has it. Raises KeyError for one that no figure may hold."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " | ".join(map(typescript, inner))
    if origin is tuple and inner[-1] is Ellipsis:
        one = typescript(inner[0])
        return f"({one})[]" if " | " in one else f"{one}[]"
    if origin is tuple:
        return f"[{', '.join(map(typescript, inner))}]"
    if origin is Mapping:
        return f"Record<string, {'any' if inner[1] is np.ndarray else typescript(inner[1])}>"
    if hint is np.ndarray:
        return "Numbers"
    return PLAIN.get(hint) or hint.__name__


AXES_HEAD = """// @ts-check
// Written by `python -m docs.figure_types` of explorer/figures/kinds.py: of each kind of figure
// the fields that run along axes, and those with places on them; a list of places is {"each": ...}.

/** @type {Record<string, { along: Record<string, string[]>, places: Record<string, any> }>} */
// prettier-ignore
export const AXES = {
"""


def axes() -> str:
    """The axes of all figures that have some, as a module."""
    classes = [each for _, each in getmembers(kinds, is_dataclass) if isinstance(each, type)]
    found = {each.__name__.lower(): axes_of(each) for each in classes}
    lines = (f"  {name}: {json.dumps(of)},\n" for name, of in found.items() if of["along"])
    return f"{AXES_HEAD}{''.join(lines)}}};\n"


def axes_of(made: type) -> dict[str, dict[str, Any]]:
    """The fields of a dataclass along axes, and those with places on them: name -> axes."""
    found: dict[str, dict[str, Any]] = {"along": {}, "places": {}}
    for name, hint in get_type_hints(made, vars(kinds), include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(mark, kinds.Along):
                found["along"][name] = list(mark)
            else:
                found["places"][name] = _places(hint.__origin__, list(mark))
    return found


def _places(hint: Any, left: list[str]) -> Any:
    """The axes of the integers of a type, in its shape; None for what is no place."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _places(inner[0], left)
    if origin is tuple and inner[-1] is Ellipsis:
        return {"each": _places(inner[0], left)}
    if origin is tuple:
        return [_places(each, left) for each in inner]
    if is_dataclass(hint):
        of = {name: _places(each, left) for name, each in get_type_hints(hint).items()}
        return {name: axis for name, axis in of.items() if axis}
    return left.pop(0) if hint is int and left else None


if __name__ == "__main__":
    FILE.write_text(document(), "utf-8")
    AXES.write_text(axes(), "utf-8")
