"""Architecture: what happens to a word on its way through?"""

from __future__ import annotations

from explorer.analysis import residual
from explorer.layout import navigation
from explorer.layout.tab import Tab, view
from explorer.panels import architecture, feed_forward
from explorer.views.embeddings import word_paths
from explorer.views.positions import word_order
from explorer.views.residual import residual_stream

navigation.show_tabs(
    {
        "diagram": view(Tab((architecture.diagram,))),
        "positions": word_order,
        "residual": residual_stream,
        "embeddings": word_paths,
        "feedforward": view(Tab((feed_forward.units,), layer_of=residual.largest_ffn)),
    }
)
