"""The panel on what came before attention: one state that is passed from word to word."""

from __future__ import annotations

from explorer.analysis.formulas import mean_factor
from explorer.analysis.gradients import (
    N_NETWORKS,
    NETWORK_WIDTH,
    from_word_to_word,
)
from explorer.analysis.measure import MeasureContext
from explorer.figures.formatting import Written, plural, power
from explorer.figures.kinds import (
    MOST_TOKENS,
    BarRow,
    Bars,
    Facts,
    Relay,
    Stack,
    truncation_note,
    window,
)
from explorer.panels import spec
from explorer.panels.selection import model_name
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.runtime.run import Run

CONCEPT = "recurrence"


@spec.panel
def bottleneck(run: Run) -> Panel:
    """An untrained recurrent network on the text: its one state passed from word to word, what is
    left of the gradient at each word, and its steps, beside attention's one.

    Raises ValueError for a text with fewer than two words.
    """
    recording = run.recording()
    stream, words = recording.streams[0], sentences(CONCEPT, "bottleneck")
    places = from_word_to_word(stream)
    if len(places) < 2:
        raise ValueError(words("short"))
    if not stream.sites:
        raise ValueError(words("closed", model=model_name(recording)))
    left = MeasureContext.of(run).recurrent_gradient()
    rows = window(len(places), (0, len(places) - 1), MOST_TOKENS)
    tokens = [stream.tokens[at] for at in places]
    n = len(places)
    numbers = {"gradient_left": Written.by(power, left[0], 3)}
    slots = {
        **{"first": tokens[0], "last": tokens[-1], "n": n, "steps": plural(n - 1, "state")},
        **{"left": numbers["gradient_left"].text, "width": NETWORK_WIDTH, "networks": N_NETWORKS},
    }
    relay = Relay(
        words("picture", **slots),
        truncation_note(len(rows), n),
        words=tuple(tokens[at] for at in rows),
        values=left[rows],
        text=str(slots["left"]),
        arc=words("arc"),
        state=words("state", **slots),
    )
    clock = Bars(
        words("clock"),
        columns=(words("steps"),),
        rows=(
            BarRow(words("network"), (float(n),), (str(n),)),
            BarRow(words("attention"), (1.0,), ("1",)),
        ),
    )
    factor = mean_factor(float(left[0]), n - 1)
    each_step = Facts(facts=((factor.text, words("factor")),))
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(relay, Stack(figures=(clock, each_step))),
        table={"token": tokens, "gradient left": left, "step": list(range(1, n + 1))},
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file="recurrent-bottleneck",
        formulas=("recurrence",),
        numbers=numbers,
    )
