// @ts-check
// What the beam shows in words: tags in the picture, and for who does not see it where it stands, and
// the lanes as a table.

import {
  answerOf,
  ARRIVE,
  axisOf,
  colourOf,
  isEnd,
  onShow,
  OPEN,
  placesOf,
  stopOf,
  tag,
  tagWide,
  told,
} from "./beam_figure.js";
import { chosenRow, labelsOf } from "./flow_rows.js";
import { isFocus, widthOf } from "./flow_shares.js";
import { fixed, ordinal } from "./number_format.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./flow_figure.js").Flow} Flow */
/** @typedef {import("./flow_figure.js").Plan} Plan */
/** @typedef {import("./flow_figure.js").FlowLayer} FlowLayer */

const say = sentences("flow");
const FETCHES = / fetches “(.*?)”/;

/** A word that races, with the rest of one of which a piece does. @param {any} lane @returns {string} */
const whole = ({ label, rest }) => label + rest;

/** What a head adds to the answer against its rival, "" where that is not known. @param {Flow} figure @param {import("./flow_figure.js").FlowAttention} attention @param {number} head */
export function addedBy(figure, { adds }, head) {
  const rival = figure.lanes.find(({ id }) => id === figure.against);
  if (!adds.length || !rival) return "";
  const answer = answerOf(figure);
  const slots = { adds: fixed(adds[head], 2), answer: whole(answer), rival: whole(rival) };
  return say("head_adds", slots);
}

/** Give words in a headline the colours that they have in the picture. @param {import("./mount.js").View} view @param {any} figure @param {HTMLElement} headline */
export const hued = (view, figure, headline) =>
  headline.querySelectorAll(".notranslate").forEach((/** @type {any} */ one) => {
    const word = (one.textContent || "").slice(1, -1);
    one.style.color = colourOf(view.look, figure, word) || "inherit";
  });

/** Where the beam stands and what happens there, in words. @param {Flow} figure */
export function spoken(figure) {
  const [lane] = figure.lanes;
  if (isEnd(figure))
    return [say("end"), lane && `${whole(lane)} ${lane.text}`].filter(Boolean).join("; ");
  const layer = figure.layers[told(figure)];
  const of = { layer: layer.layer, n: figure.layers.length };
  if (!lane) return say("layer_of", of);
  const { from, to } = placesOf({ ...figure, ms: undefined }, lane);
  const word = stopOf(figure)?.finding.match(FETCHES)?.[1];
  const slots = { ...of, word, answer: whole(lane), before: ordinal(from), after: ordinal(to) };
  return say(word ? "spoken_fetched" : "spoken", slots);
}

/** The words that race as rows of a table: its title, the names of its columns, and each word with its place or its probability before and after. @param {Flow} figure @returns {{ title: string, columns: string[], rows: string[][] }} */
export function asTable(figure) {
  const end = isEnd(figure);
  const still = { ...figure, ms: undefined };
  const rows = onShow(still).map((/** @type {any} */ lane) => {
    if (end) return [whole(lane), lane.was_text || "–", lane.text];
    const { from, to } = placesOf(still, lane);
    return [whole(lane), ordinal(from), ordinal(to)];
  });
  return { title: axisOf(figure), columns: [say("word"), say("was"), say("is")], rows };
}

/** What is brought and what the FFN adds, in words, at the curve and above the box. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number[]} place */
export function tags(pen, figure, plan, layer, [from, wide, ffn]) {
  const { letter } = pen;
  const { ms } = figure;
  const { brings, adds, says, writes, units } = figure.stops[figure.layers.indexOf(layer)];
  const across = plan.rows[chosenRow(figure, layer.band)];
  if (plan.turned) return;
  const right = from + wide - 0.3 * letter;
  const limits = [from + 0.3 * letter, plan.rows[plan.firsts[layer.band]] - 0.5 * letter];
  let y = across - 2.1 * letter;
  const isCause = figure.cause[0] === figure.layers.indexOf(layer);
  const own_ = (isCause && figure.blind) || (writes && say("writes", { words: writes }));
  const all = [...(adds || writes ? [[say("box", { adds }).trim(), own_]] : []), ...units];
  const lines = isFocus(figure, layer) ? all : []; // in the end what the cause brings, alone
  const high = (/** @type {number} */ n) => (1.25 * n + 0.5) * letter;
  const tall = lines.reduce((sum, [, pale]) => sum + high(pale ? 2 : 1) + 0.3 * letter, 0);
  // What the head brings stands at the line of its word, where there is room; else above all rows.
  const pale = says && lines.length ? say("says", { words: says }) : "";
  const own = high(pale ? 2 : 1);
  const isTold = brings && tagWide(pen, brings, pale) <= wide - letter;
  const row = isTold ? toldRow(figure, layer) : -1;
  const isBelow = plan.rows[row] > across;
  const foot = plan.rows[row] + (isBelow ? own + 0.35 * letter : -0.35 * letter);
  const widest = Math.max(0, ...lines.map(([bold, pale]) => tagWide(pen, bold, pale)));
  const isBeside = tagWide(pen, brings, pale) + widest < wide - 0.8 * letter;
  const isClear = isBeside || isBelow || foot <= y - tall || foot - own >= y;
  const isStacked = row >= 0 && !isClear && foot - own - tall > limits[1];
  if (isStacked) y = foot - own - 0.3 * letter; // what the box does stands above it
  const isThere = row >= 0 && (isClear || isStacked) && foot - own > limits[1] - letter;
  const top = limits[1] + (isTold && !isThere ? own + 0.3 * letter : 0);
  if (ms === undefined || ms >= OPEN)
    for (const [bold, pale] of lines)
      if (y - high(pale ? 2 : 1) > top) y = tag(pen, right, y, bold, pale, limits) - 0.3 * letter;
  if (!isTold || (ms !== undefined && ms < ARRIVE)) return;
  const left = from + 0.5 * letter;
  const end = left + tagWide(pen, brings, pale);
  tag(pen, end, isThere ? foot : limits[1] + own, brings, pale, [left, limits[1]]);
}

/** The row of the word that a layer's tag tells of: of those of its spelling the one from which most is brought; -1 for none. @param {Flow} figure @param {FlowLayer} layer */
export function toldRow(figure, layer) {
  const at = figure.layers.indexOf(layer);
  const isCause = isEnd(figure) && figure.cause[0] === at;
  if (figure.level || figure.zoom?.open || !(isCause || isFocus(figure, layer))) return -1;
  const [, word] = (figure.stops[at]?.brings || "").split(": ");
  const [attention] = layer.attentions;
  return labelsOf(figure).reduce(
    (best, label, row) =>
      label === word && (best < 0 || widthOf(attention, -1, row) > widthOf(attention, -1, best))
        ? row
        : best,
    -1,
  );
}
