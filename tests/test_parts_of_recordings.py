"""Parts of recordings: what is asked for is what a whole one has, and the rest takes no memory."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest

import headlight
from headlight import panels
from models.contract.model import Model
from models.contract.recording import Recording, stored_array

TEXTS = ["the cat sat on the mat", "the dog ran", "a cat and a dog are in the house"]


def bytes_of(recording: Recording) -> int:
    """Bytes of memory that its arrays keep, each block once."""
    parts = (*recording.streams, *recording.attention)
    arrays = [stored_array(each) for part in parts for each in vars(part).values()]
    blocks: dict[int, int] = {}
    for array in arrays:
        if not isinstance(array, np.ndarray):
            continue
        while isinstance(array.base, np.ndarray):
            array = array.base
        blocks[id(array)] = array.nbytes
    return sum(blocks.values())


@pytest.fixture(params=["small_decoder", "small_model", "bert", "gpt2", "llama"])
def any_model(request: pytest.FixtureRequest, tiny_loaded: Callable) -> Model:
    name = request.param
    return request.getfixturevalue(name) if "small" in name else tiny_loaded(name)


def test_a_part_has_the_arrays_of_the_whole(any_model: Model) -> None:
    wholes = any_model.record_all(TEXTS)
    site = wholes[0].streams[0].sites[-1]
    parts = headlight.record(any_model, TEXTS, sites=[site], attention="pattern")
    for whole, part in zip(wholes, parts, strict=True):
        assert part.streams[0].sites == (site,)
        np.testing.assert_array_equal(part.streams[0].at(site), whole.streams[0].at(site))
        assert len(part.attention) == len(whole.attention)
        for one, other in zip(part.attention, whole.attention):
            np.testing.assert_array_equal(one.pattern, other.pattern)
            np.testing.assert_array_equal(one.allowed, other.allowed)
            assert not one.opens
    alone = headlight.record(any_model, TEXTS[0], sites=site, attention="")
    assert alone.attention == () and alone.streams[0].sites == (site,)


def test_what_is_not_asked_for_is_let_go(any_model: Model) -> None:
    whole = any_model.record(TEXTS[0])
    stream = whole.streams[0]
    part = headlight.record(any_model, TEXTS[0], sites=[stream.sites[-1]], attention="")
    vectors = stream.at(stream.sites[-1]).nbytes
    assert vectors <= bytes_of(part) < vectors + 64 * len(stream.tokens) < bytes_of(whole)


def test_a_part_is_refused_where_a_whole_one_is_meant(any_model: Model) -> None:
    part = headlight.record(any_model, TEXTS[0], attention="pattern")
    stream = part.streams[0].name
    for ask in (
        lambda: panels.attention.heads(part),
        lambda: any_model.logits(part, stream, 0),
        lambda: headlight.page(part, "heads", model=any_model),
        lambda: headlight.to_npz(part),
    ):
        with pytest.raises(ValueError, match="keeps only what was asked of it, for its arrays"):
            ask()


def test_what_is_not_there_is_said(small_decoder: Model) -> None:
    with pytest.raises(ValueError, match=r"no stream has a site 'x'; there are embed"):
        headlight.record(small_decoder, TEXTS, sites=["x"])
    with pytest.raises(ValueError, match='attention is "all", "pattern" or ""'):
        headlight.record(small_decoder, TEXTS, attention="q")  # type: ignore[call-overload]


def test_logits_of_every_token_are_those_of_each(any_model: Model) -> None:
    recording = any_model.record(TEXTS[0])
    stream = recording.streams[-1]
    every = any_model.logits(recording, stream.name)
    assert every.shape == (len(stream.tokens), any_model.card.n_vocab)
    for at, row in enumerate(every):
        np.testing.assert_array_equal(row, any_model.logits(recording, stream.name, at))


def test_keys_that_heads_share_are_an_array_like_any_other(tiny_loaded: Callable) -> None:
    keys = tiny_loaded("llama").record(TEXTS[0]).attention[0].k
    array = np.asarray(keys)
    assert type(array) is np.ndarray and array.shape == keys.shape
    written = io.BytesIO()
    np.save(written, keys)
    np.testing.assert_array_equal(np.load(io.BytesIO(written.getvalue())), array)
