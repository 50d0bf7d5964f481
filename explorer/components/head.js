// @ts-check
// One head in linked views of one selection: the sentence tinted, and the matrix or the lines between
// two columns.

import { ahead } from "./optimistic_updates.js";
import { bus } from "./bus.js";
import { ends } from "./matrix_canvas.js";
import { moved } from "./head_optimistic.js";
import style from "./head.css.js";
import { both } from "./linked_views.js";
import { lines } from "./head_lines.js";
import { matrix } from "./head_matrix.js";
import { plainKey } from "./keys.js";
import { fitted, make, mount, redraw } from "./mount.js";
import { notAllowed, share, spokenLine, weightText } from "./number_format.js";
import { offer, paper, plate, scaleBar, tag, text } from "./svg_export.js";
import { shade, wordAt } from "./theme.js";
import { chips, listed, named, strongest, tint } from "./tokens.js";
import { looksAhead, permitted, unfold } from "./codec.js";

/** @typedef {import("./mount.js").View} View */

const [ROW, COLUMN] = [0, 1];
const NARROW = 640; // pixels of a window below which there is one column
const BOXES = [".scroll", ".tokens.rows", ".tokens.columns"];

export default mount("head", style, (view) => {
  const { header } = view;
  if (view.fresh) opened(view);
  view.held = [header.pin, header.column];
  view.cell = header.cell;
  view.over = view.note = null;
  draw(view);
  bus.tell({ layer: header.layer, head: header.head });
  ahead(view, (asked) => moved(view, asked) && draw(view));
});

/** @param {View} view */
function draw(view) {
  const { header, root } = view;
  const text = JSON.stringify([header.view, header.queries, header.keys]);
  const boxes = text === view.text ? BOXES : [];
  // Arrow keys go on in the same matrix from the cell that they have reached.
  const cursor = text === view.text && view.cursor;
  view.late = text !== view.text; // of a long text what is out of sight then comes later
  view.text = text;
  view.fit = undefined;
  const kinds = { lines, matrix, both };
  const parts = kinds[header.view]?.(view, shared) || bare(view);
  const note = view.note && make("p", "evidence", make("strong", "", view.note));
  const cells = header.view !== "lines" && evidence(view);
  const picture = window.innerWidth < NARROW && parts.length ? [folded(view, parts)] : parts;
  redraw(view, [note, sentence(view), ...picture, cells].filter(Boolean), boxes);
  offer(view, "Matrix", (look) => drawing(view, look));
  if (view.fit) fitted(view, view.fit[0], view.fit[1]);
  show(view);
  if (cursor) view.point(cursor, true);
  root.dataset.head = `${header.layer}.${header.head}`;
}

/** What came in the message, unpacked. @param {View} view */
function opened(view) {
  const { header, blocks } = view;
  const n = (view.n = header.keys.length);
  Object.assign(view, unfold(blocks));
  view.across = Boolean(header.said);
  view.sides = view.across ? ["target", "source"] : ["query", "key"];
  view.permitted = permitted(blocks.runs, header.queries.length * n);
  view.ahead = looksAhead(view.permitted, n);
  view.hidden = blocks.hidden || null;
  const set = (at, weight) => ([view.weight[at], view.unknown[at]] = [weight, 0]);
  // The row and the column that are held travel exactly.
  blocks.row?.forEach((weight, k) => set(header.pin * n + k, weight));
  blocks.column?.forEach((weight, q) => set(q * n + header.column, weight));
  view.full = header.queries.map((_, q) => row(view, q).reduce((a, b) => (a > b ? a : b)));
  view.peak = Math.max(...view.full);
}

/** @param {View} view @returns {Float32Array} */
const row = ({ weight, n }, q) => weight.subarray(q * n, (q + 1) * n);

/** @param {View} view */
const free = (view, q, k) => !view.permitted || view.permitted[q * view.n + k] === 1;

/** @param {View} view */
function word(view, q, k, words = view.look.one) {
  const { scale, log } = view.header;
  const full = scale === "row" ? view.full[q] : scale === "head" ? view.peak : 1;
  return wordAt(words, shade(view.weight[q * view.n + k], full, log));
}

// None where a cell is not allowed.
/** @param {View} view */
function coloured(view, at, words = view.look.one) {
  const [q, k] = [Math.floor(at / view.n), at % view.n];
  return free(view, q, k) ? word(view, q, k, words) : undefined;
}

/** @param {View} view */
function value(view, q, k) {
  if (!free(view, q, k)) return notAllowed(q, k, view.ahead);
  const at = q * view.n + k;
  return weightText(view.weight[at], view.unknown?.[at]);
}

// The number of a row's or a column's token, which is not its place where others are left out.
/** @param {{header: any}} view */
const numberOf = ({ header }, axis, at) => header.places[axis]?.[at] ?? at;

// ---- what is held and what is looked at ----------------------------------------------------------

/** The held token, for the grid of all heads. @param {View} view */
function tellWord({ held, header }) {
  const axis = held[ROW] >= 0 ? ROW : COLUMN;
  const at = held[axis] < 0 ? -1 : numberOf({ header }, axis, held[axis]);
  const [rows, columns] = header.sizes;
  const word = { axis, at, rows, columns };
  if (JSON.stringify(word) !== JSON.stringify(bus.now.word)) bus.tell({ word });
}

// Hold the row or the column of a token, or let it go. Where both axes are one text, its row and its
// column are held together.
/** @param {View} view */
function hold(view, axis, at) {
  const now = view.held[axis] === at ? -1 : at;
  view.held = !view.across ? [now, now] : axis === ROW ? [now, -1] : [-1, now];
  view.cell = null;
  view.send("token", view.across ? [...view.held, -1] : [now, -1, -1]);
  show(view);
}

// Open a cell and hold its row; let both go where it was open.
/** @param {View} view */
function open(view, q, k) {
  const [at, column] = view.cell || [-1, -1];
  if (at === q && column === k && view.held[ROW] === q) return hold(view, ROW, q);
  view.held = view.across ? [q, -1] : [q, q];
  view.cell = [q, k];
  view.send("token", [q, -1, k]);
  show(view);
}

/** over: [query, key], -1 for none on that axis; null when the pointer has left. @param {View} view */
function look(view, over) {
  view.over = over;
  show(view);
}

/** @param {View} view */
function show(view) {
  const [q, k] = view.over || [-1, -1];
  const query =
    q >= 0 ? q : k >= 0 && (view.across || view.header.view !== "matrix") ? -1 : view.held[ROW];
  const key = k >= 0 ? k : q >= 0 ? -1 : view.held[COLUMN];
  view.tint(query, view.across ? key : query < 0 && view.header.view !== "matrix" ? k : -1);
  view.draw(q, k, query, key);
  tellWord(view);
}

// On a phone the tinted sentence is the picture: lines and matrix are opened below it.
/** @param {View} view @param {HTMLElement[]} parts */
function folded(view, parts) {
  const box = make("details", "", make("summary", "", view.header.view), ...parts);
  box.open = Boolean(view.unfolded);
  box.ontoggle = () => {
    view.unfolded = box.open;
    if (box.open) view.fit?.[1]();
  };
  return box;
}

const shared = { COLUMN, ROW, coloured, hold, look, open, value };

// Beside a table only the sentence stays.
/** @param {View} view */
function bare(view) {
  view.draw = () => {};
  return [];
}

// ---- the sentence --------------------------------------------------------------------------------

/** @param {View} view */
function sentence(view) {
  const { header, across } = view;
  const line = spokenLine("says");
  const queries = header.said?.map(([label]) => label);
  const special = header.said?.map(([, is]) => is);
  const above = across && strip(view, ROW, queries, special, "Target");
  const below = strip(
    view,
    across ? COLUMN : ROW,
    header.keys,
    header.special,
    across ? "Source" : "",
  );
  // The keys in the colours of a row; between two texts also the target in the colours of a column.
  view.tint = (query, key = -1) => {
    below.tint(query >= 0 ? (k) => [query, k] : null);
    if (across) above.tint(key >= 0 ? (q) => [q, key] : null);
    line.replaceChildren(...said(view, query, key));
  };
  return make("div", "sentence", above && above.box, below.box, line);
}

// A line of tokens to choose from. tint(cell): each token in the colour of the cell [row, column] that
// stands for it, or in none.
/** @param {View} view */
function strip(view, axis, labels, special, title) {
  const { box, list } = chips(labels, {
    about: `${title ? `${title} tokens` : "Tokens"}. Arrow keys move, Enter chooses one.`,
    className: `tokens ${axis === ROW ? "rows" : "columns"}`,
    focus: `token ${axis}`,
    held: view.held[axis],
    late: view.late,
    special,
    choose: (at) => hold(view, axis, at),
    look: (at) => look(view, at < 0 ? null : axis === ROW ? [at, -1] : [-1, at]),
  });
  box.onkeydown = (event) => {
    const held = view.held[ROW] >= 0 ? ROW : COLUMN;
    if (event.key === "Escape" && plainKey(event) && view.held[held] >= 0)
      hold(view, held, view.held[held]);
  };
  const colour = (cell) =>
    list.forEach((token, at) => {
      const [q, k] = cell ? cell(at) : [0, 0];
      const may = !cell || free(view, q, k);
      tint(token, cell && may ? word(view, q, k) : undefined);
      token.classList.toggle("no", !may);
      token.setAttribute("aria-pressed", `${at === view.held[axis]}`);
    });
  return { box: make("div", "strip", title && make("span", "axis", title), box), tint: colour };
}

// The line under the tokens: a cell, a row or a column in words.
/** @param {View} view */
function said(view, query, key) {
  const { header, n, across, hidden } = view;
  const [q, k] = view.over || [-1, -1];
  const rest = (at) => (hidden ? `hidden ${share(hidden[at])}` : "");
  if (q >= 0 && k >= 0) {
    const [from, to] = [named(header.queries[q]), named(header.keys[k])];
    const weight = make("strong", free(view, q, k) ? "" : "no", value(view, q, k));
    const [i, j] = [numberOf(view, ROW, q), numberOf(view, COLUMN, k)];
    const after = hidden ? `   (${rest(q)})` : "";
    return across
      ? [from, ` ${i}  attends to  `, to, ` ${j}   `, weight, after]
      : ["query ", from, ` ${i}  →  key `, to, ` ${j}   `, weight, after];
  }
  if (query >= 0) {
    const list = row(view, query);
    const best = strongest(list, 4).filter((at) => free(view, query, at));
    return [
      named(header.queries[query]),
      " attends to ",
      ...listed(
        best,
        (at) => header.keys[at],
        (at) => list[at].toFixed(2),
      ),
      hidden ? `,  ${rest(query)}` : "",
    ];
  }
  if (key >= 0) {
    const list = header.queries.map((_, at) => view.weight[at * n + key]);
    return [
      named(header.keys[key]),
      " is attended to by ",
      ...listed(
        strongest(list, 4),
        (at) => header.queries[at],
        (at) => list[at].toFixed(2),
      ),
    ];
  }
  return [header.hint];
}

// ---- evidence and file --------------------------------------------------------------------------

/** @param {View} view */
function evidence(view) {
  const { header, n } = view;
  const cells = header.evidence.map(([q, k]) => {
    const [on, off] = [() => look(view, [q, k]), () => look(view, null)];
    return make(
      "button",
      {
        class: "small",
        data: { focus: `evidence ${q} ${k}` },
        onclick: () => open(view, q, k),
        onmouseenter: on,
        onfocus: on,
        onmouseleave: off,
        onblur: off,
      },
      named(header.queries[q]),
      view.across ? " attends to " : " → ",
      named(header.keys[k]),
      ` ${view.weight[q * n + k].toFixed(2)}`,
    );
  });
  return make("p", "evidence", cells.length > 0 && "Strongest: ", ...cells);
}

// The matrix with its labels, scale and caption: it says what it is without the page around it.
/** @param {View} view @param {import("./theme.js").Look} look */
function drawing(view, look) {
  const { header, n, hidden } = view;
  const [left, rows] = [130, header.queries.length];
  const cell = Math.max(12, Math.min(36, 560 / n));
  const side = left + n * cell + 16;
  const width = Math.max(side + (hidden ? 84 : 8), 640);
  // Between two texts the caption's lines are longer, and both texts have to fit.
  const head = {
    title: header.title,
    caption: header.caption,
    width,
    longest: view.across ? 5 : 9,
    most: 40,
  };
  return paper(look, head, (top) => {
    const y = top + 76;
    const shares = [...(hidden || [])].map((part, q) => {
      const at = y + (q + 0.5) * cell;
      const bar = { x: side, y: at - cell * 0.35, width: 24 * part, height: cell * 0.7 };
      return tag("rect", { ...bar, "fill-opacity": 0.35 }) + text(side + 28, at + 4, share(part));
    });
    const [low, high] = ends(
      header.scale,
      header.log,
      header.scale === "head" ? view.peak.toFixed(3) : undefined,
    );
    const matrix = plate(look, {
      x: left,
      y,
      wide: cell,
      rows: header.queries,
      columns: header.keys,
      hatch: Boolean(view.permitted),
      word: (at) => coloured(view, at, look.one),
    });
    const foot = y + rows * cell + 24;
    return [
      [
        text(16, y - 8, `${view.sides[0]} ↓  ${view.sides[1]} →`, { "font-size": 11 }),
        matrix,
        hidden ? text(side, y - 8, "hidden") : "",
        ...shares,
        scaleBar(look, look.one, left + 60, foot, [low, high]),
      ].join(""),
      foot + 32,
    ];
  });
}
