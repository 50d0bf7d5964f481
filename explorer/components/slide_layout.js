// @ts-check
// A panel in a room of a given size, for the back row or a phone: how its figures
// are set, which parts of them are drawn, and what is left out, which a line says.

import { Pen } from "./draw.js";
import { AXES } from "./figure_axes.js";
import { figure } from "./figures.js";
import { labelsOf } from "./flow_rows.js";
import { cutFlow } from "./flow_shares.js";
import { picture } from "./linked_weights.js";
import { figuresOmitted, omitted as omissions, spokenOmissions } from "./omissions.js";
import { isHeaded, row, titleLines, widths } from "./panel_layout.js";
import { FONT, shown, whole } from "./svg_export.js";

/** @typedef {import("./omissions.js").Omitted} Omitted */
/** @typedef {import("./draw.js").Written} Written */
/**
 * A panel as it is set: its SVG, the texts in it, and what is not drawn of it.
 * @typedef {{ svg: string, texts: Written[], omitted: Omitted[], height: number }} Laid
 */
/** How figures stand and how wide each is. @typedef {{ figures: any[], shares?: number[] }} Setting */

/** Pixels of type that is read from the last row: 28 on a screen of 1280. On a larger one it grows less
 * than the screen, which shows more rows; a phone is in the hand. @param {number} width of the window */
export const smallest = (width) => (width < PHONE ? 14 : Math.max(28, 14 + (14 * width) / 1280));

const ON_SCREEN = typeof document !== "undefined"; // elsewhere cells are drawn as in a file
const PHONE = 640; // pixels of a window below which it is held in the hand
const LARGE = 1.8; // times the smallest type
const FLAT = 1.3; // the same for pictures that use every pixel as they are
const USES_ALL = [
  "picturecard",
  "chart",
  "cloze",
  "flow",
  "graph",
  "headmatrices",
  "matrix",
  "network",
  "plane",
  "product",
  "relay",
  "paperfigure",
];
const SHARES = [
  [0.5, 0.5],
  [0.4, 0.6],
  [0.7, 0.3],
  [0.25, 0.25, 0.5],
  [0.4, 0.3, 0.3],
]; // of the width, tried beside the figures' own
const MOST = [60, 40, 30, 26, 22, 20, 18, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3]; // rows of a figure
const COLUMN = 13; // letters of width of one of three figures
const HEAD = 0.45; // of the height, for the sentence above the figures
const LOST = { figures: 100, names: 4, numbers: 5, cells: 30 };
const READABLE = 20; // pixels of type, and the share of the smallest type, in which all figures stand
const SMALLER_TYPE = 5 / 7; // rather than fewer of them in larger type
const PART = 20; // what it costs to leave out all rows
const CALM = 6; // what may be lost before another setting is tried: names of rows between others
const WORD_COLUMNS = [16, 12, 9, 7, 6, 5, 4]; // of a matrix with words in its cells
const ROWS = ["rows", "tokens", "queries", "keys", "vectors", "figures"]; // without which a text is not whole
const CUT = 0.3; // what it costs to cut a text

/**
 * Draw figures as large as their room allows. Returns the picture as SVG, whether it lacks a figure, and how many rows
 * of the text it lacks.
 * @param {any} view its `header`, its `figures` and its `look`
 * @param {HTMLElement} room
 * @param {string} name what the figures are called
 * @param {number} [small] pixels of the smallest type: for the back row
 * @param {number} [large] how many times as large it may be
 */
export function slide(view, room, name, small = smallest(innerWidth), large = LARGE) {
  const size = { width: room.clientWidth, height: room.clientHeight };
  const { svg, omitted } = laid(view, size, small, large);
  const about = { ...size, role: "group", "aria-label": name };
  room.replaceChildren(shown(svg, about));
  const viewBox = `0 0 ${size.width} ${size.height}`;
  return {
    svg: whole(svg, { ...about, viewBox, "font-family": FONT }),
    isCut: omitted.some(({ what }) => what === "figures"),
    lacks: omitted.reduce(
      (n, { what, shown, all }) => n + (ROWS.includes(what) ? all - shown : 0),
      0,
    ),
  };
}

/** Draw all of the figures, one below the other; the room is as high as they are. @param {any} view @param {HTMLElement} room @param {string} name @param {number} small */
export function column(view, room, name, small) {
  const width = room.clientWidth;
  const { svg, height } = below(view, width, small);
  room.style.height = `${Math.ceil(height)}px`;
  room.replaceChildren(shown(svg, { width, height, role: "group", "aria-label": name }));
}

/** Figures one below the other, whole. @param {any} view @param {number} width @param {number} letter @returns {Laid} */
export function below({ header, figures, look }, width, letter) {
  const pen = new Pen(look, letter, ON_SCREEN, header.special);
  let height = 0;
  for (const one of figures)
    height +=
      figure(pen, one.kind === "linkedweights" ? picture(one) : one, { x: 0, y: height, width }) +
      letter;
  return { svg: pen.parts.join(""), texts: pen.texts, omitted: pen.omitted, height };
}

/**
 * Figures in a room of this size: of each as many rows as fit in the smallest type, then in type as large
 * as has room for them. What the title or the sentence of the panel names is always among them.
 * @param {any} view @param {{ width: number, height: number }} room @param {number} small @param {number} [large]
 * @returns {Laid}
 */
export function laid({ header, figures, look }, room, small, large = LARGE) {
  const says = [header.title, header.finding, ...(header.says || [])].filter(Boolean).join("\n");
  const pen = (/** @type {number} */ letter) =>
    new Pen(look, letter, ON_SCREEN, header.special, Math.min(letter, small));
  const { list, shares, omitted, type } = readable(pen, figures, room, says, small);
  const foot = footOf(pen(type), omitted, room.width);
  let took = 0;
  const draw = (/** @type {Pen} */ made) => {
    took = row(made, list, { x: 0, y: 0, width: room.width, height: room.height - foot }, shares);
    return took <= room.height - foot + 0.5 && made.right <= room.width + 1;
  };
  const first = pen(type).probe();
  draw(first);
  const most = list.some(usesAll) ? Math.min(large, FLAT) : large;
  let [low, high] = [type, most * small];
  while (high - low > 0.5) {
    const tried = pen((low + high) / 2).probe();
    if (draw(tried) && loss(tried) <= loss(first)) low = tried.letter;
    else high = tried.letter;
  }
  const made = pen(low);
  draw(made);
  made.omitted.push(...omitted);
  const lines = omitted.length ? made.lines(spokenOmissions(omitted), room.width, SMALLER) : [];
  lines.forEach((line, at) =>
    made.text(0, room.height - (lines.length - at - 0.4) * FOOT * made.type(SMALLER.size), line, {
      ...SMALLER,
      alpha: 0.75,
    }),
  );
  const { parts, texts } = made;
  const height = lines.length ? room.height : Math.min(took, room.height);
  return { svg: parts.join(""), texts, omitted: made.omitted, height };
}

const SMALLER = { size: 0.85 };
const FOOT = 1.25; // sizes of its type between the lines on figures that are not drawn

/** The height of the lines that say which figures are not drawn. @param {Pen} pen @param {Omitted[]} omitted @param {number} width */
const footOf = (pen, omitted, width) =>
  omitted.length &&
  (pen.lines(spokenOmissions(omitted), width, SMALLER).length * FOOT + 0.2) *
    pen.type(SMALLER.size);

/** Whether a figure fills whatever room it has. @param {any} one @returns {boolean} */
const usesAll = (one) =>
  USES_ALL.includes(one.kind) ||
  (one.figures || one.frames?.[one.current]?.figures || []).some(usesAll);

/** How much of figures is lost in a drawing: parts that are left out, and texts that are cut. @param {Pen} pen */
const loss = ({ omitted, shortened }) =>
  CUT * shortened +
  omitted.reduce(
    (sum, { what, shown, all }) =>
      sum + (LOST[what] ?? PART) * (what === "figures" ? all - shown : 1 - shown / all),
    0,
  );

/**
 * The setting in the largest type that can be read in which the most figures are drawn; in smaller type
 * only where not even one fits.
 * @param {(letter: number) => Pen} pen @param {any[]} figures @param {{ width: number, height: number }} room @param {string} says @param {number} small
 */
function readable(pen, figures, room, says, small) {
  const least = Math.min(small, Math.max(READABLE, SMALLER_TYPE * small));
  const gone = (/** @type {{ lost: number }} */ { lost }) => Math.floor(lost / LOST.figures);
  let best;
  let type = small;
  for (; type >= least || (!best && type > small / 2); type -= 2) {
    const made = setting(pen(type), figures, room, says);
    if (made && (!best || gone(made) < gone(best) || (made.isWhole && !best.isWhole)))
      best = { ...made, type };
    if (best && !gone(best) && best.isWhole) break;
  }
  return best || { ...alone(figures, says), type: type + 2 };
}

/**
 * The setting that loses least: all figures before fewer of them; undefined where not even one fits.
 * @param {Pen} pen @param {any[]} figures @param {{ width: number, height: number }} room @param {string} says
 */
function setting(pen, figures, room, says) {
  let best;
  for (const { list, gone } of choices(figures, room.height > room.width)) {
    if (best && gone.length > Math.floor(best.lost / LOST.figures)) break;
    const omitted = figuresOmitted(gone.map(titleOf), figures.length);
    const height = room.height - footOf(pen, omitted, room.width);
    const body = list.filter((one) => one !== list[0] || !isHeaded(list));
    if (body.length > 1 && room.width < COLUMN * body.length * pen.letter) continue;
    const tried = [undefined, ...SHARES.filter((shares) => isFor(shares, body))];
    for (const shares of tried) {
      const made = fitted(pen, list, { width: room.width, height }, says, shares);
      if (!made) continue;
      const lost = made.lost + LOST.figures * gone.reduce((sum, one) => sum + parted(one), 0);
      if (!best || lost < best.lost - 0.01) best = { ...made, shares, omitted, lost };
      if (best.lost <= CALM) return best;
    }
  }
  return best;
}

/** Whether shares are of so many figures, and alike for matrices, which are compared. @param {number[]} shares @param {any[]} figures */
const isFor = (shares, figures) =>
  shares.length === figures.length &&
  new Set(shares.filter((_, at) => figures[at].kind === "matrix")).size < 2;

/** The first figure with the fewest rows, the others said to be gone: for a room in which nothing fits. @param {any[]} figures @param {string} says */
function alone([first, ...others], says) {
  const least = versions(first, says).at(-1)?.(MOST[MOST.length - 1]) ?? first;
  const omitted = figuresOmitted(others.map(titleOf), others.length + 1);
  return { list: [least], shares: undefined, omitted, lost: Infinity };
}

/** Which figures are drawn, and which are not: all of them, in the place of figures below each other these beside each other, in a tall room below each other, and fewer. @param {any[]} figures @param {boolean} isTall */
function choices(figures, isTall) {
  const head = isHeaded(figures) ? figures.slice(0, 1) : [];
  const all = figures.slice(head.length);
  const flat = all.flatMap((one) => (one.kind === "stack" && !one.title ? one.figures : [one]));
  const tall = { kind: "stack", title: "", note: "", select: [], main: 0, figures: all };
  /** @type {{ list: any[], gone: any[] }[]} */
  const made = [{ list: figures, gone: [] }];
  const whole = flat.map((one) => (one.half ? { ...one, half: false } : one));
  if (flat.length > all.length) made.push({ list: [...head, ...whole], gone: [] });
  const stacked = { list: [...head, tall], gone: [] };
  if (all.length > 1) isTall ? made.unshift(stacked) : made.push(stacked);
  for (let n = all.length - (head.length ? 0 : 1); n > 0; n--) {
    const list = chosen(all, n);
    const gone = (/** @type {any[]} */ drawn) => figures.filter((one) => !drawn.includes(one));
    if (head.length && n < all.length)
      made.push({ list: [...head, ...list], gone: gone([...head, ...list]) });
    made.push({ list, gone: gone(list) });
  }
  return made.sort((a, b) => a.gone.length - b.gone.length);
}

/** So many of the figures: the last ones where they are of one kind, the sides of a comparison; else the first ones and the last. @param {any[]} all @param {number} most */
function chosen(all, most) {
  if (all.length <= most) return all;
  const last = all.slice(-most);
  if (most > 1 && last.every(({ kind }) => kind === last[0].kind)) return last;
  return most > 1 ? [...all.slice(0, most - 1), all[all.length - 1]] : all.slice(0, 1);
}

/** How many figures stand in a figure. @param {any} one @returns {number} */
const parted = (one) => (one.kind === "stack" ? one.figures.length : 1);

/** What a figure that is not drawn is called. @param {any} one @returns {string} */
const titleOf = ({ title, figures, frames, current }) =>
  title || (figures || frames?.[current]?.figures || []).map(titleOf).filter(Boolean).join("; ");

/** The figures with as many rows as fit, and what is lost; undefined where one of them has no room. @param {Pen} pen @param {any[]} figures @param {{ width: number, height: number }} room @param {string} says @param {number[]} [shares] */
function fitted(pen, figures, { width, height }, says, shares) {
  const wide = widths(width, figures, pen.letter, 0, shares);
  const list = [];
  let [lost, y, isWhole] = [0, 0, true];
  if (isHeaded(figures)) {
    const head = most(pen, figures[0], { x: 0, y, width, height: HEAD * height }, says, false);
    if (!head) return undefined;
    list.push(head.figure);
    lost += head.lost;
    isWhole = head.isWhole;
    y = head.took + pen.letter;
  }
  const body = figures.slice(list.length);
  const titled = titleLines(pen, body, wide.slice(list.length));
  for (const [at, one] of body.entries()) {
    const box = {
      x: 0,
      y: 0,
      width: wide[list.length ? figures.indexOf(one) : at],
      height: height - y,
      titled,
    };
    const made = most(pen, one, box, says);
    if (!made) return undefined;
    list.push(made.figure);
    lost += made.lost;
    isWhole &&= made.isWhole;
  }
  return { list, lost, isWhole };
}

/** A figure with as many rows as its box holds, the height that it takes and what is lost; undefined where not even the fewest fit. @param {Pen} pen @param {any} one @param {import("./figures.js").Box} box @param {string} says @param {boolean} [grows] whether it is told its height */
function most(pen, one, box, says, grows = true) {
  const height = box.height ?? Infinity;
  const place = grows ? box : { ...box, height: undefined };
  let best;
  for (const version of versions(one, says)) {
    const tried = (/** @type {number} */ rows) => {
      const probe = pen.probe();
      const made = version(rows);
      const took = figure(probe, made, place);
      return (
        took <= height + 0.5 &&
        probe.right <= box.width + 1 && {
          figure: made,
          took,
          lost: loss(probe),
          isWhole: probe.omitted.every(({ what }) => !ROWS.includes(what)),
        }
      );
    };
    let [low, high] = [0, MOST.length - 1]; // the last that is known to fit is `high`
    let own = tried(MOST[high]);
    while (own && low < high) {
      const middle = (low + high) >> 1;
      const made = tried(MOST[middle]);
      if (made) [own, high] = [made, middle];
      else low = middle + 1;
    }
    if (own && (!best || own.lost < best.lost)) best = own;
    const isWords = [one, ...(one.figures || [])].some(({ words }) => words?.length);
    // The note of a flow makes room for rows.
    if (!isWords && best?.lost < LOST.figures && (best.isWhole || one.kind !== "flow")) break;
  }
  return best;
}

/** What may be drawn of a figure with so many rows, the most of it first. @param {any} one @param {string} says @returns {((rows: number) => any)[]} */
function versions(one, says) {
  if (one.kind === "linkedweights") {
    const drawn = picture(one);
    return [(rows) => ({ ...cut(drawn, rows, says), title: one.title })];
  }
  if (one.kind === "stack")
    return fewer(one.figures, one.main).flatMap((kept) =>
      (kept.some(({ words }) => words?.length) ? WORD_COLUMNS : [undefined]).map(
        (wide) => (rows) => ({ ...one, ...parts(one.figures, kept, rows, says, wide) }),
      ),
    );
  if (one.kind === "flow")
    return [one, { ...one, note: "" }].map((flow) => (rows) => cut(flow, rows, says));
  if (one.words?.length)
    return WORD_COLUMNS.map((columns) => (rows) => cut(one, rows, says, columns));
  if (one.kind !== "steps") return [(rows) => cut(one, rows, says)];
  const { figures, ...now } = one.frames[one.current];
  const whole = one.whole && { ...one.whole, selected: one.current };
  const least = whole ? [[]] : [];
  return [...fewer(figures, 0), ...least].map((kept) => (rows) => {
    const above = whole && cut(whole, rows, says);
    const at = above ? above.selected : 0;
    const { omitted, ...rest } = parts(figures, kept, rows, says);
    const frame = { ...now, ...rest };
    return {
      ...one,
      omitted,
      whole: above,
      frames: above ? { [at]: frame } : [frame],
      current: at,
    };
  });
}

/** Which of so many figures are drawn: all, then one less each time, the main one at last. @param {any[]} figures @param {number} main */
const fewer = (figures, main) =>
  figures.map((_, gone) => {
    const rest = figures.filter((_, at) => at !== main);
    const kept = rest.slice(0, rest.length - gone);
    return figures.filter((one, at) => at === main || kept.includes(one));
  });

/** Those of a figure's figures that are kept, with so many rows, and what is left out. @param {any[]} figures @param {any[]} kept @param {number} rows @param {string} says @param {number} [wide] columns of a matrix of words */
function parts(figures, kept, rows, says, wide) {
  const gone = figures.filter((one) => !kept.includes(one));
  const alone = kept.length === 1 && figures.length > 1 && { half: false };
  return {
    figures: kept.map((one) => ({
      ...(wide && one.words?.length ? cut(one, rows, says, wide) : versions(one, says)[0](rows)),
      ...alone,
    })),
    omitted: figuresOmitted(gone.map(titleOf), figures.length),
  };
}

// ---- which rows of a figure ----------------------------------------------------------------------

/** So many of n places: those to be kept, the first of them first, and those nearest to them. @param {number} n @param {number[]} keep @param {number} most */
export function around(n, keep, most) {
  const all = [...Array(n).keys()];
  if (n <= most) return all;
  const wanted = [...new Set(keep)].filter((at) => at >= 0 && at < n).slice(0, most);
  const far = (/** @type {number} */ at) => Math.min(...wanted.map((one) => Math.abs(one - at)));
  const near = all.sort((a, b) => (wanted.length ? far(a) - far(b) : 0) || a - b);
  return near.slice(0, most).sort((a, b) => a - b);
}

/** So many of n places, evenly spread, with those that are to be kept and the last one. @param {number} n @param {number[]} keep @param {number} most */
export function spread(n, keep, most) {
  if (n <= most) return [...Array(n).keys()];
  const kept = [...new Set([...keep.filter((at) => at >= 0), n - 1])].slice(0, most);
  const places = new Set(kept);
  const free = most - places.size;
  for (let at = 0; at < free; at++) places.add(Math.round((at * (n - 1)) / free));
  return [...places].sort((a, b) => a - b);
}

/** A label without the number of its position. @param {string} label */
const bare = (label) => label.replace(/^\d+ (?=\S)/, "").trim();

/** Whether a text has a word that no letter continues. @param {string} text @param {string} word */
function hasWord(text, word) {
  const isLetter = (/** @type {string | undefined} */ one) =>
    one !== undefined && /[\p{L}\p{N}]/u.test(one);
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1))
    if (!isLetter(text[at - 1]) && !isLetter(text[at + word.length])) return true;
  return false;
}

/** @type {Map<string, number[]>} */
const found = new Map();

/** `namedIn` of each line, once for the same labels and text: figures are tried with many numbers of rows. @param {string[]} labels @param {string} text */
function named(labels, text) {
  const key = `${labels.join("\n")}\n\n${text}`;
  let places = found.get(key);
  if (!places) {
    if (found.size > 200) found.clear();
    // A line with a word in quotes speaks of that one; the line below it may have none.
    const lines = text.split("\n").flatMap((line) => namedIn(labels, line));
    found.set(key, (places = [...new Set(lines)]));
  }
  return places;
}

/**
 * The places of the labels that a text names: those in quotes, where it has any, in their order; else those
 * that are words of it.
 * @param {string[]} labels @param {string} text
 */
export function namedIn(labels, text) {
  const quoted = [...text.matchAll(/“([^”]*)”/g)].map(([, word]) => word);
  const places = [...labels.keys()];
  if (!quoted.length)
    return places.filter(
      (at) => /[\p{L}\p{N}]/u.test(labels[at]) && hasWord(text, bare(labels[at])),
    );
  const whole = quoted.flatMap((word) => places.filter((at) => bare(labels[at]) === word));
  return [
    ...new Set([
      ...whole,
      ...places.filter(
        (at) =>
          /\p{L}{2}/u.test(labels[at]) && quoted.some((word) => hasWord(word, bare(labels[at]))),
      ),
    ]),
  ];
}

/** A figure with at most so many rows, those that `says` names among them. @param {any} one @param {number} most @param {string} [says] @param {number} [wide] columns of a matrix of words @returns {any} */
export const cut = (one, most, says = "", wide) =>
  CUTS[one.kind]?.(one, most, `${one.title || ""}\n${says}`, wide) ?? one;

/** What a picture made in the browser adds to a kind of figure. @type {Record<string, { along: Record<string, string[]>, places: Record<string, any> }>} */
const OWN = {
  matrix: {
    along: { tints: ["rows", "columns"] },
    places: { column: "columns", named: [{ each: "rows" }, { each: "columns" }] },
  },
  links: {
    along: { keys: ["left"], keys_right: ["right"] },
    places: { column: "right" },
  },
};

/**
 * A figure of these places of its axes alone: of all that runs along an axis it has what it has of that, and a
 * place is counted anew, or left out with what is gone. -1 stands for a gap.
 * @param {any} figure @param {Record<string, number[]>} kept axis -> places @param {Record<string, any>} [gap] what stands in one, by the name of the field
 */
export function part(figure, kept, gap = {}) {
  const { along, places } = AXES[figure.kind];
  const own = OWN[figure.kind];
  const made = { ...figure };
  for (const [name, axes] of Object.entries({ ...along, ...own?.along }))
    if (figure[name]?.length) made[name] = picked(figure, name, axes, kept, gap[name]);
  for (const [name, spec] of Object.entries({ ...places, ...own?.places }))
    if (figure[name] !== undefined) made[name] = moved(figure[name], spec, kept);
  return made;
}

/** A field along axes, its last axis fastest. @param {any} figure @param {string} name @param {string[]} axes @param {Record<string, number[]>} kept @param {any} gap */
function picked(figure, name, axes, kept, gap) {
  let places = [0];
  for (const axis of axes) {
    const all = figure[axis].length;
    const own = kept[axis] ?? [...Array(all).keys()];
    places = places.flatMap((from) => own.map((at) => (at < 0 ? -1 : from * all + at)));
  }
  const list = places.map((at) => (at < 0 ? gap : figure[name][at]));
  return ArrayBuffer.isView(figure[name]) ? Float32Array.from(list) : list;
}

/** Places on axes, counted anew: -1 for one that is gone, null for what holds one, nothing of it in a list. @param {any} value @param {any} spec @param {Record<string, number[]>} kept @returns {any} */
function moved(value, spec, kept) {
  if (!spec || value === null) return value;
  if (typeof spec === "string") return value < 0 || !kept[spec] ? value : kept[spec].indexOf(value);
  const isGone = (/** @type {any} */ one) => one === null || one === -1;
  if (spec.each)
    return value
      .map((/** @type {any} */ one) => moved(one, spec.each, kept))
      .filter((/** @type {any} */ one) => !isGone(one));
  const made = Array.isArray(value) ? [...value] : { ...value };
  for (const [name, axis] of Object.entries(spec)) made[name] = moved(value[name], axis, kept);
  return Object.keys(spec).some((name) => spec[name] && isGone(made[name])) ? null : made;
}

/** The first steps of a tree, with the nodes and edges in them. @param {any} tree @param {number} most rows */
function grown(tree, most) {
  const { nodes, edges, places, selected } = tree;
  const steps = Math.max(...places.map((/** @type {number[]} */ [, row]) => row));
  if (steps < most) return tree;
  const kept = [...nodes.keys()].filter((at) => places[at][1] < most);
  const parents = new Map(edges.map((/** @type {any} */ { source, target }) => [target, source]));
  let last = selected; // on the way to the selected node
  while (last > 0 && !kept.includes(last)) last = parents.get(last);
  return {
    ...part({ ...tree, selected: last }, { nodes: kept }),
    omitted: omissions(["steps", most - 1, steps]),
  };
}

const SMALL_CELLS = [160, 400]; // rows and columns of a matrix whose cells are colours

const LEFT_OUT_TOKENS = { tokens: "…", spaced: true, names: "", keys: "", pale: false };
const GAP = { tokens: "…", weights: NaN, texts: "", keys: "", special: false };
const LEFT_OUT = { labels: "…", spaced: true, keys: "" };

/** Places of n, and -1 for a sign where some between them are left out, with none of their numbers. @param {number[]} places @param {number} n */
function withGaps(places, n) {
  const all = places.flatMap((at, i) => (at === (places[i - 1] ?? -1) + 1 ? [at] : [-1, at]));
  return places[places.length - 1] < n - 1 ? [...all, -1] : all;
}

/** The rows in which a number is framed. @param {number[][]} framed @returns {number[]} */
const rowsOf = (framed) => framed.map(([row]) => row);

/** The places of those that are selected. @param {any[]} all @returns {number[]} */
const selectedOf = (all) => all.flatMap(({ selected }, at) => (selected ? [at] : []));

/** @type {Record<string, (figure: any, most: number, says: string, wide?: number) => any>} */
const CUTS = {
  matrix({ cache, over, ...figure }, most, says, wide = 5) {
    const { rows, columns, words, selected = -1, column = -1, framed = [] } = figure;
    const marks = [...figure.marks, ...framed];
    const isWords = words?.length > 0;
    const [tall, broad] = isWords ? [most, wide] : SMALL_CELLS;
    const pick = isWords ? spread : around;
    // Whose names are written first; a number of a sentence is no place on an axis of numbers.
    const wanted = [rows, columns].map((/** @type {string[]} */ all) =>
      all.every((each) => /^\d+$/.test(each)) ? [] : named(all, says),
    );
    const down = pick(
      rows.length,
      [selected, ...marks.map(([at]) => at), ...wanted[0]].filter((at) => at >= 0),
      tall,
    );
    const right = around(
      columns.length,
      [...marks.map(([, at]) => at), column, ...wanted[1]],
      broad,
    );
    if (down.length === rows.length && right.length === columns.length)
      return { ...figure, over, named: wanted };
    return {
      ...part({ ...figure, named: wanted }, { rows: down, columns: right }),
      omitted: omissions(
        ["rows", down.length, rows.length],
        ["columns", right.length, columns.length],
      ),
    };
  },
  links(figure, most, says) {
    const { left: queries, right, selected, mark, flat } = figure;
    if (flat) return figure; // its lines are broken
    const key = mark ? [mark[0]] : [];
    const one = queries.length === right.length; // one text on both sides
    const from = around(
      queries.length,
      [selected, ...(one ? key : []), ...named(queries, says)],
      most,
    );
    const to = one ? from : around(right.length, [...key, ...named(right, says)], most);
    return {
      ...part(figure, { left: from, right: to }),
      omitted: one
        ? omissions(["tokens", from.length, queries.length])
        : omissions(["queries", from.length, queries.length], ["keys", to.length, right.length]),
    };
  },
  bars(figure, most, says) {
    const { rows, mark, scaled = rows, framed = [] } = figure;
    const isFramed = (/** @type {number} */ at) => rowsOf(framed).includes(at);
    const size = ({ values }) => Math.max(...values.map(Math.abs).filter(Number.isFinite), 0);
    const names = named(
      rows.map(({ label }) => label),
      says,
    );
    const rank = (/** @type {number} */ at) =>
      rows[at].selected || mark?.[0] === at || isFramed(at) ? 0 : names.includes(at) ? 1 : 2;
    const order = [...rows.keys()].sort(
      (a, b) => rank(a) - rank(b) || size(rows[b]) - size(rows[a]) || a - b,
    );
    const places = order.slice(0, most).sort((a, b) => a - b);
    return {
      ...part(figure, { rows: places }),
      omitted: omissions(["rows", places.length, rows.length]),
      scaled,
    };
  },
  texttable(figure, most, says) {
    const { rows, selected, framed = [] } = figure;
    const labels = rows.map(([label]) => label);
    const kept = [selected, ...rowsOf(framed), ...named(labels, says)];
    const places = around(rows.length, kept, most);
    return {
      ...part(figure, { rows: places }),
      omitted: omissions(["rows", places.length, rows.length]),
    };
  },
  tokenrow(figure, most, says) {
    const { tokens, marked, keys, selected } = figure;
    if (tokens.length <= 2 * most) return figure;
    const places = around(tokens.length, [selected, ...marked, ...named(tokens, says)], 2 * most);
    const own = tokens.map(
      (/** @type {string} */ _, /** @type {number} */ at) => keys?.[at] ?? `${at}`,
    );
    return {
      ...part({ ...figure, keys: own }, { tokens: withGaps(places, tokens.length) }, GAP),
      omitted: omissions(["tokens", places.length, tokens.length]),
    };
  },
  sentencevotes(figure, most) {
    const { labels, pronoun, votes } = figure;
    if (labels.length <= 2 * most) return figure;
    const said = votes.map((/** @type {any} */ { word }) => word);
    const places = around(labels.length, [pronoun, ...said], 2 * most);
    return {
      ...part(figure, { labels: withGaps(places, labels.length) }, LEFT_OUT),
      omitted: omissions(["of_text", places.length, labels.length]),
    };
  },
  cloze(figure, most, says) {
    const { tokens, blanks, selected, rows } = figure;
    const kept = [...rows.keys()].slice(0, Math.max(1, most));
    const around_ = around(
      tokens.length,
      [selected, ...blanks, ...named(tokens, says)],
      Math.max(16, 4 * most),
    );
    return {
      ...part(figure, { tokens: withGaps(around_, tokens.length), rows: kept }, LEFT_OUT_TOKENS),
      omitted: omissions(
        ["tokens", around_.length, tokens.length],
        ["rows", kept.length, rows.length],
      ),
    };
  },
  strips(figure, most, says) {
    const { strips, framed = [] } = figure;
    const names = named(
      strips.map(({ label }) => label.split(" of ").at(-1)), // 0.72 × v of animal
      says,
    );
    const share = (/** @type {number} */ at) => strips[at].weight ?? 0;
    const largest = [...strips.keys()].sort((a, b) => share(b) - share(a)).filter(share);
    const kept = [...rowsOf(framed), ...selectedOf(strips), ...names, ...largest];
    const places = around(strips.length, kept, most);
    return {
      ...part(figure, { strips: places }),
      omitted: omissions(["vectors", places.length, strips.length]),
    };
  },
  graph(figure, most, says) {
    const { nodes, edges, selected, split, layout, scaled = edges } = figure;
    if (layout === "tree") return grown(figure, most);
    if (split || nodes.length <= most) return figure;
    const near = edges.filter((edge) => edge.target === selected).map((edge) => edge.source);
    const places = around(nodes.length, [selected, ...named(nodes, says), ...near], most);
    return {
      ...part(figure, { nodes: places }),
      omitted: omissions(["tokens", places.length, nodes.length]),
      scaled,
    };
  },
  dials(figure, most) {
    const { dials, framed = [] } = figure;
    const places = around(dials.length, [...rowsOf(framed), ...selectedOf(dials)], most);
    return {
      ...part(figure, { dials: places }),
      omitted: omissions(["rotations", places.length, dials.length]),
    };
  },
  facts(figure, most) {
    const { facts, framed = [] } = figure;
    const order = [...new Set([...rowsOf(framed), ...facts.keys()])];
    const places = order.slice(0, Math.ceil(most / 3)).sort((a, b) => a - b);
    return {
      ...part(figure, { facts: places }),
      omitted: omissions(["facts", places.length, facts.length]),
    };
  },
  flow: (figure, most, says) => cutFlow(figure, most, named(labelsOf(figure), says)),
};
