"""Fields on a phone, in a real browser: none is so small that a touch makes the page larger."""

from __future__ import annotations

import pytest
from driver import Visitor, browser_test

# Fields to type in, with the size of their type in pixels, also in views.
FIELDS = """() => {
  const typed = "input:not([type=range], [type=checkbox], [type=radio], [type=file]), "
    + "textarea, select, [contenteditable=true]";
  const found = [];
  const walk = (node) => {
    if (node.nodeType === 1 && node.matches(typed))
      found.push([node.ariaLabel ?? "", parseFloat(getComputedStyle(node).fontSize)]);
    for (const each of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) walk(each);
  };
  walk(document.body);
  return found;
}"""
TABS = ("heads", "weight", "embeddings", "attribution", "translate", "edit", "compare", "live")


@browser_test
@pytest.mark.parametrize("tab", (*TABS, "lessons", "concepts", "claims", "classroom"))
def test_a_field_on_a_phone_has_type_of_16_pixels(phone: Visitor, tab: str) -> None:
    page = phone.visit(tab, "[data-drawn]").page
    fields = page.evaluate(FIELDS)
    assert fields and not [each for each in fields if each[1] < 16], fields
