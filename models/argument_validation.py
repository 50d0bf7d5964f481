"""What callers hand to the methods of `models.model.Model`, checked where it comes in: a model or
its name, edits, and a recording of that model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from models.edits import Edit
from models.recording import Recording


def edits_of(edits: Edit | Iterable[Edit]) -> tuple[Edit, ...]:
    """Edits as a tuple; one by itself is a tuple of one. Raises TypeError for what is no edit."""
    if isinstance(edits, Edit):
        return (edits,)
    several = tuple(edits) if isinstance(edits, Iterable) and not isinstance(edits, str) else None
    wrong = [edits] if several is None else [each for each in several if not _is_edit(each)]
    if several is None or wrong:
        raise TypeError(
            f"edits are those of models.edits, such as ZeroHead(0, 3); {_briefly(wrong[0])} is none"
        )
    return several


def expect_text(text: object) -> None:
    """Raises TypeError for what is no text."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a str; {_briefly(text)} is none")


def expect_model(model: Any) -> None:
    """Raises TypeError for what is no loaded model."""
    if not hasattr(model, "source") or not hasattr(model, "card"):
        raise TypeError(
            f"a model is a name or what headlight.load(name) returns; {_briefly(model)} is neither"
        )


def expect_recording_of(handle: Any, recording: Any, stream: str, token: int = 0) -> None:
    """Raises TypeError for what is no recording, and ValueError for one of other weights than the
    handle's, with vectors of another width, or without this stream or token. Negative tokens count
    from the end."""
    if not isinstance(recording, Recording):
        raise TypeError(
            f"a recording is what model.record(text) returns; {_briefly(recording)} is none"
        )
    one, other = recording.model, handle.card
    if one.fingerprint != other.fingerprint:
        raise ValueError(
            f"this recording is of {one.name} (weights {one.fingerprint}) and the model is "
            f"{other.name} (weights {other.fingerprint}); record the text with {other.name} first"
        )
    of = recording.stream(stream)
    if of.resid.shape[-1] != other.d_model:
        raise ValueError(
            f"the vectors of stream {stream} have {of.resid.shape[-1]} dimensions and those of "
            f"{other.name} have {other.d_model}"
        )
    n = len(of.tokens)
    if not -n <= token < n:
        raise ValueError(f"stream {stream} has tokens 0 to {n - 1}, not {token}")


def _is_edit(value: object) -> bool:
    return isinstance(value, Edit)


def _briefly(value: object) -> str:
    shown = repr(value)
    return f"{shown[:60]}{'…' * (len(shown) > 60)} ({type(value).__name__})"
