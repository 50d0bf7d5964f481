"""The tokenizer of a GGUF file: what its `tokenizer.ggml.*` metadata say, as a tokenizer.json.

Byte-level BPE ("gpt2") and SentencePiece's BPE ("llama") are built. Each key that changes a token
is read, or refused by its name.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from models.contract.recording import NotEncoded
from models.pretrained.model_files import NotLoaded, is_id
from models.tokens import encoding
from models.tokens.token_labels import METASPACE

PREFIX = "tokenizer.ggml."
ROLES = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "pad": "padding_token_id",
}
# Tokens that end a text: of a turn, of a message to a tool, and a list that some files have.
ENDS = ("eos_token_id", "eos_token_ids", "eot_token_id", "eom_token_id")
READ = {
    *("model", "pre", "tokens", "token_type", "scores", "merges"),
    *("add_bos_token", "add_eos_token", "add_space_prefix"),
    *ROLES.values(),
    *ENDS,
}
# Roles that no text here has: of a second text, of a gap in a program.
WITHOUT_EFFECT = {
    *("token_type_count", "seperator_token_id", "mask_token_id", "cls_token_id"),
    *(f"fim_{place}_token_id" for place in ("pre", "suf", "mid", "pad", "rep", "sep")),
    *(f"{place}_token_id" for place in ("prefix", "suffix", "middle")),
}
# What our tokenizers do not do, and leave out only where a file says so.
NOT_DONE = ("add_sep_token", "remove_extra_whitespaces", "precompiled_charsmap")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # types of tokens

# Byte-level vocabularies by what a file calls their pre-tokenizer. Those that split as GPT-2 does,
# those that take each digit by itself first, and those whose splits are Qwen2's and Llama 3's
# beside those that transformers knows.
AS_GPT2 = frozenset(
    "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de olmo mpt jais trillion granite-docling "
    "gigachat a.x-4.0 mellum exaone4".split()
)
DIGIT_BY_DIGIT = frozenset(
    "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2".split()
)
SAME_SPLIT = {
    **dict.fromkeys(("stablelm2", "hunyuan", "solar-open"), "qwen2"),
    **dict.fromkeys(("glm4", "chatglm-bpe"), "llama-bpe"),
}
IN_NORMAL_FORM = ("qwen2", "qwen35", "deepseek-r1-qwen")  # read a text in normal form C
# Of these a word that is in the vocabulary is one token whatever the merges say, and a text begins
# with a mark.
WHOLE_WORDS = frozenset(
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken".split()
)

# The tokens of each of these spell it, whatever the vocabulary.
NASTY = (
    "The cat sat on the mat.",
    "  two  spaces ",
    "tabs\tand\nlines\r\n\n  end ",
    "it's we'll DON'T",
    "7 24 1999 3.14 a1b2",
    "naïve café e\u0301 ẞ ﬁ",
    "世日本 中文 にほんご カタカナ",
    "한국어 ภาษาไทย ที่นี่ नेपाली",
    "שלום עולם مرحبا بِكَ Привет ελληνικά",
    "🙂 👩\u200d👩\u200d👧 🇳🇵",
    "\u200b\ufeff\u202e<s></s><|endoftext|>",
    "(((!!!???)))---___",
)


def write(
    metadata: Mapping[str, Any], architecture: str, goal: Path, template: str
) -> tuple[int, ...]:
    """Write the tokenizer that a file's metadata describe into a folder, with its chat template.
    Returns the ids of the tokens that end a text. Raises NotLoaded for what is not read here."""
    import transformers

    tokenizer = GGUFTokenizer(metadata, architecture)
    rules = tokenizer.rules()
    _expect_spelled(rules, tokenizer.unknown)
    names = {
        f"{role}_token": tokenizer.tokens[token]
        for role, key in ROLES.items()
        if (token := tokenizer.id(key)) is not None
    }
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=rules, chat_template=template or None, **names
    ).save_pretrained(str(goal))
    return tuple(sorted({token for key in ENDS for token in tokenizer.ids(key)}))


class GGUFTokenizer:
    """The tokenizer that a file's metadata describe. tokens: the vocabulary, by id. Raises
    NotLoaded for a setting that is not read here."""

    def __init__(self, metadata: Mapping[str, Any], architecture: str) -> None:
        self._metadata, self._architecture = metadata, architecture
        for key in metadata:
            name = key.removeprefix(PREFIX)
            if name != key and name not in READ | WITHOUT_EFFECT | {*NOT_DONE}:
                raise NotLoaded(
                    f"its tokenizer has a setting {key[:60]!r}, which is not known here"
                )
        for name in NOT_DONE:
            if self._setting(name):
                raise NotLoaded(
                    f"its tokenizer has a setting {PREFIX + name!r}, which is not followed here"
                )
        self.kind, self.split = self._setting("model", ""), self._setting("pre", "")
        if self.kind not in ("gpt2", "llama"):
            raise NotLoaded(f"its tokenizer is of the kind {str(self.kind)[:30]!r}, not read here")
        self.tokens = self._tokens()
        types = self._setting("token_type") or [NORMAL] * len(self.tokens)
        if len(types) != len(self.tokens):
            raise NotLoaded("its tokens and their types are not equally many")
        self._types: Sequence[int] = types
        self.unknown = self.id("unknown_token_id")

    def _setting(self, name: str, otherwise: Any = None) -> Any:
        return self._metadata.get(PREFIX + name, otherwise)

    def _tokens(self) -> list[str]:
        tokens = [token or f"[EMPTY_{at}]" for at, token in enumerate(self._setting("tokens", []))]
        if self.kind == "llama":  # a run of spaces is written as spaces
            tokens = [METASPACE * len(each) if not each.strip(" ") else each for each in tokens]
        if not tokens or len(set(tokens)) < len(tokens):
            raise NotLoaded("its vocabulary is empty or has two tokens that are spelled alike")
        return tokens

    def id(self, key: str) -> int | None:
        """The id of a token by its role, None where the file names none."""
        return next(iter(self.ids(key)), None)

    def ids(self, key: str) -> list[int]:
        """The ids that a key names: one, several or none. Raises NotLoaded for one beyond the
        vocabulary."""
        named = self._setting(key, [])
        ids = named if isinstance(named, list) else [named]
        for token in ids:
            if not (is_id(token) and token < len(self.tokens)):
                raise NotLoaded(
                    f"{PREFIX + key} is {token!s:.20}, and it has {len(self.tokens)} tokens"
                )
        return ids

    def rules(self) -> tokenizers.Tokenizer:
        """The rules as the tokenizers library follows them."""
        rules = self._byte_level() if self.kind == "gpt2" else self._sentencepiece()
        for special, types in ((True, (UNKNOWN, CONTROL)), (False, (USER_DEFINED,))):
            added = [
                AddedToken(token, normalized=False, special=special)
                for token, kind in zip(self.tokens, self._types)
                if kind in types and token.strip(METASPACE)
            ]
            rules.add_special_tokens(added) if special else rules.add_tokens(added)
        frame = {
            "bos": self._setting(
                "add_bos_token", self.kind == "llama" or self.split in WHOLE_WORDS
            ),
            "eos": self._setting("add_eos_token", False),
        }
        around = {role: self._framing(role) for role, there in frame.items() if there}
        if around:
            rules.post_processor = processors.TemplateProcessing(
                single=" ".join([*around.get("bos", ())[:1], "$A", *around.get("eos", ())[:1]]),
                special_tokens=list(around.values()),
            )
        return rules

    def _framing(self, role: str) -> tuple[str, int]:
        token = self.id(ROLES[role])
        if token is None:
            raise NotLoaded(f"it adds a token to each text, and {PREFIX}{role}_token_id is missing")
        return self.tokens[token], token

    def _vocabulary(self) -> dict[str, int]:
        return {token: at for at, token in enumerate(self.tokens)}

    def _byte_level(self) -> tokenizers.Tokenizer:
        merges = pairs(self._setting("merges", []))
        rules = tokenizers.Tokenizer(
            models.BPE(self._vocabulary(), merges, ignore_merges=self.split in WHOLE_WORDS)
        )
        if self.split in IN_NORMAL_FORM:
            rules.normalizer = normalizers.NFC()
        rules.pre_tokenizer = pre_tokenizer(self.split)
        rules.decoder = decoders.ByteLevel()
        return rules

    def _sentencepiece(self) -> tokenizers.Tokenizer:
        unknown = None if self.unknown is None else self.tokens[self.unknown]
        rules = tokenizers.Tokenizer(
            models.BPE(
                self._vocabulary(),
                self._merges(),
                unk_token=unknown,
                fuse_unk=True,
                byte_fallback=True,
            )
        )
        spaced = self._setting("add_space_prefix", self._architecture != "gemma")
        before = [normalizers.Prepend(METASPACE)] if spaced else []
        rules.normalizer = normalizers.Sequence([*before, normalizers.Replace(" ", METASPACE)])
        steps = [decoders.Replace(METASPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
        strip = [decoders.Strip(content=" ", left=1)] if spaced else []
        rules.decoder = decoders.Sequence([*steps, *strip])
        return rules

    def _merges(self) -> list[tuple[str, str]]:
        """The merges that the file has, else those that its vocabulary implies: the better the
        score of what two tokens make together the earlier; Gemma's by their order."""
        from transformers.tokenization_utils_base import generate_merges

        if (written := self._setting("merges")) is not None:
            return pairs(written)
        scores = self._setting("scores") or []
        if self._architecture == "gemma":
            scores = [-at for at in range(len(self.tokens))]
        if len(scores) != len(self.tokens):
            raise NotLoaded("its vocabulary has neither merges nor a score for each token")
        return generate_merges(self._vocabulary(), dict(zip(self.tokens, scores)))


def pairs(merges: Sequence[str]) -> list[tuple[str, str]]:
    """Merges as pairs of tokens, which a file writes with a space between. Raises NotLoaded."""
    split = [(first, second) for first, _, second in (each.partition(" ") for each in merges)]
    if not all(second for _, second in split):
        raise NotLoaded("one of its merges is not of two tokens")
    return split


def pre_tokenizer(split: str) -> pre_tokenizers.PreTokenizer:
    """The pre-tokenizer of a byte-level vocabulary by what a file calls it. Raises NotLoaded for
    one that is not known."""
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    if split in AS_GPT2:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if split in DIGIT_BY_DIGIT:
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    pattern = GGUF_PRE_TOKENIZER_SPLITS.get(SAME_SPLIT.get(split, split))
    if pattern is None:
        raise NotLoaded(
            f"its tokenizer splits texts by {split[:30]!r}, which is not known here"
            if split not in ("", "default")
            else f"it does not say how its tokenizer splits texts ({PREFIX}pre)"
        )
    whole = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence(
        [whole, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )


def _expect_spelled(rules: tokenizers.Tokenizer, unknown: int | None) -> None:
    """Raises NotLoaded where tokens do not spell the text that they are of, in normal form C where
    the rules read it so."""
    normal = isinstance(rules.normalizer, normalizers.NFC)
    rules.encode_special_tokens = True
    for text in NASTY:
        whole = unicodedata.normalize("NFC", text) if normal else text
        try:
            ids = encoding.encode(rules, text, special=False).ids
            spelled = encoding.decode(rules, ids)
        except NotEncoded as error:
            raise NotLoaded(f"its tokenizer fails on the text {text!r}") from error
        if spelled != whole and unknown not in ids:
            raise NotLoaded(f"its tokenizer does not spell the text {text!r}")
    rules.encode_special_tokens = False
