"""What a caller gets wrong is told: words and places of addresses that no page knows, words that
the text does not have, edits that would change nothing or a part of what was meant, empty texts;
with the nearest name that there is."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tolerances import STORED

import headlight
from explorer.app.state import url_state
from explorer.app.views import tabs
from explorer.screens import known_words
from headlight import Run, edits, panels
from models.contract.notices import Notice
from models.contract.spelling import nearest, there_are
from models.network import own_model

ROOT = Path(__file__).parent.parent
TEXT = "the cat sat on the mat"


def told(call: Callable[[], Any]) -> list[str]:
    """What a call says that it did not do."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught if issubclass(each.category, Notice)]


def test_the_nearest_name_is_that_of_most_like_letters() -> None:
    names = ("layer", "Head", "source")
    assert nearest("lyaer", names) == "layer" and nearest("heads", names) == "Head"
    assert nearest("zebra", names) == "" and nearest("layer", ()) == ""
    assert there_are("zebra", names) == "there are layer, Head, source"
    assert there_are("x", ("decoder",)) == "there is decoder"


# ---- addresses ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("?lyaer=3", "lyaer of this address is not followed: .* the nearest is layer"),
        ("?heads=2", "heads of this address is not followed: .* the nearest is head"),
        ("?xqz=2", "xqz of this address is not followed: no page has a word of this name"),
        ("/nowhere?layer=3", "No page is called 'nowhere'; there are attention, .* Attention"),
        ("/predcit?layer=3", "No page is called 'predcit'; the nearest is 'predict'"),
        ("?word=zebra", "word of this address is not followed: No word .* 'zebra'; there are"),
    ],
)
def test_what_an_address_names_that_is_not_there_is_told(address: str, says: str) -> None:
    (line,) = told(lambda: headlight.screen(address))
    assert re.match(says, line), line


@pytest.mark.parametrize(
    "address",
    [
        "?layer=3&word=it&off=1.5",
        "https://example.org/headlight/?layer=1",
        "https://example.org/headlight?tab=weight",
        "/attention?covered=2&lesson=&quiz=Ten&live_task=copy&verify=1",
    ],
)
def test_words_and_places_that_some_page_knows_are_not_told(address: str) -> None:
    assert not told(lambda: headlight.screen(address))


def test_all_words_of_the_pages_are_known_without_the_app() -> None:
    assert tabs.VIEWS  # with them the choices of all tabs are declared
    assert {*url_state.names()} <= known_words.known()


def test_an_address_is_a_text_or_words() -> None:
    with pytest.raises(TypeError, match="by their names, and not 3"):
        headlight.screen(3)  # type: ignore[arg-type]


def test_the_module_is_the_command_too() -> None:
    command = [sys.executable, "-m", "headlight", "--help"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("usage: headlight") and "figure" in ran.stdout


# ---- words in the place of numbers -------------------------------------------


def test_panels_take_words_as_addresses_do() -> None:
    """The place of a word of the text, and the id of a word of the vocabulary."""
    decoder = headlight.load("decoder")
    recording = decoder.record(TEXT)
    at = recording.streams[0].tokens.index("sat")
    named = panels.attention.head(recording, layer=0, head=1, token="sat")
    assert named.call == panels.attention.head(recording, layer=0, head=1, token=at).call
    id = decoder.first_token("dog")[0]
    by_word = panels.attribution.logit(recording, token=at, word="dog")
    assert by_word.call == panels.attribution.logit(recording, token=at, word=id).call
    with pytest.raises(ValueError, match="No word of the text is 'dog'; there are .*the, cat"):
        panels.attention.head(recording, layer=0, head=1, token="dog")
    with pytest.raises(ValueError, match="'sats'; the nearest is 'sat'"):
        panels.attention.head(recording, layer=0, head=1, token="sats")
    with pytest.raises(TypeError, match="token is a whole number or a word, and not 2.5"):
        panels.attention.head(recording, layer=0, head=1, token=2.5)
    with pytest.raises(TypeError, match="layer is a whole number, and not 'first'"):
        panels.attention.head(recording, layer="first")


# ---- edits that change nothing, or a part ------------------------------------


def test_vectors_by_token_are_as_many_as_tokens(model: own_model.OwnModel) -> None:
    target = {"target": TEXT} if model.card.kind == "encoder-decoder" else {}
    recording = model.record(TEXT, **target)
    stream, n = recording.streams[0], len(recording.streams[0].tokens)
    site = stream.sites[-1]
    rows = np.ones((n, model.card.d_model), np.float32)
    added = model.record(TEXT, edits.AddToSite(rows, site), **target).streams[0].at(site)
    np.testing.assert_allclose(added, stream.at(site) + 1, atol=STORED)
    attention = recording.attention[0].name
    for count in (n - 2, n + 2):
        rows = np.ones((count, model.card.d_model), np.float32)
        with pytest.raises(ValueError, match=f"has {count} rows, and .* has {n} tokens there"):
            model.record(TEXT, edits.AddToSite(rows, site), **target)
        rows = np.ones((count, model.card.d_head), np.float32)
        with pytest.raises(ValueError, match=f"has {count} rows, and .* has {n} tokens there"):
            model.record(TEXT, edits.SetHead(rows, 0, 0, attention), **target)


def test_an_edge_to_a_later_token_is_none_to_cut(small_decoder: own_model.OwnModel) -> None:
    with pytest.raises(ValueError, match="from token 1 to 4” cuts nothing"):
        small_decoder.record(TEXT, edits.CutEdge(0, 0, 1, 4))
    plain, cut = (
        small_decoder.record(TEXT, each).attention[0].pattern
        for each in ((), edits.CutEdge(0, 0, "all", 4))
    )
    assert not cut[0, 0, 5:, 4].any() and (plain[0, 0, :4] == cut[0, 0, :4]).all()


def test_a_word_or_a_site_that_is_not_there_is_told_with_the_nearest(
    small_decoder: own_model.OwnModel,
) -> None:
    for edit, says in (
        (edits.CutEdge(0, 0, "Mat", "cat"), "'Mat'; the nearest is 'mat'"),
        (edits.CutEdge(0, 0, "mat", "sister"), "'sister'; there are the, cat, sat, on, mat"),
        (edits.ScaleSite(2.0, "1.fnn.sum"), "'1.fnn.sum' of stream decoder; the nearest is"),
    ):
        with pytest.raises(ValueError, match=says):
            small_decoder.record(TEXT, edit)


def test_an_empty_text_is_told(small_model: own_model.OwnModel) -> None:
    (line,) = told(lambda: small_model.record(""))
    assert line.startswith("the text is empty: ") and "special tokens alone" in line
    assert not told(lambda: small_model.record("the"))


# ---- what is handed in otherwise ---------------------------------------------


def test_a_run_takes_one_edit_a_loaded_model_and_ids(small_decoder: own_model.OwnModel) -> None:
    edit = edits.ZeroHead(0, 1)
    assert Run("decoder", TEXT, edit) == Run("decoder", TEXT, (edit,))  # type: ignore[arg-type]
    decoder = headlight.load("decoder")
    run = Run(decoder, TEXT, edit)  # type: ignore[arg-type]
    assert run == Run("decoder", TEXT, (edit,))
    assert run.recording() == decoder.record(TEXT, edit)
    ids = decoder.record(TEXT).streams[0].ids[1:].tolist()
    read = Run(decoder, ids)  # type: ignore[arg-type]
    assert read.recording() == decoder.record(ids)
    wrong: Any
    for wrong, says in ((3, "a model is a name or what"), (None, "a model is a name or what")):
        with pytest.raises(TypeError, match=says):
            Run(wrong, TEXT)
    for wrong in ("x", ("x",), 3):
        with pytest.raises(TypeError, match="edits are of headlight.edits"):
            Run("decoder", TEXT, wrong)
    with pytest.raises(TypeError, match="a text is a str, or a sequence of token ids"):
        Run("decoder", 3)  # type: ignore[arg-type]


def test_a_run_of_a_wrapped_model_is_its_recording() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2}
    config = transformers.GPT2Config(vocab_size=60, n_positions=64, **sizes)
    wrapped = headlight.wrap(transformers.GPT2LMHeadModel(config).eval())
    recording = Run(wrapped, [5, 6, 7]).recording()  # type: ignore[arg-type]
    assert recording == wrapped.record([5, 6, 7])


def ragged() -> Any:
    return headlight.view([[1.0, 0.0], [1.0]], ["a", "b"])


def batch() -> Any:
    return headlight.view(np.full((2, 2, 4, 4), 0.25), [["a", "b", "c", "d"]] * 2)


MISTAKES: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    (lambda m, r: ragged(), TypeError, "lists of different lengths"),
    (lambda m, r: batch(), ValueError, "2 texts in this batch; give its attention_mask as mask"),
    (lambda m, r: headlight.record(TEXT, m), TypeError, "the model comes first"),
    (lambda m, r: headlight.load("SmolLM3"), ValueError, "the nearest one here is 'smollm2'"),
    (lambda m, r: headlight.page(r, "hads"), ValueError, "'hads'; the nearest is 'heads'"),
    (lambda m, r: headlight.page(r, "attention.hed"), ValueError, "nearest is 'attention.head'"),
    (lambda m, r: headlight.page(r, lyaer=1), ValueError, "'lyaer'; the nearest is 'layer'"),
    (lambda m, r: r.streams[0].at("1.fnn.sum"), KeyError, "the nearest is '1.ffn.sum'"),
    (lambda m, r: r.stream("x"), ValueError, "there is decoder"),
    (lambda m, r: m.lens(r, "decoder", sites=["x"]), ValueError, "there are embed"),
    (lambda m, r: m.generate([1, 2]), TypeError, "prefix=ids"),
    (
        lambda m, r: m.record(TEXT, edits.PatchPath("a", 2, 0, 1, 0, "q")),
        ValueError,
        "from layer 2 to a later one; to_layer can be 3",
    ),
    (lambda m, r: edits.ZeroHeads, AttributeError, "headlight.edits .* 'ZeroHead'"),
    (lambda m, r: headlight.recrod, AttributeError, "the nearest is 'record'"),  # type: ignore
    (
        lambda m, r: panels.attention.heads(r).save("a.pdf", width=8.5),  # type: ignore
        ValueError,
        "cannot be 8.5 wide; say 8.5cm",
    ),
]


@pytest.mark.parametrize(("call", "kind", "says"), MISTAKES)
def test_a_mistake_is_told_with_what_is_taken(
    call: Callable[[Any, Any], Any],
    kind: type[Exception],
    says: str,
) -> None:
    decoder = headlight.load("decoder")
    with pytest.raises(kind, match=says):
        call(decoder, decoder.record(TEXT))
