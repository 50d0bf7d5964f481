"""Positions: the laws of the sinusoids, what order does to real forward passes, and the page that
shows both."""

from __future__ import annotations

import base64
import csv
import io
import json
from dataclasses import replace
from math import cos, pi, sin
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from bounds import CODED, DOUBLE, DOUBLE_LONG, PASSED, STORED, SUMMED
from conftest import HOSTILE, read_once
from driver import MARKS, Visitor
from streamlit.testing.v1 import AppTest

from explorer.analysis import added
from explorer.analysis import order as orders
from explorer.analysis import positions as numbers
from explorer.analysis.csv import to_csv
from explorer.figures import order as draw_order
from explorer.figures import positions as draw
from explorer.memory import shelf
from models import edits, library, own
from models.edits import HideToken, ShuffleTokens, WithoutPositions
from models.own import Handle
from models.recording import Recording, from_npz, to_npz

ROOT = Path(__file__).resolve().parent.parent
TEXT = "the cat sat on the mat and the dog ran"
SIZES = [(2, 2), (12, 6), (64, 256), (512, 1024), (512, 2), (2, 1024)]
SCREENS = ("Waves", "Distance", "Shift", "Sentence", "Order", "Adding")


# ---- the formula -------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_the_table_is_the_formula(n: int, d: int) -> None:
    table = numbers.table(n, d)
    assert table.shape == (n, d)
    for position in (0, 1, n // 2, n - 1):
        for i in (0, d // 4, d // 2 - 1):
            angle = position / 10_000 ** (2 * i / d)
            assert table[position, 2 * i] == pytest.approx(sin(angle), abs=DOUBLE)
            assert table[position, 2 * i + 1] == pytest.approx(cos(angle), abs=DOUBLE)


def test_an_odd_width_is_refused() -> None:
    for d in (0, 1, 7):
        with pytest.raises(ValueError, match="must be even"):
            numbers.table(4, d)


def test_a_wavelength_brings_a_pair_back() -> None:
    lengths = numbers.wavelengths(128)
    assert lengths[0] == pytest.approx(2 * pi) and lengths[32] == pytest.approx(2 * pi * 100)
    np.testing.assert_allclose(np.cos(lengths * numbers.rates(128)), 1, atol=DOUBLE)
    wave = numbers.wave(20, 128, 5)
    np.testing.assert_array_equal(
        np.stack((wave.sine, wave.cosine), axis=1), numbers.table(20, 128)[:, 10:12]
    )
    np.testing.assert_allclose(wave.fine_sine[:: numbers.DRAWN_POINTS], wave.sine, atol=DOUBLE)


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_products_depend_on_the_distance_alone(n: int, d: int) -> None:
    table = numbers.table(n, d)
    found = numbers.products(table)
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
    assert numbers.products(broken).deviation > 0.1, "a table that breaks the law is found out"


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_a_shift_is_a_rotation_of_every_pair(n: int, d: int) -> None:
    for shift in (0, 1, n - 1):
        turns = [numbers.turn(d, pair, shift) for pair in range(d // 2)]
        for turn in turns:
            np.testing.assert_allclose(turn @ turn.T, np.eye(2), atol=DOUBLE)
            assert np.linalg.det(turn) == pytest.approx(1)
        ahead = numbers.table(n + shift, d)
        np.testing.assert_allclose(
            numbers.shifted(ahead[:n], shift), ahead[shift:], atol=DOUBLE_LONG
        )
        assert numbers.shift_error(n, d, shift) < DOUBLE_LONG
        np.testing.assert_allclose(turns[-1] @ ahead[0, -2:], ahead[shift, -2:], atol=DOUBLE_LONG)


# ---- on recordings -----------------------------------------------------------


@pytest.fixture(params=["small_handle", "small_decoder", "small_translator"])
def handle(request: pytest.FixtureRequest) -> Handle:
    return request.getfixturevalue(request.param)


def passes(handle: Handle, text: str = TEXT, *more: edits.Edit) -> tuple[Recording, Recording]:
    target = "the dog sat" if handle.card.kind == "encoder-decoder" else None
    return own.record(handle, text, more, target), own.record(
        handle, text, (*more, WithoutPositions()), target
    )


def test_what_is_added_to_a_sentence(handle: Handle) -> None:
    plain, _ = passes(handle)
    for stream in plain.streams:
        found = added.added(stream)
        ids = stream.ids
        np.testing.assert_allclose(
            found.word, np.linalg.norm(own.embeddings(handle)[ids], axis=1), rtol=SUMMED
        )
        np.testing.assert_allclose(found.encoding, np.sqrt(handle.card.d_model / 2), rtol=STORED)
        np.testing.assert_allclose(
            found.both**2,
            found.word**2 + found.encoding**2 + 2 * found.cosine * found.word * found.encoding,
            rtol=PASSED,
        )
        assert numbers.off_formula(stream) <= numbers.SAME


def test_what_a_model_adds_is_found_from_its_numbers(
    small_handle: Handle, small_gpt2: Handle
) -> None:
    assert numbers.kind(own.record(small_handle, TEXT).streams[0]) == "sinusoids"
    assert numbers.kind(own.record(small_gpt2, TEXT).streams[0]) == "learned"
    assert numbers.kind(own.record(small_handle, TEXT, (WithoutPositions(),)).streams[0]) == "none"


def test_products_of_any_table_by_distance() -> None:
    table = np.random.default_rng(5).normal(size=(9, 4))
    found = numbers.by_distance(table)
    for distance in range(9):
        each = [table[i] @ table[i + distance] for i in range(9 - distance)]
        assert (found.mean[distance], found.low[distance], found.high[distance]) == pytest.approx(
            (np.mean(each), min(each), max(each))
        )
    i, j = np.indices((9, 9))
    products = table @ table.T
    assert found.told == pytest.approx(found.mean[abs(i - j)].var() / products.var()), (
        "the variance that the means by distance hold"
    )
    assert numbers.by_distance(numbers.table(20, 16)).told == pytest.approx(1)


def test_the_rotation_tried_where_it_holds_and_where_it_does_not() -> None:
    right = numbers.tried(numbers.table(30, 16), 4)
    assert right.turned < DOUBLE < right.still
    assert numbers.tried(np.random.default_rng(1).normal(size=(30, 16)), 4).turned > 0.5
    assert (
        numbers.tried(numbers.table(3, 4), 3) is None
        and numbers.tried(numbers.table(3, 4), 0) is None
    )


def test_a_first_position_that_stands_out_is_told() -> None:
    table = np.ones((6, 4))
    assert numbers.first_stands_out(table) is None
    table[0] *= 5
    assert numbers.first_stands_out(table) == pytest.approx(5)


def test_what_scores_are_divided_by_is_read_off_them(small_handle: Handle) -> None:
    assert added.divisor(
        numbers.attention_of(own.record(small_handle, TEXT), "encoder")
    ) == pytest.approx(6**0.5)
    assert (
        added.divisor(
            numbers.attention_of(own.record(small_handle, TEXT, (edits.WithoutScale(),)), "encoder")
        )
        == 1
    )


def test_behind_a_layernorm_no_part_is_position_alone(small_gpt2: Handle) -> None:
    plain, bare = passes(small_gpt2)
    assert added.by_offset(plain, bare, "decoder", 0, 1).places is None
    moved = [
        np.std(
            numbers.attention_of(plain, "decoder").scores[0, head]
            - numbers.attention_of(bare, "decoder").scores[0, head]
        )
        for head in range(4)
    ]
    assert added.most_positional(plain, bare, "decoder") == int(np.argmax(moved))


def test_a_table_of_another_kind_is_told_from_sinusoids(small_handle: Handle) -> None:
    stream = own.record(small_handle, TEXT).streams[0]
    resid = stream.resid.copy()
    resid[stream.sites.index("pos.wrote")] = np.random.default_rng(0).normal(size=resid.shape[1:])
    assert numbers.off_formula(replace(stream, resid=resid)) > 0.1


def test_position_by_position_is_what_the_weights_make_of_two_encodings(handle: Handle) -> None:
    plain, bare = passes(handle)
    stream = plain.streams[0]
    layers = handle.model.encoder if handle.card.kind == "encoder-decoder" else handle.model.layers
    attention = layers[0].attention
    head, d_head = 2, handle.card.d_head
    rows = slice(head * d_head, (head + 1) * d_head)
    p = numbers.table(len(stream.tokens), handle.card.d_model)
    q, k = (
        p @ weight.detach().numpy()[rows].T.astype(np.float64)
        for weight in (attention.w_q.weight, attention.w_k.weight)
    )
    found = added.places_part(
        numbers.attention_of(plain, stream.name), numbers.attention_of(bare, stream.name), head
    )
    np.testing.assert_allclose(found, q @ k.T / np.sqrt(d_head), atol=PASSED)


def test_scores_by_offset_are_means_over_text_tokens_that_may_attend(handle: Handle) -> None:
    plain, bare = passes(handle)
    for stream in plain.streams:
        found = added.by_offset(plain, bare, stream.name, 1, 3)
        attention = numbers.attention_of(plain, stream.name)
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


def test_a_shuffle_moves_every_token_with_all_that_is_its_own(handle: Handle) -> None:
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
    found = orders.matched(one, two, same_text=True)
    np.testing.assert_array_equal(order[found.there], found.here)
    assert found.alone_here == found.alone_there == ()


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


def test_a_negative_seed_is_refused(small_handle: Handle) -> None:
    with pytest.raises(ValueError, match="negative seed"):
        own.record(small_handle, TEXT, (ShuffleTokens(-1),))


def test_a_hidden_token_is_hidden_where_the_shuffle_put_it(small_handle: Handle) -> None:
    stream = own.record(small_handle, TEXT, (HideToken(2), ShuffleTokens(1))).streams[0]
    assert stream.tokens[2] == "[MASK]" and stream.tokens.count("[MASK]") == 1


def test_without_positions_an_encoder_is_equivariant_and_with_them_it_is_not(
    small_handle: Handle,
) -> None:
    for seed in range(4):
        (one, one_bare), (two, two_bare) = (
            passes(small_handle),
            passes(small_handle, TEXT, ShuffleTokens(seed)),
        )
        pairs = orders.matched(one.streams[0], two.streams[0], True)
        bare = orders.agreement(one_bare.streams[0], two_bare.streams[0], pairs)
        full = orders.agreement(one.streams[0], two.streams[0], pairs)
        assert bare.difference < PASSED and bare.common_digits > 4 and (bare.cosine > 0.9999).all()
        assert full.difference > 0.1 and full.common_digits < 2
        a, b = one_bare.attention[0], two_bare.attention[0]
        assert (
            orders.largest_gap(a, b, pairs)
            < SUMMED
            < orders.largest_gap(one.attention[0], two.attention[0], pairs)
        )
        first, second, gap = orders.maps(a.pattern[1, 2], b.pattern[1, 2], pairs)
        np.testing.assert_allclose(first, second, atol=SUMMED)
        assert gap == np.abs(first - second).max() and first.shape == (len(pairs.here),) * 2


def test_a_causal_mask_tells_order_by_itself(small_decoder: Handle) -> None:
    (_, one), (_, two) = passes(small_decoder), passes(small_decoder, TEXT, ShuffleTokens(2))
    found = orders.agreement(
        one.streams[0], two.streams[0], orders.matched(one.streams[0], two.streams[0], True)
    )
    assert found.difference > 0.01 and found.by_token[0] < SUMMED, (
        "only [BOS], which sees itself alone, is the same"
    )


def test_cross_attention_does_not_know_the_order_of_a_source_without_positions(
    small_translator: Handle,
) -> None:
    (one, one_bare), (two, two_bare) = (
        passes(small_translator),
        passes(small_translator, TEXT, ShuffleTokens(2)),
    )
    pairs = orders.matched(one.stream("decoder"), two.stream("decoder"), True)
    np.testing.assert_array_equal(pairs.here, pairs.there)
    assert (
        orders.agreement(one_bare.stream("decoder"), two_bare.stream("decoder"), pairs).difference
        < PASSED
    )
    assert orders.agreement(one.stream("decoder"), two.stream("decoder"), pairs).difference > 0.01


def test_words_of_a_retyped_text_are_matched_and_the_others_named(small_handle: Handle) -> None:
    one, two = (
        own.record(small_handle, "the cat and the dog").streams[0],
        own.record(small_handle, "the dog and the mat").streams[0],
    )
    found = orders.matched(one, two, same_text=False)
    assert [one.tokens[at] for at in found.here] == [two.tokens[at] for at in found.there]
    unpaired = {one.tokens[at] for at in found.alone_here} | {
        two.tokens[at] for at in found.alone_there
    }
    assert unpaired and not unpaired & {"the", "dog", "[CLS]", "[SEP]"}
    assert len(found.here) + len(found.alone_here) == len(one.tokens) and len(found.there) + len(
        found.alone_there
    ) == len(two.tokens)
    assert orders.turned_round("Ram pushed Hari") == "Hari pushed Ram"


def test_digits_say_how_far_numbers_agree() -> None:
    np.testing.assert_allclose(
        orders.digits(np.array([0.001, 0.5, 20.0]), np.array([1.0, 5.0, 2.0])), [3, 1, 0]
    )
    assert np.isinf(orders.digits(0.0, 3.0)) and np.isinf(orders.digits(0.0, 0.0))


def test_shares_of_two_orthogonal_subspaces_and_of_one_and_the_same() -> None:
    random = np.random.default_rng(0)
    words = np.concatenate((random.normal(size=(500, 6)), np.zeros((500, 6))), axis=1)
    apart, inside = words[:40, ::-1], words[:40]
    found = added.overlap(words, apart)
    assert (
        found.most(0.9) <= 6
        and found.words[6] == pytest.approx(1)
        and found.places[6] == pytest.approx(0, abs=DOUBLE_LONG)
    )
    assert added.overlap(words, inside).places[6] == pytest.approx(1)
    np.testing.assert_allclose(found.chance, np.arange(13) / 12)
    assert added.room_needed(inside, 0.9999) == 6


# ---- figures and files -------------------------------------------------------


def test_the_figures_show_what_they_are_given_and_escape_what_is_written() -> None:
    table = numbers.table(8, 12)
    figure = draw.table(table, ("<b>", "text <i>"), 2, (6.28, 100.0))
    np.testing.assert_allclose(figure.data[0].z, table, atol=STORED)
    assert (
        "&lt;b&gt;" in figure.layout.title.text and "&lt;i&gt;" in figure.layout.title.subtitle.text
    )
    assert [note.text for note in figure.layout.annotations] == ["← fast, λ 6.28", "λ 100, slow →"]
    large = numbers.table(512, 1024)
    coded = draw.table(large, ("",), 2, (1, 2)).data[0]
    assert coded.z.dtype == np.uint8
    np.testing.assert_allclose(coded.z / 255 * 2 - 1, large, atol=CODED)
    bars = draw_order.lengths(np.ones(2), np.ones(2), np.ones(2), ("<b>", "x" * 40), ("",))
    assert list(bars.layout.xaxis.ticktext) == ["&lt;b&gt;", "x" * 13 + "…"]


def test_csv_holds_the_numbers_in_full() -> None:
    wave = numbers.wave(30, 8, 1)
    rows = list(csv.DictReader(io.StringIO(to_csv(numbers.wave_columns(wave), ("one\ntwo",)))))
    assert rows[0]["about"] == "one two"
    np.testing.assert_array_equal([float(row["sin"]) for row in rows], wave.sine)


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=60)
    for name, value in asked.items():
        app.query_params[name] = value
    app.switch_page(str(ROOT / "pages" / "positions.py"))
    return clean(app.run())


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def plots(app: AppTest) -> list[dict]:
    return [json.loads(each.proto.spec) for each in app.get("plotly_chart")]


def array(told: dict | list) -> np.ndarray:
    if isinstance(told, list):
        return np.array(told, dtype=float)
    found = np.frombuffer(base64.b64decode(told["bdata"]), dtype=np.dtype(told["dtype"]))
    return (
        found.reshape([int(side) for side in str(told["shape"]).split(",")])
        if "shape" in told
        else found
    )


def told(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.markdown, *app.info, *app.warning, *app.caption))


def turned_to(app: AppTest, screen: str) -> AppTest:
    return clean(app.segmented_control(key="ask").set_value(screen).run())


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_shown_or_it_says_why_not(text: str) -> None:
    app = opened(text=text, ask="Sentence")
    stream = library.record(read_once("encoder"), text).streams[0]
    np.testing.assert_allclose(
        array(plots(app)[0]["data"][0]["y"]),
        np.linalg.norm(stream.at("embed"), axis=1),
        rtol=SUMMED,
    )
    written = json.dumps([plot["layout"] for plot in plots(app)])
    turned_to(app, "Order")
    if stream.special.all():
        assert "no words yet" in told(app)
    else:
        assert len(plots(app)) == 3 and (
            "same as this one" in told(app) or "permutation-equivariant" in told(app)
        )
    assert not any(
        tag in written + json.dumps([plot["layout"] for plot in plots(app)])
        for tag in ("<b>", "<script", "<img", "<span")
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ("encoder", "decoder", "translator"))
def test_every_screen_of_every_model(model: str) -> None:
    app = opened(
        model=model, text="Ram pushed Hari", stream="decoder" if model == "translator" else ""
    )
    for screen in SCREENS:
        turned_to(app, screen)
        captions = " ".join(plot["layout"]["title"]["subtitle"]["text"] for plot in plots(app))
        assert captions and app.dataframe, "a picture says what it is, and a table stands behind it"
        if screen in ("Sentence", "Order"):
            assert f"model {model}" in captions and "Ram pushed Hari" in captions
        if screen == "Order":
            assert ("causal mask" in told(app)) == (model == "decoder") and (
                "decoder cannot tell" in told(app)
            ) == (model == "translator")


@pytest.mark.slow
def test_a_learned_table_is_shown_as_it_is_and_no_law_is_claimed_for_it() -> None:
    app = opened(model="minilm", text="Apples fall.", ask="Waves")
    table = read_once("minilm").model.embedding.position.detach().numpy()
    np.testing.assert_allclose(array(plots(app)[0]["data"][0]["z"]), table[:64], rtol=STORED)
    np.testing.assert_allclose(
        array(plots(app)[1]["data"][0]["y"]), np.linalg.norm(table[:64], axis=1), rtol=SUMMED
    )
    assert (
        "wavelengths do not apply" in told(app)
        and "√(d/2)" in told(app)
        and "10000^" not in told(app)
    )
    turned_to(app, "Distance")
    shown = plots(app)[0]["data"]
    products = table[1:64].astype(float) @ table[1:64].T.astype(float)
    assert array(shown[2]["y"])[1] == pytest.approx(np.diagonal(products, 1).mean(), rel=SUMMED)
    assert (
        "no law of distance" in told(app)
        and "Position 0 is left out" in told(app)
        and plots(app)[1]["data"][0]["x0"] == 1
    )
    assert "rotation law does not apply to minilm" in told(turned_to(app, "Shift"))
    turned_to(app, "Sentence")
    assert (
        "with no factor √d" in told(app)
        and "LayerNorm then follows" in told(app)
        and "stands a LayerNorm" in told(app)
    )
    assert "permutation-equivariant" in told(turned_to(app, "Order"))
    assert "of 384 directions hold" in told(turned_to(app, "Adding")) and "was learned" in told(app)


@pytest.mark.slow
def test_a_model_without_positions_has_none_and_says_so() -> None:
    app = opened(model="reverse-no-positions", text="b a c d", ask="Waves")
    for screen in SCREENS:
        turned_to(app, screen)
        assert "adds nothing for positions" in told(app)
    turned_to(app, "Order")
    assert app.metric[0].value == app.metric[1].value
    table = next(each for each in app.segmented_control if each.label == "Table")
    clean(table.set_value("Sites").run())
    assert {"site"} < set(app.dataframe[-1].value.columns)


@pytest.mark.slow
def test_every_screen_of_a_small_gpt2(gpt2_on_pages: Handle) -> None:
    app = opened(model="grammar", text="the cat sat on the mat", ask="Waves")
    np.testing.assert_allclose(
        array(plots(app)[0]["data"][0]["z"]),
        gpt2_on_pages.model.embedding.position.detach().numpy(),
        rtol=STORED,
    )
    for screen in SCREENS:
        turned_to(app, screen)
    assert "reads it through a LayerNorm" in told(turned_to(app, "Sentence"))


@pytest.mark.slow
def test_another_order_that_is_cut_says_so_and_the_first_one_offered_is_of_what_was_read() -> None:
    app = opened(text="all work and no play " * 300, ask="Order", order="Retype")
    read = orders.read_part(library.record(read_once("encoder"), "all work and no play " * 300))
    assert 400 < len(read.split()) < 513
    assert any(text.split() == read.split()[::-1] for text in offered_orders())
    app.text_input(key="retyped").set_value("play " * 900).run()
    assert any(
        "The other order is 90" in each.value and "encoder reads 512" in each.value
        for each in clean(app).warning
    )


def offered_orders() -> list[str]:
    """The texts that were recorded of late."""
    return [key[3] for key in shelf._shelf.held if key[0] == "recording"]


@pytest.mark.slow
def test_the_numbers_of_the_experiment_are_the_models() -> None:
    app = opened(text="Ram pushed Hari", ask="Order", order="Retype")
    handle, bare = read_once("encoder"), (WithoutPositions(),)
    (one, two), (one_bare, two_bare) = (
        [
            library.record(handle, text, edits).streams[0]
            for text in ("Ram pushed Hari", "Hari pushed Ram")
        ]
        for edits in ((), bare)
    )
    order = [two.tokens.index(token) for token in one.tokens]
    last = one.sites[-1]
    gaps = [
        np.abs(a.at(last) - b.at(last)[order]).max() for a, b in ((one, two), (one_bare, two_bare))
    ]
    traces = plots(app)[0]["data"]
    assert array(traces[0]["y"])[-1] == pytest.approx(gaps[0], rel=STORED) and array(
        traces[1]["y"]
    )[-1] == pytest.approx(gaps[1], rel=STORED)
    assert gaps[1] < PASSED < gaps[0] and "permutation-equivariant" in told(app)
    assert app.metric[0].value.split()[0] in "567" and app.metric[1].value in (
        "no digit",
        "1 digit",
    )
    assert "Herbivores" in told(
        opened(
            text="Herbivores eat plants",
            ask="Order",
            order="Retype",
            retyped="Plants eat herbivores",
        )
    )


@pytest.mark.slow
def test_a_slider_runs_no_forward_pass_and_stands_in_the_address() -> None:
    app = opened(ask="Shift", width="64", places="32", pair="9")
    before = {key for key in shelf._shelf.held if key[0] == "recording"}
    for key, value in (
        ("pair slider", 31),
        ("shift slider", 7),
        ("width slider", 128),
        ("places slider", 512),
    ):
        clean(app.slider(key=key).set_value(value).run())
    assert {key for key in shelf._shelf.held if key[0] == "recording"} == before
    asked = {
        name: value[0] if isinstance(value, list) else value
        for name, value in app.query_params.items()
    }
    assert asked == {"ask": "Shift", "width": "128", "places": "512", "pair": "31", "shift": "7"}
    assert plots(opened(**asked)) == plots(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"width": "7", "places": "1", "pair": "9999"},
        {"width": "4000", "places": "<b>"},
        {"ask": "?", "order": "x"},
        {"ask": "Order", "shuffle": "-1", "layer": "99", "head": "2"},
        {"width": "2", "places": "2", "ask": "Shift", "shift": "300"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    assert plots(opened(**asked))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "places"), [("1024", "512"), ("2", "2")])
def test_the_largest_and_the_smallest_table(width: str, places: str) -> None:
    app = opened(width=width, places=places)
    for screen in ("Waves", "Distance", "Shift"):
        assert plots(turned_to(app, screen))


@pytest.mark.slow
def test_another_text_forgets_the_order_typed_for_the_last() -> None:
    app = opened(text="Ram pushed Hari", ask="Order", order="Retype", retyped="Hari Ram pushed")
    app.session_state["examples"] = True
    app.run().pills(key="preset").set_value("Pizza").run()
    assert "pizza \\. eat" in told(clean(app)) and app.text_input(key="retyped").value == ""


# ---- a journey ---------------------------------------------------------------


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def browser(test):
    for mark in MARKS:
        test = mark(test)
    return test


@browser
def test_from_a_sentence_to_the_experiment_by_keyboard_and_link(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(
        f"{visitor.server}/positions?{urlencode({'text': 'Ram pushed Hari'})}", wait_until="commit"
    )
    page.locator(".js-plotly-plot .hm, .js-plotly-plot .heatmaplayer image").first.wait_for(
        state="attached"
    )
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = [error for error in visitor.errors if "404" not in error]
    at_rest(visitor)
    page.get_by_role("slider", name="Pair of dimensions").press("ArrowRight")
    page.wait_for_url("**pair=22**")
    page.get_by_text("Pair i = 22").wait_for()
    at_rest(visitor)
    page.get_by_role("radio", name="Order", exact=True).click()
    page.wait_for_url("**ask=Order**")
    at_rest(visitor)
    page.get_by_role("radio", name="Retype").click()
    page.wait_for_url("**order=Retype**")
    page.get_by_text("permutation-equivariant").wait_for()
    at_rest(visitor)
    field = page.get_by_label("The same words in another order")
    field.fill("Hari Ram pushed <b>")
    page.wait_for_url("**retyped=Hari**")
    page.get_by_text("do not hold the same tokens").wait_for()
    assert page.locator(".js-plotly-plot b").count() == 0
    again = page.url
    page.goto(again, wait_until="commit")
    page.get_by_text("do not hold the same tokens").wait_for()
    visitor.until(
        "() => document.querySelector('input[aria-label=\"The same words in another "
        "order\"]')?.value === 'Hari Ram pushed <b>'"
    )
    visitor.errors[:] = [error for error in visitor.errors if "404" not in error]
    page.get_by_text("Every number as a table").click()
    page.locator("[data-testid=stExpanderDetails] [data-testid=stDataFrame]").wait_for()
    at_rest(visitor)
    text = visitor.export("Words as CSV").read_text("utf-8")
    assert text.startswith("token,place,") and "Ram" in text and "two orders" in text
