// @ts-check
// Matrices as pictures: a canvas of cells, the cell under the pointer, legends, all heads small.

import { beside } from "./cell_tooltip.js";
import { arrow, plainKey, rove, stepped } from "./keys.js";
import { make, put } from "./mount.js";
import { css, shade, wordAt } from "./theme.js";
import { side } from "./tokens.js";

/**
 * A picture of one pixel a cell; a cell without a word stays clear.
 * @param {number} rows
 * @param {number} columns
 * @param {(at: number) => number | undefined} word of the cell at row x columns + column
 * @param {HTMLCanvasElement} [canvas]
 */
export function raster(rows, columns, word, canvas = document.createElement("canvas")) {
  put(canvas, { width: Math.max(1, columns), height: Math.max(1, rows) });
  const image = new ImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < rows * columns; at++) pixels[at] = word(at) || 0;
  context(canvas).putImageData(image, 0, 0);
  return canvas;
}

/** @param {HTMLCanvasElement} canvas */
export const context = (canvas) =>
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

/**
 * A canvas as sharp as the screen: its context, in the page's pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  put(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const made = context(canvas);
  made.scale(ratio, ratio);
  made.imageSmoothingEnabled = false;
  return made;
}

/**
 * The cell [row, column] of an element under the pointer, null beside it.
 * @param {MouseEvent} event
 * @param {Element} element
 * @param {number} rows
 * @param {number} columns
 */
export function cellAt(event, element, rows, columns) {
  const box = element.getBoundingClientRect();
  const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
  const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
  return row >= 0 && column >= 0 && row < rows && column < columns ? [row, column] : null;
}

/**
 * @param {Uint32Array} words
 * @param {string} low
 * @param {string} high
 */
export const legend = (words, low, high) =>
  make(
    "div",
    "legend",
    make("span", "", low),
    make("span", {
      class: "bar",
      style: { background: `linear-gradient(90deg,${stops(words).map(css).join(",")})` },
    }),
    make("span", "", high),
  );

/** @param {Uint32Array} words */
export const stops = (words) => [0, 64, 128, 192, 255].map((at) => words[at]);

/**
 * The ends of a scale of weights.
 * @param {"row" | "head" | "global"} scale
 * @param {boolean} log
 * @param {string} [full] the number at the top
 */
export function ends(scale, log, full) {
  const top = { row: "each row’s largest", head: "each head’s largest", global: "1" }[scale];
  return [log ? (scale === "global" ? "0.001" : "1/1000 of it") : "0", full ?? top];
}

/** What the hatched cells are. */
export const hatched = () => make("span", "hatched", make("i"), "not allowed");

/**
 * A matrix under names that stay in place, read with the pointer or the arrow keys.
 * @param {{ rows: string[], columns: string[], sides: string[], about: string, canvas: string,
 *   names?: [string, string], frame?: string, marks: string[], masked?: boolean, focus?: string,
 *   late?: boolean, start: (by: number[]) => number[], look: (cell: number[] | null, byKey?: boolean) => void,
 *   open?: (cell: number[]) => void, choose?: (axis: number, at: number) => void,
 *   says: (cell: number[]) => string[] }} how
 *   start: the cell from which arrow keys set out. names: classes of the names down and across.
 *   marks: classes of what lies over the cells. choose: a name was clicked, of axis 0 down. says:
 *   of a cell, for the tag beside the pointer: its value, who looks, at what. late: names out of
 *   sight come later.
 */
export function plane(how) {
  const { rows, columns, names = ["queries", "keys"] } = how;
  const sides = [rows, columns].map((list, axis) => side(list, axis, names[axis], how));
  const [[left, top], spans] = [sides.map((one) => one[0]), sides.map((one) => one[1])];
  const canvas = make("canvas", { class: "cells", role: "img", "aria-label": how.canvas });
  const marks = how.marks.map((name) => make("i", { class: name, hidden: true }));
  const area = make("div", how.masked ? "area masked" : "area", canvas, ...marks);
  const corner = make(
    "div",
    "corner",
    make("span", "", `${how.sides[0]} ↓`),
    make("span", "", `${how.sides[1]} →`),
  );
  const frame = make("div", "matrix", corner, top, left, area);
  /** @type {number[] | null} */
  let over = null;
  const look = (
    /** @type {number[] | null} */ cell,
    byKey = false,
    /** @type {MouseEvent | undefined} */ event = undefined,
  ) => {
    over = cell;
    how.look(cell, byKey);
    tell(cell, event);
  };
  const scroll = make(
    "div",
    {
      class: "scroll plane",
      tabindex: 0,
      role: "region",
      "aria-label": how.about,
      data: { focus: how.focus ?? "matrix" },
      onblur: () => look(null),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const by = arrow(event);
        if (by) {
          event.preventDefault();
          look(over ? stepped(over, by, rows.length, columns.length) : how.start(by), true);
        } else if (event.key === "Enter" && over && plainKey(event)) how.open?.(over);
      },
    },
    frame,
  );
  const tell = beside(scroll, canvas, how);
  const under = (/** @type {MouseEvent} */ event) =>
    cellAt(event, canvas, rows.length, columns.length);
  put(area, {
    onmousemove: (/** @type {MouseEvent} */ event) => look(under(event), false, event),
    onmouseleave: () => look(null),
    onclick: (/** @type {MouseEvent} */ event) => {
      const cell = under(event);
      if (cell) how.open?.(cell);
    },
  });
  // The number of visible rows and columns, where not all have room.
  const sign = make("span", { class: "note sign", hidden: true });
  const inSight = () => {
    const parts = [
      [
        scroll.clientHeight - area.offsetTop,
        area.offsetHeight,
        rows.length,
        `${how.sides[0]} rows`,
      ],
      [
        scroll.clientWidth - area.offsetLeft,
        area.offsetWidth,
        columns.length,
        `${how.sides[1]} columns`,
      ],
    ].flatMap((/** @type {any} */ [room, whole, count, name]) =>
      room < whole - 2
        ? [`${Math.max(1, Math.floor((room / whole) * count))} of ${count} ${name}`]
        : [],
    );
    sign.hidden = parts.length === 0;
    sign.textContent = ` Showing ${parts.join(" and ")}. Scroll for the others.`;
  };
  /** Sizes of a cell in pixels; names that have no room are left out. */
  const size = (/** @type {number} */ wide, high = wide) => {
    put(frame, {
      vars: { cell: `${wide}px`, across: `${wide}px`, down: `${high}px` },
    });
    put(frame, { vars: { n: columns.length, rows: rows.length, m: rows.length } });
    const every = [Math.ceil(10 / high), Math.ceil(10 / wide)];
    spans.forEach((list, axis) =>
      list.forEach((span, at) => {
        span.style.visibility = at % every[axis] ? "hidden" : "";
      }),
    );
    inSight();
    return Math.max(...every);
  };
  /** Scroll a cell into sight, clear of the names that stay; -1 for a side that is not to move. */
  const bring = ([row, column] = over || [-1, -1]) => {
    const cell = area.getBoundingClientRect();
    const [high, wide] = [cell.height / rows.length, cell.width / columns.length];
    const near = (
      /** @type {number} */ now,
      /** @type {number} */ room,
      /** @type {number} */ from,
      /** @type {number} */ size,
    ) => (from < now ? from : from + size > now + room ? from + size - room : now);
    if (row >= 0)
      scroll.scrollTop = near(
        scroll.scrollTop,
        scroll.clientHeight - area.offsetTop,
        row * high,
        high,
      );
    if (column >= 0)
      scroll.scrollLeft = near(
        scroll.scrollLeft,
        scroll.clientWidth - area.offsetLeft,
        column * wide,
        wide,
      );
  };
  return { scroll, frame, left, top, spans, canvas, marks, size, bring, sign, point: look, tell };
}

/**
 * All heads as buttons, layers down and heads across, over one canvas of thumbnails.
 * @param {{ layers: number, heads: number, about: string, shape: number, className?: string,
 *   which?: number[] | null,
 *   cell: (at: number, layer: number, head: number, place: number) => HTMLElement }} how
 *   shape: width of a thumbnail by its height. cell: the button of a head. which: some of the heads,
 *   one after the other, in place of all.
 */
export function headGrid({ layers, heads, about, shape, className = "grid", which, cell }) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const box = make(
    "div",
    {
      class: heads > 8 ? `${className} many` : className,
      role: "group",
      "aria-label": about,
      // As wide and high as the texts are long, up to a point.
      vars: { heads, shape: Math.max(0.5, Math.min(2, shape)) },
    },
    canvas,
  );
  box.classList.toggle("some", Boolean(which));
  const axes = Array.from({ length: heads }, (_, head) => make("span", "axis", `H${head}`));
  if (!which) box.append(make("span", "corner"), ...axes);
  const cells = (which || [...Array(layers * heads).keys()]).map((at, place) => {
    if (!which && at % heads === 0) box.append(make("span", "axis layer", `L${at / heads}`));
    const one = cell(at, Math.floor(at / heads), at % heads, place);
    box.append(one);
    return one;
  });
  return { box, canvas, cells, rove: rove(cells, { columns: heads }) };
}

/**
 * Paint every head's thumbnail over its places on the screen. Where these have fewer pixels than
 * cells, cells share one as the strongest of them: a browser that shrinks a picture drops or blurs
 * the thin lines that matter.
 * @param {{ box: HTMLElement, canvas: HTMLCanvasElement, places: HTMLElement[], rows: number,
 *   columns: number, bytes: (at: number) => Uint8Array, strength?: (byte: number) => number,
 *   words: (at: number, row: Uint8Array) => Uint32Array, faint?: (at: number) => boolean }} how
 *   bytes: a place's cells. words: the colour of each byte, for one row of a place.
 * @returns {number} how many cells each way share a pixel; 0 where nothing is on screen
 */
export function thumbnails({ box, canvas, places, rows, columns, bytes, words, ...how }) {
  const frame = box.getBoundingClientRect();
  const { clientWidth, clientHeight } = places[0];
  if (!clientWidth || !clientHeight) return 0;
  const ratio = window.devicePixelRatio || 1;
  const fold = Math.max(
    1,
    Math.ceil(columns / (clientWidth * ratio)),
    Math.ceil(rows / (clientHeight * ratio)),
  );
  const pen = sharp(canvas, frame.width, frame.height);
  const tile = document.createElement("canvas");
  places.forEach((place, at) => {
    const few = folded(bytes(at), rows, columns, fold, how.strength);
    const wide = Math.ceil(columns / fold);
    /** @type {Uint32Array} */
    let table;
    raster(
      Math.ceil(rows / fold),
      wide,
      (cell) => {
        if (cell % wide === 0) table = words(at, few.subarray(cell, cell + wide));
        return table[few[cell]];
      },
      tile,
    );
    const box = place.getBoundingClientRect();
    pen.globalAlpha = how.faint?.(at) ? 0.18 : 1;
    pen.drawImage(
      tile,
      box.left - frame.left + place.clientLeft,
      box.top - frame.top + place.clientTop,
      place.clientWidth,
      place.clientHeight,
    );
  });
  return fold;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} rows
 * @param {number} columns
 * @param {number} fold
 * @param {(byte: number) => number} [strength]
 */
export function folded(bytes, rows, columns, fold, strength = (byte) => byte) {
  if (fold === 1) return bytes;
  const wide = Math.ceil(columns / fold);
  const few = new Uint8Array(Math.ceil(rows / fold) * wide);
  const set = new Uint8Array(few.length);
  for (let from = 0; from < rows * columns; from++) {
    const to =
      Math.floor(Math.floor(from / columns) / fold) * wide + Math.floor((from % columns) / fold);
    if (set[to] && strength(bytes[from]) <= strength(few[to])) continue;
    [few[to], set[to]] = [bytes[from], 1];
  }
  return few;
}

/**
 * The colours of a thumbnail's 256 bytes: a byte b stands for peak x (b / 255)², as
 * `wire.thumbnails` says.
 * @param {Uint32Array} words
 * @param {number} peak
 * @param {number} full the weight at the top of the scale
 * @param {boolean} [log]
 */
export const thumbWords = (words, peak, full, log = false) =>
  Uint32Array.from({ length: 256 }, (_, b) =>
    wordAt(words, shade(peak * (b / 255) ** 2, full, log)),
  );
