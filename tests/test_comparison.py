"""Comparison of two recordings: alignment, distances and spaces obey their laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from compare_fixtures import TEXT, recorded, sides
from conftest import AWKWARD
from table_files import commented
from tolerances import DOUBLE, STORED, SUMMED, TOTAL

from explorer.analysis import alignment, comparison
from explorer.figures.csv import to_csv
from models.contract.edits import WithoutPositions
from models.network.own_model import OwnModel, record
from models.version import VERSION

PAIRS = [("encoder", "decoder"), ("encoder", "translator"), ("translator", "decoder")]


# ---- alignment ---------------------------------------------------------------


# Which texts each two models read.
READ = [
    *((("encoder", "decoder"), text) for text in (TEXT, *AWKWARD.values())),
    *((names, TEXT) for names in PAIRS[1:]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("names", "text"), READ, ids=range(len(READ)))
def test_units_partition_tokens_by_their_characters(names: tuple[str, str], text: str) -> None:
    a, b = (recorded(name, text) for name in names)
    one, other = (alignment.axis(each, each.streams[0].name) for each in (a, b))
    found = alignment.align(one, other)
    for side, axis, outside in (("a", one, found.outside_a), ("b", other, found.outside_b)):
        places = [at for unit in found.units for at in getattr(unit, side)] + list(outside)
        assert sorted(places) == list(range(len(axis.labels))), "in one unit or outside, once"

    def letters(places: tuple[int, ...], axis: alignment.Axis) -> set[int]:
        every = {at for place in places for at in range(*axis.spans[place])}
        return {at for at in every if not text[at].isspace()}

    assert found.rule == alignment.CHARACTERS
    for unit in found.units:
        assert unit.special or letters(unit.a, one) == letters(unit.b, other)
    same = alignment.align(one, one)
    assert not same.outside_a and not same.outside_b


def test_a_unit_is_the_smallest_group_that_ends_at_the_same_characters() -> None:
    nowhere = [-1, -1]
    tokens, spans = ("[CLS]", "ab", "cd", "ef", "gh", "[SEP]"), [[0, 2], [2, 4], [4, 6], [7, 9]]
    a = alignment.Axis("abcdef gh", tokens, np.array([nowhere, *spans, nowhere]))
    tokens, spans = ("[BOS]", "a", "bcd", "ef", " gh"), [[0, 1], [1, 4], [4, 6], [6, 9]]
    b = alignment.Axis("abcdef gh", tokens, np.array([nowhere, *spans]))
    found = alignment.align(a, b)
    assert [(unit.label, unit.a, unit.b) for unit in found.units] == [
        ("[CLS] / [BOS]", (0,), (0,)),
        ("abcd", (1, 2), (1, 2)),
        ("ef", (3,), (3,)),
        ("gh", (4,), (4,)),
    ]
    assert found.outside_a == (5,) and found.outside_b == ()
    mark = np.array([[0, 1], [0, 1], [1, 2]])
    a = alignment.Axis("\ufeffx", ("U+FEFF 1/2", "U+FEFF 2/2", "x"), mark)
    b = alignment.Axis("\ufeffx", ("U+FEFF", "x"), mark[1:])
    assert alignment.align(a, b).labels == ("U+FEFF", "x")
    # Pieces of a character that both have are compared one by one.
    assert alignment.align(a, a).labels == a.labels
    # A token with characters of its own breaks its unit.
    a = alignment.Axis("ab c", ("a", "b", "c"), np.array([[0, 1], [1, 2], [3, 4]]))
    b = alignment.Axis("ab d", ("ab d",), np.array([[0, 4]]))
    assert not alignment.align(a, b).units and alignment.align(a, b).outside_a == (0, 1, 2)


def test_other_texts_are_aligned_by_words_they_share_in_order() -> None:
    a, b = recorded("encoder", "The red car is fast."), recorded("encoder", "the blue car is old!")
    one, other = alignment.axis(a, "encoder"), alignment.axis(b, "encoder")
    found = alignment.align(one, other)
    assert found.rule == alignment.WORDS
    shared = [unit.label.casefold() for unit in found.units if not unit.special]
    assert shared == ["the", "car", "is"]
    assert alignment.unshared_words(a.text, b.text) == ("red fast .", "blue old !")
    assert {one.labels[at] for at in found.outside_a} == {"red", "fast", "."}
    assert "blue" in {other.labels[at] for at in found.outside_b}


@pytest.mark.parametrize("names", PAIRS[::2], ids="/".join)
def test_rows_sum_to_one_and_a_cell_is_the_sum_by_hand(names: tuple[str, str]) -> None:
    a, b = (recorded(name) for name in names)
    found, pattern = sides(a, b), b.attention[0].pattern
    for matrix in map(np.asarray, (found.a, found.b)):
        np.testing.assert_allclose(matrix.sum(axis=-1), 1, atol=SUMMED)
    columns = [*(column.b for column in found.columns.units), found.columns.outside_b]
    for r, row in enumerate(found.rows.units):
        for c, column in enumerate(columns):
            by_hand = pattern[1, 2][np.ix_(row.b, column)].sum(axis=1).mean()
            assert found.b[1, 2][r, c] == pytest.approx(by_hand, abs=STORED)


def test_rows_between_two_texts_stand_for_what_they_produce(small_translator: OwnModel) -> None:
    made = record(small_translator, "the cat sat", target="the dog ran")
    rows, columns = alignment.axes(made, made.attention[2])
    stream = made.stream("decoder")
    assert rows.labels[0] == f"→ {stream.tokens[1]}"
    assert rows.spans[0].tolist() == stream.spans[1].tolist()
    assert columns.labels == made.stream("encoder").tokens


# ---- distances ---------------------------------------------------------------


def test_the_distance_is_a_metric_from_0_to_1() -> None:
    rng = np.random.default_rng(3)
    p, q, r = rng.dirichlet(np.full(6, 0.3), size=(3, 400))
    pq, qr, pr = (comparison.row_distances(*pair) for pair in ((p, q), (q, r), (p, r)))
    np.testing.assert_allclose(pq, comparison.row_distances(q, p), atol=DOUBLE)
    assert (comparison.row_distances(p, p) == 0).all() and (pq > 0).all()
    assert (pr <= pq + qr + 1e-9).all() and max(pq.max(), qr.max()) <= 1
    one, other, half = np.array([1.0, 0]), np.array([0, 1.0]), np.array([0.5, 0.5])
    assert comparison.row_distances(one, other) == pytest.approx(1)
    # H(1/2, 1/2) - (H(1, 0) + H(1/2, 1/2)) / 2 with the mean (3/4, 1/4)
    by_hand = np.sqrt(-(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)) - 0.5)
    assert comparison.row_distances(one, half) == pytest.approx(by_hand)


def test_a_recording_beside_itself_differs_nowhere() -> None:
    made = recorded("encoder")
    found = sides(made, made)
    assert (np.asarray(found.a) == np.asarray(found.b)).all()
    assert (comparison.same_place_distances(found) == 0).all()
    near = comparison.nearest(comparison.distance_matrix(found))
    assert all(one.nearest == one.head and one.distance == 0 and one.mutual for one in near)


def test_all_pairs_agree_with_single_pairs_and_follow_a_permutation() -> None:
    a, b = recorded("encoder"), recorded("decoder")
    found = sides(a, b)
    all_values = comparison.distance_matrix(found)
    for head, other in (((0, 0), (0, 0)), ((3, 7), (2, 5)), ((1, 2), (3, 0))):
        row = comparison.head_number(head, found.a.shape)
        column = comparison.head_number(other, found.b.shape)
        by_itself = comparison.pair_distance(found, head, other)
        assert all_values.values[row, column] == pytest.approx(by_itself, abs=TOTAL)
    order = np.random.default_rng(0).permutation(found.b.shape[1])
    arrays = ("scores", "pattern", "q", "k", "v")
    turned = {each: getattr(b.attention[0], each)[:, order] for each in arrays}
    moved = sides(a, replace(b, attention=(replace(b.attention[0], **turned),)))
    after = comparison.nearest(comparison.distance_matrix(moved))
    for one, now in zip(comparison.nearest(all_values), after):
        assert (now.nearest[0], order[now.nearest[1]]) == one.nearest
        assert now.distance == pytest.approx(one.distance)
        assert now.median == pytest.approx(one.median)


@pytest.mark.parametrize("names", [("decoder", "decoder"), ("encoder", "decoder")])
def test_all_pairs_of_a_long_text_agree_whatever_is_taken_at_once(
    names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no head may attend to a later key."""
    text = TEXT * 4
    found = sides(recorded(names[0], text), recorded(names[1], f"{text} It ran."))
    layers, heads = found.b.shape[:2]
    by_hand = [
        [comparison.pair_distance(found, (0, 1), (layer, head)) for head in range(heads)]
        for layer in range(layers)
    ]
    for at_once in (1, 2000, 10**6):
        monkeypatch.setattr(comparison, "AT_ONCE", at_once)
        values = comparison.distance_matrix(found, most=10**12).values[1]
        np.testing.assert_allclose(values, np.ravel(by_hand), atol=DOUBLE)


def test_beyond_a_bound_evenly_spaced_rows_stand_for_all() -> None:
    found = sides(recorded("encoder", TEXT * 4), recorded("decoder", TEXT * 4))
    few = comparison.distance_matrix(found, most=1)
    assert few.n_rows == comparison.FEWEST_ROWS < few.all_rows == len(found.rows.units)
    assert np.abs(few.values - comparison.distance_matrix(found).values).mean() < 0.2


def test_a_row_with_no_choice_on_either_side_is_not_counted(small_decoder: OwnModel) -> None:
    made = record(small_decoder, "the cat sat")
    found = sides(made, made)
    assert found.free.tolist() == [False] + [True] * (len(found.rows.units) - 1)


def test_the_told_change_is_in_the_matrices() -> None:
    found = sides(recorded("encoder"), recorded("encoder", edits=(WithoutPositions(),)))
    head = comparison.most_changed(comparison.same_place_distances(found))[0]
    told = comparison.largest_row_change(found, head, head)
    at = int(comparison.row_distances(*found.heads(head, head)).argmax())
    moved = (found.b[head][at] - found.a[head][at])[:-1]
    labels = found.rows.labels
    for name, place in (
        (told.row, at),
        (told.lost, int(moved.argmin())),
        (told.gained, int(moved.argmax())),
    ):
        several = labels.count(labels[place]) > 1  # which are told with their places
        assert name == (f"{place} {labels[place]}" if several else labels[place])
    assert told.lost_to - told.lost_from == pytest.approx(moved.min())
    assert told.gained_to - told.gained_from == pytest.approx(moved.max())


# ---- spaces ------------------------------------------------------------------


def test_a_file_reads_back() -> None:
    found = sides(recorded("encoder"), recorded("decoder"))
    made = to_csv(comparison.pair_columns(found, (0, 1), (1, 0)), ("A, and B", "text"))
    about, rows = commented(made)
    assert about == ["A, and B", "text", f"Headlight {VERSION}"]
    assert len(rows) == len(found.rows.units) * len(found.column_labels)
    for row in rows:
        difference = float(row["B"]) - float(row["A"])
        assert float(row["B - A"]) == pytest.approx(difference, abs=STORED)
