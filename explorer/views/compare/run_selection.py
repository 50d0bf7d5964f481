"""What the reader wants to compare: A, as the bar above has it, and B, with the controls that
choose it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import comparison
from explorer.layout import current_recording
from explorer.state import cache, models, url_state
from explorer.state.models import choices, needs_asking
from explorer.text.capability_messages import WEIGHTS_ALONE
from explorer.text.markdown_escape import literal
from explorer.views.compare import examples
from explorer.views.compare.examples import MATES, checkpoints, follows
from models.edits import Edit, MeanHead, UniformHead, WithoutPositions, ZeroHead, from_line, to_line
from models.recording import NotFinite, Recording

WHATS = {"Edit": "Before and after", "Sentence": "Two sentences", "Model": "Two models"}
SETTINGS = ZeroHead, MeanHead, UniformHead
HOWS = {"zero": ZeroHead, "mean": MeanHead, "uniform": UniformHead}
COUNTERPARTS = {"encoder": "decoder", "decoder": "encoder"}


@dataclass(frozen=True)
class Side:
    """What one side runs: names and words, from which the recording is made."""

    model: str
    text: str
    edits: tuple[Edit, ...] = ()
    target: str | tuple[int, ...] | None = None

    @property
    def shown(self) -> cache.Run:
        """The same as every page names a recording."""
        return cache.Run(self.model, self.text, self.edits, self.target)

    def record(self) -> Recording:
        """Its recording. Raises ValueError where it cannot be made."""
        return cache.record(self.model, self.text, self.edits, target=self.target)


def asked(model: str, text: str) -> tuple[Side, Side]:
    """A and B; the other way round where swapped. Raises ValueError where there is nothing to
    compare with."""
    what = url_state.one_of("other_what", tuple(WHATS))
    left, middle, right = st.columns([1.7, 1.7, 0.95], vertical_alignment="bottom")
    left.segmented_control(
        "Compare",
        tuple(WHATS),
        key="other_what",
        wrap=True,
        format_func=WHATS.__getitem__,
        required=True,
        persist_state="session",
        on_change=forget_pair,
        width="stretch",
    )
    below = st.container()
    with right.container(horizontal=True, gap="small", horizontal_alignment="right"):
        examples.show(model)
        st.button(
            "Swap A and B",
            icon=":material/swap_horiz:",
            on_click=_swap,
            help="A becomes B, and differences change their signs.",
        )
    with middle:
        if what == "Edit":
            one, other = _edited(model, text, below)
        else:
            one, other = {"Sentence": _worded, "Model": _modelled}[what](model, text)
    return (other, one) if st.session_state.other_swap else (one, other)


def other_letter() -> str:
    """What the side is called that this page's fields are about: B, and A once the sides are
    swapped."""
    return "A" if st.session_state.other_swap else "B"


# ---- before and after ----


def _edited(model: str, text: str, below: DeltaGenerator) -> tuple[Side, Side]:
    """The run as it is, and under edits. Both runs' decoders read the same. What cannot be followed
    is said `below`."""
    typed = current_recording.typed_target(model)
    target: str | tuple[int, ...] | None = typed
    plain = cache.record(model, text, target=typed)
    if len(plain.streams) > 1:
        target = tuple(int(each) for each in plain.streams[-1].ids[1:])
    if not follows(model, ZeroHead):
        raise ValueError(
            f"{models.title(model)}, does not support edits: {WEIGHTS_ALONE}. Compare two "
            "sentences or two models"
        )
    state, first = st.session_state, url_state.default("other_edits")
    state.other_edits = state.other_edits.strip() or first
    if state.other_edits == first and not follows(model, WithoutPositions):
        state.other_edits = to_line((ZeroHead(0, 0, plain.attention[0].name),))
    edits, wrong = _written(state.other_edits)
    _pick_head(plain, edits)
    edits, unfit = _followed(Side(model, text, edits, target))
    if wrong and not edits:
        raise ValueError("; ".join(wrong))
    if wrong or unfit:
        below.warning(f"Left out of B: {literal('; '.join((*wrong, *unfit)))}.")
    return Side(model, text, (), target), Side(model, text, edits, target)


def _written(line: str) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a line, and what is wrong with its other words."""
    edits: list[Edit] = []
    wrong: list[str] = []
    for word in filter(None, (each.strip() for each in line.split(","))):
        try:
            edits += from_line(word)
        except ValueError:
            wrong.append(f"“{word[:60]}” is not a valid edit")
    return tuple(dict.fromkeys(edits)), wrong


def _followed(side: Side) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a side that its model can follow, and what is wrong with the others. Numbers
    that overflow are found later, and are no refusal."""

    def refused(edits: tuple[Edit, ...]) -> str:
        try:
            replace(side, edits=edits).record()
        except NotFinite:
            pass
        except ValueError as error:
            return str(error)
        return ""

    if not refused(side.edits):
        return side.edits, []
    reasons = {edit: refused((edit,)) for edit in side.edits}
    good = tuple(edit for edit, why in reasons.items() if not why)
    if not good or refused(good):
        raise ValueError("; ".join(why for why in reasons.values() if why) or refused(side.edits))
    return good, [why for why in reasons.values() if why]


def _pick_head(plain: Recording, edits: tuple[Edit, ...]) -> None:
    """One head of B, and what is done to it; all else in writing. What is shown is what the edits
    say."""
    state, several, first = st.session_state, len(plain.attention) > 1, plain.attention[0].name
    heads = [
        (layer, head, each.name)
        for each in plain.attention
        for layer in range(each.pattern.shape[0])
        for head in range(each.pattern.shape[1])
    ]
    alone = edits[0] if len(edits) == 1 and isinstance(edits[0], SETTINGS) else None
    now = (alone.layer, alone.head, alone.attention) if alone is not None else None
    state["head of B"] = now = now if now in heads else None
    kinds = [how for how, kind in HOWS.items() if now and isinstance(alone, kind)]
    state["done to it"] = next(iter(kinds), "zero")
    left, *middle, right = st.columns(
        [1.15, 1.25, 1] if now else [2.4, 1], vertical_alignment="bottom"
    )
    left.selectbox(
        f"Ablated head of {other_letter()}",
        heads,
        index=None,
        key="head of B",
        placeholder="Choose a head",
        on_change=_take_head_of_b,
        args=(first,),
        format_func=lambda at: comparison.name(at[:2]) + (f", {at[2]}" if several else ""),
        help=("Type its numbers to find it. This edit replaces the example above."),
    )
    if now:
        middle[0].segmented_control(
            "Ablation",
            tuple(HOWS),
            key="done to it",
            wrap=True,
            required=True,
            on_change=_take_head_of_b,
            args=(first,),
            help=(
                "Zero: the head’s output is 0. Mean: its output is its mean over this text. "
                "Uniform: it gives every key the same weight."
            ),
        )
    with right.popover(
        "As text",
        width="stretch",
        help="All edits of B in the notation of links, to combine several.",
    ):
        st.text_input(
            f"Edits of {other_letter()}",
            key="other_edits",
            persist_state="session",
            on_change=forget_pair,
            help="Separate several edits by commas. The examples above fill this field, and the "
            "address of Edit the model has the same notation.",
        )


def _take_head_of_b(first: str) -> None:
    """The head chosen for B is the one edit of B, and its attention the one looked at (`first`: the
    one that is without a choice); without a head B is what this page first shows."""
    state = st.session_state
    chosen = state["head of B"]
    state.other_edits = url_state.default("other_edits")
    if chosen:
        state.other_edits = to_line((HOWS[state.get("done to it", "zero")](*chosen),))
    state.other_of = state.other_to = chosen[2] if chosen and chosen[2] != first else ""
    forget_pair()


# ---- two sentences, two models ----


def _worded(model: str, text: str) -> tuple[Side, Side]:
    """The sentence above, and another one."""
    mate = MATES.get(text) or text.strip().rpartition(" ")[0] or text
    st.text_input(
        f"Text of {other_letter()}",
        key="other_text",
        persist_state="session",
        on_change=forget_pair,
        placeholder=mate or "Type a second sentence",
    )
    typed = st.session_state.other_text
    return (
        Side(model, text, (), current_recording.typed_target(model)),
        Side(model, typed if typed.strip() else mate),
    )


def _modelled(model: str, text: str) -> tuple[Side, Side]:
    """The model above, and another one on the same text. Where both write, both decoders read what
    the first one writes."""
    options = _others(model)
    first = COUNTERPARTS.get(model, "")
    other = url_state.one_of("other_model", ("", *options)) or (
        first if first in options else options[0]
    )
    st.session_state["other model"] = other
    st.selectbox(
        f"Model of {other_letter()}",
        options,
        key="other model",
        format_func=models.title,
        on_change=_take_model,
        help=(
            "“@” marks a training checkpoint and its step. A Hugging Face model is listed after it "
            "has been opened above."
        ),
    )
    one = Side(model, text, (), current_recording.typed_target(model))
    with st.spinner("Loading the model …"):
        both = all(models.handle(each).card.kind == "encoder-decoder" for each in (model, other))
    return one, Side(other, text, (), one.record().target or None if both else None)


def _others(model: str) -> tuple[str, ...]:
    """The models that side B can be: all but the one above, and that one's other weights; and one
    that a link names."""
    cards, base = models.cards(), model.partition("@")[0]
    linked = str(st.session_state.other_model)
    names = (
        *([base] if base in cards else []),
        *checkpoints(base, cards),
        *cards,
        *(name for name in choices() if ":" in name),
        # A link alone fetches nothing.
        *((linked,) if ":" in linked and not needs_asking(linked) else ()),
    )
    return tuple(name for name in dict.fromkeys(names) if name != model)


def _take_model() -> None:
    st.session_state.other_model = st.session_state["other model"]
    forget_pair()
    st.session_state.other_of = st.session_state.other_to = ""


def _swap() -> None:
    state = st.session_state
    state.other_swap = "" if state.other_swap else "1"
    state.other_of, state.other_to = state.other_to, state.other_of
    forget_pair()


def forget_pair() -> None:
    """Other sides have other heads and words."""
    st.session_state.other_pair = st.session_state.other_word = ""
