"""The folder of a training run as transformers' Trainer writes it: each checkpoint has a name, and
the Checkpoints tab shows all; an adapter alone finds the model that it was trained on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from app_harness import ROOT, aimed, panels_on, told
from in_own_code import TEXT
from streamlit.testing.v1 import AppTest
from test_hf_models_on_pages import opened, there
from test_lora import with_adapter
from tolerances import PASSED, SUMMED

import headlight
from explorer.app.state.settings import settings
from models.own import model_card
from models.pretrained import model_files
from models.runtime import registry

pytestmark = pytest.mark.slow
STEPS = (90, 500, 1000)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with three checkpoints, of which the name sorts otherwise than the step."""
    folder = tmp_path / "run"
    for step in STEPS:
        torch.manual_seed(step)
        checkpoint = folder / f"checkpoint-{step}"
        tiny.save(checkpoint, "BertForMaskedLM", tiny.BERT, tiny.wordpiece)
        history = [{"step": at, "loss": 5 - at / 500} for at in STEPS if at <= step]
        state = {"global_step": step, "max_steps": 1200, "log_history": [*history, {"eval": 1}]}
        (checkpoint / "trainer_state.json").write_text(json.dumps(state), "utf-8")
        (checkpoint / "optimizer.pt").write_bytes(b"never read")
    (folder / "runs").mkdir()
    return folder


def hidden(folder: Path, ids: np.ndarray) -> np.ndarray:
    model = transformers.BertModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(torch.tensor(ids)[None]).last_hidden_state[0].numpy()


@pytest.mark.parametrize("way", ["hub:", "ours:"])
def test_a_run_and_each_of_its_steps_are_models(way: str, run: Path) -> None:
    names = {f"{way}{run}@{step}": step for step in STEPS} | {f"{way}{run}": 1000}
    for name, step in names.items():
        recording = (model := headlight.load(name)).record(TEXT)
        expected = hidden(run / f"checkpoint-{step}", recording.streams[0].ids)
        np.testing.assert_allclose(recording.streams[0].resid[-1], expected, atol=PASSED)
        assert model.name == name
    assert registry.checkpoints(f"{way}{run}") == tuple(names)[:3]
    points = model_card.checkpoints(f"{way}{run}@90")
    assert [(each.step, each.model.rpartition("run")[2]) for each in points] == [
        (90, "@90"),
        (500, "@500"),
        (1000, ""),
    ]
    assert model_card.loss_curve(f"{way}{run}") == ((90, 4.82), (500, 4.0), (1000, 3.0))
    assert registry.trial_load(f"{way}{run}@500")[0] == f"{way}{run}@500"
    with pytest.raises(ValueError, match="has no checkpoint of step 7; it has 90, 500, 1000"):
        headlight.load(f"{way}{run}@7")


@pytest.mark.parametrize("way", ["hub:", "ours:"])
def test_a_checkpoint_by_its_own_path_is_the_step_of_its_run(
    way: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = f"{run}/checkpoint-500"
    for written in (path, f"{path}/", "./run/checkpoint-500", "run/checkpoint-500"):
        assert registry.spelled(f"{way}{written}") == f"{way}{run}@500"
    assert registry.trial_load(f"{way}{path}")[0] == f"{way}{run}@500"
    model = headlight.load(f"{way}{path}")
    recording = headlight.record(model, TEXT)
    assert model.name == f"{way}{run}@500"
    expected = hidden(run / "checkpoint-500", recording.streams[0].ids)
    np.testing.assert_allclose(recording.streams[0].resid[-1], expected, atol=PASSED)
    by_run = headlight.panels.training.checkpoints(headlight.load(f"{way}{run}"))
    assert headlight.panels.training.checkpoints(model).table == by_run.table
    # By itself it is a model as any other, and what is no checkpoint stays a path.
    for step in (90, 1000):
        shutil.rmtree(run / f"checkpoint-{step}")
    for name in (path, f"{run}/checkpoint-7", f"{run}/runs", f"{run}"):
        assert registry.spelled(f"{way}{name}") == f"{way}{name}"


def test_weights_beside_the_checkpoints_are_the_last(run: Path) -> None:
    tiny.save(run, "BertForMaskedLM", tiny.BERT, tiny.wordpiece)
    recording = headlight.load(f"hub:{run}").record(TEXT)
    expected = hidden(run, recording.streams[0].ids)
    np.testing.assert_allclose(recording.streams[0].resid[-1], expected, atol=PASSED)
    steps = [each.step for each in model_card.checkpoints(f"hub:{run}")]
    assert steps == [*STEPS, 1200], "what the state of the last one says was planned"


@pytest.mark.parametrize("by", ["step", "path"])
def test_the_checkpoints_tab_shows_a_run(by: str, run: Path) -> None:
    name = f"ours:{run}"
    for each in (f"{name}@90", f"{name}@500", name):
        there(each)
    if by == "step":
        app = opened("checkpoints", model=name, text=TEXT, train_step="500")
    else:
        app = AppTest.from_file(str(ROOT / "explorer/app/main.py"), default_timeout=60)
        app.session_state["opened_models"] = (f"{name}@500",)
        aimed(app, "checkpoints", model=f"{name}/checkpoint-500", text=TEXT).run()
    assert not app.exception
    assert app.session_state.model == (name if by == "step" else f"{name}@500")
    panel = next(each for each in panels_on(app) if each["panel"] == "training.checkpoints")
    assert "3 checkpoints" in " ".join(panel["caption"]) and "500" in " ".join(panel["caption"])
    (steps,) = (each for each in panel["figures"] if each["kind"] == "steps")
    assert steps["frames"][steps["current"]]["key"] == "500"


def test_a_server_that_lists_one_checkpoint_shows_no_other(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"ours:{run}@500"
    monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
    monkeypatch.setenv("HEADLIGHT_MODELS", f"ours:{run}/checkpoint-500")
    settings.cache_clear()
    try:
        there(name)
        for page in ("checkpoints", "compare", "heads"):
            app = opened(page, model=name, text=TEXT)
            assert not app.exception and app.session_state.model == name
            assert (page == "checkpoints") == ("offers this checkpoint by itself" in told(app))
    finally:
        monkeypatch.undo()
        settings.cache_clear()


@pytest.mark.parametrize("by", ["folder", "name in the cache"])
@pytest.mark.parametrize("way", ["hub:", "ours:"])
def test_an_adapter_alone_is_merged_with_the_model_that_it_names(
    by: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    base = tmp_path / "base"
    if by != "folder":
        hub_cache = tmp_path / "hub"
        base = hub_cache / "models--someone--tiny" / "snapshots" / "abc"
        (hub_cache / "models--someone--tiny" / "refs").mkdir(parents=True)
        (hub_cache / "models--someone--tiny" / "refs" / "main").write_text("abc")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub_cache))
    tiny.build("llama", base)
    beside = shutil.copytree(base, tmp_path / "beside")
    named = str(base) if by == "folder" else "someone/tiny"
    with_adapter(beside, "llama", lora_alpha=3, base_model_name_or_path=named)
    alone = tmp_path / "alone"
    alone.mkdir()
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(beside / file, alone / file)
    (alone / "training_args.bin").write_bytes(b"never read")
    expected = registry.load(f"{way}{beside}").record(TEXT)
    model = registry.load(f"{way}{alone}")
    recording = model.record(TEXT)
    np.testing.assert_allclose(recording.streams[0].resid, expected.streams[0].resid, atol=SUMMED)
    assert "with its LoRA adapter merged" in model.card.weights
    folder = model_files.folder_of(str(alone))
    assert folder.parent == model_files.cache() and folder == model_files.folder_of(str(alone))
    assert not (folder / "training_args.bin").exists()
    name, stamp = registry.trial_load(f"{way}{alone}")
    assert stamp == registry.stamp(name)
    shutil.rmtree(base)
    with pytest.raises(
        ValueError, match="is a LoRA adapter, and (the|its) model .* not on this mach"
    ):
        registry.load(f"{way}{alone}")
