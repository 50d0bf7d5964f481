"""The browser's drawing code without a browser: its modules as one script, run by QuickJS, a small
engine that comes as a Python package, or by Node.js where that is installed.

Nothing is drawn twice: `explorer/components/figures.js` draws every figure here too. The engine has
no page, no network and no files; what it gets are an encoded panel and the widths of letters."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

from explorer.components import bundle
from explorer.wording.templates import sentences

WORDS = sentences("selection", "figure_files")
ENTRY = "figure_file.js"
# The engine's memory in bytes: without a panel, for each byte of one, and at most.
ENGINE_BYTES, PANEL_BYTES, MOST_BYTES = 2**26, 400, 2**30
MOST_SECONDS = 120
# What holds so many bytes free for as long as they are used; the app's panels put theirs here.
room: Callable[[int], AbstractContextManager[None]] = lambda size: nullcontext()
# What browsers and Node.js have, and QuickJS has not.
BROWSERS = """
globalThis.TextDecoder ??= class {
  decode(bytes) {
    const parts = [];
    for (let at = 0; at < bytes.length; at += 8192)
      parts.push(String.fromCharCode(...bytes.subarray(at, at + 8192)));
    return decodeURIComponent(escape(parts.join("")));
  }
};
const bytesOf = (text) =>
  Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : new Uint8Array(Buffer.from(text, "base64"));
"""


def is_there() -> bool:
    """True where a figure can be drawn without a browser."""
    return find_spec("quickjs") is not None or shutil.which("node") is not None


def drawn(panel: bytes, how: Mapping[str, object]) -> tuple[str, float, float]:
    """The picture of an encoded panel as SVG, and its width and height in pixels. how: what
    `figure_file.js` takes. Raises ValueError where no engine is installed."""
    call = f'$["{ENTRY}"].drawn(bytesOf("{b64encode(panel).decode()}"), {json.dumps(how)})'
    run = _run_quickjs if find_spec("quickjs") else _run_node if shutil.which("node") else None
    if run is None:
        raise ValueError(WORDS("no_engine"))
    most = min(ENGINE_BYTES + PANEL_BYTES * len(panel), MOST_BYTES)
    with room(most):
        answer = json.loads(run(BROWSERS + bundle.script(ENTRY), call, most))
    return answer["svg"], answer["width"], answer["height"]


def _run_quickjs(code: str, call: str, most: int) -> str:
    import quickjs

    context = quickjs.Context()  # of this thread alone
    context.set_memory_limit(most)
    context.set_time_limit(MOST_SECONDS)
    context.eval(code)
    return str(context.eval(f'[{call}].join("")'))  # which makes its parts one string


def _run_node(code: str, call: str, most: int) -> str:
    command = [shutil.which("node") or "node", f"--max-old-space-size={most >> 20}", "-"]
    program = f"{code}\nprocess.stdout.write({call});"
    done = subprocess.run(
        command, input=program.encode(), capture_output=True, timeout=MOST_SECONDS, check=True
    )
    return done.stdout.decode()
