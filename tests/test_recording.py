"""The Recording: its laws on real forward passes, its checks at birth, and its life as a file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import HOSTILE, read_once
from tolerances import PASSED, SUMMED

from models.contract import edits
from models.contract.recording import Stream, stored_array
from models.contract.recording_file import from_npz, to_npz
from models.network import activation_cache, own_model
from models.network.transformer import Decoder

TEXT = "the cat sat on the mat"
EDITED = (
    (),
    (edits.WithoutScale(0), edits.WithoutNorm(1)),
    (edits.WithoutResidual(2), edits.WithoutPositions()),
    (edits.ShuffleTokens(3), edits.WithoutScale()),
)


@pytest.mark.parametrize("asked", EDITED, ids=lambda value: "+".join(map(str, value)) or "plain")
def test_the_laws_hold_in_every_stream_and_every_attention(
    asked: tuple[edits.Edit, ...], model: own_model.OwnModel
) -> None:
    """Any cell recomputes from the recording alone, and before plus wrote is what stands next."""
    recording = own_model.record(model, TEXT, asked)
    layers, d_head = range(model.card.n_layer), model.card.d_head
    bare = [edits.applies(recording.edits, edits.WithoutScale, layer) for layer in layers]
    scale = np.where(bare, 1.0, np.sqrt(d_head))[:, None, None, None]
    for attention in recording.attention:
        scores = np.einsum("lhqd,lhkd->lhqk", attention.q, attention.k) / scale
        np.testing.assert_allclose(attention.scores, scores, atol=SUMMED)
        masked = np.where(attention.allowed[0], scores, -np.inf)
        weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(attention.pattern, weights, atol=SUMMED)
    lost = tuple(f"{each.layer}." for each in asked if isinstance(each, edits.WithoutResidual))
    placed = not edits.applies(recording.edits, edits.WithoutPositions)
    for stream in recording.streams:
        triples = stream.writes()
        cross = stream.name == "decoder" and len(recording.streams) == 2
        assert len(triples) == (3 if cross else 2) * len(layers) + placed
        for before, wrote, after in triples:
            kept = 0 if lost and wrote.startswith(lost) else stream.at(before)
            np.testing.assert_allclose(kept + stream.at(wrote), stream.at(after), atol=SUMMED)


def test_what_heads_wrote_is_their_values_through_w_o(model: own_model.OwnModel) -> None:
    recording = own_model.record(model, TEXT)
    for attention, modules in zip(
        recording.attention, model.network.attentions().values(), strict=True
    ):
        stream = recording.stream(attention.query)
        place = "cross" if attention.name == "cross" else "attn"
        for layer, module in enumerate(modules):
            z = np.einsum("hqk,hkd->qhd", attention.pattern[layer], attention.v[layer])
            w_o = module.w_o.weight.detach().numpy()
            wrote = z.reshape(len(z), -1) @ w_o.T + module.w_o.bias.detach().numpy()
            np.testing.assert_allclose(wrote, stream.at(f"{layer}.{place}.wrote"), atol=SUMMED)


def test_edits_leave_the_shared_model_as_it_was_and_survive_a_file(
    model: own_model.OwnModel,
) -> None:
    before = own_model.record(model, TEXT)
    for asked in EDITED[1:]:
        made = own_model.record(model, TEXT, asked)
        again = from_npz(to_npz(made))
        assert again == made != before and again.edits == asked
        assert again.streams[0].tokens == made.streams[0].tokens
    assert own_model.record(model, TEXT) == before != own_model.record(model, "the dog")


def test_a_file_of_version_0_4_opens_and_holds_what_the_model_does_today() -> None:
    """Written by the code of 4374519: `red blue red` by `induction` under two edits."""
    kept = from_npz((Path(__file__).parent / "data" / "recording-0.4.npz").read_bytes())
    assert kept.edits == (edits.ZeroHead(1, 0, "self"), edits.WithoutScale(0))
    today = read_once("induction").record(kept.text, kept.edits)
    assert today.streams[0].tokens == kept.streams[0].tokens
    assert today.model.fingerprint == kept.model.fingerprint
    for then, now in zip(kept.attention, today.attention, strict=True):
        np.testing.assert_allclose(now.pattern, then.pattern, atol=SUMMED, rtol=0)
    np.testing.assert_allclose(today.streams[0].resid, kept.streams[0].resid, atol=PASSED, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_read_and_answered_and_survives_its_file(
    text: str, model: own_model.OwnModel
) -> None:
    two = model.card.kind == "encoder-decoder"
    for target in (None, text) if two else (None,):
        recording = own_model.record(model, text, target=target)
        assert all(len(each.tokens) <= model.card.n_positions for each in recording.streams)
        assert from_npz(to_npz(recording)) == recording
    if two:
        assert recording.target == own_model.clean(text)
        bare = len(model.tokenizer.ids([own_model.clean(text)])[0])
        assert recording.target_dropped == max(0, bare + 1 - model.card.n_positions)


def test_a_long_text_says_what_was_dropped(small_model: own_model.OwnModel) -> None:
    whole, _ = small_model.tokenizer.tokens("the cat " * 100, 10_000)
    recording = own_model.record(small_model, "the cat " * 100)
    assert len(recording.streams[0].tokens) == 64
    assert recording.dropped == len(whole.ids) - 64


def test_a_file_that_is_no_recording_is_refused() -> None:
    import io

    other = io.BytesIO()
    np.savez(other, a=np.zeros(3))
    with pytest.raises(ValueError, match="no header"):
        from_npz(other.getvalue())


def test_arrays_cannot_be_written_to(small_model: own_model.OwnModel) -> None:
    recording = own_model.record(small_model, TEXT)
    with pytest.raises(ValueError, match="read-only"):
        recording.attention[0].pattern[0, 0, 0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        recording.text = "other"


def test_a_recording_that_contradicts_itself_is_not_born(small_model: own_model.OwnModel) -> None:
    recording, changed = own_model.record(small_model, TEXT), dataclasses.replace
    stream, attention = recording.streams[0], recording.attention[0]
    for part, values, words in (
        (attention, {"pattern": attention.pattern * 0.9}, "do not sum to 1"),
        (attention, {"scores": attention.scores[..., :-1]}, "scores of self should have shape"),
        (attention, {"allowed": np.tril(attention.allowed[0])}, "attends where it is not allowed"),
        (stream, {"ids": stream.ids[:-1]}, "ids of stream encoder"),
    ):
        with pytest.raises(ValueError, match=words):
            changed(part, **values)
    cut = {name: getattr(stream, name)[:-1] for name in ("tokens", "ids", "special", "spans")}
    shorter = changed(stream, **cut, resid=stream.resid[:, :-1])
    with pytest.raises(ValueError, match=r"7 tokens in stream encoder but self has 8"):
        changed(recording, streams=(shorter,))
    with pytest.raises(ValueError, match="no stream is called 'decoder'"):
        changed(recording, attention=(changed(attention, key="decoder"),))


# ---- decoders, and models of two streams -------------------------------------


def test_a_decoder_carries_its_stream_and_its_triangle(small_decoder: own_model.OwnModel) -> None:
    recording = own_model.record(small_decoder, TEXT)
    attention, (stream,) = recording.attention[0], recording.streams
    assert (stream.name, attention.name, stream.tokens[0]) == ("decoder", "self", "[BOS]")
    n = len(stream.tokens)
    assert np.array_equal(attention.allowed[0], np.tril(np.ones((n, n), dtype=bool)))
    assert (attention.pattern[..., ~attention.allowed[0]] == 0).all()
    assert (attention.pattern[:, :, 0, 0] == 1).all()


def test_a_translator_carries_two_streams_and_three_attentions(
    small_translator: own_model.OwnModel,
) -> None:
    recording = own_model.record(small_translator, TEXT, target="the dog ran")
    source, target = recording.streams
    assert (source.name, target.name, recording.target) == ("encoder", "decoder", "the dog ran")
    assert source.tokens[-1] == "[EOS]" and target.tokens == ("[BOS]", "the", "dog", "ran")
    assert [(each.name, each.query, each.key) for each in recording.attention] == [
        ("encoder self", "encoder", "encoder"),
        ("decoder self", "decoder", "decoder"),
        ("cross", "decoder", "encoder"),
    ]
    cross = recording.attention[2]
    assert cross.pattern.shape[2:] == (4, len(source.tokens)) and len(source.tokens) != 4
    assert cross.allowed[0].all() and not recording.attention[1].allowed[0].all()


def test_a_target_may_be_the_very_tokens_that_were_said(
    small_translator: own_model.OwnModel,
) -> None:
    said = own_model.record(small_translator, TEXT)
    ids = tuple(map(int, said.stream("decoder").ids[1:]))
    again = own_model.record(small_translator, TEXT, target=ids)
    assert again == said and again.target == small_translator.tokenizer.text(ids)
    t, he = small_translator.tokenizer.ids(["t", "he"])  # no text is split so
    made = own_model.record(small_translator, TEXT, target=(*t, *he)).stream("decoder")
    assert tuple(made.ids[1:]) == (*t, *he)


def test_a_model_of_one_text_takes_no_target(small_decoder: own_model.OwnModel) -> None:
    with pytest.raises(ValueError, match="reads one text alone"):
        own_model.record(small_decoder, TEXT, target="le chat")


def test_a_head_is_zeroed_in_the_attention_that_is_named(
    small_translator: own_model.OwnModel,
) -> None:
    def streams(*asked: edits.Edit) -> tuple[Stream, ...]:
        return own_model.record(small_translator, TEXT, asked, target="the dog").streams

    plain = streams()
    for name in ("encoder self", "decoder self", "cross"):
        made = streams(edits.ZeroHead(1, 2, name))
        same = [np.array_equal(a.resid, b.resid) for a, b in zip(plain, made)]
        assert same == ([False, False] if name == "encoder self" else [True, False])
    there = "small translator has encoder self, decoder self, cross"
    with pytest.raises(ValueError, match=f"names attention 'self'; {there}"):
        streams(edits.ZeroHead(1, 2))


def test_a_hidden_token_is_read_as_mask_and_keeps_its_place(
    small_model: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    plain = own_model.record(small_model, TEXT).streams[0]
    hidden = own_model.record(small_model, TEXT, (edits.HideToken(2),)).streams[0]
    assert hidden.tokens[2] == "[MASK]" and hidden.ids[2] == small_model.tokenizer.mask
    assert np.array_equal(np.delete(hidden.ids, 2), np.delete(plain.ids, 2))
    assert np.array_equal(hidden.spans, plain.spans)
    for token in (0, 7, 99, -1):
        with pytest.raises(ValueError, match="names no token of the text"):
            own_model.record(small_model, TEXT, (edits.HideToken(token),))
    with pytest.raises(ValueError, match="fills no masked words"):
        own_model.record(small_decoder, TEXT, (edits.HideToken(2),))


def test_all_arrays_of_a_recording_lie_in_one_piece(
    small_decoder: own_model.OwnModel,
    small_translator: own_model.OwnModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system hands out large pieces of memory in large pages; small fresh ones are slow."""
    shared = Decoder(dataclasses.replace(small_decoder.network.config, n_key_head=2)).eval()
    pieces: list[np.ndarray] = []

    def seen(*given: object, **named: object) -> activation_cache.Recorder:
        made = activation_cache.Recorder(*given, **named)
        pieces.append(made.memory)
        return made

    monkeypatch.setattr(own_model, "Recorder", seen)
    for model in (
        small_translator,
        own_model.from_network(shared, small_decoder.tokenizer, "shared keys", "random", "fp32"),
    ):
        recording = own_model.record(model, TEXT)
        arrays = [stream.resid for stream in recording.streams]
        for attention in recording.attention:
            arrays += [attention.q, stored_array(attention.k), stored_array(attention.v)]
            arrays += [attention.scores, attention.pattern]
        for array in arrays:
            assert any(np.may_share_memory(array, piece) for piece in pieces)


@pytest.mark.parametrize("choices", [{}, {"positions": "rotary", "n_key_head": 2, "window": 3}])
def test_texts_in_one_pass_are_recorded_as_each_by_itself(
    choices: dict[str, object],
    small_decoder: own_model.OwnModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = dataclasses.replace(small_decoder.network.config, **choices)
    torch.manual_seed(0)
    model = own_model.from_network(
        Decoder(config).eval(), small_decoder.tokenizer, "decoder", "random", "fp32"
    )
    texts = (TEXT, *HOSTILE.values())
    batch = model.record_batch(texts)
    for text, together in zip(texts, batch, strict=True):
        alone = model.record(text)
        assert alone.streams[0].tokens == together.streams[0].tokens
        assert alone.streams[0].sites == together.streams[0].sites
        np.testing.assert_array_equal(
            alone.attention[0].allowed[0], together.attention[0].allowed[0]
        )
        np.testing.assert_allclose(alone.streams[0].resid, together.streams[0].resid, atol=PASSED)
        for name in ("q", "k", "v", "scores", "pattern"):
            one, other = (getattr(each.attention[0], name) for each in (alone, together))
            np.testing.assert_allclose(one, other, atol=PASSED, err_msg=name)
            assert not np.shares_memory(stored_array(other), stored_array(one))
    one = sum(each.nbytes for each in (batch[0].streams[0].resid, batch[0].attention[0].scores))
    monkeypatch.setattr(own_model, "MAX_BATCH_BYTES", one)
    assert [each.text for each in model.record_batch(texts)] == [TEXT], "the first one always"
