// @ts-check
// The change of a figure from the one before it, shown step by step: bars, strips and curves move.

import { lasts, share as partOf, widens } from "./beam_figure.js";
import { between } from "./figures.js";
import { still } from "./mount.js";

/** @typedef {import("./mount.js").View} View */
/** Paints a figure of a view, or another one in its place. @typedef {(view: View, at: number, one?: any) => void} Paint */

const CHANGE = 240; // milliseconds that a change takes
const MOST = 4096; // cells of a figure that changes step by step
const KINDS = [
  "linkedweights",
  "bars",
  "chart",
  "cloze",
  "flow",
  "links",
  "matrix",
  "stack",
  "strips",
];

/** What a change begins with; undefined where the figures are not of one make. @param {any} from @param {any} to */
export function startOf(from, to) {
  const size = (/** @type {any} */ one) => one.weight?.length || one.values?.length || 0;
  const isShown =
    from?.kind === to.kind &&
    KINDS.includes(to.kind) &&
    size(from) === size(to) &&
    size(to) <= MOST &&
    !still();
  return isShown ? between(from, to, 0) : undefined;
}

/** Show a figure's change from the one before it, where both are of one make. @param {View} view @param {number} at @param {any} from @param {Paint} paint */
export function change(view, at, from, paint) {
  const start = startOf(from, view.figures[at]);
  if (!start) return;
  paint(view, at, start);
  glide(view, at, from, paint);
}

/** The same, where its start is painted already: it stands for a frame. @param {View} view @param {number} at @param {any} from @param {Paint} paint */
export function glide(view, at, from, paint) {
  const to = view.figures[at];
  const isFlow = to.kind === "flow";
  const all = isFlow ? lasts(from, to) : CHANGE;
  let began = 0;
  const tick = (/** @type {number} */ now) => {
    const ms = Math.max(0, now - began);
    const part = Math.min(1, ms / CHANGE);
    const share = isFlow ? partOf(ms, 0, widens(from, to)) : part * (2 - part);
    if (ms >= all || !view.root.isConnected || view.figures[at] !== to)
      return view.root.isConnected && paint(view, at);
    paint(view, at, between(from, to, share, ms));
    view.gliding[at] = requestAnimationFrame(tick);
  };
  view.gliding[at] = requestAnimationFrame((now) => {
    began = now;
    view.gliding[at] = requestAnimationFrame(tick);
  });
}
