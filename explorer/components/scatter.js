// @ts-check
// Points that move through frames in a plane, with their names and the paths of the selected ones.

import { even, scale as along, ticks } from "./axis.js";
import { num } from "./number_format.js";
import { omitted } from "./omissions.js";
import { escaped } from "./svg_export.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** @typedef {import("./figure_types").Plane} Plane */

// Corners of the marks of clouds, from their middle, in their own size; none for a circle.
const MARKS = [
  [],
  [
    [0, -1.3],
    [1.3, 0],
    [0, 1.3],
    [-1.3, 0],
  ],
  [
    [-1, -1],
    [1, -1],
    [1, 1],
    [-1, 1],
  ],
  [
    [0, -1.2],
    [1.2, 1],
    [-1.2, 1],
  ],
];

const WAY = 6; // places of a path's step that names keep free

/** The mark of a cloud, as full as `fill` says. @param {Pen} pen @param {number} kind @param {number[]} place @param {number} r @param {string} colour @param {number} fill */
function mark(pen, kind, [x, y], r, colour, fill) {
  const corners = MARKS[kind].map(
    ([a, b]) => `${(x + a * r).toFixed(1)} ${(y + b * r).toFixed(1)}`,
  );
  const style = { stroke: colour, "stroke-width": Math.max(1.2, r / 4) };
  for (const each of [{ fill: pen.look.paper }, { fill: colour, "fill-opacity": fill.toFixed(2) }])
    if (kind) pen.path(`M${corners.join("L")}Z`, colour, { ...style, ...each });
    else pen.circle(x, y, r, { ...style, ...each });
}

/**
 * Points that move through frames; `current` may lie between two.
 * @param {Pen} pen @param {Plane} figure @param {Box} box
 */
export function plane(pen, figure, { x, y, width, height: room = Infinity }) {
  const { clouds, frames, current: t, trails, close, apart, x_title, y_title, select } = figure;
  const { letter, look } = pen;
  const head = 1.7 * letter;
  const note = pen.note(frames[Math.round(t)].note, width);
  const taken = head + (pen.least ? 0.5 + 1.25 * note.length : 4.3) * letter;
  const least = (pen.least ? 8 : 14) * letter;
  const high = Math.max(least, Math.min(room - taken, (pen.least ? 1 : 0.85) * width, 28 * letter));
  const [n, pad] = [frames.length, 2.2 * letter];
  const rest = look.categorical.filter((each) => each !== look.primary);
  const colours = clouds.map((_, at) => [look.primary, rest[0], look.ink, look.ink][at]);
  /** @type {any[]} */
  const points = clouds.flatMap(({ labels, paths, fills, selected, keys }, kind) =>
    labels.map((label, at) => ({
      ...{ label, kind, key: keys[at], on: at === selected, colour: colours[kind] },
      fill: fills[at * n + Math.round(t)],
      path: Array.from({ length: n }, (_, i) => [
        paths[2 * (at * n + i)],
        paths[2 * (at * n + i) + 1],
      ]),
    })),
  );
  const near = points.filter((one) => one.on || one.key === undefined);
  const framed = (close && points.some((one) => one.on) ? near : points).flatMap((one) => one.path);
  const [xs, ys] = [0, 1].map((axis) =>
    framed.reduce(
      ([low, most], each) => [Math.min(low, each[axis]), Math.max(most, each[axis])],
      [Infinity, -Infinity],
    ),
  );
  if (apart) [xs, ys].forEach((ends) => ends[0] === ends[1] && ends[1]++);
  else even(xs, ys, (width - 2 * pad) / (high - 2 * pad));
  const top = y + head;
  const across = along(xs[0], xs[1], x + pad, x + width - pad);
  const up = along(ys[0], ys[1], top + high - pad, top + pad);
  const at = (/** @type {any} */ { path }, /** @type {number} */ i) => {
    const [from, to] = [path[Math.floor(i)], path[Math.ceil(i)]];
    const share = i - Math.floor(i);
    return [across(from[0] + (to[0] - from[0]) * share), up(from[1] + (to[1] - from[1]) * share)];
  };
  const way = (/** @type {any} */ one, /** @type {number} */ from, /** @type {number} */ to) => {
    const inner = Array.from({ length: n }, (_, i) => i).filter((i) => i > from && i < to);
    return [from, ...inner, to].map((i) => at(one, i));
  };
  let left = x;
  clouds.forEach(({ name }, kind) => {
    mark(pen, kind, [left + 0.5 * letter, y + 0.6 * letter], 0.35 * letter, colours[kind], 1);
    pen.text(left + 1.2 * letter, y + 0.6 * letter, name, {
      size: 0.85,
      room: Math.max(0, x + width - left - 1.2 * letter),
    });
    left += pen.width(name, { size: 0.85 }) + 2.2 * letter;
  });
  const inside = pen.apart(() => {
    /** @type {[number[], string, import("./draw.js").TextStyle][]} */
    const scale = []; // where names leave room
    for (const [axis, place] of /** @type {[number[], (value: number) => number][]} */ ([
      [xs, across],
      [ys, up],
    ]))
      for (const value of ticks(axis[0], axis[1])) {
        const ends =
          axis === xs
            ? [
                [place(value), top],
                [place(value), top + high],
              ]
            : [
                [x, place(value)],
                [x + width, place(value)],
              ];
        pen.line(ends, look.border, { "stroke-opacity": 0.6 });
        const spot =
          axis === xs
            ? [place(value), top + high - 0.6 * letter]
            : [x + 0.3 * letter, place(value)];
        scale.push([
          spot,
          num(value, 3),
          { size: 0.75, alpha: 0.75, anchor: axis === xs ? "middle" : "start" },
        ]);
      }
    const faint = Math.max(0.06, Math.min(0.28, 20 / points.length));
    for (const one of points) {
      if (one.on || t === 0 || !(trails || one.key !== undefined)) continue;
      const from = trails ? 0 : Math.max(0, Math.ceil(t) - 1);
      pen.line(way(one, from, t), one.colour, { "stroke-opacity": trails ? faint : 0.45 });
    }
    for (const one of points.filter(({ on }) => on)) {
      if (t < n - 1)
        pen.line(way(one, t, n - 1), one.colour, {
          "stroke-opacity": 0.6,
          "stroke-width": 1.5,
          "stroke-dasharray": "2 5",
        });
      if (t > 0) pen.line(way(one, 0, t), one.colour, { "stroke-width": 2.5 });
      for (let i = 0; i < n; i++)
        mark(
          pen,
          one.kind,
          at(one, i),
          (i ? 0.16 : 0.28) * letter,
          one.colour,
          i && i <= t ? 1 : 0,
        );
    }
    for (const one of [...points].sort((a, b) => +a.on - +b.on)) {
      const draw = () => {
        mark(pen, one.kind, at(one, t), (one.on ? 0.5 : 0.32) * letter, one.colour, one.fill);
        if (pen.screen && one.key === undefined) pen.put("title", {}, escaped(one.label));
      };
      if (select.length && one.key !== undefined)
        pen.target(
          { select: [one.key], label: `${one.label} (${clouds[one.kind].name})`, pressed: one.on },
          draw,
        );
      else draw();
    }
    const passed = points
      .filter(({ on }) => on)
      .flatMap((one) => Array.from({ length: WAY * (n - 1) + 1 }, (_, i) => at(one, i / WAY)));
    const title = { size: 0.8, bold: true };
    const [right, up_title] = [`${x_title} →`, `↑ ${y_title}`].map((text) =>
      pen.cut(text, 0.6 * width, title),
    );
    const [foot_y, head_y] = [top + high - 1.7 * letter, top + 0.8 * letter];
    const titles = [
      [
        x + width - 0.8 * letter - pen.width(right, title),
        foot_y - 0.6 * letter,
        x + width,
        foot_y + 0.6 * letter,
      ],
      [
        x,
        head_y - 0.6 * letter,
        x + 0.8 * letter + pen.width(up_title, title),
        head_y + 0.6 * letter,
      ],
    ];
    pen.text(x + width - 0.4 * letter, foot_y, right, { ...title, anchor: "end" });
    pen.text(x + 0.4 * letter, head_y, up_title, title);
    pointNames(pen, points, [x, top, x + width, top + high], (one) => at(one, t), passed, titles);
    for (const [[a, b], text, style] of scale)
      if (pen.isFree(pen.box(a, b, text, style))) pen.text(a, b, text, style);
  });
  const box = { x, y: top, width, height: high };
  pen.put("svg", { ...box, viewBox: Object.values(box).join(" "), overflow: "hidden" }, inside);
  pen.rect(x, top, width, high, { fill: "none", stroke: look.border, rx: 4 });
  note.forEach((line, i) =>
    pen.text(x, top + high + (1 + 1.25 * i) * letter, line, { size: 0.85, alpha: 0.75 }),
  );
  return head + high + (0.5 + 1.25 * note.length) * letter;
}

/**
 * Names beside points, where they cover no other name, no title of an axis, no point and no selected
 * path (the selected ones their own where nothing else is free), and
 * where no other point is nearer. First the selected, then those of clouds that cannot be pressed,
 * then words, the nearest to a selected one first, and punctuation at the end.
 * @param {Pen} pen @param {any[]} points @param {number[]} frame left, top, right, foot
 * @param {(point: any) => number[]} at @param {number[][]} passed places along selected paths
 * @param {number[][]} titles boxes that the titles of the axes take
 */
function pointNames(pen, points, [left, top, right, foot], at, passed, titles) {
  const { letter } = pen;
  const around = (/** @type {number[]} */ [x, y], /** @type {number} */ r) => [
    x - r,
    y - r,
    x + r,
    y + r,
  ];
  const occupied = [
    ...titles,
    ...points.map((one) => around(at(one), (one.on ? 0.5 : 0.3) * letter)),
  ];
  const stops = passed.map((place) => around(place, 0.16 * letter));
  const selected = points.filter(({ on }) => on).map(at);
  const far = (/** @type {any} */ one) =>
    Math.min(...selected.map(([x, y]) => Math.hypot(at(one)[0] - x, at(one)[1] - y)), 1e6);
  const rank = (/** @type {any} */ { on, key, label }) =>
    on ? 0 : key === undefined ? 1 : /[\p{L}\p{N}]/u.test(label) ? 2 : 3;
  let written = 0;
  for (const one of [...points].sort((a, b) => rank(a) - rank(b) || far(a) - far(b))) {
    const [x, y] = at(one);
    if (x < left || x > right || y < top || y > foot) continue;
    const style = { size: one.on ? 1.1 : 0.85, bold: one.on };
    const label = pen.cut(one.label, 10 * letter, style);
    const [wide, high] = [pen.width(label, style), 1.1 * style.size * letter];
    const near = (one.on ? 0.75 : 0.5) * letter;
    const gaps = [0, 0.6, ...(one.on ? [1.6, 2.8] : [])].map((more) => near + more * letter);
    const tries = gaps.flatMap((gap) => [
      [x + gap, y],
      [x - gap - wide, y],
      [x - wide / 2, y - high / 2 - gap],
      [x - wide / 2, y + high / 2 + gap],
      ...[-1, 1].flatMap((by) => [
        [x + 0.6 * gap, y + by * (gap + 0.2 * high)],
        [x - 0.6 * gap - wide, y + by * (gap + 0.2 * high)],
      ]),
    ]);
    const away = (/** @type {number[]} */ [a, b], /** @type {any} */ other) => {
      const [to, down] = at(other);
      return Math.hypot(
        Math.max(a - to, 0, to - a - wide),
        Math.max(Math.abs(b - down) - high / 2, 0),
      );
    };
    const covers = (/** @type {number[][]} */ boxes, /** @type {number[]} */ [a, b]) =>
      boxes.some(
        ([from, over, to, under]) =>
          a < to && a + wide > from && b - high / 2 < under && b + high / 2 > over,
      );
    const fits = (/** @type {number[]} */ [a, b]) =>
      a >= left &&
      a + wide <= right &&
      b - high / 2 >= top &&
      b + high / 2 <= foot &&
      !covers(occupied, [a, b]) &&
      points.every((other) => away([a, b], other) >= away([a, b], one) - 1);
    const isInside = (/** @type {number[]} */ [a]) => a >= left && a + wide <= right;
    const isUncovered = (/** @type {number[]} */ spot) =>
      isInside(spot) &&
      pen.isFree([spot[0], spot[1] - high / 2, spot[0] + wide, spot[1] + high / 2]);
    const isClear = (/** @type {number[]} */ spot) => fits(spot) && !covers(stops, spot);
    const place =
      tries.find(isClear) ||
      (one.on && tries.find(fits)) ||
      (one.on ? (tries.find(isUncovered) ?? tries.find(isInside) ?? tries[1]) : undefined);
    if (!place) continue;
    written++;
    occupied.push([place[0] - 3, place[1] - high / 2, place[0] + wide + 3, place[1] + high / 2]);
    pen.text(place[0], place[1], label, {
      ...style,
      halo: true,
      fill: one.on ? one.colour : undefined,
    });
  }
  if (pen.isPaper) pen.omitted.push(...omitted(["points", written, points.length]));
}
