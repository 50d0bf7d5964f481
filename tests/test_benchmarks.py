"""Every benchmark runs, at its smallest size: what is not run rots. No figure is judged here but
the memory that a model takes."""

from __future__ import annotations

import asyncio
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType

import pytest
import transformers
from driver import browser_test

from benchmarks import calibration, clients, files, forward, memory, patching, tuned_lens
from models import shipped_models, smollm2
from models.pretrained import weight_conversion
from models.runtime import registry

pytestmark = pytest.mark.slow
CALIBRATION = re.compile(r"this machine: .* ms, a product of .* ms")
ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "browser",
    "class",
    "files",
    "flow",
    "forward",
    "memory",
    "names",
    "patching",
    "tuned_lens",
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


@pytest.fixture(autouse=True)
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "TRIES", 1)


def test_files(capsys: pytest.CaptureFixture[str]) -> None:
    (one, took), (two, _) = (files.main(n) for n in (1, 2))
    assert "a page of 2 texts of 20 tokens: " in capsys.readouterr().out
    assert one < two < 1.2 * one, "code and font stand in it once"
    assert took.keys() == {"svg", "pdf", "png"} and min(took.values()) > 0


def test_forward(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(forward, "WIDTH", 2)
    monkeypatch.setattr(forward, "ROUNDS", {16: 1})
    forward.main(["--lengths", "16"])
    machine, _, *lines = capsys.readouterr().out.splitlines()
    assert CALIBRATION.fullmatch(machine)
    loaded = [line for line in lines if " is loaded in " in line]
    rows = [line for line in lines if line not in loaded]
    assert len(rows) == 3 + bool(shipped_models.packaged()) + 3 * bool(smollm2.file())
    assert all(float(row.split()[-1]) > 0 for row in rows)
    assert len(loaded) == bool(smollm2.file())
    for line in loaded:  # with little more memory than its numbers
        most = 1e6 * int(re.search(r"at most (\d+) MB", line)[1])
        numbers = 4 * registry.card(smollm2.NAME)["n_parameters"]
        assert numbers < most <= 700e6, "what a server has room for"


def test_nothing_of_a_pretrained_model_is_in_memory_twice() -> None:
    """Of a small Qwen2 in our own classes."""
    sizes = {"hidden_size": 56, "num_hidden_layers": 2, "intermediate_size": 64}
    heads = {"num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 64}
    theirs = transformers.Qwen2Model(transformers.Qwen2Config(**sizes, **heads)).eval()
    ours = weight_conversion.build(theirs.config.to_dict(), theirs.state_dict())
    storages = {
        each.untyped_storage().data_ptr(): each.untyped_storage() for each in ours.parameters()
    }
    n_bytes = sum(each.nbytes for each in ours.parameters())
    assert sum(each.nbytes() for each in storages.values()) == n_bytes


@pytest.fixture(scope="module")
def app_server() -> Iterator[tuple[str, int]]:
    """The app's address and process as it is deployed, one for all benchmarks that look at it from
    outside."""
    with clients.server(**memory.deployed()[0]) as one:
        yield one


@pytest.fixture
def class_benchmark(monkeypatch: pytest.MonkeyPatch, app_server: tuple[str, int]) -> ModuleType:
    module = importlib.import_module("benchmarks.class")

    def server(script: str = "app.py", **of: str) -> AbstractContextManager[tuple[str, int]]:
        return nullcontext(app_server) if script == "app.py" else clients.server(script)

    monkeypatch.setattr(module, "server", server)
    monkeypatch.setattr(module, "EVERY", 0.5)
    monkeypatch.setattr(module, "REST", 0.0)
    monkeypatch.setattr(module, "PAUSE", 0)
    return module


def test_class(class_benchmark: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--readers", "1", "--seconds", "1"]
    class_benchmark.main(sizes)
    machine, head, *rows = capsys.readouterr().out.splitlines()
    assert CALIBRATION.fullmatch(machine)
    assert "p95" in head and [row.split()[0] for row in rows] == ["empty", "Headlight"]
    empty, app = ([float(cell) for cell in row.split()[1:]] for row in rows)
    del empty[4]  # its processor time, less than the clock of processes tells
    assert min(empty) > 0 and min(app) > 0, rows
    class_benchmark.main(["--followers", "2", "--moves", "1"])
    _, _, *rows, ratios = capsys.readouterr().out.splitlines()
    assert [row[:9].strip() for row in rows] == ["own pages", "pictures"]
    assert re.fullmatch(r"CPU a student and move, .*: own pages \d.*, pictures \d.*", ratios)
    if smollm2.file():  # of two models
        class_benchmark.main([*sizes, "--with", smollm2.NAME])
        _, _, *rows, ratios = capsys.readouterr().out.splitlines()
        assert [row.split()[0] for row in rows] == ["alone", "beside", smollm2.NAME]
        assert ratios.startswith("p95 in times of alone: alone 1.00, beside ")


def test_every_page_answers_readers_who_leave_sessions_that_stay_and_a_long_computation(
    class_benchmark: ModuleType,
    app_server: tuple[str, int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    n = len(class_benchmark.TABS)
    class_benchmark.main(["--texts", f"{n}", "--sessions", "2", "--words", "30"])
    _, *rows, seconds, added, no_errors = capsys.readouterr().out.splitlines()
    assert no_errors == "" and seconds.startswith("seconds a visit: ")
    assert re.fullmatch(r"MB that all have added: .*, -?[\d.]+ a session that stays", added)
    assert len(rows) == class_benchmark.PARTS + 2 and all(" MiB " in row for row in rows)
    assert rows[class_benchmark.PARTS - 1].startswith(f"{n + 2} visits, 2 stay"), rows
    load = asyncio.run(class_benchmark.beside(*app_server, "beam", readers=1, seconds=1.0))
    assert load.times


@browser_test
def test_browser() -> None:
    """In a process of its own: two browsers of Playwright do not share a thread."""
    command = [sys.executable, "-m", "benchmarks.browser", "--rounds", "1", "--words", "12"]
    command += ["--beside", "decoder"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    machine, *rows = done.stdout.splitlines()
    assert CALIBRATION.fullmatch(machine)
    assert [row.startswith("visit ") for row in rows[:4]] == [True, True, True, False]
    kinds = [row[:44].strip().rpartition(", ")[2] for row in rows[3:]]
    of_texts = ["painted", "with its headline"] * 2
    of_flows = ["flow", "flow while it plays"] * 2
    assert kinds == [*of_texts, "open a head", "hover", *of_flows]
    assert all(float(row[44:].split()[0]) > 0 for row in rows[3:] if "hover" not in row), rows


def test_flow() -> None:
    """In a process of its own, which becomes the app's host."""
    command = [sys.executable, "-m", "benchmarks.flow", "--model", "encoder", "--texts", "1"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    machine, row = done.stdout.splitlines()
    assert CALIBRATION.fullmatch(machine)
    parts = r"encoder: pass \d+, word \d+, pass without the word \d+, panel and bytes \d+"
    assert re.fullmatch(parts + r", together \d+ ms; \d+\.\d kB", row), row


def test_patching(capsys: pytest.CaptureFixture[str]) -> None:
    """Every patch of the sweep is compared with a pass of its own."""
    places, share = patching.main("decoder", 2)
    assert places > 20 and share > 0
    assert re.search(r"one by one .* s, the sweep .* s: ", capsys.readouterr().out)


def test_a_tuned_lens(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each layer before the last, and what the translators weigh."""
    rows = tuned_lens.main("decoder", most=200)
    assert [site for site, *_ in rows] == [f"{layer}.ffn.normed" for layer in range(3)]
    assert all(kl > 0 and 0 <= same <= 1 for _, *both in rows for kl, same in both)
    assert re.search(r"3 translators in 16 bits: [\d,]+ bytes", capsys.readouterr().out)


def test_memory() -> None:
    """In a process of its own, which becomes the app's host."""
    panels = ["compare.nearest", "logit_lens.lens"]
    command = [sys.executable, "-m", "benchmarks.memory", "--models", "encoder", "--words", "12"]
    sizes = ["--at-once", "0", "--panels", *panels]
    done = subprocess.run([*command, *sizes], cwd=ROOT, check=True, capture_output=True, text=True)
    machine, of_model, *rows = done.stdout.splitlines()
    assert CALIBRATION.fullmatch(machine) and of_model.startswith("encoder: ")
    of_panel = re.compile(r"  (\S+) +([\d,]+) MiB, values +\d+, bound +([\d,]+)")
    found = [of_panel.match(row) for row in rows]
    assert [each[1] for each in found if each] == panels


def test_memory_of_a_server(
    app_server: tuple[str, int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two dear requests at once are answered with less than the deployments allow."""
    monkeypatch.setattr(memory, "server", lambda **_: nullcontext(app_server))
    memory.print_served(memory.shipped()[-1], ["compare.nearest", "logit_lens.lens"], 2, 12)
    rows = capsys.readouterr().out.splitlines()
    wanted = {"panels": "compare.nearest 200, logit_lens.lens 200", "pages": "page, page"}
    for row, way in zip(rows, wanted, strict=True):
        sizes, _, answers = row.partition("; answers: ")
        before, most, allowed = map(int, re.findall(r" (\d{3,})", sizes.replace(",", "")))
        assert sizes.startswith(f"2 {way} of ") and 0 < before <= most <= allowed == 3072
        assert answers == wanted[way]
