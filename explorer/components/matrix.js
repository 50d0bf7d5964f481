// @ts-check
// Matrices of the same rows and columns side by side under one crosshair, and one row of them as the
// tinted sentence.

import { bus } from "./bus.js";
import { context, legend, plane, raster } from "./matrix_canvas.js";
import style from "./matrix.css.js";
import { fitted, hear, letter, make, mount, put, redraw } from "./mount.js";
import { brief, exact, short, spokenLine, weightText, within } from "./number_format.js";
import { BOLD, offer, paper, plate, scaleBar, tag, text } from "./svg_export.js";
import { inkOn, wordAt } from "./theme.js";
import { chips, listed, named, strongest, tint } from "./tokens.js";
import { between, numbers, unfold } from "./codec.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const NARROWEST = 11; // pixels of a cell at which its labels can still be read
const WIDEST = 72;
const NUMBERS_FROM = 38; // pixels of a cell from which its number is written in it
const MOST_SHARP = 100_000; // cells that are painted large enough to be marked

export default mount("matrices", style, (view) => {
  const { header, blocks } = view;
  const single = header.kind === "row";
  if (view.fresh) view.numbers = single ? [numbers(blocks, 0)] : arrived(view);
  if (!view.same) (single ? sentence : panels)(view);
  // The matrices frame the row that the sentence shows; the sentence says which one that is.
  if (single) bus.tell({ matrix: { picture: header.picture, row: header.chosen } });
  else hear(view, ({ matrix }) => matrix?.picture === header.token && view.mark(matrix.row));
});

/** Each panel's numbers, however they came. @param {View} view */
function arrived(view) {
  const { header, blocks } = view;
  /** @type {(panel: any, at: number) => { weight: Float32Array, unknown?: any }} */
  const read = ({ coded, less }, at) => {
    if (less) return between(parts[less[0]], parts[less[1]]);
    return coded ? unfold(blocks, `${at} `) : { weight: numbers(blocks, at) };
  };
  const parts = [];
  header.panels.forEach((panel, at) => parts.push(read(panel, at)));
  view.unknown = parts.map((part) => part.unknown);
  return parts.map((part) => part.weight);
}

/** @param {Look} look */
function wordOf(look, { low, high }, value) {
  if (Number.isNaN(value)) return undefined;
  return wordAt(low < 0 ? look.two : look.one, high > low ? (value - low) / (high - low) : 0);
}

/** The number of a row (0) or a column (1), where some are left out. */
const place = ({ places }, side, at) => places[side]?.[at] ?? at;

const say = ({ digits, missing }, value) =>
  Number.isNaN(value) ? missing || "no number" : exact(value, digits);

/** A panel's cell in figures. @param {View} view */
function valueOf({ header, blocks, numbers, unknown }, panel, at) {
  const value = numbers[panel][at];
  const { coded, less } = header.panels[panel];
  if (unknown[panel]?.[at]) return (less ? within : weightText)(value, unknown[panel][at]);
  const known = Number.isNaN(value) || coded || less || blocks[`v${panel}`];
  return (known ? "" : "≈ ") + say(header, value);
}

// ---- matrices ------------------------------------------------------------------------------------

/** @param {View} view */
function panels(view) {
  const { header, blocks } = view;
  const [m, n] = [header.rows.length, header.columns.length];
  const drawn = header.panels.map((panel, at) => ({ ...panel, at })).filter((one) => one.drawn);
  const line = spokenLine("value");
  const marked = new Set(header.marks.map(([r, c]) => r * n + c));
  const about = header.panels.map((panel) =>
    header.panels.length > 1 ? ` · ${panel.title} ` : " ",
  );
  const rest = [
    "Point at a cell to read it",
    header.choose && `; click a row to open its ${header.sides[0]}`,
    ".",
    header.marks.length > 0 && m * n > MOST_SHARP && " Marks are left out at this size.",
  ].filter(Boolean);
  view.read = (cell) => {
    list.forEach((each) => each.over(cell || [-1, -1]));
    if (!cell) return line.replaceChildren(...rest);
    const [r, c] = cell;
    const values = about.flatMap((title, at) => {
      return [title, make("strong", "", valueOf(view, at, r * n + c))];
    });
    const which = [
      ...[named(header.rows[r]), ` (${place(header, 0, r)}) → `],
      ...[named(header.columns[c]), ` (${place(header, 1, c)})`],
    ];
    line.replaceChildren(...which, ...values, marked.has(r * n + c) ? " · marked" : "");
  };
  view.mark = (at) => {
    view.held = at >= 0 && at < m ? at : -1;
    list.forEach((each) => each.hold(view.held));
    view.root.dataset.row = at;
  };
  /** @type {any[]} */
  const list = drawn.map((panel) => one(view, panel, m, n, drawn.length > 1));
  line.replaceChildren(...rest);
  const box = make(
    "div",
    { class: "panels", vars: { panels: drawn.length } },
    ...list.map((each) => each.box),
  );
  offer(view, "Picture", (look) => sheet(view, drawn, look));
  redraw(view, [box, line]);
  fitted(view, view.root, () => list.forEach((each) => each.fit()));
}

/** @param {View} view */
function one(view, panel, m, n, titled) {
  const { header } = view;
  const opens = header.choose ? ", Enter opens the row" : "";
  const choose = (row) => {
    if (!header.choose) return;
    view.mark(row);
    view.send("row", row);
  };
  const { scroll, left, top, canvas, marks, size, bring, sign } = plane({
    rows: header.rows,
    columns: header.columns,
    sides: header.sides,
    masked: Boolean(header.missing),
    focus: `panel ${panel.at}`,
    marks: ["held", "row", "column"],
    canvas: panel.title || header.title,
    about: `${panel.title || header.title}: ${header.sides[0]} down, ${header.sides[1]} across. Arrow keys move from cell to cell${opens}. The table has the same numbers.`,
    start: () => [Math.max(0, view.held ?? 0), 0],
    look: (cell, byKey) => {
      view.read(cell);
      if (cell && byKey) bring(cell);
    },
    open: ([row]) => choose(row),
    choose: (axis, at) => axis === 0 && choose(at),
    says: ([r, c]) => [valueOf(view, panel.at, r * n + c), header.rows[r], header.columns[c]],
  });
  const [held, row, column] = marks;
  const fold = make("button", {
    class: "small",
    data: { focus: `fold ${panel.at}` },
    onclick: () => {
      whole = !whole;
      fit();
    },
  });
  let whole = false;
  // Twice: names grow with the cells, and leave them less room.
  const fit = () => [1, 2].forEach(measured);
  const measured = () => {
    const room = scroll.clientWidth - (top.offsetLeft || 96) - 4;
    const tall = 32.5 * letter();
    const fitting = Math.min(room / n, Math.max(22, Math.min(WIDEST, tall / m)));
    const cell = whole ? fitting : Math.max(fitting, NARROWEST);
    size(cell);
    scroll.classList.toggle("whole", whole);
    fold.hidden = fitting >= NARROWEST;
    fold.textContent = whole ? "Readable size" : "Fit whole matrix";
    paint(view, panel, canvas, m, n, cell);
  };
  const at = (bar, place) => put(bar, { hidden: place < 0, vars: { at: place } });
  const names = (side, place, name) =>
    [...side.children].forEach((span, i) => span.classList.toggle(name, i === place));
  const over = ([r, c]) => {
    at(row, r);
    at(column, c);
    names(left, r, "on");
    names(top, c, "on");
  };
  const hold = (r) => {
    at(held, r);
    names(left, r, "pinned");
  };
  const scale = legend(
    panel.low < 0 ? view.look.two : view.look.one,
    short(panel.low),
    short(panel.high),
  );
  const box = make(
    "section",
    "panel",
    titled && panel.title && make("h4", "", panel.title),
    scroll,
    make("div", "foot", fold, sign, scale),
    panel.under && make("p", "under", panel.under),
  );
  return { box, fit, over, hold };
}

// Cells as pixels where there are many, else at the screen's own size, so that marks are sharp.
/** @param {View} view */
function paint(view, panel, canvas, m, n, cell) {
  const { header, look, root } = view;
  const values = view.numbers[panel.at];
  const word = (at) => wordOf(look, panel, values[at]);
  canvas.dataset.painted = header.token;
  const small = raster(m, n, word, m * n > MOST_SHARP ? canvas : undefined);
  if (small === canvas) return;
  const size = Math.max(8, Math.round(cell * (window.devicePixelRatio || 1)));
  put(canvas, { width: n * size, height: m * size });
  const pen = context(canvas);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (cell >= NUMBERS_FROM) {
    pen.font = `${Math.round(size * 0.3)}px ${getComputedStyle(root).fontFamily}`;
    [pen.textAlign, pen.textBaseline] = ["center", "middle"];
    values.forEach((value, at) => {
      const under = word(at);
      if (under === undefined) return;
      pen.fillStyle = inkOn(under);
      pen.fillText(brief(value), ((at % n) + 0.5) * size, (Math.floor(at / n) + 0.54) * size);
    });
  }
  for (const [r, c] of header.marks) {
    const under = word(r * n + c);
    pen.strokeStyle = under === undefined ? look.ink : inkOn(under);
    pen.lineWidth = Math.max(1, size / 12);
    pen.strokeRect((c + 0.14) * size, (r + 0.14) * size, size * 0.72, size * 0.72);
  }
}

// ---- the sentence --------------------------------------------------------------------------------

/** @param {View} view */
function sentence(view) {
  const { header } = view;
  const [values] = view.numbers;
  const line = spokenLine("value");
  const start = () => [named(header.label), ` ${header.says} `];
  const figure = (at) => (values[at] > 0 && values[at] < 0.005 ? "< 0.01" : brief(values[at]));
  const look = (at) =>
    at < 0
      ? line.replaceChildren(
          ...start(),
          ...listed(strongest(values, 4), (each) => header.columns[each], figure),
        )
      : line.replaceChildren(
          ...start(),
          named(header.columns[at]),
          ` (${place(header, 1, at)}) `,
          make("strong", "", say(header, values[at])),
        );
  const { box, list } = chips(header.columns, {
    about: `${header.title}. Arrow keys move from token to token${header.choose ? ", Enter opens one" : ""}.`,
    held: header.choose ? header.chosen : 0,
    special: header.special,
    dressed: (at) => ({
      "aria-pressed": header.choose ? at === header.chosen : undefined,
      "aria-label": `Token ${place(header, 1, at)}, ${header.columns[at]}: ${say(header, values[at])}`,
    }),
    choose: (at) => header.choose && view.send("row", at),
    look,
  });
  list.forEach((token, at) => {
    const word = wordOf(view.look, header, values[at]);
    tint(token, word);
    token.classList.toggle("no", word === undefined);
  });
  look(-1);
  redraw(view, [box, line], [".tokens"]);
}

// ---- the file ------------------------------------------------------------------------------------

/** @param {View} view @param {Look} look */
function sheet(view, drawn, look) {
  const { header } = view;
  const [m, n] = [header.rows.length, header.columns.length];
  const cell = Math.max(6, Math.min(32, 640 / Math.max(n, m)));
  const [left, above] = [130, 110];
  const wide = left + n * cell + 24;
  const width = Math.max(680, wide * drawn.length);
  return paper(look, { title: header.title, caption: header.caption, width }, (top) => {
    const y = top + above;
    const foot = y + m * cell + 22;
    const parts = drawn.flatMap((panel, place) => {
      const x = place * wide + left;
      const values = view.numbers[panel.at];
      const word = (at) => wordOf(look, panel, values[at]);
      const marks = header.marks.map(([r, c]) => {
        const under = word(r * n + c);
        return tag("rect", {
          x: x + (c + 0.14) * cell,
          y: y + (r + 0.14) * cell,
          width: cell * 0.72,
          height: cell * 0.72,
          fill: "none",
          stroke: under === undefined ? look.ink : inkOn(under),
          "stroke-width": 1.5,
        });
      });
      const words = panel.low < 0 ? look.two : look.one;
      return [
        text(x - left + 16, top + 4, panel.title, { "font-size": 14, ...BOLD }),
        plate(look, { x, y, wide: cell, rows: header.rows, columns: header.columns, word }),
        ...marks,
        scaleBar(look, words, x, foot, [short(panel.low), short(panel.high)]),
        text(x - left + 16, foot + 34, panel.under.split("\n")[0], { "font-size": 13 }),
      ];
    });
    return [parts.join(""), foot + 50];
  });
}
