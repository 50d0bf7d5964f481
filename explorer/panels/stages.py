"""The panel on the two stages of a layer: attention mixes tokens, the FFN works on each alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from explorer.analysis import opening, residual
from explorer.analysis.measure import (
    MeasureContext,
    Untestable,
    require_count,
    state_before,
    text_places,
    with_other_vector,
)
from explorer.figures.formatting import word_in_sentence
from explorer.figures.kinds import BarRow, Bars, share, truncation_note, window
from explorer.panels import spec
from explorer.panels.choice import OPENS
from explorer.panels.selection import TOKEN, place_of
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import PatchSite
from models.contract.recording import Stream
from models.runtime.run import Run

CONCEPT = "stages"
MOST_LAYERS = 4  # in which a word is exchanged
MOST_ROWS = 11
SMALLEST_CHANGE = 5e-4  # of a length: a smaller change is written as 0%


ExchangedWord = Annotated[
    int, replace(TOKEN, suits=lambda run, chosen: opening.exchanged_word(run.recording()))
]


@spec.panel
def exchanged(run: Run, token: ExchangedWord = OPENS) -> Panel:
    """One word's vector exchanged before attention, and before the FFN: how much each token's part
    then writes differently.

    token: of the first stream; where None the word of the strongest finding, of a decoder the
    first one, which all others may read. Raises ValueError where vectors cannot be exchanged, and
    for a text of one token.
    """
    words = sentences(CONCEPT, "exchanged")
    try:
        return _exchanged(MeasureContext.of(run), token)
    except Untestable as reason:
        raise ValueError(words("closed", why=str(reason))) from reason


def _exchanged(context: MeasureContext, token: int) -> Panel:
    words, stream = sentences(CONCEPT, "exchanged"), context.recording.streams[0]
    places = text_places(stream)
    require_count(len(places), "tokens", 2)
    context.require_edits(PatchSite)
    place = place_of("token", token, len(stream.tokens))
    others = np.delete(np.arange(len(stream.tokens)), place)
    others = others[~stream.special[others]]
    require_count(len(others) + 1, "tokens", 2)
    # Some layers rest on a special token altogether: the one of the first few where most is seen.
    by_layer = [
        _output_change(context, stream, layer, place, "attn")
        for layer in range(min(context.recording.model.n_layer, MOST_LAYERS))
    ]
    layer = int(np.argmax([each[others].max() for each in by_layer]))
    of_attention = by_layer[layer]
    of_ffn = _output_change(context, stream, layer, place, "ffn")
    best = int(others[of_attention[others].argmax()])
    visible = list(map(int, window(len(stream.tokens), (place, best), MOST_ROWS)))
    rows = tuple(
        BarRow(
            stream.tokens[at],
            (float(of_attention[at]), float(of_ffn[at])),
            (share(of_attention[at]), share(of_ffn[at])),
            selected=at in (best, place),
        )
        for at in visible
    )
    slots = {
        "word": stream.tokens[place],
        "layer": layer,
        "other": stream.tokens[best],
        "change": share(float(of_attention[best])),
        "elsewhere": share(float(of_ffn[others].max())),
    }
    bars = Bars(
        words("replacing", **slots),
        truncation_note(len(rows), len(stream.tokens)),
        columns=(words("attention"), words("ffn")),
        rows=rows,
        mark=(visible.index(best), 0),
    )
    is_seen = of_attention[best] >= SMALLEST_CHANGE
    return Panel(
        words("title"),
        words("finding" if is_seen else "unchanged", **slots),
        (bars,),
        table={
            words("token"): list(stream.tokens),
            words("attention"): of_attention,
            words("ffn"): of_ffn,
        },
        details=words.lines("details"),
        caption=(words("caption", **slots | {"word": word_in_sentence(stream.tokens[place])}),),
        file=f"L{layer}-stages-token-{place}",
        formulas=("messages",),
        at={"layer": layer, "token": best},
    )


def _output_change(
    context: MeasureContext, stream: Stream, layer: int, place: int, part: str
) -> np.ndarray:
    """By how much of its length what a part of a layer writes at each token changes, when one
    token's vector before it is another, (token)."""
    site, wrote = state_before(stream, layer, part), f"{layer}.{part}.wrote"
    changed = with_other_vector(context, stream, place, site).stream(stream.name)
    output, changed_output = (residual.site_vectors(each, wrote) for each in (stream, changed))
    size = np.maximum(np.linalg.norm(output, axis=1), 1e-12)
    return np.linalg.norm(changed_output - output, axis=1) / size
