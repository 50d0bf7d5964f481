// @ts-check
// Vectors one above the other, aligned number by number.

import { context, raster, sharp } from "./matrix_canvas.js";
import { plainKey } from "./keys.js";
import { letter, make, put } from "./mount.js";
import { fixed } from "./number_format.js";
import { clamp, css, inkOn, wordAt } from "./theme.js";
import { cut } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

/**
 * A row: its name, its numbers and their colours' reach, `one` from 0 up or `two` around 0; which of them
 * are free, and what stands in the others; a picture [height, width, bytes] instead of the numbers.
 * @typedef {{ name: any[], values: Float32Array, sides?: "one" | "two", top?: number, free?: any,
 *   barred?: string, strong?: boolean, image?: [number, number, Uint8Array] }} Row
 */

/**
 * What is pointed at in one picture of a `group` is told by all of the group. say: what the line under it
 * tells of a place, rest: of none. labels: names under the places. mark: the framed place. pick: a place
 * was chosen. cuts: equal pieces, of which `cut` stands out.
 * @typedef {{ group: string, id: string, n: number, rows: Row[], about: string,
 *   say: (at: number) => any[], rest: any[], labels?: string[], mark?: number,
 *   pick?: (at: number) => void, cuts?: number, cut?: number }} Plan
 */

export const MOST_NAMED = 60; // tokens named along a picture

/** The colour of a number of a row. @param {Look} look @param {Row} row */
export function wordOf(look, { sides = "two", top = 0 }, value) {
  const share = top > 0 ? value / top : 0;
  return wordAt(look[sides], sides === "one" ? share : 0.5 + share / 2);
}

/** The cells of a row as a picture. @param {Look} look @param {Row} row @param {number} n */
export function picture(look, row, n) {
  if (row.image) {
    const [height, width, bytes] = row.image;
    return raster(height, width, (at) => look.two[bytes[at]]);
  }
  return raster(1, n, (at) =>
    row.free && !row.free[at] ? undefined : wordOf(look, row, row.values[at]),
  );
}

/** @param {View} view @param {Plan} plan */
export function strips(view, plan) {
  const { group, id, n, rows, labels, mark = -1, pick } = plan;
  const canvas = make("canvas");
  const [marked, over] = [make("i", "mark"), make("i", "over")];
  const line = make("p", "told");
  const names = rows.map(({ name, image, strong }) => {
    const title = name.map((each) => each.textContent ?? each).join("");
    return make("span", { class: image ? "tall" : strong ? "strong" : "", title }, ...name);
  });
  const field = make(
    "div",
    {
      class: "field",
      tabindex: 0,
      role: "slider",
      data: { focus: id },
      "aria-label": `${plan.about}. Arrow keys move${pick ? ", Enter chooses" : ""}.`,
      "aria-valuemin": 0,
      "aria-valuemax": n - 1,
    },
    canvas,
    marked,
    over,
  );
  const heights = (unit) => rows.map((row) => (row.image ? 6 : 1.875) * unit);
  const frame = (box, at) => {
    const tall = heights(letter()).reduce((a, b) => a + b, 0);
    const style = { left: `${(100 * at) / n}%`, width: `${100 / n}%`, height: `${tall}px` };
    put(box, { hidden: at < 0, style });
  };
  const show = (at) => {
    frame(over, at);
    line.replaceChildren(...(at >= 0 ? plan.say(at) : plan.rest));
    field.setAttribute("aria-valuenow", `${Math.max(0, at)}`);
    const told = at >= 0 ? /** @type {string} */ (line.textContent) : "nothing pointed at";
    field.setAttribute("aria-valuetext", told);
  };
  (view.groups[group] ||= []).push(show);
  const tell = (at) => {
    view.at[group] = at;
    view.groups[group].forEach((each) => each(at));
  };
  const from = (event) => {
    const box = canvas.getBoundingClientRect();
    return clamp(Math.floor(((event.clientX - box.left) / box.width) * n), 0, n - 1);
  };
  put(field, {
    onmousemove: (event) => tell(from(event)),
    onmouseleave: () => tell(-1),
    onclick: (event) => (pick || tell)(from(event)),
    onblur: () => tell(-1),
    onfocus: () =>
      field.matches(":focus-visible") &&
      tell(Math.min(n - 1, Math.max(0, view.at[group] ?? -1, mark))),
    onkeydown: (event) => {
      if (!plainKey(event)) return;
      const at = view.at[group] ?? -1;
      const by = {
        ArrowRight: 1,
        ArrowUp: 1,
        ArrowLeft: -1,
        ArrowDown: -1,
        PageUp: 10,
        PageDown: -10,
      };
      const to = { Home: 0, End: n - 1 }[event.key] ?? at + by[event.key];
      if (!Number.isNaN(to)) {
        event.preventDefault();
        tell(clamp(to, 0, n - 1));
      } else if (event.key === "Enter" && at >= 0) pick?.(at);
      else if (event.key === "Escape") tell(-1);
    },
  });
  view.fits.push(() => {
    const width = field.clientWidth;
    if (!width) return;
    const unit = letter();
    const foot = labels ? labelHeight(n, width / n, unit) : 0;
    const all = heights(unit);
    const tall = all.reduce((a, b) => a + b, 0);
    canvas.style.height = `${tall + foot}px`;
    const pen = sharp(canvas, width, tall + foot);
    let top = 0;
    rows.forEach((row, at) => {
      paint(view, pen, row, n, { y: top, w: width, h: all[at] }, unit);
      top += all[at];
    });
    if (plan.cuts) cutUp(view, pen, width, top, plan.cuts, plan.cut ?? -1);
    if (labels) nameUnder(view, pen, labels, width / n, top, unit, mark, foot);
    frame(marked, mark);
    show(view.at[group] === undefined || !field.matches(":focus") ? -1 : view.at[group]);
  });
  return make("div", "strips", make("div", "names", ...names), field, line);
}

/** @param {View} view @param {CanvasRenderingContext2D} pen @param {Row} row */
function paint({ look }, pen, row, n, { y, w, h }, unit) {
  const size = w / n;
  const high = h - Math.max(1, unit / 10);
  if (row.image || size < 2) {
    pen.drawImage(picture(look, row, n), 0, y, w, high);
    return;
  }
  const printed = size >= 2.2 * unit;
  Object.assign(pen, {
    font: `${Math.min(0.9375 * unit, size / 3.2)}px ${look.font}`,
    textAlign: "center",
    textBaseline: "middle",
  });
  const print = printed ? printer(pen, row.values, size - 5) : () => "";
  for (let at = 0; at < n; at++) {
    const [x, wide] = [at * size, size - (size > 6 ? 1 : 0)];
    const barred = row.free && !row.free[at];
    const word = wordOf(look, row, row.values[at]);
    pen.fillStyle = barred ? hatch(pen, look) : css(word);
    pen.fillRect(x, y, wide, high);
    pen.fillStyle = barred ? look.ink : inkOn(word);
    if (printed)
      pen.fillText(barred ? row.barred || "" : print(row.values[at]), x + size / 2, y + high / 2);
  }
  pen.strokeStyle = look.border;
  pen.lineWidth = 1;
  pen.strokeRect(0.5, y + 0.5, w - 1, high - 1);
}

/** The numbers of a row with two decimals, or fewer where one of them would not fit its cell. */
function printer(pen, values, room) {
  const say = (digits) => (value) => fixed(value, digits);
  const fits = (text) => pen.measureText(text).width <= room;
  return say([2, 1].find((digits) => Array.from(values, say(digits)).every(fits)) ?? 0);
}

function hatch(pen, { ink }) {
  const tile = make("canvas", { width: 6, height: 6 });
  const line = context(tile);
  [line.strokeStyle, line.globalAlpha] = [ink, 0.3];
  line.beginPath();
  for (const x of [-6, 0, 6]) {
    line.moveTo(x, 6);
    line.lineTo(x + 6, 0);
  }
  line.stroke();
  return pen.createPattern(tile, "repeat");
}

// The borders between heads, and a veil over all pieces but one.
/** @param {View} view */
function cutUp({ look }, pen, width, height, cuts, cut) {
  const piece = width / cuts;
  [pen.fillStyle, pen.globalAlpha] = [look.paper, 0.62];
  for (let at = 0; at < cuts; at++) if (at !== cut) pen.fillRect(at * piece, 0, piece, height);
  [pen.globalAlpha, pen.strokeStyle, pen.lineWidth] = [1, look.ink, 1];
  pen.beginPath();
  for (let at = 1; at < cuts; at++) {
    pen.moveTo(at * piece, 0);
    pen.lineTo(at * piece, height);
  }
  pen.stroke();
  if (cut < 0) return;
  [pen.strokeStyle, pen.lineWidth] = [look.primary, 3];
  pen.strokeRect(cut * piece + 1.5, 1.5, piece - 3, height - 4);
}

const labelHeight = (n, size, unit) =>
  (n > MOST_NAMED || size < 0.7 * unit || size > 4.5 * unit ? 1.25 : 4.25) * unit;

/** @param {View} view */
function nameUnder({ look }, pen, labels, size, top, unit, mark, foot) {
  const flat = foot < 2 * unit;
  const only = flat && size <= 4.5 * unit; // room for the framed one alone
  const width = size * labels.length;
  [pen.fillStyle, pen.textBaseline] = [look.ink, "middle"];
  labels.forEach((label, at) => {
    if (only && at !== mark) return;
    pen.font = `${at === mark ? "700 " : ""}${0.75 * unit}px ${look.font}`;
    const x = (at + 0.5) * size;
    if (flat) {
      const text = cut(label, only ? 14 : Math.floor(size / (0.45 * unit)));
      const half = Math.min(pen.measureText(text).width / 2, width / 2);
      pen.textAlign = "center";
      pen.fillText(text, clamp(x, half, width - half), top + foot / 2);
      return;
    }
    pen.save();
    pen.translate(x, top + 0.25 * unit);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "right";
    pen.fillText(cut(label, 9), 0, 0);
    pen.restore();
  });
}
