"""Words out of tokens, and what is left out of a head's matrix."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from conftest import HOSTILE, read_once
from tolerances import STORED, SUMMED

from explorer.analysis import attention as attention_analysis
from explorer.analysis import head_naming, word_classes, words
from explorer.analysis.csv import to_csv
from models.edits import ShuffleTokens
from models.recording import Recording, Stream


def split(text: str) -> list[str]:
    """The words of a text by themselves."""
    found: dict[int, str] = {}
    for letter, word in zip(text, words.word_numbers(text)):
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
    found = words.word_numbers(text)
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
    recording = handle.record("an unbelievable unthinkable tokenization", (ShuffleTokens(3),))
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
        recording = read_once(name).record(text)
        groups = words.words(recording.streams[0], recording.text)
        assert sum(groups.sizes) == groups.n == len(recording.streams[0].tokens)
        plain = "don't I 💛 naïve 日本"
        shown = read_once(name).record(plain)
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
    return request.getfixturevalue(request.param).record(
        "the cat sat, didn't it? 💛 unbelievable mat 日本",
        target=target,
    )


def axes_of(recording: Recording, attention) -> attention_analysis.Axes:
    return attention_analysis.axes(
        recording, attention, *(() if attention.query == attention.key else ("[EOS]",))
    )


def test_rows_still_sum_to_1_between_words_and_no_word_looks_where_it_may_not(
    recording: Recording,
) -> None:
    for attention in recording.attention:
        axes = axes_of(recording, attention)
        grouped = attention_analysis.groups(recording, attention, axes)
        for head in range(attention.pattern.shape[1]):
            shown = attention_analysis.matrix_view(
                attention.pattern[1, head], attention.allowed, axes, grouped
            )
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
        shown = attention_analysis.matrix_view(
            attention.pattern[0, 1],
            attention.allowed,
            axes,
            attention_analysis.groups(recording, attention, axes),
        )
        for (top, bottom), row in zip(shown.row_tokens, shown.matrix):
            for (left, right), weight in zip(shown.key_tokens, row):
                assert weight == pytest.approx(
                    attention.pattern[0, 1, top:bottom, left:right].sum(axis=1).mean(), abs=STORED
                )
        of_all = words.weights_between(
            attention.pattern, *attention_analysis.groups(recording, attention, axes)
        )
        np.testing.assert_allclose(of_all[0, 1], shown.matrix, atol=STORED)


@pytest.mark.parametrize("kept", attention_analysis.TOKEN_FILTERS[1:])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_shown_and_what_is_hidden_sum_to_1(
    recording: Recording, kept: str, grouped: bool
) -> None:
    for attention in recording.attention:
        axes = axes_of(recording, attention)
        groups = attention_analysis.groups(recording, attention, axes) if grouped else None
        pattern = attention.pattern[2, 0]
        plain = attention_analysis.matrix_view(pattern, attention.allowed, axes, groups, kept)
        if plain.hidden is None:
            continue
        np.testing.assert_allclose(plain.matrix.sum(axis=1) + plain.hidden, 1, atol=SUMMED)
        again = attention_analysis.matrix_view(
            pattern, attention.allowed, axes, groups, kept, renormalise=True
        )
        np.testing.assert_array_equal(again.hidden, plain.hidden)
        seen = plain.matrix.sum(axis=1)
        np.testing.assert_allclose(again.matrix.sum(axis=1), np.where(seen > 0, 1, 0), atol=SUMMED)
        np.testing.assert_allclose(again.matrix * seen[:, None], plain.matrix, atol=STORED)
        assert again.renormalised and not plain.renormalised


def test_without_specials_none_is_left_on_either_side(recording: Recording) -> None:
    for attention in recording.attention:
        shown = attention_analysis.matrix_view(
            attention.pattern[0, 0],
            attention.allowed,
            axes_of(recording, attention),
            None,
            "No specials",
        )
        assert not any(shown.axes.special) and not any(
            special for _, special in shown.axes.produced or ()
        )
        assert len(shown.axes.keys) == len(shown.axes.special) == shown.matrix.shape[1]


def test_where_nothing_would_be_left_all_is_shown_and_it_says_so() -> None:
    axes = attention_analysis.Axes(("[CLS]", "[SEP]"), ("[CLS]", "[SEP]"), (True, True))
    shown = attention_analysis.matrix_view(
        np.full((2, 2), 0.5), np.ones((2, 2), bool), axes, None, "No specials"
    )
    assert shown.all_hidden and shown.hidden is None and shown.matrix.shape == (2, 2)
    with pytest.raises(ValueError, match="there are All"):
        attention_analysis.matrix_view(
            np.full((2, 2), 0.5), np.ones((2, 2), bool), axes, None, "Some"
        )


def test_rows_between_two_texts_are_the_words_they_produce() -> None:
    handle = read_once("translator")
    recording = handle.record(
        "Her idea was unbelievable.", target="Son idée était incroyablement bonne."
    )
    attention = next(each for each in recording.attention if each.name == "cross")
    axes = attention_analysis.axes(recording, attention, "[EOS]")
    rows, _ = attention_analysis.groups(recording, attention, axes)
    assert (
        rows.labels == ("Son", "idée", "était", "incroyablement", "bonne", ".", "[EOS]")
        and rows.special[-1]
    )
    for label, first, size in zip(rows.labels[:-1], rows.starts, rows.sizes):
        spelled = "".join(said.removeprefix("‧") for said, _ in axes.produced[first : first + size])
        assert spelled == label


def test_the_file_holds_the_hidden_share_and_the_numbers_that_tokens_had() -> None:
    axes = attention_analysis.Axes(
        ("[CLS]", "a", "b", "[SEP]"), ("[CLS]", "a", "b", "[SEP]"), (True, False, False, True)
    )
    matrix = np.random.default_rng(0).dirichlet(np.ones(4), 4).astype(np.float32)
    shown = attention_analysis.matrix_view(matrix, np.ones((4, 4), bool), axes, None, "No specials")
    lines = list(
        csv.reader(
            io.StringIO(to_csv(attention_analysis.columns(shown.matrix, shown.axes, shown.hidden)))
        )
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


def test_a_sink_stays_one_when_tokens_become_words() -> None:
    """A sink is found among tokens: with words for them rows are shorter, and what an even row
    gives is more."""
    n = 8
    tokens = tuple(f"t{at}" for at in range(n))
    axes = attention_analysis.Axes(tokens, tokens, (False,) * n)
    matrix = np.full((n, n), 0.6 / (n - 1))
    matrix[:, 3] = 0.4
    everywhere = np.ones((n, n), bool)
    assert head_naming.sinks(matrix, everywhere).tolist() == [at == 3 for at in range(n)]
    pairs = words.Groups(n, (0, 2, 3, 4), ("a", "b", "c", "d"), (False,) * 4)
    found = attention_analysis.matrix_view(matrix, everywhere, axes, (pairs, pairs), "No sinks")
    assert found.left_out == ("c (2)",)
    np.testing.assert_allclose(found.matrix.sum(1) + found.hidden, 1, atol=STORED)


def test_a_text_of_another_language_is_known_by_its_small_words() -> None:
    sentences = (Path(__file__).parent / "sentences.txt").read_text("utf-8").splitlines()
    foreign = [each for each in sentences if word_classes.is_foreign(each, "en")]
    assert {each.split()[0] for each in foreign} == {*"Der Die Le La El O De".split()}
    assert len(foreign) == 8, "and of the English ones none"
    assert not any(word_classes.is_foreign(text, "en") for text in ("", "Hello", "El Niño", "日本"))
