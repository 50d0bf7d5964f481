"""Training: when does a head learn it?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.tabs import TABS

navigation.show_tabs(TABS)
