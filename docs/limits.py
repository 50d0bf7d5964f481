"""Every limit of a public call: its number, which is read in the code, and how a caller hears of
it. `python -m docs.reference` writes them as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

REFUSED = "refused in a sentence"
TOLD = "told in a `Notice`"
SAID = "stated by what is returned"


@dataclass(frozen=True)
class Limit:
    """A limit: its module and name there, what it bounds, and what becomes of what is beyond."""

    place: str
    bounds: str
    beyond: str

    @property
    def value(self) -> Any:
        """The number in the code."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)

    @property
    def number(self) -> str:
        """The number as a document has it."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return " and ".join(
            f"{each:,}" if isinstance(each, int) else f"{each:g}" for each in values
        )


LIMITS = (
    Limit(
        "models.pretrained.config_mapping:LONGEST",
        "tokens of a text in a model that `load` opens from the hub or a folder; `wrap` has none",
        TOLD,
    ),
    Limit(
        "models.pretrained.config_mapping:MOST_BYTES_OF_PATTERNS",
        "bytes of such a model's scores and patterns, by which it reads fewer tokens",
        TOLD,
    ),
    Limit(
        "models.network.torch_layers:N_POSITIONS",
        "tokens of a text in a wrapped `nn.TransformerEncoder` without a table of positions",
        TOLD,
    ),
    Limit(
        "models.network.generation:LENGTH_LIMIT",
        "tokens of a translation: so many times those of its source, and so many more",
        TOLD,
    ),
    Limit(
        "models.pretrained.hf_model:LONGEST_ANSWER",
        "tokens that a translator in its own code answers where no target is given",
        TOLD,
    ),
    Limit(
        "models.contract.path_integral:STEPS",
        "parts of the way of integrated gradients (`steps`)",
        TOLD,
    ),
    Limit(
        "explorer.analysis.corpus:MOST_LINES",
        "sentences of a panel of `corpus`, the run's text among them",
        TOLD,
    ),
    Limit("explorer.analysis.corpus:LONGEST_LINE", "characters of such a further sentence", TOLD),
    Limit(
        "explorer.analysis.embeddings:MOST_WORDS",
        "words of each of two groups of anchors (`anchors`)",
        TOLD,
    ),
    Limit("explorer.analysis.embeddings:LONGEST_WORD", "letters of a word of such a group", TOLD),
    Limit(
        "explorer.figures.figure_export:MOST_PIXELS",
        "pixels of a PNG; of more it has fewer dots an inch",
        TOLD,
    ),
    Limit(
        "models.inputs.array_model:HALF_TOLERANCE",
        "by which a row of `view` or `from_cache` may miss 1; it is divided by its sum, told",
        REFUSED,
    ),
    Limit(
        "models.inputs.activation_dicts:SUM_TOLERANCE",
        "share by which states of `from_cache` may miss their sum",
        REFUSED,
    ),
    Limit("models.contract.edit_validation:MAX_EDITS", "edits of a recording", REFUSED),
    Limit(
        "models.contract.edit_validation:MAX_DIGITS", "digits of a whole number in an edit", REFUSED
    ),
    Limit("models.contract.edits:MOST", "numbers in an edit", REFUSED),
    Limit(
        "models.contract.edits:MAX_RANGE_HEADS",
        "heads that one word of a line of edits names",
        REFUSED,
    ),
    Limit("models.contract.arrays:MAX_AXES", "axes of the numbers in an edit", REFUSED),
    Limit(
        "explorer.panels.interventions:MAX_TOKENS",
        "tokens of a text in `panels.interventions.experiments`",
        REFUSED,
    ),
    Limit(
        "explorer.panels.interventions:MAX_SWEEP",
        "tokens that `panels.interventions.patches` reads",
        REFUSED,
    ),
    Limit(
        "explorer.panels.translation:MOST_BEAMS",
        "beams of `panels.translation.hypotheses`; `Model.beams` has none",
        REFUSED,
    ),
    Limit(
        "models.live.training_plan:MAX_LENGTH", "characters of a text that is learned live", REFUSED
    ),
    Limit(
        "models.contract.npz:MOST_ARRAYS", "arrays of a file, where `most_bytes` is given", REFUSED
    ),
    Limit("models.contract.npz:MOST_AXES", "axes of an array of a file", REFUSED),
    Limit("models.contract.recording_file:MOST_HEADER", "bytes of the header of a file", REFUSED),
    Limit(
        "models.pretrained.machine_limits:MOST_PARAMETERS",
        "parameters of a model that `load` opens",
        REFUSED,
    ),
    Limit(
        "models.readouts.circuits:TOP_WORDS",
        "words each way of `circuits`, in the shape of its arrays",
        SAID,
    ),
    Limit(
        "models.readouts.ffn:MAX_NEURONS",
        "neurons among `strongest` of `neurons`, with words",
        SAID,
    ),
    Limit("models.readouts.ffn:TOP_WORDS", "words each way of such a neuron", SAID),
    Limit(
        "models.readouts.gradients:DEPTH_TOKENS",
        "first tokens that `registry.depth` reads (`tokens`)",
        SAID,
    ),
    Limit(
        "models.readouts.gradients:MAX_TOKENS",
        "first tokens that `registry.decay` reads (`length`)",
        SAID,
    ),
)


def rows() -> Iterable[str]:
    """Each limit as a row of a table."""
    return (f"| {each.number} | {each.bounds} | {each.beyond} |" for each in LIMITS)
