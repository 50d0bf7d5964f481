"""The house keeps its own rules: who may import whom, no circles, and a map that is complete."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import clone
import pytest

from models.contract.model import Model

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path for folder in ("models", "explorer", "pages") for path in (ROOT / folder).rglob("*.py")
) + [ROOT / "app.py", ROOT / "headlight.py"]
LIGHT = {"__future__", "typing"}
ABOVE = (
    r"explorer\.app\.(views|layout|state|mounts).*"
    r"|explorer\.(panels|screens|text|wording|analysis|components|figures)\..*"
    r"|models\.((contract|runtime|own|tokens)\..*|live\.training_plan|example_texts|model_names)"
)

# Room, as a pattern of paths -> outside packages it may import, and parts of the project it may
# import.
FLOORS = [
    (r".*__init__\.py", set(), r"$"),
    (
        r"models/contract/.*",  # numpy alone; what a device is stands in one method
        {"numpy"},
        r"models\.(contract\..*|version|network\.(devices|config))",
    ),
    (
        r"models/tokens/template_renderer\.py",
        {"jinja2", "transformers"},
        r"models\.(child_process|contract\.recording)",
    ),
    (
        r"models/tokens/.*",
        {"numpy", "tokenizers", "torch"},
        r"models\.((tokens|contract)\..*|child_process|shipped_models)",
    ),
    (
        r"models/network/.*",
        {"numpy", "torch", "safetensors"},
        r"models\.((network|contract|tokens)\..*|shipped_models)",
    ),
    (r"models/readouts/.*", {"numpy", "torch"}, r"models\.(readouts|network|contract)\..*"),
    (
        r"models/live/.*",
        {"torch", "safetensors"},
        r"models\.((live|network|contract|tokens)\..*|child_process)",
    ),
    (
        r"models/pretrained/.*",
        {*"numpy torch transformers gguf huggingface_hub tokenizers safetensors tqdm".split()},
        r"models\.((pretrained|readouts|network|contract|tokens)\..*|child_process|model_names)",
    ),
    (r"models/runtime/serve\.py", {"numpy", "ray", "starlette"}, r"models\.(?!training\.).*"),
    (r"models/runtime/.*", {"numpy"}, r"models\.(?!training\.).*"),
    (r"models/(own|inputs)/.*", {"numpy", "torch", "tokenizers"}, r"models\.(?!training\.).*"),
    (
        r"models/training/.*",
        {"numpy", "torch", "tokenizers", "safetensors", "tqdm", "sacrebleu"},
        r"models\..*",
    ),
    (r"models/\w+\.py", set(), r"models\.(?!training\.).*"),
    (r"explorer/wording/.*", set(), r"explorer\.wording\..*"),
    (r"explorer/components/.*", {"numpy"}, r"explorer\.(components|wording)\..*"),
    (
        r"explorer/figures/.*",
        {"numpy", "quickjs", "typst", "plotly", "anywidget", "traitlets", "segno"},
        r"explorer\.(figures|components|wording)\..*|models\.(contract\.(edits|notices|recording)|version)",
    ),
    (
        r"explorer/analysis/(facts|gallery|measure|opening|offers)\.py",  # which ask a model
        {"numpy"},
        r"explorer\.(analysis|figures|wording)\..*|explorer\.text\.model_descriptions"
        r"|models\.((contract|runtime)\..*|example_texts|model_names)",
    ),
    (
        r"explorer/analysis/.*",
        {"numpy"},
        r"explorer\.(analysis|figures|wording)\..*"
        r"|models\.(contract\..*|network\.buffer_pool|tokens\.chat|version)",
    ),
    (
        r"explorer/text/.*",
        set(),
        r"explorer\.(analysis|figures|text|wording)\..*|models\.(contract\.results|example_texts)",
    ),
    (
        r"explorer/panels/.*",
        {"numpy"},
        r"explorer\.(panels|analysis|figures|text|wording)\..*|explorer\.components\.codec"
        r"|models\.((contract|runtime|own|tokens)\..*|example_texts|model_names)",
    ),
    (
        r"explorer/screens/.*",
        set(),
        r"explorer\.(screens|panels|analysis|figures|text|wording)\..*"
        r"|models\.((contract|runtime|own)\..*|example_texts|model_names)",
    ),
    (
        r"explorer/(export|citation|cli)\.py",
        {"pandas", "tqdm"},
        r"explorer\.(analysis|figures|panels)\..*|explorer\.export"
        r"|models\.((contract|runtime|inputs)\..*|version|example_texts)",
    ),
    (r"explorer/app/views/embeddings\.py", {"numpy", "plotly", "streamlit"}, ABOVE),
    (r"explorer/app/classroom/redis_store\.py", {"redis"}, r"explorer\.app\.classroom\.store"),
    (
        r"explorer/app/classroom/.*",
        {"starlette", "itsdangerous"},
        r"explorer\.app\.(classroom|state|server)\..*"
        r"|explorer\.(components\.bundle|figures\.qr_code|text\.(places|lesson)|wording\..*)",
    ),
    (r"explorer/app/server/client_address\.py", {"starlette", "uvicorn"}, r"()"),
    (
        r"explorer/app/server/.*",
        {*"anyio google itsdangerous numpy segno starlette streamlit".split()},
        r"explorer\.app\.(server|state|classroom)\..*"
        r"|explorer\.(analysis|components|figures|panels|screens|text|wording)\..*"
        r"|models\.((contract|runtime)\..*|model_names|example_texts|version)",
    ),
    (
        r"explorer/app/state/.*",
        {"streamlit", "numpy"},
        r"explorer\.app\.state\..*|explorer\.(panels|screens|text|wording)\..*"
        r"|models\.(?!training\.|network\.(?!buffer_pool)).*",
    ),
    (
        r"explorer/app/mounts\.py",
        {"numpy", "streamlit"},
        r"explorer\.(components|figures|wording)\..*",
    ),
    (
        r"explorer/app/layout/.*",
        {"streamlit"},
        r"explorer\.app\.(layout|state|mounts).*"
        r"|explorer\.(screens|text|wording|analysis|components|figures|panels)\..*|explorer\.export"
        r"|models\.((contract|runtime|own|tokens)\..*|example_texts|model_names)",
    ),
    (r"explorer/app/views/.*", {"streamlit"}, ABOVE),
    (r"explorer/app/main\.py", {"streamlit"}, r"explorer\.app\..*|explorer\.text\.places"),
    (r"pages/.*", {"streamlit"}, r"explorer\.app\..*"),
    (
        r"headlight\.py",
        {"headlight_clone"},
        r"explorer\.(analysis|citation|cli|export|panels|screens\.screen|text)"
        r"|models\.((contract|runtime|inputs|live)\..*|version)",
    ),
    (r"app\.py", {"streamlit", "starlette"}, r"explorer\.app\..*"),
]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def is_project(name: str) -> bool:
    return name.split(".")[0] in {"models", "explorer", "pages", "app", "headlight"}


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree, read once."""
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree."""
    return tuple(ast.walk(parsed(path)))


@cache
def imports(path: Path) -> set[str]:
    """The modules a file imports, at its top or inside a function."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            found |= {
                f"{base}.{alias.name}" if (ROOT / base.replace(".", "/")).is_dir() else base
                for alias in node.names
            }
    return found - LIGHT


def standard(name: str) -> bool:
    return name.split(".")[0] in sys.stdlib_module_names


def test_a_file_imports_only_what_its_room_may() -> None:
    for path in SOURCES:
        name = path.relative_to(ROOT).as_posix()
        floor = next(each for each in FLOORS if re.fullmatch(each[0], name))
        for imported in imports(path):
            if is_project(imported):
                assert re.fullmatch(floor[2], imported), f"{name} may not import {imported}"
            elif not standard(imported):
                assert imported.split(".")[0] in floor[1], f"{name} may not import {imported}"


NO_CONCEPTS = {*"utils util common helpers misc trace data process manager".split()}


# What a program's own start is called.
PLAIN = {"main", "warm_up", "lifespan"}


def test_every_file_and_public_function_says_what_it_is_and_no_module_is_a_drawer() -> None:
    for path in SOURCES:
        assert path.stem not in NO_CONCEPTS, path
        if path.name == "__init__.py":
            assert not path.read_text("utf-8").strip(), path
            continue
        assert ast.get_docstring(parsed(path)), path
        if path.parent.name == "pages" or "main" in path.stem:
            continue
        for node in parsed(path).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name not in PLAIN:
                assert node.name.startswith("_") or ast.get_docstring(node), (path, node.name)


# A sentence of a docstring that begins with names and a colon is about these.
ABOUT = re.compile(r"(?:^|[.;]\s+|\n\n)((?:[a-z_]\w*(?:, | and ))*[a-z_]\w*)(?: \([^)]*\))?: ")


def test_a_docstring_is_about_parameters_and_results_that_exist() -> None:
    n_names = 0
    for file in SOURCES:
        nodes = nodes_of(file)
        texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
        names = {node.id.lower() for node in nodes if isinstance(node, ast.Name)}
        for node in nodes:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            arguments = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
            for listed in ABOUT.findall(ast.get_docstring(node) or ""):
                named = set(re.split(", | and ", listed))
                n_names += len(named & arguments)
                unknown = named - arguments - texts - names
                assert not unknown, f"{file.name}, {node.name}: {unknown}"
    assert n_names > 250


def test_no_circles() -> None:
    graph = {
        module_of(path): {name for name in imports(path) if is_project(name)} for path in SOURCES
    }
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join((*above[above.index(module) :], module))
        if module not in done:
            for other in graph.get(module, ()):
                visit(other, (*above, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def room_of(module: str) -> str:
    """The folder that a module lies in; a loose one is a room by itself."""
    parts = module.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else module


def loaded_with(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """The imports that run when a module is loaded: none of a function, or for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try):
            yield from loaded_with(node)


def test_rooms_are_loaded_in_no_circle() -> None:
    modules = {module_of(path) for path in SOURCES}
    graph = defaultdict(set)
    for path in SOURCES:
        for node in loaded_with(parsed(path)):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                name = whole if whole in modules else node.module or ""
                if is_project(name) and room_of(name) != room_of(module_of(path)):
                    graph[room_of(module_of(path))].add(room_of(name))
    assert len(graph) > 20
    TopologicalSorter(graph).prepare()


@pytest.mark.slow
def test_what_every_rerun_imports_is_light() -> None:
    heavy = {"torch", "transformers", "tokenizers", "ray", "redis"}
    modules = "explorer.app.state.host, headlight, models.runtime.run"
    code = f"import sys, {modules}; print(*({heavy} & set(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert run.stdout.strip() == ""


def test_the_map_of_the_tree_has_a_line_for_every_folder_and_no_other() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    block = re.search(r"## The tree.*?```\n(.*?)```", text, re.DOTALL)
    assert block
    mapped = set()
    for line in block.group(1).splitlines():
        name, _, words = line.strip().partition("  ")
        assert words.strip(), f"no words for {name}"
        mapped.add(name)
    files = [name for name in clone.names() if not name.startswith("models/weights/")]
    folders = {f"{parent}/" for name in files for parent in Path(name).parents} - {"./"}
    assert {name for name in mapped if name.endswith("/")} == folders | {"models/weights/"}
    assert {name for name in mapped if not name.endswith("/")} <= set(files)


def test_the_project_names_no_other_host_and_loads_nothing_from_one() -> None:
    for name in clone.names():
        is_test = name.startswith(("tests/", "benchmarks/"))
        if name.endswith((".js", ".css", ".py", ".toml")) and not is_test:
            for address in re.findall(r"https?://[^\s\"')]+", (ROOT / name).read_text("utf-8")):
                assert address.startswith("http://www.w3.org/"), f"{name}: {address}"


# What sets a choice of the address may have its name as its key; what keeps anything else there may
# not.
SETS_A_CHOICE = {
    *("text_area", "text_input", "number_input", "selectbox", "multiselect", "segmented_control"),
    *("pills", "radio", "slider", "select_slider", "pick"),
}


def keys_of(path: Path) -> list[tuple[str, str]]:
    """The keys written out in a file's calls, each with what is called: `key="..."`, and the second
    argument of a picture's `show`."""
    found = []
    for node in nodes_of(path):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = [each.value for each in node.keywords if each.arg == "key"]
        given += node.args[1:2] if called == "show" else []
        found += [(called, each.value) for each in given if isinstance(each, ast.Constant)]
    return found


def below(*folders: str) -> list[Path]:
    """The sources in some folders."""
    return [path for path in SOURCES if path.relative_to(ROOT).as_posix().startswith(folders)]


def test_no_picture_chart_or_button_has_the_name_of_a_choice_as_its_key() -> None:
    from explorer.app.state import url_state

    names = {*url_state.names(), "text", "model"}
    keyed = [(path, *each) for path in below("pages/", "explorer/") for each in keys_of(path)]
    assert len(keyed) > 50, "keys are found"
    for path, what, key in keyed:
        assert what in SETS_A_CHOICE or key not in names, f"{path.name}: {what} has the key {key}"


STATE = re.compile(r"\.session_state(\.to_dict\(\))?$")


def is_state(node: ast.expr, names: set[str]) -> bool:
    """True for `st.session_state`, and for one of the names that a file gives it."""
    return getattr(node, "attr", "") == "session_state" or getattr(node, "id", "") in names


@cache
def keys_of_state(path: Path) -> set[str]:
    """The keys of the session state that a file writes out: as attributes, in brackets, in calls
    (`get`, `pop`), before `in`, and as constants of its own."""
    names, keys = set(), []
    for node in nodes_of(path):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            each = target.elts if isinstance(target, ast.Tuple) else [target]
            of = value.elts if isinstance(value, ast.Tuple) else [value] * len(each)
            for name, given in zip(each, of):
                if isinstance(name, ast.Name) and STATE.search(ast.unparse(given)):
                    names.add(name.id)
    for node in nodes_of(path):
        if isinstance(node, ast.Attribute) and is_state(node.value, names):
            keys.append(ast.Constant(node.attr))
        elif isinstance(node, ast.Subscript) and is_state(node.value, names):
            keys.append(node.slice)
        elif isinstance(node, ast.Compare) and is_state(node.comparators[0], names):
            keys.append(node.left)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keys += node.args[:1] if is_state(node.func.value, names) else []
    written = {key.value for key in keys if isinstance(key, ast.Constant)}
    return written | {key.id for key in keys if isinstance(key, ast.Name) and key.id.isupper()}


def test_a_key_of_the_session_state_is_a_choice_or_a_field_of_the_visit() -> None:
    from explorer.app.state import url_state, visit

    calls, choices = {"get", "pop", "setdefault", "to_dict"}, set(url_state.names())
    assert not choices & set(visit.KEYS), "one name has two meanings"
    written = set()
    for path in below("pages/", "explorer/", "app.py"):
        if path.stem not in ("visit", "sessions"):  # which holds a reader's next action
            assert keys_of_state(path) - calls <= choices, f"{path.name}: {keys_of_state(path)}"
        written |= keys_of_state(path)
    assert {"token", "layer", "edits", "other_of"} <= written, "keys are found"
    text = "\n".join(path.read_text("utf-8") for path in below("pages/", "explorer/"))
    for key in visit.KEYS:
        assert f"visit.{key}" in text, f"nobody reads or writes {key}"


def test_what_stands_around_every_page_shares_no_key_with_a_page() -> None:
    frame = below("explorer/app/layout/", "explorer/app/mounts.py")
    around = {key for path in frame for _, key in keys_of(path)}
    assert {"presenter", "to class"} <= around
    for path in below("pages/", "explorer/app/views/"):
        here = {key for _, key in keys_of(path)}
        assert not here & around, f"{path.name}: {here & around}"


def tables_by_tab(module: ModuleType, tabs: Collection[str]) -> dict[str, object]:
    """The mappings and lists of a module whose keys are ids of tabs and nothing else."""
    tables = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, (Mapping, tuple, list, AbstractSet)) and value
    }
    return {
        name: value
        for name, value in tables.items()
        if all(isinstance(each, str) and each in tabs for each in value)
    }


def test_the_facts_of_a_tab_stand_in_one_table() -> None:
    """What draws each is collected by its id beside it, and its sentences are in TOML."""
    from explorer.app.layout import tab
    from explorer.app.views import tabs
    from explorer.text import places

    example = ModuleType("example")
    example.AS_TRAINED, example.KINDS = ("circuits", "live"), ("circuits", "heat")
    assert [*tables_by_tab(example, places.ROWS)] == ["AS_TRAINED"]
    own = [*tables_by_tab(places, places.ROWS).values(), tabs.VIEWS]
    assert tab.VIEWS.keys() == places.ROWS.keys() - {"classroom"}  # which is a page by itself
    for path in below("explorer/"):
        if path.stem not in ("main", "__init__"):
            found = tables_by_tab(import_module(module_of(path)), places.ROWS)
            others = [name for name, each in found.items() if not any(each is one for one in own)]
            assert not others, f"{path.name}: {others}"


FEW = 5  # functions of one name; what every source of models offers, and a program's start, aside
VERBS = {name for name in vars(Model) if not name.startswith("_")} | {"load", "main"}


def test_a_class_name_means_one_class_and_a_function_name_few_functions() -> None:
    classes, functions = defaultdict(list), defaultdict(list)
    for path in SOURCES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(module_of(path))
        for node in parsed(path).body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions[node.name].append(module_of(path))
    assert not {name: found for name, found in classes.items() if len(found) > 1}
    many = {name: found for name, found in functions.items() if len(found) > FEW}
    assert not {name: many[name] for name in many.keys() - VERBS}
    assert many.keys() & VERBS  # without an exception there would be no need of one


MOST_LINES_OF_A_FUNCTION = 80


def test_functions_stay_short() -> None:
    """Their branches and parameters are bounded by ruff (C901, PLR0913)."""
    for path in [*SOURCES, *sorted((ROOT / "benchmarks").glob("*.py"))]:
        for node in nodes_of(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno:
                lines = node.end_lineno - node.lineno
                assert lines < MOST_LINES_OF_A_FUNCTION, f"{path}: {node.name}"


def test_a_module_is_called_by_its_own_name() -> None:
    """An import may add a module's folder to its name (`positions_text`), and nothing else."""
    for path in SOURCES:
        for node in nodes_of(path):
            if not isinstance(node, ast.ImportFrom) or not is_project(node.module or ""):
                continue
            folder = (node.module or "").rpartition(".")[2]
            for alias in node.names:
                if alias.asname and (ROOT / (node.module or "").replace(".", "/")).is_dir():
                    wanted = {alias.name, f"{alias.name}_{folder}"}
                    assert alias.asname in wanted, f"{module_of(path)}: {ast.unparse(node)}"


@pytest.mark.slow
def test_every_tolerance_of_the_suite_says_why_it_is_that() -> None:
    """It is made of the named bounds of tests/tolerances.py, or a comment stands at it."""
    asked = 0
    for path in sorted((ROOT / "tests").glob("*.py")):
        lines = path.read_text("utf-8").splitlines()
        for call in (each for each in nodes_of(path) if isinstance(each, ast.Call)):
            for given in call.keywords:
                if given.arg not in ("atol", "rtol", "abs", "rel"):
                    continue
                asked += 1
                parts = list(ast.walk(given.value))
                named = any(isinstance(each, ast.Name) and each.id.isupper() for each in parts)
                bare = any(isinstance(each, ast.Constant) and each.value for each in parts)
                told = any("# " in line for line in lines[call.lineno - 3 : call.end_lineno])
                assert named or told or not bare, f"{path.name}:{given.value.lineno}"
    assert asked > 300
