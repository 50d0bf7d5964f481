"""The names under which pages know what now stands in `explorer/memory` and `explorer/frame`; it goes when no page uses it."""

from __future__ import annotations

from explorer.frame.onscreen import (  # noqa: F401
    about,
    model_for,
    read_text,
    shown,
    take_preset,
    take_text,
    tell_target,
    typed_target,
)
from explorer.memory.address import (  # noqa: F401
    ANCHORS,
    CHOICES,
    begin,
    fits_address,
    forget_head,
    forget_token,
    numbers,
    one_of,
    whole,
)
from explorer.memory.address import write as address  # noqa: F401
from explorer.memory.background import (  # noqa: F401
    Experiment,
    Search,
    Swept,
    decay,
    longest_lag,
    search,
    sweep,
)
from explorer.memory.drafts import Draft, Said, draft  # noqa: F401
from explorer.memory.models import (  # noqa: F401
    DEFAULT_MODEL,
    Loading,
    _handles,
    borrowed,
    cards,
    embedding_scale,
    embeddings,
    facts,
    first_token,
    handle,
    is_borrowed,
    is_loaded,
    labels,
    offers,
    position_table,
    readout,
    shows_writes,
    spelled,
    title,
    word_vector,
)
from explorer.memory.passes import (  # noqa: F401
    all_logits,
    attribution,
    highway,
    jacobian,
    lens,
    logits,
    nearest,
    norms,
    outputs,
    record,
    warm_up,
)
from explorer.memory.shelf import SHELF_BYTES, Shelf, _shelf, derived, kept, name_of  # noqa: F401
from explorer.sentences.escape import literal  # noqa: F401
from models.examples import DEFAULT_TEXT  # noqa: F401
from models.examples import EXAMPLES as PRESETS  # noqa: F401
