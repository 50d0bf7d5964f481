"""The purpose of each model, its group in the menu of models, who made it and what it reaches, and
texts that suit it, from model_descriptions.toml beside this file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

LACKING = "-no-"  # stands in the names of models that were trained without a part
UNOPENED = "is fetched when you choose it"  # the purpose of a model that nobody has opened
RECORDED = "from a file"  # the purpose of a recording
KINDS = {
    "encoder": "predicts masked words",
    "decoder": "predicts the next word",
    "encoder-decoder": "writes a text from a text",
    "no readout": "turns a text into vectors",
}
MOST_LETTERS = 40  # of the names of a classifier's classes that are listed
HEAD_SCORE = re.compile(r"([\d.]+) L(\d+)H(\d+)")
# Headings of the menu of models.
GROUPS = {
    "paper": "Trained for Headlight",
    "real": "Published models",
    "offered": "Offered by this server",
    "yours": "Yours",
    "small": "Small models, trained on one task",
}
FOLDED = "small"


@cache
def _descriptions() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("model_descriptions.toml").read_text("utf-8"))


def purpose(name: str) -> str:
    """The purpose of a model as the end of a sentence that begins with its name; "" for an unknown
    one. `name` may be a checkpoint, `model@step`."""
    base, _, step = name.partition("@")
    whole, lacking, part = base.partition(LACKING)
    if lacking and whole in _descriptions():
        return f"was trained without {part}"
    description = _descriptions().get(base, {}).get("purpose", "")
    return f"after {int(step):,} steps" if step.isdecimal() else description


def origin(name: str) -> str:
    """The maker of a model, how its weights are stored, and their licence; "" for an opened one."""
    base = name.partition("@")[0]
    if base.partition(LACKING)[0] not in _descriptions():
        return ""
    return _descriptions().get(base, {}).get("made") or _descriptions()["made_here"].format(
        name=base
    )


def scores(name: str, measured: Mapping[str, object]) -> str:
    """The scores of a model in sentences, from those of its card; "" where there are none, and for
    other weights than those that were measured."""
    template = _descriptions().get(name.partition(LACKING)[0], {}).get("scores", "")
    return template.format_map({key: _score(value) for key, value in measured.items()})


def taught(card: Mapping[str, Any], step: int | None = None) -> str:
    """Sentence on the heads that a teacher taught a model, by its card, at a checkpoint or at the
    end; "" where none was taught yet."""
    one = card.get("taught")
    if one is None or (step is not None and step <= one["from"]):
        return ""
    lessons = (
        _descriptions()["lesson"].format(head=_head_list([head]), teacher_heads=_head_list(heads))
        for head, heads in zip(one["heads"], one["teacher_heads"])
    )
    return _descriptions()["taught"].format(teacher=one["teacher"], lessons="; ".join(lessons))


def taught_in_menu(card: Mapping[str, Any]) -> str:
    """Short sentence on the heads that a teacher taught a model, by its card; "" where none."""
    one = card.get("taught")
    if one is None:
        return ""
    heads = _head_list(one["heads"])
    return _descriptions()["taught_in_menu"].format(teacher=one["teacher"], heads=heads)


def taught_head(card: Mapping[str, Any], head: tuple[int, int]) -> str:
    """Short sentence on a head that a teacher taught a model, by its card; "" for one that formed
    by itself."""
    one = card.get("taught")
    if one is None or list(head) not in one["heads"]:
        return ""
    return _descriptions()["taught_head"].format(teacher=one["teacher"])


def _head_list(heads: Sequence[Sequence[int]]) -> str:
    return " and ".join(f"L{layer} H{head}" for layer, head in heads)


def _score(value: object) -> object:
    """A score; "0.863 L18H6" as "0.86 (layer 18, head 6)"."""
    score = HEAD_SCORE.fullmatch(str(value))
    if score is None:
        return value
    return "{:.2f} (layer {}, head {})".format(float(score[1]), *score.groups()[1:])


def group(name: str) -> str:
    """The group of a model in the menu, one of GROUPS; "yours" for one without an entry."""
    base = name.partition("@")[0].partition(LACKING)[0]
    return _descriptions().get(base, {}).get("group", "yours")


def purpose_by_kind(kind: str, readout: bool, classes: Sequence[str] = ()) -> str:
    """The purpose of a model that has no entry, from what its trial found. classes: the names of a
    classifier's classes."""
    if classes:
        names = ", ".join(classes)
        purpose = f"sorts a text into {len(classes):,} classes"
        return purpose if len(names) > MOST_LETTERS else f"{purpose}: {names}"
    return KINDS[kind] if readout else KINDS["no readout"]


LANGUAGES = {"en": "English"}  # by their codes
LANGUAGE = {"translator": "French", "translator-small": "French"}  # that a model writes


def language(name: str) -> str:
    """The code of the language that a model has read alone; "" where none is known."""
    return _descriptions().get(name.partition("@")[0], {}).get("language", "")


def examples(name: str) -> dict[str, str]:
    """Texts that suit a model, each under a short name; none where the app's own do."""
    return _descriptions().get(name.partition("@")[0].partition(LACKING)[0], {}).get("examples", {})
