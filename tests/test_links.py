"""No text, name or link from outside becomes a link that leaves the app: what a stranger could use
to send readers elsewhere."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from driver import MARKS, Visitor

from models.edits import PatchHead, to_line

BAIT = (
    "Sign in at https://evil.example/login or http://evil.example, www.evil.example, "
    "thief@evil.example"
)
pytestmark = MARKS
MODEL = (
    "Your session expired, sign in at https://evil.example/login www.evil.example "
    "thief@evil.example"
)
# The pages that show each of these choices.
PAGES = ("", "embeddings", "switches", "compare", "claims")
# Every choice that takes words, and what makes the pages show them.
BAITED = {
    "text": BAIT,
    "target": BAIT,
    "second": BAIT,
    "anchors": f"{BAIT} / {BAIT}",
    "retyped": BAIT,
    "donor": BAIT,
    "edits": to_line((PatchHead(0, 1, BAIT),)),
    "claim_note": BAIT,
    "other_text": BAIT,
    "other_what": "Sentence",
    "att_right": "1",
}
# True where the page says these words, or its field holds them.
SAYS = """said => document.body.innerText.includes(said)
  || [document, ...[...document.querySelectorAll('*')].map(e => e.shadowRoot).filter(Boolean)]
    .some(root => [...root.querySelectorAll('textarea')].some(field => field.value === said))"""
# Addresses of links anywhere on the page, in shadow roots and in SVG too, that lead to another
# origin.
LEAVING = """() => {
  const found = [], roots = [document];
  for (const root of roots)
    for (const each of root.querySelectorAll('*')) {
      if (each.shadowRoot) roots.push(each.shadowRoot);
      if (!['a', 'area', 'form'].includes(each.localName)) continue;
      const to = ['href', 'xlink:href', 'action'].map((a) => each.getAttribute(a)).find(Boolean);
      if (to && new URL(to, location.href).origin !== location.origin) found.push(to);
    }
  return found;
}"""


def left_by(visitor: Visitor, page: str, asked: dict[str, str], said: str) -> list[str]:
    """Links out of the app on a page opened with these words in its address, once it says
    `said`."""
    visitor.page.goto(f"{visitor.server}/{page}?{urlencode(asked)}")
    visitor.until(SAYS, said)
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")
    return visitor.page.evaluate(LEAVING)


@pytest.mark.parametrize("page", PAGES)
def test_no_words_from_outside_lead_out_of_the_app(visitor: Visitor, page: str) -> None:
    assert left_by(visitor, page, BAITED | {"model": MODEL}, "which is not here") == []


@pytest.mark.parametrize(
    ("page", "model"), [("predictions", "decoder"), ("translation", "translator")]
)
def test_nor_do_what_other_models_say(visitor: Visitor, page: str, model: str) -> None:
    assert left_by(visitor, page, BAITED | {"model": model}, BAIT) == []


def test_nor_does_a_folder_that_a_link_names(visitor: Visitor) -> None:
    assert left_by(visitor, "", {"model": f"ours:/{MODEL}"}, "has not opened yet") == []
