"""The panel on the pieces of a word: the merges that made them, and the same word in other models'
tokenizers."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from explorer.analysis import word_classes
from explorer.analysis.findings import word_groups
from explorer.analysis.words import Groups
from explorer.figures.formatting import Written, plural
from explorer.figures.kinds import BarRow, Bars, Figure, Stack, TokenRow, truncation_note, window
from explorer.panels import spec
from explorer.panels.choice import OPENS
from explorer.panels.masks import unmasked
from explorer.panels.selection import TOKEN, place_of, token_of_text
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models import model_names
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.tokens import merges as merges_tokens

CONCEPT = "tokens"
OTHERS = ("decoder", "encoder", "translator", "minilm")  # whose tokenizers read the word too
N_MODELS = 4
BYTE = "\ufffd"  # as a letter
MOST_MERGES = 3
MOST_WORDS = 40
DOT = " "  # between the pieces of a word


def most_pieces(run: Run, chosen: Any) -> int:
    """The first token of the word of most pieces, of several the last."""
    groups = _groups(run)
    sizes = np.where([_is_word(groups, at) for at in range(len(groups.labels))], groups.sizes, 0)
    return groups.starts[len(sizes) - 1 - int(sizes[::-1].argmax())]


def _groups(run: Run) -> Groups:
    recording = unmasked(run)
    return word_groups(recording, recording.streams[0].name)


def _is_word(groups: Groups, at: int) -> bool:
    return word_classes.is_word(groups.labels[at]) and not groups.special[at]


InPieces = Annotated[int, replace(TOKEN, suits=most_pieces, checked=token_of_text)]


@spec.panel
def merges(run: Run, token: InPieces = OPENS) -> Panel:
    """The merges of byte pair encoding that make a word's pieces, in their order, and the same word
    by the tokenizers of four models.

    token: one of the word. Raises ValueError for a token that is not there.
    """
    words, recording = sentences(CONCEPT, "merges"), unmasked(run)
    stream, groups = recording.streams[0], _groups(run)
    token = place_of("token", token, len(stream.tokens))
    group = int(groups.of[token])
    word = groups.labels[group]
    spoken = [at for at in range(len(groups.labels)) if _is_word(groups, at)]
    n_tokens = int(groups.sizes[spoken].sum())
    made = _merges(run, stream, token)
    start = groups.starts[group]
    pieces = stream.tokens[start : start + int(groups.sizes[group])]
    slots: dict[str, Any] = {
        **{"word": word, "pieces": DOT.join(pieces), "count": plural(len(pieces), "token")},
        **{"words": plural(len(spoken), "word"), "tokens": plural(n_tokens, "token")},
    }
    kind = "no_merges"
    if made is not None:
        is_cut = len(made.ids) < len(pieces)  # before any merge, as at a sign
        kind = "cut" if is_cut else "several" if len(made.ids) > 1 else "whole"
        slots |= {"n": plural(len(made.steps), "merge"), "all": f"{made.n:,}"}
        slots["part"] = "".join(made.letters).strip("␣")
    bars, table = _by_model(run, word, slots)
    return Panel(
        title=words("title"),
        finding=words(kind, **slots) + " " + words("text", **slots),
        figures=(_words_in_pieces(groups, group), *_steps(made, slots), bars),
        table=table,
        details=words.lines("details"),
        caption=(words("caption"),),
        file=f"tokens-{token}",
        numbers={"pieces": Written.count(len(pieces))},
    )


def _merges(run: Run, stream: Any, token: int) -> merges_tokens.Merges | None:
    """The merges of the word that holds a token, None where the tokenizer merges no pairs."""
    if stream.special[token]:
        return None
    at = int((~stream.special[:token]).sum())
    try:
        made = merges_tokens.merges(run.loaded.tokenizer.rules, run.text, at)
    except (ValueError, AttributeError):  # another rule, or a model without one
        return None
    return made if int(stream.ids[token]) in made.ids else None


def _words_in_pieces(groups: Groups, group: int) -> TokenRow:
    """The words of the text, each with the number of its tokens."""
    words = sentences(CONCEPT, "merges")
    places = window(len(groups.labels), (group,), MOST_WORDS).tolist()
    return TokenRow(
        title=words("row"),
        note=truncation_note(len(places), len(groups.labels)),
        select=("token",),
        tokens=tuple(groups.labels[at] for at in places),
        selected=places.index(group),
        texts=tuple(str(groups.sizes[at]) for at in places),
        keys=tuple(str(groups.starts[at]) for at in places),
        special=tuple(groups.special[at] for at in places),
    )


def _steps(made: merges_tokens.Merges | None, slots: dict[str, Any]) -> tuple[Figure, ...]:
    """The pieces after each merge, one below the other, the new one framed; none of a word whose
    pieces are bytes, which are no letters."""
    if made is None or BYTE in made.letters:
        return ()
    words, steps = sentences(CONCEPT, "merges"), made.steps[-MOST_MERGES:]
    rows = [
        TokenRow(title=words("letters", **slots | {"word": slots["part"]}), tokens=made.letters)
    ]
    rows += [
        TokenRow(
            title=words("merge", rank=f"{each.rank + 1:,}", piece=each.pieces[each.at], **slots),
            tokens=each.pieces,
            marked=(each.at,),
        )
        for each in steps
    ]
    left_out = len(made.steps) - len(steps)
    rows[0] = replace(
        rows[0],
        note=words("left_out", merges=plural(left_out, "earlier merge")) if left_out else "",
    )
    return (Stack(figures=tuple(rows)),)


def _by_model(run: Run, word: str, slots: dict[str, Any]) -> tuple[Bars, dict[str, Any]]:
    """The word by the tokenizers of four models, the run's own first."""
    words, rows = sentences(CONCEPT, "merges"), []
    others = [name for name in OTHERS if name in model_names.names() and name != run.model]
    table: dict[str, Any] = {"model": [], "tokens of its vocabulary": [], "pieces": []}
    for name in (run.model, *others)[:N_MODELS]:
        model = run.loaded if name == run.model else loaded(name)
        if (rules := model.tokenizer.rules) is None:  # a tokenizer in Python
            continue
        read = merges_tokens.ids_of(rules, word)
        ids = [id for id in read if id not in model.tokenizer.special]
        pieces = DOT.join(model.labels(ids))
        label = words("model", model=model_names.title(name), n=f"{model.card.n_vocab:,}")
        rows.append(
            BarRow(label, (float(len(ids)),), (pieces,), selected=name == run.model, key=None)
        )
        for column, cell in zip(table, (name, model.card.n_vocab, pieces)):
            table[column].append(cell)
    return Bars(
        title=words("models", **slots), columns=(words("n_pieces"),), rows=tuple(rows)
    ), table
