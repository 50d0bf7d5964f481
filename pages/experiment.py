"""Experiment: what breaks, what differs?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.compare import compare
from explorer.views.interventions import edit_model, patch

navigation.show_tabs(
    {
        "edit": edit_model,
        "patching": patch,
        "compare": compare,
    }
)
