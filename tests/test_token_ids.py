"""Token ids in the place of a text, and several texts at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from edited import OTHER, TEXT
from tolerances import PASSED, TOTAL

import headlight
from explorer.panels import attention as attention_panels
from models.contract import edits
from models.contract.recording_file import from_npz, to_npz
from models.network import own_model
from models.runtime import caching, host
from models.runtime.run import Run

IDS = (7, 40, 250, 40, 8, 7)


def test_the_ids_of_a_text_are_that_text(model: own_model.OwnModel) -> None:
    plain = model.record(TEXT)
    ids = plain.streams[0].ids
    for given in (tuple(ids), ids.tolist(), ids, torch.tensor(ids)):
        again = model.record(given)
        assert again == plain and not again.as_ids


def test_ids_are_read_as_they_are(model: own_model.OwnModel) -> None:
    """No special token stands around them, and the text is what they spell."""
    recording = model.record(IDS)
    stream = recording.streams[0]
    assert tuple(stream.ids) == IDS == recording.text_or_ids and recording.as_ids
    assert recording.text == model.tokenizer.text(IDS)
    assert stream.tokens == tuple(model.labels(IDS)) and (stream.spans == -1).all()
    network = model.network
    ids = torch.tensor([IDS])
    with torch.inference_mode():
        last = network.encode(ids) if model.card.kind == "encoder-decoder" else network(ids)
    np.testing.assert_allclose(stream.resid[-1], last[0], atol=PASSED)
    assert from_npz(to_npz(recording)) == recording
    off = model.record(IDS, edits.ScaleSite(0.0, "embed", -1))
    assert tuple(off.streams[0].ids) == IDS and not off.streams[0].at("embed")[-1].any()


def test_too_many_ids_are_cut_and_unknown_ones_refused(small_decoder: own_model.OwnModel) -> None:
    n = small_decoder.card.n_positions
    assert small_decoder.record([7] * (n + 3)).dropped == 3
    with pytest.raises(ValueError, match="has ids 0 to 299, not 300"):
        small_decoder.record([7, 300])
    with pytest.raises(ValueError, match="no token ids"):
        small_decoder.record([])
    for wrong in ([1.5], [[1, 2]], 3, None, b"a"):
        with pytest.raises(TypeError, match="a str, or a sequence of token ids"):
            small_decoder.record(wrong)


def test_a_run_of_ids_stays_one(small_decoder: own_model.OwnModel) -> None:
    """Under edits, in the cache, in a panel and in the lines of Python that it gives."""
    host.current.adopt(small_decoder)
    recording = small_decoder.record(IDS)
    run = Run.of(recording)
    assert run.recording() is recording and run.ids == IDS
    edited = run.under((edits.ZeroHead(0, 1),))
    assert tuple(edited.recording().streams[0].ids) == IDS
    bare = Run(small_decoder.name, recording.text, ids=IDS)
    assert bare.recording() == recording
    text = Run(small_decoder.name, recording.text)
    assert tuple(text.recording().streams[0].ids) != IDS
    assert caching.cause(text.recording()) != caching.cause(recording)
    panel = attention_panels.heads(bare)
    assert panel.caption and f"ids={IDS!r}" in headlight.panels.spec.python([panel])


def test_several_at_once(model: own_model.OwnModel) -> None:
    texts = [TEXT, OTHER, IDS, TEXT[:7]]
    together = model.record_all(texts)
    for each, recording in zip(texts, together, strict=True):
        alone = model.record(each)
        for a, b in zip(alone.streams, recording.streams, strict=True):
            assert a.tokens == b.tokens and a.sites == b.sites
            np.testing.assert_allclose(a.resid, b.resid, atol=TOTAL)
    under = model.record_all(texts, edits.ScaleSite(2.0, "embed"))
    assert [each.text_or_ids for each in under] == [
        model.record(each).text_or_ids for each in texts
    ]
    assert model.record_all([]) == ()


def test_the_door_takes_one_or_several(small_decoder: own_model.OwnModel) -> None:
    record = headlight.record
    assert record(small_decoder, IDS) == small_decoder.record(IDS)
    for several in ([list(IDS), [7, 8]], [torch.tensor(IDS), (7, 8)], [TEXT, OTHER]):
        made = record(small_decoder, several)
        assert isinstance(made, tuple) and len(made) == 2
    both = record(small_decoder, np.array([IDS, IDS]), edits.ZeroHead(0, 0))
    assert both[0] == both[1] == small_decoder.record(IDS, edits.ZeroHead(0, 0))
    with pytest.raises(ValueError, match="one text"):
        record(small_decoder, [TEXT, OTHER], target="a")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5"])
def test_a_model_in_its_own_code_reads_ids(kind: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded(kind)
    plain = model.record("the cat sat")
    assert model.record(plain.streams[0].ids) == plain
    target = (5, 6) if kind == "t5" else None
    recording = model.record(IDS, (), target)
    assert tuple(recording.streams[0].ids) == IDS and recording.as_ids
    inputs = {"input_ids": torch.tensor([IDS])}
    if target is not None:
        inputs["decoder_input_ids"] = torch.tensor(recording.streams[1].ids)[None]
    with torch.inference_mode():
        logits = model.network(**inputs, use_cache=False).logits[0]
    stream = recording.streams[-1].name
    np.testing.assert_allclose(model.logits(recording, stream, -1), logits[-1], atol=TOTAL)
    if target is None:
        assert [each.text_or_ids for each in model.record_all([IDS, "the cat"])] == [IDS, "the cat"]
