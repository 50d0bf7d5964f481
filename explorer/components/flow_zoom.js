// @ts-check
// How far the whole machine is opened, on its way from one level to another.

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./flow_figure.js").Flow} Flow */

export const [LAYER, HEAD] = [1, 2]; // levels of a picture that is opened

/** How far a flow is opened, on its way from one level to another. `open`: its track is gone, `spread`: the heads of a layer stand side by side, `few`: one row is left of each band, `ffn`: the FFN has grown.
 * @typedef {{ open: number, spread: number, few: number, ffn: number }} Zoom */

/** @param {Flow} figure @returns {Zoom} */
export function zoomOf({ level, ffn, from }) {
  const [before, part] = [from?.level ?? level, from?.share ?? 1];
  const mixed = (/** @type {(level: number) => boolean} */ is) =>
    Number(is(before)) * (1 - part) + Number(is(level)) * part;
  return {
    open: mixed((one) => one > 0),
    spread: mixed((one) => one === LAYER),
    few: mixed((one) => one >= HEAD),
    ffn: Number(from?.ffn ?? ffn) * (1 - part) + Number(ffn) * part,
  };
}

/** How clearly a column is seen that the light has not reached, on the way to a level or from it. @param {Flow} figure @param {number} at */
export const lightOn = ({ from, current, zoom }, at) => (from && at > current ? zoom.open || 1 : 1);

/** What is drawn, so far as it is seen on the way to another level. @param {Pen} pen @param {number} opacity @param {() => void} draw */
export function seen(pen, opacity, draw) {
  if (opacity >= 1) draw();
  else if (opacity > 0) pen.put("g", { opacity: opacity.toFixed(2) }, pen.apart(draw));
}

/** A part that a press leads on from. @param {Pen} pen @param {Record<string, string>} to @param {any} what @param {() => void} draw */
export function leading(pen, to, what, draw) {
  const before = pen.select;
  pen.select = Object.keys(to);
  pen.target({ select: Object.values(to), ...what }, draw);
  pen.select = before;
}
