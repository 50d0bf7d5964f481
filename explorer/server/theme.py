"""The theme that Streamlit puts into the first message of every run.

It reads the theme's six sections anew each time, out of all its settings: a fifteenth of what a
text costs the server. They are the same while a server runs, so they are read once.
"""

from __future__ import annotations

from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session


def read_once() -> None:
    """Let the sections of the theme be read once each. Where Streamlit has another way to fill them
    in, it keeps it."""
    read = getattr(app_session, "_populate_theme_msg", None)
    if read is None:
        return
    kept: dict[str, CustomThemeConfig] = {}

    def fill(msg: CustomThemeConfig, section: str = "theme") -> None:
        if section not in kept:
            read(made := CustomThemeConfig(), section)
            kept[section] = made
        if kept[section].ByteSize():  # merging nothing would say that the section is there
            msg.MergeFrom(kept[section])

    app_session._populate_theme_msg = fill
