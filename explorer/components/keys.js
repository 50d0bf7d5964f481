// @ts-check
// The keyboard: arrow keys walk through buttons of which one can be reached with Tab, or over cells.

import { until } from "./mount.js";
import { clamp } from "./theme.js";

/** @typedef {import("./mount.js").View} View */

/** @param {KeyboardEvent | MouseEvent} event */
export const plainKey = (event) => !event.altKey && !event.ctrlKey && !event.metaKey;

const PROSE = 1000; // ms in which another letter follows while a person types a text
/** @type {{ key: string, at: number }} the sign that was typed last, and when */
let typed = { key: "", at: -Infinity };
/** True for a sign that comes soon after another one, or as a capital: a person types a text, and means no shortcut. */
let isProse = false;
addEventListener(
  "keydown",
  ({ key, timeStamp, shiftKey }) => {
    if (key.length > 1) return;
    isProse = timeStamp - typed.at < PROSE && key !== typed.key;
    isProse ||= shiftKey && key.toLowerCase() !== key;
    typed = { key, at: timeStamp };
  },
  true,
);

/** True for a sign of a text that a person types where no field has the focus. @param {KeyboardEvent} event */
export const inProse = ({ key }) => key.length === 1 && isProse;

/** True where the focus is in something that needs the arrow keys. @param {Event} event */
export function needsArrows(event) {
  const inner = /** @type {HTMLElement} */ (event.composedPath()[0]);
  return Boolean(
    inner?.closest?.(
      "input, textarea, select, [contenteditable=true], [role=slider], [role=listbox], [role=menu], [role=radiogroup], [role=tablist]",
    ),
  );
}

const TYPED =
  "input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable=true], [role=dialog]";
export const OWN = "button, a, summary, g.target, [data-cells], input"; // what has Space and Enter for itself

/** @type {string | Element | undefined} what a pointer pressed last, by the name of its focus */
let pressed;
const nameOf = (/** @type {Element | null | undefined} */ one) =>
  one?.getAttribute("data-focus") || one?.getAttribute("data-at") || one || undefined;
const press = (/** @type {Event} */ event) => {
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  pressed = nameOf(target?.closest?.("button, g.target"));
};
addEventListener("pointerdown", press, true);
addEventListener("keydown", ({ key }) => key === "Tab" && (pressed = undefined), true);

/** Let a part that gets the focus in the place of a pressed one be pressed as that was. @param {Element} part */
export const passPress = (part) => (pressed = pressed && nameOf(part));

/** True for a part that has the focus since a pointer pressed it, and not by the keyboard. @param {Element} part */
export const isPressed = (part) => nameOf(part) === pressed;

/** True where the reader types. @param {Event} event */
export const isTyping = (event) =>
  Boolean(/** @type {HTMLElement} */ (event.composedPath()[0])?.closest?.(TYPED));

/** True for a key that has a meaning where the focus is, outside of any panel. An open tab is open. @param {KeyboardEvent} event @param {Element} target */
const isOwn = (event, target) =>
  [" ", "Enter"].includes(event.key)
    ? target.closest(`${OWN}, [role=tab]:not([aria-selected=true])`)
    : (arrow(event) || ["Home", "End"].includes(event.key)) && needsArrows(event);

/** Hear the keys while the focus is in a panel, or in none and in no field. @param {View} view @param {(event: KeyboardEvent, inside: Element | null) => (() => void) | undefined} mean what a key does, undefined for nothing; inside: the part of the panel that has the focus */
export function hearKeys(view, mean) {
  const key = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {Element} */ (event.composedPath()[0]);
    const inside = view.root.contains(target);
    if (!view.root.isConnected || view.aside || event.defaultPrevented || !plainKey(event)) return;
    if (isTyping(event)) return;
    if (!inside && (!document.contains(target) || isOwn(event, target) || inProse(event))) return;
    const act = mean(event, inside ? target : null);
    if (!act) return;
    event.preventDefault();
    act();
  };
  addEventListener("keydown", key);
  until(view, "keys", () => removeEventListener("keydown", key));
}

const BY = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

/**
 * The step that an arrow key means, [rows, columns]; undefined for other keys.
 * @param {KeyboardEvent} event
 * @returns {number[] | undefined}
 */
export const arrow = (event) =>
  plainKey(event) ? BY[/** @type {keyof typeof BY} */ (event.key)] : undefined;

/**
 * One button of a list is in the tab order, the first that is `current` or else the first; arrows,
 * Home and End go to others.
 * @param {HTMLElement[] | SVGElement[]} list
 * @param {{ current?: number, columns?: number, flat?: boolean, upright?: boolean,
 *   go?: (at: number) => void }} [how] columns: of a grid, where up and down go by so many. flat:
 *   only left and right go. upright: only up and down go. go: what else happens where one goes.
 * @returns {(at: number) => void} to put the tab stop elsewhere
 */
export function rove(list, { current = 0, columns = 1, flat = false, upright = false, go } = {}) {
  const buttons = /** @type {HTMLElement[]} */ (list);
  const stop = (/** @type {number} */ at) =>
    buttons.forEach((one, i) => one.setAttribute("tabindex", i === at ? "0" : "-1"));
  buttons.forEach((button, at) => {
    button.addEventListener("focus", () => stop(at));
    button.addEventListener("keydown", (event) => {
      if (!plainKey(event)) return;
      const [down, right] = arrow(event) || [NaN, NaN];
      const by = flat
        ? down
          ? NaN
          : right
        : upright
          ? right
            ? NaN
            : down
          : down * columns + right;
      const to = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1 : at + by;
      if (!buttons[to]) return;
      event.preventDefault();
      event.stopPropagation();
      stop(to);
      buttons[to].focus();
      go?.(to);
    });
  });
  stop(buttons[current] ? current : 0);
  return stop;
}

/**
 * The cell an arrow key leads to, inside so many rows and columns.
 * @param {number[]} cell
 * @param {number[]} by
 * @param {number} rows
 * @param {number} columns
 */
export const stepped = ([row, column], [down, right], rows, columns) => [
  clamp(row + down, 0, rows - 1),
  clamp(column + right, 0, columns - 1),
];
