"""The panels on what later models changed, each of a model that has it: rotary positions, RMSNorm,
keys that heads share, and gated units."""

from __future__ import annotations

import numpy as np

from explorer.analysis import ffn, residual
from explorer.analysis.ffn import shares_of_update
from explorer.figures.formatting import Written, enough_digits, fixed, power
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Dials,
    Edge,
    Facts,
    Graph,
    Rotation,
    Stack,
    Strip,
    Strips,
)
from explorer.panels import spec
from explorer.panels.choice import OPENS
from explorer.panels.selection import LookupHead, LookupLayer, LookupQuery, model_name, select
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import Recording, from_end
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "modern"
N_PAIRS, N_UNITS, N_NUMBERS = 5, 5, 64


# ---- rotary positions ----------------------------------------------------------------------------


@spec.panel
def rotary(
    run: Run, layer: LookupLayer = OPENS, head: LookupHead = OPENS, token: LookupQuery = OPENS
) -> Panel:
    """Rotary positions: by how much some pairs of a query's numbers are turned at its position, the
    fast ones first.

    Raises ValueError for what is not there and for a model that does not turn its queries.
    """
    selection = select(run, layer, head, token)
    layer, head, token = selection.at
    words, recording = sentences(CONCEPT, "rotary"), selection.recording
    try:
        turned = loaded(recording).rotary(selection.attention.name, layer)
    except (ValueError, AttributeError):
        turned = None
    if turned is None:
        raise ValueError(words("none", model=selection.model))
    rates = turned.angles
    degrees = np.degrees(rates * token)
    pairs = np.unique(np.linspace(0, len(rates) - 1, N_PAIRS).round().astype(int))
    dials = tuple(
        Rotation(
            words("pair", pair=pair),
            1.0,
            (1.0, float(degrees[pair] % 360)),
            (1.0, float(degrees[pair] % 360)),
            f"{power(float(degrees[pair]), 3)}°",
            selected=pair == pairs[0],
        )
        for pair in pairs.tolist()
    )
    slots = {
        **selection.slots,
        **{"first": f"{power(float(degrees[0]), 3)}°", "last": f"{power(float(degrees[-1]), 2)}°"},
        **{"pairs": len(rates), "d": 2 * len(rates), "n": len(rates) - 1},
    }
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(Dials(words("picture", **slots), words("note"), dials),),
        table={
            "pair": np.arange(len(rates)),
            "radians a position": rates,
            "degrees here": degrees,
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}H{head}-rotary-q{token}",
        formulas=("rotary",),
        numbers={"turned": Written(degrees[0], slots["first"])},
        at={"pair": int(pairs[0])},
    )


# ---- RMSNorm -------------------------------------------------------------------------------------


@spec.panel
def rms_norm(run: Run, layer: LookupLayer = OPENS, token: LookupQuery = OPENS) -> Panel:
    """RMSNorm before a layer's attention at one token: the state, divided by the root of its mean
    square, times the gain; no mean is subtracted.

    Raises ValueError for what is not there and for a model that has LayerNorm or shows no norm.
    """
    selection, words = select(run, layer, 0, token), sentences(CONCEPT, "rms_norm")
    recording, (layer, _, token) = selection.recording, selection.at
    stream = recording.stream(selection.attention.query)
    try:
        norms = loaded(recording).norms(stream.name, recording.edits)
    except (ValueError, AttributeError):
        norms = {}
    site = f"{layer}.attn"
    there = [each for each in residual.stream_norms(stream) if each.site == site]
    before = next((each.before for each in there if each.after.endswith(".read")), None)
    if site not in norms or norms[site][3] or before is None:
        raise ValueError(words("none", model=selection.model))
    gain, _, eps, _ = norms[site]
    h = residual.site_vectors(stream, before)[token]
    normed = residual.normalised(h, eps, False)
    root = float(np.sqrt((h**2).mean() + eps))
    mean = float(h.mean())
    rows = (
        ("h", h),
        (words("divided", root=power(root, 3)), normed),
        (words("gained"), normed * gain),
    )
    strips = tuple(
        Strip(
            name,
            values[:N_NUMBERS],
            fixed(float(np.linalg.norm(values)), 1),
            high=float(np.abs(values[:N_NUMBERS]).max()) or 1.0,
        )
        for name, values in rows
    )
    slots = {
        **{"layer": layer, "token": token, "query": selection.word, "root": power(root, 3)},
        **{"d": len(h), "mean": fixed(mean), "before": fixed(float(np.linalg.norm(h)), 1)},
        "after": fixed(float(np.linalg.norm(normed)), 1),
    }
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(
            Stack(
                figures=(
                    Facts(facts=((str(slots["root"]), words("root")),)),
                    Strips(words("picture", n=min(N_NUMBERS, len(h)), d=len(h)), strips=strips),
                ),
                main=1,
            ),
        ),
        table={
            "dimension": np.arange(len(h)),
            "h": h,
            "h / root": normed,
            "times gain": normed * gain,
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}-rms-norm-{token}",
        formulas=("rms-norm",),
        at={"site": site},
    )


# ---- shared keys ---------------------------------------------------------------------------------


@spec.panel
def shared_keys(run: Run) -> Panel:
    """Grouped-query attention: which heads share a key and a value, and what the cache of this text
    holds with it and would hold without.

    Raises ValueError for a model whose heads each have their own.
    """
    recording, words = run.recording(), sentences(CONCEPT, "shared_keys")
    heads, groups = recording.model.n_head, loaded(recording).capabilities.key_heads
    if not groups or groups == heads:
        raise ValueError(words("none", model=model_name(recording), heads=heads))
    each = heads // groups
    stored = _stored(recording, groups), _stored(recording, heads)
    slots = {
        **{"heads": heads, "groups": groups, "each": each, "n": len(recording.streams[0].tokens)},
        **{"stored": f"{stored[0]:,}", "own": f"{stored[1]:,}"},
    }
    graph = Graph(
        words("picture", **slots),
        nodes=(
            *(words("key", group=at) for at in range(groups)),
            *(words("query", head=at) for at in range(heads)),
        ),
        strengths=(*[1.0] * groups, *[0.3] * heads),
        edges=tuple(Edge(at // each, groups + at, 1.0) for at in range(heads)),
        split=groups,
    )
    cache = Bars(
        words("cache", **slots),
        columns=(words("numbers"),),
        rows=(
            BarRow(words("shared"), (float(stored[0]),), (f"{stored[0]:,}",), selected=True),
            BarRow(words("alone"), (float(stored[1]),), (f"{stored[1]:,}",)),
        ),
        mark=(0, 0),
    )
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(graph, cache),
        table={"query head": range(heads), "key head": [at // each for at in range(heads)]},
        details=words.lines("details", **slots),
        caption=(words("caption"),),
        file="shared-keys",
        formulas=("cache",),
    )


def _stored(recording: Recording, heads: int) -> int:
    """The numbers in the cache of a text, were so many heads to keep keys and values."""
    card = recording.model
    return card.n_layer * 2 * heads * len(recording.streams[0].tokens) * card.d_head


# ---- gated units ---------------------------------------------------------------------------------


@spec.panel
def gate(run: Run, layer: LookupLayer = OPENS, token: LookupQuery = OPENS) -> Panel:
    """The gated units with the largest shares of an FFN's update at one token: what opens the gate,
    the number that goes through, and their product.

    Raises ValueError for what is not there and for a model without gates.
    """
    selection, words = select(run, layer, 0, token), sentences(CONCEPT, "gate")
    recording, (layer, _, token) = selection.recording, selection.at
    shows = loaded(recording).capabilities
    act = ffn.GATES.get(shows.gate, "")
    if not act:
        raise ValueError(words("none", model=selection.model))
    layer = from_end(layer, recording.model.n_layer)
    hidden = loaded(recording).ffn_activations(recording, recording.streams[0].name, layer, token)
    gates, after = hidden.before.astype(np.float64), hidden.after.astype(np.float64)
    opened = ffn.ACTIVATIONS[act](gates)
    through = np.divide(after, opened, out=np.zeros_like(after), where=np.abs(opened) > 1e-12)
    order = np.argsort(-shares_of_update(hidden)[:-1], kind="stable")[:N_UNITS]
    rows = []
    for at in map(int, order):
        product = fixed(float(after[at]))
        texts = enough_digits(
            product, lambda a, b: a * b, float(opened[at]), float(through[at]), least=2
        )
        values = (float(opened[at]), float(through[at]), float(after[at]))
        rows.append(BarRow(words("unit", unit=at), values, (*texts, product), at == order[0]))
    first = rows[0]
    slots = {
        **{"layer": layer, "token": token, "query": selection.word, "name": shows.gate},
        **{"act": act, "unit": int(order[0]), "gate": power(float(gates[order[0]]), 3)},
        **{"opened": first.texts[0], "through": first.texts[1], "product": first.texts[2]},
        **{"n": f"{len(gates):,}", "closed": f"{int((gates <= 0).sum()):,}"},
    }
    return Panel(
        title=words("title", **slots),
        finding=words("finding", **slots),
        figures=(
            Bars(
                words("picture", **slots),
                columns=(f"{act}(gate)", words("through"), words("product")),
                rows=tuple(rows),
                mark=(0, 2),
            ),
        ),
        table={
            "unit": np.arange(len(gates)),
            "gate": gates,
            "opened": opened,
            "through": through,
            "product": after,
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}-gate-{token}",
        formulas=("gated-ffn",),
    )
