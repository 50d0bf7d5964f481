// @ts-check
// What of a panel's header changes while its picture stays: frames of a slider, stops of a flow, and
// what is told beside them.

/** @typedef {import("./mount.js").View} View */

/** True for the picture of the whole machine. */
export const isFlow = (/** @type {any} */ each) => each.kind === "flow";

/** A panel without what tells its frames apart: equal for two frames of one slider, and for a flow before its question and after. @param {any} header */
export const unframed = (header) =>
  JSON.stringify({
    ...header,
    ...{ token: "", title: "", finding: "", caption: "" },
    formulas: header.figures.some(isFlow) || header.formulas,
    figures: header.figures.map((/** @type {any} */ each) =>
      each.kind === "matrix" && each.follows ? each.follows : { ...each, current: 0 },
    ),
  });

/** Put the formulas of a flow in the place of those that stand: the word of a question is in them. @param {View} view */
export function rewrite({ header, written, restate }) {
  if (!header.figures.some(isFlow)) return;
  written.splice(0, Infinity, ...header.formulas);
  restate();
}
