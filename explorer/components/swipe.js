// @ts-check
// A finger that goes over the headline.

import { until } from "./mount.js";

/** @typedef {import("./mount.js").View} View */

const SWIPE = 60; // pixels that a finger goes

/** Hear a swipe over the headline. @param {View} view @param {(by: number) => void} act 1 for what comes next, -1 for what was before */
export function swiped(view, act) {
  /** @type {number[] | undefined} */
  let from;
  const touch = (/** @type {TouchEvent} */ { type, touches, changedTouches, target }) => {
    const { clientX: x, clientY: y } = changedTouches[0];
    const over = /** @type {Element} */ (target);
    const host = over.closest(".st-key-headline");
    if (type === "touchstart") from = host && touches.length === 1 ? [x, y] : undefined;
    if (type === "touchstart" || !from) return;
    const [right, down] = [x - from[0], y - from[1]];
    if (Math.abs(right) < Math.max(SWIPE, 2 * Math.abs(down))) return;
    act(right < 0 ? 1 : -1);
  };
  const ends = ["touchstart", "touchend"].map((type) => {
    document.addEventListener(type, /** @type {EventListener} */ (touch), { passive: true });
    return () => document.removeEventListener(type, /** @type {EventListener} */ (touch));
  });
  until(view, "swipe", () => ends.forEach((end) => end()));
}
