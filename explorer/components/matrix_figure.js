// @ts-check
// A matrix drawn by a pen: cells of colours, or a word in each; a large one is left to a pane.

import { fixed, num } from "./number_format.js";
import { omitted } from "./omissions.js";
import { inkOn, wordAt } from "./theme.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** A matrix, and what a linked picture of one head adds: the column that is selected, colours and texts of its own, and what is under the pointer.
 * @typedef {import("./figure_types").Matrix & { column?: number, tints?: any, cache?: any, ends?: string[], scrolls?: boolean, longest?: number, named?: number[][], over?: any, bring?: any }} Matrix */

/** The text of a framed cell. @type {import("./draw.js").TextStyle} */
const MARKED = { size: 0.85, bold: true, anchor: "middle", halo: true };

const TALL = 5; // letters of height of a matrix on a slide, where its rows are no higher
const PITCH = 0.94; // type sizes between two lines whose letters do not touch
const CALM = 1.25; // the same on paper, where no pointer reads what is between
const [FLAT, PAGE] = [1.5, 34]; // letters of a row of a paper at most, and of all rows, which stand on a page with others

/** Whether a name is a number, as on an axis. @param {string} name */
export const isTick = (name) => /^[\d.,−-]*$/.test(name);

/**
 * Which names of rows or columns are written and where their middles are: those that are marked and, while they
 * have room, those that a title names, each as near to its own as the others allow; of the rest those between.
 * @param {Set<number>} marked @param {number[]} wanted @param {string[]} all @param {number} size of a row @param {number} pitch of two names
 */
function named(marked, wanted, all, size, pitch) {
  const middle = (/** @type {number} */ at) => (at + 0.5) * size;
  const room = Math.max(marked.size, Math.floor((all.length * size) / pitch));
  const own = [...new Set([...marked, ...wanted])]
    .filter((at) => at < all.length)
    .slice(0, room)
    .sort((a, b) => a - b);
  const places = own.map(middle);
  places.forEach(
    (place, i) => (places[i] = Math.max(place, i ? places[i - 1] + pitch : -Infinity)),
  );
  const most = Math.max(all.length * size - pitch / 2, (own.length - 0.5) * pitch);
  places.reduceRight((end, place, i) => (places[i] = Math.min(place, end)) - pitch, most);
  const list = new Map(own.map((at, i) => [at, places[i]]));
  const skip = every(size, pitch);
  all.forEach((_, at) => {
    const isFree =
      at % skip === 0 && places.every((place) => Math.abs(place - middle(at)) >= pitch - 0.01);
    if (!list.has(at) && isFree) list.set(at, middle(at));
  });
  return list;
}

/** Where the text of a framed cell covers no other: in its middle, where that holds it, beside it, below it or above it. @param {Pen} pen @param {string} text @param {number[]} middle @param {number[]} size of the cell @param {number} most the right end */
function free(pen, text, [x, y], [wide, high], most) {
  const by = high / 2 + 0.5 * pen.type(MARKED.size ?? 1);
  const aside = wide / 2 + pen.width(text, MARKED) / 2 + 0.3 * pen.letter;
  const around = [
    [x + aside, y],
    [x - aside, y],
    [x, y + by],
    [x, y - by],
  ];
  const holds = pen.width(text, MARKED) <= 1.2 * wide;
  return (holds ? [[x, y], ...around] : [...around, [x, y]]).find(([a, b]) => {
    const box = pen.box(a, b, text, MARKED);
    return box[2] <= most && pen.isFree(box);
  });
}

const BAR = [1, 6]; // letters of the bar of a scale

/** What rows and columns are, and the scale of colours, as far right as the cells or as both need. @param {Pen} pen @param {Uint32Array} words @param {Box} box @param {number} wide of names and cells @param {string} side @param {string[]} ends */
function legendOf(pen, words, { x, y, width }, wide, side, [low, high]) {
  const { letter } = pen;
  const style = { size: 0.8 };
  const numbers = pen.width(low, style) + pen.width(high, style) + 12;
  const named = side ? pen.width(side, style) + letter : 0;
  const bar = Math.max(BAR[0], Math.min(BAR[1], (width - numbers - named) / letter));
  pen.edge = x + Math.min(width, Math.max(wide, named + numbers + bar * letter));
  pen.scale(pen.edge, y + 0.5 * letter, words, low, high, bar);
  const room = pen.edge - x - numbers - bar * letter - 0.3 * letter;
  if (side) pen.text(x, y + 0.5 * letter, side, { ...style, alpha: 0.75, room });
}

/** Whether text at these places has room beside each other: keep every so many. @param {number} step @param {number} size */
const every = (step, size) => Math.max(1, Math.ceil(size / step));

/** How far along its colours a value of a matrix stands, 0 to 1. @param {Matrix} figure @param {number} value */
function shareOf({ low, high, signed, log }, value) {
  if (signed) return (value / (high || 1) + 1) / 2;
  if (log) return Math.log(Math.max(value, low) / low) / Math.log(high / low || 2);
  return (value - low) / (high - low || 1);
}

/** @param {Pen} pen @param {Matrix} figure @param {Box} box */
export function matrix(pen, figure, { x, y, width, height }) {
  if (figure.words?.length) return wordmatrix(pen, figure, { x, y, width, height });
  const { rows, columns, values, low, high, signed, sides, missing, digits, unit } = figure;
  const marks = markedIn(figure);
  const {
    selected = -1,
    column: pinned = -1,
    wide: stretched,
    tints,
    cache,
    ends: endTexts,
    scrolls,
  } = figure;
  const { letter, look } = pen;
  const [m, n] = [rows.length, columns.length];
  const words = signed ? look.two : look.one;
  const share = (/** @type {number} */ cell) => tints?.[cell] ?? shareOf(figure, values[cell]);
  const longestName = pen.least
    ? Math.min(Math.max(5 * letter, 0.3 * width), 7 * letter)
    : 8 * letter;
  const widest = (/** @type {string[]} */ list) =>
    Math.min(
      figure.longest ? figure.longest * letter : longestName,
      Math.max(letter, ...list.map((each) => pen.width(each, { size: 0.9 }))),
    );
  const side = sides[0] ? pen.width(`${sides[0]} ↓`, { size: 0.8 }) : 0;
  const down = Math.max(side, widest(rows)) + 0.5 * letter;
  const broad = Math.min((width - down) / n, 6 * letter);
  const fit = widest(columns) < broad - 0.4 * letter;
  const upright = stretched && (fit || columns.every(isTick)); // names above their columns
  const across = upright ? 1.4 * letter : widest(columns) + 0.5 * letter;
  const legend = 1.6 * letter;
  const pane = pen.scrolls && scrolls && (width - down) / n < READABLE * letter;
  const beside = pane ? 0 : 0.4 * letter; // for the name of a narrow last column
  const roomX = pane ? READABLE * letter : (width - down - beside) / n;
  const least = pen.least ? Math.max(2, Math.min(0.9, TALL / m) * letter) : 2; // of a row
  const spare = pen.least ? 0.5 * letter : 0;
  const roomY = pane
    ? roomX
    : height
      ? Math.max(least, (height - across - legend - spare) / m)
      : pen.isPaper && stretched
        ? Math.min(FLAT, PAGE / m) * letter
        : Infinity;
  const texts = marks.map((/** @type {any[]} */ [, , text]) =>
    text ? pen.width(text, MARKED) + 0.5 * letter : 0,
  );
  const shape = n < m / 3 ? 4 : 1; // how much wider than high a cell may be
  const own = Math.min(3.2 * letter, Math.max(roomY, 0.4 * letter) * shape);
  const most = stretched ? 6 * letter : Math.max(own, ...texts);
  const wide = Math.min(roomX, most);
  const high1 = Math.min(roomY, stretched ? Infinity : wide, 2.6 * letter);
  const [left, top] = [x + down, y + legend + across];
  const area = [left, top, n * wide, m * high1];
  const ends =
    endTexts || [signed ? -high : low, high].map((value) => `${num(value, 2)}${unit || ""}`);
  const aside = sides[1] ? `${sides[1]} →` : "";
  legendOf(pen, words, { x, y, width }, down + Math.max(area[2], 9 * letter), aside, ends);
  if (sides[0])
    pen.text(x, y + legend + across - 0.9 * letter, `${sides[0]} ↓`, {
      size: 0.8,
      alpha: 0.75,
      room: down,
    });
  const marked = [0, 1].map(
    (which) => new Set(marks.map((/** @type {any[]} */ mark) => mark[which])),
  );
  if (selected >= 0) marked[0].add(selected);
  if (pinned >= 0) marked[1].add(pinned);
  const size = pane ? 0.75 : 0.9;
  const pitch = (pen.screen || pen.least ? PITCH : CALM) * pen.type(size);
  const [wantedY, wantedX] = figure.named || [[], []];
  const [atX, atY] = [
    named(marked[1], wantedX, columns, wide, upright && !fit ? widest(columns) + letter : pitch),
    named(marked[0], wantedY, rows, high1, pitch),
  ];
  if (!isRead(pen)) unnamed(pen, rows, atY.size, columns, atX.size);
  const heads = () => {
    for (const [at, place] of atX) {
      const bold = marked[1].has(at);
      /** @type {any} */
      const style = upright ? { anchor: "middle" } : { turn: -90, room: across };
      pen.text(left + place, top - (upright ? 0.7 : 0.35) * letter, columns[at], {
        size,
        bold,
        ...style,
      });
    }
  };
  const names = () => {
    for (const [at, place] of atY)
      pen.text(left - 0.35 * letter, top + place, rows[at], {
        size,
        anchor: "end",
        room: down - 0.3 * letter,
        bold: marked[0].has(at),
      });
  };
  const id = `hatch-${Math.round(left)}-${Math.round(top)}`;
  const back = () => {
    if (missing) hatch(pen, id);
    pen.rect(area[0], area[1], area[2], area[3], {
      fill: missing ? `url(#${id})` : "none",
      stroke: look.border,
    });
    const word = (/** @type {number} */ cell) =>
      Number.isNaN(values[cell]) ? undefined : wordAt(words, share(cell));
    pen.cells(area, m, n, word, cache && (cache.images ||= {}));
    const framed = new Set(marks.map((/** @type {any[]} */ [row, column]) => row * n + column));
    const labelled = new Set(
      marks.map((/** @type {any[]} */ [row, column, text]) => text && row * n + column),
    );
    const numbers = [signed ? -high : low, high].map((each) => fixed(each, digits));
    const longest =
      Math.max(...numbers.map((each) => pen.width(each, { size: 0.8 }))) + 0.5 * letter;
    if (high1 >= 1.3 * letter && wide >= Math.max(2.3 * letter, longest))
      for (let cell = 0; cell < m * n; cell++) {
        if (Number.isNaN(values[cell]) || labelled.has(cell)) continue;
        if (pen.screen && !framed.has(cell)) continue; // the others are read by pointing at them
        const fill = inkOn(wordAt(words, share(cell)));
        pen.text(
          left + ((cell % n) + 0.5) * wide,
          top + (Math.floor(cell / n) + 0.5) * high1,
          fixed(values[cell], digits),
          { size: 0.8, anchor: "middle", fill },
        );
      }
  };
  const front = () => {
    /** @type {string[]} */
    const unwritten = [];
    const line = (/** @type {number[]} */ box, width = 1.5) =>
      pen.rect(box[0], box[1], box[2], box[3], {
        fill: "none",
        stroke: look.ink,
        "stroke-width": width,
      });
    const across = (/** @type {number} */ row) => [left, top + row * high1, area[2], high1];
    const along = (/** @type {number} */ column) => [left + column * wide, top, wide, area[3]];
    if (selected >= 0) line(across(selected));
    if (pinned >= 0) line(along(pinned));
    if (figure.over?.[0] >= 0) line(across(figure.over[0]), 0.75);
    if (figure.over?.[1] >= 0) line(along(figure.over[1]), 0.75);
    for (const [row, column, text] of marks) {
      const place = [left + column * wide, top + row * high1];
      pen.rect(place[0], place[1], wide, high1, {
        fill: "none",
        stroke: look.paper,
        "stroke-width": Math.max(4, letter / 3),
      });
      pen.rect(place[0], place[1], wide, high1, {
        fill: "none",
        stroke: look.primary,
        "stroke-width": Math.max(2, letter / 6),
      });
      const spot =
        text &&
        free(pen, text, [place[0] + wide / 2, place[1] + high1 / 2], [wide, high1], x + width);
      if (spot) pen.text(spot[0], spot[1], text, MARKED);
      else if (text) unwritten.push(text);
    }
    if (unwritten.length)
      pen.omitted.push({
        what: "numbers",
        shown: marks.length - unwritten.length,
        all: marks.length,
        titles: unwritten,
      });
  };
  const read = () => pen.screen && readable(pen, figure, area);
  if (pane) {
    const mark = marks[0] || figure.bring;
    pen.pane = {
      box: [left, top, down, across, ...area.slice(2)],
      ...{ wide, tall: high1, mark, rows: pen.apart(names), columns: pen.apart(heads) },
      ...{ back: pen.apart(back), front: pen.apart(front), over: pen.apart(read), cells: () => "" },
    };
    return legend;
  }
  for (const part of [heads, names, back, front, read])
    cache && pen.screen ? pen.group(part) : part();
  return legend + across + area[3] + 0.5 * letter;
}

/** Names that are not written: on a slide they count together, on paper it is said of which side. Numbers of an axis are not missed. @param {Pen} pen @param {string[]} rows @param {number} down how many of them are named @param {string[]} columns @param {number} across how many of those */
function unnamed(pen, rows, down, columns, across) {
  const [own, other] = [rows, columns].map((all) => (all.every(isTick) ? 0 : all.length));
  const shown = [own && down, other && across];
  if (pen.least) pen.omitted.push(...omitted(["names", shown[0] + shown[1], own + other]));
  else
    pen.omitted.push(...omitted(["row_names", shown[0], own], ["column_names", shown[1], other]));
}

/** The marks of a matrix, and as marks the cells to whose numbers formulas come, with these. @param {Matrix} figure @returns {[number, number, string][]} */
function markedIn({ marks, framed = [] }) {
  const isAt = (/** @type {any[]} */ one, /** @type {any[]} */ other) =>
    one[0] === other[0] && one[1] === other[1];
  /** @type {[number, number, string][]} */
  const own = marks.map((mark) => [
    mark[0],
    mark[1],
    mark[2] || framed.find((each) => isAt(each, mark))?.[2] || "",
  ]);
  return [...own, ...framed.filter((each) => !marks.some((mark) => isAt(each, mark)))];
}

/** Whether each cell says its names where it is pointed at: on a page, not on a slide or in a file. @param {Pen} pen */
const isRead = (pen) => pen.screen && !pen.least;

const READABLE = 0.8; // letters of a cell whose name can be read
const WORD = 3; // letters of a cell of a slide whose word is read
const LEAST = 3.8; // letters of a cell with a word in it, where it can scroll
const MOST = 8;

/** A matrix with a word in each cell. Where it may scroll, names and cells are left to a pane. @param {Pen} pen @param {Matrix} figure @param {Box} box */
function wordmatrix(pen, figure, { x, y, width, height }) {
  const { rows, columns, values, low, high, words, bold, pale = [], sides, unit } = figure;
  const marks = markedIn(figure);
  const { letter, look } = pen;
  const [m, n] = [rows.length, columns.length];
  const widest = Math.max(
    ...rows.map((/** @type {string} */ row) => pen.width(row, { size: 0.9, bold: true })),
  );
  const down = Math.min(9 * letter, 0.35 * width, widest + 0.7 * letter);
  const [legend, across] = [1.6 * letter, 1.7 * letter];
  const room = (width - down - 2) / n;
  const wide = Math.max(pen.scrolls ? LEAST * letter : 0, Math.min(room, MOST * letter));
  const fits = ((height ?? Infinity) - legend - across - 0.5 * letter) / m;
  const least = pen.least ? 1.15 : pen.scrolls ? 1.05 : 0.4;
  const tall = Math.max(least * letter, Math.min(1.65 * letter, fits));
  const end = (/** @type {number} */ value) => `${num(value, 5)}${unit}`;
  const aside = sides.filter(Boolean).join(" ↓, ") + (sides[1] ? " →" : "");
  legendOf(pen, look.one, { x, y, width }, down + Math.max(n * wide, 9 * letter), aside, [
    end(low),
    end(high),
  ]);
  const [left, top] = [x + down, y + legend + across];
  const [atRow, atColumn] = [0, 1].map(
    (which) => new Set(marks.map((/** @type {any[]} */ mark) => mark[which])),
  );
  const [skipX, skipY] = [every(wide, 1.4 * letter), every(tall, 0.9 * letter)];
  let written = 0; // names of columns
  const heads = () => {
    const styleOf = (/** @type {number} */ at) => ({
      size: 0.85,
      anchor: /** @type {"middle"} */ ("middle"),
      bold: atColumn.has(at),
    });
    const own = wide * skipX - 4;
    const isWide = (/** @type {number} */ at) => pen.width(columns[at], styleOf(at)) > own;
    const spotOf = (/** @type {number} */ at, /** @type {string} */ label) => [
      Math.min(left + (at + 0.5) * wide, left + n * wide - pen.width(label, styleOf(at)) / 2),
      top - 0.85 * letter,
    ];
    const boxOf = (/** @type {number} */ at, /** @type {string} */ label) => {
      const [across, down] = spotOf(at, label);
      return pen.box(across, down, label, styleOf(at));
    };
    // First the names of marked columns, then those that cover none of them; a name that is wider than
    // its column last, whole where its neighbours leave the room.
    for (const at of [...columns.keys()].sort(
      (a, b) => +atColumn.has(b) - +atColumn.has(a) || +isWide(a) - +isWide(b) || a - b,
    )) {
      if (at % skipX && !atColumn.has(at)) continue;
      const box = boxOf(at, columns[at]);
      const isWhole = box[0] >= x && pen.isFree([box[0] - 3, box[1], box[2] + 3, box[3]]);
      const label = isWhole ? columns[at] : pen.cut(columns[at], own, styleOf(at));
      if (!atColumn.has(at) && !pen.isFree(boxOf(at, label))) continue;
      const spot = spotOf(at, label);
      pen.text(spot[0], spot[1], columns[at], {
        ...styleOf(at),
        room: isWhole ? undefined : own,
      });
      written++;
    }
  };
  let named = 0; // rows
  const names = () =>
    rows.forEach((/** @type {string} */ label, /** @type {number} */ at) => {
      if (at % skipY && !atRow.has(at)) return;
      named++;
      pen.text(left - 0.5 * letter, top + (at + 0.5) * tall, label, {
        size: 0.9,
        anchor: "end",
        room: down - 0.5 * letter,
        bold: atRow.has(at),
      });
    });
  const area = [left, top, n * wide, m * tall];
  const colour = (/** @type {number} */ cell) =>
    Number.isNaN(values[cell]) || pale[cell] > 0
      ? undefined
      : wordAt(look.one, shareOf(figure, values[cell]));
  const back = () => pen.cells(area, m, n, colour);
  const isLegible = wide >= (pen.least ? WORD : 2) * letter && tall >= letter;
  if (!isLegible) pen.omitted.push({ what: "cells", shown: 0, all: n * m });
  let cut = 0; // words of a paper that are longer than their cells
  const cells = (/** @type {number} */ from, /** @type {number} */ to) => {
    for (let row = 0; row < m && isLegible; row++)
      for (let column = from; column <= to; column++) {
        const cell = row * n + column;
        const shade = colour(cell);
        const fill = shade === undefined ? undefined : inkOn(shade);
        if (!words[cell]) continue;
        /** @type {import("./draw.js").TextStyle} */
        const style = { size: 0.85, anchor: "middle", room: wide - 4, bold: bold[cell] > 0 };
        const fits = (wide - 4) / pen.width(words[cell], style);
        if (pen.isPaper && fits < 1) style.size = 0.85 * fits; // as far as type may be small
        if (pen.isPaper && pen.width(words[cell], style) > wide - 3) cut++;
        pen.text(left + (column + 0.5) * wide, top + (row + 0.5) * tall, words[cell], {
          ...style,
          alpha: pale[cell] > 0 ? 0.6 : undefined,
          fill,
        });
      }
  };
  const front = () => {
    const thick = Math.max(2, letter / 6);
    const inset = tall < 1.5 * letter ? -1 : 1; // a low cell is framed from outside
    for (const [row, column] of marks)
      for (const [stroke, size] of [
        [look.paper, 2.4 * thick],
        [look.primary, thick],
      ])
        pen.rect(
          left + column * wide + inset,
          top + row * tall + inset,
          wide - 2 * inset,
          tall - 2 * inset,
          { fill: "none", stroke, "stroke-width": size },
        );
    if (pen.screen) readable(pen, figure, area);
  };
  if (pen.scrolls) {
    pen.pane = {
      box: [left, top, down, across, ...area.slice(2)],
      ...{ wide, tall, mark: marks[0], rows: pen.apart(names), columns: pen.apart(heads) },
      back: pen.apart(back),
      front: pen.apart(front),
      cells: (from, to) => pen.apart(() => cells(from, to)),
    };
    return legend;
  }
  [heads, names, back, () => cells(0, n - 1), front].forEach((draw) => draw());
  // On a slide the rows are cut to those that have room.
  if (!isRead(pen)) unnamed(pen, pen.least ? [] : rows, named, columns, written);
  if (cut) pen.omitted.push({ what: "cut", shown: n * m - cut, all: n * m });
  return legend + across + area[3] + 0.5 * letter;
}

/** What of a matrix is pressed, and read with the arrow keys. @param {Pen} pen @param {Matrix} figure @param {number[]} area */
function readable(pen, { rows, columns, marks, select, selected = -1 }, area) {
  const first = marks[0] || [Math.max(0, selected), 0];
  pen.rect(area[0], area[1], area[2], area[3], {
    class: "cells",
    fill: "transparent",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "matrix",
    "aria-label": `${rows.length} by ${columns.length} matrix; arrow keys read its cells`,
    "data-cells": JSON.stringify([rows.length, columns.length, first[0], first[1]]),
    "data-start": JSON.stringify([rows.length, columns.length, first[0], first[1]]),
    "data-select": JSON.stringify(select),
  });
}

/** @param {Pen} pen @param {string} id */
function hatch(pen, id) {
  const size = { width: 6, height: 6, patternUnits: "userSpaceOnUse" };
  const path = `<path d="M0 0V6" stroke="${pen.look.ink}" stroke-opacity="0.25"/>`;
  pen.put("pattern", { id, ...size, patternTransform: "rotate(45)" }, path);
}
