"""The documents name every page, setting, link parameter and public function, and no other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import headlight
from docs import glossary, reference, why_this_weight
from explorer.app.state import url_state
from explorer.panels.spec import Panel
from explorer.text import lesson, places
from models.contract import edits
from models.contract.model import Model
from tests import clone

ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "docs/reference.md").read_text("utf-8")


def first_column(heading: str) -> list[str]:
    """The code in the first cell of every row below a heading of the reference."""
    part = re.split(r"^#+ ", REFERENCE.split(f"# {heading}\n", 1)[1], flags=re.MULTILINE)[0]
    return re.findall(r"^\| `(.+?)` \|", part, re.MULTILINE)


def signature(name: str, function: object, omitted: Iterable[str] = ("self",)) -> str:
    """A function with the names of its arguments."""
    names = [each for each in inspect.signature(function).parameters if each not in omitted]
    return f"{name}({', '.join(names)})"


def test_the_glossary_has_the_terms_that_the_app_explains() -> None:
    assert glossary.FILE.read_text("utf-8") == glossary.document()
    assert glossary.document().count("\n- ") <= 60


DECISIONS = {int(file.name[:4]): file for file in (ROOT / "docs/decisions").glob("*.md")}


def test_every_decision_has_a_number_a_date_and_four_parts() -> None:
    assert len(DECISIONS) == len(list((ROOT / "docs/decisions").iterdir()))
    for file in DECISIONS.values():
        text = file.read_text("utf-8")
        assert re.match(rf"# {int(file.name[:4])}\. .+\n\n\d+ \w+ \d{{4}}\n\n", text), file.name
        assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Measured",
            "Rejected",
        ], file.name


FILES = clone.names()
DOCUMENTS = sorted(
    name
    for name in FILES
    if name.endswith(".md") and name.startswith(("docs/", "README", "CONTRIBUTING", "SECURITY"))
)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_whatever_a_document_points_to_is_there(name: str) -> None:
    """Files by their path or its end, but for those of any NAME or CONCEPT; links, decisions by
    their numbers, and commands with their options."""
    text = re.sub(r"\s+", " ", (ROOT / name).read_text("utf-8"))
    for file in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|js|css|toml|md|json|txt|yaml))`", text):
        if Path(file).stem not in ("NAME", "CONCEPT"):
            assert any(f"/{each}".endswith(f"/{file}") for each in FILES), file
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (ROOT / name).parent.joinpath(link).exists(), link
    for number in re.findall(r"[Dd]ecisions? (\d+)", text):
        assert int(number) in DECISIONS, number
    for module, options in re.findall(
        r"python -m ((?:benchmarks|docs|models)[\w.]*)([^`]*)`", text
    ):
        file = ROOT / f"{module.replace('.', '/')}.py"
        assert file.is_file(), module
        for option in re.findall(r"--[a-z-]+", options):
            assert f'"{option}"' in file.read_text("utf-8"), f"{module} {option}"


def test_the_architecture_fits_on_two_screens() -> None:
    lines = (ROOT / "docs/architecture.md").read_text("utf-8").splitlines()
    assert len(lines) <= 110 and max(map(len, lines)) <= 120


def test_the_tables_of_the_reference_are_made_of_the_code() -> None:
    assert reference.FILE.read_text("utf-8") == reference.document(REFERENCE)


def test_the_measured_examples_are_what_the_code_measures() -> None:
    text = why_this_weight.FILE.read_text("utf-8")
    assert why_this_weight.document(text) == text
    tables = re.findall(r"^\| head .+\|$", text, re.MULTILINE)
    (_, *holds, _), (_, *does_not, _) = (re.findall(r"(?<=\| )[\d.]+|^", each) for each in tables)
    assert float(holds[1]) - float(holds[2]) > 0.5  # the weight, and without the head
    assert abs(float(does_not[1]) - float(does_not[2])) < 0.01


def test_every_page_stands_in_the_reference() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \| `(/.*)` \|$", REFERENCE, re.MULTILINE)
    assert [address for _, _, address in rows] == [places.address(row, {}) for row in places.ROWS]
    for place, shown, address in rows:
        row, _ = lesson.parts(address)
        tab, label = places.tab_of(row), places.labels(places.tab_of(row)).get(row, "")
        assert place == places.PLACES[places.place_of(row)].title
        assert shown == (f"{tab.title}: {label}" if label else tab.title)


def test_every_link_parameter_stands_in_the_reference() -> None:
    assert first_column("Link parameters") == list(url_state.names())


def test_every_public_function_stands_in_the_reference() -> None:
    named = {re.match(r"headlight\.(\w+)", each)[1] for each in first_column("Python")}
    assert named == set(headlight.__all__)
    methods = [
        signature(name, method)
        for name, method in inspect.getmembers(Model, inspect.isfunction)
        if not name.startswith("_")
    ]
    assert first_column("Methods of a model") == methods


def test_every_edit_stands_in_the_reference_as_its_code_says_it() -> None:
    part = REFERENCE.split("# Edits\n", 1)[1].partition("\n#")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.+) \| `.+` \|$", part, re.MULTILINE)
    assert rows == [
        (signature(name, kind), re.sub(r"\s+", " ", (kind.__doc__ or "").split("\n\n")[0]).strip())
        for name, kind in edits.KINDS.items()
    ]


def test_every_panel_stands_in_the_reference() -> None:
    """A panel function is one whose first argument is a run and which gives a panel."""
    made = set()
    for module in vars(headlight.panels).values():
        for name, function in vars(module).items() if inspect.ismodule(module) else ():
            inner = inspect.unwrap(function) if callable(function) else None
            if (
                inspect.isfunction(inner)
                and inner.__module__ == module.__name__
                and not name.startswith("_")
                and inspect.signature(inner, eval_str=True).return_annotation is Panel
                and next(iter(inspect.signature(inner).parameters), "") == "run"
            ):
                made.add(signature(f"{module.__name__.rsplit('.', 1)[-1]}.{name}", inner))
    assert set(first_column("Panels")) == made
