"""Every view of the pages on two families of today: attention and FFN one after the other (Qwen3),
and side by side (GPT-NeoX)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from app_harness import clean, go, panels_on
from test_hf_models_on_pages import NOT_SAID, opened, said, there
from tolerances import PASSED, TOTAL

from explorer.analysis import interventions
from explorer.views import interventions as interventions_view
from models.edits import PatchHead, from_line
from models.own_model import OwnModel

pytestmark = pytest.mark.slow

TEXT, OTHER = "the cat sat on the mat", "the dog ran to the house"
VIEWS = [
    *(("lookup", {"look_at": way}) for way in ("Hard", "Graph", "Scale")),
    ("lookup", {"look_at": "Graph", "look_heads": "Mean", "look_layout": "Circle"}),
    ("lookup", {"look_at": "Three", "look_before": "Scores"}),
    ("circuits", {}),
    *(("summaries", {"sum_what": what}) for what in ("Mean", "Rollout", "Values", "Writes")),
    *(("compare", {"other_view": view}) for view in ("Heads", "Answers", "Vectors")),
    ("compare", {"other_what": "Sentence", "other_text": OTHER, "other_view": "Nearest"}),
    *(("switches", {"effects": one}) for one in ("Attention", "Vectors")),
    *(("patching", {"donor": OTHER, "patch": p}) for p in ("Heads", "Sites")),
    ("lens", {"lens": "Rank"}),
    ("attribution", {"word": "7", "against": "11", "ffn": "1", "part": "head.self.1.2"}),
]
# Their numbers are held up against the model's own below.
NO_CAPTION = {("other_view", "Answers")}
BARS_ALONE = ("circuits", "patching", "word", "lens", "attribution")


FAMILIES = ("qwen3", "gpt_neox")


@pytest.fixture(params=FAMILIES, scope="module")
def modern(request: pytest.FixtureRequest, tiny_folder: Callable[[str], Path]) -> tuple[str, str]:
    """A family, and its model's name in memory."""
    return request.param, f"ours:{tiny_folder(request.param)}"


def loaded(modern: tuple[str, str]) -> OwnModel:
    handle = there(modern[1])
    assert isinstance(handle, OwnModel)
    return handle


@pytest.mark.parametrize(
    ("family", "page", "choices"),
    [(FAMILIES[at % 2], *view) for at, view in enumerate(VIEWS)],
    ids=lambda each: str(each),
)
def test_every_view_is_about_this_model(
    family: str, page: str, choices: dict[str, str], tiny_folder: Callable[[str], Path]
) -> None:
    name = f"ours:{tiny_folder(family)}"
    handle = loaded((family, name))
    app = clean(opened(page, model=name, text=TEXT, **choices))
    assert app.session_state.model == name and not app.warning
    assert all(app.session_state[each] == value for each, value in choices.items())
    captions = [" ".join(each["caption"]) for each in panels_on(app) if each["caption"]]
    assert all(name in each and handle.card.fingerprint in each for each in captions)
    assert captions or page in BARS_ALONE or NO_CAPTION & choices.items()
    if page != "switches":
        assert not [each for each in NOT_SAID[family] if each in said(app)]


def test_parts_and_neurons_add_up_to_the_logit_on_screen(modern: tuple[str, str]) -> None:
    name, handle = modern[1], loaded(modern)
    recording = handle.record(TEXT)
    token = len(recording.streams[0].tokens) - 1
    asked = {"word": "7", "against": "11", "ffn": "1"}
    app = clean(opened("predictions", model=name, text=TEXT, **asked))
    logits = handle.logits(recording, "decoder", token)
    parts, neurons = (header["figures"] for header in panels_on(app))
    total = parts[0]["rows"][-1]["values"][0]
    assert total == pytest.approx(logits[7] - logits[11], abs=TOTAL)
    ffn = next(row["values"][0] for row in parts[1]["rows"] if row["key"] == "ffn.1")
    added = neurons[0]["rows"]
    assert sum(row["values"][0] for row in added) == pytest.approx(ffn, abs=PASSED)
    assert any(row["label"] == "bias b₂" for row in added) == handle.model.config.bias_ffn


def test_what_it_writes_is_what_it_says_next(tiny_folder: Callable[[str], Path]) -> None:
    handle = loaded(("qwen3", name := f"ours:{tiny_folder('qwen3')}"))
    app = clean(opened("predictions", model=name, text=TEXT, temperature="0"))
    writing = handle.generate(TEXT)
    for _ in range(3):
        clean(app.button(key="write one").click().run())
        writing.add(int(writing.logits.argmax()))
    n = len(handle.record(TEXT).streams[0].ids)
    assert app.session_state.said == ".".join(map(str, writing.ids[n:]))


def test_a_sweep_runs_and_its_strongest_patch_becomes_an_edit(
    tiny_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interventions_view, "AT_ONCE", 0)  # as of a large model
    handle = loaded(("gpt_neox", name := f"ours:{tiny_folder('gpt_neox')}"))
    app = clean(opened("patching", model=name, text=TEXT, donor=OTHER, token="5"))
    clean(app.button(key="start sweep").click().run())
    for _ in range(500):
        if any("largest effect" in each["finding"] for each in panels_on(app)) and not any(
            each.key == "stop sweep" for each in app.button
        ):
            break
        clean(app.run())
    clean(app.button(key="put patch").click().run())
    (edit,) = from_line(app.session_state["edits"])
    logits = (handle.logits(handle.record(text), "decoder", 5) for text in (TEXT, OTHER))
    sweep = handle.patch_heads(TEXT, OTHER, "self", 5, *interventions.contrast(*logits))
    strongest = max(sweep.effects, key=lambda each: abs(each.value - sweep.clean))
    assert edit == PatchHead(OTHER, *strongest.place, "self")
    app = clean(go(app, "edit"))
    effect = next(each for each in panels_on(app) if each["title"] == "Effect of the edits")
    assert str(edit) in effect["caption"][0], "all of the page shows what it does"
