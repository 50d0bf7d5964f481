"""Many sentences, in a real browser: files from the reader's disk, and their sentences."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from driver import MARKS, Visitor
from table_files import commented

from explorer.app.views.sentences import MOST_CHARACTERS

pytestmark = MARKS
SAID = ["The cat, a dog <b>sat</b>.", 'He said "go", twice.', "It was so tired."]


def test_a_file_is_loaded_and_its_sentences_are_read(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/?tab=sentences")

    def load(name: str, delimiter: str, said: list[str]) -> None:
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            rows = [["n", "sentence"], *([str(at), one] for at, one in enumerate(said))]
            csv.writer(file, delimiter=delimiter).writerows(rows)
        page.locator("input[type=file]").set_input_files(tmp_path / name)

    def chosen() -> str:
        box = page.get_by_test_id("stSelectbox").filter(has_text="Column to read")
        return box.evaluate("e => e.innerText + (e.querySelector('input')?.value ?? '')")

    page.get_by_role("button", name="Sentences").click()
    page.get_by_role("button", name="Load a file").wait_for()
    long = [f"{at}: {'the cat, and the dog. ' * 40}" for at in range(MOST_CHARACTERS // 500)]
    load("long.csv", ",", long)
    page.wait_for_selector("text=more than 150,000 characters")
    assert "sentence" in chosen(), "a table that was cut in a row is a table still"
    n = (MOST_CHARACTERS - len("n,sentence\n")) // (len(long[100]) + len("100,\n") + 2)
    assert 160 < n < 200 and page.get_by_role("button", name=f"Read {n}", exact=False).count()

    load("short.csv", ";", SAID)
    page.get_by_role("button", name="Read 3 sentences").click()
    page.wait_for_selector("text=of 3 sentences")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    read = visitor.export(re.compile("Sentences with the highest.* as CSV")).read_text("utf-8")
    assert sorted(row["sentence"] for row in commented(read)[1]) == sorted(SAID)

    page.get_by_role("button", name="Sentences").click()
    assert "sentence" in chosen()
    load("short.txt", ",", SAID[:2])
    page.wait_for_selector("text=Read 3 sentences")
    assert "Whole lines" in chosen(), "only a file that is called one is a table unasked"

    field = page.get_by_label("Sentences, one per line")
    (tmp_path / "old *one*.txt").write_bytes("Le café était noir.".encode("latin-1"))
    page.locator("input[type=file]").set_input_files(tmp_path / "old *one*.txt")
    page.wait_for_selector("text=old *one*.txt is not in UTF-8")
    assert SAID[1] in field.input_value().replace('""', '"'), "what the field had stays"
    (tmp_path / "marked.txt").write_text("Le café était noir.", "utf-8-sig")
    page.locator("input[type=file]").set_input_files(tmp_path / "marked.txt")
    page.wait_for_selector("text=Read 1 sentence")
    assert field.input_value() == "Le café était noir."
    assert not page.get_by_text("is not in UTF-8").count()
