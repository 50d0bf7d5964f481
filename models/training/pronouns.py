"""Sentences with two nouns and a pronoun that only one of them fits, by gender, by number or by
sense: made, for the encoder's training.

Old books are full of pronouns, but seldom is it plain in one sentence whom they mean. The hand-made
sentences that the shipped encoder is measured on (`models/training/heldout_sentences.py`) are other
sentences, and the ones that the app offers are never made.
"""

from __future__ import annotations

from random import Random

from models.training.grammar import MEN, PLACES, WOMEN

HE = tuple(
    """
    man boy father brother uncle king prince son grandfather husband nephew gentleman waiter
    monk
    """.split()
)
SHE = tuple(
    """
    woman girl mother sister aunt queen princess daughter grandmother wife niece lady nurse nun
    """.split()
)
THEY = tuple(
    """
    children boys girls students dogs men women soldiers neighbors friends horses parents twins
    guests
    """.split()
)
DID = tuple(
    """
    thanked helped followed called met visited watched greeted asked invited taught left found
    heard saw forgave praised warned surprised remembered
    """.split()
)
FELT = tuple(
    """
    tired happy late ill kind angry hungry afraid lonely busy proud early sad careful lost
    """.split()
)
LATER = (
    "went home",
    "began to laugh",
    "sat down",
    "said nothing",
    "came back",
    "ran away",
    "fell asleep",
    "started to sing",
    "opened the door",
    "looked out of the window",
    "made some tea",
    "told a story",
    "lost a shoe",
    "read a book",
)
GIFTS = (
    "a book",
    "a letter",
    "some bread",
    "a ring",
    "an apple",
    "a coat",
    "a map",
    "some money",
    "a flower",
    "a cup of tea",
)
LINK = ("because", "when", "although", "and", "but", "after", "while", "so")
BEASTS = tuple("dog cat horse cow bird fox rabbit mouse bear sheep donkey animal goat duck".split())
WEARY = ("tired", "hungry", "weak", "young", "afraid", "old", "lazy", "ill", "sleepy", "thirsty")
# What a beast does not do, to what, and what that thing is too much of.
UNDONE = (
    (
        ("cross", "jump over", "swim across"),
        ("river", "road", "field", "stream", "bridge", "lake"),
        ("wide", "long", "deep", "dangerous", "wet"),
    ),
    (
        ("eat", "touch", "finish"),
        ("bread", "soup", "meat", "cake", "grass", "apple"),
        ("hot", "cold", "hard", "dry", "sweet", "bitter"),
    ),
    (
        ("pull", "carry", "move"),
        ("cart", "box", "stone", "bag", "basket", "log"),
        ("heavy", "big", "hot", "wet", "large"),
    ),
    (
        ("enter", "leave", "see"),
        ("house", "garden", "cave", "room", "barn", "tunnel"),
        ("dark", "small", "warm", "cold", "narrow"),
    ),
)


def sentence(rng: Random) -> str:
    """One sentence, drawn from `rng`."""
    return (_person if rng.random() < 0.7 else _thing)(rng)


def _person(rng: Random) -> str:
    """Two people (or a person and several) of whom one is "he", "she" or "they"."""
    kinds = rng.sample(("he", "she", "they"), 2)
    pronoun = rng.choice(kinds)
    (one, other), was = (
        [_someone(kind, rng) for kind in kinds],
        "were" if pronoun == "they" else "was",
    )
    first = one[0].upper() + one[1:]
    did, felt, later, place = (rng.choice(words) for words in (DID, FELT, LATER, PLACES))
    return rng.choice(
        (
            f"{first} {did} {other} {rng.choice(LINK)} {pronoun} {was} {felt}.",
            f"{first} {did} {other} {rng.choice(LINK)} {pronoun} {later}.",
            f"{first} {did} {other} at {place}, and then {pronoun} {later}.",
            f"When {one} {did} {other}, {pronoun} {was} {felt}.",
            f"After {one} {did} {other}, {pronoun} {later}.",
            (
                f"{first} gave {other} {rng.choice(GIFTS)} "
                f"{rng.choice(('because', 'when', 'before', 'and'))} {pronoun} {later}."
            ),
            f"{first} and {other} were at {place} when {pronoun} {later}.",
            f"{first} {did} {other} yesterday. Today {pronoun} {was} {felt}.",
            (
                f"{first} {later}. {other[0].upper() + other[1:]} {rng.choice(DID)} "
                f"{_them(kinds[0])} because {pronoun} {was} {felt}."
            ),
        )
    )


def _thing(rng: Random) -> str:
    """A beast and a thing, one of which "it" is by sense."""
    verbs, things, toos = rng.choice(UNDONE)
    beast, verb, thing = rng.choice(BEASTS), rng.choice(verbs), rng.choice(things)
    why = rng.choice(WEARY if rng.random() < 0.5 else toos)
    not_ = rng.choice(("didn't", "could not", "did not", "would not", "couldn't"))
    return rng.choice(
        (
            f"The {beast} {not_} {verb} the {thing} because it was too {why}.",
            (
                f"The {beast} {not_} {verb} the {thing} because it was "
                f"{rng.choice(('very', 'so'))} {why}."
            ),
            f"The {thing} was there, but the {beast} {not_} {verb} it because it was too {why}.",
        )
    )


def _someone(kind: str, rng: Random) -> str:
    if kind == "they":
        return f"the {rng.choice(THEY)}"
    nouns, names = (HE, MEN) if kind == "he" else (SHE, WOMEN)
    return (
        rng.choice(names)
        if rng.random() < 0.35
        else f"{rng.choice(('the', 'the', 'the old', 'the young'))} {rng.choice(nouns)}"
    )


def _them(kind: str) -> str:
    return {"he": "him", "she": "her", "they": "them"}[kind]
