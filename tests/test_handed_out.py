"""What transformers, tokenizers and torch hand out: each form is read as what it is, or answered by
a sentence that says what to give in its place."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from tolerances import SUMMED
from torch import nn
from transformers.utils import ModelOutput

import headlight
from headlight import panels
from models import readouts
from models.contract.capabilities import READ_OFF
from models.contract.notices import Notice
from models.inputs import handed_out, recorded_model
from models.pretrained import hf_source

IDS = torch.arange(20, 27)[None]
LABELS = [f"t{at}" for at in range(7)]
pytestmark = pytest.mark.slow


@cache
def network(kind: str, attention: str = "eager") -> nn.Module:
    settings = {each: made for _, each, made in tiny.MODELS.values()}.get(kind, tiny.T5)
    torch.manual_seed(4)
    model = tiny.random_model(kind, settings)
    model.set_attn_implementation(attention)
    return model


@torch.no_grad()
def output(kind: str = "GPT2LMHeadModel", attention: str = "eager", **given: object) -> object:
    asked = {"input_ids": IDS, "output_attentions": True}
    return network(kind, attention)(**asked | given)


def viewed(given: object, tokens: object = LABELS) -> np.ndarray:
    return headlight.view(given, tokens).attention[0].pattern


def of_two(side: str, kind: str = "GPT2LMHeadModel") -> list[torch.Tensor]:
    """The second of a batch of two texts, with two tokens of padding at a side of it."""
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, slice(0, 2) if side == "left" else slice(5, 7)] = 0
    given = output(kind, input_ids=IDS.expand(2, -1), attention_mask=mask)
    return [each[1:] for each in given.attentions]


# ---- a reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "BertForMaskedLM"])
def test_a_models_output_is_read_as_its_attentions(kind: str) -> None:
    given = output(kind)
    true = torch.cat(given.attentions).numpy()
    for form in (
        given,
        dict(given),
        given.attentions,
        [*given.attentions],
        torch.cat(given.attentions),
    ):
        np.testing.assert_array_equal(viewed(form), true)
    half = [each.bfloat16() for each in given.attentions]
    np.testing.assert_allclose(viewed(half), true, atol=2**-8)  # of 8 bits of a weight


def test_a_part_of_two_is_read_by_itself() -> None:
    given = output("T5ForConditionalGeneration", decoder_input_ids=IDS[:, :5])
    of_encoder = headlight.view(given.encoder_attentions, LABELS)
    assert of_encoder.model.kind == "encoder"
    of_decoder = headlight.view(given.decoder_attentions, LABELS[:5])
    assert of_decoder.model.kind == "decoder"
    np.testing.assert_array_equal(
        of_decoder.attention[0].pattern, torch.cat(given.decoder_attentions).numpy()
    )


def test_layers_without_attention_keep_the_numbers_of_the_others() -> None:
    first, second = output().attentions
    recording = headlight.view([None, first, None, second], LABELS)
    assert recording.attention[0].layers.tolist() == [1, 3]
    np.testing.assert_array_equal(recording.attention[0].pattern, torch.cat([first, second]))
    assert headlight.panels.attention.head(recording, 1, 2).figures


def test_tokens_are_labels_ids_or_what_a_tokenizer_gives() -> None:
    tokenizer = tiny.wordpiece()
    encoded = tokenizer("the cat sat on the")
    given = output("BertForMaskedLM", input_ids=torch.tensor([encoded.input_ids]))
    labels = tuple(tokenizer.convert_ids_to_tokens(encoded.input_ids))
    assert len(labels) == 7
    for tokens in (encoded, tokenizer("the cat sat on the", return_tensors="pt"), list(labels)):
        assert headlight.view(given, tokens).streams[0].tokens == labels
    for tokens in (encoded.encodings[0], np.array(labels)):
        assert headlight.view(given, tokens).streams[0].tokens == labels
    ids = torch.tensor([encoded.input_ids])
    for tokens in (ids, ids[0], ids[0].tolist(), {"input_ids": encoded.input_ids}):
        said = headlight.view(given, tokens).streams[0].tokens
        assert said == tuple(map(str, encoded.input_ids))


def test_a_pair_of_sentences_is_one_row_of_tokens() -> None:
    encoded = tiny.wordpiece()("the cat", "the dog")
    inputs = {key: torch.tensor(each)[None] for key, each in encoded.items()}
    given = output("BertForMaskedLM", **inputs)
    recording = headlight.view(given, encoded)
    assert recording.streams[0].tokens.count("[SEP]") == 2
    np.testing.assert_array_equal(recording.attention[0].pattern, torch.cat(given.attentions))


# ---- a sentence ----------------------------------------------------------------------------------


def generated(**given: object) -> object:
    return network("GPT2LMHeadModel").generate(
        IDS, max_new_tokens=2, do_sample=False, pad_token_id=0, output_attentions=True, **given
    )


SAID = {
    "nothing": (lambda: None, "attn_implementation='eager'"),
    "no layers": (lambda: (), "output_attentions=True"),
    "layers of nothing": (lambda: (None, None), "no weights of attention here"),
    "empty layers": (lambda: ((), ()), "no weights of attention here"),
    "sdpa": (lambda: output(attention="sdpa").attentions, "attn_implementation='eager'"),
    "sdpa's output": (lambda: output(attention="sdpa"), "attn_implementation='eager'"),
    "not asked for": (lambda: output(output_attentions=False), "output_attentions=True"),
    "two parts": (
        lambda: output("T5ForConditionalGeneration", decoder_input_ids=IDS[:, :5]),
        "give its encoder_attentions or decoder_attentions",
    ),
    "two parts, not asked for": (
        lambda: output(
            "T5ForConditionalGeneration", decoder_input_ids=IDS, output_attentions=False
        ),
        "output_attentions=True",
    ),
    "two rows": (
        lambda: output("T5ForConditionalGeneration", decoder_input_ids=IDS[:, :5]).cross_attentions,
        "has 5 queries and 7 keys; there are 7 tokens, and another row of them is read, of ",
    ),
    "generate by two parts": (
        lambda: {"sequences": IDS, "decoder_attentions": ()},
        "call the model once on its sequences",
    ),
    "steps of another text": (
        lambda: [[torch.ones(1, 2, 3, 3)], [torch.ones(1, 2, 1, 3)]],
        "do not make the rows of one text",
    ),
    "steps of a batch": (
        lambda: [[torch.ones(2, 2, 3, 3)], [torch.ones(2, 2, 1, 4)]],
        "there are 2 texts in this batch",
    ),
    "a tuple": (lambda: output(return_dict=False), "give the weights of attention alone"),
    "a batch": (
        lambda: output(input_ids=IDS.expand(3, -1)).attentions,
        r"there are 3 texts in this batch; give its attention_mask as mask, or those of one, \[",
    ),
    "a window": (lambda: np.full((1, 2, 7, 3), 1 / 3), "has 7 queries and 3 keys"),
    "padded left": (
        lambda: of_two("left"),
        r"tokens 0 to 1 are padding.*attention\[..., 2:7, 2:7\]",
    ),
    "padded right": (lambda: of_two("right"), r"tokens 5 to 6 are padding.*and tokens\[0:5\]"),
    "an encoder padded left": (lambda: of_two("left", "BertForMaskedLM"), "tokens 0 to 1 are padd"),
    "an encoder padded right": (lambda: of_two("right", "BertForMaskedLM"), "tokens 5 to 6 are p"),
    "an output of two models": (
        lambda: ModelOutput(text_model_output=output(), logits_per_image=torch.ones(1, 1)),
        "give those of one part of it, such as output.text_model_output.attentions",
    ),
    "a head with a sink": (
        lambda: 0.6 * torch.cat(output().attentions),
        r"sums to 0.6; where a head has a sink.*headlight.wrap\(model, tokenizer\)",
    ),
    "rows of zeros": (lambda: with_rows(0.0), "tokens 0 to 1 are padding"),
    "rows of NaN": (lambda: with_rows(float("nan")), "tokens 0 to 1 are padding"),
}


def with_rows(value: float) -> torch.Tensor:
    array = torch.cat(of_two("left"))
    array[:, :, :2] = value
    return array


@pytest.mark.parametrize("form", SAID)
def test_what_is_no_attention_of_one_text_says_what_to_give(form: str) -> None:
    given, why = SAID[form]
    with pytest.raises(ValueError, match=why):
        headlight.view(given(), LABELS)


def test_cross_attention_beside_a_decoders_own_is_said_not_to_be_shown() -> None:
    own = output().attentions
    with pytest.warns(Notice, match="cross-attention of this output is not shown"):
        read = viewed(ModelOutput(attentions=own, cross_attentions=own))
    np.testing.assert_array_equal(read, torch.cat(own).numpy())


def test_what_the_sentences_advise_is_read() -> None:
    """Of a batch one text, of a padded text the text alone: its weights without the padding."""
    batch = output(input_ids=IDS.expand(3, -1)).attentions
    alone = torch.cat(output().attentions).numpy()
    np.testing.assert_allclose(viewed([each[0:1] for each in batch]), alone, atol=SUMMED)
    for side, kept in (("left", slice(2, 7)), ("right", slice(0, 5))):
        for kind in ("GPT2LMHeadModel", "BertForMaskedLM"):
            text = [each[..., kept, kept] for each in of_two(side, kind)]
            assert viewed(text, LABELS[kept]).shape[-1] == 5
    given = generated(return_dict_in_generate=True)
    once = output(input_ids=given.sequences)
    assert viewed(once, given.sequences).shape[-1] == 9


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "LlamaForCausalLM", "OPTForCausalLM"])
def test_the_steps_of_generate_are_the_rows_of_one_pass(kind: str) -> None:
    """The last token was written and not read; a warning says so."""
    given = network(kind).generate(
        **{"inputs": IDS, "max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False},
        **{"pad_token_id": 0, "output_attentions": True, "return_dict_in_generate": True},
    )
    n = given.sequences.shape[1] - 1
    once = output(kind, input_ids=given.sequences[:, :n]).attentions
    labels = [str(each) for each in given.sequences[0].tolist()]
    for steps in (given, given.attentions):
        with pytest.warns(Notice, match="was written and not read, so it has no row"):
            read = headlight.view(steps, labels)
        np.testing.assert_allclose(read.attention[0].pattern, torch.cat(once).numpy(), atol=SUMMED)
        assert list(read.streams[0].tokens) == labels[:n] and read.streams[0].name == "decoder"


@pytest.mark.parametrize(
    "kind", ["T5ForConditionalGeneration", "BartForConditionalGeneration", "MarianMTModel"]
)
def test_cross_attention_is_read_with_what_its_keys_are_called(kind: str) -> None:
    given = output(kind, decoder_input_ids=IDS[:, :5]).cross_attentions
    words = ["le", "chat", "est", "sur", "lui"]
    recording = headlight.view(given, words, keys=LABELS)
    (attention,) = recording.attention
    np.testing.assert_array_equal(attention.pattern, torch.cat(given).numpy())
    assert recording.stream(attention.query).tokens == tuple(words)
    assert recording.stream(attention.key).tokens == tuple(LABELS)
    assert panels.attention.heads(recording).table["head"][:2] == [0, 1]
    (figure,) = panels.attention.head(recording, layer=1, head=1).figures
    assert figure.columns == tuple(LABELS)
    assert figure.texts == (*words[1:], "…"), "a row is that of the word that is written from it"
    again = headlight.from_npz(headlight.to_npz(recording))
    assert again == recording
    with pytest.raises(
        ValueError, match="has 5 queries and 7 keys; there are 4 tokens and 7 names"
    ):
        headlight.view(given, words[:4], keys=LABELS)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "LlamaForCausalLM", "BertForMaskedLM"])
def test_a_batch_with_its_mask_is_a_recording_of_each_text(kind: str, side: str) -> None:
    seen = [1, 1, 1, 1, 1, 0, 0] if side == "right" else [0, 0, 1, 1, 1, 1, 1]
    mask = torch.tensor([[1] * 7, seen])
    given = output(kind, input_ids=IDS.expand(2, -1), attention_mask=mask)
    read = headlight.view(given, [LABELS, LABELS], mask=mask)
    assert read[0].streams[0].tokens == tuple(LABELS)
    kept = mask[1].bool().numpy()
    assert read[1].streams[0].tokens == tuple(np.array(LABELS)[kept])
    for at, recording in enumerate(read):
        kept = mask[at].bool().numpy()
        whole = np.stack([each[at].numpy() for each in given.attentions])
        np.testing.assert_array_equal(
            recording.attention[0].pattern, whole[:, :, kept][:, :, :, kept]
        )
    with pytest.raises(ValueError, match=r"the mask \(text, token\), and tokens a row for each"):
        headlight.view(given, [LABELS], mask=mask)


def test_attention_that_is_no_padding_is_read() -> None:
    """Hard heads, uniform ones, and a token that only a mask of its own hides."""
    n = 7
    previous = np.eye(n, k=-1)
    previous[0, 0] = 1
    first = np.zeros((n, n))
    first[:, 0] = 1
    even = np.tril(np.ones((n, n)))
    turned = even[::-1, ::-1]
    for array in (previous, first, np.eye(n), even, turned, np.ones((n, n)), first[:, ::-1]):
        weights = array / array.sum(-1, keepdims=True)
        np.testing.assert_allclose(viewed(weights)[0, 0], weights, atol=SUMMED)
    named = [*LABELS[:5], "[PAD]", "[PAD]"]
    assert viewed(output("BertForMaskedLM"), named).shape[-1] == n, "they were read as tokens"
    hard = previous.copy()
    hard[5:] = 0
    hard[5:, 0] = 1
    with pytest.raises(ValueError, match="tokens 5 to 6 are padding"):
        viewed(hard, named)


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        (None, "labels in a list"),
        (7, "labels in a list"),
        (tiny.wordpiece()(["the cat", "the dog"]), r"those of 2 texts; give encoding.tokens\(0\)"),
        (IDS.expand(2, -1), "those of 2 texts; give those of one"),
    ],
)
def test_what_is_no_row_of_labels_says_what_to_give(tokens: object, why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        headlight.view(output(), tokens)


def test_a_cache_says_the_same() -> None:
    attentions = output().attentions
    cache = {f"transformer.h.{at}.attn": each for at, each in enumerate(attentions)}
    made = headlight.from_cache(cache, IDS)
    np.testing.assert_array_equal(made.attention[0].pattern, torch.cat(attentions).numpy())
    with pytest.raises(ValueError, match="give it to headlight.view"):
        headlight.from_cache(output(), LABELS)
    with pytest.raises(TypeError, match="a dict of arrays by their names, and no tuple"):
        headlight.from_cache(attentions, LABELS)
    without = {key: (torch.zeros(1, 7, 32), None) for key in cache}
    with pytest.raises(ValueError, match="attn.hook_pattern of layer 0; .*='eager'|count from 0"):
        headlight.from_cache(without, LABELS)
    padded = {f"transformer.h.{at}.attn": each for at, each in enumerate(of_two("left"))}
    with pytest.raises(ValueError, match="tokens 0 to 1 are padding"):
        headlight.from_cache(padded, LABELS)


def test_every_form_of_the_table_is_met_here() -> None:
    met = {
        form.name for given, _ in SAID.values() for form in handed_out.FORMS if form.fits(given())
    }
    assert met | {"an output of a model", "an output of generate"} == {
        form.name for form in handed_out.FORMS
    }


def test_arrays_that_hold_no_weights_raise_a_sentence() -> None:
    for value in (torch.zeros(7, 7, device="meta"), torch.eye(7).to(torch.complex64), "words"):
        with pytest.raises(TypeError, match="an array of numbers, and not "):
            headlight.view(value, LABELS)
    for kind in (torch.float8_e4m3fn, torch.float16, torch.float64):
        np.testing.assert_array_equal(viewed(torch.eye(7).to(kind))[0, 0], np.eye(7))
    np.testing.assert_array_equal(viewed(torch.eye(7).to_sparse())[0, 0], np.eye(7))


# ---- models --------------------------------------------------------------------------------------


def plain_recording() -> object:
    return headlight.wrap(network("GPT2LMHeadModel")).record([20, 21, 22])


def compiled_in_place() -> nn.Module:
    model = deepcopy(network("GPT2LMHeadModel"))
    model.transformer.h[0].mlp.compile(backend="eager")
    return model


@pytest.mark.parametrize(
    "made",
    [
        lambda: torch.compile(deepcopy(network("GPT2LMHeadModel"))),
        compiled_in_place,
        lambda: nn.DataParallel(deepcopy(network("GPT2LMHeadModel"))),
        lambda: deepcopy(network("GPT2LMHeadModel", "sdpa")),
    ],
)
def test_a_compiled_or_parallel_model_is_the_model_in_it(made: Callable) -> None:
    recording, true = headlight.wrap(made()).record([20, 21, 22]), plain_recording()
    assert recording.model.name.startswith("mine:GPT2LMHeadModel-")
    np.testing.assert_allclose(recording.streams[0].resid, true.streams[0].resid, atol=SUMMED)
    np.testing.assert_allclose(
        recording.attention[0].pattern, true.attention[0].pattern, atol=SUMMED
    )


def test_autocast_halves_no_numbers() -> None:
    """Of a caller's model and of one of Headlight's own, when it is looked over and recorded."""
    true, own = plain_recording(), headlight.load("encoder")
    plain = own.record("the cat sat")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.ones(2, 2).mm(torch.ones(2, 2)).dtype == torch.bfloat16
        halved = headlight.wrap(network("GPT2LMHeadModel")).record([20, 21, 22])
        again = own.record("the cat sat")
        said = own.logits(again, "encoder", 1)
    np.testing.assert_array_equal(halved.streams[0].resid, true.streams[0].resid)
    assert halved.streams[0].sites == true.streams[0].sites
    np.testing.assert_array_equal(again.streams[0].resid, plain.streams[0].resid)
    np.testing.assert_array_equal(said, own.logits(plain, "encoder", 1))


NO_MODELS: dict[str, tuple[Callable, type, str]] = {
    "a name": (lambda: "owner/model", TypeError, r"headlight.load\('hub:owner/model'\) loads"),
    "a class": (lambda: type(network("GPT2LMHeadModel")), TypeError, "a model and no class"),
    "a pipeline": (
        lambda: SimpleNamespace(model=network("GPT2LMHeadModel"), tokenizer=tiny.gpt2_bytes()),
        TypeError,
        "give the model in it",
    ),
    "weights that hold nothing": (
        lambda: deepcopy(network("GPT2LMHeadModel")).to("meta"),
        ValueError,
        "the device meta, which holds no numbers; load it with",
    ),
    "numbers of 8 bits": (
        lambda: deepcopy(network("GPT2LMHeadModel")).to(torch.float8_e4m3fn),
        ValueError,
        r"float8_e4m3fn, in which .* give model.float\(\)",
    ),
    "several texts at once": (
        lambda: tiny.random_model("BertForMultipleChoice", tiny.BERT),
        ValueError,
        r"breaks off on a text of 7 tokens \(“shape .*”\); wrap the part of it",
    ),
}


@pytest.mark.parametrize("form", NO_MODELS)
def test_what_is_no_model_of_a_text_says_what_to_give(form: str) -> None:
    made, kind, why = NO_MODELS[form]
    with pytest.raises(kind, match=why):
        headlight.wrap(made(), tiny.wordpiece())


def test_a_model_of_two_parts_with_a_head_reads_its_text_twice() -> None:
    own = tiny.random_model("BartForQuestionAnswering", tiny.BART)
    recording = headlight.wrap(own, tiny.framed_bytes()).record("the cat sat")
    ids = torch.tensor(recording.streams[0].ids)[None]
    own.set_attn_implementation("eager")
    with torch.no_grad():
        true = own(ids, output_attentions=True)
    for name in ("decoder_attentions", "cross_attentions"):
        of = {"decoder_attentions": "decoder self", "cross_attentions": "cross"}[name]
        (attention,) = [each for each in recording.attention if each.name == of]
        np.testing.assert_allclose(attention.pattern, torch.cat(true[name]), atol=SUMMED)


def test_padding_among_ids_is_not_read_as_text() -> None:
    model = headlight.wrap(network("BertForMaskedLM"), tiny.wordpiece())
    text = tiny.wordpiece()("the cat").input_ids
    for ids, place in ((text + [0, 0], "end"), ([0, 0, *text], "begin")):
        with pytest.raises(ValueError, match=rf"the ids {place} with padding, 2 × .*PAD"):
            model.record(ids)
    assert model.record(text).streams[0].ids.tolist() == text
    ends = headlight.wrap(network("GPT2LMHeadModel"), tiny.gpt2_bytes())  # where it ends texts too
    assert len(ends.record([20, 0]).streams[0].ids) == 2


def test_a_tokenizer_of_another_model_is_told_so() -> None:
    few = tiny.random_model("BertForMaskedLM", {**tiny.BERT, "vocab_size": 20})
    model = headlight.wrap(few, tiny.wordpiece())
    with pytest.raises(ValueError, match=r"embeddings of 20 tokens, and its tokenizer gives '.*' "):
        model.record("the cat sat on the mat")


# ---- what its own code does not show -------------------------------------------------------------


def test_what_is_read_off_weights_says_what_it_is_and_where_to_find_it(
    tiny_folder: Callable,
) -> None:
    folder = tiny_folder("gpt2")
    in_own_code = headlight.load(f"hub:{folder}")
    with pytest.raises(ValueError) as said:
        in_own_code.outputs()
    assert "does not show its matrices, norms and embeddings; load ours:" in str(said.value)
    ours = headlight.load(str(said.value).partition("; load ")[2].partition(",")[0])
    assert ours.outputs()["self"][0].shape[:2] == (2, 4)
    mine = headlight.wrap(network("T5ForConditionalGeneration"))
    recording = mine.record([20, 21, 22], (), (23, 24))
    questions = {
        "its matrices": lambda: mine.norms("decoder"),
        "the hidden units of its FFN": lambda: mine.ffn_activations(recording, "decoder", 0, 0),
        "the circuits of its heads": lambda: mine.circuits("cross", 0, 0, (1, 2)),
        "gradients within a layer": lambda: mine.jacobian(recording, "decoder", 0, "0.attn"),
        "what its scores are sums": lambda: mine.score_parts(recording, "cross", 0, 0, 0, 0),
        "what a head brings": lambda: mine.head_sources(recording, "decoder", 0, 5),
    }
    for what, asked in questions.items():
        with pytest.raises(ValueError, match=f"does not show {what}.*; .*(model|recording|edits)"):
            asked()
    wrapped = headlight.wrap(network("GPT2LMHeadModel"))
    with pytest.raises(ValueError, match="save it with save_pretrained and load ours:FOLDER"):
        wrapped.outputs()
    arrays = headlight.view(output(), LABELS)
    with pytest.raises(ValueError, match="matrices.* cannot be read: there are arrays and no"):
        headlight.load(arrays.model.name).outputs()
    opened = recorded_model.opened(headlight.to_npz(recording))
    with pytest.raises(ValueError, match="such as its matrices.*; record the text with its model"):
        opened.outputs()


def test_every_readout_has_a_name_in_the_sentence() -> None:
    assert {each.name for each in pkgutil.iter_modules(readouts.__path__)} == {*READ_OFF}
    assert {*hf_source.INSTEAD, "patching"} == {*READ_OFF}, "sweeps run in its own code too"
