"""Writes the measured tables of docs/openings.md anew: `python -m docs.openings`, or some of its
parts by their names. The text around them stays."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from explorer.analysis import offers
from explorer.analysis.offers import CHANGE, HEAD, MODELS, WORD, Offer
from explorer.screens.heads import HeadOnShow
from explorer.screens.screen import screen
from explorer.text import findings as findings_text
from explorer.text import gallery, places
from explorer.text import offers as offers_text
from explorer.wording.markdown_escape import plain
from models.example_texts import CONTINUED_TEXT, EXAMPLES
from models.runtime import registry
from models.runtime.run import Run

FILE = Path(__file__).with_name("openings.md")
BENCHMARKS = FILE.parent.parent / "benchmarks"
WAITER = "The waiter brought the soup but it was cold."
# The sentence that each model opens on here, and models with tested heads.
OPENED = {
    "encoder": WAITER,
    "minilm": WAITER,
    "smollm2": CONTINUED_TEXT,
    "decoder": EXAMPLES["Shyam from Nepal"],
    "translator": WAITER,
}
TESTED = ("encoder", "minilm", "smollm2")
EIGHT = (
    WAITER,
    "Peter read the letter twice because it was so short.",
    "The wolf followed the sheep because they were slow.",
    "The farmer sold the cows because they were old.",
    "The old man fed the birds because they were hungry.",
    "The man took the boys home because they were tired.",
    "The nurse told the surgeon that she had forgotten the keys.",
    "The woman saw the man when he opened the door.",
)
KINDS = (CHANGE, HEAD, WORD, MODELS)
MOST = 1000  # sentences, of any part


def sixty() -> list[str]:
    """The sentences that no head was chosen by."""
    lines = (BENCHMARKS / "pronoun_votes.txt").read_text("utf-8").splitlines()
    return [re.sub(r"[\[\]{}()]", "", line) for line in lines if line]


def thirty() -> list[str]:
    """Sentences that were looked at for an opening."""
    return (BENCHMARKS / "openings.txt").read_text("utf-8").splitlines()


def vote_text(text: str, model: str) -> str:
    """The clearest vote of a model's tested heads on a text: "it: soup 2, waiter 1"."""
    recording = Run(model, text).recording()
    vote = offers.first_vote(recording)
    if vote is None:
        return "no vote"
    counts: dict[str, int] = {}
    for each in vote.ballots:
        counts[each.word] = counts.get(each.word, 0) + 1
    grouped = offers.words.words(recording.streams[0], recording.text)
    said = ", ".join(f"{noun} {n}" for noun, n in sorted(counts.items(), key=lambda x: -x[1]))
    divided = " (divided)" if vote.noun is None else ""
    return f"*{grouped.labels[vote.row]}*: {said}{divided}"


def answer_text(text: str, model: str) -> str:
    """The model's answer at the place that the offers are about, with its probability."""
    answer = offers.answer_of(Run(model, text).recording())
    if answer is None:
        return "–"
    return f"{answer.name} {100 * answer.p[answer.id]:.0f} %"


def made_on(text: str, model: str) -> dict[str, Offer]:
    """The offers of a text by their kind, beside the other models with tested heads."""
    return {each.kind: each for each in offers.offers(Run(model, text), TESTED)}


def measured(offer: Offer | None) -> str:
    """The measure of an offer, for a cell: "L1 H7: it 56 → 5 %, he 31 → 73 %"."""
    if offer is None:
        return "–"
    if offer.votes:
        first, second = offer.votes
        to = f"{second.noun} {second.n_votes}"
        what = f"{offer.old} → {offer.new}" if offer.kind == CHANGE else offer.new
        return f"{what}: {first.noun} {first.n_votes} → {to}"
    what = f"L{offer.layer} H{offer.head}" if offer.kind == HEAD else offer.old
    shown = ", ".join(
        f"{each.word} {100 * each.before:.0f} → {100 * each.after:.0f} %"
        for each in offer.guesses[:2]
    )
    return f"{what}: {shown}"


# ---- the parts -----------------------------------------------------------------------------------


def opening(model: str) -> Iterator[str]:
    """A model on the sentence that it opens on: its vote, its answer, its offers in words."""
    text = OPENED[model]
    yield f"**{model}** on “{text}”"
    yield ""
    yield f"Vote: {vote_text(text, model)}. Answer: {answer_text(text, model)}."
    yield ""
    made = made_on(text, model)
    if not made:
        yield "No offer."
        return
    yield "| offer | what happens | measured |"
    yield "|---|---|---|"
    for each in made.values():
        cells = offers_text.what(each), offers_text.result(each).rstrip("."), measured(each)
        yield f"| {' | '.join(cells)} |"


def counted(texts: Callable[[], list[str]], models: Sequence[str], most: int) -> Iterator[str]:
    """The number of some sentences on which each offer passes, model by model."""
    yield "| model | sentences | leads | change | a head out | a word out | another model |"
    yield "|---|--|--|--|--|--|--|"
    some = texts()[:most]
    for model in models:
        every = [made_on(each, model) for each in some]
        n_leading = sum(offers.answer_of(Run(model, each).recording()) is not None for each in some)
        counts = {kind: sum(kind in made for made in every) for kind in KINDS}
        yield (
            f"| {model} | {len(some)} | {n_leading} | {counts[CHANGE]} | {counts[HEAD]} | "
            f"{counts[WORD]} | {counts[MODELS]} |"
        )


def eight(models: Sequence[str], most: int) -> Iterator[str]:
    """The eight openings of the encoder: vote, hidden word, and what each offer does."""
    yield "| sentence | vote | hidden word | change | head out | word out | another model |"
    yield "|---|---|---|---|---|---|---|"
    for text in EIGHT[:most]:
        made = made_on(text, "encoder")
        cells = [text, vote_text(text, "encoder"), hidden(text)]
        yield f"| {' | '.join([*cells, *(measured(made.get(kind)) for kind in KINDS)])} |"


def hidden(text: str) -> str:
    """The probability of the word of the vote where it is hidden, and what leads there."""
    run = Run("encoder", text)
    recording = run.recording()
    place = offers.travelling_word(recording)
    if place is None:
        return "–"
    read = run.under((offers.HideToken(place),)).recording()
    p = offers.probabilities(read, place)
    own, best = int(recording.streams[0].ids[place]), int(p.argmax())
    (label,) = registry.load("encoder").labels([best])
    word = recording.streams[0].tokens[place]
    return f"{word} {p[own]:.2f}" + ("" if own == best else f", behind {label} {p[best]:.2f}")


def menu(models: Sequence[str], most: int) -> Iterator[str]:
    """Each example of the menu: votes and offers, model by model."""
    yield "| example | model | vote | answer | change | head out | word out | another model |"
    yield "|---|---|---|---|---|---|---|---|"
    for title, text in list(EXAMPLES.items())[:most]:
        for model in models:
            made = made_on(text, model)
            cells = [title, model, vote_text(text, model), answer_text(text, model)]
            yield f"| {' | '.join([*cells, *(measured(made.get(kind)) for kind in KINDS)])} |"


def tabs(model: str, most: int) -> Iterator[str]:
    """The opening of each view of the app on a model's sentence: the first sentence of its first
    panel, or why there is none."""
    yield "| tab | it opens on |"
    yield "|---|---|"
    for row in list(places.ROWS)[:most]:
        if not (places.ROWS[row].panels or places.ROWS[row].views or row == "heads"):
            continue  # it is worked on by hand
        try:
            shown = screen({"tab": row, "model": model, "text": OPENED[model]})
            panel = next(shown.panels(), None)
            cell = f"nothing: {next(iter(shown.missing.values()), '')}"
            if row == "heads":
                one = HeadOnShow.of(shown.run, shown.chosen, shown.words()).one
                cell = findings_text.statement(one, findings_text.quoted) if one else "nothing"
            elif panel is not None and (says := FIRST.match(panel.finding)):
                cell = says[0]
        except ValueError as error:
            cell = f"nothing: {error}"
        yield f"| {places.title(row)} | {plain(cell).replace('|', chr(92) + '|')} |"


def finds(most: int) -> Iterator[str]:
    """The finds above the concepts, as they are measured now."""
    yield "| find | it passes | what is told of it |"
    yield "|---|---|---|"
    for title, _, passes, sentence in islice(gallery.finds(), most):
        yield f"| {title} | {'yes' if passes else 'no'} | {sentence or '–'} |"


FIRST = re.compile(r".*?[.!?](?=\s|$)|.+")  # sentence

Part = Callable[[Sequence[str], int], Iterable[str]]
PARTS: dict[str, Part] = {
    **{
        f"tabs {model}": partial(lambda name, models, most: tabs(name, most), model)
        for model in OPENED
    },
    "finds": lambda models, most: finds(most),
    **{
        f"opening {model}": partial(lambda name, models, most: opening(name), model)
        for model in OPENED
    },
    "sixty": lambda models, most: counted(sixty, [*filter(TESTED.__contains__, models)], most),
    "thirty": lambda models, most: counted(thirty, [*filter(TESTED.__contains__, models)], most),
    "eight": eight,
    "menu": lambda models, most: menu([each for each in models if each != "translator"], most),
}


def document(
    text: str,
    parts: Iterable[str] = PARTS,
    models: Sequence[str] = tuple(OPENED),
    most: int = MOST,
) -> str:
    """The document with its parts as the code measures them: of these models, and of at most so
    many sentences each."""
    for name in parts:
        model = name.partition(" ")[2]
        if model and model not in models:
            continue
        text = filled(text, name, PARTS[name](models, most))
    return text


def filled(text: str, name: str, lines: Iterable[str]) -> str:
    """The document with other lines in one of its parts."""
    start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    pattern = f"(?s)(?<={re.escape(start)}).*?(?={re.escape(end)})"
    made = "\n".join(lines)
    return re.sub(pattern, lambda _: made, text)


if __name__ == "__main__":
    for each in sys.argv[1:] or PARTS:
        measured_lines = list(PARTS[each](tuple(OPENED), MOST))
        FILE.write_text(filled(FILE.read_text("utf-8"), each, measured_lines), "utf-8")
