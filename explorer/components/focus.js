// @ts-check
// Where the keyboard is: found again when what had the focus leaves the page, and led into a menu that is
// open and out of it.

import { bus } from "./bus.js";
import { firstMark } from "./mount.js";

const MENU = "[data-testid=stPopoverBody]";
const OPENER = "[data-testid=stPopoverButton][aria-expanded=true]";
const LOOKS = 200; // ms between two looks whether the focus is still there

/** @typedef {HTMLElement | null | undefined} Place */
/** @type {Place} what a key was pressed on last */
let held;
/** @type {Place} the same, outside of menus */
let outside;
let hears = false;

/** Keep the focus on the page for who uses the keyboard. */
export function keepFocus() {
  if (hears) return;
  hears = true;
  addEventListener("pointerdown", () => (held = undefined), true);
  addEventListener("keydown", pressed, true);
  setInterval(regain, LOOKS); // shadow trees tell nobody what they lose
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  held = /** @type {HTMLElement} */ (event.composedPath()[0]);
  const menu = /** @type {Place} */ (document.querySelector(MENU));
  const opener = /** @type {Place} */ (document.querySelector(OPENER));
  const has = () => menu?.contains(document.activeElement);
  if (!has()) outside = held;
  if (event.key !== "Tab" || !menu || !opener) return;
  if (has())
    setTimeout(() => {
      if (has()) return;
      opener.focus();
      opener.click(); // closes it
    });
  else if (document.activeElement === opener && !event.shiftKey) {
    menu.tabIndex = -1;
    menu.focus(); // from where the key goes on to what stands first in it
  }
}

/** Put the focus back: on what opened a menu that is closed, else on the picture that is there now. */
function regain() {
  if (!held || held.isConnected || bus.now.presenter) return;
  if (document.activeElement !== document.body) return;
  const to = outside?.isConnected ? outside : firstMark();
  if (!to) return;
  held = outside = to;
  to.focus({ preventScroll: true });
  to.scrollIntoView({ block: "nearest" });
}
