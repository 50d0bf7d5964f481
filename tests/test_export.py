"""Files that stand alone: what they hold, how large they are, opened from the disk and offline."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import driver
import pytest
import torch
from conftest import SMALL, TEXTS, read_once, sharpened

from explorer import export, notebook
from explorer.components import bundle
from explorer.onefile.modules import import_map
from explorer.sentences.anatomy import say_weight
from explorer.sentences.escape import literal, plain
from models import library
from models.edits import ZeroHead
from models.own import Handle, handle_of
from models.tokenizer import Tokenizer
from models.transformer import Encoder

HOSTILE = (
    "</script><script>document.title='owned'</script> <!-- <b onclick=x>it</b> \u2028 & \" ' "
    "\x01 was tired שלום **x** https://example.org"
)


@pytest.fixture(scope="module")
def encoder() -> Handle:
    return read_once("encoder")


def test_the_code_of_a_file_is_whole_and_asks_for_no_other_file() -> None:
    made = import_map(["heads"])["imports"]
    assert {"headlight/alone.js", "headlight/heads.js", "headlight/wire.js"} <= set(made)
    assert "headlight/anatomy.js" not in made, "what is not needed is left out"
    for name, address in made.items():
        code = b64decode(address.partition(",")[2]).decode()
        assert not re.search(r'from\s*"\.|import\s*"\.', code), name
        for needed in re.findall(r'^(?:import|export|\}).*?"(headlight/[^"]+)"', code, re.M):
            assert needed in made, f"{name} needs {needed}"
    for component in ("lens", "translation", "paths", "anatomy", "compare"):
        assert f"headlight/{component}.js" in import_map([component])["imports"]
    with pytest.raises(ValueError, match="no component 'nothing'"):
        import_map(["nothing"])
    assert bundle.modules()["alone.js"]


@pytest.mark.parametrize("text", [HOSTILE, "a*b_c `d` \\ #e", "שלום 3"])
def test_a_sentence_without_its_marks_has_the_words_as_they_were_typed(text: str) -> None:
    said = plain(f"**{literal(text)}** looks at *{literal(text)}*")
    once = " ".join(text.split())
    bare = said.replace("\u2068", "").replace("\u2069", "")
    assert bare == f"{once} looks at {once}"


def test_a_file_says_what_it_is(encoder: Handle) -> None:
    recording = library.record(encoder, HOSTILE, (ZeroHead(1, 2),))
    made = export.page(
        recording, model=encoder, link="https://lab.example/headlight/", layer=1, head=2
    )
    assert made.count("<script") == 3 and "owned" not in re.sub(r"<footer>.*", "", made, flags=re.S)
    foot = unescape(re.search(r"<footer>(.*)</footer>", made, re.S)[1])
    for said in ("model encoder", encoder.card.fingerprint, str(ZeroHead(1, 2)), "was tired"):
        assert said in foot
    link = unescape(re.search(r'<a href="([^"]+)"', made)[1])
    assert link.startswith("https://lab.example/headlight/?") and "layer=1&head=2" in link
    assert "edits=" in link
    assert "<a " not in export.page(recording, model=encoder, link="javascript:alert(1)")
    with pytest.raises(ValueError, match="no view is called 'nothing'"):
        export.page(recording, "nothing", model=encoder)
    with pytest.raises(ValueError, match="layer is '9'"):
        export.page(recording, model=encoder, layer=9)


# layers x heads, tokens, and the most bytes of a file with all of them
SIZED = [(6, 8, 30, 2_000_000), (12, 12, 128, 6_000_000)]


@pytest.mark.parametrize(("layers", "heads", "tokens", "most"), SIZED)
def test_files_are_small(layers: int, heads: int, tokens: int, most: int) -> None:
    """With random weights, whose rows are the least alike."""
    torch.manual_seed(0)
    config = replace(SMALL, d_model=4 * heads, n_layer=layers, n_head=heads, n_positions=tokens)
    model = sharpened(Encoder(config))
    handle = handle_of(model, Tokenizer.train(TEXTS, SMALL.n_vocab), "wide", "random", "fp32")
    recording = library.record(handle, TEXTS[0] * 20)  # read up to what the model takes
    assert recording.attention[0].pattern.shape == (layers, heads, tokens, tokens)
    assert len(export.page(recording, model=handle)) < most


@pytest.fixture
def opened(browser: object, tmp_path: Path) -> Iterator[Callable[..., driver.Visitor]]:
    """A file in the browser, from the disk, offline: nothing in the console, nothing asked for."""
    visits = []

    def open_(made: str, **options) -> driver.Visitor:
        file = tmp_path / f"{len(visits)}.html"
        file.write_text(made, "utf-8")
        one = driver.Visitor(browser, "", **options)
        one.context.set_offline(True)
        one.page.goto(file.as_uri())
        one.page.wait_for_selector("main[data-drawn]", timeout=20_000)
        visits.append(one)
        return one

    yield open_
    for one in visits:
        asked = [each for each in one.requests if not each.startswith(("file:", "data:", "blob:"))]
        assert not one.errors and not asked and one.page.title() != "owned"
        one.context.close()


@pytest.mark.browser
@pytest.mark.slow
def test_heads_in_a_file(encoder: Handle, opened: Callable[..., driver.Visitor]) -> None:
    recording = library.record(encoder, HOSTILE)
    page = opened(export.page(recording, model=encoder, layer=1, head=5)).page
    page.wait_for_selector("canvas[data-painted]")
    assert page.locator("h2").inner_text() == "Layer 1, head 5"
    page.locator("[data-part=heads] .cell").nth(8 * 3 + 2).click()  # layer 3, head 2
    assert page.locator("h2").inner_text() == "Layer 3, head 2"
    page.get_by_role("button", name="Matrix", exact=True).click()
    at = next(i for i, token in enumerate(recording.streams[0].tokens) if token == "tired")
    page.locator("[data-part=head] .token").nth(at).click()
    row = recording.attention[0].pattern[3, 2, at]
    best = recording.streams[0].tokens[int(row.argmax())]
    told = page.locator("[data-part=head] .says").inner_text()
    assert told.startswith("tired looks at ") and best in told and f"{row.max():.2f}" in told
    # Another head keeps the word that is held.
    page.locator("[data-part=heads] .cell").nth(0).click()
    assert page.locator("h2").inner_text() == "Layer 0, head 0"
    assert page.locator("[data-part=head] .says").inner_text().startswith("tired looks at ")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.locator("[data-part=head] canvas").count()


@pytest.mark.browser
@pytest.mark.slow
def test_every_other_view_in_a_file(encoder: Handle, opened: Callable[..., driver.Visitor]) -> None:
    recording = library.record(encoder, HOSTILE)

    page = opened(export.page(recording, "findings", model=encoder)).page
    for step in page.locator(".step").all():
        step.click()
        assert step.get_attribute("aria-pressed") == "true"
        where = page.locator("h2").last.inner_text()
        if step.inner_text().startswith("Layer"):
            assert step.inner_text().startswith(where), "a finding opens its own head"

    short = library.record(encoder, "</script> <b>it was tired")
    first = short.streams[0].tokens[0]
    page = opened(export.page(short, "anatomy", model=encoder, layer=1, head=5)).page
    page.locator("[data-part=anatomy] .area").first.click(position={"x": 3, "y": 3})
    weight = float(short.attention[0].pattern[1, 5, 0, 0])
    told = page.locator("h2").first.inner_text()
    assert told.startswith(f"Query {first} (0) gives key {first} (0) the weight")
    assert told.endswith(say_weight(weight))
    assert page.locator("[data-part=anatomy]").nth(1).locator("canvas").count() > 2

    page = opened(export.page(recording, "lens", model=encoder)).page
    page.get_by_role("button", name="Rank", exact=True).click()
    way = page.locator("[data-part=lens]").nth(1)
    way.locator("button").first.click()
    assert way.locator("button").first.get_attribute("aria-pressed") == "true"

    translator = read_once("translator")
    said = library.record(translator, "The red car is new. </script><script>")
    page = opened(export.page(said, "alignment", model=translator)).page
    assert page.locator("[data-part=translation]").get_by_text("voiture").count()

    other = library.record(encoder, HOSTILE, (ZeroHead(1, 5),))
    page = opened(export.page(recording, "comparison", model=encoder, other=other)).page
    told = page.locator("[data-part=compare] h3")
    shown = told.inner_text()
    page.locator("[data-part=compare]").first.locator("button").first.click()
    assert told.inner_text() != shown

    page = opened(
        export.page(recording, "paths", model=encoder), viewport={"width": 390, "height": 844}
    ).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("[data-part=paths]").get_by_text("Explained variance").count()

    frame = notebook.heads(recording, layer=0, head=3)._repr_html_()
    page = opened(f"<!doctype html><main data-drawn>notebook</main>{frame}").page
    inside = page.frame_locator("iframe")
    inside.locator("[data-part=heads] .cell").nth(1).click()
    assert inside.locator("h2").inner_text() == "Layer 0, head 1"
