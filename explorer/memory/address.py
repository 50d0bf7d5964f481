"""What is on screen and what the address bar says of it: the choices of all pages, by the same names in both."""

from __future__ import annotations

from urllib.parse import quote

import streamlit as st

from explorer.memory import collector
from explorer.memory.models import DEFAULT_MODEL, is_borrowed, is_loaded
from explorer.memory.settings import LONGEST_FIELD
from models import library
from models.examples import DEFAULT_TEXT

ANCHORS = "fruit, tree, juice / mac, os, app"  # the lecture notes' own, for a word of two senses

# The choices of a page that the address carries, with what each is when the address does not say.
CHOICES = {
    "attention": "",
    "layer": "",
    "head": "",
    "token": "",
    "source": "",
    "view": "Matrix",
    "scale": "Head",
    "tone": "Linear",
} | {
    "att_unit": "Tokens",
    "att_keep": "All",
    "att_sum": "As they are",
    "att_right": "",  # of one head's matrix: words, what is left out, the checks
    "beams": "1",
    "beam": "",
    "step": "",
    "cross": "",
    "target": "",  # of a translation
    "site": "",
    "lens": "Top word",
    "word": "",
    "against": "",
    "part": "",  # of the logit lens and a logit's parts
    "hidden": "",
    "said": "",
    "temperature": "1",
    "top_k": "0",
    "top_p": "1",
    "seed": "0",  # of words filled in and written
    "second": "",
    "mate": "",
    "anchors": ANCHORS,
    "stage": "",
    "stream": "",
    "plane": "PCA",
    "length": "Kept",
    "sums": "States",
    "specials": "Hidden",
    "space": "2-D",
    "curve": "Cosine",
    "trails": "Chosen",
    "frame": "All",  # of the paths of embeddings
    "ask": "Waves",
    "width": "",
    "places": "",
    "pair": "",
    "place": "",
    "shift": "",  # of positions: the screen, the table's sizes, a pair and a shift
    "order": "Shuffle",
    "shuffle": "1",
    "retyped": "",
    "positions": "Without",  # of the experiment with word order
    "claim": "",
    "claim_verdict": "All",
    "claim_note": "All notes",  # of claims: the open one, and which are shown
    "flow": "Writes",
    "write": "Turned",
    "norm": "Sigma before",
    "writer": "Length",
    "block": "0.attn",
    "spread": "Linear",
    "times": "3",
    "lag": "8",  # of the residual stream
    "edits": "",
    "donor": "",
    "only": "",
    "brush": "Zero",
    "seen": "",
    "effects": "Attention",
    "patch": "Heads",
    "fair": "",  # of the switches
    "sum_what": "Mean",
    "sum_layer": "",
    "sum_head": "",
    "sum_measure": "Length",  # of the summaries
    "look_at": "Hard",
    "look_temperature": "1",
    "look_rule": "2",
    "look_layout": "Arcs",
    "look_heads": "One",
    "look_before": "Weights",  # of the lookup
    "other_what": "Edit",
    "other_edits": "WithoutPositions",
    "other_text": "",
    "other_model": "",
    "other_swap": "",
    "other_of": "",
    "other_to": "",  # of a comparison
    "other_view": "Heads",
    "other_tone": "Linear",
    "other_pair": "",
    "other_word": "",
    "anatomy_cell": "",  # of one weight taken apart: query and key with a dot between them
}

LONGEST_ADDRESS = (
    4000  # characters of encoded text that browsers, servers and chat programs all pass on
)

MOST_NUMBERS = 8000  # characters of a list of numbers


def begin(page: str) -> None:
    """Take what the address says into the session, before any widget is made: at the start, and when the reader went back or forward.

    An address that is not the one last written, in a run that no widget of the frame began, is the reader's own doing. A bare address
    on another `page` than before is a step through the app's own navigation: text and choices go along. The bare address stays in
    the browser's history; going back to it later means what it meant then (`bare`).
    """
    collector.served()
    state = st.session_state
    asked = st.query_params.to_dict()
    acted = state.pop("acted", False)
    if "wanted_text" in state:
        state.text = state.pop("wanted_text")
        forget_token()
        acted = state.pop("acted")
    if "wanted_model" in state:
        state.model = state.pop("wanted_model")
        forget_head()
        state.pop("acted")
        acted = True
    moved = state.get("page") != page
    state.page = page
    if "written" in state and moved and not asked:
        state.bare = state.written
        return
    if "written" in state and (acted or asked == state.written):
        return
    if not asked:
        asked = state.back = state.get("bare", asked)
    state.written = asked
    state.text = asked.get("text", DEFAULT_TEXT)[:LONGEST_FIELD]
    state.model = asked.get("model", DEFAULT_MODEL)
    if not library.knows(state.model):
        state.unknown_model = state.model
        state.model = DEFAULT_MODEL
    if is_borrowed(state.model) and not is_loaded(
        state.model
    ):  # a link alone fetches nothing: the reader is asked first
        state.offered_model, state.model = state.model, DEFAULT_MODEL
    for name, default in CHOICES.items():
        state[name] = asked.get(name, default)


def forget_token() -> None:
    """Another text: what was chosen of the last one means nothing there."""
    st.session_state.acted = True
    st.session_state.token = st.session_state.mate = st.session_state.source = (
        st.session_state.step
    ) = st.session_state.beam = ""
    st.session_state.hidden = st.session_state.said = st.session_state.retyped = ""


def forget_head() -> None:
    """Another model: what was chosen of the last one means nothing there."""
    st.session_state.pop("offered_model", None)
    forget_token()
    st.session_state.stage = st.session_state.stream = st.session_state.target = ""
    st.session_state.attention = st.session_state.layer = st.session_state.head = ""
    st.session_state.word = st.session_state.against = st.session_state.part = (
        ""  # numbers of the other model's words and heads
    )


def whole(name: str, below: int) -> int | None:
    """A choice as a whole number from 0 to `below` - 1. One that is no such number is forgotten: None."""
    value = str(st.session_state.get(name, ""))
    if value.isdecimal() and len(value) < 6 and int(value) < below:
        return int(value)
    st.session_state[name] = ""
    return None


def numbers(name: str, below: int) -> tuple[int, ...]:
    """A choice as whole numbers from 0 to `below` - 1, with dots between them. One that is no such list is forgotten: ()."""
    value = str(st.session_state.get(name, ""))
    parts = value.split(".") if value else []
    if len(value) <= MOST_NUMBERS and all(
        part.isdecimal() and len(part) < 7 and int(part) < below for part in parts
    ):
        return tuple(map(int, parts))
    st.session_state[name] = ""
    return ()


def one_of(name: str, options: tuple[str, ...]) -> str:
    """A choice that must be one of some words; the first where it is none of them."""
    if st.session_state.get(name) not in options:
        st.session_state[name] = CHOICES[name] if CHOICES.get(name) in options else options[0]
    return st.session_state[name]


def fits_address(text: str) -> bool:
    """True for a text that an address can carry."""
    return len(quote(text.encode("utf-8", "replace"))) <= LONGEST_ADDRESS


def wanted() -> dict[str, str]:
    """What an address has to say, so that it opens what is on screen: all that is not as it is by itself."""
    state = st.session_state
    asked = {
        name: str(state[name])
        for name, default in CHOICES.items()
        if str(state[name]) != default and fits_address(str(state[name]))
    }
    if state.text != DEFAULT_TEXT and fits_address(state.text):
        asked["text"] = state.text
    if state.model != DEFAULT_MODEL:
        asked["model"] = state.model
    return asked


def write() -> None:
    """Write what is on screen into the address bar, so that the link opens the same elsewhere."""
    collector.served()
    state = st.session_state
    asked, shown = wanted(), st.query_params.to_dict()
    if asked != shown and (shown or asked != state.get("back")):
        st.query_params.from_dict(asked)
    state.written = asked
