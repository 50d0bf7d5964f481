"""Changes of a press beside what it says, where one choice ends or makes another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from explorer.analysis import predictions
from explorer.analysis.logit_lens import read_stream
from explorer.panels.masks import NOTHING, can_hide, masked_in, unmasked
from models.runtime.run import Run

Words = dict[str, str]
# Of the run and the choices on show, the name of the panel that is pressed, "" for the menus of the
# selection, and what the press says: it changes the words of the address.
Rule = Callable[[Run, Mapping[str, Any], str, Mapping[str, str], Words], None]
OF_WORD = ("word", "against")  # the choices that another token ends


def _drop(words: Words, *names: str) -> None:
    for name in names:
        words.pop(name, None)


def _head_of_a(
    run: Run, chosen: Mapping[str, Any], panel: str, said: Mapping[str, str], words: Words
) -> None:
    """Another head of A stands beside the head of B in its place."""
    if said.keys() & {"layer", "head"} and "head_of_b" not in said:
        _drop(words, "head_of_b")


def _patch(
    run: Run, chosen: Mapping[str, Any], panel: str, said: Mapping[str, str], words: Words
) -> None:
    """A cell of the map is framed; pressed once more, the one of the largest effect."""
    if "row" in said:
        cell = f"{said['row']}.{said['column']}"
        before = words.pop("patch_cell", "")
        _drop(words, "row", "column")
        if cell != before:
            words["patch_cell"] = cell


def _token(
    run: Run, chosen: Mapping[str, Any], panel: str, said: Mapping[str, str], words: Words
) -> None:
    """Another token has other words, and what is masked stays so: to select is not to mask. A part
    that is an FFN opens its neurons."""
    if "token" in said:
        _drop(words, *OF_WORD)
        if masked := masked_in(run):
            words.setdefault("hidden", ".".join(map(str, masked)))
    if said.get("part", "").startswith("ffn."):
        words["ffn"] = said["part"].removeprefix("ffn.")
        _drop(words, "neuron")


def _masked_word(
    run: Run, chosen: Mapping[str, Any], panel: str, said: Mapping[str, str], words: Words
) -> None:
    """Another token has other words. Of a model that fills gaps a token that is pressed in the
    sentence is masked, alone or where `several` are beside the others, and unmasked where it was
    selected and masked before."""
    if "token" not in said:
        return
    _drop(words, *OF_WORD)
    if not can_hide(run.recording()):
        return
    asked, hidden, at = words.get("hidden", ""), {*masked_in(run)}, int(said["token"])
    typed = predictions.typed_masks(read_stream(unmasked(run)), run.loaded.capabilities.mask)
    if not panel:  # the word that is selected in the place of the typed mask
        if typed and not asked:
            words["hidden"] = NOTHING
        return
    if at == chosen["token"] and at in hidden:
        hidden -= {at}
    elif at not in typed:
        hidden = {*hidden, at} if chosen.get("several") else {at}
    words["hidden"] = ".".join(map(str, sorted(hidden))) or NOTHING


# By `places.Tab.press`.
RULES: dict[str, Rule] = {
    "head of A": _head_of_a,
    "patch": _patch,
    "predicted word": _token,
    "masked word": _masked_word,
}
