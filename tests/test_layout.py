"""Every panel in the rooms of the presenter, on a phone and in a file: all figures, columns, rows
and named words are drawn, or a line says how many are not; no text covers another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from conftest import AWKWARD, in_turn
from javascript import needs_node, run, served
from test_panels import NAMES, made, model_of

from explorer.components import codec
from explorer.panels import architecture, lessons
from explorer.wording.templates import sentences
from models.contract.edits import ZeroHead
from models.example_texts import DEFAULT_TEXT
from models.runtime.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.in_turn, needs_node]

TEXTS = {
    "encoder": DEFAULT_TEXT,
    "decoder": "Shyam was born in Nepal and lived there until he was fluent. He speaks",
    "translator": "The grandmother greeted the neighbours, and they smiled.",
    "awkward": AWKWARD["letters"] + " 日本語 unübersichtlich because it <b>slept</b>.",
}
# The presenter's plates, below two lines of a headline and above two of a caption; a phone's page.
ROOMS = [
    {"name": "1280x720", "width": 1218, "height": 530, "window": 1280},
    {"name": "1920x1080", "width": 1827, "height": 800, "window": 1920},
    {"name": "390x844", "width": 358, "height": 0, "window": 390},
    {"name": "file"},  # as wide as its words need
]
# What formulas leave of these, as symbols and with their numbers; and a question with its answers.
BELOW_SYMBOLS = [
    {"name": "1280x460", "width": 1218, "height": 460, "window": 1280},
    {"name": "1920x700", "width": 1827, "height": 700, "window": 1920},
]
BELOW_NUMBERS = [
    {"name": "1280x400", "width": 1218, "height": 400, "window": 1280},
    {"name": "1920x620", "width": 1827, "height": 620, "window": 1920},
]
TALL = {"translation.alignment"}  # a line says which of its figures is not drawn
BESIDE_A_VOTE = [
    {"name": "1280 beside", "width": 755, "height": 530, "window": 1280},
    {"name": "1920 beside", "width": 1140, "height": 800, "window": 1920},
]
LEAST = 20  # pixels of a slide's type
SAY = sentences("browser", "omissions")
NUMBER = re.compile(r"[^\w“]*\d[\d.,]*( ?× ?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*)?[%°]?")


def payloads(kind: str) -> Iterator[tuple[str, bytes]]:
    """The name of each panel that a text has, in its turn, and what the browser is sent."""
    model, text = ("encoder" if kind == "awkward" else kind), TEXTS[kind]
    for name in in_turn(NAMES, 5, kind):
        own = model_of(name)
        if own != "encoder" and kind not in ("encoder", own):
            continue
        panel = made(name, Run(model if own == "encoder" else own, text))
        if not isinstance(panel, str):
            yield name, panel.encode()


def leaves(figure: dict) -> list[dict]:
    """The figures in a figure: it alone, those of a stack, or those of the frame on show."""
    if figure["kind"] == "stack":
        return [leaf for one in figure["figures"] for leaf in leaves(one)]
    if figure["kind"] != "steps":
        return [figure]
    shown = figure["frames"][figure["current"]]["figures"]
    return [leaf for one in (*filter(None, [figure["whole"]]), *shown) for leaf in leaves(one)]


def parts(figure: dict) -> dict[str, list[str]]:
    """What a figure must draw, by the name of the sentence that says how many are not."""
    kind = figure["kind"]
    if kind == "bars":
        rows = [row["label"] for row in figure["rows"]]
        return {"rows": rows, "columns": list(filter(None, figure["columns"]))}
    if kind == "texttable":
        rows = [" ".join(row[:1]) for row in figure["rows"]]
        return {"rows": rows, "columns": list(filter(None, figure["columns"]))}
    if kind == "matrix":
        return {"rows": figure["rows"], "columns": figure["columns"]}
    if kind == "links" and not figure["flat"]:
        return {"queries": figure["left"], "keys": figure["right"]}
    if kind == "tokenrow":
        return {"tokens": figure["tokens"]}
    if kind == "strips":
        return {"vectors": [strip["label"] for strip in figure["strips"]]}
    if kind == "facts":
        return {"facts": [fact for fact, _ in figure["facts"]]}
    if kind == "graph" and figure["layout"] == "tree":
        return {"steps": figure["nodes"]}
    return {}


def is_tick(name: str) -> bool:
    return re.fullmatch(r"[\d.,−-]*", name) is not None


# Parts that another sentence counts: a matrix is whole with fewer names, and one text has one list.
INSTEAD = {
    "rows": ("names", "row_names"),
    "columns": ("names", "column_names"),
    "queries": ("tokens",),
    "keys": ("tokens",),
}


def missing(header: dict, room: dict) -> list[str]:
    """What a drawing of a panel leaves out without a word."""
    says = " ".join(text["shown"] for text in room["texts"])
    whole = [text["shown"] for text in room["texts"]]
    left = [(each["what"], each["all"]) for each in room["omitted"]]
    names = [name for each in room["omitted"] for name in each.get("titles", ())]
    # A name that has no room stands where its row is pointed at, and a slide says no count of them.
    told_of = [each for each in room["omitted"] if each["what"] != "names"]
    problems = [f"not said: {each}" for each in told_of if told(each).lower() not in says.lower()]
    named = re.findall("“([^”]*)”", f"{header['title']} {header.get('finding', '')}")
    on_page = room["name"] == "390x844"
    for figure in (leaf for one in header["figures"] for leaf in leaves(one)):
        title, gone = figure["title"], any(what == "figures" for what, _ in left)
        if any(title and title in name for name in names):
            continue
        if title not in says:
            problems.append(f"figure {title!r}")
        if not title and gone:  # it may be the one that has no name
            continue
        for what, labels in parts(figure).items():
            is_told = any(kind in (what, *INSTEAD.get(what, ())) for kind, _ in left)
            lost = [each for each in labels if not drawn(each, whole, says)]
            # Some numbers of an axis stand for all; on a page each name stands beside its cell when
            # that is pressed, and a matrix of words scrolls.
            is_read = figure["kind"] == "matrix" and (all(map(is_tick, labels)) or on_page)
            if lost and not is_told and not is_read:
                problems.append(f"{what} {lost[:3]} of {title!r}")
            problems += [f"{what} “{each}” is named" for each in lost if each in named]
    return problems


def told(omitted: dict) -> str:
    """The sentence on what is not drawn."""
    titles = "; ".join(filter(None, omitted.get("titles", ())))
    what = "untitled" if omitted["what"] == "figures" and not titles else omitted["what"]
    return SAY(what, shown=omitted["shown"], all=omitted["all"], titles=titles)


def drawn(label: str, whole: list[str], says: str) -> bool:
    """Whether a label stands there, in lines (BatchNorm as two words) or cut with a sign of it."""
    cut = (
        (each[: at.start()], each[at.end() :]) for each in whole for at in re.finditer("…", each)
    )
    in_words = re.sub("(?<=[a-z])(?=[A-Z])", " ", label)
    is_whole = not label or label in says or in_words in says
    return is_whole or any(label.startswith(a) and label.endswith(b) for a, b in cut)


def faults(room: dict) -> list[str]:
    """Texts that cover each other or leave the room, and numbers that are cut."""
    problems = []
    for text in room["texts"]:
        left, top, right, foot = text["box"]
        if left < -3 or right > room["width"] + 3 or top < -3 or foot > room["height"] + 3:
            problems.append(f"outside: {text['shown']}")
        if text["shown"] != text["text"] and NUMBER.fullmatch(text["text"]):
            problems.append(f"a cut number: {text['text']}")
    for one, other in combinations(room["texts"], 2):
        (a, b, c, d), (e, f, g, h) = one["box"], other["box"]
        if min(c, g) - max(a, e) > 1 and min(d, h) - max(b, f) > 1:
            problems.append(f"{one['shown']} over {other['shown']}")
    return problems


@pytest.mark.parametrize("kind", TEXTS)
def test_nothing_is_dropped_in_silence_and_no_text_covers_another(
    kind: str, tmp_path: Path
) -> None:
    served(tmp_path)
    sent = dict(payloads(kind))
    for name, data in sent.items():
        (tmp_path / name).write_bytes(data)
    files = [str(tmp_path / name) for name in sent]
    done = run("node", "slides.js", str(tmp_path), json.dumps(ROOMS), *files)
    assert done.returncode == 0, done.stderr[-2000:]
    rooms = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rooms) == len(ROOMS) * len(sent)
    problems = []
    for room in rooms:
        name = Path(room["file"]).name
        header, _ = codec.decode(sent[name])
        found = [*missing(header, room), *faults(room)]
        if "x" in room["name"] and room["name"] != "390x844":
            found += [f"{one['shown']}: small" for one in room["texts"] if one["size"] < LEAST]
            gone = [one for one in room["omitted"] if one["what"] == "figures"]
            found += [told(one) for one in gone]
        problems += [f"{name} at {room['name']}: {each}" for each in found]
    assert not problems, "\n".join(problems)


def voted() -> set[str]:
    """The panels that a question of a lesson with answers to choose from stands beside, and those
    that show its true answer."""
    asked = [
        each
        for written in lessons.written().values()
        for each in written["item"]
        if "options" in each
    ]
    return {each["panel"] for each in asked} | {each["proof"]["panel"] for each in asked}


@pytest.mark.parametrize("kind", ["encoder", "decoder", "translator"])
def test_below_formulas_and_beside_a_vote_nothing_is_cut(kind: str, tmp_path: Path) -> None:
    served(tmp_path)
    beside = voted()
    assert len(beside) >= 5
    sent = {
        name: data
        for name, data in payloads(kind)
        if name in beside or codec.decode(data)[0]["formulas"]
    }
    for name, data in sent.items():
        (tmp_path / name).write_bytes(data)
    problems = []
    for places, names in (
        (BELOW_SYMBOLS, [each for each in sent if codec.decode(sent[each])[0]["formulas"]]),
        (BELOW_NUMBERS, [each for each in sent if codec.decode(sent[each])[0]["formulas"]]),
        (BESIDE_A_VOTE, [each for each in sent if each in beside]),
    ):
        if not names:
            continue
        files = [str(tmp_path / name) for name in names]
        done = run("node", "slides.js", str(tmp_path), json.dumps(places), *files)
        assert done.returncode == 0, done.stderr[-2000:]
        for room in map(json.loads, done.stdout.splitlines()):
            name = Path(room["file"]).name
            header, _ = codec.decode(sent[name])
            found = [*missing(header, room), *faults(room)]
            if places is not BELOW_NUMBERS:  # a press takes these away
                found += [f"{one['shown']}: small" for one in room["texts"] if one["size"] < LEAST]
            if places is BELOW_SYMBOLS and name not in TALL:  # numbers make room for a figure
                found += [told(one) for one in room["omitted"] if one["what"] == "figures"]
            problems += [f"{name} at {room['name']}: {each}" for each in found]
    assert not problems, "\n".join(problems)


def test_a_flow_beside_a_vote_covers_no_place_of_its_answer(tmp_path: Path) -> None:
    served(tmp_path)
    text = "Shyam grew up in Nepal where he stayed until he was 20 years old and speaks fluent"
    run_without = Run("decoder", text, (ZeroHead(2, 0),))
    file = tmp_path / "architecture.flow"
    file.write_bytes(architecture.flow(run_without, beam="end").encode())
    rooms = [
        {"name": f"{wide}", "width": wide, "height": high, "window": window}
        for wide, high, window in ((755, 330, 1280), (755, 400, 1280), (1140, 520, 1920))
    ]
    done = run("node", "slides.js", str(tmp_path), json.dumps(rooms), str(file))
    assert done.returncode == 0, done.stderr[-2000:]
    for room in map(json.loads, done.stdout.splitlines()):
        assert not faults(room)
        assert any(re.search(r"\d(st|nd|rd|th)\b", each["shown"]) for each in room["texts"])


def test_a_flow_on_a_slide_has_all_words_of_a_sentence_and_nothing_of_a_menu(
    tmp_path: Path,
) -> None:
    served(tmp_path)
    told = architecture.flow(Run("encoder", DEFAULT_TEXT), beam="end")
    covered = architecture.flow(Run("encoder", DEFAULT_TEXT), cover=True)
    assert "View" not in covered.finding
    for name, panel in (("told", told), ("covered", covered)):
        (tmp_path / name).write_bytes(panel.encode())
    rooms = [{"name": "540", "width": 1218, "height": 540, "window": 1280}, {"name": "file"}]
    files = [str(tmp_path / name) for name in ("told", "covered")]
    done = run("node", "slides.js", str(tmp_path), json.dumps(rooms), *files)
    assert done.returncode == 0, done.stderr[-2000:]
    for room in map(json.loads, done.stdout.splitlines()):
        assert not [each for each in room["omitted"] if each["what"] == "rows"]
        assert "View" not in " ".join(each["shown"] for each in room["texts"])
        assert room["name"] == "file" or not faults(room)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_layers_of_a_network_keep_their_names_apart_below_formulas(
    kind: str, tmp_path: Path
) -> None:
    served(tmp_path)
    file = tmp_path / "feed_forward.network"
    file.write_bytes(made(file.name, Run(kind, TEXTS[kind])).encode())
    rooms = [
        {"name": f"{high}", "width": 1218, "height": high, "window": 1280} for high in (330, 390)
    ]
    done = run("node", "slides.js", str(tmp_path), json.dumps(rooms), str(file))
    assert done.returncode == 0, done.stderr[-2000:]
    assert [faults(json.loads(line)) for line in done.stdout.splitlines()] == [[], []]


@pytest.mark.parametrize("kind", TEXTS)
def test_what_is_cut_for_a_slide_has_the_values_and_colours_of_the_page(
    kind: str, tmp_path: Path
) -> None:
    served(tmp_path)
    sent = dict(payloads(kind))
    for name, data in sent.items():
        (tmp_path / name).write_bytes(data)
    files = [str(tmp_path / name) for name in sent]
    done = run("node", "cells.js", str(tmp_path), *files)
    assert done.returncode == 0, done.stderr[-2000:]
    cuts = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(cut["count"] for cut in cuts)
    wrong = [cut for cut in cuts if cut["wrong"]]
    assert not wrong, "\n".join(map(str, wrong[:20]))
