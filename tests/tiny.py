"""A tiny random model of each family of Hugging Face models, saved as a folder the way the hub
would give it, with a tokenizer trained here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

TEXTS = [
    "the cat sat on the mat",
    "the dog ran to the old house",
    "a cat and a dog are in the house",
    "café au lait, naïve rôle",
    "she unlocked the doors",
] * 3
N_VOCAB = 400
WIDE = {"vocab_size": N_VOCAB, "initializer_range": 0.15}
BERT = {
    **WIDE,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
LLAMA = {
    **WIDE,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
TWO = {
    "vocab_size": N_VOCAB,
    "init_std": 0.15,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 40,
}


def wordpiece() -> transformers.PreTrainedTokenizerFast:
    """As BERT's: lower case, [CLS] text [SEP], pieces written "##ing"."""
    rules = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    rules.normalizer = normalizers.BertNormalizer()
    rules.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rules.decoder = decoders.WordPiece()
    rules.train_from_iterator(
        TEXTS,
        trainers.WordPieceTrainer(
            vocab_size=N_VOCAB,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
            show_progress=False,
        ),
    )
    rules.post_processor = processors.BertProcessing(
        ("[SEP]", rules.token_to_id("[SEP]")), ("[CLS]", rules.token_to_id("[CLS]"))
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=rules,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=40,
    )


def bytes_of(
    *specials: str, framed: bool = False, **named: str
) -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE, as GPT-2's; `framed` as RoBERTa's and BART's: <s> text </s>."""
    rules = Tokenizer(models.BPE())
    rules.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rules.decoder = decoders.ByteLevel()
    rules.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=N_VOCAB,
            special_tokens=list(specials),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if framed:
        rules.post_processor = processors.RobertaProcessing(
            ("</s>", rules.token_to_id("</s>")),
            ("<s>", rules.token_to_id("<s>")),
            add_prefix_space=False,
        )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=rules, **named)


def gpt2_bytes() -> transformers.PreTrainedTokenizerFast:
    """As GPT-2's: no special token around a text."""
    return bytes_of("<|endoftext|>", bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def framed_bytes() -> transformers.PreTrainedTokenizerFast:
    """As RoBERTa's, whose padding token has id 1."""
    return bytes_of(
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "<mask>",
        framed=True,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def without_special_bytes(rules: Tokenizer) -> Tokenizer:
    """The rules again, with the bytes that a trainer took as special tokens as pieces of text."""
    written = json.loads(rules.to_str())
    written["added_tokens"] = [
        each for each in written["added_tokens"] if not each["content"].startswith("<0x")
    ]
    return Tokenizer.from_str(json.dumps(written))


def sentencepiece(first: str = "", end: str = "</s>") -> transformers.PreTrainedTokenizerFast:
    """As T5's, text </s>, or Llama's, <s> text: pieces written "▁the", bytes where a character is
    unknown."""
    rules = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    rules.pre_tokenizer = pre_tokenizers.Metaspace()
    rules.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    specials = ["<pad>", "<s>", "</s>", "<unk>"]
    rules.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=N_VOCAB,
            special_tokens=[*specials, *(f"<0x{byte:02X}>" for byte in range(256))],
            show_progress=False,
        ),
    )
    rules = without_special_bytes(rules)
    written = " ".join(
        part for part in (f"{first}:0" if first else "", "$A:0", f"{end}:0" if end else "") if part
    )
    rules.post_processor = processors.TemplateProcessing(
        single=written,
        special_tokens=[(token, rules.token_to_id(token)) for token in (first, end) if token],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=rules,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
    )


PADDED = {
    **BERT,
    "max_position_embeddings": 42,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}  # positions are counted after the padding's
ENDS = {"bos_token_id": 0, "eos_token_id": 0}
SPECIALS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DEBERTA = {
    "relative_attention": True,
    "position_buckets": 8,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}
OPT = {
    "vocab_size": N_VOCAB,
    "init_std": 0.15,
    "hidden_size": 32,
    "word_embed_proj_dim": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "ffn_dim": 48,
    "max_position_embeddings": 40,
}
T5 = {
    "vocab_size": N_VOCAB,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "feed_forward_proj": "gated-gelu",
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
}
BART = {
    **TWO,
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
MARIAN = {
    **TWO,
    "scale_embedding": True,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
    "forced_eos_token_id": None,
}
DISTIL = {
    **WIDE,
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 48,
    "max_position_embeddings": 40,
}
GPT2 = {**WIDE, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40}


def llama_pieces() -> transformers.PreTrainedTokenizerFast:
    """As Llama's: <s> text, a space put before it whatever it begins with."""
    made = sentencepiece("<s>", "")
    rules = made.backend_tokenizer
    rules.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    rules.pre_tokenizer = None
    strip = decoders.Strip(content=" ", left=1)
    fuse = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip]
    rules.decoder = decoders.Sequence(fuse)
    return made


def gemma_pieces() -> transformers.GemmaTokenizer:
    """As Gemma's: <bos> text without a space before it, runs of spaces as pieces, each digit by
    itself, and every pair of pieces that makes a piece merged, the first piece first."""
    rules = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    rules.normalizer = normalizers.Replace(" ", "▁")
    rules.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("▁", "merged_with_next"),
            pre_tokenizers.Digits(individual_digits=True),
        ]
    )
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁▁", "▁▁▁"]
    rules.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=N_VOCAB,
            special_tokens=[*specials, *(f"<0x{byte:02X}>" for byte in range(256))],
            show_progress=False,
        ),
    )
    vocab = without_special_bytes(rules).get_vocab()
    pieces = sorted(vocab, key=lambda piece: vocab[piece])
    merges = [
        (piece[:at], piece[at:])
        for piece in pieces
        for at in range(len(piece) - 1, 0, -1)
        if piece[:at] in vocab and piece[at:] in vocab
    ]
    return transformers.GemmaTokenizer(vocab, merges, add_bos_token=True)


def qwen_bytes() -> transformers.Qwen2Tokenizer:
    """As Qwen2's: GPT-2's pieces of a text in normal form C that is split at each digit."""
    trained = json.loads(gpt2_bytes().backend_tokenizer.to_str())["model"]
    merges = [tuple(each) for each in trained["merges"]]
    return transformers.Qwen2Tokenizer(trained["vocab"], merges)


NEOX = {**BERT, **ENDS, "use_parallel_residual": True, "rotary_pct": 0.25}
BLOOM = {**WIDE, **ENDS, "pad_token_id": 0, "hidden_size": 32, "n_layer": 2, "n_head": 4}
GEMMA = {
    **LLAMA,
    "num_key_value_heads": 1,
    "head_dim": 10,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
PARTLY_TURNED = {
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.75,
    }
}
# A window in the first layer alone, and a scale of the scores that is not the head's width.
LAYER_KINDS = {
    "sliding_window": 4,
    "layer_types": ["sliding_attention", "full_attention"],
    "query_pre_attn_scalar": 14,
}
# The tokenizer, the class and the configuration of each family.
MODELS: dict[str, tuple[Callable, str, dict]] = {
    "bert": (wordpiece, "BertForMaskedLM", BERT),
    "distilbert": (wordpiece, "DistilBertForMaskedLM", DISTIL),
    "roberta": (framed_bytes, "RobertaForMaskedLM", PADDED),
    "xlm-roberta": (framed_bytes, "XLMRobertaForMaskedLM", {**PADDED, "type_vocab_size": 1}),
    "electra": (wordpiece, "ElectraForMaskedLM", {**BERT, "embedding_size": 24}),
    "albert": (wordpiece, "AlbertForMaskedLM", {**BERT, "embedding_size": 16}),
    "mpnet": (framed_bytes, "MPNetForMaskedLM", PADDED),
    "deberta-v2": (wordpiece, "DebertaV2ForMaskedLM", {**BERT, **DEBERTA}),
    "gpt2": (gpt2_bytes, "GPT2LMHeadModel", {**GPT2, **ENDS}),
    "opt": (gpt2_bytes, "OPTForCausalLM", {**OPT, **ENDS, "pad_token_id": 1}),
    "gpt_neox": (gpt2_bytes, "GPTNeoXForCausalLM", NEOX),
    "bloom": (gpt2_bytes, "BloomForCausalLM", BLOOM),
    "llama": (llama_pieces, "LlamaForCausalLM", {**LLAMA, **SPECIALS}),
    "qwen2": (qwen_bytes, "Qwen2ForCausalLM", {**LLAMA, **ENDS}),
    "mistral": (
        llama_pieces,
        "MistralForCausalLM",
        {**LLAMA, **SPECIALS, "sliding_window": 4096},
    ),
    "qwen3": (qwen_bytes, "Qwen3ForCausalLM", {**LLAMA, **ENDS, "head_dim": 12}),
    "gemma": (gemma_pieces, "GemmaForCausalLM", GEMMA),
    "phi3": (llama_pieces, "Phi3ForCausalLM", {**LLAMA, **SPECIALS, **PARTLY_TURNED}),
    "gemma2": (gemma_pieces, "Gemma2ForCausalLM", {**GEMMA, **LAYER_KINDS}),
    "gemma3_text": (gemma_pieces, "Gemma3ForCausalLM", {**GEMMA, **LAYER_KINDS}),
    "olmo2": (gpt2_bytes, "Olmo2ForCausalLM", {**LLAMA, **ENDS, "pad_token_id": 1}),
    "t5": (sentencepiece, "T5ForConditionalGeneration", T5),
    "bart": (framed_bytes, "BartForConditionalGeneration", BART),
    "marian": (sentencepiece, "MarianMTModel", MARIAN),
}


@torch.no_grad()
def stirred(model: torch.nn.Module) -> torch.nn.Module:
    """The model with random gains and biases: as they begin, at 1 and 0, a sum that leaves one out
    would pass for right."""
    for parameter in {id(each): each for each in model.parameters()}.values():
        if parameter.dim() == 1:
            parameter += 0.2 * torch.randn(parameter.shape)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias += torch.randn(model.final_logits_bias.shape)
    return model.eval()


def random_model(kind: str, settings: dict) -> torch.nn.Module:
    """A random model of a class of transformers."""
    made = getattr(transformers, kind)
    return stirred(made(made.config_class(**settings)))


def save(folder: Path, kind: str, settings: dict, tokenizer: Callable = gpt2_bytes) -> Path:
    """A random model in a folder: config.json, model.safetensors, tokenizer.json."""
    random_model(kind, settings).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def build(model_type: str, folder: Path) -> Path:
    """A tiny model of a family in a folder."""
    tokenizer, kind, settings = MODELS[model_type]
    torch.manual_seed(len(model_type))
    return save(folder, kind, settings, tokenizer)


def change(folder: Path, **settings: object) -> None:
    """Changes settings in a folder's config.json; None takes one away."""
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8")) | settings
    file.write_text(
        json.dumps({key: value for key, value in config.items() if value is not None}), "utf-8"
    )
