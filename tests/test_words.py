"""Words out of tokens, what is left out of a head's matrix, and both on the Attention page."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
from bounds import PASSED, STORED, SUMMED
from conftest import HOSTILE, read_once
from driver import MARKS, Visitor
from javascript import arrived
from streamlit.testing.v1 import AppTest
from test_attentions import unfolded
from test_pages import clean, opened, sent

from explorer.analysis import attention as numbers
from explorer.analysis import sinks, words
from explorer.analysis.csv import to_csv
from explorer.memory import passes
from models import library
from models.edits import ShuffleTokens
from models.recording import Recording, Stream

WORDS = "The kitchen-maid’s unbelievable idea wasn't naïve."


def split(text: str) -> list[str]:
    """The words of a text by themselves."""
    found: dict[int, str] = {}
    for letter, word in zip(text, words.numbered(text)):
        found[word] = found.get(word, "") + letter
    return [piece for word, piece in sorted(found.items()) if word >= 0]


def stream(text: str, *spans: tuple[int, int], special: tuple[int, ...] = ()) -> Stream:
    n = len(spans)
    is_special = np.isin(np.arange(n), special)
    labels = tuple(
        "[S]" if is_special[at] else text[start:end] or "␣" for at, (start, end) in enumerate(spans)
    )
    return Stream(
        "s",
        labels,
        np.arange(n),
        is_special,
        np.array(spans).reshape(-1, 2),
        ("embed",),
        np.zeros((1, n, 2), np.float32),
    )


# ---- what a word is ----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the cat, well-known.", ["the", "cat", ",", "well", "-", "known", "."]),
        ("don't l’eau rock 'n' roll'", ["don't", "l’eau", "rock", "'", "n", "'", "roll", "'"]),
        ("3.14 1,000. 5, x.y", ["3.14", "1,000", ".", "5", ",", "x", ".", "y"]),
        ("cafe\u0301 naïve Ångström", ["cafe\u0301", "naïve", "Ångström"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया", "।"]),
        ("مرحبا بالعالم שָׁלוֹם עולם", ["مرحبا", "بالعالم", "שָׁלוֹם", "עולם"]),
        ("日本語のテキストです。", ["日", "本", "語", "の", "テキスト", "です", "。"]),
        ("コーヒー らーめん 한국어 인사", ["コーヒー", "らーめん", "한국어", "인사"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("👩‍👩‍👧🏽👍🏿 ❤️🔥 ❤️‍🔥", ["👩‍👩‍👧🏽", "👍🏿", "❤️", "🔥", "❤️‍🔥"]),
        ("🇳🇵🇫🇷🇯", ["🇳🇵", "🇫🇷", "🇯"]),
        ("a\u200bb x\u200cy !!", ["a", "b", "x\u200cy", "!", "!"]),
        (" \n\t", []),
        ("", []),
    ],
)
def test_a_text_falls_into_words_by_the_stated_rule(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_has_a_word_for_every_letter_and_none_for_white_space(text: str) -> None:
    found = words.numbered(text)
    assert len(found) == len(text)
    assert all(
        (word < 0) == (letter.isspace() or letter == "\u200b") for letter, word in zip(text, found)
    )
    seen = [word for word in found if word >= 0]
    assert seen == sorted(seen) and set(seen) == set(range(len(set(seen))))


def test_the_pieces_of_a_character_and_of_a_word_are_one_word() -> None:
    text = "un💛able x"
    groups = words.words(
        stream(
            text, (-1, -1), (0, 2), (2, 3), (2, 3), (2, 3), (3, 7), (8, 9), (-1, -1), special=(0, 7)
        ),
        text,
    )
    assert groups.labels == ("[S]", "un", "💛", "able", "x", "[S]") and groups.starts == (
        0,
        1,
        2,
        5,
        6,
        7,
    )
    assert groups.special == (True, False, False, False, False, True) and groups.sizes.tolist() == [
        1,
        1,
        3,
        1,
        1,
        1,
    ]


def test_a_token_with_parts_of_several_words_makes_them_one_and_one_from_nowhere_is_alone() -> None:
    assert words.words(stream("日本語", (0, 2), (2, 3)), "日本語").labels == ("日本", "語")
    assert words.words(stream("a-b c", (0, 2), (2, 3), (4, 5)), "a-b c").starts == (0, 1, 2)
    assert words.words(stream("a-bc", (0, 1), (1, 3), (3, 4)), "a-bc").starts == (0, 1), (
        "-b holds the sign and a part of bc"
    )
    assert words.words(stream("ab", (-1, -1), (-1, -1), (0, 1), (1, 2)), "ab").starts == (0, 1, 2)


def test_a_space_that_is_a_token_goes_with_what_follows_and_other_white_space_stays() -> None:
    text = "it 💛\n\n  x"
    spans = (0, 2), (2, 3), (3, 4), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)
    assert words.words(stream(text, *spans), text).labels == ("it", "💛", "\n", "\n", " ", "x")


def test_pieces_of_a_word_that_were_shuffled_apart_are_not_put_together() -> None:
    handle = read_once("encoder")
    recording = library.record(
        handle, "an unbelievable unthinkable tokenization", (ShuffleTokens(3),)
    )
    groups = words.words(recording.streams[0], recording.text)
    for first, size in zip(groups.starts, groups.sizes):
        spans = recording.streams[0].spans[first : first + size]
        assert (
            size == 1 or (np.diff(spans[:, 0]) >= 0).all() and (spans[1:, 0] <= spans[:-1, 1]).all()
        )


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_words_of_a_recorded_text_are_the_text_s(text: str) -> None:
    for name in ("encoder", "translator"):
        recording = library.record(read_once(name), text)
        groups = words.words(recording.streams[0], recording.text)
        assert sum(groups.sizes) == groups.n == len(recording.streams[0].tokens)
        plain = "don't I 💛 naïve 日本"
        shown = library.record(read_once(name), plain)
        labels = [
            label
            for label, special in zip(
                *(lambda g: (g.labels, g.special))(words.words(shown.streams[0], plain))
            )
            if not special
        ]
        assert labels == ["don't", "I", "💛", "naïve", "日", "本"]


# ---- laws --------------------------------------------------------------------


@pytest.fixture(scope="module", params=["small_handle", "small_decoder", "small_translator"])
def recording(request: pytest.FixtureRequest) -> Recording:
    target = "the dog 💛 ran, unbelievable" if request.param == "small_translator" else None
    return library.record(
        request.getfixturevalue(request.param),
        "the cat sat, didn't it? 💛 unbelievable mat 日本",
        target=target,
    )


def axes_of(recording: Recording, attention) -> numbers.Axes:
    return numbers.axes(
        recording, attention, *(() if attention.query == attention.key else ("[EOS]",))
    )


def test_rows_still_sum_to_1_between_words_and_no_word_looks_where_it_may_not(
    recording: Recording,
) -> None:
    for attention in recording.attention:
        axes = axes_of(recording, attention)
        grouped = numbers.groups(recording, attention, axes)
        for head in range(attention.pattern.shape[1]):
            shown = numbers.shown(attention.pattern[1, head], attention.allowed, axes, grouped)
            assert (
                shown.matrix.shape
                == (len(grouped[0].starts), len(grouped[1].starts))
                == shown.allowed.shape
            )
            assert shown.matrix.shape[1] < attention.pattern.shape[3], "some tokens came together"
            np.testing.assert_allclose(shown.matrix.sum(axis=1), 1, atol=SUMMED)
            assert not shown.matrix[~shown.allowed].any()


def test_a_cell_between_words_is_the_mean_over_queries_of_the_sum_over_keys(
    recording: Recording,
) -> None:
    for attention in recording.attention:
        axes = axes_of(recording, attention)
        shown = numbers.shown(
            attention.pattern[0, 1],
            attention.allowed,
            axes,
            numbers.groups(recording, attention, axes),
        )
        for (top, bottom), row in zip(shown.row_tokens, shown.matrix):
            for (left, right), weight in zip(shown.key_tokens, row):
                assert weight == pytest.approx(
                    attention.pattern[0, 1, top:bottom, left:right].sum(axis=1).mean(), abs=STORED
                )


@pytest.mark.parametrize("kept", numbers.KEPT[1:])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_shown_and_what_is_hidden_sum_to_1(
    recording: Recording, kept: str, grouped: bool
) -> None:
    for attention in recording.attention:
        axes = axes_of(recording, attention)
        groups = numbers.groups(recording, attention, axes) if grouped else None
        pattern = attention.pattern[2, 0]
        plain = numbers.shown(pattern, attention.allowed, axes, groups, kept)
        if plain.hidden is None:
            continue
        np.testing.assert_allclose(plain.matrix.sum(axis=1) + plain.hidden, 1, atol=SUMMED)
        again = numbers.shown(pattern, attention.allowed, axes, groups, kept, renormalise=True)
        np.testing.assert_array_equal(again.hidden, plain.hidden)
        seen = plain.matrix.sum(axis=1)
        np.testing.assert_allclose(again.matrix.sum(axis=1), np.where(seen > 0, 1, 0), atol=SUMMED)
        np.testing.assert_allclose(again.matrix * seen[:, None], plain.matrix, atol=STORED)
        assert again.renormalised and not plain.renormalised


def test_without_specials_none_is_left_on_either_side(recording: Recording) -> None:
    for attention in recording.attention:
        shown = numbers.shown(
            attention.pattern[0, 0],
            attention.allowed,
            axes_of(recording, attention),
            None,
            "No specials",
        )
        assert not any(shown.axes.special) and not any(
            special for _, special in shown.axes.said or ()
        )
        assert len(shown.axes.keys) == len(shown.axes.special) == shown.matrix.shape[1]


def test_a_sink_is_found_by_its_rule_and_an_even_head_has_none() -> None:
    n, everywhere = 10, np.ones((10, 10), bool)
    planted = np.full((n, n), 0.5 / (n - 1))
    planted[:, 4] = 0.5
    assert sinks.sinks(planted, everywhere).tolist() == [at == 4 for at in range(n)]
    assert (
        not sinks.sinks(np.full((n, n), 1 / n), everywhere).any()
        and not sinks.sinks(np.eye(n), everywhere).any()
    )
    triangle = np.tril(np.ones((n, n), bool))
    assert not sinks.sinks(np.eye(n), triangle).any(), "a row's own token is no sink"
    first = np.zeros((n, n))
    first[:, 0] = 1
    assert sinks.sinks(first, triangle).tolist() == [at == 0 for at in range(n)]
    assert not sinks.sinks(np.ones((1, 1)), np.ones((1, 1), bool)).any()


def test_where_nothing_would_be_left_all_is_shown_and_it_says_so() -> None:
    axes = numbers.Axes(("[CLS]", "[SEP]"), ("[CLS]", "[SEP]"), (True, True))
    shown = numbers.shown(np.full((2, 2), 0.5), np.ones((2, 2), bool), axes, None, "No specials")
    assert shown.nothing_left and shown.hidden is None and shown.matrix.shape == (2, 2)
    with pytest.raises(ValueError, match="there are All"):
        numbers.shown(np.full((2, 2), 0.5), np.ones((2, 2), bool), axes, None, "Some")


def test_rows_between_two_texts_are_the_words_they_produce() -> None:
    handle = read_once("translator")
    recording = library.record(
        handle, "Her idea was unbelievable.", target="Son idée était incroyablement bonne."
    )
    attention = next(each for each in recording.attention if each.name == "cross")
    axes = numbers.axes(recording, attention, "[EOS]")
    rows, _ = numbers.groups(recording, attention, axes)
    assert (
        rows.labels == ("Son", "idée", "était", "incroyablement", "bonne", ".", "[EOS]")
        and rows.special[-1]
    )
    for label, first, size in zip(rows.labels[:-1], rows.starts, rows.sizes):
        spelled = "".join(said.removeprefix("‧") for said, _ in axes.said[first : first + size])
        assert spelled == label


def test_the_file_holds_the_hidden_share_and_the_numbers_that_tokens_had() -> None:
    axes = numbers.Axes(
        ("[CLS]", "a", "b", "[SEP]"), ("[CLS]", "a", "b", "[SEP]"), (True, False, False, True)
    )
    matrix = np.random.default_rng(0).dirichlet(np.ones(4), 4).astype(np.float32)
    shown = numbers.shown(matrix, np.ones((4, 4), bool), axes, None, "No specials")
    lines = list(
        csv.reader(io.StringIO(to_csv(numbers.columns(shown.matrix, shown.axes, shown.hidden))))
    )
    assert lines[0] == ["query \\ key", "hidden", "1 a", "2 b"] and [
        line[0] for line in lines[1:]
    ] == ["1 a", "2 b"]
    np.testing.assert_allclose([sum(map(float, line[1:])) for line in lines[1:]], 1, atol=STORED)
    assert (
        shown.left_out == ("[CLS] (0)", "[SEP] (3)")
        and shown.row_of(2) == 1
        and shown.row_of(0) == shown.row_of(None) == -1
    )
    assert shown.cells([(1, 2), (0, 1), (1, 2)]) == [(0, 1)]


# ---- the page ----------------------------------------------------------------


def drawn(app: AppTest) -> tuple[dict, np.ndarray, np.ndarray | None]:
    """What the head was sent: its header, its weights, its hidden shares."""
    header, blocks = sent(app, "head")
    shape = len(header["queries"]), len(header["keys"])
    values, unknown = arrived(blocks, shape)
    allowed = unfolded(blocks, shape)
    assert not (values * (unknown == 0))[~allowed].any()
    return header, values, blocks.get("hidden")


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_drawn_between_words_and_without_specials(text: str) -> None:
    for asked in ({"model": "encoder"}, {"model": "translator", "attention": "cross"}):
        app = clean(opened(text=text, att_unit="Words", att_keep="No specials", **asked))
        header, values, hidden = drawn(app)
        if len(values) < 100:  # a large matrix travels with what is unknown of it
            np.testing.assert_allclose(
                values.sum(axis=1) + (0 if hidden is None else hidden), 1, atol=PASSED
            )
        assert not any("nan" in told.value.split() for told in app.caption)
        assert (hidden is None) == any("so all" in told.value for told in app.caption)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["Lines", "Table", "Plotly"])
@pytest.mark.parametrize(
    "asked", [{"model": "decoder"}, {"model": "translator", "attention": "cross"}]
)
def test_the_other_views_show_the_same_matrix(view: str, asked: dict) -> None:
    app = clean(
        opened(
            text=WORDS,
            view=view,
            att_unit="Words",
            att_keep="No specials",
            att_sum="Renormalised",
            layer="1",
            head="0",
            **asked,
        )
    )
    header, values, hidden = drawn(app)
    assert hidden is not None
    if view == "Table":
        table = app.dataframe[0].value
        np.testing.assert_allclose(table.iloc[:, 1].to_numpy(float), hidden, atol=STORED)
        np.testing.assert_allclose(table.iloc[:, 2:].to_numpy(float), values, atol=STORED)
    if view == "Plotly":
        axis = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["yaxis"]
        assert len(axis["ticktext"]) == len(values) and axis["ticktext"][0].startswith(
            f"{hidden[0]:.2f}"
        )
    told = " ".join(told.value for told in app.caption).replace("\\", "")
    assert (
        "Rows renormalised over the shown tokens" in told
        and "Words:" in told
        and "measured on all tokens" in told
    )
    assert any("Rows renormalised over the shown tokens" in line for line in header["caption"])


@pytest.mark.slow
def test_the_choices_stand_in_the_address_and_nothing_else_is_taken() -> None:
    app = clean(opened(text=WORDS, layer="0", head="4"))
    tokens = drawn(app)[0]["keys"]
    app = clean(app.segmented_control(key="att_unit").set_value("Words").run())
    assert len(drawn(app)[0]["keys"]) < len(tokens) and "unbelievable" in drawn(app)[0]["keys"]
    app = clean(app.segmented_control(key="att_keep").set_value("No specials").run())
    app = clean(app.toggle(key="att renormalise").set_value(True).run())
    header, values, hidden = drawn(app)
    assert (
        header["keys"]
        == header["queries"]
        == ["The", "kitchen", "-", "maid’s", "unbelievable", "idea", "wasn't", "naïve", "."]
    )
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=PASSED)
    asked = {
        name: value[0] if isinstance(value, list) else value
        for name, value in app.query_params.items()
    }
    assert (asked["att_unit"], asked["att_keep"], asked["att_sum"]) == (
        "Words",
        "No specials",
        "Renormalised",
    )
    again = drawn(clean(opened(**asked)))
    np.testing.assert_array_equal(again[1], values)
    app = clean(app.segmented_control(key="att_keep").set_value("All").run())
    assert "att_sum" not in app.query_params and drawn(app)[2] is None
    assert not {"att_unit", "att_keep"} & set(
        clean(opened(att_unit="<b>", att_keep="x", att_sum="y")).query_params
    )


@pytest.mark.slow
def test_a_chosen_token_is_held_as_the_word_it_is_a_part_of() -> None:
    stream = passes.record("encoder", WORDS).streams[0]
    inside = next(at for at, label in enumerate(stream.tokens) if label.startswith("‧"))
    header, *_ = drawn(clean(opened(text=WORDS, token=str(inside), att_unit="Words")))
    assert (
        "kitchen-maid’s unbelievable".find(header["keys"][header["pin"]]) >= 0
        and stream.tokens[inside].strip("‧") in header["keys"][header["pin"]]
    )
    assert drawn(clean(opened(text=WORDS, token="0", att_keep="No specials")))[0]["pin"] == -1, (
        "what is left out is not held"
    )
    app = clean(opened(text=WORDS, token="2", anatomy_cell="2.1"))
    assert drawn(app)[0]["cell"] == [2, 1] and any(
        "(token 2) →" in told.value and "(token 1)" in told.value for told in app.markdown
    )


# ---- journeys ----------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(
    any(mark.name == "skip" for mark in MARKS), reason="no chromium on this machine"
)
def test_words_without_specials_renormalised_and_the_link_opens_the_same(
    visitor: Visitor, browser, server: str
) -> None:
    visitor.open("?view=Matrix&layer=0&head=4").paste(WORDS)
    page = visitor.page
    page.get_by_role("radio", name="Words", exact=True).or_(
        page.get_by_role("button", name="Words", exact=True)
    ).first.click()
    page.wait_for_url("**att_unit=Words**")
    visitor.drawn()
    assert "unbelievable" in visitor.tokens() and page.locator(".hidden-side").count() == 0
    page.get_by_role("radio", name="No special tokens", exact=True).or_(
        page.get_by_role("button", name="No special tokens", exact=True)
    ).first.click()
    page.wait_for_selector(".hidden-side")
    visitor.drawn()
    shares = page.locator(".hidden-side span").all_inner_texts()
    assert len(shares) == len(visitor.tokens()) and "[CLS]" not in visitor.tokens()
    page.locator("[data-testid=stCheckbox]", has_text="Renormalise").locator("label").click()
    page.wait_for_url("**att_sum=Renormalised**")
    page.wait_for_selector("text=Rows renormalised over the shown tokens")
    visitor.drawn()
    assert page.locator(".hidden-side span").all_inner_texts() == shares, (
        "the hidden share stays stated"
    )
    page.locator(".token", has_text="unbelievable").click()
    page.wait_for_url("**token=**")
    visitor.drawn()
    page.mouse.move(5, 5)
    says = page.locator(".head .says").inner_text()
    assert says.startswith("unbelievable looks at") and "hidden" in says
    other = Visitor(browser, server).open(page.url.removeprefix(server + "/"))
    assert (
        other.page.locator(".head .says").inner_text() == says
        and other.tokens() == visitor.tokens()
    )
    file = visitor.export("Matrix as SVG")
    drawing = file.read_text("utf-8")
    assert (
        "Rows renormalised over the shown tokens" in drawing
        and ">hidden<" in drawing
        and file.name.endswith("words-no-specials-renormalised.svg")
    )
    file = visitor.export(re.compile("^Layer .* as CSV$"))
    rows = list(
        csv.reader(
            line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")
        )
    )
    assert rows[0][1] == "hidden" and [
        f"{float(row[1]):.2f}" for row in rows[1:] if 0.005 <= float(row[1]) < 0.995
    ] == [one for one in shares if one[0] == "0"]
    assert all(sum(map(float, row[2:-1])) == pytest.approx(1, abs=PASSED) for row in rows[1:])
    other.context.close()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(
    any(mark.name == "skip" for mark in MARKS), reason="no chromium on this machine"
)
def test_a_cell_is_chosen_and_taken_apart_on_the_next_page(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=1&head=2").paste("Ram pushed Hari and Hari pushed Ram.")
    page = visitor.page
    n = len(visitor.tokens())
    box = page.locator("canvas.cells").bounding_box()
    page.mouse.click(box["x"] + 1.5 * box["width"] / n, box["y"] + 3.5 * box["height"] / n)
    page.wait_for_url("**anatomy_cell=3.1**")
    visitor.drawn()
    assert (
        page.locator(".area i.opened").is_visible()
        and page.locator(".token[aria-pressed=true]").count() == 1
    )
    page.get_by_role("link", name="Take this weight apart").click()
    page.wait_for_url("**/anatomy**")
    page.wait_for_url("**anatomy_cell=3.1**")
    assert "layer=1" in page.url and "head=2" in page.url and "token=3" in page.url


def test_a_sink_stays_one_when_tokens_become_words() -> None:
    """A sink is found among tokens: with words for them rows are shorter, and what an even row
    gives is more."""
    n = 8
    tokens = tuple(f"t{at}" for at in range(n))
    axes = numbers.Axes(tokens, tokens, (False,) * n)
    matrix = np.full((n, n), 0.6 / (n - 1))
    matrix[:, 3] = 0.4
    everywhere = np.ones((n, n), bool)
    assert sinks.sinks(matrix, everywhere).tolist() == [at == 3 for at in range(n)]
    pairs = words.Groups(n, (0, 2, 3, 4), ("a", "b", "c", "d"), (False,) * 4)
    found = numbers.shown(matrix, everywhere, axes, (pairs, pairs), "No sinks")
    assert found.left_out == ("c (2)",)
    np.testing.assert_allclose(found.matrix.sum(1) + found.hidden, 1, atol=STORED)
