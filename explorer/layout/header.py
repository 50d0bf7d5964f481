"""The bar at the top of every page: the text, the model, and the way to any Hugging Face model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from explorer.analysis.formatting import signed
from explorer.analysis.layer_map import (
    Station,
    largest_head_part,
    selected_token,
    stations,
    top_tokens,
)
from explorer.analysis.logit_lens import part_key, part_name
from explorer.components import layer_map as layer_map_components
from explorer.components import presenter, sentence
from explorer.components.class_bar import show
from explorer.components.layer_map import CurrentPrediction, Stop
from explorer.layout import controls, current_recording, export_menu
from explorer.state import cache, event_log, models, url_state
from explorer.state.models import DEFAULT_MODEL
from explorer.state.settings import settings, well_formed
from explorer.text import model_descriptions
from explorer.text.markdown_escape import literal
from models import registry
from models.example_texts import DEFAULT_TEXT, EXAMPLES
from models.recording import Recording

# The class that this window takes part in: its line at the foot of every page.


def class_bar(pages: Mapping[str, str]) -> None:
    """The line, which the browser alone fills: the server hears of a class over its own addresses.
    `pages`: titles by page, the first one's address being "/"."""
    names = {
        "/" if at == 0 else f"/{name}": title.strip()
        for at, (name, title) in enumerate(pages.items())
    }
    defaults = {"text": DEFAULT_TEXT, "model": DEFAULT_MODEL}
    subject = {name: well_formed(st.session_state[name]) for name in defaults}
    fits = url_state.fits_address(st.session_state.text)
    page = st.session_state.page
    at = f"/{page}?{urlencode(url_state.query_parameters())}"
    texts = {f"/{name}": text for name, text in url_state.FIRST_TEXTS.items()}
    show(defaults, texts, subject if fits else None, at, names)


# The one line at the top of every page: the sentence, the model, examples that suit it, and the
# link to what is on screen.

MAX_LIVE_CHARACTERS = 400  # characters up to which a text is drawn while it is typed


def sentence_field(names: list[str], on_borrow: Callable[[], None]) -> Any:
    """The line. `names`: the models to choose from; `on_borrow` is called for one that is not among
    them. Returns the Export menu, to be filled when the page has run."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key="top-line"):
        sentence.show(
            state.text,
            state.model,
            "typed text",
            settings().max_chars,
            len(state.text) <= MAX_LIVE_CHARACTERS and not models.is_borrowed(state.model),
            _take_typed,
        )
        st.selectbox(
            "Model",
            names,
            key="model",
            format_func=model_label,
            on_change=url_state.forget_head,
            label_visibility="collapsed",
            width=240,
        )
        st.button(
            "",
            key="borrow",
            icon=":material/add:",
            on_click=on_borrow,
            help="Any Hugging Face model, from the hub or a folder",
        )
        with st.popover("Examples", width="content", key="examples", on_change="rerun") as box:
            if box.open:
                _examples()
        st.button(
            "",
            key="to class",
            icon=":material/school:",
            on_click=_to_class,
            help="Questions on this text, and a class that follows",
        )
        _share()
        return export_menu.menu()


def model_label(model: str) -> str:
    """A model's name and what it is for."""
    purpose = model_descriptions.purpose(model)
    return f"{models.title(model)} · {purpose}" if purpose else models.title(model)


def _take_typed() -> None:
    """What the reader typed is the text now."""
    typed = st.session_state["typed text"].get("text")
    if isinstance(typed, str) and typed != st.session_state.text:
        current_recording.take_text(typed)


def _examples() -> None:
    """Texts that suit the model, in one press, and what the model is."""
    state = st.session_state
    texts = model_descriptions.examples(state.model) or EXAMPLES
    state.preset = next((label for label, text in texts.items() if text == state.text), None)
    st.pills(
        "Examples",
        list(texts),
        key="preset",
        wrap=True,
        on_change=current_recording.take_preset,
        args=(texts,),
        label_visibility="collapsed",
    )
    st.markdown(current_recording.model_card(state.model))


def _to_class() -> None:
    """The reader goes where questions are, and classes."""
    st.session_state.wanted_page = "classroom"


def _share() -> None:
    """The link to what is on screen, made when it is asked for."""
    with st.popover(
        "",
        icon=":material/share:",
        help="Share",
        width="content",
        key="share",
        on_change="rerun",
    ) as box:
        if box.open:
            query = urlencode(url_state.link_parameters())
            st.caption("This link opens the same text, model and choices elsewhere.")
            link = f"{st.context.url or ''}{'?' + query if query else ''}"
            st.code(link, language=None, wrap_lines=True)


# The presenter on every page: P fills the screen with the current picture.


def listen_for_presenter() -> None:
    """Put its keys on the page."""
    presenter.show()


# The map under the frame: what the sentence passes in this model, what each part added to the
# word held, what is said now, and which head pushed it.

BLOCK_PAGES = {
    "words": "embeddings",
    "positions": "positions",
    "heads": "attention",
    "cross": "attention",
    "ffn": "residual",
}
# Which stops each page shows.
HIGHLIGHTED = {
    "attention": ("heads", "cross"),
    "anatomy": ("heads", "cross"),
    "summaries": ("heads", "cross"),
    "lookup": ("heads",),
    "positions": ("positions",),
    "residual": ("heads", "cross", "ffn"),
    "embeddings": ("words",),
    "translation": ("cross",),
}
# Their names, and on a narrow screen, where a layer's first stop has its number.
LABELS = {
    "positions": ("+ positions", "+"),
    "heads": ("heads", ""),
    "cross": ("cross", ""),
    "ffn": ("FFN", ""),
}
DESCRIPTIONS = {
    "words": "The words as vectors",
    "positions": "The position is added",
    "heads": "Layer {}: the heads look at other words",
    "cross": "Layer {}: the decoder looks at the source",
    "ffn": "Layer {}: the feed-forward network, each word by itself",
}
MAX_LAYERS = 14  # layers a row has room for; of deeper models every few are shown
MAX_NAMED_STOPS = (
    16  # stops a row has room for with all their names; of more the first layer’s have theirs
)


def layer_map(page: str) -> None:
    """The map of the text and model on screen, with the part that `page` shows lit."""
    state = st.session_state
    run = state.get("on the map") if page == "translation" else None  # which has its own model
    target = current_recording.typed_target(state.model)
    recording = (run or cache.Run(state.model, state.text, (), target)).recording()
    stream, token = selected_token(
        recording, str(state.get("token", "")) or _opening_token(recording)
    )
    visible = stations(recording, stream, token)
    stride = -(-recording.model.n_layer // MAX_LAYERS)
    visible = tuple(
        station for station in visible if station.layer < 0 or station.layer % stride == 0
    )
    label = recording.stream(stream).tokens[token]
    show_names = len(visible) <= MAX_NAMED_STOPS
    stops = [
        _stop(
            station, page, label if station.stream == stream else "the source", previous, show_names
        )
        for previous, station in zip((None, *visible), visible)
    ]
    about = f"The way of “{label}” through the model"
    layer_map_components.show(
        stops,
        _current_prediction(recording, stream, token),
        page == "predictions",
        about,
        _open_stop,
    )


def _opening_token(recording: Recording) -> str:
    """The word that an encoder's first page opens on; "" where none is, and for other models."""
    if recording.model.kind != "encoder":
        return ""
    word = controls.opening_word(recording, recording.attention[0])
    return "" if word is None else str(word)


def _stop(
    station: Station, page: str, token_label: str, previous: Station | None, show_names: bool
) -> Stop:
    description = DESCRIPTIONS[station.what].format(station.layer)
    if not isnan(station.share):
        description += (
            f". What it wrote for “{token_label}” is {station.share:.2f} of the vector’s length"
        )
    is_first = (
        previous is None or previous.layer != station.layer or previous.stream != station.stream
    )
    label, short = LABELS.get(station.what, (token_label, token_label))
    if is_first and station.layer >= 0:
        label, short = f"{station.layer} · {label}", f"{station.layer}"
    return Stop(
        label=label if show_names or station.layer == 0 or station.what == "words" else short,
        short=short,
        says=description,
        goal=BLOCK_PAGES[station.what]
        + (f":{station.layer}" if station.what in ("heads", "cross") else ""),
        bar=-1.0 if isnan(station.share) else min(1.0, station.share),
        lit=station.what in HIGHLIGHTED.get(page, ()),
        gap=is_first and previous is not None,
    )


def _current_prediction(recording: Recording, stream: str, token: int) -> CurrentPrediction:
    """What the model says at a token, and which head pushed it there."""
    model = recording.model.name
    if models.capabilities(model).logits != stream:
        return CurrentPrediction()
    best, p = top_tokens(cache.logits(recording, stream, token))
    labels = models.labels(model, best)
    is_last = token == len(recording.stream(stream).tokens) - 1
    completions = cache.predicted_words(recording, list(zip(best, p)), 1) if is_last else {}
    words = [
        (completions[id].word if id in completions else label, probability)
        for id, label, probability in zip(best, labels, p)
    ]
    pieces = "".join(
        f". {word.word}: the probability is that of its first piece, {word.pieces[0]}"
        for word in completions.values()
    )
    if models.capabilities(model).no_parts:  # a logit that is no sum has no parts
        return CurrentPrediction(words, note=pieces)
    try:
        part = largest_head_part(cache.attribution(recording, stream, token, best[0]))
    except ValueError:  # what a model in its own code was heard to write does not add up here
        part = None
    if part is None:
        return CurrentPrediction(words, note=pieces)
    reason = f"{part_name(part)} pushed “{labels[0]}” most: {signed(part.value)} to its logit"
    head = f"L{part.layer} {'cross ' * (part.attention == 'cross')}H{part.head}"
    return CurrentPrediction(words, head, reason, f"predictions:{token}:{part_key(part)}", pieces)


def _open_stop() -> None:
    """The stop that was chosen: its page, opened on its layer, or on the head that pushed."""
    state = st.session_state
    page, _, rest = str(state["way"].get("goal") or "").partition(":")
    if page not in {*BLOCK_PAGES.values(), "predictions"}:
        return
    state.wanted_page = page
    if page == "predictions" and rest:
        state.token, _, state.part = rest.partition(":")
        state.word = state.against = ""
        if models.facts(state.model)["kind"] == "encoder":
            state.hidden = "none"  # the map reads the word in sight
    elif rest.isdecimal():
        state.layer = rest


POLL_INTERVAL = 0.2  # seconds between two looks at how far a model has come


def header() -> Any:
    """The bar. A model that is not in memory yet is fetched first, with its progress; one that
    cannot be used is named, and the last one stays. Returns the Export menu."""
    state = st.session_state
    words = st.container()
    url_state.apply_fallback()
    with words:
        ensure_loaded()
        if url_state.apply_fallback():  # one that had to be fetched first to be judged
            ensure_loaded()
    menu = sentence_field(model_options(), open_dialog)
    if state.pop("borrowing", False):
        hf_model_dialog()
    if name := state.pop("unknown_model", None):
        words.warning(
            f"The link asks for a model called {literal(name)}, which is not here. "
            f"{models.DEFAULT_MODEL} is shown instead."
        )
    if offered := state.get("offered_model"):
        with words, st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                f"The link asks for the Hugging Face model {literal(models.title(offered))}, "
                f"which this visit has not opened yet. {literal(models.title(state.model))} is "
                "shown until it is."
            )
            st.button("Fetch it", key="fetch offered", on_click=accept_offer)
    if refused := state.pop("refused", None):
        words.warning(
            f"{literal(refused.rstrip('.'))}. The model shown is "
            f"{literal(models.title(state.model))}."
        )
    return menu


def model_options() -> list[str]:
    """The models to choose from: those that are here, those that this visitor opened, and the one
    on screen."""
    return list(dict.fromkeys((*models.choices(), st.session_state.model)))


def ensure_loaded() -> None:
    """Wait until the model on screen is in memory, with a bar that says how far it has come; go
    back to the last one where it cannot be used."""
    state = st.session_state
    if problem := fetch_model(state.model):
        event_log.log_refusal("model")
        state.refused = problem
        state.model = state.get("last_model", models.DEFAULT_MODEL)
        url_state.forget_head()
        if fetch_model(state.model):
            state.model = models.DEFAULT_MODEL
    models.remember_opened(state.model)
    state.last_model = state.model


def fetch_model(name: str) -> str:
    """Load a model while the page shows its progress; says why where it cannot be used."""
    if models.is_loaded(name):
        return ""
    if problem := models.no_room(name):
        return problem
    loading = models.Loading.of(name)
    title, bar = literal(models.title(name)), None
    while not loading.wait(POLL_INTERVAL):
        doing = "Fetching" if loading.share < 1 else "Trying"
        bar = bar or st.empty()
        bar.progress(
            loading.share, text=f"{'Loading' if models.is_light(name) else doing} {title} …"
        )
    if bar is not None:
        bar.empty()
    return loading.problem


def accept_offer() -> None:
    """The reader wants the model that the link names."""
    st.session_state.wanted_model = st.session_state.pop("offered_model")


def open_dialog() -> None:
    """The reader asked for another model."""
    st.session_state.borrowing = True


@st.dialog("A Hugging Face model", width="large")
def hf_model_dialog() -> None:
    """Ask for a model, fetch it, try it, and open it; where it does not fit, say why and keep what
    was asked for."""
    if settings().public:
        st.markdown("This server offers the models in its list, and opens no others.")
        return
    st.markdown(
        "Type a model’s name on the Hugging Face hub, such as `distilbert/distilbert-base-uncased` "
        "or `openai-community/gpt2`, or the path of a folder or a GGUF file. Headlight runs it in "
        "its own classes where they fit; with `hub:` before the name, the transformers library "
        "runs it. Only safetensors and GGUF files are read, and no code that comes with a model is "
        "run. Its size is checked before anything is fetched, and the model is tried in a separate "
        "process first."
    )
    with st.form("wanted", border=False):
        wide, narrow = st.columns([4, 1], vertical_alignment="bottom")
        where = wide.text_input(
            "Name or folder", key="wanted where", placeholder="owner/name, or /a/folder"
        )
        submitted = narrow.form_submit_button("Open it", width="stretch")
    if submitted:
        open_model(where)
    already_here()
    if missing := registry.absent():
        st.caption(literal(missing))
    st.caption(
        "Model families that the tests cover. A model of another family may work too: it is "
        "checked when it is loaded, and the pages show what was found in it."
    )
    st.dataframe(registry.families(), hide_index=True, height=320)


def already_here() -> None:
    """What can be opened without fetching: what this visit has opened, MiniLM, and what lies in
    this machine's cache of the hub."""
    listed = [name for name in models.choices() if ":" in name or name in registry.PACKAGED]
    cached = [name for name in registry.cached_models() if name not in map(models.title, listed)]
    if not (listed or cached):
        return
    st.caption("Already here:")
    with st.container(horizontal=True):
        for name in (*listed, *cached):
            st.button(
                literal(models.title(name)),
                key=f"already {name}",
                on_click=request_model,
                args=(name,),
                type="tertiary",
            )


def request_model(name: str) -> None:
    """The reader wants a model that is here."""
    if ":" in name or name in registry.PACKAGED:
        st.session_state.wanted_model = name
    else:
        st.session_state["wanted where"] = name
        st.session_state.borrowing = True


def open_model(where: str) -> None:
    """Fetch and try the model that a reader named, and go to it."""
    loading = models.Loading.found(where)
    words = st.empty()
    with words.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, text="Looking for it …")
        st.button("Cancel", key="cancel loading", on_click=loading.stop)
    while not loading.wait(POLL_INTERVAL):
        bar.progress(
            loading.share,
            text=f"{loading.share:.0%} fetched" if 0 < loading.share < 1 else "Trying it …",
        )
    words.empty()
    if loading.problem or loading.result is None:
        event_log.log_refusal("model")
        st.warning(literal(loading.problem))
    else:
        models.remember_opened(loading.result)
        st.session_state.wanted_model = loading.result
        st.rerun()
