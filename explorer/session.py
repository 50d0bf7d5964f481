"""The only place that remembers: what has been computed, what is on screen, and what the address bar says.

Computed things are kept on one shelf, keyed by their cause (model, weights' fingerprint, text, edits) and bounded by bytes. What is on
screen stands in `st.session_state` under the names of `CHOICES`, the same names as in the address bar.
"""

from __future__ import annotations

import gc
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any
from urllib.parse import quote

import numpy as np
import streamlit as st

from models import library
from models.edits import Edit
from models.examples import EXAMPLES
from models.prediction import Attribution, Lens
from models.recording import Recording

DEFAULT_MODEL = "encoder"
PREFERRED = ("encoder", "decoder", "translator")  # for a page that the chosen model does not fit
PRESETS = EXAMPLES
DEFAULT_TEXT = next(iter(PRESETS.values()))
# The choices of a page that the address carries, with what each is when the address does not say.
CHOICES = {"layer": "", "head": "", "token": "", "view": "Matrix", "scale": "Head", "tone": "Linear"}
LONGEST_ADDRESS = 4000  # characters of encoded text that browsers, servers and chat programs all pass on
# A token that is a part of a character ends so, see models/tokenizer.py.
PIECE = re.compile(r" \d+/\d+$")
SHELF_BYTES = 512 * 2**20


class Shelf:
    """Computed things by key, the least used ones dropped when together they weigh more than `limit` bytes. Safe for threads.

    One thing is made at a time, because short passes are fastest one by one; whoever finds what they want waits for nobody.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.looking, self.making = threading.Lock(), threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int]) -> Any:
        """What lies under `key`, made now if it does not."""
        if (found := self._find(key)) is None:
            with self.making:
                if (found := self._find(key)) is None:
                    found = (make(),)
                    self._put(key, found[0], weigh(found[0]))
        return found[0]

    def _find(self, key: Hashable) -> tuple[Any, ...] | None:
        with self.looking:
            if key in self.held:
                self.held.move_to_end(key)
            return self.held.get(key)

    def _put(self, key: Hashable, value: Any, weight: int) -> None:
        with self.looking:
            self.held[key] = (value, weight)
            while len(self.held) > 1 and sum(weight for _, weight in self.held.values()) > self.limit:
                self.held.popitem(last=False)


_shelf = Shelf(SHELF_BYTES)
_handles: dict[str, Any] = {}
_handles_lock = threading.Lock()


def handle(name: str) -> Any:
    """The loaded model of that name, loaded once for everyone."""
    with _handles_lock:
        if name not in _handles:
            _handles[name] = library.load(name)
        return _handles[name]


def warm_up() -> None:
    """Load the first model, run it once on the first text, and keep the garbage collector away from what now stays for good.

    Streamlit collects garbage after every rerun; with torch imported that takes 100 to 200 ms unless its objects are frozen.
    """
    record(DEFAULT_MODEL, DEFAULT_TEXT)
    gc.collect()
    gc.freeze()


def record(model: str, text: str, edits: tuple[Edit, ...] = (), target: str | None = None) -> Recording:
    """The recording of a model on a text, from the shelf where it lies there. `target` as in `library.record`."""
    loaded = handle(model)
    key = ("recording", model, loaded.card.fingerprint, text, edits, target)
    return _shelf.get(key, lambda: library.record(loaded, text, edits, target), _bytes_of)


def derived(recording: Recording, what: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int] = lambda value: 100_000) -> Any:
    """Something computed from a recording, kept under `what` beside it."""
    return _shelf.get(("derived", *_cause(recording), what), make, weigh)


def lens(recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on a stream of a recording."""
    return derived(recording, ("lens", stream, top), lambda: library.lens(handle(recording.model.name), recording, stream, top))


def logits(recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores over the vocabulary (id) at one token of a stream."""
    return derived(recording, ("logits", stream, token), lambda: library.logits(handle(recording.model.name), recording, stream, token))


def attribution(recording: Recording, stream: str, token: int, id: int, against: int | None = None) -> Attribution:
    """A word's logit at a token, taken apart; with `against` the difference to another word's."""
    what = ("attribution", stream, token, id, against)
    return derived(recording, what, lambda: library.attribute(handle(recording.model.name), recording, stream, token, id, against))


def labels(model: str, ids: Iterable[int]) -> list[str]:
    """Tokens of a model's vocabulary as a person reads them."""
    return library.labels(handle(model), ids)


def name_of(recording: Recording, *what: Hashable) -> str:
    """A short name for a picture: equal causes, equal name. Whoever waits for a picture in the browser waits for this name."""
    cause = (*_cause(recording), what)
    return hashlib.sha256(repr(cause).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _cause(recording: Recording) -> tuple[Hashable, ...]:
    return recording.model.name, recording.model.fingerprint, recording.text, recording.target, recording.edits


def _bytes_of(recording: Recording) -> int:
    parts = (*recording.streams, *recording.attention)
    return 4 * len(recording.text) + sum(getattr(value, "nbytes", 0) for part in parts for value in vars(part).values())


# ---- the frame around every page ------------------------------------------------------------------------------------


def begin(page: str) -> None:
    """Take what the address says into the session, before any widget is made: at the start, and when the reader went back or forward.

    An address that is not the one last written, in a run that no widget of the frame began, is the reader's own doing. A bare address
    on another `page` than before is a step through the app's own navigation: text and choices go along.
    """
    state = st.session_state
    asked = st.query_params.to_dict()
    acted = state.pop("acted", False)
    moved = state.get("page") != page
    state.page = page
    if "written" in state and (acted or asked == state.written or (moved and not asked)):
        return
    state.written = asked
    state.text = asked.get("text", DEFAULT_TEXT)
    state.model = asked.get("model", DEFAULT_MODEL)
    if state.model not in library.names():
        state.unknown_model = state.model
        state.model = DEFAULT_MODEL
    for name, default in CHOICES.items():
        state[name] = asked.get(name, default)


def sentence_bar() -> None:
    """The text and the model, the same on every page."""
    state = st.session_state
    state.preset = next((label for label, text in PRESETS.items() if text == state.text), None)
    wide, narrow = st.columns([4, 1], vertical_alignment="bottom")
    wide.text_area(
        "Your text", key="text", height=72, on_change=_forget_token,
        placeholder="Paste any text, then press Ctrl + Enter (⌘ + Enter on a Mac) or leave the field",
    )  # fmt: skip
    narrow.selectbox("Model", library.names(), key="model", on_change=_forget_head, help=about(state.model))
    st.pills("Examples", list(PRESETS), key="preset", on_change=_take_preset, label_visibility="collapsed")
    if name := state.pop("unknown_model", None):
        st.warning(f"The link asks for a model called {literal(name)}, which is not here. {DEFAULT_MODEL} is shown instead.")


def about(model: str) -> str:
    """A model's card in a few lines of Markdown."""
    card = library.card(model)
    size = card["config"]
    return (
        f"**{model}**: {card['summary']} {size['n_layer']} layers of {size['n_head']} heads, {card['n_parameters']:,} parameters. {card['headline']}\n\n"
        + "\n".join(f"- {line}" for line in card["limits"])
    )


def model_for(*kinds: str) -> str:
    """The model on screen if it is of one of these kinds, else the first model that is, with a word for the reader."""
    chosen = st.session_state.model
    if library.card(chosen)["kind"] in kinds:
        return chosen
    fitting = [name for name in (*PREFERRED, *library.names()) if name in library.names() and library.card(name)["kind"] in kinds]
    st.info(f"{chosen} cannot do what this page shows, so {fitting[0]} is shown instead. Models that can: {', '.join(dict.fromkeys(fitting))}.")
    return fitting[0]


def recording(model: str | None = None) -> Recording:
    """The recording of the text and model on screen, with a word for the reader where the text did not fit or is empty."""
    made = record(model or st.session_state.model, st.session_state.text)
    words = st.container()  # always there, so that what follows keeps its place on the page, and with it its state
    if made.dropped:
        n = made.model.n_positions
        words.warning(
            f"This text has {made.dropped + n:,} tokens with the special ones; the model {made.model.name} reads {n}. "
            f"The last {made.dropped:,} tokens of the text are not shown. The field keeps the whole text."
        )
    if made.streams[0].special.all():
        words.info("There is no text yet, so the model sees only its special tokens. Type or paste a sentence above.")
    elif not made.text.strip():
        words.info("There is only white space so far. Type or paste a sentence above.")
    if split := next((token for token in made.streams[0].tokens if PIECE.search(token)), None):
        words.caption(
            f"Some characters are not in the model’s vocabulary and are read byte by byte: “{literal(split)}” is one of the tokens that make up one character."
        )
    if not fits_address(made.text):
        words.info(
            f"This text is too long for a link ({len(made.text):,} characters). It stays in this tab; "
            "reloading the page or sharing its address does not bring it back, so keep a copy."
        )
    return made


def _take_preset() -> None:
    """The preset just pressed; pressing it once more changes nothing."""
    if st.session_state.preset is not None:
        st.session_state.text = PRESETS[st.session_state.preset]
        _forget_token()


def _forget_token() -> None:
    st.session_state.acted = True
    st.session_state.token = ""


def _forget_head() -> None:
    _forget_token()
    st.session_state.layer = st.session_state.head = ""


def whole(name: str, below: int) -> int | None:
    """A choice as a whole number from 0 to `below` - 1. One that is no such number is forgotten: None."""
    value = str(st.session_state.get(name, ""))
    if value.isdecimal() and len(value) < 6 and int(value) < below:
        return int(value)
    st.session_state[name] = ""
    return None


def one_of(name: str, options: tuple[str, ...]) -> str:
    """A choice that must be one of some words; the first where it is none of them."""
    if st.session_state.get(name) not in options:
        st.session_state[name] = CHOICES[name] if CHOICES.get(name) in options else options[0]
    return st.session_state[name]


def fits_address(text: str) -> bool:
    """True for a text that an address can carry."""
    return len(quote(text.encode("utf-8", "replace"))) <= LONGEST_ADDRESS


def address() -> None:
    """Write what is on screen into the address bar, so that the link opens the same elsewhere."""
    state = st.session_state
    wanted = {name: str(state[name]) for name, default in CHOICES.items() if str(state[name]) != default}
    if state.text != DEFAULT_TEXT and fits_address(state.text):
        wanted["text"] = state.text
    if state.model != DEFAULT_MODEL:
        wanted["model"] = state.model
    if wanted != st.query_params.to_dict():
        st.query_params.from_dict(wanted)
    state.written = wanted


def literal(text: str) -> str:
    """User text inside Markdown, shown as it is."""
    return "".join(f"\\{letter}" if letter in r"\`*_{}[]()#+-.!|~$:<>&" else letter for letter in text)
