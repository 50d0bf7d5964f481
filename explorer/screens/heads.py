"""Heads as a screen: all heads, one of them, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from explorer.analysis import attention as attention_analysis
from explorer.analysis import coreference, head_naming, opening
from explorer.analysis.attention import HeadView
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import (
    ALIGNED,
    CROWD,
    PAIRS,
    REGULARITY,
    Finding,
    Link,
    select_findings,
    word_groups,
)
from explorer.analysis.terminology import sees_all, windowed
from explorer.figures.formatting import hundredths
from explorer.panels import anatomy, attention
from explorer.panels.choice import EVERY, TRUE, as_taken, declared, resolve
from explorer.panels.selection import Selection, select
from explorer.panels.spec import Panel
from explorer.text import attention as attention_text
from explorer.text import findings
from explorer.text import head_naming as head_naming_text
from explorer.wording import model_descriptions, templates
from explorer.wording.markdown_escape import literal
from models.own import model_card
from models.runtime.run import Run

TAB = templates.sentences("heads", "tab")
Words = Mapping[str, str]
Chosen = Mapping[str, Any]
ASKED = (*declared(attention.head), *declared(attention.heads))
# The words of an address that ask for one head, to which the vote of several gives way.
OF_ONE_HEAD = {each.name for each in declared(attention.head)} - {
    *("token", "attention"),
    *(each.name for each in declared(attention.heads) if each.argument not in ("layer", "head")),
} | {"weight_at", "verify"}


class Later(Mapping[str, Any]):
    """Entries that are made when the first of them is asked for."""

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    @cached_property
    def _arguments(self) -> Mapping[str, Any]:
        return self._make()

    def __getitem__(self, name: str) -> Any:
        return self._arguments[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arguments)

    def __len__(self) -> int:
        return len(self._arguments)


# ---- the panels and their choices ----------------------------------------------------------------


def choices(run: Run, words: Words) -> tuple[Chosen, Mapping[str, str]]:
    """The arguments of the panel of one head, and a sentence on each word that is not followed, by
    its name; both when they are asked for: all heads are drawn before it is known which one is told
    of."""
    known = {"attention": ""} if len(run.recording().attention) == 1 else {}
    asks = any(map(words.get, OF_ONE_HEAD))

    @cache
    def of_one() -> tuple[dict[str, Any], dict[str, str]]:
        made, why_not = resolve(declared(attention.head), run, words, known)
        token = made["token"]
        if asks or (words.get("token") and token in (None, EVERY)):
            return made, why_not
        on = _selection(run, made)
        if token in (None, EVERY):
            link = opening.word_link(on.recording, on.attention.name)
            made |= link._asdict() if link else {}
        elif words.get("token") and on.facts.vote_on(on.attention.name, token) is None:
            link = opening.word_link(on.recording, on.attention.name, token)
            made |= {"layer": link.layer, "head": link.head} if link else {}
        return made, why_not

    chosen = Later(lambda: of_one()[0])

    def refused() -> dict[str, str]:
        why_not = of_one()[1] | _of_all(run, words, chosen)[1]
        return {name: why for name, why in why_not.items() if words.get(name) != EVERY}

    return chosen, Later(refused)


def _of_all(run: Run, words: Words, chosen: Chosen) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments of the panel of all heads, which marks none: the browser does."""
    name = "" if len(run.recording().attention) == 1 else chosen["attention"]
    known = {"layer": EVERY, "head": EVERY, "attention": name}
    return resolve(declared(attention.heads), run, words, known)


def makers(
    run: Run, chosen: Chosen, words: Words, refused: Words
) -> Iterator[tuple[str, Callable[[], Panel]]]:
    """The names of the panels, each with what makes it. chosen and refused: as of `choices`; words:
    of the address."""

    def all_heads() -> Panel:
        of_all, _ = _of_all(run, words, chosen)
        return attention.cached_heads(select(run, attention=of_all["attention"]), of_all)

    recording = run.recording()
    facts = RecordingFacts(recording)
    if not any(facts.votes(each.name) for each in recording.attention):
        yield "attention.heads", all_heads  # which needs none of what is found
    sentence = sentence_panel(run, chosen, words, refused)
    at = [chosen[name] for name in ("layer", "head", "token", "attention")]
    if sentence == VOTES:
        yield VOTES, lambda: attention.votes(run, *at[2:])
    elif sentence == READS:
        yield READS, lambda: attention.reads(run, *at)
    if any(facts.votes(each.name) for each in recording.attention):
        yield "attention.heads", all_heads
    if sentence:
        return
    yield "attention.head", lambda: attention.cached_head(_selection(run, chosen), chosen)
    if words.get("verify") == TRUE:
        yield "anatomy.verified", lambda: HeadOnShow.of(run, chosen, words).verified()


ASKED_WORDS = ("layer", "token", "source")  # of an address that asks for a head or a word
VOTES, READS = "attention.votes", "attention.reads"


def sentence_panel(run: Run, chosen: Chosen, words: Words, refused: Words) -> str:
    """The panel that has the sentence with lines from the selected word, where no head is asked
    for: the vote of the tested heads on a pronoun, else what the word reads in one head; "" where
    there is no such word. words: of the address; refused: those that are not followed."""
    if any(words.get(name) and name not in refused for name in OF_ONE_HEAD):
        return ""
    if chosen["token"] in (None, EVERY):
        return ""
    on = _selection(run, chosen)
    if on.facts.vote_on(on.attention.name, chosen["token"]) is not None:
        return VOTES
    return READS if on.facts.is_learned() and attention.read_words(on) is not None else ""


def _selection(run: Run, chosen: Chosen) -> Selection:
    """The head on show, and the word."""
    at = {name: chosen[name] for name in ("layer", "head", "attention")}
    token = chosen["token"]
    return select(run, token=0 if token in (None, EVERY) else token, **at)


def after(run: Run, chosen: Chosen, panel: str, said: Words, now: Words) -> dict[str, str]:
    """The words that change by a press in a panel: a head, whose word stays selected, or a word of
    the head on show. said: what the press gives; now: the words of the address."""
    if panel == "attention.head":
        display = attention.display_of(run, as_taken(chosen))
        return attention.after_press(_selection(run, chosen), display, said)
    is_open = "head" in said and not now.get("token") and not now.get("source")
    if is_open and (row := chosen["token"]) != EVERY:
        return {"token": str(row), **said}
    return dict(said)


def is_one_word(run: Run, words: Words) -> bool:
    """True for one text of a single word, where no head and no word is asked for."""
    recording = run.recording()
    asked = any(words.get(each, EVERY) != EVERY for each in (*ASKED_WORDS, "view"))
    return not asked and len(recording.streams) == 1 and attention.n_words(recording) == 1


# ---- what is told of the head --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeadOnShow:
    """The head of a screen, as its panel shows it, and the sentences around that.

    told: the finding of this head and the selected word, None where there is none. one: this one,
    or the first where nothing is chosen, which the headline tells, unless it is what several heads
    say and this head alone is shown. listed: the findings
    through which a reader steps. sentence: the panel that is shown in the place of this head's
    picture, as of `sentence_panel`. is_alone: the text is one word, and nobody asked for a head."""

    selection: Selection
    view: HeadView
    told: Finding | None
    one: Finding | None
    listed: tuple[Finding, ...]
    sentence: str = ""
    is_alone: bool = False

    @classmethod
    def of(cls, run: Run, chosen: Chosen, words: Words) -> HeadOnShow:
        """That of a run under these choices. words: those of the address that are followed."""
        on, chosen = _selection(run, chosen), as_taken(chosen)
        row = chosen["token"]
        display = attention.display_of(run, chosen)
        link = attention.link_on_screen(on, row)
        view = attention.view_of(on, row, chosen["key"], display, link)
        every = on.facts.leading_findings()
        listed = tuple(select_findings(every))
        here = "heads", on.attention.name, -1 if row is None else row
        headlined = next(
            (
                each
                for each in every
                if (each.page, each.attention, each.query) == here
                and (on.layer, on.head) in each.shown_in
            ),
            None,
        )
        is_chosen = any(words.get(each, EVERY) != EVERY for each in (*ASKED_WORDS, "view"))
        sentence = sentence_panel(run, chosen, words, {})
        one = headlined if is_chosen or sentence == READS else next(iter(listed), None)
        return cls(on, view, headlined, one, listed, sentence, is_one_word(run, words))

    @property
    def row(self) -> int | None:
        """The selected row, None for none."""
        return self.view.tokens[0]

    def verified(self) -> Panel:
        """The calculation of the open weight, and the laws of the recording."""
        on, cell = self.selection, self.view.opened
        return anatomy.verified(on.run, on.layer, on.head, cell.query, cell.key, attention=on.name)

    def strongest_of(self, pattern: str) -> dict[str, int]:
        """The strongest head of a pattern, {} where there is none and where this one has it."""
        on = self.selection
        scores = {each[:2]: each.score for each in on.heads if each.name == pattern}
        if not scores or (on.layer, on.head) in scores:
            return {}
        layer, head = max(scores, key=scores.__getitem__)
        return {"layer": layer, "head": head}

    @property
    def following(self) -> Finding | None:
        """The listed finding after the one that is told, None where there is no other."""
        places = [at for at, each in enumerate(self.listed) if each == self.one]
        first = next(iter(self.listed), None)
        following = self.listed[(places[0] + 1) % len(self.listed)] if places else first
        return None if following == self.one else following

    # The headline.

    @property
    def is_beside_vote(self) -> bool:
        """True where this head alone is shown of several that say what a pronoun stands for."""
        return self.one is not None and bool(self.one.ballots) and not self.sentence

    @property
    def _headlined(self) -> Finding | None:
        """The finding that the headline tells, None where it tells of the head's row."""
        return None if self.is_beside_vote else self.one

    @property
    def headline(self) -> str:
        """The headline: the finding, of the crowd the most alone; of a head of which there is none
        the key that gets most from the selected word, or the head's name."""
        one, on = self._headlined, self.selection
        if self.is_alone:
            return templates.sentences("heads", "head")("alone")
        if self.sentence == READS and (read := attention.read_words(on)) is not None:
            key = word_groups(on.recording, on.attention.query).labels[read.keys[0]]
            mark = lambda word: (
                f":primary[{findings.marked(word)}]" if word == key else findings.marked(word)
            )
            return attention.says_of_read(on, read, mark)
        if one is not None:
            is_crowd = one.kind == CROWD
            return findings.crowd(one).partition("; ")[0] if is_crowd else findings.coloured(one)
        if self.row is None:
            return findings.named(self.view.head)
        weights = on.attention.pattern[on.layer, on.head, self.row]
        best = int(weights.argmax())
        query = findings.marked(on.axes.rows[self.row]) if on.is_across else self._token(self.row)
        return findings.row(query, self._token(best), float(weights[best]))

    def _token(self, key: int) -> str:
        """Name in a sentence of a token of the columns."""
        axes = self.selection.axes
        end = (key == 0) - (key == len(axes.keys) - 1)
        return findings.token(axes.keys[key], axes.special[key], end)

    @property
    def evidence(self) -> str:
        """The evidence of the headline, of a head that votes how often it was right; "" of another
        head where no finding is told."""
        one, on = self.one, self.selection
        if one is None or self.is_alone:
            return ""
        if self.is_beside_vote:
            own = [each for each in one.ballots if (each.layer, each.head) == (on.layer, on.head)]
            return "".join(f"{findings.ballot(each)}\n\n" for each in own)
        return f"{findings.evidence(one)} {self.tested}\n\n"

    @property
    def tested(self) -> str:
        """Note on whether the head of a pronoun and a noun finds nouns in test sentences; "" for a
        vote, for any other finding, and where the model's heads were not tested."""
        one, on = self.one, self.selection
        if one is None or one.ballots or not one.stands_for:
            return ""
        if not coreference.is_tested(on.recording):
            return ""
        card = model_card.facts(on.recording.model.name)
        taught = model_descriptions.taught_head(card, (on.layer, on.head))
        return " ".join(filter(None, (attention_text.tested(self.view.head), taught)))

    @property
    def taught(self) -> str:
        """Note beside a vote on the heads that learned from another model's; "" where none did."""
        if self.one is None or not self.one.ballots:
            return ""
        return model_descriptions.taught_in_menu(
            model_card.facts(self.selection.recording.model.name)
        )

    @property
    def place(self) -> str:
        """The head, and what uniform attention would give."""
        n_layers, n_heads = self.selection.attention.pattern.shape[:2]
        one = self._headlined
        uniform = self.selection.facts.uniform_weight(one) if one else None
        return attention_text.place(self.view, n_layers * n_heads, self._label, uniform)

    @property
    def _label(self) -> str:
        """The name of the head beside a headline: where it explains why the words of the headline
        attend, and where the headline does not say it."""
        one, view, on = self._headlined, self.view, self.selection
        if one is None:
            return "" if self.row is None else view.label
        if one.query < 0:
            return "" if one.kind == REGULARITY else view.label
        pair = one.query, next(iter(one.keys), view.opened.key)
        explained = head_naming.explains(on.recording, on.attention, view.head, *pair)
        return view.head.name if explained else ""

    @property
    def between_tokens(self) -> str:
        """The weight between the tokens of a link, which can be computed, where that of its whole
        words is another; "" where it is the same."""
        one, on = self.one, self.selection
        if one is None or one.kind not in (*PAIRS, ALIGNED):
            return ""
        weight = hundredths(self.weight_of(one))
        if weight == hundredths(one.value):
            return ""
        row, column = map(findings.marked, self.words_of(one))
        n_query, n_key = on.facts.word_sizes(one)
        which, word, n = (
            ("tokens_of_key", one.words[1], n_key)
            if n_key > 1
            else ("tokens_of_query", one.words[0], n_query)
        )
        return " " + templates.sentences("heads", "head")(
            which,
            word=findings.marked(word),
            n=n,
            value=hundredths(one.value),
            row=row,
            column=column,
            weight=weight,
        )

    def weight_of(self, one: Finding) -> float:
        """The weight between the first tokens of a finding."""
        return float(self.selection.attention.pattern[one.layer, one.head, one.query, one.keys[0]])

    def words_of(self, one: Finding) -> tuple[str, ...]:
        """The labels of the first tokens of a finding, as far as they are there."""
        axes, row, key = self.selection.axes, one.query, one.keys[0]
        return (*axes.rows[row : row + 1], *axes.keys[key : key + 1])

    # Beside the panels.

    @property
    def who_attends(self) -> str:
        """The streams of rows and keys, of one attention of several and of one under a mask; "" for
        any other."""
        of = self.selection.attention
        if len(self.selection.recording.attention) == 1 and all(
            sees_all(mask) for _, mask in of.masks
        ):
            return ""
        who = templates.sentences("heads", "who")
        local = [windowed(mask) for _, mask in of.masks]
        window = ["window" if all(local) else "window_of_some"] if any(local) else []
        return " ".join([who(of.name), *map(who, window)])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what the picture of the head leaves out and its rows are named after."""
        left_out = attention_analysis.notes(self.view.matrix_view, self.view.choices)
        lines = [" ".join((*map(literal, left_out), TAB("measured_on_all")))] if left_out else []
        if self.selection.is_across:
            lines.append(attention_analysis.row_rule(self.selection.run.target))
        return tuple(lines)

    @property
    def summary(self) -> str:
        """The head's name and what it rests on, with the words of it that are told of."""
        on, head = self.selection, self.view.head
        link: Link | Finding | None = None
        if self.told is not None and self.told.kind in (*PAIRS, ALIGNED):
            link, pair = self.told, (self.told.query, self.told.keys[0])
        elif found := on.facts.link(on.attention.name, on.layer, on.head):
            link, pair = found, (found.query, found.key)
        cell, explained = None, False
        if link is not None:
            weight = float(on.attention.pattern[on.layer, on.head, *pair])
            cell = on.axes.rows[pair[0]], on.axes.keys[pair[1]], weight
            explained = head_naming.explains(on.recording, on.attention, head, *pair)
        meanings = head_naming.meanings(on.recording, on.attention)
        return attention_text.summary(head, meanings, link, cell, explained)

    @property
    def details(self) -> tuple[str, ...]:
        """The classification of the head: the cells that support its name, and the table of its
        measures, each "" where there are none."""
        return attention.evidence(self.view), head_naming_text.table(self.view.head)
