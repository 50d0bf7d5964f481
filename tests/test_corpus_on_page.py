"""The page Many sentences: what it reads of what is typed, of which attention, what its files say,
and a reading that is stopped and gone on with."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from app_harness import clean, page_at
from conftest import on_page, read_once
from streamlit.testing.v1 import AppTest
from tolerances import STORED

from explorer.analysis import corpus
from explorer.analysis.csv import ABOUT, unescape_cell
from explorer.components import codec
from explorer.layout import export_menu

pytestmark = pytest.mark.slow
SAID = ("The cat, a dog <b>sat</b>.", "It was *so*, so tired.", "Hello, world again and again.")


def typed(app: AppTest, *lines: str) -> AppTest:
    app.text_area(key="many text").set_value("\n".join(lines))
    return clean(app.run())


def finished(app: AppTest, go: bool = True) -> AppTest:
    """The page when everything has been read; what another reader has read is read already."""
    if go and any(each.key == "many go" for each in app.button):
        app.button(key="many go").click().run()
    for _ in range(400):
        if not [each for each in app.button if each.key in ("many go", "many cancel")]:
            return clean(app)
        app.run()
    raise AssertionError("the sentences are not read")


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    """What makes each file that a page puts into the Export menu, by the file's name."""
    files: dict[str, Callable[[], str]] = {}
    put = export_menu.offer

    def listed(label: str, name: str, mime: str, make: Callable[[], str]) -> None:
        files[name] = make
        put(label, name, mime, make)

    monkeypatch.setattr(export_menu, "offer", listed)
    return files


def map_of(app: AppTest) -> tuple[dict, np.ndarray]:
    """What the map of heads and places says, and its shares (head, place)."""
    proto = next(
        each.proto for each in on_page(app) if each.proto.component_name == "headlight.matrix"
    )
    header, blocks = codec.decode(proto.bytes)
    return header, blocks["v0"].reshape(len(header["rows"]), -1)


def asked_of(app: AppTest, name: str) -> str:
    """A choice as the address has it."""
    value = app.query_params.get(name, "")
    return value[0] if isinstance(value, list) else value


def text_of(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.caption, *app.markdown, *app.subheader))


def test_sentences_with_equally_many_commas_are_read_whole_and_a_column_when_it_is_chosen() -> None:
    app = typed(page_at("sentences"), *SAID)
    chosen = app.selectbox(key="many column")
    assert chosen.value == "" and chosen.options[0] == "Whole lines" and len(chosen.options) == 3
    finished(app)
    whole = app.dataframe[1].value
    assert set(whole["sentence"]) == set(SAID), "every sentence is read, to its end"
    typed(app, "id,said", '1,"The cat, a dog sat."', "2,", "3,It was so tired.")
    assert app.selectbox(key="many column").value == "", "what was typed is read as it is"
    app.selectbox(key="many column").set_value("said").run()
    assert any("first row contains the column names" in each.value for each in app.caption)
    finished(app)
    read = app.dataframe[1].value["sentence"]
    assert set(read) == {"The cat, a dog sat.", "It was so tired."}


@pytest.mark.parametrize(
    ("model", "attention", "file"),
    [
        ("encoder", "", "headlight-encoder-many"),
        ("translator", "", "headlight-translator-encoder-self-many"),
        ("translator", "decoder self", "headlight-translator-decoder-self-many"),
        ("translator", "cross", "headlight-translator-cross-many"),
    ],
)
def test_every_attention_is_read_and_its_files_hold_the_numbers_of_the_page(
    model: str, attention: str, file: str, offered: dict[str, Callable[[], str]]
) -> None:
    asked = {"attention": attention} if attention else {}
    app = finished(typed(page_at("sentences", model=model, layer="1", head="2", **asked), *SAID))
    assert asked_of(app, "attention") == attention
    handle = read_once(model)
    recordings = [handle.record(text) for text in SAID]
    at = [each.name for each in recordings[0].attention].index(attention) if attention else 0
    truth = [corpus.measure_attention(each, each.attention[at]) for each in recordings]

    files = {name: pd.read_csv(io.StringIO(make())) for name, make in offered.items()}
    by = truth[0].kind.look
    named = {f"{file}-places", f"{file}-patterns", f"{file}-L1H2-{by.replace(' ', '-')}"}
    assert named == {name.removesuffix(".csv") for name in files}
    for each in files.values():
        name = recordings[0].attention[at].name
        assert f"model {model} " in each[ABOUT][0] and f"{name}-attention" in each[ABOUT][0]

    header, shown = map_of(app)
    places = files[f"{file}-places.csv"]
    layers, heads = truth[0].shares.shape[:2]
    assert len(places) == layers * heads * len(header["columns"])
    shares = places["mean share"].to_numpy().reshape(shown.shape)
    np.testing.assert_allclose(shares, shown, atol=STORED)
    np.testing.assert_allclose(shares.sum(-1), 1, atol=STORED * 10)  # rows of 32 bits
    by_hand = np.mean([each.shares for each in truth], axis=0).reshape(shown.shape)
    np.testing.assert_allclose(shares, by_hand)
    assert [unescape_cell(each) for each in places["place"][: shown.shape[1]]] == header["columns"]

    habits, rows = files[f"{file}-patterns.csv"], app.dataframe[0].value.set_index("pattern")
    assert len(habits) == layers * heads * len(rows)
    of_head = habits[(habits.layer == 1) & (habits["head"] == 2)].set_index("pattern")
    for name, row in rows.iterrows():
        told = of_head.loc[name]
        assert told["sentences"] == row["sentences"]
        np.testing.assert_allclose(told["mean score"], row["mean score"], equal_nan=True)
        np.testing.assert_allclose(told["sd"], row["± sd"], equal_nan=True)

    sentences, rows = files[f"{file}-L1H2-{by.replace(' ', '-')}.csv"], app.dataframe[1].value
    read = sentences.drop(columns=ABOUT).map(
        lambda cell: unescape_cell(cell) if isinstance(cell, str) else cell
    )
    pd.testing.assert_frame_equal(read, rows, check_dtype=False)
    most = {each.text: float(each.largest[1, 2]) for each in truth}
    assert dict(zip(rows["sentence"], rows[by])) == pytest.approx(most)
    assert rows[by].is_monotonic_decreasing


def test_another_attention_is_there_at_once_and_the_link_says_which() -> None:
    app = finished(typed(page_at("sentences", model="translator"), *SAID))
    header, shown = map_of(app)
    assert "−1" in header["columns"] and "+10 %" not in header["columns"]
    app.segmented_control(key="attention shown").set_value("cross").run()
    header, shown = map_of(finished(app, go=False))
    assert "+10 %" in header["columns"] and "target word" in text_of(app)
    assert asked_of(app, "attention") == "cross"
    assert not [
        each for each in page_at("sentences").segmented_control if each.label == "Attention"
    ]


def test_a_long_reading_is_cancelled_loses_nothing_and_goes_on() -> None:
    lines = [f"{at} {'the cat sat on the mat and saw a dog ' * 12}" for at in range(60)]
    app = typed(page_at("sentences"), *lines)
    assert not app.get("progress") and "Read 60 sentences" in [each.label for each in app.button]
    app.button(key="many go").click().run()
    for _ in range(100):
        if map_is_there(app):
            break
        app.run()
    (bar,) = app.get("progress")
    assert 0 < bar.proto.value < 100 and " of 60 sentences read" in bar.proto.text
    app.button(key="many cancel").click().run()
    app.run()
    assert not clean(app).get("progress"), "nothing goes on"
    n = stopped_after(app)
    assert 0 < n < 60 and len(app.dataframe[1].value)
    app.run()
    # the sentence that it was at when it was told to stop is read to its end
    assert n <= stopped_after(app) <= n + 1
    assert app.button(key="many go").label == "Continue"
    finished(app)
    assert "Mean of 60 sentences" in text_of(app)
    assert int(app.dataframe[0].value["sentences"].max()) == 60


def stopped_after(app: AppTest) -> int:
    """How many sentences were read when the reading stopped, as the page says."""
    (said,) = (each.value for each in app.caption if "Stopped after" in each.value)
    return int(said.split()[2])


def map_is_there(app: AppTest) -> bool:
    return any(each.proto.component_name == "headlight.matrix" for each in on_page(app))
