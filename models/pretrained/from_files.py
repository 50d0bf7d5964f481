"""A Hugging Face model and its tokenizer from the files of a folder, or one sentence that says why
not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import torch

from models.encoding import guarded
from models.pretrained import files
from models.pretrained.files import NotLoaded, mend
from models.pretrained.hub_tokenizer import HubTokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

    AutoClass = type[_BaseAutoModelClass]


def tokenizer_of(folder: Path, name: str) -> HubTokenizer:
    """The model's own tokenizer. Raises NotLoaded where it cannot be read."""
    import transformers

    try:
        with guarded(ImportError):
            read = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
        return HubTokenizer(read)
    except ImportError as error:
        what = first_line(error).partition(". ")[0]
        raise NotLoaded(
            f"The tokenizer of {name} needs a Python package that is not installed here "
            f"({what}); install it or choose a model with a tokenizer.json."
        ) from error
    # Files from anywhere, read by code of many families: they fail in any way.
    except Exception as error:
        raise NotLoaded(
            f"The tokenizer of {name} cannot be read; {mend(name)} or choose another."
        ) from error


def model_of(folder: Path, name: str) -> PreTrainedModel:
    """The model with its readout where it was trained with one, else without. Raises NotLoaded
    where weights are missing or do not fit."""
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        kinds: tuple[AutoClass, ...] = (*_readouts(config), transformers.AutoModel)
        for kind in kinds:
            _expect_size(kind, config, folder, name)
            model, told = kind.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                attn_implementation="eager",
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
            missing = [key for key in told["missing_keys"] if "pooler" not in key]
            if not missing:
                return model
    except NotLoaded:
        raise
    except Exception as error:  # as for the tokenizer
        raise NotLoaded(
            f"The weights of {name} do not fit its configuration; {mend(name)} or choose another."
        ) from error
    raise NotLoaded(
        f"{name} lacks {len(missing)} of its weights, {missing[0]} among them; {mend(name)} "
        "or choose another."
    )


def _expect_size(kind: AutoClass, config: PreTrainedConfig, folder: Path, name: str) -> None:
    """Raises NotLoaded where the configuration describes a far larger model than the files hold:
    what is missing would be made up, in memory."""
    with torch.device("meta"):
        described = sum(each.numel() for each in kind.from_config(config).parameters())
    held = files.parameters(folder, name)
    if described > 2 * held + 1_000_000:
        raise NotLoaded(
            f"The config.json of {name} describes {described:,} numbers and its weights are "
            f"{held:,}; {mend(name)} or choose another."
        )


def _readouts(config: PreTrainedConfig) -> tuple[AutoClass, ...]:
    """The class with a readout over the vocabulary that the weights were saved from, if they
    were."""
    import transformers
    from transformers.models.auto import modeling_auto as tables

    said = (config.architectures or [""])[0]
    for kind, names in (
        (transformers.AutoModelForSeq2SeqLM, tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
        (transformers.AutoModelForMaskedLM, tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
        (transformers.AutoModelForCausalLM, tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    ):
        if said and said == names.get(config.model_type):
            return (kind,)
    pretraining = said and said == tables.MODEL_FOR_PRETRAINING_MAPPING_NAMES.get(config.model_type)
    return (
        (transformers.AutoModelForMaskedLM,)
        if pretraining and config.model_type in tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        else ()
    )


def first_line(error: Exception) -> str:
    """What an error says in its first line, its kind where it says nothing."""
    return next(
        (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
    ).rstrip(".")[:200]


_silence = Lock()


@contextmanager
def quietly() -> Iterator[None]:
    """Without the bars and remarks that transformers writes to the terminal, one at a time: what is
    put back is what was there."""
    from transformers.utils import logging

    _silence.acquire()
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
        _silence.release()
