"""Compare: two models, or two sentences, or before and after: which heads differ?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import compare as numbers
from explorer.components import compare as pictures
from explorer.components import matrix as maps
from explorer.frame import onscreen
from explorer.frame.table import csv_button, with_table
from explorer.memory import address, models, passes, shelf
from explorer.memory.offered import choices, needs_asking
from explorer.sentences.escape import literal
from models.edits import (
    Edit,
    MeanHead,
    UniformHead,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    from_line,
    to_line,
)
from models.recording import Attention, NotFinite, Recording

WHATS = {"Edit": "Before and after", "Sentence": "Two sentences", "Model": "Two models"}
HOWS = {"silent": ZeroHead, "mean": MeanHead, "even": UniformHead}
VIEWS = {"Heads": "Heads side by side", "Nearest": "Nearest heads", "Vectors": "Vectors"}
TONES = ("Linear", "Log")
# A sentence that differs in few words, for texts the app offers; of any other text the reader types one.
MATES = {
    "The animal didn't cross the street because it was too tired.": "The animal didn't cross the street because it was too wide.",
    "I love to eat pizza": "I love to drive cars",
    "She ate the apple with some fruit juice.": "She sold the apple with some other device.",
    "Ram pushed Hari": "Hari pushed Ram",
    "Herbivores eat plants": "Carnivores eat animals",
    "The red car is in front of the white house.": "The old man is in front of the small church.",
}
COUNTERPARTS = {"encoder": "decoder", "decoder": "encoder"}
KINDS = {
    "self": "Self-attention",
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
RULES = {
    numbers.CHARACTERS: "Both texts are the same, so tokens are laid side by side by their characters: a unit is the smallest group of tokens that begins and ends at the same characters in both.",
    numbers.WORDS: "The texts differ, so only words that both have in the same order (case aside) are laid side by side; a unit is the smallest group of tokens of such words that covers the same characters in both.",
}
DISTANCE = (
    "The distance of two rows is the Jensen–Shannon distance to base 2, the square root of H((p+q)/2) − (H(p)+H(q))/2 (Lin 1991; a metric, Endres & Schindelin 2003): "
    "0 the same, 1 nothing in common. Two heads’ distance is its mean over the rows. What goes to tokens that are not aligned counts as one more place to look."
)
MOST_CELLS = 5_000  # rows of the table of cells; its file has all
THREE = st.column_config.NumberColumn(format="%.3f")


@dataclass(frozen=True)
class Side:
    """What one side runs: names and words, from which the recording is made."""

    model: str
    text: str
    edits: tuple[Edit, ...] = ()
    target: str | tuple[int, ...] | None = None

    def record(self) -> Recording:
        return passes.record(self.model, self.text, self.edits, target=self.target)


@st.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    if "wanted_model" in st.session_state or (model, text) != (
        st.session_state.model,
        st.session_state.text,
    ):  # an example has put others into the fields above, which only a whole run draws
        st.rerun()
    st.subheader(
        "Two models, or two sentences, or before and after: which heads differ?",
        anchor=False,
        help="Two runs, A and B, are brought onto the same pieces of text. Then every head of one can be laid beside every head of the other.",
    )
    presets(model)
    try:
        one, other = asked(model, text)
        a, b = one.record(), other.record()
    except ValueError as error:
        why = (
            "The numbers grew until single precision could not hold them, so there is no run to compare."
            if isinstance(error, NotFinite)
            else ""
        )
        st.error(f"There is nothing to compare with: {literal(str(error).rstrip('.'))}. {why}")
        address.write()
        return
    of_a, of_b = kinds(a, b)
    rows, columns = aligned(a, of_a, b, of_b)
    facing(a, b)
    if refused := numbers.refusal(rows, columns):
        st.info(f"{refused} Choose another sentence, or other kinds of attention.")
    else:
        compared(one, other, a, of_a, b, of_b, rows, columns)
    address.write()


# ---- the two sides --------------------------------------------------------------------------------------------------


def asked(model: str, text: str) -> tuple[Side, Side]:
    """What the reader wants to compare: A, as the bar above has it, and B; the other way round where swapped."""
    what = address.one_of("other_what", tuple(WHATS))
    left, middle, right = st.columns([1.6, 2, 0.65], vertical_alignment="bottom")
    left.segmented_control(
        "Compare",
        tuple(WHATS),
        key="other_what",
        format_func=WHATS.get,
        required=True,
        persist_state="session",
        on_change=forget_pair,
        width="stretch",
    )
    below = st.container()
    with middle:
        one, other = (
            edited(model, text, below)
            if what == "Edit"
            else {"Sentence": worded, "Model": modelled}[what](model, text)
        )
    right.button(
        "Swap A and B",
        icon=":material/swap_horiz:",
        on_click=swap,
        width="stretch",
        help="What is A becomes B. Differences turn their signs.",
    )
    return (other, one) if st.session_state.other_swap else (one, other)


def edited(model: str, text: str, below: DeltaGenerator) -> tuple[Side, Side]:
    """The run as it is, and under edits. Both runs' decoders read the same. What cannot be followed is said `below`."""
    target = onscreen.typed_target(model)
    plain = passes.record(model, text, target=target)
    if len(plain.streams) > 1:
        target = tuple(int(each) for each in plain.streams[-1].ids[1:])
    if not follows(model, ZeroHead):
        raise ValueError(
            "this model runs in its own code, which can be neither switched nor silenced; compare two sentences or two models"
        )
    st.session_state.other_edits = st.session_state.other_edits.strip() or address.default(
        "other_edits"
    )
    if st.session_state.other_edits == address.default("other_edits") and not follows(
        model, WithoutPositions
    ):
        st.session_state.other_edits = to_line((ZeroHead(0, 0, plain.attention[0].name),))
    edits, wrong = written(st.session_state.other_edits)
    pick_head(plain, edits)
    edits, unfit = followed(Side(model, text, edits, target))
    if wrong and not edits:
        raise ValueError("; ".join(wrong))
    if wrong or unfit:
        below.warning(f"Left out of B: {literal('; '.join((*wrong, *unfit)))}.")
    return Side(model, text, (), target), Side(model, text, edits, target)


def written(line: str) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a line, and what is wrong with its other words."""
    edits, wrong = [], []
    for word in filter(None, (each.strip() for each in line.split(","))):
        try:
            edits += from_line(word)
        except ValueError:
            wrong.append(f"“{word[:60]}” is no edit that can be read")
    return tuple(dict.fromkeys(edits)), wrong


def follows(model: str, kind: type) -> bool:
    """Whether a model can follow edits of this kind: one that runs in its own code follows few."""
    return issubclass(kind, models.offers(model).edits)


def followed(side: Side) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a side that its model can follow, and what is wrong with the others. Numbers that overflow are found later, and are no refusal."""

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


def pick_head(plain: Recording, edits: tuple[Edit, ...]) -> None:
    """One head of B, and what is done to it; all else in writing. What is shown is what the edits say."""
    state, several = st.session_state, len(plain.attention) > 1
    heads = [
        (layer, head, each.name)
        for each in plain.attention
        for layer in range(each.pattern.shape[0])
        for head in range(each.pattern.shape[1])
    ]
    alone = edits[0] if len(edits) == 1 and isinstance(edits[0], tuple(HOWS.values())) else None
    now = (alone.layer, alone.head, alone.attention) if alone is not None else None
    state["head of B"] = now = now if now in heads else None
    state["done to it"] = next(
        (how for how, kind in HOWS.items() if now and isinstance(alone, kind)), "silent"
    )
    left, *middle, right = st.columns(
        [1.15, 1.25, 1] if now else [2.4, 1], vertical_alignment="bottom"
    )
    left.selectbox(
        f"Head changed in {other_letter()}",
        heads,
        index=None,
        key="head of B",
        placeholder="Choose a head",
        on_change=take_head_of_b,
        args=(plain.attention[0].name,),
        format_func=lambda at: numbers.name(at[:2]) + (f", {at[2]}" if several else ""),
        help="Type its numbers to find it. The head changes alone: it takes the place of the example above.",
    )
    if now:
        middle[0].segmented_control(
            "It is made",
            tuple(HOWS),
            key="done to it",
            required=True,
            on_change=take_head_of_b,
            args=(plain.attention[0].name,),
            help="Silent: it writes nothing. Mean: at every token it writes its mean over this text. Even: it looks everywhere alike.",
        )
    with right.popover(
        "In writing",
        width="stretch",
        help="Every edit of B as links write it, to put several together.",
    ):
        st.text_input(
            f"Edits of {other_letter()}, as they are written in links",
            key="other_edits",
            persist_state="session",
            on_change=forget_pair,
            placeholder="WithoutPositions, ZeroHead:2:5:self, …",
            help="Several with a comma between them. The examples above fill this field; the page Switches writes the same words in its address.",
        )


def worded(model: str, text: str) -> tuple[Side, Side]:
    """The sentence above, and another one."""
    st.text_input(
        f"Text of {other_letter()}",
        key="other_text",
        persist_state="session",
        on_change=forget_pair,
        placeholder=mate_of(text) or "Type the sentence to compare with",
    )
    return Side(model, text, (), onscreen.typed_target(model)), Side(
        model, st.session_state.other_text if st.session_state.other_text.strip() else mate_of(text)
    )


def mate_of(text: str) -> str:
    """The sentence that stands on side B while the reader has typed none: a known mate, else the text without its last word."""
    return MATES.get(text) or text.strip().rpartition(" ")[0] or text


def modelled(model: str, text: str) -> tuple[Side, Side]:
    """The model above, and another one on the same text. Where both write, both decoders read what the first one writes."""
    options = others(model)
    st.session_state["other model"] = other = address.one_of("other_model", ("", *options)) or (
        COUNTERPARTS[model] if COUNTERPARTS.get(model) in options else options[0]
    )
    st.selectbox(
        f"Model of {other_letter()}",
        options,
        key="other model",
        format_func=models.title,
        on_change=take_model,
        help="“@” names earlier weights: after so many steps of training. A Hugging Face model is offered once it has been opened above.",
    )
    one = Side(model, text, (), onscreen.typed_target(model))
    with st.spinner("Loading the model …"):
        both = all(models.handle(each).card.kind == "encoder-decoder" for each in (model, other))
    return one, Side(other, text, (), one.record().target or None if both else None)


def others(model: str) -> tuple[str, ...]:
    """The models that side B can be: all but the one above, and that one's other weights; and one that a link names."""
    cards, base = models.cards(), model.partition("@")[0]
    asked = str(st.session_state.other_model)
    linked = (
        (asked,) if ":" in asked and not needs_asking(asked) else ()
    )  # a link alone fetches nothing
    names = (
        *([base] if base in cards else []),
        *checkpoints(base, cards),
        *cards,
        *(name for name in choices() if ":" in name),
        *linked,
    )
    return tuple(name for name in dict.fromkeys(names) if name != model)


def checkpoints(model: str, cards: dict[str, dict]) -> tuple[str, ...]:
    return tuple(f"{model}@{step}" for step in cards.get(model, {}).get("checkpoints", ()))


# ---- examples -------------------------------------------------------------------------------------------------------


def offered(model: str) -> dict[str, dict[str, str]]:
    """Comparisons in one click: which choices each sets. Edits are of the model above."""
    kind = models.handle(model).card.kind
    tired, wide = next(iter(MATES.items()))
    mask = ("Look ahead", WithoutMask()) if kind != "encoder" else ("A causal mask", WithMask())
    made = {
        "tired / wide": {"text": tired, "other_what": "Sentence", "other_text": wide},
        "Ram / Hari": {
            "text": "Ram pushed Hari",
            "other_what": "Sentence",
            "other_text": "Hari pushed Ram",
        },
        "No positions": edit(WithoutPositions()),
        "No scale": edit(WithoutScale()),
        "No residual": edit(WithoutResidual()),
        "No LayerNorm": edit(WithoutNorm()),
        "No FFN": edit(WithoutFeedForward()),
        mask[0]: edit(mask[1]),
    }
    made = {
        name: choices
        for name, choices in made.items()
        if all(follows(model, type(one)) for one in from_line(choices.get("other_edits", "")))
    }
    cards = models.cards()
    if {"encoder", "decoder"} <= set(cards):
        made["encoder / decoder"] = {
            "model": "encoder",
            "other_what": "Model",
            "other_model": "decoder",
        }
    if {"encoder", "minilm"} <= set(cards):
        made["encoder / MiniLM"] = {
            "model": "encoder",
            "other_what": "Model",
            "other_model": "minilm",
        }
    model = model.partition("@")[0]
    started = (
        model
        if checkpoints(model, cards)
        else next((name for name in cards if checkpoints(name, cards)), None)
    )
    if started:
        made[f"{started} / untrained"] = {
            "model": started,
            "other_what": "Model",
            "other_model": checkpoints(started, cards)[0],
        }
    return made


def edit(one: Edit) -> dict[str, str]:
    return {"other_what": "Edit", "other_edits": to_line((one,))}


def presets(model: str) -> None:
    made, state = offered(model), st.session_state
    st.session_state["comparison"] = next(
        (
            name
            for name, choices in made.items()
            if all(state[key] == value for key, value in choices.items())
        ),
        None,
    )
    st.pills(
        "Examples of comparisons",
        list(made),
        key="comparison",
        on_change=take_preset,
        args=(made,),
        label_visibility="collapsed",
    )


# ---- what lies beside what ------------------------------------------------------------------------------------------


def kinds(a: Recording, b: Recording) -> tuple[Attention, Attention]:
    """Which attention of each side, with controls where a side has several."""
    names_a, names_b = (tuple(each.name for each in recording.attention) for recording in (a, b))
    of_a = address.one_of("other_of", ("", *names_a)) or names_a[0]
    of_b = address.one_of("other_to", ("", *names_b)) or (of_a if of_a in names_b else names_b[0])
    if len(names_a) > 1 or len(names_b) > 1:
        left, right = st.columns(2, gap="large")
        for column, key, names, now in (
            (left, "other_of", names_a, of_a),
            (right, "other_to", names_b, of_b),
        ):
            st.session_state[f"shown {key}"] = now
            side = "AB"[key == "other_to"]
            column.segmented_control(
                f"Attention of {side}",
                names,
                key=f"shown {key}",
                format_func=lambda name: KINDS.get(name, name),
                required=True,
                on_change=take_kind,
                args=(key,),
            )
    return a.attention[names_a.index(of_a)], b.attention[names_b.index(of_b)]


def aligned(
    a: Recording, of_a: Attention, b: Recording, of_b: Attention
) -> tuple[numbers.Alignment, numbers.Alignment]:
    """The units of rows and of columns."""

    def make() -> tuple[numbers.Alignment, numbers.Alignment]:
        rows, columns = zip(numbers.axes(a, of_a), numbers.axes(b, of_b))
        return numbers.align(*rows), numbers.align(*columns)

    return shelf.derived(a, ("compared units", *cause(b, of_a, of_b)), make)


def cause(b: Recording, of_a: Attention, of_b: Attention) -> tuple[str, ...]:
    """What a comparison depends on beside the recording of A."""
    return shelf.name_of(b), of_a.name, of_b.name


def facing(a: Recording, b: Recording) -> None:
    """What is on either side, in words."""
    for column, side, recording in zip(st.columns(2, gap="large"), "AB", (a, b)):
        edits = f" · {literal(', '.join(map(str, recording.edits)))}" if recording.edits else ""
        words = literal(shortened(onscreen.read_text(recording))) or "*no text*"
        target = (
            f"  \n→ {literal(shortened(onscreen.read_text(recording, target=True)))}"
            if recording.target
            else ""
        )
        with column:
            st.markdown(
                f"**{side}** &nbsp; {literal(models.title(recording.model.name))}{edits}  \n{words}{target}"
            )
            if recording.dropped:
                st.caption(
                    f"The last {recording.dropped:,} tokens of this text do not fit this model and are left out."
                )


def shortened(words: str, most: int = 160) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def caption_of(a: Recording, b: Recording, what: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""

    def side(letter: str, recording: Recording) -> str:
        model = recording.model
        return f"{letter}: model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint}) · edits: {', '.join(map(str, recording.edits)) or 'none'}"

    texts = tuple(
        f"Text of {letter}: {onscreen.read_text(each)}" for letter, each in (("A", a), ("B", b))
    )
    targets = tuple(
        f"Output read by {letter}: {onscreen.read_text(each, target=True)}"
        for letter, each in (("A", a), ("B", b))
        if each.target
    )
    return (f"Headlight · {side('A', a)}", side("B", b), what, *texts, *targets)


def figure_caption(a: Recording, b: Recording, *what: str) -> tuple[str, ...]:
    """The same in fewer words, above a figure; its file has it in full."""

    def side(letter: str, recording: Recording) -> str:
        return f"{letter}: {recording.model.name} {recording.model.fingerprint} · edits: {', '.join(map(str, recording.edits)) or 'none'}"

    texts = (
        (f"Text: {onscreen.read_text(a)}",)
        if onscreen.read_text(a) == onscreen.read_text(b)
        else (f"A reads: {onscreen.read_text(a)}", f"B reads: {onscreen.read_text(b)}")
    )
    return (*what, f"Headlight · {side('A', a)}", side("B", b), *map(shortened, texts))


def compared(
    one: Side,
    other: Side,
    a: Recording,
    of_a: Attention,
    b: Recording,
    of_b: Attention,
    rows: numbers.Alignment,
    columns: numbers.Alignment,
) -> None:
    """Everything below the controls."""
    on = cause(b, of_a, of_b)
    found = shelf.derived(
        a,
        ("compared sides", *on),
        lambda: numbers.sides((a, of_a), (b, of_b), rows, columns),
        lambda made: made.nbytes,
    )
    paired = (
        shelf.derived(a, ("compared pairs", *on), lambda: numbers.paired(found))
        if found.same_shape
        else None
    )
    view = address.one_of("other_view", tuple(VIEWS))
    distances = near = None
    if paired is None or view == "Nearest":
        with st.spinner("Laying every head beside every other …"):
            distances = shelf.derived(
                a,
                ("compared heads", *on),
                lambda: numbers.distances(found),
                lambda made: made.values.nbytes,
            )
            near = shelf.derived(a, ("compared nearest", *on), lambda: numbers.nearest(distances))
    with st.container(border=True):
        st.subheader(literal(numbers.sentence(found, paired, near)), anchor=False, help=DISTANCE)
        if (
            paired is not None
            and numbers.all_same(paired)
            and any(isinstance(edit, (ZeroHead, MeanHead)) for edit in (*one.edits, *other.edits))
        ):
            st.caption(
                "A head that writes something else still looks where it looked. It is felt in the layers above, if there are any in this attention, and in what the model says: the page Switches shows that."
            )
        units_told(found, a, of_a, b, of_b)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.segmented_control(
            "Look at",
            tuple(VIEWS),
            key="other_view",
            format_func=VIEWS.get,
            required=True,
            persist_state="session",
            label_visibility="collapsed",
        )
        if view == "Heads":
            address.one_of("other_tone", TONES)
            st.segmented_control(
                "Tone",
                TONES,
                key="other_tone",
                required=True,
                persist_state="session",
                label_visibility="collapsed",
                help="Log shows three powers of ten below 1, so that faint attention is seen. The difference stays linear.",
            )
    file = f"headlight-compare-{one.model}-{other.model}".replace("/", "-").replace("@", "-at-")
    if view == "Vectors":
        vectors(a, of_a, b, of_b, file)
        return
    if view == "Heads":
        pair = chosen_pair(found, paired, near)
        side_by_side(a, of_a, b, of_b, found, paired)
        opened(a, of_a, b, of_b, found, pair, file, None)
        if paired is not None:
            listed_changes(a, b, found, paired, file, on)
    else:
        pair = chosen_pair(found, paired, near, by_nearest=True)
        every_pair(a, of_a, b, of_b, distances, near, file)
        opened(
            a,
            of_a,
            b,
            of_b,
            found,
            pair,
            file,
            near[numbers.head_number(pair[0], distances.shape_a)],
        )


def units_told(
    found: numbers.Sides, a: Recording, of_a: Attention, b: Recording, of_b: Attention
) -> None:
    """How tokens were aligned, what was not, and how much of the attention goes there."""
    rows, columns = found.rows, found.columns
    lost_a, lost_b = numbers.lost(found)
    told = f"{len(rows.units)} rows and {len(columns.units)} columns are compared."
    if rows.outside_a or rows.outside_b:
        told += f" Rows left out: {len(rows.outside_a)} of A, {len(rows.outside_b)} of B."
    if found.leaves_out:
        told += f" Columns not aligned: {len(columns.outside_a)} of A, {len(columns.outside_b)} of B; {lost_a:.1%} of A’s attention and {lost_b:.1%} of B’s goes there."
    else:
        told += " Nothing is left out." if not (rows.outside_a or rows.outside_b) else ""
    with st.expander(f"What lies beside what: {told}"):
        st.markdown(
            f"{RULES[columns.rule]}{'' if rows.rule == columns.rule else ' Rows: ' + RULES[rows.rule]} Of a matrix, the columns of a unit are summed and its rows averaged, so each row still sums to 1. "
            "Special tokens before the text ([CLS], [BOS]) lie beside each other, and so do those after it ([SEP], [EOS]); where one side has none, the other’s is not aligned. "
            f"{numbers.free_told(found)}"
        )
        (rows_a, columns_a), (rows_b, columns_b) = numbers.axes(a, of_a), numbers.axes(b, of_b)
        left, right = st.columns(2, gap="large")
        left.dataframe(
            numbers.unit_columns(columns, columns_a, columns_b),
            hide_index=True,
            height=300,
            alt="Columns: which tokens lie beside which",
        )
        if of_a.query != of_a.key or of_b.query != of_b.key:
            right.dataframe(
                numbers.unit_columns(rows, rows_a, rows_b),
                hide_index=True,
                height=300,
                alt="Rows: which tokens lie beside which",
            )
        if found.leaves_out:
            right.dataframe(
                numbers.outside_columns(found),
                hide_index=True,
                height=300,
                column_config={"A": THREE, "B": THREE},
                alt="Share of each row that goes to tokens that are not aligned",
            )
            right.caption(
                "The share of each row that goes to tokens that are not aligned, mean over heads."
            )


# ---- heads side by side ---------------------------------------------------------------------------------------------


def chosen_pair(
    found: numbers.Sides, paired, near, by_nearest: bool = False
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The heads on screen, one of A and one of B: those chosen; else those the sentence above is about."""
    (la, ha), (lb, hb) = found.a.shape[:2], found.b.shape[:2]
    asked_for = address.numbers("other_pair", 10_000) or head_elsewhere(la, ha)
    if (
        len(asked_for) == 4
        and asked_for[0] < la
        and asked_for[1] < ha
        and asked_for[2] < lb
        and asked_for[3] < hb
    ):
        return (asked_for[0], asked_for[1]), (asked_for[2], asked_for[3])
    if (
        len(asked_for) == 2 and asked_for[0] < la and asked_for[1] < ha
    ):  # a head of A alone: its counterpart is found
        head = (asked_for[0], asked_for[1])
        return head, head if paired is not None and not by_nearest else numbers.nearest_to(
            near, head
        )
    if paired is not None:
        head = numbers.most_changed(paired)[0]
        return head, head if not by_nearest else numbers.nearest_to(near, head)
    return numbers.farthest_head(near)


def head_elsewhere(layers: int, heads: int) -> tuple[int, ...]:
    """The head chosen on other pages, which stays chosen here; () where there is none or A has no such head."""
    layer, head = str(st.session_state.layer), str(st.session_state.head)
    known = layer.isdecimal() and head.isdecimal() and len(layer + head) < 8
    found = (int(layer), int(head)) if known else (layers, heads)
    return found if found[0] < layers and found[1] < heads else ()


def other_letter() -> str:
    """What the side is called that this page's fields are about: B, and A once the sides are swapped."""
    return "A" if st.session_state.other_swap else "B"


def side_by_side(
    a: Recording, of_a: Attention, b: Recording, of_b: Attention, found: numbers.Sides, paired
) -> None:
    tone = st.session_state.other_tone
    name = shelf.name_of(a, "grids", *cause(b, of_a, of_b), tone)
    data = shelf.derived(
        a,
        ("compared grids", *cause(b, of_a, of_b), tone),
        lambda: pictures.grids(
            *found.weights(),
            found.rows.labels,
            found.column_labels,
            titles=about(a, b),
            distances=paired,
            log=tone == "Log",
            token=name,
        ),
        len,
    )
    pictures.show(data, "grids", partial(take_head, found.same_shape))
    if paired is None:
        st.caption(
            f"A has {shape(found.a.shape)} and B {shape(found.b.shape)}, so there are no heads in the same place. A head of A opens with the nearest head of B; a head of B stays beside the open one of A."
        )


def about(a: Recording, b: Recording) -> tuple[str, str]:
    """Each side in a few words: its model, its edits, and the words that the other side's text has not."""

    def side(letter: str, recording: Recording, words: str) -> str:
        edits = ", ".join(map(str, recording.edits))
        return " · ".join(
            each
            for each in (letter, models.title(recording.model.name), edits, shortened(words, 60))
            if each
        )

    own_a, own_b = numbers.own_words(a.text, b.text)
    return side("A", a, own_a), side("B", b, own_b)


def shape(of: tuple[int, ...]) -> str:
    return f"{of[0]} layers of {of[1]} heads"


def opened(
    a: Recording,
    of_a: Attention,
    b: Recording,
    of_b: Attention,
    found: numbers.Sides,
    pair,
    file: str,
    near: numbers.Nearest | None,
) -> None:
    """The chosen head of either side and their difference, to the last cell."""
    head_a, head_b = pair
    on = cause(b, of_a, of_b)
    one, other = numbers.name(head_a), numbers.name(head_b)
    distance = numbers.pair_distance(found, *pair)
    title = (
        f"{one} of both sides: distance {distance:.2f}"
        if head_a == head_b
        else f"A’s {one} beside B’s {other}: distance {distance:.2f}"
    )
    words = numbers.told(numbers.change(found, *pair))
    if near is not None:
        best = f"nearest to A’s {one} is B’s {numbers.name(near.nearest)} ({near.distance:.2f}"
        words = (
            f"{best[0].upper()}{best[1:]}; the next best {near.next_distance:.2f}; half of B’s heads are farther than {near.median:.2f})."
            + (" Each is the other’s nearest." if near.mutual else "")
        )
    picture = (
        shelf.name_of(a, "map", *on)
        if near is not None
        else shelf.name_of(a, "grids", *on, st.session_state.other_tone)
    )
    row = None if near is None else numbers.head_number(head_a, found.a.shape)
    st.session_state["pair shown"] = ".".join(map(str, (*head_a, *head_b)))
    st.divider()
    pictures.show(
        pictures.pair(
            head_a,
            head_b,
            title=title,
            words=words,
            token=shelf.name_of(a, "pair", *on, pair, near is None),
            picture=picture,
            row=row,
        ),
        "pair of heads",
        ignore,
    )
    caption = caption_of(
        a,
        b,
        f"{of_a.name} {one} of A, {of_b.name} {other} of B, on common units: columns of a unit summed, rows averaged",
    )
    values_a, values_b, change, top, far = numbers.pair_matrices(found, *pair)
    each = [
        maps.Panel(f"A · {one}", values_a, 0.0, top),
        maps.Panel(f"B · {other}", values_b, 0.0, top),
        maps.Panel("B − A", change, -far, far),
    ]
    special, named = [False] * len(found.column_labels), f"{file}-{one}-{other}".replace(" ", "")
    of = found.rows.labels, found.column_labels, special, ("row", "column")
    title, token = f"A’s {one}, B’s {other}, and B − A", shelf.name_of(a, "panels", *on, pair)
    picture = maps.Picture(title, caption, named, token)
    made = lambda: maps.panels(each, maps.Sheet(*of, digits=3, choose=False), picture)
    maps.show(shelf.derived(a, ("compared panels", *on, pair), made, len), "panels", ignore)
    with st.expander("Every cell as a table, and as a file"):
        columns = numbers.pair_columns(found, *pair)
        shown = numbers.most_apart(columns, MOST_CELLS)
        if shown is not columns:
            st.caption(
                f"The {MOST_CELLS:,} cells that differ most, of {len(columns['row']):,}; the file has all."
            )
        st.dataframe(
            shown,
            hide_index=True,
            height=320,
            column_config=dict.fromkeys(
                ("A", "B", "B - A"), st.column_config.NumberColumn(format="%.4f")
            ),
            alt=title,
        )
        csv_button(
            columns,
            caption,
            f"{file}-{one}-{other}".replace(" ", ""),
            "Both heads and their difference as CSV",
        )


def listed_changes(
    a: Recording, b: Recording, found: numbers.Sides, paired, file: str, on: tuple[str, ...]
) -> None:
    """Heads in the same place, the most changed first."""
    st.markdown("**Most changed heads**, by their distance. Choose a row to open the head.")
    columns = shelf.derived(
        a, ("compared changes", *on), lambda: numbers.changed_columns(found, paired)
    )
    order = numbers.most_changed(paired)
    st.dataframe(
        columns,
        hide_index=True,
        height=300,
        key="changed",
        on_select=partial(take_row, "changed", order),
        selection_mode="single-row",
        column_config={"distance": THREE},
        alt="Heads by how much they changed",
    )
    csv_button(
        columns,
        caption_of(a, b, "mean Jensen-Shannon distance (base 2) of heads in the same place"),
        f"{file}-changed",
        "These distances as CSV",
    )


# ---- nearest heads --------------------------------------------------------------------------------------------------


def every_pair(
    a: Recording,
    of_a: Attention,
    b: Recording,
    of_b: Attention,
    distances: numbers.Distances,
    near,
    file: str,
) -> None:
    on = cause(b, of_a, of_b)
    caption = caption_of(
        a, b, "mean Jensen-Shannon distance (base 2) of every head of A to every head of B"
    )
    name = shelf.name_of(a, "map", *on)
    left, right = (
        st.columns([1.1, 1], gap="large")
        if numbers.few(distances)
        else (st.container(), st.container())
    )
    with left:
        st.markdown(
            "**Every head of A beside every head of B.** The colour is their distance, the nearest in each row is marked. Choose a row."
        )
        data = shelf.derived(
            a,
            ("compared map", *on),
            lambda: maps.panels(
                [maps.Panel("", distances.values, 0.0, numbers.top(distances.values))],
                maps.Sheet(
                    numbers.names(distances.shape_a),
                    numbers.names(distances.shape_b),
                    [False] * len(distances.values.T),
                    sides=("head of A", "head of B"),
                    marks=numbers.marks(near, distances),
                    digits=3,
                ),
                maps.Picture("Distance of A’s heads to B’s", caption, f"{file}-heads", name),
            ),
            len,
        )
        maps.show(data, "map of heads", partial(take_map_row, distances.shape_a))
    with right:
        st.markdown(
            "**The nearest head of B for each of A.** The median says what chance would give: half of B’s heads are farther."
        )
        columns = numbers.nearest_columns(near)
        four = dict.fromkeys(
            ("distance", "at", "median"), st.column_config.NumberColumn(format="%.2f", width=78)
        ) | dict.fromkeys(
            ("head of A", "nearest", "next best", "both ways"),
            st.column_config.TextColumn(width=78),
        )
        st.dataframe(
            columns,
            hide_index=True,
            height=480,
            key="nearest list",
            on_select=partial(take_row, "nearest list", [one.head for one in near]),
            selection_mode="single-row",
            column_config=four,
            alt="Nearest heads",
        )
        with st.container(horizontal=True, gap="small"):
            csv_button(columns, caption, f"{file}-nearest", "Nearest heads as CSV")
            csv_button(
                lambda: numbers.distance_columns(distances),
                caption,
                f"{file}-distances",
                "All distances as CSV",
            )
    if distances.n_rows < distances.all_rows:
        st.caption(
            f"To stay quick, {distances.n_rows} of the {distances.all_rows} rows are used here, evenly spaced."
        )


# ---- vectors --------------------------------------------------------------------------------------------------------


def vectors(a: Recording, of_a: Attention, b: Recording, of_b: Attention, file: str) -> None:
    from explorer.figures import compare as figures

    streams = a.stream(of_a.query), b.stream(of_b.query)
    on = (shelf.name_of(b), *(stream.name for stream in streams))

    def make() -> numbers.Spaces:
        return numbers.spaces(
            *streams,
            numbers.align(numbers.axis(a, streams[0].name), numbers.axis(b, streams[1].name)),
        )

    found = shelf.derived(a, ("compared spaces", *on), make, lambda made: made.nbytes)
    if not (found.sites_a and found.sites_b):
        st.info(
            "One of the two models does not show its vectors, so only its attention can be compared."
        )
        return
    if not found.labels:
        st.info("No token of the text is aligned, so there are no vectors to compare.")
        return
    titles = [
        [numbers.state_title(site) for site in sites] for sites in (found.sites_a, found.sites_b)
    ]
    names = about(a, b)
    n = len(found.labels)
    words = f"{n} aligned token{'s' if n > 1 else ''}, special ones left out"
    left, right = st.columns(2, gap="large")
    with left:
        lines = [
            (name, title, numbers.depth(len(title)), numbers.norms(side))
            for name, title, side in zip(names, titles, (found.a, found.b))
        ]
        caption = figure_caption(
            a, b, "Length of the vectors by depth", f"{words}; line: mean, band: least to largest"
        )
        st.plotly_chart(
            figures.lengths(lines, caption),
            key="lengths",
            config=options(f"{file}-lengths"),
            alt=caption[0],
        )
        st.markdown(literal(numbers.lengths_told(found)))
        st.caption(
            "Depth counts the states of a side evenly: 0 after the embeddings, 1 after the last sub-layer. So models of unlike depth share one axis."
        )
        with_table(
            numbers.norm_columns(found),
            caption_of(a, b, f"length of vectors; {words}"),
            f"{file}-lengths",
        )
    with right:
        spaces_alike(a, b, found, on, titles, words, file)
    paths(a, b, found, on, titles, names, words, file)


def spaces_alike(
    a: Recording,
    b: Recording,
    found: numbers.Spaces,
    on: tuple[str, ...],
    titles,
    words: str,
    file: str,
) -> None:
    from explorer.figures import compare as figures

    if len(found.labels) < numbers.FEWEST_TOKENS:
        st.info(
            f"Comparing spaces takes at least {numbers.FEWEST_TOKENS} aligned tokens; here are {len(found.labels)}."
        )
        return
    like = shelf.derived(a, ("compared likeness", *on), lambda: numbers.likeness(found))
    caption = figure_caption(a, b, "How alike the two spaces are: linear CKA", words)
    st.plotly_chart(
        figures.likeness(like.values, like.chance, *titles, caption),
        key="likeness",
        config=options(f"{file}-cka"),
        alt=caption[0],
    )
    st.markdown(literal(numbers.likeness_told(found, like)))
    with st.expander("What CKA is, and its caution"):
        st.markdown(
            "Linear CKA (Kornblith et al. 2019) asks whether the same tokens lie near each other in both spaces: ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖), with X and Y the tokens’ vectors minus their mean, Frobenius norms. "
            "1 is the same up to rotation and one factor, 0 nothing in common. It needs no common width.\n\n"
            "**Caution:** with fewer tokens than dimensions even unrelated spaces come out high. So the value by chance is measured too: the same with B’s tokens in another order, the mean of "
            f"{numbers.SHUFFLES} orders (seed 0). Only what is well above it says anything."
        )
    with_table(
        numbers.likeness_columns(found, like),
        caption_of(a, b, f"linear CKA; {words}"),
        f"{file}-cka",
    )


def paths(
    a: Recording,
    b: Recording,
    found: numbers.Spaces,
    on: tuple[str, ...],
    titles,
    names,
    words: str,
    file: str,
) -> None:
    from explorer.figures import compare as figures

    together = (a.model.name, a.model.fingerprint) == (b.model.name, b.model.fingerprint)
    st.subheader("The tokens’ paths", anchor=False)
    word = address.whole("other_word", len(found.labels))
    st.session_state["word followed"] = chosen = (
        numbers.followed(found, together) if word is None else word
    )
    made = shelf.derived(
        a, ("compared planes", *on, together), lambda: numbers.planes(found, together)
    )
    left, right = st.columns([1.9, 1], gap="large")
    with right:
        st.selectbox(
            "Follow",
            range(len(found.labels)),
            key="word followed",
            format_func=lambda at: f"{at} {found.labels[at]}",
            on_change=take_word,
        )
        if together:
            st.markdown(literal(numbers.apart_told(found, chosen)))
            st.caption(
                "Both sides are one model, so they are drawn in one plane: the two directions along which the vectors of both spread most."
            )
        else:
            st.caption(
                "Two models have two spaces. Each side is drawn in its own plane, the two directions along which its vectors spread most; places of the one say nothing about places of the other."
            )
        with_table(
            numbers.path_columns(found, made),
            caption_of(a, b, f"paths from the first state to the last; {words}"),
            f"{file}-paths",
        )
    caption = figure_caption(
        a,
        b,
        f"Paths of tokens, “{found.labels[chosen]}” followed",
        f"{'one plane for both' if together else 'a plane for each'}; {words}",
    )
    sides = [
        (name, title, side.points, side.explained) for name, title, side in zip(names, titles, made)
    ]
    with left:
        st.plotly_chart(
            figures.paths(sides, found.labels, chosen, together, caption),
            key="paths of both",
            config=options(f"{file}-paths"),
            alt=caption[0],
        )


# ---- shared ---------------------------------------------------------------------------------------------------------


def options(file: str) -> dict:
    return {"displaylogo": False, "toImageButtonOptions": {"format": "svg", "filename": file}}


def take_preset(made: dict[str, dict[str, str]]) -> None:
    """The example just pressed; pressing it once more changes nothing."""
    state = st.session_state
    if (choices := made.get(state["comparison"] or "")) is None:
        return
    if choices.get("text", state.text) != state.text:
        onscreen.take_text(choices["text"])
    if choices.get("model", state.model) != state.model:
        state.wanted_model = choices["model"]
    for key, value in (
        {"other_swap": "", "other_of": "", "other_to": "", "other_pair": "", "other_word": ""}
        | choices
    ).items():
        if key not in ("text", "model"):
            state[key] = value


def take_model() -> None:
    st.session_state.other_model = st.session_state["other model"]
    forget_pair()
    st.session_state.other_of = st.session_state.other_to = ""


def take_kind(key: str) -> None:
    st.session_state[key] = st.session_state[f"shown {key}"]
    forget_pair()


def take_head(same_shape: bool) -> None:
    """A head of A opens with its counterpart, or with the nearest one; a head of B beside the open head of A where shapes differ."""
    grid, layer, head = st.session_state["grids"].get("head") or ("a", 0, 0)
    if grid == "b" and not same_shape:
        st.session_state.other_pair = ".".join(
            (*st.session_state["pair shown"].split(".")[:2], str(int(layer)), str(int(head)))
        )
    else:
        st.session_state.other_pair = f"{int(layer)}.{int(head)}"


def take_row(key: str, heads: list[tuple[int, int]]) -> None:
    """A row of a list: the head of A there, with its counterpart as the view has it."""
    if rows := st.session_state[key]["selection"]["rows"]:
        st.session_state.other_pair = ".".join(map(str, heads[rows[0]]))


def take_map_row(of: tuple[int, int]) -> None:
    if (row := st.session_state["map of heads"].get("row")) is not None:
        st.session_state.other_pair = ".".join(map(str, divmod(int(row), of[1])))


def take_word() -> None:
    st.session_state.other_word = str(st.session_state["word followed"])


def take_head_of_b(first: str) -> None:
    """The head chosen for B is the one edit of B, and its attention the one looked at (`first`: the one that is without a choice); without a head B is what this page first shows."""
    state = st.session_state
    chosen = state["head of B"]
    state.other_edits = (
        to_line((HOWS[state.get("done to it", "silent")](*chosen),))
        if chosen
        else address.default("other_edits")
    )
    state.other_of = state.other_to = chosen[2] if chosen and chosen[2] != first else ""
    forget_pair()


def swap() -> None:
    state = st.session_state
    state.other_swap = "" if state.other_swap else "1"
    state.other_of, state.other_to = state.other_to, state.other_of
    forget_pair()


def forget_pair() -> None:
    st.session_state.other_pair = st.session_state.other_word = ""


def ignore() -> None:
    """It is only looked at."""


with st.spinner("Loading the model …"):
    shown = onscreen.shown()
explore(shown.model, st.session_state.text)
