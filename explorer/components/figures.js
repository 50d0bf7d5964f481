// @ts-check
// Every kind of figure, drawn by a pen into a given width: one description for page, file and
// presenter. Each function returns the height that it took.

import { lines, tree } from "./alignment_figures.js";
import { arrows } from "./arrows_figure.js";
import { apart, even, scale as along, ticks } from "./axis.js";
import { picturecard } from "./card_figure.js";
import { cloze } from "./cloze_figure.js";
import { flow, place } from "./flow_figure.js";
import { writtenRow } from "./flow_rows.js";
import { fixed, hundredths, num } from "./number_format.js";
import { isTick, matrix } from "./matrix_figure.js";
import { headmatrices } from "./head_matrices.js";
import { linkedweights, measured } from "./linked_weights.js";
import { omitted, spokenOmissions } from "./omissions.js";
import { sentences } from "./sentences.js";
import { paperfigure } from "./paper_figure.js";
import { plane } from "./scatter.js";
import { branches, network, product, relay } from "./product_figure.js";
import { bars, texttable } from "./tables.js";
import { css, inkOn, wordAt } from "./theme.js";
import { isLeftwards, set } from "./tokens.js";
import { sentencevotes } from "./vote_figure.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./omissions.js").Omitted} Omitted */
/** A chart, and the room beside it where others stand above it. @typedef {import("./figure_types").Chart & { aside?: any }} Chart */
/** @typedef {import("./figure_types").Dials} Dials */
/** @typedef {import("./figure_types").Facts} Facts */
/** A graph, and of one that is cut all edges, by whose scale they are drawn. @typedef {import("./figure_types").Graph & { scaled?: any[] }} Graph */
/** Links whose words may stand aside. @typedef {import("./figure_types").Links & { own?: any, column?: any, keys?: any, keys_right?: any, select_right?: any, faintest?: any }} Links */
/** @typedef {import("./figure_types").Loops} Loops */
/** @typedef {import("./figure_types").Strips} Strips */
/** Tokens that may have tints of their own. @typedef {import("./figure_types").TokenRow & { tints?: any, missing?: any, small?: boolean }} TokenRow */
/** @typedef {{ x: number, y: number, width: number, height?: number, titled?: number }} Box titled: lines that the titles of a row take */
const say = sentences("framed");
/** @type {Record<string, (pen: Pen, figure: any, box: Box) => number>} */
const KINDS = {
  matrix,
  bars,
  tokenrow,
  cloze,
  links,
  chart,
  strips,
  graph,
  texttable,
  steps,
  stack,
  loops,
  dials,
  arrows,
  facts,
  flow,
  picturecard,
  plane,
  product,
  network,
  relay,
  branches,
  paperfigure,
  headmatrices,
  sentencevotes,
  linkedweights: (pen, one, box) => linkedweights(pen, one, box, figure),
};

/**
 * A figure below its title, below it how much of it is shown, and its note. Returns the height.
 * @param {Pen} pen
 * @param {any} figure
 * @param {Box} box
 */
export function figure(pen, figure, { x, y, width, height, titled = 0 }) {
  const { letter } = pen;
  pen.select = figure.select || [];
  let top = y;
  const titles = figure.title ? pen.lines(figure.title, width, { bold: true }) : [];
  for (const line of titles) {
    pen.text(x, top + 0.7 * letter, line, { bold: true });
    top += 1.4 * letter;
  }
  if (figure.title) top += (0.4 + 1.4 * Math.max(0, titled - titles.length)) * letter;
  if (!Object.hasOwn(KINDS, figure.kind)) throw new TypeError("a kind of figure that is not drawn");
  const draw = KINDS[figure.kind];
  const own = figure.omitted || [];
  const written = (/** @type {Omitted[]} */ gone, /** @type {any[]} */ ...notes) => {
    const told = spokenOmissions(gone);
    const lines = pen.note(
      [told, notes.filter(Boolean).join(" ")].filter(Boolean).join(" · "),
      width,
    );
    return lines.join(" ").includes(told) ? lines : pen.lines(told, width, { size: 0.85 });
  };
  const isSlide = pen.least > 0 && height !== undefined; // which has no more room than this
  const under = (/** @type {Omitted[]} */ gone) =>
    isSlide ? NOTE * letter * written(gone, figure.note).length : 0;
  const room = (/** @type {number} */ below) => height && height - (top - y) - below;
  let below = under(own);
  if (isSlide && THINNED.includes(figure.kind)) {
    const probe = pen.probe();
    draw(probe, figure, { x, y: top, width, height: room(below) });
    below = under([...own, ...probe.omitted]);
  }
  const before = pen.omitted;
  pen.omitted = [...own];
  top += draw(pen, figure, { x, y: top, width, height: room(below) });
  const gone = HOLDERS.includes(figure.kind) ? own : pen.omitted;
  pen.omitted = [...before, ...pen.omitted];
  const isCut = pen.pane && height && pen.pane.box[3] + pen.pane.box[5] > height;
  const isPage = pen.screen && !pen.least;
  const hint = isPage && figure.kind !== "cloze" && figure.hint; // which has its own place for it
  const notes = written(gone, figure.note, isCut && figure.frame_note, hint);
  for (const line of notes) {
    pen.text(x, top + 0.7 * letter, line, { size: 0.85, alpha: 0.75 });
    top += NOTE * letter;
  }
  if (pen.edge) {
    const wide = [
      ...titles.map((line) => pen.width(line, { bold: true })),
      ...notes.map((line) => pen.width(line, { size: 0.85 })),
    ];
    pen.edge = Math.max(pen.edge, ...wide.map((each) => x + each));
  }
  return top - y;
}

const PAGE = 55; // letters of rows of a paper, where they have room so close
const NOTE = 1.25; // letters of height of a line of a note
const THINNED = ["matrix"]; // kinds that leave out names where these have no room
const HOLDERS = ["stack", "steps", "linkedweights"]; // of figures that say themselves what they leave out

/** @param {Pen} pen @param {TokenRow} figure @param {Box} box */
function tokenrow(pen, figure, { x, y, width }) {
  const { tokens, weights = [], selected, select, texts = [], marked = [], keys = [] } = figure;
  const { tints = weights, missing, special, small, breaks = [] } = figure;
  const { letter, look } = pen;
  const size = small ? 0.95 : 1.2;
  const [high, gap] = [1.54 * size * letter, 0.25 * letter];
  let [line, pitch, taken] = [y, high + gap, 0];
  /** @type {{ at: number, text: string, wide: number, top: number, left: number }[][]} */
  const lines = [[]];
  tokens.forEach((/** @type {string} */ token, /** @type {number} */ at) => {
    const least = Math.max(
      pen.width(token, { size, bold: at === selected }),
      pen.width(texts[at] ?? "", { size: 0.8 }),
    );
    const wide = Math.min(width, least + 0.6 * letter);
    if (taken && (taken + wide > width || breaks.includes(at))) {
      [line, pitch, taken] = [line + pitch, high + gap, 0];
      lines.push([]);
    }
    if (texts[at]) pitch = high + gap + 1.2 * letter;
    lines.at(-1)?.push({ at, text: token, wide, top: line, left: x });
    taken += wide + gap;
  });
  const isRight = isLeftwards(tokens);
  for (const words of lines) set(words, isRight, [x, width], gap);
  for (const { at, text: token, wide, top, left: place } of lines.flat()) {
    const text = texts[at] ?? "";
    const [bold, framed] = [at === selected, marked.includes(at)];
    const weight = weights[at] ?? NaN;
    const tint = tints[at] ?? NaN;
    const word = Number.isNaN(tint) ? undefined : wordAt(look.one, tint);
    const pale = missing?.[at] ? 0.4 : special?.[at] && word === undefined ? 0.75 : undefined;
    const draw = () => {
      pen.rect(place, top, wide, high, {
        class: bold ? "row selected" : "row",
        fill: framed ? look.primary : word === undefined ? "transparent" : css(word),
        "fill-opacity": framed ? 0.14 : undefined,
        stroke: bold ? look.ink : framed ? look.primary : "none",
        "stroke-width": bold ? 2 : 1,
        rx: 4,
      });
      pen.text(place + wide / 2, top + high / 2, token, {
        size,
        anchor: "middle",
        room: wide,
        bold,
        fill: word === undefined ? undefined : inkOn(word),
        alpha: pale,
      });
      if (text)
        pen.text(place + wide / 2, top + high + 0.6 * letter, text, {
          size: 0.8,
          anchor: "middle",
          alpha: 0.75,
        });
    };
    const key = keys[at] ?? `${at}`;
    const number = Number.isNaN(weight) ? "not allowed" : hundredths(weight);
    const label = weights.length ? `${token}: ${number}` : [token, text].filter(Boolean).join(" ");
    if (select.length && key)
      pen.target({ select: [key], label, pressed: bold, name: "token" }, draw);
    else draw();
  }
  return line + pitch - y;
}

/** @param {Pen} pen @param {Links} figure @param {Box} box */
function links(pen, figure, { x, y, width, height }) {
  if (figure.flat) return lines(pen, figure, { x, y, width, height });
  const { left, right, sides, weights, selected, mark, select, own, column = -1 } = figure;
  const { keys = left.keys(), keys_right = [], select_right, faintest = 0.02 } = figure;
  const { letter, look } = pen;
  const [queries, others] = [[...keys], [...keys_right]];
  const most = Math.max(left.length, right.length);
  const head = 1.6 * letter;
  const pitch = Math.max(
    pen.pitch(1.1) * letter,
    Math.min(
      1.9 * letter,
      height ? (height - head) / most : Infinity,
      pen.isPaper ? (PAGE / most) * letter : Infinity,
    ),
  );
  const room = (/** @type {string[]} */ list, title = "") =>
    Math.min(
      0.34 * width,
      Math.max(
        pen.width(title, { size: 0.85 }),
        ...list.map((each) => pen.width(each, { bold: true })),
      ),
    );
  const number = mark ? pen.width(mark[1], { bold: true }) + 0.6 * letter : 0;
  const [a, b] = [
    x + room(left, sides[0]) + 0.5 * letter,
    x + width - room(right, sides[1]) - number - 0.5 * letter,
  ];
  const along = (/** @type {any[]} */ list) => (/** @type {number} */ at) =>
    y + head + (at + 0.5 + (most - list.length) / 2) * pitch;
  const [middle, beside] = [along(left), along(right)];
  /** @type {import("./draw.js").TextStyle} */
  const style = { size: 0.85, alpha: 0.75 };
  const [long, wide] = sides.map((/** @type {string} */ each) => pen.width(each, style));
  if (long > a - x) pen.text(x, y + 0.5 * letter, sides[0], { ...style, room: 0.5 * width });
  else pen.text(a - 0.5 * letter, y + 0.5 * letter, sides[0], { ...style, anchor: "end" });
  const from = Math.max(x + 0.55 * width, Math.min(b + 0.5 * letter, x + width - wide));
  pen.text(from, y + 0.5 * letter, sides[1], { ...style, room: x + width - from + 1 }); // rounding
  const n = right.length;
  const order = [...left.keys()].sort((p, q) => +(p === selected) - +(q === selected));
  const one = Math.max(selected, column) >= 0;
  for (const q of order)
    for (let k = 0; k < n; k++) {
      const weight = weights[q * n + k];
      const [out, into] = [q === selected, k === column && q !== selected];
      if (!(weight >= faintest) || (own && one && !out && !into)) continue;
      const bold = out || (own && into);
      const colour = own && into ? look.categorical[1] : bold || own ? look.primary : look.ink;
      pen.link([a, middle(q)], [b, beside(k)], colour, {
        "stroke-width": (1 + weight * letter * (bold ? 0.5 : 0.25)).toFixed(1),
        "stroke-opacity": (bold
          ? Math.min(1, 0.35 + weight)
          : (own ? 0.12 : 0.06) + (own ? 0.7 : 0.25) * weight
        ).toFixed(2),
      });
    }
  left.forEach((/** @type {string} */ token, /** @type {number} */ at) => {
    const draw = () => {
      if (pen.screen)
        pen.rect(x, middle(at) - pitch / 2, a - x, pitch, { class: "row", fill: "transparent" });
      pen.text(a - 0.5 * letter, middle(at), token, {
        anchor: "end",
        room: a - x,
        bold: at === selected,
        fill: at === selected ? look.primary : undefined,
      });
    };
    if (select.length)
      pen.target(
        {
          select: [`${queries[at]}`],
          label: `query ${token}`,
          pressed: at === selected,
          double: own,
          name: "query",
        },
        draw,
      );
    else draw();
  });
  if (select_right) pen.select = select_right;
  right.forEach((/** @type {string} */ token, /** @type {number} */ at) => {
    const on = (mark && mark[0] === at) || at === column;
    const fill = at === column ? look.categorical[1] : on ? look.primary : undefined;
    const draw = () => {
      if (pen.screen && select_right)
        pen.rect(b, beside(at) - pitch / 2, x + width - b, pitch, {
          class: "row",
          fill: "transparent",
        });
      pen.text(b + 0.5 * letter, beside(at), token, { room: room(right) + 1, bold: on, fill });
      if (mark && mark[0] === at)
        pen.text(x + width, beside(at), mark[1], { anchor: "end", bold: true, fill: look.primary });
    };
    if (select_right) pen.target({ select: [`${others[at]}`], label: token, double: true }, draw);
    else draw();
  });
  return head + most * pitch;
}

/** @param {Pen} pen @param {Strips} figure @param {Box} box */
function strips(pen, { strips: list, high, framed = [] }, { x, y, width }) {
  const { letter, look } = pen;
  const room = (/** @type {(strip: any) => string} */ of) =>
    Math.max(0, ...list.map((strip) => pen.width(of(strip))));
  const signs = room((strip) => strip.sign);
  const sign = signs && Math.max(letter, signs + 0.4 * letter);
  const lengths = framed.map(([at, component]) => `${component} of ${list[at].values.length}`);
  const columns = framed.filter((_, i) => lengths.indexOf(lengths[i]) === i);
  const only = columns.length === 1 ? columns[0] : undefined; // the component that is read off
  const textOf = (/** @type {any} */ { values, text }) => {
    if (!only || values.length !== list[only[0]].values.length) return text;
    return [num(values[only[1]]), text].filter(Boolean).join(/^×/.test(text) ? " " : " · ");
  };
  const [names, texts] = [
    Math.min(
      0.45 * width,
      room((strip) => strip.label),
    ),
    room(textOf),
  ];
  const pitch = (pen.least ? 1.7 : 2) * letter;
  const left = x + sign + names + 0.6 * letter;
  const wide = Math.max(3 * letter, width - sign - names - texts - 1.4 * letter); // else it does not fit
  list.forEach((strip, at) => {
    const middle = y + (at + 0.5) * pitch;
    const style = { bold: strip.selected };
    pen.text(x, middle, strip.sign, style);
    pen.text(left - 0.6 * letter, middle, strip.label, {
      ...style,
      anchor: "end",
      room: names + 1,
    });
    const area = [left, middle - 0.75 * letter, wide, 1.5 * letter];
    const { values, blocks = 1 } = strip;
    const end = strip.high ?? high;
    pen.cells(area, 1, values.length, (i) => wordAt(look.two, (values[i] / end + 1) / 2));
    for (let block = 0; block < blocks; block++)
      pen.rect(area[0] + (block * wide) / blocks, area[1], wide / blocks, area[3], {
        fill: "none",
        stroke: blocks > 1 ? look.ink : look.border,
      });
    pen.text(left + wide + 0.6 * letter, middle, textOf(strip), style);
  });
  for (const [at, component] of columns) {
    const n = list[at].values.length;
    const alike = [...list.keys()].filter((each) => list[each].values.length === n);
    const [first, last] = [alike[0], alike[alike.length - 1]];
    const one = wide / n;
    pen.frame([
      left + component * one,
      y + first * pitch + 0.1 * letter,
      one,
      (last - first + 1) * pitch - 0.2 * letter,
    ]);
  }
  if (!columns.length) return list.length * pitch;
  const [at, component] = columns[0];
  const [m, value] = [1, 2].map((part) => columns.map((each) => each[part]).join(", "));
  const named = say("component", { m, n: list[at].values.length, value });
  const half = pen.width(named, FRAMED) / 2;
  const middle = left + ((component + 0.5) * wide) / list[at].values.length;
  const place = Math.max(x + half, Math.min(Math.max(left + half, middle), left + wide - half));
  const style = { ...FRAMED, anchor: /** @type {"middle"} */ ("middle"), fill: look.primary };
  pen.text(place, y + list.length * pitch + 0.6 * letter, named, style);
  return list.length * pitch + 1.2 * letter;
}

const BESIDE = 44; // letters of width from which on the figures of a frame stand side by side

/** The figures of the frame on show, below the figure of all frames. @param {Pen} pen @param {any} steps @param {Box} box */
function steps(pen, { frames, current, whole, choice }, box) {
  if (!whole) return stack(pen, frames[current], box);
  const { x, y, width } = box;
  const { letter } = pen;
  const all = { ...whole, selected: current, select: [choice] };
  const { figures } = frames[current];
  const isSide = width >= BESIDE * letter;
  const own = whole.kind === "matrix" ? (8 + 1.4 * whole.rows.length) * letter : undefined;
  const rest = figures.map((/** @type {any} */ one) =>
    lowest(pen, one, isSide ? (width - 2 * letter * (figures.length - 1)) / figures.length : width),
  );
  const needs = isSide
    ? Math.max(0, ...rest)
    : rest.reduce(
        (/** @type {number} */ sum, /** @type {number} */ each) => sum + each + letter,
        0,
      );
  const height = pen.least && box.height ? box.height - needs - letter : own;
  const top = y + figure(pen, all, { x, y, width, height }) + (figures.length ? letter : 0);
  const left = pen.least && box.height ? box.height - (top - y) : undefined;
  if (!figures.length) return top - y;
  if (!isSide) return top - y + stack(pen, frames[current], { x, y: top, width, height: left });
  const wide = (width - 2 * letter * (figures.length - 1)) / figures.length;
  const heights = figures.map((/** @type {any} */ one, /** @type {number} */ at) =>
    figure(pen, one, { x: x + at * (wide + 2 * letter), y: top, width: wide, height: left }),
  );
  return top - y + Math.max(0, ...heights);
}

/** The least height of a figure. @param {Pen} pen @param {any} one @param {number} width */
const lowest = (pen, one, width) => figure(pen.probe(), one, { x: 0, y: 0, width, height: 1 });

/** Figures one below the other, grids of heads side by side; on a slide what they need not is theirs in equal parts. @param {Pen} pen @param {any} stack @param {Box} box */
function stack(pen, { figures }, { x, y, width, height }) {
  let top = y;
  if (figures.length > 1 && figures.every(({ kind }) => kind === "headmatrices")) {
    const room = width / figures.length;
    const draw = (/** @type {any} */ one, /** @type {number} */ at) =>
      figure(pen, one, { x: x + at * room, y, width: room - pen.letter, height });
    return Math.max(...figures.map(draw));
  }
  const list = aligned(pen, figures);
  const isSlide = pen.least > 0 && height !== undefined;
  const needs = isSlide ? list.map((/** @type {any} */ one) => lowest(pen, one, width)) : [];
  const gaps = (figures.length - 1) * pen.letter;
  const spare = (height ?? 0) - gaps - needs.reduce((sum, each) => sum + each, 0);
  const growing = Math.max(
    1,
    list.filter((/** @type {any} */ { kind }) => GROWING.includes(kind)).length,
  );
  list.forEach((/** @type {any} */ one, /** @type {number} */ at) => {
    const fixed = figures.filter((each) => each !== one && each.kind === "strips");
    const taken = fixed.reduce(
      (sum, { strips: list }) => sum + (2 * list.length + 3) * pen.letter,
      0,
    );
    const more = GROWING.includes(one.kind) ? Math.max(0, spare) / growing : 0;
    const own = isSlide ? needs[at] + more : height && height - taken;
    top += figure(pen, one, { x, y: top, width, height: own }) + pen.letter;
  });
  return top - y - pen.letter;
}

const GROWING = [
  "bars",
  "chart",
  "graph",
  "headmatrices",
  "links",
  "matrix",
  "network",
  "plane",
  "product",
  "relay",
  "stack",
  "steps",
  "paperfigure",
]; // kinds that use more height

/** The name at the end of a line of a chart. @param {any} series */
const named = ({ name, end }) => [name, end].filter(Boolean).join(" ");

/** Charts over the same x axis with the same margins; other figures as they are. @param {Pen} pen @param {any[]} figures */
function aligned(pen, figures) {
  const { x_title, x_range } = figures[0] || {};
  if (!x_range || figures.some((one) => one.x_title !== x_title)) return figures;
  const each = figures.map((one) => margins(pen, one, extent(one)));
  const aside = [0, 1].map((side) => Math.max(...each.map((both) => both[side])));
  return figures.map((one) => ({ ...one, aside }));
}

/** The ends of a chart's axes, [x, y]. @param {Chart} figure */
function extent({ series, log_x, log_y, x_range, y_range }) {
  const finite = (/** @type {"x" | "y"} */ axis, /** @type {boolean} */ log) =>
    series
      .flatMap((one) => [...one[axis], ...((axis === "y" && one.base) || [])])
      .filter((value) => Number.isFinite(value) && (!log || value > 0));
  const range = (/** @type {number[]} */ list) => {
    const [low, high] = [Math.min(...list), Math.max(...list)];
    return low === high ? [low, low + 1] : [low, high];
  };
  const [xs, ys] = [
    range(x_range || finite("x", log_x)),
    [...(y_range || range(finite("y", log_y)))],
  ];
  if (!log_y && ys[0] > 0 && ys[0] < 0.4 * ys[1]) ys[0] = 0;
  return [xs, ys];
}

/** Ticks of a chart's y axis, each with its text. @param {Chart} figure @param {number[]} ys */
const levels = ({ log_y }, ys) => ticks(ys[0], ys[1], log_y).map((value) => [value, num(value, 3)]);

/** The room left of a chart's axes for its ticks, and right of them for the names of its curves. @param {Pen} pen @param {Chart} figure @param {number[][]} ends */
function margins(pen, figure, [, ys]) {
  const texts = levels(figure, ys).map(([, text]) => pen.width(`${text}`, { size: 0.85 }));
  const names = figure.series.map((one) => pen.width(named(one), { size: 0.9, bold: one.main }));
  const gap = (figure.framed?.length ? 1.3 : 0.8) * pen.letter; // a frame may stand at a curve's end
  return [texts, names].map((wide) => Math.max(0, ...wide) + gap);
}

const FRAMED = { size: 0.85, bold: true }; // the type of what a framed number is
const GUIDED = { class: "framed", "stroke-width": 2 }; // the line at a number to which a formula comes
const DASHES = [undefined, "10 6", "3 5", "12 5 3 5"];
const SAMPLE = 2.4; // letters of a line before its name, where that stands above the chart

/** The lines at values of a chart, the rightmost first, each with its name and the lowest free row above the chart. @param {Pen} pen
 * @param {Chart} figure @param {number[]} xs @param {(value: number) => number} across @param {number[]} ends */
function guideLabels(pen, { guides, framed = [] }, xs, across, [begin, end]) {
  const all = guides.map(([exact, label], index) => {
    const at = across(Math.max(xs[0], Math.min(exact, xs[1]))); // what lies beyond is at the end
    const found = framed.find(([of, one]) => of < 0 && one === index);
    const text = found ? `${label} = ${found[2]}` : label;
    const style = found ? { ...FRAMED, fill: pen.look.primary } : { size: 0.8 };
    const long = pen.width(text, style);
    const from = Math.max(begin, at + (at + 4 + long > end ? -4 - long : 4));
    return { at, from, to: from + long, row: text ? 1 : 0, text, style, found };
  });
  all.sort((a, b) => b.at - a.at);
  for (const [n, one] of all.entries())
    while (one.row && all.slice(0, n).some((each) => each.row === one.row && each.from < one.to))
      one.row++;
  return all;
}

/** @param {Pen} pen @param {Chart} figure @param {Box} box */
function chart(pen, figure, { x, y, width, height: room = Infinity }) {
  const { letter, look } = pen;
  const { series, x_title, y_title, log_x, log_y, backwards, guides, framed = [] } = figure;
  const [xs, ys] = extent(figure);
  const labels = levels(figure, ys);
  const aside = figure.aside || margins(pen, figure, [xs, ys]);
  const left = x + aside[0];
  const above = aside[1] > 0.4 * width; // the names of lines, where they have no room beside
  const places = figure.ticks.length
    ? figure.ticks
    : ticks(xs[0], xs[1], log_x).map((value) => [value, num(value, 3)]);
  const last = places.length ? pen.width(`${places[places.length - 1][1]}`, { size: 0.85 }) / 2 : 0;
  const right = x + width - (above ? Math.max(0.5 * letter, last) : aside[1]);
  const names = series.map((one) =>
    above ? pen.lines(named(one), width - SAMPLE * letter, { size: 0.9, bold: one.main }) : [],
  );
  const lines = 1.3 * letter * names.flat().length;
  const own = Math.max(
    8 * letter,
    Math.min(room, (pen.least ? 1 : pen.isPaper ? 0.5 : 0.66) * width, 24 * letter) *
      (figure.half ? 0.55 : 1),
  );
  const below = (pen.least && !x_title ? 1.8 : 3) * letter; // numbers and the name of the axis
  const base = Math.max(lines + 8 * letter, own + Math.min(lines, Math.max(0, room - own)));
  const head = y + (y_title ? 1.8 : 0.6) * letter + lines;
  if (figure.square) even(xs, ys, (right - left) / (y + base - below - head));
  const across = along(backwards ? xs[1] : xs[0], backwards ? xs[0] : xs[1], left, right, log_x);
  const guided = guideLabels(pen, figure, xs, across, [x, x + width]);
  const rows = Math.max(0, ...guided.map(({ row }) => row));
  const height = Math.max(base, Math.min(room, base + 1.2 * rows * letter));
  const [top, foot] = [head + 1.2 * rows * letter, y + height - below];
  const up = along(ys[0], ys[1], foot, top, log_y);
  const pale = { size: 0.85, alpha: 0.75 };
  if (y_title) pen.text(x, y + 0.6 * letter, y_title, pale);
  const half = pen.width(x_title, { size: 0.85 }) / 2;
  const middle = Math.max(x + half, Math.min((left + right) / 2, x + width - half));
  pen.text(middle, y + height - 0.7 * letter, x_title, { ...pale, anchor: "middle" });
  for (const [value, text] of apart(labels, up, 1.1 * pen.type(0.85))) {
    pen.line(
      [
        [left, up(value)],
        [right, up(value)],
      ],
      look.border,
      { "stroke-opacity": 0.7 },
    );
    pen.text(left - 0.4 * letter, up(value), text, { size: 0.85, anchor: "end" });
  }
  let [free, written] = [-Infinity, 0];
  for (const [value, text] of places) {
    const half = pen.width(`${text}`, { size: 0.85 }) / 2;
    const middle = Math.max(x + half, Math.min(across(value), x + width - half));
    if (middle - half < free) continue;
    free = middle + half + 0.4 * letter;
    pen.text(middle, foot + 0.9 * letter, `${text}`, { size: 0.85, anchor: "middle" });
    written++;
  }
  if (pen.isPaper && !places.every(([, text]) => isTick(`${text}`)))
    pen.omitted.push(...omitted(["places", written, places.length]));
  for (const { at, row, found } of guided)
    pen.line(
      [
        [at, top - 1.2 * row * letter],
        [at, foot],
      ],
      found ? look.primary : look.ink,
      found ? GUIDED : { "stroke-dasharray": "4 4", "stroke-opacity": 0.6 },
    );
  const rest = look.categorical.filter((each) => each !== look.primary);
  let next = 0;
  /** @type {{ y: number, one: any, colour: string, style: any }[]} */
  const ends = [];
  series.forEach((one, at) => {
    const colour = one.main
      ? look.primary
      : one.shape === "band"
        ? look.ink
        : rest[next++ % rest.length];
    const points = [...one.x]
      .map((value, i) => [value, one.y[i]])
      .filter(([, value]) => Number.isFinite(value) && (!log_y || value > 0))
      .map(([a, b]) => [across(a), up(b)]);
    if (!points.length) return;
    const style = {
      "stroke-width": one.main ? 2.5 : 1.5,
      "stroke-dasharray": one.main ? undefined : DASHES[at % DASHES.length],
    };
    const { base } = one;
    if (base && one.shape === "band") {
      const back = [...one.x]
        .map((value, i) => [across(value), up(base[i])])
        .filter(([, b]) => Number.isFinite(b));
      pen.line([...points, ...back.reverse()], "none", { fill: look.ink, "fill-opacity": 0.12 });
    } else if (one.shape === "points")
      for (const [a, b] of points)
        pen.circle(a, b, letter / 4, { fill: colour, "fill-opacity": 0.8 });
    else if (one.shape === "steps")
      for (const [i, [a, b]] of points.entries()) {
        const next = points[i + 1]?.[0] ?? a + (a - (points[i - 1]?.[0] ?? a));
        pen.rect(a, b, Math.max(1, next - a - 1), foot - b, { fill: colour, "fill-opacity": 0.7 });
      }
    else pen.line(points, colour, style);
    ends.push({ y: points[points.length - 1][1], one, colour, style });
  });
  for (const [of, at, text] of framed)
    if (of >= 0) {
      const [a, b] = [across(series[of].x[at]), up(series[of].y[at])];
      pen.frame([a - 0.5 * letter, b - 0.5 * letter, letter, letter]);
      if (series[of].end !== text) pen.printed(a, b, text, right);
    }
  for (const { from, row, text, style } of guided)
    if (text) pen.text(from, top + (0.5 - 1.2 * row) * letter, text, style);
  ends.sort((a, b) => a.y - b.y);
  if (above) {
    let row = head - lines + 0.2 * letter;
    for (const { one, colour, style } of ends) {
      const sample = [x, x + (SAMPLE - 0.5) * letter].map((each) => [each, row]);
      if (one.shape === "line") pen.line(sample, colour, style);
      if (one.shape === "points")
        pen.circle((sample[0][0] + sample[1][0]) / 2, row, letter / 4, { fill: colour });
      for (const line of names[series.indexOf(one)]) {
        pen.text(x + SAMPLE * letter, row, line, { size: 0.9, fill: colour, bold: one.main });
        row += 1.3 * letter;
      }
    }
    return height;
  }
  const pitch = 1.15 * letter;
  ends.forEach((end, i) => (end.y = Math.max(end.y, i ? ends[i - 1].y + pitch : -Infinity)));
  ends.reduceRight((most, end) => (end.y = Math.min(end.y, most)) - pitch, foot);
  const from = right + (framed.length ? 0.9 : 0.4) * letter;
  for (const { y: place, one, colour } of ends) {
    pen.text(from, place, named(one), {
      size: 0.9,
      fill: colour,
      bold: one.main,
      halo: true,
      room: x + width - from,
    });
  }
  return height;
}

/** @param {Pen} pen @param {Graph} figure @param {Box} box */
function graph(
  pen,
  {
    nodes,
    strengths,
    edges,
    layout,
    split,
    selected,
    select,
    places: spots,
    texts,
    scaled = edges,
  },
  { x, y, width, height: room = Infinity },
) {
  const { letter, look } = pen;
  if (layout === "tree")
    return tree(pen, { nodes, strengths, edges, selected, places: spots, texts }, { x, y, width });
  const n = nodes.length;
  const height = Math.max(8 * letter, Math.min(room, Math.max(12, 1.6 * n) * letter));
  /** @type {number[][]} */
  const places = nodes.map((_, at) => {
    if (split) {
      const [first, of] = at < split ? [at, split] : [at - split, n - split];
      return [x + (at < split ? 0.25 : 0.75) * width, y + ((first + 0.5) / of) * height];
    }
    if (layout === "arcs") return [x + 0.42 * width, y + ((at + 0.5) / n) * height];
    const angle = (2 * Math.PI * at) / n - Math.PI / 2;
    return [
      x + width / 2 + 0.36 * width * Math.cos(angle),
      y + height / 2 + (height / 2 - 2 * letter) * Math.sin(angle),
    ];
  });
  const top = Math.max(1e-9, ...scaled.map((edge) => edge.weight));
  const order = [...edges].sort((p, q) => +(p.target === selected) - +(q.target === selected));
  for (const edge of order) {
    const own = edge.target === selected;
    const [[a, b], [c, d]] = [places[edge.source], places[edge.target]];
    const style = {
      "stroke-width": (0.6 + (letter / 3) * (edge.weight / top)).toFixed(1),
      "stroke-opacity": (own ? 0.95 : 0.12 + 0.3 * (edge.weight / top)).toFixed(2),
    };
    const stroke = own ? look.primary : look.ink;
    if (edge.source === edge.target)
      pen.path(`M${a} ${b - 3}a${letter / 2} ${letter / 2} 0 1 1 0 6`, stroke, style);
    else if (layout === "arcs" && !split) {
      const bend = Math.min(0.38 * width, Math.abs(d - b) * 0.55) * (d < b ? -1 : 1);
      pen.path(`M${a} ${b}Q${a + bend} ${(b + d) / 2} ${c} ${d}`, stroke, style);
    } else
      pen.line(
        [
          [a, b],
          [c, d],
        ],
        stroke,
        style,
      );
  }
  const pitch = height / Math.max(1, split ? Math.max(split, n - split) : n);
  nodes.forEach((token, at) => {
    const [a, b] = places[at];
    const on = at === selected;
    const draw = () => {
      pen.circle(a, b, letter / 2.6, {
        fill: css(wordAt(look.one, strengths[at])),
        stroke: on ? look.primary : look.ink,
        "stroke-width": on ? 3 : 1,
      });
      const hides = at % Math.ceil(letter / pitch) || Math.abs(at - selected) * pitch < letter;
      if (pitch < letter && !on && hides) return;
      const west = split ? at < split : layout === "arcs" || a < x + width / 2;
      pen.text(a + (west ? -0.8 : 0.8) * letter, b, token, {
        anchor: west ? "end" : "start",
        bold: on,
        halo: true,
        room: 0.3 * width,
        size: 0.95,
      });
    };
    if (select.length) pen.target({ select: [`${at}`], label: token, pressed: on }, draw);
    else draw();
  });
  return height;
}

/** @param {Pen} pen @param {Loops} figure @param {Box} box */
function loops(pen, { boxes, framed = [] }, { x, y, width }) {
  const { letter, look } = pen;
  let number = -1;
  const room = Math.min(width, 40 * letter);
  /** @param {any} box @param {number} left @param {number} top @param {number} wide @returns {number} */
  const draw = ({ text, count, inside, selected }, left, top, wide) => {
    const start = pen.parts.length;
    const isFramed = framed.some(([at]) => at === number + 1);
    number += 1;
    const counted = count ? pen.width(count, { bold: true }) + letter : 0;
    const isBelow = counted > wide / 2 && pen.width(text) + counted > wide - letter;
    const lines = pen.lines(text, wide - letter - (isBelow ? 0 : counted));
    lines.forEach((line, at) =>
      pen.text(left + 0.5 * letter, top + (at + 0.8) * 1.3 * letter, line),
    );
    const below = isBelow ? lines.length : 0; // lines above the count
    if (count)
      pen.text(left + wide - 0.5 * letter, top + (below * 1.3 + 1) * letter, count, {
        anchor: "end",
        bold: true,
        fill: selected ? look.primary : undefined,
      });
    if (count && isFramed)
      pen.frame([left + wide - counted, top + (below * 1.3 + 0.2) * letter, counted, 1.5 * letter]);
    let height = ((lines.length + (isBelow ? 1 : 0)) * 1.3 + 0.4) * letter;
    for (const each of inside)
      height += draw(each, left + 0.6 * letter, top + height, wide - 1.2 * letter) + 0.2 * letter;
    if (!inside.length) return height;
    height += 0.3 * letter;
    const text_ = pen.parts.splice(start);
    pen.rect(left, top, wide, height, {
      fill: look.primary,
      "fill-opacity": 0.05,
      stroke: look.border,
      rx: 5,
    });
    pen.parts.push(...text_);
    return height;
  };
  return boxes.reduce((top, each) => top + draw(each, x, y + top, room) + 0.3 * letter, 0);
}

/** @param {Pen} pen @param {Dials} figure @param {Box} box */
function dials(pen, { dials: list, framed = [] }, { x, y, width }) {
  const { letter, look } = pen;
  const [wide, high] = [7.5 * letter, 8.2 * letter];
  const columns = Math.max(1, Math.min(list.length, Math.floor(width / wide)));
  const reach = 2.1 * letter;
  list.forEach((dial, at) => {
    const middle = x + ((at % columns) + 0.5) * wide;
    const down = y + Math.floor(at / columns) * high + 2.9 * letter;
    pen.circle(middle, down, reach, { fill: "none", stroke: look.border });
    arrow(dial.before, 0, look.ink, 0.5);
    arrow(dial.total[0], dial.total[1], look.categorical[1], 1, "4 4");
    arrow(dial.after[0], dial.after[1], look.primary, 1);
    const fill = dial.selected ? look.primary : undefined;
    pen.text(middle, down + 3.2 * letter, dial.text, { anchor: "middle", bold: true, fill });
    const own = pen.width(dial.text, { bold: true }) + 0.6 * letter;
    if (framed.some(([one]) => one === at))
      pen.frame([middle - own / 2, down + 2.5 * letter, own, 1.4 * letter]);
    pen.text(middle, down + 4.4 * letter, dial.label, { anchor: "middle", size: 0.9, room: wide });

    /** @param {number} length @param {number} degrees @param {string} colour @param {number} alpha @param {string} [dash] */
    function arrow(length, degrees, colour, alpha, dash) {
      const angle = (degrees - 90) * (Math.PI / 180);
      const far = Math.min(1.3, length) * reach;
      const end = [middle + far * Math.cos(angle), down + far * Math.sin(angle)];
      pen.line([[middle, down], end], colour, {
        "stroke-width": letter / 6,
        "stroke-opacity": alpha,
        "stroke-dasharray": dash,
      });
      pen.circle(end[0], end[1], letter / 4.5, { fill: colour, "fill-opacity": alpha });
    }
  });
  return Math.ceil(list.length / columns) * high;
}

/** Few numbers or words in large type. @param {Pen} pen @param {Facts} figure @param {Box} box */
function facts(pen, { facts: list, framed = [] }, { x, y, width }) {
  const { letter, look } = pen;
  const room = width - (framed.length ? letter : 0);
  const large = (/** @type {string} */ fact, size = 2) => pen.width(fact, { size, bold: true });
  const sizes = list.map(([fact]) => Math.max(1, Math.min(2, (2 * room) / large(fact))));
  const wide = list.map(
    ([fact, about], at) => Math.max(large(fact, sizes[at]), pen.width(about)) + 1.6 * letter,
  );
  let [left, top, tall] = [x, y, 0];
  list.forEach(([fact, about], at) => {
    if (left > x && left + wide[at] > x + width) [left, top, tall] = [x, top + tall, 0];
    const fill = at ? undefined : look.primary;
    const style = { size: sizes[at], bold: true };
    const isFramed = framed.some(([one]) => one === at);
    const begin = left + (isFramed ? 0.5 * letter : 0); // the frame is whole at an edge
    pen.text(begin, top + 1.3 * letter, fact, { ...style, fill, room });
    if (isFramed)
      pen.frame([
        begin - 0.3 * letter,
        top + 0.1 * letter,
        pen.width(fact, style) + 0.6 * letter,
        2.3 * letter,
      ]);
    const lines = pen.lines(about, width);
    lines.forEach((line, row) => pen.text(left, top + (3 + 1.2 * row) * letter, line));
    tall = Math.max(tall, (3 + 1.2 * lines.length) * letter);
    left += wide[at];
  });
  return top - y + tall;
}

// ---- between two figures -------------------------------------------------------------------------

// Numbers of a figure that change visibly from one text, head or edit to the next, and its parts.
const NUMBERS = [
  "values",
  "weights",
  "weight",
  "y",
  "base",
  "strengths",
  "outline",
  "start",
  "shares",
  "ffn",
  "answer",
  "probability",
];
const PARTS = ["figures", "rows", "series", "strips", "factors", "layers", "attentions", "words"];

/** A number or a row of numbers between two. @param {any} from @param {any} to @param {number} share */
function mixed(from, to, share) {
  if (typeof from === "number" && typeof to === "number") return from + (to - from) * share;
  if (!to?.length || from?.length !== to.length || typeof to[0] !== "number") return to;
  return to.map((/** @type {number} */ value, /** @type {number} */ i) => {
    const number = from[i] + (value - from[i]) * share;
    return Number.isNaN(number) ? value : number;
  });
}

/** A figure between two of one make: all but its numbers is the later one's. @param {any} from @param {any} to @param {number} share @param {number} [ms] milliseconds since it began @returns {any} */
export function between(from, to, share, ms = 0) {
  const made = { ...to };
  for (const key of NUMBERS) if (key in to) made[key] = mixed(from[key], to[key], share);
  for (const key of PARTS)
    if (typeof to[key]?.[0] === "object" && from[key]?.length === to[key].length)
      made[key] = to[key].map((/** @type {any} */ one, /** @type {number} */ i) =>
        between(from[key][i], one, share),
      );
  if (made.kind === "flow")
    made.from = { ...place(from), share, ms, written: writtenRow(from, to) };
  return made.kind === "linkedweights" ? measured(made) : made;
}
