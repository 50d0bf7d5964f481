"""What a caller of the library hands in by mistake is said in a clear sentence, and what is plainly
meant is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from conftest import read_once
from tolerances import PASSED

import headlight
from explorer.panels import address, choice, spec
from models.contract.edits import HideToken, PatchSite, ZeroHead
from models.contract.recording import Recording
from models.runtime import registry
from models.runtime.run import Run

TEXT = "The cat sat on the mat."


@pytest.fixture(scope="module")
def encoder():
    return read_once("encoder")


@pytest.fixture(scope="module")
def recording(encoder) -> Recording:
    return encoder.record(TEXT)


READS = [
    lambda model, made: model.logits(made, "encoder", 1),
    lambda model, made: model.lens(made, "encoder").logprob[-1],
    lambda model, made: model.attribute(made, "encoder", 1, 5),
    lambda model, made: model.gradients(made, "encoder", 1),
    lambda model, made: model.jacobian(made, "encoder", 1, "0.attn").wrote,
    lambda model, made: model.ffn_activations(made, "encoder", 0, 1).after,
    lambda model, made: model.neurons(made, "encoder", 0, 1, 5),
]


def test_a_recording_of_other_weights_is_refused(encoder, recording: Recording) -> None:
    other = registry.load("encoder@permuted")
    for read in READS:
        with pytest.raises(ValueError, match="recording is of encoder .* the model is encoder@pe"):
            read(other, recording)
        with pytest.raises(TypeError, match="a recording is what model.record.*ndarray"):
            read(encoder, recording.streams[0].resid)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float64, np.float16])
def test_vectors_of_one_s_own_are_read_in_any_precision(
    kind, encoder, recording: Recording
) -> None:
    (stream,) = recording.streams
    mine = replace(recording, streams=(replace(stream, resid=stream.resid.astype(kind)),))
    rough = PASSED if kind is np.float64 else 0.1  # a logit of about 10 with 11 bits
    for read in READS:
        found, expected = (read(encoder, made) for made in (mine, recording))
        if isinstance(expected, np.ndarray):
            np.testing.assert_allclose(found, expected, atol=rough)


def test_vectors_of_another_width_are_refused(encoder, recording: Recording) -> None:
    (stream,) = recording.streams
    narrow = replace(recording, streams=(replace(stream, resid=stream.resid[..., :64].copy()),))
    with pytest.raises(ValueError, match="stream encoder have 64 dimensions and those of encoder"):
        encoder.lens(narrow, "encoder")


def test_a_name_stands_for_the_model(recording: Recording) -> None:
    assert headlight.record("encoder", TEXT) == recording
    with pytest.raises(
        ValueError, match="no model is called 'encodr'; the nearest one here is 'encoder'"
    ):
        headlight.record("encodr", TEXT)
    with pytest.raises(TypeError, match="a model is a name or what headlight.load"):
        headlight.record(None, TEXT)


def test_one_edit_is_a_tuple_of_one(encoder) -> None:
    for edit in (ZeroHead(0, 3), HideToken(2)):
        assert encoder.record(TEXT, edit) == encoder.record(TEXT, (edit,))
    assert encoder.record(TEXT, [ZeroHead(0, 3)]).edits == (ZeroHead(0, 3),)


@pytest.mark.parametrize("edits", ["0.3", ("0.3",), 5, [None], ZeroHead])
def test_what_is_no_edit_is_refused(edits, encoder) -> None:
    with pytest.raises(TypeError, match=r"edits are of headlight.edits, such as ZeroHead\(0, 3\)"):
        encoder.record(TEXT, edits)


@pytest.mark.parametrize("text", [None, ["a", "b"], 5, b"bytes"])
def test_what_is_no_text_is_refused(text, encoder) -> None:
    with pytest.raises(TypeError, match="a text is a str, or"):
        encoder.record(text)


def test_negative_places_count_from_the_end_everywhere(encoder, recording: Recording) -> None:
    n, layers, heads = len(recording.streams[0].tokens), 4, 8
    decoder = read_once("decoder")
    text = "The cat sat on"
    written = decoder.record(text)
    last = len(written.streams[0].tokens) - 1
    pairs = [
        (lambda t, k, h: encoder.logits(recording, "encoder", t)),
        (lambda t, k, h: encoder.attribute(recording, "encoder", t, 5)),
        (lambda t, k, h: encoder.gradients(recording, "encoder", t)),
        (lambda t, k, h: encoder.jacobian(recording, "encoder", t, "0.attn")),
        (lambda t, k, h: encoder.ffn_activations(recording, "encoder", k, t)),
        (lambda t, k, h: encoder.neurons(recording, "encoder", k, t, 5)),
        (lambda t, k, h: encoder.circuits("self", k, h, (5, 6))),
        (lambda t, k, h: encoder.record(TEXT, ZeroHead(k, h)).attention[0].pattern),
        (
            lambda t, k, h: (
                address.from_words(
                    "attention.head", Run("encoder", TEXT), {"layer": str(k), "head": str(h)}
                ).table
            )
        ),
        (
            lambda t, k, h: (
                address.from_words(
                    "soft_lookup.temperature",
                    Run("encoder", TEXT),
                    {"layer": str(k), "head": str(h), "token": str(t)},
                ).finding
            )
        ),
    ]
    for read in pairs:
        assert_same(read(-1, -1, -1), read(n - 1, layers - 1, heads - 1))
        for beyond in (n, -n - 1):
            with pytest.raises(ValueError, match=f"{beyond}|{beyond % 100}"):
                read(beyond, beyond, beyond)
    for sweep, name in ((decoder.patch_heads, "self"), (decoder.patch_sites, "decoder")):
        one, other = (sweep(text, "The dog sat on", name, at, 5, 6) for at in (-1, last))
        assert one.clean == other.clean and next(one.effects) == next(other.effects)
        with pytest.raises(ValueError, match=f"tokens 0 to {last}, not {-last - 2}"):
            sweep(text, "The dog sat on", name, -last - 2, 5, 6)
    edits = (ZeroHead(-1, -2), HideToken(-2), PatchSite("The dog sat on it", "0.ffn.normed", -3))
    places = (
        ZeroHead(layers - 1, heads - 2),
        HideToken(n - 2),
        PatchSite(edits[2].text, "0.ffn.normed", n - 3),
    )
    changed = encoder.record(TEXT, edits)
    assert changed.edits == places, "a caption says which it was"
    assert_same(changed.streams[0].resid, encoder.record(TEXT, places).streams[0].resid)
    for beyond in (HideToken(-n - 1), PatchSite("The dog", "0.ffn.normed", -n - 1)):
        with pytest.raises(ValueError, match=f"{-n - 1}"):
            encoder.record(TEXT, beyond)
    translator, target = read_once("translator"), "Le chat dort."
    n_target = len(translator.record(text, target=target).stream("decoder").tokens)
    for given in (target, tuple(translator.tokenizer.ids([target])[0])):
        for at, place in ((-1, n_target - 1), (-n_target, 0)):
            patch = PatchSite("The dog sat on it", "0.ffn.normed", at, "decoder")
            assert translator.record(text, patch, target=given).edits == (
                replace(patch, token=place),
            )
    with pytest.raises(ValueError, match="token -1 .* count the token from 0, or give the target"):
        translator.record(text, PatchSite("The dog sat", "0.ffn.normed", -1, "decoder"))
    hidden = encoder.patch_heads(TEXT, "The dog sat", "self", 1, 5, 6, HideToken(-2))
    assert (
        hidden.donor
        == encoder.patch_heads(TEXT, "The dog sat", "self", 1, 5, 6, HideToken(n - 2)).donor
    )


def assert_same(found: object, expected: object) -> None:
    """Equal values, whatever their parts are."""
    if is_dataclass(found):
        found, expected = vars(found), vars(expected)
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        for name in found:
            assert_same(found[name], expected[name])
    elif isinstance(found, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other)
    elif isinstance(found, np.ndarray):
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def test_an_unknown_site_or_token_lists_those_that_there_are(encoder, recording: Recording) -> None:
    for edit, there in (
        (PatchSite("A dog sat.", "0.attn.sun"), "no site .* of stream encoder; the nearest is"),
        (
            PatchSite("A dog sat.", "embed", stream="decoder"),
            "no stream 'decoder'; the nearest is 'encoder'",
        ),
    ):
        with pytest.raises(ValueError, match=there):
            encoder.record(TEXT, edit)
    with pytest.raises(ValueError, match="it has 0.attn, 0.ffn, 1.attn"):
        encoder.jacobian(recording, "encoder", 1, "0.atn")
    with pytest.raises(ValueError, match="there is no layer 9; the last is 3"):
        encoder.ffn_activations(recording, "encoder", 9, 1)
    with pytest.raises(ValueError, match="stream encoder has tokens 0 to 8, not 99"):
        encoder.logits(recording, "encoder", 99)


@pytest.mark.parametrize("wrong", ["zebra", 1.5])
def test_a_place_that_is_no_number_is_refused_in_a_sentence(wrong: object, encoder) -> None:
    recording = encoder.record(TEXT)
    for name in ("token", "layer", "head"):
        says, kind = f"{name} is a whole number( or a word)?, and not {wrong!r}", TypeError
        if name == "token" and isinstance(wrong, str):  # it may be a word of the text
            says, kind = f"No word of the text is {wrong!r}", ValueError
        with pytest.raises(kind, match=says):
            headlight.panels.attention.head(recording, **{name: wrong})


OTHERS = (1.5, True, 7, "word", b"word", ["one", "two"], (0,), {}, np.arange(2), object())


def test_an_argument_of_another_type_is_refused_in_a_sentence_by_every_panel() -> None:
    """A text for a run, sentences in a list for lines of text, a word for its id."""
    run = headlight.Run("decoder", TEXT)
    for name in spec.panel_names():
        for each in choice.parameters(spec.PANELS[name]):
            takes = (int, float) if each.kind is float else each.kind
            for value in OTHERS:
                is_taken = isinstance(value, takes) or isinstance(value, str) and each.takes_words
                if is_taken and (value is not True or each.kind is bool):
                    continue
                with pytest.raises(TypeError, match=f"^{each.argument} is (a|two|True) .*and not "):
                    spec.PANELS[name](run, **{each.argument: value})


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.class_logits("a text"),
        lambda model: model.class_parts(None),
        lambda model: model.resume(7, 1),
        lambda model: model.shows_writes([]),
        lambda model: model.embeddings(5),
        lambda model: model.embeddings(b"cat"),
        lambda model: model.labels(5),
        lambda model: model.generate(TEXT, 5),
        lambda model: model.record_all(5),
        lambda model: model.lens(model.record(TEXT), "encoder", sites=5),
    ],
)
def test_one_in_the_place_of_several_and_what_is_no_recording(ask: Callable, encoder) -> None:
    with pytest.raises(TypeError, match="are several in a list, and not|a recording is what"):
        ask(encoder)


def test_a_number_of_numpy_is_a_number() -> None:
    run = headlight.Run("encoder", TEXT)
    panel = headlight.panels.positions.encoding(run, token=np.int64(1))
    assert "token=1," in panel.call and "int64" not in panel.call
    assert panel.encode() == headlight.panels.positions.encoding(run, token=1).encode()


def test_a_recording_is_printed_in_a_few_words(encoder) -> None:
    long = encoder.record(TEXT * 20, (ZeroHead(0, 3),))
    shown = repr(long)
    assert len(shown) < 400 and "\n" not in shown
    parts = "'encoder'", "The cat sat on the mat.", "1 edit", "4 layers, 8 heads", "d_model 256"
    assert all(part in shown for part in parts)
    assert "Stream('encoder', " in repr(long.streams[0]) and len(repr(long.streams[0])) < 100
    assert len(repr(encoder)) < 800
    assert "Attention('self', " in repr(long.attention[0]) and len(repr(long.attention[0])) < 100
