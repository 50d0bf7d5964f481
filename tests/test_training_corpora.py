"""What is read in training: corpora are cleaned, divided and kept apart from what is measured."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from random import Random
from string import ascii_lowercase

import pytest
from corpora import unlike, written

from models.example_texts import EXAMPLES, REORDERED_TEXTS
from models.network.config import Config
from models.training import corpus, grammar, heldout_sentences, masked, next_word


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path)


def normal(texts: Iterable[str]) -> set[str]:
    return set(map(corpus.normalized, texts))


def test_corpora_are_cleaned_split_and_free_of_presets(data: Path) -> None:
    learned, held_out = corpus.read(data)
    everything = (*learned.sentences, *held_out.sentences)
    assert len(everything) == 601 + 900 and everything.count("A clear sentence.") == 1
    assert not any("pizza" in text or "killed" in text for text in everything)
    assert not normal(learned.sentences) & normal(held_out.sentences)
    assert held_out.sentences and all(map(corpus.is_held_out, held_out.sentences))
    assert len(learned.paragraphs) + len(held_out.paragraphs) == 400
    begin = "The 0 rabbits went over the hill and they saw number 0 of the old houses there."
    assert learned.paragraphs[0] == begin


@pytest.mark.slow
def test_more_books_bring_neither_doubles_nor_what_is_held_out(data: Path) -> None:
    library = corpus.read_library(data)
    assert any("villages" in text for text in library.books)
    assert any("climbed" in text for text in library.books)
    assert not any("Gutenberg" in text or "[" in text for text in library.books)
    learned = normal((*library.sentences, *library.paragraphs, *library.books))
    for _, held in (corpus.read(data), corpus.read_divided(data)):
        assert held.sentences and not learned & normal((*held.sentences, *held.paragraphs))
    held = {run for text in corpus.read(data)[1].paragraphs for run in corpus.word_runs(text)}
    assert held and not any(held & corpus.word_runs(text) for text in library.books)


@pytest.mark.slow
def test_hand_made_sentences_are_kept_out_of_all_training(data: Path) -> None:
    texts = heldout_sentences.TEXTS
    assert len(heldout_sentences.PRONOUNS) == len(heldout_sentences.TO_TRANSLATE) == 60
    assert not any(map(corpus.is_suitable, texts))
    rng, presets = Random(0), normal((*EXAMPLES.values(), *REORDERED_TEXTS))
    assert not normal(masked.sentence(rng) for _ in range(10_000)) & (normal(texts) | presets)
    assert not normal(grammar.sentence(rng) for _ in range(5_000)) & presets
    rows = [f"{text}\tx{at}" for at, text in enumerate((*texts, *unlike(900)))]
    with zipfile.ZipFile(data / "tatoeba_fra" / "fra-eng.zip", "w") as file:
        file.writestr("fra-eng/fra.txt", "\n".join(rows))
    library, (pairs, held) = corpus.read_library(data), corpus.read_pairs(data)
    learned = normal((*library.sentences, *pairs.english, *held.english))
    assert learned and not learned & normal(texts)


def test_hand_made_words_stand_in_their_sentences() -> None:
    for text, *words in heldout_sentences.PRONOUNS:
        assert all(re.search(rf"\b{word}\b", text) for word in words), text
    for text, *both in heldout_sentences.PAIRS:
        words = [word for pairs in both for pair in pairs for word in pair]
        assert all(re.search(rf"\b{word}\b", text) for word in words), text
    assert all(8 <= len(text.split()) <= 25 for text in heldout_sentences.TO_TRANSLATE)


def test_a_pronoun_has_one_noun_that_fits() -> None:
    """Of two people in a made sentence at most one is what the pronoun says."""
    rng = Random(0)
    groups = {
        "he": (masked.HE, grammar.MEN),
        "she": (masked.SHE, grammar.WOMEN),
        "they": (masked.THEY,),
    }
    for _ in range(2000):
        text = masked.sentence(rng)
        words = set(re.findall(r"\w+", text))
        for pronoun in words & set(groups):
            assert len(words & {word for group in groups[pronoun] for word in group}) == 1, text


def test_a_name_is_replaced_by_one_name_throughout() -> None:
    for vary in (
        corpus.vary_each_name,
        lambda text, rng: corpus.vary_names((text,), rng, grammar.MEN, grammar.WOMEN)[0],
    ):
        names = {vary("Tom said Tom saw Mary.", Random(seed)) for seed in range(40)}
        assert len(names) > 10
        for text in names:
            first, _, second, _, other = text.rstrip(".").split()
            assert first == second and first in grammar.MEN and other in grammar.WOMEN
        assert vary("Tomorrow is fine.", Random(0)) == "Tomorrow is fine."


def test_two_people_stay_two_and_are_called_the_same_in_both_languages() -> None:
    pair = ("Tom met John and Mary.", "Tom a rencontré John et Marie.")
    for seed in range(60):
        english, french = corpus.vary_names(pair, Random(seed), *corpus.FOR_FRENCH)
        a, _, b, _, c = english.rstrip(".").split()
        assert len({a, b, c}) == 3 and a[0] not in "AEIOU"
        assert french == f"{a} a rencontré {b} et {c}."
    lost = ("Tom met Mary.", "Il l'a rencontrée.")
    assert corpus.vary_names(lost, Random(0), *corpus.FOR_FRENCH) == lost


def test_near_duplicates_fall_on_neither_side() -> None:
    words = ("red", "old", "big", "sad"), ("cat", "dog", "man", "boy"), ("new", "wet", "tall")
    base = [f"the {a} {b} likes the {c} house" for a, b, c in product(*words)]
    texts = [*base, *(f"Today {text}!" for text in base), *(text.upper() for text in base)]
    texts += [f"line {word} stands alone here with {word * 2}" for word in ascii_lowercase]
    learned, kept = ([corpus.folded(texts[at]) for at in part] for part in corpus.divide(texts))
    assert not any(near(a, b) for a in kept for b in learned)


def near(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """One word added, dropped or replaced, or none: by trying."""
    if len(a) == len(b):
        return sum(x != y for x, y in zip(a, b)) <= 1
    short, long = sorted((a, b), key=len)
    return len(long) == len(short) + 1 and any(
        long[:at] + long[at + 1 :] == short for at in range(len(long))
    )


def test_names_numbers_and_short_forms_do_not_tell_sentences_apart() -> None:
    assert (
        corpus.folded("Tom doesn't have 20 cats!")
        == corpus.folded("Mary does not have 3 cats")
        == ("nnn", "does", "not", "have", "000", "cats")
    )


@pytest.mark.slow
def test_pairs_are_divided_cleaned_and_named_alike(data: Path) -> None:
    rows = [
        f"Tom bought {i} {thing} in the old town.\tTom a acheté {i} {thing} dans la vieille ville."
        for i, thing in product(range(9), ("hats", "cups", "pens"))
    ]
    rows += [f"{text}\tLe {text[:9]} ici." for text in unlike(2000)]
    with zipfile.ZipFile(data / "tatoeba_fra" / "fra-eng.zip", "w") as file:
        file.writestr("fra-eng/fra.txt", "\n".join([*rows, "He lost his key.\tQuelle merde."]))
    learned, held = corpus.read_pairs(data)
    assert held.english and len(learned.english) == len(learned.french)
    kept = {corpus.folded(text) for text in held.english}
    assert not any(near(corpus.folded(text), other) for text in learned.english for other in kept)
    sides = ({corpus.folded(text) for text in each.french} for each in (learned, held))
    assert not set.intersection(*sides)
    assert not any("merde" in text for text in (*learned.french, *held.french))


def test_a_missing_corpus_is_named(tmp_path: Path, data: Path) -> None:
    (data / "gutenberg" / "1.txt").unlink()
    with pytest.raises(FileNotFoundError, match="no books in"):
        corpus.read(data)


def test_names_of_the_grammar_stay_in_its_own_rows(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REPEATED_ROWS", "SENTENCES_TWICE", "PARAGRAPHS_TWICE"):
        monkeypatch.setattr(next_word, name, (0,))
    monkeypatch.setattr(next_word, "N_GRAMMAR", 200)
    made = next_word.NextWord(data)
    made.config = Config(500, 16, 1, 2, 32, 512)
    tokenizer = made.tokenizer()
    own = {*grammar.MEN, *grammar.WOMEN} - {*next_word.MEN, *next_word.WOMEN}
    families = {corpus.normalized(grammar.sentence(Random(seed))).split()[1] for seed in range(500)}
    named = 0
    for row, _ in next_word.rows(made.corpus, tokenizer, Random(1), 2):
        text = tokenizer.text(row)
        if words := own & set(re.findall(r"\w+", text)):
            named += 1
            assert text.count(".") <= 2 and families & set(corpus.normalized(text).split()), words
    assert named > 20
