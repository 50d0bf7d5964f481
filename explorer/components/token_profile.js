// @ts-check
// One token's way through the places of the residual stream, beside all other tokens'.

import { scale, through, ticks } from "./axis.js";
import { arrow } from "./keys.js";
import { fitted, make, redraw } from "./mount.js";
import { short, spokenLine } from "./number_format.js";
import { offer, node, paper, tag, text, written } from "./svg_export.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const HEIGHT = 310;
const EDGE = { left: 52, right: 8, top: 8, bottom: 66 };
const DASHED = { "stroke-width": 2, "stroke-dasharray": "5 3" };

export const placeInGroup = (columns, at) =>
  at - columns.findIndex(([group]) => group === columns[at][0]);

/** @param {View} view @param {(header: any, value: number) => string} say */
export function followed(view, say) {
  const { header, blocks, look } = view;
  const n = header.columns.length;
  const value = spokenLine("value");
  const line = node("line", { class: "at", y1: 8, y2: HEIGHT - 66, stroke: look.ink, opacity: 0 });
  let at = -1;
  /** @type {number[]} */
  let xs = [];
  let width = 0;
  const read = (to) => {
    at = Math.max(0, Math.min(n - 1, to));
    value.replaceChildren(
      `${header.columns[at][2]}: `,
      make("strong", "", say(header, blocks.values[at])),
      `; all tokens ${say(header, blocks.least[at])} to ${say(header, blocks.most[at])}, median ${say(header, blocks.median[at])}`,
    );
    for (const end of ["x1", "x2"]) line.setAttribute(end, `${xs[at]}`);
    line.setAttribute("opacity", "0.6");
  };
  const plot = make("div", {
    class: "plot",
    tabindex: 0,
    role: "img",
    data: { focus: "plot" },
    "aria-label": `${header.measure.name} of token ${header.chosen}, ${header.label}, at each place, beside the median of all ${header.n} tokens. Left and right read the values.`,
    onmousemove: (event) => {
      const box = plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      const apart = xs.map((each) => Math.abs(each - x));
      read(apart.indexOf(Math.min(...apart)));
    },
    onkeydown: (event) => {
      const by = arrow(event);
      if (!by?.[1]) return;
      event.preventDefault();
      read(at + by[1]);
    },
  });
  offer(view, "Lines", (on) => drawing(view, on));
  redraw(view, [key(view), plot, value]);
  fitted(view, view.root, () => {
    width = Math.max(280, Math.round(plot.clientWidth));
    const drawn = lines(view, look, width, HEIGHT);
    xs = drawn.xs;
    const attributes = { viewBox: `0 0 ${width} ${HEIGHT}`, "font-family": look.font };
    plot.replaceChildren(node("svg", attributes, ...drawn.parts, line));
    if (at >= 0) read(at);
  });
  value.textContent = `Values are ${header.measure.meaning}.`;
}

/** @param {View} view */
function key({ header, look }) {
  const entry = (words, ...signs) =>
    make(
      "span",
      "",
      node("svg", { viewBox: "0 0 28 12", "aria-hidden": "true" }, ...signs),
      ...words,
    );
  const stroke = (more) => node("path", { d: "M0 6H28", ...more });
  const dot = (more) => node("circle", { cx: 14, cy: 6, r: 4, fill: look.primary, ...more });
  const mine = header.bars
    ? [node("rect", { x: 8, y: 0, width: 12, height: 12, fill: look.primary })]
    : [stroke({ stroke: look.primary, "stroke-width": 3 }), dot({})];
  const hollow = { fill: look.paper, stroke: look.primary, "stroke-width": 2.5 };
  return make(
    "div",
    "key",
    entry([named(header.label), ` (token ${header.chosen})`], ...mine),
    entry([`median of all ${header.n} tokens`], stroke({ stroke: look.ink, ...DASHED })),
    entry(
      ["from the least to the largest"],
      node("rect", { x: 0, y: 1, width: 28, height: 10, fill: look.ink, opacity: 0.14 }),
    ),
    header.measure.name === "Norm" && entry(["written vectors (filled: states)"], dot(hollow)),
  );
}

/** The ends of the axis of values, and whether it is logarithmic. @param {View} view */
function reach({ header, blocks }) {
  const finite = (list) => [...list].filter(Number.isFinite);
  const most = Math.max(...finite(blocks.most), 0);
  const above = finite(blocks.least).filter((value) => value > 0);
  if (header.log) return [Math.max(most / 1000, Math.min(most / 2, ...above)), most || 1];
  const high = header.measure.name === "Cosine" ? Math.max(most, 0.2) : most || 1;
  return [Math.min(...finite(blocks.least), 0), high];
}

/** The picture for a width and height, and the columns' places along x. @param {View} view @param {Look} look */
function lines(view, look, width, height) {
  const { header, blocks } = view;
  const { columns, measure, log } = header;
  const { left, right, top, bottom } = EDGE;
  const [low, high] = reach(view);
  const y = scale(low, high, height - bottom, top, log);
  const one = (width - left - right) / Math.max(1, columns.length);
  const xs = columns.map((_, at) => left + (at + 0.5) * one);
  const places = xs
    .map((x, at) => ({ x, at }))
    .filter(({ at }) => Number.isFinite(blocks.values[at]));
  const parts = ticks(low, high, log).flatMap((tick) => [
    node("line", {
      x1: left,
      x2: width - right,
      y1: y(tick),
      y2: y(tick),
      stroke: look.ink,
      opacity: tick ? 0.15 : 0.5,
    }),
    node(
      "text",
      { x: left - 6, y: y(tick) + 4, "text-anchor": "end", "font-size": 12, fill: look.ink },
      short(tick, 6) + measure.unit,
    ),
  ]);
  const box = (share, from, to, more) =>
    places.map(({ x, at }) =>
      node("rect", {
        x: x - one * share,
        width: one * share * 2,
        y: Math.min(y(from[at] ?? from), y(to[at])),
        height: Math.max(1, Math.abs(y(from[at] ?? from) - y(to[at]))),
        ...more,
      }),
    );
  parts.push(...box(0.36, blocks.least, blocks.most, { fill: look.ink, opacity: 0.14 }));
  if (header.bars) {
    parts.push(...box(0.22, 0, blocks.values, { fill: look.primary }));
    for (const [at, x] of xs.entries())
      if (Number.isFinite(blocks.median[at])) {
        const level = y(blocks.median[at]);
        const ends = { x1: x - one * 0.4, x2: x + one * 0.4, y1: level, y2: level };
        parts.push(node("line", { ...ends, stroke: look.ink, "stroke-width": 2 }));
      }
  } else parts.push(...curves(view, look, xs, y));
  parts.push(...under(columns, xs, one, height, look, header.bars));
  return { parts, xs };
}

// A written vector and a state differ in kind: each is joined to its own.
/** @param {View} view @param {Look} look */
function curves({ header, blocks }, look, xs, y) {
  const wrote = header.columns.map(
    ([, , name]) => header.measure.name === "Norm" && name.includes("wrote"),
  );
  const path = (values, kind, more) => {
    const points = xs.flatMap((x, at) =>
      wrote[at] === kind && Number.isFinite(values[at]) ? [[x, y(values[at])]] : [],
    );
    return node("path", { d: through(points), fill: "none", ...more });
  };
  const median = { stroke: look.ink, ...DASHED, opacity: 0.75 };
  const own = { stroke: look.primary, "stroke-width": 3, "stroke-linejoin": "round" };
  const marks = header.columns.flatMap(([, label], at) => {
    const [x, level] = [xs[at], y(blocks.values[at])];
    if (!Number.isFinite(blocks.values[at])) return [];
    const look_ = wrote[at]
      ? { fill: look.paper, stroke: look.primary, "stroke-width": 2.5 }
      : { fill: look.primary };
    return label === "FFN"
      ? [node("rect", { x: x - 4.5, y: level - 4.5, width: 9, height: 9, ...look_ })]
      : [node("circle", { cx: x, cy: level, r: 5, ...look_ })];
  });
  return [false, true]
    .flatMap((kind) => [path(blocks.median, kind, median), path(blocks.values, kind, own)])
    .concat(marks);
}

/** Names under the columns and their groups. @param {Look} look */
function under(columns, xs, one, height, look, bars) {
  const longest = Math.max(...columns.map(([, label]) => label.length)) * 7;
  const every = bars ? Math.ceil((longest + 3) / one) : 1; // not each of many heads has room
  const upright = longest > one * every;
  const y = height - EDGE.bottom;
  return columns.flatMap(([name, label], at) => {
    const place = upright
      ? { transform: `translate(${xs[at] + 4} ${y + 8}) rotate(-90)`, "text-anchor": "end" }
      : { x: xs[at], y: y + 18, "text-anchor": "middle" };
    const size = columns.filter(([each]) => each === name).length;
    const inGroup = placeInGroup(columns, at);
    const parts = [];
    if (inGroup % every === 0 && (inGroup === 0 || size - inGroup >= every))
      parts.push(node("text", { ...place, "font-size": upright ? 11 : 12, fill: look.ink }, label));
    if (inGroup) return parts;
    const edge = xs[at] - one / 2;
    parts.push(
      node("line", {
        x1: edge,
        x2: edge,
        y1: EDGE.top,
        y2: height,
        stroke: look.ink,
        opacity: 0.25,
      }),
    );
    const room = Math.floor((size * one - 4) / 6.6);
    const called = name.length <= room ? name : name.replace("Layer ", "L").replace("Input", "In");
    const bold = { "font-size": 12, "font-weight": 600, fill: look.ink };
    if (called.length <= room + 1)
      parts.push(node("text", { x: edge + 4, y: height - 4, ...bold }, called));
    return parts;
  });
}

/** @param {View} view @param {Look} look */
function drawing(view, look) {
  const { header } = view;
  const hollow = header.measure.name === "Norm" ? " (hollow: what was written)" : "";
  const legend = `Line or bars: token ${header.chosen}, ${header.label}${hollow}. Dashed: median of all ${header.n} tokens. Grey: from the least to the largest.`;
  const head = { title: header.title, caption: header.caption, width: 900, most: 10 };
  return paper(look, head, (top) => [
    text(16, top + 2, legend) +
      tag(
        "g",
        { transform: `translate(16 ${top + 16})` },
        written(lines(view, look, 868, 320).parts),
      ),
    top + 350,
  ]);
}
