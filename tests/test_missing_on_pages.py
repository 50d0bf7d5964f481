"""Models in their own code: where a page cannot show something of them, it says what and why, and
calls them by one name everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import on_page
from streamlit.testing.v1 import AppTest
from test_hf_models_on_pages import opened, there

from explorer.components import codec
from explorer.text.markdown_escape import plain

pytestmark = pytest.mark.slow

TEXT, OTHER = "the cat sat on the mat", "the dog ran to the house"
ALL = ("bloom", "deberta-v2", "gpt_neox")
CLOSED = ("bloom", "deberta-v2")  # no function from outside makes their attention
INSIDE = "its own code computes attention and returns only the weights"
# What each page says of which of them, NAME standing for "WHERE, in its own code,".
SAID: list[tuple[str, dict[str, str], tuple[str, ...], str]] = [
    (
        "anatomy",
        {},
        CLOSED,
        f"NAME gives its weights but not its queries, keys and values: {INSIDE}. The tab "
        "Heads shows them.",
    ),
    (
        "attention",
        {"att_right": "Open"},
        CLOSED,
        "The calculation of a weight cannot be shown here. NAME gives its weights, but not their "
        f"scores, queries and keys: {INSIDE}.",
    ),
    *(
        (
            "lookup",
            {"look_at": way},
            CLOSED,
            "NAME gives its attention weights, but no scores and values, so this cannot be "
            "computed.",
        )
        for way in ("Hard", "Three", "Scale")
    ),
    (
        "lookup",
        {"look_at": "Three"},
        ("gpt_neox",),
        "NAME does not give the vectors that its attention reads, so x · x cannot be computed.",
    ),
    (
        "lookup",
        {"look_at": "Words"},
        (*CLOSED, "gpt_neox"),
        "NAME does not give the head’s W_Q, W_K, W_V and W_O, so its circuits cannot be computed.",
    ),
    (
        "attribution",
        {},
        CLOSED,
        "NAME does not show W₁ and W₂, so the neurons of its FFN cannot be read.",
    ),
    (
        "feedforward",
        {},
        ALL,
        "NAME does not show W₁ and W₂, so the hidden units of its FFN cannot be read.",
    ),
    (
        "attribution",
        {},
        CLOSED,
        "This model runs in its own code, which does not show single heads: each attention is one "
        "part.",
    ),
    (
        "attribution",
        {},
        ("gpt_neox",),
        "This model’s code shows attention and FFN of a layer as one sum: each layer is one part.",
    ),
    *(
        (
            "summaries",
            {"sum_what": what},
            ALL,
            "NAME does not give W_O and the values, so the outputs of its heads cannot be "
            "computed.",
        )
        for what in ("Values", "Writes", "Mean")
    ),
    *(
        ("residual", {"flow": flow}, CLOSED, f"NAME does not show {what}.")
        for flow, what in (
            ("Heads", "W_O, the output projection: nothing in its code names this tensor"),
            (
                "LayerNorm",
                "the gains and biases of its norms: nothing in its code names these tensors",
            ),
            (
                "Gradient",
                "a sub-layer’s Jacobian: its code runs as a whole, no sub-layer by itself",
            ),
        )
    ),
    (
        "residual",
        {"flow": "Gradient"},
        CLOSED,
        "It is taken once, as the model is: its own code cannot run without its residual "
        "connections or norms.",
    ),
    (
        "residual",
        {"flow": "Heads"},
        ("gpt_neox",),
        "NAME does not show what its sub-layers add: its code gives the sum of a whole layer "
        "alone.",
    ),
    (
        "embeddings",
        {"contexts": "One"},
        ("gpt_neox",),
        "each layer adds the sum of its attention and FFN outputs",
    ),
    (
        "compare",
        {},
        CLOSED,
        f"These cannot be compared: NAME does not support edits: {INSIDE}. Compare two sentences "
        "or two models.",
    ),
    (
        "switches",
        {},
        ALL,
        "NAME does not support edits of mask, positions, residual connections, norms and FFN",
    ),
    (
        "switches",
        {},
        CLOSED,
        f"NAME does not support edits of the scale and of heads either: {INSIDE}.",
    ),
    (
        "switches",
        {"effects": "Patching", "donor": OTHER},
        ALL,
        "NAME does not support patching, because its own code is run.",
    ),
    *(
        ("positions", {"ask": ask}, ("gpt_neox",), f"NAME adds no positions{more}")
        for ask, more in (
            ("Waves", ". These are the numbers of the formula, for comparison."),
            (
                "Sentence",
                "; it rotates queries and keys by their positions (rotary). That cannot be removed "
                "here",
            ),
            ("Adding", ", so nothing of them lies among its embeddings."),
        )
    ),
    (
        "positions",
        {"ask": "Order"},
        CLOSED,
        "That cannot be removed here, so there is no run without positions to compare.",
    ),
    (
        "positions",
        {"ask": "Adding"},
        ("gpt2",),
        "NAME does not show the embeddings and the positions that this view needs: nothing in "
        "its code names these tensors.",
    ),
    ("training", {}, ALL, "NAME has no training checkpoints, so this page shows"),
    ("translation", {}, ALL, "NAME does not translate, so this page shows"),
]


def shown(app: AppTest) -> str:
    kinds = ("info", "error", "caption", "markdown")
    headers = [codec.decode(each.proto.bytes)[0] for each in on_page(app)]
    panels = [header for header in headers if "finding" in header]
    details = [line for each in panels for line in (each["finding"], *each["details"])]
    return "\n".join([plain(each.value) for kind in kinds for each in app.get(kind)] + details)


@pytest.mark.parametrize(
    ("page", "choices", "families", "sentence"),
    SAID,
    ids=lambda each: "-".join(each.values()) if isinstance(each, dict) else str(each)[:24],
)
def test_a_page_says_what_is_missing_and_why(
    page: str,
    choices: dict[str, str],
    families: tuple[str, ...],
    sentence: str,
    tiny_folder: Callable[[str], Path],
) -> None:
    for family in families:
        folder = tiny_folder(family)
        there(f"hub:{folder}")
        app = opened(page, model=f"hub:{folder}", text=TEXT, **choices)
        assert not app.exception
        assert sentence.replace("NAME", f"{folder}, in its own code,") in shown(app), family
        assert f"hub:{folder}" not in shown(app), "one name everywhere"
