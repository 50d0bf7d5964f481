// @ts-check
// Drawing primitives of figures, written as SVG: for the screen, with parts that can be pressed and
// cells as one image, and for a file, where all is vector and stands by itself.

import { raster } from "./matrix_canvas.js";
import { make } from "./mount.js";
import { escaped, tag } from "./svg_export.js";
import { css, wordAt } from "./theme.js";
import { directions, partsOfName } from "./tokens.js";

/** @typedef {import("./theme.js").Look} Look */
/**
 * Styles of a text: size in letters, weight, colour, anchor, rotation, and the room it may take.
 * @typedef {{ size?: number, bold?: boolean, fill?: string, anchor?: "start" | "middle" | "end",
 *   turn?: number, room?: number, halo?: boolean, alpha?: number, italic?: boolean,
 *   plate?: boolean }} TextStyle
 */

/**
 * A text as it stands: whole, as shown, its type in pixels, and its box, [left, top, right, foot].
 * @typedef {{ text: string, shown: string, size: number, box: number[], alpha?: number }} Written
 */
/** @typedef {import("./omissions.js").Omitted} Omitted */

/** A coordinate with one decimal. @param {number} value */
const at = (value) => `${+value.toFixed(1)}`;

// How far letters reach above and below the middle of their line, in type sizes.
const [ABOVE, BELOW] = [0.4, 0.5];

// The places within a name where it may be broken, as in RMSNorm and BatchNorm.
const WITHIN_WORDS = /(?<=\p{Ll})(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;
// Letters with the marks that belong to them.
const LETTERS = /[^]\p{M}*(?:\u200d[^]\p{M}*)*/gu;
const TAIL = 0.4; // of a word that is cut, from its end
const FEW = 8; // letters below which all are from its beginning
const NOTE = 2; // lines of a note on a slide
const TIGHT = 1.02; // letters between lines of a slide in its smallest type

const PALE = 0.75; // opacity of a special token's label

// Widths of letters as a share of the type size, where nothing measures them.
const NARROW = /[iIjl.,:;!'|()[\] ft]/;
const WIDE = /[mwMW@%\u1100-\uffff\u{20000}-\u{3ffff}]/u;
const PICTURE = /[\u{1f000}-\u{1faff}]/u; // emoji
/** @param {string} text */
const estimate = (text) =>
  [...text].reduce(
    (sum, letter) =>
      sum +
      (NARROW.test(letter) ? 0.33 : PICTURE.test(letter) ? 1.3 : WIDE.test(letter) ? 0.95 : 0.58),
    0,
  );

/** @typedef {(text: string, bold: boolean, font: string) => number} Ruler the width of a text, in type sizes */
/** @type {Ruler | undefined} */
let ruler;
/** @type {Map<string, number>} */
const widths = new Map();

/**
 * Measure texts by the widths of a font's letters, where no canvas does.
 * @param {{ letters: string, regular: number[], bold: number[] }} font widths in type sizes
 */
export function measureBy({ letters, regular, bold }) {
  const [plain, strong] = [regular, bold].map(
    (list) => new Map([...letters].map((letter, at) => [letter, list[at]])),
  );
  const sum = (/** @type {string} */ text, /** @type {Map<string, number>} */ font) =>
    [...text].reduce((all, letter) => all + (font.get(letter) ?? estimate(letter)), 0);
  ruler = (text, isBold) => sum(text, isBold ? strong : plain);
  widths.clear();
}

/** What measures on this page: a canvas, where there is one. @returns {Ruler} */
function ownRuler() {
  const canvas = typeof document === "undefined" ? null : make("canvas").getContext("2d");
  if (!canvas) return estimate;
  return (text, bold, font) => {
    canvas.font = `${bold ? 650 : 450} 100px ${font}`;
    return canvas.measureText(text).width / 100;
  };
}

/** The width of a text, in type sizes. @param {string} text @param {boolean} bold @param {string} font */
function widthOf(text, bold, font) {
  const key = `${bold}${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 8000) widths.clear();
    width = (ruler ||= ownRuler())(text.replace(/\d/g, "0"), bold, font); // figures are tabular
    widths.set(key, width);
  }
  return width;
}

const MATRIX = /(?<=(?<!\w)W)_(QK|OV|[QKVOEU])(?!\w)/;

/** A text in SVG, of which what runs from right to left turns no number beside it. @param {string} text */
function isolated(text) {
  const parts = directions(text);
  if (!parts[0] && !parts[2]) return escaped(text); // nothing stands beside it
  return parts
    .map((part, at) =>
      at % 2 ? tag("tspan", { "unicode-bidi": "isolate" }, escaped(part)) : escaped(part),
    )
    .join("");
}

/** A text in SVG, the matrices of the paper with their index below the line: W_O, W_QK. @param {string} text @param {number} share of the type that an index has */
const indexed = (text, share) =>
  text
    .split(MATRIX)
    .map(isolated)
    .map((part, at) => {
      if (at % 2)
        return tag("tspan", { dy: "0.25em", "font-size": `${Math.ceil(100 * share)}%` }, part);
      return at && part ? tag("tspan", { dy: `${+(-0.25 * share).toFixed(2)}em` }, part) : part;
    })
    .join("");

const INDEX = 0.75; // of the type of a text, that of an index in it
const ON_PAPER = 0.75; // letters of the smallest type of a paper: 6 points, where a letter has 8
const SEAM = 0.3; // pixels of a cell below the next ones, between which a viewer of PDF leaves a line
const NUMBER = 20; // for how many other texts a number that is cut counts

/** What draws figures. `letter` is the type size in pixels, `least` that of the smallest type;
 * `special`: the labels of special tokens, which are paler. */
export class Pen {
  /** @param {Look} look @param {number} letter @param {boolean} screen @param {string[]} [special] @param {number} [least] */
  constructor(look, letter, screen, special = [], least = 0) {
    this.look = look;
    this.special = new Set(special);
    this.letter = letter;
    this.screen = screen;
    this.least = least;
    /** @type {string[]} */
    this.parts = [];
    this.space = "";
    /** @type {string[]} */
    this.select = []; // the choices that a press on what is drawn sets
    this.isPaper = false; // whether it is printed in a width of its own, where nobody presses or points
    this.scrolls = false; // whether a figure may be larger than its frame
    /** @type {import("./scroll_frame.js").Pane | null} */
    this.pane = null; // what of it is larger
    this.right = 0; // how far to the right a slide's level texts and boxes go
    this.shortened = 0; // texts that end in an ellipsis
    /** @type {Written[]} */
    this.texts = []; // every text with the box it takes
    /** @type {Omitted[]} */
    this.omitted = []; // what a figure has and does not draw
    this.measures = false; // whether what is drawn is looked at no further than its size
    this.edge = 0; // how far to the right a matrix goes, with its title and its note
  }

  /** A pen of the same type that draws nothing: it measures. */
  probe() {
    const made = new Pen(this.look, this.letter, this.screen, [...this.special], this.least);
    made.isPaper = this.isPaper;
    made.measures = true;
    return made;
  }

  /** What is drawn, as SVG of its own. @param {() => void} draw */
  apart(draw) {
    const outer = this.parts;
    this.parts = [];
    draw();
    const made = this.parts.join("");
    this.parts = outer;
    return made;
  }

  /** What is drawn, as one part of the picture: it alone is drawn anew where it changes. @param {() => void} draw */
  group(draw) {
    this.put("g", {}, this.apart(draw));
  }

  /** @param {string} name @param {Record<string, any>} attributes @param {string} [inside] */
  put(name, attributes, inside = "") {
    if (this.measures) return;
    this.parts.push(tag(name, attributes, inside));
  }

  /** Pixels of a type. @param {number} size in letters */
  type(size) {
    return Math.max(this.least, size * this.letter, this.isPaper ? ON_PAPER * this.letter : 0);
  }

  /** @param {string} text @param {TextStyle} [style] */
  width(text, { size = 1, bold = false } = {}) {
    return widthOf(text, bold, this.look.font) * this.type(size);
  }

  /** A text cut to a width, with an ellipsis: a sentence at its end, a word in its middle, as its end too says what it is. @param {string} text @param {number} room @param {TextStyle} [style] */
  cut(text, room, style) {
    if (this.width(text, style) <= room) return text;
    this.shortened += /\p{L}/u.test(text) ? 1 : NUMBER; // half a number is another one
    const [own, end] = partsOfName(text);
    const letters = own.match(LETTERS) || [];
    const isWord = /^(\d+ )?\S*( \d+\/\d+)?$/u.test(own);
    const shown = (/** @type {number} */ n, last = end) => {
      const tail = isWord && n >= FEW ? Math.floor(TAIL * n) : 0;
      const kept = [letters.slice(0, n - tail), letters.slice(letters.length - tail)];
      return `${kept[0].join("")}…${tail ? kept[1].join("") : ""}${last}`;
    };
    const last = this.width(shown(1), style) <= room ? end : "";
    let [low, high] = [0, letters.length];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.width(shown(middle, last), style) <= room) low = middle;
      else high = middle - 1;
    }
    return shown(low, last);
  }

  /** A text in lines of at most so many pixels; a name such as BatchNorm that does not fit is two words. @param {string} text @param {number} room @param {TextStyle} [style] */
  lines(text, room, style) {
    const lines = [""];
    const fitting = (/** @type {string} */ word) =>
      this.width(word, style) <= room ? [word] : word.split(WITHIN_WORDS);
    for (const word of text.split(" ").flatMap(fitting)) {
      const last = lines[lines.length - 1] || "";
      const longer = last ? `${last} ${word}` : word;
      if (!last || this.width(longer, style) <= room) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines.map((line) => this.cut(line, room, style));
  }

  /** A note in lines; on a slide as many of its sentences as two lines hold, or its first in three; of a longer one two lines. @param {string} text @param {number} room */
  note(text, room) {
    if (!text) return [];
    const parts = text.split(/(?<=[.!?] )|(?<= · )/);
    for (let n = parts.length; ; n--) {
      const whole = parts.slice(0, n).join("");
      const part = n < parts.length ? `${whole.replace(/ (· )?$/, "")} …` : whole;
      const lines = this.lines(part, room, { size: 0.85 });
      if (!this.least || lines.length <= (n > 1 ? NOTE : NOTE + 1)) return lines;
      if (n > 1) continue;
      const rest = this.cut(lines.slice(NOTE - 1).join(" "), room, { size: 0.85 });
      return [...lines.slice(0, NOTE - 1), rest];
    }
  }

  /** A frame around a number to which a formula comes, no narrower than it can be seen and whole at the left edge. @param {number[]} box left, top, width, height */
  frame([left, top, width, height]) {
    const thick = Math.max(1.5, this.letter / 8);
    const more = Math.max(0, 0.5 * this.letter - width) / 2;
    const from = Math.max(1.2 * thick, left - more);
    const wide = left + width + more - from;
    for (const [stroke, size] of [
      [this.look.paper, 2.4 * thick],
      [this.look.primary, thick],
    ])
      this.rect(from, top, wide, height, {
        class: "framed",
        fill: "none",
        stroke,
        "stroke-width": size,
        rx: 2,
      });
  }

  /** The number at a frame that is too small to hold it, where it covers no text: beside it and no farther than a right end, above or below it. @param {number} x @param {number} y @param {string} text @param {number} right */
  printed(x, y, text, right) {
    const style = { size: 0.85, bold: true, fill: this.look.primary, halo: true };
    const [aside, over] = [0.8 * this.letter, 1.15 * this.letter];
    /** @type {[number, number, TextStyle["anchor"]][]} */
    const places = [
      [x + aside, y, "start"],
      [x - aside, y, "end"],
      [x, y - over, "middle"],
      [x, y + over, "middle"],
    ];
    const boxes = places.map(([a, b, anchor]) => this.box(a, b, text, { ...style, anchor }));
    const fits = boxes.findIndex((box) => box[2] <= right && this.isFree(box));
    const [a, b, anchor] = places[fits < 0 ? Number(boxes[0][2] > right) : fits];
    this.text(a, b, text, { ...style, anchor });
  }

  /** The least distance of two lines that are read by themselves, in letters: in the smallest type they stand closer. @param {number} wish */
  pitch(wish) {
    if (!this.least) return wish;
    return this.letter > this.least + 0.1 ? 1.3 : TIGHT;
  }

  /** The box of a text, [left, top, right, foot]. @param {number} x @param {number} y @param {string} text @param {TextStyle} [style] */
  box(x, y, text, style = {}) {
    const before = { start: 0, middle: 0.5, end: 1 }[style.anchor || "start"] ?? 0;
    const [wide, type] = [this.width(text, style), this.type(style.size ?? 1)];
    const [over, under] = [ABOVE * type, BELOW * type];
    if (style.turn) return [x - over, y - (1 - before) * wide, x + under, y + before * wide];
    return [x - before * wide, y - over, x + (1 - before) * wide, y + under];
  }

  /** Whether a box covers no text. @param {number[]} box */
  isFree([left, top, right, foot]) {
    return !this.texts.some(
      ({ box: [a, b, c, d] }) => a < right && left < c && b < foot && top < d,
    );
  }

  /** A text whose middle line stands at y. @param {number} x @param {number} y @param {string} text @param {TextStyle} [style] */
  text(x, y, text, style = {}) {
    if (!text) return;
    const { size = 1, bold, fill, anchor, turn, room, halo } = style;
    const label = text.slice(text.lastIndexOf(" ") + 1); // without its position
    const pale = fill === undefined && this.special.has(label) ? PALE : undefined;
    const shown = room === undefined ? text : this.cut(text, room, style);
    const box = this.box(x, y, shown, style);
    if (this.least && !turn) this.right = Math.max(this.right, box[2]);
    this.texts.push({ text, shown, size: this.type(size), box });
    if (this.measures) return;
    if (style.plate) {
      const [left, top, right, foot] = box;
      this.put("rect", {
        class: "plate",
        x: at(left - 2),
        y: at(top),
        width: at(right - left + 4),
        height: at(foot - top),
        rx: 3,
        fill: this.look.paper,
      });
    }
    const ring = { stroke: this.look.paper, "stroke-width": 3, "paint-order": "stroke" };
    const hint = shown !== text && this.screen ? tag("title", {}, escaped(text)) : "";
    this.put(
      "text",
      {
        x: at(x),
        y: at(y),
        dy: "0.35em",
        "font-size": at(this.type(size)),
        "font-weight": bold ? 650 : undefined,
        "font-style": style.italic ? "italic" : undefined,
        fill: fill ?? this.look.ink,
        "fill-opacity": style.alpha ?? pale,
        "text-anchor": anchor,
        transform: turn ? `rotate(${turn} ${at(x)} ${at(y)})` : undefined,
        // The texts of a button end in a space, which is read and takes no room.
        "xml:space": this.space ? undefined : "preserve",
        ...(halo ? { ...ring, "stroke-linejoin": "round" } : {}),
      },
      indexed(shown, this.isPaper ? Math.max(INDEX, this.type(0) / this.type(size)) : INDEX) +
        this.space +
        hint,
    );
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {Record<string, any>} style */
  rect(x, y, width, height, style) {
    if (this.least) this.right = Math.max(this.right, x + width);
    if (this.measures) return;
    this.put("rect", {
      x: at(x),
      y: at(y),
      width: at(Math.max(0, width)),
      height: at(Math.max(0, height)),
      ...style,
    });
  }

  /** @param {number[][]} points @param {string} stroke @param {Record<string, any>} [style] */
  line(points, stroke, style = {}) {
    if (this.measures) return;
    const d = points.map(([x, y], i) => `${i ? "L" : "M"}${at(x)} ${at(y)}`).join("");
    this.path(d, stroke, style);
  }

  /** @param {string} d @param {string} stroke @param {Record<string, any>} [style] */
  path(d, stroke, style = {}) {
    this.put("path", { d, fill: "none", stroke, "stroke-linejoin": "round", ...style });
  }

  /** A link from one point to another, level at both ends. @param {number[]} from @param {number[]} to @param {string} stroke @param {Record<string, any>} style */
  link([x, y], [u, v], stroke, style) {
    if (this.measures) return;
    const bend = (u - x) * 0.45;
    this.path(
      `M${at(x)} ${at(y)}C${at(x + bend)} ${at(y)} ${at(u - bend)} ${at(v)} ${at(u)} ${at(v)}`,
      stroke,
      style,
    );
  }

  /** @param {number} x @param {number} y @param {number} r @param {Record<string, any>} style */
  circle(x, y, r, style) {
    if (this.measures) return;
    this.put("circle", { cx: at(x), cy: at(y), r: at(r), ...style });
  }

  /**
   * Cells of one colour each; undefined for one that stays clear.
   * @param {number[]} box x, y, width, height
   * @param {number} rows
   * @param {number} columns
   * @param {(cell: number) => number | undefined} word the colour of the cell at row x columns + column
   * @param {any} [cache] keeps the picture of the cells, which are the same each time
   */
  cells([x, y, width, height], rows, columns, word, cache = {}) {
    if (!rows || !columns || width <= 0 || height <= 0 || this.measures) return;
    if (this.screen) {
      this.put("image", {
        ...{ x: at(x), y: at(y), width: at(width), height: at(height) },
        preserveAspectRatio: "none",
        "image-rendering": "pixelated",
        href: (cache[this.look.key] ||= raster(rows, columns, word).toDataURL()),
      });
      return;
    }
    /** @type {Map<number, string[]>} */
    const runs = new Map();
    const [wide, high] = [columns / width, rows / height].map((each) => SEAM * each);
    for (let row = 0; row < rows; row++)
      for (let from = 0, to; from < columns; from = to) {
        const colour = word(row * columns + from);
        for (to = from + 1; to < columns && word(row * columns + to) === colour;) to++;
        if (colour === undefined) continue;
        if (!runs.has(colour)) runs.set(colour, []);
        const across = +(to - from + (to < columns ? wide : 0)).toFixed(2);
        const down = +(1 + (row < rows - 1 ? high : 0)).toFixed(2);
        runs.get(colour)?.push(`M${from} ${row}h${across}v${down}h${-across}z`);
      }
    const scaled = `translate(${at(x)} ${at(y)}) scale(${width / columns} ${height / rows})`;
    const paths = [...runs].map(([colour, list]) =>
      tag("path", { d: list.join(""), fill: css(colour) }),
    );
    this.put("g", { transform: scaled, "shape-rendering": "crispEdges" }, paths.join(""));
  }

  /** A scale of colours with its ends, the right end at x, its bar so many letters wide. @param {number} x @param {number} y @param {Uint32Array} words @param {string} low @param {string} high @param {number} [wide] */
  scale(x, y, words, low, high, wide = 6) {
    const size = 0.8;
    const right = x - this.width(high, { size });
    const bar = [right - wide * this.letter - 6, y - this.letter * 0.3];
    this.text(right, y, high, { size });
    this.cells([...bar, wide * this.letter, 0.6 * this.letter], 1, 32, (i) =>
      wordAt(words, i / 31),
    );
    this.text(bar[0] - 6, y, low, { size, anchor: "end" });
  }

  /**
   * A part that can be pressed; in a file it is drawn and no more. name: a class. double: it stands
   * for another part, which has the keys and the label.
   * @param {{ select: any[], label: string, pressed?: boolean, name?: string, double?: boolean, part?: string }} what
   * @param {() => void} draw
   */
  target({ select, label, pressed, name = "", double, part }, draw) {
    if (!this.screen || this.measures) return draw();
    const button = {
      role: "button",
      tabindex: -1,
      "aria-label": label,
      "aria-pressed": `${Boolean(pressed)}`,
    };
    const attributes = {
      class: `target${double ? "" : " button"} ${name}`.trim(),
      ...(double ? { "aria-hidden": "true" } : button),
      "data-select": JSON.stringify(select),
      "data-names": JSON.stringify(this.select),
      "data-at": part,
    };
    this.space = " ";
    const inside = this.apart(draw);
    this.space = "";
    this.put("g", attributes, inside);
  }
}
