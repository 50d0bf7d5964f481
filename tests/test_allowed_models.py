"""Which models a visitor may choose: any folder at home, what the operator lists on a public
server, and never what another visitor opened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tiny
from app_harness import open_menu, told
from conftest import needs_smollm2
from streamlit.testing.v1 import AppTest
from test_header import NOTES, ask, opened

from explorer.app.state import models
from explorer.app.state.settings import settings
from explorer.wording import model_descriptions
from models import smollm2
from models.example_texts import DEFAULT_MODEL
from models.runtime import registry
from models.runtime.caching import loaded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model in a folder."""
    return str(tiny.build("bert", tmp_path_factory.mktemp("mine")))


@pytest.fixture
def under(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Other settings of the server for as long as a test runs."""

    def set_to(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"HEADLIGHT_{name}", value)
        settings.cache_clear()

    yield set_to
    monkeypatch.undo()
    settings.cache_clear()


def listed(app: AppTest) -> list[str]:
    keys = (each.key for each in open_menu(app).button)
    return [key.removeprefix("model ") for key in keys if key.startswith("model ")]


def test_a_folder_is_one_model_however_it_is_written(folder: str) -> None:
    written = (folder, f"{folder}/", f" {folder}// ")
    assert {registry.spelled(f"ours:{each}") for each in written} == {f"ours:{folder}"}
    assert registry.spelled("hub:someone/large/") == "hub:someone/large"
    assert registry.spelled("encoder") == "encoder"
    app = ask(opened("claims"), f"hub:{folder}/")  # a name with its way
    assert not app.exception and app.session_state["model"] == f"hub:{folder}"


def test_a_folder_that_does_not_fit_stays_in_the_dialog_with_the_reason(tmp_path: Path) -> None:
    broken = tiny.build("bert", tmp_path)
    tiny.change(broken, intermediate_size=60)
    app = ask(opened("claims"), str(broken))
    assert "own classes" in told(app) and "(60, 32) by the configuration" in told(app)
    assert app.text_input(key="model_source").value == str(broken)
    assert app.session_state["model"] == DEFAULT_MODEL


def test_what_one_visitor_opened_stands_on_no_other_list(folder: str) -> None:
    mine = ask(opened("claims"), f"{folder}/")
    assert mine.session_state["model"] == f"ours:{folder}" and models.is_loaded(f"ours:{folder}")
    assert any(Path(folder).name in each for each in listed(mine))
    assert not any(Path(folder).name in each for each in listed(opened("claims")))
    # Nor does a link tell that somebody has opened it: it asks, as of any other.
    linked = opened("claims", model=f"ours:{folder}")
    assert linked.session_state["model"] == DEFAULT_MODEL
    assert "has not opened yet" in told(linked)


def test_the_menu_says_what_each_model_does_and_whose_it_is(
    folder: str, tmp_path: Path, under: Callable[..., None]
) -> None:
    theirs = f"ours:{tiny.build('bert', tmp_path)}"
    under(MODELS=theirs)
    groups: dict[str, dict[str, str]] = {}
    for each in open_menu(ask(opened("claims"), folder)).main:
        heading = {"caption": "value", "expander": "label"}.get(each.type, "")
        if heading and getattr(each, heading) in model_descriptions.GROUPS.values():
            members = groups.setdefault(getattr(each, heading), {})
        elif each.type == "button" and (each.key or "").startswith("model "):
            members[each.key.removeprefix("model ")] = each.label.partition("** ")[2]
    assert all(purpose for each in groups.values() for purpose in each.values())
    assert groups["Offered by this server"] == {theirs: model_descriptions.UNOPENED}
    assert groups["Yours"] == {f"ours:{folder}": "predicts masked words"}
    for name in {"minilm", "hub:minilm"} & set(models.server_models()):
        assert "into a vector" in groups["Published models"][name]


def test_a_public_server_opens_nothing_else_and_tells_nothing_of_its_folders(
    folder: str, under: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under(PUBLIC="1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.gguf").touch()
    of_system = (".", "..", "~", "~root", "~nobody-is-called-so", "here.gguf", "gone.gguf")
    said = set()
    for name in (folder, f"{folder}/nothing", "someone/large", *of_system):
        for way in ("ours:", "hub:"):
            app = opened("heads", model=f"{way}{name}")
            if name in of_system:
                assert f"{way}{name}" in told(app, *NOTES), "as it was written"
                for home in (tmp_path, Path.home(), Path("~root").expanduser()):
                    assert str(home) not in told(app, *NOTES)
                continue
            assert not app.exception and app.session_state["model"] == DEFAULT_MODEL
            said.add(told(app, *NOTES).replace(name, "NAME").replace(way, "WAY"))
            with pytest.raises(ValueError, match="not offered"):
                loaded(f"{way}{name}!")
    (one,) = said
    assert "which is not here" in one
    loading = models.Loading.start(folder)
    loading.wait(None)
    assert loading.problem == "This server opens no other models."
    open_menu(app).button(key="add model").click().run()
    assert not app.exception and not [each for each in app.text_input if "folder" in each.label]


def test_what_the_operator_lists_is_offered(folder: str, under: Callable[..., None]) -> None:
    under(PUBLIC="1", MODELS=f"ours:{folder}/, hub:someone/large")
    assert {*registry.names(), f"ours:{folder}", "hub:someone/large"} <= set(models.server_models())
    app = opened("claims", model=f"ours:{folder}")
    assert not app.exception and app.session_state["model"] == f"ours:{folder}"


@needs_smollm2
def test_a_public_sentence_names_no_place_of_this_server_and_the_log_does(
    under: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    assert smollm2.NAME not in registry.names() and str(tmp_path) in registry.absent()
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert smollm2.NAME in registry.names()
    cache.touch()  # nobody can make it any more
    monkeypatch.setattr(logging.getLogger("headlight"), "propagate", True)
    for public in ("", "1"):
        under(PUBLIC=public)
        loading = models.Loading.of(smollm2.NAME)
        loading.wait(None)
        assert (str(cache) in loading.problem) == (not public)
    assert loading.problem == "This server cannot read smollm2 now; choose another model."
    assert str(cache) in caplog.text
    # An operator's folder is told by the name that they gave it.
    broken = tiny.build("bert", tmp_path / "broken")
    tiny.change(broken, intermediate_size=60)
    under(MODELS=f"ours:{broken}")
    loading = models.Loading.of(f"ours:{broken}")
    loading.wait(None)
    assert "(60, 32) by the configuration" in loading.problem


def test_a_public_server_offers_the_checkpoints_of_a_run_that_it_lists(
    under: Callable[..., None], tmp_path: Path
) -> None:
    for step in (90, 500):
        tiny.build("bert", tmp_path / f"checkpoint-{step}")
    run = f"ours:{tmp_path}"
    under(PUBLIC="1", MODELS=run)
    steps = (f"{run}@90", f"{run}@500")
    assert all(map(models.is_allowed, (run, *steps)))
    assert not any(map(models.is_allowed, (f"{run}@7", f"{run}@../x", f"hub:{tmp_path}@90")))
    under(PUBLIC="1", MODELS=f"{run}/checkpoint-500")  # that one alone
    assert [models.is_allowed(each) for each in (run, *steps)] == [False, False, True]
