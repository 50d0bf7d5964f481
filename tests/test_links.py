"""No text, name or link from outside becomes a link that leaves the app: what a stranger could use
to send readers elsewhere."""

from __future__ import annotations

import pytest
from driver import MARKS, Visitor

from explorer.text import places
from models.contract.edits import PatchHead, to_line

pytestmark = MARKS
SITES = "https://evil.example/login www.evil.example thief@evil.example"
BAIT = f"Sign in at {SITES} <img src=x onerror=\"document.title='owned'\"> <b>now</b>"
MODEL = f"Your session expired, sign in at {SITES}"
# Every choice that takes words, and what makes the pages show them.
BAITED = {
    **dict.fromkeys(("text", "target", "second", "retyped", "donor", "claim_note"), BAIT),
    **{"anchors": f"{BAIT} / {BAIT}", "edits": to_line((PatchHead(0, 1, BAIT),))},
    **{"other_text": BAIT, "compare": "Sentence", "verify": "1"},
}
NOT_HERE = "which is not here"
# The tabs that show each of these choices, a model, and what they say then.
OPENED = [
    *((tab, MODEL, NOT_HERE) for tab in ("heads", "embeddings", "edit", "compare", "claims")),
    ("word", "decoder", BAIT),
    ("translate", "translator", BAIT),
    ("heads", f"ours:/{MODEL}", "has not opened yet"),
]
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


@pytest.mark.parametrize(("tab", "model", "says"), OPENED)
def test_no_words_from_outside_lead_out_of_the_app_or_run(
    visitor: Visitor, tab: str, model: str, says: str
) -> None:
    asked = BAITED | {"model": model} if says != OPENED[-1][2] else {"model": model}
    visitor.page.goto(f"{visitor.server}{places.address(tab, asked)}")
    visitor.until(SAYS, says)
    visitor.at_rest()
    assert visitor.page.evaluate(LEAVING) == []
    assert visitor.page.title().endswith("Headlight")
    assert "now" not in visitor.page.locator("b").all_inner_texts(), "words that stand out are own"
