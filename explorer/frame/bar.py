"""The bar at the top of every page: the text, the model, and the way to any Hugging Face model."""

from __future__ import annotations

from typing import Any

import streamlit as st

from explorer.frame import line
from explorer.memory import address, instead, models, offered, told
from explorer.memory.settings import settings
from explorer.sentences.escape import literal
from models import library

ASK_AGAIN = 0.2  # seconds between two looks at how far a model has come


def show() -> Any:
    """The bar. A model that is not in memory yet is fetched first, with its progress; one that
    cannot be used is named, and the last one stays. Returns the Export menu."""
    state = st.session_state
    words = st.container()
    instead.settle()
    with words:
        ready()
        if instead.settle():  # one that had to be fetched first to be judged
            ready()
    menu = line.show(options(), open_dialog)
    if state.pop("borrowing", False):
        borrow()
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
            st.button("Fetch it", key="fetch offered", on_click=take_offered)
    if refused := state.pop("refused", None):
        words.warning(
            f"{literal(refused.rstrip('.'))}. The model shown is "
            f"{literal(models.title(state.model))}."
        )
    return menu


def options() -> list[str]:
    """The models to choose from: those that are here, those that this visitor opened, and the one
    on screen."""
    return list(dict.fromkeys((*offered.choices(), st.session_state.model)))


def ready() -> None:
    """Wait until the model on screen is in memory, with a bar that says how far it has come; go
    back to the last one where it cannot be used."""
    state = st.session_state
    if problem := fetched(state.model):
        told.refused("model")
        state.refused = problem
        state.model = state.get("last_model", models.DEFAULT_MODEL)
        address.forget_head()
        if fetched(state.model):
            state.model = models.DEFAULT_MODEL
    offered.remember(state.model)
    state.last_model = state.model


def fetched(name: str) -> str:
    """Load a model while the page shows its progress; says why where it cannot be used."""
    if models.is_loaded(name):
        return ""
    if problem := models.no_room(name):
        return problem
    loading = models.Loading.of(name)
    if name not in library.names():
        bar = st.progress(0.0, text=f"Fetching {literal(models.title(name))} …")
        while not loading.wait(ASK_AGAIN):
            bar.progress(
                loading.share,
                text=(
                    f"{'Fetching' if loading.share < 1 else 'Trying'} "
                    f"{literal(models.title(name))} …"
                ),
            )
        bar.empty()
    loading.wait(None)
    return loading.problem


def take_offered() -> None:
    """The reader wants the model that the link names."""
    st.session_state.wanted_model = st.session_state.pop("offered_model")


def open_dialog() -> None:
    """The reader asked for another model."""
    st.session_state.borrowing = True


@st.dialog("A Hugging Face model", width="large")
def borrow() -> None:
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
        asked = narrow.form_submit_button("Open it", width="stretch")
    if asked:
        open_model(where)
    already_here()
    if missing := library.absent():
        st.caption(literal(missing))
    st.caption(
        "Model families that the tests cover. A model of another family may work too: it is "
        "checked when it is loaded, and the pages show what was found in it."
    )
    st.dataframe(library.families(), hide_index=True, height=320)


def already_here() -> None:
    """What can be opened without fetching: what this visit has opened, MiniLM, and what lies in
    this machine's cache of the hub."""
    found = [name for name in offered.choices() if ":" in name or name in library.PACKAGED]
    held = [name for name in library.fetched() if name not in map(models.title, found)]
    if not (found or held):
        return
    st.caption("Already here:")
    with st.container(horizontal=True):
        for name in (*found, *held):
            st.button(
                literal(models.title(name)),
                key=f"already {name}",
                on_click=want,
                args=(name,),
                type="tertiary",
            )


def want(name: str) -> None:
    """The reader wants a model that is here."""
    if ":" in name or name in library.PACKAGED:
        st.session_state.wanted_model = name
    else:
        st.session_state["wanted where"] = name
        st.session_state.borrowing = True


def open_model(where: str) -> None:
    """Fetch and try the model that a reader named, and go to it."""
    finding = models.Loading.found(where)
    words = st.empty()
    with words.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, text="Looking for it …")
        st.button("Cancel", key="cancel loading", on_click=finding.stop)
    while not finding.wait(ASK_AGAIN):
        bar.progress(
            finding.share,
            text=f"{finding.share:.0%} fetched" if 0 < finding.share < 1 else "Trying it …",
        )
    words.empty()
    if finding.problem or finding.result is None:
        told.refused("model")
        st.warning(literal(finding.problem))
    else:
        offered.remember(finding.result)
        st.session_state.wanted_model = finding.result
        st.rerun()
