"""Training: what is read, what is hidden, and that a run broken off goes on as if it had not been."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from random import Random

import pytest
import torch

from models import corpus, grammar, masked, train
from models.examples import EXAMPLES, TURNED
from models.tokenizer import Tokenizer
from models.transformer import Config

BOOK = (
    "Junk\r\n*** START OF THIS PROJECT GUTENBERG EBOOK X ***\r\n\r\nCHAPTER I\r\n\r\n"
    + "".join(f"The {i} rabbits went over the hill and\r\nthey saw number {i} of the old houses there.\r\n\r\n" for i in range(40))
    + "They wanted to murder the king, which was a thing that nobody should ever read about.\r\n\r\n"
    + "*** END OF THIS PROJECT GUTENBERG EBOOK X ***\r\n\r\nLicence text that nobody should ever learn by heart, not even once.\r\n"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for pair in ("fra", "deu"):
        folder = tmp_path / f"tatoeba_{pair}"
        folder.mkdir()
        rows = "".join(f"Tom has {i} {pair} cats and Tom likes Mary.\tx\n" for i in range(300)) + "I love to eat pizza.\ty\nHe killed it.\tz\n"
        with zipfile.ZipFile(folder / f"{pair}-eng.zip", "w") as file:
            file.writestr("_about.txt", "about")
            file.writestr(f"{pair}-eng/{pair}.txt", rows)
    (tmp_path / "commonvoice_en_cc0").mkdir()
    (tmp_path / "commonvoice_en_cc0" / "a.txt").write_text("A clear sentence.\n\nA clear sentence.\n")
    (tmp_path / "gutenberg").mkdir()
    (tmp_path / "gutenberg" / "1.txt").write_text(BOOK, "utf-8")
    return tmp_path


def test_corpora_are_cleaned_split_and_free_of_presets(data: Path) -> None:
    learned, held_out = corpus.read(data)
    everything = (*learned.sentences, *held_out.sentences)
    assert len(everything) == 601 and everything.count("A clear sentence.") == 1
    assert not any("pizza" in text or "killed" in text for text in everything)
    assert not set(map(corpus.normal, learned.sentences)) & set(map(corpus.normal, held_out.sentences))
    assert held_out.sentences and all(map(corpus.is_held_out, held_out.sentences))
    assert len(learned.paragraphs) + len(held_out.paragraphs) == 40
    assert learned.paragraphs[0] == "The 0 rabbits went over the hill and they saw number 0 of the old houses there."


def test_a_name_is_replaced_by_one_name_throughout() -> None:
    names = {corpus.vary_names("Tom said Tom saw Mary.", Random(seed)) for seed in range(40)}
    assert len(names) > 10
    for text in names:
        first, _, second, _, other = text.rstrip(".").split()
        assert first == second and first in grammar.MEN and other in grammar.WOMEN
    assert corpus.vary_names("Tomorrow is fine.", Random(0)) == "Tomorrow is fine."


def test_a_missing_corpus_is_named(tmp_path: Path, data: Path) -> None:
    (data / "gutenberg" / "1.txt").unlink()
    with pytest.raises(FileNotFoundError, match="no books in"):
        corpus.read(data)


def test_no_grammar_sentence_is_a_preset() -> None:
    rng = Random(0)
    made = {corpus.normal(grammar.sentence(rng)) for _ in range(5000)}
    assert not made & set(map(corpus.normal, (*EXAMPLES.values(), *TURNED)))


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["the cat sat on the mat and the dog ran to the cat"] * 4, 300)


def test_an_echo_holds_the_same_words_twice() -> None:
    words = list(range(10, 22))
    for seed in range(10):
        echoed = masked.echo(words, Random(seed))
        assert sorted(echoed[:12]) == sorted(echoed[12:]) == words and masked.is_echo(echoed)
    assert not masked.is_echo([1, 2, 3, 4]) and not masked.is_echo([1, 2, 1])


def test_hiding_takes_a_quarter_of_the_words_and_never_padding_or_special_tokens(tokenizer: Tokenizer) -> None:
    ids = torch.randint(4, 300, (200, 50))
    ids[:, 0], ids[:, 40], ids[:, 41:] = tokenizer.cls, tokenizer.sep, tokenizer.pad
    present = ids != tokenizer.pad
    echo = torch.arange(200)[:, None] < 100
    hidden, chosen = masked.hide(ids, present, tokenizer, torch.Generator().manual_seed(0), echo)
    assert not chosen[:, 0].any() and not chosen[:, 40:].any()
    assert chosen[:, 1:40].float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert (hidden[~chosen] == ids[~chosen]).all()
    for rows, share in ((slice(0, 100), 0.4), (slice(100, 200), 0.8)):
        assert (hidden[rows][chosen[rows]] == tokenizer.mask).float().mean().item() == pytest.approx(share, abs=0.05)


def test_batches_hold_every_row_once_within_their_size(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masked, "N_GRAMMAR", 20)
    texts = corpus.Corpus(tuple(f"the cat {i} sat" for i in range(400)), ("the dog ran to the mat " * 30,))
    n_words = 0
    for ids, present, echo in masked.batches(texts, tokenizer, Random(0), 1):
        assert ids.numel() <= masked.BATCH_TOKENS and ids.shape[1] <= 48
        assert (ids[:, 0] == tokenizer.cls).all() and echo.shape == (len(ids), 1)
        assert (ids.gather(1, present.sum(1, keepdim=True) - 1) == tokenizer.sep).all()
        n_words += int(present.sum()) - 2 * len(ids)
    assert n_words >= sum(map(len, tokenizer.ids(list(texts.sentences + texts.paragraphs))))


def test_the_rate_rises_stays_and_falls() -> None:
    rates = [train.rate(step, 10_000) for step in range(10_001)]
    assert rates[0] < 0.01 and rates[5000] == 1.0 and rates[10_000] == 0.02
    assert rates[:400] == sorted(rates[:400]) and rates[8000:] == sorted(rates[8000:], reverse=True)


@pytest.mark.slow
def test_a_run_broken_off_goes_on_to_the_very_same_weights(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "N_VOCAB", 400)
    monkeypatch.setattr(masked, "N_GRAMMAR", 50)
    monkeypatch.setattr(masked, "BATCH_TOKENS", 512)
    config = Config(400, 16, 1, 2, 32, 512)

    def run(name: str, *lengths: int) -> train.Run:
        for steps in lengths:
            options = argparse.Namespace(data=data, run=tmp_path / name, steps=steps, check=1000, rate=1e-2)
            if steps != lengths[-1]:
                monkeypatch.setattr(train, "rate", lambda step, steps: 1.0)
            last = train.Run(options, config)
            last.train()
        return last

    monkeypatch.setattr(train, "rate", lambda step, steps: 1.0)
    whole, broken = run("whole", 30), run("broken", 13, 30)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, broken.model.state_dict()[name]), name
    assert (tmp_path / "whole" / "log.jsonl").read_text().count("masked_accuracy") == 1


@pytest.mark.slow
def test_training_learns(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "N_VOCAB", 400)
    monkeypatch.setattr(masked, "N_GRAMMAR", 50)
    options = argparse.Namespace(data=data, run=tmp_path / "run", steps=60, check=1000, rate=5e-3)
    torch.manual_seed(0)
    run = train.Run(options, Config(400, 32, 1, 2, 64, 512))
    before = train.held_out_scores(run.model, run.tokenizer, run.held_out)
    run.train()
    after = train.held_out_scores(run.model, run.tokenizer, run.held_out)
    assert after["held_out_loss"] < before["held_out_loss"] - 1
