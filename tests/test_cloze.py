"""The sentence with an empty box: what stands in it, the words that hang below it, and what its
headline says, against the model's own probabilities."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import AWKWARD, HOSTILE, needs_smollm2
from tolerances import PASSED

from explorer.figures.formatting import whole_percent
from explorer.figures.kinds import MOST_LARGE, Cloze
from explorer.panels import predictions
from explorer.panels.spec import Panel
from explorer.screens.screen import screen
from models.contract.edits import HideToken
from models.contract.recording import CONTINUES
from models.contract.results import softmax
from models.runtime.caching import loaded
from models.runtime.run import Run

WAITER = "The waiter brought the soup but it was cold."
IT = 7


def cloze(panel: Panel) -> Cloze:
    (figure,) = panel.figures
    assert isinstance(figure, Cloze)
    return figure


def sentence(figure: Cloze) -> str:
    """The sentence as it is drawn, "_" for an empty box."""
    parts = zip(figure.tokens, figure.spaced)
    return "".join(" " * space + (word or "_") for word, space in parts).strip()


def test_the_hidden_word_is_a_box_with_the_models_own_probabilities() -> None:
    panel = predictions.cloze(Run("encoder", WAITER), token=IT, hidden="7")
    figure = cloze(panel)
    assert sentence(figure) == "The waiter brought the soup but _ was cold."
    assert figure.blanks == (figure.selected,) == (6,)
    model = loaded("encoder")
    p = softmax(model.logits(model.record(WAITER, HideToken(IT)), "encoder", IT))
    best = np.argsort(-p)[: len(figure.rows)]
    assert [int(row.key) for row in figure.rows] == best.tolist()
    for row, id in zip(figure.rows, best):
        assert row.values[0] == pytest.approx(p[id], abs=PASSED)
        assert row.texts == (whole_percent(row.values[0]),)
        assert row.label == model.labels([int(id)])[0]
    assert panel.finding == "For this place the model would write “it”, or else “he”."
    assert figure.hint.startswith("The word is hidden from the model.")


def test_a_character_of_several_tokens_stands_once_in_the_sentence() -> None:
    text = "Die *Ärztin* told Zoë that it wasn’t “cold” 🍲."
    panel = predictions.cloze(Run("encoder", text))
    assert sentence(cloze(panel)).replace("_", "it") == text


@pytest.mark.parametrize("text", [WAITER, "They were happy.", "The nurse told the surgeon."])
def test_a_second_word_is_named_from_half_of_the_first_one_on(text: str) -> None:
    n = len(loaded("encoder").record(text).streams[0].tokens)
    for token in range(1, n - 1):
        panel = predictions.cloze(Run("encoder", text), token=token, hidden=f"{token}")
        rows = cloze(panel).rows
        assert len(rows) in (1, 5)
        values = [row.values[0] for row in rows]
        assert values == sorted(values, reverse=True)
        has_other = len(rows) > 1 and values[1] >= 0.5 * values[0]
        assert ("or else" in panel.finding) == has_other, panel.finding
        assert len(rows) == 5 or values[0] > 0.9


def test_the_word_that_was_hidden_is_told_where_it_is_no_bar() -> None:
    text = "The waiter brought the doctor but it was cold."
    figure = cloze(predictions.cloze(Run("encoder", text), token=5, hidden="5"))
    assert "doctor" not in [row.label for row in figure.rows]
    (place,) = re.findall("The hidden word is “doctor”, the model’s ([\\d,]+)th guess", figure.note)
    hidden = loaded("encoder").record(text, (HideToken(5),))
    logits = loaded("encoder").logits(hidden, "encoder", 5)
    likelier = (logits > logits[loaded("encoder").first_token("doctor")[0]]).sum()
    assert int(place.replace(",", "")) == likelier + 1
    assert (
        "hidden word"
        not in cloze(predictions.cloze(Run("encoder", WAITER), token=IT, hidden="7")).note
    )


def test_of_the_next_word_the_box_stands_behind_what_is_read() -> None:
    text = "The cat sat on the mat"
    tokens = loaded("decoder").record(text).streams[0].tokens
    end = cloze(predictions.cloze(Run("decoder", text)))
    assert sentence(end) == f"{text} _" and not any(end.pale)
    at = tokens.index("cat")
    inside = cloze(predictions.cloze(Run("decoder", text), token=at))
    assert sentence(inside) == "The cat _ sat on the mat"
    read = dict(zip(inside.tokens, inside.pale))
    assert read["sat"] and read["mat"] and not read["The"] and not read["cat"]
    first = cloze(predictions.cloze(Run("decoder", text), token=0))
    assert sentence(first) == f"_ {text}", "behind the token that begins every text"


def test_whole_words_hang_there_with_the_probability_of_all_their_pieces() -> None:
    text = (
        "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks"
        " fluent"
    )
    run = Run("decoder", text)
    on = predictions.prediction_at(run, None)
    rows = cloze(predictions.cloze(run)).rows
    nepali = next(each for each in on.whole.values() if each.word.endswith("Nepali"))
    assert {row.label: row.values[0] for row in rows}["Nepali"] == nepali.own
    assert not [row.label for row in rows if "…" in row.label or row.label.startswith(CONTINUES)]


def test_several_words_and_typed_masks_are_boxes() -> None:
    run = Run("encoder", WAITER)
    several = cloze(predictions.cloze(run, token=IT, hidden="2.5.7"))
    assert sentence(several) == "The _ brought the _ but _ was cold."
    assert len(several.blanks) == 3 and several.selected == several.blanks[2]
    typed = cloze(predictions.cloze(Run("encoder", "The [MASK] sat on the [MASK].")))
    assert sentence(typed) == "The _ sat on the _." and typed.selected == typed.blanks[0]
    seen = predictions.cloze(run, token=IT, hidden="none")
    assert sentence(cloze(seen)) == WAITER and "sees the word" in cloze(seen).hint


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_long_text_is_shown_around_its_box(model: str) -> None:
    text = "The old man fed the birds because they were hungry. " * 45
    for token in (3, 200, 400):
        figure = cloze(predictions.cloze(Run(model, text), token=token))
        shown = [each for each in figure.tokens if each != "…"]
        assert len(shown) <= MOST_LARGE + 1 and "tokens" in figure.note
        assert figure.selected in figure.blanks


@pytest.mark.parametrize("text", [*AWKWARD.values(), *HOSTILE.values()])
@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_of_any_text_the_box_is_among_what_is_drawn(model: str, text: str) -> None:
    try:
        figure = cloze(predictions.cloze(Run(model, text)))
    except ValueError:
        return  # a text without a word to hide
    assert 0 <= figure.selected < len(figure.tokens) <= MOST_LARGE + 3
    assert len({*map(len, (figure.tokens, figure.spaced, figure.names, figure.keys))}) == 1


def test_a_press_in_the_sentence_and_on_a_bar() -> None:
    shown = screen({"tab": "word", "text": WAITER, "token": f"{IT}"})
    other = shown.after("predictions.cloze", {"token": "5"})
    assert (other["token"], other["hidden"]) == ("5", "5")
    figure = cloze(screen(other).panel("predictions.cloze"))
    assert sentence(figure) == "The waiter brought the _ but it was cold."
    bar = screen(shown.after("predictions.cloze", {"word": figure.rows[1].key}))
    assert bar.chosen["token"] == IT and bar.chosen["word"] == int(figure.rows[1].key)


@needs_smollm2
def test_of_a_chat_the_template_is_not_drawn() -> None:
    figure = cloze(predictions.cloze(Run("smollm2", "user: What is the capital of Nepal?")))
    assert sentence(figure) == "What is the capital of Nepal? _"


def test_the_end_of_a_text_is_said() -> None:
    whole = predictions.cloze(Run("encoder", "It was [MASK]."))
    assert "end the text" not in whole.finding
    on = predictions.prediction_at(Run("decoder", "The end."), None)
    end = next(iter(loaded("decoder").tokenizer.eos_ids))
    other = predictions.Candidate(on.words[1].id, "he", 0.3)
    ends = [predictions.Candidate(end, "ends here", 0.4), other]
    assert (
        predictions.headline(on, ends) == "Here the model would end the text, or else write “he”."
    )
    assert predictions.headline(on, [other, ends[0]]).endswith("or else end the text.")
