"""A Hugging Face folder's tokenizer.json as a tokenizer of our own."""

from __future__ import annotations

import json
from pathlib import Path

from models import encoding
from models.pretrained.files import NotLoaded
from models.recording import NotEncoded
from models.tokenizer import SentencePiece, Tokenizer, WordPiece


def tokenizer_of(folder: Path) -> tuple[Tokenizer, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The tokenizer in a folder, and the special tokens that stand around a text."""
    file = folder / "tokenizer.json"
    if not file.exists():
        raise NotLoaded("the folder has no tokenizer.json, which Headlight’s own classes need")
    try:
        pieces = encoding.from_file(file)
    except NotEncoded as error:
        raise NotLoaded("its tokenizer.json cannot be read") from error
    pieces.no_truncation()
    pieces.no_padding()
    model = json.loads(file.read_text("utf-8"))["model"]
    kind = model["type"]
    told = folder / "tokenizer_config.json"
    named = json.loads(told.read_text("utf-8")) if told.exists() else {}

    def name(role: str, usual: tuple[str, ...]) -> str:
        given = named.get(f"{role}_token")
        given = given.get("content") if isinstance(given, dict) else given
        return next(
            (each for each in (given, *usual) if each and pieces.token_to_id(each) is not None), ""
        )

    pad, cls, sep, mask, bos, eos = (
        name("pad", ("[PAD]", "<pad>")),
        name("cls", ("[CLS]", "<s>")),
        name("sep", ("[SEP]", "</s>")),
        name("mask", ("[MASK]", "<mask>")),
        name("bos", ("<|endoftext|>", "<s>")),
        name("eos", ("<|endoftext|>", "</s>")),
    )
    # As the tokenizer itself frames a text: a decoder may have a [CLS] that it does not use.
    framed = encoding.encode(pieces, "a")
    own = [at for at, mark in enumerate(framed.special_tokens_mask) if not mark]
    ends = (
        (tuple(framed.tokens[: own[0]]), tuple(framed.tokens[own[-1] + 1 :])) if own else ((), ())
    )
    names = (pad, cls, sep, mask, bos, eos)
    if kind == "WordPiece":
        return WordPiece(pieces, names, name("unk", ("[UNK]",))), ends
    if kind == "BPE":
        way = SentencePiece if model.get("byte_fallback") else Tokenizer
        return way(pieces, names), ends
    raise NotLoaded(f"tokenizers of the kind {kind} are not read by Headlight’s own classes")
