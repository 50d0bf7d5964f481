"""Files and links of a stranger in a real browser: every text of a recording and of a lesson is
markup, and none of it runs, leads away or asks for anything."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from driver import GRID, Visitor, browser_test
from playwright.sync_api import expect
from test_drop_journey import drop

from explorer.text.lesson import Item, Lesson
from models.contract import npz
from models.contract.recording_file import to_npz
from models.runtime.run import Run

TEXT = "The animal was tired."
RUN = "top.owned = 1; fetch('/owned')"
TO = f"javascript:{RUN}"
MARKUP = f'"\'></p></svg><script>{RUN}</script><img src=/owned onerror="{RUN}">'
LINKS = f"[owned]({TO}) ![owned](/owned.png) <{TO}> :red[owned] $\\href{{{TO}}}{{owned}}$"
WAYS = (  # to tabs that draw a recording
    ("", "", "attention.heads"),
    ("tab", "One head", "anatomy.weight"),
    ("link", "Architecture", "architecture.flow"),
    ("tab", "Residual stream", "residual.updates"),
)
# In the page and in its views: what runs, loads or leads where a stranger says.
MADE = """() => {
  const LEADS = ["href", "src", "srcset", "data", "action", "formaction", "xlink:href"];
  const theirs = (value) => {  // an address of ours may hold their words as words
    const { protocol, pathname, host } = new URL(value, document.baseURI);
    return protocol === "javascript:" || `${host}${pathname}`.includes("owned");
  };
  const found = [];
  const walk = (root) => {
    for (const each of root.querySelectorAll("*")) {
      const said = [...each.attributes].filter(({ name, value }) =>
        name.startsWith("on") || (name === "style" && /url\\(.*owned/.test(value)) ||
        (LEADS.includes(name) && theirs(value)));
      for (const { name, value } of said) found.push(`${each.localName} ${name}=${value}`);
      if (each.localName === "script" && /owned/.test(each.textContent)) found.push("script");
      if (each.shadowRoot) walk(each.shadowRoot);
    }
  };
  walk(document);
  return found;
}"""


def recording(kind: str) -> bytes:
    """A file whose model, weights, text and words are of a stranger."""
    arrays = npz.read(to_npz(Run(kind, TEXT).recording(), compressed=False))
    header = json.loads(str(arrays.pop("header")))
    header["text"] += MARKUP
    header["model"] |= {"name": MARKUP, "weights": MARKUP + LINKS}
    for stream in header["stream"]:
        stream["tokens"][1:4] = [MARKUP, LINKS, TO]
    made = io.BytesIO()
    np.savez(made, header=np.array(json.dumps(header)), **arrays)
    return made.getvalue()


def hears(visitor: Visitor) -> list[str]:
    """What the page asks its reader, as it comes."""
    dialogs: list[str] = []
    visitor.hears["dialog"] = lambda one: (dialogs.append(one.message), one.dismiss())
    visitor.page.on("dialog", visitor.hears["dialog"])
    visitor.hear_requests()
    return dialogs


def nothing_ran(visitor: Visitor, dialogs: list[str]) -> None:
    page = visitor.page
    asked = [each for each in visitor.requests if "/owned" in each]
    assert not dialogs and not asked and not page.evaluate("'owned' in window")
    assert "owned" not in page.title() or "<" in page.title(), "told as it is written at most"
    assert page.url.startswith(visitor.server) and not page.evaluate(MADE)


@browser_test
@pytest.mark.parametrize("kind", ["encoder", "translator"])
def test_nothing_of_a_strangers_recording_runs(visitor: Visitor, kind: str) -> None:
    visitor.open()
    dialogs, page = hears(visitor), visitor.page
    drop(visitor, "theirs.npz", recording(kind))
    expect(page.locator(".st-key-model_menu button").first).to_contain_text("(recording)")
    for role, name, panel in WAYS:
        if name:
            page.get_by_role(role, name=name, exact=True).first.click()
        page.wait_for_selector(f"[data-panel='{panel}'][data-token]")
        visitor.at_rest()
        for one in page.locator(f"[data-panel='{panel}'] .token:visible").all()[:4]:
            one.hover(force=True)  # what waits for a pointer
        nothing_ran(visitor, dialogs)


@browser_test
def test_nothing_of_a_strangers_lesson_runs(visitor: Visitor) -> None:
    said = MARKUP + LINKS
    item = Item(
        f"/?text={TEXT.replace(' ', '+')}", said, said, said, said, said, said, said, said, "", said
    )
    lesson = Lesson(said, (item, item))
    dialogs = hears(visitor)
    visitor.visit("heads", f"{GRID}[data-token]", text=TEXT, lesson=lesson.word)
    page = visitor.page
    page.get_by_text("onerror").first.wait_for()
    nothing_ran(visitor, dialogs)
    page.keyboard.press("p")
    page.wait_for_selector("html[data-headlight-presenter=on]", state="attached")
    page.keyboard.press("q")
    nothing_ran(visitor, dialogs)
    page.keyboard.press("Escape")
    drop(visitor, "lesson.json", lesson.json.encode(), "application/json")
    page.get_by_role("button", name="Open it").click()
    expect(page.get_by_label("Title").last).to_have_value(said)
    visitor.at_rest()
    nothing_ran(visitor, dialogs)
