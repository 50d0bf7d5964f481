"""Recordings from files of anywhere: what is opened is what was saved, and whatever is wrong with a
file is said in one sentence before anything large is unpacked."""

from __future__ import annotations

import gc
import io
import json
import resource
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conftest import HOSTILE, read_once

import headlight
from explorer.panels import spec
from models.contract import edits, npz
from models.contract.recording import Attention, Recording
from models.contract.recording_file import from_npz, to_npz
from models.inputs import recorded_model
from models.inputs.array_model import bare_stream
from models.inputs.recorded_model import NO_MODEL, opened
from models.runtime import registry
from models.runtime.run import Run, run_of

TEXT = "My sister has a red car"
RAW = "Error|Exception|NoneType|Traceback|not subscriptable|unexpected keyword|0x"


def saved() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a sound file."""
    data = to_npz(read_once("induction").record("red blue red"), compressed=False)
    arrays = npz.read(data)
    return json.loads(str(arrays.pop("header"))), {
        name: each.copy() for name, each in arrays.items()
    }


def file(header: Any, arrays: dict[str, Any], words: str = "") -> bytes:
    """A file of these, as numpy writes it."""
    made = io.BytesIO()
    words = words or json.dumps(header).replace(f'"{PAST_READING}"', "9" * 5000)
    np.savez(made, header=np.array(words), **arrays)
    return made.getvalue()


Spoil = Callable[[dict, dict], object]


def value(path: str, to: Any) -> Spoil:
    """Another value in the header."""

    def spoil(header: dict, arrays: dict) -> None:
        *way, last = [int(each) if each.isdecimal() else each for each in path.split(".")]
        for each in way:
            header = header[each]
        header[last] = to

    return spoil


def array(name: str, make: Callable[[np.ndarray], Any]) -> Spoil:
    """Another array."""
    return lambda header, arrays: arrays.update({name: make(arrays[name])})


def with_nan(given: np.ndarray) -> np.ndarray:
    given.flat[0] = np.nan
    return given


PAST_READING = "number of 5,000 digits"  # in the place of one that Python writes into no text


def layers_without_numbers(n: int) -> Spoil:
    """So many layers of one head over one token, which attends to itself."""

    def spoil(header: dict, arrays: dict) -> None:
        one_token(header, arrays, (n, 1))
        header["model"]["n_layer"] = n

    return spoil


def one_token(header: dict, arrays: dict, heads: tuple[int, int], width: int = 1) -> None:
    """A recording of one token: so many (layers, heads), with values of a width that all share."""
    for name, each in list(arrays.items()):
        if name.startswith("stream"):
            arrays[name] = each[:, :1] if name.endswith("resid") else each[:1]
    header["stream"][0]["tokens"] = header["stream"][0]["tokens"][:1]
    shape = (*heads, 1, 1)
    arrays |= {
        "attention.self.pattern": np.ones(shape, np.float32),
        "attention.self.scores": np.zeros(shape, np.float32),
        "attention.self.allowed": np.ones((1, 1), bool),
        "attention.self.q": np.zeros(shape, np.float32),
        "attention.self.k": np.zeros((heads[0], 1, 1, 1), np.float32),
        "attention.self.v": np.zeros((heads[0], 1, 1, width), np.float32),
        "attention.self.scale": np.ones(heads[0]),
    }
    arrays.pop("attention.self.sink")
    arrays.pop("attention.self.layers")
    header["model"] |= {"n_layer": heads[0], "n_head": heads[1], "d_head": 1}


def heads_of_one_token(header: dict, arrays: dict) -> None:
    one_token(header, arrays, (1, 100_000))


def wide_stream(header: dict, arrays: dict) -> None:
    """Of which what is measured of two dimensions each takes 80 GB."""
    one_token(header, arrays, (1, 1))
    n = len(header["stream"][0]["sites"])
    arrays["stream.decoder.resid"] = np.zeros((n, 1, 100_000), np.float32)
    header["model"]["d_model"] = 100_000


def values_of_a_million(header: dict, arrays: dict) -> None:
    """A file of 5 MB, whose values are 8 GB where each head has its own."""
    one_token(header, arrays, (1, 2000), 10**6)


SPOILT: dict[str, tuple[Spoil, str]] = {
    "format": (value("format", "headlight recording 9"), "this version reads"),
    "format of no text": (value("format", ["x"] * 9), "this version reads"),
    "no model": (value("model", None), "not as Headlight writes"),
    "a size that is a text": (value("model.n_layer", "2"), "not as Headlight writes"),
    "a size that is yes": (value("model.n_head", True), "not as Headlight writes"),
    "a size that is large": (value("model.n_parameters", 2**70), "negative or very large"),
    "a size with a fraction": (value("model.n_layer", 2.0), "not as Headlight writes"),
    "a size that is nothing": (value("model.d_model", None), "not as Headlight writes"),
    "a size of 4,000 digits": (value("model.n_vocab", 10**4000), "negative or very large"),
    "a size of 5,000 digits": (
        lambda header, arrays: header["model"].update(n_vocab=PAST_READING),
        "not as Headlight writes",
    ),
    "a billion layers": (value("model.n_layer", 10**9), "n_layer is 1,000,000,000, and its arr"),
    "a layer more": (value("model.n_layer", 3), "n_layer is 3, and its arrays have 2"),
    "no layers": (value("model.n_layer", 0), "n_layer is 0"),
    "a billion heads": (value("model.n_head", 10**9), "n_head is 1,000,000,000"),
    "another width": (value("model.d_model", 7), "d_model is 7"),
    "another width of heads": (value("model.d_head", 10**8), "d_head is 100,000,000"),
    "a billion words": (value("model.n_vocab", 10**9), "n_vocab is negative or very large"),
    "10^12 positions": (value("model.n_positions", 10**12), "n_positions is negative or very"),
    "10^12 tokens left out": (value("dropped", 10**12), "dropped is negative or very large"),
    "a count of two": (value("target_dropped", True), "not as Headlight writes"),
    "100,000 layers of one head": (layers_without_numbers(100_000), "100,000 layers"),
    "100,000 heads": (heads_of_one_token, "100,000 heads"),
    "heads that share wide values": (values_of_a_million, "2,000 heads of 1,000,000 numbers"),
    "10,000 heads in a layer": (lambda *of: one_token(*of, (1, 10_000)), "has 10,000 heads of 1"),
    "a head of 10,000 numbers": (lambda *of: one_token(*of, (2, 1), 10_000), "of 10,000 numbers"),
    "a stream of 100,000 numbers": (wide_stream, "d_model is 100,000"),
    "a size below zero": (value("dropped", -1), "negative or very large"),
    "another kind": (value("model.kind", "rnn"), "none of a model of the kind 'rnn'"),
    "other heads": (value("model.n_head", 7), "n_head is 7, and its arrays have"),
    "fewer layers": (value("model.n_layer", 1), "n_layer is 1, and its arrays have 2"),
    "a text of half a pair": (value("text", "red blue red\ud800"), "not well-formed"),
    "a long text": (value("text", "a" * 300_000), "too long"),
    "a shorter text": (value("text", "red"), "stands outside of the text"),
    "a version with a link": (value("version", "[x](http://x)"), "version or fingerprint"),
    "tokens that are numbers": (value("stream.0.tokens", [1, 2, 3]), "not as Headlight writes"),
    "fewer tokens": (value("stream.0.tokens", ["a"]), "should have shape"),
    "a stream of no name": (value("stream.0", {}), "not as Headlight writes"),
    "streams that are no list": (value("stream", {"a": 1}), "not as Headlight writes"),
    "no stream": (value("stream", []), "no stream is called"),
    "a site of no name": (value("stream.0.sites.1", "x.y.wrote"), "name that no site has"),
    "sites out of order": (
        lambda header, arrays: header["stream"][0]["sites"].reverse(),
        "do not follow each other|not in order",
    ),
    "an attention of no name": (value("attention.0.name", "self\n"), "no place for|not as Headl"),
    "an edit of no kind": (value("edits", [{"kind": "Delete"}]), "no edit is called"),
    "an edit of other fields": (value("edits", [{"kind": "ZeroHead", "x": 1}]), "cannot be made"),
    "an edit of other types": (
        value("edits", [{"kind": "ZeroHead", "layer": [], "head": {}, "attention": 3}]),
        "edits cannot be read|cannot be read from",
    ),
    "an edit of too many numbers": (
        value("edits", [{"kind": "SetSite", "values": "f4-99999999x99999999-AAAA", "site": "a"}]),
        "another size than it says",
    ),
    "an edit of a layer that is not there": (
        value("edits", [{"kind": "ZeroHead", "layer": 10**9, "head": 0}]),
        "names layer 1000000000",
    ),
    "an edit of an attention without end": (
        value("edits", [{"kind": "ZeroHead", "layer": 0, "head": 0, "attention": "x" * 10**5}]),
        "an edit cannot be",
    ),
    "an edge that is not there": (
        value("edits", [{"kind": "CutEdge", "layer": 0, "head": 0, "query": 10**9, "key": 0}]),
        "a token that is not there",
    ),
    "an array more": (
        lambda header, arrays: arrays.update({"x": np.zeros(1)}),
        "no place for 'x'",
    ),
    "an array less": (
        lambda header, arrays: arrays.pop("attention.self.pattern"),
        "not as Headlight writes",
    ),
    "ids with fractions": (array("stream.decoder.ids", lambda x: x / 2), "is of float64"),
    "weights of yes and no": (array("attention.self.pattern", lambda x: x > 0), "is of bool"),
    "objects": (array("stream.decoder.ids", lambda x: x.astype(object)), "neither of numbers"),
    "complex numbers": (array("attention.self.q", lambda x: x * 1j), "neither of numbers"),
    "numbers of 128 bits": (array("attention.self.q", lambda x: x.astype("f16")), "of 128 bits"),
    "other axes": (array("attention.self.pattern", lambda x: x[0]), "should have shape"),
    "rows of 2": (array("attention.self.pattern", lambda x: 2 * x), "do not sum to 1"),
    "a weight below 0": (
        array("attention.self.pattern", lambda x: np.where(x > 0, x + 1, 0) - np.eye(len(x[0, 0]))),
        "do not sum to 1|negative|not allowed",
    ),
    "no number in the weights": (array("attention.self.pattern", with_nan), "do not sum to 1"),
    "no number in the scores": (array("attention.self.scores", with_nan), "not finite"),
    "no number in the stream": (array("stream.decoder.resid", with_nan), "not finite"),
    "keys of another size": (array("attention.self.k", lambda x: x[..., :-1]), "of two sizes"),
    "ids below 0": (array("stream.decoder.ids", lambda x: x - 99), "has no id"),
    "spans without end": (
        array("stream.decoder.spans", lambda x: x + 2**62),
        "outside of the text",
    ),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_recording_that_is_spoilt_is_refused_in_one_sentence(what: str) -> None:
    header, arrays = saved()
    assert opened(file(header, arrays)).recorded.text == "red blue red"
    spoil, why = SPOILT[what]
    spoil(header, arrays)
    with pytest.raises(ValueError, match=why) as refused:
        opened(file(header, arrays))
    said = str(refused.value)
    assert len(said) < 500 and "\n" not in said and not any(each in said for each in RAW.split("|"))


def entry(name: str, content: bytes, **how: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **how) as one:
        one.writestr(name, content)
    return made.getvalue()


def numpys(shape: str, kind: str = "<f4", content: bytes = b"") -> bytes:
    """An array as numpy writes it, whatever it says of itself."""
    words = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words)) + words + content


def spoilt_files() -> dict[str, bytes]:
    """Files that are no recording."""
    sound = to_npz(read_once("induction").record("red blue red"))
    bomb = entry("header.npy", numpys("(2500000000,)", "|u1", bytes(2**24)), compression=8)
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as one:
        for at in range(npz.MOST_ARRAYS + 1):
            one.writestr(f"{at}.npy", numpys("(0,)"))
    twice = io.BytesIO()
    with zipfile.ZipFile(twice, "w") as one, pytest.warns(UserWarning, match="Duplicate"):
        one.writestr("a.npy", numpys("(0,)"))
        one.writestr("a.npy", numpys("(0,)"))
    crc = bytearray(sound)
    crc[len(crc) // 2] ^= 0xFF
    return {
        "nothing": b"",
        "a few bytes": b"PK\x03\x04 and more",
        "a picture": b"\x89PNG\r\n\x1a\n" + bytes(200),
        "a pickle": b"\x80\x04\x95\x0c\x00\x00\x00" + bytes(100),
        "half of one": sound[: len(sound) // 2],
        "one with bytes behind it": sound + b"x",
        "a damaged one": bytes(crc),
        "no array": entry("header.txt", b"{}"),
        "a shape that is run": entry("header.npy", numpys("__import__('os')")),
        "a shape without end": entry("header.npy", numpys("(" + "9" * 400 + ",)")),
        "a shape larger than it": entry("header.npy", numpys("(1000000000000,)")),
        "a shape smaller than it": entry("header.npy", numpys("(1,)", content=bytes(400))),
        "an array of objects": entry("header.npy", numpys("(1,)", "|O", b"\x80\x04N.")),
        "a bomb": bomb,
        "many": many.getvalue(),
        "one twice": twice.getvalue(),
        "packed otherwise": entry("header.npy", numpys("(0,)"), compression=zipfile.ZIP_LZMA),
        "a header of numbers": entry("header.npy", numpys("(0,)")),
        **{
            f"numbers as {kind}": entry(
                "header.npy", numpys("(1,)", kind, bytes(min(99, int(kind[2:]))))
            )
            for kind in ("<f3", "<i9", "|b7", "<u0", "<f1", "|b16", "<i999999999")
        },
        "letters without end": entry("header.npy", numpys("(0,)", "<U999999999")),
        "nothing, 10^15 times": entry("header.npy", numpys("(0, 999999999999999)")),
        "nothing along axes beyond the machine": entry(
            "header.npy", numpys("(999999999999999, 999999999999999, 0)")
        ),
        "a name of no letters": entry("\u00e9.npy", numpys("(0,)")).replace(
            b"\xc3\xa9", b"\xff\xfe"
        ),
        "deep words": file(None, {}, "[" * 100_000),
        "no words": file(None, {}, "nothing"),
        "a list": file(None, {}, "[]"),
    }


def test_what_is_no_recording_is_refused_and_nothing_large_is_made() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, data in spoilt_files().items():
        with pytest.raises(ValueError) as refused:
            opened(data, 2**24)
        said = str(refused.value)
        assert said and len(said) < 300 and "\n" not in said, name
        assert not any(each in said for each in RAW.split("|")), (name, said)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18, "KiB"


def test_shared_values_are_bounded_as_the_heads_read_them() -> None:
    """A head's values are views of them, and those of a layer 1 GB."""
    words, heads, width = 1100, 1000, 259
    streams = (bare_stream("encoder", ("a",) * words), bare_stream("decoder", ("b",)))
    pattern = np.full((1, heads, 1, words), 1 / words, np.float32)
    keys = [np.zeros((1, 1, words, each), np.float32) for each in (1, width)]
    queries, allowed = np.zeros((1, heads, 1, 1), np.float32), np.ones((1, words), bool)
    cross = Attention("cross", "decoder", "encoder", 0 * pattern, pattern, allowed, queries, *keys)
    card = replace(read_once("translator").card, n_layer=1, n_head=heads, d_model=0, d_head=1)
    text = "a " * words
    with pytest.raises(ValueError, match="too many heads share its keys or values"):
        opened(to_npz(Recording(card, text, (), streams, (cross,), target="b")))


def test_the_library_refuses_what_the_app_refuses() -> None:
    """Places outside of the text, and counts that are not those of the arrays."""
    for what in ("spans without end", "a shorter text", "a billion layers", "10^12 positions"):
        header, arrays = saved()
        spoil, why = SPOILT[what]
        spoil(header, arrays)
        with pytest.raises(ValueError, match=why):
            headlight.from_npz(file(header, arrays))


def test_a_directory_that_says_less_than_it_holds_is_not_read() -> None:
    """The end of a file of more than 4 GiB may stand before the end that is looked at."""
    sound = bytearray(to_npz(read_once("induction").record("red blue red")))
    end = sound[-npz.END.size :]
    lying = sound[: -npz.END.size] + npz.END_OF_LARGE.pack(b"PK\x06\x07", 0, 0, 1) + end
    with pytest.raises(ValueError, match="no .npz file"):
        npz.read(bytes(lying), 2**24)


def test_what_it_may_take_is_checked_first() -> None:
    recording = read_once("decoder").record(TEXT)
    data = to_npz(recording)
    size = recorded_model.n_bytes(opened(data))
    with pytest.raises(ValueError, match=r"holds [\d.]+ MiB of numbers, and at most 0.1 MiB"):
        from_npz(data, 2**17)
    assert size > 2**17 and from_npz(data, size + 2**16) == recording


@pytest.mark.parametrize("name", ["encoder", "decoder", "translator"])
def test_every_panel_draws_a_file_or_says_why_not(name: str) -> None:
    """And what it draws is what the model's own run shows, where the recording is all it needs."""
    own = read_once(name).record(TEXT)
    model = opened(to_npz(own))
    assert opened(to_npz(own, compressed=False)) is model, "equal files are opened once"
    recorded = model.recorded
    assert replace(recorded, model=own.model) == own and registry.load(model.name) is model
    run, drawn = run_of(recorded), 0
    for each in spec.panel_names():
        try:
            panel = spec.PANELS[each](run)
        except ValueError as why:
            assert str(why)
        else:
            drawn += 1
            assert panel.encode() and panel.json()
    assert drawn >= 20
    for each in ("attention.heads", "summaries.aggregated", "anatomy.computation"):
        if each in spec.PANELS:
            np.testing.assert_equal(spec.PANELS[each](run).table, spec.PANELS[each](own).table)


def test_it_answers_its_own_text_alone() -> None:
    model = opened(to_npz(read_once("decoder").record(TEXT, edits.ZeroHead(0, 1))))
    run = run_of(model.recorded)
    assert run.recording() is model.recorded and run.edits == (edits.ZeroHead(0, 1),)
    others: tuple[Callable[[], Any], ...] = (
        lambda: model.record(TEXT),
        lambda: model.record("Another", run.edits),
        lambda: Run(model.name, TEXT).recording(),
        lambda: model.logits(model.recorded, "decoder", 0),
        lambda: model.lens(model.recorded, "decoder"),
        lambda: next(model.beams(TEXT, 1)),
    )
    for ask in others:
        with pytest.raises(ValueError, match=NO_MODEL):
            ask()


def test_it_is_let_go_with_whoever_holds_it() -> None:
    model = opened(to_npz(read_once("decoder").record("He ran")))
    name = model.name
    assert registry.load(name) is model
    del model
    gc.collect()
    with pytest.raises(ValueError, match="no longer open"):
        registry.load(name)


def made_otherwise() -> dict[str, Recording]:
    """Recordings of every kind that can be saved."""
    decoder = read_once("decoder")
    pattern = np.tril(np.ones((2, 3, 5, 5)))
    added = edits.AddToSite(np.ones(decoder.card.d_model), "1.ffn.sum")
    return {
        "ids": decoder.record([5, 6, 7]),
        "an edit with numbers": decoder.record(TEXT, added),
        "arrays": headlight.view(pattern / pattern.sum(-1, keepdims=True), list("abcde")),
        "a target": read_once("translator").record("The red car is new.", target="La voiture"),
        "an earlier file": headlight.record("induction", "red blue red", edits.WithoutScale(0)),
    } | {name: decoder.record(text) for name, text in HOSTILE.items()}


def test_every_recording_that_is_saved_can_be_opened() -> None:
    for name, recording in made_otherwise().items():
        held = opened(to_npz(recording))
        assert replace(held.recorded, model=recording.model) == recording, name
        assert run_of(held.recorded).recording() is held.recorded, name
        assert spec.PANELS["attention.heads"](run_of(held.recorded)).title


@pytest.mark.parametrize("public", [False, True])
def test_a_public_server_takes_no_file(public: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamlit.proto.BackMsg_pb2 import BackMsg

    from explorer.app.server import addresses, messages
    from explorer.app.state.settings import Settings

    for module in (addresses, messages):
        monkeypatch.setattr(module, "settings", lambda: Settings(public=public))
    path = "/_stcore/upload_file/a-1/b-2"
    for method in ("PUT", "DELETE", "OPTIONS"):
        answer = addresses.refusal({"path": path, "method": method})
        assert (answer is None) != public and (answer is None or answer.status_code == 404)
    for method, at in (("GET", path), ("POST", path), ("PUT", f"{path}/c"), ("PUT", "/learn")):
        assert addresses.refusal({"path": at, "method": method}) is not None
    for names, is_let in ((["a"], not public), (["a", "b"], False)):
        asked = BackMsg(file_urls_request={"request_id": "x", "file_names": names})
        assert messages.is_allowed_message(asked) == is_let
