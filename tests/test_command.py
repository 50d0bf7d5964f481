"""The `headlight` command."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from conftest import read_once

from explorer import cli, export
from explorer.analysis.csv import to_csv
from models import registry
from models.recording import from_npz, to_npz

TEXT = "The cat </script> sat."


def test_a_recording_and_a_page_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    npz, html = tmp_path / "it.npz", tmp_path / "it.html"
    assert cli.main(["record", TEXT, "--model", "decoder", "-o", str(npz)]) == 0
    assert from_npz(npz.read_bytes()) == read_once("decoder").record(TEXT)
    assert cli.main(["page", TEXT, "-o", str(html), "-c", "layer=1", "head=5", "view=Matrix"]) == 0
    assert "layer=1&amp;head=5" in html.read_text("utf-8")
    said = capsys.readouterr()
    assert not said.out and "Loading encoder" in said.err and f"{html}: " in said.err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ["--view", "compare.heads", "--other", "twin-pre", "-m", "twin-post"],
            ("B: model twin-pre",),
        ),
        (["--view", "compare.heads", "--other-text", "The dog ran."], ("Text of B: The dog ran.",)),
        (
            ["--view", "compare.tokens", "--other", "twin-pre", "--other-text", "The dog ran."],
            ("B: model twin-pre", "Text of B: The dog ran."),
        ),
    ],
)
def test_another_recording_stands_beside_the_first(
    asked: list[str], said: tuple[str, ...], tmp_path: Path
) -> None:
    html = tmp_path / "it.html"
    assert cli.main(["page", TEXT, "-o", str(html), *asked]) == 0
    foot = unescape(html.read_text("utf-8").rpartition("<footer>")[2])
    assert all(each in foot for each in (*said, TEXT))


def test_help_names_every_view(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["page", "--help"])
    listed = capsys.readouterr().out.partition("Views: ")[2]
    assert ended.value.code == 0 and " ".join(listed.split()) == f"{', '.join(export.VIEWS)}."


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{listed}" for name in registry.names())


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["record", TEXT, "-m", "nothing", "-o", "x.npz"], "no model 'nothing'"),
        (["page", TEXT, "-o", "x.html", "--view", "nothing"], "no view is called 'nothing'"),
        (["page", TEXT, "-o", "x.html", "-c", "layer"], "NAME=VALUE"),
        (["page", TEXT, "-o", "x.html", "-c", "layer=77"], "no layer 77"),
        (["page", TEXT, "-o", "x.html", "-c", "model=decoder"], "--help"),
        (["page", TEXT, "-o", "x.html", "--view", "heads", "--other", "copy"], "of one recording"),
        (
            ["page", TEXT, "-o", "x.html", "--view", "compare.heads", "--other", "me"],
            "no model 'me'",
        ),
        *(
            (
                [
                    "page",
                    TEXT,
                    "-o",
                    "x.html",
                    "--view",
                    "soft_lookup.temperature",
                    "-c",
                    f"t={no}",
                ],
                words,
            )
            for no, words in (("x", "t is 'x'; it must be a number"), ("-1", "from 0.01 to 100"))
        ),
        (["page", TEXT, "-o", "/no/such/folder/x.html"], "No such file"),
        (["record", TEXT, "-o", "/no/such/folder/x.npz"], "No such file"),
        (["record", TEXT, "-o", "."], "is a folder; give the name of a file in it"),
        (["record", TEXT, "-o", "x.html"], "x.html would hold NPZ; give it a name ending in .npz"),
        (["page", TEXT, "-o", "."], "is a folder"),
        (["page", TEXT, "-o", "x.pdf"], "x.pdf would hold HTML; give it a name ending in .html"),
        (["page", TEXT, "-o", "x"], "x would hold HTML"),
        (
            ["page", TEXT, "-o", "x.html", "--choose", "lyer=1"],
            "the view heads has no choice 'lyer'; it has attention, layer, head, token, view",
        ),
        *(
            (["app", "--port", port], "a port is a whole number from 1 to 65535")
            for port in ("99999", "0", "-1")
        ),
        (["app", "--address", "no such place"], "there is no address 'no such place'"),
        (["app", "--address", "192.0.2.1"], "nothing can be served at 192.0.2.1"),
        (["record", TEXT, "-m", "hub:/no/such/folder", "-o", "x.npz"], "no folder"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    asked: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(asked) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("headlight: ") and said in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "asked",
    [
        ["record", TEXT, "-o", "."],
        ["page", TEXT, "-o", "x.pdf"],
        ["page", TEXT, "-o", "x.html", "-c", "lyer=1"],
    ],
    ids=" ".join,
)
def test_it_is_said_before_any_work(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "load", lambda *given: pytest.fail("a model was loaded"))
    assert cli.main(asked) == 1


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.main(["app", "--address", "127.0.0.1", "--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert f"127.0.0.1, port {port} (Address already in use); choose another" in said


def test_every_choice_of_a_view_changes_its_file() -> None:
    """What `export.CHOICES` names is what the views read."""
    model = read_once("translator")
    recording = model.record("The cat sat.")
    plain = export.page(recording, model=model)
    words = {"attention": "cross", "layer": "0", "head": "1", "token": "2", "view": "Matrix"}
    assert words.keys() == set(export.CHOICES["heads"])
    for name in ("attention", "token", "view"):
        assert export.page(recording, model=model, **{name: words[name]}) != plain, name
    assert export.page(recording, model=model, layer=0, head=1) != plain


def test_its_version_stands_in_all_that_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    version = capsys.readouterr().out.removeprefix("headlight ").strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    npz, html = tmp_path / "it.npz", tmp_path / "it.html"
    cli.main(["record", TEXT, "-o", str(npz)])
    cli.main(["page", TEXT, "-o", str(html)])
    assert from_npz(npz.read_bytes()).version == version
    assert f"Made with Headlight {version}<" in html.read_text("utf-8")
    assert (
        to_csv({"a": [1]}, ["about it"]).splitlines()[1].endswith(f"about it | Headlight {version}")
    )


def test_a_recording_of_another_version_keeps_it_and_is_the_same() -> None:
    made = read_once("encoder").record(TEXT)
    older = replace(made, version="0.3.0")
    assert from_npz(to_npz(older)).version == "0.3.0" and older == made
