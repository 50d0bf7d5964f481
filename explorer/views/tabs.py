"""Functions that draw each tab, by its id. Whoever imports this knows every choice of every tab."""

from __future__ import annotations

from collections.abc import Callable

from explorer.layout.tab import Tab, view
from explorer.panels import architecture, feed_forward
from explorer.views.attention import aggregated, heads_tab, one_weight, qk_and_ov
from explorer.views.compare import compare
from explorer.views.embeddings import word_paths
from explorer.views.interventions import edit_model, patching
from explorer.views.learn import concepts, tested_claims
from explorer.views.lessons import lessons_tab
from explorer.views.positions import word_order
from explorer.views.predictions import generate, lens, logit_attribution, word
from explorer.views.quiz import quiz_tab as quiz_tab  # of the page Class: its choices are known
from explorer.views.residual import residual_stream
from explorer.views.sentences import many_sentences
from explorer.views.training import checkpoints, paired_runs, train_live
from explorer.views.translation import translate

TABS: dict[str, Callable[[], None]] = {
    "heads": heads_tab,
    "weight": one_weight,
    "aggregated": aggregated,
    "circuits": qk_and_ov,
    "sentences": many_sentences,
    "flow": view(Tab((architecture.flow,))),
    "positions": word_order,
    "residual": residual_stream,
    "embeddings": word_paths,
    "feedforward": view(Tab((feed_forward.units, feed_forward.network))),
    "word": word,
    "generate": generate,
    "lens": lens,
    "attribution": logit_attribution,
    "translate": translate,
    "edit": edit_model,
    "patching": patching,
    "compare": compare,
    "checkpoints": checkpoints,
    "live": train_live,
    "twins": paired_runs,
    "lessons": lessons_tab,
    "concepts": concepts,
    "claims": tested_claims,
}
