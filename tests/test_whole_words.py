"""A predicted word of several pieces is shown whole, and it is said whose probability stands
there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import needs_smollm2, read_once
from tolerances import PASSED

from explorer.analysis.facts import RecordingFacts
from explorer.figures.formatting import tenths
from explorer.panels import lessons, logit_lens, predictions
from explorer.text import findings as findings_text
from models.contract.edits import ZeroHead
from models.contract.results import largest, softmax
from models.own import drafts
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.tokens import whole_words

NEPAL = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


def after(
    model: str, text: str, then: tuple[int, ...] = ()
) -> tuple[list[tuple[int, float]], object]:
    """The likeliest next tokens with their probabilities, by a pass over everything."""
    loaded_model = loaded(model)
    p = softmax(loaded_model.generate(text, then).logits)
    return [(int(id), float(p[id])) for id in np.argsort(-p, kind="stable")[:10]], loaded_model


def word_of(model: str, text: str, id: int) -> str:
    """The word that a token begins after a text, by a pass over everything for each piece."""
    ids, pieces = (id,), loaded(model).labels([id])
    while True:
        ((best, _), *_), _ = after(model, text, ids)
        (label,) = loaded(model).labels([best])
        if not (label.startswith("‧") and label[1:].isalpha()):
            return "".join(pieces).replace("‧", "")
        ids, pieces = (*ids, best), [*pieces, label]


@pytest.mark.parametrize("country", ["Nepal", "France", "Germany"])
def test_a_word_is_followed_to_its_end_by_whole_passes(country: str) -> None:
    text = NEPAL.replace("Nepal", country)
    firsts, model = after("decoder", text)
    found = loaded("decoder").predicted_words(read_once("decoder").record(text), firsts)
    assert set(found) <= {id for id, _ in whole_words.followed_tokens(model, firsts)}
    for id, own in firsts[:3]:
        if own < 0.05:
            continue
        then, pieces = (id,), model.labels([id])
        while True:
            ((best, likely), *_), _ = after("decoder", text, then)
            (label,) = model.labels([best])
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
        assert found[firsts[0][0]].word == "Nepali"


def test_the_largest_values_are_the_beginning_of_a_stable_sort() -> None:
    rng = np.random.default_rng(0)
    for n_kinds in (1, 3, 40, 10**6):  # few kinds of values: many ties
        values = rng.integers(0, n_kinds, 500) / n_kinds
        for n in (1, 10, 499, 500, 900):
            wanted = np.argsort(-values, kind="stable")[:n]
            assert np.array_equal(largest(values, n), wanted)


def test_what_was_written_already_stands_before_the_next_word() -> None:
    firsts, _ = after("decoder", NEPAL)
    second, model = after("decoder", NEPAL, (firsts[0][0],))
    assert model.labels([second[0][0]])[0].startswith("‧")
    found = drafts.generated_text("decoder", NEPAL, (firsts[0][0],)).whole
    assert found[second[0][0]].word == "‧epali"


def test_an_unlikely_piece_of_a_letter_or_two_is_followed_and_a_short_word_is_not() -> None:
    model = loaded("decoder")
    labels = model.labels(range(model.card.n_vocab))
    ids = {label: id for id, label in enumerate(labels)}
    listed = [(ids[label], 0.01) for label in ("the", "T", "N", "He", "‧n", "A")]
    assert whole_words.followed_tokens(model, listed) == tuple(listed[1:3])
    writing = model.generate("She is from")
    found = whole_words.whole_words(model, writing, listed[1:3])
    for id, _ in listed[1:3]:
        assert id not in found or found[id].word == word_of("decoder", "She is from", id)
    assert found, "one of the two is no word"


def test_pieces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_words, "MOST_PIECES", 2)
    firsts, model = after("decoder", NEPAL)
    writing = model.generate(NEPAL)
    (made,) = whole_words.whole_words(model, writing, firsts[:1]).values()
    assert made.cut and len(made.pieces) == 2 and made.word == "Nep…"


def test_nothing_is_followed_where_nothing_can_be_written() -> None:
    for model, text in (
        ("encoder", "The cat"),
        ("translator", "The cat"),
        ("decoder", "cat " * 600),
    ):
        assert loaded(model).predicted_words(read_once(model).record(text), [(40, 0.9)]) == {}
    loaded_model = read_once("decoder")
    labels, read = loaded_model.labels(range(400)), loaded_model.record(NEPAL)
    for label in ("‧F", "‧er"):  # a letter may begin a name after a line break, a word goes on
        followed = loaded("decoder").predicted_words(read, [(labels.index(label), 0.01)])
        assert bool(followed) == (label == "‧F")


@pytest.mark.slow
def test_a_model_in_its_own_code_goes_on_from_what_was_written(tiny_loaded: Callable) -> None:
    for family in ("gpt2", "llama"):
        model = tiny_loaded(family)
        step = model.generate("the cat")
        for id in (300, 301):
            step.add(id)
        once = model.generate("the cat", (300, 301))
        assert once.ids == step.ids
        np.testing.assert_allclose(once.logits, step.logits, atol=PASSED)


def test_a_word_has_its_own_probability_and_its_first_piece_another() -> None:
    firsts, _ = after("decoder", NEPAL)
    (id, own), read = firsts[0], read_once("decoder").record(NEPAL)
    made = loaded("decoder").predicted_words(read, firsts)[id]
    later = NEPAL + " Nep"  # the same place in a longer text
    for text, token in (
        (NEPAL, None),
        (later, len(loaded("decoder").record(NEPAL).streams[0].ids)),
    ):
        panel = predictions.word(Run("decoder", text), token=token and token - 1)
        row = panel.figures[1].rows[0]
        assert row.label.startswith("N… (Nepali)") and row.key == str(id)
        assert row.values[0] == pytest.approx(own, abs=PASSED)
        assert f"“Nepali” ({tenths(made.own)})" in panel.finding
        facts = {about: number for number, about in panel.figures[2].facts}
        assert facts["probability of “Nepali”"] == tenths(made.own) != tenths(own)
        assert facts["probability of its first token, “N”"] == tenths(own)
        (said,) = [line for line in panel.details if "“Nepali”" in line]
        assert f"“N” has {tenths(own)}" in said and said.endswith(f"{tenths(made.own)}.")


BEGUN = [
    ("decoder", NEPAL),
    ("decoder", "He was born in Mozambique and speaks"),
    pytest.param("smollm2", NEPAL, marks=needs_smollm2),
]


@pytest.mark.slow
@pytest.mark.parametrize("model, text", BEGUN)
def test_lessons_findings_presenter_and_files_say_the_whole_word(model: str, text: str) -> None:
    ((id, own), *_), loaded_model = after(model, text)
    word, piece = word_of(model, text, id), loaded(model).labels([id])[0]
    assert word != piece and word.startswith(piece)
    recording = loaded(model).record(text)
    found = RecordingFacts(recording).findings()
    answers = [one for one in found if one.page in ("lens", "attribution")]
    assert answers
    for one in answers:
        assert one.words == (word, piece)
        assert word in findings_text.headline(one, str)
        assert f"first piece, {piece}." in findings_text.evidence(one, str)
    step = lessons.on(Run(model, text), "three-minutes").items[-1]
    assert f"“{word}”" in step.says
    assert f"Its first piece, “{piece}”, has {tenths(own)}." in step.rest
    label = f"{piece}… ({word})"
    panel = logit_lens.lens(Run(model, text))
    matrix, bars = panel.figures
    assert bars.rows[0].label == label and piece in matrix.words
    assert f"“{label}” " in panel.finding and tenths(own) in panel.finding


def test_the_words_of_an_edited_run_are_those_of_whole_passes_under_the_edit() -> None:
    edit, model = (ZeroHead(0, 0),), loaded("decoder")
    recording = model.record(NEPAL, edit)
    p = softmax(model.logits(recording, "decoder", -1))
    firsts = [(int(id), float(p[id])) for id in largest(p, 10)]
    found = model.predicted_words(recording, firsts)
    assert found
    for id, word in found.items():
        assert word.own == pytest.approx(whole_chance("decoder", NEPAL, word.ids, edit), abs=PASSED)
        assert word.ids[0] == id and tuple(model.labels(word.ids)) == word.pieces
    # The same words have another probability without the edit.
    plain, ids = model.record(NEPAL), [each.ids for each in found.values()]
    for word, own in zip(ids, model.word_probabilities(plain, -1, ids) or ()):
        assert own == pytest.approx(whole_chance("decoder", NEPAL, word, ()), abs=PASSED)
    assert model.word_probabilities(plain, -1, []) == []


def whole_chance(name: str, text: str, ids: tuple[int, ...], edits: tuple[ZeroHead, ...]) -> float:
    """The product of the probabilities of a word's tokens after a text, a pass for each."""
    own = 1.0
    for at, id in enumerate(ids):
        own *= float(softmax(loaded(name).generate(text, ids[:at], edits).logits)[id])
    return own
