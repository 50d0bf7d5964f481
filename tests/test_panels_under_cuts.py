"""Panels of a head under edits that take away its edges, or its place for a sentence."""

from __future__ import annotations

import numpy as np

from explorer.panels import spec
from models.edits import CutEdge
from models.run import Run

TEXT = "Ram pushed Hari because he was tired"


def test_a_cut_edge_is_masked_in_every_panel_of_its_head() -> None:
    plain = Run("encoder", TEXT)
    row = plain.recording().attention[0].pattern[0, 4, 2]
    key = int(row.argmax())
    run = plain.under((CutEdge(0, 4, 2, key),))
    at = {"layer": "0", "head": "4", "token": "2"}
    masked = spec.from_words("softmax.mask", run, at).table
    (cell,) = np.flatnonzero((masked["query"] == 2) & (masked["key"] == key))
    assert masked["mask"][cell] != "0" and masked["weight"][cell] == 0
    assert (np.delete(masked["mask"], cell) == "0").all(), "an encoder has no mask of its own"
    row = spec.from_words("soft_lookup.temperature", run, {**at, "t": "1.0"}).table
    np.testing.assert_allclose(row["weight at T = 1"], row["weight"], atol=1e-6)
    assert np.isnan(row["score"][key]) and row["hard"][key] == 0
    for name in ("softmax.combination", "softmax.saturation"):
        assert key not in spec.from_words(name, run, at).table["key"]
