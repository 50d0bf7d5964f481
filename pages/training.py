"""Training: when does a head learn it?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.training.live import train_live
from explorer.views.training.tab import checkpoints, paired_runs

navigation.show_tabs(
    {
        "checkpoints": checkpoints,
        "live": train_live,
        "twins": paired_runs,
    }
)
