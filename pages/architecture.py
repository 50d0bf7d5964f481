"""Architecture: what happens to a word on its way through?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.tabs import VIEWS

navigation.show_tabs(VIEWS)
