"""Comparison of two recordings: alignment, distances and spaces obey their laws, and the page shows
what was measured."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import numpy as np
import pytest
from bounds import CODED, CODED_SIGNED, DOUBLE, DOUBLE_LONG, STORED, SUMMED, TOTAL
from conftest import HOSTILE, on_page, read_once
from streamlit.testing.v1 import AppTest

from explorer.analysis import alignment, spaces
from explorer.analysis import compare as numbers
from explorer.analysis import nearest as pairs
from explorer.analysis.csv import to_csv
from explorer.components import compare as pictures
from explorer.components import wire
from explorer.sentences import compare as sentences
from models import library
from models.edits import HideToken, WithoutPositions
from models.own import Handle, record
from models.recording import Recording

ROOT = Path(__file__).resolve().parent.parent
TEXT = "The cat  didn't see 💛 unbelievably the old café."
PAIRS = [
    ("encoder", "decoder"),
    ("encoder", "translator"),
    ("translator", "decoder"),
    ("induction", "encoder"),
]


def recorded(name: str, text: str = TEXT, edits: tuple = ()) -> Recording:
    return library.record(read_once(name), text, edits)


def sides(a: Recording, b: Recording) -> numbers.Sides:
    one, other = a.attention[0], b.attention[0]
    rows, columns = zip(alignment.axes(a, one), alignment.axes(b, other))
    return numbers.sides((a, one), (b, other), alignment.align(*rows), alignment.align(*columns))


# ---- alignment ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("text", [TEXT, *HOSTILE.values()], ids=["mixed", *HOSTILE])
@pytest.mark.parametrize("names", PAIRS, ids="/".join)
def test_units_partition_tokens_and_cover_the_same_characters(
    names: tuple[str, str], text: str
) -> None:
    a, b = (recorded(name, text) for name in names)
    one, other = (alignment.axis(each, each.streams[0].name) for each in (a, b))
    found = alignment.align(one, other)
    for side, axis, outside in (("a", one, found.outside_a), ("b", other, found.outside_b)):
        places = [at for unit in found.units for at in getattr(unit, side)] + list(outside)
        assert sorted(places) == list(range(len(axis.labels))), (
            "each token is in one unit or outside, once"
        )
    assert found.rule == alignment.CHARACTERS
    for unit in found.units:
        if not unit.special:
            ours, theirs = (
                {
                    at
                    for place in places
                    for at in range(*axis.spans[place])
                    if not text[at].isspace()
                }
                for places, axis in ((unit.a, one), (unit.b, other))
            )
            assert ours == theirs
    same = alignment.align(one, one)
    assert not same.outside_a and not same.outside_b


def test_a_unit_is_the_smallest_group_that_ends_at_the_same_characters() -> None:
    text = "abcdef gh"
    a = alignment.Axis(
        text,
        ("[CLS]", "ab", "cd", "ef", "gh", "[SEP]"),
        np.array([[-1, -1], [0, 2], [2, 4], [4, 6], [7, 9], [-1, -1]]),
    )
    b = alignment.Axis(
        text,
        ("[BOS]", "a", "bcd", "ef", " gh"),
        np.array([[-1, -1], [0, 1], [1, 4], [4, 6], [6, 9]]),
    )
    found = alignment.align(a, b)
    assert [(unit.label, unit.a, unit.b) for unit in found.units] == [
        ("[CLS] / [BOS]", (0,), (0,)),
        ("abcd", (1, 2), (1, 2)),
        ("ef", (3,), (3,)),
        ("gh", (4,), (4,)),
    ]
    assert found.outside_a == (5,) and found.outside_b == ()


def test_other_texts_are_aligned_by_words_they_share_in_order() -> None:
    a, b = recorded("encoder", "The red car is fast."), recorded("encoder", "the blue car is old!")
    one, other = alignment.axis(a, "encoder"), alignment.axis(b, "encoder")
    found = alignment.align(one, other)
    assert found.rule == alignment.WORDS
    assert [unit.label.casefold() for unit in found.units if not unit.special] == [
        "the",
        "car",
        "is",
    ]
    assert alignment.own_words(a.text, b.text) == ("red fast .", "blue old !")
    assert {one.labels[at] for at in found.outside_a} == {"red", "fast", "."} and "blue" in {
        other.labels[at] for at in found.outside_b
    }


def test_a_token_with_characters_of_its_own_breaks_its_unit() -> None:
    a = alignment.Axis("ab c", ("a", "b", "c"), np.array([[0, 1], [1, 2], [3, 4]]))
    b = alignment.Axis("ab d", ("ab d",), np.array([[0, 4]]))
    assert not alignment.align(a, b).units and alignment.align(a, b).outside_a == (0, 1, 2)


def test_texts_without_a_common_word_are_refused_in_words() -> None:
    a, b = recorded("encoder", "Ram pushed Hari"), recorded("encoder", "plants eat")
    axes = [alignment.axes(each, each.attention[0]) for each in (a, b)]
    assert "no word in common" in sentences.refusal(
        *(alignment.align(*pair) for pair in zip(*axes))
    )


@pytest.mark.parametrize("names", PAIRS, ids="/".join)
def test_rows_and_what_is_outside_sum_to_one_and_a_cell_is_the_sum_by_hand(
    names: tuple[str, str],
) -> None:
    a, b = (recorded(name) for name in names)
    found = sides(a, b)
    for matrix in (found.a, found.b):
        np.testing.assert_allclose(matrix.sum(axis=-1), 1, atol=SUMMED)
    pattern = b.attention[0].pattern
    for r, row in enumerate(found.rows.units):
        for c, column in enumerate(found.columns.units):
            by_hand = pattern[1 % len(pattern), 2][np.ix_(row.b, column.b)].sum(axis=1).mean()
            assert found.b[1 % len(pattern), 2, r, c] == pytest.approx(by_hand, abs=STORED)
    by_hand = (
        pattern[0, 0][list(found.rows.units[0].b)][:, list(found.columns.outside_b)]
        .sum(axis=1)
        .mean()
        if found.columns.outside_b
        else 0
    )
    assert found.b[0, 0, 0, -1] == pytest.approx(by_hand, abs=STORED)


def test_rows_between_two_texts_stand_for_what_they_produce(small_translator: Handle) -> None:
    made = record(small_translator, "the cat sat", target="the dog ran")
    rows, columns = alignment.axes(made, made.attention[2])
    stream = made.stream("decoder")
    assert (
        rows.labels[0] == f"→ {stream.tokens[1]}"
        and rows.spans[0].tolist() == stream.spans[1].tolist()
    )
    assert columns.labels == made.stream("encoder").tokens


# ---- distances ---------------------------------------------------------------


def test_the_distance_is_a_metric_from_0_to_1() -> None:
    rng = np.random.default_rng(3)
    p, q, r = rng.dirichlet(np.full(6, 0.3), size=(3, 400))
    pq, qr, pr = (numbers.row_distances(*pair) for pair in ((p, q), (q, r), (p, r)))
    np.testing.assert_allclose(pq, numbers.row_distances(q, p), atol=DOUBLE)
    assert (numbers.row_distances(p, p) == 0).all() and (pq > 0).all()
    assert (pr <= pq + qr + 1e-9).all() and max(pq.max(), qr.max()) <= 1
    assert numbers.row_distances(np.array([1.0, 0]), np.array([0, 1.0])) == pytest.approx(1)
    # H(1/2, 1/2) - (H(1, 0) + H(1/2, 1/2)) / 2 with the mean (3/4, 1/4)
    by_hand = np.sqrt(-(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)) - 0.5)
    assert numbers.row_distances(np.array([1.0, 0]), np.array([0.5, 0.5])) == pytest.approx(by_hand)


@pytest.mark.parametrize("name", ["encoder", "decoder", "translator"])
def test_a_recording_beside_itself_differs_nowhere(name: str) -> None:
    made = recorded(name)
    found = sides(made, recorded(name))
    assert (found.a == found.b).all() and (numbers.paired(found) == 0).all()
    near = pairs.nearest(pairs.distances(found))
    assert all(one.nearest == one.head and one.distance == 0 and one.mutual for one in near)
    assert sentences.sentence(found, numbers.paired(found), near).startswith("No head differs")


def test_all_pairs_agree_with_single_pairs_and_follow_a_permutation() -> None:
    a, b = recorded("encoder"), recorded("decoder")
    found = sides(a, b)
    all_values = pairs.distances(found)
    for head, other in (((0, 0), (0, 0)), ((3, 7), (2, 5)), ((1, 2), (3, 0))):
        at = numbers.head_number(head, found.a.shape), numbers.head_number(other, found.b.shape)
        assert all_values.values[at] == pytest.approx(
            numbers.pair_distance(found, head, other), abs=TOTAL
        )
    before = pairs.nearest(all_values)
    order = np.random.default_rng(0).permutation(found.b.shape[1])
    moved = numbers.Sides(found.rows, found.columns, found.a, found.b[:, order], found.free)
    for one, now in zip(before, pairs.nearest(pairs.distances(moved))):
        assert (
            now.nearest[0],
            order[now.nearest[1]],
        ) == one.nearest and now.distance == pytest.approx(one.distance)
        assert now.median == pytest.approx(one.median)


def test_beyond_a_bound_evenly_spaced_rows_stand_for_all() -> None:
    found = sides(recorded("encoder", TEXT * 4), recorded("decoder", TEXT * 4))
    few = pairs.distances(found, most=1)
    assert few.n_rows == pairs.FEWEST_ROWS < few.all_rows == len(found.rows.units)
    assert np.abs(few.values - pairs.distances(found).values).mean() < 0.2


def test_a_row_with_no_choice_on_either_side_is_not_counted(small_decoder: Handle) -> None:
    made = record(small_decoder, "the cat sat")
    found = sides(made, made)
    assert found.free.tolist() == [False] + [True] * (len(found.rows.units) - 1)
    assert "1 row with a single key" in sentences.free_told(found)


def test_the_told_change_is_in_the_matrices() -> None:
    found = sides(recorded("encoder"), recorded("encoder", edits=(WithoutPositions(),)))
    head = numbers.most_changed(numbers.paired(found))[0]
    told = numbers.change(found, head, head)
    at = int(numbers.row_distances(*found.heads(head, head)).argmax())
    moved = found.b[head][at] - found.a[head][at]
    assert told.row == found.rows.labels[at]
    assert told.lost_to - told.lost_from == pytest.approx(
        moved[:-1].min()
    ) and told.gained_to - told.gained_from == pytest.approx(moved[:-1].max())


# ---- spaces ------------------------------------------------------------------


def test_cka_is_1_up_to_rotation_and_scale_0_where_nothing_is_shared_and_symmetric() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((40, 6)), rng.standard_normal((40, 9))
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    assert spaces.cka(x, 3 * x @ turn + 5) == pytest.approx(1)
    assert spaces.cka(x, y) == pytest.approx(spaces.cka(y, x))
    one, other = x - x.mean(0), y - y.mean(0)
    by_hand = np.linalg.norm(other.T @ one) ** 2 / (
        np.linalg.norm(one.T @ one) * np.linalg.norm(other.T @ other)
    )
    assert spaces.cka(x, y) == pytest.approx(by_hand)
    assert spaces.cka(np.eye(4)[:, :1], np.eye(4)[:, 1:2] * 0) == 0


def test_spaces_of_unlike_models_on_common_tokens() -> None:
    a, b = recorded("encoder"), recorded("decoder")
    found = spaces.spaces(
        a.streams[0],
        b.streams[0],
        alignment.align(alignment.axis(a, "encoder"), alignment.axis(b, "decoder")),
    )
    assert found.a.shape[1] == found.b.shape[1] == len(found.labels) and not {
        "[CLS]",
        "[SEP]",
        "[BOS]",
    } & set(found.labels)
    assert spaces.depth(len(found.sites_a))[[0, -1]].tolist() == [0, 1]
    like = spaces.likeness(found)
    assert like.values[2, 3] == pytest.approx(spaces.cka(found.a[2], found.b[3]))
    assert like.values.mean() > like.chance.mean()
    same = spaces.Spaces(found.labels, found.sites_a, found.sites_a, found.a, found.a)
    np.testing.assert_allclose(np.diag(spaces.likeness(same).values), 1, atol=DOUBLE_LONG)
    one, other = spaces.planes(same, common=True)
    np.testing.assert_array_equal(one.points, other.points)
    with pytest.raises(ValueError, match="too few"):
        spaces.likeness(
            spaces.Spaces(
                found.labels[:2], found.sites_a, found.sites_b, found.a[:, :2], found.b[:, :2]
            )
        )


# ---- what is sent ------------------------------------------------------------


def test_grids_carry_both_sides_and_the_signed_difference() -> None:
    found = sides(recorded("encoder"), recorded("encoder", edits=(WithoutPositions(),)))
    a, b = found.weights()
    header, blocks = wire.decode(
        pictures.grids(
            pictures.Grids(
                a, b, found.rows.labels, found.column_labels, ("A", "B"), numbers.paired(found)
            ),
            False,
            "t",
        )
    )
    assert header["fold"] == 1 and [panel["key"] for panel in header["panels"]] == [
        "a",
        "b",
        "change",
    ]
    np.testing.assert_allclose((blocks["b"].reshape(b.shape) / 255) ** 2, b, atol=CODED)
    share = (blocks["change"].reshape(a.shape).astype(float) - 128) / 127
    np.testing.assert_allclose(
        np.sign(share) * share**2 * header["panels"][2]["top"], b - a, atol=CODED_SIGNED
    )


def test_large_grids_are_folded_to_the_largest_either_way() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(130), size=(2, 12, 12, 130)).astype(np.float32)
    data = pictures.grids(
        pictures.Grids(a, b, ["r"] * 130, ["c"] * 130, ("A", "B"), np.zeros((12, 12))), False, "t"
    )
    header, blocks = wire.decode(data)
    fold, n = header["fold"], header["n_row"]
    assert fold > 1 and n == -(-130 // fold) and len(data) < 1_700_000
    share = (blocks["change"].reshape(12, 12, n, n)[1, 2, 0, 0] - 128.0) / 127
    block = (b - a)[1, 2, :fold, :fold].ravel()
    assert np.sign(share) * share**2 * header["panels"][2]["top"] == pytest.approx(
        block[np.abs(block).argmax()], abs=CODED_SIGNED
    )


def test_a_file_reads_back() -> None:
    found = sides(recorded("encoder"), recorded("decoder"))
    made = to_csv(numbers.pair_columns(found, (0, 1), (1, 0)), ("A, and B", "text"))
    rows = list(csv.DictReader(io.StringIO(made)))
    assert rows[0]["about"] == "A, and B | text"
    assert len(rows) == len(found.rows.units) * len(found.column_labels)
    assert all(
        float(row["B - A"]) == pytest.approx(float(row["B"]) - float(row["A"]), abs=STORED)
        for row in rows
    )
    everything = pairs.distance_columns(pairs.distances(found))
    assert len(everything) == 1 + found.b.shape[0] * found.b.shape[1]


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=90)
    for name, value in asked.items():
        app.query_params[name] = value
    return app.switch_page(str(ROOT / "pages" / "compare.py")).run()


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, app.exception or app.error
    return app


def sent(app: AppTest, component: str, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    decoded = [
        wire.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == f"headlight.{component}"
    ]
    return next(each for each in decoded if each[0]["kind"] == kind)


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_compared(text: str) -> None:
    app = clean(opened(text=text))
    header, blocks = sent(app, "compare", "grids")
    found = sides(recorded("encoder", text), recorded("encoder", text, (WithoutPositions(),)))
    np.testing.assert_allclose(blocks["distance"], numbers.paired(found).ravel(), atol=SUMMED)
    assert header["rows"] == list(found.rows.labels)
    clean(opened(text=text, other_what="Model", other_model="decoder", other_view="Vectors"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "other", [HOSTILE["bold"], HOSTILE["right to left"], HOSTILE["latex"], HOSTILE["emoji"]]
)
def test_any_second_text_is_compared_or_refused_in_words(other: str) -> None:
    app = clean(
        opened(text="b the cat", other_what="Sentence", other_text=other, other_view="Nearest")
    )
    if not app.info:
        sent(app, "matrix", "panels")
    clean(opened(text="x", other_what="Sentence", other_text=other, other_view="Vectors"))


@pytest.mark.slow
@pytest.mark.parametrize("view", ["Heads", "Nearest", "Vectors"])
@pytest.mark.parametrize(
    "asked",
    [
        {"model": "decoder", "other_what": "Model", "other_model": "translator"},
        {
            "model": "translator",
            "other_edits": "WithoutScale",
            "other_of": "cross",
            "text": "The cat sleeps.",
        },
        {"model": "induction", "other_what": "Model", "text": "a b c a b"},
    ],
    ids=["two shapes", "cross", "checkpoint"],
)
def test_every_view_opens(view: str, asked: dict[str, str]) -> None:
    app = clean(opened(other_view=view, **asked))
    if view == "Vectors":
        assert len(app.get("plotly_chart")) == 3
        assert all(
            "Headlight" in json.loads(chart.proto.spec)["layout"]["title"]["subtitle"]["text"]
            for chart in app.get("plotly_chart")
        )
    else:
        sent(app, "compare", "pair")


@pytest.mark.slow
@pytest.mark.skipif(
    library.MINILM not in library.names(), reason="the package with MiniLM is not installed"
)
def test_a_pretrained_model_in_its_own_code_and_in_ours_do_the_same() -> None:
    app = clean(
        opened(
            model="minilm",
            text="Ram pushed Hari",
            other_what="Model",
            other_model=f"{library.IN_ITS_OWN_CODE}{library.MINILM}",
        )
    )
    assert sent(app, "compare", "grids")[1]["distance"].max() < 0.01
    clean(
        opened(
            model="minilm",
            other_what="Model",
            other_model=f"{library.IN_ITS_OWN_CODE}{library.MINILM}",
            other_view="Vectors",
        )
    )


@pytest.mark.slow
def test_the_sentence_on_top_and_a_link_s_pair_are_what_was_measured() -> None:
    app = clean(opened(text="Ram pushed Hari", other_pair="1.3"))
    found = sides(
        recorded("encoder", "Ram pushed Hari"),
        recorded("encoder", "Ram pushed Hari", (WithoutPositions(),)),
    )
    paired = numbers.paired(found)
    most = numbers.most_changed(paired)[0]
    assert any(
        f"{numbers.name(most)} differs most" in told.value
        and f"{paired[most]:.2f}".replace(".", "\\.") in told.value
        for told in app.subheader
    )
    pair, _ = sent(app, "compare", "pair")
    assert pair["a"] == pair["b"] == [1, 3] and f"{paired[1, 3]:.2f}" in pair["title"]
    header, blocks = sent(app, "matrix", "panels")
    n = len(header["columns"])
    np.testing.assert_allclose(
        blocks["v2"].reshape(-1, n),
        found.heads((1, 3), (1, 3))[1] - found.heads((1, 3), (1, 3))[0],
        atol=STORED,
    )
    assert (
        "no positions" in " ".join(header["caption"])
        and header["panels"][2]["low"] == -header["panels"][2]["high"]
    )


@pytest.mark.slow
def test_choosing_a_head_sends_no_grid_again_and_swapping_turns_signs() -> None:
    app = clean(opened(text="Ram pushed Hari", other_pair="1.3"))

    def grids() -> bytes:
        return next(
            e.proto.bytes
            for e in on_page(app)
            if e.proto.component_name == "headlight.compare"
            and wire.decode(e.proto.bytes)[0]["kind"] == "grids"
        )

    before, matrices = grids(), sent(app, "matrix", "panels")[1]["v2"]
    app.session_state["other_pair"] = "2.5"
    clean(app.run())
    assert grids() == before and sent(app, "compare", "pair")[0]["a"] == [2, 5]
    app.session_state["other_pair"], app.session_state["other_swap"] = "1.3", "1"
    clean(app.run())
    np.testing.assert_allclose(sent(app, "matrix", "panels")[1]["v2"], -matrices, atol=STORED)


@pytest.mark.slow
def test_a_link_with_nonsense_is_refused_and_an_edit_that_cannot_be_is_told() -> None:
    clean(
        opened(
            other_what="<b>",
            other_pair="99.99.1",
            other_view="?",
            other_model="no",
            other_of="x",
            other_to="y",
            other_word="-1",
            other_swap="2",
        )
    )
    app = opened(other_edits="NoSuchEdit:1")
    assert not app.exception and any("NoSuchEdit" in each.value for each in app.error)
    app = clean(opened(other_edits="NoSuchEdit:1, ZeroHead:77:0:self, WithoutScale"))
    (told,) = app.warning
    assert (
        "NoSuchEdit" in told.value
        and "77" in told.value
        and any("differs most" in each.value for each in app.subheader)
    )
    app = opened(other_edits="ZeroHead:77:0:self")
    assert not app.exception and app.error


@pytest.mark.slow
def test_a_head_of_b_is_chosen_from_a_list_and_its_own_attention_is_shown() -> None:
    app = opened(model="translator", text="The cat sleeps.")
    app.selectbox(key="head of B").set_value((0, 1, "cross")).run()
    assert (
        clean(app).session_state["other_edits"] == "ZeroHead:0:1:cross"
        and app.session_state["other_to"] == "cross"
    )
    app.segmented_control(key="done to it").set_value("even").run()
    assert clean(app).session_state["other_edits"] == "UniformHead:0:1:cross"
    assert any("L0 H1 differs most" in each.value for each in app.subheader)
    app.pills(key="comparison").set_value("No FFN").run()
    assert clean(app).selectbox(key="head of B").value is None
    app.selectbox(key="head of B").set_value((1, 0, "decoder self")).run()
    assert any("still looks where it looked" in each.value for each in clean(app).caption), (
        "of the last layer: nothing above it"
    )
    app.selectbox(key="head of B").set_value(None).run()
    assert clean(app).pills(key="comparison").value == "No positions"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "translator", "induction"])
def test_every_example_opens(model: str) -> None:
    app = clean(opened(model=model))
    for name in app.pills(key="comparison").options:
        clean(app.pills(key="comparison").set_value(name).run())
        assert (
            any("differ" in told.value or "farthest" in told.value for told in app.subheader)
            or app.info
        ), name


@pytest.mark.slow
def test_both_models_answer_one_prompt_and_one_without_words_says_so() -> None:
    text = "The cat sat on the mat."
    app = clean(opened(text=text, other_what="Model", other_model="decoder", other_view="Answers"))
    encoder, decoder = read_once("encoder"), read_once("decoder")
    place = list(recorded("encoder", text).streams[0].tokens).index("mat")
    there = list(recorded("decoder", text).streams[0].tokens).index("mat")
    logits = (
        library.logits(encoder, recorded("encoder", text, (HideToken(place),)), "encoder", place),
        # What the decoder says in the same place comes after the word before it.
        library.logits(decoder, recorded("decoder", text), "decoder", there - 1),
    )
    shown = [
        wire.decode(e.proto.bytes)[0]
        for e in on_page(app)
        if e.proto.component_name == "headlight.bars"
    ]
    said = " ".join(each.value for each in app.markdown)
    for header, scores, handle in zip(shown, logits, (encoder, decoder)):
        p = np.exp(scores - scores.max(), dtype=np.float64)
        p /= p.sum()
        best = np.argsort(-p)[:10]
        np.testing.assert_allclose([row["value"] for row in header["rows"]], p[best], rtol=SUMMED)
        assert header["rows"][0]["label"] == library.labels(handle, [int(best[0])])[0]
        assert f"{p[best[0]]:.3f}" in said
    assert "hidden “mat”" in said and "after “the”" in said
    if "minilm" in library.names():
        app = clean(opened(text=text, other_what="Model", other_model="minilm"))
        assert "minilm gives a vector for each token and says no words" in " ".join(
            each.value.lower() for each in app.markdown
        )


@pytest.mark.slow
@pytest.mark.parametrize("view", ["Heads", "Answers", "Nearest", "Vectors"])
def test_no_view_of_a_long_text_sends_more_than_a_megabyte_and_a_half(view: str) -> None:
    words = "The cat sat on the mat while the old dog slept by the door. " * 60
    app = clean(opened(text=words, other_view=view))
    assert len(recorded("encoder", words).streams[0].tokens) == 512
    sent_ = [
        each.proto.ByteSize()
        for kind in ("bidi_component", "plotly_chart", "arrow_data_frame", "markdown")
        for each in app.get(kind)
    ]
    assert 5_000 < sum(sent_) < 1_500_000


# ---- a journey ---------------------------------------------------------------


def browser_test(test):
    for mark in driver.MARKS:
        test = mark(test)
    return test


@browser_test
def test_a_reader_opens_heads_by_mouse_and_keys_and_finds_the_nearest(
    visitor: driver.Visitor,
) -> None:
    page = visitor.page
    page.goto(
        f"{visitor.server}/compare?{urlencode({'text': 'Ram pushed Hari', 'other_pair': '0.0'})}"
    )
    page.wait_for_selector("canvas[data-painted]")
    page.get_by_role("heading", name="L0 H0 of both sides").wait_for()
    cells = page.locator(".board").nth(1).locator(".cell")
    cells.nth(10).click()
    page.wait_for_url("**other_pair=1.2**")
    page.get_by_role("heading", name="L1 H2 of both sides").wait_for()
    assert page.locator(".cell[aria-pressed=true]").count() == 3
    cells.nth(10).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**other_pair=2.2**")
    page.get_by_role("radio", name="Nearest heads").click()
    page.get_by_role("heading", name="A’s L2 H2 beside B’s").or_(
        page.get_by_role("heading", name="L2 H2 of both sides")
    ).wait_for()
    assert parse_qs(urlparse(page.url).query)["other_pair"] == ["2.2"]


@pytest.mark.slow
def test_swapped_sides_keep_their_names_and_the_chosen_head_comes_along() -> None:
    app = opened(other_what="Sentence", other_text="the dog sat", layer="1", head="2")
    assert app.session_state["pair shown"].split(".")[:2] == ["1", "2"]
    assert app.text_input(key="other_text").label == "Text of B"
    next(each for each in app.button if each.label == "Swap A and B").click().run()
    assert not app.exception and app.text_input(key="other_text").label == "Text of A"
    assert app.text_input(key="other_text").value == "the dog sat"
