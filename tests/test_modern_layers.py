"""What changed since the paper: the parts by themselves, and the families of today in our own
classes with everything that is read off them, changed in them and written by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import SMALL, sharpened
from tolerances import DOUBLE_LONG, PARITY, PASSED, STORED, SUMMED, TOTAL

from explorer.analysis import consistency
from models.contract import edits
from models.contract.recording import stored_array
from models.network import own_model
from models.network.attention import causal_mask
from models.network.config import Config
from models.network.transformer import Decoder
from models.pretrained import weight_conversion
from models.pretrained.config_mapping import attention_window, rotary_fields
from models.pretrained.hf_model import HFModel
from models.pretrained.weight_conversion import MODERN_CONVERSIONS
from models.readouts.ffn import ffn_activations
from models.runtime import registry

TEXT, OTHER = "the cat sat on the mat", "the dog ran to the house"


def seeded(config: Config) -> Decoder:
    torch.manual_seed(6)
    return sharpened(Decoder(config))


# ---- the parts -------------------------------------------------------------------------------


def test_an_edit_gives_what_a_model_built_that_way_is() -> None:
    """RMSNorm for LayerNorm, rotary for sinusoids, side by side, a part less: the same weights,
    exactly."""
    ids = torch.randint(0, 300, (1, 9), generator=torch.Generator().manual_seed(0))
    for config in (SMALL, replace(SMALL, norm="pre")):
        plain = seeded(config)
        for norm in (each for each in plain.modules() if isinstance(each, torch.nn.LayerNorm)):
            torch.nn.init.zeros_(norm.bias)  # an RMSNorm has none
        for change, edit in (
            ({"rms": True}, edits.OtherNorm("rms")),
            ({"positions": "rotary"}, edits.OtherPositions("rotary")),
            ({"parallel": True}, edits.SideBySide()),
            ({"positions": None}, edits.WithoutPositions()),
            ({"scaled_scores": False}, edits.WithoutScale()),
            ({"residual": False}, edits.WithoutResidual()),
            ({"norm": None}, edits.WithoutNorm()),
        ):
            built = Decoder(replace(config, **change)).eval()
            built.load_state_dict(plain.state_dict(), strict=False)
            with torch.no_grad():
                assert torch.equal(built(ids), plain(ids, edits=(edit,)))
                assert not torch.allclose(built(ids), plain(ids), atol=SUMMED)
        back = Decoder(replace(config, rms=True)).eval()
        back.load_state_dict(plain.state_dict(), strict=False)
        with torch.no_grad():
            assert torch.equal(back(ids, edits=(edits.OtherNorm("layer"),)), plain(ids))


def test_what_a_config_says_of_windows_and_of_stretched_angles() -> None:
    said = {"model_type": "qwen2", "sliding_window": 6, "max_window_layers": 1}
    assert attention_window(said, 3) == (None, ())
    assert attention_window(said | {"use_sliding_window": True}, 3) == (6, (0,))
    assert attention_window(said | {"model_type": "mistral"}, 3) == (6, ())
    assert rotary_fields({"rope_theta": 5e5})["rotary_base"] == 5e5
    with pytest.raises(ValueError, match="yarn"):
        rotary_fields({"rope_scaling": {"type": "yarn", "factor": 4.0}})


# ---- the families ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loaded(tiny_folder: Callable[[str], Path]) -> Callable[[str], own_model.OwnModel]:
    return cache(lambda family: weight_conversion.load(tiny_folder(family), f"ours:{family}"))


@pytest.fixture(params=[*MODERN_CONVERSIONS, "gpt2"])
def model(
    request: pytest.FixtureRequest, loaded: Callable[[str], own_model.OwnModel]
) -> own_model.OwnModel:
    return loaded(request.param)


def in_own_code(model: own_model.OwnModel, tiny_folder: Callable[[str], Path]) -> HFModel:
    """The same weights as transformers runs them, in 64 bits."""
    theirs = registry.load(f"hub:{tiny_folder(model.card.name.partition(':')[2])}")
    assert isinstance(theirs, HFModel)
    theirs.network.double()
    return theirs


# Where each family's own code writes into the stream: attention, FFN. The others do as Llama.
WRITES = {
    "gpt2": ("transformer.h.{}.attn.c_proj", "transformer.h.{}.mlp.c_proj"),
    "gpt_neox": ("gpt_neox.layers.{}.attention.dense", "gpt_neox.layers.{}.mlp.dense_4h_to_h"),
    "opt": ("model.decoder.layers.{}.self_attn.out_proj", "model.decoder.layers.{}.fc2"),
}
LIKE_LLAMA = "model.layers.{}.self_attn.o_proj", "model.layers.{}.mlp.down_proj"


@pytest.mark.slow
def test_in_64_bits_every_part_of_a_layer_is_the_one_of_the_models_own_code(
    model: own_model.OwnModel, tiny_folder: Callable[[str], Path]
) -> None:
    """Writes, where its modules make them; sums, q, k, v, scores and patterns, as heard there; and
    the tokens of a recording, with what each may attend to."""
    family = model.card.name.partition(":")[2]
    theirs, ours = in_own_code(model, tiny_folder), in_64_bits(model.network)
    made: dict[str, torch.Tensor] = {}

    def hear(called: str, site: str) -> None:
        module = theirs.network.get_submodule(called)
        module.register_forward_hook(lambda _, __, out: made.__setitem__(site, out.flatten(0, -2)))

    for layer in range(model.card.n_layer):
        for called, place in zip(WRITES.get(family, LIKE_LLAMA), ("attn", "ffn")):
            hear(called.format(layer), f"{layer}.{place}.wrote")
    for text in ("", "café 日本 and the  doors"):
        recorded, heard = model.record(text), theirs.record(text)
        mine, stream = recorded.streams[0], heard.streams[0]
        assert mine.tokens == stream.tokens and mine.ids.tolist() == stream.ids.tolist()
        assert np.array_equal(mine.spans, stream.spans)
        for name in ("allowed", "scale"):
            one, two = (getattr(each.attention[0], name) for each in (recorded, heard))
            np.testing.assert_allclose(one, two, atol=STORED, err_msg=name)
    stream, attention, seen = heard.streams[0], heard.attention[0], {}
    made |= {site: torch.tensor(stream.at(site)) for site in stream.sites}
    made |= {
        f"{layer}.attn.{name}": torch.tensor(stored_array(getattr(attention, name))[layer])
        for layer in range(model.card.n_layer)
        for name in ("q", "k", "v", "scores", "pattern")
    }
    with torch.no_grad():
        ours(torch.tensor(stream.ids)[None], tape=lambda name, x: seen.setdefault(name, x))
    both = [site for site in made if site in seen]
    sums = [each for each in both if each.endswith(".sum")]
    # Side by side there is no sum between the two in that code.
    assert len(sums) == model.card.n_layer * (1 if ours.config.parallel else 2)
    assert len(both) >= len(sums) + 7 * model.card.n_layer
    for site in both:
        one, other = seen[site].reshape(made[site].shape).numpy(), made[site].numpy()
        np.testing.assert_allclose(one, other, atol=PARITY, rtol=PARITY, err_msg=site)


@pytest.mark.slow
def test_a_shift_of_positions_is_the_one_of_the_models_own_code(
    model: own_model.OwnModel, tiny_folder: Callable[[str], Path]
) -> None:
    """Angles know the distance alone; of a table as OPT's, whose first rows stand for no place,
    other rows are taken."""
    theirs, ours = in_own_code(model, tiny_folder).network, in_64_bits(model.network)
    ids = torch.tensor(model.record(TEXT).streams[0].ids)[None]
    turned = ours.config.positions == "rotary"
    for by in (0, 5, model.card.n_positions - ids.shape[1]):
        with torch.no_grad():
            expected = theirs(input_ids=ids, position_ids=torch.arange(ids.shape[1])[None] + by)
            moved = ours.logits(ours(ids, edits=(edits.ShiftPositions(by),)))
            plain = ours.logits(ours(ids))
        torch.testing.assert_close(moved, expected.logits, atol=PARITY, rtol=PARITY)
        assert torch.allclose(moved, plain, atol=PARITY, rtol=PARITY) == (turned or by == 0)
    with pytest.raises(ValueError, match="positions"):
        model.record(TEXT, (edits.ShiftPositions(model.card.n_positions),))


@pytest.mark.slow
def test_every_law_holds_and_every_readout_reads(model: own_model.OwnModel) -> None:
    recording = model.record(TEXT)
    stream, n = recording.streams[0], len(recording.streams[0].tokens)
    checks = consistency.checks(recording, model.outputs(), {"decoder": model.norms("decoder")})
    assert all(check.checked and check.holds for check in checks)
    lens = model.lens(recording, "decoder", 3)
    logits = model.logits(recording, "decoder", n - 1)
    assert lens.kl[-1].max() < STORED and lens.top_ids[-1, -1, 0] == logits.argmax()
    parts = model.attribute(recording, "decoder", n - 1, 7, 11).parts
    assert sum(part.value for part in parts) == pytest.approx(logits[7] - logits[11], abs=TOTAL)
    assert not any("norm" in site for site in model.gradients(recording, "decoder", 2).sites)
    of_ffn = {part.layer: part.value for part in parts if part.kind == "ffn"}
    slope = way_to_the_readout(model, stream.at(f"{model.card.n_layer - 1}.ffn.sum")[-1], 7, 11)
    for layer in range(model.card.n_layer):
        units = ffn_activations(model, recording, "decoder", layer, n - 1)
        wrote = stream.at(f"{layer}.ffn.wrote")[-1]
        np.testing.assert_allclose(units.writes.sum(0) + units.bias, wrote, atol=PASSED)
        found = model.neurons(recording, "decoder", layer, n - 1, 7, 11)
        np.testing.assert_allclose(found.adds, units.writes @ slope, atol=SUMMED)
        assert found.bias == pytest.approx(float(units.bias @ slope), abs=SUMMED)
        assert found.part == pytest.approx(of_ffn[layer], abs=DOUBLE_LONG)
        assert found.adds.sum() + found.bias == pytest.approx(of_ffn[layer], abs=PASSED)
    words = model.network.embedding.token.weight.detach().double()
    unit = torch.nn.functional.normalize(torch.tensor(stream.resid[-1]).double(), dim=-1)
    cosines = (unit @ torch.nn.functional.normalize(words, dim=-1).T).numpy()
    ids, shown = model.nearest(stream.resid[-1], 4)
    np.testing.assert_allclose(shown, np.sort(cosines)[:, :-5:-1], atol=SUMMED)
    np.testing.assert_allclose(np.take_along_axis(cosines, ids, 1), shown, atol=SUMMED)


def way_to_the_readout(
    model: own_model.OwnModel, x: np.ndarray, word: int, against: int
) -> np.ndarray:
    """What a vector added to the last sum x is multiplied by in the difference of two logits, the
    last norm's divisor held: (d_model)."""
    norm, x = model.network.last_norm.norm, x.astype(np.float64)
    words = model.network.readout_matrix.detach().double().numpy()
    slope = norm.weight.detach().double().numpy() * (words[word] - words[against])
    if isinstance(norm, torch.nn.LayerNorm):
        slope, x = slope - slope.mean(), x - x.mean()
    return slope / np.sqrt((x**2).mean() + norm.eps)


def test_a_jacobian_is_the_slope_of_the_recorded_sub_layer(model: own_model.OwnModel) -> None:
    """J of attention at a token by finite steps of that token's vector through the whole layer."""
    recording = model.record(TEXT)
    network, token = in_64_bits(model.network), 3
    for site in ("1.attn", "1.ffn"):
        made = model.jacobian(recording, "decoder", token, site)
        x = torch.tensor(recording.streams[0].at("0.ffn.sum")).double()
        if site == "1.ffn" and not model.network.config.parallel:
            x = torch.tensor(recording.streams[0].at("1.attn.sum")).double()

        def wrote(x: torch.Tensor, site: str = site) -> torch.Tensor:
            layer = network.layers[1]
            if site == "1.ffn":
                out = layer.feed_forward_out
                read = out.norm(x) if out.norm_at(()) == "pre" else x
                return layer.feed_forward(read)[token]
            read = layer.attention_out.read(x, lambda name, x: None, ())[None]
            return layer.attention(read, read, causal_mask(0, len(x)))[0, token]

        by_hand = torch.autograd.functional.jacobian(wrote, x)[:, token]
        np.testing.assert_allclose(
            made.wrote, torch.linalg.svdvals(by_hand).numpy(), atol=PASSED, rtol=PASSED
        )
        assert made.error < PASSED


def in_64_bits(model: Decoder) -> Decoder:
    made = Decoder(model.config).double().eval()
    made.load_state_dict(model.state_dict())
    return made


def test_writing_with_stored_keys_is_the_whole_pass_each_time(model: own_model.OwnModel) -> None:
    writing = model.generate("the cat")
    with torch.inference_mode():
        for token in (20, 33, 41, 20):
            writing.add(token)
            whole = model.network.logits(model.network(torch.tensor([writing.ids]))[0, -1])
            np.testing.assert_allclose(writing.logits, whole, atol=PASSED)
    before = writing.logits
    writing.add(9)
    writing.back()
    np.testing.assert_allclose(writing.logits, before, atol=PASSED)


EDITS = (
    edits.ZeroHead(0, 1),
    edits.MeanHead(1, 2),
    edits.UniformHead(1, 0),
    edits.PatchHead(OTHER, 0, 2),
    edits.PatchSite(OTHER, "0.ffn.wrote", 2),
    edits.WithoutScale(),
    edits.ScaledBy(7.0, 1),
    edits.Window(2),
    edits.WithoutPositions(),
    edits.ShufflePositions(3),
    edits.OtherPositions("sinusoids"),
    edits.OtherPositions("distance"),
    edits.WithoutResidual(1, "ffn"),
    edits.WithoutNorm(1),
    edits.WithoutFeedForward(0),
    edits.ShuffleTokens(2),
)


@pytest.mark.parametrize("family", [*MODERN_CONVERSIONS, "gpt2", "bert", "electra", "albert"])
def test_every_edit_does_something_and_breaks_no_law(
    family: str, loaded: Callable[[str], own_model.OwnModel]
) -> None:
    """Among the laws that a word's logit is the sum of its parts under every edit."""
    model = loaded(family)
    config, plain = model.network.config, model.record(TEXT)
    stream = plain.streams[0].name
    more = [edits.WithMask() if stream == "encoder" else edits.WithoutMask()]
    more += [edits.MoveNorm("post" if config.norm == "pre" else "pre")]
    more += [edits.OtherNorm("layer" if config.rms else "rms")]
    more += [] if config.parallel else [edits.SideBySide()]
    more += [edits.SharedKeys(1)] if config.key_heads == config.n_head else []
    for edit in (*EDITS, *more):
        made = model.record(TEXT, (edit,))
        last, logits = made.streams[0].resid[-1], model.logits(made, stream, 5)
        assert np.abs(last - plain.streams[0].resid[-1]).max() > TOTAL, edit
        norms = {stream: model.norms(stream, made.edits)}
        checks = consistency.checks(made, model.outputs(), norms)
        assert not [each for each in checks if not each.holds], edit
        parts = model.attribute(made, stream, 5, 7)
        assert sum(part.value for part in parts.parts) == pytest.approx(
            logits[7], abs=TOTAL + STORED * abs(float(logits[7]))
        ), edit


def test_what_a_family_s_files_do_not_fit_is_said(tiny_folder: Callable[[str], Path]) -> None:
    from safetensors.torch import load_file

    from models.pretrained import model_files

    described = model_files.read_config(tiny_folder("llama"), "tiny")
    tensors = load_file(tiny_folder("llama") / "model.safetensors")
    with pytest.raises(ValueError, match="longrope"):
        weight_conversion.build(described | {"rope_parameters": {"rope_type": "longrope"}}, tensors)
    with pytest.raises(ValueError, match="q_proj"):
        lacking = {key: each for key, each in tensors.items() if "1.self_attn.q_proj" not in key}
        weight_conversion.build(described, lacking)
    with pytest.raises(ValueError, match="2 layers"):
        weight_conversion.build(described | {"num_hidden_layers": 1}, tensors)
    without = {key: each for key, each in tensors.items() if "lm_head" not in key}
    assert weight_conversion.build(described, without).config.readout is None
    opt = model_files.read_config(tiny_folder("opt"), "tiny")
    with pytest.raises(ValueError, match="narrower"):
        weight_conversion.build(opt | {"word_embed_proj_dim": 16}, {})
    assert all(weight_conversion.covers(tiny_folder(family)) for family in MODERN_CONVERSIONS)
