"""The values of a session, each looked up when it is asked for.

Streamlit gathers all of them wherever one is wanted: for each menu on a page, this app's two
hundred. Importing this module ends that for the process; where Streamlit keeps its state in another
way, it gathers them still."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state import SessionState

OWN = "$$"  # the keys of Streamlit's own begin so, the ids of widgets among them
PARTS = "_key_id_mapper", "_new_session_state", "_old_state"
_gathered: Any = SessionState.filtered_state


class SessionValues(Mapping[str, Any]):
    """What `st.session_state` says now under each key: of a widget that has a key its value."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        if key.startswith(OWN):
            raise KeyError(key)
        state = self._state
        if key in state._key_id_mapper:  # a widget's
            return state[key]
        written = state._new_session_state  # in this run
        return written[key] if key in written else state._old_state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_gathered.fget(self._state))

    def __len__(self) -> int:
        return len(_gathered.fget(self._state))

    def __repr__(self) -> str:
        return repr(dict(self))


if all(hasattr(SessionState(), name) for name in PARTS):
    SessionState.filtered_state = property(SessionValues)  # type: ignore[assignment]
