"""The components' code on its way to the browser: real modules, fetched once and kept, not sent
again with every message.

Streamlit puts a component's JavaScript and CSS into every message that carries its data. Ours stay
out of it: a message holds a few lines that import the component's module from this server. Modules
import each other by relative names from one folder, whose name carries a hash of all of them, so
that a browser may keep each for good and a change of any is a change of all.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from explorer.wording.templates import all_of, sentences

HERE = Path(__file__).parent
ROUTE = "headlight"
SHARED, PAGE = HERE / "shared.css", HERE / "page.css"
CARD = HERE / "card_layout.toml"
THEME = HERE.parent.parent / ".streamlit" / "config.toml"
IMPORT = re.compile(r'^import (?:(\w+)|\{([^}]*)\}) from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?=(?:async )?(?:function|class|const|let) (\w+|\[[\w, ]+\]))", re.MULTILINE
)
# What views call the colours of a theme.
VARIABLES = {
    "primaryColor": "primary-color",
    "backgroundColor": "background-color",
    "secondaryBackgroundColor": "secondary-background-color",
    "textColor": "text-color",
    "borderColor": "border-color",
    "blueTextColor": "blue-text-color",
    "chartSequentialColors": "chart-sequential-colors",
    "chartCategoricalColors": "chart-categorical-colors",
}
DEFAULT = re.compile(r"^export default ", re.MULTILINE)
# Comments that have lines of their own, those behind code, and types: readers of code have them,
# browsers need none.
COMMENT = re.compile(
    rb"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)$|/\*\* @type (?:(?!\*/).)*\*/ ?"
    rb"|(?<=[;,{}()\[\]]) // [^\n\"'`]*$",
    re.MULTILINE | re.DOTALL,
)
INDENT = re.compile(rb"^ +", re.MULTILINE)
# Of a style the indents too: no line of it is looked up by its number.
OF_STYLE = re.compile(r"/\*.*?\*/|(?<=\n)\s+", re.DOTALL)


@cache
def modules() -> dict[str, bytes]:
    """Every module by its name: the .js files line by line without comments and indents, each style
    of a view, without comments too, as a module that exports its text after the one that all share,
    the light theme's colours, and the sentences that the browser writes."""
    blank = lambda comment: b"\n" * comment[0].count(b"\n")
    sources = {
        file.name: INDENT.sub(b"", COMMENT.sub(blank, file.read_bytes()))
        for file in sorted(HERE.glob("*.js"))
    }
    for file in sorted({*HERE.glob("*.css")} - {PAGE}):
        style = OF_STYLE.sub("", file.read_text("utf-8"))
        sources[f"{file.name}.js"] = _exporting(style, file != SHARED)
    sources["light.toml.js"] = _exporting(colours("light"))
    sources["card_layout.toml.js"] = _exporting(card_layout())
    sources["browser.toml.js"] = _exporting(all_of("browser"))
    return sources


@cache
def folder() -> str:
    """The name of the folder that the modules are served from."""
    whole = hashlib.sha256()
    for name, content in modules().items():
        whole.update(f"{name} {len(content)}\n".encode() + content)
    return whole.hexdigest()[:12]


@cache
def files() -> dict[str, bytes]:
    """Every module by its path on the server, below ROUTE."""
    return {f"{folder()}/{name}": content for name, content in modules().items()}


@cache
def script(entry: str) -> str:
    """A module with all that it imports as one script: `$[name]` holds what a module exports."""
    modules: dict[str, str] = {}
    _add(entry, modules)
    return "\n".join(("const $ = {};", *modules.values()))


def _add(name: str, made: dict[str, str]) -> None:
    """A module after all that it imports."""
    code = modules()[name].decode()
    code = code.replace("import.meta.url", "document.baseURI")  # a script is no module
    for imported in IMPORT.finditer(code):
        if imported[3] not in made:
            _add(imported[3], made)
    names = [each for imported in EXPORT.finditer(code) for each in re.findall(r"\w+", imported[1])]
    names += ["default: $default"] * bool(DEFAULT.search(code))
    code = IMPORT.sub(_binding, DEFAULT.sub("const $default = ", EXPORT.sub("", code)))
    made[name] = f'$["{name}"] = (() => {{\n{code}\nreturn {{ {", ".join(names)} }};\n}})();'


def _binding(match: re.Match[str]) -> str:
    """An import as what it takes from a module that has run."""
    names = f"default: {match[1]}" if match[1] else match[2].replace(" as ", ": ")
    return f'const {{ {names} }} = $["{match[3]}"];\n'


def loader(component: str) -> str:
    """The lines that stand in for the component's code in a message. Raises ValueError for a
    component that does not exist."""
    if f"{component}.js" not in modules():
        raise ValueError(f"there is no component {component!r}")
    return f"""const at = "{ROUTE}/{folder()}/{component}.js";
const loaded = import(new URL(at, document.baseURI));
const lost = {json.dumps(sentences("server", "pages")("lost"))};
export default function (args) {{
  let stop = () => {{}}, gone = false;
  loaded.then(
    (code) => gone || (stop = code.default(args)),
    () => (args.parentElement.textContent = lost),
  );
  return () => {{ gone = true; stop(); }};
}}
"""


def _exporting(value: object, with_shared: bool = False) -> bytes:
    encoded = json.dumps(value, ensure_ascii=False)
    if not with_shared:
        return f"export default {encoded};\n".encode()
    first = f'import shared from "./{SHARED.name}.js";\n'
    return f"{first}export default shared + {encoded};\n".encode()


def card_layout() -> dict[str, Any]:
    """The layout of the picture card."""
    return tomllib.loads(CARD.read_text("utf-8"))


def colours(name: str) -> dict[str, object]:
    """The colours of a theme, "light" or "dark", as pictures take them."""
    whole = tomllib.loads(THEME.read_text("utf-8"))["theme"]
    theme = whole[name]
    return {
        "ink": theme["textColor"],
        "paper": theme["backgroundColor"],
        "primary": theme["primaryColor"],
        "border": theme["borderColor"],
        "font": whole["font"],
        "sequential": theme["chartSequentialColors"],
        "categorical": theme["chartCategoricalColors"],
    }


@cache
def theme() -> str:
    """Write the app's colours, light and dark, and its type into a style."""
    own = tomllib.loads(THEME.read_text("utf-8"))["theme"]
    light, dark = (_colours(own[name]) for name in ("light", "dark"))
    return (
        f":root{{color-scheme:light;--st-font:{own['font']};"
        f"--st-base-radius:{own['baseRadius']};{light}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        "@media (prefers-color-scheme:dark){:root:not([data-theme=light])"
        f"{{color-scheme:dark;{dark}}}}}\n"
    )


def _colours(theme: dict[str, Any]) -> str:
    return "".join(
        f"--st-{name}:{','.join(value) if isinstance(value, list) else value};"
        for key, name in VARIABLES.items()
        if (value := theme.get(key))
    )
