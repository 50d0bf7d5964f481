"""Model folders from anywhere: whatever is wrong with one is said in one clear sentence, and the
app that tried it is as it was."""

from __future__ import annotations

import os
import re
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
from malformed_models import KINDS, stored, words
from test_live_training import goes_first

from explorer.app.state import models
from models.pretrained import sandbox
from models.pretrained.model_files import NotLoaded
from models.pretrained.sandbox import Tester, tester
from models.runtime import registry
from models.runtime.caching import loaded
from models.tokens import template_renderer
from models.tokens.template_renderer import Request

pytestmark = pytest.mark.slow
# What Python, torch or a tokenizer say for themselves, and advice that does not fit a folder or a
# text of a few words.
RAW = re.compile(
    r"Error\b|Exception|object has no|NoneType|modulo|math domain|unsupported operand|invalid "
    r"literal|state_dict|not subscriptable"
    r"|Traceback|0x[0-9a-f]+|positional argument|index out of|__\w+__|line \d+|column "
    r"\d+|expected `|shorten|fetch",
)


@pytest.fixture(scope="module")
def sound(tiny_folder: Callable[[str], Path]) -> Path:
    """A tiny sound model, which no test changes."""
    return tiny_folder("bert")


def resident(pid: int) -> int:
    """Bytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.fixture
def spoilt(sound: Path, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of the sound model, spoilt in a way."""

    def made(kind: str) -> Path:
        folder = Path(shutil.copytree(sound, tmp_path / kind.replace("/", " ")))
        KINDS[kind](folder)
        return folder

    return made


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_folder_is_refused_in_one_sentence(
    kind: str, spoilt: Callable[[str], Path]
) -> None:
    folder = spoilt(kind)
    with pytest.raises(NotLoaded) as refused:
        tester.try_out(folder, str(folder), seconds=30)
    said = str(refused.value).replace(str(folder), "the folder")
    assert said.endswith(".") and "\n" not in said and 20 < len(said) < 260, said
    assert not RAW.search(said), said
    assert "the folder" in said and ("; " in said or "own classes" in said), said


@pytest.mark.parametrize("way", ["hub:", "ours:"])
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("NaN where no pass reads", r"not numbers \(NaN or infinite\), the first.* spare;"),
        ("infinite where no pass reads", r"\(NaN or infinite\), the first.* pooler.dense.bias;"),
        ("words numbered beyond the model's", None),
        ("a million layers", None),
    ],
)
def test_the_door_itself_refuses_them_too(
    way: str, kind: str, words: str | None, spoilt: Callable[[str], Path]
) -> None:
    """Whoever loads a model from Python, without a trial, is told the same."""
    with pytest.raises(NotLoaded, match=words):
        registry.load(f"{way}{spoilt(kind)}")


def test_rotary_positions_need_a_base_above_0(tmp_path: Path) -> None:
    folder = tiny.build("llama", tmp_path)
    for said in (
        *({"rope_theta": base} for base in (0, True, float("inf"))),
        *({"rope_parameters": {"rope_theta": base}} for base in (0.0, "wide")),
        {"rope_scaling": {"rope_theta": -5.0}},
    ):
        tiny.change(folder, rope_parameters=None, rope_theta=None, rope_scaling=None)
        tiny.change(folder, **said)
        with pytest.raises(NotLoaded, match=r"rope_theta is .* need a number above 0; check"):
            tester.try_out(folder, str(folder), seconds=30)


@pytest.mark.parametrize("way", ["ours:", "hub:"])
def test_dropout_of_a_tokenizer_is_off_and_the_card_says_so(way: str, tmp_path: Path) -> None:
    folder = tiny.build("gpt2", tmp_path)
    plain = registry.load(f"{way}{folder}")
    words(lambda read: read["model"].update(dropout=0.5))(folder)
    drawn = registry.load(f"{way}{folder}")
    texts = {drawn.record("the cat sat on the mat").streams[0].tokens for _ in range(8)}
    assert texts == {plain.record("the cat sat on the mat").streams[0].tokens}
    assert "dropout of 0.5 is off" in drawn.card.weights and "dropout" not in plain.card.weights


def test_a_tokenizer_that_cuts_by_chance_is_refused(sound: Path) -> None:
    """One of Python code, which no setting of ours reaches."""
    model = registry.load(f"hub:{sound}")
    own, lengths = model.tokenizer._split, iter(range(2, 100))
    model.tokenizer._split = lambda *text: tuple(each[: next(lengths)] for each in own(*text))
    with pytest.raises(NotLoaded, match="cuts one text in several ways"):
        sandbox.stress_test(model, "it")


def test_a_folder_that_was_changed_is_tried_again(sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(sound, folder)
    name = f"ours:{folder}"
    before = loaded(name)
    models.forget(name)
    assert models.passed_trial(name) and loaded(name).card == before.card
    # Opened once more as it is: what is in memory stays.
    finding = models.Loading.start(str(folder))
    assert finding.wait(60) and finding.result == name and models.is_loaded(name)
    models.forget(name)
    KINDS["doubled 40 times"](folder)
    assert not models.passed_trial(name)
    with pytest.raises(ValueError, match="times longer"):
        loaded(name)
    shutil.copy(sound / "tokenizer.json", folder)
    assert loaded(name).card == before.card
    # Other weights, opened once more, are those on screen: the ones in memory are let go.
    stored(lambda key, each: 0.9 * each)(folder)
    finding = models.Loading.start(str(folder))
    assert finding.wait(60) and finding.result == name
    assert loaded(name).card.fingerprint != before.card.fingerprint
    models.forget(name)


def test_a_folder_that_changes_while_it_is_read_is_not_taken(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(sound, folder)
    load = registry.load

    def changed(name: str, told: object = None) -> object:
        made = load(name)
        (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
        return made

    monkeypatch.setattr(registry, "load", changed)
    with pytest.raises(ValueError, match="changed while they were read; open it again"):
        loaded(f"ours:{folder}")
    assert not models.is_loaded(f"ours:{folder}")


def test_what_is_sound_still_loads_after_all_of_them(
    sound: Path, spoilt: Callable[[str], Path]
) -> None:
    assert tester.try_out(sound, str(sound)) == "ours:"
    pid = tester.worker.process.pid
    before = resident(pid)
    for kind in ("a million layers", "NaN", "doubled 40 times", "width 10^7"):
        with pytest.raises(NotLoaded):
            tester.try_out(folder := spoilt(kind), str(folder), seconds=30)
    assert tester.try_out(sound, str(sound)) == "ours:"
    # A fork's memory goes with it; what stays is a page or two of the tester's own.
    assert tester.worker.process.pid == pid and resident(pid) < before + 2**23
    # Where memory is short a trial ends before the app.
    assert goes_first(pid) and not goes_first(os.getpid())


def test_a_family_outside_our_classes_runs_in_its_own_code(tmp_path: Path) -> None:
    assert tester.try_out(tiny.build("bloom", tmp_path), str(tmp_path)) == "hub:"


def test_a_trial_without_end_is_ended(sound: Path) -> None:
    with pytest.raises(NotLoaded, match="did not end within 0 seconds"):
        tester.try_out(sound, "it", seconds=0.001)


def test_a_trial_that_takes_too_much_memory_is_ended(sound: Path) -> None:
    with pytest.raises(NotLoaded) as refused:
        tester.try_out(sound, str(sound), spare=-(2**29))
    assert not RAW.search(str(refused.value))


def test_a_reader_who_no_longer_wants_it_waits_for_nothing(sound: Path) -> None:
    one = Tester()
    start = time.monotonic()
    with pytest.raises(NotLoaded, match="Stopped"):
        one.try_out(sound, "it", cancelled=lambda: time.monotonic() > start + 0.2)
    assert one.worker.process is None
    one.close()


def test_an_answer_is_heard_where_many_files_are_open() -> None:
    """Of a process such as the trial's, whose pipes then have large numbers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("this machine lets a process open few files")
    template_renderer.worker.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        asked = Request("{{ messages[0].content }}", (("user", "a"),), (), False, ("(", ")"))
        assert template_renderer.render(asked) == ("a", "(a)")
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        template_renderer.worker.close()
