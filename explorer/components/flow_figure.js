// @ts-check
// The whole machine: tokens as rows, layers as columns, what attention brings to the chosen row as
// curves, and the words that come out. On a narrow screen it is turned: layers run downwards.

import {
  answerOf,
  DARK,
  END,
  ARRIVE,
  GROW,
  LEADS,
  OPEN,
  WIDEN,
  clearOfCurves,
  flap,
  flapWide,
  isAsked,
  isEnd,
  lanes,
  LIGHT,
  share as partOf,
  shine,
  stopOf,
  told,
  track,
  wideOf,
} from "./beam_figure.js";
import { addedBy, tags, toldRow } from "./beam_words.js";
import { fixed, hundredths, ordinal } from "./number_format.js";
import {
  BELOW,
  chosenRow,
  curve,
  hueOf,
  isHeadOut,
  labelsOf,
  lightEdge,
  memory,
  night,
  point,
  streams,
  toggled,
} from "./flow_rows.js";
import {
  broughtOf,
  count,
  darknessOf,
  fetchedRow,
  isFocus,
  kept,
  numbered,
  widthOf,
} from "./flow_shares.js";
import { HEAD, LAYER, leading, lightOn, seen, zoomOf } from "./flow_zoom.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** A flow, the place that it moves from, what is under the pointer, how far the layer under the beam has come, in milliseconds, the reader's guess, colours by row, and the word without which another one is said.
 * @typedef {Omit<import("./figure_types").Flow, "layers"> & { layers: FlowLayer[], from?: any, over?: any, ms?: number, most?: number, wanted?: string, zoom?: any, yours?: string, hues?: Record<number, number>, strongest?: { label: string, edits: string }, blind?: string }} Flow */
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
const SINK = 0.22; // letters of a curve from a special token, at most
const PALE = 0.17; // how strong that one is
const FAINT = 0.02; // share below which a curve is not drawn
const [GLOW, BESIDE] = [0.75, 0.5]; // of the curve that a tag tells of: letters that its light is wider, and how strong others are
const [NUMBERED, MUCH] = [0.55, 0.45]; // letters of a dot that holds its number, and how dark it is then, at least
const FOCUS = 1.8; // times as wide as another layer is the one in focus
const OUT = 25; // letters of the words that come out, with the way to them
const WIDE = [19, 8.8]; // letters of the column under the beam, and of one that matters in the end
const NARROWS = 8; // columns of which the others are no spines
const SUMS = [[0.62], [0.34, 0.68]]; // of a layer's width, where its attentions end
const DOWN = [[0.48], [0.26, 0.5]]; // the same where layers run downwards
const [LONG, SHORT] = [10, 7]; // letters of a layer under the beam that runs downwards, and of another one of a few
const THIN = 1; // letters of a layer's width beside one that is opened
const MIDDLE = 0.4; // of the width, that these take at most
const HEADS = [[0.76], [0.39, 0.8]]; // of an opened layer's width, where its attentions' heads end
const HIGH = 2.6; // letters of a head's height on a narrow screen
const CLEAR = 3.8; // letters from the chosen row to the next, with the guess between them
const BETWEEN = 4.6; // letters between two bands, for the names of layers
const [ROW, LOW, LEAST] = [1.75, 1.3, 1.02]; // letters between rows, of a layer that is opened, at least

/** Where everything stands, along the layers and along the tokens.
 * @typedef {{ turned: boolean, starts: number[], ends: number[], rows: number[], edge: number[], foots: number[], foot: number, firsts: number[] }} Plan */

/** @param {Pen} pen @param {Flow} figure @param {Box} box */
export function flow(pen, figure, box) {
  numbered(figure);
  const narrow = box.width < NARROW * pen.letter && !pen.least;
  figure.zoom = zoomOf(figure);
  if (figure.zoom.few === 1) figure = { ...kept(figure, 1), lanes: narrow ? [] : figure.lanes };
  const plan = between(pen, figure, box);
  const { layers, bands } = figure;
  seen(pen, 1 - figure.zoom.open, () => night(pen, figure, plan));
  layers.forEach((layer, at) => ground(pen, figure, plan, layer, at));
  streams(pen, figure, plan);
  if (bands.length > 1) memory(pen, figure, plan, box.y);
  layers.forEach((layer, at) => {
    const inside = pen.apart(() =>
      seen(pen, lightOn(figure, at), () => column(pen, figure, plan, layer, at)),
    );
    const { x, y, wide, high } = boxOf(pen, plan, layer, at);
    const place = [x, y, wide, high].map((each) => each.toFixed(1)).join(" ");
    pen.put("g", { class: "flow-layer", "data-at": at, "data-box": place }, inside);
  });
  layers.forEach((layer, at) =>
    seen(pen, lightOn(figure, at), () => heading(pen, figure, plan, layer, at)),
  );
  if (layers.some((layer, at) => boxOf(pen, plan, layer, at).isSpine)) unsaid(pen, "curves");
  seen(pen, 1 - figure.zoom.open, () => track(pen, figure, plan));
  return Math.max(plan.foot, output(pen, figure, plan, box)) - box.y;
}

const PLACE = "level ffn layer band current matters lanes leaders layers edits wanted".split(" ");

/** What of a flow says how wide its layers are, which words race and what is out. @param {any} figure @returns {any} */
export const place = (figure) => Object.fromEntries(PLACE.map((name) => [name, figure[name]]));

/** The plan of all rows: where a level keeps one of each band, the others lie on it. @param {Pen} pen @param {Flow} figure @param {Box} box @returns {Plan} */
function planOf(pen, figure, box) {
  if (figure.level < HEAD || labelsOf(figure).length === figure.bands.length)
    return planned(pen, figure, box);
  const plan = planned(pen, kept(figure, 1), box);
  const rows = figure.bands.flatMap((/** @type {any} */ band, /** @type {number} */ at) =>
    Array(band.rows.length).fill(plan.rows[at]),
  );
  const firsts = figure.bands.map(
    (/** @type {any} */ band, /** @type {number} */ at) => chosenRow(figure, at) - band.selected,
  );
  return { ...plan, rows, firsts };
}

/** The plan, or one on the way to it from that of the place before. @param {Pen} pen @param {Flow} figure @param {Box} box */
function between(pen, figure, box) {
  const plan = planOf(pen, figure, box);
  if (!figure.from) return plan;
  const before = planOf(pen, { ...figure, ...figure.from }, box);
  const isAlike = before.turned === plan.turned && before.rows.length === plan.rows.length;
  if (!isAlike || before.starts.length !== plan.starts.length) return plan;
  const mixed = (/** @type {number[]} */ from, /** @type {number[]} */ to) =>
    to.map((each, at) => from[at] + (each - from[at]) * figure.from.share);
  return {
    ...plan,
    starts: mixed(before.starts, plan.starts),
    ends: mixed(before.ends, plan.ends),
    edge: mixed(before.edge, plan.edge),
    rows: mixed(before.rows, plan.rows),
    foots: mixed(before.foots, plan.foots),
    foot: mixed([before.foot], [plan.foot])[0],
  };
}

/** @param {Pen} pen @param {Flow} figure @param {Box} box @returns {Plan} */
function planned(pen, figure, { x, y, width, height }) {
  const { letter } = pen;
  const { bands, layers } = figure;
  const races = figure.lanes.length > 0 && !isAsked(figure);
  const turned = width < NARROW * letter && !pen.least && figure.level < HEAD;
  const labels = labelsOf(figure);
  const last = bands.length - 1;
  const isClear = Boolean(figure.says) && !turned; // room for the words below the chosen row
  const firsts = bands.map(
    (/** @type {any} */ _, /** @type {number} */ at) => chosenRow(figure, at) - bands[at].selected,
  );
  const own = labels.map((/** @type {string} */ each) => pen.width(each, { bold: true }));
  const room = Math.max(...own, figure.says ? pen.width(figure.says, { size: 0.85 }) : 0);
  const tokens = labels.length + (turned ? 1.2 * last : -Number(isClear));
  const between = (isClear ? CLEAR : 0) + BETWEEN * last; // letters that no row takes
  const isOpen = figure.level >= LAYER;
  const isDark = isAsked(figure);
  // On a slide no room is left for what is not there: places without and with what is out.
  const isShort = pen.least && figure.lanes.every(({ were }) => were < 0);
  const under = figure.says && !isShort ? 4.2 : 2;
  const [head, below] = isOpen ? [3.4, 2] : isDark ? [1, 1] : [6.2, under];
  const row = figure.level === LAYER ? LOW : ROW;
  const pitch = turned
    ? (width - 2 * letter) / (tokens + 0.5)
    : letter *
      Math.max(
        isAsked(figure) ? 0.7 : LEAST,
        Math.min(
          isAsked(figure) ? 0.95 : row,
          height ? (height / letter - head - below - between) / tokens : row,
        ),
      );
  let along = (turned ? x + letter : y + head * letter) + pitch / 2;
  const [rows, foots] = /** @type {number[][]} */ ([[], []]);
  bands.forEach((/** @type {any} */ band, /** @type {number} */ at) => {
    for (let row = 0; row < band.rows.length; row++) {
      rows.push(along);
      along += pitch;
      if (at === last && row === band.selected && isClear) along += CLEAR * letter - pitch;
    }
    foots.push(along - pitch / 2);
    along += turned ? 1.2 * pitch : BETWEEN * letter;
  });
  const named = isDark ? 0 : room;
  const side = turned ? Math.min(named, 7 * letter) : Math.min(named, 0.2 * width);
  const start = (turned ? y : x) + side + (turned ? 0.8 : 1.6) * letter; // a mark stands before a label
  const out = (races ? OUT * (pen.least ? 0.75 : 1) : 1.5) * letter;
  const n = layers.length;
  const inner = bands.length > 1 ? 2.4 * letter : 0;
  const wide = wideOf(figure);
  const large = Math.max(1, wide.length);
  const opened = (figure.level === LAYER ? HIGH * countOf(focusOf(figure)) + 7 : 6) * letter;
  const [narrow, wider] = n > NARROWS ? [0.42, 0.8 * WIDE[0]] : [SHORT, LONG];
  const long = isOpen
    ? THIN * letter * (n - 1) + opened
    : (narrow * (n - large) + large * (isEnd(figure) ? SHORT : wider)) * letter;
  const whole = turned ? long : width - (start - x) - out - inner;
  const others = Math.max(1, n - large);
  const broad = WIDE[isEnd(figure) ? 1 : 0] * letter * wide.length;
  const other = isOpen
    ? Math.min(THIN * letter, turned ? Infinity : (MIDDLE * whole) / others)
    : n > NARROWS && !turned
      ? (whole - Math.min(broad, 0.7 * whole)) / (n - wide.length)
      : isAsked(figure) || (isEnd(figure) && n <= NARROWS)
        ? whole / n
        : turned
          ? narrow * letter
          : whole / (n - 1 + FOCUS);
  const [starts, ends] = /** @type {number[][]} */ ([[], []]);
  let from = start;
  layers.forEach((layer, at) => {
    if (at && layer.band !== layers[at - 1].band) from += inner;
    starts.push(from);
    from += wide.includes(at) ? (whole - other * (n - wide.length)) / wide.length : other;
    ends.push(from);
  });
  const foot = turned ? from + letter : foots[last] + below * letter;
  return {
    turned,
    starts,
    ends,
    rows,
    edge: [start, from],
    foots,
    foot,
    firsts,
  };
}

/** The layer in focus. @param {Flow} figure @returns {FlowLayer} */
const focusOf = (figure) => figure.layers.find((one) => isFocus(figure, one)) ?? figure.layers[0];

/** The number of a layer's heads. @param {FlowLayer} layer */
const countOf = ({ attentions }) =>
  attentions.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + count(one), 0);

/** Whether a layer is shown with its heads side by side. @param {Flow} figure @param {FlowLayer} layer */
const isSpread = (figure, layer) => figure.level === LAYER && isFocus(figure, layer);

/** A part that a press brings into focus. @param {Pen} pen @param {FlowLayer} layer @param {number | ""} head @param {string} label @param {() => void} draw @param {any} [more] */
function focusing(pen, layer, head, label, draw, more = {}) {
  const of = layer.attentions[0]?.attention ?? "";
  const before = pen.select;
  pen.select = ["attention", "layer", "head"];
  const select = [more.attention ?? of, `${layer.layer}`, `${head}`];
  pen.target({ select, label, ...more.target }, draw);
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

/** The ground of a layer: lit under the beam and where it has been, bare before it. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at */
function ground(pen, figure, plan, layer, at) {
  const { look } = pen;
  const { x, y, wide, high, isSpine } = boxOf(pen, plan, layer, at);
  const inFocus = isFocus(figure, layer);
  const isLit = figure.level > 0 || at < figure.current;
  const alpha = inFocus && figure.level ? 0.07 : isLit || at > figure.current ? 0.04 : 0.025;
  const isUnlit = plan.starts[at] >= lightEdge(pen, figure, plan)[1];
  const draw = () => {
    const style = {
      rx: isSpine ? 3 : 8,
      fill: isUnlit ? DARK.ink : look.ink,
      "fill-opacity": alpha,
    };
    pen.rect(x, y, wide, high, style);
    const isKey = isEnd(figure) && figure.matters.includes(at);
    if (inFocus || isKey)
      seen(pen, 1 - figure.zoom.open, () => shine(pen, figure, plan, [x, y, wide, high], inFocus));
  };
  pressed(pen, figure, layer, at, draw, { name: "flow-ground" });
}

/** A part of a layer that a press opens, or where the model shows none of it brings the beam to. @param {Pen} pen @param {Flow} figure @param {FlowLayer} layer @param {number} at @param {() => void} draw @param {any} [more] */
function pressed(pen, figure, layer, at, draw, more = {}) {
  const label = say("layer", { layer: layer.layer });
  const part = `layer ${layer.band}.${layer.layer}`;
  const target = { pressed: isFocus(figure, layer) && figure.head < 0, part, ...more };
  if (isAsked(figure)) return draw();
  if (figure.level) return focusing(pen, layer, "", label, draw, { target });
  const opens = figure.stops[at].levels[LAYER]?.select ?? { flow_beam: `${at}` };
  leading(pen, opens, { label, ...target }, draw);
}

/** The name of a layer and its heads. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at */
function heading(pen, figure, plan, layer, at) {
  const { letter } = pen;
  const { x, y, wide, high, isSpine } = boxOf(pen, plan, layer, at);
  const isBare = !figure.zoom.open && at > figure.current;
  const isUnlit = plan.starts[at] >= lightEdge(pen, figure, plan)[1];
  const fill = isUnlit ? DARK.ink : undefined;
  const style = { bold: isFocus(figure, layer), alpha: 0.85, fill, halo: !isUnlit };
  const isNamed = plan.turned || figure.level > 0;
  const text = say("layer", { layer: layer.layer });
  if (isNamed && !isSpine) {
    // What cross-attention brings runs past the middle.
    const isCrossed = plan.turned || (layer.attentions.length > 1 && layer.band > 0);
    // Beside the first of two sums, where the chosen row is the first.
    const row =
      layer.attentions.length > 1 ? plan.rows[chosenRow(figure, layer.band)] - x : Infinity;
    const aside = row < pen.width(text, { size: 0.88 }) ? row + 1.3 * letter : 0.5 * letter;
    const where = plan.turned
      ? [x + aside, y + 0.9 * letter]
      : [isCrossed ? x : x + wide / 2, y - 2.3 * letter];
    pressed(pen, figure, layer, at, () =>
      pen.text(where[0], where[1], text, {
        ...style,
        anchor: isCrossed ? "start" : "middle",
        size: 0.88,
        room: wide,
        plate: isCrossed,
      }),
    );
  } else if (isNamed && (layer.layer % 5 === 0 || (plan.turned && high > letter))) {
    const size = {
      anchor: /** @type {"start" | "middle"} */ (plan.turned ? "start" : "middle"),
      size: 0.8,
      alpha: 0.75,
      fill,
      halo: plan.turned && !isUnlit,
    };
    const label = plan.turned ? text : `${layer.layer}`;
    const place = plan.turned
      ? [x + 0.3 * letter, y + Math.min(high / 2, 0.9 * letter)]
      : [x + wide / 2, y - 0.8 * letter];
    if (pen.isFree(pen.box(place[0], place[1], label, size)))
      pen.text(place[0], place[1], label, size);
  }
  if (!isSpine && !isBare) heads(pen, figure, plan, layer, [x, y, wide]);
}

/** Where each head of a layer stands along it, side by side, and how wide it is: on the way to one of them it takes the room of the others. @param {Flow} figure @param {FlowLayer} layer @param {number} from @param {number} wide */
function sideBySide(figure, layer, from, wide) {
  const { attentions } = layer;
  const { spread, few } = zoomOf(figure);
  const ends = HEADS[Math.min(attentions.length, HEADS.length) - 1];
  const starts = (/** @type {number} */ i) => (i ? ends[i - 1] + 0.05 : 0.01);
  const closed = SUMS[Math.min(attentions.length, SUMS.length) - 1];
  return attentions.map((/** @type {any} */ one, /** @type {number} */ i) => {
    const n = count(one);
    const open = few ? 1 : spread; // a layer that closes lays its heads on each other
    const begin = from + starts(i) * wide;
    const end = from + ends[i] * wide;
    const [first, last] = [begin, from + closed[i] * wide];
    const isOne = (/** @type {number} */ head) =>
      figure.head === head && chosenAttention(figure, layer) === one;
    let left = begin;
    return [...Array(n).keys()].map((head) => {
      const own = isOne(head) ? 1 + (n - 1) * few : 1 - few;
      const step = ((end - begin) / n) * (few ? own : 1);
      const place = left;
      left += step;
      return {
        at: first + (place - first) * open,
        step: (last - first) * (1 - open) + step * open,
      };
    });
  });
}

/** A dot a head, as dark as what it adds to the answer; under the beam those that add much have their numbers. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number[]} box */
function heads(pen, figure, plan, layer, [x, y, wide]) {
  const { letter, look } = pen;
  const gaps = layer.attentions.length - 1;
  const n = countOf(layer);
  const room = plan.turned ? 0.55 * wide : wide - 0.6 * letter;
  const { zoom } = figure;
  const isStop = isFocus(figure, layer) && !plan.turned;
  const step = Math.max(1, Math.min((isStop ? 1.55 : 1.15) * letter, room / (n + gaps)));
  const across = plan.turned ? y + 0.9 * letter : y - 0.8 * letter;
  const isApart = zoom.spread > 0 && isStop;
  const spread = isApart ? sideBySide(figure, layer, x, wide) : null;
  let left = plan.turned
    ? x + wide - step * (n + gaps)
    : x + wide / 2 - (step * (n + gaps - 1)) / 2;
  layer.attentions.forEach((/** @type {any} */ attention, /** @type {number} */ i) => {
    const colour = look.primary;
    for (let head = 0; head < count(attention); head++) {
      const dark = darknessOf(figure, attention, head);
      const chosen =
        isFocus(figure, layer) &&
        figure.head === head &&
        chosenAttention(figure, layer) === attention;
      const own = spread?.[i][head];
      const at = own ? left + (own.at + own.step / 2 - left) * zoom.spread : left;
      const removed = isHeadOut(figure, layer.layer, attention, head);
      const draw = () => {
        const r = Math.min((isStop ? 0.58 : 0.42) * letter, 0.4 * step) * (chosen ? 1.25 : 1);
        pen.circle(at, across, r, { fill: look.paper });
        pen.circle(at, across, r, {
          fill: colour,
          "fill-opacity": (0.06 + 0.94 * dark).toFixed(2),
          stroke: chosen ? look.ink : colour,
          "stroke-width": chosen ? 2 : 1,
          "stroke-opacity": chosen ? 1 : 0.45,
        });
        if (!isApart && r >= NUMBERED * letter && dark >= MUCH)
          pen.text(at, across, `${head}`, {
            size: 0.72,
            bold: true,
            anchor: "middle",
            fill: dark > 0.6 ? look.paper : undefined,
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
        if (isSpread(figure, layer) && spread)
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
  name &&
  say("named", {
    name: name[0],
    score: hundredths(name[1]),
    chance: hundredths(name[2]),
  });

/** A head that a press brings into focus, and another press opens. @param {Pen} pen @param {Flow} figure @param {FlowLayer} layer @param {FlowAttention} attention @param {number} head @param {boolean} chosen @param {() => void} draw */
function headTarget(pen, figure, layer, attention, head, chosen, draw) {
  const share = percent(attention.totals[head]);
  const isOff = attention.removed.includes(head);
  const told = [
    say("head", { layer: layer.layer, head, share }),
    named(attention.names[head]),
    addedBy(figure, attention, head),
    figure.level === 0 && say(isOff ? "is_out" : "is_read"),
  ];
  const name = `flow-head${isFocus(figure, layer) ? " flow-stop" : ""}`;
  const what = {
    label: told.filter(Boolean).join("; "),
    pressed: chosen || isOff,
    name,
    part: `head ${layer.layer}.${attention.attention}.${head}`,
  };
  if (figure.level === 0) {
    const line = `ZeroHead:${layer.layer}:${head}:${attention.name}`;
    const at = { attention: attention.attention, layer: `${layer.layer}`, head: `${head}` };
    return leading(pen, { ...at, edits: toggled(figure, line), flow_beam: END }, what, draw);
  }
  const { levels } = stopOf(figure);
  const opens = (chosen || isSpread(figure, layer)) && figure.level < HEAD && levels[HEAD];
  if (!opens)
    return focusing(pen, layer, head, what.label, draw, {
      attention: attention.attention,
      target: what,
    });
  const at = {
    attention: attention.attention,
    layer: `${layer.layer}`,
    head: `${head}`,
  };
  leading(pen, { ...at, flow_level: levels[HEAD].select.flow_level }, what, draw);
}

/** The attention of a layer that is in focus. @param {Flow} figure @param {FlowLayer} layer */
const chosenAttention = (figure, layer) =>
  layer.attentions.find((/** @type {any} */ one) => one.attention === figure.attention) ||
  layer.attentions[0];

/** What a layer brings and adds. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at */
function column(pen, figure, plan, layer, at) {
  const { letter, look } = pen;
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const wide = to - from;
  const isSpine = wide < SPINE * letter;
  const chosen = chosenRow(figure, layer.band);
  const across = plan.rows[chosen];
  if (!figure.zoom.open && at > figure.current) return; // the light has not been there
  const { ms } = isFocus(figure, layer) ? figure : /** @type {any} */ ({});
  const start = from + (isSpine ? 2 : plan.turned ? 1.6 * letter : 0.8 * letter);
  const n = layer.attentions.length;
  const { spread: apart, few } = isFocus(figure, layer)
    ? figure.zoom
    : { spread: 0, few: figure.zoom.few };
  const spread = apart > 0 ? sideBySide(figure, layer, from, wide) : null;
  layer.attentions.forEach((/** @type {any} */ attention, /** @type {number} */ i) => {
    const ends = (plan.turned ? DOWN : SUMS)[Math.min(n, SUMS.length) - 1];
    const wider = HEADS[Math.min(n, HEADS.length) - 1];
    const sums = ends.map(
      (share, at) => from + (share + (wider[at] + 0.02 - share) * apart) * wide,
    );
    const begin = i ? sums[i - 1] + 0.8 * letter : start;
    const sum = isSpine ? from + 0.75 * wide : sums[i];
    const where = spread?.[i];
    if (where) seen(pen, apart, () => eachHead(pen, figure, plan, layer, attention, where));
    seen(pen, (1 - apart) * (figure.from ? 1 - few : 1), () => {
      if (!isSpine && figure.level) faint(pen, plan, attention, begin, sum);
      curves(pen, figure, plan, layer, attention, [begin, sum, chosen, isSpine ? 1 : Infinity]);
    });
    const [x, y] = point(plan, sum, across);
    const size = Math.sqrt(attention.update) * attention.scale;
    const full = isSpine ? 0.16 + 0.3 * size : 0.55 + 0.75 * size;
    const r =
      letter * Math.min(1.6, isSpine ? full : 0.55 + (full - 0.55) * partOf(ms, ARRIVE, GROW));
    const ring = () => {
      pen.circle(x, y, r, {
        class: "flow-sum",
        fill: look.paper,
        stroke: look.primary,
        "stroke-width": isSpine ? 1.5 : 2,
      });
      if (!isSpine) pen.text(x, y, "+", { anchor: "middle", bold: true, fill: look.primary });
    };
    const opens = figure.stops[at].levels[LAYER]?.select;
    if (isSpine || figure.level || !opens) ring();
    else
      leading(pen, opens, { label: say("sum", { layer: layer.layer }), name: "flow-plus" }, ring);
  });
  const box = plan.turned ? 0.82 : 0.84; // of its width
  const ffn = box + (0.92 - box) * apart;
  if (!isSpine && layer.ffn !== null) square(pen, figure, plan, layer, [from + ffn * wide, across]);
  const isCause = isEnd(figure) && figure.cause[0] === at;
  if (!figure.level && !figure.zoom.open && (isCause || isFocus(figure, layer)))
    tags(pen, figure, plan, layer, [from, wide, ffn]);
  guess(pen, figure, plan, layer, at, isSpine);
  const numbers = { size: 0.85, alpha: 0.8 };
  if (plan.turned && layer.numbers && !isSpine)
    besideRow(pen, figure, plan, layer, at, layer.numbers, numbers);
  else if (!plan.turned && !isSpine) {
    const isWide = pen.width(layer.numbers, numbers) > wide;
    const label = isWide ? layer.numbers.replace(UNIT, "") : layer.numbers;
    const y = plan.foots[layer.band] + (figure.level ? 0.9 : 2.6) * letter;
    pen.text((from + to) / 2, y, label, {
      ...numbers,
      anchor: "middle",
      room: wide,
    });
  }
}

/** The heads of an attention side by side, each with its own curves. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {FlowAttention} attention @param {{ at: number, step: number }[]} where */
function eachHead(pen, figure, plan, layer, attention, where) {
  const { letter, look } = pen;
  const chosen = chosenRow(figure, layer.band);
  const first = plan.rows[plan.firsts[layer.band]] - 0.7 * letter;
  const foot = plan.foots[layer.band];
  where.forEach(({ at: from, step }, head) => {
    if (step < 4) return;
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
        pen.text(x + 0.3 * letter, y + 0.8 * letter, `${head}`, {
          size: 0.8,
          alpha: 0.8,
        });
    };
    headTarget(pen, figure, layer, attention, head, isOn, draw);
  });
}

/** The FFN, a box as large as its update, whose lid opens under the beam. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number[]} place */
function square(pen, figure, plan, layer, [along, across]) {
  const { letter, look } = pen;
  const isStop = isFocus(figure, layer);
  const ms = isStop ? figure.ms : undefined;
  const ffn = layer.ffn ?? 0;
  const isOpen = figure.ffn && isStop;
  const side = (1.1 + 1.1 * ffn) * letter * (isStop ? 1.25 + 0.8 * figure.zoom.ffn : 1);
  const [x, y] = point(plan, along, across);
  const { units, levels } = figure.stops[figure.layers.indexOf(layer)];
  const named = units.map(([name, near]) => `${[name, near].filter(Boolean).join(", ")}.`);
  const sentence = (/** @type {string} */ each) => each[0].toUpperCase() + each.slice(1);
  const label = [say("ffn", { layer: layer.layer }), ...named.map(sentence)].join(" ");
  const name = `flow-ffn${isStop ? " flow-stop" : ""}`;
  const opens = { ...levels[LAYER]?.select, head: "", flow_level: "FFN" };
  leading(pen, opens, { label, name, pressed: isOpen }, () => {
    const style = {
      rx: 3,
      fill: look.paper,
      stroke: look.primary,
      "stroke-width": isOpen ? 4 : 2,
    };
    pen.rect(x - side / 2, y - side / 2, side, side, style);
    pen.text(x, y, "F", { anchor: "middle", size: 0.8, bold: true });
    const turn = (38 * Math.PI * partOf(ms, OPEN, OPEN + 180)) / 180;
    const [a, b] = [x - side / 2, y - side / 2 - 1];
    if (isStop)
      pen.line(
        [
          [a, b],
          [a + side * Math.cos(turn), b - side * Math.sin(turn)],
        ],
        look.primary,
        {
          "stroke-width": 3,
          "stroke-linecap": "round",
        },
      );
  });
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

/** The word that the stream would give after a layer: under the beam on a flap, elsewhere where it is another one. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowLayer} layer @param {number} at @param {boolean} isSpine */
function guess(pen, figure, plan, layer, at, isSpine) {
  const { letter } = pen;
  if (!layer.says) return;
  const [from, to] = [plan.starts[at], plan.ends[at]];
  const across = plan.rows[chosenRow(figure, layer.band)];
  const [word] = layer.says;
  const y = across + BELOW * letter + (figure.level ? 0 : 0.25 * letter);
  const isTold = at === told(figure);
  const [changed] = isEnd(figure) && isTold ? figure.lanes.filter(({ were }) => were >= 0) : [];
  if (plan.turned) {
    if (isTold && !figure.level)
      flap(
        pen,
        figure,
        across + (across > plan.rows[0] + 12 * letter ? -6 : 6) * letter,
        to - 1.5 * letter,
      );
    else if (isTold) besideRow(pen, figure, plan, layer, at, `“${word}”`, { bold: true }, true);
    if (changed) changes(pen, figure, plan, y);
    return;
  }
  const clear = (/** @type {number} */ column) => clearOfCurves(pen, figure, plan, column);
  if (isTold) {
    flap(pen, figure, figure.level ? from + 0.84 * (to - from) : clear(at), y);
    if (changed) changes(pen, figure, plan, y);
    return;
  }
  const before = figure.layers[at - 1]?.says?.[0];
  if (word === before && isSpine) return;
  const style = {
    bold: true,
    size: 0.85,
    anchor: /** @type {const} */ ("middle"),
    alpha: 0.85,
    room: pen.isPaper ? undefined : isSpine ? 4 * letter : to - from,
  };
  const x = isSpine ? (from + to) / 2 : from + 0.81 * (to - from);
  const box = pen.box(x, y, ` ${word} `, style);
  const wide = (box[2] - box[0]) / 2;
  const isClear =
    box[0] >= plan.edge[0] &&
    Math.abs(clear(told(figure)) - x) > wide + 0.5 * flapWide(pen, figure);
  if (isClear && pen.isFree(box)) pen.text(x, y, word, style);
  else if (word !== before) unsaid(pen, "guesses");
}

/** What a paper, where nobody opens a layer, says once that it leaves out. @param {Pen} pen @param {"guesses" | "curves"} what */
function unsaid(pen, what) {
  if (pen.isPaper && !pen.omitted.some((each) => each.what === what))
    pen.omitted.push({ what, shown: 0, all: 1 });
}

/** Under the layers that matter the place of the answer without and with what is out. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {number} y */
function changes(pen, figure, plan, y) {
  const { layers, matters } = figure;
  const lane = answerOf(figure);
  const offset = layers.length - lane.places.length + 1;
  const foot = plan.foots[plan.foots.length - 1] + 0.9 * pen.letter; // no line of a row goes there
  const below = Math.max(y + 2 * pen.letter, foot);
  const style = { bold: true, size: 0.82, plate: true };
  /** @type {import("./draw.js").TextStyle} */
  const name = { size: 0.85, alpha: 0.75, anchor: "end", plate: true };
  const [x, label] = [plan.edge[0] - 0.6 * pen.letter, `“${lane.label}”`];
  const isNamed = !plan.turned && pen.isFree(pen.box(x, below, label, name));
  if (isNamed) pen.text(x, below, label, name);
  // The last layer, which decides, has its text before those that would cover it.
  for (const at of [...matters].reverse()) {
    const [before, after] = [lane.was_places[at - offset + 1], lane.places[at - offset + 1]];
    if (before === undefined) continue;
    const places = before === after ? [after] : [before, after];
    const text = `${isNamed ? "" : `${label} `}${places.map(ordinal).join(" → ")}`;
    const x = (plan.starts[at] + plan.ends[at]) / 2;
    if (plan.turned) besideRow(pen, figure, plan, layers[at], at, text, style);
    else if (pen.isFree(pen.box(x, below, ` ${text} `, { ...style, anchor: "middle" })))
      pen.text(x, below, text, { ...style, anchor: "middle" });
  }
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
  const { ms } = isFocus(figure, layer) ? figure : /** @type {any} */ ({});
  const size = head < 0 ? attention.scale : 1;
  const lit = most === Infinity && attention === layer.attentions[0] ? toldRow(figure, layer) : -1;
  const into = (/** @type {number[]} */ widths, /** @type {boolean} */ isGhost) => {
    const drawn = [...widths.keys()].filter(
      (row) => row !== chosen && Math.abs(widths[row]) >= FAINT,
    );
    const of = Number.isFinite(most) ? drawn.filter((row) => !isSpecial(row)) : drawn;
    of.sort((a, b) => Math.abs(widths[b]) - Math.abs(widths[a]));
    for (const row of of.slice(0, most).reverse()) {
      const share = widths[row];
      const pale = isGhost || isSpecial(row);
      const dots = share < 0 ? `0.1 ${0.5 * letter}` : undefined; // of one that opposes
      const [full, most_] = [Number.isFinite(most) ? 0.35 : 1, isSpecial(row) ? SINK : Infinity];
      const thick = Math.min(most_ * letter, THICKEST * letter * Math.abs(share) * full * size);
      const room = isGhost ? GHOST * letter : one === undefined ? Infinity : 0.5 * letter;
      const told = lit < 0 || row === lit ? 1 : BESIDE;
      const came = told * (ms === undefined ? 1 : 0.5 + 0.5 * partOf(ms, WIDEN, GROW));
      const ends = [
        [begin, plan.rows[row]],
        [sum, plan.rows[chosen]],
      ];
      if (row === lit && !isGhost)
        curve(pen, plan, ends[0], ends[1], LIGHT, {
          class: "flow-lit",
          "stroke-width": (thick + GLOW * letter).toFixed(1),
          "stroke-opacity": (0.5 * partOf(ms, ARRIVE, GROW)).toFixed(2),
          "stroke-linecap": "round",
        });
      curve(pen, plan, ends[0], ends[1], pale ? look.ink : (hueOf(pen, figure, row) ?? look.ink), {
        class: isGhost ? "flow-ghost" : "flow-curve",
        "stroke-width": Math.max(dots ? 2 : 1, Math.min(room, thick)).toFixed(1),
        "stroke-opacity": isGhost
          ? 0.4
          : (came * (pale ? PALE : hueOf(pen, figure, row) ? 0.85 : 0.5)).toFixed(2),
        "stroke-linecap": isGhost ? "butt" : "round",
        "stroke-dasharray": isGhost ? `${0.4 * letter} ${0.3 * letter}` : dots,
        "data-at": isGhost ? undefined : row,
      });
    }
  };
  const all = (/** @type {number} */ at) =>
    labels.map((/** @type {string} */ _, /** @type {number} */ row) =>
      at < 0 ? broughtOf(figure, layer, attention, row) : widthOf(attention, at, row),
    );
  const ghosts = attention.removed.filter(
    (/** @type {number} */ each) => alone < 0 || each === alone,
  );
  for (const each of most === Infinity && figure.level ? ghosts : []) into(all(each), true);
  if (most === Infinity && head < 0 && attention.was.length)
    outlines(pen, figure, plan, attention, [begin, sum, chosen]);
  if (!attention.removed.includes(head)) into(all(head), false);
}

/** The outline of what a curve has lost by an edit. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {FlowAttention} attention @param {number[]} place */
function outlines(pen, figure, plan, attention, [begin, sum, chosen]) {
  const { letter, look } = pen;
  labelsOf(figure).forEach((/** @type {string} */ label, /** @type {number} */ row) => {
    const lost = attention.was[row] - Math.max(0, widthOf(attention, -1, row)) * attention.scale;
    if (row === chosen || lost < 2 * FAINT || pen.special.has(label)) return;
    const half = (THICKEST * letter * attention.was[row]) / 2;
    for (const side of [-half, half])
      curve(
        pen,
        plan,
        [begin, plan.rows[row] + side],
        [sum + side / 2, plan.rows[chosen]],
        hueOf(pen, figure, row) ?? look.ink,
        {
          class: "flow-ghost",
          "stroke-width": 1.2,
          "stroke-dasharray": "4 3",
          "stroke-opacity": 0.8,
        },
      );
  });
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

/** The words that race, and the way to them. Returns the foot. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {Box} box */
function output(pen, figure, plan, box) {
  const { letter, look } = pen;
  const [, to] = plan.edge;
  if (!figure.lanes.length || isAsked(figure)) return plan.foot;
  if (plan.turned)
    return lanes(pen, figure, [box.x + letter, to + 1.6 * letter, box.width - 2.5 * letter]);
  const y = plan.rows[chosenRow(figure, figure.bands.length - 1)];
  const high = (2.8 + 5 * 2.75) * letter; // of as many lanes as there mostly are: nothing moves
  const top = Math.max(box.y + letter, Math.min(plan.rows[0] - 0.4 * letter, plan.foot - high));
  const left = to + 3.6 * letter;
  const goal = top + LEADS * letter; // of the word that leads
  const isLit = isEnd(figure);
  pen.link([to, y], [left - 0.3 * letter, goal], look.ink, {
    class: "flow-exit",
    "stroke-width": isLit ? 0.33 * letter : 1.5,
    "stroke-opacity": isLit ? 1 : 0.3,
  });
  return lanes(pen, figure, [left, top, box.x + box.width - left - 0.6 * letter]);
}

const UNIT = / \p{L}+$/u; // a word behind a number
