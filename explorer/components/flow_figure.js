// @ts-check
// The whole machine: tokens as rows, layers as columns, what attention brings to the chosen row as
// curves, and the words that come out. On a narrow screen it is turned: layers run downwards.

import { fixed } from "./number_format.js";
import { omitted } from "./omissions.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */

const say = sentences("flow");
/** A share in per cent. @param {number} share */
const percent = (share) => `${fixed(100 * share, 1)}%`;

const NARROW = 44; // letters of width below which layers run downwards
const SPINE = 5; // letters below which a layer shows its strongest curve alone
const THICKEST = 1.1; // letters of a curve that brings all
const FAINT = 0.02; // share below which a curve is not drawn
const FOCUS = 1.8; // times as wide as another layer is the one in focus
const WORDS = 15; // letters of the words that come out
const SUMS = [[0.62], [0.34, 0.68]]; // of a layer's width, where its attentions end
const BETWEEN = 4.6; // letters between two bands, for the names of layers
const [ROW, LEAST] = [1.65, 1.02]; // letters between rows

/** Where everything stands, along the layers and along the tokens.
 * @typedef {{ turned: boolean, starts: number[], ends: number[], rows: number[], edge: number[], foots: number[], foot: number, firsts: number[] }} Plan */

/** @param {Pen} pen @param {any} figure @param {Box} box */
export function flow(pen, figure, box) {
  const plan = planned(pen, figure, box);
  const { layers, bands } = figure;
  const n = labelsOf(figure).length;
  for (const layer of layers) for (const each of layer.attentions) each.n = n;
  layers.forEach((/** @type {any} */ layer, /** @type {number} */ at) => ground(pen, figure, plan, layer, at)); // prettier-ignore
  streams(pen, figure, plan);
  if (bands.length > 1) memory(pen, figure, plan);
  layers.forEach((/** @type {any} */ layer, /** @type {number} */ at) => {
    const inside = pen.apart(() => column(pen, figure, plan, layer, at));
    const { x, y, wide, high } = boxOf(pen, plan, layer, at);
    const place = [x, y, wide, high].map((each) => each.toFixed(1)).join(" ");
    pen.put("g", { class: "flow-layer", "data-at": at, "data-box": place }, inside);
  });
  layers.forEach((/** @type {any} */ layer, /** @type {number} */ at) => heading(pen, figure, plan, layer, at)); // prettier-ignore
  output(pen, figure, plan, box);
  return plan.foot - box.y;
}

/** All rows of all bands: their labels. @param {any} figure */
const labelsOf = ({ bands }) => bands.flatMap((/** @type {any} */ band) => [...band.rows, ...(band.rest ? [band.rest] : [])]); // prettier-ignore

/** The row of a band's selected token. @param {any} figure @param {number} band */
const chosenRow = ({ bands }, band) =>
  bands.slice(0, band).reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.rows.length + (one.rest ? 1 : 0), 0) + bands[band].selected; // prettier-ignore

/** @param {Pen} pen @param {any} figure @param {Box} box @returns {Plan} */
function planned(pen, figure, { x, y, width, height }) {
  const { letter } = pen;
  const { bands, layers, words } = figure;
  const turned = width < NARROW * letter && !pen.least;
  const labels = labelsOf(figure);
  const last = bands.length - 1;
  const gap = figure.says ? 1.5 : 0; // letters for the words below the chosen row
  const firsts = bands.map((/** @type {any} */ _, /** @type {number} */ at) => chosenRow(figure, at) - bands[at].selected); // prettier-ignore
  const room = Math.max(...labels.map((/** @type {string} */ each) => pen.width(each, { bold: true }))); // prettier-ignore
  const tokens = labels.length + gap / ROW + (turned ? 1.2 : BETWEEN / ROW) * last;
  const [head, below] = [3.4, 2];
  const pitch = turned
    ? (width - 2 * letter) / (tokens + 0.5)
    : letter * Math.max(LEAST, Math.min(ROW, height ? (height / letter - head - below) / tokens : ROW)); // prettier-ignore
  let along = (turned ? x + letter : y + head * letter) + pitch / 2;
  const [rows, foots] = /** @type {number[][]} */ ([[], []]);
  bands.forEach((/** @type {any} */ band, /** @type {number} */ at) => {
    const n = band.rows.length + (band.rest ? 1 : 0);
    for (let row = 0; row < n; row++) {
      rows.push(along);
      along += pitch;
      if (at === last && row === band.selected) along += gap * (turned ? 0 : letter);
    }
    foots.push(along - pitch / 2);
    along += turned ? 1.2 * pitch : BETWEEN * letter;
  });
  const side = turned ? Math.min(room, 7 * letter) : Math.min(room, 0.2 * width);
  const start = (turned ? y : x) + side + 0.8 * letter;
  const out = words.length ? (pen.least ? 11.5 : WORDS) * letter : 1.5 * letter;
  const n = layers.length;
  const inner = bands.length > 1 ? 2.4 * letter : 0;
  const whole = turned ? 9 * letter * (n - 1) + 14 * letter : width - (start - x) - out - inner;
  const even = whole / (n - 1 + FOCUS);
  const other =
    n > 8 && !turned
      ? Math.min(
          even,
          Math.max(1.1 * letter, (whole - 15 * letter) / (n - 1)),
          (0.75 * whole) / (n - 1),
        )
      : even; // prettier-ignore
  const [starts, ends] = /** @type {number[][]} */ ([[], []]);
  let from = start;
  layers.forEach((/** @type {any} */ layer, /** @type {number} */ at) => {
    if (at && layer.band !== layers[at - 1].band) from += inner;
    starts.push(from);
    from += isFocus(figure, layer) ? whole - other * (n - 1) : other;
    ends.push(from);
  });
  const foot = turned ? from + (words.length ? 9 * letter : letter) : foots[last] + below * letter;
  return { turned, starts, ends, rows, edge: [start, from], foots, foot, firsts };
}

/** @param {any} figure @param {any} layer */
const isFocus = (figure, layer) => layer.layer === figure.layer && layer.band === figure.band;

/** A point: so far along the layers and along the tokens. @param {Plan} plan @param {number} along @param {number} across */
const point = (plan, along, across) => (plan.turned ? [across, along] : [along, across]);

/** A part that a press brings into focus. @param {Pen} pen @param {any} layer @param {number | ""} head @param {string} label @param {() => void} draw @param {any} [more] */
function focusing(pen, layer, head, label, draw, more = {}) {
  const of = layer.attentions[0]?.attention ?? "";
  const before = pen.select;
  pen.select = ["attention", "layer", "head"];
  const select = [more.attention ?? of, `${layer.layer}`, `${head}`];
  pen.target({ select, label, ...more.target }, draw);
  pen.select = before;
}

/** Where a layer stands: its box, and whether it shows its strongest curve alone. @param {Pen} pen @param {Plan} plan @param {any} layer @param {number} at */
function boxOf(pen, plan, layer, at) {
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const isSpine = to - from < SPINE * pen.letter;
  const inset = isSpine ? 1.5 : 4;
  const first = plan.rows[plan.firsts[layer.band]] - 0.9 * pen.letter;
  const [x, y] = point(plan, from + inset, first);
  const [u, v] = point(plan, to - inset, plan.foots[layer.band]);
  return { x, y, wide: u - x, high: v - y, isSpine };
}

/** The ground of a layer. @param {Pen} pen @param {any} figure @param {Plan} plan @param {any} layer @param {number} at */
function ground(pen, figure, plan, layer, at) {
  const { look } = pen;
  const { x, y, wide, high, isSpine } = boxOf(pen, plan, layer, at);
  const inFocus = isFocus(figure, layer);
  const label = say("layer", { layer: layer.layer });
  focusing(pen, layer, "", label, () => pen.rect(x, y, wide, high, { rx: isSpine ? 4 : 8, fill: look.primary, "fill-opacity": inFocus ? 0.09 : 0.03, stroke: inFocus ? look.border : "none" }), { target: { pressed: inFocus && figure.head < 0, name: "flow-ground" } }); // prettier-ignore
}

/** The name of a layer and its heads. @param {Pen} pen @param {any} figure @param {Plan} plan @param {any} layer @param {number} at */
function heading(pen, figure, plan, layer, at) {
  const { letter } = pen;
  const { x, y, wide, isSpine } = boxOf(pen, plan, layer, at);
  const name = say("layer", { layer: layer.layer });
  const style = { bold: isFocus(figure, layer), alpha: 0.85, halo: true };
  if (plan.turned) pen.text(x + 0.5 * letter, y + 0.9 * letter, name, { ...style, size: 0.85 });
  else if (!isSpine) pen.text(x + wide / 2, y - 2.3 * letter, name, { ...style, anchor: "middle", size: 0.9, room: wide }); // prettier-ignore
  else if (layer.layer % 5 === 0 && pen.isFree(pen.box(x + wide / 2, y - 0.8 * letter, `0${layer.layer}`, { anchor: "middle", size: 0.8 }))) pen.text(x + wide / 2, y - 0.8 * letter, `${layer.layer}`, { anchor: "middle", size: 0.8, alpha: 0.75 }); // prettier-ignore
  if (!isSpine) heads(pen, figure, plan, layer, [x, y, wide]);
}

/** A dot a head, as dark as its share of what attention writes. @param {Pen} pen @param {any} figure @param {Plan} plan @param {any} layer @param {number[]} box */
function heads(pen, figure, plan, layer, [x, y, wide]) {
  const { letter, look } = pen;
  const n = layer.attentions.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + count(one), 0); // prettier-ignore
  const room = plan.turned ? 0.55 * wide : wide - 0.6 * letter;
  const step = Math.max(1, Math.min(1.15 * letter, room / (n + layer.attentions.length - 1)));
  const across = plan.turned ? y + 0.9 * letter : y - 0.8 * letter;
  let left = plan.turned ? x + wide - step * (n + layer.attentions.length - 1) : x + wide / 2 - (step * (n + layer.attentions.length - 2)) / 2; // prettier-ignore
  for (const attention of layer.attentions) {
    const colour = attention.attention === "cross" ? look.categorical[1] : look.primary;
    for (let head = 0; head < count(attention); head++) {
      const share = headShare(attention, head);
      const chosen = isFocus(figure, layer) && figure.head === head && chosenAttention(figure, layer) === attention; // prettier-ignore
      const at = left;
      const removed = attention.removed.includes(head);
      const told = [say("head", { layer: layer.layer, head, share: percent(share) }), attention.names[head]]; // prettier-ignore
      const draw = () => {
        const r = Math.min(0.42 * letter, 0.4 * step) * (chosen ? 1.25 : 1);
        pen.circle(at, across, r, { fill: colour, "fill-opacity": Math.min(1, 0.06 + 2.6 * Math.max(0, share)).toFixed(2), stroke: chosen ? look.ink : colour, "stroke-width": chosen ? 2 : 1, "stroke-opacity": chosen ? 1 : 0.45 }); // prettier-ignore
        if (removed) pen.line([[at - r, across + r], [at + r, across - r]], look.ink, { "stroke-width": 2 }); // prettier-ignore
      };
      const label = told.filter(Boolean).join("; ");
      focusing(pen, layer, head, label, draw, { attention: attention.attention, target: { pressed: chosen, name: "flow-head" } }); // prettier-ignore
      left += step;
    }
    left += step;
  }
}

/** The number of an attention's heads. @param {any} attention */
const count = ({ shares, n }) => shares.length / n;

/** What a head brings in all. @param {any} attention @param {number} head */
const headShare = ({ shares, n }, head) =>
  shares.slice(head * n, (head + 1) * n).reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0); // prettier-ignore

/** The attention of a layer that is in focus. @param {any} figure @param {any} layer */
const chosenAttention = (figure, layer) =>
  layer.attentions.find((/** @type {any} */ one) => one.attention === figure.attention) || layer.attentions[0]; // prettier-ignore

/** Every row's line with its label. @param {Pen} pen @param {any} figure @param {Plan} plan */
function streams(pen, figure, plan) {
  const { letter, look } = pen;
  const [from, to] = plan.edge;
  figure.bands.forEach((/** @type {any} */ band, /** @type {number} */ at) => {
    const first = plan.firsts[at];
    [...band.rows, ...(band.rest ? [band.rest] : [])].forEach((label, row) => {
      const across = plan.rows[first + row];
      const chosen = row === band.selected;
      const isRest = row === band.rows.length;
      const colour = chosen ? look.primary : look.ink;
      pen.line([point(plan, from, across), point(plan, to, across)], colour, { "stroke-width": chosen ? 0.33 * letter : 0.13 * letter, "stroke-opacity": chosen ? 1 : 0.22, "stroke-linecap": "round", "stroke-dasharray": isRest ? "2 6" : undefined }); // prettier-ignore
      const [x, y] = point(plan, from - 0.6 * letter, across);
      if (chosen && figure.says && at === figure.bands.length - 1 && !plan.turned) pen.text(x, y + 1.35 * letter, figure.says, { size: 0.85, alpha: 0.75, anchor: "end" }); // prettier-ignore
      const style = { bold: chosen, fill: chosen ? look.primary : undefined, alpha: isRest ? 0.75 : undefined }; // prettier-ignore
      const draw = () =>
        plan.turned
          ? pen.text(x, y, label, { ...style, turn: -90, room: 7 * letter })
          : pen.text(x, y, label, {
              ...style,
              anchor: "end",
              room: 0.2 * (to - from) + 4 * letter,
            });
      if (isRest || !band.choice) return draw();
      pen.select = [band.choice];
      pen.target({ select: [band.places[row]], label, pressed: chosen, name: "token" }, draw);
    });
  });
}

/** What the second stream reads of the first. @param {Pen} pen @param {any} figure @param {Plan} plan */
function memory(pen, figure, plan) {
  const { letter, look } = pen;
  const at = figure.layers.findIndex((/** @type {any} */ layer) => layer.band === 1);
  const along = (plan.ends[at - 1] + plan.starts[at]) / 2;
  const [low, high] = [plan.rows[0] - 0.6 * letter, plan.rows[plan.firsts[1] - 1] + 0.6 * letter];
  const [x, y] = point(plan, along - 0.4 * letter, low);
  const [u, v] = point(plan, along + 0.4 * letter, high);
  pen.rect(x, y, u - x, v - y, { rx: 4, fill: look.categorical[1], "fill-opacity": 0.75 });
  if (!plan.turned) pen.text((x + u) / 2, y - 0.8 * letter, figure.between, { anchor: "middle", size: 0.85, alpha: 0.85 }); // prettier-ignore
}

/** What a layer brings and adds. @param {Pen} pen @param {any} figure @param {Plan} plan @param {any} layer @param {number} at */
function column(pen, figure, plan, layer, at) {
  const { letter, look } = pen;
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const wide = to - from;
  const isSpine = wide < SPINE * letter;
  const chosen = chosenRow(figure, layer.band);
  const across = plan.rows[chosen];
  const start = from + (isSpine ? 2 : plan.turned ? 1.6 * letter : 0.8 * letter);
  const n = layer.attentions.length;
  layer.attentions.forEach((/** @type {any} */ attention, /** @type {number} */ i) => {
    const sums = SUMS[Math.min(n, SUMS.length) - 1].map((share) => from + share * wide);
    const begin = i ? sums[i - 1] + 0.8 * letter : start;
    const sum = isSpine ? from + 0.75 * wide : sums[i];
    if (!isSpine) faint(pen, plan, attention, begin, sum);
    curves(pen, figure, plan, layer, attention, [begin, sum, chosen, isSpine ? 1 : Infinity]);
    const [x, y] = point(plan, sum, across);
    const r = isSpine ? 0.2 * letter : 0.62 * letter;
    pen.circle(x, y, r, { class: "flow-sum", fill: look.paper, stroke: look.primary, "stroke-width": isSpine ? 1.5 : 2 }); // prettier-ignore
    if (!isSpine) pen.text(x, y, "+", { anchor: "middle", bold: true, fill: look.primary });
  });
  if (!isSpine && layer.ffn !== null) square(pen, plan, layer, from + (plan.turned ? 0.78 : 0.84) * wide, across); // prettier-ignore
  if (layer.says) says(pen, figure, plan, layer, at, isSpine);
  const numbers = { size: 0.85, alpha: 0.8 };
  if (plan.turned) {
    if (layer.numbers) pen.text(plan.rows[0] - 0.4 * letter, to - 0.9 * letter, layer.numbers, numbers); // prettier-ignore
  } else if (!isSpine)
    pen.text((from + to) / 2, plan.foots[layer.band] + 0.9 * letter, layer.numbers, { ...numbers, anchor: "middle", room: wide }); // prettier-ignore
}

/** The FFN, as large as its update. @param {Pen} pen @param {Plan} plan @param {any} layer @param {number} along @param {number} across */
function square(pen, plan, layer, along, across) {
  const { letter, look } = pen;
  const side = (0.8 + 1.3 * layer.ffn) * letter;
  const [x, y] = point(plan, along, across);
  const before = pen.select;
  pen.select = ["address"];
  const label = [say("ffn", { layer: layer.layer, share: percent(layer.ffn) }), layer.units].filter(Boolean).join("; "); // prettier-ignore
  pen.target({ select: [layer.ffn_key], label, name: "flow-ffn" }, () => {
    pen.rect(x - side / 2, y - side / 2, side, side, { rx: 3, fill: look.paper });
    pen.rect(x - side / 2, y - side / 2, side, side, { rx: 3, fill: look.primary, "fill-opacity": 0.35, stroke: look.primary, "stroke-width": 1.5 }); // prettier-ignore
    if (side > 1.1 * letter) pen.text(x, y, "F", { anchor: "middle", size: 0.8, bold: true });
  });
  pen.select = before;
}

/** The word that the stream would give after a layer. @param {Pen} pen @param {any} figure @param {Plan} plan @param {any} layer @param {number} at @param {boolean} isSpine */
function says(pen, figure, plan, layer, at, isSpine) {
  const { letter, look } = pen;
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const across = plan.rows[chosenRow(figure, layer.band)];
  const [word, p, text] = layer.says;
  const style = { bold: true, fill: look.primary, alpha: Math.min(1, 0.5 + p), size: 0.95, halo: true }; // prettier-ignore
  if (plan.turned) return pen.text(plan.rows[plan.rows.length - 1], to - 0.9 * letter, `${word} ${text}`, { ...style, anchor: "end" }); // prettier-ignore
  const y = across + 1.35 * letter;
  if (!isSpine) {
    const whole = `${word} ${text}`;
    const room = to - from - 0.6 * letter;
    return pen.text(to - 0.6 * letter, y, pen.width(whole, style) > room ? word : whole, { ...style, anchor: "end", room }); // prettier-ignore
  }
  const before = figure.layers[at - 1]?.says?.[0];
  const middle = (from + to) / 2;
  const high = 1.1 * letter * (layer.answer ?? 0);
  pen.rect(from + 2, y + 0.55 * letter - high, to - from - 4, Math.max(1, high), { fill: look.primary, "fill-opacity": 0.4 }); // prettier-ignore
  if (word === before || p < 0.05) return;
  const box = pen.box(middle, y - 0.1 * letter, ` ${word} `, {
    ...style,
    size: 0.85,
    anchor: "middle",
  });
  if (pen.isFree(box)) pen.text(middle, y - 0.1 * letter, word, { ...style, size: 0.85, anchor: "middle", halo: true }); // prettier-ignore
}

/** Curves into rows that are not chosen. @param {Pen} pen @param {Plan} plan @param {any} attention @param {number} begin @param {number} sum */
function faint(pen, plan, { others }, begin, sum) {
  for (let at = 0; at + 2 < others.length; at += 3) {
    const [query, key] = [others[at], others[at + 1]];
    curve(pen, plan, [begin, plan.rows[key]], [sum, plan.rows[query]], pen.look.ink, { "stroke-opacity": 0.07, "stroke-width": 1.4 }); // prettier-ignore
  }
}

/** Curves into the chosen row: of all heads, or of the one in focus. @param {Pen} pen @param {any} figure @param {Plan} plan @param {any} layer @param {any} attention @param {any[]} place */
function curves(pen, figure, plan, layer, attention, [begin, sum, chosen, most]) {
  const { letter, look } = pen;
  const labels = labelsOf(figure);
  const head = shownHead(figure, layer, attention);
  const widths = labels.map((/** @type {string} */ _, /** @type {number} */ row) => widthOf(attention, head, row)); // prettier-ignore
  const isSpecial = (/** @type {number} */ row) => pen.special.has(labels[row]);
  const drawn = [...widths.keys()].filter((row) => row !== chosen && Math.abs(widths[row]) >= FAINT); // prettier-ignore
  const of = Number.isFinite(most) ? drawn.filter((row) => !isSpecial(row)) : drawn;
  of.sort((a, b) => Math.abs(widths[b]) - Math.abs(widths[a]));
  const colour = attention.attention === "cross" ? look.categorical[1] : look.primary;
  for (const row of of.slice(0, most).reverse()) {
    const share = widths[row];
    const special = isSpecial(row);
    const dash = share < 0 ? `${0.4 * letter} ${0.3 * letter}` : undefined;
    curve(
      pen,
      plan,
      [begin, plan.rows[row]],
      [sum, plan.rows[chosen]],
      special ? look.ink : colour,
      {
        class: "flow-curve",
        "stroke-width": Math.max(1, THICKEST * letter * Math.abs(share) * (Number.isFinite(most) ? 0.5 : 1)).toFixed(1), // prettier-ignore
        "stroke-opacity": special ? 0.16 : 0.75,
        "stroke-linecap": "round",
        "stroke-dasharray": dash,
      },
    );
  }
}

/** The head of a layer that is drawn alone, -1 for all: that under the pointer, else the one in focus. @param {any} figure @param {any} layer @param {any} attention */
function shownHead(figure, layer, attention) {
  const { over } = figure;
  if (over && over.layer === layer.layer && over.attention === attention.attention) return over.head; // prettier-ignore
  if (over && over.layer === layer.layer && layer.attentions.some((/** @type {any} */ one) => one.attention === over.attention)) return -1; // prettier-ignore
  const isOn = isFocus(figure, layer) && chosenAttention(figure, layer) === attention;
  return isOn ? figure.head : -1;
}

/** How wide a curve is from a row: a head's weight, or the share that all heads bring from there. @param {any} attention @param {number} head @param {number} row */
function widthOf(attention, head, row) {
  const { shares, weights, n } = attention;
  if (head >= 0) return weights[head * n + row];
  let sum = 0;
  for (let at = row; at < shares.length; at += n) sum += shares[at];
  return sum;
}

/** @param {Pen} pen @param {Plan} plan @param {number[]} from @param {number[]} to @param {string} stroke @param {Record<string, any>} style */
function curve(pen, plan, [a, b], [c, d], stroke, style) {
  const middle = (a + c) / 2;
  const points = [
    [a, b],
    [middle, b],
    [middle, d],
    [c, d],
  ].map(([along, across]) => point(plan, along, across).map((each) => each.toFixed(1)).join(" ")); // prettier-ignore
  pen.path(`M${points[0]}C${points.slice(1).join(" ")}`, stroke, style);
}

/** The likeliest words at the end. @param {Pen} pen @param {any} figure @param {Plan} plan @param {Box} box */
function output(pen, figure, plan, box) {
  const { letter, look } = pen;
  const { words, bands } = figure;
  if (!words.length) return;
  const [, to] = plan.edge;
  const pitch = 1.75 * letter;
  const middle = plan.rows[chosenRow(figure, bands.length - 1)];
  const lowest = plan.foot - words.length * pitch;
  const first = plan.turned ? to + letter : Math.max(box.y + letter, Math.min(lowest, middle - 1.5 * pitch)); // prettier-ignore
  const left = plan.turned ? box.x + letter : to + 0.9 * letter;
  const room = plan.turned ? 8 * letter : Math.min(8 * letter, Math.max(...words.map(({ label }, /** @type {number} */ at) => pen.width(label, { bold: !at })))); // prettier-ignore
  const bar = left + room + 0.5 * letter;
  const most = box.x + box.width - bar - 3.6 * letter;
  const inside = pen.apart(() =>
    words.forEach(({ label, probability, text }, /** @type {number} */ at) => {
      const y = first + at * pitch;
      pen.text(left, y, label, { bold: !at, fill: at ? undefined : look.primary, room });
      const long = Math.max(1.5, most * probability);
      pen.rect(bar, y - 0.42 * letter, long, 0.84 * letter, { rx: 2, fill: look.primary, "fill-opacity": at ? 0.5 : 1 }); // prettier-ignore
      pen.text(bar + long + 0.4 * letter, y, text, { size: 0.85, alpha: 0.85 });
    }),
  );
  pen.put("g", { class: "flow-output" }, inside);
}

/** A flow of at most so many rows: the chosen ones and those that most is brought from. @param {any} figure @param {number} most */
export function cutFlow(figure, most) {
  const { bands, layers } = figure;
  const n = labelsOf(figure).length;
  if (n <= most) return figure;
  const attentions = layers.flatMap((/** @type {any} */ layer) => layer.attentions);
  for (const each of attentions) each.n = n;
  const matters = (/** @type {number} */ row) =>
    attentions.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + Math.abs(widthOf(one, -1, row)), 0); // prettier-ignore
  const few = Math.max(3, Math.floor(most / bands.length));
  let first = 0;
  /** @type {number[]} */
  const all = [];
  const cut = bands.map((/** @type {any} */ band) => {
    const own = [...band.rows.keys()];
    const start = first;
    first += own.length + (band.rest ? 1 : 0);
    const order = own.sort((a, b) => Number(b === band.selected) - Number(a === band.selected) || matters(start + b) - matters(start + a)); // prettier-ignore
    const kept = order.slice(0, few).sort((a, b) => a - b);
    all.push(...kept.map((at) => start + at));
    return { ...band, rows: kept.map((at) => band.rows[at]), places: kept.map((at) => band.places[at]), selected: kept.indexOf(band.selected), rest: "" }; // prettier-ignore
  });
  const spread = (/** @type {Float32Array} */ values) =>
    Float32Array.from({ length: (values.length / n) * all.length }, (_, at) => values[Math.floor(at / all.length) * n + all[at % all.length]]); // prettier-ignore
  const rows = bands.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + one.rows.length, 0); // prettier-ignore
  return {
    ...figure,
    omitted: omitted(["tokens", all.length, rows]),
    bands: cut,
    layers: layers.map((/** @type {any} */ layer) => ({
      ...layer,
      attentions: layer.attentions.map((/** @type {any} */ one) => ({
        ...one,
        n: all.length,
        shares: spread(one.shares),
        weights: spread(one.weights),
        others: [],
      })),
    })),
  };
}
