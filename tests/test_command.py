"""The `headlight` command."""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from conftest import read_once
from test_hf_models_on_pages import opened

from explorer import cli, export
from explorer.app.state.settings import settings
from explorer.figures.csv import to_csv
from models.contract.recording_file import from_npz, to_npz
from models.runtime import registry
from models.runtime.caching import loaded

RECORDING = "HEADLIGHT_RECORDING"
TEXT, OTHER = "The cat </script> sat.", "The dog ran."


def words(command: str) -> list[str]:
    """The words of a command, in which TEXT and OTHER stand for two sentences."""
    return [each.replace("TEXT", TEXT).replace("OTHER", OTHER) for each in command.split()]


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
    ("sent", "read"),
    [
        ("\ufeffThe café.\r\nIt sat.".encode(), "The café.\nIt sat."),
        (b"The cat sat.\n", "The cat sat."),
        (b"The cat sat.\r\n\r\n", "The cat sat.\n"),
        ("The café.".encode("latin-1"), "is not in UTF-8 (byte 8)"),
        ("The café.".encode("utf-16"), "is not in UTF-8 (byte 1)"),
    ],
)
def test_standard_input_is_text_in_utf_8_with_or_without_a_mark(
    sent: bytes,
    read: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(sent), "utf-8"))
    failed = cli.main(["record", "-", "--model", "decoder", "-o", str(tmp_path / "it.npz")])
    said = capsys.readouterr().err
    if failed:
        assert read in said and said.count("\n") == 1 and not list(tmp_path.iterdir())
    else:
        assert from_npz((tmp_path / "it.npz").read_bytes()).text == read


@pytest.mark.parametrize("content", [b"The cat sat.", b"\xef\xbb\xbfThe cat sat.\r\n"])
def test_the_name_of_a_file_stands_for_its_text(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "notes.txt", str(tmp_path / "it.npz")
    file.write_bytes(content)
    assert cli.main(["record", str(file), "--model", "decoder", "-o", out]) == 0
    assert f"Reading the file {file}." in capsys.readouterr().err
    assert from_npz(Path(out).read_bytes()).text == "The cat sat."
    assert cli.main(["record", "none.txt", "--model", "decoder", "-o", out]) == 0
    assert "There is no file none.txt; these words are read" in capsys.readouterr().err
    assert cli.main(["record", out, "-o", out]) == 1
    assert "is a recording; `headlight page`" in capsys.readouterr().err
    assert cli.main(["record", str(tmp_path), "-o", out]) == 1
    assert "is a folder; give the name of one file in it" in capsys.readouterr().err


def test_a_word_is_a_text_where_a_folder_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cats").mkdir()
    assert cli.main(["record", "cats", "--model", "decoder", "-o", "it.npz"]) == 0
    assert "cats is read as the text, and not as the folder" in capsys.readouterr().err


def test_bytes_that_are_no_utf_8_are_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = os.fsdecode(b"The caf\xe9 is open.")
    assert cli.main(["record", given, "-o", str(tmp_path / "it.npz")]) == 1
    assert "the text is not in UTF-8 (character 8)" in capsys.readouterr().err


@pytest.mark.parametrize("console", ["cp1252", "cp437", "ascii", "utf-8"])
@pytest.mark.parametrize("asked", ["models", "--help", "page --help"])
def test_every_console_gets_the_whole_list(
    console: str,
    asked: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=console))
    try:
        assert cli.main(asked.split()) == 0
    except SystemExit as end:  # as argparse ends after its help
        assert end.code == 0 and asked != "models"
    sys.stdout.flush()
    said = written.getvalue().decode(console)
    assert said and not capsys.readouterr().err
    if asked == "models":
        assert said.count("\n") == len(registry.names())
        assert ("√" if console in ("utf-8", "cp437") else "\\N{SQUARE ROOT}") in said
    for plain in ("HORIZONTAL ELLIPSIS", "QUOTATION MARK", "DASH", "MINUS"):
        assert plain not in said, "three dots and a straight mark stand for these"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("models >&-", ""),
        ("models 2>&-", ""),
        ("record - -o x.npz <&-", "standard input is closed"),
    ],
)
def test_a_stream_that_is_closed_is_no_fault(asked: str, said: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m explorer.cli {asked}", shell=True, capture_output=True, cwd=cli.ROOT
    )
    assert done.returncode == bool(said) and said.encode() in done.stderr
    assert done.stderr.count(b"\n") == bool(said)


def test_a_pipe_that_closes_ends_the_list_without_a_word() -> None:
    listed = subprocess.Popen(
        [sys.executable, "-m", "explorer.cli", "models"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cli.ROOT,
    )
    assert listed.stdout and listed.stderr
    listed.stdout.close()  # before a line is written
    assert not listed.stderr.read() and listed.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--view compare.heads -m twin-post -c other_model=twin-pre", {"B: model twin-pre"}),
        ("--view compare.heads -c other_text=OTHER", {"Text of B: The dog ran."}),
        (
            "--view compare.tokens -c other_model=twin-pre other_text=OTHER",
            {"B: model twin-pre", "Text of B: The dog ran."},
        ),
    ],
)
def test_another_run_stands_beside_the_first(asked: str, said: set[str], tmp_path: Path) -> None:
    html = tmp_path / "it.html"
    assert cli.main([*words(f"page TEXT {asked}"), "-o", str(html)]) == 0
    foot = unescape(html.read_text("utf-8").rpartition("<footer>")[2])
    assert all(each in foot for each in (*said, TEXT))


def test_help_names_every_view(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["page", "--help"])
    listed = capsys.readouterr().out.partition("Views: ")[2]
    assert ended.value.code == 0 and " ".join(listed.split()) == f"{', '.join(export.views())}."


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{listed}" for name in registry.names())


PAGE = "page TEXT -o x.html"
TEMPERATURE = f"{PAGE} --view soft_lookup.temperature -c"
NO_PORT = "a port is a whole number from 1 to 65535"
# Refused before any work, and after some.
AT_ONCE = {
    "record TEXT -o .": "is a folder; give the name of a file in it",
    "record TEXT -o x.html": "x.html would hold NPZ; give it a name ending in .npz",
    "page TEXT -o x.pdf": "x.pdf would hold HTML; give it a name ending in .html",
    f"{PAGE} -c lyer=1": "heads has no choice 'lyer'; the nearest is 'layer'",
}
REFUSED = {
    **AT_ONCE,
    "record TEXT -m nothing -o x.npz": "no model 'nothing'",
    "record TEXT -m hub:/no/such/folder -o x.npz": "no folder",
    "record TEXT -o /no/such/folder/x.npz": "No such file",
    "page TEXT -o /no/such/folder/x.html": "No such file",
    f"{PAGE} --view nothing": "no view is called 'nothing'",
    f"{PAGE} --view heads -c other_model=copy": "no choice 'other_model'",
    f"{PAGE} --view compare.heads -c other_model=me": "model is",
    f"{PAGE} -c layer": "NAME=VALUE",
    f"{PAGE} -c layer=77": "no layer 77",
    f"{PAGE} -c model=decoder": "--help",
    f"{TEMPERATURE} t=x": "t is 'x'; it must be a number",
    f"{TEMPERATURE} t=-1": "from 0.01 to 100",
    "app --port 99999": NO_PORT,
    "app --port 0": NO_PORT,
    "app no.npz": "No such file",
    "app --address TEXT": f"there is no address '{TEXT}'",
    "app --address 192.0.2.1": "nothing can be served at 192.0.2.1",
}


@pytest.mark.slow
@pytest.mark.parametrize("asked", REFUSED)
def test_what_cannot_be_done_is_said_in_one_line(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if asked in AT_ONCE:
        monkeypatch.setattr(registry, "load", lambda *given: pytest.fail("a model was loaded"))
    assert cli.main(words(asked)) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("headlight: ") and REFUSED[asked] in error
    assert not list(tmp_path.iterdir())


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
    words = {
        **{"attention": "cross", "token": "2", "source": "1", "view": "Matrix", "incoming": "1"},
        **{"att_keep": "No specials", "att_sum": "1", "att_unit": "Words", "scale": "Row"},
        **{"tone": "1", "grid": "1", "grid_rows": "All", "pattern": "previous"},
    }
    at = {"layer": "0", "head": "1"}
    assert words.keys() | at.keys() == set(export.CHOICES["heads"])
    plain = export.page(recording, model=model)
    shown = {"att_keep": "No specials", "token": "2"}  # without which a choice may show nothing
    for name, word in words.items():
        others = {other: shown[other] for other in shown if other != name}
        without = export.page(recording, model=model, **others)
        assert export.page(recording, model=model, **others, **{name: word}) != without, name
    assert export.page(recording, model=model, **at) != plain


def test_its_version_stands_in_all_that_it_writes_and_stays_in_a_recording(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    version = capsys.readouterr().out.removeprefix("headlight ").strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", version)
    made = read_once("encoder").record(TEXT)
    assert made.version == version
    assert f"Made with Headlight {version}<" in export.page(made)
    assert to_csv({"a": [1]}, ["about it"]).splitlines()[:2] == [
        "# about it",
        f"# Headlight {version}",
    ]
    older = replace(made, version="0.3.0")
    assert from_npz(to_npz(older)).version == "0.3.0" and older == made


def test_a_file_of_a_recording_stands_in_the_place_of_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    npz, svg, html = (tmp_path / f"it.{ending}" for ending in ("npz", "svg", "html"))
    npz.write_bytes(to_npz(read_once("decoder").record(TEXT)))
    figure = ["figure", "attention.head", str(npz), "-o", str(svg)]
    assert cli.main([*figure, "-c", "layer=1", "head=2"]) == 0
    assert "decoder" in svg.read_text("utf-8") and "Layer 1, head 2" in svg.read_text("utf-8")
    assert cli.main(["page", str(npz), "-o", str(html)]) == 0
    assert "The cat &lt;/script&gt; sat." in html.read_text("utf-8")
    capsys.readouterr()
    (tmp_path / "other.npz").write_bytes(svg.read_bytes())
    for asked, why in (
        (["logit_lens.lens", str(npz)], "has no readout"),
        (["attention.head", str(npz), "--target", "a"], "has its own texts"),
        (["attention.head", str(tmp_path / "other.npz")], "no .npz file"),
    ):
        assert cli.main(["figure", *asked, "-o", str(svg)]) == 1
        assert why in capsys.readouterr().err


def test_the_app_starts_on_a_file_of_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    npz, text = tmp_path / "it.npz", tmp_path / "a.npz"
    npz.write_bytes(to_npz(read_once("decoder").record(TEXT)))
    text.write_text("no recording", "utf-8")
    started: list[tuple[list[str], str]] = []
    monkeypatch.setattr(
        os, "execv", lambda _, command: started.append((command, os.environ[RECORDING]))
    )
    monkeypatch.setenv(RECORDING, "")
    monkeypatch.chdir(tmp_path)
    cli.main(["app", "it.npz", "--port", "8599"])
    ((command, file),) = started
    assert command[-3:] == ["8599", "--server.address", "localhost"] and file == str(npz)
    assert cli.main(["app", "a.npz"]) == 1 and len(started) == 1
    assert "no .npz file" in capsys.readouterr().err


@pytest.mark.slow
def test_a_visit_opens_on_the_recording_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first page and a page loaded anew by its address; a link to another model stays one."""
    npz = tmp_path / "it.npz"
    npz.write_bytes(to_npz(recording := read_once("decoder").record(TEXT)))
    monkeypatch.setenv(RECORDING, str(npz))
    settings.cache_clear()
    try:
        app = opened("heads").run()
        assert not app.exception and app.session_state.text == TEXT
        assert (name := app.session_state.model).startswith("file:decoder-")
        (attention,) = loaded(name).recorded.attention
        np.testing.assert_array_equal(attention.pattern, recording.attention[0].pattern)
        anew = opened("heads", model=name, text=TEXT).run()
        assert anew.session_state.model == name and not anew.exception
        assert opened("heads", model="encoder").run().session_state.model == "encoder"
        npz.unlink()
        assert opened("heads").run().session_state.model == "encoder"
    finally:
        settings.cache_clear()
