"""The values of a session, looked up one by one, are those that Streamlit gathers."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.runtime.state import SessionState
from streamlit.testing.v1 import AppTest

import explorer
from explorer.app.server.streamlit_patches import SessionValues, _gathered

MAIN = str(Path(explorer.__file__).with_name("app") / "main.py")


def widgets() -> None:
    """A page with a value of its own, a widget with a key and one without, and one that comes and
    goes."""
    import streamlit as st

    st.session_state.setdefault("own", [1])
    st.selectbox("Letter", ["a", "b"], key="letter")
    st.selectbox("Number", [1, 2])
    if st.session_state.letter == "a":
        st.checkbox("Only here", key="there")
    st.session_state["later"] = st.session_state.letter


def expect_gathered(app: AppTest) -> SessionState:
    """Check every value and every key of an app's session; its state."""
    state: SessionState = app.session_state._state._state
    gathered, values = _gathered.fget(state), SessionValues(state)
    assert dict(values) == gathered and list(values) == list(gathered)
    assert len(values) == len(gathered) > 0
    assert all(name in values for name in gathered)
    return state


def test_each_value_is_the_one_that_streamlit_gathers() -> None:
    app = AppTest.from_function(widgets).run()
    expect_gathered(app)
    app.selectbox(key="letter").select("b").run()
    state = expect_gathered(app)
    assert dict(SessionValues(state)) == {"own": [1], "letter": "b", "later": "b"}


def test_a_key_of_streamlit_and_one_that_is_not_there_have_no_value() -> None:
    app = AppTest.from_function(widgets).run()
    state = expect_gathered(app)
    (id,) = (key for key in state if key.endswith("-letter"))
    for key in (id, "not there"):
        assert key not in SessionValues(state)
        with pytest.raises(KeyError):
            SessionValues(state)[key]


def test_the_app_gathers_the_values_in_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages have a dozen menus and links, each of which asks for one."""
    app = AppTest.from_file(MAIN, default_timeout=300).run()
    monkeypatch.setattr("explorer.app.server.streamlit_patches._gathered", None)
    app.query_params["text"] = "The cat saw the dog in the garden."
    app.query_params["layer"] = "1"
    assert not app.run().exception and app.selectbox(key="selected_layer")
    monkeypatch.undo()
    expect_gathered(app)
