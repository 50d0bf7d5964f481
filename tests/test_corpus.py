"""Many sentences: means and spreads that follow from the patterns, and a reading that stops and
goes on."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import DOUBLE, STORED

from explorer.analysis import corpus, head_naming
from explorer.app.state import jobs
from models.network.own_model import OwnModel

CLOSE = 1e-5  # a softmax in 32 bits sums to 1 within a few rounding steps of its row
TEXTS = ("the cat sat on the mat", "the dog ran to the cat and the dog", "the mat")


def read(model: OwnModel) -> list[corpus.Sentence]:
    recordings = [model.record(text) for text in TEXTS]
    return [corpus.measure_attention(one, one.attention[0]) for one in recordings]


def test_shares_are_the_patterns_own(small_model: OwnModel) -> None:
    recording = small_model.record(TEXTS[0])
    attention, stream = recording.attention[0], recording.streams[0]
    found = corpus.measure_attention(recording, attention)
    np.testing.assert_allclose(found.shares.sum(-1), 1, atol=CLOSE)
    words = np.flatnonzero(~stream.special)
    between = attention.pattern[..., words, :][..., words]
    back = corpus.WITHIN.places.index("−1")
    by_hand = np.trace(between[2, 3], -1) / len(words)
    assert found.shares[2, 3, back] == pytest.approx(by_hand, abs=STORED)
    to_special = attention.pattern[2, 3][np.ix_(words, np.flatnonzero(stream.special))].sum(1)
    assert found.shares[2, 3, 0] == pytest.approx(to_special.mean(), abs=STORED)
    apart = np.abs(np.subtract.outer(words, words))
    assert found.largest[1, 1] == pytest.approx(between[1, 1][apart >= corpus.FAR].max())
    look = found.looks[1][1]
    assert look.weight == found.largest[1, 1] and look.query in stream.tokens


def test_between_two_texts_places_are_shares_of_each(small_translator: OwnModel) -> None:
    recording = small_translator.record(TEXTS[1])
    (cross,) = (each for each in recording.attention if each.name == "cross")
    source, target = recording.stream(cross.key), recording.stream(cross.query)
    found = corpus.measure_recording(recording)
    assert set(found) == {each.name for each in recording.attention}
    one = found["cross"]
    np.testing.assert_allclose(one.shares.sum(-1), 1, atol=CLOSE)
    words, n = np.flatnonzero(~source.special), len(target.tokens) - 1  # row i writes token i + 1
    written = cross.pattern[1, 2, :n]
    to_special = written[:, source.special].sum(1).mean()
    assert one.shares[1, 2, 0] == pytest.approx(to_special, abs=STORED)
    ahead = np.linspace(0, 1, len(words)) - np.linspace(0, 1, n)[:, None]
    late = (written[:, words] * (ahead > 0.55 - DOUBLE)).sum()
    assert late > 0 and one.shares[1, 2, -1] == pytest.approx(late / n, abs=STORED)
    row, word = np.unravel_index(written[:, words].argmax(), (n, len(words)))
    largest = (written[:, words].max(), target.tokens[row + 1], source.tokens[words[word]])
    assert one.looks[1][2] == corpus.AttentionExample(*largest)
    diagonal = head_naming.describe(recording, cross)[1 * 4 + 2].relations[0]
    assert one.scores[diagonal.name][1, 2] == diagonal.score


def test_means_spreads_and_order_over_sentences(small_model: OwnModel) -> None:
    found = read(small_model)
    made = corpus.share_spread(found)
    each = np.stack([one.shares for one in found])
    np.testing.assert_allclose(made.mean, each.mean(0))
    np.testing.assert_allclose(made.sd, each.std(0, ddof=1))
    previous = corpus.habit_spread(found, "previous")
    has = [float(one.scores["previous"][0, 0]) for one in found]
    kept = [value for value in has if np.isfinite(value)]
    assert previous.n[0, 0] == len(kept)
    assert previous.mean[0, 0] == pytest.approx(np.mean(kept))
    values = [value for _, value in corpus.strongest_sentences(found, corpus.WITHIN.look, (1, 2))]
    assert values == sorted(values, reverse=True) and len(values) == 3
    means = {name: corpus.habit_spread(found, name).mean for name in corpus.WITHIN.measures}
    best, other = corpus.strongest_pattern(found), corpus.strongest_pattern(found, (1, 2))
    assert head_naming.SINK not in (best, other)
    for name in means.keys() - {head_naming.SINK}:
        assert not np.nanmax(means[name]) > np.nanmax(means[best])
        assert not means[name][1, 2] > means[other][1, 2]
    alone = corpus.spread(np.array([[0.5]]))
    assert alone.mean[0] == 0.5 and np.isnan(alone.sd[0]), "one sentence has no spread"


def test_reading_can_be_stopped_and_gone_on_with() -> None:
    texts = ("", *TEXTS)
    seen = []

    def measured(recording) -> corpus.Sentence:
        seen.append(recording.text)
        if len(seen) == 2:
            reading.stop()
        return corpus.measure_attention(recording, recording.attention[0])

    reading = jobs.corpus_job("encoder", texts, "a test of stopping", measured)
    reading.resume()
    reading._thread.join(30)
    assert len(reading.latest) == 2 and not reading.finished
    assert reading.latest[0] == "there are no words in it"
    reading.resume()
    reading._thread.join(30)
    assert reading.finished and seen == list(texts), "what was read is not read again"
