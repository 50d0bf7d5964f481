// @ts-check
// A matrix drawn by a pen: cells of colours, or a word in each; a large one is left to a pane.

import { fixed, num } from "./number_format.js";
import { inkOn, wordAt } from "./theme.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */

/** Whether text at these places has room beside each other: keep every so many. @param {number} step @param {number} size */
const every = (step, size) => Math.max(1, Math.ceil(size / step));

/** How far along its colours a value of a matrix stands, 0 to 1. @param {any} figure @param {number} value */
function shareOf({ low, high, signed, log }, value) {
  if (signed) return (value / (high || 1) + 1) / 2;
  if (log) return Math.log(Math.max(value, low) / low) / Math.log(high / low || 2);
  return (value - low) / (high - low || 1);
}

/** @param {Pen} pen @param {any} figure @param {Box} box */
export function matrix(pen, figure, { x, y, width, height }) {
  if (figure.words?.length) return wordmatrix(pen, figure, { x, y, width, height });
  const { rows, columns, values, low, high, signed, marks, sides, missing, digits, unit } = figure;
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
  const widest = (/** @type {string[]} */ list) =>
    Math.min(
      (figure.longest ?? 8) * letter,
      Math.max(letter, ...list.map((each) => pen.width(each, { size: 0.9 }))),
    );
  const side = sides[0] ? pen.width(`${sides[0]} ↓`, { size: 0.8 }) : 0;
  const down = Math.max(side, widest(rows)) + 0.5 * letter;
  const broad = Math.min((width - down) / n, 6 * letter);
  const upright = stretched && widest(columns) < broad - 0.4 * letter; // names above their columns
  const across = upright ? 1.4 * letter : widest(columns) + 0.5 * letter;
  const legend = 1.6 * letter;
  const pane = pen.scrolls && scrolls && (width - down) / n < READABLE * letter;
  const roomX = pane ? READABLE * letter : (width - down) / n;
  const least = pen.least ? 1.35 * letter : 2; // rows of a slide are read
  const spare = pen.least ? 0.5 * letter : 0;
  const roomY = pane ? roomX : height ? Math.max(least, (height - across - legend - spare) / m) : Infinity; // prettier-ignore
  const most = stretched ? 6 * letter : Math.min(3.2 * letter, Math.max(roomY, 0.4 * letter) * (n < m / 3 ? 4 : 1)); // prettier-ignore
  const wide = Math.min(roomX, most);
  const high1 = Math.min(roomY, stretched ? Infinity : wide, 2.6 * letter);
  const [left, top] = [x + down, y + legend + across];
  const area = [left, top, n * wide, m * high1];
  const ends =
    endTexts || [signed ? -high : low, high].map((value) => `${num(value, 2)}${unit || ""}`);
  pen.edge = x + Math.min(width, Math.max(down + area[2], down + 9 * letter));
  pen.scale(pen.edge, y + 0.5 * letter, words, ends[0], ends[1]);
  if (sides[0]) pen.text(x, y + legend + across - 0.9 * letter, `${sides[0]} ↓`, { size: 0.8, alpha: 0.75, room: down }); // prettier-ignore
  if (sides[1]) pen.text(x, y + 0.5 * letter, `${sides[1]} →`, { size: 0.8, alpha: 0.75 });
  const marked = [0, 1].map((which) => new Set(marks.map((/** @type {any[]} */ mark) => mark[which]))); // prettier-ignore
  if (selected >= 0) marked[0].add(selected);
  if (pinned >= 0) marked[1].add(pinned);
  const size = pane ? 0.75 : 0.9;
  const [skipX, skipY] = [every(wide, 1.05 * size * letter), every(high1, 1.05 * size * letter)];
  const named = (
    /** @type {Set<number>} */ set,
    /** @type {number} */ at,
    /** @type {number} */ skip,
  ) =>
    // prettier-ignore
    set.has(at) || (at % skip === 0 && ![...set].some((one) => Math.abs(one - at) < skip));
  const heads = () =>
    columns.forEach((/** @type {string} */ label, /** @type {number} */ at) => {
      if (!named(marked[1], at, skipX)) return;
      const bold = marked[1].has(at);
      /** @type {any} */
      const place = upright ? { anchor: "middle" } : { turn: -90, room: across };
      pen.text(left + (at + 0.5) * wide, top - (upright ? 0.7 : 0.35) * letter, label, { size, bold, ...place }); // prettier-ignore
    });
  const names = () =>
    rows.forEach((/** @type {string} */ label, /** @type {number} */ at) => {
      if (!named(marked[0], at, skipY)) return;
      const bold = marked[0].has(at);
      pen.text(left - 0.35 * letter, top + (at + 0.5) * high1, label, { size, anchor: "end", room: down, bold }); // prettier-ignore
    });
  const id = `hatch-${Math.round(left)}-${Math.round(top)}`;
  const back = () => {
    if (missing) hatch(pen, id);
    pen.rect(area[0], area[1], area[2], area[3], {
      fill: missing ? `url(#${id})` : "none",
      stroke: look.border,
    });
    const word = (/** @type {number} */ cell) => (Number.isNaN(values[cell]) ? undefined : wordAt(words, share(cell))); // prettier-ignore
    pen.cells(area, m, n, word, cache && (cache.images ||= {}));
    const labelled = new Set(marks.map((/** @type {any[]} */ [row, column, text]) => text && row * n + column)); // prettier-ignore
    const longest = pen.width(fixed(high, digits), { size: 0.8 }) + 0.5 * letter;
    if (high1 >= 1.3 * letter && wide >= Math.max(2.3 * letter, longest))
      for (let cell = 0; cell < m * n; cell++) {
        if (Number.isNaN(values[cell]) || labelled.has(cell)) continue;
        const fill = inkOn(wordAt(words, share(cell)));
        pen.text(left + ((cell % n) + 0.5) * wide, top + (Math.floor(cell / n) + 0.5) * high1, fixed(values[cell], digits), { size: 0.8, anchor: "middle", fill }); // prettier-ignore
      }
  };
  const front = () => {
    const line = (/** @type {number[]} */ box, width = 1.5) =>
      pen.rect(box[0], box[1], box[2], box[3], { fill: "none", stroke: look.ink, "stroke-width": width }); // prettier-ignore
    const across = (/** @type {number} */ row) => [left, top + row * high1, area[2], high1];
    const along = (/** @type {number} */ column) => [left + column * wide, top, wide, area[3]];
    if (selected >= 0) line(across(selected));
    if (pinned >= 0) line(along(pinned));
    if (figure.over?.[0] >= 0) line(across(figure.over[0]), 0.75);
    if (figure.over?.[1] >= 0) line(along(figure.over[1]), 0.75);
    for (const [row, column, text] of marks) {
      const place = [left + column * wide, top + row * high1];
      pen.rect(place[0], place[1], wide, high1, { fill: "none", stroke: look.paper, "stroke-width": Math.max(4, letter / 3) }); // prettier-ignore
      pen.rect(place[0], place[1], wide, high1, {
        fill: "none",
        stroke: look.primary,
        "stroke-width": Math.max(2, letter / 6),
      });
      // A text wider than its cell would cover its neighbour's.
      const fits = text && (wide - 0.2 * letter) / pen.width(text, { size: 1, bold: true });
      const size = Math.min(0.85, fits);
      if (size >= 0.55) pen.text(place[0] + wide / 2, place[1] + high1 / 2, text, { size, bold: true, anchor: "middle", halo: true }); // prettier-ignore
    }
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

const READABLE = 0.8; // letters of a cell whose name can be read
const LEAST = 3.8; // letters of a cell with a word in it, where it can scroll
const MOST = 8;

/** A matrix with a word in each cell. Where it may scroll, names and cells are left to a pane. @param {Pen} pen @param {any} figure @param {Box} box */
function wordmatrix(pen, figure, { x, y, width, height }) {
  const { rows, columns, values, low, high, words, bold, marks, sides, unit } = figure;
  const { letter, look } = pen;
  const [m, n] = [rows.length, columns.length];
  const widest = Math.max(...rows.map((/** @type {string} */ row) => pen.width(row, { size: 0.9, bold: true }))); // prettier-ignore
  const down = Math.min(9 * letter, 0.35 * width, widest + 0.7 * letter);
  const [legend, across] = [1.6 * letter, 1.7 * letter];
  const room = (width - down - 2) / n;
  const wide = Math.max(pen.scrolls ? LEAST * letter : 0, Math.min(room, MOST * letter));
  const fits = ((height ?? Infinity) - legend - across - 0.5 * letter) / m;
  const least = pen.least ? 1.3 : pen.scrolls ? 1.05 : 0.4;
  const tall = Math.max(least * letter, Math.min(1.65 * letter, fits));
  const end = (/** @type {number} */ value) => `${num(value, 5)}${unit}`;
  pen.edge = x + Math.min(width, down + Math.max(n * wide, 9 * letter));
  pen.scale(pen.edge, y + 0.5 * letter, look.one, end(low), end(high));
  pen.text(x, y + 0.5 * letter, sides.filter(Boolean).join(" ↓, ") + (sides[1] ? " →" : ""), { size: 0.8, alpha: 0.75 }); // prettier-ignore
  const [left, top] = [x + down, y + legend + across];
  const [atRow, atColumn] = [0, 1].map((which) => new Set(marks.map((/** @type {any[]} */ mark) => mark[which]))); // prettier-ignore
  const [skipX, skipY] = [every(wide, 1.4 * letter), every(tall, 0.9 * letter)];
  const heads = () =>
    columns.forEach((/** @type {string} */ label, /** @type {number} */ at) => {
      if (at % skipX && !atColumn.has(at)) return;
      pen.text(left + (at + 0.5) * wide, top - 0.85 * letter, label, { size: 0.85, anchor: "middle", room: wide * skipX - 4, bold: atColumn.has(at) }); // prettier-ignore
    });
  const names = () =>
    rows.forEach((/** @type {string} */ label, /** @type {number} */ at) => {
      if (at % skipY && !atRow.has(at)) return;
      pen.text(left - 0.5 * letter, top + (at + 0.5) * tall, label, { size: 0.9, anchor: "end", room: down - 0.5 * letter, bold: atRow.has(at) }); // prettier-ignore
    });
  const area = [left, top, n * wide, m * tall];
  const colour = (/** @type {number} */ cell) =>
    Number.isNaN(values[cell]) ? undefined : wordAt(look.one, shareOf(figure, values[cell]));
  const back = () => pen.cells(area, m, n, colour);
  const isLegible = wide >= 2 * letter && tall >= letter;
  const cells = (/** @type {number} */ from, /** @type {number} */ to) => {
    for (let row = 0; row < m && isLegible; row++)
      for (let column = from; column <= to; column++) {
        const cell = row * n + column;
        const shade = colour(cell);
        const fill = shade === undefined ? undefined : inkOn(shade);
        if (words[cell]) pen.text(left + (column + 0.5) * wide, top + (row + 0.5) * tall, words[cell], { size: 0.85, anchor: "middle", room: wide - 4, bold: bold[cell] > 0, fill }); // prettier-ignore
      }
  };
  const front = () => {
    const thick = Math.max(2, letter / 6);
    const inset = tall < 1.5 * letter ? -1 : 1; // a low cell is framed from outside
    for (const [row, column] of marks)
      for (const [stroke, size] of [[look.paper, 2.4 * thick], [look.primary, thick]]) // prettier-ignore
        pen.rect(left + column * wide + inset, top + row * tall + inset, wide - 2 * inset, tall - 2 * inset, { fill: "none", stroke, "stroke-width": size }); // prettier-ignore
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
  return legend + across + area[3] + 0.5 * letter;
}

/** What of a matrix is pressed, and read with the arrow keys. @param {Pen} pen @param {any} figure @param {number[]} area */
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
