// @ts-check
// A list of names with bars and numbers. Rows that can be chosen are buttons; the arrow keys go from
// one to the next.

import style from "./bars.css.js";
import { rove } from "./keys.js";
import { focused, make, mount, put } from "./mount.js";

export default mount("bars", style, (view) => {
  const { header, root } = view;
  const held = focused(root);
  root.replaceChildren(table(view));
  if (held) view.buttons[view.at]?.focus({ preventScroll: true });
});

/** @param {import("./mount.js").View} view */
function table(view) {
  const { header } = view;
  const rows = header.rows.flatMap((row) => [
    row.gap && make("div", { class: "gap", "aria-hidden": "true" }, "⋮"),
    line(view, row),
  ]);
  const head = make(
    "div",
    { class: "row heads", "aria-hidden": "true" },
    make("span", "name"),
    make("span", "track"),
    ...header.columns.map((name) => make("span", "number", name)),
  );
  const keys = header.action ? ` Arrow keys move, Enter ${header.action}.` : "";
  const list = make(
    "div",
    {
      class: "list",
      role: "group",
      "aria-label": header.about + keys,
      vars: { columns: header.columns.length },
    },
    head,
    ...rows,
  );
  view.buttons = [...list.querySelectorAll("button")];
  const chosen = view.buttons.findIndex((button) => button.dataset.key === header.chosen);
  view.at = Math.max(0, Math.min(chosen >= 0 ? chosen : (view.at ?? 0), view.buttons.length - 1));
  rove(view.buttons, { held: view.at, upright: true });
  view.buttons.forEach((button, at) => button.addEventListener("focus", () => (view.at = at)));
  return list;
}

/** @param {import("./mount.js").View} view @param {any} row */
function line(view, row) {
  const { header } = view;
  const box = make(
    row.key ? "button" : "div",
    `row ${row.tone}`,
    make(
      "span",
      "name",
      make("span", { class: "label", dir: "auto", title: row.label }, row.label),
      row.mark && " ",
      row.mark && make("span", "mark", row.mark),
    ),
    track(header, row),
    // Words apart for those who hear them: a grid shows no white space.
    ...row.numbers.flatMap((number) => [" ", make("span", "number", number)]),
  );
  if (!row.key) return put(box, { role: "note" });
  const shown = [row.label, row.mark, ...row.numbers].filter(Boolean).join(" ");
  return put(box, {
    "aria-label": `${shown}: ${header.columns.join(", ")}`,
    "aria-pressed": header.chosen ? row.key === header.chosen : undefined,
    data: { key: row.key },
    onclick: () => view.send("row", row.key),
  });
}

/** @param {any} header @param {any} row */
function track({ low, high }, row) {
  const share = (value) => (100 * value) / (high - low || 1);
  const bar = (name, value) =>
    make("i", {
      class: `${name}${value < 0 ? " below" : ""}${value > high * 1.0001 ? " torn" : ""}`,
      style: {
        left: `${share(Math.min(value, 0) - low)}%`,
        width: `${Math.min(100, share(Math.abs(value)))}%`,
      },
    });
  const two = row.behind !== null;
  return make(
    "span",
    two ? "track two" : "track",
    two && bar("behind", row.behind),
    bar("value", row.value),
    low < 0 && make("i", { class: "zero", style: { left: `${share(-low)}%` } }),
  );
}
