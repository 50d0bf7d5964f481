"""Attention: which head attends where, and why?"""

from __future__ import annotations

from explorer.app.layout import navigation
from explorer.app.views.tabs import VIEWS

navigation.show_tabs(VIEWS)
