"""The number of each step of the tour, by another way."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import PASSED, STORED, SUMMED, TOTAL

from explorer.analysis import tour
from explorer.analysis.head_naming import describe
from explorer.analysis.measure import MeasureContext
from explorer.analysis.tour import followed_pair, followed_word
from models.caching import depth_gradients, loaded
from models.edits import (
    OtherNorm,
    OtherPositions,
    SharedKeys,
    ShuffleTokens,
    SideBySide,
    Window,
    WithoutPositions,
)
from models.example_texts import DEFAULT_TEXT, EXAMPLES
from models.run import Run

MODELS = ("encoder", "decoder", "translator")


@pytest.fixture(scope="module")
def seen() -> dict[str, MeasureContext]:
    runs = [Run(model, DEFAULT_TEXT) for model in MODELS]
    return {run.model: MeasureContext.of(run) for run in runs}


# ---- the numbers, by another way ---------------------------------------------


def test_weights_and_distances_are_the_recordings_own(seen: dict[str, MeasureContext]) -> None:
    for each in seen.values():
        one = followed_pair(each)
        scores = one.attention.scores[one.layer, one.head, one.query].astype(np.float64)
        e = np.exp(scores - scores.max()) * one.attention.allowed[0][one.query]
        for step in (tour.qkv, tour.lookup):
            assert step(each).value == pytest.approx((e / e.sum())[one.key], abs=SUMMED / 2)
    one = followed_pair(seen["encoder"])
    heads = [each for each in describe(seen["encoder"].recording, one.attention)]
    far = max(each.distance for each in heads if each.layer == one.layer)
    assert tour.heads(seen["encoder"]).value == pytest.approx(far, abs=PASSED / 2)


def of_words(tokens: tuple[str, ...]) -> list[int]:
    return [at for at, token in enumerate(tokens) if token[0].isalpha() or token == "'t"]


def test_a_masked_share_an_asymmetry_and_a_variance(seen: dict[str, MeasureContext]) -> None:
    decoder, encoder = seen["decoder"], seen["encoder"]
    own = decoder.recording.attention[0]
    z = np.exp(own.scores.astype(np.float64))
    free = np.triu(z / z.sum(-1, keepdims=True), 1).sum(-1)
    ahead = free[..., of_words(decoder.recording.streams[0].tokens)].mean()
    assert tour.kinds(decoder).value == pytest.approx(ahead, abs=STORED)
    one = followed_pair(encoder)
    s = one.attention.scores[one.layer, one.head].astype(np.float64)
    skew, even = np.linalg.norm((s - s.T) / 2), np.linalg.norm((s + s.T) / 2)
    assert tour.match(encoder).value == pytest.approx(skew / np.hypot(skew, even))
    # Of the scores, which are divided by the root of the width.
    scores = own.scores.astype(np.float64)[:, :, 1:][..., own.allowed[0, 1:]]
    variance = np.median(scores.var(axis=-1)) * own.q.shape[-1]
    assert tour.scale(decoder).value == pytest.approx(variance, rel=STORED)


def test_what_changed_since_moves_words_as_its_edits_do(seen: dict[str, MeasureContext]) -> None:
    edits = (OtherNorm("rms"), SideBySide(), OtherPositions("rotary"), Window(4), SharedKeys(1))
    for model, each in seen.items():
        shown, plain = tour.since(each), each.recording.streams[-1]
        said = tuple(map(int, plain.ids[1:])) if model == "translator" else None
        moved = []
        for edit in edits:
            last = loaded(model).record(DEFAULT_TEXT, (edit,), said).streams[-1].resid[-1]
            far = relative_distance(last, plain.resid[-1])
            moved.append(far[~plain.special].mean())
        assert shown.value == pytest.approx(max(moved), abs=PASSED / 2)
        assert len(shown.figures[0].rows) == len(edits)


def relative_distance(moved: np.ndarray, plain: np.ndarray) -> np.ndarray:
    return np.linalg.norm(moved - plain, axis=1) / np.linalg.norm(plain, axis=1)


def test_words_waves_and_order(seen: dict[str, MeasureContext]) -> None:
    each = seen["encoder"]
    stream = each.recording.streams[0]
    vector = stream.at("embed+pos")[9].astype(np.float64) - stream.at("pos.wrote")[9]
    assert tour.embed(each).value == pytest.approx(np.linalg.norm(vector), abs=PASSED / 2)
    turns = 2 * np.pi * tour.waves(each).value
    assert np.exp(1j * turns) == pytest.approx(np.exp(1j * (len(stream.tokens) - 1)))
    shuffled, bare = ShuffleTokens(1), WithoutPositions()
    free, mixed, with_ = (
        loaded("encoder").record(DEFAULT_TEXT, edits).streams[0].resid[-1]
        for edits in ((bare,), (shuffled, bare), (shuffled,))
    )
    order = shuffled.order(stream.special)
    assert np.abs(free[order] - mixed).max() < TOTAL, "the words' vectors move along with them"
    moved = relative_distance(with_, stream.resid[-1][order])
    assert np.abs(moved - tour.order(each).value).min() < PASSED / 2


def test_the_inside_of_an_ffn_sums_to_what_it_wrote(seen: dict[str, MeasureContext]) -> None:
    for each in seen.values():
        stream = each.recording.streams[-1]
        token = followed_word(each, stream)
        for layer in range(each.recording.model.n_layer):
            found = each.ffn(stream.name, layer, token)
            wrote = stream.at(f"{layer}.ffn.wrote")[token]
            assert np.abs(found.writes.sum(axis=0) + found.bias - wrote).max() < 1e-4
            assert ((found.after > 0) == (found.before > 0)).all()
        shown = tour.ffn(each)
        layer = int(shown.slots["layer"])
        assert shown.value == (each.ffn(stream.name, layer, token).after > 0).sum()
    with pytest.raises(ValueError, match="no layer 99"):
        seen["encoder"].ffn("encoder", 99, 0)


@pytest.mark.slow
def test_two_stages_and_a_stack(seen: dict[str, MeasureContext]) -> None:
    for each in seen.values():
        shown = tour.stages(each)
        (bars,) = shown.figures
        others = [row for row in bars.rows if row.label != shown.slots["word"]]
        assert all(row.values[1] < 1e-5 for row in others), "the FFN knows one token"
        assert shown.value == max(row.values[0] for row in others) > 0.01
    found = depth_gradients(seen["encoder"].recording, "encoder")
    assert tour.deep(seen["encoder"]).value == found.norm[1, 0] / found.norm[1, -1] < 0.1


def test_the_notes_own_sentence_is_measured(seen: dict[str, MeasureContext]) -> None:
    shown = tour.pizza(seen["encoder"])
    recording = loaded("encoder").record(EXAMPLES["Pizza"])
    tokens = list(recording.streams[0].tokens)
    at = [tokens.index(word) for word in ("I", "love", "to", "eat", "pizza")]
    assert abs(shown.value - np.mean(recording.attention[0].pattern[..., at, at])) < 1e-6
    measured, note = shown.figures
    assert measured.rows == note.rows and np.isfinite(note.values).sum() == 6
