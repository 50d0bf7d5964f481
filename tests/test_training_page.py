"""Training: the numbers of a model's checkpoints are those of the models themselves, and what is
said of them is so."""

from __future__ import annotations

import re

import numpy as np
import pytest
from app_harness import clean, page_at, panels_on, told
from conftest import AWKWARD, read_once, typed
from streamlit.testing.v1 import AppTest
from tolerances import STORED, SUMMED, TINY

from explorer.analysis import head_naming
from explorer.analysis import training as training_analysis
from explorer.analysis.training import HabitCourse
from explorer.panels import training
from models import model_names, shipped_models
from models.contract.edits import HideToken
from models.contract.recording import CONTINUES
from models.contract.results import softmax
from models.example_texts import DEFAULT_TEXT
from models.own import model_card
from models.runtime import registry
from models.runtime.run import Run

TWICE = "The red fox saw a small bird. The red fox saw a small bird."


def made(has: tuple[bool, ...], scores: tuple[float, ...] | None = None) -> HabitCourse:
    steps = tuple(range(0, 100 * len(has), 100))
    scores = scores or tuple(0.1 + 0.5 * each for each in has)
    return HabitCourse("previous", (0, 1), steps, scores, (0.1,) * len(has), has)


def test_a_head_became_what_it_is_at_the_first_checkpoint_from_which_on_it_stays_so() -> None:
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(400):
        has = tuple(bool(each) for each in rng.random(rng.integers(1, 8)) < 0.6)
        one = made(has)
        wanted = next((at for at in range(len(has)) if all(has[at:])), None)
        assert one.formed_at == wanted
        finding = training.headline(one)
        if wanted and wanted < len(has) - 1:
            between = f"between steps {one.steps[wanted - 1]:,} and {one.steps[wanted]:,}."
            assert between in finding and not has[wanted - 1]
        if wanted and wanted == len(has) - 1:  # of the last one nobody knows whether it would stay
            assert (
                "became" not in finding.replace("has become", "")
                and f"By step {one.steps[-1]:,}, the last one," in finding
            )
            assert "still rising" in finding
        assert ("at any checkpoint" in finding) == (not any(has))
        if one.lost is not None:
            assert has[one.lost] and not any(has[one.lost + 1 :])
            assert "not at the last" in finding
        seen.add((wanted is None, any(has)))
    assert len(seen) == 3


def test_the_jump_is_the_largest_rise_and_a_long_curve_keeps_its_mean() -> None:
    one = made((False, False, True, True), (0.1, 0.2, 0.7, 0.75))
    curve = ((50.0, 6.0), (100.0, 5.0), (200.0, 3.0), (300.0, 2.0))
    assert one.jump == 2
    assert made((True, True), (0.7, 0.6)).jump is None
    assert training_analysis.first_below(curve, 3.5) == 200
    assert training_analysis.first_below(curve, 1) is None
    points = tuple((float(at), float(at % 7)) for at in range(1, 1001))
    smooth = training_analysis.smoothed(points, 100)
    assert len(smooth) == 100 and smooth[-1][0] == 1000
    mean = np.mean([loss for _, loss in smooth])
    assert mean == pytest.approx(np.mean([at % 7 for at in range(1, 1001)]))


def test_pairs_are_models_that_say_of_which_one_they_lack_a_part() -> None:
    cards = {
        "whole": {"curve": [[1, 2.0]]},
        "whole-no-norm": {"curve": [[1, 2.0]], "without": "norm"},
        "post": {"curve": [[1, 2.0]]},
        "pre": {"curve": [[1, 2.0]], "without": "LayerNorm after the sums", "of": "post"},
        "old-no-scale": {"without": "scale"},
    }
    pairs = training_analysis.ablation_pairs(cards)
    assert pairs == (("post", "pre"), ("whole", "whole-no-norm"))


def test_the_last_checkpoint_is_the_model_itself_and_each_step_shows_its_own_weights() -> None:
    panel = training.checkpoints(Run("induction", TWICE), pattern="induction")
    own = read_once("induction").record(TWICE)
    described = head_naming.describe(own, own.attention[0])
    charts, steps = panel.figures
    (scores,) = charts.figures
    loss, rate = training.losses(Run("induction", TWICE)).figures
    wanted = [*shipped_models.card("induction")["checkpoints"], 2000]
    assert [int(frame.key) for frame in steps.frames] == wanted
    grid = steps.frames[-1].figures[0]
    assert grid.names == tuple(head.name for head in described)
    peak = grid.weights["peak"].reshape(grid.shape[:2])[..., None, None]
    shown = peak * (grid.weights["cells"].reshape(grid.shape) / 255) ** 2
    assert (np.abs(shown - own.attention[0].pattern) <= 0.004 * peak + TINY).all()
    curve = shipped_models.card("induction")["curve"]
    np.testing.assert_allclose(np.stack((loss.series[0].x, loss.series[0].y), axis=1), curve)
    assert 0 <= loss.series[0].x[-1] - rate.series[0].x[-1] <= 1, "one axis of steps"
    best = max(
        (one.score, head.layer, head.head)
        for head in described
        for one in head.relations
        if one.name == "induction" and not one.against
    )
    line, uniform = scores.series[:2]
    assert line.name == f"L{best[1]} H{best[2]}" and line.main
    assert line.y[-1] == pytest.approx(best[0], abs=SUMMED) and uniform.y[-1] < line.y[-1]
    name = f"L{best[1]} H{best[2]}"
    assert f"{name} became an induction head between steps " in panel.finding
    assert scores.x_range == (0, 2000)
    assert grid.selected == best[1:]

    early = training.checkpoints(Run("induction", TWICE), step=300)
    before = read_once("induction@300").record(TWICE)
    heads = head_naming.describe(before, before.attention[0])
    at = wanted.index(300)
    assert early.figures[1].current == at
    names = early.figures[1].frames[at].figures[0].names
    assert names == tuple(head.name for head in heads) and "induction" not in names
    (head,) = (head for head in heads if (head.layer, head.head) == best[1:])
    (score,) = (one.score for one in head.relations if one.name == "induction")
    assert line.y[at] == pytest.approx(score, abs=SUMMED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "text"),
    [("encoder", "The waiter brought the soup but it was cold."), ("induction", TWICE)],
)
def test_a_training_opens_where_the_answer_begins_to_lead_for_good(model: str, text: str) -> None:
    """By the models of the checkpoints themselves."""
    panel, run = training.checkpoints(Run(model, text)), Run(model, text)
    stream = run.recording().streams[0]
    is_hidden = model == "encoder"
    before = "it" if is_hidden else "small"  # which the last word comes after
    token = max(at for at, each in enumerate(stream.tokens) if each == before)
    edits = (HideToken(token),) if is_hidden else ()
    steps = [int(frame.key) for frame in panel.figures[1].frames]
    ids, chances = [], []
    for step in steps:
        of = read_once(model if step == steps[-1] else f"{model}@{step}")
        there = of.record(text, edits)
        p = softmax(of.logits(there, stream.name, token))
        ids.append(int(p.argmax()))
        chances.append(float(p.max()))
    at = panel.figures[1].current
    assert set(ids[at:]) == {ids[-1]} and (at == 0 or ids[at - 1] != ids[-1])
    guesses = [each.removeprefix(CONTINUES) for each in read_once(model).labels(ids)]
    rows = panel.figures[0].rows
    assert [row.key for row in rows] == [str(step) for step in steps]
    np.testing.assert_allclose([row.values[0] for row in rows], chances, atol=STORED)
    for row, guess in zip(rows, guesses):
        assert row.label.endswith(f"  {guess}")
    assert [row.selected for row in rows] == [place >= at for place in range(len(steps))]
    assert f"At step {steps[at - 1]:,} its guess was “{guesses[at - 1]}”" in panel.finding
    is_back = guesses[at] in guesses[: at - 1]
    led = "back to" if is_back else f"From step {steps[at]:,} of its training on, the model guesses"
    assert f"{led} “{guesses[at]}”" in panel.finding
    assert training.checkpoints(run, layer=0, head=1).figures[1].current == len(steps) - 1


@pytest.mark.slow
def test_no_head_of_layer_0_is_an_induction_head() -> None:
    panel = training.checkpoints(Run("induction", TWICE), layer=0, head=1, pattern="induction")
    assert panel.finding.startswith("L0 H1 is in layer 0") and "cannot be" in panel.finding
    for model in ("induction", "twin-post"):
        panel = training.checkpoints(Run(model, TWICE))
        heads = [
            head
            for pattern, head in zip(panel.table["pattern"], panel.table["head"])
            if pattern == "induction"
        ]
        assert heads and not [head for head in heads if head.startswith("L0")]


def test_a_text_without_a_pattern_says_so_unless_a_head_was_asked_for() -> None:
    text = "Hello"
    assert "On this text no head" in training.checkpoints(Run("twin-post", text)).details[0]
    asked = training.checkpoints(Run("twin-post", text), pattern="self").finding
    assert "is not a head that attends to its own token" in asked


@pytest.mark.slow
def test_a_pair_of_trainings_is_compared_at_the_same_steps() -> None:
    panel = training.pair(Run("twin-post", TWICE), "twin-pre")
    charts, steps = panel.figures
    names = [series.name for series in charts.figures[-1].series]
    assert sorted(names) == ["LayerNorm after", "LayerNorm before"]
    twins = {model_names.title(name): name for name in ("twin-post", "twin-pre")}
    ends = {name: shipped_models.card(twins[name])["curve"][-1][1] for name in names}
    better, worse = sorted(ends, key=ends.__getitem__)
    assert f"of {better} is {ends[better]:.2f} nats" in panel.finding
    assert f"of {worse} {ends[worse]:.2f}" in panel.finding
    assert [len(frame.figures) for frame in steps.frames] == [2] * len(steps.frames)
    for choices, reason in (
        ({"second": "induction"}, "no ablation pair"),
        ({"second": "twin-pre", "step": 7}, "no checkpoint at step 7"),
    ):
        with pytest.raises(ValueError, match=reason):
            training.pair(Run("twin-post", TWICE), **choices)


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ({"step": 7}, "no checkpoint at step 7"),
        ({"layer": 9, "head": 0}, "no layer 9"),
        ({"pattern": "diagonal"}, "no pattern 'diagonal'"),
        ({"attention": "cross"}, "no attention 'cross'"),
    ],
)
def test_what_is_not_there_is_refused(choices: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        training.checkpoints(Run("induction", TWICE), **choices)
    with pytest.raises(ValueError, match="no training checkpoints"):
        training.checkpoints(Run("translator", TWICE))


def test_taught_heads_and_others_are_told_apart_and_compared() -> None:
    """And both are seen forming."""
    card = shipped_models.card("encoder")
    run, taught = Run("encoder", DEFAULT_TEXT), card["taught"]
    names = [f"L{layer} H{head}" for layer, head in taught["heads"]]
    became = re.compile(r"(L\d H\d)\D* between steps ([\d,]+) and ([\d,]+)\.")

    def steps(found: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(int(each.replace(",", "")) for each in found[1:])

    chosen = training.checkpoints(run, layer=3, head=2, pattern=head_naming.PRONOUN)
    alone = training.checkpoints(run, layer=1, head=5, pattern=head_naming.PRONOUN)
    for panel, said, first in (
        (chosen, f"It learned this from heads of {card['taught']['teacher']}: from step", "L3 H2"),
        (alone, "It learned this by itself, from guessing words.", "L1 H5"),
    ):
        assert said in panel.finding
        (one, *begins), (other, *_) = became.findall(panel.finding)
        assert one == first and (one in names) != (other in names)
        before, after = steps((one, *begins))
        if one in names:
            assert before == taught["from"]
        else:
            assert after < taught["from"]
        # The two stand on one chart, and a head that was taught is said to be one.
        lines = [line.name for line in panel.figures[0].figures[0].series]
        assert len(lines) == 3 and sum(name.endswith(", from minilm") for name in lines) == 1
    # The curve of the one without a teacher rises over the checkpoints before.
    score = next(line for line in alone.figures[0].figures[0].series if line.main).y
    early = [step <= 10_500 for step in card["checkpoints"]]
    assert sum(early) == 3 and (np.diff(score[:3]) > 0.1).all()
    # The grid says which heads were taught by then, and so does the caption.
    for frame in chosen.figures[1].frames:
        title = frame.figures[0].title
        assert all(name in title for name in names) == (int(frame.key) > taught["from"])
    assert "L3 H2 learned the rows of L3 H1" in " ".join(chosen.caption)
    assert "taught" not in " ".join(training.checkpoints(run, step=taught["from"]).caption)
    # Of another pattern, and of a model without a teacher, nothing is compared.
    assert "learned" not in training.checkpoints(Run("induction", TWICE)).finding
    previous = training.checkpoints(run, pattern="previous")
    assert "by itself" in previous.finding and "minilm" not in previous.finding


@pytest.mark.parametrize("model", ["encoder", "decoder", "induction"])
def test_every_line_of_a_training_has_a_name_of_its_own_and_few_stand_together(model: str) -> None:
    run = Run(model, DEFAULT_TEXT)
    opened = training.checkpoints(run, pattern=training.clearest_pattern(run, {}))
    shown = (*opened.figures[0].figures, *training.losses(run).figures)
    for chart in shown:
        names = [line.name for line in chart.series]
        assert all(names) and len({*names}) == len(names) <= 3, chart.title


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_leap_of_the_loss_is_marked_and_explained_where_it_is_seen(model: str) -> None:
    panel = training.losses(Run(model, DEFAULT_TEXT))
    loss, _ = panel.figures
    ((step, text),) = loss.guides
    (line,) = loss.series
    leap = line.x[np.diff(line.y).argmax()]  # of neighbours the curve has the mean
    assert abs(leap - step) <= 2 * (line.x[1] - line.x[0])
    assert f"{step:,.0f}" in text and f"{step:,.0f}" in panel.finding
    assert model_card.loss_note(model) in loss.note and f"{step:,.0f}" in loss.note


@pytest.mark.parametrize("model", ["encoder", "decoder", "induction"])
def test_in_each_phase_the_rate_that_is_drawn_rises_stays_and_falls(model: str) -> None:
    panel = training.losses(Run(model, DEFAULT_TEXT))
    (line,) = panel.figures[1].series
    phases, n = model_card.phases(model), 0
    for of in phases:
        inside = (line.x >= of.first) & (line.x < of.first + of.steps)
        change = np.sign(np.diff(line.y[inside]))
        kinds = [each for at, each in enumerate(change) if at == 0 or change[at - 1] != each]
        assert kinds in ([1, 0, -1], [1, 0, -1, 0]), of
        t, fall = line.x[inside] - of.first + 1, of.steps // 5
        left = np.maximum(of.steps + 1 - t, fall / 50)
        law = of.rate * np.minimum(1, np.minimum(t / of.warm_up, left / fall))
        np.testing.assert_allclose(line.y[inside], law)
        n += 1
    assert panel.numbers["phases"].text == f"{n}"


# ---- the page ------------------------------------------------------------------------------------


def opened(tab: str = "checkpoints", **asked: str) -> AppTest:
    return page_at(tab, **{"model": "induction", "text": TWICE, **asked})


def steps_of(app: AppTest) -> dict:
    return panels_on(clean(app))[0]["figures"][1]


@pytest.mark.slow
def test_any_text_opens_it_and_another_model_too() -> None:
    app = opened()
    for name in ("empty", "marks"):
        typed(app, AWKWARD[name])
        assert steps_of(app)["frames"]
    app = opened(model="copy", text="dog red seven book Paris and so on")
    assert app.selectbox(key="train_of menu").value == "cross"
    assert "follows the source in order" in panels_on(app)[0]["details"][0]
    app = opened(model="minilm" if shipped_models.packaged() else "induction-no-norm")
    assert "has no training checkpoints" in told(app, "caption")
    last = shipped_models.card(app.session_state["model"])["steps"]
    assert steps_of(app)["frames"][-1]["key"] == str(last)
    assert steps_of(opened(model="induction@450"))["current"] == 5
    assert steps_of(opened(train_step="300", layer="1", head="2"))["current"] == 4


@pytest.mark.parametrize(("tab", "model"), [("checkpoints", "encoder"), ("twins", "induction")])
def test_without_earlier_weights_the_page_says_how_to_get_them(
    tab: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the package is installed, which leaves them out."""
    monkeypatch.setattr(shipped_models, "EARLIER", "no such file")
    app = clean(page_at(tab, model=model, text=TWICE))
    assert [each.value for each in app.info] == [shipped_models.NO_EARLIER]
    assert app.session_state.model == model
    with pytest.raises(ValueError, match="leaves out earlier weights"):
        registry.load("induction@400")
    app = clean(page_at("live", model=model, text=TWICE))
    assert shipped_models.NO_EARLIER not in told(app, "info")


@pytest.mark.parametrize("task", ["induction", "copy", "reverse"])
def test_before_the_first_training_stands_what_one_of_the_task_has_come_to(task: str) -> None:
    app = clean(page_at("live", live_task=task))
    (panel,) = panels_on(app)
    last = panel["figures"][1]["frames"][-1]
    assert last["key"] == str(shipped_models.card(task)["steps"])
    assert not set(last["figures"][0]["names"]) <= set(head_naming.UNNAMED)
    said, (layers, heads) = told(app, "caption"), last["figures"][0]["shape"][:2]
    assert f"{task}: {layers} layer{'s' * (layers > 1)} of {heads} heads" in said
