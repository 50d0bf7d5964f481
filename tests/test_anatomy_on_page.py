"""The page that opens a cell down to its vectors."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, on_page, read_once
from streamlit.testing.v1 import AppTest
from tolerances import STORED, SUMMED

from explorer.analysis import anatomy
from explorer.components import codec
from explorer.layout import controls
from models.edits import (
    WithoutScale,
    ZeroHead,
    to_line,
)
from models.model import Model

TEXT = "The red car is in front of the white house."


# ---- the page ----------------------------------------------------------------


def opened_page(**asked: str) -> AppTest:
    return page_at("anatomy", **asked)


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, [each.value for each in app.exception]
    return app


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the browser was sent of that kind."""
    found = [
        codec.decode(element.proto.bytes)
        for element in on_page(app)
        if element.proto.component_name == "headlight.anatomy"
    ]
    return next(each for each in found if each[0]["kind"] == kind)


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_is_opened(text: str) -> None:
    app = clean(opened_page(text=text))
    header, blocks = sent(app, "story")
    recording = read_once("encoder").record(text)
    tokens = recording.streams[0].tokens
    assert tuple(header["labels"]) == tokens and header["wrote"]
    where = header["layer"], header["head"], header["query"]["at"]
    np.testing.assert_allclose(
        blocks["weights"], recording.attention[0].pattern[where], atol=SUMMED
    )
    assert header["weight"] == pytest.approx(
        float(blocks["weights"][header["key"]["at"]]), rel=STORED
    )
    assert len(header["rows"]) <= anatomy.MOST_ROWS and header["key"]["at"] in header["rows"]
    assert len(codec.encode(header, blocks)) < 120_000, (
        "another cell of a long text must not send a large message"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "attention"),
    [
        ("decoder", ""),
        ("translator", ""),
        ("translator", "decoder self"),
        ("translator", "cross"),
        ("copy", "cross"),
        ("grammar-masked", ""),
        ("minilm", ""),
    ],
)
def test_it_opens_on_the_cell_of_the_strongest_finding(model: str, attention: str) -> None:
    app = clean(opened_page(model=model, attention=attention, text=TEXT))
    header, _ = sent(app, "story")
    recording = read_once(model).record(TEXT)
    seen = [one for one in controls.recording_findings(recording) if one.page == "attention"]
    if attention:
        seen = [one for one in seen if one.attention == attention]
    first = next(iter(seen), None)
    if first is None:
        assert recording.attention[0].pattern[header["layer"], header["head"]].any()
    else:
        shown = attention or app.session_state["attention"] or recording.attention[0].name
        assert shown == first.attention
        assert (header["layer"], header["head"]) == first.at
        if first.query >= 0 and first.keys:
            assert (header["query"]["at"], header["key"]["at"]) == (first.query, first.keys[0])
    assert "anatomy_cell" not in app.query_params
    if attention == "cross":
        assert header["query"]["label"].startswith("→ ")


@pytest.mark.slow
def test_another_cell_costs_no_pass_and_leaves_the_matrix_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = clean(opened_page(text=TEXT))
    before = [
        each.proto.bytes
        for each in on_page(app)
        if codec.decode(each.proto.bytes)[0].get("kind") == "matrix"
    ]
    passes = []
    record = Model.record
    monkeypatch.setattr(Model, "record", lambda *asked: passes.append(asked) or record(*asked))
    for cell in ("2.5", "7.1"):
        app.session_state["token"], app.session_state["anatomy_cell"] = cell[0], cell
        header, _ = sent(clean(app.run()), "story")
        assert f"{header['query']['at']}.{header['key']['at']}" == cell
    app.selectbox(key="head shown").set_value(3).run()
    assert sent(clean(app), "story")[0]["head"] == 3 and not passes
    app.selectbox(key="head shown").set_value(wire_head(before)).run()
    after = [
        each.proto.bytes
        for each in on_page(app)
        if codec.decode(each.proto.bytes)[0].get("kind") == "matrix"
    ]
    assert before == after and not passes


def wire_head(payloads: list[bytes]) -> int:
    return int(codec.decode(payloads[0])[0]["about"].rpartition(" ")[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "cell"),
    [
        ({"layer": "2", "head": "5", "token": "4", "anatomy_cell": "4.7"}, (2, 5, 4, 7)),
        ({"layer": "2", "head": "5", "token": "4"}, (2, 5, 4, None)),
        ({"layer": "2", "head": "5", "token": "4", "anatomy_cell": "3.7"}, (2, 5, 4, None)),
        ({"layer": "2", "head": "5", "token": "4", "anatomy_cell": "4.999"}, (2, 5, 4, None)),
        (
            {"layer": "1", "head": "0", "token": "x", "anatomy_cell": "<b>.9" + "9" * 3000},
            (1, 0, None, None),
        ),
    ],
)
def test_a_link_names_the_cell_and_a_wrong_one_still_opens(
    asked: dict[str, str], cell: tuple[int, int, int | None, int | None]
) -> None:
    app = clean(opened_page(text=TEXT, **asked))
    header, _ = sent(app, "story")
    layer, head, query, key = cell
    pattern = read_once("encoder").record(TEXT).attention[0].pattern[layer, head]
    if query is None:
        query = header["query"]["at"]
        assert pattern[query].max() == pattern.max()
    if key is None:
        key = int(pattern[query].argmax())
        assert "anatomy_cell" not in app.query_params
    assert (header["layer"], header["head"], header["query"]["at"], header["key"]["at"]) == (
        layer,
        head,
        query,
        key,
    )


@pytest.mark.slow
def test_a_forbidden_cell_says_so() -> None:
    header, blocks = sent(
        clean(
            opened_page(
                model="decoder", text=TEXT, layer="1", head="2", token="3", anatomy_cell="3.6"
            )
        ),
        "story",
    )
    assert (
        header["weight"] == 0
        and not header["allowed"]
        and header["masks"]
        and "−∞" in header["maskWhy"]
    )
    assert not blocks["weights"][4:].any() and blocks["allowed"].tolist() == [1] * 4 + [0] * (
        len(blocks["allowed"]) - 4
    )


@pytest.mark.slow
def test_what_is_set_on_the_page_of_switches_changes_the_story_and_can_be_left() -> None:
    app = clean(opened_page(text=TEXT, edits=to_line((WithoutScale(),)), layer="0", head="1"))
    header, _ = sent(app, "story")
    assert (
        header["divisor"] == 1
        and "without the scale" in header["scaleWhy"]
        and "without the scale" in " ".join(header["caption"])
    )
    next(button for button in app.button if button.label == "Show the unedited model").click().run()
    assert sent(clean(app), "story")[0]["dividing"] == "√32" and "edits" not in app.query_params
    for line in ("Nonsense:1", to_line((ZeroHead(99, 0),))):
        refused = clean(opened_page(text=TEXT, edits=line))
        assert (
            any("do not apply" in each.value for each in refused.caption)
            and sent(refused, "story")[0]["dividing"] == "√32"
        )


@pytest.mark.slow
def test_captions_shapes_and_forms_carry_this_sentence() -> None:
    app = clean(
        opened_page(text="Ram pushed Hari", layer="1", head="2", token="2", anatomy_cell="2.1")
    )
    header, _ = sent(app, "story")
    told = " ".join((header["title"], *header["caption"]))
    for words in (
        "query pushed (2)",
        "key Ram (1)",
        "model encoder",
        "layer 1, head 2",
        "edits: none",
        "Text: Ram pushed Hari",
    ):
        assert words in told
    n = len(header["labels"])
    shapes, _ = sent(app, "shapes")
    assert (shapes["n"], shapes["m"], shapes["heads"], shapes["d_head"], shapes["d_model"]) == (
        n,
        n,
        8,
        32,
        256,
    )
    verdict = next(each.value for each in app.markdown if "three formulas" in each.value)
    assert "**pushed**" in verdict and "× 10⁻" in verdict
    frames = [each.value for each in app.dataframe]
    assert frames[0]["q × k"].sum() == pytest.approx(frames[1]["q · k"][1], rel=STORED)
    assert frames[1]["weight"].sum() == pytest.approx(1) and frames[4][
        "share along the sum"
    ].sum() == pytest.approx(1)
