"""How a decoder looks back at the source: a translation with its cross-attention as a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from explorer.analysis import translation as numbers
from explorer.analysis.caption import caption
from explorer.components import translation as pictures
from explorer.onefile.asked import Asked
from explorer.onefile.sheet import Sheet, View
from models import library


def alignment(asked: Asked) -> Sheet:
    """A translation step by step, under every head. Choices: cross ("layer", "layer.head" or the
    mean), step (from 1).

    Raises ValueError for a model that does not translate.
    """
    recording = asked.recording
    if len(recording.streams) < 2:
        raise ValueError(f"{recording.model.name} is no encoder-decoder, so it aligns nothing")
    cross = numbers.cross(recording)
    names = numbers.views(*cross.pattern.shape[:2])
    logits, ended = _said(asked)
    ids, says = numbers.produced(recording, ended)
    step = (asked.whole("step", len(says) + 1) or 1) - 1
    whose = "Output, typed" if asked.target is not None else "Output, the model’s own"
    about = caption(recording, of="cross-attention", target=whose)
    told = _told(asked, logits, ended) | {"names": names, "step": step, "caption": about}
    small = numbers.small(cross.pattern[:, :, : max(1, len(says))])
    views = {
        name: pictures.steps(
            numbers.view(cross.pattern, name),
            small,
            name=name,
            file=f"headlight-{recording.model.name}-cross{'-' + name if name else ''}",
            token=f"cross {name}",
            **told,
        )
        for name in names
    }
    return Sheet(
        f"How does {recording.model.name} look back at the source?",
        about,
        [View("translation", views, ("cross",), ("step",), 2)],
        {"cross": asked.one_of("cross", names), "step": step},
        f"headlight-{recording.model.name}-alignment",
        "translation",
        asked.address(),
    )


def _said(asked: Asked) -> tuple[np.ndarray, bool]:
    """The decoder's scores at every token (token, id), and whether its words end there."""
    recording = asked.recording
    logits = np.stack(
        [
            library.logits(asked.model, recording, "decoder", token)
            for token in range(len(recording.stream("decoder").tokens))
        ]
    )
    whole = asked.target is not None or _ends(asked, int(logits[-1].argmax()))
    return logits, whole and not recording.target_dropped


def _told(asked: Asked, logits: np.ndarray, ended: bool) -> dict[str, Any]:
    """What every head's picture of a translation says alike."""
    recording = asked.recording
    layers, heads = numbers.cross(recording).pattern.shape[:2]
    ids, says = numbers.produced(recording, ended)
    said = numbers.said(logits, ids)
    source = recording.stream("encoder")
    return {
        "source": source.tokens,
        "source_words": numbers.words(recording.text, source),
        "reads": recording.stream("decoder").tokens,
        "says": says,
        "says_words": numbers.produced_words(recording, ended),
        "said": said,
        "pieces": asked.labels(ids),
        "tops": [asked.labels(row) for row in said.top_ids],
        "n_vocab": recording.model.n_vocab,
        "forced": asked.target is not None,
        "titles": [numbers.title(each, layers, heads) for each in numbers.views(layers, heads)],
        "n_head": heads,
        "text": "translation",
    }


def _ends(asked: Asked, id: int) -> bool:
    """True for the token that ends a text; what was said before it is whole."""
    return asked.labels([id])[0] == "[EOS]"
