// @ts-check
// Curves of the followed word: a number of it by site.

import { nice, scale } from "./axis.js";
import { make } from "./mount.js";
import { colours, svgPen } from "./draw_backends.js";
import { fixed } from "./number_format.js";
import { offer, paper, shown, tag } from "./svg_export.js";
import { calm, cut } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const SIZE = { width: 560, height: 330, left: 46, right: 172, top: 14, bottom: 92 };
const APART = 15; // between names at the ends of lines

/** A site's place across. @param {number} n of sites */
const across = (n) => {
  const to = scale(0, Math.max(1, n - 1), SIZE.left, SIZE.width - SIZE.right);
  return (site) => to(n > 1 ? site : 0.5);
};

/** @param {View} view */
export function curve(view) {
  const { header, blocks, look } = view;
  const n = header.titles.length;
  const { width, height, top, bottom } = SIZE;
  const x = across(n);
  const picture = shown(curves(view, look), { viewBox: `0 0 ${width} ${height}`, role: "img" });
  const ends = header.lines.map(
    ({ name }, at) => `${name} ${fixed(blocks.values[(at + 1) * n - 1], 2)} at the end`,
  );
  picture.setAttribute(
    "aria-label",
    `${header.measure} by site, ${ends.join(", ")}. The table below has every number.`,
  );
  const percent = (part) => `${(part / height) * 100}%`;
  const cursor = make("i", {
    class: "cursor",
    vars: { top: percent(top), high: percent(height - top - bottom) },
  });
  view.cursor = (stage) => (cursor.style.left = `${(x(stage) / width) * 100}%`);
  const [title, ...caption] = header.caption;
  offer(view, "Curve", (on) =>
    paper(on, { title, caption, width: width + 80 }, (from) => [
      tag("g", { transform: `translate(40 ${from})` }, curves(view, on)),
      from + height,
    ]),
  );
  return make("section", "curve", make("div", "drawn", picture, cursor));
}

/** @param {View} view @param {Look} look */
function curves({ header, blocks }, look) {
  const n = header.titles.length;
  const { width, height, left, right, top, bottom } = SIZE;
  const paints = colours(look);
  let [low, high] = [Math.min(...blocks.values), Math.max(...blocks.values)];
  if (header.measure !== "Cosine") [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  const step = nice(Math.max(high - low, 0.02), 5);
  [low, high] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  if (high === low) high += step;
  const x = across(n);
  const y = scale(low, high, height - bottom, top);
  const { ink } = look;
  return svgPen(look, (pen) => {
    const digits = Math.max(1, -Math.floor(Math.log10(step) + 1e-9));
    for (let i = Math.round(low / step); i <= Math.round(high / step); i++) {
      const at = y(i * step);
      pen.path([left, at, width - right, at], ink, 1, i === 0 ? 0.5 : 0.13);
      const how = { size: 12, colour: ink, halo: false };
      pen.text(left - 6, at, fixed(i * step, digits), { ...how, align: "right" });
    }
    const every = Math.ceil(n / 12);
    header.titles.forEach((title, site) => {
      if (site % every && site !== n - 1) return;
      const how = { size: 11.5, colour: ink, halo: false, turn: -38 };
      pen.text(x(site) + 4, height - bottom + 12, title, { ...how, align: "right" });
    });
    const ends = header.lines.map(({ kind, group }, at) => {
      const values = blocks.values.subarray(at * n, (at + 1) * n);
      const points = [...values].flatMap((value, site) => [x(site), y(value)]);
      pen.path(points, paints[kind], 2.5, 1, group ? [6, 4] : []);
      for (let i = 0; i < points.length; i += 2)
        pen.shape(kind, points[i], points[i + 1], 3, paints[kind], group ? 0 : 1, 1.25);
      return { at, y: points.at(-1), to: 0 };
    });
    spread(ends, top, height - bottom + 4);
    for (const end of ends) {
      const { kind, name } = header.lines[end.at];
      pen.path([width - right + 3, end.y, width - right + 10, end.to], paints[kind], 1, 0.7);
      const how = { size: 12.5, colour: paints[kind], bold: true, halo: false };
      pen.text(width - right + 13, end.to, cut(calm(name), 25), how);
    }
  });
}

// Names stand at the ends of their lines, pushed apart where these come together.
function spread(ends, top, bottom) {
  ends.sort((a, b) => a.y - b.y);
  ends.forEach((end, i) => (end.to = Math.max(end.y, i ? ends[i - 1].to + APART : top)));
  const over = ends.length ? ends.at(-1).to - bottom : 0;
  if (over > 0) ends.forEach((end, i) => (end.to = Math.max(top + APART * i, end.to - over)));
}
