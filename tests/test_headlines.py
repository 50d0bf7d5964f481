"""Headlines: what a link is held against, in which order links come, what no link may be, which
words fill a text, and which heads find a pronoun's noun."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import in_turn, read_once
from test_findings import LINKED, SENTENCES
from tolerances import STORED, SUMMED

from benchmarks import names
from explorer.analysis import (
    coreference,
    findings,
    head_naming,
    word_classes,
    words,
)
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.word_classes import unread_language
from explorer.app.layout import current_recording
from explorer.app.state import jobs
from explorer.panels import attention as attention_panels
from explorer.panels.choice import EVERY
from explorer.text import head_naming as head_naming_text
from explorer.text.attention import summary
from explorer.text.findings import evidence, headline, named, quoted, row, token
from models import model_names
from models.contract.edits import WithoutScale, ZeroHead
from models.contract.recording import Attention
from models.example_texts import DEFAULT_TEXT
from models.runtime.caching import loaded
from models.runtime.run import Run

TEXT = "The nurse and the boy saw Mary because she sang a well - known song .".split()
NO = head_naming.NO_PATTERN


def planted(*cells: tuple[str, str, float], text=TEXT, others=(), causal=False):
    """One head of even rows, in which some words (of one head each) give a word so much."""
    n = len(text)
    pattern = np.full((1, 1 + bool(others), n, n), 1 / n, np.float32)
    for head, planted_cells in enumerate((cells, others)):
        for query, key, weight in planted_cells:
            row, column = text.index(query), text.index(key)
            pattern[0, head, row] = (1 - weight) / (n - 1)
            pattern[0, head, row, column] = weight
    allowed = np.ones((n, n), bool)
    attention = Attention.closed("self", "encoder", "encoder", pattern, allowed)
    alone = words.token_groups(tuple(text), (False,) * n)
    return findings.word_level_attention(attention, alone, alone)


def linked(seen, *called: str, habits=()) -> list[tuple[str, str]]:
    called = called or (NO,) * seen.weights.shape[1]
    return [one.words for one in findings.find_links(seen, np.array([called]), habits=habits)]


def test_a_link_is_held_against_the_largest_other_row() -> None:
    one, *_ = findings.find_links(planted(("sang", "nurse", 0.7)), np.array([[NO]]))
    assert one.words == ("sang", "nurse") and not one.above_mean
    assert (one.weight, one.chance) == pytest.approx((0.7, 1 / len(TEXT)), abs=STORED)
    # Where another row gives as much, or half, two words of content are held against the mean of
    # the other words, behind those that stand above every row; others make no link.
    alone = ("song", "Mary", 0.5)
    for first, second in ((0.7, 0.69), (0.9, 0.55)):
        seen = planted(("sang", "nurse", first), ("boy", "nurse", second), alone)
        best, shared, *_ = findings.find_links(seen, np.array([[NO]]))
        assert best.words == alone[:2] and not best.above_mean
        words = [TEXT.index(word) for word in TEXT if word.isalpha() and word != "nurse"]
        rows = [row for row in words if TEXT[row] != "sang"]
        mean = seen.weights[0, 0, rows, TEXT.index("nurse")].mean()
        assert shared.words == ("sang", "nurse") and shared.above_mean
        assert shared.chance == pytest.approx(mean, abs=STORED)
    shared_filler = planted(("because", "nurse", 0.7), ("sang", "nurse", 0.69))
    assert ("because", "nurse") not in linked(shared_filler)


@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_a_pronoun_is_held_against_the_mean_by_which_heads_are_tested(name: str) -> None:
    """Over the test sentences: the same weight and the same mean, in words of several tokens too,
    and no other row stands between a reader and the pronoun."""
    model, told = read_once(name), 0
    for text, marked in list(coreference.sentences().items())[::6]:
        recording = model.record(text)
        scores = coreference.measure_sentence(recording)["self"]
        for one in findings.findings(recording):
            if one.words == (marked.pronoun, marked.noun) and not one.ballots:
                assert one.value == pytest.approx(scores.weight[one.at], abs=SUMMED)
                assert one.chance == pytest.approx(scores.other[one.at], abs=SUMMED)
                assert one.stands_for and one.above_mean
                told += 1
    assert told >= 2


def test_the_second_candidate_is_named_from_a_third_of_the_first_on() -> None:
    for second, named_second in ((0.31, True), (0.28, False)):
        seen = planted(("she", "nurse", 0.9))
        weights = seen.weights.copy()
        of_she = weights[0, 0, TEXT.index("she")]
        of_she[:] = 0.001
        of_she[TEXT.index("nurse")], of_she[TEXT.index("Mary")] = 0.6, 0.6 * second / 0.9
        of_she[TEXT.index("because")] = 0.3  # no noun
        seen = replace(seen, weights=weights)
        best = findings.find_links(seen, np.array([[NO]]))[0]
        contest = f" and “Mary” ({0.6 * second / 0.9:.2f})" if named_second else ""
        said = f"Layer 0, head 0: “she” attends to “nurse” (0.60){contest}"
        assert headline(findings._link_finding(seen, best), quoted) == said


def test_links_are_ranked_by_the_weight_beyond_the_largest_other_row() -> None:
    seen = planted(("song", "nurse", 0.8), ("boy", "nurse", 0.49), ("sang", "Mary", 0.6), text=TEXT)
    assert linked(seen)[0] == ("sang", "Mary")  # .6 beyond .07, against .8 beyond .49


def test_pronouns_come_first_then_content_and_fillers_last() -> None:
    seen = planted(("because", "nurse", 0.95), ("song", "boy", 0.8), ("she", "Mary", 0.4))
    assert linked(seen) == [("she", "Mary"), ("song", "boy"), ("because", "nurse")]
    # However much another row gives the pronoun's noun.
    seen = planted(("because", "Mary", 0.95), ("song", "boy", 0.8), ("she", "Mary", 0.5))
    assert linked(seen)[0] == ("she", "Mary")


def test_of_pronouns_one_in_a_head_that_finds_nouns_elsewhere_too_comes_first() -> None:
    seen = planted(("she", "nurse", 0.5), others=[("she", "boy", 0.9)])
    assert linked(seen, NO, NO)[0] == ("she", "boy")
    assert linked(seen, head_naming.PRONOUN, NO)[0] == ("she", "nurse")


@pytest.mark.parametrize(
    ("called", "query", "key"),
    [("previous", "boy", "nurse"), ("next", "sang", "song"), (head_naming.SINK, "song", "Ram")],
)
def test_no_link_is_what_the_heads_own_name_predicts(called: str, query: str, key: str) -> None:
    text = ["Ram", "nurse", "boy", "saw", "Mary", "then", "sang", "song", "."]
    seen = planted((query, key, 0.9), text=text)
    assert linked(seen, NO) == [(query, key)]
    assert not linked(seen, called)


def test_no_link_joins_the_halves_of_a_word() -> None:
    assert not linked(planted(("known", "well", 0.9)))
    assert linked(planted(("song", "well", 0.9)))


def test_a_head_that_gives_as_much_at_that_distance_everywhere_shows_no_link() -> None:
    text = [f"word{at}" for at in range(12)]
    cells = [(text[at], text[at - 4], 0.6) for at in range(4, 12)]
    assert not linked(planted(*cells[:-1], (text[11], text[7], 0.65), text=text))
    assert linked(planted((text[11], text[7], 0.65), text=text))


def test_where_no_link_passes_the_headline_is_the_strongest_regularity() -> None:
    model = read_once("encoder")
    recording = model.record("Do not do it if you can not do it well.")
    one = findings.select_findings(findings.findings(recording))[0]
    assert one.kind == findings.REGULARITY
    every = head_naming.describe(recording, recording.attention[0])
    by_place = [head for head in every if head.name in ("previous", "next")]
    best = max(by_place, key=lambda head: head_naming.lift(head.score, head.chance))
    assert one.at == (best.layer, best.head) and one.value == best.score
    assert headline(one) == (
        f"Layer {best.layer}, head {best.head} attends to the {best.name} token: {best.score:.0%}"
    )


def test_a_word_alone_says_that_it_is_too_short() -> None:
    encoder = read_once("encoder")
    one = findings.findings(encoder.record("Hi"))[0]
    assert one.kind == findings.SHORT
    n = len(encoder.record("Hi").streams[0].tokens)
    assert headline(one) == "Write a sentence: attention needs several words"
    assert f"This text has {n} tokens" in evidence(one)


@pytest.mark.parametrize(
    ("text", "fillers", "content", "pronouns"),
    [
        ("The dog barks because it is hungry .", "The because is .", "dog barks hungry", "it"),
        ("Der Hund bellt , weil er die Katze sah .", "Der , weil die .", "Hund bellt Katze", "er"),
        ("Le chien dort parce qu'il est vieux .", "Le parce est .", "chien dort vieux", "qu'il"),
        ("John's mother didn't see the l'enfant EU", "didn't the", "John's l'enfant EU", ""),
    ],
)
def test_function_words_are_known_in_three_languages(text, fillers, content, pronouns) -> None:
    labels = text.split()
    kind = dict(zip(labels, word_classes.classes(labels)))
    assert {kind[word] for word in fillers.split()} == {word_classes.FILLER}
    assert {kind[word] for word in content.split()} == {word_classes.CONTENT}
    assert {kind[word] for word in pronouns.split()} <= {word_classes.PRONOUN}


# Each with its articles, and with words that are pronouns there, by their places.
GERMAN = [
    ("Die Katze schläft .", {0}, set()),
    ("Die alte Katze sieht die Vögel .", {0, 4}, set()),
    ("Ich kenne die Frau , die dort steht .", {2}, {5}),
    ("Der Mann , den sie gestern sah , war alt .", {0}, {3, 4}),
    ("Die Bücher sind teuer , aber die sind schön .", {0}, {6}),
    ("Die Stadt baut eine neue Brücke , die im Herbst fertig wird .", {0}, {7}),
    ("Der Hund , dem wir geholfen haben , bellt .", {0}, {3}),
    ("Den Teig eine Stunde ruhen lassen , bis er groß ist .", {0}, {8}),
    ("Er hat sein Rad dem Nachbarn geliehen , doch der hat es verloren .", {4}, {0, 2, 9, 11}),
    ("Die beiden sehr kleinen Kinder lachen , weil die Sonne scheint .", {0, 8}, set()),
    ("Er will lieber glücklich sein als reich .", set(), {0}),
    ("die katze schläft , weil sie müde ist .", {0}, {5}),
    ("Von den 12 Äpfeln sind die meisten grün .", {1}, {5}),
    ("Auf der Straße steht die Polizei , die ihn sucht .", {1, 4}, {7, 8}),
]


# In French, Spanish and Italian one word is an article before a noun and a pronoun before a verb.
# Each with its articles, and with words that are surely pronouns, by their places.
ROMANCE = [
    ("Le garçon ferme la porte .", {0, 3}, set()),
    ("Les oiseaux y chantent .", {0}, set()),
    ("Marie les a retrouvées .", set(), {1}),
    ("Il la lit chaque soir , mais elle ne le sait pas .", set(), {0, 1, 7, 9}),
    ("Voit - il le chat dans la rue ?", {3, 6}, {2}),
    ("Prends - la .", set(), {2}),
    ("Los perros y los gatos duermen en la casa .", {0, 3, 7}, set()),
    ("Ella las compró en el mercado .", {4}, {0, 1}),
    ("Compró ella la casa de los niños .", {2, 5}, {1}),
    ("María se la dio y no se las ha pedido .", set(), {1, 2, 6, 7}),
    ("Lo bueno es barato .", {0}, set()),
    ("Gli studenti leggono il libro .", {0, 3}, set()),
    ("Gli ho dato il libro con le mele .", {3, 6}, {0}),
    ("Le case con la porta .", {0, 3}, set()),
    ("Le donne con la valigia e un gatto .", {0, 3}, set()),
    ("Io la vedo e lei lo ha comprato .", set(), {1, 4, 5}),
]


@pytest.mark.parametrize(("text", "articles", "pronouns"), GERMAN + ROMANCE)
def test_an_article_stands_before_a_noun_phrase_and_is_no_pronoun(text, articles, pronouns) -> None:
    labels = text.split()
    kinds = word_classes.classes(labels)
    assert {at for at, kind in enumerate(kinds) if kind == word_classes.PRONOUN} == pronouns
    assert {kinds[at] for at in articles} <= {word_classes.FILLER}
    # In Romance languages, what follows an object pronoun is a verb and no noun.
    nouns = word_classes.nouns(labels)
    objects = {at for at in pronouns if labels[at].casefold() in "le la les lo las gli".split()}
    assert not any(nouns[at + 1] for at in objects)


def test_a_noun_needs_no_determiner_behind_a_preposition_or_a_quantity() -> None:
    text = "My deep - sea fish ate more ice with salt , after swimming through cold water".split()
    nouns = {word for word, noun in zip(text, word_classes.nouns(text)) if noun}
    assert nouns == {"deep", "fish", "ice", "salt", "cold", "water"}


def test_pronouns_of_the_text_stand_before_those_of_its_translation() -> None:
    """And these before all other links."""
    recording = read_once("translator").record("When the drone lost its signal, it landed.")
    ranked = findings.findings(recording)
    links = [one for one in ranked if one.kind in names.PAIRS]
    of_pronouns = [one.attention for one in links if one.stands_for]
    assert len(set(of_pronouns)) == 2 and of_pronouns == sorted(of_pronouns, reverse=True)
    assert all(one.stands_for for one in links[: len(of_pronouns)])


def test_a_headline_reads_no_article_as_a_pronoun() -> None:
    text = "Le case rosse con la grande porta .".split()
    seen = planted(("Le", "porta", 0.9), ("rosse", "grande", 0.6), text=text)
    assert linked(seen)[0] == ("rosse", "grande")


def test_a_german_noun_is_written_with_a_capital() -> None:
    text = "Der Hund schläft , weil der Mond ihre Nacht erhellt .".split()
    nouns = {word for word, noun in zip(text, word_classes.nouns(text)) if noun}
    assert nouns == {"Hund", "Mond", "Nacht"}
    seen = planted(("ihre", "schläft", 0.9), ("erhellt", "Mond", 0.6), text=text)
    assert linked(seen)[0] == ("erhellt", "Mond")


def test_a_word_is_judged_in_the_language_of_its_text_and_another_script_is_unsure() -> None:
    german = word_classes.classes("Der Krieg war lang und er war kalt".split())
    english = word_classes.classes("The war was long and it was cold".split())
    assert german[2] == word_classes.FILLER and english[1] == word_classes.CONTENT
    assert set(word_classes.classes("वह घर जाता है".split())) == {word_classes.UNSURE}
    assert word_classes.classes(["[UNK]", "…", "20"]) == (
        word_classes.FILLER,
        word_classes.FILLER,
        word_classes.CONTENT,
    )


def test_a_finding_says_what_its_number_is() -> None:
    recording = read_once("encoder").record("My sister called the nurse as she was ill.")
    one = next(each for each in findings.findings(recording) if not each.ballots)
    assert one.words[0] == "she"  # and whichever noun
    said = evidence(one)
    assert f"The other words of the text give it {one.chance:.2f} on average." in said
    assert "hance" not in said
    attention = recording.attention[0]
    tokens = recording.streams[0].tokens
    column = tokens.index(one.words[1])
    others = [at for at, token in enumerate(tokens) if token.isalpha()]
    others = [at for at in others if at not in (one.query, column)]
    mean = attention.pattern[one.at][others, column].mean()
    assert one.chance == pytest.approx(mean, abs=STORED)
    alone = next(each for each in findings.findings(recording) if each.kind in LINKED)
    key = alone.words[1]
    assert f"No other row of this head gives *{key}* more than {alone.chance:.2f}." in evidence(
        alone
    )
    head = head_naming.describe(recording, attention)[one.layer * 8 + one.head]
    if head.name == NO:
        told = summary(head, head_naming.meanings(recording, attention), one)
        assert f"baseline: {one.chance:.2f} from the other words" in told


# ---- heads that find a pronoun's noun ----------------------------------------


def measured(model) -> dict[tuple[int, int], coreference.CoreferenceHead]:
    reads = [coreference.measure_sentence(model.record(text)) for text in coreference.sentences()]
    return dict(coreference.coreference_heads(reads)["self"])


def test_every_sentence_names_its_noun_and_pronoun_once_and_the_noun_first() -> None:
    assert len(coreference.sentences()) >= 40
    for text, marked in coreference.sentences().items():
        said = text.removesuffix(".").replace(",", "").split()
        assert said.count(marked.noun) == said.count(marked.pronoun) == 1
        assert said.index(marked.noun) < said.index(marked.pronoun)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_what_is_kept_of_a_model_is_what_is_measured(name: str) -> None:
    model = read_once(name)
    recording = model.record(SENTENCES[0])
    kept = coreference.measured_heads(recording, recording.attention[0])
    found = measured(model)
    assert found and kept.keys() == found.keys()
    for at, one in found.items():
        assert (kept[at].n, kept[at].n_matches) == (one.n, one.n_matches)
        assert kept[at].score == pytest.approx(one.score, abs=1e-4)  # six digits are kept


def test_a_page_measures_a_model_and_a_panel_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = loaded("encoder").record(SENTENCES[0])
    begun: list[tuple] = []
    job = SimpleNamespace(finished=False, resume=lambda: None, latest=())
    measurements: dict[str, object] = {}
    monkeypatch.setattr(coreference, "_measurements", lambda: measurements)
    monkeypatch.setattr(model_names, "is_borrowed", lambda _: True)
    monkeypatch.setattr(jobs, "corpus_job", lambda *arguments: begun.append(arguments) or job)
    RecordingFacts(recording).named_heads(recording.attention[0].name)
    assert not begun
    current_recording.measure_pronoun_heads(recording)
    ((name, texts, *_),) = begun
    assert (name, texts) == ("encoder", tuple(coreference.sentences()))
    assert not coreference.is_measured(recording.model.fingerprint)
    sentence = loaded("encoder").record(next(iter(coreference.sentences())))
    job.finished, job.latest = True, (coreference.measure_sentence(sentence),)
    current_recording.measure_pronoun_heads(recording)
    assert coreference.is_measured(recording.model.fingerprint)
    current_recording.measure_pronoun_heads(recording)
    assert len(begun) == 2, "once measured, it is not measured again"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["own init", "normal 0.02", "permuted"])
def test_weights_that_learned_nothing_find_no_noun(how: str) -> None:
    assert not measured(names.untrained(read_once("encoder"), how, 0))


@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_a_label_is_of_this_text_and_test_sentences_are_said_beside_it(name: str) -> None:
    """Score, chance and example of "pronoun to noun" are of the text, in words of several tokens
    too; a text without a pronoun has no such head."""
    model, named_heads = read_once(name), 0
    for text in (*SENTENCES[::6], "Red cars stop at the lights.", DEFAULT_TEXT):
        recording = model.record(text)
        attention, grouped = recording.attention[0], words.words(recording.streams[0], text)
        of = [grouped.labels[at] for at in grouped.of]
        pronouns = np.isin(word_classes.classes(of), word_classes.PRONOUN)
        tested = coreference.measured_heads(recording, attention)
        for head in head_naming.describe(recording, attention):
            told = head_naming_text.summary(head, head_naming.meanings(recording, attention))
            found = tested.get((head.layer, head.head))
            assert head.tested == found
            assert ("test sentences, a pronoun gives its noun" in told) == (found is not None)
            if head.name != head_naming.PRONOUN:
                continue
            assert found and f"In {found.n_matches} of {found.n} test sentences" in told
            pattern = attention.pattern[head.layer, head.head]
            cells = coreference.candidates(of, of) if grouped.n == len(grouped.starts) else None
            if cells is not None:
                rows = cells.any(axis=1)
                assert head.score == pytest.approx(
                    (pattern * cells)[rows].sum(-1).mean(), abs=SUMMED
                )
                chance = (cells / attention.allowed[0].sum(-1, keepdims=True))[rows].sum(-1).mean()
                assert head.chance == pytest.approx(chance, abs=SUMMED)
            assert head.evidence and all(pronouns[cell.query] for cell in head.evidence)
            assert named(head) == f"Pronoun to noun ({head.score:.2f})"
            named_heads += 1
    assert named_heads > 3
    recording = model.record("Red cars stop at the lights.")
    called = {each.name for each in head_naming.describe(recording, recording.attention[0])}
    assert head_naming.PRONOUN not in called
    # No head is tested in a model under edits, or is found in one that finds no nouns.
    edited = model.record(
        DEFAULT_TEXT, (WithoutScale(),) if name == "encoder" else (ZeroHead(0, 0),)
    )
    for other in (read_once("decoder").record(DEFAULT_TEXT), edited):
        names = {each.name for each in head_naming.describe(other, other.attention[0])}
        names |= head_naming.meanings(other, other.attention[0]).keys()
        assert head_naming.PRONOUN not in names


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_a_title_carries_a_label_only_where_it_explains_the_pair(name: str) -> None:
    """In panels, files and presenter, beside what each word of a text attends to most."""
    said = set()
    for text in (DEFAULT_TEXT, SENTENCES[40], "The trophy was too big, and it fell and fell."):
        run = Run(name, text)
        recording = run.recording()
        attention = recording.attention[0]
        every = RecordingFacts(recording).named_heads(attention.name)
        for one, query in product(every, range(1, len(recording.streams[0].tokens), 5)):
            key = int(attention.pattern[one.layer, one.head, query].argmax())
            title = attention_panels.head(run, one.layer, one.head, query).title
            said.add(title.partition(": ")[2])
            explained = head_naming.explains(recording, attention, one, query, key)
            where = f"Layer {one.layer}, head {one.head}"
            assert title == (f"{where}: {one.name}" if explained else where)
            if one.name in ("previous", "next", "self"):
                beside = {"previous": -1, "next": 1, "self": 0}[one.name]
                assert explained == (key == query + beside)
        whole = attention_panels.head(run, every[0].layer, every[0].head, token=EVERY).title
        assert whole.endswith(every[0].name) != (every[0].name in head_naming.UNNAMED)
    assert {"", "previous"} <= said
    assert not said & {"diffuse", *head_naming.UNNAMED}


def test_what_is_no_word_is_called_by_what_it_is() -> None:
    for label, special, end, called in (
        ("[SEP]", True, -1, "the end token \\[SEP\\]"),
        ("[CLS]", True, 1, "the start token \\[CLS\\]"),
        ("<|im_start|>", True, 0, "the special token \\<\\|im\\_start\\|\\>"),
        (".", False, 0, "the full stop"),
        (",", False, 0, "the comma"),
        ("?", False, 0, "the question mark"),
        ("animal", False, 0, "*animal*"),
    ):
        assert token(label, special, end) == called
    assert (
        row(token(".", False), token("it", False), 0.5)
        == "The full stop gives *it* 50% of its attention in this head"
    )


def test_a_subject_that_every_word_attends_to_is_no_pronouns_noun() -> None:
    """A head that gives the noun as much from any word finds it by chance alone."""
    shape = (1, 1)
    every = coreference.SentenceScores(*(np.full(shape, one) for one in (0.8, True, 0.8, 1.0)))
    some = coreference.SentenceScores(*(np.full(shape, one) for one in (0.8, True, 0.1, 0.1)))
    assert not coreference.coreference_heads([{"self": every}] * 48)["self"]
    assert coreference.coreference_heads([{"self": some}] * 48)["self"][0, 0].n_matches == 48
    lucky = coreference.SentenceScores(*(np.full(shape, one) for one in (0.8, True, 0.1, 0.6)))
    assert not coreference.coreference_heads([{"self": lucky}] * 5)["self"]


# ---- ordinary sentences ------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_no_headline_breaks_the_rule(name: str) -> None:
    """Of other models on the sentences of test_sentences_true.py."""
    model, of_content, of_the_text = read_once(name), 0, 0
    texts = names.HEADLINES.read_text("utf-8").splitlines()[::4]
    for text in texts:
        recording = model.record(text)
        found = names.ranked_findings(recording)
        assert names.broken(recording, found) == "", text
        one = names.headline(found)
        foreign = bool(unread_language(name, text))
        assert (one.kind == findings.FOREIGN) == foreign
        of_content += bool(one.n_votes) or (
            one.kind in names.PAIRS and not names.fills(recording, one)
        )
        of_the_text += one.kind != findings.REGULARITY
    assert of_content > len(texts) / 3  # the rule is not kept by saying nothing
    assert of_the_text > 0.8 * len(texts)  # and hardly by what holds of any text


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("name", "parts", "least"),
    [("encoder", 7, 10), ("minilm", 7, 10), ("decoder", 3, 3), ("translator", 6, 2)],
)
def test_where_a_head_shows_a_pronouns_noun_the_headline_is_of_the_pronoun(
    name, parts, least
) -> None:
    """The smallest size of `python -m benchmarks.names --pronoun-headlines`."""
    found = names.pronoun_headlines(
        read_once(name), in_turn(names.pronoun_sentences(), parts, name)
    )
    assert found.n_pronoun == found.n >= least, found.missed


def test_marked_sentences_hold_their_words_once_marked() -> None:
    sentences = names.pronoun_sentences()
    assert len({one.text for one in sentences}) == len(sentences) == 120
    for text, pronouns, noun, nouns in sentences:
        assert pronouns and noun and nouns <= set(re.findall(r"\w+", text))
    kinds = set.union(*(set(one.pronouns) for one in sentences))
    assert {*"they she he it him her his their them".split()} <= kinds


def test_the_rule_is_broken_by_what_it_forbids() -> None:
    recording = read_once("encoder").record(SENTENCES[0])
    found = findings.findings(recording)
    assert names.broken(recording, found) == ""
    pronoun = next(one for one in found if one.stands_for)
    plain = next(one for one in found if one.kind in LINKED and not names.fills(recording, one))
    filler = next(one for one in found if one.kind in names.PAIRS and names.fills(recording, one))
    assert "a pronoun's link" in names.broken(recording, (plain, pronoun))
    assert "function word" in names.broken(recording, (filler, plain))
    # A head that gives one word much from every row.
    attention = recording.attention[0]
    sink = int(attention.pattern[pronoun.at].mean(axis=0).argmax())
    low = replace(plain, value=0.2, keys=(sink,), layer=pronoun.layer, head=pronoun.head)
    assert "another row gives" in names.broken(recording, (low,))
