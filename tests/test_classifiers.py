"""Classifiers of texts as people have them: their classes are those of transformers' own code, and
edits act on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from app_harness import panels_on
from test_hf_models_on_pages import opened, there
from tolerances import STORED, SUMMED

import headlight
from models import edits
from models.pretrained import sandbox
from models.recording import Recording
from models.run import Run

pytestmark = pytest.mark.slow
NAMES = {0: "calm", 1: "glad <b>", 2: "sad"}
KINDS: dict[str, tuple[Callable, dict]] = {
    "Bert": (tiny.wordpiece, tiny.BERT),
    "Roberta": (tiny.framed_bytes, tiny.PADDED),
    "DistilBert": (tiny.wordpiece, tiny.DISTIL),
    "GPT2": (tiny.gpt2_bytes, {**tiny.GPT2, **tiny.ENDS, "pad_token_id": 0}),
}
TEXT = "the cat sat on the mat"


def classifier(folder: Path, kind: str, **settings: object) -> Path:
    torch.manual_seed(7)
    tokenizer, base = KINDS[kind]
    given = {**base, "id2label": NAMES, "label2id": {each: at for at, each in NAMES.items()}}
    return tiny.save(folder, f"{kind}ForSequenceClassification", given | settings, tokenizer)


def oracle(folder: Path, recording: Recording) -> np.ndarray:
    """The classes' scores by transformers' own eager code."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    with torch.no_grad():
        return model(torch.tensor(recording.streams[0].ids)[None]).logits[0].numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_those_of_its_own_code(kind: str, tmp_path: Path) -> None:
    folder = classifier(tmp_path, kind)
    assert sandbox.try_model(folder, str(folder)) == "hub:"
    model = headlight.load(f"hub:{folder}")
    assert model.capabilities.classes == tuple(NAMES.values())
    recording = model.record(TEXT)
    scores = oracle(folder, recording)
    np.testing.assert_allclose(model.class_logits(recording), scores, atol=SUMMED)
    panel = headlight.panels.predictions.word(recording)
    chances = np.exp(scores) / np.exp(scores).sum()
    assert panel.table["class"] == [NAMES[at] for at in np.argsort(-chances)]
    np.testing.assert_allclose(panel.table["probability"], sorted(chances)[::-1], atol=SUMMED)
    assert f"“{NAMES[int(scores.argmax())]}”" in panel.finding
    assert [row.label for row in panel.figures[0].rows] == panel.table["class"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_edit_moves_them_as_it_moves_what_the_head_reads(kind: str, tmp_path: Path) -> None:
    """All heads of the last layer at 0: the model with W_O = 0 there says the same."""
    folder = classifier(tmp_path, kind)
    model = headlight.load(f"hub:{folder}")
    last = model.card.n_layer - 1
    run = Run(model.name, TEXT, tuple(edits.ZeroHead(last, head) for head in range(4)))
    recording = run.recording()
    own = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    paths = ("attention.output.dense", "attention.out_lin", "attn.c_proj")
    writers = [each for name, each in own.named_modules() if name.endswith(paths)]
    with torch.no_grad():
        writers[last].weight.zero_()
        expected = own(torch.tensor(recording.streams[0].ids)[None]).logits[0].numpy()
    np.testing.assert_allclose(model.class_logits(recording), expected, atol=SUMMED)
    panel = headlight.panels.predictions.word(run)
    before = oracle(folder, recording)
    order = [list(NAMES.values()).index(each) for each in panel.table["class"]]
    np.testing.assert_allclose(panel.table["logit before"], before[order], atol=SUMMED)
    np.testing.assert_allclose(panel.table["logit after"], expected[order], atol=SUMMED)
    assert [len(row.values) for row in panel.figures[0].rows] == [2, 2, 2]


def from_nothing(folder: Path, n: int) -> np.ndarray:
    """The classes' scores by transformers' own code where the embedding of every word is 0."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    width = model.get_input_embeddings().weight.shape[1]
    with torch.no_grad():
        return model(inputs_embeds=torch.zeros(1, n, width)).logits[0].numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_the_words_sum_to_what_they_bring_to_a_class(kind: str, tmp_path: Path) -> None:
    """The law of completeness, against the scores of transformers' own code."""
    folder = classifier(tmp_path, kind)
    model = headlight.load(f"hub:{folder}")
    recording = model.record(TEXT)
    brought = oracle(folder, recording) - from_nothing(folder, len(recording.streams[0].tokens))
    for at in range(len(NAMES)):
        shares = model.class_attribution(recording, at, steps=300)
        assert shares.shape == (len(recording.streams[0].tokens),)
        # 300 parts of a smooth curve.
        assert shares.sum() == pytest.approx(brought[at], rel=0.01, abs=0.002)
        assert np.abs(shares).max() > STORED
    likeliest = int(model.class_logits(recording).argmax())
    np.testing.assert_array_equal(
        model.class_attribution(recording), model.class_attribution(recording, likeliest)
    )
    np.testing.assert_allclose(
        model.class_logits(recording), oracle(folder, recording), atol=SUMMED
    )
    with pytest.raises(ValueError, match="scores 0 to 2, and none 3"):
        model.class_attribution(recording, 3)


def test_shares_of_a_class_are_those_under_an_edit(tmp_path: Path) -> None:
    """A head whose output is 0 carries nothing; with all of them at 0 in every layer, what [CLS]
    says is of no other word."""
    model = headlight.load(f"hub:{classifier(tmp_path, 'Bert')}")
    heads = [(layer, head) for layer in range(model.card.n_layer) for head in range(4)]
    edited = model.record(TEXT, [edits.ZeroHead(*each) for each in heads])
    shares = model.class_attribution(edited, 1)
    assert np.abs(shares[1:]).max() == 0 < abs(shares[0])


def test_shares_that_miss_their_sum_are_told(tiny_loaded: Callable) -> None:
    """An RMSNorm that reads the embeddings alone has the score jump near 0."""
    for kind, steps in (("llama", 20), ("gpt2", 300)):
        model = tiny_loaded(kind)
        recording = model.record("the cat sat")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.integrated_gradients(recording, recording.streams[0].name, -1, 7, steps=steps)
        told = [str(each.message) for each in told if "steps the shares" in str(each.message)]
        assert len(told) == (kind == "llama"), told


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_shares_of_a_word_in_a_models_own_code(kind: str, tiny_loaded: Callable) -> None:
    """As those of our own classes: they sum to the logit less that of words whose embedding is
    0."""
    model = tiny_loaded(kind)
    recording = model.record("the cat sat")
    stream, last = recording.streams[0], len(recording.streams[0].tokens) - 1
    shares = model.integrated_gradients(recording, stream.name, last, 7, steps=300)
    width = model.network.get_input_embeddings().weight.shape[1]
    with torch.no_grad():
        nothing = model.network(inputs_embeds=torch.zeros(1, last + 1, width)).logits[0, last, 7]
    brought = model.logits(recording, stream.name, last)[7] - float(nothing)
    # 300 parts of a smooth curve.
    assert shares.sum() == pytest.approx(brought, rel=0.01, abs=0.002)


def test_steering_and_a_hidden_word_move_them(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "Bert")
    model = headlight.load(f"hub:{folder}")
    plain = model.record(TEXT)
    push = edits.AddToSite(np.linspace(-3, 3, 32), "1.attn.sum")
    for edit in (push, edits.HideToken(2)):
        edited = model.record(TEXT, edit)
        assert np.abs(model.class_logits(edited) - model.class_logits(plain)).max() > STORED
    hidden = model.record(TEXT, edits.HideToken(2))
    np.testing.assert_allclose(model.class_logits(hidden), oracle(folder, hidden), atol=SUMMED)


def test_a_classifier_in_memory_and_one_of_several_labels(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "Bert", problem_type="multi_label_classification")
    own = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    model = headlight.wrap(own, tiny.wordpiece())
    recording = model.record(TEXT)
    panel = headlight.panels.predictions.word(recording)
    each = 1 / (1 + np.exp(-oracle(folder, recording).astype(float)))
    np.testing.assert_allclose(panel.table["probability"], sorted(each)[::-1], atol=SUMMED)
    assert "sigmoid" in panel.details[0]


def test_what_has_no_classes_says_so(tmp_path: Path) -> None:
    encoder = headlight.load("encoder")
    with pytest.raises(ValueError, match="encoder tells no classes of texts apart"):
        encoder.class_logits(encoder.record(TEXT))
    with pytest.raises(ValueError, match="encoder tells no classes of texts apart"):
        encoder.class_attribution(encoder.record(TEXT))
    name = f"hub:{classifier(tmp_path, 'Bert')}"
    model = headlight.load(name)
    recording = model.record(TEXT)
    with pytest.raises(ValueError, match="has a classification head and no readout"):
        model.attribute(recording, "encoder", 0, 1)
    regression = tmp_path / "one"
    torch.manual_seed(1)
    kind = "BertForSequenceClassification"
    tiny.save(regression, kind, {**tiny.BERT, "num_labels": 1}, tiny.wordpiece)
    assert headlight.load(f"hub:{regression}").capabilities.classes == ()


def test_the_page_shows_its_classes_before_and_after_an_edit(tmp_path: Path) -> None:
    name = f"hub:{classifier(tmp_path, 'Bert')}"
    there(name)
    app = opened("word", model=name, text=TEXT)
    assert not app.exception
    (panel,) = panels_on(app)
    assert panel["title"] == "Class prediction"
    app = opened("word", model=name, text=TEXT, edits="ZeroHead:0:1:self")
    assert not app.exception
