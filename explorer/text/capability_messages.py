"""Models in their own code in words: what one is called, and why something of it is not shown."""

from __future__ import annotations

from explorer.text.markdown_escape import literal

APART = ("in its own code", "on the cluster")  # how such a model's title ends
WEIGHTS_ALONE = "its attention is computed inside its code, which hands out the weights alone"
WHICH_TENSORS = "nothing in its code says which of its tensors {}"
WHOLE_LAYERS = "its code hands out the sum of a whole layer alone"
NO_CELLS = (
    "{} gives its weights but not its queries, keys and values: "
    f"{WEIGHTS_ALONE}. So its cells cannot be opened here. The Attention page shows the weights."
)
NOT_SWITCHED = (
    "{} has no switches for mask, positions, residual, norms and FFN: its code is run as it "
    "stands. Models that run in Headlight’s own classes have them: the list under “Any Hugging "
    "Face model” says which."
)
NOT_SILENCED = (
    "{} has no switches for its scale and its heads either: "
    f"{WEIGHTS_ALONE}, and takes none from outside."
)
NOT_PATCHED = (
    "{} takes in no part of another run: its code is run as it stands. Patching needs a model in "
    "Headlight’s own classes."
)


def named(title: str) -> str:
    """A model as what a sentence is about, by its title: "NAME, in its own code,"."""
    return literal(title) + ("," if title.endswith(APART) else "")
