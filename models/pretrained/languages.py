"""The languages of a multilingual translator, such as NLLB, mBART and M2M100: which its tokenizer
knows, and the tokens by which a source and a target say theirs, as transformers' own code has
them."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from models.model_names import LANGUAGE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CODE = re.compile(LANGUAGE)


@dataclass(frozen=True)
class Languages:
    """The languages of a translator: the token of each, `ids` by its code; `source` and `target`,
    "" where the model chooses what it writes. start: the token that its decoder begins with;
    forced: the one after it, None for none."""

    ids: dict[str, int]
    source: str
    target: str
    start: int
    forced: int | None


def codes(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """The token of each language that a tokenizer knows, by its code; none for a tokenizer of one
    language."""
    if not hasattr(tokenizer, "src_lang") or not hasattr(tokenizer, "set_src_lang_special_tokens"):
        return {}
    spelled = getattr(tokenizer, "lang_code_to_token", None)  # M2M100's: "en" is "__en__"
    if not isinstance(spelled, dict):
        named = getattr(tokenizer, "lang_code_to_id", None)
        names = [*named] if isinstance(named, dict) else tokenizer.extra_special_tokens
        special = {tokenizer.mask_token, tokenizer.unk_token}
        spelled = {str(name): str(name) for name in names if str(name) not in special}
    ids = {code: tokenizer.convert_tokens_to_ids(token) for code, token in spelled.items()}
    return {
        code: token
        for code, token in sorted(ids.items())
        if isinstance(token, int) and token != tokenizer.unk_token_id and CODE.fullmatch(code)
    }


def default(
    tokenizer: PreTrainedTokenizerBase, start: int, forced: int | None
) -> tuple[str, str] | None:
    """The languages (source, target) of a model's own settings; None for a model of one. start and
    forced: the tokens that its settings begin an output with."""
    by_code = codes(tokenizer)
    if not by_code:
        return None
    chosen = {token: code for code, token in by_code.items()}
    source, target = (
        code if (code := str(getattr(tokenizer, name, ""))) in by_code else ""
        for name in ("src_lang", "tgt_lang")
    )
    return source or next(iter(by_code)), chosen.get(start if forced is None else forced, target)


def between(
    tokenizer: PreTrainedTokenizerBase, start: int, languages: tuple[str, str]
) -> tuple[PreTrainedTokenizerBase, Languages]:
    """A copy of a tokenizer that writes the source's token, and the tokens that a target begins
    with. A decoder that begins with a language (mBART) begins with the target's; another (NLLB,
    M2M100, mBART-50) with its own token and then that. Raises ValueError for a language that it
    does not have."""
    by_code, (source, target) = codes(tokenizer), languages
    for code in (source, *([target] if target else [])):
        if code not in by_code:
            few = ", ".join([*by_code][:3])
            raise ValueError(
                f"there is no language {code!r}; there are {len(by_code)}, such as {few}"
            )
    own = copy.deepcopy(tokenizer)
    own.src_lang = source
    forced = by_code.get(target)
    if start in by_code.values() and forced is not None:
        start, forced = forced, None
    return own, Languages(by_code, source, target, start, forced)
