// @ts-check
// The whole machine: tokens as rows, layers as columns, what attention brings to the chosen row as
// curves, and the words that come out. On a narrow screen it is turned: layers run downwards.

import { fixed, hundredths, tenths } from "./number_format.js";
import { omitted } from "./omissions.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** A flow, the place that it moves from, and what is under the pointer.
 * @typedef {Omit<import("./figure_types").Flow, "layers"> & { layers: FlowLayer[], from?: any, over?: any }} Flow */
/** An attention, how many rows there are, and what each head brings from all of them.
 * @typedef {import("./figure_types").FlowAttention & { n: number, totals: number[] }} FlowAttention */
/** @typedef {Omit<import("./figure_types").FlowLayer, "attentions"> & { attentions: FlowAttention[] }} FlowLayer */

const say = sentences("flow");
/** A share in per cent. @param {number} share */
const percent = (share) => `${fixed(100 * share, 1)}%`;

const NARROW = 44; // letters of width below which layers run downwards
const SPINE = 5; // letters below which a layer shows its strongest curve alone
const THICKEST = 1.1; // letters of a curve that brings all
const GHOST = 0.3; // letters of a curve of a head that is switched off, at most
const FAINT = 0.02; // share below which a curve is not drawn
const FOCUS = 1.8; // times as wide as another layer is the one in focus
const WORDS = 15; // letters of the words that come out
const SUMS = [[0.62], [0.34, 0.68]]; // of a layer's width, where its attentions end
const DOWN = [[0.58], [0.3, 0.58]]; // the same where layers run downwards
const LONG = 10; // letters of a layer that runs downwards, and of the one in focus half as many more
const THIN = 1; // letters of a layer's width beside one that is opened
const MIDDLE = 0.4; // of the width, that these take at most
const HEADS = [[0.76], [0.39, 0.8]]; // of an opened layer's width, where its attentions' heads end
const HIGH = 2.6; // letters of a head's height on a narrow screen
const BETWEEN = 4.6; // letters between two bands, for the names of layers
const [ROW, LOW, LEAST] = [1.65, 1.3, 1.02]; // letters between rows, of a layer that is opened, at least
const FEW = 2; // words that come out beside a head or a weight

/** Where everything stands, along the layers and along the tokens.
 * @typedef {{ turned: boolean, starts: number[], ends: number[], rows: number[], edge: number[], foots: number[], foot: number, firsts: number[] }} Plan */

const BELOW = 1.55; // letters from the chosen row to the words below it

const [LAYER, HEAD] = [1, 2]; // levels of a picture that is opened

/** @param {Pen} pen @param {Flow} figure @param {Box} box */
export function flow(pen, figure, box) {
  numbered(figure);
  const narrow = box.width < NARROW * pen.letter && !pen.least;
  if (figure.level >= HEAD)
    figure = { ...kept(figure, 1), words: figure.words.slice(0, narrow ? 0 : FEW) };
  const plan = between(pen, figure, box);
  const { layers, bands } = figure;
  layers.forEach((layer, at) => ground(pen, figure, plan, layer, at));
  streams(pen, figure, plan);
  if (bands.length > 1) memory(pen, figure, plan);
  layers.forEach((layer, at) => {
    const inside = pen.apart(() => column(pen, figure, plan, layer, at));
    const { x, y, wide, high } = boxOf(pen, plan, layer, at);
    const place = [x, y, wide, high].map((each) => each.toFixed(1)).join(" ");
    pen.put("g", { class: "flow-layer", "data-at": at, "data-box": place }, inside);
  });
  layers.forEach((layer, at) => heading(pen, figure, plan, layer, at));
  output(pen, figure, plan, box);
  return plan.foot - box.y;
}

/** All rows of all bands: their labels. @param {Pick<Flow, "bands">} figure */
export const labelsOf = ({ bands }) =>
  bands.flatMap((/** @type {any} */ band) => [...band.rows, ...(band.rest ? [band.rest] : [])]);

/** What of a flow says how wide its layers are. @param {Flow} figure */
export const place = ({ level, layer, band }) => ({ level, layer, band });

/** The row of a word that was written behind the text of another flow, -1 where none was. @param {Flow} from @param {Flow} to */
export function writtenRow({ bands: [before] }, { bands: [after] }) {
  const n = after.rows.length - 1;
  const isLonger = n >= 1 && !before.rest && !after.rest && before.rows.length === n;
  return isLonger && before.rows.every((/** @type {string} */ row, i) => row === after.rows[i])
    ? n
    : -1;
}

/** The plan, or one on the way to it from that of the place before. @param {Pen} pen @param {Flow} figure @param {Box} box */
function between(pen, figure, box) {
  const plan = planned(pen, figure, box);
  if (!figure.from) return plan;
  const before = planned(pen, { ...figure, ...figure.from }, box);
  if (before.turned !== plan.turned || before.starts.length !== plan.starts.length) return plan;
  const mixed = (/** @type {number[]} */ from, /** @type {number[]} */ to) =>
    to.map((each, at) => from[at] + (each - from[at]) * figure.from.share);
  return {
    ...plan,
    starts: mixed(before.starts, plan.starts),
    ends: mixed(before.ends, plan.ends),
    edge: mixed(before.edge, plan.edge),
  };
}

/** Note in each attention how many rows there are, and what each head brings from all of them. @param {Flow} figure */
function numbered(figure) {
  const n = labelsOf(figure).length;
  for (const layer of figure.layers)
    for (const each of layer.attentions) {
      each.n = n;
      each.totals = Array(count(each)).fill(0);
      each.shares.forEach((share, at) => (each.totals[Math.floor(at / n)] += share));
    }
}

/** The row of a band's selected token. @param {Flow} figure @param {number} band */
const chosenRow = ({ bands }, band) =>
  bands
    .slice(0, band)
    .reduce(
      (/** @type {number} */ sum, /** @type {any} */ one) =>
        sum + one.rows.length + (one.rest ? 1 : 0),
      0,
    ) + bands[band].selected;

/** @param {Pen} pen @param {Flow} figure @param {Box} box @returns {Plan} */
function planned(pen, figure, { x, y, width, height }) {
  const { letter } = pen;
  const { bands, layers, words } = figure;
  const turned = width < NARROW * letter && !pen.least && figure.level < HEAD;
  const labels = labelsOf(figure);
  const last = bands.length - 1;
  const gap = figure.says ? BELOW : 0; // letters for the words below the chosen row
  const firsts = bands.map(
    (/** @type {any} */ _, /** @type {number} */ at) => chosenRow(figure, at) - bands[at].selected,
  );
  const own = labels.map((/** @type {string} */ each) => pen.width(each, { bold: true }));
  const room = Math.max(...own, figure.says ? pen.width(figure.says, { size: 0.85 }) : 0);
  const tokens = labels.length + gap / ROW + (turned ? 1.2 : BETWEEN / ROW) * last;
  const [head, below] = [3.4, 2];
  const row = figure.level === LAYER ? LOW : ROW;
  const pitch = turned
    ? (width - 2 * letter) / (tokens + 0.5)
    : letter *
      Math.max(LEAST, Math.min(row, height ? (height / letter - head - below) / tokens : row));
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
  const isOpen = figure.level >= LAYER;
  const opened = (figure.level === LAYER ? HIGH * countOf(focusOf(figure)) + 7 : 6) * letter;
  const long = isOpen ? THIN * letter * (n - 1) + opened : LONG * (n + 0.5) * letter;
  const whole = turned ? long : width - (start - x) - out - inner;
  const even = whole / (n - 1 + FOCUS);
  const others = Math.max(1, n - 1);
  const least = Math.max(1.1 * letter, (whole - 15 * letter) / others);
  const other = isOpen
    ? Math.min(THIN * letter, turned ? Infinity : (MIDDLE * whole) / others)
    : n > 8 && !turned
      ? Math.min(even, least, (0.75 * whole) / others)
      : even;
  const [starts, ends] = /** @type {number[][]} */ ([[], []]);
  let from = start;
  layers.forEach((layer, at) => {
    if (at && layer.band !== layers[at - 1].band) from += inner;
    starts.push(from);
    from += isFocus(figure, layer) ? whole - other * (n - 1) : other;
    ends.push(from);
  });
  const foot = turned ? from + (words.length ? 9 * letter : letter) : foots[last] + below * letter;
  return { turned, starts, ends, rows, edge: [start, from], foots, foot, firsts };
}

/** @param {Flow} figure @param {FlowLayer} layer */
const isFocus = (figure, layer) => layer.layer === figure.layer && layer.band === figure.band;

/** The layer in focus. @param {Flow} figure @returns {FlowLayer} */
const focusOf = (figure) => figure.layers.find((one) => isFocus(figure, one)) ?? figure.layers[0];

/** The number of a layer's heads. @param {FlowLayer} layer */
const countOf = ({ attentions }) =>
  attentions.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + count(one), 0);

/** Whether a layer is shown with its heads side by side. @param {Flow} figure @param {FlowLayer} layer */
const isSpread = (figure, layer) => figure.level === LAYER && isFocus(figure, layer);

/** A point: so far along the layers and along the tokens. @param {Plan} plan @param {number} along @param {number} across */
const point = (plan, along, across) => (plan.turned ? [across, along] : [along, across]);

/** A part that a press brings into focus. @param {Pen} pen @param {FlowLayer} layer @param {number | ""} head @param {string} label @param {() => void} draw @param {any} [more] */
function focusing(pen, layer, head, label, draw, more = {}) {
  const of = layer.attentions[0]?.attention ?? "";
  const before = pen.select;
  pen.select = ["attention", "layer", "head"];
  const select = [more.attention ?? of, `${layer.layer}`, `${head}`];
  pen.target({ select, label, ...more.target }, draw);
  pen.select = before;
}

/** A part that a press leads on from. @param {Pen} pen @param {Record<string, string>} to @param {any} what @param {() => void} draw */
function leading(pen, to, what, draw) {
  const before = pen.select;
  pen.select = Object.keys(to);
  pen.target({ select: Object.values(to), ...what }, draw);
  pen.select = before;
}

/** Where a layer stands: its box, and whether it shows its strongest curve alone. @param {Pen} pen @param {Plan} plan @param {FlowLayer} layer @param {number} at */
function boxOf(pen, plan, layer, at) {
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const isSpine = to - from < SPINE * pen.letter;
  const inset = isSpine ? 1.5 : 4;
  const first = plan.rows[plan.firsts[layer.band]] - 0.9 * pen.letter;
  const [x, y] = point(plan, from + inset, first);
  const [u, v] = point(plan, to - inset, plan.foots[layer.band]);
  return { x, y, wide: u - x, high: v - y, isSpine };
}

/** The ground of a layer. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at */
function ground(pen, figure, plan, layer, at) {
  const { look } = pen;
  const { x, y, wide, high, isSpine } = boxOf(pen, plan, layer, at);
  const inFocus = isFocus(figure, layer);
  const draw = () =>
    pen.rect(x, y, wide, high, {
      rx: isSpine ? 4 : 8,
      fill: look.primary,
      "fill-opacity": inFocus ? 0.09 : 0.03,
      stroke: inFocus ? look.border : "none",
    });
  pressed(pen, figure, layer, draw, { name: "flow-ground" });
}

/** A part of a layer that a press brings into focus, and of the one in focus a press opens. @param {Pen} pen @param {Flow} figure @param {FlowLayer} layer @param {() => void} draw @param {any} [more] */
function pressed(pen, figure, layer, draw, more = {}) {
  const inFocus = isFocus(figure, layer);
  const label = say("layer", { layer: layer.layer });
  const target = { pressed: inFocus && figure.head < 0, ...more };
  if (inFocus && figure.level < LAYER && figure.levels[LAYER])
    leading(pen, figure.levels[LAYER].select, { label, ...target }, draw);
  else focusing(pen, layer, "", label, draw, { target });
}

/** The name of a layer and its heads. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at */
function heading(pen, figure, plan, layer, at) {
  const { letter } = pen;
  const { x, y, wide, isSpine } = boxOf(pen, plan, layer, at);
  const name = say("layer", { layer: layer.layer });
  const style = { bold: isFocus(figure, layer), alpha: 0.85, halo: true };
  if (plan.turned) {
    if (!isSpine)
      pressed(pen, figure, layer, () =>
        pen.text(x + 0.5 * letter, y + 0.9 * letter, name, { ...style, size: 0.85, plate: true }),
      );
  } else if (!isSpine) {
    // What cross-attention brings runs past the middle.
    const isCrossed = layer.attentions.length > 1 && layer.band > 0;
    pressed(pen, figure, layer, () =>
      pen.text(isCrossed ? x : x + wide / 2, y - 2.3 * letter, name, {
        ...style,
        anchor: isCrossed ? "start" : "middle",
        size: 0.9,
        room: wide,
        plate: isCrossed,
      }),
    );
  } else if (
    layer.layer % 5 === 0 &&
    pen.isFree(
      pen.box(x + wide / 2, y - 0.8 * letter, `0${layer.layer}`, { anchor: "middle", size: 0.8 }),
    )
  )
    pen.text(x + wide / 2, y - 0.8 * letter, `${layer.layer}`, {
      anchor: "middle",
      size: 0.8,
      alpha: 0.75,
    });
  if (!isSpine) heads(pen, figure, plan, layer, [x, y, wide]);
}

/** Where each head of a layer stands along it, side by side. @param {FlowLayer} layer @param {number} from @param {number} wide */
function sideBySide({ attentions }, from, wide) {
  const ends = HEADS[Math.min(attentions.length, HEADS.length) - 1];
  return attentions.map((/** @type {any} */ one, /** @type {number} */ i) => {
    const begin = from + (i ? ends[i - 1] + 0.05 : 0.01) * wide;
    const step = (from + ends[i] * wide - begin) / count(one);
    return { step, places: [...Array(count(one)).keys()].map((head) => begin + head * step) };
  });
}

/** A dot a head, as dark as its share of what attention writes. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number[]} box */
function heads(pen, figure, plan, layer, [x, y, wide]) {
  const { letter, look } = pen;
  const gaps = layer.attentions.length - 1;
  const n = countOf(layer);
  const room = plan.turned ? 0.55 * wide : wide - 0.6 * letter;
  const step = Math.max(1, Math.min(1.15 * letter, room / (n + gaps)));
  const across = plan.turned ? y + 0.9 * letter : y - 0.8 * letter;
  const spread = isSpread(figure, layer) && !plan.turned ? sideBySide(layer, x, wide) : null;
  let left = plan.turned
    ? x + wide - step * (n + gaps)
    : x + wide / 2 - (step * (n + gaps - 1)) / 2;
  layer.attentions.forEach((/** @type {any} */ attention, /** @type {number} */ i) => {
    const colour = colourOf(pen, attention);
    for (let head = 0; head < count(attention); head++) {
      const share = attention.totals[head];
      const chosen =
        isFocus(figure, layer) &&
        figure.head === head &&
        chosenAttention(figure, layer) === attention;
      const at = spread ? spread[i].places[head] + spread[i].step / 2 : left;
      const removed = attention.removed.includes(head);
      const draw = () => {
        const r = Math.min(0.42 * letter, 0.4 * step) * (chosen ? 1.25 : 1);
        pen.circle(at, across, r, { fill: look.paper });
        pen.circle(at, across, r, {
          fill: colour,
          "fill-opacity": Math.min(1, 0.06 + 2.6 * Math.max(0, share)).toFixed(2),
          stroke: chosen ? look.ink : colour,
          "stroke-width": chosen ? 2 : 1,
          "stroke-opacity": chosen ? 1 : 0.45,
        });
        if (removed)
          pen.line(
            [
              [at - r, across + r],
              [at + r, across - r],
            ],
            look.ink,
            { "stroke-width": 2 },
          );
        if (spread)
          pen.text(at - r - 0.3 * letter, across, `${head}`, {
            size: 0.8,
            alpha: 0.8,
            anchor: "end",
          });
      };
      headTarget(pen, figure, layer, attention, head, chosen, draw);
      left += step;
    }
    left += step;
  });
}

/** What a head does, with its score and chance. @param {[string, number, number] | null | undefined} name */
export const named = (name) =>
  name && say("named", { name: name[0], score: hundredths(name[1]), chance: hundredths(name[2]) });

/** A head that a press brings into focus, and another press opens. @param {Pen} pen @param {Flow} figure @param {FlowLayer} layer @param {FlowAttention} attention @param {number} head @param {boolean} chosen @param {() => void} draw */
function headTarget(pen, figure, layer, attention, head, chosen, draw) {
  const share = percent(attention.totals[head]);
  const told = [say("head", { layer: layer.layer, head, share }), named(attention.names[head])];
  const name = `flow-head${isFocus(figure, layer) ? " flow-stop" : ""}`;
  const what = { label: told.filter(Boolean).join("; "), pressed: chosen, name };
  const opens = (chosen || isSpread(figure, layer)) && figure.level < HEAD && figure.levels[HEAD];
  if (!opens)
    return focusing(pen, layer, head, what.label, draw, {
      attention: attention.attention,
      target: what,
    });
  const at = { attention: attention.attention, layer: `${layer.layer}`, head: `${head}` };
  leading(pen, { ...at, flow_level: figure.levels[HEAD].select.flow_level }, what, draw);
}

/** The colour of what an attention brings. @param {Pen} pen @param {FlowAttention} attention */
const colourOf = ({ look }, { attention }) =>
  attention === "cross" ? look.categorical[1] : look.primary;

/** The number of an attention's heads. @param {FlowAttention} attention */
const count = ({ shares, n }) => shares.length / n;

/** The attention of a layer that is in focus. @param {Flow} figure @param {FlowLayer} layer */
const chosenAttention = (figure, layer) =>
  layer.attentions.find((/** @type {any} */ one) => one.attention === figure.attention) ||
  layer.attentions[0];

/** Every row's line with its label. @param {Pen} pen @param {Flow} figure @param {Plan} plan */
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
      pen.line([point(plan, from, across), point(plan, to, across)], colour, {
        "stroke-width": chosen ? 0.33 * letter : 0.13 * letter,
        "stroke-opacity": chosen ? 1 : 0.22,
        "stroke-linecap": "round",
        "stroke-dasharray": isRest ? "2 6" : undefined,
      });
      const [x, y] = point(plan, from - 0.6 * letter, across);
      if (chosen && figure.says && at === figure.bands.length - 1 && !plan.turned)
        pen.text(x, y + BELOW * letter, figure.says, { size: 0.85, alpha: 0.75, anchor: "end" });
      const isComing = at === 0 && figure.from?.written === row; // its word is on the way there
      const style = {
        bold: chosen,
        fill: chosen ? look.primary : undefined,
        alpha: isComing ? 0.01 : isRest ? 0.75 : undefined,
      };
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

/** What the second stream reads of the first. @param {Pen} pen @param {Flow} figure @param {Plan} plan */
function memory(pen, figure, plan) {
  const { letter, look } = pen;
  const at = figure.layers.findIndex((/** @type {any} */ layer) => layer.band === 1);
  const along = (plan.ends[at - 1] + plan.starts[at]) / 2;
  const [low, high] = [plan.rows[0] - 0.6 * letter, plan.rows[plan.firsts[1] - 1] + 0.6 * letter];
  const [x, y] = point(plan, along - 0.4 * letter, low);
  const [u, v] = point(plan, along + 0.4 * letter, high);
  pen.rect(x, y, u - x, v - y, { rx: 4, fill: look.categorical[1], "fill-opacity": 0.75 });
  if (!plan.turned)
    pen.text((x + u) / 2, y - 0.8 * letter, figure.between, {
      anchor: "middle",
      size: 0.85,
      alpha: 0.85,
    });
}

/** What a layer brings and adds. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at */
function column(pen, figure, plan, layer, at) {
  const { letter, look } = pen;
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const wide = to - from;
  const isSpine = wide < SPINE * letter;
  const chosen = chosenRow(figure, layer.band);
  const across = plan.rows[chosen];
  const start = from + (isSpine ? 2 : plan.turned ? 1.6 * letter : 0.8 * letter);
  const n = layer.attentions.length;
  const spread = isSpread(figure, layer) ? sideBySide(layer, from, wide) : null;
  layer.attentions.forEach((/** @type {any} */ attention, /** @type {number} */ i) => {
    const ends = spread
      ? HEADS[Math.min(n, HEADS.length) - 1].map((share) => share + 0.02)
      : (plan.turned ? DOWN : SUMS)[Math.min(n, SUMS.length) - 1];
    const sums = ends.map((share) => from + share * wide);
    const begin = i ? sums[i - 1] + 0.8 * letter : start;
    const sum = isSpine ? from + 0.75 * wide : sums[i];
    if (spread) eachHead(pen, figure, plan, layer, attention, spread[i]);
    else {
      if (!isSpine) faint(pen, plan, attention, begin, sum);
      curves(pen, figure, plan, layer, attention, [begin, sum, chosen, isSpine ? 1 : Infinity]);
    }
    const [x, y] = point(plan, sum, across);
    const r = isSpine ? 0.2 * letter : 0.62 * letter;
    pen.circle(x, y, r, {
      class: "flow-sum",
      fill: look.paper,
      stroke: look.primary,
      "stroke-width": isSpine ? 1.5 : 2,
    });
    if (!isSpine) pen.text(x, y, "+", { anchor: "middle", bold: true, fill: look.primary });
  });
  const ffn = isSpread(figure, layer) ? 0.92 : plan.turned ? 0.77 : 0.84; // of its width
  if (!isSpine && layer.ffn !== null)
    square(pen, plan, layer, [from + ffn * wide, across], isFocus(figure, layer));
  if (layer.says) says(pen, figure, plan, layer, at, isSpine);
  const numbers = { size: 0.85, alpha: 0.8 };
  if (plan.turned) {
    if (layer.numbers && !isSpine) besideRow(pen, figure, plan, layer, at, layer.numbers, numbers);
  } else if (!isSpine) {
    const isWide = pen.width(layer.numbers, numbers) > wide;
    const label = isWide ? layer.numbers.replace(UNIT, "") : layer.numbers;
    pen.text((from + to) / 2, plan.foots[layer.band] + 0.9 * letter, label, {
      ...numbers,
      anchor: "middle",
      room: wide,
    });
  }
}

/** The heads of an attention side by side, each with its own curves. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {FlowAttention} attention @param {{ step: number, places: number[] }} where */
function eachHead(pen, figure, plan, layer, attention, { step, places }) {
  const { letter, look } = pen;
  const chosen = chosenRow(figure, layer.band);
  const first = plan.rows[plan.firsts[layer.band]] - 0.7 * letter;
  const foot = plan.foots[layer.band];
  places.forEach((from, head) => {
    const [x, y] = point(plan, from + 1, first);
    const [u, v] = point(plan, from + step - 1, foot);
    const isOn = figure.head === head && chosenAttention(figure, layer) === attention;
    const draw = () => {
      pen.rect(x, y, u - x, v - y, {
        rx: 3,
        fill: look.paper,
        "fill-opacity": 0.35,
        stroke: isOn ? look.primary : look.border,
        "stroke-width": isOn ? 2 : 1,
      });
      curves(pen, figure, plan, layer, attention, [
        from + 3,
        from + step - 3,
        chosen,
        Infinity,
        head,
      ]);
      if (plan.turned)
        pen.text(x + 0.3 * letter, y + 0.8 * letter, `${head}`, { size: 0.8, alpha: 0.8 });
    };
    headTarget(pen, figure, layer, attention, head, isOn, draw);
  });
}

/** The FFN, as large as its update. @param {Pen} pen @param {Plan} plan @param {FlowLayer} layer @param {number[]} place @param {boolean} isStop */
function square(pen, plan, layer, [along, across], isStop) {
  const { letter, look } = pen;
  const ffn = layer.ffn ?? 0;
  const side = (1 + 0.8 * ffn) * letter; // above the words below the row
  const [x, y] = point(plan, along, across);
  const before = pen.select;
  pen.select = ["address"];
  const label = [say("ffn", { layer: layer.layer, share: percent(ffn) }), layer.units]
    .filter(Boolean)
    .join("; ");
  const name = `flow-ffn${isStop ? " flow-stop" : ""}`;
  pen.target({ select: [layer.ffn_key], label, name }, () => {
    pen.rect(x - side / 2, y - side / 2, side, side, { rx: 3, fill: look.paper });
    pen.rect(x - side / 2, y - side / 2, side, side, {
      rx: 3,
      fill: look.primary,
      "fill-opacity": 0.35,
      stroke: look.primary,
      "stroke-width": 1.5,
    });
    pen.text(x, y, "F", { anchor: "middle", size: 0.8, bold: true });
  });
  pen.select = before;
}

/** A text at the foot of a layer that runs downwards, where it covers no other text and not the line of the chosen row: at the left or the right of the layer, beside that line, or before the layer. isNear: beside the line first. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at @param {string} text @param {import("./draw.js").TextStyle} style @param {boolean} [isNear] */
function besideRow(pen, figure, plan, layer, at, text, style, isNear = false) {
  const { letter } = pen;
  const { x, wide } = boxOf(pen, plan, layer, at);
  const y = plan.ends[at] - 0.75 * letter;
  const across = plan.rows[chosenRow(figure, layer.band)];
  const inset = 0.4 * letter;
  /** @type {[number, "start" | "end"][]} */
  const sides = [
    [x + inset, "start"],
    [x + wide - inset, "end"],
  ];
  /** @type {[number, "start" | "end"][]} */
  const near = [
    [across - inset, "end"],
    [across + inset, "start"],
  ];
  /** @type {[number, "start" | "end"][]} */
  const before = layer.band ? [[x - inset, "end"]] : [];
  const places = [...(isNear ? near : sides), ...(isNear ? sides : near), ...before];
  const room = [layer.band ? 0 : x, x + wide];
  const isClear = (/** @type {[number, "start" | "end"]} */ [left, anchor]) => {
    const box = pen.box(left, y, text, { ...style, anchor });
    const isOff = box[2] < across || box[0] > across;
    return isOff && box[0] >= room[0] && box[2] <= room[1] && pen.isFree(box);
  };
  const [left, anchor] = places.find(isClear) ?? places[0];
  pen.text(left, y, text, { ...style, anchor, plate: true });
}

/** The word that the stream would give after a layer. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at @param {boolean} isSpine */
function says(pen, figure, plan, layer, at, isSpine) {
  const { letter, look } = pen;
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const across = plan.rows[chosenRow(figure, layer.band)];
  if (!layer.says) return;
  const [word, p, text] = layer.says;
  const style = {
    bold: true,
    fill: look.primary,
    alpha: Math.min(1, 0.7 + p),
    size: 0.95,
    halo: true,
  };
  if (plan.turned && isSpine) return;
  if (plan.turned) return besideRow(pen, figure, plan, layer, at, `“${word}” ${text}`, style, true);
  const y = across + BELOW * letter;
  if (!isSpine) {
    const whole = `“${word}” ${text}`;
    const room = to - from - 0.6 * letter;
    const label = pen.width(whole, style) > room ? `“${word}”` : whole;
    return pen.freely(to - 0.6 * letter, y, label, { ...style, anchor: "end", room });
  }
  const before = figure.layers[at - 1]?.says?.[0];
  const middle = (from + to) / 2;
  const high = 1.1 * letter * (layer.answer ?? 0);
  pen.rect(from + 2, y + 0.55 * letter - high, to - from - 4, Math.max(1, high), {
    fill: look.primary,
    "fill-opacity": 0.4,
  });
  if (word === before || p < 0.05) return;
  const box = pen.box(middle, y - 0.1 * letter, ` ${word} `, {
    ...style,
    size: 0.85,
    anchor: "middle",
  });
  if (pen.isFree(box))
    pen.text(middle, y - 0.1 * letter, word, {
      ...style,
      size: 0.85,
      anchor: "middle",
      halo: true,
    });
}

/** Curves into rows that are not chosen. @param {Pen} pen @param {Plan} plan @param {FlowAttention} attention @param {number} begin @param {number} sum */
function faint(pen, plan, { others }, begin, sum) {
  for (let at = 0; at + 2 < others.length; at += 3) {
    const [query, key] = [others[at], others[at + 1]];
    curve(pen, plan, [begin, plan.rows[key]], [sum, plan.rows[query]], pen.look.ink, {
      "stroke-opacity": 0.07,
      "stroke-width": 1.4,
    });
  }
}

/** Curves into the chosen row: of all heads, of the one in focus, or of the one that is given. Of a head that is switched off they stay as ghosts. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {FlowAttention} attention @param {any[]} place */
function curves(pen, figure, plan, layer, attention, [begin, sum, chosen, most, one]) {
  const { letter, look } = pen;
  const labels = labelsOf(figure);
  const alone = one ?? shownHead(figure, layer, attention);
  const isOff = alone >= 0 && attention.removed.includes(alone);
  const head = isOff && one === undefined ? -1 : alone; // all others, where it is none of them
  const isSpecial = (/** @type {number} */ row) => pen.special.has(labels[row]);
  const into = (/** @type {number[]} */ widths, /** @type {boolean} */ isGhost) => {
    const drawn = [...widths.keys()].filter(
      (row) => row !== chosen && Math.abs(widths[row]) >= FAINT,
    );
    const of = Number.isFinite(most) ? drawn.filter((row) => !isSpecial(row)) : drawn;
    of.sort((a, b) => Math.abs(widths[b]) - Math.abs(widths[a]));
    for (const row of of.slice(0, most).reverse()) {
      const share = widths[row];
      const pale = isGhost || isSpecial(row);
      const dash = isGhost || share < 0 ? `${0.4 * letter} ${0.3 * letter}` : undefined;
      const thick = THICKEST * letter * Math.abs(share) * (Number.isFinite(most) ? 0.5 : 1);
      const room = isGhost ? GHOST * letter : one === undefined ? Infinity : 0.5 * letter;
      curve(
        pen,
        plan,
        [begin, plan.rows[row]],
        [sum, plan.rows[chosen]],
        pale ? look.ink : colourOf(pen, attention),
        {
          class: isGhost ? "flow-ghost" : "flow-curve",
          "stroke-width": Math.max(1, Math.min(room, thick)).toFixed(1),
          "stroke-opacity": isGhost ? 0.4 : pale ? 0.16 : 0.75,
          "stroke-linecap": dash ? "butt" : "round",
          "stroke-dasharray": dash,
        },
      );
    }
  };
  const all = (/** @type {number} */ at) =>
    labels.map((/** @type {string} */ _, /** @type {number} */ row) => widthOf(attention, at, row));
  const ghosts = attention.removed.filter(
    (/** @type {number} */ each) => alone < 0 || each === alone,
  );
  for (const each of most === Infinity ? ghosts : []) into(all(each), true);
  if (!attention.removed.includes(head)) into(all(head), false);
}

/** The head of a layer that is drawn alone, -1 for all: that under the pointer, else the one in focus. @param {Flow} figure @param {FlowLayer} layer @param {FlowAttention} attention */
function shownHead(figure, layer, attention) {
  const { over } = figure;
  if (over && over.layer === layer.layer && over.attention === attention.attention)
    return over.head;
  if (
    over &&
    over.layer === layer.layer &&
    layer.attentions.some((/** @type {any} */ one) => one.attention === over.attention)
  )
    return -1;
  const isOn = isFocus(figure, layer) && chosenAttention(figure, layer) === attention;
  return isOn ? figure.head : -1;
}

/** How wide a curve is from a row: a head's weight, or the share that all heads bring from there. @param {FlowAttention} attention @param {number} head @param {number} row */
export function widthOf(attention, head, row) {
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
  ].map(([along, across]) =>
    point(plan, along, across)
      .map((each) => each.toFixed(1))
      .join(" "),
  );
  pen.path(`M${points[0]}C${points.slice(1).join(" ")}`, stroke, style);
}

/** The likeliest words at the end. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {Box} box */
function output(pen, figure, plan, box) {
  const { letter, look } = pen;
  const { words, bands } = figure;
  if (!words.length) return;
  const [, to] = plan.edge;
  const pitch = 1.75 * letter;
  const middle = plan.rows[chosenRow(figure, bands.length - 1)];
  const lowest = plan.foot - words.length * pitch;
  const first = plan.turned
    ? to + letter
    : Math.max(box.y + letter, Math.min(lowest, middle - 1.5 * pitch));
  const left = plan.turned ? box.x + letter : to + 0.9 * letter;
  const room = plan.turned
    ? 8 * letter
    : Math.min(
        8 * letter,
        Math.max(
          ...words.map(({ label }, /** @type {number} */ at) => pen.width(label, { bold: !at })),
        ),
      );
  const bar = left + room + 0.5 * letter;
  const most = box.x + box.width - bar - 3.6 * letter;
  const inside = pen.apart(() =>
    words.forEach(({ label, probability, text }, /** @type {number} */ at) => {
      const y = first + at * pitch;
      pen.text(left, y, label, { bold: !at, fill: at ? undefined : look.primary, room });
      const long = Math.max(1.5, most * probability);
      pen.rect(bar, y - 0.42 * letter, long, 0.84 * letter, {
        rx: 2,
        fill: look.primary,
        "fill-opacity": at ? 0.5 : 1,
      });
      const shown = figure.from ? tenths(100 * probability) : text; // a number rolls to the one after it
      pen.text(bar + long + 0.4 * letter, y, shown, { size: 0.85, alpha: 0.85 });
    }),
  );
  pen.put("g", { class: "flow-output" }, inside);
}

const UNIT = / \p{L}+$/u; // a word behind a number
const FEWEST = 4; // rows from which on a slide has room for the note

/** A flow of at most so many rows: the chosen ones and those that most is brought from. With the fewest its note, which says how it is read, makes room for larger type. @param {Flow} figure @param {number} most */
export function cutFlow(figure, most) {
  numbered(figure);
  const { bands } = figure;
  if (labelsOf(figure).length <= most) return figure;
  const cut = kept(figure, Math.max(3, Math.floor(most / bands.length)));
  const size = (/** @type {any} */ one) =>
    one.bands.reduce(
      (/** @type {number} */ sum, /** @type {any} */ band) => sum + band.rows.length,
      0,
    );
  const note = most < FEWEST ? "" : figure.note;
  return { ...cut, note, omitted: omitted(["tokens", size(cut), size(figure)]) };
}

/** A flow of at most so many rows in each band. @param {Flow} figure @param {number} few */
function kept(figure, few) {
  const { bands, layers } = figure;
  const n = labelsOf(figure).length;
  const seen =
    figure.level >= LAYER
      ? layers.filter((/** @type {any} */ one) => isFocus(figure, one))
      : layers;
  const attentions = seen.flatMap((/** @type {any} */ layer) => layer.attentions);
  const sizes = (/** @type {any} */ one, /** @type {number} */ row) =>
    figure.level >= LAYER
      ? [...Array(count(one)).keys()].map((head) => Math.abs(widthOf(one, head, row)))
      : [Math.abs(widthOf(one, -1, row))];
  const matters = (/** @type {number} */ row) =>
    attentions
      .flatMap((/** @type {any} */ one) => sizes(one, row))
      .reduce((/** @type {number} */ sum, /** @type {number} */ size) => sum + size, 0);
  let first = 0;
  /** @type {number[]} */
  const all = [];
  const cut = bands.map((/** @type {any} */ band) => {
    const own = [...band.rows.keys()];
    const start = first;
    first += own.length + (band.rest ? 1 : 0);
    const order = own.sort(
      (a, b) =>
        Number(b === band.selected) - Number(a === band.selected) ||
        matters(start + b) - matters(start + a),
    );
    const rows = order.slice(0, few).sort((a, b) => a - b);
    all.push(...rows.map((at) => start + at));
    return {
      ...band,
      rows: rows.map((at) => band.rows[at]),
      places: rows.map((at) => band.places[at]),
      selected: rows.indexOf(band.selected),
      rest: "",
    };
  });
  const spread = (/** @type {Float32Array} */ values) =>
    Float32Array.from(
      { length: (values.length / n) * all.length },
      (_, at) => values[Math.floor(at / all.length) * n + all[at % all.length]],
    );
  return {
    ...figure,
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
