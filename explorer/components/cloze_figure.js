// @ts-check
// A sentence in large type with empty boxes, and below one of them the words for it as bars, drawn by a pen.

import { isLeftwards, set } from "./tokens.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** @typedef {import("./figure_types").Cloze} Cloze */

const SIZES = [2.6, 2.2, 1.9, 1.6, 1.35]; // of the sentence, in letters: the largest in which it has few lines
const LINES = 2; // of a sentence in large type; a longer one is set smaller
const [HIGH, PITCH] = [1.7, 2.1]; // of a box and of a line, in sizes of the sentence
const EMPTY = 2.2; // sizes of width of an empty box
const TRACK = 38; // letters of the longest bar
const LEAST = 6; // letters of the shortest track

const HINT = { size: 1.1, alpha: 0.85 };

/** @param {Pen} pen @param {Cloze} figure @param {Box} box */
export function cloze(pen, figure, { x, y: top, width, height }) {
  const { letter, look } = pen;
  const isPage = pen.screen && !pen.least;
  const hint = isPage && figure.hint ? pen.lines(figure.hint, width, HINT) : [];
  hint.forEach((line, at) => pen.text(x, top + (0.5 + 1.4 * at) * letter, line, HINT));
  const above = hint.length ? (1.4 * hint.length + 1.6) * letter : 0;
  const y = top + above;
  const rows = figure.rows.length;
  const fits = (/** @type {any} */ made) =>
    made.lines <= LINES && (!height || made.height + leastRows(pen, rows) <= height);
  const all = SIZES.map((size) => setIn(pen, figure, size, x, width));
  const { words, size, height: tall } = all.find(fits) || all[all.length - 1];
  const row = letter * 0.2 + size * 0.3 * letter;
  const own = words.find(({ at }) => at === figure.selected);
  const left = height ? height - tall : Infinity;
  const { draw, high, line } = bars(pen, figure, own, { x, y: y + tall, width, height: left });
  const isLast = own && words.every(({ top: each }) => each <= own.top);
  const under = isLast ? own.top + HIGH * own.size * letter : tall; // through no other word
  if (own && rows)
    pen.line(
      line.map(([a, b], i) => (i ? [a, b] : [a, y + under])),
      look.border,
      { "stroke-width": 1.5 },
    );
  pen.select = figure.select;
  for (const each of words) word(pen, figure, each, y);
  pen.select = figure.select_row;
  draw();
  pen.select = figure.select;
  return above + tall + (rows ? high : row);
}

/** The words of a sentence in one type: where each stands, how many lines they take, and how high they are. @param {Pen} pen @param {Cloze} figure @param {number} size @param {number} x @param {number} width */
function setIn(pen, { tokens, spaced, blanks, breaks }, size, x, width) {
  const { letter } = pen;
  const type = pen.type(size); // pixels
  const space = 0.34 * type;
  const isRight = isLeftwards(tokens);
  /** @type {any[][]} */
  const runs = []; // of tokens that no space parts
  tokens.forEach((text, at) => {
    const isBox = blanks.includes(at);
    const wide = text ? pen.width(text, { size }) + (isBox ? 0.6 * type : 0) : EMPTY * type;
    const one = { at, text, wide: Math.min(width, wide), size: type / letter };
    if (at && !spaced[at] && !breaks.includes(at)) runs[runs.length - 1].push(one);
    else runs.push([one]);
  });
  /** @type {any[][]} */
  const lines = [[]];
  let taken = 0;
  for (const run of runs) {
    const wide = run.reduce((sum, each) => sum + each.wide, 0);
    const isNext = breaks.includes(run[0].at) || taken + wide > width;
    if (taken && isNext) [taken] = [0, lines.push([])];
    for (const each of run) {
      if (each !== run[0] && taken + each.wide > width) [taken] = [0, lines.push([])];
      lines[lines.length - 1].push(each);
      taken += each.wide + (each === run[run.length - 1] ? space : 0);
    }
  }
  lines.forEach((line, row) => {
    line.forEach((each, i) => {
      each.top = row * PITCH * type;
      each.gap = i && (spaced[each.at] || breaks.includes(each.at)) ? space : 0;
    });
    place(line, isRight, x, width);
  });
  const height = ((lines.length - 1) * PITCH + HIGH) * type;
  return { words: lines.flat(), size: type / letter, lines: lines.length, height };
}

/** Set the words of a line, with the space before each that has one. @param {any[]} line @param {boolean} isRight @param {number} x @param {number} width */
function place(line, isRight, x, width) {
  const padded = line.map((each) => ({ ...each, each, wide: each.wide + each.gap }));
  set(padded, isRight, [x, width], 0);
  for (const { each, left, gap } of padded) each.left = isRight ? left : left + gap;
}

/** A word, or a box. @param {Pen} pen @param {Cloze} figure @param {any} each @param {number} y */
function word(pen, { selected, blanks, keys, names, pale, select }, each, y) {
  const { letter, look } = pen;
  const { at, text, left, wide, top, size } = each;
  const [isBox, isOwn] = [blanks.includes(at), at === selected];
  const high = HIGH * size * letter;
  const draw = () => {
    pen.rect(left, y + top, wide, high, {
      class: isOwn ? "row selected" : "row",
      fill: isBox ? look.primary : "transparent",
      "fill-opacity": isBox ? 0.08 : undefined,
      stroke: isOwn ? look.primary : isBox ? look.border : "none",
      "stroke-width": isOwn ? 2.5 : 1.5,
      rx: 7,
    });
    pen.text(left + wide / 2, y + top + high / 2, text, {
      size,
      anchor: "middle",
      room: wide + 1,
      alpha: pale[at] ? 0.5 : undefined,
      halo: true,
    });
  };
  if (select.length && keys[at])
    pen.target({ select: [keys[at]], label: names[at], pressed: isOwn, name: "token" }, draw);
  else draw();
}

/** The least height of the bars. @param {Pen} pen @param {number} rows */
const leastRows = (pen, rows) => (rows ? 2 * pen.letter + rows * 1.3 * pen.type(1.3) : 0);

/** The bars that hang from a box: what draws them, how high they are, and the line that they hang on. @param {Pen} pen @param {Cloze} figure @param {any} own @param {{ x: number, y: number, width: number, height: number }} box */
function bars(pen, { rows, select_row }, own, { x, y, width, height }) {
  const { letter, look } = pen;
  const hang = 1.6 * letter; // from the sentence to the first bar
  const free = (height - hang - 0.4 * letter) / Math.max(1, rows.length);
  const pitch = Math.max(1.3 * pen.type(1.3), Math.min(3 * letter, free));
  const [name, number] = [{ size: 1.45 }, { size: 1.15 }];
  const names = Math.min(
    0.45 * width,
    Math.max(0, ...rows.map((row) => pen.width(row.label, { ...name, bold: true }))),
  );
  const texts = Math.max(
    0,
    ...rows.map((row) => pen.width(row.texts[0], { ...number, bold: true })),
  );
  const beside = texts + 1.6 * letter;
  const first = x + names + 0.9 * letter;
  const least = Math.max(LEAST * letter, Math.min(TRACK * letter, 0.4 * width));
  const hung = own ? own.left : first;
  const start = Math.max(first, Math.min(hung, x + width - beside - least));
  const track = Math.max(LEAST * letter, Math.min(TRACK * letter, x + width - start - beside));
  const foot = y + hang + rows.length * pitch;
  const under = own ? own.left + own.wide / 2 : start;
  const bend = y + 0.7 * letter;
  const isUnder = own && start >= own.left && start <= own.left + own.wide;
  const line = isUnder
    ? [
        [start, 0],
        [start, foot],
      ]
    : [
        [under, 0],
        [under, bend],
        [start, bend],
        [start, foot],
      ];
  const draw = () =>
    rows.forEach((row, at) => {
      const middle = y + hang + (at + 0.5) * pitch;
      const style = { bold: at === 0, fill: at === 0 ? look.primary : undefined };
      const one = () => {
        pen.rect(
          first - names - 0.9 * letter,
          middle - pitch / 2,
          start + track + beside - x,
          pitch,
          {
            class: "row",
            fill: row.selected ? look.primary : "transparent",
            "fill-opacity": 0.12,
            rx: 4,
          },
        );
        pen.text(start - 0.9 * letter, middle, row.label, {
          ...name,
          ...style,
          anchor: "end",
          room: names + 1,
        });
        pen.rect(
          start,
          middle - Math.min(0.85 * letter, 0.3 * pitch),
          Math.max(2, row.values[0] * track),
          Math.min(1.7 * letter, 0.6 * pitch),
          {
            fill: look.primary,
            "fill-opacity": at === 0 ? 1 : 0.65,
            rx: 3,
          },
        );
        pen.text(start + Math.max(2, row.values[0] * track) + 0.8 * letter, middle, row.texts[0], {
          ...number,
          bold: at === 0,
          alpha: at === 0 ? undefined : 0.8,
        });
      };
      const label = `${row.label} ${row.texts[0]}`;
      if (select_row.length && row.key !== null)
        pen.target({ select: [row.key], label, pressed: row.selected }, one);
      else one();
    });
  return { draw, high: foot - y + 0.4 * letter, line };
}
