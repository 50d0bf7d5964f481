"""The beam: the places of the words that race, the layers that matter, what a stop says, and that
the question before it tells nothing."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import numpy as np
import pytest
from conftest import needs_smollm2, texts_of
from ordinary_sentences import SENTENCES
from tolerances import PASSED, STORED, TOTAL

from explorer.analysis import flow, logit_lens, residual
from explorer.analysis.words import hidden_word
from explorer.figures.formatting import ordinal, tenths
from explorer.figures.kinds import as_plain
from explorer.panels import architecture, flow_beam, flow_way
from explorer.panels import logit_lens as lens_panels
from explorer.panels import residual as residual_panels
from explorer.panels.flow_levels import is_word
from models.contract.edits import HideToken, HideWord, ZeroHead, from_line
from models.contract.results import softmax
from models.example_texts import CONTINUED_TEXT
from models.runtime.caching import loaded
from models.runtime.run import Run

pytestmark = pytest.mark.slow
WAITER = "The waiter brought the soup but it was cold."
ROME = "The capital of France is Paris. The capital of Italy is"
MODELS = ["encoder", "decoder", "translator"]


def test_a_place_is_an_ordinal() -> None:
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 22, 103, 111, 2155, 12_571)
    assert [ordinal(each) for each in numbers] == (
        "1st 2nd 3rd 4th 11th 12th 13th 21st 22nd 103rd 111th 2,155th 12,571st".split()
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, *SENTENCES[3:5]])
def test_a_lane_has_the_places_of_its_word_among_all_logits(model: str, text: str) -> None:
    panel = architecture.flow(Run(model, text))
    figure, drawn = panel.figures[0], panel.at["run"]
    recording = drawn.recording()
    stream, token = recording.streams[-1], int(figure.bands[-1].places[figure.bands[-1].selected])
    lens = loaded(recording).lens(recording, stream.name, recording.model.n_vocab, token)
    order = {site: lens.top_ids[at, 0].tolist() for at, site in enumerate(lens.sites)}
    layers = flow.in_layers(stream)
    ends = flow.layer_sites(stream) | {max(layers): lens.sites[-1]}
    offset = len(figure.layers) - len(layers)
    for lane in figure.lanes:
        found = [order[ends[layer]].index(lane.id) + 1 for layer in (-1, *layers)]
        assert lane.places == tuple(found), lane.label
        for column, place in zip(figure.slow, lane.middles, strict=True):
            layer = list(layers)[column - offset]
            assert order[layers[layer][-2].after].index(lane.id) + 1 == place
    chances = [each.chance for each in figure.lanes]
    assert chances == sorted(chances, reverse=True)
    assert figure.lanes[0].places[-1] == 1


def test_the_layers_that_matter_bring_the_answer_forward_or_decide() -> None:
    assert flow.layers_that_matter((4554, 12571, 2155, 65, 3, 5, 2, 1)) == (2, 3, 6)
    assert flow.layers_that_matter((4554, 12571, 2155, 65, 3, 5, 2, 1), 4) == (2, 4, 6)
    assert flow.layers_that_matter((1, 1, 1)) == ()
    assert flow.layers_that_matter((1, 1, 1), 1) == (1,)
    assert flow.layers_that_matter((9, 3, 1, 1)) == (0, 1)
    rng = np.random.default_rng(1)
    for _ in range(50):
        places = [*rng.integers(1, 900, 9).tolist(), 1]
        found = flow.layers_that_matter(places)
        factors = [a / b for a, b in zip(places, places[1:])]
        stays = max(at for at, place in enumerate(places) if place > 1)
        assert stays in found and all(factors[at] > 1 for at in found)
        assert factors[int(np.argmax(factors))] in [factors[at] for at in found]


def test_a_second_spelling_does_not_race() -> None:
    p = np.array([0.1, 0.4, 0.2, 0.25, 0.05])
    names = ["a", "Italy", "italy", "the", "of"]
    assert flow.race(p, names.__getitem__, 3) == (1, 3, 0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, *SENTENCES[5:8]])
def test_what_a_stop_says_is_what_its_lane_shows(model: str, text: str) -> None:
    figure = architecture.flow(Run(model, text)).figures[0]
    lane, said = figure.lanes[0], 0
    offset = len(figure.layers) - len(lane.places) + 1
    for column in range(offset, len(figure.layers)):
        finding = figure.stops[column].finding
        before, after = lane.places[column - offset : column - offset + 2]
        if moved := re.search(r"(?:lifts|drops) “.+?” from (\S+) to (\S+) place\. ", f"{finding} "):
            assert moved.groups() == (ordinal(before), ordinal(after))
        elif left := re.search(
            r"(?:leaves “.+?” in|ends with “.+?” in) (\S+) place(?: again)?\. ",
            f"{finding} ",
        ):
            assert left[1] == ordinal(before) == ordinal(after)
        elif stands := re.search(r"stands (\S+) of (\S+) words", finding):
            assert stands.groups() == (ordinal(after), f"{figure.n_words:,}")
        else:
            assert re.search(r"fetches “|reads “|puts “", finding), finding
        assert not re.search(r"%|logit|[+−]\d", finding), "before the end there are places alone"
        if parts := re.search(r"Its heads .+? (\S+) place; then .+? to (\S+)\.$", finding):
            middle = lane.middles[figure.slow.index(column)]
            assert parts.groups() == (ordinal(middle), ordinal(after))
        if "F leaves it" in finding:
            assert lane.middles[figure.slow.index(column)] == after != before
        said += 1
    assert said == len(lane.places) - 1
    assert f"“{lane.label}”, {lane.text}" in figure.stops[-1].finding


CAUSES = [("encoder", text) for text in (WAITER, SENTENCES[2], SENTENCES[8])] + [
    ("translator", WAITER)
]


@pytest.mark.parametrize(("model", "text"), CAUSES)
def test_one_head_is_the_cause_in_the_end_and_in_its_layer(model: str, text: str) -> None:
    figure = architecture.flow(Run(model, text), beam="end").figures[0]
    column, which, head, row = figure.cause
    labels = [label for band in figure.bands for label in band.rows]
    layer, stop = figure.layers[column], figure.stops[column]
    assert column in figure.matters and column in figure.slow
    told = figure.stops[-1].part.lower()
    assert told == f"head {head} of layer {layer.layer} reads “{labels[row].lower()}”."
    assert re.match(rf"Layer {layer.layer} (reads|fetches) “{labels[row]}”\. ", stop.finding)
    assert stop.levels[2].select["head"] == str(head) == figure.stops[-1].levels[2].select["head"]
    weights = layer.attentions[which].weights[head]
    assert weights[row] == weights.max(), "its curve is the widest"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, SENTENCES[5]])
def test_a_stop_names_only_words_that_have_a_lane_or_a_row(model: str, text: str) -> None:
    figure = architecture.flow(Run(model, text)).figures[0]
    labels = {label for band in figure.bands for label in band.rows}
    pieces = "".join(label.removeprefix("‧") for band in figure.bands for label in band.rows)
    racing = {each.label for each in (*figure.lanes, *figure.leaders)}
    for column in figure.slow:
        racing.add(figure.stops[column].middle)  # it stands below the line
        for word in re.findall("“(.+?)”", figure.stops[column].finding):
            is_row = word in labels or word in pieces  # of a word of several tokens
            assert is_row or word in racing, figure.stops[column].finding


@pytest.mark.parametrize(("model", "text"), CAUSES)
def test_what_parts_add_to_the_answer_sums_to_its_lead(model: str, text: str) -> None:
    panel = architecture.flow(Run(model, text))
    figure, recording = panel.figures[0], panel.at["run"].recording()
    stream, token = recording.streams[-1], int(figure.bands[-1].places[figure.bands[-1].selected])
    of, way = loaded(recording), flow_way.Way(recording, recording.streams[-1], token)
    logits = of.logits(recording, stream.name, token)
    answer, rival = (each.id for each in figure.lanes[:2])
    lead = float(logits[answer]) - float(logits[rival])
    adds = flow_way.additions(way, answer, rival)
    whole = of.attribute(recording, stream.name, token, answer, rival)
    assert whole.logit == pytest.approx(lead, abs=TOTAL)
    heads = sum(float(each.sum()) for each in adds.heads.values())
    rest = sum(e.value for e in whole.parts if e.kind != "head")
    assert heads + rest == pytest.approx(lead, abs=TOTAL)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, *SENTENCES[:4]])
def test_a_tag_tells_what_an_ffn_makes_of_the_guess_or_of_the_answers_place(
    model: str, text: str
) -> None:
    panel = architecture.flow(Run(model, text))
    figure, recording = panel.figures[0], panel.at["run"].recording()
    stream, token = recording.streams[-1], int(figure.bands[-1].places[figure.bands[-1].selected])
    lane, offset = figure.lanes[0], len(figure.layers) - len(figure.lanes[0].places) + 1
    sites = flow.middle_sites(stream)
    for column, middle in zip(figure.slow, lane.middles, strict=True):
        stop, layer = figure.stops[column], figure.layers[column]
        lens = loaded(recording).lens(recording, stream.name, 1, token, (sites[layer.layer],))
        (guess,) = loaded(recording).labels([int(lens.top_ids[0, 0, 0])])
        assert stop.middle in (guess, guess.removeprefix("‧"))
        before, place = lane.places[column - offset : column - offset + 2]
        moved = f"“{lane.label}” {ordinal(middle)} → {ordinal(place)}"
        turned = f"“{stop.middle}” → “{layer.says[0]}”"
        are_words = is_word(stop.middle) and is_word(layer.says[0])
        of_place = "" if middle == place else moved
        assert stop.adds == (turned if are_words and stop.middle != layer.says[0] else of_place)
        if stop.brings and column not in figure.cause[:1]:
            assert middle <= before, "heads that push the answer back are not told to lift it"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, *SENTENCES[:3]])
def test_a_dot_is_as_dark_as_its_head_adds_to_the_answer_against_its_rival(
    model: str, text: str
) -> None:
    panel = architecture.flow(Run(model, text))
    figure, recording = panel.figures[0], panel.at["run"].recording()
    token = int(figure.bands[-1].places[figure.bands[-1].selected])
    answer, rival = figure.lanes[0].id, figure.against
    stream = recording.streams[-1].name
    whole = loaded(recording).attribute(recording, stream, token, answer, rival)
    heads = {(e.attention, e.layer, e.head): e.value for e in whole.parts if e.kind == "head"}
    for layer in figure.layers:
        for attention in layer.attentions:
            for head, added in enumerate(attention.adds):
                own = heads.pop((attention.name, layer.layer, head))
                assert added == pytest.approx(own, abs=TOTAL)
    assert not heads, "each head of the last stream has a dot"


@pytest.mark.parametrize("model", [*MODELS, "smollm2"])
def test_what_an_ffn_is_told_to_write_is_a_word_that_it_brings_forward(model: str) -> None:
    for text in [WAITER, "The opposite of hot is", *SENTENCES[:2]]:
        panel = architecture.flow(Run(model, text))
        figure, recording = panel.figures[0], panel.at["run"].recording()
        stream, of = recording.streams[-1], loaded(recording)
        token = int(figure.bands[-1].places[figure.bands[-1].selected])
        for column in figure.slow:
            words, layer = figure.stops[column].writes, figure.layers[column].layer
            if not words:
                continue
            ffn = next(e for e in flow.in_layers(stream)[layer] if e.place == "ffn")
            ids = of.nearest(stream.at(ffn.wrote)[[token]].astype(np.float32), 1)[0][0]
            assert words.startswith(of.labels(ids.tolist())[0].removeprefix("‧"))
            sites = (flow.middle_sites(stream)[layer], ffn.after)
            ranks = of.lens(recording, stream.name, 1, token, sites, tuple(ids.tolist())).ranks
            assert ranks[1, 0] < ranks[0, 0]


OUT = re.compile(
    r"Without head (\d+) of layer (\d+), which reads “(.+?)”, “(.+?)” falls from (.+?%) to (.+?%)"
    r"\.(?: “(.+?)” rises from (.+?%) to (.+?%)\.)?"
)
LITTLE = re.compile(
    r"Head (\d+) of layer (\d+) reads “(.+?)”, but (?:decides little|does not decide): "
    r"without it “(.+?)” (?:still )?has (.+?%)\."
)


def without(run: Run, edits: tuple, place: int) -> np.ndarray:
    """The probabilities at a token of a run's last stream under edits."""
    recording = run.under(edits).recording()
    logits = loaded(recording).logits(recording, recording.streams[-1].name, place)
    p = np.exp(logits - logits.max())
    return p / p.sum()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, *SENTENCES[2:8]])
def test_the_cause_is_told_by_what_is_measured_without_it(model: str, text: str) -> None:
    """By a pass of its own, beside the word that it makes room for; of a head that changes little
    nothing says that it decides. What stands there till then has no number."""
    run = Run(model, text)
    panel = architecture.flow(run, beam="end")
    figure, band = panel.figures[0], panel.figures[0].bands[-1]
    token, first = int(band.places[band.selected]), figure.bands[0]
    end, lead = figure.stops[-1], figure.lanes[0]
    assert not re.search(r"logit|\d(st|nd|rd|th)\b|%|because", end.part)
    assert panel.finding == f"{end.finding} {end.part}".strip()
    said = flow_beam.each_word(run, int(first.places[first.selected])).finding
    fell, little = OUT.search(said), LITTLE.search(said)
    assert bool(fell or little) == bool(figure.cause) == bool(end.part)
    if not figure.cause:
        return
    column, which, head, _ = figure.cause
    layer = figure.layers[column]
    edit = ZeroHead(layer.layer, head, layer.attentions[which].name)
    hidden = tuple(panel.at["run"].edits)
    before, after = without(run, hidden, token), without(run, (*hidden, edit), token)
    found = (fell or little).groups()
    assert found[:2] == (str(head), str(layer.layer)) and found[3] == lead.label
    assert f"“{found[2]}”" in end.part
    left, turned = float(after[lead.id]), int(after.argmax()) != lead.id
    if little:
        assert not turned and left > 0.9 * lead.chance and found[4] == tenths(left)
        return
    assert turned or left <= 0.9 * lead.chance
    assert found[4:6] == (tenths(float(before[lead.id])), tenths(left))
    if turned and found[6]:
        (says,) = loaded(run.recording()).labels([int(after.argmax())])
        assert found[6] == says.removeprefix("‧")
        assert found[7:] == tuple(tenths(float(each[after.argmax()])) for each in (before, after))


@needs_smollm2
def test_the_end_names_what_its_head_reads_in_the_place_of_a_word_that_is_out() -> None:
    run = Run("smollm2", CONTINUED_TEXT)
    place = run.recording().streams[0].tokens.index("Rome")
    figure = architecture.flow(run, beam="end").figures[0]
    column, which, head, _ = figure.cause
    without_word = run.under((HideWord(place),))
    panel = architecture.flow(without_word, beam="end")
    attention = panel.figures[0].layers[column].attentions[which]
    recording = without_word.recording()
    word = recording.streams[0].tokens[int(attention.shares[head].argmax())]
    layer = figure.layers[column].layer
    assert panel.finding.endswith(f"Head {head} of layer {layer} reads “{word}” now.")


BRINGS = re.compile(r"head (\d+): (.+)")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, SENTENCES[5], "I love to eat pizza."])
def test_what_each_word_does_is_told_of_the_answer_of_the_flow(model: str, text: str) -> None:
    """At the address that the flow gives: of a translator its token is the source's."""
    figure = architecture.flow(Run(model, text), beam="end").figures[0]
    words = dict(parse_qsl(figure.out.partition("?")[2]))
    run, hide = Run(words["model"], words["text"]), words.get("flow_hide") != "0"
    each = flow_beam.each_word(run, int(words["token"]), hide=hide)
    assert each.title.startswith(f"“{figure.lanes[0].label}")


@pytest.mark.parametrize(("model", "text"), CAUSES)
def test_what_is_taken_out_is_no_longer_told(model: str, text: str) -> None:
    """Neither by its layer's stop nor by its tag, be it the head of the answer or its word."""
    run = Run(model, text)
    figure = architecture.flow(run, beam="end").figures[0]
    column, _, head, row = figure.cause
    links = from_line(figure.stops[column].switch.select["edits"])
    band = next(each for each in figure.bands if row < len(each.rows))
    words = from_line(band.outs[row])
    assert links and links[0].head == head
    for edits, gone in ((links, f"head {head}: "), (words, f": {band.rows[row]}")):
        if edits:
            stop = architecture.flow(run.under(edits), beam="end").figures[0].stops[column]
            assert gone not in stop.brings
            assert f"Head {head} does that" not in stop.finding
            end = architecture.flow(run.under(edits), beam="end").figures[0].stops[-1]
            assert edits == links or f"→ {band.rows[row]}" not in end.levels[-1].label


@pytest.mark.parametrize(("model", "text"), CAUSES)
def test_a_head_of_another_text_is_at_no_stop_that_tells_of_one(model: str, text: str) -> None:
    run = Run(model, text)
    own = architecture.flow(run, beam="end").figures[0]
    for layer, head in ((0, 1), (1, 0)):
        figure = architecture.flow(run, beam="end", layer=layer, head=head).figures[0]
        assert [each.levels[2:] for each in figure.stops] == [each.levels[2:] for each in own.stops]
        assert [each.switch for each in figure.stops] == [each.switch for each in own.stops]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, *SENTENCES[9:13]])
def test_a_head_is_told_that_adds_most_and_leads_on_to_it(model: str, text: str) -> None:
    """Of the words that heads of a layer bring none adds more to the answer than that of which the
    stop tells, but where it tells of the head that the answer comes from."""
    panel = architecture.flow(Run(model, text))
    figure, recording = panel.figures[0], panel.at["run"].recording()
    stream, token = recording.streams[-1], int(figure.bands[-1].places[figure.bands[-1].selected])
    scores = loaded(recording).logits(recording, stream.name, token)
    answer, *others = (each.id for each in figure.lanes)
    rival, told = max(others, key=scores.__getitem__), 0
    for column, (layer, stop) in enumerate(zip(figure.layers, figure.stops)):
        assert not re.search(r"because|decides|causes", stop.finding)
        if not (said := BRINGS.match(stop.brings)):
            continue
        told += 1
        assert stop.levels[2].select["head"] == said[1], "the button is of the head that is named"
        weight = [each.label.rpartition("→ ")[2].lstrip("‧") for each in stop.levels[3:]]
        assert all(each in said[2] for each in weight), "a piece of the word that is named"
        at = {"attention": stop.levels[1].select["attention"], "layer": layer.layer}
        opened = architecture.flow(Run(model, text), level="Layer", **at).figures[0]
        assert opened.stop.levels[2].label == stop.levels[2].label, "opened, it has that head"
        heads = loaded(recording).head_sources(recording, stream.name, token, answer, rival)
        most, own = 0.0, 0.0
        for name, values in heads.items():
            of = next(each for each in recording.attention if each.name == name)
            numbers = flow.layer_numbers(of)
            if layer.layer not in numbers:
                continue
            adds = np.nan_to_num(values[numbers.index(layer.layer)])
            keys = recording.stream(of.key)
            whole = [
                key
                for key, word in enumerate(keys.tokens)
                if word.isalpha() and not keys.special[key] and (keys is not stream or key != token)
            ]
            most = max(most, float(adds[:, whole].max(initial=0)))
            if name == stop.levels[2].select["attention"]:
                own = float(adds[int(said[1]), ~np.asarray(keys.special, bool)].max())
        assert column in figure.cause[:1] or own >= most - 0.06
    assert told or not figure.cause


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", [WAITER, *SENTENCES[9:11]])
def test_a_layer_between_tells_of_those_up_to_it(model: str, text: str) -> None:
    figure = architecture.flow(Run(model, text)).figures[0]
    for column in set(range(len(figure.stops) - 1)) - {*figure.slow}:
        layer, finding = figure.layers[column].layer, figure.stops[column].finding
        if figure.layers[column].band < len(figure.bands) - 1:
            continue
        first = max((at + 1 for at in figure.slow if at < column), default=0)
        assert re.match(
            f"Layer {layer}: " if first == column else rf"Layers \d+ to {layer}: ", finding
        )
        quoted = re.findall("“(.+?)”", finding)
        assert not [word for word in quoted[:-1] if not word.isalpha()], "pieces are no words"


@pytest.mark.parametrize("text", [ROME, *SENTENCES[:20:3]])
def test_the_story_of_a_borrowed_model_has_the_same_laws(text: str) -> None:
    for law in (
        test_what_a_stop_says_is_what_its_lane_shows,
        test_a_stop_names_only_words_that_have_a_lane_or_a_row,
        test_the_cause_is_told_by_what_is_measured_without_it,
        test_a_head_is_told_that_adds_most_and_leads_on_to_it,
        test_a_layer_between_tells_of_those_up_to_it,
    ):
        law("smollm2", text)


@pytest.mark.parametrize("model", ["encoder", "decoder", "smollm2"])
@pytest.mark.parametrize("text", [WAITER, ROME])
def test_what_matters_most_is_measured_without_it(model: str, text: str) -> None:
    run = Run(model, text)
    panel = architecture.flow(run, beam="end")
    lane, band = panel.figures[0].lanes[0], panel.figures[0].bands[0]
    token = int(band.places[band.selected])
    found = flow_beam.each_word(run, token)
    table, finding = found.table, found.finding
    said = re.search("Without the word “(.+?)”.*? “(.+?)”(?:, | has )(.+?%)", finding)
    out, word, chance = said.groups()
    rows = [at for at, row in enumerate(table["row"]) if row == "word"]
    model_of = loaded(panel.at["run"].recording())
    turns = "the model says" in finding
    assert [table["word"][at] for at in rows if table["turns_most"][at]] == [out] * turns
    found = []
    for own in (at for at in rows if table["word"][at] == out):  # it may stand there twice
        edits = (*from_line(table["edits"][own]), *panel.at["run"].edits)
        p = without(Run(model, text), edits, token)
        says = model_of.labels([int(p.argmax())])[0].removeprefix("‧")
        is_other = int(p.argmax()) != lane.id and says != out
        tells = (says, float(p.max())) if turns else (lane.label, float(p[lane.id]))
        found.append((is_other, tells[0], tenths(tells[1])))
    assert (turns, word, chance) in found


@needs_smollm2
@pytest.mark.parametrize("text", ["Paris is the capital of France. Rome is the capital of", ROME])
def test_what_an_ffn_makes_of_its_word_is_measured_by_what_it_writes_without(text: str) -> None:
    """By the formula of the readout: the state after the attention, and what the FFN of the same
    layer writes in the text in which nobody reads the word."""
    run = Run("smollm2", text)
    figure = architecture.flow(run).figures[0]
    column, _, head, row = figure.cause
    layer, token = figure.layers[column].layer, int(figure.bands[0].places[row])
    table = flow_beam.each_word(run, int(figure.bands[0].places[figure.bands[0].selected])).table
    (at,) = (at for at, name in enumerate(table["row"]) if name == "ffn")
    plain = run.recording()
    stream = plain.streams[0]
    blind = loaded(plain).record(text, hidden_word(plain, token)).streams[0]
    state = stream.at(f"{layer}.attn.sum")[-1] + blind.at(f"{layer}.ffn.wrote")[-1]
    gain, _, eps, _ = loaded(plain).norms(stream.name)["final"]
    normed = state / np.sqrt((state**2).mean() + eps) * gain
    logits = loaded(plain).embeddings() @ normed
    answer = figure.lanes[0]
    place = 1 + int((logits > logits[answer.id]).sum())
    assert table["place"][at] == place > answer.places[column + 1]
    word = figure.bands[0].rows[row]
    said = f"F finds “{word}” there, which points to “{answer.label}”."
    assert (table["says"][at], table["word"][at]) == (said, f"finds “{word}” there")


@pytest.mark.parametrize("model", [*MODELS, "smollm2"])
def test_a_tag_names_no_word_without_content_but_the_cause(model: str) -> None:
    for text in (WAITER, ROME):
        figure = architecture.flow(Run(model, text)).figures[0]
        for column, stop in enumerate(figure.stops):
            if said := BRINGS.match(stop.brings):
                is_function = said[2].lower() in ("the", "of", "but", "is", "it", "was")
                assert column in figure.cause[:1] or not is_function, stop.brings


@pytest.mark.parametrize("model", MODELS)
def test_what_an_ffn_is_called_is_plain(model: str) -> None:
    for text in (WAITER, *SENTENCES[:4]):
        for stop in architecture.flow(Run(model, text)).figures[0].stops:
            for name, near in stop.units:
                assert re.fullmatch(r"unit \d+", name)
                assert re.fullmatch(r"writes words like \w+(, \w+)*", near), near


@pytest.mark.parametrize(
    ("model", "word", "first"),
    [
        ("encoder", "banana", ""),
        ("encoder", "he", "he"),
        ("decoder", "zebra", ""),
        ("smollm2", "dog", "dog"),
    ],
)
def test_a_guess_has_the_place_of_its_first_token_and_the_chance_of_all_where_a_text_goes_on(
    model: str, word: str, first: str
) -> None:
    run = Run(model, WAITER)
    panel = architecture.flow(run, beam="end")
    table = flow_beam.each_word(run, guess=word).table
    own = table["row"].index("guess")
    label, id, p = (table[name][own] for name in ("word", "id", "probability"))
    assert label == "␣" or word.startswith(label.removeprefix("‧"))
    assert not first or label == first
    recording, band = panel.at["run"].recording(), panel.figures[0].bands[-1]
    token = int(band.places[band.selected])
    logits = loaded(recording).logits(recording, recording.streams[-1].name, token)
    chance = np.exp(logits - logits.max())
    own_chance = float(chance[id] / chance.sum())
    both = loaded(model).tokenizer.ids([f" {word}", word])
    ids = next(each for each in both if each[0] == id)
    assert table["is_whole"][own] == (model != "encoder" or len(ids) == 1)
    for n in range(1, len(ids) if table["is_whole"][own] else 1):
        scores = loaded(model).resume(recording, token + 1).logits_after([ids[:n]])[0]
        own_chance *= float(softmax(scores)[ids[n]])
    assert p == pytest.approx(own_chance, rel=PASSED)
    places = [place for row, place in zip(table["row"], table["place"]) if row == "place"]
    assert places[-1] == int((logits > logits[id]).sum()) + 1
    assert len(places) == len(panel.figures[0].lanes[0].places)


@pytest.mark.parametrize("text", [WAITER, *SENTENCES[:4]])
def test_flow_lens_and_residual_name_one_layer_from_which_on_the_answer_leads(text: str) -> None:
    updates = residual_panels.updates(Run("encoder", text))
    hidden, token = updates.at["run"], updates.at["token"]
    lens = hidden.loaded.lens(hidden.recording(), "encoder", token=token)
    behind = np.flatnonzero(lens.rank[:, 0] > 0)  # the sites where another word leads
    site = lens.sites[behind[-1] + 1]
    figure = architecture.flow(Run("encoder", text), token).figures[0]
    layer, places = int(site[0]), figure.lanes[0].places
    found = [
        at for at, each in enumerate(figure.stops) if re.search("puts “.*” first", each.finding)
    ]
    assert found in ([], [layer])
    if not found and places[layer] > 1:
        assert layer == figure.cause[0], "it is told of the layer of the cause"
    name = logit_lens.site_name(site)
    at_the_end = behind[-1] + 2 == len(lens.sites)
    assert at_the_end or re.search(rf"From {name} on, “[^”]*” leads", updates.finding)
    told = lens_panels.lens(hidden, token).finding
    assert at_the_end or re.search(rf"(leads all words|likeliest word) from {name} on", told)


@pytest.mark.parametrize("model", MODELS)
def test_a_word_is_fetched_where_over_half_comes_from_it(model: str) -> None:
    for text in (WAITER, *SENTENCES[:6]):
        figure = architecture.flow(Run(model, text)).figures[0]
        labels = [row for band in figure.bands for row in band.rows]
        for layer, stop in zip(figure.layers, figure.stops):
            said = re.match(r"Layer (\d+) fetches “(.+?)”\. Most of what", stop.finding)
            if not said:
                continue
            shares = [each.shares.sum(0) for each in layer.attentions]
            assert any(
                share > 0.5 for of in shares for label, share in zip(labels, of) if label == said[2]
            )


@pytest.mark.parametrize("model", MODELS)
def test_the_question_tells_nothing_and_the_beam_changes_nothing_else(model: str) -> None:
    run = Run(model, WAITER)
    question = architecture.flow(run)
    figure = question.figures[0]
    assert figure.current == -1 and figure.asks[2] == ("hidden" if model == "encoder" else "next")
    answer = figure.lanes[0]
    assert f"“{answer.label}”" not in question.finding and answer.text not in question.finding
    told = as_plain(figure, {})
    for beam, at in (
        ("0", 0),
        ("1", 1),
        ("end", len(figure.layers)),
        ("99", len(told["layers"]) - 1),
    ):
        shown = architecture.flow(run, beam=beam)
        other = as_plain(shown.figures[0], {})
        stop = figure.stops[at]
        assert other.pop("current") == at
        assert shown.finding == f"{stop.finding} {stop.part}".strip()
        assert other == {name: each for name, each in told.items() if name != "current"}


def test_a_model_that_is_asked_nothing_stands_at_its_end() -> None:
    for run, hide in ((Run("minilm", WAITER), None), (Run("encoder", WAITER), False)):
        figure = architecture.flow(run, hide=hide).figures[0]
        assert figure.current == len(figure.layers) and figure.asks == ("", "", "")


def test_a_covered_beam_tells_no_place() -> None:
    figure = architecture.flow(Run("decoder", WAITER), cover=True).figures[0]
    assert not figure.lanes and not figure.matters and figure.current == len(figure.layers)
    assert not re.search(r"%|\d(st|nd|rd|th)\b", " ".join(each.finding for each in figure.stops))
    assert not [text for each in figure.stops for text in texts_of(each.units)]


@pytest.mark.parametrize(
    ("model", "edit"),
    [("encoder", HideWord(5)), ("encoder", ZeroHead(1, 7)), ("decoder", HideWord(2))],
)
def test_under_an_edit_both_chances_are_the_models_own(
    model: str, edit: HideWord | ZeroHead
) -> None:
    token = 7
    run = Run(model, WAITER)
    hidden = (HideToken(token),) if model == "encoder" else ()
    figure = architecture.flow(run.under((edit,)), token, beam="end").figures[0]
    for lane in figure.lanes:
        for edits, chance in (((*hidden,), lane.were), ((edit, *hidden), lane.chance)):
            recording = Run(model, WAITER, edits).recording()
            logits = loaded(recording).logits(recording, recording.streams[0].name, token)
            p = np.exp(logits - logits.max())
            assert chance == pytest.approx(float(p[lane.id] / p.sum()), rel=PASSED)
    fell = max(figure.lanes, key=lambda each: each.were)
    now = max(figure.lanes, key=lambda each: each.chance)
    finding = architecture.flow(run.under((edit,)), token, beam="end").finding
    assert f"from {tenths(fell.were)} to {tenths(fell.chance)}" in finding
    assert (f"says “{now.label}”" in finding) and ("still" in finding) == (now is fell)
    assert figure.edits and from_line(figure.edits) == (edit,)


def test_what_rises_has_the_chances_of_its_lane_at_every_temperature() -> None:
    run, rises = Run("decoder", WAITER).under((HideWord(2),)), 0
    for temperature in (0.5, 1.0, 1.5):
        panel = architecture.flow(run, 7, beam="end", temperature=temperature)
        lanes = {each.label + each.rest: each for each in panel.figures[0].lanes}
        for word, were, now in re.findall(r"“([^”]+)” rises from (\S+) to (\S+%)", panel.finding):
            rises += 1
            assert (lanes[word].was_text, lanes[word].text) == (were, now)
    assert rises


def test_what_is_left_without_a_word_is_told_at_the_temperature_of_the_lanes() -> None:
    run = Run("decoder", "Ann gave Ben the ball because he ran to")
    for temperature in (0.5, 1.0, 2.0):
        figure = architecture.flow(run, beam="end", temperature=temperature).figures[0]
        first = max(figure.lanes, key=lambda each: each.chance)
        words = dict(parse_qsl(figure.out.partition("?")[2]))
        assert float(words.get("flow_temperature", 1)) == temperature
        panel = flow_beam.each_word(run, temperature=temperature)
        for row in panel.figures[0].rows:
            assert row.outline == pytest.approx(first.chance)
        assert f"“{first.label}” falls from {first.text} to " in panel.finding or temperature < 1
        place, *_ = np.argsort(panel.table["probability"][: len(panel.figures[0].rows)])
        out = run.under(from_line(panel.table["edits"][place]))
        left = architecture.flow(out, beam="end", temperature=temperature).figures[0].lanes
        (now,) = [each for each in left if each.id == first.id]
        assert now.chance == pytest.approx(panel.figures[0].rows[place].values[0], rel=PASSED)


def test_a_curve_is_as_much_smaller_under_an_edit_as_its_update() -> None:
    run, token = Run("encoder", WAITER), 7
    edited = run.under((ZeroHead(1, 7),))
    plain, off = (architecture.flow(each, token).figures[0] for each in (run, edited))
    recordings = [architecture.flow(each, token).at["run"].recording() for each in (run, edited)]
    for at, (before, after) in enumerate(zip(plain.layers, off.layers)):
        norms = [
            np.linalg.norm(residual.site_vectors(each.streams[0], f"{at}.attn.wrote")[token])
            for each in recordings
        ]
        one, other = before.attentions[0], after.attentions[0]
        assert one.scale == 1 and other.scale == pytest.approx(norms[1] / norms[0], rel=PASSED)
        assert np.allclose(other.was, one.shares.sum(0), atol=STORED)
        assert 0 < one.update < 1


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_each_word_out_is_the_prediction_without_it(model: str) -> None:
    run, token = Run(model, WAITER), 7
    table = flow_beam.each_word(run, token).table
    outs = architecture.flow(run, token).figures[0].bands[0].outs
    hidden = (HideToken(token),) if model == "encoder" else ()
    first = architecture.flow(run, token).figures[0].lanes[0]
    rows = [at for at, row in enumerate(table["row"]) if row == "word"]
    assert rows
    for at in rows:
        assert table["edits"][at] in outs
        edits = (*from_line(table["edits"][at]), *hidden)
        recording = Run(model, WAITER, edits).recording()
        logits = loaded(recording).logits(recording, recording.streams[0].name, token)
        p = np.exp(logits - logits.max())
        assert table["probability"][at] == pytest.approx(float(p[first.id] / p.sum()), rel=PASSED)
        own = loaded(recording).labels([int(p.argmax())])[0]
        assert table["says"][at] in (own, own.removeprefix("‧"))


def test_no_word_can_be_taken_out_that_is_special_or_the_token_itself() -> None:
    band = architecture.flow(Run("decoder", WAITER), 5).figures[0].bands[0]
    special = Run("decoder", WAITER).recording().streams[0].special
    for place, line in zip(band.places, band.outs, strict=True):
        is_out = bool(line)
        assert is_out == (not special[int(place)] and int(place) < 5)
        assert not is_out or HideWord(int(place)) in from_line(line)


def test_words_are_named_only_where_they_stand_out_of_chance() -> None:
    recording = Run("encoder", WAITER, (HideToken(7),)).recording()
    model = loaded(recording)
    figure = architecture.flow(Run("encoder", WAITER), 7).figures[0]
    width = recording.streams[0].resid.shape[-1]
    least = flow.random_cosines(width, model.nearest)
    rng = np.random.default_rng(5)
    cosines = model.nearest(rng.normal(size=(300, width)).astype(np.float32), 1)[1][:, 0]
    assert np.mean(cosines < least) > 0.95, "chance alone passes seldom"
    for layer, stop in zip(figure.layers, figure.stops):
        answer, rival = (each.id for each in figure.lanes[:2])
        units = model.neurons(recording, "encoder", layer.layer, 7, answer, rival)
        best = [unit for unit in np.argsort(-units.adds)[:2] if units.adds[unit] >= 0.05]
        hidden = model.ffn_activations(recording, "encoder", layer.layer, 7)
        near = model.nearest(hidden.writes_of(best).astype(np.float32), 1)[1][:, 0] if best else []
        passing = [f"unit {unit}" for unit, cosine in zip(best, near) if cosine >= least]
        assert {label for label, _ in stop.units} <= {*passing}


def test_a_file_shows_what_comes_out_and_no_question() -> None:
    """Of the state without a beam, too: the question belongs to the page."""
    run = Run("encoder", WAITER)
    panel, end = architecture.flow(run), architecture.flow(run, beam="end")
    assert panel.figures[0].current < 0
    drawn = [re.sub("<title>.*?</title>", "", each.still) for each in (panel, end)]
    for each in drawn:
        assert panel.figures[0].lanes[0].text in each
    shown = [re.sub("<[^>]*>", " ", each[each.index("flow-output") :]).split() for each in drawn]
    # The formula names the word at the end alone.
    figures = [each[: each.index("answer.")] for each in shown]
    assert figures[0] == figures[1] and len(figures[0]) > 20


def test_a_piece_of_a_word_that_races_has_its_rest() -> None:
    """However unlikely it is: what is offered as a guess is a whole word."""
    run = Run("smollm2", "Paris is the capital of France. Rome is the capital of")
    recording = run.recording()
    model, token = loaded(recording), len(recording.streams[0].tokens) - 1
    for lane in architecture.flow(run, beam="end").figures[0].lanes:
        written = model.resume(recording, token + 1).logits_after([[lane.id]])[0]
        goes_on = model.labels([int(written.argmax())])[0]
        assert bool(lane.rest) == (goes_on[:1] == "‧" and goes_on[1:].isalpha()), lane.label


@pytest.mark.parametrize("head", [4, 6, 7])
def test_words_stand_by_the_chances_that_they_show(head: int) -> None:
    """Of a whole word and not of the piece that it begins with, which may have more."""
    (name, *_) = (each.name for each in Run("smollm2", ROME).recording().attention)
    edited = Run("smollm2", ROME, (ZeroHead(24, head, name),))
    lanes = architecture.flow(edited, beam="end").figures[0].lanes
    chances = [each.chance for each in lanes]
    assert chances == sorted(chances, reverse=True) and any(each.rest for each in lanes)


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("My grandmother, who lives in Kathmandu, speaks fluent", (8,)),
        ("Paris is the capital of France. Rome is the capital of", (0,)),
    ],
)
def test_a_word_of_several_pieces_has_its_own_chance_with_and_without_an_edit(
    text: str, out: tuple[int, ...]
) -> None:
    edits = tuple(map(HideWord, out))
    panel = architecture.flow(Run("smollm2", text, edits), beam="end")
    lanes, model = panel.figures[0].lanes, loaded("smollm2")
    n_tokens = len(model.record(text).streams[0].ids)
    words = model.words_after(model.record(text, edits), n_tokens - 1, [each.id for each in lanes])
    whole = [each for each in lanes if each.rest]
    assert whole
    for lane in whole:
        ids = words[lane.id].ids
        assert model.tokenizer.text(ids).strip() == lane.label + lane.rest
        for under, told in ((edits, lane.chance), ((), lane.were)):
            written = [
                softmax(model.generate(text, ids[:n], under).logits) for n in range(len(ids))
            ]
            own = float(np.prod([p[id] for p, id in zip(written, ids)]))
            assert told == pytest.approx(own, rel=PASSED), lane.label + lane.rest
    for word, were, now in re.findall(r"“([^”]+)” rises from (.+?) to (\S+%)", panel.finding):
        one = next(each for each in panel.figures[0].lanes if each.label + each.rest == word)
        assert (one.was_text, one.text) == (were, now)


@pytest.mark.slow
@pytest.mark.parametrize("edits", [(), (ZeroHead(23, 4),)])
def test_the_first_level_is_small_enough_to_be_sent_at_once(edits: tuple[ZeroHead, ...]) -> None:
    text = "Paris is the capital of France. Rome is the capital of"
    assert len(architecture.flow(Run("smollm2", text, edits), beam="end").encode()) <= 80_000
