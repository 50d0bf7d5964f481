"""A folder of a Hugging Face model, looked at before anything is built of it: sizes, heads of
weight files, configuration, tokenizer rules.

A folder may come from anywhere. Nothing here reads more of it than has been found to be of a
sensible size, and whatever is wrong with it is one sentence that says what to do.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeGuard

MEGABYTE = 1 << 20
MOST_HEADER = 16 * MEGABYTE  # of a weight file: a hundred thousand tensors
MOST_AXES, MOST_EDGE = 16, 2**48  # of a tensor
MOST_CONFIG = 2 * MEGABYTE
MOST_VOCABULARY = 64 * MEGABYTE
MOST_INDEX = 16 * MEGABYTE
# What is built as often as config.json says, by a word in the key, and how often at most.
MOST_BUILT = {"layers": 1000, "n_layer": 1000, "num_labels": 100_000, "experts": 10_000}
MOST_GROWTH = 64  # how many times longer a tokenizer's rules may make a text
MOST_AROUND = 64  # special tokens and other pieces that may stand around a text

BYTES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U64": 8,
    "U32": 4,
    "U16": 2,
    "U8": 1,
    "BOOL": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
}
FLOATS = ("F64", "F32", "F16", "BF16")
WORDS = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model", "*.spm")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".pkl")
ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # by peft
OF_A_MODEL = ("config.json", ADAPTER)
# What config.json calls the number of layers, by family.
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")


Stamp = tuple[object, ...]


class NotLoaded(ValueError):
    """A model cannot be used here: one sentence says why and what to do."""


def is_folder(where: str) -> bool:
    """True for what is a path, and no name on the hub."""
    path = Path(where).expanduser()
    is_written_so = where.startswith(("/", ".", "~"))
    return is_written_so or _holds_model(path) or is_gguf(path) or bool(steps_of(path))


def _holds_model(folder: Path) -> bool:
    return any((folder / file).is_file() for file in OF_A_MODEL)


# The folder of a training run, as transformers' Trainer writes it, has one of each checkpoint in
# it, and may have the last weights beside them.

CHECKPOINT, OF_STEP = "checkpoint-", re.compile(r"(.+)@(\d+)")
TRAINER_STATE = "trainer_state.json"


def steps_of(folder: Path) -> dict[int, Path]:
    """The folders of a training run's checkpoints by their steps, in order; none in any other
    folder."""
    folders = folder.glob(f"{CHECKPOINT}*") if folder.is_dir() else ()
    steps = {each.name.removeprefix(CHECKPOINT): each for each in folders if _holds_model(each)}
    return dict(sorted((int(step), each) for step, each in steps.items() if step.isdecimal()))


def as_step(where: str) -> str:
    """A path as it is; for that of a checkpoint in a training run that has other weights too
    RUN@STEP, the run by its whole path."""
    folder = Path(os.path.abspath(where))
    if not folder.name.startswith(CHECKPOINT):
        return where
    steps = steps_of(run := folder.parent)
    step = next((step for step, each in steps.items() if each == folder), None)
    has_others = len(steps) > 1 or _holds_model(run)
    return where if step is None or not has_others else f"{run}@{step}"


def folder_of(where: str) -> Path:
    """The folder that a path means: that of a checkpoint for "run@500", and of the latest one for a
    training run without a model of its own; for a LoRA adapter one with the files of its model
    beside it, where these are on this machine; else the path itself."""
    path = Path(where).expanduser()
    match = OF_STEP.fullmatch(where)
    if match and not path.exists():
        path = steps_of(Path(match[1]).expanduser()).get(int(match[2]), path)
    elif not _holds_model(path) and (steps := steps_of(path)):
        path = steps[max(steps)]
    return with_model(path)


def last_step(folder: Path) -> int:
    """The step of the weights that a training run's folder means: of those in it, as their or the
    latest checkpoint's state says, or of the latest checkpoint."""
    steps = steps_of(folder)
    latest = max(steps, default=0)
    if not _holds_model(folder):
        return latest
    own = trainer_state(folder).get("global_step")
    planned = own or trainer_state(steps[latest]).get("max_steps") if steps else own
    return planned if isinstance(planned, int) and planned >= latest else latest


def trainer_state(folder: Path) -> dict:
    """The state that the Trainer wrote into a folder; {} where there is none that can be read."""
    file = folder / TRAINER_STATE
    if not file.is_file() or file.stat().st_size > MOST_INDEX:
        return {}
    try:
        return read_object(file, str(folder), "no state")
    except NotLoaded:
        return {}


def losses(folder: Path) -> tuple[tuple[float, float], ...]:
    """The loss of a training run as it was written down, (step, nats)."""
    steps = steps_of(folder)
    states = [trainer_state(each) for each in (folder, *list(steps.values())[-1:])]
    history: object = next((each["log_history"] for each in states if each.get("log_history")), [])
    return tuple(
        (float(each["step"]), float(each["loss"]))
        for each in (history if isinstance(history, list) else [])
        if isinstance(each, dict)
        and all(isinstance(each.get(key), (int, float)) for key in ("step", "loss"))
    )


# A LoRA adapter alone, which names the model that it was trained on.


def cache() -> Path:
    """The folder of the user's cache in which adapters lie beside their models."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headlight" / "adapters"


def base_of(folder: Path) -> str:
    """The model that a folder's adapter was trained on, by its name on the hub or its folder; ""
    where the folder has a model itself, or no adapter."""
    if not (folder / ADAPTER).is_file() or (folder / "config.json").is_file():
        return ""
    base = read_object(folder / ADAPTER, str(folder), "no adapter").get("base_model_name_or_path")
    return base if isinstance(base, str) else ""


def with_model(folder: Path) -> Path:
    """A folder with the files of an adapter and of its model, which is in a folder or in the cache
    of the hub, as `beside` makes it; the folder itself where it needs none, and where its model is
    not on this machine."""
    base = base_of(folder)
    model = (Path(base).expanduser() if is_folder(base) else snapshot(base)) if base else None
    return folder if model is None else beside(folder, model)


def beside(folder: Path, model: Path) -> Path:
    """A folder in the user's cache with links to the files of an adapter and of its model; the
    adapter's own folder where that has no model, or there can be no links. The adapter's tokenizer
    goes before the model's."""
    if not (model / "config.json").is_file():
        return folder
    links = {file.name: file.resolve() for file in model.iterdir() if file.is_file()}
    links |= {file.name: file.resolve() for file in folder.iterdir() if _goes_along(file)}
    listed = "\n".join(f"{name}\t{file}" for name, file in sorted(links.items()))
    made = cache() / hashlib.sha256(listed.encode()).hexdigest()[:32]
    if not made.is_dir():
        try:
            cache().mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=cache()) as part:
                for name, file in links.items():
                    (Path(part) / name).symlink_to(file)
                shutil.copytree(part, made, symlinks=True, dirs_exist_ok=True)
        except OSError:  # no room, or a system without links
            return folder
    return made


def _goes_along(file: Path) -> bool:
    """True for a file of an adapter's folder that stands before its model's: its own, and a
    tokenizer's."""
    is_own = file.name in (ADAPTER, ADAPTER_WEIGHTS)
    is_words = file.name.startswith(("tokenizer", "special_tokens", "vocab", "merges", "added_"))
    return file.is_file() and (is_own or is_words or file.suffix in (".model", ".spm", ".jinja"))


def is_gguf(path: Path) -> bool:
    """True for a GGUF file that is here."""
    return path.suffix == ".gguf" and path.is_file()


def local_folder(where: str) -> Path | None:
    """The folder with a model's files as they lie on this machine, None where they do not. Nothing
    is fetched."""
    if is_folder(where):
        folder = folder_of(where)
        return folder if folder.is_dir() else None
    if (model := snapshot(where)) is not None:
        return model
    if (adapter := snapshot(where, ADAPTER)) is None:
        return None
    # What it names is a name on the hub: a folder here is none of its maker's.
    base = snapshot(base_of(adapter))
    return adapter if base is None else beside(adapter, base)


def snapshot(name: str, file: str = "config.json") -> Path | None:
    """The folder in this machine's cache of the hub where a file of a model of that name lies; None
    where it does not, or it is no name on the hub."""
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(name, file, cache_dir=constants.HF_HUB_CACHE)
    except HFValidationError:
        return None
    return Path(cached).parent if isinstance(cached, str) else None


def remedy(name: str) -> str:
    """Advice for a model whose files are wrong: look at its folder, or fetch it anew from the
    hub."""
    return "check the folder" if is_folder(bare(name)) else "fetch the model again"


def bare(name: str) -> str:
    """A model's name on the hub or its folder, without the way in which it is opened."""
    return name.partition(":")[2] if name.startswith(("hub:", "ours:")) else name


def not_finite(name: str, key: str) -> str:
    """Error message for a model with a tensor that has a value that is not finite."""
    return (
        f"The weights of {name} contain values that are not numbers (NaN or infinite), the first "
        f"of them in {key[:80]}; choose another model."
    )


def check_sizes(folder: Path, name: str) -> None:
    """Raises NotLoaded where a file of configuration or vocabulary is larger than any real one, or
    is no file at all."""
    for path in (*folder.iterdir(), *folder.glob("additional_chat_templates/*")):
        if path.suffix not in (".json", ".txt", ".model", ".spm", ".jinja"):
            continue
        if path.exists() and not path.is_file():
            raise NotLoaded(f"{path.name} of {name} is no file; {remedy(name)}.")
        limit = (
            MOST_VOCABULARY
            if path.stem in ("tokenizer", "vocab", "merges") or path.suffix in (".model", ".spm")
            else MOST_INDEX
            if path.name.endswith(".index.json")
            else MOST_CONFIG
        )
        if path.is_file() and path.stat().st_size > limit:
            raise NotLoaded(
                f"{path.name} of {name} has {path.stat().st_size / MEGABYTE:,.0f} MB and "
                f"Headlight reads {limit // MEGABYTE}; choose another model."
            )


def read_config(folder: Path, name: str) -> dict:
    """The folder's config.json. Raises NotLoaded where there is none, or it is no configuration."""
    if not (folder / "config.json").is_file():
        raise NotLoaded(_without_config(folder, name))
    return read_object(folder / "config.json", name, "no configuration")


def _without_config(folder: Path, name: str) -> str:
    """Advice on a folder without a config.json."""
    inside = sorted(folder.iterdir())
    if not inside:
        return f"{name} is empty; put a model’s config.json, safetensors and tokenizer there."
    if (folder / ADAPTER).is_file():
        base = base_of(folder)[:60]
        return (
            f"{name} is a LoRA adapter, and the model that it was trained on"
            f"{base and f', {base},'} is not on this machine; fetch that model first, or put both "
            "into one folder."
        )
    models = [each for each in inside if any((each / file).is_file() for file in OF_A_MODEL)]
    if models and (folder / "modules.json").is_file():
        return (
            f"{name} is a sentence-transformers model whose parts have a folder each; open "
            f"{name}/{models[0].name}."
        )
    if models:
        return (
            f"There is no config.json in {name}, but in a folder of it; open "
            f"{name}/{models[0].name}."
        )
    return (
        f"There is no config.json in {name}, so it is not a model that transformers can read; "
        f"{remedy(name)}."
    )


def without_safetensors(files: Iterable[str], name: str) -> NotLoaded:
    """The reason why files of these names hold no weights that are read."""
    endings = {Path(file).suffix for file in files}
    anew = ", or save yours anew with save_pretrained" if is_folder(bare(name)) else ""
    if endings & {*PICKLES}:
        return NotLoaded(
            f"{name} has its weights only in a format that can carry code (pickle); choose a "
            f"version with safetensors{anew}."
        )
    if ".onnx" in endings:
        return NotLoaded(
            f"{name} has its weights only as ONNX, which shows no attention; choose a version with "
            f"safetensors{anew}."
        )
    return NotLoaded(f"{name} has no weights (model.safetensors); {remedy(name)}.")


def read_rules(folder: Path, name: str) -> dict:
    """The folder's tokenizer.json, {} where it has another kind of vocabulary. Raises NotLoaded
    where it cannot be read."""
    file = folder / "tokenizer.json"
    return read_object(file, name, "no tokenizer") if file.is_file() else {}


def eos_ids(folder: Path, name: str) -> frozenset[int]:
    """The ids of the tokens that end a text, one or several, as generation_config.json names them;
    where it names none, as config.json does. Raises NotLoaded where one of them cannot be read."""
    for file in (folder / "generation_config.json", folder / "config.json"):
        named = (
            read_object(file, name, "no configuration").get("eos_token_id") if file.exists() else []
        )
        ids = [each for each in (named if isinstance(named, list) else [named]) if is_id(each)]
        if ids:
            return frozenset(ids)
    return frozenset()


def is_id(value: object) -> TypeGuard[int]:
    """True for a whole number that a token may have."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def read_object(file: Path, name: str, problem: str) -> dict:
    """The object in a JSON file. Raises NotLoaded where it holds none and so is `problem`."""
    try:
        content = json.loads(file.read_text("utf-8"), object_hook=_number)
    except (ValueError, RecursionError, OSError) as error:
        raise NotLoaded(f"The {file.name} of {name} cannot be read; {remedy(name)}.") from error
    if not isinstance(content, dict):
        raise NotLoaded(f"The {file.name} of {name} is {problem}; {remedy(name)}.")
    return content


# How transformers writes numbers that JSON has no sign for.
NUMBERS = {each: {"__float__": each} for each in ("Infinity", "-Infinity", "NaN")}


def _number(written: dict) -> dict | float:
    """An object of a JSON file, or the number that transformers writes as one."""
    return next((float(each) for each, of in NUMBERS.items() if written == of), written)


def check_numbers(config: dict, name: str) -> None:
    """Raises NotLoaded where config.json names more layers, classes or experts than any model that
    is taken, in itself or in a part of it: each would be built, without end."""
    parts = [config]
    while parts:
        part = parts.pop()
        parts += [each for each in part.values() if isinstance(each, dict)]
        for key, value in part.items():
            if isinstance(value, bool) or not isinstance(value, int):
                continue
            most = next((most for word, most in MOST_BUILT.items() if word in key), value)
            if value > most:
                said = f"{value:,}" if value < 10**30 else "a number without end"
                raise NotLoaded(
                    f"The config.json of {name} says {key[:80]} is {said}, and Headlight takes "
                    f"up to {most:,}; choose another model."
                )


def check_layers(config: dict, tensors: int, name: str) -> None:
    """Raises NotLoaded where config.json names more layers than the files hold tensors."""
    for key in LAYERS:
        value = config.get(key)
        if isinstance(value, int) and value > tensors:
            raise NotLoaded(
                f"The config.json of {name} names {value:,} layers and its weights are "
                f"{tensors} tensors; {remedy(name)}."
            )


def check_rules(folder: Path, name: str) -> None:
    """Raises NotLoaded where the tokenizer's rules would make a text many times longer, or put much
    around it."""
    # Without one transformers would make up an empty one.
    has_words = any(path.is_file() for pattern in VOCABULARIES for path in folder.glob(pattern))
    if not has_words and not _needs_no_words(folder, name):
        raise NotLoaded(
            f"There is no tokenizer in {name}; put its tokenizer.json beside the weights."
        )
    rules = read_rules(folder, name)
    try:
        growth = _growth(rules.get("normalizer")) * _growth(rules.get("pre_tokenizer"))
        around = _around(rules.get("post_processor"))
    except (RecursionError, TypeError, AttributeError) as error:
        raise NotLoaded(f"The tokenizer.json of {name} cannot be read; {remedy(name)}.") from error
    if growth > MOST_GROWTH:
        raise NotLoaded(
            f"The tokenizer of {name} makes texts up to {min(growth, 10**9):,} times longer, "
            f"and Headlight takes {MOST_GROWTH}; choose another model."
        )
    if around > MOST_AROUND:
        raise NotLoaded(
            f"The tokenizer of {name} puts {around:,} tokens around every text, and Headlight "
            f"takes {MOST_AROUND}; choose another model."
        )


def _needs_no_words(folder: Path, name: str) -> bool:
    """True for a tokenizer of transformers' own that is code alone, such as ByT5's of bytes."""
    import transformers

    file = folder / "tokenizer_config.json"
    kind = (
        read_object(file, name, "no tokenizer").get("tokenizer_class") if file.is_file() else None
    )
    tokenizer_class = getattr(transformers, kind, None) if isinstance(kind, str) else None
    return (
        isinstance(tokenizer_class, type)
        and issubclass(tokenizer_class, transformers.PreTrainedTokenizerBase)
        and tokenizer_class.__module__.startswith("transformers.models.")
        and not tokenizer_class.vocab_files_names
    )


def _growth(rule: dict | None) -> int:
    """By how much a rule can lengthen a text of one character at most: what is put in place of a
    match, one rule after the other."""
    if rule is None:
        return 1
    steps = [*rule.get("normalizers", ()), *rule.get("pretokenizers", ())]
    growth = prod(map(_growth, steps))
    content = rule.get("content")
    if rule.get("type") == "Replace" and isinstance(content, str):
        # A pattern may match nothing at all, between any two characters.
        may_be_empty = "Regex" in (rule.get("pattern") or {})
        growth *= max(1, len(content) + may_be_empty)
    if rule.get("type") == "Prepend":
        growth *= max(1, len(rule.get("prepend") or "") // 16)
    return min(growth, 10**12)


def _around(rule: dict | None) -> int:
    """The number of tokens that a post-processor puts around a text."""
    if rule is None:
        return 0
    inner = sum(map(_around, rule.get("processors", ())))
    ids = (
        sum(
            len(token.get("ids", ()))
            for token in (rule.get("special_tokens") or {}).values()
            if isinstance(token, dict)
        )
        if isinstance(rule.get("special_tokens"), dict)
        else 0
    )
    return inner + len(rule.get("single", ())) + ids


def weights_of(folder: Path, name: str) -> list[Path]:
    """The safetensors files of a folder, in the order of their names. Raises NotLoaded where there
    are none or one is missing."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        files = [folder / "model.safetensors"]
    elif index.is_file():
        try:
            names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
            if any(Path(file).name != file for file in names):
                raise ValueError("a file outside the folder")
            files = sorted(folder / file for file in names)
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise NotLoaded(
                f"The list of weight files of {name} cannot be read; {remedy(name)}."
            ) from error
    else:
        files = []
    if not files:
        inside = (*folder.iterdir(), *folder.glob("onnx/*"))
        raise without_safetensors((path.name for path in inside), name)
    if missing := [file.name for file in files if not file.is_file()]:
        raise NotLoaded(f"{name} is not whole: {missing[0]} is missing; {remedy(name)}.")
    return files


def headers(folder: Path, name: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Name, type and shape of every tensor of a folder's weights, read from the files' heads alone.
    Raises NotLoaded for a broken file."""
    for file in weights_of(folder, name):
        yield from header_of(file, name)


def header_of(file: Path, name: str) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Name, type and shape of every tensor of a safetensors file. Raises NotLoaded for a broken
    one."""
    size = file.stat().st_size
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if 0 < length < size and length > MOST_HEADER:
                raise NotLoaded(
                    f"The header of {file.name} of {name} takes {length / MEGABYTE:,.0f} MB, and "
                    f"Headlight reads {MOST_HEADER // MEGABYTE}; choose another model."
                )
            header = json.loads(stream.read(length) if 0 < length < size else b"")
        header.pop("__metadata__", None)
        tensors = list(header.values())
        specs = [(key, entry["dtype"], tuple(entry["shape"])) for key, entry in header.items()]
        offsets = sorted(tuple(entry["data_offsets"]) for entry in tensors)
        fits = all(
            len(shape) <= MOST_AXES
            and all(isinstance(edge, int) and 0 <= edge <= MOST_EDGE for edge in shape)
            for _, _, shape in specs
        ) and all(
            entry["data_offsets"][1] - entry["data_offsets"][0] == BYTES[dtype] * prod(shape)
            for entry, (_, dtype, shape) in zip(tensors, specs)
            if dtype in BYTES
        )
        ends = [0, *(end for _, end in offsets)]
        is_complete = 8 + length + ends[-1] == size
        fits = fits and [begin for begin, _ in offsets] == ends[:-1]
    except NotLoaded:
        raise
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as error:
        raise NotLoaded(f"{file.name} of {name} is no safetensors file; {remedy(name)}.") from error
    if not is_complete or not fits:
        raise NotLoaded(f"{file.name} of {name} is cut short or broken; {remedy(name)}.")
    yield from specs


def parameters(folder: Path, name: str) -> int:
    """The number of parameters in a folder's weights."""
    return sum(prod(shape) for _, _, shape in headers(folder, name))


def check_types(tensors: list[tuple[str, str, tuple[int, ...]]], name: str) -> None:
    """Raises NotLoaded where weights are stored as 8-bit floats, whole numbers or truth values.
    Masks and positions may be."""
    for key, kind, shape in tensors:
        is_weight = key.endswith((".weight", ".gamma", ".beta")) or (
            key.endswith(".bias") and len(shape) == 1
        )
        if kind not in FLOATS and (is_weight or kind.startswith("F8")):
            raise NotLoaded(
                f"{name} stores {key[:80]} as {kind}, and Headlight reads weights of 16, 32 or 64 "
                "bits; choose a version in float16, bfloat16 or float32."
            )


def types(folder: Path, name: str) -> list[str]:
    """The types of the floating-point numbers in a folder's weights, the widest first."""
    dtypes = {kind for _, kind, _ in headers(folder, name)}
    return [kind for kind in FLOATS if kind in dtypes]


def without_dropout(folder: Path, name: str) -> str:
    """Note for the card of a tokenizer with merge dropout, which is turned off; "" for any
    other."""
    model = read_rules(folder, name).get("model")
    dropout = model.get("dropout") if isinstance(model, dict) else None
    return f"; the tokenizer’s dropout of {dropout} is off" if dropout else ""


def treatment(folder: Path, name: str) -> str:
    """Precision of the weights in the file and in memory, for the card: "float16, computed in
    float32"."""
    kinds = types(folder, name)
    stored = " and ".join(WORDS[kind] for kind in kinds)
    stored = stored if kinds == ["F32"] else f"{stored}, computed in float32"
    return stored + without_dropout(folder, name)


def stamp(folder: Path) -> Stamp:
    """A fingerprint of a folder's files: it changes when one of them is written, added or
    removed."""
    stats = []
    for path in sorted(folder.iterdir()):
        try:
            stat = path.stat()
        except OSError:  # it has just gone, or leads nowhere
            continue
        stats.append((path.name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns))
    return (str(folder), *stats)


def digest(files: list[Path], before_piece: Callable[[], None] = lambda: None) -> str:
    """SHA-256 over files one after another, read in pieces, in hexadecimal. `before_piece` is
    called before each piece, and may raise."""
    hasher = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                before_piece()
                hasher.update(chunk)
    return hasher.hexdigest()
