"""The panels on the residual stream: what each sub-layer adds to it, its norms, what each head
adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Annotated, Any

import numpy as np

from explorer.analysis import consistency, logit_lens, opening, residual, weight_texts
from explorer.analysis.predictions import without_mark
from explorer.analysis.terminology import EITHER_NORM, norm_name, recording_norm_name
from explorer.figures.csv import Columns
from explorer.figures.formatting import (
    Written,
    enough_digits_for_all,
    fixed,
    percent,
    plural,
    power,
    tenths,
)
from explorer.figures.kinds import (
    Arrow,
    Arrows,
    BarRow,
    Bars,
    Chart,
    Facts,
    Figure,
    Frame,
    Matrix,
    Series,
    Stack,
    Steps,
    Strip,
    Strips,
    TextTable,
)
from explorer.panels import attribution, spec
from explorer.panels.choice import OPENS, WHOLE_LAYERS, Choice, is_deep
from explorer.panels.masks import can_hide
from explorer.panels.selection import (
    FirstStream,
    FollowedWord,
    StreamSelection,
    expect_option,
    first_site,
    place_of,
    select_stream,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import Sentences, sentences
from models.contract.edits import HideToken
from models.contract.recording import Recording, Stream
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "residual"
MEASURES = tuple(each.name for each in residual.WRITES)
GUESS = "Prediction"
SHOWN = {GUESS: "Change of the prediction"} | {name: name for name in MEASURES}
NORM_MEASURES = tuple(each.name for each in residual.NORMS)
HEAD_MEASURES = tuple(each.name for each in consistency.HEADS)
TIMES = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
SATURATED = 0.98  # of the components of vectors stay below the strongest colour
OPENED = "the sub-layer, layer or norm that is opened"
N_ROWS = 12  # tokens or heads that are listed one by one
N_BINS, WITHIN = 41, 0.995  # of a histogram; of the numbers of a vector lie so many in its range
N_UPDATES = 9  # updates that are listed one by one
NORM_LABELS = dict(zip(NORM_MEASURES, ("σ before", "Mean before", "σ after", "Mean after")))
HEAD_LABELS = dict(zip(HEAD_MEASURES, ("Norm", "Share of the output")))


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _norm(selection: StreamSelection) -> str:
    """Name of the recording's norms, LayerNorm or RMSNorm."""
    recording = selection.recording
    return recording_norm_name(recording, loaded(recording).capabilities.rms)


def _caption(selection: StreamSelection, *lines: str) -> tuple[str, ...]:
    """Lines of a caption, with the stream's name where there are several."""
    if not selection.is_one_of_several:
        return lines
    return *lines, sentences(CONCEPT, "shared")("stream", stream=selection.stream.name)


def expect_updates(selection: StreamSelection) -> tuple[residual.SubLayer, ...]:
    """The sub-layers of a stream. Raises ValueError for a model that does not show them."""
    sublayers = residual.sublayers(selection.stream)
    if not sublayers:
        words = sentences(CONCEPT, "shared")
        raise ValueError(words("whole_layers", model=selection.model))
    return sublayers


# ---- one number of every token and place, and the selected token beside the others ---------------


@dataclass(frozen=True, eq=False)
class TokenMap:
    """A grid of tokens by places with the selected token and place (-1 for none)."""

    selection: StreamSelection
    grid: residual.TokenGrid
    column: int
    log: bool = False
    keys: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The places in short; a head by its letter, since "L1 0" is read as ten."""
        return tuple(
            f"{_short(each.group)} {'H' * each.label.isdecimal()}{each.label}".strip()
            for each in self.grid.columns
        )

    def text(self, value: float) -> str:
        """A value with its unit, at most three digits."""
        quantity = self.grid.measure
        if not np.isfinite(value):
            return sentences(CONCEPT, "shared")("undefined")
        if quantity.name == "Rotation angle":
            return f"{value:.1f}{quantity.unit}"
        return fixed(value) if quantity.diverging or quantity.high == 1 else power(value)

    def matrix(self, title: str) -> Matrix:
        """The grid as a matrix."""
        quantity, token = self.grid.measure, self.selection.token
        low, high = residual.colour_range(quantity, self.grid.values, self.log)
        return Matrix(
            title=title,
            select=("token", "block") if self.keys else ("token",),
            rows=self.selection.stream.tokens,
            columns=self.labels,
            values=self.grid.values,
            low=low,
            high=high,
            signed=quantity.diverging,
            marks=((token, self.column, ""),) if self.column >= 0 else (),
            sides=("token", ""),
            digits=quantity.digits,
            unit=quantity.unit,
            log=self.log,
            selected=token,
            column_keys=self.keys,
            wide=True,
        )

    def profile(self, unit: str, updates: Sequence[bool] = ()) -> Chart:
        """The selected token's row beside the median and the range of all tokens. updates: the
        places that hold an update and not a state."""
        words = sentences(CONCEPT, "shared")
        values = self.grid.values
        filled = np.where(np.isnan(values).all(axis=0), 0, values)
        is_update = np.array(updates or [False] * values.shape[1])
        x = np.arange(values.shape[1], dtype=float)
        own, median = values[self.selection.token], np.nanmedian(filled, axis=0)
        states = ~is_update
        word = self.selection.word
        series = [
            Series(
                words("range"),
                x[states],
                np.nanmax(filled, axis=0)[states],
                shape="band",
                base=np.nanmin(filled, axis=0)[states],
            ),
            Series(words("median"), x[states], median[states]),
            Series(word, x[states], own[states], main=True),
        ]
        if is_update.any():
            series.append(Series(words("updates"), x[is_update], own[is_update], shape="points"))
        return Chart(
            title=words("profile", token=word),
            series=tuple(series),
            y_title=unit,
            log_y=self.log,
            ticks=tuple(zip(x.tolist(), self.labels)),
            guides=((float(self.column), ""),) if self.column >= 0 else (),
        )

    def beside(self) -> str:
        """The median and the range of all tokens at the selected place."""
        values = self.grid.values[:, self.column]
        values = values[np.isfinite(values)]
        if len(values) < 2:
            return ""
        return " " + sentences(CONCEPT, "shared")(
            "beside",
            median=self.text(float(np.median(values))),
            low=self.text(float(values.min())),
            high=self.text(float(values.max())),
            n=len(values),
        )

    @property
    def value(self) -> Written:
        """The value of the selected cell."""
        return Written.by(self.text, self.grid.values[self.selection.token, self.column])


def _short(group: str) -> str:
    return "" if group in ("Input", "End") else group.replace("Layer ", "L")


# ---- updates -------------------------------------------------------------------------------------

# By the names of the sentences.
KEYS = dict(zip(MEASURES, ("rotation", "update", "share", "cosine", "state")))
NAMES = dict(zip(KEYS.values(), ("turn", "norm", "share", "cosine", "state_norm")))  # of numbers


Log = Annotated[
    bool,
    Choice(
        label="Norms on a logarithmic scale",
        name="spread",
        menu=True,
        help=sentences(CONCEPT, "tab")("logarithmic"),
    ),
]


def sites(run: Run, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """The sites of a stream's updates: of its whole layers, or of its sub-layers."""
    stream = select_stream(run, 0, chosen.get("stream", "")).stream
    whole = in_layers(run, chosen) if chosen.get("layers") is None else chosen["layers"]
    stream = residual.whole_layers(stream) if whole else stream
    return ("", *(each.site for each in residual.sublayers(stream)))


def in_layers(run: Run, chosen: Mapping[str, Any]) -> bool:
    """True where updates are shown by whole layers until a reader chooses: in a deep model unless
    one of its sub-layers is open, and where the model shows no sub-layers."""
    stream = select_stream(run, 0, chosen.get("stream", "")).stream
    open_ones = [each.site for each in residual.sublayers(stream)]
    return not open_ones or (is_deep(run) and chosen.get("sublayer", "") not in open_ones)


Layers = Annotated[bool | None, replace(WHOLE_LAYERS, suits=in_layers)]


def measure_of(run: Run, chosen: Mapping[str, Any]) -> str:
    """What updates are shown by until a reader chooses: what they change of the prediction, of a
    model that predicts no word how far they rotate."""
    return "Rotation angle" if loaded(run.recording()).capabilities.no_readout else GUESS


@spec.predicts
@spec.panel
def updates(
    run: Run,
    measure: Annotated[
        str | None, Choice(SHOWN, "Updates by", name="write", suits=measure_of, menu=True)
    ] = None,
    token: FollowedWord = OPENS,
    sublayer: Annotated[str, Choice(sites, name="block", of="model", help=OPENED)] = "",
    log: Log = False,
    stream: FirstStream = OPENS,
    layers: Layers = None,
) -> Panel:
    """Update of a token's vector by each sub-layer, and one update as before + update = sum.

    measure: what each update changes of the prediction at the token, which is hidden from a model
    that fills in words; or one of MEASURES, of every token. None: the first where the model
    predicts words, else the rotation. sublayer: its site, such as "1.ffn"; where "" the one with
    the largest value of the token, of the prediction one that changes much of it, else the one with
    the largest share. log: norms on a logarithmic scale. layers: one update for each whole layer,
    with sites such as "1.layer"; None: in deep models, and where a model does not show what its
    sub-layers add. Raises ValueError for what is not there.
    """
    measure = measure or measure_of(run, {})
    selection = select_stream(run, token, stream)
    if layers is None:
        layers = in_layers(run, {"stream": stream, "sublayer": sublayer})
    layers = layers or not residual.sublayers(selection.stream)
    if measure == GUESS:
        guess = _guess(run, selection, sublayer, layers)
        if guess is not None:
            return guess
        measure = "Rotation angle"
    return _by_measure(selection, measure, sublayer, log, layers)


def _by_measure(
    selection: StreamSelection, measure: str, sublayer: str, log: bool, layers: bool
) -> Panel:
    """A measure of every token's updates, and one of these. measure: one of MEASURES."""
    token, words = selection.token, sentences(CONCEPT, "updates")
    if layers:
        selection = replace(selection, stream=residual.whole_layers(selection.stream))
    places = {each.site: each for each in expect_updates(selection)}
    if sublayer:
        expect_option("sublayer", sublayer, tuple(places))
    grid = selection.cached(
        ("updates", measure, layers), lambda: residual.write_grid(selection.stream, measure)
    )
    columns = _columns_of(selection, measure, tuple(places.values()))
    row = np.nan_to_num(np.abs(grid.values[token]))
    layered = [site for site, each in places.items() if each.layer >= 0]
    largest = max(layered or places, key=lambda site: row[columns[site]])
    key, block = KEYS[measure], "layer" if layers else "sub-layer"
    chosen = places[sublayer or largest]
    # Norms of states are drawn at further sites, such as sums before their norm.
    is_largest = chosen.site == largest and (key != "state" or row[columns[largest]] == row.max())
    keys = tuple(_site_of(each, columns) for each in range(len(grid.columns)))
    token_map = TokenMap(selection, grid, columns[chosen.site], log and grid.measure.spread, keys)
    name = _capital(chosen.name)
    if key == "state":
        is_bare = chosen.after == chosen.total
        slots = {"place": chosen.name, "norm": _norm(selection)}
        name = chosen.name if is_bare else words("with_norm", **slots)
    of_updates = [
        measure == "State norm" and site.endswith(".wrote") for site in selection.stream.sites
    ]
    return Panel(
        title=words("title", block=block),
        finding=words(
            key,
            place=name,
            token=selection.word,
            value=token_map.value.text,
            rank=words(f"{key}_rank", block=block) if is_largest else "",
        )
        + token_map.beside(),
        figures=(
            token_map.matrix(words(f"{key}_title", block=block)),
            Stack(
                figures=(
                    _vector_sum(selection, chosen)
                    if key == "rotation"
                    else token_map.profile(
                        words(f"{key}_unit"), of_updates if any(of_updates) else ()
                    ),
                    _equation(selection, chosen),
                )
            ),
        ),
        table=residual.table(grid, selection.stream.tokens),
        details=_update_details(selection, chosen),
        caption=_caption(
            selection, words("caption", measure=measure, meaning=grid.measure.meaning)
        ),
        file=f"updates-{key}",
        formulas=_formulas(selection, key, layers),
        at={"site": chosen.site, "stream": selection.stream.name},
        numbers={NAMES[key]: token_map.value},
    )


def _formulas(selection: StreamSelection, key: str, layers: bool) -> tuple[str, ...]:
    """The formulas beside a measure: where updates open on the prediction, the rotation has that of
    its angle and the sum alone."""
    is_turn = key == "rotation"
    recording = selection.recording
    is_read = selection.stream.name == recording.streams[-1].name
    has_readout = not loaded(recording).capabilities.no_readout
    is_bare = layers or (is_turn and is_read and has_readout)
    return ("added", *(("turn",) if is_turn else ()), *(() if is_bare else ("add-norm",)))


def _guess(run: Run, selection: StreamSelection, sublayer: str, layers: bool) -> Panel | None:
    """What each update changes of the prediction at a token, and one of these; None for a stream
    from which no words are read."""
    words, typed = sentences(CONCEPT, "guess"), selection.word
    is_hidden = can_hide(selection.recording) and not selection.stream.special[selection.token]
    if is_hidden:
        hidden = run.under((*run.edits, HideToken(selection.token)))
        selection = select_stream(hidden, selection.token, selection.stream.name)
    recording, token = selection.recording, selection.token
    if recording.covered is not None:
        return None  # it is what the reader is asked for
    guesses = opening.guesses(recording, selection.stream.name, token, layers)
    if guesses is None:
        return None
    if layers:
        selection = replace(selection, stream=residual.whole_layers(selection.stream))
    places = {each.site: each for each in expect_updates(selection)}
    if sublayer:
        expect_option("sublayer", sublayer, tuple(places))
    norms = {
        site: float(np.linalg.norm(residual.site_vectors(selection.stream, each.wrote)[token]))
        for site, each in places.items()
    }
    site = sublayer or guesses.rising
    place, at = places[site], guesses.sites.index(site)
    (answer,) = loaded(recording).labels([guesses.answer])
    answer = without_mark(answer, after_special=bool(selection.stream.special[token]))
    rises = guesses.after[at] >= guesses.before[at]
    numbers = {
        "update_before": Written.by(tenths, guesses.before[at]),
        "update_after": Written.by(tenths, guesses.after[at]),
    }
    slots = {
        "place": _capital(place.name),
        "where": place.name,
        "answer": answer,
        "token": typed,
        **{name.removeprefix("update_"): each for name, each in numbers.items()},
        "least": f"{100 * opening.TURNS:g}",
        "block": "layer" if layers else "sub-layer",
        "norm": power(norms[site]),
    }
    about = _about(recording, is_hidden, answer == typed)
    kind = "turns" if site == guesses.turning else "changes" if sublayer else "none"
    slots |= {"about": words(about, **slots), "moves": words("rises" if rises else "falls")}
    equation = _equation(selection, place)
    line = (
        _since(recording, selection.stream.name, token, answer),
        _decided(selection, hidden if is_hidden else run, place),
    )
    return Panel(
        title=words("title", **slots),
        finding=" ".join(filter(None, (words(kind, **slots), *line))),
        figures=(
            _listed(places, guesses, norms, at, slots),
            Stack(figures=(replace(equation, note=_stripes(selection, place)),)),
        ),
        table={
            "update": [each.name for each in places.values()],
            "probability before": guesses.before,
            "probability after": guesses.after,
            "norm of the update": list(norms.values()),
        },
        details=(
            words("lens"),
            *filter(None, (equation.note,)),
            *_update_details(selection, place),
        ),
        caption=_caption(selection, words("caption", **slots)),
        file="updates-prediction",
        formulas=("added",) if layers else ("added", "add-norm"),
        at={"site": site, "stream": selection.stream.name, "run": hidden if is_hidden else run},
        numbers=numbers,
    )


def _about(recording: Recording, is_hidden: bool, is_itself: bool) -> str:
    """The name of the sentence on which word is guessed at a token. is_itself: it is the token's
    own."""
    if is_hidden:
        return "itself" if is_itself else "hidden"
    return "next" if logit_lens.predicts_next(recording) else "seen"


def _stripes(selection: StreamSelection, place: residual.SubLayer) -> str:
    """What a stripe of the equation is, and what its last row does."""
    d, has_norm = selection.recording.model.d_model, place.after != place.total
    name = "stripes_norm" if has_norm else "stripes"
    return sentences(CONCEPT, "guess")(name, d=d, norm=_norm(selection))


def _decided(selection: StreamSelection, run: Run, place: residual.SubLayer) -> str:
    """Sentence on the part that decided, as Why this word and the flow have it, beside the step in
    which that shows; "" where none is known."""
    if selection.stream.name != logit_lens.read_stream(selection.recording).name:
        return ""
    decided = attribution.deciding(run, selection.token)
    if decided is None:
        return ""
    part, told = decided
    is_same = part.kind == place.place and part.layer == place.layer
    return sentences(CONCEPT, "guess")("same_part" if is_same else "other_part", part=told)


def _since(recording: Recording, stream: str, token: int, answer: str) -> str:
    """Sentence on the site from which on the guess leads for good, as the lens and the flow have
    it."""
    lens = loaded(recording).lens(recording, stream, token=token)
    found, words = opening.settled(lens), sentences(CONCEPT, "guess")
    if found is None:
        return ""
    p = float(np.exp(lens.logprob[lens.sites.index(found.site), 0]))
    is_last = not found.site.partition(".")[0].isdecimal()
    name = "leads_last" if is_last else "leads" if p >= opening.LEADS else "leads_low"
    return words(name, answer=answer, p=tenths(p), site=logit_lens.site_name(found.site))


def _listed(
    places: Mapping[str, residual.SubLayer],
    guesses: opening.Guesses,
    norms: Mapping[str, float],
    at: int,
    slots: Mapping[str, Any],
) -> Bars:
    """The telling updates, each with the probability after it and its norm; the one at a place is
    selected."""
    words, shown = sentences(CONCEPT, "guess"), _telling_updates(guesses, at)
    rows = tuple(
        BarRow(
            _update_label(places[guesses.sites[each]]),
            (float(guesses.after[each]), norms[guesses.sites[each]]),
            (tenths(float(guesses.after[each])), power(norms[guesses.sites[each]]) * (each == at)),
            selected=each == at,
            key=guesses.sites[each],
        )
        for each in shown
    )
    left_out = len(places) - len(shown)
    return Bars(
        title=words("bars", **slots),
        note=" ".join(
            (words("left_out", n=left_out, **slots),) * (left_out > 0)
            + (words("sublayers"),) * (slots["block"] == "sub-layer")
        ),
        select=("block",),
        columns=(words("probability", **slots), words("norm")),
        rows=rows,
    )


def _telling_updates(guesses: opening.Guesses, at: int) -> list[int]:
    """The updates that are listed, in their order: all of a few, else the one at a place with the
    one before it, and those that change most."""
    order = np.argsort(-np.abs(guesses.after - guesses.before), kind="stable").tolist()
    first = [at, *([at - 1] if at else [])]
    return sorted([*first, *(each for each in order if each not in first)][:N_UPDATES])


def _update_label(place: residual.SubLayer) -> str:
    short = residual.SHORT_PLACES[place.place]
    return f"L{place.layer} {short}".strip() if place.layer >= 0 else place.name


def _columns_of(
    selection: StreamSelection, measure: str, places: Sequence[residual.SubLayer]
) -> dict[str, int]:
    """The column of each sub-layer: of the state after it where all sites have one."""
    if measure != "State norm":
        return {each.site: at for at, each in enumerate(places)}
    sites = list(selection.stream.sites)
    return {each.site: sites.index(each.after) for each in places}


def _site_of(column: int, columns: dict[str, int]) -> str:
    """The sub-layer that a press on a column selects: the first one that ends there or later."""
    return next((site for site, at in columns.items() if at >= column), "")


def _equation(selection: StreamSelection, place: residual.SubLayer) -> Strips:
    """One update: the vector before, what is added, the sum, and what its norm makes of it."""
    words = sentences(CONCEPT, "updates")
    adds = residual.has_residual(selection.stream)
    parts = [(words("before"), "", place.before)]
    parts.append((words("update_strip"), "+" if adds else "", place.wrote))
    if adds:
        parts.append((words("sum"), "=", place.total))
    if place.after != place.total:
        parts.append((words("normed", norm=_norm(selection)), "→", place.after))
    vectors = [residual.site_vectors(selection.stream, site)[selection.token] for *_, site in parts]
    high = float(np.quantile(np.abs(vectors), SATURATED)) or 1.0
    note = words("lost")
    if adds:
        error, n, _ = selection.cached(
            ("conservation", place.place == "layer"),
            lambda: residual.residual_error(selection.stream),
        )
        note = words("check", n=f"{n:,}", error=power(error, 2))
        if place.after != place.total:
            note += words("angle", norm=_norm(selection))
    name = place.name[0].upper() + place.name[1:]
    return Strips(
        title=words("equation" if adds else "replacement", place=name, token=selection.word),
        note=note,
        strips=tuple(
            Strip(label, vector, words("norm", norm=power(float(np.linalg.norm(vector)))), sign)
            for (label, sign, _), vector in zip(parts, vectors)
        ),
        high=high,
    )


def _vector_sum(selection: StreamSelection, place: residual.SubLayer) -> Arrows:
    """The vector before an update, the update and their sum in the plane of all three; where the
    model has no residual connections, the sum is the update."""
    words = sentences(CONCEPT, "updates")
    before, total = (
        residual.site_vectors(selection.stream, site)[selection.token]
        for site in (place.before, place.total)
    )
    first, last = ((x, y) for x, y in residual.in_plane(before, total).tolist())
    zero = (0.0, 0.0)
    begins = first if residual.has_residual(selection.stream) else zero
    ends = (zero, first, False), (begins, last, False), (zero, last, True)
    return Arrows(
        title=words("sum_of"),
        note=words("sum_note"),
        arrows=tuple(Arrow(name, *at) for name, at in zip(words.lines("arrows"), ends)),
        angle=f"{float(residual.degrees(before, total)):.1f}°",
    )


def _update_details(selection: StreamSelection, place: residual.SubLayer) -> tuple[str, ...]:
    """The rule of a sub-layer and its formula with the token's numbers."""
    words = sentences(CONCEPT, "updates")
    stream, norm = selection.stream, _norm(selection)
    adds, features = residual.has_residual(stream), loaded(selection.recording).capabilities
    stands = residual.norms_stand(stream, features.norm)
    path = residual.token_path(stream, selection.token)
    at = list(path["sub-layer"]).index(place.name)
    value = {name: column[at] for name, column in path.items()}
    share, total = fixed(value["share"]), fixed(value["|sum|"])
    equalities = [(share, lambda x, f, cos: f / (f + x))]
    if adds:
        equalities.append((total, lambda x, f, cos: sqrt(max(0, x * x + f * f + 2 * x * f * cos))))
    parts = (float(value[name]) for name in ("|before|", "|wrote|", "cosine"))
    before, wrote, cosine = enough_digits_for_all(equalities, *parts)
    if place.place == "layer":
        rule = "layer"
    elif not adds:
        rule = "replaces_then_norm" if place.after != place.total else "replaces"
    else:
        rule = stands or "no_norm"
    slots = {"before": before, "wrote": wrote, "cosine": cosine, "share": share, "total": total}
    lines = [words(rule, norm=norm), words("share_formula", **slots)]
    if adds:
        lines.append(words("sum_formula", **slots))
    if "turned by norm °" in value:
        adding, by_norm, whole = (
            f"{value[f'turned {part} °']:.1f}" for part in ("by adding", "by norm", "in all")
        )
        lines.append(words("two_rotations", adding=adding, by_norm=by_norm, whole=whole, norm=norm))
    return (*lines, words("press", block="layer" if place.place == "layer" else "sub-layer"))


@spec.panel
def token_path(run: Run, token: FollowedWord = OPENS, stream: FirstStream = OPENS) -> Panel:
    """One token through the sub-layers in numbers, and its rotations layer by layer. Raises
    ValueError for what is not there, and for a model that does not show what its sub-layers add."""
    selection = select_stream(run, token, stream)
    token = selection.token
    expect_updates(selection)
    words = sentences(CONCEPT, "token_path")
    path = residual.token_path(selection.stream, token)
    rotations = residual.rotations(selection.stream, token)
    at = residual.largest_turn(path)
    whole = np.nan_to_num(rotations.get("whole layer °", ()))
    names = dict(zip(path, words.lines("columns")))
    if "turned by norm °" not in path:
        names = dict(zip(path, words.lines("columns_without_norm")))
    tables = [_text_table(path, list(names.values()), at, words("path"))]
    finding = words("no_layers", token=selection.word)
    if len(whole):
        largest = int(whole.argmax())
        header = [name[0].upper() + name[1:].replace(" °", "") for name in rotations]
        turned = _text_table(rotations, header, largest, words("rotations"))
        tables.append(replace(turned, note=words("rotations_note")))
        finding = words(
            "finding",
            token=selection.word,
            layer=rotations["layer"][largest],
            angle=f"{whole[largest]:.1f}",
            first=power(float(path["|before|"][0])),
            last=power(float(path.get("|after|", path["|sum|"])[-1])),
        )
    return Panel(
        title=words("title", token=selection.word),
        finding=finding,
        figures=(Stack(figures=tuple(tables)),),
        table=path,
        caption=_caption(selection, words("caption", token=token, word=selection.word)),
        file=f"token{token}",
    )


def _text_table(columns: Columns, header: Sequence[str], selected: int, title: str) -> TextTable:
    """Named columns as a table of texts; `selected`: the row that is spoken of."""
    rows = zip(*columns.values())
    return TextTable(
        title=title,
        columns=tuple(header),
        rows=tuple(
            tuple(
                fixed(float(cell)) if isinstance(cell, float | np.floating) else str(cell)
                for cell in row
            )
            for row in rows
        ),
        selected=selected,
    )


# ---- norms ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StreamNorms:
    """The norms of a stream with their gains and biases, by site."""

    places: dict[str, residual.Norm]
    weights: residual.Norms

    def name(self, *sites: str) -> str:
        """Name of the norms at these sites, of all of them where none is named."""
        return norm_name(self.weights[site][3] for site in sites or self.weights)


def _norms(selection: StreamSelection) -> StreamNorms:
    """The norms of a stream. Raises ValueError for a model without norms, and for one that does not
    show them."""
    words = sentences(CONCEPT, "norms")
    places = {each.site: each for each in residual.stream_norms(selection.stream)}
    recording = selection.recording
    if not places:
        expect_updates(selection)
        raise ValueError(words("none", model=selection.model, norm=_norm(selection)))
    if not loaded(recording).capabilities.weights:
        raise ValueError(words("closed", model=selection.model))
    return StreamNorms(places, loaded(recording).norms(selection.stream.name, recording.edits))


@spec.panel
def norms(
    run: Run,
    measure: Annotated[str, Choice(NORM_LABELS, "Show", name="norm")] = "Sigma before",
    token: FollowedWord = OPENS,
    log: Log = False,
    stream: FirstStream = OPENS,
) -> Panel:
    """The mean and the standard deviation of every token before and after each norm.

    measure: one of NORM_MEASURES. log: standard deviations on a logarithmic scale. Raises
    ValueError for what is not there, and for a model without norms.
    """
    selection = select_stream(run, token, stream)
    token = selection.token
    words = sentences(CONCEPT, "norms")
    norms = _norms(selection)
    name = norms.name()
    grid = residual.norm_grid(selection.stream, measure, name)
    column = int(np.abs(grid.values[token]).argmax())
    token_map = TokenMap(selection, grid, column, log and grid.measure.spread)
    error = residual.norm_error(selection.stream, norms.weights)
    kinds = FORMULAS if name == EITHER_NORM else (name,)
    biased = any(bias.any() for _, bias, *_ in norms.weights.values())
    learned = words("gain_and_bias" if biased else "gain")
    statistic = measure.lower().replace(" ", "_")
    place = residual.norm_place(selection.stream)
    return Panel(
        title=words("title", norm=name),
        finding=words(
            "finding",
            measure=words(statistic),
            token=selection.word,
            value=token_map.value,
            place=list(norms.places.values())[column].name,
        )
        + token_map.beside(),
        figures=(token_map.matrix(words(f"{statistic}_title", norm=name)), token_map.profile("")),
        table=residual.table(grid, selection.stream.tokens),
        details=(
            *(words(kind, bias=" + β" if biased else "", learned=learned) for kind in kinds),
            *([words(place, norm=name)] if place else []),
            words("check", error=power(error, 2), learned=learned),
        ),
        caption=_caption(
            selection, words("caption", measure=measure, meaning=grid.measure.meaning)
        ),
        file=f"norms-{measure.lower().replace(' ', '-')}",
    )


FORMULAS = ("LayerNorm", "RMSNorm")


def norm_sites(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The names of a stream's norms by their sites."""
    stream = select_stream(run, 0, chosen.get("stream", "")).stream
    return {each.site: _capital(each.name) for each in residual.stream_norms(stream)}


def norm_stages(run: Run, chosen: Mapping[str, Any]) -> range:
    """The steps of a norm, as numbers."""
    stream = select_stream(run, 0, chosen.get("stream", "")).stream
    site = chosen.get("sublayer") or first_site(norm_sites)(run, chosen)
    norms = loaded(run.recording()).norms(stream.name, run.recording().edits)
    return range(len(residual.norm_vectors(stream, norms, site, 0)) if site in norms else 0)


NormSite = Annotated[
    str, Choice(norm_sites, "Norm", name="block", of="model", suits=first_site(norm_sites))
]


@dataclass(frozen=True, eq=False)
class OpenedNorm:
    """One norm of a stream at a token: its place, its name, and the norms of the stream."""

    selection: StreamSelection
    place: residual.Norm
    name: str
    norms: StreamNorms

    @property
    def slots(self) -> dict[str, str]:
        """Its names in sentences."""
        return {
            "norm": self.name,
            "token": self.selection.word,
            "place": self.place.name,
            "at": _capital(self.place.name),
        }


def _opened_norm(run: Run, token: int, sublayer: str, stream: str) -> OpenedNorm:
    """The norm at a site, the first where "". Raises ValueError for what is not there, and for a
    model without norms."""
    selection = select_stream(run, token, stream)
    norms = _norms(selection)
    site = sublayer or first_site(norm_sites)(run, {"stream": stream})
    expect_option("sublayer", site, tuple(norms.places))
    return OpenedNorm(selection, norms.places[site], norms.name(site), norms)


@spec.panel
def norm_steps(
    run: Run,
    token: FollowedWord = OPENS,
    sublayer: NormSite = "",
    stream: FirstStream = OPENS,
    stage: Annotated[
        int | None, Choice(norm_stages, name="norm_step", of="model", help="the step of the norm")
    ] = None,
) -> Panel:
    """One norm at one token step by step, as a histogram of its numbers.

    sublayer: the site of the norm, such as "1.ffn"; the first one where "". stage: the step that is
    on show, the last where None.
    Raises ValueError for what is not there, and for a model without norms.
    """
    of = _opened_norm(run, token, sublayer, stream)
    selection, site = of.selection, of.place.site
    words = sentences(CONCEPT, "norm_steps")
    vectors = residual.norm_vectors(selection.stream, of.norms.weights, site, selection.token)
    steps = residual.norm_stages(vectors)
    spread = Written.by(fixed, steps["spread σ"][0])
    return Panel(
        title=words("title", **of.slots),
        finding=words(
            "finding",
            before=spread,
            after=fixed(steps["spread σ"][-1]),
            **of.slots,
        ),
        figures=(_histogram(vectors, of.slots, stage),),
        table=steps,
        caption=_caption(selection, words("caption", **of.slots)),
        file=f"norm-{site}-token{selection.token}",
        formulas=("layer-norm", "rms-norm"),
        numbers={
            "mean": Written.by(fixed, steps["mean μ"][0]),
            "spread": spread,
            "length": Written.by(power, steps["length"][0]),
        },
        at={"site": site, "stream": selection.stream.name},
    )


@spec.panel
def batch_norm(
    run: Run,
    token: FollowedWord = OPENS,
    sublayer: NormSite = "",
    times: Annotated[float, Choice(TIMES, "Multiply the selected token’s vector by")] = 3.0,
    stream: FirstStream = OPENS,
) -> Panel:
    """Distance by which each token moves under a norm, and under BatchNorm in its place, when one
    token's vector is multiplied.

    sublayer: the site of the norm, such as "1.ffn"; the first one where "". times: one of TIMES.
    Raises ValueError for what is not there, and for a model without norms.
    """
    of = _opened_norm(run, token, sublayer, stream)
    selection, site, token = of.selection, of.place.site, of.selection.token
    words = sentences(CONCEPT, "batch_norm")
    changed = residual.norm_change(
        selection.stream, site, token, times, *of.norms.weights[site][2:]
    )
    slots = {**of.slots, "times": f"{times:g}"}
    worst = residual.largest_other(changed.batch, token)
    least = residual.largest_other(changed.layer, token)
    if worst is None or least is None:
        finding = words("alone", **slots)
    else:
        finding = words(
            "finding",
            other=selection.stream.tokens[worst[0]],
            batch=power(worst[1]),
            layer=power(least[1], 2),
            **slots,
        )
    return Panel(
        title=words("title", **slots),
        finding=finding,
        figures=(_changes(selection, changed, of.name), *_both_norms(of)),
        table={
            "token": [f"{at} {each}" for at, each in enumerate(selection.stream.tokens)],
            of.name: changed.layer,
            "BatchNorm": changed.batch,
        },
        details=words.lines(
            "details",
            own_layer=power(float(changed.layer[token]), 2),
            own_batch=power(float(changed.batch[token])),
            **slots,
        ),
        caption=_caption(selection, words("caption", **slots)),
        file=f"batch-norm-{site}-token{token}",
        formulas=("batch-norm",),
        at={"site": site, "stream": selection.stream.name},
    )


def _both_norms(of: OpenedNorm) -> tuple[Facts, ...]:
    """The component of a token that is largest after its norm, as BatchNorm and the norm itself
    make it, without gain and bias; none where BatchNorm would divide by 0."""
    selection, words = of.selection, sentences(CONCEPT, "batch_norm")
    x = residual.site_vectors(selection.stream, of.place.before)
    spread, at = x.std(axis=0), selection.token
    if not spread.all():
        return ()
    m = weight_texts.largest(residual.site_vectors(selection.stream, of.place.after)[at])
    own = residual.normalised(x[at], *of.norms.weights[of.place.site][2:])[m]
    batch = (x[at, m] - x[:, m].mean()) / spread[m]
    told = (("BatchNorm", batch), (of.name, own))
    return (
        Facts(
            facts=tuple(
                (power(float(each), 3), words("component", m=m, by=name)) for name, each in told
            )
        ),
    )


def _histogram(
    vectors: Mapping[str, np.ndarray], slots: Mapping[str, Any], stage: int | None
) -> Steps:
    """The numbers of a vector after each step of its norm as a histogram, all on one axis, on which
    the outermost bins hold what lies beyond. One component is a line."""
    words, columns = sentences(CONCEPT, "norm_steps"), residual.norm_stages(vectors)
    high = max(float(np.quantile(np.abs(each), WITHIN)) for each in vectors.values()) or 1.0
    edges = np.linspace(-high, high, N_BINS + 1)
    counts = [np.histogram(each.clip(-high, high), edges)[0] for each in vectors.values()]
    tallest = float(max(each.max() for each in counts))
    numbers = zip(*(columns[name] for name in list(columns)[1:]))
    *_, last = vectors.values()
    dimension = weight_texts.largest(last)
    component = words("component", m=dimension)
    frames = tuple(
        Frame(
            name,
            (
                Chart(
                    title=words("histogram", n=len(vectors[name]), **slots),
                    note=" ".join(
                        (
                            sentences(CONCEPT, "stages")(name),
                            words(
                                "numbers",
                                spread=fixed(spread),
                                mean=fixed(mean),
                                length=power(length),
                                turned=f"{turned:.1f}",
                            ),
                        )
                    ),
                    series=(Series("", edges[:-1], of.astype(float), main=True, shape="steps"),),
                    guides=((mean, "μ"), (float(vectors[name][dimension]), component)),
                    x_range=(-high, high),
                    y_range=(0.0, tallest),
                ),
            ),
            key=str(at),
        )
        for at, (name, of, (mean, spread, length, turned)) in enumerate(
            zip(vectors, counts, numbers)
        )
    )
    current = len(frames) - 1 if stage is None else place_of("stage", stage, len(frames))
    return Steps(
        frames=frames,
        current=current,
        choice="norm_step",
        plays=True,
    )


def _changes(selection: StreamSelection, changed: residual.NormChange, norm: str) -> Bars:
    """Bars of each token's change under both norms: the changed one, and those that move most."""
    words = sentences(CONCEPT, "batch_norm")
    tokens = selection.stream.tokens
    order = [each for each in np.argsort(-changed.batch, kind="stable") if each != changed.token]
    listed = sorted([changed.token, *(int(each) for each in order[: N_ROWS - 1])])
    hidden = len(tokens) - len(listed)
    return Bars(
        title=words("changes", token=selection.word, times=f"{changed.times:g}"),
        note=plural(hidden, "other token") if hidden else "",
        select=("token",),
        columns=(norm, "BatchNorm"),
        rows=tuple(
            BarRow(
                tokens[at],
                (float(changed.layer[at]), float(changed.batch[at])),
                (fixed(float(changed.layer[at])), fixed(float(changed.batch[at]))),
                selected=at == changed.token,
                key=str(at),
            )
            for at in listed
        ),
        shared=True,
    )


# ---- heads ---------------------------------------------------------------------------------------


@spec.panel
def heads(
    run: Run,
    measure: Annotated[str, Choice(HEAD_LABELS, "Show", name="writer")] = "Length",
    token: FollowedWord = OPENS,
    log: Log = False,
    stream: FirstStream = OPENS,
) -> Panel:
    """The norm of what every head adds to each token's vector.

    measure: one of HEAD_MEASURES. log: norms on a logarithmic scale. Raises ValueError for what is
    not there, and for a model that does not give its values and W_O.
    """
    selection = select_stream(run, token, stream)
    token = selection.token
    words = sentences(CONCEPT, "heads")
    recording = selection.recording
    expect_updates(selection)
    if not loaded(recording).shows_writes(recording):
        raise ValueError(words("closed", model=selection.model))
    outputs = loaded(recording).outputs()
    grid = selection.cached(
        ("head updates", measure),
        lambda: consistency.head_grid(recording, selection.stream, measure, outputs),
    )
    error = selection.cached(
        ("heads error",),
        lambda: consistency.heads_error(recording, selection.stream, outputs),
    )
    column = int(grid.values[token].argmax())
    token_map = TokenMap(selection, grid, column, log and grid.measure.spread)
    key = "norm" if measure == "Length" else "share"
    name = grid.columns[column].name
    figures: tuple[Figure, ...] = (
        token_map.matrix(words(f"{key}_title")),
        _largest_heads(token_map, words),
    )
    return Panel(
        title=words("title"),
        finding=words(
            f"{key}_finding",
            place=name[0].upper() + name[1:],
            token=selection.word,
            value=_head_text(token_map, float(grid.values[token, column])),
        )
        + (token_map.beside() if key == "norm" else ""),
        figures=figures,
        table=residual.table(grid, selection.stream.tokens),
        details=words.lines(
            "details",
            d_head=recording.model.d_head,
            d_model=recording.model.d_model,
            error=power(error, 2),
        ),
        caption=_caption(
            selection, words("caption", quantity=key.capitalize(), meaning=grid.measure.meaning)
        ),
        file=f"heads-{key}",
        formulas=("concatenation", "sum-over-heads"),
        at=_head_at(recording, selection.stream, column),
    )


def _head_at(recording: Recording, stream: Stream, column: int) -> dict[str, Any]:
    """The place of one of the heads that write to a stream, layer by layer."""
    of = [each for each in recording.attention if each.query == stream.name]
    layer, at = divmod(column, sum(each.pattern.shape[1] for each in of))
    heads = [(each.name, head) for each in of for head in range(each.pattern.shape[1])]
    return {"layer": layer, "attention": heads[at][0], "head": heads[at][1]}


def _head_text(token_map: TokenMap, value: float) -> str:
    return percent(value) if token_map.grid.measure.name == "Share of heads" else power(value)


def _largest_heads(token_map: TokenMap, words: Sentences) -> Bars:
    """The heads that add most to the selected token, with the median of all tokens."""
    own = token_map.grid.values[token_map.selection.token]
    median = np.median(token_map.grid.values, axis=0)
    order = np.argsort(-own, kind="stable")[:N_ROWS].tolist()
    hidden = len(own) - len(order)
    return Bars(
        title=words("largest", token=token_map.selection.word),
        note=plural(hidden, "other head") if hidden else "",
        columns=(token_map.selection.word, sentences(CONCEPT, "shared")("median")),
        rows=tuple(
            BarRow(
                token_map.grid.columns[at].name,
                (float(own[at]), float(median[at])),
                (_head_text(token_map, float(own[at])), _head_text(token_map, float(median[at]))),
                selected=at == token_map.column,
            )
            for at in order
        ),
        shared=True,
    )
