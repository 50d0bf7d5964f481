"""Any text becomes tokens, tokens are readable, and their spans say where they came from."""

from __future__ import annotations

import pytest
from conftest import HOSTILE

from models.network.own_model import OwnModel


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_every_text_comes_back_from_its_tokens_whose_labels_can_be_read(
    text: str, small_model: OwnModel
) -> None:
    tokenizer = small_model.tokenizer
    tokens, dropped = tokenizer.tokens(text, 100_000)
    back = tokenizer.bpe.decode(list(tokens.ids[1:-1]), skip_special_tokens=False)
    assert dropped == 0 and back.removeprefix(" ") == text.removeprefix(" ")
    assert len(tokens.ids) == len(tokens.labels) == len(tokens.spans) == len(tokens.special)
    for label in tokens.labels:
        printed = label.replace("\u200d", "")  # which joins emoji
        assert label.strip() and printed.isprintable() and "\ufffd" not in label, repr(label)


def test_typed_special_tokens_are_ordinary_text(small_model: OwnModel) -> None:
    tokens, _ = small_model.tokenizer.tokens("[CLS] [MASK]", 512)
    own = small_model.tokenizer
    assert [token for token in tokens.ids if token < 4] == [own.cls, own.sep]


def test_spans_cover_the_words_without_their_spaces(small_model: OwnModel) -> None:
    text = "  the cat,  the mat"
    tokens, _ = small_model.tokenizer.tokens(text, 512)
    assert tokens.spans[0] == tokens.spans[-1] == (-1, -1)
    words = [text[start:end] for start, end in tokens.spans[1:-1] if text[start:end].strip()]
    assert words == ["the", "cat", ",", "the", "mat"]


def test_a_split_emoji_says_which_part_it_is(small_model: OwnModel) -> None:
    tokens, _ = small_model.tokenizer.tokens("a 😀", 512)
    assert tokens.labels[-5:-1] == ("😀 1/4", "😀 2/4", "😀 3/4", "😀 4/4")
    assert set(tokens.spans[-5:-1]) == {(2, 3)}


def test_what_only_shapes_the_sign_before_it_is_named_where_it_stands_alone(
    small_model: OwnModel,
) -> None:
    tokens, _ = small_model.tokenizer.tokens("a \u2764\ufe0f", 512)
    assert tokens.labels[-4:-1] == ("U+FE0F 1/3", "U+FE0F 2/3", "U+FE0F 3/3")


def test_a_piece_inside_a_word_is_marked_and_equal_words_have_equal_labels(
    small_model: OwnModel,
) -> None:
    tokens, _ = small_model.tokenizer.tokens("the cattle the", 512)
    assert tokens.labels[1] == tokens.labels[-2] == "the"
    assert any(label.startswith("‧") for label in tokens.labels)


def test_an_accent_written_apart_stays_with_its_letter(small_model: OwnModel) -> None:
    tokens, _ = small_model.tokenizer.tokens("cafe\u0301", 512)
    assert tokens.labels[-2].startswith("é") and tokens.spans[-2] == (3, 5)
