"""A head's matrix: what its rows and columns are called, its strongest cells, its softmax, and its
file."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from javascript import unfolded
from planted import recording_of

from explorer.analysis import attention
from explorer.components.codec import runs
from explorer.figures.csv import to_csv, without_comments
from models.version import VERSION

WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]], dtype=np.float32)
KEYS = ("the", "cat", "the")


def test_csv_holds_the_numbers_in_full_whatever_the_words_are() -> None:
    axes = attention.Axes(('a,"b', "line\nbreak"), KEYS, (False,) * 3)
    text = to_csv(attention.columns(WEIGHTS, axes), ("Layer 0\nhead 1",))
    assert text.startswith(f"# Layer 0 head 1\r\n# Headlight {VERSION}\r\n")
    rows = list(csv.reader(io.StringIO(without_comments(text))))
    assert rows[0] == ["query \\ key", "0 the", "1 cat", "2 the"]
    assert rows[1][0] == '0 a,"b' and rows[2][0] == "1 line\nbreak"
    numbers = np.array([row[1:] for row in rows[1:]], dtype=np.float32)
    np.testing.assert_array_equal(numbers, WEIGHTS)


def test_rows_between_two_texts_have_the_name_of_what_they_produce() -> None:
    target, source = ("[BOS]", "Le", "renard"), ("The", "fox", ".", "[EOS]")
    recording = recording_of(np.full((1, 3, 4), 1 / 4), target, source=source)
    axes = attention.axes(recording, recording.attention[0], "[EOS]")
    assert axes.rows == ("→ Le", "→ renard", "→ [EOS]") and axes.keys == source
    assert axes.produced == (("Le", False), ("renard", False), ("[EOS]", True))
    table = attention.columns(recording.attention[0].pattern[0, 0], axes)
    assert list(table)[:2] == ["target \\ source", "0 The"]
    assert table["target \\ source"][1] == "1 → renard"


def test_the_steps_of_a_softmax_recompute_the_weight() -> None:
    scores, allowed = np.array([0.5, -1.0, 2.0, 9.0]), np.array([True, True, True, False])
    steps = attention.softmax_steps(scores, allowed, 2)
    assert steps.score == 2 and steps.total == pytest.approx(np.exp(scores[:3]).sum())
    assert steps.weight == pytest.approx(np.exp(2) / steps.total)
    assert attention.softmax_steps(scores, allowed, 3).weight == 0


def test_the_strongest_cell_of_all_of_a_row_and_of_a_column() -> None:
    everywhere = np.ones_like(WEIGHTS, bool)
    assert attention.strongest_cell(WEIGHTS, everywhere) == (0, 0)
    assert attention.strongest_cell(WEIGHTS[:, ::-1], everywhere, 0) == (0, 2)
    assert attention.strongest_cell(WEIGHTS, everywhere, key=1) == (1, 1)
    triangle = np.tril(np.ones((5, 5), bool))
    assert attention.strongest_cell(np.eye(5), triangle) == (1, 1), "a row that has a choice"


def test_which_cells_are_allowed_arrives() -> None:
    drawn = np.random.default_rng(0).random((7, 4)) > 0.4
    triangle = np.tril(np.ones((4, 4), bool))
    for allowed in (triangle, ~triangle, np.ones((3, 5), bool), drawn):
        np.testing.assert_array_equal(unfolded(runs(allowed), allowed.shape), allowed)
