"""A text without a vote: what one word reads, as lines over the sentence, in whole words."""

from __future__ import annotations

from urllib.parse import parse_qsl

import driver
import numpy as np
import pytest
from conftest import read_once
from ordinary_sentences import SENTENCES
from tolerances import STORED, SUMMED

from explorer.analysis import word_classes
from explorer.analysis.findings import word_groups
from explorer.analysis.words import merge_weights
from explorer.figures.formatting import hundredths, parse_number
from explorer.panels import attention, compare, summaries
from explorer.screens.heads import READS, VOTES, HeadOnShow
from explorer.screens.screen import screen
from models.runtime.run import Run

WITHOUT_VOTE = (
    "Dogs bark.",
    "To be or not to be",
    "Paris is the capital of cheese.",
    "The children play in the garden every day.",
    "Der Kellner brachte die Suppe, aber sie war kalt.",
    "Le petit chat dort sur la chaise parce qu'il est fatigué.",
    "Meine Mutter said: c'est la vie ... 😂",
    "😂 ok",
    "1 + 1 = 2",
)


@pytest.mark.parametrize("text", WITHOUT_VOTE)
def test_a_text_without_a_vote_opens_on_the_sentence_with_lines_between_whole_words(
    text: str,
) -> None:
    shown = screen({"tab": "heads", "text": text, "model": "encoder"})
    one = HeadOnShow.of(shown.run, shown.chosen, shown.words())
    assert one.sentence == READS and " most " in f"{one.headline} most "
    panel = next(each for each in shown.panels() if each.name == READS)
    (picture,) = panel.figures
    recording = read_once("encoder").record(text)
    groups = word_groups(recording, recording.streams[0].name)
    assert {picture.labels[each.word] for each in picture.votes} <= {*groups.labels}
    assert not any(each.startswith("·") for each in picture.labels)
    for line in picture.votes:
        at = {name: int(word) for name, word in parse_qsl(line.key)}
        head = recording.attention[0].pattern[at["layer"], at["head"]]
        row = merge_weights(head, groups, groups)[groups.of[at["token"]]]
        key = [
            each for each, label in enumerate(groups.labels) if label == picture.labels[line.word]
        ]
        assert any(hundredths(float(row[each])) == line.number for each in key)
    weights = [each.share for each in picture.votes]
    assert weights == sorted(weights, reverse=True)
    if " attends most to " in panel.finding:  # nothing gets more, no sign and no special token
        assert weights[0] == pytest.approx(row.max(), abs=STORED)
    assert ("has read English only" in panel.finding) == word_classes.holds_foreign(text, "en")


def test_a_word_that_is_pressed_keeps_the_lines_and_a_line_opens_its_head() -> None:
    text = "The waiter brought the soup but it was cold."
    shown = screen({"tab": "heads", "text": text, "token": "5"})
    one = HeadOnShow.of(shown.run, shown.chosen, shown.words())
    assert one.sentence == READS and "*soup*" in one.headline
    panel = next(each for each in shown.panels() if each.name == READS)
    opened = screen(shown.after(READS, {"address": panel.figures[0].votes[0].key}))
    assert not HeadOnShow.of(opened.run, opened.chosen, opened.words()).sentence
    back = screen({"tab": "heads", "text": text})
    assert HeadOnShow.of(back.run, back.chosen, back.words()).sentence == VOTES


@pytest.mark.parametrize("text", WITHOUT_VOTE[:5])
def test_two_models_say_of_one_word_what_it_reads(text: str) -> None:
    panel = compare.votes(Run("encoder", text))
    (picture,) = panel.figures
    assert [each.side for each in picture.votes] == [0, 1]
    labels = [picture.labels[each.word] for each in picture.votes]
    assert labels == panel.table["word"] and all(f"“{each}”" in panel.finding for each in labels)
    assert ("in both models" in panel.finding) == (labels[0] == labels[1])
    assert "vocabulary" not in panel.finding and "masked" not in panel.finding


@pytest.mark.parametrize("text", [*SENTENCES[:20], *WITHOUT_VOTE])
def test_what_all_heads_together_call_the_largest_is_the_largest_of_its_row(text: str) -> None:
    panel = summaries.aggregated(Run("encoder", text))
    matrix, bars = panel.figures
    ((row, column, _),) = matrix.marks
    others = np.delete(matrix.values[row], row) if len(matrix.rows) == len(matrix.columns) else []
    largest = matrix.values[row, column]
    assert largest == pytest.approx(np.nanmax(others), abs=SUMMED) or len(others) == 0
    alike = sum(hundredths(float(each)) == hundredths(float(largest)) for each in others)
    assert ("No token stands out" in panel.finding) == (alike > 1)
    own = matrix.rows[row]
    for each in bars.rows:
        assert each.label == own or each.values[0] <= largest + 1e-6
    assert parse_number(hundredths(float(largest))) <= 1


def test_a_text_that_holds_another_language_is_said_to_beside_the_vote() -> None:
    says = "has read English only"
    mixed = "Ich liebe dich, mon amour, but she does not know it."
    panel = attention.votes(Run("encoder", mixed))
    assert says in panel.finding and "other sentences" not in panel.figures[0].bar
    for text in SENTENCES:
        assert word_classes.holds_foreign(text, "en") == word_classes.is_foreign(text, "en")


@driver.browser_test
def test_letters_of_a_text_are_no_shortcuts_and_formulas_are_not_cut(
    visitor: driver.Visitor,
) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/?tab=weight&weight_step=Score")
    page.wait_for_selector(".formula > math")
    for width in (1440, 1024, 760):
        page.set_viewport_size({"width": width, "height": 900})
        cut = "all => all.map(each => [each.clientWidth, each.scrollWidth])"
        for seen, whole in page.locator(".formula").evaluate_all(cut):
            assert whole <= seen + 1, width
    page.evaluate("document.activeElement.blur()")
    page.keyboard.type("sleep")  # as into a field that is no longer there
    on = "document.documentElement.hasAttribute('data-headlight-presenter')"
    assert not page.evaluate(on)
    page.wait_for_timeout(1100)  # nothing was typed in the last second
    page.keyboard.press("p")
    page.wait_for_function(on)
