"""Whatever a tokenizer's rules do with a text, it is one error that the app knows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tiny
import tokenizers
from app_harness import MAIN, aimed, go
from malformed_models import IN_VAIN, VAIN_TEXT
from streamlit.testing.v1 import AppTest

from explorer.app.state import models
from explorer.wording.markdown_escape import literal
from models.contract.recording import NotEncoded
from models.runtime import registry
from models.runtime.caching import loaded
from models.tokens import encoding

ROOT = Path(__file__).resolve().parent.parent
WAYS = pytest.mark.parametrize("way", ["ours:", "hub:"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose tokenizer panics on a text that no trial finds."""
    made = tiny.build("bert", tmp_path_factory.mktemp("panics"))
    IN_VAIN(made)
    return made


def test_the_library_panics_on_that_text(folder: Path) -> None:
    """What the tests below are about: else they pass by accident."""
    rules = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    with pytest.raises(BaseException) as panic:
        rules.encode(VAIN_TEXT)
    assert not isinstance(panic.value, Exception) and type(panic.value).__name__ == encoding.PANIC


@pytest.mark.slow
@WAYS
def test_a_panic_is_an_error_like_any_other(way: str, folder: Path) -> None:
    model = registry.load(f"{way}{folder}")
    assert model.record("The cat sat.").streams[0].tokens
    with pytest.raises(NotEncoded, match="tokenizer fails on this text"):
        model.record(VAIN_TEXT)
    if way == "ours:":
        with pytest.raises(NotEncoded):
            model.tokenizer.ids([VAIN_TEXT, "cat"])


def test_a_stop_of_the_program_is_none() -> None:
    for stop in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(stop), encoding.guarded():
            raise stop


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "way"),
    [("heads", "ours:"), ("word", "hub:"), ("compare", "ours:"), ("classroom", "hub:")],
)
def test_a_page_says_it_in_one_sentence_and_its_run_ends(page: str, way: str, folder: Path) -> None:
    name = f"{way}{folder}"
    models.record_trial(name, registry.stamp(name))  # a trial that found nothing
    loaded(name)
    app = aimed(AppTest.from_file(MAIN, default_timeout=60), "heads", model=name, text=VAIN_TEXT)
    app.session_state["opened_models"] = (name,)
    app = app.run()
    if page != "heads":
        go(app, page)
    assert not app.exception
    (said,) = (each.value for each in app.warning if "tokenizer" in each.value)
    assert said == literal(str(NotEncoded()))
    app.session_state.text, app.session_state.acted = "The cat sat.", True
    app.run()
    assert not app.exception and not [each for each in app.warning if "tokenizer" in each.value]
    models.forget(name)


def test_rules_work_in_one_place_alone() -> None:
    made = r"Tokenizer\.from_(file|str)\("
    calls = re.compile(rf"\b(bpe|_?rules|pieces|Tokenizer)\.(en|de)code(_batch)?\(|{made}")
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("models", "explorer", "pages")
        for path in (ROOT / folder).rglob("*.py")
        if calls.search(path.read_text("utf-8"))
    ]
    assert found == ["models/tokens/encoding.py"]
