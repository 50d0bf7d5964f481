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
from conftest import in_turn
from test_hf_models_on_pages import opened, there
from tolerances import STORED, SUMMED

import headlight
from explorer.wording.markdown_escape import literal
from models.contract import edits
from models.contract.recording import Recording
from models.pretrained import sandbox
from models.runtime.run import Run

pytestmark = pytest.mark.slow
NAMES = {0: "calm", 1: "glad <b>", 2: "sad"}
KINDS: dict[str, tuple[Callable, dict]] = {
    "Bert": (tiny.wordpiece, tiny.BERT),
    "Roberta": (tiny.framed_bytes, tiny.PADDED),
    "DistilBert": (tiny.wordpiece, tiny.DISTIL),
    "GPT2": (tiny.gpt2_bytes, {**tiny.GPT2, **tiny.ENDS, "pad_token_id": 0}),
}
TRIED = ("Bert", "GPT2")  # in a process of their own, seconds each
TEXT = "the cat sat on the mat"
STEPS = 100  # of a sum along a smooth curve


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
    if kind in TRIED:
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


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_the_words_sum_to_what_they_bring_to_a_class(kind: str, tmp_path: Path) -> None:
    """The law of completeness, against the scores of transformers' own code, of a class in turn."""
    folder = classifier(tmp_path, kind)
    model = headlight.load(f"hub:{folder}")
    recording = model.record(TEXT)
    brought = oracle(folder, recording) - from_nothing(folder, len(recording.streams[0].tokens))
    for at in in_turn(range(len(NAMES)), len(NAMES), kind):
        shares = model.class_attribution(recording, at, steps=STEPS)
        assert shares.shape == (len(recording.streams[0].tokens),)
        # Of a smooth curve.
        assert shares.sum() == pytest.approx(brought[at], rel=0.01, abs=0.002)
        assert np.abs(shares).max() > STORED
    likeliest = int(model.class_logits(recording).argmax())
    np.testing.assert_array_equal(
        model.class_attribution(recording, steps=2),
        model.class_attribution(recording, likeliest, steps=2),
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


HEADS = {**KINDS, "Electra": (tiny.wordpiece, tiny.BERT), "Albert": (tiny.wordpiece, tiny.BERT)}
POOLERS = {"Bert": "tanh", "Roberta": "tanh", "DistilBert": "relu", "GPT2": ""}
POOLERS |= {"Electra": "gelu", "Albert": "tanh"}


@pytest.mark.parametrize("kind", HEADS)
def test_parts_of_a_class_sum_to_its_score(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of transformers' own code, with a head that is off too; each head has a part."""
    monkeypatch.setitem(KINDS, kind, HEADS[kind])
    folder = classifier(tmp_path, kind)
    model = headlight.load(f"hub:{folder}")
    assert model.capabilities.pooler == POOLERS[kind]
    for edited in ((), edits.HideToken(2), edits.ZeroHead(1, 2)):
        if kind == "GPT2" and isinstance(edited, edits.HideToken):
            continue
        recording = model.record(TEXT, edited)
        scores = model.class_logits(recording).astype(float)
        if not isinstance(edited, edits.ZeroHead):
            scores = oracle(folder, recording).astype(float)
        made = model.class_parts(recording, 1, against=2)
        assert made.token == (len(recording.streams[0].tokens) - 1 if kind == "GPT2" else 0)
        assert made.logit == pytest.approx(scores[1] - scores[2], abs=SUMMED)
        assert sum(each.value for each in made.parts) == pytest.approx(made.logit, abs=SUMMED)
        assert made.explained == 1.0 if kind == "GPT2" else made.explained < 1.0
        if edited == ():
            heads = [(each.layer, each.head) for each in made.parts if each.kind == "head"]
            assert heads == [(layer, head) for layer in (0, 1) for head in range(4)]
    assert model.class_parts(recording).id == scores.argmax()
    with pytest.raises(ValueError, match="scores 0 to 2, and none 3"):
        model.class_parts(recording, 0, against=3)


def test_a_heads_part_is_what_its_own_code_makes_of_it(tmp_path: Path) -> None:
    """The score of transformers' own code by a head's output in the last layer, where norms keep
    their spread, the feed-forward network its output and each tanh its ratio to its input."""
    folder = classifier(tmp_path, "Bert")
    recording = (model := headlight.load(f"hub:{folder}")).record(TEXT)
    own = transformers.BertForSequenceClassification.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    layer, brought = own.bert.encoder.layer[1], []

    def of_heads(module, args):
        brought.append(args[0].detach().requires_grad_())
        return (brought[0], *args[1:])

    def held(norm, args, output):
        x = args[0]
        sigma = (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt().detach()
        return (x - x.mean(-1, keepdim=True)) / sigma * norm.weight + norm.bias

    layer.attention.output.dense.register_forward_pre_hook(of_heads)
    layer.intermediate.register_forward_pre_hook(lambda module, args: (args[0].detach(),))
    for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
        norm.register_forward_hook(held)
    own.bert.pooler.activation.register_forward_hook(
        lambda module, args, output: args[0] * (output / args[0]).detach()
    )
    scores = own(torch.tensor(recording.streams[0].ids)[None]).logits[0]
    (gradient,) = torch.autograd.grad(scores[2], brought[0])
    expected = (gradient * brought[0])[0, 0].detach().unflatten(0, (4, 8)).sum(-1).numpy()
    parts = [each for each in model.class_parts(recording, 2).parts if each.layer == 1]
    found = [each.value for each in parts if each.kind == "head"]
    np.testing.assert_allclose(found, expected, atol=SUMMED)
    assert np.abs(expected).min() > STORED


def test_shares_of_a_difference_are_the_difference_of_shares(tmp_path: Path) -> None:
    model = headlight.load(f"hub:{classifier(tmp_path, 'Roberta')}")
    recording = model.record(TEXT)
    one, other = (model.class_attribution(recording, at, steps=2) for at in (0, 2))
    both = model.class_attribution(recording, 0, against=2, steps=2)
    np.testing.assert_allclose(both, one - other, atol=SUMMED)


def test_a_head_that_reads_otherwise_is_refused(tmp_path: Path) -> None:
    """The mean of all tokens is no vector of the first or the last one."""
    folder = classifier(tmp_path, "Bert")
    own = transformers.BertForSequenceClassification.from_pretrained(folder)
    own.bert.pooler.forward = lambda states: torch.tanh(own.bert.pooler.dense(states.mean(1)))
    model = headlight.wrap(own, tiny.wordpiece())
    recording = model.record(TEXT)
    with pytest.raises(ValueError, match="cannot be taken apart: its head reads the mean of all"):
        model.class_parts(recording)
    assert model.class_attribution(recording).shape == (len(recording.streams[0].tokens),)


def test_shares_that_miss_their_sum_are_told(tiny_loaded: Callable) -> None:
    """An RMSNorm that reads the embeddings alone has the score jump near 0."""
    for kind, steps in (("llama", 20), ("gpt2", STEPS)):
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
    shares = model.integrated_gradients(recording, stream.name, last, 7, steps=STEPS)
    width = model.network.get_input_embeddings().weight.shape[1]
    with torch.no_grad():
        nothing = model.network(inputs_embeds=torch.zeros(1, last + 1, width)).logits[0, last, 7]
    brought = model.logits(recording, stream.name, last)[7] - float(nothing)
    # Of a smooth curve.
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
    purpose = "sorts a text into 3 classes: calm, glad <b>, sad"
    labels = [each.proto.popover.label for each in app.get("popover")]
    assert any(label.endswith(literal(purpose)) for label in labels), labels
    app = opened("word", model=name, text=TEXT, edits="ZeroHead:0:1:self")
    assert not app.exception


@pytest.mark.parametrize("chosen", [{}, {"of_class": 2, "against_class": -1}])
def test_the_panel_of_a_class_has_the_numbers_of_the_library(chosen: dict, tmp_path: Path) -> None:
    model = headlight.load(f"hub:{classifier(tmp_path, 'Bert')}")
    recording = model.record(TEXT)
    panel = headlight.panels.attribution.class_logit(recording, part="self.1.2", **chosen)
    one, other, *_ = np.argsort(-model.class_logits(recording)).tolist()
    target = (2, None) if chosen else (one, other)
    made = model.class_parts(recording, *target)
    by_word, in_order, largest = panel.figures
    shares = model.class_attribution(recording, target[0], against=target[1])
    np.testing.assert_allclose([row.values[0] for row in by_word.rows], shares)
    assert [row.label for row in by_word.rows] == list(recording.streams[0].tokens)
    assert in_order.rows[-1].values[0] == pytest.approx(made.logit, abs=SUMMED)
    (head,) = [row for row in largest.rows if row.selected]
    (part,) = [each for each in made.parts if (each.layer, each.head) == (1, 2)]
    assert head.values[0] == part.value
    assert [f"“{NAMES[at]}”" in panel.finding for at in target if at is not None] == [True] * (
        1 if chosen else 2
    )
    assert f"{made.explained:.0%} of the squared changes" in " ".join(panel.details)
    assert "the activation tanh" in " ".join(panel.details)
    with pytest.raises(ValueError, match="compared with itself"):
        headlight.panels.attribution.class_logit(recording, of_class=1, against_class=1)
    with pytest.raises(ValueError, match="class is 3; it may be 0 to 2|class 3"):
        headlight.panels.attribution.class_logit(recording, of_class=3)
    with pytest.raises(ValueError, match="tells no classes of texts apart"):
        headlight.panels.attribution.class_logit(headlight.record("encoder", TEXT))


def test_a_panel_of_a_class_that_is_no_sum_has_the_words(tmp_path: Path) -> None:
    own = transformers.BertForSequenceClassification.from_pretrained(classifier(tmp_path, "Bert"))
    own.bert.pooler.forward = lambda states: torch.tanh(own.bert.pooler.dense(states.mean(1)))
    model = headlight.wrap(own, tiny.wordpiece())
    panel = headlight.panels.attribution.class_logit(model.record(TEXT))
    says = "its head reads the mean of all tokens’ vectors, and parts are those of one vector"
    assert len(panel.figures) == 1 and says in " ".join(panel.details)


def test_the_attribution_tab_of_a_classifier_is_of_its_classes(tmp_path: Path) -> None:
    name = f"hub:{classifier(tmp_path, 'Bert')}"
    there(name)
    app = opened("attribution", model=name, text=TEXT, of_class="2", part="self.0.1")
    assert not app.exception and app.session_state.model == name
    assert [each.label for each in app.tabs][:2] == ["Class", "Why this class"]
    assert not [each for each in app.segmented_control if str(each.key).startswith("rows of ")]
    (panel,) = panels_on(app)
    assert panel["title"] == "Attribution of a class" and f"“{NAMES[2]}”" in panel["finding"]
    assert any("Layer 0, head 1" in each.value for each in app.markdown)
    classes = app.selectbox(key="of_class menu")
    assert classes.label == "Logit of" and classes.value == "2"
    edited = opened("attribution", model=name, text=TEXT, of_class="2", edits="ZeroHead:0:1:self")
    assert panels_on(edited)[0]["finding"] != panel["finding"]
