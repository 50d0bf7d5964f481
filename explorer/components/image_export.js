// @ts-check
// The pictures of the page, in the Export menu: each as PNG and SVG and by its address, and the page as
// print.

import { make, mount, until } from "./mount.js";
import { files, offered, papers } from "./svg_export.js";
import style from "./image_export.css.js";
import { sentences } from "./sentences.js";

const say = sentences("pictures");

const ROOT = new URL("../../", import.meta.url); // of the app, wherever a proxy put it
const TOLD = 2000; // ms in which a button says that it has copied

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
  const own = offered().map((one, at, all) => {
    const isFirst = all.findIndex((other) => other.view === one.view) === at;
    const address = isFirst && view.header.addresses[one.view.header.token];
    return row(one.view.header.title || one.what, [
      ...files(one),
      ...(address ? [copier(`${new URL(address, ROOT)}`)] : []),
    ]);
  });
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

/** A button that copies the address of a figure; where the browser lets it copy nothing, the address itself. @param {string} address */
function copier(address) {
  const button = make("button", { class: "small" }, say("copy"));
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(address);
      button.textContent = say("copied");
      setTimeout(() => (button.textContent = say("copy")), TOLD);
    } catch {
      const field = make("input", {
        value: address,
        readonly: "",
        "aria-label": say("copy"),
      });
      button.replaceWith(field);
      field.select();
    }
  };
  return button;
}

const printed = () =>
  make("button", { class: "small", onclick: () => window.print() }, say("print"));
