"""The door for what leaves Headlight as one file: any view of a recording as an HTML document that
needs no network.

    from explorer import export
    from models import registry

    recording = registry.load("encoder").record("The animal was tired.")
    open("heads.html", "w", encoding="utf-8").write(export.page(recording))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from explorer.html_export import Document
from explorer.panels import attention, spec
from explorer.panels.spec import expect_words, panel_names
from models import registry
from models.recording import Recording
from models.run import Run

if TYPE_CHECKING:
    from models.model import Model

# Views of several panels, with the choices that each takes, by their names in the address.
CHOICES = {
    "heads": tuple(attention.CHOICES),
    "findings": (),
}
VIEWS = tuple(CHOICES)
PICTURES = tuple(f".{ending}" for ending, kind in spec.FILES.items() if kind.is_picture)
__all__ = ["PICTURES", "VIEWS", "expect_words", "figure", "page", "panel_names", "views"]


def page(
    recording: Recording,
    view: str = "heads",
    /,
    *,
    model: Model | None = None,
    other: Recording | None = None,
    target: str | None = None,
    link: str = "",
    **choices: object,
) -> Document:
    """A view of a recording as one HTML document, interactive, that asks for nothing from
    elsewhere. A notebook draws it.

    view: "heads", "findings", or a panel such as "soft_lookup.temperature", whose choices are its
    arguments. model: the recording's, loaded; it is loaded anew where None. other: what stands
    beside it, in the panels of `compare`. target: what was typed for a decoder to read. link: the
    address of a Headlight that the file shall lead back to. choices: as in the address of the page,
    such as layer=1. Raises ValueError for a view or a choice that is not there.
    """
    if not isinstance(recording, Recording):
        raise TypeError(f"a view is of a recording, and not of a {type(recording).__name__}")
    loaded = registry.load(recording.model.name) if model is None else model
    view, arguments = chosen(view, choices)
    if "." in view:
        panel = _panel(recording, loaded, view, arguments, other)
        return spec.document([panel], link, spec.way_back([panel]) | _typed(target))
    if other is not None:
        raise ValueError(f"the view {view} is of one recording")
    run = Run.of(recording, loaded)
    panels = (
        attention.opened(run, arguments)
        if view == "heads"
        else (attention.strongest_findings(run),)
    )
    return spec.document(panels, link, spec.way_back(panels) | _typed(target))


def figure(
    recording: Recording, name: str, /, *, model: Model | None = None, **choices: object
) -> spec.Panel:
    """A panel of a recording by its name, such as "attention.head", with choices as in an address.
    model: the recording's, loaded; it is loaded anew where None. Raises ValueError for a panel or a
    choice that is not there."""
    loaded = registry.load(recording.model.name) if model is None else model
    return _panel(recording, loaded, name, {each: str(one) for each, one in choices.items()}, None)


def views() -> tuple[str, ...]:
    """The names of all that `page` shows: VIEWS, and every panel."""
    return (*VIEWS, *spec.panel_names())


def chosen(view: str, choices: Mapping[str, object]) -> tuple[str, dict[str, str]]:
    """The view that is meant and its choices as words. Raises ValueError for a view that is not
    there, and for a choice that it does not take."""
    words = {name: str(value) for name, value in choices.items()}
    if "." in view:  # a panel, which checks its choices itself
        return view, words
    if words.get("view") in VIEWS:  # the address of Attention calls so how a head is drawn
        view = words.pop("view")
    if view not in VIEWS:
        raise ValueError(f"no view is called {view!r}; there are {', '.join(views())}")
    names = {each.argument: name for name, each in attention.CHOICES.items()}
    words = {names.get(name, name): word for name, word in words.items()}
    if other := next((name for name in words if name not in CHOICES[view]), ""):
        raise ValueError(
            f"the view {view} has no choice {other!r}; it has {', '.join(CHOICES[view])}"
        )
    return view, words


def _typed(target: str | None) -> dict[str, str]:
    return {"target": target} if target else {}


def _panel(
    recording: Recording,
    loaded: Model,
    name: str,
    choices: Mapping[str, str],
    other: Recording | None,
) -> spec.Panel:
    """A panel by its name, such as "soft_lookup.temperature"."""
    runs: dict[str, str | Run] = dict(choices)
    if other is not None:
        one = other.model.name
        beside = loaded if one == recording.model.name else registry.load(one)
        runs["other"] = Run.of(other, beside)
    return spec.from_words(name, Run.of(recording, loaded), runs)
