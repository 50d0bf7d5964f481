// @ts-check
// The pictures of the page, in the Export menu: each as PNG and SVG, and the page as print.

import { make, mount, until } from "./mount.js";
import { files, offered, papers } from "./svg_export.js";
import style from "./image_export.css.js";
import { sentences } from "./sentences.js";

const say = sentences("pictures");

export default mount("pictures", style, (view) => {
  const draw = () => view.root.replaceChildren(...listed(view), printed());
  view.listed = names();
  draw();
  // Pictures that come later than the menu.
  const again = setInterval(() => {
    const now = names();
    if (now !== view.listed) draw();
    view.listed = now;
  }, 500);
  until(view, "again", () => clearInterval(again));
});

// Plotly draws some pictures, and hands them out itself.
const PLOTTED = ".js-plotly-plot";
const HANDS_OUT = '.modebar-btn[data-title^="Download"]';

const plotted = () =>
  [...document.querySelectorAll(PLOTTED)].filter((plot) => plot.querySelector(HANDS_OUT));

/** @param {Element} plot */
const nameOf = (plot) =>
  plot.closest("[aria-label]")?.getAttribute("aria-label") ||
  plot.querySelector(".gtitle")?.textContent ||
  "Figure";

const names = () =>
  [...offered().map((one) => one.view.header.title), ...plotted().map(nameOf)].join();

/** @param {string} title @param {HTMLElement[]} buttons */
const row = (title, buttons) =>
  make("div", "row", make("span", { class: "title", dir: "auto" }, title), ...buttons);

/** @param {import("./mount.js").View} view */
function listed(view) {
  const own = offered().map((one) => row(one.view.header.title || one.what, files(one)));
  const others = plotted().map((plot) =>
    row(nameOf(plot), [
      make(
        "button",
        {
          class: "small",
          onclick: () => /** @type {HTMLElement} */ (plot.querySelector(HANDS_OUT)).click(),
        },
        say("svg"),
      ),
    ]),
  );
  if (own.length + others.length === 0) return [make("p", "", say("none"))];
  return [...(own.length ? [papers(view)] : []), ...own, ...others];
}

const printed = () =>
  make("button", { class: "small", onclick: () => window.print() }, say("print"));
