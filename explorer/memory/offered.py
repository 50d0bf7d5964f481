"""Which models a visitor may choose. On a public server those that come with it and those that its
operator lists; else any, and what one visitor opened stands on no other's list."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from hashlib import blake2b

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from explorer.memory.settings import settings
from models import learn, library

OPENED = "opened models"  # in a visit's state: the borrowed models that this visitor opened
COOKIE = "_streamlit_xsrf"  # a random word that Streamlit gives to each browser
MOST_BROWSERS, MOST_MODELS = 1000, 20  # of which it is remembered what they opened, and how much

_salt = secrets.token_bytes(16)
# What each browser opened in this process, the latest last: a page loaded anew is another visit.
_of_browser: OrderedDict[str, tuple[str, ...]] = OrderedDict()


def here() -> tuple[str, ...]:
    """The models that come with this server: the shipped ones, MiniLM in both ways, and what the
    operator lists."""
    shipped = library.names()
    minilm = (f"{library.IN_ITS_OWN_CODE}{library.MINILM}",) if library.MINILM in shipped else ()
    return tuple(dict.fromkeys((*shipped, *minilm, *settings().models)))


def is_allowed(name: str) -> bool:
    """True for a model that may be opened on this server. It says nothing of whether there is
    one."""
    base = name.partition("@")[0]
    if learn.is_live(name):
        return base in opened()  # of this visit alone
    return (
        name in here() or base in library.names() or (not settings().public and library.knows(name))
    )


def opened() -> tuple[str, ...]:
    """The borrowed models that this visitor opened, in order."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return ()
    return tuple(st.session_state.get(OPENED, ()))


def remember(name: str) -> None:
    """This visitor has opened a model."""
    if learn.is_live(name):
        name = name.partition("@")[0]
    if name not in here() and name.partition("@")[0] not in library.names():
        st.session_state[OPENED] = tuple(dict.fromkeys((*opened(), name)))
        if (mine := _browser()) and not learn.is_live(name):
            names = (*(each for each in _of_browser.pop(mine, ()) if each != name), name)
            _of_browser[mine] = names[-MOST_MODELS:]
            while len(_of_browser) > MOST_BROWSERS:
                _of_browser.popitem(last=False)


def is_of_this_browser(name: str) -> bool:
    """True for a model that this browser has opened in this process, in whatever visit, and still
    may."""
    return is_allowed(name) and name in _of_browser.get(_browser(), ())


def _browser() -> str:
    """The browser of this visit, under a name that tells nothing of it; "" where it is unknown."""
    word, _ = decode_xsrf_token_string(st.context.cookies.get(COOKIE, ""))
    return blake2b(word, key=_salt, digest_size=16).hexdigest() if word else ""


def forget(names: tuple[str, ...]) -> None:
    """Models that are gone stand on this visitor's list no more."""
    st.session_state[OPENED] = tuple(name for name in opened() if name not in names)


def needs_asking(name: str) -> bool:
    """True for a model that a link alone does not open: it does not come with this server, and this
    visitor has not opened it."""
    base = name.partition("@")[0]
    known = name in opened() or (learn.is_live(name) and base in opened())
    return name not in here() and base not in library.names() and not known


def choices() -> tuple[str, ...]:
    """The models for this visitor to choose from."""
    return (*here(), *(name for name in opened() if is_allowed(name)))
