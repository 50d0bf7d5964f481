"""Models in their own code in words: what one is called, and why something of it is not shown."""

from __future__ import annotations

from explorer.text.markdown_escape import literal

APART = ("in its own code", "on the cluster")  # how such a model's title ends


def named(title: str) -> str:
    """A model as the subject of a sentence, by its title: "NAME, in its own code,"."""
    return literal(title) + ("," if title.endswith(APART) else "")
