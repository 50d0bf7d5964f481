"""Sentences that the app offers, the lecture notes' own among them, and what it opens on. Training
keeps the sentences out, so that an example shows more than memory."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

EXAMPLES = {
    "Cold soup": "The waiter brought the soup but it was cold.",
    "It was too tired": "The animal didn't cross the street because it was too tired.",
    "Pizza": "I love to eat pizza.",
    "Apple devices": "Tell me about the new apple devices.",
    "Apple and juice": "She ate the apple with some fruit juice.",
    "Ram pushed Hari": "Ram pushed Hari",
    "Every student": "Every student solved one problem.",
    "Herbivores": "Herbivores eat plants",
    "Shyam from Nepal": (
        "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks "
        "fluent"
    ),
    "Red car": "The red car is in front of the white house.",
    "Repeated sentence": " ".join(2 * ["The red fox saw a small bird near the river."]),
}
DEFAULT_MODEL = "encoder"  # of an address and of a command that name none
OPENING_TEXT = EXAMPLES["Cold soup"]  # what the app opens on
DEFAULT_TEXT = EXAMPLES["It was too tired"]  # of an address that chooses something and no text
# For a model that answers, and one that goes on.
ASKED_TEXT = "What is the capital of Nepal?"
CONTINUED_TEXT = "Paris is the capital of France. Rome is the capital of"
# A text that differs in few words from an example, to compare with it.
MATES = {
    OPENING_TEXT: "The waiter brought the soup but he was late.",
    DEFAULT_TEXT: "The animal didn't cross the street because it was too wide.",
    "I love to eat pizza": "I love to drive cars",
    "She ate the apple with some fruit juice.": "She sold the apple with some other device.",
    "Ram pushed Hari": "Hari pushed Ram",
    "Every student solved one problem.": "One student solved every problem.",
    "Herbivores eat plants": "Carnivores eat animals",
    "The red car is in front of the white house.": "The old man is in front of the small church.",
}
# Other orders of the same words, for experiments with positions.
REORDERED_TEXTS = ("Hari pushed Ram", "Plants eat herbivores")


# ---- another context -----------------------------------------------------------------------------

FEWEST_LETTERS = 3  # of a word that is shown in two contexts
# A sentence that any word goes into, whatever part of speech it is.
ANY = "The last word on the page was {}."
# Of English texts of some length hardly any has none of these, and of German or French few one.
ENGLISH = frozenset(
    "the of and to is it he she they we you that this with by not his her my had has have are "
    "were".split()
)
SHORT = 4  # words; so few tell no language
WORD = re.compile(r"[^\W\d_]+")
# A word with other senses than one, and a sentence that has the other one.
SENSES = {
    "cross": "A cross hung on the wall.",
    "apple": "Tell me about the new apple devices.",
    "love": "Their love lasted for fifty years.",
    "plants": "Two plants in the north make steel and cars.",
    "front": "A cold front came in from the west.",
    "saw": "He cut the wood with an old saw.",
    "book": "They had to book a room in the hotel.",
    "bank": "They sat on the bank of the river.",
    "light": "The bag was light and easy to carry.",
    "right": "Turn right at the end of the road.",
    "left": "He left the house before she came.",
    "spring": "The water of the spring was cold.",
    "match": "They lost the last match by two goals.",
    "park": "You may park the car behind the house.",
    "rock": "She sang in a rock band for years.",
    "train": "They train for the race every morning.",
    "play": "The play was written for three actors.",
    "fly": "A fly sat on the window.",
    "kind": "He was a kind and quiet man.",
    "letter": "The first letter of the name was large.",
    "watch": "He looked at his watch and ran.",
    "ring": "A gold ring lay on the table.",
    "leaves": "The leaves of the tree were red.",
    "grew": "They grew rice and corn on the farm.",
    "pushed": "The new law was pushed through by the king.",
    "time": "She won the race for the third time.",
    "sister": "A sister from the church sat with the sick.",
    "black": "The black market for bread grew in the war.",
}


def other_sentence(
    text: str, word: str, examples: Iterable[str], whole: Collection[str] = ()
) -> str:
    """A sentence with `word` in another context than `text`, of this file or of `examples`; where
    that is "", with a word of the text that has other senses, or else its longest, of those that
    are `whole` tokens if there are any. Where neither has one, a sentence that names the word, or
    the word alone where the text is in another language. "" where no word is long enough."""
    here = [each.group() for each in WORD.finditer(text)]
    others = [*examples, *SENSES.values()]
    ambiguous = (each for each in SENSES if each in here and _in_others(each, text, others))
    plain = [each for each in here if each in whole and len(each) >= FEWEST_LETTERS]
    word = word or next(ambiguous, max(plain or here, key=len, default=""))
    if len(word) < FEWEST_LETTERS or not WORD.fullmatch(word):
        return ""
    other = _in_others(word, text, [SENSES.get(word, ""), *others])
    return other or (ANY.format(word) if _may_be_english(here) else word)


def _in_others(word: str, text: str, others: Iterable[str]) -> str:
    """The first of some sentences that has a word and is not the text, "" for none."""
    return next((each for each in others if each != text and word in WORD.findall(each)), "")


def _may_be_english(words: Collection[str]) -> bool:
    return len(words) < SHORT or not ENGLISH.isdisjoint(each.casefold() for each in words)
