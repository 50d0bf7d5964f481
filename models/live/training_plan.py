"""Plans and progress reports of live training: frozen data within bounds, without torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO

# Frames between the app and a process that trains: a line of JSON, then so many bytes as its
# `size` says.


def send(stream: IO[bytes], header: dict, content: bytes = b"") -> None:
    """Write one frame. Raises BrokenPipeError where nobody reads any more."""
    stream.write(json.dumps({**header, "size": len(content)}).encode() + b"\n" + content)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[dict, bytes] | None:
    """The next frame; None at the end."""
    line = stream.readline()
    if not line:
        return None
    header = json.loads(line)
    content = stream.read(header.pop("size"))
    return header, content


LIVE_PREFIX = "live:"  # before the names of models that were trained in this process
TASKS = ("copy", "reverse", "induction", "text")
UNITS = ("characters", "words")  # of a text of one's own
LAYERS, HEADS, WIDTHS = (1, 2, 3), (1, 2, 4), (32, 64)
MIN_LENGTH, MAX_LENGTH = 300, 20_000  # characters of a text of one's own
MAX_SECONDS = 60.0  # of the processor, for one training in all
MAX_STEPS = 6_000
# The steps whose weights are kept beside the last ones.
CHECKPOINT_STEPS = (
    0,
    10,
    20,
    40,
    70,
    100,
    150,
    200,
    300,
    400,
    550,
    750,
    1000,
    1400,
    2000,
    2800,
    4000,
)


@dataclass(frozen=True)
class TrainingPlan:
    """Plan of a live training. words: the reader's sentence, whose words the lists of a task are
    made of; text: the text to learn.

    Raises ValueError, one sentence for the reader, for a value out of bounds."""

    task: str
    words: str = ""
    text: str = ""
    unit: str = UNITS[0]
    n_layer: int = 2
    n_head: int = 2
    d_model: int = 64

    def __post_init__(self) -> None:
        if self.task not in TASKS or self.unit not in UNITS:
            raise ValueError("There is no such task.")
        sizes = ((self.n_layer, LAYERS), (self.n_head, HEADS), (self.d_model, WIDTHS))
        if any(size not in allowed for size, allowed in sizes):
            raise ValueError(
                "A model that is trained live has 1 to 3 layers of 1 to 4 heads, 32 or 64 wide."
            )
        if self.task == "text" and len(self.text.strip()) < MIN_LENGTH:
            raise ValueError(
                f"Paste at least {MIN_LENGTH} characters; this text has {len(self.text.strip())}."
            )
        if len(self.text) > MAX_LENGTH or len(self.words) > MAX_LENGTH:
            raise ValueError(f"At most {MAX_LENGTH:,} characters are learned from.")

    @property
    def kind(self) -> str:
        """The kind of model that the task needs: "decoder" or "encoder-decoder"."""
        return "encoder-decoder" if self.task in ("copy", "reverse") else "decoder"


@dataclass(frozen=True)
class Progress:
    """Progress of a training. curve and held_out: (step, nats); right: the share of right tokens on
    held-out data, NaN before it was measured; seconds: of the processor. steps: those whose weights
    are available, the last one the newest."""

    step: int = 0
    seconds: float = 0.0
    curve: tuple[tuple[float, float], ...] = ()
    held_out: tuple[tuple[float, float], ...] = ()
    right: float = float("nan")
    steps: tuple[int, ...] = ()
