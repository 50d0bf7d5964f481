"""An answer in large type: its likeliest words, the word that is told of, the head that read the
question for it, and what is left of it without that head."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import clean, page_at, panels_on, told
from conftest import AWKWARD, HOSTILE, needs_smollm2
from tolerances import PASSED, SUMMED

from explorer.analysis import answers, opening
from explorer.analysis.answers import SpokenWord
from explorer.app.views.predictions import as_asked
from explorer.panels import generation
from models.contract.edits import ZeroHead
from models.contract.recording import CONTINUES
from models.contract.results import Part, softmax
from models.runtime.caching import loaded
from models.runtime.run import Run

NEPAL = "What is the capital of Nepal?"
CHAT = Run("smollm2", f"user: {NEPAL}")


def spoken(*tokens: str) -> list[SpokenWord]:
    return answers.words_of(tokens, 0, len(tokens))


def test_pieces_are_words_together() -> None:
    more = CONTINUES
    words = spoken(f"{more}The", "capital", "Kath", f"{more}mand", f"{more}u", f"{more}.", "is")
    assert [each.label for each in words] == ["The", "capital", "Kathmandu", ".", "is"]
    assert [(each.start, each.end) for each in words] == [(0, 1), (1, 2), (2, 5), (5, 6), (6, 7)]
    weights = np.arange(7.0)[None]
    np.testing.assert_allclose(answers.on_words(weights, words), [[0, 1, 2 + 3 + 4, 5, 6]])


def test_the_word_that_is_told_of_is_new_and_of_content() -> None:
    asked = spoken("What", "is", "the", "capital", "of", "Nepal", "?")
    said = spoken("The", "capital", "of", "Nepal", "is", "Kathmandu", ".")
    assert opening.answer_word(asked, said) == 5
    assert opening.answer_word(asked, said[:5]) is None
    assert opening.answer_word(asked, spoken(".", "!", "?")) is None


def test_the_head_brings_much_and_reads_a_word_of_content() -> None:
    asked = spoken("the", "capital", "of", "Nepal")
    rows = np.full((2, 2, 5), 0.01)
    rows[0, 0, 3], rows[1, 1, 0], rows[0, 1, 3] = 0.4, 0.9, 0.8
    parts = [Part("head", layer, head, "self", value) for layer, head, value in BRING]
    read = opening.reading_head(parts, rows, asked)
    assert read is not None and (read.layer, read.head, asked[read.word].label) == (0, 0, "Nepal")
    np.testing.assert_array_equal(read.weights, rows[0, 0])
    assert opening.reading_head(parts, np.full((2, 2, 5), 0.01), asked) is None, "no weight"
    assert opening.reading_head([], rows, asked) is None
    assert opening.reading_head(parts, rows, spoken("of", "the")) is None


# A head on "the" brings most, one on "Nepal" brings something, and another one takes away.
BRING = [(1, 1, 3.0), (0, 0, 1.0), (0, 1, -2.0)]


def test_a_token_turns_where_it_loses_much_and_another_one_leads() -> None:
    logits = lambda *p: np.log(np.array(p))
    turned = answers.without_head(logits(0.5, 0.3, 0.2), logits(0.2, 0.6, 0.2), 0)
    assert turned.turns and (turned.leads, turned.before) == (1, pytest.approx(0.5))
    assert not answers.without_head(logits(0.9, 0.1), logits(0.6, 0.4), 0).turns, "it still leads"
    assert not answers.without_head(logits(0.35, 0.34), logits(0.34, 0.35), 0).turns, "a hair"


@needs_smollm2
@pytest.mark.slow
def test_kathmandu_is_read_off_nepal_by_one_head_that_turns_it() -> None:
    ids = generation.written_ids(CHAT)
    assert generation.answer_text(CHAT, ids) == "The capital of Nepal is Kathmandu."
    panel = generation.reading_head(CHAT)
    assert panel.title == "What one head read, to say “Kathmandu”"
    model, before = loaded("smollm2"), CHAT.recording().streams[0].ids.tolist() + list(ids[:5])
    read = model.record(tuple(before))
    layer, head = panel.at["layer"], panel.at["head"]
    row = read.attention[0].pattern[layer, head, -1]
    (links,) = panel.figures
    nepal = links.right.index("Nepal")
    at = model.labels(before).index("Nepal")
    assert links.weights[-1, nepal] == pytest.approx(row[at], abs=SUMMED) and row[at] > 0.5
    assert links.left == ("The", "capital", "of", "Nepal", "is", "Kathmandu")
    again = len(before) - 2
    assert model.labels(before)[again] == "Nepal"
    assert links.back[3] == pytest.approx(row[again], abs=SUMMED)
    without = generation.answer_without_head(CHAT)
    kath = int(ids[5])
    ablated = model.record(tuple(before), ZeroHead(layer, head))
    for which, value in ((read, without.figures[0].rows[0].outline), (ablated, None)):
        p = softmax(model.logits(which, which.streams[0].name, len(before) - 1))
        shown = without.figures[0].rows[0].values[0] if value is None else value
        assert p[kath] == pytest.approx(shown, abs=PASSED)
    assert "“Kath…” falls from 36% to 7%" in without.finding and "“called” leads" in without.finding


def test_the_likeliest_words_go_on_with_a_text() -> None:
    run = Run("decoder", "Shyam grew up in Nepal therefore he speaks")
    model, ids = loaded("decoder"), list(run.recording().streams[0].ids.tolist())
    for id in generation.written_ids(run):
        read = model.record(tuple(ids))
        assert id == int(model.logits(read, read.streams[0].name, len(ids) - 1).argmax())
        ids.append(id)


@pytest.mark.parametrize("text", [*AWKWARD.values(), *HOSTILE.values()])
def test_of_any_text_there_is_a_head_or_a_sentence(text: str) -> None:
    run = Run("decoder", text)
    for panel in (generation.reading_head, generation.answer_without_head):
        try:
            made = panel(run)
        except ValueError as why:
            assert str(why)
        else:
            assert made.finding and made.figures


@needs_smollm2
def test_a_question_is_read_as_a_chat_by_a_model_that_answers() -> None:
    assert as_asked(Run("smollm2", NEPAL)) == CHAT and as_asked(CHAT) == CHAT
    for plain in (Run("smollm2", "The cat sat on the"), Run("decoder", NEPAL)):
        assert as_asked(plain) == plain


@pytest.mark.slow
def test_another_answer_is_drawn_and_the_likeliest_comes_back() -> None:
    text = "Shyam grew up in Nepal therefore he speaks"
    app = clean(page_at("generate", text=text, model="decoder"))
    first = told(app, "title")
    assert "write one" not in [each.key for each in app.button], "it is behind a press"
    assert "generation.reading_head" in [each["panel"] for each in panels_on(app)]
    clean(app.button(key="sample answer").click().run())
    assert app.session_state["said"] and app.session_state["temperature"] == "0.8"
    assert app.session_state["seed"] == "1"
    clean(app.button(key="likeliest answer").click().run())
    assert not app.session_state["said"] and told(app, "title") == first
