// @ts-check
// Matrices and vectors as boxes in proportion: the factors of a product from left to right, the
// vectors of a network from one width to the next, and a state that is passed from word to word.

import { counted } from "./number_format.js";
import { channels, css, ramp, wordAt } from "./theme.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */

const [NAME, SIZE] = [1.4, 1.5]; // letters of height of a name above a box, and of a size below it
const [THIN, GAP] = [1.2, 0.7]; // letters of the thickness of a vector, and of the room around a sign
const TALL = 11; // letters of height of the tallest box, where there is no other limit
const STYLE = { size: 0.9, alpha: 0.8 };
const BOLD = { bold: true };
const PRINTED = { bold: true, size: 0.85, halo: true }; // the number of a frame, which is too small to hold it

/** The size of a matrix in words. @param {{ shape: number[] }} factor */
const size = ({ shape }) => shape.map(counted).join(" × ");

/** The colour of one of several equal parts: those of the theme, then the same ones darker. @param {Pen} pen @param {number} part */
function colourOf({ look }, part) {
  const own = look.categorical[part % look.categorical.length];
  const turn = Math.floor(part / look.categorical.length);
  const share = Math.min(0.75, 0.45 * turn);
  const [from, to] = [own, look.ink].map(channels);
  const mixed = from.map((each, i) => Math.round(each + (to[i] - each) * share));
  return `#${mixed.map((each) => each.toString(16).padStart(2, "0")).join("")}`;
}

/** Factors in lines of at most so many pixels, by the least room that each needs. @param {number[]} least @param {number} width */
function linesOf(least, width) {
  /** @type {number[][]} */
  const lines = [];
  let taken = Infinity;
  least.forEach((each, at) => {
    if (taken + each > width) [taken] = [0, lines.push([])];
    lines[lines.length - 1].push(at);
    taken += each;
  });
  return lines;
}

/** Matrices that are multiplied, from left to right, on one scale. @param {Pen} pen @param {any} figure @param {Box} box */
export function product(pen, { factors, framed = [] }, { x, y, width, height }) {
  const { letter } = pen;
  const texts = factors.map((/** @type {any} */ one) =>
    Math.max(
      pen.width(one.name, BOLD),
      pen.width(size(one), { ...BOLD, size: STYLE.size }),
      THIN * letter,
    ),
  );
  const signs = factors.map((/** @type {any} */ { sign }, /** @type {number} */ at) =>
    sign ? pen.width(sign, BOLD) + 2 * GAP * letter : at ? GAP * letter : 0,
  );
  const slot = (/** @type {number} */ at, /** @type {number} */ unit) =>
    Math.max(factors[at].shape[1] * unit, texts[at]);
  const lines = linesOf(
    factors.map((/** @type {any} */ _, /** @type {number} */ at) => signs[at] + texts[at]),
    width,
  );
  const thick = (/** @type {number} */ at, /** @type {number} */ unit) =>
    Math.max(factors[at].shape[0] * unit, THIN * letter);
  const tallest = (/** @type {number[]} */ line, /** @type {number} */ unit) =>
    Math.max(...line.map((at) => thick(at, unit)));
  const named = (/** @type {number[]} */ line) =>
    (NAME + (line.some((at) => factors[at].parts.length && !factors[at].down) ? 1.1 : 0)) * letter;
  const foot = (/** @type {number[]} */ line) =>
    (SIZE + (framed.some(([of]) => line.includes(of)) ? 1.1 : 0)) * letter;
  const most = height ? height - 0.5 * letter : Infinity;
  const fits = (/** @type {number} */ unit) => {
    const heights = lines.map((line) => named(line) + tallest(line, unit) + foot(line));
    const limit = Math.max(...lines.map((line) => tallest(line, unit)));
    return (
      heights.reduce((a, b) => a + b, 0) <= most &&
      (height || limit <= TALL * letter) &&
      lines.every((line) => sum(line.map((at) => signs[at] + slot(at, unit))) <= width)
    );
  };
  let [low, high] = [0, width];
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  let top = y;
  for (const line of lines) {
    const tall = tallest(line, low);
    const middle = top + named(line) + tall / 2;
    let left = x;
    for (const at of line) {
      const [factor, room] = [factors[at], slot(at, low)];
      if (factor.sign)
        pen.text(left + signs[at] / 2, middle, factor.sign, { ...BOLD, anchor: "middle" });
      left += signs[at];
      const wide = Math.max(factor.shape[1] * low, THIN * letter);
      const box = [left + (room - wide) / 2, middle - thick(at, low) / 2, wide, thick(at, low)];
      factorBox(pen, factor, box, left + room / 2);
      for (const [, cell, text] of framed.filter(([of]) => of === at)) {
        const [rows, columns] = factor.grid;
        const [one, tall] = [box[2] / columns, box[3] / rows];
        const [down, across] = [Math.floor(cell / columns), cell % columns];
        pen.frame([box[0] + across * one, box[1] + down * tall, one, tall]);
        const half = pen.width(text, PRINTED) / 2;
        const under = box[1] + box[3] + (SIZE + 0.6) * letter;
        const place = Math.max(x + half, Math.min(box[0] + (across + 0.5) * one, x + width - half));
        pen.text(place, under, text, { ...PRINTED, fill: pen.look.primary, anchor: "middle" });
      }
      left += room;
    }
    top += named(line) + tall + foot(line);
  }
  return top - y;
}

const sum = (/** @type {number[]} */ list) => list.reduce((a, b) => a + b, 0);

/** A matrix with its name above and its size below, its parts in colours of their own. @param {Pen} pen @param {any} factor @param {number[]} box @param {number} middle of its texts */
function factorBox(pen, factor, [left, top, wide, high], middle) {
  const { letter, look } = pen;
  const { values, grid, parts, down, selected, name } = factor;
  const n = parts.length;
  const end = Math.max(1e-12, ...values.map(Math.abs));
  const ramps = [...parts.keys()].map((part) => ramp([look.paper, colourOf(pen, part)]));
  const [rows, columns] = grid;
  const word = (/** @type {number} */ cell) => {
    const share = values[cell] / end;
    if (!n) return wordAt(look.two, (share + 1) / 2);
    const along = down ? Math.floor(cell / columns) / rows : (cell % columns) / columns;
    return wordAt(ramps[Math.floor(along * n)], 0.15 + 0.85 * Math.abs(share));
  };
  if (values.length) pen.cells([left, top, wide, high], rows, columns, word);
  const each = (down ? high : wide) / Math.max(1, n);
  const numbered = n > 0 && !down && parts.every((part) => pen.width(part, STYLE) <= each);
  for (let part = 0; part < n; part++) {
    const [a, b] = down ? [left, top + part * each] : [left + part * each, top];
    const own = down ? [wide, each] : [each, high];
    const fill = values.length ? "none" : colourOf(pen, part);
    const stroke = values.length ? colourOf(pen, part) : look.paper;
    pen.rect(a, b, own[0], own[1], { fill, "fill-opacity": 0.6, stroke, "stroke-width": 1.5 });
    if (numbered)
      pen.text(a + each / 2, top - 0.7 * letter, parts[part], { ...STYLE, anchor: "middle" });
  }
  pen.rect(left, top, wide, high, {
    fill: values.length || n ? "none" : look.ink,
    "fill-opacity": 0.06,
    stroke: selected ? look.primary : look.ink,
    "stroke-opacity": selected ? 1 : 0.5,
    "stroke-width": selected ? 2.5 : 1,
  });
  const above = top - (numbered ? 1.8 : 0.7) * letter;
  const fill = selected ? look.primary : undefined;
  pen.text(middle, above, name, { ...BOLD, fill, anchor: "middle" });
  const under = selected ? { ...BOLD, fill, size: STYLE.size } : STYLE;
  pen.text(middle, top + high + 0.8 * letter, size(factor), { ...under, anchor: "middle" });
}

/** Vectors as upright strips, as high as they have numbers, and what leads from each to the next. @param {Pen} pen @param {any} figure @param {Box} box */
export function network(pen, { layers, between, framed = [] }, { x, y, width, height }) {
  const { letter, look } = pen;
  const most = Math.max(...layers.map((/** @type {any} */ one) => one.values.length));
  const texts = layers.map((/** @type {any} */ one) =>
    Math.max(pen.width(one.label, BOLD), pen.width(one.text, STYLE)),
  );
  const room = height ? height - (NAME + SIZE) * letter : TALL * letter;
  const tall = Math.max(6 * letter, Math.min(room, 18 * letter));
  const [wide, top] = [1.5 * letter, y + NAME * letter];
  const [first, last] = [texts[0], texts[texts.length - 1]];
  const [from, to] = [x + Math.max(wide, first) / 2, x + width - Math.max(wide, last) / 2];
  const middle = (/** @type {number} */ at) => from + (at * (to - from)) / (layers.length - 1);
  // Narrower, the names of two layers would stand in one another.
  const steps = texts.slice(1).map((text, at) => {
    const [name = "", size = ""] = between[at] || [];
    const inside = Math.max(pen.width(name, BOLD), pen.width(size, STYLE));
    return (text + texts[at]) / 2 + inside + 0.4 * letter;
  });
  const least = Math.max(...steps) * steps.length + from - x + (x + width - to);
  pen.right = Math.max(pen.right, x + least);
  const high = (/** @type {any} */ one) => Math.max(letter, (tall * one.values.length) / most);
  const down = top + tall / 2;
  between.forEach((/** @type {string[]} */ [name, text], /** @type {number} */ at) => {
    const [a, b] = [middle(at) + wide / 2, middle(at + 1) - wide / 2];
    const [left, right] = [high(layers[at]) / 2, high(layers[at + 1]) / 2];
    pen.path(
      `M${a} ${down - left}L${b} ${down - right}L${b} ${down + right}L${a} ${down + left}Z`,
      look.border,
      { fill: look.ink, "fill-opacity": left === right ? 0 : 0.06 },
    );
    const style = { anchor: /** @type {"middle"} */ ("middle"), room: b - a };
    pen.text((a + b) / 2, down - (text ? 0.6 : 0) * letter, name, { ...BOLD, ...style });
    pen.text((a + b) / 2, down + 0.7 * letter, text, { ...STYLE, ...style });
  });
  layers.forEach((/** @type {any} */ one, /** @type {number} */ at) => {
    const end = one.high ?? Math.max(1e-12, ...one.values.map(Math.abs));
    const box = [middle(at) - wide / 2, down - high(one) / 2, wide, high(one)];
    const word = (/** @type {number} */ i) => wordAt(look.two, (one.values[i] / end + 1) / 2);
    pen.cells(box, one.values.length, 1, word);
    pen.rect(box[0], box[1], box[2], box[3], {
      fill: "none",
      stroke: one.selected ? look.primary : look.ink,
      "stroke-opacity": one.selected ? 1 : 0.5,
      "stroke-width": one.selected ? 2 : 1,
    });
    for (const [, component, text] of framed.filter(([of]) => of === at)) {
      const tall = box[3] / one.values.length;
      const middle = box[1] + (component + 0.5) * tall;
      const isBeside = Math.abs(middle - down) < 1.6 * letter && between.length; // of what is written there
      pen.text(box[0] - 0.5 * letter, isBeside ? down + 1.8 * letter : middle, text, {
        ...PRINTED,
        fill: look.primary,
        anchor: "end",
      });
      const more = Math.max(0, 0.4 * letter - tall);
      pen.frame([
        box[0] - 0.2 * letter,
        box[1] + component * tall - more / 2,
        wide + 0.4 * letter,
        tall + more,
      ]);
    }
    const style = { anchor: /** @type {"middle"} */ ("middle") };
    pen.text(middle(at), box[1] - 0.7 * letter, one.label, { ...BOLD, ...style });
    pen.text(middle(at), box[1] + box[3] + 0.8 * letter, one.text, { ...STYLE, ...style });
  });
  return NAME * letter + tall + SIZE * letter;
}

const BAR = 6; // letters of height of a full bar

/** Words whose state is passed on from one to the next, bars of what is left of the first, and one arc from end to end. @param {Pen} pen @param {any} figure @param {Box} box */
export function relay(
  pen,
  { words, values, text, arc, state, framed = [] },
  { x, y, width, height },
) {
  const { letter, look } = pen;
  const n = words.length;
  const names = Math.min(
    6 * letter,
    Math.max(...words.map((/** @type {string} */ one) => pen.width(one))),
  );
  const slot = width / n;
  const level = names + 0.6 * letter <= slot;
  const foot = level ? 1.4 * letter : names + 0.6 * letter;
  const node = Math.min(1.6 * letter, 0.5 * slot);
  const head = 3.6 * letter; // the arc with its text
  const rest = head + 2 * letter + node + 0.6 * letter + foot + 1.3 * letter;
  const full = Math.max(
    2 * letter,
    Math.min(BAR * letter * 1.5, height ? height - rest : BAR * letter),
  );
  const middle = (/** @type {number} */ at) => x + (at + 0.5) * slot;
  const base = y + head + full + 0.4 * letter;
  const row = base + 0.6 * letter + node / 2;
  const rise = y + 1.5 * letter;
  const [a, b] = [middle(n - 1), middle(0)];
  const ends = { stroke: look.categorical[1] };
  pen.path(
    `M${a} ${base - full - 0.2 * letter}C${a} ${rise - letter} ${b} ${rise - letter} ${b} ${row - node / 2 - 1.9 * letter}`,
    ends.stroke,
    { "stroke-width": letter / 6 },
  );
  pen.text((a + b) / 2, y + 0.6 * letter, arc, {
    bold: true,
    fill: ends.stroke,
    anchor: "middle",
    room: width,
  });
  words.forEach((/** @type {string} */ word, /** @type {number} */ at) => {
    const tall = Math.max(values[at] > 0 ? 1 : 0, Math.min(1, values[at]) * full);
    pen.rect(middle(at) - 0.3 * slot, base - tall, 0.6 * slot, tall, {
      fill: look.primary,
      "fill-opacity": at && at < n - 1 ? 0.6 : 1,
      rx: 2,
    });
    pen.rect(middle(at) - node / 2, row - node / 2, node, node, {
      fill: css(wordAt(look.one, 0.25)),
      stroke: look.ink,
      rx: 4,
    });
    if (at < n - 1)
      pen.line(
        [
          [middle(at) + node / 2, row],
          [middle(at + 1) - node / 2 - 2, row],
        ],
        look.ink,
        { "stroke-width": 2 },
      );
    const place = row + node / 2 + 0.5 * letter;
    if (level) pen.text(middle(at), place + 0.4 * letter, word, { anchor: "middle" });
    else pen.text(middle(at), place, word, { anchor: "end", turn: -90, room: names });
  });
  const written = pen.width(text, BOLD) / 2;
  const place = Math.max(b, x + written + 0.5 * letter); // with room for its frame
  pen.text(place, base - Math.max(4, Math.min(1, values[0]) * full) - 0.8 * letter, text, {
    bold: true,
    fill: look.primary,
    anchor: "middle",
    halo: true,
  });
  const high = base - Math.max(4, Math.min(1, values[0]) * full) - 1.5 * letter;
  if (framed.some(([, at]) => at === 0))
    pen.frame([place - written - 0.3 * letter, high, 2 * written + 0.6 * letter, 1.4 * letter]);
  const under = row + node / 2 + 0.5 * letter + foot;
  pen.text(x + width / 2, under + 0.2 * letter, state, { ...STYLE, anchor: "middle", room: width });
  return under + letter - y;
}

/** A residual stream from left to right: what branches off, what is added to it, and the norms on it or before a branch. @param {Pen} pen @param {any} figure @param {Box} box */
export function branches(pen, { parts, lit }, { x, y, width }) {
  const { letter, look } = pen;
  const colour = lit ? look.primary : look.ink;
  const slots = parts.flatMap((/** @type {any} */ { norm }) => (norm === "post" ? [2, 1] : [2]));
  const unit = (width - 1.6 * letter) / sum(slots);
  const [line, down] = [y + letter, y + 4.8 * letter];
  const high = 1.5 * letter;
  const style = { stroke: colour, "stroke-width": lit ? 2.5 : 1.5 };
  const box = (
    /** @type {number} */ middle,
    /** @type {number} */ at,
    /** @type {string} */ text,
    /** @type {number} */ most,
  ) => {
    const wide = Math.min(most, pen.width(text) + letter);
    pen.rect(middle - wide / 2, at - high / 2, wide, high, {
      fill: look.paper,
      stroke: colour,
      rx: 4,
    });
    pen.text(middle, at, text, { anchor: "middle", room: wide - 0.3 * letter });
  };
  pen.line(
    [
      [x, line],
      [x + width - 0.4 * letter, line],
    ],
    colour,
    style,
  );
  pen.path(
    `M${x + width - letter} ${line - 0.4 * letter}L${x + width - 0.3 * letter} ${line}L${x + width - letter} ${line + 0.4 * letter}`,
    colour,
    style,
  );
  let left = x;
  for (const { name, norm, norm_name: normed } of parts) {
    const aside = norm === "pre" ? 0.5 * (pen.width(normed) + letter) + 2 : 0; // the norm stands on the branch
    const [from, to] = [left + Math.max(0.25 * unit, aside), left + 1.75 * unit];
    const middle = (from + to) / 2;
    const turn = line + 1.8 * letter;
    pen.line(
      [
        [from, line],
        [from, down],
        [to, down],
        [to, line],
      ],
      colour,
      style,
    );
    if (norm === "pre") box(from, turn, normed, 0.5 * unit);
    box(middle, down, name, 1.5 * unit);
    pen.circle(to, line, 0.7 * letter, { fill: look.paper, stroke: colour, "stroke-width": 1.5 });
    pen.text(to, line, "+", { ...BOLD, anchor: "middle" });
    if (norm === "post") box(left + 2.5 * unit, line, normed, 0.95 * unit);
    left += (norm === "post" ? 3 : 2) * unit;
  }
  return 5.7 * letter;
}
