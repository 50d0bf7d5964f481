// @ts-check
// The split into heads and back as it happens, shape by shape. One row is the chosen query's, one piece
// the chosen head's.

import { make } from "./mount.js";
import { node } from "./svg_export.js";
import { named } from "./tokens.js";

/** @param {import("./mount.js").View} view */
export function shapes({ header, root }) {
  const { n, m, heads, head, d_head, d_v, d_model, query, label } = header;
  const apart = `${heads} pieces of ${d_head} in every row`;
  const alone = `per head: A (${n}, ${m}) · V (${m}, ${d_v})`;
  /** @type {[string, string, string, SVGElement[]][]} */
  const stages = [
    ["x · W_Q", `(${n}, ${heads * d_head})`, "one row per token", block(header, 0)],
    ["split into heads", `(${n}, ${heads}, ${d_head})`, apart, block(header, 5)],
    ["heads first", `(${heads}, ${n}, ${d_head})`, "one matrix per head", sheets(header)],
    ["attention", `(${heads}, ${n}, ${d_v})`, alone, sheets(header)],
    ["concat", `(${n}, ${heads * d_v})`, "heads concatenated", block(header, 0)],
    ["W_O", `(${n}, ${d_model})`, "one vector per token", whole(header)],
  ];
  const list = stages.map(([name, shape, words, drawn]) =>
    make(
      "li",
      "",
      make("span", "name", name),
      node("svg", { viewBox: "0 0 150 96", "aria-hidden": "true" }, ...drawn),
      make("span", "shape", shape),
      make("span", "why", words),
    ),
  );
  const note = make(
    "p",
    "note",
    `n = ${n}${m === n ? "" : ` queries, ${m} keys`}, heads = ${heads}, d_head = ${d_head}, d_model = ${d_model}. The line is the row of `,
    named(label),
    ` (token ${query}). The filled piece is head ${head}.`,
  );
  root.replaceChildren(make("ol", "stages", ...list), note);
}

const rowAt = ({ n, query }, height) => ((query + 0.5) / Math.max(n, 1)) * height;
const line = (x1, x2, y) => node("line", { class: "row", x1, x2, y1: y, y2: y });

function block(header, gap) {
  const { heads, head } = header;
  const [width, height] = [134 - gap * 1.2, 70];
  const one = width / heads;
  const between = gap ? Math.min(gap, one * 0.4) : 0;
  const pieces = Array.from({ length: heads }, (_, h) =>
    node("rect", {
      class: h === head ? "piece chosen" : "piece",
      x: 8 + h * one + between / 2,
      y: 12,
      width: one - between,
      height,
      rx: 1,
    }),
  );
  return [...pieces, line(4, 146 - gap, 12 + rowAt(header, height))];
}

function sheets(header) {
  const shown = Math.min(header.heads, 8);
  const at = Math.min(header.head, shown - 1);
  const [width, height] = [58, 46];
  const [by, down] = [
    Math.min(10, 80 / Math.max(shown - 1, 1)),
    Math.min(5, 32 / Math.max(shown - 1, 1)),
  ];
  const place = (h) => ({ x: 8 + h * by, y: 8 + h * down });
  // The chosen head's sheet lies on top.
  const order = [...Array(shown).keys()].filter((h) => h !== at).concat(at);
  const pieces = order.map((h) =>
    node("rect", { class: h === at ? "piece chosen" : "piece", ...place(h), width, height, rx: 1 }),
  );
  const { x, y } = place(at);
  return [...pieces, line(x - 3, x + width + 3, y + rowAt(header, height))];
}

const whole = (header) => [
  node("rect", { class: "piece mixed", x: 8, y: 12, width: 134, height: 70, rx: 1 }),
  line(4, 146, 12 + rowAt(header, 70)),
];
