"""Attention transfer: two tokenizers are compared word by word, no text of the project is learned
from, and the taught heads come nearer their teacher while what lies below them stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import read_once
from corpora import unlike, written
from safetensors import safe_open
from tolerances import SUMMED

from benchmarks import names
from explorer.analysis import coreference, words
from models import shipped_models
from models.network import own_model
from models.training import attention_transfer, export, masked, train
from models.training.corpus import word_runs

TEXTS = ("The old fisherman showed Fatima a strange shell, because she loved it.", "It rained.")
needs_teacher = pytest.mark.skipif(
    shipped_models.packaged() is None, reason="all-MiniLM-L6-v2 is not installed"
)


@pytest.mark.parametrize(
    "name", ["encoder", pytest.param(attention_transfer.TEACHER, marks=needs_teacher)]
)
def test_rows_between_words_are_those_that_the_pages_show(name: str) -> None:
    model, heads = read_once(name), ((1, 3), (3, 1))
    with torch.no_grad():
        rows = attention_transfer.rows_of(model.network, model.tokenizer, model.ends, TEXTS, heads)
    for text, of_text in zip(TEXTS, rows):
        recording = model.record(text)
        grouped = words.words(recording.streams[0], text)
        pattern = recording.attention[0].pattern[[1, 3], [3, 1]][None]
        between = words.weights_between(pattern, grouped, grouped)[0]
        is_word = ~np.array(grouped.special)
        n = is_word.sum()
        assert n == len(attention_transfer.WORD.findall(text))
        special = between[:, is_word][:, :, ~is_word].sum(-1)
        expected = np.concatenate([special[..., None], between[:, is_word][:, :, is_word]], -1)
        np.testing.assert_allclose(of_text[:, :n, : n + 1].numpy(), expected, atol=SUMMED)
        assert not of_text[:, n:].any(), "rows of words that a text has not"


def test_the_divergence_counts_a_row_by_its_weight_and_by_what_is_taught() -> None:
    taught = torch.tensor([[[[0.1, 0.4], [0.5, 0.5]]], [[[0.6, 0.4], [0.0, 0.0]]]])
    weights = attention_transfer.row_weights(("Then it", "it"))
    assert weights.tolist() == [[[1, 12]], [[12, 0]]]
    rows = torch.tensor([0.2, 0.8, 0.5, 0.5, 0.6, 0.4, 0.5, 0.5]).view(2, 1, 2, 2)
    assert attention_transfer.divergence(rows, taught, weights) == 0
    even = torch.full((2, 1, 2, 2), 0.5)
    nats = [0.2 * np.log(0.4) + 0.8 * np.log(1.6), 0, 0.6 * np.log(1.2) + 0.4 * np.log(0.8)]
    wanted = np.average(nats, weights=[0.5, 12, 12])
    found = attention_transfer.divergence(even, taught, weights)
    assert found == pytest.approx(wanted, rel=SUMMED)


def test_no_text_that_models_are_measured_on_is_learned_from() -> None:
    kept_out = attention_transfer.kept_out_runs()
    files = (coreference.SENTENCES, names.PRONOUNS)
    texts = [text for file in files for text in coreference.sentences(file)]
    texts += [each.text for each in names.pronoun_sentences()] + [*names.sentences()]
    longer = [text for text in texts if word_runs(text, attention_transfer.SHORTEST)]
    assert len(longer) > 200
    assert not [
        text for text in longer if kept_out.isdisjoint(word_runs(text, attention_transfer.SHORTEST))
    ]


def test_the_hundred_sentences_are_new_and_varied() -> None:
    sentences = coreference.sentences(names.PRONOUNS)
    assert len(sentences) == 100
    others = {*coreference.sentences(), *(each.text for each in names.pronoun_sentences())}
    assert others.isdisjoint(sentences)
    assert {each.pronoun for each in sentences.values()} >= {
        *"he she it they him her them his its".split()
    }
    tokenizer = own_model.load("encoder").tokenizer
    pieces = [len(ids) for ids in tokenizer.ids([each.noun for each in sentences.values()])]
    assert 20 <= sum(n > 1 for n in pieces) <= 80
    for text, (noun, pronoun) in sentences.items():
        found = attention_transfer.WORD.findall(text)
        assert found.index(noun) < found.index(pronoun), text


@pytest.mark.slow
@needs_teacher
def test_taught_heads_come_nearer_and_what_lies_below_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a run broken off goes on to the very same weights."""
    for name, value in (("N_GRAMMAR", 50), ("N_PRONOUNS", 50), ("BATCH_TOKENS", 96)):
        monkeypatch.setattr(masked, name, value)
    monkeypatch.setattr(attention_transfer, "SENTENCES", 20)
    monkeypatch.setattr(train, "rate_share", lambda step, steps, warm_up: 1.0)
    data, some = written(tmp_path), [text.strip(".") for text in unlike(200)]
    lines = [f"{one}, because she {other}.\n" for one, other in zip(some[::2], some[1::2])]
    (data / "commonvoice_en_cc0" / "b.txt").write_text("".join(lines))
    recipe = train.recipe_of("encoder-taught", data)
    recipe.rate, texts = 1e-3, recipe.with_pronoun[:8]
    assert all(map(attention_transfer.has_pronoun, texts))
    taught, started = recipe.taught_rows(texts), attention_transfer.untaught().network.state_dict()

    def apart(model: torch.nn.Module) -> float:
        ends = own_model.ENDS["encoder"]
        with torch.no_grad():
            rows = attention_transfer.rows_of(
                model, recipe.tokenizer(), ends, texts, attention_transfer.TAUGHT
            )
        weights = attention_transfer.row_weights(texts)
        return float(attention_transfer.divergence(rows, taught, weights))

    runs = []
    for folder, steps in (("whole", 4), ("broken", 2), ("broken", 4)):
        run = train.TrainingRun(recipe, tmp_path / folder, steps, 1000)
        before = apart(run.model)
        run.train()
        runs.append(run.model)
        if folder == "whole":
            assert apart(run.model) < before - 0.1
    for key, tensor in runs[0].state_dict().items():
        assert torch.equal(tensor, runs[2].state_dict()[key]), key
        is_frozen = key.startswith(("embedding.", "layers.0.", "layers.1.attention."))
        assert torch.equal(tensor, started[key]) == is_frozen, key


@needs_teacher
def test_what_is_shipped_of_a_run_goes_on_with_the_card_and_leaves_out_what_stayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(shipped_models.folder("encoder"), tmp_path / "weights" / "encoder")
    monkeypatch.setattr(shipped_models, "WEIGHTS", tmp_path / "weights")
    before, old = attention_transfer.untaught().network, shipped_models.card("encoder")
    run = tmp_path / "run"
    state = {key: each.contiguous().clone() for key, each in before.state_dict().items()}
    run.mkdir()
    torch.save(state, run / "at-0.pt")
    state["layers.2.attention.w_q.weight"] += 0.01
    checkpoint = {"model": state, "config": vars(before.config), "place": (100, 0, 0)}
    torch.save(checkpoint, run / "checkpoint.pt")
    (run / "tokenizer.json").write_bytes(
        (shipped_models.folder("encoder") / "tokenizer.json").read_bytes()
    )
    (run / "log.jsonl").write_text('{"step": 50, "epoch": 0, "loss": 4.5}\n')
    export.ship("encoder-taught", run)
    card, first = shipped_models.card("encoder"), attention_transfer.BEFORE
    assert card["steps"] == first + 100 and card["curve"][-1] == [first + 50, 4.5]
    assert card["curve"][-2][0] == first and card["checkpoints"] == [first]
    assert [line for line in old["recipe"] if line not in card["recipe"]] == []
    with safe_open(shipped_models.folder("encoder") / shipped_models.EARLIER, "pt") as file:
        kept = {key.partition("#")[0] for key in file.keys()}
    assert kept == {f"{first}/layers.2.attention.w_q.weight"}
    there, last = (own_model.load(name).network for name in (f"encoder@{first}", "encoder"))
    for key, tensor in before.state_dict().items():
        same = torch.equal(there.state_dict()[key], last.state_dict()[key])
        assert same == (key != "layers.2.attention.w_q.weight"), key
        # 8 to 12 bits of numbers below 1
        torch.testing.assert_close(there.state_dict()[key], tensor, atol=4e-3, rtol=0)
    export.ship("encoder-taught", run)
    assert shipped_models.card("encoder") == card, "a second time it is the same"
