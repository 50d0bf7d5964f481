"""A Hugging Face model of text in its own code, loaded and looked over, ready to record."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from models.pretrained import files, hub, numbers
from models.pretrained.described import LONGEST, longest
from models.pretrained.files import NotLoaded, mend
from models.pretrained.from_files import first_line, model_of, quietly, tokenizer_of
from models.pretrained.hooks import LayersDiffer, put_hooks, register
from models.pretrained.hub import Progress
from models.pretrained.hub_tokenizer import HubTokenizer
from models.pretrained.stream import Unfollowed
from models.pretrained.survey import N_SOURCE, Plan, survey, words_of
from models.recording import Card

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, eq=False)
class Handle:
    """A loaded model, ready to record. It is shared by everyone and never changes.

    `lock`: one pass at a time, because some families' code writes on its modules while it runs.
    """

    card: Card
    tokenizer: HubTokenizer
    model: PreTrainedModel
    plan: Plan
    start: int | None
    source: ClassVar[str] = "models.pretrained.huggingface"
    lock: Lock = field(default_factory=Lock)


def load(where: str, progress: Progress | None = None, name: str = "") -> Handle:
    """A model by its name on the hub, such as "distilbert/distilbert-base-uncased", or from a
    folder; in float32 on the CPU.

    `progress(done_bytes, total_bytes)` is called while it is fetched. `name` is what its card calls
    it, `where` if empty. Raises NotLoaded, a ValueError whose one sentence says why a model cannot
    be used and what to do.
    """
    name = name or where.strip()
    folder = hub.find(where, progress, name)
    with quietly():
        tokenizer = tokenizer_of(folder, name)
        model = model_of(folder, name)
        treatment = files.treatment(folder, name)
        numbers.check(model, name, halves="F16" in files.types(folder, name))
        digest = files.digest(files.weights_of(folder, name))[:12]
        return handle_of(model, tokenizer, name, digest, treatment)


def handle_of(
    model: PreTrainedModel,
    tokenizer: HubTokenizer,
    name: str,
    fingerprint: str,
    weights: str = "float32",
) -> Handle:
    """A handle around a transformers model in memory, loaded with eager attention. Raises NotLoaded
    where it shows too little."""
    register()
    start = _start(model) if model.config.is_encoder_decoder else None
    try:
        plan = survey(model.eval(), start)
    except Unfollowed as error:
        raise NotLoaded(
            f"Headlight cannot show {name}: {error}; choose a model of another family."
        ) from error
    # a family's code, with settings from anywhere, breaks off in many ways
    except (ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
        raise NotLoaded(_why_it_breaks_off(error, name)) from error
    put_hooks([place.module for stream in plan.streams for place in stream.places()], plan.door)
    card = Card(
        name=name,
        kind="encoder-decoder" if start is not None else "decoder" if plan.causal else "encoder",
        n_layer=max(plan.n_layer.values()),
        n_head=plan.n_head,
        d_model=plan.streams[0].d_model,
        d_head=plan.d_head,
        n_vocab=len(words_of(model)),
        n_positions=_longest(model, tokenizer, plan),
        n_parameters=sum(parameter.numel() for parameter in model.parameters()),
        fingerprint=fingerprint,
        weights=weights,
    )
    return Handle(card, tokenizer, model, plan, start)


def _why_it_breaks_off(error: Exception, name: str) -> str:
    """What is wrong with a model whose code does not come to the end of the trial's text, and what
    to do, by the kind of error that it ended with."""
    if isinstance(error, LayersDiffer):
        return (
            f"Headlight cannot show {name}: some of its layers see a window of fewer than "
            f"{N_SOURCE} tokens, and others do not; choose a version with a wider window."
        )
    if isinstance(error, IndexError):
        return (
            f"A token or position that the config.json of {name} names lies beyond the end of its "
            f"tables; {mend(name)} or choose another."
        )
    if isinstance(error, RuntimeError) and "allocate memory" in str(error):
        return f"{name} needs more memory than is free; close something or choose a smaller model."
    if isinstance(error, RuntimeError):
        return (
            f"The sizes in the config.json of {name} do not fit together; {mend(name)} or choose "
            "another."
        )
    if isinstance(error, ValueError):  # written by its authors, for who uses it
        return (
            f"The code of {name} refuses a text of {N_SOURCE} tokens (“{first_line(error)}”); "
            "change its settings or choose a model of another family."
        )
    return (
        f"The code of {name} breaks off on a text of {N_SOURCE} tokens with the settings of its "
        f"config.json; {mend(name)} or choose another."
    )


def _start(model: PreTrainedModel) -> int:
    """The token that a decoder begins with."""
    for settings in (getattr(model, "generation_config", None), model.config):
        for key in ("decoder_start_token_id", "bos_token_id", "pad_token_id"):
            if (token := getattr(settings, key, None)) is not None:
                return token
    return 0


def _longest(model: PreTrainedModel, tokenizer: HubTokenizer, plan: Plan) -> int:
    """The longest text a model is given: what it was made for, the window within which all its
    layers see the same, and what memory holds."""
    bounds = [LONGEST, getattr(tokenizer.own, "model_max_length", LONGEST)]
    bounds += [
        value
        for key in ("max_position_embeddings", "n_positions", "max_seq_len", "sliding_window")
        if isinstance(value := getattr(model.config, key, None), int)
    ]
    for stream in plan.streams:
        weight = getattr(stream.positions, "weight", None)
        if isinstance(weight, Tensor) and weight.dim() == 2:
            begins = getattr(stream.positions, "offset", 0)
            padding = getattr(stream.positions, "padding_idx", None)
            if plan.positions == "learned" and padding is not None:
                begins = padding + 1  # RoBERTa counts from there
            bounds.append(len(weight) - begins)
    return longest(bounds, plan.n_head, sum(plan.n_layer.values()))
