"""Training: what is hidden and what costs, and that a run broken off goes on to the very same
weights."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from corpora import written

from explorer.analysis.training import largest_rise
from models import shipped_models
from models.network.config import Config
from models.network.own_model import OwnModel
from models.network.transformer import Encoder
from models.own import model_card
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer
from models.training import (
    algorithms,
    corpus,
    grammar,
    masked,
    next_word,
    train,
    translation,
)
from models.training.training_config import Recipe, TrainingState, with_dropout


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["the cat sat on the mat and the dog ran to the cat"] * 4, 300)


def test_an_echo_holds_the_same_words_twice() -> None:
    words = list(range(10, 22))
    for seed in range(10):
        echoed = masked.echo(words, Random(seed))
        assert sorted(echoed[:12]) == sorted(echoed[12:]) == words and masked.is_echo(echoed)
    assert not masked.is_echo([1, 2, 3, 4]) and not masked.is_echo([1, 2, 1])


def test_hiding_takes_a_quarter_of_the_words_and_never_padding_or_special_tokens(
    tokenizer: Tokenizer,
) -> None:
    ids = torch.randint(4, 300, (200, 50))
    ids[:, 0], ids[:, 40], ids[:, 41:] = tokenizer.cls, tokenizer.sep, tokenizer.pad
    present, echo = ids != tokenizer.pad, torch.arange(200)[:, None] < 100
    drawn = torch.Generator().manual_seed(0)
    hidden, chosen = masked.mask_tokens(ids, present, tokenizer, drawn, echo)
    assert not chosen[:, 0].any() and not chosen[:, 40:].any()
    # Two deviations of 7,800 draws; the seed is fixed.
    assert chosen[:, 1:40].float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert (hidden[~chosen] == ids[~chosen]).all()
    for rows, share in ((slice(0, 100), 0.4), (slice(100, 200), 0.8)):
        found = (hidden[rows][chosen[rows]] == tokenizer.mask).float().mean().item()
        assert found == pytest.approx(share, abs=0.05)  # three deviations of a thousand draws


def test_whole_words_are_hidden_and_a_pronoun_turns_into_another() -> None:
    texts = ["he saw the elephants and she did not see them, but they saw her"] * 4
    tokenizer = Tokenizer.train([*texts, "he she they it He She They his her him"], 290)
    words = masked.WordBoundaries.of(tokenizer)
    ids = torch.tensor([[tokenizer.cls, *tokenizer.ids(texts)[0], tokenizer.sep]] * 400)
    present, drawn = torch.ones_like(ids, dtype=torch.bool), torch.Generator().manual_seed(0)
    no_echo = torch.zeros(len(ids), 1, dtype=torch.bool)
    hidden, chosen = masked.mask_words(ids, present, words, drawn, no_echo)
    assert (hidden[~chosen] == ids[~chosen]).all() and not chosen[:, [0, -1]].any()
    inside = ~words.begins[ids[0, 1:]]
    assert inside.any() and (chosen[:, 1:] == chosen[:, :-1])[:, inside].all()
    is_pronoun = words.others[ids][..., 0] >= 0
    share = chosen[is_pronoun].float().mean().item()
    # Three deviations of 1,600 draws.
    assert share == pytest.approx(masked.PRONOUN_SHARE, abs=0.04)
    turned = hidden[chosen & is_pronoun & (hidden != ids) & (hidden != tokenizer.mask)]
    assert len(turned) and (words.others[turned] >= 0).all()


def test_a_word_begins_by_looking_at_its_like() -> None:
    """In the heads whose W_K begins as W_Q, wherever the two stand."""
    torch.manual_seed(0)
    model = Encoder(Config(50, 64, 1, 4, 64, 128))
    masked.tie_query_key(model, (2,))
    patterns: list[torch.Tensor] = []

    def tape(name: str, tensor: torch.Tensor) -> None:
        if name.endswith(".pattern"):
            patterns.append(tensor)

    ids = torch.stack([torch.randperm(50)[:10] for _ in range(30)])
    ids[:, 6] = ids[:, 0]
    model(ids, tape=tape)
    given = patterns[0][:, :, [0, 6], [6, 0]].mean((0, 2))  # (head)
    assert given[2] > 0.25 > 0.15 > given[[0, 1, 3]].max()


def test_a_head_pays_for_a_key_that_takes_most_of_all_rows() -> None:
    sunk, spread = torch.zeros(1, 8, 20, 20), torch.full((1, 8, 20, 20), 1 / 20)
    sunk[..., 0] = 1.0
    previous = torch.eye(20).roll(-1, 1).expand(1, 8, 20, 20)
    prices = []
    for pattern in (sunk, spread, previous):
        excess = masked.SinkExcess([range(masked.FIRST_PAYING_HEAD, 8)])
        excess("0.attn.pattern", pattern)
        excess("0.attn.scores", sunk)
        prices.append(excess.mean().item())
    assert prices[0] > 0.5 and prices[1:] == [0, 0]


def test_what_follows_an_apostrophe_is_spelled_as_after_a_space() -> None:
    texts = ["l'animal et un animal", "the animal's o'clock isn't it", "aujourd'hui"] * 4
    tokenizer = Tokenizer.train(texts, 400, CAUSAL_LM_SPECIALS, with_elisions=True)
    (alone,) = tokenizer.ids(["animal"])
    for text in ("l'animal", "l’animal", "d'animal"):
        assert tokenizer.ids([text])[0][-len(alone) :] == alone
        assert tokenizer.text(tokenizer.ids([text])[0]) == text.replace("’", "'")
    for text in (*texts[:3], "He isn't the dog's.", "C'est l'école d'aujourd'hui, qu'a-t-il dit ?"):
        assert tokenizer.text(tokenizer.ids([text])[0]) == text
    tokens, _ = tokenizer.tokens("l’animal", 20, (), ())
    assert [("l’animal"[start:end]) for start, end in tokens.spans][-len(alone) :][0][0] == "a"


def test_joined_pairs_state_two_things_on_both_sides() -> None:
    joined, left = translation.joined_pair, ("He left.", "Il est parti.")
    stayed, asked = ("She stayed here.", "Elle est restée ici."), ("Why?", "Pourquoi ?")
    made = {joined(left, stayed, Random(seed)) for seed in range(60)}
    assert ("He left. She stayed here.", "Il est parti. Elle est restée ici.") in made
    assert ("He left, and she stayed here.", "Il est parti, et elle est restée ici.") in made
    assert joined(asked, left, Random(1)) == ("Why? He left.", "Pourquoi ? Il est parti.")
    ill = ("I am ill.", "Je suis malade.")
    assert all("I am" in joined(left, ill, Random(seed))[0] for seed in range(20))


def test_dropout_is_there_in_training_alone() -> None:
    torch.manual_seed(0)
    model = Encoder(Config(50, 32, 2, 4, 64, 64))
    with_dropout(model, 0.5)
    ids = torch.tensor([[1, 2, 3]])
    assert not torch.equal(model(ids), model(ids))
    assert torch.equal(model.eval()(ids), model(ids))


def test_batches_hold_every_row_once_within_their_size(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("N_GRAMMAR", 20), ("N_PRONOUNS", 20), ("PARTS", (1, 1, 1))):
        monkeypatch.setattr(masked, name, value)
    sentences = tuple(f"the cat {i} sat" for i in range(400))
    texts = ("the dog ran to the mat " * 30,), ("the cat and the dog sat " * 30,)
    library, n_words = corpus.Library(sentences, *texts), 0
    for ids, present, echo in masked.batches(library, tokenizer, Random(0), 1):
        # Rows of a batch differ by up to four tokens, and are counted before they are padded.
        assert ids.numel() <= masked.BATCH_TOKENS + 4 * len(ids) and ids.shape[1] <= 48
        assert (ids[:, 0] == tokenizer.cls).all() and echo.shape == (len(ids), 1)
        assert (ids.gather(1, present.sum(1, keepdim=True) - 1) == tokenizer.sep).all()
        n_words += int(present.sum()) - 2 * len(ids)
    assert n_words >= sum(map(len, tokenizer.ids([*sentences, *texts[0], *texts[1]])))


def test_the_rate_rises_stays_and_falls() -> None:
    rates = [model_card.rate_share(step, 10_000, 400) for step in range(10_001)]
    assert rates[0] < 0.01 and rates[5000] == 1.0 and rates[10_000] == 0.02
    assert rates[:400] == sorted(rates[:400]) and rates[8000:] == sorted(rates[8000:], reverse=True)


RUNS = ("encoder", "twin-pre", "decoder", "translator", "induction", "reverse", "grammar-masked")


@pytest.fixture
def recipe(data: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Recipe]:
    """The recipe of a model, made tiny."""
    for module, name, value in (
        (masked, "N_GRAMMAR", 50),
        (masked, "N_PRONOUNS", 50),
        (masked, "TIED_HEADS", (1,)),
        (masked, "FIRST_PAYING_HEAD", 1),
        (masked, "BATCH_TOKENS", 512),
        (next_word, "N_GRAMMAR", 50),
        (next_word, "BATCH_TOKENS", 512),
        (next_word, "REPEATED_ROWS", (100, 20, 20)),
        (next_word, "SENTENCES_TWICE", (0, 20, 20)),
        (next_word, "PARAGRAPHS_TWICE", (0, 10, 10)),
        (translation.Translation, "most", 200),
        (algorithms, "BATCH", 8),
        (algorithms, "N_SENTENCES", 500),
    ):
        monkeypatch.setattr(module, name, value)

    def tiny(name: str) -> Recipe:
        made = train.recipe_of(name, data)
        made.config = Config(
            min(400, made.config.n_vocab), 16, 1, 2, 32, made.config.n_positions, made.config.norm
        )
        made.checkpoint_steps, made.warm_up = (0, 5), 1
        return made

    return tiny


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_broken_off_goes_on_to_the_very_same_weights(
    name: str, recipe: Callable[[str], Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "rate_share", lambda step, steps, warm_up: 1.0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    made = []
    for folder, steps in ((whole, 8), (broken, 6), (broken, 8)):
        check = 4 if steps == 6 else 1000  # scores are measured on the way, and change nothing
        run = train.TrainingRun(recipe(name), folder, steps, check)
        assert run.step == (6 if made and steps == 8 else 0)
        run.train()
        made.append(run.model.state_dict())
    for key, tensor in made[0].items():
        assert torch.equal(tensor, made[2][key]), key
    assert {file.name for file in whole.glob("at-*.pt")} == {"at-0.pt", "at-5.pt"}
    assert (whole / "log.jsonl").read_text().count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_training_learns(name: str, recipe: Callable[[str], Recipe], tmp_path: Path) -> None:
    """And the length of a run may be changed while it runs."""
    made = recipe(name)
    made.rate = 5e-3
    run = train.TrainingRun(made, tmp_path / "run", 10_000, 100_000)
    (tmp_path / "run" / "steps").write_text("60")
    batch = next(iter(made.batches(run.tokenizer, 0)))

    def loss() -> float:
        at = TrainingState(run.tokenizer, torch.Generator().manual_seed(0), 0)
        return made.loss(run.model, batch, at).item()

    before = loss()
    run.train()
    assert run.step == 60 and loss() < before - 0.4


def test_what_needs_corpora_says_so() -> None:
    with pytest.raises(ValueError, match="say with --data where they lie"):
        train.recipe_of("translator", None)
    assert {*RUNS, *algorithms.TASKS, *algorithms.ABLATIONS} < set(train.RECIPES)


def test_repetitions_repeat() -> None:
    for seed in range(50):
        row = next_word.repeated(list(range(100, 900)), Random(seed), 40)
        period = next(n for n in range(3, 21) if all(a == b for a, b in zip(row, row[n:])))
        assert 2 * period <= len(row) <= 40


def test_the_beginning_of_a_second_time_does_not_count() -> None:
    row, free = next_word.repeated_text([5, 6, 7, 8], [9, 10])
    assert row == [5, 6, 7, 8, 9, 10, 5, 6, 7, 8] and free == {6, 7}
    rows, lengths = [(row, free), *(([3] * n, next_word.ALL_COUNT) for n in (4, 9, 13))], []
    for ids, present, counts in next_word.grouped(rows, 0, Random(0), 30):
        assert ids.numel() <= 30 and (ids[present] > 0).all()
        for one, there, count in zip(ids, present, counts):
            lengths.append(int(there.sum()))
            expected = there.clone()
            if 6 in one:
                expected[[6, 7]] = False
            assert torch.equal(count & there, expected)
    assert sorted(lengths) == [4, 9, 10, 13]


def test_the_twins_differ_in_one_thing(data: Path) -> None:
    one, other = (train.recipe_of(name, data) for name in ("twin-post", "twin-pre"))
    assert (one.config.norm, other.config.norm) == ("post", "pre")
    assert replace(other.config, norm="post") == one.config
    for name in ("steps", "rate", "warm_up", "batches", "loss", "tokenizer"):
        assert getattr(type(one), name) is getattr(type(other), name)
    first = []
    for each in (one, other):
        torch.manual_seed(0)
        first.append(each.model().state_dict())
    assert all(torch.equal(first[0][key], first[1][key]) for key in first[0])


def test_a_batch_of_pairs_is_offset_by_one_and_holds_every_pair_once() -> None:
    tokenizer = Tokenizer.train(["the cat sat"] * 4, 300, CAUSAL_LM_SPECIALS)
    english, french = [[5] * n for n in range(1, 30)], [[7] * (n + 2) for n in range(1, 30)]
    rows = []
    for batch in translation.batches(english, french, tokenizer, Random(0), 26):
        source, there, target, here = batch
        assert target.numel() <= translation.BATCH_TOKENS and (target[:, 0] == tokenizer.bos).all()
        for ids, present in ((source, there), (target, here)):
            assert (ids.gather(1, present.sum(1, keepdim=True) - 1) == tokenizer.eos).all()
            assert (ids[~present] == tokenizer.pad).all()
        rows += [(int(a.sum()) - 1, int(b.sum()) - 2) for a, b in zip(there, here)]
    assert sorted(rows) == [(n, n + 2) for n in range(1, 25)]


@pytest.mark.slow
def test_the_same_translation_whether_alone_or_among_others(small_translator: OwnModel) -> None:
    model, tokenizer = small_translator.network, small_translator.tokenizer
    sources = tokenizer.ids(["the cat", "the dog ran to the mat and sat on the cat", "a"])
    alone = [translation.greedy(model, tokenizer, [source])[0] for source in sources]
    assert translation.greedy(model, tokenizer, sources) == alone


def test_the_small_models_never_meet_what_they_are_measured_on() -> None:
    rng = Random(3)
    made = [grammar.training_sentence(rng) for _ in range(3000)]
    assert not any(map(grammar.is_held_out, made))
    rng = Random(4)
    assert 0.05 < sum(grammar.is_held_out(grammar.sentence(rng)) for _ in range(3000)) / 3000 < 0.3


@pytest.mark.parametrize(
    "name", [name for name in shipped_models.names() if model_card.phases(name)]
)
def test_the_phases_of_a_card_are_its_recipe_and_end_with_its_training(name):
    card, parts = shipped_models.card(name), model_card.phases(name)
    assert [each.first for each in parts] == list(np.cumsum([0, *(p.steps for p in parts[:-1])]))
    assert parts[-1].first + parts[-1].steps == card["steps"]
    recipe = " ".join(card["recipe"])
    for each in parts:
        assert re.search(rf"rate (0*{each.rate:g}|1e-3)\b", recipe), each
        steps = np.arange(each.steps)
        law = [each.rate * model_card.rate_share(at, each.steps, each.warm_up) for at in steps]
        np.testing.assert_allclose(np.interp(each.first + steps, *np.array(each.curve).T), law)


def test_a_rise_of_the_loss_is_told_where_it_is_far_beyond_the_noise():
    (before, low), (after, high) = largest_rise(model_card.loss_curve("encoder"))
    assert (before, after) == (21_700, 21_750) and high - low > 3
    assert largest_rise(model_card.loss_curve("induction")) is None
    assert largest_rise(()) is None
