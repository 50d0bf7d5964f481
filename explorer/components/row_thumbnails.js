// @ts-check
// What a held word looks at in each head of the grid: one row of a thumbnail, and in words the token
// that gets most.

import { make } from "./mount.js";
import { named, strongest } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

// As it stands under a thumbnail; a label says the same.
export const written = (/** @type {number} */ value) => value.toFixed(2).replace("0.", ".");

// A byte b stands for peak x (b / 255)², as wire.thumbnails says.
/** @param {View} view */
export const weightAt = ({ blocks, header }, at, cell) =>
  blocks.peak[at] * (blocks.cells[at * header.rows * header.columns + cell] / 255) ** 2;

/** The weights of the held word in a head, folded as the thumbnails are. @param {View} view */
export function rowOf(view, at) {
  const { rows, columns, fold } = view.header;
  const [axis, place] = view.word;
  const held = Math.floor(place / fold);
  return axis
    ? Array.from({ length: rows }, (_, r) => weightAt(view, at, r * columns + held))
    : Array.from({ length: columns }, (_, c) => weightAt(view, at, held * columns + c));
}

/** The largest of these, as it is: the levels of a thumbnail are too coarse for two digits. @param {View} view */
function largest({ blocks, header, word }, at, list, best) {
  const [axis, place] = word;
  const exact = axis ? blocks.most_in : blocks.most;
  return exact ? exact[at * (axis ? header.columns : header.rows) + place] : list[best];
}

/** @param {View} view */
const others = (view) => (view.word[0] ? view.header.tokens : view.keys);

/** @param {View} view */
export function rowText(view, at, list) {
  const [best] = strongest(list, 1);
  const to = named(folded(view, others(view), best));
  return ["most: ", to, ` ${written(largest(view, at, list, best))}`];
}

/** @param {View} view */
export function rowCaption(view, at, list) {
  const [best] = strongest(list, 1);
  const label = folded(view, others(view), best);
  return make(
    "span",
    { class: "caption word", "aria-hidden": "true" },
    make("span", { class: "name", dir: "auto", title: label }, label),
  );
}

/** The tokens behind one cell of a thumbnail. @param {View} view */
export function folded({ header: { fold } }, list, k) {
  const [first, last] = [k * fold, Math.min(k * fold + fold, list.length) - 1];
  return first === last ? list[first] : `${list[first]} … ${list[last]}`;
}
