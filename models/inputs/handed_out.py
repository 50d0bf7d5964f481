"""Objects that transformers, tokenizers and torch hand out, told apart: a table of forms, each read
as an array of attention or answered by a sentence that says what to give in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.contract.arrays import as_array
from models.contract.notices import tell

AXES = "(layer, head, query, key)"
NOT_RETURNED = (
    "there are no weights of attention here; load the model with attn_implementation='eager' and "
    "call it with output_attentions=True"
)
GENERATED = (
    "these steps of generate do not make the rows of one text; call the model once on its "
    "sequences with output_attentions=True, or record the text with "
    "headlight.wrap(model, tokenizer)"
)
TWO_PARTS = (
    "this model has two parts and three kinds of attention; give its encoder_attentions or "
    "decoder_attentions, or record all of them with headlight.wrap(model, tokenizer)"
)
WHOLE_OUTPUT = (
    "this is all that a model returned; give the weights of attention alone, its attentions"
)
PARTS = (
    "this is no attention and no output that has its attentions; give those of one part of it, "
    "such as output.text_model_output.attentions"
)
SEVERAL = (
    "there are {n} texts in this batch; give its attention_mask as mask, or those of one, "
    "[each[0:1] for each in attentions]"
)
NOT_SQUARE = (
    "the attention has {queries} queries and {keys} keys; there are {n} tokens{rows}; give "
    "what the keys are called as keys, or record all with headlight.wrap(model, tokenizer)"
)
ROWS = ", and another row of them is read, of another text or by a call that kept earlier keys"
NOT_SHOWN = (
    "the cross-attention of this output is not shown; record it with "
    "headlight.wrap(model, tokenizer)"
)
PADDED = (
    "tokens {first} to {last} are padding, which is no part of the text; give the text alone, "
    "attention[..., {begin}:{end}, {begin}:{end}] and tokens[{begin}:{end}]"
)


@dataclass(frozen=True)
class Form:
    """A kind of object by what tells it, with what is read in its place, or the sentence that says
    what to give instead."""

    name: str
    fits: Callable[[Any], bool]
    inner: Callable[[Any], Any] | None = None
    instead: str = ""


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _has(value: Any, *names: str) -> bool:
    """True for one of transformers' outputs that may hold one of these, and for a dict that does;
    an array has attributes of its own."""
    if hasattr(value, "shape") or isinstance(value, (list, tuple, str)):
        return False
    return any(name in value if type(value) is dict else hasattr(value, name) for name in names)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _has_arrays(value: Any) -> bool:
    return _is_sequence(value) and any(hasattr(each, "shape") for each in value)


# In this order; what fits none of them is an array, or its layers one by one.
FORMS = (
    Form("nothing", lambda given: given is None, instead=NOT_RETURNED),
    Form(
        "an output of generate by a model of two parts",
        lambda given: _has(given, "sequences") and not _has(given, "attentions"),
        instead=GENERATED,
    ),
    Form(
        "an output of generate",
        lambda given: _has(given, "sequences"),
        inner=lambda given: _of(given, "attentions"),
    ),
    Form(
        "an output of a model of two parts",
        lambda given: (
            _has(given, "encoder_attentions", "cross_attentions")
            and any(_of(given, f"{each}_attentions") for each in ("encoder", "decoder"))
        ),
        instead=TWO_PARTS,
    ),
    Form(
        "an output without attention",
        lambda given: (
            _has(given, "encoder_attentions", "attentions", "last_hidden_state", "logits")
            and not _of(given, "attentions")
        ),
        instead=NOT_RETURNED,
    ),
    Form(
        "an output of a model",
        lambda given: _has(given, "attentions"),
        inner=lambda given: _of(given, "attentions"),
    ),
    Form(
        "an output of several models, or another mapping",
        lambda given: isinstance(given, Mapping),
        instead=PARTS,
    ),
    Form(
        "no layers",
        lambda given: (
            _is_sequence(given)
            and not any(each is not None and not _is_empty(each) for each in given)
        ),
        instead=NOT_RETURNED,
    ),
    Form(
        "steps of generate",
        lambda given: _is_sequence(given) and all(map(_has_arrays, given)),
        inner=lambda given: _joined(given),
    ),
    Form(
        "an output as a tuple",
        lambda given: _has_arrays(given) and any(map(_has_arrays, given)),
        instead=WHOLE_OUTPUT,
    ),
)


def is_generated(given: Any) -> bool:
    """True for what generate returns, whose last token was written and not read."""
    form = next((form.name for form in FORMS if form.fits(given)), "")
    return form in ("an output of generate", "steps of generate")


def _joined(steps: Sequence[Any]) -> np.ndarray:
    """The weights of all steps of generate, each of the tokens that were new in it to all so far,
    as those of one text, (layer, head, query, key). Raises ValueError for steps that are not so,
    and for several texts."""
    layers = [[as_array(each) for each in step if each is not None] for step in steps]
    ends = np.cumsum([step[0].shape[2] for step in layers]).tolist()
    first = layers[0][0]
    if len(first) != 1:
        raise ValueError(SEVERAL.format(n=len(first)))
    joined = np.zeros((len(layers[0]), first.shape[1], ends[-1], ends[-1]), first.dtype)
    for step, end in zip(layers, ends):
        shape = (1, first.shape[1], step[0].shape[2], end)
        if len(step) != len(joined) or any(each.shape != shape for each in step):
            raise ValueError(GENERATED)
        joined[:, :, end - shape[2] : end, :end] = np.concatenate(step)
    return joined


def texts_of_batch(
    given: Any, tokens: Any, mask: Any
) -> list[tuple[list[np.ndarray], tuple[str, ...]]]:
    """Weights of each layer (head, query, key) and labels of each text of a batch, without what its
    mask (text, token) hides. given: its layers, each (text, head, query, key), or an output that
    has them. Raises ValueError where the shapes disagree."""
    layers = [as_array(each) for each in (_of(given, "attentions") or given) if each is not None]
    shown = as_array(mask).astype(bool)
    names = getattr(tokens, "encodings", None) or tokens
    rows = [labels_of(each) for each in (_of(names, "input_ids") or names)]
    if any(each.ndim != 4 or each.shape[::3] != shown.shape for each in layers) or [
        *map(len, rows)
    ] != [shown.shape[1]] * len(shown):
        raise ValueError(
            "of a batch the layers are (text, head, query, key), the mask (text, token), and "
            f"tokens a row for each text; the mask has the shape {shown.shape}"
        )
    return [
        (
            [each[at][:, seen][:, :, seen] for each in layers],
            tuple(label for label, is_seen in zip(rows[at], seen) if is_seen),
        )
        for at, seen in enumerate(shown)
    ]


def _is_empty(value: Any) -> bool:
    return _is_sequence(value) and not value


def attention_of(given: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    """Weights of attention (layer, head, query, key) of an array of any framework, of its layers
    one by one or of a model's output, and the numbers of these layers where a model has others
    without attention, else none. Raises ValueError with what to give instead for any other form,
    and TypeError for what is no array."""
    for form in FORMS:
        if form.fits(given):
            if form.inner is None:
                raise ValueError(form.instead)
            if _of(given, "cross_attentions"):
                tell(NOT_SHOWN)
            return attention_of(form.inner(given))
    if not _has_arrays(given):
        array = as_array(given)
        if array.ndim == 5 and 1 in array.shape[:2]:  # of a batch of one
            array = array[0] if len(array) == 1 else array[:, 0]
        return _four_axes(array), ()
    numbers = tuple(at for at, each in enumerate(given) if each is not None)
    layers = [as_array(given[at]) for at in numbers]
    layers = [each[0] if each.ndim == 4 and len(each) == 1 else each for each in layers]
    if len({each.shape for each in layers}) > 1:
        raise ValueError(f"the layers have other shapes: {[each.shape for each in layers]}")
    if layers[0].ndim == 4:
        raise ValueError(SEVERAL.format(n=len(layers[0])))
    return _four_axes(np.stack(layers)), numbers if len(numbers) < len(given) else ()


def _four_axes(array: np.ndarray) -> np.ndarray:
    if not 2 <= array.ndim <= 4 or not array.size:
        raise ValueError(f"attention has the axes {AXES}; the shape {array.shape} is another")
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def expect_shape(pattern: np.ndarray, n: int, n_keys: int | None = None) -> None:
    """Raises ValueError where weights (layer, head, query, key) are not those of n tokens to n_keys
    others, to themselves where None."""
    queries, keys = pattern.shape[2:]
    if (queries, keys) == (n, n if n_keys is None else n_keys):
        return
    if n_keys is not None:
        raise ValueError(
            f"the attention has {queries} queries and {keys} keys; there are {n} tokens and "
            f"{n_keys} names of keys"
        )
    if queries == keys:
        raise ValueError(
            f"the attention has {queries} queries and {keys} keys; there are {n} tokens"
        )
    rows = ROWS if n in (queries, keys) else ""
    raise ValueError(NOT_SQUARE.format(queries=queries, keys=keys, n=n, rows=rows))


# What tokenizers hand out in the place of labels.


def labels_of(tokens: Any) -> tuple[str, ...]:
    """The label of each token: labels, token ids of one text, or what a tokenizer hands out for one
    text. Raises TypeError for what is none of these, and ValueError for several texts."""
    encodings = getattr(tokens, "encodings", None)  # of a fast tokenizer
    if encodings:
        if len(encodings) > 1:
            raise ValueError(f"tokens are those of {len(encodings)} texts; give encoding.tokens(0)")
        tokens = encodings[0]
    if isinstance(tokens, Mapping):
        tokens = tokens.get("input_ids", ())
    if isinstance(given := getattr(tokens, "tokens", None), list):  # of the tokenizers library
        tokens = given
    if hasattr(tokens, "shape"):
        tokens = as_array(tokens) if not hasattr(tokens, "astype") else tokens
        if tokens.ndim == 2 and len(tokens) > 1:
            raise ValueError(f"tokens are those of {len(tokens)} texts; give those of one")
        tokens = tokens.reshape(-1).tolist()
    if isinstance(tokens, (list, tuple)) and any(isinstance(e, (list, tuple)) for e in tokens):
        if len(tokens) > 1:
            raise ValueError(SEVERAL.format(n=len(tokens)))
        (tokens,) = tokens
    try:
        return tuple(
            each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each)
            for each in tokens
        )
    except TypeError as error:
        raise TypeError(
            "tokens are labels in a list, one for each token, such as "
            f"tokenizer.convert_ids_to_tokens(ids), and not {tokens!r:.60}"
        ) from error


# Padding, which transformers masks as keys and leaves as queries.

PAD = re.compile(r"[\[<]\W?pad\W?[\]>]", re.IGNORECASE)
EVEN = 1e-6  # of weights that are all 1 / n


def expect_no_padding(pattern: np.ndarray, labels: Sequence[str]) -> None:
    """Raises ValueError where tokens at an end of the text are padding, in weights (layer, head,
    query, key): no token of the text attends to them, and they are called so, or their own rows are
    what only a mask makes, where all other weights are those of a softmax."""
    n, most, least = len(labels), pattern.max(axis=(0, 1)), pattern.min(axis=(0, 1))
    even = np.ptp(pattern, axis=-1).max(axis=(0, 1)) < EVEN
    empty = (np.isnan(pattern) | (pattern == 0)).all(axis=(0, 1, 3))

    def is_padding(text: slice, pads: slice) -> bool:
        if empty[pads].all() and not empty[text].any():
            return True
        if np.isnan(most[text]).any() or most[text, pads].any():
            return False
        if all(map(PAD.fullmatch, labels[pads])):
            return True
        seen = least[text, text] > 0
        is_causal = (seen == np.tril(np.ones_like(seen))).all() and not np.triu(most, 1)[text].any()
        is_masked = not most[pads, pads].any()
        return bool(
            is_masked
            and (is_causal or seen.all())
            or even[pads].all()
            and is_causal
            and not pads.start
        )

    for size in range(n - 2, 0, -1):
        for begin, end in ((0, n - size), (size, n)):
            pads = slice(0, size) if begin else slice(end, n)
            if is_padding(slice(begin, end), pads):
                raise ValueError(
                    PADDED.format(first=pads.start, last=pads.stop - 1, begin=begin, end=end)
                )
