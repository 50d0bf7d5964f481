// @ts-check
// A panel of the page when the page is printed.

import { until } from "./mount.js";
import { filed } from "./panel_layout.js";
import { shown } from "./svg_export.js";
import { onWhite } from "./theme.js";

export const PAPER = 740; // pixels of a page of A4 between its margins

/** @type {((view: import("./mount.js").View) => { svg: string, width: number, height: number }) | undefined} how a worksheet lays a panel out */
let onSheet;

/** Lay panels out as a worksheet does, where the page is one. @param {NonNullable<typeof onSheet>} lay */
export const asSheet = (lay) => (onSheet = lay);
/** On paper a panel stands as in its file: whole, as wide as the page, in the light theme. @param {import("./mount.js").View} view */
export function printed(view) {
  if (view.ends.paper) return; // a page that turns light for it draws the panel anew meanwhile
  const put = () => {
    if (view.root.classList.contains("night")) return; // the question stands there as it is
    const { svg, width, height } = onSheet
      ? onSheet(view)
      : filed(view, onWhite(), { least: PAPER, caption: false });
    const name = `on-paper${onSheet ? " of-step" : ""}`;
    const size = { viewBox: `0 0 ${width} ${height}`, class: name, role: "img" };
    view.root.querySelector(".on-paper")?.remove();
    view.root.append(shown(svg.replace(/^<svg[^>]*>|<\/svg>$/g, ""), size));
  };
  const take = () => view.root.querySelector(".on-paper")?.remove();
  const all = /** @type {const} */ ([
    ["beforeprint", put],
    ["afterprint", take],
  ]);
  for (const [name, act] of all) addEventListener(name, act);
  until(view, "paper", () => all.forEach(([name, act]) => removeEventListener(name, act)));
}
