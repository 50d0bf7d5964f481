"""Attention: which head attends where, and why?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.anatomy import one_weight
from explorer.views.attention import heads_tab
from explorer.views.lookup import qk_and_ov
from explorer.views.sentences import many_sentences
from explorer.views.summaries import aggregated

navigation.show_tabs(
    {
        "heads": heads_tab,
        "weight": one_weight,
        "aggregated": aggregated,
        "circuits": qk_and_ov,
        "sentences": many_sentences,
    }
)
