"""Text to train on: reads the corpora, cleans them, varies the names, and keeps a held-out part
that training never sees.

The folder holds `tatoeba_fra/fra-eng.zip`, `tatoeba_deu/deu-eng.zip`, `commonvoice_en_cc0/*.txt`,
`gutenberg/*.txt` and
`gutenberg_more/*.txt.gz`. None of it is part of the project; the licences are in NOTICE.
"""

from __future__ import annotations

import gzip
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from zlib import crc32

from models.example_texts import EXAMPLES, REORDERED_TEXTS
from models.training import heldout_sentences
from models.training.grammar import MEN, WOMEN

HELD_OUT_PERCENT = 1.0

UNSUITABLE = re.compile(
    r"\b(kill\w*|murder\w*|suicid\w*|rap(e|ed|ist|ing)|sex\w*|porn\w*|naked|nude|whore\w*|"
    r"prostitut\w*|bitch\w*|fuck\w*|shit\w*|bastard\w*|"
    r"nazi\w*|hitler|cocaine|heroin|marijuana|drugs?|opium|stab(bed|bing)|strangl\w*|tortur\w*|"
    r"slave\w*|negro\w*|nigg\w*|savages?|"
    r"genocide|terroris\w*|bombs?|hang(ed|ing) "
    r"(him|her|my)self|genital\w*|breasts|breast|erotic\w*|slut\w*|damn\w*|drunk\w*|vodka|"
    r"whisk(e)?y|"
    r"injun\w*|jews?|gyps(y|ies)|lynch\w*|corpse\w*|blood(y|ied)?)\b",
    re.IGNORECASE,
)
UNSUITABLE_FRENCH = re.compile(
    r"\b(tu(er|é|ée|és|e|ent|ait|a|ons)\b(?= "
    r"(mon|ton|son|le|la|les|un|une|quelqu|tout|des|Tom|Marie|l'|d'))|meurtr\w*|suicid\w*|viol(er|"
    r"é|ée|eur)|sexe|sexuel\w*|"
    r"nue?s?|putain\w*|pute|salope|merde|connard|conne?|baiser?|bordel|cul|chier|nazi\w*|drogues?|"
    r"cocaïne|ivres?|soûl\w*|saoul\w*|sang|sanglant\w*|esclav\w*|juifs?)\b",
    re.IGNORECASE,
)
MALE_IN_TATOEBA, FEMALE_IN_TATOEBA = ("Tom", "John", "Bob"), ("Mary", "Jane", "Alice")
NAMES_IN_TATOEBA = re.compile(rf"\b({'|'.join((*MALE_IN_TATOEBA, *FEMALE_IN_TATOEBA))})\b")
IN_FRENCH = {"Mary": "Marie", "John": "John"}
# Names that begin with a consonant: "de Ram", but "d'Ali".
FOR_FRENCH = tuple(
    tuple(name for name in names if name[0] not in "AEIOU") for names in (MEN, WOMEN)
)


@dataclass(frozen=True)
class Corpus:
    """English text, cleaned: short single `sentences` and longer `paragraphs`."""

    sentences: tuple[str, ...]
    paragraphs: tuple[str, ...]


def read(data: Path) -> tuple[Corpus, Corpus]:
    """The corpora below `data` as (training, held-out). Raises FileNotFoundError where a corpus is
    missing."""
    rng = Random(0)
    lines, paragraphs = _suitable(data)
    sentences = [vary_each_name(line, rng) for line in lines]
    train, held_out = (
        Corpus(
            tuple(text for text in sentences if is_held_out(text) is wanted),
            tuple(text for text in paragraphs if is_held_out(text) is wanted),
        )
        for wanted in (False, True)
    )
    return train, held_out


def _suitable(data: Path) -> tuple[list[str], list[str]]:
    """The sentences and the paragraphs that suit, each once."""
    lines = (*_tatoeba(data, "fra"), *_tatoeba(data, "deu"), *_common_voice(data))
    sentences, paragraphs = (
        list(filter(is_suitable, dict.fromkeys(texts))) for texts in (lines, _gutenberg(data))
    )
    return sentences, paragraphs


@dataclass(frozen=True)
class Pairs:
    """English sentences and their French translations, one to one; an English sentence may come
    several times."""

    english: tuple[str, ...]
    french: tuple[str, ...]


def read_pairs(data: Path) -> tuple[Pairs, Pairs]:
    """Tatoeba's English-French pairs as (training, held-out), cleaned, divided by `split.divide` on
    the English side; a training pair shares no French sentence with the held-out ones either. Names
    are varied in the training pairs, the same on both sides."""
    rows = [
        row
        for row in _tatoeba_rows(data, "fra")
        if is_suitable(row[0]) and not UNSUITABLE_FRENCH.search(row[1])
    ]
    train, held_out = divide([english for english, _ in rows])
    held_out_french = {folded(rows[at][1]) for at in held_out}
    rng = Random(0)
    training_rows = [
        vary_names(rows[at], rng, *FOR_FRENCH)
        for at in train
        if folded(rows[at][1]) not in held_out_french
    ]
    training_pairs, held_out_pairs = (
        Pairs(tuple(one for one, _ in side), tuple(other for _, other in side))
        for side in (training_rows, [rows[at] for at in held_out])
    )
    return training_pairs, held_out_pairs


def read_divided(
    data: Path, men: tuple[str, ...] = MEN, women: tuple[str, ...] = WOMEN
) -> tuple[Corpus, Corpus]:
    """The corpora as (training, held-out), the sentences divided by `split.divide`, two names in a
    sentence never become one."""
    lines, paragraphs = _suitable(data)
    train, held_out = divide(lines)
    rng = Random(0)
    return (
        Corpus(
            tuple(vary_names((lines[at],), rng, men, women)[0] for at in train),
            tuple(text for text in paragraphs if not is_held_out(text)),
        ),
        Corpus(
            tuple(lines[at] for at in held_out),
            tuple(text for text in paragraphs if is_held_out(text)),
        ),
    )


@dataclass(frozen=True)
class Library(Corpus):
    """A Corpus and more paragraphs of old prose, several times as many: `books`."""

    books: tuple[str, ...]


def read_library(data: Path, men: tuple[str, ...] = MEN, women: tuple[str, ...] = WOMEN) -> Library:
    """All English text below `data` to train on, with the names `men` and `women` for the few that
    fill Tatoeba: without what `read` or `read_divided` holds out, without near duplicates of the
    latter's held-out sentences, and without a paragraph that shares eight words in a row with a
    held-out one."""
    (_, first_held_out), (train, held_out) = read(data), read_divided(data, men, women)
    held_out_keys = set(map(normalized, (*first_held_out.sentences, *held_out.sentences)))
    paragraphs = (*train.paragraphs, *held_out.paragraphs)
    paragraph_keys = set(map(normalized, paragraphs))
    held_out_runs = {run for text in held_out.paragraphs for run in word_runs(text)}
    books = (text for text in dict.fromkeys(_gutenberg_more(data)) if is_suitable(text))
    return Library(
        tuple(text for text in train.sentences if normalized(text) not in held_out_keys),
        tuple(text for text in train.paragraphs if held_out_runs.isdisjoint(word_runs(text))),
        tuple(
            text
            for text in books
            if not is_held_out(text)
            and normalized(text) not in paragraph_keys
            and held_out_runs.isdisjoint(word_runs(text))
        ),
    )


def word_runs(text: str, n: int = 8) -> set[tuple[str, ...]]:
    """Every n words in a row."""
    words = normalized(text).split()
    return set(zip(*(words[at:] for at in range(n))))


def normalized(text: str) -> str:
    """Letters and digits only, lower case: what two spellings of one sentence share."""
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def is_held_out(text: str) -> bool:
    """True for a fixed 1 % of all texts, chosen by their letters, so that a duplicate in other case
    or punctuation falls on the same side.

    Names are varied before: two copies of a sentence that got other names count as two sentences.
    """
    return crc32(normalized(text).encode()) % 10_000 < HELD_OUT_PERCENT * 100


def vary_each_name(text: str, rng: Random) -> str:
    """The text with the few names that fill Tatoeba replaced, each by one name throughout, and
    drawn by itself: two people may get one name.

    The shipped encoder's text was made so, and its held-out part with it.
    """
    for common, names in ((MALE_IN_TATOEBA, MEN), (FEMALE_IN_TATOEBA, WOMEN)):
        for old in common:
            if old in text:
                text = re.sub(rf"\b{old}\b", rng.choice(names), text)
    return text


def vary_names(
    texts: tuple[str, ...], rng: Random, men: tuple[str, ...], women: tuple[str, ...]
) -> tuple[str, ...]:
    """A sentence (or a sentence and its translation) with the few names that fill Tatoeba replaced,
    the same on both sides.

    People stay as many as they were, and men men and women women. Nothing is replaced where a name
    is not on every side.
    """
    names: dict[str, None] = dict.fromkeys(NAMES_IN_TATOEBA.findall(texts[0]))
    if any(
        not re.search(rf"\b{IN_FRENCH.get(name, name)}\b", text)
        for name in names
        for text in texts[1:]
    ):
        return texts
    male = [name for name in names if name in MALE_IN_TATOEBA]
    replacements = dict(
        zip(
            [*male, *(name for name in names if name not in male)],
            [*rng.sample(men, len(male)), *rng.sample(women, len(names) - len(male))],
        )
    )
    varied = [NAMES_IN_TATOEBA.sub(lambda match: replacements[match[0]], texts[0])]
    for text in texts[1:]:
        by_old: dict[str, str] = {
            IN_FRENCH.get(name, name): fresh for name, fresh in replacements.items()
        }
        varied.append(
            re.sub(rf"\b({'|'.join(by_old)})\b", lambda match: by_old[match[0]], text)
            if by_old
            else text
        )
    return tuple(varied)


def is_suitable(text: str) -> bool:
    """True for a text that may be trained on: nothing violent, sexual or degrading in it, and none
    that the app offers or that models are measured on."""
    return not UNSUITABLE.search(text) and normalized(text) not in _HELD_OUT_KEYS


HELD_OUT_TEXTS = (*EXAMPLES.values(), *REORDERED_TEXTS, *heldout_sentences.TEXTS)
_HELD_OUT_KEYS = frozenset(map(normalized, HELD_OUT_TEXTS))


def _tatoeba(data: Path, language: str) -> list[str]:
    return [row[0] for row in _tatoeba_rows(data, language)]


def _tatoeba_rows(data: Path, language: str) -> list[tuple[str, str]]:
    archive = data / f"tatoeba_{language}" / f"{language}-eng.zip"
    with zipfile.ZipFile(archive) as files:
        member = next(name for name in files.namelist() if name.split("/")[-1] == f"{language}.txt")
        rows = files.read(member).decode("utf-8").splitlines()
    return [
        (parts[0].strip(), parts[1].strip()) for parts in (row.split("\t") for row in rows if row)
    ]


def _common_voice(data: Path) -> list[str]:
    files = sorted((data / "commonvoice_en_cc0").glob("*.txt"))
    if not files:
        raise FileNotFoundError(f"no sentences in {data / 'commonvoice_en_cc0'}")
    lines = (line.strip() for file in files for line in file.read_text("utf-8").splitlines())
    return [line for line in lines if len(line) > 3]


def _gutenberg(data: Path) -> list[str]:
    files = sorted((data / "gutenberg").glob("*.txt"))
    if not files:
        raise FileNotFoundError(f"no books in {data / 'gutenberg'}")
    return [paragraph for file in files for paragraph in paragraphs_of(file.read_text("utf-8-sig"))]


def _gutenberg_more(data: Path) -> list[str]:
    files = sorted((data / "gutenberg_more").glob("*.txt.gz"))
    if not files:
        raise FileNotFoundError(f"no books in {data / 'gutenberg_more'}")
    return [
        paragraph
        for file in files
        for paragraph in prose(gzip.decompress(file.read_bytes()).decode("utf-8"))
        if "Gutenberg" not in paragraph and "[" not in paragraph
    ]


def paragraphs_of(book: str) -> list[str]:
    """The prose paragraphs of a Project Gutenberg text: header, footer, headings, tables of
    contents and verse left out."""
    body = re.split(r"\*\*\* ?START OF[^\n]*\n", book, maxsplit=1)[-1]
    body = re.split(r"\*\*\* ?END OF|End of (the |this )?Project Gutenberg", body, maxsplit=1)[0]
    return prose(body)


def prose(body: str) -> list[str]:
    """The paragraphs of a text that are prose."""
    blocks = re.split(r"\n\s*\n", body.replace("\r\n", "\n"))
    joined = (
        re.sub(r"\s+", " ", block.replace("_", "").replace("--", " - ")).strip() for block in blocks
    )
    return [
        text for text in joined if len(text) > 60 and text[-1] in ".!?\"'”’" and not text.isupper()
    ]


PER_MILLE = 10
FEWEST_WORDS, MOST_CROWDED = 4, 40
OTHER_NAMES = (
    "Tom",
    "John",
    "Bob",
    "Mary",
    "Jane",
    "Alice",
    "Jack",
    "Bill",
    "Jim",
    "Mike",
    "Marie",
    "Jean",
    "Linda",
    "Ken",
    "Ann",
)
NAME = re.compile(rf"\b({'|'.join(sorted({*MEN, *WOMEN, *OTHER_NAMES}))})\b")
SHORT_FORMS = (
    ("n't", " not"),
    ("'re", " are"),
    ("'ve", " have"),
    ("'ll", " will"),
    ("'m", " am"),
    ("'d", " would"),
    ("'s", " is"),
)


def folded(text: str) -> tuple[str, ...]:
    """The words by which two sentences are compared."""
    text = (
        NAME.sub("nnn", text.replace("’", "'"))
        .lower()
        .replace("can't", "cannot")
        .replace("won't", "will not")
    )
    for short, long in SHORT_FORMS:
        text = text.replace(short, long)
    return tuple(re.sub(r"[0-9]+", "000", word) for word in re.findall(r"[^\W_]+", text))


def divide(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """(training, held-out): places in `texts`. Of the sentences of at least 4 words a fixed share,
    chosen by their letters, is held out; what is nearly the same as one of them belongs to neither.

    A sentence with more than 40 near duplicates is trained on instead: holding it out would cost a
    whole family of sentences.
    """
    words = [folded(text) for text in texts]
    by_pattern: dict[int, list[int]] = {}
    for at, sentence in enumerate(words):
        for pattern in _patterns(sentence):
            by_pattern.setdefault(pattern, []).append(at)
    held_out, dropped = set(), set()
    for at, sentence in enumerate(words):
        if len(sentence) < FEWEST_WORDS or crc32(" ".join(sentence).encode()) % 1000 >= PER_MILLE:
            continue
        near_duplicates = {
            other for pattern in _patterns(sentence) for other in by_pattern[pattern]
        }
        if len({words[other] for other in near_duplicates}) <= MOST_CROWDED:
            held_out.add(at)
            dropped |= near_duplicates
    return [at for at in range(len(texts)) if at not in dropped and at not in held_out], sorted(
        held_out
    )


def _patterns(words: tuple[str, ...]) -> set[int]:
    """Two sentences share one of these if they are near duplicates: the sentence, and it with each
    word dropped or left open."""
    return (
        {hash(words)}
        | {hash((*words[:at], *words[at + 1 :])) for at in range(len(words))}
        | {hash((*words[:at], None, *words[at + 1 :])) for at in range(len(words))}
    )
