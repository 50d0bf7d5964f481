// @ts-check
// A head's lines and its matrix side by side: what is pointed at or held in one is so in the other.

import { lines } from "./head_lines.js";
import { matrix } from "./head_matrix.js";
import { make } from "./mount.js";

/** @typedef {import("./mount.js").View} View */

/** @param {View} view @param {Record<string, any>} head what the views of a head share */
export function both(view, head) {
  const drawn = [lines, matrix].map((kind) => {
    const box = make("div", "", ...kind(view, head));
    return { box, draw: view.draw, fit: view.fit[1] };
  });
  const pair = make("div", "both", ...drawn.map(({ box }) => box));
  view.draw = (/** @type {number[]} */ ...at) => drawn.forEach(({ draw }) => draw(...at));
  view.fit = [pair, () => drawn.forEach(({ fit }) => fit())];
  return [pair];
}
