"""Files that stand alone: what they hold, and how large they are."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import torch
from conftest import SMALL, TEXTS, read_once, sharpened

import headlight
from benchmarks import files
from explorer import export
from explorer.components import bundle
from explorer.figures.html_export import import_map
from explorer.wording.markdown_escape import literal, plain
from models.contract.edits import ZeroHead, describe, to_line
from models.contract.recording import Attention, Recording
from models.network.own_model import from_network
from models.network.transformer import Encoder
from models.tokens.tokenizer import Tokenizer

HOSTILE = (
    "</script><script>document.title='owned'</script> <!-- <b onclick=x>it</b> \u2028 & \" ' "
    "\x01 was tired שלום **x** https://example.org"
)


def test_the_code_of_a_file_is_whole_and_asks_for_no_other_file() -> None:
    made = import_map(["quiz"])["imports"]
    assert {"headlight/standalone_host.js", "headlight/quiz.js", "headlight/codec.js"} <= set(made)
    assert "headlight/panel.js" not in made, "what is not needed is left out"
    for name, address in made.items():
        code = b64decode(address.partition(",")[2]).decode()
        assert not re.search(r'from\s*"\.|import\s*"\.', code), name
        for needed in re.findall(r'^(?:import|export|\}).*?"(headlight/[^"]+)"', code, re.M):
            assert needed in made, f"{name} needs {needed}"
    for component in ("panel", "quiz"):
        assert f"headlight/{component}.js" in import_map([component])["imports"]
    with pytest.raises(ValueError, match="no component 'nothing'"):
        import_map(["nothing"])
    assert bundle.modules()["standalone_host.js"]


@pytest.mark.parametrize("text", [HOSTILE, "a*b_c `d` \\ #e", "שלום 3"])
def test_a_sentence_without_its_marks_has_the_words_as_they_were_typed(text: str) -> None:
    said = plain(f"**{literal(text)}** looks at *{literal(text)}*")
    once = " ".join(text.split())
    bare = said.replace("\u2068", "").replace("\u2069", "")
    assert bare == f"{once} looks at {once}"


@pytest.mark.parametrize("view", [*export.VIEWS, "soft_lookup.temperature"])
def test_every_file_says_what_it_is_of_and_leads_back(view: str) -> None:
    """Model, the weights' hash, text, edits and the way back."""
    model, edits = read_once("encoder"), (ZeroHead(1, 2, "self"),)
    recording = model.record(HOSTILE, edits)
    made = export.page(recording, view, model=model, link="https://lab.example/h")
    assert made.count("<script") == 3 and "owned" not in re.sub(r"<footer>.*", "", made, flags=re.S)
    foot = unescape(re.search(r"<footer>(.*)</footer>", made, re.S)[1])
    (headline,) = re.findall(r"<p dir=auto>(Headlight · .*?)</p>", foot)
    name, hash_of = model.card.name, model.card.fingerprint
    assert f"model {name} (" in headline and f"weights {hash_of})" in headline
    assert headline.endswith(f"edits: {describe(edits)}") and "was tired" in foot
    where = urlsplit(unescape(re.search(r'<a href="([^"]+)"', made)[1]))
    assert (where.scheme, where.netloc) == ("https", "lab.example")
    query = dict(parse_qsl(where.query))
    assert where.path == "/h/" and query.get("model", "encoder") == name
    assert query["text"] == recording.text and query["edits"] == to_line(edits)


def test_a_page_of_several_texts_has_each_of_them_and_the_code_once() -> None:
    encoder = read_once("encoder")
    texts = [HOSTILE, "The cat sat.", "Ram pushed Hari"]
    recordings = [encoder.record(each) for each in texts] + [
        encoder.record(texts[1], ZeroHead(1, 2))
    ]
    alone, made = export.page(recordings[1], model=encoder), export.page(recordings, model=encoder)
    data = [re.findall(r'class="data">([^<]+)<', each) for each in (alone, made)]
    assert len(data[1]) == len(recordings) and data[0][0] == data[1][1] != data[1][3]
    less = len(made) - sum(map(len, data[1]))
    assert less < len(alone) - len(data[0][0]) + 5000, "a heading, a caption and a way back of each"
    assert (
        made.count("<script") == 2 + len(recordings)
        and "owned" not in made.split("<main>")[1].split("<footer>")[0]
    )
    names = [unescape(each) for each in re.findall(r"<option>([^<]*)</option>", made)]
    assert names[1:3] == texts[1:] and names[3] == f"{texts[1]} · {describe(recordings[3].edits)}"
    with pytest.raises(TypeError, match="of a recording or of several, and not of a str"):
        export.page("The cat sat.")
    with pytest.raises(ValueError, match="one recording or more"):
        export.page([])


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_texts_of_a_model_in_its_own_code_are_each_the_page_of_one(
    kind: str, tiny_loaded: Callable
) -> None:
    model = tiny_loaded(kind)
    recordings = [model.record(each) for each in ("the cat sat", "the dog ran", "a house")]
    pages = (
        export.page(recordings, model=model),
        *(export.page(each, model=model) for each in recordings),
    )
    data = [re.findall(r'class="data">([^<]+)<', each) for each in pages]
    assert data[0] == [each for (each,) in data[1:]] and len(set(data[0])) == 3


@pytest.mark.slow
def test_two_hundred_texts_have_the_bytes_that_the_documents_say() -> None:
    encoder = read_once("encoder")
    recordings = headlight.record(encoder, files.texts(encoder, 200))
    whole = len(export.page(recordings, "heads", model=encoder).encode())
    assert whole == as_documented("20 each, 32") and whole < 20_000_000


def test_a_file_links_to_no_script_and_refuses_what_is_not_there() -> None:
    encoder = read_once("encoder")
    recording = encoder.record(HOSTILE)
    made = export.page(recording, model=encoder, link="https://lab.example/h/", layer=1, head=2)
    assert "layer=1&head=2" in unescape(re.search(r'<a href="([^"]+)"', made)[1])
    assert "<a " not in export.page(recording, model=encoder, link="javascript:alert(1)")
    with pytest.raises(ValueError, match="no view is called 'nothing'"):
        export.page(recording, "nothing", model=encoder)
    with pytest.raises(ValueError, match="There is no layer 9"):
        export.page(recording, model=encoder, layer=9)


def of_noise(recording: Recording) -> Recording:
    """The recording with other rows of attention: a Dirichlet's, which it spreads over bytes of
    every size. Hardly any rows are less alike, or take more bytes."""
    drawn = np.random.default_rng(0)

    def rows(attention: Attention) -> Attention:
        made = drawn.gamma(0.3, size=attention.pattern.shape) * attention.allowed[0]
        made /= made.sum(axis=-1, keepdims=True)
        return replace(attention, pattern=made.astype(np.float32))

    return replace(recording, attention=tuple(map(rows, recording.attention)))


@pytest.mark.parametrize(
    ("layers", "heads", "tokens", "most"), [(6, 8, 30, 2_000_000), (12, 12, 128, 6_000_000)]
)
def test_files_are_small(layers: int, heads: int, tokens: int, most: int) -> None:
    torch.manual_seed(0)
    config = replace(SMALL, d_model=4 * heads, n_layer=layers, n_head=heads, n_positions=tokens)
    tokenizer = Tokenizer.train(TEXTS, SMALL.n_vocab)
    model = from_network(sharpened(Encoder(config)), tokenizer, "wide", "random", "fp32")
    recording = of_noise(model.record(TEXTS[0] * 20))  # read up to what the model takes
    assert recording.attention[-1].pattern.shape == (layers, heads, tokens, tokens)
    for view in export.VIEWS:
        assert len(export.page(recording, view, model=model)) < most
    if tokens == 128:
        assert len(export.page(recording, model=model).encode()) == as_documented("128, 144")


def as_documented(size: str) -> object:
    """Bytes of a file of so many tokens and heads as docs/export.md says, to 2 %."""
    page = (Path(__file__).parent.parent / "docs/export.md").read_text("utf-8")
    (said,) = re.findall(rf"^\|.*\| {size} \| ([\d,]+) \|$", page, re.MULTILINE)
    # The code in a file changes by less from one change of the app to the next.
    return pytest.approx(int(said.replace(",", "")), rel=0.02)


@pytest.mark.parametrize(("times", "size"), [(1, "15, 32"), (5, "67, 32")])
def test_files_have_the_bytes_that_the_documents_say(times: int, size: str) -> None:
    text = "The animal didn't cross the street because it was too tired. "
    recording = read_once("encoder").record((times * text).strip())
    assert f"{len(recording.streams[0].tokens)}, 32" == size
    page = export.page(recording, "heads", model=read_once("encoder"), layer=1, head=5)
    assert len(page.encode()) == as_documented(size)
