"""The door for what leaves Headlight as one file: any view of a recording as an HTML document that
needs no network.

    from explorer import export
    from models.runtime import registry

    recording = registry.load("encoder").record("The animal was tired.")
    open("heads.html", "w", encoding="utf-8").write(export.page(recording))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from explorer.analysis.corpus_scores import PatternScores
from explorer.analysis.head_naming import Cells
from explorer.analysis.words import described
from explorer.figures import html_export
from explorer.figures.html_export import Document
from explorer.panels import address, attention, spec
from explorer.panels.address import expect_words
from explorer.panels.spec import panel_names
from models.contract.argument_validation import attention_of, expect_model
from models.contract.notices import tell
from models.contract.recording import Recording
from models.contract.spelling import there_are
from models.runtime import registry
from models.runtime.run import Run

if TYPE_CHECKING:
    import pandas

    from models.contract.model import Model

# Views of several panels, with the choices that each takes, by their names in the address.
CHOICES = {
    "heads": tuple(attention.CHOICES),
    "findings": (),
}
VIEWS = tuple(CHOICES)
PICTURES = tuple(f".{ending}" for ending, kind in spec.FILES.items() if kind.is_picture)
__all__ = ["PICTURES", "VIEWS", "expect_words", "figure", "page", "panel_names", "views"]


def page(
    recording: Recording | Iterable[Recording],
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
    elsewhere; of several recordings one document, in which one of them is open at a time. A
    notebook draws it.

    view: "heads", "findings", or a panel such as "soft_lookup.temperature", whose choices are its
    arguments. model: the recording's, loaded; it is loaded anew where None. other: what stands
    beside it, in the panels of `compare`. target: what was typed for a decoder to read. link: the
    address of a Headlight that the file shall lead back to. choices: as in the address of the page,
    such as layer=1. Raises ValueError for a view or a choice that is not there, for no recording,
    and for `other` beside several; TypeError for what is no recording.
    """
    several = [recording] if isinstance(recording, Recording) else _recorded(recording)
    if len(several) > 1 and other is not None:
        raise ValueError("a recording stands beside one other; make a page of each pair")
    load = cache(registry.load)
    sheets = []
    for each in several:
        loaded = load(each.model.name) if model is None else model
        panels = _panels(each, loaded, chosen(view, choices), other)
        edited = f" · {described(each, each.edits)}" if each.edits else ""
        back = spec.way_back(panels) | _typed(target)
        sheets.append(spec.sheet(panels, back, f"{each.text}{edited}"))
    return html_export.document(sheets, link)


def _recorded(recordings: Any) -> list[Recording]:
    """Several recordings. Raises TypeError for anything else, and ValueError for none."""
    is_text = isinstance(recordings, (str, bytes)) or not isinstance(recordings, Iterable)
    listed = [recordings] if is_text else list(recordings)
    if wrong := [each for each in listed if not isinstance(each, Recording)]:
        kind = type(wrong[0]).__name__
        raise TypeError(
            f"a page is of a recording or of several, and not of a {kind}; "
            "headlight.record(model, text) makes one"
        )
    if not listed:
        raise ValueError("a page is of one recording or more")
    return listed


def _panels(
    recording: Recording, loaded: Model, view: tuple[str, dict[str, str]], other: Recording | None
) -> Sequence[spec.Panel]:
    """The panels of a view, with its choices."""
    name, arguments = view
    if "." in name:
        return [_panel(recording, loaded, name, arguments, other)]
    if other is not None:
        raise ValueError(f"the view {name} is of one recording")
    run = Run.of(recording, loaded)
    if name == "heads":
        return attention.opened(run, arguments)
    return (attention.strongest_findings(run),)


AT_ONCE = 32  # texts that are recorded before they are measured, in one pass where a model can


def head_scores(
    model: Model | str,
    texts: Iterable[str | Sequence[int]],
    patterns: Iterable[str] | Mapping[str, Cells] | None = None,
    attention: str | None = None,
    progress: bool = True,
) -> pandas.DataFrame:
    """Scores of patterns in every head over texts, a row for each pattern and head: `score`, its
    `chance` in a uniform row, `lift` (score - chance) / (1 - chance), `sd` over the texts, and the
    number of `texts` that could show it.

    texts: texts or lists of ids, as many as there are, read once. patterns: names of those that the
    app knows, all where None; or a pattern of one's own by its name: cells (query, key) that are
    true for keys of it, as an array for texts of that many tokens or as a function of a recording
    and its attention. attention: its name, the model's first where None. progress: a bar, where
    tqdm is there. Interrupted, it returns what was read so far, with a warning. Raises ValueError
    for a pattern that is not there or of another shape, for no texts, and without pandas; TypeError
    for what is no model, and for one text in the place of several.
    """
    if find_spec("pandas") is None:
        raise ValueError("scores are a pandas.DataFrame: install pandas with pip")
    import pandas

    loaded = registry.load(model) if isinstance(model, str) else model
    expect_model(loaded)
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts are a list or an iterator of texts, not one text")
    there = loaded.capabilities.attention
    name = there[0] if attention is None else attention_of(loaded.card, there, attention)
    scores = PatternScores(name, dict(patterns) if isinstance(patterns, Mapping) else {})
    try:
        for recording in _recordings(loaded, texts, progress):
            scores.add(recording)
    except KeyboardInterrupt:
        tell(f"interrupted: these are the scores of the first {scores.n_texts} texts")
    return pandas.DataFrame(scores.columns(None if patterns is None else tuple(patterns)))


def _recordings(
    model: Model, texts: Iterable[str | Sequence[int]], progress: bool
) -> Iterator[Recording]:
    """A recording of each text, several in one pass where the model can."""
    following: Iterator[Any] = iter(texts)
    if progress and find_spec("tqdm"):
        from tqdm.auto import tqdm

        following = iter(tqdm(following, unit=" texts"))
    while some := list(islice(following, AT_ONCE)):
        yield from model.record_all(some)


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
        raise ValueError(f"no view is called {view!r}; {there_are(view, views())}")
    names = {each.argument: name for name, each in attention.CHOICES.items()}
    words = {names.get(name, name): word for name, word in words.items()}
    if other := next((name for name in words if name not in CHOICES[view]), ""):
        raise ValueError(
            f"the view {view} has no choice {other!r}; {there_are(other, CHOICES[view])}"
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
    return address.from_words(name, Run.of(recording, loaded), runs)
