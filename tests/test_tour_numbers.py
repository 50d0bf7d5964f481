"""The number of each step of the tour, by another way."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.analysis import tour
from explorer.analysis.measure import MeasureContext
from explorer.analysis.tour import followed_pair, followed_word
from explorer.panels.claims import measure_context
from explorer.state import cache
from explorer.state.cache import Run
from models.edits import (
    OtherNorm,
    OtherPositions,
    SharedKeys,
    ShuffleTokens,
    SideBySide,
    Window,
    WithoutPositions,
)
from models.example_texts import DEFAULT_TEXT

MODELS = ("encoder", "decoder", "translator")


@pytest.fixture(scope="module")
def seen() -> dict[str, MeasureContext]:
    runs = [Run(model, DEFAULT_TEXT) for model in MODELS]
    return {run.model: measure_context(run.recording(), run.text) for run in runs}


# ---- the numbers, by another way ---------------------------------------------


def test_weights_and_distances_are_the_recordings_own(seen: dict[str, MeasureContext]) -> None:
    for each in seen.values():
        one = followed_pair(each)
        scores = one.attention.scores[one.layer, one.head, one.query].astype(np.float64)
        e = np.exp(scores - scores.max()) * one.attention.allowed[one.query]
        for step in (tour.qkv, tour.lookup):
            assert abs(step(each).value - (e / e.sum())[one.key]) < 1e-5
    one = followed_pair(seen["encoder"])
    rows = [at for at, token in enumerate(one.rows.tokens) if token[0].isalpha() or token == "'t"]
    far = 0.0
    for pattern in one.attention.pattern[one.layer]:
        mass = [(pattern[i, j], abs(i - j)) for i in rows for j in rows]
        far = max(far, sum(w * d for w, d in mass) / sum(w for w, _ in mass))
    assert abs(tour.heads(seen["encoder"]).value - far) < 1e-4


def test_a_masked_share_an_asymmetry_and_a_variance(seen: dict[str, MeasureContext]) -> None:
    own = seen["decoder"].recording.attention[0]
    words = [
        at
        for at, token in enumerate(seen["decoder"].recording.streams[0].tokens)
        if token[0].isalpha() or token == "'t"
    ]
    z = np.exp(own.scores.astype(np.float64))
    free = z / z.sum(-1, keepdims=True)
    ahead = np.mean([free[..., i, i + 1 :].sum(-1).mean() for i in words])
    assert abs(tour.kinds(seen["decoder"]).value - ahead) < 1e-6
    one = followed_pair(seen["encoder"])
    s = one.attention.scores[one.layer, one.head].astype(np.float64)
    skew, even = (s - s.T) / 2, (s + s.T) / 2
    size = np.sqrt((skew**2).sum() + (even**2).sum())
    assert abs(tour.match(seen["encoder"]).value - np.sqrt((skew**2).sum()) / size) < 1e-9
    found = []
    for q, k in zip(own.q.astype(np.float64), own.k.astype(np.float64)):
        q, k = (each[0] / np.sqrt((each[0] ** 2).mean()) for each in (q, k))
        found.append(np.var([a @ b for a in q for b in k]))
    assert abs(tour.scale(seen["decoder"]).value / np.mean(found) - 1) < 1e-6


@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_what_changed_since_moves_the_words_by_what_its_edits_do(
    seen: dict[str, MeasureContext], model: str
) -> None:
    shown, plain = tour.since(seen[model]), seen[model].recording.streams[-1]
    said = tuple(map(int, plain.ids[1:])) if model == "translator" else None
    edits = (OtherNorm("rms"), SideBySide(), OtherPositions("rotary"), Window(4), SharedKeys(1))
    moved = []
    for edit in edits:
        last = cache.record(model, DEFAULT_TEXT, (edit,), said).streams[-1].resid[-1]
        far = np.linalg.norm(last - plain.resid[-1], axis=1)[~plain.special]
        moved.append((far / np.linalg.norm(plain.resid[-1], axis=1)[~plain.special]).mean())
    assert shown.value == pytest.approx(max(moved), abs=1e-4)  # of numbers in 32 bits
    assert len(shown.figures[0].rows) == len(edits)


def test_words_waves_and_order(seen: dict[str, MeasureContext]) -> None:
    each = seen["encoder"]
    stream = each.recording.streams[0]
    vector = stream.at("embed+pos")[9].astype(np.float64) - stream.at("pos.wrote")[9]
    assert abs(tour.embed(each).value - np.linalg.norm(vector)) < 1e-4
    turns = tour.waves(each).value
    assert abs(np.exp(2j * np.pi * turns) - np.exp(1j * (len(stream.tokens) - 1))) < 1e-9
    free = cache.record("encoder", DEFAULT_TEXT, (WithoutPositions(),))
    mixed = cache.record("encoder", DEFAULT_TEXT, (ShuffleTokens(1), WithoutPositions()))
    order = ShuffleTokens(1).order(stream.special)
    a, b = free.streams[0].resid[-1][order], mixed.streams[0].resid[-1]
    assert np.abs(a - b).max() < 1e-3, "the words' vectors move along with them"
    with_ = cache.record("encoder", DEFAULT_TEXT, (ShuffleTokens(1),)).streams[0].resid[-1]
    plain = stream.resid[-1][order]
    moved = np.linalg.norm(with_ - plain, axis=1) / np.linalg.norm(plain, axis=1)
    assert np.abs(moved - tour.order(each).value).min() < 1e-4


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


def test_two_stages_and_a_stack(seen: dict[str, MeasureContext]) -> None:
    for each in seen.values():
        shown = tour.stages(each)
        (bars,) = shown.figures
        others = [row for row in bars.rows if row.label != shown.slots["word"]]
        assert all(row.values[1] < 1e-5 for row in others), "the FFN knows one token"
        assert shown.value == max(row.values[0] for row in others) > 0.01
    found = cache.depth_gradients(seen["encoder"].recording, "encoder")
    assert tour.deep(seen["encoder"]).value == found.norm[1, 0] / found.norm[1, -1] < 0.1


def test_the_notes_own_sentence_is_measured(seen: dict[str, MeasureContext]) -> None:
    shown = tour.pizza(seen["encoder"])
    recording = cache.record("encoder", "I love to eat pizza.")
    tokens = list(recording.streams[0].tokens)
    at = [tokens.index(word) for word in ("I", "love", "to", "eat", "pizza")]
    assert abs(shown.value - np.mean(recording.attention[0].pattern[..., at, at])) < 1e-6
    measured, note = shown.figures
    assert measured.rows == note.rows and np.isfinite(note.values).sum() == 6
