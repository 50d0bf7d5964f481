// @ts-check
// A panel as an SVG where no browser is: explorer/figures/figure_export.py runs this module in an engine that
// has neither a page nor a canvas.

import { decode } from "./codec.js";
import { measureBy } from "./draw.js";
import { filed, fitting, resolved } from "./panel_layout.js";
import { cut } from "./slide_layout.js";
import { lookOf } from "./theme.js";

/**
 * The picture of an encoded panel and its size in pixels, as JSON.
 * @param {Uint8Array} bytes
 * @param {any} how its colours, the widths of letters, and what a sheet takes
 */
export function drawn(bytes, how) {
  const { svg, width, height } = laid(bytes, how);
  return JSON.stringify({ svg, width, height });
}

/** The same with every text and what is not drawn. @param {Uint8Array} bytes @param {any} how */
export function laid(bytes, { colours, font, ...sheet }) {
  measureBy(font);
  const { header, blocks } = decode(bytes);
  const all = resolved(header.figures, blocks);
  const most = sheet.width && fitting(sheet.width);
  const isWide = (/** @type {any} */ one) => most && one.words?.length && one.kind === "matrix";
  const figures = all.map((/** @type {any} */ one) =>
    isWide(one) ? cut(one, Infinity, header.finding, most) : one,
  );
  const view = /** @type {any} */ ({ header, figures });
  return filed(view, lookOf(colours), sheet);
}
