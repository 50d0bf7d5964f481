"""The bar at the top of every page: the text, the model, and the way to any Hugging Face model."""

from __future__ import annotations

import streamlit as st

from explorer.frame import line
from explorer.memory import address, models
from explorer.sentences.escape import literal
from models import library

ASK_AGAIN = 0.2  # seconds between two looks at how far a model has come


def show() -> None:
    """The bar. A model that is not in memory yet is fetched first, with its progress; one that cannot be used is named, and the last one stays."""
    state = st.session_state
    words = st.container()
    with words:
        ready()
    line.show(options(), open_dialog)
    if state.pop("borrowing", False):
        borrow()
    if name := state.pop("unknown_model", None):
        words.warning(
            f"The link asks for a model called {literal(name)}, which is not here. {models.DEFAULT_MODEL} is shown instead."
        )
    if offered := state.get("offered_model"):
        with words, st.container(horizontal=True, vertical_alignment="center"):
            st.info(
                f"The link asks for the Hugging Face model {literal(models.title(offered))}, which is not in memory. {models.title(state.model)} is shown until it is."
            )
            st.button("Fetch it", key="fetch offered", on_click=take_offered)
    if refused := state.pop("refused", None):
        words.warning(
            f"{literal(refused.rstrip('.'))}. The model shown is {models.title(state.model)}."
        )


def options() -> list[str]:
    """The models to choose from: those that are here, those in memory, and the one on screen."""
    return list(dict.fromkeys((*library.names(), *models.borrowed(), st.session_state.model)))


def ready() -> None:
    """Wait until the model on screen is in memory, with a bar that says how far it has come; go back to the last one where it cannot be used."""
    state = st.session_state
    if problem := fetched(state.model):
        state.refused = problem
        state.model = state.get("last_model", models.DEFAULT_MODEL)
        address.forget_head()
        if fetched(state.model):
            state.model = models.DEFAULT_MODEL
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
                text=f"{'Fetching' if loading.share < 1 else 'Trying'} {literal(models.title(name))} …",
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
    """Ask for a model, fetch it, and open it."""
    st.markdown(
        "Its name on the hub, such as `distilbert/distilbert-base-uncased` or `openai-community/gpt2`, or a folder with its files. "
        "Weights are read from safetensors alone, and none of a model’s own code is run. Size is checked before anything is fetched."
    )
    with st.form("wanted", border=False):
        wide, narrow = st.columns([4, 1], vertical_alignment="bottom")
        where = wide.text_input(
            "Name or folder", key="wanted where", placeholder="owner/name, or /a/folder"
        )
        asked = narrow.form_submit_button("Open it", width="stretch")
    if asked:
        open_model(where)
    st.caption(
        "Families that are tried in the tests. A model of another family is tried when it is loaded, and shows what is found in it."
    )
    st.dataframe(library.families(), hide_index=True, height=320)


def open_model(where: str) -> None:
    """Fetch the model that a reader named, and go to it."""
    finding = models.Loading.found(where)
    bar = st.progress(0.0, text="Looking for it …")
    while not finding.wait(ASK_AGAIN):
        bar.progress(
            finding.share,
            text=f"{finding.share:.0%} fetched" if finding.share else "Looking for it …",
        )
    bar.empty()
    if finding.problem:
        st.warning(literal(finding.problem))
    else:
        st.session_state.wanted_model = finding.result
        st.rerun()
