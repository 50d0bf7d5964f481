// @ts-check
// The plane of tokens' paths: where the points stand, and how they are drawn.

import { nice } from "./axis.js";
import { sharp } from "./matrix_canvas.js";
import { letter } from "./mount.js";
import { canvasPen, colours } from "./draw_backends.js";
import { fixed } from "./number_format.js";
import { calm, cut } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */
/** @typedef {import("./draw_backends.js").Pen} Pen */

const NEAR = 18; // pixels from which a dot is pointed at
const PAD = 44;

/** What the frame shows: everything, or close up all that the followed words do, and the anchors. @param {View} view */
export function bounds(view) {
  const { points, chosen, close, n, blocks } = view;
  const c = blocks.coordinates;
  const box = [Infinity, -Infinity, Infinity, -Infinity];
  points.forEach(({ kind }, at) => {
    if (close && chosen.length && kind < 2 && !chosen.includes(at)) return;
    for (let i = 2 * at * n; i < 2 * (at + 1) * n; i += 2) {
      [box[0], box[1]] = [Math.min(box[0], c[i]), Math.max(box[1], c[i])];
      [box[2], box[3]] = [Math.min(box[2], c[i + 1]), Math.max(box[3], c[i + 1])];
    }
  });
  view.bounds = points.length ? box : [0, 0, 0, 0];
  if (view.view) layout(view, view.view.width, view.view.height);
}

// One scale for both axes: distances in the picture can be compared in every direction.
/** @param {View} view */
function layout(view, width, height) {
  const [x0, x1, y0, y1] = view.bounds;
  const room = [(width - 2 * PAD) / (x1 - x0 || 1e-9), (height - 2 * PAD) / (y1 - y0 || 1e-9)];
  const scale = Math.min(...room, 1e9);
  const [dx, dy] = [width / 2 - ((x0 + x1) / 2) * scale, height / 2 + ((y0 + y1) / 2) * scale];
  view.view = { width, height, scale, dx, dy };
}

/** @param {View} view */
export function sized(view) {
  const width = view.box.clientWidth;
  if (!width) return;
  const tall = Math.max(620, window.innerHeight * 0.66);
  const height = Math.round(Math.max(320, Math.min(tall, width * 0.68)));
  view.canvas.style.height = `${height}px`;
  view.seen = new Set();
  layout(view, width, height);
  paint(view);
}

/** @param {View} view */
export const inFrame = ({ view: { width, height } }, /** @type {number[]} */ [x, y]) =>
  x >= 0 && y >= 0 && x <= width && y <= height;

/** Where a point is at a site, or between two. @param {View} view */
export function spot({ blocks, n, view }, at, t) {
  const c = blocks.coordinates;
  const low = Math.min(Math.floor(t), n - 1);
  const i = (at * n + low) * 2;
  const j = t > low ? i + 2 : i;
  const between = (k) => c[i + k] + (c[j + k] - c[i + k]) * (t - low);
  return [view.dx + view.scale * between(0), view.dy - view.scale * between(1)];
}

/** @param {View} view */
function stretch(view, at, from, to) {
  const points = spot(view, at, from);
  for (let s = Math.floor(from) + 1; s < to; s++) points.push(...spot(view, at, s));
  if (to > from) points.push(...spot(view, at, to));
  return points;
}

/** The point under the pointer, null where there is none. @param {View} view */
export function nearest(view, x, y) {
  const apart = view.points.map((_, at) => {
    const [a, b] = spot(view, at, view.at);
    return Math.hypot(a - x, b - y);
  });
  const least = Math.min(...apart);
  return least < NEAR ? apart.indexOf(least) : null;
}

/** @param {View} view */
export function paint(view) {
  if (!view.view) return;
  const { width, height } = view.view;
  const context = sharp(view.canvas, width, height);
  context.fillStyle = view.look.paper;
  context.fillRect(0, 0, width, height);
  scene(view, view.look, canvasPen(view.look, context));
  view.root.dataset.frames = view.frames = (view.frames || 0) + 1;
}

/** @param {View} view @param {Look} look @param {Pen} pen */
export function scene(view, look, pen) {
  const { points, chosen, over, at: t, n, blocks } = view;
  const paints = colours(look);
  const strong = new Set(over === null ? chosen : [...chosen, over]);
  grid(view, look, pen);
  const shown = points.map((_, at) => spot(view, at, t));
  const faint = Math.max(0.06, Math.min(0.28, 20 / points.length));
  points.forEach(({ kind }, at) => {
    if (strong.has(at) || t === 0) return;
    const all = view.trails === "All" && kind < 2;
    const from = all ? 0 : Math.max(0, Math.ceil(t) - 1);
    pen.path(stretch(view, at, from, t), paints[kind], 1.25, kind > 1 ? 0.2 : all ? faint : 0.45);
  });
  for (const at of strong) {
    const { kind } = points[at];
    const colour = paints[kind];
    if (t < n - 1) pen.path(stretch(view, at, t, n - 1), colour, 1.5, 0.6, [2, 5]);
    if (t > 0) pen.path(stretch(view, at, 0, t), colour, 3, 0.95);
    for (let s = 0; s < n; s++) {
      const [x, y] = spot(view, at, s);
      pen.shape(kind, x, y, s ? 2.5 : 4.5, colour, s && s <= t ? 1 : 0, 1.25);
    }
  }
  const order = [...points.keys()].sort((a, b) => Number(strong.has(a)) - Number(strong.has(b)));
  for (const at of order) {
    const { kind } = points[at];
    const [[x, y], held] = [shown[at], strong.has(at)];
    const inside = 1 - blocks.error[at * n + Math.round(t)];
    pen.shape(
      kind,
      x,
      y,
      held ? 8 : 5,
      paints[kind],
      inside * (kind < 2 ? 1 : 0.6),
      held ? 2.5 : 1.5,
    );
  }
  names(view, look, pen, shown, strong);
  axes(view, look, pen);
}

// A name is written where it covers no other name, first to last: the followed word, the word pointed
// at, anchors, names already there, then in the order of the text; one that finds no room on either side,
// above or below is left out. While the picture has the focus all are written.
/** @param {View} view @param {Look} look @param {Pen} pen */
function names(view, look, pen, shown, strong) {
  const { points, chosen, over, seen: before } = view;
  const { width: right, height: bottom } = view.view;
  const size = Math.max(12, 0.8125 * letter());
  const rank = (at) => {
    if (chosen.includes(at)) return 0;
    if (at === over) return 1;
    return points[at].kind > 1 ? 2 : before.has(at) ? 3 : 4;
  };
  const order = [...points.keys()].sort((a, b) => rank(a) - rank(b) || a - b);
  const taken = [];
  view.seen = new Set();
  const measure = (view.measure ||= document.createElement("canvas").getContext("2d"));
  for (const at of order) {
    const { label, kind } = points[at];
    const [x, y] = shown[at];
    if (!inFrame(view, [x, y])) continue;
    const big = strong.has(at);
    const [high, gap] = big ? [size * 1.3, 12] : [size, 8];
    measure.font = `${big ? 650 : 450} ${high}px ${look.font}`;
    const width = measure.measureText(label).width;
    const tries = [
      [x + gap, y],
      [x - gap - width, y],
      [x - width / 2, y - high / 2 - gap],
      [x - width / 2, y + high / 2 + gap],
    ];
    const wide = (/** @type {number[]} */ [a]) => a >= 2 && a + width <= right - 2;
    const free = (/** @type {number[]} */ [a, b]) =>
      wide([a]) &&
      b - high / 2 >= 2 &&
      b + high / 2 <= bottom - 2 &&
      !taken.some(
        ([left, top, end, low]) =>
          a < end + 3 && a + width + 3 > left && b - high / 2 < low && b + high / 2 > top,
      );
    let place = tries.find(free);
    if (!place && (view.allNames || view.focused || rank(at) < 2))
      place = tries.find(wide) || tries[0];
    if (!place) continue;
    view.seen.add(at);
    const [a, b] = place;
    taken.push([a, b - high / 2, a + width, b + high / 2]);
    const colour = kind < 2 && big ? colours(look)[kind] : look.ink;
    pen.text(a, b, label, { size: high, colour, bold: big || kind > 1 });
  }
}

/** @param {View} view @param {Look} look @param {Pen} pen */
function grid(view, look, pen) {
  const { width, height, scale, dx, dy } = view.view;
  const step = nice(width / scale, 7);
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step))));
  const how = { size: 11, colour: look.ink };
  const line = (points, i) => pen.path(points, look.ink, 1, i === 0 ? 0.32 : 0.09);
  for (let i = Math.ceil(-dx / scale / step); i * step <= (width - dx) / scale && i < 1e4; i++) {
    const x = dx + i * step * scale;
    line([x, 0, x, height], i);
    if (x > 28 && x < width - 60)
      pen.text(x, height - 9, fixed(i * step, digits), { ...how, align: "center" });
  }
  for (let i = Math.ceil((dy - height) / scale / step); i * step <= dy / scale && i < 1e4; i++) {
    const y = dy - i * step * scale;
    line([0, y, width, y], i);
    if (y > 30 && y < height - 28) pen.text(5, y, fixed(i * step, digits), how);
  }
}

/** @param {View} view @param {Look} look @param {Pen} pen */
function axes({ view: { width, height }, header }, look, pen) {
  const [x, y] = header.axes.map((axis) => cut(calm(axis), Math.floor(width / 10)));
  const how = { size: 12, colour: look.ink, bold: true };
  pen.text(width - 6, height - 24, `${x} →`, { ...how, align: "right" });
  pen.text(6, 12, `↑ ${y}`, how);
}
