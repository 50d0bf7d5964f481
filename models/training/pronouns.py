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
VERBS = tuple(
    """
    thanked helped followed called met visited watched greeted asked invited taught left found
    heard saw forgave praised warned surprised remembered
    """.split()
)
ADJECTIVES = tuple(
    """
    tired happy late ill kind angry hungry afraid lonely busy proud early sad careful lost
    """.split()
)
EVENTS = (
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
ANIMALS = tuple(
    "dog cat horse cow bird fox rabbit mouse bear sheep donkey animal goat duck".split()
)
STATES = ("tired", "hungry", "weak", "young", "afraid", "old", "lazy", "ill", "sleepy", "thirsty")
# What a beast does not do, to what, and what that thing is too much of.
ACTIONS = (
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
    (noun, rival), be = (
        [_someone(kind, rng) for kind in kinds],
        "were" if pronoun == "they" else "was",
    )
    first = noun[0].upper() + noun[1:]
    verb, mood, event, place = (rng.choice(words) for words in (VERBS, ADJECTIVES, EVENTS, PLACES))
    return rng.choice(
        (
            f"{first} {verb} {rival} {rng.choice(LINK)} {pronoun} {be} {mood}.",
            f"{first} {verb} {rival} {rng.choice(LINK)} {pronoun} {event}.",
            f"{first} {verb} {rival} at {place}, and then {pronoun} {event}.",
            f"When {noun} {verb} {rival}, {pronoun} {be} {mood}.",
            f"After {noun} {verb} {rival}, {pronoun} {event}.",
            (
                f"{first} gave {rival} {rng.choice(GIFTS)} "
                f"{rng.choice(('because', 'when', 'before', 'and'))} {pronoun} {event}."
            ),
            f"{first} and {rival} were at {place} when {pronoun} {event}.",
            f"{first} {verb} {rival} yesterday. Today {pronoun} {be} {mood}.",
            (
                f"{first} {event}. {rival[0].upper() + rival[1:]} {rng.choice(VERBS)} "
                f"{_them(kinds[0])} because {pronoun} {be} {mood}."
            ),
        )
    )


def _thing(rng: Random) -> str:
    """A beast and a thing, one of which "it" is by sense."""
    verbs, things, traits = rng.choice(ACTIONS)
    beast, verb, thing = rng.choice(ANIMALS), rng.choice(verbs), rng.choice(things)
    trait = rng.choice(STATES if rng.random() < 0.5 else traits)
    modal = rng.choice(("didn't", "could not", "did not", "would not", "couldn't"))
    return rng.choice(
        (
            f"The {beast} {modal} {verb} the {thing} because it was too {trait}.",
            (
                f"The {beast} {modal} {verb} the {thing} because it was "
                f"{rng.choice(('very', 'so'))} {trait}."
            ),
            f"The {thing} was there, but the {beast} {modal} {verb} it because it was too {trait}.",
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
