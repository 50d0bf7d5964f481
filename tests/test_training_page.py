"""Training: the numbers of a model's checkpoints are those of the models themselves, and what is
said of them is so."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, on_page, read_once, typed
from streamlit.testing.v1 import AppTest
from tolerances import SUMMED

from explorer.analysis import head_naming, training
from explorer.analysis.training import HabitCourse
from explorer.components import codec, line_chart
from explorer.text.training import beside_loss, headline
from models import registry, shipped_models

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
        said = headline(one)
        if wanted:
            assert f"at step {one.steps[wanted]:,}." in said and not has[wanted - 1]
        assert ("at any checkpoint" in said) == (not any(has))
        if one.lost is not None:
            assert has[one.lost] and not any(has[one.lost + 1 :]) and "not at the last" in said
        seen.add((wanted is None, any(has)))
    assert len(seen) == 3


def test_the_jump_is_the_largest_rise_and_the_loss_beside_it_is_the_curves() -> None:
    one = made((False, False, True, True), (0.1, 0.2, 0.7, 0.75))
    curve = ((50.0, 6.0), (100.0, 5.0), (200.0, 3.0), (300.0, 2.0))
    assert one.jump == 2
    said = beside_loss(one, curve)
    assert "from 5.00 to 3.00 nats" in said and "50%" in said and "decrease" in said
    assert beside_loss(one, ()) == ""
    assert made((True, True), (0.7, 0.6)).jump is None
    assert training.first_below(curve, 3.5) == 200 and training.first_below(curve, 1) is None
    smooth = training.smoothed(tuple((float(at), float(at % 7)) for at in range(1, 1001)), 100)
    assert len(smooth) == 100 and smooth[-1][0] == 1000
    assert np.mean([loss for _, loss in smooth]) == pytest.approx(
        np.mean([at % 7 for at in range(1, 1001)])
    )


def test_pairs_are_models_that_say_of_which_one_they_lack_a_part() -> None:
    cards = {
        "whole": {"curve": [[1, 2.0]]},
        "whole-no-norm": {"curve": [[1, 2.0]], "without": "norm"},
        "post": {"curve": [[1, 2.0]]},
        "pre": {"curve": [[1, 2.0]], "without": "LayerNorm after the sums", "of": "post"},
        "old-no-scale": {"without": "scale"},
    }
    assert training.ablation_pairs(cards) == (("post", "pre"), ("whole", "whole-no-norm"))


def test_steps_stand_on_a_log_axis_where_they_reach_far() -> None:
    def header(last: int) -> dict:
        line = line_chart.ChartLine("loss", [(0, 5.0), (10, 4.0), (last, float("nan"))])
        told = {"about": "", "token": "", "title": "", "caption": (), "file": ""}
        return codec.decode(line_chart.payload([line_chart.ChartPanel("", [line], 0, 1)], **told))[
            0
        ]

    assert header(1000)["log"] and not header(100)["log"] and header(100)["zero"]
    assert header(100)["panels"][0]["lines"][0]["points"] == [[0, 5.0], [10, 4.0]]


# ---- the page ------------------------------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return page_at("training", **{"model": "induction", "text": TWICE, **asked})


def sent(app: AppTest, name: str) -> dict:
    protos = [element.proto for element in on_page(app)]
    data = next(each.bytes for each in protos if each.component_name == f"headlight.{name}")
    return codec.decode(data)[0]


@pytest.mark.slow
def test_the_last_checkpoint_is_the_model_itself_and_each_step_shows_its_own_weights() -> None:
    app = opened()
    assert not app.exception
    own = read_once("induction").record(TWICE)
    described = head_naming.describe(own, own.attention[0])
    shown, drawn = sent(app, "heads"), sent(app, "curves")
    assert drawn["steps"] == [*shipped_models.card("induction")["checkpoints"], 2000]
    assert [each["name"] for each in shown["heads"]] == [head.name for head in described]
    lines = {line["name"]: line for panel in drawn["panels"] for line in panel["lines"]}
    assert lines["loss"]["points"] == shipped_models.card("induction")["curve"]
    best = max(
        (one.score, head.layer, head.head)
        for head in described
        for one in head.relations
        if one.name == "induction" and not one.against
    )
    line = lines[f"induction L{best[1]} H{best[2]}"]
    assert line["bold"] and line["points"][-1] == [2000, pytest.approx(best[0], abs=SUMMED)]

    early = opened(train_step="300")
    before = read_once("induction@300").record(TWICE)
    names = [head.name for head in head_naming.describe(before, before.attention[0])]
    assert [each["name"] for each in sent(early, "heads")["heads"]] == names
    assert sent(early, "curves")["at"] == 4 and "induction" not in names
    score = next(y for x, y in line["points"] if x == 300)
    assert score == pytest.approx(
        next(
            one.score
            for head in head_naming.describe(before, before.attention[0])
            for one in head.relations
            if (head.layer, head.head, one.name) == (*best[1:], "induction")
        ),
        abs=SUMMED,
    )


@pytest.mark.slow
def test_any_text_opens_it_and_another_model_too() -> None:
    app = opened()
    for name, text in AWKWARD.items():
        typed(app, text)
        assert not app.exception and not app.error, name
        assert sent(app, "curves")["steps"] and sent(app, "heads")["heads"], name
    app = opened(model="copy", text="dog red seven book Paris and so on")
    assert app.session_state["train_of"] == "cross"
    assert any("follows the source in order" in each.value for each in app.subheader)
    app = opened(model="minilm" if shipped_models.packaged() else "induction-no-norm")
    assert any("has no training checkpoints" in each.value for each in app.caption)
    assert sent(app, "curves")["steps"][-1] == 2000
    app = opened(model="induction@450")
    assert sent(app, "curves")["at"] == 5


@pytest.mark.parametrize("view", ["Checkpoints", "Twins"])
@pytest.mark.parametrize("model", ["encoder", "induction"])
def test_without_earlier_weights_the_page_says_how_to_get_them(
    view: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the package is installed, which leaves them out."""
    monkeypatch.setattr(shipped_models, "EARLIER", "no such file")
    app = page_at("training", train_view=view, model=model, text=TWICE)
    assert not app.exception and not app.error
    assert [each.value for each in app.info] == [shipped_models.NO_EARLIER]
    assert app.session_state.model == model
    with pytest.raises(ValueError, match="leaves out earlier weights"):
        registry.load("induction@400")
    app = page_at("training", train_view="Live", model=model, text=TWICE)
    assert not app.exception and shipped_models.NO_EARLIER not in [each.value for each in app.info]
