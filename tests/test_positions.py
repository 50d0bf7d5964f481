"""Positions: the laws of the sinusoids and what order does to each kind of model."""

from __future__ import annotations

from dataclasses import replace
from math import pi

import numpy as np
import pytest
from table_files import commented
from tolerances import DOUBLE, DOUBLE_LONG, PASSED, STORED, SUMMED

from explorer.analysis import positions
from explorer.figures.csv import to_csv
from explorer.panels import positions as positions_panels
from models.contract import edits
from models.contract.edits import HideToken, ShuffleTokens, WithoutPositions
from models.contract.recording import Recording
from models.contract.recording_file import from_npz, to_npz
from models.network import own_model
from models.network.own_model import OwnModel
from models.runtime.run import Run
from models.version import VERSION

TEXT = "the cat sat on the mat and the dog ran"


SIZES = [(2, 2), (12, 6), (64, 256), (512, 1024), (512, 2), (2, 1024)]


# ---- the formula -------------------------------------------------------------


def test_the_table_is_the_formula_and_an_odd_width_is_refused() -> None:
    for n, d in SIZES:
        table = positions.table(n, d)
        assert table.shape == (n, d)
        at, pair = np.indices((n, d // 2))
        angle = at / 10_000 ** (2 * pair / d)
        np.testing.assert_allclose(table[:, ::2], np.sin(angle), atol=DOUBLE)
        np.testing.assert_allclose(table[:, 1::2], np.cos(angle), atol=DOUBLE)
    for d in (0, 1, 7):
        with pytest.raises(ValueError, match="must be even"):
            positions.table(4, d)


def test_a_wavelength_brings_a_pair_back() -> None:
    lengths = positions.wavelengths(128)
    assert lengths[0] == pytest.approx(2 * pi) and lengths[32] == pytest.approx(2 * pi * 100)
    np.testing.assert_allclose(np.cos(lengths * positions.rates(128)), 1, atol=DOUBLE)
    wave = positions.wave(20, 128, 5)
    drawn = np.stack((wave.sine, wave.cosine), axis=1)
    np.testing.assert_array_equal(drawn, positions.table(20, 128)[:, 10:12])
    np.testing.assert_allclose(wave.fine_sine[:: positions.DRAWN_POINTS], wave.sine, atol=DOUBLE)
    # How far the slowest pair turns is said on its panel.
    details = positions_panels.encoding(Run("encoder", TEXT), 512, 256).details
    turn = 360 * 511 / (2 * pi * 10000 ** (254 / 256))
    assert any(f"{turn:.4g}°" in line for line in details)


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_products_depend_on_the_distance_alone_and_a_shift_is_a_rotation(n: int, d: int) -> None:
    table = positions.table(n, d)
    found = positions.products(table)
    distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    off = np.abs(table @ table.T - found.law[distance]).max()
    assert off < DOUBLE_LONG and found.deviation == pytest.approx(off, abs=DOUBLE)
    assert found.law[0] == pytest.approx(d / 2)
    broken = table.copy()
    broken[1, 0] += 0.5
    assert positions.products(broken).deviation > 0.1, "a table that breaks the law is found out"
    for shift in (0, 1, n - 1):
        turns = np.array([positions.rotation_matrix(d, pair, shift) for pair in range(d // 2)])
        identities = np.broadcast_to(np.eye(2), turns.shape)
        np.testing.assert_allclose(turns @ turns.swapaxes(1, 2), identities, atol=DOUBLE)
        np.testing.assert_allclose(np.linalg.det(turns), 1)
        ahead = positions.table(n + shift, d)
        rotated = positions.rotate_positions(ahead[:n], shift)
        np.testing.assert_allclose(rotated, ahead[shift:], atol=DOUBLE_LONG)
        np.testing.assert_allclose(turns[-1] @ ahead[0, -2:], ahead[shift, -2:], atol=DOUBLE_LONG)
        assert positions.shift_error(n, d, shift) < DOUBLE_LONG


def passes(model: OwnModel, text: str = TEXT, *more: edits.Edit) -> tuple[Recording, Recording]:
    """A recording with positions and one without."""
    target = "the dog sat" if model.card.kind == "encoder-decoder" else None
    plain = own_model.record(model, text, more, target)
    return plain, own_model.record(model, text, (*more, WithoutPositions()), target)


def test_what_is_added_to_a_sentence(model: OwnModel) -> None:
    plain, _ = passes(model)
    for stream in plain.streams:
        found = positions.position_sum(stream)
        words = np.linalg.norm(model.embeddings()[stream.ids], axis=1)
        np.testing.assert_allclose(found.word, words, rtol=SUMMED)
        np.testing.assert_allclose(found.encoding, np.sqrt(model.card.d_model / 2), rtol=STORED)
        w, p = found.word, found.encoding
        squares = w**2 + p**2 + 2 * found.cosine * w * p
        np.testing.assert_allclose(found.both**2, squares, rtol=PASSED)
        assert positions.formula_error(stream) <= positions.FORMULA_TOLERANCE


def test_what_a_model_adds_is_in_its_numbers(small_model: OwnModel, small_gpt2: OwnModel) -> None:
    (plain, bare), (learned, _) = passes(small_model), passes(small_gpt2)
    streams = [each.streams[0] for each in (plain, learned, bare)]
    assert [*map(positions.encoding_kind, streams)] == ["sinusoids", "learned", "none"]
    resid = streams[0].resid.copy()
    at = streams[0].sites.index("pos.wrote")
    resid[at] = np.random.default_rng(0).normal(size=resid.shape[1:])
    assert positions.formula_error(replace(streams[0], resid=resid)) > 0.1


def test_products_of_any_table_by_distance() -> None:
    table = np.random.default_rng(5).normal(size=(9, 4))
    found, products = positions.by_distance(table), table @ table.T
    for distance in range(9):
        each = np.diagonal(products, distance)
        told = (found.mean[distance], found.low[distance], found.high[distance])
        assert told == pytest.approx((each.mean(), each.min(), each.max()))
    i, j = np.indices((9, 9))
    # The variance that the means by distance hold.
    assert found.explained == pytest.approx(found.mean[abs(i - j)].var() / products.var())
    assert positions.by_distance(positions.table(20, 16)).explained == pytest.approx(1)


def test_the_rotation_tried_where_it_holds_and_where_it_does_not() -> None:
    right = positions.rotation_errors(positions.table(30, 16), 4)
    assert right.rotated_error < DOUBLE < right.unrotated_error
    random = np.random.default_rng(1).normal(size=(30, 16))
    assert positions.rotation_errors(random, 4).rotated_error > 0.5
    for shift in (0, 3):
        assert positions.rotation_errors(positions.table(3, 4), shift) is None
    table = np.ones((6, 4))
    assert positions.first_stands_out(table) is None
    table[0] *= 5
    assert positions.first_stands_out(table) == pytest.approx(5)


def test_what_scores_are_divided_by_is_read_off_them(small_model: OwnModel) -> None:
    for more, divisor in (((), 6**0.5), ((edits.WithoutScale(),), 1)):
        recording = own_model.record(small_model, TEXT, more)
        attention = positions.self_attention(recording, "encoder")
        assert positions.divisor(attention) == pytest.approx(divisor)


def test_behind_a_layernorm_no_part_is_position_alone(small_gpt2: OwnModel) -> None:
    plain, bare = passes(small_gpt2)
    assert positions.by_offset(plain, bare, "decoder", 0, 1).places is None
    with_, without = (positions.self_attention(each, "decoder").scores[0] for each in (plain, bare))
    most = int(np.std(with_ - without, axis=(1, 2)).argmax())
    assert positions.most_positional_head(plain, bare, "decoder") == most


def test_position_by_position_is_what_the_weights_make_of_two_encodings(model: OwnModel) -> None:
    plain, bare = passes(model)
    stream = plain.streams[0]
    layers = model.network.encoder if model.card.kind == "encoder-decoder" else model.network.layers
    attention, head, d_head = layers[0].attention, 2, model.card.d_head
    rows = slice(head * d_head, (head + 1) * d_head)
    p = positions.table(len(stream.tokens), model.card.d_model)
    q, k = (p @ w.weight.detach().double().numpy()[rows].T for w in (attention.w_q, attention.w_k))
    both = (positions.self_attention(each, stream.name) for each in (plain, bare))
    found = positions.position_part(*both, head)
    np.testing.assert_allclose(found, q @ k.T / np.sqrt(d_head), atol=PASSED)


def test_scores_by_offset_are_means_over_text_tokens_that_may_attend(model: OwnModel) -> None:
    plain, bare = passes(model)
    for stream in plain.streams:
        found = positions.by_offset(plain, bare, stream.name, 1, 3)
        attention = positions.self_attention(plain, stream.name)
        free = attention.allowed[0] & ~stream.special & ~stream.special[:, None]
        for at, offset in enumerate(found.offset):
            cells = np.diagonal(attention.scores[1, 3], offset)[np.diagonal(free, offset)]
            assert found.pairs[at] == len(cells)
            assert found.together[at] == pytest.approx(np.mean(cells, dtype=float), abs=SUMMED)
        assert found.places is None
        assert (found.offset <= 0).all() == (stream.name == "decoder")


def test_a_shuffle_moves_every_token_with_all_that_is_its_own(model: OwnModel) -> None:
    (plain, _), (other, _) = passes(model), passes(model, TEXT, ShuffleTokens(3))
    one, two = plain.streams[0], other.streams[0]
    order = ShuffleTokens(3).order(one.special)
    assert sorted(order) == list(range(len(order))) and one.tokens != two.tokens
    assert two.tokens == tuple(one.tokens[at] for at in order) and other.text == TEXT
    for name in ("ids", "spans", "special"):
        np.testing.assert_array_equal(getattr(two, name), getattr(one, name)[order])
    np.testing.assert_array_equal(order[one.special], np.flatnonzero(one.special))
    if len(plain.streams) > 1:
        assert other.streams[-1].tokens == plain.streams[-1].tokens
    np.testing.assert_array_equal(two.at("embed"), one.at("embed")[order])
    np.testing.assert_array_equal(two.at("pos.wrote"), one.at("pos.wrote"))
    assert from_npz(to_npz(other)) == other
    found = positions.match_tokens(one, two, same_text=True)
    np.testing.assert_array_equal(order[found.there], found.here)
    assert found.unmatched_first == found.unmatched_second == ()


def test_pieces_move_together_and_a_special_token_moves_with_none() -> None:
    special = [True, False, False, False, False, True]
    for seed in range(20):
        order = ShuffleTokens(seed, "2-3").order(special).tolist()
        assert sorted(order) == list(range(6)) and (order[0], order[5]) == (0, 5)
        assert order.index(3) == order.index(2) + 1
        for asked in ("0-9", "4-999999", "3-1"):
            order = ShuffleTokens(seed, asked).order(special).tolist()
            assert sorted(order) == list(range(6)) and (order[0], order[5]) == (0, 5)
    with pytest.raises(ValueError, match="no list of places"):
        Run("encoder", TEXT, (ShuffleTokens(1, "9" * 5_000),)).recording()


def test_a_shuffle_moves_a_token_and_is_the_same_each_time(small_model: OwnModel) -> None:
    for n in range(2, 6):
        special = [True, *[False] * n, True]
        for seed in range(40):
            order = ShuffleTokens(seed).order(special)
            assert list(order) != list(range(n + 2)) and order[0] == 0 and order[-1] == n + 1
            np.testing.assert_array_equal(order, ShuffleTokens(seed).order(special))
    assert list(ShuffleTokens(5).order([True, False])) == [0, 1]
    assert len(ShuffleTokens(5).order([])) == 0
    with pytest.raises(ValueError, match="negative seed"):
        own_model.record(small_model, TEXT, (ShuffleTokens(-1),))
    hidden = own_model.record(small_model, TEXT, (HideToken(2), ShuffleTokens(1))).streams[0]
    assert hidden.tokens[2] == "[MASK]" and hidden.tokens.count("[MASK]") == 1


def test_without_positions_alone_an_encoder_is_equivariant(small_model: OwnModel) -> None:
    one, one_bare = passes(small_model)
    two, two_bare = passes(small_model, TEXT, ShuffleTokens(1))
    pairs = positions.match_tokens(one.streams[0], two.streams[0], True)
    bare = positions.agreement(one_bare.streams[0], two_bare.streams[0], pairs)
    full = positions.agreement(one.streams[0], two.streams[0], pairs)
    assert bare.difference < PASSED and bare.common_digits > 4 and (bare.cosine > 0.9999).all()
    assert full.difference > 0.1 and full.common_digits < 2
    a, b = one_bare.attention[0], two_bare.attention[0]
    assert positions.largest_gap(a, b, pairs) < SUMMED
    assert positions.largest_gap(one.attention[0], two.attention[0], pairs) > SUMMED
    first, second, gap = positions.matched_weights(a.pattern[1, 2], b.pattern[1, 2], pairs)
    np.testing.assert_allclose(first, second, atol=SUMMED)
    assert gap == np.abs(first - second).max() and first.shape == (len(pairs.here),) * 2


def test_a_causal_mask_tells_order_by_itself(small_decoder: OwnModel) -> None:
    (_, one), (_, two) = passes(small_decoder), passes(small_decoder, TEXT, ShuffleTokens(2))
    pairs = positions.match_tokens(one.streams[0], two.streams[0], True)
    found = positions.agreement(one.streams[0], two.streams[0], pairs)
    assert found.difference > 0.01 and found.by_token[0] < SUMMED, "[BOS] sees itself alone"


def test_cross_attention_without_positions_knows_no_order(small_translator: OwnModel) -> None:
    plain, shuffled = (passes(small_translator, TEXT, *more) for more in ((), (ShuffleTokens(2),)))
    for (one, two), is_bare in zip(zip(plain, shuffled), (False, True)):
        here, there = one.stream("decoder"), two.stream("decoder")
        pairs = positions.match_tokens(here, there, True)
        np.testing.assert_array_equal(pairs.here, pairs.there)
        found = positions.agreement(here, there, pairs)
        assert found.difference < PASSED if is_bare else found.difference > 0.01


def test_words_of_a_retyped_text_are_matched_and_the_others_named(small_model: OwnModel) -> None:
    texts = ("the cat and the dog", "the dog and the mat")
    one, two = (own_model.record(small_model, text).streams[0] for text in texts)
    found = positions.match_tokens(one, two, same_text=False)
    assert [one.tokens[at] for at in found.here] == [two.tokens[at] for at in found.there]
    unpaired = {one.tokens[at] for at in found.unmatched_first}
    unpaired |= {two.tokens[at] for at in found.unmatched_second}
    assert unpaired and not unpaired & {"the", "dog", "[CLS]", "[SEP]"}
    assert len(found.here) + len(found.unmatched_first) == len(one.tokens)
    assert len(found.there) + len(found.unmatched_second) == len(two.tokens)
    assert positions.reverse_words("Ram pushed Hari") == "Hari pushed Ram"


def test_digits_say_how_far_numbers_agree() -> None:
    digits = positions.digits(np.array([0.001, 0.5, 20.0]), np.array([1.0, 5.0, 2.0]))
    np.testing.assert_allclose(digits, [3, 1, 0])
    assert np.isinf(positions.digits(0.0, 3.0)) and np.isinf(positions.digits(0.0, 0.0))


def test_shares_of_two_orthogonal_subspaces_and_of_one_and_the_same() -> None:
    random = np.random.default_rng(0)
    words = np.concatenate((random.normal(size=(500, 6)), np.zeros((500, 6))), axis=1)
    apart, inside = words[:40, ::-1], words[:40]
    found = positions.overlap(words, apart)
    assert found.most(0.9) <= 6 and found.words[6] == pytest.approx(1)
    assert found.places[6] == pytest.approx(0, abs=DOUBLE_LONG)
    assert positions.overlap(words, inside).places[6] == pytest.approx(1)
    np.testing.assert_allclose(found.chance, np.arange(13) / 12)
    assert positions.dimensions_needed(inside, 0.9999) == 6


# ---- files -------------------------------------------------------------------


def test_csv_holds_the_numbers_in_full() -> None:
    table = positions.table(30, 8)
    made = to_csv(positions.table_columns(table), ("one\ntwo",))
    about, rows = commented(made)
    assert about == ["one two", f"Headlight {VERSION}"]
    values = [float(row["value"]) for row in rows if row["dimension"] == "3"]
    np.testing.assert_array_equal(values, table[:, 3])
