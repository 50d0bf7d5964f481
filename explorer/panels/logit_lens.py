"""The panels on the logit lens: what the model predicts at every layer, and how one prediction
develops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Annotated, Any

import numpy as np

from explorer.analysis import logit_lens, opening, residual
from explorer.analysis.logit_lens import LensCell
from explorer.analysis.predictions import as_whole, first_piece
from explorer.analysis.terminology import recording_norm_name, with_article
from explorer.figures.formatting import Written, fixed, plural, tenths
from explorer.figures.kinds import BarRow, Bars, Chart, Matrix, Series, TextTable
from explorer.panels import spec
from explorer.panels.choice import OPENS, WHOLE_LAYERS, Choice, is_deep
from explorer.panels.masks import Hidden
from explorer.panels.predictions import with_blanks
from explorer.panels.selection import (
    Predicted,
    StreamSelection,
    predicted,
    why_here,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import Recording, Stream
from models.contract.results import Lens, WholeWord, softmax
from models.runtime.caching import loaded, memo
from models.runtime.run import Run

REFUSALS = sentences("logit_lens", "refusals")

CONCEPT = "logit_lens"
# What the cells are coloured by.
COLOURS = {
    "Top word": "Probability of the word",
    "Answer": "Probability of the final answer",
    "Rank": "Rank of the final answer",
    "KL": "Divergence from the final distribution",
}
NONE = -1
LEAST = 0.0005  # a probability that is written as a number and not as "< 0.1%"


@dataclass(frozen=True, eq=False)
class Reading:
    """A lens on a recording, one of its cells, the words of the vocabulary by their ids, and of
    each token the id of the actual word, -1 where there is none. column: the token's in the lens,
    which may be of it alone."""

    recording: Recording
    stream: Stream
    lens: Lens
    token: int
    column: int
    site: int
    labels: dict[int, str]
    actual: np.ndarray

    @property
    def cell(self) -> LensCell:
        """The selected cell."""
        return logit_lens.cell(self.lens, self.site, self.column)

    @property
    def answer(self) -> str:
        """The word that the model predicts at the token."""
        return self.label(int(self.lens.final_id[self.column]))

    @property
    def probability(self) -> Written:
        """The probability of the token that the model predicts."""
        return Written.by(tenths, np.exp(self.lens.logprob[-1, self.column]))

    def label(self, id: int) -> str:
        """A word; of a token that the model predicts next, and that begins a word of several, the
        token and the word."""
        return first_piece(self.whole[id]) if id in self.whole else self.labels[id]

    @cached_property
    def whole(self) -> dict[int, WholeWord]:
        """The words of several tokens that the likeliest next ones begin, by the token."""
        return (
            loaded(self.recording).words_after(self.recording, self.token)
            if self.asks == "next"
            else {}
        )

    @property
    def word(self) -> str:
        """The token."""
        return self.stream.tokens[self.token]

    @property
    def asks(self) -> str:
        """Task of the model at a token: to predict the "next" word, or the one that stands
        "here"."""
        return "next" if logit_lens.predicts_next(self.recording) else "here"


def in_layers(run: Run, chosen: Mapping[str, Any]) -> bool:
    """True where the lens reads the sites between layers alone until a reader chooses: in a deep
    model unless a site within a layer is open."""
    within = lambda: logit_lens.sites_within_layers(sites(run, chosen))
    return is_deep(run) and chosen.get("site", "") not in within()


def sites(run: Run, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """The sites that the lens reads, by their names in the recording: those of any token."""
    recording = run.recording()
    return loaded(recording).lens(recording, logit_lens.read_stream(recording).name, token=0).sites


Site = Annotated[str, Choice(sites, help="the site that is opened")]
Layers = Annotated[bool | None, replace(WHOLE_LAYERS, suits=in_layers)]


@spec.predicts
@spec.panel
def lens(
    run: Run,
    token: Predicted = OPENS,
    site: Site = "",
    measure: Annotated[str, Choice(COLOURS, "Colour by", name="lens", menu=True)] = "Top word",
    layers: Layers = None,
    hidden: Hidden = "",
    early: Annotated[
        bool, Choice(label="Sites before the answer shows", name="lens_early", menu=True)
    ] = False,
) -> Panel:
    """The most likely word at every site of every token.

    token: the first one that is predicted where None. site: its name in the recording, the last one
    where "". measure: one of MEASURES. layers: True for the sites between layers alone, and `site`;
    None: so in deep models. hidden: as of `predictions.word`. early: also the sites before the
    first one from which on the answer is among the likeliest words, but for `site`.
    Raises ValueError for what is not there and for a model that predicts no words.
    """
    on = read(run, token, site)
    if layers is None:
        layers = in_layers(run, {"site": site})
    words = sentences(CONCEPT, "lens")
    first = 0 if early else opening.first_site(on.lens.rank[:, on.column])
    return Panel(
        title=words("title"),
        finding=_finding(on) + why_here(StreamSelection(run.recording(), on.stream, on.token)),
        figures=(_matrix(on, measure, layers, first), _words(on)),
        table=logit_lens.file_table(on.lens, on.stream.tokens, on.labels),
        details=_details(on),
        caption=(words("caption"),),
        file="lens",
        formulas=("readout",),
        at={"token": on.token},
        numbers={"token_probability": on.probability},
    )


@spec.predicts
@spec.panel
def development(run: Run, token: Predicted = OPENS, site: Site = "", hidden: Hidden = "") -> Panel:
    """Final prediction at one token, as read at every site: its probability, its rank, and the
    divergence from the final distribution. token, site, hidden and ValueError as for `lens`."""
    on = read(run, token, site, alone=True)
    words = sentences(CONCEPT, "development")
    column = logit_lens.column(on.lens, on.column)
    places = np.arange(len(column))
    names = [logit_lens.site_name(each) for each in on.lens.sites]
    probabilities = np.array([each.probability for each in column])
    chart = Chart(
        series=(Series(f"“{on.answer}”", places, 100 * probabilities, main=True),),
        y_title=words("probability"),
        ticks=tuple(enumerate(names)),
        guides=((on.site, ""),),
    )
    table = _sites_table(on, names, column)
    largest = int(np.argmax(np.diff(probabilities))) if len(column) > 1 else 0
    after = min(largest + 1, len(column) - 1)
    return Panel(
        title=words("title", answer=on.answer),
        finding=words(
            "finding",
            site=names[after],
            before=tenths(float(probabilities[largest])),
            after=tenths(float(probabilities[after])),
        ),
        figures=(chart, table),
        table={
            "site": list(on.lens.sites),
            "word": [on.labels[int(each.ids[0])] for each in column],
            "probability of final answer": probabilities,
            "rank of final answer": [each.rank + 1 for each in column],
            "KL to final (nats)": [each.kl for each in column],
        },
        details=words.lines("details"),
        caption=(words("caption", answer=on.answer, word=on.word, token=on.token),),
        file=f"token-{on.token}-development",
    )


def _sites_table(on: Reading, names: Sequence[str], column: Sequence[LensCell]) -> TextTable:
    """Prediction at each site. Sites one after another at which the final prediction has too little
    probability to be written are one row, but the selected one."""
    words = sentences(CONCEPT, "development")
    apart = [each.probability >= LEAST or at == on.site for at, each in enumerate(column)]
    rows: list[tuple[str, ...]] = []
    last: list[int] = []  # the last site of each row
    for is_apart, of_run in groupby(range(len(column)), apart.__getitem__):
        every = list(of_run)
        for group in [[at] for at in every] if is_apart else [every]:
            cells = [column[at] for at in group]
            ranks, kls = [each.rank + 1 for each in cells], [each.kl for each in cells]
            first, end = names[group[0]], names[group[-1]]
            rows.append(
                (
                    first if len(group) == 1 else words("to", first=first, last=end),
                    on.labels[int(cells[0].ids[0])]
                    if len(group) == 1
                    else words("sites", n=len(group)),
                    tenths(max(each.probability for each in cells)),
                    _span(f"{min(ranks):,}", f"{max(ranks):,}"),
                    _span(fixed(min(kls)), fixed(max(kls))),
                )
            )
            last.append(group[-1])
    return TextTable(
        select=("site",),
        columns=words.lines("columns"),
        rows=tuple(rows),
        keys=tuple((on.lens.sites[at],) for at in last),
        selected=last.index(on.site),
    )


def _span(low: str, high: str) -> str:
    """Two numbers from one to the other; one where they are written alike."""
    return low if low == high else sentences(CONCEPT, "development")("to", first=low, last=high)


def read(run: Run, token: int | None = None, site: str = "", alone: bool = False) -> Reading:
    """The lens on a run, and one of its cells; alone: the lens on no other token. Raises ValueError
    for what is not there and for a model that predicts no words."""
    at = predicted(run, token)
    recording, stream = at.recording, at.stream
    only = at.token if alone else None
    readout = loaded(recording).lens(recording, stream.name, token=only)
    if site and site not in readout.sites:
        raise ValueError(REFUSALS("no_site", site=site, sites=", ".join(readout.sites)))
    plain = run.loaded.record(run.text_or_ids, (), run.target).covering(run.covered)
    actual = logit_lens.target_ids(recording, plain)

    def labels() -> dict[int, str]:
        ids = logit_lens.vocabulary(readout, actual, readout.top_ids.shape[-1])
        return dict(zip(ids.tolist(), loaded(recording).labels(ids)))

    return Reading(
        recording,
        stream,
        readout,
        at.token,
        0 if alone else at.token,
        readout.sites.index(site or readout.sites[-1]),
        memo(recording, ("lens words", only), labels),
        actual,
    )


# ---- figures -------------------------------------------------------------------------------------


def _matrix(on: Reading, measure: str, layers: bool, first: int) -> Matrix:
    """The most likely word of each cell from a `first` site on, and the actual words in the last
    row."""
    words, readout = sentences(CONCEPT, "lens"), on.lens
    names = {at: logit_lens.site_name(each) for at, each in enumerate(readout.sites)}
    if layers:
        ends = {
            at: words("layer", layer=n) for n, at in logit_lens.layer_ends(readout.sites).items()
        }
        inside = logit_lens.sites_within_layers(readout.sites)
        names = {
            at: ends.get(at, name)
            for at, name in names.items()
            if at == on.site or readout.sites[at] not in inside
        }
    slots = {"ranks": opening.TOP_RANKS, "answer": on.answer}
    folded = [at for at in names if at < first and at != on.site]
    names = {at: name for at, name in names.items() if at not in folded}
    at = list(names)
    top = readout.top_ids[at, :, 0]
    values, scale = _colours(on, measure)
    rows, values = list(names.values()), values[at]
    texts = [on.labels[id] for id in top.ravel().tolist()]
    bold, keys = top == readout.final_id, [readout.sites[each] for each in at]
    # The probability of a word that the end has no use for would be the darkest of early rows.
    is_by_word, likeliest = measure == "Top word", readout.top_ids[-1]
    pale = is_by_word & ~(top[:, :, None] == likeliest).any(-1)
    if (on.actual != NONE).any():
        rows.append(words(f"actual_{on.asks}"))
        keys.append(readout.sites[-1])
        texts += [on.labels.get(id, "") for id in on.actual.tolist()]
        values = np.vstack([values, np.full(len(on.actual), np.nan)])
        bold, pale = (np.vstack([each, np.zeros(len(on.actual), bool)]) for each in (bold, pale))
    return Matrix(
        title=words(f"{measure.lower().replace(' ', '_')}_colour"),
        select=("site", "token"),
        rows=tuple(rows),
        columns=on.stream.tokens,
        values=values,
        marks=((at.index(on.site), on.token, ""),),
        sides=(words("site"), words("token")),
        words=tuple(texts),
        bold=bold,
        pale=pale,
        keys=tuple(keys),
        note=with_blanks(
            words("bold")
            + (words("pale", n=likeliest.shape[-1]) if is_by_word else "")
            + (words("folded", n=len(folded), **slots) if folded else ""),
            texts,
        ),
        frame_note=words("scrolls", n=len(rows)),
        hint=words("folded_hint") if folded else "",
        **scale,
    )


def _colours(on: Reading, measure: str) -> tuple[np.ndarray, dict]:
    """The values (site, token) that give the cells their colours, and their scale."""
    readout = on.lens
    if measure == "Rank":
        n = on.recording.model.n_vocab
        return readout.rank + 1.0, {"low": n, "high": 1, "log": True, "digits": 0}
    if measure == "KL":
        return readout.kl, {"low": float(readout.kl.max()), "high": 0, "unit": " nats"}
    logarithms = readout.top_logprobs[..., 0] if measure == "Top word" else readout.logprob
    return 100 * np.exp(logarithms), {"high": 100, "unit": "%", "digits": 1}


def _words(on: Reading) -> Bars:
    """The most likely words of the selected cell, and all others together."""
    words, cell = sentences(CONCEPT, "lens"), on.cell
    name = on.label if cell.site == len(on.lens.sites) - 1 else on.labels.__getitem__
    actual = int(on.actual[on.token])
    rows = [
        BarRow(
            words("actual", word=named) if id == actual else named,
            (p,),
            (tenths(p),),
            selected=id == cell.final_id,
        )
        for id, p in zip(cell.ids.tolist(), cell.probabilities.tolist())
        for named in [name(id)]
    ]
    left = plural(on.recording.model.n_vocab - len(rows), "other word")
    others = words("others", words=left, p=tenths(cell.others))
    site = logit_lens.site_words(on.lens.sites[on.site])
    return Bars(
        title=words("bars", site=site, word=on.word, token=on.token),
        note=with_blanks(others, [row.label for row in rows]),
        columns=(words("probability"),),
        rows=tuple(rows),
    )


# ---- sentences -----------------------------------------------------------------------------------


def _finding(on: Reading) -> str:
    """Sentences on the prediction at the token, the site it is settled from, and the actual word's
    rank."""
    words, last = sentences(CONCEPT, "lens"), len(on.lens.sites) - 1
    slots = {"word": on.word, "token": on.token, "answer": on.answer, "p": on.probability}
    site = int(logit_lens.settled_sites(on.lens.rank)[on.token])
    name = logit_lens.site_name(on.lens.sites[min(site, last)])
    p_there = float(np.exp(on.lens.logprob[min(site, last), on.column]))
    kind = "from_last" if site >= last else "from_site" if p_there >= opening.LEADS else "from_low"
    leads = words(kind, site=name, p_there=tenths(p_there), **slots)
    parts = [words(f"finding_{on.asks}", leads=leads, **slots)]
    if whole := as_whole(on.whole.get(int(on.lens.final_id[on.column]))):
        parts.append(whole)
    actual = int(on.actual[on.token])
    if actual not in (NONE, int(on.lens.final_id[on.token])):
        scores = loaded(on.recording).logits(on.recording, on.stream.name, on.token)
        rank = int((scores > scores[actual]).sum()) + 1
        p = float(softmax(scores)[actual])
        slots = {"actual": on.labels[actual], "p": tenths(p), "rank": f"{rank:,}"}
        parts.append(words(f"finding_actual_{on.asks}", **slots))
    return " ".join(parts)


def _details(on: Reading) -> tuple[str, ...]:
    """Sentences on how a cell is made, how its state is read, and its divergence."""
    words, model, cell = sentences(CONCEPT, "lens"), on.recording.model.name, on.cell
    shows, readout = loaded(model).capabilities, str(loaded(model).readout_kind())
    name = readout.replace(" ", "_") if readout in ("tied", "untied", "transform") else "own"
    bias = words("bias") if shows.readout_bias and name != "own" else ""
    lines = [words("made", logits=words(f"logits_{name}") + bias)]
    if name == "transform":
        lines.append(words("transform"))
    norm = recording_norm_name(on.recording, shows.rms)
    if readout == "own code":
        lines.append(words("own_code"))
    else:
        place = residual.norm_place(on.stream) or "no"
        lines.append(words(f"{place}_norm", norm=norm, a_norm=with_article(norm)))
    site, kl = logit_lens.site_words(on.lens.sites[on.site]), fixed(cell.kl, 3)
    lines.append(words("kl", site=site, word=on.word, kl=kl))
    if on.stream.name == "encoder" and on.stream.special[on.token]:
        lines.append(words("never_asked", word=on.word))
    return (*lines, *words.lines("details"))
