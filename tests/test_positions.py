"""Positions: the laws of the sinusoids and what order does to each kind of model."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from math import cos, pi, sin

import numpy as np
import pytest
from tolerances import DOUBLE, DOUBLE_LONG, PASSED, STORED, SUMMED

from explorer.analysis import positions
from explorer.analysis.csv import to_csv
from models import edits, own_model
from models.edits import HideToken, ShuffleTokens, WithoutPositions
from models.own_model import OwnModel
from models.recording import VERSION, Recording, from_npz, to_npz

TEXT = "the cat sat on the mat and the dog ran"


SIZES = [(2, 2), (12, 6), (64, 256), (512, 1024), (512, 2), (2, 1024)]


# ---- the formula -------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_the_table_is_the_formula(n: int, d: int) -> None:
    table = positions.table(n, d)
    assert table.shape == (n, d)
    for position in (0, 1, n // 2, n - 1):
        for i in (0, d // 4, d // 2 - 1):
            angle = position / 10_000 ** (2 * i / d)
            assert table[position, 2 * i] == pytest.approx(sin(angle), abs=DOUBLE)
            assert table[position, 2 * i + 1] == pytest.approx(cos(angle), abs=DOUBLE)


def test_an_odd_width_is_refused() -> None:
    for d in (0, 1, 7):
        with pytest.raises(ValueError, match="must be even"):
            positions.table(4, d)


def test_a_wavelength_brings_a_pair_back() -> None:
    lengths = positions.wavelengths(128)
    assert lengths[0] == pytest.approx(2 * pi) and lengths[32] == pytest.approx(2 * pi * 100)
    np.testing.assert_allclose(np.cos(lengths * positions.rates(128)), 1, atol=DOUBLE)
    wave = positions.wave(20, 128, 5)
    np.testing.assert_array_equal(
        np.stack((wave.sine, wave.cosine), axis=1), positions.table(20, 128)[:, 10:12]
    )
    np.testing.assert_allclose(wave.fine_sine[:: positions.DRAWN_POINTS], wave.sine, atol=DOUBLE)


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_products_depend_on_the_distance_alone(n: int, d: int) -> None:
    table = positions.table(n, d)
    found = positions.products(table)
    gram = table @ table.T
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    np.testing.assert_allclose(gram, found.law[distance], atol=DOUBLE_LONG)
    assert (
        found.deviation == pytest.approx(np.abs(gram - found.law[distance]).max(), abs=DOUBLE)
        and found.deviation < DOUBLE_LONG
    )
    assert found.law[0] == pytest.approx(d / 2)
    broken = table.copy()
    broken[1, 0] += 0.5
    assert positions.products(broken).deviation > 0.1, "a table that breaks the law is found out"


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_a_shift_is_a_rotation_of_every_pair(n: int, d: int) -> None:
    for shift in (0, 1, n - 1):
        turns = [positions.rotation_matrix(d, pair, shift) for pair in range(d // 2)]
        for turn in turns:
            np.testing.assert_allclose(turn @ turn.T, np.eye(2), atol=DOUBLE)
            assert np.linalg.det(turn) == pytest.approx(1)
        ahead = positions.table(n + shift, d)
        np.testing.assert_allclose(
            positions.rotate_positions(ahead[:n], shift), ahead[shift:], atol=DOUBLE_LONG
        )
        assert positions.shift_error(n, d, shift) < DOUBLE_LONG
        np.testing.assert_allclose(turns[-1] @ ahead[0, -2:], ahead[shift, -2:], atol=DOUBLE_LONG)


def passes(handle: OwnModel, text: str = TEXT, *more: edits.Edit) -> tuple[Recording, Recording]:
    target = "the dog sat" if handle.card.kind == "encoder-decoder" else None
    return own_model.record(handle, text, more, target), own_model.record(
        handle, text, (*more, WithoutPositions()), target
    )


def test_what_is_added_to_a_sentence(handle: OwnModel) -> None:
    plain, _ = passes(handle)
    for stream in plain.streams:
        found = positions.position_sum(stream)
        ids = stream.ids
        np.testing.assert_allclose(
            found.word, np.linalg.norm(handle.embeddings()[ids], axis=1), rtol=SUMMED
        )
        np.testing.assert_allclose(found.encoding, np.sqrt(handle.card.d_model / 2), rtol=STORED)
        np.testing.assert_allclose(
            found.both**2,
            found.word**2 + found.encoding**2 + 2 * found.cosine * found.word * found.encoding,
            rtol=PASSED,
        )
        assert positions.formula_error(stream) <= positions.FORMULA_TOLERANCE


def test_what_a_model_adds_is_found_from_its_numbers(
    small_handle: OwnModel, small_gpt2: OwnModel
) -> None:
    assert positions.encoding_kind(own_model.record(small_handle, TEXT).streams[0]) == "sinusoids"
    assert positions.encoding_kind(own_model.record(small_gpt2, TEXT).streams[0]) == "learned"
    assert (
        positions.encoding_kind(
            own_model.record(small_handle, TEXT, (WithoutPositions(),)).streams[0]
        )
        == "none"
    )


def test_products_of_any_table_by_distance() -> None:
    table = np.random.default_rng(5).normal(size=(9, 4))
    found = positions.by_distance(table)
    for distance in range(9):
        each = [table[i] @ table[i + distance] for i in range(9 - distance)]
        assert (found.mean[distance], found.low[distance], found.high[distance]) == pytest.approx(
            (np.mean(each), min(each), max(each))
        )
    i, j = np.indices((9, 9))
    products = table @ table.T
    assert found.explained == pytest.approx(found.mean[abs(i - j)].var() / products.var()), (
        "the variance that the means by distance hold"
    )
    assert positions.by_distance(positions.table(20, 16)).explained == pytest.approx(1)


def test_the_rotation_tried_where_it_holds_and_where_it_does_not() -> None:
    right = positions.rotation_errors(positions.table(30, 16), 4)
    assert right.rotated_error < DOUBLE < right.unrotated_error
    assert (
        positions.rotation_errors(np.random.default_rng(1).normal(size=(30, 16)), 4).rotated_error
        > 0.5
    )
    assert (
        positions.rotation_errors(positions.table(3, 4), 3) is None
        and positions.rotation_errors(positions.table(3, 4), 0) is None
    )


def test_a_first_position_that_stands_out_is_told() -> None:
    table = np.ones((6, 4))
    assert positions.first_stands_out(table) is None
    table[0] *= 5
    assert positions.first_stands_out(table) == pytest.approx(5)


def test_what_scores_are_divided_by_is_read_off_them(small_handle: OwnModel) -> None:
    assert positions.divisor(
        positions.self_attention(own_model.record(small_handle, TEXT), "encoder")
    ) == pytest.approx(6**0.5)
    assert (
        positions.divisor(
            positions.self_attention(
                own_model.record(small_handle, TEXT, (edits.WithoutScale(),)), "encoder"
            )
        )
        == 1
    )


def test_behind_a_layernorm_no_part_is_position_alone(small_gpt2: OwnModel) -> None:
    plain, bare = passes(small_gpt2)
    assert positions.by_offset(plain, bare, "decoder", 0, 1).places is None
    moved = [
        np.std(
            positions.self_attention(plain, "decoder").scores[0, head]
            - positions.self_attention(bare, "decoder").scores[0, head]
        )
        for head in range(4)
    ]
    assert positions.most_positional_head(plain, bare, "decoder") == int(np.argmax(moved))


def test_a_table_of_another_kind_is_told_from_sinusoids(small_handle: OwnModel) -> None:
    stream = own_model.record(small_handle, TEXT).streams[0]
    resid = stream.resid.copy()
    resid[stream.sites.index("pos.wrote")] = np.random.default_rng(0).normal(size=resid.shape[1:])
    assert positions.formula_error(replace(stream, resid=resid)) > 0.1


def test_position_by_position_is_what_the_weights_make_of_two_encodings(handle: OwnModel) -> None:
    plain, bare = passes(handle)
    stream = plain.streams[0]
    layers = handle.model.encoder if handle.card.kind == "encoder-decoder" else handle.model.layers
    attention = layers[0].attention
    head, d_head = 2, handle.card.d_head
    rows = slice(head * d_head, (head + 1) * d_head)
    p = positions.table(len(stream.tokens), handle.card.d_model)
    q, k = (
        p @ weight.detach().numpy()[rows].T.astype(np.float64)
        for weight in (attention.w_q.weight, attention.w_k.weight)
    )
    found = positions.position_part(
        positions.self_attention(plain, stream.name),
        positions.self_attention(bare, stream.name),
        head,
    )
    np.testing.assert_allclose(found, q @ k.T / np.sqrt(d_head), atol=PASSED)


def test_scores_by_offset_are_means_over_text_tokens_that_may_attend(handle: OwnModel) -> None:
    plain, bare = passes(handle)
    for stream in plain.streams:
        found = positions.by_offset(plain, bare, stream.name, 1, 3)
        attention = positions.self_attention(plain, stream.name)
        for at, offset in enumerate(found.offset):
            cells = [
                attention.scores[1, 3, i, i + offset]
                for i in range(len(stream.tokens))
                if 0 <= i + offset < len(stream.tokens)
                and not stream.special[[i, i + offset]].any()
                and attention.allowed[i, i + offset]
            ]
            assert found.pairs[at] == len(cells)
            assert found.together[at] == pytest.approx(np.mean(cells, dtype=np.float64), abs=SUMMED)
        assert found.places is None
        assert (found.offset <= 0).all() == (stream.name == "decoder")


def test_a_shuffle_moves_every_token_with_all_that_is_its_own(handle: OwnModel) -> None:
    (plain, _), (other, _) = passes(handle), passes(handle, TEXT, ShuffleTokens(3))
    one, two = plain.streams[0], other.streams[0]
    order = ShuffleTokens(3).order(one.special)
    assert sorted(order) == list(range(len(order))) and one.tokens != two.tokens
    assert two.tokens == tuple(one.tokens[at] for at in order)
    for name in ("ids", "spans", "special"):
        np.testing.assert_array_equal(getattr(two, name), getattr(one, name)[order])
    np.testing.assert_array_equal(order[one.special], np.flatnonzero(one.special))
    assert (
        other.text == TEXT
        and other.streams[1:] == ()
        or other.streams[-1].tokens == plain.streams[-1].tokens
    )
    np.testing.assert_array_equal(two.at("embed"), one.at("embed")[order])
    np.testing.assert_array_equal(two.at("pos.wrote"), one.at("pos.wrote"))
    assert from_npz(to_npz(other)) == other
    found = positions.match_tokens(one, two, same_text=True)
    np.testing.assert_array_equal(order[found.there], found.here)
    assert found.unmatched_first == found.unmatched_second == ()


def test_a_shuffle_never_leaves_two_tokens_as_they_were_and_is_the_same_each_time() -> None:
    for n in range(2, 6):
        special = [True, *[False] * n, True]
        for seed in range(40):
            order = ShuffleTokens(seed).order(special)
            assert list(order) != list(range(n + 2)) and order[0] == 0 and order[-1] == n + 1
            np.testing.assert_array_equal(order, ShuffleTokens(seed).order(special))
    assert (
        list(ShuffleTokens(5).order([True, False])) == [0, 1]
        and len(ShuffleTokens(5).order([])) == 0
    )


def test_a_negative_seed_is_refused(small_handle: OwnModel) -> None:
    with pytest.raises(ValueError, match="negative seed"):
        own_model.record(small_handle, TEXT, (ShuffleTokens(-1),))


def test_a_hidden_token_is_hidden_where_the_shuffle_put_it(small_handle: OwnModel) -> None:
    stream = own_model.record(small_handle, TEXT, (HideToken(2), ShuffleTokens(1))).streams[0]
    assert stream.tokens[2] == "[MASK]" and stream.tokens.count("[MASK]") == 1


def test_without_positions_an_encoder_is_equivariant_and_with_them_it_is_not(
    small_handle: OwnModel,
) -> None:
    for seed in range(4):
        (one, one_bare), (two, two_bare) = (
            passes(small_handle),
            passes(small_handle, TEXT, ShuffleTokens(seed)),
        )
        pairs = positions.match_tokens(one.streams[0], two.streams[0], True)
        bare = positions.agreement(one_bare.streams[0], two_bare.streams[0], pairs)
        full = positions.agreement(one.streams[0], two.streams[0], pairs)
        assert bare.difference < PASSED and bare.common_digits > 4 and (bare.cosine > 0.9999).all()
        assert full.difference > 0.1 and full.common_digits < 2
        a, b = one_bare.attention[0], two_bare.attention[0]
        assert (
            positions.largest_gap(a, b, pairs)
            < SUMMED
            < positions.largest_gap(one.attention[0], two.attention[0], pairs)
        )
        first, second, gap = positions.matched_weights(a.pattern[1, 2], b.pattern[1, 2], pairs)
        np.testing.assert_allclose(first, second, atol=SUMMED)
        assert gap == np.abs(first - second).max() and first.shape == (len(pairs.here),) * 2


def test_a_causal_mask_tells_order_by_itself(small_decoder: OwnModel) -> None:
    (_, one), (_, two) = passes(small_decoder), passes(small_decoder, TEXT, ShuffleTokens(2))
    found = positions.agreement(
        one.streams[0], two.streams[0], positions.match_tokens(one.streams[0], two.streams[0], True)
    )
    assert found.difference > 0.01 and found.by_token[0] < SUMMED, (
        "only [BOS], which sees itself alone, is the same"
    )


def test_cross_attention_does_not_know_the_order_of_a_source_without_positions(
    small_translator: OwnModel,
) -> None:
    (one, one_bare), (two, two_bare) = (
        passes(small_translator),
        passes(small_translator, TEXT, ShuffleTokens(2)),
    )
    pairs = positions.match_tokens(one.stream("decoder"), two.stream("decoder"), True)
    np.testing.assert_array_equal(pairs.here, pairs.there)
    assert (
        positions.agreement(
            one_bare.stream("decoder"), two_bare.stream("decoder"), pairs
        ).difference
        < PASSED
    )
    assert (
        positions.agreement(one.stream("decoder"), two.stream("decoder"), pairs).difference > 0.01
    )


def test_words_of_a_retyped_text_are_matched_and_the_others_named(small_handle: OwnModel) -> None:
    one, two = (
        own_model.record(small_handle, "the cat and the dog").streams[0],
        own_model.record(small_handle, "the dog and the mat").streams[0],
    )
    found = positions.match_tokens(one, two, same_text=False)
    assert [one.tokens[at] for at in found.here] == [two.tokens[at] for at in found.there]
    unpaired = {one.tokens[at] for at in found.unmatched_first} | {
        two.tokens[at] for at in found.unmatched_second
    }
    assert unpaired and not unpaired & {"the", "dog", "[CLS]", "[SEP]"}
    assert len(found.here) + len(found.unmatched_first) == len(one.tokens) and len(
        found.there
    ) + len(found.unmatched_second) == len(two.tokens)
    assert positions.reverse_words("Ram pushed Hari") == "Hari pushed Ram"


def test_digits_say_how_far_numbers_agree() -> None:
    np.testing.assert_allclose(
        positions.digits(np.array([0.001, 0.5, 20.0]), np.array([1.0, 5.0, 2.0])), [3, 1, 0]
    )
    assert np.isinf(positions.digits(0.0, 3.0)) and np.isinf(positions.digits(0.0, 0.0))


def test_shares_of_two_orthogonal_subspaces_and_of_one_and_the_same() -> None:
    random = np.random.default_rng(0)
    words = np.concatenate((random.normal(size=(500, 6)), np.zeros((500, 6))), axis=1)
    apart, inside = words[:40, ::-1], words[:40]
    found = positions.overlap(words, apart)
    assert (
        found.most(0.9) <= 6
        and found.words[6] == pytest.approx(1)
        and found.places[6] == pytest.approx(0, abs=DOUBLE_LONG)
    )
    assert positions.overlap(words, inside).places[6] == pytest.approx(1)
    np.testing.assert_allclose(found.chance, np.arange(13) / 12)
    assert positions.dimensions_needed(inside, 0.9999) == 6


# ---- files -------------------------------------------------------------------


def test_csv_holds_the_numbers_in_full() -> None:
    table = positions.table(30, 8)
    made = to_csv(positions.table_columns(table), ("one\ntwo",))
    rows = list(csv.DictReader(io.StringIO(made)))
    assert rows[0]["about"] == f"one two | Headlight {VERSION}"
    np.testing.assert_array_equal([float(row["dimension 3"]) for row in rows], table[:, 3])
