"""A second sentence, where the reader has typed none."""

from __future__ import annotations

from models.example_texts import EXAMPLES, other_sentence


def other(text: str, word: str = "") -> str:
    return other_sentence(text, word, EXAMPLES.values())


def test_a_word_stands_in_another_sentence_of_its_language() -> None:
    for text, word in (
        ("Ram pushed Hari", "Hari"),
        ("The animal was too tired to go.", "tired"),
        ("I bought a book of old songs.", "songs"),
    ):
        assert word in other(text, word) != text and len(other(text, word).split()) > 3
    # There are English sentences alone.
    for text, word in (
        ("Der alte Hund und die Katze schlafen.", "die"),
        ("Le vieux chien dort dans la maison.", "chien"),
        ("El perro viejo duerme en la casa.", "perro"),
    ):
        assert other(text, word) == word


def test_without_a_word_of_some_length_there_is_none() -> None:
    assert not any(map(other, ("", "a b", "42", "日本", "<b>")))
