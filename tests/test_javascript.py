"""The components' JavaScript: read as Python wrote it, checked by types, formatted, and each thing
in its one place."""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import is_dataclass
from inspect import getmembers
from pathlib import Path
from typing import get_type_hints

import pytest
from golden import GOLDEN_FILES, cases
from javascript import needs_node, run, served, tools

from docs import figure_types
from explorer.components import bundle
from explorer.figures import kinds as figures

COMPONENTS = Path(bundle.__file__).parent
MODULES = sorted(COMPONENTS.glob("*.js"))
WIDGET = (
    COMPONENTS.parent / "figures" / "notebook_widget.js"
)  # of a notebook, where none of the others is
LAYER = {
    *("axis", "bus", "matrix_canvas", "keys", "mount", "number_format", "svg_export", "theme"),
    *("tokens", "codec", "sentences", "cover", "allowed"),
}
# What stands in one module and in no other: exports of files, mounting, colour scales, rasters,
# news, formats of numbers.
ONLY = {
    r"createObjectURL|toDataURL|toBlob|\.download\b|XMLSerializer": {"svg_export", "draw"},
    r"WeakMap|setTriggerValue|style\.own": {"mount"},
    r"chart-(sequential|categorical)|getPropertyValue\(": {"theme", "svg_export"},
    r"new ImageData|putImageData|devicePixelRatio": {"matrix_canvas"},
    r"new Uint32Array\(256|length: 256": {"theme", "matrix_canvas"},
    r"new Event\(": {"bus"},
    r"ResizeObserver": {"mount"},
    r"toLocaleString|toExponential|toPrecision": {"number_format", "axis"},
    r"createElement\(": {"mount", "matrix_canvas", "class_picture"},
    r"DOMParser|font-family=": {"svg_export"},
    r"createElementNS": {"formula"},
    r"TextDecoder|TextEncoder|DataView": {"codec", "file_upload"},
}
NEVER = (
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    r"|https?://(?!www\.w3\.org/(2000/svg|1998/Math/MathML))"
)


def test_each_thing_stands_in_its_own_module() -> None:
    texts = {module.stem: module.read_text("utf-8") for module in MODULES}
    for pattern, homes in ONLY.items():
        found = {name for name, text in texts.items() if re.search(pattern, text)}
        assert found and found <= homes, f"{pattern} also in {', '.join(sorted(found - homes))}"


def test_modules_are_short_typed_and_say_what_they_are() -> None:
    for module in MODULES:
        text = module.read_text("utf-8")
        lines = text.splitlines()
        assert lines[0] == "// @ts-check" and lines[1].startswith("// "), module.stem
        assert len(lines) <= 900, f"{module.stem}: {len(lines)} lines"
        never = re.search(NEVER, text)
        assert not never, f"{module.stem}: markup from text, or another host: {never}"
        for name in re.findall(r'from "([^"]+)"', text):
            assert name.startswith("./") and name[2:] in bundle.modules(), (module.stem, name)


def test_every_picture_that_is_handed_out_is_a_sheet() -> None:
    """A sheet has the screen's font with what stands in for it, and the screen's paper or white."""

    def draws(text: str) -> bool:
        return bool(re.search(r"\bsheet\(", text))

    # Where it is made, what a view offers is not drawn.
    menu = COMPONENTS / "svg_export.js"
    handing = [each for each in MODULES if "offer(" in each.read_text("utf-8") and each != menu]
    assert handing
    for module in handing:
        text = module.read_text("utf-8")
        used = {*re.findall(r'from "\./(\w+)\.js"', text)} - {"svg_export"}
        assert draws(text) or any(
            draws((COMPONENTS / f"{name}.js").read_text("utf-8")) for name in used
        ), module.stem


def test_the_layer_knows_no_view() -> None:
    for name in LAYER:
        wanted = set(re.findall(r'from "\./(\w+)\.js"', (COMPONENTS / f"{name}.js").read_text()))
        assert wanted <= LAYER, name


def test_a_folder_of_modules_is_named_by_what_is_in_it() -> None:
    assert all(path == f"{bundle.folder()}/{path.partition('/')[2]}" for path in bundle.files())
    assert b"export default mount" in bundle.files()[f"{bundle.folder()}/panel.js"]
    assert f"{bundle.folder()}/panel.js" in bundle.loader("panel")
    with pytest.raises(ValueError, match="no component 'nothing'"):
        bundle.loader("nothing")
    whole = sum(len(gzip.compress(content)) for content in bundle.modules().values())
    assert whole < 227_000, "all code of all views, presenter and speaker, as it travels"


def test_golden_files_are_what_wire_writes() -> None:
    """Where this fails after a meant change of the codec: `python -m tests.golden`."""
    for name, (data, says) in cases().items():
        assert (GOLDEN_FILES / f"{name}.bin").read_bytes() == data, name
        assert json.loads((GOLDEN_FILES / f"{name}.json").read_text("utf-8")) == says, name


@pytest.mark.slow
@needs_node
def test_units_of_the_browser_code(tmp_path: Path) -> None:
    env = {**os.environ, "MODULES": str(served(tmp_path))}
    done = run("node", "--test", "--test-reporter=tap", env=env)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert int(re.search(r"# pass (\d+)", done.stdout)[1]) >= 20


@needs_node
@pytest.mark.slow
def test_types_of_the_browser_code() -> None:
    done = run(str(tools() / "tsc"), "--project", ".")
    assert done.returncode == 0, done.stdout[-6000:]


@needs_node
@pytest.mark.slow
def test_the_browser_code_is_formatted() -> None:
    cache = Path(__file__).parent.parent / ".pytest_cache" / "prettier"
    kept = ("--cache", "--cache-strategy", "content", "--cache-location", str(cache))
    check = (str(tools() / "prettier"), "--check", "--print-width", "100", *kept)
    done = run(*check, *map(str, (*MODULES, WIDGET, figure_types.FILE)), "*.js")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_the_types_of_figures_are_those_of_the_dataclasses() -> None:
    """Where this fails after a change of a figure: `python -m docs.figure_types`."""
    assert figure_types.FILE.read_text("utf-8") == figure_types.document()
    assert figure_types.AXES.read_text("utf-8") == figure_types.axes()


# Of figures that a slide cuts, fields of lists and integers that are of no row or column.
WHOLE = {
    "select",
    "sides",
    "digits",
    "split",
    "bars.columns",
    "cloze.select_row",
    "sentencevotes.row",
    "texttable.columns",
    # No number of these is framed.
    *(f"{kind}.framed" for kind in ("cloze", "graph", "links", "sentencevotes", "tokenrow")),
}


def test_every_field_of_a_figure_that_is_cut_says_which_axis_it_is_along() -> None:
    """For a new field that fails: annotate it as `Along` or `PlacesOn`, or add it to WHOLE."""
    for _, made in getmembers(figures, is_dataclass):
        of = figure_types.axes_of(made)
        for name, hint in get_type_hints(made, vars(figures)).items() if of["along"] else ():
            kind = made.__name__.lower()
            is_told = name in of["along"] or name in of["places"]
            is_plain = hint in (str, bool, float) or hint == float | None
            assert is_told or is_plain or {name, f"{kind}.{name}"} & WHOLE, f"{kind}.{name}"
