// @ts-check
// Two pens with the same strokes, so that the file shows what the screen shows.

import { tag, text } from "./svg_export.js";

/** @typedef {import("./theme.js").Look} Look */

/**
 * path: a line through [x, y, x, y ...]. shape: the mark of a kind of point, filled so far. text: with a
 * ring of paper around it where it has to be read over lines.
 * @typedef {{
 *   path(points: number[], colour: string, width: number, alpha: number, dash?: number[]): void,
 *   shape(kind: number, x: number, y: number, r: number, colour: string, fill: number, width: number): void,
 *   text(x: number, y: number, content: string, how: { size: number, colour: string, bold?: boolean,
 *     align?: CanvasTextAlign, halo?: boolean, turn?: number }): void }} Pen
 */

export const SHAPES = ["circle", "diamond", "square", "triangle"];

/** A colour for each kind of point: two texts, and anchors. @param {Look} look */
export const colours = ({ categorical, ink }) => [categorical[0], categorical[1], ink, ink];

// Corners of a mark, from its middle, in its own size.
const CORNERS = [
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

const corners = (kind, x, y, r) => CORNERS[kind].map(([a, b]) => [x + a * r, y + b * r]);

/** @param {Look} look @param {CanvasRenderingContext2D} context @returns {Pen} */
export function canvasPen(look, context) {
  const line = (points) => {
    context.beginPath();
    points.forEach(([x, y], at) => (at ? context.lineTo(x, y) : context.moveTo(x, y)));
  };
  const paint = (colour, alpha) => {
    [context.globalAlpha, context.fillStyle] = [alpha, colour];
    context.fill();
  };
  return {
    path(points, colour, width, alpha, dash = []) {
      Object.assign(context, { globalAlpha: alpha, strokeStyle: colour, lineWidth: width });
      context.setLineDash(dash);
      line(pairs(points));
      context.stroke();
    },
    shape(kind, x, y, r, colour, fill, width) {
      context.setLineDash([]);
      line(corners(kind, x, y, r));
      if (kind === 0) context.arc(x, y, r, 0, 7);
      else context.closePath();
      paint(look.paper, 1);
      paint(colour, fill);
      Object.assign(context, { globalAlpha: 1, strokeStyle: colour, lineWidth: width });
      context.stroke();
    },
    text(x, y, content, { size, colour, bold, align = "left", halo = true }) {
      context.setLineDash([]);
      Object.assign(context, {
        globalAlpha: 1,
        font: `${bold ? 650 : 450} ${size}px ${look.font}`,
        textAlign: align,
        textBaseline: "middle",
        lineJoin: "round",
        strokeStyle: look.paper,
        lineWidth: 4,
        fillStyle: colour,
      });
      if (halo) context.strokeText(content, x, y);
      context.fillText(content, x, y);
    },
  };
}

/** @param {number[]} points */
const pairs = (points) =>
  Array.from({ length: points.length / 2 }, (_, i) => [points[2 * i], points[2 * i + 1]]);

/** What `strokes` draws, as SVG. @param {Look} look @param {(pen: Pen) => void} strokes */
export function svgPen(look, strokes) {
  const out = [];
  const n = (value) => value.toFixed(1);
  strokes({
    path(points, colour, width, alpha, dash = []) {
      const d = pairs(points).map(([x, y], at) => `${at ? "L" : "M"}${n(x)} ${n(y)}`);
      out.push(
        tag("path", {
          d: d.join(""),
          fill: "none",
          stroke: colour,
          "stroke-width": width,
          "stroke-opacity": alpha,
          "stroke-dasharray": dash.length ? dash.join(" ") : undefined,
        }),
      );
    },
    shape(kind, x, y, r, colour, fill, width) {
      const ink = {
        fill: colour,
        "fill-opacity": fill.toFixed(2),
        stroke: colour,
        "stroke-width": width,
      };
      const points = corners(kind, x, y, r).map((corner) => corner.map(n).join(","));
      out.push(
        kind === 0
          ? tag("circle", { cx: n(x), cy: n(y), r, ...ink })
          : tag("polygon", { points: points.join(" "), ...ink }),
      );
    },
    text(x, y, content, { size, colour, bold, align = "left", halo = true, turn }) {
      const ring = {
        stroke: look.paper,
        "stroke-width": 4,
        "stroke-linejoin": "round",
        "paint-order": "stroke",
      };
      out.push(
        text(+n(x), +n(y), content, {
          dy: "0.35em",
          "font-size": size,
          fill: colour,
          ...(halo ? ring : {}),
          "font-weight": bold ? 650 : undefined,
          "text-anchor": { left: "start", right: "end", center: "middle" }[align],
          transform: turn ? `rotate(${turn} ${n(x)} ${n(y)})` : undefined,
        }),
      );
    },
  });
  return out.join("\n");
}
