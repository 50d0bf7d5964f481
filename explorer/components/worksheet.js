// @ts-check
// A panel on a printed worksheet, below the words of its step.

import { answered } from "./beam_figure.js";
import { Pen } from "./draw.js";
import { formulaRows } from "./formula_figure.js";
import { asSheet, PAPER } from "./on_paper.js";
import { formulasOf, row } from "./panel_layout.js";
import { laid } from "./slide_layout.js";
import { FONT } from "./svg_export.js";
import { onWhite } from "./theme.js";

const [TYPE, LARGER] = [12, 1.1]; // pixels of the smallest type on a worksheet, and how many times as large it may be
const MOST = 480; // pixels of the height of a picture there
const HEIGHTS = [250, 320, 400, MOST]; // tried: two steps of a lesson share a page
const LIKED = 0.9; // times its height that one takes which is lower
const BELOW = 10; // pixels between it and its formulas

/** A panel on a worksheet, where a step's own words stand above it: over its formulas, in the least height in which all of it is drawn. @param {import("./mount.js").View} view */
function onSheet(view) {
  const { header, figures: all } = answered(view.header, view.figures);
  const look = { ...onWhite(), font: FONT };
  const figures = all.map((one) => (one.title === header.title ? { ...one, title: "" } : one));
  const free = new Pen(look, TYPE, false, header.special);
  const height = row(free, figures, { x: 0, y: 0, width: PAPER });
  const own = { svg: free.parts.join(""), height, omitted: free.omitted, cost: LIKED * height };
  const tried = HEIGHTS.map((height) => {
    const made = laid({ header, figures, look }, { width: PAPER, height }, TYPE, LARGER);
    return { ...made, cost: made.height };
  });
  const { svg, height: high } = [...tried, ...(height > MOST ? [] : [own])].reduce((best, one) =>
    lost(one) - lost(best) + (one.cost - best.cost) / 1e4 < 0 ? one : best,
  );
  const pen = new Pen(look, TYPE, false, header.special);
  const formulas = formulasOf(header.formulas, figures);
  const y = high + BELOW;
  const below = formulas.length ? formulaRows(pen, formulas, { x: 0, y, width: PAPER }) : 0;
  return { svg: svg + pen.parts.join(""), width: PAPER, height: y + below };
}

/** The share of a picture's parts that is not drawn; of names that stand in order it has some. @param {Pick<import("./slide_layout.js").Laid, "omitted">} made */
const lost = ({ omitted }) =>
  omitted.reduce((sum, { what, shown, all }) => sum + (what === "names" ? 0 : 1 - shown / all), 0);

asSheet(onSheet);
