"""The components' code on its way to the browser: one file each, fetched once and kept, not sent again with every message.

Streamlit puts a component's JavaScript and CSS into every message that carries its data. Ours stay out of it: a message holds three lines
that import the file from this server. The file's name carries a hash of its content, so a browser may keep it for good.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROUTE = "headlight"


@cache
def files() -> dict[str, bytes]:
    """Every component's file by its name on the server."""
    made = {}
    for own in sorted(HERE.glob("*.js")):
        if own.stem != "shared":
            content = _file(own.stem)
            made[f"{own.stem}-{hashlib.sha256(content).hexdigest()[:12]}.js"] = content
    return made


def loader(component: str) -> str:
    """The lines that stand in for the component's code in a message."""
    name = next(name for name in files() if name.rpartition("-")[0] == component)
    return f"""const loaded = import(new URL("{ROUTE}/{name}", document.baseURI));
export default function (args) {{
  let stop = () => {{}}, gone = false;
  loaded.then((code) => gone || (stop = code.default(args)), () => (args.parentElement.textContent = "This part of the page did not arrive. Reload the page."));
  return () => {{ gone = true; stop(); }};
}}
"""


def _file(component: str) -> bytes:
    style = (HERE / f"{component}.css").read_text("utf-8")
    parts = (
        (HERE / "shared.js").read_text("utf-8"),
        f"const STYLE = {json.dumps(style)};\n",
        (HERE / f"{component}.js").read_text("utf-8"),
    )
    return "".join(parts).encode("utf-8")
