// @ts-check
// A picture of a chart of another library, as the renderer takes it.

const flat = (/** @type {any[][]} */ values) =>
  Float32Array.from(values.flat(), (value) => value ?? NaN);

/** A figure of a view that is not a panel, as the renderer takes it. @param {any} panel */
export function asFigure(panel) {
  const { kind } = panel;
  const plain = { title: "", note: "", select: [], marks: [], sides: ["", ""], ...panel };
  if (kind === "grid" || kind === "field")
    return { low: 0, digits: 2, missing: "", ...plain, kind: "matrix", values: flat(panel.values) };
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
  return plain;
}
