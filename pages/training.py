"""Training: when does a head learn it?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.training import checkpoints_tab, paired_runs, train_live

navigation.show_tabs(
    {
        "checkpoints": checkpoints_tab,
        "live": train_live,
        "twins": paired_runs,
    }
)
