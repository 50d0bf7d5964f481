"""Class: a class that follows its teacher."""

from __future__ import annotations

import streamlit as st

from explorer.components import classroom
from explorer.memory import address


def page() -> None:
    """The page."""
    st.title("A class that follows", anchor=False)
    st.caption(
        "Students join with a code, on any phone or laptop and without an account. They see what "
        "you show as you move, may look around by themselves, and come back with one press. "
        "Nothing is kept of them, and of the class nothing after twelve hours."
    )
    classroom.show()
    address.write()


page()
