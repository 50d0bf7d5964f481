"""A panel as a picture for a paper, without a browser: what stands in SVG, PDF and PNG, on what
sheet, and what is said where nothing is here that draws them."""

from __future__ import annotations

import ctypes
import io
import json
import re
import shutil
import struct
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import driver
import numpy as np
import pypdfium2
import pytest
from conftest import HOSTILE
from javascript import needs_node, run, served
from PIL import Image, ImageFont
from pypdfium2 import raw
from test_layout import SAY, faults, told
from test_panels import NAMES, every, model_of, text_of

from explorer import cli
from explorer.figures import figure_engine, figure_export
from explorer.figures import kinds as figures
from explorer.panels import architecture, attention, spec
from explorer.panels.choice import EVERY
from explorer.panels.spec import Panel
from models.contract.edits import ZeroHead
from models.runtime.run import Run

TEXT = "the cat sat on the mat"
PAPER = {"width": "8.5cm", "caption": False}
WIDE = 8.5 / 2.54 * 72  # points
HALF_A_POINT = (
    0.5  # sizes are written in hundredths of a millimetre, and pages in whole thousandths
)


# Choices under which a panel draws what it has: before its end a flow is a question.
CHOSEN = {
    "architecture.flow": {"beam": "end"},
    "residual.updates": {"measure": "Rotation angle"},
    "interventions.patches": {"donor": "the dog sat on the mat"},
}


@cache
def panel_of(name: str, text: str = TEXT) -> Panel:
    return every()[name](Run(model_of(name), text_of(name, text)), **CHOSEN.get(name, {}))


def written(panel: Panel, tmp_path: Path, ending: str, **sheet: Any) -> bytes:
    panel.save(tmp_path / f"a.{ending}", **sheet)
    return (tmp_path / f"a.{ending}").read_bytes()


def texts_in(svg: bytes | str) -> list[str]:
    """Every text of a picture."""
    whole = ElementTree.fromstring(svg)
    return ["".join(each.itertext()) for each in whole.iter() if each.tag.endswith("}text")]


def nodes_in(value: Any) -> Iterator[Any]:
    """A figure and all figures, rows and frames that are on show in it."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from nodes_in(each)
    elif is_dataclass(value):
        yield value
        if isinstance(value, figures.Steps):  # one frame is on show
            yield from nodes_in(value.frames[value.current].figures)
            return
        for each in fields(value):
            yield from nodes_in(getattr(value, each.name))


def words_of(node: Any) -> list[str]:  # noqa: C901 - a case a kind
    """What a reader must find of a part of a figure, whole or with an ellipsis."""
    match node:
        case figures.BarRow():
            return [node.label, *node.texts]
        case figures.TextTable():
            return [cell for row in node.rows for cell in row]
        case figures.Facts():
            return [word for fact in node.facts for word in fact]
        case figures.Strip():
            return [node.label, node.text]
        case figures.TokenRow():
            return [*node.tokens, *node.texts]
        case figures.SentenceVotes():
            return [*node.labels, *(each.head for each in node.votes)]
        case figures.Links():
            return [*node.left, *node.right]
        case figures.Chart():
            return [each.name for each in node.series if np.isfinite(each.y).any()] + [node.x_title]
        case figures.Box():
            return [node.text, node.count]
        case figures.Rotation():
            return [node.label, node.text]
        case figures.Cloud():
            return [node.name]
        case figures.FlowWord():
            return [node.label, node.text]
        case figures.Figure():
            return [node.title]
    return []


def is_shown(word: str, texts: list[str]) -> bool:
    """True where a word stands in a picture: in one text, over several lines, or cut. An index is
    drawn below the line, without its underscore."""
    word = re.sub(r"\b(\w)_(?=\w)", r"\1", word)
    word, plain = " ".join(word.split()), [" ".join(each.split()) for each in texts]
    if word in " ".join(plain):
        return True
    return any(each.endswith("…") and word.startswith(each[:-1].strip()) for each in plain)


@pytest.mark.slow
@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", NAMES)
def test_every_panel_is_an_svg_with_the_words_and_numbers_of_its_figures(
    name: str, tmp_path: Path
) -> None:
    panel = panel_of(name)
    texts = texts_in(written(panel, tmp_path, "svg"))
    drawn = list(nodes_in(panel.figures))
    lost = [word for node in drawn for word in words_of(node) if not is_shown(word, texts)]
    assert not lost
    if not name.startswith("card."):  # which has its own words
        assert is_shown(panel.title, texts) and any(f"model {model_of(name)}" in t for t in texts)
    assert not any("NaN" in each or "undefined" in each for each in texts)


def test_the_panels_have_every_kind_of_figure() -> None:
    kinds = {each.__name__ for each in figures.Figure.__subclasses__()}
    found = {type(node).__name__ for name in NAMES for node in nodes_in(panel_of(name).figures)}
    assert kinds <= found


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_data(text: str, tmp_path: Path) -> None:
    try:
        panel = panel_of("attention.head", text)
    except ValueError:  # no words in it
        return
    svg = written(panel, tmp_path, "svg")
    names = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(svg).iter()}
    assert names <= {*"svg title metadata style rect path circle g text tspan line image".split()}
    pdf = written(panel, tmp_path, "pdf", **PAPER)
    assert len(pypdfium2.PdfDocument(pdf)) == 1
    assert Image.open(io.BytesIO(written(panel, tmp_path, "png", **PAPER))).width == 1004


def font_of(text: pypdfium2.PdfObject) -> tuple[str, bool]:
    """The family of the font of a text in a PDF, and whether the file holds it."""
    font, name = raw.FPDFTextObj_GetFont(text), ctypes.create_string_buffer(200)
    raw.FPDFFont_GetFamilyName(font, name, len(name))
    return name.value.decode(), raw.FPDFFont_GetIsEmbedded(font) == 1


@pytest.mark.parametrize("name", ["attention.head", "residual.norms", "anatomy.formulas"])
def test_a_pdf_is_one_page_of_its_size_with_its_words_and_its_cause(
    name: str, tmp_path: Path
) -> None:
    run = Run("encoder", TEXT, (ZeroHead(0, 1),))
    panel = every()[name](run)
    data = written(panel, tmp_path, "pdf", **PAPER)
    assert data == written(panel, tmp_path, "pdf", **PAPER), "the same bytes each time"
    whole = pypdfium2.PdfDocument(data)
    assert len(whole) == 1
    wide, high = whole[0].get_size()
    assert wide == pytest.approx(WIDE, abs=HALF_A_POINT)
    svg = ElementTree.fromstring(written(panel, tmp_path, "svg", **PAPER))
    assert svg.get("width") == "85.00mm"
    assert high == pytest.approx(float(svg.get("height")[:-2]) * 72 / 25.4, abs=HALF_A_POINT)
    text = " ".join(whole[0].get_textpage().get_text_bounded().split())
    assert panel.title in text and "model encoder" not in text
    seen = np.asarray(whole[0].render(scale=2).to_pil().convert("L"))
    assert seen.max() == 255 and 0.005 < (seen < 128).mean() < 0.5, "ink on white paper"
    assert not list(whole[0].get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])), "vectors"
    about = whole.get_metadata_dict()
    assert about["Title"] == panel.title and about["Author"].startswith("Headlight ")
    assert json.loads(about["Subject"]) == panel.cause
    fonts = {font_of(each) for each in whole[0].get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT])}
    assert {family for family, _ in fonts} >= {"Inter"}
    assert all(is_embedded for _, is_embedded in fonts), "no reader puts another in its place"
    assert b"/Type3" not in data, "no printer draws letters as pictures"


LATEX = r"""
\documentclass{article}
\usepackage{graphicx}
\newsavebox{\panel}
\newcommand{\includepanel}[1]{
  \savebox{\panel}{\includegraphics{#1}}
  \typeout{SIZE #1 \the\wd\panel\space\the\ht\panel}
  \noindent\usebox{\panel}\par
}
\begin{document}
\includepanel{one.pdf}
\includepanel{two.pdf}
\includepanel{three.png}
\end{document}
"""
MOST_OF_PDFTEX = 15  # the version that pdfTeX wrote, times ten, from 2010 to 2023
POINT_OF_TEX = 72 / 72.27


def pages_of_paper(tmp_path: Path, sizes: dict[str, tuple[float, float]]) -> list[Any]:
    """The pages of a paper that has figures of these sizes in points, as LaTeX sets them; where
    LaTeX is not here, those of the figures themselves."""
    if shutil.which("pdflatex") is None:
        return [pypdfium2.PdfDocument(tmp_path / name)[0] for name in sizes if ".pdf" in name]
    (tmp_path / "paper.tex").write_text(LATEX)
    latex = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(latex, cwd=tmp_path, capture_output=True, text=True)
    assert not done.returncode, done.stdout
    log = (tmp_path / "paper.log").read_text("latin-1")
    assert not re.search("warning|error|missing", log, re.IGNORECASE), log
    found = dict(re.findall(r"SIZE (\S+) (.+)", log))
    for name, size in sizes.items():
        set_at = [float(each[:-2]) * POINT_OF_TEX for each in found[name].split()]
        assert set_at == pytest.approx(size, abs=HALF_A_POINT)
    return list(pypdfium2.PdfDocument(tmp_path / "paper.pdf"))


def test_a_paper_in_latex_has_figures_at_their_size_with_their_fonts(tmp_path: Path) -> None:
    """As `\\includegraphics{head.pdf}` without a width puts them there, two on a page."""
    panels = [panel_of("attention.head"), panel_of("residual.norms", "la forêt 猫 est là")]
    for panel, name in zip((*panels, panels[0]), ("one.pdf", "two.pdf", "three.png")):
        panel.save(tmp_path / name, **PAPER)
    whole = [pypdfium2.PdfDocument(tmp_path / name) for name in ("one.pdf", "two.pdf")]
    assert all(each.get_version() <= MOST_OF_PDFTEX for each in whole)
    sizes = {name: each[0].get_size() for name, each in zip(("one.pdf", "two.pdf"), whole)}
    assert all(wide == pytest.approx(WIDE, abs=HALF_A_POINT) for wide, _ in sizes.values())
    pages = pages_of_paper(tmp_path, {**sizes, "three.png": sizes["one.pdf"]})
    texts = " ".join(each.get_textpage().get_text_bounded() for each in pages)
    assert all(panel.title in texts for panel in panels)
    fonts = {
        font_of(each)
        for page in pages
        for each in page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], max_depth=4)
    }
    assert {family for family, _ in fonts} >= {"Inter"}
    assert all(is_embedded for _, is_embedded in fonts), fonts
    ink = [(np.asarray(each.render().to_pil().convert("L")) < 128).mean() for each in pages]
    assert min(ink) > 0.001


def test_a_cause_names_model_text_edits_choices_and_version(tmp_path: Path) -> None:
    run = Run("encoder", 'a "b" <i>&amp; 猫', (ZeroHead(0, 1),))
    panel = every()["attention.head"](run, layer=1, head=2, token=3)
    svg = written(panel, tmp_path, "svg")
    (cause,) = (
        json.loads(each.text)
        for each in ElementTree.fromstring(svg).iter()
        if each.tag.endswith("}metadata")
    )
    assert cause["model"] == "encoder" and cause["text"] == run.text
    assert cause["edits"] == "ZeroHead:0:1:self"
    assert cause["choices"] == {"layer": 1, "head": 2, "token": 3}
    assert cause["made_with"].startswith("Headlight ") and cause["weights"] in panel.caption[0]
    image = Image.open(io.BytesIO(written(panel, tmp_path, "png", width="10cm")))
    assert json.loads(image.text["Description"]) == cause
    assert image.text["Title"] == panel.title
    assert image.width == round(10 / 2.54 * 300) and round(image.info["dpi"][0]) == 300


def test_a_png_has_so_many_pixels_at_most_and_says_how_many_an_inch_has(tmp_path: Path) -> None:
    text = "the animal did not cross the street. " * 22
    long = every()["attention.head"](Run("encoder", text), token=EVERY)
    data = written(long, tmp_path, "png")
    width, height = struct.unpack(">II", data[16:24])  # of the header: nothing is unpacked
    sheet = ElementTree.fromstring(written(long, tmp_path, "svg"))
    inches = [float(sheet.get(side)[:-2]) / 25.4 for side in ("width", "height")]
    assert inches[0] * inches[1] * 300**2 > figure_export.MOST_PIXELS, "it would have more"
    assert width * height <= 1.001 * figure_export.MOST_PIXELS, "a row and a column are rounded up"
    dpi = round(Image.open(io.BytesIO(data)).info["dpi"][0])
    assert 72 <= dpi == round(width / inches[0]) < 300


def test_a_png_that_is_too_long_is_refused_and_its_pdf_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = panel_of("residual.norms")
    monkeypatch.setattr(figure_export, "MOST_PIXELS", 10_000)
    with pytest.raises(ValueError, match="too long for a PNG"):
        written(panel, tmp_path, "png")
    assert written(panel, tmp_path, "pdf").startswith(b"%PDF")


def test_a_sheet_has_a_width_a_caption_and_colours(tmp_path: Path) -> None:
    panel = panel_of("residual.norms")
    for width, millimetres in (("8.5cm", 85), ("85 mm", 85), ("4in", 101.6), ("360pt", 127)):
        svg = ElementTree.fromstring(written(panel, tmp_path, "svg", width=width))
        # it is written in hundredths
        assert float(svg.get("width")[:-2]) == pytest.approx(millimetres, abs=0.01)
    plain = texts_in(written(panel, tmp_path, "svg", caption=False))
    assert texts_in(written(panel, tmp_path, "svg"))[: len(plain)] == plain
    narrow = texts_in(written(panel, tmp_path, "svg", width="8cm", caption=False))
    assert sorted(set(narrow)) and is_shown(panel.title, narrow)
    light, dark = (
        np.asarray(
            Image.open(
                io.BytesIO(written(panel, tmp_path, "png", width="8cm", dark=is_dark))
            ).convert("L")
        )
        for is_dark in (False, True)
    )
    assert light[0, 0] == 255 and dark[0, 0] < 60
    for width in ("8.5", "8 parsec", "-3cm", "1cm", "20m", "nan", "", "9999cm"):
        with pytest.raises(ValueError, match="cannot be .* wide; say 8.5cm"):
            panel.save(tmp_path / "a.svg", width=width)
    for ending in ("csv", "html", "json"):
        with pytest.raises(ValueError, match="are of SVG, PDF and PNG"):
            panel.save(tmp_path / f"a.{ending}", width="8cm")


def test_type_on_paper_has_the_size_of_a_caption(tmp_path: Path) -> None:
    svg = ElementTree.fromstring(written(panel_of("residual.norms"), tmp_path, "svg", **PAPER))
    per_pixel = WIDE / float(svg.get("viewBox").split()[2])
    sizes = [float(each.get("font-size")) for each in svg.iter() if each.tag.endswith("}text")]
    points = {round(size * per_pixel, 1) for size in sizes}
    assert min(points) > 5.5 and 8.0 in points


SCREEN_ONLY = re.compile(
    r"\b((press|click|tap|hover|point(ing)? at|drag|scroll)(s|ed|ing|ged|ging|ped|ping)?|menus?|"
    r"buttons?|slider|show all|under view|the table has all)\b",
    re.IGNORECASE,
)


def of_a_screen(texts: list[str]) -> list[str]:
    """Those of some texts that speak of what is pressed; one or two words may be a model's own."""
    return [each for each in texts if len(each.split()) > 2 and SCREEN_ONLY.search(each)]


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", NAMES)
def test_no_figure_on_paper_speaks_of_what_can_be_pressed(name: str, tmp_path: Path) -> None:
    assert not of_a_screen(texts_in(written(panel_of(name), tmp_path, "svg", **PAPER)))


def on_paper(panels: dict[str, bytes], folder: Path, **sheet: Any) -> Iterator[tuple[str, dict]]:
    """The name of each encoded panel, and every text of its picture with its box, as the engine
    lays them out."""
    served(folder)
    how = figure_export.how(figure_export.Sheet(caption=False, **sheet))
    (folder / "hows").write_text(json.dumps([how]))
    for name, data in panels.items():
        (folder / name).write_bytes(data)
    names = [str(folder / name) for name in panels]
    done = run("node", "papers.js", str(folder), str(folder / "hows"), *names)
    assert done.returncode == 0, done.stderr[-2000:]
    for line in done.stdout.splitlines():
        room = json.loads(line)
        yield Path(room["file"]).name, room


LONG = (
    "Once upon a time there was a small village at the edge of a great forest. The people of the "
    "village were farmers, and every morning they walked to the fields with their tools."
)
# What is wider, longer or deeper than the panels of the short text.
LARGE: dict[str, Callable[[], Panel]] = {
    "lines": lambda: attention.head(Run("encoder", LONG), view="Lines"),
    "lines of all": lambda: attention.head(Run("encoder", LONG), view="Lines", token=EVERY),
    "matrix": lambda: attention.head(Run("encoder", LONG), view="Matrix"),
    "flow": lambda: architecture.flow(Run("encoder", LONG), beam="end"),
    "two streams": lambda: architecture.flow(Run("translator", TEXT), beam="end"),
    "thirty layers": lambda: architecture.flow(Run("smollm2", TEXT), beam="end"),
    "270 heads": lambda: attention.heads(Run("smollm2", LONG)),
    "norms": lambda: every()["residual.norms"](Run("encoder", LONG)),
    "norms of thirty layers": lambda: every()["residual.norms"](Run("smollm2", TEXT)),
    "lens": lambda: every()["logit_lens.lens"](Run("decoder", LONG)),
    "positions": lambda: every()["positions.encoding"](Run("encoder", LONG)),
}
POINTS = figure_export.TYPE / figure_export.LETTER  # of a pixel of a sheet with a width
PAGE_CM = 24


def paper_faults(room: dict) -> list[str]:
    """What a referee would mark: texts over each other or outside, cut, small, or of a screen."""
    problems = faults(room)
    says = " ".join(text["shown"] for text in room["texts"]).lower()
    for text in room["texts"]:
        shown = text["shown"]
        if shown != text["text"] and SAY("cut") not in says:
            problems.append(f"cut: {text['text']}")
        if text["size"] * POINTS < 5.99:
            problems.append(f"{text['size'] * POINTS:.1f} points: {shown}")
    texts = [text["shown"] for text in room["texts"]]
    problems += [f"of a screen: {each}" for each in of_a_screen(texts)]
    problems += [f"not said: {one}" for one in room["omitted"] if told(one).lower() not in says]
    return problems


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
def test_a_figure_on_paper_has_nothing_that_a_referee_marks(width: str, tmp_path: Path) -> None:
    panels = {name: panel_of(name) for name in NAMES}
    panels |= {name: make() for name, make in LARGE.items()}
    sent = {name: panel.encode() for name, panel in panels.items() if panel.figures}
    rooms = dict(on_paper(sent, tmp_path, width=width, title=False))
    assert rooms.keys() == sent.keys()
    problems = [f"{name}: {each}" for name, room in rooms.items() for each in paper_faults(room)]
    tall = lambda room: room["height"] * POINTS / 72 * 2.54 > PAGE_CM
    long = [name for name, room in rooms.items() if tall(room)]
    alone = {
        f"{name} {at}": replace(panels[name], figures=(one,)).encode()
        for name in long
        for at, one in enumerate(panels[name].figures)
    }
    parts = on_paper(alone, tmp_path, width=width, title=False)
    problems += [f"{name}: longer than a page" for name, room in parts if tall(room)]
    assert not problems, "\n".join(problems)


def test_a_picture_longer_than_a_page_says_so(tmp_path: Path) -> None:
    panel = panel_of("positions.order")
    with pytest.warns(UserWarning, match=r"is \d+ cm high, more than a page has"):
        panel.save(tmp_path / "a.svg", **PAPER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panel_of("residual.norms").save(tmp_path / "b.svg", **PAPER)


@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
@pytest.mark.parametrize("model", ["encoder", "smollm2"])
def test_without_a_title_no_heading_stands_in_its_place(
    model: str, width: str, tmp_path: Path
) -> None:
    panel = attention.heads(Run(model, TEXT))
    heading = re.compile(r"All \d+ heads|The strongest heads")
    sheet = {"width": width, "caption": False}
    assert heading.search(" ".join(texts_in(written(panel, tmp_path, "svg", **sheet))))
    plain = texts_in(written(panel, tmp_path, "svg", title=False, **sheet))
    assert not heading.search(" ".join(plain))


@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
def test_names_that_have_no_room_are_counted_below_the_figure(width: str, tmp_path: Path) -> None:
    panel = every()["residual.norms"](Run("encoder", LONG))
    matrix, chart = panel.figures
    svg = written(panel, tmp_path, "svg", width=width, caption=False)
    says = " ".join(texts_in(svg)).lower()
    rows = {text for text in texts_in(svg) if text in matrix.rows}
    counted = re.search(r"names of (\d+) of (\d+) rows", says)
    assert bool(counted) == (int(counted[1]) < len(matrix.rows) if counted else False)
    assert not counted or int(counted[2]) == len(matrix.rows) and len(rows) <= int(counted[1])


def test_formulas_and_what_explains_a_figure_can_be_left_to_the_paper(tmp_path: Path) -> None:
    panel = architecture.flow(Run("decoder", TEXT), beam="end")
    p = f"p {panel.figures[0].words[0].label}"
    texts = lambda **sheet: " ".join(texts_in(written(panel, tmp_path, "svg", **PAPER, **sheet)))
    assert "Curves:" in texts() and f"{p} = e z" in texts()
    assert "Curves:" not in texts(notes=False) and f"{p} = e z" in texts(notes=False)
    assert "Curves:" in texts(formulas=False) and f"{p} = e z" not in texts(formulas=False)


@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
def test_the_answer_of_a_flow_is_struck_by_no_line(width: str, tmp_path: Path) -> None:
    """On a screen the plate of the answer turns around a hinge; the words beside it are quoted, as
    one may be a comma."""
    panel = architecture.flow(
        Run("decoder", "My sister has a red car and she said that"), beam="end"
    )
    svg = written(panel, tmp_path, "svg", width=width, caption=False)
    assert 'stroke="#000000"' not in svg.decode()
    also = next(text for text in texts_in(svg) if text.startswith("also likely: "))
    assert re.fullmatch(r"also likely: (“[^”]+” (< )?[\d.]+%(, )?)+", also)


@pytest.mark.parametrize(
    ("model", "text", "axis"),
    [
        ("encoder", "The cat sat on the mat", "End: probability in this place"),
        (
            "encoder",
            "The cat sat on the mat because it was warm.",
            "End: probability in this place",
        ),
        ("decoder", "The cat sat on the", "End: probability of the next word"),
    ],
)
def test_a_flow_says_which_word_its_probabilities_are_of(
    model: str, text: str, axis: str, tmp_path: Path
) -> None:
    """Also where the hidden word is the last one, after which no text stands."""
    panel = architecture.flow(Run(model, text))
    assert axis in texts_in(written(panel, tmp_path, "svg", **PAPER))


@pytest.mark.slow
def test_many_heads_on_paper_say_how_many_they_are_and_no_button(tmp_path: Path) -> None:
    panel = attention.heads(Run("smollm2", TEXT))
    texts = texts_in(written(panel, tmp_path, "svg", **PAPER))
    drawn = [each for each in texts if re.fullmatch(r"L\d+ H\d+", each)]
    assert f"The strongest {len(drawn)} of 270 heads" in texts
    assert not any(each.startswith("Show") for each in texts)


@pytest.mark.slow
@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
def test_thirty_layers_of_a_flow_are_named_and_no_beam_is_dragged(
    width: str, tmp_path: Path
) -> None:
    panel = architecture.flow(Run("smollm2", TEXT), beam="end")
    texts = texts_in(written(panel, tmp_path, "svg", width=width, caption=False))
    named = {int(each[1]) for text in texts if (each := re.fullmatch(r"(?:Layer )?(\d+)", text))}
    assert {0, 10, 15, 20} <= named and len(named) >= 7, "every fifth, and those that matter most"
    assert "End" not in texts


def test_the_name_of_a_head_stands_whole_below_it_or_below_the_figure(tmp_path: Path) -> None:
    panel = attention.heads(Run("encoder", "The animal didn't cross the street, it was tired."))
    (figure,) = panel.figures
    for width in ("8.5cm", "17cm"):
        texts = texts_in(written(panel, tmp_path, "svg", width=width, caption=False))
        below = " ".join(texts)
        for at, name in enumerate(figure.names):
            if name in ("no clear pattern", "text too short"):
                continue
            listed = re.search(rf"{name}: [^:]*\bL{at // 8} H{at % 8}\b", below)
            assert name in texts or listed, (width, name)
        assert not any(each.endswith("…") for each in texts)


def test_a_title_stands_once_or_not_at_all(tmp_path: Path) -> None:
    for name in ("attention.heads", "residual.norms", "summaries.aggregated"):
        panel = panel_of(name)
        texts = texts_in(written(panel, tmp_path, "svg"))
        assert texts.count(panel.title) == 1, name
    plain = texts_in(written(panel, tmp_path, "svg", title=False))
    assert panel.title not in plain and plain == texts[1:]


def test_a_figure_of_several_is_saved_alone(tmp_path: Path) -> None:
    panel = panel_of("residual.norms")
    matrix, chart = panel.figures
    chart.save(tmp_path / "chart.svg", **PAPER)
    svg = (tmp_path / "chart.svg").read_text()
    assert texts_in(svg).count(chart.title) == 1 and panel.title not in texts_in(svg)
    assert matrix.title not in texts_in(svg)
    (about,) = (e.text for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}metadata"))
    cause = json.loads(about)
    assert cause["call"] == f"{panel.call}.figures[1]" and cause["title"] == chart.title
    with pytest.raises(ValueError, match="of no panel"):
        figures.Matrix().save(tmp_path / "no.svg")


@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
def test_words_of_a_matrix_are_read_in_a_column(width: str, tmp_path: Path) -> None:
    """Columns that have no room are left out, and the figure says so."""
    panel = every()["logit_lens.lens"](Run("decoder", "My sister has a red car and she said that"))
    svg = written(panel, tmp_path, "svg", width=width, caption=False)
    whole = ElementTree.fromstring(svg)
    points = float(whole.get("width")[:-2]) / 25.4 * 72 / float(whole.get("viewBox").split()[2])
    texts = [each for each in whole.iter() if each.tag.endswith("}text")]
    words = [each for each in texts if len("".join(each.itertext())) > 1]  # no index of a formula
    assert min(float(each.get("font-size")) * points for each in words) > 5.5
    columns, said = panel.figures[0].columns, texts_in(svg)
    told = re.search(rf"(\d+) of {len(columns)} columns", " ".join(said))
    shown = int(told[1]) if told else len(columns)
    assert set(columns[-shown:]) <= set(said), "each of those shown has its name"


def test_signs_that_the_font_lacks_leave_the_letters_beside_them(tmp_path: Path) -> None:
    panel = attention.head(Run("encoder", TEXT), layer=1, head=2, view="Matrix")
    data = written(panel, tmp_path, "pdf", **PAPER)
    page = pypdfium2.PdfDocument(data)[0]
    texts = page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], textpage=page.get_textpage())
    other = [each.extract() for each in texts if font_of(each)[0] != "Inter"]
    assert not any(re.search("[a-z]", each) for each in other), other


def test_raised_figures_leave_the_figures_beside_them() -> None:
    """As in 2.6 × 10⁷, of which the app's font has all but the exponent."""
    drawn = figure_export._in_own_font('<text x="10" y="5" font-size="10">2.6 × 10⁷ + 10⁻⁵</text>')
    parts = re.findall(r'<tspan x="([\d.]+)"( font-family="[^"]+")?>([^<]+)<', drawn)
    assert [(bool(other), text) for _, other, text in parts] == [
        (False, "2.6 × 10"),
        (True, "⁷"),
        (False, " + 10"),
        (True, "⁻⁵"),
    ]
    places = [float(at) for at, _, _ in parts]
    assert 3 < places[2] - places[1] < 5, "a figure that is raised is narrow"


@pytest.mark.parametrize("width", ["8.5cm", "17cm"])
def test_lines_of_all_words_of_a_long_text_are_some_two_a_word(width: str, tmp_path: Path) -> None:
    run = Run("encoder", LONG)
    panel = attention.head(run, layer=1, head=5, view="Lines", token=EVERY)
    n = len(panel.figures[0].rows)
    svg = written(panel, tmp_path, "svg", width=width, caption=False).decode()
    lines = re.findall(r'<path d="M[^"]*C[^"]*"', svg)
    assert n < len(lines) <= 2 * n
    says = " ".join(texts_in(svg))
    least = float(re.search(r"Weights below ([\d.]+) have no line", says)[1])
    weights = run.recording().attention[0].pattern[1, 5]
    assert (weights >= least + 0.01).sum() <= len(lines) <= (weights >= least - 0.01).sum()


# ---- the engine ----------------------------------------------------------------------------------


@pytest.mark.skipif(figure_engine.shutil.which("node") is None, reason="no node on this machine")
def test_both_engines_draw_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("residual.norms", "embeddings.contexts", "architecture.flow"):
        panel = panel_of(name)
        one = spec.FILES["svg"].make(panel)
        with monkeypatch.context() as without:
            without.setattr(figure_engine, "find_spec", lambda name: None)
            assert spec.FILES["svg"].make(panel) == one


def test_what_is_missing_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    panel = panel_of("residual.norms")
    monkeypatch.setattr(figure_export, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"install headlight-attention\[figures\] with pip\.$"):
        panel.save(tmp_path / "a.pdf")
    panel.save(tmp_path / "a.svg")
    monkeypatch.setattr(figure_engine, "find_spec", lambda name: None)
    monkeypatch.setattr(figure_engine.shutil, "which", lambda name: None)
    assert not figure_engine.is_there()
    with pytest.raises(ValueError, match=r"headlight-attention\[figures\] with pip, or Node.js\.$"):
        panel.save(tmp_path / "b.svg")
    assert not (tmp_path / "b.svg").exists() and not (tmp_path / "a.pdf").exists()


def test_pictures_of_several_threads_are_those_of_one() -> None:
    panels = [panel_of(name) for name in ("residual.norms", "attention.head", "soft_lookup.heads")]
    expected = [spec.FILES["svg"].make(each) for each in panels]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(spec.FILES["svg"].make, panels * 3)) == expected * 3


def test_nothing_of_it_is_imported_before_a_picture_is_wanted() -> None:
    code = (
        "import sys, headlight; print({'quickjs', 'typst', 'plotly', 'PIL'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=driver.ROOT
    )
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.parametrize(("bold", "weight"), [(False, 450), (True, 650)])
def test_letters_are_as_wide_as_those_of_the_screens_font(bold: bool, weight: int) -> None:
    """The font files of PDF and PNG are the app's own font at its two weights."""
    font = ImageFont.truetype(str(figure_export.STATIC / "inter.woff2"), 1000)
    font.set_variation_by_axes([weight])
    widths = figure_export.widths()
    measured = dict(zip(widths["letters"], widths["bold" if bold else "regular"]))
    assert len(measured) > 200
    off = [
        letter
        for letter, wide in measured.items()
        if letter.isalnum() and abs(font.getlength(letter) / 1000 - wide) > 0.002  # of hinting
    ]
    assert not off


# ---- the command, and the page -------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.pdf"
    asked = ["figure", "attention.head", TEXT, "-o", str(file), "-c", "layer=1", "head=2"]
    assert cli.main([*asked, "--width", "8.5cm", "--no-caption"]) == 0
    expected = every()["attention.head"](Run("encoder", TEXT), layer=1, head=2)
    assert file.read_bytes() == written(expected, tmp_path, "pdf", **PAPER)
    without = {part: False for part in figure_export.PARTS}
    assert cli.main([*asked, *(f"--no-{part}" for part in figure_export.PARTS)]) == 0
    assert file.read_bytes() == written(expected, tmp_path, "pdf", **without)
    wrong = (["--width", "8 parsec"], "cannot be"), (["-c", "nope=1"], "has no choice")
    for more, problem in wrong:
        assert cli.main([*asked, *more]) == 1 and problem in capsys.readouterr().err
    assert cli.main(["figure", "no.panel", TEXT, "-o", str(file)]) == 1
    assert "no panel is called" in capsys.readouterr().err
    assert cli.main(["figure", "attention.head", TEXT, "-o", str(tmp_path / "a.html")]) == 1


PAGES = ("residual.norms", "predictions.word", "attention.heads", "embeddings.contexts")


@driver.browser_test
@pytest.mark.parametrize("name", PAGES)
def test_a_figure_has_the_texts_that_the_browser_writes(
    name: str, browser: Any, tmp_path: Path
) -> None:
    panel = panel_of(name)
    panel.save(tmp_path / "a.html")
    page = browser.new_page()
    page.goto(f"file://{tmp_path}/a.html")
    page.locator(".panel svg").first.wait_for()
    page.get_by_text("Pictures as files").click()
    with page.expect_download() as fetched:
        page.get_by_role("button", name=re.compile("as SVG$")).first.click()
    fetched.value.save_as(tmp_path / "b.svg")
    page.close()
    theirs = texts_in((tmp_path / "b.svg").read_text("utf-8"))
    ours = texts_in(written(panel, tmp_path, "svg"))
    # Lines may break elsewhere, and names of a crowded plane or matrix find other room.
    words = lambda texts: " ".join(texts).replace("…", "").split()
    lost = [word for word in set(words(theirs)) ^ set(words(ours)) if re.search(r"\d", word)]
    assert not lost, "a number"
    alike = len(set(words(theirs)) & set(words(ours))) / len(set(words(theirs)))
    assert alike > 0.9, (theirs, ours)


NOWHERE = "\U0003fffd"  # a character that no font has


@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_letters_that_no_font_has_are_left_out_and_said(ending: str, tmp_path: Path) -> None:
    panel = attention.head(Run("encoder", f"The {NOWHERE * 3} sat \U0001f600 on it."))
    with pytest.warns(UserWarning, match="No font here has letters of Unnamed; an ellipsis"):
        panel.save(tmp_path / f"it.{ending}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attention.head(Run("encoder", "Größe, naïve, Ω, Ж")).save(tmp_path / f"plain.{ending}")


def test_joined_emoji_stand_side_by_side() -> None:
    """Where the typesetter joins them it draws boxes over what follows; scripts stay joined."""
    for joined, apart in (
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200c\U0001f467"),
        ("\U0001f1e9\U0001f1ea", "\U0001f1e9\u200c\U0001f1ea"),
        ("\U0001f44d\U0001f3fd", "\U0001f44d\u200c\U0001f3fd"),
        ("\u2764\ufe0f", "\u2764"),
        ("1\ufe0f\u20e3", "1"),
        ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fonts that this machine may not have
            drawn = figure_export._legible(f"<text>é {joined} x</text>")
        assert drawn == f"<text>é {apart} x</text>" or "…" in drawn


def test_an_ellipsis_stands_in_the_place_of_letters_that_no_font_has() -> None:
    with pytest.warns(UserWarning):
        drawn = figure_export._legible(f"<text x='1'>a {NOWHERE * 2}b</text><text>é</text>")
    assert drawn == "<text x='1'>a …b</text><text>é</text>"
