"""Pairs of texts, read in the segments in which a model's tokenizer frames them, beside what
transformers itself says of them."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
import transformers
from tolerances import PASSED, STORED, SUMMED

import headlight
from models.contract import edits

PAIR = "the cat sat", "the dog ran to the house"
MODELS = {
    "BertForSequenceClassification": "BertConfig",
    "BertForQuestionAnswering": "BertConfig",
    "BertForMaskedLM": "BertConfig",
    "ElectraForMaskedLM": "ElectraConfig",
    "AlbertForMaskedLM": "AlbertConfig",
}


def network(name: str, **more: object) -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    config = getattr(transformers, MODELS[name])(**tiny.BERT, embedding_size=32, **more)
    own = getattr(transformers, name)(config).eval()
    own.set_attn_implementation("eager")
    return own


def framing() -> transformers.PreTrainedTokenizerFast:
    """As BERT's, which tells segments apart."""
    tokenizer = tiny.wordpiece()
    tokenizer.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return tokenizer


@pytest.mark.parametrize("name", MODELS)
def test_a_pair_is_read_in_its_segments(name: str) -> None:
    n_labels = 2 if name == "BertForQuestionAnswering" else 3  # where its answer begins and ends
    own, tokenizer = network(name, num_labels=n_labels), framing()
    inputs = tokenizer(*PAIR, return_tensors="pt")
    assert inputs["token_type_ids"].any()
    with torch.no_grad():
        true = own(**inputs, output_attentions=True, output_hidden_states=True)
        one = own(input_ids=inputs["input_ids"], output_attentions=True)
    model = headlight.wrap(own, tokenizer)
    recording = model.record(tokenizer(*PAIR))
    patterns = torch.cat(true.attentions).numpy()
    np.testing.assert_allclose(recording.attention[0].pattern, patterns, atol=STORED)
    assert np.abs(torch.cat(one.attentions).numpy() - patterns).max() > 100 * STORED
    last = true.hidden_states[-1][0].numpy()
    np.testing.assert_allclose(recording.streams[0].resid[-1], last, atol=SUMMED)
    assert recording.streams[0].special.sum() == 3, "[CLS] and both [SEP]"
    assert model.record(tokenizer(*PAIR)["input_ids"]) == recording
    assert headlight.record(model, tokenizer([PAIR[0]] * 2, [PAIR[1]] * 2))[1] == recording
    if name == "BertForSequenceClassification":
        scores = true.logits[0].numpy()
        np.testing.assert_allclose(model.class_logits(recording), scores, atol=PASSED)
        swapped = model.class_attribution(recording, 1, baseline="[MASK]")
        assert len(swapped) == len(recording.streams[0].tokens)
    if name == "BertForMaskedLM":
        found = model.gradients(recording, "encoder", -1, 11)
        assert found.logit == pytest.approx(true.logits[0, -1, 11].item(), abs=PASSED)
    off = model.record(tokenizer(*PAIR), edits.ZeroHead(0, 1))
    assert np.abs(off.streams[0].resid[-1] - last).max() > 100 * STORED


def test_segments_that_a_model_does_not_read_are_refused() -> None:
    own, tokenizer = network("BertForMaskedLM"), framing()
    with pytest.raises(ValueError, match="token_type_ids are not 0.*does not frame so"):
        headlight.wrap(own).record(tokenizer(*PAIR))  # without a tokenizer
    moved = tokenizer(*PAIR)
    moved["token_type_ids"] = [1 - each for each in moved["token_type_ids"]]
    with pytest.raises(ValueError, match="token_type_ids are not 0"):
        headlight.wrap(own, tokenizer).record(moved)
    assert headlight.wrap(own, tokenizer).record(tokenizer("the cat")).text == "the cat"
