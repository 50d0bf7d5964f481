"""Places and tabs of the app as a reader opens them, without a browser."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from streamlit.testing.v1 import AppTest
from waiting import until

from explorer.app.state.jobs import Job
from explorer.components import codec
from explorer.text import places

ROOT = Path(__file__).resolve().parent.parent
MAIN = str(ROOT / "explorer" / "app" / "main.py")
TABS = tuple(places.ROWS)  # what tabs show, each by itself


def aimed(app: AppTest, tab: str, /, **asked: str) -> AppTest:
    """An app whose next run is at the address of a tab with these choices."""
    to = urlsplit(places.address(tab, asked))
    app.query_params.update(dict(parse_qsl(to.query, keep_blank_values=True)))
    if to.path != "/":  # which the app opens on
        app.switch_page(str(ROOT / "pages" / f"{to.path.strip('/')}.py"))
    return app


def page_at(tab: str, /, **asked: str) -> AppTest:
    """That tab in a new visit."""
    return aimed(AppTest.from_file(MAIN, default_timeout=120), tab, **asked).run()


def whole(app: AppTest) -> AppTest:
    """The app once what comes bit by bit is there: claims, and many sentences."""
    for _ in range(2 if app.session_state["page"] in ("claims", "sentences") else 0):
        until(lambda: not Job.running_jobs, seconds=120)
        app.run()
    return app


def go(app: AppTest, tab: str) -> AppTest:
    """The app after a reader went to a tab by place and tab."""
    place = places.place_of(tab)
    app.session_state["tabs"] = {**app.session_state["tabs"], place: tab}
    app.session_state["went"] = True
    app.query_params.clear()
    return app.switch_page(str(ROOT / "pages" / f"{place}.py")).run()


def open_menu(app: AppTest) -> AppTest:
    """The app with its menu of models open."""
    app.session_state["model_menu"] = True
    return app.run()


def choose_model(app: AppTest, name: str) -> AppTest:
    """The app after a reader chose a model in the menu."""
    return open_menu(app).button(key=f"model {name}").click().run()


def clean(app: AppTest) -> AppTest:
    """The app, in which nothing went wrong."""
    assert not app.exception and not app.error, app.exception or app.error
    return app


def asked_of(app: AppTest) -> dict[str, str]:
    """The choices in the address of a page."""
    return {name: "".join(values) for name, values in app.query_params.items()}


def told(app: AppTest, *kinds: str) -> str:
    """What elements of these kinds say, or notes of any kind, without escapes of Markdown."""
    kinds = kinds or ("markdown", "caption", "info", "warning", "error")
    return "\n".join(each.value for kind in kinds for each in app.get(kind)).replace("\\", "")


def panels_on(app: AppTest) -> list[dict]:
    """What the panels of a page were sent."""
    return [
        codec.decode(each.proto.bytes)[0]
        for each in app.get("bidi_component")
        if each.proto.component_name == "headlight.panel"
    ]
