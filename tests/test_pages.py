"""Every page opens, for any text, and what it sends is what the model did."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import TABS, asked_of, clean, page_at, panels_on, told
from conftest import AWKWARD, HOSTILE, in_turn, on_page, read_once, typed
from javascript import arrived
from streamlit.testing.v1 import AppTest
from tolerances import PASSED

from explorer.analysis import findings
from explorer.analysis.facts import RecordingFacts
from explorer.app.layout import current_recording
from explorer.app.server import static
from explorer.components import codec
from explorer.panels import spec
from explorer.screens.screen import of_words
from explorer.wording import model_descriptions
from explorer.wording.markdown_escape import literal
from models.example_texts import DEFAULT_TEXT, EXAMPLES, OPENING_TEXT
from models.runtime import registry
from models.runtime.cache import Cache
from models.runtime.caching import loaded

pytestmark = pytest.mark.slow


def opened(**asked: str) -> AppTest:
    """The first page at an address."""
    return page_at("heads", **asked)


def bytes_of(app: AppTest, panel: str) -> bytes:
    """The bytes that a panel of the page was sent."""
    parts = [each.proto.bytes for each in on_page(app)]
    return next(each for each in parts if codec.decode(each)[0].get("panel") == panel)


def sent(app: AppTest, name: str) -> tuple[dict, dict[str, np.ndarray]]:
    """The first figure of the panel `attention.NAME`, and the weights that came with it."""
    header, blocks = codec.decode(bytes_of(app, f"attention.{name}"))
    figure = header["figures"][0]
    return figure, {name: blocks[each["block"]] for name, each in figure["weights"].items()}


# The choices of an address that are texts.
TEXTS = ("text", "target", "second", "anchors", "retyped", "donor", "other_text", "claim_note")


# What breaks a page breaks it also beside other marks and letters.
TOGETHER = " ".join(AWKWARD[name] for name in ("special tokens", "letters", "marks"))


@pytest.mark.in_turn
@pytest.mark.parametrize("tab", TABS)
def test_any_text_opens_every_tab(tab: str) -> None:
    for text in in_turn(("", TOGETHER), 2, tab):
        app = clean(page_at(tab, **dict.fromkeys(TEXTS, text), compare="Sentence"))
        assert app.session_state["text"] == text


@pytest.mark.parametrize("text", [*AWKWARD.values(), HOSTILE["spaces"]])
def test_any_text_is_drawn(text: str) -> None:
    app = clean(opened(text=text, att_unit="Tokens"))
    recording = read_once("encoder").record(text)
    if text == "Hi":  # one word
        assert app.title[0].value == "One word has no other to attend to"
        assert app.button(key="works").label == "Show a sentence that works"
        return
    header, _ = sent(app, "heads")
    assert tuple(header["tokens"]) == recording.streams[0].tokens
    one, fine = sent(app, "head")
    shown, unknown = arrived(fine, (len(one["rows"]), len(one["columns"])))
    weights = recording.attention[0].pattern[tuple(one["at"])]
    assert (np.abs(shown - weights) <= unknown + 1e-4).all()
    found = findings.select_findings(findings.findings(recording))
    assert bool(app.title) == bool(found), "it opens on what is found"
    assert ("There is no text yet" in told(app, "info")) == (not text)
    assert ("There is only white space" in told(app, "info")) == bool(text and not text.strip())


def test_a_reader_chooses_a_head_an_example_and_a_text_over_the_limit() -> None:
    app = clean(opened())
    grid = bytes_of(app, "attention.heads")
    header, blocks = sent(app, "heads")
    recording = read_once("encoder").record(OPENING_TEXT)
    assert tuple(header["tokens"]) == recording.streams[0].tokens
    assert blocks["peak"].size == recording.attention[0].pattern[..., 0, 0].size
    app.session_state["layer"], app.session_state["head"] = "2", "5"
    clean(app.run())
    assert grid == bytes_of(app, "attention.heads"), "the grid is not sent again"
    header, blocks = sent(app, "head")
    assert header["at"] == [2, 5]
    expected = recording.attention[0].pattern[2, 5]
    np.testing.assert_array_equal(blocks["exact"].reshape(expected.shape), expected)
    app.session_state["examples"] = True
    app.run()
    for label, text in EXAMPLES.items():
        app.pills(key="preset").set_value(label).run()
        assert clean(app).session_state["text"] == text
    clean(typed(app, text := HOSTILE["10,000 characters"]))
    assert len(sent(app, "heads")[0]["tokens"]) == 512
    assert "reads 512" in app.warning[0].value and app.session_state["text"] == text
    assert "too long for a link" in told(app, "info") and "text" not in app.query_params


def test_the_address_says_what_is_on_screen_and_opens_the_same() -> None:
    app = clean(opened())
    typed(app, "Ram pushed Hari <b>")
    for name, value in {"layer": "1", "head": "3", "token": "2", "view menu": True}.items():
        app.session_state[name] = value
    app.run()
    app.segmented_control(key="view").set_value("Matrix").run()
    app.segmented_control(key="scale").set_value("Row").run()
    asked = asked_of(app)
    assert asked == {
        "text": "Ram pushed Hari <b>",
        "layer": "1",
        "head": "3",
        "token": "2",
        "view": "Matrix",
        "scale": "Row",
    }
    again = clean(opened(**asked))
    assert sent(again, "head")[0] == sent(app, "head")[0]
    assert sent(again, "heads")[0] == sent(app, "heads")[0]


@pytest.mark.parametrize(
    "asked",
    [
        {"layer": "99", "head": "-1"},
        {"layer": "9" * 5000},
        {"layer": "x", "token": "9999", "view": "<b>", "scale": "?"},
        {"model": "no *such* one"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    app = clean(opened(**asked))
    vote = next(each for each in panels_on(app) if each["panel"] == "attention.votes")
    first = RecordingFacts(loaded("encoder").record(DEFAULT_TEXT)).findings()[0]
    assert vote["figures"][0]["row"][0] == first.query
    assert not set(app.query_params) - {"text"}, "what was refused does not stay in the address"
    if "model" in asked:
        assert "no \\*such\\* one" in app.warning[0].value


def test_the_table_has_the_same_numbers() -> None:
    app = clean(opened(view="Table", text="the cat and the <b>dog</b>"))
    frame = app.dataframe[0].value
    assert list(frame.columns[:3]) == ["query \\ key", "0 [CLS]", "1 the"]
    np.testing.assert_allclose(frame.iloc[:, 1:].to_numpy().sum(axis=1), 1, atol=PASSED)


def test_captions_say_model_text_and_scale() -> None:
    shown = of_words("?text=Plants+eat+herbivores&layer=0&head=1&scale=Global&tone=Log")
    caption = " ".join(each for panel in shown.panels() for each in panel.caption)
    for part in ("model encoder", "Plants eat herbivores", "colour: log, 0 to 1", "edits: none"):
        assert part in caption


def test_text_is_literal_in_markdown() -> None:
    assert literal("**a** $x$ [b](c) :red[d]") == r"\*\*a\*\* \$x\$ \[b\]\(c\) \:red\[d\]"


def test_the_cache_keeps_within_its_bytes_and_what_was_used_last() -> None:
    small = Cache(limit=100)
    made = []
    for key in ("a", "b", "a", "c", "a", "b"):
        small.get(key, lambda key=key: made.append(key) or key, lambda value: 40)
    assert made == ["a", "b", "c", "b"] and len(small.entries) == 2


@pytest.mark.parametrize("path", ["/static/\0.js", f"/static/{'a' * 300}.js", "/static/../../x.js"])
def test_a_file_that_cannot_be_is_no_file(path: str) -> None:
    asked = {"type": "http", "method": "GET", "headers": [(b"accept-encoding", b"gzip")]}
    assert static._compressible_file({**asked, "path": path}) is None


def test_what_was_read_is_on_one_line_and_ends_where_the_model_stopped() -> None:
    assert spec.read_text(loaded("encoder").record("Hi\n there")) == "Hi there"
    long = spec.read_text(loaded("encoder").record("all work and no play " * 400))
    assert long.endswith(" …") and 450 < len(long.split()) < 515 and "all work" in long


def test_every_card_says_who_made_the_model_and_what_it_reaches() -> None:
    for name in registry.names():
        card, lines = registry.card(name), current_recording.card_lines(name)
        assert "Licence: Apache-2.0." in lines and "{" not in lines
        assert model_descriptions.purpose(name), name
        if card.get("scores"):
            said = model_descriptions.scores(name, card["scores"])
            assert said and f"- {said}" in lines, name
    # Earlier weights reach less than the card says of the last ones.
    whole, earlier = map(current_recording.card_lines, ("induction", "induction@450"))
    for part in (registry.card("induction")["headline"], "Best heads"):
        assert part in whole and part not in earlier


def test_a_weight_of_an_address_is_the_one_that_flow_opens() -> None:
    (flow,) = of_words("/architecture?flow_level=Weight&layer=1&head=5&token=9&source=4").panels()
    assert "“it” gives “'t”" in flow.finding
