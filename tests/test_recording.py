"""The Recording: its laws on real forward passes, its checks at birth, and its life as a file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import HOSTILE, read_once
from tolerances import PASSED, SUMMED, TOTAL

from models import activation_cache, edits, own_model
from models.recording import Attention, Recording, Stream, from_npz, stored_array, to_npz
from models.transformer import Decoder

TEXT = "the cat sat on the mat"
EVERY_EDIT = [
    (),
    (edits.ZeroHead(1, 2),),
    (edits.WithoutScale(),),
    (edits.WithoutScale(0), edits.ZeroHead(2, 0)),
    (edits.WithoutPositions(),),
    (edits.WithoutNorm(1),),
    (edits.WithoutResidual(2),),
    (edits.ShuffleTokens(3),),
    (edits.ShuffleTokens(3), edits.WithoutPositions()),
]


@pytest.fixture(params=EVERY_EDIT, ids=lambda value: "+".join(map(str, value)) or "plain")
def recording(request: pytest.FixtureRequest, small_handle: own_model.OwnModel) -> Recording:
    return own_model.record(small_handle, TEXT, request.param)


def test_rows_sum_to_one(recording: Recording) -> None:
    np.testing.assert_allclose(recording.attention[0].pattern.sum(axis=-1), 1, atol=SUMMED)


def test_any_cell_recomputes_from_the_recording_alone(
    recording: Recording, small_handle: own_model.OwnModel
) -> None:
    attention = recording.attention[0]
    for layer in range(small_handle.card.n_layer):
        scale = (
            1.0
            if edits.applies(recording.edits, edits.WithoutScale, layer)
            else np.sqrt(attention.q.shape[-1])
        )
        scores = np.einsum("hqd,hkd->hqk", attention.q[layer], attention.k[layer]) / scale
        np.testing.assert_allclose(attention.scores[layer], scores, atol=SUMMED)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        np.testing.assert_allclose(
            attention.pattern[layer], weights / weights.sum(axis=-1, keepdims=True), atol=SUMMED
        )


def test_before_plus_wrote_is_what_stands_next(recording: Recording) -> None:
    stream = recording.streams[0]
    lost = {f"{edit.layer}." for edit in recording.edits if isinstance(edit, edits.WithoutResidual)}
    triples = stream.writes()
    assert len(triples) == 2 * recording.model.n_layer + (
        not edits.applies(recording.edits, edits.WithoutPositions)
    )
    for before, wrote, after in triples:
        kept = 0 if any(wrote.startswith(layer) for layer in lost) else stream.at(before)
        np.testing.assert_allclose(kept + stream.at(wrote), stream.at(after), atol=SUMMED)


def test_what_heads_wrote_is_their_values_through_w_o(small_handle: own_model.OwnModel) -> None:
    recording = own_model.record(small_handle, TEXT)
    attention, stream = recording.attention[0], recording.streams[0]
    for layer in range(recording.model.n_layer):
        w_o = small_handle.model.layers[layer].attention.w_o
        per_head = torch.from_numpy(attention.pattern[layer] @ attention.v[layer])
        slices = w_o.weight.detach().T.unflatten(
            0, (recording.model.n_head, recording.model.d_head)
        )
        total = torch.einsum("hqd,hdm->qm", per_head, slices) + w_o.bias.detach()
        np.testing.assert_allclose(total.numpy(), stream.at(f"{layer}.attn.wrote"), atol=SUMMED)


def test_post_norm_vectors_lie_on_the_sphere_before_gain_and_bias(
    small_handle: own_model.OwnModel,
) -> None:
    stream = own_model.record(small_handle, TEXT).streams[0]
    norm = small_handle.model.layers[0].attention_out.norm
    bare = (stream.at("0.attn.normed") - norm.bias.detach().numpy()) / norm.weight.detach().numpy()
    np.testing.assert_allclose(
        np.linalg.norm(bare, axis=-1), np.sqrt(small_handle.card.d_model), rtol=TOTAL
    )


def test_a_zeroed_head_writes_nothing_and_the_others_write_what_they_wrote(
    small_handle: own_model.OwnModel,
) -> None:
    plain, edited = (
        own_model.record(small_handle, TEXT),
        own_model.record(small_handle, TEXT, (edits.ZeroHead(0, 1),)),
    )
    attention = plain.attention[0]
    w_o = small_handle.model.layers[0].attention.w_o.weight.detach().numpy()[:, 6:12]
    gone = attention.pattern[0, 1] @ attention.v[0, 1] @ w_o.T
    difference = plain.streams[0].at("0.attn.wrote") - edited.streams[0].at("0.attn.wrote")
    np.testing.assert_allclose(difference, gone, atol=SUMMED)


def test_edits_leave_the_shared_model_as_it_was(small_handle: own_model.OwnModel) -> None:
    before = own_model.record(small_handle, TEXT)
    for each in EVERY_EDIT[1:]:
        assert own_model.record(small_handle, TEXT, each) != before
    assert own_model.record(small_handle, TEXT) == before


def test_a_recording_survives_its_file(recording: Recording) -> None:
    again = from_npz(to_npz(recording))
    assert again == recording
    assert again.edits == recording.edits and again.streams[0].tokens == recording.streams[0].tokens


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


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_records_and_survives_its_file(
    text: str, small_handle: own_model.OwnModel
) -> None:
    recording = own_model.record(small_handle, text)
    assert len(recording.streams[0].tokens) <= small_handle.card.n_positions
    assert from_npz(to_npz(recording)) == recording


def test_recordings_of_other_texts_differ(small_handle: own_model.OwnModel) -> None:
    assert own_model.record(small_handle, "the cat") != own_model.record(small_handle, "the dog")


def test_a_long_text_says_what_was_dropped(small_handle: own_model.OwnModel) -> None:
    whole, _ = small_handle.tokenizer.tokens("the cat " * 100, 10_000)
    recording = own_model.record(small_handle, "the cat " * 100)
    assert len(recording.streams[0].tokens) == 64
    assert recording.dropped == len(whole.ids) - 64


def test_a_file_that_is_no_recording_is_refused() -> None:
    import io

    other = io.BytesIO()
    np.savez(other, a=np.zeros(3))
    with pytest.raises(ValueError, match="no header"):
        from_npz(other.getvalue())


def test_arrays_cannot_be_written_to(recording: Recording) -> None:
    with pytest.raises(ValueError, match="read-only"):
        recording.attention[0].pattern[0, 0, 0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        recording.text = "other"


def changed(part: Stream | Attention, **values: object) -> Stream | Attention:
    return dataclasses.replace(part, **values)


def test_a_recording_that_contradicts_itself_is_not_born(small_handle: own_model.OwnModel) -> None:
    recording = own_model.record(small_handle, TEXT)
    stream, attention = recording.streams[0], recording.attention[0]
    with pytest.raises(ValueError, match="do not sum to 1"):
        changed(attention, pattern=attention.pattern * 0.9)
    with pytest.raises(ValueError, match="scores of self should have shape"):
        changed(attention, scores=attention.scores[..., :-1])
    with pytest.raises(ValueError, match="attends where it is not allowed"):
        changed(attention, allowed=np.tril(attention.allowed))
    with pytest.raises(ValueError, match="ids of stream encoder"):
        changed(stream, ids=stream.ids[:-1])
    shorter = changed(
        stream,
        tokens=stream.tokens[:-1],
        ids=stream.ids[:-1],
        special=stream.special[:-1],
        spans=stream.spans[:-1],
        resid=stream.resid[:, :-1],
    )
    with pytest.raises(ValueError, match=r"7 tokens in stream encoder but self has 8"):
        dataclasses.replace(recording, streams=(shorter,))
    with pytest.raises(ValueError, match="no stream is called 'decoder'"):
        dataclasses.replace(recording, attention=(changed(attention, key="decoder"),))


# ---- decoders, and models of two streams -------------------------------------


@pytest.fixture(params=["small_decoder", "small_translator"])
def writer(request: pytest.FixtureRequest) -> own_model.OwnModel:
    return request.getfixturevalue(request.param)


def test_a_decoder_carries_its_stream_and_its_triangle(small_decoder: own_model.OwnModel) -> None:
    recording = own_model.record(small_decoder, TEXT)
    attention, (stream,) = recording.attention[0], recording.streams
    assert (stream.name, attention.name, stream.tokens[0]) == ("decoder", "self", "[BOS]")
    n = len(stream.tokens)
    assert np.array_equal(attention.allowed, np.tril(np.ones((n, n), dtype=bool)))
    assert (attention.pattern[..., ~attention.allowed] == 0).all() and (
        attention.pattern[:, :, 0, 0] == 1
    ).all()


def test_a_translator_carries_two_streams_and_three_attentions(
    small_translator: own_model.OwnModel,
) -> None:
    recording = own_model.record(small_translator, TEXT, target="the dog ran")
    source, target = recording.streams
    assert (source.name, target.name, recording.target) == ("encoder", "decoder", "the dog ran")
    assert (
        source.tokens[-1] == "[EOS]"
        and target.tokens[0] == "[BOS]"
        and target.tokens[1:] == ("the", "dog", "ran")
    )
    assert [(each.name, each.query, each.key) for each in recording.attention] == [
        ("encoder self", "encoder", "encoder"),
        ("decoder self", "decoder", "decoder"),
        ("cross", "decoder", "encoder"),
    ]
    cross = recording.attention[2]
    assert cross.pattern.shape[2:] == (len(target.tokens), len(source.tokens)) and len(
        target.tokens
    ) != len(source.tokens)
    assert cross.allowed.all() and not recording.attention[1].allowed.all()


def test_the_laws_hold_in_every_stream_and_every_attention(writer: own_model.OwnModel) -> None:
    recording = own_model.record(writer, TEXT)
    for attention in recording.attention:
        np.testing.assert_allclose(attention.pattern.sum(axis=-1), 1, atol=SUMMED)
        scores = np.einsum("lhqd,lhkd->lhqk", attention.q, attention.k) / np.sqrt(
            writer.card.d_head
        )
        np.testing.assert_allclose(attention.scores, scores, atol=SUMMED)
        masked = np.where(attention.allowed, scores, -np.inf)
        weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
        np.testing.assert_allclose(
            attention.pattern, weights / weights.sum(axis=-1, keepdims=True), atol=SUMMED
        )
    for stream in recording.streams:
        triples = stream.writes()
        cross = stream.name == "decoder" and len(recording.streams) == 2
        assert len(triples) == (3 if cross else 2) * writer.card.n_layer + 1
        for before, wrote, after in triples:
            np.testing.assert_allclose(
                stream.at(before) + stream.at(wrote), stream.at(after), atol=SUMMED
            )


def test_what_cross_heads_wrote_is_the_sources_values_through_w_o(
    small_translator: own_model.OwnModel,
) -> None:
    recording = own_model.record(small_translator, TEXT, target="the dog ran")
    cross, stream = recording.attention[2], recording.streams[1]
    for layer, module in enumerate(small_translator.model.attentions()["cross"]):
        z = np.einsum("hqk,hkd->qhd", cross.pattern[layer], cross.v[layer]).reshape(
            len(stream.tokens), -1
        )
        wrote = z @ module.w_o.weight.detach().numpy().T + module.w_o.bias.detach().numpy()
        np.testing.assert_allclose(wrote, stream.at(f"{layer}.cross.wrote"), atol=SUMMED)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_read_and_answered_and_survives_its_file(
    text: str, writer: own_model.OwnModel
) -> None:
    recording = own_model.record(writer, text)
    assert all(len(stream.tokens) <= writer.card.n_positions for stream in recording.streams)
    assert from_npz(to_npz(recording)) == recording


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_target_is_read(text: str, small_translator: own_model.OwnModel) -> None:
    recording = own_model.record(small_translator, "the cat", target=text)
    assert recording.target == own_model.clean(text) and from_npz(to_npz(recording)) == recording
    bare = len(small_translator.tokenizer.ids([own_model.clean(text)])[0])
    assert recording.target_dropped == max(0, bare + 1 - small_translator.card.n_positions)


def test_a_target_may_be_the_very_tokens_that_were_said(
    small_translator: own_model.OwnModel,
) -> None:
    said = own_model.record(small_translator, TEXT)
    ids = tuple(map(int, said.stream("decoder").ids[1:]))
    again = own_model.record(small_translator, TEXT, target=ids)
    assert again == said and again.target == small_translator.tokenizer.text(ids)
    pieces = (
        *small_translator.tokenizer.ids(["t"])[0],
        *small_translator.tokenizer.ids(["he"])[0],
    )  # no text is split so
    assert (
        tuple(own_model.record(small_translator, TEXT, target=pieces).stream("decoder").ids[1:])
        == pieces
    )


def test_a_model_of_one_text_takes_no_target(small_decoder: own_model.OwnModel) -> None:
    with pytest.raises(ValueError, match="reads one text alone"):
        own_model.record(small_decoder, TEXT, target="le chat")


def test_a_head_is_zeroed_in_the_attention_that_is_named(
    small_translator: own_model.OwnModel,
) -> None:
    plain = own_model.record(small_translator, TEXT, target="the dog")
    for name in ("encoder self", "decoder self", "cross"):
        edited = own_model.record(
            small_translator, TEXT, (edits.ZeroHead(1, 2, name),), target="the dog"
        )
        same = [np.array_equal(a.resid, b.resid) for a, b in zip(plain.streams, edited.streams)]
        assert same == ([False, False] if name == "encoder self" else [True, False])
    with pytest.raises(
        ValueError,
        match="names attention 'self'; small translator has encoder self, decoder self, cross",
    ):
        own_model.record(small_translator, TEXT, (edits.ZeroHead(1, 2),))


def test_a_hidden_token_is_read_as_mask_and_keeps_its_place(
    small_handle: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    plain, hidden = (
        own_model.record(small_handle, TEXT),
        own_model.record(small_handle, TEXT, (edits.HideToken(2),)),
    )
    assert (
        hidden.streams[0].tokens[2] == "[MASK]"
        and hidden.streams[0].ids[2] == small_handle.tokenizer.mask
    )
    assert np.array_equal(np.delete(hidden.streams[0].ids, 2), np.delete(plain.streams[0].ids, 2))
    assert np.array_equal(hidden.streams[0].spans, plain.streams[0].spans)
    for token in (0, 7, 99, -1):
        with pytest.raises(ValueError, match="names no token of the text"):
            own_model.record(small_handle, TEXT, (edits.HideToken(token),))
    with pytest.raises(ValueError, match="fills no masked words"):
        own_model.record(small_decoder, TEXT, (edits.HideToken(2),))


@pytest.mark.parametrize("kind", ["encoder", "translator", "shared keys"])
def test_all_arrays_of_a_recording_lie_in_one_piece(
    kind: str,
    small_handle: own_model.OwnModel,
    small_decoder: own_model.OwnModel,
    small_translator: own_model.OwnModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system hands out large pieces of memory in large pages; small fresh ones are slow."""
    shared = dataclasses.replace(small_decoder.model.config, n_key_head=2)
    handle = {
        "encoder": small_handle,
        "translator": small_translator,
        "shared keys": own_model.handle_of(
            Decoder(shared).eval(), small_decoder.tokenizer, "shared keys", "random", "fp32"
        ),
    }[kind]
    pieces: list[np.ndarray] = []

    def seen(*given: object) -> activation_cache.Recorder:
        made = activation_cache.Recorder(*given)
        pieces.append(made.memory)
        return made

    monkeypatch.setattr(own_model, "Recorder", seen)
    recording = own_model.record(handle, TEXT)
    arrays = [stream.resid for stream in recording.streams]
    for attention in recording.attention:
        arrays += [attention.q, stored_array(attention.k), stored_array(attention.v)]
        arrays += [attention.scores, attention.pattern]
    for array in arrays:
        assert any(np.may_share_memory(array, piece) for piece in pieces)
