// @ts-check
// A step of the tour: headline, sentence, picture, and the way on. The arrow keys walk, wherever the
// focus is, but in what needs them itself.

import { formulaBox } from "./formula.js";
import { needsArrows, plainKey, rove } from "./keys.js";
import { hear, make, mount, resized, until } from "./mount.js";
import { spokenLine } from "./number_format.js";
import { resolved } from "./panel_layout.js";
import { column, slide } from "./slide_layout.js";
import style from "./tour.css.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */

const say = sentences("tour");

const BY = { ArrowRight: 1, ArrowLeft: -1, PageDown: 1, PageUp: -1 };
const SMALLEST = 13; // pixels of a picture's type
const BELOW = 60; // pixels kept for what stands under the picture
const NARROW = 600; // pixels of width under which panels stand under each other
const LEAST = 400; // pixels of height that a step has on any page

export default mount("tour", style, (view) => {
  if (!view.keys) listen(view);
  if (view.fresh || !view.same) build(view);
  hear(view, (now) => {
    if (view.presented === Boolean(now.presenter)) return;
    view.presented = Boolean(now.presenter);
    fit(view);
  });
  resized(view, view.root, () => fit(view));
  fit(view);
});

/** @param {View} view */
function listen(view) {
  view.keys = (/** @type {KeyboardEvent} */ event) => {
    const by = BY[/** @type {keyof typeof BY} */ (event.key)];
    if (!by || !plainKey(event) || event.shiftKey || event.defaultPrevented || needsArrows(event))
      return;
    event.preventDefault();
    go(view, view.want + by);
  };
  const again = () => fit(view);
  addEventListener("keydown", view.keys);
  addEventListener("resize", again);
  until(view, "keys", () => {
    removeEventListener("keydown", view.keys);
    removeEventListener("resize", again);
  });
}

/** @param {View} view @param {number} to */
function go(view, to) {
  const { names, at } = view.header;
  if (to < 0 || to >= names.length || to === view.want) return;
  view.want = to;
  mark(view);
  if (to !== at) view.send("go", to);
}

/** @param {View} view */
function build(view) {
  const { header, root } = view;
  view.want = header.at;
  view.status ||= spokenLine("announced");
  const [before, number, after] = header.says;
  const says = make(
    "p",
    { class: "says", dir: "auto" },
    before,
    number && make("b", "number", number),
    after,
  );
  view.plate = make("div", { class: "plate", role: "group", "aria-label": header.title });
  view.figures = resolved(header.figures, view.blocks);
  view.where = make("span", "where");
  view.dots = header.names.map((/** @type {string} */ name, /** @type {number} */ at) =>
    make("button", {
      class: "dot",
      title: name,
      "aria-label": `${at + 1}. ${name}`,
      onclick: () => go(view, at),
    }),
  );
  view.back = step("‹", "Previous step", () => go(view, view.want - 1));
  view.next = step("›", "Next step", () => go(view, view.want + 1));
  rove(view.dots, { current: header.at, columns: 1 });
  const head = make("header", "", make("h2", "", header.title), view.where);
  const nav = make(
    "nav",
    { "aria-label": "Steps" },
    view.back,
    make("div", "dots", ...view.dots),
    view.next,
  );
  const [formulas, restate] = formulaBox(header.formulas, (view.formulas ||= {}), () => fit(view));
  restate({ shown: header.formulas.map(({ id }) => id) });
  root.replaceChildren(
    head,
    says,
    ...(header.formulas.length ? [formulas] : []),
    view.plate,
    nav,
    view.status,
  );
  view.status.textContent = say("step", {
    at: header.at + 1,
    n: header.names.length,
    title: header.title,
    sentence: header.says.join(""),
  });
  mark(view);
}

/** @param {string} label @param {string} says @param {() => void} onclick */
const step = (label, says, onclick) =>
  make("button", { class: "go", "aria-label": says, title: says, onclick }, label);

/** Which step is shown, and which is on its way. @param {View} view */
function mark(view) {
  const { names, at } = view.header;
  view.root.classList.toggle("waits", view.want !== at);
  view.where.textContent = `${view.want + 1} / ${names.length}`;
  view.back.disabled = view.want === 0;
  view.next.disabled = view.want === names.length - 1;
  view.dots.forEach((/** @type {HTMLElement} */ dot, /** @type {number} */ each) =>
    each === view.want
      ? dot.setAttribute("aria-current", "step")
      : dot.removeAttribute("aria-current"),
  );
}

/** The largest type in which the picture fits its room. @param {View} view */
function fit(view) {
  const { root, plate } = view;
  if (!plate || !root.clientWidth) return;
  root.classList.toggle("presented", Boolean(view.presented));
  const top = root.getBoundingClientRect().top + scrolled(root);
  const narrow = root.clientWidth < NARROW && !view.presented;
  root.classList.toggle("narrow", narrow);
  const room = view.presented ? innerHeight : Math.max(LEAST, innerHeight - top - BELOW);
  root.style.height = `${room}px`;
  if (narrow) root.style.height = "auto";
  if (narrow) return column(view, plate, view.header.title, SMALLEST);
  plate.style.height = "";
  if (view.presented) slide(view, plate, view.header.title);
  else slide(view, plate, view.header.title, SMALLEST);
}

/** How far the page around an element is scrolled down. @param {HTMLElement} root */
function scrolled(root) {
  let total = 0;
  /** @type {any} */
  let at = root;
  while (at) {
    total += at.scrollTop || 0;
    at = at.parentElement || at.getRootNode()?.host;
  }
  return total;
}
