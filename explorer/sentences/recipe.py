"""The lines of Python that make again what is on screen. Whatever a reader typed stands in them as
a string and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

# What an attention's numbers are, for whoever goes on from them.
NUMBERS = "recording.attention[0].pattern  # (layer, head, query, key)"


Target = str | tuple[int, ...] | None


def recording(name: str, model: str, text: str, edits: str, target: Target) -> list[str]:
    """The lines that make a recording called `name`, of the model that the name `model` in the
    lines holds."""
    asked = [model, repr(text)]
    if edits:
        asked.append(f"from_line({edits!r})")
    if target is not None:
        asked.append(f"target={target!r}")
    return [f"{name} = library.record({', '.join(asked)})"]


def recipe(
    view: str,
    source: tuple[str, str, str, Target],
    other: tuple[str, str, str, Target] | None,
    choices: Sequence[tuple[str, str]],
    file: str,
) -> str:
    """The lines that write a view as the HTML file `file`. source and other: model, text, edits in
    one line, and target."""
    edited = source[2] or (other and other[2])
    lines = ["from explorer import export", "from models import library"]
    lines += ["from models.written_edits import from_line"] if edited else []
    lines += [
        "",
        f"model = library.load({source[0]!r})",
        *recording("recording", "model", *source[1:]),
    ]
    asked = ["recording", repr(view), "model=model"]
    if other is not None:
        same = other[0] == source[0]
        lines += [] if same else [f"beside = library.load({other[0]!r})"]
        lines += recording("other", "model" if same else "beside", *other[1:])
        asked.append("other=other")
    if isinstance(source[3], str):
        asked.append(f"target={source[3]!r}")
    asked += [f"{name}={value!r}" for name, value in choices]
    lines += [
        f"page = export.page({', '.join(asked)})",
        f'open({file!r}, "w", encoding="utf-8").write(page)',
        NUMBERS,
    ]
    return "\n".join(lines)


def many(model: str, texts: Sequence[str], attention: str) -> str:
    """The lines that read many sentences in one attention, and give the two tables of them all."""
    return "\n".join(
        [
            "from explorer.analysis import many",
            "from models import library",
            "",
            f"model = library.load({model!r})",
            f"texts = {list(texts)!r}",
            f"read = [many.read(library.record(model, text))[{attention!r}] for text in texts]",
            "found = [each for each in read if isinstance(each, many.Sentence)]",
            "shares, habits = many.share_columns(found), many.habit_columns(found)",
        ]
    )


def claims(model: str, text: str, target: str | None) -> str:
    """The lines that test every claim."""
    return "\n".join(
        [
            "from explorer.sentences import claims",
            "from explorer.views.claims import testing",
            "",
            f"found = testing.finished({model!r}, {text!r}, {target!r})",
            "table = claims.table(found)",
        ]
    )
