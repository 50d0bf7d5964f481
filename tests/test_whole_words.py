"""A predicted word of several pieces is shown whole, and it is said whose probability stands
there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from app_harness import page_at
from prediction_oracle import clean, sent
from tolerances import PASSED

from explorer.analysis.formatting import probability
from explorer.components import codec
from explorer.state import models, whole_words
from models import registry
from models.results import softmax

NEPAL = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


def after(
    model: str, text: str, then: tuple[int, ...] = ()
) -> tuple[list[tuple[int, float]], object]:
    """The likeliest next tokens with their probabilities, by a pass over everything."""
    handle = models.handle(model)
    p = softmax(handle.generate(text, then).logits)
    return [(int(id), float(p[id])) for id in np.argsort(-p, kind="stable")[:10]], handle


@pytest.mark.parametrize("country", ["Nepal", "France", "Germany"])
def test_a_word_is_followed_to_its_end_by_whole_passes(country: str) -> None:
    text = NEPAL.replace("Nepal", country)
    firsts, handle = after("decoder", text)
    found = whole_words.whole_words("decoder", text, (), firsts)
    assert set(found) <= {id for id, own in firsts[:3] if own >= 0.05}
    for id, own in firsts[:3]:
        if own < 0.05:
            continue
        then, pieces = (id,), handle.labels([id])
        while True:
            ((best, likely), *_), _ = after("decoder", text, then)
            (label,) = handle.labels([best])
            if not label.startswith("‧"):
                break
            then, own = (*then, best), own * likely
            pieces.append(label)
        assert (id in found) == (len(pieces) > 1)
        if id in found:
            assert found[id].pieces == tuple(pieces) and not found[id].cut
            assert found[id].word == "".join(pieces).replace("‧", "")
            assert found[id].own == pytest.approx(own, abs=PASSED)
    if country == "Nepal":
        assert [each.word for each in found.values()] == ["Nepali"]


def test_what_was_written_already_stands_before_the_next_word() -> None:
    firsts, _ = after("decoder", NEPAL)
    second, handle = after("decoder", NEPAL, (firsts[0][0],))
    assert handle.labels([second[0][0]])[0].startswith("‧")
    found = whole_words.whole_words("decoder", NEPAL, (firsts[0][0],), second)
    assert found[second[0][0]].word == "‧epali"


def test_pieces_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(whole_words, "MOST_PIECES", 2)
    firsts, handle = after("decoder", NEPAL)
    writing = handle.generate(NEPAL)
    made = whole_words._complete_word(handle, writing, *firsts[0])
    assert made.cut and len(made.pieces) == 2 and made.word == "Nep…"


def test_nothing_is_followed_where_nothing_can_be_written() -> None:
    for model, text in (
        ("encoder", "The cat"),
        ("translator", "The cat"),
        ("decoder", "cat " * 600),
    ):
        assert whole_words.whole_words(model, text, (), [(40, 0.9)]) == {}
    assert whole_words.whole_words("decoder", NEPAL, (), [(40, 0.01)]) == {}


@pytest.mark.slow
def test_a_model_in_its_own_code_goes_on_from_what_was_written(tiny_loaded: Callable) -> None:
    for family in ("gpt2", "llama"):
        handle = tiny_loaded(family)
        step = handle.generate("the cat")
        for id in (300, 301):
            step.add(id)
        once = handle.generate("the cat", (300, 301))
        assert once.ids == step.ids
        np.testing.assert_allclose(once.logits, step.logits, atol=PASSED)


def test_predict_lists_the_whole_word_and_says_whose_the_number_is() -> None:
    app = clean(page_at("predictions", text=NEPAL, model="decoder"))
    firsts, _ = after("decoder", NEPAL)
    row = sent(app, "bars")["rows"][0]
    assert row["label"] == "Nepali" and "first piece “N”" in row["mark"]
    assert row["key"] == str(firsts[0][0])
    assert row["behind"] == pytest.approx(firsts[0][1], abs=PASSED)
    made = whole_words.whole_words("decoder", NEPAL, (), firsts)[firsts[0][0]]
    (said,) = [each.value for each in app.caption if "“Nepali”" in each.value]
    assert "the number and bar are its first piece, “N”" in said
    assert f"the whole word has {probability(made.own)}." in said


def test_the_map_says_the_whole_word() -> None:
    last = len(registry.load("decoder").record(NEPAL).streams[0].tokens) - 1
    app = clean(page_at("attention", text=NEPAL, model="decoder", token=str(last)))
    (header,) = [
        codec.decode(each.proto.bytes)[0]
        for each in app.get("bidi_component")
        if each.proto.component_name == "headlight.way"
    ]
    assert header["words"][0][0] == "Nepali"
    assert "Nepali: the probability is that of its first piece, N" in header["note"]
