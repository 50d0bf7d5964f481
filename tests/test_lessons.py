"""Lessons: those that come with the app on any text, a reader's own as a file and as a link, and
what is refused of others."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from dataclasses import replace
from itertools import product
from urllib.parse import parse_qsl, urlsplit

import framed
import numpy as np
import pytest
from app_harness import clean, page_at
from conftest import HOSTILE, needs_smollm2, on_page
from ordinary_sentences import SENTENCES
from streamlit.testing.v1 import AppTest

from explorer.analysis import residual
from explorer.components import codec
from explorer.figures.formatting import hundredths, tenths, whole_percent
from explorer.panels import address, attention, lessons, worksheet
from explorer.text import lesson
from explorer.text.lesson import Item, Lesson
from models.contract import edits
from models.contract.results import softmax
from models.example_texts import DEFAULT_TEXT, OPENING_TEXT
from models.runtime.run import Run

NEPAL = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)
TEXTS = (DEFAULT_TEXT, "Ram pushed Hari because he was angry.", "I love to eat pizza.", NEPAL)
MODELS = ("encoder", "decoder", "translator", "minilm")
OWN = Lesson(
    "Two heads",
    (
        Item(
            "/?text=Hi+there&model=encoder&layer=1", heading="First", question="Why?", answer="So."
        ),
        Item("/architecture?tab=residual", note="Slow here."),
    ),
)


def bars(app: AppTest) -> list[dict]:
    """What the bars of lessons on a page were told."""
    return [
        codec.decode(one.proto.bytes)[0]
        for one in on_page(app)
        if one.proto.component_name == "headlight.lesson_bar"
    ]


def cards(app: AppTest) -> dict[str, dict]:
    """What the cards of lessons on a page were told, by the lessons' names."""
    (told,) = [
        codec.decode(one.proto.bytes)[0]
        for one in on_page(app)
        if one.proto.component_name == "headlight.cards"
    ]
    return {each["id"]: each for group in told["groups"] for each in group["cards"]}


def opened_text(document: str) -> str:
    """What a document's data say before anything is drawn."""
    packed = re.search(r'class="data">([^<]+)<', document)
    assert packed is not None
    return json.dumps(codec.decode(gzip.decompress(b64decode(packed[1])))[0], ensure_ascii=False)


def words(item: Item) -> str:
    return f"{item.heading} {item.says}{item.number}{item.rest}"


# ---- what comes with the app ---------------------------------------------------


@pytest.mark.slow
@pytest.mark.in_turn(2)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", TEXTS)
def test_every_step_leads_to_a_tab_and_names_words_of_the_text(model: str, text: str) -> None:
    run = Run(model, text)
    kind = run.recording().model.kind
    for name in lessons.names(kind):
        made = lessons.on(run, name)
        assert 1 < len(made.items) <= 18
        for at, item in enumerate(made.items, 1):
            assert lesson.local(item.address, at) == item.address
            assert item.heading and item.says and "{" not in words(item) and "“”" not in words(item)


@pytest.mark.parametrize("text", TEXTS)
def test_the_word_that_a_lesson_follows_attends_to_another_word_as_it_is_told(text: str) -> None:
    recording = Run("encoder", text).recording()
    hero = lessons.hero(recording, answers=True)
    stream = recording.streams[0]
    assert not stream.special[[hero.query, hero.key]].any() and hero.query != hero.key
    pattern = recording.attention[0].pattern
    assert hero.weight == pattern[hero.layer, hero.head, hero.query, hero.key]
    run = Run("encoder", text)
    made = lessons.on(run, "three-minutes")
    (told,) = [each for each in made.items if each.heading.startswith("This head")]
    hidden = run.under((edits.HideToken(hero.query),)).recording().attention[0].pattern
    row = hidden[hero.layer, hero.head, hero.query]
    assert told.number == hundredths(float(row[hero.key]))


FOLLOWED = [
    *product(MODELS, SENTENCES),
    *(pytest.param("smollm2", text, marks=needs_smollm2) for text in (DEFAULT_TEXT, *TEXTS[1:])),
]


@pytest.mark.slow
@pytest.mark.in_turn(16)
@pytest.mark.parametrize(("model", "text"), FOLLOWED)
def test_the_thickest_line_leads_to_the_word_that_a_lesson_names(model: str, text: str) -> None:
    run = Run(model, text)
    try:
        hero = lessons.hero(run.recording(), answers=True)
    except ValueError:
        return
    row = hero.attention.pattern[hero.layer, hero.head, hero.query]
    keys = run.recording().stream(hero.attention.key).tokens
    assert row[hero.key] == row.max(), (keys[hero.key], keys[int(row.argmax())])
    made = lessons.on(run, "lecture")
    told = [each for each in made.items if " attends to “" in each.heading]
    assert told and all(each.number == whole_percent(float(row.max())) for each in told)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", lessons.written())
def test_every_step_has_a_number_a_note_and_a_question_with_its_answer(
    name: str, model: str
) -> None:
    for item in lessons.on(Run(model, DEFAULT_TEXT), name).items:
        assert re.search(r"\d", item.number), item.heading
        assert bool(item.options) == bool(item.right), item.heading
        assert item.note and item.question and item.answer, item.heading
        assert item.done or lessons.written()[name]["minutes"] < 45, item.heading


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", lessons.written())
def test_a_number_that_its_picture_finds_is_the_one_that_it_finds(name: str, model: str) -> None:
    agree = 0
    for item in lessons.on(Run(model, DEFAULT_TEXT), name).items:
        made = worksheet.pictured(item)
        agree += made is not None and item.number in f"{made.finding} {made.figures}"
    assert agree >= 0.5 * len(lessons.on(Run(model, DEFAULT_TEXT), name).items)


def test_a_sentence_whose_number_a_model_does_not_show_is_left_out() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    says = "One. Two {number}. Three."
    steps = [{"tab": "heads", "heading": "H", "says": says, "number": "modern.rotary:turned"}]
    (item,) = lessons._items(run, None, {}, steps)
    assert (item.says, item.number, item.rest) == ("One. Three.", "", "")


def test_every_number_of_a_lesson_is_one_that_a_panel_hands_out() -> None:
    """Each is told of some model, but the turn of a model that rotates, which none of these is."""
    named = {
        step["number"]: step.get("choices", {})
        for each in lessons.written().values()
        for step in each["item"]
    }
    unknown = {*named} - {"modern.rotary:turned"}
    for model in ("encoder", "decoder"):
        run = Run(model, DEFAULT_TEXT)
        hero = lessons.hero(run.recording())
        slots = lessons._slots(run, hero) | lessons._predicted(run, hero)
        words = {key: slots[key] for key in ("token", "layer", "head")}
        for name in sorted(unknown):
            said = {key: word.format_map(slots) for key, word in named[name].items()}
            unknown -= {name} if lessons._panel_number(run, name, words | said) else set()
    assert not unknown


@pytest.mark.parametrize("name", [*lessons.written()])
def test_the_picture_of_a_step_names_the_word_that_its_heading_asks_about(name: str) -> None:
    for item in lessons.on(Run("encoder", OPENING_TEXT), name).items:
        made = worksheet.pictured(item)
        text = dict(parse_qsl(urlsplit(item.address).query)).get("text", OPENING_TEXT)
        asked = {each for each in re.findall("“(\\w+)”", item.heading) if each in text.split()}
        if made is not None and asked:
            told = " ".join([made.title, made.finding, *made.caption])
            assert all(each in told for each in asked), (item.heading, told)


# Steps of the lectures without a formula: the questions, all heads beside each other, one head, two
# sentences, training that runs, and words alone.
BARE = {"lecture": {1, 13, 15, 17, 18}, "decoder-and-nepal": {1, 7, 13, 18}}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BARE])
def test_each_step_of_a_lecture_has_a_formula_whose_number_its_picture_prints(name: str) -> None:
    for at, item in enumerate(lessons.on(Run("encoder", OPENING_TEXT), name).items, 1):
        made = worksheet.pictured(item)
        header = framed.payload(made) if made else {"formulas": []}
        printed = {
            text
            for formula in header["formulas"]
            for figure in framed.figures(header, formula["id"])
            for *_, text in framed.framed(figure)
        }
        results = {text for each in header["formulas"] for _, text, _ in each["results"]}
        assert results <= printed, item.heading
        assert bool(results) == (at not in BARE[name]), item.heading


@pytest.mark.parametrize("name", ["lecture", "decoder-and-nepal"])
def test_the_picture_of_an_answer_is_made_and_is_another_than_that_of_its_question(
    name: str,
) -> None:
    votes = [each for each in lessons.on(Run("encoder", OPENING_TEXT), name).items if each.options]
    assert len(votes) == 2
    for item in votes:
        path, _, query = item.proof.partition("?")
        panel = path.removeprefix("panel/").removesuffix(".svg")
        words = dict(parse_qsl(query))
        run = address.run_of({word: words.pop(word) for word in address.OF_RUN if word in words})
        assert address.from_words(panel, run, words).figures
        own = worksheet.pictured(item)
        assert own is not None and own.token != address.from_words(panel, run, words).token
        assert item.proof not in lesson.of_followers(Lesson("", (item,))).json


@pytest.mark.parametrize("name", ["lecture", "decoder-and-nepal"])
def test_a_worksheet_tells_no_covered_word_above_its_answers(name: str) -> None:
    run = Run("encoder", OPENING_TEXT)
    item = lessons.on(run, name).items[0]
    panel = worksheet.pictured(item)
    assert panel is not None and not panel.figures[0].words and not panel.figures[0].lanes
    covered = run.recording().texts_with_cover(int(dict(parse_qsl(item.address))["covered"]))[0]
    sheet = opened_text(worksheet.document(replace(lessons.on(run, name), items=(item,))))
    assert name != "lecture" or (covered in sheet and OPENING_TEXT not in sheet)


ATTENTION = (
    "flow recurrence positions.sentence positions.encoding positions.order shapes anatomy.weight "
    "softmax.row saturation scoring combination temperature attention.heads concatenation "
    "attention.heads flow "
    "compare.heads words"
)
TRAINING = (
    "flow mask offset product loss.loss loss.step live training.losses updates norm_steps network "
    "flow attention.head loops lens next_token flow words"
)


@pytest.mark.parametrize("name, steps", [("lecture", ATTENTION), ("decoder-and-nepal", TRAINING)])
def test_a_lecture_has_its_steps_in_their_order_and_no_picture_twice_running(
    name: str, steps: str
) -> None:
    items = lessons.on(Run("encoder", OPENING_TEXT), name).items
    shown = [each.panel or lesson.parts(each.address)[0] for each in items]
    assert len(shown) == len(steps.split())
    assert all(part in panel for part, panel in zip(steps.split(), shown)), shown
    assert all(one != other for one, other in zip(shown, shown[1:]))
    told = [dict(parse_qsl(urlsplit(each.address).query)) for each in items]
    (answer,) = [at for at, each in enumerate(items) if each.heading == "The model’s answer"]
    assert all(("covered" in each) == (at < answer) for at, each in enumerate(told))


@pytest.mark.parametrize("name", ["lecture", "decoder-and-nepal"])
def test_nothing_of_a_lecture_tells_the_answer_before_its_step(name: str) -> None:
    items = lessons.on(Run("encoder", OPENING_TEXT), name).items
    (answer,) = [at for at, each in enumerate(items) if each.heading == "The model’s answer"]
    (word,) = re.findall("^“(.*?)” ", items[answer].says)
    for item in items[:answer]:
        made = worksheet.pictured(item)
        shown = made and f"{made.title} {made.finding} {made.details} {made.caption}"
        told = f"{words(item)} {item.answer} {item.options} {shown}"
        assert not re.search(rf"“{word}”|\b{word}\b \(|{word}\b…", told), (item.heading, told)
        assert "answer “" not in told and " leads from" not in told


@pytest.mark.parametrize("text", TEXTS)
def test_the_key_of_each_vote_is_what_the_model_does(text: str) -> None:
    run = Run("encoder", text)
    plus, out = [each for each in lessons.on(run, "lecture").items if each.options]
    assert plus.heading == "Add 3 to every score of a row"
    layer, head, query = lessons.hero(run.recording(), answers=True).attention, 0, 0
    scores = layer.scores[0, head, query].astype(np.float64)
    assert np.allclose(softmax(scores + 3), softmax(scores))
    assert plus.options.split("\n")[int(plus.right)] == "the same"
    gone = re.search(r"Head (\d+) of layer (\d+) is taken out", out.question)
    assert gone is not None
    edit = edits.ZeroHead(int(gone[2]), int(gone[1]))
    before = run.recording().attention[0].pattern
    after = run.under((edit,)).recording().attention[0].pattern
    stays = []
    for at, option in enumerate(out.options.split("\n")):
        of = re.search(r"head (\d+) of layer (\d+)", option)
        if of is not None:
            place = int(of[2]), int(of[1])
            stays += [at] if np.array_equal(before[place], after[place]) else []
    assert stays == [int(out.right)]


def test_the_keys_of_the_votes_on_a_head_are_what_is_left_without_it() -> None:
    items = lessons.on(Run("encoder", OPENING_TEXT), "decoder-and-nepal").items
    run, votes = Run("decoder", NEPAL), [each for each in items if each.options]
    assert len(votes) == 2
    last = len(run.recording().streams[0].tokens) - 1
    before = softmax(run.loaded.logits(run.recording(), "decoder", last))
    id = int(before.argmax())
    for item in votes:
        head, layer = re.findall(r"ead (\d+) of layer (\d+)", item.question)[-1]
        edited = run.under((edits.ZeroHead(int(layer), int(head)),)).recording()
        after = softmax(run.loaded.logits(edited, "decoder", last))
        left = 2 if int(after.argmax()) != id else int(after[id] <= before[id] / 2)
        assert int(item.right) == left, item.heading
    assert {each.right for each in votes} == {"2", "0"}


def test_the_other_head_of_a_vote_is_said_to_give_what_the_page_attention_shows() -> None:
    """Summed over the pieces of “Nepal”, as of the head that the lesson follows."""
    items = lessons.on(Run("encoder", OPENING_TEXT), "decoder-and-nepal").items
    run, told = Run("decoder", NEPAL), {}
    for item in items:
        for said in (f"{item.says}{item.number}{item.rest}", item.question):
            pattern = r"ead (\d+) of layer (\d+) gives (?:“Nepal” )?([\d.]+) of the attention"
            for head, layer, weight in re.findall(pattern, said):
                told[int(layer), int(head)] = weight
    assert len(told) == 2
    tokens, pattern = run.recording().streams[0].tokens, run.recording().attention[0].pattern
    first = tokens.index("N")
    assert "".join(tokens[first : first + 3]).replace("‧", "") == "Nepal"
    of_word = pattern[:, :, -1, first : first + 3].sum(axis=-1)
    for at, weight in told.items():
        page = attention.head(run, layer=at[0], head=at[1], token=len(tokens) - 1, key=first)
        assert weight == page.numbers["word_weight"].text == hundredths(float(of_word[at]))
    first_one, other = told
    of_word[first_one] = -1
    assert np.unravel_index(of_word.argmax(), of_word.shape) == other


@pytest.mark.parametrize(
    "model", ["encoder", "decoder", pytest.param("smollm2", marks=needs_smollm2)]
)
def test_a_layer_that_adds_nothing_does_what_the_answer_says(model: str) -> None:
    """After a norm behind the sum the vector is another, without one it is the same."""
    run = Run(model, DEFAULT_TEXT)
    said, stream = lessons._idle(run), run.recording().streams[0]
    place = residual.sublayers(stream)[-1]
    is_kept = np.array_equal(stream.at(place.total), stream.at(place.after))
    assert ("Nothing" in said) == is_kept and ("LayerNorm behind the sum" in said) != is_kept


def test_the_answer_names_every_head_that_changes_it_when_it_alone_is_taken_out() -> None:
    """More than one head does on this text, and none of another kind is claimed."""
    run = Run("encoder", "The waiter brought the soup but it was cold.")
    (item,) = [
        each for each in lessons.on(run, "lecture").items if each.heading == "The model’s answer"
    ]
    word = next(
        at for at, each in enumerate(run.recording().streams[0].tokens) if each.strip() == "it"
    )
    id = run.recording().streams[0].ids[word]
    turning = set()
    for layer, head in np.ndindex(run.recording().attention[0].pattern.shape[:2]):
        edited = run.under((edits.HideToken(word), edits.ZeroHead(layer, head))).recording()
        if int(run.loaded.logits(edited, "encoder", word).argmax()) != id:
            turning.add((head, layer))
    told = item.answer.partition("was taken out by itself. ")[2]
    assert told.startswith(f"{len(turning)} change the answer")
    named = {(int(h), int(la)) for h, la in re.findall(r"head (\d+) of layer (\d+)", told)}
    assert named == turning and len(turning) > 1


def test_a_head_that_was_not_taken_out_is_not_spoken_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessons, "MOST_WORK", 0)
    items = lessons.on(Run("encoder", "The baker sold the bread because it was fresh."), "lecture")
    (item,) = [each for each in items.items if each.heading == "The model’s answer"]
    assert item.answer.endswith("one of them may change it as well.")


@pytest.mark.slow
@pytest.mark.parametrize(("model", "text"), list(product(MODELS, (*TEXTS, OPENING_TEXT))))
def test_where_scores_grow_or_shrink_weights_are_seen_to_change(model: str, text: str) -> None:
    """The largest weight has room to grow, wherever a head of the attention has such a one."""
    try:
        items = lessons.on(Run(model, text), "lecture").items
    except ValueError:  # this model has nothing for so short a text
        return
    shown = {each.panel: each for each in items if "look_at=" in each.address}
    step = shown["soft_lookup.temperature"]
    panel = worksheet.pictured(step)
    assert panel is not None
    at = panel.arguments
    of = next(
        each
        for each in panel.run.recording().attention
        if each.name == at["attention"] or not at["attention"]
    )
    largest = of.pattern[:, :, int(at["token"])].max(axis=-1)
    own = float(largest[at["layer"], at["head"]])
    assert step.number == hundredths(own)
    assert own <= lessons.MIDDLING or not ((largest > 0.2) & (largest < 0.8)).any()
    if "softmax.saturation" in shown and own < lessons.MIDDLING:
        (bars,) = worksheet.pictured(shown["softmax.saturation"]).figures
        with_scale, without = max((row.values for row in bars.rows[:-1]), key=lambda row: row[0])
        assert without > with_scale + 0.1 or bars.rows[-1].values[1] < bars.rows[-1].values[0] / 2


def test_a_lesson_begins_as_it_goes_on() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    for name in lessons.names("encoder"):
        made = lessons.on(run, name)
        assert lessons.beginning(run, name) == (made.items[0], len(made.items))


def test_a_worksheet_shows_what_the_step_shows() -> None:
    steps = lessons.on(Run("encoder", DEFAULT_TEXT), "lecture").items
    by_panel = {each.panel: worksheet.pictured(each) for each in steps}
    assert "Both predict “it”" in by_panel["compare.heads"].finding
    smollm2 = lessons.on(Run("decoder", NEPAL), "lecture").items
    (weight,) = [each for each in smollm2 if each.panel == "anatomy.weight"]
    assert f"“fluent” gives “N” of “Nepal” {weight.number}" in worksheet.pictured(weight).finding


def test_all_experiments_of_a_lesson_stand_side_by_side_with_their_numbers() -> None:
    *steps, last = lessons.on(Run("encoder", DEFAULT_TEXT), "what-breaks").items
    made = worksheet.pictured(last)
    assert made is not None and made.name == "interventions.experiments"
    shown = {edits.from_line(line): p for line, p in zip(*(made.table[n] for n in COLUMNS))}
    told = {i.address: i.number for i in steps if "edits=" in i.address}
    assert len(told) == 7
    for line_of, number in told.items():
        line = dict(parse_qsl(urlsplit(line_of).query))["edits"]
        assert tenths(max(shown[edits.from_line(line)], 1e-30)) == number, line
    assert tenths(shown[()]) == last.number == steps[0].number


COLUMNS = ("edits", "probability")


def test_a_lesson_ends_on_the_probability_that_the_model_gives() -> None:
    run = Run("decoder", NEPAL)
    last = lessons.on(run, "three-minutes").items[-1]
    assert "“Nepali” gets" in words(last) and last.number == "89.6%"


def test_a_lesson_follows_the_word_that_the_reader_chose() -> None:
    recording = Run("encoder", DEFAULT_TEXT).recording()
    street = recording.streams[0].tokens.index("street")
    made = lessons.on(Run("encoder", DEFAULT_TEXT), "three-minutes", street)
    assert "“street”" not in words(made.items[0])
    assert all(
        dict(parse_qsl(urlsplit(i.address).query))["token"] == str(street) for i in made.items
    )


@pytest.mark.parametrize("token", [0, 30, -1, 10**6])
def test_a_word_that_is_not_there_is_not_followed(token: int) -> None:
    run = Run("encoder", "Ram pushed Hari because he was angry.")
    assert lessons.on(run, "three-minutes", token) == lessons.on(run, "three-minutes")


def test_a_word_of_the_text_on_screen_is_none_of_a_lesson_with_its_own_text() -> None:
    run = Run("encoder", " ".join(["one two three"] * 12))
    assert lessons.on(run, "first-attention", 30) == lessons.on(run, "first-attention")
    (bar,) = bars(
        clean(page_at("heads", lesson="first-attention", lesson_word="30", text=run.text))
    )
    assert "it" in bar["items"][1]["says"]


def all_words(model: str, text: str) -> str:
    """Everything that both lessons say to a reader of this model, notes too."""
    made = [lessons.on(Run(model, text), name) for name in ("three-minutes", "lecture")]
    return " ".join(f"{words(i)} {i.note} {i.question} {i.answer}" for m in made for i in m.items)


def test_a_lesson_counts_the_tokens_up_to_the_word_that_it_follows() -> None:
    run = Run("decoder", "Ram pushed Hari because he was tired")
    token = run.recording().streams[0].tokens.index("because")
    said = words(lessons.on(run, "three-minutes", token).items[0])
    assert f"has read {token + 1} tokens, up to “because”" in said


def test_only_a_translator_is_said_to_translate() -> None:
    said = all_words("translator", "The cat sleeps.")
    assert "writes French" in said and "its translation" in said
    for model in ("copy", "reverse"):
        said = all_words(model, "a b c d")
        assert "French" not in said and "translation" not in said and "English" not in said
        assert "reads one text and writes another" in said


@pytest.mark.parametrize(
    ("model", "there", "missing"),
    [
        ("induction", ["Nothing is overwritten", "where it stands", "divided"], []),
        ("induction-no-residual", [], ["Nothing is overwritten"]),
        ("induction-no-positions", ["becomes a vector"], ["where it stands", "position is added"]),
        ("induction-no-scale", [], ["Why the scores are divided"]),
    ],
)
def test_a_lesson_says_of_a_model_without_a_part_nothing_of_that_part(
    model: str, there: list[str], missing: list[str]
) -> None:
    said = all_words(model, "a b c a b").lower()
    assert all(each.lower() in said for each in there)
    assert not [each for each in missing if each.lower() in said]


@pytest.mark.parametrize(
    ("changes", "there", "missing"),
    [
        ({"positions": "rotary"}, ["rotates queries and keys"], ["and where it stands"]),
    ],
)
def test_a_lesson_names_the_kind_of_each_part(
    changes: dict, there: list[str], missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run("encoder", "Ram pushed Hari because he was angry.")
    offers = replace(run.loaded.capabilities, **changes)
    monkeypatch.setattr(type(run.loaded), "capabilities", offers)
    made = [
        item
        for name in ("three-minutes", "lecture")
        for of in [lessons.written()[name]]
        for item in lessons._items(run, None, of, lessons._steps(run, of))
    ]
    said = " ".join(f"{words(i)} {i.note} {i.answer}" for i in made)
    assert all(each in said for each in there)
    assert not [each for each in missing if each in said]


def test_a_text_without_words_gets_a_sentence_and_no_lesson() -> None:
    with pytest.raises(ValueError, match="too few words"):
        lessons.on(Run("encoder", "..."), "three-minutes")


GERMAN = "Die Großmutter grüßte die Nachbarn, weil sie müde war."


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("model", ("encoder", "decoder", "translator"))
@pytest.mark.parametrize("text", ["", "Hari", "👩‍👩‍👧 🎉", HOSTILE["right to left"], GERMAN])
def test_on_an_awkward_text_a_lesson_is_whole_or_says_why_not(text: str, model: str) -> None:
    run = Run(model, text)
    for name in ("three-minutes", "lecture"):
        try:
            made = lessons.on(run, name)
        except ValueError as why:
            assert re.fullmatch(r"[A-Z“][^\n{}]+\.", str(why))
            assert text != GERMAN
            app = page_at("lessons", model=model, text=text)
            card = cards(clean(app))[name]
            assert card["foot"] == str(why) and not card["is_there"] and not card["to"]
            continue
        for item in made.items:
            assert "{" not in words(item) and "“”" not in words(item), item
            assert worksheet.pictured(item) is not None or item.panel in ("", lesson.OWN_WORDS), (
                item
            )


# ---- a lesson as data ----------------------------------------------------------


def test_a_lesson_comes_back_from_its_file_and_from_its_link() -> None:
    assert lesson.from_json(OWN.json) == OWN
    assert lesson.from_json("\ufeff" + OWN.json) == OWN, "an editor may set its mark"
    assert lesson.from_word(OWN.word) == OWN
    assert "note" not in json.loads(OWN.json)["items"][0], "what is empty is left out"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_can_stand_in_a_lesson(text: str) -> None:
    text = text[:4000]
    made = Lesson(text, (Item("/", heading=text, says=text, note=text),))
    assert lesson.from_json(made.json) == made and lesson.from_word(made.word) == made


HALF = r"\ud800"  # of a surrogate pair, as a file of JSON writes it


def test_half_a_surrogate_pair_in_a_lesson_is_replaced() -> None:
    item = f'{{"address": "/?text={HALF}", "heading": "a{HALF}", "panel": "{HALF}"}}'
    made = lesson.from_json(f'{{"title": "{HALF}", "items": [{item}]}}')
    assert made.title == "\ufffd" and made.items[0].heading == "a\ufffd"
    assert lesson.from_word(made.word) == made == lesson.from_json(made.json)
    assert "a\ufffd" in opened_text(worksheet.document(made))
    app = page_at("lessons")
    hold(app, made)
    clean(app.run())
    clean(page_at("heads", lesson=made.word))


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[]",
        "[" * 100_000,
        '{"title": "x"}',
        '{"title": 3, "items": []}',
        '{"title": "x", "items": [{}]}',
        '{"title": "x", "items": [{"address": "/", "says": 3}]}',
        '{"title": "x", "items": [{"address": "/", "note": true}]}',
        '{"title": "x", "items": [{"address": "http://elsewhere.example/"}]}',
        '{"title": "x", "items": [{"address": "//elsewhere.example/"}]}',
        '{"title": "x", "items": [{"address": "javascript:alert(1)"}]}',
        '{"title": "x", "items": [{"address": "/nowhere"}]}',
        '{"title": "x", "items": [{"address": "/?tab=nowhere"}]}',
        json.dumps({"title": "x", "items": [{"address": "/"}] * 100}),
        json.dumps({"title": "x", "items": [{"address": "/", "says": "x" * 5000}]}),
    ],
)
def test_what_is_no_lesson_gets_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z“][^\n]+\.$"):
        lesson.from_json(text)


def test_a_link_that_would_unpack_to_very_much_is_refused() -> None:
    bomb = Lesson("x", (Item("/", says="x" * 10_000_000),))
    assert len(bomb.word) < 50_000
    with pytest.raises(ValueError, match="cut or damaged"):
        lesson.from_word(bomb.word)
    with pytest.raises(ValueError, match="cut or damaged"):
        lesson.from_word(OWN.word[:-9])


def test_an_address_leaves_the_lesson_behind_that_it_was_a_step_of() -> None:
    assert lesson.local("/?lesson=own&lesson_step=3&layer=1", 1) == "/?layer=1"


# ---- on the page ---------------------------------------------------------------


def test_the_bar_shows_the_step_of_the_address_on_every_tab() -> None:
    app = clean(page_at("residual", lesson="three-minutes", lesson_step="7"))
    (bar,) = bars(app)
    assert bar["at"] == 6 and bar["choices"] == {"lesson": "three-minutes"}
    assert not bars(page_at("residual"))


@pytest.mark.parametrize("word", ["nowhere", "~nothing", "own"])
def test_a_lesson_that_is_not_there_gets_a_sentence_and_the_tab(word: str) -> None:
    app = page_at("heads", lesson=word)
    assert not app.exception and not bars(app)
    if word == "own":  # which the browser is asked for first
        assert not app.info
        app.session_state["lessons_read"] = True
        app.run()
    assert app.info


def test_a_hostile_lesson_is_told_as_it_is_written() -> None:
    made = Lesson(HOSTILE["script"], (Item("/", heading=HOSTILE["bold"], note=HOSTILE["latex"]),))
    (bar,) = bars(clean(page_at("heads", lesson=made.word)))
    assert bar["title"] == HOSTILE["script"] and bar["items"][0]["heading"] == HOSTILE["bold"]


def test_a_card_begins_its_lesson_and_says_how_long_it_takes() -> None:
    app = clean(page_at("lessons"))
    every = cards(app)
    assert [*every] == [*lessons.written()]
    for name, card in every.items():
        tab, choices = lesson.parts(card["to"])
        assert (choices["lesson"], choices["lesson_step"]) == (name, "1")
        about = lessons.written()[name]
        first, n = lessons.beginning(Run("encoder", OPENING_TEXT), name)
        assert tab == lesson.parts(first.address)[0]
        whose = "By yourself" if about.get("alone") else "With a class"
        assert card["foot"] == f"{whose}: {n} steps, {about['minutes']} min"
        assert card["says"] in str(about)
    assert every["three-minutes"]["foot"] == "By yourself: 8 steps, 3 min"


def test_the_readers_own_lesson_is_one_press_away_and_open_where_it_has_steps() -> None:
    assert not {each.key for each in page_at("lessons").text_input} & {"lesson_title"}
    app = clean(page_at("lessons", my_lesson="1"))
    assert "lesson_title" in {each.key for each in app.text_input}
    app = page_at("lessons")
    hold(app, OWN)
    assert "lesson_title" in {each.key for each in clean(app.run()).text_input}


def test_a_text_that_no_address_holds_has_cards_that_are_pressed() -> None:
    app = clean(page_at("lessons", text="The dog saw the cat. " * 400))
    assert not cards(app)["lecture"]["to"] and cards(app)["first-attention"]["to"]


def hold(app: AppTest, lesson: Lesson) -> None:
    """Make this the lesson of the visit."""
    app.session_state["own_lesson"], app.session_state["own_lessons"] = "mine", {"mine": lesson}


def held(app: AppTest) -> Lesson:
    return app.session_state["own_lessons"][app.session_state["own_lesson"]]


def test_steps_of_an_own_lesson_are_ordered_written_and_removed() -> None:
    app = page_at("lessons")
    hold(app, OWN)
    clean(app.run())
    clean(app.button(key="arrow_downward 0").click().run())
    headings = [each.address for each in held(app).items]
    assert headings == [each.address for each in reversed(OWN.items)]
    clean(app.button(key="remove 0").click().run())
    (left,) = held(app).items
    assert left == OWN.items[0]
    clean(app.button(key="duplicate 0").click().run())
    assert held(app).items == (left, left)


def test_what_is_typed_is_kept_where_its_step_is_moved_at_once() -> None:
    app = page_at("lessons")
    hold(app, OWN)
    clean(app.run())
    note = next(each for each in app.text_area if each.key.startswith("lesson note "))
    note.set_value("Typed last.")
    clean(app.button(key="arrow_downward 0").click().run())  # both in one run
    first, second = held(app).items
    assert (first, second.note) == (OWN.items[1], "Typed last.")
    assert second.address == OWN.items[0].address


@pytest.mark.parametrize("line", ["softmax(Q K^T / √d_k) V", "a_", "((((", "{", *HOSTILE.values()])
def test_a_formula_of_a_step_is_typeset_or_told_and_breaks_nothing(line: str) -> None:
    item = Item("/?layer=1", heading="Mine", says="See.", panel="words", formula=line[:4000])
    made = lesson.from_json(Lesson("x", (item,)).json)
    (bar,) = bars(clean(page_at("heads", lesson=made.word, lesson_step="1")))
    node = bar["items"][0]["typeset"]
    assert node is None or (node[0] == "math" and "script" not in {each for each in names(node)})
    if line == "softmax(Q K^T / √d_k) V":
        assert {"math", "mfrac", "msqrt", "msup"} <= set(names(node))


def names(node: list) -> list[str]:
    """The names of the elements of a formula."""
    inside = node[2] if isinstance(node[2], list) else []
    return [node[0], *(each for one in inside for each in names(one))]


def test_a_page_becomes_a_step_by_its_address_and_another_site_does_not() -> None:
    app = page_at("lessons")
    hold(app, OWN)
    clean(app.run())
    field = next(each for each in app.text_input if each.key == "lesson_address")
    clean(field.set_value("http://here/architecture?tab=residual&layer=1").run())
    assert held(app).items[-1].address == "/architecture?tab=residual&layer=1"
    assert held(app).items[-1].panel == "residual.updates"
    field = next(each for each in app.text_input if each.key == "lesson_address")
    app = clean(field.set_value("javascript:alert(1)").run())
    assert len(held(app).items) == len(OWN.items) + 1 and "leads to no tab" in app.warning[0].value


# ---- the worksheet -------------------------------------------------------------


def test_a_worksheet_has_pictures_questions_and_answers_at_its_end() -> None:
    made = lessons.on(Run("encoder", DEFAULT_TEXT), "three-minutes")
    assert all(worksheet.pictured(each) is not None for each in made.items)
    text = opened_text(worksheet.document(made))
    asked = [each for each in made.items if each.question]
    assert all(each.question in text for each in asked)
    assert text.index(asked[-1].question) < text.index("Answers") < text.index(asked[0].answer)
    assert "Name:" in text


def test_a_worksheet_asks_each_question_once_and_letters_the_answers_of_a_vote() -> None:
    """A step whose words end in the question of its vote has it once; one that leads to the sheet
    is its question alone."""
    made = lessons.on(Run("encoder", OPENING_TEXT), "lecture")
    sheet = opened_text(worksheet.document(made))
    votes = [each for each in made.items if each.choices]
    assert votes and all(item.question not in sheet for item in votes)
    for item in votes:
        for letter, option in zip("ABCD", item.choices):
            assert f"{letter}: {option}" in sheet
        assert f"{'ABCD'[int(item.right)]}: {item.answer}" in sheet
    (last,) = [each for each in made.items if each.link]
    assert f"{len(made.items)}. {last.question}" in sheet
    assert last.heading not in sheet and last.says not in sheet


def test_a_step_whose_picture_cannot_be_made_has_its_words_alone() -> None:
    item = Item("/architecture?token=999", heading="Far", panel="architecture.flow")
    assert worksheet.pictured(item) is None
    assert "Far" in opened_text(worksheet.document(Lesson("x", (item,))))


@pytest.mark.parametrize(
    "query",
    [
        *("edits=boom", "edits=ZeroHead:99:0:self", "edits=ScaledBy:1e400", "edits=HideToken:999"),
        *(
            "model=../../etc/passwd",
            "model=nothing",
            "text=%20",
            "layer=99",
            "head=1e9",
            "token=-5",
        ),
        *("text=%00%00", "text=%ED%A0%80", "layer=" + "9" * 3000),
    ],
)
def test_no_address_breaks_a_worksheet(query: str) -> None:
    item = Item(f"/?text=Hi+there&{query}", heading="Broken", panel="attention.head")
    assert "Broken" in opened_text(worksheet.document(Lesson("x", (item,))))


@pytest.mark.parametrize("why", [IndexError, NotImplementedError, OverflowError, TypeError])
def test_a_panel_that_fails_leaves_the_words(
    why: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: object) -> None:
        raise why

    monkeypatch.setattr(worksheet.address, "from_words", failing)
    item = Item("/?text=Hi+there", heading="Broken", panel="attention.head")
    assert "Broken" in opened_text(worksheet.document(Lesson("x", (item,))))


def test_a_worksheet_has_at_most_twenty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    item = Item("/?text=Hi+there", heading="Step", panel="residual.norms")
    made = worksheet.pictured(item)
    asked = []
    monkeypatch.setattr(worksheet, "pictured", lambda each: asked.append(each) or made)
    text = opened_text(worksheet.document(Lesson("x", (item,) * 60)))
    assert len(asked) == worksheet.MOST_PICTURES == 20
    assert "60. Step" in text


def test_a_reader_gets_pictures_of_what_a_reader_may_open() -> None:
    lesson_of = lambda *queries: Lesson(
        "x", tuple(Item(f"/?{each}", panel="attention.head") for each in queries)
    )
    made = lesson_of(
        "text=Hi", "text=" + "a" * 101, "text=Hi&model=secret", "text=Hi&model=encoder"
    )
    shown = worksheet.within(made, 100, lambda name: name != "secret")
    assert [each.panel for each in shown.items] == ["attention.head", "", "", "attention.head"]
    assert [each.address for each in shown.items] == [each.address for each in made.items]


@pytest.mark.parametrize(
    ("options", "right", "n"),
    [
        ("yes\nno", "1", 2),
        ("\n yes \n\nno\nboth\nnone", "3", 4),
        ("yes\nno", "", 0),
        ("yes\nno", "2", 0),
        ("yes\nno", "-1", 0),
        ("yes\nno", "²", 0),
        ("yes", "0", 0),
        ("a\nb\nc\nd\ne", "0", 0),
        (f"{'long ' * 40}\nno", "1", 0),
    ],
)
def test_answers_to_choose_from_are_a_few_short_ones_of_which_one_is_right(
    options: str, right: str, n: int
) -> None:
    item = Item("/", question="Which?", options=options, right=right)
    read = lesson.from_word(Lesson("One", (item,)).word).items[0]
    assert read == item and len(read.choices) == n
    assert not replace(item, question="").choices
    assert not n or read.true_option == read.choices[int(right)]
