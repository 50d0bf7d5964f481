"""The entry of a bibliography for what was made with Headlight."""

from __future__ import annotations

import re

from explorer.panels.spec import Panel
from models.contract.argument_validation import expect_recording
from models.contract.model import Model
from models.contract.recording import Card, Recording
from models.version import VERSION

# As CITATION.cff has them.
TITLE = "Headlight: see what every attention head of a transformer sees"
AUTHOR = "The Headlight developers"
NO_KEY = re.compile(r"[^\w.-]+")  # what the key of an entry may not have
RELEASED = "2026-12-03"


def cite(of: Panel | Recording | Model | str | None = None) -> str:
    """A BibTeX entry that names the version, and of a panel, a recording, a loaded model or its
    name also the model with the hash of its weights, and the panel, which its key has too. Raises
    TypeError for anything else."""
    named = _names_of(of)
    notes = "; ".join(f"{what} {name}{of_it}" for what, name, of_it in named)
    key = "-".join(("headlight", *(NO_KEY.sub("-", name) for _, name, _ in reversed(named))))
    year, month, _ = RELEASED.split("-")
    fields = {
        "title": f"{{{_in_latex(TITLE)}}}",
        "author": f"{{{_in_latex(AUTHOR)}}}",
        "howpublished": f"Software, version {VERSION}",
        "year": year,
        "month": str(int(month)),
        **({"note": _in_latex(notes)} if notes else {}),
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}}}\n"


Named = tuple[str, str, str]  # what it is, its name, and what is said of it


def _names_of(of: Panel | Recording | Model | str | None) -> list[Named]:
    """Names in an entry beside the version: the panel, and the model with its weights."""
    if of is None:
        return []
    if isinstance(of, Panel):
        if of.run is None:
            return [("panel", of.name, "")]
        return [("panel", of.name, ""), _of_model(of.run.recording().model)]
    if isinstance(of, str):
        from models.runtime import registry

        of = registry.load(of)
    if isinstance(of, Model):
        return [_of_model(of.card)]
    expect_recording(of)
    return [_of_model(of.model)]


def _of_model(card: Card) -> Named:
    return "model", card.name, f", weights {card.fingerprint}"


def _in_latex(text: str) -> str:
    """A text with the signs that LaTeX reads otherwise spelled out."""
    spelled = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return re.sub(r"[\\~^&%$#_{}]", lambda sign: spelled.get(sign[0], f"\\{sign[0]}"), text)
