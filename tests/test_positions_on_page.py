"""Positions: what their panels say, and the tab."""

from __future__ import annotations

import re

import numpy as np
import pytest
from app_harness import asked_of, clean, page_at, panels_on
from conftest import read_once
from ordinary_sentences import SENTENCES
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, STORED, SUMMED

from explorer.analysis import positions as laws
from explorer.analysis.words import words as words_of
from explorer.figures.formatting import power
from explorer.panels import positions
from explorer.panels.choice import EVERY
from models.contract.edits import HideToken, ShuffleTokens, WithoutPositions
from models.contract.results import softmax
from models.runtime import caching
from models.runtime.run import Run

TEXT = "Ram pushed Hari"


# ---- the panels ----------------------------------------------------------------------------------


def test_a_sentence_adds_word_and_position() -> None:
    run = Run("encoder", TEXT)
    stream = run.recording().streams[0]
    norms, beside = positions.sentence(run, token=2).figures
    strips, chart = beside.figures
    sites = ("embed", "pos.wrote", "embed+pos")
    for strip, site in zip(strips.strips, sites, strict=True):
        np.testing.assert_allclose(strip.values, stream.at(site)[2])
    for column, site in enumerate(sites[::2]):  # all vectors of positions are as long
        lengths = [row.values[column] for row in norms.rows]
        np.testing.assert_allclose(lengths, np.linalg.norm(stream.at(site).astype(float), axis=1))
    assert norms.rows[2].selected and chart.series[0].main


def test_scores_by_distance_are_means_over_the_text() -> None:
    run = Run("encoder", "the cat sat on the mat")
    recording = run.recording()
    bare = run.loaded.record(run.text, (WithoutPositions(),))
    text = np.flatnonzero(~recording.streams[0].special)
    series = positions.sentence(run, 1, 1, 2).figures[1].figures[1].series
    for one, of in zip(series, (recording, bare)):
        scores = of.attention[0].scores[1, 2].astype(float)[np.ix_(text, text)]
        means = [scores.diagonal(int(distance)).mean() for distance in one.x]
        np.testing.assert_allclose(one.y, means, rtol=SUMMED)


def test_the_guess_is_read_in_five_other_orders() -> None:
    """Each order by itself: the hidden word and the last one keep their places, and what is told is
    the median of what is drawn."""
    text = "The waiter brought the soup but it was cold."
    run, model = Run("encoder", text), read_once("encoder")
    stream = run.recording().streams[0]
    token, id = stream.tokens.index("it"), model.first_token("it")[0]
    panel = positions.answer(run)
    typed, *others = panel.figures[0].rows

    def p(place: int, *edits: object) -> float:
        there = model.record(text, (*edits, HideToken(place)))
        return float(softmax(model.logits(there, "encoder", place))[id])

    assert typed.values[0] == pytest.approx(p(token), abs=STORED)
    moves = laws.other_orders(stream, words_of(stream, text), token)
    assert len({each.order(stream.special.tolist()).tobytes() for each in moves}) == 5
    for moved, row in zip(moves, others, strict=True):
        assert row.values[0] == pytest.approx(p(token, moved), abs=STORED)
        words = row.label.replace(".", " .").split()
        assert sorted(words) == sorted([*text[:-1].replace(" it ", " ___ ").split(), "."])
        assert words.index("___") == token - 1 and words[-2:] == ["cold", "."]
    (median,) = [row for row in others if row.selected]
    assert median.values[0] == np.median([row.values[0] for row in others])
    assert f"from {typed.texts[0]} to {median.texts[0]}." in panel.finding
    with pytest.raises(ValueError, match="no words"):
        positions.answer(Run("encoder", "the"))


WAITER = "The waiter brought the soup but it was cold."
LONG = "We walked along the river until the old mill came into sight and the road turned north."


MIXED = "No no मुझे चाय पसंद है because it is hot 🙃 and he likes it, too."


@pytest.mark.parametrize("model", ["encoder", "decoder"])
@pytest.mark.parametrize(
    "text", [*SENTENCES[:10], "teh quikc bronw fox jumpd over it", LONG, MIXED, "Bob bites 😀 now."]
)
def test_orders_are_of_whole_words_and_say_where_some_are_left_out(text: str, model: str) -> None:
    run = Run(model, text)
    try:
        panel = positions.answer(run)
    except ValueError as why:
        assert "other order" in str(why) or "no words" in str(why)
        return
    grouped = words_of(run.recording().streams[0], text)
    whole = [label for label, special in zip(grouped.labels, grouped.special) if not special]
    (figure,) = panel.figures
    for row in figure.rows:
        line = row.label.removeprefix("as written: ")
        read = re.sub(r"(?<=[^ ])([.,;:!?])(?= |$)", r" \1", line).split(" ")
        moved = {each for each in read if "___" not in each}
        assert moved <= {*" ".join(whole).split(" "), "…"}, "no piece of a word"
        assert ("…" in read) == (len(read) < len(" ".join(whole).split(" ")))
    assert figure.rows[0].outline is None
    assert {row.outline for row in figure.rows[1:]} == {figure.rows[0].values[0]}


def test_words_of_several_pieces_move_with_all_of_them() -> None:
    """In the encoder "Dog bites man." has a word in pieces, "bites": it moves whole, and the word
    that is guessed is read where it stands then."""
    run = Run("encoder", "Dog bites man.")
    stream = run.recording().streams[0]
    grouped = words_of(stream, run.text)
    assert max(grouped.sizes) > 1
    panel = positions.answer(run)
    typed, *others = panel.figures[0].rows
    assert others and {tuple(sorted(row.label[:-1].split())) for row in others} == {
        tuple(sorted(typed.label.removeprefix("as written: ")[:-1].split()))
    }
    token = panel.at["token"]
    moves = laws.other_orders(stream, grouped, token)
    for moved, row in zip(moves, others, strict=True):
        order = moved.order(stream.special.tolist())
        assert sorted(order) == list(range(len(stream.tokens)))
        for start, size in map(grouped.span, range(len(grouped.labels))):
            at = int(np.flatnonzero(order == start)[0])
            assert order[at : at + size].tolist() == list(range(start, start + size))
        place = int(np.flatnonzero(order == token)[0])
        there = read_once("encoder").record(run.text, (moved, HideToken(place)))
        p = softmax(read_once("encoder").logits(there, "encoder", place))
        drawn = read_once("encoder").record(run.text, (HideToken(token),))
        led = softmax(read_once("encoder").logits(drawn, "encoder", token)).argmax()
        assert row.values[0] == pytest.approx(p[led], abs=STORED)


def test_what_a_writing_model_is_asked_for_does_not_move_before_it() -> None:
    """Of "... it was cold." it is asked for the word after "was": "cold" stays behind it."""
    typed, *others = positions.answer(Run("decoder", WAITER)).figures[0].rows
    assert len(others) == 5
    assert all(row.label.endswith("was cold.") for row in (typed, *others))


def test_in_a_short_sentence_the_last_word_moves_too() -> None:
    typed, *others = positions.answer(Run("encoder", "Dogs bark at night.")).figures[0].rows
    assert len(others) == 5 and not all(row.label.endswith("night.") for row in others)


@pytest.mark.in_turn
@pytest.mark.parametrize("text", SENTENCES)
def test_what_is_said_of_other_orders_is_what_their_chances_are(text: str) -> None:
    """Of two chances below 5% there is no clear guess; "hardly" is neither 5 points nor half as
    much again."""
    try:
        panel = positions.answer(Run("encoder", text))
    except ValueError:
        return
    typed, *others = panel.figures[0].rows
    (chosen,) = [row.values[0] for row in others if row.selected]
    before = typed.values[0]
    low, high = sorted((before, chosen))
    if high < 0.05:
        assert "no clear guess" in panel.finding
    elif high - low < 0.05 and high < 1.5 * low:
        assert "hardly matters" in panel.finding
    else:
        assert ("rises from" if chosen > before else "falls from") in panel.finding


def test_a_guess_that_order_hardly_changes_is_said_to_be_so() -> None:
    panel = positions.answer(Run("decoder", "a a a a a a"))
    typed, *others = panel.figures[0].rows
    assert {row.texts for row in others} == {typed.texts}
    assert "hardly matters" in panel.finding and typed.texts[0] in panel.finding


def test_another_order_changes_vectors_by_positions_alone() -> None:
    run = Run("encoder", TEXT)
    panel = positions.order(run, kind="Typed", typed="Hari pushed Ram")
    model, changes = read_once("encoder"), []
    for edits in ((), (WithoutPositions(),)):
        one, two = (model.record(text, edits).streams[0] for text in (TEXT, "Hari pushed Ram"))
        order = [two.tokens.index(token) for token in one.tokens]
        change = one.at(one.sites[-1]) - two.at(one.sites[-1])[order]
        changes.append(np.abs(change).max(axis=1))
    stack, *_ = panel.figures
    tokens, bars = stack.figures
    assert tokens.tokens == two.tokens and tokens.weights.max() == 1
    for column, change in enumerate(changes):
        np.testing.assert_allclose([row.values[column] for row in bars.rows], change, rtol=STORED)
        assert power(float(change.max()), 2) in panel.finding
    assert changes[1].max() < PASSED < changes[0].max() and "equivariant" in panel.finding


def test_a_head_in_two_orders_is_matched_by_word() -> None:
    run = Run("encoder", TEXT)
    _, here, there = positions.order(run, 0, 1, seed=3).figures
    np.testing.assert_allclose(here.values, there.values, atol=PASSED)
    edits = (WithoutPositions(), ShuffleTokens(3))
    bare, shuffled = (run.loaded.record(TEXT, each) for each in (edits[:1], edits))
    np.testing.assert_array_equal(here.values, bare.attention[0].pattern[0, 1])
    pattern = shuffled.attention[0].pattern[0, 1]
    assert sorted(there.values.ravel()) == pytest.approx(sorted(pattern.ravel()))
    assert "of any of the 32 heads" in there.note and np.ptp(here.values) > 0.01


@pytest.mark.parametrize(
    ("model", "stream", "reason"), [("decoder", "", "causal"), ("translator", "decoder", "across")]
)
def test_the_reason_is_that_of_the_model(model: str, stream: str, reason: str) -> None:
    panel = positions.order(Run(model, TEXT), stream=stream)
    assert positions.sentences("positions", "order")(reason) in panel.finding


def test_other_words_and_no_words_are_told_apart() -> None:
    other = positions.order(
        Run("encoder", "Herbivores eat plants"), kind="Typed", typed="Plants eat herbivores"
    )
    assert "same tokens" in other.finding and any("Herbivores" in each for each in other.details)
    with pytest.raises(ValueError, match="no words yet"):
        positions.order(Run("encoder", ""))
    same = positions.order(Run("encoder", TEXT), kind="Typed", typed=TEXT)
    assert same.finding == positions.sentences("positions", "order")("same")


def test_the_encoding_is_the_formula_sines_first() -> None:
    table, wave = positions.encoding(Run("encoder", TEXT), 20, 32, 3, token=2).figures
    assert table.selected == 2, "the row of a token is framed"
    bare = positions.encoding(Run("encoder", TEXT), 20, 32, 3, token=EVERY)
    assert bare.figures[0].selected == -1
    order = [*range(0, 32, 2), *range(1, 32, 2)]
    np.testing.assert_allclose(table.values, laws.table(20, 32)[:, order])
    assert list(map(int, table.columns)) == order
    np.testing.assert_allclose(wave.series[0].y[:: laws.DRAWN_POINTS], laws.table(20, 32)[:, 6])
    with pytest.raises(ValueError, match="width is 7; it can be 2, 4 … 1024"):
        positions.encoding(Run("encoder", TEXT), 20, 7)
    with pytest.raises(ValueError, match="no pair 16"):
        positions.encoding(Run("encoder", TEXT), 20, 32, 16)


def test_products_and_rotations_follow_their_laws() -> None:
    table = laws.table(20, 32)
    pairs, chart = positions.distance(Run("encoder", TEXT), 20, 32).figures
    np.testing.assert_allclose(pairs.values, table @ table.T)
    np.testing.assert_allclose(chart.series[0].y, (table @ table.T)[0])
    circle, matrix = positions.rotation(Run("encoder", TEXT), 20, 32, 3, 4, 5).figures
    (_, a, b, x, u), (_, c, d, y, v) = ((row[0], *map(number, row[1:])) for row in matrix.rows)
    np.testing.assert_allclose(np.array([[a, b], [c, d]]) @ (x, y), (u, v), atol=1e-4)  # 4 decimals
    assert (u, v) == pytest.approx(tuple(table[9, 6:8]), abs=1e-4)  # 4 decimals
    assert circle.series[0].y[1] == pytest.approx(table[9, 6])


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@pytest.mark.slow
def test_a_learned_table_is_shown_as_it_is_and_no_law_is_claimed_for_it() -> None:
    run = Run("minilm", "Apples fall.")
    assert positions.answer(run).title == positions.sentences("positions", "order")("title")
    table = read_once("minilm").network.embedding.position.detach().numpy()
    shown, norms = positions.encoding(run).figures
    np.testing.assert_array_equal(shown.values, table[:64])
    np.testing.assert_allclose(norms.series[0].y, np.linalg.norm(table[:64], axis=1), rtol=SUMMED)
    pairs, chart = positions.distance(run).figures
    products = table[1:64].astype(float) @ table[1:64].T.astype(float)
    assert pairs.rows[0] == "1", "position 0 is left out"
    assert chart.series[1].y[1] == pytest.approx(np.diagonal(products, 1).mean(), rel=SUMMED)
    assert any("does not apply" in line for line in positions.rotation(run).details)
    assert any("no factor" in line for line in positions.sentence(run).details)


def test_the_room_of_words_and_positions_is_measured() -> None:
    run = Run("encoder", TEXT)
    model = read_once("encoder")
    n, d = model.card.n_positions, model.card.d_model
    found = laws.overlap(model.embeddings(), laws.table(n, d))
    chart = positions.overlap(run).figures[0]
    for series, values in zip(chart.series, (found.places, found.words, found.chance)):
        np.testing.assert_allclose(series.y, values, atol=PASSED)


def test_a_model_without_positions_says_so() -> None:
    run = Run("reverse-no-positions", "b a c d")
    for panel in (positions.sentence, positions.overlap):
        with pytest.raises(ValueError, match="adds no positions"):
            panel(run)
    assert any("both runs are the same" in line for line in positions.order(run).details)


# ---- the tab -------------------------------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return clean(page_at("positions", **asked))


@pytest.mark.slow
def test_another_order_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # Room for four long recordings beside whatever other tests have left in the cache.
    monkeypatch.setattr(caching.cache, "limit", 2**30)
    run = Run("encoder", "all work and no play " * 300)
    read = laws.read_part(run.recording())
    assert 400 < len(read.split()) < 513
    panel = positions.order(run, kind="Typed", typed="play " * 900)
    assert any("encoder reads 512" in line for line in panel.details)


@pytest.mark.slow
def test_a_slider_runs_no_forward_pass_and_stands_in_the_address() -> None:
    app = opened(ask="Shift", width="64", places="32", pair="9")
    text = asked_of(app)["text"]  # alone: texts of other tests may still be read in the background
    made = lambda: {key for key in caching.cache.entries if key[0] == "recording" and text in key}
    before = made()
    assert before
    for name, value in {"pair": 31, "shift": 7, "width": 128, "places": 512}.items():
        clean(app.slider(key=f"{name} slider").set_value(value).run())
    assert made() <= before
    asked = asked_of(app)
    assert asked.pop("tab") == "positions" and asked.pop("text")
    assert asked == {"ask": "Shift", "width": "128", "places": "512", "pair": "31", "shift": "7"}
    assert panels_on(opened(**asked)) == panels_on(app)


@pytest.mark.slow
def test_another_text_forgets_the_order_typed_for_the_last() -> None:
    app = opened(text=TEXT, ask="Order", order="Retype", retyped="Hari Ram pushed")
    app.session_state["examples"] = True
    app.run().pills(key="preset").set_value("Pizza").run()
    first, *_ = panels_on(app)
    assert "pizza . eat" in first["details"][1] and app.text_input(key="retyped").value == ""


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_what_positions_of_their_own_room_would_cost_is_told(model: str) -> None:
    """As many dimensions as nearly all of the variance of the table needs, by its eigenvalues."""
    run = Run(model, TEXT)
    card = run.recording().model
    rates = 10_000 ** (-np.arange(0, card.d_model, 2) / card.d_model)
    angles = np.outer(np.arange(card.n_positions), rates)
    table = np.hstack((np.sin(angles), np.cos(angles)))
    values = np.sort(np.linalg.eigvalsh(np.cov(table.T)))[::-1]
    room = int(np.searchsorted(values.cumsum() / values.sum(), 0.99)) + 1
    d = card.d_model
    told = re.search(
        r"Concatenating (\d+) dimensions .* (\d+) wide in the place of (\d+), .* (\d+)% larger",
        positions.overlap(run).finding,
    )
    assert told is not None
    assert [*map(int, told.groups())] == [room, d + room, d, round(100 * room / d)]
