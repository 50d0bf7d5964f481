"""The `headlight` command: start the app, record a text, write a view as one HTML file or a figure
for a paper, list the models."""

from __future__ import annotations

import argparse
import codecs
import errno
import io
import os
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from models.contract.notices import Notice
from models.example_texts import DEFAULT_MODEL
from models.version import VERSION

if TYPE_CHECKING:
    from models.contract.model import Model
    from models.contract.recording import Recording

ROOT = Path(__file__).resolve().parent.parent
LIKE_A_FILE = re.compile(r"\S*[^\s.]\.(txt|md|csv|tsv|npz|json|html?)", re.IGNORECASE)
# What a console without these letters gets; of any other letter it gets the name.
PLAIN = str.maketrans({"…": "...", "’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "−": "-"})
INSTALL_APP = "run python -m pip install 'headlight-attention[app]', or make in a clone"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say. Returns 0, or 1 after one line on standard error that says what is
    wrong."""
    os.environ.setdefault("OMP_NUM_THREADS", str(min(4, os.cpu_count() or 1)))
    _open_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show, warnings.showwarning)
            options = parser().parse_args(arguments)
            done = options.do(options)
        sys.stdout.flush()
        return done
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        print(f"headlight: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _open_streams() -> None:
    """A place to write to where the caller closed it, which takes every letter."""
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Stand-ins for the letters that a console does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    plain = missing.translate(PLAIN).encode("ascii", "namereplace")
    return plain.decode("ascii"), error.end


def parser() -> argparse.ArgumentParser:
    """The command's parser, with its verbs and options."""
    whole = argparse.ArgumentParser(
        prog="headlight", description="See what every attention head of a transformer sees."
    )
    whole.add_argument("--version", action="version", version=f"headlight {VERSION}")
    verbs = whole.add_subparsers(required=True, metavar="COMMAND", parser_class=_Verb)
    app = verbs.add_parser("app", help="start the app and print its address")
    app.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE.npz",
        help="open it on this file, which `headlight record` or the app wrote",
    )
    app.add_argument("--port", type=int, default=8501, help="the port it answers on (8501)")
    app.add_argument("--address", default="localhost", help="the address it answers on (localhost)")
    app.set_defaults(do=_app)
    record = verbs.add_parser("record", help="record one forward pass over a text")
    _of_a_text(record)
    record.add_argument("-o", "--output", required=True, metavar="FILE.npz", type=Path)
    record.set_defaults(do=_record)
    page = verbs.add_parser("page", help="write a view of a text as one HTML file", last=_views)
    _of_a_text(page, or_file=True)
    page.add_argument("-o", "--output", required=True, metavar="FILE.html", type=Path)
    page.add_argument("--view", default="heads", help="what to show, one of those below (heads)")
    page.add_argument("--link", default="", help="the address of a Headlight to lead back to")
    _with_choices(page)
    page.set_defaults(do=_page)
    figure = verbs.add_parser(
        "figure", help="write a figure of a text as SVG, PDF or PNG", last=_panels
    )
    figure.add_argument("name", metavar="NAME", help="one of those below, such as attention.head")
    _of_a_text(figure, or_file=True)
    figure.add_argument("-o", "--output", required=True, metavar="FILE.pdf", type=Path)
    figure.add_argument("--width", help="its width on paper, such as 8.5cm or 3.3in")
    figure.add_argument(
        "--no-caption", action="store_true", help="without the lines that say model, text and edits"
    )
    figure.add_argument("--no-title", action="store_true", help="without the title above it")
    figure.add_argument("--no-formulas", action="store_true", help="without the formulas below it")
    figure.add_argument("--no-notes", action="store_true", help="without what explains its figures")
    figure.add_argument("--dark", action="store_true", help="in the colours of the dark theme")
    _with_choices(figure)
    figure.set_defaults(do=_figure)
    models = verbs.add_parser("models", help="list the models that are here")
    models.set_defaults(do=_models)
    return whole


class _Verb(argparse.ArgumentParser):
    """A verb whose help ends in words that take a moment to gather: `last` is asked for them with
    the help and not before."""

    def __init__(
        self, *positional: Any, last: Callable[[], str] | None = None, **named: Any
    ) -> None:
        super().__init__(*positional, **named)
        self.last = last

    def format_help(self) -> str:
        self.epilog = self.last() if self.last else None
        return super().format_help()


def _views() -> str:
    from explorer import export

    return f"Views: {', '.join(export.views())}."


def _panels() -> str:
    from explorer import export

    return f"Figures: {', '.join(export.panel_names())}."


def _with_choices(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "-c",
        "--choose",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="choices as in the address of a page, such as layer=1 head=5 token=3",
    )


def _of_a_text(verb: argparse.ArgumentParser, or_file: bool = False) -> None:
    """Arguments that say what is read. or_file: a recording's file is read in the place of it."""
    file = "; or a recording, FILE.npz" if or_file else ""
    verb.add_argument(
        "text", help=f"the text, the name of a file that holds it, or - for standard input{file}"
    )
    verb.set_defaults(or_file=or_file)
    verb.add_argument(
        "-m",
        "--model",
        default=DEFAULT_MODEL,
        help="a name that `headlight models` lists, or ours: or hub: and the name or folder of a "
        f"Hugging Face model ({DEFAULT_MODEL})",
    )
    verb.add_argument(
        "--target", help="what a translator’s decoder reads; its own words if left out"
    )


def _app(options: argparse.Namespace) -> int:
    if find_spec("streamlit") is None:
        raise ValueError(f"the app needs packages that are not here; {INSTALL_APP}")
    if options.file is not None:
        from models.inputs import recorded_model

        recorded_model.opened(options.file.read_bytes())  # or it says why it cannot be
        os.environ["HEADLIGHT_RECORDING"] = str(options.file.resolve())
    _expect_address(options.address, options.port)
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    command += ["--server.port", str(options.port), "--server.address", options.address]
    if sys.platform == "win32":  # whose execv does not wait for the program
        return subprocess.call(command)
    os.execv(command[0], command)  # whoever stops the command stops the app


def _expect_address(address: str, port: int) -> None:
    """Raises ValueError where no server can answer at this address and port."""
    if not 1 <= port <= 65535:
        raise ValueError(f"a port is a whole number from 1 to 65535, and --port says {port}")
    try:
        addresses = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ValueError(f"there is no address {address!r}; check --address") from error
    problems = [_not_bound((*kind,), at) for *kind, _, at in addresses]
    in_use = [each for each in problems if each is not None and each.errno == errno.EADDRINUSE]
    if in_use or None not in problems:
        why = (in_use or problems)[0]
        raise ValueError(
            f"nothing can be served at {address}, port {port} ({why and why.strerror}); choose "
            "another with --port or --address"
        )


def _not_bound(kind: Sequence[int], at: Any) -> OSError | None:
    """The error of binding an address; None where a server can take it."""
    try:
        with socket.socket(*kind) as look:
            look.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            look.bind(at)
    except OSError as error:
        return error
    return None


def _recorded(options: argparse.Namespace) -> tuple[Model, Recording]:
    """The model that is asked for, loaded, and its recording of the text; of a file what stands for
    its model, and the recording that it holds."""
    file = _file(options.text)
    if file is not None and file.suffix == ".npz":
        if not options.or_file:
            raise ValueError(f"{file} is a recording; `headlight page` and `figure` read it")
        return _of_file(file, options)
    name = _named(options.model)
    text = _argument(options.text)
    if text == "-":
        if sys.stdin is None:
            raise ValueError("standard input is closed; give the text, or the name of a file")
        text = _decoded(sys.stdin.buffer, "the text on standard input")
    elif file is not None:
        _say(f"Reading the file {file}.")
        with file.open("rb") as opened:
            text = _decoded(opened, f"the file {file}")
    elif os.path.isdir(text):
        _say(f"{text} is read as the text, and not as the folder of this name.")
    elif LIKE_A_FILE.fullmatch(text):
        _say(f"There is no file {text}; these words are read as the text.")
    model = _loaded(name)
    return model, _read(model, text, options.target)


def _of_file(file: Path, options: argparse.Namespace) -> tuple[Model, Recording]:
    from models.inputs import recorded_model

    if options.target is not None:
        raise ValueError("a recording has its own texts; leave --target out")
    model = recorded_model.opened(file.read_bytes())
    return model, model.recorded


def _file(text: str) -> Path | None:
    """The file that a text is the name of, None where there is none. Raises ValueError for the name
    of a folder, with a separator in it."""
    if os.path.isdir(text) and (text.endswith(os.sep) or len(Path(text).parts) > 1):
        raise ValueError(f"{text} is a folder; give the name of one file in it, or a text")
    return Path(text) if os.path.isfile(text) else None


def _argument(text: str) -> str:
    """A text of the command line. Raises ValueError for bytes that are no UTF-8, which the system
    hands on as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text is not in UTF-8 (character {error.start + 1}); convert it, or give the name "
            "of a file that is"
        ) from error
    return text


def _decoded(stream: IO[bytes], name: str) -> str:
    """The text of a stream, without its byte order mark and without the end of its last line.
    Raises ValueError where it is not in UTF-8."""
    try:
        return io.TextIOWrapper(stream, "utf-8-sig").read().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not in UTF-8 (byte {error.start + 1}); convert it first, for example with "
            "iconv"
        ) from error


def _named(name: str) -> str:
    """A model's whole name. Raises ValueError where there is none."""
    from models.runtime import registry

    name = registry.spelled(name)
    if not registry.knows(name):
        raise ValueError(
            f"there is no model {name!r}; `headlight models` lists those that are here"
        )
    return name


def _loaded(name: str) -> Model:
    from models.runtime import registry

    _say(f"Loading {name} …")
    return registry.load(name, _progress)


def _read(model: Model, text: str, target: str | None = None) -> Recording:

    recording = model.record(text, target=target)
    _say(f"{sum(len(each.tokens) for each in recording.streams)} tokens read.")
    return recording


def _record(options: argparse.Namespace) -> int:
    from models.contract.recording_file import to_npz

    _expect_file(options.output, ".npz")
    _, recording = _recorded(options)
    _write(options.output, to_npz(recording))
    return 0


def _page(options: argparse.Namespace) -> int:
    from explorer import export

    _expect_file(options.output, ".html", ".htm")
    options.view, chosen = export.chosen(options.view, _chosen(options.choose))
    model, recording = _recorded(options)
    page = export.page(
        recording,
        options.view,
        model=model,
        other=None,
        target=options.target,
        link=options.link,
        **chosen,
    )
    _write(options.output, page.encode("utf-8"))
    return 0


def _figure(options: argparse.Namespace) -> int:
    from explorer import export

    _expect_file(options.output, *export.PICTURES)
    chosen = _chosen(options.choose)
    export.expect_words(options.name, chosen)
    model, recording = _recorded(options)
    panel = export.figure(recording, options.name, model=model, **chosen)
    panel.save(
        options.output,
        width=options.width,
        caption=not options.no_caption,
        dark=options.dark,
        title=not options.no_title,
        formulas=not options.no_formulas,
        notes=not options.no_notes,
    )
    _say(f"{options.output}: {options.output.stat().st_size:,} bytes.")
    return 0


def _chosen(pairs: Sequence[str]) -> dict[str, str]:
    """The choices by their names. Raises ValueError for what is none."""
    from explorer import export

    options = {
        name
        for name, one in signature(export.page).parameters.items()
        if one.kind not in (Parameter.VAR_KEYWORD, Parameter.POSITIONAL_ONLY)
    }
    chosen = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise ValueError(f"{name!r} is no choice; write NAME=VALUE, such as layer=1")
        if name in options:
            raise ValueError(f"{name!r} is no choice of a page; see `headlight page --help`")
        chosen[name] = value
    return chosen


def _models(options: argparse.Namespace) -> int:
    from models.runtime import registry

    for name in registry.names():
        card = registry.card(name)
        size = card["config"]
        print(
            f"{name:24} {card['kind']:16} {size['n_layer']} x {size['n_head']:<3} {card['summary']}"
        )
    return 0


def _expect_file(file: Path, *endings: str) -> None:
    """Raises ValueError where a file of one of these kinds cannot be written there."""
    if file.is_dir():
        raise ValueError(
            f"{file} is a folder; give the name of a file in it, ending in {endings[0]}"
        )
    if not file.parent.is_dir():
        raise ValueError(f"No such file or folder: {file.parent}")
    if file.exists() and not file.is_file():
        return  # a pipe or a device takes anything
    if file.suffix.lower() not in endings:
        what = endings[0][1:].upper()
        raise ValueError(f"{file.name} would hold {what}; give it a name ending in {endings[0]}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ValueError(f"{file} cannot be written; choose another folder")


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    _say(f"{file}: {len(content):,} bytes.")


def _show(
    default: Callable[..., None], message: Warning | str, category: type[Warning], *where: Any
) -> None:
    """Show a warning: a notice as one line, without the line of code that it came from."""
    if issubclass(category, Notice):
        _say(f"{message}.")
    else:
        default(message, category, *where)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _progress(done: int, total: int) -> None:
    if total and sys.stderr.isatty():
        print(f"\r{done / total:4.0%} fetched", end="\n" if done >= total else "", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
