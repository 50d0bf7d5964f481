"""Headlight as a library: load a model, record a text, write a page.

import headlight

encoder = headlight.load("encoder")
recording = headlight.record(encoder, "Ram pushed Hari", headlight.edits.ZeroHead(0, 4))
recording.attention[0].pattern  # (layer, head, query, key), rows sum to 1

Every module of measures has its name here too: `from headlight import residual`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from explorer import analysis, text
from models import edits as edits
from models import live_training as live_training
from models import registry as registry
from models import results as results
from models.argument_validation import expect_model
from models.model import Model
from models.recording import VERSION as __version__
from models.recording import Recording
from models.registry import load as load
from models.registry import names as names
from models.results import Sampling as Sampling
from models.results import SeededSampling as SeededSampling

if TYPE_CHECKING:
    from explorer import panels as panels
    from explorer.export import page as page
    from explorer.state.cache import Run as Run

__all__ = ["Run", "__version__", "edits", "load", "names", "page", "panels", "record"]


def record(
    model: Model | str,
    text: str,
    edits: edits.Edit | Iterable[edits.Edit] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass over the text, as `Model.record`; a model's name loads it first.

    Raises TypeError for what is neither a model nor a name.
    """
    if isinstance(model, str):
        model = load(model)
    expect_model(model)
    return model.record(text, edits, target)


def __getattr__(name: str) -> Any:
    """Import a part when it is first used: `page`, `panels`, modules of measures by their
    names, and modules of sentences by theirs with `_text` behind them."""
    if name == "Run":
        from explorer.state.cache import Run

        return Run
    if name == "panels":
        from explorer import panels

        for each in iter_modules(panels.__path__):
            import_module(f"{panels.__name__}.{each.name}")
        return panels
    if name == "page":
        from explorer.export import page

        return page
    stem = name.removesuffix("_text")
    module = f"{(analysis if stem == name else text).__name__}.{stem}"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise AttributeError(f"headlight has no {name!r}") from None
