"""Attention: which head attends where, and why?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.attention import aggregated, heads_tab, one_weight, qk_and_ov
from explorer.views.sentences import many_sentences

navigation.show_tabs(
    {
        "heads": heads_tab,
        "weight": one_weight,
        "aggregated": aggregated,
        "circuits": qk_and_ov,
        "sentences": many_sentences,
    }
)
