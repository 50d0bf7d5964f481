"""The one door to every model: which there are, loading one, and recording a forward pass on a text.

Scripts, benchmarks, notebooks and the app use these verbs and nothing else. Importing this module costs nothing: torch is
imported when a model is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models import shipped
from models.edits import Edit
from models.recording import Recording

if TYPE_CHECKING:
    from models.own import Handle


def names() -> tuple[str, ...]:
    """The names `load` knows."""
    return shipped.names()


def card(name: str) -> dict:
    """What people should know of a model: data, recipe, scores, limits. Raises ValueError for a name not in `names()`."""
    return shipped.card(name)


def load(name: str) -> Handle:
    """The model of that name, loaded. Raises ValueError for a name not in `names()`."""
    from models import own

    return own.load(name)


def record(handle: Handle, text: str, edits: tuple[Edit, ...] = ()) -> Recording:
    """One forward pass of the model over the text under the edits, as a frozen Recording."""
    from models import own

    return own.record(handle, text, edits)
