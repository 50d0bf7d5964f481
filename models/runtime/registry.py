"""The one door to every model: which there are, loading one, and recording a forward pass on a
text.

Scripts, benchmarks, notebooks and the app use these verbs and nothing else. Importing this module
costs nothing: torch is imported when a model is loaded, transformers when one is loaded in its own
code.

How models are named is told in `models.model_names`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

import numpy as np

from models import smollm2
from models.contract.model import Model
from models.live import live_training
from models.model_names import BARE_SUFFIX as BARE_SUFFIX
from models.model_names import (
    CLUSTER_PREFIX,
    FILE_PREFIX,
    HUB_PREFIX,
    MINE_PREFIX,
    MINILM,
    OURS_PREFIX,
    PERMUTED_SUFFIX,
    SMOLLM2,
    full_path,
    packaged_folder,
    split_prefix,
)
from models.model_names import PACKAGED as PACKAGED
from models.model_names import card as card
from models.model_names import checkpoints as checkpoints
from models.model_names import document_mark as document_mark
from models.model_names import in_languages as in_languages
from models.model_names import is_recorded as is_recorded
from models.model_names import knows as knows
from models.model_names import names as names
from models.model_names import spelled as spelled
from models.model_names import split_languages as split_languages
from models.model_names import unknown as unknown
from models.model_names import without_changes as without_changes
from models.shipped_models import without_earlier as without_earlier
from models.smollm2 import absent as absent

if TYPE_CHECKING:
    from models.network import own_model
    from models.pretrained import hf_model
    from models.readouts.gradients import Decay, Depth

    Stamp = tuple[object, ...]


# Models in memory that callers have wrapped, by name.
_held: WeakValueDictionary[str, Model] = WeakValueDictionary()


def hold(model: Model, along_with: object = None) -> None:
    """Have `load` find a model in memory by its name for as long as it is there, and for as long as
    something else is."""
    _held[model.name] = model
    if along_with is not None:
        weakref.finalize(along_with, lambda model: None, model)


def holds(name: str) -> bool:
    """True where a model in memory has this name."""
    return name in _held


def load(
    name: str,
    progress: Callable[[int, int], None] | None = None,
    dtype: Any = "float32",
    device: Any = "cpu",
) -> Model:
    """The model of that name, loaded; its own name is that one as `spelled` has it.
    `progress(done_bytes, total_bytes)` is called while files are fetched. dtype: in which it
    computes, "float32" or "float64". device: where, such as "cuda"; what is recorded and read out
    are numpy's arrays all the same.

    Raises ValueError, one sentence that says why and what to do, for a name that is not known and a
    model that cannot be used, and for a device that is not there; TypeError for what is no name.
    """
    if not isinstance(name, str):
        raise TypeError(
            f'a model\'s name is a str, such as "encoder" or "hub:FOLDER", and not {name!r:.60}'
        )
    name = spelled(name)
    if str(dtype).removeprefix("torch.") != "float32" or str(device) != "cpu":
        from models.own import precision

        hold(converted := precision.computing(load(name, progress), dtype, device))
        return converted
    return _load(name, progress)


def _load(name: str, progress: Callable[[int, int], None] | None) -> Model:
    if name.startswith(CLUSTER_PREFIX):
        from models.runtime import cluster

        return cluster.load(name)
    if name.startswith((MINE_PREFIX, FILE_PREFIX)) and without_changes(name) == name:
        return _in_memory(name)
    if (variant := _variant(name, progress)) is not None:
        return variant
    location = name.partition(":")[2]
    if name == MINILM:
        from models.pretrained import weight_conversion

        return weight_conversion.load(packaged_folder(), MINILM)
    if name == SMOLLM2:
        from models.pretrained import gguf, weight_conversion

        mark = document_mark(SMOLLM2)
        return gguf.anew(lambda: weight_conversion.load(smollm2.folder(progress), SMOLLM2, mark))
    if name.startswith((HUB_PREFIX, OURS_PREFIX)):
        return _borrowed(name, location, progress)
    if not knows(name):
        raise ValueError(unknown(name))
    from models.network import own_model

    return live_training.load(name) if live_training.is_live(name) else own_model.load(name)


def _in_memory(name: str) -> Model:
    if (model := _held.get(name)) is not None:
        return model
    if is_recorded(name):
        raise ValueError("this recording is no longer open; open its file again")
    raise ValueError(f"the model {name} is no longer in memory; wrap it again")


def _borrowed(name: str, location: str, progress: Callable[[int, int], None] | None) -> Model:
    """A Hugging Face model, in its own code or in our classes."""
    if name.startswith(HUB_PREFIX):
        from models.pretrained import gguf, hf_model, sandbox

        location = str(packaged_folder()) if location == MINILM else location
        load_own = partial(hf_model.load, location, progress, name)
        return sandbox.verify(gguf.anew(load_own), name)
    from models.pretrained import gguf, hub, sandbox, weight_conversion

    def load_ours() -> own_model.OwnModel:
        return weight_conversion.load(hub.find(location, progress, name), name)

    return sandbox.verify(gguf.anew(load_ours), name)


def _variant(name: str, progress: Callable[[int, int], None] | None) -> Model | None:
    """The model of a name that ends in what is changed of another one; None for any other name."""
    base, languages = split_languages(name)
    if languages is not None:
        return between(load(base, progress), languages)
    if name.endswith(PERMUTED_SUFFIX):
        if name.startswith(
            (MINE_PREFIX, FILE_PREFIX)
        ):  # they are shuffled in place, and these are the caller's
            raise ValueError("the weights of a model in memory are not put in random order")
        from models.own.weight_shuffle import permuted

        base_model = load(name.removesuffix(PERMUTED_SUFFIX), progress)
        return permuted(cast("own_model.OwnModel | hf_model.HFModel", base_model), name)
    if name.endswith(BARE_SUFFIX):
        return bare(load(name.removesuffix(BARE_SUFFIX), progress), name)
    return None


def between(model: Model, languages: tuple[str, str]) -> Model:
    """A multilingual translator between two of its languages, (source, target). Raises ValueError
    for another model, and for a language that it does not have."""
    if not model.capabilities.languages:
        raise ValueError(f"{model.name} has no languages to choose from")
    from models.pretrained import hf_model

    return hf_model.between(cast(hf_model.HFModel, model), languages)


def bare(model: Model, name: str) -> Model:
    """The same model, under another name, that reads a text without its document mark before it.
    Raises ValueError for a model that has none."""
    if not (mark := document_mark(model.name)):
        raise ValueError(f"{model.name} puts no document mark before a text")
    own = cast("own_model.OwnModel", model)
    before, after = own.ends
    ends = tuple(each for each in before if each != mark), after
    return replace(own, card=replace(own.card, name=name), ends=ends)


def trial_load(
    location: str,
    progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[str, Stamp | None]:
    """The name under which `load` opens a Hugging Face model, and the `stamp` of its files. The
    model is loaded and run once in a process of its own, under limits on time and memory.

    location: its name on the hub or its folder, "hub:" before it for its own code, "ours:" for
    Headlight's classes. Missing files are fetched first. A model that a cluster serves is tried
    there. Raises ValueError, one sentence, for a model that cannot be used, and where `cancelled()`
    became true."""
    if location.startswith(CLUSTER_PREFIX):
        return location, None
    from models.pretrained import hub, model_files, sandbox

    prefix, location = split_prefix(split_languages(location.strip())[0])
    location = full_path(location) if location else location
    folder = hub.locate(location, progress, cancelled)
    files_stamp = model_files.stamp(folder)
    try:
        way = sandbox.tester.try_out(folder, location, prefix, cancelled)
    except model_files.NotLoaded:
        if folder.exists():
            raise
        folder = hub.locate(location, progress, cancelled)  # a damaged conversion, now removed
        files_stamp = model_files.stamp(folder)
        way = sandbox.tester.try_out(folder, location, prefix, cancelled)
    return way + location, files_stamp


def stamp(name: str) -> Stamp | None:
    """The current fingerprint of a Hugging Face model's files on this machine. It changes when a
    file is written. None for a model without files here."""
    from models.pretrained import model_files

    prefix, location = split_prefix(without_changes(name))
    folder = model_files.local_folder(location) if prefix else None
    return None if folder is None else model_files.stamp(folder)


def cached_models() -> tuple[str, ...]:
    """Names of the hub's models whose files lie in this machine's cache of it."""
    from models.pretrained import hub

    return hub.cached_models()


def families() -> list[dict[str, str]]:
    """A table of the Hugging Face families that are tried by the tests: what each shows of itself,
    and whether our own classes run it."""
    from models.pretrained import weight_conversion

    attention_kinds = {"encoder": "self", "decoder": "self, causal"}
    return [
        {
            "family": family.name,
            "kind": family.kind,
            "attention": attention_kinds.get(family.kind, "self, causal, cross"),
            "q, k, v and scores": "yes" if family.opens else "patterns alone",
            "residual stream": "every sub-layer" if family.law else "after each layer",
            "norms": family.norm,
            "positions": family.positions,
            "in Headlight’s own classes": "yes"
            if family.model_type in weight_conversion.CONVERSIONS
            else "",
            "example": family.example,
        }
        for family in weight_conversion.SUPPORTED_FAMILIES
    ]


def depth(vectors: np.ndarray) -> Depth:
    """The gradient at every layer of a deep stack with random weights on the first 12 of some
    embeddings (token, d_model), with residual connections and without."""
    from models.readouts import gradients

    return gradients.depth(vectors)


def decay(ids: Iterable[int], lag: int) -> Iterator[Decay]:
    """An RNN, an LSTM and a small Transformer learning side by side to say the token `lag` back:
    gradients by distance, as it goes on. The first 48 tokens are read."""
    from models.readouts import gradients

    return gradients.decay(tuple(ids), lag)


def longest_lag(n: int) -> int:
    """The largest lag that `decay` takes for a text of n tokens; 0 where the text is too short."""
    from models.readouts import gradients

    return gradients.longest_lag(n)
