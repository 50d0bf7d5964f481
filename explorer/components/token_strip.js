// @ts-check
// A sentence as a row of tokens. Those that can be chosen are buttons; the arrow keys go from one to
// the next. While a text writes itself the browser asks for each next token, once the one before is on
// screen: a slow server is waited for, and nothing piles up.

import { rove } from "./keys.js";
import { make, mount, put, redraw, until } from "./mount.js";
import { spokenLine } from "./number_format.js";
import style from "./token_strip.css.js";

const PATIENCE = 4; // seconds after which a request that brought nothing is made again

export default mount("strip", style, (view) => {
  const { header, root } = view;
  if (view.fresh) ask(view, header.every);
  const before = root.querySelector(".row")?.children.length || 0;
  // The line stays the same element: a screen reader hears what changes in it, not what is new.
  view.says ||= spokenLine("says");
  if (view.says.textContent !== header.says) view.says.textContent = header.says;
  const hint = header.hint ? [make("p", "hint", header.hint)] : [];
  redraw(view, [tokens(view), view.says, ...hint], [".row"]);
  const row = /** @type {HTMLElement} */ (root.querySelector(".row"));
  if (header.atEnd && row.children.length !== before) row.scrollTop = row.scrollHeight;
});

/** @param {import("./mount.js").View} view @param {number} seconds */
function ask(view, seconds) {
  clearTimeout(view.timer);
  until(view, "ask", () => clearTimeout(view.timer));
  if (seconds <= 0) return;
  view.timer = setTimeout(() => {
    view.send("tick", view.header.tokens.length);
    ask(view, PATIENCE);
  }, seconds * 1000);
}

/** @param {import("./mount.js").View} view */
function tokens(view) {
  const { header } = view;
  const list = header.tokens.map((token, at) => {
    const box = make(
      token.open ? "button" : "span",
      {
        class: `token ${token.tone}`,
        data: { at, focus: `token ${at}` },
        "aria-label": token.spoken || undefined,
        title: token.spoken || undefined,
        role: token.spoken && !token.open ? "img" : undefined,
      },
      make("span", { class: "label", dir: "auto" }, token.label),
      token.under && make("span", "under", token.under),
    );
    if (!token.open) return box;
    return put(box, {
      "aria-pressed": token.tone === "hidden",
      "aria-current": at === header.chosen ? "true" : undefined,
      onclick: () => view.send("at", at),
    });
  });
  const open = list.filter((box) => box.tagName === "BUTTON");
  rove(open, { held: open.indexOf(list[header.chosen]) });
  // A row of words alone scrolls by the keys too.
  const tabindex = open.length ? undefined : 0;
  return make(
    "div",
    { class: "row", role: "group", "aria-label": header.about, tabindex },
    ...list,
  );
}
