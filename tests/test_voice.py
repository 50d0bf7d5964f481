"""The voice of the sentences on screen: the field's words, and sentences of at most 25 words."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from app_harness import ROOT, page_at
from conftest import on_page
from streamlit.testing.v1 import AppTest

from explorer.components import codec
from explorer.wording import templates as templates_of

MOST_WORDS = 25
# Phrases for which the field has another word, as patterns: "attends to", "predicts", "rotates",
# "uniform attention", "ablate", "baseline" and the like.
PRIVATE = (
    r"look(s|ed|ing)? at\b",
    r"\blooking (is|was)\b",
    r"says (a list|what comes next)",
    r"goes on with",
    r"looks? (back|ahead|for|near|far|everywhere|alike|nearest)\b",
    r"adds? up to 1\b",
    r"\beven rows?\b",
    r"chance would give",
    r"what chance gives",
    r"no more than luck",
    r"worth a look",
    r"\btwins?\b(?!-)",
    r"\bpushed by\b",
    r"pushes (up|down)",
    r"\bhabits?\b",
    r"said (before|twice|once)",
    r"\bin sight\b",
    r"\b(is|be|are) silent\b",
    r"\bsilenced\b",
    r"\bswitched (off|on)\b",
    r"turns? (most|the vector|a word|by)\b",
    r"what (it|they|each|attention) wrote for",
    r"head writes\b",
    r"writes nothing",
    r"hands? (over|out)\b",
    r"\bhears\b",
    r"who is heard",
    r"take (this|a) weight apart",
    r"one's way|on its way|whole way of",
    r"site by site",
    r"has moved\b",
    r"what lies beside what",
    r"nothing is left out",
    r"fills the gap",
    r"says no words",
    r"predicts no words",
    r"without earlier weights",
    r"a class that follows",
    r"sheet to print",
    r"go on with a list",
    r"as unsure as",
    r"the way of that",
    r"ends wobble",
    r"has no part in it",
    r"one a line",
)
FOUND = re.compile("|".join(PRIVATE), re.IGNORECASE)
TEXTS = tuple(ROOT / "explorer" / each for each in ("text", "wording"))
# Sentences that the app offers as texts, and lines of Python.
APART = ("text/example_contexts.py", "models/example_texts.py")
# Choices and keys in TOML that nobody reads on screen.
UNREAD = {"id", "page", "kinds", "systems", "note", "kind", "bound", "also", "see", "everyday"}


def read_aloud(value: object, place: str) -> Iterator[tuple[str, str]]:
    """Every text of a TOML file that is shown, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from read_aloud(each, f"{place}.{at}")
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in UNREAD or isinstance(each, dict):
                yield from read_aloud(each, f"{place}.{name}")


def templates() -> list[tuple[str, str]]:
    return [
        each
        for folder in TEXTS
        for file in sorted(folder.rglob("*.toml"))
        for each in read_aloud(tomllib.loads(file.read_text("utf-8")), file.stem)
    ]


def sentences(text: str) -> list[str]:
    """A text in sentences: formulas in Markdown tables and line breaks end one too."""
    return re.split(r"(?<=[.?!;:])\s+|\n|\|", text)


@cache
def constants(file: Path) -> list[tuple[str, str]]:
    """The texts in a file of Python, docstrings left out, with their places; a formatted text
    without its slots."""
    texts = []
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    bare = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
    for each in nodes:
        parts = each.values if isinstance(each, ast.JoinedStr) else [each]
        said = "…".join(
            part.value
            for part in parts
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        )
        if " " in said.strip() and id(each) not in bare:
            texts.append((f"{file.relative_to(ROOT)}:{each.lineno}", said))
    return texts


def files() -> list[Path]:
    """The modules that write sentences of their own."""
    folders = ("analysis", "text", "figures", "app/views", "app/layout", "panels")
    found = [file for name in folders for file in (ROOT / "explorer" / name).rglob("*.py")]
    found += (ROOT / "pages").glob("*.py")
    # Training writes to its console, and hands out measures by names that are kept in files.
    found += (each for each in (ROOT / "models").rglob("*.py") if "training" not in each.parts)
    return sorted(each for each in found if not any(part in str(each) for part in APART))


def test_no_template_is_longer_than_a_breath_or_has_a_private_word() -> None:
    every = templates()
    assert len(every) > 300
    assert not [(place, text) for place, text in every if FOUND.search(text)]
    parts = [(place, said) for place, text in every for said in sentences(text)]
    assert not [(place, said) for place, said in parts if len(said.split()) > MOST_WORDS]


@pytest.mark.slow
def test_no_sentence_in_python_has_a_private_word() -> None:
    every = [each for file in files() for each in constants(file)]
    assert len(every) > 1000
    assert not [(place, text) for place, text in every if FOUND.search(text)]


# Words that are handed to a model, and the help of the command line.
TO_MODELS = {"This is about the {}.", "I love to eat pizza."}
WITH_SENTENCES = {"explorer/cli.py"}


def is_sentence(text: str) -> bool:
    """True for five words and more with a capital and the end of a sentence, without markup."""
    ends = re.search(r"\w\S*[.?!](?= [A-Z…“*]|$)", text)
    plain = not re.search(r"[<>\n]", text)
    return plain and ends is not None and len(text.split()) > 4 and any(map(str.isupper, text))


@pytest.mark.slow
def test_sentences_on_screen_are_templates() -> None:
    """Errors for programmers are no sentences: they begin in lower case and end without a stop."""
    sources = [*(ROOT / "explorer").rglob("*.py"), *(ROOT / "pages").glob("*.py")]
    written = [
        (place, text)
        for file in sources
        if file.relative_to(ROOT).as_posix() not in WITH_SENTENCES
        for place, text in constants(file)
        if is_sentence(text) and text not in TO_MODELS
    ]
    assert len(sources) > 100 and not written


MODULES = sorted((ROOT / "explorer" / "components").glob("*.js"))


def test_sentences_that_the_browser_writes_are_templates() -> None:
    for module in MODULES:
        code = re.sub(r"(?m)/\*[\s\S]*?\*/|^\s*//.*|\s//.*$", "", module.read_text("utf-8"))
        texts = [each for pair in re.findall(r'"([^"\n]*)"|`([^`]*)`', code) for each in pair]
        written = [re.sub(r"\$\{[^}]*\}", "…", text) for text in texts]
        assert not [text for text in written if is_sentence(text)], module.stem


def test_the_browser_asks_for_sentences_that_there_are() -> None:
    """Each by its name, and each template is asked for."""
    every, named = templates_of.all_of("browser"), set()
    for module in MODULES:
        code = module.read_text("utf-8")
        parts = dict(re.findall(r"const (\w+) = sentences\(\"(\w+)\"\);", code))
        for part in re.findall(r"sentences\(\"(\w+)\"\)", code):
            ends = re.findall(r"\$\{\w+\}(_\w+)`", code)  # of several names
            several = {each for each in every[part] if each.endswith(tuple(ends))}
            asked = set(re.findall(r'"(\w+)"', code)) & every[part].keys() | several
            named |= {(part, name) for name in asked}
        for variable, part in parts.items():
            direct = re.findall(rf'\b{variable}\(\s*"(\w+)"', code)
            assert {*direct} <= every[part].keys(), module.stem
    assert named == {(part, name) for part in every for name in every[part]}


def test_a_sentence_is_known_from_a_label() -> None:
    for sentence in (
        "Each patch is one forward pass.",
        "The first … of … are read.",
        "“…” is one byte of a character. Characters are read byte by byte",
        "Does this head attend to it?",
    ):
        assert is_sentence(sentence)
    for label in ("Add an edit", "no panel is called …; there are …", "Layer 0, head 5: previous"):
        assert not is_sentence(label)


def test_the_words_of_the_field_are_not_forbidden() -> None:
    for good in (
        "“it” attends to “animal” with weight 0.72",
        "Each row sums to 1.",
        "Equal shares would be 0.6%.",
        "Largest contribution: layer 3, head 7",
        "Zero-ablate",
    ):
        assert not FOUND.search(good)
    for bad in ("it looks at animal", "where an even row would give 0.6%", "Worth a look:"):
        assert FOUND.search(bad)


# ---- what pages show ---------------------------------------------------------------------------

# Of each place a tab whose sentences are put together of many parts.
TABS = ("weight", "embeddings", "translate", "edit", "compare", "checkpoints", "lessons", "claims")
MODELS = {"checkpoints": "induction", "translate": "translator"}


def shown(app: AppTest) -> Iterator[str]:
    """The texts of a page: Streamlit's own, and those that it sends to its views."""
    for kind in ("title", "header", "subheader", "markdown", "caption", "info", "warning"):
        yield from (each.value for each in app.get(kind))
    yield from (each.label for each in app.button)
    for each in on_page(app):
        yield from strings(codec.decode(each.proto.bytes)[0])


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


@pytest.mark.slow
@pytest.mark.parametrize("tab", TABS)
def test_a_tab_shows_no_private_word(tab: str) -> None:
    text = "The old dog saw a small bird near the river."
    app = page_at(tab, text=text, model=MODELS.get(tab, "encoder"))
    assert not app.exception
    told = list(shown(app))
    assert len(told) > 3 and not [each for each in told if FOUND.search(each)]
