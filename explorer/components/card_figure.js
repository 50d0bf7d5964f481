// @ts-check
// The picture card: a sentence with an arc from a word to the one that it attends to, in large type
// and in the light colours, whatever the screen shows.

import { qrCode } from "./address_code.js";
import layout from "./card_layout.toml.js";
import { onPaper } from "./theme.js";
import { isLeftwards, visual } from "./tokens.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** @typedef {import("./figure_types").PictureCard & { address?: import("./address_code.js").Address }} PictureCard */
/** A word as it stands: its text, its role, and its box. @typedef {{ text: string, role: string, left: number, wide: number, line: number, middle: number }} Word */

const {
  wide: WIDE,
  high: HIGH,
  margin: MARGIN,
  sizes: SIZES,
  space: SPACE,
  pad: PAD,
  middles: MIDDLES,
  above: ABOVE,
} = layout;
const BREAKS =
  /^[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u; // a line may end before these

/** @param {Pen} pen @param {PictureCard} figure @param {Box} box */
export function picturecard(pen, figure, { x, y, width, height = Infinity }) {
  const unit = Math.min(width / WIDE, height / HIGH);
  const [look, letter] = [pen.look, pen.letter];
  pen.look = { ...onPaper(), font: look.font };
  pen.letter = unit;
  const at = (/** @type {number} */ px, /** @type {number} */ py) => [x + px * unit, y + py * unit];
  pen.rect(x, y, WIDE * unit, HIGH * unit, { fill: pen.look.paper, class: "card" });
  says(pen, figure, at);
  sentence(pen, figure, at);
  const { foot: size, host: small, code: side } = layout;
  const style = { size, alpha: 0.85 };
  const { address } = figure;
  const [left, foot] = at(MARGIN, HIGH - MARGIN);
  const coded = address?.code.size ? side + 20 : 0;
  const [right] = at(WIDE - MARGIN - coded, 0);
  const lines = Math.max(
    pen.width(figure.name, { size, bold: true }),
    pen.width(address?.host ?? "", { size: small }),
  );
  pen.text(left, foot, figure.about, { ...style, room: right - left - lines - 2 * size * unit });
  const end = { anchor: /** @type {const} */ ("end"), fill: pen.look.primary };
  const up = address ? 0.75 * small * unit : 0;
  pen.text(right, foot - up, figure.name, { size, bold: true, ...end });
  if (address) {
    pen.text(right, foot + 0.85 * small * unit, address.host, { size: small, ...end });
    qrCode(pen, address, [...at(WIDE - MARGIN - side, HIGH - 30 - side), side * unit]);
  }
  [pen.look, pen.letter] = [look, letter];
  return HIGH * unit;
}

/** The line at the top: the pair and its weight, or a sentence. @param {Pen} pen @param {PictureCard} figure @param {(x: number, y: number) => number[]} at */
function says(pen, { says: told, number }, at) {
  const unit = pen.letter;
  const [left, middle] = at(MARGIN, layout.top);
  const [right] = at(WIDE - MARGIN, 0);
  if (told.length < 2) {
    const size =
      layout.plain.find(
        (each) => pen.lines(told[0], right - left, { size: each, bold: true }).length < 3,
      ) ?? layout.plain[layout.plain.length - 1];
    const lines = pen.lines(told[0], right - left, { size, bold: true }).slice(0, 3);
    lines.forEach((line, row) =>
      pen.text(left, middle + (row - 0.3) * 1.25 * size * unit, line, { size, bold: true }),
    );
    return;
  }
  const number_wide = pen.width(number, { size: layout.number, bold: true });
  const room = right - left - number_wide - 0.8 * layout.number * unit;
  const arrow = (/** @type {number} */ size) => 1.9 * size * unit;
  const wide = (/** @type {number} */ size) =>
    told.reduce(
      (/** @type {number} */ sum, /** @type {string} */ word) =>
        sum + pen.width(word, { size, bold: true }),
      arrow(size),
    );
  const size =
    layout.pair.find((each) => wide(each) <= room) ?? layout.pair[layout.pair.length - 1];
  const half = (room - arrow(size)) / 2;
  const [query, key] = told.map((/** @type {string} */ word) =>
    wide(size) <= room ? word : pen.cut(word, half, { size, bold: true }),
  );
  pen.text(left, middle, query, { size, bold: true });
  const from = left + pen.width(query, { size, bold: true }) + 0.4 * size * unit;
  const to = from + 1.1 * size * unit;
  const style = { "stroke-width": (0.09 * size * unit).toFixed(1), "stroke-linecap": "round" };
  pen.line(
    [
      [from, middle],
      [to, middle],
    ],
    pen.look.primary,
    style,
  );
  const tip = 0.26 * size * unit;
  pen.line(
    [
      [to - tip, middle - tip],
      [to, middle],
      [to - tip, middle + tip],
    ],
    pen.look.primary,
    style,
  );
  pen.text(to + 0.4 * size * unit, middle, key, { size, bold: true });
  pen.text(right, middle, number, {
    size: layout.number,
    bold: true,
    anchor: "end",
    fill: pen.look.primary,
  });
}

/** The texts in lines, and the arcs between their words. @param {Pen} pen @param {PictureCard} figure @param {(x: number, y: number) => number[]} at */
function sentence(pen, figure, at) {
  const { look } = pen;
  const unit = pen.letter;
  const isPair = figure.says.length > 1;
  const [size, lines] = fitting(pen, figure);
  const words = placed(pen, lines, size, at);
  const paint = (/** @type {any} */ { source, target, weight }, /** @type {boolean} */ main) => {
    const style = {
      "stroke-width": ((main ? 5 + 8 * weight : 1.5 + 5 * weight) * unit).toFixed(1),
      "stroke-opacity": (main ? 1 : 0.2 + 0.6 * weight).toFixed(2),
      "stroke-linecap": "round",
    };
    arc(pen, words[source], words[target], size * unit, style);
  };
  figure.edges.forEach((/** @type {any} */ edge, /** @type {number} */ i) =>
    paint(edge, isPair && i === 0),
  );
  for (const { text, role, left, wide, middle } of words) {
    const box = [
      left + 0.02 * size * unit,
      middle - 0.62 * size * unit,
      wide - 0.04 * size * unit,
      1.24 * size * unit,
    ];
    const style = {
      rx: (0.16 * size * unit).toFixed(1),
      stroke: look.primary,
      "stroke-width": (4 * unit).toFixed(1),
    };
    if (role)
      pen.rect(box[0], box[1], box[2], box[3], {
        ...style,
        fill: role === "key" ? look.primary : look.paper,
      });
    const fill = role === "key" ? look.paper : role ? look.primary : undefined;
    pen.text(left + wide / 2, middle, text, { size, anchor: "middle", bold: Boolean(role), fill });
  }
}

/** The largest type in which the texts stand in two lines. @param {Pen} pen @param {PictureCard} figure @returns {[number, any[][]]} */
function fitting(pen, figure) {
  const [first] = figure.edges;
  const role = (/** @type {number} */ at) =>
    !first || (figure.says.length < 2 && figure.edges.length > 1)
      ? ""
      : at === first.source
        ? "query"
        : at === first.target
          ? "key"
          : "";
  let n = 0;
  const texts = figure.texts.map((/** @type {string[]} */ words, /** @type {number} */ i) =>
    words.map((text, at) => ({ text, role: role(n++), isSpaced: at > 0 && figure.spaced[i][at] })),
  );
  const most = 3 - texts.length; // lines of a text
  const wrap = (/** @type {number} */ size) =>
    texts.map((/** @type {any[]} */ words) => wrapped(pen, words, size));
  const fits = SIZES.find((size) =>
    wrap(size).every((/** @type {any[]} */ of) => of.length <= most),
  );
  const size = fits ?? SIZES[SIZES.length - 1];
  return [size, wrap(size).flatMap((/** @type {any[]} */ of) => of.slice(0, most))];
}

/** Words in lines as wide as the card; what follows a word without a space stays with it. @param {Pen} pen @param {any[]} words @param {number} size */
function wrapped(pen, words, size) {
  const room = (WIDE - 2 * MARGIN) * pen.letter;
  /** @type {any[][]} */
  const parts = [];
  for (const word of words) {
    const pad = word.role ? 2 * PAD * size * pen.letter : 0;
    const wide = pen.width(word.text, { size, bold: Boolean(word.role) }) + pad;
    const sized = { ...word, wide, space: word.isSpaced ? SPACE * size * pen.letter : 0 };
    if (!parts.length || word.isSpaced || BREAKS.test(word.text)) parts.push([sized]);
    else parts[parts.length - 1].push(sized);
  }
  const length = (/** @type {any[]} */ line) =>
    line.reduce((sum, { wide, space }, i) => sum + wide + (i && space), 0);
  /** @type {any[][]} */
  const lines = [[]];
  for (const part of parts) {
    const line = lines[lines.length - 1];
    if (line.length && length([...line, ...part]) > room) lines.push([...part]);
    else line.push(...part);
  }
  for (const [first] of lines) if (first) first.space = 0;
  return lines;
}

/** Each word where it stands, in the order of the text. @param {Pen} pen @param {any[][]} lines @param {number} size @param {(x: number, y: number) => number[]} at @returns {Word[]} */
function placed(pen, lines, size, at) {
  const middles = MIDDLES[Math.min(lines.length, 2) - 1];
  const isRight = isLeftwards(lines.flat().map(({ text }) => text));
  return lines.flatMap((words, line) => {
    const [start, middle] = at(MARGIN, middles[line]);
    const [end] = at(WIDE - MARGIN, 0);
    const whole = words.reduce((sum, { wide, space }) => sum + wide + space, 0);
    let left = isRight ? end - whole : start;
    const order = visual(words, isRight);
    const lefts = new Map();
    order.forEach((word, i) => {
      // The space before a word of the text is that beside it on the line.
      const next = isRight ? order[i - 1] : word;
      left += i ? next.space : 0;
      lefts.set(word, left);
      left += word.wide;
    });
    return words.map((word) => ({ ...word, left: lefts.get(word), line, middle }));
  });
}

/** An arc from a query to its key, with its head at the key. @param {Pen} pen @param {Word | undefined} query @param {Word | undefined} key @param {number} size @param {Record<string, any>} style */
function arc(pen, query, key, size, style) {
  if (!query || !key) return; // in a line that has no room
  const part = query === key ? [0.3, 0.7] : [0.5, 0.5]; // of its width, where it begins and ends
  const [a, b] = [query, key].map(({ left, wide }, i) => left + part[i] * wide);
  const gap = 0.72 * size;
  const down = query.line < key.line; // the key stands below
  const isLevel = query.line === key.line;
  const from = query.middle + (isLevel || !down ? -gap : gap);
  const to = key.middle + (isLevel || down ? -gap : gap);
  const tip = Math.max(0.2 * size, 1.3 * Number(style["stroke-width"]));
  const end = to + (isLevel || down ? -tip : tip);
  const high = Math.min(ABOVE[query.line] * pen.letter, 0.5 * size + 0.22 * Math.abs(b - a));
  const bend = isLevel
    ? [from - 1.33 * high, end - 1.33 * high]
    : [(from + end) / 2, (from + end) / 2];
  const points = [
    [a, from],
    [a, bend[0]],
    [b, bend[1]],
    [b, end],
  ].map((each) => each.map((one) => one.toFixed(1)).join(" "));
  pen.path(`M${points[0]}C${points.slice(1).join(" ")}`, pen.look.primary, {
    class: "arc",
    ...style,
  });
  const sides = [
    [b - tip, end],
    [b, to],
    [b + tip, end],
  ].map((each) => each.map((one) => one.toFixed(1)).join(" "));
  pen.put("path", {
    d: `M${sides.join("L")}Z`,
    fill: pen.look.primary,
    "fill-opacity": style["stroke-opacity"],
  });
}
