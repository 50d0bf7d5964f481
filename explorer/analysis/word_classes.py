"""Content words, function words and nouns of a text, by word lists for a few languages.

A text is classified by the list with most of its words; of several with as many by the first, and a
word is a pronoun there only where it is one in all of them. A text without words of any list is
classified by the first list. A word in another script than the lists' is not classified."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from explorer.wording import model_descriptions
from models.contract.recording import CONTINUES

FILE = Path(__file__).with_name("function_words.toml")
APOSTROPHE = re.compile("['\u2019]")
POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s?$")
NUMBERED = re.compile(r"(U\+[0-9A-F]{4,6})+")  # what cannot be seen, as labels have it
MASK = re.compile(r"\[[A-Z]+\]|<[^>]*>")  # a token that a reader types to be predicted
WHITE_SPACE = frozenset("␣⏎␍⇥")  # as labels show it
UNKNOWN_TO_A_TOKENIZER = frozenset({"[unk]", "<unk>"})
WORD = re.compile("[^\\W\\d_]+(?:['\u2019][^\\W\\d_]+)*")
FEWEST_KNOWN = 3  # words of a text that tell its language
ACCENTED = 4  # words beyond a to z for each known word of a language: the text is in another one
FEWEST_LETTERS = 6  # of another script that tell it: fewer may be a formula or a name
FIRST = "en"  # the language of a text of which no list knows a word
# Lists of words of others.
WITHIN_OTHERS = frozenset({"before_nouns", "subjects", "before_verbs", "auxiliaries"})
CONTENT_LISTS = frozenset({"verbs"})  # lists of words of content
CLAUSE_ENDS = frozenset(".,;:!?")
HYPHENS = frozenset("-\u2010\u2011")
NO_NOUN = ("ed", "ing", "ly")  # endings of what follows a noun more often than it is one
# Classes of words. A filler is a function word that stands for nothing, or no word at all.
CONTENT, PRONOUN, UNSURE, FILLER = range(4)


@dataclass(frozen=True)
class Language:
    """The function words of a language: those that stand for something said elsewhere, those that
    begin a noun phrase, and all of them. articles: before a noun phrase they are articles, else
    pronouns. possessives: before a noun phrase they are pronouns, else verbs. modifiers: what may
    stand in a noun phrase before its adjectives. before_nouns: prepositions and words of quantity,
    after which a noun needs no determiner (*of water*, *more ice*). clitics: articles, and pronouns
    after a word of subjects or before_verbs, before one of auxiliaries, and at the end of a clause.
    verbs: forms without an ending that tells them, which follow a noun. capitals: nouns are written
    with one."""

    pronouns: frozenset[str]
    determiners: frozenset[str]
    all: frozenset[str]
    articles: frozenset[str] = frozenset()
    possessives: frozenset[str] = frozenset()
    modifiers: frozenset[str] = frozenset()
    before_nouns: frozenset[str] = frozenset()
    clitics: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    before_verbs: frozenset[str] = frozenset()
    auxiliaries: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    capitals: bool = False


# Words of a vocabulary that no class is shown where nobody typed them.
VULGAR = frozenset(
    "arse arsehole ass asshole bastard bastards bitch bitches bollocks boner cock cocks crap cum "
    "cunt dick dicks dildo fag faggot fart farted farting farts fuck fucked fucker fucking fucks "
    "nigga nigger nude nudes orgasm penis piss pissed poop porn porno prick pussy rape raped "
    "retard retarded shit shits shitty slut sluts tits turd vagina wank whore whores".split()
)


def is_fit(label: str) -> bool:
    """True for a word of a vocabulary that may stand in a list of words: no piece of a word or of a
    letter, and not vulgar."""
    return label[:1] not in (CONTINUES, "‹") and label.strip().casefold() not in VULGAR


@cache
def languages() -> Mapping[str, Language]:
    """Every language that has a list, by its code."""
    lists_by_code = tomllib.loads(FILE.read_text("utf-8"))
    languages_by_code = {}
    for code, lists in lists_by_code.items():
        capitals = lists.pop("capitals", False)
        word_sets = {name: frozenset(words.split()) for name, words in lists.items()}
        function_lists = word_sets.keys() - WITHIN_OTHERS - CONTENT_LISTS
        every = frozenset().union(*(word_sets[name] for name in function_lists))
        del word_sets["others"]
        languages_by_code[code] = Language(**word_sets, all=every, capitals=capitals)
    return languages_by_code


@lru_cache(maxsize=50_000)  # of a long text each label is asked for several times
def is_word(label: str) -> bool:
    """True for a label with a letter, a digit or a symbol (an emoji) in it: not for punctuation,
    white space, signs that are named by their number because they cannot be seen, and a mask."""
    if NUMBERED.fullmatch(label) or MASK.fullmatch(label):
        return False
    letters = (letter for letter in label if letter not in WHITE_SPACE)
    categories = ((unicodedata.category(letter)[0], letter) for letter in letters)
    return any(kind in "LN" or (kind == "S" and letter > "\u2190") for kind, letter in categories)


def language_of(labels: tuple[str, ...]) -> str:
    """The code of the language whose list knows most of the words; "" where none knows any."""
    return likely_languages(labels)[0]


@lru_cache(maxsize=1000)
def likely_languages(labels: tuple[str, ...]) -> tuple[str, ...]:
    """The codes of the languages whose lists know most of the words; "" where none knows any."""
    known_counts = _known_counts(labels)
    most = max(known_counts.values())
    return tuple(code for code, count in known_counts.items() if count == most) if most else ("",)


def is_foreign(text: str, code: str) -> bool:
    """True where the list of another language knows more words of a text than that of `code`, and
    at least `FEWEST_KNOWN`; where most letters, at least `FEWEST_LETTERS`, are of no script of
    these languages; and where the English list knows hardly any of the words, of which at least
    `FEWEST_KNOWN` have letters that English has not."""
    letters = [letter for letter in text if letter.isalpha()]
    n_others = sum("LATIN" not in unicodedata.name(letter, "") for letter in letters)
    if n_others >= FEWEST_LETTERS and 2 * n_others > len(letters):
        return True
    text_words = WORD.findall(unicodedata.normalize("NFC", text))
    known_counts = _known_counts(text_words)
    n_accented = sum(any(map(_is_accented, word)) for word in text_words)
    if code == FIRST and n_accented >= max(FEWEST_KNOWN, ACCENTED * known_counts[code]):
        return True
    return max(known_counts.values()) >= max(FEWEST_KNOWN, known_counts[code] + 1)


def _known_counts(labels: Sequence[str]) -> dict[str, int]:
    """The number of words that the list of each language knows."""
    words = [label.casefold().replace("\u2019", "'") for label in labels]
    # of "qu'il" both halves; single letters (John's) are of no language
    parts = [
        part for word in words for part in {word, *_parts(word)} if len(part) > 1 or part == word
    ]
    return {code: sum(word in one.all for word in parts) for code, one in languages().items()}


def classes(labels: Sequence[str]) -> tuple[int, ...]:
    """The class of each word of a text: CONTENT, PRONOUN, UNSURE or FILLER."""
    return _classes(tuple(labels))


@lru_cache(maxsize=1000)  # every text is asked for several times
def _classes(labels: tuple[str, ...]) -> tuple[int, ...]:
    first, *others = (_classes_in(labels, code) for code in likely_languages(labels))
    return tuple(
        FILLER if kind == PRONOUN and any(other[at] != PRONOUN for other in others) else kind
        for at, kind in enumerate(first)
    )


def _classes_in(labels: tuple[str, ...], code: str) -> list[int]:
    """The class of each word of a text of one language."""
    language = languages()[code or FIRST]
    kinds = [_class_of(label, code) for label in labels]
    for at, word in enumerate(map(str.casefold, labels)):
        if word in language.articles or word in language.possessives:
            is_before_noun = _begins_noun_phrase(labels, kinds, at + 1, language)
            kinds[at] = PRONOUN if is_before_noun == (word in language.possessives) else FILLER
        elif word in language.clitics:
            kinds[at] = PRONOUN if _is_object(labels, kinds, at, language) else FILLER
    return kinds


def _is_object(labels: Sequence[str], kinds: Sequence[int], at: int, language: Language) -> bool:
    """True where a clitic is surely an object pronoun and no article: after its verb's subject
    (*il le voit*, but not *voit-il le chat*) or another clitic, before an auxiliary verb (*les a
    vus*), or at the end of a clause (*prends-la.*)."""
    before, after = (
        labels[place].casefold() if 0 <= place < len(labels) else "" for place in (at - 1, at + 1)
    )
    if before in language.subjects:
        return at < 2 or (kinds[at - 2] != CONTENT and labels[at - 2] not in HYPHENS)
    is_last = at > 0 and (not after or after in CLAUSE_ENDS)
    return is_last or before in language.before_verbs or after in language.auxiliaries


def _begins_noun_phrase(
    labels: Sequence[str], kinds: Sequence[int], start: int, language: Language
) -> bool:
    """True where modifiers and words of content lead to a noun, known by its capital; in a text
    without capitals, where they lead to any word of content."""
    has_capitals = _has_capitals(labels)
    for label, kind in zip(labels[start:], kinds[start:]):
        if kind == CONTENT and (label[:1].isupper() or not has_capitals):
            return True
        if kind != CONTENT and label.casefold() not in language.modifiers:
            return False
    return False


def _has_capitals(labels: Sequence[str]) -> bool:
    return any(label[:1].isupper() for label in labels)


def nouns(labels: Sequence[str]) -> tuple[bool, ...]:
    """Mask of the likely nouns, by the words before them: a determiner, a preposition or a word of
    quantity, or one of these and an adjective between, which may be a compound (*deep-sea fish*);
    or by a capital, unless a function word is written so. In a language that writes nouns with
    capitals, by these alone."""
    return _nouns(tuple(labels))


@lru_cache(maxsize=1000)
def _nouns(labels: tuple[str, ...]) -> tuple[bool, ...]:
    language = languages()[language_of(labels) or FIRST]
    kinds = _classes(labels)
    if language.capitals and _has_capitals(labels[1:]):
        return tuple(kind == CONTENT and label[:1].isupper() for label, kind in zip(labels, kinds))
    is_noun = []
    for at, (label, kind) in enumerate(zip(labels, kinds)):
        places = (at - 1, _start_of_compound(labels, at - 1) - 1)
        preceding = [labels[each].casefold() if each >= 0 else "" for each in places]
        is_noun.append(
            kind == CONTENT
            and (
                label[:1].isupper()
                or (
                    preceding[0] in language.determiners
                    and not (preceding[0] in language.clitics and kinds[at - 1] == PRONOUN)
                )
                or (preceding[0] in language.before_nouns and not label.endswith(NO_NOUN))
                or (
                    preceding[1] in language.determiners | language.before_nouns
                    and kinds[at - 1] == CONTENT
                    and not _is_verb(label, labels[at + 1 : at + 2], language)
                )
                or _parts(label.casefold())[0] in language.determiners
            )
        )
    return tuple(is_noun)


def _start_of_compound(labels: Sequence[str], at: int) -> int:
    """Start of the hyphenated compound that ends with a word; its own place in none."""
    while at >= 2 and labels[at - 1] in HYPHENS:
        at -= 2
    return at


def _is_verb(label: str, following: Sequence[str], language: Language) -> bool:
    """True for a word behind a noun that is likely its verb: by its ending, by the list, or by an
    -s before its object, a pronoun or a determiner (*the dog chases it*, *chases a cat*)."""
    after = following[0].casefold() if following else ""
    has_object = after in language.determiners | language.pronouns or after.endswith("ly")
    return (
        label.endswith(NO_NOUN)
        or label.casefold() in language.verbs
        or (label.endswith("s") and has_object)
    )


def without_possessive(noun: str) -> str:
    """A noun without the ending by which it owns something: "Maria" of "Maria’s"."""
    return POSSESSIVE.sub("", noun) or noun


def determiners(labels: Sequence[str]) -> tuple[bool, ...]:
    """Mask of the words that begin a noun phrase: determiners before a word of content."""
    language = languages()[language_of(tuple(labels)) or FIRST]
    kinds = (*classes(labels), FILLER)
    return tuple(
        label.casefold() in language.determiners and kinds[at + 1] == CONTENT
        for at, label in enumerate(labels)
    )


@lru_cache(maxsize=50_000)
def _class_of(label: str, code: str) -> int:
    word = label.casefold()
    if not is_word(label) or word in UNKNOWN_TO_A_TOKENIZER:
        return FILLER
    letters = [letter for letter in word if letter.isalpha()]
    if letters and not all(_is_latin(letter) for letter in letters):
        return UNSURE
    if not letters:  # a number, an emoji
        return CONTENT
    return _by_list(word, label, languages()[code or FIRST])


def _by_list(word: str, label: str, language: Language) -> int:
    word = word.replace("\u2019", "'")
    if word in language.pronouns:
        return PRONOUN
    if word in language.all:
        return FILLER
    parts = [part for part in _parts(word) if part]
    if len(parts) > 1:
        kinds = [_by_list(part, part, language) for part in parts]
        # of "qu'il" and "it's" the pronoun, of "l'enfant" and "John's" the noun
        return CONTENT if CONTENT in kinds else PRONOUN if PRONOUN in kinds else FILLER
    # Single letters and pairs of them say little unless they are written large (EU).
    return FILLER if len(word) < 3 and not (len(label) > 1 and label.isupper()) else CONTENT


def _parts(word: str) -> list[str]:
    return APOSTROPHE.split(word)


def _is_accented(letter: str) -> bool:
    return letter.isalpha() and letter > "z" and _is_latin(letter)


@lru_cache(maxsize=5000)
def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN") or letter in "\u00aa\u00ba"


def holds_foreign(text: str, code: str) -> bool:
    """True for a text that `is_foreign`, and one with at least `FEWEST_KNOWN` words that the lists
    of other languages alone know, or at least `FEWEST_LETTERS` letters of another script."""
    signs = (each for each in text if unicodedata.category(each)[0] in "LM")
    others = sum("LATIN" not in unicodedata.name(each, "LATIN") for each in signs)
    found = {each.casefold() for each in WORD.findall(unicodedata.normalize("NFC", text))}
    alone = {
        each
        for each in found - languages()[code].all
        if len(each) > 1 and any(each in one.all for one in languages().values())
    }
    return len(alone) >= FEWEST_KNOWN or others >= FEWEST_LETTERS or is_foreign(text, code)


def unread_part(name: str, text: str) -> str:
    """The language that a model has read alone, where a text holds another one; else ""."""
    code = model_descriptions.language(name)
    return model_descriptions.LANGUAGES[code] if code and holds_foreign(text, code) else ""


def unread_language(name: str, text: str) -> str:
    """The language that a model has read alone, where a text is in another one; else ""."""
    code = model_descriptions.language(name)
    return model_descriptions.LANGUAGES[code] if code and is_foreign(text, code) else ""
