"""The door for notebooks: the views of Headlight in Jupyter, the same that its pages show.

from headlight import notebook

notebook.heads("The animal was tired.", model="encoder")
"""

from __future__ import annotations

from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from explorer import export
from models import registry
from models.edits import Edit
from models.recording import Recording

if TYPE_CHECKING:
    from models.model import Model

HEIGHT = 860  # pixels of the frame that a view is drawn in


class NotebookView:
    """A view that a notebook draws: a frame of its own, so that neither style nor script meets the
    notebook's."""

    def __init__(self, page: str, height: int = HEIGHT) -> None:
        self.page, self.height = page, height

    def _repr_html_(self) -> str:
        """The frame. What is in it runs as a page of its own, and can neither reach the notebook
        nor the network."""
        return (
            f'<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{self.height}px;border:0" title="Headlight"></iframe>'
        )

    def save(self, file: str) -> None:
        """Write it as one HTML file."""
        with open(file, "w", encoding="utf-8") as goal:
            goal.write(self.page)


@cache
def load(model: str) -> Model:
    """A model by its name, loaded once."""
    return registry.load(model)


def record(
    text: str, model: str = "encoder", edits: tuple[Edit, ...] = (), target: str | None = None
) -> Recording:
    """One forward pass of a model over a text, as numbers."""
    return load(model).record(text, edits, target)


def show(
    text: str | Recording,
    view: str = "heads",
    /,
    model: str = "encoder",
    *,
    other: Recording | None = None,
    target: str | None = None,
    height: int = HEIGHT,
    **choices: Any,
) -> NotebookView:
    """Any view of a text, or of a recording: one of `export.VIEWS`, under the choices that the
    address of its page has."""
    recording = text if isinstance(text, Recording) else record(text, model, (), target)
    page = export.page(
        recording,
        view,
        model=load(recording.model.name),
        other=other,
        target=target,
        **choices,
    )
    return NotebookView(page, height)


def heads(text: str | Recording, model: str = "encoder", **choices: Any) -> NotebookView:
    """All heads, one of them opened."""
    return show(text, "heads", model, **choices)


def anatomy(text: str | Recording, model: str = "encoder", **choices: Any) -> NotebookView:
    """One attention weight, from query and key to the head's output."""
    return show(text, "anatomy.weight", model, **choices)


def lens(text: str | Recording, model: str = "decoder", **choices: Any) -> NotebookView:
    """What the model would say at every layer."""
    return show(text, "logit_lens.lens", model, **choices)


def alignment(text: str | Recording, model: str = "translator", **choices: Any) -> NotebookView:
    """A translation, and how the decoder looks back at the source."""
    return show(text, "translation.alignment", model, **choices)


def comparison(a: Recording, b: Recording, **choices: Any) -> NotebookView:
    """Two recordings beside each other, head by head; choices: those of `panels.compare.heads`."""
    return show(a, "compare.heads", other=b, **choices)
