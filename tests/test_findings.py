"""Findings: what is planted is found, random weights show no links, and every statement can be
measured again from the recording."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from conftest import HOSTILE, read_once
from planted import recording_of
from tolerances import DEGREES, STORED, SUMMED, TOTAL

from benchmarks import names
from explorer.analysis import attention as attention_analysis
from explorer.analysis import findings, head_naming, logit_lens, words
from explorer.analysis.attention import HeadView
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import StreamPrediction
from explorer.figures.formatting import isolated, parse_number, shortened
from explorer.text import attention as attention_text
from explorer.text.findings import evidence, headline, quoted
from models.contract.recording import Attention, Recording
from models.example_texts import DEFAULT_TEXT, EXAMPLES, OPENING_TEXT
from models.network import own_model
from models.runtime.run import Run

SENTENCES = tuple((Path(__file__).parent / "sentences.txt").read_text("utf-8").strip().splitlines())
IDLE_NAMES = {"previous", "next", "self", "sink"}
LINKED = (findings.LINK, findings.NEAR_LINK)  # those that stand above every other row


@pytest.fixture(scope="module")
def encoder():
    return read_once("encoder")


@cache
def learned_nothing(name: str, how: str, at: int) -> Recording:
    """One of 20 texts as a shipped model reads it whose weights learned nothing: other weights for
    every four texts, and for every text where all are alike."""
    model = read_once(name)
    alike = model.card.n_vocab <= 1000
    text = "k q z b k q z b" if alike else SENTENCES[5 * at]
    # The translator's own words would be noise of any length.
    target = "La voiture rouge est là." if name == "translator" else None
    made = names.untrained(model, how, at if alike else at // 4)
    return made.record(text, target=target)


def linked(recording) -> list[findings.Finding]:
    return [one for one in findings.findings(recording) if one.kind in findings.LINKS]


def test_the_first_sentence_opens_on_what_its_tested_heads_say(encoder) -> None:
    recording = encoder.record(OPENING_TEXT)
    best, attention = findings.findings(recording)[0], recording.attention[0]
    assert best.kind == findings.MOST_SAY and best.words == ("it", "soup", "waiter")
    tokens, (key,) = recording.streams[0].tokens, best.keys
    assert (tokens[best.query], tokens[key]) == ("it", "soup")
    assert best.at == best.shown_in[0] and best.n_votes == 2 and len(best.ballots) == 3
    tested = [each.n_matches for each in best.ballots]
    assert tested == sorted(tested, reverse=True), "the best-tested head first"
    weights = attention.pattern[:, :, best.query, key]
    assert best.value == pytest.approx(weights[best.at], abs=STORED)
    assert best.chance == pytest.approx(1 / len(tokens), abs=STORED)  # of uniform attention
    chosen = {"layer": str(best.layer), "head": str(best.head), "token": str(best.query)}
    assert dict(best.address) == {"attention": "", "source": "", **chosen}
    assert headline(best) == "2 of 3 tested heads take *it* for *soup*, one for *waiter*"
    for each in best.ballots:
        said = f"Layer {each.layer}, head {each.head} says *{each.word}* ({each.weight:.2f})"
        assert said in evidence(best)
    # No link of a head alone to what the pronoun may stand for is listed beside it.
    listed = findings.select_findings(findings.findings(recording))
    assert listed[0] == best and not any(each.stands_for for each in listed[1:])


def test_a_pronoun_without_a_vote_attends_to_a_noun_in_one_head(encoder) -> None:
    recording = encoder.record(DEFAULT_TEXT)
    best = next(
        each
        for each in findings.findings(recording)
        if each.stands_for and not each.ballots and each.words == ("it", "animal")
    )
    weights = recording.attention[0].pattern[:, :, best.query, best.keys[0]]
    # It is the most that any head lets this word give that one.
    assert best.value == pytest.approx(weights.max(), abs=STORED)
    said = f"Layer {best.layer}, head {best.head}: *it* attends to *animal* ({best.value:.2f})"
    assert headline(best) == said and f"{best.chance:.2f}" in evidence(best)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "every"), [("encoder", 2), ("decoder", 2), ("minilm", 5)])
def test_no_sentence_opens_on_an_idle_head_where_words_are_linked(name: str, every: int) -> None:
    model, opened = read_once(name), 0
    for text in SENTENCES[::every]:
        recording = model.record(text)
        found = findings.findings(recording)
        named = head_naming.describe(recording, recording.attention[0])
        idle = {(one.layer, one.head) for one in named if one.name in IDLE_NAMES}
        content = [one for one in found if one.score >= findings.ORDER_SCORES[1]]
        for of_pronouns in (True, False):
            links = [one for one in content if one.stands_for == of_pronouns]
            awake = [one for one in links if one.at not in idle and one.kind in LINKED]
            assert not awake or links[0].at not in idle, (text, links[0])
        opened += found[0].kind in (*findings.LINKS, *findings.VOTES)
    # Most ordinary sentences have a link, two of five of the decoder's, so the test is not empty.
    assert opened > (0.35 if name == "decoder" else 0.6) * len(SENTENCES[::every])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "how", "recordings"),
    [
        ("encoder", "own init", 20),
        ("encoder", "permuted", 20),
        ("decoder", "normal 0.02", 20),
        ("translator", "permuted", 20),
        ("induction", "normal 0.02", 20),
        ("minilm", "permuted", 8),
    ],
)
def test_random_weights_show_hardly_a_link(name: str, how: str, recordings: int) -> None:
    told = sum(bool(linked(learned_nothing(name, how, at))) for at in range(recordings))
    assert told <= 1


@pytest.mark.slow
def test_the_trained_models_are_told_from_random_ones() -> None:
    for name in ("encoder", "decoder", "translator", "minilm", "induction", "copy"):
        model = read_once(name)
        text = DEFAULT_TEXT if model.card.n_vocab > 1000 else "a b c d a b c d"
        assert findings.is_trained(model.record(text)), name


def test_a_fit_is_the_exact_mean_and_deviation_over_all_pairings(encoder) -> None:
    """Against every way to pair the heads of a layer of four, by hand."""
    rng = np.random.default_rng(0)
    heads, tokens = 4, ("one", "two", "three", "four", "five", "six")
    q, k = rng.standard_normal((2, 1, heads, 6, 3)).astype(np.float32)
    recording = recording_of(np.full((heads, 6, 6), 1 / 6), tokens)
    attention = replace(recording.attention[0], q=q, k=k, v=k)
    together = np.zeros((heads, heads))
    for a, b in np.ndindex(heads, heads):
        scores = (q[0, a] - q[0, a].mean(0)) @ (k[0, b] - k[0, b].mean(0)).T
        together[a, b] = np.log((scores.astype(np.float64) ** 2).sum())
    orders = permutations(range(heads))
    sums = [sum(together[a, b] for a, b in enumerate(order)) for order in orders]
    wanted = (sums[0] - np.mean(sums)) / np.std(sums)
    found = findings.qk_fit(replace(recording, attention=(attention,)))
    assert found == pytest.approx(wanted, abs=TOTAL)
    # It does not depend on the size of queries and keys: in 32 bits, summed in another scale.
    larger = replace(attention, q=q * 3, k=k * 0.5)
    found = findings.qk_fit(replace(recording, attention=(larger,)))
    assert found == pytest.approx(wanted, abs=TOTAL)


@pytest.mark.slow
def test_where_only_the_pattern_is_known_links_are_told_of_trained_heads(encoder) -> None:
    def closed(recording):
        one = recording.attention[0]
        alone = Attention.closed(one.name, one.query, one.key, one.pattern, one.allowed[0])
        return replace(recording, attention=(alone,))

    best = findings.findings(closed(encoder.record(OPENING_TEXT)))[0]
    assert best.words == ("it", "soup", "waiter")
    told = sum(
        bool(linked(closed(learned_nothing("encoder", how, at))))
        for how in ("own init", "permuted", "normal 0.02")
        for at in range(10)
    )
    assert told <= 1  # of thirty


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "decoder", "minilm"])
def test_links_are_what_the_pattern_says(name: str) -> None:
    model = read_once(name)
    for text in (*EXAMPLES.values(), SENTENCES[16], SENTENCES[90], SENTENCES[99]):
        recording = model.record(text)
        attention, stream = recording.attention[0], recording.streams[0]
        grouped = words.words(stream, text)

        def cells(of: np.ndarray, row: int, key: int) -> np.ndarray:
            return of[grouped.of == row][:, grouped.of == key]

        for one in linked(recording):
            if one.kind not in LINKED:
                continue
            row, key = (int(grouped.of[at]) for at in (one.query, one.keys[0]))
            assert one.words == (grouped.labels[row], grouped.labels[key])
            given = {
                each: cells(attention.pattern[one.at], each, key).sum(axis=1).mean()
                for each in range(len(grouped.labels))
                if cells(attention.allowed[0], each, key).any()
            }
            assert one.value == pytest.approx(given.pop(row), abs=SUMMED)
            assert not stream.special[one.query] and not stream.special[one.keys[0]]
            apart = abs(row - key)
            assert apart > 2 if one.kind == findings.LINK else 0 < apart <= 2
            # Against the most that the head gives that key in another row, between words.
            assert one.chance == pytest.approx(max(given.values()), abs=SUMMED)
            assert one.value - one.chance >= 0.1 - 1e-6 and one.chance < 0.5


@pytest.mark.parametrize("name", ["encoder", "decoder", "translator", "copy"])
def test_sinks_are_counted_once_for_all_as_the_heads_are_named(name: str) -> None:
    """The number in the sentence is that of the heads that carry the name, which the grid filters
    by; a text too short for names has no count of any kind."""
    model, sink = read_once(name), head_naming.SINK
    texts = (DEFAULT_TEXT, "Hi") if model.card.n_vocab > 1000 else ("a b c d a b c d", "a")
    for text in texts:
        recording = model.record(text)
        every = [one for one in findings.findings(recording) if one.kind == findings.CROWD]
        for attention in recording.attention:
            called = [head.name for head in head_naming.describe(recording, attention)]
            crowds = [one for one in every if one.attention == attention.name]
            counted = dict(crowds[0].counts) if crowds else {}
            assert counted.get(sink, 0) == called.count(sink)
            assert all(called.count(each) == number for each, number in counted.items())
            assert not crowds or crowds[0].of == len(called)
            if counted.get(sink, 0) > 1 and counted[sink] == max(counted.values()):
                said = evidence(crowds[0]) + headline(crowds[0])
                assert f"{counted[sink]} of {len(called)} heads are sinks" in said


# Streams of different length; of the first the key's word stands beyond the end of the target.
PLUMBER = "The plumber fixed the sink before the guests arrived."
LENGTHS = [
    *product(("translator", "translator-small"), (PLUMBER, "Dogs bark.", *SENTENCES[::6])),
    *product(("encoder", "decoder", "minilm"), SENTENCES[::12]),
    *product(("copy", "reverse", "induction"), ("a b c d a b c d", "k q z b")),
]


@pytest.mark.slow
@pytest.mark.in_turn(6)
@pytest.mark.parametrize(("name", "text"), LENGTHS)
def test_the_words_of_a_link_have_the_tokens_that_its_weight_is_of(name: str, text: str) -> None:
    """The weight between words is the sum over so many keys, the mean over so many queries."""
    recording = read_once(name).record(text)
    for one in findings.findings(recording):
        if one.kind not in (*findings.PAIRS, findings.ALIGNED):
            continue
        of = next(each for each in recording.attention if each.name == one.attention)
        sizes = RecordingFacts(recording).word_sizes(one)
        windows = (
            [range(at, at + size) for at in range(max(0, token - size + 1), token + 1)]
            for size, token in zip(sizes, (one.query, one.keys[0]))
        )
        pattern = of.pattern[one.at].astype(np.float64)
        weights = [
            pattern[rows.start : rows.stop, keys.start : keys.stop].sum() / len(rows)
            for rows, keys in product(*windows)
        ]
        assert min(abs(each - one.value) for each in weights) < SUMMED, (one, sizes)


MANY_TOKENS = ("System brief", "Apple presented its new devices in September.", "Der Hund schläft.")


@pytest.mark.slow
@pytest.mark.in_turn(6)
@pytest.mark.parametrize(
    ("name", "text"),
    [*LENGTHS, *product(("decoder", "translator"), MANY_TOKENS)],
)
def test_a_headline_is_never_below_the_chance_that_stands_beside_it(name: str, text: str) -> None:
    """Both by words or both by tokens, where a word has as many tokens as the text has others."""
    recording = Run(name, text).recording()
    for one in RecordingFacts(recording).other_findings():
        if one.page != "heads" or one.query < 0:
            continue
        of = next(each for each in recording.attention if each.name == one.attention)
        chance = RecordingFacts(recording).uniform_weight(one)
        assert one.value > max(chance, one.chance) or one.value == pytest.approx(1), (one, chance)
        if one.kind not in (findings.INDUCTION, findings.CHAT):
            # Given to each token that the row may look at alike, and summed over the key's.
            sides = attention_analysis.groups(recording, of, attention_analysis.axes(recording, of))
            rows, keys = (
                [np.flatnonzero(side.of == side.of[at]) for at in places]
                for side, places in zip(sides, ((one.query,), one.keys))
            )
            even = of.allowed[one.layer][rows[0]].astype(float)
            even /= even.sum(axis=1, keepdims=True)
            wanted = max(even[:, key].sum(axis=1).mean() for key in keys)
            assert chance == pytest.approx(wanted, abs=SUMMED), one
        at = view_at(recording, of, one)
        said = attention_text.place(at, one.of, "", chance)
        assert number(headline(one), r"\(([\d.]+)\)|([\d.]+%)") >= number(said, r"be ([\d.]+)")


def number(sentence: str, pattern: str) -> float:
    found = re.search(pattern, sentence.replace("> ", "").replace("< ", ""))
    assert found is not None, sentence
    return parse_number(next(filter(None, found.groups())).rstrip("."))


def view_at(recording: Recording, of: Attention, one: findings.Finding) -> HeadView:
    """The head of a finding as the page shows it, at its word."""
    axes = attention_analysis.axes(recording, of)
    every = RecordingFacts(recording).named_heads(of.name)
    head = every[one.layer * of.pattern.shape[1] + one.head]
    chosen = attention_analysis.HeadSelection((one.query, None))
    display = attention_analysis.DisplayOptions()
    return attention_analysis.head_view(recording, of, head, axes, display, chosen)


def test_a_list_said_twice_is_found_by_the_head_that_finds_it() -> None:
    recording = read_once("decoder").record(EXAMPLES["Repeated sentence"])
    best, stream = findings.findings(recording)[0], recording.streams[0]
    assert best.kind == findings.INDUCTION
    # The word attends to what stood after its first occurrence.
    assert stream.tokens[best.keys[0] - 1].casefold() == stream.tokens[best.query].casefold()
    named = head_naming.describe(recording, recording.attention[0])
    assert [one.name for one in named if (one.layer, one.head) == best.at] == ["induction"]


def test_in_a_translation_an_adjective_and_a_noun_cross() -> None:
    target = "La voiture rouge est devant la maison blanche."
    recording = read_once("translator").record(EXAMPLES["Red car"], target=target)
    one = next(each for each in findings.findings(recording) if each.kind == findings.CROSSED)
    crossed = {("voiture", "rouge", "car", "red"), ("maison", "blanche", "house", "white")}
    assert one.words in crossed and dict(one.address)["attention"] == "cross"
    attention = next(each for each in recording.attention if each.name == "cross")
    rows = attention.pattern[one.at][[one.query, one.query + 1]]
    assert tuple(rows.argmax(axis=1)) == tuple(one.keys) and one.keys[1] < one.keys[0]
    assert one.value == pytest.approx(rows.max(axis=1).min(), abs=SUMMED)


def test_the_word_that_turned_most_is_turned_so_far(encoder) -> None:
    recording = encoder.record(DEFAULT_TEXT)
    stream = recording.streams[0]
    one = next(each for each in findings.findings(recording) if each.kind == findings.TURNED)
    before, _, total = next(each for each in stream.writes() if each[1] == f"{one.site}.wrote")
    a, b = (stream.at(site)[one.query].astype(float) for site in (before, total))
    angle = np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert one.value == pytest.approx(angle, abs=DEGREES)
    assert one.value > one.chance and one.page == "residual"


def test_where_the_answer_was_settled_and_what_pushed_it() -> None:
    model = read_once("decoder")
    recording = model.record("The cat sat on the")
    last = len(recording.streams[0].tokens) - 1
    name = recording.streams[0].name
    lens = model.lens(recording, name)
    id = int(lens.final_id[last])
    taken = model.attribute(recording, name, last, id)
    found = findings.answer_findings(StreamPrediction(lens, last, ("mat",), taken))
    settled = next(one for one in found if one.kind == findings.SETTLED)
    first = int(settled.value)
    assert (lens.rank[first:, last] == 0).all()
    assert first == 0 or lens.rank[first - 1, last] > 0
    for one in found:
        if one.kind == findings.PUSHED:
            parts = [part for part in taken.parts if part.kind in ("head", "ffn")]
            assert one.value == max(part.value for part in parts)


def test_a_lens_that_takes_long_is_left_out_and_the_push_stays() -> None:
    recording = Run("decoder", "The cat sat on the mat because it was tired.").recording()
    stream = recording.streams[0]
    assert logit_lens.is_cheap(recording, stream)
    many = replace(recording.model, n_vocab=int(logit_lens.MAX_CHEAP_PRODUCTS))
    assert not logit_lens.is_cheap(replace(recording, model=many), stream)
    answer = RecordingFacts(recording)._stream_prediction()
    assert answer is not None and answer.lens is not None
    whole = findings.answer_findings(answer)
    assert {one.kind for one in whole} == {findings.SETTLED, findings.PUSHED}
    assert findings.answer_findings(replace(answer, lens=None)) == whole[1:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "translator", "induction"])
def test_any_text_has_findings_that_can_be_said(name: str) -> None:
    for label, text in HOSTILE.items():
        if name != "encoder" and label == "10,000 characters":
            continue
        for one in findings.findings(read_once(name).record(text)):
            said = headline(one), evidence(one), headline(one, quoted)
            assert all(said), (label, one)
            assert "<script" not in said[0] and "](http" not in said[0]
            assert "nan" not in " ".join(said).split() and "\n" not in "".join(said)


GRAMMAR = "pronoun refers resolves subject noun understands means".split()


@pytest.mark.parametrize(
    ("name", "text"), [("decoder", "Repeated sentence"), ("translator", "Red car")]
)
def test_sentences_claim_what_was_measured_and_no_grammar(name: str, text: str) -> None:
    for one in findings.findings(read_once(name).record(EXAMPLES[text])):
        said = (headline(one) + evidence(one)).replace("pronounced", "")
        assert not [word for word in GRAMMAR if word in said]


def test_what_is_worth_a_look_leads_to_different_places(encoder) -> None:
    for text in SENTENCES[::10]:
        chosen = findings.select_findings(findings.findings(encoder.record(text)))
        assert 2 <= len(chosen) <= 5
        heads = [(one.attention, one.at) for one in chosen if one.head >= 0]
        assert len(set(heads)) == len(heads)
        assert len({headline(one) for one in chosen}) == len(chosen)


def test_a_head_says_of_itself_what_the_headline_says_of_it(encoder: own_model.OwnModel) -> None:
    """Near words too: no headline about a head of which its own panel says that nothing stands
    out."""
    told = 0
    for text in ("Nobody told them", "Dogs bark", "She reads", "The boy ate it", "He said so"):
        recording = encoder.record(text)
        attention = recording.attention[0]
        named = {(one.layer, one.head): one for one in head_naming.describe(recording, attention)}
        for one in findings.findings(recording):
            if one.kind == findings.NEAR_LINK and named[one.at].name == head_naming.NO_PATTERN:
                link = findings.strongest_link(recording, attention, named[one.at])
                assert link is not None and link.weight - link.chance >= findings.LEAST_EXCESS
                told += 1
                break
    assert told > 1


def test_a_long_word_keeps_its_end_and_what_it_says_of_its_token() -> None:
    for word in ("Rechtsschutzversicherungsvertreter", "pneumono" * 14, "x" * 101):
        cut = shortened(word, 24)
        first, last = cut.split("…")
        assert len(cut) <= 24 and word.startswith(first) and word.endswith(last)
        assert len(first) >= len(last) >= 9
    assert shortened("Rechtsschutzversicherung = [UNK]", 20) == "Rechtsschut… = [UNK]"
    assert shortened("warm", 4) == "warm"
    for most in range(5, 20):  # letters stand with their marks
        parts = shortened("काठमाडौं" * 4, most).split("…")
        assert not any(unicodedata.combining(part[:1] or "a") for part in parts)
        assert "काठमाडौं".startswith(parts[0][:2])


def test_what_runs_from_right_to_left_is_isolated_from_numbers() -> None:
    assert isolated("26 ה 1/2") == "26 \u2068ה\u2069 1/2"
    assert isolated("3 بيت (user)") == "3 \u2068بيت\u2069 (user)"
    assert isolated("9 it") == "9 it"
