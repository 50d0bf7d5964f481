"""The startup bundle: one file with the JavaScript modules of a first visit, Streamlit's and ours.

By themselves these are some 120 small modules, one request each. The browser gets them in one
file, cuts it into modules (blobs) and names them in an import map, so that every import of one of
them, by whatever address, leads to its part of the file. All other modules are fetched from their
own addresses. So are those of the file where it fails to load."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit

from explorer.components import bundle

STATIC = Path(streamlit.__file__).resolve().parent / "static"
SCRIPTS = "static/js"  # the folder of Streamlit's modules, in its package and below our address
# Elements of the first page: Streamlit imports the module of each when it draws the first one.
ELEMENTS = (
    *("BidiComponent", "Button", "ButtonGroup", "PageLink", "Progress", "Selectbox", "TextInput"),
)
VIEWS = ("sentence", "panel", "offers", "class_bar", "presenter")  # of ours on the first page

# In Streamlit's page: its first module, what it fetches early (its modules, and a font that this
# app does not use), and its style, which would hold up the first words.
ENTRY = re.compile(rf'<script type="module"[^>]* src="\./({SCRIPTS}/[^"/]+\.js)"></script>')
EARLY = re.compile(r'\s*<link\s+rel="(?:modulepreload|preload)"[^>]*>')
STYLES = re.compile(r'\s*<link rel="stylesheet"[^>]*>')
# In a module: `from"./x.js"`, `import"./x.js"`, and with a bracket where it is imported later.
IMPORT = re.compile(r"""\b(from|import|import\()\s*(["'`])\./([^"'`/]+\.js)\2""")
# The load of an element's module: `lazy)(()=>H(()=>import(`./x.js`),__vite__mapDeps([1]),y))`.
LAZY = re.compile(
    r"""(?<=lazy\)\(\(\)=>)\w+\(\(\)=>import\(["'`]\./([^"'`/]+\.js)["'`]\)"""
    r""",__vite__mapDeps\(\[[\d,]*\]\),import\.meta\.url\)"""
)
ROOT = "@app/"  # in the import map: the app's address

# The file begins with a line of JSON: path and size of each module, in order, and the paths of
# those that are imported while the first page is on its way. The browser reads and compiles all of
# them at once (modulepreload), not each when it comes to its import.
LOADER = """<script nonce="NONCE">
(async () => {
  const { nonce } = document.currentScript;
  const root = new URL("./", document.baseURI);
  let soon = [];
  try {
    if (!HTMLScriptElement.supports("importmap")) throw new Error("no import maps");
    const answer = await fetch(new URL("BUNDLE", root));
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const data = new Uint8Array(await answer.arrayBuffer());
    let at = data.indexOf(10) + 1;
    const index = JSON.parse(new TextDecoder().decode(data.subarray(0, at)));
    const imports = { "@app/": root.href };
    for (const [path, size] of index.modules) {
      const module = new Blob([data.subarray(at, (at += size))], { type: "text/javascript" });
      imports["@app/" + path] = imports[new URL(path, root)] = URL.createObjectURL(module);
    }
    const map = document.createElement("script");
    [map.type, map.nonce] = ["importmap", nonce];
    map.textContent = JSON.stringify({ imports });
    document.head.append(map);
    for (const [path] of index.modules) {
      const link = document.createElement("link");
      [link.rel, link.href] = ["modulepreload", imports["@app/" + path]];
      document.head.append(link);
    }
    soon = index.soon;
  } catch (error) {
    console.warn("Modules are fetched one by one:", error);
  }
  await import(new URL("ENTRY", root));
  await new Promise((then) => (window.requestIdleCallback ?? setTimeout)(then));
  const loaded = (window.headlightLoaded = {});
  for (const path of soon)
    import(new URL(path, root)).then((its) => (loaded[path] = { then: (use) => use(its) }));
})();
</script>"""


@dataclass(frozen=True)
class StartupBundle:
    """The file's path below the app's address, and its bytes, plain and gzipped."""

    path: str
    data: bytes
    packed: bytes


_lock = threading.Lock()


def with_loader(page: str, nonce: str = "") -> str:
    """Streamlit's page with a script that loads the bundle in place of its modules, and its style
    at the end; the same page where it is built in a way that is not known here. nonce: by which the
    page's policy lets the script run, and what the script makes: addresses of blobs, which no hash
    can know."""
    entry = ENTRY.search(page)
    if entry is None:
        return page
    loader = LOADER.replace("BUNDLE", _path(entry[1])).replace("ENTRY", entry[1])
    loader = loader.replace("NONCE", nonce)
    styles = "".join(STYLES.findall(page))
    page = STYLES.sub("", EARLY.sub("", page))
    return ENTRY.sub(lambda _: loader, page).replace("</body>", f"{styles}</body>")


def startup_bundle() -> StartupBundle | None:
    """The bundle of the installed Streamlit and our components, made once; None where Streamlit's
    files are not laid out in a way that is known here."""
    with _lock:
        return _build(STATIC)


@cache
def _path(entry: str) -> str:
    """The bundle's path, known before it is made: the name of Streamlit's first module carries a
    hash of all that it imports, and the folder of ours one of them."""
    made_of = f"{entry} {bundle.folder()} {Path(__file__).read_text('utf-8')}"
    return f"{bundle.ROUTE}/{hashlib.sha256(made_of.encode()).hexdigest()[:12]}/startup"


@cache
def _build(static: Path) -> StartupBundle | None:
    try:
        entry = ENTRY.search((static / "index.html").read_text("utf-8"))
        modules = _streamlit_modules(static, entry[1]) if entry else {}
    except (OSError, ValueError):
        return None
    if entry is None or entry[1] not in modules:
        return None
    soon = [path for path in modules if _stem(path) in ELEMENTS]
    own = f"{bundle.ROUTE}/{bundle.folder()}"
    soon += [f"{own}/{name}.js" for name in VIEWS]
    modules |= {f"{own}/{name}": text for name, text in _own_modules().items()}
    parts = {path: _relocatable(path, text).encode() for path, text in modules.items()}
    sizes = [(path, len(part)) for path, part in parts.items()]
    index = json.dumps({"modules": sizes, "soon": soon})
    data = b"".join((f"{index}\n".encode(), *parts.values()))
    return StartupBundle(_path(entry[1]), data, gzip.compress(data, compresslevel=6))


def _streamlit_modules(static: Path, entry: str) -> dict[str, str]:
    """Texts by paths: of the first module, of what it imports, and of the modules of `ELEMENTS`
    with what they import."""
    texts: dict[str, str] = {}
    waiting = [entry]
    while waiting:
        path = waiting.pop()
        if path in texts or not (static / path).is_file():
            continue
        texts[path] = (static / path).read_text("utf-8")
        names = [
            name
            for keyword, _, name in IMPORT.findall(texts[path])
            if keyword != "import(" or (path == entry and _stem(name) in ELEMENTS)
        ]
        waiting += [f"{SCRIPTS}/{name}" for name in names]
    return texts


def _own_modules() -> dict[str, str]:
    """Texts by names: of the modules of `VIEWS`, and of what they import at once."""
    every = bundle.modules()
    texts: dict[str, str] = {}
    waiting = [f"{name}.js" for name in VIEWS]
    while waiting:
        name = waiting.pop()
        if name in texts:
            continue
        texts[name] = every[name].decode()
        imports = IMPORT.findall(texts[name])
        waiting += [named for keyword, _, named in imports if keyword != "import("]
    return texts


def _stem(path: str) -> str:
    """The name of a file without its folder, its hash and its ending."""
    return path.rpartition("/")[2].partition(".")[0]


def _relocatable(path: str, text: str) -> str:
    """The module's text, with addresses that hold wherever the text itself is loaded from."""
    folder = path.rpartition("/")[0]
    # An element whose module is loaded is drawn at once. React shows an element that it had to wait
    # for up to 300 ms after its module has come.
    text = LAZY.sub(rf'window.headlightLoaded?.["{folder}/\1"]??\g<0>', text)
    text = IMPORT.sub(rf"\1 \2{ROOT}{folder}/\3\2", text)
    return text.replace("import.meta.url", f'(import.meta.resolve("{ROOT}")+"{path}")')
