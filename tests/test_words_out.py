"""A word that is taken out: nobody else reads it, in any layer or head, in any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from edited import TEXT, recorded
from test_layers_that_differ import loaded
from tolerances import STORED, SUMMED

from explorer.analysis import attention, consistency, terminology, words
from explorer.analysis.anatomy import cell
from explorer.panels.anatomy import reasons
from models.contract import edits
from models.contract.edits import CutEdge, HideWord
from models.contract.model import Model
from models.contract.recording import Recording
from models.contract.recording_file import to_npz
from models.inputs.recorded_model import opened
from models.network import own_model
from models.runtime.run import Run

TARGET = "the mat sat"


def with_other_word(
    model: Model, plain: Recording, stream: int, token: int, *asked: edits.Edit
) -> Recording:
    """A pass over the same ids but for one token, under edits."""
    ids = [each.ids.tolist() for each in plain.streams]
    ids[stream][token] = next(each for each in ids[0] if each != ids[stream][token])
    target = tuple(ids[1][1:]) if len(ids) > 1 else None
    return model.record(tuple(ids[0]), asked, target)


def same_ids(model: Model, plain: Recording, *asked: edits.Edit) -> Recording:
    ids = [tuple(each.ids.tolist()) for each in plain.streams]
    return model.record(ids[0], asked, ids[1][1:] if len(ids) > 1 else None)


def expect_unread(
    model: Model, plain: Recording, stream: int, token: int, atol: float = 0.0
) -> None:
    """Nothing but a token's own states depends on which word it is, once it is out."""
    name = plain.streams[stream].name if stream else None
    one = same_ids(model, plain, HideWord(token, name))
    other = with_other_word(model, plain, stream, token, HideWord(token, name))
    without = with_other_word(model, plain, stream, token)
    moved = 0.0
    for at, states in enumerate(one.streams):
        rest = np.arange(len(states.tokens)) != (token if at == stream else -1)
        changed = other.streams[at].resid
        np.testing.assert_allclose(states.resid[:, rest], changed[:, rest], rtol=0, atol=atol)
        moved += np.abs(without.streams[at].resid - plain.streams[at].resid)[:, rest].max()
        if at == stream:
            assert np.abs(states.resid[:, token] - changed[:, token]).max() > 1e-3
    is_last = name is None and plain.model.kind == "decoder" and token == len(plain.streams[0].ids)
    assert moved > 1e-3 or is_last, "as long as it is in, others read it"
    for each in one.attention:
        sink = each.sink if each.sink.size else 0
        np.testing.assert_allclose(each.pattern.sum(-1) + sink, 1, atol=STORED)


@pytest.mark.parametrize("token", [0, 2, 4])
def test_no_other_token_depends_on_a_word_that_is_out(
    model: own_model.OwnModel, token: int
) -> None:
    plain = recorded(model)
    expect_unread(model, plain, 0, token)
    if len(plain.streams) > 1:
        expect_unread(model, plain, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "gemma2", "t5", "bart"])
def test_nor_in_a_model_s_own_code(kind: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded(kind)
    target = "the dog ran" if len(model.plan.streams) > 1 else None
    assert HideWord in model.capabilities.edits
    plain = model.record("the cat sat on the mat", (), target)
    expect_unread(model, plain, 0, 1)
    if target:
        expect_unread(model, plain, 1, 1)


def cuts(recording: Recording, token: int) -> list[edits.Edit]:
    """The edges that lead to a token of the first stream from all others."""
    first = recording.streams[0].name
    return [
        CutEdge(layer, head, query, token, of.name)
        for of in recording.attention
        if of.key == first
        for layer, head in np.ndindex(*of.pattern.shape[:2])
        for query in range(of.pattern.shape[2])
        if (of.query != of.key or query != token) and of.allowed[layer, query, token]
    ]


def test_it_is_every_edge_to_the_word_cut(model: own_model.OwnModel) -> None:
    plain = recorded(model, text="the cat sat")
    one = recorded(model, HideWord(1), text="the cat sat")
    made = recorded(model, *cuts(plain, 1), text="the cat sat")
    for a, b in zip(one.streams, made.streams):
        np.testing.assert_array_equal(a.resid, b.resid)
    for a, b in zip(one.attention, made.attention):
        np.testing.assert_array_equal(a.pattern, b.pattern)


def test_its_own_row_stays_and_the_others_share_what_it_had(model: own_model.OwnModel) -> None:
    """In the first layer, which reads what it did."""
    plain, out = recorded(model), recorded(model, HideWord(2))
    before, after = plain.attention[0], out.attention[0]
    np.testing.assert_array_equal(after.pattern[0][:, 2], before.pattern[0][:, 2])
    rest = np.delete(before.pattern[0], 2, axis=2)
    rest = np.delete(rest, 2, axis=1)
    left = np.delete(np.delete(after.pattern[0], 2, axis=2), 2, axis=1)
    np.testing.assert_allclose(left, rest / rest.sum(-1, keepdims=True), atol=SUMMED)
    expected = before.allowed[0].copy()
    expected[np.arange(len(expected)) != 2, 2] = False
    np.testing.assert_array_equal(after.allowed[0], expected)


def test_a_translator_writes_without_the_word_as_it_reads(
    small_translator: own_model.OwnModel,
) -> None:
    """With what was stored of the words before, and in its own text too."""
    for asked in (HideWord(1), HideWord(1, "decoder")):
        written = small_translator.record(TEXT, asked)
        ids = tuple(written.streams[1].ids[1:].tolist())
        read = small_translator.record(TEXT, asked, ids)
        np.testing.assert_array_equal(read.streams[1].resid, written.streams[1].resid)
        last = read.streams[1].resid[-1]
        said = [int(small_translator.logits(read, "decoder", at).argmax()) for at in range(3)]
        assert said == list(ids[:3]) and np.isfinite(last).all()


def test_with_other_edits(small_model: own_model.OwnModel) -> None:
    """Of the tokens as they are read; an even head is even over the rest; donors are read so too;
    a text that has no such place is read as it is."""
    n = len(recorded(small_model).streams[0].tokens)
    even = recorded(small_model, HideWord(2), edits.UniformHead(1, 2)).attention[0].pattern[1, 2]
    np.testing.assert_allclose(np.delete(even[:, 2], 2), 0, atol=0)
    np.testing.assert_allclose(np.delete(even, 2, 0)[:, 0], 1 / (n - 1), atol=STORED)
    masked = recorded(small_model, HideWord(1), edits.WithMask()).attention[0].allowed[0]
    assert not np.triu(masked, 1).any() and masked[1].sum() == 2
    expect_unread(small_model, recorded(small_model), 0, 3)
    short = recorded(small_model, edits.PatchHead("the", 0, 0), HideWord(n - 1))
    assert short.edits == (edits.PatchHead("the", 0, 0), HideWord(n - 1))


def test_the_laws_of_a_recording_hold(model: own_model.OwnModel) -> None:
    made = recorded(model, HideWord(2), edits.ZeroHead(0, 1, model.capabilities.attention[0]))
    norms = {each.name: model.norms(each.name, made.edits) for each in made.streams}
    for check in consistency.checks(made, model.outputs(), norms):
        assert check.holds, check


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (HideWord(40), "encoder has tokens 0 to"),
        (HideWord(-99), "encoder has tokens 0 to"),
        (HideWord(1, "lunch"), "no stream 'lunch'; there are encoder, decoder"),
        (HideWord(40, "decoder"), "decoder has tokens 0 to"),
        (HideWord("1"), "token must be a whole number"),
    ],
)
def test_a_word_that_is_not_there_is_refused(
    small_translator: own_model.OwnModel, asked: HideWord, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        recorded(small_translator, asked)


def test_a_decoder_is_left_a_word_of_its_source(small_translator: own_model.OwnModel) -> None:
    n = len(recorded(small_translator).streams[0].tokens)
    recorded(small_translator, *map(HideWord, range(n - 1)))
    with pytest.raises(ValueError, match="no token of the source would be left to read"):
        recorded(small_translator, *map(HideWord, range(n)))


def test_where_every_word_is_out_each_reads_itself(small_model: own_model.OwnModel) -> None:
    n = len(recorded(small_model).streams[0].tokens)
    every = recorded(small_model, *map(HideWord, range(n))).attention[0]
    assert (every.pattern == np.eye(n)).all()


def test_it_travels_in_an_address_and_a_file(small_model: own_model.OwnModel) -> None:
    asked = (HideWord(-2), HideWord(1, "encoder"))
    made = recorded(small_model, *asked)
    n = len(made.streams[0].tokens)
    assert made.edits == (HideWord(n - 2), HideWord(1, "encoder"))
    assert edits.from_line("HideWord:3,HideWord:1:encoder") == (HideWord(3), HideWord(1, "encoder"))
    assert edits.from_line(edits.to_line(made.edits)) == made.edits
    assert edits.describe(asked[1:]) == "token 1 of the encoder taken out"
    file = opened(to_npz(made))
    assert file.record(made.text, made.edits).attention[0].pattern.shape == (3, 4, n, n)
    with pytest.raises(ValueError, match="names a token that is not there"):
        opened(to_npz(replace(made, edits=(HideWord(n),))))


def test_a_whole_word_is_all_of_its_pieces() -> None:
    recording = Run("encoder", "The waiters unwrapped it.").recording()
    stream = recording.streams[0]
    pieces = [at for at, each in enumerate(stream.tokens) if each in ("un", "‧wra", "‧wrapped")]
    grouped = words.words(stream, recording.text)
    for token in range(len(stream.tokens)):
        same = np.flatnonzero(grouped.of == grouped.of[token])
        assert words.hidden_word(recording, token) == tuple(map(HideWord, same.tolist()))
    assert max(grouped.sizes) > 1 or not pieces
    with pytest.raises(ValueError, match="has tokens 0 to"):
        words.hidden_word(recording, 99)


def mask_of(kind: str, n: int, *out: int) -> np.ndarray:
    mask = np.ones((n, n), bool)
    mask = np.tril(mask) if kind != "all" else mask
    mask = np.triu(mask, -2) if kind == "window" else mask
    mask[:, list(out)] &= np.eye(n, dtype=bool)[:, list(out)]
    return mask


@pytest.mark.parametrize("kind", ["all", "causal", "window"])
def test_what_is_said_of_a_mask_tells_a_word_from_a_rule(kind: str) -> None:
    for out in ((), (2,), (0, 3)):
        mask = mask_of(kind, 7, *out)
        assert np.flatnonzero(terminology.taken_out(mask)).tolist() == list(out)
        assert terminology.windowed(mask) == (kind == "window")
        assert terminology.sees_all(mask) == (kind == "all")
        assert ("taken out" in terminology.mask_reason(mask)) == bool(out)
        assert ("later" in terminology.mask_reason(mask)) == (kind != "all")
        assert ("taken out" in attention.mask_rule(mask)) == bool(out)
        assert ("diagonal" in attention.mask_rule(mask)) == (kind != "all")
    across = np.ones((3, 5), bool)
    across[:, 4] = False
    assert np.flatnonzero(terminology.taken_out(across)).tolist() == [4]


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_the_weight_of_a_word_that_is_out_is_explained(name: str) -> None:
    recording = Run(name, "The waiter brought the soup.", (HideWord(3),)).recording()
    of = recording.attention[0]
    for query, key in np.ndindex(of.pattern.shape[2:]):
        opened_cell = cell(recording, of, 0, 0, query, key)
        told = reasons(opened_cell, of.allowed[0])["mask"]
        is_read = key == query or (name == "decoder" and query < key)  # or hidden by the mask
        assert ("is taken out" in told) == (key == 3 and not is_read), (query, key, told)
        assert not ("later" in told and name == "encoder")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["modernbert", "gpt_oss", "qwen3_next"])
def test_a_model_whose_other_layers_carry_words_too_refuses(kind: str) -> None:
    """A window, a learned sink and experts do not; a recurrence does."""
    model = loaded(kind)
    if kind == "qwen3_next":
        with pytest.raises(ValueError, match="not attention alone carries words to others in qwen"):
            model.record("the cat sat on the mat", HideWord(1))
        return
    # Tokens are multiplied by an expert's matrices together, which rounds.
    atol = SUMMED if kind == "gpt_oss" else 0.0
    expect_unread(model, model.record("the cat sat on the mat"), 0, 1, atol)
