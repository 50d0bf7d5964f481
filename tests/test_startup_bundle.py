"""The startup bundle: what is in it, and the page without it where Streamlit's files are others."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from explorer.app.server import startup_bundle
from explorer.components import bundle

INDEX = (startup_bundle.STATIC / "index.html").read_text("utf-8")
ROOT = startup_bundle.ROOT
ENTRY = re.findall(r'src="\./(static/js/index\.[^"]+\.js)"', INDEX)[0]


def parts(startup: startup_bundle.StartupBundle) -> dict[str, str]:
    """The modules by their paths, cut as the page's script cuts them."""
    index, _, data = startup.data.partition(b"\n")
    texts, at = {}, 0
    for path, size in json.loads(index)["modules"]:
        texts[path] = data[at : at + size].decode()
        at += size
    assert at == len(data)
    return texts


@pytest.fixture
def startup() -> startup_bundle.StartupBundle:
    made = startup_bundle.startup_bundle()
    assert made is not None, "the installed Streamlit is laid out in another way"
    return made


def test_it_has_what_the_first_page_imports(startup: startup_bundle.StartupBundle) -> None:
    texts = parts(startup)
    preloaded = re.findall(r'rel="modulepreload"[^>]* href="\./([^"]+)"', INDEX)
    assert {ENTRY, *preloaded} <= texts.keys()
    for name in startup_bundle.ELEMENTS:
        assert sum(path.startswith(f"static/js/{name}.") for path in texts) == 1, name
    own = {path.rpartition("/")[2] for path in texts if path.startswith("headlight/")}
    assert {"panel.js", "panel.css.js", "presenter.js", "figures.js"} <= own < {*bundle.modules()}
    assert not own & {"slide_layout.js", "lesson_bar.js", "quiz.js"}, (
        "nobody has asked for them yet"
    )
    soon = json.loads(startup.data.partition(b"\n")[0])["soon"]
    assert len(soon) == len(startup_bundle.ELEMENTS) + len(startup_bundle.VIEWS)
    assert set(soon) <= texts.keys()
    assert gzip.decompress(startup.packed) == startup.data


def test_every_import_in_it_is_found(startup: startup_bundle.StartupBundle) -> None:
    texts = parts(startup)
    static = "".join(text for path, text in texts.items() if path.startswith("static/"))
    folder = startup_bundle.STATIC / "static" / "js"
    # A name that is left as it was is no file of that folder: a word in a text.
    left = re.findall(r"""(?:from|import\(?)\s*["'`]\./([^"'`]+)["'`]""", static)
    assert not [name for name in left if (folder / name).is_file()]
    named = re.findall(r"""(?:from|import) ["'`]@app/([^"'`]+)["'`]""", "".join(texts.values()))
    assert len(named) > 100 and set(named) <= texts.keys()
    later = re.findall(r"import\( [\"'`]@app/([^\"'`]+)[\"'`]", static)
    assert later and all((startup_bundle.STATIC / path).is_file() for path in later)
    assert "import.meta.url" not in "".join(texts.values())


def test_a_loaded_element_is_drawn_at_once(startup: startup_bundle.StartupBundle) -> None:
    texts = parts(startup)
    for name in startup_bundle.ELEMENTS:
        path = next(path for path in texts if path.startswith(f"static/js/{name}."))
        first, otherwise = f'lazy)(()=>window.headlightLoaded?.["{path}"]??', f"`{ROOT}{path}`"
        _, found, rest = texts[ENTRY].partition(first)
        assert found and otherwise in rest[:200], name


def test_the_page_loads_it_in_place_of_each_module(startup: startup_bundle.StartupBundle) -> None:
    page = startup_bundle.with_loader(INDEX)
    assert startup.path in page and f'new URL("{ENTRY}", root)' in page
    assert 'rel="modulepreload"' not in page and '<script type="module"' not in page
    assert page.index('<div id="root">') < page.index('rel="stylesheet"')


@pytest.mark.parametrize("layout", ["nothing", "another page", "no first module", "no text"])
def test_there_is_none_of_another_layout_of_streamlits_files(
    layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = INDEX.replace('type="module"', "defer") if layout == "another page" else INDEX
    if layout != "nothing":
        (tmp_path / "index.html").write_text(page, "utf-8")
    if layout in ("another page", "no text"):
        (tmp_path / ENTRY).parent.mkdir(parents=True)
        (tmp_path / ENTRY).write_bytes(b"\xff" if layout == "no text" else b"")
    monkeypatch.setattr(startup_bundle, "STATIC", tmp_path)
    assert startup_bundle.startup_bundle() is None
    if layout == "another page":
        assert startup_bundle.with_loader(page) == page
