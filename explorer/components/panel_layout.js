// @ts-check
// Whole panels: the widths of their figures, a panel as a file, and a panel in type for the back row,
// cut to the rows around what it speaks of.

import { Pen } from "./draw.js";
import { figure } from "./figures.js";
import { picture } from "./linked_weights.js";
import { escaped, FONT, shown, tag } from "./svg_export.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const say = sentences("figures");

const SHARE = [0.6, 0.4]; // of the width, for the main figure and its companion of another kind
const WORDS = [0.7, 0.3]; // for a matrix of words
const WIDE = 60; // letters of width from which it takes so much
const WALK = [0.42, 0.58]; // for frames that are walked through beside a picture
const SMALL = 4; // heads of a layer up to which one grid is no wider than a companion
export const GAP = 2; // letters between figures
const NARROW = 44; // letters of width below which figures stand one below the other

/** Figures with their arrays in the place of the names of blocks. @param {any} value @param {Record<string, any>} blocks @returns {any} */
export function resolved(value, blocks) {
  if (Array.isArray(value)) return value.map((each) => resolved(each, blocks));
  if (value === null || typeof value !== "object") return value;
  if (ArrayBuffer.isView(value)) return value;
  if (value.block !== undefined && value.low === undefined) return blocks[value.block];
  if (value.block !== undefined) return leveled(blocks[value.block], value);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, resolved(one, blocks)])); // prettier-ignore
}

const LEVELS = 254; // of a large array, as explorer/analysis/figures.py sends it

/** The numbers of an array in levels; one level more is none. @param {Uint8Array} levels @param {{ low: number, high: number }} ends */
const leveled = (levels, { low, high }) =>
  Float32Array.from(levels, (each) => (each > LEVELS ? NaN : low + (each * (high - low)) / LEVELS));

/** Whether the first figure is a sentence that stands above the others. @param {any[]} figures */
const isHeaded = (figures) => figures.length > 1 && figures[0].kind === "tokenrow";

/** Whether a frame is one grid of few heads. @param {any} frame */
const isSmall = ({ figures: [one, other] }) => !other && one?.kind === "headmatrices" && one.shape[1] <= SMALL; // prettier-ignore

/** How wide each figure may be; even: all alike. @param {number} width @param {any[]} figures @param {number} letter @param {number} [narrow] @param {boolean} [even] */
export function widths(width, figures, letter, narrow = NARROW, even = false) {
  if (isHeaded(figures)) return [width, ...widths(width, figures.slice(1), letter, narrow, even)];
  if (figures.length === 1 || width < narrow * letter) return figures.map(() => width);
  const unlike = !even && figures.length === 2 && figures[0].kind !== figures[1].kind;
  const two =
    figures[0].words?.length && width > WIDE * letter
      ? WORDS
      : figures[1]?.kind === "steps" && !isSmall(figures[1].frames[0])
        ? WALK
        : SHARE;
  const share = unlike ? two : figures.map(() => 1 / figures.length);
  return share.map((part) => Math.floor(part * (width - (figures.length - 1) * GAP * letter)));
}

/**
 * Figures side by side, below a sentence where one is the first; even: each as wide. Returns the height.
 * @param {Pen} pen
 * @param {any[]} figures
 * @param {import("./figures.js").Box} box
 * @param {boolean} [even]
 */
export function row(pen, figures, { x, y, width, height }, even) {
  if (isHeaded(figures)) {
    const head = figure(pen, figures[0], { x, y, width }) + pen.letter;
    const left = height && height - head;
    return head + row(pen, figures.slice(1), { x, y: y + head, width, height: left }, even);
  }
  const wide = widths(width, figures, pen.letter, 0, even);
  const titled = Math.max(...figures.map(({ title }, at) => title ? pen.lines(title, wide[at], { bold: true }).length : 0)); // prettier-ignore
  let [left, tallest] = [x, 0];
  figures.forEach((one, at) => {
    const box = { x: left, y, width: wide[at], height, titled };
    tallest = Math.max(tallest, figure(pen, one, box));
    left += wide[at] + GAP * pen.letter;
  });
  return tallest;
}

const WIDTH = 1000;
const MARGIN = 24;

const CELL = 76; // of a word in a matrix
const WIDEST = 6000;

/** How wide the file is: words of a matrix have room. @param {any[]} figures */
const sheetWidth = (figures) =>
  Math.min(WIDEST, Math.max(WIDTH, ...figures.map(({ words, columns }) => (words?.length ? (CELL * columns.length) / WORDS[0] : 0)))); // prettier-ignore

/** The panel as one SVG with title and caption. @param {View} view @param {Look} look */
export function sheet({ header, figures }, look) {
  const pen = new Pen({ ...look, font: FONT }, 14, false, header.special);
  const whole = Math.round(sheetWidth(figures));
  const room = whole - 2 * MARGIN;
  let top = MARGIN;
  for (const line of pen.lines(header.title, room, { size: 1.3, bold: true })) {
    pen.text(MARGIN, top + 8, line, { size: 1.3, bold: true });
    top += 24;
  }
  top += 12;
  top += row(pen, figures, { x: MARGIN, y: top, width: room }) + 16;
  for (const line of header.caption.flatMap((each) => pen.lines(each, room, { size: 0.8 }))) {
    pen.text(MARGIN, top, line, { size: 0.8, alpha: 0.8 });
    top += 15;
  }
  const height = Math.ceil(top + MARGIN - 10);
  const paper = tag("rect", { width: "100%", height: "100%", fill: look.paper });
  const frame = {
    xmlns: "http://www.w3.org/2000/svg",
    width: whole,
    height,
    viewBox: `0 0 ${whole} ${height}`,
    "font-family": FONT,
    role: "img",
  };
  const title = tag("title", {}, escaped(header.title));
  return tag("svg", frame, title + paper + pen.parts.join(""));
}

// ---- the back row --------------------------------------------------------------------------------

/** Pixels of type that is read from the last row: 28 on a screen of 1280. On a larger one it grows less
 * than the screen, which shows more rows. */
const least = () => Math.max(28, 14 + (14 * innerWidth) / 1280);
const COLUMN = 18; // letters that a figure needs beside others
const FEW = 20; // rows below which of figures in a column one is left
const WORD_COLUMNS = 5; // of a matrix with words in its cells
const LAYERS = 4; // rows that a layer of a diagram stands for
const MOST = [40, 30, 24, 20, 17, 15, 13, 11, 9, 7, 5, 4, 3]; // rows of a figure, tried in turn

/**
 * Draw figures as large as their room allows, of each as many rows as fit in the smallest type; the
 * first of them alone where all together do not fit.
 * @param {any} view its `figures` and its `look`
 * @param {HTMLElement} room
 * @param {string} name what the figures are called
 * @param {number} [small] pixels of the smallest type: for the back row
 * @param {number} [large] how many times as large it may be
 */
export function slide({ header, figures: every, look }, room, name, small = least(), large = 1.8) {
  const [width, height] = [room.clientWidth, room.clientHeight];
  const head = isHeaded(every) ? every.slice(0, 1) : [];
  const all = every.slice(head.length);
  const beside = Math.max(1, Math.floor(width / (COLUMN * small)));
  const several = all.length <= beside ? all : beside > 1 ? chosen(all, beside) : all.slice(0, 1);
  const draw = (
    /** @type {any[]} */ list,
    /** @type {number} */ letter,
    /** @type {boolean} */ even,
  ) => {
    const pen = new Pen(look, letter, true, header.special, Math.min(letter, small));
    const took = row(pen, list, { x: 0, y: 0, width, height }, even);
    return { pen, isWhole: took <= height && pen.right <= width + 1 };
  };
  /** As many rows of figures as fit, and how many of their texts are cut. @param {any[]} figures @param {boolean} even */
  const trial = (figures, even) => {
    for (const most of MOST) {
      const list = figures.map((one) => cut(one, most));
      const { pen, isWhole } = draw(list, small, even);
      if (isWhole) return { list, even, shortened: pen.shortened, isWhole };
    }
    const list = figures.map((one) => cut(one, MOST[MOST.length - 1]));
    return { list, even, shortened: Infinity, isWhole: false };
  };
  // What does not fit beside others in the smallest type stands alone.
  const choices = [[...head, ...several], several, several.slice(0, 1)];
  let best = { list: every, even: false, shortened: Infinity, isWhole: false };
  for (const figures of choices) {
    best = trial(figures, false);
    const even = best.shortened ? trial(figures, true) : best;
    if (even.shortened < best.shortened) best = even;
    if (best.isWhole) break;
  }
  const { list, even, shortened, isWhole } = best;
  let [low, high] = isWhole ? [small, large * small] : [12, small];
  while (high - low > 0.5) {
    const middle = (low + high) / 2;
    const { pen, isWhole } = draw(list, middle, even);
    if (isWhole && pen.shortened <= shortened) low = middle;
    else high = middle;
  }
  const svg = draw(list, low, even).pen.parts.join("");
  room.replaceChildren(shown(svg, { width, height, role: "group", "aria-label": name }));
}

/** So many of the figures: the last ones where they are of one kind, the sides of a comparison; else the first ones and the last. @param {any[]} all @param {number} most */
function chosen(all, most) {
  const last = all.slice(-most);
  if (last.every(({ kind }) => kind === last[0].kind)) return last;
  return [...all.slice(0, most - 1), all[all.length - 1]];
}

/** So many of n places, those nearest to what is to be kept. @param {number} n @param {number[]} keep @param {number} most */
export function around(n, keep, most) {
  const all = [...Array(n).keys()];
  if (n <= most) return all;
  const wanted = keep.filter((at) => at >= 0).slice(0, most);
  const far = (/** @type {number} */ at) => Math.min(...wanted.map((one) => Math.abs(one - at)));
  const near = all.sort((a, b) => (wanted.length ? far(a) - far(b) : 0) || a - b);
  return near.slice(0, most).sort((a, b) => a - b);
}

/** So many of n places, evenly spread, with those that are to be kept and the last one. @param {number} n @param {number[]} keep @param {number} most */
export function spread(n, keep, most) {
  if (n <= most) return [...Array(n).keys()];
  const places = new Set([...keep, n - 1]);
  const free = Math.max(1, most - places.size);
  for (let at = 0; at < free; at++) places.add(Math.round((at * (n - 1)) / free));
  return [...places].sort((a, b) => a - b).slice(-most);
}

/** A figure with at most so many rows. @param {any} one @param {number} most @returns {any} */
const cut = (one, most) => CUTS[one.kind]?.(one, most) ?? one;

/** A word on how much is shown. @param {string} note @param {number} shown @param {number} all */
const noted = (note, shown, all) =>
  [shown < all && `${shown} of ${all} rows`, note].filter(Boolean).join(" · ");

/** Rows and columns of a flat array. @param {ArrayLike<number>} values @param {number} n @param {number[]} rows @param {number[]} columns */
const picked = (values, n, rows, columns) =>
  Float32Array.from(rows.flatMap((row) => columns.map((column) => values[row * n + column])));

/** The first section, the last, and so many layers between them: those with the strongest blocks. @param {any[]} sections @param {number} most */
function turned(sections, most) {
  const strength = (/** @type {any} */ section) => Math.max(...section.blocks.map((/** @type {any} */ each) => each.strength)); // prettier-ignore
  const layers = sections.slice(1, -1).sort((a, b) => strength(b) - strength(a)).slice(0, most); // prettier-ignore
  return sections.filter((each, at) => !at || at === sections.length - 1 || layers.includes(each));
}

/** @type {Record<string, (figure: any, most: number) => any>} */
const CUTS = {
  matrix({ cache, tints, over, ...figure }, most) {
    const { rows, columns, values, marks, words, bold, keys, column_keys, selected = -1 } = figure;
    const pick = words?.length ? spread : around;
    const down = pick(rows.length, [selected, ...marks.map(([at]) => at)].filter((at) => at >= 0), most); // prettier-ignore
    const wide = words?.length ? WORD_COLUMNS : Math.max(most, 6);
    const right = around(columns.length, marks.map(([, at]) => at), wide); // prettier-ignore
    return {
      ...figure,
      note: noted(figure.note, down.length, rows.length),
      rows: down.map((at) => rows[at]),
      columns: right.map((at) => columns[at]),
      values: picked(values, columns.length, down, right),
      words: words?.length ? down.flatMap((row) => right.map((at) => words[row * columns.length + at])) : [], // prettier-ignore
      bold: words?.length ? picked(bold, columns.length, down, right) : [],
      keys: (keys ?? []).length ? down.map((at) => keys[at]) : [],
      column_keys: (column_keys ?? []).length ? right.map((at) => column_keys[at]) : [],
      selected: down.indexOf(selected),
      marks: marks
        .map(([at, column, text]) => [down.indexOf(at), right.indexOf(column), text])
        .filter(([at, column]) => at >= 0 && column >= 0),
    };
  },
  links(figure, most) {
    const { left, right, weights, selected, mark, texts } = figure;
    const key = mark ? [mark[0]] : [];
    const one = left.length === right.length; // one text on both sides
    const from = around(left.length, one ? [selected, ...key] : [selected], most);
    const to = one ? from : around(right.length, key, most);
    return {
      ...figure,
      note: noted(figure.note, from.length, left.length),
      left: from.map((at) => left[at]),
      texts: texts && from.map((at) => texts[at]),
      right: to.map((at) => right[at]),
      weights: picked(weights, right.length, from, to),
      selected: from.indexOf(selected),
      mark: mark && to.includes(mark[0]) ? [to.indexOf(mark[0]), mark[1]] : null,
    };
  },
  bars(figure, most) {
    const { rows, mark } = figure;
    const size = ({ values }) => Math.max(...values.map(Math.abs));
    const order = [...rows.keys()].sort(
      (a, b) => rows[b].selected - rows[a].selected || size(rows[b]) - size(rows[a]) || a - b,
    );
    const places = order.slice(0, most).sort((a, b) => a - b);
    return {
      ...figure,
      note: noted(figure.note, places.length, rows.length),
      rows: places.map((at) => rows[at]),
      mark: mark && [places.indexOf(mark[0]), mark[1]],
    };
  },
  texttable(figure, most) {
    const places = around(figure.rows.length, [figure.selected], most);
    return {
      ...figure,
      note: noted(figure.note, places.length, figure.rows.length),
      rows: places.map((at) => figure.rows[at]),
      keys: places.map((at) => figure.keys[at]),
      selected: places.indexOf(figure.selected),
    };
  },
  tokenrow(figure, most) {
    const { tokens, weights, texts, marked, keys, selected, breaks = [], special } = figure;
    const places = around(tokens.length, [selected, ...marked], 2 * most);
    const of = (/** @type {any} */ list) => (list?.length ? places.map((at) => list[at]) : []);
    return {
      ...figure,
      note:
        places.length < tokens.length ? `${places.length} of ${tokens.length} tokens` : figure.note,
      tokens: of(tokens),
      weights: Float32Array.from(of(weights)),
      texts: of(texts),
      keys: of(keys),
      marked: marked.map((at) => places.indexOf(at)).filter((at) => at >= 0),
      breaks: breaks.map((at) => places.indexOf(at)),
      special: of(special),
      selected: places.indexOf(selected),
    };
  },
  strips(figure, most) {
    const chosen = figure.strips.flatMap(({ selected }, at) => (selected ? [at] : []));
    const places = around(figure.strips.length, chosen, most);
    return { ...figure, strips: places.map((at) => figure.strips[at]) };
  },
  graph(figure, most) {
    const { nodes, edges, selected, split, layout } = figure;
    if (split || layout === "tree" || nodes.length <= most) return figure;
    const near = edges.filter((edge) => edge.target === selected).map((edge) => edge.source);
    const places = around(nodes.length, [selected, ...near], most);
    const place = (/** @type {number} */ at) => places.indexOf(at);
    return {
      ...figure,
      note: noted(figure.note, places.length, nodes.length),
      nodes: places.map((at) => nodes[at]),
      strengths: places.map((at) => figure.strengths[at]),
      edges: edges
        .map((edge) => ({ ...edge, source: place(edge.source), target: place(edge.target) }))
        .filter(({ source, target }) => source >= 0 && target >= 0),
      selected: place(selected),
    };
  },
  ladder(figure, most) {
    const { rungs } = figure;
    const step = Math.max(1, (rungs.length - 1) / Math.max(1, most - 1));
    const places = rungs.filter(
      ({ selected }, at) =>
        selected || rungs.length <= most || Math.round(Math.round(at / step) * step) === at,
    );
    return {
      ...figure,
      note: noted(figure.note, places.length, rungs.length),
      rungs: places.map((rung) => ({ ...rung, words: rung.words.slice(0, most < 7 ? 2 : 3) })),
    };
  },
  dials(figure, most) {
    const chosen = figure.dials.flatMap(({ selected }, at) => (selected ? [at] : []));
    const places = around(figure.dials.length, chosen, most);
    return { ...figure, dials: places.map((at) => figure.dials[at]) };
  },
  facts: (figure, most) => ({ ...figure, facts: figure.facts.slice(0, Math.ceil(most / 3)) }),
  linkedweights: (figure, most) => ({ ...cut(picture(figure), most), title: figure.title }),
  stack(figure, most) {
    const places = most < FEW ? [figure.figures[figure.main]] : figure.figures;
    const alone = places.length === 1 && { half: false };
    return { ...figure, figures: places.map((/** @type {any} */ one) => ({ ...cut(one, most), ...alone })) }; // prettier-ignore
  },
  // Without the sizes of the blocks, with the first prediction alone and the layers that change most.
  diagram(figure, most) {
    if (most >= FEW) return figure;
    const short = (/** @type {any} */ block) => {
      const lines = block.text.split("\n");
      return { ...block, about: lines.length > 1 ? block.about : "", text: lines[0] };
    };
    const stage = (/** @type {any} */ one) => ({ ...one, blocks: one.blocks.map(short) });
    const layers = Math.ceil(most / LAYERS);
    const stacks = figure.stacks.map((/** @type {any} */ one) => ({ ...one, sections: turned(one.sections, layers).map(stage) })); // prettier-ignore
    const isCut = layers < figure.stacks[0].sections.length - 2;
    return { ...figure, note: isCut ? say("layers", { n: layers }) : "", stacks }; // prettier-ignore
  },
  steps(figure, most) {
    const { frames, current } = figure;
    const now = { ...frames[current] };
    now.figures = (figure.whole && most < FEW ? [] : now.figures).map((/** @type {any} */ one) =>
      cut(one, most),
    );
    const whole = figure.whole && cut({ ...figure.whole, selected: current }, most);
    const at = whole ? whole.selected : 0;
    return { ...figure, whole, frames: whole ? { [at]: now } : [now], current: at };
  },
};
