// @ts-check
// A class moves: what a view holds already it shows at once, before the server's answer is there.

import { bus, listen } from "./bus.js";
import { until } from "./mount.js";

/** @typedef {import("./mount.js").View} View */

// What may differ between two addresses of which one is shown from what the other brought.
const WITHIN = ["layer", "head", "token", "step", "weight_at"];

/** Whether a run of the page is on its way. */
export const isRunning = () => !document.querySelector("[data-test-script-state=notRunning]");

/**
 * True for two addresses of one page, text and picture.
 * @param {URL} from
 * @param {URL} to
 */
export function within(from, to) {
  const rest = (/** @type {URL} */ at) => {
    const left = [...at.searchParams].filter(([name]) => !WITHIN.includes(name));
    return at.pathname + JSON.stringify(left.sort());
  };
  return rest(from) === rest(to);
}

/** Say where the class goes on the page, text and picture that are here. @param {URL} to */
export const announce = (to) => bus.tell({ ahead: Object.fromEntries(to.searchParams) });

/**
 * Call `show` with the address's choices when a class goes on from what is on screen.
 * @param {View} view
 * @param {(asked: Record<string, string>) => void} show
 */
export function ahead(view, show) {
  view.led = bus.now.ahead;
  const heard = (/** @type {Record<string, any>} */ now) => {
    if (now.ahead === view.led) return;
    view.led = now.ahead;
    show(now.ahead);
  };
  until(view, "ahead", listen(heard));
}

/** Values that were sent and whose echo is on its way: an echo undoes nothing that came after it. */
export class Echoes {
  /** @type {any[]} */
  sent = [];

  /** Whether a value is the echo of one that was sent. Those before it have none any more. @param {any} value */
  takes(value) {
    const at = this.sent.indexOf(value);
    this.sent = this.sent.slice(at + 1);
    return at >= 0;
  }
}

/** A whole number below `size`, -1 for anything else. @param {string | undefined} text @param {number} size */
export function whole(text, size) {
  const value = /^\d{1,5}$/.test(text || "") ? Number(text) : -1;
  return value < size ? value : -1;
}
