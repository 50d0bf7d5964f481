"""Numbers as words, CSV files and the glossary: what a reader computes again, opens elsewhere, or
looks up."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app_harness import panels_on
from streamlit.testing.v1 import AppTest
from table_files import commented
from tolerances import DOUBLE

from explorer.figures import csv, formatting
from explorer.text import glossary
from models.version import VERSION

BY = f"Headlight {VERSION}"
ROOT = Path(__file__).resolve().parent.parent
VALUES = [
    *(10.0**power * digits for power in range(-9, 9) for digits in (1, -1, 4.9996, -9.99951)),
    *(0.0, 1 / 3, 9.99951, -4.9996),
]


@pytest.mark.parametrize("decimals", [0, 1, 2, 3, 4])
def test_no_number_that_is_not_zero_is_written_as_zero(decimals: int) -> None:
    for value in VALUES:
        for written in (
            formatting.fixed(value, decimals),
            formatting.signed(value, decimals),
            formatting.power(value, decimals + 1),
        ):
            said = formatting.parse_number(written)
            assert (said == 0) == (value == 0), (value, written)
            assert math.copysign(1, said) == math.copysign(1, value) or not value
            assert formatting.matches_text(written, value), (value, written)
            assert "-" not in written


def test_shares_are_neither_nothing_nor_all_unless_they_are() -> None:
    for value in (1e-9, 0.0004, 0.9951, 0.9999, 0.99999999):
        assert formatting.percent(value) not in ("0%", "0.0%", "100%", "100.0%")
    assert formatting.percent(1.0) == "100%" and formatting.percent(0.5) == "50%"


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (999.6, 3, "1,000"),
        (999.4, 3, "999"),
        (250, 2, "250"),
        (-999.9, 3, "−1,000"),
        (99_999.7, 3, "100,000"),
        (12.345, 3, "12.3"),
        (2.4e-5, 2, "2.4 × 10⁻⁵"),
        (0, 3, "0"),
    ],
)
def test_a_number_has_its_digits_and_no_more(value: float, digits: int, shown: str) -> None:
    assert formatting.power(value, digits) == shown


def test_one_is_one_nat() -> None:
    assert formatting.plural(1, "nat") == "1 nat"
    assert formatting.plural("1.00", "nat") == "1.00 nats"
    assert formatting.plural(0, "entry", "entries") == "0 entries"


def test_e_to_a_printed_score_is_what_is_printed() -> None:
    for score in np.random.default_rng(0).normal(0, 12, 300):
        result = formatting.power_of_e(score)
        told = formatting.exponent_text(score, result)
        assert formatting.matches_text(result, math.exp(formatting.parse_number(told)))


def test_e_to_what_no_number_holds_is_written_all_the_same() -> None:
    assert formatting.power_of_e(1000) == "1.970 × 10⁴³⁴"
    assert formatting.power_of_e(-1000) == "5.076 × 10⁻⁴³⁵"


def test_parts_of_a_ratio_make_the_ratio_that_is_printed() -> None:
    draw = np.random.default_rng(1)
    for _ in range(300):
        part, rest = np.exp(draw.normal(0, 8, 2))
        said = formatting.weight(part / (part + rest))
        score, first, second = formatting.softmax_texts(math.log(part), math.log(part + rest), said)
        assert formatting.matches_text(
            said, formatting.parse_number(first) / formatting.parse_number(second)
        )
        assert formatting.matches_text(first, math.exp(formatting.parse_number(score)))


HOSTILE = [
    *("=1+1", "+cmd|'/C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "'=1", "''=1", "＝1"),
    *("'", "don't", "a,b", 'say "hi"', "two\nlines", "# no comment", "NA", "null", "None", "nan"),
    *("'NA", "007", "1e5", "-1", "inf", "שלום", "👩‍👩‍👧", "", " ", "a;b", "0 the"),
]


def loaded(file: str) -> pd.DataFrame:
    """The file as anyone loads it."""
    return pd.read_csv(io.BytesIO(file.encode("utf-8")), comment="#")


def test_a_file_gives_back_every_word_and_every_number() -> None:
    values = np.random.default_rng(2).normal(size=len(HOSTILE))
    made = csv.to_csv({"#word": HOSTILE, "value": values}, ("A title", "Text: =1 # x", 'a, ;"=1'))
    found = loaded(made).rename(columns={"#word": "word"})
    words = [csv.unescape_cell(each) if isinstance(each, str) else "" for each in found["word"]]
    assert words == HOSTILE
    assert found["value"].to_numpy() == pytest.approx(values, rel=DOUBLE)  # pandas' last digit
    assert commented(made)[0] == ["A title", "Text: =1 # x", "a, ;\"'=1", BY]
    assert csv.without_comments(csv.without_comments(made)) == csv.without_comments(made)


def test_no_cell_of_a_file_is_a_live_formula_and_numbers_stay_numbers() -> None:
    file = csv.to_csv({"=word": HOSTILE, "n": [-1.5] * len(HOSTILE)}, ("=about",))
    found = loaded(file)
    cells = [*found.columns, *found.iloc[:, 0].dropna().astype(str)]
    for said in ("=1", "a,=1", 'a; "=1', "a\t@x", 'a,"",+1', "a, －1"):
        (line, _), _ = commented(csv.to_csv({"a": [1]}, (said,)))
        begun = re.split(r"[,;\t]", f"# {line}")
        assert not [each for each in begun if re.match(r"[\s\"]*[=+\-@＝－]", each)], line
    assert not [each for each in cells if re.match(r"\s*[=+\-@\t\r＝]", each)]
    assert found["n"].dtype == float


def test_numbers_that_do_not_exist_are_empty_and_empty_tables_keep_their_words() -> None:
    found = loaded(csv.to_csv({"a": [1, None], "b": [float("nan"), 2.5]}))
    assert found.isna().to_numpy().tolist() == [[False, True], [True, False]]
    made = csv.to_csv({"a": [], "b": []}, ("What it is",))
    assert list(loaded(made).columns) == ["a", "b"]
    assert commented(made) == (["What it is", BY], [])


def test_tables_of_several_kinds_are_one_table() -> None:
    found = loaded(csv.to_csv(csv.stacked([("x", {"a": [1, 2]}), ("y", {"b": np.array([3.5])})])))
    assert found["table"].tolist() == ["x", "x", "y"]
    assert found["a"].dropna().tolist() == [1, 2] and found["b"].dropna().tolist() == [3.5]


def test_the_glossary_is_short_complete_in_itself_and_found_by_any_spelling() -> None:
    terms = glossary.terms()
    assert len(terms) >= 40
    for wanted in ("head", "query", "[CLS]", "Softmax", "residual stream", "layernorm", "logit"):
        assert glossary.term(wanted), wanted
    spellings = [each.casefold() for one in terms.values() for each in (one.name, *one.also)]
    assert len(spellings) == len(set(spellings))
    for one in terms.values():
        assert 1 <= len(re.findall(r"[.?](?= [A-Z√e]|$)", one.means)) <= 3, one.name
        assert len(one.means) <= 190 and one.means.endswith("."), one.name
        assert all(glossary.term(other) for other in one.see), one.name
    assert glossary.term("no such word") is None
    with pytest.raises(KeyError):
        glossary.meaning("no such word")


def test_the_terms_of_a_text_are_explained_and_everyday_words_are_not() -> None:
    text = "**Entropy** of a row after the softmax; \\[CLS\\] is a sink. Bits of a broken sentence"
    assert glossary.used(text) == ("entropy", "softmax", "[CLS]", "sink")
    assert glossary.used(text, most=2) == ("entropy", "softmax")
    told = glossary.explained("A sentence without any", "head")
    assert told == glossary.meaning("head") and glossary.explained("A sentence without any") is None
    assert [name for name, *_ in glossary.terms_in(text)] == list(glossary.used(text))
    for name, means, spellings in glossary.terms_in(text):
        assert means == glossary.term(name).means and spellings
    assert glossary.used("The word “softmax” attends to “[CLS]”.") == ("[CLS]",)
    assert glossary.used("QK and OV circuits of a KV cache") == ("QK and OV circuits", "KV cache")
    for spelling in glossary.EVERYDAY:
        assert glossary.term(spelling), spelling


SYMBOL = r'"data-symbol": "([^"]+)", "title": "([^"]+)"'  # of a formula, and what it means


@pytest.mark.slow
def test_the_first_page_explains_its_terms_on_hover() -> None:
    app = AppTest.from_file(str(ROOT / "explorer" / "app" / "main.py"), default_timeout=120)
    app.session_state["why this name"], app.query_params["verify"] = True, "1"
    app.run()
    told = "\n".join(getattr(getattr(each, "proto", None), "help", "") for each in app.main)
    in_formulas = json.dumps([panel["formulas"] for panel in panels_on(app)])
    defined = " ".join(map(" ".join, re.findall(SYMBOL, in_formulas)))
    for word in ("head", "layer", "weight", "query", "key", "softmax", "entropy", "sink"):
        assert word in defined or glossary.meaning(word) in told, word
