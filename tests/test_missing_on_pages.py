"""Models in their own code: where a page cannot show something of them, it says what and why, and
calls them by one name everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from app_harness import panels_on, told
from streamlit.testing.v1 import AppTest
from test_hf_models_on_pages import opened, there

from explorer.wording.markdown_escape import plain

pytestmark = pytest.mark.slow

TEXT, OTHER = "the cat sat on the mat", "the dog ran to the house"
# No function from outside makes the attention of "bloom" and "deberta-v2"; "gpt_neox" has
# attention and FFN side by side.
INSIDE = "its own code computes attention and returns only the weights"
NO_SCORES = "not its queries, keys and values"
# What a page says of a family: parts of sentences that are its own.
SAID: list[tuple[str, dict[str, str], str, tuple[str, ...]]] = [
    ("weight", {}, "bloom", ("not its queries, keys and values", INSIDE)),
    ("heads", {"verify": "1"}, "deberta-v2", ("scores, queries and keys", INSIDE)),
    ("concepts", {"look_at": "Hard"}, "bloom", (NO_SCORES,)),
    ("concepts", {"look_at": "Three"}, "bloom", (NO_SCORES,)),
    ("concepts", {"look_at": "Three"}, "gpt_neox", ("so x · x cannot be computed",)),
    ("concepts", {"look_at": "Scale"}, "deberta-v2", (NO_SCORES,)),
    ("circuits", {}, "bloom", ("so its circuits cannot be computed",)),
    ("circuits", {}, "gpt_neox", ("so its circuits cannot be computed",)),
    ("attribution", {}, "bloom", ("so the units of its FFN", "each attention is one part")),
    ("attribution", {}, "gpt_neox", ("each layer is one part",)),
    ("lens", {}, "bloom", ("its own readout is applied to every state",)),
    ("feedforward", {}, "deberta-v2", ("so the hidden units of its FFN",)),
    ("feedforward", {}, "gpt_neox", ("so the hidden units of its FFN",)),
    ("aggregated", {"sum_what": "Values"}, "bloom", ("W_O and the values",)),
    ("aggregated", {"sum_what": "Writes"}, "gpt_neox", ("W_O and the values",)),
    ("aggregated", {"sum_what": "Mean"}, "deberta-v2", ("W_O and the values",)),
    ("residual", {"flow": "Heads"}, "bloom", ("does not show W_O, the output projection",)),
    ("residual", {"flow": "Heads"}, "gpt_neox", ("gives the sum of a whole layer alone",)),
    ("residual", {"flow": "LayerNorm"}, "deberta-v2", ("gains and biases of its norms",)),
    ("residual", {"flow": "Gradient"}, "bloom", ("a sub-layer’s Jacobian",)),
    ("embeddings", {"contexts": "One"}, "gpt_neox", ("its attention and FFN outputs",)),
    ("compare", {}, "bloom", (f"does not support edits: {INSIDE}", "two sentences or two models")),
    ("edit", {}, "gpt_neox", ("does not support edits of mask, positions",)),
    ("edit", {}, "bloom", ("edits of mask, positions", "of the scale and of heads either")),
    ("patching", {"donor": OTHER}, "deberta-v2", ("does not support patching",)),
    ("positions", {"ask": "Waves"}, "gpt_neox", ("adds no positions", "for comparison")),
    ("positions", {"ask": "Sentence"}, "gpt_neox", ("by their positions (rotary)",)),
    ("positions", {"ask": "Adding"}, "gpt_neox", ("nothing of them lies among its embeddings",)),
    ("positions", {"ask": "Adding"}, "gpt2", ("the embeddings and the positions that this view",)),
    ("positions", {"ask": "Order"}, "bloom", ("there is no run without positions",)),
    ("checkpoints", {}, "gpt_neox", ("has no training checkpoints",)),
    ("translate", {}, "bloom", ("does not translate",)),
]


def shown(app: AppTest) -> str:
    sentences = [line for each in panels_on(app) for line in (each["finding"], *each["details"])]
    return "\n".join((plain(told(app)), *sentences))


@pytest.mark.parametrize(
    ("page", "choices", "family", "parts"),
    SAID,
    ids=lambda each: "-".join(each.values()) if isinstance(each, dict) else str(each)[:24],
)
def test_a_page_says_what_is_missing_and_why(
    page: str,
    choices: dict[str, str],
    family: str,
    parts: tuple[str, ...],
    tiny_folder: Callable[[str], Path],
) -> None:
    name = f"hub:{tiny_folder(family)}"
    there(name)
    app = opened(page, model=name, text=TEXT, **choices)
    assert not app.exception
    assert all(part in shown(app) for part in parts), shown(app)
    assert name not in shown(app), "one name everywhere"
