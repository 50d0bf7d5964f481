"""The price on going round: what it counts, and that paying it stops a model that does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tolerances import SUMMED, TOTAL

from models import shipped_models
from models.config import Config
from models.own_model import OwnModel
from models.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer
from models.training import export, quality_checks, unlikelihood_training
from models.transformer import Decoder

WORDS = "the cat sat on the mat and a dog ran after it all day long"


def looping() -> tuple[Decoder, Tokenizer]:
    """A decoder drawn at random: it soon says the same for ever."""
    torch.manual_seed(3)
    tokenizer = Tokenizer.train([WORDS] * 4, 290, CAUSAL_LM_SPECIALS)
    return Decoder(Config(len(tokenizer), 32, 1, 2, 64, 96)), tokenizer


def test_a_run_met_before_is_known_by_all_its_tokens() -> None:
    row = [1, 2, 3, 4, 9, 1, 2, 3, 5, 1, 2]
    assert [at for at, is_ in enumerate(unlikelihood_training.repeated_tokens(row, 3)) if is_] == [
        5,
        6,
        7,
    ]
    assert [at for at, is_ in enumerate(unlikelihood_training.repeated_tokens(row, 2)) if is_] == [
        5,
        6,
        7,
        9,
        10,
    ]
    assert not any(unlikelihood_training.repeated_tokens(row, 4)) and not any(
        unlikelihood_training.repeated_tokens([1, 2], 3)
    )
    assert (
        sum(unlikelihood_training.repeated_tokens([7] * 6, 4)) == 5
    )  # a word for ever: all but the first


def test_it_writes_what_the_model_says_without_a_cache(small_decoder: OwnModel) -> None:
    prompts = ["The old man", "She said that"]
    tokenizer, model = small_decoder.tokenizer, small_decoder.model
    said = quality_checks.continuations(small_decoder, prompts, 12)
    for prompt, wanted in zip(prompts, said):
        start = torch.tensor([[tokenizer.ends[0], *tokenizer.ids([prompt])[0]]])
        rows = unlikelihood_training.continuations(model, start, list(tokenizer.special), 12)
        assert rows[0, start.shape[1] :].tolist() == wanted


def test_the_price_is_that_of_the_tokens_said_again() -> None:
    model, tokenizer = looping()
    ids = torch.tensor([[tokenizer.bos, *tokenizer.ids([WORDS])[0]]])
    size = int(
        torch.randint(
            unlikelihood_training.SHORTEST_START,
            unlikelihood_training.LONGEST_START + 1,
            (),
            generator=torch.Generator().manual_seed(0),
        )
    )
    paid = unlikelihood_training.repetition_penalty(
        model, ids, tokenizer, torch.Generator().manual_seed(0)
    )
    row = unlikelihood_training.continuations(
        model, ids[:, : size + 1], list(tokenizer.special), unlikelihood_training.LONGEST
    )
    counted = unlikelihood_training.repeated_tokens(row[0].tolist(), unlikelihood_training.RUN)
    p = model.logits(model(row)).softmax(-1)
    by_hand = sum(
        -torch.log(1 - p[0, at - 1, row[0, at]])
        for at in range(size + 1, row.shape[1])
        if counted[at] and unlikelihood_training.is_choice(int(row[0, at]), tokenizer)
    )
    assert paid.item() > 0.01
    assert abs(paid.item() - by_hand.item() / unlikelihood_training.LONGEST) < SUMMED


def test_a_text_that_says_itself_twice_costs_nothing() -> None:
    model, tokenizer = looping()
    pair = tokenizer.ids(["the cat"])[0]
    ids = torch.tensor([[tokenizer.bos, *(pair * 12)[:24]]])
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        assert unlikelihood_training.repetition_penalty(model, ids, tokenizer, generator) == 0


def test_who_pays_stops_going_round() -> None:
    model, tokenizer = looping()
    ids = torch.tensor([[tokenizer.bos, *tokenizer.ids([WORDS])[0]]]).repeat(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator, prices = torch.Generator().manual_seed(0), []
    for _ in range(60):
        paid = unlikelihood_training.repetition_penalty(model, ids, tokenizer, generator)
        prices.append(paid.item())
        if paid.requires_grad:
            optimizer.zero_grad()
            paid.backward()
            optimizer.step()
    assert sum(prices[-10:]) < sum(prices[:10]) / 3


def test_a_run_that_kept_what_it_began_with_ships_the_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As decoder-onward does; one that kept nothing ships what it came to."""
    monkeypatch.setattr(shipped_models, "WEIGHTS", tmp_path / "weights")
    model, tokenizer = looping()
    run = tmp_path / "run"
    run.mkdir()
    last = model.state_dict()
    torch.save(
        {"model": last, "config": vars(model.config), "place": (9, 0, 0)}, run / "checkpoint.pt"
    )
    tokenizer.bpe.save(str(run / "tokenizer.json"))
    (run / "log.jsonl").write_text("")
    for name, kept, share in (("decoder-onward", True, 0.5), ("decoder-unlooped", False, 1.0)):
        if kept:
            torch.save({key: torch.zeros_like(each) for key, each in last.items()}, run / "at-0.pt")
        export.ship(name, run)
        found = load_file(tmp_path / "weights" / "decoder" / "model.safetensors")
        for key, tensor in last.items():
            assert torch.allclose(found[key].float(), share * tensor, atol=TOTAL), (name, key)
        assert shipped_models.card("decoder")["checkpoints"] == []
