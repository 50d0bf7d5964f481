// @ts-check
// Pictures that a pen draws: curves over an axis, and turns of a vector.

import { scale, ticks } from "./axis.js";
import { sharp } from "./matrix_canvas.js";
import { make } from "./mount.js";
import { num } from "./number_format.js";

const DASHES = [[], [10, 6], [3, 5], [12, 5, 3, 5]];

/** @param {any} panel */
export const curves = ({ x_title, y_title }) => [
  make("div", "chart", make("canvas", "pen"), make("div", "labels"), make("span", "y", y_title)),
  make("span", "x", x_title),
];

/**
 * The colours of curves: the one that is spoken of has that of numbers in the text, the others have the
 * rest in turn.
 * @param {{ on?: boolean }[]} series
 * @param {{ primary: string, categorical: string[] }} look
 */
export function coloured(series, { primary, categorical }) {
  const rest = categorical.filter((each) => each !== primary);
  let at = 0;
  return series.map(({ on }) => (on ? primary : rest[at++ % rest.length]));
}

/** @param {any} panel */
function ends(panel) {
  const all = (/** @type {"x" | "y"} */ axis) =>
    panel.series
      .flatMap((one) => one[axis])
      .filter(
        (value) =>
          value !== null && (axis === "x" ? !panel.log_x || value > 0 : !panel.log_y || value > 0),
      );
  const [xs, ys] = [all("x"), all("y")];
  const y = [Math.min(...ys), Math.max(...ys)];
  if (y[0] === y[1]) y[1] = y[0] + 1;
  return { x: [Math.min(...xs), Math.max(...xs)], y };
}

/** @param {HTMLElement} box @param {any} panel @param {any} look */
export function paintCurves(box, panel, look) {
  const canvas = /** @type {HTMLCanvasElement} */ (box.querySelector("canvas"));
  const labels = /** @type {HTMLElement} */ (box.querySelector(".labels"));
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const pen = sharp(canvas, width, height);
  const letter = parseFloat(getComputedStyle(box).fontSize);
  const { x, y } = ends(panel);
  if (panel.even) evened(x, y, (width - 14 * letter) / (height - 4 * letter));
  const names = panel.series.flatMap((one) => (one.end ? [one.end.length, one.name.length] : []));
  const wide = names.length ? Math.min(0.45 * width, Math.max(11, 0.6 * Math.max(...names)) * letter) : letter; // prettier-ignore
  const left = scale(
    panel.backwards ? x[1] : x[0],
    panel.backwards ? x[0] : x[1],
    3.2 * letter,
    width - wide,
    panel.log_x,
  );
  const up = scale(y[0], y[1], height - 1.8 * letter, 1.9 * letter, panel.log_y);
  pen.strokeStyle = look.border;
  const put = (
    /** @type {string} */ text,
    /** @type {number} */ at,
    /** @type {number} */ to,
    kind,
  ) => make("span", { class: kind, style: { left: `${at}px`, top: `${to}px` }, dir: "auto" }, text);
  const made = [];
  for (const value of ticks(y[0], y[1], panel.log_y).filter(thinned)) {
    pen.beginPath();
    pen.moveTo(3.2 * letter, up(value));
    pen.lineTo(width - wide, up(value));
    pen.stroke();
    made.push(put(num(value, 3), 2.9 * letter, up(value), "tick y-tick"));
  }
  const along = panel.ticks.length
    ? spaced(panel.ticks, left, letter)
    : ticks(x[0], x[1], panel.log_x).map((value) => [value, num(value, 3)]);
  for (const [value, text] of along) {
    const last = left(value) > width - wide - 2 * letter; // beside the names at the ends
    made.push(put(text, left(value), height - 0.9 * letter, `tick x-tick ${last ? "last" : ""}`));
  }
  const last = [];
  const colours = coloured(panel.series, look);
  panel.series.forEach((one, at) => {
    pen.strokeStyle = colours[at];
    pen.lineWidth = letter / (one.on ? 5 : 9);
    pen.setLineDash(DASHES[at % DASHES.length].map((each) => (each * letter) / 20));
    pen.beginPath();
    let down = false;
    one.x.forEach((value, each) => {
      const to = one.y[each];
      if (to === null || (panel.log_y && to <= 0)) return (down = false);
      pen[down ? "lineTo" : "moveTo"](left(value), up(to));
      down = true;
      last[at] = [left(value), up(to)];
    });
    pen.stroke();
    if (one.dot === undefined) return;
    pen.fillStyle = pen.strokeStyle;
    pen.beginPath();
    pen.arc(left(one.x[one.dot]), up(one.y[one.dot]), letter / 3, 0, 7);
    pen.fill();
  });
  labels.replaceChildren(...made, ...named(panel, last, letter, colours, [width, height]));

  /** @param {number} _ @param {number} at @param {number[]} list */
  function thinned(_, at, list) {
    return at % Math.ceil(list.length / 7) === 0;
  }
}

/** Those of the named places along an axis that have room beside each other. */
function spaced(all, left, letter) {
  let free = -Infinity;
  return all.filter(([value, text]) => {
    const half = (text.length * letter * 0.55) / 2;
    if (left(value) - half < free) return false;
    free = left(value) + half + letter * 0.4;
    return true;
  });
}

/** One scale for both axes of a picture of this shape: distances compare in every direction. */
function evened(x, y, shape) {
  const [wide, high] = [x[1] - x[0] || 1, y[1] - y[0] || 1];
  const [axis, span] = wide / high < shape ? [x, high * shape - wide] : [y, wide / shape - high];
  axis[0] -= span / 2;
  axis[1] += span / 2;
}

/** Names at the ends of curves, moved apart where they would meet. */
function named(panel, last, letter, colours, [width, height]) {
  const order = panel.series.map((_, at) => at).filter((at) => last[at] && panel.series[at].end);
  order.sort((a, b) => last[a][1] - last[b][1]);
  // As many as there are have room above the ground, the lowest first.
  const tops = order.map((at) => last[at][1]);
  const apart = (at) => letter * (panel.series[order[at]].name ? 2.3 : 1.25);
  tops.forEach((_, at) => at && (tops[at] = Math.max(tops[at], tops[at - 1] + apart(at - 1))));
  let ground = height - letter;
  for (let at = tops.length - 1; at >= 0; at--) {
    tops[at] = Math.min(tops[at], ground);
    ground = tops[at] - (at ? apart(at - 1) : 0);
  }
  return order.map((at, place) => {
    const one = panel.series[at];
    const top = tops[place];
    const from = last[at][0] + letter / 2;
    const style = {
      left: `${from}px`,
      maxWidth: `${width - from}px`,
      top: `${top}px`,
      color: colours[at],
    };
    return make(
      "span",
      { class: "end", style },
      make("b", one.on ? "number" : "", one.end),
      one.name && make("span", "", one.name),
    );
  });
}

/** @param {any} panel */
export const dials = ({ dials: list }) => [
  make(
    "div",
    "row",
    ...list.map(({ label, text, on }) =>
      make(
        "div",
        `dial ${on ? "on" : ""}`,
        make("canvas", "pen"),
        make("b", on ? "number" : "", text),
        make("span", "", label),
      ),
    ),
  ),
];

/** @param {HTMLElement} box @param {any} panel @param {any} look */
export function paintDials(box, { dials: list, full }, look) {
  box.querySelectorAll("canvas").forEach((canvas, at) => {
    const [wide, size] = [canvas.clientWidth, canvas.clientHeight];
    const pen = sharp(canvas, wide, size);
    const [middle, down, reach] = [wide / 2, size * 0.52, size * 0.38];
    const { before, total, after } = list[at];
    pen.strokeStyle = look.border;
    pen.lineWidth = size / 90;
    pen.beginPath();
    pen.arc(middle, down, reach, 0, 7);
    pen.stroke();
    arrow(look.ink, before, 0, 0.5);
    arrow(look.categorical[1], total[0], total[1], 1, [size / 40, size / 40]);
    arrow(look.primary, after[0], after[1], 1);

    function arrow(colour, length, degrees, alpha, dash = []) {
      const angle = (degrees - 90) * (Math.PI / 180);
      const far = Math.min(1.3, length / full) * reach;
      const [x, y] = [middle + far * Math.cos(angle), down + far * Math.sin(angle)];
      Object.assign(pen, {
        strokeStyle: colour,
        fillStyle: colour,
        globalAlpha: alpha,
        lineWidth: size / 40,
      });
      pen.setLineDash(dash);
      pen.beginPath();
      pen.moveTo(middle, down);
      pen.lineTo(x, y);
      pen.stroke();
      pen.setLineDash([]);
      pen.beginPath();
      pen.arc(x, y, size / 32, 0, 7);
      pen.fill();
      pen.globalAlpha = 1;
    }
  });
}
