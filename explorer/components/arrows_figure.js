// @ts-check
// Vectors of one plane as arrows, with the angle between the first and the last.

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** @typedef {import("./figure_types").Arrows} Arrows */

const MOST = 14; // letters of height
const HEAD = 0.9; // letters of the two strokes of an arrow's head
const ARC = 0.3; // of the shorter of two arrows, at which the angle between them is drawn

/** Arrows on one scale, their names beside their middles, and the angle at the point that two of them leave. @param {Pen} pen @param {Arrows} figure @param {Box} box */
export function arrows(pen, { arrows: drawn, angle }, { x, y, width, height = Infinity }) {
  const { letter, look } = pen;
  const ends = drawn.flatMap(({ start, end }) => [start, end]);
  const [across, up] = [0, 1].map((axis) => ends.map((each) => each[axis]));
  const [left, right] = [Math.min(...across), Math.max(...across)];
  const [low, high] = [Math.min(...up), Math.max(...up)];
  const names = drawn.map(({ label }) => pen.width(label, { bold: true }));
  const aside = Math.max(pen.width(angle, { bold: true }), ...names) + 1.5 * letter;
  const margin = 1.8 * letter; // above and below, for names
  const scale = Math.min(
    Math.max(width - 2 * aside, 4 * letter) / (right - left || 1),
    Math.max(Math.min(MOST * letter, height - 2 * margin), 3 * letter) / (high - low || 1),
  );
  const foot = y + margin + scale * (high - low);
  const middle = x + width / 2 - (scale * (left + right)) / 2;
  const seen = (/** @type {number[]} */ [a, b]) => [middle + scale * a, foot - scale * (b - low)];
  const centre = [across, up].map((all) => all.reduce((sum, each) => sum + each, 0) / all.length);
  const [inX, inY] = seen(centre);
  const colours = [look.ink, look.categorical[1], look.primary];
  drawn.forEach(({ label, start, end, selected }, which) => {
    const [from, to] = [seen(start), seen(end)];
    const colour = colours[which % 3];
    const turn = Math.atan2(to[1] - from[1], to[0] - from[0]);
    const strokes = [2.6, -2.6].map((back) => [
      to,
      [0, 1].map((axis) => to[axis] + HEAD * letter * [Math.cos, Math.sin][axis](turn + back)),
    ]);
    for (const points of [[from, to], ...strokes])
      pen.line(points, colour, { "stroke-width": letter / (selected ? 4 : 6) });
    const [right, down] = [0, 1].map((axis) => (from[axis] + to[axis]) / 2);
    const side = [Math.sin(turn), -Math.cos(turn)]; // of the two that which is without
    const out = Math.sign(side[0] * (right - inX) + side[1] * (down - inY)) || 1;
    const aside = out * side[0];
    pen.text(right + letter * aside, down + letter * out * side[1], label, {
      anchor: Math.abs(aside) < 0.35 ? "middle" : aside < 0 ? "end" : "start",
      bold: selected,
      fill: colour,
    });
  });
  const two = [drawn[0], drawn[drawn.length - 1]].map(({ start, end }) =>
    [0, 1].map((axis) => end[axis] - start[axis]),
  );
  const [from, to] = two.map(([a, b]) => Math.atan2(b, a));
  const reach = Math.max(1.4 * letter, ARC * scale * Math.min(...two.map((v) => Math.hypot(...v))));
  const corner = seen(drawn[0].start);
  const arc = [...Array(25).keys()].map((at) => {
    const turned = from + ((to - from) * at) / 24;
    return [corner[0] + reach * Math.cos(turned), corner[1] - reach * Math.sin(turned)];
  });
  pen.line(arc, look.primary, { "stroke-width": 2, "stroke-dasharray": "5 3" });
  pen.text(corner[0] - 0.7 * letter, corner[1], angle, {
    anchor: "end",
    bold: true,
    fill: look.primary,
  });
  return scale * (high - low) + 2 * margin;
}
