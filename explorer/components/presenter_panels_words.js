// @ts-check
// Charts in type for the back row, read from what Plotly draws.

import { num } from "./number_format.js";

/** @typedef {import("./mount.js").View} View */

const CHARTS = { heatmap: heat, scatter: lines, scattergl: lines, scatter3d: flat, bar: columns };

/**
 * What Plotly draws, as pictures; undefined for what is not flat.
 * @param {any} chart its element
 */
export function charted(chart) {
  const all = (chart?._fullData || []).filter((each) => each.visible === true && each.hoverinfo !== "skip"); // prettier-ignore
  const places = [...new Set(all.map(({ xaxis, yaxis }) => `${xaxis} ${yaxis}`))].slice(0, 1);
  const panels = places.map((place) => {
    const here = all.filter(({ xaxis, yaxis }) => `${xaxis} ${yaxis}` === place);
    const axis = (/** @type {string} */ name) =>
      chart._fullLayout[name.replace(/^(.)/, "$1axis")] || {};
    const [x, y] = place.split(" ").map(axis);
    return CHARTS[here[0].type]?.(here, x, y, chart._fullLayout.scene);
  });
  return panels.length && panels.every(Boolean) ? { panels } : undefined;
}

// A title that nobody gave is Plotly's own word to an editor.
const titled = ({ title }) => plainText(title?.text || "").replace(/^Click to enter.*/, "");
/** Plotly's texts are a kind of HTML. @param {any} text */
const plainText = (text) => `${text}`.replace(/<br ?\/?>/g, " ").replace(/<[^>]*>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&"); // prettier-ignore

/** What the places along an axis are called. */
function names(/** @type {any} */ axis, given, size) {
  const called = new Map((axis.tickvals || []).map((at, i) => [at, axis.ticktext?.[i] ?? at]));
  return Array.from({ length: size }, (_, at) => {
    const value = given?.[at] ?? at;
    return plainText(called.get(value) ?? axis._categories?.[value] ?? value);
  });
}

function heat([{ z, x: xs, y: ys, zmin, zmax }], x, y) {
  const rows = [...z].map((row) =>
    [...row].map((value) => (Number.isFinite(value) ? value : null)),
  );
  const size = [rows.length, rows[0]?.length || 0];
  const downward = Array.isArray(y.range) && y.range[0] > y.range[1];
  const named = names(y, ys, size[0]);
  if (!downward) [rows, named].forEach((each) => each.reverse());
  const numeric = named.every((name) => !Number.isNaN(Number(name)));
  return {
    // A picture of numbers by number, not of words.
    kind: numeric && size[0] * size[1] > 600 ? "field" : "grid",
    rows: named,
    columns: names(x, xs, size[1]),
    values: rows,
    low: zmin < 0 ? 0 : zmin,
    high: Math.max(Math.abs(zmin), zmax),
    signed: zmin < 0,
    marks: [],
    sides: [titled(y), titled(x)],
  };
}

function lines(all, x, y) {
  const text = all.some((one) => [...(one.x || [])].some((value) => typeof value === "string"));
  const places = text ? [...new Set(all.flatMap((one) => [...one.x]))] : [];
  const own = (one) => (text ? [...one.x].map((each) => places.indexOf(each)) : [...one.x].map(Number)); // prettier-ignore
  const series = all
    .filter((one) => one.x?.length && one.y?.length)
    .slice(0, 4)
    .map((one, at) => ({
      name: "",
      x: own(one),
      y: [...one.y].map((value) => (Number.isFinite(value) ? value : null)),
      end: plainText(one.name || ""),
      on: !at,
    }));
  const every = Math.ceil(places.length / 8) || 1;
  const given = (x.tickvals || []).map((at, i) => [at, plainText(x.ticktext?.[i] ?? at)]);
  const ticks = text ? places.map((name, at) => [at, plainText(name)]).filter((_, at) => at % every === 0) : given.filter((_, at) => at % Math.ceil(given.length / 8) === 0); // prettier-ignore
  return {
    kind: "curves",
    series,
    ticks,
    x_title: titled(x),
    y_title: titled(y),
    log_x: x.type === "log",
    log_y: y.type === "log",
  };
}

/** Two of three axes. */
function flat(all, _, __, { xaxis, yaxis }) {
  const paths = all.filter(({ mode }) => mode?.includes("lines"));
  return paths.length && { ...lines(paths, xaxis, yaxis), even: true };
}

function columns(all, x, y) {
  const flat = all[0].orientation === "h";
  const labels = [...(flat ? all[0].y : all[0].x)];
  const values = all.slice(0, 3).map((one) => [...(flat ? one.x : one.y)]);
  return {
    kind: "bars",
    columns: all.slice(0, 3).map(({ name }) => plainText(name || titled(flat ? x : y))),
    rows: labels.map((label, at) => ({
      label: plainText(label),
      values: values.map((list) => list[at] ?? 0),
      texts: values.map((list) => num(list[at], 3)),
      on: false,
    })),
    shared: true,
  };
}
