"""The panel on a decoder's input and target: the same tokens, shifted by one."""

from __future__ import annotations

import numpy as np

from explorer.analysis import logit_lens
from explorer.figures.formatting import Written, plural, power, power_of_e, tenths
from explorer.figures.kinds import Chart, Matrix, Series, truncation_note, window
from explorer.panels import spec
from explorer.panels.selection import StreamSelection, model_name, predicted
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import COVER
from models.contract.results import softmax
from models.runtime.caching import kept, loaded
from models.runtime.run import Run

CONCEPT = "teacher_forcing"
N_COLUMNS = 6  # tokens in type for the back row


@spec.panel
def offset(run: Run) -> Panel:
    """A decoder's input and target as two rows, the second shifted by one, with the probability of
    each target and what the model would have said instead.

    Raises ValueError for a model that does not predict next tokens, and for fewer than two.
    """
    at, recording, words = _stream_of(run), run.recording(), sentences(CONCEPT, "offset")
    tokens = at.stream.tokens
    n = len(tokens) - 1
    p, likeliest = _next_tokens(at)
    labels = loaded(recording).labels(likeliest.tolist())
    if (place := recording.covered) is not None:
        labels = [COVER if at + 1 >= place else label for at, label in enumerate(labels)]
    places = window(n, (n - 1,), N_COLUMNS)
    best = int(places[p[places].argmax()])
    right = int((likeliest == at.stream.ids[1:]).sum())
    numbers = {"target": Written.by(tenths, p[best])}
    slots = {
        **{"input": tokens[best], "target": tokens[best + 1], "p": numbers["target"]},
        **{"tokens": plural(n, "next token"), "places": plural(right, "position")},
    }
    rows = (
        [tokens[each] for each in places],
        [tokens[each + 1] for each in places],
        [tenths(float(p[each])) for each in places],
        [labels[each] for each in places],
    )
    shares = np.full((len(rows), len(places)), np.nan)
    shares[2] = p[places]
    wrong = np.zeros(shares.shape)
    wrong[3] = likeliest[places] != at.stream.ids[places + 1]
    table = Matrix(
        title=words("picture"),
        note=truncation_note(len(places), n),
        rows=words.lines("rows"),
        columns=tuple(str(each) for each in places),
        values=shares,
        marks=((2, int(np.flatnonzero(places == best)[0]), ""),),
        sides=("", words("place")),
        words=tuple(each for row in rows for each in row),
        bold=wrong,
    )
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(table,),
        table={
            "position": np.arange(n),
            "input": tokens[:-1],
            "target": tokens[1:],
            "p(target)": p,
            "likeliest": labels,
        },
        details=words.lines("details", **slots),
        caption=(words("caption"),),
        file="teacher-forcing",
        formulas=("readout",),
        at={"token": best, "target_id": int(at.stream.ids[best + 1]), "stream": at.stream.name},
        numbers=numbers,
    )


@spec.panel
def product(run: Run) -> Panel:
    """The probability of a text as far as each of its tokens: the product of those of all up to
    there, each given what stands before it.

    Raises ValueError as `offset`.
    """
    at, words = _stream_of(run), sentences(CONCEPT, "product")
    p, _ = _next_tokens(at)
    logs, tokens = np.cumsum(np.log(p)), at.stream.tokens[1:]
    hardest = int(p.argmin())
    whole = Written(np.exp(logs[-1]), power_of_e(float(logs[-1]), 3))
    return Panel(
        title=words("title"),
        finding=words(
            "finding",
            **{"all": whole, "n": plural(len(p), "probability", "probabilities")},
            **{"token": tokens[hardest], "p": power(float(p[hardest]), 2)},
        ),
        figures=(
            Chart(
                title=words("picture"),
                series=(
                    Series(
                        "", np.arange(1.0, len(p) + 1), np.exp(logs), f"{whole.text}", main=True
                    ),
                ),
                x_title=words("tokens"),
                log_y=True,
                guides=((hardest + 1.0, tokens[hardest]),),
                ticks=tuple((float(place), token) for place, token in enumerate(tokens, 1)),
            ),
        ),
        table={"token": tokens, "p": p, "product so far": np.exp(logs)},
        details=words.lines("details"),
        caption=(words("caption"),),
        file="text-probability",
        formulas=("chain",),
        numbers={"text_probability": whole},
        at={"token": hardest},
    )


def _stream_of(run: Run) -> StreamSelection:
    """The stream of a model that predicts next tokens. Raises ValueError for another, and for fewer
    than two tokens."""
    recording, words = run.recording(), sentences(CONCEPT, "offset")
    if not logit_lens.predicts_next(recording):
        raise ValueError(words("encoder", model=model_name(recording)))
    at = predicted(run, 0)
    if len(at.stream.tokens) < 2:
        raise ValueError(words("short"))
    return at


@kept
def _next_tokens(at: StreamSelection) -> tuple[np.ndarray, np.ndarray]:
    """The probability that each token but the last gives to the one after it, and the id that it
    finds likeliest."""
    rows = loaded(at.recording).each_logits(at.recording, at.stream.name)
    p, likeliest = [], []
    for id, logits in zip(at.stream.ids[1:].tolist(), rows):
        p.append(float(softmax(logits)[id]))
        likeliest.append(int(logits.argmax()))
    return np.array(p), np.array(likeliest)
