// @ts-check
// Pictures of large type: matrices, bars, lines, strips, words and loops, all sized by the type they are
// set in, so that a picture fits whatever room it has. Curves and turns are in tour_figure_pens.js.

import { raster, sharp } from "./matrix_canvas.js";
import { make } from "./mount.js";
import { curves, dials, paintCurves, paintDials } from "./tour_figure_pens.js";
import { css, inkOn, wordAt } from "./theme.js";

/** @type {Record<string, (panel: any, look: any) => any[]>} */
const KINDS = { grid, field, bars, lines, strips, ladder, loops, curves, dials, figures };
/** @type {Record<string, (box: HTMLElement, panel: any, look: any) => void>} */
const PENS = { lines: paintLines, curves: paintCurves, dials: paintDials };

/**
 * The largest type, from the least to the most pixels, in which a plate's pictures fit it. False where
 * the least is still too large.
 * @param {HTMLElement} plate
 * @param {number[]} sizes
 */
export function sized(plate, [low, high]) {
  const fits = (/** @type {number} */ size) => {
    plate.style.fontSize = `${size}px`;
    const { scrollHeight, clientHeight, scrollWidth, clientWidth } = plate;
    return scrollHeight <= clientHeight + 1 && scrollWidth <= clientWidth + 1;
  };
  if (fits(high)) return true;
  while (high - low > 0.5) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return fits(low);
}

/**
 * The elements of pictures, which are kept in `boxes`.
 * @param {any} view with the `look`, and the pictures in `header.panels`
 * @returns {HTMLElement[]}
 */
export function drawn(view) {
  view.boxes = view.header.panels.map((/** @type {any} */ panel) =>
    make(
      "section",
      { class: `panel ${panel.kind}`, data: { kind: panel.kind } },
      panel.title && make("h3", { dir: "auto" }, ...told(panel.title, view.header.says?.[1])),
      ...KINDS[panel.kind](panel, view.look),
      panel.note && make("p", { class: "note", dir: "auto" }, panel.note),
    ),
  );
  return view.boxes;
}

/** A title, with the step's number in it set off. @param {string} title @param {string} number */
function told(title, number) {
  const at = number ? title.split(" ").indexOf(number) : -1;
  if (at < 0) return [title];
  const words = title.split(" ");
  return [
    `${words.slice(0, at).join(" ")} `,
    make("b", "number", number),
    ` ${words.slice(at + 1).join(" ")}`,
  ];
}

/** Draw what needs to know its size. @param {any} view */
export function painted(view) {
  view.header.panels.forEach((/** @type {any} */ panel, /** @type {number} */ at) =>
    PENS[panel.kind]?.(view.boxes[at], panel, view.look),
  );
}

/** @param {string} text @param {string} [kind] */
const word = (text, kind = "") =>
  make("span", { class: `word ${kind}`, dir: "auto", title: text }, text);

function grid({ rows, columns, values, low = 0, high, signed, marks, bare }, look) {
  const share = (/** @type {number} */ value) =>
    signed ? (value / high + 1) / 2 : (value - low) / (high - low || 1);
  const words = signed ? look.two : look.one;
  const at = (/** @type {number} */ each) =>
    values[Math.floor(each / columns.length)][each % columns.length];
  const canvas = raster(rows.length, columns.length, (each) =>
    at(each) === null ? undefined : wordAt(words, share(at(each))),
  );
  canvas.className = "cells";
  const framed = marks.map(([row, column, text]) => {
    const value = values[row][column];
    const ink = value === null ? undefined : inkOn(wordAt(words, share(value)));
    const vars = { row, column };
    return make("i", { class: "mark", vars, style: { color: ink } }, text && make("b", "", text));
  });
  const size = Math.max(rows.length, columns.length, 1);
  const vars = {
    m: rows.length,
    n: columns.length,
    side: `${Math.min(3, Math.max(1.45, 11 / size))}em`,
  };
  const on = (/** @type {number} */ which) => new Set(marks.map((each) => each[which]));
  const [ups, downs] = [on(0), on(1)];
  return [
    make(
      "div",
      { class: `sheet ${bare ? "bare" : ""}`, vars },
      make("div", "across", ...columns.map((each, i) => word(each, downs.has(i) ? "on" : ""))),
      !bare && make("div", "down", ...rows.map((each, i) => word(each, ups.has(i) ? "on" : ""))),
      make("div", "area", canvas, ...framed),
    ),
  ];
}

/** A matrix of so many rows that only the ends of its axes are named. @param {any} panel @param {any} look */
function field({ rows, columns, values, low, high, signed, sides }, look) {
  const words = signed ? look.two : look.one;
  const canvas = raster(rows.length, columns.length, (at) => {
    const value = values[Math.floor(at / columns.length)][at % columns.length];
    const share = signed ? (value / high + 1) / 2 : (value - low) / (high - low || 1);
    return value === null ? undefined : wordAt(words, share);
  });
  canvas.className = "cells";
  const ends = (
    /** @type {string} */ kind,
    /** @type {string[]} */ list,
    /** @type {string} */ name,
  ) => make("div", kind, word(list[0]), word(name), word(list[list.length - 1]));
  return [
    make("div", "field", ends("down", rows, sides[0]), canvas, ends("across", columns, sides[1])),
  ];
}

/** Few words, large. @param {any} panel */
function figures({ figures: list }) {
  const one = ([said, about]) =>
    make("div", "", make("b", "", said), about && make("span", "", about));
  return [make("div", "facts", ...list.map(one))];
}

function bars({ columns, rows, mark, shared, wide }) {
  const each = columns.map((_, at) =>
    Math.max(1e-12, ...rows.map((row) => Math.abs(row.values[at]))),
  );
  const tops = shared ? each.map(() => Math.max(...each)) : each;
  const lows = columns.map((_, at) => rows.some((row) => row.values[at] < 0));
  const cell = (row, at, which) => {
    const length = Math.abs(row.values[at]) / tops[at];
    const below = row.values[at] < 0;
    const bar = make("span", {
      class: `bar ${below ? "below" : ""}`,
      style: { width: `${100 * length}%` },
    });
    const told = mark && mark[0] === which && mark[1] === at;
    return [
      make("span", `track ${lows[at] ? "two" : ""}`, bar),
      make("span", `text ${told ? "number" : ""}`, row.texts[at]),
    ];
  };
  const heads = [make("span", ""), ...columns.flatMap((name) => [make("span", "head", name)])];
  const body = rows.map((row, which) =>
    make(
      "div",
      `row ${row.on ? "on" : ""} ${row.tone}`,
      word(row.label),
      ...columns.flatMap((_, at) => cell(row, at, which)),
    ),
  );
  return [
    make(
      "div",
      { class: `table ${wide ? "wide" : ""}`, vars: { n: columns.length } },
      make("div", "row heads", ...heads),
      ...body,
    ),
  ];
}

function lines({ left, right, sides, held, mark }) {
  const side = (name, list, on, text) =>
    make(
      "div",
      `side ${name}`,
      make("span", "head", sides[name === "left" ? 0 : 1]),
      ...list.map((each, at) =>
        make(
          "div",
          "end",
          word(each, at === on ? "on" : ""),
          at === on && text && make("b", "number", text),
        ),
      ),
    );
  return [
    make(
      "div",
      "between",
      side("left", left, held, ""),
      make("canvas", "pen"),
      side("right", right, mark?.[0], mark?.[1]),
    ),
  ];
}

/** @param {HTMLElement} box @param {any} panel @param {any} look */
function paintLines(box, { weights, held, mark }, look) {
  const canvas = /** @type {HTMLCanvasElement} */ (box.querySelector("canvas"));
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const pen = sharp(canvas, width, height);
  const top = canvas.getBoundingClientRect().top;
  const middles = (/** @type {string} */ side) =>
    [...box.querySelectorAll(`.${side} .end`)].map((each) => {
      const { top: y, height: h } = each.getBoundingClientRect();
      return y + h / 2 - top;
    });
  const zoom = canvas.getBoundingClientRect().height / height || 1;
  const [from, to] = [middles("left"), middles("right")].map((list) => list.map((y) => y / zoom));
  const thick = height / 40;
  weights.forEach((row, q) =>
    row.forEach((weight, k) => {
      if (weight === null || weight < 0.02) return;
      const own = q === held;
      pen.strokeStyle = own ? look.primary : look.ink;
      pen.globalAlpha = own ? Math.min(1, 0.2 + weight) : 0.05 + 0.25 * weight;
      pen.lineWidth = 1 + weight * thick * (own && k === mark?.[0] ? 1 : 0.5);
      pen.beginPath();
      pen.moveTo(0, from[q]);
      pen.bezierCurveTo(width * 0.4, from[q], width * 0.6, to[k], width, to[k]);
      pen.stroke();
    }),
  );
}

function strips({ strips: list, high }, look) {
  return list.map(({ label, values, text, sign, on }) => {
    const canvas = raster(1, values.length, (at) => wordAt(look.two, (values[at] / high + 1) / 2));
    canvas.className = "cells";
    return make(
      "div",
      `strip ${on ? "on" : ""}`,
      make("span", "sign", sign),
      word(label),
      canvas,
      make("span", `text ${on ? "number" : ""}`, text),
    );
  });
}

function ladder({ rungs }, look) {
  return rungs.map(({ label, words, on }) =>
    make(
      "div",
      `rung ${on ? "on" : ""}`,
      make("span", "label", label),
      ...words.map(([said, p, text], at) => {
        const colour = wordAt(look.one, p);
        const style = { background: css(colour), color: inkOn(colour) };
        return make(
          "span",
          { class: "chip", style },
          word(said),
          make("span", on && !at ? "p number" : "p", text),
        );
      }),
    ),
  );
}

/** @param {any} panel @returns {HTMLElement[]} */
function loops({ boxes }) {
  const box = ({ text, count, inside, on }) =>
    make(
      "div",
      `loop ${inside.length ? "" : "leaf"}`,
      make("div", "line", word(text), count && make("b", on ? "count number" : "count", count)),
      ...inside.map(box),
    );
  return boxes.map(box);
}
