"""The tab Many sentences: what it reads of what is typed, of which attention, and a reading that is
stopped and resumed."""

from __future__ import annotations

import pytest
from app_harness import asked_of, clean, page_at, panels_on, told
from streamlit.testing.v1 import AppTest
from waiting import until

from explorer.analysis import opening
from models.example_texts import DEFAULT_MODEL, DEFAULT_TEXT
from models.runtime.caching import loaded

pytestmark = pytest.mark.slow
LINES = ("The cat, a dog <b>sat</b>.", "It was *so*, so tired.", "Hello, world again and again.")


def typed(app: AppTest, *lines: str) -> AppTest:
    app.text_area(key="sentences").set_value("\n".join(lines))
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


def listed(app: AppTest) -> list[str]:
    """The sentences that the page lists, by their score."""
    return [row["label"] for row in panels_on(app)[1]["figures"][0]["rows"]]


def test_the_examples_are_read_when_the_tab_is_opened() -> None:
    app = finished(page_at("sentences", layer="1", head="5"), go=False)
    patterns, highest, distances = panels_on(app)
    assert "In 36 of 48 test sentences, layer 1, head 5" in patterns["finding"]
    tests, grid = patterns["figures"]
    counts = [row["texts"][0] for row in tests["rows"]]
    assert counts == ["46 of 48", "45 of 48", "36 of 48"] and tests["rows"][2]["selected"]
    assert grid["marks"] == [[1, 5, ""]] and distances["title"]
    assert "Not the scale of the bars" in grid["note"] and "of 10 sentences" in grid["title"]
    assert "Pronouns attend to nouns" in " ".join(patterns["caption"])
    assert app.selectbox(key="many_by menu").options[0] == "pronoun to noun (strongest)"
    app.selectbox(key="many_by menu").set_value("induction").run()
    patterns, highest, distances = panels_on(clean(app))
    assert "induction" in highest["title"]
    assert "after its previous occurrence" in patterns["figures"][0]["note"]
    assert asked_of(app)["many_by"] == "induction"


def test_the_head_that_heads_opens_on_is_followed_until_a_pattern_is_asked_for() -> None:
    app = finished(page_at("sentences"), go=False)
    recording = loaded(DEFAULT_MODEL).record(DEFAULT_TEXT)
    layer, head = opening.head(recording, recording.attention[0])
    assert f"layer {layer}, head {head} finds the noun" in panels_on(app)[0]["finding"]
    app.selectbox(key="many_by menu").set_value("previous").run()
    patterns = panels_on(clean(app))[0]
    assert "the highest of 32 heads" in patterns["finding"]


def test_a_column_of_a_table_is_read_when_it_is_chosen() -> None:
    app = typed(page_at("sentences"), *LINES)
    chosen = app.selectbox(key="sentences_column")
    assert chosen.value == "" and chosen.options[0] == "Whole lines" and len(chosen.options) == 3
    assert set(listed(finished(app))) == set(LINES), "every sentence is read, to its end"
    typed(app, "id,sentence", '1,"The cat, a dog sat."', "2,", "3,It was so tired.")
    assert app.selectbox(key="sentences_column").value == "", "what was typed is read as it is"
    app.selectbox(key="sentences_column").set_value("sentence").run()
    assert "first row contains the column names" in told(app, "caption")
    assert set(listed(finished(app))) == {"The cat, a dog sat.", "It was so tired."}


def test_a_link_opens_the_own_sentences_and_reads_them() -> None:
    app = typed(page_at("sentences"), "id,sentence", "1,\"A <b>cat</b> sat & 'slept'.\"", "2,猫 🐈")
    app.selectbox(key="sentences_column").set_value("sentence").run()
    link = asked_of(app)
    assert link["many_column"] == "sentence"
    other = finished(page_at("sentences", **link), go=False)
    assert set(listed(other)) == {"A <b>cat</b> sat & 'slept'.", "猫 🐈"}
    assert other.text_area(key="sentences").value == app.text_area(key="sentences").value
    assert asked_of(other) == link
    typed(other, *LINES)
    assert "many_column" not in other.query_params, "another text has no such column"


def test_another_attention_is_there_at_once_and_the_link_says_which() -> None:
    app = finished(typed(page_at("sentences", model="translator"), *LINES))
    assert "−1" in panels_on(app)[2]["figures"][0]["columns"]
    app.segmented_control(key="attention shown").set_value("cross").run()
    app = finished(app, go=False)
    assert "+10 %" in panels_on(app)[2]["figures"][0]["columns"]
    assert app.session_state["attention"] == "cross"
    controls = page_at("sentences").segmented_control
    assert not [each for each in controls if each.label == "Attention"]


def test_a_long_reading_is_cancelled_loses_nothing_and_goes_on() -> None:
    lines = [f"{at} {'the cat sat on the mat and saw a dog ' * 5}" for at in range(60)]
    app = typed(page_at("sentences"), *lines)
    assert not app.get("progress") and "Read 60 sentences" in [each.label for each in app.button]
    app.button(key="many go").click().run()
    until(lambda: (panels_on(app) and app.get("progress")[0].proto.value) or not app.run())
    (bar,) = app.get("progress")
    assert 0 < bar.proto.value < 100 and " of 60 sentences read" in bar.proto.text
    app.button(key="many cancel").click().run()
    app.run()
    assert not clean(app).get("progress"), "nothing goes on"
    n = stopped_after(app)
    assert 0 < n < 60 and panels_on(app)
    app.run()
    # the sentence at which it was stopped is read to its end
    assert n <= stopped_after(app) <= n + 1
    assert app.button(key="many go").label == "Continue"
    assert "over 60 sentences" in panels_on(finished(app))[0]["finding"]


def stopped_after(app: AppTest) -> int:
    """The number of sentences that were read when the reading stopped, as the page says."""
    (line,) = (each.value for each in app.caption if "Stopped after" in each.value)
    return int(line.split()[2])
