"""Lines of Python that compute the current screen again. A reader's text is a string literal in
them.

They import `headlight` alone of our modules, so that they run in a clone and where the package is
installed: `needs` are names of headlight.py, and `X import Y` for imports from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

# What an attention's numbers are, for whoever goes on from them.
NUMBERS = "recording.attention[0].pattern  # (layer, head, query, key)"
Target = str | tuple[int, ...] | None
Source = tuple[str, str, str, Target]  # model, text, edits in one line, and target
More = tuple[Sequence[str], Sequence[str]]


def recording(name: str, model: str, text: str, edits: str, target: Target) -> list[str]:
    """The lines that make a recording `name` with the model in the variable `model`."""
    arguments = [repr(text)]
    if edits:
        arguments.append(f"headlight.edits.from_line({edits!r})")
    if target is not None:
        arguments.append(f"target={target!r}")
    return [f"{name} = {model}.record({', '.join(arguments)})"]


def recipe(
    view: str,
    source: Source,
    other: Source | None,
    choices: Sequence[tuple[str, str]],
    file: str,
    more: More = ((), ()),
) -> str:
    """The lines that write a view as the HTML file `file`. more: what lines after them import, and
    these lines."""
    arguments = ["recording", repr(view), "model=model"]
    if other is not None:
        arguments.append("other=other")
    if isinstance(source[3], str):
        arguments.append(f"target={source[3]!r}")
    arguments += [f"{name}={value!r}" for name, value in choices]
    lines = [
        f"page = headlight.page({', '.join(arguments)})",
        f'open({file!r}, "w", encoding="utf-8").write(page)',
        NUMBERS,
    ]
    of = (source,) if other is None else (source, other)
    return numbers(of, more[0], [*lines, *more[1]])


def numbers(of: Sequence[Source], needs: Sequence[str], lines: Sequence[str]) -> str:
    """Lines that continue from recordings, with the lines before them. of: the sources of
    `recording` and of `other` after it; () without a model. The models of both are `model` and the
    name from `beside`. needs: the imports of the lines, such as "residual"."""
    needed = set(needs)
    made: list[str] = []
    for at, (name, text, edits, target) in enumerate(of):
        called = beside(of) if at else "model"
        if not at or called != "model":
            made.append(f"{called} = headlight.load({name!r})")
        made += recording("other" if at else "recording", called, text, edits, target)
    return "\n".join([*_imports(needed), "", *made, *lines])


def _imports(needs: set[str]) -> list[str]:
    elsewhere = {each for each in needs if " import " in each}
    ours = ", ".join(sorted(needs - elsewhere))
    lines = ["import headlight", *([f"from headlight import {ours}"] if ours else ())]
    return [*lines, *(f"from {each}" for each in sorted(elsewhere))]


def beside(of: Sequence[Source]) -> str:
    """The variable name of the second recording's model."""
    return "model" if of[1][0] == of[0][0] else "beside"


def axes_of(across: bool) -> list[str]:
    """The lines that name the rows and columns of the attention `of`: between two texts, `across`,
    the last row has the name of the token that comes next."""
    if not across:
        return ["axes = attention.axes(recording, of)"]
    return [
        "last = len(recording.stream(of.query).tokens) - 1",
        "scores = model.logits(recording, of.query, last)",
        "following = model.labels([attention.argmax_id(scores)])",
        "axes = attention.axes(recording, of, *following)",
    ]
