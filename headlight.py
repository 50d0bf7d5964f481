"""Headlight as a library: load a model, record a text, write a page.

import headlight

encoder = headlight.load("encoder")
recording = headlight.record(encoder, "Ram pushed Hari", headlight.edits.ZeroHead(0, 4))
recording.attention[0].pattern  # (layer, head, query, key), rows sum to 1

Every module of measures has its name here too: `from headlight import residual`. A part is imported
when it is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from explorer import panels as panels
    from explorer.citation import cite as cite
    from explorer.export import head_scores as head_scores
    from explorer.export import page as page
    from explorer.screens.screen import screen as screen
    from models.contract import edits as edits
    from models.contract import results as results
    from models.contract.edits import Edit
    from models.contract.model import Model
    from models.contract.notices import Notice as Notice
    from models.contract.recording import Recording as Recording
    from models.contract.recording_file import from_npz as from_npz
    from models.contract.recording_file import to_npz as to_npz
    from models.contract.results import Sampling as Sampling
    from models.contract.results import SeededSampling as SeededSampling
    from models.inputs.activation_dicts import from_cache as from_cache
    from models.inputs.array_model import view as view
    from models.inputs.wrap import wrap as wrap
    from models.live import live_training as live_training
    from models.runtime import registry as registry
    from models.runtime.registry import load as load
    from models.runtime.registry import names as names
    from models.runtime.run import Run as Run
    from models.version import VERSION as __version__

# What is had here by name: modules, and what else by the module that has it and its name there.
MODULES = {
    "edits": ("models", "contract", "edits"),
    "live_training": ("models", "live", "live_training"),
    "panels": ("explorer", "panels"),
    "registry": ("models", "runtime", "registry"),
    "results": ("models", "contract", "results"),
}
VALUES = {
    "Notice": ("models", "contract", "notices", "Notice"),
    "Recording": ("models", "contract", "recording", "Recording"),
    "Run": ("models", "runtime", "run", "Run"),
    "Sampling": ("models", "contract", "results", "Sampling"),
    "SeededSampling": ("models", "contract", "results", "SeededSampling"),
    "__version__": ("models", "version", "VERSION"),
    "cite": ("explorer", "citation", "cite"),
    "from_cache": ("models", "inputs", "activation_dicts", "from_cache"),
    "from_npz": ("models", "contract", "recording_file", "from_npz"),
    "head_scores": ("explorer", "export", "head_scores"),
    "load": ("models", "runtime", "registry", "load"),
    "names": ("models", "runtime", "registry", "names"),
    "page": ("explorer", "export", "page"),
    "screen": ("explorer", "screens", "screen", "screen"),
    "to_npz": ("models", "contract", "recording_file", "to_npz"),
    "view": ("models", "inputs", "array_model", "view"),
    "wrap": ("models", "inputs", "wrap", "wrap"),
}
__all__ = [
    "Notice",
    "Recording",
    "Run",
    "Sampling",
    "SeededSampling",
    "__version__",
    "cite",
    "edits",
    "from_cache",
    "from_npz",
    "head_scores",
    "load",
    "names",
    "page",
    "panels",
    "record",
    "results",
    "screen",
    "to_npz",
    "view",
    "wrap",
]


SPELLING = "models", "contract", "spelling"
AT_ONCE = 32  # texts that are recorded before what is not asked for is let go


@overload
def record(  # type: ignore[overload-overlap]  # a str is a sequence of str, and one text
    model: Model | str,
    text: str | Sequence[int],
    edits: Edit | Iterable[Edit] = (),
    target: str | tuple[int, ...] | None = None,
    sites: Iterable[str] | None = None,
    attention: Literal["all", "pattern", ""] = "all",
) -> Recording:
    """Of one text."""


@overload
def record(
    model: Model | str,
    text: Sequence[str] | Sequence[Sequence[int]],
    edits: Edit | Iterable[Edit] = (),
    target: None = None,
    sites: Iterable[str] | None = None,
    attention: Literal["all", "pattern", ""] = "all",
) -> tuple[Recording, ...]:
    """Of several."""


def record(
    model: Model | str,
    text: Any,
    edits: Edit | Iterable[Edit] = (),
    target: str | tuple[int, ...] | None = None,
    sites: Iterable[str] | None = None,
    attention: Literal["all", "pattern", ""] = "all",
) -> Recording | tuple[Recording, ...]:
    """One forward pass over a text, or over token ids in its place, as `Model.record`; of several
    texts, or lists of ids, a recording each, as `Model.record_all`. What a tokenizer hands out is
    one text or several, as its `input_ids` are; an array with one row is one. A model's name loads
    it first. sites, attention: what is kept of each, as of `Recording.only`, where thousands are
    read for some of their arrays.

    Raises TypeError for what is neither a model nor a name, and ValueError for a target of several.
    """
    if isinstance(model, str) and hasattr(text, "card"):
        raise TypeError("the model comes first: headlight.record(model, text)")
    loaded = _value("load")(model) if isinstance(model, str) else model
    checks = _module("models", "contract", "argument_validation")
    checks.expect_model(loaded)
    wanted = None if sites is None else (sites,) if isinstance(sites, str) else tuple(sites)
    is_whole = wanted is None and attention == "all"
    if not checks.is_batch(text):
        recording = loaded.record(text, edits, target)
        return recording if is_whole else recording.only(wanted, attention)
    if target is not None:
        raise ValueError("a target is that of one text; record them one by one")
    if is_whole:
        return loaded.record_all(text, edits)
    parts = (text[at : at + AT_ONCE] for at in range(0, len(text), AT_ONCE))
    return tuple(
        each.only(wanted, attention) for part in parts for each in loaded.record_all(part, edits)
    )


def __getattr__(name: str) -> Any:
    """A part, imported now: those of `MODULES` and `VALUES`, modules of measures by their names,
    and modules of sentences by theirs with `_text` behind them."""
    if name in VALUES:
        value = _value(name)
    elif name in MODULES:
        value = _module(*MODULES[name])
        if name == "panels":  # each a module of its own
            for each in iter_modules(value.__path__):
                _module(*MODULES[name], each.name)
    elif not name.startswith("__") and name in _others():
        stem = name.removesuffix("_text")
        value = _module("explorer", "analysis" if stem == name else "text", stem)
    else:
        near = "" if name.startswith("_") else _module(*SPELLING).nearest(name, __dir__())
        raise AttributeError(
            f"headlight has no {name!r}" + f"; the nearest is {near!r}" * bool(near)
        )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *MODULES, *_others(), "__doc__", "__file__", "__name__"})


def _others() -> set[str]:
    """The names here of the modules of measures and of those of sentences."""
    measures, texts = (
        {each.name for each in iter_modules(_module("explorer", folder).__path__)}
        for folder in ("analysis", "text")
    )
    return measures | {f"{name}_text" for name in texts}


def _value(name: str) -> Any:
    *path, last = VALUES[name]
    return getattr(_module(*path), last)


def _module(*path: str) -> Any:
    """A module of ours: in an installed package, and beside others of these names, below it."""
    return import_module(".".join((*([__name__] if "__path__" in globals() else []), *path)))


if "__path__" not in globals():  # a clone
    import headlight_clone

    if headlight_clone.is_taken():
        headlight_clone.install()
        __path__ = [str(headlight_clone.ROOT)]
        sys.modules[__name__].__package__ = __name__

if __name__ == "__main__":  # of a clone; a package has __main__.py
    from explorer.cli import main

    sys.exit(main())
