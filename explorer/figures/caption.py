"""Caption of a figure or file that stands alone: the model, what is shown, and what was read."""

from __future__ import annotations

from explorer.wording.templates import sentences
from models.contract.edits import describe
from models.contract.recording import Recording

NOTES = sentences("frame", "text")


def model_line(recording: Recording, subject: str = "") -> str:
    """The model, what of it is shown, and its edits."""
    model = recording.model
    subject_part = f" · {subject}" if subject else ""
    return (
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights "
        f"{model.fingerprint}){subject_part} · edits: {describe(recording.edits) or 'none'}"
    )


def caption(
    recording: Recording, *what: str, subject: str = "", target: str = "Target"
) -> tuple[str, ...]:
    """The lines below a figure: the model's, `what` is shown, and the texts that were read, the
    second one called `target`. Which layers these are, where not all have attention."""
    target_line = (f"{target}: {read_text(recording, target=True)}",) if recording.target else ()
    what = (*what, *hybrid(recording))
    return (model_line(recording, subject), *what, f"Text: {read_text(recording)}", *target_line)


def hybrid(recording: Recording) -> tuple[str, ...]:
    """The line that says which layers of a model are shown, where some have no attention."""
    return tuple(
        NOTES(
            "hybrid",
            model=recording.model.name,
            layers=", ".join(map(str, attention.layers.tolist())),
        )
        for attention in recording.attention
        if attention.layers.size
    )


def read_text(recording: Recording, target: bool = False) -> str:
    """The part of its text, or of its target, that a model read, on one line; " …" in place of what
    did not fit."""
    texts = recording.texts_with_cover(recording.covered)
    text, dropped, stream = (
        (texts[1], recording.target_dropped, -1) if target else (texts[0], recording.dropped, 0)
    )
    end = int(recording.streams[stream].spans[:, 1].max(initial=0)) if dropped else 0
    return " ".join((text[:end] if end > 0 else text).split()) + (" …" if dropped else "")
