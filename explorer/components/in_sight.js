// @ts-check
// Brings the panel that a step of a lesson speaks of into sight, below the lesson's bar.

import { bus } from "./bus.js";
import { pictures, rootOf } from "./presenter_pictures.js";

const EVERY = 150; // ms between two looks at the page
const LOOKS = 100; // after which a panel that has not come is waited for no longer
const SETTLED = 8; // looks in which nothing moved
const GAP = 12; // pixels between bar and panel
const OWN = ["wheel", "touchmove", "pointerdown", "keydown"]; // the reader goes on by themselves

/**
 * Scroll a panel below the bar as soon as it is there, and again while what is above it grows; on a page
 * that is not scrolled, a panel that is whole in sight stays where it is. Of one whose figures would not
 * be whole in sight, title and sentence go behind the bar. Ends when nothing moves, or when the reader does something.
 * @param {HTMLElement} bar
 * @param {string} panel its name
 * @returns {() => void} to end it sooner
 */
export function bring(bar, panel) {
  let [looks, still, at] = [0, 0, NaN];
  const end = () => {
    clearInterval(timer);
    for (const each of OWN) removeEventListener(each, end);
  };
  const timer = setInterval(() => {
    if (!bar.isConnected || bus.now.presenter || (looks += 1) > LOOKS) return end();
    const top = aligned(bar, panel);
    if (top === undefined) return;
    still = top === at ? still + 1 : 0;
    at = top;
    if (still >= SETTLED) end();
  }, EVERY);
  if (panel) for (const each of OWN) addEventListener(each, end, { passive: true });
  else end();
  return end;
}

/** Where a panel stands once it is in sight; undefined while it is not there. @param {HTMLElement} bar @param {string} panel */
function aligned(bar, panel) {
  const main = document.querySelector("[data-testid=stMain]");
  const picture = pictures().find((each) => rootOf(each)?.dataset.panel === panel);
  if (!main || !picture) return undefined;
  const { top, bottom } = picture.getBoundingClientRect();
  const here = bar.getBoundingClientRect();
  if (!main.scrollTop && top >= here.bottom && bottom <= innerHeight) return Math.round(top);
  const held = getComputedStyle(bar);
  const end = held.position === "sticky" ? parseFloat(held.top) + here.height + GAP : here.bottom;
  main.scrollTop += topOf(picture, innerHeight - end) - end;
  return Math.round(picture.getBoundingClientRect().top);
}

/** The top of what is brought below the bar: that of the panel, or of its formulas and figures where they need the room. @param {import("./presenter_pictures.js").Picture} picture @param {number} room pixels */
function topOf(picture, room) {
  const { top } = picture.getBoundingClientRect();
  const figures = rootOf(picture)?.querySelector(".figures");
  const first = rootOf(picture)?.querySelector(".formulas, .figures"); // in their order on the page
  const isTight = figures && figures.getBoundingClientRect().bottom - top > room;
  return isTight && first ? first.getBoundingClientRect().top : top;
}
