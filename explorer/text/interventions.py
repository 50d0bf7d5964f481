"""The sentences of Edit the model and Patching."""

from __future__ import annotations

from dataclasses import replace

from explorer.analysis.findings import Finding
from explorer.analysis.formatting import fixed
from explorer.analysis.interventions import EffectMap
from explorer.text import head_naming
from explorer.text.findings import marked
from explorer.text.markdown_escape import literal

QUESTION = (
    "Each edit changes one step of the computation; the weights stay the same. The model runs "
    "again on your text, and both runs are compared. Removing a part differs from training "
    "without it: see “Trained”."
)
NOTHING_SWITCHED = (
    "The model is as it was trained. Choose an experiment or edit a part. The model runs again, "
    "and the largest change is shown here."
)
TITLE = "Edit the model"
NO_POSITIONS = "The model without positional encoding"
RULE = (
    "The sentence shows the quantity with the largest change, on a scale from 0 to 1.  \n"
    "**Row entropy**: mean of a layer, relative to uniform attention.  \n"
    "**Largest weight** of a row, and **probability** of the original prediction: the change.  \n"
    "**Jensen–Shannon distance** of a layer’s rows (base 2): its mean, squared.  \n"
    "**Growth** of the vectors from first to last state: the change of its log₁₀, at most 1.  \n"
    "**KL** of the prediction: 1 − exp(−KL).  \n"
    "Rows with a single key in both runs are left out."
)
MOVED = (
    "The change of a head is the mean Jensen–Shannon distance (base 2) of its rows before and "
    "after the edit. It is 0 for equal rows and 1 for rows without a common key. Rows with a "
    "single key in both runs are left out."
)
PATCHING = (
    "**Activation patching** (Meng et al. 2022; Wang et al. 2022): the model reads both sentences. "
    "One activation of the other run replaces the same activation of this run. If the prediction "
    "changes to the other one, this part carries the difference."
)
FAIR = (
    "An edit removes a part from a model that was trained **with** it. That shows what the weights "
    "depend on. A model trained without the part may learn another solution. These small models "
    "were trained without one part, and are otherwise equal."
)


def sentence(said: str) -> str:
    """A statement as a sentence of Markdown."""
    return literal(said[0].upper() + said[1:] + ".")


def experiment(link: Finding, before: float, after: float, ablated: bool) -> str:
    """The result of an experiment: an ablated head, or the weight of one word on another in both
    runs."""
    one, other = (marked(word) for word in link.words[:2])
    where = f"layer {link.layer}, head {link.head}"
    if ablated:
        return f"Ablated: {where}, in which {one} attends to {other} ({fixed(before)})"
    return (
        f"Without positions, {one} attends to {other} with weight {fixed(after)} instead of "
        f"{fixed(before)} ({where})"
    )


def another_head(link: Finding, chosen: bool, ablated: bool) -> str:
    """Why the picture is of another head than the experiment's: the reader chose it, or it changed
    most."""
    asked = f"layer {link.layer}, head {link.head}"
    if chosen:
        return f"This is the selected head. The experiment above is about {asked}."
    if ablated:
        return (
            f"This head changed most when {asked} was ablated. Ablation removes a head’s output; "
            "its own weights stay the same."
        )
    return f"This head changed most. The experiment above is about {asked}."


def overflow(site: str) -> str:
    """Why there is no picture of a run; `site` is the first place where its numbers are none, with
    its stream before it where there are several."""
    stream, _, place = site.rpartition(" ")
    where = head_naming.site(place) + (f" in the {stream}" if stream else "")
    return (
        "Under these edits the numbers exceed single precision, so there is no picture of this "
        f"run. The first numbers that are not finite: {where}."
    )


def effect(value: float, normalised: bool) -> str:
    """What a patch does to the answer."""
    if normalised:
        return f"moves the prediction {fixed(value)} of the distance to the other one"
    return f"changes the logit difference by {fixed(value)}"


def scale(normalised: bool) -> str:
    """How a map of effects is read."""
    if normalised:
        return (
            "0: no effect. 1: the prediction of the other sentence. Below 0: the opposite effect."
        )
    return "The two predictions are nearly equal, so the change of the logit difference is shown."


def with_site_names(effects: EffectMap) -> EffectMap:
    """The map of a sweep with its columns in words."""
    columns = tuple(replace(one, name=head_naming.site(one.name)) for one in effects.columns)
    return replace(effects, columns=columns)
