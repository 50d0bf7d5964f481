"""Learn: what is a transformer?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.learn import concepts, take_tour, tested_claims

navigation.show_tabs(
    {
        "tour": take_tour,
        "concepts": concepts,
        "claims": tested_claims,
    }
)
