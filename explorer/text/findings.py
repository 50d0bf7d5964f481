"""Findings in words: a headline that is one short sentence, and a longer one with the evidence and
the chance level.

They state measurements and nothing of grammar: a word attends to another, it does not stand for it.
In Markdown, words of the text escaped; `plain` gives the same for a place without Markdown."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from explorer.analysis import findings
from explorer.analysis.findings import Finding
from explorer.analysis.formatting import fixed, percent, plural, signed
from explorer.analysis.head_naming import PRONOUN, SINK_RATIO, Head
from explorer.text.markdown_escape import literal

Mark = Callable[[str], str]
Words = tuple[str, ...]  # a finding's words as they are written in a sentence
LONGEST = 24  # characters of a word that are said
# What heads do by their names: of several heads, of one.
DOES = {
    "sink": ("are sinks on {0}", "is a sink on {0}"),
    "previous": ("attend to the previous token", "attends to the previous token"),
    "next": ("attend to the next token", "attends to the next token"),
    "self": ("attend to the token itself", "attends to the token itself"),
    "diagonal": ("follow the source in its order", "follows the source in its order"),
    "anti-diagonal": ("follow the source backwards", "follows the source backwards"),
}
SHORT = {"attn": "attention", "ffn": "FFN"}  # a sub-layer on a button
FEW = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def marked(word: str) -> str:
    """A word of the text in a sentence of Markdown: slanted, as it was typed."""
    return f"*{literal(_short(word))}*"


def quoted(word: str) -> str:
    """A word of the text in a sentence without marks."""
    return f"“{_short(word)}”"


def _short(word: str) -> str:
    word = " ".join(word.split()) or "␣"
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"


def _link(one: Finding, words: Words, mark: Mark) -> str:
    return f"{where(one)}: {words[0]} attends to {words[1]} ({fixed(one.value)})"


# A finding in one short sentence, by its kind.
HEADLINES: dict[str, Callable[[Finding, Words, Mark], str]] = {
    findings.LINK: _link,
    findings.NEAR_LINK: _link,
    findings.ALIGNED: _link,
    findings.INDUCTION: lambda one, words, mark: (
        f"{where(one)}: a repeated word attends to the token after its first occurrence, as "
        f"{words[0]} to {words[1]} ({fixed(one.value)})"
    ),
    findings.SAME_WORD: lambda one, words, mark: (
        f"{where(one)}: a repeated word attends to its other occurrences, as {words[0]} does "
        f"({fixed(one.value)})"
    ),
    findings.CROSSED: lambda one, words, mark: (
        f"{where(one)}: {words[0]} attends to {words[2]}, {words[1]} to {words[3]}: they cross "
        f"({fixed(one.value)})"
    ),
    findings.DOUBLE: lambda one, words, mark: (
        f"{where(one)}: {words[0]} and {words[1]} both attend to {words[2]} ({fixed(one.value)})"
    ),
    findings.LEFT_OUT: lambda one, words, mark: (
        f"Hardly any word of the translation attends to {words[0]} (at most {fixed(one.value)} in "
        f"layer {one.layer})"
    ),
    findings.REGULARITY: lambda one, words, mark: (
        f"{where(one)} {DOES[one.words[0]][1]}: {percent(one.value)}"
    ),
    findings.CHAT: lambda one, words, mark: (
        f"{where(one)}: where the answer begins, {percent(one.value)} of the attention goes to "
        f"{one.words[0]}"
    ),
    findings.SHORT: lambda one, words, mark: (
        f"{int(one.value)} tokens are too few to show a pattern"
    ),
    findings.CROWD: lambda one, words, mark: crowd(one, mark),
    findings.SETTLED: lambda one, words, mark: (
        f"The prediction {words[0]} has rank 1 from {site(one.site)} on"
    ),
    findings.PUSHED: lambda one, words, mark: (
        f"{_part(one)} makes the largest contribution to {words[0]} ({signed(one.value)})"
    ),
    findings.TURNED: lambda one, words, mark: (
        f"Largest change of direction: {words[0]}, by {one.value:.0f}° in {site(one.site)}"
    ),
    findings.MOVED: lambda one, words, mark: (
        f"{words[0]} receives the largest attention update: {percent(one.value)} of its vector"
    ),
}


def headline(one: Finding, mark: Mark = marked) -> str:
    """A finding in one short sentence."""
    return HEADLINES[one.kind](one, tuple(mark(word) for word in one.words), mark)


def statement(one: Finding, mark: Mark = marked) -> str:
    """A finding in one short sentence without its head, which is named below it."""
    return headline(one, mark).removeprefix(f"{where(one)}: ")


def _turned_button(one: Finding, words: Words) -> str:
    layer, place, *_ = one.site.split(".")
    return f"Largest change of direction: {words[0]}, L{layer} {SHORT.get(place, place)}"


def _link_button(one: Finding, words: Words) -> str:
    return f"{words[0]} → {words[1]} {fixed(one.value)}"


# A finding on a button, by its kind.
BUTTONS: dict[str, Callable[[Finding, Words], str]] = {
    findings.LINK: _link_button,
    findings.NEAR_LINK: _link_button,
    findings.ALIGNED: _link_button,
    findings.INDUCTION: lambda one, words: "Induction",
    findings.SAME_WORD: lambda one, words: "Repeated tokens",
    findings.REGULARITY: lambda one, words: f"L{one.layer} H{one.head} {DOES[one.words[0]][1]}",
    findings.CHAT: lambda one, words: f"Answer → {one.words[0]} {percent(one.value)}",
    findings.SHORT: lambda one, words: headline(one),
    findings.CROSSED: lambda one, words: f"{words[0]} and {words[1]} cross",
    findings.DOUBLE: lambda one, words: f"{words[0]}, {words[1]} → {words[2]}",
    findings.LEFT_OUT: lambda one, words: f"{words[0]} is not attended to",
    findings.CROWD: lambda one, words: crowd(one).partition("; ")[0],
    findings.SETTLED: lambda one, words: f"Prediction: {words[0]}, from {site(one.site)} on",
    findings.PUSHED: lambda one, words: f"Contributions to {words[0]}",
    findings.TURNED: _turned_button,
    findings.MOVED: lambda one, words: f"Largest attention update: {words[0]}",
}


def short(one: Finding) -> str:
    """A finding on a button."""
    return BUTTONS[one.kind](one, tuple(marked(word) for word in one.words))


def evidence(one: Finding, mark: Mark = marked) -> str:
    """A finding with its evidence: the number, and its baseline. One or two sentences."""
    words = tuple(mark(word) for word in one.words)
    value, chance = fixed(one.value), fixed(one.chance)
    more = _also(one)
    if one.kind in (findings.LINK, findings.NEAR_LINK, findings.ALIGNED):
        return (
            f"In {where(one, start=False)}, {words[0]} gives {words[1]} {value} of its attention. "
            f"No other row of this head gives {words[1]} more than {chance}.{more}"
        )
    if one.kind in (findings.INDUCTION, findings.SAME_WORD):
        rows = dict(one.counts)["rows"]
        what = (
            "the token after their first occurrence"
            if one.kind == findings.INDUCTION
            else "their other occurrences"
        )
        return (
            f"{plural(rows, 'repeated word')} give {what} {value} of their attention on average; "
            f"uniform attention would give {chance}.{more}"
        )
    if one.kind == findings.CROSSED:
        return (
            f"Both give at least {value} of their attention there. No other row of this head gives "
            f"either word more than {chance}.{more}"
        )
    if one.kind == findings.DOUBLE:
        return (
            f"Both give it at least {value} of their attention. No other row of this head gives it "
            f"more than {chance}.{more}"
        )
    if one.kind == findings.LEFT_OUT:
        return (
            f"No head of layer {one.layer} gives it more than {value} in any row. Half of the "
            f"source’s words receive {chance} or more from some row."
        )
    if one.kind == findings.CHAT:
        return (
            f"Uniform attention would give {percent(one.chance)} of a row to {one.words[0]}.{more}"
        )
    if one.kind in (findings.CROWD, findings.REGULARITY, findings.SHORT):
        return _by_name(one) + more
    if one.kind in (findings.SETTLED, findings.PUSHED):
        return _of_answer(one) + _of_first_piece(words)
    if one.kind == findings.TURNED:
        return f"The other words rotate by {one.chance:.0f}° there, on average."
    return f"This is a mean over the layers. The other words have {percent(one.chance)}."


def _of_answer(one: Finding) -> str:
    """Evidence for a finding about the model's prediction."""
    if one.kind == findings.PUSHED:
        return (
            f"It adds {signed(one.value)} to the word’s logit. The mean size of a contribution is "
            f"{fixed(one.chance)}."
        )
    return (
        f"That is state {int(one.value) + 1} of {dict(one.counts)['sites']}. At the other tokens "
        f"the prediction has rank 1 from state {fixed(one.chance + 1, 1)} on average."
    )


def _of_first_piece(words: Words) -> str:
    """Of which piece the numbers are, where the predicted word has several."""
    return f" These numbers are of its first piece, {words[1]}." if len(words) > 1 else ""


def _by_name(one: Finding) -> str:
    """Evidence for a finding about heads' names."""
    if one.kind == findings.CROWD:
        return (
            "Each head is counted under its name. A sink gives the first and the special tokens at "
            f"least {SINK_RATIO} times what uniform attention would give."
        )
    if one.kind == findings.SHORT:
        return f"A head can be named from {int(one.chance)} tokens on. Type a longer sentence."
    counts = dict(one.counts)
    return (
        f"Uniform attention would give {percent(one.chance)}. The pattern holds for "
        f"{counts['matches']} of {counts['rows']} tokens."
    )


def where(one: Finding, start: bool = True) -> str:
    """The head a finding is seen in."""
    return f"{'L' if start else 'l'}ayer {one.layer}, head {one.head}"


def named(head: Head) -> str:
    """A head by its pattern on this text, as a headline."""
    name = head.name[0].upper() + head.name[1:]
    if head.name == PRONOUN:
        return f"{name} (in {head.n_matches} of {head.n_queries} test sentences)"
    return f"{name} ({fixed(head.score)})" if isfinite(head.score) else name


def row(query: str, key: str, weight: float, mark: Mark = marked) -> str:
    """The key that gets most of one token's attention, as a headline."""
    return f"{mark(query)} attends most to {mark(key)} ({fixed(weight)})"


def crowd(one: Finding, mark: Mark = marked) -> str:
    """The names of the heads of an attention: "22 of 32 heads are sinks on [CLS] or [SEP]; two
    attend to the previous token, one attends to the next token"."""
    special = " or ".join(literal(token) if mark is marked else token for token in one.words[:2])
    parts = []
    for at, (name, number) in enumerate(sorted(one.counts, key=lambda each: -each[1])):
        many = str(number) if at == 0 or number >= len(FEW) else FEW[number]
        does = DOES[name][number == 1].format(special or "the first token")
        parts.append(f"{many} of {one.of} heads {does}" if at == 0 else f"{many} {does}")
    sentence = "; ".join((parts[0], ", ".join(parts[1:]))) if len(parts) > 1 else parts[0]
    return sentence.replace("1 of 1 heads", "The one head")


def question(one: Finding, mark: Mark = marked) -> str:
    """A comparison to try with a retyped word; "" where there is none."""
    old, new = one.retype
    return (
        f"Change {mark(old)} to {mark(new)}: does the weight {fixed(one.value)} on "
        f"{mark(one.words[1])} change?"
        if old
        else ""
    )


def site(name: str) -> str:
    """A site of the residual stream in words: "1.attn.normed" is "layer 1’s attention"."""
    number, _, rest = name.partition(".")
    if not number.isdecimal():
        return {"embed": "the embedding", "embed+pos": "the embedding"}.get(name, "the last layer")
    place = {"attn": "attention", "cross": "cross-attention", "ffn": "feed-forward network"}
    return f"layer {number}’s {place.get(rest.partition('.')[0], 'end')}"


def _part(one: Finding) -> str:
    return where(one) if one.site == "head" else f"Layer {one.layer}’s feed-forward network"


def _also(one: Finding) -> str:
    if one.also <= 0:
        return ""
    many = FEW[one.also] if one.also < len(FEW) else str(one.also)
    return f" {many.capitalize()} more {'head shows' if one.also == 1 else 'heads show'} it too."
