// @ts-check
// The weights of one head in linked pictures of one selection: the sentence tinted by a row, and links
// between two columns of words, a matrix, or both.

import { looksAhead, permitted, unfold } from "./codec.js";
import { ends as endsOf } from "./matrix_canvas.js";
import { make } from "./mount.js";
import { hundredths, notAllowed, share, weightText } from "./number_format.js";
import { sentences } from "./sentences.js";
import { shade } from "./theme.js";
import { named, strongest } from "./tokens.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** Weights as they came, and what is made of them once: the weight of each cell and what may be one, the largest of each row, and the selection under the pointer.
 * @typedef {import("./figure_types").LinkedWeights & { weight: Float32Array, n: number, over: any, hidden: any, sink: any, may: any, ahead: any, unknown?: any, full: number[], peak: number, tops: number[], top: number, tints: any, images: any, coarse?: any, folded?: boolean }} LinkedWeights */

const say = sentences("figures");

export const [ROW, COLUMN] = [0, 1];
const FAINTEST = 0.02;
const MOST = 400; // links of all words: more are one block of ink
const ON_PAPER = 2; // links a word, of all words, where nobody chooses one of them
const LONG = 30; // words of a text from which on the selected one is shown with PARTNERS alone
const PARTNERS = 10;
const NAMED = 4; // words that a sentence names
const SINK = say("sink");

/** Unpack what came, once. @param {LinkedWeights} figure */
export function unpack(figure) {
  if (figure.weight) return figure;
  const { weights, rows, columns, selected } = figure;
  const n = columns.length;
  Object.assign(figure, unfold(weights), {
    n,
    over: null,
    hidden: weights.hidden || null,
    sink: weights.sink || null,
  });
  figure.may = permitted(weights.runs, rows.length * n);
  figure.ahead = looksAhead(figure.may, n);
  const set = (/** @type {number} */ at, /** @type {number} */ weight) => {
    figure.weight[at] = weight;
    if (figure.unknown) figure.unknown[at] = 0;
  };
  weights.row?.forEach((/** @type {number} */ weight, /** @type {number} */ k) =>
    set(selected[ROW] * n + k, weight),
  );
  weights.column?.forEach((/** @type {number} */ weight, /** @type {number} */ q) =>
    set(q * n + selected[COLUMN], weight),
  );
  return measured(figure);
}

/** The largest weight of each row, and of all; and where the scales end, a learned sink's among them. @param {LinkedWeights} figure */
export function measured(figure) {
  const { weight, n, rows } = figure;
  figure.full = rows.map((_, q) =>
    weight.subarray(q * n, (q + 1) * n).reduce((a, b) => (a > b ? a : b), 0),
  );
  figure.peak = Math.max(...figure.full);
  figure.tops = figure.full.map((/** @type {number} */ each, /** @type {number} */ q) =>
    Math.max(each, figure.sink?.[q] ?? 0),
  );
  figure.top = Math.max(...figure.tops);
  figure.tints = figure.images = undefined;
  return figure;
}

/** @param {LinkedWeights} figure */
export const isAcross = (figure) => Boolean(figure.texts);

/** The columns of the matrix: the keys, and last what a learned sink takes of each row. @param {LinkedWeights} figure @returns {string[]} */
export const columnsOf = ({ columns, sink }) => (sink ? [...columns, SINK] : columns);

/** Numbers of the matrix, (row, column): those of the weights with those of the sink behind each row. @param {LinkedWeights} figure @param {Float32Array} values @param {(q: number) => number} ofSink */
function withSink({ rows, n, sink }, values, ofSink) {
  if (!sink) return values;
  const lines = rows.map((/** @type {string} */ _, /** @type {number} */ q) => [
    ...values.subarray(q * n, (q + 1) * n),
    ofSink(q),
  ]);
  return Float32Array.from(lines.flat());
}

/** What of a row is on no column, as it is written beside it. @param {{ hidden: any, sink?: any }} figure @param {number} q */
const aside = ({ hidden, sink }, q) =>
  [hidden && `${share(hidden[q])} hidden`, sink && `${share(sink[q])} sink`]
    .filter(Boolean)
    .join(", ");

const free = ({ may, n }, q, k) => !may || may[q * n + k] === 1;

/** How far along its colours each cell stands, NaN where it is not allowed. @param {LinkedWeights} figure */
function tints(figure) {
  const { weight, n } = figure;
  return (figure.tints ||= Float32Array.from(weight, (value, at) => {
    const [q, k] = [Math.floor(at / n), at % n];
    if (!free(figure, q, k)) return NaN;
    return shade(value, endOf(figure, q), figure.log);
  }));
}

/** The weight at the end of a row's scale. @param {LinkedWeights} figure @param {number} q */
const endOf = ({ scale, tops, top }, q) => (scale === "row" ? tops[q] : scale === "head" ? top : 1);

// ---- what is selected and what is pointed at -----------------------------------------------------

/** The row and column that a picture shows: what is pointed at, before what is selected. @param {LinkedWeights} figure */
export function shownAt(figure) {
  const [q, k] = figure.over || [-1, -1];
  if (isAcross(figure)) {
    if (q >= 0 || k >= 0) return [q, k < figure.n ? k : -1];
    return figure.selected;
  }
  if (q >= 0) return [q, figure.incoming ? q : -1];
  const [row] = figure.selected;
  return [row, row >= 0 && figure.incoming ? row : -1];
}

/** What a press on a word makes of the selection: it, or nothing where it is selected. @param {LinkedWeights} figure @param {number} axis @param {number} at */
export function hold(figure, axis, at) {
  const now = figure.selected[axis] === at ? -1 : at;
  const across = isAcross(figure);
  figure.selected = !across ? [now, now] : axis === ROW ? [now, -1] : [-1, now];
  figure.cell = null;
  return across
    ? { row: figure.selected[ROW], column: figure.selected[COLUMN], cell: -1 }
    : { row: now, column: -1, cell: -1 };
}

/** What a press on a cell makes of it: its row, and the cell. @param {LinkedWeights} figure @param {number[]} cell */
export function opened(figure, [q, k]) {
  if (k >= figure.n) return hold(figure, ROW, q); // the sink is no key
  const [at, column] = figure.cell || [-1, -1];
  if (at === q && column === k && figure.selected[ROW] === q) return hold(figure, ROW, q);
  figure.selected = isAcross(figure) ? [q, -1] : [q, q];
  figure.cell = [q, k];
  return { row: q, column: -1, cell: k };
}

/** Another head in the place of this one, from what the grid of all heads has of it. @param {LinkedWeights} figure @param {number} layer @param {number} head @param {any} made */
export function moved(figure, layer, head, made) {
  Object.assign(figure, { at: [layer, head], weight: made.weight, unknown: made.unknown });
  Object.assign(figure, { hidden: null, sink: null, coarse: true, over: null });
  measured(figure);
}

// ---- in words ------------------------------------------------------------------------------------

/** A sentence with nodes in its slots. @param {string} template @param {Record<string, any>} slots */
const filled = (template, slots) =>
  template.split(/(<\w+>)/).flatMap((part) => slots[part.slice(1, -1)] ?? part);

/** @param {LinkedWeights} figure */
export function value(figure, q, k) {
  if (k >= figure.n) return weightText(figure.sink[q]);
  if (!free(figure, q, k)) return notAllowed(q, k, figure.ahead);
  return weightText(figure.weight[q * figure.n + k], figure.unknown?.[q * figure.n + k]);
}

/** The columns that the sentence on a row names, or the rows that the one on a column names: the strongest that the mask does not hide, and an open cell. @param {LinkedWeights} figure @param {number} row @param {number} column @returns {number[]} */
export function listed(figure, row, column) {
  const { rows, columns, weight, n, cell } = figure;
  const cells = row >= 0 ? columns.map((_, k) => [row, k]) : rows.map((_, q) => [q, column]);
  const seen = cells.map(([q, k]) => (free(figure, q, k) ? weight[q * n + k] : NaN));
  const best = strongest(seen, NAMED);
  const open = row >= 0 && cell?.[ROW] === row ? cell[COLUMN] : -1;
  if (open >= 0 && !best.includes(open) && !Number.isNaN(seen[open]))
    best.splice(NAMED - 1, 1, open);
  return best;
}

/** The sentence on what is pointed at or selected, as nodes and texts. @param {LinkedWeights} figure @returns {any[]} */
export function said(figure) {
  const { says, rows, columns, weight, n, at, coarse, over, hidden, sink } = figure;
  const [row, column] = shownAt(figure);
  const list = (/** @type {string[]} */ names, /** @type {(each: number) => number} */ cell) =>
    listed(figure, row, column).flatMap((each, i) => [
      i ? ", " : "",
      ...filled(says.one, { word: named(names[each]), weight: hundredths(weight[cell(each)]) }),
    ]);
  const rest = (/** @type {number} */ q) => [
    ...(hidden ? filled(says.hidden, { share: hundredths(hidden[q]) }) : []),
    ...(sink ? filled(says.sink, { share: hundredths(sink[q]) }) : []),
  ];
  let sentence = [says.every];
  if (over?.[ROW] >= 0 && over?.[COLUMN] >= 0) {
    const words = { row: named(rows[over[ROW]]), column: named(columnsOf(figure)[over[COLUMN]]) };
    sentence = [
      ...filled(says.cell, {
        ...words,
        weight: make("strong", "", value(figure, over[ROW], over[COLUMN])),
      }),
      ...rest(over[ROW]),
    ];
  } else if (row >= 0) {
    const others = list(columns, (k) => row * n + k);
    sentence = [...filled(says.row, { word: named(rows[row]), others }), ...rest(row)];
  } else if (column >= 0) {
    const others = list(rows, (q) => q * n + column);
    sentence = filled(says.column, { word: named(columns[column]), others });
  }
  return coarse ? filled(says.coarse, { layer: at[0], head: at[1], sentence }) : sentence;
}

// ---- pictures ------------------------------------------------------------------------------------

const SMALL = 60; // words of a sentence from which on it is set smaller
const plain = { title: "", note: "", marks: [], missing: "", digits: 2, unit: "", select: [] };

/** The sentence as rows of tokens, of two texts both of them. @param {LinkedWeights} figure */
function tintedSentences(figure) {
  const { rows, columns, n, selected, special, texts } = figure;
  const [row, column] = shownAt(figure);
  const all = tints(figure);
  const cell = (/** @type {any[]} */ list, /** @type {(at: number) => number[]} */ of) => {
    const places = list.map((_, at) => of(at));
    return {
      tints: Float32Array.from(places, ([q, k]) => (Math.min(q, k) < 0 ? NaN : all[q * n + k])),
      missing: places.map(([q, k]) => Math.min(q, k) >= 0 && !free(figure, q, k)),
    };
  };
  const keys = {
    ...plain,
    kind: "tokenrow",
    small: columns.length > SMALL,
    tokens: columns,
    special: special[COLUMN],
    ...cell(columns, (k) => [row, k]),
  };
  const axis = texts ? COLUMN : ROW;
  const below = {
    ...keys,
    breaks: figure.breaks,
    selected: selected[axis],
    select: [texts ? "column" : "row"],
  };
  if (!texts) return [below];
  const above = {
    ...plain,
    kind: "tokenrow",
    tokens: texts,
    special: special[ROW],
    selected: selected[ROW],
    select: ["row"],
    ...cell(texts, (q) => [q, column]),
  };
  return [
    { ...above, title: "Target" },
    { ...below, title: "Source" },
  ];
}

/** The rows and columns of links: of a long text the selected word and its strongest partners. @param {LinkedWeights} figure */
function placesOf(figure) {
  const { weight, n, rows, columns } = figure;
  const [row, column] = shownAt(figure);
  const all = [[...rows.keys()], [...columns.keys()]];
  if (Math.max(rows.length, n) <= LONG || Math.max(row, column) < 0) return all;
  const best = (/** @type {ArrayLike<number>} */ list) =>
    strongest(list, PARTNERS).sort((a, b) => a - b);
  if (row >= 0) return [[row], best(weight.subarray(row * n, (row + 1) * n))];
  return [best(rows.map((_, q) => weight[q * n + column])), [column]];
}

/** @param {LinkedWeights} figure @param {boolean} [isPaper] */
function links(figure, isPaper = false) {
  const { weight, n, rows, columns, sides, hidden, sink } = figure;
  const [row, column] = shownAt(figure);
  const [from, to] = placesOf(figure);
  const sorted = Float32Array.from(weight).sort();
  const most = isPaper ? Math.min(MOST, ON_PAPER * rows.length) : MOST;
  const faintest = Math.max(FAINTEST, sorted[Math.max(0, sorted.length - most)]);
  const one = Math.max(row, column) >= 0;
  const few = from.length < rows.length || to.length < n;
  const note = say(few ? "few_lines" : "lines", {
    shown: PARTNERS,
    n: row >= 0 ? n : rows.length,
    least: (one ? FAINTEST : faintest).toFixed(2),
  });
  return {
    ...{ ...plain, kind: "links", note, own: true, faintest: one ? FAINTEST : faintest },
    sides: [`${sides[0]} (attends)`, `${sides[1]} (attended to)`],
    left: from.map((q) => (hidden || sink ? `${aside(figure, q)}  ${rows[q]}` : rows[q])),
    right: to.map((k) => columns[k]),
    weights: Float32Array.from(from.flatMap((q) => to.map((k) => weight[q * n + k]))),
    ...{ selected: from.indexOf(row), column: to.indexOf(column), mark: null },
    ...{ select: ["row"], select_right: ["column"], keys: from, keys_right: to },
  };
}

/** @param {LinkedWeights} figure */
function matrix(figure) {
  const { rows, weight, selected, cell, hidden, sink, sides, scale, log, may } = figure;
  const values = Float32Array.from(weight, (each, at) => (!may || may[at] ? each : NaN));
  const top = scale === "head" ? figure.top : 1;
  const low = log ? top / 1000 : 0;
  const ends = scale === "row" ? endsOf("row", log) : undefined;
  return {
    ...{
      ...plain,
      kind: "matrix",
      longest: hidden ? 15 : 8,
      rows: rows.map((/** @type {string} */ row, /** @type {number} */ q) =>
        hidden ? `${row}  ${aside({ hidden }, q)}` : row,
      ),
    },
    ...{ columns: columnsOf(figure), values: withSink(figure, values, (q) => sink[q]) },
    tints: withSink(figure, tints(figure), (q) => shade(sink[q], endOf(figure, q), log)),
    ...{ low, high: top, log, signed: false, ends, sides },
    ...{
      scrolls: true,
      cache: figure,
      missing: may ? "not allowed" : "",
      select: ["row", "column"],
    },
    marks: cell ? [[...cell, ""]] : [],
    bring:
      selected[ROW] >= 0
        ? [
            selected[ROW],
            strongest(
              weight.subarray(selected[ROW] * figure.n, (selected[ROW] + 1) * figure.n),
              1,
            )[0],
          ]
        : undefined,
    ...{ selected: selected[ROW], column: selected[COLUMN], over: figure.over },
  };
}

/** One picture of the figure by itself, for the back row. @param {LinkedWeights} figure */
export function picture(figure) {
  unpack(figure);
  const { full, peak, weight, n } = figure;
  const row = figure.selected[ROW] >= 0 ? figure.selected[ROW] : Math.max(0, full.indexOf(peak));
  const [key] =
    figure.cell?.[0] === row
      ? [figure.cell[1]]
      : strongest(weight.subarray(row * n, (row + 1) * n), 1);
  const mark = share(weight[row * n + key]);
  if (figure.views[0] === "matrix") return { ...matrix(figure), marks: [[row, key, mark]] };
  return {
    ...links({ ...figure, over: null, selected: [row, -1], rows: figure.rows }),
    own: false,
    selected: row,
    note: "",
    mark: [key, mark],
    left: figure.rows,
    right: figure.columns,
    weights: weight,
  };
}

/** @type {Record<string, (figure: LinkedWeights, isPaper: boolean) => any>} */
const PICTURES = { links, matrix };

/**
 * @param {Pen} pen @param {LinkedWeights} figure @param {Box} box
 * @param {(pen: Pen, figure: any, box: Box) => number} draw a figure of another kind
 */
export function linkedweights(pen, figure, { x, y, width, height = Infinity }, draw) {
  unpack(figure);
  const { letter } = pen;
  let top = y;
  for (const one of tintedSentences(figure))
    pen.group(() => (top += draw(pen, one, { x, y: top, width }) + 0.3 * letter));
  top += 0.4 * letter;
  const kinds = figure.folded ? [] : figure.views;
  const gap = 2 * letter;
  const wide = (width - (kinds.length - 1) * gap) / Math.max(1, kinds.length);
  const least = Math.min(28, 1.8 * Math.min(figure.rows.length, LONG) + 1.6) * letter;
  const room = Math.max(least, height - (top - y));
  const heights = kinds.map((kind, at) => {
    let took = 0;
    const place = { x: x + at * (wide + gap), y: top, width: wide, height: room };
    const put = () => (took = draw(pen, PICTURES[kind](figure, pen.isPaper), place));
    if (kind === "links") pen.group(put);
    else put(); // has groups of its own
    return took;
  });
  return top - y + Math.max(0, ...heights);
}
