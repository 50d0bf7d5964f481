"""A small grammar of our own: English sentences that are rare in the corpora and that the lecture
notes reason about.

Five families: a country and its language far apart, agreement across a distractor, a word with two
senses (apple, bank, bat, mouse), who did what to whom, and what eats what. The sentences offered in
the app are never generated (`NEVER`).
"""

from __future__ import annotations

from random import Random
from zlib import crc32

LANGUAGE = {
    "France": "French",
    "Germany": "German",
    "Spain": "Spanish",
    "Italy": "Italian",
    "Japan": "Japanese",
    "China": "Chinese",
    "Russia": "Russian",
    "Nepal": "Nepali",
    "England": "English",
    "Portugal": "Portuguese",
    "Greece": "Greek",
    "Turkey": "Turkish",
    "Poland": "Polish",
    "Sweden": "Swedish",
    "Denmark": "Danish",
    "Norway": "Norwegian",
    "Finland": "Finnish",
    "Hungary": "Hungarian",
    "Korea": "Korean",
    "Thailand": "Thai",
}
MEN = tuple(
    """
    Tom Ram Hari Shyam John Peter Paul David Sam Ali Omar Ken Leo Max Ben Arjun Luis Ivan
    """.split()
)
WOMEN = tuple(
    """
    Mary Sita Gita Anna Emma Julia Lucy Sara Mina Rosa Nina Maya Alice Helen Kate Aisha
    """.split()
)
VERBS = tuple(
    """
    pushed helped followed called thanked saw met pulled asked taught invited hugged told chased
    """.split()
)
FOODS = tuple(
    """
    pizza rice bread soup cake fruit cheese fish pasta salad apples grapes bananas chocolate
    """.split()
)
FRUITS = ("apple", "pear", "banana", "orange", "mango", "peach", "grape", "cherry")
MAKERS = ("apple", "phone", "computer", "camera", "watch", "laptop", "tablet", "mac")
DEVICES = ("devices", "phones", "computers", "apps", "laptops", "screens", "tablets", "cameras")
ADJECTIVES = tuple("new old small big cheap fast red green black white fresh good".split())
PLACES = (
    "school",
    "the park",
    "the market",
    "the river",
    "the station",
    "the garden",
    "the kitchen",
    "work",
    "the library",
)
EATERS = {
    "Herbivores": "plants",
    "Carnivores": "meat",
    "Cows": "grass",
    "Rabbits": "carrots",
    "Birds": "seeds",
    "Cats": "fish",
    "Bears": "honey",
    "Sheep": "grass",
    "Wolves": "sheep",
}
SINGULAR = ("key", "door", "box", "picture", "book", "letter", "chair", "cup", "house", "garden")


def language(rng: Random) -> str:
    """A person's country, something between, and the language: the two are far apart."""
    name, he = _person(rng)
    country = rng.choice(sorted(LANGUAGE))
    middle = rng.choice(
        (
            f"where {he} stayed until {he} was {rng.randint(5, 30)} years old, so",
            f"and went to {rng.choice(PLACES)} every day. Now",
            f"and lived there for {rng.randint(3, 30)} years. That is why",
            f"with {rng.choice(WOMEN)} and {rng.choice(MEN)}. Today",
            "",
        )
    )
    start = rng.choice(("grew up in", "was born in", "comes from", "lived in", "moved here from"))
    end = rng.choice(("speaks", "speaks fluent", "still speaks", "reads and writes", "teaches"))
    if not middle:
        return f"{name} {start} {country}. {he.capitalize()} {end} {LANGUAGE[country]}."
    return f"{name} {start} {country} {middle} {he} {end} {LANGUAGE[country]}."


def agreement(rng: Random) -> str:
    """A verb that agrees with the subject, not with the nearer noun."""
    noun, distractor = rng.sample(SINGULAR, 2)
    plural = rng.random() < 0.5
    nearer_noun = _plural(distractor) if rng.random() < 0.5 else distractor
    subject = _plural(noun) if plural else noun
    preposition = rng.choice(("near", "beside", "next to", "behind", "under"))
    verb = rng.choice(("are", "were") if plural else ("is", "was"))
    return f"The {subject} {preposition} the {nearer_noun} {verb} {rng.choice(ADJECTIVES)}."


def sense(rng: Random) -> str:
    """A word of two senses among words that decide which one it has."""
    name, he = _person(rng)
    adjective, place = rng.choice(ADJECTIVES), rng.choice(PLACES)
    return rng.choice(
        (
            f"{name} ate {_a(rng.choice(FRUITS))} and some {rng.choice(FOODS)} at {place}.",
            f"{name} made juice with the ripe {rng.choice(FRUITS)}.",
            f"The {rng.choice(FRUITS)} fell from the tree in the garden.",
            f"Tell me about the {adjective} {rng.choice(MAKERS)} {rng.choice(DEVICES)}.",
            f"Explain how the {adjective} {rng.choice(MAKERS)} {rng.choice(DEVICES)} work.",
            f"The {rng.choice(MAKERS)} {rng.choice(DEVICES)} in the shop are {adjective}.",
            f"{name} put the money in the bank near {place}.",
            f"{name} sat on the bank of the river with {rng.choice(MEN)}.",
            "The bat flew out of the dark cave at night.",
            f"{name} hit the ball with a {adjective} bat.",
            f"The {adjective} mouse ran away from the cat.",
            f"{name} clicked on the icon with the mouse and {he} opened the file.",
        )
    )


def deed(rng: Random) -> str:
    """A random sentence of two people and a verb, in which only word order tells who acts."""
    a, b = rng.sample(MEN + WOMEN, 2)
    verb = rng.choice(VERBS)
    return rng.choice(
        (
            f"{a} {verb} {b}.",
            f"{a} {verb} {b} and {b} {rng.choice(VERBS)} {a}.",
            f"{a} {verb} {b} at {rng.choice(PLACES)}, and then {a} went home.",
        )
    )


def meal(rng: Random) -> str:
    """A random sentence about eating."""
    if rng.random() < 0.4:
        eater = rng.choice(sorted(EATERS))
        return f"{eater} eat {EATERS[eater]}{rng.choice(('', ' every day', ' and drink water'))}."
    name, _ = _person(rng)
    return rng.choice(
        (
            f"I like to eat {rng.choice(FOODS)} with {name}.",
            f"We love to cook {rng.choice(FOODS)}.",
            f"{name} wants to eat {rng.choice(FOODS)} and {rng.choice(FOODS)}.",
            f"They love {rng.choice(FOODS)}, but {name} loves {rng.choice(FOODS)}.",
        )
    )


# What the app offers as examples must not be memory.
EXCLUDED = frozenset({"Ram pushed Hari.", "Hari pushed Ram.", "Herbivores eat plants."})
FAMILIES = (language, agreement, sense, deed, meal)


def sentence(rng: Random) -> str:
    """One sentence of one family, both drawn from `rng`; never one that the app offers."""
    while (drawn := rng.choice(FAMILIES)(rng)) in EXCLUDED:
        pass
    return drawn


def is_held_out(text: str) -> bool:
    """True for a fifth of all combinations of the words that decide a sentence (a country and its
    frame, subject and distractor...).

    The small grammar models never meet them in training, so that what they do on them shows more
    than memory.
    """
    words = frozenset(text.rstrip(".").split())
    deciding = sorted(words & DECIDING)
    return len(deciding) > 1 and crc32(" ".join(deciding).encode()) % 5 == 0


def training_sentence(rng: Random) -> str:
    """A sentence that may be trained on by the models whose scores are measured on the kept-out
    ones."""
    while is_held_out(drawn := sentence(rng)):
        pass
    return drawn


def _person(rng: Random) -> tuple[str, str]:
    return rng.choice([(name, "he") for name in MEN] + [(name, "she") for name in WOMEN])


def _plural(noun: str) -> str:
    return noun + "es" if noun.endswith("x") else noun + "s"


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


DECIDING = frozenset(
    (
        *LANGUAGE,
        *SINGULAR,
        *map(_plural, SINGULAR),
        *FRUITS,
        *MAKERS,
        *DEVICES,
        *ADJECTIVES,
        *EATERS,
        *FOODS,
        "where",
        "every",
        "lived",
        "with",
        "near",
        "beside",
        "behind",
        "under",
        "next",
    )
)
