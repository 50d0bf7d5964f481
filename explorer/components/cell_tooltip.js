// @ts-check
// What a cell holds, beside the pointer: over everything, inside the window, above a finger.

import { make, put } from "./mount.js";

const AWAY = 14; // pixels from a pointer,
const FINGER = 40; // and from a finger, which hides what lies near it
const ROOM = 72; // pixels above the pointer that a tag needs
// Here and not in the style of all views, each of which would carry it.
const STYLE = `.beside {
  position: fixed; inset: auto; margin: 0; padding: 0.1875rem 0.5rem; box-sizing: border-box;
  width: max-content; max-width: min(20rem, calc(50vw - 1.5rem)); overflow: hidden;
  pointer-events: none; border: 0; border-radius: 0.375rem;
  font: 0.8125rem/1.35 var(--st-font);
  color: var(--st-background-color); background: var(--st-text-color);
}
.beside :is(strong, span) { display: block; overflow: hidden; text-overflow: ellipsis; }
.beside :is(strong, span, b) { white-space: pre; }
.beside strong { font-size: 1rem; font-variant-numeric: tabular-nums; }`;

let finger = false; // whether a matrix was last touched, and not pointed at
let [wide, high] = [0, 0]; // the window's, read where nothing waits to be laid out

/** True where the reader uses a finger, which leaves nothing pointed at. */
export const touched = () => finger;

/**
 * A tag in the top layer, which no box cuts.
 * @param {HTMLElement} home where it lies
 * @param {HTMLElement} canvas of the cells
 * @param {{ rows: string[], columns: string[], says: (cell: number[]) => string[] }} how
 *   says: the value of a cell, who looks, at what.
 * @returns {(cell: number[] | null, event?: MouseEvent) => void} shows a cell, beside the pointer or
 *   else at the cell's corner; null for none
 */
export function beside(home, canvas, { rows, columns, says }) {
  const parts = [make("strong"), make("b", { dir: "auto" }), make("b", { dir: "auto" })];
  const [value, from, to] = parts;
  const inside = [value, make("span", "", from, " → ", to)];
  const about = { class: "beside", popover: "manual", "aria-hidden": "true", hidden: true };
  const box = make("div", about, make("style", "", STYLE), ...inside);
  home.append(box);
  let shown = false;
  canvas.addEventListener("pointerenter", (event) => {
    finger = event.pointerType === "touch";
    [wide, high] = [window.innerWidth, window.innerHeight];
  });
  const off = () => {
    if (!shown) return;
    shown = false;
    box.hidden = true;
    box.hidePopover?.();
    removeEventListener("scroll", off, true);
  };
  const corner = (/** @type {number[]} */ [row, column]) => {
    const at = canvas.getBoundingClientRect();
    return [
      at.left + ((column + 1) / columns.length) * at.width,
      at.top + (row / rows.length) * at.height,
    ];
  };
  return (cell, event) => {
    if (!cell || !box.isConnected) return off();
    if (!event || !wide) [wide, high] = [window.innerWidth, window.innerHeight];
    const [x, y] = event ? [event.clientX, event.clientY] : corner(cell);
    put(box, { hidden: false, style: placed(x, y, finger && Boolean(event)) });
    says(cell).forEach((text, i) => (parts[i].textContent = text));
    if (shown) return;
    shown = true;
    box.showPopover?.();
    // What a finger has left stays where it was, and the page moves below it.
    if (finger) addEventListener("scroll", off, { capture: true, passive: true });
  };
}

// On the side where there is room, so that nothing has to be measured.
/** @param {number} x @param {number} y @param {boolean} finger */
function placed(x, y, finger) {
  const [across, away] = finger ? [0, FINGER] : [AWAY, AWAY];
  const above = y > ROOM + away;
  return {
    left: x < wide / 2 ? `${x + across}px` : "auto",
    right: x < wide / 2 ? "auto" : `${wide - x + across}px`,
    top: above ? "auto" : `${y + away + 8}px`,
    bottom: above ? `${high - y + away - 6}px` : "auto",
  };
}
