"""Numbers and names that the translator has not learned are copied: each once and as it stands, in
the greedy translation and in a beam search; all other sentences are translated as without it."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from app_harness import page_at
from conftest import read_once
from ordinary_sentences import SENTENCES
from tolerances import SUMMED

from explorer.panels import translation
from models.contract.results import Sampling, SeededSampling
from models.network import generation, own_model
from models.runtime.run import Run
from models.tokens import unknown_words

# With the words that are copied marked.
UNKNOWN = (
    "I have <47> apples.",
    "He lives in <Zanzibar>.",
    "Mr. <Kowalczyk> came in <2019>.",
    "The train leaves at <8:45>.",
    "She was born in <1987>.",
    "It costs <365> dollars.",
    "<Zanzibar> is an island.",
    "Call me at <555-2368>.",
    "Have you ever been to <Kathmandu>?",
    "They moved to <Saskatchewan> last year.",
    "The meeting is on the <26> of May.",
    "Our flight is number <7714>.",
    "We visited <Machu> <Picchu> in <2014>.",
    "You can see <Kilimanjaro> from here.",
    "I was born on the <27> of October <1993>.",
    "He paid <2,350> euros for his car.",
    "I saw <Beatrice> and <Leopold> at the party.",
    "The king of <Lesotho> is very old.",
    "Let us meet in front of <Carrefour> at <6:35>.",
    "They are from <Uzbekistan>.",
)


@pytest.fixture(scope="module")
def model() -> own_model.OwnModel:
    return read_once("translator")


def unknown(model: own_model.OwnModel, text: str) -> list[str]:
    source, _ = own_model.frame(model, text)
    known = unknown_words.known_words(model.card.name)
    return [one.word for one in unknown_words.unknown_words(text, source, known)]


def times(word: str, text: str) -> int:
    """How often a word stands in a text, not as a part of another."""
    return len(re.findall(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text))


def test_a_word_is_learned_from_texts_by_what_it_is() -> None:
    texts = ["The dog saw Anna.", "Anna has 20 cats.", "Bunnies hop.", *["It is 8:45."] * 5]
    known = unknown_words.training_words([*texts, "He met Bob on the 20."])
    assert set("the dog saw anna has cats bunnies hop it is 8:45 he met on".split()) == set(known)


@pytest.mark.slow
@pytest.mark.parametrize("n_beams", [0, 4])
def test_an_unknown_word_stands_once_and_as_it_is_in_the_output(
    n_beams: int, model: own_model.OwnModel
) -> None:
    words, kept = 0, []
    for marked in UNKNOWN:
        text, names = re.sub("[<>]", "", marked), re.findall("<(.*?)>", marked)
        assert unknown(model, text) == names
        if n_beams:
            *_, last = model.beams(text, n_beams)
            output = model.tokenizer.text(last[0].ids)
        else:
            output = model.record(text).target
        words += len(names)
        kept += [name for name in names if times(name, output) == 1]
    assert len(kept) >= 0.9 * words, set(kept)


@pytest.mark.slow
def test_other_sentences_are_translated_as_without_copying(model: own_model.OwnModel) -> None:
    texts = [text for text in SENTENCES if text.isascii() and not unknown(model, text)]
    assert len(texts) > 30
    for text in texts[::5]:
        source, _ = own_model.frame(model, text)
        memory = own_model.memory_of(model, source)
        plain = generation.greedy(model.network, model.tokenizer, memory)
        assert list(model.record(text).streams[1].ids[1:]) == plain


def test_words_that_were_learned_are_not_copied(model: own_model.OwnModel) -> None:
    for text in (
        "Russia and Brazil are far away, on Tuesdays at 2:30.",
        "Flabby arms embarrassed the stubborn bachelor. Don't go!",
        "I am 3 years old, and she is 20.",
        "ON MONDAY I LOVE PIZZA.",
        "It is the 13th of April, a Thursday.",
        "",
    ):
        assert not unknown(model, text)


def test_a_model_without_a_list_of_words_copies_nothing() -> None:
    assert unknown_words.known_words("reverse") is None
    model = read_once("reverse")
    source, _ = own_model.frame(model, "Zanzibar 1789")
    assert own_model.copier_of(model, "Zanzibar 1789", source) is None


def test_a_copied_word_is_set_apart_and_follows_an_apostrophe(
    model: own_model.OwnModel,
) -> None:
    assert " $312 " in model.record("Tom bet $312 on the game.").target.replace("312", "$312")
    assert "d'Uzbekistan" in model.record("They are from Uzbekistan.").target


def test_a_drawn_translation_copies_too_and_keeps_other_probabilities(
    model: own_model.OwnModel,
) -> None:
    text = "He lives in Zanzibar."
    *_, (drawn,) = model.beams(text, SeededSampling(Sampling(temperature=0.5), 1))
    assert times("Zanzibar", model.tokenizer.text(drawn.ids)) == 1
    memory = own_model.memory_of(model, own_model.frame(model, text)[0])
    ids = torch.tensor([[model.tokenizer.bos, *drawn.ids[:-1]]])
    with torch.inference_mode():
        own = model.network.logits(model.network.decode(ids, memory)[0]).double().log_softmax(-1)
    own_logprobs = own[range(len(drawn.ids)), list(drawn.ids)].numpy()
    copied = np.array(drawn.logprobs) == 0
    assert copied.sum() >= 4, "its pieces count as probability 1"
    assert np.allclose(np.array(drawn.logprobs)[~copied], own_logprobs[~copied], atol=SUMMED)


@pytest.mark.slow
def test_it_is_said_which_words_were_copied() -> None:
    app = page_at("translate", model="translator", text="I met Xavier in Ouagadougou.")
    assert not app.exception
    (said,) = [each.value for each in app.caption if "copied" in each.value]
    assert said.startswith("“Xavier”, “Ouagadougou” are copied from the source")
    run = Run("translator", "I met Xavier in Ouagadougou.")
    assert said in " ".join(translation.alignment(run).caption)
    assert "probability 1" in " ".join(translation.hypotheses(run, 2).caption)
    typed = Run("translator", run.text, target="J'ai rencontré Xavier.")
    for other in (typed, Run("translator", "The cat sat on the mat.")):
        assert "copied" not in " ".join(translation.alignment(other).caption)
