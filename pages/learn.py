"""Learn: what is a transformer?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.claims import tested_claims
from explorer.views.lookup import concepts
from explorer.views.tour import take_tour

navigation.show_tabs(
    {
        "tour": take_tour,
        "concepts": concepts,
        "claims": tested_claims,
    }
)
