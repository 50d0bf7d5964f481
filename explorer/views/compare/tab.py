"""Two runs side by side: two models, two sentences, or one run before and after an edit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from explorer.analysis.comparison import name
from explorer.layout import controls, current_recording, output
from explorer.layout.controls import pick
from explorer.panels import attention as attention_panels
from explorer.panels import compare as compare_panels
from explorer.panels.compare import TwoRuns
from explorer.panels.spec import Panel
from explorer.state import event_log, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from explorer.views.compare import run_selection
from models.recording import NotFinite, Recording

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


def vectors(on: ComparedRuns) -> None:
    """The residual streams of both sides, and the path of one token."""
    if output.show_panel(on.make(compare_panels.vectors), "vectors of both") is None:
        return
    two = compare_panels.two_runs(on.a, on.b, on.attention, on.other_attention)
    states = compare_panels.aligned_states(two)
    chosen = url_state.whole_number("other_word", len(states.labels))
    unit = compare_panels.default_unit(two) if chosen is None else chosen
    st.session_state["word followed"] = unit
    st.selectbox(
        "Token",
        range(len(states.labels)),
        key="word followed",
        format_func=lambda at: f"{at} {states.labels[at]}",
        on_change=_take_word,
        width=240,
    )
    output.show_panel(on.make(compare_panels.paths, unit=unit), "paths of both")


def tokens(on: ComparedRuns) -> None:
    """Show the alignment of tokens by text."""
    output.show_panel(on.make(compare_panels.tokens), "token alignment")


# By the value of `other_view` in the address; "Heads" is the panel above them.
VIEWS: dict[str, tuple[str, Callable[[ComparedRuns], None]]] = {
    "Difference": ("Selected head: B − A", difference),
    "Answers": ("Predictions", answers),
    "Nearest": ("Nearest heads", nearest),
    "Vectors": ("Vectors", vectors),
    "Tokens": ("Token alignment", tokens),
}


@event_log.fragment
def explore(model: str, text: str) -> None:
    """The tab below the sentence bar. It takes names and not recordings, which Streamlit would
    keep for every visitor."""
    state = st.session_state
    if "wanted_model" in state or (model, text) != (state.model, state.text):
        st.rerun()  # an example has put others into the fields above, which only a whole run draws
    try:
        a, b, view = run_selection.choose(model, text)
        recordings = a.recording(), b.recording()
    except ValueError as error:
        why = (
            "The numbers exceed single precision, so there is no run to compare."
            if isinstance(error, NotFinite)
            else ""
        )
        st.error(f"These cannot be compared: {literal(str(error).rstrip('.'))}. {why}")
        return url_state.write()
    with view:
        on = _choices(a, b, *recordings)
    show(on)
    url_state.write()


def show(on: ComparedRuns) -> None:
    """The heads of both sides, and what else differs below them."""
    state = st.session_state
    make = on.make(
        compare_panels.heads, pair=on.pair, token=on.token, log=state.other_tone == "Log"
    )
    output.show_panel(make, "heads of both", _take_head)
    for fold, (label, draw) in VIEWS.items():
        state[f"fold {fold}"] = state.other_view == fold
        with st.expander(label, key=f"fold {fold}", on_change=_take_fold, args=(fold,)) as box:
            if box.open:
                draw(on)


def _choices(a: Run, b: Run, one: Recording, other: Recording) -> ComparedRuns:
    """Read from the address what to compare, with the controls of the View menu."""
    of_a, of_b = _attentions(one, other)
    token = url_state.whole_number("token", len(one.streams[0].tokens))
    if token is None and one.text == other.text:
        token = attention_panels.opening_word(one, one.attention[0])
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
            st.session_state[f"shown {key}"] = now
            st.selectbox(
                f"Attention of {side}",
                names,
                key=f"shown {key}",
                format_func=lambda each: controls.LABELS.get(each, each),
                on_change=_take_kind,
                args=(key,),
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
    names = {f"{at}.{head}": name((at, head)) for at in range(layers) for head in range(heads)}
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


def _take_kind(key: str) -> None:
    st.session_state[key] = st.session_state[f"shown {key}"]
    run_selection.forget_pair()


def _take_head() -> None:
    """A head that was pressed is selected on every tab; its counterpart in B is found."""
    st.session_state.other_pair = ""


def _take_word() -> None:
    st.session_state.other_word = str(st.session_state["word followed"])


def _take_fold(fold: str) -> None:
    """One part is open at a time, and the address says which."""
    st.session_state.other_view = fold if st.session_state[f"fold {fold}"] else "Heads"


def compare() -> None:
    """The tab Compare: the text is recorded, and the rest is drawn from its names."""
    url_state.one_of("other_view", ("Heads", *VIEWS))
    url_state.one_of("other_tone", tuple(TONES))
    with st.spinner("Loading the model …"):
        run = current_recording.current_run()
    explore(run.model, st.session_state.text)
