// @ts-check
// The steps of the reader's own lesson, which the page lists, are dragged into another order: the one that is dropped
// on another takes its place.

import { make, mount, until } from "./mount.js";
import style from "./lesson_order.css.js";

const STEP = /(?:^| )st-key-item-(\d+)/; // a step in the page's list
const FEW = 5; // pixels below which a press is no drag
const OWN = "button, input, textarea, [data-testid=stExpanderDetails]"; // what a press in a step is for itself

/** The step that something is in, with its place from 0. @param {EventTarget | null} target */
function stepOf(target) {
  const inside = target instanceof Element ? target : null;
  const step = inside?.closest("[class*=st-key-item-]");
  const at = step?.className.match(STEP)?.[1];
  return step instanceof HTMLElement && at !== undefined ? { step, at: Number(at) } : undefined;
}

export default mount("order", style, (view) => {
  if (view.heard) return;
  view.heard = new AbortController();
  const { signal } = view.heard;
  /** @type {{ at: number, x: number, y: number, isMoved: boolean } | undefined} */
  let held;
  /** @type {HTMLElement | undefined} */
  let over;
  const mark = (/** @type {HTMLElement | undefined} */ step) => {
    if (over !== step) over?.style.removeProperty("outline");
    over = step;
    if (over) over.style.outline = "2px solid var(--st-primary-color)";
  };
  const on = (/** @type {string} */ name, /** @type {(event: any) => void} */ handler) =>
    document.addEventListener(name, handler, { signal, capture: true });
  const below = (/** @type {PointerEvent} */ { clientX, clientY }) => {
    const there = stepOf(document.elementFromPoint(clientX, clientY));
    return there && there.at !== held?.at ? there : undefined;
  };
  on("pointerdown", ({ target, button, clientX, clientY }) => {
    const here = stepOf(target);
    held = undefined;
    if (here && !button && !target.closest(OWN))
      held = { at: here.at, x: clientX, y: clientY, isMoved: false };
  });
  on("pointermove", (event) => {
    if (!held) return;
    held.isMoved ||= Math.hypot(event.clientX - held.x, event.clientY - held.y) > FEW;
    if (held.isMoved) mark(below(event)?.step);
  });
  on("pointerup", (event) => {
    const to = held?.isMoved ? below(event) : undefined;
    if (to) view.send("move", { from: held?.at, to: to.at });
    mark(undefined);
    setTimeout(() => (held = undefined)); // after the click that follows
  });
  on("click", (event) => {
    if (!held?.isMoved) return;
    event.preventDefault(); // a step that was dragged is not opened
    event.stopPropagation();
  });
  on("pointercancel", () => {
    held = undefined;
    mark(undefined);
  });
  on("selectstart", (event) => held && event.preventDefault());
  until(view, "drag", () => view.heard.abort());
  view.root.append(make("span", "how", view.header.says));
});
