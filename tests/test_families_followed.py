"""Families whose code is unlike others': what is recorded of them is what transformers computes,
and where a recording cannot hold it, the sentence says so and blames no file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from in_own_code import oracle
from tolerances import PASSED, SUMMED
from torch import nn

import headlight
from explorer.panels import spec
from models.contract import edits
from models.pretrained import hf_model, sandbox, weight_checks
from models.pretrained.model_files import NotLoaded
from models.runtime.run import Run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parity,
    pytest.mark.filterwarnings("ignore:Initializing zero-element tensors"),
]
TEXT = "the cat sat on the mat"
LAYERS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8}
GEMMA = {**tiny.LLAMA, **LAYERS, "head_dim": 8, "pad_token_id": 0}
NARROW = {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": tiny.N_VOCAB}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 1, "topk_group": 1}
SWA = {f"swa_{name}": n for name, n in (("num_attention_heads", 4), ("num_key_value_heads", 2))}
MIMO = {**tiny.LLAMA, **LAYERS, **EXPERTS, **SWA, "head_dim": 8, "v_head_dim": 8}
MIMO |= {"swa_head_dim": 8, "swa_v_head_dim": 8, "n_routed_experts": 4, "pad_token_id": 0}
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_expand": 2}
HYBRID = {**tiny.LLAMA, **MAMBA, "mamba_n_groups": 1, "layer_types": ["mamba", "attention"]}
HYBRID |= {"num_local_experts": 4, "num_experts_per_tok": 2, "shared_intermediate_size": 16}
MOBILE = {**tiny.BERT, "embedding_size": 32, "true_hidden_size": 32, "intra_bottleneck_size": 32}
# The class, its settings, its tokenizer, and whether q, k, v and scores are found too.
FOLLOWED: dict[str, tuple[str, dict, Callable, bool]] = {
    "masks of keys alone": (
        "SwitchTransformersForConditionalGeneration",
        {**tiny.T5, "num_experts": 2, "num_sparse_encoder_layers": 1},
        tiny.sentencepiece,
        True,
    ),
    "boxes that may be left out": ("LayoutLMForMaskedLM", tiny.BERT, tiny.wordpiece, True),
    "an empty matrix": ("MobileBertForMaskedLM", MOBILE, tiny.wordpiece, True),
    "sinks in some layers": ("MiMoV2FlashForCausalLM", MIMO, tiny.gpt2_bytes, True),
    "heads of two widths": (
        "Gemma4ForCausalLM",
        {**GEMMA, **NARROW, "global_head_dim": 16, "num_global_key_value_heads": 2}
        | {"num_kv_shared_layers": 0},
        tiny.gemma_pieces,
        False,
    ),
    "two vocabularies": (
        "FSMTForConditionalGeneration",
        {**tiny.TWO, "src_vocab_size": 600, "tgt_vocab_size": 500, "tie_word_embeddings": False}
        | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2},
        tiny.sentencepiece,
        False,
    ),
    "an infinite setting": ("GraniteMoeHybridForCausalLM", HYBRID, tiny.gpt2_bytes, True),
}


def saved(folder: Path, kind: str, settings: dict, tokenizer: Callable) -> Path:
    torch.manual_seed(2)
    return tiny.save(folder, kind, settings, tokenizer)


@pytest.mark.parametrize("kind", FOLLOWED)
def test_what_is_recorded_is_what_its_own_code_computes(kind: str, tmp_path: Path) -> None:
    name, settings, tokenizer, opens = FOLLOWED[kind]
    folder = saved(tmp_path, name, settings, tokenizer)
    assert sandbox.try_model(folder, str(folder), "hub:") == "hub:"
    model = headlight.load(f"hub:{folder}")
    assert model.capabilities.opens == opens
    recording = model.record(TEXT)
    own, true = oracle(folder, recording)
    names = {"self": "attentions", "cross": "cross_attentions"}
    for attention in recording.attention:
        given = true[names.get(attention.name, attention.name.replace(" self", "_attentions"))]
        np.testing.assert_allclose(attention.pattern, torch.cat(given).numpy(), atol=SUMMED)
    stream = recording.streams[-1]
    if model.capabilities.logits:
        last = model.logits(recording, stream.name, len(stream.tokens) - 1)
        np.testing.assert_allclose(last, true.logits[0, -1].numpy(), atol=PASSED)
    else:
        assert kind == "two vocabularies"
    if kind == "an infinite setting":
        written = json.loads((folder / "config.json").read_text("utf-8"))["time_step_limit"]
        assert written[1] == {"__float__": "Infinity"} and own.config.time_step_limit[1] == np.inf


@pytest.mark.parametrize("kind", ["heads of two widths", "sinks in some layers"])
def test_every_panel_shows_it_or_says_why_not(kind: str, tmp_path: Path) -> None:
    name, settings, tokenizer, _ = FOLLOWED[kind]
    run, made = Run(f"hub:{saved(tmp_path, name, settings, tokenizer)}", TEXT), 0
    assert headlight.panels  # imports all of them
    for title, panel in spec.PANELS.items():
        try:
            panel(run).encode()
        except ValueError as reason:
            assert str(reason).rstrip("'").endswith((".", "its own")), (title, reason)
            continue
        made += 1
    assert made > 30


REFUSED: dict[str, tuple[str, dict, str]] = {
    "several vectors for a token": (
        "Gemma3nForCausalLM",
        {**GEMMA, **NARROW, "altup_num_inputs": 2, "laurel_rank": 8, "num_kv_shared_layers": 0},
        r"stand vectors of the shape \(2, 1, 7, 32\), and a token of a recording has one there; ",
    ),
    "fewer queries than tokens": (
        "FunnelForMaskedLM",
        {"vocab_size": tiny.N_VOCAB, "block_sizes": [1, 1], "d_model": 32, "n_head": 4}
        | {"d_head": 8, "d_inner": 48},
        r"has the shape \(1, 4, 4, 7\) on 7 tokens; choose a model of another family.$",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_model_that_cannot_be_followed_is_not_said_to_be_broken(
    kind: str, tmp_path: Path
) -> None:
    """Its own code runs it, so no file is blamed, and what the sentence advises works."""
    name, settings, why = REFUSED[kind]
    folder = saved(tmp_path, name, settings, tiny.gpt2_bytes)
    says = f"^Headlight's recorder cannot follow it: .*{why}"
    with pytest.raises(NotLoaded, match=says) as said:
        hf_model.load(str(folder), name="it")
    assert "config" not in str(said.value) and "folder" not in str(said.value)
    if kind == "several vectors for a token":
        assert str(said.value).endswith("family, or give its attentions to headlight.view.")
        own = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
        with torch.no_grad():
            given = own(torch.arange(20, 27)[None], output_attentions=True).attentions
        viewed = headlight.view(given, list("abcdefg"))
        np.testing.assert_array_equal(viewed.attention[0].pattern, torch.cat(given).numpy())


def test_what_its_own_code_cannot_run_either_is_blamed_on_it(tmp_path: Path) -> None:
    """And what only the recorder stumbles over, on the recorder: the code runs without it."""
    own = tiny.random_model("BertForMaskedLM", tiny.BERT)
    model = headlight.wrap(own, tiny.wordpiece())
    layer = own.bert.encoder.layer[1]

    def unlike(module: nn.Module, args: tuple, output: tuple) -> tuple:
        if output[0].shape[1] > 12:  # more tokens than in the trial
            raise RuntimeError("made to fail")
        return output

    hook = layer.attention.self.register_forward_hook(unlike)
    with pytest.raises(ValueError, match=r"does not run on \d+ tokens \(made to fail\); shorten"):
        model.record(TEXT * 3)
    hook.remove()
    kept = model.plan.attentions.copy()
    model.plan.attentions.clear()  # as where a family computes otherwise on some texts
    with pytest.raises(ValueError, match=r"recorder cannot follow .* on a text of \d+ tokens"):
        model.record(TEXT)
    model.plan.attentions.update(kept)
    assert model.record(TEXT).attention[0].opens


def test_an_empty_tensor_is_no_reason_and_a_broken_one_is(tmp_path: Path) -> None:
    name, settings, tokenizer, _ = FOLLOWED["an empty matrix"]
    folder = saved(tmp_path, name, settings, tokenizer)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    assert any(not each.numel() for each in model.parameters())
    weight_checks.check(model, folder, "it")
    with torch.no_grad():
        next(iter(model.parameters()))[0, 0] = torch.nan
    with pytest.raises(NotLoaded, match="NaN or infinite"):
        weight_checks.check(model, folder, "it")


# ---- classifiers of two parts --------------------------------------------------------------------

TWO_PARTS = {
    "Bart": (tiny.framed_bytes, {**tiny.BART, "num_labels": 3}),
    "T5": (tiny.sentencepiece, {**tiny.T5, "num_labels": 3}),
}


def two_parts(kind: str, folder: Path) -> Path:
    tokenizer, settings = TWO_PARTS[kind]
    return saved(folder, f"{kind}ForSequenceClassification", settings, tokenizer)


@pytest.mark.parametrize("kind", TWO_PARTS)
def test_a_classifier_whose_head_reads_the_last_end_token(kind: str, tmp_path: Path) -> None:
    """Its classes, the text that its decoder reads, and the parts of a score."""
    folder = two_parts(kind, tmp_path)
    assert sandbox.try_model(folder, str(folder)) == "hub:"
    model = headlight.load(f"hub:{folder}")
    recording = model.record(TEXT)
    own = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    ids = torch.tensor(recording.streams[0].ids)[None]
    with torch.no_grad():
        true = own(ids, output_attentions=True)
    np.testing.assert_allclose(model.class_logits(recording), true.logits[0], atol=SUMMED)
    for attention in recording.attention:
        place, _, own_place = attention.name.partition(" ")
        given = true[f"{place}_attentions" if own_place else "cross_attentions"]
        np.testing.assert_allclose(attention.pattern, torch.cat(given).numpy(), atol=SUMMED)
    assert recording.streams[1].ids[1:].tolist() == recording.streams[0].ids[:-1].tolist()
    assert recording.streams[1].tokens[1:] == recording.streams[0].tokens[:-1]
    for edited in (recording, model.record(TEXT, edits.ZeroHead(1, 2, "cross"))):
        scores = model.class_logits(edited).astype(float)
        made = model.class_parts(edited, 1, against=2)
        assert made.logit == pytest.approx(scores[1] - scores[2], abs=SUMMED)
        assert sum(each.value for each in made.parts) == pytest.approx(made.logit, abs=SUMMED)
    moved = model.class_logits(edited) - model.class_logits(recording)
    assert np.abs(moved).max() > PASSED
    again = model.record(TEXT, (), tuple(map(int, recording.streams[1].ids[1:])))
    assert again == recording


def test_a_classifier_of_two_parts_takes_no_other_text(tmp_path: Path) -> None:
    model = headlight.load(f"hub:{two_parts('Bart', tmp_path)}")
    with pytest.raises(ValueError, match="reads the text itself; leave the target out"):
        model.record(TEXT, (), "the dog")
    with pytest.raises(ValueError, match="by its last </s>; end the ids with 2"):
        model.record((20, 21, 22))
    assert headlight.panels.predictions.word(model.record(TEXT)).title == "Class prediction"


def test_shares_of_the_words_sum_to_what_both_parts_read(tmp_path: Path) -> None:
    """The law of completeness by transformers' own code: the score less that of words whose
    embedding is 0 in both parts; the token that the decoder begins with stays."""
    folder = two_parts("Bart", tmp_path)
    model = headlight.load(f"hub:{folder}")
    recording = model.record(TEXT)
    own = transformers.BartForSequenceClassification.from_pretrained(folder).eval()
    ids = torch.tensor(recording.streams[0].ids)[None]
    with torch.no_grad():
        full = own(ids).logits[0].numpy()
        for part, first in ((own.model.encoder, 0), (own.model.decoder, 1)):
            part.embed_tokens.register_forward_hook(
                lambda module, args, output, first=first: torch.cat(
                    [output[:, :first], torch.zeros_like(output[:, first:])], dim=1
                )
            )
        nothing = own(ids).logits[0].numpy()
    for at in range(3):
        shares = model.class_attribution(recording, at, steps=100)
        assert shares.shape == ids[0].shape and np.abs(shares).max() > PASSED
        # Of a smooth curve.
        assert shares.sum() == pytest.approx(full[at] - nothing[at], rel=0.01, abs=0.002)
    panel = headlight.panels.attribution.class_logit(recording, of_class=1)
    assert len(panel.figures) == 3 and "parts add up to" in " ".join(panel.details)
    with pytest.raises(ValueError, match="steps is 1 or more"):
        model.class_attribution(recording, 1, steps=0)
