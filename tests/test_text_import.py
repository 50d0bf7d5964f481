"""The sentences of what was pasted or loaded: what is read of it, line by line or column by
column."""

from __future__ import annotations

import csv
import io

import pytest

from explorer.analysis import corpus

SAID = ("The cat, a dog; both sat.", 'c "d"', "</script>", "two\tparts")


def written(delimiter: str, said: tuple[str, ...] = SAID) -> str:
    """A table as other programs write it: the sentences in the second of three columns."""
    file = io.StringIO()
    rows = [("id", "said", "by"), *((str(at), one, "me") for at, one in enumerate(said))]
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


def test_lines_are_read_as_they_are() -> None:
    assert corpus.lines_of("\ufeffone\r\n\n  two  words \n") == ("one", "two words")
    commas = "The cat, a dog sat.\nThe man, a boy ran.\nHello, world again"
    assert corpus.lines_of(commas) == tuple(commas.splitlines())
    assert [len(each) for each in corpus.lines_of("x" * 5000)] == [corpus.LONGEST_LINE]


@pytest.mark.parametrize(
    "text", ["one, two\nthree, four, five\nsix", "no table\nat all", "a,a\nb,c"]
)
def test_what_is_no_table_has_no_columns(text: str) -> None:
    assert corpus.columns_of(text) == () and corpus.widest_column(text) == ""


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_a_column_is_read_whatever_stands_between_cells(delimiter: str, end: str) -> None:
    text = "\ufeff" + written(delimiter).replace("\r\n", end) + end
    assert corpus.columns_of(text) == ("id", "said", "by") and corpus.widest_column(text) == "said"
    assert corpus.lines_of(text, "said") == tuple(" ".join(each.split()) for each in SAID)


def test_numbers_with_commas_and_bare_quotation_marks_are_no_hindrance() -> None:
    numbers = "id;said;n\n1;He sat.;0,5\n2;She ran.;1,5\n"
    assert corpus.lines_of(numbers, "said") == ("He sat.", "She ran.")
    bare = 'said\tid\n"Go," he said.\t1\n"Stay.\t2\n'
    assert corpus.lines_of(bare, "said") == ('"Go," he said.', '"Stay.')


def test_a_cell_of_several_lines_is_one_sentence() -> None:
    assert corpus.lines_of(written(",", ("two\nlines", "one")), "said") == ("two lines", "one")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_of_a_table_that_was_cut_every_whole_row_is_read_and_no_other(delimiter: str) -> None:
    said = ("first", "two\nlines", 'c "d", e', "the last")
    text = written(delimiter, said).replace("\r\n", "\n")
    ends = [text.index(f"{at}{delimiter}") for at in range(len(said))] + [len(text)]
    for end in range(ends[1], len(text)):
        kept = corpus.complete_rows(text[:end])
        n = sum(at <= end for at in ends[1:])
        assert corpus.lines_of(kept, "said") == tuple(" ".join(each.split()) for each in said[:n])


def test_of_a_table_the_fullest_column_is_meant_and_a_very_wide_one_is_none() -> None:
    rows = ["id\tsaid\tyear", "1\tThe cat sat.\t1999", "2\tIt ran home.\t2001"]
    assert corpus.widest_column("\n".join(rows)) == "said"
    assert corpus.widest_column("just a line") == ""
    wide = "\n".join("\t".join(f"{row}c{at}" for at in range(6000)) for row in range(10))
    assert corpus.table_of(wide) is None and corpus.widest_column(wide) == ""


def test_of_lines_that_were_cut_the_last_one_goes() -> None:
    assert corpus.complete_rows('He said "go.\nShe ran.\nThey sa') == 'He said "go.\nShe ran.'
    assert corpus.complete_rows("one long line") == "one long line"
