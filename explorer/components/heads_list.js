// @ts-check
// All heads as a list that sorts by any of its columns.

import { bus } from "./bus.js";
import { make } from "./mount.js";

const number = (value) => (value === null ? "–" : value.toFixed(2));

// Key, label, what it sorts by, what it shows, and which way a first press sorts: 1 up, -1 down.
// Heads without a value come last.
/** @type {any[][]} */
const COLUMNS = [
  ["layer", "Head", (h) => h.layer * 1000 + h.head, (h) => `L${h.layer} H${h.head}`, 1],
  ["name", "Pattern", (h) => h.name, (h) => h.name, 1],
  ["score", "Score", (h) => h.score, (h) => number(h.score), -1],
  ["chance", "Chance", (h) => h.chance, (h) => number(h.chance), 1],
  ["entropy", "Entropy", (h) => h.entropy, (h) => number(h.entropy), 1],
  ["distance", "Distance", (h) => h.distance, (h) => h.distance?.toFixed(1) ?? "–", 1],
  ["sink", "Sink", (h) => h.sink, (h) => number(h.sink), -1],
];

/**
 * @param {import("./mount.js").View} view
 * @param {Record<string, any>} grid what the list shares with the grid
 */
export function list(view, { shown, choose, spoken, draw }) {
  const { header } = view;
  const columns = COLUMNS.filter(([key]) => key !== "distance" || header.columns_mean.distance);
  const [by, way] = (view.sort ||= ["layer", 1]);
  const heads = columns.map(([key, label, , , first], at) =>
    make(
      "th",
      {
        scope: "col",
        "aria-sort": by === key ? (way > 0 ? "ascending" : "descending") : undefined,
      },
      make(
        "button",
        {
          title: header.columns_mean[key],
          onclick: () => {
            view.sort = [key, by === key ? -way : first];
            draw(view, `th:nth-child(${at + 1}) button`);
          },
        },
        label + (by === key ? (way > 0 ? " ↑" : " ↓") : ""),
      ),
    ),
  );
  const [, , value] = /** @type {any[]} */ (COLUMNS.find(([key]) => key === by));
  const compare = (a, b) =>
    a === b ? 0 : a === null ? 1 : b === null ? -1 : way * (a < b ? -1 : 1);
  const sorted = header.heads.filter((head) => shown(view, head));
  sorted.sort((a, b) => compare(value(a), value(b)));
  const rows = sorted.map((head) =>
    make(
      "tr",
      { onclick: () => choose(view, head) },
      ...columns.map(([key, , , text]) =>
        key === "layer"
          ? make(
              "td",
              "",
              make("button", { class: "open", "aria-label": `Open ${spoken(head)}` }, text(head)),
            )
          : make("td", "", text(head)),
      ),
    ),
  );
  view.ready = undefined;
  view.mark = () =>
    rows.forEach((row, at) =>
      row.classList.toggle(
        "on",
        sorted[at].layer === bus.now.layer && sorted[at].head === bus.now.head,
      ),
    );
  view.mark();
  const table = make(
    "table",
    "",
    make("thead", "", make("tr", "", ...heads)),
    make("tbody", "", ...rows),
  );
  return [make("div", "scroll", table), make("p", "note", header.list_note)];
}
