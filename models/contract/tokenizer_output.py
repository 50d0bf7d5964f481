"""Output of a tokenizer of transformers or tokenizers, as the token ids of texts.

`tokenizer(text)` is a mapping with `input_ids` and an `attention_mask`, of one text or of several;
an `Encoding` of the tokenizers library has `ids`. Padding, which the mask hides, is no part of a
text. What a recording would not follow is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from models.contract.arrays import as_array

# What may stand beside the ids: it says where they come from, and not how they are read.
BESIDE = frozenset(
    {
        *("input_ids", "attention_mask", "token_type_ids", "special_tokens_mask"),
        *("offset_mapping", "length", "overflow_to_sample_mapping", "overflowing_tokens"),
        "num_truncated_tokens",
    }
)


def is_output(source: Any) -> bool:
    """True for what a tokenizer hands out, and for any other mapping, which `texts_of` refuses."""
    return isinstance(source, Mapping) or _is_encoding(source)


def is_of_several(output: Any) -> bool:
    """True for the output for a list of texts; an array with one row is one text."""
    ids: Any = _fields(output).get("input_ids")
    if hasattr(ids, "shape"):
        return len(ids.shape) > 1 and len(ids) != 1
    return isinstance(ids, (list, tuple)) and bool(ids) and hasattr(ids[0], "__len__")


def segments(ids: Sequence[int], separator: int) -> list[int]:
    """Of each token of one text or of a pair 0, and 1 for those of the second: what comes after the
    first separator."""
    first = list(ids).index(separator) if separator in ids else len(ids)
    return [int(at > first) for at in range(len(ids))]


def texts_of(output: Any, separator: int | None = None) -> tuple[tuple[int, ...], ...]:
    """The token ids of each text, without padding. separator: the token after which a model reads a
    second text, None for one that reads no pairs. Raises ValueError, one sentence, for an output
    without ids, with something that a recording would leave out, and for a mask with a hole."""
    fields = _fields(output)
    if "input_ids" not in fields:
        some = ", ".join(map(repr, list(fields)[:5])) or "nothing"
        raise ValueError(f"a tokenizer's output has input_ids; this has {some}")
    if others := [each for each in fields if each not in BESIDE]:
        raise ValueError(
            f"of a tokenizer's output input_ids and attention_mask are read, and {others[0]!r} "
            "would be left out; give input_ids alone"
        )
    rows = _rows(fields["input_ids"])
    masks = _rows(fields["attention_mask"]) if "attention_mask" in fields else [None] * len(rows)
    types = _rows(fields["token_type_ids"]) if "token_type_ids" in fields else [None] * len(rows)
    if not len(rows) == len(masks) == len(types):
        raise ValueError("a tokenizer's output has as many masks as rows of ids")
    return tuple(map(partial(_shown, separator), rows, masks, types))


def _shown(
    separator: int | None, ids: np.ndarray, mask: np.ndarray | None, types: np.ndarray | None
) -> tuple[int, ...]:
    """The ids of a row that its mask shows."""
    seen = np.ones(len(ids), bool) if mask is None else mask.astype(bool)
    if len(seen) != len(ids):
        raise ValueError(f"the attention_mask has {len(seen)} numbers for {len(ids)} ids")
    places = np.flatnonzero(seen)
    if len(places) and places[-1] - places[0] + 1 != len(places):
        raise ValueError(
            "this attention_mask hides tokens between others, which a recording would show; leave "
            "them out, or use an edit"
        )
    read_ids = tuple(map(int, ids[seen]))
    own = [0] * len(read_ids) if types is None else list(map(int, types[seen[: len(types)]]))
    if any(own) and (separator is None or own != segments(read_ids, separator)):
        raise ValueError(
            "some of these token_type_ids are not 0, as of a second text, which this model's "
            "tokenizer does not frame so; give input_ids alone to have all read as one text"
        )
    return read_ids


def _rows(value: Any) -> list[np.ndarray]:
    """Lists of whole numbers, or one, each as an array. Raises TypeError for anything else."""
    nested = isinstance(value, (list, tuple)) and bool(value) and hasattr(value[0], "__len__")
    array = None if nested else as_array(value)
    rows = [as_array(each) for each in (value if array is None else np.atleast_2d(array))]
    if any(each.ndim != 1 or (each.size and each.dtype.kind not in "iub") for each in rows):
        raise TypeError("a tokenizer's output holds token ids, whole numbers, a row for each text")
    return rows


def _is_encoding(source: Any) -> bool:
    return hasattr(source, "ids") and hasattr(source, "attention_mask")


def _fields(output: Any) -> Mapping[str, Any]:
    if isinstance(output, Mapping):
        return output
    return {
        "input_ids": output.ids,
        "attention_mask": output.attention_mask,
        "token_type_ids": output.type_ids,
    }
