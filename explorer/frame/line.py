"""The one line at the top of every page: the sentence, the model, examples that suit it, and the
link to what is on screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from explorer.components import sentence
from explorer.frame import export, onscreen
from explorer.memory import address, models
from explorer.memory.settings import settings
from explorer.sentences import purposes
from models.examples import EXAMPLES

MOST_LIVE = 400  # characters up to which a text is drawn while it is typed


def show(names: list[str], on_borrow: Callable[[], None]) -> Any:
    """The line. `names`: the models to choose from; `on_borrow` is called for one that is not among
    them. Returns the Export menu, to be filled when the page has run."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key="top-line"):
        sentence.show(
            state.text,
            state.model,
            "typed text",
            settings().max_chars,
            len(state.text) <= MOST_LIVE and not models.is_borrowed(state.model),
            _take_typed,
        )
        st.selectbox(
            "Model",
            names,
            key="model",
            format_func=named,
            on_change=address.forget_head,
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
        return export.menu()


def named(model: str) -> str:
    """A model's name and what it is for."""
    said = purposes.purpose(model)
    return f"{models.title(model)} · {said}" if said else models.title(model)


def _take_typed() -> None:
    """What the reader typed is the text now."""
    typed = st.session_state["typed text"].get("text")
    if isinstance(typed, str) and typed != st.session_state.text:
        onscreen.take_text(typed)


def _examples() -> None:
    """Texts that suit the model, in one press, and what the model is."""
    state = st.session_state
    texts = purposes.examples(state.model) or EXAMPLES
    state.preset = next((label for label, text in texts.items() if text == state.text), None)
    st.pills(
        "Examples",
        list(texts),
        key="preset",
        wrap=True,
        on_change=onscreen.take_preset,
        args=(texts,),
        label_visibility="collapsed",
    )
    st.markdown(onscreen.about(state.model))


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
            query = urlencode(address.wanted())
            st.caption("This link opens the same text, model and choices elsewhere.")
            link = f"{st.context.url or ''}{'?' + query if query else ''}"
            st.code(link, language=None, wrap_lines=True)
