"""Tiny random folders of models, one a row: a family with the kind of tokenizer that its models
have, trained on texts in ten scripts. A new family is a new row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gguf_files
import tiny
import tokenizers
import torch
import transformers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

# What people paste, in ten scripts and worse. Each tokenizer below is trained on these.
TEXTS = {
    "nothing": "",
    "a space": " ",
    "words": "the cat sat on the mat",
    "spaces": "  two  spaces ",
    "lines": "a\tb\r\n\nc ",
    "digits": "7 24 1999, 3.14",
    "special": "the [CLS] </s> <|endoftext|> <s> [PAD]x <think>",
    "invisible": "a\u200bb \u202ec",
    "accents apart": "cafe\u0301 au lait te\u0301",
    "accents": "café, naïve: Ünï",
    "two in one": "ﬁn ½ … Ǆ",
    "Chinese": "世日本 中文 我喜欢猫",
    "Japanese": "これは猫です。 カタカナ",
    "Thai": "ภาษาไทย ที่นี่ น้ำ",
    "Korean": "한국어 말",
    "Nepali": "नेपाली भाषा हो",
    "Arabic": "مرحبا بِكَ",
    "Hebrew": "שלום עולם",
    "Russian": "Привет, мир",
    "Vietnamese": "the Việt zebra",
    "emoji": "👩\u200d👩\u200d👧 🇳🇵 ok ❤️",
    "not in a vocabulary": "Ωβ ꙮ x",
}
UNSEEN = ("Vietnamese", "not in a vocabulary")
TRAINED_ON = [*tiny.TEXTS, *[text for name, text in TEXTS.items() if name not in UNSEEN] * 2]
POSITIONS = 160
N_VOCAB = 520

Tokenizer = transformers.PreTrainedTokenizerFast


def trained(rules: tokenizers.Tokenizer, trainer: object) -> tokenizers.Tokenizer:
    """The rules with a vocabulary learned from the texts."""
    rules.train_from_iterator(TRAINED_ON, trainer)
    return rules


def wrapped(rules: tokenizers.Tokenizer, frame: str = "$A", **named: str) -> Tokenizer:
    """The rules with their special tokens by role, and with those that stand around a text."""
    marks = [each for each in frame.split() if each != "$A"]
    if marks:
        rules.post_processor = processors.TemplateProcessing(
            single=frame, special_tokens=[(each, rules.token_to_id(each)) for each in marks]
        )
    roles = {f"{role}_token": token for role, token in named.items()}
    return Tokenizer(tokenizer_object=rules, model_max_length=POSITIONS, **roles)


def unigram(frame: str, with_bytes: bool = False, **named: str) -> Tokenizer:
    """SentencePiece's Unigram over NFKC, a space put before a text: "▁" is a token of its own
    before a letter that begins few words."""
    rules = tokenizers.Tokenizer(models.Unigram())
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    rules.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    rules.pre_tokenizer, rules.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained(
        rules,
        trainers.UnigramTrainer(
            vocab_size=240, special_tokens=specials, unk_token="<unk>", show_progress=False
        ),
    )
    if with_bytes:
        written = json.loads(rules.to_str())
        written["model"]["vocab"] += [[f"<0x{byte:02X}>", -20.0] for byte in range(256)]
        written["model"]["byte_fallback"] = True
        rules = tokenizers.Tokenizer.from_str(json.dumps(written))
        rules.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return wrapped(rules, frame, unk="<unk>", pad="<pad>", **named)


def pieces(frame: str, **named: str) -> Tokenizer:
    """SentencePiece's BPE without bytes, as NLLB's: what is not in the vocabulary is unknown."""
    rules = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    rules.normalizer = normalizers.NFKC()
    rules.pre_tokenizer, rules.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    trained(
        rules,
        trainers.BpeTrainer(vocab_size=N_VOCAB, special_tokens=specials, show_progress=False),
    )
    return wrapped(rules, frame, unk="<unk>", pad="<pad>", bos="<s>", eos="</s>", **named)


def wordpiece() -> Tokenizer:
    """As the multilingual BERT's: accents are taken off, and Korean syllables fall into letters."""
    rules = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rules.normalizer = normalizers.BertNormalizer(strip_accents=True, lowercase=True)
    rules.pre_tokenizer, rules.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trained(
        rules,
        trainers.WordPieceTrainer(vocab_size=N_VOCAB, special_tokens=specials, show_progress=False),
    )
    named = {role: f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
    return wrapped(rules, "[CLS] $A [SEP]", **named)


def byte_level(
    split: str,
    frame: str = "$A",
    whole: tuple[str, ...] = (),
    added: tuple[str, ...] = (),
    normal: bool = False,
    **named: str,
) -> Tokenizer:
    """Byte-level BPE that splits a text as `split` says, llama.cpp's name. whole: words that are
    in the vocabulary and that no merges make. added: tokens that a text may hold."""
    rules = tokenizers.Tokenizer(models.BPE())
    as_gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if split == "gpt-2":
        rules.pre_tokenizer = as_gpt2
    elif split == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        rules.pre_tokenizer = pre_tokenizers.Sequence([digits, as_gpt2])
    else:
        pattern = Regex(GGUF_PRE_TOKENIZER_SPLITS[split])
        letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        rules.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(pattern, "isolated"), letters]
        )
    if normal:
        rules.normalizer = normalizers.NFC()
    rules.decoder = decoders.ByteLevel()
    specials = dict.fromkeys(named.values())
    trained(
        rules,
        trainers.BpeTrainer(
            vocab_size=N_VOCAB,
            special_tokens=[*specials],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if whole:
        written = json.loads(rules.to_str())
        written["model"]["ignore_merges"] = True
        vocab = written["model"]["vocab"]
        for word in whole:
            ((letters, _),) = as_gpt2.pre_tokenize_str(word)
            vocab.setdefault(letters, len(vocab))
        rules = tokenizers.Tokenizer.from_str(json.dumps(written))
    rules.add_tokens([tokenizers.AddedToken(each, normalized=False) for each in added])
    return wrapped(rules, frame, **named)


@dataclass(frozen=True)
class Row:
    """A family: its tokenizer, its class and settings in transformers, and where llama.cpp writes
    it as a GGUF file, the name of its pre-tokenizer."""

    tokenizer: Callable[[], Tokenizer]
    kind: str
    settings: dict
    gguf: str = ""


END = "<|endoftext|>"
LLAMA = {**tiny.LLAMA, "rms_norm_eps": 1e-6}
llama3 = partial(
    byte_level,
    "llama-bpe",
    "<|begin|> $A",
    whole=(" Việt", " zebra"),
    bos="<|begin|>",
    eos="<|end|>",
)
roberta = partial(unigram, "<s> $A </s>", bos="<s>", cls="<s>", eos="</s>", sep="</s>")
ROWS: dict[str, Row] = {
    "bert, many languages": Row(wordpiece, "BertForMaskedLM", tiny.BERT),
    "xlm-roberta": Row(
        partial(roberta, mask="<mask>"),
        "XLMRobertaForMaskedLM",
        {**tiny.PADDED, "type_vocab_size": 1},
    ),
    "mdeberta": Row(
        partial(roberta, mask="<mask>"), "DebertaV2ForMaskedLM", {**tiny.BERT, **tiny.DEBERTA}
    ),
    "roberta, Unigram": Row(
        partial(roberta, mask="<mask>"), "RobertaForMaskedLM", {**tiny.PADDED, "type_vocab_size": 1}
    ),
    "mt5": Row(
        partial(unigram, "$A </s>", with_bytes=True, eos="</s>"),
        "MT5ForConditionalGeneration",
        {**tiny.T5, "pad_token_id": 1},
    ),
    "nllb": Row(
        partial(pieces, "$A </s>"),
        "M2M100ForConditionalGeneration",
        {**tiny.TWO, "pad_token_id": 1, "decoder_start_token_id": 2, "eos_token_id": 2},
    ),
    "gpt2": Row(
        partial(byte_level, "gpt-2", bos=END, eos=END),
        "GPT2LMHeadModel",
        {**tiny.GPT2, **tiny.ENDS},
    ),
    "llama 2": Row(tiny.llama_pieces, "LlamaForCausalLM", {**LLAMA, **tiny.SPECIALS}, "default"),
    "llama 3": Row(llama3, "LlamaForCausalLM", {**LLAMA, "pad_token_id": None}, "llama-bpe"),
    "smollm": Row(
        partial(byte_level, "smollm", added=("<think>",), bos=END, eos=END),
        "LlamaForCausalLM",
        {**LLAMA, **tiny.ENDS},
        "smollm",
    ),
    "qwen2": Row(
        partial(byte_level, "qwen2", normal=True, eos="<｜end▁of▁sentence｜>"),
        "Qwen2ForCausalLM",
        {**LLAMA, **tiny.ENDS},
        "qwen2",
    ),
    "gemma": Row(tiny.gemma_pieces, "GemmaForCausalLM", tiny.GEMMA, "default"),
}


def in_our_classes(row: Row) -> bool:
    """True for a row that runs in Headlight's own classes too."""
    return row.kind.startswith(("BertFor", "Roberta", "XLM", "GPT2", "Llama", "Qwen2", "Gemma"))


def n_positions(settings: dict) -> dict:
    """Settings with room for the texts, whatever they call it."""
    wide = {key: POSITIONS + 2 for key in ("max_position_embeddings", "n_positions")}
    return settings | {key: value for key, value in wide.items() if key in settings}


def build(name: str, folder: Path) -> Path:
    """The folder of a row. Besides its tokenizer's own end, the fourth token that the model writes
    after "the cat" ends a text, as its generation_config.json says."""
    row = ROWS[name]
    tokenizer = row.tokenizer()
    torch.manual_seed(len(name))
    settings = n_positions(row.settings) | {"vocab_size": len(tokenizer)}
    model = tiny.random_model(row.kind, settings)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if model.can_generate():
        own = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
        ids = tokenizer("the cat", return_tensors="pt").input_ids
        with torch.inference_mode():
            said = model.generate(
                ids, max_new_tokens=8, do_sample=False, use_cache=False, eos_token_id=None
            )[0]
        begin = 1 if model.config.is_encoder_decoder else len(ids[0])
        fourth = said[begin + 3].item()
        model.generation_config.eos_token_id = [*own, fourth]
        model.generation_config.save_pretrained(folder)
    return folder


def ends(folder: Path) -> list[int]:
    """The ids that end a text, as generation_config.json says."""
    file = folder / "generation_config.json"
    return json.loads(file.read_text("utf-8"))["eos_token_id"] if file.exists() else []


def write_gguf(name: str, folder: Path, file: Path, **more: object) -> Path:
    """The folder of a row as llama.cpp writes it."""
    ends_turn = {"tokenizer__ggml__eot_token_id": ends(folder)[-1]}
    gguf_files.write(folder, file, pre=ROWS[name].gguf, **ends_turn, **more)
    return file
