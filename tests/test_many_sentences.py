"""Many sentences: means and spreads that follow from the patterns, what is read of what is pasted,
and the page."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from explorer.analysis import many
from explorer.memory import background
from models import library
from models.own import Handle

ROOT = Path(__file__).resolve().parent.parent
TEXTS = ("the cat sat on the mat", "the dog ran to the cat and the dog", "the mat")


def read(handle: Handle) -> list[many.Sentence]:
    recordings = [library.record(handle, text) for text in TEXTS]
    return [many.measured(one, one.attention[0]) for one in recordings]


def test_shares_are_the_patterns_own(small_handle: Handle) -> None:
    recording = library.record(small_handle, TEXTS[0])
    attention, stream = recording.attention[0], recording.streams[0]
    found = many.measured(recording, attention)
    # a softmax in 32 bits sums to 1 within a few rounding steps of its row
    np.testing.assert_allclose(found.shares.sum(-1), 1, atol=1e-5)
    words = [at for at, special in enumerate(stream.special) if not special]
    back = many.PLACES.index("−1")
    by_hand = sum(attention.pattern[2, 3, q, q - 1] for q in words if q - 1 in words) / len(words)
    # by hand the same weights are added up in 32 bits
    assert found.shares[2, 3, back] == pytest.approx(by_hand, abs=1e-6)
    to_special = attention.pattern[2, 3][np.ix_(words, np.flatnonzero(stream.special))].sum(1)
    # and here
    assert found.shares[2, 3, 0] == pytest.approx(to_special.mean(), abs=1e-6)
    far = max(attention.pattern[1, 1, q, k] for q in words for k in words if abs(q - k) >= many.FAR)
    assert found.far[1, 1] == pytest.approx(far)
    look = found.looks[1][1]
    assert look.weight == found.far[1, 1] and look.query in stream.tokens


def test_means_spreads_and_order_over_sentences(small_handle: Handle) -> None:
    found = read(small_handle)
    made = many.shares(found)
    each = np.stack([one.shares for one in found])
    np.testing.assert_allclose(made.mean, each.mean(0))
    np.testing.assert_allclose(made.sd, each.std(0, ddof=1))
    previous = many.habit(found, "previous")
    has = [float(one.scores["previous"][0, 0]) for one in found]
    kept = [value for value in has if np.isfinite(value)]
    assert previous.n[0, 0] == len(kept)
    assert previous.mean[0, 0] == pytest.approx(np.mean(kept))
    values = [value for _, value in many.strongest(found, many.FAR_WORD, (1, 2))]
    assert values == sorted(values, reverse=True) and len(values) == 3
    alone = many.spread(np.array([[0.5]]))
    assert alone.mean[0] == 0.5 and np.isnan(alone.sd[0]), "one sentence has no spread"


def test_lines_and_columns_of_what_is_pasted() -> None:
    assert many.lines_of("\ufeffone\r\n\n  two  words \n") == ("one", "two words")
    assert len(many.lines_of("x\n" * 500)) == many.MOST_LINES
    assert many.columns_of("one, two\nthree, four, five\nsix") == ()
    assert many.columns_of("no table\nat all") == ()
    table = io.StringIO()
    said = ["a, b", 'c "d"', "</script>"]
    csv.writer(table).writerows([["id", "said"], *[[str(at), one] for at, one in enumerate(said)]])
    assert many.columns_of(table.getvalue()) == ("id", "said")
    assert many.lines_of(table.getvalue(), "said") == tuple(said)


def test_reading_can_be_stopped_and_gone_on_with() -> None:
    texts = ("", *TEXTS)
    seen = []

    def measured(recording) -> many.Sentence:
        seen.append(recording.text)
        if len(seen) == 2:
            reading.stop()
        return many.measured(recording, recording.attention[0])

    reading = background.through("encoder", texts, "a test of stopping", measured)
    reading.go_on()
    reading._thread.join(30)
    assert len(reading.latest) == 2 and not reading.finished
    assert reading.latest[0] == "there are no words in it"
    reading.go_on()
    reading._thread.join(30)
    assert reading.finished and seen == list(texts), "what was read is not read again"


@pytest.mark.slow
def test_the_page_reads_sentences_and_shows_what_heads_do() -> None:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=60)
    app.switch_page(str(ROOT / "pages" / "sentences.py")).run()
    app.text_area(key="many text").set_value(
        "id,said\n1,The cat <b>sat</b>\n2,\n3,It was *so* tired\n"
    )
    app.run()
    assert app.selectbox(key="many column").value == "said"
    app.button(key="many go").click().run()
    for _ in range(100):
        if any("Where each head" in each.value for each in app.subheader):
            break
        app.run()
    assert not app.exception
    app.session_state["export menu"] = True
    app.run()
    labels = [each.proto.label for each in app.get("download_button")]
    assert {"Places as CSV", "Habits of all heads as CSV", "Sentences as CSV"} <= set(labels)
