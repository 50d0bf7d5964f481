"""How a decoder looks back at the source: a translation with its cross-attention as a file."""

from __future__ import annotations

import numpy as np

from explorer.analysis import translation
from explorer.analysis.caption import caption
from explorer.components.figure_caption import Picture
from explorer.components.translation import Texts, TokenOptions, Views, steps
from explorer.html_export.document_spec import SECOND_BYTES, DocumentSpec, View
from explorer.html_export.request import ExportRequest


def alignment(asked: ExportRequest) -> DocumentSpec:
    """A translation step by step, under every head. Choices: cross ("layer", "layer.head" or the
    mean), step (from 1).

    Raises ValueError for a model that does not translate.
    """
    recording = asked.recording
    if len(recording.streams) < 2:
        raise ValueError(f"{recording.model.name} is no encoder-decoder, so it aligns nothing")
    cross = translation.cross_attention(recording)
    names = translation.view_names(*cross.pattern.shape[:2])
    logits, end = _said(asked)
    ids, says = translation.produced_tokens(recording, end)
    step = (asked.whole("step", len(says) + 1) or 1) - 1
    whose = "Output, typed" if asked.target is not None else "Output, the model’s own"
    about = caption(recording, subject="cross-attention", target=whose)
    texts, choices = _told(asked, logits, end)
    layers, heads = cross.pattern.shape[:2]
    titles = [translation.view_title(each, layers, heads) for each in names]
    small = translation.thumbnails(cross.pattern[:, :, : max(1, len(says))])

    def seen(name: str) -> bytes:
        file = f"headlight-{recording.model.name}-cross{'-' + name if name else ''}"
        matrix = translation.attention_view(cross.pattern, name)
        spare = SECOND_BYTES // len(names)
        views = Views(names, titles, small, name, matrix, heads, spare)
        picture = Picture(titles[names.index(name)], about, file, f"cross {name}")
        return steps(texts, choices, views, step, picture, "translation")

    views = {name: seen(name) for name in names}
    return DocumentSpec(
        f"How does {recording.model.name} look back at the source?",
        about,
        [View("translation", views, ("cross",), ("step",), 2)],
        {"cross": asked.one_of("cross", names), "step": step},
        f"headlight-{recording.model.name}-alignment",
        "translation",
        asked.address(),
    )


def _said(asked: ExportRequest) -> tuple[np.ndarray, translation.EndToken | None]:
    """The decoder's scores at every token (token, id), and the token that ends its words, None
    where none does."""
    recording = asked.recording
    logits = np.stack(
        [
            asked.model.logits(recording, "decoder", token)
            for token in range(len(recording.stream("decoder").tokens))
        ]
    )
    id = getattr(asked.model.tokenizer, "eos", None)  # a cluster tells no more than its words
    if id is None or recording.target_dropped:
        return logits, None
    whole = asked.target is not None or int(logits[-1].argmax()) == id
    return logits, (id, asked.labels([id])[0]) if whole else None


def _told(
    asked: ExportRequest, logits: np.ndarray, end: translation.EndToken | None
) -> tuple[Texts, TokenOptions]:
    """What every head's picture of a translation says alike."""
    recording = asked.recording
    ids, says = translation.produced_tokens(recording, end)
    said = translation.decoded_steps(logits, ids)
    source = recording.stream("encoder")
    texts = Texts(
        source.tokens,
        translation.words(recording.text, source),
        recording.stream("decoder").tokens,
        says,
        translation.produced_words(recording, end is not None),
    )
    tops = [asked.labels(row) for row in said.top_ids]
    size, forced = recording.model.n_vocab, asked.target is not None
    return texts, TokenOptions(said, asked.labels(ids), tops, size, forced)
