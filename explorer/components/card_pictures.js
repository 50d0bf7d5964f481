// @ts-check
// Small pictures of cards: a sign of a concept or of a lesson, bars before and after, a sentence with
// arcs, and a head's pattern.

import { patternPicture } from "./pattern_picture.js";
import { escaped, shown, tag } from "./svg_export.js";

/**
 * A picture: a `sign` by its name; `bars`, each a word with its share before and after, or one share;
 * `arcs` between words, by their places, the second kind in the other colour; `links` from words to those
 * below; or a `pattern`, as `patternPicture` takes it.
 * @typedef {{ kind: "sign", name: string, words?: string[] }
 *   | { kind: "bars", bars: [string, ...number[]][] }
 *   | { kind: "arcs", words: string[], arcs: [number, number, number][] }
 *   | { kind: "links", above: string[], below: string[], links: [number, number][] }
 *   | { kind: "pattern", cells: string }} Picture
 */

const FLAT = "0 0 84 64";
const WIDE = "0 0 220 104";

/** @param {string} d @param {string} [look] */
const path = (d, look = "line") => tag("path", { d, class: look });
/** @param {number} x @param {number} y @param {number} width @param {number} height @param {string} [look] */
const rect = (x, y, width, height, look = "box") =>
  tag("rect", { x, y, width, height, rx: 2.5, class: look });
/** @param {number} cx @param {number} cy @param {number} r @param {string} [look] */
const dot = (cx, cy, r, look = "fill") => tag("circle", { cx, cy, r, class: look });
/** @param {number} x @param {number} y @param {string} word @param {number} size @param {string} [look] @param {string} [anchor] */
const text = (x, y, word, size, look = "", anchor = "middle") =>
  tag("text", { x, y, "font-size": size, class: look, "text-anchor": anchor }, escaped(word));
/** @template Each @param {Each[]} list @param {(each: Each, at: number) => string} draw */
const each = (list, draw) => list.map(draw).join("");
const upTo = (/** @type {number} */ n) => Array.from({ length: n }, (_, at) => at);

/** A square of cells, of which those for which it holds are dark. @param {number} x @param {number} y @param {number} n @param {number} size @param {(row: number, column: number) => string} look */
const grid = (x, y, n, size, look) =>
  each(upTo(n * n), (at) => {
    const [row, column] = [Math.floor(at / n), at % n];
    const own = look(row, column);
    return own && rect(x + size * column, y + size * row, size - 1, size - 1, own);
  });

/** @type {Record<string, () => string>} signs of concepts, by the words of their address */
const SIGNS = {
  Hard: () =>
    each([6, 10, 40, 14, 5, 22, 8], (height, at) =>
      rect(10 + 9.5 * at, 56 - height, 6, height, at === 2 ? "fill" : "half"),
    ) + path("M27 8h10v48h-10z", "far dash"),
  Tokens: () =>
    rect(10, 10, 64, 14) +
    path("M42 28v6", "thin") +
    rect(10, 40, 18, 14, "half") +
    rect(31, 40, 22, 14, "fill") +
    rect(56, 40, 18, 14, "half"),
  Before: () =>
    path("M10 32h64", "thin") +
    each(["pale", "pale", "half", "fill"], (look, at) => dot(14 + 18 * at, 32, 7, look)),
  Shapes: () => rect(8, 10, 16, 44) + rect(32, 10, 22, 22) + rect(62, 10, 14, 44),
  Three: () =>
    grid(6, 16, 4, 8, (row, column) =>
      row === column ? "fill" : row + column === 3 ? "half" : "pale",
    ) + grid(46, 16, 4, 8, (row, column) => ((row * 2 + column) % 4 === 1 ? "fill" : "pale")),
  Scale: () =>
    path("M8 56C30 56 34 8 42 8S54 56 76 56") +
    path("M8 54C28 54 30 34 42 34S56 54 76 54", "far dash"),
  Softmax: () => each([16, 40, 24, 8], (tall, at) => rect(10 + 17 * at, 54 - tall, 12, tall)),
  Saturation: () => path("M8 54C36 54 40 48 44 32S54 10 76 10"),
  Mask: () =>
    grid(18, 8, 6, 8, (row, column) => (column > row ? "" : column ? "pale" : "fill")) +
    path("M18 8h47v47h-47z", "thin"),
  Mean: () => path("M42 8L76 54L8 50Z", "box") + dot(44, 36, 6),
  Graph: () =>
    path("M42 32L12 12M42 32L72 16M42 32L14 54M42 32L68 52", "thin") +
    path("M42 32L12 12") +
    each(
      [
        [12, 12],
        [72, 16],
        [14, 54],
        [68, 52],
      ],
      ([x, y]) => dot(x, y, 5, "half"),
    ) +
    dot(42, 32, 8),
  Heads: () =>
    each(["pale", "half", "half", "fill"], (look, at) => rect(8 + 17.5 * at, 8, 14, 20, look)) +
    path("M42 32v8", "thin") +
    rect(8, 42, 68, 14),
  Gradient: () =>
    each([24, 58, 14, 40], (width, at) =>
      rect(10, 9 + 12.5 * at, width, 8, at === 1 ? "fill" : "half"),
    ),
  Distance: () =>
    path("M8 58h68", "thin") +
    each(
      [
        [52, 60, 66, 70],
        [20, 34, 58, 68],
        [46, 54, 62, 71],
        [14, 28, 40, 66],
      ],
      (row, at) => each(row, (x) => dot(x, 10 + 13 * at, 3.5, "half")),
    ),
  Stages: () =>
    path("M8 14C24 14 30 32 42 32M8 32h34M8 50C24 50 30 32 42 32") +
    rect(48, 20, 26, 24) +
    text(61, 37, "F", 14, "near"),
  Norm: () =>
    path("M24 6v52M60 6v52", "thin") +
    dot(24, 18, 6, "box") +
    rect(12, 36, 24, 12) +
    path("M60 14h12v24", "thin") +
    rect(64, 14, 14, 12) +
    dot(60, 42, 6, "box"),
  Offset: () =>
    path("M24 28L36 36M42 28L54 36M60 28L72 36", "thin") +
    each(upTo(4), (at) => rect(8 + 18 * at, 12, 13, 14) + rect(8 + 18 * at, 38, 13, 14, "half")),
  Loss: () =>
    path("M8 10C22 58 30 50 44 50S66 50 76 44") +
    dot(20, 36, 5, "pale") +
    path("M24 42L31 47", "thin") +
    dot(36, 50, 6),
  Loops: () =>
    each(upTo(3), (at) => rect(8 + 17 * at, 36, 13, 16, "pale")) +
    path("M59 36h13v16h-13z", "dash") +
    path("M14 30C20 10 60 10 65 28") +
    path("M60 23L65 30L70 23"),
  Moves: () =>
    dot(14, 52, 4, "half") +
    dot(22, 12, 4, "half") +
    dot(70, 12, 4, "half") +
    path("M20 50C40 46 54 34 62 20") +
    path("M52 22L63 18L64 30"),
  Paper: () =>
    each(upTo(3), (at) => rect(8, 8 + 18 * at, 26, 12, at ? "box" : "half")) +
    each(upTo(3), (at) => rect(50, 8 + 18 * at, 26, 12, at ? "box" : "half")) +
    path("M34 14h8v18h8", "thin"),
  Modern: () =>
    dot(42, 32, 25, "thin") +
    path("M42 32L54 10") +
    path("M42 32L64 20", "dash") +
    path("M52 14Q58 16 61 20", "thin"),
  Textbook: () =>
    text(22, 22, "it", 13) + text(60, 22, "it", 13, "near") + path("M22 30C24 58 58 58 60 30"),
};

/** @type {Record<string, (words: string[]) => string>} signs of lessons, by their names */
const LESSONS = {
  "three-minutes": () =>
    path("M8 18h140M8 36h140M8 72h140M8 90h140", "thin") +
    path("M8 54h150") +
    path("M14 36C28 36 26 54 42 54M50 90C66 90 62 54 78 54M88 72C100 72 102 54 114 54") +
    each([42, 78, 114], (x) => dot(x, 54, 7, "box") + path(`M${x - 3.5} 54h7M${x} 50.5v7`)) +
    rect(164, 38, 48, 9, "fill") +
    rect(164, 52, 30, 9, "half") +
    rect(164, 66, 14, 9, "pale"),
  "what-breaks": (words) =>
    each(words, (word, at) => {
      const y = 12 + (84 / words.length) * at;
      return (
        text(98, y + 10, word, 12, "", "end") +
        path(`M108 ${y}h84v11h-84z`, "dash") +
        text(150, y + 10, "?", 11, "near")
      );
    }),
  lecture: () =>
    text(16, 60, "softmax", 21, "math", "start") +
    path("M100 26C90 44 90 64 100 82M172 26C182 44 182 64 172 82", "thin") +
    text(136, 46, "QKᵀ", 19, "math") +
    path("M108 54h56", "thin") +
    text(136, 76, "√dₖ", 19, "math") +
    text(198, 60, "V", 22, "math"),
};

/** The picture of a card. Raises TypeError for one that there is not. @param {Picture} of */
export function cardPicture(of) {
  switch (of.kind) {
    case "pattern":
      return patternPicture(of.cells, "");
    case "bars":
      return drawn(WIDE, bars(of.bars));
    case "arcs":
      return drawn(WIDE, arcs(of.words, of.arcs));
    case "links":
      return drawn(WIDE, links(of));
    case "sign": {
      if (Object.hasOwn(SIGNS, of.name)) return drawn(FLAT, SIGNS[of.name]());
      if (Object.hasOwn(LESSONS, of.name)) return drawn(WIDE, LESSONS[of.name](of.words || []));
    }
  }
  throw new TypeError("a picture that is not drawn");
}

/** @param {string} viewBox @param {string} inside */
const drawn = (viewBox, inside) => shown(inside, { viewBox, "font-weight": 500 });

/** Words with their bars: what was, dashed, and what is. @param {[string, ...number[]][]} list */
const bars = (list) =>
  each(list, ([word, ...shares], at) => {
    const [pitch, room] = [96 / list.length, 122];
    const [y, high] = [4 + pitch * (at + 0.5), Math.min(20, pitch - 8)];
    const box = (/** @type {number} */ share) =>
      `M90 ${y - high / 2}h${Math.max(2, room * share).toFixed(1)}v${high}h-${Math.max(2, room * share).toFixed(1)}z`;
    const now = shares[shares.length - 1];
    return (
      text(82, y + 5, short(word, 10), 15, at ? "" : "near", "end") +
      path(box(now), at ? "half" : "fill") +
      (shares.length > 1 ? path(box(shares[0]), "dash") : "")
    );
  });

/** A word of at most so many letters. @param {string} word @param {number} most */
const short = (word, most) =>
  [...word].length > most ? `${[...word].slice(0, most - 1).join("")}…` : word;

/** The middle of the word at a place, of so many side by side. @param {number} at @param {number} n */
const middle = (at, n) => (220 / n) * (at + 0.5);

/** Words side by side, with arcs above them. @param {string[]} words @param {[number, number, number][]} list */
function arcs(words, list) {
  const look = new Map(list.map(([, to, tone]) => [to, tone ? "deep" : "near"]));
  const lines = each(list, ([from, to, tone]) => {
    const [a, b] = [middle(from, words.length), middle(to, words.length)];
    const top = tone ? 36 : 0;
    return path(`M${a} 70C${a} ${top} ${b} ${top} ${b} 70`, tone ? "far" : "line");
  });
  return (
    lines +
    each(words, (word, at) => text(middle(at, words.length), 90, short(word, 9), 16, look.get(at)))
  );
}

/** Two rows of words, with lines between them. @param {{ above: string[], below: string[], links: [number, number][] }} of */
const links = ({ above, below, links: list }) =>
  each(list, ([from, to]) =>
    path(
      `M${middle(from, above.length)} 30L${middle(to, below.length)} 74`,
      from === to ? "thin" : "line",
    ),
  ) +
  each(above, (word, at) => text(middle(at, above.length), 22, short(word, 9), 16)) +
  each(below, (word, at) => text(middle(at, below.length), 92, short(word, 9), 16, "near"));
