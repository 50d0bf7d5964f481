"""Activations that another library has kept, as recordings."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tolerances import STORED, SUMMED

import headlight
from explorer.analysis import consistency
from explorer.panels import attention as attention_panels
from explorer.panels import residual
from models.contract.recording import Recording
from models.contract.recording_file import from_npz, to_npz


def as_hooks(recording: Recording) -> dict[str, np.ndarray]:
    """A recording of a pre-LN decoder under TransformerLens' names, with an axis of the batch, its
    scores after the mask."""
    stream, of = recording.streams[0], recording.attention[0]
    cache = {"hook_embed": stream.at("embed")}
    if "pos.wrote" in stream.sites:
        cache["hook_pos_embed"] = stream.at("pos.wrote")
    cache["blocks.0.hook_resid_pre"] = stream.at(
        "embed+pos" if "embed+pos" in stream.sites else "embed"
    )
    for layer in range(len(of.pattern)):
        names = {"hook_attn_out": "attn.wrote", "hook_resid_mid": "attn.sum"}
        names |= {"hook_mlp_out": "ffn.wrote", "hook_resid_post": "ffn.sum"}
        for theirs, ours in names.items():
            cache[f"blocks.{layer}.{theirs}"] = stream.at(f"{layer}.{ours}")
        for each in "qkv":
            heads = np.array(getattr(of, each))[layer]
            cache[f"blocks.{layer}.attn.hook_{each}"] = heads.transpose(1, 0, 2)
        scores = np.where(of.allowed[layer], of.scores[layer], -np.inf)
        cache[f"blocks.{layer}.attn.hook_attn_scores"] = scores
        cache[f"blocks.{layer}.attn.hook_pattern"] = of.pattern[layer]
    return {key: np.array(value)[None] for key, value in cache.items()}


@pytest.mark.slow
def test_a_dict_of_hook_names(tiny_loaded: Callable) -> None:
    plain = tiny_loaded("gpt2").record("the cat sat on the mat")
    cache = as_hooks(plain)
    made = headlight.from_cache(cache, plain.streams[0].tokens)
    theirs, ours = plain.attention[0], made.attention[0]
    for name in ("q", "k", "v", "pattern", "allowed"):
        np.testing.assert_array_equal(
            np.array(getattr(ours, name)), np.array(getattr(theirs, name))
        )
    np.testing.assert_allclose(ours.scores, theirs.scores, atol=SUMMED)
    np.testing.assert_allclose(ours.scale, theirs.scale, atol=STORED)
    for site in made.streams[0].sites:
        np.testing.assert_array_equal(made.streams[0].at(site), plain.streams[0].at(site))
    assert {"embed", "pos.wrote", "embed+pos", "1.ffn.sum"} <= {*made.streams[0].sites}
    assert consistency.softmax(made).holds and consistency.residual_sums(made).holds
    assert (
        attention_panels.heads(made).table["pattern"]
        == attention_panels.heads(plain).table["pattern"]
    )
    assert residual.token_path(made).figures and from_npz(to_npz(made)) == made
    torch_cache = {key: torch.tensor(each)[0] for key, each in cache.items()}
    assert headlight.from_cache(torch_cache, plain.streams[0].tokens) == made
    less = {key: each for key, each in cache.items() if "hook_v" not in key}
    assert not headlight.from_cache(less, plain.streams[0].tokens).attention[0].opens
    wrong = {**cache, "blocks.0.hook_mlp_out": cache["blocks.0.hook_mlp_out"] + 1}
    with pytest.raises(ValueError, match="do not add up to 0.ffn.sum: off by 1"):
        headlight.from_cache(wrong, plain.streams[0].tokens)
    gone = {key: each for key, each in cache.items() if "blocks.1.attn" not in key}
    with pytest.raises(ValueError, match="no attn.hook_pattern of layer 1"):
        headlight.from_cache(gone, plain.streams[0].tokens)
    with pytest.raises(ValueError, match="there are 2 tokens"):
        headlight.from_cache(cache, ["a", "b"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_what_modules_gave_by_their_paths(kind: str, tiny_folder: Callable) -> None:
    import transformers

    own = transformers.AutoModelForCausalLM.from_pretrained(
        tiny_folder(kind), attn_implementation="eager"
    ).eval()
    given: dict[str, object] = {}
    for path, module in own.named_modules():

        def keep(_: object, args: tuple, output: object, path: str = path) -> None:
            given.setdefault(path, SimpleNamespace(output=output))

        module.register_forward_hook(keep)
    ids = torch.tensor([[5, 9, 7, 30, 9, 5]])
    with torch.no_grad():
        expected = own(ids, output_attentions=True, output_hidden_states=True, use_cache=False)
    kept = {path: each for path, each in given.items() if path}
    made = headlight.from_cache(kept, [str(int(each)) for each in ids[0]])
    np.testing.assert_array_equal(
        made.attention[0].pattern, torch.cat(list(expected.attentions)).numpy()
    )
    np.testing.assert_array_equal(made.streams[0].at("0.ffn.sum"), expected.hidden_states[1][0])
    assert attention_panels.heads(made).figures


def test_positions_are_added_where_no_sum_of_them_is_there() -> None:
    rng = np.random.default_rng(0)
    words, places, wrote = rng.normal(size=(3, 1, 3, 4))
    cache = {"hook_embed": words, "hook_pos_embed": places}
    cache |= {"blocks.0.attn.hook_pattern": np.full((1, 2, 3, 3), 1 / 3)}
    bare = headlight.from_cache(cache, "abc").streams[0]
    np.testing.assert_allclose(bare.at("embed+pos"), (words + places)[0], atol=STORED)
    cache |= {"blocks.0.hook_attn_out": wrote, "blocks.0.hook_resid_mid": words + places + wrote}
    assert headlight.from_cache(cache, "abc").streams[0].sites[-1] == "0.attn.sum"
    cache["blocks.0.hook_resid_mid"] = words + wrote
    with pytest.raises(ValueError, match="do not add up to 0.attn.sum"):
        headlight.from_cache(cache, "abc")


@pytest.mark.parametrize("key", ["blocks.0.hook_attn_out", "blocks.0.hook_resid_post"])
def test_numbers_that_are_none_and_texts_that_are_not_there(key: str) -> None:
    cache = {"blocks.0.attn.hook_pattern": np.full((2, 2, 3, 3), 1 / 3)}
    with pytest.raises(ValueError, match="has texts 0 to 1, and no text 2"):
        headlight.from_cache(cache, "abc", batch=2)
    states = np.zeros((2, 3, 4))
    cache |= {"blocks.0.hook_resid_pre": states, "blocks.0.hook_resid_mid": states}
    with pytest.raises(ValueError, match=f"{key} has numbers that are not finite"):
        headlight.from_cache(cache | {key: states + np.nan}, "abc")
