"""A small model trained live: it learns in a process of its own, stops, goes on, is kept for its
visit alone and gone with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from app_harness import aimed, open_menu, panels_on
from conftest import AWKWARD, HOSTILE, typed
from test_training_page import opened
from waiting import until

from explorer.app.state import jobs, models
from explorer.app.state.jobs import Trainings
from explorer.app.state.settings import Settings
from explorer.panels import training
from models import model_names
from models.example_texts import DEFAULT_MODEL
from models.live import live_training
from models.live.live_tasks import IGNORE_INDEX, Task, config_of, model_of, tokenizer_of
from models.live.live_training import TrainingProcess
from models.live.training_plan import CHECKPOINT_STEPS, MAX_LENGTH, MIN_LENGTH, TrainingPlan
from models.runtime import registry
from models.runtime.caching import loaded

WORDS = "The red fox saw a small bird near the river."
SMALL = TrainingPlan("copy", WORDS, n_layer=1, n_head=1, d_model=32)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def goes_first(pid: int) -> bool:
    """True for a process that the kernel ends before any other."""
    return Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"


@pytest.fixture
def run() -> Iterator[TrainingProcess]:
    one = live_training.start_training(SMALL)
    yield one
    one.end()


def test_what_is_out_of_bounds_is_no_plan() -> None:
    for wrong in (
        {"task": "other"},
        {"n_layer": 4},
        {"n_head": 3},
        {"d_model": 4096},
        {"task": "text", "text": "short " * 9},
        {"task": "text", "text": "a" * (MAX_LENGTH + 1)},
        {"task": "text", "text": "long enough " * 99, "unit": "bytes"},
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            TrainingPlan(**{"task": "copy", "words": WORDS, **wrong})


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_lists_are_to_be_said_again_or_backwards(task: str) -> None:
    plan = TrainingPlan(task, WORDS)
    tokenizer = tokenizer_of(plan)
    one = Task(plan, tokenizer)
    assert set(tokenizer.ids([WORDS])[0]) <= set(one.words)
    source, target, wanted = one.batch(Random(1))
    said = source[:, :-1].flip(1) if task == "reverse" else source[:, :-1]
    assert torch.equal(wanted[:, :-1], said) and (wanted[:, -1] == tokenizer.eos).all()
    assert torch.equal(target[:, 1:], said) and (target[:, 0] == tokenizer.bos).all()


def test_a_list_said_once_is_to_be_gone_on_with() -> None:
    plan = TrainingPlan("induction", WORDS)
    read, wanted = Task(plan, tokenizer_of(plan)).batch(Random(1))
    row = read[0].tolist()
    n = len(row) // 2
    assert row[1 : n + 1] == [*row[n + 1 :], wanted[0, -1].item()]
    assert (wanted[:, :n] == IGNORE_INDEX).all() and (wanted[:, n:-1] == read[:, n + 1 :]).all()


@pytest.mark.parametrize("unit", ["characters", "words"])
def test_the_last_tenth_of_a_text_is_kept_out(unit: str) -> None:
    text = "the cat sat. " * 90 + "ZEBRA QUIZ! " * 9
    plan = TrainingPlan("text", text=text, unit=unit)
    tokenizer = tokenizer_of(plan)
    one = Task(plan, tokenizer)
    seen = " ".join(
        tokenizer.text(row.tolist()) for at in range(40) for row in one.batch(Random(at))[0]
    )
    unseen = tokenizer.text(one.batch(Random(0), held_out=True)[0].flatten().tolist())
    assert "cat" in seen and "QUIZ" in unseen and "QUIZ" not in seen
    model = model_of(config_of(plan, tokenizer), plan.kind)
    loss, right = one.measured(model)
    assert one.measured(model) == (loss, right) and 0 <= right < 0.5
    assert abs(loss - np.log(len(tokenizer))) < 2  # a fresh model knows nothing


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reverse", "induction", "text"])
def test_one_list_shows_what_is_right_and_what_is_said_before_and_after(task: str) -> None:
    text = "the cat sat on the mat. " * 30
    plan = TrainingPlan(task, WORDS, text=text if task == "text" else "")
    run = live_training.repeat_training(plan, [0, 2])
    before, after = live_training.read_list(run, WORDS, 0), live_training.read_list(run, WORDS)
    for one in (before, after):
        assert len(one.given) == len(one.right) == len(one.said) <= 12
        assert one.n_right == sum(a == b for a, b in zip(one.right, one.said))
    assert before.given == after.given and before.right == after.right
    wanted = {"copy": before.given, "induction": before.given, "reverse": before.given[::-1]}
    assert before.right[:-1] == before.given[1:] if task == "text" else wanted[task] == before.right
    now = live_training.record_text(run, WORDS)
    measures = [training.measure(now, training.attention_names(now)[0], 2)]
    curves = [run.progress.held_out]
    panel = training.live(task, now, {0: before, 2: after}, measures, curves, (2, 2, 64))
    is_same = before.given == before.right
    assert len(panel.figures[0].columns) == (3 if is_same else 4), "no column twice"
    for *token, right, first, last in panel.figures[0].rows:
        assert {*token} <= {*before.given} and right in before.right and bool(token) != is_same
        answers = first, last
        assert all((each.removesuffix(" ✓") == right) == each.endswith("✓") for each in answers)
    assert f"{after.n_right} of the {len(after.right)}" in panel.finding


@pytest.mark.slow
def test_it_learns_stops_goes_on_and_leaves_no_process_behind(run: TrainingProcess) -> None:
    with pytest.raises(ValueError, match="no weights yet"):
        live_training.save_snapshot(run)
    run.resume()
    until(lambda: run.progress.step >= 60)
    pid = run.pid
    assert pid and os.getpriority(os.PRIO_PROCESS, pid) == 19
    assert goes_first(pid), "before the app, where memory is short"
    run.stop()
    until(lambda: not run.running)
    first = run.progress
    assert is_gone(pid) and not run.problem and not run.done
    assert first.curve[-1][1] < first.curve[0][1] - 0.5
    assert first.held_out[-1][1] < first.held_out[0][1] - 0.5
    check_snapshot(run)
    run.resume()
    until(lambda: run.progress.step > first.step + 5)
    pid = run.pid
    assert run.progress.curve[: len(first.curve)] == first.curve
    assert run.progress.curve[-1][1] < first.curve[0][1] - 0.5  # it goes on from what it knew
    assert run.progress.seconds > first.seconds
    run.end()
    assert is_gone(pid) and not run.running


def check_snapshot(run: TrainingProcess) -> None:
    """What is kept of a run is a model like any other, until it is let go."""
    name = live_training.save_snapshot(run)
    steps = [int(each.partition("@")[2]) for each in registry.checkpoints(name)]
    assert steps == [step for step in CHECKPOINT_STEPS if step < run.progress.step]
    assert steps[:4] == [0, 10, 20, 40]
    now = live_training.record_text(run, WORDS)
    last = registry.load(name).record(WORDS, target=now.target)
    assert np.array_equal(last.attention[2].pattern, now.attention[2].pattern)
    assert registry.load(f"{name}@10").card.fingerprint != last.model.fingerprint
    assert registry.load(f"{name}@permuted").card.n_parameters == last.model.n_parameters
    assert registry.card(name)["steps"] == run.progress.step and registry.knows(name)
    assert loaded(name).card.name == name and model_names.title(name).startswith("my copy")
    assert not model_names.is_borrowed(name) and not models.is_allowed(name)  # of no visit
    live_training.delete_snapshot(name)
    models.forget(name)
    assert not registry.knows(name) and not models.is_loaded(name)
    with pytest.raises(ValueError, match="gone with its visit"):
        loaded(name)


@pytest.mark.slow
def test_one_learns_at_a_time_and_what_a_visit_leaves_is_ended() -> None:
    there = {"ann", "bob"}
    all_of_them = Trainings(lambda: 1, there.__contains__, there.__contains__, lambda: 99.0)
    try:
        first = all_of_them.begin(SMALL, "ann")
        second = all_of_them.begin(SMALL, "bob")
        until(lambda: first.progress.step > 0)
        assert second.waiting and all_of_them.ahead(second) == 1 and not second.learning
        assert 0 < all_of_them.longest() <= 60
        kept, _ = all_of_them.keep(first)
        for _ in range(2):  # a visit holds two models
            last, gone = all_of_them.keep(first)
        assert gone == (kept,) and not registry.knows(kept) and registry.knows(last)
        pid = first.run.pid
        there.discard("ann")
        until(lambda: is_gone(pid))
        until(lambda: second.learning and not registry.knows(last))
        third = all_of_them.begin(SMALL, "bob")  # another of the same visit takes its place
        assert not second.learning and not second.waiting
        until(lambda: third.learning)
    finally:
        there.clear()
        until(lambda: not third.learning)
    with pytest.raises(ValueError, match="trains no models"):
        Trainings(lambda: 0, there.__contains__, there.__contains__, lambda: 9.0).begin(SMALL, "")


@pytest.mark.slow
def test_the_page_asks_begins_and_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened("live", live_task="text")
    for text in ("", HOSTILE["script"], "x " * MIN_LENGTH):
        app.text_area(key="live text").set_value(text)
        app.button(key="live start").click().run()
        begun = len(text.strip()) >= MIN_LENGTH
        assert not app.exception and bool(app.warning) != begun
        assert ("training" in app.session_state) == begun
    one = app.session_state["training"]
    try:
        until(lambda: one.progress.step > 10)
        for text in (AWKWARD["marks"], WORDS):
            typed(app, text)
            assert not app.exception and not app.error
        _, charts, grid = panels_on(app)[0]["figures"]
        assert charts["figures"] and grid["names"]
        app.button(key="live stop").click().run()
        until(lambda: not one.learning)
        for text in (*AWKWARD.values(), WORDS):
            typed(app, text)
            assert not app.exception and not app.error
        app.button(key="live keep checkpoints").click().run()
        name = app.session_state["model"]
        assert live_training.is_live(name) and not app.exception
        frames = panels_on(app)[0]["figures"][1]["frames"]
        assert int(frames[-1]["key"]) == one.progress.step
        assert open_menu(app).button(key=f"model {name}").label
        monkeypatch.setattr(jobs, "settings", lambda: Settings(live=0))
        app = aimed(app, "live").run()
        assert any("does not train models" in each.value for each in app.info)
        assert not [each for each in app.button if each.key == "live start"]
    finally:
        jobs.trainings.stop(one)
    until(lambda: not one.learning)


@pytest.mark.slow
def test_a_link_to_another_visits_model_opens_the_first_one() -> None:
    app = opened(model="live:copy-0123456789ab")
    assert not app.exception and app.session_state["model"] == DEFAULT_MODEL
