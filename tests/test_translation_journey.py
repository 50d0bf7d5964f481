"""A page that a browser translates, in a real one: words of texts and models stay as they are,
sentences do not."""

from __future__ import annotations

import pytest
from driver import Visitor, browser_test

# Every piece of text that a browser would translate, with what it stands in.
TRANSLATED = """() => {
  const found = [];
  const walk = (node, kept) => {
    if (node.nodeType === 3) {
      const text = node.data.trim();
      if (text && !kept) found.push(text);
      return;
    }
    if (node.nodeType === 1) {
      if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName)) return;
      const own = node.getAttribute("translate");
      kept = own === "no" || (kept && own !== "yes");
      if (node.matches("input, textarea") && !kept) found.push(node.value);
    }
    for (const each of node.shadowRoot?.childNodes ?? []) walk(each, kept);
    for (const each of node.childNodes ?? []) walk(each, kept);
  };
  walk(document.documentElement, false);
  return found;
}"""
# Words that no sentence of ours has.
TEXT = "The grasshopper greeted the marmalade because it was sluggish."
OWN = ("grasshopper", "marmalade", "sluggish")
TABS = [
    ("heads", "encoder", ".finding"),
    ("weight", "encoder", ".finding"),
    ("lens", "encoder", ".finding"),
    ("flow", "encoder", ".finding"),
    ("word", "encoder", ".panel[data-token]"),
    ("residual", "encoder", ".finding"),
    ("compare", "encoder", ".panel[data-token]"),
    ("generate", "decoder", ".panel[data-token]"),
    ("classroom", "encoder", ".questions li"),
    ("attribution", "decoder", ".panel[data-token]"),
]


@browser_test
@pytest.mark.parametrize(("tab", "model", "drawn"), TABS)
def test_no_browser_translates_a_word_of_a_text(
    visitor: Visitor, tab: str, model: str, drawn: str
) -> None:
    page = visitor.visit(tab, drawn, text=TEXT, model=model).page
    found = page.evaluate(TRANSLATED)
    wrong = [each for each in found if any(word in each for word in OWN)]
    assert not wrong, wrong
    assert len(found) > 20, "ordinary sentences are translated"
