"""The address: every choice declared once, what a link asks for followed or told, and Back in one
press."""

from __future__ import annotations

from types import SimpleNamespace
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import pytest
from app_harness import ROOT, asked_of, clean, go, open_menu, page_at, told
from conftest import needs_smollm2
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.runtime.state import SafeSessionState
from streamlit.runtime.state.session_state import WStates
from streamlit.testing.v1 import AppTest

from explorer.app.server.streamlit_patches import finish_callbacks, skip_forgotten_widgets
from explorer.app.state import url_state
from explorer.panels import link_words
from explorer.panels.choice import Choice, Parameter, by_name
from explorer.text import places
from models import smollm2
from models.contract.edits import ZeroHead, from_line, to_line
from models.example_texts import ASKED_TEXT, DEFAULT_TEXT, OPENING_TEXT
from models.runtime import registry
from models.runtime.run import Run


def opened(page: str, **asked: str) -> AppTest:
    return clean(page_at(page, **asked))


def test_a_name_in_an_address_means_one_thing() -> None:
    first, other = (Parameter("layer", int, False, default, Choice()) for default in (0, 1))
    assert set(by_name({"a page": [first], "a panel": [first]})["layer"]) == {"a page", "a panel"}
    with pytest.raises(ValueError, match="a panel means something else by layer than a page"):
        by_name({"a page": [first], "a panel": [other]})


def test_what_depends_on_a_text_goes_with_it_and_what_on_a_model_with_that() -> None:
    assert {"token", "mate", "beam", "said", "word"} <= set(url_state.depending_on("text"))
    assert {"layer", "head", "attention"} <= set(url_state.depending_on("model"))
    assert not {"view", "tone", "edits", "plane"} & set(url_state.depending_on("text", "model"))
    for name in url_state.depending_on("text", "model"):
        assert url_state.default(name) == "", "forgotten means nothing chosen"


@pytest.mark.slow
def test_what_a_link_asks_for_in_vain_is_told_in_one_sentence_once() -> None:
    wrong = {"layer": "99", "head": "x", "view": "<b>Nonsense</b>", "pattern": "of no head"}
    app = opened("heads", tone="Log", **wrong)
    said = told(app, "toast")
    assert said.count("The link asks for") == 1
    for name, word in wrong.items():
        assert f"{name} “{word}”" in said
    assert "tone" not in said and app.session_state["tone"] == "1"
    app.session_state["view menu"] = True
    app.run().segmented_control(key="scale").set_value("Row").run()
    assert not app.toast


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked, selected",
    [
        ({"word": "it"}, {"token": 9}),
        ({"token": "ANIMAL"}, {"token": 2}),
        ({"word": "the"}, {"token": 6}),  # spelled so; "The" comes first
        ({"head": "1.5", "word": "it"}, {"layer": 1, "head": 5, "token": 9}),
    ],
)
@pytest.mark.parametrize("tab", ["flow", "heads", "weight", "residual"])
def test_a_link_may_name_a_word_and_a_head_as_people_do(
    tab: str, asked: dict[str, str], selected: dict[str, int]
) -> None:
    assert Run("encoder", DEFAULT_TEXT).recording().streams[0].tokens[9] == "it"
    app = opened(tab, **asked)
    assert not app.toast
    address = asked_of(app)
    names = selected if tab != "residual" else {"token"}
    assert {name: address.get(name) for name in names} == {
        name: str(selected[name]) for name in names
    }
    assert "word" not in address


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["flow", "heads", "weight", "aggregated", "residual", "word"])
@pytest.mark.parametrize(
    "wrong, told_as",
    [
        ({"word": "elephant"}, "word “elephant”"),
        ({"word": "<b>it</b>"}, "word “<b>it</b>”"),
        ({"token": "999"}, "token “999”"),
        ({"token": "-1"}, "word “-1”"),
    ],
)
def test_a_word_that_is_not_there_is_told_and_nothing_else_is_lost(
    tab: str, wrong: dict[str, str], told_as: str
) -> None:
    app = opened(tab, text="The cat sat on the mat.", model="decoder", layer="1", **wrong)
    assert told_as in told(app, "toast")
    address = asked_of(app)
    assert {"token", "word"}.isdisjoint(address)
    assert (address["text"], address["model"]) == ("The cat sat on the mat.", "decoder")
    assert address["layer"] == "1"


@pytest.mark.slow
def test_a_link_may_switch_heads_off_as_people_write_them() -> None:
    app = opened("flow", off="1.5,0.3", word="it")
    assert from_line(app.session_state["edits"]) == (ZeroHead(1, 5), ZeroHead(0, 3))
    assert asked_of(app)["off"] == "1.5,0.3"
    app = opened("flow", off="five")
    assert "edits" not in asked_of(app) and "off" not in asked_of(app)
    assert "switched-off head “five”, which this text and model do not have" in told(app, "toast")


@pytest.mark.slow
def test_a_link_with_edits_and_heads_that_are_off_says_which_it_follows() -> None:
    app = opened("flow", edits="ZeroHead:1:2:self", off="1.5")
    assert from_line(app.session_state["edits"]) == (ZeroHead(1, 2),)
    assert asked_of(app)["off"] == "1.2"
    message = told(app, "toast")
    assert "both `edits` and `off`" in message and "“1.5” is left out" in message
    assert "do not have" not in message
    app = opened("flow", edits="ZeroHead:1:5:self", off="1.5")
    assert from_line(app.session_state["edits"]) == (ZeroHead(1, 5),)
    assert not app.get("toast"), "both say the same"


@pytest.mark.slow
def test_a_head_that_is_not_there_is_told() -> None:
    app = opened("flow", head="9.42", word="it")
    assert "layer “9”, head “42”" in told(app, "toast")
    assert asked_of(app)["token"] == "9"


@pytest.mark.slow
def test_what_no_link_asked_for_is_not_told() -> None:
    app = opened("heads", text="The cat sat on the mat", token="6")
    app.session_state["text"] = "Hi"  # a shorter one: token 6 is gone
    assert not app.run().toast


def act_again() -> None:
    """The reader's next action arrives, at the same address."""
    run = get_script_run_ctx()
    run.script_requests.request_rerun(
        RerunData(query_string=run.query_string, page_script_hash=run.page_script_hash)
    )


@pytest.mark.slow
def test_an_action_that_arrives_while_an_address_is_read_leaves_none_half_read(monkeypatch) -> None:
    app = opened("heads", text="Ram pushed Hari", layer="0", head="6")
    take = url_state._take_choices

    def interrupted(parameters: dict[str, str]) -> None:
        monkeypatch.setattr(url_state, "_take_choices", take)
        act_again()
        take(parameters)

    monkeypatch.setattr(url_state, "_take_choices", interrupted)
    app.query_params["head"] = "4"
    app.run()
    assert url_state._take_choices is take
    assert app.session_state["head"] == app.query_params["head"] == "4"


def moved_to(app: AppTest, address: dict) -> AppTest:
    """The app at an address that its browser has, and has told of."""
    app.query_params.clear()
    app.query_params.update(address)
    return app


@pytest.mark.slow
def test_a_choice_outlives_an_action_that_arrives_before_the_address_is_written(
    monkeypatch,
) -> None:
    app = open_menu(opened("heads", text="Ram pushed Hari"))
    old, write = dict(app.query_params), url_state.write
    app = open_menu(app.button(key="model decoder").click().run())

    def interrupted() -> None:
        monkeypatch.setattr(url_state, "write", write)
        act_again()
        write()

    # The browser knows of no new address when the next choice is made, and when one more follows.
    monkeypatch.setattr(url_state, "IN_FLIGHT", 0.0)
    monkeypatch.setattr(url_state, "write", interrupted)
    moved_to(app, old).button(key=f"model {registry.MINILM}").click().run()
    assert url_state.write is write
    assert app.session_state["model"] == registry.MINILM


@pytest.mark.slow
def test_a_choice_outlives_an_action_that_was_sent_before_its_address_came(monkeypatch) -> None:
    app = open_menu(opened("heads", text="Ram pushed Hari"))
    old = dict(app.query_params)
    app = app.button(key="model decoder").click().run()
    new = dict(app.query_params)
    moved_to(app, old).run()
    assert app.session_state["model"] == "decoder" and dict(app.query_params) == new
    # The same address later is one that the reader went back to.
    monkeypatch.setattr(url_state, "IN_FLIGHT", 0.0)
    moved_to(app, old).run()
    assert app.session_state["model"] == "encoder" and dict(app.query_params) == old


def test_an_action_that_arrives_in_a_callback_waits_for_its_end(monkeypatch) -> None:
    monkeypatch.setattr(  # put back afterwards
        SafeSessionState, "on_script_will_rerun", SafeSessionState.on_script_will_rerun
    )
    finish_callbacks()

    def script() -> None:
        import streamlit as st
        from test_address import act_again

        def choose() -> None:
            act_again()
            st.session_state.layer = 1
            st.session_state.head = 2

        st.button("Choose", on_click=choose)

    app = AppTest.from_function(script).run()
    app.button[0].click().run()
    assert (app.session_state["layer"], app.session_state["head"]) == (1, 2)


@pytest.mark.slow
def test_an_address_that_the_reader_goes_back_to_says_its_tab_too(monkeypatch) -> None:
    app = opened("weight", text="Ram pushed Hari", layer="1", head="2")
    heads = {name: value for name, value in app.query_params.items() if name != "tab"}
    app = go(app, "flow")
    assert dict(app.query_params) == heads, "the two places differ in their paths alone"
    back = SimpleNamespace(is_history_navigation=True)
    monkeypatch.setattr(url_state, "get_script_run_ctx", lambda **_: back)
    app.switch_page(str(ROOT / "pages" / "attention.py")).run()
    assert app.session_state["page"] == "heads" and dict(app.query_params) == heads


def test_the_value_of_a_widget_that_is_no_longer_known_is_no_error(monkeypatch) -> None:
    monkeypatch.setattr(WStates, "call_callback", WStates.call_callback)  # put back afterwards
    with pytest.raises(RuntimeError):
        WStates().call_callback("gone")
    skip_forgotten_widgets()
    WStates().call_callback("gone")


# ---- journeys ----------------------------------------------------------------


def asked(page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


@driver.browser_test
def test_back_undoes_the_first_choice_too(visitor: driver.Visitor) -> None:
    page = visitor.open().page
    first = page.locator("h1").inner_text()
    page.locator(".cell").nth(15).click()
    page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 7')")
    page.wait_for_url("**layer=1**head=7**")
    page.go_back()
    page.wait_for_url(lambda url: "head" not in url)
    page.wait_for_selector(f"{driver.VOTE}[data-token]")
    visitor.drawn()
    assert page.locator("h1").inner_text() == first and not asked(page)
    page.locator(".cell").nth(15).click()
    page.wait_for_url("**layer=1**head=7**")
    visitor.drawn().go("Attention", "Many sentences")
    page.wait_for_url("**tab=sentences**")
    page.go_back()
    page.wait_for_url(lambda url: "tab" not in url)
    page.go_back()
    page.wait_for_url(lambda url: "head" not in url)
    page.wait_for_selector(f"{driver.VOTE}[data-token]")
    visitor.drawn()
    assert page.locator("h1").inner_text() == first and not asked(page)


@driver.browser_test
def test_back_takes_one_press_a_choice_and_small_choices_are_no_stops(
    visitor: driver.Visitor,
) -> None:
    chosen = {"view": "Matrix", "layer": "0", "head": "2"}
    page = visitor.open(f"?{urlencode(chosen)}", "Ram pushed Hari").page
    before = page.evaluate("history.length")
    for name in ("Log", "Linear", "Log"):
        visitor.view(name)
        page.wait_for_url("**tone=1**" if name == "Log" else lambda url: "tone" not in url)
    assert page.evaluate("history.length") == before
    visitor.close_menu("[data-testid=stPopoverBody]")
    visitor.paste("Plants eat herbivores")
    page.wait_for_url("**text=Plants**")
    page.locator(".cell").nth(13).click()
    page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 5')")
    page.wait_for_url("**layer=1**head=5**")
    visitor.drawn().go("Architecture")
    page.wait_for_url("**/architecture?**")
    visitor.go("Attention", "One head")
    page.wait_for_url("**tab=weight**")
    page.go_back()
    page.wait_for_url(lambda url: "tab" not in url and "architecture" not in url)
    visitor.drawn().page.go_back()
    page.wait_for_url("**/architecture?**")
    page.wait_for_selector("[data-panel='architecture.flow'][data-token]")
    visitor.at_rest().page.go_back()
    page.wait_for_url(lambda url: "architecture" not in url)
    visitor.drawn()
    assert asked(page)["tone"] == ["1"] and asked(page)["head"] == ["5"]
    # A page that was left writes no address of its own, until the reader acts.
    page.go_forward()
    page.wait_for_url("**/architecture?**")
    for acts in (False, True):
        if acts:
            page.keyboard.press("Shift")
        page.evaluate("history.pushState({}, '', '/predict')")
        assert page.url.endswith("/predict") == acts
    page.go_back()
    visitor.at_rest()
    page.go_back()
    page.wait_for_url(lambda url: "architecture" not in url)
    visitor.drawn().page.go_back()
    first = ".cell[aria-pressed=true][aria-label^='Layer 0, head 2']"
    page.wait_for_selector(first)
    assert "Layer 0, head 2" in visitor.drawn().title() and "eat" in visitor.tokens()
    page.go_back()
    page.wait_for_url("**text=Ram**")
    page.wait_for_selector(f"{driver.HEAD} .token:has-text('Ram')")
    page.wait_for_selector(first)
    assert page.locator("textarea").first.input_value() == "Ram pushed Hari"


def shown(app: AppTest) -> tuple[str, str]:
    return app.session_state["text"], app.session_state["model"]


@needs_smollm2
@pytest.mark.slow
def test_a_tab_that_writes_opens_on_a_language_model_where_nothing_was_chosen() -> None:
    app = opened("generate")
    assert shown(app) == (ASKED_TEXT, smollm2.NAME)
    assert [*app.query_params] == ["tab"]
    assert any("Kathmandu" in each.value for each in app.title)


@needs_smollm2
@pytest.mark.slow
def test_what_a_page_opens_on_gives_way_to_what_was_chosen() -> None:
    default, written = (OPENING_TEXT, "encoder"), (ASKED_TEXT, smollm2.NAME)
    app = opened("heads")
    assert shown(app) == default
    assert shown(go(app, "word")) == default, "one text travels"
    app = go(app, "generate")
    assert shown(app) == written
    assert any("opens on an example" in each.value for each in app.caption)
    assert shown(go(app, "residual")) == default
    assert not any("opens on an example" in each.value for each in app.caption)
    app = go(app, "generate")
    app.button(key="take text back").click().run()
    assert shown(app)[0] == OPENING_TEXT and app.query_params["text"] == OPENING_TEXT
    app = opened("heads", text="Ram pushed Hari")
    assert shown(go(app, "word")) == ("Ram pushed Hari", "encoder")
    app = opened("heads", model="decoder")
    assert shown(go(app, "generate")) == (DEFAULT_TEXT, "decoder")
    app = opened("generate", temperature="1")  # a link means what it always meant
    assert app.session_state["page"] == "generate" and shown(app) == (DEFAULT_TEXT, smollm2.NAME)
    assert any("Other pages keep encoder" in each.value for each in app.caption)


@pytest.mark.parametrize("tab", [each.id for each in places.TABS.values() if not each.needs])
def test_a_bare_address_opens_on_the_first_sentence_and_every_link_names_its_text(tab: str) -> None:
    app = opened(tab)
    assert shown(app) == (OPENING_TEXT, "encoder")
    assert {*app.query_params} <= {"tab"}
    if tab == "classroom":
        return
    app = opened(tab, token="3")  # a link that names no text means what it always meant
    assert shown(app) == (DEFAULT_TEXT, "encoder")
    assert app.query_params["text"] == DEFAULT_TEXT
    named = {name: app.query_params[name] for name in app.query_params if name != "tab"}
    assert shown(opened(tab, **named)) == (DEFAULT_TEXT, "encoder")


@pytest.mark.parametrize("tab", [each for each, row in places.ROWS.items() if row.views])
def test_a_view_to_which_no_earlier_link_leads_opens_on_the_first_sentence(tab: str) -> None:
    views = places.ROWS[tab].views
    assert views is not None and set(views.newer) <= set(views.panels)
    for view in views.panels:
        text, _ = link_words.text_and_model({"tab": tab, views.choice: view}, tab)
        assert text == (OPENING_TEXT if view in views.newer else DEFAULT_TEXT)
        text, _ = link_words.text_and_model({views.choice: view, "token": "3"}, tab)
        assert text == DEFAULT_TEXT


@pytest.mark.slow
def test_a_link_names_heads_that_are_switched_off_as_people_do_and_keeps_earlier_names() -> None:
    line = to_line((ZeroHead(1, 5), ZeroHead(2, 3)))
    app = opened("edit", edits=line)
    assert asked_of(app)["off"] == "1.5,2.3" and "edits" not in asked_of(app)
    again = opened("edit", off="1.5,2.3")
    assert again.session_state["edits"] == app.session_state["edits"] == line
    for other in (line + ",WithoutScale:", "ZeroHead:0:1:cross", "ZeroHead:0-1:2-3:self"):
        words = {"edits": other}
        assert link_words.written(words) == words, "other edits keep their names"
    earlier = {
        "anatomy_cell": "9.2",
        "att_word": "none",
        "att_right": "Open",
        "other_what": "Model",
    }
    now = {"weight_at": "9.2", "token": "every", "verify": "1", "compare": "Model"}
    assert link_words.in_todays_words(earlier) == now
