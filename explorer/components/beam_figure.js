// @ts-check
// What the beam shows of the whole machine: the line that it is dragged along, the words that race in
// lanes, the guess after a layer, and how far a layer that is told slowly has come.

import { counted, ordinal } from "./number_format.js";
import { LAYER, leading } from "./flow_zoom.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./flow_figure.js").Flow} Flow */
/** @typedef {import("./flow_figure.js").Plan} Plan */

/** True for the picture of the whole machine. */
export const isFlow = (/** @type {any} */ each) => each.kind === "flow";

const say = sentences("flow");
export const [WIDEN, ARRIVE, GROW, OPEN, SLIDE, FLIP, LASTS] = [
  300, 1000, 1200, 1400, 1600, 1900, 2400,
]; // milliseconds of a layer that is told slowly: it has widened, parcels arrived, ...
const GLIDE = 300; // milliseconds that a lane slides
const MORPH = 400; // that bars slide in the end, and that one axis becomes the other
export const ZOOM = 400; // that a level takes to open, or to close
const SORT = 300; // that lanes change their order, after that
export const DARKEN = 200; // that a line takes to become dark
export const LIGHT = "#f5a93a"; // of the beam
const TRACK = 4.1; // letters from the first row up to the line of the beam
const TURN = 120; // that a half of the guess turns
const NIGHT = { ground: "#1c150e", ink: "#ffdf9b" }; // of the flap in both themes

export const END = "end"; // as a word of an address
/** The number of a figure's columns. @param {Flow} figure */
export const count = ({ layers }) => layers.length;
/** Whether the beam stands before the first layer, where nothing is told. @param {Flow} figure */
export const isAsked = ({ current, level }) => level === 0 && current < 0;
export const DARK = { ink: "#f2ede4", paper: "#12151d", primary: "#fbb74b" }; // where the light is off

/** A figure with its look: a flow before the light is on stands in the dark, without its note. @param {any} figure @param {import("./theme.js").Look} look @returns {[any, import("./theme.js").Look]} */
export function inTheDark(figure, look) {
  const isDark = figure.kind === "flow" && isAsked(figure);
  return isDark
    ? [
        { ...figure, note: "" },
        { ...look, ...DARK },
      ]
    : [figure, look];
}

/** What a stop says, with what is said of the answer's head. @param {any} stop */
const saidAt = ({ finding, part }) => [finding, part].filter(Boolean).join(" ");

/** A panel as a file shows it: a question belongs to the page, so that the beam stands at its end. @param {any} header @param {any[]} figures */
export function answered(header, figures) {
  const asked = figures.find((one) => one.kind === "flow" && isAsked(one));
  if (!asked) return { header, figures };
  const end = { ...asked, current: count(asked) };
  return {
    header: { ...header, finding: saidAt(end.stops[end.current]) },
    figures: figures.map((one) => (one === asked ? end : one)),
  };
}

/** Whether the beam has come to the end. @param {Flow} figure */
export const isEnd = (figure) => figure.level === 0 && figure.current >= count(figure);

/** The columns that are wide. @param {Flow} figure @returns {number[]} */
export function wideOf(figure) {
  const { level, current, layers, layer, band, matters } = figure;
  if (level)
    return [layers.findIndex((/** @type {any} */ one) => one.layer === layer && one.band === band)];
  if (isEnd(figure)) return matters;
  return current < 0 ? [] : [current];
}

/** The column that is told: that under the beam, the last in the end, or the one that is opened. @param {Flow} figure */
export const told = (figure) =>
  figure.level ? wideOf(figure)[0] : Math.min(figure.current, count(figure) - 1);

/** The stop of a figure, undefined for the question. @param {Flow} figure */
export const stopOf = (figure) => figure.stops[figure.level ? told(figure) : figure.current];

/** How far something is between two moments of a layer that is told. @param {number | undefined} ms @param {number} from @param {number} to */
export function share(ms, from, to) {
  if (ms === undefined) return 1;
  const part = Math.max(0, Math.min(1, (ms - from) / (to - from)));
  return part * part * (3 - 2 * part);
}

/** The figure that a figure is on its way from, undefined where it is on none. @param {Flow} figure @returns {Flow | undefined} */
const comesFrom = (figure) =>
  figure.from?.ms === undefined
    ? undefined
    : { ...figure, ...figure.from, ms: undefined, from: undefined };

export const TRAVEL = 500; // milliseconds of a parcel's way
export const PULSE = WIDEN + 2 * TRAVEL; // of what comes of a part that is taken out, before bars slide

/** Whether a figure shows what comes of a part that another one does not take out, or the other way round. @param {any} from @param {any} to */
export const isPulse = (from, to) =>
  to?.kind === "flow" && from?.edits !== undefined && from.edits !== to.edits && isEnd(to);

/** The milliseconds before bars slide from one figure to another. @param {Flow} from @param {Flow} to */
const waits = (from, to) => (isPulse(from, to) ? PULSE : 0);

/** The milliseconds that bars slide from one figure to another. @param {Flow} from @param {Flow} to */
const slides = (from, to) => (isEnd(from) || isEnd(to) ? MORPH : GLIDE);

/** How far bars have slid from one figure to another, on the way. @param {Flow} was @param {Flow} figure */
const slidFrom = (was, figure) =>
  share(figure.from.ms, waits(was, figure), waits(was, figure) + slides(was, figure));

/** The milliseconds that columns take to their places. @param {Flow} from @param {Flow} to */
export const widens = (from, to) => (from.level === to.level ? WIDEN : ZOOM);

/** The milliseconds that the way from one figure to another takes: bars slide, then lanes change their order. @param {Flow} from @param {Flow} to */
export function lasts(from, to) {
  const order = (/** @type {Flow} */ one) =>
    onShow(one)
      .map(({ label }) => label)
      .join("\n");
  const race = waits(from, to) + slides(from, to) + (order(from) === order(to) ? 0 : SORT);
  return Math.max(widens(from, to), race);
}

/** The places of a lane: before the column, where it is now, and after which moments. @param {Flow} figure @param {any} lane */
export function placesOf(figure, lane) {
  const { layers, slow, ms } = figure;
  const first = layers.length - lane.places.length + 1; // the first column of the last band
  const at = told(figure) - first;
  const before = lane.places[Math.max(0, at)];
  const after = lane.places[Math.max(0, at + 1)];
  const middle = lane.middles[slow.indexOf(at + first)] ?? after;
  if (ms === undefined) return { from: before, to: after, now: Math.log(after) };
  const mix = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ s) =>
    Math.log(a) + (Math.log(b) - Math.log(a)) * s;
  if (ms < SLIDE) {
    const part = share(ms, ARRIVE, ARRIVE + GLIDE);
    return {
      from: before,
      to: part ? middle : before,
      now: mix(before, middle, part),
    };
  }
  const part = share(ms, SLIDE, SLIDE + GLIDE);
  return { from: before, to: after, now: mix(middle, after, part) };
}

const MOST = 6; // lanes at once
const [AXIS, LANE] = [2.3, 2.75]; // letters of what stands above the lanes, and of each

/** How far below the top of the lanes the bar of the first one stands, in letters. */
export const LEADS = AXIS + 0.55 * LANE + 0.775;

/** The words that have a lane where the beam stands, in their order: in the end by their chances, before it by their places, and with the word that leads there. @param {Flow} figure @returns {any[]} */
export function onShow(figure) {
  const { lanes: all, leaders, layers, ms } = figure;
  if (isEnd(figure) || !all.length) return all;
  const at = told(figure);
  const led = [layers[at]?.says?.[0], ms !== undefined && ms < FLIP && layers[at - 1]?.says?.[0]];
  const leads = (/** @type {any} */ lane) => led.includes(lane.label);
  const isNew = (/** @type {any} */ lane) => !all.some((each) => each.label === lane.label);
  const words = [...all, ...leaders.filter((lane) => leads(lane) && isNew(lane))];
  const place = (/** @type {any} */ lane) => placesOf({ ...figure, ms: undefined }, lane).to;
  const least = words
    .filter((/** @type {any} */ lane) => lane !== all[0] && !leads(lane) && !lane.guess)
    .sort((a, b) => place(b) - place(a))
    .slice(0, Math.max(0, words.length - MOST));
  return byPlace(
    words.filter((lane) => !least.includes(lane)),
    place,
  );
}

/** The word that is followed: the likeliest of the run without edits. @param {Flow} figure @returns {any} */
export function answerOf({ lanes }) {
  const chance = (/** @type {any} */ one) => (one.were >= 0 ? one.were : one.chance);
  return lanes.reduce((/** @type {any} */ best, each) =>
    chance(each) > chance(best) ? each : best,
  );
}

/** @param {any[]} all @param {(lane: any) => number} place */
const byPlace = (all, place) => [...all].sort((a, b) => place(a) - place(b));

/** The rows of the words on show before and after they exchange, how far they have come, and which of them come. @typedef {{ before: number[], after: number[], part: number, fresh?: boolean[] }} Exchange */

/** How the words on show exchange their rows: on the way from a figure, or while a layer is told slowly, as their places pass each other. @param {Flow} figure @param {any[]} all @param {Flow | undefined} was @returns {Exchange} */
function exchange(figure, all, was) {
  const { ms } = figure;
  const own = all.map((_, at) => at);
  if (was) {
    const part = share(
      figure.from.ms,
      waits(was, figure) + slides(was, figure),
      lasts(was, figure),
    );
    const there = onShow(was).map(({ label }) => label);
    const before = all.map(({ label }) => there.indexOf(label));
    const fresh = before.map((row) => row < 0); // one that comes appears in its row
    return { before: before.map((row, at) => (row < 0 ? at : row)), after: own, part, fresh };
  }
  if (ms === undefined || isEnd(figure)) return { before: own, after: own, part: 1 };
  const rows = [0, SLIDE - 1, LASTS].map((moment) =>
    byPlace(all, (lane) => placesOf({ ...figure, ms: moment }, lane).to),
  );
  const [from, to, start] = ms < SLIDE ? [0, 1, ARRIVE] : [1, 2, SLIDE];
  const [before, after] = [from, to].map((at) => all.map((lane) => rows[at].indexOf(lane)));
  return { before, after, part: share(ms, start, start + GLIDE) };
}

const DUCK = 0.2; // of an exchange, in which a lane that another one passes fades, and comes back

/** How clearly a lane is seen: not while another one passes it, so that no name covers another; one that comes appears. @param {Exchange} exchange @param {number} i */
function clearly({ before, after, part, fresh }, i) {
  if (fresh?.[i]) return part;
  const isPassed = before.some((row, other) => row > before[i] && after[other] < after[i]);
  return isPassed ? Math.max(0, 1 - part / DUCK, (part - 1 + DUCK) / DUCK) : 1;
}

/** The colour of a word that stands outside of the text: that of a word of the text of the same spelling, or none. @param {import("./theme.js").Look} look @param {any} figure @param {string} word @returns {string} */
export function colourOf(look, figure, word) {
  const labels = figure.bands[0].rows;
  const row = labels.findIndex(
    (/** @type {string} */ each, /** @type {number} */ at) =>
      each === word && figure.hues?.[at] !== undefined,
  );
  return row < 0 ? "" : look.categorical[figure.hues?.[row] ?? 0];
}

/** The words that race, by their places in the vocabulary until the end and by their chances there. Returns the foot. @param {Pen} pen @param {Flow} figure @param {number[]} box left, top, width */
export function lanes(pen, figure, [left, top, wide]) {
  const { letter, look } = pen;
  const { n_words } = figure;
  const all = onShow(figure);
  if (!all.length || isAsked(figure)) return top;
  const end = isEnd(figure);
  const was = comesFrom(figure);
  if (was && figure.from.ms < waits(was, figure))
    return lanes(pen, { ...was, words: [] }, [left, top, wide]);
  const slid = was ? slidFrom(was, figure) : 1;
  const right = left + wide;
  const title = axisOf(figure);
  const small = { size: 0.8, alpha: 0.85 };
  /** @type {string[]} */
  let also = [];
  const inside = pen.apart(() => {
    pen.text(left, top, title, { bold: true, size: 0.9, room: wide });
    const x = (/** @type {number} */ log) => left + reach(figure, log, wide);
    const y = top + 1.5 * letter;
    const low = top + AXIS * letter;
    const foot = low + all.length * LANE * letter;
    const tick = (
      /** @type {number} */ at,
      /** @type {string} */ text,
      /** @type {any} */ anchor,
      come = 1,
    ) => {
      pen.text(at, y, text, { ...small, anchor, alpha: 0.85 * come });
      pen.line(
        [
          [at, low],
          [at, foot],
        ],
        look.ink,
        { "stroke-opacity": 0.14 * come },
      );
    };
    const axis = (/** @type {boolean} */ isOfChance, /** @type {number} */ come) => {
      if (isOfChance) {
        tick(left, "0", "start", come);
        tick(left + wide / 2, "50%", "middle", come);
        tick(right, "100%", "end", come);
      } else
        for (let place = 1; place < n_words / 2; place *= 10)
          if (place === 1 || x(Math.log(place)) > left + 3 * letter)
            tick(x(Math.log(place)), ordinal(place), place === 1 ? "end" : "middle", come);
    };
    const morphs = was !== undefined && isEnd(was) !== end && slid < 1;
    if (morphs) axis(!end, 1 - slid);
    axis(end, morphs ? slid : 1);
    const first = answerOf(figure);
    const moves = exchange(figure, all, was);
    const { before, after, part } = moves;
    all.forEach((/** @type {any} */ lane, /** @type {number} */ i) => {
      const at = before[i] + (after[i] - before[i]) * part;
      const y = low + (at + 0.55) * LANE * letter;
      const isAnswer = end && lane === first; // till then nothing tells it
      const inside = pen.apart(() => {
        if (at % 1) over(pen, [left, y, wide]);
        row(pen, figure, lane, [left, y, wide], isAnswer);
        const place = figure.lanes.indexOf(lane);
        if (!end || !(figure.framed || []).some(([one]) => one === place)) return;
        const own = pen.width(onItsWay(figure, lane, wide).text, { bold: true, size: 0.92 });
        const high = 1.3 * letter;
        pen.frame([
          right - own - 0.3 * letter,
          y - 0.45 * letter - high / 2,
          own + 0.6 * letter,
          high,
        ]);
      });
      const opacity = clearly(moves, i);
      pen.put("g", { class: "flow-lane", ...(opacity < 1 ? { opacity } : {}) }, inside);
    });
    const spelled = (/** @type {any} */ one) => one.label.replace("‧", "").toLowerCase();
    const there = new Set(all.map(spelled));
    const others = end
      ? figure.words.filter((word) => !there.has(spelled(word).split("…")[0]))
      : [];
    if (others.length) {
      const words = others.map((/** @type {any} */ one) => `“${one.label}” ${one.text}`).join(", ");
      also = pen.lines(say("also", { words }), wide, small);
    }
    also.forEach((line, at) => pen.text(left, foot + (0.8 + 1.25 * at) * letter, line, small));
  });
  pen.put("g", { class: "flow-output" }, inside);
  const below = Math.max(0, also.length - 1) * 1.25; // the first line has its room
  return top + ((end ? 4.6 : 3.2) + below + all.length * LANE) * letter;
}

/** The ground of a lane that crosses another one, which is not seen under it. @param {Pen} pen @param {number[]} place left, middle, width */
const over = (pen, [left, y, wide]) =>
  pen.rect(left - 2, y - 1.15 * pen.letter, wide + 4, 2.5 * pen.letter, {
    fill: pen.look.paper,
    "fill-opacity": 0.9,
  });

/** Whether a lane is that of the reader's guess. @param {any} figure @param {any} lane */
export const isYours = ({ yours }, lane) =>
  Boolean(yours) &&
  (lane.guess === yours || (lane.label + lane.rest).toLowerCase() === yours.toLowerCase());

/** A lane. @param {Pen} pen @param {Flow} figure @param {any} lane @param {number[]} place left, middle, width @param {boolean} isAnswer */
function row(pen, figure, lane, [left, y, wide], isAnswer) {
  const { letter, look } = pen;
  const own = colourOf(look, figure, lane.label) || (isAnswer ? look.ink : "");
  const fill = own || look.ink;
  const bar = [y + 0.35 * letter, 0.85 * letter];
  const style = { bold: Boolean(own), fill: own || undefined, size: 1.05 };
  const { text, length, knob, mark, ghost } = onItsWay(figure, lane, wide);
  const numbers = {
    bold: Boolean(own),
    size: 0.92,
    anchor: /** @type {const} */ ("end"),
  };
  const room = wide - pen.width(text, numbers) - letter;
  const begin = y - 0.45 * letter;
  pen.text(left, begin, lane.label, { ...style, room });
  let after = left + pen.width(lane.label, style);
  if (lane.rest && after + pen.width(lane.rest, style) < left + room) {
    pen.text(after, begin, lane.rest, {
      ...style,
      fill: undefined,
      alpha: 0.55,
    });
    after += pen.width(lane.rest, style);
  }
  if (isYours(figure, lane) && after + 4 * letter < left + room) {
    const label = { size: 0.75, bold: true };
    pen.rect(
      after + 0.5 * letter,
      begin - 0.65 * letter,
      pen.width(say("yours"), label) + letter,
      1.3 * letter,
      {
        rx: 9,
        fill: "none",
        stroke: look.ink,
      },
    );
    pen.text(after + letter, begin, say("yours"), label);
  }
  pen.text(left + wide, begin, text, numbers);
  pen.rect(left, bar[0], wide, bar[1], {
    rx: 3,
    fill: look.ink,
    "fill-opacity": 0.07,
  });
  if (ghost)
    pen.rect(left, bar[0], ghost, bar[1], {
      rx: 3,
      fill,
      "fill-opacity": 0.18,
      stroke: fill,
      "stroke-dasharray": "4 3",
    });
  pen.rect(left, bar[0], Math.max(2, length), bar[1], {
    class: "flow-length",
    rx: 3,
    fill,
    "fill-opacity": own ? 1 : 0.38,
  });
  if (mark !== undefined) pen.rect(left + mark - 1, bar[0], 2, bar[1], { fill: look.paper });
  if (knob)
    pen.circle(left + length, bar[0] + bar[1] / 2, 0.62 * letter, {
      fill: own || look.ink,
      stroke: look.paper,
      "stroke-width": 2,
      "fill-opacity": knob,
      "stroke-opacity": knob,
    });
}

/** How a lane stands: its number, the length of its bar, how clearly its end is seen, a mark where it was, and the length of what stood there. @typedef {{ text: string, length: number, knob: number, mark: number | undefined, ghost: number }} Standing */

/** @param {Flow} figure @param {any} lane @param {number} wide @returns {Standing} */
const standing = (figure, lane, wide) =>
  isEnd(figure) ? chanceOf(lane, wide) : raceOf(figure, lane, wide);

/** How a lane stands on the way from a figure: its bar slides, and its number is the later one where it is reached. @param {Flow} figure @param {any} lane @param {number} wide @returns {Standing} */
function onItsWay(figure, lane, wide) {
  const to = standing(figure, lane, wide);
  const was = comesFrom(figure);
  const part = was ? slidFrom(was, figure) : 1;
  if (!was || part >= 1) return to;
  const there = onShow(was).find(({ label }) => label === lane.label);
  const start = there
    ? standing(was, there, wide)
    : { ...to, knob: 0, length: isEnd(was) ? Math.max(0, lane.were) * wide : 0 };
  const mixed = (/** @type {number} */ a, /** @type {number} */ b) => a + (b - a) * part;
  return {
    ...to,
    text: isEnd(was) === isEnd(figure) ? start.text : to.text,
    length: mixed(start.length, to.length),
    knob: mixed(start.knob, to.knob),
  };
}

/** How far a place in the vocabulary, as its logarithm, reaches. @param {Flow} figure @param {number} log @param {number} wide */
const reach = ({ n_words }, log, wide) => wide - (log / Math.log(n_words)) * wide;

/** @param {any} lane @param {number} wide @returns {Standing} */
function chanceOf({ chance, text, were, was_text }, wide) {
  const changed = were >= 0 && text !== was_text;
  return {
    text: changed ? `${was_text} → ${text}` : text,
    length: chance * wide,
    knob: 0,
    mark: changed && were < chance ? were * wide : undefined,
    ghost: changed && were > chance ? were * wide : 0,
  };
}

/** @param {Flow} figure @param {any} lane @param {number} wide @returns {Standing} */
function raceOf(figure, lane, wide) {
  const { from, to, now } = placesOf(figure, lane);
  const start = Math.log(from);
  return {
    text: from === to ? ordinal(to) : `${ordinal(from)} → ${ordinal(to)}`,
    length: reach(figure, now, wide),
    knob: 1,
    mark: from > to && now < start - 0.05 ? reach(figure, start, wide) : undefined,
    ghost: 0,
  };
}

/** The line that the beam is dragged along, above the columns, with the layers that matter. @param {Pen} pen @param {Flow} figure @param {Plan} plan */
export function track(pen, figure, plan) {
  const { letter, look } = pen;
  const { layers, matters, current } = figure;
  const n = layers.length;
  if (plan.turned || isAsked(figure) || figure.level) return;
  const y = plan.rows[0] - TRACK * letter;
  const middle = (/** @type {number} */ at) => (plan.starts[at] + plan.ends[at]) / 2;
  const [from, to] = plan.edge;
  const beam = isEnd(figure) ? to : plan.ends[current];
  const isDragged = pen.screen || pen.least > 0 || !isEnd(figure); // at its end a file has no beam
  pen.line(
    [
      [from, y],
      [to, y],
    ],
    look.ink,
    { "stroke-width": 1.5, "stroke-opacity": 0.25 },
  );
  pen.line(
    [
      [from, y],
      [beam, y],
    ],
    look.primary,
    { "stroke-width": 2.5 },
  );
  const name = isEnd(figure) ? say("end") : say("layer", { layer: layers[current].layer });
  const wide = pen.width(name, { bold: true, size: 0.95 }) + 3.6 * letter;
  const at = isEnd(figure) ? to : middle(current);
  const right = figure.lanes.length ? Infinity : to + letter; // where nothing comes out
  const x = Math.max(from, Math.min(at - wide / 2, right - wide));
  const free = (/** @type {number} */ a, /** @type {number} */ b) =>
    !isDragged || b < x - 4 || a > x + wide + 4;
  const opening = (
    /** @type {number} */ at,
    /** @type {any} */ what,
    /** @type {() => void} */ draw,
  ) => leading(pen, figure.stops[at]?.levels[LAYER]?.select ?? {}, what, draw);
  const above = (isEnd(figure) && isDragged ? 1.75 : 1.3) * letter; // the last name stands over the end, not under it
  layers.forEach((/** @type {any} */ layer, /** @type {number} */ each) => {
    const isTold = matters.includes(each);
    const size = {
      bold: isTold,
      size: 0.8,
      anchor: /** @type {const} */ ("middle"),
      alpha: isTold ? 1 : 0.75,
      fill: isTold ? look.primary : undefined,
    };
    const label =
      (isEnd(figure) && isTold) || n <= 8 ? say("layer", { layer: layer.layer }) : `${layer.layer}`;
    const m = middle(each);
    const half = pen.width(label, size) / 2;
    if (isTold && free(m, m))
      pen.path(`M${m} ${y - 5}l5 5l-5 5l-5 -5z`, "none", {
        fill: look.primary,
      });
    const near = matters.some(
      (/** @type {number} */ other) => other !== each && Math.abs(middle(other) - m) < 1.8 * letter,
    );
    if (
      (isTold || n <= 8 || (layer.layer % 5 === 0 && !near)) &&
      (isEnd(figure) || free(m - half, m + half)) &&
      pen.isFree(pen.box(m, y - above, ` ${label} `, size))
    )
      opening(
        each,
        { label: say("open", { layer: layer.layer }), name: "flow-name flow-stop" },
        () => pen.text(m, y - above, label, size),
      );
  });
  if (!isDragged) return;
  opening(isEnd(figure) ? -1 : current, { label: name, name: "beam-pill", double: true }, () => {
    pen.rect(x, y - 1.1 * letter, wide, 2.2 * letter, {
      rx: 1.1 * letter,
      fill: "#1a1f2e",
      stroke: look.primary,
      "stroke-width": 1.5,
    });
    pen.circle(x + 1.1 * letter, y, 0.42 * letter, {
      fill: "#fff4dc",
      stroke: "#f5a623",
      "stroke-width": 2,
    });
    pen.path(
      `M${x + 1.5 * letter} ${y - 0.15 * letter}l${0.7 * letter} ${-0.3 * letter}v${0.9 * letter}l${-0.7 * letter} ${-0.3 * letter}z`,
      "none",
      { fill: "#f5a623" },
    );
    pen.text(x + 2.6 * letter, y, name, {
      bold: true,
      size: 0.95,
      fill: "#ffffff",
    });
  });
  if (!isEnd(figure))
    pen.line(
      [
        [beam, y],
        [beam, plan.foots[plan.foots.length - 1]],
      ],
      look.primary,
      { "stroke-width": 1.5 },
    );
}

/** The light on a column: under the beam it falls from the handle, and gets brighter towards its edge. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {number[]} box @param {boolean} inFocus */
export function shine(pen, figure, { turned, rows }, [x, y, wide, high], inFocus) {
  const rx = wide < 5 * pen.letter ? 3 : 8;
  if (!inFocus) return pen.rect(x, y, wide, high, { rx, fill: LIGHT, "fill-opacity": 0.14 });
  const id = turned ? "beam-down" : "beam";
  const stop = (/** @type {number} */ offset, /** @type {number} */ opacity) =>
    `<stop offset="${offset}" stop-color="${LIGHT}" stop-opacity="${opacity}"/>`;
  const to = turned ? 'x1="0" y1="0" x2="0" y2="1"' : 'x1="0" y1="0" x2="1" y2="0"';
  const stops = stop(0, 0.06) + stop(1, 0.42);
  pen.put("defs", {}, `<linearGradient id="${id}" ${to}>${stops}</linearGradient>`);
  pen.rect(x, y, wide, high, { rx, fill: `url(#${id})` });
  if (turned || isAsked(figure)) return undefined;
  const [middle, lamp] = [x + wide / 2, rows[0] - TRACK * pen.letter];
  const half = Math.min(wide / 2, 2 * pen.letter);
  const cone = `M${middle - half} ${lamp}L${middle + half} ${lamp}L${x + wide} ${y}L${x} ${y}z`;
  return pen.path(cone, "none", { fill: `url(#${id})` });
}

/** The guess after the column that is told, as a flap; it turns in two halves. @param {Pen} pen @param {Flow} figure @param {number} x @param {number} y */
export function flap(pen, figure, x, y) {
  const { letter } = pen;
  const { layers } = figure;
  const at = told(figure);
  const was = comesFrom(figure);
  const turns = was && isPulse(was, figure); // what is taken out has come to the end of the line
  const ms = turns ? figure.from.ms : figure.ms;
  const now = layers[at].says?.[0] ?? "";
  const before = layers[at - 1]?.says?.[0] ?? "?";
  const middle = figure.stops[at]?.middle || before; // what the heads make of it, the FFN turns
  const isFirst = !turns && ms !== undefined && ms < OPEN && middle !== before;
  const [from, to, begins] = turns
    ? [was.layers[at]?.says?.[0] ?? now, now, WIDEN + TRAVEL]
    : isFirst
      ? [before, middle, GROW]
      : [middle, now, FLIP];
  const turned = ms === undefined ? 1 : Math.max(0, Math.min(2, (ms - begins) / TURN)) / 2;
  const word = turned < 0.5 ? from : to;
  const style = {
    bold: true,
    size: 1.15,
    fill: NIGHT.ink,
    anchor: /** @type {const} */ ("middle"),
    room: 11 * letter,
  };
  const wide = flapWide(pen, figure);
  const high = 2.3 * letter;
  pen.rect(x - wide / 2, y - high / 2, wide, high, {
    rx: 4,
    fill: NIGHT.ground,
    stroke: pen.look.primary,
  });
  const squeeze = to === from ? 1 : Math.max(0.05, Math.abs(1 - 2 * turned));
  const inside = pen.apart(() => pen.text(x, y, word, style));
  pen.put(
    "g",
    squeeze < 1 ? { transform: `translate(0 ${y * (1 - squeeze)}) scale(1 ${squeeze})` } : {},
    inside,
  );
}

/** How wide the flap is that a guess stands on. @param {Pen} pen @param {Flow} figure */
export function flapWide(pen, figure) {
  const at = told(figure);
  const says = [at, at - 1].map((each) => figure.layers[each]?.says?.[0] ?? "");
  const words = [...says, figure.stops[at]?.middle ?? ""];
  const wide = words.map((word) =>
    pen.width(word, { bold: true, size: 1.15, room: 11 * pen.letter }),
  );
  if (pen.isPaper) return wide[0] + pen.letter; // where it never turns
  return Math.max(5 * pen.letter, Math.max(...wide) + 1.6 * pen.letter);
}

/** Where a flap stands under a column: at its right end, since curves from rows below end before it. @param {Pen} pen @param {Flow} figure @param {Plan} plan @param {number} at */
export const clearOfCurves = (pen, figure, plan, at) =>
  Math.max(
    (plan.starts[at] + plan.ends[at]) / 2,
    plan.ends[at] - 0.5 * flapWide(pen, figure) - 0.4 * pen.letter,
  );

/** How wide a tag is. @param {Pen} pen @param {string} bold @param {string} pale */
export const tagWide = (pen, bold, pale) =>
  Math.max(pen.width(bold, { bold: true, size: 0.82 }), pen.width(pale, { size: 0.82 })) +
  pen.letter;

/** A small tag with a line or two, where it covers no text: at its place, or further up. @param {Pen} pen @param {number} right @param {number} y @param {string} bold @param {string} pale @param {number[]} [limits] left and top */
export function tag(pen, right, y, bold, pale, limits = [0, 0]) {
  const { letter, look } = pen;
  const styles = [
    { bold: true, size: 0.82 },
    { size: 0.82, alpha: 0.8 },
  ];
  const lines = [bold, pale].filter(Boolean);
  const wide = tagWide(pen, bold, pale);
  const high = lines.length * 1.25 * letter + 0.5 * letter;
  const left = Math.max(limits[0], right - wide);
  const top = Math.max(limits[1], y - high);
  pen.rect(left, top, wide, high, {
    rx: 5,
    fill: look.paper,
    stroke: look.primary,
  });
  lines.forEach((line, at) =>
    pen.text(left + 0.5 * letter, top + (0.9 + 1.25 * at) * letter, line, styles[at]),
  );
  return top;
}

/** What the axis of the lanes is of. @param {Flow} figure */
export const axisOf = (figure) =>
  isEnd(figure)
    ? say(figure.asks[2] === "hidden" ? "hidden_chance" : "chance")
    : say("place", { n: counted(figure.n_words) });
