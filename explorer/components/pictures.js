// @ts-check
// The pictures of the page, in the Export menu: each as PNG and SVG, and the page as print.

import { until, make, mount } from "./mount.js";
import { exports, offered } from "./sheet.js";
import style from "./pictures.css.js";

export default mount("pictures", style, (view) => {
  const draw = () => {
    const all = offered();
    const rows = all.map((one) =>
      make(
        "div",
        "row",
        make("span", { class: "title", dir: "auto" }, one.view.header.title || one.what),
        ...exports(one.view, one.what, one.draw, view),
      ),
    );
    const none = make(
      "p",
      "",
      "This page has no picture that can be taken alone. Print has them all.",
    );
    const print = make(
      "button",
      { class: "small", onclick: () => window.print() },
      "Print the page",
    );
    view.root.replaceChildren(...(rows.length ? rows : [none]), print);
  };
  draw();
  // Pictures that come later than the menu.
  const again = setInterval(() => {
    const now = offered()
      .map((one) => one.view.header.title)
      .join();
    if (now !== view.listed) draw();
    view.listed = now;
  }, 500);
  until(view, "again", () => clearInterval(again));
});
