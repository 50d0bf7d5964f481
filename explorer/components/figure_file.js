// @ts-check
// A panel as an SVG where no browser is: explorer/figure_export.py runs this module in an engine that
// has neither a page nor a canvas.

import { decode } from "./codec.js";
import { measureBy } from "./draw.js";
import { filed, resolved } from "./panel_layout.js";
import { lookOf } from "./theme.js";

/**
 * The picture of an encoded panel and its size in pixels, as JSON.
 * @param {Uint8Array} bytes
 * @param {any} how its colours, the widths of letters, and what a sheet takes
 */
export function drawn(bytes, { colours, font, ...sheet }) {
  measureBy(font);
  const { header, blocks } = decode(bytes);
  const view = /** @type {any} */ ({ header, figures: resolved(header.figures, blocks) });
  const { svg, width, height } = filed(view, lookOf(colours), sheet);
  return JSON.stringify({ svg, width, height });
}
