"""Text to train on: reads the corpora, cleans them, varies the names, and keeps a held-out part that training never sees.

The folder holds `tatoeba_fra/fra-eng.zip`, `tatoeba_deu/deu-eng.zip`, `commonvoice_en_cc0/*.txt` and `gutenberg/*.txt`. None of it
is part of the project; the licences are in NOTICE.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from zlib import crc32

from models.examples import EXAMPLES, TURNED
from models.grammar import MEN, WOMEN

HELD_OUT_PERCENT = 1.0

UNFIT = re.compile(
    r"\b(kill\w*|murder\w*|suicid\w*|rap(e|ed|ist|ing)|sex\w*|porn\w*|naked|nude|whore\w*|prostitut\w*|bitch\w*|fuck\w*|shit\w*|bastard\w*|"
    r"nazi\w*|hitler|cocaine|heroin|marijuana|drugs?|opium|stab(bed|bing)|strangl\w*|tortur\w*|slave\w*|negro\w*|nigg\w*|savages?|"
    r"genocide|terroris\w*|bombs?|hang(ed|ing) (him|her|my)self|genital\w*|breasts|breast|erotic\w*|slut\w*|damn\w*|drunk\w*|vodka|whisk(e)?y|"
    r"injun\w*|jews?|gyps(y|ies)|lynch\w*|corpse\w*|blood(y|ied)?)\b",
    re.IGNORECASE,
)
MALE_IN_TATOEBA, FEMALE_IN_TATOEBA = ("Tom", "John", "Bob"), ("Mary", "Jane", "Alice")


@dataclass(frozen=True)
class Corpus:
    """English text, cleaned: short single `sentences` and longer `paragraphs`."""

    sentences: tuple[str, ...]
    paragraphs: tuple[str, ...]


def read(data: Path) -> tuple[Corpus, Corpus]:
    """The corpora below `data` as (training, held-out). Raises FileNotFoundError where a corpus is missing."""
    rng = Random(0)
    lines = dict.fromkeys([*_tatoeba(data, "fra"), *_tatoeba(data, "deu"), *_common_voice(data)])
    sentences = [vary_names(line, rng) for line in lines if fit(line)]
    paragraphs = [paragraph for paragraph in dict.fromkeys(_gutenberg(data)) if fit(paragraph)]
    train, held_out = (
        Corpus(
            tuple(text for text in sentences if is_held_out(text) is wanted),
            tuple(text for text in paragraphs if is_held_out(text) is wanted),
        )
        for wanted in (False, True)
    )
    return train, held_out


def normal(text: str) -> str:
    """Letters and digits only, lower case: what two spellings of one sentence share."""
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def is_held_out(text: str) -> bool:
    """True for a fixed 1 % of all texts, chosen by their letters, so that a duplicate in other case or punctuation falls on the same side.

    Names are varied before: two copies of a sentence that got other names count as two sentences.
    """
    return crc32(normal(text).encode()) % 10_000 < HELD_OUT_PERCENT * 100


def vary_names(text: str, rng: Random) -> str:
    """The text with the few names that fill Tatoeba (Tom, Mary...) replaced, each by one name throughout."""
    for common, names in ((MALE_IN_TATOEBA, MEN), (FEMALE_IN_TATOEBA, WOMEN)):
        for old in common:
            if old in text:
                text = re.sub(rf"\b{old}\b", rng.choice(names), text)
    return text


def fit(text: str) -> bool:
    """True for a text that may be trained on: nothing violent, sexual or degrading in it, and not one that the app offers."""
    return not UNFIT.search(text) and normal(text) not in _EXAMPLES


_EXAMPLES = frozenset(map(normal, (*EXAMPLES.values(), *TURNED)))


def _tatoeba(data: Path, language: str) -> list[str]:
    archive = data / f"tatoeba_{language}" / f"{language}-eng.zip"
    with zipfile.ZipFile(archive) as files:
        member = next(name for name in files.namelist() if name.split("/")[-1] == f"{language}.txt")
        rows = files.read(member).decode("utf-8").splitlines()
    return [row.split("\t")[0].strip() for row in rows if row]


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


def paragraphs_of(book: str) -> list[str]:
    """The prose paragraphs of a Project Gutenberg text: header, footer, headings, tables of contents and verse left out."""
    body = re.split(r"\*\*\* ?START OF[^\n]*\n", book, maxsplit=1)[-1]
    body = re.split(r"\*\*\* ?END OF|End of (the |this )?Project Gutenberg", body, maxsplit=1)[0]
    blocks = re.split(r"\n\s*\n", body.replace("\r\n", "\n"))
    joined = (re.sub(r"\s+", " ", block.replace("_", "").replace("--", " - ")).strip() for block in blocks)
    return [text for text in joined if len(text) > 60 and text[-1] in ".!?\"'”’" and not text.isupper()]
