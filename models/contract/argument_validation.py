"""Validation of arguments of `models.contract.model.Model`'s methods: models, names, edits,
recordings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Sized
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from models.contract import tokenizer_output
from models.contract.arrays import as_array
from models.contract.edits import Edit, PatchPath
from models.contract.recording import Recording, from_end
from models.contract.results import HeadScore
from models.contract.spelling import there_are


def edits_of(edits: Edit | Iterable[Edit]) -> tuple[Edit, ...]:
    """Edits as a tuple; a single edit as a tuple of one. Raises TypeError for anything else."""
    if isinstance(edits, Edit):
        return (edits,)
    sequence = tuple(edits) if isinstance(edits, Iterable) and not isinstance(edits, str) else None
    invalid = [edits] if sequence is None else [each for each in sequence if not _is_edit(each)]
    if sequence is None or invalid:
        raise TypeError(
            f"edits are of headlight.edits, such as ZeroHead(0, 3); {_brief(invalid[0])} is none"
        )
    return sequence


def of_model(edits: tuple[Edit, ...], card: Any) -> tuple[Edit, ...]:
    """Edits with each layer and head counted from 0 that was counted from a model's end."""
    sizes = {"layer": card.n_layer, "head": card.n_head}
    sizes |= {f"to_{name}": size for name, size in sizes.items()}

    def resolved(edit: Edit) -> Edit:
        if isinstance(edit, PatchPath) and edit.to == "resid" and edit.to_layer is None:
            edit = replace(edit, to_layer=card.n_layer)
        places = {name: getattr(edit, name, None) for name in sizes}
        return replace(
            edit,
            **{
                name: from_end(value, sizes[name])
                for name, value in places.items()
                if type(value) is int and value < 0
            },
        )

    return tuple(map(resolved, edits))


def text_or_ids(source: Any, separator: int | None = None) -> str | tuple[int, ...]:
    """Input of a model: a text, or token ids, a sequence or an array of one axis or what a
    tokenizer hands out. separator: as of `tokenizer_output.texts_of`. Raises TypeError for anything
    else, and ValueError for no ids and for the ids of several texts."""
    if isinstance(source, str):
        return source
    ids = ids_of(source, separator)
    if not ids:
        raise ValueError("there are no token ids to read")
    return ids


def ids_of(source: Any, separator: int | None = None) -> tuple[int, ...]:
    """Token ids as of `text_or_ids`, also none."""
    if tokenizer_output.is_output(source):
        texts = tokenizer_output.texts_of(source, separator)
        if len(texts) != 1:
            raise ValueError(
                f"these are the ids of {len(texts)} texts; headlight.record and record_all read "
                "several"
            )
        return texts[0]
    try:
        ids = as_array(source)
    except (TypeError, ValueError):
        ids = None
    if ids is None or ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise TypeError(f"a text is a str, or a sequence of token ids; {_brief(source)} is neither")
    return tuple(map(int, ids))


def target_of(target: Any) -> str | tuple[int, ...] | None:
    """The input of a translator's decoder: a text, token ids, also none of them, or None for its
    own translation. Raises as `text_or_ids`."""
    return target if target is None or isinstance(target, str) else ids_of(target)


def texts_of(sources: Any, separator: int | None = None) -> list[Any]:
    """Several texts, each for `text_or_ids`. Raises TypeError for one."""
    if isinstance(sources, str):
        raise TypeError(f"these are several texts in a list, and not one, {_brief(sources)}")
    if tokenizer_output.is_output(sources):
        return list(tokenizer_output.texts_of(sources, separator))
    return list(expect_several("texts", sources))


def expect_several(name: str, values: Any) -> Iterable[Any]:
    """Values one by one. Raises TypeError for one value, a text or bytes."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} are several in a list, and not {_brief(values)}")
    return values


def is_batch(source: Any) -> bool:
    """True for several texts or several lists of ids, and not one of either."""
    if tokenizer_output.is_output(source):
        return tokenizer_output.is_of_several(source)
    if (
        isinstance(source, str)
        or not hasattr(source, "__len__")
        or not hasattr(source, "__getitem__")
    ):
        return False
    axes = getattr(source, "ndim", None)
    return axes > 1 if axes is not None else any(isinstance(each, (str, Sized)) for each in source)


def expect_ids(card: Any, ids: Sequence[int]) -> None:
    """Raises ValueError for a token id that the vocabulary does not have."""
    if wrong := [each for each in ids if not 0 <= each < card.n_vocab]:
        raise ValueError(f"{card.name} has ids 0 to {card.n_vocab - 1}, not {wrong[0]}")


def words_of(card: Any, ids: Any) -> tuple[int, ...]:
    """Words of the vocabulary by their ids. Raises TypeError for what is no list of whole numbers,
    and ValueError for an id that the vocabulary does not have."""
    listed = list(expect_several("ids", ids))
    if text := next((each for each in listed if isinstance(each, str)), None):
        raise TypeError(
            f"a word is its id here, and not {_brief(text)}; model.first_token({text!r})[0] is one"
        )
    words = tuple(whole_number("id", each) for each in listed)
    expect_ids(card, words)
    return words


def word_of(card: Any, id: Any) -> int:
    """One word, as `words_of`."""
    return words_of(card, (id,))[0]


def other_word(card: Any, against: Any) -> int | None:
    """A word, or None for none, as `words_of`."""
    return None if against is None else word_of(card, against)


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The value as an int. Raises TypeError for what is no whole number (a truth value is none),
    and ValueError for one below `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} is a whole number, and not {_brief(value)}")
    if least is not None and value < least:
        raise ValueError(f"{name} is {least} or more, and not {value}")
    return int(value)


def place_of(name: str, value: Any, n: int) -> int:
    """The place from 0 of one of n; a negative one counts from the end. Raises TypeError for what
    is no whole number, and ValueError for what is none of them."""
    place = from_end(whole_number(name, value), n)
    if not 0 <= place < n:
        raise ValueError(f"there is no {name} {value}; the last is {n - 1}")
    return place


def attention_of(card: Any, attentions: Collection[str], name: Any) -> str:
    """The name of an attention. Raises ValueError for one that is not there."""
    if name not in attentions:
        raise ValueError(f"{card.name} has no attention {name!r}; {there_are(name, attentions)}")
    return str(name)


def expect_text(text: Any) -> str:
    """The text. Raises TypeError for anything else."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a str here, and not {_brief(text)}")
    return text


def expect_recording(recording: Any) -> None:
    """Raises TypeError for what is no recording, and ValueError for a part of one."""
    if not isinstance(recording, Recording):
        raise TypeError(
            f"a recording is what model.record(text) returns; {_brief(recording)} is none"
        )
    if recording.is_part:
        raise ValueError(
            "this recording keeps only what was asked of it, for its arrays; record the text "
            "without sites and attention"
        )


def vectors_of(vectors: Any) -> np.ndarray:
    """Vectors (row, width) of any framework, in 32 or 64 bits. Raises TypeError for no array,
    and ValueError for other axes and for numbers that are not finite."""
    array = as_array(vectors)
    array = array if array.dtype == np.float64 else array.astype(np.float32)
    if array.ndim != 2:
        raise ValueError(f"vectors have the shape (row, width), not {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("numbers of vectors are finite; some of these are not")
    return array


def expect_model(model: Any) -> None:
    """Raises TypeError for what is no loaded model."""
    if not hasattr(model, "source") or not hasattr(model, "card"):
        raise TypeError(
            f"a model is a name or what headlight.load(name) returns; {_brief(model)} is neither"
        )


def expect_recording_of(
    model: Any, recording: Any, stream: str | None = None, token: int = 0
) -> int:
    """The token's place from 0 in a stream, the first where None; a negative one counts from the
    end.

    Raises TypeError for what is no recording, and ValueError for one of other weights than the
    model's, with vectors of another width, or without this stream or token."""
    expect_recording(recording)
    origin, card = recording.model, model.card
    if origin.fingerprint != card.fingerprint:
        raise ValueError(
            f"this recording is of {origin.name} (weights {origin.fingerprint}) and the model is "
            f"{card.name} (weights {card.fingerprint}); record the text with {card.name} first"
        )
    states = recording.streams[0] if stream is None else recording.stream(stream)
    if states.resid.shape[-1] != card.d_model:
        raise ValueError(
            f"the vectors of stream {states.name} have {states.resid.shape[-1]} dimensions and "
            f"those of {card.name} have {card.d_model}"
        )
    n, token = len(states.tokens), whole_number("token", token)
    if not -n <= token < n:
        raise ValueError(f"stream {states.name} has tokens 0 to {n - 1}, not {token}")
    return from_end(token, n)


def expect_readout_of(model: Any, recording: Any, stream: str, token: int) -> int:
    """The place from 0 of a token of the last stream, from which words are read, where gradients go
    back to `stream`. Raises as `expect_recording_of`."""
    expect_recording_of(model, recording, stream)
    return expect_recording_of(model, recording, recording.streams[-1].name, token)


def of_attention(model: Any, recording: Any, cell: HeadScore) -> HeadScore:
    """The cell with its places counted from 0; negative ones count from the end.

    Raises as `expect_recording_of`, and ValueError for an attention that is not there."""
    expect_recording_of(model, recording)
    attention = next((each for each in recording.attention if each.name == cell.attention), None)
    if attention is None:
        there = there_are(cell.attention, (each.name for each in recording.attention))
        raise ValueError(f"no attention is called {cell.attention!r}; {there}")
    layers, heads, queries, keys = attention.pattern.shape
    return HeadScore(
        cell.attention,
        place_of("layer", cell.layer, layers),
        place_of("head", cell.head, heads),
        place_of("query", cell.query, queries),
        place_of("key", cell.key, keys),
        None if cell.against is None else place_of("key", cell.against, keys),
    )


def _is_edit(value: object) -> bool:
    return isinstance(value, Edit)


def _brief(value: object) -> str:
    text = repr(value)
    return f"{text[:60]}{'…' * (len(text) > 60)} ({type(value).__name__})"
