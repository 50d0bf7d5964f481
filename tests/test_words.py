"""Words out of tokens, and what is left out of a head's matrix."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from conftest import AWKWARD, HOSTILE, read_once
from tolerances import STORED, SUMMED

from explorer.analysis import attention as attention_analysis
from explorer.analysis import head_naming, word_classes, words
from explorer.figures.csv import to_csv
from models.contract.edits import ShuffleTokens
from models.contract.recording import Recording, Stream


def split(text: str) -> list[str]:
    """The words of a text by themselves."""
    found: dict[int, str] = {}
    for letter, word in zip(text, words.word_numbers(text)):
        found[word] = found.get(word, "") + letter
    return [piece for word, piece in sorted(found.items()) if word >= 0]


def stream(text: str, *spans: tuple[int, int], special: tuple[int, ...] = ()) -> Stream:
    at = np.arange(len(spans))
    is_special, nothing = np.isin(at, special), np.zeros((1, len(spans), 2), np.float32)
    labels = [text[start:end] or "␣" for start, end in spans]
    tokens = tuple("[S]" if each else label for each, label in zip(is_special, labels))
    places = np.array(spans).reshape(-1, 2)
    return Stream("s", tokens, at, is_special, places, ("embed",), nothing)


def test_any_text_has_a_word_for_every_letter_and_none_for_white_space() -> None:
    for text in HOSTILE.values():
        found = words.word_numbers(text)
        assert len(found) == len(text)
        for letter, word in zip(text, found):
            assert (word < 0) == (letter.isspace() or letter == "\u200b"), text
        seen = [word for word in found if word >= 0]
        assert seen == sorted(seen) and set(seen) == set(range(len(set(seen))))


def test_tokens_become_words_by_the_letters_they_hold() -> None:
    def starts(text: str, *spans: tuple[int, int]) -> tuple[int, ...]:
        return words.words(stream(text, *spans), text).starts

    # The pieces of a character, and of a word, are one word.
    text, spans = "un💛able x", [(0, 2), *[(2, 3)] * 3, (3, 7), (8, 9)]
    groups = words.words(stream(text, (-1, -1), *spans, (-1, -1), special=(0, 7)), text)
    assert groups.labels == ("[S]", "un", "💛", "able", "x", "[S]")
    assert groups.starts == (0, 1, 2, 5, 6, 7) and groups.sizes.tolist() == [1, 1, 3, 1, 1, 1]
    assert groups.special == (True, False, False, False, False, True)
    # A token with parts of several words makes them one, and one from nowhere is alone.
    assert words.words(stream("日本語", (0, 2), (2, 3)), "日本語").labels == ("日本", "語")
    assert starts("a-b c", (0, 2), (2, 3), (4, 5)) == (0, 1, 2)
    assert starts("a-bc", (0, 1), (1, 3), (3, 4)) == (0, 1), "-b holds the sign and a part of bc"
    assert starts("ab", (-1, -1), (-1, -1), (0, 1), (1, 2)) == (0, 1, 2)
    # A space that is a token goes with what follows, and other white space stays.
    text = "it 💛\n\n  x"
    spans = (0, 2), (2, 3), (3, 4), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)
    assert words.words(stream(text, *spans), text).labels == ("it", "💛", "\n", "\n", " ", "x")


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


def test_what_no_token_shows_parts_no_word_and_white_space_is_none() -> None:
    recording = read_once("minilm").record("A soft\u00adhyphen in नेपालमा, 日本")
    found = words.words(recording.streams[0], recording.text).labels
    assert found[1:-1] == ("A", "softU+00ADhyphen", "in", "नेपालमा", ",", "日", "本")
    assert recording.streams[0].tokens[3] == "‧hy" and recording.streams[0].tokens[-2] == "本"
    recording = read_once("encoder").record("so\u00a0it\u3000was\r\n\tnot")
    found = words.words(recording.streams[0], recording.text).labels
    assert found[1:-1] == ("so", "U+00A0", "it", "U+3000", "was", "␍", "⏎", "⇥", "not")
    assert "U+00A0 2/2" in recording.streams[0].tokens
    teacher = "👩🏽\u200d🏫"
    assert f"{teacher} = [UNK]" in read_once("minilm").record(f"The {teacher}.").streams[0].tokens
    is_word = [word_classes.is_word(label) for label in found[1:-1]]
    assert is_word == [True, False, True, False, True, False, False, False, True]


def test_pieces_of_a_word_that_were_shuffled_apart_are_not_put_together() -> None:
    text = "an unbelievable unthinkable tokenization"
    recording = read_once("encoder").record(text, (ShuffleTokens(3),))
    groups = words.words(recording.streams[0], recording.text)
    for first, size in zip(groups.starts, groups.sizes):
        starts, ends = recording.streams[0].spans[first : first + size].T
        assert size == 1 or (np.diff(starts) >= 0).all() and (starts[1:] <= ends[:-1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "translator"])
def test_the_words_of_a_recorded_text_are_the_text_s(name: str) -> None:
    for text in (*AWKWARD.values(), "don't I 💛 naïve 日本"):
        found = read_once(name).record(text).streams[0]
        groups = words.words(found, text)
        assert sum(groups.sizes) == groups.n == len(found.tokens)
    labels = [label for label, special in zip(groups.labels, groups.special) if not special]
    assert labels == ["don't", "I", "💛", "naïve", "日", "本"]


# ---- laws --------------------------------------------------------------------


@pytest.fixture(scope="module", params=["small_model", "small_decoder", "small_translator"])
def recording(request: pytest.FixtureRequest) -> Recording:
    target = "the dog 💛 ran, unbelievable" if request.param == "small_translator" else None
    text = "the cat sat, didn't it? 💛 unbelievable mat 日本"
    return request.getfixturevalue(request.param).record(text, target=target)


def axes_of(recording: Recording, attention) -> attention_analysis.Axes:
    end = () if attention.query == attention.key else ("[EOS]",)
    return attention_analysis.axes(recording, attention, *end)


def test_a_cell_between_words_is_a_mean_of_sums(recording: Recording) -> None:
    for attention in recording.attention:
        axes, weights = axes_of(recording, attention), attention.pattern[0, 1]
        grouped = attention_analysis.groups(recording, attention, axes)
        shown = attention_analysis.matrix_view(weights, attention.allowed[0], axes, grouped)
        by_hand = [
            [weights[top:bottom, left:right].sum(axis=1).mean() for left, right in shown.key_tokens]
            for top, bottom in shown.row_tokens
        ]
        np.testing.assert_allclose(shown.matrix, by_hand, atol=STORED)
        of_all = words.weights_between(attention.pattern, *grouped)
        np.testing.assert_allclose(of_all[0, 1], shown.matrix, atol=STORED)
        shape = (len(grouped[0].starts), len(grouped[1].starts))
        assert shown.matrix.shape == shape == shown.allowed.shape
        assert shape[1] < len(axes.keys), "some tokens came together"
        np.testing.assert_allclose(shown.matrix.sum(axis=1), 1, atol=SUMMED)
        assert not shown.matrix[~shown.allowed].any(), "no word attends where it may not"


def test_a_weight_of_uniform_attention_is_one_of_all_of_them() -> None:
    text = "Unbelievably, the archaeologists reread it 12,345 times."
    recording = read_once("encoder").record(text)
    groups = words.words(recording.streams[0], recording.text)
    allowed = np.tril(recording.attention[0].allowed[0])
    assert max(groups.sizes) > 1
    every = words.uniform_weights(allowed, groups, groups)
    for (row, key), weight in np.ndenumerate(every):
        one = words.uniform_weight(allowed, groups, groups, row, key)
        assert one == pytest.approx(weight, abs=SUMMED)


@pytest.mark.parametrize("kept", [*attention_analysis.TOKEN_FILTERS][1:])
@pytest.mark.parametrize("grouped", [False, True])
def test_shown_and_hidden_sum_to_1(recording: Recording, kept: str, grouped: bool) -> None:
    for attention in recording.attention:
        axes, pattern = axes_of(recording, attention), attention.pattern[2, 0]
        groups = attention_analysis.groups(recording, attention, axes) if grouped else None
        given = (pattern, attention.allowed[0], axes, groups, kept)
        plain = attention_analysis.matrix_view(*given)
        if kept == "No specials" and not grouped:
            assert not any(plain.axes.special)
            assert not any(special for _, special in plain.axes.produced or ())
            assert len(plain.axes.keys) == len(plain.axes.special) == plain.matrix.shape[1]
        if plain.hidden is None:
            continue
        np.testing.assert_allclose(plain.matrix.sum(axis=1) + plain.hidden, 1, atol=SUMMED)
        again = attention_analysis.matrix_view(*given, renormalise=True)
        np.testing.assert_array_equal(again.hidden, plain.hidden)
        seen = plain.matrix.sum(axis=1)
        np.testing.assert_allclose(again.matrix.sum(axis=1), np.where(seen > 0, 1, 0), atol=SUMMED)
        np.testing.assert_allclose(again.matrix * seen[:, None], plain.matrix, atol=STORED)
        assert again.renormalised and not plain.renormalised


def test_where_nothing_would_be_left_all_is_shown_and_it_says_so() -> None:
    axes = attention_analysis.Axes(("[CLS]", "[SEP]"), ("[CLS]", "[SEP]"), (True, True))
    given = (np.full((2, 2), 0.5), np.ones((2, 2), bool), axes, None)
    shown = attention_analysis.matrix_view(*given, "No specials")
    assert shown.all_hidden and shown.hidden is None and shown.matrix.shape == (2, 2)
    with pytest.raises(ValueError, match="there are All"):
        attention_analysis.matrix_view(*given, "Some")


def test_rows_between_two_texts_are_the_words_they_produce() -> None:
    target = "Son idée était incroyablement bonne."
    recording = read_once("translator").record("Her idea was unbelievable.", target=target)
    attention = next(each for each in recording.attention if each.name == "cross")
    axes = axes_of(recording, attention)
    rows, _ = attention_analysis.groups(recording, attention, axes)
    assert rows.labels == (*"Son idée était incroyablement bonne . [EOS]".split(),)
    assert rows.special[-1]
    for label, first, size in zip(rows.labels[:-1], rows.starts, rows.sizes):
        produced = axes.produced[first : first + size]
        assert "".join(said.removeprefix("‧") for said, _ in produced) == label


def test_the_file_holds_the_hidden_share_and_the_numbers_that_tokens_had() -> None:
    tokens = ("[CLS]", "a", "b", "[SEP]")
    axes = attention_analysis.Axes(tokens, tokens, (True, False, False, True))
    matrix = np.random.default_rng(0).dirichlet(np.ones(4), 4).astype(np.float32)
    shown = attention_analysis.matrix_view(matrix, np.ones((4, 4), bool), axes, None, "No specials")
    table = attention_analysis.columns(shown.matrix, shown.axes, shown.hidden)
    head, *lines = csv.reader(io.StringIO(to_csv(table)))
    assert head == ["query \\ key", "hidden", "1 a", "2 b"]
    assert [line[0] for line in lines] == ["1 a", "2 b"]
    np.testing.assert_allclose([sum(map(float, line[1:])) for line in lines], 1, atol=STORED)
    assert shown.left_out == ("[CLS] (0)", "[SEP] (3)")
    assert [shown.row_of(at) for at in (2, 0, None)] == [1, -1, -1]
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
    assert {each.split()[0] for each in foreign} == {
        *"Der Die Le La El O De".split(),
        *("राम", "मुझे", "Собака", "我喜欢吃苹果，因为它很甜。"),
    }
    assert len(foreign) == 12, "and of the English ones none"
    assert not any(
        word_classes.is_foreign(text, "en")
        for text in ("", "Hello", "El Niño", "日本", "α + β = γ", "Zoë, José and Renée met.")
    )
    turkish = "İstanbul'da ılık bir rüzgâr esti; İpek ıslandı."
    assert word_classes.is_foreign(turkish, "en"), "a language without a list"
