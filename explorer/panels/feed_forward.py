"""The panels on a feed-forward network: its hidden units at one token, and the way through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from explorer.analysis import ffn, flow, logit_lens, opening, residual
from explorer.analysis.ffn import shares_of_update
from explorer.analysis.terminology import unit_formula
from explorer.analysis.word_classes import FILLER, PRONOUN, classes, is_fit, is_word
from explorer.figures import kinds
from explorer.figures.formatting import Written, fixed, percent, plural
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Chart,
    Facts,
    Network,
    Series,
    Stack,
    Strip,
    TokenRow,
)
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.masks import can_hide
from explorer.panels.selection import (
    LAYER,
    FirstStream,
    StreamSelection,
    Word,
    place_of,
    select_stream,
    stream_of,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import Sentences, sentences
from models.contract.recording import from_end
from models.contract.results import FFNActivations
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "feed_forward"
N_UNITS, N_WORDS, N_TOKENS = 5, 4, 60
N_NAMED = 3  # words of a unit
LETTERS = 4  # from which on a word that no list knows is taken for a whole one


def hidden_units(run: Run, chosen: Mapping[str, Any]) -> range:
    """The numbers of the hidden units of a run's feed-forward networks; none that cannot be
    read."""
    recording = run.recording()
    stream = chosen.get("stream") or recording.streams[0].name
    try:
        read = loaded(recording).ffn_activations(recording, stream, chosen.get("layer") or 0, 0)
    except ValueError:
        return range(0)
    return range(len(read.after))


def _largest(run: Run, chosen: Mapping[str, Any]) -> int | None:
    """The layer that opens at the token, None where none can be read."""
    stream = stream_of(run, chosen)
    token = (
        opening.word(run.recording(), stream) if chosen.get("token") is None else chosen["token"]
    )
    try:
        return opening.ffn_layer(run.recording(), stream, token)
    except ValueError:  # the panel says why
        return None


FfnLayer = Annotated[
    int | None,
    replace(
        LAYER,
        suits=_largest,
        checked=lambda run, chosen, value: place_of("layer", value, run.recording().model.n_layer),
    ),
]


@spec.panel
def units(
    run: Run,
    token: Word = OPENS,
    layer: FfnLayer = OPENS,
    unit: Annotated[
        int | None, Choice(hidden_units, of="model", help="the selected hidden unit")
    ] = None,
    stream: FirstStream = OPENS,
) -> Panel:
    """Hidden units of an FFN at a token, by their shares of what the FFN writes there.

    A share is the projection of what a unit writes on the whole update u, w . u / |u|^2; all shares
    and the bias's sum to 1. layer: where None that of a unit whose words hold what the model
    predicts at the token, or the one with the largest share of its update there. unit: whose words
    and tokens are listed; where None that unit, or the one with the largest share. Raises
    ValueError for what is not there and for a model whose FFN cannot be read.
    """
    selection, layer, hidden = _read(run, token, layer, stream)
    words, token = sentences(CONCEPT, "units"), selection.token
    model = loaded(selection.recording)
    shares = shares_of_update(hidden)
    order, n = np.argsort(-shares[:-1], kind="stable"), len(hidden.after)
    is_covered = selection.recording.covered is not None  # its words may be the one asked for
    opened = opening.answering_unit(selection.recording, selection.stream.name, token)
    if opened is not None and (opened.layer != layer or is_covered):
        opened = None
    if unit is None:
        unit = int(order[0]) if opened is None else opened.unit
    unit = place_of("unit", unit, n)
    fewest = ffn.fewest_for(shares[:-1])
    listed = order[shares[order] > 0][:N_UNITS].tolist()
    listed = listed if unit in listed else [*listed[: N_UNITS - 1], unit]
    written = {} if is_covered else _words_of(selection, hidden, listed)
    least = flow.least_cosine(model, hidden.rows.shape[1]) if any(written.values()) else None
    named = {
        each: [] if least is None else _written_words(selection, words, least)
        for each, words in written.items()
    }
    nearest, top = written.get(unit, []), int(order[0])
    is_answering = opened is not None and opened.unit == unit
    spoken = opened.answer if opened is not None and is_answering else None
    answer = next((label for id, label, _ in nearest if id == spoken), "")
    above = int((hidden.before > 0).sum())
    slots = {
        "unit": unit,
        "share": percent(float(shares[unit])),
        "written": _words_quoted(named.get(unit, [])),
        "word": selection.word,
        "above": f"{above:,}",
        "are": "is" if above == 1 else "are",
        "n": f"{n:,}",
        "layer": layer,
        "half": f"{fewest or 0:,}",
    }
    return Panel(
        title=words("title", layer=layer),
        finding=_unit_sentences(words, slots, answer, named.get(unit, []), top, float(shares[top])),
        figures=(
            _units(shares, listed, unit, named, model.capabilities.ffn_biases, selection.word),
            _tokens(selection, hidden, unit),
        ),
        table={
            "unit": np.arange(n),
            "before the activation": hidden.before,
            "activation": hidden.after,
            "norm written": np.linalg.norm(hidden.writes, axis=1),
            "share of the update": shares[:-1],
        },
        details=(
            words("active", **slots) + _half(words, slots, fewest),
            *_cosines(nearest, unit),
            *_construction_notes(selection, hidden, least if nearest else None),
            *_in_sight(words, selection, is_answering),
            *_no_answer(selection, opened, is_covered),
        ),
        caption=(words("caption", token=token, **slots),),
        file=f"L{layer}-ffn-units",
        formulas=("ffn", "smooth-ffn", "gated-ffn"),
        at={"layer": layer},
    )


def _unit_sentences(
    words: Sentences,
    slots: Mapping[str, Any],
    answer: str,
    named: list[str],
    top: int,
    most: float,
) -> str:
    """Sentences on a unit: the words that it writes where the model's `answer` is one of them, else
    how much of the update it has; what a unit is; and the unit with the largest share (`most`)
    where it is another, `top`."""
    if not answer:
        return words("finding", **slots) + words("switch")
    written = list(dict.fromkeys((answer, *named)))[:N_NAMED]
    more = words("longest", answer=answer, unit=top, share=percent(most))
    sentence = words("answers", **slots, said=", ".join(f"“{each}”" for each in written))
    return sentence + words("switch") + (more if top != slots["unit"] else "")


def _in_sight(words: Sentences, selection: StreamSelection, is_answering: bool) -> tuple[str, ...]:
    """Reason why other units lead in Flow, which hides a word that is read here."""
    is_hidden = can_hide(selection.recording) and not selection.stream.special[selection.token]
    return (words("in_sight", word=selection.word),) if is_answering and is_hidden else ()


def _words_quoted(named: list[str]) -> str:
    """Words that a unit writes, as a part of a sentence."""
    quoted = ", ".join(f"“{each}”" for each in named)
    return sentences(CONCEPT, "units")("written", words=quoted) if named else ""


def _no_answer(
    selection: StreamSelection, opened: opening.HiddenUnit | None, is_covered: bool
) -> tuple[str, ...]:
    """That no words of a unit hold what the model predicts, where it predicts words."""
    recording = selection.recording
    is_read = selection.stream is logit_lens.read_stream(recording)
    if is_covered or opened is not None or not is_read:
        return ()
    silent = loaded(recording).capabilities.no_readout
    return () if silent else (sentences(CONCEPT, "units")("no_answer"),)


def _read(
    run: Run, token: int, layer: int | None, stream: str
) -> tuple[StreamSelection, int, FFNActivations]:
    """A token, the layer of the largest update there where None, and the hidden units of its FFN.
    Raises ValueError for what is not there and for a model whose FFN cannot be read."""
    selection, words = select_stream(run, token, stream), sentences(CONCEPT, "units")
    recording, name = selection.recording, selection.stream.name
    if not loaded(recording).capabilities.weights:
        raise ValueError(words("closed", model=selection.model))
    try:
        if layer is None:
            layer = opening.ffn_layer(recording, selection.stream, selection.token)
        layer = from_end(layer, recording.model.n_layer)
        hidden = loaded(recording).ffn_activations(recording, name, layer, selection.token)
    except ValueError as why:
        raise ValueError(words("unread", why=why)) from None
    return selection, layer, hidden


def _half(words: Sentences, slots: Mapping[str, Any], fewest: int | None) -> str:
    """Number of units that make half of the update, nothing where all of them do not."""
    return words("half_one" if fewest == 1 else "half", **slots) if fewest else ""


def _construction_notes(
    selection: StreamSelection, hidden: FFNActivations, least: float | None
) -> tuple[str, ...]:
    """Notes on how the network and its units are made, and from which cosine on the finding names
    words; no word on that where `least` is None."""
    words, shows = sentences(CONCEPT, "units"), loaded(selection.recording).capabilities
    n_units, d_model = hidden.rows.shape
    lines = (
        words("made", unit=unit_formula(shows.gate, shows.ffn_biases)),
        words("sizes", d=d_model, n=f"{n_units:,}"),
        words("sum_and_bias" if shows.ffn_biases else "sum"),
        *words.lines("details"),
    )
    return lines if least is None else (*lines, words("named", least=fixed(least)))


def _units(
    shares: np.ndarray,
    listed: list[int],
    selected: int,
    named: Mapping[int, list[str]],
    has_bias: bool,
    word: str,
) -> Bars:
    """The units that are listed, each with the words that it writes, all others together, and the
    bias."""
    words = sentences(CONCEPT, "units")
    label = lambda unit: ": ".join((words("unit", unit=unit), ", ".join(named.get(unit, ()))))
    rows = [
        BarRow(
            label(each).removesuffix(": "),
            (float(shares[each]),),
            (percent(float(shares[each])),),
            selected=each == selected,
            key=str(each),
        )
        for each in listed
    ]
    rest = float(shares[:-1].sum() - shares[listed].sum())
    others = [(plural(len(shares) - 1 - len(listed), "other"), rest)]
    others += [(words("bias"), float(shares[-1]))] if has_bias else []
    rows += [BarRow(name, (value,), (percent(value),)) for name, value in others]
    title = words("largest" if any(named.values()) else "largest_bare", word=word)
    return Bars(title=title, select=("unit",), columns=(words("share"),), rows=tuple(rows))


def _tokens(selection: StreamSelection, hidden: FFNActivations, unit: int) -> TokenRow:
    """The tokens tinted by the unit's activation; of a long text those around the largest."""
    words, tokens = sentences(CONCEPT, "units"), selection.stream.tokens
    sizes = np.abs(hidden.by_token[:, unit])
    most = int(sizes.argmax())
    visible = kinds.window(len(tokens), (most, selection.token), N_TOKENS)
    value = fixed(float(hidden.by_token[most, unit]))
    note = words("most", word=tokens[most], token=most, value=value)
    if limit := kinds.truncation_note(len(visible), len(tokens)):
        note += f" {words('visible', tokens=limit)}"
    return TokenRow(
        title=words("by_token", unit=unit),
        note=note,
        select=("token",),
        tokens=tuple(tokens[each] for each in visible),
        weights=sizes[visible] / (sizes.max() or 1.0),
        selected=visible.tolist().index(selection.token) if selection.token in visible else -1,
        keys=tuple(map(str, visible)),
    )


Nearest = list[tuple[int, str, float]]  # token id, label, cosine


def _words_of(
    selection: StreamSelection, hidden: FFNActivations, units: list[int]
) -> dict[int, Nearest]:
    """The words whose embeddings are most similar to what each unit writes, by the unit; none of
    one that writes nothing, and where the model has no such words."""
    model, written = loaded(selection.recording), hidden.writes_of(np.asarray(units))
    active = [at for at in range(len(units)) if written[at].any()]
    try:
        ids, cosines = model.nearest(written[active], N_WORDS) if active else ((), ())
    except (ValueError, AttributeError):
        return {}
    return {
        units[at]: list(zip(near.tolist(), model.labels(near.tolist()), cosine.tolist()))
        for at, near, cosine in zip(active, ids, cosines)
    }


def _written_words(selection: StreamSelection, nearest: Nearest, least: float) -> list[str]:
    """The words that a unit is said to write: nearer than chance, and whole ones; of the short ones
    those that a list of pronouns and fillers knows, that the text has, or whose script has no
    capitals (many of its words are short), since beginnings of longer words look like others."""
    model = loaded(selection.recording)
    near = [
        label
        for id, label, of in nearest
        if of >= least and is_word(label) and is_fit(label) and not model.is_special(id)
    ]
    typed = {each.casefold() for each in selection.stream.tokens}
    known = [
        kind in (PRONOUN, FILLER) or word.casefold() in typed
        for word, kind in zip(near, classes(near))
    ]
    is_long = [len(label) >= LETTERS or label.lower() == label.upper() for label in near]
    return [label for label, *is_whole in zip(near, known, is_long) if any(is_whole)][:N_NAMED]


def _cosines(nearest: Nearest, unit: int) -> tuple[str, ...]:
    """Sentence on how similar words are to what a unit writes; nothing where there are none."""
    words = sentences(CONCEPT, "units")
    fit = ((label, cosine) for _, label, cosine in nearest if is_fit(label))
    each = [words("near", word=label, cosine=fixed(cosine)) for label, cosine in fit]
    return (words("nearest", unit=unit, words=", ".join(each)),) if each else ()


# ---- the way through -----------------------------------------------------------------------------


@spec.panel
def network(
    run: Run, token: Word = OPENS, layer: FfnLayer = OPENS, stream: FirstStream = OPENS
) -> Panel:
    """The way through an FFN at a token: wider and back, its units before and after the activation,
    and how few of them make half of what it writes.

    layer: the one with the largest share of its update at the token where None. Raises ValueError
    for what is not there and for a model whose FFN cannot be read.
    """
    selection, layer, hidden = _read(run, token, layer, stream)
    words, shows = sentences(CONCEPT, "network"), loaded(selection.recording).capabilities
    shares = shares_of_update(hidden)
    fewest, (n, d) = ffn.fewest_for(shares[:-1]), hidden.rows.shape
    name = shows.gate or ffn.activation_of(hidden) or words("activation")
    slots: dict[str, Any] = {
        **{"layer": layer, "word": selection.word, "token": selection.token, "name": name},
        **{"n": f"{n:,}", "d": f"{d:,}"},
        **{"below": f"{int((hidden.before <= 0).sum()):,}", "half": f"{fewest or 0:,}"},
    }
    kind = "gated" if shows.gate else "relu" if name == "ReLU" else "smooth"
    return Panel(
        title=words("title", **slots),
        finding=words(f"finding_{kind}", **slots) + _half(words, slots, fewest),
        figures=(
            Stack(
                figures=(
                    *(
                        [Facts(facts=((slots["half"], words("of_half", **slots)),))]
                        if fewest
                        else []
                    ),
                    _widths(selection, layer, hidden, slots),
                ),
                main=1 if fewest else 0,
            ),
            _by_unit(hidden, kind, slots),
        ),
        table={
            "unit": np.arange(n),
            "before the activation": hidden.before,
            "activation": hidden.after,
            "share of the update": shares[:-1],
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"L{layer}-ffn-network",
        formulas=("ffn", "smooth-ffn", "gated-ffn"),
        focus=("max", "act"),
        numbers={"units": Written.count(n)} | ({"half": Written.count(fewest)} if fewest else {}),
        at={"layer": layer},
    )


def _widths(
    selection: StreamSelection, layer: int, hidden: FFNActivations, slots: Mapping[str, Any]
) -> Network:
    """Widths of what the FFN reads, its units before and after the activation, and what it
    writes."""
    words, stream = sentences(CONCEPT, "network"), selection.stream
    of = next(
        each for each in residual.sublayers(stream) if (each.layer, each.place) == (layer, "ffn")
    )
    site = f"{layer}.ffn.read" if f"{layer}.ffn.read" in stream.sites else of.before
    read = residual.site_vectors(stream, site)[selection.token]
    update = (hidden.writes.sum(axis=0) + hidden.bias).astype(np.float64)
    layers = (("h", read), (words("before"), hidden.before), (words("after"), hidden.after))
    return Network(
        title=words("widths", **slots),
        layers=(
            *(Strip(name, np.asarray(each, float), f"{len(each):,}") for name, each in layers),
            Strip("FFN(h)", update, f"{len(update):,}", selected=True),
        ),
        between=(
            ("W₁", f"{slots['d']} × {slots['n']}"),
            (str(slots["name"]), ""),
            ("W₂", f"{slots['n']} × {slots['d']}"),
        ),
    )


def _by_unit(hidden: FFNActivations, kind: str, slots: Mapping[str, Any]) -> Chart:
    """All units in the order of their numbers before the activation: a bar for each, and what the
    activation makes of it."""
    words = sentences(CONCEPT, "network")
    order = np.argsort(hidden.before, kind="stable")
    before, after = (each[order].astype(np.float64) for each in (hidden.before, hidden.after))
    x = np.arange(len(order), dtype=float)
    n_below = int((before <= 0).sum())
    bars = Series(words("bars"), x, before, shape="band", base=np.zeros(len(x)))
    act = ffn.GATES.get(str(slots["name"]), "")
    if kind == "gated":
        after = ffn.ACTIVATIONS[act](before) if act else after
    return Chart(
        title=words(f"curve_{kind}", **slots, act=act or slots["name"]),
        series=(bars, Series(act or str(slots["name"]), x, after, main=True)),
        x_title=words("units"),
        guides=((float(n_below), ""),) if 0 < n_below < len(x) else (),
    )
