"""Families by kinds of tokenizers by texts in ten scripts: which tokens a model is given, what they
are called, what they cover, and where a text ends. Each row of tests/tiny_folders.py is read by its
own code, by our classes and from a GGUF file, and compared with transformers."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tiny_folders
import torch
import transformers
from conftest import read_once
from tiny_folders import ROWS, TEXTS
from tolerances import PASSED

from explorer.app.state import models
from models import child_process
from models.contract.model import Model
from models.network import own_model
from models.network.own_model import OwnModel
from models.own import drafts
from models.pretrained import gguf_conversion, hf_model, weight_conversion
from models.pretrained.hub_tokenizer import HubTokenizer
from models.pretrained.model_files import NotLoaded
from models.runtime import registry
from models.tokens import whole_words
from models.tokens.tokenizer import Tokens

pytestmark = pytest.mark.slow

FORMS = [
    *((name, "own code") for name in ROWS),
    *((name, "our classes") for name, row in ROWS.items() if tiny_folders.in_our_classes(row)),
    *((name, "GGUF") for name, row in ROWS.items() if row.gguf),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The folder of a row, or the one that its GGUF file is converted into, made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_process, "limit_files", lambda size: None)

        @cache
        def folder(name: str, form: str) -> Path:
            made = tmp_path_factory.mktemp("row")
            if form != "GGUF":
                return tiny_folders.build(name, made)
            file = tiny_folders.write_gguf(name, folder(name, ""), made / "model.gguf")
            gguf_conversion.convert(file, made, name)
            return made

        yield folder


@pytest.fixture(scope="module")
def loaded(folders: object) -> object:
    """The model of a row in one of its forms, loaded once."""

    @cache
    def model(name: str, form: str) -> Model:
        if form == "own code":
            return hf_model.load(str(folders(name, "")), name=name)
        return weight_conversion.load(folders(name, "GGUF" * (form == "GGUF")), f"{name}, {form}")

    return model


@pytest.fixture(scope="module")
def theirs(folders: object) -> object:
    """The tokenizer of a row as transformers reads it."""
    return cache(lambda name: transformers.AutoTokenizer.from_pretrained(folders(name, "")))


def tokens_of(model: Model, text: str) -> Tokens:
    """A text as the model reads it."""
    if isinstance(model, OwnModel):
        return own_model.frame(model, text)[0]
    return model.tokenizer.tokens(text, model.card.n_positions)[0]


# ---- ids, labels and spans -------------------------------------------------------------------

PART = re.compile(r"(.*) (\d+)/(\d+)")
SPELLED_OUT = re.compile(r"U\+([0-9A-F]{4,6})|‹([0-9A-F]{2})› ?")


def spelled(label: str) -> bytes:
    """The bytes of a text that a label spells, but for white space."""
    if match := PART.fullmatch(label):
        label = match[1].removeprefix("◌") if match[2] == "1" else ""
    label = label.removeprefix("‧").partition(" = ")[0]
    label = re.sub("[␣⏎⇥␍]", "", label)
    parts = SPELLED_OUT.split(label)
    letters = [each.encode() for each in parts[::3]]
    codes = [
        chr(int(code, 16)).encode() if code else bytes([int(byte, 16)])
        for code, byte in zip(parts[1::3], parts[2::3])
    ]
    return b"".join(a + b for a, b in zip(letters, [*codes, b""]))


def normal(tokenizer: transformers.PreTrainedTokenizerFast, text: str) -> str:
    """A text as the tokenizer reads it, in form NFKC, without white space."""
    steps = tokenizer.backend_tokenizer.normalizer
    text = text if steps is None else steps.normalize_str(text)
    kept = unicodedata.normalize("NFKC", text).replace("▁", "")
    return "".join(kept.split()).casefold()


@pytest.mark.parametrize(("name", "form"), FORMS, ids=map(" in ".join, FORMS))
def test_a_text_is_given_in_the_tokens_that_transformers_gives(
    name: str, form: str, loaded: object, theirs: object
) -> None:
    """And their labels spell the text, and their spans are disjoint but for the bytes of one
    character."""
    model, own = loaded(name, form), theirs(name)
    for text in TEXTS.values():
        tokens = tokens_of(model, text)
        ids = own(text, split_special_tokens=True).input_ids
        assert list(tokens.ids) == (ids or list(tokens.ids)), text
        words = [at for at, mark in enumerate(tokens.special) if not mark]
        labels, spans = [tokens.labels[at] for at in words], [tokens.spans[at] for at in words]
        whole = b"".join(map(spelled, labels)).decode()
        assert normal(own, whole) == normal(own, text), (text, labels)
        assert all(tokens.spans[at] == (-1, -1) for at in range(len(ids)) if at not in words)
        reached = 0
        for at, (label, (start, end)) in enumerate(zip(labels, spans)):
            part = PART.fullmatch(label)
            if part and part[2] != "1":
                assert spans[at] == spans[at - 1] and PART.fullmatch(labels[at - 1])
            else:
                assert start >= reached, (text, labels, spans)
            if part:  # nothing but bytes of one character
                entry = own.convert_ids_to_tokens(tokens.ids[words[at]])
                assert end > start and (
                    "<0x" in entry or "\ufffd" in own.decode(tokens.ids[words[at]])
                )
            assert end <= len(text) and label.replace("\u200d", "").isprintable() and label.strip()
            reached = max(reached, end)


@pytest.mark.parametrize(
    ("name", "text", "labels", "spans"),
    [
        ("xlm-roberta", "世日本 中", "␣/世/‧日/‧本/␣/中", [(0, 0), (0, 1), (1, 2), (2, 3)]),
        ("mt5", "これ", "␣/こ/‧れ", [(0, 0), (0, 1), (1, 2)]),
        ("xlm-roberta", "½", "1/⁄/‧2", [(0, 1), (1, 1), (1, 1)]),
        ("bert, many languages", "각 the", "ᄀ/‧ᅡ/‧ᆨ/the", [(0, 1), (1, 1), (1, 1)]),
        ("bert, many languages", "aꙮ b", "aꙮ = [UNK]/b", [(0, 2), (3, 4)]),
        ("gpt2", "xe\u0308", "x/‧e/◌\u0308 1:2/◌\u0308 2:2", [(0, 1), (1, 2), (2, 3), (2, 3)]),
        ("gpt2", "xꙮ", "x/ꙮ 1:3/ꙮ 2:3/ꙮ 3:3", [(0, 1), (1, 2), (1, 2), (1, 2)]),
        ("qwen2", "xe\u0301", "x/‧é", [(0, 1), (1, 3)]),
        ("llama 3", "the Việt zebra", "the/Việt/zebra", [(0, 3), (4, 8), (9, 14)]),
    ],
)
def test_labels_of_characters_that_tokens_share(
    name: str, text: str, labels: str, spans: list, loaded: object
) -> None:
    tokens = tokens_of(loaded(name, "own code"), text)
    words = [at for at, mark in enumerate(tokens.special) if not mark]
    assert "/".join(tokens.labels[at].replace("/", ":") for at in words) == labels
    assert [tokens.spans[at] for at in words][: len(spans)] == spans


def test_a_tokenizer_in_code_that_reads_bytes_names_the_parts_of_characters() -> None:
    tokens, _ = HubTokenizer(transformers.ByT5Tokenizer()).tokens("aé 世", 100)
    assert tokens.labels == ("a", "é 1/2", "é 2/2", "␣", "世 1/3", "世 2/3", "世 3/3", "</s>")
    assert tokens.spans[:-1] == ((0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (3, 4), (3, 4))


# ---- what each setting of a GGUF file does ---------------------------------------------------


@pytest.fixture
def converted(folders: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """The tokens of a text by the GGUF file of a row, after some of its settings were changed."""
    monkeypatch.setattr(child_process, "limit_files", lambda size: None)

    def tokens(name: str, text: str, **settings: object) -> Tokens:
        settings = {f"tokenizer__ggml__{key}": value for key, value in settings.items()}
        file = tiny_folders.write_gguf(name, folders(name, ""), tmp_path / "model.gguf", **settings)
        gguf_conversion.convert(file, tmp_path, "a model")
        return tokens_of(weight_conversion.load(tmp_path, "a model"), text)

    return tokens


@pytest.mark.parametrize(
    ("name", "settings", "labels"),
    [
        ("llama 3", {}, "<|begin|> the Việt zebra"),
        ("llama 3", {"add_bos_token": None}, "<|begin|> the Việt zebra"),
        ("llama 3", {"add_bos_token": False, "add_eos_token": True}, "the Việt zebra <|end|>"),
        (
            "llama 3",
            {"pre": "smaug-bpe", "add_bos_token": None},
            "the ␣ V ‧i ệ_1/3 ệ_2/3 ệ_3/3 ‧t ␣ z",
        ),
        ("llama 2", {"add_bos_token": None}, "<s> the ␣ V ‧i ệ_1/3 ệ_2/3 ệ_3/3 ‧t"),
        ("llama 2", {"add_space_prefix": False}, "<s> t ‧he ␣ V ‧i"),
    ],
)
def test_a_setting_of_a_gguf_file_changes_the_tokens(
    name: str, settings: dict, labels: str, converted: object
) -> None:
    found = converted(name, "the Việt zebra", **settings).labels
    wanted = labels.split()
    assert [each.replace(" ", "_") for each in found][: len(wanted)] == wanted


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"new_setting": True}, "a setting 'tokenizer.ggml.new_setting', which is not known here"),
        ({"add_sep_token": True}, "'tokenizer.ggml.add_sep_token', which is not followed here"),
        ({"remove_extra_whitespaces": True}, "remove_extra_whitespaces', which is not followed"),
        ({"pre": "default"}, "does not say how its tokenizer splits texts"),
        ({"pre": "a-new-one"}, "splits texts by 'a-new-one', which is not known here"),
        ({"model": "rwkv"}, "of the kind 'rwkv', not read here"),
        ({"eom_token_id": 10**6}, "eom_token_id is 1000000, and it has 5.. tokens"),
        ({"bos_token_id": None}, "adds a token to each text, and .*bos_token_id is missing"),
        ({"merges": ["th", "e"]}, "one of its merges is not of two tokens"),
        ({"tokens": ["a", "b", "a"]}, "has two tokens that are spelled alike"),
    ],
)
def test_a_setting_of_a_gguf_file_that_is_not_read_is_refused_by_name(
    settings: dict, words: str, converted: object
) -> None:
    with pytest.raises(NotLoaded, match=words):
        converted("llama 3", "the cat", **settings)


def test_a_vocabulary_that_loses_a_part_of_a_text_is_refused(
    folders: object, converted: object
) -> None:
    vocab = weight_conversion.load(folders("smollm", ""), "a model").tokenizer.bpe.get_vocab()
    tokens = ["no byte" if each == "\u00c3" else each for each in sorted(vocab, key=vocab.get)]
    with pytest.raises(NotLoaded, match="does not spell the text 'naïve"):
        converted("smollm", "the cat", merges=None, tokens=tokens)


# ---- where a text ends -----------------------------------------------------------------------

WRITERS = [(name, form) for name, form in FORMS if "MaskedLM" not in ROWS[name].kind]


@pytest.mark.parametrize(("name", "form"), WRITERS, ids=map(" in ".join, WRITERS))
def test_a_text_ends_where_transformers_ends_it(
    name: str,
    form: str,
    folders: object,
    loaded: object,
    theirs: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By any of several tokens, one of which is the fourth that the model writes."""
    model, own = loaded(name, form), theirs(name)
    ends = tiny_folders.ends(folders(name, ""))
    assert model.tokenizer.eos_ids == {*ends} and len(ends) == 2
    assert model.tokenizer.special >= {*ends}
    ids = own("the cat", return_tensors="pt").input_ids
    with torch.inference_mode():
        network = loaded(name, "own code").network
        said = network.generate(ids, max_new_tokens=8, do_sample=False, use_cache=False)[0].tolist()
    if model.card.kind == "encoder-decoder":
        *_, (beam,) = model.beams("the cat", 1)
        assert beam.done and list(beam.ids) == said[1:]
        assert model.record("the cat").streams[1].ids.tolist() == said[:-1]
        return
    monkeypatch.setitem(models.loaded_models, "a writer", model)
    draw = lambda scores, _: int(scores.argmax())
    written = drafts.continuation("a writer", "the cat", 8, (name, form), draw)
    assert list(written) == said[len(ids[0]) :] and written[-1] in ends
    assert drafts.generated_text("a writer", "the cat", (*written, 7)).ended
    assert drafts.generated_text("a writer", "the cat", (*written[:-1], ends[0], 7)).ended


def test_a_word_does_not_go_on_with_a_token_that_ends_a_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, text = read_once("decoder"), "He was born in Mozambique and speaks"
    writing = model.generate(text)
    firsts = whole_words.followed_tokens(model, whole_words.likely_tokens(writing.logits))
    (first, word), *_ = whole_words.whole_words(model, writing, firsts).items()
    writing.add(first)
    ends = frozenset({int(writing.logits.argmax())})
    writing.back()
    monkeypatch.setattr(model.tokenizer, "eos_ids", ends)
    assert word.pieces and first not in whole_words.whole_words(model, writing, firsts)


# ---- several texts ---------------------------------------------------------------------------


def expect_read_alike(model: Model) -> None:
    """Asserts that several texts are recorded as each by itself."""
    texts = ["the cat", "the cat sat on the mat", "a"]
    for text, together in zip(texts, model.record_batch(texts), strict=True):
        alone = model.record(text)
        assert [each.tokens for each in alone.streams] == [each.tokens for each in together.streams]
        for one, other in zip(alone.streams, together.streams):
            np.testing.assert_allclose(one.resid, other.resid, atol=PASSED)
        for one, other in zip(alone.attention, together.attention):
            np.testing.assert_allclose(one.pattern, other.pattern, atol=PASSED)


@pytest.mark.parametrize(("name", "form"), FORMS, ids=map(" in ".join, FORMS))
def test_several_texts_are_read_as_each_by_itself(name: str, form: str, loaded: object) -> None:
    expect_read_alike(loaded(name, form))


@pytest.mark.parametrize("name", ["encoder", "translator", "decoder", "minilm", "hub:minilm"])
def test_several_texts_are_read_by_shipped_models_as_each_by_itself(name: str) -> None:
    if "minilm" in name and "minilm" not in registry.names():
        pytest.skip("its package is not installed")
    expect_read_alike(read_once(name))
