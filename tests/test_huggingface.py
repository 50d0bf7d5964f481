"""Hugging Face models in their own code: the Recording says what the model computes, and its laws
hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from conftest import AWKWARD
from in_own_code import PROJECTIONS, oracle, recorded
from tolerances import PASSED, SUMMED

from models import edits
from models.pretrained import hf_source, weight_conversion
from models.pretrained.hf_model import HFModel, load
from models.recording import from_npz, to_npz

pytestmark = [pytest.mark.slow, pytest.mark.parity]


OPEN = [family.model_type for family in weight_conversion.SUPPORTED_FAMILIES if family.opens]


FAMILY = {family.model_type: family for family in weight_conversion.SUPPORTED_FAMILIES}


@pytest.fixture(params=tiny.MODELS)
def handle(request: pytest.FixtureRequest, tiny_loaded: Callable[[str], HFModel]) -> HFModel:
    return tiny_loaded(request.param)


# ---- what is recorded is what the model computes -----------------------------


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_patterns_states_and_logits_are_those_of_the_models_own_eager_code(
    kind: str, tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    handle, recording = tiny_loaded(kind), recorded(tiny_loaded(kind))
    _, true = oracle(tiny_folder(kind), recording)
    names = {
        "self": "attentions",
        "encoder self": "encoder_attentions",
        "decoder self": "decoder_attentions",
        "cross": "cross_attentions",
    }
    for attention in recording.attention:
        np.testing.assert_allclose(
            attention.pattern, torch.cat(true[names[attention.name]]).numpy(), atol=SUMMED
        )
    for stream in recording.streams:
        states = true[
            "hidden_states" if len(recording.streams) == 1 else f"{stream.name}_hidden_states"
        ]
        ends = [
            site
            for site in stream.sites
            if site.endswith((".ffn.normed", ".ffn.sum"))
            and (site.endswith("normed") or site[:-3] + "normed" not in stream.sites)
        ]
        entrance = next(
            site for site in ("embed.normed", "embed+pos", "embed") if site in stream.sites
        )
        last = [stream.sites[-1]] if stream.sites[-1] == "final.normed" else ends[-1:]
        for site, state in zip([entrance, *ends[:-1], *last], states, strict=True):
            np.testing.assert_allclose(stream.at(site), state[0].numpy(), atol=PASSED, err_msg=site)
    read = recording.streams[-1]
    for token in (0, 3, len(read.tokens) - 1):
        np.testing.assert_allclose(
            hf_source.logits(handle, recording, read.name, token),
            true.logits[0, token].numpy(),
            atol=PASSED,
        )


def test_before_plus_wrote_is_what_stands_next(handle: HFModel) -> None:
    recording, offered = recorded(handle), hf_source.capabilities(handle)
    for stream in recording.streams:
        assert stream.sites == offered.sites[stream.name]
        triples = stream.writes()
        for before, wrote, after in triples:
            assert after == wrote.removesuffix("wrote") + "sum" or (wrote, after) == (
                "pos.wrote",
                "embed+pos",
            )
            np.testing.assert_allclose(
                stream.at(before) + stream.at(wrote), stream.at(after), atol=SUMMED
            )
        written = {wrote for _, wrote, _ in triples}
        sublayers = (
            ["attn", "cross", "ffn"]
            if len(recording.streams) == 2 and stream.name == "decoder"
            else ["attn", "ffn"]
        )
        layers = recording.attention[-1 if stream is recording.streams[-1] else 0].pattern.shape[0]
        wanted = (
            {f"{layer}.{sub}.wrote" for layer in range(layers) for sub in sublayers}
            if offered.law
            else set()
        )
        assert written - {"pos.wrote"} == wanted


@pytest.mark.parametrize("kind", [kind for kind in OPEN if FAMILY[kind].kind == "decoder"])
def test_a_last_layernorm_reads_the_last_sum_and_is_not_mistaken_for_it(
    kind: str, tiny_loaded: Callable
) -> None:
    handle, stream = tiny_loaded(kind), recorded(tiny_loaded(kind)).streams[0]
    assert stream.sites[-2:] == ("1.ffn.sum", "final.normed")
    with torch.no_grad():
        normed = handle.plan.streams[0].final_norm(torch.tensor(stream.at("1.ffn.sum"))).numpy()
    np.testing.assert_allclose(normed, stream.at("final.normed"), atol=SUMMED)
    assert np.abs(stream.at("1.ffn.sum") - stream.at("final.normed")).max() > 0.01


@pytest.mark.parametrize("kind", OPEN)
def test_any_cell_recomputes_from_the_recording_and_what_is_offered_of_the_scale(
    kind: str, tiny_loaded: Callable
) -> None:
    recording, offered = recorded(tiny_loaded(kind)), hf_source.capabilities(tiny_loaded(kind))
    for attention in recording.attention:
        assert attention.opens
        scores = np.einsum("lhqd,lhkd->lhqk", attention.q, attention.k) * offered.scale
        if attention.name == "cross" or not offered.biased:
            np.testing.assert_allclose(attention.scores, scores, atol=SUMMED)
        else:  # T5's bias is the same for equal distances
            bias = attention.scores - scores
            np.testing.assert_allclose(bias[:, :, 2, 1], bias[:, :, 3, 2], atol=SUMMED)
            assert np.abs(bias).max() > 0.01
        masked = np.where(attention.allowed, attention.scores, -np.inf)
        weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
        np.testing.assert_allclose(
            attention.pattern, weights / weights.sum(axis=-1, keepdims=True), atol=SUMMED
        )


@pytest.mark.parametrize("kind", PROJECTIONS)
def test_what_the_heads_wrote_is_their_values_through_w_o(
    kind: str, tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    path, name, site = PROJECTIONS[kind]
    recording = recorded(tiny_loaded(kind))
    model, _ = oracle(tiny_folder(kind), recording)
    attention = next(each for each in recording.attention if each.name == name)
    z = np.einsum("hqk,hkd->qhd", attention.pattern[0], attention.v[0]).reshape(
        attention.pattern.shape[2], -1
    )
    with torch.no_grad():
        wrote = model.get_submodule(path)(torch.tensor(z)).numpy()
    np.testing.assert_allclose(wrote, recording.stream(attention.query).at(site), atol=SUMMED)


QUERIES = {
    "bert": "bert.encoder.layer.1.attention.self.query",
    "opt": "model.decoder.layers.1.self_attn.q_proj",
    "t5": "encoder.block.1.layer.0.SelfAttention.q",
    "bart": "model.encoder.layers.1.self_attn.q_proj",
}


@pytest.mark.parametrize("kind", QUERIES)
def test_queries_are_the_state_through_w_q_before_any_scaling(
    kind: str, tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    recording = recorded(tiny_loaded(kind))
    model, _ = oracle(tiny_folder(kind), recording)
    stream, attention = recording.streams[0], recording.attention[0]
    read = stream.at("1.attn.read" if "1.attn.read" in stream.sites else "0.ffn.normed")
    with torch.no_grad():
        q = (
            model.get_submodule(QUERIES[kind])(torch.tensor(read))
            .unflatten(-1, (4, 8))
            .transpose(0, 1)
            .numpy()
        )
    np.testing.assert_allclose(attention.q[1], q, atol=SUMMED)


def test_a_recording_keeps_the_contract_and_survives_its_file(handle: HFModel) -> None:
    recording, family = recorded(handle), FAMILY[handle.card.name]
    assert from_npz(to_npz(recording)) == recording
    names = (
        ["self"] if family.kind != "encoder-decoder" else ["encoder self", "decoder self", "cross"]
    )
    assert [attention.name for attention in recording.attention] == names
    for attention in recording.attention:
        np.testing.assert_allclose(attention.pattern.sum(axis=-1), 1, atol=SUMMED)
        n_query, n_key = attention.pattern.shape[2:]
        triangle = attention.name == "decoder self" or family.kind == "decoder"
        assert np.array_equal(
            attention.allowed,
            np.tril(np.ones((n_query, n_key), dtype=bool))
            if triangle
            else np.ones((n_query, n_key), dtype=bool),
        )
        if family.opens:
            assert (
                attention.k.shape
                == attention.v.shape
                == (len(attention.pattern), 4, n_key, handle.card.d_head)
            )
        else:
            assert (
                not attention.opens
                and attention.q.shape == (0, 4, n_query, 0)
                and attention.scores.shape == (0, 4, n_query, n_key)
            )


def test_the_table_of_families_tells_the_truth(handle: HFModel) -> None:
    family, offered = FAMILY[handle.card.name], hf_source.capabilities(handle)
    assert {
        name: getattr(offered, name) for name in ("kind", "norm", "positions", "opens", "law")
    } == {name: getattr(family, name) for name in ("kind", "norm", "positions", "opens", "law")}
    assert offered.logits == ("encoder" if family.kind == "encoder" else "decoder")
    assert handle.card.kind == family.kind
    assert (edits.ZeroHead in offered.edits) == family.opens
    assert (edits.HideToken in offered.edits) == (family.kind == "encoder")


def test_every_family_in_the_table_is_tried() -> None:
    assert list(FAMILY) == list(tiny.MODELS)


def test_parts_that_a_family_computes_side_by_side_are_left_out(tiny_loaded: Callable) -> None:
    assert recorded(tiny_loaded("gpt_neox")).streams[0].sites == (
        "embed",
        "0.ffn.sum",
        "1.ffn.sum",
        "final.normed",
    )


def test_the_same_family_one_after_the_other_has_them(tmp_path: Path) -> None:
    model = tiny.stirred(
        transformers.GPTNeoXForCausalLM(
            transformers.GPTNeoXConfig(
                **tiny.BERT, use_parallel_residual=False, bos_token_id=0, eos_token_id=0
            )
        )
    )
    model.save_pretrained(tmp_path)
    tiny.gpt2_bytes().save_pretrained(tmp_path)
    assert hf_source.capabilities(load(str(tmp_path))).law


# ---- tokens ------------------------------------------------------------------


def test_tokens_carry_what_a_person_reads_and_where_it_stands(handle: HFModel) -> None:
    text = "the cat sat 😀 café"
    recording = hf_source.record(handle, text, target="" if handle.start is not None else None)
    stream = recording.streams[0]
    for token, (begin, end), special in zip(
        stream.tokens, stream.spans.tolist(), stream.special.tolist()
    ):
        assert (begin == -1) == special
        if not special and token != "␣":
            assert token.removeprefix("‧").split(" ")[0] == text[begin:end]
    assert {"the", "cat", "café"} <= {token for token in stream.tokens}
    assert [token for token in stream.tokens if "/4" in token] in (
        [],
        [f"😀 {part}/4" for part in (1, 2, 3, 4)],
    )


def test_special_tokens_typed_by_a_person_are_plain_text(handle: HFModel) -> None:
    written = {"bert": "[MASK]", "roberta": "<mask>", "gpt2": "<|endoftext|>", "t5": "</s>"}.get(
        handle.card.name, "[MASK] </s> <mask>"
    )
    stream = hf_source.record(
        handle, f"the {written} cat", target="" if handle.start is not None else None
    ).streams[0]
    plain = hf_source.record(
        handle, "the cat", target="" if handle.start is not None else None
    ).streams[0]
    assert int(stream.special.sum()) == int(plain.special.sum())
    # A masked model's own mask token is read as one (tests/test_typed_mask.py).
    read = {handle.tokenizer.mask} if handle.card.kind == "encoder" else set()
    assert not set(stream.ids[~stream.special]) & (
        handle.tokenizer.special - {handle.tokenizer._unknown} - read
    )


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5"])
def test_any_text_is_recorded(kind: str, text: str, tiny_loaded: Callable) -> None:
    handle = tiny_loaded(kind)
    recording = hf_source.record(handle, text, target="the dog" if kind == "t5" else None)
    assert 1 <= len(recording.streams[0].tokens) <= handle.card.n_positions
    assert from_npz(to_npz(recording)) == recording
    assert all(token and token.isprintable() for token in recording.streams[0].tokens)


def test_a_long_text_is_cut_and_says_by_how_much(handle: HFModel) -> None:
    recording = hf_source.record(
        handle, "the cat " * 400, target="the" if handle.start is not None else None
    )
    stream = recording.streams[0]
    assert len(stream.tokens) == handle.card.n_positions <= 512
    assert recording.dropped > 0
    words = int((~stream.special).sum())
    assert words + recording.dropped >= 800
    short = hf_source.record(
        handle, "the cat", target="the" if handle.start is not None else None
    ).streams[0]
    assert stream.special[-1] == short.special[-1] and stream.special[0] == short.special[0]


def test_words_of_the_vocabulary_are_readable(tiny_loaded: Callable) -> None:
    assert tiny_loaded("bert").labels(
        [
            2,
            tiny_loaded("bert").tokenizer._piece_id("cat"),
            tiny_loaded("bert").tokenizer._piece_id("##s"),
        ],
    ) == ["[CLS]", "cat", "‧s"]
    gpt2 = tiny_loaded("gpt2").tokenizer
    assert tiny_loaded("gpt2").labels(
        [gpt2._piece_id("Ġcat"), gpt2._piece_id("a"), gpt2._piece_id("Ġ"), gpt2._piece_id("ð")],
    ) == ["cat", "‧a", "␣", "‹F0›"]
    t5 = tiny_loaded("t5").tokenizer
    assert tiny_loaded("t5").labels(
        [t5._piece_id("▁cat"), t5._piece_id("a"), t5._piece_id("<0xF0>")]
    ) == ["cat", "‧a", "‹F0›"]
    assert all(
        label and label.isprintable() for label in tiny_loaded("gpt2").labels(range(tiny.N_VOCAB))
    )
