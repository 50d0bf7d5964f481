"""Weights as views of their files, so that a model and its files are never both held in memory."""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import _TYPES
from torch import Tensor
from torch.overrides import TorchFunctionMode

from models.pretrained import lora, model_files

TYPES: dict[str, torch.dtype] = {name: kind for name, kind in _TYPES.items() if kind is not None}
Tensors = dict[str, Tensor]


def map_weights(folder: Path, name: str) -> tuple[Tensors, Callable[[], None]]:
    """The weights in a folder as views of its files, and what gives the memory of those that were
    read back to the system, so that a model and its files are never both held whole. Those that an
    adapter changes are tensors of their own."""
    tensors: Tensors = {}
    maps: list[mmap.mmap] = []
    for file in model_files.weights_of(folder, name):
        with file.open("rb") as stream:
            file_map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        maps.append(file_map)
        tensors |= views(file_map)
    for update in lora.updates(folder, name):
        if (key := lora.find(update.target, {*tensors})) is not None:
            family = model_files.read_config(folder, name).get("model_type")
            turned = family in lora.STORED_IN_OUT and "lm_head" not in key
            tensors[key] = update.merged(tensors[key], name, turned)

    def release_pages() -> None:
        for each in maps if hasattr(mmap, "MADV_DONTNEED") else ():
            each.madvise(mmap.MADV_DONTNEED)

    return tensors, release_pages


def views(file_map: mmap.mmap) -> Tensors:
    """The tensors of a safetensors file that lies in memory."""
    begin = 8 + int.from_bytes(file_map[:8], "little")
    header = json.loads(file_map[8:begin])
    return {
        key: torch.frombuffer(
            file_map,
            dtype=TYPES[entry["dtype"]],
            count=prod(entry["shape"]),
            offset=begin + entry["data_offsets"][0],
        ).view(entry["shape"])
        if prod(entry["shape"])
        else torch.empty(entry["shape"], dtype=TYPES[entry["dtype"]])
        for key, entry in header.items()
        if key != "__metadata__"
    }


class Unfilled(TorchFunctionMode):
    """Leaves out the normal random numbers of weights that are replaced at once: on the meta device
    they would import torch's compiler, which takes longer than the model."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        keywords = kwargs or {}
        if func is torch.nn.init.normal_:
            return args[0] if args else keywords["tensor"]
        return func(*args, **keywords)
