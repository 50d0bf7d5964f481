"""Predict: what does the model say, and where is it decided?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.tabs import TABS

navigation.show_tabs(TABS)
