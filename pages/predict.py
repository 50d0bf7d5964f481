"""Predict: what does the model say, and where is it decided?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.tabs import VIEWS

navigation.show_tabs(VIEWS)
