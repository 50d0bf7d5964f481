"""The Switches page in words."""

from __future__ import annotations

from dataclasses import replace

from explorer.analysis.findings import Finding
from explorer.analysis.formatting import fixed
from explorer.analysis.interventions import EffectMap
from explorer.text import head_naming
from explorer.text.findings import marked
from explorer.text.markdown_escape import literal

QUESTION = (
    "Each switch changes one thing in how the model computes; its weights stay the same. The model "
    "runs again on your text, and both runs are compared. A model that loses a part is not a model "
    "trained without it: see “Trained”."
)
NOTHING_SWITCHED = (
    "Everything is as the model was trained. Choose an example or turn a switch: the model runs "
    "again, and what changed is said here."
)
TITLE = "What breaks without this part?"
NO_POSITIONS = "What is left when the model is not told where a word stands?"
RULE = (
    "The sentence tells the quantity that moved furthest, each on a scale from 0 to 1: mean **row "
    "entropy** of a layer, as a share of an even row’s; mean **largest weight** of a row and "
    "**probability** of the word said before, the change itself; mean **Jensen–Shannon distance** "
    "of a layer’s rows (base 2), its square; **growth** of the vectors from the first state to the "
    "last, in powers of ten, at most 1; **KL** of the prediction, 1 − e^(−KL). Below it stands the "
    "largest of each other family. Rows with a single key in both runs are left out."
)
MOVED = (
    "How far a head moved: the mean over its rows of the Jensen–Shannon distance (base 2) between "
    "the row before and after, from 0, the same, to 1, no key in common. Rows with a single key in "
    "both runs are left out."
)
PATCHING = (
    "**Activation patching** (Meng et al. 2022; Wang et al. 2022): the model reads both sentences; "
    "one part of the other run replaces the same part of this one. If the answer turns to the "
    "other’s, that part carries the difference."
)
FAIR = (
    "A switch removes a part from a model that was trained **with** it. That shows what the "
    "weights rely on, not what the part is worth: a model trained without it may find another way. "
    "So small models were trained without one part, and with everything else the same."
)


def sentence(said: str) -> str:
    """A statement as a sentence of Markdown."""
    return literal(said[0].upper() + said[1:] + ".")


def experiment(link: Finding, before: float, after: float, silent: bool) -> str:
    """What an experiment asks, and what came out: of a head that is silenced, or of a word that
    looks at another in both runs."""
    one, other = (marked(word) for word in link.words[:2])
    where = f"layer {link.layer}, head {link.head}"
    if silent:
        return f"Without {where}, where {one} looks at {other} ({fixed(before)}): what is said?"
    return (
        f"Without positions, does {one} still look at {other}? "
        f"{fixed(before)} before, {fixed(after)} now ({where})"
    )


def another_head(link: Finding, chosen: bool, silent: bool) -> str:
    """Why the picture is of another head than the experiment's: the reader chose it, or it moved
    furthest."""
    asked = f"layer {link.layer}, head {link.head}"
    if chosen:
        return f"The head you chose. The question above is about {asked}."
    if silent:
        return (
            f"This head changed most when {asked} was silenced. A silenced head’s own weights stay "
            "as they are; what it writes is gone."
        )
    return f"This head changed most. The question above is about {asked}."


def overflow(site: str) -> str:
    """Why there is no picture of a run; `site` is the first place where its numbers are none, with
    its stream before it where there are several."""
    stream, _, place = site.rpartition(" ")
    where = head_naming.site(place) + (f" in the {stream}" if stream else "")
    return (
        "Under these switches the numbers grew until single precision could not hold them, so "
        f"there is no picture of this run. The first that are not finite: {where}."
    )


def effect(value: float, normalised: bool) -> str:
    """What a patch does to the answer."""
    if normalised:
        return f"does {fixed(value)} of the way to the other answer"
    return f"changes the difference by {fixed(value)}"


def scale(normalised: bool) -> str:
    """How a map of effects is read."""
    if normalised:
        return (
            "0: the patch changes nothing. 1: the answer is the other sentence’s. Below 0: it "
            "moves away from it."
        )
    return "The two answers lie too close for a share, so the change of the difference is shown."


def with_site_names(effects: EffectMap) -> EffectMap:
    """The map of a sweep with its columns in words."""
    columns = tuple(replace(one, name=head_naming.site(one.name)) for one in effects.columns)
    return replace(effects, columns=columns)
