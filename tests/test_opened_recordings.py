"""Recordings from files in the app, without a browser: what the tabs show of one, whose it is, and
how much may be open."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from app_harness import TABS, clean, go, page_at, panels_on, told
from conftest import read_once
from streamlit.testing.v1 import AppTest

from explorer.app.state import host, models, opened_recordings
from explorer.text import places
from models.contract import edits
from models.contract.recording_file import to_npz
from models.example_texts import DEFAULT_MODEL
from models.inputs import recorded_model
from models.inputs.recorded_model import RecordedModel

pytestmark = pytest.mark.slow
TEXT = "My sister has a red car."
CARDS = ("lessons", "concepts")  # tabs that open on cards, which are no panels


def opened_in(app: AppTest, model: RecordedModel) -> AppTest:
    """The app after its dialog has opened a recording."""
    app.session_state["opened_recordings"] = {model.name: model}
    app.session_state["opened_models"] = (model.name,)
    app.session_state["wanted_model"] = model.name
    app.session_state["wanted_text"] = model.recorded.text
    return clean(app.run())


@pytest.fixture(params=["encoder", "decoder", "translator"])
def model(request: pytest.FixtureRequest) -> Iterator[RecordedModel]:
    """A recording of each kind of model, from a file."""
    yield recorded_model.opened(to_npz(read_once(request.param).record(TEXT)))


def test_every_tab_draws_it_or_says_in_a_sentence_what_it_needs(model: RecordedModel) -> None:
    app = opened_in(page_at("heads"), model)
    drawn = {"heads", "weight", "aggregated", "flow", "residual", "embeddings"}
    for tab in TABS:
        if tab == "classroom":
            continue
        clean(go(app, tab))
        assert app.session_state.model == model.name, "no other model stands in its place"
        said = [each.value for each in app.info]
        if places.ROWS[tab].needs:
            assert (
                len(said) == 1
                and said[0].startswith(("This tab needs", "This view needs"))
                and not panels_on(app)
            )
        else:
            assert panels_on(app) or said or tab in CARDS, tab
        assert panels_on(app) or tab not in drawn, tab


def test_another_text_is_not_read_and_the_way_back_is_offered() -> None:
    model = recorded_model.opened(to_npz(read_once("decoder").record(TEXT, edits.ZeroHead(0, 1))))
    app = opened_in(page_at("heads"), model)
    assert "under edits: head 1 of layer 0" in told(app)
    app.session_state["wanted_text"] = "The dog ran."
    clean(app.run())
    assert not panels_on(app) and "recording of one text" in told(app)
    clean(app.button(key="text of recording").click().run())
    assert panels_on(app) and app.session_state.text == TEXT


def test_it_is_of_one_visit_alone() -> None:
    model = recorded_model.opened(to_npz(read_once("encoder").record(TEXT)))
    opened_in(page_at("heads"), model)
    stranger = clean(page_at("heads", model=model.name, text=TEXT))
    assert stranger.session_state.model == DEFAULT_MODEL
    assert "which is not here" in told(stranger)
    with models.of_all_visitors(), pytest.raises(ValueError, match="not offer"):
        host.app.model(model.name)


def opens(data: bytes, own: bool = False) -> None:
    import streamlit as st

    from explorer.app.state import opened_recordings

    try:
        st.session_state.name = opened_recordings.open_file(data, of_server=own).name
    except ValueError as why:
        st.session_state.why = str(why)


def test_a_visit_lets_its_earlier_ones_go_where_there_is_no_room_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gc.collect()
    first, second = (to_npz(read_once("encoder").record(f"{TEXT} {at}")) for at in (1, 2))
    size = recorded_model.n_bytes(recorded_model.opened(first))
    gc.collect()
    limits = opened_recordings.settings()
    monkeypatch.setattr(opened_recordings, "settings", lambda: limits_of(limits, size * 5 // 2))
    app = AppTest.from_function(opens, kwargs={"data": first}, default_timeout=60)
    held = app.run().session_state["opened_recordings"]
    assert len(held) == 1 and app.session_state["opened_models"] == (app.session_state.name,)
    other = AppTest.from_function(opens, kwargs={"data": second}, default_timeout=60).run()
    assert "MiB of numbers, and at most" in other.session_state.why, "half of what is left is less"
    earlier = app.session_state.name
    app = AppTest.from_function(opens, kwargs={"data": second}, default_timeout=60)
    for key in ("opened_recordings", "opened_models"):
        app.session_state[key] = {**held} if key == "opened_recordings" else (earlier,)
    del held
    app.run()
    assert [*app.session_state["opened_recordings"]] == [app.session_state.name] != [earlier]
    assert app.session_state["opened_models"] == (app.session_state.name,)


def test_visits_leave_room_for_the_next_however_much_they_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each takes what it can get; the file that the server was started with may take all."""
    gc.collect()
    files = [
        to_npz(read_once("encoder").record(f"{'The cat sat on the mat. ' * n} {n}"))
        for n in range(1, 9)
    ]
    sizes = [recorded_model.n_bytes(recorded_model.opened(each)) for each in files]
    gc.collect()
    assert sizes == sorted(sizes)
    limits, whole = opened_recordings.settings(), 2 * sizes[-1]
    monkeypatch.setattr(opened_recordings, "settings", lambda: limits_of(limits, whole))
    visits = []
    for _ in range(4):
        for data in reversed(files):
            app = AppTest.from_function(opens, kwargs={"data": data}, default_timeout=60).run()
            if "name" in app.session_state:
                visits.append(app)
                break
    held = sum(map(recorded_model.n_bytes, opened_recordings._of_all))
    assert len(visits) == 4 and held < whole, "the greedy ones leave room"
    own = AppTest.from_function(opens, kwargs={"data": files[-1], "own": True}, default_timeout=60)
    assert "name" in own.run().session_state, "the server's own file"


def limits_of(limits: object, size: int) -> object:
    """The server's settings with room for so many bytes."""
    from dataclasses import replace

    return replace(limits, cache_bytes=size)
