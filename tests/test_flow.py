"""Flow: the shares of its curves, the words that form, and that every number is the one of the tab
that it leads to."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import texts_of
from ordinary_sentences import SENTENCES
from tolerances import PASSED, STORED, SUMMED, TOTAL

from explorer.analysis import consistency, flow, logit_lens
from explorer.figures.formatting import fixed, percent, signed, tenths
from explorer.figures.kinds import as_plain
from explorer.panels import (
    anatomy,
    architecture,
    attribution,
    feed_forward,
    flow_beam,
    flow_levels,
    flow_way,
    generation,
    multi_head,
    predictions,
    residual,
)
from explorer.panels.spec import Panel
from models.contract.edits import HideToken, ZeroHead, from_line
from models.contract.recording import Attention
from models.contract.results import Lens
from models.example_texts import DEFAULT_TEXT
from models.runtime import registry
from models.runtime.caching import loaded
from models.runtime.run import Run

pytestmark = pytest.mark.slow
SHIPPED = [name for name in registry.names() if name != "smollm2"]
TEXTS = [
    "The animal didn't cross the street because it was too tired.",
    *SENTENCES[2:10],
    "Ünïcode … 中文 und <b>HTML</b> &amp; 🙂",
]
LONG = " ".join(SENTENCES[10:24])


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("model", SHIPPED)
def test_all_shares_of_a_token_and_the_biass_sum_to_1(model: str) -> None:
    for text in TEXTS:
        figure = architecture.flow(Run(model, text)).figures[0]
        for layer in figure.layers:
            for each in layer.attentions:
                assert each.shares.sum() + each.bias == pytest.approx(1, abs=STORED), (text, layer)


@pytest.mark.parametrize("model", SHIPPED)
def test_the_shares_of_a_heads_keys_sum_to_the_heads(model: str) -> None:
    recording = Run(model, TEXTS[0]).recording()
    for attention in recording.attention:
        outputs = loaded(recording).outputs()[attention.name]
        queries = list(range(attention.pattern.shape[2]))
        whole = consistency.head_shares(recording, attention, outputs)
        for layer in range(len(attention.pattern)):
            found = flow.key_shares(recording, attention, outputs, layer, queries)
            assert np.allclose(found.shares.sum(-1), whole[layer, :-1], atol=STORED)
            assert np.allclose(found.bias, whole[layer, -1], atol=STORED)


def test_a_share_is_the_projection_of_what_one_head_brings_from_one_key() -> None:
    recording = Run("encoder", TEXTS[0]).recording()
    attention = recording.attention[0]
    w_o, bias = loaded(recording).outputs()[attention.name]
    layer, query = 1, 9
    terms = np.stack(
        [
            [
                attention.pattern[layer, head, query, key]
                * attention.v[layer, head, key]
                @ w_o[layer, head]
                for key in range(attention.pattern.shape[-1])
            ]
            for head in range(attention.pattern.shape[1])
        ]
    ).astype(np.float64)
    written = terms.sum((0, 1)) + bias[layer]
    recorded = recording.streams[0].at(f"{layer}.attn.wrote")[query]
    assert np.allclose(written, recorded, atol=PASSED)
    found = flow.key_shares(recording, attention, (w_o, bias), layer, [query]).shares[:, 0]
    assert np.allclose(found, terms @ written / (written @ written), atol=SUMMED)


@pytest.mark.parametrize("model", [name for name in SHIPPED if name not in ("minilm", "copy")])
def test_the_words_that_form_are_the_lenss_and_those_that_come_out_the_predictions(
    model: str,
) -> None:
    run = Run(model, TEXTS[0])
    plain = run.recording()
    if loaded(plain).capabilities.no_readout:
        return
    panel = architecture.flow(run)
    figure = panel.figures[0]
    places = [band.places[band.selected] for band in figure.bands]
    hidden = "hidden" in panel.title
    edits = (HideToken(int(places[0])),) if hidden else ()
    recording = Run(model, TEXTS[0], edits).recording()
    stream = recording.streams[-1]
    lens = loaded(recording).lens(recording, stream.name)
    ends = logit_lens.layer_ends(lens.sites)
    for layer in figure.layers:
        if layer.says is None:
            continue
        site = ends.get(layer.layer, len(lens.sites) - 1)
        cell = logit_lens.cell(lens, site, int(places[-1]))
        assert layer.says[1] == pytest.approx(cell.probabilities[0], rel=PASSED)
        assert layer.answer == pytest.approx(cell.probability, rel=TOTAL, abs=STORED)
    rows = predictions.word(Run(model, TEXTS[0], edits), int(places[-1])).figures[1].rows
    for each in figure.words:
        assert (each.probability, each.text) in [(row.values[0], row.texts[0]) for row in rows]


def test_an_encoders_word_is_hidden_until_a_reader_says_otherwise() -> None:
    run = Run("encoder", TEXTS[0])
    hidden, seen = architecture.flow(run, 9), architecture.flow(run, 9, hide=False)
    assert "hidden" in hidden.title and "hidden" not in seen.title
    assert hidden.figures[0].bands[0].rows == seen.figures[0].bands[0].rows, "labels are the text's"
    assert "hidden" not in architecture.flow(run, 0).title, "a special token cannot be"
    assert "hidden" not in architecture.flow(Run("decoder", TEXTS[0])).title


@pytest.mark.parametrize("model", ["encoder", "decoder", "minilm", "translator"])
def test_of_a_long_text_the_tokens_that_matter_have_rows_and_the_rest_one(model: str) -> None:
    run = Run(model, LONG)
    panel = architecture.flow(run)
    for band, stream in zip(panel.figures[0].bands, run.recording().streams):
        assert len(band.rows) <= architecture.MOST_ROWS
        own = [int(at) for at in band.places if at]
        folded = sorted({*range(len(stream.tokens))} - {*own})
        assert band.rows[band.rest] == f"{len(folded)} more" and not band.places[band.rest]
        middle = folded[len(folded) // 2]
        assert [at < middle for at in own] == [row < band.rest for row in range(len(own))], (
            "it stands where most of what it stands for is"
        )
        told = [label for row, label in enumerate(band.rows) if row != band.rest]
        assert told == [stream.tokens[at] for at in own] and own == sorted(own)
    for layer in panel.figures[0].layers:
        for each in layer.attentions:
            assert each.shares.sum() + each.bias == pytest.approx(1, abs=STORED)
    assert len(panel.encode()) <= 300_000


def test_the_payload_of_a_sentence_is_small() -> None:
    for model in SHIPPED:
        assert len(architecture.flow(Run(model, TEXTS[0])).encode()) <= 60_000, model


@pytest.mark.parametrize("text", TEXTS)
def test_the_head_in_focus_is_said_with_its_largest_weight(text: str) -> None:
    run = Run("decoder", text)
    panel = architecture.flow(run, layer=1, head=2, level="Head")
    attention, (band,) = run.recording().attention[0], panel.figures[0].bands
    token = int(band.places[band.selected])
    weights = attention.pattern[1, 2, token]
    key, weight, share = re.fullmatch(
        r"Head 2 of layer 1: “.+” attends most to “(.+)”, ([\d.]+)\."
        r" The head makes up (.+) of what attention writes\.",
        panel.finding,
    ).groups()
    assert key == run.recording().streams[0].tokens[int(weights.argmax())]
    assert weight == f"{weights.max():.2f}"
    layer = panel.figures[0].layers[1]
    assert share == percent(float(layer.attentions[0].shares[2].sum()))


@pytest.mark.parametrize("text", TEXTS)
def test_a_decoder_is_asked_for_a_word_and_for_no_punctuation_mark(text: str) -> None:
    tokens = Run("decoder", text).recording().streams[0].tokens
    (figure,) = architecture.flow(Run("decoder", text)).figures
    (band,) = figure.bands
    following = "".join(tokens[int(band.places[band.selected]) + 1 :])
    is_ended = tokens[-1][-1] in ".,;:!?"
    assert bool(re.fullmatch(r"[\w‧]+\W+", following)) == is_ended
    assert is_ended or not following


@pytest.mark.parametrize("model", ["encoder", "decoder"])
@pytest.mark.parametrize("text", TEXTS)
def test_the_sentence_on_the_model_is_about_the_layer_that_brings_the_answer(
    model: str, text: str
) -> None:
    panel = architecture.flow(Run(model, text), level="Layer")
    figure = panel.figures[0]
    answers, layer = [layer.answer for layer in figure.layers], figure.layer
    stop = figure.stops[layer].finding
    assert panel.finding.startswith(stop), "one fact has one sentence on both levels"
    assert re.match(rf"Layers? (\d+ to )?{layer}\b", stop)
    if raised := re.search(r"raises “.+” from (.+) to (.+), in", stop):
        assert layer == 0 or raised[1] == tenths(answers[layer - 1])
        assert raised[2] == tenths(answers[layer])


def test_a_head_that_is_switched_off_is_struck_out_and_brings_nothing() -> None:
    run = Run("encoder", TEXTS[0], (ZeroHead(2, 1),))
    layer = architecture.flow(run, 9).figures[0].layers[2]
    assert layer.attentions[0].removed == (1,)
    assert not architecture.flow(run, 9).figures[0].layers[1].attentions[0].removed
    assert not layer.attentions[0].shares[1].any()


def test_what_is_not_there_is_refused() -> None:
    run = Run("encoder", TEXTS[0])
    for choices in (
        {"token": 99},
        {"layer": 4},
        {"head": 8},
        {"attention": "cross"},
        {"number": "x"},
    ):
        with pytest.raises(ValueError):
            architecture.flow(run, **choices)


# ---- levels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", SHIPPED)
def test_an_opened_layer_has_the_vectors_of_residual_heads_and_feed_forward(model: str) -> None:
    run = Run(model, TEXTS[0])
    recording = run.recording()
    stream, name = recording.streams[0], recording.attention[0].name
    token, layer = len(stream.tokens) // 2, max(flow.in_layers(stream))
    panel = architecture.flow(run, token, layer=layer, level="Layer", attention=name, hide=False)
    parts = flow.in_layers(stream)[layer]
    assert len(panel.figures) == 1 + len(parts)
    path = residual.token_path(run, token, stream.name).table
    rows = {name: place for place, name in enumerate(path["sub-layer"])}
    for part, figure in zip(parts, panel.figures[1:]):
        strips = {each.label: each for each in figure.strips}
        row = rows[part.name]
        assert {"written"} < {*strips}
        for label, column in (("written", "|wrote|"), ("vector", "|before|"), ("sum", "|sum|")):
            if label not in strips:
                assert "no-residual" in model
                continue
            norm = np.linalg.norm(strips[label].values)
            assert norm == pytest.approx(path[column][row], rel=PASSED), (part, label)
            assert strips[label].text == f"length {fixed(float(norm))}"
        inside = next(
            each for each in figure.strips if "side" in each.label or "unit" in each.label
        )
        if part.place == "ffn":
            table = feed_forward.units(run, token, layer=layer, stream=stream.name).table
            assert np.allclose(inside.values, table["activation"], atol=STORED)
        else:
            n = recording.attention[0].pattern.shape[1]
            table = multi_head.concatenation(run, layer, 0, token).table
            z = [x for x, of in zip(table["number"], table["vector"]) if of == "z"]
            assert inside.blocks == n and np.allclose(inside.values, z, atol=STORED)


@pytest.mark.parametrize("model", SHIPPED)
def test_an_opened_head_and_weight_are_those_of_heads_and_one_weight(model: str) -> None:
    run = Run(model, TEXTS[0])
    attention = run.recording().attention[0]
    layer, token = len(attention.pattern) - 1, len(run.recording().streams[0].tokens) // 2
    for head in range(attention.pattern.shape[1]):
        chosen = {"layer": layer, "head": head, "attention": attention.name, "hide": False}
        opened = architecture.flow(run, token, level="Head", **chosen)
        _, matrix, links = opened.figures
        weights = np.where(attention.allowed[layer], attention.pattern[layer, head], np.nan)
        assert np.allclose(matrix.values, weights, equal_nan=True)
        if links.select:  # no part of them alone
            assert np.allclose(links.weights, weights, equal_nan=True) and links.selected == token
        key = int(np.nan_to_num(weights[token], nan=-1).argmax())
        assert links.weights[links.selected, links.mark[0]] == weights[token, key]
        assert matrix.marks[0][:2] == (token, key)
        one = architecture.flow(run, token, source=key, level="Weight", **chosen)
        tab = anatomy.weight(run, layer, head, token, key)
        assert one.table == tab.table and one.finding == tab.finding
        assert [each.label for each in one.figures[2].frames] == [
            each.label for each in tab.figures[1].frames
        ]


def test_levels_lead_in_and_out_with_the_selection() -> None:
    run = Run("encoder", TEXTS[0])
    figure = architecture.flow(run, 9, layer=1, head=5, level="Head").figures[0]
    assert figure.level == 2
    assert [each.label for each in figure.stop.levels[:3]] == ["Model", "Layer 1", "Head 5"]
    assert figure.stop.levels[3].label.startswith("it → ")
    words = [each.select["flow_level"] for each in figure.stop.levels]
    assert words == ["", "Layer", "Head", "Weight"]
    assert all(each.select["layer"] == "1" for each in figure.stop.levels)
    heads = [each.select["head"] for each in figure.stop.levels]
    assert heads == ["", "5", "5", "5"], "the whole model is that of all heads"
    whole = architecture.flow(run, 9, layer=1).figures[0]
    assert [each.select["head"] for each in whole.stop.levels[:2]] == ["", ""], "no head was chosen"
    (attention,) = whole.layers[1].attentions
    said = re.match(r"head (\d+): ", whole.stops[1].brings)
    told = said[1] if said else str(np.argmax(attention.adds))
    assert whole.stop.levels[2].select["head"] == told, "that which is named, or adds most"


def test_a_model_without_q_k_and_v_is_opened_to_its_heads() -> None:
    attention = Run("encoder", TEXTS[0]).recording().attention[0]
    assert flow_levels.deepest(attention) == 3
    closed = Attention.closed(
        attention.name, "encoder", "encoder", attention.pattern, attention.allowed
    )
    assert flow_levels.deepest(closed) == 2 and flow_levels.deepest(None) == 1


@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_a_head_that_is_switched_off_says_what_the_answer_loses(model: str) -> None:
    run = Run(model, TEXTS[0])
    figure = architecture.flow(run).figures[0]
    switch = figure.stop.switch
    assert figure.head == -1 and switch.select["head"] == figure.stop.levels[2].select["head"]
    assert switch.label == f"Take out head {switch.select['head']}"
    edits = from_line(switch.select["edits"])
    off = architecture.flow(run.under(edits), beam="end")
    answer = figure.words[0].label
    assert re.match(r"Without head \d+ of layer \d+ ", off.finding)
    moved = re.search(
        rf"“{re.escape(answer)}” (?:falls|rises) from (.+?%) to (.+?%)\.", off.finding
    )
    before, after = moved.groups() if moved else [figure.words[0].text] * 2
    assert moved or f"“{answer}” stays at {after}." in off.finding
    assert before == figure.words[0].text
    rows = {each.label: each.text for each in off.figures[0].lanes}
    assert rows[answer] == after
    again = off.figures[0].stop.switch
    assert again.label == f"Put head {switch.select['head']} back" and again.select["edits"] == ""


def test_of_a_long_text_a_head_has_curves_to_the_tokens_that_matter() -> None:
    run = Run("encoder", LONG)
    _, matrix, links = architecture.flow(run, 40, layer=1, head=5, level="Head").figures
    assert len(links.right) == flow_levels.N_LINKED < len(matrix.columns)
    row = matrix.values[40]
    assert sorted(links.weights[links.selected]) == pytest.approx(sorted(row)[-16:])
    assert not links.select, "rows of a part are no places"


def test_every_level_of_a_long_text_is_small() -> None:
    for level in flow_levels.LEVELS:
        panel = architecture.flow(Run("encoder", LONG), 40, level=level)
        assert len(panel.encode()) <= 300_000, level


def test_a_temperature_changes_the_words_that_come_out_as_on_generate() -> None:
    run = Run("decoder", TEXTS[0])
    for temperature in (0.0, 0.5, 1.0):
        last = len(run.recording().streams[0].tokens) - 1
        figure = architecture.flow(run, last, temperature=temperature).figures[0]
        rows = generation.next_token(run, temperature=temperature).figures[1].rows
        for each, row in zip(figure.words, rows):
            assert each.label == row.label.partition(" (")[0]
            assert each.probability == pytest.approx(row.values[-1], rel=PASSED)
    assert not flow_beam.continues(Run("encoder", TEXTS[0]), {})


def test_an_ffn_leads_to_the_units_that_it_names() -> None:
    """Inside it, of one run, one word and its rival, by numbers that sum to what it adds."""
    run = Run("encoder", TEXTS[0])
    panel = architecture.flow(run, 9)
    drawn, (answer, rival) = panel.at["run"], (each.id for each in panel.figures[0].lanes[:2])
    for layer, stop in zip(panel.figures[0].layers, panel.figures[0].stops):
        table = attribution.neurons(drawn, 9, answer, rival, layer.layer).table
        added = zip(table["adds to the logit"][:-3], table["neuron"][:-3])  # the last are sums
        two = sorted(added, reverse=True)[:2]
        best = [f"{unit}" for _, unit in two]
        said = [f"{unit}" for adds, unit in two if adds >= 0.05]  # in tenths
        assert {name for name, _ in stop.units} <= {f"unit {each}" for each in said}
        inside = architecture.flow(run, 9, layer=layer.layer, level="FFN", beam="end")
        figure, bars = inside.figures
        assert figure.ffn and figure.level == 1 and figure.layer == layer.layer
        labels = [row.label.partition(",")[0] for row in bars.rows]
        assert {f"unit {best[0]}"} <= {*labels[:-1]} and labels[-1].startswith("all ")
        part = sum(row.values[0] for row in bars.rows)
        way = way_of(inside)
        of = flow_way.attributed(way.recording, way.stream.name, way.token, answer, rival)
        (whole,) = [e.value for e in of.parts if (e.kind, e.layer) == ("ffn", layer.layer)]
        assert part == pytest.approx(whole, abs=PASSED)
        assert f"unit {best[0]} adds most" in inside.finding
        assert signed(part) in inside.finding
        assert any("tab=feedforward" in each.select["address"] for each in figure.leads)


def way_of(panel: Panel) -> flow_way.Way:
    """The way of the token that a flow's last band follows."""
    recording, band = panel.at["run"].recording(), panel.figures[0].bands[-1]
    return flow_way.Way(recording, recording.streams[-1], int(band.places[band.selected]))


@pytest.mark.parametrize("model", ["minilm", "translator"])
def test_an_ffn_whose_units_add_to_no_answer_opens_its_layer(model: str) -> None:
    """Of a model without an answer, and of the text that a translator reads."""
    figure = architecture.flow(Run(model, TEXTS[0]), layer=0, attention="", level="FFN").figures[0]
    assert not figure.ffn and figure.level == 1


def test_a_decoder_writes_the_word_that_leads_behind_the_text() -> None:
    text, token = "My sister thanked the", None
    for temperature in (0.0, 1.0, 2.0):
        for _ in range(3):
            run = Run("decoder", text)
            figure = architecture.flow(run, token, temperature=temperature).figures[0]
            link = figure.leads[-1]
            word = re.fullmatch("Write “(.+)”", link.label)[1]
            assert word == figure.words[0].label
            before = Run("decoder", text).recording().streams[0].ids
            text, token = link.select["text"], int(link.select["token"])
            after = Run("decoder", text).recording().streams[0]
            assert len(after.ids) == len(before) + 1 == token + 1 and after.tokens[-1] == word
    for silent, token in ((Run("encoder", TEXTS[0]), None), (Run("decoder", text), 1)):
        figure = architecture.flow(silent, token).figures[0]
        assert not any("text" in each.select for each in figure.leads), "inside a text"


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("model", SHIPPED)
def test_a_button_that_writes_a_word_writes_the_leading_one(model: str) -> None:
    """Also with a head switched off, and at a temperature, which changes no order."""
    written = 0
    for text in TEXTS:
        whole = Run(model, text)
        last = len(whole.recording().streams[0].tokens) - 1
        switch = architecture.flow(whole, last).figures[0].stop.switch
        without = whole.under(from_line(switch.select["edits"])) if switch else whole
        for run, temperature in ((whole, 1.0), (whole, 2.0), (without, 1.0)):
            figure = architecture.flow(run, last, temperature=temperature).figures[0]
            for link in figure.leads:
                if "text" not in link.select:
                    continue
                best = max(figure.words, key=lambda each: each.probability)
                assert best.label.startswith(link.label[len("Write “") : -1]), (
                    "it or its first piece"
                )
                after = Run(model, link.select["text"]).recording().streams[0].ids
                assert after[-1] == best.id == figure.words[0].id, (text, link.label)
                written += 1
    assert bool(written) == flow_beam.continues(Run(model, TEXTS[0]), {})


@pytest.mark.parametrize("level", ["Head", "Weight"])
def test_the_hidden_word_has_one_name_on_every_level(level: str) -> None:
    run = Run("encoder", TEXTS[0])
    own = run.recording().streams[0].tokens
    panel = architecture.flow(run, 9, level=level)
    assert panel.figures[1].rows == panel.figures[1].columns == own
    assert "“it”" in panel.figures[2].title or '"it"' in panel.encode().decode("utf-8", "replace")
    assert "MASK" not in panel.encode().decode("utf-8", "replace") + str(panel.table)
    assert "MASK" not in str(architecture.flow(run, 9).table)


def rises(run: Run, layer: int, token: int) -> dict[int, tuple[float, float]]:
    """The probabilities of each word (id) at a token before and after a layer's FFN, by the whole
    lens."""
    recording = run.recording()
    stream = recording.streams[-1]
    lens = loaded(recording).lens(recording, stream.name, recording.model.n_vocab)
    part = next(each for each in flow.in_layers(stream)[layer] if each.place == "ffn")
    sites = [each if each in lens.sites else lens.sites[-1] for each in (part.before, part.after)]
    cells = [logit_lens.cell(lens, lens.sites.index(each), token) for each in sites]
    p = [dict(zip(each.ids.tolist(), each.probabilities.tolist())) for each in cells]
    return {id: (before, p[1][id]) for id, before in p[0].items()}


@pytest.mark.parametrize("model", ["encoder", "decoder", "twin-pre"])
@pytest.mark.parametrize("text", TEXTS[:4])
def test_an_opened_layer_says_which_word_its_ffn_raises_most(model: str, text: str) -> None:
    run = Run(model, text)
    recording = run.recording()
    token, layers = len(recording.streams[0].tokens) - 2, max(flow.in_layers(recording.streams[0]))
    vocabulary = loaded(recording).vocabulary()
    for layer in range(layers + 1):
        panel = architecture.flow(run, token, layer=layer, level="Layer", hide=False)
        said = re.search(r"(?:The|the) FFN raises “(.+)” most, from (.+) to (.+) \(", panel.finding)
        change = rises(run, layer, token)
        if not said:
            whole = [
                change[id] for id, label in enumerate(vocabulary) if flow_levels.is_word(label)
            ]
            assert max(after - before for before, after in whole) < flow.LEAST_RISE
            continue
        ids = [id for id, label in enumerate(vocabulary) if label == said[1]]
        found = [change[id] for id in ids]
        assert (said[2], said[3]) in [(tenths(a), tenths(b)) for a, b in found]
        assert max(after - before for before, after in found) >= flow.LEAST_RISE
        unit, word, adds = re.fullmatch(
            r"Of the FFN’s .+ hidden units, unit (\d+) adds most to the logit of “(.+)”: (.+)\.",
            panel.figures[-1].note,
        ).groups()
        stream = recording.streams[-1].name
        units = [loaded(recording).neurons(recording, stream, layer, token, id) for id in ids]
        assert word == said[1]
        assert (int(unit), adds) in [(int(u.adds.argmax()), fixed(u.adds.max(), 1)) for u in units]


def test_no_word_rises_more_than_the_one_that_is_named() -> None:
    rng = np.random.default_rng(3)
    for words in (range(40), range(0, 40, 2)):
        p = rng.dirichlet(np.full(40, 0.3), 3)
        order = np.argsort(-p, axis=-1)
        top = np.log(np.take_along_axis(p, order, -1))
        lens = Lens("x", ("a", "b", "c"), order[:, None], top[:, None], *[np.zeros((3, 1))] * 4)
        rise = p[1] - p[0]
        found = flow.largest_rise(lens, lambda id: id in words, 0.01)
        best = max(words, key=lambda id: rise[id])
        assert found.id == best and found.is_first == (rise[best] == rise.max())
        assert (found.before, found.after) == pytest.approx((p[0][best], p[1][best]))
        assert flow.largest_rise(lens, lambda id: id in words, 1.0) is None


@pytest.mark.parametrize(("model", "level"), [("encoder", "Model"), ("decoder", "Layer")])
def test_a_covered_flow_tells_nothing_of_the_prediction(model: str, level: str) -> None:
    run = Run(model, DEFAULT_TEXT)
    shown = architecture.flow(run, level=level)
    covered = architecture.flow(run, level=level, cover=True)
    (answer, *_), machine = shown.figures[0].words, covered.figures[0]
    assert not machine.words and not covered.table
    assert all(each.says is None and each.answer is None for each in machine.layers)
    told = " ".join(texts_of([as_plain(each, {}) for each in covered.figures]))
    assert answer.text not in told and answer.text not in covered.finding
    assert [each.attentions for each in machine.layers] == [
        each.attentions for each in shown.figures[0].layers
    ]
