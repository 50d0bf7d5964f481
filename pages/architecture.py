"""Architecture: what happens to a word on its way through?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.tabs import TABS

navigation.show_tabs(TABS)
