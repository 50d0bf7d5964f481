"""Predict: what does the model say, and where is it decided?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.predictions import generate, lens_tab, logit_attribution, word
from explorer.views.translation import translate

navigation.show_tabs(
    {
        "word": word,
        "generate": generate,
        "lens": lens_tab,
        "attribution": logit_attribution,
        "translate": translate,
    }
)
