// @ts-check
// Pictures that a pen draws: curves over an axis, and turns of a vector.

import { scale, ticks } from "./axis.js";
import { sharp } from "./cells.js";
import { make } from "./mount.js";
import { num } from "./say.js";

const DASHES = [[], [10, 6], [3, 5], [12, 5, 3, 5]];

/** @param {any} panel */
export const curves = ({ x_title, y_title }) => [
  make("div", "chart", make("canvas", "pen"), make("div", "labels"), make("span", "y", y_title)),
  make("span", "x", x_title),
];

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
  const wide = panel.series.some((one) => one.end) ? 11 * letter : letter;
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
    ? panel.ticks
    : ticks(x[0], x[1], panel.log_x).map((value) => [value, num(value, 3)]);
  for (const [value, text] of along) {
    const last = left(value) > width - wide - 2 * letter; // beside the names at the ends
    made.push(put(text, left(value), height - 0.9 * letter, `tick x-tick ${last ? "last" : ""}`));
  }
  const last = [];
  panel.series.forEach((one, at) => {
    pen.strokeStyle = look.categorical[at % look.categorical.length];
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
  });
  labels.replaceChildren(...made, ...named(panel, last, letter, look));

  /** @param {number} _ @param {number} at @param {number[]} list */
  function thinned(_, at, list) {
    return at % Math.ceil(list.length / 7) === 0;
  }
}

/** Names at the ends of curves, moved apart where they would meet. */
function named(panel, last, letter, look) {
  const order = panel.series.map((_, at) => at).filter((at) => last[at] && panel.series[at].end);
  order.sort((a, b) => last[a][1] - last[b][1]);
  let below = -Infinity;
  return order.map((at) => {
    const one = panel.series[at];
    const top = Math.max(last[at][1], below);
    below = top + letter * 2.3;
    const style = {
      left: `${last[at][0] + letter / 2}px`,
      top: `${top}px`,
      color: look.categorical[at % look.categorical.length],
    };
    return make(
      "span",
      { class: "end", style },
      make("b", one.on ? "number" : "", one.end),
      make("span", "", one.name),
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
