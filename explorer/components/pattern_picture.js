// @ts-check
// A head's pattern as a small picture: a square for each weight, the darker the larger.

import { shown, tag } from "./svg_export.js";

/**
 * A picture from its rows, divided by "/", a digit from 0 to 9 for each weight.
 * @param {string} cells
 * @param {string} name what it is called for whoever does not see it
 */
export function patternPicture(cells, name) {
  const rows = cells.split("/");
  const squares = rows.flatMap((row, y) =>
    [...row].map(
      (digit, x) =>
        digit !== "0" && tag("rect", { x, y, width: 1, height: 1, opacity: Number(digit) / 9 }),
    ),
  );
  const n = rows.length;
  const ground = tag("rect", { class: "ground", width: n, height: n, "fill-opacity": 0.07 });
  return shown([ground, ...squares.filter(Boolean)].join(""), {
    class: "picture",
    viewBox: `0 0 ${n} ${n}`,
    fill: "currentColor",
    role: "img",
    "aria-label": name,
    "shape-rendering": "crispEdges",
  });
}
