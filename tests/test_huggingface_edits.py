"""Edits, targets and the lens of Hugging Face models in their own code."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from in_own_code import PROJECTIONS, SECOND, TEXT, oracle, recorded
from tolerances import PARITY, PASSED, STORED, SUMMED

from models.contract import edits
from models.contract.model import Model
from models.contract.recording import NotFinite, Recording
from models.pretrained import hf_source
from models.pretrained.hf_model import load
from models.runtime import registry

pytestmark = [pytest.mark.slow, pytest.mark.parity]


TWO_STREAMS = ["t5", "bart", "marian"]


# ---- edits -------------------------------------------------------------------


def test_a_zeroed_head_takes_away_what_it_wrote(
    tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    loaded_model = tiny_loaded("llama")
    plain, edited = recorded(loaded_model), recorded(loaded_model, edits.ZeroHead(0, 2))
    model, _ = oracle(tiny_folder("llama"), plain)
    w_o = model.get_submodule(PROJECTIONS["llama"][0]).weight.detach().numpy()[:, 16:24]
    attention = plain.attention[0]
    gone = attention.pattern[0, 2] @ attention.v[0, 2] @ w_o.T
    difference = plain.streams[0].at("0.attn.wrote") - edited.streams[0].at("0.attn.wrote")
    np.testing.assert_allclose(difference, gone, atol=SUMMED)
    assert np.array_equal(edited.attention[0].pattern[0], attention.pattern[0])
    assert np.abs(edited.streams[0].resid[-1] - plain.streams[0].resid[-1]).max() > 1e-3


def test_an_even_head_and_a_mean_head_do_what_they_say(tiny_loaded: Callable) -> None:
    model = tiny_loaded("gpt2")
    even = recorded(model, edits.UniformHead(1, 0)).attention[0]
    uniform = even.allowed[0] / even.allowed[0].sum(-1, keepdims=True)
    np.testing.assert_allclose(even.pattern[1, 0], uniform, atol=STORED)
    assert np.abs(even.pattern[1, 1] - uniform).max() > 0.01
    means = (edits.MeanHead(0, head) for head in range(4))
    plain, made = (recorded(model, *asked).streams[0].at("0.attn.wrote") for asked in ((), means))
    expected = np.broadcast_to(plain.mean(axis=0), made.shape)
    np.testing.assert_allclose(made, expected, atol=SUMMED)


@pytest.mark.parametrize("kind", ["bert", "opt", "llama", "bart"])
def test_scores_without_the_scale_and_with_another(kind: str, tiny_loaded: Callable) -> None:
    for change, divisors in (
        (edits.WithoutScale(), (1.0, 1.0)),
        (edits.ScaledBy(5.0, 1), (np.sqrt(8), 5.0)),
    ):
        attention = recorded(tiny_loaded(kind), change).attention[0]
        products = np.einsum("lhqd,lhkd->lhqk", attention.q, attention.k)
        expected = products / np.reshape(divisors, (2, 1, 1, 1))
        np.testing.assert_allclose(attention.scores, expected, atol=PASSED)


def test_a_head_is_edited_in_the_attention_that_is_named(tiny_loaded: Callable) -> None:
    plain = recorded(tiny_loaded("t5"))
    for name in ("encoder self", "decoder self", "cross"):
        edited = recorded(tiny_loaded("t5"), edits.ZeroHead(1, 3, name))
        assert [
            np.array_equal(a.resid, b.resid) for a, b in zip(plain.streams, edited.streams)
        ] == ([False, False] if name == "encoder self" else [True, False])


def test_hidden_and_shuffled_tokens(tiny_loaded: Callable) -> None:
    model, plain = tiny_loaded("roberta"), recorded(tiny_loaded("roberta")).streams[0]
    hidden = recorded(model, edits.HideToken(2)).streams[0]
    assert hidden.tokens[2] == "<mask>"
    assert np.array_equal(np.delete(hidden.ids, 2), np.delete(plain.ids, 2))
    shuffled = recorded(model, edits.ShuffleTokens(1)).streams[0]
    assert sorted(shuffled.ids) == sorted(plain.ids) and shuffled.tokens[0] == plain.tokens[0]
    assert shuffled.tokens[1:-1] != plain.tokens[1:-1]
    closed = recorded(tiny_loaded("mpnet"), edits.ShuffleTokens(1), edits.HideToken(1))
    assert closed.streams[0].tokens[1] == "<mask>"


WISHES = [
    (),
    (edits.ZeroHead(0, 1),),
    (edits.WithoutScale(),),
    (edits.UniformHead(1, 2), edits.HideToken(2)),
    (edits.ShuffleTokens(3),),
]
OWN_CLASSES = "needs the model to run in Headlight's own classes"


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("bert", edits.WithoutPositions(), OWN_CLASSES),
        ("gpt2", edits.SharedKeys(2), OWN_CLASSES),
        ("mpnet", edits.PatchHead("the dog", 0, 0), OWN_CLASSES),
        ("mpnet", edits.ZeroHead(0, 0), OWN_CLASSES),
        ("gpt2", edits.CutPath(1, 1, 1, 2), "to a later one; none comes after it"),
        ("gpt2", edits.CutPath(0, 1, 1, 2, "z"), "CutPath does not know 'z'"),
        ("llama", edits.CutPath(0, 1, 1, 2, "k"), "share keys and values"),
        (
            "bert",
            edits.CutPath(0, 1, 1, 2),
            "otherwise than through a norm, or .* ours:NAME does; CutEdge",
        ),
        ("gemma2", edits.CutPath(0, 1, 1, 2), "otherwise than through"),
        ("gpt_neox", edits.CutPath(0, 1, 1, 2), "does not show what each sub-layer writes"),
        ("bart", edits.CutPath(0, 1, 1, 2, "q", "encoder self"), "otherwise than through"),
        ("bert", edits.ZeroHead(0, 9), "names head 9; bert has heads 0 to 3"),
        ("bert", edits.ZeroHead(7, 0), "names layer 7; bert has layers 0 to 1"),
        ("bart", edits.ZeroHead(0, 0), "attention 'self'; bart has encoder self, decoder self, c"),
        ("bart", edits.ZeroHead(2, 0, "encoder self"), "names layer 2"),
        ("gpt2", edits.HideToken(1), "fills no masked words"),
        ("bert", edits.HideToken(0), "names no token of the text"),
        ("bert", edits.ShuffleTokens(-1), "negative seed"),
        ("bert", edits.ScaledBy(0.0), "above 0"),
        ("bert", edits.ScaledBy(1e-42), "between 3e-39 and 3e"),
        ("t5", edits.WithoutScale(), "multiplies q · k by nothing"),
    ],
)
def test_an_edit_that_cannot_be_honoured_is_refused_and_leaves_nothing_behind(
    kind: str, change: edits.Edit, words: str, tiny_loaded: Callable
) -> None:
    model = tiny_loaded(kind)
    before = recorded(model)
    first = (edits.ZeroHead(0, 1),) if kind == "bert" else ()
    with pytest.raises(ValueError, match=words):
        recorded(model, *first, change)
    assert recorded(model) == before


@pytest.mark.parametrize("kind", ["gpt2", "opt", "llama", "qwen3", "gemma", "phi3"])
def test_a_path_that_is_cut_is_cut_as_in_our_own_classes(kind: str, tmp_path: Path) -> None:
    """Fused and separate projections, rotary positions, normed queries; heads of one layer and of
    two."""
    tokenizer, name, settings = tiny.MODELS[kind]
    settings = settings | {key: 3 for key in ("num_hidden_layers", "n_layer") if key in settings}
    folders = {tiny.save(tmp_path / "q", name, settings, tokenizer): "qkv"}
    if settings.get("num_key_value_heads", 4) < 4:  # a path leads to keys of a head's own
        more = settings | {"num_key_value_heads": 4}
        folders = dict(zip(folders, "q")) | {
            tiny.save(tmp_path / "kv", name, more, tokenizer): "kv"
        }
    for folder, ends in folders.items():
        ways = (f"{way}{folder}" for way in ("hub:", "ours:"))
        theirs, ours = (registry.load(each, dtype="float64") for each in ways)
        assert edits.CutPath in theirs.capabilities.edits
        for to in ends:
            cut_alike(theirs, ours, to)


def cut_alike(theirs: Model, ours: Model, to: str) -> None:
    """Cut paths to an input of a head in both codes of a model, and compare."""
    cuts = (
        edits.CutPath(0, 1, 2, 3, to),
        edits.CutPath(1, 2, 2, 3, to),
        edits.CutPath(0, 2, 1, 0, to),
    )
    lent = edits.PatchPath(SECOND, 0, 1, 2, 3, to)
    state = edits.PatchPath(SECOND, 1, 2, to="resid"), edits.PatchPath(SECOND, 0, 3, 1, to="resid")
    plain = theirs.record(TEXT)
    for asked in (
        cuts[:1],
        cuts,
        (*cuts[:1], edits.ScaleHead(3.0, layer=0, head=1)),
        (lent,),
        (*cuts[1:], lent, *state),
    ):
        made, expected = (model.record(TEXT, asked) for model in (theirs, ours))
        moved = np.abs(made.streams[0].resid[-1] - plain.streams[0].resid[-1]).max()
        assert moved > 10 * PARITY
        for each in ("q", "k", "v", "scores", "pattern"):
            one, other = (getattr(of.attention[0], each) for of in (made, expected))
            np.testing.assert_allclose(one, other, atol=PARITY)
        np.testing.assert_allclose(made.streams[0].resid, expected.streams[0].resid, atol=PARITY)
        if any(edit.borrows for edit in asked):
            continue
        # From the word's logit back to every state, also through what the reader has in its place.
        each = (theirs, made), (ours, expected)
        one, other = (model.gradients(of, "decoder", -1) for model, of in each)
        assert one.logit == pytest.approx(other.logit, abs=PARITY)
        assert one.sites[1:] == other.sites[1:]
        np.testing.assert_allclose(one.norm, other.norm, atol=PARITY)
    assert theirs.record(TEXT) == plain, "nothing is left behind"
    with pytest.raises(ValueError, match="beside a path that is cut, this edit needs"):
        theirs.record(TEXT, (cuts[0], edits.ScaleSite(2.0, "0.ffn.wrote")))


@pytest.mark.parametrize(
    ("kind", "projection", "end"),
    [
        ("gpt2", "transformer.h.0.attn.c_proj", "transformer.ln_f"),
        ("llama", "model.layers.0.self_attn.o_proj", "model.norm"),
        ("qwen3", "model.layers.0.self_attn.o_proj", "model.norm"),
        ("opt", "model.decoder.layers.0.self_attn.out_proj", "model.decoder.final_layer_norm"),
    ],
)
def test_a_path_to_the_logits_is_patched_as_hooks_in_transformers_do(
    kind: str, projection: str, end: str, tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    """What the head writes is heard in both texts, and the difference is put into what the last
    norm reads: nothing in between has seen it."""
    loaded, head = tiny_loaded(kind), 2
    asked = edits.PatchPath(SECOND, 0, head, to="resid")
    made, plain, other = (loaded.record(*of) for of in ((TEXT, asked), (TEXT,), (SECOND,)))
    heard = {}
    for recording in (plain, other):
        network, _ = oracle(tiny_folder(kind), recording)
        module = network.get_submodule(projection)
        width = loaded.card.d_head
        columns = slice(head * width, (head + 1) * width)

        def written(module: torch.nn.Module, args: tuple) -> None:
            only = torch.zeros_like(args[0])
            only[..., columns] = args[0][..., columns]
            weight = module.weight if isinstance(module, torch.nn.Linear) else module.weight.T
            heard["head"] = (only @ weight.T).reshape(1, -1, weight.shape[0])

        with torch.no_grad():
            hook = module.register_forward_pre_hook(written)
            network(input_ids=torch.tensor(recording.streams[0].ids)[None])
            hook.remove()
        heard[recording.text] = heard["head"]
    network, _ = oracle(tiny_folder(kind), plain)
    n = min(heard[TEXT].shape[1], heard[SECOND].shape[1])
    added = torch.zeros_like(heard[TEXT])
    added[:, :n] = heard[SECOND][:, :n] - heard[TEXT][:, :n]
    network.get_submodule(end).register_forward_pre_hook(
        lambda module, args: (args[0] + added.reshape(args[0].shape),)
    )
    with torch.no_grad():
        logits = network(input_ids=torch.tensor(plain.streams[0].ids)[None]).logits[0, n - 1]
    got = loaded.logits(made, made.streams[-1].name, n - 1)
    np.testing.assert_allclose(got, logits.numpy(), atol=PARITY)
    assert np.abs(got - loaded.logits(plain, plain.streams[-1].name, n - 1)).max() > 10 * PARITY


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "neox", "bart"])
def test_vectors_of_another_text_are_put_in(kind: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded("gpt_neox" if kind == "neox" else kind)
    target = SECOND if model.start is not None else None
    name = model.plan.streams[0].name
    attention = next(iter(model.plan.n_layer))
    donor = model.record(SECOND)
    site = next(each for each in donor.streams[0].sites if each.endswith("0.ffn.sum"))
    one = model.record(TEXT, edits.PatchSite(SECOND, site, token=2), target).stream(name)
    np.testing.assert_allclose(one.at(site)[2], donor.stream(name).at(site)[2], atol=STORED)
    before = model.record(TEXT, (), target).stream(name)
    np.testing.assert_array_equal(one.at(site)[3], before.at(site)[3])
    head = model.record(TEXT, edits.PatchHead(SECOND, 0, 1, attention), target)
    of_text = model.record(TEXT, (), target)
    own, other = (
        each.pattern[0, 1] @ each.v[0, 1]
        for of in (of_text, donor)
        for each in of.attention
        if each.name == attention
    )
    both = min(len(own), len(other))
    values = np.concatenate([other[:both], own[both:]])
    same = model.record(TEXT, edits.SetHead(values, 0, 1, attention), target)
    np.testing.assert_allclose(head.streams[-1].resid, same.streams[-1].resid, atol=SUMMED)
    with pytest.raises(ValueError, match="no site"):
        model.record(TEXT, edits.PatchSite(SECOND, "9.attn.sum"), target)


def test_numbers_that_overflow_are_refused_by_the_place_where_they_did(
    tiny_loaded: Callable,
) -> None:
    with pytest.raises(NotFinite, match="1.attn.scores"):
        recorded(tiny_loaded("gpt2"), edits.ScaledBy(3e-39, 1))


def test_people_with_different_edits_on_several_models_get_their_own_pictures(
    tiny_loaded: Callable,
) -> None:
    ways = [(tiny_loaded("bert"), wish) for wish in WISHES]
    ways += [(tiny_loaded(kind), ()) for kind in ("gpt2", "llama", "bart")]

    def visit(at: int) -> tuple[Recording, np.ndarray]:
        model, wish = ways[at % len(ways)]
        recording = recorded(model, *wish)
        stream = recording.streams[-1].name
        return recording, hf_source.logits(model, recording, stream, 1)

    expected = list(map(visit, range(len(ways))))
    with ThreadPoolExecutor(6) as people:
        for at, (recording, logits) in enumerate(people.map(visit, range(120))):
            assert recording == expected[at % len(ways)][0]
            assert np.array_equal(logits, expected[at % len(ways)][1])


# ---- models that read one text and write another -----------------------------


@pytest.mark.parametrize("kind", TWO_STREAMS)
def test_a_target_is_read_as_it_was_trained(kind: str, tiny_loaded: Callable) -> None:
    model, recording = tiny_loaded(kind), recorded(tiny_loaded(kind))
    source, target = recording.streams
    assert recording.target == SECOND and target.tokens[-4:] == ("the", "old", "dog", "ran")
    assert target.ids[0] == model.network.config.decoder_start_token_id and target.special[0]
    cross = recording.attention[2]
    assert (cross.query, cross.key) == ("decoder", "encoder") and cross.pattern.shape == (
        3,
        4,
        len(target.tokens),
        len(source.tokens),
    )
    assert len(target.tokens) != len(source.tokens)


@pytest.mark.parametrize("kind", TWO_STREAMS)
def test_without_a_target_it_is_the_models_own_answer(kind: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded(kind)
    rules = model.network.generation_config.bad_words_ids or []
    banned = [token for words in rules for token in words]
    for changes in ((), (edits.ZeroHead(0, 1, "cross"), edits.MeanHead(0, 0, "encoder self"))):
        recording = hf_source.record(model, "the cat", changes)
        ids = recording.stream("decoder").ids
        assert 1 < len(ids) <= model.card.n_positions
        for step in range(min(len(ids) - 1, 8)):  # the likeliest after those before it
            scores = hf_source.logits(model, recording, "decoder", step)
            scores[banned] = -np.inf
            assert int(scores.argmax()) == ids[step + 1]
        again = hf_source.record(model, "the cat", changes, target=tuple(map(int, ids[1:])))
        assert again == recording


def test_a_long_target_is_cut_and_says_so(tiny_loaded: Callable) -> None:
    recording = hf_source.record(tiny_loaded("bart"), TEXT, target=" ".join(["the cat"] * 60))
    assert (
        len(recording.stream("decoder").tokens) == 40 and recording.target_dropped == 120 + 2 - 40
    )
    with pytest.raises(ValueError, match="reads one text alone"):
        hf_source.record(tiny_loaded("bert"), TEXT, target="the")


# ---- words read off the stream -----------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5", "marian", "gpt_neox"])
def test_the_lens_ends_in_what_the_model_says(kind: str, tiny_loaded: Callable) -> None:
    model, recording = tiny_loaded(kind), recorded(tiny_loaded(kind))
    name = hf_source.capabilities(model).logits
    stream, seen = recording.stream(name), hf_source.lens(model, recording, name, top=5)
    assert seen.sites[-1] == stream.sites[-1]
    assert not any(site.endswith((".wrote", ".read")) for site in seen.sites)
    assert seen.top_ids.shape == (len(seen.sites), len(stream.tokens), 5)
    assert (seen.rank[-1] == 0).all() and np.abs(seen.kl[-1]).max() < SUMMED
    scores = hf_source.logits(model, recording, name, 2).astype(np.float64)
    assert seen.top_ids[-1, 2, 0] == scores.argmax() == seen.final_id[2]
    expected = scores.max() - np.log(np.exp(scores).sum())
    np.testing.assert_allclose(seen.logprob[-1, 2], expected, atol=PASSED)
    assert seen.kl[0].max() > 1e-3


def test_the_lens_of_a_pre_norm_model_passes_through_its_last_layernorm(
    tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    loaded_model, recording = tiny_loaded("gpt2"), recorded(tiny_loaded("gpt2"))
    model, _ = oracle(tiny_folder("gpt2"), recording)
    seen = hf_source.lens(loaded_model, recording, "decoder", top=3)
    with torch.no_grad():
        x = torch.tensor(recording.streams[0].at("0.attn.sum"))
        said = model.lm_head(model.transformer.ln_f(x)).argmax(-1).numpy()
    assert np.array_equal(seen.top_ids[seen.sites.index("0.attn.sum")][:, 0], said)


def test_words_are_read_off_the_stream_that_says_them(tiny_loaded: Callable) -> None:
    recording = recorded(tiny_loaded("t5"))
    with pytest.raises(ValueError, match="reads words off its decoder alone"):
        hf_source.logits(tiny_loaded("t5"), recording, "encoder", 0)


def test_a_model_saved_without_its_readout_says_no_words(tmp_path: Path) -> None:
    folder = tiny.save(tmp_path, "BertModel", tiny.BERT, tiny.wordpiece)
    model = load(str(folder), name="bare")
    assert hf_source.capabilities(model).logits == ""
    with pytest.raises(ValueError, match="has no readout over the vocabulary"):
        hf_source.logits(model, recorded(model), "encoder", 0)


def test_a_closed_attention_says_so_and_cannot_be_half_open(tiny_loaded: Callable) -> None:
    closed, opened = (
        recorded(tiny_loaded("mpnet")).attention[0],
        recorded(tiny_loaded("bert")).attention[0],
    )
    assert not closed.opens and opened.opens
    with pytest.raises(ValueError, match="q of self should have shape"):
        replace(opened, q=opened.q[:0])
    with pytest.raises(ValueError, match="q of self should have shape"):
        replace(opened, scores=opened.scores[:0])


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "gpt_neox", "bart"])
def test_a_sweep_of_patches_is_one_record_after_the_other(kind: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded(kind)
    stream, attention = model.plan.streams[0].name, next(iter(model.plan.n_layer))
    plain = model.record(TEXT)
    last = plain.streams[-1]
    target = tuple(map(int, last.ids[1:])) if model.start is not None else None

    def difference(*asked: edits.Edit) -> float:
        made = model.record(TEXT, asked, target)
        logits = model.logits(made, last.name, 0)
        return float(logits[11] - logits[7])

    sites = model.patch_sites(TEXT, SECOND, stream, 0, 11, 7)
    some = sites.only(sites.rows[-2:], [0, 2])
    found = {effect.place: effect.value for effect in some.effects}
    assert len(found) == some.places == 4 and sites.places > 4
    for site, token in found:
        patched = difference(edits.PatchSite(SECOND, site, token, stream))
        assert found[site, token] == pytest.approx(patched, abs=PARITY)
    heads = model.patch_heads(TEXT, SECOND, attention, 0, 11, 7)
    found = {effect.place: effect.value for effect in heads.only([0]).effects}
    assert sorted(found) == [(0, head) for head in range(model.card.n_head)]
    for place in found:
        patched = difference(edits.PatchHead(SECOND, *place, attention))
        assert found[place] == pytest.approx(patched, abs=PARITY)
    assert heads.clean == pytest.approx(difference(), abs=PARITY)
    with pytest.raises(ValueError, match="'9.ffn.sum' is none of"):
        sites.only(["9.ffn.sum"])
