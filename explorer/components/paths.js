// @ts-check
// Paths of tokens, in three pictures mounted by themselves: the plane with its slider, the curves of the
// one word that is followed, and its nearest words.

import { bus } from "./bus.js";
import { hear, make, mount, put, redraw } from "./mount.js";
import style from "./paths.css.js";
import { curve } from "./paths_chart.js";
import { colours, svgPen } from "./draw_backends.js";
import { walk } from "./paths_walk.js";
import { fixed } from "./number_format.js";
import { shown } from "./svg_export.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

export default mount("paths", style, (view) =>
  ({ walk, around, near })[view.header.kind](view, mark),
);

/** The sign of a kind of point. @param {View} view */
function mark({ look }, kind) {
  const fill = kind < 2 ? 1 : 0.25;
  const sign = svgPen(look, (pen) => pen.shape(kind, 0, 0, 6, colours(look)[kind], fill, 1.5));
  return shown(sign, { class: "mark", viewBox: "-8 -8 16 16", "aria-hidden": "true" });
}

// ---- what belongs to the followed word -----------------------------------------------------------

/** @param {View} view */
function around(view) {
  const { header } = view;
  if (!view.same) {
    view.cursor = undefined;
    redraw(view, header.lines.length ? [curve(view)] : []);
  }
  const { token, chosen, stage, trails, frame } = header;
  bus.tell({ embedding: { token, chosen, stage, trails, frame } });
  if (header.lead) bus.tell({ stage });
  follow(view);
}

/** Mark the site that is on screen. @param {View} view */
function follow(view) {
  const last = view.header.titles.length - 1;
  hear(view, (now) => {
    const stage = Math.min(now.stage ?? last, last);
    view.root.dataset.stage = `${stage}`;
    for (const row of view.root.querySelectorAll("tbody tr"))
      row.classList.toggle("now", /** @type {HTMLTableRowElement} */ (row).rowIndex - 1 === stage);
    view.cursor?.(stage);
  });
}

/** @param {View} view */
function near(view) {
  if (!view.same)
    redraw(view, [make("section", "near", ...view.header.near.map((text) => nearest(view, text)))]);
  follow(view);
}

/** @param {View} view */
function nearest(view, { token, name, kind, rows }) {
  const { titles } = view.header;
  const ranks = rows[0].slice(1).map((_, at) => `${at + 2}.`);
  const heads = ["site", "nearest", ...ranks].map((title) => make("th", { scope: "col" }, title));
  const body = rows.map((row, site) =>
    make(
      "tr",
      "",
      make("th", { scope: "row" }, titles[site]),
      ...row.map(([word, cosine]) =>
        make(
          "td",
          "",
          make("span", { dir: "auto", title: word }, word),
          make("i", "", fixed(cosine, 2)),
        ),
      ),
    ),
  );
  const about = {
    tabindex: 0,
    role: "region",
    "aria-label": `Words nearest to ${token} in ${name}`,
  };
  return make(
    "div",
    "one",
    make("h2", "", mark(view, kind), "Words nearest to ", named(token), ` (${name})`),
    put(
      make(
        "div",
        "scroll",
        make("table", "", make("thead", "", make("tr", "", ...heads)), make("tbody", "", ...body)),
      ),
      about,
    ),
  );
}
