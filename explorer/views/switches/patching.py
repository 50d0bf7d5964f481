"""Parts of another sentence's run put into this one, one by one."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis import interventions
from explorer.analysis.formatting import tenths
from explorer.analysis.terminology import edits_without
from explorer.layout.controls import pick
from explorer.state import cache, event_log, models, url_state
from explorer.text.capability_messages import NOT_PATCHED
from explorer.text.interventions import PATCHING
from explorer.text.markdown_escape import literal
from explorer.views.switches import sweep
from explorer.views.switches.run_pair import Runs, follows
from explorer.views.switches.sweep import SweepRequest
from explorer.views.switches.vectors import pick_stream
from models.edits import Edit, PatchHead, PatchSite
from models.recording import Recording

# A sentence that differs in few words, for texts the app offers; of others the reader types one.
DONORS = {
    "The animal didn't cross the street because it was too tired.": (
        "The animal didn't cross the street because they were too tired."
    ),
    "I love to eat pizza": "I love to read pizza",
    "I love to eat pizza.": "I love to read pizza.",
    "She ate the apple with some fruit juice.": "She bought the apple with some old juice.",
    "Ram pushed Hari": "Ram kissed Hari",
    "Herbivores eat plants": "Herbivores like plants",
    "The red car is in front of the white house.": "The red car is in front of the small house.",
}
SAME_PLACES = "Best with the same number of words, one or two of them changed"
KINDS = {"Heads": "every head", "Sites": "every state of every token"}
LOOK = 0.7  # seconds between two looks at a sweep that runs


@dataclass(frozen=True, eq=False)
class Two:
    """Both sentences' runs under the same edits, and where in each the answer is read."""

    base: Recording
    across: Recording
    token: int
    there: int


def show(on: Runs) -> None:
    """The other sentence, what the two say, and the sweep of patches."""
    st.subheader("Activation patching", anchor=False)
    st.markdown(PATCHING)
    if not follows(on.plain, PatchHead, PatchSite):
        st.info(NOT_PATCHED.format(models.markdown_name(on.model)))
        return
    donor = pick_donor(on.plain.text)
    if not donor:
        st.info("Type a second sentence, ideally the same one with one or two words changed.")
        return
    edits = (*on.hidden, *edits_without(on.edits, PatchHead, PatchSite))
    two = read(on, donor, edits)
    if isinstance(two, str):
        st.info(two)
        return
    word, against = difference(two, donor)
    what = url_state.one_of("patch", tuple(KINDS))
    pick("Activations to patch", KINDS, "patch")
    name = on.which().name if what == "Heads" else pick_stream(two.base)
    asked = SweepRequest(
        on.model, on.plain.text, edits, what, donor, name, two.token, word, against
    )
    sweep.numbers_of(asked)
    running = asked.sweep().running
    event_log.fragment(sweep.watch, run_every=LOOK if running else None)(asked, on.edits, running)


def pick_donor(text: str) -> str:
    """The other sentence: the one typed, else one that suits the text, "" for none."""
    offered = DONORS.get(text, "")
    typed = st.text_input(
        "Second sentence",
        key="donor",
        persist_state="session",
        placeholder=offered or SAME_PLACES,
        help="Vectors are copied by position, so equal words should have equal positions.",
    )
    return typed if typed.strip() else offered


def read(on: Runs, donor: str, edits: tuple[Edit, ...]) -> Two | str:
    """Both sentences' runs, or why they cannot be patched."""
    try:
        base = cache.record(on.model, on.plain.text, edits)
        if len(base.streams) > 1 and base.streams[-1].ids.tolist() != on.stream.ids.tolist():
            return (
                "Under these edits the model generates another output, so its tokens differ from "
                "those above. Undo the edits to patch."
            )
        across = cache.record(on.model, donor, edits)
        ends = (len(each.streams[-1].tokens) - 1 for each in (base, across))
        two = Two(base, across, *(min(on.token, end) for end in ends))
        scores(two)
    except ValueError as error:
        return f"These two cannot be patched: {literal(str(error))}."
    if [each.ids.tolist() for each in base.streams] == [
        each.ids.tolist() for each in across.streams
    ]:
        return (
            "With this token masked, the two sentences are equal, so there is nothing to patch. "
            "Select another token above, or change another word."
        )
    return two


def scores(two: Two) -> tuple:
    """What both runs say where the answer is read, (id) each."""
    stream = two.base.streams[-1].name
    return (
        cache.logits(two.base, stream, two.token),
        cache.logits(two.across, stream, two.there),
    )


def difference(two: Two, donor: str) -> tuple[int, int]:
    """The two words that distinguish the runs, and a paragraph on their probabilities in either."""
    both = scores(two)
    word, against = interventions.contrast(*both)
    said = interventions.prediction_change(*both)
    one, other = map(literal, models.labels(two.base.model.name, (word, against)))
    p, q = ([tenths(float(run[id])) for run in (said.before, said.after)] for id in (word, against))
    verb = "predicts" if said.says == against else "increases most"
    st.markdown(
        f"At token {two.token}, the prediction of this sentence is **{one}** ({p[0]}). "
        f"“{literal(' '.join(donor.split()))}” gives it {p[1]} and {verb} **{other}** "
        f"({q[0]} → {q[1]}).  \n"
        f"The measured quantity is the logit of **{one}** minus the logit of **{other}**."
    )
    if [len(each.tokens) for each in two.base.streams] != [
        len(each.tokens) for each in two.across.streams
    ]:
        st.caption(
            "The two sentences have different numbers of tokens. Positions without a counterpart "
            "keep their own vectors."
        )
    return word, against
