"""Models in their own code in words: what one is called, and why something of it is not shown."""

from __future__ import annotations

from explorer.text.markdown_escape import literal

APART = ("in its own code", "on the cluster")  # how such a model's title ends
WEIGHTS_ALONE = "its own code computes attention and returns only the weights"
NOT_SWITCHED = (
    "{} does not support edits of mask, positions, residual connections, norms and FFN, because "
    "its own code is run. “Add a model …” lists the models that run in Headlight’s classes."
)
NOT_SILENCED = f"{{}} does not support edits of the scale and of heads either: {WEIGHTS_ALONE}."


def named(title: str) -> str:
    """A model as the subject of a sentence, by its title: "NAME, in its own code,"."""
    return literal(title) + ("," if title.endswith(APART) else "")
