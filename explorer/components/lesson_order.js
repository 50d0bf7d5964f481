// @ts-check
// The steps of the reader's own lesson, which the page lists, are dragged into another order: the one that is dropped
// on another takes its place.

import { make, mount, until } from "./mount.js";
import style from "./lesson_order.css.js";

const STEP = /(?:^| )st-key-item-(\d+)/; // a step in the page's list
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
  /** @type {number | undefined} */
  let from;
  /** @type {HTMLElement | undefined} */
  let over;
  const mark = (/** @type {HTMLElement | undefined} */ step) => {
    if (over !== step) over?.style.removeProperty("outline");
    over = step;
    if (over) over.style.outline = "2px solid var(--st-primary-color)";
  };
  const on = (/** @type {string} */ name, /** @type {(event: any) => void} */ handler) =>
    document.addEventListener(name, handler, { signal });
  on("pointerdown", ({ target }) => {
    const here = stepOf(target);
    if (here) here.step.draggable = !target.closest(OWN);
  });
  on("dragstart", ({ target, dataTransfer }) => {
    from = stepOf(target)?.at;
    if (from !== undefined) dataTransfer.effectAllowed = "move";
  });
  on("dragover", (event) => {
    const here = stepOf(event.target);
    if (from === undefined) return;
    mark(here?.at === from ? undefined : here?.step);
    if (here) event.preventDefault(); // it may be dropped there
  });
  on("drop", (event) => {
    const to = stepOf(event.target)?.at;
    if (from === undefined || to === undefined) return;
    event.preventDefault();
    if (to !== from) view.send("move", { from, to });
  });
  on("dragend", () => {
    from = undefined;
    mark(undefined);
  });
  view.root.append(make("span", "how", view.header.says));
  until(view, "drag", () => view.heard.abort());
});
