// @ts-check
// What the beam shows in words, for who does not see it: where it stands, and the lanes as a table.

import { axisOf, isEnd, onShow, placesOf, told } from "./beam_figure.js";
import { labelsOf } from "./flow_rows.js";
import { fetchedRow, numbered, widthOf } from "./flow_shares.js";
import { ordinal } from "./number_format.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./flow_figure.js").Flow} Flow */

const say = sentences("flow");
const HALF = 0.5; // of what is brought, from which on a word is fetched
const WORD = /^\p{L}[\p{L}\p{M}’'-]*$/u;

/** A word that races, with the rest of one of which a piece does. @param {any} lane @returns {string} */
const whole = ({ label, rest }) => label + rest;

/** Where the beam stands and what happens there, in words. @param {Flow} figure @param {Set<string>} special */
export function spoken(figure, special) {
  const [lane] = figure.lanes;
  if (isEnd(figure))
    return [say("end"), lane && `${whole(lane)} ${lane.text}`].filter(Boolean).join("; ");
  const layer = figure.layers[told(figure)];
  const of = { layer: layer.layer, n: figure.layers.length };
  if (!lane) return say("layer_of", of);
  const { from, to } = placesOf({ ...figure, ms: undefined }, lane);
  numbered(figure);
  const row = fetchedRow(figure, layer);
  const word = row < 0 ? "" : labelsOf(figure)[row];
  const most = Math.max(...layer.attentions.map((one) => (row < 0 ? 0 : widthOf(one, -1, row))));
  const isFetched = most > HALF && WORD.test(word) && !special.has(word);
  const slots = { ...of, word, answer: whole(lane), before: ordinal(from), after: ordinal(to) };
  return say(isFetched ? "spoken_fetched" : "spoken", slots);
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
