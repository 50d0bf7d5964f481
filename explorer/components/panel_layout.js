// @ts-check
// Whole panels: the widths of their figures, and a panel as a file.

import { signature } from "./address_code.js";
import card from "./card_layout.toml.js";
import { answered, isFlow } from "./beam_figure.js";
import { Pen } from "./draw.js";
import { figure } from "./figures.js";
import { formulaRows } from "./formula_figure.js";
import { hasHeading } from "./head_matrices.js";
import { escaped, FONT, tag } from "./svg_export.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const SHARE = [0.6, 0.4]; // of the width, for the main figure and its companion of another kind
const WORDS = [0.7, 0.3]; // for a matrix of words
const ROOMY = 60; // letters of width from which it takes so much
const WALK = [0.42, 0.58]; // for frames that are walked through beside a picture
const HALVES = [0.5, 0.5]; // for a plane, which uses all of its room
const SMALL = 4; // heads of a layer up to which one grid is no wider than a companion
export const GAP = 2; // letters between figures
const NARROW = 44; // letters of width below which figures stand one below the other

/** Figures with their arrays in the place of the names of blocks. @param {any} value @param {Record<string, any>} blocks @returns {any} */
export function resolved(value, blocks) {
  if (Array.isArray(value)) return value.map((each) => resolved(each, blocks));
  if (value === null || typeof value !== "object") return value;
  if (ArrayBuffer.isView(value)) return value;
  if (value.block !== undefined && value.low === undefined) return blocks[value.block];
  if (value.block !== undefined) return leveled(blocks[value.block], value);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, resolved(one, blocks)]),
  );
}

const LEVELS = 254; // of a large array, as explorer/figures/kinds.py sends it

/** The numbers of an array in levels; one level more is none. @param {Uint8Array} levels @param {{ low: number, high: number }} ends */
const leveled = (levels, { low, high }) =>
  Float32Array.from(levels, (each) => (each > LEVELS ? NaN : low + (each * (high - low)) / LEVELS));

/** Whether the first figure stands above the others: a sentence, or the whole machine. @param {any[]} figures */
export const isHeaded = (figures) =>
  figures.length > 1 && ["tokenrow", "flow"].includes(figures[0].kind);

/** Whether a frame is one grid of few heads. @param {any} frame */
const isSmall = ({ figures: [one, other] }) =>
  !other && one?.kind === "headmatrices" && one.shape[1] <= SMALL;

/** How wide each figure may be: in these shares where they are given. @param {number} width @param {any[]} figures @param {number} letter @param {number} [narrow] @param {number[]} [shares] */
export function widths(width, figures, letter, narrow = NARROW, shares) {
  if (isHeaded(figures)) return [width, ...widths(width, figures.slice(1), letter, narrow, shares)];
  if (figures.length === 1 || width < narrow * letter) return figures.map(() => width);
  const unlike = figures.length === 2 && figures[0].kind !== figures[1].kind;
  const two =
    figures[0]?.words?.length && width > ROOMY * letter
      ? WORDS
      : figures[1]?.kind === "steps" && !isSmall(figures[1].frames[0])
        ? WALK
        : figures[1]?.kind === "plane"
          ? HALVES
          : SHARE;
  const share = shares || (unlike ? two : figures.map(() => 1 / figures.length));
  return share.map((part) => Math.floor(part * (width - (figures.length - 1) * GAP * letter)));
}

/**
 * Figures side by side, below a sentence where one is the first. Returns the height.
 * @param {Pen} pen
 * @param {any[]} figures
 * @param {import("./figures.js").Box} box
 * @param {number[]} [shares] of the width
 */
export function row(pen, figures, { x, y, width, height }, shares) {
  if (isHeaded(figures)) {
    const head = figure(pen, figures[0], { x, y, width }) + pen.letter;
    const left = height && height - head;
    return head + row(pen, figures.slice(1), { x, y: y + head, width, height: left }, shares);
  }
  const wide = widths(width, figures, pen.letter, 0, shares);
  const titled = titleLines(pen, figures, wide);
  let [left, tallest] = [x, 0];
  figures.forEach((one, at) => {
    const box = { x: left, y, width: wide[at], height, titled };
    tallest = Math.max(tallest, figure(pen, one, box));
    left += wide[at] + GAP * pen.letter;
  });
  return tallest;
}

/** Figures one below the other. Returns the height. @param {Pen} pen @param {any[]} figures @param {import("./figures.js").Box} box */
const column = (pen, figures, { x, y, width }) =>
  figures.reduce(
    (high, one, at) =>
      high +
      (at ? GAP * pen.letter : 0) +
      figure(pen, one, { x, y: y + high + (at ? GAP * pen.letter : 0), width }),
    0,
  );

/** How many lines the titles of figures side by side take. @param {Pen} pen @param {any[]} figures @param {number[]} wide */
export const titleLines = (pen, figures, wide) =>
  Math.max(
    ...figures.map(({ title }, at) =>
      title ? pen.lines(title, wide[at], { bold: true }).length : 0,
    ),
  );

const LETTER = 14; // pixels of type of a file
const WIDTH = 1000;
const MARGIN = 24;

const CELL = 76; // of a word in a matrix
const WIDEST = 6000;

/** How wide the file is: words of a matrix have room. @param {any[]} figures @param {number} least */
const sheetWidth = (figures, least) =>
  Math.min(
    WIDEST,
    Math.max(
      least,
      ...figures.map(({ kind, words, columns }) =>
        kind === "matrix" && words?.length ? (CELL * columns.length) / WORDS[0] : 0,
      ),
    ),
  );

/**
 * How wide a file is, or how wide at least; whether its title stands above it, and below it its formulas, what
 * explains its figures, and the lines that say what it is of.
 * @typedef {{ width?: number, least?: number, title?: boolean, caption?: boolean, formulas?: boolean, notes?: boolean }} Sheet
 */

const EDGE = 4; // pixels around a figure of a given width: a paper has its own margins
const [ROW_NAME, WORD] = [7, 3.9]; // letters of the name of a row and of a word in a cell

/** Columns of a matrix of words that have room in so many pixels. @param {number} width */
export const fitting = (width) =>
  Math.max(2, Math.floor(((width - 2 * EDGE) / LETTER - ROW_NAME) / WORD));

/** A figure and those in it without the lines that explain them. @param {any} figure @returns {any} */
const unexplained = ({ note, figures, frames, ...figure }) => ({
  ...figure,
  note: "",
  ...(figures && { figures: figures.map(unexplained) }),
  ...(frames && { frames: frames.map(unexplained) }),
});

/** The panel as one SVG with title and caption. @param {View} view @param {Look} look */
export const sheet = (view, look) => filed(view, look).svg;

/** A panel as a file, the texts in it, and what is not drawn of it. @param {View} view @param {Look} look @param {Sheet} [sheet] */
export function filed(view, look, sheet = {}) {
  const { header, figures: all } = answered(view.header, view.figures);
  const { address } = view; // of a picture to send
  const { width: given, least = WIDTH, title = true, caption = true, notes = true } = sheet;
  const pen = new Pen({ ...look, font: FONT }, LETTER, false, header.special);
  pen.isPaper = given !== undefined;
  const figures = all.map((one) => ({
    ...one,
    ...(one.title === header.title && { title: "" }),
    ...(!title && { untitled: true }),
    ...(!notes && unexplained(one)),
  }));
  if (figures[0]?.kind === "picturecard") {
    const { wide: width, high: height } = card;
    figure(pen, { ...figures[0], address }, { x: 0, y: 0, width });
    return {
      svg: framed(pen, header.title, width, height, address),
      texts: pen.texts,
      omitted: pen.omitted,
      width,
      height,
    };
  }
  const whole = Math.round(given ?? sheetWidth(figures, least));
  const margin = given ? EDGE : MARGIN;
  const room = whole - 2 * margin;
  const isNarrow =
    room < NARROW * pen.letter || (given && figures.some(({ words }) => words?.length));
  let top = margin;
  const isTitled = title && !(figures.length === 1 && hasHeading(figures[0]));
  if (isTitled) {
    for (const line of pen.lines(header.title, room, { size: 1.3, bold: true })) {
      pen.text(margin, top + 8, line, { size: 1.3, bold: true });
      top += 24;
    }
    top += 12;
  }
  top += (isNarrow ? column : row)(pen, figures, { x: margin, y: top, width: room }) + 16;
  const formulas = sheet.formulas === false ? [] : formulasOf(header.formulas, figures);
  if (formulas.length) top += formulaRows(pen, formulas, { x: margin, y: top, width: room }) + 12;
  const below = caption ? header.caption : [];
  for (const line of below.flatMap((/** @type {string} */ each) =>
    pen.lines(each, room, { size: 0.8 }),
  )) {
    pen.text(margin, top, line, { size: 0.8, alpha: 0.8 });
    top += 15;
  }
  if (address) top += signature(pen, address, [margin, top, margin + room]);
  const height = Math.ceil(top + margin - 10);
  const svg = framed(pen, header.title, whole, height, address);
  return { svg, texts: pen.texts, omitted: pen.omitted, width: whole, height };
}

/** The formulas of a panel, of one that is walked through those of the frame on show. @param {import("./formula.js").Formula[]} formulas @param {any[]} figures */
export function formulasOf(formulas = [], figures) {
  const walked = figures.find(({ frames }) => frames);
  return besideFrame(formulas, walked?.frames[walked.current]);
}

/** What a pen drew as a file with its title, and its address. @param {Pen} pen @param {string} title @param {number} width @param {number} height @param {import("./address_code.js").Address} [address] */
function framed(pen, title, width, height, address) {
  const paper = tag("rect", { width: "100%", height: "100%", fill: pen.look.paper });
  const frame = {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": FONT,
    role: "img",
  };
  const about = address ? tag("desc", {}, escaped(address.link)) : "";
  return tag("svg", frame, tag("title", {}, escaped(title)) + about + paper + pen.parts.join(""));
}

// ---- which formulas stand beside a picture, and which of them have their numbers in it ------------

/** Whether a figure has a frame around a number to which a formula comes. @param {any} figure @returns {boolean} */
const hasFrame = ({ framed = [], figures = [] }) => framed.length > 0 || figures.some(hasFrame);

/**
 * The formulas beside a frame of a slider: of one that has its own these, the last with numbers where they
 * stand in its picture; none of one whose formulas are null.
 * @param {import("./formula.js").Formula[]} formulas @param {any} [frame] @returns {import("./formula.js").Formula[]}
 */
export function besideFrame(formulas, frame) {
  if (frame?.formulas === null) return [];
  const shown = frame?.formulas || [];
  if (!shown.length) return formulas;
  const inPicture = [...frame.figures, frame.beside || {}].some(hasFrame);
  return formulas
    .filter(({ id }) => shown.includes(id))
    .map((one) =>
      inPicture && one.id === shown[shown.length - 1] ? one : { ...one, numbers: [] },
    );
}

/** A figure without the frames of what formulas come to. @param {any} figure @returns {any} */
const bare = ({ figures, ...figure }) => ({
  ...figure,
  framed: [],
  ...(figures && { figures: figures.map(bare) }),
});

/** A figure as it stands on the page: its frames are drawn while the formulas that come to them are in sight. @param {{ header: any, more?: any }} view @param {any} figure */
export const inReach = ({ header, more }, figure) =>
  header.formulas.length && !header.first && more && !more.open ? bare(figure) : figure;

// ---- what of a header changes while its picture stays: frames of a slider, stops of a flow -----------

/** A panel without what tells its frames apart: equal for two frames of one slider, and for a flow before its question and after. @param {any} header */
export const unframed = (header) =>
  JSON.stringify({
    ...header,
    ...{ token: "", title: "", finding: "", caption: "" },
    formulas: header.figures.some(isFlow) || header.formulas,
    figures: header.figures.map((/** @type {any} */ each) =>
      each.kind === "matrix" && each.follows ? each.follows : { ...each, current: 0 },
    ),
  });

/** Put the formulas of a flow in the place of those that stand: the word of a question is in them. @param {View} view */
export function rewrite({ header, written, restate }) {
  if (!header.figures.some(isFlow)) return;
  written.splice(0, Infinity, ...header.formulas);
  restate();
}
