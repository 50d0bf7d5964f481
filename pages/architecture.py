"""Architecture: what happens to a word on its way through?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.architecture.tab import diagram
from explorer.views.embeddings.tab import word_paths
from explorer.views.positions.tab import word_order
from explorer.views.residual.tab import residual_stream

navigation.show_tabs(
    {
        "diagram": diagram,
        "positions": word_order,
        "residual": residual_stream,
        "embeddings": word_paths,
    }
)
