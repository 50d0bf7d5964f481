"""The bar at the top of every page: the text, the model, and the way to any Hugging Face model."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import streamlit as st

from explorer.analysis.words import described
from explorer.app import mounts
from explorer.app.layout import current_recording, export_menu, share_menu
from explorer.app.state import event_log, models, opened_recordings, url_state
from explorer.app.state.settings import settings
from explorer.app.state.visit import visit
from explorer.screens.screen import asks_on, covered_on
from explorer.text import places
from explorer.wording import model_descriptions
from explorer.wording.markdown_escape import literal, well_formed
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import Edit, HideWord, describe, from_line
from models.example_texts import DEFAULT_MODEL, DEFAULT_TEXT, EXAMPLES
from models.own import model_card
from models.runtime import registry
from models.runtime.run import Run

WORDS = sentences("frame", "header")

# The class that this window takes part in: its line at the foot of every page.


def class_bar() -> None:
    """The bar of a class, which the browser alone fills: the server has separate addresses for
    classes."""
    names = {
        "/" if name == places.FIRST else f"/{name}": place.title
        for name, place in places.PLACES.items()
    }
    meant = {"text": DEFAULT_TEXT, "model": DEFAULT_MODEL}
    subject = {"text": well_formed(visit.text), "model": well_formed(visit.model)}
    fits = url_state.fits_address(visit.text)
    place = places.place_of(visit.page)
    path = "/" if place == places.FIRST else f"/{place}"
    at = f"{path}?{urlencode(url_state.query_parameters())}"
    texts = {
        places.address(tab.id, {}): tab.text
        for tab in places.ROWS.values()
        if tab.text != DEFAULT_TEXT
    }
    first = url_state.opening(places.first_tab(places.FIRST))
    openings = {
        places.address(tab, {}): dict(zip(("text", "model"), opened))
        for tab in places.ROWS
        if (opened := url_state.opening(tab)) != first or places.address(tab, {}) == "/"
    }
    mounts.class_bar(meant, texts, openings, subject if fits else None, at, names)


# The one line at the top of every page: the sentence, the model, examples that suit it, and the
# link to what is on screen.

MAX_LIVE_CHARACTERS = 400  # characters up to which a text is drawn while it is typed


def sentence_field(names: list[str]) -> tuple[Any, Any]:
    """The line, and the buttons at the right of the bar above it. `names`: the models to choose
    from. Returns the menus Share and Export, to be filled when the page has run."""
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key="top-line"):
        mounts.sentence_field(
            visit.text,
            _covered_text(),
            visit.model,
            "typed_text",
            settings().max_chars,
            len(visit.text) <= MAX_LIVE_CHARACTERS and not model_names.is_borrowed(visit.model),
            _take_typed,
        )
        label = model_label(visit.model)
        with st.popover(label, width=280, key="model_menu", on_change="rerun") as box:
            if box.open:
                with st.container(key="models"):
                    _model_menu(names)
        with st.popover("Examples", width="content", key="examples", on_change="rerun") as box:
            if box.open:
                _examples()
    with st.container(horizontal=True, gap="small", width="content", key="bar-right"):
        st.button(
            "Class",
            key="to class",
            icon=":material/school:",
            on_click=_to_class,
            type="tertiary",
            help="Questions on this text, and a live class",
        )
        st.button(
            "Present",
            key="present",
            icon=":material/slideshow:",
            type="tertiary",
            help=WORDS("present"),
        )
        return share_menu.menu(), export_menu.menu()


def _covered_text() -> str:
    """The text without the word that the screen asks for, "" where it asks for none."""
    words, tab = url_state.words(), places.ROWS[visit.page]
    if not (words.get("covered") or asks_on(tab, words)):
        return ""  # without a pass of the model
    run = Run(visit.model, visit.text)
    try:
        text, _ = run.recording().texts_with_cover(covered_on(tab, run, words))
    except ValueError:  # which the page says
        return ""
    return "" if text == visit.text else text


def model_label(model: str) -> str:
    """A model's name and purpose, as Markdown."""
    title = literal(model_names.title(model))
    purpose = model_descriptions.purpose(model) or _purpose_of_opened(model)
    return f"**{title}** {literal(purpose)}" if purpose else f"**{title}**"


def _purpose_of_opened(model: str) -> str:
    """The purpose of a model that does not come with the app, by its kind once it is in memory; ""
    for one that was trained here."""
    if model_names.is_local(model):
        return ""
    if model_names.is_recorded(model):
        return model_descriptions.RECORDED
    if not models.is_loaded(model):
        return model_descriptions.UNOPENED
    facts = model_card.facts(model)
    return model_descriptions.purpose_by_kind(
        facts["kind"], facts["readout"], facts.get("classes", ())
    )


def _group(model: str) -> str:
    """The group of a model in the menu, one of `model_descriptions.GROUPS`."""
    group = model_descriptions.group(model)
    return "offered" if group == "yours" and model in settings().models else group


def _model_menu(names: list[str]) -> None:
    """A button for each model under the heading of its group, and one for any other model. The many
    small models are folded unless one of them is on screen."""
    for group, heading in model_descriptions.GROUPS.items():
        members = [name for name in names if _group(name) == group]
        if not members:
            continue
        if group == model_descriptions.FOLDED:
            with st.expander(heading, expanded=visit.model in members):
                _model_buttons(members)
        else:
            st.caption(heading)
            _model_buttons(members)
    with st.container(horizontal=True, gap="small"):
        st.button("Add a model …", key="add model", icon=":material/add:", on_click=_add_model)
        if not settings().public:
            icon = ":material/folder_open:"
            st.button("Open a recording …", key="open recording", icon=icon, on_click=_open_file)


def _model_buttons(names: list[str]) -> None:
    for name in names:
        st.button(
            model_label(name),
            key=f"model {name}",
            type="tertiary",
            icon=":material/check:" if name == visit.model else None,
            on_click=_take_model,
            args=(name,),
        )
        if model_names.is_local(name):
            taught = model_descriptions.taught_in_menu(model_card.facts(name))
            if taught:
                with st.container(key=f"note {name}"):
                    st.caption(taught)
        if name == visit.model:
            _mark_switch(name)


def _mark_switch(model: str) -> None:
    """For a model with a document mark, the switch that leaves the mark out."""
    if mark := registry.document_mark(model):
        bare, whole = model_names.bare_name(model), model.partition("@")[0]
        st.toggle(
            f"{literal(mark)} before a text",
            value=model != bare,
            key="document mark",
            help=WORDS("document_mark", model=whole),
            on_change=_take_model,
            args=(whole if model == bare else bare,),
        )


def _take_model(name: str) -> None:
    """Make a model of the menu the current one."""
    visit.model_menu = False
    url_state.take_model(name)


def _add_model() -> None:
    """Open the dialog for a model that is not in the menu."""
    visit.model_menu, visit.borrowing = False, True


def _open_file() -> None:
    """Open the dialog for a recording of a file."""
    visit.model_menu, visit.opening_file = False, True


def _take_typed() -> None:
    """Make the typed text the current text."""
    typed = visit.typed_text.get("text")
    if isinstance(typed, str) and typed != visit.text:
        current_recording.take_text(typed)


def _examples() -> None:
    """Buttons with texts that suit the model, and a description of the model."""
    if model_names.is_recorded(visit.model):  # it holds one text
        st.markdown(current_recording.card_lines(visit.model))
        return
    texts = model_descriptions.examples(visit.model) or EXAMPLES
    visit.preset = next((label for label, text in texts.items() if text == visit.text), None)
    st.pills(
        "Examples",
        list(texts),
        key="preset",
        wrap=True,
        on_change=current_recording.take_preset,
        args=(texts,),
        label_visibility="collapsed",
    )
    st.markdown(current_recording.card_lines(visit.model))


def _to_class() -> None:
    """The reader goes where questions are, and classes."""
    visit.wanted_page = "classroom"


# The presenter on every page: P fills the screen with the current picture.


def listen_for_presenter() -> None:
    """Put its keys on the page."""
    mounts.presenter()


# What the reader changed in the model, on every page.


def edited() -> None:
    """The edits of the address, and the press that undoes them, where the tab does not name
    them."""
    state = st.session_state
    room = st.container(key="edits room")  # empty, too: what stands below keeps its place
    visit.edits_in_frame = state.edits
    if visit.edits_left and (visit.edits_left[0], visit.edits_left[-1]) != (
        visit.page,
        state.edits,
    ):
        visit.edits_left = ()
    if visit.edits_left:
        room.caption(_of_edits_before(*visit.edits_left[1:]))
    tab = places.ROWS[visit.page]
    if tab.names_edits:
        return
    try:
        edits = from_line(str(state.edits))
    except ValueError:  # Experiment says which of them cannot be read
        return
    if edits:
        is_trained, what = tab.as_trained, literal(_described(edits))
        key = "edited elsewhere" if is_trained else "edited"
        row = room.container(horizontal=True, vertical_alignment="center", gap="small", key=key)
        with row:
            st.badge(f"Edited: {what}", color="orange", help=what)
            st.button("Undo", key="undo edits", type="tertiary", on_click=_undo)
            if is_trained:
                st.caption(sentences("frame", "edits")("elsewhere"), width="content")


def _of_edits_before(cause: str, before: str, kept: str) -> str:
    """Sentences on what was edited before the new text or model (cause): what stayed with the last
    one, and that the rest is still edited."""
    words = sentences("frame", "edits")
    left = words(f"left_{cause}") if kept != before else ""
    return " ".join(filter(None, (left, words("still") if kept else "")))


def _described(edits: tuple[Edit, ...]) -> str:
    """Edits in words, the words that are taken out by themselves where the text is read."""
    if not any(isinstance(each, HideWord) for each in edits):
        return describe(edits)
    try:
        return described(Run(visit.model, visit.text, edits).recording(), edits)
    except ValueError:  # of which the page says why
        return describe(edits)


def _undo() -> None:
    st.session_state.edits = ""


POLL_INTERVAL = 0.2  # seconds between two looks at how far a model has come


def header() -> tuple[Any, Any]:
    """The bar. A model that is not in memory yet is fetched first, with its progress; one that
    cannot be used is named, and the last one stays. Returns the menus Share and Export."""
    words = st.container(key="words")
    url_state.apply_fallback()
    with words:
        ensure_loaded()
        if url_state.apply_fallback():  # one that had to be fetched first to be judged
            ensure_loaded()
    menus = sentence_field(model_options())
    edited()
    if visit.borrowing:
        visit.borrowing = False
        hf_model_dialog()
    if visit.opening_file:
        visit.opening_file = False
        recording_dialog()
    else:
        opened_recordings.drop_uploads()  # of a dialog that was left
    if name := visit.unknown_model:
        visit.unknown_model = ""
        words.warning(
            WORDS(
                "unknown_model",
                name=literal(name),
                shown=DEFAULT_MODEL,
                how=literal(how_to_get(name)),
            )
        )
    if offered := visit.offered_model:
        with words, st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                WORDS(
                    "offered_model",
                    offered=literal(model_names.title(offered)),
                    shown=literal(model_names.title(visit.model)),
                )
            )
            st.button("Fetch it", key="fetch offered", on_click=accept_offer)
    if refused := visit.refused_model:
        visit.refused_model = ""
        words.warning(
            WORDS(
                "refused",
                why=literal(refused.rstrip(".")),
                shown=literal(model_names.title(visit.model)),
            )
        )
    return menus


def how_to_get(name: str) -> str:
    """Instructions, in one sentence, for a model that can be installed; "" for others and on a
    public server, whose readers install nothing."""
    if name != registry.SMOLLM2 or settings().public:
        return ""
    return registry.absent()


def model_options() -> list[str]:
    """The models on this machine, those that this visitor opened, and the one on screen; the one
    that predicts words best is the first."""
    names = dict.fromkeys((*models.choices(), visit.model))
    return sorted(names, key=lambda name: name != registry.SMOLLM2)


def ensure_loaded() -> None:
    """Wait until the model on screen is in memory, with a bar that says how far it has come; go
    back to the last one where it cannot be used."""
    if problem := fetch_model(visit.model):
        event_log.log_refusal("model")
        visit.refused_model = problem
        visit.model = visit.last_model or DEFAULT_MODEL
        url_state.forget_head()
        if fetch_model(visit.model):
            visit.model = DEFAULT_MODEL
    models.remember_opened(visit.model)
    visit.last_model = visit.model


def fetch_model(name: str) -> str:
    """Load a model while the page shows its progress; says why where it cannot be used."""
    if models.is_loaded(name):
        return ""
    if problem := models.no_room(name):
        return problem
    loading = models.Loading.of(name)
    title, bar = literal(model_names.title(name)), None
    while not loading.wait(POLL_INTERVAL):
        doing = "Fetching" if loading.share < 1 else "Trying"
        bar = bar or st.empty()
        bar.progress(
            loading.share, text=f"{'Loading' if model_names.is_local(name) else doing} {title} …"
        )
    if bar is not None:
        bar.empty()
    return loading.problem


def accept_offer() -> None:
    """Open the model that the link names, after the reader agreed."""
    visit.wanted_model, visit.offered_model = visit.offered_model, ""


@st.dialog("A Hugging Face model", width="large")
def hf_model_dialog() -> None:
    """Dialog to choose a model, fetch it, try it, and open it; where it does not fit, it shows the
    reason and keeps the input."""
    if settings().public:
        st.markdown(WORDS("listed_only"))
        return
    st.markdown(WORDS("borrow"))
    with st.form("wanted", border=False):
        wide, narrow = st.columns([4, 1], vertical_alignment="bottom")
        where = wide.text_input(
            "Name or folder", key="model_source", placeholder="owner/name, or /a/folder"
        )
        submitted = narrow.form_submit_button("Open it", width="stretch")
    if submitted:
        open_model(where)
    already_here()
    if missing := registry.absent():
        st.caption(literal(missing))
    st.caption(WORDS("families"))
    st.dataframe(registry.families(), hide_index=True, height=320)


@st.dialog("A recording", width="large")
def recording_dialog() -> None:
    """Dialog to open a recording of a file; where it is none, it shows the reason."""
    st.markdown(WORDS("recording"))
    file = st.file_uploader(
        "A recording’s file", "npz", key="recording file", label_visibility="collapsed"
    )
    if file is None:
        return
    try:
        opened = opened_recordings.open_file(file.getvalue())
    except ValueError as why:
        event_log.log_refusal("recording")
        st.warning(literal(f"{str(why)[0].upper()}{str(why)[1:].rstrip('.')}."))
        return
    finally:
        opened_recordings.drop_uploads()
    visit.wanted_model, visit.wanted_text = opened.name, opened.recorded.text
    st.session_state.edits = ""
    st.rerun()


def already_here() -> None:
    """List models that open without a download: those opened in this visit, MiniLM, and those in
    this machine's cache of the hub."""
    listed = [name for name in models.choices() if ":" in name or name in registry.PACKAGED]
    cached = [
        name for name in registry.cached_models() if name not in map(model_names.title, listed)
    ]
    if not (listed or cached):
        return
    st.caption("Already here:")
    with st.container(horizontal=True):
        for name in (*listed, *cached):
            st.button(
                literal(model_names.title(name)),
                key=f"already {name}",
                on_click=request_model,
                args=(name,),
                type="tertiary",
            )


def request_model(name: str) -> None:
    """Open a model that is on this machine."""
    if ":" in name or name in registry.PACKAGED:
        visit.wanted_model = name
    else:
        visit.model_source = name
        visit.borrowing = True


def open_model(where: str) -> None:
    """Fetch and try the model that a reader named, and go to it."""
    loading = models.Loading.start(where)
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
        visit.wanted_model = loading.result
        st.rerun()
