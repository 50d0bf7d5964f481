"""Folders of pretrained weights, read into our own classes with their tokenizers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from tiny_hf_models import bert, uneven
from tokenizers import models as pieces
from tokenizers import normalizers, pre_tokenizers, processors
from tolerances import PASSED, STORED, SUMMED, TOTAL

from models import edits, registry
from models.pretrained import weight_conversion

# ---- from a folder -----------------------------------------------------------


def word_pieces(folder: Path) -> None:
    """A small WordPiece tokenizer as BERT has it, cut off at five tokens, which must not matter."""
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyz.,'",
        *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"),
        "the",
        "cat",
        "mat",
        "sat",
        "##ting",
    ]
    made = tokenizers.Tokenizer(
        pieces.WordPiece({word: at for at, word in enumerate(words)}, unk_token="[UNK]")
    )
    made.normalizer, made.pre_tokenizer = (
        normalizers.BertNormalizer(),
        pre_tokenizers.BertPreTokenizer(),
    )
    made.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    made.enable_truncation(5)
    made.enable_padding(length=5)
    made.save(str(folder / "tokenizer.json"))


def byte_pairs(folder: Path) -> None:
    """A small byte-level BPE as GPT-2 has it."""
    made = tokenizers.Tokenizer(pieces.BPE(unk_token=None))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    from tokenizers import trainers

    made.train_from_iterator(
        ["the cat sat on the mat"],
        trainers.BpeTrainer(
            vocab_size=280,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    made.save(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    uneven(bert()).save_pretrained(folder)
    word_pieces(folder)
    return folder


@pytest.fixture(scope="module")
def gpt2_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import GPT2Config, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("gpt2")
    uneven(
        GPT2LMHeadModel(GPT2Config(vocab_size=280, n_embd=24, n_layer=3, n_head=4, n_positions=40))
    ).save_pretrained(folder)
    byte_pairs(folder)
    return folder


def test_a_bert_in_a_folder(bert_folder: Path) -> None:
    handle = weight_conversion.load(bert_folder, "tiny")
    assert (handle.card.kind, handle.card.n_layer, handle.card.n_positions) == (
        "encoder",
        3,
        40,
    ) and "own classes" in handle.card.weights
    recording = handle.record("The catting mat, ẞ!")
    stream = recording.streams[0]
    assert stream.tokens == (
        "[CLS]",
        "The",
        "cat",
        "‧ting",
        "mat",
        ",",
        "ẞ = [UNK]",
        "! = [UNK]",
        "[SEP]",
    )
    assert [recording.text[start:end] for start, end in stream.spans[1:-1]] == [
        "The",
        "cat",
        "ting",
        "mat",
        ",",
        "ẞ",
        "!",
    ]
    for before, wrote, after in stream.writes():
        np.testing.assert_allclose(
            stream.at(before) + stream.at(wrote), stream.at(after), atol=SUMMED
        )
    assert handle.record("[MASK] cat").streams[0].tokens[1] == "[MASK]"
    assert handle.record("[SEP] cat").streams[0].tokens[1] != "[SEP]", (
        "any other special token that a reader types is text"
    )
    hidden = handle.record("the cat sat", (edits.HideToken(2),))
    assert hidden.streams[0].tokens == ("[CLS]", "the", "[MASK]", "sat", "[SEP]")
    assert handle.labels([2, 3, int(stream.ids[3])]) == ["[CLS]", "[SEP]", "‧ting"]


def test_a_gpt2_in_a_folder(gpt2_folder: Path) -> None:
    handle = weight_conversion.load(gpt2_folder, "tiny")
    recording = handle.record("the cat sat on the mat")
    stream = recording.streams[0]
    assert (
        handle.card.kind == "decoder"
        and stream.sites[-1] == "final.normed"
        and not stream.special.any()
    )
    for before, wrote, after in stream.writes():
        np.testing.assert_allclose(
            stream.at(before) + stream.at(wrote), stream.at(after), atol=PASSED
        )
    assert handle.record("").streams[0].tokens == ("<|endoftext|>",)
    lens = handle.lens(recording, "decoder", 3)
    assert lens.sites[-1] == "final.normed" and lens.kl[-1].max() < STORED
    found = handle.attribute(recording, "decoder", 2, 7, 11)
    assert sum(part.value for part in found.parts) == pytest.approx(found.logit, abs=TOTAL)
    logits = handle.logits(recording, "decoder", 2)
    assert found.logit == pytest.approx(logits[7] - logits[11], abs=TOTAL)
    assert set(handle.norms("decoder")) == {
        "final",
        *(f"{layer}.{place}" for layer in range(3) for place in ("attn", "ffn")),
    }
    writing = handle.generate("the cat")
    writing.add(20)
    np.testing.assert_allclose(
        writing.logits,
        handle.model.logits(handle.model(torch.tensor([writing.ids])))[0, -1].detach(),
        atol=PASSED,
    )
    assert handle.gradients(recording, "decoder", 3).norm.shape[1] == 7
    total = handle.jacobian(recording, "decoder", 2, "1.attn")
    assert total.error < PASSED and np.array_equal(total.total, total.after)


@pytest.mark.parametrize(
    "asked",
    [
        edits.WithoutScale(),
        edits.WithoutPositions(),
        edits.WithoutNorm(1),
        edits.MoveNorm("post"),
        edits.MoveNorm("pre"),
        edits.WithoutResidual(1, "ffn"),
        edits.ZeroHead(1, 2),
        edits.OtherPositions("sinusoids"),
        edits.OtherPositions("rotary"),
        edits.WithoutFeedForward(),
        edits.PatchHead("a mat sat", 0, 1),
    ],
)
def test_every_switch_works_on_pretrained_weights(
    bert_folder: Path, gpt2_folder: Path, asked: edits.Edit
) -> None:
    for folder in (bert_folder, gpt2_folder):
        handle = weight_conversion.load(folder, "tiny")
        plain, changed = (
            handle.record("the cat sat"),
            handle.record("the cat sat", (asked,)),
        )
        assert np.isfinite(changed.streams[0].resid).all()
        if asked != edits.MoveNorm(handle.model.config.norm):
            assert np.abs(changed.streams[0].resid[-1] - plain.streams[0].resid[-1]).max() > 1e-4


def test_a_decoder_with_marks_in_its_vocabulary_reads_no_frame(
    gpt2_folder: Path, tmp_path: Path
) -> None:
    for file in gpt2_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    pieces_of = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    pieces_of.add_special_tokens(["<s>", "</s>"])
    pieces_of.save(str(tmp_path / "tokenizer.json"))
    assert weight_conversion.load(tmp_path, "tiny").ends == ((), ())


def test_what_cannot_be_read_in_our_classes_is_left_to_its_own_code(
    bert_folder: Path, tmp_path: Path
) -> None:
    assert weight_conversion.covers(bert_folder)
    for file in bert_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "tokenizer.json").write_text("{}")
    assert not weight_conversion.covers(tmp_path)
    with pytest.raises(ValueError):
        registry.load(f"ours:{tmp_path}")


def test_a_folder_that_does_not_fit_says_why(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(ValueError, match="t5"):
        weight_conversion.load(tmp_path, "x")
