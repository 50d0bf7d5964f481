"""Architecture: what happens to a word on its way through?"""

from __future__ import annotations

from explorer.layout import navigation
from explorer.views.architecture import diagram
from explorer.views.embeddings import word_paths
from explorer.views.positions import word_order
from explorer.views.residual import residual_stream

navigation.show_tabs(
    {
        "diagram": diagram,
        "positions": word_order,
        "residual": residual_stream,
        "embeddings": word_paths,
    }
)
