// @ts-check
// Claims with their verdicts. A row is a button that opens what was measured; the arrow keys go from
// row to row.

import style from "./claims.css.js";
import { plainKey, rove } from "./keys.js";
import { focused, make, mount, put } from "./mount.js";
import { spokenLine } from "./number_format.js";

/** @typedef {import("./mount.js").View} View */

export default mount("claims", style, (view) => {
  if (view.header.told !== view.told) [view.open, view.told] = [view.header.open, view.header.told];
  draw(view);
});

/** @param {View} view */
function draw(view) {
  const { header, root } = view;
  const held = focused(root);
  if (!view.says) {
    view.says = spokenLine("says");
    [view.counts, view.groups] = [make("div", "counts"), make("div", "groups")];
    root.append(view.counts, view.says, view.groups);
  }
  view.counts.replaceChildren(...header.counts.map(line));
  if (view.says.textContent !== header.says) view.says.textContent = header.says;
  view.groups.replaceChildren(
    ...header.groups.map((group) => section(view, group)),
    header.groups.length ? "" : make("p", "none", "No claim has this verdict here."),
  );
  /** @type {HTMLElement[]} */
  const buttons = [...view.groups.querySelectorAll(".row")];
  const of = (id) => buttons.findIndex((button) => button.dataset.id === id);
  const now = [of(view.at), of(view.open), 0].find((at) => at >= 0) ?? 0;
  rove(buttons, { held: now, upright: true });
  if (held) buttons[now]?.focus({ preventScroll: true });
  const open = buttons[of(view.open)];
  if (open && view.shown === undefined)
    requestAnimationFrame(() => open.scrollIntoView({ block: "center" }));
  view.shown = view.open;
}

const line = ({ name, means, each }) =>
  make("div", "kind", make("b", { title: means }, name), ...each.map(count));

const count = ({ n, words, tone }) =>
  make("div", `count ${tone}`, make("strong", "", String(n)), make("span", "", words));

/** @param {View} view @param {any} group */
function section(view, group) {
  const id = `note-${group.name.replace(/\W+/g, "-")}`;
  return make(
    "section",
    { class: "group", "aria-labelledby": id },
    make("h3", { id }, group.name),
    make("p", "under", group.under),
    ...group.rows.map((row) => claim(view, row)),
  );
}

/** @param {View} view @param {any} row */
function claim(view, row) {
  const open = view.open === row.id;
  const button = make(
    "button",
    {
      class: "row",
      data: { id: row.id },
      "aria-expanded": open,
      onfocus: () => (view.at = row.id),
      onclick: () => {
        view.open = open ? "" : row.id;
        view.at = row.id;
        view.send("claim", view.open);
        draw(view);
      },
    },
    make("span", "verdict", make("span", "mark", row.mark), make("span", "word", row.verdict)),
    make("span", "statement", row.statement),
    make(
      "span",
      "value",
      make("span", "number", row.shown),
      row.noun && make("span", "noun", row.noun),
      make("span", "bound", row.rule),
      row.chance && make("span", "bound", row.chance),
    ),
  );
  return make("div", `claim ${row.tone}`, button, open && details(view, row));
}

/** @param {string} name @param {string} means */
const term = (name, means) => make("div", "", make("dt", "", name), make("dd", "", means));

/** @param {View} view @param {any} row */
function details(view, row) {
  const parts = row.parts.map(([name, value]) =>
    make("tr", "", make("th", { scope: "row" }, name), make("td", "", value)),
  );
  const [file, label, url] = row.page;
  const link = make("a", "go", `See it on ${label} →`);
  const to = new URL(url.slice(1), document.baseURI);
  for (const [name, value] of new URLSearchParams(location.search))
    if (name !== "tab") to.searchParams.set(name, value);
  put(link, {
    href: to.href,
    onclick: (event) => {
      if (!plainKey(event) || event.shiftKey) return; // a new tab or window is the browser's affair
      event.preventDefault();
      view.send("go", file);
    },
  });
  const test = make(
    "div",
    "test",
    make("h4", "", "The test"),
    make("p", "", row.how),
    make("p", "formula", row.formula),
    make("p", "rule", `Holds if the number is ${row.holds}.`),
    make("p", "sort", row.kind),
    // Beside a long table and not below it.
    row.remark && make("p", "remark", make("b", "", "On the note: "), row.remark),
    row.terms.length > 0 &&
      make("dl", "terms", ...row.terms.map(([name, means]) => term(name, means))),
    link,
  );
  return make(
    "div",
    "details",
    make("p", { class: "why", dir: "auto" }, row.why),
    make(
      "div",
      "sides",
      test,
      parts.length > 0 &&
        make("table", "parts", make("caption", "", "Part by part"), make("tbody", "", ...parts)),
    ),
  );
}
