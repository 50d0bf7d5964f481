// @ts-check
// What the curves of the whole machine are as wide as, and the same of fewer rows.

import { chosenRow, labelsOf } from "./flow_rows.js";
import { omitted } from "./omissions.js";

/** @typedef {import("./flow_figure.js").Flow} Flow */
/** @typedef {import("./flow_figure.js").FlowLayer} FlowLayer */
/** @typedef {import("./flow_figure.js").FlowAttention} FlowAttention */

const LEAST_ADDED = 0.05; // to a difference of logits, by a head that is as dark as can be

/** How dark a head's dot is, from 0 to 1: the root of what it adds to the answer beside the head that adds most, or where that is not known its share. @param {Flow} figure @param {FlowAttention} attention @param {number} head */
export const darknessOf = ({ most = 1 }, { adds, totals }, head) =>
  Math.min(
    1,
    adds.length ? Math.sqrt(Math.max(0, adds[head] / most)) : Math.max(0, 2.6 * totals[head]),
  );

/** Note in each attention how many rows there are, and what each head brings from all of them. @param {Flow} figure */
export function numbered(figure) {
  const n = labelsOf(figure).length;
  for (const layer of figure.layers)
    for (const each of layer.attentions) {
      each.n = n;
      each.totals = Array(count(each)).fill(0);
      each.shares.forEach((share, at) => (each.totals[Math.floor(at / n)] += share));
    }
  const adds = figure.layers.flatMap(({ attentions }) =>
    attentions.flatMap((one) => [...one.adds]),
  );
  figure.most = Math.max(LEAST_ADDED, ...adds);
}

/** Whether a layer is under the beam, or opened. @param {Flow} figure @param {FlowLayer} layer */
export const isFocus = (figure, layer) =>
  figure.level
    ? layer.layer === figure.layer && layer.band === figure.band
    : figure.layers[figure.current] === layer;

/** The number of an attention's heads. @param {FlowAttention} attention */
export const count = ({ shares, n }) => shares.length / n;

/** How wide a curve is from a row: a head's weight, or the share that all heads bring from there. @param {FlowAttention} attention @param {number} head @param {number} row */
export function widthOf(attention, head, row) {
  const { shares, weights, n } = attention;
  if (head >= 0) return weights[head * n + row];
  let sum = 0;
  for (let at = row; at < shares.length; at += n) sum += shares[at];
  return sum;
}

/** The row from which the heads of a layer together bring most, but the chosen one. @param {Flow} figure @param {FlowLayer} layer */
export function fetchedRow(figure, layer) {
  const chosen = chosenRow(figure, layer.band);
  let [best, most] = [-1, 0];
  for (const attention of layer.attentions)
    for (let row = 0; row < attention.n; row++) {
      const share = row === chosen ? 0 : widthOf(attention, -1, row);
      if (share > most) [best, most] = [row, share];
    }
  return best;
}

/** How wide the curve of all heads is from a row: on the model's own level that of the cause's word as wide as what its head alone brings, where others take from that. @param {Flow} figure @param {FlowLayer} layer @param {FlowAttention} attention @param {number} row */
export function broughtOf(figure, layer, attention, row) {
  const [column, which, head, key] = figure.cause;
  const isThere = figure.layers[column] === layer && layer.attentions[which] === attention;
  const all = widthOf(attention, -1, row);
  const isCause = isThere && !figure.level && row === key;
  return isCause ? Math.max(all, attention.shares[head * attention.n + row]) : all;
}

/** A flow of at most so many rows: the chosen ones, those that are named, and those that most is brought from. @param {Flow} figure @param {number} most @param {number[]} [named] */
export function cutFlow(figure, most, named = []) {
  numbered(figure);
  const { bands } = figure;
  if (labelsOf(figure).length <= most) return figure;
  const cut = kept(figure, Math.max(3, Math.floor(most / bands.length)), named);
  return { ...cut, omitted: omitted(["rows", labelsOf(cut).length, labelsOf(figure).length]) };
}

/** A flow of at most so many rows in each band, those among them that are named. @param {Flow} figure @param {number} few @param {number[]} [named] */
export function kept(figure, few, named = []) {
  const { bands, layers } = figure;
  const n = labelsOf(figure).length;
  const focus = layers.filter((/** @type {any} */ one) => isFocus(figure, one));
  const seen = focus.length ? focus : layers;
  const attentions = seen.flatMap((/** @type {any} */ layer) => layer.attentions);
  const matters = (/** @type {number} */ row) => {
    let sum = 0;
    for (const one of attentions)
      for (const head of figure.level ? Array(count(one)).keys() : [-1])
        sum += Math.abs(widthOf(one, head, row));
    return sum / (1 + sum);
  };
  // Never left out: what most is brought from here, and the words that change the answer most.
  const told = focus.length ? focus : figure.matters.map((at) => layers[at]);
  const fetched = told.map((/** @type {any} */ layer) => fetchedRow(figure, layer));
  const stays = (/** @type {number} */ row) =>
    fetched.includes(row) || row === figure.cause[3] ? 2 : Number(figure.hues?.[row] !== undefined);
  let first = 0;
  /** @type {number[]} */
  const all = [];
  const cut = bands.map((/** @type {any} */ band) => {
    const own = [...band.rows.keys()];
    const start = first;
    first += own.length;
    const rank = (/** @type {number} */ at) =>
      8 * Number(at === band.selected) +
      4 * Number(named.includes(start + at)) +
      stays(start + at) +
      matters(start + at);
    const order = own.filter((row) => row !== band.rest).sort((a, b) => rank(b) - rank(a));
    const rows = order.slice(0, few).sort((a, b) => a - b);
    all.push(...rows.map((at) => start + at));
    return {
      ...band,
      rows: rows.map((at) => band.rows[at]),
      places: rows.map((at) => band.places[at]),
      outs: band.outs?.length ? rows.map((at) => band.outs[at]) : [],
      selected: rows.indexOf(band.selected),
      rest: -1,
    };
  });
  const spread = (/** @type {Float32Array} */ values) =>
    Float32Array.from(
      { length: (values.length / n) * all.length },
      (_, at) => values[Math.floor(at / all.length) * n + all[at % all.length]],
    );
  const [column, which, head, row] = figure.cause;
  /** @type {[number, number][]} */
  const votes = figure.votes.map(([row, noun]) => [all.indexOf(row), noun]);
  const cause = head === undefined ? [] : [column, which, head, all.indexOf(row)];
  const hues = Object.entries(figure.hues || {}).map(([row, hue]) => [all.indexOf(+row), hue]);
  return {
    ...figure,
    cause,
    votes,
    hues: Object.fromEntries(hues.filter(([row]) => row >= 0)),
    bands: cut,
    layers: layers.map((/** @type {any} */ layer) => ({
      ...layer,
      attentions: layer.attentions.map((/** @type {any} */ one) => ({
        ...one,
        n: all.length,
        shares: spread(one.shares),
        weights: spread(one.weights),
        was: spread(one.was),
        others: [],
      })),
    })),
  };
}
