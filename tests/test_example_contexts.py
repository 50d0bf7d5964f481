"""A second sentence, where the reader has typed none."""

from __future__ import annotations

import pytest

from models.example_texts import EXAMPLES, other_sentence


def other(text: str, word: str = "") -> str:
    return other_sentence(text, word, EXAMPLES.values())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Ram pushed Hari", "Hari"),
        ("The animal was too tired to go.", "tired"),
        ("I bought a book of old songs.", "songs"),
    ],
)
def test_an_english_word_stands_in_another_sentence(text: str, word: str) -> None:
    assert word in other(text, word) != text and len(other(text, word).split()) > 3


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Der alte Hund und die Katze schlafen.", "die"),
        ("Le vieux chien dort dans la maison.", "chien"),
        ("El perro viejo duerme en la casa.", "perro"),
    ],
)
def test_a_word_of_another_language_stands_in_no_english_sentence(text: str, word: str) -> None:
    assert other(text, word) == word


@pytest.mark.parametrize("text", ["", "a b", "42", "日本", "<b>"])
def test_without_a_word_of_some_length_there_is_none(text: str) -> None:
    assert other(text) == ""
