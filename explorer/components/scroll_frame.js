// @ts-check
// A figure that is larger than its frame: it scrolls inside, and the names of its rows and columns
// stay in sight. It fades where it goes on. Words are drawn for the columns in sight alone.

import { make, put } from "./mount.js";
import { shown } from "./svg_export.js";

/**
 * What a pen leaves to a pane, as SVG. box: left, top, the width of the names of rows, the height of
 * those of columns, the width and height of all cells. wide, tall: of a cell. mark: [row, column].
 * front: what lies over the cells; over: what over that, and is never drawn anew.
 * @typedef {{ box: number[], wide: number, tall: number, mark?: any[], rows: string, columns: string,
 *   back: string, front: string, over?: string, cells: (from: number, to: number) => string }} Pane
 */

const SPARE = 4; // columns drawn on either side of those in sight

/**
 * The frame, at most `most` pixels high, scrolled as before, its marked cell in sight.
 * @param {Pane} pane
 * @param {number} most
 */
export function frame({ box, wide, tall, rows, columns, back, front, over = "", cells }, most) {
  const [left, top, names, heads, width, height] = box;
  /** @param {string} name @param {string} inside @param {number[]} view */
  const part = (name, inside, [x, y, w, h]) =>
    shown(inside, { class: name, width: w, height: h, viewBox: `${x} ${y} ${w} ${h}` });
  const body = part("body", `${back}<g class="words"></g><g class="front">${front}</g>${over}`, [
    left,
    top,
    width,
    height,
  ]);
  const whole = heads + Math.max(1, Math.floor((most - heads) / tall)) * tall; // no row is cut
  const outer = make("div", { class: "pane", style: { maxHeight: `${whole}px` } });
  outer.append(
    part("corner", "", [left - names, top - heads, names, heads]),
    part("heads", columns, [left, top - heads, width, heads]),
    part("names", rows, [left - names, top, names, height]),
    body,
  );
  const words = /** @type {Element} */ (body.querySelector("g.words"));
  const last = Math.round(width / wide) - 1;
  let [from, to] = [0, -1];
  const fill = () => {
    const first = Math.floor(outer.scrollLeft / wide);
    const end = Math.min(last, Math.ceil((outer.scrollLeft + outer.clientWidth - names) / wide));
    const [right, below] = [
      outer.scrollWidth - outer.clientWidth - outer.scrollLeft,
      outer.scrollHeight - outer.clientHeight - outer.scrollTop,
    ];
    put(outer, { vars: { right: right > 1 ? "2rem" : "0px", below: below > 1 ? "1rem" : "0px" } });
    if (first >= from && end <= to) return;
    [from, to] = [Math.max(0, first - SPARE), Math.min(last, end + SPARE)];
    words.replaceChildren(...shown(cells(from, to), {}).childNodes);
  };
  outer.addEventListener("scroll", fill, { passive: true });
  return { outer, fill };
}

/**
 * Leave so much room behind the last column that a whole one stands beside the names there too.
 * @param {HTMLElement} outer
 * @param {Pane} pane
 */
export function pad(outer, { box, wide }) {
  const [, , names, , width] = box;
  const room = outer.clientWidth - names;
  const body = /** @type {SVGElement} */ (outer.querySelector(".body"));
  // A frame of whole pixels may be short of the cells by a part of one.
  if (width > room + 1) body.style.marginRight = `${room % wide}px`;
}

/**
 * Scroll a cell into sight, clear of the names, beside which a whole column stands.
 * @param {HTMLElement} outer
 * @param {Pane} pane
 * @param {number[]} cell
 */
export function bring(outer, { box, wide, tall }, [row, column]) {
  const [, , names, heads] = box;
  /** @param {"Left" | "Top"} side @param {number} from @param {number} size @param {number} room */
  const along = (side, from, size, room) => {
    const now = outer[`scroll${side}`];
    if (from < now) outer[`scroll${side}`] = from - size;
    else if (from + size > now + room)
      outer[`scroll${side}`] = Math.ceil((from + 2 * size - room) / size) * size;
  };
  along("Left", column * wide, wide, outer.clientWidth - names);
  along("Top", row * tall, tall, outer.clientHeight - heads);
}
