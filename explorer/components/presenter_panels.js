// @ts-check
// What each view shows, as pictures in type for the back row, with the sentence that says it. A view
// that is not here is shown as it is, set in larger type.

import { bus } from "./bus.js";
import { share } from "./number_format.js";
import { heads } from "./presenter_panels_words.js";
import { permitted } from "./codec.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {{ says?: string, caption?: string, panels: any[], walk?: (by: number) => void }} Large */

/** @param {View} view @returns {Large | undefined} */
export const large = (view) =>
  VIEWS[[view.name, view.header.kind || view.header.role].join(" ").trim()]?.(view) ||
  VIEWS[view.name]?.(view);

const flat = (/** @type {any[][]} */ values) =>
  Float32Array.from(values.flat(), (value) => value ?? NaN);

/** A figure of a view that is not a panel, as the renderer takes it. @param {any} panel */
export function asFigure(panel) {
  const { kind } = panel;
  const plain = { title: "", note: "", select: [], marks: [], sides: ["", ""], ...panel };
  if (kind === "grid" || kind === "field")
    return { low: 0, digits: 2, missing: "", ...plain, kind: "matrix", values: flat(panel.values) };
  if (kind === "lines")
    return { ...plain, kind: "links", weights: flat(panel.weights), selected: panel.held };
  if (kind === "curves") {
    const series = panel.series.map((/** @type {any} */ one) => ({
      shape: "line",
      ...one,
      main: one.on,
      x: Float32Array.from(one.x),
      y: flat([one.y]),
    }));
    return { guides: [], ticks: [], ...plain, kind: "chart", series, square: panel.even };
  }
  const chosen = (/** @type {any[]} */ list) =>
    list.map((each) => ({ outline: null, key: "", sign: "", ...each, selected: each.on }));
  if (kind === "bars") return { high: null, header: "", ...plain, rows: chosen(panel.rows) };
  if (kind === "strips") return { ...plain, strips: chosen(panel.strips) };
  if (kind === "ladder") return { ...plain, rungs: chosen(panel.rungs) };
  if (kind === "figures") return { ...plain, kind: "facts", facts: panel.figures };
  return plain;
}

const quoted = (/** @type {string} */ word) => `“${word}”`;

/** The place of the largest of a list. */
const most = (/** @type {ArrayLike<any>} */ list) => {
  let best = 0;
  for (let at = 1; at < list.length; at++) if (!(list[at] <= list[best])) best = at;
  return best;
};

/**
 * A matrix as rows of numbers, a cell that is not allowed null.
 * @param {ArrayLike<any>} flat @param {number} rows @param {number} columns @param {Uint8Array | null} [may]
 * @returns {any[][]}
 */
const matrixOf = (flat, rows, columns, may = null) =>
  Array.from({ length: rows }, (_, r) =>
    Array.from({ length: columns }, (__, c) => {
      const value = flat[r * columns + c];
      return (may && !may[r * columns + c]) || Number.isNaN(value) ? null : value;
    }),
  );

const grid = (/** @type {any} */ more) => ({ kind: "grid", marks: [], high: 1, ...more });

/** @type {Record<string, (view: View) => Large | undefined>} */
const VIEWS = {
  head(view) {
    const { header, weight, n, across } = view;
    if (!weight) return undefined;
    const held = view.held[0] >= 0 ? view.held[0] : Math.max(0, view.full.indexOf(view.peak));
    const values = matrixOf(weight, header.queries.length, n, view.permitted);
    const key =
      view.cell && view.cell[0] === held ? view.cell[1] : most(values[held].map((w) => w ?? -1));
    const value = values[held][key] ?? 0;
    const names = { left: header.queries, right: header.keys, sides: view.sides };
    const lines = { kind: "lines", ...names, weights: values, held, mark: [key, share(value)] };
    const square = grid({
      rows: header.queries,
      columns: header.keys,
      values,
      high: view.peak,
      marks: [[held, key, share(value)]],
    });
    const where = `Layer ${header.layer}, ${across ? "cross-" : ""}head ${header.head}`;
    return {
      says: `${where}: ${quoted(header.queries[held])} attends to ${quoted(header.keys[key])} (${share(value)})`,
      panels: [header.view === "matrix" ? square : lines],
    };
  },
  heads,
};
