"""The Translate tab in a real browser: steps, beams, one's own words, files."""

from __future__ import annotations

import re

from driver import MARKS, Visitor
from translation_harness import SENTENCE, translated

from explorer.analysis import translation
from explorer.analysis.formatting import fixed
from models import drafts
from models.recording_file import from_npz

pytestmark = MARKS


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    asked = {"model": "translator", "text": SENTENCE, **asked}
    return visitor.visit("translate", ".panel .slider output", **asked)


def step(visitor: Visitor) -> str:
    return visitor.page.locator(".slider output").inner_text()


STEP_IS = """([start, end]) => [...document.querySelectorAll('*')].some((each) => {
  const text = each.shadowRoot?.querySelector('.slider output')?.textContent ?? '';
  return text.startsWith(start) && text.endsWith(end); })"""


def test_a_token_a_source_token_and_keys_lead_to_steps(visitor: Visitor) -> None:
    recording = translated(SENTENCE)
    weights = translation.cross_attention(recording).pattern.mean((0, 1))
    tokens = recording.stream("decoder").tokens
    page = visited(visitor).page
    finding = page.locator(".panel .finding").first
    at = tokens.index("rue") - 1
    page.locator(".panel .target[aria-label^='rue ']").click()
    assert step(visitor) == f"Step {at + 1} of {len(tokens)}"
    assert "“rue”" in finding.inner_text() and fixed(weights[at].max()) in finding.inner_text()
    page.wait_for_url(f"**step={at + 1}**")
    visitor.at_rest()
    assert step(visitor) == f"Step {at + 1} of {len(tokens)}", "the answer changes nothing"
    page.locator(".slider input").focus()
    page.keyboard.press("ArrowRight")
    assert step(visitor).startswith(f"Step {at + 2} ")
    key = recording.stream("encoder").tokens.index("tired")
    page.locator(".panel .target[aria-label*=': tired ']").focus()
    page.keyboard.press("Enter")
    assert step(visitor).startswith(f"Step {int(weights[:, key].argmax()) + 1} ")
    page.locator(".panel .target", has_text="Layer 1, head").first.click()
    page.wait_for_url(re.compile(r"cross=1\.\d"))


def test_it_plays_to_the_end_and_stops_where_it_is_asked(visitor: Visitor) -> None:
    page = visited(visitor, step="1", text="I love pizza.").page
    button = page.locator(".slider button")
    button.click()
    visitor.until(STEP_IS, ["Step 3 ", ""])
    assert button.inner_text() == "Pause"
    button.click()
    assert button.inner_text() == "Play"
    page.wait_for_url("**step=**")
    visitor.at_rest()
    before = step(visitor)
    page.wait_for_timeout(900)
    assert step(visitor) == before


def test_a_beam_is_chosen(visitor: Visitor) -> None:
    page = visited(visitor, beams="4").page
    search = drafts.search("translator", SENTENCE, 4)
    while not search.finished:
        search.resume()
    page.locator(".panel .target[aria-label^='3, ']").click()
    page.wait_for_url("**beam=3**")
    visitor.at_rest()
    visitor.until(STEP_IS, ["", f"of {len(search.steps[-1][2].ids)}"])


def test_ones_own_french_is_scored_as_it_is_typed_and_back_undoes_it(visitor: Visitor) -> None:
    page = visited(visitor).page
    before = step(visitor)
    field = page.get_by_label("Your own French", exact=True)
    field.press_sequentially("Le chat", delay=20)
    page.wait_for_url("**target=Le+chat**")
    page.locator(".panel .target[aria-label^='chat '][aria-label*='#']").wait_for()
    visitor.at_rest()
    assert "the model predicts" in page.locator(".panel .finding").first.inner_text()
    assert page.get_by_text("The model’s own is more probable.").count()
    page.go_back()
    page.locator(".panel .target[aria-label^='rue ']").wait_for()
    visitor.at_rest()
    assert step(visitor) == before and field.input_value() == ""


def test_it_leaves_as_vectors_and_as_a_recording(visitor: Visitor) -> None:
    target = "Le <b>chat</b> & le chien"
    visited(visitor, target=target, cross="1.2")
    drawn = visitor.export(re.compile("Translation.* as SVG")).read_text("utf-8")
    assert "&lt;b&gt;" in drawn or "chat" in drawn
    assert "<image" not in drawn and "layer 1, head 2" in drawn
    recording = from_npz(visitor.export("All activations (NPZ)").read_bytes())
    assert recording == translated(SENTENCE, target)
