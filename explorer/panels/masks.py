"""The words that a model fills in: masked in its run where the model has a mask; and how they are
declared as a choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from explorer.analysis import opening, predictions
from explorer.panels.choice import Choice
from explorer.panels.selection import place_if_any
from explorer.wording.templates import sentences
from models.contract.edits import HideToken
from models.contract.recording import Recording, Stream
from models.runtime.caching import loaded
from models.runtime.run import Run

NOTHING = "none"  # masked, as the address says it: no word. Where it says nothing, one is


def fills(recording: Recording) -> bool:
    """True for a model that fills gaps, False for one that writes."""
    return recording.model.kind == "encoder"


def can_hide(recording: Recording) -> bool:
    """True for a model that fills in masked words and has a mask."""
    return fills(recording) and HideToken in loaded(recording).capabilities.edits


def masked_in(run: Run) -> tuple[int, ...]:
    """The words that a run masks."""
    return tuple(edit.token for edit in run.edits if isinstance(edit, HideToken))


def masking(run: Run, hidden: tuple[int, ...]) -> Run:
    """A run with these words masked."""
    return replace(run, edits=(*run.edits, *map(HideToken, hidden)))


def unmasked(run: Run) -> Recording:
    """The recording of a run without its masks."""
    edits = tuple(edit for edit in run.edits if not isinstance(edit, HideToken))
    return replace(run, edits=edits).recording()


def gaps(
    recording: Recording, chosen: int | None, asked: tuple[int, ...] | None
) -> tuple[tuple[int, ...], int | None]:
    """The masked words, in order, and the selected token, None in a text without tokens of its own.
    chosen: the token that a reader selected; asked: the words to mask, () where that is open, None
    for no word. Where no token is selected, the first typed mask, else the word that the first page
    opens on."""
    stream = recording.streams[0]
    first = opening.masked_word(recording)
    typed = predictions.typed_masks(stream, loaded(recording).capabilities.mask)
    if first is None:
        return (), None
    if typed:
        return _beside_typed(stream, typed, chosen, asked)
    place = chosen if chosen is not None and not stream.special[chosen] else None
    if asked is None:
        return (), first if place is None else place
    chosen_tokens = tuple(sorted({at for at in asked if not stream.special[at]}))
    hidden = chosen_tokens or ((first if place is None else place),)
    return hidden, hidden[0] if place is None else place


def _beside_typed(
    stream: Stream, typed: tuple[int, ...], chosen: int | None, asked: tuple[int, ...] | None
) -> tuple[tuple[int, ...], int]:
    """The same of a text with typed masks: another word is masked or selected where the reader
    chose it."""
    hidden = {at for at in asked or () if not stream.special[at]} - {*typed}
    is_selected = chosen in typed or (
        asked != () and chosen is not None and not stream.special[chosen]
    )
    return tuple(sorted(hidden)), chosen if is_selected and chosen is not None else typed[0]


# ---- as a choice ---------------------------------------------------------------------------------


def _masked(run: Run, line: str) -> tuple[int, ...] | None:
    """The tokens of a line of an address, () for none, where that is open, and None for no word.
    Raises ValueError for what is not there."""
    if line == NOTHING:
        return None
    n = len(run.recording().streams[0].tokens)
    numbers = line.split(".") if line else []
    if all(each.isdecimal() and len(each) < 6 and int(each) < n for each in numbers):
        return tuple(map(int, numbers))
    names = f"{NOTHING}, 0 … {n - 1}"
    raise ValueError(
        sentences("selection", "refusals")("no_choice", name="hidden", value=line, names=names)
    )


def _checked(run: Run, chosen: Mapping[str, Any], line: str) -> str:
    _masked(run, line)
    return line


def read_masked(run: Run, chosen: Mapping[str, Any]) -> tuple[Run, dict[str, Any]]:
    """The run with the words masked that are chosen, else the selected one, else the one that a
    text opens on, where the model fills in words and has a mask; and the token whose prediction is
    opened."""
    read, known = read_word(run, chosen)
    token = chosen.get("token")
    return read, known if token is None or "hidden" not in known else {**known, "token": token}


def read_word(run: Run, chosen: Mapping[str, Any]) -> tuple[Run, dict[str, Any]]:
    """The same, where a token is opened that has a word to fill in."""
    if run.loaded.capabilities.classes:
        return run, {"token": 0}
    if not can_hide(run.recording()):
        return run, {}
    n = len(run.recording().streams[0].tokens)
    token, asked = place_if_any("token", chosen.get("token"), n), chosen.get("hidden", "")
    hidden, place = gaps(run.recording(), token, _masked(run, asked))
    if place is None:
        return run, {}
    line = ".".join(map(str, hidden)) or NOTHING
    return masking(run, hidden), {"token": place, "hidden": line}


HIDDEN = Choice(
    of="text",
    checked=_checked,
    spelled=lambda run, line: "",  # the run says it
    reads=read_masked,
    help="masked tokens with dots between them, or `none`",
)
Hidden = Annotated[str, HIDDEN]
HiddenOrWord = Annotated[str, replace(HIDDEN, reads=read_word)]
