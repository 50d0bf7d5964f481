"""Folders of pretrained weights, read into our own classes with their tokenizers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
import tokenizers

from models.contract import edits
from models.pretrained import weight_conversion
from models.runtime import registry


@pytest.fixture
def copied(tiny_folder: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a family's tiny model, which a test may change."""
    return lambda family: Path(shutil.copytree(tiny_folder(family), tmp_path / family))


def test_a_bert_in_a_folder(copied: Callable[[str], Path]) -> None:
    folder = copied("bert")
    # Cut off and filled up to five tokens, which must not matter.
    rules = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    rules.enable_truncation(5)
    rules.enable_padding(length=5)
    rules.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").unlink()  # which says nothing that is needed
    model = weight_conversion.load(folder, "tiny")
    of = model.card
    assert (of.kind, of.n_layer, of.n_positions) == ("encoder", 2, 40)
    assert "own classes" in of.weights
    recording = model.record("The cats sat on the mat, ẞ!")
    stream = recording.streams[0]
    words = "[CLS] The cat ‧s sat on the mat ,".split()
    assert stream.tokens == (*words, "ẞ = [UNK]", "! = [UNK]", "[SEP]")
    assert [recording.text[start:end] for start, end in stream.spans[1:-1]] == [
        *("The", "cat", "s", "sat", "on", "the", "mat", ",", "ẞ", "!")
    ]
    assert model.record("[MASK] cat").streams[0].tokens[1] == "[MASK]"
    assert model.record("[SEP] cat").streams[0].tokens[1] != "[SEP]", (
        "any other special token that a reader types is text"
    )
    hidden = model.record("the cat sat", (edits.HideToken(2),))
    assert hidden.streams[0].tokens == ("[CLS]", "the", "[MASK]", "sat", "[SEP]")
    assert model.labels([2, 3, int(stream.ids[3])]) == ["[CLS]", "[SEP]", "‧s"]


def test_a_gpt2_in_a_folder(tiny_folder: Callable[[str], Path]) -> None:
    model = weight_conversion.load(tiny_folder("gpt2"), "tiny")
    stream = model.record("the cat sat on the mat").streams[0]
    assert model.card.kind == "decoder" and stream.sites[-1] == "final.normed"
    assert not stream.special.any()
    assert model.record("").streams[0].tokens == ("<|endoftext|>",)
    places = {f"{layer}.{place}" for layer in range(2) for place in ("attn", "ffn")}
    assert set(model.norms("decoder")) == {"final", *places}


def test_a_decoder_with_marks_in_its_vocabulary_reads_no_frame(
    copied: Callable[[str], Path],
) -> None:
    file = copied("gpt2") / "tokenizer.json"
    rules = tokenizers.Tokenizer.from_file(str(file))
    rules.add_special_tokens(["<s>", "</s>"])
    rules.save(str(file))
    assert weight_conversion.load(file.parent, "tiny").ends == ((), ())


def test_what_cannot_be_read_in_our_classes_is_left_to_its_own_code(
    copied: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = copied("bert")
    assert weight_conversion.covers(folder)
    (folder / "tokenizer.json").write_text("{}")
    assert not weight_conversion.covers(folder)
    with pytest.raises(ValueError):
        registry.load(f"ours:{folder}")
    folder = copied("phi3")
    assert weight_conversion.covers(folder)
    stretched = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.5] * 3}
    for rope in (stretched, {"type": "su"}):
        tiny.change(folder, rope_parameters=rope)
        assert not weight_conversion.covers(folder)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(ValueError, match="t5"):
        weight_conversion.load(tmp_path, "x")
