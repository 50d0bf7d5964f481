"""Figures by what they say, and the files that leave with them."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from explorer.analysis import attention
from explorer.analysis.csv import to_csv
from explorer.figures.attention import ColourScale, heatmap
from models.recording import VERSION

WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]], dtype=np.float32)
QUERIES, KEYS = ("the", "<b>"), ("the", "cat", "the")


def test_the_figure_shows_what_it_is_given() -> None:
    figure = heatmap(
        WEIGHTS,
        WEIGHTS,
        QUERIES,
        KEYS,
        ("Layer 0, head 1: <i>", "model <b>"),
        ColourScale(0, 1, "weight"),
    )
    trace = figure.data[0]
    np.testing.assert_array_equal(trace.z, WEIGHTS)
    assert (trace.zmin, trace.zmax) == (0, 1) and trace.colorbar.title.text == "weight"
    assert figure.layout.xaxis.title.text == "key" and figure.layout.yaxis.title.text == "query"
    assert figure.layout.yaxis.autorange == "reversed", "row 0 on top"
    assert (
        figure.layout.title.text == "Layer 0, head 1: &lt;i&gt;"
        and figure.layout.title.subtitle.text == "model &lt;b&gt;"
    )


def test_equal_words_stay_separate_and_labels_are_escaped() -> None:
    figure = heatmap(WEIGHTS, WEIGHTS, QUERIES, KEYS, ("",), ColourScale(0, 1, ""))
    assert list(figure.layout.xaxis.tickvals) == [0, 1, 2] and list(
        figure.layout.xaxis.ticktext
    ) == ["the", "cat", "the"]
    assert list(figure.layout.yaxis.ticktext) == ["the", "&lt;b&gt;"]
    np.testing.assert_array_equal(figure.data[0].customdata, WEIGHTS)


def test_long_texts_get_fewer_labels_not_smaller_ones() -> None:
    n = 200
    words = [f"w{i}" for i in range(n)]
    figure = heatmap(np.eye(n), np.eye(n), words, words, ("",), ColourScale(0, 1, ""))
    assert len(figure.layout.xaxis.tickvals) <= 60
    assert [words[at] for at in figure.layout.xaxis.tickvals] == list(figure.layout.xaxis.ticktext)


def test_shares_by_head_row_and_all() -> None:
    np.testing.assert_allclose(attention.shares(WEIGHTS, "Head"), WEIGHTS / 0.7)
    np.testing.assert_allclose(attention.shares(WEIGHTS, "Row").max(axis=1), 1)
    np.testing.assert_array_equal(attention.shares(WEIGHTS, "Global"), WEIGHTS)
    with pytest.raises(ValueError, match="no scale is called 'column'"):
        attention.shares(WEIGHTS, "column")
    np.testing.assert_allclose(attention.log_shares(np.array([1.0, 0.1, 0.0])), [0, -1, -3])


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
    assert steps.exponential == pytest.approx(np.exp(2.0)) and steps.total == pytest.approx(
        np.exp(scores[:3]).sum()
    )
    assert steps.weight == pytest.approx(steps.exponential / steps.total)
    assert attention.softmax_steps(scores, allowed, 3).weight == 0


def test_strongest_cell_of_all_and_of_a_row() -> None:
    assert attention.strongest_cell(WEIGHTS, np.ones_like(WEIGHTS, bool)) == (0, 0)
    assert attention.strongest_cell(WEIGHTS[:, ::-1], np.ones_like(WEIGHTS, bool), 0) == (0, 2)
