"""Two runs side by side: two models, two sentences, or one run before and after an edit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import comparison, recorded_findings
from explorer.layout import controls, current_recording, output, selection_bar
from explorer.layout.controls import bind, pick
from explorer.panels import compare as compare_panels
from explorer.panels.compare import TwoRuns, counterpart
from explorer.panels.spec import Panel
from explorer.state import url_state
from explorer.state.models import choices, needs_asking
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from models import model_names
from models.caching import loaded
from models.edits import (
    NORMS,
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
    describe,
    from_line,
    to_line,
)
from models.example_texts import MATES
from models.recording import NotFinite, Recording
from models.run import Run

WORDS = sentences("compare", "tab")

# ---- examples ------------------------------------------------------------------------

FRESH = {"other_swap": "", "other_of": "", "other_to": "", "other_pair": ""}
Made = dict[str, dict[str, str]]  # by name, which choices each sets


def example_pills(model: str) -> None:
    """The examples that suit the model above; the one that is on screen is marked."""
    made, state = _offered(model), st.session_state
    chosen = {key: state[key] for choices in made.values() for key in choices}
    chosen["other_edits"] = edits_line()
    state["comparison"] = next(
        (name for name, choices in made.items() if choices.items() <= chosen.items()), None
    )
    with st.popover("Suggestions", icon=":material/lightbulb:"):
        st.pills(
            "Examples of comparisons",
            list(made),
            key="comparison",
            wrap=True,
            on_change=_take_example,
            args=(made,),
            label_visibility="collapsed",
        )


def checkpoints_of(model: str, cards: dict[str, dict]) -> tuple[str, ...]:
    """A model's earlier weights."""
    return tuple(f"{model}@{step}" for step in cards.get(model, {}).get("checkpoints", ()))


def _offered(model: str) -> Made:
    tired, wide = next(iter(MATES.items()))
    made = {
        "tired / wide": _sentences(tired, wide),
        "Ram / Hari": _sentences("Ram pushed Hari", "Hari pushed Ram"),
    }
    encodes, features = loaded(model).card.kind == "encoder", loaded(model).capabilities
    edits: dict[str, Edit] = {
        "No positions": WithoutPositions(),
        "No scale": WithoutScale(),
        "No residual connections": WithoutResidual(),
        f"No {NORMS['rms' if features.rms else 'layer']}": WithoutNorm(),
        "No FFN": WithoutFeedForward(),
        "Causal mask" if encodes else "No causal mask": WithMask() if encodes else WithoutMask(),
    }
    for title, edit in edits.items():
        line = to_line((edit,))
        if all(isinstance(one, features.edits) for one in from_line(line)):
            made[title] = {"other_what": "Edit", "other_edits": line}
    cards = model_names.cards()
    for title, other in (("decoder", "decoder"), ("MiniLM", "minilm")):
        if {"encoder", other} <= set(cards):
            made[f"encoder / {title}"] = _models("encoder", other)
    base = model.partition("@")[0]
    started = next((name for name in (base, *cards) if checkpoints_of(name, cards)), None)
    if started:
        made[f"{started} / untrained"] = _models(started, checkpoints_of(started, cards)[0])
    return made


def _sentences(text: str, other: str) -> dict[str, str]:
    return {"text": text, "other_what": "Sentence", "other_text": other}


def _models(model: str, other: str) -> dict[str, str]:
    return {"model": model, "other_what": "Model", "other_model": other}


def _take_example(made: Made) -> None:
    """The example just pressed; pressing it once more changes nothing."""
    state = st.session_state
    if (choices := made.get(state["comparison"] or "")) is None:
        return
    if choices.get("text", state.text) != state.text:
        current_recording.take_text(choices["text"])
    if choices.get("model", state.model) != state.model:
        state.wanted_model = choices["model"]
    for key, value in (FRESH | choices).items():
        if key not in ("text", "model"):
            state[key] = value


# ---- run selection -------------------------------------------------------------------

WHATS = {"Edit": "Before and after an edit", "Sentence": "Two sentences", "Model": "Two models"}
ABLATIONS = {"zero": ZeroHead, "mean": MeanHead, "uniform": UniformHead}
ABLATED = ZeroHead, MeanHead, UniformHead
COUNTERPARTS = {"encoder": "decoder", "decoder": "encoder"}
FIELD, MENU = 360, 240  # pixels


def choose_runs(source: Run) -> tuple[Run, Run, DeltaGenerator]:
    """A and B, the other way round where swapped, and the View menu for what else is chosen, from
    the run on screen. Raises ValueError where there is nothing to compare with."""
    model, text = source.model, source.text
    what = url_state.one_of("other_what", tuple(WHATS))
    row = st.container(horizontal=True, vertical_alignment="center", key="sides")
    row.selectbox(
        "Compare",
        tuple(WHATS),
        key="other_what",
        format_func=WHATS.__getitem__,
        persist_state="session",
        on_change=forget_pair,
        label_visibility="collapsed",
        width=MENU,
    )
    field = row.container(width=FIELD)
    with row:
        example_pills(model)
    view = row.popover("View")
    view.button(
        "Swap A and B",
        icon=":material/swap_horiz:",
        on_click=_swap,
        help=WORDS("swap"),
    )
    one = source
    if what == "Edit":
        one, other = _edited(one, field, view)
    elif what == "Sentence":
        other = Run(model, _second_text(text, field))
    else:
        other = _second_model(one, field)
    return (other, one, view) if st.session_state.other_swap else (one, other, view)


def other_letter() -> str:
    """The letter of the side that the controls choose: B, and A once the sides are swapped."""
    return "A" if st.session_state.other_swap else "B"


# ---- before and after an edit ----


def _edited(run: Run, field: DeltaGenerator, view: DeltaGenerator) -> tuple[Run, Run]:
    """The run as it is, and under edits. Both runs' decoders read the same. An edit that cannot be
    followed is named."""
    run = run.under(())
    line = edits_line()
    can_follow = issubclass(WithoutPositions, run.loaded.capabilities.edits)
    if line == NO_POSITIONS and not can_follow:
        line = to_line(counterpart(run).edits)
    edits, wrong = _written(line)
    _pick_head(run.recording(), edits, field, view)
    edits, unfit = _followed(replace(run, edits=edits))
    if wrong and not edits:
        raise ValueError("; ".join(wrong))
    if wrong or unfit:
        st.warning(WORDS("left_out", edits=literal("; ".join((*wrong, *unfit)))))
    return run, replace(run, edits=edits)


NO_POSITIONS = to_line((WithoutPositions(),))


def chosen_edits() -> str:
    """The edits of B that the reader chose: those chosen here, or else those of Edit the model."""
    return st.session_state.other_edits.strip() or st.session_state.edits


def edits_line() -> str:
    """The edits of B: those that the reader chose, or no positions."""
    return chosen_edits() or NO_POSITIONS


def _written(line: str) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a line, and what is wrong with its other words."""
    edits: list[Edit] = []
    wrong: list[str] = []
    for word in filter(None, (each.strip() for each in line.split(","))):
        try:
            edits += from_line(word)
        except ValueError:
            wrong.append(WORDS("no_edit", text=word[:60]))
    return tuple(dict.fromkeys(edits)), wrong


def _followed(run: Run) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a run that its model can follow, and what is wrong with the others. Numbers that
    overflow are found later, and are no refusal."""

    def refused(edits: tuple[Edit, ...]) -> str:
        try:
            replace(run, edits=edits).recording()
        except NotFinite:
            pass
        except ValueError as error:
            return str(error)
        return ""

    if not refused(run.edits):
        return run.edits, []
    reasons = {edit: refused((edit,)) for edit in run.edits}
    good = tuple(edit for edit, why in reasons.items() if not why)
    if not good or refused(good):
        raise ValueError("; ".join(why for why in reasons.values() if why) or refused(run.edits))
    return good, [why for why in reasons.values() if why]


def _pick_head(
    plain: Recording, edits: tuple[Edit, ...], field: DeltaGenerator, view: DeltaGenerator
) -> None:
    """One head of B to ablate; how, and all other edits, in the View menu. The controls show what
    the edits say."""
    state, several, first = st.session_state, len(plain.attention) > 1, plain.attention[0].name
    heads = [
        (layer, head, each.name)
        for each in plain.attention
        for layer in range(each.pattern.shape[0])
        for head in range(each.pattern.shape[1])
    ]
    alone = edits[0] if len(edits) == 1 and isinstance(edits[0], ABLATED) else None
    now: tuple = (alone.layer, alone.head, alone.attention) if alone is not None else ()
    state["head of B"] = now = now if now in heads else ()
    kinds = [how for how, kind in ABLATIONS.items() if now and isinstance(alone, kind)]
    state["done to it"] = next(iter(kinds), "zero")
    letter, suggested = other_letter(), not chosen_edits()

    def label(at: tuple) -> str:
        """The edits of B without a chosen head, or the head that is ablated."""
        until = ", until you choose an edit" if suggested and at == now else ""
        if not at:
            return f"{letter}: {'other edits' if now else describe(edits)}{until}"
        name = f"{comparison.name(at[:2])}{f', {at[2]}' if several else ''}"
        return f"{letter}: {name} ablated{until}"

    field.selectbox(
        f"Ablated head of {letter}",
        [(), *heads],
        key="head of B",
        on_change=_take_head_of_b,
        args=(first,),
        format_func=label,
        label_visibility="collapsed",
    )
    if now:
        view.segmented_control(
            "Ablation",
            tuple(ABLATIONS),
            key="done to it",
            wrap=True,
            required=True,
            on_change=_take_head_of_b,
            args=(first,),
            help=WORDS("ablation"),
        )
    view.text_input(
        f"Edits of {letter} as text",
        key="other_edits",
        persist_state="session",
        on_change=forget_pair,
        placeholder=to_line(edits),
        help=WORDS("edits_as_text"),
    )


def _take_head_of_b(first: str) -> None:
    """The head chosen for B is the one edit of B, and its attention the one on show (`first`: the
    one that is without a choice); without a head B has its first edits again."""
    state = st.session_state
    chosen = state["head of B"]
    kind = ABLATIONS[state.get("done to it", "zero")]
    state.other_edits = to_line((kind(*chosen),)) if chosen else ""
    state.other_of = state.other_to = chosen[2] if chosen and chosen[2] != first else ""
    forget_pair()


# ---- two sentences, two models ----


def _second_text(text: str, field: DeltaGenerator) -> str:
    """The other sentence, one that differs in few words where none is typed."""
    mate = MATES.get(text) or text.strip().rpartition(" ")[0] or text
    field.text_input(
        f"Text of {other_letter()}",
        key="other_text",
        persist_state="session",
        on_change=forget_pair,
        placeholder=mate or "Type a second sentence",
        label_visibility="collapsed",
    )
    typed = str(st.session_state.other_text)
    return typed if typed.strip() else mate


def _second_model(one: Run, field: DeltaGenerator) -> Run:
    """Another model on the same text. Where both write, both decoders read what the first one
    writes."""
    options = _others(one.model)
    first = COUNTERPARTS.get(one.model, "")
    other = url_state.one_of("other_model", ("", *options)) or (
        first if first in options else options[0]
    )
    field.selectbox(
        f"Model of {other_letter()}",
        options,
        format_func=model_names.title,
        label_visibility="collapsed",
        **bind("other_model", "other model", other, after=_forget_attentions),
    )
    with st.spinner("Loading the model …"):
        kinds = {loaded(each).card.kind for each in (one.model, other)}
    target = one.recording().target or None if kinds == {"encoder-decoder"} else None
    return Run(other, one.text, (), target)


def _others(model: str) -> tuple[str, ...]:
    """The models that side B can be: all but the one above, and that one's other weights; and one
    that a link names."""
    cards, base = model_names.cards(), model.partition("@")[0]
    linked = str(st.session_state.other_model)
    names = (
        *([base] if base in cards else []),
        *filter(None, (model_names.bare_name(base),)),
        *checkpoints_of(base, cards),
        *cards,
        *(name for name in choices() if ":" in name),
        # A link alone fetches nothing.
        *((linked,) if ":" in linked and not needs_asking(linked) else ()),
    )
    return tuple(name for name in dict.fromkeys(names) if name != model)


def _forget_attentions() -> None:
    forget_pair()
    st.session_state.other_of = st.session_state.other_to = ""


def _swap() -> None:
    state = st.session_state
    state.other_swap = "" if state.other_swap else "1"
    state.other_of, state.other_to = state.other_to, state.other_of
    forget_pair()


def forget_pair() -> None:
    """Other sides have other heads."""
    st.session_state.other_pair = ""


TONES = {"Linear": "Linear", "Log": "Logarithmic"}
AUTOMATIC = "Same place or nearest"


@dataclass(frozen=True)
class ComparedRuns:
    """Subject of a comparison: two runs, the attention of each, a pair of heads, and a token."""

    a: Run
    b: Run
    attention: str
    other_attention: str
    pair: str
    token: int | None

    def make(self, panel: Callable[..., Panel], **choices: object) -> Callable[[], Panel]:
        """A panel of these runs and attentions."""
        of = {"attention": self.attention, "other_attention": self.other_attention}
        return partial(panel, self.a, self.b, **of, **choices)


def difference(on: ComparedRuns) -> None:
    """The weights of B minus those of A."""
    output.show_panel(on.make(compare_panels.difference, pair=on.pair), "difference")


def answers(on: ComparedRuns) -> None:
    """The most likely words of both sides."""
    output.show_panel(
        partial(compare_panels.prediction, on.a, on.b, on.token), "predictions of both"
    )


def nearest(on: ComparedRuns) -> None:
    """Every head of A beside every head of B."""
    output.show_panel(on.make(compare_panels.nearest, pair=on.pair), "nearest heads")


def tokens(on: ComparedRuns) -> None:
    """Show the alignment of tokens by text."""
    output.show_panel(on.make(compare_panels.tokens), "token alignment")


# By the value of `other_view` in the address; "Heads" is the panel above them.
VIEWS: dict[str, tuple[str, Callable[[ComparedRuns], None]]] = {
    "Difference": ("Selected head: B − A", difference),
    "Answers": ("Predictions", answers),
    "Nearest": ("Nearest heads", nearest),
    "Tokens": ("Token alignment", tokens),
}


@current_recording.tab(edited=False, other_view=("Heads", *VIEWS), other_tone=tuple(TONES))
def compare(source: Run) -> None:
    """The tab Compare."""
    state = st.session_state
    if "wanted_model" in state or (source.model, source.text) != (state.model, state.text):
        st.rerun()  # an example has put others into the fields above, which only a whole run draws
    try:
        a, b, view = choose_runs(source)
        recordings = a.recording(), b.recording()
    except ValueError as error:
        name = "too_large" if isinstance(error, NotFinite) else "incomparable"
        st.error(WORDS(name, reason=literal(str(error).rstrip("."))))
        return
    if selection_bar.take() & {"selected layer", "selected head"}:
        state.other_pair = ""
    with view:
        on = _choices(a, b, *recordings)
    _selection(on, recordings[0])
    make = on.make(
        compare_panels.heads, pair=on.pair, token=on.token, log=state.other_tone == "Log"
    )
    output.show_panel(make, "heads of both", _take_head)
    parts = {name: (label, partial(draw, on)) for name, (label, draw) in VIEWS.items()}
    controls.folds("other_view", "Heads", parts)


def _selection(on: ComparedRuns, one: Recording) -> None:
    """The selection bar: the word, and the head of A. There is none where no head can be compared,
    as the picture says."""
    two = compare_panels.two_runs(on.a, on.b, on.attention, on.other_attention)
    try:
        at = two.heads(on.pair)[0]
    except ValueError:
        return
    stream = one.streams[0]
    words = selection_bar.Words(
        stream.tokens,
        selection_bar.EVERY_WORD if on.token is None else on.token,
        every="every word",
        roles=stream.roles,
    )
    layers, heads = two.of_a.pattern.shape[:2]
    selection_bar.show(words, (layers, heads), at)


def _choices(a: Run, b: Run, one: Recording, other: Recording) -> ComparedRuns:
    """Read from the address what to compare, with the controls of the View menu."""
    of_a, of_b = _attentions(one, other)
    token = url_state.whole_number("token", len(one.streams[0].tokens))
    if token is None and one.text == other.text and st.session_state.att_word != "none":
        token = recorded_findings.opening_word(one, one.attention[0])
    two = compare_panels.two_runs(a, b, of_a, of_b)
    pair = _pair(two)
    pick("Colours of weights", TONES, "other_tone")
    _pick_head_of_b(two, pair)
    return ComparedRuns(a, b, of_a, of_b, pair, token)


def _attentions(one: Recording, other: Recording) -> tuple[str, str]:
    """The attentions that are compared, with a menu where a side has several."""
    names_a, names_b = ([each.name for each in of.attention] for of in (one, other))
    of_a = url_state.one_of("other_of", ("", *names_a)) or names_a[0]
    of_b = url_state.one_of("other_to", ("", *names_b)) or (of_a if of_a in names_b else names_b[0])
    if len(names_a) > 1 or len(names_b) > 1:
        for side, key, names, now in zip(
            "AB", ("other_of", "other_to"), (names_a, names_b), (of_a, of_b)
        ):
            st.selectbox(
                f"Attention of {side}",
                names,
                format_func=lambda each: controls.LABELS.get(each, each),
                **bind(key, f"shown {key}", now, after=forget_pair),
            )
    return of_a, of_b


def _pair(two: TwoRuns) -> str:
    """The heads of the address: a pair, or the head that is selected on other tabs; "" for none."""
    shapes = [each.pattern.shape[:2] for each in (two.of_a, two.of_b)]
    numbers = url_state.whole_numbers("other_pair", 10_000)
    heads = list(zip(numbers[::2], numbers[1::2]))
    fits = all(at[0] < shape[0] and at[1] < shape[1] for at, shape in zip(heads, shapes))
    if len(numbers) in (2, 4) and fits:
        return ".".join(map(str, numbers))
    layer, head = str(st.session_state.layer), str(st.session_state.head)
    if not (layer.isdecimal() and head.isdecimal() and len(layer + head) < 8):
        return ""
    known = int(layer) < shapes[0][0] and int(head) < shapes[0][1]
    return f"{int(layer)}.{int(head)}" if known else ""


def _pick_head_of_b(two: TwoRuns, pair: str) -> None:
    """The head of B beside the one of A."""
    layers, heads = two.of_b.pattern.shape[:2]
    names = {
        f"{at}.{head}": comparison.name((at, head)) for at in range(layers) for head in range(heads)
    }
    numbers = pair.split(".") if pair else []
    st.session_state["head beside"] = ".".join(numbers[2:])
    st.selectbox(
        "Head of B",
        ("", *names),
        key="head beside",
        format_func=lambda each: names.get(each, AUTOMATIC),
        on_change=_take_head_beside,
        args=(two.run, two.other, two.of_a.name, two.of_b.name, ".".join(numbers[:2])),
    )


def _take_head_beside(a: Run, b: Run, of_a: str, of_b: str, head: str) -> None:
    """A head of B, beside the head of A that is on screen."""
    chosen = st.session_state["head beside"]
    if not head:
        try:
            head = ".".join(map(str, compare_panels.two_runs(a, b, of_a, of_b).heads("")[0]))
        except ValueError:
            return
    st.session_state.other_pair = f"{head}.{chosen}" if chosen else head


def _take_head() -> None:
    """A head that was pressed is selected on every tab; its counterpart in B is found."""
    st.session_state.other_pair = ""
