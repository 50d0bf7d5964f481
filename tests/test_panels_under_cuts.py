"""Panels of a head under edits that take away its edges, or its place for a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import STORED

from explorer.panels import address
from models.contract.edits import (
    CutEdge,
    Edit,
    MoveNorm,
    OtherNorm,
    ScaleHead,
    WithoutMask,
    WithoutNorm,
    ZeroHead,
)
from models.runtime.run import Run

TEXT = "Ram pushed Hari because he was tired"


def test_a_cut_edge_is_masked_in_every_panel_of_its_head() -> None:
    plain = Run("encoder", TEXT)
    row = plain.recording().attention[0].pattern[0, 4, 2]
    key = int(row.argmax())
    run = plain.under((CutEdge(0, 4, 2, key),))
    at = {"layer": "0", "head": "4", "token": "2"}
    masked = address.from_words("softmax.mask", run, at).table
    (cell,) = np.flatnonzero((masked["query"] == 2) & (masked["key"] == key))
    assert masked["mask"][cell] != "0" and masked["weight"][cell] == 0
    assert (np.delete(masked["mask"], cell) == "0").all(), "an encoder has no mask of its own"
    row = address.from_words("soft_lookup.temperature", run, {**at, "t": "1.0"}).table
    np.testing.assert_allclose(row["weight at T = 1"], row["weight"], atol=STORED)
    left = [int(each.partition(" ")[0]) for each in row["key"]]
    assert left == [at for at in range(len(plain.recording().streams[0].tokens)) if at != key]
    for name in ("softmax.combination", "softmax.saturation"):
        assert key not in address.from_words(name, run, at).table["key"]


@pytest.mark.parametrize(
    "model, name, asked, why",
    [
        ("encoder", "norm_place.diagrams", (MoveNorm("pre", 1),), "in the same place"),
        ("encoder", "norm_place.diagrams", (WithoutNorm(1),), "in the same place"),
        ("encoder", "modern.rms_norm", (OtherNorm("rms"),), "no RMSNorm before its attention"),
        ("encoder", "softmax.combination", (ScaleHead(3.0, 0, 0),), "is not the mean"),
        ("encoder", "softmax.combination", (ZeroHead(0, 0),), "is not the mean"),
        ("decoder", "generation.loops", (WithoutMask(),), "none can be stored"),
    ],
)
def test_what_an_edit_makes_untrue_is_not_said(
    model: str, name: str, asked: tuple[Edit, ...], why: str
) -> None:
    run = Run(model, TEXT)
    of_head = name == "softmax.combination"
    first = {"layer": "0", "head": "0", "token": "0"} if of_head else {}
    with pytest.raises(ValueError, match=why):
        address.from_words(name, run.under(asked), first)


def test_moved_in_every_layer_the_norms_have_one_place() -> None:
    """And the state between two words is one state."""
    run = Run("encoder", TEXT)
    for asked, place in (((), "post-LN"), ((MoveNorm("pre"),), "pre-LN")):
        assert place in address.from_words("norm_place.diagrams", run.under(asked), {}).finding
    two = address.from_words("recurrence.bottleneck", Run("encoder", "Ram pushed"), {}).finding
    assert "passes 1 state," in two
