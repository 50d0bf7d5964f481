"""What is said of Hugging Face models that cannot be run, that predict no words, or that know the
order of their tokens in a way of their own: for each the reason that is true of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
import torch
from app_harness import panels_on
from test_hf_models_on_pages import opened, there

from explorer.wording.templates import sentences
from models.pretrained import model_files
from models.pretrained.hf_model import load
from models.runtime import registry

pytestmark = pytest.mark.slow
DEEPSEEK = {"q_lora_rank": None, "qk_rope_head_dim": 8, "head_dim": 4, "first_k_dense_replace": 2}
# A model that is built, and what must be said of it, with the remedy.
CANINE = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
BEYOND = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 500}
REFUSED: dict[str, tuple[str, dict, str]] = {
    "no embeddings": (
        "CanineModel",
        CANINE | {"intermediate_size": 48},
        "it has no table with an embedding for each token; choose",
    ),
    "more than a text": (
        "BrosModel",
        tiny.BERT,
        r"refuses a text of 7 tokens \(“You have to specify bbox”\); change its settings or choose",
    ),
    "beyond a table": (
        "MarianMTModel",
        tiny.TWO | BEYOND,
        "A token or position that the config.json of .* names lies beyond the end of its tables; ",
    ),
    "sizes": (
        "DeepseekV3ForCausalLM",
        tiny.LLAMA | DEEPSEEK,
        r"breaks off on a text of 7 tokens .* config.json \(“The size of tensor a .*”\); ",
    ),
    "settings": (
        "BertForMaskedLM",
        tiny.BERT | {"chunk_size_feed_forward": "8"},
        r"breaks off on a text of 7 tokens with the settings of its config.json \(“",
    ),
}


def classifier(folder: Path, kind: str = "Bert") -> Path:
    """A tiny classifier with three classes, saved as fine-tuning saves it."""
    torch.manual_seed(5)
    settings = {"Bert": tiny.BERT, "GPT2": {**tiny.GPT2, "pad_token_id": 0}}[kind]
    words = tiny.wordpiece if kind == "Bert" else tiny.gpt2_bytes
    return tiny.save(
        folder, f"{kind}ForSequenceClassification", {**settings, "num_labels": 3}, words
    )


@pytest.mark.parametrize("kind", REFUSED)
def test_a_model_that_does_not_run_is_refused_for_its_own_reason(kind: str, tmp_path: Path) -> None:
    name, settings, reason = REFUSED[kind]
    torch.manual_seed(1)
    tiny.save(tmp_path, name, settings, tiny.wordpiece)
    with pytest.raises(model_files.NotLoaded, match=reason) as refused:
        load(str(tmp_path), name="it")
    assert "bare text" not in str(refused.value) and str(refused.value).endswith(".")


@pytest.mark.parametrize(("way", "kind"), [("hub:", "Bert"), ("ours:", "GPT2")])
def test_a_classifier_has_a_classification_head(way: str, kind: str, tmp_path: Path) -> None:
    model = registry.load(f"{way}{classifier(tmp_path, kind)}")
    offered, recording = model.capabilities, model.record("the cat sat")
    assert offered.logits == ""
    assert offered.no_readout == "has a classification head and no readout over the vocabulary"
    stream = recording.streams[-1].name
    for question in (
        lambda: model.logits(recording, stream, 0),
        lambda: model.lens(recording, stream),
        lambda: model.attribute(recording, stream, 0, 1),
    ):
        with pytest.raises(
            ValueError, match="has a classification head and no readout over"
        ) as why:
            question()
        assert "vectors" not in str(why.value)


def test_pages_say_what_a_classifier_has_in_the_place_of_words(tmp_path: Path) -> None:
    model = f"ours:{classifier(tmp_path)}"
    there(model)
    says = "has a classification head and no readout over the vocabulary and makes no predictions"
    app = opened("word", model=model, text="the cat sat")
    assert not app.exception
    assert any(says in each.value for each in app.caption)
    app = opened("compare", model=model, text="the cat sat", compare="Model", other_model="encoder")
    assert not app.exception
    assert "layer 1, head 0" in panels_on(app)[0]["finding"], "what it has in common, its heads"


def test_t5_adds_learned_numbers_and_bloom_distances(tiny_loaded: Callable) -> None:
    said = {}
    for family in ("t5", "bloom"):
        model = tiny_loaded(family)
        said[family] = sentences("positions", "shared")(model.capabilities.positions)
    assert "learned number for each head" in said["t5"] and "further apart" not in said["t5"]
    assert "subtracts more from a score, the further apart" in said["bloom"]
    # What the sentence says of T5 is so: one number a head and a bucket, learned.
    (table,) = [
        parameter
        for name, parameter in tiny_loaded("t5").network.encoder.named_parameters()
        if "relative_attention_bias" in name
    ]
    assert tuple(table.shape) == (tiny.T5["relative_attention_num_buckets"], tiny.T5["num_heads"])
    assert table.requires_grad and not (table.diff(dim=0) <= 0).all()
