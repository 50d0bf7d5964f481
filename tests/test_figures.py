"""Figures by what they say, and the files that leave with them."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from explorer.analysis import attention
from explorer.analysis.csv import to_csv
from models.recording import VERSION

WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]], dtype=np.float32)
QUERIES, KEYS = ("the", "<b>"), ("the", "cat", "the")


def test_csv_holds_the_numbers_in_full_whatever_the_words_are() -> None:
    axes = attention.Axes(('a,"b', "line\nbreak"), KEYS, (False,) * 3)
    text = to_csv(attention.columns(WEIGHTS, axes), ("Layer 0\nhead 1",))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["query \\ key", "0 the", "1 cat", "2 the", "about"]
    assert rows[1][0] == '0 a,"b' and rows[2][0] == "1 line\nbreak"
    assert rows[1][-1] == f"Layer 0 head 1 | Headlight {VERSION}" and rows[2][-1] == ""
    np.testing.assert_array_equal(
        np.array([row[1:-1] for row in rows[1:]], dtype=np.float32), WEIGHTS
    )


def test_table_columns_keep_equal_words_apart() -> None:
    columns = attention.columns(WEIGHTS, attention.Axes(QUERIES, KEYS, (False,) * 3))
    assert list(columns) == ["query \\ key", "0 the", "1 cat", "2 the"]
    np.testing.assert_array_equal(columns["2 the"], WEIGHTS[:, 2])


def test_the_steps_of_a_softmax_recompute_the_weight() -> None:
    scores, allowed = np.array([0.5, -1.0, 2.0, 9.0]), np.array([True, True, True, False])
    steps = attention.softmax_steps(scores, allowed, 2)
    assert steps.score == 2 and steps.total == pytest.approx(np.exp(scores[:3]).sum())
    assert steps.weight == pytest.approx(np.exp(2) / steps.total)
    assert attention.softmax_steps(scores, allowed, 3).weight == 0


def test_strongest_cell_of_all_and_of_a_row() -> None:
    assert attention.strongest_cell(WEIGHTS, np.ones_like(WEIGHTS, bool)) == (0, 0)
    assert attention.strongest_cell(WEIGHTS[:, ::-1], np.ones_like(WEIGHTS, bool), 0) == (0, 2)
