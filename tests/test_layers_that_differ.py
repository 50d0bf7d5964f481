"""Models whose layers are not alike: windows in some, learned sinks, attention in some alone. What
is recorded is what transformers computes, and every panel shows it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import tiny
import torch
from tolerances import PASSED, SUMMED

import headlight
from explorer.analysis import anatomy, consistency, head_naming
from explorer.app.state import models
from explorer.panels import spec
from models.contract.edits import UniformHead
from models.contract.recording import Recording
from models.contract.recording_file import from_npz, to_npz
from models.network import own_model
from models.pretrained import weight_conversion
from models.pretrained.hf_model import HFModel, from_network
from models.pretrained.hub_tokenizer import HubTokenizer
from models.runtime.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.parity]
TEXT = "the cat sat on the mat and the dog ran to the house"
LOCAL = {**tiny.LLAMA, **tiny.ENDS, "num_hidden_layers": 3, "head_dim": 8, "sliding_window": 4}
FULL_LAST = {"layer_types": ["sliding_attention"] * 2 + ["full_attention"]}
EXPERTS = {"num_experts_per_tok": 1, "moe_intermediate_size": 16}
LINEAR = {
    f"linear_{name}": size
    for name, size in (
        ("num_key_heads", 2),
        ("num_value_heads", 4),
        ("key_head_dim", 8),
        ("value_head_dim", 8),
    )
}
# LongRoPE: each pair of dimensions is slowed by a number of its own, and all scores are scaled.
STRETCHED = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 40,
    "short_factor": [1.0, 1.1, 1.5, 2.0],
    "long_factor": [2.0, 3.0, 5.0, 9.0],
}
# The class, its settings, the window of each layer (None: none), its own layers with attention.
LAYERS: dict[str, tuple[str, dict, list[int | None], list[int]]] = {
    "modernbert": (
        "ModernBertForMaskedLM",
        tiny.BERT
        | {"num_hidden_layers": 3, "local_attention": 6, "global_attn_every_n_layers": 2}
        | {f"{name}_token_id": at for at, name in enumerate(("pad", "unk", "cls", "sep", "mask"))}
        | {"bos_token_id": 2, "eos_token_id": 3},
        [None, 4, None],
        [],
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        {**LOCAL, **FULL_LAST, "query_pre_attn_scalar": 8, "pad_token_id": 0},
        [4, 4, None],
        [],
    ),
    "mistral": ("MistralForCausalLM", LOCAL, [4, 4, 4], []),
    "phi3": (
        "Phi3ForCausalLM",
        {**LOCAL, "rope_parameters": STRETCHED, "pad_token_id": 0},
        [4, 4, 4],
        [],
    ),
    "gpt_oss": (
        "GptOssForCausalLM",
        {**LOCAL, **FULL_LAST, "num_local_experts": 2, "num_experts_per_tok": 1},
        [4, 4, None],
        [],
    ),
    "qwen3_next": (
        "Qwen3NextForCausalLM",
        {**LOCAL, **LINEAR, **EXPERTS, "num_experts": 2, "shared_expert_intermediate_size": 16}
        | {"num_hidden_layers": 5, "full_attention_interval": 2},
        [None, None],
        [1, 3],
    ),
}


@cache
def loaded(kind: str) -> HFModel:
    name, settings, _, _ = LAYERS[kind]
    torch.manual_seed(3)
    model = tiny.random_model(name, settings)
    model.set_attn_implementation("eager")
    words = tiny.wordpiece() if kind == "modernbert" else tiny.gpt2_bytes()
    return from_network(model, HubTokenizer(words), kind, kind)


@cache
def recorded(kind: str) -> Recording:
    return loaded(kind).record(TEXT)


@pytest.mark.parametrize("kind", LAYERS)
def test_patterns_and_masks_are_theirs_whatever_the_layers(kind: str) -> None:
    model, recording = loaded(kind), recorded(kind)
    _, _, windows, attended = LAYERS[kind]
    ids = torch.tensor(recording.streams[0].ids)[None]
    model.network.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model.network(ids, output_attentions=True, output_hidden_states=True)
    model.network.set_attn_implementation("headlight")
    (attention,) = recording.attention
    true = torch.cat([each for each in theirs.attentions if each is not None]).numpy()
    assert recording.dropped == 0 and attention.opens and attention.layers.tolist() == attended
    np.testing.assert_allclose(attention.pattern, true, atol=SUMMED)
    n = len(recording.streams[0].tokens)
    distance = np.arange(n)[:, None] - np.arange(n)
    causal = model.card.kind == "decoder"
    for size, allowed in zip(windows, attention.allowed, strict=True):
        near = np.abs(distance) < (size or n)
        assert np.array_equal(allowed, near & (distance >= 0) if causal else near)
    last = recording.streams[0].resid[-1]
    np.testing.assert_allclose(last, theirs.hidden_states[-1][0].numpy(), atol=PASSED)
    assert from_npz(to_npz(recording)) == recording


def test_a_name_explains_a_cell_by_the_mask_of_its_own_layer() -> None:
    recording = recorded("gemma3")
    (attention,) = recording.attention
    tokens = recording.streams[0].tokens
    places = [at for at, token in enumerate(tokens) if token == tokens[-2]]
    assert places[-1] - places[0] > 4, "beyond the window of the first layers"
    for layer, explained in enumerate((False, False, True)):
        head = head_naming.describe(recording, attention)[layer * attention.pattern.shape[1]]
        head = head._replace(name="same word")
        cell = places[-1], places[0]
        assert head_naming.explains(recording, attention, head, *cell) == explained


def test_a_learned_sink_is_what_a_row_lacks_and_the_sums_hold() -> None:
    recording = recorded("gpt_oss")
    (attention,) = recording.attention
    rows = attention.pattern.sum(axis=-1) + attention.sink
    np.testing.assert_allclose(rows, 1, atol=SUMMED)
    assert attention.sink.max() > 0.05
    sinks = torch.stack([each.self_attn.sinks for each in loaded("gpt_oss").network.model.layers])
    scores = attention.sink_scores
    np.testing.assert_allclose(
        scores, np.broadcast_to(sinks.detach().numpy()[..., None], scores.shape), atol=PASSED
    )
    opened = anatomy.cell(recording, attention, 1, 2, 9, 8)
    assert opened.weight_error < SUMMED and opened.plain is not None
    assert opened.plain[0] / opened.plain[1] == pytest.approx(opened.weights[8], abs=SUMMED)
    assert consistency.softmax(recording).holds
    even = loaded("gpt_oss").record(TEXT, UniformHead(1, 2)).attention[0]
    assert not even.sink[1, 2].any() and even.sink[1, 1].any()
    with models_at("gpt_oss"):
        head = headlight.panels.attention.head(Run("gpt_oss", TEXT), layer=1, head=2, token=9)
    columns = {name: np.array(each) for name, each in head.table.items()}
    np.testing.assert_allclose(columns["sink"], attention.sink[1, 2], atol=SUMMED)
    numbers = [each.astype(float) for each in columns.values() if each.dtype.kind == "f"]
    np.testing.assert_allclose(sum(numbers), 1, atol=SUMMED)
    assert f"learned sink {attention.sink[1, 2, 9]:.2f}" in head.finding


class models_at:
    """A tiny model in the app under its own name, as long as a test runs."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __enter__(self) -> None:
        models.loaded_models[self.kind] = loaded(self.kind)  # type: ignore[assignment]

    def __exit__(self, *error: object) -> None:
        del models.loaded_models[self.kind]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", LAYERS)
def test_every_panel_shows_such_a_model_or_says_why_not(kind: str) -> None:
    assert headlight.panels  # imports all of them
    shown = 0
    with models_at(kind):
        for name, panel in spec.PANELS.items():
            try:
                made = panel(Run(kind, TEXT))
            except ValueError as reason:
                assert str(reason).endswith("."), (name, reason)
                continue
            shown += 1
            made.encode()
            if kind == "qwen3_next":
                assert any("these alone have attention: 1, 3" in line for line in made.caption)
    assert shown > 25


@pytest.mark.parametrize("full_from", [1, 2, 4])
def test_our_classes_have_a_window_in_some_layers_alone(full_from: int) -> None:
    """`max_window_layers` of Qwen2: the layers before it see all."""
    more = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": full_from}
    torch.manual_seed(4)
    theirs = tiny.random_model(
        "Qwen2ForCausalLM", {**tiny.LLAMA, **tiny.ENDS, **more, "num_hidden_layers": 4}
    )
    theirs.set_attn_implementation("eager")
    ours = weight_conversion.build(theirs.config.to_dict(), theirs.state_dict())
    rules = tiny.gpt2_bytes().backend_tokenizer
    names = ("", "", "", "", "<|endoftext|>", "<|endoftext|>")
    words = own_model.Tokenizer(rules, names)
    model = own_model.from_network(ours, words, "ours", "x", "float32", ((), ()))
    recording = model.record(TEXT)
    (attention,) = recording.attention
    with torch.no_grad():
        out = theirs(torch.tensor(recording.streams[0].ids)[None], output_attentions=True)
    np.testing.assert_allclose(attention.pattern, torch.cat(out.attentions).numpy(), atol=SUMMED)
    assert not attention.pattern[
        ~np.broadcast_to(attention.allowed[:, None], (4, 4, *attention.allowed.shape[1:]))
    ].any()
    assert len(attention.masks) == (2 if full_from < 4 else 1)
    writer = model.generate(TEXT)
    np.testing.assert_allclose(writer.logits, out.logits[0, -1].numpy(), atol=PASSED)
