"""Models in their own code: they write with their own cache, their logits are taken apart where the
readout is linear, and gradients go back through their code."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tiny
import torch
from in_own_code import SECOND, TEXT, oracle, recorded
from tolerances import PASSED, SUMMED, TOTAL

from models.contract import edits
from models.contract.results import Sampling, SeededSampling, softmax
from models.network import generation
from models.pretrained import hf_model, hf_source
from models.pretrained.hf_model import HFModel, load
from models.runtime import registry

if TYPE_CHECKING:
    from transformers.utils import ModelOutput

pytestmark = pytest.mark.slow

WRITERS = ["gpt2", "opt", "gpt_neox", "bloom", "llama", "qwen2", "mistral", "phi3", "olmo2"]
BENT = ["bert", "distilbert", "roberta", "xlm-roberta", "electra", "albert", "mpnet"]
BENT += ["deberta-v2"]
TRANSLATORS = ["t5", "bart", "marian"]
WHOLE = ["gpt_neox"]  # attention and FFN side by side: a layer is one part
NORMED = ["gemma2", "gemma3_text", "olmo2"]  # a norm of what a sub-layer writes: it is one part
BOUNDED = ["gemma2"]  # its logits have a bound, so they are no sum


@torch.no_grad()
def whole(model: HFModel, ids: list[int], source: list[int] | None = None) -> ModelOutput:
    """One whole pass of the bare model, nothing stored."""
    inputs = {"input_ids": torch.tensor([ids])}
    if source is not None:
        inputs = {"input_ids": torch.tensor([source]), "decoder_input_ids": torch.tensor([ids])}
    return model.network(**inputs, use_cache=False, output_attentions=True)


def after(model: HFModel, ids: list[int]) -> np.ndarray:
    return whole(model, ids).logits[0, -1].numpy()


def last_rows(layers: tuple[torch.Tensor, ...]) -> np.ndarray:
    """The newest token's weights in every layer: (layer, head, key)."""
    return np.stack([each[0, :, -1].numpy() for each in layers])


@pytest.mark.parametrize("kind", WRITERS)
def test_it_writes_with_its_own_cache_what_full_passes_say(
    kind: str, tiny_loaded: Callable[[str], HFModel]
) -> None:
    model = tiny_loaded(kind)
    draft = model.generate(TEXT)
    assert isinstance(draft, hf_model.HFGeneration) and draft.keeps
    prompt, card = list(draft.ids), model.card
    for token in (7, 30, 12):
        draft.add(token)
        np.testing.assert_allclose(draft.logits, after(model, draft.ids), atol=PASSED)
    ids = list(draft.ids)
    for token, logits in zip((5, 6), draft.logits_after([[5, 9], [6, 9]])):
        np.testing.assert_allclose(logits, after(model, [*ids, token, 9]), atol=PASSED)
    assert draft.ids == ids
    kept = draft.stored
    layers = model.plan.n_layer["self"]
    assert kept.nbytes == layers * 2 * kept.n_head * len(draft.ids) * kept.d_head * 4
    shared = kind in ("llama", "qwen2", "mistral", "phi3", "olmo2")
    assert kept.n_head == (2 if shared else card.n_head)
    draft.back()
    draft.back()
    assert draft.ids == [*prompt, 7]
    out = whole(model, draft.ids)
    np.testing.assert_allclose(draft.logits, out.logits[0, -1].numpy(), atol=PASSED)
    np.testing.assert_allclose(draft.rows["attn"], last_rows(out.attentions), atol=SUMMED)


@pytest.mark.parametrize(
    ("kind", "layer"),
    [("gpt2", "transformer.h.0"), ("llama", "model.layers.0"), ("qwen3", "model.layers.0")],
)
def test_it_writes_steered_as_a_hook_in_transformers_makes_it_write(
    kind: str, layer: str, tiny_loaded: Callable[[str], HFModel], tiny_folder: Callable
) -> None:
    model = tiny_loaded(kind)
    vector = np.linspace(-4, 4, model.card.d_model)
    draft = model.generate(TEXT, (), edits.AddToSite(vector, "0.ffn.sum"))
    assert draft.keeps, "every step reads the newest token alone"
    network, _ = oracle(tiny_folder(kind), model.record(TEXT))
    added = torch.tensor(vector, dtype=torch.float32)

    def steer(module: torch.nn.Module, args: tuple, output: Any) -> Any:
        return (output[0] + added, *output[1:]) if isinstance(output, tuple) else output + added

    network.get_submodule(layer).register_forward_hook(steer)
    for _ in range(5):
        with torch.no_grad():
            logits = network(input_ids=torch.tensor([draft.ids])).logits[0, -1]
        np.testing.assert_allclose(draft.logits, logits.numpy(), atol=PASSED)
        draft.add(int(draft.logits.argmax()))


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen3", "bart", "t5"])
def test_what_its_code_writes_under_an_edit_is_what_the_edited_passes_say(
    kind: str, tiny_loaded: Callable[[str], HFModel]
) -> None:
    model = tiny_loaded(kind)
    stream, *_ = [each.name for each in model.plan.streams][-1:]
    attention = "self" if stream == "decoder" and model.start is None else "decoder self"
    vector = np.linspace(-4, 4, model.card.d_model)
    for edit in (
        edits.ZeroHead(0, 1, attention),
        edits.AddToSite(vector, "0.ffn.sum", stream=stream),
        edits.MeanHead(0, 1, attention),
        edits.SetSite(vector, "0.attn.sum", token=1, stream=stream),
        edits.PatchHead(SECOND, 0, 1, attention),
    ):
        draft = model.generate(TEXT, (5, 6), edit)
        for token in (7, 30):
            if model.start is None:
                recording = model.record(tuple(map(int, draft.ids)), edit)
            else:
                recording = model.record(TEXT, edit, target=tuple(map(int, draft.ids[1:])) or "")
            n = len(draft.ids)
            if recording.streams[-1].ids.tolist()[:n] == [*map(int, draft.ids)]:
                expected = model.logits(recording, stream, n - 1)
                np.testing.assert_allclose(draft.logits, expected, atol=PASSED)
            after = draft.logits_after([[token]])[0]
            draft.add(token)
            np.testing.assert_allclose(draft.logits, after, atol=PASSED)
        if model.start is not None:
            *_, (beam,) = islice(model.beams(TEXT, 1, edit), 3)
            draft, logprobs = model.generate(TEXT, (), edit), []
            for token in beam.ids:
                logprobs.append(np.log(softmax(draft.logits.astype(np.float64))[token]))
                draft.add(token)
            np.testing.assert_allclose(beam.logprobs, logprobs, atol=PASSED)


@pytest.mark.parametrize("kind", ["gemma2", "gemma3_text"])
def test_a_window_in_some_layers_writes_what_full_passes_say(
    kind: str, tiny_loaded: Callable[[str], HFModel]
) -> None:
    model = tiny_loaded(kind)
    draft = model.generate(TEXT)
    for token in (7, 30, 12):
        draft.add(token)
        np.testing.assert_allclose(draft.logits, after(model, draft.ids), atol=PASSED)
    assert len(draft.ids) > model.network.config.sliding_window


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", TRANSLATORS)
def test_a_translation_is_written_token_by_token_as_full_passes_say(
    kind: str, kept: bool, tiny_loaded: Callable[[str], HFModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Greedy, drawn, and back: the encoder is read once, and its keys with the decoder's own. The
    logits and rows are a whole pass's, and a recording's of the same two texts."""
    model, rng = tiny_loaded(kind), np.random.default_rng(0)
    assert hf_model.supports_cache(model) and model.capabilities.writes, "its own cache is good"
    monkeypatch.setitem(hf_model._cache_support, model, kept)
    encoded: list[int] = []
    hook = model.network.get_encoder().register_forward_hook(lambda *_: encoded.append(1))
    draft = model.generate(TEXT)
    assert draft.ids == [model.start]
    for how in (Sampling(0.0), Sampling(1.5, 20, 0.9), Sampling(1.5, 20, 0.9), Sampling(0.0)):
        draft.add(generation.sample(draft.logits, how, rng))
    draft.back()
    hook.remove()
    assert len(encoded) == (1 if kept else 6)
    assert len(draft.ids) == 4
    n = (len(draft.ids) + len(draft.source)) * model.plan.n_layer["cross"]
    assert draft.stored.nbytes == (2 * n * model.card.n_head * model.card.d_head * 4) * kept
    out, read = whole(model, draft.ids, draft.source), model.record(TEXT, (), draft.ids[1:])
    logits = model.logits(read, "decoder", len(draft.ids) - 1)
    for expected in (out.logits[0, -1].numpy(), logits):
        np.testing.assert_allclose(draft.logits, expected, atol=PASSED)
    for place, theirs, one in (
        ("attn", out.decoder_attentions, read.attention[1]),
        ("cross", out.cross_attentions, read.attention[2]),
    ):
        for expected in (last_rows(theirs), one.pattern[:, :, -1]):
            np.testing.assert_allclose(draft.rows[place], expected, atol=SUMMED)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("kind", TRANSLATORS)
def test_a_search_in_its_own_code_has_the_probabilities_of_full_passes(
    kind: str, kept: bool, tiny_loaded: Callable[[str], HFModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one beam says what the model's own `generate` says."""
    model = tiny_loaded(kind)
    monkeypatch.setitem(hf_model._cache_support, model, kept)
    source = list(model.generate(TEXT).source)
    *_, last = islice(model.beams(TEXT, 3), 6)
    assert len({beam.ids for beam in last}) == 3 and len(last[0].ids) > 2
    *_, drawn = islice(model.beams(TEXT, SeededSampling(Sampling(1.5), 2)), 6)
    for beam in (*last, *drawn):
        logits = whole(model, [model.start, *beam.ids[:-1]], source).logits[0].double()
        logprobs = logits.log_softmax(-1)[range(len(beam.ids)), list(beam.ids)]
        np.testing.assert_allclose(beam.logprobs, logprobs.numpy(), atol=PASSED)
        assert beam.score == pytest.approx(generation.score(beam.logprobs))
    *_, (one,) = islice(model.beams(TEXT, 1), 8)
    how = {"do_sample": False, "num_beams": 1, "max_new_tokens": len(one.ids)}
    with torch.no_grad():  # T5's own cache has as many layers as its encoder
        own = model.network.generate(torch.tensor([source]), **how, use_cache=False)
    *_, (likeliest,) = islice(model.beams(TEXT, SeededSampling(Sampling(0.0))), 8)
    assert one.ids == likeliest.ids == tuple(own[0, 1:].tolist())


def test_a_search_takes_no_token_that_the_models_settings_rule_out(
    tiny_loaded: Callable[[str], HFModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rules = tiny_loaded("marian"), tiny_loaded("marian").network.generation_config
    *_, (plain,) = islice(model.beams(TEXT, 1), 4)
    monkeypatch.setattr(rules, "bad_words_ids", [[plain.ids[1]]])
    monkeypatch.setattr(rules, "forced_bos_token_id", 77)
    *_, last = islice(model.beams(TEXT, 3), 4)
    assert all(beam.ids[0] == 77 and plain.ids[1] not in beam.ids for beam in last)
    assert all(beam.logprobs[0] < -0.1 for beam in last), "what is forced is not made certain"


def test_a_model_whose_cache_says_otherwise_reads_the_whole_text_every_step(
    tiny_loaded: Callable[[str], HFModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_loaded("gpt2")
    monkeypatch.setitem(hf_model._cache_support, model, False)
    draft = model.generate(TEXT)
    draft.add(9)
    assert draft.stored.nbytes == 0
    np.testing.assert_allclose(draft.logits, after(model, draft.ids), atol=PASSED)
    draft.back()
    np.testing.assert_allclose(draft.logits, after(model, draft.ids), atol=PASSED)


@pytest.mark.parametrize("kind", [kind for kind in tiny.MODELS if kind not in BOUNDED])
def test_a_logit_is_the_sum_of_parts(kind: str, tiny_loaded: Callable[[str], HFModel]) -> None:
    model = tiny_loaded(kind)
    recording, why = recorded(model), hf_source.missing(model)
    stream = recording.streams[-1]
    assert not why and model.capabilities.no_parts == ""
    for word, against in ((5, None), (9, 30)):
        taken = model.attribute(recording, stream.name, 2, word, against)
        logits = model.logits(recording, stream.name, 2)
        expected = logits[word] - (0 if against is None else logits[against])
        assert taken.logit == pytest.approx(float(expected), abs=PASSED)
        assert sum(part.value for part in taken.parts) == pytest.approx(taken.logit, abs=TOTAL)
        assert (taken.explained < 1) == (kind in BENT)
    kinds = {part.kind for part in taken.parts}
    assert ("transform" in kinds) == (kind in BENT)
    assert ("layer" in kinds) == (kind in WHOLE) == ("ffn" not in kinds)
    if kind not in WHOLE:  # where values are not handed out an attention is one part
        one = "head" if model.plan.opens and kind not in NORMED else "attn"
        heads = [part for part in taken.parts if part.kind == one]
        assert len(heads) == (model.card.n_head if one == "head" else 1) * sum(
            n for name, n in model.plan.n_layer.items() if name != "encoder self"
        )


@pytest.mark.parametrize(
    "kind", ["bert", "distilbert", "roberta", "xlm-roberta", "electra", "albert"]
)
def test_a_logit_after_a_transform_is_made_as_in_our_own_classes(kind: str, tmp_path: Path) -> None:
    """Part by part, with how much of the transform the slope tells, for the same weights."""
    folder = str(tiny.build(kind, tmp_path))
    model, ours = load(folder, name=kind), registry.load(f"ours:{folder}")
    for word, against in ((5, None), (9, 30)):
        theirs, own = (
            each.attribute(each.record(TEXT), "encoder", 2, word, against) for each in (model, ours)
        )
        assert theirs.logit == pytest.approx(own.logit, abs=PASSED)
        assert theirs.explained == pytest.approx(own.explained, abs=SUMMED)
        one, other = (
            {(part.kind, part.layer, part.head): part.value for part in each.parts}
            for each in (theirs, own)
        )
        assert one.keys() == other.keys() and len(one) > 10
        for key, value in one.items():
            assert value == pytest.approx(other[key], abs=SUMMED), key


@pytest.mark.parametrize("kind", ["bert", *BOUNDED])
def test_a_readout_of_another_kind_is_refused_and_it_is_said_why(kind: str, tmp_path: Path) -> None:
    tiny.build(kind, tmp_path)
    if kind == "bert":
        tiny.change(tmp_path, hidden_act="mish")
    model = load(str(tmp_path), name=kind)
    why = model.capabilities.no_parts
    with pytest.raises(ValueError, match="neither linear nor a dense layer") as refused:
        model.attribute(recorded(model), model.card.kind, 1, 5)
    assert why and why in str(refused.value)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "gpt_neox"])
def test_gradients_are_those_of_finite_differences(kind: str, tmp_path: Path) -> None:
    """In 64 bits: what is added to a state, by a hook where it comes by, moves the logit as the
    gradient says."""
    model = load(str(tiny.build(kind, tmp_path)), name=kind)
    model.network.double()
    recording = recorded(model)
    stream = recording.streams[-1]
    found = model.gradients(recording, stream.name, 2)
    assert found.sites[0] == "embed+pos"
    plan = model.plan.streams[-1]
    inputs = {"input_ids": torch.tensor(recording.streams[0].ids)[None]}
    if model.start is not None:
        inputs["decoder_input_ids"] = torch.tensor(stream.ids)[None]

    def logit(module: torch.nn.Module, push: torch.Tensor) -> float:
        hook = module.register_forward_hook(lambda _, __, out: out + push)
        with torch.no_grad():
            said = model.network(**inputs, use_cache=False).logits[0, 2, found.id].item()
        hook.remove()
        return said

    # Llama's norms compute in 32 bits whatever they are given.
    checked, step = 0, 1e-3 if kind == "llama" else 1e-5
    for site, source in plan.sites:
        place, _, what = site.rpartition(".")
        ((heard, factor), *more) = source
        if what != "wrote" or place not in found.sites or plan.norm == "post":
            continue  # what is added to an output is added to the sum after it
        slope = np.zeros((plan.d_model,))
        for at in range(plan.d_model):
            push = torch.zeros(1, len(stream.tokens), plan.d_model, dtype=torch.float64)
            push[0, 1, at] = step
            up, down = logit(heard.module, push), logit(heard.module, -push)
            slope[at] = (up - down) / (2 * step)
        expected = found.norm[found.sites.index(place), 1]
        # a step of 1e-5 leaves 1e-10, rounding 1e-11; 32 bits and 1e-3 leave 1e-4 and 1e-6
        assert np.linalg.norm(slope) == pytest.approx(expected, rel=30 * step)
        checked += 1
    assert checked or plan.norm == "post" or not plan.law
    assert (found.norm > 0).any(axis=-1).all()
