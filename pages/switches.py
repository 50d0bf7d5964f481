"""Switches: what breaks without the scale, the mask, the positions, the residual, the norm, this head?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import switches as numbers
from explorer.analysis.caption import caption
from explorer.analysis.numbers import fixed, plural
from explorer.analysis.predictions import word_to_hide
from explorer.components import bars, strip
from explorer.components import residual as maps
from explorer.components import switches as pictures
from explorer.components.picture import Picture
from explorer.frame import onscreen
from explorer.frame.picker import axes_of, take_named
from explorer.frame.table import csv_button, recording_button, with_table
from explorer.memory import address, background, models, passes, shelf
from explorer.sentences.escape import literal
from models.edits import (
    KINDS,
    Edit,
    HideToken,
    MeanHead,
    MoveNorm,
    OtherPositions,
    PatchHead,
    PatchSite,
    ScaledBy,
    ShiftPositions,
    ShufflePositions,
    ShuffleTokens,
    UniformHead,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    applies,
    from_line,
    in_words,
    last,
    to_line,
)
from models.recording import Attention, NotFinite, Recording, Stream

EFFECTS = ("Attention", "Vectors", "Patching", "Trained without")
BRUSHES = {"Zero": ZeroHead, "Mean": MeanHead, "Even": UniformHead}
BRUSH_STATES = {ZeroHead: "zero", MeanHead: "mean", UniformHead: "even", PatchHead: "patch"}
BRUSH_LABELS = {"Zero": "×  silent", "Mean": "μ  mean", "Even": "≡  even"}
POSITIONS = {
    "own": "as trained",
    "none": "none",
    "shuffled": "shuffled",
    "shifted": "shifted",
    "sinusoids": "sinusoids (the paper’s)",
    "random": "random vectors",
    "rotary": "rotary (RoPE)",
    "distance": "penalty on distance (ALiBi)",
}
POSITION_KINDS = (WithoutPositions, ShufflePositions, ShiftPositions, OtherPositions)
NORM_LABELS = {"post": "after (post)", "pre": "before (pre)", "none": "none"}
SUBLAYERS = {"attn": "attention", "cross": "cross-attention", "ffn": "FFN"}
# A sentence that differs in few words, for the texts the page offers; of any other text the reader types one.
DONORS = {
    "The animal didn't cross the street because it was too tired.": "The animal didn't cross the street because they were too tired.",
    "I love to eat pizza": "I love to read pizza",
    "She ate the apple with some fruit juice.": "She bought the apple with some old juice.",
    "Ram pushed Hari": "Ram kissed Hari",
    "Herbivores eat plants": "Herbivores like plants",
    "The red car is in front of the white house.": "The red car is in front of the small house.",
}
# What a card says a model was trained without, as the switch that takes it away.
TAKEN = {
    "scale": (WithoutScale(),),
    "positions": (WithoutPositions(),),
    "residual": (WithoutResidual(),),
    "norm": (WithoutNorm(),),
}
INSIDE = (
    WithoutResidual,
    WithoutNorm,
    MoveNorm,
    WithoutFeedForward,
)  # of a layer, in the code of the model itself
MOST_EDITS, MOST_TOLD, MOST_PILLS = 300, 6, 16
MOST_CELLS, SOME_ROWS, MOST_BUTTONS = 16_000, 16, 6
LOOK = 0.7  # seconds between two looks at a sweep that runs
FOUR = st.column_config.NumberColumn(format="%.4g")


@st.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    plain = passes.record(model, text)
    edits, wrong = asked(plain)
    st.subheader(
        "What breaks without this part?",
        anchor=False,
        help="Each switch changes one thing in how the model computes; its weights stay. The model runs again on your text, and both runs stand side by side. "
        "A trained model without a part is not a model trained without it: see “Trained without” below.",
    )
    presets(plain, edits)
    if wrong:
        more = f"\n- and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        st.warning(
            "These switches cannot be followed and are left out:\n"
            + "\n".join(f"- {literal(why)}" for why in wrong[:3])
            + more
        )
    other, error = changed_run(plain, edits)
    token = chosen(plain)
    with st.container(border=True):
        said = happened(plain, other, edits, token, error)
    left, right = st.columns([1, 2.8], gap="large")
    with left:
        controls(plain, edits)
    with right:
        predictions(plain, edits, token, said, error)
        if not error:
            what = st.segmented_control(
                "Look at",
                EFFECTS,
                key="effects",
                required=True,
                persist_state="session",
                label_visibility="collapsed",
            )
            {
                "Attention": attention,
                "Vectors": vectors,
                "Patching": patching,
                "Trained without": trained,
            }[what](plain, other, edits, token)
    address.write()


# ---- the two runs -------------------------------------------------------------------------------------------------


def asked(plain: Recording) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of the address that this model and text can follow, and what is wrong with the others."""
    line = str(st.session_state.edits)
    words = line.split(",") if line else []
    good: list[Edit] = []
    wrong = (
        [f"only the first {MOST_EDITS} of {len(words)} are read"] if len(words) > MOST_EDITS else []
    )
    for word in words[:MOST_EDITS]:
        try:
            read = from_line(word)
        except ValueError:
            wrong.append(f"“{word[:60]}” is no edit that can be read")
            continue
        if any(isinstance(edit, (HideToken, ShuffleTokens)) for edit in read):
            wrong.append(
                f"“{read[0]}” changes what is read, and here both runs read the same tokens"
            )
        else:
            good.extend(edit for edit in read if edit not in good)
    fits = (
        [(edit, "") for edit in good]
        if not refused(plain, tuple(good))
        else [(edit, refused(plain, (edit,))) for edit in good]
    )
    return tuple(edit for edit, why in fits if not why), wrong + [why for _, why in fits if why]


def refused(plain: Recording, edits: tuple[Edit, ...]) -> str:
    """Why the model cannot follow edits, "" where it can; numbers that overflow are a result and no refusal."""
    try:
        passes.record(plain.model.name, plain.text, edits, target=target_of(plain))
    except NotFinite:
        pass
    except ValueError as error:
        return str(error)
    return ""


def target_of(plain: Recording) -> tuple[int, ...] | None:
    """What both runs' decoders read: what the model says as it is. None for a model of one text."""
    return (
        tuple(int(each) for each in plain.streams[-1].ids[1:]) if len(plain.streams) > 1 else None
    )


def changed_run(plain: Recording, edits: tuple[Edit, ...]) -> tuple[Recording, str]:
    """The run under the edits, and "" or why there is none; then the plain run stands in its place and is not shown."""
    try:
        return (
            passes.record(plain.model.name, plain.text, edits, target=target_of(plain))
            if edits
            else plain
        ), ""
    except ValueError as error:
        return plain, str(error)


def chosen(plain: Recording) -> int:
    """The token whose word is looked at: the one chosen; else a word worth hiding, for a decoder the end or what comes before that word (an
    end of punctuation leaves anything open), and the start of a translation."""
    stream = plain.streams[-1]
    at = address.whole("token", len(stream.tokens))
    if at is not None:
        return at
    if plain.model.kind == "encoder-decoder":
        return 0
    word, end = word_to_hide(stream) or 0, len(stream.tokens) - 1
    return word if plain.model.kind == "encoder" else end if word == end else max(0, word - 1)


def hiding(plain: Recording, token: int) -> tuple[Edit, ...]:
    """The edit that hides the token looked at, so that a model that fills gaps has one to fill; () where it is not to be hidden, or cannot be."""
    if plain.model.kind != "encoder" or plain.streams[-1].special[token] or st.session_state.seen:
        return ()
    return () if refused(plain, (HideToken(token),)) else (HideToken(token),)


def said_by(plain: Recording, edits: tuple[Edit, ...], token: int) -> numbers.Answer | str:
    """What both runs say at a token, or why they say nothing."""
    hidden, stream, model = hiding(plain, token), plain.streams[-1].name, plain.model.name
    try:
        one = passes.record(model, plain.text, hidden, target=target_of(plain))
        other = passes.record(model, plain.text, (*hidden, *edits), target=target_of(plain))
        return numbers.answer(
            passes.logits(one, stream, token), passes.logits(other, stream, token)
        )
    except ValueError as error:
        return str(error)


# ---- what happened ------------------------------------------------------------------------------------------------


def happened(
    plain: Recording, other: Recording, edits: tuple[Edit, ...], token: int, error: str
) -> numbers.Answer | str:
    """What is switched, and the one sentence that says what it did."""
    said = said_by(plain, edits, token)
    if not edits:
        st.markdown(
            "**Everything is as the model was trained.** Choose an example above, or turn a switch: the model runs again, and what changed is said here."
        )
        return said
    listed(edits)
    if error:
        st.error(
            f"With this, {literal(error)}. The numbers grew until single precision could not hold them, so there is no picture of this run."
        )
        return said
    found = measured(plain, other, said, token)
    sentences = numbers.told(found)
    if not sentences:
        st.subheader("Nothing that is measured here changed on this text.", anchor=False)
        return said
    first = sentences[0]
    st.subheader(literal(first[0].upper() + first[1:] + "."), anchor=False)
    if sentences[1:]:
        st.markdown(
            "  \n".join(literal(each[0].upper() + each[1:] + ".") for each in sentences[1:])
        )
    with st.expander("Everything that was measured, and the rule"):
        st.markdown(
            "The sentence tells the quantity that moved furthest, on a scale from 0 to 1 of its own: mean **row entropy** of a layer, as a share of an even row’s; mean **largest weight** of a row and "
            "**probability** of the word said before, the change itself; mean **Jensen–Shannon distance** of a layer’s rows (base 2), its square; **growth** of the vectors from the first state to the last, in powers of ten, at most 1; "
            "**KL** of the prediction, 1 − e^(−KL). Below it the largest of the other families. Rows with a single key to look at in both runs are left out."
        )
        columns = numbers.moved_columns(found)
        st.dataframe(
            columns,
            hide_index=True,
            height=min(420, 40 + 35 * len(found)),
            column_config=dict.fromkeys(list(columns)[1:], FOUR),
        )
        csv_button(
            columns,
            caption_of(other, "everything measured"),
            f"headlight-{plain.model.name}-switches-measured",
            "As CSV",
        )
    return said


def measured(
    plain: Recording, other: Recording, said: numbers.Answer | str, token: int
) -> tuple[numbers.Moved, ...]:
    if isinstance(said, str):
        return shelf.derived(other, ("moves",), lambda: numbers.moves(plain, other))
    labels = tuple(models.labels(plain.model.name, (said.said, said.says)))
    return shelf.derived(
        other,
        ("moves", token, bool(hiding(plain, token)), labels),
        lambda: numbers.moves(plain, other, said, labels),
    )


def listed(edits: tuple[Edit, ...]) -> None:
    """What is switched, each to be taken away again."""
    if not address.fits_address(st.session_state.edits):
        st.caption(
            "These are more edits than a link can carry: they stay in this tab, and every caption and file names them."
        )
    if len(edits) > MOST_PILLS:
        st.markdown(f"**Switched:** {literal(in_words(edits))}")
        return
    st.session_state["switched"] = list(range(len(edits)))
    st.pills(
        "Switched; press one to take it back",
        range(len(edits)),
        selection_mode="multi",
        key="switched",
        format_func=lambda at: f"{literal(str(edits[at]))} ✕",
        on_change=take_back,
        args=(edits,),
    )


def caption_of(recording: Recording, what: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    return caption(recording, what, target="Output of the model as it is, read by both runs")


# ---- the switches -------------------------------------------------------------------------------------------------


def offered(plain: Recording) -> dict[str, tuple[Edit, ...]]:
    """Presets that this kind of model can follow."""
    heads = tuple(
        UniformHead(layer, head, one.name)
        for one in plain.attention
        for layer in range(one.pattern.shape[0])
        for head in range(one.pattern.shape[1])
    )
    own = own_norm(plain)
    made = {
        "Take away the scale": (WithoutScale(),),
        "Bag of words: no positions": (WithoutPositions(),),
        "No residual": (WithoutResidual(),),
        "No LayerNorm": (WithoutNorm(),),
        "LayerNorm before, not after": (MoveNorm("pre"),),
        "No FFN": (WithoutFeedForward(),),
        "Look ahead: no causal mask": (WithoutMask(),),
        "A causal mask": (WithMask(),),
        "Every head even": heads,
    }
    unfit = {"No LayerNorm"} if own == "none" else set()
    unfit |= {"LayerNorm before, not after"} if own != "post" else set()
    unfit |= {"Look ahead: no causal mask"} if plain.model.kind == "encoder" else {"A causal mask"}
    taken = TAKEN.get(lacks(plain))  # what the model never had is not taken away
    return {
        name: edits
        for name, edits in made.items()
        if name not in unfit
        and edits != taken
        and len(edits) <= MOST_EDITS
        and follows(plain, *map(type, edits))
    }


def follows(plain: Recording, *kinds: type) -> bool:
    """Whether the model can follow edits of all these kinds: one that runs in its own code follows few."""
    can = models.offers(plain.model.name).edits
    return all(issubclass(kind, can) for kind in kinds)


def lacks(plain: Recording) -> str:
    """The part that the model was trained without, as its card names it; "" for none."""
    return str(models.facts(plain.model.name).get("without") or "")


def presets(plain: Recording, edits: tuple[Edit, ...]) -> None:
    """Switches in one click."""
    made = offered(plain)
    st.session_state["switch preset"] = next(
        (name for name, wanted in made.items() if set(wanted) == set(edits)), None
    )
    st.pills(
        "Examples of switches",
        list(made),
        key="switch preset",
        on_change=take_preset,
        args=(made,),
        label_visibility="collapsed",
    )


def controls(plain: Recording, edits: tuple[Edit, ...]) -> None:
    """Every switch. Each writes its own edits anew and leaves the others."""
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.subheader("Switches", anchor=False, width="content")
        st.button(
            "Reset",
            icon=":material/restart_alt:",
            on_click=put,
            args=((),),
            disabled=not st.session_state.edits,
            help="Everything as the model was trained.",
        )
    whole_model(plain, edits)
    if follows(plain, WithoutScale, ScaledBy):
        by_layer(plain, edits)
    if not follows(plain, *INSIDE):
        st.caption(
            "This model runs in its own code, whose mask, positions, residual, LayerNorm and FFN cannot be switched. They can be in models that run in Headlight’s own classes: "
            "the list under “Any Hugging Face model …” says which."
        )
    if follows(plain, *BRUSHES.values()):
        heads(plain, edits)


def whole_model(plain: Recording, edits: tuple[Edit, ...]) -> None:
    kind = plain.model.kind
    if kind != "encoder" and follows(plain, WithoutMask):
        shown("mask off", not applies(edits, WithoutMask))
        st.toggle(
            "Causal mask",
            key="mask off",
            on_change=take_toggle,
            args=(edits, "mask off", WithoutMask(), False),
            help="Each token sees itself and earlier ones only. Without it, a decoder sees the words it is to say.",
        )
    if kind != "decoder" and follows(plain, WithMask):
        label = "Causal mask in the encoder" if kind == "encoder-decoder" else "Causal mask"
        shown("mask on", applies(edits, WithMask))
        st.toggle(
            label,
            key="mask on",
            on_change=take_toggle,
            args=(edits, "mask on", WithMask(), True),
            help="This encoder was trained without one: every token sees every token.",
        )
    if not follows(plain, *POSITION_KINDS):
        return
    used = next((edit for edit in reversed(edits) if isinstance(edit, POSITION_KINDS)), None)
    now = {
        None: "own",
        WithoutPositions: "none",
        ShufflePositions: "shuffled",
        ShiftPositions: "shifted",
    }.get(None if used is None else type(used)) or used.to
    shown("positions of", now)
    names = POSITIONS | ({"own": "as trained: none"} if lacks(plain) == "positions" else {})
    st.selectbox(
        "Positions",
        list(names),
        key="positions of",
        format_func=names.get,
        on_change=take_positions,
        args=(edits,),
    )
    if now in ("shuffled", "shifted"):
        most = (
            9999
            if now == "shuffled"
            else plain.model.n_positions - max(len(stream.tokens) for stream in plain.streams)
        )
        shown("positions by", min(used.seed if now == "shuffled" else used.by, most))
        st.number_input(
            "Seed of the shuffle" if now == "shuffled" else "Places further on",
            0,
            most,
            step=1,
            key="positions by",
            on_change=take_positions,
            args=(edits,),
        )


def by_layer(plain: Recording, edits: tuple[Edit, ...]) -> None:
    """The switches that a layer has for itself."""
    layers = plain.model.n_layer
    scope = address.whole("only", layers)
    if layers > 1:
        shown("where", "all" if scope is None else str(scope))
        options, what = (
            ["all", *map(str, range(layers))],
            "What stands below is switched in this layer, or in all.",
        )
        if layers <= MOST_BUTTONS:
            st.segmented_control(
                "Layer", options, key="where", required=True, on_change=take_scope, help=what
            )
        else:
            st.selectbox("Layer", options, key="where", on_change=take_scope, help=what)
    here = scope if scope is not None else 0
    context = (edits, layers, scope)

    scales = [scale_in(edits, layer) for layer in range(layers)]
    divisor = scales[here]
    shown("scale off", "own" if divisor is None else "off" if divisor == 1 else "other")
    st.segmented_control(
        "Scores are divided by",
        ("own", "off", "other"),
        key="scale off",
        format_func={
            "own": "1, its own"
            if models.offers(plain.model.name).scale == 1.0
            else f"√{plain.model.d_head}",
            "off": "1 (no scale)",
            "other": "other",
        }.get,
        required=True,
        on_change=take_scale,
        args=context,
        help=f"√d_head, eq. 1 of the paper: √{plain.model.d_head} = {plain.model.d_head**0.5:.2f}.",
    )
    if divisor not in (None, 1):
        shown("divisor", float(divisor))
        st.number_input(
            "Divisor",
            0.001,
            1000.0,
            step=0.5,
            format="%.3g",
            key="divisor",
            on_change=take_scale,
            args=context,
        )
    values = {"scale": scales}
    if follows(plain, *INSIDE):
        values |= inside(plain, edits, scope)
    mixed = [name for name, each in values.items() if any(value != each[0] for value in each)]
    if scope is None and mixed:
        st.caption(
            f"Not the same in every layer: {', '.join(mixed)}. Shown is layer 0; a press here sets all layers."
        )


def inside(plain: Recording, edits: tuple[Edit, ...], scope: int | None) -> dict[str, list]:
    """The switches of what a layer is made of, and what each is set to, layer by layer."""
    layers, here = plain.model.n_layer, scope or 0
    context = (edits, layers, scope)
    places = [place for place in SUBLAYERS if f"0.{place}.wrote" in plain.streams[-1].sites]
    kept = [
        [place for place in places if not applies(edits, WithoutResidual, layer, place)]
        for layer in range(layers)
    ]
    if lacks(plain) == "residual":
        st.caption("This model was trained without residual connections.")
    elif places:
        shown("residuals", kept[here])
        st.pills(
            "Residual kept around",
            places,
            selection_mode="multi",
            key="residuals",
            format_func=SUBLAYERS.get,
            on_change=take_residual,
            args=(*context, tuple(places)),
        )
    own, norms = (
        own_norm(plain),
        [norm_in(edits, layer, own_norm(plain)) for layer in range(layers)],
    )
    if own == "none":
        st.caption("This model was trained without LayerNorm.")
    else:
        shown("norm at", norms[here])
        st.segmented_control(
            "LayerNorm stands",
            list(NORM_LABELS),
            key="norm at",
            format_func=NORM_LABELS.get,
            required=True,
            on_change=take_norm,
            args=(*context, own),
        )
    fed = [not applies(edits, WithoutFeedForward, layer) for layer in range(layers)]
    shown("ffn on", fed[here])
    st.toggle("Feed-forward network (FFN)", key="ffn on", on_change=take_ffn, args=context)
    return {"residual": kept, "LayerNorm": norms, "FFN": fed}


def heads(plain: Recording, edits: tuple[Edit, ...]) -> None:
    """A board of heads to be silenced, replaced by their mean, or made to look everywhere alike."""
    address.one_of("brush", tuple(BRUSHES))
    st.segmented_control(
        "What a click on a head does to it",
        list(BRUSHES),
        key="brush",
        format_func=BRUSH_LABELS.get,
        required=True,
        persist_state="session",
        help="Silent: the head writes nothing. Mean: at every token it writes its mean over this text. Even: its rows give the same weight to every key. Press a head, or L for its layer; once more to undo.",
    )
    of = which(plain, "board of")
    off = {
        (edit.layer, edit.head): BRUSH_STATES[type(edit)]
        for edit in edits
        if isinstance(edit, tuple(BRUSH_STATES)) and edit.attention == of.name
    }
    size = of.pattern.shape[:2]
    states = repr(sorted(off.items()))
    pictures.show(
        pictures.board(
            size,
            off,
            brush=BRUSH_LABELS[st.session_state.brush].split()[1],
            token=shelf.name_of(plain, "board", of.name, states, st.session_state.brush),
        ),
        "board",
        partial(take_head_switch, edits, of.name, size),
    )


def which(plain: Recording, key: str) -> Attention:
    """The attention on screen, chosen where a model has several."""
    names = tuple(one.name for one in plain.attention)
    name = st.session_state.attention if st.session_state.attention in names else names[0]
    if len(names) > 1 and key:
        shown(key, name)
        st.segmented_control(
            "Attention", names, key=key, required=True, on_change=take_attention, args=(key,)
        )
    return plain.attention[names.index(name)]


def own_norm(plain: Recording) -> str:
    """Where the model has its LayerNorm: "post", "pre" or "none"."""
    sites = plain.streams[-1].sites
    return (
        "pre"
        if any(site.endswith(".read") for site in sites)
        else "post"
        if any(site.endswith(".normed") and site[0].isdigit() for site in sites)
        else "none"
    )


def scale_in(edits: tuple[Edit, ...], layer: int) -> float | None:
    """What a layer's scores are divided by in the place of √d_head; None where they are not."""
    other = last(edits, ScaledBy, layer)
    return (
        other.divisor if other is not None else 1.0 if applies(edits, WithoutScale, layer) else None
    )


def norm_in(edits: tuple[Edit, ...], layer: int, own: str) -> str:
    """Where a layer's LayerNorm stands under edits."""
    moved = last(edits, MoveNorm, layer)
    return "none" if applies(edits, WithoutNorm, layer) else own if moved is None else moved.to


def shown(key: str, value: object) -> None:
    """What a widget shows is what the edits say, before it is made."""
    st.session_state[key] = value


def put(edits: tuple[Edit, ...]) -> None:
    """Make these the edits: in one order, so that equal sets of edits are one run."""
    order = list(KINDS.values())
    st.session_state.edits = to_line(
        tuple(sorted(edits, key=lambda edit: (order.index(type(edit)), repr(edit))))
    )


def without(edits: tuple[Edit, ...], *kinds: type) -> tuple[Edit, ...]:
    return tuple(edit for edit in edits if not isinstance(edit, kinds))


def layered(edits: tuple[Edit, ...], kinds: tuple[type, ...], values: list, make) -> None:
    """Write anew what is set layer by layer: one edit where all layers are alike, else one for each that differs from the model. `make(value, layer)`: its edits."""
    rest = without(edits, *kinds)
    if all(value == values[0] for value in values):
        put((*rest, *make(values[0], None)))
    else:
        put((*rest, *(edit for layer, value in enumerate(values) for edit in make(value, layer))))


def set_in(values: list, scope: int | None, value) -> list:
    """The values of all layers with one of them, or all, set anew."""
    return [value if scope in (None, layer) else old for layer, old in enumerate(values)]


def take_preset(made: dict[str, tuple[Edit, ...]]) -> None:
    put(made.get(st.session_state["switch preset"], ()))


def take_back(edits: tuple[Edit, ...]) -> None:
    put(tuple(edit for at, edit in enumerate(edits) if at in st.session_state["switched"]))


def take_toggle(edits: tuple[Edit, ...], key: str, edit: Edit, when: bool) -> None:
    rest = without(edits, type(edit))
    put((*rest, edit) if st.session_state[key] is when else rest)


def take_positions(edits: tuple[Edit, ...]) -> None:
    state = st.session_state
    wanted, by = state["positions of"], int(state.get("positions by") or 0)
    new = {
        "own": (),
        "none": (WithoutPositions(),),
        "shuffled": (ShufflePositions(by),),
        "shifted": (ShiftPositions(by or 1),),
    }.get(wanted, (OtherPositions(wanted),))
    put((*without(edits, *POSITION_KINDS), *new))


def take_scale(edits: tuple[Edit, ...], layers: int, scope: int | None) -> None:
    state = st.session_state
    other = float(state.get("divisor") or 2.0)
    wanted = {"own": None, "off": 1.0, "other": other if other != 1 else 2.0}[state["scale off"]]
    values = set_in([scale_in(edits, layer) for layer in range(layers)], scope, wanted)
    layered(
        edits,
        (WithoutScale, ScaledBy),
        values,
        lambda value, layer: (
            ()
            if value is None
            else (WithoutScale(layer),)
            if value == 1
            else (ScaledBy(value, layer),)
        ),
    )


def take_residual(
    edits: tuple[Edit, ...], layers: int, scope: int | None, places: tuple[str, ...]
) -> None:
    wanted = [place for place in places if place in st.session_state["residuals"]]
    values = set_in(
        [
            [place for place in places if not applies(edits, WithoutResidual, layer, place)]
            for layer in range(layers)
        ],
        scope,
        wanted,
    )

    def make(kept: list[str], layer: int | None) -> tuple[Edit, ...]:
        return (
            tuple(WithoutResidual(layer, place) for place in places if place not in kept)
            if kept
            else (WithoutResidual(layer),)
        )

    layered(edits, (WithoutResidual,), values, make)


def take_norm(edits: tuple[Edit, ...], layers: int, scope: int | None, own: str) -> None:
    values = set_in(
        [norm_in(edits, layer, own) for layer in range(layers)], scope, st.session_state["norm at"]
    )
    layered(
        edits,
        (WithoutNorm, MoveNorm),
        values,
        lambda value, layer: (
            ()
            if value == own
            else (WithoutNorm(layer),)
            if value == "none"
            else (MoveNorm(value, layer),)
        ),
    )


def take_ffn(edits: tuple[Edit, ...], layers: int, scope: int | None) -> None:
    values = set_in(
        [not applies(edits, WithoutFeedForward, layer) for layer in range(layers)],
        scope,
        bool(st.session_state["ffn on"]),
    )
    layered(
        edits,
        (WithoutFeedForward,),
        values,
        lambda value, layer: () if value else (WithoutFeedForward(layer),),
    )


def take_scope() -> None:
    where = st.session_state["where"]
    st.session_state.only = "" if where == "all" else where


def take_attention(key: str) -> None:
    st.session_state.attention = st.session_state[key]
    st.session_state.layer = st.session_state.head = ""


def take_head_switch(edits: tuple[Edit, ...], attention: str, size: tuple[int, int]) -> None:
    """A press on the board: the head, or all of a layer, becomes what the brush says; where all are that already, as they were."""
    layer, _, head = str(st.session_state["board"].get("head") or "").partition(".")
    if not layer.isdecimal():
        return
    pressed = [int(head)] if head.isdecimal() else list(range(size[1]))
    kind = BRUSHES[st.session_state.brush]
    wanted = [kind(int(layer), each, attention) for each in pressed]
    mine = [
        edit
        for edit in edits
        if isinstance(edit, tuple(BRUSH_STATES))
        and (edit.attention, edit.layer) == (attention, int(layer))
        and edit.head in pressed
    ]
    rest = tuple(edit for edit in edits if edit not in mine)
    put(rest if all(edit in edits for edit in wanted) else (*rest, *wanted))


# ---- predictions --------------------------------------------------------------------------------------------------


def predictions(
    plain: Recording, edits: tuple[Edit, ...], token: int, said: numbers.Answer | str, error: str
) -> None:
    """What both runs say at the token looked at, and for a translator all that it says."""
    stream, model = plain.streams[-1], plain.model.name
    hidden = bool(hiding(plain, token)) and (bool(error) or not isinstance(said, str))
    question = {
        "encoder": "What fills the gap?" if hidden else "What would the model say here?",
        "decoder": "What comes next?",
    }.get(plain.model.kind, "What does it write?")
    st.subheader(question if error or not isinstance(said, str) else "Which token?", anchor=False)
    if plain.model.kind == "encoder-decoder" and not error:
        translations(plain, edits)
    tokens_of(plain, stream, token, hidden, can_hide=bool(error) or not isinstance(said, str))
    if isinstance(said, str):
        if not error:
            st.info(f"No words to compare here: {literal(said)}.")
        return
    if error:
        return
    words = said.top(8)
    labels = models.labels(model, words)
    rows = [
        bars.Bar(
            label,
            after,
            (numbers.share(before), numbers.share(after)) if edits else (numbers.share(after),),
            behind=before if edits else None,
            mark="said before" if edits and word == said.said else "",
        )
        for word, label in zip(words, labels)
        for before, after in [(float(said.before[word]), float(said.after[word]))]
    ]
    picture = shelf.name_of(plain, "said", to_line(edits), token, hidden)
    bars.show(
        bars.payload(
            rows,
            ("before", "after") if edits else ("probability",),
            about="The likeliest words before and after." if edits else "The likeliest words.",
            token=picture,
        ),
        "said bars",
        ignore,
    )
    if edits:
        st.caption(
            f"Pale: before; filled: after. KL(before ‖ after) = {plural(fixed(said.kl, 3), 'nat')}."
        )
    columns = numbers.answer_columns(said, words, labels)
    with_table(
        columns,
        (
            *caption_of(
                plain, f"token {token}, {stream.tokens[token]}{', hidden' if hidden else ''}"
            ),
            f"edits of the second run: {in_words(edits)}",
        ),
        f"headlight-{model}-switches-words-token{token}",
        "These words as a table",
    )


def translations(plain: Recording, edits: tuple[Edit, ...]) -> None:
    """What the translator writes by itself in both runs."""
    if not edits:
        st.markdown(f"**{literal(plain.target) or '(nothing)'}**")
        st.caption("Choose the token after which to look.")
        return
    try:
        own = passes.record(plain.model.name, plain.text, edits).target
    except ValueError as error:
        own = f"({error})"
    st.markdown(
        f"Before: **{literal(plain.target) or '(nothing)'}**  \nAfter: **{literal(own) or '(nothing)'}**"
    )
    st.caption(
        "Below, both runs read what the model says as it is, so that they can be compared word by word. Choose the word after which to look."
    )


def tokens_of(plain: Recording, stream: Stream, token: int, hidden: bool, can_hide: bool) -> None:
    """The tokens, one of them looked at."""

    def one(at: int) -> strip.Token:
        label = stream.tokens[at]
        gone = hidden and at == token
        return strip.Token(
            "[MASK]" if gone else label,
            label if gone else "",
            "hidden" if gone else "special" if stream.special[at] else "",
            f"{label}, token {at}",
            open=True,
        )

    where = f"“{stream.tokens[token]}” (token {token})"
    says = {
        "encoder": f"Looked at: {where}{', hidden from both runs' if hidden else ''}.",
        "decoder": f"Looked at: what follows {where}.",
    }.get(plain.model.kind, f"Looked at: what the decoder says after {where}.")
    strip.show(
        strip.payload(
            [one(at) for at in range(len(stream.tokens))],
            about="The tokens. Arrow keys move, Enter looks at one.",
            says=says,
            token=shelf.name_of(plain, "switch tokens", token, hidden),
            chosen=token,
        ),
        "switch tokens",
        take_token,
        ignore,
    )
    if plain.model.kind == "encoder" and not stream.special[token] and can_hide:
        shown("hide it", not st.session_state.seen)
        st.toggle(
            "Hide it, as in training: [MASK]",
            key="hide it",
            on_change=take_seen,
            help="Only here and in patching; attention and vectors below are of the text with every word in sight.",
        )


def take_token() -> None:
    at = st.session_state["switch tokens"].get("at")
    st.session_state.token = "" if at is None else str(int(at))


def take_seen() -> None:
    st.session_state.seen = "" if st.session_state["hide it"] else "yes"


def ignore() -> None:
    """This picture is only looked at."""


# ---- attention ----------------------------------------------------------------------------------------------------


def attention(plain: Recording, other: Recording, edits: tuple[Edit, ...], token: int) -> None:
    before = which(plain, "attention of")
    after = next(one for one in other.attention if one.name == before.name)
    with st.spinner("Comparing every row of every head …"):
        distance = shelf.derived(
            other, ("moved heads", before.name), lambda: numbers.changed(before, after)
        )
    layer, head = head_of(distance)
    axes = axes_of(plain, before)
    title = f"Layer {layer}, head {head}" + (
        f", {before.name}-attention" if len(plain.attention) > 1 else ""
    )
    st.subheader(title, anchor=False)
    file = f"headlight-{plain.model.name}-switches-L{layer}H{head}"
    about = caption_of(
        other, "Attention weights before, after, and after − before on a symmetric scale"
    )
    one, two = before.pattern[layer, head], after.pattern[layer, head]
    pictures.show(
        pictures.trio(
            one,
            two,
            (before.allowed, after.allowed),
            layer=layer,
            head=head,
            rows=axes.rows,
            keys=axes.keys,
            title=title,
            caption=about,
            file=file,
            token=shelf.name_of(other, "trio", before.name, layer, head),
        ),
        "trio",
        ignore,
    )
    with st.container(horizontal=True, gap="small"):
        model, text, target = plain.model.name, plain.text, target_of(plain)
        csv_button(
            partial(
                both_matrices,
                tuple(map(passes.shown_of, (plain, other))),
                before.name,
                (layer, head),
                axes,
            ),
            (title, *about),
            file,
            "CSV",
        )
        recording_button(model, text, target, edits, "The whole run (NPZ)")
    with st.expander("This head as a table"):
        whole = one.size <= MOST_CELLS
        if not whole:
            st.caption(
                f"{one.size:,} pairs of tokens are too many for a table here: these are the {SOME_ROWS} first rows of the matrix. The CSV has all."
            )
        table = numbers.matrix_columns(
            one if whole else one[:SOME_ROWS],
            two if whole else two[:SOME_ROWS],
            axes.rows,
            axes.keys,
        )
        st.dataframe(
            table,
            hide_index=True,
            height=360,
            column_config=dict.fromkeys(
                ("before", "after", "difference"), st.column_config.NumberColumn(format="%.4f")
            ),
        )
    st.subheader(
        "Which heads changed most?",
        anchor=False,
        help="How far a head moved: the mean over its rows of the Jensen–Shannon distance (base 2) between the row before and after, from 0, the same, to 1, no key in common. Rows with a single key in both runs are left out.",
    )
    data = shelf.derived(
        other,
        ("pairs", before.name),
        lambda: pictures.pairs(
            before.pattern,
            after.pattern,
            distance,
            rows=axes.rows,
            keys=axes.keys,
            token=shelf.name_of(other, "pairs", before.name),
        ),
        weigh=len,
    )
    pictures.show(data, "pairs", take_named("pairs"))
    if top := numbers.most_changed(distance, 6):
        rows = [
            bars.Bar(
                f"layer {at[0]}, head {at[1]}",
                float(distance[at]),
                (f"{distance[at]:.3f}",),
                f"{at[0]}.{at[1]}",
            )
            for at in top
        ]
        bars.show(
            bars.payload(
                rows,
                ("distance",),
                about="The heads that changed most.",
                token=shelf.name_of(other, "most changed", before.name, layer, head),
                chosen=f"{layer}.{head}",
                full=1.0,
                action="opens the head",
            ),
            "changed",
            take_bar,
        )
    else:
        st.caption("No head moved." if edits else "Nothing is switched, so no head moved.")
    columns = numbers.head_columns(distance)
    with_table(
        columns,
        caption_of(other, "mean Jensen-Shannon distance of a head's rows, base 2"),
        f"headlight-{plain.model.name}-switches-heads",
        "Every head as a table",
    )


def both_matrices(runs: tuple[passes.Shown, passes.Shown], name: str, at, axes) -> dict:
    """A head's matrix before and after as columns, from the names of the two runs: a button holds no arrays."""
    before, after = (each.attention(name).pattern[at] for each in runs)
    return numbers.matrix_columns(before, after, axes.rows, axes.keys)


def head_of(distance) -> tuple[int, int]:
    """The head on screen: the one chosen, or else the one that changed most."""
    layers, per_layer = distance.shape
    layer, head = address.whole("layer", layers), address.whole("head", per_layer)
    if layer is not None and head is not None:
        return layer, head
    return next(iter(numbers.most_changed(distance, 1)), (0, 0))


def take_bar() -> None:
    open_head(str(st.session_state["changed"].get("row") or ""))


def open_head(name: str) -> None:
    st.session_state.layer, _, st.session_state.head = name.partition(".")


# ---- vectors ------------------------------------------------------------------------------------------------------


def vectors(plain: Recording, other: Recording, edits: tuple[Edit, ...], token: int) -> None:
    from explorer.figures.residual import lines

    name = plain.streams[-1].name
    if len(plain.streams) > 1:
        names = tuple(stream.name for stream in plain.streams)
        name = st.session_state.stream if st.session_state.stream in names else name
        shown("stream of", name)
        st.segmented_control("Stream", names, key="stream of", required=True, on_change=take_stream)
    stream = plain.stream(name)
    token = min(token, len(stream.tokens) - 1)
    of = shelf.derived(
        other,
        ("paths", name),
        lambda: numbers.paths(stream, other.stream(name)),
        weigh=lambda made: 4 * made.before.nbytes,
    )
    about = caption_of(
        other,
        f"states after each sub-layer, its LayerNorm included{f', {name} stream' if len(plain.streams) > 1 else ''}",
    )
    label = stream.tokens[token]
    where = f"“{label}” (token {token})"
    st.subheader(
        f"How long are the vectors, and how far from where they were? {literal(where)}",
        anchor=False,
    )
    columns = numbers.path_columns(of, token)
    left, right = st.columns(2, gap="medium")
    with left:
        series = [
            (f"{when}, {who}", columns[f"{mean}length {when}"])
            for who, mean in ((label[:12], ""), ("mean of all tokens", "mean "))
            for when in ("before", "after")
        ]
        st.plotly_chart(
            lines(
                series,
                ("Length of the vectors", *about),
                of.places,
                "state",
                "length",
                log=True,
                named=True,
            ),
            key="lengths",
            config=options("lengths"),
            alt="Length of the vectors before and after, by state",
        )
    with right:
        series = [
            (label[:12], columns["distance / length before"]),
            ("mean of all tokens", columns["mean distance / length before"]),
        ]
        st.plotly_chart(
            lines(
                series,
                ("Distance between the two paths", *about),
                of.places,
                "state",
                "|after − before| / |before|",
                log=numbers.spread_out(of),
                named=True,
            ),
            key="distances",
            config=options("distances"),
            alt="Distance between the two runs' vectors by state",
        )
    st.caption("“input” is what enters layer 0. A distance of 1 is as far as the vector was long.")
    with_table(
        columns,
        (f"token {token}, {label}", *about),
        f"headlight-{plain.model.name}-switches-{name}-token{token}",
        "Both paths as a table",
    )


def take_stream() -> None:
    st.session_state.stream = st.session_state["stream of"]


# ---- patching -----------------------------------------------------------------------------------------------------


def patching(plain: Recording, other: Recording, edits: tuple[Edit, ...], token: int) -> None:
    """Parts of another sentence's run put into this one."""
    st.subheader("Which part carries the difference between two sentences?", anchor=False)
    st.markdown(
        "**Activation patching** (Meng et al. 2022; Wang et al. 2022): run both sentences, put one part of the other run into this one, and see whether the answer turns to the other’s. "
        "A part that turns it carries what tells the two apart."
    )
    asked_for = st.text_input(
        "The other sentence",
        key="donor",
        persist_state="session",
        placeholder=DONORS.get(
            plain.text, "Best with as many words, and only one or two of them other"
        ),
        help="Parts go over place by place, so the two should have their words at the same places.",
    )
    donor = asked_for if asked_for.strip() else DONORS.get(plain.text, "")
    if not donor:
        st.info("Type another sentence: best the same one with a word or two changed.")
        return
    model = plain.model.name
    base_edits = (*hiding(plain, token), *without(edits, PatchHead, PatchSite))
    try:
        base = passes.record(model, plain.text, base_edits)
        if (
            len(base.streams) > 1
            and base.streams[-1].ids.tolist() != plain.streams[-1].ids.tolist()
        ):
            st.info(
                "Under these switches the model writes something else, so its tokens are not those above. Take the switches back to patch."
            )
            return
        across = passes.record(model, donor, base_edits)
        stream = base.streams[-1].name
        at, there = (
            min(token, len(base.streams[-1].tokens) - 1),
            min(token, len(across.streams[-1].tokens) - 1),
        )
        scores = passes.logits(base, stream, at), passes.logits(across, stream, there)
    except ValueError as error:
        st.info(f"These two cannot be patched: {literal(str(error))}.")
        return
    if [each.ids.tolist() for each in base.streams] == [
        each.ids.tolist() for each in across.streams
    ]:
        st.info(
            "With this token hidden both sentences read the same, so there is nothing to put over. Look at another token above, or change another word."
        )
        return
    word, against = numbers.contrast(*scores)
    said = numbers.answer(*scores)
    names = models.labels(model, (word, against))
    st.markdown(
        f"At token {at}, this sentence says **{literal(names[0])}** ({numbers.share(float(said.before[word]))}); “{literal(' '.join(donor.split()))}” gives it {numbers.share(float(said.after[word]))} "
        f"and {'says' if said.says == against else 'raises most'} **{literal(names[1])}** ({numbers.share(float(said.before[against]))} → {numbers.share(float(said.after[against]))}).  \n"
        f"Measured is the logit of **{literal(names[0])}** minus that of **{literal(names[1])}**."
    )
    if [len(each.tokens) for each in base.streams] != [len(each.tokens) for each in across.streams]:
        st.caption(
            "The two have different numbers of tokens: places that the other does not have keep their own."
        )
    address.one_of("patch", ("Heads", "Sites"))
    what = st.segmented_control(
        "Put in, one at a time",
        ("Heads", "Sites"),
        key="patch",
        format_func={"Heads": "every head", "Sites": "every state of every token"}.get,
        required=True,
        persist_state="session",
    )
    name = (
        which(base, "patched attention" if what == "Heads" else "").name
        if what == "Heads"
        else one_stream(base)
    )
    running = background.sweep(base, what, donor, name, at, word, against).running
    st.fragment(watch, run_every=LOOK if running else None)(
        model, plain.text, base_edits, edits, what, donor, name, at, word, against, running
    )


def one_stream(base: Recording) -> str:
    names = tuple(stream.name for stream in base.streams)
    name = st.session_state.stream if st.session_state.stream in names else names[-1]
    if len(names) > 1:
        shown("stream of", name)
        st.segmented_control("Stream", names, key="stream of", required=True, on_change=take_stream)
    return name


def watch(
    model: str,
    text: str,
    base_edits: tuple[Edit, ...],
    edits: tuple[Edit, ...],
    what: str,
    donor: str,
    name: str,
    token: int,
    word: int,
    against: int,
    was_running: bool,
) -> None:
    """The sweep as far as it has come; it runs again and again while it goes on."""
    base = passes.record(model, text, base_edits)
    sweep = background.sweep(base, what, donor, name, token, word, against)
    running, found = sweep.running, sweep.latest
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running:
            st.button("Stop", key="stop sweep", on_click=sweep.stop)
        elif not sweep.finished:
            st.button(
                "Patch them all" if found is None else "Go on",
                key="start sweep",
                on_click=sweep.go_on,
                type="primary",
            )
        else:
            st.markdown(":material/check: All patched.")
    if running != was_running:
        st.rerun(scope="app")
    if found is None:
        st.caption(
            "Each patch is one pass of the model." if not running else "Running both sentences …"
        )
        return
    if found.error:
        st.info(f"This cannot be patched: {literal(found.error)}.")
        return
    done = len(found.effects)
    st.progress(
        done / max(1, found.places),
        text=f"{done:,} of {found.places:,} patches{'' if running or sweep.finished else ', stopped'}",
    )
    of = base.stream(name) if what == "Sites" else None
    effects = (
        numbers.effects_by_head(
            found.effects, (base.model.n_layer, base.model.n_head), found.clean, found.donor
        )
        if of is None
        else numbers.effects_by_site(
            found.effects, of.tokens, tuple(numbers.states(of).values()), found.clean, found.donor
        )
    )
    names = models.labels(model, (word, against))
    title = f"{effects.measure.name} of patching {'heads, ' + name + '-attention' if of is None else 'states, ' + name + ' stream'}"
    about = (
        *caption_of(
            base,
            f"{effects.measure.meaning}. Logit of {names[0]} − logit of {names[1]} at token {token}: {found.clean:.3f} as it is, {found.donor:.3f} in the other run",
        ),
        "Other sentence: " + " ".join(donor.split()),
    )
    special = (False,) * len(effects.rows) if of is None else of.special
    file = f"headlight-{model}-patching-{what.lower()}"
    cause = ("patched", what, donor, name, token, word, against, done)
    maps.show(
        maps.chart(
            effects,
            effects.rows,
            special,
            Picture(title, about, file, shelf.name_of(base, *cause)),
            hint="click a row for its strongest patch.",
        ),
        "patched map",
        take_row,
    )
    st.caption(
        f"Logit difference {fixed(found.clean)} in this run, {fixed(found.donor)} in the other. "
        + (
            "0: the patch does nothing; 1: it brings all of the other’s answer; below 0: it pushes away from it."
            if effects.normalised
            else "The two lie too close for a share, so the change of the difference itself is shown."
        )
    )
    row = st.session_state.get("patch row")
    if (cell := numbers.strongest(effects, None if what == "Heads" else token, row)) is not None:
        strongest_patch(base, edits, effects, cell, what, donor, name, token)
    columns = numbers.map_columns(effects)
    with_table(columns, (title, *about), file, "Every effect as a table")


def strongest_patch(
    base: Recording,
    edits: tuple[Edit, ...],
    effects: numbers.Map,
    cell: tuple[int, int],
    what: str,
    donor: str,
    name: str,
    token: int,
) -> None:
    """The strongest patch in words, with the way to make it one of the edits."""
    row, column = cell
    if what == "Heads":
        edit: Edit = PatchHead(donor, row, column, name)
    else:
        edit = PatchSite(donor, effects.columns[column].name, row, name)
    value = float(effects.values[cell])
    does = (
        f"does {fixed(value)} of the way to the other answer"
        if effects.normalised
        else f"changes the difference by {fixed(value)}"
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        place = (
            f"head {column} of layer {row}"
            if what == "Heads"
            else f"{effects.columns[column].name} at “{effects.rows[row]}” (token {row})"
        )
        st.markdown(
            f"**Strongest{'' if what == 'Heads' else ', the token that is read aside'}: {literal(place)}** {literal(does)}."
        )
        if st.button(
            "Put it into this run",
            key="put patch",
            on_click=put,
            args=((*edits, edit),),
            disabled=edit in edits,
            help="It joins the switches, and everything above shows what it does.",
        ):
            st.rerun(scope="app")  # all of the page is another run now


def take_row() -> None:
    """A press on a row of the map: its strongest patch is the one to put in; once more, the strongest of all."""
    row = st.session_state["patched map"].get("token")
    row = None if row is None else int(row)
    st.session_state["patch row"] = None if row == st.session_state.get("patch row") else row


# ---- trained without ----------------------------------------------------------------------------------------------


def trained(plain: Recording, other: Recording, edits: tuple[Edit, ...], token: int) -> None:
    """The fair comparison: models that learned without a part."""
    from explorer.figures.switches import curves

    st.subheader("Without it from the start", anchor=False)
    st.markdown(
        "A switch takes a part from a model whose weights were learned **with** it. That shows what the weights rely on, not what the part is worth: a model trained without it may find another way. So small models were trained without a part, and nothing else changed."
    )
    found = numbers.trained_without(models.cards())
    if not found:
        st.info("No model here was trained without a part, so there is none to compare with.")
        return
    families = tuple(dict.fromkeys(of.full for of in found))
    own = next((of.full for of in found if plain.model.name in (of.name, of.full)), families[0])
    family = st.session_state.fair if st.session_state.fair in families else own
    if len(families) > 1:
        shown("family", family)
        st.segmented_control(
            "The full model", families, key="family", required=True, on_change=take_family
        )
    found = tuple(of for of in found if of.full == family)
    full = found[0]
    series = [(family, full.full_curve), *((of.name, of.curve) for of in found)]
    series = [(name, curve) for name, curve in series if len(curve)]
    left, right = st.columns([1.1, 1], gap="medium")
    with left:
        if series:
            about = (
                f"Loss while they learned: {family}",
                "trained with every part, and without one; all else as their cards say",
            )
            st.plotly_chart(
                curves(series, about), key="learning", config=options("learning"), alt=about[0]
            )
    with right:
        results = numbers.result_columns(found)
        st.dataframe(results, hide_index=True, column_config=dict.fromkeys(list(results)[1:], FOUR))
        st.caption(
            "Losses are those of the last look in training; the other numbers are each card’s own, on lists that the model never saw."
        )
    for of in found:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**Without {literal(of.without)}**", width=160)
            if st.button(
                "Trained without it",
                key=f"open {of.name}",
                on_click=open_model,
                args=(of.name, ()),
                disabled=of.name == plain.model.name,
                help=f"Open {of.name}",
            ):
                st.rerun(scope="app")  # the sentence bar above names the model
            taken = TAKEN.get(of.without)
            if taken and st.button(
                "Trained with it, switched off",
                key=f"open {family} {of.without}",
                on_click=open_model,
                args=(family, taken),
                help=f"Open {family} under this switch",
            ):
                st.rerun(scope="app")
    if series:
        columns = numbers.curve_columns(series)
        with_table(columns, about, f"headlight-trained-without-{family}", "The curves as a table")


def take_family() -> None:
    st.session_state.fair = st.session_state["family"]


def open_model(name: str, edits: tuple[Edit, ...]) -> None:
    """That model, under these edits."""
    state = st.session_state
    state.model, state.acted = name, True
    state.token = state.layer = state.head = state.attention = state.only = ""
    put(edits)


# ---- shared -------------------------------------------------------------------------------------------------------


def options(file: str) -> dict:
    return {
        "displaylogo": False,
        "toImageButtonOptions": {"format": "svg", "filename": f"headlight-{file}"},
    }


address.one_of("effects", EFFECTS)
with st.spinner("Loading the model …"):
    shown_now = onscreen.shown()
explore(shown_now.model, st.session_state.text)
