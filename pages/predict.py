"""Predict: what does the model say, and where is it decided?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.predictions.tab import attribution, generate, lens, word
from explorer.views.translation.tab import translate

navigation.show_tabs(
    {
        "word": word,
        "generate": generate,
        "lens": lens,
        "attribution": attribution,
        "translate": translate,
    }
)
