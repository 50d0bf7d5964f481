"""Sources of a Hugging Face model's files: a folder, this machine's cache, or the hub.

Everything that can be known before the weights are fetched is checked before: the kind of model,
the file format, size against memory and disk. Weights are read from safetensors alone, which hold
numbers and no code, and no code of a model's own is ever run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch

from models.pretrained import config_mapping, gguf, gguf_header, lora, machine_limits, model_files
from models.pretrained.hub_tokenizer import HubTokenizer
from models.pretrained.model_files import NotLoaded, remedy
from models.tokens.encoding import guarded

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

    AutoClass = type[_BaseAutoModelClass]


# A Hugging Face model and its tokenizer from the files of a folder, or one sentence that says why
# not.


def tokenizer_of(folder: Path, name: str) -> HubTokenizer:
    """The model's own tokenizer. Raises NotLoaded where it cannot be read."""
    import transformers

    try:
        with guarded(ImportError):
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
        return HubTokenizer(tokenizer, model_files.eos_ids(folder, name))
    except ImportError as error:
        raise NotLoaded(
            f"The tokenizer of {name} needs a Python package that is not installed here: run "
            f"python -m pip install {_package(error)} and start Headlight again, or choose a model "
            "with a tokenizer.json."
        ) from error
    # Files from anywhere, read by code of many families: they fail in any way.
    except Exception as error:
        raise NotLoaded(
            f"The tokenizer of {name} cannot be read; {remedy(name)} or choose another."
        ) from error


def _package(error: ImportError) -> str:
    """The package that is missing, by what Python or transformers says of it."""
    requirement = re.search(r"requires the (\w+) library", str(error))
    return (requirement[1].lower() if requirement else error.name) or first_line(error)


def model_of(folder: Path, name: str) -> PreTrainedModel:
    """The model with its readout, or its classes, where it was trained with them, else without.
    Raises NotLoaded where weights are missing or do not fit."""
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        kinds: tuple[AutoClass, ...] = (*_readouts(config), transformers.AutoModel)
        for kind in kinds:
            _expect_size(kind, config, folder, name)
            model, loading_info = kind.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                attn_implementation="eager",
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
            missing = [key for key in loading_info["missing_keys"] if "pooler" not in key]
            if not missing:
                _merge_adapter(model, folder, name)
                return model
    except NotLoaded:
        raise
    except Exception as error:  # as for the tokenizer
        raise NotLoaded(
            f"The weights of {name} do not fit its configuration; {remedy(name)} or choose another."
        ) from error
    raise NotLoaded(
        f"{name} lacks {len(missing)} of its weights, {missing[0]} among them; {remedy(name)} "
        "or choose another."
    )


@torch.no_grad()
def _merge_adapter(model: PreTrainedModel, folder: Path, name: str) -> None:
    """Add what a folder's LoRA adapter adds. Raises NotLoaded where the model has no such
    matrix."""
    from transformers.pytorch_utils import Conv1D

    parameters = dict(model.named_parameters())
    for update in lora.updates(folder, name):
        if (key := lora.find(update.target, {*parameters})) is None:
            raise NotLoaded(
                f"The LoRA adapter of {name} is for {update.target[:80]}, which the model does not "
                "have in its own code; choose another."
            )
        turned = isinstance(model.get_submodule(key.rpartition(".")[0]), Conv1D)
        parameters[key].copy_(update.merged(parameters[key], name, turned))


def _expect_size(kind: AutoClass, config: PreTrainedConfig, folder: Path, name: str) -> None:
    """Raises NotLoaded where the configuration describes a far larger model than the files hold:
    what is missing would be made up, in memory."""
    with torch.device("meta"):
        configured = sum(each.numel() for each in kind.from_config(config).parameters())
    stored = model_files.parameters(folder, name)
    if configured > 2 * stored + 1_000_000:
        raise NotLoaded(
            f"The config.json of {name} describes {configured:,} numbers and its weights are "
            f"{stored:,}; {remedy(name)} or choose another."
        )


def _readouts(config: PreTrainedConfig) -> tuple[AutoClass, ...]:
    """The class with a readout over the vocabulary, or over classes of texts, that the weights were
    saved from, if they were."""
    import transformers
    from transformers.models.auto import modeling_auto as tables

    architecture = (config.architectures or [""])[0]
    for kind, names in (
        (transformers.AutoModelForSeq2SeqLM, tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES),
        (transformers.AutoModelForMaskedLM, tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES),
        (transformers.AutoModelForCausalLM, tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
        (
            transformers.AutoModelForSequenceClassification,
            tables.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
        ),
    ):
        if architecture and architecture == names.get(config.model_type):
            return (kind,)
    pretraining = architecture and architecture == tables.MODEL_FOR_PRETRAINING_MAPPING_NAMES.get(
        config.model_type
    )
    return (
        (transformers.AutoModelForMaskedLM,)
        if pretraining and config.model_type in tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        else ()
    )


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its kind where it has no message."""
    return next(
        (line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__
    ).rstrip(".")[:200]


_silence = Lock()


@contextmanager
def quietly() -> Iterator[None]:
    """Silence transformers' progress bars and messages, one thread at a time, and restore its
    settings."""
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


WAIT_SECONDS = 10.0

SMALL_FILES = (".json", ".txt", ".model", ".spm")  # configuration and tokenizer

# Another address of the hub, such as a mirror; None for the one that the environment (HF_ENDPOINT)
# or huggingface_hub knows.
ENDPOINT: str | None = None

Progress = Callable[[int, int], None]


def find(where: str, progress: Progress | None = None, name: str = "") -> Path:
    """The folder with a model's files, fetched from the hub first where `where` is a name there.

    `progress(done_bytes, total_bytes)` is called while files arrive. Raises NotLoaded, which calls
    the model `name`, `where` if empty.
    """
    folder = locate(where, progress)
    if model_files.is_folder(where.strip()):
        check(folder, name or where.strip())
    return folder


def locate(
    where: str,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Path:
    """As `find`, and of a folder nothing is looked at yet, but the model that an adapter in it
    names is fetched. A GGUF file is converted until `cancelled()`."""
    where = where.strip()
    if not where:
        raise NotLoaded(
            "Give the name of a model on the Hugging Face hub, such as "
            "distilbert-base-uncased, or a folder."
        )
    if not model_files.is_folder(where):
        return _from_hub(where, progress)
    folder = model_files.folder_of(where)
    if (file := gguf.gguf_file(folder)) is not None:
        tensors = gguf_header.check(file, file.name)
        machine_limits.check_size(sum(prod(each.shape) for each in tensors), 0, file.name)
        return gguf.converted(file, file.name, progress=progress, cancelled=cancelled)
    if not folder.is_dir():
        raise NotLoaded(_no_folder(where))
    base = model_files.base_of(folder)
    if base and not model_files.is_folder(base):
        return model_files.beside(folder, _model_of_adapter(where, base, progress))
    return folder


def _no_folder(where: str) -> str:
    """Error message for a path that is no folder; of a step that a training run did not keep, those
    that it kept."""
    run, _, step = where.rpartition("@")
    steps = model_files.steps_of(Path(run).expanduser()) if step.isdecimal() else {}
    if steps:
        return f"{run} has no checkpoint of step {step}; it has {', '.join(map(str, steps))}."
    return f"There is no folder {where}; check the path."


def cached_models() -> tuple[str, ...]:
    """Names of models whose files lie in this machine's cache of the hub."""
    from huggingface_hub import constants

    folders = Path(constants.HF_HUB_CACHE).glob("models--*")
    return tuple(sorted(each.name.removeprefix("models--").replace("--", "/") for each in folders))


def check(folder: Path, name: str) -> None:
    """Raises NotLoaded where a folder's model cannot be used: files out of all proportion, what
    `check_config` and `check_size` refuse, no safetensors, or no vocabulary or a strange one."""
    try:
        model_files.check_sizes(folder, name)
        config = model_files.read_config(folder, name)
        check_config(config, name)
        tensors = list(model_files.headers(folder, name))
        model_files.check_layers(config, len(tensors), name)
        model_files.check_types(tensors, name)
        machine_limits.check_size(model_files.parameters(folder, name), 0, name)
        lora.check(folder, name)
        model_files.check_rules(folder, name)
    except NotLoaded:
        if gguf.manifest(folder):
            digest = model_files.digest(model_files.weights_of(folder, name))
            gguf.check_digest(folder, digest, name)
        raise
    except OSError as error:
        raise NotLoaded(
            f"The files of {name} cannot be read "
            f"({error.strerror or 'an error of the disk'}); {remedy(name)}."
        ) from error


def check_config(config: dict, name: str) -> None:
    """Raises NotLoaded where config.json says that a model is not one of text with attention that
    transformers itself knows."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    model_files.check_numbers(config, name)
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise NotLoaded(
            f"The config.json of {name} does not say what type of model it is; {remedy(name)}."
        )
    if kind not in CONFIG_MAPPING:
        if config.get("auto_map"):
            raise NotLoaded(
                f"{name} runs only with code of its own, and Headlight runs no code from the "
                "hub; choose a model that transformers knows."
            )
        raise NotLoaded(
            f"{name} is a model of type {kind!r}, which transformers "
            f"{transformers.__version__} does not know; choose another."
        )
    if "quantization_config" in config:
        raise NotLoaded(
            f"{name} has quantised weights, which Headlight does not compute with; choose the "
            "version without quantisation."
        )
    if config.get("pruned_heads"):
        raise NotLoaded(
            f"The config.json of {name} names pruned heads, and its weights do not say which heads "
            "are left; choose the version before pruning."
        )
    config_mapping.check_rotary(config, name)
    _check_family(config, kind, name)


def _check_family(config: dict, kind: str, name: str) -> None:
    """Raises NotLoaded where a family has no forward pass over a text or no attention, or where its
    own settings do not take config.json."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    settings = CONFIG_MAPPING[kind]
    autos = (transformers.AutoModel, transformers.AutoModelForCausalLM)
    mapping = None
    with suppress(ImportError, ValueError):  # a class of which transformers has the name alone
        known = (each._model_mapping for each in autos if settings in each._model_mapping)
        mapping = next((each[settings] for each in known), None)
    if mapping is None:
        raise NotLoaded(
            f"{name} is a model of type {kind!r}, which AutoModel of transformers does not load; "
            "choose another."
        )
    try:
        family_config = settings.from_dict(config)
    # A family's settings refuse what they do not understand in ways of their own.
    except Exception as error:
        raise NotLoaded(
            f"The config.json of {name} describes no model that can be built; {remedy(name)} or "
            "choose another."
        ) from error
    model_class = mapping[0] if isinstance(mapping, (tuple, list)) else mapping
    input_name = getattr(model_class, "main_input_name", "")
    if input_name != "input_ids" or any(
        key in config for key in ("vision_config", "audio_config", "speech_config", "image_size")
    ):
        raise NotLoaded(
            f"{name} reads images or sound ({kind}); Headlight shows models that read text."
        )
    parts = [getattr(family_config, name, None) for name in family_config.sub_configs]
    if all(_setting(each, "num_attention_heads", None) is None for each in (family_config, *parts)):
        raise NotLoaded(
            f"{name} has no attention ({kind}), so there are no heads to see; choose a Transformer."
        )
    for key in ("num_attention_heads", "hidden_size", "num_hidden_layers", "vocab_size"):
        value = _setting(family_config, key, 1)
        if not isinstance(value, (int, list, dict)) or isinstance(value, int) and value < 1:
            raise NotLoaded(
                f"The config.json of {name} says {key} is {str(value)[:40]}, and it is a "
                f"whole number above 0; {remedy(name)}."
            )


def _setting(config: PreTrainedConfig | None, key: str, default: int | None) -> Any:
    """A setting of a family's configuration or of a part of it, 1 where it differs by layer."""
    try:
        return getattr(config, key, default)
    except Exception:  # it is asked of each layer alone
        return 1


def _from_hub(name: str, progress: Progress | None, of_adapter: bool = False) -> Path:
    """The folder in the cache of a model on the hub, all that is needed fetched; of an adapter one
    with the files of its model too. of_adapter: an adapter names this model, which may be none
    itself."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        HTTPError,
        OfflineModeIsEnabled,
    )

    api = HfApi(endpoint=ENDPOINT)
    with _plain_errors(name):
        try:
            info = api.model_info(name, files_metadata=True, timeout=WAIT_SECONDS)
        except HfHubHTTPError:
            raise
        except (OfflineModeIsEnabled, HTTPError, ConnectionError, TimeoutError) as error:
            return _from_cache(name, error)
        except HFValidationError as error:
            raise NotLoaded(
                f"{name!r} is not a name on the hub; names look like owner/model."
            ) from error
        sizes = {
            file.rfilename: file.size or 0
            for file in info.siblings or ()
            if "/" not in file.rfilename
        }
        if "config.json" not in sizes and model_files.ADAPTER in sizes and not of_adapter:
            return _adapter_from_hub(name, sizes, progress)
        files = _required_files(sizes, name)
        total, done_bytes = sum(sizes[file] for file in files), 0
        # Without a revision, so that it is found again offline.
        folder = Path(_fetch(name, "config.json", None, None)).parent
        check_config(model_files.read_config(folder, name), name)
        machine_limits.check_size(_count_on_hub(info, sizes, files), total, name)
        for file in files:
            _fetch(
                name, file, folder.name, progress and _file_progress(done_bytes, total, progress)
            )
            done_bytes += sizes[file]
            if progress is not None:
                progress(done_bytes, total)
    check(folder, name)
    return folder


def _from_cache(name: str, error: Exception) -> Path:
    folder = model_files.local_folder(name)
    if folder is None:
        raise NotLoaded(
            f"The Hugging Face hub cannot be reached, and {name} is not on this machine yet; "
            "go online once, or give a folder with its files."
        ) from error
    check(folder, name)
    return folder


def _required_files(sizes: dict[str, int], name: str) -> list[str]:
    """The files that are needed, small ones first. Raises NotLoaded where there is no configuration
    or there are no safetensors."""
    if "config.json" not in sizes:
        raise NotLoaded(
            f"There is no config.json in {name}, so it is not a model that transformers can "
            "read; choose another."
        )
    weights = [file for file in sizes if file.endswith(".safetensors")]
    weight_files = [file for file in weights if file == "model.safetensors"] or [
        file for file in weights if file.startswith("model-")
    ]
    if not weight_files:
        raise model_files.without_safetensors(sizes, name)
    small_files = _small_files(sizes, name)
    adapter = [lora.WEIGHTS] if {lora.WEIGHTS, model_files.ADAPTER} <= sizes.keys() else []
    return small_files + sorted(weight_files) + adapter


def _small_files(sizes: dict[str, int], name: str) -> list[str]:
    """The files of configuration and vocabulary. Raises NotLoaded where one is larger than any."""
    small_files = sorted(file for file in sizes if file.endswith(SMALL_FILES))
    if large := [file for file in small_files if sizes[file] > model_files.MOST_VOCABULARY]:
        raise NotLoaded(
            f"{large[0]} of {name} is a download of "
            f"{machine_limits.size_text(sizes[large[0]])}, more than any "
            "vocabulary; choose another."
        )
    return small_files


def _adapter_from_hub(name: str, sizes: dict[str, int], progress: Progress | None) -> Path:
    """A folder with the files of an adapter on the hub and of the model there that it names, which
    is fetched first. Raises NotLoaded where one of them cannot be used."""
    if lora.WEIGHTS not in sizes:
        raise model_files.without_safetensors(sizes, name)
    files = [*_small_files(sizes, name), lora.WEIGHTS]
    machine_limits.check_size(sizes[lora.WEIGHTS] // 2, sum(sizes[file] for file in files), name)
    folder = Path(_fetch(name, model_files.ADAPTER, None, None)).parent
    config = model_files.read_object(folder / model_files.ADAPTER, name, "no adapter")
    base, revision = model_files.base_of(folder), config.get("revision")
    if not base or revision not in (None, "main"):
        raise NotLoaded(
            f"{name} is a LoRA adapter that names no model which can be fetched"
            f"{base and f', but {base[:60]} at {str(revision)[:40]}'}; put its files into a folder "
            "with those of its model, and open that folder."
        )
    lora.check_kind(config, name)
    model = _model_of_adapter(name, base, progress)
    for file in files:
        _fetch(name, file, folder.name, None)
    merged = model_files.beside(folder, model)
    check(merged, name)
    return merged


def _model_of_adapter(name: str, base: str, progress: Progress | None) -> Path:
    """The folder of the model on the hub that an adapter names. Raises NotLoaded where it cannot be
    used."""
    try:
        return _from_hub(base, progress, of_adapter=True)
    except NotLoaded as error:
        raise NotLoaded(
            f"{name} is a LoRA adapter, and its model cannot be used: {error}"
        ) from error


def _count_on_hub(info: object, sizes: dict[str, int], files: list[str]) -> int:
    """Number of parameters that the hub counted; else the most that the files can hold (2 bytes
    each)."""
    weight_info = getattr(info, "safetensors", None)
    if weight_info is not None and weight_info.total:
        return weight_info.total
    return sum(sizes[file] for file in files if file.endswith(".safetensors")) // 2


def _fetch(
    name: str, file: str, revision: str | None, on_progress: Callable[[int], None] | None
) -> str:
    """Fetch one file of a model into the cache; the callback gets the number of its bytes so
    far."""
    from huggingface_hub import hf_hub_download

    return hf_hub_download(
        name, file, revision=revision, endpoint=ENDPOINT, tqdm_class=_meter(on_progress)
    )


def _file_progress(done_bytes: int, total: int, progress: Progress) -> Callable[[int], None]:
    """A callback that reports one file's bytes as progress of all files, after `done_bytes` before
    it."""
    return lambda file_bytes: progress(min(done_bytes + file_bytes, total), total)


def _meter(on_progress: Callable[[int], None] | None) -> type:
    """A progress bar that draws nothing and tells how far it is."""
    from huggingface_hub.utils import tqdm

    most = 0  # there may be two bars, one of what came and one of what is written

    class Meter(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})
            self.seen: float = kwargs.get("initial") or 0

        def update(self, n: float | None = 1) -> None:
            nonlocal most
            self.seen += n or 0
            most = max(most, int(self.seen))
            if on_progress is not None:
                on_progress(most)

    return Meter


@contextmanager
def _plain_errors(name: str) -> Iterator[None]:
    """Turns what the hub answers into one sentence."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        yield
    except NotLoaded:
        raise
    except GatedRepoError as error:
        raise NotLoaded(
            f"{name} is given out only to those who accepted its terms on the hub; accept "
            "them and log in with `hf auth login`, or choose another."
        ) from error
    except RepositoryNotFoundError as error:
        raise NotLoaded(
            f"There is no model {name} on the Hugging Face hub, or it is private; check the "
            "spelling."
        ) from error
    except HfHubHTTPError as error:
        raise NotLoaded(
            f"The Hugging Face hub answered with an error for {name} "
            f"({error.response.status_code}); try again later."
        ) from error
    except (HTTPError, LocalEntryNotFoundError, ConnectionError, TimeoutError) as error:
        raise NotLoaded(
            f"The connection to the Hugging Face hub broke while fetching {name}; try again, "
            "and what has come is kept."
        ) from error
    except OSError as error:
        raise NotLoaded(
            f"The files of {name} could not be stored ({error.strerror or error}); check the disk."
        ) from error
