"""Names of models, and how they are spelled.

The names: those in `names()`; `hub:WHERE`, a Hugging Face model by its name on the hub or its
folder, in its own code; `ours:WHERE`, its weights in Headlight's own classes, for the families that
they cover. `hub:minilm` and `minilm` are the same weights in both ways. `cluster:NAME`: one that
replicas on a cluster serve, see `models.runtime.cluster`. `live:NAME`: one in
`models.live.live_training`. Any that is in this process with `@permuted` behind it is that model
with its weights in random order, see `models.own.weight_shuffle`. `file:NAME-DIGEST`: a recording
that was opened, see `models.inputs.recorded_model`. A multilingual translator with
`@eng_Latn-fra_Latn` behind it translates from the one language into the other, by the codes of its
tokenizer. The folder of a training run of transformers' Trainer with `@500` behind it is its
checkpoint of that step, also where it is opened by a path of its own, RUN/checkpoint-500; and by
itself the last weights. `@bare` behind the name of a model whose training documents were separated
by a mark: the model reads a text without that mark before it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from models import shipped_models, smollm2
from models.contract.spelling import nearest
from models.live import live_training

if TYPE_CHECKING:
    from pathlib import Path

MINILM, SMOLLM2 = "minilm", smollm2.NAME
PACKAGED = MINILM, SMOLLM2  # pretrained models that come as Python packages
# What people read in the place of a name that says how a model came about.
TITLES = {"twin-post": "LayerNorm after", "twin-pre": "LayerNorm before"}
HUB_PREFIX, OURS_PREFIX, CLUSTER_PREFIX = "hub:", "ours:", "cluster:"
MINE_PREFIX = "mine:"  # of a model in memory that a caller has wrapped
FILE_PREFIX = "file:"  # of the recording of a file, which stands for its model
PERMUTED_SUFFIX, BARE_SUFFIX = "@permuted", "@bare"
# A code begins with a letter: "model@v1-2" may be a folder's name.
LANGUAGE = r"[A-Za-z_]\w*"
IN_LANGUAGES = re.compile(rf"(.+)@({LANGUAGE})-({LANGUAGE}|)")
MINILM_CARD = {
    "name": MINILM,
    "kind": "encoder",
    "summary": (
        "all-MiniLM-L6-v2, a pretrained BERT made to give sentences vectors; here in Headlight’s "
        "own classes."
    ),
    "headline": "Heads of a model in real use.",
    "n_parameters": 22_564_992,
    "config": {
        "n_layer": 6,
        "n_head": 12,
        "d_model": 384,
        "d_head": 32,
        "n_vocab": 30522,
        "n_positions": 512,
    },
    "readout": False,
    "data": ["see the model’s own card: a billion English sentence pairs"],
    "recipe": ["pretrained by others (Apache 2.0); the weights’ hash is checked before use"],
    "limits": [
        "It has no readout: it gives a vector for each token and makes no prediction.",
        "English, in lower case; a character that its vocabulary lacks becomes one unknown token.",
    ],
    "checkpoints": [],
}


def names() -> tuple[str, ...]:
    """The names of the models that are here: our own, and MiniLM and SmolLM2 where they can be
    had."""
    shipped, there = shipped_models.names(), (shipped_models.packaged(), not smollm2.absent())
    packaged = (name for name, is_there in zip(PACKAGED, there) if is_there)
    return (*shipped[:3], *packaged, *shipped[3:])


def knows(name: str) -> bool:
    """True for a name that `load` takes; whether there is such a model on the hub shows when it is
    loaded."""
    base = name.partition("@")[0]
    if base in PACKAGED and base != without_changes(name):
        return False  # these have no earlier weights
    prefixes = HUB_PREFIX, OURS_PREFIX, CLUSTER_PREFIX
    is_external = name.startswith(prefixes) and name.partition(":")[2].strip()
    return live_training.knows(name) or base in names() or bool(is_external)


def unknown(name: str) -> str:
    """Advice on a name that `load` does not take, in one sentence."""
    if live_training.is_live(name):
        return live_training.GONE
    begin = f"no model is called {name!r}"
    if is_path(name):
        return (
            f"{begin}; a folder or a GGUF file opens as 'ours:{name}', in Headlight’s own classes, "
            f"or as 'hub:{name}', in its own code"
        )
    near = nearest(name, names())
    here = f"the nearest one here is {near!r}" if near else "headlight.names() lists those here"
    return (
        f"{begin}; {here}, and one of the Hugging Face hub opens as 'hub:{name}' or 'ours:{name}'"
    )


def is_path(name: str) -> bool:
    """True for what is written as a folder or a GGUF file."""
    return name.startswith(("/", ".", "~")) or "\\" in name or name.endswith(".gguf")


def without_changes(name: str) -> str:
    """A model's name without what is changed of it: its document mark left out, its weights in
    random order, the languages that it translates between."""
    for suffix in (PERMUTED_SUFFIX, BARE_SUFFIX):
        if name.endswith(suffix):
            return without_changes(name.removesuffix(suffix))
    base, languages = split_languages(name)
    return name if languages is None else without_changes(base)


def split_languages(name: str) -> tuple[str, tuple[str, str] | None]:
    """A model's name without the languages behind it, and these, (source, target), "" for a target
    that the model chooses; None where there are none."""
    match = IN_LANGUAGES.fullmatch(name) if name.startswith(HUB_PREFIX) else None
    return (match[1], (match[2], match[3])) if match else (name, None)


def in_languages(name: str, languages: tuple[str, str]) -> str:
    """The name of a multilingual translator between other languages."""
    return f"{split_languages(name)[0]}@{'-'.join(languages)}"


def card(name: str) -> dict:
    """The model card: data, recipe, scores, limits. Raises ValueError for an unknown name."""
    read_card = live_training.card if live_training.is_live(name) else shipped_models.card
    packaged = {MINILM: MINILM_CARD, SMOLLM2: smollm2.CARD}
    return packaged[name] if name in packaged else read_card(name)


def document_mark(name: str) -> str:
    """The special token that separated the documents of a model's training, and that it reads
    before a text unless its name says `@bare`; "" for a model without one."""
    base = name.partition("@")[0]
    return str(card(base).get("document_mark", "")) if base in names() else ""


def cards() -> dict[str, dict]:
    """The cards of all models by name."""
    return {name: card(name) for name in names()}


def title(name: str) -> str:
    """A model's name as a person reads it."""
    if live_training.is_live(name):
        return live_training.title(name)
    if name.startswith(HUB_PREFIX):
        base, languages = split_languages(name)
        between = f" from {languages[0]} to {languages[1]}" if languages else ""
        return f"{base.removeprefix(HUB_PREFIX)}{between} (original code)"
    if name.startswith(CLUSTER_PREFIX):
        return f"{name.removeprefix(CLUSTER_PREFIX)} (on the cluster)"
    if name.endswith(BARE_SUFFIX):
        return f"{name.removesuffix(BARE_SUFFIX)} without {document_mark(name)}"
    if is_recorded(name):
        return f"{name.removeprefix(FILE_PREFIX).rpartition('-')[0]} (recording)"
    base, at, step = name.partition("@")
    return f"{TITLES[base]}{at}{step}" if base in TITLES else name.removeprefix(OURS_PREFIX)


def bare_name(name: str) -> str:
    """The name of a model that reads no document mark before a text; "" for one that has none."""
    return f"{name.partition('@')[0]}{BARE_SUFFIX}" if document_mark(name) else ""


def is_local(name: str) -> bool:
    """True for a model that is read from this project's own files or from memory."""
    base = name.partition("@")[0]  # most are shipped, and asked for many times a page
    return base in shipped_models.names() or base in names() or live_training.is_live(name)


def is_recorded(name: str) -> bool:
    """True for a recording of a file, of which nothing else can be computed by its model."""
    return name.startswith(FILE_PREFIX)


def is_borrowed(name: str) -> bool:
    """True for a model that does not come with Headlight, and may have to be fetched."""
    return not is_local(name) and name != f"{HUB_PREFIX}{MINILM}"


def text_writers() -> str:
    """The models here that continue any text, as the end of a sentence."""
    return " or ".join(name for name in ("decoder", SMOLLM2) if name in names())


def checkpoints(name: str) -> tuple[str, ...]:
    """The names of a model's earlier weights, which `load` knows too, earliest first: of a model of
    ours, and of the folder of a training run, whose last ones may be among them."""
    prefix, location = split_prefix(name)
    if prefix:
        from models.pretrained import model_files

        return tuple(f"{name}@{step}" for step in model_files.steps_of(_path(location)))
    return (
        shipped_models.checkpoints(name)
        if name in shipped_models.names()
        else live_training.checkpoints(name)
    )


def _path(location: str) -> Path:
    from pathlib import Path

    return Path(location).expanduser()


def packaged_folder() -> Path:
    """The folder of MiniLM's files, checked. Raises ValueError where its package is not installed
    or has other weights."""
    folder = shipped_models.packaged()
    if folder is None:
        raise ValueError(f"the package {shipped_models.PACKAGE} is not installed")
    return shipped_models.verified(folder)


def spelled(name: str) -> str:
    """A name in the one way that `load` and lists use: no white space, no slash at its end, a
    folder by its whole path, a checkpoint of a training run as the run at its step."""
    prefix, location = split_prefix(name.strip())
    return f"{prefix}{full_path(location)}" if prefix else name.strip()


def split_prefix(location: str) -> tuple[str, str]:
    """ "hub:" or "ours:" where a name begins with it, else "", and the rest."""
    prefix = next((each for each in (HUB_PREFIX, OURS_PREFIX) if location.startswith(each)), "")
    return prefix, location.removeprefix(prefix).strip()


def full_path(location: str) -> str:
    """A folder by its whole path, and a checkpoint beside others as RUN@STEP; a name on the hub as
    it is, no slash at its end."""
    from models.pretrained import model_files

    path = os.path.expanduser(location)
    is_local = path.startswith(("/", ".")) or (path.endswith(".gguf") and os.path.isfile(path))
    return model_files.as_step(os.path.abspath(path) if is_local else location.rstrip("/"))
