"""Folders that are no sound model: each a tiny sound one with one thing spoilt, as accident or
malice would leave it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import tiny
import torch
from safetensors.torch import load_file, save_file

Spoil = Callable[[Path], object]


def config(**settings: object) -> Spoil:
    """Other settings in config.json."""
    return lambda folder: tiny.change(folder, **settings)


def written(name: str, text: str | bytes) -> Spoil:
    """A file with other words in it."""
    return lambda folder: (folder / name).write_bytes(
        text if isinstance(text, bytes) else text.encode()
    )


def sparse(name: str, size: int, begins: bytes = b"") -> Spoil:
    """A file of a size that takes no room on the disk."""

    def spoil(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.write(begins)
            file.truncate(size)

    return spoil


def gone(*patterns: str) -> Spoil:
    """Files taken away."""
    return lambda folder: [path.unlink() for each in patterns for path in folder.glob(each)]


def fifo(name: str) -> Spoil:
    """A pipe that nobody writes into, in the place of a file: whoever reads it waits for ever."""
    return lambda folder: ((folder / name).unlink(missing_ok=True), os.mkfifo(folder / name))


def rules(**changes: object) -> Spoil:
    """Other entries in tokenizer.json."""

    def spoil(folder: Path) -> None:
        file = folder / "tokenizer.json"
        file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")

    return spoil


def words(change: Callable[[dict], object]) -> Spoil:
    """Another model within tokenizer.json, changed in place."""

    def spoil(folder: Path) -> None:
        file = folder / "tokenizer.json"
        read = json.loads(file.read_text("utf-8"))
        change(read)
        file.write_text(json.dumps(read), "utf-8")

    return spoil


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Spoil:
    """Other numbers in the weights, changed in place."""

    def spoil(folder: Path) -> None:
        file = folder / "model.safetensors"
        held = load_file(file)
        change(held)
        save_file(held, file, {"format": "pt"})

    return spoil


def head(change: Callable[[dict], object]) -> Spoil:
    """Another head of the weight file, the numbers left as they are."""

    def spoil(folder: Path) -> None:
        file = folder / "model.safetensors"
        content = file.read_bytes()
        length = int.from_bytes(content[:8], "little")
        read = json.loads(content[8 : 8 + length])
        said = json.dumps(change(read) or read).encode()
        file.write_bytes(len(said).to_bytes(8, "little") + said + content[8 + length :])

    return spoil


def first(read: dict) -> dict:
    """The first tensor in a head."""
    return next(value for key, value in read.items() if key != "__metadata__")


def stored(change: Callable[[str, torch.Tensor], torch.Tensor]) -> Spoil:
    """Every tensor of floating-point numbers made another one."""

    def spoil(held: dict[str, torch.Tensor]) -> None:
        held.update({key: change(key, each) for key, each in held.items()})

    return tensors(spoil)


def stored_at(end: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Spoil:
    """The tensors whose names end so made others."""
    return stored(lambda key, each: change(each) if key.endswith(end) else each)


def fill(value: float) -> Spoil:
    """One entry of each matrix of queries made another number."""
    return stored_at(
        "query.weight",
        lambda each: each.index_put((torch.tensor(1), torch.tensor(2)), torch.tensor(value)),
    )


def replace(content: str, pattern: dict | None = None) -> dict:
    """A rule of a tokenizer that puts something in the place of a letter."""
    return {"type": "Replace", "pattern": pattern or {"String": "a"}, "content": content}


def chain(*steps: dict) -> Spoil:
    """Rules one after the other."""
    return rules(normalizer={"type": "Sequence", "normalizers": list(steps)})


def doubled(depth: int) -> dict:
    """Rules within rules, each of which doubles every letter."""
    inner = replace("aa")
    for _ in range(depth):
        inner = {"type": "Sequence", "normalizers": [inner, replace("aa")]}
    return inner


DEEP = "[" * 200_000
# A pattern that tries without end, on texts of letters that it spells in a way no trial reads.
IN_VAIN = chain(replace("x", {"Regex": r"(?:\x7A?\x71?){40}(?:\x7A\x71){40}!"}))
VAIN_TEXT = "zq" * 30
KINDS: dict[str, Spoil] = {
    # config.json
    "config cut": written("config.json", '{"model_type": '),
    "config empty": written("config.json", ""),
    "config a list": written("config.json", "[]"),
    "config no text": written("config.json", b"\xff\xfe\x00\x01"),
    "config deep": written("config.json", DEEP),
    "config large": written(
        "config.json", '{"model_type": "bert", "x": "' + "a" * 3_000_000 + '"}'
    ),
    "config a pipe": fifo("config.json"),
    "config gone": gone("config.json"),
    "no type": config(model_type=None),
    "type a number": config(model_type=5),
    "type a list": config(model_type=["bert"]),
    "type unknown": config(model_type="zebra"),
    "code of its own": config(model_type="zebra", auto_map={"AutoModel": "zebra.Zebra"}),
    "pictures": config(model_type="vit"),
    "quantised": config(quantization_config={"quant_method": "gptq"}),
    "a million layers": config(num_hidden_layers=10**6),
    "10^18 layers": config(num_hidden_layers=10**18),
    "10^9 layers in a part": config(text_config={"num_hidden_layers": 10**9}),
    "layers of 4,000 digits": config(num_hidden_layers=10**4000),
    "10^9 classes": config(num_labels=10**9),
    "10^9 experts": config(num_local_experts=10**9),
    "no layers": config(num_hidden_layers=0),
    "layers a word": config(num_hidden_layers="two"),
    "layers a list": config(num_hidden_layers=[2]),
    "3 heads of 32": config(num_attention_heads=3),
    "heads a fraction": config(num_attention_heads=2.5),
    "width 10^7": config(hidden_size=10**7),
    "width other than the weights'": config(hidden_size=64),
    "feed-forward 10^9": config(intermediate_size=10**9),
    "feed-forward other than the weights'": config(intermediate_size=60),
    "vocabulary 10^9": config(vocab_size=10**9),
    "vocabulary a list": config(vocab_size=[400]),
    "10^12 positions": config(max_position_embeddings=10**12),
    "no positions": config(max_position_embeddings=0),
    "pruned heads": config(pruned_heads={"0": [0, 1]}),
    "activation unknown": config(hidden_act="explode"),
    "activation a number": config(hidden_act=7),
    "eps a word": config(layer_norm_eps="small"),
    # the weights
    "weights cut": lambda folder: os.truncate(folder / "model.safetensors", 5000),
    "weights empty": written("model.safetensors", b""),
    "weights gone": gone("*.safetensors"),
    "weights a pipe": fifo("model.safetensors"),
    "weights as code": lambda folder: (
        (folder / "model.safetensors").unlink(),
        (folder / "pytorch_model.bin").write_bytes(b"\x80\x04."),
    ),
    "head of 6 GiB": sparse("model.safetensors", 5000, (6 << 30).to_bytes(8, "little")),
    "head of 150 MB": sparse("model.safetensors", 200_000_000, (150_000_000).to_bytes(8, "little")),
    "head a list": head(lambda read: [1, 2]),
    "head of numbers": head(lambda read: {key: 3 for key in read}),
    "head deep": written(
        "model.safetensors", len(DEEP).to_bytes(8, "little") + DEEP.encode() + b"x"
    ),
    "shape below 0": head(lambda read: first(read).update(shape=[-1, -32])),
    "shape of words": head(lambda read: first(read).update(shape=["a"])),
    "shape of a million axes": head(lambda read: first(read).update(shape=[10**9] * 10**6)),
    "shape of 10^18": head(lambda read: first(read).update(shape=[10**18])),
    "offsets on top of each other": head(lambda read: first(read).update(data_offsets=[4, 8])),
    "type of numbers unknown": head(lambda read: first(read).update(dtype="F7")),
    "NaN": fill(float("nan")),
    "infinite": fill(float("inf")),
    "NaN where no pass reads": tensors(
        lambda held: held.update(spare=torch.tensor([0.0, float("nan")]))
    ),
    "infinite where no pass reads": tensors(
        lambda held: held.update({"pooler.dense.bias": torch.full((32,), float("-inf")).half()})
    ),
    "overflow": stored_at("dense.weight", lambda each: torch.full_like(each, 3e38)),
    "truth values": stored(lambda key, each: each > 0),
    "one matrix of truth values": stored_at("query.weight", lambda each: each > 0),
    "whole numbers": stored(lambda key, each: (10 * each).to(torch.int8)),
    "float8": stored(lambda key, each: each.to(torch.float8_e4m3fn)),
    "float8 of the other kind": stored(lambda key, each: each.to(torch.float8_e5m2)),
    "too large for float16": stored(lambda key, each: (1e6 * each).half()),
    "cut off at float16": stored(lambda key, each: (1e6 * each).clamp(-65504, 65504).half()),
    "all zero": stored(lambda key, each: torch.zeros_like(each)),
    "zero but for the norms": stored(lambda key, each: each if "Norm" in key else 0 * each),
    "a tensor missing": tensors(
        lambda held: held.pop(next(key for key in held if key.endswith("key.weight")))
    ),
    "a tensor turned": stored_at("intermediate.dense.weight", lambda each: each.T.contiguous()),
    "a part of the vocabulary": stored(
        lambda key, each: each[:20].clone() if len(each) == tiny.N_VOCAB else each
    ),
    "a smaller vocabulary, and it says so": lambda folder: (
        KINDS["a part of the vocabulary"](folder),
        tiny.change(folder, vocab_size=20),
    ),
    "list of files outside": lambda folder: (
        (folder / "model.safetensors").unlink(),
        written("model.safetensors.index.json", '{"weight_map": {"a": "../b.safetensors"}}')(
            folder
        ),
    ),
    "list of files a list": lambda folder: (
        (folder / "model.safetensors").unlink(),
        written("model.safetensors.index.json", "[1]")(folder),
    ),
    # the tokenizer
    "no tokenizer": gone("token*"),
    "tokenizer empty": written("tokenizer.json", "{}"),
    "tokenizer cut": lambda folder: os.truncate(folder / "tokenizer.json", 500),
    "tokenizer a list": written("tokenizer.json", "[]"),
    "tokenizer deep": written("tokenizer.json", DEEP),
    "tokenizer of 300 MB": sparse("tokenizer.json", 300_000_000),
    "tokenizer a pipe": fifo("tokenizer.json"),
    "tokenizer of an unknown kind": words(lambda read: read["model"].update(type="Magic")),
    "a becomes 10^9 a": chain(*[replace("a" * 1000)] * 3),
    "doubled 40 times": chain(*[replace("aa")] * 40),
    "rules within rules": rules(normalizer=doubled(30)),
    "a becomes a million": chain(replace("b" * 10**6)),
    "between any two letters": chain(replace("x" * 500, {"Regex": ""})),
    "rules of words": rules(normalizer={"type": "Sequence", "normalizers": [5]}),
    "a pattern that is none": chain(replace("b", {"Regex": "(("})),
    "a pattern that tries without end": chain(replace("x", {"Regex": r"(?:a?a?){40}(?:aa){40}!"})),
    "a thousand marks around a text": words(
        lambda read: read.update(
            post_processor={
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * 1000
                + [{"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [],
                "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
            }
        )
    ),
    "words numbered beyond the model's": words(
        lambda read: read["model"]["vocab"].update({"zebra": 10**6})
    ),
    "no words": words(lambda read: read["model"].update(vocab={})),
    "unknown token unknown": words(lambda read: read["model"].update(unk_token="[NOWHERE]")),
    "settings of the tokenizer a list": written("tokenizer_config.json", "[]"),
    "settings of the tokenizer deep": written("tokenizer_config.json", DEEP),
}
