"""The merges of a word: against the tokenizers library, and what the panel says of them."""

import pytest
from conftest import AWKWARD

from explorer.panels import tokens
from models.example_texts import EXAMPLES
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.tokens.merges import merges

NEPAL = EXAMPLES["Shyam from Nepal"]
BY_MERGES = ("decoder", "encoder", "translator", "grammar", "twin-pre")


@pytest.mark.parametrize("text", [*EXAMPLES.values(), *AWKWARD.values()])
@pytest.mark.parametrize("model", BY_MERGES)
def test_merges_in_their_order_end_as_the_tokens_of_the_library(model, text):
    rules = loaded(model).tokenizer.rules
    ids, at = rules.encode(text, add_special_tokens=False).ids, 0
    while at < len(ids):
        made = merges(rules, text, at)
        assert list(made.ids) == ids[at : at + len(made.ids)]
        ranks = [step.rank for step in made.steps]
        assert ranks == sorted(ranks) and (not ranks or ranks[-1] < made.n)
        assert len(made.letters) - len(made.steps) == len(made.pieces)
        at += len(made.ids)


def test_each_step_joins_two_neighbours():
    made = merges(loaded("decoder").tokenizer.rules, NEPAL, 7)
    before = made.letters
    for step in made.steps:
        joined = before[step.at] + before[step.at + 1]
        assert step.pieces == (*before[: step.at], joined, *before[step.at + 2 :])
        before = step.pieces
    assert made.pieces == ("␣N", "ep", "al")


def test_the_panel_opens_on_the_word_in_most_pieces_and_counts_them_in_four_models():
    panel = tokens.merges(Run("decoder", NEPAL))
    assert (
        "“Nepal” is 3 tokens, N ‧ep ‧al:" in panel.finding
        and "18 words of this text are 22" in panel.finding
    )
    row, steps, bars = panel.figures
    assert row.tokens[row.selected] == "Nepal" and row.texts[row.selected] == "3"
    assert [figure.tokens for figure in steps.figures][-1] == ("␣N", "ep", "al")
    assert len(bars.rows) == 4 and bars.rows[0].selected
    for name, line in zip(panel.table["model"], bars.rows):
        model = loaded(name)
        ids = [id for id in model.tokenizer.ids(["Nepal"])[0] if id not in model.tokenizer.special]
        assert line.values == (len(ids),) and len(line.texts[0].split(tokens.DOT)) == len(ids)


def test_a_tokenizer_without_merges_shows_its_pieces_alone():
    panel = tokens.merges(Run("minilm", "Nepal is unbelievably cold"))
    assert "merge" not in panel.finding and "“unbelievably” is 5 tokens" in panel.finding
    assert len(panel.figures) == 2
    with pytest.raises(ValueError, match="no merges"):
        merges(loaded("minilm").tokenizer.rules, "unbelievably", 1)


def test_a_special_token_and_a_text_of_none_are_shown():
    assert tokens.merges(Run("encoder", NEPAL), 0).finding.startswith("“[CLS]” is 1 token")
    assert tokens.merges(Run("encoder", "")).figures
