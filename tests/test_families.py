"""The page of all families: several are tried as its command does, and how far recordings lie from
transformers' own code is below what tests allow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from tolerances import PASSED, SUMMED
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import headlight
from docs import families
from explorer.analysis import consistency
from explorer.panels import spec
from models.pretrained import hub
from models.pretrained.model_files import NotLoaded
from models.pretrained.weight_conversion import CONVERSIONS, SUPPORTED_FAMILIES
from models.runtime import registry
from models.runtime.run import Run

BOUNDS = {"attention": SUMMED, "hidden states": PASSED, "logits": PASSED}
KEPT = json.loads(families.DATA.read_text("utf-8"))


def expect_below(measured: dict[str, dict]) -> None:
    """Of each type that opens; of the others there is a sentence."""
    for family, found in measured.items():
        if "shows" not in found:
            assert [*found] in (["refused"], ["untried"])
            continue
        ways = {families.OWN_CODE, *[families.OUR_CLASSES] * (family in CONVERSIONS)}
        assert {*found} == {"shows", *ways}
        for way in ways:
            assert {"attention", "hidden states"} <= {*found[way]}, family
            assert ("logits" in found[way]) == bool(found["shows"]["predicts"]), family
            for kind, error in found[way].items():
                assert error < BOUNDS[kind], (family, way, kind)


# Families whose states or weights are made otherwise than BERT's and Llama's.
UNLIKE = ["xlm-roberta", "electra", "albert", "phi3"]
# Those whose sub-layers' outputs pass a norm, which our classes do not have.
IN_OWN_CODE = ["gemma2", "gemma3_text", "olmo2"]
CONTINUED = "the cat sat on the mat and the dog ran"


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("way", "family"),
    [*(("ours:", each) for each in UNLIKE), *(("hub:", each) for each in IN_OWN_CODE)],
)
def test_every_panel_shows_a_family_or_says_why_not(
    way: str, family: str, tiny_folder: Callable[[str], Path]
) -> None:
    """And every law of its recording holds, where our classes run it."""
    name, made = f"{way}{tiny_folder(family)}", 0
    model = registry.load(name)
    recording = model.record(CONTINUED)
    if way == "ours:":
        norms = {each.name: model.norms(each.name) for each in recording.streams}
        laws = consistency.checks(recording, model.outputs(), norms)
        assert all(law.holds for law in laws) and sum(law.numbers > 0 for law in laws) >= 6
    assert headlight.panels  # imports all of them
    for title, panel in spec.PANELS.items():
        try:
            panel(Run(name, CONTINUED)).encode()
        except ValueError as reason:
            assert str(reason).endswith("."), (title, reason)
            continue
        made += 1
    assert made > (60 if way == "ours:" else 50)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "step"),
    [("olmo2", "x + RMSNorm(sublayer(x))"), ("gemma3_text", "x + RMSNorm(sublayer(RMSNorm(x)))")],
)
def test_a_norm_of_what_is_added_is_said(
    family: str, step: str, tiny_folder: Callable[[str], Path]
) -> None:
    run = Run(f"hub:{tiny_folder(family)}", CONTINUED)
    assert f"x ← {step}" in " ".join(headlight.panels.embeddings.contexts(run).details)
    rule = " ".join(headlight.panels.residual.updates(run).details)
    assert "f is RMSNorm of what" in rule and "no norm follows" not in rule
    figure = headlight.panels.paper_figure.stacks(run)
    assert "In this model RMSNorm of what a sub-layer writes is added" in figure.details[-1]
    assert figure.figures[0].towers[1].above[0].name == "Last norm"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ours:", "hub:"])
def test_positions_that_are_no_state_are_said_to_be_added(
    way: str, tiny_folder: Callable[[str], Path]
) -> None:
    """ALBERT's: a matrix stands between them and the stream, so it holds no vector of one."""
    run, panels = Run(f"{way}{tiny_folder('albert')}", CONTINUED), headlight.panels
    path = " ".join(panels.embeddings.contexts(run).details)
    assert ", the position is added, what the model makes of both enters layer 0" in path
    for panel in (panels.positions.sentence, panels.positions.order):
        if way == "hub:":
            with pytest.raises(ValueError, match="run in Headlight's own classes"):
                panel(run)
            continue
        made = panel(run)
        assert "no positions" not in " ".join((made.finding, *made.details, *made.caption))
    with pytest.raises(ValueError, match="adds its positions to its words before its stream"):
        panels.positions.overlap(run)
    assert "before its stream begins" in panels.positions.encoding(run).finding
    tower = panels.paper_figure.stacks(run).figures[0].towers[0]
    below = ["400 × 16", "position (learned)", "LayerNorm", "16 → 32"]
    assert [each.text for each in tower.under[1:]] == below
    assert tower.above[-1].text == "32 → 16 → 400"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["albert", "electra"])
def test_words_narrower_than_the_stream_are_read_through_their_matrices(
    kind: str, tiny_folder: Callable[[str], Path]
) -> None:
    """Cosines and both circuits against transformers' own weights."""
    model_class = transformers.AutoModelForMaskedLM.from_pretrained(tiny_folder(kind)).eval()
    if kind == "albert":
        widen = model_class.albert.encoder.embedding_hidden_mapping_in
        dense, words = model_class.predictions.dense, model_class.predictions.decoder.weight
        value = model_class.albert.encoder.albert_layer_groups[0].albert_layers[0].attention
        w_v, w_o = value.value, value.dense
    else:
        widen = model_class.electra.embeddings_project
        dense = model_class.generator_predictions.dense
        words = model_class.generator_lm_head.weight
        layer = model_class.electra.encoder.layer[1].attention
        w_v, w_o = layer.self.value, layer.output.dense
    table = model_class.get_input_embeddings().weight
    width = table.shape[1]
    embeddings = model_class.base_model.embeddings
    with torch.no_grad():
        narrow = table + embeddings.token_type_embeddings.weight[0]
        first, wide = widen(narrow), table @ widen.weight.T
    vectors = np.random.default_rng(0).normal(size=(3, 32)).astype(np.float32)
    cosines = torch.nn.functional.cosine_similarity(torch.tensor(vectors)[:, None], wide[None], -1)
    for way in ("ours:", "hub:"):
        ids, found = headlight.load(f"{way}{tiny_folder(kind)}").nearest(vectors, 4)
        np.testing.assert_allclose(found, cosines.topk(4).values.numpy(), atol=SUMMED)
        np.testing.assert_array_equal(ids, cosines.topk(4).indices.numpy())
    model = headlight.load(f"ours:{tiny_folder(kind)}")
    made = model.circuits("self", 1, 2, (7, 9))
    with torch.no_grad():
        at = slice(2 * 8, 3 * 8)
        wrote = (first[[7, 9]] @ w_v.weight[at].T) @ w_o.weight[:, at].T
        logits = wrote @ dense.weight.T @ words.T
    np.testing.assert_allclose(made.own, logits[[0, 1], [7, 9]].numpy(), atol=SUMMED)
    np.testing.assert_allclose(made.up, logits.topk(made.up.shape[1]).values.numpy(), atol=SUMMED)
    panel = headlight.panels.circuits.circuits(Run(model.name, CONTINUED), layer=1, head=2)
    assert f"Embeddings have {width} dimensions here." in " ".join(panel.details)


# Ways to be unlike others: experts, a hybrid, parts with sizes of their own, two parts.
TRIED = ["distilbert", "bart", "mixtral", "jamba", "t5gemma", "gpt_oss", "longformer", "mamba"]


@pytest.mark.slow
@pytest.mark.parity
def test_what_is_found_now_is_what_the_page_says() -> None:
    now = families.measured(TRIED)
    expect_below(now)
    for family, found in now.items():
        for kind in ("shows", "refused"):
            assert found.get(kind) == KEPT["families"][family].get(kind), family


def test_the_page_has_every_type_and_what_opens_is_below_the_bounds() -> None:
    found = KEPT["families"]
    assert list(found) == sorted(CONFIG_MAPPING)
    assert all("shows" in found[each.model_type] for each in SUPPORTED_FAMILIES)
    expect_below(found)
    assert families.document(KEPT) == families.PAGE.read_text("utf-8")
    assert set(KEPT["versions"]) == set(families.versions())


def test_a_refusal_blames_no_file_and_is_one_sentence() -> None:
    """Nothing is wrong with the files of a model whose family cannot be shown."""
    said = [each["refused"] for each in KEPT["families"].values() if "refused" in each]
    for sentence in said:
        assert "fetch the model again" not in sentence and sentence.endswith("."), sentence


@pytest.mark.parametrize("kind", ["t5gemma", "dots3_note_text", "lxmert", "voxtral_realtime_text"])
def test_sizes_in_parts_or_by_layer_are_not_said_to_be_missing(kind: str) -> None:
    """A Transformer is never said to have no attention, nor its configuration to be damaged."""
    config = {**CONFIG_MAPPING[kind]().to_dict(), "model_type": kind}
    try:
        hub.check_config(config, "it")
    except NotLoaded as refused:
        assert "attention" not in str(refused) and "again" not in str(refused)


def test_a_type_that_is_none_gets_a_sentence() -> None:
    with pytest.raises(SystemExit, match=r"transformers [\d.]+ knows no nosuch"):
        families.main(["nosuch"])
